"""Features that rows of one group have more often than rows of another: the largest difference, by clusters.

Where clusters hold rows of both groups a cluster's difference of shares is its number. Two tests must both show it: the
signs of whole clusters are thrown anew, which holds where the groups differ by chance from cluster to cluster; and the
groups are exchanged among the rows of each cluster, which holds where one group has a single row in most (six
evaluations and one real use a cluster: signs alone are wrong in 44 %). Else each cluster has one group, and the groups
are exchanged among clusters. Looking at every feature is paid for by the largest statistic (Westfall and Young 1993).
Rates: docs/statistics.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from selfprobe.stats.clustered import clustered_share, difference
from selfprobe.stats.estimate import FEW, Estimate, FloatArray

DRAWS = 999
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
    """One-sided p that no feature is more frequent in the first group, for this one; NaN with too few clusters."""


def feature_differences(
    has: npt.ArrayLike,
    names: Sequence[str],
    is_first: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    unit: str,
    rng: np.random.Generator,
    draws: int = DRAWS,
) -> list[FeatureDifference]:
    """The difference of each feature between two groups of rows.

    Args:
        has: Whether a row has a feature, `[row, feature]`.
        names: Names of the features.
        is_first: Whether a row is of the first group, `[row]`.
        clusters: Label of the independent unit of each row, `[row]`; FEW (six) of both groups, or six in all where
            each has one, are the least for a p.
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
        found.append(FeatureDifference(name, first.estimate, second.estimate, gap, float(p_values[column])))
    return found


def _largest_p(
    rows: FloatArray, in_first: BoolArray, inverse: npt.NDArray[np.intp], rng: np.random.Generator, draws: int
) -> FloatArray:
    """p of each feature, corrected for all of them."""
    unknown = np.full(rows.shape[1], math.nan)
    if not rows.size:
        return unknown
    members = np.eye(int(inverse.max()) + 1)[inverse]  # [row, cluster]
    counts = [members.T @ side for side in (in_first.astype(float), (~in_first).astype(float))]
    is_paired = (counts[0] > 0) & (counts[1] > 0)
    if is_paired.sum() >= FEW:
        weights = [1 / np.maximum(count, 1) for count in counts]
        kept = is_paired[inverse]
        row_weights = [weight[inverse][kept] for weight in weights]
        gap_weights = np.where(in_first[kept], row_weights[0], -row_weights[1])
        gaps = members[kept].T @ (gap_weights[:, None] * rows[kept])
        by_sign = _sign_p(gaps[is_paired], rng, draws)
        by_row = _row_exchange_p(rows[kept], in_first[kept], inverse[kept], row_weights, rng, draws)
        return np.maximum(by_sign, by_row)
    is_single = ~is_paired
    of_first = counts[0][is_single] > 0
    exchanges = math.comb(int(is_single.sum()), int(of_first.sum()))
    if is_single.sum() < FEW or exchanges * 0.05 < 1:
        return unknown
    cluster_shares = (members.T @ rows) / (counts[0] + counts[1])[:, None]
    return _exchange_p(cluster_shares[is_single], of_first, rng, draws)


def _sign_p(gaps: FloatArray, rng: np.random.Generator, draws: int) -> FloatArray:
    """p from the signs of `gaps  # [cluster, feature]`; a feature that never differs has p = 1."""
    lengths = np.sqrt((gaps**2).sum(axis=0))
    scaled = gaps / np.where(lengths > 0, lengths, 1.0)
    signs = rng.choice([-1.0, 1.0], size=(draws, len(gaps)))
    return _p_of_largest(scaled.sum(axis=0), signs @ scaled)


def _row_exchange_p(
    rows: FloatArray,
    in_first: BoolArray,
    inverse: npt.NDArray[np.intp],
    row_weights: Sequence[FloatArray],
    rng: np.random.Generator,
    draws: int,
) -> FloatArray:
    """p from exchanges of the groups among the rows of each cluster; the statistic is the sum of clusters' gaps."""
    by_cluster = np.argsort(inverse, kind="stable")
    order = np.argsort(inverse[by_cluster] + rng.random((draws, len(rows))), axis=1)
    drawn_first = in_first[by_cluster][order]
    first_weights, second_weights = (weights[by_cluster] for weights in row_weights)
    drawn = np.where(drawn_first, first_weights, -second_weights) @ rows[by_cluster]
    real = np.where(in_first, row_weights[0], -row_weights[1]) @ rows
    spread = drawn.std(axis=0)
    scale = np.where(spread > 1e-12, spread, 1.0)
    return _p_of_largest(real / scale, drawn / scale)


def _exchange_p(shares: FloatArray, of_first: BoolArray, rng: np.random.Generator, draws: int) -> FloatArray:
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
