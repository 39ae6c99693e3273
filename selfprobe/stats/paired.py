"""Paired changes on the same items between two runs, and by edits of a text.

`effects` tests whether taking a piece out of a text moves a number more than taking out as much text elsewhere does.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import (
    Estimate,
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


FLOOR = 0.02
"""Least standard deviation of a mere edit: stated probabilities are rounded, to .05 most often."""
EFFICIENCY = 0.37
"""Efficiency of the median and of the median deviation, compared with mean and standard deviation of normal numbers
(Rousseeuw and Croux 1993): so large a share of the controls counts. They are used since a control can hit a giveaway by
chance."""
FEWEST_CONTROLS = 4
"""Number of controls from which there is an interval."""


@dataclass(frozen=True)
class Noise:
    """The effect of a mere edit of this length."""

    level: float
    """Median change by a control."""
    spread: float
    """Standard deviation of one change by a control, from the median deviation; at least FLOOR."""
    n: int

    @property
    def df(self) -> float:
        """Degrees of freedom of the spread."""
        return max(1.0, EFFICIENCY * (self.n - 1))


@dataclass(frozen=True)
class Effect:
    """The effect of one piece on the number."""

    name: str
    estimate: Estimate
    """Change beyond that of a control; n counts the texts that the piece was taken out of."""
    p: float
    """Two-sided p of no effect; NaN without an interval."""
    holm: float
    """Holm-corrected p, over all pieces."""


def noise(controls: npt.ArrayLike) -> Noise:
    """The noise of edits, from `controls  # [control]`: the number of the whole text less that of the text without."""
    found = np.asarray(controls, dtype=float)
    found = found[~np.isnan(found)]
    if not len(found):
        return Noise(math.nan, math.nan, 0)
    level = float(np.median(found))
    return Noise(level, max(FLOOR, 1.4826 * float(np.median(np.abs(found - level)))), len(found))


@dataclass(frozen=True)
class Control:
    """A deletion of text elsewhere."""

    change: float
    """Number of the whole text less that of the text without the deleted part; NaN where unknown."""
    hits: frozenset[str]
    """Pieces that the deletion touches."""


def effects(changes: Mapping[str, Sequence[float]], controls: Sequence[Control]) -> list[Effect]:
    """The effect of each piece: its mean change less the controls', with a t interval of the noise of edits, 95 %.

    The controls of a piece are those that touch neither it nor a piece that was found to have an effect: the strongest
    are tried first, each at Holm's share of 5 %. The interval is about these texts: a mere edit of other words could
    move the number by so much. It leaves out that effects differ from text to text.

    Args:
        changes: Piece → number of the whole text less that of the text without the piece, one a text; NaN is left out.
        controls: Deletions elsewhere in all these texts.
    """
    means = {name: _mean(given) for name, given in changes.items()}
    found = set[str]()
    for place, name in enumerate(sorted(means, key=lambda name: (-np.nan_to_num(means[name], nan=-9), name))):
        estimate, p = _effect(changes[name], _noise_for(found | {name}, controls))
        if not (estimate.value > 0 and p * (len(means) - place) < 0.05):
            break
        found.add(name)
    made = [(name, *_effect(given, _noise_for(found | {name}, controls))) for name, given in changes.items()]
    corrected = holm([p for *_, p in made]) if made else np.empty(0)
    return [Effect(name, estimate, p, float(h)) for (name, estimate, p), h in zip(made, corrected, strict=True)]


def _noise_for(out: set[str], controls: Sequence[Control]) -> Noise:
    return noise([control.change for control in controls if not control.hits & out])


def _mean(given: Sequence[float]) -> float:
    values = np.asarray(given, dtype=float)
    return float(np.nanmean(values)) if np.isfinite(values).any() else math.nan


def _effect(changes: Sequence[float], of: Noise) -> tuple[Estimate, float]:
    """The mean change less the noise's level, and its p."""
    values = np.asarray(changes, dtype=float)
    values = values[~np.isnan(values)]
    if not len(values):
        return undefined("no number of the text without it", unit="prompt"), math.nan
    if of.n < FEWEST_CONTROLS:
        why = f"{of.n} controls are too few for an interval" if of.n else "no control of equal length"
        value = float(values.mean()) - (of.level if of.n else 0.0)
        return undefined(why, n=len(values), unit="prompt", value=value), math.nan
    value = float(values.mean()) - of.level
    se = of.spread * math.sqrt(1 / len(values) + 1 / (EFFICIENCY * of.n))
    half = -float(special.stdtrit(of.df, 0.025)) * se
    p = 2 * float(special.stdtr(of.df, -abs(value) / se))
    return Estimate(value, value - half, value + half, len(values), "prompt", se=se), p
