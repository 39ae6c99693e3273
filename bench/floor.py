"""CPU seconds a model call of `kth_word`, against a bare Inspect task that makes the same calls.

    python bench/floor.py            # 100 questions, 5 repeats of each, a few minutes
    python bench/floor.py --smoke    # that it runs; the ratio means nothing

The bare task sends the same prompts with the same settings to the same local server (tests/fakeserver.py, in
another process), one after the other with `get_model().generate`, and scores with a constant. What kth_word
costs above it is this suite's own: the Record, the parsing, the decisions, the intervals.
"""

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import dataclass

from inspect_ai import Task, eval, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from local_server import environment, server

from selfprobe.data import load
from selfprobe.introspect_tasks.kth_word import ACT, ANSWER, act_prompts, answer_prompts, kth_word, record_to_sample
from selfprobe.solvers.ask import PATIENCE

MODEL = "openai-api/fake/alpha"
KS = [1, 2, 3]
CALLS = 2 + len(KS)  # a question: the answer, its repeat, one prediction a k


@dataclass(frozen=True)
class Cost:
    """One run."""

    seconds: float
    """CPU seconds of this process (user and system)."""
    calls: int

    @property
    def milliseconds(self) -> float:
        """CPU milliseconds a call."""
        return 1000 * self.seconds / self.calls


@solver
def same_calls() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = get_model()
        act = ACT.merge(GenerateConfig(max_tokens=40))  # what kth_word sends for three words
        for prompts, config in ((act_prompts(state), act), (answer_prompts(state), ANSWER)):
            for prompt in prompts.values():
                state.output = await model.generate(prompt, config=PATIENCE.merge(config))
        return state

    return solve


@scorer(metrics=[mean()])
def constant() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=1, answer=state.output.completion)

    return score


@task
def bare() -> Task:
    rows = load("open_questions", ("question",)).rows
    return Task(
        dataset=MemoryDataset([record_to_sample(row, KS, 1) for row in rows]), solver=same_calls(), scorer=constant()
    )


def cost(what: Task, questions: int) -> Cost:
    """CPU of one run of a task.

    Raises:
        RuntimeError: The run failed; with its log's error.
    """
    with tempfile.TemporaryDirectory() as folder:
        before = time.process_time()
        log = eval(what, model=MODEL, limit=questions, log_dir=folder, display="none")[0]
        spent = time.process_time() - before
    if log.status != "success":
        raise RuntimeError(f"{log.eval.task} ended with {log.status}: {log.error.message if log.error else ''}")
    return Cost(spent, questions * CALLS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="5 questions, 1 repeat")
    given = parser.parse_args()
    questions, repeats = (5, 1) if given.smoke else (given.questions, given.repeats)
    with server(["alpha"]) as address:
        os.environ |= environment(address)
        makers = {"bare": bare, "kth_word": kth_word}
        for make in makers.values():
            cost(make(), 2)  # imports and connections
        costs: dict[str, list[float]] = {name: [] for name in makers}
        for repeat in range(repeats):
            for name in sorted(makers, reverse=bool(repeat % 2)):
                costs[name].append(cost(makers[name](), questions).milliseconds)
                print(f"{name:10} {costs[name][-1]:6.2f} CPU ms a call", flush=True)
    medians = {name: statistics.median(values) for name, values in costs.items()}
    for name, value in medians.items():
        print(f"median {name:10} {value:6.2f} CPU ms a call ({questions} questions, {CALLS} calls each)")
    print(f"ratio {medians['kth_word'] / medians['bare']:.2f} (target: at most 1.3)")


if __name__ == "__main__":
    main()
