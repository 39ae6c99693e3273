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
CONNECTIONS = 32
PREDICTED_WORDS = 3

BARE = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.solver import solver
from selfprobe.introspect_tasks.kth_word import ACT, ANSWER, act_prompts, answer_prompts, kth_word
from selfprobe.solvers.observe import AskedAbout
from inspect_ai.util import collect

@solver
def same():
    async def solve(state, generate):
        model, act = get_model(), ACT.merge(GenerateConfig(max_tokens=40))
        prompts = [(p, act) for p in act_prompts(state).values()]
        prompts += [(p, ANSWER) for p in answer_prompts(state, AskedAbout()).values()]
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
        port_file = Path(folder) / "port"
        command = [sys.executable, str(SERVER), "--port", "0", "--port-file", str(port_file)]
        command += ["--latency", str(latency)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            while not port_file.exists():
                if process.poll() is not None:
                    raise RuntimeError(
                        f"{SERVER.name} ended with code {process.returncode} before it listened"
                    )
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port_file.read_text()}"
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
    environment = os.environ | {"FAKE_API_KEY": "none", "FAKE_BASE_URL": f"{address}/v1"}
    start_cpu_seconds = children_cpu_seconds()
    start_seconds = time.perf_counter()
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(
            f"{' '.join(command[:4])} … ended with {process.returncode}:\n"
            f"{process.stdout[-2000:]}{process.stderr[-2000:]}"
        )
    wall_seconds = time.perf_counter() - start_seconds
    return wall_seconds, children_cpu_seconds() - start_cpu_seconds


def children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def compare(models: list[str], items: int, latency: int, rounds: int) -> None:
    """One size and latency: the matrix and the bare task in turn, each also with one item; the best
    of some rounds.
    """
    model_count = len(models)
    minimum_calls = model_count * items * (1 + PREDICTED_WORDS)
    ceiling_calls = model_count * items
    call_rounds = math.ceil(items * (2 + PREDICTED_WORDS) / CONNECTIONS)
    critical_seconds = call_rounds * latency / 1000

    model_names = ",".join(f"openai-api/fake/{model}" for model in models)
    matrix_command = [SELFPROBE, "matrix", "--models", model_names, "--tasks", "kth_word"]
    matrix_command += ["--yes", "--display", "none", "--max-connections", str(CONNECTIONS)]
    wall: dict[tuple[str, int], float] = {}
    cpu: dict[tuple[str, int], float] = {}
    server_counts: dict[str, float] = {}
    with server(latency=latency) as address:
        for _, item_count, name in product(range(rounds), (1, items), ("matrix", "bare")):
            with tempfile.TemporaryDirectory() as folder:
                command = [*matrix_command, "--limit", str(item_count), "--log-dir", folder]
                if name == "bare":
                    command = [sys.executable, "-c", BARE, str(item_count), folder, *models]
                stats(address, "reset")
                wall_seconds, cpu_seconds = timed(command, address)
            size = (name, item_count)
            wall[size] = min(wall_seconds, wall.get(size, math.inf))
            cpu[size] = min(cpu_seconds, cpu.get(size, math.inf))
            if size == ("matrix", items):
                server_counts = stats(address)

    expected_calls = minimum_calls + ceiling_calls
    matrix_call_ms = 1000 * (cpu["matrix", items] - cpu["matrix", 1]) / expected_calls
    bare_call_ms = 1000 * (cpu["bare", items] - cpu["bare", 1]) / expected_calls
    matrix_wall = wall["matrix", items]
    bare_wall = wall["bare", items]
    print(f"\n{model_count} models × {items} items, latency {latency} ms, best of {rounds}")
    print(
        f"  requests {server_counts['requests']:.0f} (minimum {minimum_calls} + {ceiling_calls} "
        f"for the ceiling), repeated {server_counts['duplicates']:.0f}"
    )
    print(
        f"  critical path {critical_seconds:.1f} s, "
        f"wall {matrix_wall:.1f} s (× {matrix_wall / critical_seconds:.2f}), "
        f"bare {bare_wall:.1f} s (× {bare_wall / critical_seconds:.2f})"
    )
    print(
        f"  CPU with one item {cpu['matrix', 1]:.1f} s, bare {cpu['bare', 1]:.1f} s; "
        "taken off below"
    )
    print(
        f"  CPU a call {matrix_call_ms:.1f} ms, bare {bare_call_ms:.1f} ms, "
        f"ratio {matrix_call_ms / bare_call_ms:.2f}",
        flush=True,
    )
    if server_counts["requests"] != expected_calls:
        raise SystemExit(
            f"expected {expected_calls} requests, the server saw {server_counts['requests']}"
        )


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
    arguments = parser.parse_args()
    if arguments.smoke:
        compare(["alpha", "beta"], 3, 20, rounds=1)
        return
    names = ["alpha", "beta", "gamma", "delta", "epsilon"]
    for size in (3, 5):
        for latency in (2000, 200):
            compare(names[:size], 50, latency, arguments.rounds)
    if arguments.report:
        report(arguments.report)


def report(size: int) -> None:
    """Memory and time of a planted matrix of this many models over all tasks, and of its report."""
    with tempfile.TemporaryDirectory() as folder:
        models = ",".join(f"planted/m{i}?access={0.3 + 0.05 * i:.2f}" for i in range(size))
        options = ["--models", models, "--limit", "200", "--log-dir", folder]
        matrix_seconds, _ = timed([SELFPROBE, "matrix", *options, "--yes", "--display", "none"])
        peak_megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(
            f"\nmatrix of {size} models × 200 items × 5 tasks: {matrix_seconds:.0f} s, "
            f"peak of any process {peak_megabytes:.0f} MB"
        )
        report_seconds, _ = timed([SELFPROBE, "report", folder, "--out", f"{folder}/report"])
        print(f"its report: {report_seconds:.1f} s")


if __name__ == "__main__":
    main()
