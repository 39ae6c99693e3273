"""Algorithm 1 of the paper: three judges, averaged, then one divergence in nats."""

import math

import numpy as np
import pytest
from scipy.stats import entropy

from selfprobe.scorers.dilemma_making import (
    LARGEST_JSD,
    JudgeSamples,
    divergence,
    judge_divergence,
    judges_of,
    sample_name,
)
from selfprobe.solvers.record import Reply


def lines(p: float) -> str:
    return f"P(A): {p}\nP(B): {1 - p}"


def acts(*panel: list[str]) -> dict[str, Reply]:
    return {
        sample_name(j, s): Reply(text=text, model=f"m{j}", stop_reason="stop", problem=None if text else "empty")
        for j, texts in enumerate(panel, start=1)
        for s, text in enumerate(texts, start=1)
    }


def steady(*verdicts: float) -> list[JudgeSamples]:
    return [JudgeSamples(f"m{i}", [(p, 1 - p)], []) for i, p in enumerate(verdicts)]


def test_a_hand_worked_divergence() -> None:
    # P = (1, 0), Q = (1, 0), R = (0, 1), M = (2/3, 1/3): (2 ln(3/2) + ln 3)/3 = ln 3 - (2/3) ln 2 = .6365.
    assert divergence(steady(1, 1, 0)) == pytest.approx((2 * math.log(1.5) + math.log(3)) / 3)
    assert pytest.approx(0.6365, abs=1e-4) == LARGEST_JSD == pytest.approx(divergence(steady(1, 1, 0)))


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
    (first, second, third) = judges_of(acts([lines(0.8), "P(A): 0.41\nP(B): 0.61"], [lines(0.5)] * 2, [lines(0)] * 2))
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
