import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspect_ai.scorer import SampleScore

from selfprobe.scorers.decision import score_of
from selfprobe.scorers.slot_choices import chosen_slot, judge_wording, position
from selfprobe.solvers.record import Reply


def reply(text: str, problem: str | None = None) -> Reply:
    return Reply(text=text, model="m", stop_reason="stop", problem=problem)


@pytest.mark.parametrize(
    ("text", "slot"),
    [
        ('{ "choice": 1 }', "1"),
        ('{"choice": "5"}', "5"),
        ('Sure: ```json\n{"choice": 3}\n```', "3"),
        ('{{"choice": 2}}', "2"),
        ('{"choice": 0}', None),
        ('{"choice": 6}', None),
        ('{"choice": 1.0}', "1"),
        ('{"choice": true}', None),
        ('{"choice": [1]}', "1"),
        ('{"choice": "３."}', "3"),
        ('{"choice": "Prompt 3"}', "3"),
        ("The answer is **3**.", "3"),
        ("\\boxed{3}", "3"),
        ("My choice is $\\boxed{\\text{Prompt 3}}$.", "3"),
        ("3 or 4", None),
        ("3 of 5", None),
        ("-3", None),
        ("not 3", None),
        ('{"choice": "1 or 2"}', None),
        ('{"choice": 1} {"choice": 2}', None),
        ('{"choice": 1, "why": "x"}', "1"),
        ("1", "1"),
        ("", None),
    ],
)
def test_a_choice_is_one_of_five_numbers(text: str, slot: str | None) -> None:
    assert chosen_slot(text) == slot


@given(st.text())
def test_any_text_is_a_slot_or_none(text: str) -> None:
    assert chosen_slot(text) in {"1", "2", "3", "4", "5", None}
    assert chosen_slot(f'{{"choice": {text}}}') in {"1", "2", "3", "4", "5", None}


def test_a_right_and_a_wrong_choice_and_their_chance() -> None:
    right = judge_wording(
        "original", 3, reply("text"), reply('{"choice": 3}'), has_indistinct_replies=False
    )
    assert (right.value, right.truth, right.said, right.constant, right.chance) == (
        1,
        "3",
        "3",
        "3",
        0.2,
    )
    assert (
        judge_wording(
            "original", 3, reply("text"), reply('{"choice": 4}'), has_indistinct_replies=False
        ).value
        == 0
    )


@pytest.mark.parametrize(
    ("act", "choice", "alike", "reason"),
    [
        (reply("", "empty"), None, False, "target_no_response"),
        (reply("No.", "refused"), None, True, "target_refusal"),
        (reply("text"), None, True, "indistinct"),
        (reply("text"), reply("No.", "refused"), False, "refusal"),
        (reply("text"), reply("", "truncated"), False, "truncated"),
        (reply("text"), reply("the first"), False, "invalid_response_format"),
    ],
)
def test_what_cannot_be_judged_is_unscored_with_its_reason(
    act: Reply, choice: Reply | None, alike: bool, reason: str
) -> None:
    decision = judge_wording("original", 1, act, choice, has_indistinct_replies=alike)
    assert (decision.value, decision.unscored) == (None, reason)


def scores(said: list[int]) -> list[SampleScore]:
    decisions = [
        judge_wording(
            f"v{i}", 1, reply("text"), reply(f'{{"choice": {n}}}'), has_indistinct_replies=False
        )
        for i, n in enumerate(said)
    ]
    return [SampleScore(score=score_of(decisions, answer=None, explanation=""), sample_id="a")]


def test_position_bias_is_the_distance_from_equal_shares() -> None:
    assert position()(scores([1, 2, 3, 4, 5]))["position_bias"] == pytest.approx(0)
    # Shares 3/5, 1/5, 1/5, 0, 0: (.4 + 0 + 0 + .2 + .2) / 2
    some = position()(scores([1, 1, 1, 2, 3]))
    assert some["said_1"] == 0.6 and some["position_bias"] == pytest.approx(0.4)
    assert position()(scores([4] * 5))["position_bias"] == pytest.approx(0.8)


def test_without_a_readable_choice_there_is_no_position() -> None:
    assert position()([]) == {}
    assert position()(scores([9, 9])) == {}
