"""Quality of stated chances: how well they foretell what happens, and whether they know the items
or the model itself.

Arrays are [item]: chances `p` and outcomes `y` in 0..1, where y may be a mean over epochs. A pair
of items (i, j) counts y_i (1 - y_j) times, and is in order where p_i > p_j; the share of pairs in
order is the AUROC. Its error is that of DeLong et al. 1988 by cluster (Obuchowski 1997), as an
influence function, so that one formula serves strata too.

Whoever knows which items are hard ranks the successes of every model. What is known beyond that
shows among items that *as many* models solved: there, if models differ in skill and items in
difficulty alone (Rasch 1960), which of the models were right does not depend on the difficulty.
This is the test of differential item functioning (Mantel & Haenszel 1959; Holland & Thayer 1988),
the model's own outcome counted among the solved ones as it must be.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import (
    Estimate,
    FloatArray,
    clustered_mean,
    holm,
    two_sided_p,
    undefined,
    wilson,
)

CLIP = 0.01
"""Least distance of stated chances from 0 and 1 in the log score, where one wrong 1 would decide
all.
"""
COVERAGES = (1.0, 0.8, 0.6, 0.4, 0.2)
"""Shares of the items that are acted on."""
IN_A_STRATUM = 8
"""Least number of items of a stratum on average; with more sums than that whole ones are strata."""


ALPHA = 0.02
"""Level of one-sided tests that chances know something."""
World = Literal["neither", "items", "itself", "both"]
WORLDS: tuple[World, ...] = get_args(World)


@dataclass(frozen=True)
class Brier:
    """A Brier score and its parts: score = miscalibration - discrimination + uncertainty."""

    score: float
    miscalibration: float
    """Part of the score that the best monotone recalibration would take off."""
    discrimination: float
    """Part of the uncertainty that the recalibrated chances take off."""
    uncertainty: float
    """The score of always stating the share that happened."""


@dataclass(frozen=True)
class Detection:
    """Chances of one half and more as a yes to "it will happen" (signal detection)."""

    d_prime: float
    criterion: float
    """Criterion; above 0 the judge says yes too rarely."""


@dataclass(frozen=True)
class Ordered:
    """Pairs in which an item takes part."""

    right: FloatArray
    """[item]: weight of its pairs in order, ties by half."""
    pairs: FloatArray
    """[item]: weight of its pairs."""

    @property
    def auroc(self) -> float:
        """Share of pairs in order; NaN without any."""
        return float(self.right.sum() / self.pairs.sum()) if self.pairs.sum() > 0 else math.nan

    @property
    def influence(self) -> FloatArray:
        """[item]: contribution of each item to the AUROC, with the mean 0."""
        return np.asarray(
            2 * len(self.right) * (self.right - self.auroc * self.pairs) / self.pairs.sum()
        )

    @property
    def scores(self) -> FloatArray:
        """[item]: share of the item's pairs that are in order; NaN where it has none."""
        return np.asarray(
            np.where(self.pairs > 0, self.right / np.where(self.pairs > 0, self.pairs, 1), math.nan)
        )


def ordered(
    p: npt.ArrayLike, y: npt.ArrayLike, strata: npt.NDArray[np.intp] | None = None
) -> Ordered:
    """Pairs in order among items of one stratum; without strata among all items."""
    stated, truth = np.asarray(p, dtype=float), np.asarray(y, dtype=float)
    if not len(truth):
        return Ordered(np.zeros(0), np.zeros(0))
    stratum = np.zeros(len(truth), dtype=np.intp) if strata is None else strata
    order = np.lexsort((stated, stratum))
    yes, no = truth[order], 1 - truth[order]
    new_stratum = np.diff(stratum[order], prepend=-1) != 0
    new_stratum[0] = True
    groups = _Groups(new_stratum, new_stratum | (np.diff(stated[order], prepend=math.nan) != 0))
    in_order = yes * (groups.below(no) - no / 2) + no * (
        groups.total(yes) - groups.below(yes) - yes / 2
    )
    all_pairs = yes * (groups.total(no) - no) + no * (groups.total(yes) - yes)
    right, pairs = np.empty(len(truth)), np.empty(len(truth))
    right[order], pairs[order] = in_order, all_pairs
    return Ordered(right, pairs)


class _Groups:
    """Items in the order of their strata, and of their chances within a stratum.

    Args:
        new_stratum: [item]: True for the first of a stratum.
        new_chance: [item]: True for the first of those with equal chances in a stratum.
    """

    def __init__(
        self, new_stratum: npt.NDArray[np.bool_], new_chance: npt.NDArray[np.bool_]
    ) -> None:
        self.stratum_starts = np.flatnonzero(new_stratum)
        self.stratum = np.cumsum(new_stratum) - 1
        self.chance_starts = np.flatnonzero(new_chance)
        self.chance = np.cumsum(new_chance) - 1

    def total(self, weight: FloatArray) -> FloatArray:
        """[item]: the weight of its stratum."""
        return np.asarray(np.add.reduceat(weight, self.stratum_starts)[self.stratum])

    def below(self, weight: FloatArray) -> FloatArray:
        """[item]: the weight of the items of its stratum with a lower chance, and half of that with
        an equal one.
        """
        equal = np.add.reduceat(weight, self.chance_starts)
        up_to = np.cumsum(equal)
        first_chance = self.chance[self.stratum_starts]
        before_stratum = (up_to[first_chance] - equal[first_chance])[self.stratum]
        return np.asarray((up_to - equal / 2)[self.chance] - before_stratum)


def stratified_auroc(
    p: npt.ArrayLike,
    y: npt.ArrayLike,
    clusters: npt.ArrayLike,
    strata: npt.NDArray[np.intp] | None = None,
    *,
    unit: str = "item",
) -> Estimate:
    """Share of pairs in order with its interval by cluster; undefined where all outcomes are alike.

    Where all pairs are in order nothing varies: the interval is then Wilson's for as many trials as
    the rarer outcome has items.
    """
    found = ordered(p, y, strata)
    labels = np.asarray(clusters)
    if math.isnan(found.auroc):
        reason = "no item of another outcome" + " is solved by as many models" * (
            strata is not None
        )
        return undefined(
            reason if len(labels) else "no item has both", n=len(np.unique(labels)), unit=unit
        )
    made = clustered_mean(found.auroc + found.influence, labels, unit=unit, interval="t")
    if made.se > 0 and 0 < found.auroc < 1:
        return replace(made, low=max(0.0, made.low), high=min(1.0, made.high))
    return _invariant(found.auroc, np.asarray(y, dtype=float), labels, unit)


def _invariant(value: float, truth: FloatArray, labels: npt.NDArray[Any], unit: str) -> Estimate:
    """An AUROC to which every item contributes equally, with Wilson's interval."""
    rarer = max(1.0, min(truth.sum(), (1 - truth).sum()))
    low, high = wilson(value, rarer, df=max(1, len(np.unique(labels)) - 1))
    return Estimate(
        value, low, high, len(np.unique(labels)), unit, se=(high - low) / 4, df=max(1.0, rarer)
    )


def auroc_above(
    mine: Ordered, theirs: Ordered, clusters: npt.ArrayLike, y: npt.ArrayLike | None = None
) -> Estimate:
    """Difference between one AUROC and that of a rival on the same items, by what each item adds to
    both.

    Where no item varies (a perfect model beside a constant) it has the interval of the one less the
    other's value, if the outcomes `y` are given.
    """
    if math.isnan(mine.auroc) or math.isnan(theirs.auroc):
        return undefined("no item of another outcome")
    off, labels = (
        mine.auroc - theirs.auroc + mine.influence - theirs.influence,
        np.asarray(clusters),
    )
    made = clustered_mean(off, labels, interval="t")
    if made.se > 0 or y is None or mine.auroc == theirs.auroc:
        return made
    own = _invariant(mine.auroc, np.asarray(y, dtype=float), labels, made.unit)
    low, high = own.low - theirs.auroc, own.high - theirs.auroc
    return replace(own, value=mine.auroc - theirs.auroc, low=low, high=high)


def above(estimate: Estimate, level: float) -> float:
    """One-sided p that an estimate is above a level; 1 where nothing is known."""
    if not estimate.se > 0:
        return 1.0
    p = two_sided_p((estimate.value - level) / estimate.se, estimate.df)
    return p / 2 if estimate.value > level else 1 - p / 2


def solved_alike(outcomes: npt.ArrayLike) -> npt.NDArray[np.intp]:
    """Strata of items that equally many models solved, from `outcomes  # [model, item]`, NaN where unknown.

    Sums of shares are whole numbers where there would be less than `IN_A_STRATUM` items in a
    stratum otherwise.
    """
    values = np.asarray(outcomes, dtype=float)
    known = ~np.isnan(values)
    total = np.where(known, values, 0).sum(axis=0).round(6)
    if len(np.unique(total)) > max(len(values) + 1, values.shape[1] / IN_A_STRATUM):
        total = np.round(total)
    totals, total_codes = np.unique(total, return_inverse=True)
    patterns = np.packbits(known, axis=0)  # whose results are known
    if (patterns == patterns[:, :1]).all():
        return np.asarray(total_codes, dtype=np.intp)
    pattern_codes = np.unique(patterns, axis=1, return_inverse=True)[1].ravel()
    return np.asarray(
        np.unique(pattern_codes * len(totals) + total_codes, return_inverse=True)[1], dtype=np.intp
    )


@dataclass(frozen=True)
class Knowledge:
    """Knowledge in stated chances, both parts as AUROC; .5 is nothing."""

    items: Estimate
    """AUROC with which the chances rank the outcomes of the other models."""
    itself: Estimate
    """AUROC with which they rank the model's outcomes among items that equally many models solved.
    """

    @property
    def world(self) -> World:
        """The knowledge that is shown, by one-sided tests at `ALPHA`, corrected for two (Holm)."""
        items, itself = holm([above(self.items, 0.5), above(self.itself, 0.5)]) < ALPHA
        return WORLDS[int(items) + 2 * int(itself)]


def knowledge(
    p: npt.ArrayLike, outcomes: npt.ArrayLike, others: npt.ArrayLike, clusters: npt.ArrayLike
) -> Knowledge:
    """Knowledge in chances about a model's outcomes `own  # [item]`, compared with `others  # [model, item]`."""
    mine, rest = np.asarray(outcomes, dtype=float), np.asarray(others, dtype=float)
    share = mean_of(rest)
    there = ~np.isnan(share)
    stated, labels = np.asarray(p, dtype=float), np.asarray(clusters)
    strata = solved_alike(np.vstack([mine, rest])[:, there])
    return Knowledge(
        items=stratified_auroc(stated[there], share[there], labels[there]),
        itself=stratified_auroc(stated[there], mine[there], labels[there], strata),
    )


def mean_of(outcomes: FloatArray) -> FloatArray:
    """[item]: mean of the known outcomes of several models, NaN where none is known."""
    known = ~np.isnan(outcomes)
    count = known.sum(axis=0)
    return np.asarray(
        np.where(count, np.where(known, outcomes, 0).sum(axis=0) / np.maximum(count, 1), math.nan)
    )


def brier(p: npt.ArrayLike, y: npt.ArrayLike) -> Brier:
    """The mean squared error in parts that need no bins: recalibration is isotonic (Dimitriadis et
    al. 2021).
    """
    from scipy.optimize import isotonic_regression  # here: slow to import

    stated, truth = np.asarray(p, dtype=float), np.asarray(y, dtype=float)
    _, at, counts = np.unique(stated, return_inverse=True, return_counts=True)
    shares = np.bincount(at, truth) / counts
    best = isotonic_regression(shares, weights=counts.astype(float)).x[at]
    score, recalibrated, constant = (
        float(np.square(of - truth).mean())
        for of in (stated, best, np.full(len(truth), truth.mean()))
    )
    return Brier(score, score - recalibrated, constant - recalibrated, constant)


def log_score(p: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Mean negative log-likelihood in nats of chances kept `CLIP` off 0 and 1."""
    stated, truth = np.clip(np.asarray(p, dtype=float), CLIP, 1 - CLIP), np.asarray(y, dtype=float)
    return float(-(truth * np.log(stated) + (1 - truth) * np.log1p(-stated)).mean())


def overconfidence(
    p: npt.ArrayLike, y: npt.ArrayLike, clusters: npt.ArrayLike, *, unit: str = "item"
) -> Estimate:
    """Mean stated chance less the share that happened."""
    off = np.asarray(p, dtype=float) - np.asarray(y, dtype=float)
    return clustered_mean(off, clusters, unit=unit, interval="difference")


def detection(p: npt.ArrayLike, y: npt.ArrayLike) -> Detection:
    """d' and criterion of saying yes from one half on, with half an item added to each cell (Hautus
    1995).
    """
    yes, truth = np.asarray(p, dtype=float) >= 0.5, np.asarray(y, dtype=float)
    happened, not_happened = truth.sum(), (1 - truth).sum()
    if not (happened and not_happened):
        return Detection(math.nan, math.nan)
    hits, alarms = (
        (truth[yes].sum() + 0.5) / (happened + 1),
        ((1 - truth)[yes].sum() + 0.5) / (not_happened + 1),
    )
    z = special.ndtri([hits, alarms])
    return Detection(float(z[0] - z[1]), float(-z.mean()))


def risks(p: npt.ArrayLike, y: npt.ArrayLike) -> Mapping[float, float]:
    """Coverage → share of failures among the items with the highest chances; tied ones count as if
    drawn.
    """
    stated, truth = np.asarray(p, dtype=float), np.asarray(y, dtype=float)
    _, at = np.unique(-stated, return_inverse=True)
    counts = np.bincount(at)
    failed = np.concatenate([[0.0], np.cumsum(np.bincount(at, 1 - truth))])
    upto = np.concatenate([[0.0], np.cumsum(counts)])
    return {
        c: float(np.interp(c * len(stated), upto, failed) / (c * len(stated))) for c in COVERAGES
    }
