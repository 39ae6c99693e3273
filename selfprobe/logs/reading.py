"""Reading what a log holds: whole samples, summaries, transcripts, the error of a sample. What
cannot be read is an InputError that names the log.
"""

import json
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import ijson
import zstandard
from inspect_ai.log import (
    EvalLog,
    EvalSample,
    EvalSampleSummary,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    read_eval_log_samples_by_id,
    resolve_sample_attachments,
)

from selfprobe.errors import InputError, one_line
from selfprobe.logs.files import read_header
from selfprobe.logs.invalidated import InvalidatedSamples, invalidated_samples, with_valid_results
from selfprobe.logs.packed import refuse_bomb, resolved, sample_texts
from selfprobe.text.safe import masked

T = TypeVar("T")
Sample = TypeVar("Sample", EvalSample, EvalSampleSummary)
UNREADABLE = (
    *(
        ValueError,
        OSError,
        EOFError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        NotImplementedError,
    ),
    *(zipfile.BadZipFile, zlib.error, zstandard.ZstdError, ijson.JSONError),
)
"""Errors that reading a log may raise which somebody cut, edited or made by other means."""
SAMPLES_IN_MEMORY = 16
"""Number of samples of a log that are in memory together while it is read one by one."""
NO_TRANSCRIPT_FIELDS = {"messages", "output", "store", "scores"}
"""Parts of a sample that `transcripts` leaves out."""
TRANSCRIPT_FIELDS = {"messages", "output", "events", "events_data", "timelines"}
"""Parts of a sample that `samples` leaves out."""
REMOTE_READS = 8
"""Number of samples that are read at the same time from a store elsewhere."""
RAISED_ERROR = re.compile(r"^[\w.]+(?:Error|Exception|Timeout)\w*: .+$", re.MULTILINE)
"""A line of a traceback that names an error."""


def header_of(log: str) -> EvalLog:
    """A log without its samples.

    Raises:
        InputError: The log cannot be read; names it.
    """

    return read_or_refuse(log, lambda: with_valid_results(read_header(log)))


def read_or_refuse(log: str, read_log: Callable[[], T]) -> T:
    try:
        return read_log()
    except UNREADABLE as error:
        raise InputError(_cannot(log, error)) from None


def _cannot(log: str, error: BaseException) -> str:
    return f"{log} cannot be read: {unreadable_reason(error)}; run it again, or leave it out"


def unreadable_reason(error: BaseException) -> str:
    """Why a log cannot be read, for people who do not know its format."""
    if isinstance(error, zipfile.BadZipFile) or "EOCD" in str(error):
        return f"it is truncated, or no Inspect log ({one_line(error)})"
    if isinstance(error, KeyError):
        return f"a part is missing, {one_line(error)}"
    return one_line(error if isinstance(error, InputError) else error.__cause__ or error)


def samples(log: str) -> list[EvalSample]:
    """All valid samples of a log by epoch and id, with the texts that Inspect keeps as references
    put in their places.

    They have no messages, output and events (`transcripts` has events), to check which takes most
    of the time. A log in JSON has all, and so has a sample with an empty store, which a killed run
    leaves: its Record is in its events.

    Raises:
        InputError: The log cannot be read; names it.
    """

    def read() -> list[EvalSample]:
        if log.endswith(".eval"):
            read_samples = [resolved(_without_transcript(text)) for text in sample_texts(log)]
            read_samples.sort(key=_epoch_and_id)
        else:
            refuse_bomb(log, samples=True)
            read_samples = [resolved(sample) for sample in read_eval_log(log).samples or []]
        return valid_samples(log, read_samples)

    return read_or_refuse(log, read)


def valid_samples(log: str, log_samples: Sequence[Sample]) -> list[Sample]:
    """The samples of a log without invalidated ones.

    Raises:
        InputError: The log holds two of one id and epoch.
    """
    ids_by_place = defaultdict[tuple[str, int], list[str]](list)
    for sample in log_samples:
        ids_by_place[str(sample.id), sample.epoch].append(repr(sample.id))
    repeated_ids = {place: ids for place, ids in ids_by_place.items() if len(ids) > 1}
    for (_, epoch), ids in repeated_ids.items():
        further_count = len(repeated_ids) - 1
        further_text = f", and {further_count} more" if further_count else ""
        raise InputError(
            f"samples have the same id and epoch: {' and '.join(ids)} of epoch {epoch}"
            f"{further_text}"
        )
    invalidated = invalidated_samples(log).provenance
    return [sample for sample in log_samples if (sample.id, sample.epoch) not in invalidated]


def _without_transcript(text: bytes) -> EvalSample:
    sample = json.loads(text)
    if sample.get("store"):
        sample = {name: value for name, value in sample.items() if name not in TRANSCRIPT_FIELDS}
    return EvalSample.model_validate(sample)


def whole_sample(log: str, item: int | str, epoch: int) -> EvalSample:
    """One sample of a log with all its texts.

    Raises:
        InputError: The log cannot be read; names it.
    """
    return read_or_refuse(
        log, lambda: read_eval_log_sample(log, item, epoch, resolve_attachments="full")
    )


def transcripts(
    log: str, *, epochs: int | None = None, places: Collection[tuple[int | str, int]] | None = None
) -> Iterator[EvalSample]:
    """The valid samples of a log one after another with events and all texts, without messages,
    store and scores.

    A few are in memory at a time; of a log in JSON all are.

    Args:
        log: The log's file.
        epochs: The epochs from the first that are wanted; None is all.
        places: Id and epoch of the samples that are wanted; None is all.

    Raises:
        InputError: The log cannot be read; names it.
    """
    wanted_places = list(places or [])
    if places is None:
        for sample in summaries(log):
            if epochs is None or sample.epoch <= epochs:
                wanted_places.append((sample.id, sample.epoch))
    try:
        refuse_bomb(log, samples=True)
        if log.endswith(".json"):
            log_samples = read_eval_log(log).samples or []
            sample_of_place = {(sample.id, sample.epoch): sample for sample in log_samples}
            for place in wanted_places:
                yield resolve_sample_attachments(sample_of_place[place], "full")
            return
        # Where one of several reads fails, asyncio prints what became of the others; a disk gains
        # nothing by several.
        is_remote = "://" in log and not log.startswith("file:")
        for start in range(0, len(wanted_places), SAMPLES_IN_MEMORY):
            yield from read_eval_log_samples_by_id(
                log,
                wanted_places[start : start + SAMPLES_IN_MEMORY],
                resolve_attachments="full",
                exclude_fields=NO_TRANSCRIPT_FIELDS,
                concurrency=REMOTE_READS if is_remote else 1,
            )
    except UNREADABLE as error:
        raise InputError(_cannot(log, error)) from None


def summaries(log: str, *, valid: bool = True) -> list[EvalSampleSummary]:
    """The sample summaries of a log: scores and metadata without transcripts; a tenth of the time
    of `samples`.

    A log holds them in the order in which samples finished; here they are in the order of
    `samples`: by epoch and id.

    Args:
        log: The log's file.
        valid: Whether invalidated samples are left out.

    Raises:
        InputError: The log cannot be read, or holds two samples of one id and epoch; names it.
    """

    def read() -> list[EvalSampleSummary]:
        all_summaries = sorted(read_eval_log_sample_summaries(log), key=_epoch_and_id)
        return valid_samples(log, all_summaries) if valid else all_summaries

    return read_or_refuse(log, read)


def token_count(samples: Iterable[EvalSampleSummary]) -> int:
    """Tokens of all calls of these samples. A resumed run's own statistics have those of its last
    start alone.
    """
    return sum(usage.total_tokens for sample in samples for usage in sample.model_usage.values())


def _epoch_and_id(sample: EvalSample | EvalSampleSummary) -> tuple[int, str]:
    """Epoch and id, a number with leading zeros as Inspect sorts samples."""
    return sample.epoch, sample.id if isinstance(sample.id, str) else str(sample.id).zfill(20)


def question_of(sample: EvalSampleSummary) -> str:
    """The question of a sample: its input, or the last message of a conversation."""
    sample_input = sample.input
    if isinstance(sample_input, str):
        return sample_input
    return sample_input[-1].text if sample_input else ""


def cause(log: str, sample: EvalSampleSummary) -> str:
    """The error that a sample ended with; of a RetryError, which names none, the one that was
    retried.
    """
    error = read_eval_log_sample(log, sample.id, sample.epoch).error
    message = masked(without_request(error.message if error else sample.error or ""))
    if message.startswith("RetryError"):
        traceback = masked(error.traceback if error else "")
        raised_errors = RAISED_ERROR.findall(traceback)
        if raised_errors:
            return str(raised_errors[0])
    return message.rpartition("\n")[2]


def without_request(error: str) -> str:
    """An error's message; of Inspect's ModelGenerateError, which begins with the request, what the
    vendor said.
    """
    error_text = error.strip()
    vendor_match = re.fullmatch(
        r"ModelGenerateError\((['\"]).*\\n\\n(.*)\1\)", error_text, re.DOTALL
    )
    return vendor_match[2].replace("\\'", "'") if vendor_match else error_text


def invalidated_in(header: EvalLog) -> InvalidatedSamples:
    """The invalidated samples of a log; none where its samples cannot be read."""
    if not header.invalidated:
        return InvalidatedSamples()
    try:
        return invalidated_samples(header.location)
    except UNREADABLE:
        return InvalidatedSamples()


def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """The result of a call in a thread of its own; for reading while a task is built or runs.

    In a running event loop Inspect's readers re-enter it through nest_asyncio, after which anyio's
    cancelled scopes spin for ever: a second `eval_set` in the process never ended.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(function, *arguments).result()
