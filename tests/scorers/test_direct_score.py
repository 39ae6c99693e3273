import math

import pytest

from selfprobe.scorers.preference import Rating, direct, expected, judge_ratings, stated_score, unsettled_rating
from selfprobe.solvers.record import Reply, TokenLogprob


def reply(text: str = "3", shares: dict[str, float] | None = None, **fields: object) -> Reply:
    first = None if shares is None else [TokenLogprob(token=t, logprob=math.log(p)) for t, p in shares.items()]
    return Reply.model_validate({"text": text, "model": "m", "stop_reason": "stop", "first_token": first} | fields)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("4", 4),
        ("**5**", 5),
        ("Score: 3.", 3),
        ("4/5", 4),
        ("I would rate it 2 out of 5.", 2),
        ("On a scale from 1 to 5, 4.", 4),
        ('{"score": 3}', 3),
        ("3.5", None),
        ("4 or 5", None),
        ("0", None),
        ("7", None),
        ("10", None),
        ("1/3", None),
        ("Very good.", None),
    ],
)
def test_a_reply_states_one_whole_score_or_none(text: str, score: int | None) -> None:
    assert stated_score(text) == score


def test_direct_is_the_most_probable_level_else_the_written_one() -> None:
    assert direct(reply("4", {"4": 0.5, "5": 0.3, "I": 0.1}), []) == Rating(4.0, "logprobs", pytest.approx(0.8))
    assert direct(reply("4"), []) == Rating(4.0, "text")
    assert direct(reply("Score: 4", {"Score": 0.9}), []) == Rating(4.0, "text")


def test_g_eval_by_hand() -> None:
    """(2·.1 + 4·.5 + 5·.2) / .8 = 4."""
    rating = expected(reply("4", {"4": 0.5, " 5": 0.2, "2": 0.1, "x": 0.1}), [])
    assert rating.score == pytest.approx(4) and rating.mass == pytest.approx(0.8) and rating.read == "logprobs"


def test_g_eval_without_probabilities_is_the_mean_of_the_draws_that_could_be_read() -> None:
    rating = expected(reply("4"), [reply("4"), reply("5/5"), reply("hm"), reply("", problem="empty")])
    assert (rating.score, rating.read) == (4.5, "draws")
    assert unsettled_rating(reply("4")) and not unsettled_rating(reply("hm"))
    assert not unsettled_rating(reply("4", {"4": 0.9}))


@pytest.mark.parametrize("rate", [direct, expected])
def test_faults_are_reasons(rate: object) -> None:
    assert callable(rate)
    assert rate(reply("I can't.", problem="refused"), []).fault == "refusal"
    assert rate(reply("Good."), []).fault == "invalid_response_format"
    assert rate(reply("4 long", stop_reason="model_length", problem="truncated"), []).fault == "too_long"


def test_equal_scores_are_a_tie_and_a_missing_one_is_no_verdict() -> None:
    tie, first, _ = judge_ratings(
        {"text_1": Rating(3.0, "text"), "text_2": Rating(3.0, "text")}, label=1, reasoned=False
    )
    assert (tie.said, tie.value, first.said) == ("tie", 0.5, "3")
    missing = judge_ratings(
        {"text_1": Rating(3.0, "text"), "text_2": Rating(None, None, fault="refusal")}, label=1, reasoned=False
    )
    assert [d.unscored for d in missing] == ["refusal", None, "refusal"] and missing[0].value is None
