"""The matrix from Python and from the shell is one study."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

from selfprobe import Matrix
from selfprobe.cli import main
from selfprobe.study.waves import RunSettings

ROOT = Path(__file__).parents[2]
MODELS = ["planted/a?access=.9", "planted/b?access=.5", "planted/c?access=.1"]
QUIET = RunSettings(display="none")


def plain(table: pd.DataFrame) -> Any:
    return json.loads(table.to_json(orient="records", double_precision=12))


@pytest.mark.slow(3)
def test_python_gives_the_tables_that_the_command_gives(tmp_path: Path) -> None:
    given = (
        "--models",
        ",".join(MODELS),
        "--tasks",
        "kth_word",
        "--limit",
        "6",
        "-T",
        "k=1",
        "--yes",
    )
    done = CliRunner().invoke(
        main,
        [
            "matrix",
            *given,
            "--log-dir",
            str(tmp_path / "a"),
            "--out",
            str(tmp_path / "page"),
            "--json",
        ],
    )
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    page = Matrix(
        models=MODELS,
        tasks=["kth_word"],
        limit=6,
        args={"k": 1},
        log_dir=str(tmp_path / "b"),
        settings=QUIET,
    ).run()
    for name in ("cells", "advantage", "self", "tests"):
        expected = plain(pd.DataFrame(printed[name]))
        assert plain(page.frames[name]) == expected and expected, name
    assert (tmp_path / "page" / "index.html").is_file()


def test_importing_the_package_imports_nothing_of_inspect_and_an_unknown_name_is_an_error() -> None:
    code = "import selfprobe, sys; print('inspect_ai' in sys.modules, hasattr(selfprobe, 'Matrx'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_a_wrong_field_is_refused_from_python_with_what_is_expected() -> None:
    with pytest.raises(ValueError, match="unknown task kth; a matrix can hold ethical_dilemma, "):
        Matrix(models=MODELS, tasks=["kth"])
    with pytest.raises(ValueError, match="Matrix has no field task; did you mean tasks?"):
        Matrix(models=MODELS, task=["kth_word"])


@pytest.mark.parametrize(("candidates", "calls"), [(5, 10 + 5), (3, 6 + 3)])
def test_a_plan_counts_as_many_candidates_as_are_asked(candidates: int, calls: int) -> None:
    """Each model answers and recognises its candidates, and those of the other model."""
    planned = Matrix(
        models=MODELS[:2],
        tasks=["paraphrase_recognition"],
        limit=4,
        args={"candidates": candidates},
        settings=QUIET,
    )
    assert [cost.calls for cost in planned.plan().costs] == [4 * calls] * 2


def test_the_plan_of_the_papers_matrix_has_three_candidates(tmp_path: Path) -> None:
    """Eleven models, 50 items: each observer is asked about three candidates of ten others."""
    given = yaml.safe_load((ROOT / "configs/paper003.yaml").read_text("utf-8"))
    models = [f"planted/{number}" for number in range(len(given["models"]))]
    planned = Matrix(models=models, tasks=given["tasks"], limit=given["limit"], args=given["args"])
    assert [cost.calls for cost in planned.plan().costs] == [4_050] * 11
