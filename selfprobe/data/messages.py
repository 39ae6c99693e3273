"""The messages of one row, in the forms that prompt sets have: our own, request bodies, ShareGPT,
plain columns.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from inspect_ai.tool import ToolInfo, ToolParams
from pydantic import ValidationError

from selfprobe.errors import InputError
from selfprobe.text.thoughts import split_thought
from selfprobe.text.user_input import TOO_DEEP

Row = Mapping[str, Any]

LISTS = ("messages", "conversations", "conversation")
"""Columns that hold a list of messages: of most sets, of ShareGPT, of WildChat."""
TEXT_COLUMNS = ("input", "user", "prompt", "question", "instruction", "text")
"""Columns that hold a user's message, the first that is there counts; `input` may also hold
messages.
"""
_BODIES = ("body", "params")
"""Fields in which a batch file of OpenAI's or Anthropic's keeps the request."""
_SHAREGPT = {"from": "role", "value": "content"}


_HALF = re.compile("[\ud800-\udfff]")


class Unaskable(InputError):
    """A row that cannot be asked about: empty, or more than text; it is set aside, and no fault of
    the set.
    """


@dataclass(frozen=True)
class Message:
    """One message, as text."""

    role: Literal["system", "user", "assistant"]
    text: str
    by_tool: bool = False
    """True for a tool's result, which goes under the user's name but is no turn of the user's."""
    content: str = ""
    """Return value of a tool's result; for a message of the model the text next to its calls of
    tools.
    """
    calls: tuple[tuple[str, str], ...] = ()
    """Function and arguments (JSON) of the message's calls of tools; `text` holds them as text."""


def row_messages(given: Row, where: str) -> list[Message]:
    """The messages of a row that are not empty, in order.

    Read: `messages` (role and content, also as JSON) with or without `system`; a batch file's
    request under `body` or `params`; ShareGPT's `conversations` (from, value), WildChat's
    `conversation`; a text column with or without `system`, where `instruction` and `input` together
    are Alpaca's one prompt.

    Raises:
        Unaskable: The row is empty, or a message holds an image, another content that is no text,
            or half a character.
        InputError: There is no conversation in the row, or it cannot be read; the message begins
            with `where`.
    """
    row = _unwrapped(given)
    columns = [name for name in (*LISTS, *TEXT_COLUMNS) if name in row] or [
        name for name in row if name != "id"
    ]
    if all(row[name] is None or str(row[name]).strip() in ("", "[]") for name in columns):
        raise Unaskable(f"{where}: it is empty")
    found = row.get("messages") if row.get("messages") is not None else _sharegpt(row)
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except json.JSONDecodeError as error:
            raise InputError(f"{where}: `messages` is not JSON ({error.msg})") from None
        except RecursionError:
            raise InputError(f"{where}: `messages` {TOO_DEEP}") from None
    if found is None:
        found = _of_column(row)
    if not isinstance(found, list):
        raise InputError(
            f"{where}: no conversation; expected {', '.join(f'`{name}`' for name in LISTS)} or one of "
            f"{', '.join(TEXT_COLUMNS)}, got {', '.join(given)}"
        )
    made = [_message(m, where) for m in found]
    system = row.get("system") or row.get(
        "instructions"
    )  # `instructions` in a request of OpenAI's Responses
    told = Message("system", _content(system, where)) if system else None
    if told and told not in made:
        made.insert(0, told)
    if any(_HALF.search(m.text) for m in made):
        raise Unaskable(
            f"{where}: it holds half a character (a lone surrogate), which no model can be sent"
        )
    return [m for m in made if m.text.strip()]


def unread(given: Row, where: str) -> str:
    """Sentence that names the column that is read, "`input` is read, `text` is not"; "" where no
    text is left out.

    Raises:
        InputError: See `row_messages`.
    """
    row = _unwrapped(given)
    used = next((name for name in (*LISTS, *TEXT_COLUMNS) if row.get(name)), "")
    others = {
        n: row[n].strip()
        for n in TEXT_COLUMNS
        if n != used and isinstance(row.get(n), str) and row[n].strip()
    }
    held = "\n".join(message.text for message in row_messages(given, where)) if others else ""
    left = [f"`{name}`" for name, text in others.items() if text not in held]
    return (
        f"`{used}` is read, {', '.join(left)} {'is' if len(left) == 1 else 'are'} not"
        if left
        else ""
    )


def row_tools(row: Row, where: str) -> list[dict[str, Any]]:
    """The tools that the model was offered, as name, description and parameters (JSON schema); most
    rows have none.

    Raises:
        InputError: They are in no form that is known.
    """
    tools = _unwrapped(row).get("tools") or []
    try:
        if isinstance(tools, str):
            tools = json.loads(tools)
        return [_tool(tool).model_dump(exclude_none=True) for tool in tools]
    except (
        ValueError,
        TypeError,
        AttributeError,
        KeyError,
        RecursionError,
    ) as error:  # most are ValueErrors
        told = (
            "one has no name or parameters"
            if isinstance(error, ValidationError | KeyError)
            else str(error)
        )
        raise InputError(
            f"{where}: expected `tools` to be a list of name, description and parameters (JSON schema), got "
            f"{str(tools)[:80]!r} ({told})"
        ) from None


def _tool(tool: Mapping[str, Any]) -> ToolInfo:
    function = tool.get("function")
    inner: Mapping[str, Any] = function if isinstance(function, dict) else tool
    schema = inner.get("parameters") or inner.get("input_schema") or {}
    return ToolInfo(  # pydantic refuses a name that is no text
        name=inner["name"],
        description=inner.get("description") or "",
        parameters=ToolParams.model_validate({"type": "object", "properties": {}, **schema}),
    )


def numbered(parts: Iterable[tuple[str, str]], tools: Sequence[ToolInfo] = ()) -> str:
    """A conversation as one text, each message (role, text) under its number and role, the tools
    before them.
    """
    texts = [f"[{number}] {role}:\n{text}" for number, (role, text) in enumerate(parts, start=1)]
    return "\n\n".join([*([f"[tools]\n{tools_text(tools)}"] if tools else []), *texts])


def tools_text(tools: Sequence[ToolInfo]) -> str:
    """One line a tool: its name and parameters, and what it does."""
    return "\n".join(
        f"{tool.name}({', '.join(tool.parameters.properties)}): {tool.description}"
        for tool in tools
    )


def _unwrapped(row: Row) -> Row:
    """The request of a row of a batch file; any other row as it is."""
    inner = next((row[name] for name in _BODIES if isinstance(row.get(name), dict)), None)
    return row if inner is None else {**{k: v for k, v in row.items() if k not in _BODIES}, **inner}


def _sharegpt(row: Row) -> object:
    """The messages of ShareGPT's and WildChat's columns; None where there is neither."""
    given = row.get("conversations") or row.get("conversation")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (json.JSONDecodeError, RecursionError):
            return None
    if not isinstance(given, list):
        return None
    return [
        {_SHAREGPT.get(k, k): v for k, v in m.items()} if isinstance(m, dict) else m for m in given
    ]


def _of_column(row: Row) -> object:
    column = next((c for c in TEXT_COLUMNS if row.get(c)), None)
    text = row.get(column) if column else None
    if not isinstance(text, str):
        return text
    task = row.get("instruction")
    if column == "input" and isinstance(task, str) and task.strip():
        text = f"{task}\n\n{text}"
    return [{"role": "user", "content": text}]


def _message(entry: object, where: str) -> Message:
    """One message as text: tool calls and results among the messages are kept as text."""
    if not isinstance(entry, dict) or "role" not in entry:
        raise InputError(
            f"{where}: expected messages with role and content, got {str(entry)[:80]!r}"
        )
    role, text = entry["role"], _content(entry.get("content"), where)
    if role in ("tool", "function", "observation"):
        return Message("user", f"[tool result]\n{text}", by_tool=True, content=text)
    if role == "function_call":
        return Message("assistant", f"[tool call] {text}")
    calls = entry.get("tool_calls") or []
    if not isinstance(calls, list):
        raise InputError(f"{where}: expected `tool_calls` to be a list, got {str(calls)[:80]!r}")
    named = tuple(_call(call, where) for call in calls)
    said, text = text, "\n".join([*([text] if text else []), *(call_text(*call) for call in named)])
    match role:
        case "system" | "developer":
            return Message("system", text)
        case "user" | "human":
            return Message("user", text)
        case "assistant" | "ai" | "gpt" | "model" | "chatgpt" | "bot":
            return Message("assistant", _answer(text), content=_answer(said), calls=named)
    raise InputError(f"{where}: unknown role {role!r}; expected system, user, assistant or tool")


def _answer(text: str) -> str:
    """A model's text without its thought, which was not shown to its user, and is not shown to the
    subject.
    """
    split = split_thought(text)
    return text if split.thought is None else split.answer


def _call(call: object, where: str) -> tuple[str, str]:
    inner = call.get("function") if isinstance(call, dict) else None
    match inner if isinstance(inner, dict) else call:
        case {"name": str(name), "arguments": arguments} | {
            "function": str(name),
            "arguments": arguments,
        }:
            return name, _json(arguments)
    raise InputError(
        f"{where}: expected a tool call's function with name and arguments, got {str(call)[:80]!r}"
    )


def call_text(name: str, arguments: object) -> str:
    """A tool call as it stands in a conversation that is text.

    >>> call_text("read", {"path": "a"})
    '[tool call] read({"path": "a"})'
    """
    return f"[tool call] {name}({_json(arguments)})"


def _json(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _content(content: object, where: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    parts: Sequence[object] = content if isinstance(content, list) else [content]
    texts = []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else type(part).__name__
        if kind in ("reasoning", "thinking", "redacted_thinking"):
            continue  # a transcript's reasoning was not shown to its user, and is not shown to the subject
        if kind == "str":
            texts.append(str(part))
        elif isinstance(part, dict) and kind == "tool_use":
            texts.append(call_text(str(part.get("name")), part.get("input")))
        elif isinstance(part, dict) and kind == "tool_result":
            texts.append(f"[tool result]\n{_content(part.get('content'), where)}")
        elif not isinstance(part, dict) or kind not in ("text", "input_text", "output_text"):
            raise Unaskable(
                f"{where}: a message has content of type {kind!r}; only text can be asked about"
            )
        elif not isinstance(part.get("text"), str):
            raise InputError(
                f"{where}: expected a content part of type 'text' to have a `text`, got {str(part)[:80]!r}"
            )
        else:
            texts.append(part["text"])
    return "\n".join(texts)
