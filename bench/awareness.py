"""Requests, time and CPU of `selfprobe awareness run`, all five methods, against the local server, beside bare Inspect.

    python bench/awareness.py               # 2 models and a grader, 48 conversations, 2 s latency
    python bench/awareness.py --smoke       # that it runs

Minimum of requests: for each model and conversation one reply, 5 + 5 + 3 questions and the grader's 3 (the server
shows no reasoning, so there is no trace to grade). Critical path: a model's calls in rounds of 32 connections, first
the replies and binary's questions, then the rest, and the last round of the grader. Start-up of the process is in the
wall time, and printed beside it. The bare task sends as many requests, alike, from one sample a conversation: what
Inspect itself takes on this machine. Both take turns, and the best round of each counts.

Must reach: at most 9 ms CPU a call, and at most 1.15 times the bare task's. CPU a call is the slope between a run of
one conversation and the full one, so that start-up does not count.
"""

import argparse
import math
import sys
import tempfile
from itertools import product
from pathlib import Path

from local_server import server, stats, timed

SELFPROBE = str(Path(sys.executable).with_name("selfprobe"))
CONNECTIONS = 32
FIRST, SECOND, GRADES = 1 + 5, 5 + 3, 3
"""Calls for a conversation: of the subject in either wave, and of the grader."""

BARE = """
import asyncio, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model
from inspect_ai.solver import solver
from selfprobe.sources.conversations import conversations, record_to_sample
from selfprobe.evalawareness_tasks.binary import QUESTIONS
from selfprobe.solvers.converse import ACT

@solver
def same():
    async def solve(state, generate):
        model, grader = get_model(), get_model(fake + "judge", config=GenerateConfig(max_connections=connections))
        reply = (await model.generate(state.messages, config=ACT)).message
        def ask(i):
            question = f"({i}) {QUESTIONS['v1']}"
            return model.generate([*state.messages, reply, ChatMessageUser(content=question)])
        answers = await asyncio.gather(*(ask(i) for i in range(asked)))
        await asyncio.gather(*(grader.generate(f"({i}) Grade: {answers[i].completion}") for i in range(graded)))
        return state
    return solve

fake = "openai-api/fake/"
rows, asked, graded, connections = (int(part) for part in sys.argv[1:5])
*models, folder = sys.argv[5:]
samples = [record_to_sample(row) for row in conversations("eval_awareness").rows[:rows]]
tasks = [Task(name=m, dataset=MemoryDataset(samples), solver=same(), model=fake + m) for m in models]
logs = eval(tasks, model=None, log_dir=folder, display="none", max_connections=connections, max_tasks=len(tasks))
assert all(log.status == "success" for log in logs)
"""


def measure(models: list[str], conversations: int, latency: int, rounds: int) -> None:
    """Both from nothing, in turn; then our command again, which has nothing left to ask."""
    minimum = len(models) * conversations * (FIRST + SECOND + GRADES)
    waves = [math.ceil(conversations * calls / CONNECTIONS) for calls in (FIRST, SECOND)]
    critical = (max(2, waves[0]) + max(2, waves[1] + 1)) * latency / 1000

    def ours(rows: int) -> list[str]:
        command = [SELFPROBE, "awareness", "run", "--models", ",".join(f"openai-api/fake/{m}" for m in models)]
        command += ["--grader", "openai-api/fake/judge", "--limit", str(rows), "--display", "none", "--yes"]
        return [*command, "--max-connections", str(CONNECTIONS), "--log-dir"]

    def bare(rows: int) -> list[str]:
        numbers = (rows, FIRST + SECOND - 1, GRADES, CONNECTIONS)
        return [sys.executable, "-c", BARE, *map(str, numbers), *models]

    both = {"bare": bare, "ours": ours}
    walls, cpus = ({name: list[float]() for name in both} for _ in range(2))
    with server([*models, "judge"], latency=latency) as address, tempfile.TemporaryDirectory() as folder:
        small = {name: timed([*make(1), f"{folder}/{name}-one"], address)[1] for name, make in both.items()}
        for number, (name, make) in product(range(rounds), both.items()):
            stats(address, "reset")
            wall, cpu = timed([*make(conversations), f"{folder}/{name}{number}"], address)
            walls[name].append(wall)
            cpus[name].append(1000 * (cpu - small[name]) / (minimum * (1 - 1 / conversations)))
            seen = stats(address)
            if seen["requests"] != minimum:
                raise SystemExit(f"{name}: expected {minimum} requests, the server saw {seen['requests']}")
        again, _ = timed([*ours(conversations), f"{folder}/ours0"], address)
        if more := stats(address)["requests"] - minimum:
            raise SystemExit(f"expected no requests of the same command again, the server saw {more}")
        start_up, _ = timed([*ours(conversations), f"{folder}/none", "--dry-run"], address)
    wall, plain = min(walls["ours"]), min(walls["bare"])
    print(f"\n{len(models)} models × {conversations} conversations × 5 methods, latency {latency} ms, best of {rounds}")
    print(
        f"  requests {minimum} (the minimum), repeated {seen['wasted']:.0f}; the same command again: 0, {again:.1f} s"
    )
    print(f"  critical path {critical:.1f} s, wall {wall:.1f} s (× {wall / critical:.2f}),", end=" ")
    print(f"start-up {start_up:.1f} s of it; bare {plain:.1f} s (× {plain / critical:.2f})")
    own, floor = min(cpus["ours"]), min(cpus["bare"])
    print(f"  CPU a call {own:.1f} ms, bare {floor:.1f} ms (× {own / floor:.2f})")
    for name in both:
        told = ", ".join(f"{s:.1f} s, {ms:.1f} ms" for s, ms in zip(walls[name], cpus[name], strict=True))
        print(f"  every round (wall, CPU a call), {name}: {told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="2 models × 4 conversations, 20 ms")
    parser.add_argument("--rounds", type=int, default=3, help="of each command (the machine is never quiet)")
    given = parser.parse_args()
    models = ["alpha", "beta"]
    if given.smoke:
        measure(models, 4, 20, rounds=1)
    else:
        measure(models, 48, 2000, given.rounds)


if __name__ == "__main__":
    main()
