"""Resuming in a folder: one job at a time, and the calls that a killed run had finished are not asked again.

A wave keeps a file in its folder that says who runs. It is made so that one of several can make it: O_EXCL on a disk, a
conditional write in a store. A killed process leaves it there; the next one on the same machine sees that and takes it,
also where another program has the killed one's number by then.

Inspect restores the samples that were finished. For those under way its buffer holds each finished call with its reply;
all of them would be asked again, which with many connections is most of a short run.
"""

import hashlib
import json
import os
import socket
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput

from selfprobe.errors import InputError, one_line
from selfprobe.errors.inspect_private import sample_active
from selfprobe.errors.output import refusals
from selfprobe.logs import HOW_CALLED, logs_in, readable_logs, restore, short_task, summaries, task_of, transcripts

NAME = "running.json"
"""The file: host, process, when that started, and since when it runs here."""

_SLACK = 2.0
"""Seconds by which two readings of a process's start may differ: the time of the boot is rounded."""


@contextmanager
def claimed(log_dir: str) -> Iterator[None]:
    """A block in which no other process runs a wave into this folder, which is made.

    Args:
        log_dir: Local or any fsspec path.

    Raises:
        InputError: It cannot be written, or another process runs in it.
    """
    try:
        system, inside = url_to_fs(log_dir)
        system.makedirs(inside, exist_ok=True)
        if isinstance(system, LocalFileSystem) and not os.access(inside, os.W_OK):
            raise InputError(f"cannot write logs into {log_dir}: it is read-only for this user")
        claim = _taken(system, f"{inside.rstrip('/')}/{NAME}", log_dir)
    except InputError:
        raise
    except refusals() as error:
        raise InputError(f"cannot write logs into {log_dir}: {one_line(error)}") from None
    try:
        yield
    finally:
        with suppress(*refusals()):  # a folder that is gone, or a store that is away, is said where it is written
            file = f"{inside.rstrip('/')}/{NAME}"
            if system.cat_file(file) == claim:
                system.rm_file(file)


def _taken(system: Any, file: str, log_dir: str) -> bytes:
    """Content of the file, written by this process."""
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    process = {"host": socket.gethostname(), "pid": os.getpid(), "started": _start(psutil.Process())}
    claim = json.dumps(process | {"since": now}).encode()
    try:
        _create(system, file, claim)
    except FileExistsError:
        if why := _held(system, file, log_dir):
            raise InputError(why) from None
        with suppress(FileNotFoundError):
            system.rm_file(file)
        try:
            _create(system, file, claim)
        except FileExistsError:  # another one saw the same
            raise InputError(_held(system, file, log_dir) or f"{log_dir} is in use: start again") from None
    return claim


def _create(system: Any, file: str, content: bytes) -> None:
    """Write a file that must not exist yet; FileExistsError if it does."""
    if isinstance(system, LocalFileSystem):
        with Path(file).open("xb") as out:
            out.write(content)
    else:
        system.pipe_file(file, content, mode="create")


def _held(system: Any, file: str, log_dir: str) -> str:
    """Description of the process that runs in the folder, for a message; "" if that process is gone."""
    system.invalidate_cache()
    try:
        holder = json.loads(system.cat_file(file))
        host, pid, since = str(holder["host"]), int(holder["pid"]), str(holder["since"])
        start = float(holder["started"]) if "started" in holder else None
    except FileNotFoundError:
        return ""
    except (ValueError, TypeError, KeyError):
        host, pid, since, start = "another machine", 0, "some time", None
    here = host == socket.gethostname()
    if here and not _alive(pid, start):
        return ""
    return (
        f"{log_dir} is in use: process {pid} on {host} has been running in it since {since}. Wait for it, or give "
        f"another --log-dir; if that process is {'another program' if here else 'gone'}, delete {NAME} there and the "
        "same command goes on"
    )


def _alive(pid: int, start: float | None) -> bool:
    """True if the process of a claim runs on this machine; the one that asks has its number only since it began.

    Args:
        pid: Number of the process.
        start: See `_start`; None in a claim of an earlier version, which any process of that number holds.
    """
    try:
        process = psutil.Process(pid)
        if pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return start is None or abs(_start(process) - start) <= _SLACK
    except psutil.AccessDenied:
        return True
    except psutil.Error:
        return False


def _start(process: psutil.Process) -> float:
    """Start of a process, in seconds after the machine's: no change of the clock moves that."""
    boot = psutil.boot_time()  # before: older versions of psutil remember what it says
    return round(float(process.create_time()) - float(boot), 2)


CUT = "CancelledError"
"""The error of a sample that was under way when its run ended."""

_Call = tuple[str, ...]
"""Task, model, sample, epoch, and a hash of what was asked with which settings."""

_left: dict[_Call, list[ModelOutput]] = defaultdict(list)
"""Replies that no call has taken; of equal calls the first one is first."""


@contextmanager
def taken_up(log_dir: str) -> Iterator[None]:
    """A block in which calls are answered from what unfinished runs of a folder hold; those are restored first.

    Args:
        log_dir: Folder of the logs of one wave, or of one share of it.

    Raises:
        InputError: A log cannot be read.
    """
    restore(log_dir)
    seen = set[str]()
    for log in readable_logs(logs_in(log_dir)).headers:  # an empty folder of a store is none
        if log.status != "success" and any((s.error or "").startswith(CUT) for s in summaries(log.location)):
            _keep(log, seen)
    try:
        yield
    finally:
        _left.clear()


def _keep(log: EvalLog, seen: set[str]) -> None:
    """Note the finished calls of unfinished samples. A later log can repeat those of an earlier one (`seen`)."""
    for sample in transcripts(log.location):
        if sample.error is None or not sample.error.message.startswith(CUT):
            continue
        for event in _answered(sample):
            message = str(event.output.message.id)
            if message not in seen:
                seen.add(message)
                asked = _hash(event.input, event.config)
                _left[task_of(log), event.model, str(sample.id), str(sample.epoch), asked].append(event.output)


def _answered(sample: EvalSample) -> Iterator[ModelEvent]:
    for event in sample.events:
        if isinstance(event, ModelEvent) and not event.pending and event.error is None and event.output.choices:
            yield event


def take(model: str, messages: Sequence[ChatMessage], config: GenerateConfig) -> ModelOutput | None:
    """The reply that a killed run had to this call of the sample under way; each is taken once.

    Args:
        model: Name of the model in Inspect.
        messages: Messages of the call.
        config: Settings of the call.
    """
    active = sample_active() if _left else None
    if active is None:
        return None
    task, sample = short_task(active.task), active.sample.id
    replies = _left.get((task, model, str(sample), str(active.epoch), _hash(messages, config)))
    return replies.pop(0) if replies else None


def _hash(messages: Sequence[ChatMessage], config: GenerateConfig) -> str:
    asked = [message.model_dump(mode="json", exclude={"id"}, exclude_none=True) for message in messages]
    settings = config.model_dump(mode="json", exclude=HOW_CALLED, exclude_none=True)
    return hashlib.sha256(json.dumps([asked, settings], sort_keys=True).encode()).hexdigest()
