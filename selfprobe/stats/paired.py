"""Paired changes on the same items between two runs."""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.claim import ALPHA
from selfprobe.stats.estimate import (
    Estimate,
    clustered_mean,
    effective_size,
    p_of_mean,
    t_quantile,
    two_sided_p,
)

POWER = 0.8
"""Power for which the needed sample size is computed."""
FEWEST_CHANGED_CLUSTERS = 10
"""Number of clusters that must have moved for their spread to be trusted."""
MOST_EXCLUDING_CLUSTERS = 20_000
"""Largest number of clusters that is looked for to exclude a change."""
MEAN_TIE = 1e-9
"""Largest difference of means that is rounding error."""


@dataclass(frozen=True)
class Change:
    """The change of a mean."""

    before: float
    """Mean over the rows that both runs have."""
    after: float
    estimate: Estimate
    """After less before, with its 95 % interval."""
    p: float
    """Two-sided p of no change; NaN where there is no interval."""
    effective_rows: float
    """Number of independent rows of variance 1 that would say as much about the mean."""
    cluster_spread: float = math.nan
    """Standard deviation of the clusters' changes in units of `scale`; NaN unless few moved."""
    scale: float = 1.0
    """The largest change that a mean can have."""

    def power(self, smallest: float, *, tests: int = 1) -> float:
        """Chance of detecting a change of this size, with Bonferroni's share of 5 % for each of
        `tests`.
        """
        if not self.effective_rows:
            return math.nan
        df = self.estimate.df
        critical_t = t_quantile(df, ALPHA / 2 / tests)
        expected_t = smallest * math.sqrt(self.effective_rows)
        return float(special.stdtr(df, expected_t - critical_t))

    def needed(self, smallest: float, *, tests: int = 1) -> int | None:
        """Number of items like these that detect a change of this size with 80 % power; None where
        unknown.
        """
        if not self.effective_rows:
            return None
        quantiles = -float(special.ndtri(ALPHA / 2 / tests)) + float(special.ndtri(POWER))
        rows_per_effective_row = self.estimate.n / self.effective_rows
        more_by_t = quantiles**2 / 2  # what t takes more than the normal distribution
        exact = rows_per_effective_row * (quantiles / smallest) ** 2 + more_by_t
        step = int(10 ** max(0, math.floor(math.log10(exact)) - 1))
        return math.ceil(exact / step) * step

    def excluding_items(self, smallest: float) -> int | None:
        """Number of clusters that move as these did whose interval excludes a change of this size,
        up and down; None where the change is as large, or many moved, or it takes too many.

        The interval of clusters of which few moved narrows with their number, not its root: what
        `needed` says of a change that is to be shown is too many for one that is not there.
        """
        is_excluded_by_more = abs(self.estimate.value) < smallest
        if math.isnan(self.cluster_spread) or not is_excluded_by_more:
            return None
        too_few = 1
        enough = MOST_EXCLUDING_CLUSTERS
        if not self._excludes(smallest, enough):
            return None
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            if self._excludes(smallest, middle):
                enough = middle
            else:
                too_few = middle
        return enough

    def _excludes(self, smallest: float, cluster_count: int) -> bool:
        """Whether the interval of so many clusters with this mean and spread lies inside
        ± `smallest`.
        """
        offsets = np.zeros(cluster_count)
        half_count = cluster_count // 2
        offsets[:half_count] = self.cluster_spread
        offsets[-half_count:] = -self.cluster_spread
        differences = self.estimate.value / self.scale + offsets
        interval = clustered_mean(differences, np.arange(cluster_count), interval="difference")
        largest = max(-interval.low, interval.high)
        return largest * self.scale < smallest


def change(
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    unit: str = "item",
    scale: float = 1.0,
) -> Change:
    """The change of a mean over `before, after  # [row]`, paired by row, clustered.

    A row that either run lacks (NaN) is left out. Where ten clusters or more moved otherwise than
    most did, the interval is t with the jackknife's error. With fewer that error says little: there
    the interval is that of `clustered_mean` for differences, which never has width 0. p is of the
    same interval. Rates by simulation: docs/statistics.md.

    Args:
        before, after: Scores of the same rows.
        clusters: Label of the cluster of each row.
        unit: Name of a cluster.
        scale: The largest change that a mean can have; 1 for scores in [0, 1].
    """
    old_scores = np.asarray(before, dtype=float)
    new_scores = np.asarray(after, dtype=float)
    has_both = ~np.isnan(old_scores) & ~np.isnan(new_scores)
    old_scores = old_scores[has_both]
    new_scores = new_scores[has_both]
    labels = np.asarray(clusters)[has_both]
    old_mean = float(old_scores.mean()) if len(labels) else math.nan
    new_mean = float(new_scores.mean()) if len(labels) else math.nan

    differences = new_scores - old_scores
    cluster_of_row = np.unique(labels, return_inverse=True)[1]
    cluster_means = np.bincount(cluster_of_row, differences) / np.bincount(cluster_of_row)
    moved_count = 0
    if len(labels):
        moved_count = int(np.sum(np.abs(cluster_means - np.median(cluster_means)) > MEAN_TIE))
    if moved_count >= FEWEST_CHANGED_CLUSTERS:
        by_t = clustered_mean(differences, labels, unit=unit, interval="t")
        return Change(old_mean, new_mean, by_t, p_of_mean(by_t), by_t.se**-2)

    unscaled = clustered_mean(differences / scale, labels, unit=unit, interval="difference")
    estimate = replace(
        unscaled,
        value=float(unscaled.value * scale),
        low=float(unscaled.low * scale),
        high=float(unscaled.high * scale),
        se=math.nan,
    )
    if math.isnan(estimate.low):
        return Change(old_mean, new_mean, estimate, math.nan, 0.0)
    cluster_spread = float(cluster_means.std()) / scale
    effective_rows = effective_size((differences / scale + 1) / 2, cluster_of_row)
    p = two_sided_p(unscaled.value * math.sqrt(effective_rows), unscaled.df)
    return Change(
        old_mean,
        new_mean,
        estimate,
        p,
        effective_rows / scale**2,
        cluster_spread=cluster_spread,
        scale=scale,
    )
