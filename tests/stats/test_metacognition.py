"""meta-d' against counts of the literature, the number of dimensions, and the gain of routing."""

import math

import numpy as np
import pytest
from scipy import special

from selfprobe.stats.estimate import FloatArray
from selfprobe.stats.metacognition import (
    RATING_COUNT,
    Dimensions,
    count_dimensions,
    fit_meta_d,
    metacognition,
    rated_meta_d,
    rating_edges,
    routing,
)

PADDED_COUNTS = ([52, 32, 35, 37, 26, 12, 4, 2], [2, 5, 15, 22, 33, 38, 40, 45])
MANISCALCO_EXAMPLE = ([36, 24, 17, 20, 10, 12, 9, 2], [1, 4, 10, 11, 19, 18, 28, 39])


def padded(counts: list[int]) -> FloatArray:
    return np.array(counts) + 1 / len(counts)


@pytest.mark.parametrize(
    ("s1_counts", "s2_counts", "d_prime", "meta_d_prime", "m_ratio"),
    [
        (padded(PADDED_COUNTS[0]), padded(PADDED_COUNTS[1]), 1.535, 1.634, 1.064),
        (*PADDED_COUNTS, 1.5444, 1.6538, 1.0709),
        (*MANISCALCO_EXAMPLE, 1.5041, 1.4607, 0.9712),
        ([100, 50, 20, 10, 5, 1], [3, 7, 8, 12, 27, 89], 2.5244, 2.3370, 0.9258),
        ([32, 23, 14, 9], [6, 13, 26, 33], 1.2340, 0.8859, 0.7179),
    ],
    ids=["metadPy's own test", "the same, not padded", "the example of its help", "3 and 2", "2"],
)
def test_meta_d_is_that_of_the_reference_implementation_on_the_same_counts(
    s1_counts: FloatArray,
    s2_counts: FloatArray,
    d_prime: float,
    meta_d_prime: float,
    m_ratio: float,
) -> None:
    """The first row stands in the tests of metadPy; the others are what metadPy 0.1.2 prints."""
    fitted = fit_meta_d(s1_counts, s2_counts)
    assert fitted.d_prime == pytest.approx(d_prime, abs=6e-4)
    assert fitted.meta_d_prime == pytest.approx(meta_d_prime, abs=6e-4)
    assert fitted.m_ratio == pytest.approx(m_ratio, abs=6e-4)


def test_right_and_wrong_answers_are_a_two_choice_task_without_a_preferred_side() -> None:
    right = np.array([20.0, 25, 40, 60])
    wrong = np.array([15.0, 12, 8, 5])
    d_primes, meta_d_primes = rated_meta_d(right[None], wrong[None])
    pad = 0.5 / RATING_COUNT
    upper, lower = right + pad, wrong + pad
    both = fit_meta_d([*upper[::-1], *lower], [*lower[::-1], *upper])
    assert d_primes[0] == pytest.approx(both.d_prime)
    assert meta_d_primes[0] == pytest.approx(both.meta_d_prime, abs=1e-6)


def test_counts_that_are_no_two_choice_task_are_refused_or_have_no_number() -> None:
    with pytest.raises(ValueError, match="expected as many counts of both stimuli"):
        fit_meta_d([1, 2, 3], [1, 2, 3])
    assert math.isnan(fit_meta_d([5, 5, 0, 0], [0, 0, 5, 5]).m_ratio)
    assert math.isnan(fit_meta_d([5, 5, 5, 5], [5, 5, 5, 5]).m_ratio)


def rated_answers(
    m_ratio: float, *, d_prime: float = 1.5, items: int = 4000, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Chances and outcomes of a two-choice observer."""
    rng = np.random.default_rng(seed)
    outcomes = (rng.random(items) < special.ndtr(d_prime / 2)).astype(float)
    means = np.where(outcomes > 0, 0.5, -0.5) * m_ratio * d_prime
    below_zero = special.ndtr(-means)
    evidence = means + special.ndtri(below_zero + rng.random(items) * (1 - below_zero))
    return special.expit(1.5 * evidence - 1), outcomes


@pytest.mark.parametrize("m_ratio", [0.0, 0.5, 1.0])
def test_m_ratio_is_the_planted_one_however_high_all_chances_are(m_ratio: float) -> None:
    chances, outcomes = rated_answers(m_ratio)
    edges = rating_edges(chances)
    fitted = metacognition(chances, outcomes, np.arange(len(chances)), edges)
    assert fitted.m_ratio.low <= m_ratio <= fitted.m_ratio.high
    assert fitted.m_ratio.value == pytest.approx(m_ratio, abs=0.1)

    surer = special.expit(special.logit(chances) + 0.5)
    shifted = metacognition(surer, outcomes, np.arange(len(chances)), edges)
    assert shifted.m_ratio.value == pytest.approx(m_ratio, abs=0.15)


@pytest.mark.parametrize(
    ("chances", "outcomes", "reason"),
    [
        (np.linspace(0, 1, 12), np.arange(12) % 2, "12 items; 20 are the least"),
        (np.linspace(0, 1, 40), np.ones(40), "0 of its items are wrong; 10 are the least"),
        (
            np.linspace(0, 1, 40),
            (np.arange(40) < 8) * 1,
            "8 of its items are right; 10 are the least",
        ),
        (np.full(40, 0.9), np.arange(40) % 2, "it states chances of one rating alone"),
        (
            np.linspace(0, 1, 40),
            np.arange(40) % 2,
            "its share right is not shown to be above one half",
        ),
    ],
    ids=["few items", "a ceiling", "hardly any right", "a constant", "half are right"],
)
def test_what_has_no_m_ratio_says_why(
    chances: FloatArray, outcomes: FloatArray, reason: str
) -> None:
    labels = np.arange(len(chances))
    fitted = metacognition(
        chances, outcomes.astype(float), labels, rating_edges(np.linspace(0, 1, 40))
    )
    assert math.isnan(fitted.m_ratio.value) and fitted.m_ratio.reason == reason


def test_ratings_of_several_epochs_count_by_their_shares() -> None:
    chances, outcomes = rated_answers(1.0, items=600)
    shares = outcomes * 0.8 + 0.1
    fitted = metacognition(chances, shares, np.arange(600), rating_edges(chances))
    assert 0 < fitted.m_ratio.value < 1.2 and fitted.m_ratio.n == 600


def statements(dimension_count: int, models: int, items: int = 300) -> FloatArray:
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(dimension_count, items))
    logits = factors[np.arange(models) % dimension_count] + 0.7 * rng.normal(size=(models, items))
    return np.asarray(special.expit(logits))


@pytest.mark.parametrize("dimension_count", [1, 2])
def test_the_planted_number_of_dimensions_is_counted(dimension_count: int) -> None:
    counted = count_dimensions(statements(dimension_count, models=6), np.arange(300))
    assert isinstance(counted, Dimensions) and counted.count == dimension_count
    assert counted.eigenvalues.sum() == pytest.approx(6) and counted.items == 300


def test_statements_that_have_no_number_of_dimensions_say_why() -> None:
    chances = statements(1, models=4)
    labels = np.arange(300)
    assert count_dimensions(chances[:3], labels) == "3 models; 4 are the least"
    constant = np.array([*chances[:3], np.full(300, 0.7)])
    assert count_dimensions(constant, labels) == (
        "3 models with statements that differ; 4 are the least"
    )
    few = np.where(np.arange(300) < 15, chances, math.nan)
    assert count_dimensions(few, labels) == "15 items with all statements; 20 are the least"
    one_cluster_in_25 = count_dimensions(chances, labels // 12)
    assert isinstance(one_cluster_in_25, Dimensions) and one_cluster_in_25.items == 25


def test_routing_by_chances_that_know_gains_over_always_acting_and_always_asking() -> None:
    rng = np.random.default_rng(0)
    outcomes = (rng.random(400) < 0.6).astype(float)
    chances = special.expit(2 * outcomes - 1 + 0.5 * rng.normal(size=400))
    routed = routing(chances, outcomes, np.arange(400), 0.3)
    assert routed.over_acting.low > 0.15 and routed.over_asking.low > 0.1
    assert 0.3 < routed.threshold < 0.7 and 0.3 < routed.helped < 0.5


def test_routing_of_few_items_or_without_a_gain_has_no_claim() -> None:
    rng = np.random.default_rng(0)
    outcomes = (rng.random(200) < 0.9).astype(float)
    routed = routing(rng.random(200), outcomes, np.arange(200), 0.5)
    assert not routed.over_acting.low > 0
    few = routing(rng.random(12), outcomes[:12], np.arange(12), 0.5)
    assert few.over_acting.reason == "12 items; 20 are the least" and math.isnan(few.helped)
    nothing = routing(np.zeros(0), np.zeros(0), np.zeros(0, dtype=int), 0.5)
    assert nothing.over_asking.reason == "0 items; 20 are the least"
