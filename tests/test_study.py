"""The kit of a study: its options stand in a file, so that help needs no import of Inspect."""

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import click
import pytest
from click.testing import CliRunner
from pydantic import Field

from selfprobe.cli import main
from selfprobe.errors import InputError
from selfprobe.studies import described_studies, every
from selfprobe.study import STUDIES, STUDIES_FILE, Study, command, commands, described_study
from selfprobe.study.waves import RunSettings


def test_the_file_of_options_is_what_the_studies_say() -> None:
    """`python -m selfprobe.studies` writes it anew."""
    held = json.loads(STUDIES_FILE.read_text())
    assert held == json.loads(json.dumps(described_studies()))


def test_help_and_a_wrong_call_import_neither_inspect_nor_pandas(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("models: [planted/a]\nlimit: many\n")
    (tmp_path / "d.yaml").write_text("modles: [planted/a]\n")
    calls = [
        ["awareness", "turns", "--modles", "a"],
        ["awareness", "turns", "nowhere.jsonl", "--models", "planted/a"],
        ["awareness", "scan", "nowhere", "--grader", "planted/g"],
        ["outcome", "nowhere", "--models", "planted/a"],
        ["awareness", "run", "--against", "./nowhere", "--models", "planted/a"],
        ["awareness", "run", "--models", "planted/a", "--effort", "hihg"],
        ["report", "nowhere"],
        ["matrix", "--config", "c.yaml"],
        ["matrix", "d.yaml"],
        ["matrix", "a", "b"],
        ["probe", "run", "--model", "gpt-4o", "--datasets", "ours"],
    ]
    code = (
        "import sys; from selfprobe.cli import main; from click.testing import CliRunner; "
        f"calls = {calls}; made = [CliRunner().invoke(main, call) for call in calls]; "
        "print([one.exit_code for one in made], sorted({'inspect_ai', 'pandas', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout.strip() == f"{[2] * len(calls)} []", done.stdout + done.stderr


def test_no_option_of_a_study_is_taken_for_a_setting_of_its_calls() -> None:
    """`RunSettings.pop_from` takes its fields out of what a command was given."""
    shared = {one.name for one in fields(RunSettings)} | {"engine", "ray_address"}
    for name, about in described_studies().items():
        assert not about["runs"] or shared.isdisjoint(
            option["name"] for option in about["options"]
        ), name


def test_help_has_what_is_measured_first_and_then_how_calls_are_made() -> None:
    text = CliRunner().invoke(main, ["awareness", "cues", "-h"]).output
    first, _, then = text.partition("How calls are made:")
    assert "--controls" in first and "--max-retries" not in first and "--max-retries" in then
    assert first.count("\n  --") <= 15


def test_every_study_reads_tasks_that_no_other_reads() -> None:
    read = [task for study in every() for task in study.reads]
    assert len(read) == len(set(read)) > 0


class Toy(Study):
    """How many? A study of this test."""

    reads: ClassVar[frozenset[str]] = frozenset({"toy"})

    models: tuple[str, ...] = Field(min_length=1, description="Models.")
    most: int = Field(3, ge=1, description="Number of things.")


STUDIES.remove(Toy)


def test_a_field_is_an_option_with_its_type_bounds_and_default() -> None:
    (most,) = [option for option in described_study(Toy)["options"] if option["name"] == "most"]
    assert (most["kind"], most["least"], most["default"]) == ("whole", 1, 3)
    refused = CliRunner().invoke(
        command("toy", described_study(Toy)), ["--models", "a", "--most", "0"]
    )
    assert refused.exit_code == 2 and "expected a whole number from 1, got '0'" in refused.output


def test_python_refuses_a_wrong_value_with_its_name_what_is_expected_and_what_came() -> None:
    with pytest.raises(
        InputError, match=r"--most: Input should be greater than or equal to 1, got 0"
    ):
        Toy.from_values({"models": ("a",), "most": 0})


def described_turns() -> dict[str, Any]:
    """`awareness turns` as its file describes it."""
    about: dict[str, Any] = json.loads(STUDIES_FILE.read_text(encoding="utf-8"))["turns"]
    return about


OUTDATED_FILE = (
    "options.json is older than the fields of Turns: "
    "type python -m selfprobe.studies, which writes it anew"
)


@pytest.mark.parametrize("flag", ["--most", "--placebo", "--no-placebo"])
def test_an_option_that_the_file_of_options_lacks_is_answered_with_what_to_type(flag: str) -> None:
    about = described_turns()
    field_name = flag.removeprefix("--").removeprefix("no-")
    about["options"] = [option for option in about["options"] if option["name"] != field_name]
    refused = CliRunner().invoke(command("turns", about), ["logs", "--models", "planted/a", flag])
    assert refused.exit_code == 2 and refused.output.endswith(f"Error: {OUTDATED_FILE}\n")


@pytest.mark.parametrize(
    ("field_name", "entry", "value"), [("most", "default", 41), ("most", "least", 0)]
)
def test_a_field_that_differs_from_the_file_of_options_stops_the_command_before_it_asks(
    field_name: str, entry: str, value: object, tmp_path: Path
) -> None:
    about = described_turns()
    [option] = [option for option in about["options"] if option["name"] == field_name]
    option[entry] = value
    arguments = [str(tmp_path), "--models", "planted/a"]
    refused = CliRunner().invoke(command("turns", about), arguments)
    assert refused.exit_code == 2 and refused.output.endswith(f"Error: {OUTDATED_FILE}\n")


def test_an_unknown_option_stays_an_unknown_option() -> None:
    turns = command("turns", described_turns())
    for flag in ("--mots", "--clusters"):  # no study's field, and that of another study
        refused = CliRunner().invoke(turns, ["logs", "--models", "planted/a", flag, "3"])
        assert (
            refused.exit_code == 2 and "No such option" in refused.output and flag in refused.output
        )


def test_a_study_that_the_file_of_options_lacks_is_answered_with_what_to_type() -> None:
    with pytest.raises(click.UsageError, match="options.json has no study toy: type python -m"):
        commands("toy")
