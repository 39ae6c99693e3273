"""Data sets: bundled, JSONL, CSV, Hugging Face, or Inspect's own; checked for what a task needs,
and hashed.

-T dataset=open_questions                       bundled
-T dataset=my.jsonl | my.csv                    a file, relative to the folder that the command was
                                                called from
-T dataset=s3://bucket/my.jsonl                 any fsspec path
-T dataset=hf:owner/name@REVISION?column=value  rows of a Hugging Face data set (split "train", or
                                                ?split=…)
-T dataset='my.jsonl?kind=topic&cluster=source' columns that say which items are alike (habits are
                                                looked for among those of one kind) and which count
                                                as one in every interval
-T dataset=task:inspect_evals/gsm8k             what any Inspect task asks its model, also file.py
                                                or file.py@task
-T dataset=logs:logs/yesterday                  what the model of any Inspect logs was asked first;
                                                `question` is the last user message
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from functools import cached_property
from importlib.metadata import version
from itertools import zip_longest
from logging import ERROR
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

import httpx

from selfprobe.data.files import EXAMPLE_COLUMN, file_rows, row_example, with_columns
from selfprobe.data.inspect_data import SCHEMES, inspect_rows
from selfprobe.data.stored import Reordered, RowStore, StoredRows
from selfprobe.errors import InputError, one_line, warn_once
from selfprobe.errors.arguments import locate, nearest_name_hint
from selfprobe.text.user_input import is_there, places_of

Row = dict[str, Any]

PACKAGE_FOLDER = Path(__file__).parent.parent


def bundled_folder(name: str) -> Path:
    """A folder that the wheel brings: inside the package where a wheel is installed, next to the
    package in a checkout.
    """
    wheel_folder = PACKAGE_FOLDER / name
    return wheel_folder if wheel_folder.is_dir() else PACKAGE_FOLDER.parent / name


BUNDLED = bundled_folder("datasets")
"""Folder of the bundled data sets."""
_SHEET_REMEDY = "save the sheet as CSV UTF-8"
_TEXT_REMEDY = "write a JSON object a line, a line a row, {example}"
REMEDY_BY_ENDING = {
    **dict.fromkeys((".xlsx", ".xls", ".ods", ".tsv"), _SHEET_REMEDY),
    **dict.fromkeys((".json", ".parquet"), "write a JSON object a line"),
    **dict.fromkeys((".txt", ".md", ".yaml", ".yml", ""), _TEXT_REMEDY),
    **dict.fromkeys((".gz", ".bz2", ".xz", ".zst", ".zip"), "decompress it first"),
}
"""Files that people have in place of a data set, and what to make of them."""
_CONTROL_CHARACTER = re.compile("[\x01-\x1f\x7f-\x9f]")
_NESTED_COLUMNS = ("paraphrases", "messages", "one", "two")
"""Required columns that hold lists or objects, which are checked where they are read; any other
holds a text.
"""

PINNED = {"databricks/databricks-dolly-15k": "bdd27f4d94b9c1f951818a7da7fd7aeea5dbff1a"}
"""Revisions of the papers' own sources; any other needs `@REVISION`."""

ALIASES = {"question": ("instruction", "prompt")}
"""Columns that stand for one of ours in public sources (Dolly's `instruction`)."""


_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
"""A data set's name on the Hugging Face hub."""

LONGEST_ID = 1000
"""Characters of a row's id, at most; a zip file takes 65,535 bytes of a name."""
_UNNAMEABLE = re.compile("[\0\ud800-\udfff]")


CANARY = re.compile(r"canary GUID ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
"""The column `canary` of our own sets. It marks the file for who filters training data, and is no
part of a row.
"""


@dataclass(frozen=True)
class Table:
    """Rows of one data set."""

    name: str
    """Address of the data set, in the user's words."""
    rows: Sequence[Row]
    """Rows as the file holds them; of a large file they are read anew at each use."""
    sha256: str
    """Hash of the rows' content in order; two tables with one hash ask the same."""
    set_aside_reasons: Mapping[str, str] = field(default_factory=dict)
    """Rows that are no part of the table, by id, and why."""
    unread_columns_note: str = ""
    """Sentence that names the column read in place of another, of several columns of texts, and
    those that are not used; "" if there is none.
    """

    @cached_property
    def _units(self) -> list[list[int]]:
        return turn_units(self.rows)

    @cached_property
    def ordered(self) -> Sequence[Row]:
        """The rows in the order in which tasks ask them: a limit takes the first ones
        (`turn_units`).
        """
        order = [number for unit in self._units for number in unit]
        if order == list(range(len(order))):
            return self.rows
        if isinstance(self.rows, list):
            return [self.rows[number] for number in order]
        return Reordered(self.rows, order)

    def first(self, limit: int | None) -> list[Row]:
        """The rows that a limit takes: no more than it, and no pair without its other half; but the
        first pair always.

        Args:
            limit: Number of rows; None takes all.
        """
        return [self.rows[number] for number in self._limited_numbers(limit)]

    def _limited_numbers(self, limit: int | None) -> list[int]:
        numbers = list[int]()
        for unit in self._units:
            if limit is not None and numbers and len(numbers) + len(unit) > limit:
                break
            numbers += unit
        return numbers

    def limit_line(self, limit: int | None) -> str:
        """Line of the plan that says which rows a limit takes; "" where it takes all."""
        count = len(self._limited_numbers(limit))
        if count == len(self.rows):
            return ""
        has_pairs = any(len(unit) > 1 for unit in self._units)
        pairs = "whole pairs, " if has_pairs else ""
        order = "the first" if self.ordered is self.rows else "labels and sources in turn"
        return f"--limit {limit} takes {count} of {len(self.rows)}, always the same: {pairs}{order}"

    def version(self, task: int) -> str:
        """A task's version with the data set's hash in it, because `eval_set` sees a change only
        there.
        """
        return f"{task}+{self.sha256[:12]}"

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of every log about its data and its suite (a run by path has no package version
        otherwise).
        """
        entries = {
            "dataset": self.name,
            "dataset_sha256": self.sha256,
            "selfprobe": version("selfprobe"),
        }
        if self.unread_columns_note:
            entries["unread"] = self.unread_columns_note
        if self.set_aside_reasons:
            entries["set_aside"] = self.aside_line()
        return entries

    def aside_line(self) -> str:
        """Line with the number of rows that are set aside, and why the first one is; "" where none
        is.
        """
        aside_count = len(self.set_aside_reasons)
        total = aside_count + len(self.rows)
        reason_text = first_reason(self.set_aside_reasons.values())
        return f"{aside_count} of {total} rows set aside; {reason_text}" if reason_text else ""

    def plan_notes(self, limit: int | None) -> list[str]:
        """Lines of a plan on the rows that a limit takes, rows that are set aside, and columns that
        nothing reads.
        """
        notes = [self.limit_line(limit), self.aside_line(), self.unread_columns_note]
        return [note for note in notes if note]


def first_reason(reasons: Iterable[str]) -> str:
    """The reason of several things, or that of the first where they differ; "" without any.

    >>> first_reason(["cut", "cut"]), first_reason(["the same as a", "the same as b"])
    ('cut', 'the first: the same as a')
    """
    distinct_reasons = list(dict.fromkeys(reasons))
    if len(distinct_reasons) > 1:
        return f"the first: {distinct_reasons[0]}"
    return distinct_reasons[0] if distinct_reasons else ""


_SORTED_JSON = json.JSONEncoder(sort_keys=True, ensure_ascii=False)


class TableBuilder:
    """A table of rows that come one after another."""

    def __init__(self) -> None:
        self._store = RowStore()
        self._digest = hashlib.sha256()
        self.count = 0

    def add(self, row: Row, table_row: Row | None = None) -> None:
        """Add a row.

        Args:
            row: The row, with its `id`.
            table_row: The row as the table has it, where that differs in what is no part of the
                hash: rows that ask the same have one hash, whatever they count with.

        Raises:
            InputError: The temporary file of a large table cannot be written.
        """
        content = _SORTED_JSON.encode(row)
        separated = f", {content}" if self.count else f"[{content}"
        self._digest.update(separated.encode(errors="surrogatepass"))
        self.count += 1
        self._store.append(row if table_row is None else table_row)

    def table(self, name: str, aside: Mapping[str, str] | None = None, unread: str = "") -> Table:
        """The table; nothing is added after that. Its name is in the user's words."""
        self._digest.update(b"]" if self.count else b"[]")
        return Table(name, self._store.rows(), self._digest.hexdigest(), aside or {}, unread)


def turn_units(rows: Iterable[Row]) -> list[list[int]]:
    """Numbers of rows in the order in which a limit takes them, in units that it takes whole: a
    pair, or a single row.

    A set and its reference take turns, in each of them labels, and under each label sources, all in
    the order in which they first occur. Rows without `set`, `pair`, `label` and `source` stay in
    their order.

    >>> rows = [{"id": n, "label": label} for n, label in enumerate("aabb")]
    >>> turn_units(rows)
    [[0], [2], [1], [3]]
    """
    units: list[list[int]] = []
    unit_of_pair: dict[object, list[int]] = {}
    turn_values: list[tuple[str, ...]] = []
    shared_values: dict[tuple[str, ...], tuple[str, ...]] = {}
    for number, row in enumerate(rows):
        values = tuple(str(row.get(column)) for column in TURN_COLUMNS)
        turn_values.append(shared_values.setdefault(values, values))
        if not row.get("pair"):
            units.append([number])
            continue
        # The same name may be a pair of the set and one of its reference; transcripts are paired
        # across both.
        set_name = None if "kind" in row else row.get("set")
        pair = (row["pair"], set_name)
        if pair not in unit_of_pair:
            unit_of_pair[pair] = []
            units.append(unit_of_pair[pair])
        unit_of_pair[pair].append(number)
    return _alternating(units, turn_values, 0)


TURN_COLUMNS = ("set", "label", "source")
"""Columns whose values take turns under a limit, the outer first."""


def _alternating(
    units: list[list[int]], turn_values: Sequence[tuple[str, ...]], column: int
) -> list[list[int]]:
    """The units with the values of a column, and of those after it, in turn."""
    if column == len(TURN_COLUMNS):
        return units
    groups: dict[object, list[list[int]]] = {}
    for unit in units:
        unit_values = sorted(turn_values[number][column] for number in unit)
        groups.setdefault(tuple(unit_values), []).append(unit)
    queues = [_alternating(group, turn_values, column + 1) for group in groups.values()]
    return [unit for turn in zip_longest(*queues) for unit in turn if unit is not None]


def load(source: str, required: str | Sequence[str], optional: Sequence[str] = ()) -> Table:
    """The rows of `source`, each with an `id` and the required columns filled.

    A file is read row by row. Rows of a large one lie in a temporary file, and another call with
    the same file, unchanged, takes them from there.

    Args:
        source: A bundled name, a path, `hf:…`, `task:…` or `logs:…`, and `?kind=…&cluster=…` for
            groups of items; see the module's docstring. None and what is no text is refused.
        required: Column, or columns, that must hold a non-empty value. A row without `id` gets its
            line number as one.
        optional: Columns that are used where they are there; any other is named as not used.

    Raises:
        InputError: There is no such data set (with every place looked in), or it cannot be read; a
            column is missing or empty, a line is not JSON, ids repeat, there are no rows (with file
            and line); a source is not pinned.
    """
    if not isinstance(source, str) or not source.strip():
        raise InputError(
            f"dataset must be one data set, such as dataset=my.jsonl, got {source!r}; "
            f"there are {', '.join(bundled())}"
        )
    columns = (required,) if isinstance(required, str) else tuple(required)
    key = ("load", source, columns, tuple(optional))
    table = kept_tables.get_or_read(key, [source], lambda: _read(source, columns, optional))
    if table.unread_columns_note:
        warn_once(table.unread_columns_note)
    return table


TABLES_KEPT = 3
"""Large tables that this process keeps: a study's own, and its reference."""


class KeptTables:
    """The last large tables that were read: a study reads its data for the plan, and each of its
    tasks reads it.
    """

    def __init__(self) -> None:
        self._tables: dict[object, tuple[list[object], Table]] = {}

    def get_or_read(self, key: object, sources: Iterable[str], read: Callable[[], Table]) -> Table:
        """The table of a key, read anew unless it is large, and its files are as they were.

        Args:
            key: What was asked for: the sources, and how they are read.
            sources: Addresses of its files.
            read: Reads it.
        """
        stamps = [file_stamp(source) for source in sources]
        if key in self._tables:
            kept_stamps, kept_table = self._tables[key]
            if kept_stamps == stamps:
                return kept_table
        table = read()
        if isinstance(table.rows, StoredRows) and None not in stamps:
            self._tables.pop(key, None)
            self._tables[key] = (stamps, table)
            for old_key in list(self._tables)[:-TABLES_KEPT]:
                del self._tables[old_key]
        return table

    def clear(self) -> None:
        """Forget all."""
        self._tables.clear()


kept_tables = KeptTables()


def file_stamp(source: str) -> object:
    """What changes where a local file is written anew; None for an address of which that is not
    known.
    """
    address = source if source.startswith(SCHEMES) else split_groups(source)[0]
    if address.startswith("hf:"):
        return address  # which is pinned
    if "://" in address or address.startswith(SCHEMES):
        return None
    file = _existing_place(address)
    if file is None:
        return None
    status = file.stat()
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def _existing_place(path: str) -> Path | None:
    return next(filter(is_there, places_of(path)), None)


def _read(source: str, required: tuple[str, ...], optional: Sequence[str]) -> Table:
    """The table of `load`."""
    address, column_of_group = split_groups(source)
    stand_ins: dict[str, str] = {}
    seen_columns: dict[str, None] = {}
    grouping = Grouping(source, column_of_group)
    builder = TableBuilder()
    for row in each_row(source, address, required, stand_ins):
        refuse_unnameable(row["id"], source)
        # A column that happens to be called `cluster` makes no cluster: the address names what
        # does.
        asked_row = {column: value for column, value in row.items() if column != "cluster"}
        builder.add(row, asked_row | grouping.groups_of(row))
        if not row.keys() <= seen_columns.keys():
            seen_columns |= dict.fromkeys(row)
    grouping.refuse_lacking(builder.count)

    notes = [f"{source}: `{alias}` is read as `{column}`" for column, alias in stand_ins.items()]
    if required and is_user_data(address):
        used_columns = {"id", "kind", "category", *required, *optional}
        used_columns.update(stand_ins.values(), column_of_group.values())
        notes += [f"{source}: {line}" for line in unused_columns(seen_columns, used_columns)]
    return builder.table(source, unread="; ".join(notes))


def each_row(
    source: str,
    address: str,
    required: tuple[str, ...] = (),
    stand_ins: dict[str, str] | None = None,
) -> Iterator[Row]:
    """The rows at an address one after another, each with its `id` and the required columns filled.

    Args:
        source: The address in the user's words, for messages.
        address: The same without its part about groups.
        required: Columns that must hold a non-empty value.
        stand_ins: Gets required column → the column that is read in its place.

    Raises:
        InputError: See `load`.
    """
    line_of_id: dict[str, int] = {}
    column = _example_column(required)
    for line, raw_row in _numbered_rows(address, column):
        row = _checked_row(raw_row, f"{source}, line {line}", required, stand_ins)
        row["id"] = row["id"] or f"line-{line}"
        row_id = row["id"]
        if row_id in line_of_id:
            raise InputError(
                f"{source}, line {line}: id {row_id[:80]!r} is already on line "
                f"{line_of_id[row_id]}; ids must be unique"
            )
        line_of_id[row_id] = line
        yield row
    if not line_of_id:
        columns = f" with {', '.join(required)}" if required else ""
        raise InputError(f"{source}: the data set has no rows; expected at least one{columns}")


def _example_column(required: tuple[str, ...]) -> str:
    """Column of the row that errors show; a set without required columns holds conversations."""
    if not required:
        return "prompt"
    return EXAMPLE_COLUMN if required[0] in _NESTED_COLUMNS else required[0]


def _numbered_rows(address: str, column: str) -> Iterator[tuple[int, Row]]:
    """Line, or number, and content of every row at an address without groups."""
    if address.startswith("hf:"):
        return hugging_face(address)
    if address.startswith(SCHEMES):
        asked_rows = (
            _asked_question(row) | row for row in inspect_rows(address) if "aside" not in row
        )
        return enumerate(asked_rows, start=1)
    return file_rows(_find(address, column), column)


def is_user_data(address: str) -> bool:
    """True for a user's file, and rows of the hub: neither bundled, nor what Inspect's tasks and
    logs hold.
    """
    return address not in bundled() and not address.startswith(SCHEMES)


NAMED_COLUMNS = 4
"""Columns that are not used, of which a line names the first ones."""


def unused_columns(columns: Iterable[str], used_columns: Collection[str]) -> list[str]:
    """Line on the columns that are not used; none where all are.

    >>> unused_columns(["id", "context", "title"], ["id"])
    ['columns `context`, `title` are not used']
    """
    unused = [f"`{column}`" for column in columns if column not in used_columns]
    if not unused:
        return []
    if len(unused) == 1:
        return [f"column {unused[0]} is not used"]
    listed = ", ".join(unused[:NAMED_COLUMNS])
    if len(unused) > NAMED_COLUMNS:
        listed += f" and {len(unused) - NAMED_COLUMNS} more"
    return [f"columns {listed} are not used"]


GROUPS = ("kind", "cluster")
"""Keys of an address for columns: habits are looked for within a kind, a cluster is one unit of
every interval.
"""


def split_groups(source: str) -> tuple[str, dict[str, str]]:
    """An address without its part about groups, and the columns by their group.

    Raises:
        InputError: It says something that means nothing here, or the same twice.
    """
    address, _, query = source.partition("?")
    has_own_query = source.startswith("hf:") or "://" in address
    column_of_group: dict[str, str] = {}
    own_query_parts: list[str] = []
    for part in query.split("&") if query else ():
        name, _, column = part.partition("=")
        if name not in GROUPS:
            if not has_own_query:
                raise InputError(
                    f"{source}: unknown ?{name}; there are {', '.join(GROUPS)}{nearest_name_hint(name, GROUPS)}"
                )
            own_query_parts.append(part)
        elif name in column_of_group:
            raise InputError(
                f"{source}: {name} is {column_of_group[name]} and {column}; "
                f"give one column, as ?{name}=COLUMN"
            )
        elif not column:
            raise InputError(f"{source}: {name} names no column; expected such as ?{name}=topic")
        else:
            column_of_group[name] = unquote_plus(column)
    if own_query_parts:
        address = f"{address}?{'&'.join(own_query_parts)}"
    return address, column_of_group


class Grouping:
    """Kind and cluster of rows, from the columns that an address names for them."""

    def __init__(self, source: str, column_of_group: Mapping[str, str]) -> None:
        self._source = source
        self._column_of_group = column_of_group
        self._first_row: Row | None = None
        self._lacking: dict[str, list[str]] = {group: [] for group in column_of_group}
        """Group → ids of the rows without its column."""

    def groups_of(self, row: Row) -> dict[str, str]:
        """Group → its value in the row.

        Raises:
            InputError: The column holds a list or object.
        """
        self._first_row = self._first_row or row
        value_of_group = dict[str, str]()
        for group, column in self._column_of_group.items():
            value = row.get(column)
            if isinstance(value, list | dict):
                raise InputError(
                    f"{self._source}: {row['id']} holds {value!r:.80} in {column}; expected a word"
                )
            if value in (None, ""):
                self._lacking[group].append(row["id"])
            else:
                value_of_group[group] = str(value)
        return value_of_group

    def refuse_lacking(self, count: int) -> None:
        """Refuse a group whose column some of the rows lack.

        Args:
            count: Number of all rows.

        Raises:
            InputError: Names the first such row, and the columns that there are.
        """
        for group, row_ids in self._lacking.items():
            if not row_ids:
                continue
            column = self._column_of_group[group]
            known_columns = [name for name in self._first_row or () if name != "id"]
            raise InputError(
                f"{self._source}: {len(row_ids)} of {count} rows lack the column {column} "
                f"(?{group}), as {row_ids[0]}; there are {', '.join(known_columns)}"
                f"{nearest_name_hint(column, known_columns)}"
            )


def _asked_question(row: Row) -> Row:
    """The last user message of a conversation as a question, for tasks that ask one."""
    questions = [
        message["content"]
        for message in row["messages"]
        if message["role"] == "user" and isinstance(message["content"], str)
    ]
    return {"question": questions[-1]} if questions else {}


def groups_of(row: Row) -> dict[str, Any]:
    """The groups of an item as its sample's metadata holds them; without a `cluster` it is one of
    its own.
    """
    return {name: row[name] for name in GROUPS if row.get(name) is not None}


def table_of(
    name: str, rows: Iterable[Row], aside: Mapping[str, str] | None = None, unread: str = ""
) -> Table:
    """A table of rows that come from elsewhere than a file (a log, a product of axes), each with
    its `id`.

    Raises:
        InputError: An id cannot name a part of a log: a second run would not find what the first
            one wrote.
    """
    builder = TableBuilder()
    for row in rows:
        refuse_unnameable(row["id"], name)
        builder.add(row)
    return builder.table(name, aside, unread)


def refuse_unnameable(row_id: object, where: str) -> None:
    """Refuse an id that cannot name a part of a log.

    Raises:
        InputError: It is too long, or holds a NUL or half of a character.
    """
    name = str(row_id)
    if _UNNAMEABLE.search(name) or len(name) > LONGEST_ID:
        raise InputError(
            f"{where}, id {name[:40]!r}: it names a part of the log, so it takes at most "
            f"{LONGEST_ID:,} characters, no NUL and no half of a character; "
            "give another id, or none"
        )


def bundled() -> list[str]:
    """Names of the data sets that come with the package."""
    return sorted(path.parent.name for path in BUNDLED.glob("*/rows.jsonl"))


def canary(source: str) -> str | None:
    """The canary GUID that the first row of a bundled set or a JSONL file holds, or None."""
    if source.startswith(("hf:", *SCHEMES)):
        return None
    path = _find(source)
    if not path.endswith(".jsonl"):
        return None
    _, first_row = next(file_rows(path), (0, {}))
    guid = CANARY.search(str(first_row.get("canary")))
    return guid[1] if guid else None


def _find(source: str, column: str = EXAMPLE_COLUMN) -> str:
    """Path of a bundled data set, or of a user's file.

    Raises:
        InputError: There is none, or it is of another kind.
    """
    if source in bundled():
        return str(BUNDLED / source / "rows.jsonl")
    ending = Path(source).suffix.lower()
    if ending in (".jsonl", ".csv"):
        return locate(source)
    place = _existing_place(source)
    if place is not None and place.is_dir():
        raise InputError(
            f"{source} is a folder; expected a .jsonl or .csv file, or a folder of logs as "
            f"logs:{source}"
        )
    if ending in REMEDY_BY_ENDING and (ending or place is not None):
        remedy = REMEDY_BY_ENDING[ending].format(example=row_example(column))
        raise InputError(
            f"{source}: expected a .jsonl or .csv file in UTF-8, got "
            f"{ending or 'a file without an ending'}; {remedy}"
        )
    raise InputError(
        f"unknown data set {source!r:.80}: expected one of {', '.join(bundled())}, "
        f"a .jsonl or .csv file, or hf:owner/name@revision{nearest_name_hint(source, bundled())}"
    )


def hugging_face(source: str) -> Iterator[tuple[int, Row]]:
    """Number and content of every row of `hf:owner/name@REVISION?column=value`.

    Raises:
        InputError: It is not pinned, no name of the hub (`./name` is a folder), or cannot be loaded
            from there.
    """
    address, _, query = source.removeprefix("hf:").partition("?")
    name, _, revision = address.partition("@")
    if not _HUB_NAME.fullmatch(name):
        raise InputError(
            f"{source}: {name!r} is no data set of the hub; expected hf:owner/name@COMMIT, "
            "or the path of a file such as ./rows.jsonl"
        )
    revision = revision or PINNED.get(name, "")
    if not revision:
        raise InputError(
            f"{source}: pin the revision, as hf:{name}@COMMIT, so that a run can be repeated"
        )
    values_of_key: dict[str, list[str]] = {}
    for key, value in parse_qsl(query):
        values_of_key.setdefault(key, []).append(value)
    for key, values in values_of_key.items():
        if len(values) > 1:
            raise InputError(f"{source}: {key} is {' and '.join(values)}; give one value")
    wanted_values = {key: value for key, [value] in values_of_key.items()}

    table = from_hub(
        source,
        name,
        wanted_values.pop("config", None),
        split=wanted_values.pop("split", "train"),
        revision=revision,
    )
    if unknown_columns := set(wanted_values) - set(table.column_names):
        raise InputError(
            f"{source}: no column {', '.join(sorted(unknown_columns))}; there are "
            f"{', '.join(table.column_names)}"
        )
    for number, row in enumerate(table, start=1):
        if all(str(row[column]) == value for column, value in wanted_values.items()):
            yield number, {column: _plain_cell(cell) for column, cell in row.items()}


def _plain_cell(cell: Any) -> Any:
    """A cell of the hub as JSON has it: a date as text, of an image or of bytes the kind alone."""
    if isinstance(cell, dict):
        return {str(name): _plain_cell(value) for name, value in cell.items()}
    if isinstance(cell, list):
        return [_plain_cell(value) for value in cell]
    if cell is None or isinstance(cell, str | int | float):
        return cell
    return cell.isoformat() if isinstance(cell, date | time) else f"({type(cell).__name__})"


def from_hub(
    source: str, name: str, config: str | None = None, *, split: str, revision: str
) -> Any:
    """A split of a data set on the Hugging Face hub, or in its cache.

    Raises:
        InputError: The package is missing, the hub out of reach, or there is no such data set,
            config or split; the message begins with `source`.
    """
    try:
        from huggingface_hub.utils import logging

        import datasets
    except ImportError as error:
        raise InputError(
            f"{source} needs the package datasets: pip install datasets ({error})"
        ) from error
    if Path(name).is_dir():
        # Such a folder here would be read in the place of the hub; versions of `datasets` that do
        # not know this form refuse it.
        name = f"hf://datasets/{name}"
    usual_verbosity = logging.get_verbosity()
    # A hub out of reach is tried six times, each with two lines of warning.
    logging.set_verbosity(ERROR)
    try:
        return datasets.load_dataset(name, config, split=split, revision=revision)
    except (OSError, ValueError, LookupError, httpx.HTTPError) as error:
        raise InputError(
            f"{source}: cannot be loaded from the Hugging Face hub ({one_line(error)}); this needs "
            "a network and the right owner/name@revision. Or download the rows elsewhere and pass "
            "a .jsonl or .csv file"
        ) from error
    finally:
        logging.set_verbosity(usual_verbosity)


def _checked_row(
    raw_row: Row, where: str, required: tuple[str, ...], stand_ins: dict[str, str] | None
) -> Row:
    """A row with its required columns; its `id` is "" where the file has none.

    Args:
        raw_row: The row as the file holds it.
        where: File and line, with which an error begins.
        required: Columns that must hold a non-empty value.
        stand_ins: Gets required column → the column that is read in its place.
    """
    aliases = [alias for column in required for alias in ALIASES.get(column, ())]
    row = with_columns(raw_row, ("id", *required, *aliases))
    for column in required:
        alias = _alias_in(row, column)
        if alias is not None:
            row[column] = row[alias]
            if stand_ins is not None:
                stand_ins[column] = alias
    for column in required:
        if column not in row:
            raise InputError(
                f"{where}: no column {column!r}; expected {', '.join(required)}, "
                f"got {', '.join(map(str, row)) or 'nothing'}; rename or add a column"
            )
        _check_cell(row[column], column, where)
    if CANARY.fullmatch(str(row.get("canary"))):
        del row["canary"]
    row["id"] = id_text(row.get("id"), where)
    return row


def _alias_in(row: Row, column: str) -> str | None:
    """The column of a row that is read in place of a required one; None where it has that."""
    if column in row:
        return None
    aliases = [alias for alias in ALIASES.get(column, ()) if alias in row]
    return aliases[-1] if aliases else None


def id_text(value: Any, where: str) -> str:
    """An id in a file as text; "" for an empty cell.

    Raises:
        InputError: It is a list, an object or infinite, or holds what a terminal obeys; begins with
            `where`.
    """
    if value is None or value == "" or value != value:
        return ""
    if isinstance(value, list | dict | bytes) or value in (math.inf, -math.inf):
        raise InputError(
            f"{where}: id must be a word or a number, got {str(value)[:40]!r}; "
            "give another id, or none"
        )
    text = str(value)
    if _CONTROL_CHARACTER.search(text):
        raise InputError(
            f"{where}: id {text[:40]!r} holds a control character; give another id, or none"
        )
    return text


def _check_cell(value: Any, column: str, where: str) -> None:
    """Refuse a required cell that is empty or no text."""
    is_text = isinstance(value, str)
    if value is None or value != value or (is_text and not value.strip()):
        raise InputError(f"{where}: column {column!r} is empty; fill it or remove the row")
    if not is_text and (column not in _NESTED_COLUMNS or isinstance(value, int | float)):
        raise InputError(f"{where}: column {column!r} must be text, got {str(value)[:80]}")
    if is_text and _UNNAMEABLE.search(value):
        raise InputError(
            f"{where}: column {column!r} holds a NUL or half a character; "
            "write the text again as UTF-8"
        )
