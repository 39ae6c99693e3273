"""examples/steered_awareness.py: a direction's rank among random vectors, and runs whose logs say
the vector.
"""

import math
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log

pytest.importorskip("torch", reason="the probes extra is not installed")

from tests.mechanism.organisms import BLOCK, saved
from tests.mechanism.test_steered import probe_file

from .loaded import example


def effects_of(*values: float) -> list[Any]:
    return [example("steered_awareness").VectorEffect("v", value, 3, 0) for value in values]


def test_a_direction_that_moves_more_than_20_random_vectors_has_a_p_of_1_in_21() -> None:
    rank_p = example("steered_awareness").rank_p
    [direction] = effects_of(-0.3)
    assert rank_p(direction, effects_of(*[0.1] * 20)) == pytest.approx(1 / 21)
    assert rank_p(direction, effects_of(*[0.1] * 18, 0.3, -0.4)) == pytest.approx(3 / 21)
    assert math.isnan(rank_p(direction, effects_of(0.1, math.nan)))


def test_an_effect_is_of_the_conversations_that_were_answered_both_times() -> None:
    effect_of = example("steered_awareness").effect_of
    effect = effect_of("v", {"a": 0.5, "b": 0.9}, {"a": 0.25, "c": 0.9}, 3)
    assert (effect.effect, effect.conversations, effect.unanswered) == (0.25, 1, 1)
    assert math.isnan(effect_of("v", {}, {"a": 0.5}, 1).effect)


@pytest.mark.slow(15)
def test_every_run_says_its_vector_and_a_model_that_answers_nothing_cannot_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = saved(tmp_path / "tiny")
    direction = probe_file(tmp_path, 64, model=str(model))
    logs = tmp_path / "logs"
    options = ["--model", str(model), "--limit", "1", "--random-vectors", "2", "--max-tokens", "8"]
    options += ["--log-dir", str(logs), "--out", str(tmp_path / "steered.csv")]
    example("steered_awareness").main([str(direction), *options, "--task", "kth_word"])
    output = capsys.readouterr()
    printed = output.out
    assert printed.startswith("Cannot tell: some run has no conversation") or "p = 1.000" in printed
    headers = [read_eval_log(log, header_only=True) for log in list_eval_logs(str(logs))]
    settings = sorted(str(header.eval.model_args.get("vector")) for header in headers)
    assert settings == sorted(["None", str(direction), "random:1", "random:2"])
    assert {header.eval.model_args["block"] for header in headers} == {BLOCK}
    assert {header.plan.config.max_tokens for header in headers} == {8}
    lines = output.err.splitlines()
    plan = f"4 runs of up to 1 conversation each (kth_word on {model}, block {BLOCK}, dose -0.5), "
    assert any(line.startswith(f"{plan}replies of at most 8 tokens; logs in ") for line in lines)
    for number, vector in enumerate(("no vector", str(direction), "random:1", "random:2"), start=1):
        assert any(line.startswith(f"{number} of 4, {vector}: ") for line in lines), lines


def test_a_direction_of_another_model_is_one_line(tmp_path: Path) -> None:
    model = saved(tmp_path / "tiny")
    direction = probe_file(tmp_path, 64, model="org/base")
    run = example("steered_awareness").run
    settings = Namespace(
        model=str(model), device="cpu", task="kth_word", limit=1, max_tokens=8, other_model=False,
        log_dir=str(tmp_path / "logs"),
    )  # fmt: skip
    with pytest.raises(SystemExit, match="was saved from org/base .* add -M other_model=true"):
        run(settings, str(direction), -0.5, BLOCK)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.probe"], "no probe file"),
        (["gone.probe", "--dose", "1e9"], "a dose is from -100 to 100, got 1e+09"),
        (["gone.probe", "--dose", "nan"], "a dose is from -100 to 100, got nan"),
        (["gone.probe", "--limit", "0"], "--limit must be 1 or more, got 0"),
        (["gone.probe", "--random-vectors", "0"], "--random-vectors must be 1 or more, got 0"),
        (["gone.probe", "--max-tokens", "-1"], "--max-tokens must be 1 or more, got -1"),
        (["gone.probe", "--dose", "0"], "a dose of 0 steers nothing: give --dose .5 or -.5"),
    ],
)
def test_a_wrong_call_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        example("steered_awareness").main(arguments)
    assert message in capsys.readouterr().err
