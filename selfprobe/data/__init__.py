"""Data sets: bundled, JSONL, CSV, Hugging Face, or Inspect's own; checked for what a task needs, and hashed.

-T dataset=open_questions                       bundled
-T dataset=my.jsonl | my.csv                    a file, relative to the folder that the command was called from
-T dataset=s3://bucket/my.jsonl                 any fsspec path
-T dataset=hf:owner/name@REVISION?column=value  rows of a Hugging Face data set (split "train", or ?split=…)
-T dataset='my.jsonl?kind=topic&cluster=source' columns that say which items are alike (habits are looked for among
                                                those of one kind) and which count as one in every interval
-T dataset=task:inspect_evals/gsm8k             what any Inspect task asks its model, also file.py or file.py@task
-T dataset=logs:logs/yesterday                  what the model of any Inspect logs was asked first; `question` is the
                                                last user message
"""

import csv
import hashlib
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from itertools import zip_longest
from logging import ERROR
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

import fsspec
import httpx

from selfprobe.data.inspect_data import SCHEMES, inspect_rows
from selfprobe.errors import InputError, one_line, warn_once
from selfprobe.errors.arguments import locate, meant
from selfprobe.text.user_input import TOO_DEEP, places_of

Row = dict[str, Any]

HERE = Path(__file__).parent.parent
BUNDLED = next(
    (folder for folder in (HERE / "datasets", HERE.parent / "datasets") if folder.is_dir()), HERE / "datasets"
)
"""Folder of the bundled data sets: inside the package where a wheel is installed, next to the package in a checkout."""

PINNED = {"databricks/databricks-dolly-15k": "bdd27f4d94b9c1f951818a7da7fd7aeea5dbff1a"}
"""Revisions of the papers' own sources; any other needs `@REVISION`."""

ALIASES = {"question": ("instruction", "prompt")}
"""Columns that stand for one of ours in public sources (Dolly's `instruction`)."""


UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Bytes that begin a text in UTF-16, such as Excel's "Unicode Text"."""
COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
"""Bytes that begin a compressed file: gzip, zip (Excel's sheets too), bzip2, xz, Zstandard."""
ROW_EXAMPLE = 'such as {"question": "Why is it so?"}'
SEP = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
"""Excel's first line that names the delimiter."""

_SHEET = "save the sheet as CSV UTF-8"
OTHER_KINDS = {
    **dict.fromkeys((".xlsx", ".xls", ".ods", ".tsv"), _SHEET),
    **dict.fromkeys((".json", ".parquet"), "write a JSON object a line"),
    **dict.fromkeys((".txt", ".md", ".yaml", ".yml", ""), f"write a JSON object a line, a line a row, {ROW_EXAMPLE}"),
    **dict.fromkeys((".gz", ".bz2", ".xz", ".zst", ".zip"), "decompress it first"),
}
"""Files that people have in place of a data set, and what to make of them."""

_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
"""A data set's name on the Hugging Face hub."""

LONGEST_ID = 1000
"""Characters of a row's id, at most; a zip file takes 65,535 bytes of a name."""
_UNNAMEABLE = re.compile("[\0\ud800-\udfff]")
_NESTED = ("paraphrases", "messages", "one", "two")
"""Required columns that hold lists or objects, which are checked where they are read; any other holds a text."""

CANARY = re.compile(r"canary GUID ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
"""The column `canary` of our own sets. It marks the file for who filters training data, and is no part of a row."""


@dataclass(frozen=True)
class Table:
    """Rows of one data set."""

    name: str
    """Address of the data set, in the user's words."""
    rows: list[Row]
    """Rows as the file holds them."""
    sha256: str
    """Hash of the rows' content in order; two tables with one hash ask the same."""
    aside: Mapping[str, str] = field(default_factory=dict)
    """Rows that are no part of the table, by id, and why."""
    unread: str = ""
    """Sentence that names the column read in place of another, or of several columns of texts; "" if there is none."""

    @cached_property
    def ordered(self) -> list[Row]:
        """The rows in the order in which tasks ask them: a limit takes the first ones (`in_turn`)."""
        return [row for unit in in_turn(self.rows) for row in unit]

    def first(self, limit: int | None) -> list[Row]:
        """The rows that a limit takes: no more than it, and no pair without its other half; but the first pair always.

        Args:
            limit: Number of rows; None takes all.
        """
        taken = list[Row]()
        for unit in in_turn(self.rows):
            if limit is not None and taken and len(taken) + len(unit) > limit:
                break
            taken += unit
        return taken

    def limited(self, limit: int | None) -> str:
        """Line of the plan that says which rows a limit takes; "" where it takes all."""
        taken = len(self.first(limit))
        if taken == len(self.rows):
            return ""
        whole = "whole pairs, " * any(row.get("pair") for row in self.rows)
        which = "labels and sources in turn" if self.ordered != self.rows else "the first"
        return f"--limit {limit} takes {taken} of {len(self.rows)}, always the same: {whole}{which}"

    def version(self, task: int) -> str:
        """A task's version with the data set's hash in it, because `eval_set` sees a change only there."""
        return f"{task}+{self.sha256[:12]}"

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of every log about its data and its suite (a run by path has no package version otherwise)."""
        known = {"dataset": self.name, "dataset_sha256": self.sha256, "selfprobe": version("selfprobe")}
        known |= {"unread": self.unread} if self.unread else {}
        return known | ({"set_aside": self.aside_line()} if self.aside else {})

    def aside_line(self) -> str:
        """Line with the number of rows that are set aside, and why the first one is; "" where none is."""
        first = next(iter(self.aside.values()), "")
        return f"{len(self.aside)} of {len(self.aside) + len(self.rows)} rows set aside; {first}" if first else ""


def in_turn(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows in the order in which a limit takes them, in units that it takes whole: a pair, or a row without one.

    A set and its reference take turns, in each of them labels, and under each label sources, all in the order in which
    they first occur. Rows without `set`, `pair`, `label` and `source` stay in their order.

    >>> rows = [{"id": n, "label": label} for n, label in enumerate("aabb")]
    >>> [row["id"] for unit in in_turn(rows) for row in unit]
    [0, 2, 1, 3]
    """
    units: dict[object, list[Row]] = {}
    for number, row in enumerate(rows):
        # The same name may be a pair of the set and one of its reference; transcripts are paired across both.
        pair = (row["pair"], None if "kind" in row else row.get("set")) if row.get("pair") else number
        units.setdefault(pair, []).append(row)
    return _alternating(list(units.values()), ("set", "label", "source"))


def _alternating(units: list[list[Row]], columns: Sequence[str]) -> list[list[Row]]:
    if not columns:
        return units
    groups: dict[object, list[list[Row]]] = {}
    for unit in units:
        groups.setdefault(tuple(sorted(str(row.get(columns[0])) for row in unit)), []).append(unit)
    parts = [_alternating(group, columns[1:]) for group in groups.values()]
    return [unit for turn in zip_longest(*parts) for unit in turn if unit is not None]


def load(source: str, required: tuple[str, ...]) -> Table:
    """The rows of `source`, each with an `id` and the required columns filled.

    Args:
        source: A bundled name, a path, `hf:…`, `task:…` or `logs:…`, and `?kind=…&cluster=…` for groups of items; see
            the module's docstring. None and what is no text is refused.
        required: Columns that must hold a non-empty value. A row without `id` gets its line number as one.

    Raises:
        InputError: There is no such data set (with every place looked in), or it cannot be read; a column is missing or
            empty, a line is not JSON, ids repeat, there are no rows (with file and line); a source is not pinned.
    """
    if not isinstance(source, str) or not source.strip():
        raise InputError(
            f"dataset must be one data set, such as dataset=my.jsonl, got {source!r}; there are {', '.join(bundled())}"
        )
    address, groups = _groups(source)
    if address.startswith("hf:"):
        numbered = list(hugging_face(address))
    elif address.startswith(SCHEMES):
        asked = (_asked(row) | row for row in inspect_rows(address) if "aside" not in row)
        numbered = list(enumerate(asked, start=1))
    else:
        path = _find(address)
        text = read_text(path)
        numbered = list(csv_rows(text, path) if path.lower().endswith(".csv") else jsonl_rows(text, path))
    if not numbered:
        needed = f" with {', '.join(required)}" if required else ""
        raise InputError(f"{source}: the data set has no rows; expected at least one{needed}")
    stand_ins = dict[str, str]()
    rows = [_checked(row, line, source=source, required=required, stand_ins=stand_ins) for line, row in numbered]
    seen: dict[str, int] = {}
    for (line, _), row in zip(numbered, rows, strict=True):
        if row["id"] in seen:
            raise InputError(
                f"{source}, line {line}: id {row['id']!r} is already on line {seen[row['id']]}; ids must be unique"
            )
        seen[row["id"]] = line
    note = "; ".join(f"{source}: `{alias}` is read as `{column}`" for column, alias in stand_ins.items())
    if note:
        warn_once(note)
    return _grouped(table_of(source, rows, unread=note), groups)


GROUPS = ("kind", "cluster")
"""Keys of an address for columns: habits are looked for within a kind, a cluster is one unit of every interval."""


def _groups(source: str) -> tuple[str, dict[str, str]]:
    """An address without its part about groups, and the columns by their group.

    Raises:
        InputError: It says something that means nothing here, or the same twice.
    """
    address, _, query = source.partition("?")
    elsewhere = source.startswith("hf:") or "://" in address  # what has a query of its own
    groups, rest = dict[str, str](), list[str]()
    for part in query.split("&") if query else ():
        name, _, column = part.partition("=")
        if name not in GROUPS and not elsewhere:
            raise InputError(f"{source}: unknown ?{name}; there are {', '.join(GROUPS)}{meant(name, GROUPS)}")
        if name not in GROUPS:
            rest.append(part)
        elif name in groups:
            raise InputError(f"{source}: {name} is {groups[name]} and {column}; give one column, as ?{name}=COLUMN")
        elif not column:
            raise InputError(f"{source}: {name} names no column; expected such as ?{name}=topic")
        else:
            groups[name] = unquote_plus(column)
    return address + f"?{'&'.join(rest)}" * bool(rest), groups


def _grouped(table: Table, groups: Mapping[str, str]) -> Table:
    """The same rows with `kind` and `cluster` from these columns; the hash stays, since the rows ask the same.

    Raises:
        InputError: Some row has no such column, nothing in it, or a list or object.
    """
    for name, column in groups.items():
        if nested := next((row for row in table.rows if isinstance(row.get(column), list | dict)), None):
            raise InputError(f"{table.name}: {nested['id']} holds {nested[column]!r} in {column}; expected a word")
        if lacking := [row["id"] for row in table.rows if row.get(column) in (None, "")]:
            there = [one for one in table.rows[0] if one != "id"]
            raise InputError(
                f"{table.name}: {len(lacking)} of {len(table.rows)} rows lack the column {column} (?{name}), as "
                f"{lacking[0]}; there are {', '.join(there)}{meant(column, there)}"
            )
    if not groups:
        return table
    return replace(table, rows=[row | {name: str(row[of]) for name, of in groups.items()} for row in table.rows])


def groups_of(row: Row) -> dict[str, Any]:
    """The groups of an item as its sample's metadata holds them; without a `cluster` it is one of its own."""
    return {name: row[name] for name in GROUPS if row.get(name) is not None}


def _asked(row: Row) -> Row:
    """The last user message of a conversation as a question, for tasks that ask one."""
    asked = [m["content"] for m in row["messages"] if m["role"] == "user" and isinstance(m["content"], str)]
    return {"question": asked[-1]} if asked else {}


def table_of(name: str, rows: list[Row], aside: Mapping[str, str] | None = None, unread: str = "") -> Table:
    """A table of rows that come from elsewhere than a file (a log, a product of axes), each with its `id`.

    Raises:
        InputError: An id cannot name a part of a log: a second run would not find what the first one wrote.
    """
    for row in rows:
        key = str(row["id"])
        if _UNNAMEABLE.search(key) or len(key) > LONGEST_ID:
            raise InputError(
                f"{name}, id {key[:40]!r}: it names a part of the log, so it takes at most {LONGEST_ID:,} characters, "
                "no NUL and no half of a character; give another id, or none"
            )
    content = json.dumps(rows, sort_keys=True, ensure_ascii=False)
    return Table(name, rows, hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest(), aside or {}, unread)


def bundled() -> list[str]:
    """Names of the data sets that come with the package."""
    return sorted(path.parent.name for path in BUNDLED.glob("*/rows.jsonl"))


def canary(source: str) -> str | None:
    """The canary GUID that the first row of a bundled set or a JSONL file holds, or None."""
    if source.startswith(("hf:", *SCHEMES)) or not (path := _find(source)).endswith(".jsonl"):
        return None
    _, first = next(jsonl_rows(read_text(path), path), (0, {}))
    found = CANARY.search(str(first.get("canary")))
    return found[1] if found else None


# ---- files as texts and rows: UTF-8 or UTF-16, JSONL and CSV as people and spreadsheets write them


def read_text(path: str) -> str:
    """The UTF-8 text of a file or an fsspec address.

    Raises:
        InputError: It is a folder, may not be read, is not UTF-8, or its file system is unknown or lacks a package, a
            login or the network.
    """
    return decoded(read_bytes(path), path)


def read_bytes(path: str) -> bytes:
    """Content of a file or of an fsspec address; raises InputError as `read_text` does."""
    try:
        with fsspec.open(path, "rb") as file:
            return bytes(file.read())
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; expected a file") from None
    except _file_faults() as error:
        needs = "; it may need a package for its file system, a login or the network" if "://" in path else ""
        raise InputError(f"{path}: cannot be read ({type(error).__name__}: {one_line(error)}){needs}") from error


def _file_faults() -> tuple[type[Exception], ...]:
    """Errors that opening a file raises; clients of remote file systems raise more: no credentials, no connection."""
    loaded = [(sys.modules.get("botocore.exceptions"), "BotoCoreError"), (sys.modules.get("aiohttp"), "ClientError")]
    return (OSError, ValueError, ImportError, *(getattr(module, name) for module, name in loaded if module))


def decoded(content: bytes, path: str) -> str:
    """UTF-8 text, with or without a BOM, or UTF-16 with one; InputError names `path` and the line."""
    if content.startswith(COMPRESSED):
        raise InputError(
            f"{path}: expected text in UTF-8, got a compressed file or a spreadsheet; decompress or export it"
        )
    try:
        return content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        if content.startswith(UTF_16):
            raise InputError(
                f"{path}: begins as UTF-16 does, and is not ({error.reason}); save the file as UTF-8"
            ) from None
        if b"\0" in content:
            raise InputError(f"{path}: expected text in UTF-8, got a binary file; export its rows as text") from None
        line = content.count(b"\n", 0, error.start) + 1
        letter = content[error.start : error.start + 1].decode("cp1252", errors="replace")
        raise InputError(
            f"{path}, line {line}: not UTF-8 ({error.reason}; in Windows-1252 it would be {letter!r}); save the file "
            "as UTF-8, in Excel as the type CSV UTF-8"
        ) from None


def jsonl_rows(text: str, path: str) -> Iterator[tuple[int, Row]]:
    """Line number and row of every line of a JSONL text; InputError names `path` and the line."""
    # Not splitlines(): a line separator (U+2028) may stand inside a JSON string.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_with_keys_once)
        except json.JSONDecodeError as error:
            fault = f"not JSON ({error.msg}, column {error.colno})"
            raise InputError(f"{path}, line {number}: {fault}; each line must be an object, {ROW_EXAMPLE}") from None
        except _KeyTwice as twice:
            raise InputError(
                f"{path}, line {number}: the key {str(twice)!r} is there twice; rename or remove one"
            ) from None
        except RecursionError:
            raise InputError(f"{path}, line {number}: it {TOO_DEEP}") from None
        if not isinstance(row, dict):
            remedy = "write each of its rows on a line" if isinstance(row, list) else f"write the row {ROW_EXAMPLE}"
            raise InputError(f"{path}, line {number}: expected a JSON object, got {type(row).__name__}; {remedy}")
        yield number, row


class _KeyTwice(ValueError):
    """An object has a key twice; `json` itself keeps the last value in silence."""


def _with_keys_once(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _KeyTwice(next(key for key in keys if keys.count(key) > 1))
    return row


def csv_rows(text: str, path: str, *, delimiter: str | None = None) -> Iterator[tuple[int, Row]]:
    """Line number and row of every row of a CSV text; InputError names `path` and the line.

    Without a `delimiter` it is what a first line as `sep=;` says. Else it is the first of comma, semicolon and tab that
    the first line has: Excel saves a CSV with semicolons in much of Europe, and its "Unicode Text" with tabs.
    """
    sep = SEP.match(text)
    text, before = (text[sep.end() :], 1) if sep else (text, 0)
    delimiter = delimiter or (sep[1] if sep else None)
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # a cell may hold a whole article
    head = text.lstrip().partition("\n")[0]
    delimiter = delimiter or next((mark for mark in (",", ";", "\t") if mark in head), ",")
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        named = [name for name in reader.fieldnames or () if name.strip()]
    except csv.Error:
        raise InputError(f"{path}, line 1: a quote is open or stands within a quoted name of a column") from None
    if twice := next((name for name in named if named.count(name) > 1), ""):
        raise InputError(f"{path}: the column {twice!r} is there twice: rename or remove one")
    try:
        for row in reader:
            if surplus := row.get(None):
                columns = len(row) - 1
                raise InputError(
                    f"{path}, line {reader.line_num + before}: {columns + len(surplus)} cells under {columns} columns; "
                    f"quote cells that hold {'commas' if delimiter == ',' else 'the delimiter'}"
                )
            yield reader.line_num + before, dict(row)
    except csv.Error:  # read on, such a cell would lose its quotes, or take in the rows after it
        raise InputError(
            f"{path}, line {reader.line_num + before + 1}: a cell that begins with a quote must end with one; double "
            'the quotes within it: "He said ""no"" to us."'
        ) from None


def with_columns(row: Mapping[str, Any], names: Iterable[str]) -> Row:
    """The row with its columns renamed to those in `names` that differ in capitals and outer blanks alone.

    A column that is there as it is named stays, and so do two that would get one name.

    >>> with_columns({" Question": "Why?", "Kind": "x"}, ("id", "question"))
    {'question': 'Why?', 'Kind': 'x'}
    """
    alike: dict[str, list[str]] = {}
    for column in row:
        alike.setdefault(str(column).strip().lower(), []).append(column)
    called = {alike[name][0]: name for name in names if name not in row and len(alike.get(name, ())) == 1}
    return {called.get(column, column): value for column, value in row.items()}


def _find(source: str) -> str:
    if source in bundled():
        return str(BUNDLED / source / "rows.jsonl")
    there = next((place for place in places_of(source) if place.exists()), None)
    kind = Path(source).suffix.lower()
    if kind not in (".jsonl", ".csv") and there is not None and there.is_dir():
        raise InputError(f"{source} is a folder; expected a .jsonl or .csv file, or a folder of logs as logs:{source}")
    if kind in OTHER_KINDS and (kind or there is not None):
        got = kind or "a file without an ending"
        raise InputError(f"{source}: expected a .jsonl or .csv file in UTF-8, got {got}; {OTHER_KINDS[kind]}")
    if kind not in (".jsonl", ".csv"):
        raise InputError(
            f"unknown data set {source!r}: expected one of {', '.join(bundled())}, a .jsonl or .csv file, "
            f"or hf:owner/name@revision{meant(source, bundled())}"
        )
    return locate(source)


def hugging_face(source: str) -> Iterator[tuple[int, Row]]:
    """Number and content of every row of `hf:owner/name@REVISION?column=value`.

    Raises:
        InputError: It is not pinned, no name of the hub (`./name` is a folder), or cannot be loaded from there.
    """
    address, _, query = source.removeprefix("hf:").partition("?")
    name, _, revision = address.partition("@")
    if not _HUB_NAME.fullmatch(name):
        raise InputError(
            f"{source}: {name!r} is no data set of the hub; expected hf:owner/name@COMMIT, or the path of a file such "
            "as ./rows.jsonl"
        )
    revision = revision or PINNED.get(name, "")
    if not revision:
        raise InputError(f"{source}: pin the revision, as hf:{name}@COMMIT, so that a run can be repeated")
    wanted = dict(pairs := parse_qsl(query))
    if twice := [name for name, _ in pairs if [other for other, _ in pairs].count(name) > 1]:
        values = " and ".join(value for name, value in pairs if name == twice[0])
        raise InputError(f"{source}: {twice[0]} is {values}; give one value")
    table = from_hub(source, name, wanted.pop("config", None), split=wanted.pop("split", "train"), revision=revision)
    if unknown := set(wanted) - set(table.column_names):
        raise InputError(f"{source}: no column {', '.join(sorted(unknown))}; there are {', '.join(table.column_names)}")
    for number, row in enumerate(table, start=1):
        if all(str(row[column]) == value for column, value in wanted.items()):
            yield number, dict(row)


def from_hub(source: str, name: str, config: str | None = None, *, split: str, revision: str) -> Any:
    """A split of a data set on the Hugging Face hub, or in its cache.

    Raises:
        InputError: The package is missing, the hub out of reach, or there is no such data set, config or split; the
            message begins with `source`.
    """
    try:
        from huggingface_hub.utils import logging

        import datasets
    except ImportError as error:
        raise InputError(f"{source} needs the package datasets: pip install datasets ({error})") from error
    if Path(name).is_dir():  # such a folder here would be read in the place of the hub
        name = f"hf://datasets/{name}"  # versions of `datasets` that do not know this form refuse it
    before = logging.get_verbosity()
    logging.set_verbosity(ERROR)  # a hub out of reach is tried six times, each with two lines of warning
    try:
        return datasets.load_dataset(name, config, split=split, revision=revision)
    except (OSError, ValueError, LookupError, httpx.HTTPError) as error:
        raise InputError(
            f"{source}: cannot be loaded from the Hugging Face hub ({one_line(error)}); this needs a network and the "
            "right owner/name@revision. Or download the rows elsewhere and pass a .jsonl or .csv file"
        ) from error
    finally:
        logging.set_verbosity(before)


def _checked(
    row: Row, line: int, *, source: str, required: tuple[str, ...], stand_ins: dict[str, str] | None = None
) -> Row:
    """The row with its required columns; `stand_ins` is told which column was read in the place of which."""
    row = with_columns(row, ("id", *required, *(alias for column in required for alias in ALIASES.get(column, ()))))
    read_as = _aliased(row, required)
    (stand_ins if stand_ins is not None else {}).update(read_as)
    row = {**row, **{column: row[alias] for column, alias in read_as.items()}}
    for column in required:
        if column not in row:
            raise InputError(
                f"{source}, line {line}: no column {column!r}; expected {', '.join(required)}, "
                f"got {', '.join(map(str, row)) or 'nothing'}; rename or add a column"
            )
        _check_cell(row[column], column, f"{source}, line {line}")
    if CANARY.fullmatch(str(row.get("canary"))):
        del row["canary"]
    key = row.get("id")
    return {**row, "id": f"line-{line}" if key is None or key == "" or key != key else str(key)}


def _check_cell(value: Any, column: str, where: str) -> None:
    """Refuse a required cell that is empty or no text."""
    if value is None or value != value or (isinstance(value, str) and not value.strip()):
        raise InputError(f"{where}: column {column!r} is empty; fill it or remove the row")
    if not isinstance(value, str) and (column not in _NESTED or isinstance(value, int | float)):
        raise InputError(f"{where}: column {column!r} must be text, got {str(value)[:80]}")
    if isinstance(value, str) and _UNNAMEABLE.search(value):
        raise InputError(f"{where}: column {column!r} holds a NUL or half a character; write the text again as UTF-8")


def _aliased(row: Mapping[str, Any], required: tuple[str, ...]) -> dict[str, str]:
    """Required column → the column that is read in its place."""
    return {c: alias for c in required if c not in row for alias in ALIASES.get(c, ()) if alias in row}
