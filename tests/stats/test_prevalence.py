"""Rates put right for a judge's errors."""

import math

import numpy as np
import pytest

from selfprobe.stats.agreement import (
    Prevalence,
    Share,
    drifted,
    labelled_elsewhere,
    labelled_within,
)


def test_rogan_and_gladens_example_by_hand() -> None:
    """(.2 + .9 − 1) / (.8 + .9 − 1) = .1 / .7."""
    found = labelled_elsewhere(Share(200, 1000), Share(80, 100), Share(90, 100))
    assert found.corrected.value == pytest.approx(1 / 7)
    assert found.corrected.low < 1 / 7 < found.corrected.high


def test_lang_and_reiczigels_interval_by_hand() -> None:
    """106 of 1000 flagged, 65 of 80 found, 117 of 120 left; all three shares and their numbers are
    adjusted first.
    """
    n, z2 = 1003.841459, 3.841459
    p, se, sp = (106 + z2 / 2) / n, 66 / 82, 118 / 122
    rate = (p + sp - 1) / (se + sp - 1)
    error = {
        "p": p * (1 - p) / n,
        "se": rate**2 * se * (1 - se) / 82,
        "sp": (1 - rate) ** 2 * sp * (1 - sp) / 122,
    }
    half = (z2 * sum(error.values())) ** 0.5 / (se + sp - 1)
    centre = rate + 2 * z2 * (rate * se * (1 - se) / 82 - (1 - rate) * sp * (1 - sp) / 122)
    found = labelled_elsewhere(Share(106, 1000), Share(65, 80), Share(117, 120)).corrected
    assert (found.low, found.high) == pytest.approx((centre - half, centre + half), abs=1e-6)
    assert (found.low, found.high) == pytest.approx((0.0506, 0.1422), abs=1e-4)


def test_labels_drawn_by_verdict_give_rogan_and_gladens_rate_with_the_shares_that_follow() -> None:
    """30 of 100 flagged, 2 of 3 of them true, 1 of 10 of the others: .3·2/3 + .7·.1 = .27."""
    found = labelled_within(Share(30, 100), Share(10, 15), Share(2, 20))
    assert found.corrected.value == pytest.approx(0.27)
    assert found.sensitivity == pytest.approx(0.2 / 0.27) and found.specificity == pytest.approx(
        0.63 / 0.73
    )
    again = (0.3 + found.specificity - 1) / (found.sensitivity + found.specificity - 1)
    assert again == pytest.approx(0.27)


def test_a_rate_below_the_false_alarms_is_cut_to_0_and_said() -> None:
    found = labelled_elsewhere(Share(10, 100), Share(15, 20), Share(17, 20))
    assert found.corrected.value == found.corrected.low == 0 and found.corrected.high > 0.05
    assert found.clipped == "the correction gives -0.083, which is no share: cut to 0"


def test_a_judge_no_better_than_chance_corrects_nothing() -> None:
    found = labelled_elsewhere(Share(10, 100), Share(10, 20), Share(10, 20))
    assert math.isnan(found.corrected.value) and "no better than chance" in found.corrected.reason


def test_a_rate_under_drift_is_the_correction_with_one_share_changed() -> None:
    """.2 flagged, .8 and .9: (.2 + .9 − 1) / (.7 + .9 − 1) is 1/6 and so on; a specificity of .8
    leaves nothing.
    """
    by_hand = [0.1 / 0.6, 0.1 / 0.8, 0.0, 0.2 / 0.8]
    assert drifted(Share(200, 1000), 0.8, 0.9) == pytest.approx((min(by_hand), max(by_hand)))
    assert drifted(Share(10, 1000), 0.55, 0.5)[1] == 1, (
        "a judge that may be no better than chance bounds nothing"
    )
    assert drifted(Share(200, 1000), 0.95, 0.95)[1] == pytest.approx(0.2 / 0.95, abs=1e-6), (
        "a specificity above 1 is none"
    )


def test_what_is_not_labelled_is_said() -> None:
    assert (
        labelled_within(Share(5, 100), Share(0, 0), Share(0, 9)).corrected.reason
        == "none of the 5 flagged is labelled"
    )
    assert (
        labelled_elsewhere(Share(5, 100), Share(0, 0), Share(9, 9)).corrected.reason
        == "nothing is labelled yes"
    )
    nothing = labelled_within(Share(0, 100), Share(0, 0), Share(0, 50))
    assert nothing.corrected.value == 0 and 0 < nothing.corrected.high < 0.06


CASES = ((0.03, 0.9, 0.97, 1000), (0.2, 0.7, 0.9, 400), (0.5, 0.8, 0.8, 300))


def covered(
    rng: np.random.Generator, p: float, draw: str, sensitivity: float, specificity: float, n: int
) -> bool:
    if draw == "elsewhere":
        flagged = int(rng.binomial(n, p * sensitivity + (1 - p) * (1 - specificity)))
        checks = (
            Share(int(rng.binomial(50, sensitivity)), 50),
            Share(int(rng.binomial(100, specificity)), 100),
        )
        return holds(labelled_elsewhere(Share(flagged, n), *checks), p)
    true = rng.random(n) < p
    said = np.where(true, rng.random(n) < sensitivity, rng.random(n) < 1 - specificity)
    ours, others = np.flatnonzero(said)[:50], np.flatnonzero(~said)[:100]
    shares = Share(int(true[ours].sum()), len(ours)), Share(int(true[others].sum()), len(others))
    return holds(labelled_within(Share(int(said.sum()), n), *shares), p)


def holds(found: Prevalence, p: float) -> bool:
    return found.corrected.low <= p <= found.corrected.high


@pytest.mark.slow(2)
@pytest.mark.parametrize("draw", ["elsewhere", "within"])
@pytest.mark.parametrize("case", CASES)
def test_intervals_hold_the_planted_rate_in_93_to_98_of_100_draws(
    case: tuple[float, float, float, int], draw: str
) -> None:
    rng = np.random.default_rng(0)
    p, sensitivity, specificity, n = case
    held = sum(covered(rng, p, draw, sensitivity, specificity, n) for _ in range(500))
    assert 0.93 <= held / 500 <= 0.985


def test_labels_so_few_that_they_may_be_chance_give_no_interval() -> None:
    """Of 5 labels all yes and a quarter of no agree: counts with one more of each are a coin's."""
    corrected = labelled_elsewhere(Share(50, 100), Share(1, 1), Share(1, 4)).corrected
    assert corrected.reason == "5 labels do not show that the judge is better than chance"
    assert math.isnan(corrected.low) and 0 <= corrected.value <= 1
