"""Prompts aimed at a probability: planted aims come out; without logprobs there is no score."""

import math
from pathlib import Path
from typing import Any

import gateways
import pytest
from inspect_ai.model import get_model

from selfprobe.introspect_tasks.probability_targeting import probability_targeting
from selfprobe.scorers.written_prompts import judge_level, likeliest
from selfprobe.solvers.record import Reply, TokenLogprob


def reply(text: str, *probabilities: float) -> Reply:
    first = [TokenLogprob(token=f"t{i}", logprob=math.log(p)) for i, p in enumerate(probabilities)]
    return Reply(text=text, model="m", stop_reason="stop", first_token=first or None)


def metrics(log: Any) -> dict[str, float]:
    assert log.status == "success", log.error
    return {name: float(one.value) for name, one in log.results.scores[0].metrics.items()}


def test_the_score_is_the_nearness_of_the_likeliest_token_beside_the_bare_topics() -> None:
    acts = {"bare": reply("x", 0.4), "p0.9": reply("x", 0.1, 0.7), "p0.9 again": reply("x", 0.65)}
    found = judge_level(0.9, acts, reply('{"prompt": "Name one."}'))
    assert (found.value, found.floor, found.ceiling) == (
        pytest.approx(0.8),
        pytest.approx(0.5),
        pytest.approx(0.95),
    )
    assert found.said == "0.7000"


def test_no_prompt_and_no_logprobs_are_unscored_never_zero() -> None:
    bare = {"bare": reply("x", 0.4)}
    assert judge_level(0.9, bare, reply("Well.")).unscored == "invalid_response_format"
    assert (
        judge_level(0.9, bare | {"p0.9": reply("x")}, reply('{"prompt": "Go."}')).unscored
        == "target_no_logprobs"
    )
    assert likeliest(None) is None


def test_the_planted_aim_is_recovered_on_itself_and_another_reaches_the_floor(
    run_task: Any, tmp_path: Path
) -> None:
    own = metrics(
        run_task("selfprobe/probability_targeting", "planted/a?aims=.8", tmp_path / "a", limit=8)
    )
    assert own["p0.5_closeness"] == pytest.approx(0.95, abs=1e-3)
    assert own["p1_closeness"] == pytest.approx(0.9, abs=1e-3)
    assert (
        own["baseline_floor"] == pytest.approx((1 + 0.6 + 0.5) / 3, abs=1e-3)
        and own["ceiling"] == 1
    )
    more = {
        "model_roles": {"target": "planted/a"},
        "task_args": {"target_log": str(tmp_path / "a")},
    }
    with pytest.raises(ValueError, match="this run needs those of planted/a"):
        run_task("selfprobe/probability_targeting", "planted/b", tmp_path / "x", limit=8, **more)
    more["model_roles"] = {"target": "planted/a?aims=.8"}
    other = metrics(
        run_task("selfprobe/probability_targeting", "planted/b", tmp_path / "b", limit=8, **more)
    )
    assert other["skill"] == pytest.approx(0, abs=1e-6)


MODEL = "openai-api/gate/m"


@pytest.mark.parametrize("form", gateways.PLACEHOLDERS)
def test_placeholders_in_the_place_of_logprobs_are_unscored_with_the_reason(
    form: str, asked_gateway: Any, run_task: Any, tmp_path: Path
) -> None:
    asked_gateway.fault = f"logprobs_{form}"
    log = run_task(
        "selfprobe/probability_targeting", get_model(MODEL, memoize=False), tmp_path, limit=2
    )
    assert metrics(log)["unscored_target_no_logprobs"] == 1 and metrics(log)["n"] == 0
    log = run_task(
        "selfprobe/awareness_first_token", get_model(MODEL, memoize=False), tmp_path, limit=2
    )
    assert metrics(log)["unscored_no_logprobs"] == 1
    explanations = [score.explanation for sample in log.samples for score in sample.scores.values()]
    said = f"{MODEL} gave no logprobs for the first token of its reply, or placeholders"
    assert all(said in explanation for explanation in explanations)


@pytest.mark.parametrize(("form", "likeliest_share"), [("sure", 1.0), ("usual", math.exp(-0.4))])
def test_logprobs_of_a_model_are_read_a_sure_first_token_too(
    form: str, likeliest_share: float, asked_gateway: Any, run_task: Any, tmp_path: Path
) -> None:
    asked_gateway.fault = f"logprobs_{form}"
    log = run_task(
        "selfprobe/probability_targeting", get_model(MODEL, memoize=False), tmp_path, limit=2
    )
    assert metrics(log)["unscored"] == 0
    assert metrics(log)["p1_closeness"] == pytest.approx(likeliest_share)


@pytest.mark.parametrize("levels", ["0,.5", "high", "", [1.2]])
def test_levels_that_are_no_probabilities_are_told(levels: Any) -> None:
    with pytest.raises(ValueError, match="levels must be probabilities above 0 and at most 1"):
        probability_targeting(levels=levels)
