import math

import pytest

from selfprobe.scorers.preference import OrderReading, judge_orders, named_choice, p_first, read_order, unsettled_choice
from selfprobe.solvers.record import Reply, TokenLogprob


def reply(text: str = "1", shares: dict[str, float] | None = None, **fields: object) -> Reply:
    first = None if shares is None else [TokenLogprob(token=t, logprob=math.log(p)) for t, p in shares.items()]
    return Reply.model_validate({"text": text, "model": "m", "stop_reason": "stop", "first_token": first} | fields)


def reading(p: float | None, fault: str | None = None) -> OrderReading:
    return OrderReading(p, "logprobs" if p is not None else None, 0, None, fault)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1", "1"),
        (" 2.", "2"),
        ("**Choice 1**", "1"),
        ("Choice: 2", "2"),
        ('{"answer": "2"}', "2"),
        ("Between Choice 1 and Choice 2, the more helpful response is Choice 2.", "2"),
        ("Summary 1 is more coherent.", "1"),
        ("They differ a lot.\n\n2", "2"),
        ("Choice 1 is better than Choice 2.", None),
        ("There are 2 reasons for doubt.", None),
        ("1.5", None),
        ("12", None),
        ("It depends.", None),
        ("", None),
    ],
)
def test_a_reply_names_one_choice_or_none(text: str, said: str | None) -> None:
    assert named_choice(text) == said


def test_token_probabilities_by_hand() -> None:
    assert p_first(reply(shares={" 1": 0.6, "2": 0.2, "I": 0.1})) == (0.75, 0.8)


def test_an_unlisted_choice_is_taken_at_the_most_it_can_have() -> None:
    assert p_first(reply(shares={"1": 0.9, "a": 0.05})) == pytest.approx((0.9 / 0.95, 0.9))
    assert p_first(reply(shares={"1": 0.4})) is None, "the other choice may have as much"


def test_a_worded_answer_is_drawn_again_and_nonsense_is_not() -> None:
    assert unsettled_choice(reply("Choice 1", {"Choice": 0.9})) and unsettled_choice(reply("1"))
    assert not unsettled_choice(reply("1", {"1": 0.9, "2": 0.1}))
    assert not unsettled_choice(reply("It depends.")) and not unsettled_choice(reply("I can't.", problem="refused"))


def test_draws_give_the_share_of_those_that_could_be_read() -> None:
    found = read_order(reply("1"), [reply("1"), reply("2"), reply("Choice 1"), reply("hm"), reply("", problem="empty")])
    assert (found.p_first, found.read, found.n) == (2 / 3, "draws", 3)


def test_faults_are_reasons() -> None:
    assert read_order(reply("x", problem="refused"), []).fault == "refusal"
    assert read_order(reply("Hm."), []).fault == "invalid_response_format"
    assert read_order(reply("1"), [reply("hm")]).fault == "invalid_response_format"
    too_long = reply("context exceeded", stop_reason="model_length", problem="truncated")
    assert read_order(too_long, []).fault == "too_long"
    assert read_order(reply("sorry", {"1": 0.2, "2": 0.1}, problem="refused"), []).p_first is None


def test_a_reply_cut_after_its_first_token_has_its_probabilities() -> None:
    cut = reply("1 because", {"1": 0.6, "2": 0.2}, stop_reason="max_tokens", problem="truncated")
    assert read_order(cut, []).p_first == pytest.approx(0.75)


def test_both_orders_are_averaged_so_that_position_drops_out() -> None:
    """P(text 1) = (.9 + (1 - .6)) / 2 = .65: text 1, though each order says choice 1."""
    both, shown, swapped = judge_orders({"shown": reading(0.9), "swapped": reading(0.6)}, label=1, reasoned=False)
    assert both.score == pytest.approx(0.15) and (both.said, both.value) == ("1", 1)
    assert (shown.said, swapped.said) == ("1", "2") and (shown.value, swapped.value) == (1, 0)


def test_a_judge_that_only_takes_the_first_is_a_tie() -> None:
    both = judge_orders({"shown": reading(0.8), "swapped": reading(0.8)}, label=2, reasoned=False)[0]
    assert (both.said, both.value, both.unscored) == ("tie", 0.5, None)


def test_one_order_alone_is_no_verdict() -> None:
    both, shown, swapped = judge_orders(
        {"shown": reading(0.9), "swapped": reading(None, "refusal")}, label=1, reasoned=False
    )
    assert (both.value, both.unscored, shown.value, swapped.unscored) == (None, "refusal", 1, "refusal")
