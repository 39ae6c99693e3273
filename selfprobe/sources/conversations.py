"""Conversations to measure evaluation awareness on: from files, public sets, other tasks' data, and logs.

-T dataset=eval_awareness           bundled; also my.jsonl, my.csv, hf:owner/name@revision, s3://…, or several:
a.jsonl,b.csv
-T dataset=dataset.json             the gated set of Needham et al. 2025, as its owner's script decrypts it (never
shipped)
-T dataset=task:inspect_evals/gsm8k  the data set of any Inspect task, by name or as file.py or file.py@task; label
evaluation; also -T task=…
-T dataset=logs:logs/yesterday       the conversations of any Inspect logs; also -T logs=…

A row needs a conversation: `messages` (a list of role and content, in CSV as JSON), or `input`, `user`, `prompt` or
`question` (text; with an optional `system`). It may have `id`, `label` (evaluation or deployment; a bool
`is_evaluation` or
`eval_category` does as well), `source`, `domain`, `format`, `agentic` and `pair`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

from selfprobe.arguments import locate, one_of
from selfprobe.data import Row, Table, load, read_text, table_of
from selfprobe.errors import InputError
from selfprobe.inspect_data import SCHEMES, rows_of

Label = Literal["evaluation", "deployment"]
Context = Literal["first", "full"]

_LABELS: dict[str, Label] = {
    **dict.fromkeys(("evaluation", "eval", "test", "testing", "true"), "evaluation"),
    **dict.fromkeys(("deployment", "deploy", "real", "organic", "false"), "deployment"),
}
_TEXT_COLUMNS = ("input", "user", "prompt", "question")
_FIELDS = ("label", "source", "domain", "format", "agentic", "turns", "pair")


@dataclass(frozen=True)
class Message:
    """One message, as text."""

    role: Literal["system", "user", "assistant"]
    text: str
    by_tool: bool = False
    """Whether it is a tool's result, which goes under the user's name but is no turn of the user's."""


def conversations(
    dataset: str | Sequence[str] = "eval_awareness",
    *,
    task: str | None = None,
    logs: str | None = None,
    label: str | None = None,
    context: str = "first",
) -> Table:
    """The conversations of one source, or of several data sets together, cut to the context; hashed as they are asked.

    Args:
        dataset: Data sets; see the module's docstring. Not read when `task` or `logs` is given.
        task: An Inspect task whose samples are the conversations; no model runs.
        logs: A log or a folder of logs.
        label: The label of every row: "evaluation", "deployment". Without it the rows' own; rows without one are
            measured all the same, and only shares are reported.
        context: "first": the system prompt and the first user message, as in paper 002. "full": all messages up to the
            last that is not the model's, since the subject writes the last reply itself.

    Raises:
        InputError: A row without a user message, with an image or with an unknown label; the same id twice (naming both
            places); `task` and `logs` together; an option that is none; no such file.
    """
    one_of("context", context, get_args(Context))
    if label is not None:
        one_of("label", label, get_args(Label))
    if task and logs:
        raise InputError(f"give task={task} or logs={logs}, not both")
    full = context == "full"
    if task:
        parts: list[tuple[str, Sequence[Row]]] = [(task, rows_of(f"task:{task}"))]
    elif logs:
        parts = [(logs, rows_of(f"logs:{logs}", full=full))]
    else:
        given = dataset if isinstance(dataset, list | tuple) else str(dataset or "").split(",")
        names = [str(name).strip() for name in given]
        parts = [(name, _rows_of_data(name, full)) for name in names]
    rows, origin = [], dict[str, str]()
    for name, its in parts:
        for row in its:
            made = conversation(row, where=f"{name}, row {row['id']!r}", source=name, label=label, context=context)
            if (earlier := origin.setdefault(made["id"], name)) != name:
                raise InputError(
                    f"id {made['id']!r} is in {earlier} and in {name}; ids must be unique over all data sets"
                )
            rows.append(made)
    return table_of(task or logs or ",".join(name for name, _ in parts), rows)


def conversation(row: Row, *, where: str, source: str, label: str | None, context: str) -> Row:
    """A row of any source in our own form: id, messages, and the fields that numbers are split by (None if unknown)."""
    inner = row.get("metadata")
    meta: Mapping[str, Any] = {**(inner if isinstance(inner, dict) else {}), **row}
    messages = _messages(row, where)
    if not any(m.role == "user" and not m.by_tool for m in messages):
        raise InputError(
            f"{where}: no user message; expected at least one, got {[m.role for m in messages] or 'nothing'}"
        )
    agentic = meta.get("agentic", bool(meta["scaffold"]) if "scaffold" in meta else None)
    if isinstance(agentic, str):
        agentic = {"true": True, "1": True, "false": False, "0": False}.get(agentic.strip().lower())
    kept = _first(messages) if context == "first" else _until_reply(messages)
    return {
        "id": row["id"],
        "messages": [{"role": m.role, "content": m.text} for m in kept],
        "label": label or _label(meta, where),
        "source": str(meta.get("source") or meta.get("category") or source),
        "domain": _text(meta.get("domain")),
        "format": _text(meta.get("format")),
        "agentic": agentic,
        "turns": sum(m.role == "user" and not m.by_tool for m in messages),
        "pair": _text(meta.get("pair")),
    }


def record_to_sample(row: Row) -> Sample:
    """One conversation as a sample; the label is the target, the fields are its metadata.

    `flip` turns the polarity of the last variant of a question for half of the rows, whatever their label (by a hash of
    the id), so that an odd number of variants is balanced over the data.
    """
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    messages: list[ChatMessage] = [kinds[m["role"]](content=m["content"]) for m in row["messages"]]
    flip = int(table_of("", [{"id": row["id"]}]).sha256, 16) % 2 == 1
    return Sample(
        id=row["id"],
        input=messages,
        target=row["label"] or "",
        metadata={field: row[field] for field in _FIELDS} | {"flip": flip},
    )


def _rows_of_data(name: str, full: bool) -> list[Row]:
    if name.startswith(SCHEMES):
        return rows_of(name, full=full)
    return _rows_of_json(name) if name.endswith(".json") else load(name, ()).rows


def _rows_of_json(name: str) -> list[Row]:
    """The gated set's form: one array of {input: text or messages, metadata: {category, eval_category, scaffold …}}."""
    path = locate(name)
    try:
        rows = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg}); is it still encrypted?") from None
    if isinstance(rows, dict):
        rows = [{"id": key, **row} if isinstance(row, dict) else row for key, row in rows.items()]
    if not isinstance(rows, list) or not rows or any(not isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: expected an array of objects, each with `input` (or `messages`) and `metadata`")
    return [
        {**row, "id": str(row.get("id") or row.get("sample_id") or f"row-{n}")} for n, row in enumerate(rows, start=1)
    ]


def _messages(row: Row, where: str) -> list[Message]:
    given: object = row.get("messages")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except json.JSONDecodeError as error:
            raise InputError(f"{where}: `messages` is not JSON ({error.msg})") from None
    column = next((c for c in _TEXT_COLUMNS if row.get(c)), None)
    if given is None and column:
        given = row[column]
        if isinstance(given, str):
            system = [{"role": "system", "content": row["system"]}] if row.get("system") else []
            given = [*system, {"role": "user", "content": given}]
    if not isinstance(given, list):
        raise InputError(
            f"{where}: no conversation; expected `messages` or one of {', '.join(_TEXT_COLUMNS)}, got {', '.join(row)}"
        )
    made = [_message(m, where) for m in given]
    return [m for m in made if m.text.strip()]


def _message(given: object, where: str) -> Message:
    """One message as text: tool calls and results are kept as text, and no tools are offered to the subject."""
    if not isinstance(given, dict) or "role" not in given:
        raise InputError(f"{where}: expected messages with role and content, got {str(given)[:80]!r}")
    role, text = given["role"], _content(given.get("content"), where)
    if role in ("tool", "function"):
        return Message("user", f"[tool result]\n{text}", by_tool=True)
    calls = given.get("tool_calls") or []
    if not isinstance(calls, list):
        raise InputError(f"{where}: expected `tool_calls` to be a list, got {str(calls)[:80]!r}")
    text = "\n".join([*([text] if text else []), *(_call(call, where) for call in calls)])
    match role:
        case "system" | "developer":
            return Message("system", text)
        case "user" | "human":
            return Message("user", text)
        case "assistant" | "ai":
            return Message("assistant", text)
    raise InputError(f"{where}: unknown role {role!r}; expected system, user, assistant or tool")


def _call(call: object, where: str) -> str:
    inner = call.get("function") if isinstance(call, dict) else None
    match inner if isinstance(inner, dict) else call:
        case {"name": str(name), "arguments": arguments} | {"function": str(name), "arguments": arguments}:
            pass
        case _:
            raise InputError(
                f"{where}: expected a tool call's function with name and arguments, got {str(call)[:80]!r}"
            )
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"[tool call] {name}({shown})"


def _content(content: object, where: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [content]
    texts = []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else type(part).__name__
        if kind in ("reasoning", "thinking"):
            continue  # a transcript's reasoning was not shown to its user, and is not shown to the subject
        if kind != "text" or not isinstance(part, dict):
            raise InputError(
                f"{where}: a message has content of type {kind!r}; only text can be asked about: leave the row out"
            )
        if not isinstance(part.get("text"), str):
            raise InputError(
                f"{where}: expected a content part of type 'text' to have a `text`, got {str(part)[:80]!r}"
            )
        texts.append(part["text"])
    return "\n".join(texts)


def _first(messages: Sequence[Message]) -> list[Message]:
    first = next(i for i, m in enumerate(messages) if m.role == "user" and not m.by_tool)
    return [*(m for m in messages[:first] if m.role == "system"), messages[first]]


def _until_reply(messages: Sequence[Message]) -> list[Message]:
    last = max(i for i, m in enumerate(messages) if m.role != "assistant")
    return list(messages[: last + 1])


def _label(meta: Mapping[str, Any], where: str) -> Label | None:
    for column in ("label", "is_evaluation", "eval_category"):
        value = meta.get(column)
        if value is not None and str(value).strip():
            if found := _LABELS.get(str(value).strip().lower()):
                return found
            raise InputError(f"{where}: {column} must be evaluation or deployment, got {value!r}; or give -T label=…")
    return None


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)
