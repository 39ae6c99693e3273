"""Files as texts and rows: UTF-8 or UTF-16, JSONL and CSV as people and spreadsheets write them."""

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import fsspec

from selfprobe.errors import InputError, one_line
from selfprobe.text.yaml_keys import TOO_DEEP

Row = dict[str, Any]

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Bytes that begin a text in UTF-16, such as Excel's "Unicode Text"."""
COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
"""Bytes that begin a compressed file: gzip, zip (Excel's sheets too), bzip2, xz, Zstandard."""
ROW_EXAMPLE = 'such as {"question": "Why is it so?"}'
SEP = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
"""Excel's first line that names the delimiter."""


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
