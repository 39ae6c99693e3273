"""The shell steps of action.yml, run as GitHub runs them: a bash with -eo pipefail and the inputs
as its environment.
"""

import os
import re
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
    env["GITHUB_JOB"] = "gate"
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
    assert done.returncode == 0, done.stderr  # a later step ends the job, after the upload
    name, status = (tmp_path / "output").read_text().splitlines()
    assert status == "status=1" and re.fullmatch(r"name=gate-\d+", name)
    assert (tmp_path / "selfprobe-check.xml").is_file()
    assert ran(steps["Status"], tmp_path, STATUS="1").returncode == 1
    assert list(steps).index("Status") < list(steps).index("Comment")

    (tmp_path / "bin").mkdir()
    gh = tmp_path / "bin" / "gh"
    where = {"GITHUB_REPOSITORY": "a/b", "NUMBER": "7", "GH_TOKEN": "none", "NAME": "gate-1"}
    for earlier, call in (
        ("", "api --method POST repos/a/b/issues/7/comments"),
        ("12", "api --method PATCH repos/a/b/issues/comments/12"),
    ):
        gh.write_text(
            f'#!/bin/sh\ncase "$*" in *paginate*) echo {earlier};; *) echo "$@" > gh.txt;; esac\n'
        )
        gh.chmod(0o755)
        written = ran(steps["Comment"], tmp_path, **where)
        assert written.returncode == 0, written.stderr
        assert (tmp_path / "gh.txt").read_text() == (
            f"{call} --field body=@selfprobe-comment.md --silent\n"
        )
    comment = (tmp_path / "selfprobe-comment.md").read_text()
    assert comment.startswith("<!-- selfprobe check gate-1 -->\n")
    assert "1 worse" in comment and "::" not in comment


def test_every_input_reaches_the_command(root: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "selfprobe"
    command.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    command.chmod(0o755)
    given = {
        "RUN": "kth_word", "MODELS": "a,b", "TASK_ARGS": "k=1\nabout=self,other\n", "LIMIT": "9",
        "BASELINE": "b.json", "SMALLEST": ".1", "UNSCORED": ".2", "STRICT": "true",
        "MAX_RETRIES": "3", "COST_LIMIT": "5", "LOGS": "l",
    }  # fmt: skip
    step = steps_of(root)["Check"]
    assert set(given) == set(step["env"])
    words = ran(step, tmp_path, **given).stdout.split()
    folder_place = words.index("--log-dir") + 1
    assert re.fullmatch(r"l/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d", words[folder_place])
    words[folder_place] = "l"
    expected = (
        "check --github --junit selfprobe-check.xml --run kth_word --models a,b --log-dir l --yes "
        "-T k=1 -T about=self,other --limit 9 --max-retries 3 --cost-limit 5 --baseline b.json "
        "--smallest .1 --unscored .2 --strict"
    )
    assert words == expected.split()


def test_an_unset_variable_of_the_model_is_named(root: Path, tmp_path: Path) -> None:
    """`${{ vars.MODEL }}` is empty where nobody has set it."""
    done = ran(steps_of(root)["Check"], tmp_path, RUN="kth_word", MODELS="", LOGS="logs")
    assert done.returncode == 0
    assert (
        "::error::no models: set the input models; vars.MODEL is set under Settings" in done.stdout
    )
    assert (tmp_path / "output").read_text().endswith("status=2\n")
    assert not (tmp_path / "logs").exists()


def test_logs_that_are_there_are_checked_without_a_model(root: Path, tmp_path: Path) -> None:
    done = ran(steps_of(root)["Check"], tmp_path, LOGS=str(root / "examples" / "logs"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "output").read_text().endswith("\nstatus=0\n")
