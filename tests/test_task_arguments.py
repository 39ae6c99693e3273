"""A task argument that a task does not have is refused, by whatever way the task is called."""

import ast
import os
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task, eval, eval_set, list_tasks, task_with
from inspect_ai._util.registry import registry_params
from inspect_ai.log import read_eval_log

from selfprobe.errors import InputError
from selfprobe.errors.arguments import (
    INSPECT_NAME_BY_TASK,
    comparable_arguments,
    task,
    unknown_names_fault,
)
from selfprobe.errors.inspect_private import load_tasks, registry_info
from selfprobe.evalawareness_tasks.binary import awareness_binary
from selfprobe.logs import arguments_of, identity_of
from selfprobe.study import _registry
from selfprobe.study.described import DescribedRun, NamedModel
from selfprobe.study.waves import RunSettings, run_wave
from tests.trees import parsed

ROOT = Path(__file__).parent.parent
NAMES = sorted(_registry.tasks())


def specs_of(name: str) -> list[str]:
    """How users name the task: by name, and by its file (relative, since Inspect globs) where
    Inspect finds it there.
    """
    [path] = [
        path
        for folder in _registry.TASK_PACKAGES
        for path in Path(next(iter(folder.__path__))).glob(f"{name}.py")
    ]
    return [
        f"selfprobe/{name}",
        *([os.path.relpath(path)] if "\n@task\n" in path.read_text() else []),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_task_refuses_an_argument_that_it_does_not_have_by_name_and_by_path(
    name: str,
) -> None:
    wrong = next(iter(_registry.defaults_of(name))) + "s"
    for spec in specs_of(name):
        with pytest.raises(InputError) as error:
            load_tasks([spec], {wrong: 0})
        assert (
            str(error.value)
            == f"{INSPECT_NAME_BY_TASK.get(name, name)} has no argument {wrong}; did you mean {wrong[:-1]}?"
        )


def test_all_wrong_names_stand_in_one_line_with_the_nearest_of_each() -> None:
    with pytest.raises(InputError) as error:
        load_tasks(["selfprobe/kth_word"], {"resample": 0, "kk": 3, "act_tokens": 5})
    assert (
        str(error.value) == "kth_word has no argument resample or kk; did you mean resamples or k?"
    )


def test_an_argument_of_a_few_values_takes_no_other() -> None:
    with pytest.raises(InputError, match="resamples must be 0 or 1, got 2"):
        _registry.tasks()["kth_word"]("1", 2)


def test_columns_in_the_address_of_a_data_set_are_arguments_of_what_counts_together() -> None:
    address = "my.jsonl?kind=topic&cluster=template&split=test"
    assert comparable_arguments({"dataset": address, "k": 3}) == {
        "dataset": address,
        "k": 3,
        "kind": "topic",
        "cluster": "template",
    }


def test_order_and_form_of_about_make_no_other_run() -> None:
    for about in ("self,other", "other, self", ["other", "self"]):
        assert arguments_of("kth_word", {"about": about}) == (("about", "self,other"),)
    assert arguments_of("kth_word", {"about": "self"}) == ()


def test_groups_in_an_address_make_another_run_and_the_folder_does_not() -> None:
    found = arguments_of("kth_word", {"dataset": "/a/my.jsonl?kind=topic&cluster=template"})
    assert found == (("cluster", "template"), ("kind", "topic"))
    assert found == arguments_of("kth_word", {"dataset": "b.csv?cluster=template&kind=topic"})


def test_a_name_that_is_near_nothing_is_told_the_names_that_there_are() -> None:
    assert unknown_names_fault({"zzz": 1}, ("act", "limit")) == "zzz; there are act, limit"
    assert unknown_names_fault({"act": 1}, ("act", "limit")) == ""


def test_a_call_from_python_is_refused_alike() -> None:
    with pytest.raises(
        InputError, match=r"^kth_word has no argument resample; did you mean resamples\?$"
    ):
        _registry.tasks()["kth_word"](resample=0)


def test_the_logged_arguments_and_the_name_are_those_of_inspects_own_decorator(
    tmp_path: Path,
) -> None:
    [log] = eval(
        "selfprobe/kth_word",
        model="planted/a",
        task_args={"resamples": 0},
        limit=1,
        log_dir=str(tmp_path),
        display="none",
    )
    header = read_eval_log(log.location, header_only=True).eval
    assert header.task == "selfprobe/kth_word" and header.task_args_passed == {"resamples": 0}
    assert header.task_args == _registry.defaults_of("kth_word") | {"resamples": 0}


def test_inspect_lists_the_tasks_that_it_listed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for folder in ("introspect_tasks", "evalawareness_tasks", "preference_tasks", "building"):
        bare = {
            node.name
            for path in Path(folder).glob("*.py")
            for node in parsed(path).body
            if isinstance(node, ast.FunctionDef)
            and any(isinstance(d, ast.Name) and d.id == "task" for d in node.decorator_list)
        }
        assert {info.name for info in list_tasks(folder, root_dir=ROOT)} == bare
        assert (folder == "building") is (not bare)


def test_a_task_file_of_a_user_that_takes_our_decorator_is_found_and_refuses_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(
        "from inspect_ai import Task\n\nfrom selfprobe.errors.arguments import task\n\n\n"
        "@task\ndef mine(depth: int = 1) -> Task:\n    return Task()\n"
    )
    monkeypatch.chdir(tmp_path)
    assert [info.name for info in list_tasks(root_dir=tmp_path)] == ["mine"]
    assert [one.name for one in load_tasks(["mine.py"], {"depth": 2})] == ["mine"]
    with pytest.raises(InputError, match="mine has no argument dept; did you mean depth"):
        load_tasks(["mine.py"], {"dept": 2})


def test_a_function_keeps_its_name_its_text_and_its_parameters() -> None:
    def plain(depth: int = 1) -> Task:
        """What it does."""
        return Task()

    made: Any = task(plain)
    assert (made.__name__, made.__doc__) == ("plain", "What it does.")
    assert registry_info(made).name == "plain"
    assert registry_params(made(3)) == {"depth": 3}


@pytest.mark.slow(1)
def test_a_task_is_found_by_its_short_name_too_and_its_runs_have_the_full_one(
    tmp_path: Path,
) -> None:
    file = os.path.relpath(ROOT / "evalawareness_tasks" / "binary.py")
    for spec in ("selfprobe/binary", "selfprobe/awareness_binary", file, f"{file}@binary"):
        [made] = load_tasks([spec], {"decisions": 25})
        assert (
            made.name.rpartition("/")[2] == "awareness_binary" and made.metadata["decisions"] == 25
        ), spec
    assert arguments_of("binary", {"decisions": 5}) == (), "defaults are known by the short name"


@pytest.mark.slow(3)
def test_runs_under_the_short_and_the_full_name_are_one_run(tmp_path: Path) -> None:
    quiet: Any = {"model": "planted/a", "limit": 2, "display": "none", "log_dir": str(tmp_path)}
    (old,) = eval(task_with(awareness_binary(), name="selfprobe/binary"), **quiet)
    (new,) = eval("selfprobe/binary", **quiet)
    assert (old.eval.task, new.eval.task) == ("selfprobe/binary", "selfprobe/awareness_binary")
    assert identity_of(old) == identity_of(new) and identity_of(new).task == "binary"


@pytest.mark.slow(3)
def test_a_run_under_the_short_name_is_finished_and_not_asked_again(tmp_path: Path) -> None:
    quiet: Any = {"limit": 2, "display": "none"}
    (old,) = eval_set(
        task_with(awareness_binary(), name="selfprobe/binary"),
        model="planted/a",
        log_dir=str(tmp_path),
        **quiet,
    )[1]
    made = DescribedRun("binary", {}, NamedModel("planted/a"))
    (log,) = run_wave(
        [made], str(tmp_path), title="", settings=RunSettings(display="none"), limit=2
    )
    assert log.eval.run_id == old.eval.run_id and len(list(tmp_path.glob("*.eval"))) == 1


STRANGER = """
from inspect_ai import Task
from selfprobe.task import task

@task
def mine(k: int = 1) -> Task:
    return Task()
"""


def test_a_strangers_file_with_two_tasks_of_one_name_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(STRANGER)
    for _ in range(2):
        assert len(load_tasks([os.path.relpath(file)])) == 1, (
            "the same file once more is no second task"
        )
    with pytest.raises(InputError, match=r"^mine has no argument kk; did you mean k\?$"):
        load_tasks([os.path.relpath(file)], {"kk": 2})
    file.write_text(STRANGER + STRANGER)
    with pytest.raises(InputError, match=r"mine\.py: two tasks are called mine; rename one$"):
        load_tasks([os.path.relpath(file)])
