"""Inspect's logs: found, read, refused and named here, for everything that reads them.

A log that cannot be read stops nobody: it is set aside with its name and the reason.
"""

import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import ijson
import zstandard
from fsspec.core import url_to_fs
from inspect_ai.log import (
    EvalLog,
    EvalSample,
    EvalSampleSummary,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    read_eval_log_samples_by_id,
    resolve_sample_attachments,
)
from inspect_ai.scorer import Score

from selfprobe.arguments import locate
from selfprobe.errors import InputError, one_line
from selfprobe.header import task_of
from selfprobe.output import refusals
from selfprobe.packed import refuse_bomb
from selfprobe.references import REFERENCE, whole

T = TypeVar("T")

UNREADABLE = (
    *(ValueError, OSError, EOFError, LookupError, TypeError, AttributeError, RecursionError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error, zstandard.ZstdError, ijson.JSONError),
)
"""What reading a log that somebody cut, edited or made by other means ends in."""

_AT_ONCE = 16
"""Samples of a log that are in memory together while it is read one by one."""
_UNREAD = {"messages", "output", "store", "scores"}

LOSING = "0.1.0"
"""The version of selfprobe whose resumed runs could replay a reference in the place of a reply."""


@dataclass(frozen=True)
class Found:
    """What lies under some paths."""

    headers: list[EvalLog]
    """Of the logs that can be read, newest first."""
    ignored: dict[str, str]
    """Log → why it is set aside."""

    def without(self) -> str:
        """What was set aside, for a message that says that nothing was found: the first three, or ""."""
        return first_of(self.ignored)


def first_of(ignored: Mapping[str, str]) -> str:
    """The end of a message that nothing was found: the first three logs that were set aside and why, or ""."""
    return "".join(f"; {log}: {why}" for log, why in list(ignored.items())[:3])


def none_found(paths: Iterable[str], ignored: Mapping[str, str]) -> str:
    """That no log of the suite is there, and what is."""
    count = len(ignored)
    others = f"found {count} other log{'s' * (count != 1)}"
    return f"no selfprobe log in {', '.join(paths)}; {others}{first_of(ignored)}"


CANNOT = "cannot be read"
"""How the reason of a damaged log begins."""


def found(paths: Iterable[str], tasks: Collection[str] | None = None) -> Found:
    """The logs in these files and folders, local or any fsspec address.

    Args:
        paths: As the user gave them; a folder is looked through with all below it.
        tasks: Names of the tasks that are wanted; by default logs of any task, other suites' too.

    Raises:
        InputError: A path does not exist.
    """
    headers, ignored = list[EvalLog](), dict[str, str]()
    for file in dict.fromkeys(file for path in reversed(list(paths)) for file in _files(path)):  # each newest first
        try:
            refuse_bomb(file)
            header = read_eval_log(file, header_only=True)
        except UNREADABLE as error:
            ignored[file] = f"{CANNOT}: {unreadable(error)}"
            continue
        if tasks is not None and task_of(header) not in tasks:
            ignored[header.location] = f"a log of {task_of(header)}, not of {' or '.join(tasks)}"
        else:
            headers.append(header)
    headers.sort(key=lambda log: (str(log.eval.created), log.stats.completed_at), reverse=True)
    return Found(headers, ignored)


def _files(path: str) -> list[str]:
    place = locate(path)
    try:
        system, inside = url_to_fs(place)
        there = system.exists(inside)
    except refusals() as error:  # no such protocol, no credentials, no network
        raise InputError(f"cannot read {path}: {one_line(error)}") from None
    if not there:
        raise InputError(f"there is no log file or folder {path} (looked at {place})")
    if system.isdir(inside):
        return [info.name for info in list_eval_logs(place)]
    if not place.endswith((".eval", ".json")):
        raise InputError(f"{path} is no log: expected an Inspect log (.eval or .json), or a folder with logs")
    return [place]


def unreadable(error: BaseException) -> str:
    """Why a log cannot be read, for people who do not know its format."""
    if isinstance(error, zipfile.BadZipFile) or "EOCD" in str(error):
        return f"it is truncated, or no Inspect log ({one_line(error)})"
    return one_line(error)


def samples(log: str) -> list[EvalSample]:
    """All samples of a log, with the texts that Inspect keeps as references put in their places.

    Raises:
        InputError: The log cannot be read; names it.
    """
    try:
        refuse_bomb(log, samples=True)
        return [whole(sample) for sample in read_eval_log(log).samples or []]
    except UNREADABLE as error:
        raise InputError(f"{log} cannot be read: {unreadable(error)}; run it again, or leave it out") from None


def transcripts(log: str, *, epochs: int | None = None) -> Iterator[EvalSample]:
    """The samples of a log one after another with their events and all texts, but without messages, store and scores.

    A few are in memory at a time; of a log in JSON all are.

    Args:
        log: The log's file.
        epochs: The epochs from the first that are wanted; None is all.

    Raises:
        InputError: The log cannot be read; names it.
    """
    wanted = [(s.id, s.epoch) for s in summaries(log) if epochs is None or s.epoch <= epochs]
    try:
        refuse_bomb(log, samples=True)
        if log.endswith(".json"):
            given = {(sample.id, sample.epoch): sample for sample in read_eval_log(log).samples or []}
            yield from (resolve_sample_attachments(given[key], "full") for key in wanted)
            return
        # Where one of several reads fails, asyncio prints what became of the others; a disk gains nothing by several.
        several = 8 if "://" in log and not log.startswith("file:") else 1
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            yield from read_eval_log_samples_by_id(
                log, part, resolve_attachments="full", exclude_fields=_UNREAD, concurrency=several
            )
    except UNREADABLE as error:
        raise InputError(f"{log} cannot be read: {unreadable(error)}; run it again, or leave it out") from None


def summaries(log: str) -> list[EvalSampleSummary]:
    """The sample summaries of a log: scores and metadata without transcripts; a tenth of the time of `samples`.

    Raises:
        InputError: The log cannot be read; names it.
    """
    try:
        return read_eval_log_sample_summaries(log)
    except UNREADABLE as error:
        raise InputError(f"{log} cannot be read: {unreadable(error)}; run it again, or leave it out") from None


def asked(sample: EvalSampleSummary) -> str:
    """What a sample asked: its input, of a conversation the last message."""
    given = sample.input
    return given if isinstance(given, str) else given[-1].text if given else ""


def item_count(header: EvalLog) -> int:
    """Samples that a run was to have, each epoch's the same."""
    dataset = header.eval.dataset
    return len(dataset.sample_ids) if dataset.sample_ids is not None else dataset.samples or 0


def values_of(score: Score) -> dict[str, Any]:
    """What a score says, by key ("" where it has no keys), without what is unscored (NaN)."""
    value = score.value
    given = value if isinstance(value, Mapping) else dict(enumerate(value)) if isinstance(value, list) else {"": value}
    return {str(key): one for key, one in given.items() if one is not None and one == one}


def cause(log: str, sample: EvalSampleSummary) -> str:
    """The error that a sample ended with; of a RetryError, which names none, the one that was retried."""
    error = read_eval_log_sample(log, sample.id, sample.epoch).error
    told = without_request(error.message if error else sample.error or "")
    raised = re.findall(r"^[\w.]+(?:Error|Exception|Timeout)\w*: .+$", error.traceback if error else "", re.MULTILINE)
    return str(raised[0]) if told.startswith("RetryError") and raised else told.rpartition("\n")[2]


CUT = "cut_at_"
"""What such metrics are called, before the argument."""
UNSCORED = "unscored_"
"""The same of those that count reasons, before the reason."""


def counted(header: EvalLog) -> float | None:
    """How many items a run's own metrics count, None where they count none of ours.

    An item can be unscored though each of its parts has a value, and count though it has no label to be scored by.
    """
    found = [value for name, value in metrics_in(header) if name == "n"]
    return sum(found) if found else None


def unscored_in(header: EvalLog) -> str:
    """Why most of a run is unscored, by its own metrics: "" where they do not say."""
    reasons = {name: rate for name, rate in metrics_in(header) if name.startswith(UNSCORED) and rate > 0}
    return max(reasons, key=lambda name: reasons[name], default="").removeprefix(UNSCORED)


def cut_in(header: EvalLog) -> dict[str, float]:
    """Task argument that limits replies → share of them that ended at its limit, where those are most of a run's."""
    return {name.removeprefix(CUT): value for name, value in metrics_in(header) if name.startswith(CUT)}


def metrics_in(header: EvalLog) -> Iterator[tuple[str, float]]:
    """The metrics of all scores of a run, by name."""
    for score in header.results.scores if header.results else []:
        for name, metric in score.metrics.items():
            yield name, float(metric.value)


def without_request(error: str) -> str:
    """An error's message; of Inspect's ModelGenerateError, which begins with the request, what the vendor said."""
    vendor = re.fullmatch(r"ModelGenerateError\((['\"]).*\\n\\n(.*)\1\)", error.strip(), re.DOTALL)
    return vendor[2].replace("\\'", "'") if vendor else error.strip()


def lost_replies(header: EvalLog) -> str:
    """Why a log of version 0.1.0 cannot be used, or "": a killed and resumed run replayed references as replies.

    Later versions resolve references, and refuse a reply that is one (`solvers.record.Reply`).
    """
    if (header.eval.metadata or {}).get("selfprobe") != LOSING:
        return ""
    for sample in samples(header.location):
        for name, replies in sample.store.items():
            if name.endswith((":acts", ":answers", ":grades")) and any(_lost(reply) for reply in replies.values()):
                return (
                    f"sample {sample.id!r} holds a reference ({REFERENCE}…) in the place of a reply, since its run was "
                    "killed and resumed with selfprobe 0.1.0; run it again"
                )
    return ""


def _lost(reply: Any) -> bool:
    return isinstance(reply, Mapping) and str(reply.get("text", "")).startswith(REFERENCE)


def apart(read: Callable[..., T], *given: Any) -> T:
    """Read in a thread of its own; for what is read while a task is built or runs.

    In a running event loop Inspect's readers re-enter it through nest_asyncio, after which anyio's cancelled scopes
    spin for ever: a second `eval_set` in the process never ended.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(read, *given).result()
