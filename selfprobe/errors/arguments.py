"""Checks of arguments; a wrong one is refused in one line that names it, what it must be and what
came.
"""

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping
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
from selfprobe.text.user_input import meant as meant
from selfprobe.text.user_input import unknown as unknown

TaskFunction = TypeVar("TaskFunction", bound=Callable[..., Task])

_AWARENESS = "binary probability user_motivation reasoning_trace first_token turn_curve turn_scan cue_removal arm_texts"
FULL = {
    **{name: f"awareness_{name}" for name in _AWARENESS.split()},
    "rewriting": "prompt_rewriting",
    "outcome": "outcome_prediction",
}
"""A task's name in our tables and options, which its file has → its name in Inspect, which says
what is measured.

Logs of versions up to 0.2.0 have the short name in Inspect too; Inspect finds the task by either.
"""
SHORT = {full: short for short, full in FULL.items()}

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
    parameters = {one.name: one for one in _parameters(function)}
    choices = {
        name: get_args(one.annotation)
        for name, one in parameters.items()
        if get_origin(one.annotation) is Literal
    }
    every_name = inspect.Parameter("unknown", inspect.Parameter.VAR_KEYWORD)
    signature = inspect.Signature([*parameters.values(), every_name], return_annotation=Task)

    @wraps(function)
    def strict(*values: Any, **named: Any) -> Task:
        if now := renamed(named, parameters):
            raise InputError(f"{function.__name__} has no argument {now}")
        only_known(function.__name__, named, parameters)
        given = signature.bind_partial(*values, **named).arguments
        for name, one in parameters.items():
            if one.default is one.empty and name not in given:
                raise InputError(f"{function.__name__} needs {name}: give it by -T {name}=…")
        for name in choices.keys() & given.keys():
            one_of(name, given[name], choices[name])
        one_of(SAME_MODEL, wanted := named.pop(SAME_MODEL, False), (True, False))
        run = function(*values, **named)
        if wanted:
            _mark_samples(run.dataset)
        return run

    setattr(strict, "__signature__", signature)  # noqa: B010  (mypy knows no such attribute)
    known = inspect_ai.task(strict)
    if function.__name__ in SHORT:
        also_named(known, function.__name__, SHORT[function.__name__])
    return cast(TaskFunction, known)


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


def only_known(who: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuse arguments that a task, or a part of one, does not have.

    Raises:
        InputError: A name is not known; says the nearest.
    """
    if wrong := unknown(names, known):
        raise InputError(f"{who} has no argument {wrong}")


def _parameters(function: Callable[..., Any]) -> Iterable[inspect.Parameter]:
    """A task's arguments: its own, those of a TypedDict that it shares with others, and
    `same_model`.
    """
    for one in inspect.signature(function).parameters.values():
        if one.kind is not one.VAR_KEYWORD:
            yield one
            continue
        (shared,) = get_args(one.annotation)
        for name, hint in get_type_hints(shared, include_extras=True).items():
            kind, *more = get_args(hint) if get_origin(hint) is Annotated else (hint, None)
            yield inspect.Parameter(name, one.KEYWORD_ONLY, default=more[0], annotation=kind)
    yield inspect.Parameter(
        SAME_MODEL, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=bool
    )


_NOW = {
    "frame": {"self": "self", "other": "other", "both": "self,other"},
    "observer": {"replayed": "self", "asked": "named"},
}
"""Values of two old arguments → values of `about`."""
_COLUMNS = {"match": "kind", "cluster": "cluster"}
"""Old arguments that name a column, and their names in a data set's address."""


def renamed(arguments: Mapping[str, Any], known: Collection[str]) -> str:
    """The end of a message about the first argument that has another name now, with what to type;
    "" without one.

    >>> renamed({"frame": "both"}, ["k", "about"])
    'frame any more: say about=self,other'
    >>> renamed({"cluster": "template", "dataset": "my.jsonl"}, ["dataset"])
    "cluster any more: say dataset='my.jsonl?cluster=template'"
    """
    for name in (name for name in arguments if name not in known):
        value = str(arguments[name])
        if name in _NOW and "about" in known:
            return f"{name} any more: say about={_NOW[name].get(value, value)}"
        if name in _COLUMNS and "dataset" in known:
            data = arguments.get("dataset") or "DATA"
            return f"{name} any more: say dataset='{data}{'&' if '?' in str(data) else '?'}{_COLUMNS[name]}={value}'"
    return ""


def as_now(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a task in a log, with those that had another name in versions up to 0.2.0
    under that of today.

    The columns in a data set's address are arguments `kind` and `cluster`: they say what is counted
    together.

    >>> as_now({"frame": "self", "observer": "asked", "match": "topic", "target_log": None})
    {'target_log': None, 'about': 'named', 'kind': 'topic'}
    >>> as_now({"dataset": "my.jsonl?cluster=template"})
    {'dataset': 'my.jsonl?cluster=template', 'cluster': 'template'}
    """
    old = (
        {*_NOW, *_COLUMNS} if "target_log" in args else set[str]()
    )  # every task that had them has this one
    out = {name: value for name, value in args.items() if name not in old}
    if "about" not in args and (
        of := [str(args[name]) for name in reversed(_NOW) if name in args and name in old]
    ):
        said = [_NOW["observer"].get(one, _NOW["frame"].get(one, one)) for one in of]
        out["about"] = next((one for one in said if one != "self"), "self")
    if isinstance(whom := out.get("about"), str | list | tuple):
        parts = whom.split(",") if isinstance(whom, str) else whom
        out["about"] = ",".join(sorted((str(one).strip() for one in parts), reverse=True))
    columns = {
        _COLUMNS[name]: args[name] for name in old & _COLUMNS.keys() if args.get(name) is not None
    }
    _, _, query = str(args.get("dataset")).partition("?")
    columns |= {name: value for name, value in parse_qsl(query) if name in _COLUMNS.values()}
    return out | columns


def one_of(name: str, value: object, known: Iterable[object]) -> None:
    """Refuse a value that is not among the known ones.

    Raises:
        InputError: Names the known values, and the one that was meant where it is close.
    """
    known = list(known)
    if value not in known:
        names = [_shown(one) for one in known]
        listed = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        raise InputError(f"{name} must be {listed}, got {value!r}{meant(value, names)}")


def whole(*, optional: bool = False, **arguments: object) -> None:
    """Refuse what is no whole number from 1.

    Args:
        optional: Whether None (left out) is right too.
        arguments: Argument → the value that was passed.

    Raises:
        InputError: It is something else; YAML's `true` is none either.
    """
    for name, value in arguments.items():
        if not (optional and value is None) and (type(value) is not int or value < 1):
            raise InputError(
                f"{name} must be a whole number from 1{', or left out' if optional else ''}, got {value!r}"
            )


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
    parts = (
        value.split(",")
        if isinstance(value, str)
        else value
        if isinstance(value, list)
        else [value]
    )
    texts = [str(part).strip() for part in parts]
    if not texts or any(text not in map(str, range(low, high + 1)) for text in texts):
        raise InputError(
            f"{name} must be whole numbers in {low}..{high}, such as {name}=1,5,10; got {value!r}"
        )
    return list(dict.fromkeys(map(int, texts)))


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
    there = [place for place in places_of(path) if is_there(place)]
    if len(there) > 1 and not there[0].samefile(there[1]):
        raise InputError(f"{path!r} may be {there[0]} or {there[1]}; give the whole path")
    if there:
        return str(there[0])
    raise InputError(nowhere(path))


def is_number(value: object) -> TypeGuard[int | float]:
    """True if `value` is a finite number (True and False are none)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
