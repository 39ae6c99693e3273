"""What acting on high stated chances and asking for help elsewhere gains."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from selfprobe.stats.estimate import (
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    clustered_mean,
    undefined,
)

FEWEST_ROUTED_ITEMS = 20
ROUTING_FOLDS = 5
INTERVAL_TAIL = 0.025


@dataclass(frozen=True)
class Routing:
    """What asking for help below a threshold gains, where help is right at a price; all of one rule,
    whose threshold for an item is chosen on the items of other folds.
    """

    thresholds: tuple[float, ...]
    """Stated chance from which on to act, `[fold]`; infinity always asks."""
    helped: float
    """Share of items for which help is asked."""
    over_better: Estimate
    """Gain by item over what is better of always acting and always asking."""
    better_is_acting: bool
    """Whether always acting is better than always asking."""
    over_acting: Estimate
    """Gain by item over always acting."""
    over_asking: Estimate
    """The same over always asking for help."""


def routing(chances: FloatArray, outcomes: FloatArray, clusters: IntArray, price: float) -> Routing:
    """Gain of acting where the stated chance is high and asking for help elsewhere.

    Acting gains the outcome (1 or 0), asking gains 1 - price. Thresholds are chosen in five folds of
    clusters, each on the other folds. An interval is at least the exact one (Clopper & Pearson) of
    the items on which the rule differs from always acting or asking.

    Args:
        chances, outcomes, clusters: `[item]`, without NaN.
        price: Price of help, in units of a failure.
    """
    cluster_numbers = np.unique(clusters, return_inverse=True)[1]
    cluster_count = int(cluster_numbers.max()) + 1 if len(cluster_numbers) else 0
    if cluster_count < FEWEST_ROUTED_ITEMS:
        absent = undefined(f"items: {cluster_count}; {FEWEST_ROUTED_ITEMS} are the least")
        return Routing((), math.nan, absent, False, absent, absent)

    fold_by_cluster = np.random.default_rng(0).permutation(cluster_count) % ROUTING_FOLDS
    fold_by_item = fold_by_cluster[cluster_numbers]
    thresholds = []
    acts = np.zeros(len(chances), dtype=bool)
    for fold in range(ROUTING_FOLDS):
        is_tested = fold_by_item == fold
        threshold = _best_threshold(chances[~is_tested], outcomes[~is_tested], price)
        thresholds.append(threshold)
        acts[is_tested] = chances[is_tested] >= threshold

    gain_of_asking = 1 - price
    over_acting = _gain(gain_of_asking - outcomes, ~acts, clusters, -price, "it always acts")
    over_asking = _gain(outcomes - gain_of_asking, acts, clusters, price - 1, "it always asks")
    better_is_acting = bool(outcomes.mean() >= gain_of_asking)
    return Routing(
        thresholds=tuple(thresholds),
        helped=float((~acts).mean()),
        over_better=over_acting if better_is_acting else over_asking,
        better_is_acting=better_is_acting,
        over_acting=over_acting,
        over_asking=over_asking,
    )


def _best_threshold(chances: FloatArray, outcomes: FloatArray, price: float) -> float:
    """Threshold of greatest gain; 0 always acts, infinity always asks."""
    distinct_chances, chance_codes = np.unique(chances, return_inverse=True)
    gain_of_asking = np.bincount(chance_codes, 1 - price - outcomes)
    gains_below = np.concatenate([[0.0], np.cumsum(gain_of_asking)])
    thresholds = np.concatenate([[0.0], distinct_chances[1:], [math.inf]])
    return float(thresholds[gains_below.argmax()])


def _gain(
    gains: FloatArray,
    is_routed: BoolArray,
    clusters: IntArray,
    least_gain: float,
    same_reason: str,
) -> Estimate:
    """Mean over all items of the gains of the routed ones.

    Args:
        gains: What an item gains where it is routed, `[item]`.
        is_routed: Whether the rule differs there from what it is compared with.
        clusters: `[item]`.
        least_gain: Smallest possible one; the greatest is 1 more.
        same_reason: Why there is no interval where it differs nowhere.
    """
    if not is_routed.any():
        return undefined(same_reason, n=len(np.unique(clusters)), value=0.0)
    estimate = clustered_mean(np.where(is_routed, gains, 0.0), clusters, interval="t")
    routed_share = float(is_routed.mean())
    low_share, high_share = _exact_share(gains[is_routed] - least_gain, clusters[is_routed])
    exact_low = routed_share * (low_share + least_gain)
    exact_high = routed_share * (high_share + least_gain)
    return replace(
        estimate,
        low=float(np.fmin(estimate.low, exact_low)),
        high=float(np.fmax(estimate.high, exact_high)),
    )


def _exact_share(values: FloatArray, clusters: IntArray) -> tuple[float, float]:
    """Clopper & Pearson's interval of the mean of values in 0 to 1, of as many rows as clusters of
    unequal size count for (Kish).
    """
    cluster_sizes = np.unique(clusters, return_counts=True)[1]
    effective_rows = len(values) ** 2 / float(np.square(cluster_sizes).sum())
    share = float(np.clip(values.mean(), 0, 1))
    hits = share * effective_rows
    misses = effective_rows - hits
    low = float(special.betaincinv(hits, misses + 1, INTERVAL_TAIL)) if hits > 0 else 0.0
    high = float(special.betaincinv(hits + 1, misses, 1 - INTERVAL_TAIL)) if misses > 0 else 1.0
    return low, high
