"""From logs to tables: the last good log of a cell wins, and nothing is counted twice or as zero."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pytest
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log

from selfprobe import results as results_module
from selfprobe.errors import InputError
from selfprobe.introspect_tasks.kth_word import kth_word
from selfprobe.results import Results, item_scores, load, matrix_of
from selfprobe.scorers.dilemma_prediction import ARMS, per_dilemma

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
    results = load([str(folder)])
    (cell,) = results.cells.to_dict("records")
    assert (cell["task"], cell["target"], cell["observer"], cell["status"]) == ("kth_word", MODEL, MODEL, "complete")
    assert (cell["samples"], cell["errors"], cell["epochs"], cell["dataset"]) == (5, 0, 1, "open_questions")
    assert len(results.decisions) == 15 and set(results.decisions.key) == {"k1", "k2", "k3"}
    unscored = results.decisions[results.decisions.value.isna()]
    assert len(unscored) and set(unscored.unscored) == {"invalid_response_format"}
    assert len(results.items) == 5 and results.items.input.str.len().min() > 5
    assert results.ignored == {}


def test_the_last_finished_log_wins_and_the_others_are_named(folder: Path, tmp_path: Path) -> None:
    copied(folder, tmp_path / "1_old.eval", created="2020-01-01T00:00:00+00:00")
    copied(folder, tmp_path / "2_good.eval", created="2021-01-01T00:00:00+00:00")
    copied(folder, tmp_path / "3_killed.eval", created="2022-01-01T00:00:00+00:00", status="started")
    results = load([str(tmp_path)])
    assert len(results.cells) == 1 and len(results.decisions) == 15
    assert results.cells.log[0].endswith("2_good.eval") and results.cells.status[0] == "complete"
    assert sorted(Path(log).name for log in results.ignored) == ["1_old.eval", "3_killed.eval"]
    assert all(why.endswith("2_good.eval") for why in results.ignored.values())


def test_several_processes_read_what_one_reads(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for k in range(3):
        copied(folder, tmp_path / f"{k}.eval", model=f"planted/m{k}")
    alone = load([str(tmp_path)])
    monkeypatch.setattr(results_module, "LOGS_A_PROCESS", 1)
    several = load([str(tmp_path)])
    for name in ("cells", "decisions", "items"):
        pd.testing.assert_frame_equal(getattr(alone, name), getattr(several, name))


def test_a_killed_log_alone_is_a_hole_with_a_reason(folder: Path, tmp_path: Path) -> None:
    copied(folder, tmp_path / "killed.eval", status="started")
    results = load([str(tmp_path)])
    assert results.cells.status[0] == "failed" and "run ended as started" in results.cells.reason[0]
    matrix = matrix_of(results, "kth_word")
    assert np.isnan(matrix.scores).all() and matrix.holes.keys() == {(MODEL, MODEL)}


def test_foreign_logs_are_named_and_left_out(folder: Path, run_task: Any, tmp_path: Path) -> None:
    run_task(Task(dataset=[Sample(input="Hello")], name="foreign"), "planted/a", tmp_path)
    with pytest.raises(ValueError, match="no selfprobe log in .*; found 1 other logs"):
        load([str(tmp_path)])
    results = load([str(tmp_path), str(folder)])
    assert len(results.cells) == 1
    assert list(results.ignored.values()) == ["not a selfprobe log (task foreign)"]


def test_a_missing_or_empty_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        load([str(tmp_path / "nowhere")])
    with pytest.raises(ValueError, match="no selfprobe log in"):
        load([str(tmp_path)])


def test_logs_are_read_from_any_file_system(folder: Path) -> None:
    (log,) = folder.glob("*.eval")
    with fsspec.open("memory://matrix/x.eval", "wb") as there:
        there.write(log.read_bytes())
    for place in ("memory://matrix", "memory://matrix/x.eval", folder.as_uri(), str(log)):
        results = load([place])
        assert len(results.decisions) == 15, place


def test_an_item_is_the_mean_of_its_scored_keys_and_epochs() -> None:
    rows = pd.DataFrame(
        [("kth_word", "t", "o", "a", v) for v in (1.0, 0.0, math.nan)] + [("kth_word", "t", "o", "b", math.nan)],
        columns=["task", "target", "observer", "item", "value"],
    )
    scores = item_scores(rows)
    assert scores["t", "o", "a"] == 0.5 and math.isnan(scores["t", "o", "b"])


def test_dilemmas_score_as_their_own_metric_does() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        [
            ("ethical_dilemma", "t", observer, f"d{item}", epoch, arm, rng.random() if rng.random() < 0.5 else math.nan)
            for observer in ("t", "o")
            for item in range(40)
            for epoch in range(4)
            for arm in ARMS
        ],
        columns=["task", "target", "observer", "item", "epoch", "key", "value"],
    )
    scores = item_scores(rows)
    assert 10 < scores.isna().sum() < 70
    for cell, group in rows.groupby(["target", "observer", "item"]):
        expected = per_dilemma(group.itertuples(), epochs=4).cot_pred
        assert scores[cell] == pytest.approx(expected, nan_ok=True), cell


def test_scores_land_at_their_target_observer_and_item(matrix_results: Callable[..., Results]) -> None:
    results = matrix_results({"m/b": 1.0, "m/a": 1.0}, general=0.0, items=10)
    matrix = matrix_of(results, "kth_word")
    assert matrix.models == ["m/a", "m/b"] and matrix.scores.shape == (2, 2, 10) and matrix.holes == {}
    assert (matrix.scores.mean(axis=2) == np.eye(2)).all()


def test_a_cell_without_a_log_is_a_hole(matrix_results: Callable[..., Results]) -> None:
    results = matrix_results({"m/a": 1.0, "m/b": 1.0}, items=10)
    results = replace(results, cells=results.cells.query("not (target == 'm/a' and observer == 'm/b')"))
    assert matrix_of(results, "kth_word").holes == {("m/a", "m/b"): "there is no log of this cell"}


def test_a_data_set_that_changed_between_the_waves_makes_a_hole(matrix_results: Callable[..., Results]) -> None:
    results = matrix_results({"m/a": 1.0, "m/b": 1.0}, items=10)
    results.cells.loc[1, "dataset_sha256"] = "bb"
    matrix = matrix_of(results, "kth_word")
    assert matrix.holes == {("m/a", "m/b"): "another data set than in the run of m/a on itself (the hashes differ)"}
    assert np.isnan(matrix.scores[0, 1]).all() and not np.isnan(matrix.scores[1, 0]).any()


def test_other_items_in_one_cell_are_unscored_in_the_rest(matrix_results: Callable[..., Results]) -> None:
    results = matrix_results({"m/a": 1.0, "m/b": 1.0}, items=10)
    rows = results.decisions
    dropped = (rows.target == "m/a") & (rows.observer == "m/b") & (rows.item > "q4")
    scores = matrix_of(replace(results, decisions=rows[~dropped]), "kth_word").scores
    assert np.isnan(scores[0, 1]).sum() == 5 and not np.isnan(scores[1]).any()
