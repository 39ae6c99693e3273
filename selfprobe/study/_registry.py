"""Entry points of Inspect: every task file by name, and the models that need no key."""

import inspect
import pkgutil
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from inspect_ai import Task
from inspect_ai.model import ModelAPI, modelapi

import selfprobe.building
import selfprobe.evalawareness_tasks
import selfprobe.introspect_tasks
import selfprobe.preference_tasks
from selfprobe.errors import InputError, one_line, warn_once
from selfprobe.errors.arguments import INSPECT_NAME_BY_TASK, TASK_BY_INSPECT_NAME
from selfprobe.errors.inspect_private import PrerequisiteError, check_overrides
from selfprobe.providers.planted import planted
from selfprobe.scorers.decision import Measure
from selfprobe.text.docstrings import docstring_summary
from selfprobe.text.extras import install_command

__all__ = ["embedded", "planted", "steered", "tasks"]

TASK_PACKAGES = (
    selfprobe.introspect_tasks,
    selfprobe.evalawareness_tasks,
    selfprobe.preference_tasks,
    selfprobe.building,
)
"""Packages of task files. A file `x.py` there with a task `x` (or its name in FULL) is a task of the
suite.
"""


@modelapi(name="embedded")
def embedded() -> type[ModelAPI]:
    """Models that llama.cpp serves inside this process."""
    # Brings the openai package: 0.8 s of every start otherwise.
    from selfprobe.providers.embedded import EmbeddedAPI

    check_overrides(EmbeddedAPI, ("model_name", "base_url", "api_key", "config", "service"))
    return EmbeddedAPI


@modelapi(name="steered")
def steered() -> type[ModelAPI]:
    """Models of transformers with a vector in the residual stream."""
    try:
        from selfprobe.mechanism.steered import SteeredAPI  # brings torch
    except ImportError as error:
        raise PrerequisiteError(
            f"steered/… needs {error.name}: {install_command('probes')}"
        ) from error
    return SteeredAPI


@cache
def _modules() -> dict[str, ModuleType]:
    """Task → the module of its file, in the order of the files."""
    module_by_file_task: dict[str, ModuleType] = {}
    module_by_task: dict[str, ModuleType] = {}
    for package in TASK_PACKAGES:
        for info in pkgutil.iter_modules(package.__path__):
            try:
                module = import_module(f"{package.__name__}.{info.name}")
            except InputError:
                raise
            except Exception as error:  # a stranger's file may raise anything; the others go on
                error_place = _error_place(error, f"{info.name}.py")
                warn_once(f"{error_place}: {one_line(error)}; its task is left out")
                continue
            for task_name in _task_names(module):
                first_module = module_by_task.setdefault(task_name, module)
                if first_module is not module:
                    raise InputError(
                        f"two task files have a task {task_name}: {first_module.__file__} and "
                        f"{module.__file__}; rename one"
                    )
                if task_name == TASK_BY_INSPECT_NAME.get(info.name, info.name):
                    module_by_file_task[task_name] = module
    return module_by_file_task


def _task_names(module: ModuleType) -> list[str]:
    """Short names of the tasks that a module defines."""
    task_names = []
    for member in vars(module).values():
        registry_info = getattr(member, "__registry_info__", None)
        is_task = getattr(registry_info, "type", None) == "task"
        if is_task and member.__module__ == module.__name__:
            task_names.append(TASK_BY_INSPECT_NAME.get(member.__name__, member.__name__))
    return task_names


def _error_place(error: Exception, file_name: str) -> str:
    """File and line of a task file's error."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}"
    file_frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).name == file_name
    ]
    if not file_frames:
        return file_name
    return f"{file_frames[-1].filename}, line {file_frames[-1].lineno}"


def tasks() -> dict[str, Callable[..., Task]]:
    """The suite's tasks, by the names of their files."""
    return {
        name: getattr(module, INSPECT_NAME_BY_TASK.get(name, name))
        for name, module in _modules().items()
    }


def short_name(task: str) -> str:
    """A task as `inspect eval` takes it, by its registry name or the path of its file, as `tasks`
    names it.
    """
    file = Path(task.partition("@")[0])
    if file.suffix == ".py" and file.is_file():
        for name, module in _modules().items():
            if module.__file__ and file.samefile(module.__file__):
                return name
        return task
    name = task.removeprefix("selfprobe/")
    return TASK_BY_INSPECT_NAME.get(name, name)


def docstring_of(task: str) -> str:
    """A task file's docstring."""
    return _modules()[task].__doc__ or ""


def summary_of(task: str) -> str:
    """The first paragraph of a task file's docstring."""
    return docstring_summary(docstring_of(task))


def paper_of(task: str) -> str | None:
    """Name of the paper that a task is from; a task file says it as PAPER."""
    paper = getattr(_modules()[task], "PAPER", None)
    assert paper is None or isinstance(paper, str), task
    return paper


def declared_calls(task: str) -> int | None:
    """CALLS of a task file without MEASURE: calls for an item with the default arguments."""
    calls = getattr(_modules()[task], "CALLS", None)
    assert calls is None or isinstance(calls, int), task
    return calls


def needs_of(task: str) -> tuple[str, ...]:
    """The options that a run of a task needs in addition to the model; a task file says them as
    NEEDS.
    """
    return tuple(getattr(_modules()[task], "NEEDS", ()))


def defaults_of(task: str) -> dict[str, Any]:
    """A task's arguments with their default values."""
    parameters = inspect.signature(tasks()[task]).parameters.values()
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.kind is not parameter.VAR_KEYWORD
    }


def measures() -> Mapping[str, Measure]:
    """`MEASURE` of the tasks that can be in a matrix.

    Raises:
        InputError: A `MEASURE` that does not fit its task; names the file.
    """
    return {
        task: _checked_measure(module.__file__, module.MEASURE)
        for task, module in _modules().items()
        if hasattr(module, "MEASURE")
    }


def takes_about(task: str) -> bool:
    """True if a task can ask about another assistant, and tell an observer of its target (`-T
    about=`).
    """
    return "about" in defaults_of(task)


def _checked_measure(file: str | None, measure: object) -> Measure:
    if not isinstance(measure, Measure):
        raise InputError(f"{file}: MEASURE must be a Measure, got {type(measure).__name__}")
    if isinstance(measure.acts, str):
        raise InputError(
            f"{file}: acts of MEASURE must be a tuple, such as ('answer',), got {measure.acts!r}"
        )
    if measure.observer < 0 or measure.target < 0 or not measure.acts:
        raise InputError(
            f"{file}: expected MEASURE to have acts and no negative calls; got acts "
            f"{measure.acts}, {measure.observer} of the observer, {measure.target} of the target"
        )
    return measure


tasks()
# Scout looks its scanners up here, and nobody else needs to wait for it.
if "inspect_scout" in sys.modules:
    import_module("selfprobe.scout")
