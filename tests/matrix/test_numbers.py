"""From a matrix's tables to its numbers: planted truths come out, holes stay holes."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from selfprobe.matrix.numbers import analyse
from selfprobe.matrix.table import Results

Make = Callable[..., Results]
FIVE = {"m/a": 0.9, "m/b": 0.4, "m/c": 0.9, "m/d": 0.4, "m/e": 0.4}


def analysed(results: Results) -> Any:
    return analyse(results, rng=np.random.default_rng(0))


def without(results: Results, target: str, observer: str, reason: str) -> Results:
    """The same with one cell failed; its scores stay in the table, as those of a half-finished run do."""
    cells = results.cells.copy()
    at = (cells.target == target) & (cells.observer == observer)
    cells.loc[at, ["status", "reason"]] = ["failed", reason]
    return replace(results, cells=cells)


def test_the_planted_advantage_and_exactly_the_two_models_that_have_it_come_out(matrix_results: Make) -> None:
    (task,) = analysed(matrix_results(FIVE, items=200)).tasks
    assert task.verdict.kind == "supported", task.verdict.sentence
    assert task.verdict.models == ("m/a", "m/c")
    planted = np.full((5, 5), 0.4) + np.diag([0.5, 0, 0.5, 0, 0])
    expected = (np.trace(planted) - planted.sum() / 5) / 4
    assert task.advantage.total.low < expected < task.advantage.total.high
    assert task.p < 0.001 and task.p_holm == task.p
    assert task.baselines.keys() == {"mode", "text only"}


def test_without_self_access_nothing_is_supported(matrix_results: Make) -> None:
    (task,) = analysed(matrix_results(dict.fromkeys(FIVE, 0.4), items=200)).tasks
    assert task.verdict.kind != "supported" and task.verdict.models == ()


def test_a_failed_cell_is_a_hole_with_its_reason_and_its_model_is_left_out(matrix_results: Make) -> None:
    results = without(matrix_results(FIVE), "m/b", "m/e", "the key ran out")
    results = without(results, "m/c", "m/e", "the key ran out")
    (task,) = analysed(results).tasks
    assert task.left_out == ("m/e",) and task.models == ("m/a", "m/b", "m/c", "m/d")
    cell = task.cells.set_index(["target", "observer"]).loc[("m/b", "m/e")]
    assert cell.hole == "the key ran out" and cell.n == 0 and math.isnan(cell.value)
    assert task.verdict.models == ("m/a", "m/c")


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
    assert task.verdict.kind == "underpowered" and "two" in task.verdict.sentence


def test_a_matrix_with_one_complete_model_is_underpowered_and_names_the_hole(matrix_results: Make) -> None:
    results = without(matrix_results({"m/a": 0.9, "m/b": 0.9}), "m/b", "m/b", "429 for ever")
    (task,) = analysed(results).tasks
    assert task.advantage is None and task.verdict.kind == "underpowered"
    assert "m/b seen by m/b: 429 for ever" in task.verdict.sentence


def test_a_single_model_is_no_matrix(matrix_results: Make) -> None:
    assert analysed(matrix_results({"m/a": 0.9})).tasks == ()


def test_perfect_access_keeps_its_p_through_holm(matrix_results: Make) -> None:
    (task,) = analysed(matrix_results(dict.fromkeys(FIVE, 1.0), general=0.0)).tasks
    assert task.p == task.p_holm < 1e-6


def test_runs_of_other_task_arguments_than_the_diagonal_support_nothing(matrix_results: Make) -> None:
    results = matrix_results(FIVE)
    own = results.cells.target == results.cells.observer
    results.cells["args"] = [{"k": "1"} if one else {"k": "2,3"} for one in own]
    (task,) = analysed(results).tasks
    assert task.advantage is None and "argument k is 2,3" in task.verdict.sentence


def test_each_baseline_that_is_not_applied_is_named_with_its_reason(matrix_results: Make) -> None:
    (full,) = analysed(matrix_results(FIVE)).tasks
    (clues,) = analysed(matrix_results(FIVE, task="heads_up")).tasks
    (prompts,) = analysed(truthless(matrix_results(FIVE, task="prompt_reconstruction"))).tasks
    assert full.without == {} and full.baselines.keys() == {"mode", "text only"}
    assert clues.without == {"text only": "the item's text is the truth or tells nothing of it"}
    assert prompts.without.keys() == {"mode", "text only"} and prompts.baselines == {}


def truthless(results: Results) -> Results:
    return replace(results, decisions=results.decisions.assign(truth=None))


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_equal_scores_everywhere_support_nothing_and_have_no_min_max(matrix_results: Make, score: float) -> None:
    analysis = analysed(matrix_results(dict.fromkeys(FIVE, score), general=score))
    (task,) = analysis.tasks
    assert task.verdict.kind == "underpowered", task.verdict.sentence
    assert task.advantage.total.value == 0
    assert analysis.paper is not None
    assert analysis.paper.reasons == {"kth_word": "all scores are equal: min-max is undefined"}
