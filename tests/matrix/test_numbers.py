"""From a matrix's tables to its numbers: planted truths come out, holes stay holes."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from selfprobe.page.claims import claim_sentence
from selfprobe.stats.claim import Verdict
from selfprobe.studies.matrix.numbers import analyse
from selfprobe.studies.matrix.rows import INFORMED, NOT_RUN
from selfprobe.studies.matrix.sections import own_scores
from selfprobe.studies.matrix.table import Results
from selfprobe.studies.matrix.verdict import MATRIX_WORDS
from tests.matrix.read_logs import named_models

Make = Callable[..., Results]
FIVE = {"m/a": 0.9, "m/b": 0.4, "m/c": 0.9, "m/d": 0.4, "m/e": 0.4}


def analysed(results: Results) -> Any:
    return analyse(results, rng=np.random.default_rng(0))


def named(task: Any) -> tuple[str, ...]:
    return named_models(task.claims)


def verdicts(task: Any) -> set[Verdict]:
    return {claim.verdict for claim in task.claims}


def sentence_of(task: Any, model: str) -> str:
    (claim,) = [claim for claim in task.claims if claim.subject == model]
    return claim_sentence(claim, MATRIX_WORDS)


def hole_of(task: Any, model: str) -> str:
    (claim,) = [claim for claim in task.claims if claim.subject == model]
    check = claim.first_unmet_check
    assert claim.verdict is Verdict.CANNOT_TELL and check.name == "complete"
    return str(check.difference.reason)


def without(results: Results, target: str, observer: str, reason: str) -> Results:
    """The same with one cell failed; its scores stay in the table, as those of a half-finished run
    do.
    """
    cells = results.cells.copy()
    at = (cells.target == target) & (cells.observer == observer)
    cells.loc[at, ["status", "reason"]] = ["failed", reason]
    return replace(results, cells=cells)


def test_the_planted_advantage_and_exactly_the_two_models_that_have_it_come_out(
    matrix_results: Make,
) -> None:
    (task,) = analysed(matrix_results(FIVE, items=200)).tasks
    assert named(task) == ("m/a", "m/c")
    planted = np.full((5, 5), 0.4) + np.diag([0.5, 0, 0.5, 0, 0])
    expected = (np.trace(planted) - planted.sum() / 5) / 4
    assert task.advantage.total.low < expected < task.advantage.total.high
    assert task.p < 0.001 and task.p_holm == task.p
    for row in task.rows:
        assert row.above_baselines.keys() >= {"mode", "text only"}
        assert all(
            name.startswith("mode by ")
            for name in row.above_baselines.keys() - {"mode", "text only"}
        )


def test_without_self_access_nothing_is_supported(matrix_results: Make) -> None:
    (task,) = analysed(matrix_results(dict.fromkeys(FIVE, 0.4), items=200)).tasks
    assert named(task) == ()


def test_a_failed_cell_is_a_hole_with_its_reason_and_its_model_is_left_out(
    matrix_results: Make,
) -> None:
    results = without(matrix_results(FIVE, items=300), "m/b", "m/e", "the key ran out")
    results = without(results, "m/c", "m/e", "the key ran out")
    (task,) = analysed(results).tasks
    assert task.left_out == ("m/e",) and task.models == ("m/a", "m/b", "m/c", "m/d")
    cell = task.cells.set_index(["target", "observer"]).loc[("m/b", "m/e")]
    assert cell.hole == "the key ran out" and cell.n == 0 and math.isnan(cell.value)
    assert named(task) == ("m/a", "m/c")
    assert hole_of(task, "m/e") == "m/b seen by m/e: the key ran out"


def test_a_cell_in_which_nothing_could_be_read_is_a_hole_too(matrix_results: Make) -> None:
    results = matrix_results(FIVE)
    rows = results.decisions
    rows.loc[(rows.target == "m/a") & (rows.observer == "m/b"), "value"] = math.nan
    (task,) = analysed(results).tasks
    assert len(task.left_out) == 1
    cell = task.cells.set_index(["target", "observer"]).loc[("m/a", "m/b")]
    assert cell.hole == "nothing was scored" and cell.unscored == 1


def test_two_models_are_underpowered_and_it_says_why(matrix_results: Make) -> None:
    (task,) = analysed(matrix_results({"m/a": 0.9, "m/b": 0.9})).tasks
    assert (
        sentence_of(task, "m/a")
        == "Cannot tell: m/a has too few models beside it; add 2 models or more."
    )


def test_a_matrix_with_one_complete_model_is_underpowered_and_names_the_hole(
    matrix_results: Make,
) -> None:
    results = without(matrix_results({"m/a": 0.9, "m/b": 0.9}), "m/b", "m/b", "429 for ever")
    (task,) = analysed(results).tasks
    assert task.advantage is None and verdicts(task) == {Verdict.CANNOT_TELL}
    assert hole_of(task, "m/b") == "m/b seen by m/b: 429 for ever"


def test_a_single_model_is_no_matrix(matrix_results: Make) -> None:
    assert analysed(matrix_results({"m/a": 0.9})).tasks == ()


def test_perfect_access_keeps_its_p_through_holm(matrix_results: Make) -> None:
    (task,) = analysed(matrix_results(dict.fromkeys(FIVE, 1.0), general=0.0)).tasks
    assert task.p == task.p_holm < 1e-6


def test_runs_of_another_task_version_than_the_diagonal_support_nothing(
    matrix_results: Make,
) -> None:
    """Other arguments do not come so far: `matrix.table.choose_setting` sets them aside when logs are
    read.
    """
    results = matrix_results(FIVE)
    own = results.cells.target == results.cells.observer
    results.cells["version"] = ["2" if one else "3" for one in own]
    (task,) = analysed(results).tasks
    assert task.advantage is None and "task version is 3" in hole_of(task, task.left_out[0])


def test_each_baseline_that_is_not_applied_is_named_with_its_reason(matrix_results: Make) -> None:
    (full,) = analysed(matrix_results(FIVE)).tasks
    (clues,) = analysed(matrix_results(FIVE, task="heads_up")).tasks
    (prompts,) = analysed(truthless(matrix_results(FIVE, task="prompt_reconstruction"))).tasks
    assert full.reason_by_missing_baseline == {INFORMED: NOT_RUN}
    assert clues.reason_by_missing_baseline == {
        "text only": "the item's text is the truth or tells nothing of it"
    }
    assert prompts.reason_by_missing_baseline.keys() == {"mode", "text only"} and not any(
        row.above_baselines for row in prompts.rows
    )


def truthless(results: Results) -> Results:
    return replace(results, decisions=results.decisions.assign(truth=None))


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_equal_scores_everywhere_support_nothing(matrix_results: Make, score: float) -> None:
    results = matrix_results(dict.fromkeys(FIVE, score), general=score)
    (task,) = analysed(results).tasks
    assert verdicts(task) == {Verdict.CANNOT_TELL} and "cannot show an advantage" in sentence_of(
        task, "m/a"
    )
    assert task.advantage.total.value == 0


# ---- cases that earlier verdicts got wrong


def answered(
    results: Results, said: dict[str, str | None], *, usual: dict[str, float] | None = None
) -> Results:
    """The same with answers that are words: each model's own word ("the") always, or None: what it
    really does.

    `usual`: the share of items at which a target does say its own word; else a word that nobody
    says twice.
    """
    rows, draw = results.decisions.copy(), np.random.default_rng(1)
    items = sorted(set(rows.item))
    truth = {}
    for target, word in said.items():
        often = draw.random(len(items)) < (usual or {}).get(target, 0.4)
        own = word or f"w{target}"
        truth |= {
            (target, i): own if yes else f"{target}{i}" for i, yes in zip(items, often, strict=True)
        }
    rows["truth"] = [truth[key] for key in zip(rows.target, rows.item, strict=True)]
    predicted = {(m, i): said[m] or truth[m, i] for m in said for i in items}
    rows["said"] = [predicted[key] for key in zip(rows.observer, rows.item, strict=True)]
    rows["value"] = (rows.said == rows.truth).astype(float)
    return replace(results, decisions=rows)


def test_one_knower_among_four_constants_is_the_only_one_named(matrix_results: Make) -> None:
    said = {"m/a": None, "m/b": "the", "m/c": "a", "m/d": "it", "m/e": "we"}
    (task,) = analysed(answered(matrix_results(FIVE), said)).tasks
    assert named(task) == ("m/a",)
    assert sentence_of(task, "m/a").startswith("Yes: m/a scores 100 % on itself")


def test_models_that_always_say_their_own_commonest_word_are_not_supported(
    matrix_results: Make,
) -> None:
    said = dict(zip(FIVE, ["the", "a", "it", "we", "so"], strict=True))
    (task,) = analysed(answered(matrix_results(FIVE), said)).tasks
    assert task.advantage.total.low > 0.2, "T of the raw scores would claim self-knowledge"
    assert verdicts(task) == {Verdict.NO}
    assert task.rows[0].habit == pytest.approx(task.rows[0].score.value, abs=0.01)


def hanging(matrix_results: Make, shows: Any) -> Results:
    """Models that know their own words, which hang on what `shows` finds in the question and on
    nothing else.
    """
    made = matrix_results(FIVE)
    texts = {
        f"q{i}": f"What of {i}{'?' if i % 3 else '.'}" + " please tell" * (i % 2)
        for i in range(100)
    }
    rows = made.decisions.copy()
    words = {m: {True: f"yes{m}", False: f"no{m}"} for m in FIVE}
    rows["truth"] = [words[t][shows(texts[i])] for t, i in zip(rows.target, rows.item, strict=True)]
    rows["said"] = [
        words[o][shows(texts[i])] for o, i in zip(rows.observer, rows.item, strict=True)
    ]
    rows["value"] = (rows.said == rows.truth).astype(float)
    return replace(
        made, decisions=rows, items=made.items.assign(input=made.items["item"].map(texts))
    )


@pytest.mark.parametrize(
    "shows",
    [lambda text: "?" in text, lambda text: "please" in text],
    ids=["question mark", "length"],
)
def test_words_that_hang_on_what_the_text_shows_are_no_knowledge_of_the_item(
    matrix_results: Make, shows: Any
) -> None:
    (task,) = analysed(hanging(matrix_results, shows)).tasks
    assert task.advantage.total.low > 0.9, "T of the raw scores would claim self-knowledge"
    assert verdicts(task) == {Verdict.NO}
    assert all(
        row.specific.value == pytest.approx(0, abs=1e-9) and row.habit == 1 for row in task.rows
    )
    assert (
        max(
            row.score.value - over.value
            for row in task.rows
            for over in row.above_baselines.values()
        )
        == 1
    )


def test_an_observer_without_a_model_that_reaches_the_model_explains_it(
    matrix_results: Make,
) -> None:
    results = matrix_results(dict.fromkeys(FIVE, 0.9), general=0.2, task="paraphrase_recognition")
    rows = truthless(results).decisions
    own, beside = rows.target == rows.observer, [{"TF-IDF": value} for value in rows.value]
    alike = replace(
        results,
        decisions=rows.assign(plain=[p if o else None for p, o in zip(beside, own, strict=True)]),
    )
    (task,) = analysed(alike).tasks
    assert verdicts(task) == {Verdict.NO}
    assert "less than 0.10 above guessing without a model (TF-IDF): " in sentence_of(task, "m/a")
    (bare,) = analysed(truthless(results)).tasks
    assert len(named(bare)) == 5


def test_items_of_one_template_are_one_unit_of_the_matrix(matrix_results: Make) -> None:
    results = matrix_results(FIVE)
    apart, halves = analysed(results).tasks[0], ["t"] * 50 + ["u"] * 50
    told = replace(results, items=results.items.assign(cluster=halves))
    (task,) = analysed(told).tasks
    assert apart.total_advantage.n == 100 and task.total_advantage.n == 2
    assert task.advantage.means == pytest.approx(apart.advantage.means) and named(task) == ()


def test_templates_of_unequal_size_are_units_and_who_knows_itself_is_named_still(
    matrix_results: Make,
) -> None:
    results = matrix_results(dict.fromkeys(FIVE, 0.4) | {"m/a": 0.98})
    labels = [f"c{int(6 * i**0.5)}" for i in range(100)]
    (task,) = analysed(replace(results, items=results.items.assign(cluster=labels))).tasks
    assert task.total_advantage.n == len(set(labels)) < 60 and named(task) == ("m/a",)


def test_epochs_of_an_item_are_one_item_of_the_verdict(matrix_results: Make) -> None:
    once = matrix_results(dict.fromkeys(FIVE, 0.4) | {"m/a": 0.98}, items=300)
    again = pd.concat([once.decisions, once.decisions.assign(epoch=2)], ignore_index=True)
    twice = replace(once, cells=once.cells.assign(epochs=2, samples=600), decisions=again)
    (one,), (two,) = analysed(once).tasks, analysed(twice).tasks
    assert two.total_advantage.n == 300 and two.claims == one.claims and named(one) == ("m/a",)


def test_one_cluster_is_called_a_cluster_and_no_item(matrix_results: Make) -> None:
    results = matrix_results(FIVE)
    (task,) = analysed(replace(results, items=results.items.assign(cluster="all"))).tasks
    assert task.total_advantage.reason == "no interval from one item or cluster" and verdicts(
        task
    ) == {Verdict.CANNOT_TELL}
    (row, *_) = own_scores(replace(results, items=results.items.assign(cluster="all")), {})
    assert row.reason == "no interval from one cluster"


def dilemmas(matrix_results: Make, sees: dict[str, float]) -> Results:
    """Models whose P(A) lies around means of their own, .2 to .6; one with `sees` predicts it so
    far beyond its mean.
    """
    made, draw = (
        matrix_results(dict.fromkeys(sees, 0.5), items=100, task="ethical_dilemma"),
        np.random.default_rng(2),
    )
    items = sorted(set(made.decisions.item))
    means = dict(zip(sees, np.linspace(0.2, 0.6, len(sees)), strict=True))
    p = {m: np.clip(means[m] + draw.normal(0, 0.15, len(items)), 0, 1) for m in sees}
    predicted = {m: means[m] + sees[m] * (p[m] - means[m]) for m in sees}
    rows = [
        {
            "task": "ethical_dilemma",
            "target": t,
            "observer": o,
            "item": item,
            "epoch": 1,
            "key": key,
            "value": value,
        }
        | {
            "unscored": None,
            "truth": None,
            "said": None,
            "floor": math.nan,
            "reasoned": False,
            "plain": None,
        }
        for t in sees
        for o in sees
        for i, item in enumerate(items)
        for key, value in (("p", p[t][i]), ("p_direct", p[t][i]), ("p_predicted", predicted[o][i]))
    ]
    return replace(made, decisions=pd.DataFrame(rows))


def test_a_model_that_answers_one_probability_to_every_dilemma_is_not_supported(
    matrix_results: Make,
) -> None:
    (task,) = analysed(dilemmas(matrix_results, dict.fromkeys(FIVE, 0.0))).tasks
    assert task.advantage.total.low > 0.05
    assert verdicts(task) == {Verdict.NO}
    assert all(abs(row.specific.value) < 1e-2 for row in task.rows)


def test_a_model_that_sees_how_each_dilemma_will_end_is_supported(matrix_results: Make) -> None:
    (task,) = analysed(dilemmas(matrix_results, dict.fromkeys(FIVE, 0.0) | {"m/c": 1.0})).tasks
    assert named(task) == ("m/c",)


def test_names_are_corrected_over_all_models_of_all_tasks(matrix_results: Make) -> None:
    one, two = matrix_results(FIVE), matrix_results(FIVE, task="heads_up")
    both = Results(
        pd.concat([one.cells, two.cells], ignore_index=True),
        pd.concat([one.decisions, two.decisions], ignore_index=True),
        pd.concat([one.items, two.items], ignore_index=True),
        {},
        [],
    )
    (alone,) = analysed(one).tasks
    together = next(task for task in analysed(both).tasks if task.task == "kth_word")
    assert together.rows_p_holm[0] == pytest.approx(2 * alone.rows_p_holm[0], rel=0.3)


# ---- stand-ins


def test_another_models_own_words_stand_for_a_prediction_without_a_call(
    matrix_results: Make,
) -> None:
    results = matrix_results(FIVE, items=60)
    rows = results.decisions
    own = (
        rows[(rows.target == "m/b") & (rows.observer == "m/b")]
        .set_index(["item", "epoch", "key"])
        .truth
    )
    places = pd.MultiIndex.from_frame(rows[["item", "epoch", "key"]])
    alike = (rows.target == "m/a") & (rows.item.map(lambda item: int(item[1:]) % 2 == 0))
    words = pd.Series(own.reindex(places).to_numpy(), rows.index)
    results = replace(results, decisions=rows.assign(truth=rows.truth.where(~alike, words)))
    (task,) = analysed(results).tasks
    row = next(row for row in task.rows if row.model == "m/a")
    assert row.stand_in == ("m/b", pytest.approx(0.62, abs=0.1))
    assert set(row.stand_ins) == {"m/b", "m/c", "m/d", "m/e"}


def test_where_the_truth_is_the_items_own_text_there_is_no_stand_in(matrix_results: Make) -> None:
    (task,) = analysed(matrix_results(FIVE, task="heads_up")).tasks
    assert not any(row.stand_ins for row in task.rows)


def test_the_replies_of_a_model_that_predicted_nothing_stand_in(matrix_results: Make) -> None:
    results = matrix_results(FIVE | {"m/f": 0.4}, items=60)
    rows = results.decisions
    rows.loc[rows.observer == "m/f", "value"] = math.nan
    (task,) = analysed(results).tasks
    assert task.left_out == ("m/f",)
    assert all("m/f" in row.stand_ins for row in task.rows)
    few = rows.assign(truth=rows.truth.where((rows.target != "m/f") | (rows.item < "q2")))
    assert few[few.target == "m/f"].truth.notna().any()
    (task,) = analysed(replace(results, decisions=few)).tasks
    assert not any("m/f" in row.stand_ins for row in task.rows)
