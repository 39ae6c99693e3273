"""What an argument may be; a wrong one is refused in one line that names it, what it must be and what came."""

import inspect
import math
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar, cast

import inspect_ai
from inspect_ai import Task

from selfprobe.errors import InputError
from selfprobe.near import meant as meant
from selfprobe.near import nowhere, places_of
from selfprobe.near import unknown as unknown

TaskFunction = TypeVar("TaskFunction", bound=Callable[..., Task])

SAME_MODEL = "same_model"
"""The argument of every task that leaves replies of another model than the one that was asked unscored. A run's samples
have it in their metadata, where solvers find it.
"""


def task(function: TaskFunction) -> TaskFunction:
    """Inspect's `task`, for a function that refuses the name of an argument that it does not have.

    Inspect itself warns of such a name and runs the task with its defaults; only to a function with `**…` does it pass
    every name on. Inspect finds this decorator in a file as it finds its own: by the word `@task`.

    Each task has one argument more, `same_model`: whether replies are unscored that another model wrote than the one
    that was asked.
    """
    signature = inspect.signature(function)
    shared = inspect.Parameter(SAME_MODEL, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=bool)

    @wraps(function)
    def strict(*values: Any, **named: Any) -> Task:
        if wrong := unknown(named, [*signature.parameters, SAME_MODEL]):
            raise InputError(f"{function.__name__} has no argument {wrong}")
        one_of(SAME_MODEL, wanted := named.pop(SAME_MODEL, False), (True, False))
        run = function(*values, **named)
        for sample in run.dataset if wanted else ():
            sample.metadata = {**(sample.metadata or {}), SAME_MODEL: True}
        return run

    every_name = inspect.Parameter("unknown", inspect.Parameter.VAR_KEYWORD)
    parameters = [*signature.parameters.values(), shared, every_name]
    setattr(strict, "__signature__", signature.replace(parameters=parameters))  # noqa: B010  (mypy knows no such attribute)
    return cast(TaskFunction, inspect_ai.task(strict))


def one_of(name: str, value: object, known: Iterable[object]) -> None:
    """Refuse a value that is not among the known ones.

    Raises:
        InputError: With the known values, and the one that was meant where it is close.
    """
    known = list(known)
    if value not in known:
        names = [_shown(one) for one in known]
        listed = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        raise InputError(f"{name} must be {listed}, got {value!r}{meant(value, names)}")


def whole(*, optional: bool = False, **given: object) -> None:
    """Refuse what is no whole number from 1.

    Args:
        optional: Whether None (left out) is right too.
        given: By the arguments' names, what was given for them.

    Raises:
        InputError: It is something else; YAML's `true` is none either.
    """
    for name, value in given.items():
        if not (optional and value is None) and (type(value) is not int or value < 1):
            raise InputError(
                f"{name} must be a whole number from 1{', or left out' if optional else ''}, got {value!r}"
            )


def locate(path: str) -> str:
    """A path that the user gave, made absolute; URLs stay.

    Inspect changes into the task file's folder while it builds a task, so a relative path is looked for
    in the folder that the command was called from (`$PWD` keeps it), then in the current one.

    Raises:
        InputError: Nothing is there (with every place looked in), or something else in either place: `$PWD` may
            also be that of the program which started this one elsewhere. Or this is no path.
    """
    if not isinstance(path, str) or not path.strip():
        raise InputError(f"expected the path of a file or folder, got {path!r}")
    if "://" in path:
        return path
    there = [place for place in places_of(path) if place.exists()]
    if len(there) > 1 and not there[0].samefile(there[1]):
        raise InputError(f"{path!r} may be {there[0]} or {there[1]}; give the whole path")
    if there:
        return str(there[0])
    raise InputError(nowhere(path))


def is_number(value: object) -> bool:
    """Whether `value` is a finite number (True and False are none)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
