"""The change of a mean between two runs of the same items."""

import math

import numpy as np
import pytest

from selfprobe.stats.estimate import clustered_mean
from selfprobe.stats.paired import Change, change


def test_p_and_the_interval_are_one_statement() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(3, 60))
        before, after = rng.random(n).round(), rng.random(n) * rng.random()
        found = change(before, after, np.arange(n))
        outside = found.estimate.low > 0 or found.estimate.high < 0
        assert outside == (found.p < 0.05), found


def test_the_change_is_over_the_rows_that_both_have() -> None:
    found = change([1, 1, 0, math.nan], [0, 1, math.nan, 1], ["a", "b", "c", "d"])
    assert (found.before, found.after, found.estimate.value, found.estimate.n) == (
        1.0,
        0.5,
        -0.5,
        2,
    )


def test_its_interval_is_that_of_a_clustered_difference() -> None:
    before, after, clusters = [1, 0, 1, 1, 0, 1], [0, 0, 1, 0.5, 0, 1], [1, 1, 2, 2, 3, 3]
    other = clustered_mean(np.subtract(after, before), clusters, interval="difference")
    found = change(before, after, clusters).estimate  # three clusters: their spread says little
    assert (found.value, found.low, found.high, found.n) == (other.value, other.low, other.high, 3)


def test_many_clusters_that_moved_have_the_t_interval_of_their_spread() -> None:
    before, after = np.arange(90) % 2, np.arange(90) % 3 == 0
    other = clustered_mean(after - before, np.arange(90) // 3, interval="t")
    found = change(before, after, np.arange(90) // 3).estimate
    assert (found.value, found.low, found.high, found.n) == pytest.approx(
        (other.value, other.low, other.high, 30)
    )


def test_runs_that_are_the_same_have_an_interval_that_narrows_with_the_items() -> None:
    wide, narrow = (change(np.ones(n), np.ones(n), np.arange(n)).estimate for n in (3, 200))
    assert wide.low < -0.5 and narrow.low > -0.02 and narrow.high == pytest.approx(-narrow.low)


def test_one_item_tells_nothing() -> None:
    found = change([1], [0], ["a"])
    assert found.estimate.value == -1 and math.isnan(found.p) and found.needed(0.05) is None
    assert found.estimate.reason == "no interval from one item"


def test_a_scale_changes_units_alone() -> None:
    rng = np.random.default_rng(1)
    before, after = rng.random(40), rng.random(40)
    one, ten = (
        change(before, after, range(40)),
        change(10 * before, 10 * after, range(40), scale=10),
    )
    assert ten.p == pytest.approx(one.p) and ten.estimate.low == pytest.approx(
        10 * one.estimate.low
    )
    assert ten.needed(0.5) == one.needed(0.05)


def test_as_many_items_as_are_needed_find_the_change_with_the_power_that_is_stated() -> None:
    rng = np.random.default_rng(2)
    pilot = change(rng.random(300).round(), rng.random(300).round(), range(300))
    n = pilot.needed(0.1)
    assert n is not None
    found, stated = 0, []
    for _ in range(300):
        one = change(rng.random(n) < 0.55, rng.random(n) < 0.45, range(n))
        found += one.p < 0.05 and one.estimate.value < 0
        stated.append(one.power(0.1))
    assert found / 300 == pytest.approx(0.8, abs=0.07) and np.mean(stated) == pytest.approx(
        0.8, abs=0.03
    )


@pytest.mark.parametrize("item_count", [5, 20, 40])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_items_that_all_stay_exclude_a_change_with_the_number_that_is_said_and_not_with_one_less(
    item_count: int, scale: float
) -> None:
    def half_width(count: int) -> float:
        still = change(np.zeros(count), np.zeros(count), range(count), scale=scale)
        return still.estimate.high

    pilot = change(np.zeros(item_count), np.zeros(item_count), range(item_count), scale=scale)
    needed = pilot.excluding_items(0.05)
    assert needed is not None
    assert half_width(needed) < 0.05 <= half_width(needed - 1)


def test_items_of_which_few_moved_exclude_a_change_with_about_the_number_that_is_said() -> None:
    def pairs(copies: int) -> Change:
        after = np.tile([0.0] * 18 + [1.0, -1.0], copies)
        return change(np.zeros(len(after)), after, range(len(after)))

    needed = pairs(1).excluding_items(0.08)
    assert needed is not None
    enough = pairs(math.ceil(needed / 20))
    too_few = pairs(math.ceil(needed / 20) - 1)
    assert enough.estimate.high < 0.08 <= too_few.estimate.high


def test_a_change_as_large_as_the_smallest_is_never_excluded() -> None:
    fallen = change(np.ones(20), [0.0] * 2 + [1.0] * 18, range(20))
    assert fallen.excluding_items(0.05) is None
    many_moved = change(np.arange(60) % 2, np.arange(60) % 3 == 0, range(60))
    assert many_moved.excluding_items(0.2) is None


def test_more_tests_need_more_items() -> None:
    found = change(np.arange(60) % 2, np.arange(60) % 3 == 0, range(60))
    assert (found.needed(0.05, tests=10) or 0) > (found.needed(0.05) or 0)
    assert found.power(0.05, tests=10) < found.power(0.05)


def test_clusters_that_all_lose_the_same_part_have_an_interval_and_a_number_of_items() -> None:
    """As where one of two scorers is gone: the rows of an item move otherwise, the items alike."""
    found = change([1, 1] * 20, [1, 0] * 20, np.repeat(np.arange(20), 2))
    assert found.estimate.value == -0.5 and found.estimate.low < -0.5 < found.estimate.high < 0
    assert found.p < 0.001 and found.needed(0.05) is not None
    still = change([0, 1] * 20, [1, 0] * 20, np.repeat(np.arange(20), 2))
    assert (
        still.estimate.low < 0 < still.estimate.high
        and still.p == 1
        and still.needed(0.05) is not None
    )


@pytest.mark.parametrize("sizes", [[150, *[4] * 39], [60, 60, *[3] * 28], [9, 8, 7, *range(1, 13)]])
def test_few_large_clusters_do_not_pretend_to_be_many(sizes: list[int]) -> None:
    """Of 600 pairs without change, whose clusters move together, at most 5 % and their error are
    told as changed.
    """
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    rng, told = np.random.default_rng(5), 0
    for _ in range(600):
        before, after = (
            rng.random(len(clusters)) < rng.normal(0.5, 0.15, len(sizes))[clusters]
            for _ in range(2)
        )
        told += change(before, after, clusters).p < 0.05
    assert told / 600 < 0.07
