"""Conversations to measure evaluation awareness on: from files, public sets, other tasks, and logs.

-T dataset=eval_awareness_2         bundled; also my.jsonl, my.csv, hf:owner/name@revision, s3://…, or several:
a.jsonl,b.csv
-T dataset=dataset.json             the gated set of Needham et al. 2025, as its owner's script decrypts it (never
shipped)
-T dataset=task:inspect_evals/gsm8k  what any Inspect task asks its model, by name or as file.py or file.py@task; label
evaluation; also -T task=…
-T dataset=logs:logs/yesterday       what the model of any Inspect logs was asked; also -T logs=…; a role of them:
logs:logs/audit?role=target
-T against=bundled                   asked as well, to hold the set against: any of the above

A row needs a conversation: `messages` (a list of role and content, in CSV as JSON), ShareGPT's `conversations`,
WildChat's `conversation`, a batch file's request, or a text under `input`, `user`, `prompt`, `question`, `instruction`
or `text`; each with an optional `system`. It may have `tools`, `id`, `label` (evaluation or deployment, 1 or 0; a bool
`is_evaluation` or `is_eval`, or `eval_category`, does as well), `source`, `domain`, `format`, `agentic`, `language` and
`pair`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

from selfprobe.data import Row, Table, load, table_of
from selfprobe.data.files import read_text, with_columns
from selfprobe.data.inspect_data import SCHEMES, inspect_rows
from selfprobe.data.messages import LISTS, TEXT_COLUMNS, Message, Unaskable, row_messages, row_tools, unread
from selfprobe.data.reference import BUNDLED, with_reference
from selfprobe.errors import InputError
from selfprobe.errors.arguments import locate, one_of
from selfprobe.text.yaml_keys import TOO_DEEP

Label = Literal["evaluation", "deployment"]
Context = Literal["first", "full"]

DEFAULT = BUNDLED["bundled"]
_EVALUATION = "evaluation eval evals evaluations test tests testing benchmark true 1 1.0"
_DEPLOYMENT = (
    "deployment deployed deploy real real_world real_use real_usage realworld organic production natural false 0 0.0"
)
_LABELS: dict[str, Label] = {
    **dict.fromkeys(_EVALUATION.split(), "evaluation"),
    **dict.fromkeys(_DEPLOYMENT.split(), "deployment"),
}
_LABELLED = ("label", "is_evaluation", "is_eval", "eval_category")
_COLUMNS: tuple[str, ...] = (
    *LISTS,
    *TEXT_COLUMNS,
    "system",
    "tools",
    *_LABELLED,
    "source",
    "category",
    "domain",
    "format",
    "agentic",
    "language",
    "pair",
)
"""Columns whose names may have capitals."""
_FIELDS = ("label", "source", "domain", "format", "agentic", "turns", "pair")


def conversations(
    dataset: str | Sequence[str] = DEFAULT,
    *,
    task: str | None = None,
    logs: str | None = None,
    label: str | None = None,
    context: str = "first",
    role: str | None = None,
    against: str | None = None,
    as_sent: bool = False,
) -> Table:
    """The conversations of one source, or of several data sets together, cut to the context; hashed as they are asked.

    A row that is empty, has no user message or holds more than text (an image), one with the text and label of an
    earlier row, and a sample that never came to a call of the model, is set aside and counted (`Table.aside`).

    Args:
        dataset: Data sets; see the module's docstring. Not with `task` or `logs`.
        task: An Inspect task: what it first asks its model in each sample. No model runs.
        logs: A log or a folder of logs: what their model was first asked in each sample.
        label: The label of every row: "evaluation", "deployment"; not of a reference. Without it the rows' own; rows
            without one are measured all the same, and only shares are reported.
        context: "first": the system prompt and the first user message, as in paper 002; of a task or logs the first
            call as it is. "full": all messages up to the last that is not the model's, since the subject writes the
            last reply itself.
        role: Whose conversations of a task or of logs: a model role ("target"); None is the evaluated model.
        against: A reference, as `dataset`, or "bundled". Its rows get ids and `set` of their own; see `with_reference`.
        as_sent: With context "full", keep the last reply too, and calls of tools and their results apart: messages may
            have `calls` (function and arguments as JSON), and the role "tool".

    Raises:
        InputError: A row without a conversation's column or with an unknown label; nothing but rows that are set aside;
            rows that are all alike; the same id twice (naming both places); `task` and `logs` together; a role without
            either; an option that is none; no such file; a reference that is the set itself.
    """
    one_of("context", context, get_args(Context))
    if label is not None:
        one_of("label", label, get_args(Label))
    if against is not None and not str(against).strip():
        raise InputError("against must name a set: bundled, a file, hf:…, task:… or logs:…")
    if (task or logs) and dataset != DEFAULT:
        raise InputError(f"dataset={dataset} beside {'task' if task else 'logs'}: give one of them")
    known = BUNDLED.get(dataset, dataset) if isinstance(dataset, str) else dataset
    ours = _read(known, task, logs, label=label, context=context, role=role, as_sent=as_sent)
    if against is None:
        return ours
    other = BUNDLED.get(against, against)
    reference = _read(other, None, None, label=None, context=context, role=None, as_sent=as_sent)
    return with_reference(ours, reference, against)


def _read(
    dataset: str | Sequence[str],
    task: str | None,
    logs: str | None,
    *,
    label: str | None,
    context: str,
    role: str | None,
    as_sent: bool,
) -> Table:
    """One set, read without a reference; see `conversations`."""
    rows, origin, aside, seen = [], dict[str, str](), dict[str, str](), dict[tuple[str, str | None], str]()
    again, passed = 0, dict[str, str]()
    for name, row in _rows(dataset, task, logs, full=context == "full", role=role):
        row = with_columns(row, _COLUMNS)
        try:
            where = f"{name}, row {row['id']!r}"
            made = conversation(row, where=where, source=name, label=label, context=context, as_sent=as_sent)
            if name not in passed and (left := unread(row, where)):
                passed[name] = f"{name}: {left}"
        except Unaskable as why:
            aside[f"{name}: {row['id']}"] = str(why)
            continue
        if earlier := origin.get(made["id"]):
            raise InputError(f"id {made['id']!r} is in {earlier} and in {name}; ids must be unique over all data sets")
        asked = json.dumps([made["messages"], made.get("tools")]), made["label"]
        if asked in seen:
            aside[f"{name}: {made['id']}"] = f"the same text and label as row {seen[asked]!r}"
            again += 1
            continue
        origin[made["id"]], seen[asked] = name, made["id"]
        rows.append(made)
    named = dict.fromkeys([*origin.values(), *(key.rpartition(": ")[0] for key in aside)])
    texts = {text for text, _ in seen}
    table = table_of(",".join(named), rows, aside, "; ".join(passed.values()))
    return _checked(table, texts=len(texts), read=len(rows) + again)


def _checked(table: Table, *, texts: int, read: int) -> Table:
    """The table, unless it can show nothing: `read` conversations hold so many different texts."""
    if not table.rows:
        why = next(iter(table.aside.values()), "it has no rows")
        raise InputError(f"{table.name}: no conversation is left of {len(table.aside)} rows: {why}")
    if texts == 1 < read:
        shown = table.rows[0]["messages"][-1]["content"][:80]
        raise InputError(
            f"{table.name}: all {read} conversations are the same text, {shown!r}: nothing can be told from "
            "them; give different ones, or one"
        )
    return table


def conversation(row: Row, *, where: str, source: str, label: str | None, context: str, as_sent: bool = False) -> Row:
    """A row of any source in our own form: id, messages, and the fields that numbers are split by (None if unknown).

    `tools` is there where tools were offered. A row with `called` is what a model was sent, and stays as it is.
    """
    if "aside" in row:
        raise Unaskable(f"{where}: {row['aside']}")
    inner = row.get("metadata")
    meta: Mapping[str, Any] = {**(inner if isinstance(inner, dict) else {}), **row}
    messages, tools = row_messages(row, where), row_tools(row, where)
    if not any(m.role == "user" and not m.by_tool for m in messages):
        got = [m.role for m in messages] or "nothing"
        raise Unaskable(f"{where}: no user message; expected at least one, got {got}")
    agentic = meta.get("agentic", bool(meta["scaffold"]) if "scaffold" in meta else None)
    if isinstance(agentic, str):
        agentic = {"true": True, "1": True, "false": False, "0": False}.get(agentic.strip().lower())
    kept = _first(messages) if context == "first" and not row.get("called") else _until_reply(messages)
    if as_sent:
        kept = messages
    return {
        "id": row["id"],
        "messages": [_sent(m) if as_sent else {"role": m.role, "content": m.text} for m in kept],
        "label": label or _label(meta, where),
        "source": str(meta.get("source") or meta.get("category") or source),
        "domain": _text(meta.get("domain")),
        "format": _text(meta.get("format")),
        "agentic": agentic,
        "turns": sum(m.role == "user" and not m.by_tool for m in messages),
        "pair": _text(meta.get("pair")),
    } | {name: value for name, value in (("language", _text(meta.get("language"))), ("tools", tools)) if value}


def record_to_sample(row: Row) -> Sample:
    """One conversation as a sample; the label is the target, the fields are its metadata.

    `flip` turns the polarity of the last variant of a question for half of the rows, whatever their label (by a hash of
    the id), so that an odd number of variants is balanced over the data.
    """
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    messages: list[ChatMessage] = [kinds[m["role"]](content=m["content"]) for m in row["messages"]]
    flip = int(table_of("", [{"id": row["id"]}]).sha256, 16) % 2 == 1
    also = {field: row[field] for field in ("set", "language", "tools") if field in row}
    return Sample(
        id=row["id"],
        input=messages,
        target=row["label"] or "",
        metadata={field: row[field] for field in _FIELDS} | {"flip": flip} | also,
    )


def _sent(message: Message) -> Row:
    """A message with its calls of tools apart, as JSON."""
    if message.by_tool:
        return {"role": "tool", "content": message.content}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    return {"role": message.role, "content": message.content, "calls": [list(call) for call in message.calls]}


def _rows(
    dataset: str | Sequence[str], task: str | None, logs: str | None, *, full: bool, role: str | None
) -> Iterator[tuple[str, Row]]:
    """Every row of the sources, with its source's name as the user gave it."""
    if task and logs:
        raise InputError(f"give task={task} or logs={logs}, not both")
    given = dataset if isinstance(dataset, list | tuple) else str(dataset or "").split(",")
    names = [f"task:{task}"] if task else [f"logs:{logs}"] if logs else [str(name).strip() for name in given]
    if role is not None and not any(name.startswith(SCHEMES) for name in names):
        raise InputError(f"role={role} is for logs=… and task=…: rows of a file are no role's")
    for name in names:
        if name.startswith(SCHEMES):
            yield from ((task or logs or name, row) for row in inspect_rows(name, full=full, role=role))
        else:
            rows = _rows_of_json(name) if name.endswith(".json") else load(name, ()).rows
            yield from ((name, {**row, "id": str(row.get("custom_id") or row["id"])}) for row in rows)  # batch files


def _rows_of_json(name: str) -> list[Row]:
    """The gated set's form: one array of {input: text or messages, metadata: {category, eval_category, scaffold …}}."""
    path = locate(name)
    try:
        rows = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg}); is it still encrypted?") from None
    except RecursionError:
        raise InputError(f"{path}: it {TOO_DEEP}") from None
    if isinstance(rows, dict):
        rows = [{"id": key, **row} if isinstance(row, dict) else row for key, row in rows.items()]
    if not isinstance(rows, list) or not rows or any(not isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: expected an array of objects, each with `input` (or `messages`) and `metadata`")
    return [
        {**row, "id": str(row.get("id") or row.get("sample_id") or f"row-{n}")} for n, row in enumerate(rows, start=1)
    ]


def _first(messages: Sequence[Message]) -> list[Message]:
    first = next(i for i, m in enumerate(messages) if m.role == "user" and not m.by_tool)
    return [*(m for m in messages[:first] if m.role == "system"), messages[first]]


def _until_reply(messages: Sequence[Message]) -> list[Message]:
    last = max(i for i, m in enumerate(messages) if m.role != "assistant")
    return list(messages[: last + 1])


def _label(meta: Mapping[str, Any], where: str) -> Label | None:
    for column in _LABELLED:
        value = meta.get(column)
        if value is not None and str(value).strip():
            if found := _LABELS.get(re.sub(r"[\s-]+", "_", str(value).strip().lower())):
                return found
            raise InputError(
                f"{where}: {column} must be evaluation or deployment (or 1 or 0), got {value!r}; "
                "or give -T label=… (--label)"
            )
    return None


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)
