"""Averages first, then divergences; nothing imputed."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy.stats import entropy

from selfprobe.scorers.decision import Decision, Judged
from selfprobe.scorers.dilemma import (
    ARMS,
    Arm,
    blind_scores,
    dilemma_numbers,
    dilemmas_of,
    item_scores,
    judge,
    per_dilemma,
)
from selfprobe.solvers.record import Reply
from selfprobe.stats.estimate import FloatArray, bootstrap, clustered_mean, kl, smoothed


def reply(text: str, **fields: object) -> Reply:
    return Reply.model_validate({"text": text, "model": "m", "stop_reason": "stop"} | fields)


def decisions(
    p: Sequence[float | None], direct: Sequence[float | None], said: Sequence[float | None]
) -> list[Decision]:
    return [
        Decision(key=arm, value=value, unscored=None if value is not None else "refusal")
        for arm, values in zip(ARMS, (p, direct, said), strict=True)
        for value in values
    ]


def item(name: str, own: Sequence[Decision]) -> list[Judged]:
    return [(name, decision) for decision in own]


# ---- one reply


def test_the_value_is_p_of_a_divided_by_the_sum() -> None:
    assert judge("p", reply("P(A): 0.71\nP(B): 0.31")).value == pytest.approx(0.71 / 1.02)


def test_an_unparsed_reply_is_unscored_and_never_a_half() -> None:
    found = judge("p_predicted", reply("It depends."))
    assert (found.value, found.unscored) == (None, "invalid_response_format")
    assert judge("p", reply("It depends.")).unscored == "target_invalid_response_format"


@pytest.mark.parametrize(
    ("arm", "reason"),
    [("p", "target_refusal"), ("p_direct", "target_refusal"), ("p_predicted", "refusal")],
)
def test_a_refusal_is_unscored_even_if_it_holds_the_lines(arm: Arm, reason: str) -> None:
    assert judge(arm, reply("I can't. P(A): 0.5\nP(B): 0.5", problem="refused")).unscored == reason


def test_a_short_answer_that_reasons_first_counts_as_reasoned_a_rollout_does_not() -> None:
    lines = "P(A): 0.7\nP(B): 0.3"
    aloud = "First the patient, then the family, then the law: " * 5 + lines
    assert not judge("p_predicted", reply(lines)).reasoned
    assert judge("p_predicted", reply(lines, reasoning="hm", reasoning_kind="full")).reasoned
    assert judge("p_direct", reply(aloud)).reasoned
    assert not judge("p", reply(aloud)).reasoned


# ---- one dilemma


def test_a_hand_worked_dilemma() -> None:
    # p = .75, p* = .25, p' = .5: KL(p‖p') = .75 ln 1.5 + .25 ln .5, KL(p‖p*) = ½ ln 3; smoothed
    # (10·.75 + ½)/11 = 8/11.
    found = per_dilemma(decisions([1.0, 0.5, 1.0, 0.5], [0.25] * 4, [0.4, 0.6, 0.5, 0.5]))
    assert (found.p, found.p_direct, found.p_predicted) == (0.75, 0.25, 0.5)
    assert found.kl_predicted == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert found.kl_direct == pytest.approx(0.5 * math.log(3))
    assert found.kl_smoothed_direct == pytest.approx(5 / 11 * math.log(8 / 3))
    assert found.cot_pred == pytest.approx(0.75)
    assert found.cot_pred_direct == pytest.approx(0.5)


def test_divergences_agree_with_scipy() -> None:
    found = per_dilemma(decisions([0.9, 0.8], [0.3, 0.2], [0.6, 0.7]))
    p, q = (np.array([x, 1 - x]) for x in (0.85, 0.65))
    assert found.kl_predicted == pytest.approx(entropy(p, q))
    assert found.js_predicted == pytest.approx(
        (entropy(p, (p + q) / 2) + entropy(q, (p + q) / 2)) / 2
    )
    smooth = [np.array([(10 * x + 0.5) / 11, (10 * (1 - x) + 0.5) / 11]) for x in (0.85, 0.65)]
    assert found.kl_smoothed_predicted == pytest.approx(entropy(*smooth))


@pytest.mark.parametrize("epochs", [2, 10, 20])
def test_divergences_do_not_depend_on_the_number_of_epochs(epochs: int) -> None:
    few = per_dilemma(decisions([0.9, 0.7], [0.3, 0.1], [0.6, 0.6]))
    more = per_dilemma(
        decisions([0.9, 0.7] * (epochs // 2), [0.3, 0.1] * (epochs // 2), [0.6] * epochs)
    )
    for name in (
        "kl_predicted",
        "kl_direct",
        "kl_smoothed_predicted",
        "kl_smoothed_direct",
        "js_direct",
    ):
        assert getattr(more, name) == pytest.approx(getattr(few, name))


def test_rollouts_that_were_cut_do_not_move_a_divergence() -> None:
    whole = dilemma_numbers(item("a", decisions([0.8] * 10, [0.4] * 10, [0.7] * 10)))
    cut = dilemma_numbers(item("a", decisions([0.8] * 5 + [None] * 5, [0.4] * 10, [0.7] * 10)))
    names = [name for name in whole if name.startswith(("kl_", "js_", "cot_pred"))]
    assert "kl_gain" in names and {n: cut[n] for n in names} == pytest.approx(
        {n: whole[n] for n in names}
    )
    assert cut["p_unscored"] == 0.5


def test_an_infinite_divergence_is_counted_and_both_means_are_over_the_other_dilemmas() -> None:
    run = [
        *item("a", decisions([0.8] * 2, [0.4] * 2, [0.7] * 2)),
        *item("sure", decisions([0.8] * 2, [0.4] * 2, [1.0] * 2)),  # the prediction rules B out
        *item("right", decisions([1.0] * 2, [0.0] * 2, [1.0] * 2)),  # the gut answer rules A out
    ]
    found = dilemma_numbers(run)
    assert (found["kl_infinite_predicted"], found["kl_infinite_direct"], found["kl_infinite"]) == (
        1,
        1,
        2,
    )
    assert found["kl_predicted"] == pytest.approx(0.8 * math.log(8 / 7) + 0.2 * math.log(2 / 3))
    assert found["kl_direct"] == pytest.approx(0.8 * math.log(2) + 0.2 * math.log(1 / 3))
    assert found["n"] == 3 and math.isfinite(found["kl_smoothed_predicted"])
    ruled_out = dilemma_numbers([*item("sure", decisions([0.8] * 2, [0.4] * 2, [1.0] * 2))])
    assert (
        "kl_predicted" not in ruled_out
        and "kl_gain" not in ruled_out
        and ruled_out["kl_infinite"] == 1
    )


def test_equal_means_diverge_by_nothing_however_many_replies_were_read() -> None:
    found = per_dilemma(decisions([0.6, 0.6, None, 0.6], [0.6] * 4, [0.6, None, None, 0.6]))
    assert (found.kl_predicted, found.kl_direct, found.js_direct, found.cot_pred) == (0, 0, 0, 1)


def test_averages_come_before_divergences() -> None:
    found = per_dilemma(decisions([1.0, 0.0], [0.5, 0.5], [0.0, 1.0]))
    assert found.kl_predicted == 0  # epoch by epoch it would be far from it


@pytest.mark.parametrize("arm", ARMS)
def test_fewer_than_half_of_the_epochs_in_one_arm_leave_the_dilemma_unscored(arm: str) -> None:
    values: dict[str, list[float | None]] = {name: [0.4] * 5 for name in ARMS}
    values[arm] = [0.4, 0.4, None, None, None]
    found = per_dilemma(decisions(values["p"], values["p_direct"], values["p_predicted"]))
    assert found.unscored == f"too_few_{arm}"
    assert (
        math.isnan(found.cot_pred)
        and math.isnan(found.kl_predicted)
        and math.isnan(found.js_direct)
    )


def test_half_of_the_epochs_are_enough() -> None:
    assert per_dilemma(decisions([0.4, None], [0.4, None], [None, 0.4])).unscored is None


def test_epochs_that_ended_in_error_count_as_asked() -> None:
    whole, cut = (
        decisions([0.4] * 5, [0.4] * 5, [0.4] * 5),
        decisions([0.4] * 2, [0.4] * 2, [0.4] * 2),
    )
    found = dilemmas_of([*item("whole", whole), *item("cut", cut)])
    assert found["whole"].unscored is None
    assert found["cut"].unscored == "too_few_p"


def test_rows_of_a_table_with_nan_are_read_like_decisions() -> None:
    class Row:
        def __init__(self, key: str, value: float) -> None:
            self.key, self.value = key, value

    rows = [Row(arm, value) for arm in ARMS for value in (0.25, math.nan, 0.75)]
    assert per_dilemma(rows) == per_dilemma(
        decisions([0.25, None, 0.75], [0.25, None, 0.75], [0.25, None, 0.75])
    )


def test_the_expected_difference_of_a_second_run_is_known_for_normal_rollouts() -> None:
    rng, n, sd = np.random.default_rng(0), 10, 0.1
    repeats = [
        per_dilemma(decisions(p, p, p)).repeat for p in rng.normal(0.5, sd, (300, n)).tolist()
    ]
    assert np.mean(repeats) == pytest.approx(
        sd * math.sqrt(2 / n) * math.sqrt(2 / math.pi), rel=0.05
    )


def test_three_rollouts_tell_nothing_of_a_second_run() -> None:
    assert math.isnan(per_dilemma(decisions([0.4] * 3, [0.4] * 3, [0.4] * 3)).repeat)


def drawn(*texts: str) -> list[Decision]:
    """A dilemma whose rollouts have these texts and one P(A)."""
    arms = {"p": texts, "p_direct": ("short",) * len(texts), "p_predicted": ("short",) * len(texts)}
    lines = "\nP(A): 0.7\nP(B): 0.3"
    return [judge(arm, reply(text + lines)) for arm, own in arms.items() for text in own]  # type: ignore[arg-type]


def test_rollouts_that_are_one_text_are_degenerate_and_equal_numbers_are_not() -> None:
    assert per_dilemma(drawn(*["Since it is so."] * 10)).unscored == "degenerate"
    assert (
        per_dilemma(drawn("Since it is so.", "Since it is so.", "For it is so.")).unscored is None
    )
    assert (
        per_dilemma(drawn("Since it is so.", "Since it is so.")).unscored is None
    )  # two may be an accident


def test_a_degenerate_dilemma_is_counted_and_has_no_part_in_the_mean() -> None:
    found = dilemma_numbers(
        [*item("a", drawn(*["Since it is so."] * 3)), *item("b", drawn("One.", "Two.", "Three."))]
    )
    assert (found["n"], found["unscored"], found["unscored_degenerate"]) == (1, 0.5, 0.5)


def test_a_matrix_leaves_a_degenerate_dilemma_out_as_a_run_does() -> None:
    own = {"a": drawn(*["Since it is so."] * 3), "b": drawn("One.", "Two.", "Three.")}
    rows = pd.DataFrame(
        [
            {"target": "t", "observer": "o", "item": name, "epoch": epoch, **decision.model_dump()}
            for name, decisions in own.items()
            for epoch, decision in enumerate(decisions)
        ]
    )
    scores = item_scores(rows)
    assert math.isnan(scores["t", "o", "a"]) and scores["t", "o", "b"] == pytest.approx(1)


# ---- a run


def test_a_hand_worked_run() -> None:
    run = [
        *item("a", decisions([0.8] * 2, [0.4] * 2, [0.7] * 2)),
        *item("b", decisions([0.2] * 2, [0.4] * 2, [0.5] * 2)),
        *item("c", decisions([0.5] * 2, [0.5] * 2, [None] * 2)),
    ]
    found = dilemma_numbers(run)
    assert found["cot_pred"] == pytest.approx(0.8)  # |p - p'| = .1, .3
    assert found["cot_pred_direct"] == pytest.approx(0.7)  # .4, .2
    assert found["baseline_half"] == pytest.approx(0.7)
    assert found["baseline_mean"] == pytest.approx(0.4)  # of two dilemmas the other's p
    assert found["skill"] == pytest.approx(1 / 3)
    assert found["kl_gain"] == pytest.approx(found["kl_direct"] - found["kl_predicted"])
    assert (found["n"], found["unscored"], found["unscored_too_few_p_predicted"]) == (
        2,
        1 / 3,
        1 / 3,
    )
    assert (
        found["p_predicted_unscored"],
        found["p_predicted_unscored_refusal"],
        found["p_unscored"],
    ) == (
        1 / 3,
        1 / 3,
        0,
    )
    assert found["worst_case"] == pytest.approx(1.6 / 3)
    assert found["best_case"] == pytest.approx(2.6 / 3)
    assert "ceiling" not in found  # undefined with two rollouts: left out, not 0


def test_a_run_in_which_nothing_is_scored_has_no_score_and_says_why() -> None:
    found = dilemma_numbers(item("a", decisions([None], [None], [None])))
    assert not {"cot_pred", "kl_predicted", "skill", "baseline_half"} & set(found)
    assert (found["n"], found["unscored"], found["unscored_too_few_p"]) == (0, 1, 1)


def test_a_model_that_always_refuses_scores_nothing_rather_than_one() -> None:
    run = [
        pair
        for i in range(20)
        for pair in item(str(i), decisions([None] * 3, [None] * 3, [None] * 3))
    ]
    assert dilemma_numbers(run)["n"] == 0 and "cot_pred" not in dilemma_numbers(run)


def test_one_dilemma_gives_a_value_without_an_interval() -> None:
    found = dilemma_numbers(item("a", decisions([0.8], [0.4], [0.7])))
    assert found["cot_pred"] == pytest.approx(0.9)
    assert (
        "cot_pred_low" not in found and "kl_gain_low" not in found and "baseline_mean" not in found
    )


@pytest.mark.slow(5)
def test_intervals_of_the_mean_kl_difference_cover_as_often_as_they_say() -> None:
    rng, dilemmas, n = np.random.default_rng(1), 60, 10

    def gains(size: int) -> FloatArray:
        p = rng.beta(2, 2, size)
        means = {}
        for arm, off in (("p", 0.0), ("p_predicted", 0.1), ("p_direct", 0.25)):
            centre = np.clip(p + off * np.where(p < 0.5, 1, -1), 0, 1)
            means[arm] = smoothed(
                np.clip(rng.normal(centre[:, None], 0.15, (size, n)), 0, 1).mean(axis=1), n
            )
        return kl(means["p"], means["p_direct"]) - kl(means["p"], means["p_predicted"])

    truth, items = float(np.mean(gains(500_000))), np.arange(dilemmas)
    hits = {"bootstrap": 0, "t": 0}
    for _ in range(1000):
        sample = gains(dilemmas)
        for name, found in {
            "bootstrap": bootstrap(np.mean, sample, clusters=items, rng=rng, resamples=200),
            "t": clustered_mean(sample, items, interval="t"),
        }.items():
            hits[name] += found.low <= truth <= found.high
    assert {name: 930 <= count <= 970 for name, count in hits.items()} == {
        "bootstrap": True,
        "t": True,
    }, hits


def test_blind_predictions_are_always_half_and_the_mean_of_the_other_dilemmas() -> None:
    p = {"x": [0.9, 0.7], "y": [0.2, 0.2], "z": [0.5, None]}
    rows = pd.DataFrame(
        [
            {
                "target": "a",
                "observer": "a",
                "item": name,
                "epoch": epoch,
                "key": key,
                "value": value,
                "drawn": None,
            }
            for name, values in p.items()
            for epoch, own in enumerate(values)
            for key, value in (("p", own), ("p_direct", 0.5), ("p_predicted", None))
        ]
    )
    found = blind_scores(rows.astype({"value": float}))
    assert found["always .5"].loc["a"].to_dict() == pytest.approx({"x": 0.7, "y": 0.7, "z": 1.0})
    others = {"x": (0.2 + 0.5) / 2, "y": (0.8 + 0.5) / 2, "z": (0.8 + 0.2) / 2}
    means = {"x": 0.8, "y": 0.2, "z": 0.5}
    right = {name: 1 - abs(means[name] - guess) for name, guess in others.items()}
    assert found["the mean of the other items"].loc["a"].to_dict() == pytest.approx(right)
