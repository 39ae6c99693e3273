"""Features that rows of one group have more often than rows of another: the largest difference, by
clusters.

Where clusters hold rows of both groups a cluster's difference of shares is its number, and the
signs of whole clusters are thrown anew. That is exact where both shares are of as many rows (six
evaluations beside one real use a cluster are called a difference in 44 % by signs of all rows), so
of the larger group of a cluster as many rows are drawn as the smaller one has. Else each cluster
has one group: the groups are exchanged among clusters of one size, and clusters of unequal sizes
are paired by their sizes first. Looking at every feature is paid for by the largest statistic
(Westfall and Young 1993). Rates: docs/statistics.md.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from selfprobe.stats.clustered import clustered_share, difference
from selfprobe.stats.draws import of_unit_length, p_of_largest
from selfprobe.stats.estimate import FEW_CLUSTERS, BoolArray, Estimate, FloatArray, IntArray

DIFFERENCE_DRAWS = 999
"""Number of draws of signs, or of exchanges."""


@dataclass(frozen=True)
class FeatureDifference:
    """How much more often rows of the first group have a feature."""

    name: str
    first: Estimate
    """Share of the rows of the first group that have it."""
    second: Estimate
    """Share of the rows of the second group."""
    difference: Estimate
    p_value: float
    """One-sided p that no feature is more frequent in the first group, for this one; NaN with too
    few clusters.
    """


def feature_differences(
    has: npt.ArrayLike,
    names: Sequence[str],
    is_first: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    unit: str,
    rng: np.random.Generator,
    draws: int = DIFFERENCE_DRAWS,
) -> list[FeatureDifference]:
    """The difference of each feature between two groups of rows.

    Args:
        has: Whether a row has a feature, `[row, feature]`.
        names: Names of the features.
        is_first: Whether a row is of the first group, `[row]`.
        clusters: Label of the independent unit of each row, `[row]`; six
            (`FEW_CLUSTERS`) of both groups, or in all where each has one, are the least for a p.
        unit: Name of a cluster.
        rng: Generator of signs and exchanges.
        draws: Number of them.
    """
    feature_rows = np.asarray(has, dtype=float)
    in_first = np.asarray(is_first, dtype=bool)
    labels = np.asarray(clusters)
    cluster_of_row = np.unique(labels, return_inverse=True)[1]
    p_values = _largest_p(feature_rows, in_first, cluster_of_row, rng, draws)

    differences = []
    for column, name in enumerate(names):
        has_feature = feature_rows[:, column]
        first_share = clustered_share(has_feature, labels, is_counted=in_first, unit=unit)
        second_share = clustered_share(has_feature, labels, is_counted=~in_first, unit=unit)
        differences.append(
            FeatureDifference(
                name,
                first=first_share.estimate,
                second=second_share.estimate,
                difference=difference((1, first_share), (-1, second_share), unit=unit),
                p_value=float(p_values[column]),
            )
        )
    return differences


def _largest_p(
    feature_rows: FloatArray,
    in_first: BoolArray,
    cluster_of_row: IntArray,
    rng: np.random.Generator,
    draws: int,
) -> FloatArray:
    """p of each feature, corrected for all of them."""
    unknown_p = np.full(feature_rows.shape[1], math.nan)
    if not feature_rows.size:
        return unknown_p

    row_counts = _rows_by_group(in_first, cluster_of_row)
    has_both_groups = row_counts.min(axis=0) > 0
    if has_both_groups.sum() >= FEW_CLUSTERS:
        in_pair = has_both_groups[cluster_of_row]
        pairs = cluster_of_row[in_pair]
        return _paired_p(feature_rows[in_pair], in_first[in_pair], pairs, rng, draws)

    cluster_sizes = row_counts.max(axis=0)
    first_clusters = np.flatnonzero(~has_both_groups & (row_counts[0] > 0))
    second_clusters = np.flatnonzero(~has_both_groups & (row_counts[1] > 0))
    single_clusters = np.concatenate([first_clusters, second_clusters])
    single_sizes = cluster_sizes[single_clusters]
    if len(set(single_sizes)) > 1:
        pair_by_cluster = _pairs_by_size(first_clusters, second_clusters, cluster_sizes)
        if len(pair_by_cluster) < 2 * FEW_CLUSTERS:
            return unknown_p
        in_pair = np.isin(cluster_of_row, list(pair_by_cluster))
        pairs = np.array(
            [pair_by_cluster[int(cluster)] for cluster in cluster_of_row[in_pair]], dtype=np.intp
        )
        return _paired_p(feature_rows[in_pair], in_first[in_pair], pairs, rng, draws)

    exchange_count = math.comb(len(single_clusters), len(first_clusters))
    if len(single_clusters) < FEW_CLUSTERS or exchange_count * 0.05 < 1:
        return unknown_p
    members = np.eye(len(cluster_sizes))[cluster_of_row]  # [row, cluster]
    cluster_shares = (members.T @ feature_rows)[single_clusters] / single_sizes[:, None]
    of_first = np.arange(len(single_clusters)) < len(first_clusters)
    return _exchange_p(cluster_shares, of_first, rng, draws)


def _rows_by_group(in_first: BoolArray, cluster_of_row: IntArray) -> FloatArray:
    """Number of rows of the first and of the second group in each cluster, [group, cluster]."""
    cluster_count = int(cluster_of_row.max()) + 1
    first_counts = np.bincount(cluster_of_row, in_first, minlength=cluster_count)
    second_counts = np.bincount(cluster_of_row, ~in_first, minlength=cluster_count)
    return np.array([first_counts, second_counts], dtype=float)


def _pairs_by_size(
    first_clusters: IntArray,
    second_clusters: IntArray,
    cluster_sizes: FloatArray,
) -> dict[int, int]:
    """Cluster → its pair: the largest cluster of either group, then the next one of either."""

    def largest_first(clusters: IntArray) -> list[int]:
        return sorted(map(int, clusters), key=lambda cluster: (-cluster_sizes[cluster], cluster))

    paired_clusters = zip(
        largest_first(first_clusters), largest_first(second_clusters), strict=False
    )
    pair_by_cluster = {}
    for pair, (first_cluster, second_cluster) in enumerate(paired_clusters):
        pair_by_cluster[first_cluster] = pair
        pair_by_cluster[second_cluster] = pair
    return pair_by_cluster


def _paired_p(
    feature_rows: FloatArray,
    in_first: BoolArray,
    pairs: IntArray,
    rng: np.random.Generator,
    draws: int,
) -> FloatArray:
    """p from the differences of shares within pairs, of as many rows on either side."""
    pair_of_row = np.unique(pairs, return_inverse=True)[1]
    smaller_counts = _rows_by_group(in_first, pair_of_row).min(axis=0)
    balanced_rows = _balanced_rows(feature_rows, in_first, pair_of_row, smaller_counts, rng)
    balanced_pairs = pair_of_row[balanced_rows]
    row_signs = np.where(in_first[balanced_rows], 1.0, -1.0) / smaller_counts[balanced_pairs]
    members = np.eye(len(smaller_counts))[balanced_pairs]  # [row, pair]
    share_differences = members.T @ (row_signs[:, None] * feature_rows[balanced_rows])
    return _sign_p(share_differences, rng, draws)


def _sign_p(share_differences: FloatArray, rng: np.random.Generator, draws: int) -> FloatArray:
    """p from the signs of `share_differences  # [cluster, feature]`; a feature that never differs
    has p = 1.
    """
    scaled_differences = of_unit_length(share_differences)
    signs = rng.choice([-1.0, 1.0], size=(draws, len(share_differences)))
    return p_of_largest(scaled_differences.sum(axis=0), signs @ scaled_differences)


def _balanced_rows(
    feature_rows: FloatArray,
    in_first: BoolArray,
    cluster_of_row: IntArray,
    smaller_counts: FloatArray,
    rng: np.random.Generator,
) -> IntArray:
    """Indices of as many rows of either group of a cluster as the smaller one has, whatever the
    order of the rows.
    """
    content_order = np.lexsort([*feature_rows.T, in_first, cluster_of_row])
    shuffled_rows = content_order[np.argsort(rng.random(len(feature_rows)))]
    drawn_counts: dict[tuple[int, bool], int] = defaultdict(int)
    balanced_rows = []
    for row_index in shuffled_rows:
        cluster = int(cluster_of_row[row_index])
        cluster_group = cluster, bool(in_first[row_index])
        if drawn_counts[cluster_group] < smaller_counts[cluster]:
            drawn_counts[cluster_group] += 1
            balanced_rows.append(int(row_index))
    return np.array(balanced_rows, dtype=np.intp)


def _exchange_p(
    cluster_shares: FloatArray, of_first: BoolArray, rng: np.random.Generator, draws: int
) -> FloatArray:
    """p from exchanges of the groups of clusters with `cluster_shares  # [cluster, feature]`."""
    scaled_deviations = of_unit_length(cluster_shares - cluster_shares.mean(axis=0))
    exchange_orders = np.argsort(rng.random((draws, len(cluster_shares))), axis=1)
    in_first = of_first.astype(float)
    return p_of_largest(in_first @ scaled_deviations, in_first[exchange_orders] @ scaled_deviations)
