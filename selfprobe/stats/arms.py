"""Arms of an experiment on the same items: each less its control, in a score and in a suspected
cause.

An arm changes how an item is put, and with it a suspected cause (here P(evaluation)).
`arm_contrasts` has the change of the score and of the cause, both paired by item. `Dose` is the
change of the score for a change of the cause of 1, with the arm as the instrument: the ratio of the
two mean changes (Wald 1940; two-stage least squares with one binary instrument). It is the cause's
effect only if the arm changes the score by nothing else.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

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
    undefined,
)

ALPHA = 0.05
POWER = 0.8
"""Power for which the detectable effect and the needed items are computed."""
FEWEST_MOVED_CLUSTERS = 12
"""Number of clusters that must have moved otherwise than most did for their spread to be trusted.
"""
FEWEST_SIGNED_CLUSTERS = 6
"""Number of clusters from which their signs can show a change at 5 %: 2·2⁻⁶ is less, 2·2⁻⁵ is more.
"""
MOST_ENUMERATED_CLUSTERS = 13
"""Largest number of clusters of which every choice of signs is counted; of more, some are drawn."""
SIGN_DRAWS = 4095
"""Number of draws of signs."""
TIE = 1e-9
"""Largest difference of sums that is rounding error."""
STRONG_INSTRUMENT_F = 10.0
"""F of the first stage from which an instrument is not weak (Staiger and Stock 1997)."""
FEWEST_DOSE_CLUSTERS = 10
"""Number of clusters with both changes from which there is a dose."""
DIFFERING_BY_CHANCE = 0.05
"""Share of items that change by chance, for a power that is reported before anything is known."""
LEAST_CAUSE_SD = 0.02
"""Least standard deviation of a change of the cause: stated probabilities are rounded, to .05 most
often.
"""
EDGE_DISTANCE = 0.05
"""Distance to 0 or 1 within which the mean of scores is at the floor or the ceiling."""


class Edge(Enum):
    """End of the scale at which a mean of scores lies."""

    FLOOR = "floor"
    CEILING = "ceiling"


@dataclass(frozen=True)
class ArmDifference:
    """A mean under an arm less that under its control, on the items that have both."""

    control_mean: float
    estimate: Estimate
    """Arm less control, with its 95 % interval."""
    p_value: float
    """Two-sided p of no difference; NaN with fewer than FEWEST_SIGNED_CLUSTERS clusters."""
    effective_n: float
    """Number of independent items of variance 1 that would say as much about the mean; 0 where
    unknown.
    """

    def detectable(self, tests: int) -> float:
        """Smallest difference that items like these show with 80 % power, at 5 % / `tests`; NaN
        where unknown.
        """
        if not self.effective_n:
            return math.nan
        limit = -float(special.stdtrit(self.estimate.df, ALPHA / 2 / tests))
        return (limit + float(special.ndtri(POWER))) / math.sqrt(self.effective_n)

    def items_needed(self, smallest: float, tests: int) -> int | None:
        """Number of items like these that show a difference of this size with 80 % power; None
        where unknown.
        """
        if not self.effective_n:
            return None
        quantiles = -float(special.ndtri(ALPHA / 2 / tests)) + float(special.ndtri(POWER))
        exact = self.estimate.n / self.effective_n * (quantiles / smallest) ** 2
        step = int(10 ** max(0, math.floor(math.log10(exact)) - 1))
        return math.ceil(exact / step) * step


def arm_difference(
    control: npt.ArrayLike,
    arm: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    unit: str = "item",
    scale: float = 1.0,
) -> ArmDifference:
    """The difference of two means over `control, arm  # [item]`, paired by item, clustered.

    An item that either lacks (NaN) is left out. Where twelve clusters or more moved otherwise than
    most did, interval and p are those of t with the jackknife's error. With fewer, p is that of the
    signs of whole clusters, and the interval is that of `clustered_mean` for differences, which
    never has width 0. Rates: docs/statistics.md.

    Args:
        control, arm: Scores of the same items.
        clusters: Label of the cluster of each item.
        unit: Name of a cluster.
        scale: The largest difference that a mean can have; 1 for scores in [0, 1].
    """
    control_scores = np.asarray(control, dtype=float)
    arm_scores = np.asarray(arm, dtype=float)
    has_both = ~np.isnan(control_scores) & ~np.isnan(arm_scores)
    if not has_both.any():
        return ArmDifference(math.nan, undefined("nothing was scored", unit=unit), math.nan, 0.0)

    differences = (arm_scores - control_scores)[has_both]
    labels = np.unique(np.asarray(clusters)[has_both], return_inverse=True)[1]
    control_mean = float(control_scores[has_both].mean())
    cluster_sums = np.bincount(labels, differences)
    cluster_means = cluster_sums / np.bincount(labels)
    moved_clusters = int(np.sum(np.abs(cluster_means - np.median(cluster_means)) > TIE))
    if moved_clusters >= FEWEST_MOVED_CLUSTERS:
        by_t = clustered_mean(differences, labels, unit=unit, interval="t")
        return ArmDifference(control_mean, by_t, two_sided(by_t), by_t.se**-2)

    unscaled = clustered_mean(differences / scale, labels, unit=unit, interval="difference")
    value, low, high = (float(end * scale) for end in (unscaled.value, unscaled.low, unscaled.high))
    estimate = Estimate(value, low, high, unscaled.n, unit, unscaled.reason, df=unscaled.df)
    if math.isnan(low):
        return ArmDifference(control_mean, estimate, math.nan, 0.0)
    effective_n = effective((differences / scale + 1) / 2, labels) / scale**2
    return ArmDifference(control_mean, estimate, sign_p(cluster_sums), effective_n)


def sign_p(cluster_sums: npt.ArrayLike) -> float:
    """Two-sided p of no difference by the signs of whole clusters; NaN with fewer than
    FEWEST_SIGNED_CLUSTERS.

    Args:
        cluster_sums: Sum of the differences of each cluster, [cluster].
    """
    sums = np.asarray(cluster_sums, dtype=float)
    if len(sums) < FEWEST_SIGNED_CLUSTERS:
        return math.nan
    moved = sums[np.abs(sums) > TIE]
    if not len(moved):
        return 1.0
    if len(moved) <= MOST_ENUMERATED_CLUSTERS:
        signs = np.array(list(product((1.0, -1.0), repeat=len(moved))))
    else:
        signs = np.random.default_rng(0).choice((1.0, -1.0), size=(SIGN_DRAWS + 1, len(moved)))
        signs[0] = 1.0
    totals = np.abs(signs @ moved)
    return float((totals >= totals[0] - TIE * len(moved)).mean())


@dataclass(frozen=True)
class Dose:
    """Change of the score for a change of the cause by 1."""

    estimate: Estimate
    """Dose with the interval of Fieller (1954), which is also that of Anderson and Rubin (1949) and
    holds for weak instruments; without a value where the instrument is weak.
    """
    f: float
    """F of the first stage: the squared t of the mean change of the cause; NaN without items."""

    @property
    def is_strong(self) -> bool:
        """Whether the arm moves the cause enough for a dose."""
        return self.f >= STRONG_INSTRUMENT_F


@dataclass(frozen=True)
class ArmContrast:
    """An arm less its control."""

    arm: str
    control: str
    score: ArmDifference
    cause: ArmDifference
    dose: Dose
    scored_share: float
    """Share of the items asked under both that have both scores; NaN where none was asked."""
    score_p: float = math.nan
    """p of no change of the score, corrected by Holm over the contrasts that were asked for
    together.
    """
    cause_p: float = math.nan
    """p of no change of the cause, corrected alike."""


def arm_contrasts(
    scores: Mapping[str, npt.ArrayLike],
    causes: Mapping[str, npt.ArrayLike],
    pairs: Sequence[tuple[str, str]],
    *,
    asked: Mapping[str, npt.ArrayLike] | None = None,
    clusters: npt.ArrayLike | None = None,
    unit: str = "item",
) -> list[ArmContrast]:
    """Each arm less its control, paired by item; p not corrected yet.

    Args:
        scores: Arm → `[item]`, NaN where unscored; the same items in the same order in every arm.
        causes: Arm → `[item]` in [0, 1], for the same items.
        pairs: Arms and their controls.
        asked: Arm → `[item]`, whether the item was asked. Default: all were.
        clusters: `[item]`, label of independent units. Default: each item by itself.
        unit: Name of a cluster.
    """
    scale = score_scale(scores.values())
    contrasts = []
    for arm, control in pairs:
        control_scores, arm_scores = (
            np.asarray(scores[name], dtype=float) for name in (control, arm)
        )
        control_causes, arm_causes = (
            np.asarray(causes[name], dtype=float) for name in (control, arm)
        )
        labels = np.arange(len(arm_scores)) if clusters is None else np.asarray(clusters)
        was_asked = np.ones(len(arm_scores), dtype=bool)
        if asked is not None:
            was_asked = np.asarray(asked[arm], dtype=bool) & np.asarray(asked[control], dtype=bool)
        score_changes = arm_scores - control_scores
        is_scored = ~np.isnan(score_changes[was_asked])
        contrasts.append(
            ArmContrast(
                arm,
                control,
                score=arm_difference(control_scores, arm_scores, labels, unit=unit, scale=scale),
                cause=arm_difference(control_causes, arm_causes, labels, unit=unit),
                dose=dose(score_changes, arm_causes - control_causes, labels, unit=unit),
                scored_share=float(is_scored.mean()) if len(is_scored) else math.nan,
            )
        )
    return contrasts


def corrected_contrasts(families: Sequence[Sequence[ArmContrast]]) -> list[list[ArmContrast]]:
    """Contrasts with Holm's correction over all of them: arms of one model, and models that were
    asked together.
    """
    contrasts = [contrast for family in families for contrast in family]
    score_ps = iter(holm([contrast.score.p_value for contrast in contrasts]))
    cause_ps = iter(holm([contrast.cause.p_value for contrast in contrasts]))
    return [
        [
            replace(contrast, score_p=float(next(score_ps)), cause_p=float(next(cause_ps)))
            for contrast in family
        ]
        for family in families
    ]


def score_scale(scores: Iterable[npt.ArrayLike]) -> float:
    """The largest change that a mean can have: 1 for scores in [0, 1], else the range of what was
    seen.
    """
    known = np.concatenate([np.ravel(np.asarray(arm_scores, dtype=float)) for arm_scores in scores])
    known = known[~np.isnan(known)]
    if not len(known) or (known.min() >= 0 and known.max() <= 1):
        return 1.0
    return float(np.ptp(known)) or 1.0


def dose(
    score_changes: npt.ArrayLike,
    cause_changes: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    unit: str = "item",
) -> Dose:
    """The dose of an arm, from means by cluster of `score_changes, cause_changes  # [item]`, NaN where unknown."""
    all_scores = np.asarray(score_changes, dtype=float)
    all_causes = np.asarray(cause_changes, dtype=float)
    has_both = ~np.isnan(all_scores) & ~np.isnan(all_causes)
    labels = np.unique(np.asarray(clusters)[has_both], return_inverse=True)[1]
    sizes = np.bincount(labels) if has_both.any() else np.empty(0)
    n = len(sizes)
    if n < FEWEST_DOSE_CLUSTERS:
        reason = f"{n} {unit}s have both changes, {FEWEST_DOSE_CLUSTERS} are needed"
        return Dose(undefined(reason, n=n, unit=unit), math.nan)
    y = np.bincount(labels, all_scores[has_both]) / sizes
    x = np.bincount(labels, all_causes[has_both]) / sizes
    d, e = float(y.mean()), float(x.mean())
    (vyy, vyx), (_, vxx) = np.cov(y, x) / n
    vxx = max(float(vxx), LEAST_CAUSE_SD**2 / n)
    f = e * e / vxx
    if not vyy > 0:
        return Dose(
            undefined(f"all {unit}s change alike, which gives no interval", n=n, unit=unit), f
        )
    if f < STRONG_INSTRUMENT_F:
        reason = f"weak instrument: F = {f:.1f}, below {STRONG_INSTRUMENT_F:.0f}"
        return Dose(undefined(reason, n=n, unit=unit), f)
    t2 = float(special.stdtrit(n - 1, ALPHA / 2)) ** 2
    a, b, c = e * e - t2 * vxx, d * e - t2 * vyx, d * d - t2 * vyy
    root = math.sqrt(max(0.0, b * b - a * c))
    return Dose(Estimate(d / e, float((b - root) / a), float((b + root) / a), n, unit), f)


def visible_effect(items: int, tests: int, *, differing: float = DIFFERING_BY_CHANCE) -> float:
    """The smallest effect on a score of 0 or 1 that so many items show with 80 % power, before
    anything is asked.

    An effect e makes at least a share e of the items come out otherwise, and `differing` do by
    chance: the variance of a difference is their sum.

    >>> round(visible_effect(100, 1), 2), round(visible_effect(1000, 1), 3)
    (0.11, 0.024)
    """
    quantiles = -float(special.ndtri(ALPHA / 2 / tests)) + float(special.ndtri(POWER))
    per_item = quantiles**2 / items
    return min(1.0, per_item / 2 * (1 + math.sqrt(1 + 4 * differing / per_item)))


def score_edge(scores: npt.ArrayLike) -> Edge | None:
    """End of the scale at which the mean of `scores  # [item]` in [0, 1] lies; None where it lies at neither."""
    known: FloatArray = np.asarray(scores, dtype=float)
    known = known[~np.isnan(known)]
    if not len(known) or known.min() < 0 or known.max() > 1:
        return None
    mean = float(known.mean())
    if mean <= EDGE_DISTANCE:
        return Edge.FLOOR
    return Edge.CEILING if mean >= 1 - EDGE_DISTANCE else None
