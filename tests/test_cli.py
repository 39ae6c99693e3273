"""The `selfprobe` command."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from inspect_ai._util.error import PrerequisiteError

from selfprobe import weights
from selfprobe.cli import COMMANDS, main


def test_the_installed_command_prints_its_version() -> None:
    command = Path(sys.executable).parent / "selfprobe"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert version("selfprobe") in done.stdout


def test_a_relative_folder_is_the_one_in_the_folder_of_the_process(tmp_path: Path) -> None:
    """Not the one in `$PWD`, which a program that starts the command elsewhere hands on."""
    stale, real = tmp_path / "stale", tmp_path / "real"
    (stale / "logs").mkdir(parents=True), real.mkdir()
    command = Path(sys.executable).parent / "selfprobe"
    done = subprocess.run(
        [command, "table", "logs"],
        cwd=real,
        env=os.environ | {"PWD": str(stale)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == f"Error: no file or folder 'logs'; looked at {real}/logs\n"


def test_help_names_every_command_with_its_first_sentence() -> None:
    shown = CliRunner().invoke(main, ["--help"]).output
    told = " ".join(shown.partition("Commands:")[2].split())
    assert told == " ".join(f"{name} {command.help}" for name, command in sorted(COMMANDS.items()))


@pytest.mark.parametrize("name", ["awareness", "dilemmas", "mechanism", "probe", "realism"])
def test_the_summaries_of_a_group_are_whole(name: str) -> None:
    shown = CliRunner().invoke(main, [name, "--help"]).output
    assert "..." not in shown.partition("Commands:")[2], shown


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_named_as_it_is_called(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None and command.name == name
    assert " ".join((command.help or "").split()).startswith(COMMANDS[name].help)


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(main, ["fetch"])
    assert result.exit_code == 2
    assert (
        result.stderr
        == "Error: No such command 'fetch'; did you mean fetch-model? (selfprobe -h shows what it takes)\n"
    )


def test_fetch_model_prints_the_path_alone_on_stdout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(weights, "fetch", lambda wanted: tmp_path / wanted.name)
    for asked, name in (([], "smollm2"), (["all-MiniLM-L6-v2"], "all-MiniLM-L6-v2")):
        result = CliRunner().invoke(main, ["fetch-model", *asked])
        assert (result.exit_code, result.stdout) == (0, f"{tmp_path / name}\n")


def test_a_model_that_has_no_weights_here_lists_those_that_have() -> None:
    result = CliRunner().invoke(main, ["fetch-model", "minilm"])
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: NAME must be one of smollm2, all-MiniLM-L6-v2, got 'minilm'")


def test_weights_that_cannot_be_had_are_a_message_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(_: weights.Weights) -> Path:
        raise PrerequisiteError("no source could give them")

    monkeypatch.setattr(weights, "fetch", fetch)
    result = CliRunner().invoke(main, ["fetch-model"])
    assert result.exit_code == 2
    assert result.stderr == "Error: no source could give them\n"


def test_the_command_itself_loads_nothing_heavy() -> None:
    """Or `selfprobe --version` would take seconds."""
    probe = "import sys, selfprobe.cli; print([m for m in ('inspect_ai', 'numpy', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_a_folder_that_was_deleted_is_said(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    command = f"mkdir {gone}; cd {gone}; rmdir {gone}; {Path(sys.executable).parent / 'selfprobe'} report logs"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == "Error: the current folder is not there any more: change into one that is\n"
