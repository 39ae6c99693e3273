"""The own-frame arm in the report: a table of its own, and nothing of it in the matrix."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from selfprobe.errors import NoLogs
from selfprobe.introspect_tasks.ethical_dilemma import ethical_dilemma
from selfprobe.introspect_tasks.kth_word import kth_word
from selfprobe.studies.matrix.numbers import analyse
from selfprobe.studies.matrix.page import results_page
from selfprobe.studies.matrix.table import Results
from tests.matrix.read_logs import read_matrices

KNOWS, KNOWS_NOTHING = "planted/ada?access=.6&general=.5", "planted/bo?access=0&general=.5"


@pytest.fixture(scope="module")
def folder(run_task: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, asked both."""
    path = tmp_path_factory.mktemp("logs")
    for model in (KNOWS, KNOWS_NOTHING):
        run_task(kth_word(resamples=0, about="self,other"), model, path / "both", limit=40)
    run_task(kth_word(resamples=0), KNOWS, path / "alone", limit=40)
    return path


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return read_matrices([str(folder / "both")])


def test_what_is_planted_comes_out(results: Results) -> None:
    """Of itself access + (1 - access)·general·common, of another general·common."""
    for model, access in ((KNOWS, 0.6), (KNOWS_NOTHING, 0.0)):
        found = results.frames["kth_word", model, model]
        assert found.gain.low <= access * 0.75 <= found.gain.high, found.gain
        assert found.self_score.low <= access + (1 - access) * 0.25 <= found.self_score.high
        assert found.other_score.low - 0.02 <= 0.25 <= found.other_score.high + 0.02
    assert results.frames["kth_word", KNOWS, KNOWS].gain.low > 0
    nothing = results.frames["kth_word", KNOWS_NOTHING, KNOWS_NOTHING].gain
    assert nothing.low < 0 < nothing.high


@pytest.mark.slow(3)
def test_the_dilemmas_difference_is_access_times_the_gut_answers_distance(
    run_task: Any, tmp_path: Path
) -> None:
    for access in (0.75, 0.0):
        model = f"planted/ada?access={access}&gut=.4"
        log = run_task(ethical_dilemma(epochs=2, about="self,other"), model, tmp_path, limit=25)
        metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
        found = read_matrices([str(tmp_path)]).frames["ethical_dilemma", model, model].gain
        assert found.low <= access * 0.4 <= found.high and found.high - found.low < 0.05
        assert (metrics["self_minus_other"], metrics["self_minus_other_low"]) == pytest.approx(
            (found.value, found.low)
        )


def test_the_matrix_is_the_same_whether_another_assistant_was_asked_about_or_not(
    results: Results, folder: Path
) -> None:
    assert set(results.decisions.key) == {"k1", "k2", "k3"}
    alone = read_matrices([str(folder / "alone")])
    own = results.decisions[
        (results.decisions.target == KNOWS) & (results.decisions.observer == KNOWS)
    ]
    told, place = ["value", "truth", "said"], ["item", "key"]
    pd.testing.assert_frame_equal(
        *(rows.set_index(place)[told].sort_index() for rows in (own, alone.decisions))
    )
    assert alone.frames == {}
    mixed = read_matrices([str(folder / "alone"), str(folder / "both")])
    (task,) = analyse(mixed, rng=np.random.default_rng(0)).tasks
    assert task.matrix.holes == {}, "whom else a model was asked about leaves its cell comparable"


def test_the_report_has_a_table_and_a_line_a_model(results: Results) -> None:
    page = results_page(results, analyse(results, rng=np.random.default_rng(0)))
    (tables,) = (section for section in page.sections if section.name == "cells")
    assert [getattr(block, "summary", "") for block in tables.blocks].count(
        "About itself, and about another assistant"
    ) == 1
    frame = page.frames["frames"]
    assert len(frame) == 2 * 3 and set(frame.quantity) == {"own", "other", "gain"}
    line = next(
        line for line in page.notes if "planted/ada" in line and "itself minus another +" in line
    )
    assert line.startswith("kth_word, planted/ada: 0.")


def test_a_run_about_another_assistant_alone_is_no_cell(
    run_task: Any, folder: Path, tmp_path: Path
) -> None:
    run_task(kth_word(resamples=0, about="other"), KNOWS, tmp_path, limit=5)
    with pytest.raises(
        NoLogs,
        match=r"it asks about another assistant alone \(about=other\); about=self,other has a differ",
    ):
        read_matrices([str(tmp_path)])
    together = read_matrices([str(tmp_path), str(folder / "alone")])
    assert len(together.cells) == 1 and together.cells.samples[0] == 40
