"""Items of any Inspect task, each with the text of its last user message, which may be put in other words."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ChatMessageUser, ContentText

from selfprobe.data.units import units_of
from selfprobe.errors import InputError
from selfprobe.errors.arguments import unknown
from selfprobe.errors.inspect_private import registry_info, registry_lookup
from selfprobe.logs.first_call import build
from selfprobe.text.quotes import fold

UNITS, LONGEST = 40, 300
"""Units that a text is cut into, at most, and characters of a giveaway that is named."""


@dataclass(frozen=True)
class Item:
    """A sample of the task."""

    id: str
    sample: Sample
    text: str | None
    """Its last user message; None where that is no text."""


def foreign(name: str, args: Mapping[str, Any] | None = None) -> Task:
    """A task, built anew at each call, since adapting a task changes it.

    Raises:
        InputError: See `first_call.build`; or it lacks an argument, a scorer, a fixed data set or a second item.
    """
    if not name:
        raise InputError("no task is named: give a registered one, such as inspect_evals/gsm8k, or FILE.py@TASK")
    task = build(name, args)
    function = registry_lookup("task", registry_info(task).name)
    parameters = inspect.signature(function).parameters if callable(function) else {}
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    if not takes_any and (wrong := unknown(args or {}, parameters)):
        raise InputError(f"{name} has no argument {wrong}")
    if not task.scorer:
        raise InputError(f"{name} has no scorer: without a score there is no effect on it")
    if task.sample_source is not None:
        raise InputError(f"{name} makes its samples while it runs: arms need the same items, known before")
    if len(task.dataset) < 2:
        raise InputError(f"{name} has {len(task.dataset)} item: effects are paired over items, and two are the least")
    return task


def items_of(task: Task) -> list[Item]:
    """The items, in the order in which the task asks them; without an id they are numbered as Inspect does it."""
    samples = [
        sample if sample.id is not None else sample.model_copy(update={"id": number})
        for number, sample in enumerate(task.dataset, start=1)
    ]
    return [Item(str(sample.id), sample, text_of(sample)) for sample in samples]


def text_of(sample: Sample) -> str | None:
    """The text of the last user message; None where there is none, or it holds an image or a file."""
    if isinstance(sample.input, str):
        return sample.input if sample.input.strip() else None
    last = next((m for m in reversed(sample.input) if m.role == "user"), None)
    parts = last.content if last is not None else ""
    plain = isinstance(parts, str) or all(isinstance(part, ContentText) for part in parts)
    return last.text if last is not None and plain and last.text.strip() else None


def with_text(sample: Sample, text: str) -> str | list[ChatMessage]:
    """The sample's input with another last user message."""
    if isinstance(sample.input, str):
        return text
    at = max(number for number, message in enumerate(sample.input) if message.role == "user")
    return [*sample.input[:at], ChatMessageUser(content=text), *sample.input[at + 1 :]]


def giveaways(text: str, known: Sequence[str] = ()) -> list[str]:
    """What in a text gives an evaluation away: the known passages that it holds, or without any what a rule matches.

    >>> giveaways("This is a test case. Add 2 and 2."), giveaways("This is a test case. Add 2.", ["add 2"])
    (['This is a test case.'], ['add 2'])
    """
    if known:
        return [passage for passage in known if fold(passage)[0].strip() in fold(text)[0]]
    units = units_of({"messages": [{"role": "user", "content": text}]}, UNITS)
    return list(dict.fromkeys(" ".join(unit.text.split())[:LONGEST] for unit in units if unit.classes))
