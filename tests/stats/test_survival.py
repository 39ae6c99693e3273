"""First times with censoring."""

import math

import numpy as np
import pytest

from selfprobe.stats.timing import first_time


def test_a_hand_computed_curve() -> None:
    """Six units: events at 1, 2, 2 and 5; one is last seen at 3, two at 9. 1·6/7·4/6·… = .857,
    .571, .571, .381.
    """
    curve = first_time([1, 2, 2, 5, 3, 9, 9], [True] * 4 + [False] * 3, unit="transcript")
    assert curve.times.tolist() == [1, 2, 3, 5, 9]
    assert curve.happened == pytest.approx(
        [1 - 6 / 7, 1 - 4 / 7, 1 - 4 / 7, 1 - 4 / 7 * 2 / 3, 1 - 4 / 7 * 2 / 3]
    )
    assert curve.at_risk.tolist() == [7, 6, 4, 3, 2]
    assert curve.events.tolist() == [1, 2, 0, 1, 0]
    assert curve.median == 5
    assert curve.share_by_time(4).value == pytest.approx(3 / 7)


def test_without_an_event_the_interval_is_exact_at_those_left_and_never_of_width_0() -> None:
    curve = first_time([3, 9, 9], [False] * 3, unit="transcript")
    last_share = curve.share_by_time(9)
    assert last_share.value == 0
    assert last_share.low == 0
    assert last_share.high == pytest.approx(1 - 0.025**0.5)
    assert math.isnan(curve.median)


def test_where_all_had_an_event_the_upper_end_is_1() -> None:
    last_share = first_time([1, 2, 2], [True] * 3, unit="transcript").share_by_time(2)
    assert last_share.value == 1
    assert last_share.high == 1
    assert 0 < last_share.low < 1


def test_after_the_last_time_that_was_seen_nothing_is_known() -> None:
    assert (
        first_time([3], [True], unit="transcript").share_by_time(4).reason
        == "no transcript is that long"
    )
    assert math.isnan(first_time([], [], unit="transcript").share_by_time(1).value)


def test_a_share_before_the_first_time_is_0_with_an_interval() -> None:
    early_share = first_time([3, 4], [True, False], unit="transcript").share_by_time(1)
    assert early_share.value == 0
    assert early_share.high > 0.3


def test_the_interval_holds_the_truth_in_93_to_98_of_100_draws() -> None:
    rng = np.random.default_rng(0)
    true_share = 1 - 0.85**5
    covering_draws = 0
    for _ in range(400):
        event_times = rng.geometric(0.15, 60)
        end_times = rng.integers(1, 15, 60)
        seen_times = np.minimum(event_times, end_times)
        curve = first_time(seen_times, event_times <= end_times, unit="transcript")
        share = curve.share_by_time(5)
        covering_draws += share.low <= true_share <= share.high
    assert 0.93 <= covering_draws / 400 <= 0.98
