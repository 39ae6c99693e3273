"""The turn at which curves step."""

import math

import numpy as np
import pytest

from selfprobe.stats.timing import change_point

TIMES = np.arange(1, 11)


def curves(rng: np.random.Generator, n: int, at: int, step: float, noise: float = 0.1) -> np.ndarray:
    """[curve, time], with a level of its own for each."""
    return step * (at <= TIMES) + noise * rng.normal(size=(n, 10)) + 0.1 * rng.normal(size=(n, 1))


def test_a_hand_made_step_is_found_where_it_is() -> None:
    found = change_point([[0, 0, 1, 1]] * 6, [1, 2, 3, 4], rng=np.random.default_rng(0), from_zero=True, unit="pair")
    assert (found.at.value, found.at.low, found.at.high) == (3, 3, 3)
    assert found.step.value == 1 and found.p < 0.05 and found.shown
    assert np.isnan(found.step.low) and found.step.reason == "every resample gives the same value"


def test_differences_may_be_there_from_the_first_time_on_and_levels_may_not() -> None:
    flat, rng = np.full((8, 4), 0.5), np.random.default_rng(0)
    assert change_point(flat, [1, 2, 3, 4], rng=rng, from_zero=True, unit="pair").at.value == 1
    nothing = change_point(flat, [1, 2, 3, 4], rng=rng, from_zero=False, unit="transcript")
    assert math.isnan(nothing.at.value) and nothing.at.reason == "nothing changes"


def test_curves_of_different_lengths_count_as_far_as_they_go() -> None:
    y = curves(np.random.default_rng(1), 20, 4, 0.5)
    y[:10, 6:] = np.nan
    assert change_point(y, TIMES, rng=np.random.default_rng(0), from_zero=False, unit="transcript").at.value == 4


def test_one_time_one_curve_and_few_curves_show_no_change() -> None:
    rng = np.random.default_rng(0)
    one_time = change_point([[0.1], [0.2]], [1], rng=rng, from_zero=False, unit="transcript")
    assert one_time.at.reason == "no transcript has a second turn to compare"
    one = change_point([[0, 0, 1]], [1, 2, 3], rng=rng, from_zero=False, unit="transcript")
    assert one.at.value == 3 and one.at.reason == "no interval from one transcript" and not one.shown
    few = change_point([[0, 0, 1]] * 5, [1, 2, 3], rng=rng, from_zero=False, unit="transcript")
    assert math.isnan(few.p) and not few.shown


def test_times_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected curves \[curve, time\] with 2 times, got \(1, 3\)"):
        change_point([[0, 0, 1]], [1, 2], rng=np.random.default_rng(0), from_zero=True, unit="pair")


@pytest.mark.parametrize("from_zero", [True, False])
def test_no_change_is_found_in_about_5_of_100_sets_without_one_though_turns_are_alike(from_zero: bool) -> None:
    rng, found = np.random.default_rng(3), 0
    for _ in range(300):
        walks = 0.05 * rng.normal(size=(15, 10)).cumsum(axis=1)  # what one turn adds, the next ones keep
        found += change_point(walks, TIMES, rng=rng, from_zero=from_zero, unit="pair", resamples=400).shown
    assert 0.02 <= found / 300 <= 0.08


def test_the_intervals_of_turn_and_step_hold_the_truth_in_93_of_100_sets_or_more() -> None:
    rng, turn, step = np.random.default_rng(5), 0, 0
    for _ in range(200):
        y = curves(rng, 20, 5, 0.15, noise=0.15)
        found = change_point(y, TIMES, rng=rng, from_zero=False, unit="transcript", resamples=500)
        turn += found.at.low <= 5 <= found.at.high
        step += found.step.low <= 0.15 <= found.step.high
    assert turn / 200 >= 0.93 and step / 200 >= 0.90
