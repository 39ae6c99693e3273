"""Shares and AUROCs of clustered rows, and differences of them, with intervals that hold near 0 and
1.

Rows of one cluster (a source) are alike. Each estimate keeps what every cluster adds to its error,
so that estimates on the same rows, on other rows of the same clusters, or on rows of other clusters
are compared by one function, `difference`. Coverage by simulation: docs/statistics.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import (
    FEW_CLUSTERS,
    ROUNDING_VARIANCE,
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    bell_mccaffrey_df,
    cluster_errors,
    clustered_mean,
    cr2_variance,
    floored_variance,
    half_counts_below,
    t_quantile,
    undefined,
)


@dataclass(frozen=True)
class Part:
    """An estimate, and the contributions of each cluster and each row to its error."""

    estimate: Estimate
    errors: FloatArray
    """Contributions [cluster] of all clusters that were named, sorted by name; they sum to 0. Empty
    if undefined.
    """
    rows: FloatArray
    """Contributions [row] of all rows that were passed; they sum to the same."""

    @classmethod
    def undefined(cls, reason: str, *, n: int = 0, unit: str) -> "Part":
        """A part without a value."""
        return cls(undefined(reason, n=n, unit=unit), np.empty(0), np.empty(0))


def resampling_units(
    sources: Sequence[str],
    conversations: Sequence[str],
    groups: Sequence[str],
    *,
    conversation_unit: str = "conversation",
) -> tuple[npt.NDArray[np.str_], str]:
    """The cluster of each row and the clusters' name: the source, where each group holds several.

    One source has no spread that could be seen. So a source that stands alone in a group of rows (a
    label, a set) is taken apart into its conversations, and the interval is about other
    conversations of that source. `conversation_unit` is their name.
    """
    sources_of_group: dict[str, set[str]] = {}
    for source, group in zip(sources, groups, strict=True):
        sources_of_group.setdefault(group, set()).add(source)
    lone_sources: set[str] = set()
    for group_sources in sources_of_group.values():
        if len(group_sources) == 1:
            lone_sources |= group_sources

    units: list[str] = []
    for source, conversation in zip(sources, conversations, strict=True):
        units.append(f"{source}: {conversation}" if source in lone_sources else source)

    if not lone_sources:
        unit_name = "source"
    elif lone_sources >= set(sources):
        unit_name = conversation_unit
    else:
        unit_name = f"source or {conversation_unit}"
    return np.array(units, dtype=str), unit_name


def clustered_share(
    values: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    is_counted: npt.ArrayLike | None = None,
    unit: str,
) -> Part:
    """Share of `values  # [row]` (0 or 1, NaN unscored) over the rows `is_counted`, clustered, on the
    logit scale.

    The variance is cluster-robust (CR2; Bell & McCaffrey 2002, Survey Methodology 28:169), with the
    floors of `clustered_auroc` and t with Bell & McCaffrey's degrees of freedom: clusters − 1 where
    all hold as many rows. Where that is wider than the exact interval (Clopper & Pearson) of rows
    that are all alike in their cluster, which count as Kish weighs them (Korn & Graubard 1998,
    Survey Methodology 24:193), it is that one: 8 of 8 clusters of one row each give .63 to 1.
    """
    scores = np.asarray(values, dtype=float)
    is_used = ~np.isnan(scores)
    if is_counted is not None:
        is_used &= np.asarray(is_counted, dtype=bool)
    cluster_names, cluster_of_row = np.unique(np.asarray(clusters), return_inverse=True)
    n = len(np.unique(cluster_of_row[is_used]))
    row_count = int(is_used.sum())
    if row_count == 0:
        return Part.undefined("nothing was scored", unit=unit)

    share = float(scores[is_used].mean())
    deviations = scores[is_used] - share
    errors, row_shares = cluster_errors(deviations, cluster_of_row[is_used], len(cluster_names))
    row_errors = _row_errors(deviations, is_used)
    if n < 2:
        no_interval = undefined(f"no interval from one {unit}", n=n, unit=unit, value=share)
        return Part(no_interval, errors, row_errors)

    low, high = _share_interval(
        share,
        row_count,
        floored_variance(cr2_variance(errors, row_shares), n, deviations),
        df=bell_mccaffrey_df(row_shares),
        effective_rows=1 / float(row_shares @ row_shares),
    )
    return Part(Estimate(share, low, high, n, unit), errors, row_errors)


def clustered_mean_part(
    values: npt.ArrayLike, clusters: npt.ArrayLike, *, is_counted: npt.ArrayLike, unit: str
) -> Part:
    """Mean of `values  # [row]` (NaN unscored) over the rows `is_counted`, as `clustered_mean` has it."""
    scores = np.asarray(values, dtype=float)
    labels = np.asarray(clusters)
    is_used = ~np.isnan(scores) & np.asarray(is_counted, dtype=bool)
    estimate = clustered_mean(scores[is_used], labels[is_used], unit=unit)
    if not is_used.any():
        return Part(estimate, np.empty(0), np.empty(0))

    cluster_names, cluster_of_row = np.unique(labels, return_inverse=True)
    deviations = scores[is_used] - estimate.value
    errors, _ = cluster_errors(deviations, cluster_of_row[is_used], len(cluster_names))
    return Part(estimate, errors, _row_errors(deviations, is_used))


def _row_errors(deviations: FloatArray, is_used: BoolArray) -> FloatArray:
    """Contribution of every row to the error of a mean over the used ones; 0 of the others."""
    row_errors = np.zeros(len(is_used))
    row_errors[is_used] = deviations / len(deviations)
    return row_errors


def clustered_auroc(
    positive: npt.ArrayLike, scores: npt.ArrayLike, clusters: npt.ArrayLike, *, unit: str = "source"
) -> Part:
    """AUROC of `scores  # [row]` with an interval on the logit scale, clustered.

    The variance is Obuchowski's (1997, Biometrics 53:567): placement values summed by cluster. Few
    clusters whose AUROCs happen to be alike would make it too small: below six (`FEW_CLUSTERS`) it is at
    least what independent rows would have, and near the ends at least (2·AUROC − 1)² of it (Hanley
    & McNeil 1982, as Newcombe 2006 writes it). For z stands t, with Welch's degrees of freedom, at
    most clusters − 1. An AUROC of 0 or 1 counts half a row of the smaller class as misplaced, for
    the interval alone. A row whose score is NaN is left out.
    """
    values = np.asarray(scores, dtype=float)
    cluster_names, cluster_of_row = np.unique(np.asarray(clusters), return_inverse=True)
    is_rated = ~np.isnan(values)
    is_of_class = np.asarray(positive, dtype=bool)
    is_positive = is_of_class & is_rated
    is_negative = ~is_of_class & is_rated
    positive_clusters = np.unique(cluster_of_row[is_positive])
    negative_clusters = np.unique(cluster_of_row[is_negative])
    n = len(np.union1d(positive_clusters, negative_clusters))

    if not is_positive.any() or not is_negative.any():
        has_both_classes = 0 < np.count_nonzero(is_of_class) < len(values)
        reason = "no row of a class is rated" if has_both_classes else "one class alone"
        return Part.undefined(reason, n=n, unit=unit)

    positive_places, negative_places = _placements(values[is_positive], values[is_negative])
    area = float(positive_places.mean())
    positive_deviations = positive_places - area
    negative_deviations = negative_places - area
    positive_count = len(positive_places)
    negative_count = len(negative_places)

    row_errors = np.zeros(len(values))
    row_errors[is_positive] = positive_deviations / positive_count
    row_errors[is_negative] = negative_deviations / negative_count
    positive_errors = _sums_by_cluster(cluster_of_row, row_errors, is_positive, len(cluster_names))
    negative_errors = _sums_by_cluster(cluster_of_row, row_errors, is_negative, len(cluster_names))
    errors = positive_errors + negative_errors

    if min(len(positive_clusters), len(negative_clusters)) < 2:
        no_interval = undefined(f"a class with one {unit}", n=n, unit=unit, value=area)
        return Part(no_interval, errors, row_errors)

    positive_variance = _sum_variance(positive_errors, len(positive_clusters))
    negative_variance = _sum_variance(negative_errors, len(negative_clusters))
    covariance = n / (n - 1) * float(positive_errors @ negative_errors)
    variance = floored_variance(
        positive_variance + negative_variance + 2 * covariance,
        n,
        positive_deviations,
        negative_deviations,
    )
    centre = _off_the_end(area, min(positive_count, negative_count))
    df = _welch(
        positive_variance,
        negative_variance,
        [len(positive_clusters), len(negative_clusters)],
        n,
    )
    low, high = _logit_interval(
        area,
        centre,
        variance,
        independent_rows_variance=independent_variance(centre, positive_count, negative_count),
        df=df,
    )
    return Part(Estimate(area, low, high, n, unit), errors, row_errors)


def _sums_by_cluster(
    cluster_of_row: IntArray, row_errors: FloatArray, rows: BoolArray, cluster_count: int
) -> FloatArray:
    sums = np.bincount(cluster_of_row[rows], row_errors[rows], minlength=cluster_count)
    return np.asarray(sums, dtype=float)


def _sum_variance(cluster_errors_of_class: FloatArray, cluster_count: int) -> float:
    sum_of_squares = float(cluster_errors_of_class @ cluster_errors_of_class)
    return cluster_count / (cluster_count - 1) * sum_of_squares


def two_way_clustered_mean(
    values: npt.ArrayLike,
    first_clusters: npt.ArrayLike,
    second_clusters: npt.ArrayLike,
    *,
    unit: str,
    signed: bool = False,
) -> Estimate:
    """Mean of `values  # [pair]` in [0, 1], NaN unscored, where pairs share what stands on either
    side of them.

    The variance is that of clusters on both sides (Cameron, Gelbach & Miller 2011, JBES 29:238): of
    either side's clusters, less that of their crossings, and at least the largest of the three; t
    with the fewer degrees of freedom of the two sides. The rest is as in `clustered_share`.

    Args:
        values: Score of each pair.
        first_clusters, second_clusters: The cluster of either side, [pair].
        unit: Name of the first clusters; n counts them.
        signed: Whether values are differences in [−1, 1].
    """
    all_values = np.asarray(values, dtype=float)
    is_scored = ~np.isnan(all_values)
    scores = all_values[is_scored]
    if signed:
        scores = (scores + 1) / 2
    first_names, first_of_row = np.unique(
        np.asarray(first_clusters)[is_scored], return_inverse=True
    )
    second_names, second_of_row = np.unique(
        np.asarray(second_clusters)[is_scored], return_inverse=True
    )
    n = len(first_names)
    fewest_clusters = min(n, len(second_names))
    if len(scores) == 0:
        return undefined("nothing was scored", unit=unit)
    mean = float(scores.mean())
    value = 2 * mean - 1 if signed else mean
    if fewest_clusters < 2:
        return undefined("no interval from one cluster on a side", n=n, unit=unit, value=value)

    crossing_codes = first_of_row * len(second_names) + second_of_row
    crossing_of_row = np.unique(crossing_codes, return_inverse=True)[1]
    deviations = scores - mean
    first_errors, first_shares = cluster_errors(deviations, first_of_row)
    second_errors, second_shares = cluster_errors(deviations, second_of_row)
    crossing_errors, crossing_shares = cluster_errors(deviations, crossing_of_row)
    first_variance = cr2_variance(first_errors, first_shares)
    second_variance = cr2_variance(second_errors, second_shares)
    crossing_variance = cr2_variance(crossing_errors, crossing_shares)
    variance = max(
        first_variance + second_variance - crossing_variance,
        first_variance,
        second_variance,
        crossing_variance,
    )
    shared_weight = (
        first_shares @ first_shares
        + second_shares @ second_shares
        - crossing_shares @ crossing_shares
    )
    low, high = _share_interval(
        mean,
        len(scores),
        floored_variance(variance, fewest_clusters, deviations),
        df=min(bell_mccaffrey_df(first_shares), bell_mccaffrey_df(second_shares)),
        effective_rows=1 / float(shared_weight),
    )
    if signed:
        return Estimate(value, 2 * low - 1, 2 * high - 1, n, unit)
    return Estimate(value, low, high, n, unit)


def _share_interval(
    share: float, row_count: int, variance: float, *, df: float, effective_rows: float
) -> tuple[float, float]:
    """The narrower of the interval on the logit scale and of the exact one for `effective_rows`;
    see `clustered_share`.
    """
    centre = _off_the_end(share, row_count)
    independent_rows_variance = centre * (1 - centre) / row_count
    logit_low, logit_high = _logit_interval(
        share, centre, variance, independent_rows_variance=independent_rows_variance, df=df
    )

    hits = share * effective_rows
    misses = (1 - share) * effective_rows
    exact_low = float(special.betaincinv(hits, misses + 1, 0.025)) if share > 0 else 0.0
    exact_high = float(special.betaincinv(hits + 1, misses, 0.975)) if share < 1 else 1.0
    if exact_high - exact_low < logit_high - logit_low:
        return exact_low, exact_high
    return logit_low, logit_high


def _placements(
    positive_scores: FloatArray, negative_scores: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For each positive the share of negatives below it, and for each negative the share of
    positives above it.
    """
    positive_places = _share_below(positive_scores, np.sort(negative_scores))
    negative_places = 1 - _share_below(negative_scores, np.sort(positive_scores))
    return positive_places, negative_places


def _share_below(scores: FloatArray, sorted_scores: FloatArray) -> FloatArray:
    """For each score the share of the sorted ones below it, ties half."""
    return np.asarray(half_counts_below(scores, sorted_scores) / (2 * len(sorted_scores)))


def _welch(
    first_variance: float, second_variance: float, cluster_counts: Sequence[int], n: int
) -> float:
    """Degrees of freedom of two variances, each with clusters of its own; n of both together."""
    first_count, second_count = cluster_counts
    spread = first_variance**2 / (first_count - 1) + second_variance**2 / (second_count - 1)
    total_variance = first_variance + second_variance
    welch_df = total_variance**2 / spread if spread else math.inf
    return max(1.0, min(welch_df, n - 1.0))


def _off_the_end(value: float, rows: int) -> float:
    """The value or, where it is 0 or 1, the value if half a row were on the other side."""
    half_a_row = 0.5 / (rows + 1)
    return min(max(value, half_a_row), 1 - half_a_row)


def _logit_interval(
    value: float, centre: float, variance: float, *, independent_rows_variance: float, df: float
) -> tuple[float, float]:
    """95 % interval about `centre`; the variance is never 0, and at least (2·value − 1)² of
    independent rows'.
    """
    variance = max(variance, (2 * value - 1) ** 2 * independent_rows_variance)
    if variance <= ROUNDING_VARIANCE:
        variance = independent_rows_variance
    spread = math.sqrt(variance) / (centre * (1 - centre))
    half_width = t_quantile(df) * spread
    low = float(special.expit(special.logit(centre) - half_width))
    high = float(special.expit(special.logit(centre) + half_width))
    low = 0.0 if value == 0 else min(low, value)
    high = 1.0 if value == 1 else max(high, value)
    return low, high


def independent_variance(value: float, positives: int, negatives: int) -> float:
    """Variance of an AUROC of independent rows (Hanley & McNeil 1982; Newcombe 2006, method 5: the
    sizes' mean).

    >>> round(independent_variance(0.8, 50, 50) ** 0.5, 3)
    0.045
    """
    size = (positives + negatives) / 2 - 1
    inflation = 1 + size * (1 - value) / (2 - value) + size * value / (1 + value)
    return value * (1 - value) * inflation / (positives * negatives)


def expected_auroc_half(value: float, positive: npt.ArrayLike, clusters: npt.ArrayLike) -> float:
    """Half of the width of the interval that `clustered_auroc` gives where rows of a cluster are no
    more alike than others, at this AUROC; NaN where a class has one cluster. The interval is wider
    where they are alike.

    Args:
        value: The AUROC, above 0 and below 1.
        positive: Whether each row is of the first class, [row].
        clusters: Cluster of each row, [row].

    >>> rows = np.arange(40)
    >>> round(expected_auroc_half(0.7, rows % 2 == 0, rows), 3)
    0.164
    >>> round(expected_auroc_half(0.7, rows < 20, rows % 4), 3)
    0.247
    """
    is_positive = np.asarray(positive, dtype=bool)
    labels = np.asarray(clusters)
    positive_clusters = np.unique(labels[is_positive])
    negative_clusters = np.unique(labels[~is_positive])
    cluster_counts = [len(positive_clusters), len(negative_clusters)]
    if min(cluster_counts) < 2:
        return math.nan

    positive_count = int(is_positive.sum())
    negative_count = int((~is_positive).sum())
    n = len(np.union1d(positive_clusters, negative_clusters))
    df = _welch(1 / positive_count, 1 / negative_count, cluster_counts, n)
    variance = independent_variance(value, positive_count, negative_count)
    low, high = _logit_interval(value, value, variance, independent_rows_variance=variance, df=df)
    return (high - low) / 2


def detectable_difference(*sides: npt.ArrayLike) -> float:
    """Smallest difference of two shares near one half that is seen with 80 % power, at 5 % on two
    sides.

    The interval is that of `difference` of two `clustered_share`, of rows that are no more alike in
    their cluster than others.

    Args:
        sides: Clusters of the rows of one side, [row], and those of the other.
    """
    errors: list[float] = []
    limits: list[float] = []
    for clusters in sides:
        rows_of_cluster = np.unique(np.asarray(clusters), return_counts=True)[1]
        if len(rows_of_cluster) < 2:
            return math.nan
        row_count = rows_of_cluster.sum()
        error = 0.5 / math.sqrt(row_count)
        df = bell_mccaffrey_df(rows_of_cluster / row_count)
        errors.append(error)
        limits.append(t_quantile(df) * error)
    return math.hypot(*limits) + POWER_QUANTILE * math.hypot(*errors)


POWER_QUANTILE = float(special.ndtri(0.8))


def difference(*parts: tuple[float, Part], unit: str = "source") -> Estimate:
    """Weighted sum of estimates, such as (1, model), (−1, words), with an interval made of theirs
    (MOVER).

    Zou & Donner (2008, Statistics in Medicine 27:1693): the distance of each estimate to its own
    limit, on the side that matters, takes the place of its standard error. Correlations are those
    of the clusters' errors; where a part has fewer than six clusters (`FEW_CLUSTERS`) they are those of the
    rows' errors if these make the interval wider. So intervals that are lopsided near 0 and 1 stay
    so, and an estimate that never varied still has its own uncertainty.
    """
    weights = np.array([weight for weight, _ in parts])
    estimates = [part.estimate for _, part in parts]
    cluster_counts = [estimate.n for estimate in estimates]
    n = max(cluster_counts, default=0)
    for estimate in estimates:
        if math.isnan(estimate.value):
            return undefined(estimate.reason or "a part is undefined", n=n, unit=unit)
    value = float(weights @ [estimate.value for estimate in estimates])
    for estimate in estimates:
        if math.isnan(estimate.low):
            reason = "no interval: one of the parts that are compared has none"
            if estimate.reason:
                reason = f"{reason} ({estimate.reason})"
            return undefined(reason, n=n, unit=unit, value=value)

    correlations = _correlations([part.errors for _, part in parts])
    if min(cluster_counts) < FEW_CLUSTERS:
        row_correlations = _correlations([part.rows for _, part in parts])
        signs = np.sign(np.outer(weights, weights))
        widens = signs * row_correlations > signs * correlations
        correlations = np.where(widens, row_correlations, correlations)

    distances_below = np.array([abs(estimate.value - estimate.low) for estimate in estimates])
    distances_above = np.array([abs(estimate.value - estimate.high) for estimate in estimates])
    is_added = weights > 0
    low_side = weights * np.where(is_added, distances_below, distances_above)
    high_side = weights * np.where(is_added, distances_above, distances_below)
    low_distance = math.sqrt(max(0.0, float(low_side @ correlations @ low_side)))
    high_distance = math.sqrt(max(0.0, float(high_side @ correlations @ high_side)))
    if max(low_distance, high_distance) < 1e-7:  # the root of a rounding error
        return undefined("the two never differ", n=n, unit=unit, value=value)
    return Estimate(value, value - low_distance, value + high_distance, n, unit)


def _correlations(errors: Sequence[FloatArray]) -> FloatArray:
    """Correlations [part, part] of the contributions of clusters or rows to the parts' errors; 0
    where they are 0.
    """
    errors_of_parts = np.array(errors)  # [part, cluster or row]
    lengths = np.sqrt((errors_of_parts**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = errors_of_parts @ errors_of_parts.T / np.outer(lengths, lengths)
    correlations = np.nan_to_num(cosines)
    np.fill_diagonal(correlations, 1.0)
    return correlations
