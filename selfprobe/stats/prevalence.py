"""Prevalence of something that was counted by a judge who errs, where people labelled some."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from selfprobe.stats.estimate import Estimate, undefined, wilson

LEVEL = 0.95
DRAWS = 20_000
DRIFT = 0.1
"""Change of a judge's sensitivity or specificity from one set to another whose effect is shown."""
_Z = -float(special.ndtri((1 - LEVEL) / 2))


@dataclass(frozen=True)
class Share:
    """k out of n."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """Share as a number; NaN where n is 0."""
        return self.hits / self.of if self.of else math.nan

    def estimate(self, unit: str) -> Estimate:
        """Share with Wilson's interval."""
        if not self.of:
            return undefined("none is labelled", unit=unit)
        return Estimate(self.value, *wilson(self.value, self.of), self.of, unit)


@dataclass(frozen=True)
class Prevalence:
    """A rate as the judge counts it, and corrected."""

    flagged: Estimate
    corrected: Estimate
    sensitivity: float
    """Share of the true cases that the judge flags."""
    specificity: float
    """Share of the other cases that the judge does not flag."""
    clipped: str = ""
    """Sentence with the result of the correction, where that is no share."""


def labelled_within(
    flagged: Share, of_flagged: Share, of_others: Share, *, independent: float | None = None, unit: str = "text"
) -> Prevalence:
    """Prevalence where labels were drawn from the judged cases: by chance among the flagged, and among the others.

    The rate is flagged·P(true | flagged) + (1 − flagged)·P(true | not flagged), which is Rogan and Gladen's (1978) with
    the sensitivity and specificity that follow. Labels of flagged ones alone would make specificity look bad; this does
    not need them to be a sample of all. The interval holds the errors of all three shares, drawn from their posteriors
    under Jeffreys' prior (Brown, Cai & DasGupta 2001), 95 %.

    Args:
        flagged: Cases that the judge flags, out of all.
        of_flagged: True cases among the labelled ones that the judge flagged.
        of_others: True cases among the labelled ones that it did not flag.
        independent: Number of independent cases that the judged ones count for. Default: all.
        unit: What was judged.
    """
    n = flagged.of if independent is None else independent
    rate = flagged.estimate(unit)
    for share, there, name in (
        (of_flagged, flagged.hits, "flagged"),
        (of_others, flagged.of - flagged.hits, "not flagged"),
    ):
        if there and not share.of:
            return Prevalence(rate, undefined(f"none of the {there} {name} is labelled", unit=unit), math.nan, math.nan)
    r = flagged.value
    hit, missed = r * (of_flagged.value if r else 0.0), (1 - r) * (of_others.value if r < 1 else 0.0)
    value = hit + missed
    rng = np.random.default_rng(0)
    drawn_r = rng.beta(r * n + 0.5, (1 - r) * n + 0.5, DRAWS)
    a, b = (rng.beta(s.hits + 0.5, s.of - s.hits + 0.5, DRAWS) for s in (of_flagged, of_others))
    drawn = drawn_r * (a if r else 0.0) + (1 - drawn_r) * (b if r < 1 else 0.0)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    alone = r * (1 - of_flagged.value) if r else 0.0
    return Prevalence(
        flagged=rate,
        corrected=Estimate(value, min(float(low), value), max(float(high), value), round(n), unit),
        sensitivity=hit / value if value else math.nan,
        specificity=1 - alone / (1 - value) if value < 1 else math.nan,
    )


def labelled_elsewhere(flagged: Share, hits: Share, left: Share, *, unit: str = "text") -> Prevalence:
    """Prevalence where the judge was checked on labelled cases of another set: Rogan and Gladen (1978).

    (flagged + specificity − 1) / (sensitivity + specificity − 1), cut to a share. The interval is Lang and Reiczigel's
    (2014, Preventive Veterinary Medicine 113:13), which holds the errors of all three shares, 95 %.

    Args:
        flagged: Cases that the judge flags, out of all.
        hits: Flagged cases among those that people call true.
        left: Cases without a flag among those that people call not true.
        unit: What was judged.
    """
    rate = flagged.estimate(unit)
    given = (hits.value, left.value)
    if not flagged.of or not hits.of or not left.of:
        why = "nothing was judged" if not flagged.of else f"nothing is labelled {'no' if hits.of else 'yes'}"
        return Prevalence(rate, undefined(why, unit=unit), *given)
    if hits.value + left.value <= 1:
        why = f"the judge is no better than chance: sensitivity {hits.value:.2f}, specificity {left.value:.2f}"
        return Prevalence(rate, undefined(why, n=flagged.of, unit=unit), *given)
    raw = (flagged.value + left.value - 1) / (hits.value + left.value - 1)
    n, p = flagged.of + _Z**2, (flagged.hits + _Z**2 / 2) / (flagged.of + _Z**2)
    ours, others = hits.of + 2, left.of + 2
    se, sp = (hits.hits + 1) / ours, (left.hits + 1) / others
    youden = se + sp - 1
    centre = (p + sp - 1) / youden
    parts = (p * (1 - p) / n, se * (1 - se) / ours * centre**2, sp * (1 - sp) / others * (1 - centre) ** 2)
    spread = math.sqrt(sum(parts)) / abs(youden)
    shift = 2 * _Z**2 * (centre * se * (1 - se) / ours - (1 - centre) * sp * (1 - sp) / others)
    low, high = (min(max(centre + shift + sign * _Z * spread, 0.0), 1.0) for sign in (-1, 1))
    value = min(max(raw, 0.0), 1.0)
    clipped = f"the correction gives {raw:.3f}, which is no share: cut to {value:.0f}" if value != raw else ""
    return Prevalence(rate, Estimate(value, min(low, value), max(high, value), flagged.of, unit), *given, clipped)


def drifted(flagged: Share, sensitivity: float, specificity: float, *, by: float = DRIFT) -> tuple[float, float]:
    """Lowest and highest corrected rate if one of the two had changed by so much since the judge was checked.

    >>> drifted(Share(200, 1000), 0.8, 0.9)
    (0.0, 0.25)
    """
    changed = [(sensitivity + sign * by, specificity) for sign in (-1, 1)]
    changed += [(sensitivity, specificity + sign * by) for sign in (-1, 1)]
    kept = [(min(a, 1.0), min(b, 1.0)) for a, b in changed]
    rates = [min(max((flagged.value + b - 1) / (a + b - 1), 0.0), 1.0) if a + b > 1 else 1.0 for a, b in kept]
    return round(min(rates), 6), round(max(rates), 6)
