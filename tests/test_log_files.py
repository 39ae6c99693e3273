"""Which files of a folder are logs: what Inspect reads, under whatever name; every other file is
named or passed over.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, Solver, TaskState, solver

from selfprobe.cli import main
from selfprobe.errors import InputError
from selfprobe.logs import logs_in, readable_logs, samples, summaries, transcripts

TIMED = "2026-01-01T00-00-00-00-00_mine_abc"
Entries = dict[str, Any]


@solver
def silent() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state

    return solve


@pytest.fixture(scope="module")
def log(run_task: Any, tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    """A finished run of four samples of another suite."""
    rows = [Sample(id=n, input="?", target="e") for n in range(4)]
    task = Task(dataset=rows, solver=silent(), scorer=includes(), name="mine")
    folder = tmp_path_factory.mktemp("one")
    run_task(task, "planted/a", folder)
    return read_eval_log(str(next(folder.glob("*.eval"))))


@pytest.fixture(scope="module")
def entries(log: EvalLog, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its text in JSON."""
    file = tmp_path_factory.mktemp("json") / f"{TIMED}.json"
    write_eval_log(log, str(file))
    return file.read_text()


def checked(folder: Path) -> tuple[int, str]:
    """Status and output of `check`, whose folder's name is left out."""
    done = CliRunner().invoke(main, ["check", str(folder)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output.replace(f"file://{folder}/", "").replace(
        str(folder), "FOLDER"
    )


@pytest.mark.parametrize(
    "name",
    [
        f"{TIMED}.eval",
        f"{TIMED}.json",
        "run1.eval",
        "run1.json",
        "night/run 1#.json",
        "a/b/c/run1.eval",
        "x.json/run1.json",
        "x.eval/run1.eval",
    ],
)
def test_a_log_is_found_whatever_its_name_and_place(
    name: str, log: EvalLog, tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    write_eval_log(log, str(tmp_path / name))
    assert [Path(file).name for file in logs_in(str(tmp_path))] == [Path(name).name]
    assert checked(tmp_path)[0] == checked(tmp_path / name)[0] == 0


def test_seven_logs_in_json_without_a_time_in_their_names_are_seven_runs(
    log: EvalLog, tmp_path: Path
) -> None:
    for number in range(7):
        edited = log.model_copy(deep=True)
        edited.eval.task = f"task{number}"
        write_eval_log(edited, str(tmp_path / f"run{number}.json"))
    status, output = checked(tmp_path)
    assert status == 0 and "7 of 7 runs good" in output


def lacks(name: str) -> Callable[[Entries], None]:
    def change(entries: Entries) -> None:
        del entries[name]

    return change


def has(name: str, value: object) -> Callable[[Entries], None]:
    def change(entries: Entries) -> None:
        entries[name] = value

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lacks("version"), "Unable to read version of log format."),
        (has("version", "2"), "Unable to read version of log format."),
        (has("version", 99), "Unable to read version 99 of log format."),
        (lacks("status"), "an entry of a log is missing or wrong (Must encounter a 'status')"),
        (lacks("eval"), "an entry of a log is missing or wrong (Must encounter a 'eval')"),
        (lacks("plan"), "an entry of a log is missing or wrong (Must encounter a 'plan')"),
        (lacks("stats"), "an entry of a log is missing or wrong (Must encounter a 'stats')"),
        (has("status", "done"), "an entry of a log is missing or wrong"),
    ],
)
def test_a_log_in_json_that_lacks_an_entry_is_one_line(
    change: Callable[[Entries], None], why: str, entries: str, tmp_path: Path
) -> None:
    edited = json.loads(entries)
    change(edited)
    (tmp_path / f"{TIMED}.json").write_text(json.dumps(edited))
    status, output = checked(tmp_path)
    assert status == 3 and len(output.splitlines()) == 2, output
    assert f"{TIMED}.json  bad: cannot be read: {why}" in output
    with pytest.raises(InputError, match="cannot be read"):
        summaries(str(tmp_path / f"{TIMED}.json")) and samples(str(tmp_path / f"{TIMED}.json"))


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("started", "still running, or killed"),
        ("cancelled", "interrupted"),
        ("error", "failed"),
        ("success", ""),
    ],
)
@pytest.mark.parametrize("ending", ["eval", "json"])
def test_a_log_of_every_status_is_read(
    status: Any, text: str, ending: str, log: EvalLog, tmp_path: Path
) -> None:
    write_eval_log(log.model_copy(update={"status": status}), str(tmp_path / f"a.{ending}"))
    code, output = checked(tmp_path)
    assert code == (3 if text else 0) and (f"bad: {text}\n" in output or not text), output


def test_files_that_are_no_logs_are_passed_over_by_name(log: EvalLog, tmp_path: Path) -> None:
    write_eval_log(log, str(tmp_path / "a.eval"))
    contents = {
        "table": '[{"eval": 1}]',
        "half": '{"a":',
        "empty": "",
        "plan": '{"eval": {"model": "x"}}',
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.json").write_text(content)
    (tmp_path / "notes.txt").write_text("eval")
    for companion in (
        "eval-set.json",
        "logs.json",
        "running.json",
    ):  # are there in every log folder
        (tmp_path / companion).write_text("{}")
    (tmp_path / "folder.json").mkdir()
    status, output = checked(tmp_path)
    assert (
        status == 0
        and "Passed over: empty.json, half.json, plan.json and 1 more are no Inspect logs."
        in output
    )
    assert (
        len(readable_logs([str(tmp_path)]).no_logs) == 4
        and not readable_logs([str(tmp_path)]).ignored
    )


def test_a_folder_without_a_log_says_what_lies_there(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("{}")
    assert checked(tmp_path) == (2, "Error: no log in FOLDER; notes.json is no Inspect log\n")
    (tmp_path / "notes.json").unlink()
    assert checked(tmp_path) == (2, "Error: no log in FOLDER\n")


@pytest.mark.parametrize("ending", [".EVAL", ".JSON", ".Json"])
def test_an_ending_in_capitals_is_said_to_be_unread_by_inspect(
    ending: str, log: EvalLog, tmp_path: Path
) -> None:
    write_eval_log(log, str(tmp_path / f"a{ending.lower()}"))
    (tmp_path / f"a{ending.lower()}").rename(tmp_path / f"a{ending}")
    why = f"cannot be read: Inspect reads no file that ends in {ending}; rename it to {ending.lower()}"
    status, output = checked(tmp_path)
    assert status == 3 and f"a{ending}  bad: {why}" in output
    assert checked(tmp_path / f"a{ending}") == (2, f"Error: FOLDER {why}\n")


@pytest.mark.parametrize("name", [f"{TIMED}.json", "a.eval"])
def test_an_empty_file_under_a_logs_name_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    status, output = checked(tmp_path)
    assert (
        status == 3 and f"{name}  bad: cannot be read: " in output and len(output.splitlines()) == 2
    )


def repeated(entries: Entries) -> None:
    entries["samples"] += entries["samples"][:2]


def repeated_with_other_uuids(entries: Entries) -> None:
    entries["samples"] += [
        sample | {"uuid": f"u{n}"} for n, sample in enumerate(entries["samples"])
    ]


def repeated_as_text(entries: Entries) -> None:
    entries["samples"].append(entries["samples"][1] | {"id": "1", "uuid": "u"})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (repeated, "0 and 0 of epoch 1, and 1 more"),
        (repeated_with_other_uuids, "0 and 0 of epoch 1, and 3 more"),
        (repeated_as_text, "1 and '1' of epoch 1"),
    ],
)
def test_samples_that_have_one_id_and_epoch_are_refused_by_name(
    change: Callable[[Entries], None], why: str, entries: str, tmp_path: Path
) -> None:
    edited = json.loads(entries)
    change(edited)
    file = tmp_path / f"{TIMED}.json"
    file.write_text(json.dumps(edited))
    status, output = checked(tmp_path)
    assert (
        status == 3
        and f"cannot be read: samples have the same id and epoch: {why}; run it again" in output
    )
    for read in (summaries, samples, lambda log: list(transcripts(log))):
        with pytest.raises(InputError, match="samples have the same id and epoch"):
            read(str(file))
