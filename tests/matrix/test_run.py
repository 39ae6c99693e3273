"""A matrix asks exactly the minimum, goes on where it stopped, and leaves holes where something
failed.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from selfprobe.cli import main
from selfprobe.introspect_tasks import kth_word
from selfprobe.stats.claim import Verdict
from selfprobe.studies.matrix.numbers import analyse
from selfprobe.studies.matrix.study import Matrix
from selfprobe.studies.matrix.table import matrix_of
from selfprobe.study._registry import measures
from selfprobe.study.waves import RunSettings
from tests.matrix.read_logs import read_matrices

ALPHA, BETA = "openai-api/fake/alpha", "openai-api/fake/beta"
QUIET = RunSettings(display="none", max_retries=0)
COMMAND = str(Path(sys.executable).with_name("selfprobe"))


def study(folder: Path, limit: int, data: Path) -> Matrix:
    """Both models on questions, with logs in this folder."""
    args = {"dataset": str(data)}
    return Matrix(
        models=[ALPHA, BETA],
        tasks=["kth_word"],
        limit=limit,
        args=args,
        log_dir=str(folder),
        settings=QUIET,
    )


def calls(models: list[str], tasks: list[str], limit: int, **args: Any) -> int:
    return sum(
        cost.calls
        for cost in Matrix(models=models, tasks=tasks, limit=limit, args=args).plan().costs
    )


# ---- the plan


def test_the_calls_are_the_minimum_of_each_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """For 3 models: M·n·(1+K) and n·M for the ceiling, M·n·3·epochs, M·5n + M²·5n, M·n + M²·n, M·n
    + 2M²·n.
    """
    monkeypatch.setattr("selfprobe.embed._loaded", lambda _: None)  # a plan embeds nothing
    models, m, n = [f"planted/m{i}" for i in range(3)], 3, 7
    expected = {
        "kth_word": m * n * (1 + 3) + m * n,
        "ethical_dilemma": m * n * 3 * 10,
        "paraphrase_recognition": m * 5 * n + m**2 * 5 * n,
        "heads_up": m * n + m**2 * n,
    }
    for task, count in expected.items():
        assert calls(models, [task], n) == count, task
    assert calls(models, ["prompt_reconstruction"], n, resamples=0) == m * n + 2 * m**2 * n
    assert calls(models, list(expected), n) == sum(expected.values())


def test_arguments_go_to_the_tasks_that_have_them_and_change_the_calls() -> None:
    given = {"k": "1,5", "resamples": 0}
    planned = Matrix(models=[ALPHA, BETA], tasks=["kth_word", "heads_up"], args=given)
    assert (planned.args_of("kth_word"), planned.args_of("heads_up")) == (given, {})
    assert calls([ALPHA, BETA], ["kth_word", "heads_up"], 5, **given) == 2 * 5 * 3 + 2 * 5 + 4 * 5


@pytest.mark.parametrize(
    ("members", "tasks", "args", "said"),
    [
        ([], ["kth_word"], {}, "a matrix compares two models or more, got none"),
        (
            [ALPHA],
            ["kth_word"],
            {},
            "a matrix compares two models or more, got openai-api/fake/alpha",
        ),
        (
            [ALPHA, BETA, ALPHA],
            ["kth_word"],
            {},
            "model openai-api/fake/alpha is listed twice; list each model once",
        ),
        (
            [ALPHA, BETA],
            ["kth"],
            {},
            "unknown task kth; a matrix can hold ethical_dilemma, heads_up, kth_word",
        ),
        ([ALPHA, BETA], [], {}, r"unknown task \(none\)"),
        ([ALPHA, BETA], ["kth_word"], {"epochs": 2}, "no task here has an argument epochs"),
    ],
)
def test_a_wrong_matrix_is_refused_before_anything_runs(
    members: Any, tasks: Any, args: Any, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Matrix(models=members, tasks=tasks, limit=5, args=args)


def test_a_task_is_known_as_inspect_knows_it_by_its_registry_name_and_its_file() -> None:
    file = kth_word.__file__
    named = Matrix(
        models=[ALPHA, BETA], tasks=["selfprobe/heads_up", file, f"{file}@kth_word", "kth_word"]
    )
    assert named.task_names == ("heads_up", "kth_word")


def test_every_task_of_a_matrix_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("selfprobe.embed._loaded", lambda _: None)
    assert set(Matrix(models=[ALPHA, BETA], tasks=list(measures()), limit=1).sizes.values()) == {1}


# ---- runs against a server that counts


def test_requests_are_those_planned_and_the_same_command_asks_nothing_more(
    server: Any, questions: Path, tmp_path: Path
) -> None:
    asked = study(tmp_path, 4, questions)
    assert asked.ask()
    assert server.stats()["requests"] == calls([ALPHA, BETA], ["kth_word"], 4) == 2 * 4 * 5
    assert server.stats()["duplicates"] == 2 * 4  # the ceiling asks again on purpose
    assert asked.ask()
    assert server.stats()["requests"] == 2 * 4 * 5
    results = read_matrices([str(tmp_path)])
    assert len(results.cells) == 4 and matrix_of(results, "kth_word").holes == {}


def test_a_model_that_fails_leaves_holes_with_a_reason_and_a_resume_fills_them(
    server: Any, questions: Path, tmp_path: Path
) -> None:
    asked = study(tmp_path, 4, questions)
    server.configure({"beta": {"faults": {"500": 1.0}}})
    try:
        assert not asked.ask()
    finally:
        server.configure({"beta": {"faults": {}}})
    matrix = matrix_of(read_matrices([str(tmp_path)]), "kth_word")
    alpha, beta = matrix.models
    assert matrix.holes.keys() == {(beta, beta), (alpha, beta), (beta, alpha)}
    hole = matrix.holes[beta, beta]
    assert (
        "4 of 4 samples in error: openai-api/fake/beta gave no answer after all retries: Error code: 500"
        in hole
    ), hole
    assert np.isnan(matrix.scores[1]).all() and not np.isnan(matrix.scores[0, 0]).any()
    server.reset()
    assert asked.ask()
    assert server.stats()["requests"] == 4 * 5  # beta's own; alpha is asked nothing again
    assert matrix_of(read_matrices([str(tmp_path)]), "kth_word").holes == {}


@pytest.mark.slow(5)
def test_half_a_model_is_a_hole_and_not_a_smaller_sample(
    server: Any, questions: Path, tmp_path: Path
) -> None:
    asked = study(tmp_path, 12, questions)
    server.configure({"beta": {"faults": {"500": 0.1}, "sticky": ("500",)}})
    try:
        assert not asked.ask()
    finally:
        server.configure({"beta": {"faults": {}, "sticky": ()}})
    results = read_matrices([str(tmp_path)])
    hole = matrix_of(results, "kth_word").holes["openai-api/fake/beta", "openai-api/fake/beta"]
    failed = int(
        results.cells.set_index(["target", "observer"]).loc[("openai-api/fake/beta",) * 2, "errors"]
    )
    assert 0 < failed < 12 and f"{failed} of 12 samples in error" in hole
    (task,) = analyse(results, rng=np.random.default_rng(0)).tasks
    assert {claim.verdict for claim in task.claims} == {Verdict.CANNOT_TELL}


@pytest.mark.slow(5)
def test_more_items_later_ask_only_for_those(server: Any, questions: Path, tmp_path: Path) -> None:
    for limit, count in ((3, 2 * 3 * 5), (5, 2 * 2 * 5)):
        server.reset()
        assert study(tmp_path, limit, questions).ask()
        assert server.stats()["requests"] == count
    scores = matrix_of(read_matrices([str(tmp_path)]), "kth_word").scores
    assert scores.shape == (2, 2, 5) and not np.isnan(scores).any()


@pytest.mark.slow(15)
def test_a_killed_matrix_goes_on_and_asks_again_only_what_was_in_flight(
    server: Any, questions: Path, tmp_path: Path
) -> None:
    server.configure({"*": {"latency_ms": 300}})
    command = [COMMAND, "matrix", "--models", f"{ALPHA},{BETA}", "--tasks", "kth_word", "--yes"]
    command += [
        "-T",
        f"dataset={questions}",
        "--log-dir",
        str(tmp_path),
        "--display",
        "none",
        "--max-connections",
        "4",
    ]
    command += ["--out", str(tmp_path / "page")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while (
        server.stats()["requests"] < 60 and time.monotonic() < deadline and process.poll() is None
    ):
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = server.stats()["requests"]
    assert 60 <= before < 120
    server.configure({"*": {"latency_ms": 0}})
    done = CliRunner().invoke(main, command[1:])
    assert done.exit_code == 0, done.output
    # A sample under way is lost whole: up to 5 calls, of those that 4 connections a model had
    # begun.
    assert 120 <= server.stats()["requests"] <= 120 + before // 2
    results = read_matrices([str(tmp_path)])
    assert len(results.cells) == 4 and matrix_of(results, "kth_word").holes == {}
    assert len(results.decisions) == 4 * 12 * 3
