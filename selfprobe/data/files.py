"""Files of users as texts and rows: UTF-8 or UTF-16; JSONL, CSV, JSON, Parquet as people and
spreadsheets write them.

JSONL, CSV and Parquet are read row by row, so that a file of any size takes little memory. What may
never end or cannot be held (a pipe, a device, a line of 40 MB, a JSON text of 300 MB) is refused
with what to do.
"""

import codecs
import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any, overload

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from selfprobe.errors import InputError, one_line
from selfprobe.text.user_input import TOO_DEEP, not_plain

Row = dict[str, Any]

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Bytes that begin a text in UTF-16, such as Excel's "Unicode Text"."""
COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
"""Bytes that begin a compressed file: gzip, zip (Excel's sheets too), bzip2, xz, Zstandard."""
ROW_EXAMPLE = 'such as {"question": "Why is it so?"}'
SEP = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
"""Excel's first line that names the delimiter."""

CHUNK_BYTES = 1 << 20
LONGEST_LINE = 32_000_000
"""Characters of a line, at most."""
LARGEST_TEXT_BYTES = 256_000_000
"""Bytes of a file that is read as a whole, at most."""
_DIGITS = re.compile(r"has (\d+) digits")


@contextmanager
def open_user_file(path: str) -> Iterator[IO[bytes]]:
    """A local file or an fsspec address, open for reading.

    Raises:
        InputError: It is a folder, a pipe, a device or a file of the system, may not be read, or
            its file system is unknown or lacks a package, a login or the network; while it is read
            too.
    """
    try:
        system, inner_path = url_to_fs(path)
        if isinstance(system, LocalFileSystem) and (reason := not_plain(inner_path)):
            raise InputError(f"{path} {reason}")
        with system.open(inner_path, "rb") as file:
            yield file
    except InputError:
        raise
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; expected a file") from None
    except _file_faults() as error:
        needs = (
            "; it may need a package for its file system, a login or the network"
            if "://" in path
            else ""
        )
        raise InputError(
            f"{path}: cannot be read ({type(error).__name__}: {one_line(error)}){needs}"
        ) from error


def _file_faults() -> tuple[type[Exception], ...]:
    """Errors that opening a file raises; clients of remote file systems raise more: no credentials,
    no connection.
    """
    loaded = [
        (sys.modules.get("botocore.exceptions"), "BotoCoreError"),
        (sys.modules.get("aiohttp"), "ClientError"),
    ]
    return (
        OSError,
        ValueError,
        ImportError,
        *(getattr(module, name) for module, name in loaded if module),
    )


def read_bytes(path: str) -> bytes:
    """Content of a file or of an fsspec address.

    Raises:
        InputError: As `open_user_file`; or it has more than `LARGEST_TEXT_BYTES`.
    """
    with open_user_file(path) as file:
        content = bytes(file.read(LARGEST_TEXT_BYTES + 1))
    if len(content) > LARGEST_TEXT_BYTES:
        size = LARGEST_TEXT_BYTES // 1_000_000
        raise InputError(
            f"{path}: it has more than {size} MB; write its rows as .jsonl, one a line, or fewer of them"
        )
    return content


def read_text(path: str) -> str:
    """The UTF-8 text of a file or an fsspec address; raises InputError as `read_bytes` and
    `decoded` do.
    """
    return decoded(read_bytes(path), path)


def decoded(content: bytes, path: str) -> str:
    """UTF-8 text, with or without a BOM, or UTF-16 with one; InputError names `path` and the line."""
    return "".join(_decoded_chunks([content], path))


def text_lines(path: str) -> Iterator[str]:
    """The lines of a text file, each with its line feed; only line feeds end one.

    Raises:
        InputError: As `open_user_file` and `decoded`; or a line has more than `LONGEST_LINE`
            characters.
    """
    with open_user_file(path) as file:
        chunks = iter(lambda: file.read(CHUNK_BYTES), b"")
        yield from _lines_of(_decoded_chunks(chunks, path), path)


def _lines_of(texts: Iterable[str], path: str) -> Iterator[str]:
    number, rest = 1, ""
    for text in texts:
        *lines, rest = (rest + text).split("\n")
        # Not splitlines(): a line separator (U+2028) may stand inside a JSON string.
        for line in lines:
            yield f"{line}\n"
        number += len(lines)
        if len(rest) > LONGEST_LINE:
            raise InputError(
                f"{path}, line {number}: it has more than {LONGEST_LINE // 1_000_000} million characters; expected a "
                "row a line"
            )
    if rest:
        yield rest


def _decoded_chunks(chunks: Iterable[bytes], path: str) -> Iterator[str]:
    """The text of a file's chunks, in order; InputError names `path` and the line."""
    chunks = iter(chunks)
    beginning = next(chunks, b"")
    if beginning.startswith(COMPRESSED):
        raise InputError(
            f"{path}: expected text in UTF-8, got a compressed file or a spreadsheet; decompress or export it"
        )
    sample = beginning[:CHUNK_BYTES]
    if not beginning.startswith(UTF_16) and sample.count(b"\0") * 4 > len(sample):
        raise InputError(
            f"{path}: expected text in UTF-8, got a binary file, or UTF-16 without its mark; save it as UTF-8"
        )
    is_utf_16 = beginning.startswith(UTF_16)
    decoder = codecs.getincrementaldecoder("utf-16" if is_utf_16 else "utf-8-sig")()
    line_feeds = 0
    try:
        for chunk in chain([beginning], chunks):
            text = decoder.decode(chunk)
            line_feeds += text.count("\n")
            yield text
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        if is_utf_16:
            raise InputError(
                f"{path}: begins as UTF-16 does, and is not ({error.reason}); save the file as UTF-8"
            ) from None
        if b"\0" in error.object:
            raise InputError(
                f"{path}: expected text in UTF-8, got a binary file; export its rows as text"
            ) from None
        line = line_feeds + error.object.count(b"\n", 0, error.start) + 1
        letter = error.object[error.start : error.start + 1].decode("cp1252", errors="replace")
        raise InputError(
            f"{path}, line {line}: not UTF-8 ({error.reason}; in Windows-1252 it would be {letter!r}); save the file "
            "as UTF-8, in Excel as the type CSV UTF-8"
        ) from None


def file_rows(path: str) -> Iterator[tuple[int, Row]]:
    """Line number and row of every row of a .jsonl, .csv or .tsv file; InputError names `path` and
    the line.
    """
    ending = path.lower().rpartition(".")[2]
    if ending == "jsonl":
        return jsonl_rows(text_lines(path), path)
    return csv_rows(text_lines(path), path, delimiter="\t" if ending == "tsv" else None)


def jsonl_rows(lines: Iterable[str], path: str) -> Iterator[tuple[int, Row]]:
    """Line number and row of every line that holds something; InputError names `path` and the line."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = parsed_json(line, where)
        except json.JSONDecodeError as error:
            fault = f"not JSON ({error.msg}, column {error.colno})"
            raise InputError(
                f"{where}: {fault}; each line must be an object, {ROW_EXAMPLE}"
            ) from None
        if not isinstance(row, dict):
            remedy = (
                "write each of its rows on a line"
                if isinstance(row, list)
                else f"write the row {ROW_EXAMPLE}"
            )
            raise InputError(f"{where}: expected a JSON object, got {type(row).__name__}; {remedy}")
        yield number, row


@overload
def parsed_json(text: str, where: str) -> Any: ...


@overload
def parsed_json(text: str, where: str, *, start: int) -> tuple[Any, int]: ...


def parsed_json(text: str, where: str, *, start: int | None = None) -> Any:
    """The content of a JSON text.

    Args:
        text: The text.
        where: File and line, with which an error begins.
        start: Place of the value that is read, of several in the text; None is all of it.

    Returns:
        The content; with `start` also the place of its end.

    Raises:
        json.JSONDecodeError: It is not JSON. InputError: It has a key twice, nests too deep, or has
        a number of more digits than Python reads.
    """
    try:
        return _JSON.decode(text) if start is None else _JSON.raw_decode(text, start)
    except json.JSONDecodeError:
        raise
    except _KeyTwice as twice:
        raise InputError(
            f"{where}: the key {str(twice)!r} is there twice; rename or remove one"
        ) from None
    except RecursionError:
        raise InputError(f"{where}: it {TOO_DEEP}") from None
    except ValueError as error:
        digits = _DIGITS.search(str(error))
        size = f" of {int(digits[1]):,} digits" if digits else ""
        raise InputError(
            f"{where}: it has a number{size}, which cannot be read; write it as a text in quotes"
        ) from None


class _KeyTwice(ValueError):
    """An object has a key twice; `json` itself keeps the last value in silence."""


def _with_keys_once(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _KeyTwice(next(key for key in keys if keys.count(key) > 1)[:80])
    return row


_JSON = json.JSONDecoder(object_pairs_hook=_with_keys_once)
_BLANKS = re.compile(r"[ \t\n\r]*")


def csv_rows(
    lines: Iterable[str], path: str, *, delimiter: str | None = None
) -> Iterator[tuple[int, Row]]:
    """Line number and row of every row of a CSV text; InputError names `path` and the line.

    Without a `delimiter` it is what a first line as `sep=;` says. Else it is the first of comma,
    semicolon and tab that the first line has: Excel saves a CSV with semicolons in much of Europe,
    and its "Unicode Text" with tabs.
    """
    rest = _ended_by_any_mark(lines)
    beginning = list[str]()  # up to the names of the columns
    for line in rest:
        beginning.append(line)
        if line.strip() and not (len(beginning) == 1 and SEP.fullmatch(line)):
            break
    before = 0
    if beginning and (sep := SEP.fullmatch(beginning[0])):
        before = 1
        delimiter = delimiter or sep[1]
    head = beginning[-1] if beginning else ""
    delimiter = delimiter or next((mark for mark in (",", ";", "\t") if mark in head), ",")
    csv.field_size_limit(
        max(csv.field_size_limit(), LONGEST_LINE)
    )  # a cell may hold a whole article
    reader = csv.DictReader(chain(beginning[before:], rest), delimiter=delimiter, strict=True)
    try:
        named = [name for name in reader.fieldnames or () if name.strip()]
    except csv.Error:
        raise InputError(
            f"{path}, line 1: a quote is open or stands within a quoted name of a column"
        ) from None
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


def _ended_by_any_mark(lines: Iterable[str]) -> Iterator[str]:
    """The lines, split at carriage returns too, which end the lines of old spreadsheets."""
    for line in lines:
        if "\r" in line:
            yield from io.StringIO(line, newline="")
        else:
            yield line


def json_rows(path: str, *, expected: str, hint: str = "") -> Iterator[Row]:
    """Rows of a .json file: a list of objects, or one object of them by id, which each row then
    has.

    Args:
        path: The file.
        expected: Form of its rows, for the message about another one.
        hint: End of the message about what is not JSON.

    Raises:
        InputError: As `read_text`; or it is not JSON, of another form, or a row is as `parsed_json`
            refuses it.
    """
    text = read_text(path)
    try:
        for entry in _json_entries(text, path):
            if not isinstance(entry, dict):
                raise InputError(f"{path}: expected {expected}, got {type(entry).__name__}")
            yield entry
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg}){hint}") from None


def _json_entries(text: str, path: str) -> Iterator[Any]:
    """Entries of a JSON list, read one after another; the values of an object, each with its key as
    `id`.
    """
    position = _after_blanks(text, 0)
    if text[position : position + 1] != "[":
        content = parsed_json(text, path)
        if not isinstance(content, dict):
            yield content
            return
        for key, row in content.items():
            yield {"id": key, **row} if isinstance(row, dict) else row
        return
    position = _after_blanks(text, position + 1)
    at_end = text[position : position + 1] == "]"
    while not at_end:
        entry, position = parsed_json(text, path, start=position)
        yield entry
        position = _after_blanks(text, position)
        at_end = text[position : position + 1] == "]"
        if not at_end:
            if text[position : position + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
            position = _after_blanks(text, position + 1)
    end = _after_blanks(text, position + 1)
    if end < len(text):
        raise json.JSONDecodeError("Extra data", text, end)


def _after_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    assert blanks is not None  # it matches nothing, too
    return blanks.end()


def parquet_rows(path: str) -> Iterator[Row]:
    """Rows of a Parquet file, read in batches.

    Raises:
        InputError: It is not one, or has more than `MOST_ROWS` rows.
    """
    import pyarrow
    from pyarrow import parquet

    with open_user_file(path) as file:
        try:
            table = parquet.ParquetFile(file)
            if table.metadata.num_rows > MOST_ROWS:
                raise InputError(
                    f"{path}: it has {table.metadata.num_rows:,} rows; give at most {MOST_ROWS:,}"
                )
            for batch in table.iter_batches(batch_size=BATCH_ROWS):
                yield from batch.to_pylist()
        except pyarrow.ArrowException as error:
            raise InputError(f"{path}: not a Parquet file ({one_line(error)})") from None


MOST_ROWS = 20_000_000
"""Rows of a Parquet file, at most: a small one may hold any number of equal rows."""
BATCH_ROWS = 1000


def with_columns(row: Mapping[str, Any], names: Iterable[str]) -> Row:
    """The row with its columns renamed to those in `names` that differ in capitals and outer blanks
    alone.

    A column that is there as it is named stays, and so do two that would get one name.

    >>> with_columns({" Question": "Why?", "Kind": "x"}, ("id", "question"))
    {'question': 'Why?', 'Kind': 'x'}
    """
    if all(str(column).strip().lower() == column for column in row):
        return dict(row)
    alike: dict[str, list[str]] = {}
    for column in row:
        alike.setdefault(str(column).strip().lower(), []).append(column)
    called = {
        alike[name][0]: name for name in names if name not in row and len(alike.get(name, ())) == 1
    }
    return {called.get(column, column): value for column, value in row.items()}
