"""The file of a log: refused where it would fill the memory, and its texts.

Refused before it is parsed is a log that unpacks to too much, or nests too deep. A text that a log
holds once and refers to is put back in its places.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import fsspec
import zstandard
from inspect_ai.log import EvalSample, resolve_sample_attachments

from selfprobe.errors import InputError

_MOST = 100
"""Ratio to its size that a large log may unpack to; Inspect's unpack to 5 to 30 times."""
_LARGE = 256_000_000
"""Bytes below which any log is read: replies of megabytes that repeat themselves pack well, and are
in real logs.
"""
_DEEPEST = 1000
"""Levels of lists and objects in a log: Inspect writes at most 255. Memory to read them grows with
their square.
"""

_CHUNK = 1_000_000
_ZSTANDARD = 93
"""Number of the compression that Inspect uses, in a zip file's directory."""
_SHALLOW = 8
"""Innermost levels that are left out before brackets are counted one by one, and not counted: most
of a log.
"""
_AS_LIST = bytes.maketrans(b"{}", b"[]")
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_RUN = re.compile(rb"\[+|\]+")


def refuse_bomb(log: str, *, samples: bool = False) -> None:
    """Look at the sizes that a log's directory tells, and unpack what is about to be read, a piece
    at a time.

    Args:
        log: A file here or at any fsspec address; a zip file, or JSON.
        samples: Whether its samples are about to be read too. A log in JSON is looked at as a whole
            either way.

    Raises:
        InputError: It unpacks to more than a hundred times its size, or to more than its directory
            says; or its lists and objects are more than a thousand levels deep.
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
    """JSON of each sample in a zip file, looked at as `refuse_bomb` does. Of a sample that was
    written twice the last.

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


def member_text(log: str, name: str) -> bytes | None:
    """Content of a member of a zip file; None where there is none of this name.

    Raises:
        InputError, zipfile.BadZipFile, zstandard.ZstdError, OSError: See `refuse_bomb`.
    """
    with fsspec.open(log, "rb") as file, ZipFile(file) as packed:
        if name not in packed.namelist():
            return None
        return b"".join(_unpacked(packed, packed.getinfo(name)))


def _refuse_large(inside: int, size: int) -> None:
    if inside > max(_LARGE, _MOST * size):
        times = inside // max(size, 1)
        raise InputError(
            f"it unpacks from {size / 1e6:.0f} MB to {inside / 1e6:,.0f} MB, {times:,} times its size; no log does "
            f"more than {_MOST} times"
        )


def _unpacked(packed: ZipFile, member: ZipInfo) -> Iterator[bytes]:
    """Content of a member; InputError where that is more than the directory says."""
    size, read, entry = member.file_size, 0, copy(member)
    if (
        zstandard_packed := member.compress_type == _ZSTANDARD
    ):  # zipfile would unpack a megabyte to gigabytes at once
        entry.compress_type, entry.file_size = ZIP_STORED, member.compress_size
        del entry.CRC
    elif member.compress_type in (ZIP_STORED, ZIP_DEFLATED):
        entry.file_size = (
            sys.maxsize
        )  # else no more than `size` is read, and nobody knows that there is more
    else:
        raise NotImplementedError(f"{member.filename} is compressed in a way that no log is")
    with packed.open(entry) as raw:
        unpacker = zstandard.ZstdDecompressor()
        file = unpacker.stream_reader(raw, read_across_frames=True) if zstandard_packed else raw
        while chunk := file.read(_CHUNK):
            read += len(chunk)
            if read > size:
                raise InputError(
                    f"its directory says that {member.filename} unpacks to {size:,} bytes; it has more"
                )
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
            if depth > _DEEPEST:
                raise InputError(
                    f"its lists and objects are more than {_DEEPEST:,} levels deep; no log's are"
                )


REFERENCE = "attachment://"
"""Beginning of a log's reference to a long text that it holds once."""


def resolved(sample: EvalSample) -> EvalSample:
    """A sample with every reference in its store, scores and messages resolved.

    Inspect restores all long texts of a sample that was finished when its run was killed as
    references, and resolves only those in messages and events. One that had not reached the log's
    file has its store in its events alone.
    """
    if not sample.attachments:
        return sample
    store, scores = _filled(sample.store, sample.attachments), _filled_scores(sample)
    if not sample.store or _refers(sample):
        sample = resolve_sample_attachments(sample, "core")
    return sample.model_copy(update={"store": store, "scores": scores})


def _refers(sample: EvalSample) -> bool:
    messages = [*sample.messages, *(sample.input if isinstance(sample.input, list) else [])]
    texts = [message.text for message in messages] + (
        [sample.input] if isinstance(sample.input, str) else []
    )
    return any(text.startswith(REFERENCE) for text in texts)


def _filled_scores(sample: EvalSample) -> Any:
    names = ("value", "answer", "explanation", "metadata")
    return sample.scores and {
        name: score.model_copy(
            update={n: _filled(getattr(score, n), sample.attachments) for n in names}
        )
        for name, score in sample.scores.items()
    }


def _filled(value: Any, attachments: Mapping[str, str]) -> Any:
    if isinstance(value, str) and value.startswith(REFERENCE):
        return attachments.get(value.removeprefix(REFERENCE), value)
    if isinstance(value, Mapping):
        return {key: _filled(inner, attachments) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_filled(inner, attachments) for inner in value]
    return value
