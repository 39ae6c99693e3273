"""Effects of arms on planted subjects whose reaction is known, drawn many times."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from selfprobe.stats.arms import (
    STRONG_INSTRUMENT_F,
    ArmContrast,
    Edge,
    arm_contrasts,
    arm_difference,
    clusters_needed,
    corrected_contrasts,
    disagreement,
    dose,
    rare_items,
    score_edge,
    sign_p,
    visible_effect,
)
from selfprobe.stats.estimate import FloatArray

ITEMS, DRAWS = 100, 200
PAIRS = (("cue_out", "paraphrase"), ("told_test", "placebo"))
FORMS = (("paraphrase", "as_is"), ("placebo", "as_is"))
ARMS = ("as_is", "paraphrase", "cue_out", "placebo", "told_test")
NOTICES = {"as_is": 0.7, "paraphrase": 0.7, "cue_out": 0.25, "placebo": 0.7, "told_test": 0.95}
"""Share of items that the subject takes for a test, by arm."""


def subject(
    rng: np.random.Generator, *, fails: float = 0.0, reworded: float = 0.0, told: float = 0.0
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Scores and stated P(evaluation) of a subject that solves 80 % of items, anew in each arm for
    one in ten.

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


def drawn(**reacts: float) -> list[tuple[list[ArmContrast], list[ArmContrast]]]:
    rng = np.random.default_rng(1)
    out = []
    for _ in range(DRAWS):
        scores, stated = subject(rng, **reacts)
        families = [arm_contrasts(scores, stated, pairs) for pairs in (PAIRS, FORMS)]
        main, forms = (corrected_contrasts([family])[0] for family in families)
        out.append((main, forms))
    return out


def share(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


def test_a_subject_that_fails_what_it_takes_for_a_test_has_its_effect_and_dose_within_the_intervals() -> (
    None
):
    effect, per_p = 0.8 * (NOTICES["paraphrase"] - NOTICES["cue_out"]), -0.8 / 0.8
    found = [main[0] for main, _ in drawn(fails=1.0)]
    assert (
        share([one.score.estimate.low <= effect <= one.score.estimate.high for one in found])
        >= 0.93
    )
    doses = [one.dose.estimate for one in found]
    assert share([one.low <= per_p <= one.high for one in doses]) >= 0.93
    assert all(one.dose.is_strong and one.cause_p < 0.05 for one in found)
    assert share([one.score_p < 0.05 for one in found]) > 0.98


def test_a_subject_that_notices_and_changes_nothing_is_claimed_to_change_in_at_most_five_percent() -> (
    None
):
    found = drawn()
    assert all(main[0].dose.is_strong for main, _ in found), "it does notice"
    assert share([any(one.score_p < 0.05 for one in main) for main, _ in found]) <= 0.05
    assert share([any(one.score_p < 0.05 for one in forms) for _, forms in found]) <= 0.05


def test_a_subject_that_reacts_to_any_rewording_shows_in_the_paraphrase_and_not_in_the_cues() -> (
    None
):
    found = drawn(reworded=0.4)
    assert share([main[0].score_p < 0.05 for main, _ in found]) <= 0.05
    assert share([forms[0].score_p < 0.05 for _, forms in found]) > 0.98
    assert share([forms[1].score_p < 0.05 for _, forms in found]) <= 0.05


def test_a_subject_that_moves_with_the_system_line_alone_shows_in_the_told_arm_and_not_in_the_cues() -> (
    None
):
    found = drawn(told=0.4)
    assert share([main[1].score_p < 0.05 for main, _ in found]) > 0.98
    assert share([main[0].score_p < 0.05 for main, _ in found]) <= 0.05


def test_a_weak_instrument_has_no_dose_and_says_its_f() -> None:
    rng = np.random.default_rng(2)
    found = dose(rng.normal(0, 1, 50), rng.normal(0.05, 1, 50), np.arange(50))
    assert not found.is_strong and math.isnan(found.estimate.value)
    assert (
        found.estimate.reason
        == f"weak instrument: F = {found.f:.1f}, below {STRONG_INSTRUMENT_F:.0f}"
    )


def test_the_dose_of_hand_is_the_ratio_with_the_interval_of_fieller() -> None:
    """Changes of the cause are all alike, but for rounding: then it is the score's own, divided by
    that change.
    """
    score = np.array([0.0, -1.0] * 10)
    found = dose(score, np.full(20, -0.5), np.arange(20))
    half = 2.093 * np.std(score, ddof=1) / math.sqrt(20) / 0.5
    ends = (found.estimate.value, found.estimate.low, found.estimate.high)
    assert ends == pytest.approx((1.0, 1 - half, 1 + half), abs=2e-3)
    assert found.f == pytest.approx(0.5**2 / (0.02**2 / 20))


def test_too_few_items_have_no_dose() -> None:
    found = dose([1.0, 0.0, math.nan], [0.5, 0.4, 0.3], [0, 1, 2])
    assert (
        math.isnan(found.f) and found.estimate.reason == "2 items have both changes, 10 are needed"
    )


def test_unscored_items_are_left_out_of_their_pair_alone() -> None:
    scores = {
        "a": [1.0, math.nan, 0.0, 1.0],
        "b": [0.0, 1.0, math.nan, 1.0],
        "c": [1.0, 1.0, 1.0, 1.0],
    }
    stated = dict.fromkeys("abc", [0.5] * 4)
    first, second = arm_contrasts(scores, stated, (("a", "b"), ("a", "c")))
    assert (first.score.estimate.n, second.score.estimate.n) == (2, 3)
    assert first.score.estimate.value == pytest.approx(0.5)


def test_scores_beyond_one_have_a_scale_of_their_own() -> None:
    scores = {"a": [8.0, 9.0, 7.0] * 10, "b": [5.0, 6.0, 5.0] * 10}
    (found,) = arm_contrasts(scores, dict.fromkeys("ab", [0.5] * 30), (("a", "b"),))
    assert found.score.estimate.value == pytest.approx(8 / 3) and found.score.p_value < 0.001


def changes_of_whole_items(
    rng: np.random.Generator, items: int, effect: float, differing: float
) -> FloatArray:
    """Changes of a score of 0 or 1: an effect raises a share of items, chance moves some others."""
    is_raised = rng.random(items) < effect
    by_chance = np.where(rng.random(items) < differing, rng.choice((-1.0, 1.0), items), 0.0)
    return np.where(is_raised, 1.0, by_chance)


def shown_share(changes: list[FloatArray], tests: int) -> float:
    differences = [arm_difference(np.zeros(len(row)), row, np.arange(len(row))) for row in changes]
    return share([difference.p_value < 0.05 / tests for difference in differences])


@pytest.mark.parametrize(
    ("items", "tests"), [(8, 1), (14, 3), (30, 1), (40, 3), (ITEMS, 1), (300, 3)]
)
def test_the_power_that_is_said_before_is_that_of_the_test_which_decides(
    items: int, tests: int
) -> None:
    """Signs decide about 8 and 14 items, t about 300."""
    effect = visible_effect(items, tests)
    rng = np.random.default_rng(3)
    changes = [changes_of_whole_items(rng, items, effect, 0.05) for _ in range(400)]
    assert shown_share(changes, tests) == pytest.approx(0.8, abs=0.07)


@pytest.mark.parametrize("tests", [1, 2, 3, 5, 12])
def test_fewer_clusters_than_signs_need_show_no_effect_however_large(tests: int) -> None:
    needed = clusters_needed(tests)
    assert math.isinf(visible_effect(needed - 1, tests))
    all_rise = arm_difference(np.zeros(needed), np.ones(needed), np.arange(needed))
    assert all_rise.p_value < 0.05 / tests
    one_less = arm_difference(np.zeros(needed - 1), np.ones(needed - 1), np.arange(needed - 1))
    assert not one_less.p_value < 0.05 / tests
    assert math.isinf(one_less.detectable(tests))


@pytest.mark.parametrize(("items", "moved"), [(8, 0), (14, 0), (40, 0), (40, 4), (150, 8)])
def test_where_signs_decide_the_detectable_effect_is_theirs(items: int, moved: int) -> None:
    """t, which does not decide there, would promise .07 of 40 items of which none moved."""
    observed = np.zeros(items)
    observed[:moved] = np.where(np.arange(moved) % 2, 1.0, -1.0)
    difference = arm_difference(np.zeros(items), observed, np.arange(items))
    assert difference.signed_clusters is not None
    effect = difference.detectable(1)
    chance = difference.signed_clusters.changed_share
    rng = np.random.default_rng(4)
    changes = [changes_of_whole_items(rng, items, effect, chance) for _ in range(400)]
    assert shown_share(changes, 1) == pytest.approx(0.8, abs=0.08)


@pytest.mark.parametrize("count", [7, 8, 10, 11])
def test_the_detectable_effect_of_a_few_sources_is_that_of_their_signs(count: int) -> None:
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(count), 5)
    noise = rng.normal(0, 0.1, len(labels))
    difference = arm_difference(np.zeros(len(labels)), noise, labels)
    effect = difference.detectable(1)
    observed_sums = np.bincount(labels, noise)
    is_shown = []
    for _ in range(400):
        turned_sums = observed_sums * rng.choice((-1.0, 1.0), count)
        is_shown.append(sign_p(turned_sums + 5 * effect) < 0.05)
    assert share(is_shown) == pytest.approx(0.8, abs=0.08)


def test_after_the_run_the_least_effect_is_that_of_its_own_spread() -> None:
    rng = np.random.default_rng(4)
    before, after = (rng.random(ITEMS) < 0.5).astype(float), (rng.random(ITEMS) < 0.5).astype(float)
    found = arm_difference(before, after, np.arange(ITEMS))
    assert found.detectable(1) == pytest.approx(2.83 * found.estimate.se, rel=0.02)
    assert found.detectable(5) > found.detectable(1)
    assert math.isnan(arm_difference([math.nan], [1.0], [0]).detectable(1))


def test_as_many_items_as_are_needed_show_their_effect() -> None:
    rng = np.random.default_rng(5)
    pilot = arm_difference(rng.random(300).round(), rng.random(300).round(), np.arange(300))
    needed = pilot.clusters_for(0.1, 1)
    assert needed is not None
    shown = []
    for _ in range(200):
        differences = (rng.random(needed) < 0.55).astype(float) - (rng.random(needed) < 0.45)
        shown.append(
            arm_difference(np.zeros(needed), differences, np.arange(needed)).p_value < 0.05
        )
    assert share(shown) == pytest.approx(0.8, abs=0.08)


@pytest.mark.parametrize(("items", "smallest"), [(14, 0.3), (40, 0.3), (40, 0.1), (20, 0.5)])
def test_as_many_items_are_needed_as_the_test_which_decides_takes(
    items: int, smallest: float
) -> None:
    pilot = arm_difference(np.zeros(items), np.zeros(items), np.arange(items))
    needed = pilot.clusters_for(smallest, 1)
    assert needed is not None and pilot.signed_clusters is not None
    chance = pilot.signed_clusters.changed_share
    rng = np.random.default_rng(6)
    changes = [changes_of_whole_items(rng, needed, smallest, chance) for _ in range(200)]
    assert 0.7 <= shown_share(changes, 1) <= 0.97


def test_few_clusters_that_moved_are_judged_by_their_signs() -> None:
    control, arm = np.zeros(10), np.repeat([1.0, 0.0], [6, 4])
    assert arm_difference(control, arm, np.arange(10)).p_value == pytest.approx(2 * 2**-6)
    assert arm_difference(control[:9], arm[1:], np.arange(9)).p_value == pytest.approx(2 * 2**-5)
    assert arm_difference(control, np.ones(10), np.arange(10)).p_value == pytest.approx(2 * 2**-10)
    assert sign_p([0.2] * 8 + [-1.6]) == pytest.approx(1), "whole clusters weigh by their sums"
    assert sign_p(np.full(40, 0.3)) <= 0.001 and sign_p(np.zeros(8)) == 1


@pytest.mark.parametrize(("moved", "against"), [(19, 0), (24, 2), (40, 5), (150, 8)])
def test_signs_of_many_items_have_the_p_of_their_binomial(moved: int, against: int) -> None:
    """Of 14 clusters or more some signs were drawn, which never gives a p below 1 in 4,096."""
    sums = np.repeat([1.0, -1.0, 0.0], [moved - against, against, 3])
    assert sign_p(sums) == pytest.approx(2 * binom.cdf(against, moved, 0.5))


def test_signs_of_unequal_clusters_have_the_p_of_all_choices() -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        sums = rng.integers(-3, 6, 13).astype(float)
        moved = sums[sums != 0]
        signs = np.array(list(product((1.0, -1.0), repeat=len(moved))))
        exact = np.mean(np.abs(signs @ moved) >= abs(moved.sum()) - 1e-9)
        assert sign_p(sums) == pytest.approx(exact)


def test_a_larger_change_of_items_has_no_larger_p_by_whatever_test() -> None:
    """30 items of which so many fall: t decides where 12 or more moved otherwise than most did."""
    p_values = []
    for fallen in range(16, 31):
        changes = -np.repeat([1.0, 0.0], [fallen, 30 - fallen])
        p_values.append(arm_difference(np.zeros(30), changes, np.arange(30)).p_value)
    assert max(p_values) < 0.0001, p_values


def test_drawn_signs_are_drawn_on_where_none_is_as_large_as_what_was_seen() -> None:
    rng = np.random.default_rng(3)
    assert sign_p(1 + rng.random(60)) < 0.0001
    changes = np.tile([0.0, 0.0, 0.0, 1.0], (40, 1)) + 0.05 * rng.random((40, 4))
    assert disagreement(changes, np.arange(40))[1] < 0.0001
    few = changes[:13]
    assert disagreement(few, np.arange(13))[1] == 2 * 2**-13


def test_fewer_than_six_clusters_have_no_p_however_many_items_they_hold() -> None:
    few = arm_difference(np.zeros(60), np.ones(60), np.arange(60) % 5)
    assert math.isnan(few.p_value) and few.estimate.value == 1 and few.estimate.n == 5


def test_p_is_corrected_over_arms_and_models() -> None:
    rng = np.random.default_rng(6)
    scores = {"a": rng.random(40), "b": rng.random(40) + 0.2}
    family = arm_contrasts(scores, dict.fromkeys("ab", np.full(40, 0.5)), (("b", "a"),))
    (alone,), three = corrected_contrasts([family])[0], corrected_contrasts([family] * 3)
    assert three[2][0].score_p == pytest.approx(3 * alone.score_p)


def test_floor_and_ceiling_are_of_scores_in_the_unit_interval() -> None:
    assert (score_edge([1.0] * 19 + [0.0]), score_edge([0.0, 0.0])) == (Edge.CEILING, Edge.FLOOR)
    assert score_edge([1.0, 0.0]) is score_edge([9.0, 9.0]) is score_edge([math.nan]) is None


def test_a_score_that_no_item_changes_has_no_dose_of_no_width() -> None:
    found = dose(np.zeros(20), np.linspace(0.3, 0.5, 20), np.arange(20))
    assert math.isnan(found.estimate.value) and found.estimate.reason.startswith(
        "all items change alike"
    )


# ---- rare items


def test_items_that_lose_all_and_are_not_seen_by_chance_of_one_in_twenty_could_undo_a_change() -> (
    None
):
    control = np.full(14, 0.9)
    rare = rare_items(control, control + 0.05, np.arange(14))
    rare_share = rare.undone / (rare.undone + 0.9)
    assert (1 - rare_share) ** 14 == pytest.approx(0.05)
    assert rare_share * 0.9 == pytest.approx((1 - rare_share) * rare.undone)
    assert not rare.is_beyond_unseen
    assert rare_items(control, control + 0.1, np.arange(14)).undone == pytest.approx(rare.undone)


@pytest.mark.parametrize("change", [0.05, -0.05])
def test_a_change_is_beyond_unseen_items_from_the_number_that_is_named(change: float) -> None:
    def rare_of(items: int) -> bool:
        control = np.full(items, 0.6)
        return rare_items(control, control + change, np.arange(items)).is_beyond_unseen

    control = np.full(8, 0.6)
    named = rare_items(control, control + change, np.arange(8)).items_beyond_unseen
    assert rare_of(math.ceil(named)) and not rare_of(math.floor(named))


def test_unseen_items_hide_less_than_a_change_from_the_number_that_is_named() -> None:
    control = np.full(8, 0.3)
    named = rare_items(control, control, np.arange(8)).items_hiding_less(0.05)
    more, fewer = math.ceil(named), math.floor(named)
    assert rare_items([0.3] * more, [0.3] * more, np.arange(more)).hidden < 0.05
    assert rare_items([0.3] * fewer, [0.3] * fewer, np.arange(fewer)).hidden > 0.05
    assert rare_items([0.0] * 8, [0.1] * 8, np.arange(8)).items_beyond_unseen == 1


def test_no_change_at_all_is_beyond_nothing() -> None:
    rare = rare_items([0.5] * 8, [0.5] * 8, np.arange(8))
    assert not rare.is_beyond_unseen and math.isinf(rare.items_beyond_unseen)
    assert rare.is_even
    assert not rare_items([], [], []).is_beyond_unseen


def test_a_fall_could_be_undone_up_to_the_top_of_the_scale_and_a_rise_down_to_its_bottom() -> None:
    items = np.arange(20)
    control = np.full(20, 0.9)
    fall = rare_items(control, control - 0.1, items)
    rise = rare_items(control, control + 0.1, items)
    assert (fall.room, rise.room) == pytest.approx((0.1, 0.9))
    assert fall.hidden == pytest.approx(rise.hidden) == pytest.approx(rise.undone)
    points = rare_items(control * 10, control * 10 - 1, items)
    assert points.room == pytest.approx(0.0) and points.room_along == pytest.approx(9.0)
    deficits = rare_items(control - 2, control - 1.9, items)
    assert (deficits.room, deficits.room_along) == pytest.approx((0.0, 0.1))


def test_a_long_tail_the_other_way_makes_a_mean_unknown_and_one_along_does_not() -> None:
    control = np.full(20, 0.5)
    gains = np.r_[np.full(18, 0.2), -0.4, -0.5]
    assert rare_items(control, control + gains, np.arange(20)).skewness > 2
    assert not rare_items(control, control + gains, np.arange(20)).is_even
    assert not rare_items(control, control - gains, np.arange(20)).is_even
    along = np.r_[np.full(18, 0.2), 0.4, 0.5]
    assert rare_items(control, control + along, np.arange(20)).is_even


def test_a_tail_is_short_where_no_item_can_lose_more_than_the_mean_gains() -> None:
    control = np.full(20, 0.05)
    gains = np.r_[np.full(18, 0.95), 0.0, 0.0]
    assert rare_items(control, control + gains, np.arange(20)).is_even
    of_no_known_scale = rare_items(10 * control, 10 * (control + gains), np.arange(20))
    assert not of_no_known_scale.is_even


def test_skewness_is_of_clusters_where_there_are_twelve_and_else_of_items() -> None:
    rng = np.random.default_rng(0)
    arm = rng.random(60)
    assert rare_items(np.zeros(60), arm, np.repeat(np.arange(12), 5)).units == 12
    assert rare_items(np.zeros(60), arm, np.repeat(np.arange(6), 10)).units == 60
