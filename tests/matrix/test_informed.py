"""What a stranger learns from a few examples is no privileged access; what it cannot learn stays."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from selfprobe.errors import NoLogs
from selfprobe.page.claims import claim_sentence
from selfprobe.papers.effort_curve import effort_points
from selfprobe.stats.claim import Verdict
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.matrix.numbers import Analysis, TaskAnalysis, analyse
from selfprobe.studies.matrix.page import results_page
from selfprobe.studies.matrix.rows import INFORMED, InformedObserver, closest_informed
from selfprobe.studies.matrix.study import CELLS_FOLDER, DIAGONAL_FOLDER, Matrix
from selfprobe.studies.matrix.table import Results, matrix_of
from selfprobe.studies.matrix.verdict import MATRIX_WORDS
from selfprobe.study.waves import RunSettings
from tests.matrix.read_logs import named_models, read_matrices

ADA, BO, FAY, KIT, HAL = (
    f"planted/{name}?access=0&echo=.9" for name in ("ada", "bo", "fay", "kit", "hal")
)
"""They know nothing of themselves but a rule that their answers show, each its own."""
CY = "planted/cy?access=.9"
"""It knows itself."""

MODELS = (ADA, BO, CY, FAY)
SIX = (*MODELS, KIT, HAL)
QUIET = RunSettings(display="none")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("matrix")
    asked = Matrix(
        models=SIX,
        tasks=["kth_word"],
        limit=25,
        args={"k": 1, "resamples": 0},
        observers=["self", "shown:5"],
        log_dir=str(path),
        settings=QUIET,
    )
    assert asked.ask()
    return path


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return read_matrices([str(folder)])


def analysed(results: Results) -> TaskAnalysis:
    (task,) = analyse(results, rng=np.random.default_rng(0)).tasks
    return task


def uninformed(results: Results) -> Results:
    return replace(results, informed=results.informed.iloc[:0])


# ---- the plan


def planned(tasks: list[str], *observers: str, **args: Any) -> tuple[int, int]:
    """Calls of all models, and tokens that one sends."""
    costs = (
        Matrix(models=MODELS, tasks=tasks, limit=10, args=args, observers=observers).plan().costs
    )
    return sum(cost.calls for cost in costs), costs[0].tokens_in


def test_further_cells_are_planned_for_every_two_models_and_an_example_costs_tokens() -> None:
    plain, _ = planned(["kth_word", "heads_up"], k="1,2")
    told, _ = planned(["kth_word", "heads_up"], "named", "shown:5", k="1,2")
    assert told - plain == 4 * 3 * 10 * 2 * 2, (
        "M(M - 1) cells of n items, K calls each, for each arm"
    )
    asked, shown = (
        planned(["kth_word"], "named", k="1,2"),
        planned(["kth_word"], "shown:5", "self", k="1,2"),
    )
    assert asked[0] == shown[0] and asked[1] < shown[1]


@pytest.mark.slow(3)
def test_another_assistant_costs_a_call_an_answer_and_only_in_the_runs_of_models_on_themselves() -> (
    None
):
    def calls(about: str, *observers: str) -> int:
        args = {"k": "1,2", "resamples": 0, "epochs": 4, "about": about}
        return planned(["kth_word", "ethical_dilemma"], *observers, **args)[0]

    assert calls("self") == 4 * 10 * (3 + 12) and calls("self,other") == 4 * 10 * (5 + 16)
    more = calls("self,other", "named") - calls("self,other")
    assert more == calls("self", "named") - calls("self") == 12 * 10 * (2 + 4)


@pytest.mark.parametrize(
    ("tasks", "args", "observers", "said"),
    [
        (
            ["kth_word"],
            {},
            ["show:5"],
            r"about must be self, other, self,other, named, or shown:N with N from 1 to 999, got 'show:5'",
        ),
        (
            ["heads_up"],
            {},
            ["named"],
            "no task here has observers that can be told of their target; ethical_dilemma, kth",
        ),
        (
            ["kth_word"],
            {},
            ["shown:10"],
            "shown:10 shows 10 other items, kth_word has 10 items here; ask for at most shown:9",
        ),
        (
            ["kth_word"],
            {},
            ["other"],
            "--observers takes named and shown:N, got other; say -T about=self,other",
        ),
        (["kth_word"], {"about": "shown:3"}, [], "beside the others: say --observers shown:3"),
        (
            ["kth_word"],
            {"about": "other"},
            [],
            "with about=other no model is asked about itself; say about=self,other",
        ),
        (["heads_up"], {"frame": "both"}, [], "no task here has an argument frame; there are"),
    ],
)
def test_arms_that_cannot_be_are_refused_before_anything_runs(
    tasks: list[str], args: dict[str, Any], observers: list[str], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Matrix(models=MODELS, tasks=tasks, limit=10, args=args, observers=observers).plan()


# ---- the closest of several


def told(observer: str, over: float, hole: str = "") -> InformedObserver:
    return InformedObserver(
        target=ADA,
        observer=observer,
        arm="asked",
        scores=np.zeros(2),
        score=Estimate(0.5, 0.4, 0.6, 2, "item"),
        target_above=Estimate(over, over - 0.1, over + 0.1, 2, "item"),
        unscored=0.0,
        hole=hole,
    )


def test_the_closest_observer_is_the_one_above_whom_least_is_left_and_holes_are_none() -> None:
    observers = [
        told("far", 0.4),
        told("near", 0.1),
        told("lost", -0.2, "no log"),
        told("between", 0.2),
    ]
    found = closest_informed(observers, ADA)
    assert found is not None and found.observer == "near"
    assert closest_informed(observers, BO) is None


# ---- what comes out


@pytest.mark.slow(31)
def test_a_habit_that_examples_show_is_no_access_and_a_true_knower_survives(
    results: Results,
) -> None:
    before, after = analysed(uninformed(results)), analysed(results)
    # Of its 25 replies too few are its own alone to tell cy from the strongest of six.
    assert set(named_models(before.claims)) == set(SIX) - {CY}
    assert INFORMED in before.reason_by_missing_baseline
    assert named_models(after.claims) == (CY,) and INFORMED not in after.reason_by_missing_baseline
    for row in after.rows:
        assert (row.over_p[INFORMED] < 0.05) == (row.model == CY), row.model
    compared = [
        check.compared_with
        for claim in after.claims
        for check in claim.checks
        if claim.subject == CY
    ]
    assert f"the closest {INFORMED}: 0 %" in compared


@pytest.mark.slow(31)
def test_where_all_that_is_known_is_learnt_from_examples_the_verdict_is_not_supported(
    results: Results,
) -> None:
    rules = (ADA, BO, FAY, KIT, HAL)

    def among(table: pd.DataFrame) -> pd.DataFrame:
        return table[table.target.isin(rules) & table.observer.isin(rules)]

    five = replace(results, cells=among(results.cells), decisions=among(results.decisions))
    five = replace(
        five, informed=among(results.informed), informed_decisions=among(results.informed_decisions)
    )
    assert len(named_models(analysed(uninformed(five)).claims)) >= 4
    claims = analysed(five).claims
    assert {claim.verdict for claim in claims} == {Verdict.NO}
    (ada,) = [claim for claim in claims if claim.subject == ADA]
    assert (
        f"scores 92 % on itself, less than 0.10 above the closest {INFORMED}: 9"
        in claim_sentence(ada, MATRIX_WORDS)
    )


@pytest.mark.slow(31)
def test_each_model_is_held_against_the_observer_that_comes_closest_on_the_items_that_both_score(
    results: Results,
) -> None:
    task = analysed(results)
    place = matrix_of(results, "kth_word").models.index(ADA)
    best = closest_informed(task.informed, ADA)
    assert (
        best is not None
        and best.arm == "shown:5"
        and best.observer != ADA
        and best.target_above.n == 25
    )
    gains = task.matrix.scores[place, place] - best.scores
    assert best.target_above.value == pytest.approx(gains.mean())
    assert best.target_above.value == min(
        one.target_above.value for one in task.informed if one.target == ADA
    )
    assert len(task.informed) == 30 and not any(one.hole for one in task.informed)
    worse = [replace(one, hole="failed") if one is best else one for one in task.informed]
    assert closest_informed(worse, ADA) is not best and closest_informed([], ADA) is None


@pytest.mark.slow(31)
def test_logs_of_different_arms_are_never_one_cell(
    results: Results, folder: Path, tmp_path: Path
) -> None:
    assert (
        len(results.cells) == 36
        and results.cells.joined.sum() == 30
        and len(results.informed) == 30
    )
    assert set(results.informed.arm) == {"shown:5"} and "arm" not in results.cells
    shutil.copytree(folder / DIAGONAL_FOLDER, tmp_path / DIAGONAL_FOLDER)
    plain = read_matrices([str(tmp_path)])
    assert plain.informed.empty and plain.decisions.equals(results.decisions)
    with pytest.raises(
        NoLogs, match="its observer was told of the target, and no model's run on itself is here"
    ):
        read_matrices([str(folder / CELLS_FOLDER)])


@pytest.mark.slow(31)
def test_a_cell_that_measured_something_else_is_a_hole_and_no_control(results: Results) -> None:
    moved = results.informed.copy()
    moved["version"] = moved.version.where(moved.target != ADA, "1+aa")
    task = analysed(replace(results, informed=moved))
    assert (
        closest_informed(task.informed, ADA) is None
        and closest_informed(task.informed, BO) is not None
    )
    assert all(
        "cannot be compared: task version is 1" in one.hole
        for one in task.informed
        if one.target == ADA
    )
    assert ADA in named_models(task.claims) and BO not in named_models(task.claims)


@pytest.mark.slow(31)
def test_the_page_shows_the_closest_informed_observer_and_all_of_them(results: Results) -> None:
    page = results_page(results, Analysis((analysed(results),)))
    text = page.html() if hasattr(page, "html") else str(page.sections)
    assert len(page.frames["informed"]) == 30
    assert {"target_over", "arm", "hole"} <= set(page.frames["informed"])
    assert (
        "closest informed observer" in text and "Observers that were told of their target" in text
    )


@pytest.mark.slow(31)
def test_a_single_target_and_its_informed_observers_need_no_matrix(results: Results) -> None:
    cells = results.cells[(results.cells.target == ADA) & (results.cells.observer == ADA)]
    decisions = results.decisions[
        (results.decisions.target == ADA) & (results.decisions.observer == ADA)
    ]
    alone = replace(
        results,
        cells=cells,
        decisions=decisions,
        informed=results.informed[results.informed.target == ADA],
    )
    page = results_page(alone, Analysis(()))
    assert len(page.frames["informed"]) == 5 and len(page.notes) == 5
    assert page.notes[1].startswith("kth_word, planted/bo (shown:5) on planted/ada: 0.")
    assert "planted/ada on itself minus this" in page.notes[1] and page.holes == []


def test_the_effort_curve_leaves_observers_out_that_were_told_of_their_target(
    run_task: Any, tmp_path: Path
) -> None:
    args = {"epochs": 2}
    run_task(
        "selfprobe/ethical_dilemma", CY, tmp_path, task_args=args | {"about": "self,other"}, limit=4
    )
    told = args | {"about": "shown:3", "target_log": str(tmp_path)}
    run_task(
        "selfprobe/ethical_dilemma",
        BO,
        tmp_path,
        task_args=told,
        model_roles={"target": CY},
        limit=4,
    )
    points, _ = effort_points(read_matrices([str(tmp_path)]).runs)
    assert [(point.target, point.observer) for point in points] == [(CY, CY)]
