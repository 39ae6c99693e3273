"""Conversations to measure evaluation awareness on, also beside a reference, and whole transcripts
in pairs.

-T dataset=eval_awareness_2         bundled; also my.jsonl, my.csv, hf:owner/name@revision, s3://…,
                                    or several: a.jsonl,b.csv
-T dataset=dataset.json             the gated set of Needham et al. 2025, as its owner's script
                                    decrypts it (never shipped)
-T dataset=task:inspect_evals/gsm8k what any Inspect task asks its model, by name or as file.py or
                                    file.py@task; label evaluation; also -T task=…
-T dataset=logs:logs/yesterday      what the model of any Inspect logs was asked; also -T logs=…; a
                                    role of them: logs:logs/audit?role=target
-T against=bundled                  asked as well, to compare the set with: any of the above

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
    first_reason,
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
from selfprobe.text.counts import count_text

Label = Literal["evaluation", "deployment"]
Context = Literal["first", "full"]

REFERENCE_NAMES = {"bundled": "eval_awareness_2"}
"""Names of sets that a reference may have in addition to those of data sets."""
BUNDLED_CONTENTS = {
    "eval_awareness": (
        "bundled, the first of two, whose labels are easy to see: a check that a method points the "
        "right way, and no measure of how much is noticed"
    ),
    "eval_awareness_2": (
        "bundled; all of it was written for this, and a label says what a text was written as; two "
        "blind readers, language models, had 77 and 76 % right"
    ),
}
"""The bundled sets, and what a page says of each."""

_EVALUATION_LABELS = "evaluation eval evals evaluations test tests testing benchmark true 1 1.0"
_DEPLOYMENT_LABELS = (
    "deployment deployed deploy real real_world real_use real_usage realworld organic production "
    "natural false 0 0.0"
)
_LABEL_BY_WORD: dict[str, Label] = {
    **dict.fromkeys(_EVALUATION_LABELS.split(), "evaluation"),
    **dict.fromkeys(_DEPLOYMENT_LABELS.split(), "deployment"),
}
REFERENCE_ID = "reference:"
"""Prefix of the ids of a reference's conversations."""
YOURS, REFERENCE = "yours", "reference"
"""The two sets, as a row's `set` names them."""
OPPOSITE = {"evaluation": "deployment", "deployment": "evaluation"}

DEFAULT = REFERENCE_NAMES["bundled"]
_LABEL_COLUMNS = ("label", "is_evaluation", "is_eval", "eval_category")
_NAMED_COLUMNS: tuple[str, ...] = (
    *LISTS,
    *TEXT_COLUMNS,
    "system",
    "tools",
    *_LABEL_COLUMNS,
    "source",
    "domain",
    "format",
    "agentic",
    "language",
    "pair",
)
"""Columns whose names may have capitals."""
_USED_COLUMNS = {
    *_NAMED_COLUMNS,
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
_SAMPLE_FIELDS = ("label", "source", "domain", "format", "agentic", "turns", "pair")


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
    and counted (`Table.set_aside_reasons`).

    Args:
        dataset: Data sets; see the module's docstring. Not with `task` or `logs`.
        task: An Inspect task: what it first asks its model in each sample. No model runs.
        logs: A log or a folder of logs: what their model was first asked in each sample.
        label: The label of every row: "evaluation", "deployment"; not of a reference. Without it
            the rows' own; rows without one are measured all the same, and only shares are reported.
        context: "first": the system prompt and the first user message, as in the
            evaluation-awareness paper; of a task or logs the first call as it is. "full": all
            messages up to the last that is not the model's, since the subject writes the last reply
            itself.
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

    if isinstance(dataset, str):
        dataset = REFERENCE_NAMES.get(dataset, dataset)
    source_names = _source_names(dataset, task, logs, role)
    table = _read(_Choice(source_names, task or logs or "", label, context, role, as_sent))
    if against is None:
        return table

    reference_names = _source_names(REFERENCE_NAMES.get(against, against), None, None, None)
    reference = _read(_Choice(reference_names, "", None, context, None, as_sent))
    return _with_reference(table, reference, against)


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


def _read(choice: _Choice) -> Table:
    """One set, read without a reference; see `conversations`."""
    key = ("conversations", choice)
    return kept_tables.get_or_read(key, choice.names, lambda: _read_anew(choice))


def _source_names(
    dataset: str | Sequence[str], task: str | None, logs: str | None, role: str | None
) -> tuple[str, ...]:
    """Addresses of the sources.

    Raises:
        InputError: `task` and `logs` together, or a role of neither.
    """
    if task and logs:
        raise InputError(f"give task={task} or logs={logs}, not both")
    if task:
        names = [f"task:{task}"]
    elif logs:
        names = [f"logs:{logs}"]
    elif isinstance(dataset, list | tuple):
        names = [str(name).strip() for name in dataset]
    else:
        names = [name.strip() for name in str(dataset or "").split(",")]
    if role is not None and not any(name.startswith(SCHEMES) for name in names):
        raise InputError(f"role={role} is for logs=… and task=…: rows of a file are no role's")
    return tuple(names)


class _TableReader:
    """The conversations of several sources, put into one table."""

    def __init__(self, choice: _Choice) -> None:
        self._choice = choice
        self._builder = TableBuilder()
        self._reason_by_row: dict[str, str] = {}
        """Source and id of each row that is set aside → why."""
        self._notes: list[str] = []
        self._source_by_id: dict[str, str] = {}
        self._id_by_content: dict[bytes, str] = {}
        self._repeated_count = 0
        self._first_texts: set[bytes] = set()
        """Digests of at most two texts, which say whether all are alike."""

    def read(self, address: str) -> None:
        """Add the rows of a source."""
        source = self._choice.title or address
        unread_texts = ""
        seen_columns: dict[str, None] = {}
        for row, cluster in _rows(address, self._choice):
            if not row.keys() <= seen_columns.keys():
                seen_columns |= dict.fromkeys(row)
            row_place = f"{source}, row {row['id'][-80:]!r}"
            try:
                record = self._conversation(row, row_place, source, cluster)
                unread_texts = unread_texts or unread(row, row_place)
            except Unaskable as reason:
                self._reason_by_row[f"{source}: {row['id']}"] = str(reason)
                continue
            self._add(record, source)

        if unread_texts:
            self._notes.append(f"{source}: {unread_texts}")
        if is_user_data(address):
            _, groups = split_groups(address)
            used_columns = {*_USED_COLUMNS, *groups.values()}
            if unread_texts:
                used_columns.update(TEXT_COLUMNS)
            unused_lines = unused_columns(seen_columns, used_columns)
            self._notes += [f"{source}: {line}" for line in unused_lines]

    def _conversation(self, row: Row, row_place: str, source: str, cluster: str) -> Row:
        return conversation(
            row,
            where=row_place,
            source=source,
            cluster=cluster,
            label=self._choice.label,
            context=self._choice.context,
            as_sent=self._choice.as_sent,
        )

    def _add(self, record: Row, source: str) -> None:
        """Add a conversation, unless an earlier one has its text and label."""
        record_id = record["id"]
        if earlier_source := self._source_by_id.get(record_id):
            raise InputError(
                f"id {record_id!r} is in {earlier_source} and in {source}; "
                "ids must be unique over all data sets"
            )
        text_digest = _digest([record["messages"], record.get("tools")])
        content = text_digest + str(record["label"]).encode()
        if content in self._id_by_content:
            same_id = self._id_by_content[content]
            reason = f"the same text and label as row {same_id!r}"
            self._reason_by_row[f"{source}: {record_id}"] = reason
            self._repeated_count += 1
            return
        if len(self._first_texts) < 2:
            self._first_texts.add(text_digest)
        refuse_unnameable(record_id, source)
        self._source_by_id[record_id] = source
        self._id_by_content[content] = record_id
        self._builder.add(record)

    def table(self) -> Table:
        """All conversations that were added.

        Raises:
            InputError: There are none, or all are the same text, which can show nothing.
        """
        sources_aside = [row.rpartition(": ")[0] for row in self._reason_by_row]
        sources = dict.fromkeys([*self._source_by_id.values(), *sources_aside])
        table = self._builder.table(",".join(sources), self._reason_by_row, "; ".join(self._notes))
        if not table.rows:
            aside_count = len(table.set_aside_reasons)
            reason = first_reason(table.set_aside_reasons.values()) or "it has no rows"
            raise InputError(
                f"{table.name}: no conversation is left of {count_text(aside_count, 'row')}: {reason}"
            )
        read_count = len(table.rows) + self._repeated_count
        if len(self._first_texts) == 1 < read_count:
            excerpt = table.rows[0]["messages"][-1]["content"][:80]
            raise InputError(
                f"{table.name}: all {read_count} conversations are the same text, {excerpt!r}: "
                "nothing can be told from them; give different ones, or one"
            )
        return table


def _read_anew(choice: _Choice) -> Table:
    reader = _TableReader(choice)
    for address in choice.names:
        reader.read(address)
    return reader.table()


def _digest(content: object) -> bytes:
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).digest()


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
    fields: Mapping[str, Any] = {**metadata_of(row), **row}
    messages = row_messages(row, where)
    tools = row_tools(row, where)
    user_turns = sum(map(_is_users, messages))
    if not user_turns:
        roles = [message.role for message in messages] or "nothing"
        raise Unaskable(f"{where}: no user message; expected at least one, got {roles}")

    if as_sent:
        asked_messages = [_sent(message) for message in messages]
    else:
        if context == "first" and not row.get("called"):
            messages = _first_exchange(messages)
        else:
            messages = _until_reply(messages)
        asked_messages = [{"role": message.role, "content": message.text} for message in messages]

    record = {
        "id": row["id"],
        "messages": asked_messages,
        "label": label or _label(fields, where),
        "source": cluster or _source(row, fields) or source,
        "domain": _text_or_none(fields.get("domain")),
        "format": _text_or_none(fields.get("format")),
        "agentic": _is_agentic(fields),
        "turns": user_turns,
        "pair": _text_or_none(fields.get("pair")),
    }
    if language := _text_or_none(fields.get("language")):
        record["language"] = language
    if tools:
        record["tools"] = tools
    return record


def _is_users(message: Message) -> bool:
    return message.role == "user" and not message.by_tool


def _is_agentic(fields: Mapping[str, Any]) -> Any:
    """Whether a row is of an agent, as its column says; None where nothing says it."""
    if "agentic" not in fields:
        return bool(fields["scaffold"]) if "scaffold" in fields else None
    agentic = fields["agentic"]
    if not isinstance(agentic, str):
        return agentic
    truth_by_word = {"true": True, "1": True, "false": False, "0": False}
    return truth_by_word.get(agentic.strip().lower())


def record_to_sample(row: Row) -> Sample:
    """One conversation as a sample; the label is the target, the fields are its metadata.

    `flip` turns the polarity of the last variant of a question for half of the rows, whatever their
    label (by a hash of the id), so that an odd number of variants is balanced over the data.
    """
    message_types = {
        "system": ChatMessageSystem,
        "user": ChatMessageUser,
        "assistant": ChatMessageAssistant,
    }
    messages: list[ChatMessage] = [
        message_types[message["role"]](content=message["content"]) for message in row["messages"]
    ]
    id_hash = table_of("", [{"id": row["id"]}]).sha256
    metadata = {field: row[field] for field in _SAMPLE_FIELDS}
    metadata["flip"] = int(id_hash, 16) % 2 == 1
    for optional_field in ("set", "language", "tools"):
        if optional_field in row:
            metadata[optional_field] = row[optional_field]
    return Sample(id=row["id"], input=messages, target=row["label"] or "", metadata=metadata)


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

    rows_address, column_of_group = split_groups(address)
    if "kind" in column_of_group:
        raise InputError(
            f"{address}: ?kind is for items that models predict; "
            "conversations take ?cluster=COLUMN alone"
        )
    if rows_address.lower().endswith(".json"):
        rows = _rows_of_json(rows_address)
    else:
        rows = each_row(address, rows_address)
    grouping = Grouping(address, column_of_group)
    row_count = 0
    for row in rows:
        row_count += 1
        cluster = grouping.groups_of({**metadata_of(row), **row}).get("cluster", "")
        row_id = str(row.get("custom_id") or row["id"])  # of batch files
        yield {**with_columns(row, _NAMED_COLUMNS), "id": row_id}, cluster
    grouping.refuse_lacking(row_count)


def _rows_of_json(name: str) -> Iterator[Row]:
    """The gated set's form: one array of {input: text or messages, metadata: {category,
    eval_category, scaffold}}.
    """
    path = locate(name)
    expected = "an array of objects, each with `input` (or `messages`) and `metadata`"
    rows = json_rows(path, expected=expected, hint="; is it still encrypted?")
    number = 0
    for number, row in enumerate(rows, start=1):
        row_place = f"{path}, row {number}"
        own_id = id_text(row.get("id"), row_place) or id_text(row.get("sample_id"), row_place)
        yield {**row, "id": own_id or f"row-{number}"}
    if not number:
        raise InputError(f"{path}: expected {expected}, got none")


def metadata_of(row: Row) -> Mapping[str, Any]:
    """Fields below `metadata`, where the gated set and exports of logs describe a row."""
    metadata = row.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _source(row: Row, fields: Mapping[str, Any]) -> str:
    """What a conversation counts with; "" where it is not said.

    A column `category` is none: it may have two values over thousands of unlike texts. In the gated
    set's `metadata`, beside `eval_category`, it is the name of the data set that a row comes from.
    """
    metadata = metadata_of(row)
    gated_source = metadata.get("category") if "eval_category" in metadata else None
    return str(fields.get("source") or gated_source or "")


def _first_exchange(messages: Sequence[Message]) -> list[Message]:
    """The system prompts before the first user message, and that message."""
    first = next(place for place, message in enumerate(messages) if _is_users(message))
    system_messages = [message for message in messages[:first] if message.role == "system"]
    return [*system_messages, messages[first]]


def _until_reply(messages: Sequence[Message]) -> list[Message]:
    asked_places = [place for place, message in enumerate(messages) if message.role != "assistant"]
    return list(messages[: asked_places[-1] + 1])


def label_of_word(value: object) -> Label | None:
    """The label that a word such as "real use" or 1 stands for; None where it is no such word."""
    word = re.sub(r"[\s-]+", "_", str(value).strip().lower())
    return _LABEL_BY_WORD.get(word)


def _label(fields: Mapping[str, Any], where: str) -> Label | None:
    for column in _LABEL_COLUMNS:
        value = fields.get(column)
        if value is None or not str(value).strip():
            continue
        label = label_of_word(value)
        if label is not None:
            return label
        raise InputError(
            f"{where}: {column} must be evaluation or deployment (or 1 or 0), got {value!r:.80}; "
            "or give -T label=… (--label)"
        )
    return None


def _text_or_none(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


# ---- a set and a reference to compare it with, as one table, so that one run asks both


def _with_reference(table: Table, reference: Table, address: str) -> Table:
    """Rows of both sets in turns, so that a limit takes as many of each; every row with `set`:
    YOURS or REFERENCE.

    A conversation of the reference whose text is in our set as well would be compared with itself:
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
    label_pairs = {(YOURS, row.get("label")) for row in table.rows}
    reason_by_row: dict[str, str] = {}
    comparable_count = 0
    for row in reference.rows:
        same_id = id_of_dialogue.get(_dialogue_digest(row))
        if same_id:
            reason = f"the same text is in your set, as {same_id!r}"
            reason_by_row[f"{reference.name}: {row['id']}"] = reason
        else:
            comparable_count += 1
            label_pairs.add((REFERENCE, row.get("label")))
    if not comparable_count:
        raise InputError(
            f"against={address}: all {len(reference.rows)} of its texts are in your set "
            f"{table.name} as well, and nothing can be told from a set held against itself; "
            "give other conversations"
        )
    your_label = stands_for(label_pairs)

    def reference_rows() -> Iterator[Row]:
        for row in reference.rows:
            row_place = f"{reference.name}: {row['id']}"
            if row_place in reason_by_row:
                continue
            if your_label and row.get("label") == your_label:
                reason_by_row[row_place] = (
                    f"its label is {your_label}, which your set stands for, so the reference leaves it out"
                )
                continue
            yield {**row, "id": f"{REFERENCE_ID}{row['id']}", "set": REFERENCE}

    your_rows = ({**row, "set": YOURS} for row in table.rows)
    turns = zip_longest(your_rows, reference_rows())
    rows = (row for turn in turns for row in turn if row is not None)
    unread_columns = "; ".join(
        filter(None, (table.unread_columns_note, reference.unread_columns_note))
    )
    both_sets = table_of(f"{table.name} against {reference.name}", rows, {}, unread_columns)
    return replace(
        both_sets,
        set_aside_reasons={
            **table.set_aside_reasons,
            **reference.set_aside_reasons,
            **reason_by_row,
        },
    )


def name_and_contents(name: str) -> str:
    """Name of a data set as its logs have it, and its contents if it is bundled.

    >>> name_and_contents("mine.jsonl against their.jsonl")
    'mine.jsonl against their.jsonl'
    """
    descriptions = []
    for part in _set_names(name):
        if part in BUNDLED_CONTENTS:
            contents = BUNDLED_CONTENTS[part]
            descriptions.append(contents if part == name else f"{part}: {contents}")
    return f"{name} ({'; '.join(descriptions)})" if descriptions else name


def is_bundled(name: str) -> bool:
    """Whether all sets of a data set's name, such as "mine against bundled", are bundled ones."""
    bundled_names = BUNDLED_CONTENTS.keys() | REFERENCE_NAMES.keys()
    return bundled_names >= set(_set_names(name))


def _set_names(name: str) -> list[str]:
    parts = [part for side in name.split(" against ") for part in side.split(",")]
    return list(dict.fromkeys(parts))


def stands_for(rows: Iterable[tuple[str | None, str | None]]) -> str | None:
    """Label that your rows stand for next to a reference: their one label, or evaluation where they
    have none.

    Args:
        rows: (set, label) of each conversation.

    Returns:
        The label; "" where your rows have both, and keep them; None where nothing changes: there is
        no reference, or all of it has your one label.
    """
    row_count = 0
    your_labels = set[str]()
    reference_labels = list[str | None]()
    for set_name, label in rows:
        row_count += 1
        if set_name == REFERENCE:
            reference_labels.append(label)
        elif label is not None:
            your_labels.add(label)
    if not reference_labels or len(reference_labels) == row_count:
        return None
    if len(your_labels) > 1:
        your_label = ""
    else:
        your_label = next(iter(your_labels), "evaluation")
    if all(label == your_label for label in reference_labels):
        return None
    return your_label


def counted_label(your_label: str | None, set_name: str | None, label: str | None) -> str | None:
    """The label that a row counts with.

    Your rows stand for `your_label` and the reference for the other label; rows of the reference
    with your label stand for neither, and where your rows have both labels none of the reference
    does.

    Args:
        your_label: Result of `stands_for`.
        set_name: YOURS, REFERENCE, or None.
        label: The row's own.
    """
    if your_label is None:
        return label
    if set_name != REFERENCE:
        return your_label or label
    return None if label == your_label else OPPOSITE.get(your_label)


def _dialogue_digest(row: Row) -> bytes:
    return _digest([(message["role"], message["content"].strip()) for message in row["messages"]])


# ---- whole transcripts, with calls and results of tools as messages; evaluations paired with real
# use of their length A turn is what ends with a message of the model and the results of the tools
# that it called; what comes after the last one is a turn too.

UNPAIRED = "no transcript of the other kind is left to pair it with"


def transcript_rows(
    dataset: str | Sequence[str], *, against: str | None = None, **source_options: Any
) -> Table:
    """Whole transcripts; where there are evaluations and real use, as many of both, each with the
    nearest in length.

    Rows are those of `conversations`, with `kind` ("evaluation", "deployment", or None), `count`
    (turns) and, where they are paired, `pair`. Pairs stand one after the other. Distance is that of
    the logarithms of the turns and, half as much, of the characters; all pairs together are the
    nearest (Hungarian method).

    Args:
        dataset: See `conversations`.
        against: Real use to compare it with, or another kind.
        source_options: task, logs, role, label; see `conversations`.

    Raises:
        InputError: See `conversations`.
    """
    table = conversations(dataset, against=against, context="full", as_sent=True, **source_options)
    your_label = stands_for((row.get("set"), row["label"]) for row in table.rows)
    rows = []
    for row in table.rows:
        kind = counted_label(your_label, row.get("set"), row["label"])
        rows.append({**row, "kind": kind, "count": len(ends(row["messages"]))})
    evaluations = [row for row in rows if row["kind"] == "evaluation"]
    deployments = [row for row in rows if row["kind"] == "deployment"]
    if not evaluations or not deployments:
        return table_of(table.name, rows, table.set_aside_reasons, table.unread_columns_note)

    size_differences = _log_sizes(evaluations)[:, None] - _log_sizes(deployments)[None]
    distances = np.abs(size_differences).sum(axis=2)
    paired_rows = []
    for evaluation, deployment in zip(*linear_sum_assignment(distances), strict=True):
        pair_id = evaluations[evaluation]["id"]
        paired_rows.append({**evaluations[evaluation], "pair": pair_id})
        paired_rows.append({**deployments[deployment], "pair": pair_id})
    paired_ids = {row["id"] for row in paired_rows}
    unpaired = {
        f"{table.name}: {row['id']}": UNPAIRED for row in rows if row["id"] not in paired_ids
    }
    return table_of(
        table.name, paired_rows, {**table.set_aside_reasons, **unpaired}, table.unread_columns_note
    )


def _log_sizes(rows: Sequence[Row]) -> np.ndarray:
    """[row, 2]: logarithm of the turns, and half of that of the characters."""
    turn_counts = [row["count"] for row in rows]
    character_counts = []
    for row in rows:
        character_counts.append(1 + sum(len(message["content"]) for message in row["messages"]))
    return np.column_stack([np.log(turn_counts), 0.5 * np.log(character_counts)])


def ends(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """Number of messages up to the end of each turn.

    >>> roles = ("system", "user", "assistant", "tool", "assistant", "user")
    >>> ends([{"role": role} for role in roles])
    [4, 5, 6]
    """
    turn_ends = []
    has_reply = False
    for place, message in enumerate(messages):
        if has_reply and message["role"] != "tool":
            turn_ends.append(place)
            has_reply = False
        if message["role"] == "assistant":
            has_reply = True
    return [*turn_ends, len(messages)]


def chat(messages: Sequence[Mapping[str, Any]]) -> list[ChatMessage]:
    """The messages of a row as Inspect's; results are those of the last calls, in order, and
    without one a user's.
    """
    chat_messages: list[ChatMessage] = []
    pending_calls: list[ToolCall] = []
    for number, message in enumerate(messages):
        text, role = message["content"], message["role"]
        if role == "tool" and pending_calls:
            call = pending_calls.pop(0)
            chat_messages.append(
                ChatMessageTool(content=text, tool_call_id=call.id, function=call.function)
            )
            continue

        chat_messages += [_no_result(call) for call in pending_calls]
        pending_calls = []
        if role == "assistant":
            pending_calls = _tool_calls(number, message.get("calls", ()))
            chat_messages.append(
                ChatMessageAssistant(content=text, tool_calls=list(pending_calls) or None)
            )
        elif role == "system":
            chat_messages.append(ChatMessageSystem(content=text))
        else:
            chat_messages.append(ChatMessageUser(content=text))
    return [*chat_messages, *(_no_result(call) for call in pending_calls)]


def _tool_calls(message_number: int, calls: Iterable[tuple[str, str]]) -> list[ToolCall]:
    return [
        ToolCall(
            id=f"call_{message_number}_{call_number}",
            function=function_name,
            arguments=_arguments(arguments_json),
        )
        for call_number, (function_name, arguments_json) in enumerate(calls)
    ]


def _no_result(call: ToolCall) -> ChatMessage:
    """Result for a call without one: vendors refuse a call that nothing answers."""
    return ChatMessageTool(content="(no result)", tool_call_id=call.id, function=call.function)


def _arguments(arguments_json: str) -> dict[str, Any]:
    try:
        arguments = json.loads(arguments_json or "{}")
    except (json.JSONDecodeError, RecursionError):
        return {"input": arguments_json}
    return arguments if isinstance(arguments, dict) else {"input": arguments}


def tools_in(row: Mapping[str, Any]) -> list[ToolInfo]:
    """The tools that a transcript came with, and those that it calls without saying what they are.

    Vendors refuse messages with calls of tools that are not offered.
    """
    offered_tools = [ToolInfo.model_validate(tool) for tool in row.get("tools") or ()]
    offered_names = {tool.name for tool in offered_tools}
    argument_names_of_tool: dict[str, set[str]] = {}
    for message in row["messages"]:
        for tool_name, arguments_json in message.get("calls", ()):
            argument_names = argument_names_of_tool.setdefault(tool_name, set())
            argument_names.update(_arguments(arguments_json))

    undescribed_tools = []
    for tool_name, argument_names in argument_names_of_tool.items():
        if tool_name in offered_names:
            continue
        properties = {name: JSONSchema(type="string") for name in sorted(argument_names)}
        parameters = ToolParams(properties=properties)
        undescribed_tools.append(
            ToolInfo(name=tool_name, description=tool_name, parameters=parameters)
        )
    return offered_tools + undescribed_tools


def asked_at(longest: int, most: int) -> list[int]:
    """Turns to ask after: all where there are at most so many, else the first ones and then ever
    fewer, the last too.

    >>> asked_at(200, 10)
    [1, 2, 3, 6, 11, 19, 34, 62, 111, 200]
    """
    if longest <= most:
        return list(range(1, longest + 1))
    turns = np.geomspace(1, longest, most)
    return sorted({round(turn) for turn in turns})
