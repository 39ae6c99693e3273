"""Whole transcripts, with tools' calls and results as messages, and evaluations paired with real use of their length.

Sources are those of `conversations`. A turn is what ends with a message of the model and the results of the tools that
it called; what comes after the last one is a turn too.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageTool, ChatMessageUser
from inspect_ai.tool import ToolCall, ToolInfo, ToolParams
from inspect_ai.util import JSONSchema
from scipy.optimize import linear_sum_assignment

from selfprobe.data import Row, Table, table_of
from selfprobe.data.conversations import conversations
from selfprobe.data.reference import stands_for, told_label

UNPAIRED = "no transcript of the other kind is left to pair it with"


def transcript_rows(dataset: str | Sequence[str], *, against: str | None = None, **given: Any) -> Table:
    """Whole transcripts; where there are evaluations and real use, as many of both, each with the nearest in length.

    Rows are those of `conversations`, with `kind` ("evaluation", "deployment", or None), `count` (turns) and, where
    they are paired, `pair`. Pairs stand one after the other. Distance is that of the logarithms of the turns and, half
    as much, of the characters; all pairs together are the nearest (Hungarian method).

    Args:
        dataset: See `conversations`.
        against: Real use to hold it against, or another kind.
        given: task, logs, role, label; see `conversations`.

    Raises:
        InputError: See `conversations`.
    """
    table = conversations(dataset, against=against, context="full", as_sent=True, **given)
    own = stands_for((row.get("set"), row["label"]) for row in table.rows)
    rows = [
        {**row, "kind": told_label(own, row.get("set"), row["label"]), "count": len(ends(row["messages"]))}
        for row in table.rows
    ]
    ours, others = ([row for row in rows if row["kind"] == kind] for kind in ("evaluation", "deployment"))
    if not ours or not others:
        return table_of(table.name, rows, table.aside, table.unread)
    cost = np.abs(_sizes(ours)[:, None] - _sizes(others)[None]).sum(axis=2)
    pairs = sorted(zip(*linear_sum_assignment(cost), strict=True), key=lambda pair: (pair[0], pair[1]))
    kept = [{**row, "pair": ours[a]["id"]} for a, b in pairs for row in (ours[a], others[b])]
    ids = {row["id"] for row in kept}
    aside = {f"{table.name}: {row['id']}": UNPAIRED for row in rows if row["id"] not in ids}
    return table_of(table.name, kept, {**table.aside, **aside}, table.unread)


def _sizes(rows: Sequence[Row]) -> np.ndarray:
    """[row, 2]: logarithm of the turns, and half of that of the characters."""
    characters = [sum(len(m["content"]) for m in row["messages"]) + 1 for row in rows]
    return np.column_stack([np.log([row["count"] for row in rows]), 0.5 * np.log(characters)])


def ends(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """Number of messages up to the end of each turn.

    >>> ends([{"role": role} for role in ("system", "user", "assistant", "tool", "assistant", "user")])
    [4, 5, 6]
    """
    found, replied = [], False
    for place, message in enumerate(messages):
        if replied and message["role"] != "tool":
            found.append(place)
            replied = False
        replied |= message["role"] == "assistant"
    return [*found, len(messages)]


def chat(messages: Sequence[Mapping[str, Any]]) -> list[ChatMessage]:
    """The messages of a row as Inspect's; results are those of the last calls, in order, and without one a user's."""
    made: list[ChatMessage] = []
    waiting: list[ToolCall] = []
    for number, message in enumerate(messages):
        text, role = message["content"], message["role"]
        if role == "tool" and waiting:
            call = waiting.pop(0)
            made.append(ChatMessageTool(content=text, tool_call_id=call.id, function=call.function))
            continue
        made += [_no_result(call) for call in waiting]
        waiting = []
        if role == "assistant":
            waiting = [
                ToolCall(id=f"call_{number}_{at}", function=name, arguments=_arguments(given))
                for at, (name, given) in enumerate(message.get("calls", ()))
            ]
            made.append(ChatMessageAssistant(content=text, tool_calls=list(waiting) or None))
        elif role == "system":
            made.append(ChatMessageSystem(content=text))
        else:
            made.append(ChatMessageUser(content=text))
    return [*made, *(_no_result(call) for call in waiting)]


def _no_result(call: ToolCall) -> ChatMessage:
    """Result for a call without one: vendors refuse a call that nothing answers."""
    return ChatMessageTool(content="(no result)", tool_call_id=call.id, function=call.function)


def _arguments(arguments: str) -> dict[str, Any]:
    try:
        found = json.loads(arguments or "{}")
    except (json.JSONDecodeError, RecursionError):
        return {"input": arguments}
    return found if isinstance(found, dict) else {"input": found}


def tools_in(row: Mapping[str, Any]) -> list[ToolInfo]:
    """The tools that a transcript came with, and those that it calls without saying what they are.

    Vendors refuse messages with calls of tools that are not offered.
    """
    offered = [ToolInfo.model_validate(tool) for tool in row.get("tools") or ()]
    names = {tool.name for tool in offered}
    called: dict[str, set[str]] = {}
    for message in row["messages"]:
        for name, given in message.get("calls", ()):
            called.setdefault(name, set()).update(_arguments(given))
    return offered + [
        ToolInfo(
            name=name,
            description=name,
            parameters=ToolParams(properties={each: JSONSchema(type="string") for each in sorted(given)}),
        )
        for name, given in called.items()
        if name not in names
    ]


def asked_at(longest: int, most: int) -> list[int]:
    """Turns to ask after: all where there are at most so many, else the first ones and then ever fewer, the last too.

    >>> asked_at(200, 10)
    [1, 2, 3, 6, 11, 19, 34, 62, 111, 200]
    """
    if longest <= most:
        return list(range(1, longest + 1))
    return sorted({round(turn) for turn in np.geomspace(1, longest, most)})
