"""Effects of arms on planted subjects whose reaction is known, drawn many times."""

import math

import numpy as np
import pytest

from selfprobe.stats.estimate import FloatArray
from selfprobe.stats.paired import STRONG, Contrast, change, contrasts, dose, edge, least_of, visible

ITEMS, DRAWS = 100, 200
PAIRS = (("cue_out", "paraphrase"), ("told_test", "placebo"))
FORMS = (("paraphrase", "as_is"), ("placebo", "as_is"))
ARMS = ("as_is", "paraphrase", "cue_out", "placebo", "told_test")
NOTICES = {"as_is": 0.7, "paraphrase": 0.7, "cue_out": 0.25, "placebo": 0.7, "told_test": 0.95}
"""Share of items that the subject takes for a test, by arm."""


def subject(
    rng: np.random.Generator, *, fails: float = 0.0, reworded: float = 0.0, told: float = 0.0
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Scores and stated P(evaluation) of a subject that solves 80 % of items, anew in each arm for one in ten.

    Args:
        fails: Chance that it fails an item which it takes for a test.
        reworded: Chance that it fails an item in other words than its own.
        told: Chance that it fails an item under a line that says that it is a test.
    """
    able, leaning = rng.random(ITEMS) < 0.8, rng.random(ITEMS)
    scores, stated = {}, {}
    for arm in ARMS:
        believes = np.where(rng.random(ITEMS) < 0.9, leaning, rng.random(ITEMS)) < NOTICES[arm]
        stated[arm] = np.clip(0.1 + 0.8 * believes + rng.normal(0, 0.05, ITEMS), 0, 1)
        solved = np.where(rng.random(ITEMS) < 0.9, able, rng.random(ITEMS) < 0.8)
        lost = (rng.random(ITEMS) < fails) & believes
        lost |= (rng.random(ITEMS) < reworded) & (arm in ("paraphrase", "cue_out"))
        lost |= (rng.random(ITEMS) < told) & (arm == "told_test")
        scores[arm] = (solved & ~lost).astype(float)
    return scores, stated


def drawn(**reacts: float) -> list[tuple[list[Contrast], list[Contrast]]]:
    rng = np.random.default_rng(1)
    out = []
    for _ in range(DRAWS):
        scores, stated = subject(rng, **reacts)
        out.append((contrasts(scores, stated, PAIRS), contrasts(scores, stated, FORMS)))
    return out


def share(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


def test_a_subject_that_fails_what_it_takes_for_a_test_has_its_effect_and_dose_within_the_intervals() -> None:
    effect, per_p = 0.8 * (NOTICES["paraphrase"] - NOTICES["cue_out"]), -0.8 / 0.8
    found = [main[0] for main, _ in drawn(fails=1.0)]
    assert share([one.score.estimate.low <= effect <= one.score.estimate.high for one in found]) >= 0.93
    doses = [one.dose.estimate for one in found]
    assert share([one.low <= per_p <= one.high for one in doses]) >= 0.93
    assert all(one.dose.strong and one.moved for one in found)
    assert share([one.shown for one in found]) > 0.98


def test_a_subject_that_notices_and_changes_nothing_is_claimed_to_change_in_at_most_five_percent() -> None:
    found = drawn()
    assert all(main[0].dose.strong for main, _ in found), "it does notice"
    assert share([any(one.shown for one in main) for main, _ in found]) <= 0.05
    assert share([any(one.shown for one in forms) for _, forms in found]) <= 0.05


def test_a_subject_that_reacts_to_any_rewording_shows_in_the_paraphrase_and_not_in_the_cues() -> None:
    found = drawn(reworded=0.4)
    assert share([main[0].shown for main, _ in found]) <= 0.05
    assert share([forms[0].shown for _, forms in found]) > 0.98
    assert share([forms[1].shown for _, forms in found]) <= 0.05


def test_a_subject_that_moves_with_the_system_line_alone_shows_in_the_told_arm_and_not_in_the_cues() -> None:
    found = drawn(told=0.4)
    assert share([main[1].shown for main, _ in found]) > 0.98
    assert share([main[0].shown for main, _ in found]) <= 0.05


def test_a_weak_instrument_has_no_dose_and_says_its_f() -> None:
    rng = np.random.default_rng(2)
    found = dose(rng.normal(0, 1, 50), rng.normal(0.05, 1, 50))
    assert not found.strong and math.isnan(found.estimate.value)
    assert found.estimate.reason == f"weak instrument: F = {found.f:.1f}, below {STRONG:.0f}"


def test_the_dose_of_hand_is_the_ratio_with_the_interval_of_fieller() -> None:
    """Changes of the cause are all alike, but for rounding: then it is the score's own, divided by that change."""
    score = np.array([0.0, -1.0] * 10)
    found = dose(score, np.full(20, -0.5))
    half = 2.093 * np.std(score, ddof=1) / math.sqrt(20) / 0.5
    ends = (found.estimate.value, found.estimate.low, found.estimate.high)
    assert ends == pytest.approx((1.0, 1 - half, 1 + half), abs=2e-3)
    assert found.f == pytest.approx(0.5**2 / (0.02**2 / 20))


def test_too_few_items_have_no_dose() -> None:
    found = dose([1.0, 0.0, math.nan], [0.5, 0.4, 0.3])
    assert math.isnan(found.f) and found.estimate.reason == "2 items have both changes, 10 are needed"


def test_unscored_items_are_left_out_of_their_pair_alone() -> None:
    scores = {"a": [1.0, math.nan, 0.0, 1.0], "b": [0.0, 1.0, math.nan, 1.0], "c": [1.0, 1.0, 1.0, 1.0]}
    stated = dict.fromkeys("abc", [0.5] * 4)
    first, second = contrasts(scores, stated, (("a", "b"), ("a", "c")))
    assert (first.score.estimate.n, second.score.estimate.n) == (2, 3)
    assert first.score.estimate.value == pytest.approx(0.5)


def test_scores_beyond_one_have_a_scale_of_their_own() -> None:
    scores = {"a": [8.0, 9.0, 7.0] * 10, "b": [5.0, 6.0, 5.0] * 10}
    (found,) = contrasts(scores, dict.fromkeys("ab", [0.5] * 30), (("a", "b"),))
    assert found.score.estimate.value == pytest.approx(8 / 3) and found.shown


def test_the_power_that_is_said_before_is_the_power_of_such_items() -> None:
    """An effect of the size that 100 items are said to show is shown in about 80 % of draws."""
    effect, rng, shown = visible(ITEMS, 1), np.random.default_rng(3), []
    for _ in range(400):
        before = rng.random(ITEMS) < 0.6
        chance = rng.random(ITEMS) < 0.05
        after = np.where(chance, ~before, before) & ~((rng.random(ITEMS) < effect / 0.6) & before)
        found = change(before.astype(float), after.astype(float), np.arange(ITEMS))
        shown.append(found.p < 0.05)
    assert share(shown) == pytest.approx(0.8, abs=0.1)


def test_after_the_run_the_least_effect_is_that_of_its_own_spread() -> None:
    rng = np.random.default_rng(4)
    before, after = (rng.random(ITEMS) < 0.5).astype(float), (rng.random(ITEMS) < 0.5).astype(float)
    found = change(before, after, np.arange(ITEMS))
    assert least_of(found, 1) == pytest.approx(2.83 * found.estimate.se, rel=0.02)
    assert least_of(found, 5) > least_of(found, 1)
    assert math.isnan(least_of(change([1.0], [1.0], [0]), 1))


def test_floor_and_ceiling_are_of_scores_in_the_unit_interval() -> None:
    assert (edge([1.0] * 19 + [0.0]), edge([0.0, 0.0]), edge([1.0, 0.0])) == ("ceiling", "floor", "")
    assert edge([9.0, 9.0]) == "" and edge([math.nan]) == ""


def test_a_score_that_no_item_changes_has_no_dose_of_no_width() -> None:
    found = dose(np.zeros(20), np.linspace(0.3, 0.5, 20))
    assert math.isnan(found.estimate.value) and found.estimate.reason.startswith("all items change alike")
