"""`selfprobe report --rows`: one row a decision of any of the suite's logs."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import read_eval_log

from selfprobe.cli import main
from selfprobe.scorers.decision import decisions_of


@pytest.fixture(scope="module")
def folder(run_task: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two wings, and a truncated log."""
    path = tmp_path_factory.mktemp("logs")
    run_task("selfprobe/kth_word", "planted/a?malformed=.3", path, limit=4)
    run_task("selfprobe/binary", "planted/b", path, limit=2)
    (path / "cut.eval").write_bytes(next(path.glob("*.eval")).read_bytes()[:999])
    return path


def call(folder: Path, out: Path) -> Result:
    return CliRunner().invoke(main, ["report", str(folder), "--rows", str(out)])


def test_each_decision_is_a_row_with_its_run_item_and_fields(folder: Path, tmp_path: Path) -> None:
    done = call(folder, tmp_path / "rows.csv")
    assert done.exit_code == 0 and "cut.eval: cannot be read" in done.stderr
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert f"{len(rows)} decisions of 2 logs in " in done.output
    for log in map(str, folder.glob("2*.eval")):
        read = read_eval_log(log)
        here = rows[rows.log.str.endswith(Path(log).name)]
        expected = [
            d
            for s in read.samples or []
            for score in (s.scores or {}).values()
            for d in decisions_of(score)
        ]
        assert len(expected) == len(here) > 0
        assert sorted(here.value.dropna()) == sorted(
            d.value for d in expected if d.value is not None
        )
        assert sorted(here.unscored.dropna()) == sorted(d.unscored for d in expected if d.unscored)
    assert set(rows.task) == {"kth_word", "binary"} and set(rows.target) == {
        "planted/a?malformed=.3",
        "planted/b",
    }


def test_json_and_parquet_hold_the_same_rows_and_parquet_their_types(
    folder: Path, tmp_path: Path
) -> None:
    for name in ("rows.json", "rows.parquet"):
        assert call(folder, tmp_path / name).exit_code == 0
    rows, read = (
        json.loads((tmp_path / "rows.json").read_text()),
        pd.read_parquet(tmp_path / "rows.parquet"),
    )
    assert {"log", "task", "item", "key", "truth", "said", "unscored"} <= rows[0].keys()
    assert json.loads(read.to_json(orient="records")) == rows and read.value.dtype == float


def test_a_folder_without_decisions_and_another_kind_of_file_are_a_line_each(
    folder: Path, tmp_path: Path
) -> None:
    none = call(tmp_path, tmp_path / "rows.csv")
    assert none.exit_code == 2 and none.output.startswith("Error: no decision of selfprobe in ")
    other = call(folder, tmp_path / "rows.xlsx")
    assert (
        other.exit_code == 2 and "--rows takes a .csv, .json or .parquet file, got " in other.output
    )
