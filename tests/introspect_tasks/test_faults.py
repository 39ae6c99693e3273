"""The tasks besides kth_word (tests/solvers/test_faults.py) under every fault of the local server
at once.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakeserver import ANSWER_FAULTS, TRANSPORT_FAULTS
from inspect_ai import eval_retry
from inspect_ai.log import EvalLog, EvalSample, list_eval_logs, read_eval_log

from selfprobe.scorers.decision import decisions_of

Run = Callable[..., EvalLog]
Rows = dict[tuple[str, int, str], tuple[Any, ...]]
ALPHA, BETA = "openai-api/fake/alpha", "openai-api/fake/beta"
TASKS: dict[str, dict[str, Any]] = {
    "ethical_dilemma": {"epochs": 2},
    "paraphrase_recognition": {},
    "prompt_reconstruction": {},
    "heads_up": {},
}
OTHER_WORDS = ("nojson", "injection", "doublebrace", "nan", "badsum", "huge")
"""Faults that give a target's text another sense or shape: no one could tell that from what it
would have said.
"""
MOVES = {"prompt_reconstruction": ("length",), "paraphrase_recognition": ("length", "unicode")}
"""Faults after which a target's text still counts, cut or with odd characters, and moves what is
said of it.

It is compared as far as it goes; and a planted observer draws its guess by the text that it is
shown.
"""
ITEMS = 8


def rows(samples: list[EvalSample] | None) -> Rows:
    """(value, unscored, truth, prediction) of every decision, by sample, epoch and key."""
    return {
        (str(s.id), s.epoch, d.key): (d.value, d.unscored, d.truth, d.said)
        for s in samples or []
        for score in (s.scores or {}).values()
        for d in decisions_of(score)
    }


def _similar(task: str, embedder: str) -> dict[str, str]:
    return (
        {"embedder": embedder}
        if task in ("paraphrase_recognition", "prompt_reconstruction")
        else {}
    )


@pytest.fixture
def run(
    run_task: Run, tmp_path_factory: pytest.TempPathFactory, server: Any, embedder: str
) -> Callable[..., EvalLog]:
    """beta predicts alpha, so that each can be broken alone."""

    def once(task: str, faults: dict[str, dict[str, float]]) -> EvalLog:
        server.reset()
        server.configure(
            {"*": {"faults": {}}} | {model: {"faults": given} for model, given in faults.items()}
        )
        return run_task(
            f"selfprobe/{task}",
            BETA,
            tmp_path_factory.mktemp(task),
            task_args=TASKS[task] | _similar(task, embedder),
            model_roles={"target": ALPHA},
            limit=ITEMS,
            attempt_timeout=5,
            max_retries=1,
        )

    return once


@pytest.fixture(scope="module")
def known() -> dict[str, tuple[Rows, int]]:
    return {}


@pytest.fixture
def clean_run(
    run: Callable[..., EvalLog], server: Any, known: dict[str, tuple[Rows, int]]
) -> Callable[[str], tuple[Rows, int]]:
    """The rows of a task's run without any fault, and its requests; run once for all tests of the
    task.
    """

    def once(task: str) -> tuple[Rows, int]:
        if task not in known:
            known[task] = rows(run(task, {}).samples), server.stats()["requests"]
            assert known[task][0], "the clean run decided nothing"
        return known[task]

    return once


@pytest.mark.parametrize(
    "task",
    [pytest.param(task, marks=() if task == "heads_up" else pytest.mark.slow(4)) for task in TASKS],
)
def test_whatever_fails_a_scored_row_is_the_clean_runs_row(
    task: str,
    run: Callable[..., EvalLog],
    clean_run: Callable[[str], tuple[Rows, int]],
    server: Any,
) -> None:
    clean, _ = clean_run(task)
    assert sum(value is not None for value, *_ in clean.values()) > len(clean) / 2
    answers = dict.fromkeys(ANSWER_FAULTS, 0.05)
    told = {
        kind: share
        for kind, share in answers.items()
        if kind not in (*OTHER_WORDS, *MOVES.get(task, ()))
    }
    log = run(task, {"alpha": told, "beta": answers})
    assert log.status == "success" and sum(server.stats()["faults"].values()) >= 3
    found = rows(log.samples)
    assert set(found) == set(clean)
    assert all(unscored for value, unscored, *_ in found.values() if value is None)
    assert {
        key: row for key, row in found.items() if row[0] is not None and row != clean[key]
    } == {}
    assert any(row != clean[key] for key, row in found.items())


@pytest.mark.slow(5)
@pytest.mark.parametrize("task", TASKS)
def test_failed_calls_are_made_again_or_end_their_sample_and_a_resume_gives_the_clean_run(
    task: str,
    run: Callable[..., EvalLog],
    clean_run: Callable[[str], tuple[Rows, int]],
    server: Any,
    tmp_path: Path,
) -> None:
    clean, _ = clean_run(task)
    rate = (
        0.02 if task == "paraphrase_recognition" else 0.05
    )  # of ten calls a sample: else none would be left
    faults = dict.fromkeys((kind for kind in TRANSPORT_FAULTS if kind != "hang"), rate)
    log = run(task, {"alpha": faults, "beta": faults})
    assert sum(server.stats()["faults"].values()) >= 3
    found = rows(log.samples)
    assert found and found == {key: clean[key] for key in found}
    server.configure({model: {"faults": {}} for model in ("alpha", "beta")})
    if any(s.error is not None for s in log.samples or []):
        [log] = eval_retry(log, log_dir=str(tmp_path), display="none", log_realtime=False)
    assert log.status == "success" and rows(log.samples) == clean


IN_TURN = """
import json, os, sys
from inspect_ai._cli.main import main
import selfprobe.study._registry

for line in sys.stdin:
    call = json.loads(line)
    if not (process := os.fork()):
        os.environ.update(call["environment"])
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.argv = ["inspect", *call["arguments"]]
        main()
    print(process, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""
"""`inspect`, one call after the other, each in a process of its own; what takes seconds to import
is imported once.
"""


@pytest.fixture(scope="module")
def in_turn() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", IN_TURN]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


@pytest.fixture
def inspect(
    in_turn: subprocess.Popen[str], server: Any, embedder: str
) -> tuple[Callable[[list[str]], int], Callable[[], int]]:
    """Start `inspect` with these arguments (gives its process), and wait for its end (gives its
    exit status).
    """
    assert in_turn.stdin is not None and in_turn.stdout is not None
    calls, told = in_turn.stdin, in_turn.stdout

    def start(arguments: list[str]) -> int:
        calls.write(json.dumps({"arguments": arguments, "environment": dict(os.environ)}) + "\n")
        calls.flush()
        return int(told.readline())

    return start, lambda: int(told.readline())


@pytest.mark.slow(17)
@pytest.mark.parametrize("task", TASKS)
def test_a_run_that_is_killed_and_retried_gives_the_clean_run_without_asking_finished_samples_again(
    task: str,
    clean_run: Callable[[str], tuple[Rows, int]],
    inspect: tuple[Callable[[list[str]], int], Callable[[], int]],
    server: Any,
    embedder: str,
    tmp_path: Path,
) -> None:
    start, ended = inspect
    clean, least = clean_run(task)
    server.reset()
    server.configure({"*": {"latency_ms": 300}})
    arguments = TASKS[task] | _similar(task, embedder)
    command = [
        "eval",
        f"selfprobe/{task}",
        "--model",
        BETA,
        "--limit",
        str(ITEMS),
        "--model-role",
        f"target={ALPHA}",
    ]
    command += ["--log-dir", str(tmp_path), "--display", "none", "--max-samples", "2"]
    command += [part for key, value in arguments.items() for part in ("-T", f"{key}={value}")]
    process = start(command)
    until = time.monotonic() + 120
    while server.stats()["requests"] < least / 2 and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(process, signal.SIGKILL)
    assert ended() == -signal.SIGKILL
    server.configure({"*": {"latency_ms": 0}})
    [killed] = [read_eval_log(info) for info in list_eval_logs(str(tmp_path))]
    assert killed.status == "started"
    [log] = eval_retry(killed, log_dir=str(tmp_path), display="none", log_realtime=False)
    assert log.status == "success" and rows(log.samples) == clean
    assert server.stats()["requests"] <= least + 2 * (least / len({key[:2] for key in clean}) + 1)
