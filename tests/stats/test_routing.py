"""The gain of asking for help where stated chances are low."""

import math

import numpy as np
import pytest
from scipy import special

from selfprobe.stats.routing import routing


def test_routing_by_chances_that_know_gains_over_always_acting_and_always_asking() -> None:
    rng = np.random.default_rng(0)
    outcomes = (rng.random(400) < 0.6).astype(float)
    chances = special.expit(2 * outcomes - 1 + 0.5 * rng.normal(size=400))
    routed = routing(chances, outcomes, np.arange(400), 0.3)
    assert routed.over_acting.low > 0.15 and routed.over_asking.low > 0.1
    assert 0.3 < min(routed.thresholds) <= max(routed.thresholds) < 0.7
    assert 0.3 < routed.helped < 0.5


def test_routing_of_few_items_or_without_a_gain_has_no_claim() -> None:
    rng = np.random.default_rng(0)
    outcomes = (rng.random(200) < 0.9).astype(float)
    routed = routing(rng.random(200), outcomes, np.arange(200), 0.5)
    assert not routed.over_acting.low > 0
    few = routing(rng.random(12), outcomes[:12], np.arange(12), 0.5)
    assert few.over_acting.reason == "items: 12; 20 are the least" and math.isnan(few.helped)
    nothing = routing(np.zeros(0), np.zeros(0), np.zeros(0, dtype=int), 0.5)
    assert nothing.over_asking.reason == "items: 0; 20 are the least"


@pytest.mark.parametrize("price", [0.02, 0.1, 0.3, 0.6, 0.95])
@pytest.mark.parametrize("knows", [0.0, 1.0, 3.0])
def test_all_of_a_routing_is_of_one_rule_and_compared_with_the_better_constant(
    knows: float, price: float
) -> None:
    rng = np.random.default_rng(1)
    outcomes = (rng.random(200) < 0.7).astype(float)
    chances = special.expit(knows * (2 * outcomes - 1) + rng.normal(size=200)).round(2)
    routed = routing(chances, outcomes, np.arange(200), price)
    gain_of_rule = routed.over_acting.value + outcomes.mean()
    assert gain_of_rule == pytest.approx(routed.over_asking.value + 1 - price)
    assert routed.over_better.value == min(routed.over_acting.value, routed.over_asking.value)
    assert routed.better_is_acting == (outcomes.mean() >= 1 - price)
    for gain in (routed.over_acting, routed.over_asking):
        assert math.isnan(gain.low) or gain.low <= gain.value <= gain.high
    if routed.helped == 1:
        assert routed.over_asking.reason == "it always asks" and routed.over_asking.value == 0
    if routed.helped == 0:
        assert routed.over_acting.reason == "it always acts" and routed.over_acting.value == 0


def test_few_items_acted_on_that_all_succeed_show_no_gain_over_asking() -> None:
    chances = np.where(np.arange(100) < 12, 0.9, 0.1)
    outcomes = (np.arange(100) % 10 < 5).astype(float)
    outcomes[:12] = 1
    gain = routing(chances, outcomes, np.arange(100), 0.1).over_asking
    assert gain.value == pytest.approx(0.012) and gain.low < 0
