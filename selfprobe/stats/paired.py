"""Paired changes on the same items: between two runs, and between the arms of an experiment.

An arm changes how an item is put, and with it a suspected cause (here P(evaluation)). `contrasts` has the change of the
score and of the cause, both paired by item. `Dose` is the change of the score for a change of the cause of 1, with the
arm as the instrument: the ratio of the two mean changes (Wald 1940; two-stage least squares with one binary
instrument). It is the cause's effect only if the arm changes the score by nothing else.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import (
    Estimate,
    FloatArray,
    clustered_mean,
    effective,
    holm,
    two_sided,
    two_sided_p,
    undefined,
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
        """Chance of detecting a change of this size, with Bonferroni's share of 5 % for each of `tests`."""
        df = self.estimate.df
        if not self.known:
            return math.nan
        limit = -float(special.stdtrit(df, TWO_SIDED / 2 / tests))
        return float(special.stdtr(df, smallest * math.sqrt(self.known) - limit))

    def needed(self, smallest: float, *, tests: int = 1) -> int | None:
        """Number of items like these that detect a change of this size with 80 % power; None where unknown."""
        if not self.known:
            return None
        z = -float(special.ndtri(TWO_SIDED / 2 / tests)) + float(special.ndtri(POWER))
        exact = self.estimate.n / self.known * (z / smallest) ** 2 + z * z / 2  # and what t takes more than z
        step = int(10 ** max(0, math.floor(math.log10(exact)) - 1))
        return math.ceil(exact / step) * step


def change(
    before: npt.ArrayLike, after: npt.ArrayLike, clusters: npt.ArrayLike, *, unit: str = "item", scale: float = 1.0
) -> Change:
    """The change of a mean over `before, after  # [row]`, paired by row, clustered.

    A row that either run lacks (NaN) is left out. Where ten clusters or more moved otherwise than most did, the
    interval is t with the jackknife's error. With fewer that error says little: there the interval is that of
    `clustered_mean` for differences, which never has width 0. p is of the same interval. Rates by simulation:
    docs/statistics.md.

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
    return Change(*means, estimate, two_sided_p(on_one.value * math.sqrt(known), on_one.df), known / scale**2)


STRONG = 10.0
"""F of the first stage from which an instrument is not weak (Staiger and Stock 1997)."""
FEWEST = 10
"""Number of items with both changes from which there is a dose."""
DIFFERING = 0.05
"""Share of items that change by chance, for a power that is reported before anything is known."""
ROUNDED = 0.02
"""Least standard deviation of a change of the cause: stated probabilities are rounded, to .05 most often."""
EDGE = 0.05
"""Distance to 0 or 1 within which the mean of scores is at the floor or the ceiling."""


@dataclass(frozen=True)
class Dose:
    """Change of the score for a change of the cause by 1."""

    estimate: Estimate
    """Dose with the interval of Fieller (1954), which is also that of Anderson and Rubin (1949) and holds for weak
    instruments; without a value where the instrument is weak."""
    f: float
    """F of the first stage: the squared t of the mean change of the cause; NaN without items."""

    @property
    def strong(self) -> bool:
        """True if the arm moves the cause enough for a dose."""
        return self.f >= STRONG


@dataclass(frozen=True)
class Contrast:
    """An arm less its control."""

    arm: str
    control: str
    score: Change
    cause: Change
    dose: Dose
    holm: float
    """p of no change of the score, corrected by Holm over the contrasts that were asked for together."""

    @property
    def shown(self) -> bool:
        """True if the score changes."""
        return self.holm < TWO_SIDED

    @property
    def moved(self) -> bool:
        """True if the arm moved the cause: its interval does not hold 0."""
        found = self.cause.estimate
        return found.low > 0 or found.high < 0

    def within(self, smallest: float) -> bool:
        """True if every effect in the score's interval is smaller than this."""
        return -smallest < self.score.estimate.low and self.score.estimate.high < smallest

    def least(self, tests: int) -> float:
        """The smallest effect that so many items, as similar as these, show with 80 % power; NaN where unknown."""
        return least_of(self.score, tests)


def contrasts(
    scores: Mapping[str, npt.ArrayLike],
    causes: Mapping[str, npt.ArrayLike],
    pairs: Sequence[tuple[str, str]],
) -> list[Contrast]:
    """Each arm less its control, paired by item, with Holm's correction over these pairs.

    Args:
        scores: Arm → `[item]`, NaN where unscored; the same items in the same order in every arm.
        causes: Arm → `[item]` in [0, 1], for the same items.
        pairs: Arms and their controls.
    """
    scale = scale_of(scores.values())
    made = []
    for arm, control in pairs:
        before, after = (np.asarray(scores[name], dtype=float) for name in (control, arm))
        items = np.arange(len(before))
        low, high = (np.asarray(causes[name], dtype=float) for name in (control, arm))
        moved = change(low, high, items)
        found = dose(after - before, high - low)
        made.append(Contrast(arm, control, change(before, after, items, scale=scale), moved, found, math.nan))
    corrected = holm([one.score.p for one in made])
    return [replace(one, holm=float(p)) for one, p in zip(made, corrected, strict=True)]


def scale_of(scores: Iterable[npt.ArrayLike]) -> float:
    """The largest change that a mean can have: 1 for scores in [0, 1], else the range of what was seen."""
    known = np.concatenate([np.ravel(np.asarray(one, dtype=float)) for one in scores])
    known = known[~np.isnan(known)]
    if not len(known) or (known.min() >= 0 and known.max() <= 1):
        return 1.0
    return float(np.ptp(known)) or 1.0


def dose(score: npt.ArrayLike, cause: npt.ArrayLike) -> Dose:
    """The dose of an arm, from its changes of `score, cause  # [item]`, NaN where unknown."""
    y, x = np.asarray(score, dtype=float), np.asarray(cause, dtype=float)
    both = ~np.isnan(y) & ~np.isnan(x)
    y, x, n = y[both], x[both], int(both.sum())
    if n < FEWEST:
        return Dose(undefined(f"{n} items have both changes, {FEWEST} are needed", n=n), math.nan)
    d, e = float(y.mean()), float(x.mean())
    (vyy, vyx), (_, vxx) = np.cov(y, x) / n
    vxx = max(float(vxx), ROUNDED**2 / n)
    if not vyy > 0:
        return Dose(undefined("all items change alike, which gives no interval", n=n), e * e / vxx)
    f = e * e / vxx
    if f < STRONG:
        return Dose(undefined(f"weak instrument: F = {f:.1f}, below {STRONG:.0f}", n=n), f)
    t2 = float(special.stdtrit(n - 1, TWO_SIDED / 2)) ** 2
    a, b, c = e * e - t2 * vxx, d * e - t2 * vyx, d * d - t2 * vyy
    root = math.sqrt(max(0.0, b * b - a * c))
    return Dose(Estimate(d / e, float((b - root) / a), float((b + root) / a), n, "item"), f)


def least_of(estimate: Change, tests: int) -> float:
    """The smallest change that items like these show with 80 % power, with Bonferroni's share of 5 %."""
    if not estimate.known:
        return math.nan
    limit = -float(special.stdtrit(estimate.estimate.df, TWO_SIDED / 2 / tests))
    return (limit + float(special.ndtri(POWER))) / math.sqrt(estimate.known)


def visible(items: int, tests: int, *, differing: float = DIFFERING) -> float:
    """The smallest effect on a score of 0 or 1 that so many items show with 80 % power, before anything is asked.

    An effect e makes at least a share e of the items come out otherwise, and `differing` do by chance: the variance of
    a difference is their sum.

    >>> round(visible(100, 1), 2), round(visible(1000, 1), 3)
    (0.11, 0.024)
    """
    z = -float(special.ndtri(TWO_SIDED / 2 / tests)) + float(special.ndtri(POWER))
    unit = z * z / items
    return min(1.0, unit / 2 * (1 + math.sqrt(1 + 4 * differing / unit)))


def edge(scores: npt.ArrayLike) -> str:
    """ "floor" or "ceiling" where the mean of `scores  # [item]` in [0, 1] is that near to an end, else ""."""
    known: FloatArray = np.asarray(scores, dtype=float)
    known = known[~np.isnan(known)]
    if not len(known) or known.min() < 0 or known.max() > 1:
        return ""
    mean = float(known.mean())
    return "floor" if mean <= EDGE else "ceiling" if mean >= 1 - EDGE else ""
