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
from inspect_ai.scorer import Score

from selfprobe.errors import InputError

LARGEST_UNPACKING_RATIO = 100
"""Ratio to its size that a large log may unpack to; Inspect's unpack to 5 to 30 times."""
ALWAYS_READ_BYTES = 256_000_000
"""Bytes below which any log is read: replies of megabytes that repeat themselves pack well, and are
in real logs.
"""
DEEPEST_LEVEL = 1000
"""Levels of lists and objects in a log: Inspect writes at most 255. Memory to read them grows with
their square.
"""

CHUNK_BYTES = 1_000_000
ZSTANDARD_METHOD = 93
"""Number of the compression that Inspect uses, in a zip file's directory."""
INNERMOST_LEVELS = 8
"""Innermost levels that are left out before brackets are counted one by one, and not counted: most
of a log.
"""
BRACES_AS_BRACKETS = bytes.maketrans(b"{}", b"[]")
OTHER_BYTES = bytes(set(range(256)) - set(b"[]{}"))
BRACKET_RUN = re.compile(rb"\[+|\]+")


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
            _refuse_deep(iter(partial(file.read, CHUNK_BYTES), b""))
            return
        with ZipFile(file) as archive:
            members = archive.infolist()
            _refuse_large(sum(member.file_size for member in members), file.seek(0, 2))
            for member in members:
                if samples or not member.filename.startswith("samples/"):
                    _refuse_deep(_unpacked(archive, member))


def sample_texts(log: str) -> Iterator[bytes]:
    """JSON of each sample in a zip file, looked at as `refuse_bomb` does. Of a sample that was
    written twice the last.

    Raises:
        InputError, zipfile.BadZipFile, zstandard.ZstdError, OSError: See `refuse_bomb`.
    """
    with fsspec.open(log, "rb") as file, ZipFile(file) as archive:
        members = archive.infolist()
        _refuse_large(sum(member.file_size for member in members), file.seek(0, 2))
        for member in {member.filename: member for member in members}.values():
            if member.filename.startswith("samples/"):
                chunks = list(_unpacked(archive, member))
                _refuse_deep(chunks)
                yield b"".join(chunks)


def member_text(log: str, name: str) -> bytes | None:
    """Content of a member of a zip file; None where there is none of this name.

    Raises:
        InputError, zipfile.BadZipFile, zstandard.ZstdError, OSError: See `refuse_bomb`.
    """
    with fsspec.open(log, "rb") as file, ZipFile(file) as archive:
        if name not in archive.namelist():
            return None
        return b"".join(_unpacked(archive, archive.getinfo(name)))


def _refuse_large(unpacked_bytes: int, packed_bytes: int) -> None:
    if unpacked_bytes <= max(ALWAYS_READ_BYTES, LARGEST_UNPACKING_RATIO * packed_bytes):
        return
    ratio = unpacked_bytes // max(packed_bytes, 1)
    raise InputError(
        f"it unpacks from {packed_bytes / 1e6:.0f} MB to {unpacked_bytes / 1e6:,.0f} MB, "
        f"{ratio:,} times its size; no log does more than {LARGEST_UNPACKING_RATIO} times"
    )


def _unpacked(archive: ZipFile, member: ZipInfo) -> Iterator[bytes]:
    """Content of a member; InputError where that is more than the directory says."""
    stated_bytes = member.file_size
    entry = copy(member)
    is_zstandard = member.compress_type == ZSTANDARD_METHOD
    if is_zstandard:  # zipfile would unpack a megabyte to gigabytes at once
        entry.compress_type = ZIP_STORED
        entry.file_size = member.compress_size
        del entry.CRC
    elif member.compress_type in (ZIP_STORED, ZIP_DEFLATED):
        # else no more than the stated bytes are read, and nobody knows that there is more
        entry.file_size = sys.maxsize
    else:
        raise NotImplementedError(f"{member.filename} is compressed in a way that no log is")
    read_bytes = 0
    with archive.open(entry) as packed_file:
        file: Any = packed_file
        if is_zstandard:
            unpacker = zstandard.ZstdDecompressor()
            file = unpacker.stream_reader(packed_file, read_across_frames=True)
        while chunk := file.read(CHUNK_BYTES):
            read_bytes += len(chunk)
            if read_bytes > stated_bytes:
                raise InputError(
                    f"its directory says that {member.filename} unpacks to {stated_bytes:,} bytes; "
                    "it has more"
                )
            yield chunk


def _refuse_deep(chunks: Iterable[bytes]) -> None:
    """InputError where JSON is too deep; brackets within strings do not count."""
    depth = 0
    starts_in_string = 0  # 1 where a chunk begins within a string
    cut_escape = b""
    for chunk in chunks:
        text = cut_escape + chunk
        backslash_count = len(text) - len(text.rstrip(b"\\"))
        text_length = len(text) - backslash_count % 2  # an escape goes on in the next chunk
        cut_escape = text[text_length:]
        text = text[:text_length]
        parts = text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        text_outside_strings = b"".join(parts[starts_in_string::2])
        brackets = text_outside_strings.translate(BRACES_AS_BRACKETS, OTHER_BYTES)
        starts_in_string = (starts_in_string + len(parts) - 1) % 2
        for _ in range(INNERMOST_LEVELS):
            brackets = brackets.replace(b"[]", b"")
        for run in BRACKET_RUN.findall(brackets):
            depth += len(run) if run.startswith(b"[") else -len(run)
            if depth > DEEPEST_LEVEL:
                raise InputError(
                    f"its lists and objects are more than {DEEPEST_LEVEL:,} levels deep; no log's "
                    "are"
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
    store = _filled(sample.store, sample.attachments)
    scores = _filled_scores(sample)
    if not sample.store or _refers(sample):
        sample = resolve_sample_attachments(sample, "core")
    return sample.model_copy(update={"store": store, "scores": scores})


def _refers(sample: EvalSample) -> bool:
    texts = [message.text for message in sample.messages]
    if isinstance(sample.input, str):
        texts.append(sample.input)
    else:
        texts += [message.text for message in sample.input]
    return any(text.startswith(REFERENCE) for text in texts)


SCORE_TEXT_FIELDS = ("value", "answer", "explanation", "metadata")
"""Fields of a score that may hold references."""


def _filled_scores(sample: EvalSample) -> dict[str, Score] | None:
    if not sample.scores:
        return sample.scores
    filled_scores = {}
    for name, score in sample.scores.items():
        fields = {
            field: _filled(getattr(score, field), sample.attachments) for field in SCORE_TEXT_FIELDS
        }
        filled_scores[name] = score.model_copy(update=fields)
    return filled_scores


def _filled(value: Any, attachments: Mapping[str, str]) -> Any:
    if isinstance(value, str) and value.startswith(REFERENCE):
        return attachments.get(value.removeprefix(REFERENCE), value)
    if isinstance(value, Mapping):
        return {key: _filled(inner, attachments) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_filled(inner, attachments) for inner in value]
    return value
