"""Number of calls that a task makes, and of their tokens: counted on its first items, without asking a model.

The task is built as for a run. A planted model stands in for every model: it knows a fitting reply to each prompt of
the suite, so that prompts that come after a reply are counted too.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from statistics import mean
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageUser, GenerateConfig, ModelName, get_model
from inspect_ai.solver import TaskState

from selfprobe.errors import InputError
from selfprobe.logs import in_thread
from selfprobe.solvers.ask import rehearsal
from selfprobe.solvers.record import Record, Reply, reply_from
from selfprobe.study._registry import measures, tasks
from selfprobe.text.user_input import unknown

ITEMS = 2
"""Number of items that are played."""
CHARACTERS = 4
"""Characters of a token, roughly."""
LONGEST = 300
"""Tokens of a text that the target writes, where its limit allows as many."""


@dataclass(frozen=True)
class Counted:
    """Calls of an item, at most, and a rough guess of their tokens."""

    count: int
    """Epochs included."""
    tokens: tuple[int, int]
    """Tokens of a call on average, in and out."""


@dataclass(frozen=True)
class Rehearsed:
    """Calls for an item of a task in a run of a model on itself."""

    all: Counted
    observer: Counted
    """Calls of the observer alone."""


def rehearsed(task: str, args: Mapping[str, Any]) -> Rehearsed:
    """Calls for an item of a task.

    Args:
        task: Name of the task.
        args: Arguments of the task as one types them, without a log.

    Raises:
        InputError: The task refuses an argument, or its MEASURE names an act that it does not record.
    """
    if measure := measures().get(task):
        _, acts = _rehearsed(task, "{}")  # an argument may leave acts out, such as candidates=3
        if wrong := unknown(measure.acts, acts):
            raise InputError(f"{task}: MEASURE names the act {wrong}")
    calls, _ = _rehearsed(task, json.dumps(dict(args), sort_keys=True))
    return calls


@cache
def _rehearsed(task: str, args: str) -> tuple[Rehearsed, tuple[str, ...]]:
    """Calls for an item of a task, and the names of the acts that it records."""
    items, acts = in_thread(lambda: asyncio.run(_played(task, json.loads(args))))
    return Rehearsed(_calls(items), _calls([[one for one in sent if one.role is None] for sent in items])), acts


@dataclass(frozen=True)
class _Sent:
    role: str | None
    read: float
    wrote: float


def _calls(items: Sequence[Sequence[_Sent]]) -> Counted:
    every = [one for sent in items for one in sent]
    tokens = (round(mean(one.read for one in every)), round(mean(one.wrote for one in every))) if every else (0, 0)
    return Counted(max((len(sent) for sent in items), default=0), tokens)


async def _played(task: str, args: Mapping[str, Any]) -> tuple[list[list[_Sent]], tuple[str, ...]]:
    """Every call of the first items, an item a list, and the names of the recorded acts."""
    model, sent, acts = get_model("planted/plan"), list[_Sent](), dict[str, Reply]()
    longer = dict[str, float]()  # a text of the target → tokens by which a real one is longer where it is quoted

    async def stand_in(
        role: str | None, name: str, prompt: str | list[ChatMessage], config: GenerateConfig, may_be_cut: bool
    ) -> Reply:
        messages: list[ChatMessage] = [ChatMessageUser(content=prompt)] if isinstance(prompt, str) else prompt
        output: Any = await model.api.generate(input=messages, tools=[], tool_choice="none", config=config)
        text, reply = "\n".join(message.text for message in messages), len(output.completion) / CHARACTERS
        wrote = min(config.max_tokens or LONGEST, LONGEST) if role == "target" else reply
        read = len(text) / CHARACTERS + sum(more for shown, more in longer.items() if shown in text)
        if role == "target":
            longer[output.completion] = max(0.0, wrote - reply)
        sent.append(_Sent(role, read, wrote))
        return reply_from(output, model, may_be_cut=may_be_cut)

    async def generate(state: TaskState, *_: Any, **__: Any) -> TaskState:
        return state

    out = list[list[_Sent]]()
    with rehearsal(stand_in):
        made = tasks()[task](**args)
        for sample in made.dataset[:ITEMS]:
            state = TaskState(
                ModelName(model), str(sample.id), 1, sample.input, messages=[], metadata=deepcopy(sample.metadata or {})
            )
            sent.clear()
            await made.solver(state, generate)
            out.append(list(sent) * (made.epochs or 1))
            acts |= state.store_as(Record).acts
    return out, tuple(acts)
