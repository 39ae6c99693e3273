"""Metacognition: how well stated chances tell right from wrong for how often a model is right.

meta-d' (Maniscalco & Lau 2012) is the d' at which an ideal observer of a two-choice task would
have the ratings that are seen of right and of wrong answers; M-ratio is meta-d' / d', so that 1 is
an observer whose ratings use all that its answers used. The AUROC of the ratings has no such scale:
it also rises with how often answers are right.

A logged item has an answer that is right or wrong, and no two classes of stimulus and response. So
the ratings are taken for those of a two-choice observer without a preferred side: right and wrong
answers of either side count as those of both, and d' = 2 z(share right), the d' at which such an
observer is right as often. For items with two answers this is d' itself. For others it is a scale
on which models with the same items can be compared: 1 is no ceiling there, and items that differ in
difficulty raise meta-d' (Rahnev & Fleming 2019), not d'. There is no d' at or below one half.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from selfprobe.stats.estimate import Estimate, FloatArray, IntArray, bootstrap, undefined

RATING_COUNT = 4
"""Number of ratings that stated chances are turned into."""
RATING_SHARES = (0.2, 0.4, 0.6)
"""Shares of chances below the edges of ratings. The highest rating is wide, since few answers with
it are wrong: with quarters the intervals of 200 items miss an M-ratio of 1 in 9 %, so in 5 %.
"""
FEWEST_RATED_ITEMS = 20
"""Number of items below which nothing is fitted."""
FEWEST_OF_A_KIND = 10
"""Number of right and of wrong items below which nothing is fitted: the intervals of 8 wrong ones
miss the truth in 8 %.
"""
RATING_RESAMPLES = 500
PADDING_ITEMS = 0.5
"""Number of items added to the right and to the wrong ones (Hautus 1995)."""
RIGHT_AND_WRONG_MEANS = np.array([0.5, -0.5])
"""Means of the evidence of right and of wrong answers for the answer, in units of meta-d'."""
SCORING_STEPS = 60
SETTLED_STEP = 1e-8
"""Step of meta-d' below which scoring ends."""
LARGEST_LAST_STEP = 1e-3
"""Last step of meta-d' from which on a fit has not settled."""
FIRST_META_D = 1.0
FIRST_CRITERION_GAP = 0.5
LARGEST_META_D = 10.0
LEAST_LOG_GAP = -8.0
LARGEST_LOG_GAP = 3.0
ONE_CHANCE_REASON = "it states one chance of all items"
SEPARATED_REASON = "its chances separate right and wrong items, so meta-d′ has no upper bound"
UNSETTLED_REASON = "meta-d′ of its ratings does not settle"
RIDGE = 1e-9
LEAST_PROBABILITY = 1e-12


def rating_edges(chances: FloatArray) -> FloatArray:
    """Edges of at most `RATING_COUNT` ratings of one model: quantiles of its chances, each above
    the lowest one; between all its chances where they are so few.
    """
    distinct_chances = np.unique(chances)
    if len(distinct_chances) <= RATING_COUNT:
        return distinct_chances[1:]
    quantiles = np.quantile(chances, RATING_SHARES)
    return np.unique(np.maximum(quantiles, distinct_chances[1]))


def task_d_prime(counts: FloatArray) -> FloatArray:
    """d' of a two-choice observer without a preferred side that is right as often, `[fit]`.

    Args:
        counts: Answers `[fit, right or wrong, rating]`.
    """
    right_totals, wrong_totals = _padded(counts).sum(axis=-1).T
    return np.asarray(2 * special.ndtri(right_totals / (right_totals + wrong_totals)))


def meta_d_prime(counts: FloatArray) -> FloatArray:
    """meta-d' of the same observer, `[fit]`; NaN where right or wrong answers are missing, where
    all have one rating, or where the fit does not settle.

    Args:
        counts: Answers `[fit, right or wrong, rating]`, ratings from the lowest.
    """
    has_several_ratings = (counts.sum(axis=1) > 0).sum(axis=-1) > 1
    has_right_and_wrong = (counts.sum(axis=-1) > 0).all(axis=-1)
    meta_d_primes = _likeliest_meta_d(_padded(counts))
    return np.where(has_several_ratings & has_right_and_wrong, meta_d_primes, math.nan)


def _padded(counts: FloatArray) -> FloatArray:
    return np.asarray(counts + PADDING_ITEMS / counts.shape[-1])


def _likeliest_meta_d(counts: FloatArray) -> FloatArray:
    """meta-d' of greatest likelihood of `counts  # [fit, right or wrong, rating]`, all above 0, by
    Fisher scoring; NaN where it does not settle.

    The parameters are meta-d' and the logs of the gaps between the criteria of the ratings, of
    which the lowest has its criterion at 0.
    """
    fit_count, _, rating_count = counts.shape
    gap_count = rating_count - 1
    totals = counts.sum(axis=-1)
    parameters = np.full((fit_count, 1 + gap_count), math.log(FIRST_CRITERION_GAP))
    parameters[:, 0] = FIRST_META_D
    gaps_above = np.tril(np.ones((gap_count, gap_count)))
    area_by_criterion = np.eye(rating_count, gap_count) - np.eye(rating_count, gap_count, k=-1)
    last_steps = np.full(fit_count, math.inf)
    for _ in range(SCORING_STEPS):
        gaps = np.exp(parameters[:, 1:])
        criteria = np.concatenate([np.zeros((fit_count, 1)), gaps.cumsum(axis=-1)], axis=-1)
        evidence_means = parameters[:, :1] * RIGHT_AND_WRONG_MEANS
        distances = evidence_means[..., None] - criteria[:, None]
        tails = special.ndtr(distances)
        densities = np.exp(-np.square(distances) / 2) / math.sqrt(2 * math.pi)
        areas = np.maximum(-np.diff(tails, append=0.0), LEAST_PROBABILITY)
        whole_areas = np.maximum(tails[..., :1], LEAST_PROBABILITY)
        shares = areas / whole_areas

        share_by_mean = -np.diff(densities, append=0.0) - shares * densities[..., :1]
        share_by_criterion = area_by_criterion * densities[..., None, 1:]
        slopes = np.empty((*counts.shape, 1 + gap_count))
        slopes[..., 0] = share_by_mean * RIGHT_AND_WRONG_MEANS[:, None]
        slopes[..., 1:] = (share_by_criterion @ gaps_above) * gaps[:, None, None]
        slopes /= whole_areas[..., None]

        scores = np.einsum("forp,for->fp", slopes, counts / shares)
        weights = totals[..., None] / shares
        information = np.einsum("forp,for,forq->fpq", slopes, weights, slopes)
        information += RIDGE * np.eye(1 + gap_count)
        steps = np.linalg.solve(information, scores[..., None])[..., 0].clip(-1.0, 1.0)
        parameters += steps
        parameters[:, 0] = parameters[:, 0].clip(-LARGEST_META_D, LARGEST_META_D)
        parameters[:, 1:] = parameters[:, 1:].clip(LEAST_LOG_GAP, LARGEST_LOG_GAP)
        last_steps = np.abs(steps[:, 0])
        if last_steps.max() < SETTLED_STEP:
            break
    return np.where(last_steps < LARGEST_LAST_STEP, parameters[:, 0], math.nan)


@dataclass(frozen=True)
class Metacognition:
    """Sensitivities with intervals by item."""

    d_prime: Estimate
    meta_d_prime: Estimate
    m_ratio: Estimate


def undefined_metacognition(reason: str) -> Metacognition:
    """Three estimates that are absent for one reason."""
    absent = undefined(reason)
    return Metacognition(absent, absent, absent)


def metacognition(chances: FloatArray, outcomes: FloatArray, clusters: IntArray) -> Metacognition:
    """meta-d' and M-ratio of stated chances, with bootstrap intervals by cluster.

    M-ratio is absent where the share right is not shown to be above one half, and meta-d' too where
    ratings separate right and wrong answers wholly.

    Args:
        chances, outcomes, clusters: `[item]`, without NaN.
    """
    cluster_count = len(np.unique(clusters))
    if cluster_count < FEWEST_RATED_ITEMS:
        return undefined_metacognition(
            f"items: {cluster_count}; {FEWEST_RATED_ITEMS} are the least"
        )
    wrong_count = float((1 - outcomes).sum())
    rarer_count = min(wrong_count, len(outcomes) - wrong_count)
    if rarer_count < FEWEST_OF_A_KIND:
        kind = "wrong" if wrong_count == rarer_count else "right"
        return undefined_metacognition(
            f"{kind} items: {rarer_count:g}; {FEWEST_OF_A_KIND} are the least"
        )

    ratings = np.searchsorted(rating_edges(chances), chances, side="right")
    is_rated = np.eye(RATING_COUNT)[ratings]
    d_prime = _bootstrapped(task_d_prime, is_rated, outcomes, clusters)
    absent_reason = ""
    if len(np.unique(chances)) == 1:
        absent_reason = ONE_CHANCE_REASON
    elif _are_separated(ratings, outcomes):
        absent_reason = SEPARATED_REASON
    if absent_reason:
        absent = undefined(absent_reason)
        return Metacognition(d_prime, absent, absent)

    meta_d = _bootstrapped(meta_d_prime, is_rated, outcomes, clusters)
    if math.isnan(meta_d.value):
        absent = undefined(UNSETTLED_REASON)
        return Metacognition(d_prime, absent, absent)
    m_ratio = undefined("its share right is not shown to be above one half")
    if d_prime.low > 0:
        m_ratio = _bootstrapped(_m_ratios, is_rated, outcomes, clusters)
    return Metacognition(d_prime, meta_d, m_ratio)


def _are_separated(ratings: IntArray, outcomes: FloatArray) -> bool:
    """Whether right and wrong answers have one rating in common at most, with all others of the one
    above and of the other below it: then ever larger meta-d' fit ever better.
    """
    right_ratings = ratings[outcomes > 0]
    wrong_ratings = ratings[outcomes < 1]
    is_right_above = right_ratings.min() >= wrong_ratings.max()
    is_right_below = right_ratings.max() <= wrong_ratings.min()
    return bool(is_right_above or is_right_below)


def _m_ratios(counts: FloatArray) -> FloatArray:
    """M-ratios; NaN where d' is not above 0."""
    d_primes = task_d_prime(counts)
    positive_d_primes = np.where(d_primes > 0, d_primes, math.nan)
    return meta_d_prime(counts) / positive_d_primes


def _bootstrapped(
    statistic: Callable[[FloatArray], FloatArray],
    is_rated: FloatArray,
    outcomes: FloatArray,
    clusters: IntArray,
) -> Estimate:
    """A statistic of counts `[fit, right or wrong, rating]`, with the same resamples each time.

    Args:
        statistic: Function of the counts of several fits, with one value each.
        is_rated: 1 for the rating of an item `[item, rating]`.
        outcomes, clusters: `[item]`.
    """

    def of_shares(*shares: Any) -> Any:
        counts = np.stack(shares, axis=-1) * len(outcomes)
        values = statistic(counts.reshape(-1, 2, RATING_COUNT))
        return values if counts.ndim > 1 else values[0]

    return bootstrap(
        of_shares,
        *(is_rated.T * outcomes),
        *(is_rated.T * (1 - outcomes)),
        clusters=clusters,
        rng=np.random.default_rng(0),
        resamples=RATING_RESAMPLES,
        of_means=True,
    )
