"""Conversations to measure evaluation awareness on, also beside a reference, and whole transcripts
in pairs.

-T dataset=eval_awareness_2         bundled; also my.jsonl, my.csv, hf:owner/name@revision, s3://…, or several:
a.jsonl,b.csv
-T dataset=dataset.json             the gated set of Needham et al. 2025, as its owner's script decrypts it (never
shipped)
-T dataset=task:inspect_evals/gsm8k  what any Inspect task asks its model, by name or as file.py or file.py@task; label
evaluation; also -T task=…
-T dataset=logs:logs/yesterday       what the model of any Inspect logs was asked; also -T logs=…; a role of them:
logs:logs/audit?role=target
-T against=bundled                   asked as well, to hold the set against: any of the above

A row needs a conversation: `messages` (a list of role and content, in CSV as JSON), ShareGPT's
`conversations`, WildChat's `conversation`, a batch file's request, or a text under `input`, `user`,
`prompt`, `question`, `instruction` or `text`; each with an optional `system`. It may have `tools`,
`id`, `label` (evaluation or deployment, 1 or 0; a bool `is_evaluation` or `is_eval`, or
`eval_category`, does as well), `source`, `domain`, `format`, `agentic`, `language` and `pair`.

Conversations of one `source` are alike, and count together in every interval; -T
dataset='my.jsonl?cluster=COLUMN' names another column for that.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal, get_args

import numpy as np
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
)
from inspect_ai.tool import ToolCall, ToolInfo, ToolParams
from inspect_ai.util import JSONSchema
from scipy.optimize import linear_sum_assignment

from selfprobe.data import (
    Grouping,
    Row,
    Table,
    TableBuilder,
    each_row,
    id_text,
    is_user_data,
    kept_tables,
    refuse_unnameable,
    split_groups,
    table_of,
    unused_columns,
)
from selfprobe.data.files import json_rows, with_columns
from selfprobe.data.inspect_data import SCHEMES, inspect_rows
from selfprobe.data.messages import (
    LISTS,
    TEXT_COLUMNS,
    Message,
    Unaskable,
    row_messages,
    row_tools,
    unread,
)
from selfprobe.errors import InputError
from selfprobe.errors.arguments import locate, one_of

Label = Literal["evaluation", "deployment"]
Context = Literal["first", "full"]

REFERENCE_NAMES = {"bundled": "eval_awareness_2"}
"""Names of sets that a reference may have in addition to those of data sets."""
BUNDLED_CONTENTS = {
    "eval_awareness": "bundled, the first of two, whose labels are easy to see: a check that a method points the right "
    "way, and no measure of how much is noticed",
    "eval_awareness_2": "bundled; all of it was written for this, and a label says what a text was written as; two "
    "blind readers, language models, had 77 and 76 % right",
}
"""The bundled sets, and what a page says of each."""
REFERENCE_ID = "reference:"
"""Prefix of the ids of a reference's conversations."""
YOURS, REFERENCE = "yours", "reference"
"""The two sets, as a row's `set` names them."""
OPPOSITE = {"evaluation": "deployment", "deployment": "evaluation"}

DEFAULT = REFERENCE_NAMES["bundled"]
_EVALUATION = "evaluation eval evals evaluations test tests testing benchmark true 1 1.0"
_DEPLOYMENT = "deployment deployed deploy real real_world real_use real_usage realworld organic production natural false 0 0.0"
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
    "domain",
    "format",
    "agentic",
    "language",
    "pair",
)
"""Columns whose names may have capitals."""
_USED = {
    *_COLUMNS,
    "id",
    "sample_id",
    "custom_id",
    "metadata",
    "scaffold",
    "body",
    "params",
    "method",
    "url",
    "instructions",
}
"""Columns that are read where they are there."""
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
    """The conversations of one source, or of several data sets together, cut to the context; hashed
    as they are asked.

    A row that is empty, has no user message or holds more than text (an image), one with the text
    and label of an earlier row, and a sample that never came to a call of the model, is set aside
    and counted (`Table.aside`).

    Args:
        dataset: Data sets; see the module's docstring. Not with `task` or `logs`.
        task: An Inspect task: what it first asks its model in each sample. No model runs.
        logs: A log or a folder of logs: what their model was first asked in each sample.
        label: The label of every row: "evaluation", "deployment"; not of a reference. Without it
            the rows' own; rows without one are measured all the same, and only shares are reported.
        context: "first": the system prompt and the first user message, as in paper 002; of a task
            or logs the first call as it is. "full": all messages up to the last that is not the
            model's, since the subject writes the last reply itself.
        role: Whose conversations of a task or of logs: a model role ("target"); None is the
            evaluated model.
        against: A reference, as `dataset`, or "bundled". Its rows get ids and `set` of their own;
            see `_with_reference`.
        as_sent: With context "full", keep the last reply too, and calls of tools and their results
            apart: messages may have `calls` (function and arguments as JSON), and the role "tool".

    Raises:
        InputError: A row without a conversation's column or with an unknown label; nothing but rows
            that are set aside; rows that are all alike; the same id twice (naming both places);
            `task` and `logs` together; a role without either; an option that is none; no such file;
            a reference that is the set itself.
    """
    one_of("context", context, get_args(Context))
    if label is not None:
        one_of("label", label, get_args(Label))
    if against is not None and not str(against).strip():
        raise InputError("against must name a set: bundled, a file, hf:…, task:… or logs:…")
    if (task or logs) and dataset != DEFAULT:
        raise InputError(f"dataset={dataset} beside {'task' if task else 'logs'}: give one of them")
    known = REFERENCE_NAMES.get(dataset, dataset) if isinstance(dataset, str) else dataset
    ours = _read(known, task, logs, label=label, context=context, role=role, as_sent=as_sent)
    if against is None:
        return ours
    other = REFERENCE_NAMES.get(against, against)
    reference = _read(other, None, None, label=None, context=context, role=None, as_sent=as_sent)
    return _with_reference(ours, reference, against)


@dataclass(frozen=True)
class _Choice:
    """One set of conversations, and how its rows are read; see `conversations`."""

    names: tuple[str, ...]
    """Addresses of its sources."""
    title: str
    """Task or logs, in the user's words; "" for data sets, which are called by their addresses."""
    label: str | None
    context: str
    role: str | None
    as_sent: bool


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
    names = _names(dataset, task, logs, role)
    choice = _Choice(names, task or logs or "", label, context, role, as_sent)
    return kept_tables.get_or_read(("conversations", choice), names, lambda: _read_anew(choice))


def _names(
    dataset: str | Sequence[str], task: str | None, logs: str | None, role: str | None
) -> tuple[str, ...]:
    """Addresses of the sources.

    Raises:
        InputError: `task` and `logs` together, or a role of neither.
    """
    if task and logs:
        raise InputError(f"give task={task} or logs={logs}, not both")
    given = dataset if isinstance(dataset, list | tuple) else str(dataset or "").split(",")
    names = (
        [f"task:{task}"]
        if task
        else [f"logs:{logs}"]
        if logs
        else [str(name).strip() for name in given]
    )
    if role is not None and not any(name.startswith(SCHEMES) for name in names):
        raise InputError(f"role={role} is for logs=… and task=…: rows of a file are no role's")
    return tuple(names)


def _read_anew(choice: _Choice) -> Table:
    builder, aside, notes = TableBuilder(), dict[str, str](), list[str]()
    origin_of_id, id_of_content = dict[str, str](), dict[bytes, str]()
    repeated_count = 0
    texts = set[bytes]()  # no more than two: whether they are all alike
    for address in choice.names:
        name, passed_over = choice.title or address, ""
        seen_columns = dict[str, None]()
        for row, cluster in _rows(address, choice):
            where = f"{name}, row {row['id'][-80:]!r}"
            if not row.keys() <= seen_columns.keys():
                seen_columns |= dict.fromkeys(row)
            try:
                made = conversation(
                    row,
                    where=where,
                    source=name,
                    cluster=cluster,
                    label=choice.label,
                    context=choice.context,
                    as_sent=choice.as_sent,
                )
                passed_over = passed_over or unread(row, where)
            except Unaskable as why:
                aside[f"{name}: {row['id']}"] = str(why)
                continue
            key = made["id"]
            if earlier := origin_of_id.get(key):
                raise InputError(
                    f"id {key!r} is in {earlier} and in {name}; ids must be unique over all data sets"
                )
            text = _digest([made["messages"], made.get("tools")])
            content = text + str(made["label"]).encode()
            if content in id_of_content:
                aside[f"{name}: {key}"] = (
                    f"the same text and label as row {id_of_content[content]!r}"
                )
                repeated_count += 1
                continue
            if len(texts) < 2:
                texts.add(text)
            refuse_unnameable(key, name)
            origin_of_id[key], id_of_content[content] = name, key
            builder.add(made)
        notes += [f"{name}: {passed_over}"] if passed_over else []
        if is_user_data(address):
            _, groups = split_groups(address)
            used = _USED | set(groups.values()) | {column for column in TEXT_COLUMNS if passed_over}
            notes += [f"{name}: {line}" for line in unused_columns(seen_columns, used)]
    named = dict.fromkeys([*origin_of_id.values(), *(key.rpartition(": ")[0] for key in aside)])
    table = builder.table(",".join(named), aside, "; ".join(notes))
    return _checked(table, texts=len(texts), read=len(table.rows) + repeated_count)


def _digest(content: object) -> bytes:
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).digest()


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


def conversation(
    row: Row,
    *,
    where: str,
    source: str,
    label: str | None,
    context: str,
    as_sent: bool = False,
    cluster: str = "",
) -> Row:
    """A row of any source in our own form: id, messages, and the fields that numbers are split by
    (None if unknown).

    `tools` is there where tools were offered. A row with `called` is what a model was sent, and
    stays as it is. `source` is what it counts with: the `cluster`, or its own, or that of all rows.
    """
    if "aside" in row:
        raise Unaskable(f"{where}: {row['aside']}")
    meta: Mapping[str, Any] = {**metadata_of(row), **row}
    messages, tools = row_messages(row, where), row_tools(row, where)
    if not any(m.role == "user" and not m.by_tool for m in messages):
        got = [m.role for m in messages] or "nothing"
        raise Unaskable(f"{where}: no user message; expected at least one, got {got}")
    agentic = meta.get("agentic", bool(meta["scaffold"]) if "scaffold" in meta else None)
    if isinstance(agentic, str):
        agentic = {"true": True, "1": True, "false": False, "0": False}.get(agentic.strip().lower())
    kept = (
        _first(messages) if context == "first" and not row.get("called") else _until_reply(messages)
    )
    if as_sent:
        kept = messages
    return {
        "id": row["id"],
        "messages": [_sent(m) if as_sent else {"role": m.role, "content": m.text} for m in kept],
        "label": label or _label(meta, where),
        "source": cluster or _source(row, meta) or source,
        "domain": _text(meta.get("domain")),
        "format": _text(meta.get("format")),
        "agentic": agentic,
        "turns": sum(m.role == "user" and not m.by_tool for m in messages),
        "pair": _text(meta.get("pair")),
    } | {
        name: value
        for name, value in (("language", _text(meta.get("language"))), ("tools", tools))
        if value
    }


def record_to_sample(row: Row) -> Sample:
    """One conversation as a sample; the label is the target, the fields are its metadata.

    `flip` turns the polarity of the last variant of a question for half of the rows, whatever their
    label (by a hash of the id), so that an odd number of variants is balanced over the data.
    """
    kinds = {
        "system": ChatMessageSystem,
        "user": ChatMessageUser,
        "assistant": ChatMessageAssistant,
    }
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
    return {
        "role": message.role,
        "content": message.content,
        "calls": [list(call) for call in message.calls],
    }


def _rows(address: str, choice: _Choice) -> Iterator[tuple[Row, str]]:
    """Every row of a source, with its `id`; and its cluster, "" where the address names no column
    for that.
    """
    if address.startswith(SCHEMES):
        for row in inspect_rows(address, full=choice.context == "full", role=choice.role):
            yield row, ""
        return
    place, column_of_group = split_groups(address)
    if "kind" in column_of_group:
        raise InputError(
            f"{address}: ?kind is for items that models predict; conversations take ?cluster=COLUMN alone"
        )
    rows = _rows_of_json(place) if place.lower().endswith(".json") else each_row(address, place)
    grouping, count = Grouping(address, column_of_group), 0
    for row in rows:
        count += 1
        cluster = grouping.groups_of({**metadata_of(row), **row}).get("cluster", "")
        row_id = str(row.get("custom_id") or row["id"])  # of batch files
        yield {**with_columns(row, _COLUMNS), "id": row_id}, cluster
    grouping.refuse_lacking(count)


def _rows_of_json(name: str) -> Iterator[Row]:
    """The gated set's form: one array of {input: text or messages, metadata: {category,
    eval_category, scaffold}}.
    """
    path, number = locate(name), 0
    expected = "an array of objects, each with `input` (or `messages`) and `metadata`"
    for number, row in enumerate(
        json_rows(path, expected=expected, hint="; is it still encrypted?"), start=1
    ):
        where = f"{path}, row {number}"
        row_id = (
            id_text(row.get("id"), where) or id_text(row.get("sample_id"), where) or f"row-{number}"
        )
        yield {**row, "id": row_id}
    if not number:
        raise InputError(f"{path}: expected {expected}, got none")


def metadata_of(row: Row) -> Mapping[str, Any]:
    """Fields below `metadata`, where the gated set and exports of logs have what is known of a row."""
    inner = row.get("metadata")
    return inner if isinstance(inner, dict) else {}


def _source(row: Row, known: Mapping[str, Any]) -> str:
    """What a conversation counts with; "" where it is not said.

    A column `category` is none: it may have two values over thousands of unlike texts. In the gated
    set's `metadata`, beside `eval_category`, it is the name of the data set that a row comes from.
    """
    inner = metadata_of(row)
    gated = inner.get("category") if "eval_category" in inner else None
    return str(known.get("source") or gated or "")


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
                f"{where}: {column} must be evaluation or deployment (or 1 or 0), got {value!r:.80}; "
                "or give -T label=… (--label)"
            )
    return None


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


# ---- a set and a reference to compare it with, as one table, so that one run asks both


def _with_reference(table: Table, reference: Table, address: str) -> Table:
    """Rows of both sets in turns, so that a limit takes as many of each; every row with `set`:
    YOURS or REFERENCE.

    A conversation of the reference whose text is in our set as well would be held against itself:
    it is set aside. So is one with the label that our rows stand for (`stands_for`): it would be
    asked about and count for nothing.

    Args:
        table: Result of `conversations`.
        reference: The same; its ids get `reference:` before them.
        address: The reference as the user named it.

    Raises:
        InputError: Nothing is left of the reference.
    """
    id_of_dialogue = {_dialogue_digest(row): row["id"] for row in table.rows}
    aside, others_count = dict[str, str](), 0
    label_pairs = {(YOURS, row.get("label")) for row in table.rows}
    for row in reference.rows:
        if same := id_of_dialogue.get(_dialogue_digest(row)):
            aside[f"{reference.name}: {row['id']}"] = f"the same text is in your set, as {same!r}"
        else:
            others_count += 1
            label_pairs.add((REFERENCE, row.get("label")))
    if not others_count:
        raise InputError(
            f"against={address}: all {len(reference.rows)} of its texts are in your set {table.name} as well, and "
            "nothing can be told from a set held against itself; give other conversations"
        )
    own = stands_for(label_pairs)

    def others() -> Iterator[Row]:
        for row in reference.rows:
            place = f"{reference.name}: {row['id']}"
            if place in aside:
                continue
            if own and row.get("label") == own:
                aside[place] = f"labelled {own}, as what your set stands for: it stands for neither"
            else:
                yield {**row, "id": f"{REFERENCE_ID}{row['id']}", "set": REFERENCE}

    yours = ({**row, "set": YOURS} for row in table.rows)
    rows = (row for both in zip_longest(yours, others()) for row in both if row is not None)
    unread_columns = "; ".join(filter(None, (table.unread, reference.unread)))
    both = table_of(f"{table.name} against {reference.name}", rows, {}, unread_columns)
    return replace(both, aside={**table.aside, **reference.aside, **aside})


def name_and_contents(name: str) -> str:
    """Name of a data set as its logs have it, and its contents if it is bundled.

    >>> name_and_contents("mine.jsonl against their.jsonl")
    'mine.jsonl against their.jsonl'
    """
    parts = [part for side in name.split(" against ") for part in side.split(",")]
    # Logs from before there were two call the first one "bundled", where it was the reference.
    known = {
        part: BUNDLED_CONTENTS["eval_awareness" if part == "bundled" else part]
        for part in parts
        if part in (*BUNDLED_CONTENTS, "bundled")
    }
    told = [what if part == name else f"{part}: {what}" for part, what in known.items()]
    return f"{name} ({'; '.join(told)})" if told else name


def stands_for(rows: Iterable[tuple[str | None, str | None]]) -> str | None:
    """Label that your rows stand for next to a reference: their one label, or evaluation where they
    have none.

    Args:
        rows: (set, label) of each conversation.

    Returns:
        The label; "" where your rows have both, and keep them; None where nothing changes: there is
        no reference, or all of it has your one label.
    """
    given = list(rows)
    mine = {label for of_set, label in given if of_set != REFERENCE} - {None}
    theirs = [label for of_set, label in given if of_set == REFERENCE]
    if not theirs or len(theirs) == len(given):
        return None
    own = "" if len(mine) > 1 else str(next(iter(mine), "evaluation"))
    return None if all(label == own for label in theirs) else own


def counted_label(your_label: str | None, of_set: str | None, label: str | None) -> str | None:
    """The label that a row counts with.

    Your rows stand for `your_label` and the reference for the other label; rows of the reference
    with your label stand for neither, and where your rows have both labels none of the reference
    does.

    Args:
        your_label: Result of `stands_for`.
        of_set: YOURS, REFERENCE, or None.
        label: The row's own.
    """
    if your_label is None:
        return label
    if of_set != REFERENCE:
        return your_label or label
    return None if label == your_label else OPPOSITE.get(your_label)


def _dialogue_digest(row: Row) -> bytes:
    return _digest([(message["role"], message["content"].strip()) for message in row["messages"]])


# ---- whole transcripts, with calls and results of tools as messages; evaluations paired with real
# use of their length A turn is what ends with a message of the model and the results of the tools
# that it called; what comes after the last one is a turn too.

UNPAIRED = "no transcript of the other kind is left to pair it with"


def transcript_rows(
    dataset: str | Sequence[str], *, against: str | None = None, **given: Any
) -> Table:
    """Whole transcripts; where there are evaluations and real use, as many of both, each with the
    nearest in length.

    Rows are those of `conversations`, with `kind` ("evaluation", "deployment", or None), `count`
    (turns) and, where they are paired, `pair`. Pairs stand one after the other. Distance is that of
    the logarithms of the turns and, half as much, of the characters; all pairs together are the
    nearest (Hungarian method).

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
        {
            **row,
            "kind": counted_label(own, row.get("set"), row["label"]),
            "count": len(ends(row["messages"])),
        }
        for row in table.rows
    ]
    ours, others = (
        [row for row in rows if row["kind"] == kind] for kind in ("evaluation", "deployment")
    )
    if not ours or not others:
        return table_of(table.name, rows, table.aside, table.unread)
    cost = np.abs(_sizes(ours)[:, None] - _sizes(others)[None]).sum(axis=2)
    pairs = sorted(
        zip(*linear_sum_assignment(cost), strict=True), key=lambda pair: (pair[0], pair[1])
    )
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
    """The messages of a row as Inspect's; results are those of the last calls, in order, and
    without one a user's.
    """
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
            parameters=ToolParams(
                properties={each: JSONSchema(type="string") for each in sorted(given)}
            ),
        )
        for name, given in called.items()
        if name not in names
    ]


def asked_at(longest: int, most: int) -> list[int]:
    """Turns to ask after: all where there are at most so many, else the first ones and then ever
    fewer, the last too.

    >>> asked_at(200, 10)
    [1, 2, 3, 6, 11, 19, 34, 62, 111, 200]
    """
    if longest <= most:
        return list(range(1, longest + 1))
    return sorted({round(turn) for turn in np.geomspace(1, longest, most)})
