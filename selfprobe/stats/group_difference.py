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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from selfprobe.stats.clustered import clustered_share, difference
from selfprobe.stats.estimate import FEW, Estimate, FloatArray

DIFFERENCE_DRAWS = 999
"""Number of draws of signs, or of exchanges."""
BoolArray = npt.NDArray[np.bool_]


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
        clusters: Label of the independent unit of each row, `[row]`; FEW (six) of both groups, or
            six in all where each has one, are the least for a p.
        unit: Name of a cluster.
        rng: Generator of signs and exchanges.
        draws: Number of them.
    """
    rows = np.asarray(has, dtype=float)
    in_first = np.asarray(is_first, dtype=bool)
    labels = np.asarray(clusters)
    p_values = _largest_p(rows, in_first, np.unique(labels, return_inverse=True)[1], rng, draws)
    found = []
    for column, name in enumerate(names):
        first = clustered_share(rows[:, column], labels, where=in_first, unit=unit)
        second = clustered_share(rows[:, column], labels, where=~in_first, unit=unit)
        gap = difference((1, first), (-1, second), unit=unit)
        found.append(
            FeatureDifference(name, first.estimate, second.estimate, gap, float(p_values[column]))
        )
    return found


def _largest_p(
    rows: FloatArray,
    in_first: BoolArray,
    inverse: npt.NDArray[np.intp],
    rng: np.random.Generator,
    draws: int,
) -> FloatArray:
    """p of each feature, corrected for all of them."""
    unknown = np.full(rows.shape[1], math.nan)
    if not rows.size:
        return unknown
    counts = _rows_by_group(in_first, inverse)
    is_paired = counts.min(axis=0) > 0
    if is_paired.sum() >= FEW:
        kept = is_paired[inverse]
        return _paired_p(rows[kept], in_first[kept], inverse[kept], rng, draws)
    sizes = counts.max(axis=0)
    first_clusters = np.flatnonzero(~is_paired & (counts[0] > 0))
    second_clusters = np.flatnonzero(~is_paired & (counts[1] > 0))
    singles = np.concatenate([first_clusters, second_clusters])
    if len(set(sizes[singles])) > 1:
        pair_of = _pairs_by_size(first_clusters, second_clusters, sizes)
        kept = np.isin(inverse, list(pair_of))
        pairs = np.array([pair_of[int(cluster)] for cluster in inverse[kept]], dtype=np.intp)
        if len(pair_of) < 2 * FEW:
            return unknown
        return _paired_p(rows[kept], in_first[kept], pairs, rng, draws)
    exchanges = math.comb(len(singles), len(first_clusters))
    if len(singles) < FEW or exchanges * 0.05 < 1:
        return unknown
    members = np.eye(len(sizes))[inverse]  # [row, cluster]
    cluster_shares = (members.T @ rows)[singles] / sizes[singles][:, None]
    return _exchange_p(cluster_shares, np.arange(len(singles)) < len(first_clusters), rng, draws)


def _rows_by_group(in_first: BoolArray, inverse: npt.NDArray[np.intp]) -> FloatArray:
    """Number of rows of the first and of the second group in each cluster, [group, cluster]."""
    count = int(inverse.max()) + 1
    sides = [np.bincount(inverse, side, minlength=count) for side in (in_first, ~in_first)]
    return np.array(sides, dtype=float)


def _pairs_by_size(
    first_clusters: npt.NDArray[np.intp], second_clusters: npt.NDArray[np.intp], sizes: FloatArray
) -> dict[int, int]:
    """Cluster → its pair: the largest cluster of either group, then the next one of either."""
    pair_of = {}
    in_order = [
        sorted(map(int, group), key=lambda at: (-sizes[at], at))
        for group in (first_clusters, second_clusters)
    ]
    for pair, clusters in enumerate(zip(*in_order, strict=False)):
        pair_of.update(dict.fromkeys(clusters, pair))
    return pair_of


def _paired_p(
    rows: FloatArray,
    in_first: BoolArray,
    pairs: npt.NDArray[np.intp],
    rng: np.random.Generator,
    draws: int,
) -> FloatArray:
    """p from the differences of shares within pairs, of as many rows on either side."""
    units = np.unique(pairs, return_inverse=True)[1]
    fewest = _rows_by_group(in_first, units).min(axis=0)
    kept = _balanced_rows(rows, in_first, units, fewest, rng)
    row_signs = np.where(in_first[kept], 1.0, -1.0) / fewest[units[kept]]
    members = np.eye(len(fewest))[units[kept]]  # [row, pair]
    return _sign_p(members.T @ (row_signs[:, None] * rows[kept]), rng, draws)


def _sign_p(gaps: FloatArray, rng: np.random.Generator, draws: int) -> FloatArray:
    """p from the signs of `gaps  # [cluster, feature]`; a feature that never differs has p = 1."""
    lengths = np.sqrt((gaps**2).sum(axis=0))
    scaled = gaps / np.where(lengths > 0, lengths, 1.0)
    signs = rng.choice([-1.0, 1.0], size=(draws, len(gaps)))
    return _p_of_largest(scaled.sum(axis=0), signs @ scaled)


def _balanced_rows(
    rows: FloatArray,
    in_first: BoolArray,
    inverse: npt.NDArray[np.intp],
    fewest: FloatArray,
    rng: np.random.Generator,
) -> npt.NDArray[np.intp]:
    """Indices of as many rows of either group of a cluster as the smaller one has, whatever the
    order of the rows.
    """
    content_order = np.lexsort([*rows.T, in_first, inverse])
    shuffled = content_order[np.argsort(rng.random(len(rows)))]
    taken: dict[tuple[int, bool], int] = {}
    kept = []
    for index in shuffled:
        group = int(inverse[index]), bool(in_first[index])
        if taken.get(group, 0) < fewest[inverse[index]]:
            taken[group] = taken.get(group, 0) + 1
            kept.append(int(index))
    return np.array(kept, dtype=np.intp)


def _exchange_p(
    shares: FloatArray, of_first: BoolArray, rng: np.random.Generator, draws: int
) -> FloatArray:
    """p from exchanges of the groups of clusters with `shares  # [cluster, feature]`."""
    deviations = shares - shares.mean(axis=0)
    lengths = np.sqrt((deviations**2).sum(axis=0))
    scaled = deviations / np.where(lengths > 0, lengths, 1.0)
    order = np.argsort(rng.random((draws, len(shares))), axis=1)
    return _p_of_largest(of_first.astype(float) @ scaled, of_first[order].astype(float) @ scaled)


def _p_of_largest(real: FloatArray, drawn: FloatArray) -> FloatArray:
    """Share of draws, the real one included, whose largest statistic reaches each real one."""
    largest = drawn.max(axis=1)
    reached = (largest[:, None] >= real - 1e-9).sum(axis=0)
    return np.asarray((1 + reached) / (1 + len(drawn)))
