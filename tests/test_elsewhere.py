"""The specs for Inspect Flow and for Hawk: Flow's are run on planted models, of Hawk's what can be
checked here is.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from selfprobe.studies.awareness.runs import load_awareness
from selfprobe.study._registry import defaults_of, measures
from tests.matrix.read_logs import read_matrices as load_matrix

EXAMPLES = Path(__file__).parent.parent / "examples"
BIN = Path(sys.executable).parent


def flow(spec: str, folder: Path, *given: str, limit: int = 3) -> None:
    """`flow run`, as a user calls it; its list of packages needs an index, and is left out offline."""
    pytest.importorskip("inspect_flow", reason="needs pip install 'selfprobe[flow]'")
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    if not shutil.which("uv", path=path):
        pytest.skip("Inspect Flow needs uv: pip install 'selfprobe[flow]'")
    options = ("--limit", str(limit), "--store", "none", "--log-dir", str(folder))
    environment = {**os.environ, "PATH": path, "UV_OFFLINE": "1", "INSPECT_FLOW_DISPLAY": "plain"}
    done = subprocess.run(
        [str(BIN / "flow"), "run", str(EXAMPLES / "flow" / spec), *options, *given],
        cwd=folder.parent.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.slow(20)
def test_flows_matrix_is_a_whole_matrix_of_three_models(tmp_path: Path) -> None:
    logs = tmp_path / "flow"
    flow("matrix.py", logs / "diagonal")
    flow("matrix.py", logs / "cells", "--arg", f"replies={logs / 'diagonal'}")
    results = load_matrix([str(logs)])
    assert dict(results.cells.groupby("task").size()) == {"heads_up": 9, "kth_word": 9}
    assert set(results.cells.status) == {"complete"} and not results.ignored


@pytest.mark.slow(20)
def test_flows_study_asks_every_method_about_the_same_replies(tmp_path: Path) -> None:
    logs = tmp_path / "study"
    flow("study.py", logs / "replies", limit=2)
    flow("study.py", logs / "methods", "--arg", f"replies={logs / 'replies'}", limit=2)
    verdicts = load_awareness([str(logs)]).verdicts
    assert set(verdicts["method"]) == {"binary", "probability", "user_motivation"}


def hawk() -> dict[str, Any]:
    spec: dict[str, Any] = yaml.safe_load(
        (EXAMPLES / "hawk" / "matrix.eval-set.yaml").read_text(encoding="utf-8")
    )
    return spec


def test_hawks_tasks_are_ours_with_arguments_that_they_have() -> None:
    [ours] = hawk()["tasks"]
    assert ours["name"] == "selfprobe"  # the name of our entry point for Inspect
    for item in ours["items"]:
        assert item["name"] in measures() and set(item["args"]) <= set(defaults_of(item["name"]))


def test_hawks_models_are_three_or_more_and_their_keys_are_asked_for() -> None:
    spec = hawk()
    assert set(spec) <= {"name", "tasks", "models", "limit", "runner"}
    assert sum(len(vendor["items"]) for vendor in spec["models"]) >= 3
    keys = {secret["name"] for secret in spec["runner"]["secrets"]}
    assert keys == {f"{vendor['name'].upper()}_API_KEY" for vendor in spec["models"]}
