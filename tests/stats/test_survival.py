"""First times with censoring."""

import math

import numpy as np
import pytest

from selfprobe.stats.estimate import wilson
from selfprobe.stats.timing import first_time


def test_a_hand_computed_curve() -> None:
    """Six units: events at 1, 2, 2 and 5; one is last seen at 3, two at 9. 1·6/7·4/6·… = .857,
    .571, .571, .381.
    """
    found = first_time([1, 2, 2, 5, 3, 9, 9], [True] * 4 + [False] * 3, unit="transcript")
    assert found.times.tolist() == [1, 2, 3, 5, 9]
    assert found.happened == pytest.approx(
        [1 - 6 / 7, 1 - 4 / 7, 1 - 4 / 7, 1 - 4 / 7 * 2 / 3, 1 - 4 / 7 * 2 / 3]
    )
    assert found.at_risk.tolist() == [7, 6, 4, 3, 2] and found.events.tolist() == [1, 2, 0, 1, 0]
    assert found.median == 5 and found.by(4).value == pytest.approx(3 / 7)


def test_without_an_event_the_interval_is_wilsons_at_those_left_and_never_of_width_0() -> None:
    found = first_time([3, 9, 9], [False] * 3, unit="transcript")
    assert found.by(9).value == 0 and found.by(9).low == 0
    assert found.by(9).high == pytest.approx(wilson(0, 2)[1])
    assert math.isnan(found.median)


def test_where_all_had_an_event_the_upper_end_is_1() -> None:
    found = first_time([1, 2, 2], [True] * 3, unit="transcript")
    assert (found.by(2).value, found.by(2).high) == (1, 1) and 0 < found.by(2).low < 1


def test_after_the_last_time_that_was_seen_nothing_is_known() -> None:
    assert first_time([3], [True], unit="transcript").by(4).reason == "no transcript is that long"
    assert math.isnan(first_time([], [], unit="transcript").by(1).value)


def test_a_share_before_the_first_time_is_0_with_an_interval() -> None:
    found = first_time([3, 4], [True, False], unit="transcript").by(1)
    assert found.value == 0 and found.high > 0.3


def test_the_interval_holds_the_truth_in_93_to_98_of_100_draws() -> None:
    rng, held = np.random.default_rng(0), 0
    for _ in range(400):
        event, end = rng.geometric(0.15, 60), rng.integers(1, 15, 60)
        found = first_time(np.minimum(event, end), event <= end, unit="transcript").by(5)
        held += found.low <= 1 - 0.85**5 <= found.high
    assert 0.93 <= held / 400 <= 0.98
