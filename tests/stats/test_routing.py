"""The gain of asking for help where stated chances are low."""

import math

import numpy as np
from scipy import special

from selfprobe.stats.routing import routing


def test_routing_by_chances_that_know_gains_over_always_acting_and_always_asking() -> None:
    rng = np.random.default_rng(0)
    outcomes = (rng.random(400) < 0.6).astype(float)
    chances = special.expit(2 * outcomes - 1 + 0.5 * rng.normal(size=400))
    routed = routing(chances, outcomes, np.arange(400), 0.3)
    assert routed.over_acting.low > 0.15 and routed.over_asking.low > 0.1
    assert 0.3 < routed.threshold < 0.7 and 0.3 < routed.helped < 0.5


def test_routing_of_few_items_or_without_a_gain_has_no_claim() -> None:
    rng = np.random.default_rng(0)
    outcomes = (rng.random(200) < 0.9).astype(float)
    routed = routing(rng.random(200), outcomes, np.arange(200), 0.5)
    assert not routed.over_acting.low > 0
    few = routing(rng.random(12), outcomes[:12], np.arange(12), 0.5)
    assert few.over_acting.reason == "items: 12; 20 are the least" and math.isnan(few.helped)
    nothing = routing(np.zeros(0), np.zeros(0), np.zeros(0, dtype=int), 0.5)
    assert nothing.over_asking.reason == "items: 0; 20 are the least"
