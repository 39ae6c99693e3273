"""Paired changes on the same items between two runs."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import (
    Estimate,
    clustered_mean,
    effective,
    two_sided,
    two_sided_p,
)

POWER = 0.8
"""Power for which the needed sample size is computed."""
MOVED = 10
"""Number of clusters that must have moved for their spread to be trusted."""
TWO_SIDED = 0.05
"""Largest share of pairs without change that are reported as changed, up or down."""


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
    known: float
    """Number of independent rows of variance 1 that would say as much about the mean."""

    def power(self, smallest: float, *, tests: int = 1) -> float:
        """Chance of detecting a change of this size, with Bonferroni's share of 5 % for each of
        `tests`.
        """
        df = self.estimate.df
        if not self.known:
            return math.nan
        limit = -float(special.stdtrit(df, TWO_SIDED / 2 / tests))
        return float(special.stdtr(df, smallest * math.sqrt(self.known) - limit))

    def needed(self, smallest: float, *, tests: int = 1) -> int | None:
        """Number of items like these that detect a change of this size with 80 % power; None where
        unknown.
        """
        if not self.known:
            return None
        z = -float(special.ndtri(TWO_SIDED / 2 / tests)) + float(special.ndtri(POWER))
        exact = (
            self.estimate.n / self.known * (z / smallest) ** 2 + z * z / 2
        )  # and what t takes more than z
        step = int(10 ** max(0, math.floor(math.log10(exact)) - 1))
        return math.ceil(exact / step) * step


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
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    both = ~np.isnan(old) & ~np.isnan(new)
    old, new, labels = old[both], new[both], np.asarray(clusters)[both]
    means = (float(old.mean()), float(new.mean())) if len(old) else (math.nan, math.nan)
    differences = new - old
    inverse = np.unique(labels, return_inverse=True)[1]
    each = np.bincount(inverse, differences) / np.bincount(inverse)
    if len(old) and np.sum(np.abs(each - np.median(each)) > 1e-9) >= MOVED:
        found = clustered_mean(differences, labels, unit=unit, interval="t")
        return Change(*means, found, two_sided(found), found.se**-2)
    on_one = clustered_mean(differences / scale, labels, unit=unit, interval="difference")
    value, low, high = (float(end * scale) for end in (on_one.value, on_one.low, on_one.high))
    estimate = Estimate(value, low, high, on_one.n, unit, on_one.reason, df=on_one.df)
    if math.isnan(low):
        return Change(*means, estimate, math.nan, 0.0)
    known = effective((differences / scale + 1) / 2, inverse)
    return Change(
        *means, estimate, two_sided_p(on_one.value * math.sqrt(known), on_one.df), known / scale**2
    )
