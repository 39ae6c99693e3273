"""Entry points of Inspect: every task file by name, and the models that need no key."""

import inspect
import pkgutil
import re
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
from selfprobe.errors.arguments import FULL, SHORT
from selfprobe.errors.inspect_private import PrerequisiteError, check_overrides
from selfprobe.providers.planted import planted
from selfprobe.scorers.decision import Measure
from selfprobe.text.docstrings import docstring_summary

__all__ = ["embedded", "planted", "steered", "tasks"]

FOLDERS = (
    selfprobe.introspect_tasks,
    selfprobe.evalawareness_tasks,
    selfprobe.preference_tasks,
    selfprobe.building,
)
"""Folders of task files. A file `x.py` there with a task `x` (or its name in FULL) is a task of the
suite.
"""


@modelapi(name="embedded")
def embedded() -> type[ModelAPI]:
    """Models that llama.cpp serves inside this process."""
    from selfprobe.providers.embedded import (
        EmbeddedAPI,
    )  # brings the openai package: 0.8 s of every start otherwise

    check_overrides(EmbeddedAPI, ("model_name", "base_url", "api_key", "config", "service"))
    return EmbeddedAPI


@modelapi(name="steered")
def steered() -> type[ModelAPI]:
    """Models of transformers with a vector in the residual stream."""
    try:
        from selfprobe.mechanism.steered import SteeredAPI  # brings torch
    except ImportError as error:
        raise PrerequisiteError(
            f"steered/… needs {error.name}: pip install 'selfprobe[probes]'"
        ) from error
    return SteeredAPI


@cache
def _modules() -> dict[str, ModuleType]:
    modules: dict[str, ModuleType] = {}
    homes: dict[str, ModuleType] = {}
    for folder in FOLDERS:
        for info in pkgutil.iter_modules(folder.__path__):
            try:
                module = import_module(f"{folder.__name__}.{info.name}")
            except InputError:
                raise
            except (
                Exception
            ) as error:  # a stranger's file may raise anything; the other tasks go on
                warn_once(
                    f"{_place(error, f'{info.name}.py')}: {one_line(error)}; its task is left out"
                )
                continue
            for task in vars(module).values():
                kind = getattr(getattr(task, "__registry_info__", None), "type", None)
                if kind != "task" or task.__module__ != module.__name__:
                    continue
                name = SHORT.get(task.__name__, task.__name__)
                if (home := homes.setdefault(name, module)) is not module:
                    raise InputError(
                        f"two task files have a task {name}: {home.__file__} and {module.__file__}; rename one"
                    )
                if name == SHORT.get(info.name, info.name):
                    modules[name] = module
    return modules


def _place(error: Exception, file: str) -> str:
    """File and line of a task file's error."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).name == file
    ]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else file


def tasks() -> dict[str, Callable[..., Task]]:
    """The suite's tasks, by the names of their files."""
    return {name: getattr(module, FULL.get(name, name)) for name, module in _modules().items()}


def short_name(task: str) -> str:
    """A task as `inspect eval` takes it, by its registry name or the path of its file, as `tasks`
    names it.
    """
    file = Path(task.partition("@")[0])
    if file.suffix == ".py" and file.is_file():
        ours = (
            name
            for name, module in _modules().items()
            if module.__file__ and file.samefile(module.__file__)
        )
        return next(ours, task)
    name = task.removeprefix("selfprobe/")
    return SHORT.get(name, name)


def summary_of(task: str) -> str:
    """The first paragraph of a task file's docstring."""
    return docstring_summary(_modules()[task].__doc__)


def paper_of(task: str) -> str | None:
    """The number of the paper that a task file's docstring names first, where it names one."""
    named = re.search(r"\bPaper (\d{3})\b", _modules()[task].__doc__ or "")
    return named[1] if named else None


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
        task: _checked(m.__file__, m.MEASURE)
        for task, m in _modules().items()
        if hasattr(m, "MEASURE")
    }


def takes_about(task: str) -> bool:
    """True if a task can ask about another assistant, and tell an observer of its target (`-T
    about=`).
    """
    return "about" in defaults_of(task)


def _checked(file: str | None, measure: object) -> Measure:
    if not isinstance(measure, Measure):
        raise InputError(f"{file}: MEASURE must be a Measure, got {type(measure).__name__}")
    if isinstance(measure.acts, str):
        raise InputError(
            f"{file}: acts of MEASURE must be a tuple, such as ('answer',), got {measure.acts!r}"
        )
    if measure.observer < 0 or measure.target < 0 or not measure.acts:
        raise InputError(
            f"{file}: expected MEASURE to have acts and no negative calls; got acts {measure.acts}, "
            f"{measure.observer} of the observer, {measure.target} of the target"
        )
    return measure


tasks()
if (
    "inspect_scout" in sys.modules
):  # Scout looks its scanners up here, and nobody else needs to wait for it
    import_module("selfprobe.scout")
