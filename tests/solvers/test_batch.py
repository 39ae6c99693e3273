"""Calls in batches: each is submitted once, however long the batch takes."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, get_model

from selfprobe.cli import main
from selfprobe.errors import Interrupted
from selfprobe.solvers import ask
from selfprobe.study import waves
from selfprobe.study.waves import RunSettings

CHAT = {"responses_api": False}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """One second for an attempt, a third of what a batch takes."""
    monkeypatch.setattr(
        ask, "DEFAULT_RETRIES", GenerateConfig(max_retries=5, timeout=2, attempt_timeout=1)
    )


def test_a_batch_that_takes_longer_than_an_attempt_is_submitted_once_and_scored(
    impatient: None, batches: Any, run_task: Any, tmp_path: Path
) -> None:
    log = run_task(
        "selfprobe/kth_word", "openai/alpha", tmp_path, limit=4, batch=True, model_args=CHAT
    )
    assert log.status == "success" and log.results.scores[0].metrics["n"].value == 12
    calls = 4 * 5  # the act, its repeat and three predictions
    assert (batches.requests, batches.direct, len(batches.batches)) == (calls, 0, 1)


def test_a_role_model_is_asked_in_batches_too(
    impatient: None, batches: Any, run_task: Any, tmp_path: Path
) -> None:
    roles = {"target": get_model("openai/beta", responses_api=False)}
    log = run_task(
        "selfprobe/heads_up",
        "openai/alpha",
        tmp_path,
        limit=2,
        batch=True,
        model_args=CHAT,
        model_roles=roles,
    )
    assert log.status == "success" and (batches.requests, batches.direct) == (4, 0)


def test_a_role_model_whose_own_settings_say_no_batch_is_asked_call_by_call(
    batches: Any, run_task: Any, tmp_path: Path
) -> None:
    roles = {
        "target": get_model("openai/beta", responses_api=False, config=GenerateConfig(batch=False))
    }
    log = run_task(
        "selfprobe/heads_up",
        "openai/alpha",
        tmp_path,
        limit=2,
        batch=True,
        model_args=CHAT,
        model_roles=roles,
    )
    assert log.status == "success" and (batches.requests, batches.direct) == (2, 2)


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    ("command", "calls"),
    [
        (
            ("matrix", "--models", "openai/alpha,openai/beta", "--tasks", "heads_up"),
            2 * 2 * 2 + 2 * 2,
        ),
        (("awareness", "run", "--models", "openai/alpha", "--methods", "binary"), 2 * 6),
    ],
)
def test_matrix_and_awareness_run_pass_batches_on_and_say_rounds_requests_and_price(
    impatient: None,
    batches: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    calls: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    prices = tmp_path / "prices.yaml"
    prices.write_text(
        "".join(
            f"openai/{name}: {{input: 1000, output: 1000, input_cache_write: 0, input_cache_read: 0}}\n"
            for name in ("alpha", "beta")
        )
    )
    options = [
        "--limit",
        "2",
        "--yes",
        "-M",
        "responses_api=false",
        "--log-dir",
        str(tmp_path / "logs"),
    ]
    plain = CliRunner().invoke(main, [*command, *options, "--dry-run", "--prices", str(prices)])
    done = CliRunner().invoke(main, [*command, *options, "--batch", "--prices", str(prices)])
    assert done.exit_code == 0, done.output
    assert (batches.requests, batches.direct) == (calls, 0)
    assert f"In batches: {calls} requests at half the price (the cost above)" in done.output
    assert "rounds of batches, one after the other; each takes minutes to a day." in done.output
    full, half = (float(said.output.partition("$")[2].split()[0]) for said in (plain, done))
    assert half == pytest.approx(full / 2, abs=0.02)
    assert "No batches for" not in done.stderr


def test_a_wave_starts_without_the_last_waves_sender_of_batches(
    batches: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It died with that wave's event loop, and a model that has one makes no other: the second wave
    hung for ever.
    """
    model, grader = (
        get_model(f"openai/{name}", responses_api=False) for name in ("waves", "grader")
    )
    api: Any
    for api in (model.api, grader.api):
        api._completions_batcher = object()
    monkeypatch.setattr(waves, "eval_set", lambda tasks, **settings: (True, []))
    made = Task(dataset=[Sample(input="?")], model=model, model_roles={"grader": grader})
    with pytest.raises(Interrupted):
        waves.run_wave([made], str(tmp_path), title="", settings=RunSettings(batch=True))
    for api in (model.api, grader.api):
        assert api._completions_batcher is None


def test_a_provider_without_batches_is_named(tmp_path: Path) -> None:
    options = [
        "--tasks",
        "heads_up",
        "--limit",
        "2",
        "--yes",
        "--batch",
        "--log-dir",
        str(tmp_path),
        "--out",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(main, ["matrix", "--models", "planted/a,planted/b", *options])
    assert done.exit_code == 0
    assert (
        "No batches for planted/a, planted/b: asked call by call, at the full price" in done.stderr
    )
