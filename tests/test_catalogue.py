"""`selfprobe tasks`: what the list says is what a run does."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from selfprobe.cli import listed_tasks, main
from selfprobe.errors.arguments import INSPECT_NAME_BY_TASK
from selfprobe.study._registry import defaults_of, tasks
from selfprobe.study.task_sheet import task_arguments, task_example


def test_every_task_is_there_with_what_it_asks_its_calls_and_its_paper() -> None:
    found = listed_tasks()
    assert [task.name for task in found] == sorted(
        f"selfprobe/{INSPECT_NAME_BY_TASK.get(name, name)}" for name in tasks()
    )
    assert all(task.asks[0].isupper() and task.asks[-1] in "?.)" for task in found)
    assert [task.name for task in found if task.calls is None] == []
    assert [task.name for task in found if task.paper is None] == [
        "selfprobe/injected_thought",
        "selfprobe/outcome_prediction",
    ], "the others are of a paper"


def test_a_task_says_the_options_that_it_cannot_do_without() -> None:
    needs = {task.name: task.needs for task in listed_tasks()}
    assert needs["selfprobe/kth_word"] == ()
    assert needs["selfprobe/pairwise_preference"] == ()
    assert needs["selfprobe/preference_probe"] == ("-T probe=…", "-T dataset=…")
    assert needs["selfprobe/awareness_user_motivation"] == ("--model-role grader=…",)


def test_the_command_prints_a_line_for_each_task_and_the_same_as_json() -> None:
    shown, printed = (CliRunner().invoke(main, ["tasks", *more]) for more in ([], ["--json"]))
    assert shown.exit_code == printed.exit_code == 0
    rows = json.loads(printed.stdout)
    head, *lines = shown.stdout.splitlines()
    assert head.split() == ["task", "paper", "calls", "asks"] and len(lines) == len(rows) == len(
        tasks()
    )
    for line, row in zip(lines, rows, strict=True):
        assert (
            re.split(r" {2,}", line)[:3] == [row["name"], row["paper"] or "–", str(row["calls"])]
            and row["asks"] in line
        )
        assert all(need in line for need in row["needs"])


def test_the_eval_yaml_of_a_folder_lists_its_task_files(root: Path) -> None:
    listed = [yaml.safe_load(path.read_text()) for path in sorted(root.glob("*/eval.yaml"))]
    assert sorted(task["name"] for folder in listed for task in folder["tasks"]) == sorted(
        INSPECT_NAME_BY_TASK.get(name, name) for name in tasks()
    )
    assert all(
        folder["title"] and folder["description"] and folder["contributors"] for folder in listed
    )


def test_each_lint_rule_that_is_off_is_explained(root: Path) -> None:
    off = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["inspect-evals-lint"][
        "ignore"
    ]
    text = (
        (root / "CONTRIBUTING.md")
        .read_text()
        .replace("IETS003 to IETS006", "IETS003 IETS004 IETS005 IETS006")
    )
    assert sorted(set(re.findall(r"\bIE[A-Z]{2}\d{3}\b", text))) == sorted(off)


@pytest.mark.parametrize("task", tasks())
def test_every_argument_of_a_task_is_shown_with_its_meaning_and_its_default(task: str) -> None:
    arguments = task_arguments(task)
    assert [argument.name for argument in arguments] == list(defaults_of(task))
    for argument in arguments:
        assert argument.help, argument
    assert re.match(r"inspect eval (selfprobe/|\w+/\w+\.py).* --model ", task_example(task))


@pytest.mark.parametrize("name", ["kth_word", "selfprobe/kth_word", "introspect_tasks/kth_word.py"])
def test_a_task_is_shown_by_any_of_its_names(
    name: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    shown = CliRunner().invoke(main, ["tasks", name])
    first_line, facts, *_ = shown.output.splitlines()
    assert first_line == "selfprobe/kth_word: Does a model know which word it is about to write?"
    assert facts == "(from the paper on IntrospectBench; 5 calls an item with the defaults)"
    assert "-T k=1,2,3 " in shown.output and "-T same_model=false " in shown.output
    assert "Example:  inspect eval selfprobe/kth_word --model" in shown.output


def test_a_task_as_json_has_its_arguments_and_what_it_cannot_do_without() -> None:
    shown = json.loads(CliRunner().invoke(main, ["tasks", "turn_scan", "--json"]).stdout)
    assert shown["task"]["needs"] == ["--model-role grader=…", "-T log=…"]
    assert {"name": "log", "is_required": True} in [
        {key: argument[key] for key in ("name", "is_required")} for argument in shown["arguments"]
    ]


def test_an_unknown_task_is_refused_with_the_one_that_was_meant() -> None:
    refused = CliRunner().invoke(main, ["tasks", "kth_wrd"])
    assert refused.exit_code == 2
    assert refused.stderr == "Error: no task kth_wrd; did you mean kth_word?\n"


def test_an_unknown_task_is_refused_with_the_names_of_the_table() -> None:
    table = json.loads(CliRunner().invoke(main, ["tasks", "--json"]).stdout)
    refused = CliRunner().invoke(main, ["tasks", "nosuch"])
    names = refused.stderr.removeprefix("Error: no task nosuch; there are ").strip()
    assert names.split(", ") == [task["name"].removeprefix("selfprobe/") for task in table]
    near = CliRunner().invoke(main, ["tasks", "awareness_binry"])
    assert near.stderr == "Error: no task awareness_binry; did you mean awareness_binary?\n"
