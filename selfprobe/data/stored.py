"""Rows of a table: few are a list, many lie in a temporary file, from which each is read when it is used."""

import json
import marshal
import os
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from typing import IO, Any, overload

from selfprobe.errors import InputError, one_line

Row = dict[str, Any]

HELD_BYTES = 16_000_000
"""Packed bytes of the rows that are kept in memory, where they take about eight times as much."""
READ_BYTES = 1 << 20


class StoredRows(Sequence[Row]):
    """Rows that lie in a temporary file; each reading of one gives a new copy."""

    def __init__(self, file: IO[bytes], ends: "array[int]") -> None:
        self._file = file
        self._ends = ends
        """Where each row ends in the file."""

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = range(len(self))[index]  # from the end, and IndexError, as a list has them
        start = self._ends[number - 1] if number else 0
        packed = os.pread(self._file.fileno(), self._ends[number] - start, start)
        return dict(marshal.loads(packed))

    def __iter__(self) -> Iterator[Row]:
        block, block_start, start = b"", 0, 0
        for end in self._ends:
            if end > block_start + len(block):
                block_start = start
                block = os.pread(self._file.fileno(), max(READ_BYTES, end - start), start)
            yield marshal.loads(memoryview(block)[start - block_start : end - block_start])
            start = end


class Reordered(Sequence[Row]):
    """Rows in another order."""

    def __init__(self, rows: Sequence[Row], order: Sequence[int]) -> None:
        self._rows = rows
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self._rows[number] for number in self._order[index]]
        return self._rows[self._order[index]]


class RowStore:
    """Rows in the order in which they come: a list until they take `HELD_BYTES`, then a temporary file.

    Rows that go into a file hold what JSON holds: texts, numbers, truth values, None, lists and mappings.
    """

    def __init__(self) -> None:
        self._held = list[Row]()
        self._held_bytes = 0
        self._file: IO[bytes] | None = None
        self._ends = array("Q")

    def append(self, row: Row) -> None:
        """Add a row.

        Raises:
            InputError: The temporary file cannot be written.
        """
        packed = _packed(row)
        if self._file is None:
            self._held.append(row)
            self._held_bytes += len(packed)
            if self._held_bytes > HELD_BYTES:
                self._move_into_file()
        else:
            self._write(packed)

    def rows(self) -> Sequence[Row]:
        """All rows; nothing is added after that.

        Raises:
            InputError: The temporary file cannot be written.
        """
        if self._file is None:
            return self._held
        try:
            self._file.flush()
        except OSError as error:
            raise _no_space(error) from None
        return StoredRows(self._file, self._ends)

    def _move_into_file(self) -> None:
        try:
            self._file = tempfile.TemporaryFile(buffering=READ_BYTES)  # noqa: SIM115 -- open as long as the rows
        except OSError as error:
            raise _no_space(error) from None
        for row in self._held:
            self._write(_packed(row))
        self._held = []

    def _write(self, packed: bytes) -> None:
        assert self._file is not None
        try:
            self._file.write(packed)
        except OSError as error:
            raise _no_space(error) from None
        self._ends.append((self._ends[-1] if self._ends else 0) + len(packed))


def _packed(row: Row) -> bytes:
    try:
        return marshal.dumps(row)
    except ValueError:  # a value of a subclass, such as NumPy's of float
        return marshal.dumps(json.loads(json.dumps(row)))


def _no_space(error: OSError) -> InputError:
    return InputError(
        f"the rows of the data set do not fit into memory, and {tempfile.gettempdir()} cannot be written "
        f"({one_line(error)}); free space there, or set TMPDIR to a folder with space"
    )
