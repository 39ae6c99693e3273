"""What acting on high stated chances and asking for help elsewhere gains."""

import math
from dataclasses import dataclass

import numpy as np

from selfprobe.stats.estimate import Estimate, FloatArray, IntArray, clustered_mean, undefined

FEWEST_ROUTED_ITEMS = 20
ROUTING_FOLDS = 5


@dataclass(frozen=True)
class Routing:
    """What asking for help below a threshold gains, where help is right at a price."""

    threshold: float
    """Stated chance from which on to act, best over all items."""
    helped: float
    """Share of items with a lower one."""
    over_acting: Estimate
    """Gain by item over always acting, thresholds chosen on other items."""
    over_asking: Estimate
    """The same over always asking for help."""


def routing(chances: FloatArray, outcomes: FloatArray, clusters: IntArray, price: float) -> Routing:
    """Gain of acting where the stated chance is high and asking for help elsewhere.

    Acting gains the outcome (1 or 0), asking gains 1 - price. Thresholds are chosen in five folds of
    clusters, each on the other folds.

    Args:
        chances, outcomes, clusters: `[item]`, without NaN.
        price: Price of help, in units of a failure.
    """
    cluster_numbers = np.unique(clusters, return_inverse=True)[1]
    cluster_count = int(cluster_numbers.max()) + 1 if len(cluster_numbers) else 0
    if cluster_count < FEWEST_ROUTED_ITEMS:
        absent = undefined(f"items: {cluster_count}; {FEWEST_ROUTED_ITEMS} are the least")
        return Routing(math.nan, math.nan, absent, absent)
    fold_by_cluster = np.random.default_rng(0).permutation(cluster_count) % ROUTING_FOLDS
    fold_by_item = fold_by_cluster[cluster_numbers]
    gains = np.empty(len(chances))
    for fold in range(ROUTING_FOLDS):
        is_tested = fold_by_item == fold
        threshold = _best_threshold(chances[~is_tested], outcomes[~is_tested], price)
        acts = chances[is_tested] >= threshold
        gains[is_tested] = np.where(acts, outcomes[is_tested], 1 - price)
    best_threshold = _best_threshold(chances, outcomes, price)
    return Routing(
        threshold=best_threshold,
        helped=float((chances < best_threshold).mean()),
        over_acting=_mean_gain(gains - outcomes, clusters),
        over_asking=_mean_gain(gains - (1 - price), clusters),
    )


def _best_threshold(chances: FloatArray, outcomes: FloatArray, price: float) -> float:
    """Threshold of greatest gain; 0 always acts, infinity always asks."""
    distinct_chances, chance_codes = np.unique(chances, return_inverse=True)
    gain_of_asking = np.bincount(chance_codes, 1 - price - outcomes)
    gains_below = np.concatenate([[0.0], np.cumsum(gain_of_asking)])
    thresholds = np.concatenate([[0.0], distinct_chances[1:], [math.inf]])
    return float(thresholds[gains_below.argmax()])


def _mean_gain(differences: FloatArray, clusters: IntArray) -> Estimate:
    return clustered_mean(differences, clusters, interval="t")
