"""From logs to tables: the last good log of a cell wins, and nothing is counted twice or as zero."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import fsspec
import numpy as np
import pandas as pd
import pytest
from inspect_ai import Task, score
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalError, read_eval_log, write_eval_log
from inspect_ai.model import ModelConfig
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState

from selfprobe.errors import InputError
from selfprobe.introspect_tasks.kth_word import kth_word
from selfprobe.logs import runs
from selfprobe.scorers.decision import Decision, last_decisions, score_of
from selfprobe.scorers.dilemma import ARMS, per_dilemma
from selfprobe.scorers.word_matches import kth_word_match
from selfprobe.studies.matrix import table as results_module
from selfprobe.studies.matrix.page import matrix_page
from selfprobe.studies.matrix.table import Results, matrices_of, matrix_of, scores_by_item
from tests.matrix.read_logs import read_matrices

MODEL = "planted/a?access=.5&malformed=.2"


@pytest.fixture(scope="module")
def folder(run_task: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One finished run of five questions."""
    path = tmp_path_factory.mktemp("logs")
    run_task(kth_word(), MODEL, path, limit=5)
    return path


def copied(folder: Path, to: Path, **changes: Any) -> Any:
    """The run as another log, its header changed."""
    log = read_eval_log(str(next(folder.glob("*.eval"))))
    for name, value in changes.items():
        setattr(log.eval if hasattr(log.eval, name) else log, name, value)
    to.parent.mkdir(exist_ok=True)
    write_eval_log(log, str(to))
    return log


def test_a_run_becomes_one_row_a_decision_with_what_could_not_be_read(folder: Path) -> None:
    results = read_matrices([str(folder)])
    (cell,) = results.cells.to_dict("records")
    assert (cell["task"], cell["target"], cell["observer"], cell["status"]) == (
        "kth_word",
        MODEL,
        MODEL,
        "complete",
    )
    assert (cell["samples"], cell["errors"], cell["epochs"], cell["dataset"]) == (
        5,
        0,
        1,
        "open_questions",
    )
    assert len(results.decisions) == 15 and set(results.decisions.key) == {"k1", "k2", "k3"}
    unscored = results.decisions[results.decisions.value.isna()]
    assert len(unscored) and set(unscored.unscored) == {"invalid_response_format"}
    assert len(results.items) == 5 and results.items.input.str.len().min() > 5
    assert results.ignored == {}


def test_the_last_finished_log_wins_and_the_others_are_named(folder: Path, tmp_path: Path) -> None:
    copied(folder, tmp_path / "1_old.eval", created="2020-01-01T00:00:00+00:00")
    copied(folder, tmp_path / "2_good.eval", created="2021-01-01T00:00:00+00:00")
    copied(
        folder, tmp_path / "3_killed.eval", created="2022-01-01T00:00:00+00:00", status="started"
    )
    results = read_matrices([str(tmp_path)])
    assert len(results.cells) == 1 and len(results.decisions) == 15
    assert results.cells.log[0].endswith("2_good.eval") and results.cells.status[0] == "complete"
    assert sorted(Path(log).name for log in results.ignored) == ["1_old.eval", "3_killed.eval"]
    assert all(why.endswith("2_good.eval") for why in results.ignored.values())


def test_several_processes_read_what_one_reads(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for k in range(3):
        copied(folder, tmp_path / f"{k}.eval", model=f"planted/m{k}")
    alone = read_matrices([str(tmp_path)])
    monkeypatch.setattr(results_module, "SAMPLES_A_PROCESS", 1)
    several = read_matrices([str(tmp_path)])
    for name in ("cells", "decisions", "items"):
        pd.testing.assert_frame_equal(getattr(alone, name), getattr(several, name))


def test_a_killed_log_alone_is_a_hole_with_a_reason(folder: Path, tmp_path: Path) -> None:
    copied(folder, tmp_path / "killed.eval", status="started")
    results = read_matrices([str(tmp_path)])
    assert (
        results.cells.status[0] == "failed" and "the run was cut off; " in results.cells.reason[0]
    )
    matrix = matrix_of(results, "kth_word")
    assert np.isnan(matrix.scores).all() and matrix.holes.keys() == {(MODEL, MODEL)}


def test_two_killed_runs_are_two_holes_and_not_also_those_of_the_cells_joined_from_them(
    folder: Path, tmp_path: Path
) -> None:
    for model in ("planted/a", "planted/b"):
        copied(folder, tmp_path / f"{model[-1]}.eval", status="started", model=model)
    lines = matrix_page([str(tmp_path)]).holes
    assert lines == [
        f"kth_word, {model} on {model}: the run was cut off; 5 of 5 samples are in its log"
        for model in ("planted/a", "planted/b")
    ]


@pytest.mark.parametrize(("epochs", "planned"), [(1, 5), (3, 15)])
def test_samples_in_error_are_counted_of_all_that_were_planned(
    folder: Path, tmp_path: Path, epochs: int, planned: int
) -> None:
    log = copied(folder, tmp_path / "failed.eval", status="error")
    log.eval.config.epochs, log.samples = epochs, log.samples[:2]  # the other samples never ran
    log.samples[0].error = EvalError(message="overloaded", traceback="", traceback_ansi="")
    write_eval_log(log, str(tmp_path / "failed.eval"))
    (cell,) = read_matrices([str(tmp_path)]).cells.to_dict("records")
    assert (cell["samples"], cell["errors"], cell["status"]) == (2, 1, "failed")
    assert cell["reason"] == f"run ended as error; 1 of {planned} samples in error: overloaded"


def test_foreign_logs_are_named_and_left_out(folder: Path, run_task: Any, tmp_path: Path) -> None:
    run_task(Task(dataset=[Sample(input="Hello")], name="foreign"), "planted/a", tmp_path)
    with pytest.raises(ValueError, match="no selfprobe log in .*; found 1 other log"):
        read_matrices([str(tmp_path)])
    results = read_matrices([str(tmp_path), str(folder)])
    assert len(results.cells) == 1
    assert list(results.ignored.values()) == ["not a selfprobe log (task foreign)"]


@scorer(metrics=[mean()])
def foreign_score() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=1)

    return score


def rescored(folder: Path, to: Path, by: Scorer, action: Literal["append", "overwrite"]) -> None:
    (log,) = folder.glob("*.eval")
    write_eval_log(score(read_eval_log(str(log)), by, action=action, display="none"), str(to))


@pytest.mark.parametrize("by", [kth_word_match(), foreign_score()])
def test_of_several_scores_the_last_with_decisions_counts(
    folder: Path, tmp_path: Path, by: Scorer
) -> None:
    rescored(folder, tmp_path / "again.eval", by, "append")
    pd.testing.assert_frame_equal(
        read_matrices([str(tmp_path)]).decisions, read_matrices([str(folder)]).decisions
    )


def test_a_new_verdict_replaces_the_old_one_and_no_foreign_score_does() -> None:
    old, new = (
        score_of([Decision(key="k1", value=v)], answer=None, explanation="") for v in (0.0, 1.0)
    )
    scores = {"match": old, "match-1": new, "foreign": Score(value=0, metadata={"keys": ["k1"]})}
    assert [d.value for d in last_decisions(scores)] == [1.0]


def test_a_log_that_only_a_foreign_scorer_scored_gives_way_and_is_named(
    folder: Path, tmp_path: Path
) -> None:
    rescored(folder, tmp_path / "foreign.eval", foreign_score(), "overwrite")
    with pytest.raises(ValueError, match=r"foreign\.eval: no score in it carries decisions"):
        read_matrices([str(tmp_path)])
    copied(folder, tmp_path / "old.eval", created="2020-01-01T00:00:00+00:00")
    results = read_matrices([str(tmp_path)])
    assert results.cells.log[0].endswith("old.eval") and len(results.decisions) == 15
    ((log, why),) = results.ignored.items()
    assert log.endswith("foreign.eval") and "not made by a selfprobe scorer" in why


@pytest.mark.parametrize("kept", [0, 1000])
def test_a_truncated_log_is_named_and_the_others_are_read(
    folder: Path, tmp_path: Path, kept: int
) -> None:
    (log,) = folder.glob("*.eval")
    (tmp_path / "broken.eval").write_bytes(log.read_bytes()[:kept])
    results = read_matrices([str(tmp_path / "broken.eval"), str(folder)])
    assert len(results.cells) == 1
    ((name, why),) = results.ignored.items()
    assert name.endswith("broken.eval") and why.startswith("cannot be read: ")


def test_logs_of_tasks_that_no_matrix_has_are_named_and_left_out(
    folder: Path, tmp_path: Path
) -> None:
    copied(folder, tmp_path / "awareness.eval", task="selfprobe/binary")
    results = read_matrices([str(tmp_path), str(folder)])
    assert set(results.cells.task) == {"kth_word"}
    told = "not a matrix task (binary); see `selfprobe awareness` or examples/dilemmas.py"
    assert list(results.ignored.values()) == [told]


def test_a_missing_or_empty_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        read_matrices([str(tmp_path / "nowhere")])
    with pytest.raises(ValueError, match="no selfprobe log in"):
        read_matrices([str(tmp_path)])
    (tmp_path / "index.html").write_text("a page")
    with pytest.raises(InputError, match="holds a page: give the folder of its logs"):
        read_matrices([str(tmp_path)])


def test_logs_are_read_from_any_file_system(folder: Path) -> None:
    (log,) = folder.glob("*.eval")
    with fsspec.open("memory://matrix/x.eval", "wb") as there:
        there.write(log.read_bytes())
    for place in ("memory://matrix", "memory://matrix/x.eval", folder.as_uri(), str(log)):
        results = read_matrices([place])
        assert len(results.decisions) == 15, place


def test_an_item_is_the_mean_of_its_scored_keys_and_epochs() -> None:
    rows = pd.DataFrame(
        [("kth_word", "t", "o", "a", v) for v in (1.0, 0.0, math.nan)]
        + [("kth_word", "t", "o", "b", math.nan)],
        columns=["task", "target", "observer", "item", "value"],
    )
    scores = scores_by_item(rows)
    assert scores["t", "o", "a"] == 0.5 and math.isnan(scores["t", "o", "b"])


def test_dilemmas_score_as_their_own_metric_does() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        [
            (
                "ethical_dilemma",
                "t",
                observer,
                f"d{item}",
                epoch,
                arm,
                rng.random() if rng.random() < 0.5 else math.nan,
            )
            for observer in ("t", "o")
            for item in range(40)
            for epoch in range(4)
            for arm in ARMS
        ],
        columns=["task", "target", "observer", "item", "epoch", "key", "value"],
    )
    scores = scores_by_item(rows)
    assert 10 < scores.isna().sum() < 70
    for cell, group in rows.groupby(["target", "observer", "item"]):
        expected = per_dilemma(group.itertuples(), epochs=4).cot_pred
        assert scores[cell] == pytest.approx(expected, nan_ok=True), cell


def test_scores_land_at_their_target_observer_and_item(
    matrix_results: Callable[..., Results],
) -> None:
    results = matrix_results({"m/b": 1.0, "m/a": 1.0}, general=0.0, items=10)
    matrix = matrix_of(results, "kth_word")
    assert (
        matrix.models == ["m/a", "m/b"] and matrix.scores.shape == (2, 2, 10) and matrix.holes == {}
    )
    assert (matrix.scores.mean(axis=2) == np.eye(2)).all()


def test_a_cell_without_a_log_is_a_hole(matrix_results: Callable[..., Results]) -> None:
    results = matrix_results({"m/a": 1.0, "m/b": 1.0}, items=10)
    results = replace(
        results, cells=results.cells.query("not (target == 'm/a' and observer == 'm/b')")
    )
    assert matrix_of(results, "kth_word").holes == {("m/a", "m/b"): "there is no log of this cell"}
    damaged = replace(
        results,
        ignored={"x.eval": "cannot be read: it is truncated", "y.eval": "another run counts"},
    )
    told = "there is no log of this cell (1 log cannot be read)"
    assert matrix_of(damaged, "kth_word").holes == {("m/a", "m/b"): told}


def test_a_cell_of_another_data_set_than_its_models_runs_on_themselves_is_a_hole(
    folder: Path, tmp_path: Path
) -> None:
    """The data changed between the two waves, of a task whose cells are runs."""
    own, cell = {"dataset_sha256": "aa"}, {"dataset_sha256": "bb"}
    for k, (observer, target, metadata) in enumerate(
        (("a", "a", own), ("b", "b", own), ("b", "a", cell))
    ):
        roles = {"target": ModelConfig(model=f"planted/{target}")} if target != observer else None
        named = {"task": "selfprobe/heads_up", "model": f"planted/{observer}", "model_roles": roles}
        copied(folder, tmp_path / f"{k}.eval", metadata=metadata, **named)
    results = read_matrices([str(tmp_path)])
    told = "another run: data set is bb, there aa"
    assert list(results.ignored.values()) == [told] and len(results.cells) == 2
    holes = matrix_of(results, "heads_up").holes
    assert holes == {
        ("planted/a", "planted/b"): told,
        ("planted/b", "planted/a"): "there is no log of this cell",
    }


def changed(results: Results, **of_cells: dict[tuple[str, str], Any]) -> dict[tuple[str, str], str]:
    """The holes when these columns have other values in these cells."""
    pairs = list(zip(results.cells.target, results.cells.observer, strict=True))
    for column, values in of_cells.items():
        held = results.cells[column]
        results.cells[column] = [
            values.get(pair, old) for pair, old in zip(pairs, held, strict=True)
        ]
    return matrix_of(results, "kth_word").holes


def test_cells_that_measured_something_else_are_holes_that_say_what(
    matrix_results: Callable[..., Results],
) -> None:
    three = {"m/a": 1.0, "m/b": 1.0, "m/c": 1.0}
    odd, most = ("m/b", "m/b"), "in most runs of models on themselves"
    holes = changed(matrix_results(three, items=10), version={odd: "2+bb"}, epochs={odd: 2})
    assert holes == {
        odd: f"cannot be compared: number of epochs is 2, {most} 1; task version is 2, {most} 1"
    }


def test_arguments_that_replays_rightly_have_otherwise_leave_them_in_their_setting(
    folder: Path, tmp_path: Path
) -> None:
    own = {"k": [1, 2], "act_tokens": 50, "resamples": 1, "dataset": "a.jsonl", "target_log": None}
    replay = {
        "k": "1,2",
        "act_tokens": None,
        "resamples": 0,
        "dataset": "/here/a.jsonl",
        "target_log": "logs",
    }
    for k, (observer, target) in enumerate(product("ab", "ab")):
        roles = {"target": ModelConfig(model=f"planted/{target}")} if target != observer else None
        given = {
            "task_args": replay if roles else own,
            "model": f"planted/{observer}",
            "model_roles": roles,
        }
        copied(folder, tmp_path / f"{k}.eval", **given)
    results = read_matrices([str(tmp_path)])
    assert not results.cells.joined.any() and len(results.cells) == 4
    assert (
        results.ignored == {}
        and results.settings == {}
        and matrix_of(results, "kth_word").holes == {}
    )


def test_other_items_in_one_cell_are_unscored_in_the_rest(
    matrix_results: Callable[..., Results],
) -> None:
    results = matrix_results({"m/a": 1.0, "m/b": 1.0}, items=10)
    rows = results.decisions
    dropped = (rows.target == "m/a") & (rows.observer == "m/b") & (rows.item > "q4")
    scores = matrix_of(replace(results, decisions=rows[~dropped]), "kth_word").scores
    assert np.isnan(scores[0, 1]).sum() == 5 and not np.isnan(scores[1]).any()


def test_the_kind_of_an_item_comes_from_its_data_set(run_task: Any, tmp_path: Path) -> None:
    rows = [
        {"id": f"q{i}", "question": f"What of {i}?", "kind": "odd" if i % 2 else "even"}
        for i in range(3)
    ]
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows) + '{"id": "z", "question": "?"}'
    )
    run_task(
        "selfprobe/kth_word",
        "planted/a",
        tmp_path / "logs",
        task_args={"dataset": str(tmp_path / "rows.jsonl")},
    )
    items = read_matrices([str(tmp_path / "logs")]).items.set_index("item").kind
    assert items.to_dict() == {"q0": "even", "q1": "odd", "q2": "even", "z": ""}


def test_tokens_are_those_of_all_starts_of_a_run_for_the_items_that_count(
    folder: Path, tmp_path: Path
) -> None:
    """The statistics of a run that was started again have the tokens of its last start."""
    tokens = read_matrices([str(folder)]).cells.tokens[0]
    log = copied(folder, tmp_path / "again.eval")
    assert tokens == sum(usage.total_tokens for usage in log.stats.model_usage.values()) > 0
    log.stats.model_usage = {}
    write_eval_log(log, str(tmp_path / "again.eval"))
    assert read_matrices([str(tmp_path)]).cells.tokens[0] == tokens
    there = runs([str(tmp_path)])
    limited = there.limited({run.identity: 2 for run in there.counted})
    assert 0 < matrices_of(limited).cells.tokens[0] < tokens, (
        "those of items beyond a limit are not on its page"
    )
