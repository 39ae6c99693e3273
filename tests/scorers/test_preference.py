import math

import pytest
from inspect_ai.scorer import SampleScore
from inspect_ai.util import Store
from sklearn.metrics import roc_auc_score

from selfprobe.scorers.decision import score_of
from selfprobe.scorers.preference import (
    VERDICT,
    OrderReading,
    Rating,
    direct_rating,
    expected_rating,
    first_token_shares,
    judge_orders,
    judge_ratings,
    judge_reading,
    judged_pairs,
    largest_unlisted_share,
    named_choice,
    p_first,
    preference_decision,
    preference_numbers,
    read_order,
    stated_score,
    unsettled_choice,
    unsettled_rating,
)
from selfprobe.solvers.apply_probe import ProbeReading
from selfprobe.solvers.record import Reply, TokenLogprob


def tokens(**shares: float) -> list[TokenLogprob]:
    return [TokenLogprob(token=t, logprob=math.log(p)) for t, p in shares.items()]


def sample(
    number: int, margin: float | None, label: int | None, group: str = "", **details: object
) -> SampleScore:
    decision = preference_decision(
        VERDICT, margin, label=label, reason="refusal" if margin is None else None
    )
    score = score_of([decision], answer=decision.said, explanation="")
    score.metadata = {**(score.metadata or {}), **details}
    return SampleScore(
        score=score, sample_id=f"p{number}", sample_metadata={"group": group or f"g{number}"}
    )


def test_a_margin_is_right_wrong_a_tie_or_unlabelled() -> None:
    assert [preference_decision("k", m, label=1).value for m in (0.2, -0.2, 0.0, 1e-12)] == [
        1.0,
        0.0,
        0.5,
        0.5,
    ]
    assert (
        preference_decision("k", 0.0, label=1).said == "tie"
        and preference_decision("k", -1, label=2).value == 1
    )
    unlabelled = preference_decision("k", 0.3, label=None)
    assert (unlabelled.said, unlabelled.value, unlabelled.unscored) == ("1", None, None)
    silent = preference_decision("k", None, label=1, reason="refusal")
    assert (silent.value, silent.said, silent.unscored) == (None, None, "refusal")


def test_shares_of_the_first_token_add_up_its_spellings() -> None:
    listed = tokens(**{"1": 0.3, " 1": 0.2, "▁2": 0.1, "12": 0.1})
    assert first_token_shares(listed, ("1", "2")) == pytest.approx({"1": 0.5, "2": 0.1})
    assert (
        first_token_shares(tokens(I=0.9), ("1", "2")) is None
        and first_token_shares(None, ("1",)) is None
    )


def test_what_is_not_listed_has_at_most_the_last_candidate_or_what_is_left() -> None:
    assert largest_unlisted_share(tokens(**{"1": 0.5, "a": 0.2, "b": 0.05})) == pytest.approx(0.05)
    assert largest_unlisted_share(tokens(**{"1": 0.9})) == pytest.approx(0.1)


def test_numbers_by_hand_with_a_tie_and_a_refusal() -> None:
    """Right, right, wrong, tie of labels 1, 2, 1, 2; one refusal: accuracy (1 + 1 + 0 + .5) / 4."""
    found = [
        sample(1, 0.4, 1),
        sample(2, -0.2, 2),
        sample(3, -0.1, 1),
        sample(4, 0.0, 2),
        sample(5, None, 1),
    ]
    out = preference_numbers(judged_pairs(found))
    assert out["accuracy"] == pytest.approx(2.5 / 4) and out["decided_accuracy"] == pytest.approx(
        2 / 3
    )
    assert out["tie_rate"] == pytest.approx(1 / 4) and out["unscored_refusal"] == pytest.approx(
        1 / 5
    )
    assert (out["n"], out["pairs"], out["questions"]) == (4, 5, 5)
    # label 1: 1 hit, 1 missed; label 2: 1 hit, 1 wrongly said, 1 missed
    assert out["f1"] == pytest.approx((2 * (2 / 3) + 2 * (2 / 4)) / 4)
    assert out["auroc"] == pytest.approx(roc_auc_score([1, 0, 1, 0], [0.4, -0.2, -0.1, 0.0]))


def test_one_class_has_an_accuracy_and_no_auroc() -> None:
    out = preference_numbers(judged_pairs([sample(i, 0.1 * i - 0.2, 1) for i in range(6)]))
    assert "auroc" not in out and out["accuracy"] == pytest.approx(3.5 / 6)


def test_pairs_without_labels_have_ties_and_no_accuracy() -> None:
    out = preference_numbers(judged_pairs([sample(1, 0.0, None), sample(2, 0.3, None)]))
    assert out["tie_rate"] == 0.5 and out["n"] == 0 and "accuracy" not in out and "f1" not in out
    assert out["unscored"] == 0


def test_intervals_resample_questions_not_pairs() -> None:
    alone = [sample(i, 1.0 if i % 4 else -1.0, 1) for i in range(40)]
    shared = [sample(i, 1.0 if (i // 10) % 4 else -1.0, 1, group=f"g{i // 10}") for i in range(40)]
    wide, narrow = preference_numbers(judged_pairs(shared)), preference_numbers(judged_pairs(alone))
    assert wide["accuracy"] == narrow["accuracy"] and wide["questions"] == 4
    assert wide["accuracy_high"] - wide["accuracy_low"] > 2 * (
        narrow["accuracy_high"] - narrow["accuracy_low"]
    )


def test_position_by_hand() -> None:
    """Orders say (1, 1), (1, 2), (tie, 2): choice 1 in (1 + .5 + .25) / 3; one of two decided pairs
    is consistent.
    """
    ps = [(0.9, 0.8), (0.7, 0.4), (0.5, 0.1)]
    found = [
        sample(
            i,
            (a - b) / 2,
            1,
            p_first={"shown": a, "swapped": b},
            read={"shown": "logprobs", "swapped": "draws"},
        )
        for i, (a, b) in enumerate(ps)
    ]
    out = preference_numbers(judged_pairs(found))
    assert out["said_1"] == pytest.approx(1.75 / 3) and out["position_bias"] == pytest.approx(
        1.75 / 3 - 0.5
    )
    assert out["consistency"] == pytest.approx(1 / 2) and out["from_logprobs"] == 0.5
    assert out["one_order_accuracy"] == pytest.approx(2.5 / 3)
    assert out["one_order_calibrated_accuracy"] == pytest.approx(1.5 / 3), (
        "the median pair becomes a tie"
    )


def test_a_missing_order_says_nothing_of_position() -> None:
    out = preference_numbers(judged_pairs([sample(1, None, 1, p_first={"shown": 0.9})]))
    assert "said_1" not in out and "accuracy" not in out and out["unscored"] == 1


def reply(text: str = "1", shares: dict[str, float] | None = None, **fields: object) -> Reply:
    first = (
        None
        if shares is None
        else [TokenLogprob(token=t, logprob=math.log(p)) for t, p in shares.items()]
    )
    return Reply.model_validate(
        {"text": text, "model": "m", "stop_reason": "stop", "first_token": first} | fields
    )


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
    assert not unsettled_choice(reply("It depends.")) and not unsettled_choice(
        reply("I can't.", problem="refused")
    )


def test_draws_give_the_share_of_those_that_could_be_read() -> None:
    found = read_order(
        reply("1"),
        [reply("1"), reply("2"), reply("Choice 1"), reply("hm"), reply("", problem="empty")],
    )
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
    both, shown, swapped = judge_orders(
        {"shown": reading(0.9), "swapped": reading(0.6)}, label=1, reasoned=False
    )
    assert both.score == pytest.approx(0.15) and (both.said, both.value) == ("1", 1)
    assert (shown.said, swapped.said) == ("1", "2") and (shown.value, swapped.value) == (1, 0)


def test_a_judge_that_only_takes_the_first_is_a_tie() -> None:
    both = judge_orders({"shown": reading(0.8), "swapped": reading(0.8)}, label=2, reasoned=False)[
        0
    ]
    assert (both.said, both.value, both.unscored) == ("tie", 0.5, None)


def test_one_order_alone_is_no_verdict() -> None:
    both, shown, swapped = judge_orders(
        {"shown": reading(0.9), "swapped": reading(None, "refusal")}, label=1, reasoned=False
    )
    assert (both.value, both.unscored, shown.value, swapped.unscored) == (
        None,
        "refusal",
        1,
        "refusal",
    )


def score_reply(text: str = "3", shares: dict[str, float] | None = None, **fields: object) -> Reply:
    first = (
        None
        if shares is None
        else [TokenLogprob(token=t, logprob=math.log(p)) for t, p in shares.items()]
    )
    return Reply.model_validate(
        {"text": text, "model": "m", "stop_reason": "stop", "first_token": first} | fields
    )


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
    assert direct_rating(score_reply("4", {"4": 0.5, "5": 0.3, "I": 0.1}), []) == Rating(
        4.0, "logprobs", pytest.approx(0.8)
    )
    assert direct_rating(score_reply("4"), []) == Rating(4.0, "text")
    assert direct_rating(score_reply("Score: 4", {"Score": 0.9}), []) == Rating(4.0, "text")


def test_g_eval_by_hand() -> None:
    """(2·.1 + 4·.5 + 5·.2) / .8 = 4."""
    rating = expected_rating(score_reply("4", {"4": 0.5, " 5": 0.2, "2": 0.1, "x": 0.1}), [])
    assert (
        rating.score == pytest.approx(4)
        and rating.mass == pytest.approx(0.8)
        and rating.read == "logprobs"
    )


def test_g_eval_without_probabilities_is_the_mean_of_the_draws_that_could_be_read() -> None:
    rating = expected_rating(
        score_reply("4"),
        [score_reply("4"), score_reply("5/5"), score_reply("hm"), score_reply("", problem="empty")],
    )
    assert (rating.score, rating.read) == (4.5, "draws")
    assert unsettled_rating(score_reply("4")) and not unsettled_rating(score_reply("hm"))
    assert not unsettled_rating(score_reply("4", {"4": 0.9}))


@pytest.mark.parametrize("rate", [direct_rating, expected_rating])
def test_faults_of_a_rating_are_reasons(rate: object) -> None:
    assert callable(rate)
    assert rate(score_reply("I can't.", problem="refused"), []).fault == "refusal"
    assert rate(score_reply("Good."), []).fault == "invalid_response_format"
    assert (
        rate(score_reply("4 long", stop_reason="model_length", problem="truncated"), []).fault
        == "too_long"
    )


def test_equal_scores_are_a_tie_and_a_missing_one_is_no_verdict() -> None:
    tie, first, _ = judge_ratings(
        {"text_1": Rating(3.0, "text"), "text_2": Rating(3.0, "text")}, label=1, reasoned=False
    )
    assert (tie.said, tie.value, first.said) == ("tie", 0.5, "3")
    missing = judge_ratings(
        {"text_1": Rating(3.0, "text"), "text_2": Rating(None, None, fault="refusal")},
        label=1,
        reasoned=False,
    )
    assert [d.unscored for d in missing] == ["refusal", None, "refusal"] and missing[
        0
    ].value is None


def test_the_sign_decides_and_the_models_own_answer_stands_beside_it() -> None:
    verdict, own = judge_reading(ProbeReading(store=Store(), score=-0.3, own_answer=0.7), label=2)
    assert (verdict.said, verdict.value, verdict.score) == ("2", 1, -0.3)
    assert (own.key, own.said, own.value) == ("own", "1", 0)


def test_a_pair_that_could_not_be_read_has_its_reason_without_numbers() -> None:
    reading = ProbeReading(store=Store(), reason="too long: 9000 tokens, the context is 8192")
    assert [d.unscored for d in judge_reading(reading, label=1)] == ["too_long", "too_long"]
    assert judge_reading(ProbeReading(store=Store()), label=1)[0].unscored == "not_read"
