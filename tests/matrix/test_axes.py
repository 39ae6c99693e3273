"""KL by the axes of a dilemma, recomputed from the log's own decisions."""

import json
import math
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from scipy.stats import entropy

from selfprobe.introspect_tasks.ethical_dilemma import ethical_dilemma
from selfprobe.logs import summaries
from selfprobe.page import RowTable
from selfprobe.studies.matrix.sections import AxisRow, axis_rows
from tests.matrix.read_logs import read_matrices


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory, run_task: Any) -> Path:
    folder = tmp_path_factory.mktemp("axes")
    rows = [
        {
            "id": f"d{i}",
            "dilemma": f"Case {i}. Option A: go. Option B: stay.",
            "axes": {"domain": "ab"[i % 2]},
        }
        for i in range(8)
    ]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run_task(
        ethical_dilemma(dataset=str(folder / "d.jsonl"), epochs=2), "planted/m", folder / "logs"
    )
    return folder / "logs"


def test_each_value_of_an_axis_has_the_mean_of_its_dilemmas(logs: Path) -> None:
    rows = axis_rows(read_matrices([str(logs)]))
    assert [(row.model, row.axis, row.value, row.dilemmas) for row in rows] == [
        ("planted/m", "domain", "a", 4),
        ("planted/m", "domain", "b", 4),
    ]
    [log] = logs.glob("*.eval")
    values: dict[tuple[str, str], list[float]] = {}
    for sample in summaries(str(log)):
        for key, value in next(iter(sample.scores.values())).value.items():
            values.setdefault((str(sample.id), key), []).append(value)
    p = {place: mean(found) for place, found in values.items()}
    for row, items in zip(rows, (range(0, 8, 2), range(1, 8, 2)), strict=True):
        pairs = [(p[f"d{i}", "p"], p[f"d{i}", "p_predicted"]) for i in items]
        expected = mean(float(entropy([a, 1 - a], [b, 1 - b])) for a, b in pairs)
        assert row.kl_predicted.value == pytest.approx(expected)
        assert row.kl_gain.low <= row.kl_gain.value <= row.kl_gain.high


def test_the_table_holds_them(logs: Path) -> None:
    rows = axis_rows(read_matrices([str(logs)]))
    table = RowTable(AxisRow, rows).frame
    assert (
        list(table.value) == ["a", "b"]
        and not table.kl_direct.isna().any()
        and math.isfinite(table.cot_pred[0])
    )


def test_dilemmas_without_axes_have_no_rows(tmp_path: Path, run_task: Any) -> None:
    (tmp_path / "d.jsonl").write_text('{"id": "d", "dilemma": "Option A: go. Option B: stay."}\n')
    run_task(
        ethical_dilemma(dataset=str(tmp_path / "d.jsonl"), epochs=1), "planted/m", tmp_path / "logs"
    )
    assert axis_rows(read_matrices([str(tmp_path / "logs")])) == []
