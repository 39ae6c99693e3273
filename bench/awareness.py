"""Requests and wall time of `selfprobe awareness run`, all five methods, against the local server.

    python bench/awareness.py               # 2 models and a grader, 48 conversations, 2 s latency
    python bench/awareness.py --smoke       # that it runs

Minimum of requests: for each model and conversation one reply, 5 + 5 + 3 questions and the grader's 3 (the server
shows no reasoning, so there is no trace to grade). Critical path: a model's calls in rounds of 32 connections, first
the replies and binary's questions, then the rest, and the last round of the grader. Start-up of the process is in the
wall time, and printed beside it.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from local_server import environment, server, stats

SELFPROBE = str(Path(sys.executable).with_name("selfprobe"))
CONNECTIONS = 32
FIRST, SECOND, GRADES = 1 + 5, 5 + 3, 3
"""Calls for a conversation: of the subject in either wave, and of the grader."""


def timed(command: list[str], address: str) -> float:
    """Wall seconds of a command."""
    start = time.perf_counter()
    done = subprocess.run(command, env=os.environ | environment(address), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command[:4])} … ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}"
        )
    return time.perf_counter() - start


def measure(models: list[str], conversations: int, latency: int) -> None:
    """One run from nothing, and the same command again, which has nothing left to ask."""
    minimum = len(models) * conversations * (FIRST + SECOND + GRADES)
    rounds = [math.ceil(conversations * calls / CONNECTIONS) for calls in (FIRST, SECOND)]
    critical = (max(2, rounds[0]) + max(2, rounds[1] + 1)) * latency / 1000
    with server([*models, "judge"], latency=latency) as address, tempfile.TemporaryDirectory() as folder:
        command = [SELFPROBE, "awareness", "run", "--models", ",".join(f"openai-api/fake/{m}" for m in models)]
        command += ["--grader", "openai-api/fake/judge", "--limit", str(conversations), "--log-dir", f"{folder}/a"]
        command += ["--display", "none", "--yes", "--max-connections", str(CONNECTIONS)]
        wall = timed(command, address)
        seen = stats(address)
        again = timed(command, address)
        more = stats(address)["requests"] - seen["requests"]
        start_up = timed([*command, "--dry-run"], address)
    print(f"\n{len(models)} models × {conversations} conversations × 5 methods, latency {latency} ms")
    print(f"  requests {seen['requests']:.0f} (minimum {minimum}), repeated {seen['wasted']:.0f}")
    print(f"  wall {wall:.1f} s (start-up {start_up:.1f} s); critical path {critical:.1f} s,", end=" ")
    print(f"ratio {wall / critical:.2f}, without start-up {(wall - start_up) / critical:.2f}")
    print(f"  the same command again: {more:.0f} requests, {again:.1f} s")
    if seen["requests"] != minimum or more:
        raise SystemExit(f"expected {minimum} requests and then none, the server saw {seen['requests']} and {more}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="2 models × 4 conversations, 20 ms")
    given = parser.parse_args()
    measure(["alpha", "beta"], *((4, 20) if given.smoke else (48, 2000)))


if __name__ == "__main__":
    main()
