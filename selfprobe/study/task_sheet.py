"""The arguments of a task with their defaults and meanings, as its own docstrings say them."""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args

from selfprobe.errors.arguments import INSPECT_NAME_BY_TASK, SAME_MODEL
from selfprobe.study._registry import docstring_of, tasks

SAME_MODEL_HELP = (
    "Leave a reply unscored if the vendor says that it is from another model than the one that was "
    "asked."
)


@dataclass(frozen=True)
class TaskArgument:
    """An argument of a task, as `-T NAME=VALUE` gives it."""

    name: str
    default: Any
    """None where the task has a default of its own, or none."""
    is_required: bool
    help: str

    @property
    def label(self) -> str:
        """What one types: `-T k=1,2,3`, with the default; `-T probe=…` where there must be one."""
        if self.is_required:
            return f"-T {self.name}=…"
        if self.default is None:
            return f"-T {self.name}"
        value = str(self.default).lower() if isinstance(self.default, bool) else self.default
        return f"-T {self.name}={value}"


def task_arguments(task: str) -> list[TaskArgument]:
    """The arguments of a task, in the order of its signature."""
    function = tasks()[task]
    help_by_name = {SAME_MODEL: SAME_MODEL_HELP, **_shared_help(function), **_own_help(function)}
    arguments = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        is_required = parameter.default is parameter.empty
        arguments.append(
            TaskArgument(
                name=parameter.name,
                default=None if is_required else parameter.default,
                is_required=is_required,
                help=help_by_name.get(parameter.name, ""),
            )
        )
    return arguments


def task_example(task: str) -> str:
    """The first command of a task file's docstring that names the task as `inspect eval` finds it
    anywhere, else the first one.
    """
    commands = list(_commands(docstring_of(task)))
    full_name = f"selfprobe/{INSPECT_NAME_BY_TASK.get(task, task)} "
    for command in commands:
        if full_name in command:
            return command
    return commands[0] if commands else f"inspect eval {full_name}--model planted/ada --limit 10"


def _commands(docstring: str) -> Iterator[str]:
    joined_lines = re.sub(r"\\\n\s*", "", docstring)
    for line in joined_lines.splitlines():
        if re.match(r" {4}inspect eval ", line):
            yield re.sub(r"  #.*", "", line).strip()


def _own_help(function: Callable[..., Any]) -> dict[str, str]:
    """Argument → its line in the function's docstring."""
    docstring = inspect.getdoc(function) or ""
    _, _, section = docstring.partition("Args:\n")
    help_by_name: dict[str, str] = {}
    names: list[str] = []
    for line in textwrap.dedent(section).splitlines():
        argument = re.match(r"(\w+(?:, \w+)*): (.*)", line)
        if argument:
            names = argument[1].split(", ")
            help_by_name.update(dict.fromkeys(names, argument[2]))
        elif not line.startswith(" "):
            names = []
        else:
            for name in names:
                help_by_name[name] += f" {line.strip()}"
    return help_by_name


def _shared_help(function: Callable[..., Any]) -> dict[str, str]:
    """Argument → the text under its field in the TypedDict that several tasks share."""
    help_by_name = {}
    written_signature = inspect.signature(inspect.unwrap(function), follow_wrapped=False)
    for parameter in written_signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            (shared_fields,) = get_args(parameter.annotation)
            help_by_name.update(_field_help(shared_fields))
    return help_by_name


def _field_help(fields_class: type) -> dict[str, str]:
    """Field → the text under it, those of the classes that it extends too.

    A TypedDict forgets its bases before Python 3.12, so they are read in its source.
    """
    [definition] = ast.parse(inspect.getsource(fields_class)).body
    assert isinstance(definition, ast.ClassDef), fields_class
    help_by_name: dict[str, str] = {}
    for base in definition.bases:
        base_class = getattr(sys.modules[fields_class.__module__], ast.unparse(base))
        if inspect.isclass(base_class):
            help_by_name.update(_field_help(base_class))

    for field, text in pairwise(definition.body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(text, ast.Expr):
            continue
        if isinstance(text.value, ast.Constant):
            help_by_name[ast.unparse(field.target)] = " ".join(str(text.value.value).split())
    return help_by_name
