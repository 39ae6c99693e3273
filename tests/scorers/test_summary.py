import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inspect_ai.log import headline_metric
from inspect_ai.scorer import SampleScore, Score

from selfprobe.scorers.decision import Decision, decisions_of, score_of
from selfprobe.scorers.summary import (
    FOREIGN,
    counted_apart,
    notes_of,
    sample_notes,
    summarise,
    summary,
)
from selfprobe.solvers.record import Applied, Reply


def decision(
    key: str, value: float | None, truth: str = "a", unscored: str | None = None, **more: object
) -> Decision:
    return Decision(key=key, value=value, truth=truth, unscored=unscored, **more)  # type: ignore[arg-type]


def test_a_score_gives_its_decisions_back() -> None:
    decisions = [
        decision("k1", 1.0, said="a", ceiling=1.0),
        Decision(key="k2", unscored="refusal", reasoned=True),
        Decision(key="k3", value=0.0, truth="b", chance=0.2, constant="3", floor=0.1),
    ]
    score = score_of(decisions, answer=None, explanation="")
    assert decisions_of(score) == decisions
    assert isinstance(score.value, dict) and math.isnan(score.value["k2"]) and score.reason is None  # type: ignore[arg-type]


def test_a_sample_without_any_score_carries_a_reason() -> None:
    score = score_of([Decision(key="k1", unscored="refusal")], answer=None, explanation="")
    assert score.reason == "refusal"


def test_another_scorers_score_is_an_error() -> None:
    with pytest.raises(
        ValueError, match="this score carries no decisions: it was not made by a selfprobe scorer"
    ):
        decisions_of(Score(value=1))


def test_the_numbers_of_a_small_case_by_hand() -> None:
    """Three questions, two keys: k1 right, right, wrong; k2 right, unread, refused."""
    judged = [
        ("q1", decision("k1", 1.0, ceiling=1.0)),
        ("q1", decision("k2", 1.0, truth="c", ceiling=0.0)),
        ("q2", decision("k1", 1.0, ceiling=1.0)),
        ("q2", decision("k2", None, truth="c", unscored="invalid_response_format")),
        ("q3", decision("k1", 0.0, truth="b", reasoned=True)),
        ("q3", decision("k2", None, truth="c", unscored="refusal")),
    ]
    found = summarise(judged, "accuracy")
    assert (
        found["accuracy"] == 3 / 4 and found["k1_accuracy"] == 2 / 3 and found["k2_accuracy"] == 1
    )
    assert found["n"] == 4 and found["unscored"] == 2 / 6
    assert found["unscored_refusal"] == found["unscored_invalid_response_format"] == 1 / 6
    assert (found["worst_case"], found["best_case"]) == (3 / 6, 5 / 6)
    assert found["ceiling"] == 2 / 3 and found["reasoned_rate"] == 1 / 6
    assert found["accuracy_low"] < 3 / 4 < found["accuracy_high"]


def test_what_is_undefined_is_left_out_and_never_0() -> None:
    found = summarise([("q1", Decision(key="k1", unscored="refusal"))], "accuracy")
    found = {key: value for key, value in found.items() if value or not key.startswith("unscored_")}
    assert found == {
        "n": 0,
        "unscored": 1,
        "unscored_refusal": 1,
        "worst_case": 0,
        "best_case": 1,
        "reasoned_rate": 0,
    }


def test_without_unscored_decisions_the_bounds_are_the_score_and_every_reason_is_0() -> None:
    found = summarise([("q1", decision("k1", 1.0)), ("q2", decision("k1", 0.0))], "accuracy")
    assert found["worst_case"] == found["best_case"] == found["accuracy"] == 0.5
    assert found["unscored"] == found["unscored_refusal"] == found["unscored_no_response"] == 0


def test_the_mode_baseline_leaves_the_own_item_out() -> None:
    judged = [(f"q{i}", decision("k1", 1.0, truth="a" if i < 3 else "b")) for i in range(4)]
    assert summarise(judged, "accuracy")["baseline_mode"] == 3 / 4


def test_skill_is_the_share_of_the_way_from_the_best_baseline_to_perfect() -> None:
    judged = [(f"q{i}", decision("k1", float(i < 6), truth=f"t{i}", chance=0.2)) for i in range(10)]
    found = summarise(judged, "accuracy")
    assert found["baseline_chance"] == pytest.approx(0.2) and found["baseline_mode"] == 0
    assert found["skill"] == pytest.approx((0.6 - 0.2) / 0.8)
    assert found["skill_low"] < found["skill"] < found["skill_high"]


def test_the_metric_reads_every_epoch_and_is_empty_without_scores() -> None:
    score = score_of([decision("k1", 1.0)], answer=None, explanation="")
    scores = [SampleScore(score=score, sample_id=item) for item in ("q1", "q1", "q2")]
    found = summary()(scores)  # type: ignore[arg-type]
    assert found["n"] == 3 and summary()([]) == {}  # type: ignore[arg-type, index, call-overload]


@pytest.mark.slow(2)
@pytest.mark.parametrize(("mean", "spread"), [(0.7, 4.0), (0.1, 10.0)])
def test_the_interval_covers_the_planted_value_95_times_in_100(mean: float, spread: float) -> None:
    """1,000 data sets of 60 questions with three keys each, whose difficulty is the question's
    (beta).
    """
    rng, covered = np.random.default_rng(7), np.zeros(2)
    for _ in range(1000):
        rates = rng.beta(mean * spread, (1 - mean) * spread, size=60)
        hits = rng.random((60, 3)) < rates[:, None]
        judged = [
            (f"q{q}", Decision(key=f"k{k + 1}", value=float(hits[q, k]), chance=0.0))
            for q in range(60)
            for k in range(3)
        ]
        found = summarise(judged, "accuracy")
        # Above a chance of 0 the skill is the accuracy, its interval a bootstrap's.
        covered += [
            found[f"{name}_low"] <= mean <= found[f"{name}_high"] for name in ("accuracy", "skill")
        ]
    assert all((covered >= 930) & (covered <= 970)), covered


def test_a_run_too_small_for_a_skill_brings_no_warning(
    run_task: Any, tmp_path: Path, caplog: Any
) -> None:
    log = run_task("selfprobe/kth_word", "planted/a", tmp_path, limit=1)
    assert "skill" not in log.results.scores[0].metrics
    assert headline_metric(log) is not None and "Headline metric" not in caplog.text


def test_items_of_one_cluster_are_one_unit_of_the_interval() -> None:
    def scores(cluster: bool) -> list[SampleScore]:
        return [
            SampleScore(
                score=score_of([decision("k1", float(i // 5 % 2))], answer=None, explanation=""),
                sample_id=f"q{i}",
                sample_metadata={"cluster": f"t{i // 5}"} if cluster else {},
            )
            for i in range(40)
        ]

    def width(found: Any) -> float:
        return float(found["accuracy_high"] - found["accuracy_low"])

    alone, told = summary()(scores(False)), summary()(scores(True))  # type: ignore[call-overload, operator]
    assert alone["accuracy"] == told["accuracy"] == 0.5 and width(told) > 1.7 * width(alone)


def test_what_may_be_a_refusal_is_behaviour_and_counted_apart() -> None:
    fiction = Reply(text="I cannot answer; I am a lighthouse.", model="m", stop_reason="stop")
    refused = Reply(text="I cannot answer that.", model="m", stop_reason="stop", problem="refused")
    scores = [
        SampleScore(score=Score(value=1, metadata=details), sample_id=str(i))
        for i, details in enumerate(
            [sample_notes([fiction]), sample_notes([refused]), sample_notes([fiction], "other"), {}]
        )
    ]
    compute: Any = counted_apart()
    assert compute(scores) == {"unsure_refusal": 0.5, "foreign_reply": 0.0} and compute([]) == {}
    several: Any = counted_apart(("unsure_refusal", "other"))
    assert several(scores) == {"unsure_refusal": 0.5, "other": 0.25}


def test_a_reply_that_stands_under_two_items_or_exceeds_its_limit_may_be_a_proxy_s() -> None:
    def sample(item: str, text: str, limit: int | None = None) -> SampleScore:
        reply = Reply(text=text, model="m", stop_reason="stop", applied=Applied(limit=limit))
        return SampleScore(score=Score(value=1, metadata=sample_notes([reply])), sample_id=item)

    said = "I would say it is most likely the usual one, but I cannot be sure."
    scores = [
        sample("q1", said, 64),
        sample("q2", said.replace(" ", "\n"), 64),
        sample("q3", "The sea, " * 10, 64),
        sample("q3", "The sea, " * 10, 64),  # another epoch of the item
        sample("q4", "4, 8"),
        sample("q5", "4, 8"),
        sample("q6", "lorem " * 1000, 40),
        sample("q7", "lorem " * 1001),  # no limit was sent
        sample("q8", "lorem " * 400_000),  # nor here, and no model writes so much
    ]
    foreign = [FOREIGN in notes for notes in notes_of(scores)]
    assert foreign == [True, True, False, False, False, False, True, False, True]
    compute: Any = counted_apart()
    assert compute(scores) == {"unsure_refusal": 0.0, "foreign_reply": 4 / 9}


def test_the_metric_of_a_log_grades_by_the_rule_that_the_log_names(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A log keeps the rule's name alone; `inspect eval-retry` makes the metrics of an interrupted
    run from it.
    """

    def within_one(said: str, truth: str) -> bool:
        return abs(int(said) - int(truth)) <= 1

    decisions = [
        decision("n", value, truth=truth) for value, truth in ((1.0, "4"), (0.0, "5"), (1.0, "6"))
    ]
    scores = [
        SampleScore(score=score_of([one], answer=None, explanation=""), sample_id=str(n))
        for n, one in enumerate(decisions)
    ]
    of_run, of_log = summary(right=within_one)(scores), summary(right="within_one")(scores)
    assert of_log == of_run and of_run["skill"] < 0 and not caplog.messages  # type: ignore[index, operator, call-overload]
    unknown = summary(right="within_two")(scores)
    assert unknown == {k: v for k, v in of_run.items() if not k.startswith(("baseline", "skill"))}  # type: ignore[union-attr]
    (line,) = caplog.messages
    assert line.startswith(
        "the grading rule 'within_two' of a log is not known here: its metrics lack baselines"
    )
