"""Stated chances and what happened: agreement with scikit-learn, hand-worked cases, and four
simulated worlds.
"""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy import special, stats
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss, roc_auc_score

from selfprobe.stats.estimate import FloatArray, holm
from selfprobe.stats.foresight import (
    LOG_SCORE_CLIP,
    above,
    auroc_above,
    brier,
    detection,
    log_score,
    mean_of,
    ordered,
    overconfidence,
    risks,
    solved_alike,
    stratified_auroc,
)

ITEMS, DRAWS = 200, 200
WORLDS = {"neither": (0, 0), "items": (1, 0), "itself": (0, 1), "both": (1, 1)}
"""World → how much the stated chances hold of what all models share in an item, and of the model's
own.
"""


def drawn(
    rng: np.random.Generator,
    items: float,
    itself: float,
    *,
    others: int = 4,
    slopes: float = 0,
    rivals: int = 0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Chances of model 0, outcomes `[model, item]` and chances of rivals, who know the items as
    model 0 does.
    """
    shared, own = rng.normal(size=ITEMS), rng.normal(size=(others + 1, ITEMS))
    slope = 1 + slopes * rng.uniform(-1, 1, size=(others + 1, 1))
    outcomes = slope * (shared + 0.5 * rng.normal(size=(others + 1, 1))) + own > 0
    stated = special.expit(2 * (items * shared + itself * own[0]) + 0.7 * rng.normal(size=ITEMS))
    told = special.expit(2 * items * shared + 0.7 * rng.normal(size=(rivals, ITEMS)))
    return stated.round(2), outcomes.astype(float), told.round(2)


ONE_SIDED_ALPHA = 0.02


def knowledge(p: FloatArray, own: FloatArray, others: FloatArray) -> str:
    """World that chances are shown to be of: whether they rank the other models' outcomes, and the
    model's own among items that equally many models solved.
    """
    labels = np.arange(len(p))
    knows_items = stratified_auroc(p, mean_of(others), labels)
    knows_itself = stratified_auroc(p, own, labels, solved_alike(np.vstack([own, others])))
    p_values = holm([above(knows_items, 0.5), above(knows_itself, 0.5)])
    items, itself = (int(p_value < ONE_SIDED_ALPHA) for p_value in p_values)
    return next(world for world, planted in WORLDS.items() if planted == (items, itself))


def drawn_knowledge(world: str, seed: int, others: int) -> Counter[str]:
    rng = np.random.default_rng(seed)
    draws = (drawn(rng, *WORLDS[world], others=others) for _ in range(DRAWS))
    return Counter(knowledge(p, y[0], y[1:]) for p, y, _ in draws)


@pytest.mark.parametrize("others", [1, 4, 9])
@pytest.mark.parametrize("world", WORLDS)
def test_four_worlds_come_out_as_planted_in_95_of_100_draws(world: str, others: int) -> None:
    found = drawn_knowledge(world, 0, others)
    assert found[world] >= 0.95 * DRAWS, found


@pytest.mark.parametrize("others", [1, 4, 9])
def test_knowledge_of_the_items_alone_is_called_self_knowledge_in_at_most_5_of_100_draws(
    others: int,
) -> None:
    found = drawn_knowledge("items", 1, others)
    assert found["itself"] + found["both"] <= 0.05 * DRAWS, found


@pytest.mark.slow(10)
def test_where_models_differ_in_how_much_difficulty_tells_only_a_rival_keeps_it_from_being_called_self_knowledge() -> (
    None
):
    """Without Rasch's assumption: slopes from .6 to 1.4. A second observer, asked the same, is why
    Yes needs one.
    """
    rng, alone, beside = np.random.default_rng(2), 0, 0
    for _ in range(DRAWS):
        p, y, told = drawn(rng, 1, 0, slopes=0.4, rivals=2)
        strata, items = solved_alike(y), np.arange(ITEMS)
        shown = above(stratified_auroc(p, y[0], items, strata), 0.5) < ONE_SIDED_ALPHA
        alone += shown
        mine = ordered(p, y[0], strata)
        over = [auroc_above(mine, ordered(one, y[0], strata), items) for one in told]
        beside += shown and all(above(each, 0) < 0.05 for each in over)
    assert beside <= 0.05 * DRAWS < alone, (alone, beside)


def test_a_mean_over_epochs_comes_out_as_planted_too() -> None:
    rng, found = np.random.default_rng(0), Counter[str]()
    for _ in range(DRAWS):
        shared, own = rng.normal(size=ITEMS), rng.normal(size=(5, ITEMS))
        outcomes = rng.binomial(4, special.ndtr(1.5 * (shared + own))) / 4
        p = special.expit(2 * shared + 0.7 * rng.normal(size=ITEMS))
        found[knowledge(p, outcomes[0], outcomes[1:])] += 1
    assert found["items"] >= 0.95 * DRAWS, found


# ---- numbers


@pytest.fixture
def made() -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(3)
    p = rng.uniform(size=80).round(1)
    return p, (rng.uniform(size=80) < p**2).astype(float)


def test_auroc_brier_and_log_score_agree_with_scikit_learn(
    made: tuple[FloatArray, FloatArray],
) -> None:
    p, y = made
    assert stratified_auroc(p, y, np.arange(80)).value == pytest.approx(roc_auc_score(y, p))
    assert brier(p, y).score == pytest.approx(brier_score_loss(y, p))
    assert log_score(p, y) == pytest.approx(
        log_loss(y, np.clip(p, LOG_SCORE_CLIP, 1 - LOG_SCORE_CLIP))
    )


def test_the_interval_of_an_auroc_is_delongs(made: tuple[FloatArray, FloatArray]) -> None:
    """Its variance is that of the placements of positives plus that of negatives."""
    p, y = made
    over = (p[y == 1][:, None] > p[y == 0]) + 0.5 * (p[y == 1][:, None] == p[y == 0])
    variance = (
        over.mean(axis=1).var(ddof=1) / len(over) + over.mean(axis=0).var(ddof=1) / over.shape[1]
    )
    assert stratified_auroc(p, y, np.arange(80)).se == pytest.approx(math.sqrt(variance), rel=0.02)


def test_the_interval_of_an_auroc_in_strata_holds_the_truth_in_95_of_100_draws() -> None:
    rng, held = np.random.default_rng(4), 0
    strata = np.repeat(np.arange(5), 24)
    for _ in range(400):
        y = (rng.uniform(size=120) < np.repeat([0.2, 0.4, 0.5, 0.6, 0.8], 24)).astype(float)
        found = stratified_auroc(rng.normal(size=120) + y, y, np.arange(120), strata)
        held += found.low <= special.ndtr(1 / math.sqrt(2)) <= found.high
    assert 0.92 <= held / 400 <= 0.98


def test_a_share_counts_as_so_much_of_a_success_and_no_item_is_a_pair_with_itself() -> None:
    """Items (.9, 1), (.5, ½), (.2, 0): pairs weigh ½, 1 and ½ in order, and none stands against."""
    found = ordered([0.9, 0.5, 0.2], [1, 0.5, 0])
    assert found.all_pairs.tolist() == [1.5, 1, 1.5] and found.auroc == 1
    assert ordered([0.2, 0.5, 0.9], [1, 0.5, 0]).auroc == 0
    assert ordered([0.5, 0.5], [1, 0]).auroc == 0.5


@pytest.mark.parametrize("seed", range(4))
def test_pairs_are_counted_within_strata_as_by_going_through_them(seed: int) -> None:
    draw = np.random.default_rng(seed)
    p, y, strata = draw.integers(0, 4, 20) / 4, draw.random(20), draw.integers(0, 3, 20)
    right, pairs = np.zeros(20), np.zeros(20)
    for i, j in permutations(range(20), 2):
        if strata[i] == strata[j]:
            in_order = float(p[i] > p[j]) + float(p[i] == p[j]) / 2
            weight = y[i] * (1 - y[j])
            for item in (i, j):
                right[item] += weight * in_order
                pairs[item] += weight
    found = ordered(p, y, strata)
    assert found.in_order == pytest.approx(right) and found.all_pairs == pytest.approx(pairs)
    assert ordered([], []).in_order.tolist() == []


def test_items_are_alike_where_the_same_models_results_are_known_and_as_many_succeeded() -> None:
    outcomes = [[1, 0, 1, math.nan, 0, math.nan], [0, 1, 1, 1, 0, 1], [0, 0, 0, 0, 0, 1]]
    first, second, third, fourth, fifth, sixth = solved_alike(outcomes).tolist()
    assert first == second and len({first, third, fourth, fifth, sixth}) == 5


def test_strata_compare_items_that_as_many_models_solved() -> None:
    outcomes = np.array([[1, 0, 1, 0, 1], [0, 1, 1, 0, math.nan], [0, 0, 1, 0, 1]])
    a, b, c, d, e = solved_alike(outcomes)
    assert a == b and len({a, c, d, e}) == 4, "of the last item one model is not known"
    assert mean_of(outcomes).tolist() == [1 / 3, 1 / 3, 1, 0, 1]
    assert ordered([0.9, 0.1, 0.5, 0.5, 0.5], outcomes[0], solved_alike(outcomes)).auroc == 1


def test_the_paired_difference_is_that_of_the_two_areas(
    made: tuple[FloatArray, FloatArray],
) -> None:
    p, y = made
    rival = np.random.default_rng(5).uniform(size=80)
    off = auroc_above(ordered(p, y), ordered(rival, y), np.arange(80))
    assert off.value == pytest.approx(roc_auc_score(y, p) - roc_auc_score(y, rival))
    assert off.low < off.value < off.high and math.isnan(
        auroc_above(ordered(p, y), ordered(p, y), np.arange(80)).low
    )


def test_all_in_order_has_an_interval_and_all_alike_has_a_reason() -> None:
    whole = stratified_auroc([0.9, 0.8, 0.2, 0.1], [1, 1, 0, 0], np.arange(4))
    assert whole.value == 1 and whole.low < 0.9 and whole.high == 1
    assert "no item of another outcome" in stratified_auroc([0.9, 0.8], [1, 1], np.arange(2)).reason


def test_the_parts_of_a_brier_score_are_those_worked_by_hand() -> None:
    """Stated .8 twice (one happens) and .2 twice (none): recalibrated to .5 and 0, base rate ¼.

    Score (.04 + .64 + .04 + .04)/4 = .19; recalibrated (¼ + ¼)/4 = .125; always ¼: 3/16 = .1875.
    """
    found = brier([0.8, 0.8, 0.2, 0.2], [1, 0, 0, 0])
    assert (found.score, found.miscalibration) == (pytest.approx(0.19), pytest.approx(0.065))
    assert (found.discrimination, found.uncertainty) == (
        pytest.approx(0.0625),
        pytest.approx(0.1875),
    )
    assert found.score == pytest.approx(
        found.miscalibration - found.discrimination + found.uncertainty
    )


def test_d_prime_and_criterion_are_those_worked_by_hand(
    made: tuple[FloatArray, FloatArray],
) -> None:
    """Nine of ten refusals foreseen, two of ten false alarms: hits 9.5/11, alarms 2.5/11."""
    p = np.repeat([0.9, 0.1, 0.9, 0.1], [9, 1, 2, 8])
    found = detection(p, np.repeat([1.0, 0.0], 10))
    z = stats.norm.ppf([9.5 / 11, 2.5 / 11])
    assert (found.d_prime, found.criterion) == (
        pytest.approx(z[0] - z[1]),
        pytest.approx(-(z[0] + z[1]) / 2),
    )
    (_, alarms), (missed, hits) = confusion_matrix(made[1], made[0] >= 0.5)
    rates = (hits + 0.5) / (hits + missed + 1), (alarms + 0.5) / ((1 - made[1]).sum() + 1)
    assert detection(*made).d_prime == pytest.approx(np.diff(stats.norm.ppf(rates[::-1]))[0])
    assert math.isnan(detection([0.5, 0.6], [1, 1]).d_prime)


def test_risk_falls_with_coverage_where_chances_rank_and_ties_are_drawn() -> None:
    assert risks([0.9, 0.8, 0.7, 0.6, 0.5], [1, 1, 1, 0, 0]) == {
        1.0: pytest.approx(0.4),
        0.8: pytest.approx(0.25),
        0.6: 0,
        0.4: 0,
        0.2: 0,
    }
    assert set(risks([0.5] * 4, [1, 1, 0, 0]).values()) == {0.5}


def test_overconfidence_is_stated_less_what_happened() -> None:
    found = overconfidence([0.9, 0.9, 0.9, 0.9], [1, 1, 0, 0], np.arange(4))
    assert found.value == pytest.approx(0.4) and -1 <= found.low < 0.4 < found.high <= 1


def test_without_another_model_nothing_is_known_of_the_items() -> None:
    share = mean_of(np.empty((0, 2)))
    assert np.isnan(share).all()
    assert math.isnan(stratified_auroc([0.9, 0.2], share, np.arange(2)).value)


def test_a_perfect_model_is_above_a_constant_although_no_item_varies() -> None:
    y = np.repeat([1.0, 0.0], 15)
    off = auroc_above(ordered(y, y), ordered(np.zeros(30), y), np.arange(30), y)
    assert (
        off.value == 0.5
        and 0.2 < off.low < 0.4
        and off.high == pytest.approx(0.5)
        and above(off, 0) < 0.01
    )
