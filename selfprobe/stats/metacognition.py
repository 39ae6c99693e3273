"""Metacognition: how well stated chances tell right from wrong for how often a model is right, how
many dimensions the chances of several models have, and what acting on them gains.

meta-d' (Maniscalco & Lau 2012) is the d' at which an ideal observer of a two-choice task would
have the ratings that are seen of right and of wrong answers; M-ratio is meta-d' / d', so that 1 is
an observer whose ratings use all that its answers used. The AUROC of the ratings has no such scale:
it also rises with how often answers are right.

A logged item has an answer that is right or wrong, and no two classes of stimulus and response. So
`Ratings` are those of a two-choice observer without a preferred side: right and wrong answers of
either side count as those of both, and d' = 2 z(share right), the d' at which such an observer is
right as often. For items with two answers this is d' itself. For others it is a scale on which
models with the same items can be compared: 1 is no ceiling there, and items that differ in
difficulty raise meta-d' (Rahnev & Fleming 2019), not d'. There is no d' at or below one half.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import Estimate, FloatArray, bootstrap, clustered_mean, undefined

IntArray = npt.NDArray[np.intp]
RATING_COUNT = 4
"""Number of ratings that stated chances are turned into."""
RATING_RESAMPLES = 500
SCORING_STEPS = 60
SETTLED_STEP = 1e-8
LARGEST_META_D = 10.0
RIDGE = 1e-9
LEAST_PROBABILITY = 1e-12
FEWEST_RATED = 20
"""Number of items below which nothing is fitted."""
FEWEST_OF_A_KIND = 10
"""Number of right and of wrong items below which nothing is fitted: the intervals of 8 wrong ones
miss the truth in 8 %.
"""
FEWEST_MODELS = 4
"""Number of models below which their statements have no number of dimensions."""
NULL_QUANTILE = 0.95
NULL_DRAWS = 199
LOGIT_CLIP = 0.01
ROUTING_FOLDS = 5


# ---- meta-d'


@dataclass(frozen=True)
class MetaD:
    """Sensitivity of answers, and of ratings on the same scale."""

    d_prime: float
    meta_d_prime: float

    @property
    def m_ratio(self) -> float:
        """meta-d' / d'; NaN where d' is not above 0."""
        return self.meta_d_prime / self.d_prime if self.d_prime > 0 else math.nan


def fit_meta_d(s1_counts: npt.ArrayLike, s2_counts: npt.ArrayLike) -> MetaD:
    """d' and meta-d' of a two-choice task by maximum likelihood, with meta-c' = c' (Maniscalco &
    Lau 2012).

    Args:
        s1_counts: Number of responses to stimulus S1, from the surest S1 to the surest S2.
        s2_counts: The same of stimulus S2.

    Raises:
        ValueError: They are not of as many ratings of both responses.
    """
    s1 = np.asarray(s1_counts, dtype=float)
    s2 = np.asarray(s2_counts, dtype=float)
    if s1.shape != s2.shape or s1.ndim != 1 or len(s1) % 2 or len(s1) < 4:
        raise ValueError(
            f"expected as many counts of both stimuli, an even number of 4 or more; got {s1.shape} "
            f"and {s2.shape}"
        )
    ratings = len(s1) // 2
    z_hits = float(special.ndtri(s2[ratings:].sum() / s2.sum()))
    z_alarms = float(special.ndtri(s1[ratings:].sum() / s1.sum()))
    d_prime = z_hits - z_alarms
    if not math.isfinite(d_prime) or d_prime == 0:
        return MetaD(math.nan, math.nan)
    right_and_wrong_above = [s2[ratings:], s1[ratings:]]
    right_and_wrong_below = [s1[:ratings][::-1], s2[:ratings][::-1]]
    counts = np.array([[right_and_wrong_above, right_and_wrong_below]])
    relative_criterion = -(z_hits + z_alarms) / 2 / d_prime
    mean_shifts = np.array([[-relative_criterion], [relative_criterion]])
    return MetaD(d_prime, float(_best_meta_d(counts, RIGHT_AND_WRONG_MEANS + mean_shifts)[0]))


RIGHT_AND_WRONG_MEANS = np.array([0.5, -0.5])
"""Means of the evidence of right and of wrong responses on the side of the response, in meta-d'."""


def _best_meta_d(counts: FloatArray, means: FloatArray) -> FloatArray:
    """meta-d' of greatest likelihood of each fit, [fit], by Fisher scoring; NaN where it does not
    settle.

    The parameters are meta-d' and, of each side of the criterion at 0, the logs of the gaps between
    the criteria of its ratings.

    Args:
        counts: Responses `[fit, side, right or wrong, rating]`, all above 0, ratings from the
            lowest.
        means: Mean of the evidence of each in units of meta-d', as its distance from the criterion
            towards the response, `[side, right or wrong]`.
    """
    fit_count, side_count, _, rating_count = counts.shape
    gap_count = rating_count - 1
    totals = counts.sum(axis=-1)
    parameters = np.full((fit_count, 1 + side_count * gap_count), math.log(0.5))
    parameters[:, 0] = 1.0
    gaps_above = np.tril(np.ones((gap_count, gap_count)))
    area_by_criterion = np.eye(rating_count, gap_count) - np.eye(rating_count, gap_count, k=-1)
    step_sizes = np.full(fit_count, math.inf)
    for _ in range(SCORING_STEPS):
        gaps = np.exp(parameters[:, 1:]).reshape(fit_count, side_count, gap_count)
        criteria = np.concatenate([np.zeros_like(gaps[..., :1]), gaps.cumsum(axis=-1)], axis=-1)
        evidence_means = parameters[:, 0, None, None, None] * means[..., None]
        distances = evidence_means - criteria[:, :, None]
        tails = special.ndtr(distances)
        densities = np.exp(-np.square(distances) / 2) / math.sqrt(2 * math.pi)
        areas = np.maximum(-np.diff(tails, append=0.0), LEAST_PROBABILITY)
        whole_areas = np.maximum(tails[..., :1], LEAST_PROBABILITY)
        shares = areas / whole_areas

        share_by_mean = -np.diff(densities, append=0.0) - shares * densities[..., :1]
        share_by_criterion = area_by_criterion * densities[..., None, 1:]
        share_by_gap = (share_by_criterion @ gaps_above) * gaps[:, :, None, None]
        slopes = np.zeros((*counts.shape, parameters.shape[1]))
        slopes[..., 0] = share_by_mean * means[..., None]
        for side in range(side_count):
            first_gap = 1 + side * gap_count
            slopes[:, side, ..., first_gap : first_gap + gap_count] = share_by_gap[:, side]
        slopes /= whole_areas[..., None]

        scores = np.einsum("fsorp,fsor->fp", slopes, counts / shares)
        weights = totals[..., None] / shares
        information = np.einsum("fsorp,fsor,fsorq->fpq", slopes, weights, slopes)
        information += RIDGE * np.eye(parameters.shape[1])
        steps = np.linalg.solve(information, scores[..., None])[..., 0].clip(-1.0, 1.0)
        parameters += steps
        parameters[:, 0] = parameters[:, 0].clip(-LARGEST_META_D, LARGEST_META_D)
        parameters[:, 1:] = parameters[:, 1:].clip(-8.0, 3.0)
        step_sizes = np.abs(steps[:, 0])
        if step_sizes.max() < SETTLED_STEP:
            break
    return np.where(step_sizes < 1e-3, parameters[:, 0], math.nan)


def rating_edges(chances: npt.ArrayLike) -> FloatArray:
    """Edges of `RATING_COUNT` ratings: quantiles of the chances that all models stated, so that one
    rating means the same of each.
    """
    values = np.asarray(chances, dtype=float)
    known_values = values[~np.isnan(values)]
    if not len(known_values):
        return np.zeros(0)
    shares = np.arange(1, RATING_COUNT) / RATING_COUNT
    return np.unique(np.quantile(known_values, shares))


def rated_meta_d(
    right_counts: FloatArray, wrong_counts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """d' and meta-d' of a two-choice observer without a preferred side, `[fit]` each.

    Half an item is added to the right and to the wrong ones, spread over the ratings (Hautus 1995).
    NaN where one of the two is missing, or all have one rating.

    Args:
        right_counts: Number of right answers `[fit, rating]`, ratings from the lowest.
        wrong_counts: The same of wrong answers.
    """
    counts = np.stack([right_counts, wrong_counts], axis=1)
    has_ratings = ((counts.sum(axis=1) > 0).sum(axis=-1) > 1) & (counts.sum(axis=-1) > 0).all(
        axis=-1
    )
    padded_counts = counts + 0.5 / counts.shape[-1]
    right_totals, wrong_totals = padded_counts.sum(axis=-1).T
    d_primes = 2 * special.ndtri(right_totals / (right_totals + wrong_totals))
    meta_d_primes = _best_meta_d(padded_counts[:, None], RIGHT_AND_WRONG_MEANS[None])
    return (
        np.where(has_ratings, d_primes, math.nan),
        np.where(has_ratings, meta_d_primes, math.nan),
    )


@dataclass(frozen=True)
class Metacognition:
    """Sensitivities with intervals by item."""

    d_prime: Estimate
    meta_d_prime: Estimate
    m_ratio: Estimate


def undefined_metacognition(reason: str) -> Metacognition:
    """Nothing could be fitted, with the reason."""
    absent = undefined(reason)
    return Metacognition(absent, absent, absent)


def metacognition(
    chances: FloatArray, outcomes: FloatArray, clusters: IntArray, edges: FloatArray
) -> Metacognition:
    """meta-d' and M-ratio of stated chances, with bootstrap intervals by cluster.

    M-ratio is absent where the share right is not shown to be above one half.

    Args:
        chances, outcomes, clusters: `[item]`, without NaN.
        edges: Those of `rating_edges`, the same for all models.
    """
    cluster_count = len(np.unique(clusters))
    if cluster_count < FEWEST_RATED:
        return undefined_metacognition(f"{cluster_count} items; {FEWEST_RATED} are the least")
    wrong_count = float((1 - outcomes).sum())
    rarer_count = min(wrong_count, len(outcomes) - wrong_count)
    if rarer_count < FEWEST_OF_A_KIND:
        kind = "wrong" if wrong_count == rarer_count else "right"
        return undefined_metacognition(
            f"{rarer_count:g} of its items are {kind}; {FEWEST_OF_A_KIND} are the least"
        )
    ratings = np.searchsorted(edges, chances, side="right")
    is_rated = np.eye(RATING_COUNT)[ratings]
    indicators = np.concatenate([is_rated.T * outcomes, is_rated.T * (1 - outcomes)])

    fitted_by_counts: dict[bytes, tuple[FloatArray, FloatArray]] = {}

    def estimated(value_of: Callable[[FloatArray, FloatArray], FloatArray]) -> Estimate:
        """Estimate of a function of d' and meta-d'; all have the same resamples."""

        def statistic(*shares: Any) -> Any:
            counts = np.array(shares).reshape(2, RATING_COUNT, -1) * len(chances)
            counts_key = counts.tobytes()
            if counts_key not in fitted_by_counts:
                fitted_by_counts[counts_key] = rated_meta_d(counts[0].T, counts[1].T)
            values = value_of(*fitted_by_counts[counts_key])
            return values if np.ndim(shares[0]) else values[0]

        return bootstrap(
            statistic,
            *indicators,
            clusters=clusters,
            rng=np.random.default_rng(0),
            resamples=RATING_RESAMPLES,
            of_means=True,
        )

    meta_d_prime = estimated(lambda d_primes, meta_d_primes: meta_d_primes)
    if math.isnan(meta_d_prime.value):
        return undefined_metacognition("it states chances of one rating alone")
    d_prime = estimated(lambda d_primes, meta_d_primes: d_primes)
    if d_prime.low > 0:
        m_ratio = estimated(_ratios)
    else:
        m_ratio = undefined("its share right is not shown to be above one half")
    return Metacognition(d_prime, meta_d_prime, m_ratio)


def _ratios(d_primes: FloatArray, meta_d_primes: FloatArray) -> FloatArray:
    """M-ratios; NaN where d' is not above 0."""
    is_above = d_primes > 0
    return np.where(is_above, meta_d_primes / np.where(is_above, d_primes, 1.0), math.nan)


# ---- dimensions


@dataclass(frozen=True)
class Dimensions:
    """Eigenvalues of the correlations of models' statements over items, the largest first."""

    count: int
    """Number of leading eigenvalues above those of the null."""
    eigenvalues: FloatArray
    null_eigenvalues: FloatArray
    """95 % quantile of each by chance."""
    items: int


def count_dimensions(chances: npt.ArrayLike, clusters: IntArray) -> Dimensions | str:
    """Number of dimensions in which models' stated chances vary over items, by parallel analysis
    (Horn 1965): the null shuffles the items of each model.

    Args:
        chances: `[model, item]`; items that a model stated nothing of do not count.
        clusters: `[item]`; the mean logit of each cluster counts.

    Returns:
        The dimensions, or the reason why there are none.
    """
    values = np.asarray(chances, dtype=float)
    if len(values) < FEWEST_MODELS:
        return f"{len(values)} models; {FEWEST_MODELS} are the least"
    is_complete = ~np.isnan(values).any(axis=0)
    logits = special.logit(np.clip(values[:, is_complete], LOGIT_CLIP, 1 - LOGIT_CLIP))
    cluster_numbers = np.unique(clusters[is_complete], return_inverse=True)[1]
    cluster_sizes = np.bincount(cluster_numbers)
    unit_count = len(cluster_sizes)
    if unit_count < FEWEST_RATED:
        return f"{unit_count} items with all statements; {FEWEST_RATED} are the least"
    means = np.array([np.bincount(cluster_numbers, row) / cluster_sizes for row in logits])
    means = means[np.ptp(means, axis=1) > 0]
    if len(means) < FEWEST_MODELS:
        return f"{len(means)} models with statements that differ; {FEWEST_MODELS} are the least"

    rng = np.random.default_rng(0)
    eigenvalues = _sorted_eigenvalues(means)
    null_draws = np.array(
        [_sorted_eigenvalues(rng.permuted(means, axis=1)) for _ in range(NULL_DRAWS)]
    )
    null_eigenvalues = np.quantile(null_draws, NULL_QUANTILE, axis=0, method="weibull")
    is_above = eigenvalues > null_eigenvalues
    count = int(np.cumprod(is_above).sum())
    return Dimensions(count, eigenvalues, null_eigenvalues, unit_count)


def _sorted_eigenvalues(rows: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.eigvalsh(np.corrcoef(rows))[::-1])


# ---- routing


@dataclass(frozen=True)
class Routing:
    """What asking for help below a threshold gains, where help is right at a price."""

    price: float
    threshold: float
    """Stated chance from which on to act, best over all items."""
    helped: float
    """Share of items with a lower one."""
    over_acting: Estimate
    """Gain by item over always acting, thresholds chosen on other items."""
    over_asking: Estimate
    """The same over always asking for help."""


def routing(chances: FloatArray, outcomes: FloatArray, clusters: IntArray, price: float) -> Routing:
    """Gain of acting where the stated chance is high and asking for help elsewhere.

    Acting gains the outcome (1 or 0), asking gains 1 - price. Thresholds are chosen in five folds of
    clusters, each on the other folds.

    Args:
        chances, outcomes, clusters: `[item]`, without NaN.
        price: Price of help, in units of a failure.
    """
    cluster_numbers = np.unique(clusters, return_inverse=True)[1]
    cluster_count = int(cluster_numbers.max()) + 1 if len(cluster_numbers) else 0
    if cluster_count < FEWEST_RATED:
        absent = undefined(f"{cluster_count} items; {FEWEST_RATED} are the least")
        return Routing(price, math.nan, math.nan, absent, absent)
    fold_by_cluster = np.random.default_rng(0).permutation(cluster_count) % ROUTING_FOLDS
    fold_by_item = fold_by_cluster[cluster_numbers]
    gains = np.empty(len(chances))
    for fold in range(ROUTING_FOLDS):
        is_tested = fold_by_item == fold
        threshold = _best_threshold(chances[~is_tested], outcomes[~is_tested], price)
        acts = chances[is_tested] >= threshold
        gains[is_tested] = np.where(acts, outcomes[is_tested], 1 - price)
    best_threshold = _best_threshold(chances, outcomes, price)
    return Routing(
        price,
        threshold=best_threshold,
        helped=float((chances < best_threshold).mean()),
        over_acting=_mean_gain(gains - outcomes, clusters),
        over_asking=_mean_gain(gains - (1 - price), clusters),
    )


def _best_threshold(chances: FloatArray, outcomes: FloatArray, price: float) -> float:
    """Threshold of greatest gain; 0 always acts, infinity always asks."""
    distinct_chances, chance_codes = np.unique(chances, return_inverse=True)
    gain_of_asking = np.bincount(chance_codes, 1 - price - outcomes)
    gains_below = np.concatenate([[0.0], np.cumsum(gain_of_asking)])
    thresholds = np.concatenate([[0.0], distinct_chances[1:], [math.inf]])
    return float(thresholds[gains_below.argmax()])


def _mean_gain(differences: FloatArray, clusters: IntArray) -> Estimate:
    return clustered_mean(differences, clusters, interval="t")
