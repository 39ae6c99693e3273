"""Checks of arguments; a wrong one is refused in one line that names it, what it must be and what
came.
"""

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import (
    Annotated,
    Any,
    Literal,
    Protocol,
    TypeGuard,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)
from urllib.parse import parse_qsl

import inspect_ai
from inspect_ai import Task
from inspect_ai.dataset import Dataset

from selfprobe.errors import InputError
from selfprobe.errors.inspect_private import also_named
from selfprobe.text.user_input import is_there, nowhere, places_of
from selfprobe.text.user_input import nearest_name_hint as nearest_name_hint
from selfprobe.text.user_input import unknown_names_fault as unknown_names_fault

TaskFunction = TypeVar("TaskFunction", bound=Callable[..., Task])

_AWARENESS_TASKS = (
    "binary",
    "probability",
    "user_motivation",
    "reasoning_trace",
    "first_token",
    "turn_curve",
    "turn_scan",
    "cue_removal",
    "arm_texts",
)
INSPECT_NAME_BY_TASK = {
    **{name: f"awareness_{name}" for name in _AWARENESS_TASKS},
    "rewriting": "prompt_rewriting",
    "outcome": "outcome_prediction",
}
"""A task's name in our tables and options, which its file has → its name in Inspect, which says
what is measured. Inspect finds the task by either.
"""
TASK_BY_INSPECT_NAME = {full: short for short, full in INSPECT_NAME_BY_TASK.items()}

SAME_MODEL = "same_model"
"""The argument of every task that leaves replies of another model than the one that was asked
unscored. A run's samples have it in their metadata, where solvers find it.
"""


def task(function: TaskFunction) -> TaskFunction:
    """Inspect's `task`, for a function that refuses the name of an argument that it does not have.

    Inspect itself warns of such a name and runs the task with its defaults; only to a function with
    `**…` does it pass every name on. Inspect finds this decorator in a file as it finds its own: by
    the word `@task`.

    A parameter `**shared: Unpack[T]` stands for the fields of the TypedDict T: each is an argument
    of the task, whose default is None or what `Annotated` says. An argument that is a `Literal`
    takes its values alone. Each task has one argument more, `same_model`: whether replies are
    unscored that another model wrote than the one that was asked.

    Raises:
        InputError: The file has a task of this name already.
    """
    if hasattr(function.__globals__.get(function.__name__), "__registry_info__"):
        raise InputError(
            f"{function.__code__.co_filename}: two tasks are called {function.__name__}; rename one"
        )
    parameter_by_name = {parameter.name: parameter for parameter in _parameters(function)}
    choices_by_name = {
        name: get_args(parameter.annotation)
        for name, parameter in parameter_by_name.items()
        if get_origin(parameter.annotation) is Literal
    }
    any_name = inspect.Parameter("unknown", inspect.Parameter.VAR_KEYWORD)
    signature = inspect.Signature([*parameter_by_name.values(), any_name], return_annotation=Task)

    @wraps(function)
    def strict_function(*positional: Any, **named: Any) -> Task:
        only_known(function.__name__, named, parameter_by_name)

        arguments = signature.bind_partial(*positional, **named).arguments
        for name, parameter in parameter_by_name.items():
            if parameter.default is parameter.empty and name not in arguments:
                raise InputError(f"{function.__name__} needs {name}: give it by -T {name}=…")
        for name in choices_by_name.keys() & arguments.keys():
            one_of(name, arguments[name], choices_by_name[name])

        is_same_model_wanted = named.pop(SAME_MODEL, False)
        one_of(SAME_MODEL, is_same_model_wanted, (True, False))
        built_task = function(*positional, **named)
        if is_same_model_wanted:
            _mark_samples(built_task.dataset)
        return built_task

    setattr(strict_function, "__signature__", signature)  # noqa: B010  (mypy knows no such attribute)
    registered = inspect_ai.task(strict_function)
    if function.__name__ in TASK_BY_INSPECT_NAME:
        also_named(registered, function.__name__, TASK_BY_INSPECT_NAME[function.__name__])
    return cast(TaskFunction, registered)


@runtime_checkable
class MadeOnReading(Protocol):
    """A data set whose samples are made anew each time that they are read, so that none can be
    changed.
    """

    def add_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Entries that the metadata of every sample gets."""


def _mark_samples(dataset: Dataset) -> None:
    """Note in every sample that replies of another model are unscored."""
    if isinstance(dataset, MadeOnReading):
        dataset.add_metadata({SAME_MODEL: True})
        return
    for sample in dataset:
        sample.metadata = {**(sample.metadata or {}), SAME_MODEL: True}


def only_known(owner: str, names: Iterable[str], known_names: Collection[str]) -> None:
    """Refuse arguments that a task, or a part of one, does not have.

    Raises:
        InputError: A name is not known; says the nearest.
    """
    if names_fault := unknown_names_fault(names, known_names):
        raise InputError(f"{owner} has no argument {names_fault}")


def _parameters(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """A task's arguments: its own, those of a TypedDict that it shares with others, and
    `same_model`.
    """
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            yield parameter
            continue

        (shared_fields,) = get_args(parameter.annotation)
        for name, hint in get_type_hints(shared_fields, include_extras=True).items():
            default = None
            if get_origin(hint) is Annotated:
                hint, default, *_ = get_args(hint)
            yield inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint
            )

    yield inspect.Parameter(
        SAME_MODEL, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=bool
    )


_COLUMN_KEYS = ("kind", "cluster")
"""Names of columns in a data set's address."""


def comparable_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a task in a log, in one form for all ways to give them.

    The subjects of `about` are in one order. The columns in a data set's address are arguments
    `kind` and `cluster`: they say what is counted together.

    >>> comparable_arguments({"about": "other, self", "dataset": "my.jsonl?cluster=template"})
    {'about': 'self,other', 'dataset': 'my.jsonl?cluster=template', 'cluster': 'template'}
    """
    comparable = dict(arguments)
    about = arguments.get("about")
    if isinstance(about, str | list | tuple):
        subjects = about.split(",") if isinstance(about, str) else about
        comparable["about"] = ",".join(
            sorted((str(subject).strip() for subject in subjects), reverse=True)
        )

    _, _, query = str(arguments.get("dataset")).partition("?")
    for name, column in parse_qsl(query):
        if name in _COLUMN_KEYS:
            comparable[name] = column
    return comparable


def one_of(name: str, value: object, known_values: Iterable[object]) -> None:
    """Refuse a value that is not among the known ones.

    Raises:
        InputError: Names the known values, and the one that was meant where it is close.
    """
    known_values = list(known_values)
    if value in known_values:
        return
    known_texts = [_value_text(known_value) for known_value in known_values]
    *first_texts, last_text = known_texts
    listed = f"{', '.join(first_texts)} or {last_text}" if first_texts else last_text
    raise InputError(
        f"{name} must be {listed}, got {value!r}{nearest_name_hint(value, known_texts)}"
    )


def whole(*, optional: bool = False, **arguments: object) -> None:
    """Refuse what is no whole number from 1.

    Args:
        optional: Whether None (left out) is right too.
        arguments: Argument → the value that was passed.

    Raises:
        InputError: It is something else; YAML's `true` is none either.
    """
    expected = "a whole number from 1, or left out" if optional else "a whole number from 1"
    for name, value in arguments.items():
        if optional and value is None:
            continue
        if type(value) is not int or value < 1:
            raise InputError(f"{name} must be {expected}, got {value!r}")


def share(**arguments: object) -> None:
    """Refuse what is no number above 0 and at most 1.

    Args:
        arguments: Argument → the value that was passed.

    Raises:
        InputError: It is something else.
    """
    for name, value in arguments.items():
        if not is_number(value) or not 0 < value <= 1:
            raise InputError(f"{name} must be above 0 and at most 1, got {value!r}")


def whole_numbers(name: str, value: object, low: int, high: int) -> list[int]:
    """The different whole numbers in a comma-separated text, a list or a number, in their order.

    >>> whole_numbers("k", "1, 5,1", 1, 10)
    [1, 5]

    Raises:
        InputError: There is none, or one is something else.
    """
    parts: Sequence[object]
    if isinstance(value, str):
        parts = value.split(",")
    elif isinstance(value, list):
        parts = value
    else:
        parts = [value]
    number_texts = [str(part).strip() for part in parts]
    allowed_texts = {str(number) for number in range(low, high + 1)}
    if not number_texts or not allowed_texts.issuperset(number_texts):
        raise InputError(
            f"{name} must be whole numbers in {low}..{high}, such as {name}=1,5,10; got {value!r}"
        )
    return list(dict.fromkeys(map(int, number_texts)))


def locate(path: str) -> str:
    """A path that the user gave, made absolute; URLs stay.

    Inspect changes into the task file's folder while it builds a task, so a relative path is looked
    for in the folder that the command was called from (`$PWD` keeps it), then in the current one.

    Raises:
        InputError: Nothing is there (with every place looked in), or something else in either
            place: `$PWD` may also be that of the program which started this one elsewhere. Or this
            is no path.
    """
    if not isinstance(path, str) or not path.strip():
        raise InputError(f"expected the path of a file or folder, got {path!r}")
    if "://" in path:
        return path
    existing_places = [place for place in places_of(path) if is_there(place)]
    if not existing_places:
        raise InputError(nowhere(path))
    if len(existing_places) > 1 and not existing_places[0].samefile(existing_places[1]):
        raise InputError(
            f"{path!r} may be {existing_places[0]} or {existing_places[1]}; give the whole path"
        )
    return str(existing_places[0])


def _value_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_number(value: object) -> TypeGuard[int | float]:
    """True if `value` is a finite number (True and False are none)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
