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
from collections import Counter
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
EXAMPLE_COLUMN = "question"
"""Column of the row that errors show."""


def row_example(column: str = EXAMPLE_COLUMN) -> str:
    """Words of an error that show a row of a file.

    >>> row_example("prompt")
    'such as {"prompt": "Why is it so?"}'
    >>> row_example("word")
    'such as {"word": "ocean"}'
    """
    example_text = "ocean" if column == "word" else "Why is it so?"
    return f'such as {{"{column}": "{example_text}"}}'


SEP = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
"""Excel's first line that names the delimiter."""

CHUNK_BYTES = 1 << 20
LONGEST_LINE = 32_000_000
"""Characters of a line, at most."""
LARGEST_TEXT_BYTES = 256_000_000
"""Bytes of a file that is read as a whole, at most."""

_DIGIT_COUNT = re.compile(r"has (\d+) digits")


@contextmanager
def open_user_file(path: str) -> Iterator[IO[bytes]]:
    """A local file or an fsspec address, open for reading.

    Raises:
        InputError: It is a folder, a pipe, a device or a file of the system, may not be read, or
            its file system is unknown or lacks a package, a login or the network; while it is read
            too.
    """
    try:
        file_system, inner_path = url_to_fs(path)
        if isinstance(file_system, LocalFileSystem) and (fault := not_plain(inner_path)):
            raise InputError(f"{path} {fault}")
        with file_system.open(inner_path, "rb") as file:
            yield file
    except InputError:
        raise
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; expected a file") from None
    except _file_faults() as error:
        remedy = ""
        if "://" in path:
            remedy = "; it may need a package for its file system, a login or the network"
        raise InputError(
            f"{path}: cannot be read ({type(error).__name__}: {one_line(error)}){remedy}"
        ) from error


def _file_faults() -> tuple[type[Exception], ...]:
    """Errors that opening a file raises; clients of remote file systems raise more: no credentials,
    no connection.
    """
    faults: list[type[Exception]] = [OSError, ValueError, ImportError]
    for module_name, error_name in REMOTE_ERRORS.items():
        if module_name in sys.modules:
            faults.append(getattr(sys.modules[module_name], error_name))
    return tuple(faults)


REMOTE_ERRORS = {"botocore.exceptions": "BotoCoreError", "aiohttp": "ClientError"}
"""Module of a client of remote files, where it is loaded → its error."""


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
            f"{path}: it has more than {size} MB; write its rows as .jsonl, one a line, or fewer "
            f"of them"
        )
    return content


def read_text(path: str) -> str:
    """The UTF-8 text of a file or an fsspec address; raises InputError as `read_bytes` and
    `decoded` do.
    """
    return decoded(read_bytes(path), path)


def decoded(content: bytes, path: str) -> str:
    """UTF-8 text, with or without a BOM, or UTF-16 with one; InputError names path and line."""
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
    line_number = 1
    unfinished_line = ""
    for text in texts:
        # Not splitlines(): a line separator (U+2028) may stand inside a JSON string.
        *lines, unfinished_line = (unfinished_line + text).split("\n")
        for line in lines:
            yield f"{line}\n"
        line_number += len(lines)
        if len(unfinished_line) > LONGEST_LINE:
            raise InputError(
                f"{path}, line {line_number}: it has more than {LONGEST_LINE // 1_000_000} million "
                "characters; expected a row a line"
            )
    if unfinished_line:
        yield unfinished_line


def _decoded_chunks(chunks: Iterable[bytes], path: str) -> Iterator[str]:
    """The text of a file's chunks, in order; InputError names `path` and the line."""
    chunks = iter(chunks)
    beginning = next(chunks, b"")
    is_utf_16 = beginning.startswith(UTF_16)
    if beginning.startswith(COMPRESSED):
        raise InputError(
            f"{path}: expected text in UTF-8, got a compressed file or a spreadsheet; "
            "decompress or export it"
        )
    sample = beginning[:CHUNK_BYTES]
    if not is_utf_16 and sample.count(b"\0") * 4 > len(sample):
        raise InputError(
            f"{path}: expected text in UTF-8, got a binary file, or UTF-16 without its mark; "
            "save it as UTF-8"
        )
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
                f"{path}: begins as UTF-16 does, and is not ({error.reason}); "
                "save the file as UTF-8"
            ) from None
        if b"\0" in error.object:
            raise InputError(
                f"{path}: expected text in UTF-8, got a binary file; export its rows as text"
            ) from None
        line_number = line_feeds + error.object.count(b"\n", 0, error.start) + 1
        wrong_byte = error.object[error.start : error.start + 1]
        letter = wrong_byte.decode("cp1252", errors="replace")
        raise InputError(
            f"{path}, line {line_number}: not UTF-8 ({error.reason}; in Windows-1252 it would be "
            f"{letter!r}); save the file as UTF-8, in Excel as the type CSV UTF-8"
        ) from None


def file_rows(path: str, column: str = EXAMPLE_COLUMN) -> Iterator[tuple[int, Row]]:
    """Line number and row of every row of a .jsonl, .csv or .tsv file; InputError names `path` and
    the line, and shows a row with `column`.
    """
    ending = path.lower().rpartition(".")[2]
    if ending == "jsonl":
        return jsonl_rows(text_lines(path), path, column)
    return csv_rows(text_lines(path), path, delimiter="\t" if ending == "tsv" else None)


def jsonl_rows(
    lines: Iterable[str], path: str, column: str = EXAMPLE_COLUMN
) -> Iterator[tuple[int, Row]]:
    """Line number and row of every line that holds something; InputError names path and line."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = parsed_json(line.rstrip("\r\n"), where)  # else its end is on the next line
        except json.JSONDecodeError as error:
            raise InputError(
                f"{where}: not JSON ({error.msg}, column {error.colno}); each line must be an "
                f"object, {row_example(column)}"
            ) from None
        if isinstance(row, list):
            raise InputError(
                f"{where}: expected a JSON object, got list; write each of its rows on a line"
            )
        if not isinstance(row, dict):
            raise InputError(
                f"{where}: expected a JSON object, got {type(row).__name__}; "
                f"write the row {row_example(column)}"
            )
        yield number, row


@overload
def parsed_json(text: str, where: str) -> Any: ...


@overload
def parsed_json(text: str, where: str, *, start_offset: int) -> tuple[Any, int]: ...


def parsed_json(text: str, where: str, *, start_offset: int | None = None) -> Any:
    """The content of a JSON text.

    Args:
        text: The text.
        where: File and line, with which an error begins.
        start_offset: Place of the value that is read, of several in the text; None is all of it.

    Returns:
        The content; with `start_offset` also the place of its end.

    Raises:
        json.JSONDecodeError: It is not JSON. InputError: It has a key twice, nests too deep, or has
        a number of more digits than Python reads.
    """
    try:
        if start_offset is None:
            return _JSON.decode(text)
        return _JSON.raw_decode(text, start_offset)
    except json.JSONDecodeError:
        raise
    except _KeyTwice as error:
        raise InputError(
            f"{where}: the key {str(error)!r} is there twice; rename or remove one"
        ) from None
    except RecursionError:
        raise InputError(f"{where}: it {TOO_DEEP}") from None
    except ValueError as error:
        digit_count = _DIGIT_COUNT.search(str(error))
        size_words = f" of {int(digit_count[1]):,} digits" if digit_count else ""
        raise InputError(
            f"{where}: it has a number{size_words}, which cannot be read; write it as a text in quotes"
        ) from None


class _KeyTwice(ValueError):
    """An object has a key twice; `json` itself keeps the last value in silence."""


def _with_keys_once(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        count_of_key = Counter(key for key, _ in pairs)
        repeated_keys = [key for key, count in count_of_key.items() if count > 1]
        raise _KeyTwice(repeated_keys[0][:80])
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
    later_lines = _ended_by_any_mark(lines)
    first_lines: list[str] = []  # up to the names of the columns
    for line in later_lines:
        first_lines.append(line)
        is_delimiter_line = len(first_lines) == 1 and SEP.fullmatch(line)
        if line.strip() and not is_delimiter_line:
            break
    skipped_lines = 0
    delimiter_line = SEP.fullmatch(first_lines[0]) if first_lines else None
    if delimiter_line:
        skipped_lines = 1
        delimiter = delimiter or delimiter_line[1]
    heading_line = first_lines[-1] if first_lines else ""
    if not delimiter:
        delimiter = next((mark for mark in DELIMITERS if mark in heading_line), ",")

    # A cell may hold a whole article.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    data_lines = chain(first_lines[skipped_lines:], later_lines)
    reader = csv.DictReader(data_lines, delimiter=delimiter, strict=True)
    _refuse_column_twice(reader, path)
    try:
        for row in reader:
            line_number = reader.line_num + skipped_lines
            if surplus_cells := row.get(None):
                column_count = len(row) - 1
                marks = "commas" if delimiter == "," else "the delimiter"
                raise InputError(
                    f"{path}, line {line_number}: {column_count + len(surplus_cells)} cells under "
                    f"{column_count} columns; quote cells that hold {marks}"
                )
            yield line_number, dict(row)
    except csv.Error:  # read on, such a cell would lose its quotes, or take in the rows after it
        raise InputError(
            f"{path}, line {reader.line_num + skipped_lines + 1}: a cell that begins with a quote "
            'must end with one; double the quotes within it: "He said ""no"" to us."'
        ) from None


DELIMITERS = (",", ";", "\t")


def _refuse_column_twice(reader: "csv.DictReader[str]", path: str) -> None:
    try:
        columns = [name for name in reader.fieldnames or () if name.strip()]
    except csv.Error:
        raise InputError(
            f"{path}, line 1: a quote is open or stands within a quoted name of a column"
        ) from None
    for column in columns:
        if columns.count(column) > 1:
            raise InputError(f"{path}: the column {column!r} is there twice: rename or remove one")


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
    is_at_end = text[position : position + 1] == "]"
    while not is_at_end:
        entry, position = parsed_json(text, path, start_offset=position)
        yield entry
        position = _after_blanks(text, position)
        mark = text[position : position + 1]
        is_at_end = mark == "]"
        if not is_at_end and mark != ",":
            raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
        if not is_at_end:
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
    columns_of_plain_name: dict[str, list[str]] = {}
    for column in row:
        plain_name = str(column).strip().lower()
        columns_of_plain_name.setdefault(plain_name, []).append(column)
    new_names: dict[str, str] = {}
    for name in names:
        columns = columns_of_plain_name.get(name, [])
        if name not in row and len(columns) == 1:
            new_names[columns[0]] = name
    return {new_names.get(column, column): value for column, value in row.items()}
