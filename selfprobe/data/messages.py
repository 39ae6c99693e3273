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
from selfprobe.text.user_input import TOO_DEEP, nearest_name_hint

Row = Mapping[str, Any]

LISTS = ("messages", "conversations", "conversation")
"""Columns that hold a list of messages: of most sets, of ShareGPT, of WildChat."""
TEXT_COLUMNS = ("input", "user", "prompt", "question", "instruction", "text")
"""Columns that hold a user's message, the first that is there counts; `input` may also hold
messages.
"""
_BODIES = ("body", "params")
"""Fields in which a batch file of OpenAI's or Anthropic's keeps the request."""

_SHAREGPT_NAMES = {"from": "role", "value": "content"}

_SYSTEM_ROLES = ("system", "developer")

_USER_ROLES = ("user", "human")

_MODEL_ROLES = ("assistant", "ai", "gpt", "model", "chatgpt", "bot")

_TOOL_ROLES = ("tool", "function", "observation")

_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


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


def row_messages(raw_row: Row, where: str) -> list[Message]:
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
    row = _unwrapped(raw_row)
    columns = [name for name in (*LISTS, *TEXT_COLUMNS) if name in row]
    if not columns:
        columns = [name for name in row if name != "id"]
    if all(row[name] is None or str(row[name]).strip() in ("", "[]") for name in columns):
        raise Unaskable(f"{where}: it is empty")

    entries = _entries(row, where)
    if not isinstance(entries, list):
        raise InputError(f"{where}: no conversation; {_columns_remedy(raw_row)}")
    messages = [_message(entry, where) for entry in entries]

    # A request of OpenAI's Responses has its system prompt under `instructions`.
    system_content = row.get("system") or row.get("instructions")
    if system_content:
        system_message = Message("system", _content_text(system_content, where))
        if system_message not in messages:
            messages.insert(0, system_message)

    if any(_HALF_CHARACTER.search(message.text) for message in messages):
        raise Unaskable(
            f"{where}: it holds half a character (a lone surrogate), which no model can be sent"
        )
    return [message for message in messages if message.text.strip()]


def _columns_remedy(raw_row: Row) -> str:
    """The column that was meant where one is close, else those that are read; and what the row has
    besides its `id`, which it may have got while it was read.
    """
    read_columns = [*LISTS, *TEXT_COLUMNS]
    row_columns = [column for column in raw_row if column != "id"]
    columns_text = ", ".join(row_columns) or "nothing"
    for column in row_columns:
        hint = nearest_name_hint(column, read_columns)
        if hint:
            return f"got {columns_text}{hint}"
    list_columns = ", ".join(f"`{name}`" for name in LISTS)
    return f"expected {list_columns} or one of {', '.join(TEXT_COLUMNS)}, got {columns_text}"


def _entries(row: Row, where: str) -> object:
    """The entries of a row's conversation, unchecked; None where there is none."""
    messages = row.get("messages")
    if messages is None:
        messages = _sharegpt_entries(row)
    if isinstance(messages, str):
        try:
            messages = json.loads(messages)
        except json.JSONDecodeError as error:
            raise InputError(f"{where}: `messages` is not JSON ({error.msg})") from None
        except RecursionError:
            raise InputError(f"{where}: `messages` {TOO_DEEP}") from None
    return _entries_of_text(row) if messages is None else messages


def unread(raw_row: Row, where: str) -> str:
    """Sentence that names the column that is read, "`input` is read, `text` is not"; "" where no
    text is left out.

    Raises:
        InputError: See `row_messages`.
    """
    row = _unwrapped(raw_row)
    read_column = next((name for name in (*LISTS, *TEXT_COLUMNS) if row.get(name)), "")
    text_by_column: dict[str, str] = {}
    for name in TEXT_COLUMNS:
        text = row.get(name)
        if name != read_column and isinstance(text, str) and text.strip():
            text_by_column[name] = text.strip()
    if not text_by_column:
        return ""

    read_text = "\n".join(message.text for message in row_messages(raw_row, where))
    unread_columns = [f"`{name}`" for name, text in text_by_column.items() if text not in read_text]
    if not unread_columns:
        return ""
    verb = "is" if len(unread_columns) == 1 else "are"
    return f"`{read_column}` is read, {', '.join(unread_columns)} {verb} not"


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
        return [_tool_info(tool).model_dump(exclude_none=True) for tool in tools]
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        if isinstance(error, ValidationError | KeyError):
            reason = "one has no name or parameters"
        else:
            reason = str(error)
        raise InputError(
            f"{where}: expected `tools` to be a list of name, description and parameters "
            f"(JSON schema), got {str(tools)[:80]!r} ({reason})"
        ) from None


def _tool_info(tool: Mapping[str, Any]) -> ToolInfo:
    function = tool.get("function")
    description: Mapping[str, Any] = function if isinstance(function, dict) else tool
    schema = description.get("parameters") or description.get("input_schema") or {}
    return ToolInfo(  # pydantic refuses a name that is no text
        name=description["name"],
        description=description.get("description") or "",
        parameters=ToolParams.model_validate({"type": "object", "properties": {}, **schema}),
    )


def numbered(parts: Iterable[tuple[str, str]], tools: Sequence[ToolInfo] = ()) -> str:
    """A conversation as one text, each message (role, text) under its number and role, the tools
    before them.
    """
    sections = [f"[tools]\n{tools_text(tools)}"] if tools else []
    for number, (role, text) in enumerate(parts, start=1):
        sections.append(f"[{number}] {role}:\n{text}")
    return "\n\n".join(sections)


def tools_text(tools: Sequence[ToolInfo]) -> str:
    """One line a tool: its name and parameters, and what it does."""
    lines = []
    for tool in tools:
        parameter_names = ", ".join(tool.parameters.properties)
        lines.append(f"{tool.name}({parameter_names}): {tool.description}")
    return "\n".join(lines)


def _unwrapped(row: Row) -> Row:
    """The request of a row of a batch file; any other row as it is."""
    for body_name in _BODIES:
        if isinstance(row.get(body_name), dict):
            outer = {name: value for name, value in row.items() if name not in _BODIES}
            return {**outer, **row[body_name]}
    return row


def _sharegpt_entries(row: Row) -> object:
    """The messages of ShareGPT's and WildChat's columns; None where there is neither."""
    entries = row.get("conversations") or row.get("conversation")
    if isinstance(entries, str):
        try:
            entries = json.loads(entries)
        except (json.JSONDecodeError, RecursionError):
            return None
    if not isinstance(entries, list):
        return None
    return [_with_our_names(entry) for entry in entries]


def _with_our_names(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    return {_SHAREGPT_NAMES.get(name, name): value for name, value in entry.items()}


def _entries_of_text(row: Row) -> object:
    """A text column as the one message of its user."""
    column = next((name for name in TEXT_COLUMNS if row.get(name)), None)
    text = row.get(column) if column else None
    if not isinstance(text, str):
        return text
    instruction = row.get("instruction")
    if column == "input" and isinstance(instruction, str) and instruction.strip():
        text = f"{instruction}\n\n{text}"
    return [{"role": "user", "content": text}]


def _message(entry: object, where: str) -> Message:
    """One message as text: tool calls and results among the messages are kept as text."""
    if not isinstance(entry, dict) or "role" not in entry:
        raise InputError(
            f"{where}: expected messages with role and content, got {str(entry)[:80]!r}"
        )
    role = entry["role"]
    content = _content_text(entry.get("content"), where)
    if role in _TOOL_ROLES:
        return Message("user", f"[tool result]\n{content}", by_tool=True, content=content)
    if role == "function_call":
        return Message("assistant", f"[tool call] {content}")

    raw_calls = entry.get("tool_calls") or []
    if not isinstance(raw_calls, list):
        raise InputError(
            f"{where}: expected `tool_calls` to be a list, got {str(raw_calls)[:80]!r}"
        )
    calls = tuple(_call(raw_call, where) for raw_call in raw_calls)
    lines = [content] if content else []
    lines += [call_text(name, arguments) for name, arguments in calls]
    text = "\n".join(lines)
    if role in _SYSTEM_ROLES:
        return Message("system", text)
    if role in _USER_ROLES:
        return Message("user", text)
    if role in _MODEL_ROLES:
        return Message(
            "assistant", _without_thought(text), content=_without_thought(content), calls=calls
        )
    raise InputError(f"{where}: unknown role {role!r}; expected system, user, assistant or tool")


def _without_thought(text: str) -> str:
    """A model's text without its thought, which was not shown to its user, and is not shown to the
    subject.
    """
    split_text = split_thought(text)
    return text if split_text.thought is None else split_text.answer


def _call(call: object, where: str) -> tuple[str, str]:
    """Function and arguments (JSON) of a call of a tool."""
    function = call.get("function") if isinstance(call, dict) else None
    match function if isinstance(function, dict) else call:
        case {"name": str(name), "arguments": arguments} | {
            "function": str(name),
            "arguments": arguments,
        }:
            return name, _json_text(arguments)
    raise InputError(
        f"{where}: expected a tool call's function with name and arguments, got {str(call)[:80]!r}"
    )


def call_text(name: str, arguments: object) -> str:
    """A tool call as it stands in a conversation that is text.

    >>> call_text("read", {"path": "a"})
    '[tool call] read({"path": "a"})'
    """
    return f"[tool call] {name}({_json_text(arguments)})"


def _json_text(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _content_text(content: object, where: str) -> str:
    """The text of a message's content.

    Raises:
        Unaskable: It holds more than text.
        InputError: A part of it has no text.
    """
    if content is None or isinstance(content, str):
        return content or ""
    parts: Sequence[object] = content if isinstance(content, list) else [content]
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        if not isinstance(part, dict):
            raise Unaskable(_no_text(where, type(part).__name__))

        kind = part.get("type")
        if kind in ("reasoning", "thinking", "redacted_thinking"):
            continue  # it was not shown to the user, and is not shown to the subject
        if kind == "tool_use":
            texts.append(call_text(str(part.get("name")), part.get("input")))
        elif kind == "tool_result":
            texts.append(f"[tool result]\n{_content_text(part.get('content'), where)}")
        elif kind not in ("text", "input_text", "output_text"):
            raise Unaskable(_no_text(where, kind))
        elif not isinstance(part.get("text"), str):
            raise InputError(
                f"{where}: expected a content part of type 'text' to have a `text`, "
                f"got {str(part)[:80]!r}"
            )
        else:
            texts.append(part["text"])
    return "\n".join(texts)


def _no_text(where: str, kind: object) -> str:
    return f"{where}: a message has content of type {kind!r}; only text can be asked about"
