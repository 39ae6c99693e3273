"""Test of whether taking a piece out of a text moves a number more than taking out as much text elsewhere does."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import Estimate, holm, undefined

FLOOR = 0.02
"""Least standard deviation of a mere edit: stated probabilities are rounded, to .05 most often."""
EFFICIENCY = 0.37
"""Efficiency of the median and of the median deviation, compared with mean and standard deviation of normal numbers
(Rousseeuw and Croux 1993): so large a share of the controls counts. They are used since a control can hit a giveaway by
chance."""
FEWEST = 4
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
    if of.n < FEWEST:
        why = f"{of.n} controls are too few for an interval" if of.n else "no control of equal length"
        value = float(values.mean()) - (of.level if of.n else 0.0)
        return undefined(why, n=len(values), unit="prompt", value=value), math.nan
    value = float(values.mean()) - of.level
    se = of.spread * math.sqrt(1 / len(values) + 1 / (EFFICIENCY * of.n))
    half = -float(special.stdtrit(of.df, 0.025)) * se
    p = 2 * float(special.stdtr(of.df, -abs(value) / se))
    return Estimate(value, value - half, value + half, len(values), "prompt", se=se), p
