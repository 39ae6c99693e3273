"""The local OpenAI-compatible server (tests/fakeserver.py) in a process of its own, and commands timed against it."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SERVER = Path(__file__).parent.parent / "tests" / "fakeserver.py"


@contextmanager
def server(models: Sequence[str], *, latency: int = 0) -> Iterator[str]:
    """The server's address; `latency` in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "port"
        command = [sys.executable, str(SERVER), "--port", "0", "--port-file", str(told), "--latency", str(latency)]
        process = subprocess.Popen([*command, "--models", ",".join(models)], stdout=subprocess.DEVNULL)
        try:
            while not told.exists():
                if process.poll() is not None:
                    raise RuntimeError(f"{SERVER.name} ended with code {process.returncode} before it listened")
                time.sleep(0.02)
            yield f"http://127.0.0.1:{told.read_text()}"
        finally:
            process.terminate()
            process.wait()


def environment(address: str) -> dict[str, str]:
    """What makes openai-api/fake/NAME a model of the server."""
    return {"FAKE_API_KEY": "none", "FAKE_BASE_URL": f"{address}/v1"}


def stats(address: str, path: str = "stats") -> dict[str, float]:
    """The server's counters; path "reset" sets them to zero."""
    request = urllib.request.Request(f"{address}/{path}", method="POST" if path == "reset" else "GET")
    with urllib.request.urlopen(request) as reply:
        content: dict[str, float] = json.load(reply)
    return content


def timed(command: list[str], address: str, **given: str) -> tuple[float, float]:
    """Wall and CPU seconds of a command (its children's included); `given` is added to its environment."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    surroundings = os.environ | environment(address) | given
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command[:4])} … ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, cpu
