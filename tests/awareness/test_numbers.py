"""The numbers of each method on tables with a known truth, and the text-only baselines."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from selfprobe.studies.awareness.numbers import arm_numbers, comparison_of
from selfprobe.studies.awareness.page import sets_of
from selfprobe.studies.awareness.runs import AwarenessTables
from selfprobe.study.awareness_arms import PLAIN
from selfprobe.study.text_baselines import text_baselines

ROWS = 80


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def conversations(n: int = ROWS) -> list[dict[str, Any]]:
    """Eight sources; label, source and polarity crossed."""
    return [
        {
            "data": "d",
            "item": f"i{i}",
            "epoch": 1,
            "source": f"s{i // 4 % 8}",
            "truth": "evaluation" if i % 2 else "deployment",
            "flip": i % 4 > 1,
            "turns": 1 + i % 5,
        }
        for i in range(n)
    ]


def arm(
    said: list[str | None],
    *,
    method: str = "binary",
    score: list[float | None] | None = None,
    probability: list[float | None] | None = None,
    perspective: str = "first",
    labels: bool = True,
    reason: str = "tie",
) -> pd.DataFrame:
    """Verdict rows of one arm."""
    named = {"method": method, "model": "m", **PLAIN, "perspective": perspective}
    rows = []
    for i, (about, verdict) in enumerate(zip(conversations(len(said)), said, strict=True)):
        value = {"evaluation": 1.0, "deployment": 0.0, None: None}[verdict]
        rows.append(
            named
            | about
            | {"truth": about["truth"] if labels else None, "said": verdict}
            | {"unscored": reason if verdict is None else None}
            | {
                "score": score[i] if score else value,
                "probability": probability[i] if probability else None,
            }
        )
    return pd.DataFrame(rows)


def logged(
    *arms: pd.DataFrame, votes: list[dict[str, Any]] | None = None, labels: bool = True
) -> AwarenessTables:
    texts = [
        {"data": "d", "item": c["item"], "text": f"word{i}", "source": c["source"], "pair": None}
        | {"label": c["truth"] if labels else None}
        for i, c in enumerate(conversations())
    ]
    return AwarenessTables(
        pd.concat(arms, ignore_index=True),
        pd.DataFrame(votes or []),
        pd.DataFrame(texts),
        pd.DataFrame(),
    )


def truths() -> list[str]:
    return [c["truth"] for c in conversations()]


def test_a_subject_that_is_always_right() -> None:
    p: list[float | None] = [0.9 if t == "evaluation" else 0.1 for t in truths()]
    m = arm_numbers(arm([*truths()], score=p, probability=p))
    assert (m.n, m.labelled, m.tpr.value, m.tnr.value, m.balanced_accuracy.value) == (
        80,
        80,
        1,
        1,
        1,
    )
    assert m.auroc.value == 1 and m.called.value == 0.5 and m.unscored == {}
    assert (m.brier.value, m.mae.value) == pytest.approx((0.01, 0.1))
    assert {at: e.value for at, e in m.precision.items()} == {
        0.01: 1,
        0.05: 1,
        0.1: 1,
    } and m.precision[0.1].low < 1


def test_rates_auroc_and_errors_of_a_noisy_subject_are_those_of_scikit_learn(
    rng: np.random.Generator,
) -> None:
    positive = np.array([t == "evaluation" for t in truths()])
    p = 1 / (1 + np.exp(-(rng.normal(0, 1.5, ROWS) + positive - 0.5)))
    said: list[str | None] = ["evaluation" if x >= 0.5 else "deployment" for x in p]
    m = arm_numbers(arm(said, score=list(p), probability=list(p)))
    assert m.auroc.value == pytest.approx(roc_auc_score(positive, p))
    assert m.auroc.low < m.auroc.value < m.auroc.high
    assert m.tpr.value == pytest.approx((p[positive] >= 0.5).mean())
    assert m.tnr.value == pytest.approx((p[~positive] < 0.5).mean())
    assert m.balanced_accuracy.value == pytest.approx((m.tpr.value + m.tnr.value) / 2)
    assert m.brier.value == pytest.approx(np.mean((p - positive) ** 2))
    assert m.mae.value == pytest.approx(np.abs(p - positive).mean())
    for e in (m.brier, m.mae, m.ece, *m.precision.values()):
        assert e.low <= e.value < e.high and (e.n, e.unit) == (8, "source")
    assert m.auroc.n == 8 and m.auroc.unit == "source"


def test_a_subject_that_says_yes_to_everything_gets_half_and_no_auroc() -> None:
    """v1 and v3 say evaluation, v2 and v4 deployment, so v5 decides: by its polarity, which is
    ours.
    """
    flips = [c["flip"] for c in conversations()]
    said: list[str | None] = ["deployment" if flip else "evaluation" for flip in flips]
    m = arm_numbers(arm(said, score=[0.4 if flip else 0.6 for flip in flips]))
    assert m.balanced_accuracy.value == 0.5 and m.tpr.value == m.tnr.value == m.called.value == 0.5
    assert math.isnan(m.auroc.value) and m.auroc.reason == "the same answer to every conversation"


def test_a_subject_that_always_says_evaluation_has_no_auroc_either() -> None:
    m = arm_numbers(arm(["evaluation"] * ROWS, method="first_token"))
    assert (m.tpr.value, m.tnr.value, m.called.value) == (1, 0, 1) and math.isnan(m.auroc.value)
    assert m.precision[0.01].value == pytest.approx(0.01)


def test_polarity_that_happens_to_tell_scores_apart_does_not_take_the_auroc_of_other_methods() -> (
    None
):
    flips = [c["flip"] for c in conversations()]
    said: list[str | None] = ["deployment" if flip else "evaluation" for flip in flips]
    assert arm_numbers(arm(said, method="reasoning_trace")).auroc.value == 0.5


def test_one_class_gives_its_rate_and_nothing_that_needs_two() -> None:
    said: list[str | None] = ["evaluation" if i % 4 else "deployment" for i in range(ROWS)]
    m = arm_numbers(arm(said).assign(truth="evaluation"))
    assert m.tpr.value == m.called.value == 0.75 and m.labelled == ROWS
    assert all(
        math.isnan(x)
        for x in (m.tnr.value, m.balanced_accuracy.value, m.auroc.value, m.precision[0.1].value)
    )
    assert m.tnr.reason == "nothing was scored"


def test_without_labels_only_shares_are_reported() -> None:
    said: list[str | None] = ["evaluation" if i % 4 else "deployment" for i in range(ROWS)]
    p: list[float | None] = [0.6] * ROWS
    found = comparison_of(logged(arm(said, probability=p, labels=False), labels=False))
    (m,) = found.methods
    assert m.called.value == 0.75 and m.n == ROWS and m.labelled == 0
    numbers = (
        m.tpr.value,
        m.tnr.value,
        m.balanced_accuracy.value,
        m.auroc.value,
        m.brier.value,
        m.mae.value,
    )
    numbers += (m.ece.value, m.trend.r)
    assert all(math.isnan(x) for x in numbers)
    assert all(math.isnan(e.value) for e in (found.baselines.length, found.baselines.words))


def test_unscored_is_a_share_with_reasons_and_never_counts_as_not_aware() -> None:
    said: list[str | None] = [None if i < 20 else "evaluation" for i in range(ROWS)]
    rows = arm(said, method="reasoning_trace", reason="no_reasoning")
    rows.loc[0, "unscored"] = "grader_failed"
    m = arm_numbers(rows)
    assert m.n == 60 and m.called.value == m.tpr.value == 1
    assert m.unscored == {"grader_failed": 1 / 80, "no_reasoning": 19 / 80}


def test_a_method_without_a_single_verdict_has_only_reasons() -> None:
    rows = arm([None] * ROWS, method="first_token", reason="no_logprobs")
    m = arm_numbers(rows)
    assert (
        m.n == 0
        and m.unscored == {"no_logprobs": 1}
        and math.isnan(m.called.value)
        and math.isnan(m.auroc.value)
    )


def test_error_that_grows_with_the_turns_is_found() -> None:
    turns = [c["turns"] for c in conversations()]
    p: list[float | None] = [
        1 - 0.1 * n if t == "evaluation" else 0.1 * n for n, t in zip(turns, truths(), strict=True)
    ]
    m = arm_numbers(arm([*truths()], probability=p).assign(context="full"))
    assert (
        m.trend.r == pytest.approx(1) and m.trend.slope == pytest.approx(0.1) and m.trend.n == ROWS
    )


def test_there_is_no_trend_where_the_subject_saw_the_first_prompt_alone() -> None:
    p: list[float | None] = [0.9 - 0.1 * c["turns"] for c in conversations()]
    assert math.isnan(arm_numbers(arm([*truths()], probability=p)).trend.r)


def test_no_number_of_a_method_moves_with_what_lies_beside_it() -> None:
    random = np.random.default_rng(1)
    scores = [
        list(random.random(ROWS) + 0.3 * np.array([t == "evaluation" for t in truths()]))
        for _ in range(3)
    ]
    names = ("binary", "probability", "first_token")
    arms = [
        arm(
            ["evaluation" if x > 0.6 else "deployment" for x in row], method=method, score=list(row)
        )
        for row, method in zip(scores, names, strict=True)
    ]
    every, two, one = (comparison_of(logged(*some)) for some in (arms, arms[1:], arms[2:]))
    assert str(every.methods[1:]) == str(two.methods) and str(two.methods[1:]) == str(
        one.methods
    )  # NaN is not NaN
    assert (
        math.isfinite(one.methods[0].auroc.low) and one.methods[0].auroc != every.methods[0].auroc
    )
    assert str(every.pairs[-1]) == str(two.pairs[0]) and math.isfinite(
        two.pairs[0].agreement.kappa.low
    )
    assert (
        every.baselines.length == one.baselines.length
        and every.baselines.words == one.baselines.words
    )


def test_transcripts_beside_first_prompts_move_no_number_of_the_words_and_are_rated_among_themselves() -> (
    None
):
    """The transcripts' words tell the label; those of the first prompts do not."""
    first = arm([*truths()], score=[float(t == "evaluation") for t in truths()])
    whole = first.assign(data="whole", context="full")
    alone, both = logged(first), logged(first, whole)
    longer = alone.texts.assign(data="whole", text=alone.texts.label + " " + alone.texts.text)
    both = replace(both, texts=pd.concat([alone.texts, longer], ignore_index=True))

    one, two = comparison_of(alone), comparison_of(both)

    assert (
        two.baselines.words == one.baselines.words and two.baselines.length == one.baselines.length
    )
    assert str(two.methods[0]) == str(one.methods[0])
    words = [
        next(rival for rival in arm.beyond.rivals if rival.name == "words") for arm in two.methods
    ]
    assert words[0].auroc.value < 0.6 < 0.9 < words[1].auroc.value
    assert len(two.baselines.shown) == ROWS
    assert "different sets" not in sets_of(
        replace(both, runs=pd.DataFrame({"dataset": ["x", "x"]}))
    )


def test_pairs_are_of_one_model_on_conversations_that_both_methods_judged() -> None:
    verdicts: list[str | None] = [*truths()]
    half: list[str | None] = [None if i < 40 else t for i, t in enumerate(truths())]
    other = arm(verdicts).assign(model="other")
    found = comparison_of(logged(arm(verdicts), arm(half, method="probability"), other))
    (pair,) = found.pairs
    assert (pair.model, pair.first, pair.second) == ("m", "binary", "probability")
    assert (
        pair.agreement.n == 40
        and pair.agreement.kappa.value == 1
        and pair.pearson == pytest.approx(1)
    )
    assert pair.curve is None


def test_two_methods_are_compared_over_all_models_by_what_they_call_an_evaluation_and_get_right() -> (
    None
):
    """Probability calls ten more conversations an evaluation, five of them rightly, in each of two
    models.
    """
    fewer = ["evaluation" if i >= 50 else "deployment" for i in range(ROWS)]
    more = ["evaluation" if i >= 40 else "deployment" for i in range(ROWS)]
    arms = [
        arm([*said], method=method).assign(model=model, source=[f"s{i}" for i in range(ROWS)])
        for model in ("m", "o")
        for method, said in (("binary", fewer), ("probability", more))
    ]
    found = comparison_of(logged(*arms))
    [average] = found.averages
    assert (average.first, average.second, average.models, average.n) == (
        "binary",
        "probability",
        2,
        2 * ROWS,
    )
    assert average.called.value == pytest.approx(-10 / ROWS) and average.called.high < 0
    assert average.right.value == pytest.approx(0) and average.right.low < 0 < average.right.high
    assert [pair.called.value for pair in found.pairs] == pytest.approx([-10 / ROWS] * 2)
    assert comparison_of(logged(*arms[:2])).averages == (), "one model is no average"


def test_methods_that_are_right_alike_throughout_are_comparable_and_opposite_ones_are_not() -> None:
    wrong = ["deployment" if t == "evaluation" else "evaluation" for t in truths()]

    def averaged(second: list[str]) -> bool:
        arms = [
            arm([*said], method=method).assign(model=model)
            for model in ("m", "o")
            for method, said in (("binary", truths()), ("user_motivation", second))
        ]
        [average] = comparison_of(
            logged(*(one.assign(source=one["item"]) for one in arms))
        ).averages
        return average.comparable

    assert averaged(truths()) and not averaged(wrong)


def test_equal_ids_of_two_data_sets_are_two_conversations() -> None:
    both = [
        pd.concat([one, one.assign(data="e")])
        for one in (arm([*truths()]), arm([*truths()], method="probability"))
    ]
    assert comparison_of(logged(*both)).pairs[0].agreement.n == 2 * ROWS


def asked(keys: list[str], *, data: str = "d") -> list[dict[str, Any]]:
    """Votes of binary and of probability under these keys, which always agree."""
    return [
        {
            **row,
            "data": data,
            "key": key,
            "probability": 0.8 if row["said"] == "evaluation" else 0.2,
        }
        for method in ("binary", "probability")
        for row in arm([*truths()], method=method).to_dict("records")
        for key in keys
    ]


def test_the_kappa_curve_leaves_out_data_sets_that_were_asked_fewer_decisions() -> None:
    both = [
        pd.concat([one, one.assign(data="e")])
        for one in (arm([*truths()]), arm([*truths()], method="probability"))
    ]
    fives = asked([f"v{n}" for n in range(1, 6)], data="e")
    for vote in fives:  # they disagree
        vote["probability"] = 1 - vote["probability"]
    repeated = asked([f"v{n}r{m}" for n in range(1, 6) for m in range(1, 6)])
    (pair,) = comparison_of(logged(*both, votes=repeated + fives)).pairs
    assert (
        pair.curve is not None
        and pair.curve.decisions == tuple(range(5, 26, 2))
        and set(pair.curve.mean) == {1.0}
    )
    (pair,) = comparison_of(logged(*both, votes=fives)).pairs
    assert pair.curve is None


@pytest.mark.slow(5)
def test_the_kappa_curve_needs_twenty_five_decisions_of_both() -> None:
    votes = asked([f"v{n}" for n in range(25)])
    table = logged(arm([*truths()]), arm([*truths()], method="probability"), votes=votes)
    (pair,) = comparison_of(table).pairs
    assert (
        pair.curve is not None
        and pair.curve.decisions == tuple(range(5, 26, 2))
        and set(pair.curve.mean) == {1.0}
    )
    fewer = replace(table, votes=table.votes[table.votes.key != "v24"])
    assert comparison_of(fewer).pairs[0].curve is None


def _texts(rng: np.random.Generator, *, leak: float, n: int = 160) -> pd.DataFrame:
    """Random words; with chance `leak` a word that gives the label away. Every source has both
    labels.
    """
    words = [f"w{k}" for k in range(60)]
    rows = []
    for i in range(n):
        label = "evaluation" if i % 2 else "deployment"
        said = [*rng.choice(words, 20), label[:4] + "ish" if rng.random() < leak else "plainly"]
        rows.append(
            {
                "item": f"i{i}",
                "text": " ".join(said),
                "source": f"s{i // 2 % 8}",
                "label": label,
                "pair": None,
            }
        )
    return pd.DataFrame(rows)


def test_words_that_give_the_label_away_are_found_also_in_another_source(
    rng: np.random.Generator,
) -> None:
    found = text_baselines(_texts(rng, leak=1))
    assert found.words.value > 0.95 and found.words_other_source.value > 0.95
    assert found.length.value >= 0.5


def test_clean_texts_give_nothing_away(rng: np.random.Generator) -> None:
    found = text_baselines(_texts(rng, leak=0, n=240))
    assert found.words.value < 0.65 and found.words_other_source.value < 0.65


def test_words_of_the_source_do_not_count_when_the_source_is_left_out(
    rng: np.random.Generator,
) -> None:
    table = _texts(rng, leak=0)
    table["label"] = np.where(table.source.str[1:].astype(int) < 4, "evaluation", "deployment")
    table["text"] = table.text + " " + table.source
    found = text_baselines(table)
    assert found.words.value > 0.9 > 0.8 > found.words_other_source.value


def test_length_alone_is_rated_in_its_better_direction(rng: np.random.Generator) -> None:
    table = _texts(rng, leak=0).assign(
        text=lambda t: np.where(t.label == "evaluation", "short", "rather a long one")
    )
    assert text_baselines(table).length.value == 1


def test_a_classifier_never_sees_the_other_half_of_a_pair(rng: np.random.Generator) -> None:
    """Every pair has its own word and one label: only somebody who saw the pair can know it."""
    table = _texts(rng, leak=0)
    table["pair"] = [f"p{i // 2}" for i in range(len(table))]
    table["label"] = np.repeat(
        np.where(rng.random(len(table) // 2) < 0.5, "evaluation", "deployment"), 2
    )
    table["text"] = "unique" + table.pair
    assert text_baselines(table).words.value < 0.65
    leaking = table.assign(pair=None)
    assert text_baselines(leaking).words.value > 0.8
