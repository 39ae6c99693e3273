"""Refusal of a log that would fill the memory, before it is parsed: it unpacks to too much, or nests too deep."""

import re
import sys
from collections.abc import Iterable, Iterator
from copy import copy
from functools import partial
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import fsspec
import zstandard

from selfprobe.errors import InputError

MOST = 100
"""Ratio to its size that a large log may unpack to; Inspect's unpack to 5 to 30 times."""
LARGE = 256_000_000
"""Bytes below which any log is read: replies of megabytes that repeat themselves pack well, and are in real logs."""
DEEPEST = 1000
"""Levels of lists and objects in a log: Inspect writes at most 255. Memory to read them grows with their square."""

_CHUNK = 1_000_000
_ZSTANDARD = 93
"""Number of the compression that Inspect uses, in a zip file's directory."""
_SHALLOW = 8
"""Innermost levels that are left out before brackets are counted one by one, and not counted: most of a log."""
_AS_LIST = bytes.maketrans(b"{}", b"[]")
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_RUN = re.compile(rb"\[+|\]+")


def refuse_bomb(log: str, *, samples: bool = False) -> None:
    """Look at the sizes that a log's directory tells, and unpack what is about to be read, a piece at a time.

    Args:
        log: A file here or at any fsspec address; a zip file, or JSON.
        samples: Whether its samples are about to be read too. A log in JSON is looked at as a whole either way.

    Raises:
        InputError: It unpacks to more than a hundred times its size, or to more than its directory says; or its lists
            and objects are more than a thousand levels deep.
        zipfile.BadZipFile, zstandard.ZstdError, OSError: It cannot be read.
    """
    with fsspec.open(log, "rb") as file:
        if not log.endswith(".eval"):
            _refuse_deep(iter(partial(file.read, _CHUNK), b""))
            return
        with ZipFile(file) as packed:
            members = packed.infolist()
            _refuse_large(sum(member.file_size for member in members), file.seek(0, 2))
            for member in members:
                if samples or not member.filename.startswith("samples/"):
                    _refuse_deep(_unpacked(packed, member))


def sample_texts(log: str) -> Iterator[bytes]:
    """JSON of each sample in a zip file, looked at as `refuse_bomb` does. Of a sample that was written twice the last.

    Raises:
        InputError, zipfile.BadZipFile, zstandard.ZstdError, OSError: See `refuse_bomb`.
    """
    with fsspec.open(log, "rb") as file, ZipFile(file) as packed:
        members = packed.infolist()
        _refuse_large(sum(member.file_size for member in members), file.seek(0, 2))
        for member in {member.filename: member for member in members}.values():
            if member.filename.startswith("samples/"):
                text = list(_unpacked(packed, member))
                _refuse_deep(text)
                yield b"".join(text)


def _refuse_large(inside: int, size: int) -> None:
    if inside > max(LARGE, MOST * size):
        times = inside // max(size, 1)
        raise InputError(
            f"it unpacks from {size / 1e6:.0f} MB to {inside / 1e6:,.0f} MB, {times:,} times its size; no log does "
            f"more than {MOST} times"
        )


def _unpacked(packed: ZipFile, member: ZipInfo) -> Iterator[bytes]:
    """Content of a member; InputError where that is more than the directory says."""
    size, read, found = member.file_size, 0, copy(member)
    if zstandard_packed := member.compress_type == _ZSTANDARD:  # zipfile would unpack a megabyte to gigabytes at once
        found.compress_type, found.file_size = ZIP_STORED, member.compress_size
        del found.CRC
    elif member.compress_type in (ZIP_STORED, ZIP_DEFLATED):
        found.file_size = sys.maxsize  # else no more than `size` is read, and nobody knows that there is more
    else:
        raise NotImplementedError(f"{member.filename} is compressed in a way that no log is")
    with packed.open(found) as raw:
        unpacker = zstandard.ZstdDecompressor()
        file = unpacker.stream_reader(raw, read_across_frames=True) if zstandard_packed else raw
        while chunk := file.read(_CHUNK):
            read += len(chunk)
            if read > size:
                raise InputError(f"its directory says that {member.filename} unpacks to {size:,} bytes; it has more")
            yield chunk


def _refuse_deep(chunks: Iterable[bytes]) -> None:
    """InputError where JSON is too deep; brackets within strings do not count."""
    depth, quoted, left = 0, 0, b""
    for chunk in chunks:
        text = left + chunk
        cut = (len(text) - len(text.rstrip(b"\\"))) % 2  # an escape goes on in the next chunk
        text, left = text[: len(text) - cut], text[len(text) - cut :]
        parts = text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        brackets = b"".join(parts[quoted::2]).translate(_AS_LIST, _NO_BRACKET)
        quoted = (quoted + len(parts) - 1) % 2
        for _ in range(_SHALLOW):
            brackets = brackets.replace(b"[]", b"")
        for run in _RUN.findall(brackets):
            depth += len(run) if run.startswith(b"[") else -len(run)
            if depth > DEEPEST:
                raise InputError(f"its lists and objects are more than {DEEPEST:,} levels deep; no log's are")
