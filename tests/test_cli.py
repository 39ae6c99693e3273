"""The `selfprobe` command."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from inspect_ai._util.error import PrerequisiteError

from selfprobe.cli import COMMANDS, GROUPS, main
from selfprobe.embed import weights
from selfprobe.study import setup_state
from selfprobe.text.extras import install_command

COMMAND = str(Path(sys.executable).with_name("selfprobe"))


def test_the_installed_command_prints_its_version() -> None:
    command = Path(sys.executable).parent / "selfprobe"
    done = subprocess.run(
        [command, "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert version("selfprobe") in done.stdout


def test_a_relative_folder_is_the_one_in_the_folder_of_the_process(tmp_path: Path) -> None:
    """Not the one in `$PWD`, which a program that starts the command elsewhere hands on."""
    stale, real = tmp_path / "stale", tmp_path / "real"
    (stale / "logs").mkdir(parents=True), real.mkdir()
    command = Path(sys.executable).parent / "selfprobe"
    done = subprocess.run(
        [command, "report", "logs"],
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
    told = " ".join(shown.partition("Ask models:")[2].partition("Examples:")[0].split())
    listed = [f"{name} {COMMANDS[name].help}" for name in GROUPS["Ask models"]]
    for title, names in list(GROUPS.items())[1:]:
        listed += [f"{title}:", *(f"{name} {COMMANDS[name].help}" for name in names)]
    assert told == " ".join(listed)


@pytest.mark.parametrize("name", ["awareness", "mechanism", "paper", "probe", "realism"])
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


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["help"], "type selfprobe -h, or -h after a command: selfprobe matrix -h"),
        (["view"], "logs are Inspect's: type inspect view --log-dir logs"),
        (["run", "kth_word"], "type selfprobe matrix --models A,B,C,D,E, or for one task inspect"),
        (["list"], "type selfprobe tasks"),
    ],
)
def test_a_word_of_another_program_is_answered_with_what_to_type(
    words: list[str], remedy: str
) -> None:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: No such command {words[0]!r}; {remedy}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "remedy"),
    [
        ("-v", "Inspect's lines come with --display plain"),
        ("-q", "progress goes to standard error: add 2>/dev/null"),
        (
            "--temperature=1",
            "tasks fix it; a --config file gives models a config: {temperature: …}",
        ),
    ],
)
def test_an_option_of_another_program_is_answered_with_what_to_type(
    option: str, remedy: str
) -> None:
    result = CliRunner().invoke(main, ["matrix", "--models", "planted/a", option])
    assert result.exit_code == 2
    assert result.stderr == f"Error: No such option {option.partition('=')[0]}; {remedy}\n"


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "selfprobe", "view"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2 and "inspect view" in done.stderr


def test_the_doctor_says_what_is_here_and_what_each_missing_part_would_switch_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SELFPROBE_CACHE", str(tmp_path))
    monkeypatch.setenv("MISTRAL_API_KEY", "a-secret")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setattr(setup_state, "EXTRAS", {"ray": ("no_such_module",), "scout": ("json",)})
    monkeypatch.setattr(setup_state, "at_hand", lambda weights: None)
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 0 and "a-secret" not in done.output
    versions, *lines = done.output.splitlines()
    assert versions.startswith(f"here     selfprobe {version('selfprobe')}, inspect_ai ")
    assert "here     key MISTRAL_API_KEY" in lines and "here     extra scout" in lines
    [keys] = [line for line in lines if line.startswith("missing  keys: ")]
    assert "anthropic/… (ANTHROPIC_API_KEY)" in keys and "MISTRAL" not in keys
    [ray] = [line for line in lines if line.startswith("missing  extra ray: ")]
    assert ray.endswith(f"--engine ray, --replicas; {install_command('ray')}")
    assert any("selfprobe fetch-model smollm2 (98 MB)" in line for line in lines)


def test_fetch_model_prints_the_path_alone_on_stdout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(weights, "fetch", lambda wanted: tmp_path / wanted.name)
    for asked, name in (([], "smollm2"), (["all-MiniLM-L6-v2"], "all-MiniLM-L6-v2")):
        result = CliRunner().invoke(main, ["fetch-model", *asked])
        assert (result.exit_code, result.stdout) == (0, f"{tmp_path / name}\n")


def test_a_model_that_has_no_weights_here_lists_those_that_have() -> None:
    result = CliRunner().invoke(main, ["fetch-model", "minilm"])
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "Error: NAME must be one of smollm2, all-MiniLM-L6-v2, got 'minilm'"
    )


def test_weights_that_cannot_be_had_are_a_message_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fetch(_: weights.Weights) -> Path:
        raise PrerequisiteError("no source could give them")

    monkeypatch.setattr(weights, "fetch", fetch)
    result = CliRunner().invoke(main, ["fetch-model"])
    assert result.exit_code == 2
    assert result.stderr == "Error: no source could give them\n"


def test_the_command_itself_loads_nothing_heavy() -> None:
    """Or `selfprobe --version` would take seconds."""
    probe = "import sys, selfprobe.cli; print([m for m in ('inspect_ai', 'numpy', 'torch') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


def test_a_folder_that_was_deleted_is_said(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    command = f"mkdir {gone}; cd {gone}; rmdir {gone}; {Path(sys.executable).parent / 'selfprobe'} report logs"
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert (
        done.stderr == "Error: the current folder is not there any more: change into one that is\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["-h"],
        *(
            pytest.param(given, marks=pytest.mark.slow(4))
            for given in (["tasks"], ["tasks", "--json"])
        ),
    ],
)
@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
def test_an_output_that_cannot_be_written_is_a_line_and_no_success(
    arguments: list[str], where: str, root: Path
) -> None:
    done = subprocess.run(
        ["bash", "-c", f'exec "$@" {where}', "bash", COMMAND, *arguments],
        cwd=root,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and re.fullmatch(
        r"Error: cannot write to standard output \(.+\): free space there, or send it to another place",
        line,
    )


def test_another_error_of_a_file_is_not_said_to_be_the_outputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("selfprobe.cli.echo", broken)
    done = CliRunner().invoke(main, ["tasks"])
    assert isinstance(done.exception, OSError) and "standard output" not in done.output


@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-"])
def test_an_error_output_that_cannot_be_written_changes_no_status(where: str, root: Path) -> None:
    shell = ["bash", "-c", f'exec "$@" {where}', "bash", COMMAND]
    assert subprocess.run([*shell, "bogus"], cwd=root, check=False).returncode == 2


def test_an_unknown_option_is_refused_with_the_nearest_one_alone() -> None:
    done = CliRunner().invoke(main, ["awareness", "run", "--method", "binary"])
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: No such option '--method'; did you mean --methods? (")
    done = CliRunner().invoke(main, ["report", "--rwos", "x.csv"])
    assert done.stderr.startswith("Error: No such option '--rwos'; did you mean --rows? (")
    done = CliRunner().invoke(main, ["report", "--zzzz"])
    assert done.stderr.startswith("Error: No such option '--zzzz'. (")


def test_the_question_whether_to_run_ends_its_line_where_nobody_is_there(tmp_path: Path) -> None:
    call = ["check", "--run", "kth_word", "--model", "planted/ada", "--limit", "2"]
    done = CliRunner().invoke(main, [*call, "--log-dir", str(tmp_path / "logs")], input="")
    assert done.exit_code == 2
    question, error = done.output.splitlines()[-2:]
    assert question == "Run it? [y/N]: "
    assert error.startswith("Error: nobody is there to ask; give --yes to run it (selfprobe check")
