"""Arms of an experiment on the same items: each less its control, in a score and in a suspected
cause.

An arm changes how an item is put, and with it a suspected cause (here P(evaluation)).
`arm_contrasts` has the change of the score and of the cause, both paired by item. `Dose` is the
change of the score for a change of the cause of 1, with the arm as the instrument: the ratio of the
two mean changes (Wald 1940; two-stage least squares with one binary instrument). It is the cause's
effect only if the arm changes the score by nothing else.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.claim import ALPHA
from selfprobe.stats.estimate import (
    Estimate,
    FloatArray,
    clustered_mean,
    effective_size,
    holm,
    p_of_mean,
    undefined,
)
from selfprobe.stats.paired import POWER

IntArray = npt.NDArray[np.intp]
FEWEST_MOVED_CLUSTERS = 12
"""Number of clusters that must have moved otherwise than most did for their spread to be trusted.
"""
FEWEST_SIGNED_CLUSTERS = 6
"""Number of clusters from which their signs can show a change at 5 %: 2·2⁻⁶ is less, 2·2⁻⁵ is more.
"""
MOST_ENUMERATED_CLUSTERS = 13
"""Largest number of clusters of which every choice of signs is counted; of more, some are drawn."""
ARM_SIGN_DRAWS = 4095
"""Number of draws of signs."""
FURTHER_SIGN_ROUNDS = 32
"""Number of times that as many are drawn again where none was as large as what was seen: p would else
say no more than 1 in 4,096.
"""
MOST_COUNTED_TOTALS = 250_000
"""Largest number of totals of signed sums that are counted one by one."""
SUM_DIGITS = 9
"""Number of decimals to which sums that are equal but for rounding are equal."""
SUM_TIE = 1e-9
"""Largest difference of sums that is rounding error."""
MOST_COUNTED_ITEMS = 200
"""Largest number of items of which every outcome is counted for a power; of more, their mean is
taken to be normal.
"""
POWER_DRAWS = 1000
"""Number of simulated experiments behind the power of a few clusters."""
EFFECT_STEPS = 12
"""Number of halvings in the search of the smallest effect that is shown."""
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
ITEMS_PER_SQUARED_SKEWNESS = 16
"""Number of items for each squared unit of skewness from which their mean is taken to be known.

Cochran (1977, Sampling Techniques, section 2.15) asks 25 for an interval; here skewness counts on
one side alone, and 25 would cost twice the power of 14 items.
"""
UNSEEN_CHANCE = 0.05
"""Chance that no item of a rare kind is among those that were asked, from which it may exist."""
EDGE_DISTANCE = 0.05
"""Distance to 0 or 1 within which the mean of scores is at the floor or the ceiling."""


class Edge(Enum):
    """End of the scale at which a mean of scores lies."""

    FLOOR = "floor"
    CEILING = "ceiling"


# ---- the power of the test that decides


def clusters_needed(tests: int) -> int:
    """Fewest clusters whose signs can show a difference at 5 % / `tests`.

    >>> clusters_needed(1), clusters_needed(3)
    (6, 7)
    """
    return max(FEWEST_SIGNED_CLUSTERS, math.floor(1 + math.log2(tests / ALPHA)) + 1)


def visible_effect(items: int, tests: int, *, differing: float = DIFFERING_BY_CHANCE) -> float:
    """The smallest effect on a score of 0 or 1 that so many items show with 80 % power, at 5 % /
    `tests`; infinity where they show none, however large.

    An effect e makes a share e of the items come out otherwise, and of the others a share
    `differing` does by chance, up or down. The test is the one that `arm_difference` would take: of
    few changes that of their signs, else that of t.

    >>> round(visible_effect(100, 1), 2), round(visible_effect(1000, 1), 3), visible_effect(5, 1)
    (0.11, 0.024, inf)
    """
    if items < clusters_needed(tests):
        return math.inf
    if items > MOST_COUNTED_ITEMS:
        quantile_sum = -float(special.ndtri(ALPHA / 2 / tests)) + float(special.ndtri(POWER))
        squared_effect_per_variance = quantile_sum**2 / items
        return min(
            1.0,
            squared_effect_per_variance
            / 2
            * (1 + math.sqrt(1 + 4 * differing / squared_effect_per_variance)),
        )

    rises, falls = _possible_changes(items)
    is_shown = _p_of_changes(rises, falls, items) < ALPHA / tests
    rises_shown = rises[is_shown]
    falls_shown = falls[is_shown]

    def power(effect: float) -> float:
        fall_chance = (1 - effect) * differing / 2
        rise_chance = effect + fall_chance
        chances = _chance_of_changes(rises_shown, falls_shown, items, rise_chance, fall_chance)
        return float(chances.sum())

    return _least_effect(power)


def _possible_changes(items: int) -> tuple[IntArray, IntArray]:
    """Every pair of numbers of items that rise and that fall, [pair]."""
    all_rises, all_falls = np.indices((items + 1, items + 1))
    is_possible = all_rises + all_falls <= items
    return all_rises[is_possible], all_falls[is_possible]


def _p_of_changes(rises: IntArray, falls: IntArray, items: int) -> FloatArray:
    """p of the test that decides where so many items rise by 1, fall by 1 and stay, [pair]."""
    changed = rises + falls
    total = rises - falls
    mean = total / items
    variance = (changed - items * mean**2) / (items - 1)
    t = np.abs(mean) / np.sqrt(np.maximum(variance, SUM_TIE) / items)
    p_by_t = 2 * special.stdtr(items - 1, -t)

    larger_side = np.maximum(rises, falls)
    p_by_signs = 2 * special.bdtrc(larger_side - 1, changed, 0.5)
    p_by_signs = np.where(total == 0, 1.0, np.minimum(1.0, p_by_signs))

    lower_middle = _change_at((items - 1) // 2, rises, falls, items)
    upper_middle = _change_at(items // 2, rises, falls, items)
    median = (lower_middle + upper_middle) / 2
    stayed = items - changed
    at_median = rises * (median == 1) + falls * (median == -1) + stayed * (median == 0)
    return np.where(items - at_median >= FEWEST_MOVED_CLUSTERS, p_by_t, p_by_signs)


def _change_at(rank: int, rises: IntArray, falls: IntArray, items: int) -> IntArray:
    """Change of the item of this rank, from 0, in the order of changes, [pair]."""
    is_up = rank >= items - rises
    is_down = rank < falls
    return is_up.astype(np.intp) - is_down.astype(np.intp)


def _chance_of_changes(
    rises: IntArray, falls: IntArray, items: int, rise_chance: float, fall_chance: float
) -> FloatArray:
    """Chance that exactly so many items rise and fall, [pair]."""
    stayed = items - rises - falls
    stay_chance = max(0.0, 1 - rise_chance - fall_chance)
    log_ways = (
        special.gammaln(items + 1)
        - special.gammaln(rises + 1)
        - special.gammaln(falls + 1)
        - special.gammaln(stayed + 1)
    )
    log_chances = (
        special.xlogy(rises, rise_chance)
        + special.xlogy(falls, fall_chance)
        + special.xlogy(stayed, stay_chance)
    )
    return np.asarray(np.exp(log_ways + log_chances))


def _least_effect(power: Callable[[float], float]) -> float:
    """The smallest effect of up to 1 with the power `POWER`; infinity where none has it."""
    if power(1.0) < POWER:
        return math.inf
    too_small, large_enough = 0.0, 1.0
    for _ in range(EFFECT_STEPS):
        effect = (too_small + large_enough) / 2
        if power(effect) >= POWER:
            large_enough = effect
        else:
            too_small = effect
    return large_enough


@dataclass(frozen=True)
class SignedClusters:
    """Clusters whose signs decide about a mean, and what they can show."""

    sums: tuple[float, ...]
    """Sum of the differences of each cluster."""
    sizes: tuple[int, ...]
    """Number of items of each cluster."""
    scale: float
    """The largest difference that an item can have."""
    are_whole: bool
    """Whether each item differs by all of the scale or by nothing."""

    @property
    def changed_share(self) -> float:
        """Share of clusters that changed; with half a cluster added, so that it is never 0."""
        changed = sum(abs(cluster_sum) > SUM_TIE for cluster_sum in self.sums)
        return (changed + 0.5) / (len(self.sums) + 1)

    @property
    def move_whole(self) -> bool:
        """Whether an effect is taken to move whole clusters: single items whose score is all or
        nothing, and twelve clusters or more, most of which then stayed as they were (else t
        decides).
        """
        are_items = max(self.sizes) == 1 and self.are_whole
        return are_items or len(self.sums) >= FEWEST_MOVED_CLUSTERS

    def detectable(self, tests: int) -> float:
        """Smallest difference that clusters like these show with 80 % power; infinity where none.

        Of a few clusters that do not move whole every sign is turned by chance, and an effect is
        added to each item.
        """
        count = len(self.sums)
        if count < clusters_needed(tests):
            return math.inf
        if self.move_whole:
            return self.scale * visible_effect(count, tests, differing=self.changed_share)

        rng = np.random.default_rng(0)
        sizes = np.array(self.sizes)
        chance_signs = rng.choice((1.0, -1.0), size=(POWER_DRAWS, count))
        chance_sums = chance_signs * np.array(self.sums)
        item_draws = rng.random((POWER_DRAWS, count, max(self.sizes)))
        is_item = np.arange(max(self.sizes)) < sizes[:, None]

        def power(effect: float) -> float:
            gains = effect * sizes
            if self.are_whole:
                gains = ((item_draws < effect) & is_item).sum(axis=2)
            return float((_sign_p_of_rows(chance_sums + self.scale * gains) < ALPHA / tests).mean())

        return self.scale * _least_effect(power)


def _sign_p_of_rows(cluster_sums: FloatArray) -> FloatArray:
    """`sign_p` of each row of `cluster_sums  # [row, cluster]`, of few clusters."""
    signs = np.array(list(product((1.0, -1.0), repeat=cluster_sums.shape[1] - 1)))
    signs = np.column_stack([np.ones(len(signs)), signs])
    totals = np.abs(cluster_sums @ signs.T)
    return np.asarray((totals >= totals[:, :1] - SUM_TIE).mean(axis=1))


# ---- differences


@dataclass(frozen=True)
class ArmDifference:
    """A mean under an arm less that under its control, on the items that have both."""

    estimate: Estimate
    """Arm less control, with its 95 % interval."""
    p_value: float
    """Two-sided p of no difference; NaN with fewer than FEWEST_SIGNED_CLUSTERS clusters."""
    effective_n: float
    """Number of independent items of variance 1 that would say as much about the mean; 0 where
    unknown.
    """
    signed_clusters: SignedClusters | None = None
    """The clusters, where the signs of whole clusters decide; None where t does."""

    def detectable(self, tests: int) -> float:
        """Smallest difference that items like these show with 80 % power, at 5 % / `tests`, by the
        test that decides; infinity where they show none, NaN where nothing was scored.
        """
        if self.signed_clusters is not None:
            return self.signed_clusters.detectable(tests)
        if not self.effective_n:
            return math.nan
        limit = -float(special.stdtrit(self.estimate.df, ALPHA / 2 / tests))
        return (limit + float(special.ndtri(POWER))) / math.sqrt(self.effective_n)

    def clusters_for(self, smallest: float, tests: int) -> int | None:
        """Number of clusters like these that show a difference of this size with 80 % power; None
        where unknown.
        """
        if not self.effective_n:
            return None
        quantiles = -float(special.ndtri(ALPHA / 2 / tests)) + float(special.ndtri(POWER))
        per_effect = (quantiles / smallest) ** 2
        exact = self.estimate.n / self.effective_n * per_effect
        signed = self.signed_clusters
        if signed is not None:
            exact = max(exact, clusters_needed(tests))
        if signed is not None and signed.move_whole:
            effect = min(1.0, smallest / signed.scale)
            variance = effect + signed.changed_share
            exact = max(exact, variance * (quantiles / effect) ** 2)
        return rounded_up(exact)


def rounded_up(count: float) -> int:
    """The next whole number of two digits and zeros.

    >>> rounded_up(6.2), rounded_up(177.8)
    (7, 180)
    """
    step = int(10 ** max(0, math.floor(math.log10(count)) - 1))
    return math.ceil(count / step) * step


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
        return ArmDifference(undefined("nothing was scored", unit=unit), math.nan, 0.0)

    differences = (arm_scores - control_scores)[has_both]
    labels = np.unique(np.asarray(clusters)[has_both], return_inverse=True)[1]
    cluster_sums = np.bincount(labels, differences)
    cluster_sizes = np.bincount(labels)
    cluster_means = cluster_sums / cluster_sizes
    has_moved = np.abs(cluster_means - np.median(cluster_means)) > SUM_TIE
    if has_moved.sum() >= FEWEST_MOVED_CLUSTERS:
        by_t = clustered_mean(differences, labels, unit=unit, interval="t")
        return ArmDifference(by_t, p_of_mean(by_t), by_t.se**-2)

    is_whole = np.isclose(np.abs(differences), scale) | (np.abs(differences) <= SUM_TIE)
    signed_clusters = SignedClusters(
        tuple(cluster_sums.tolist()), tuple(cluster_sizes.tolist()), scale, bool(is_whole.all())
    )
    unscaled = clustered_mean(differences / scale, labels, unit=unit, interval="difference")
    estimate = replace(
        unscaled,
        value=float(unscaled.value * scale),
        low=float(unscaled.low * scale),
        high=float(unscaled.high * scale),
        se=math.nan,
    )
    if math.isnan(estimate.low):
        return ArmDifference(estimate, math.nan, 0.0, signed_clusters)
    effective_n = effective_size((differences / scale + 1) / 2, labels) / scale**2
    return ArmDifference(estimate, sign_p(cluster_sums), effective_n, signed_clusters)


def sign_p(cluster_sums: npt.ArrayLike) -> float:
    """Two-sided p of no difference by the signs of whole clusters; NaN with fewer than
    FEWEST_SIGNED_CLUSTERS.

    Args:
        cluster_sums: Sum of the differences of each cluster, [cluster].
    """
    sums = np.asarray(cluster_sums, dtype=float)
    if len(sums) < FEWEST_SIGNED_CLUSTERS:
        return math.nan
    moved = np.abs(sums[np.abs(sums) > SUM_TIE])
    if not len(moved):
        return 1.0
    observed_total = abs(float(sums.sum()))
    tie = SUM_TIE * len(moved)
    counted = _signed_totals(moved)
    if counted is not None:
        totals, chances = counted
        return min(1.0, float(chances[np.abs(totals) >= observed_total - tie].sum()))

    signed_sums = sums[np.abs(sums) > SUM_TIE]
    return _share_as_large(lambda signs: np.abs(signs @ signed_sums), len(moved), tie)


def _signed_totals(sizes: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Every total that `sizes  # [cluster]` have under signs by chance, and its chance, [total]; None
    where they are too many.

    Sizes that are equal are one binomial: where signs decide, all but a few items moved alike.
    """
    totals: FloatArray = np.zeros(1)
    chances: FloatArray = np.ones(1)
    distinct_sizes, size_counts = np.unique(sizes.round(SUM_DIGITS), return_counts=True)
    for size, count in zip(distinct_sizes, size_counts, strict=True):
        if len(totals) * (count + 1) > MOST_COUNTED_TOTALS:
            return None
        negative_counts = np.arange(count + 1)
        size_totals = size * (count - 2 * negative_counts)
        log_ways = (
            special.gammaln(count + 1)
            - special.gammaln(negative_counts + 1)
            - special.gammaln(count - negative_counts + 1)
        )
        size_chances = np.exp(log_ways - count * math.log(2))
        all_totals = np.add.outer(totals, size_totals).ravel().round(SUM_DIGITS)
        all_chances = np.multiply.outer(chances, size_chances).ravel()
        totals, total_of_each = np.unique(all_totals, return_inverse=True)
        chances = np.bincount(total_of_each, weights=all_chances).astype(float)
    return totals, chances


def _share_as_large(
    statistic: Callable[[FloatArray], FloatArray], clusters: int, tie: float
) -> float:
    """Share of choices of signs whose statistic is as large as that of what was seen.

    Args:
        statistic: Function of signs, [choice, cluster], that gives its value of each choice.
        clusters: Number of clusters.
        tie: Largest difference of values that is rounding error.
    """
    values = statistic(_choices_of_signs(clusters))
    observed = values[0]
    as_large = int((values >= observed - tie).sum())
    if as_large > 1 or clusters <= MOST_ENUMERATED_CLUSTERS:
        return as_large / len(values)

    choices = 1
    for seed in range(1, FURTHER_SIGN_ROUNDS + 1):
        further_values = statistic(_drawn_signs(clusters, seed=seed))
        as_large += int((further_values >= observed - tie).sum())
        choices += len(further_values)
    return as_large / choices


def _choices_of_signs(clusters: int) -> FloatArray:
    """Signs of so many clusters, [choice, cluster]: every choice or some drawn; first all of 1."""
    if clusters <= MOST_ENUMERATED_CLUSTERS:
        return np.array(list(product((1.0, -1.0), repeat=clusters)))
    signs = _drawn_signs(clusters, seed=0)
    signs[0] = 1.0
    return signs


def _drawn_signs(clusters: int, *, seed: int) -> FloatArray:
    """Signs of so many clusters by chance, [draw, cluster]."""
    return np.random.default_rng(seed).choice((1.0, -1.0), size=(ARM_SIGN_DRAWS + 1, clusters))


def disagreement(
    changes: npt.ArrayLike, clusters: npt.ArrayLike, *, unit: str = "item"
) -> tuple[Estimate, float]:
    """How much the changes under several arms differ: Cochran's Q, and p that they are one.

    Q is the sum over arms of the squared mean change less that of all arms, each over the error of
    its own: arms may spread otherwise, and share their items. About the number of arms less 1 is
    expected. p is that of the signs of whole clusters; NaN with fewer than FEWEST_SIGNED_CLUSTERS.

    Args:
        changes: Change of each item under each arm, `[item, arm]`; an item that lacks one is left
            out.
        clusters: `[item]`, label of independent units.
        unit: Name of a cluster.
    """
    all_changes = np.asarray(changes, dtype=float)
    has_all = ~np.isnan(all_changes).any(axis=1)
    if not has_all.any():
        return undefined("nothing was scored", unit=unit), math.nan
    deviations = all_changes[has_all] - all_changes[has_all].mean(axis=1, keepdims=True)
    labels = np.unique(np.asarray(clusters)[has_all], return_inverse=True)[1]
    cluster_sums = np.zeros((labels.max() + 1, deviations.shape[1]))
    np.add.at(cluster_sums, labels, deviations)
    cluster_count, arm_count = cluster_sums.shape

    sizes = np.sqrt((cluster_sums**2).sum(axis=0))
    scaled_sums = cluster_sums / np.where(sizes > SUM_TIE, sizes, math.inf)
    expected_share = (arm_count - 1) / arm_count

    def q_of_signs(signs: FloatArray) -> FloatArray:
        totals = signs @ scaled_sums
        return np.asarray(expected_share * (totals**2).sum(axis=1))

    observed_q = float(q_of_signs(np.ones((1, cluster_count)))[0])
    q = undefined("", n=cluster_count, unit=unit, value=observed_q)
    if cluster_count < FEWEST_SIGNED_CLUSTERS:
        return q, math.nan
    return q, _share_as_large(q_of_signs, cluster_count, SUM_TIE)


# ---- items that are too rare for a mean


@dataclass(frozen=True)
class RareItems:
    """What rare items could do to a mean change, were they seen or not.

    Of few items the t interval takes the rest to be like these. Where one item in forty loses all
    that the others gain, 40 items show none of it in a third of experiments.
    """

    items: int
    """Number of items with both scores."""
    change: float
    """Mean change of the score."""
    room: float
    """How far the mean score of the control is from the end of the scale against the change: 0, or
    the lowest score below, and 1, or the highest score where some are not in [0, 1].
    """
    room_along: float
    """The same of the other end."""
    is_room_known: bool
    """Whether the scale is that from 0 to 1."""
    units: int
    """Number of values that the skewness is of: clusters, or items where clusters are few."""
    skewness: float
    """Skewness of the changes against the mean change: above 0 where the long tail undoes it."""

    @property
    def unseen_odds(self) -> float:
        """Items to each other item, of a kind that so many items show none of by chance."""
        rare_share = 1 - UNSEEN_CHANCE ** (1 / self.items) if self.items else math.nan
        return rare_share / (1 - rare_share)

    @property
    def undone(self) -> float:
        """Change of the mean that unseen items could undo."""
        return self.unseen_odds * self.room

    @property
    def hidden(self) -> float:
        """Largest change of the mean, either way, that unseen items could hide."""
        return self.unseen_odds * max(self.room, self.room_along)

    @property
    def is_beyond_unseen(self) -> bool:
        """Whether the change is more than unseen items could undo."""
        return abs(self.change) > self.undone

    @property
    def items_beyond_unseen(self) -> float:
        """Number of items from which a change of this size is more than unseen ones could undo."""
        return _items_that_bound(abs(self.change), self.room)

    def items_hiding_less(self, change: float) -> float:
        """Number of items from which unseen ones could hide less than this change of the mean."""
        return _items_that_bound(change, max(self.room, self.room_along))

    @property
    def is_even(self) -> bool:
        """Whether the changes are too little skewed, or the tail too short, to undo the mean: no
        item can lose more than the mean gains.
        """
        is_tail_short = self.is_room_known and abs(self.change) >= self.room
        return is_tail_short or self.units >= self.units_for_skewness

    @property
    def units_for_skewness(self) -> float:
        """Number of units of which a mean is known where they are so skewed."""
        return ITEMS_PER_SQUARED_SKEWNESS * max(0.0, self.skewness) ** 2


def _items_that_bound(change: float, room: float) -> float:
    """Number of items of which unseen ones, that each change by `room`, move the mean by less."""
    if not change:
        return math.inf
    if not room > 0:
        return 1.0
    rare_share = change / (change + room)
    return math.log(UNSEEN_CHANCE) / math.log1p(-rare_share)


def rare_items(control: npt.ArrayLike, arm: npt.ArrayLike, clusters: npt.ArrayLike) -> RareItems:
    """What rare items could do to the mean of `arm - control  # [item]`, both known.

    Args:
        control, arm: Scores of the same items.
        clusters: Label of the cluster of each item; their means decide on skewness, where there are
            twelve or more.
    """
    control_scores = np.asarray(control, dtype=float)
    changes = np.asarray(arm, dtype=float) - control_scores
    if not len(changes):
        return RareItems(0, math.nan, math.nan, math.nan, False, 0, math.nan)

    mean_change = float(changes.mean())
    both_scores = np.concatenate([control_scores, np.asarray(arm, dtype=float)])
    is_room_known = bool(both_scores.min() >= 0 and both_scores.max() <= 1)
    lowest = min(0.0, both_scores.min())
    highest = 1.0 if is_room_known else both_scores.max()
    control_mean = float(control_scores.mean())
    rooms = [float(control_mean - lowest), float(highest - control_mean)]
    room, room_along = rooms if mean_change >= 0 else rooms[::-1]

    labels = np.unique(np.asarray(clusters), return_inverse=True)[1]
    sizes = np.bincount(labels)
    units = changes
    if len(sizes) >= FEWEST_MOVED_CLUSTERS:
        units = np.bincount(labels, changes) / sizes
    deviations = units - units.mean()
    variance = float((deviations**2).mean())
    skewness = 0.0
    if variance > SUM_TIE**2:
        skewness = float((deviations**3).mean()) / variance**1.5
    return RareItems(
        items=len(changes),
        change=mean_change,
        room=room,
        room_along=room_along,
        is_room_known=is_room_known,
        units=len(units),
        skewness=-skewness if mean_change >= 0 else skewness,
    )


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
    unanswered: ArmDifference
    """Share of the items asked under both that have no answer to score, less that of the control.
    """
    dose: Dose
    rare: RareItems
    """What rare items could do to the change of the score."""
    control_score: Estimate
    """Mean score of the control, over the items that have both."""
    control_edge: Edge | None
    """End of the scale at which that score lies."""
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
    unanswered: Mapping[str, npt.ArrayLike] | None = None,
    is_asked_by_arm: Mapping[str, npt.ArrayLike] | None = None,
    clusters: npt.ArrayLike | None = None,
    unit: str = "item",
) -> list[ArmContrast]:
    """Each arm less its control, paired by item; p not corrected yet.

    Args:
        scores: Arm → `[item]`, NaN where unscored; the same items in the same order in every arm.
        causes: Arm → `[item]` in [0, 1], for the same items.
        pairs: Arms and their controls.
        unanswered: Arm → `[item]`, share of its replies that are no answer. Default: 1 where the
            item has no score.
        is_asked_by_arm: Arm → `[item]`, whether the item was asked. Default: all were.
        clusters: `[item]`, label of independent units. Default: each item by itself.
        unit: Name of a cluster.
    """
    scale = score_scale(scores.values())
    contrasts = []
    for arm, control in pairs:
        arm_scores = np.asarray(scores[arm], dtype=float)
        control_scores = np.asarray(scores[control], dtype=float)
        arm_causes = np.asarray(causes[arm], dtype=float)
        control_causes = np.asarray(causes[control], dtype=float)
        labels = np.arange(len(arm_scores)) if clusters is None else np.asarray(clusters)
        is_asked = _are_asked(is_asked_by_arm, (arm, control), len(arm_scores))
        arm_gaps = _gaps(unanswered, arm, arm_scores)
        control_gaps = _gaps(unanswered, control, control_scores)

        score_changes = arm_scores - control_scores
        has_both = ~np.isnan(score_changes)
        is_scored = has_both[is_asked]
        contrasts.append(
            ArmContrast(
                arm,
                control,
                score=arm_difference(control_scores, arm_scores, labels, unit=unit, scale=scale),
                cause=arm_difference(control_causes, arm_causes, labels, unit=unit),
                unanswered=arm_difference(
                    control_gaps[is_asked], arm_gaps[is_asked], labels[is_asked], unit=unit
                ),
                dose=dose(score_changes, arm_causes - control_causes, labels, unit=unit),
                rare=rare_items(control_scores[has_both], arm_scores[has_both], labels[has_both]),
                control_score=clustered_mean(control_scores[has_both], labels[has_both], unit=unit),
                control_edge=score_edge(control_scores[has_both]),
                scored_share=float(is_scored.mean()) if len(is_scored) else math.nan,
            )
        )
    return contrasts


def _are_asked(
    is_asked_by_arm: Mapping[str, npt.ArrayLike] | None, arms: Sequence[str], items: int
) -> npt.NDArray[np.bool_]:
    """Whether each item was asked under all of these arms, `[item]`."""
    are_asked = np.ones(items, dtype=bool)
    if is_asked_by_arm is not None:
        for arm in arms:
            are_asked &= np.asarray(is_asked_by_arm[arm], dtype=bool)
    return are_asked


def _gaps(
    unanswered: Mapping[str, npt.ArrayLike] | None, arm: str, scores: FloatArray
) -> FloatArray:
    """Share of replies that are no answer, `[item]`."""
    if unanswered is None:
        return np.isnan(scores).astype(float)
    return np.asarray(unanswered[arm], dtype=float)


def corrected_contrasts(families: Sequence[Sequence[ArmContrast]]) -> list[list[ArmContrast]]:
    """Contrasts with Holm's correction over all of them: arms of one model, and models that were
    asked together.
    """
    contrasts = [contrast for family in families for contrast in family]
    score_ps = iter(holm([contrast.score.p_value for contrast in contrasts]))
    cause_ps = iter(holm([contrast.cause.p_value for contrast in contrasts]))
    corrected_families = []
    for family in families:
        corrected = [
            replace(contrast, score_p=float(next(score_ps)), cause_p=float(next(cause_ps)))
            for contrast in family
        ]
        corrected_families.append(corrected)
    return corrected_families


def score_scale(scores: Iterable[npt.ArrayLike]) -> float:
    """The largest change that a mean can have: 1 for scores in [0, 1], else the range of what was
    seen.
    """
    all_scores = np.concatenate(
        [np.ravel(np.asarray(arm_scores, dtype=float)) for arm_scores in scores]
    )
    known_scores = all_scores[~np.isnan(all_scores)]
    if not len(known_scores) or (known_scores.min() >= 0 and known_scores.max() <= 1):
        return 1.0
    return float(np.ptp(known_scores)) or 1.0


def dose(
    score_changes: npt.ArrayLike,
    cause_changes: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    unit: str = "item",
) -> Dose:
    """The dose of an arm, from means by cluster of changes by item, `[item]`, NaN where unknown."""
    all_scores = np.asarray(score_changes, dtype=float)
    all_causes = np.asarray(cause_changes, dtype=float)
    has_both = ~np.isnan(all_scores) & ~np.isnan(all_causes)
    labels = np.unique(np.asarray(clusters)[has_both], return_inverse=True)[1]
    sizes = np.bincount(labels) if has_both.any() else np.empty(0)
    n = len(sizes)
    if n < FEWEST_DOSE_CLUSTERS:
        reason = f"{n} {unit}s have both changes, {FEWEST_DOSE_CLUSTERS} are needed"
        return Dose(undefined(reason, n=n, unit=unit), math.nan)

    score_by_cluster = np.bincount(labels, all_scores[has_both]) / sizes
    cause_by_cluster = np.bincount(labels, all_causes[has_both]) / sizes
    score_mean = float(score_by_cluster.mean())
    cause_mean = float(cause_by_cluster.mean())
    covariances = np.cov(score_by_cluster, cause_by_cluster) / n
    score_variance = float(covariances[0, 0])
    covariance = float(covariances[0, 1])
    cause_variance = max(float(covariances[1, 1]), LEAST_CAUSE_SD**2 / n)

    f = cause_mean**2 / cause_variance
    if not score_variance > 0:
        reason = f"all {unit}s change alike, which gives no interval"
        return Dose(undefined(reason, n=n, unit=unit), f)
    if f < STRONG_INSTRUMENT_F:
        reason = f"weak instrument: F = {f:.1f}, below {STRONG_INSTRUMENT_F:.0f}"
        return Dose(undefined(reason, n=n, unit=unit), f)

    # Fieller: the doses x with (score - x cause)² ≤ t² variance(score - x cause), a x² - 2 b x + c
    t_squared = float(special.stdtrit(n - 1, ALPHA / 2)) ** 2
    a = cause_mean**2 - t_squared * cause_variance
    b = score_mean * cause_mean - t_squared * covariance
    c = score_mean**2 - t_squared * score_variance
    root = math.sqrt(max(0.0, b * b - a * c))
    per_one = Estimate(score_mean / cause_mean, (b - root) / a, (b + root) / a, n, unit)
    return Dose(per_one, f)


def score_edge(scores: npt.ArrayLike) -> Edge | None:
    """End of the scale at which the mean of scores in [0, 1], `[item]`, lies; None at neither."""
    all_scores: FloatArray = np.asarray(scores, dtype=float)
    known_scores = all_scores[~np.isnan(all_scores)]
    if not len(known_scores) or known_scores.min() < 0 or known_scores.max() > 1:
        return None
    mean = float(known_scores.mean())
    if mean <= EDGE_DISTANCE:
        return Edge.FLOOR
    return Edge.CEILING if mean >= 1 - EDGE_DISTANCE else None
