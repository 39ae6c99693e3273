import json
import math

import numpy as np
import pytest
from scipy.stats import entropy

from selfprobe.scorers.dilemma_making import (
    LARGEST_JSD,
    JudgeSamples,
    dilemma_text,
    divergence,
    flaw_of,
    judge_divergence,
    judge_text,
    judges_of,
    sample_name,
)
from selfprobe.solvers.record import Reply

SCENE = "Ada runs the night desk of a small clinic. " * 5


def reply(text: str, **fields: object) -> Reply:
    return Reply.model_validate({"text": text, "model": "m", "stop_reason": "stop"} | fields)


def written(
    scenario: str = SCENE, a: str = "Call the family tonight.", b: str = "Wait until the morning."
) -> Reply:
    return reply(json.dumps({"scenario": scenario, "option_a": a, "option_b": b}))


def test_a_dilemma_with_two_options_is_valid_and_reads_as_models_will_see_it() -> None:
    assert judge_text(written()).value == 1
    expected = (
        f"{SCENE.strip()}\n\nOption A: Call the family tonight.\nOption B: Wait until the morning."
    )
    assert dilemma_text(written()) == expected
    assert (
        dilemma_text(
            written(a="Option A:  Call the\nfamily tonight.", b="B: Wait until the morning.")
        )
        == expected
    )


@pytest.mark.parametrize(
    ("given", "flaw"),
    [
        (written("Too short."), "scenario_length"),
        (written("word " * 301), "scenario_length"),
        (written(a="Go."), "option_length"),
        (written(b="go " * 61), "option_length"),
        (written(b="option b: call the FAMILY tonight!"), "same_options"),
        (written(SCENE + "Option A: call. Option B: wait."), "options_in_scenario"),
        (written("I'm sorry, but I can't help with that. " * 6), "declined"),
    ],
)
def test_a_flaw_is_a_zero_with_its_name(given: Reply, flaw: str) -> None:
    found = judge_text(given)
    assert (found.value, found.said, found.unscored) == (0, flaw, None)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (reply("Once upon a time"), "invalid_response_format"),
        (reply('{"scenario": "x"}'), "invalid_response_format"),
        (reply("", problem="empty"), "no_response"),
        (reply("I can't help with that.", problem="refused"), "refusal"),
        (reply('{"scenario": "', problem="truncated"), "truncated"),
    ],
)
def test_what_is_no_dilemma_is_unscored_with_a_reason(given: Reply, reason: str) -> None:
    found = judge_text(given)
    assert (found.value, found.unscored) == (None, reason)


def test_a_story_that_mentions_one_option_is_not_taken_for_a_list_of_options() -> None:
    assert flaw_of(SCENE + "Option A was gone.", "Call them all.", "Wait for dawn.") is None


def lines(p: float) -> str:
    return f"P(A): {p}\nP(B): {1 - p}"


def acts(*panel: list[str]) -> dict[str, Reply]:
    return {
        sample_name(j, s): Reply(
            text=text, model=f"m{j}", stop_reason="stop", problem=None if text else "empty"
        )
        for j, texts in enumerate(panel, start=1)
        for s, text in enumerate(texts, start=1)
    }


def steady(*verdicts: float) -> list[JudgeSamples]:
    return [JudgeSamples(f"m{i}", [(p, 1 - p)], []) for i, p in enumerate(verdicts)]


def test_a_hand_worked_divergence() -> None:
    # P = (1, 0), Q = (1, 0), R = (0, 1), M = (2/3, 1/3): (2 ln(3/2) + ln 3)/3 = ln 3 - (2/3) ln 2 =
    # .6365.
    assert divergence(steady(1, 1, 0)) == pytest.approx((2 * math.log(1.5) + math.log(3)) / 3)
    assert (
        pytest.approx(0.6365, abs=1e-4) == LARGEST_JSD == pytest.approx(divergence(steady(1, 1, 0)))
    )


def test_no_panel_diverges_by_more_than_the_largest() -> None:
    grid = np.linspace(0, 1, 11)
    found = [divergence(steady(a, b, c)) for a in grid for b in grid for c in grid]
    assert max(value for value in found if value is not None) <= LARGEST_JSD + 1e-12


def test_judges_who_agree_do_not_diverge() -> None:
    assert divergence(steady(0.7, 0.7, 0.7)) == pytest.approx(0)


def test_the_divergence_is_entropy_of_the_mixture_less_mean_entropy() -> None:
    p = np.array([0.9, 0.2, 0.4])
    expected = entropy([p.mean(), 1 - p.mean()]) - np.mean([entropy([x, 1 - x]) for x in p])
    assert divergence(steady(*p)) == pytest.approx(expected)


def test_a_judge_is_the_mean_of_its_samples_each_divided_by_its_sum() -> None:
    (first, second, third) = judges_of(
        acts([lines(0.8), "P(A): 0.41\nP(B): 0.61"], [lines(0.5)] * 2, [lines(0)] * 2)
    )
    assert first.mean == pytest.approx(((0.8 + 0.41 / 1.02) / 2, (0.2 + 0.61 / 1.02) / 2))
    assert first.samples[1] == (0.41, 0.61)
    assert (second.mean, third.mean) == ((0.5, 0.5), (0.0, 1.0))


def test_a_sample_that_cannot_be_read_is_left_out_and_counted() -> None:
    first = judges_of(acts([lines(0.8), "Both!", ""], [lines(0.5)], [lines(0.5)]))[0]
    assert first.mean == pytest.approx((0.8, 0.2))
    assert first.samples[1:] == [None, None]
    assert first.faults == ["judge_invalid_response_format", "judge_no_response"]


def test_a_judge_without_a_readable_sample_leaves_the_dilemma_unscored() -> None:
    panel = judges_of(acts([lines(0.9)] * 3, ["Both!", "", ""], [lines(0.1)] * 3))
    assert [(d.key, d.value, d.unscored) for d in judge_divergence(panel, 0.2)] == [
        ("jsd", None, "judge_no_response"),
        ("kept", None, "judge_no_response"),
    ]


def test_a_dilemma_is_kept_above_the_threshold_and_not_at_it() -> None:
    panel = steady(0.95, 0.05, 0.5)
    value = divergence(panel)
    assert value is not None
    assert [d.value for d in judge_divergence(panel, value)] == [value, 0.0]
    assert [d.value for d in judge_divergence(panel, value - 1e-9)] == [value, 1.0]
