"""A log is a zip file; one that would fill the memory is refused before it is unpacked."""

from zipfile import ZipFile

import fsspec

from selfprobe.errors import InputError

MOST = 100
"""Times its size that a large log may unpack to; Inspect's unpack to 5 to 30 times."""
LARGE = 256_000_000
"""Bytes below which any log is read: replies of megabytes that repeat themselves pack well, and are in real logs."""


def refuse_bomb(log: str) -> None:
    """Look at what a log says that it unpacks to, which takes its last bytes alone.

    Args:
        log: A file here or at any fsspec address; JSON unpacks to nothing.

    Raises:
        InputError: It unpacks to more than a hundred times its size.
        zipfile.BadZipFile, OSError: It cannot be read.
    """
    if not log.endswith(".eval"):
        return
    with fsspec.open(log, "rb") as file, ZipFile(file) as packed:
        inside = sum(member.file_size for member in packed.infolist())
        size = file.seek(0, 2)
    if inside > max(LARGE, MOST * size):
        times = inside // max(size, 1)
        raise InputError(
            f"it unpacks from {size / 1e6:.0f} MB to {inside / 1e6:,.0f} MB, {times:,} times its size; no log does "
            f"more than {MOST} times"
        )
