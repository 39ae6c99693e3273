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
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import (
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    clustered_mean,
    two_sided_p,
    undefined,
    wilson,
)

LOG_SCORE_CLIP = 0.01
"""Least distance of stated chances from 0 and 1 in the log score, where one wrong 1 would decide
all.
"""
COVERAGES = (1.0, 0.8, 0.6, 0.4, 0.2)
"""Shares of the items that are acted on."""
FEWEST_ITEMS_OF_STRATUM = 8
"""Least number of items of a stratum on average; with more sums than that whole ones are strata."""


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

    in_order: FloatArray
    """[item]: weight of its pairs in order, ties by half."""
    all_pairs: FloatArray
    """[item]: weight of its pairs."""

    @property
    def auroc(self) -> float:
        """Share of pairs in order; NaN without any."""
        total = self.all_pairs.sum()
        return float(self.in_order.sum() / total) if total > 0 else math.nan

    @property
    def influence(self) -> FloatArray:
        """[item]: contribution of each item to the AUROC, with the mean 0."""
        deviations = self.in_order - self.auroc * self.all_pairs
        return np.asarray(2 * len(deviations) * deviations / self.all_pairs.sum())

    @property
    def scores(self) -> FloatArray:
        """[item]: share of the item's pairs that are in order; NaN where it has none."""
        has_pairs = self.all_pairs > 0
        divisors = np.where(has_pairs, self.all_pairs, 1)
        return np.where(has_pairs, self.in_order / divisors, math.nan)


def ordered(p: npt.ArrayLike, y: npt.ArrayLike, strata: IntArray | None = None) -> Ordered:
    """Pairs in order among items of one stratum; without strata among all items."""
    chances = np.asarray(p, dtype=float)
    outcomes = np.asarray(y, dtype=float)
    if not len(outcomes):
        return Ordered(np.zeros(0), np.zeros(0))
    stratum_of_item = np.zeros(len(outcomes), dtype=np.intp) if strata is None else strata
    item_order = np.lexsort((chances, stratum_of_item))
    sorted_chances = chances[item_order]
    happened = outcomes[item_order]
    failed = 1 - happened

    is_stratum_start = np.diff(stratum_of_item[item_order], prepend=-1) != 0
    is_stratum_start[0] = True
    is_chance_start = is_stratum_start | (np.diff(sorted_chances, prepend=math.nan) != 0)
    groups = _Groups(is_stratum_start, is_chance_start)
    failed_below = groups.below(failed) - failed / 2
    happened_above = groups.total(happened) - groups.below(happened) - happened / 2
    sorted_in_order = happened * failed_below + failed * happened_above
    sorted_pairs = happened * (groups.total(failed) - failed)
    sorted_pairs += failed * (groups.total(happened) - happened)

    in_order = np.empty(len(outcomes))
    in_order[item_order] = sorted_in_order
    all_pairs = np.empty(len(outcomes))
    all_pairs[item_order] = sorted_pairs
    return Ordered(in_order, all_pairs)


class _Groups:
    """Items in the order of their strata, and of their chances within a stratum.

    Args:
        is_stratum_start: [item]: True for the first of a stratum.
        is_chance_start: [item]: True for the first of those with equal chances in a stratum.
    """

    def __init__(self, is_stratum_start: BoolArray, is_chance_start: BoolArray) -> None:
        self.stratum_starts = np.flatnonzero(is_stratum_start)
        self.stratum = np.cumsum(is_stratum_start) - 1
        self.chance_starts = np.flatnonzero(is_chance_start)
        self.chance = np.cumsum(is_chance_start) - 1

    def total(self, weight: FloatArray) -> FloatArray:
        """[item]: the weight of its stratum."""
        return np.asarray(np.add.reduceat(weight, self.stratum_starts)[self.stratum])

    def below(self, weight: FloatArray) -> FloatArray:
        """[item]: the weight of the items of its stratum with a lower chance, and half of that with
        an equal one.
        """
        weight_of_chance = np.add.reduceat(weight, self.chance_starts)
        up_to_chance = np.cumsum(weight_of_chance)
        first_chances = self.chance[self.stratum_starts]
        before_first = up_to_chance[first_chances] - weight_of_chance[first_chances]
        half_equal = up_to_chance - weight_of_chance / 2
        return np.asarray(half_equal[self.chance] - before_first[self.stratum])


def stratified_auroc(
    p: npt.ArrayLike,
    y: npt.ArrayLike,
    clusters: npt.ArrayLike,
    strata: IntArray | None = None,
    *,
    unit: str = "item",
) -> Estimate:
    """Share of pairs in order with its interval by cluster; undefined where all outcomes are alike.

    Where all pairs are in order nothing varies: the interval is then Wilson's for as many trials as
    the rarer outcome has items.
    """
    pairs = ordered(p, y, strata)
    labels = np.asarray(clusters)
    if math.isnan(pairs.auroc):
        reason = "no item of another outcome"
        if strata is not None:
            reason = "no item of another outcome is solved by as many models"
        if not len(labels):
            reason = "no item has both"
        return undefined(reason, n=len(np.unique(labels)), unit=unit)
    mean = clustered_mean(pairs.auroc + pairs.influence, labels, unit=unit, interval="t")
    if mean.se > 0 and 0 < pairs.auroc < 1:
        return replace(mean, low=max(0.0, mean.low), high=min(1.0, mean.high))
    return _invariant(pairs.auroc, np.asarray(y, dtype=float), labels, unit)


def _invariant(value: float, truth: FloatArray, labels: npt.NDArray[Any], unit: str) -> Estimate:
    """An AUROC to which every item contributes equally, with Wilson's interval."""
    rarer_count = max(1.0, min(truth.sum(), (1 - truth).sum()))
    cluster_count = len(np.unique(labels))
    low, high = wilson(value, rarer_count, df=max(1, cluster_count - 1))
    error = (high - low) / 4
    return Estimate(value, low, high, cluster_count, unit, se=error, df=rarer_count)


def auroc_above(
    pairs: Ordered, rival_pairs: Ordered, clusters: npt.ArrayLike, y: npt.ArrayLike | None = None
) -> Estimate:
    """Difference between one AUROC and that of a rival on the same items, by what each item adds to
    both.

    Where no item varies (a perfect model beside a constant) it has the interval of the one less the
    other's value, if the outcomes `y` are given.
    """
    if math.isnan(pairs.auroc) or math.isnan(rival_pairs.auroc):
        return undefined("no item of another outcome")
    gap = pairs.auroc - rival_pairs.auroc
    gap_of_item = gap + pairs.influence - rival_pairs.influence
    labels = np.asarray(clusters)
    mean_gap = clustered_mean(gap_of_item, labels, interval="t")
    if mean_gap.se > 0 or y is None or gap == 0:
        return mean_gap
    own = _invariant(pairs.auroc, np.asarray(y, dtype=float), labels, mean_gap.unit)
    low = own.low - rival_pairs.auroc
    high = own.high - rival_pairs.auroc
    return replace(own, value=gap, low=low, high=high)


def above(estimate: Estimate, level: float) -> float:
    """One-sided p that an estimate is above a level; 1 where nothing is known."""
    if not estimate.se > 0:
        return 1.0
    p = two_sided_p((estimate.value - level) / estimate.se, estimate.df)
    return p / 2 if estimate.value > level else 1 - p / 2


def solved_alike(outcomes: npt.ArrayLike) -> IntArray:
    """Strata of items that equally many models solved, from outcomes `[model, item]`, NaN where
    unknown.

    Sums of shares are whole numbers where there would be less than `FEWEST_ITEMS_OF_STRATUM` items in a
    stratum otherwise.
    """
    values = np.asarray(outcomes, dtype=float)
    is_known = ~np.isnan(values)
    sums = np.where(is_known, values, 0).sum(axis=0).round(6)
    most_strata = max(len(values) + 1, values.shape[1] / FEWEST_ITEMS_OF_STRATUM)
    if len(np.unique(sums)) > most_strata:
        sums = np.round(sums)
    distinct_sums, sum_codes = np.unique(sums, return_inverse=True)
    known_models = np.packbits(is_known, axis=0)
    if (known_models == known_models[:, :1]).all():
        return np.asarray(sum_codes, dtype=np.intp)
    pattern_codes = np.unique(known_models, axis=1, return_inverse=True)[1].ravel()
    codes = pattern_codes * len(distinct_sums) + sum_codes
    return np.asarray(np.unique(codes, return_inverse=True)[1], dtype=np.intp)


def mean_of(outcomes: FloatArray) -> FloatArray:
    """[item]: mean of the known outcomes of several models, NaN where none is known."""
    is_known = ~np.isnan(outcomes)
    known_counts = is_known.sum(axis=0)
    sums = np.where(is_known, outcomes, 0).sum(axis=0)
    return np.where(known_counts > 0, sums / np.maximum(known_counts, 1), math.nan)


def brier(p: npt.ArrayLike, y: npt.ArrayLike) -> Brier:
    """The mean squared error in parts that need no bins: recalibration is isotonic (Dimitriadis et
    al. 2021).
    """
    from scipy.optimize import isotonic_regression  # here: slow to import

    chances = np.asarray(p, dtype=float)
    outcomes = np.asarray(y, dtype=float)
    _, chance_codes, counts = np.unique(chances, return_inverse=True, return_counts=True)
    shares = np.bincount(chance_codes, outcomes) / counts
    fitted = isotonic_regression(shares, weights=counts.astype(float))
    recalibrated_chances = fitted.x[chance_codes]

    score = float(np.square(chances - outcomes).mean())
    recalibrated = float(np.square(recalibrated_chances - outcomes).mean())
    constant = float(np.square(outcomes.mean() - outcomes).mean())
    return Brier(score, score - recalibrated, constant - recalibrated, constant)


def log_score(p: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Mean negative log-likelihood in nats of chances kept `LOG_SCORE_CLIP` off 0 and 1."""
    chances = np.clip(np.asarray(p, dtype=float), LOG_SCORE_CLIP, 1 - LOG_SCORE_CLIP)
    outcomes = np.asarray(y, dtype=float)
    log_likelihoods = outcomes * np.log(chances) + (1 - outcomes) * np.log1p(-chances)
    return float(-log_likelihoods.mean())


def overconfidence(
    p: npt.ArrayLike, y: npt.ArrayLike, clusters: npt.ArrayLike, *, unit: str = "item"
) -> Estimate:
    """Mean stated chance less the share that happened."""
    excess = np.asarray(p, dtype=float) - np.asarray(y, dtype=float)
    return clustered_mean(excess, clusters, unit=unit, interval="difference")


def detection(p: npt.ArrayLike, y: npt.ArrayLike) -> Detection:
    """d' and criterion of saying yes from one half on, with half an item added to each cell (Hautus
    1995).
    """
    says_yes = np.asarray(p, dtype=float) >= 0.5
    outcomes = np.asarray(y, dtype=float)
    happened = outcomes.sum()
    not_happened = (1 - outcomes).sum()
    if not (happened and not_happened):
        return Detection(math.nan, math.nan)
    hit_rate = (outcomes[says_yes].sum() + 0.5) / (happened + 1)
    alarm_rate = ((1 - outcomes)[says_yes].sum() + 0.5) / (not_happened + 1)
    z_hits = float(special.ndtri(hit_rate))
    z_alarms = float(special.ndtri(alarm_rate))
    return Detection(z_hits - z_alarms, -(z_hits + z_alarms) / 2)


def risks(p: npt.ArrayLike, y: npt.ArrayLike) -> Mapping[float, float]:
    """Coverage → share of failures among the items with the highest chances; tied ones count as if
    drawn.
    """
    chances = np.asarray(p, dtype=float)
    outcomes = np.asarray(y, dtype=float)
    _, chance_codes = np.unique(-chances, return_inverse=True)
    failures = np.cumsum(np.bincount(chance_codes, 1 - outcomes))
    items = np.cumsum(np.bincount(chance_codes))
    failures = np.concatenate([[0.0], failures])
    items = np.concatenate([[0.0], items])
    risk_of_coverage = {}
    for coverage in COVERAGES:
        item_count = coverage * len(chances)
        failure_count = np.interp(item_count, items, failures)
        risk_of_coverage[coverage] = float(failure_count / item_count)
    return risk_of_coverage
