"""The shell steps of action.yml, run as GitHub runs them: a bash with -eo pipefail and the inputs
as its environment.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.slow(10)


def steps_of(root: Path) -> dict[str, dict[str, Any]]:
    action = yaml.safe_load((root / "action.yml").read_text())
    return {step["name"]: step for step in action["runs"]["steps"]}


def ran(step: dict[str, Any], here: Path, **given: str) -> subprocess.CompletedProcess[str]:
    empty = dict.fromkeys(step.get("env", {}), "")
    path = os.pathsep.join(
        [str(here / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    )
    env = os.environ | empty | given | {"PATH": path, "GITHUB_OUTPUT": str(here / "output")}
    call = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(call, cwd=here, env=env, capture_output=True, text=True, check=False)


def test_a_planted_fall_is_the_status_of_the_action_and_stands_in_its_comment(
    root: Path, tmp_path: Path
) -> None:
    steps = steps_of(root)
    saved = "check --run kth_word --models planted/ada --limit 12 --yes --save baseline.json --log-dir before".split()
    subprocess.run(
        [Path(sys.executable).parent / "selfprobe", *saved],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    asked = {
        "RUN": "kth_word",
        "MODELS": "planted/ada?access=.1",
        "LIMIT": "12",
        "BASELINE": "baseline.json",
    }
    done = ran(steps["Check"], tmp_path, LOGS="logs", **asked)
    assert done.returncode == 0, done.stderr  # the last step ends the job, after upload and comment
    assert (tmp_path / "output").read_text() == "status=1\n"
    assert (tmp_path / "selfprobe-check.xml").is_file()

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text('#!/bin/sh\necho "$@" > gh.txt\n')
    (tmp_path / "bin" / "gh").chmod(0o755)
    ran(steps["Comment"], tmp_path, GITHUB_REPOSITORY="a/b", NUMBER="7", GH_TOKEN="none")
    assert (
        tmp_path / "gh.txt"
    ).read_text() == "pr comment 7 --repo a/b --body-file selfprobe-comment.md\n"
    comment = (tmp_path / "selfprobe-comment.md").read_text()
    assert "1 worse" in comment and "::" not in comment
    assert ran(steps["Status"], tmp_path, STATUS="1").returncode == 1


def test_logs_that_are_there_are_checked_without_a_model(root: Path, tmp_path: Path) -> None:
    done = ran(steps_of(root)["Check"], tmp_path, LOGS=str(root / "examples" / "logs"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "output").read_text() == "status=0\n"
