"""Estimates with intervals by cluster, baselines, divergences and Holm's correction: arrays in,
frozen results out.

With clusters of one size the variances here are CR1's (statsmodels' OLS on a constant), and the
degrees of freedom clusters - 1. With unequal ones CR1 is too small and clusters - 1 too many: where
one of 40 clusters has half of the rows, 65 to 89 % of simulated 95 % t intervals hold the truth
with them, and 96 to 99 % with those here (docs/statistics.md).

One bootstrap, which everything else calls. A result that is undefined is NaN with a reason, never
0. Scores that were not given ("unscored") are NaN.
"""

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]

FEW_CLUSTERS = 6
"""Number of clusters below which equal clusters may be chance: a variance is then at least that of
independent rows.
"""
ROUNDING_VARIANCE = 1e-24
"""Largest variance that is rounding error."""


def cluster_errors(
    errors: FloatArray, cluster_of_row: IntArray, cluster_count: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Contribution of each cluster to the error of a mean, and its share of the rows, [cluster].

    Args:
        errors: Distance of each row from the mean.
        cluster_of_row: Cluster of each row, 0, 1, ….
        cluster_count: Least number of clusters; those without a row have a share of 0.
    """
    row_count = len(errors)
    contributions = np.bincount(cluster_of_row, errors, minlength=cluster_count) / row_count
    row_shares = np.bincount(cluster_of_row, minlength=cluster_count) / row_count
    return contributions, row_shares


def cr2_variance(errors: FloatArray, row_shares: FloatArray) -> float:
    """Variance of a mean (CR2, Bell & McCaffrey 2002), from each cluster's part of its error and
    share of rows.
    """
    return float((errors**2 / (1 - row_shares)).sum())


def jackknife_variance(errors: FloatArray, row_shares: FloatArray) -> float:
    """Variance of a mean by leaving out one cluster at a time (CR3), from the arrays that
    `cr2_variance` takes.
    """
    errors_without_cluster = errors / (1 - row_shares)
    n = np.count_nonzero(row_shares)
    return (n - 1) / n * float(errors_without_cluster @ errors_without_cluster)


def floored_variance(variance: float, clusters: int, *errors: FloatArray) -> float:
    """Variance of a mean, or of a sum of means; with fewer than FEW_CLUSTERS at least that of
    independent rows.

    Clusters that do not differ at all tell nothing of their spread, however many: then it is that
    of the rows too.

    Args:
        variance: Variance from the clusters.
        clusters: Number of clusters that it comes from.
        errors: Distance of each row from its mean, `[row]`, one array per mean.
    """
    if clusters >= FEW_CLUSTERS and variance > ROUNDING_VARIANCE:
        return variance
    variance_of_rows = 0.0
    for row_errors in errors:
        row_count = len(row_errors)
        sum_of_squares = float(row_errors @ row_errors)
        variance_of_rows += sum_of_squares / (row_count * max(row_count - 1, 1))
    return max(variance, variance_of_rows)


def bell_mccaffrey_df(row_shares: FloatArray) -> float:
    """Degrees of freedom of either variance, of each cluster's share of the rows (2002, Survey
    Methodology 28:169).

    >>> round(bell_mccaffrey_df(np.full(8, 1 / 8)), 9)
    7.0
    >>> round(bell_mccaffrey_df(np.array([0.9, 0.05, 0.05])), 2)
    1.11
    """
    spread = row_shares**2 / (1 - row_shares)
    return 1 / float(row_shares @ row_shares + spread.sum() ** 2 - spread @ spread)


def effective_size(scores: FloatArray, cluster_of_row: IntArray) -> float:
    """Number of independent scores in [0, 1] that would say as much about the mean as these in
    their clusters.

    At most their number where they are 0 or 1, and of fewer than FEW_CLUSTERS what they would know
    if they were independent. One further cluster counts, half right and half wrong: few wrong ones
    would pretend to be independent.
    """
    row_count = len(scores)
    cluster_count = int(cluster_of_row.max()) + 1
    further_rows = row_count / cluster_count  # rows of the further cluster
    total_rows = row_count + further_rows
    mean = (scores.sum() + further_rows / 2) / total_rows

    errors, row_shares = cluster_errors(scores - mean, cluster_of_row)
    variance = cr2_variance(errors * row_count / total_rows, row_shares * row_count / total_rows)
    further_share = further_rows / total_rows
    further_spread = (mean**2 + (1 - mean) ** 2) / 2
    variance += further_share**2 * further_spread / (1 - further_share)

    effective_count = float(row_count * mean * (1 - mean) / (variance * total_rows))
    if cluster_count < min(FEW_CLUSTERS, row_count):
        effective_count = min(effective_count, effective_size(scores, np.arange(row_count)))
    if np.isin(scores, (0, 1)).all():
        return min(effective_count, float(row_count))
    return effective_count


def t_quantile(df: float, tail: float = 0.025) -> float:
    """The value that t exceeds with a chance of `tail`: standard errors to either side of a 95 %
    interval.
    """
    return -float(special.stdtrit(df, tail))


def wilson(
    share: float, n: float, *, df: float = math.inf, level: float = 0.95
) -> tuple[float, float]:
    """Wilson's score interval for a share of n (possibly an effective n), with t(df) in the place
    of z.
    """
    t_squared = t_quantile(df, (1 - level) / 2) ** 2
    centre = (share + t_squared / (2 * n)) / (1 + t_squared / n)
    spread = math.sqrt(share * (1 - share) / n + t_squared / (4 * n**2))
    half_width = math.sqrt(t_squared) / (1 + t_squared / n) * spread
    return max(0.0, centre - half_width), min(1.0, centre + half_width)


MIN_SKILL_CLUSTERS = 5
"""Number of clusters from which a skill over a baseline that varies has an interval; see `skill`.
"""


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, e.g. `Estimate(.62, .55, .69, n=200, unit="question")`."""

    value: float
    """The point estimate; NaN where undefined."""
    low: float
    """Lower end of the interval (95 % unless asked otherwise); NaN where undefined."""
    high: float
    """Upper end of the interval; NaN where undefined."""
    n: int
    """Number of independent units (clusters) that carry a score: what was resampled."""
    unit: str
    """Name of one such unit: "item", "question", "model"."""
    reason: str = ""
    """Reason why the value or its interval is undefined, or what was left out; else empty."""
    se: float = math.nan
    """Cluster-robust standard error, for a mean alone; NaN where the values are all equal."""
    df: float = math.nan
    """Degrees of freedom of a mean's interval: clusters - 1 where all hold as many rows, else
    fewer.
    """


def undefined(reason: str, *, n: int = 0, unit: str = "item", value: float = math.nan) -> Estimate:
    """An estimate without an interval (and, unless `value` is passed, without a value) that gives a
    reason.
    """
    return Estimate(value, math.nan, math.nan, n, unit, reason)


def number_or_nan(value: float | None) -> float:
    """A score; NaN where it was not given."""
    return math.nan if value is None else float(value)


def shifted(estimate: Estimate, shift: float) -> Estimate:
    """An estimate and its interval, plus a shift."""
    return replace(
        estimate,
        value=estimate.value + shift,
        low=estimate.low + shift,
        high=estimate.high + shift,
    )


def interval_numbers(name: str, estimate: Estimate) -> dict[str, float]:
    """An estimate among other numbers: `name`, `name_low`, `name_high`."""
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def complement(share: Estimate) -> Estimate:
    """1 less a share, with its interval."""
    return replace(share, value=1 - share.value, low=1 - share.high, high=1 - share.low)


def bootstrap(
    statistic: Callable[..., Any],
    *arrays: npt.ArrayLike,
    clusters: npt.ArrayLike,
    rng: np.random.Generator,
    resamples: int = 2000,
    level: float = 0.95,
    unit: str = "item",
    of_means: bool = False,
) -> Estimate:
    """Cluster bootstrap: whole clusters are drawn with replacement, all their rows together.

    `arrays` share their first axis (rows) with `clusters`, one label a row. `statistic(*arrays)`
    gets the rows of the drawn clusters and returns a float, NaN where undefined: such resamples are
    left out, and counted in `reason`. With `of_means` it gets the mean of each array instead,
    floats for the value itself and one call with arrays [resample] for the rest, which takes no
    time. The interval is Hesterberg's expanded percentile interval (2015, The American Statistician
    69:371): for a mean as wide as the t interval with clusters - 1 degrees of freedom. Of fewer
    than six clusters (`FEW_CLUSTERS`) single rows are drawn too, and the interval holds both: two
    clusters have three resamples, and theirs held the truth in half of simulations. One cluster, or
    the same value in every resample, tells nothing about the spread: the interval is then NaN with
    a reason.
    """
    data = [np.asarray(array) for array in arrays]
    labels = np.asarray(clusters)
    if not data or labels.ndim != 1 or any(array.shape[:1] != labels.shape for array in data):
        shapes = [array.shape for array in data]
        raise ValueError(
            f"expected arrays with one row for each of {labels.shape} cluster labels, got {shapes}"
        )
    if resamples < 100 or not 0 < level < 1:
        raise ValueError(
            f"expected resamples >= 100 and a level in (0, 1), got {resamples} and {level}"
        )

    if len(labels) == 0:
        return undefined("no data", unit=unit)
    cluster_of_row = np.unique(labels, return_inverse=True)[1]
    cluster_count = int(cluster_of_row.max()) + 1
    if of_means:
        value = float(statistic(*(array.mean() for array in data)))
    else:
        value = float(statistic(*data))
    if math.isnan(value):
        return undefined("the statistic is undefined for these data", n=cluster_count, unit=unit)
    if cluster_count < 2:
        return undefined(f"no interval from one {unit}", n=cluster_count, unit=unit, value=value)

    draws_of_kinds = [_draws(statistic, data, cluster_of_row, rng, resamples, of_means)]
    if cluster_count < min(FEW_CLUSTERS, len(cluster_of_row)):
        row_order = _canonical_row_order(data, cluster_of_row)
        ordered_data = [array[row_order] for array in data]
        each_row = np.arange(len(row_order))
        draws_of_kinds.append(_draws(statistic, ordered_data, each_row, rng, resamples, of_means))

    defined_draws = [draws[~np.isnan(draws)] for draws in draws_of_kinds]
    drawn_count = resamples * len(draws_of_kinds)
    undefined_count = drawn_count - sum(map(len, defined_draws))
    reason = ""
    if undefined_count:
        reason = f"{undefined_count} of {drawn_count} resamples undefined, left out"
    if not all(map(len, defined_draws)) or _are_equal(defined_draws, value):
        return undefined(
            reason or "every resample gives the same value",
            n=cluster_count,
            unit=unit,
            value=value,
        )

    expansion = math.sqrt(cluster_count / (cluster_count - 1))
    tail = special.ndtr(-expansion * t_quantile(cluster_count - 1, (1 - level) / 2))
    lows: list[float] = []
    highs: list[float] = []
    for draws in defined_draws:
        # "weibull": unbiased tails for few resamples
        low, high = np.quantile(draws, [tail, 1 - tail], method="weibull")
        lows.append(float(low))
        highs.append(float(high))
    return Estimate(value, min(lows), max(highs), cluster_count, unit, reason)


def _are_equal(draws_of_kinds: Sequence[FloatArray], value: float) -> bool:
    """Whether every resample gives the same value, but for rounding."""
    largest_range = max(map(np.ptp, draws_of_kinds))
    return bool(largest_range <= 1e-12 * max(abs(value), 1))


def _draws(
    statistic: Callable[..., Any],
    data: Sequence[npt.NDArray[Any]],
    cluster_of_row: IntArray,
    rng: np.random.Generator,
    resamples: int,
    of_means: bool,
) -> FloatArray:
    """The statistic of each resample of the clusters `cluster_of_row  # [row]`."""
    sizes = np.bincount(cluster_of_row)
    cluster_count = len(sizes)
    if of_means:
        equal_chances = np.full(cluster_count, 1 / cluster_count)
        draw_counts = rng.multinomial(cluster_count, equal_chances, size=resamples)
        drawn_rows = draw_counts @ sizes
        means = [draw_counts @ np.bincount(cluster_of_row, array) / drawn_rows for array in data]
        return np.asarray(statistic(*means))

    values: list[Any] = []
    for _ in range(resamples):
        rows = _rows_of_drawn_clusters(cluster_of_row, sizes, rng)
        values.append(statistic(*[array[rows] for array in data]))
    return np.array(values, dtype=float)


def _canonical_row_order(data: Sequence[npt.NDArray[Any]], cluster_of_row: IntArray) -> IntArray:
    """Order of the rows by cluster and values, which does not depend on the order in which they
    came.
    """
    sort_keys: list[IntArray] = []
    for array in data:
        axis = 0 if array.ndim > 1 else None
        codes = np.unique(array, axis=axis, return_inverse=True)[1]
        sort_keys.append(codes.ravel())
    sort_keys.append(cluster_of_row)
    return np.asarray(np.lexsort(sort_keys))


def _rows_of_drawn_clusters(cluster_of_row: Any, sizes: Any, rng: np.random.Generator) -> Any:
    """Rows of as many clusters as there are, drawn with replacement."""
    row_order = np.argsort(cluster_of_row, kind="stable")
    cluster_starts = np.cumsum(sizes) - sizes
    drawn_clusters = rng.integers(len(sizes), size=len(sizes))
    drawn_sizes = sizes[drawn_clusters]
    ends = np.cumsum(drawn_sizes)
    offsets = cluster_starts[drawn_clusters] - ends + drawn_sizes
    return row_order[np.repeat(offsets, drawn_sizes) + np.arange(ends[-1])]


def clustered_mean(
    values: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    unit: str = "item",
    level: float = 0.95,
    interval: Literal["auto", "wilson", "t", "difference"] = "auto",
) -> Estimate:
    """Mean of the scored `values  # [row]` with an interval robust to correlation within clusters.

    NaN is unscored and left out; `n` counts the clusters that have a score. The standard error is
    the jackknife's, with Bell & McCaffrey's degrees of freedom: those of statsmodels' OLS on a
    constant where clusters are of one size; of few clusters at least that of independent rows
    (`floored_variance`).

    "t": mean ± t·SE. "wilson": Wilson's score interval with t for z and for n the effective size
    mean(1 - mean)/SE² (Korn & Graubard 1998; Franco et al. 2019), as `effective_size` finds it.
    "auto": Wilson when all values lie in [0, 1]; say "t" for divergences, which may lie there by
    chance.
    "difference": of two scores in [0, 1], Wilson's on [-1, 1], the further cluster half at either
    end; a single value may be more than 1, where what is taken off varies too. On simulated
    item-specific scores it covers .89 to 1.0, where t covers .21 to 1.0.
    """
    all_scores = np.asarray(values, dtype=float)
    labels = np.asarray(clusters)
    if all_scores.ndim != 1 or all_scores.shape != labels.shape:
        raise ValueError(
            f"expected one cluster label for each value, got {labels.shape} for {all_scores.shape}"
        )
    if np.isinf(all_scores).any():
        raise ValueError("values must be finite, or NaN where unscored; got an infinite one")

    is_scored = ~np.isnan(all_scores)
    scores = all_scores[is_scored]
    if len(scores) == 0:
        return undefined("nothing was scored", unit=unit)
    cluster_of_row = np.unique(labels[is_scored], return_inverse=True)[1]
    n = int(cluster_of_row.max()) + 1
    mean = float(scores.mean())

    are_bounded = bool(((scores >= 0) & (scores <= 1)).all())
    if interval == "wilson" and not are_bounded:
        raise ValueError(
            f"expected values in [0, 1] for wilson, got {scores.min():g} to {scores.max():g}"
        )
    if interval == "difference" and abs(mean) > 1 + 1e-9:
        raise ValueError(
            f"expected differences of scores in [0, 1], got {scores.min():g} to {scores.max():g}"
        )
    if n < 2:
        return undefined(f"no interval from one {unit}", n=n, unit=unit, value=mean)

    errors, row_shares = cluster_errors(scores - mean, cluster_of_row)
    variance = floored_variance(jackknife_variance(errors, row_shares), n, scores - mean)
    se = math.sqrt(variance)
    known_se = se if se > 1e-12 else math.nan
    df = bell_mccaffrey_df(row_shares)

    if interval == "difference":
        share = np.clip((mean + 1) / 2, 0, 1)
        effective_n = effective_size((scores + 1) / 2, cluster_of_row)
        low, high = wilson(share, effective_n, df=df, level=level)
        return Estimate(mean, 2 * low - 1, 2 * high - 1, n, unit, se=known_se, df=df)
    if interval == "wilson" or (interval == "auto" and are_bounded):
        low, high = wilson(mean, effective_size(scores, cluster_of_row), df=df, level=level)
        return Estimate(mean, low, high, n, unit, se=known_se, df=df)

    if se <= 1e-12 * max(abs(mean), 1):
        return undefined("all values are equal", n=n, unit=unit, value=mean)
    half_width = t_quantile(df, (1 - level) / 2) * se
    return Estimate(mean, mean - half_width, mean + half_width, n, unit, se=se, df=df)


def mode_baseline(
    truths: Iterable[Any],
    clusters: npt.ArrayLike | None = None,
    *,
    right: Callable[[Any, Any], bool] = operator.eq,
) -> FloatArray:
    """Hits in [0, 1] of saying the truth that is right most often for the *other* items, for
    `truths  # [row]`.

    With equality that is the most frequent truth; else `right(said, truth)` is the grading rule.
    Rows with the same label in `clusters` are one item, left out together. A single item has no
    others: NaN. Truths that tie are guessed alike, and a hit is their expected one. A truth that
    some other item has, and that would tie with the item's own rows counted, ties too: leaving it
    out would else make every guess wrong where truths are equally frequent. So the baseline is, if
    anything, above what such a guess reaches on new items.
    """
    guesses, truth_codes = np.unique(np.asarray(list(truths)), return_inverse=True)
    row_count = len(truth_codes)
    labels = np.arange(row_count) if clusters is None else np.asarray(clusters)
    items = np.unique(labels, return_inverse=True)[1]
    if truth_codes.ndim != 1 or items.shape != truth_codes.shape:
        raise ValueError(
            f"expected one cluster label for each truth, got {items.shape} for {truth_codes.shape}"
        )

    is_right = np.eye(len(guesses))  # [guess, truth]
    if right is not operator.eq:
        for row, guess in enumerate(guesses):
            is_right[row] = [bool(right(guess, truth)) for truth in guesses]
    truth_counts = np.bincount(truth_codes)
    hits = np.full(row_count, math.nan)
    row_order = np.argsort(items, kind="stable")
    item_starts = np.flatnonzero(np.diff(items[row_order])) + 1
    for rows in np.split(row_order, item_starts):
        if len(rows) == row_count:
            continue
        own_counts = np.bincount(truth_codes[rows], minlength=len(truth_counts))
        other_counts = truth_counts - own_counts
        right_in_others = other_counts if right is operator.eq else is_right @ other_counts
        right_in_own = own_counts if right is operator.eq else is_right @ own_counts

        best = right_in_others.max()
        ties_with_best = right_in_others + right_in_own >= best
        is_tied = ties_with_best & (right_in_others >= min(1, best))
        hits[rows] = is_right[is_tied][:, truth_codes[rows]].mean(axis=0)
    return hits


def skill(
    values: npt.ArrayLike, baseline: npt.ArrayLike, clusters: npt.ArrayLike, *, unit: str = "item"
) -> Estimate:
    """Share of the way from the baseline to a perfect score: (s - b)/(1 - b), s and b the two
    means.

    `values` and `baseline  # [decision]` with the item of each in `clusters`. Undefined where the
    baseline is perfect. The interval is that of s, as wide as s and b together vary: of
    s - (1 - s)/(1 - b)·(b_i - mean b), linearised. Of fewer than five clusters a baseline that
    varies leaves it without one.
    """
    scores = np.asarray(values, dtype=float)
    hits = np.asarray(baseline, dtype=float)
    cluster_count = len(np.unique(np.asarray(clusters)))
    if hits.size == 0:
        return undefined("no data", n=cluster_count, unit=unit)
    baseline_mean = float(hits.mean())
    if not baseline_mean < 1:
        return undefined("the baseline is perfect", n=cluster_count, unit=unit)

    score_mean = scores.mean()
    are_bounded = bool(((scores >= 0) & (scores <= 1)).all())
    # has the mean of the scores
    linearised = scores - (1 - score_mean) / (1 - baseline_mean) * (hits - baseline_mean)
    if np.ptp(hits) == 0:
        score = clustered_mean(scores, clusters, unit=unit)
    elif cluster_count < MIN_SKILL_CLUSTERS:
        units = unit if cluster_count == 1 else f"{unit}s"
        return undefined(
            f"the baseline varies too much for an interval from {cluster_count} {units}",
            n=cluster_count,
            unit=unit,
            value=float((score_mean - baseline_mean) / (1 - baseline_mean)),
        )
    elif are_bounded and score_mean >= baseline_mean:
        # below the baseline, what varies together leaves [0, 1] by far
        doubled = clustered_mean(2 * linearised - 1, clusters, unit=unit, interval="difference")
        score = Estimate(
            value=(doubled.value + 1) / 2,
            low=(doubled.low + 1) / 2,
            high=(doubled.high + 1) / 2,
            n=doubled.n,
            unit=unit,
        )
    else:
        score = clustered_mean(linearised, clusters, unit=unit, interval="t")

    def above_baseline(mean: float) -> float:
        return float((mean - baseline_mean) / (1 - baseline_mean))

    return Estimate(
        value=above_baseline(score.value),
        low=above_baseline(score.low),
        high=above_baseline(score.high),
        n=score.n,
        unit=unit,
        reason=score.reason,
    )


def worst_case(values: npt.ArrayLike, unscored: int) -> tuple[float, float]:
    """Mean of scores in [0, 1] if all `unscored` ones were wrong, and if they were right. NaN
    without any.
    """
    scores = np.asarray(values, dtype=float)
    if unscored < 0 or not ((scores >= 0) & (scores <= 1)).all():
        raise ValueError(
            f"expected scored values in [0, 1] and unscored >= 0, got {scores} and {unscored}"
        )
    total_count = scores.size + unscored
    if total_count == 0:
        return math.nan, math.nan
    lowest_mean = float(scores.sum() / total_count)
    highest_mean = float((scores.sum() + unscored) / total_count)
    return lowest_mean, highest_mean


def _probabilities(name: str, values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=float)
    if ((array < 0) | (array > 1)).any():
        raise ValueError(
            f"{name} must hold probabilities in [0, 1] (NaN where unscored), got {array}"
        )
    return array


def smoothed(p: npt.ArrayLike, n: npt.ArrayLike) -> FloatArray:
    """Jeffreys-smoothed mean probability over n rollouts, (n·p + ½)/(n + 1): never 0 or 1;
    broadcasts.
    """
    means = _probabilities("p", p)
    rollouts = np.asarray(n, dtype=float)
    if (rollouts < 1).any():
        raise ValueError(f"n must be at least 1 rollout, got {rollouts}")
    return np.asarray((rollouts * means + 0.5) / (rollouts + 1))


def kl(p: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
    """KL(Bernoulli(p) ‖ Bernoulli(q)) in nats, elementwise; NaN stays NaN, infinite where q rules p
    out.
    """
    p_values = _probabilities("p", p)
    q_values = _probabilities("q", q)
    return np.asarray(
        special.rel_entr(p_values, q_values) + special.rel_entr(1 - p_values, 1 - q_values)
    )


def js(p: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
    """Jensen–Shannon divergence of Bernoulli(p) and Bernoulli(q) in nats, elementwise: at most ln
    2.
    """
    middle = (_probabilities("p", p) + _probabilities("q", q)) / 2
    return np.asarray((kl(p, middle) + kl(q, middle)) / 2)


def jsd(distributions: npt.ArrayLike) -> FloatArray:
    """Equal-weight JSD in nats of `distributions  # [..., judge, option]` (IntrospectBench, F.4,
    Algorithm 1).
    """
    judge_distributions = _probabilities("distributions", distributions)
    sums = np.zeros(1)
    if judge_distributions.ndim >= 2:
        sums = judge_distributions.sum(axis=-1)
    if judge_distributions.ndim < 2 or (np.abs(sums - 1) > 1e-6).any():
        raise ValueError(
            f"expected [..., judge, option] summing to 1 over options (normalise first), got {sums}"
        )
    mixture = judge_distributions.mean(axis=-2, keepdims=True)
    divergences = special.rel_entr(judge_distributions, mixture).sum(axis=-1)
    return np.asarray(divergences.mean(axis=-1))


def holm(pvalues: npt.ArrayLike) -> FloatArray:
    """Holm-adjusted `pvalues  # [test]`; an undefined one (NaN) stays NaN and is no member of the
    family.

    Not statsmodels' multipletests, which collects garbage at every call (0.1 s); the tests compare
    the two.
    """
    p = _probabilities("pvalues", pvalues)
    defined_count = np.count_nonzero(~np.isnan(p))
    order = np.argsort(p)[:defined_count]
    multiplied = p[order] * np.arange(defined_count, 0, -1)
    adjusted = np.full(p.shape, math.nan)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(multiplied))
    return adjusted


def p_of_mean(mean: Estimate) -> float:
    """p of the hypothesis that a mean is 0, by its t; NaN where it has no standard error."""
    return two_sided_p(mean.value / mean.se, mean.df) if mean.se > 0 else math.nan


def two_sided_p(t: float, df: float) -> float:
    """p of no difference at a t value with so many degrees of freedom."""
    return 2 * float(special.stdtr(df, -abs(t)))


# ---- AUROC of scores for two classes, accuracies and F1 of verdicts: fast enough to bootstrap Each
# is a function of arrays with one entry a row; the probes' tables ask for many columns or shuffles
# at a time, for which `auroc_table` and `f1_of_counts` compute the same numbers.


def auroc(positive: BoolArray, scores: FloatArray) -> float:
    """Chance that a positive row scores above a negative one, ties half (Mann–Whitney); NaN with
    one class.

    A row whose score is NaN is left out. Not scikit-learn's, which takes fifty times as long: the
    bootstrap calls it two thousand times.
    """
    if np.isnan(scores).any():
        is_rated = ~np.isnan(scores)
        positive = positive[is_rated]
        scores = scores[is_rated]
    positive_scores = scores[positive]
    negative_scores = np.sort(scores[~positive])
    pair_count = len(positive_scores) * len(negative_scores)
    if pair_count == 0:
        return math.nan
    return float(half_counts_below(positive_scores, negative_scores).sum() / (2 * pair_count))


def half_counts_below(scores: FloatArray, sorted_scores: FloatArray) -> IntArray:
    """Twice the number of sorted scores below each of `scores  # [row]`, where a tie counts half."""
    below_counts = np.searchsorted(sorted_scores, scores, side="left")
    not_above_counts = np.searchsorted(sorted_scores, scores, side="right")
    return np.asarray(below_counts + not_above_counts)


def auroc_table(positive: BoolArray, scores: FloatArray) -> FloatArray:
    """`auroc` [k, m] of all `scores  # [k, row]` under all labels `positive  # [m, row]`, both
    classes in each.
    """
    from scipy.stats import rankdata  # here: slow to import

    ranks = rankdata(scores, axis=1)
    positive_counts = positive.sum(axis=1)
    negative_counts = positive.shape[1] - positive_counts
    least_rank_sums = positive_counts * (positive_counts + 1) / 2
    wins = ranks @ positive.T.astype(float) - least_rank_sums
    return np.asarray(wins / (positive_counts * negative_counts))


def accuracy(positive: BoolArray, scores: FloatArray) -> float:
    """Share of rows whose score has the right sign, above 0 for positive; a score of exactly 0 is a
    tie, half right.
    """
    truth = np.where(positive, 1.0, -1.0)
    return float(np.mean(0.5 + truth * np.sign(scores) / 2)) if len(truth) else math.nan


def balanced_accuracy(positive: BoolArray, called: BoolArray) -> float:
    """Mean of both classes' shares of right verdicts; NaN with one class."""
    if positive.all() or not positive.any():
        return math.nan
    return float((called[positive].mean() + (~called[~positive]).mean()) / 2)


def weighted_f1(truth: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float:
    """F1 of each label in `truth  # [row]`, weighted by how often it occurs; any other label
    `predicted` is a miss.

    scikit-learn's f1_score(average="weighted"); NaN without a row.
    """
    labels = np.unique(truth)[:, None]
    is_true = truth == labels  # [label, row]
    is_predicted = predicted == labels
    hits = (is_true & is_predicted).sum(axis=1)
    return float(f1_of_counts(hits, is_predicted.sum(axis=1), is_true.sum(axis=1)))


def f1_of_counts(
    hits: npt.ArrayLike, predicted: npt.ArrayLike, support: npt.ArrayLike
) -> FloatArray:
    """`weighted_f1` [...] from counts of rows [label, ...]: correct verdicts, verdicts, and truths
    for each label.
    """
    hit_counts = np.asarray(hits, dtype=float)
    predicted_counts = np.asarray(predicted, dtype=float)
    true_counts = np.asarray(support, dtype=float)
    claimed_or_true = np.maximum(predicted_counts + true_counts, 1)
    weighted_sum = (true_counts * 2 * hit_counts / claimed_or_true).sum(axis=0)
    with np.errstate(invalid="ignore"):  # without a row: NaN
        return np.asarray(weighted_sum / true_counts.sum(axis=0))


def spearman(x: npt.ArrayLike, y: npt.ArrayLike, *, unit: str = "model") -> Estimate:
    """Rank correlation of two columns [row], ties averaged, with Fisher's z interval (Bonett &
    Wright 2000).

    Rows with a NaN on either side are left out. Undefined with fewer than three rows or a column of
    equal values; no interval with fewer than four, or at exactly ±1.
    """
    from scipy.stats import rankdata  # here: slow to import

    x_values = np.asarray(x, dtype=float)
    y_values = np.asarray(y, dtype=float)
    is_complete = ~(np.isnan(x_values) | np.isnan(y_values))
    x_values = x_values[is_complete]
    y_values = y_values[is_complete]
    n = int(is_complete.sum())
    if n < 3:
        return undefined(f"fewer than three {unit}s", n=n, unit=unit)
    if np.ptp(x_values) == 0 or np.ptp(y_values) == 0:
        return undefined("all values of a column are equal", n=n, unit=unit)

    rho = float(np.corrcoef(rankdata(x_values), rankdata(y_values))[0, 1])
    if n < 4:
        return undefined(f"no interval from {n} {unit}s", n=n, unit=unit, value=rho)
    if abs(rho) > 1 - 1e-12:
        return undefined("no interval at ±1", n=n, unit=unit, value=rho)
    half_width = 1.959964 * math.sqrt((1 + rho**2 / 2) / (n - 3))
    fisher_z = math.atanh(rho)
    return Estimate(
        rho, math.tanh(fisher_z - half_width), math.tanh(fisher_z + half_width), n, unit
    )
