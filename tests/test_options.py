"""Options that commands share: one help text, one split of names, and numbers as JSON."""

import json
import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from selfprobe.cli import COMMANDS, GROUPS, main
from selfprobe.study import options
from selfprobe.study.options import EXAMPLES
from selfprobe.text.user_input import names

SHARED = (
    "--models",
    "--limit",
    "-T",
    "-M",
    "--max-connections",
    "--max-retries",
    "--attempt-timeout",
    "--prices",
)


def commands(
    group: click.Group, context: click.Context, path: str = ""
) -> Iterator[tuple[str, click.Command]]:
    """Every command with its path, those of groups too."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, context, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def test_every_command_takes_h_and_names_itself() -> None:
    names = [name for name, _ in commands(main, click.Context(main))]
    assert len(names) >= len(COMMANDS) and sorted(sum(GROUPS.values(), ())) == sorted(COMMANDS)
    for name in names:
        shown = CliRunner().invoke(main, [*name.split(), "-h"])
        assert shown.exit_code == 0 and shown.output.startswith(f"Usage: selfprobe {name} "), (
            shown.output
        )


def test_every_help_ends_with_two_examples_that_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine.jsonl", "real.jsonl", "labels.csv", "a.probe"):
        Path(name).write_text("")
    Path("probes").mkdir()
    Path("a.probe").rename("probes/a.probe")
    named = dict(commands(main, click.Context(main)))
    assert {name for name, command in named.items() if not command.hidden} <= set(EXAMPLES)
    for path in EXAMPLES:
        shown = CliRunner().invoke(main, [*path.split(), "-h"]).output
        *_, title, first, second = shown.rstrip().splitlines()
        begin = " ".join(["  selfprobe", *path.split()])
        assert title.strip() == "Examples:" and all(
            line.strip().startswith(begin.strip()) for line in (first, second)
        )
        for line in (first, second):
            words = shlex.split(line)[1:]
            command = max(
                (one for one in named if words[: len(one.split())] == one.split()), key=len
            )
            named[command].make_context(
                command, words[len(command.split()) :]
            )  # refuses what it does not take


def test_an_option_that_runs_share_has_one_help_text() -> None:
    told: dict[str, set[str]] = {}
    for name, command in commands(main, click.Context(main)):
        if name in ("matrix", "awareness run"):
            for option in (one for one in command.params if isinstance(one, click.Option)):
                told.setdefault(option.opts[0], set()).add(option.help or "")
    # of a matrix: hints about their target; in an awareness run other models
    own = {"--observers"}
    assert {name for name, texts in told.items() if len(texts) > 1} == own
    assert all(
        told[{"-T": "task_args", "-M": "model_args"}.get(name, name)]
        for name in SHARED
        if name[1] == "-"
    )


@pytest.mark.parametrize("command", ["report", "awareness features", "tasks"])
def test_a_command_that_prints_numbers_prints_them_as_json_too(command: str) -> None:
    assert "--json" in CliRunner().invoke(main, [*command.split(), "-h"]).output


def test_names_are_split_at_commas_without_blanks_and_empty_ones() -> None:
    assert names("a, b,,c ,") == ["a", "b", "c"]
    assert names(None) == names(" , ") == []


@dataclass(frozen=True)
class Number:
    value: float
    of: tuple[str, ...]
    n: int
    by: dict[float, float]


def test_json_has_what_is_undefined_as_null(capsys: pytest.CaptureFixture[str]) -> None:
    options.echo_json([Number(math.nan, ("é",), 3, {0.1: 0.5}), {"sure": True, "none": None}])
    printed = capsys.readouterr().out
    assert json.loads(printed) == [
        {"value": None, "of": ["é"], "n": 3, "by": {"0.1": 0.5}},
        {"sure": True, "none": None},
    ]
    assert "é" in printed


def test_a_learning_rate_of_nan_is_refused_as_any_other_number_is() -> None:
    for command in (("mechanism", "induce"), ("probe", "run")):
        done = CliRunner().invoke(main, [*command, "--model", "smollm2", "--rate", "nan"])
        assert done.exit_code == 2 and "nan is not finite; expected 0<x<1" in done.output


@pytest.mark.parametrize(
    ("text", "shown"), [("[" * 20_000, "[" * 98 + "…"), ("{a: 1, a: 2}", "{a: 1, a: 2}")]
)
def test_an_argument_that_is_no_yaml_is_one_short_line(text: str, shown: str) -> None:
    done = CliRunner().invoke(
        main, ["matrix", "--models", "planted/a", "--tasks", "kth_word", "-T", f"k={text}"]
    )
    told = " ".join(done.output.split())
    assert done.exit_code == 2 and "the value of k is not YAML: " in told and len(told) < 400
    assert shown[:40] in told


def test_a_list_that_is_typed_twice_is_refused_and_not_cut_to_its_last_names() -> None:
    for words, flag in (
        (("awareness", "turns", "x", "--models", "planted/a", "--model", "planted/b"), "--models"),
        (
            ("matrix", "--models", "planted/a", "--tasks", "kth_word", "--tasks", "heads_up"),
            "--tasks",
        ),
    ):
        done = CliRunner().invoke(main, [*words, "--dry-run"])
        assert (
            done.exit_code == 2
            and f"{flag} is typed twice; type it once, with commas: a,b" in done.output
        )


def test_a_limit_means_the_same_in_every_command() -> None:
    """Items of each data set, always the same; pairs of texts for probes are drawn, and are as many
    by default.
    """
    texts: dict[str, set[str]] = {}
    for name, command in commands(main, click.Context(main)):
        for option in command.params:
            if isinstance(option, click.Option) and "--limit" in option.opts:
                texts.setdefault(option.help or "", set()).add(name)
    drawn = [text for text in texts if "drawn at random" in text]
    assert set(texts) == {options.LIMIT_HELP, *drawn} and len(drawn) == 1
    assert {name.partition(" ")[0] for text in drawn for name in texts[text]} == {"probe"}
    assert all("each data set, always the same" in text for text in texts)
