"""Pieces taken out, against deletions elsewhere."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from selfprobe.stats.paired import Control, Effect, effects, noise


def controls(values: Sequence[float], hits: str = "") -> list[Control]:
    return [Control(value, frozenset({hits} if hits else ())) for value in values]


def of(found: Sequence[Effect], name: str) -> Effect:
    return next(each for each in found if each.name == name)


def test_an_effect_is_the_change_less_that_of_controls() -> None:
    found = effects({"a": [0.5, 0.3], "b": [0.1]}, controls([0.1, 0.08, 0.12, 0.1, 0.09]))
    assert of(found, "a").estimate.value == pytest.approx(0.3) and of(found, "a").estimate.n == 2
    assert of(found, "b").estimate.value == pytest.approx(0.0) and of(found, "b").p == pytest.approx(1)


def test_controls_that_touch_a_giveaway_count_for_no_piece() -> None:
    hit = controls([0.41, 0.39, 0.4, 0.42, 0.38, 0.4], "giveaway")
    clean = controls([0.0, 0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.01])
    found = effects({"giveaway": [0.4] * 4, "other": [0.0] * 4}, [*hit, *hit, *clean])
    assert of(found, "giveaway").holm < 0.05 and of(found, "giveaway").estimate.value == pytest.approx(0.4, abs=0.02)
    assert of(found, "other").estimate.value == pytest.approx(0.0, abs=0.02) and of(found, "other").holm > 0.5


def test_few_controls_give_no_interval_and_say_so() -> None:
    (found,) = effects({"a": [0.5]}, controls([0.0, 0.1]))
    assert math.isnan(found.p) and found.estimate.reason == "2 controls are too few for an interval"
    (found,) = effects({"a": [0.5]}, [])
    assert found.estimate.value == 0.5 and found.estimate.reason == "no control of equal length"
    (found,) = effects({"a": [math.nan]}, controls([0.0] * 9))
    assert found.estimate.reason == "no number of the text without it"


def test_controls_that_never_move_the_number_leave_it_the_spread_of_rounding() -> None:
    assert noise([0.0] * 20).spread == 0.02


def test_without_effects_one_of_many_pieces_is_claimed_in_5_of_100_sets_at_most_and_intervals_hold() -> None:
    rng, claimed, held = np.random.default_rng(0), 0, 0
    for _ in range(400):
        changes = {f"s{n}": list(0.06 * rng.normal(size=3)) for n in range(10)}
        found = effects(changes, controls(list(0.06 * rng.normal(size=40))))
        claimed += any(each.holm < 0.05 for each in found)
        held += sum(each.estimate.low <= 0 <= each.estimate.high for each in found)
    assert claimed / 400 <= 0.07 and 0.93 <= held / 4000 <= 0.98
