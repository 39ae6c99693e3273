import math

import pytest
from inspect_ai.scorer import SampleScore
from sklearn.metrics import roc_auc_score

from selfprobe.scorers.decision import score_of
from selfprobe.scorers.preference import (
    VERDICT,
    first_token_shares,
    judged_pairs,
    preference_decision,
    preference_numbers,
    unlisted,
)
from selfprobe.solvers.record import TokenLogprob


def tokens(**shares: float) -> list[TokenLogprob]:
    return [TokenLogprob(token=t, logprob=math.log(p)) for t, p in shares.items()]


def sample(number: int, margin: float | None, label: int | None, group: str = "", **details: object) -> SampleScore:
    decision = preference_decision(VERDICT, margin, label=label, reason="refusal" if margin is None else None)
    score = score_of([decision], answer=decision.said, explanation="")
    score.metadata = {**(score.metadata or {}), **details}
    return SampleScore(score=score, sample_id=f"p{number}", sample_metadata={"group": group or f"g{number}"})


def test_a_margin_is_right_wrong_a_tie_or_unlabelled() -> None:
    assert [preference_decision("k", m, label=1).value for m in (0.2, -0.2, 0.0, 1e-12)] == [1.0, 0.0, 0.5, 0.5]
    assert preference_decision("k", 0.0, label=1).said == "tie" and preference_decision("k", -1, label=2).value == 1
    unlabelled = preference_decision("k", 0.3, label=None)
    assert (unlabelled.said, unlabelled.value, unlabelled.unscored) == ("1", None, None)
    silent = preference_decision("k", None, label=1, reason="refusal")
    assert (silent.value, silent.said, silent.unscored) == (None, None, "refusal")


def test_shares_of_the_first_token_add_up_its_spellings() -> None:
    listed = tokens(**{"1": 0.3, " 1": 0.2, "▁2": 0.1, "12": 0.1})
    assert first_token_shares(listed, ("1", "2")) == pytest.approx({"1": 0.5, "2": 0.1})
    assert first_token_shares(tokens(I=0.9), ("1", "2")) is None and first_token_shares(None, ("1",)) is None


def test_what_is_not_listed_has_at_most_the_last_candidate_or_what_is_left() -> None:
    assert unlisted(tokens(**{"1": 0.5, "a": 0.2, "b": 0.05})) == pytest.approx(0.05)
    assert unlisted(tokens(**{"1": 0.9})) == pytest.approx(0.1)


def test_numbers_by_hand_with_a_tie_and_a_refusal() -> None:
    """Right, right, wrong, tie of labels 1, 2, 1, 2; one refusal: accuracy (1 + 1 + 0 + .5) / 4."""
    found = [sample(1, 0.4, 1), sample(2, -0.2, 2), sample(3, -0.1, 1), sample(4, 0.0, 2), sample(5, None, 1)]
    out = preference_numbers(judged_pairs(found))
    assert out["accuracy"] == pytest.approx(2.5 / 4) and out["decided_accuracy"] == pytest.approx(2 / 3)
    assert out["tie_rate"] == pytest.approx(1 / 4) and out["unscored_refusal"] == pytest.approx(1 / 5)
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
    assert wide["accuracy_high"] - wide["accuracy_low"] > 2 * (narrow["accuracy_high"] - narrow["accuracy_low"])


def test_position_by_hand() -> None:
    """Orders say (1, 1), (1, 2), (tie, 2): choice 1 in (1 + .5 + .25) / 3; one of two decided pairs is consistent."""
    ps = [(0.9, 0.8), (0.7, 0.4), (0.5, 0.1)]
    found = [
        sample(i, (a - b) / 2, 1, p_first={"shown": a, "swapped": b}, read={"shown": "logprobs", "swapped": "draws"})
        for i, (a, b) in enumerate(ps)
    ]
    out = preference_numbers(judged_pairs(found))
    assert out["said_1"] == pytest.approx(1.75 / 3) and out["position_bias"] == pytest.approx(1.75 / 3 - 0.5)
    assert out["consistency"] == pytest.approx(1 / 2) and out["from_logprobs"] == 0.5
    assert out["one_order_accuracy"] == pytest.approx(2.5 / 3)
    assert out["one_order_calibrated_accuracy"] == pytest.approx(1.5 / 3), "the median pair becomes a tie"


def test_a_missing_order_says_nothing_of_position() -> None:
    out = preference_numbers(judged_pairs([sample(1, None, 1, p_first={"shown": 0.9})]))
    assert "said_1" not in out and "accuracy" not in out and out["unscored"] == 1
