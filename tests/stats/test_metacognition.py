"""meta-d' against counts of the literature, and M-ratios of planted observers."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize, special

from selfprobe.stats.estimate import FloatArray
from selfprobe.stats.metacognition import (
    RATING_COUNT,
    SEPARATED_REASON,
    meta_d_prime,
    metacognition,
    rating_edges,
    task_d_prime,
)

PADDED_COUNTS = ([52, 32, 35, 37, 26, 12, 4, 2], [2, 5, 15, 22, 33, 38, 40, 45])
MANISCALCO_EXAMPLE = ([36, 24, 17, 20, 10, 12, 9, 2], [1, 4, 10, 11, 19, 18, 28, 39])


def padded(counts: list[int]) -> FloatArray:
    return np.array(counts) + 1 / len(counts)


def two_choice_meta_d(s1_counts: npt.ArrayLike, s2_counts: npt.ArrayLike) -> tuple[float, float]:
    """d' and meta-d' of a two-choice task with meta-c' = c' (Maniscalco & Lau 2012), by a general
    optimizer; counts of the responses to each stimulus, from the surest S1 to the surest S2.
    """
    s1 = np.asarray(s1_counts, dtype=float)
    s2 = np.asarray(s2_counts, dtype=float)
    ratings = len(s1) // 2
    z_hits = special.ndtri(s2[ratings:].sum() / s2.sum())
    z_alarms = special.ndtri(s1[ratings:].sum() / s1.sum())
    d_prime = z_hits - z_alarms
    relative_criterion = -(z_hits + z_alarms) / 2 / d_prime

    def negative_log_likelihood(parameters: FloatArray) -> float:
        meta_d = parameters[0]
        gaps_below, gaps_above = np.exp(parameters[1:]).reshape(2, ratings - 1)
        criterion = meta_d * relative_criterion
        edges = np.concatenate(
            [
                [-np.inf],
                (criterion - gaps_below.cumsum())[::-1],
                [criterion],
                criterion + gaps_above.cumsum(),
                [np.inf],
            ]
        )
        likelihood = 0.0
        for counts, mean in ((s1, -meta_d / 2), (s2, meta_d / 2)):
            areas = np.diff(special.ndtr(edges - mean)).reshape(2, ratings)
            shares = np.maximum(areas / areas.sum(axis=1, keepdims=True), 1e-12)
            likelihood += float((counts.reshape(2, ratings) * np.log(shares)).sum())
        return -likelihood

    start = np.array([d_prime, *np.full(2 * (ratings - 1), -0.7)])
    fitted = optimize.minimize(negative_log_likelihood, start, method="BFGS")
    return float(d_prime), float(fitted.x[0])


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
def test_the_plain_fit_of_two_choices_is_that_of_the_reference_implementation(
    s1_counts: FloatArray,
    s2_counts: FloatArray,
    d_prime: float,
    meta_d_prime: float,
    m_ratio: float,
) -> None:
    """The first row stands in the tests of metadPy; the others are what metadPy 0.1.2 prints."""
    fitted_d_prime, fitted_meta_d = two_choice_meta_d(s1_counts, s2_counts)
    assert fitted_d_prime == pytest.approx(d_prime, abs=6e-4)
    assert fitted_meta_d == pytest.approx(meta_d_prime, abs=6e-4)
    assert fitted_meta_d / fitted_d_prime == pytest.approx(m_ratio, abs=6e-4)


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


@pytest.mark.parametrize("d_prime", [0.6, 1.5, 3.0])
@pytest.mark.parametrize("m_ratio", [0.0, 0.5, 1.0])
def test_right_and_wrong_answers_are_a_two_choice_task_without_a_preferred_side(
    m_ratio: float, d_prime: float
) -> None:
    """Each fitted from the counts of both sides by the plain fit, which is the reference's."""
    chances, outcomes = rated_answers(m_ratio, d_prime=d_prime, items=600)
    quartiles = np.quantile(chances, [0.25, 0.5, 0.75])
    is_rated = np.eye(RATING_COUNT)[np.searchsorted(quartiles, chances, side="right")]
    counts = np.array([is_rated.T @ outcomes, is_rated.T @ (1 - outcomes)])
    right, wrong = counts + 0.5 / RATING_COUNT
    plain_d_prime, plain_meta_d = two_choice_meta_d([*right[::-1], *wrong], [*wrong[::-1], *right])
    assert task_d_prime(counts[None])[0] == pytest.approx(plain_d_prime)
    assert meta_d_prime(counts[None])[0] == pytest.approx(plain_meta_d, abs=1e-4)


def test_counts_of_one_rating_or_without_wrong_answers_have_no_meta_d() -> None:
    counts = np.array([[[5.0, 0, 0, 0], [5, 0, 0, 0]], [[5, 5, 0, 0], [0, 0, 0, 0]]])
    assert np.isnan(meta_d_prime(counts)).all()


@pytest.mark.parametrize("m_ratio", [0.0, 0.5, 1.0])
def test_m_ratio_is_the_planted_one_however_high_all_chances_are(m_ratio: float) -> None:
    chances, outcomes = rated_answers(m_ratio)
    fitted = metacognition(chances, outcomes, np.arange(len(chances)))
    assert fitted.m_ratio.low <= m_ratio <= fitted.m_ratio.high
    assert fitted.m_ratio.value == pytest.approx(m_ratio, abs=0.1)

    surer = special.expit(special.logit(chances) + 0.5)
    shifted = metacognition(surer, outcomes, np.arange(len(chances)))
    assert shifted.m_ratio.value == pytest.approx(m_ratio, abs=0.15)


@pytest.mark.parametrize(
    ("chances", "outcomes", "reason"),
    [
        (np.linspace(0, 1, 12), np.arange(12) % 2, "items: 12; 20 are the least"),
        (np.linspace(0, 1, 40), np.ones(40), "wrong items: 0; 10 are the least"),
        (
            np.linspace(0, 1, 40),
            (np.arange(40) < 8) * 1,
            "right items: 8; 10 are the least",
        ),
        (np.full(40, 0.9), np.arange(40) % 2, "it states one chance of all items"),
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
    fitted = metacognition(chances, outcomes.astype(float), labels)
    assert math.isnan(fitted.m_ratio.value) and fitted.m_ratio.reason == reason


@pytest.mark.parametrize("scale", [1.0, -1.0])
@pytest.mark.parametrize("wrong_count", [10, 20, 25])
def test_chances_that_separate_right_and_wrong_have_d_prime_and_no_meta_d(
    wrong_count: int, scale: float
) -> None:
    outcomes = (np.arange(60) >= wrong_count).astype(float)
    for chances in (np.linspace(0, 1, 60), outcomes * 0.5 + 0.2, np.arange(60) // 5 / 12):
        stated = 0.5 + scale * (chances - 0.5)
        fitted = metacognition(stated, outcomes, np.arange(60))
        assert math.isnan(fitted.meta_d_prime.value) and math.isnan(fitted.m_ratio.value)
        assert fitted.m_ratio.reason == SEPARATED_REASON and not math.isnan(fitted.d_prime.value)


@pytest.mark.parametrize("usual_chance", [0.05, 0.6, 0.95])
def test_a_model_that_mostly_states_one_chance_is_rated_by_the_others(usual_chance: float) -> None:
    rng = np.random.default_rng(5)
    chances, outcomes = rated_answers(1.0, items=400)
    chances = np.where(rng.random(400) < 0.8, usual_chance, chances)
    assert len(rating_edges(chances)) >= 1
    fitted = metacognition(chances, outcomes, np.arange(400))
    assert not math.isnan(fitted.m_ratio.value), fitted.m_ratio.reason


def test_ratings_of_several_epochs_count_by_their_shares() -> None:
    chances, outcomes = rated_answers(1.0, items=600)
    shares = outcomes * 0.8 + 0.1
    fitted = metacognition(chances, shares, np.arange(600))
    assert 0 < fitted.m_ratio.value < 1.2 and fitted.m_ratio.n == 600
