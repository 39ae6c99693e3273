"""Requests, wall time, CPU and memory of a kth_word matrix against the local server, beside a bare
Inspect task.

    python bench/matrix.py                  # 3 models × 50 items, then 5 × 50; 2 s latency, then 200 ms
    python bench/matrix.py --report 10      # also: memory and time of a report of 10 models × 200 items × 5 tasks
    python bench/matrix.py --smoke          # that it runs

Minimum of requests: models × items × (1 + K), and models × items for the ceiling, which asks each
question a second time on purpose. Critical path: a model's calls in rounds of 32 connections, one
latency a round; the models run side by side. At low latency Inspect's own CPU a sample and a call
decides instead: both are printed, and how long the bare task takes. CPU is counted from the second
item on: what any start costs is in neither. The bare task makes the same calls with Inspect alone.
The cells of two models are joined when a report is made, and are no runs.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

SELFPROBE = str(Path(sys.executable).with_name("selfprobe"))
SERVER = Path(__file__).parent.parent / "tests" / "fakeserver.py"
CONNECTIONS, KS = 32, 3

BARE = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.solver import solver
from selfprobe.introspect_tasks.kth_word import ACT, ANSWER, act_prompts, answer_prompts, kth_word
from selfprobe.solvers.observe import Whom
from inspect_ai.util import collect

@solver
def same():
    async def solve(state, generate):
        model, act = get_model(), ACT.merge(GenerateConfig(max_tokens=40))
        prompts = [(p, act) for p in act_prompts(state).values()]
        prompts += [(p, ANSWER) for p in answer_prompts(state, Whom()).values()]
        await collect(*(model.generate(p, config=c) for p, c in prompts))
        return state
    return solve

samples = list(kth_word().dataset)[:int(sys.argv[1])]
fake = "openai-api/fake/"
tasks = [Task(name=m, dataset=MemoryDataset(samples), solver=same(), model=fake + m) for m in sys.argv[3:]]
given = dict(model=None, log_dir=sys.argv[2], display="none", max_connections=32)
logs = eval(tasks, max_tasks=len(tasks), **given)
assert all(log.status == "success" for log in logs)
"""


@contextmanager
def server(*, latency: int = 0) -> Iterator[str]:
    """The server's address; `latency` in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "port"
        command = [
            sys.executable,
            str(SERVER),
            "--port",
            "0",
            "--port-file",
            str(told),
            "--latency",
            str(latency),
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            while not told.exists():
                if process.poll() is not None:
                    raise RuntimeError(
                        f"{SERVER.name} ended with code {process.returncode} before it listened"
                    )
                time.sleep(0.02)
            yield f"http://127.0.0.1:{told.read_text()}"
        finally:
            process.terminate()
            process.wait()


def stats(address: str, path: str = "stats") -> dict[str, float]:
    """The server's counters; path "reset" sets them to zero."""
    request = urllib.request.Request(
        f"{address}/{path}", method="POST" if path == "reset" else "GET"
    )
    with urllib.request.urlopen(request) as reply:
        content: dict[str, float] = json.load(reply)
    return content


def timed(command: list[str], address: str = "") -> tuple[float, float]:
    """Wall and CPU seconds of a command (its children's included), to which openai-api/fake/NAME is
    the server.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    surroundings = os.environ | {"FAKE_API_KEY": "none", "FAKE_BASE_URL": f"{address}/v1"}
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command[:4])} … ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, cpu


def compare(models: list[str], items: int, latency: int, rounds: int) -> None:
    """One size and latency: the matrix and the bare task in turn, each also with one item; the best
    of some rounds.
    """
    size = len(models)
    minimum, ceiling = size * items * (1 + KS), size * items
    critical = math.ceil(items * (2 + KS) / CONNECTIONS) * latency / 1000
    fakes = ",".join(f"openai-api/fake/{m}" for m in models)
    matrix = [
        SELFPROBE,
        "matrix",
        "--models",
        fakes,
        "--tasks",
        "kth_word",
        "--yes",
        "--display",
        "none",
    ]
    matrix += ["--max-connections", str(CONNECTIONS)]
    wall, cpu = {}, {}
    with server(latency=latency) as address:
        for _, n, name in product(range(rounds), (1, items), ("matrix", "bare")):
            with tempfile.TemporaryDirectory() as folder:
                command = [*matrix, "--limit", str(n), "--log-dir", folder]
                if name == "bare":
                    command = [sys.executable, "-c", BARE, str(n), folder, *models]
                stats(address, "reset")
                took = timed(command, address)
            wall[name, n] = min(took[0], wall.get((name, n), math.inf))
            cpu[name, n] = min(took[1], cpu.get((name, n), math.inf))
            if (name, n) == ("matrix", items):
                seen = stats(address)
    calls = minimum + ceiling
    ours, bare = (cpu[name, items] - cpu[name, 1] for name in ("matrix", "bare"))
    print(f"\n{size} models × {items} items, latency {latency} ms, best of {rounds}")
    print(
        f"  requests {seen['requests']:.0f} (minimum {minimum} + {ceiling} for the ceiling), "
        f"repeated {seen['duplicates']:.0f}"
    )
    print(f"  critical path {critical:.1f} s, wall {wall['matrix', items]:.1f} s", end=" ")
    print(f"(× {wall['matrix', items] / critical:.2f}), bare {wall['bare', items]:.1f} s", end=" ")
    print(f"(× {wall['bare', items] / critical:.2f})")
    print(
        f"  CPU with one item {cpu['matrix', 1]:.1f} s, bare {cpu['bare', 1]:.1f} s; taken off below"
    )
    ratio = f"ratio {ours / bare:.2f}"
    print(
        f"  CPU a call {1000 * ours / calls:.1f} ms, bare {1000 * bare / calls:.1f} ms, {ratio}",
        flush=True,
    )
    if seen["requests"] != calls:
        raise SystemExit(f"expected {calls} requests, the server saw {seen['requests']}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="2 models × 3 items, 20 ms")
    parser.add_argument(
        "--rounds", type=int, default=3, help="of each command (the machine is never quiet)"
    )
    parser.add_argument(
        "--report", type=int, metavar="MODELS", help="also report planted logs of this many models"
    )
    given = parser.parse_args()
    if given.smoke:
        compare(["alpha", "beta"], 3, 20, rounds=1)
        return
    names = ["alpha", "beta", "gamma", "delta", "epsilon"]
    for size in (3, 5):
        for latency in (2000, 200):
            compare(names[:size], 50, latency, given.rounds)
    if given.report:
        report(given.report)


def report(size: int) -> None:
    """Memory and time of a planted matrix of this many models over all tasks, and of its report."""
    with tempfile.TemporaryDirectory() as folder:
        models = ",".join(f"planted/m{i}?access={0.3 + 0.05 * i:.2f}" for i in range(size))
        size_of = ["--models", models, "--limit", "200", "--log-dir", folder]
        wall, _ = timed([SELFPROBE, "matrix", *size_of, "--yes", "--display", "none"])
        print(
            f"\nmatrix of {size} models × 200 items × 5 tasks: {wall:.0f} s, peak of any process {peak():.0f} MB"
        )
        wall, _ = timed([SELFPROBE, "report", folder, "--out", f"{folder}/report"])
        print(f"its report: {wall:.1f} s")


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


if __name__ == "__main__":
    main()
