"""Own minus other: by hand, against the bootstrap's sister test, and apart from the task's own
numbers.
"""

import math

import numpy as np
import pytest
from scipy import stats

from selfprobe.scorers.decision import Decision, Judged
from selfprobe.scorers.dilemma import dilemma_frames, dilemma_numbers
from selfprobe.scorers.frames import Frames, frame_numbers, frames, paired_frames, split
from selfprobe.scorers.summary import summarise


def decision(key: str, value: float | None, **given: object) -> Decision:
    return Decision(
        key=key, value=value, unscored=None if value is not None else "refusal", truth="a", **given
    )


def both(own: list[float | None], other: list[float | None]) -> list[Judged]:
    """An item a place, asked about itself and about another."""
    return [
        (f"q{i}", decision(key, value))
        for i, pair in enumerate(zip(own, other, strict=True))
        for key, value in zip(("k1", "other_k1"), pair, strict=True)
    ]


def found(decisions: list[Judged]) -> Frames:
    out = frames(decisions)
    assert out is not None
    return out


def test_the_difference_is_paired_by_item_as_a_t_test_has_it() -> None:
    own, other = [1.0, 1.0, 0.0, 1.0, 1.0, 1.0], [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]
    told = found(both(list(own), list(other)))
    expected = stats.ttest_rel(own, other).confidence_interval()
    assert told.self_score.value == pytest.approx(
        5 / 6
    ) and told.other_score.value == pytest.approx(2 / 6)
    assert (told.gain.value, told.gain.low, told.gain.high) == pytest.approx(
        (0.5, expected.low, expected.high)
    )
    assert told.gain.n == 6 and told.unscored == 0


def test_keys_and_epochs_of_one_item_are_one_unit() -> None:
    once = {("q1",): 1.0, ("q2",): 0.0, ("q3",): 1.0}, {("q1",): 0.0, ("q2",): 0.0, ("q3",): 1.0}
    twice = [
        {(*place, k): value for place, value in frame.items() for k in range(2)} for frame in once
    ]
    one, two = paired_frames(*once).gain, paired_frames(*twice).gain
    assert (one.value, one.low, one.high, one.n) == pytest.approx(
        (two.value, two.low, two.high, two.n)
    )


def test_an_answer_that_cannot_be_read_costs_its_pair_alone() -> None:
    told = found(both([1.0, None, 1.0, 0.0], [0.0, 1.0, None, 0.0]))
    assert (told.gain.n, told.gain.value) == (2, 0.5)
    assert (told.self_score.n, told.other_score.n, told.unscored) == (3, 3, 0.25)


def test_equal_answers_are_a_difference_of_exactly_0_and_that_is_said() -> None:
    told = found(both([1.0, 0.0, 1.0], [1.0, 0.0, 1.0]))
    assert (
        told.gain.value == 0
        and math.isnan(told.gain.low)
        and told.gain.reason == "all values are equal"
    )


def test_a_run_that_asks_about_itself_alone_has_no_frames() -> None:
    own = [("q1", decision("k1", 1.0))]
    assert (
        frames(own) is None
        and dilemma_frames(own) is None
        and frame_numbers(None, "accuracy") == {}
    )


def test_no_other_number_of_a_task_counts_what_is_said_of_another_assistant() -> None:
    decisions = both([1.0, 0.0, 1.0, None], [0.0, 0.0, 1.0, 1.0])
    own, other = split(decisions)
    assert [d.key for _, d in own] == [d.key for _, d in other] == ["k1"] * 4
    alone, together = summarise(own, "accuracy"), summarise(decisions, "accuracy")
    added = {"other_accuracy", "self_minus_other", "self_minus_other_n", "other_unscored"}
    ends = {
        f"{name}_{end}"
        for name in ("other_accuracy", "self_minus_other")
        for end in ("low", "high")
    }
    assert together.keys() - alone.keys() == added | ends
    assert {name: together[name] for name in alone} == alone
    assert list(together)[:3] == ["accuracy", "other_accuracy", "other_accuracy_low"]


def test_a_run_about_another_assistant_alone_has_its_score_and_no_other_number() -> None:
    others = [(item, d) for item, d in both([1.0, 1.0], [0.0, 1.0]) if d.key == "other_k1"]
    told = summarise(others, "accuracy")
    assert set(told) == {f"other_accuracy{end}" for end in ("", "_low", "_high")} | {
        "other_unscored",
        "self_minus_other_n",
    }
    assert told["other_accuracy"] == 0.5 and told["self_minus_other_n"] == 0


def dilemmas(own: list[float], other: list[float]) -> list[Judged]:
    """Two epochs each, in which the model concludes .5."""
    return [
        (f"d{i}", Decision(key=key, value=value))
        for i, pair in enumerate(zip(own, other, strict=True))
        for _ in range(2)
        for key, value in {
            "p": 0.5,
            "p_direct": 0.1,
            "p_predicted": pair[0],
            "other_p_predicted": pair[1],
        }.items()
    ]


def test_a_dilemmas_frames_are_cot_pred_over_its_epochs() -> None:
    own, other = [0.5, 0.6, 0.4, 0.7], [0.1, 0.9, 0.5, 0.2]
    decisions = dilemmas(own, other)
    told = dilemma_frames(decisions)
    assert told is not None
    gains = np.abs(np.array(other) - 0.5) - np.abs(np.array(own) - 0.5)
    assert told.gain.value == pytest.approx(gains.mean()) and told.gain.n == 4
    assert told.gain.low == pytest.approx(stats.ttest_1samp(gains, 0).confidence_interval().low)
    together, alone = dilemma_numbers(decisions), dilemma_numbers(split(decisions)[0])
    assert {name: together[name] for name in alone} == alone
    assert together["self_minus_other"] == pytest.approx(gains.mean())
    assert together["other_cot_pred"] == pytest.approx(1 - np.mean(np.abs(np.array(other) - 0.5)))


def test_dilemmas_asked_about_another_assistant_alone_have_no_number_of_their_own() -> None:
    decisions = [
        (item, d) for item, d in dilemmas([0.5, 0.5], [0.1, 0.2]) if d.key != "p_predicted"
    ]
    told = dilemma_numbers(decisions)
    assert (
        told["other_cot_pred"] == pytest.approx(0.65)
        and "cot_pred" not in told
        and "self_minus_other" not in told
    )
