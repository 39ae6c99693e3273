"""Rows of a table: few are a list, many lie in a temporary file, from which each is read when it is
used.
"""

import os
import pickle
import tempfile
import threading
import weakref
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, overload

from selfprobe.errors import InputError, one_line

Row = dict[str, Any]

MOST_ROW_BYTES_IN_MEMORY = 16_000_000
"""Packed bytes of the rows that are kept in memory, where they take about eight times as much."""
READ_BYTES = 1 << 20
"""Bytes of a file that are read at once."""


class RowFile:
    """A temporary file of packed rows, which nobody else can open, and which goes with this
    process.
    """

    def __init__(self) -> None:
        try:
            self._file = tempfile.TemporaryFile(buffering=READ_BYTES)  # noqa: SIM115 -- open as long as the rows
        except OSError as error:
            raise _no_space(error) from None
        weakref.finalize(self, self._file.close)
        self._reading = threading.Lock()
        self.ends = array("Q")
        """Where each row ends."""

    def append(self, packed: bytes) -> None:
        """Add a row; raises InputError where the disk is full."""
        try:
            self._file.write(packed)
        except OSError as error:
            raise _no_space(error) from None
        self.ends.append((self.ends[-1] if self.ends else 0) + len(packed))

    def flush(self) -> None:
        """Let everything be in the file; raises InputError where the disk is full."""
        try:
            self._file.flush()
        except OSError as error:
            raise _no_space(error) from None

    def read(self, start: int, size: int) -> bytes:
        """So many bytes from a place; threads may read at once."""
        if hasattr(os, "pread"):
            return os.pread(self._file.fileno(), size, start)
        with self._reading:  # Windows
            self._file.seek(start)
            packed: bytes = self._file.read(size)
            self._file.seek(0, os.SEEK_END)
            return packed


def _no_space(error: OSError) -> InputError:
    return InputError(
        f"the rows of the data set do not fit into memory, and {tempfile.gettempdir()} cannot be "
        f"written ({one_line(error)}); free space there, or set TMPDIR to a folder with space"
    )


class StoredRows(Sequence[Row]):
    """Rows that lie in a file; each reading of one gives a new copy."""

    def __init__(self, file: RowFile) -> None:
        self._file = file
        self._ends = file.ends

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        row_index = range(len(self))[index]  # from the end, and IndexError, as a list has them
        row_start = self._ends[row_index - 1] if row_index else 0
        return _unpacked(self._file.read(row_start, self._ends[row_index] - row_start))

    def __iter__(self) -> Iterator[Row]:
        block = b""
        block_start = 0
        row_start = 0
        for row_end in self._ends:
            if row_end > block_start + len(block):
                block_start = row_start
                block = self._file.read(row_start, max(READ_BYTES, row_end - row_start))
            yield _unpacked(memoryview(block)[row_start - block_start : row_end - block_start])
            row_start = row_end


def _unpacked(packed: bytes | memoryview) -> Row:
    # What this process wrote, into a file that nobody else can open.
    row = pickle.loads(packed)  # inspect-evals-lint: ignore[host_code_execution] -- own rows
    return dict(row)


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
    """Rows in the order in which they come: a list until they take
    `MOST_ROW_BYTES_IN_MEMORY`, then a temporary file.
    """

    def __init__(self) -> None:
        self._rows_in_memory = list[Row]()
        self._bytes_in_memory = 0
        self._file: RowFile | None = None

    def append(self, row: Row) -> None:
        """Add a row; raises InputError where the temporary file cannot be written."""
        packed = pickle.dumps(row, pickle.HIGHEST_PROTOCOL)
        if self._file is not None:
            self._file.append(packed)
            return
        self._rows_in_memory.append(row)
        self._bytes_in_memory += len(packed)
        if self._bytes_in_memory > MOST_ROW_BYTES_IN_MEMORY:
            self._file = RowFile()
            for row_in_memory in self._rows_in_memory:
                self._file.append(pickle.dumps(row_in_memory, pickle.HIGHEST_PROTOCOL))
            self._rows_in_memory = []

    def rows(self) -> Sequence[Row]:
        """All rows, after which none is added; raises InputError where the temporary file cannot be
        written.
        """
        if self._file is None:
            return self._rows_in_memory
        self._file.flush()
        return StoredRows(self._file)
