"""Resuming in a folder: one job at a time, and a call that was answered is not asked again.

A wave keeps a file in its folder that says who runs. It is made so that one of several can make it:
O_EXCL on a disk, a conditional write in a store. A killed process leaves it there; the next one on
the same machine sees that and takes it, also where another program has the killed one's number by
then.

Inspect asks a sample anew, with all its calls, where its run was killed or one of its calls failed:
in a second start, and at once where a run tries failed samples again. Here such a sample takes the
replies that it had.
"""

import hashlib
import json
import os
import socket
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput
from inspect_ai.tool import ToolChoice, ToolInfo

from selfprobe.errors import InputError, one_line
from selfprobe.errors.inspect_private import sample_active
from selfprobe.errors.output import refusals
from selfprobe.logs import (
    HOW_CALLED,
    Identity,
    identity_of,
    is_whole,
    logs_in,
    readable_logs,
    restore,
    short_task,
    summaries,
    task_of,
    transcripts,
)

CLAIM_FILE = "running.json"
"""The file: host, process, when that started, and since when it runs here."""
CLAIM_SETTLING_SECONDS = 0.1
"""Seconds after which a claim in place of a dead one is looked at again: two may have seen it die.
"""

PROCESS_START_SLACK_SECONDS = 2.0
"""Seconds by which two readings of a process's start may differ: the time of the boot is rounded.
"""


@contextmanager
def claimed(log_dir: str) -> Iterator[None]:
    """A block in which no other process runs a wave into this folder, which is made.

    Args:
        log_dir: Local or any fsspec path.

    Raises:
        InputError: It cannot be written, or another process runs in it.
    """
    try:
        file_system, inner_path = url_to_fs(log_dir)
        file_system.makedirs(inner_path, exist_ok=True)
        is_local = isinstance(file_system, LocalFileSystem)
        if is_local and not os.access(inner_path, os.W_OK):
            raise InputError(f"cannot write logs into {log_dir}: it is read-only for this user")
        claim_file = f"{inner_path.rstrip('/')}/{CLAIM_FILE}"
        claim = _write_claim(file_system, claim_file, log_dir)
    except InputError:
        raise
    except refusals() as error:
        raise InputError(f"cannot write logs into {log_dir}: {one_line(error)}") from None
    try:
        yield
    finally:
        # a folder that is gone, or a store that is away, is said where it is written
        with suppress(*refusals()):
            if file_system.cat_file(claim_file) == claim:
                file_system.rm_file(claim_file)


def _write_claim(file_system: Any, claim_file: str, log_dir: str) -> bytes:
    """Content of the file, written by this process."""
    claim_fields = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started": _process_start(psutil.Process()),
        "since": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
    }
    claim = json.dumps(claim_fields).encode()
    try:
        _create(file_system, claim_file, claim)
        return claim
    except FileExistsError:
        holder = _holder_text(file_system, claim_file, log_dir)
        if holder:
            raise InputError(holder) from None
    with suppress(FileNotFoundError):
        file_system.rm_file(claim_file)
    try:
        _create(file_system, claim_file, claim)
        time.sleep(CLAIM_SETTLING_SECONDS)
        is_ours = file_system.cat_file(claim_file) == claim
    except FileExistsError:  # another one saw the same
        is_ours = False
    if not is_ours:
        holder = _holder_text(file_system, claim_file, log_dir)
        raise InputError(holder or f"{log_dir} is in use: start again")
    return claim


def _create(file_system: Any, file: str, content: bytes) -> None:
    """Write a file that must not exist yet; FileExistsError if it does."""
    if not isinstance(file_system, LocalFileSystem):
        file_system.pipe_file(file, content, mode="create")
        return
    opened_file = Path(file).open("xb")  # noqa: SIM115 -- what cannot be written is removed when it is closed
    try:
        with opened_file:
            opened_file.write(content)
    except OSError:  # a full disk: an empty claim would hold the folder for ever
        Path(file).unlink()
        raise


def _holder_text(file_system: Any, claim_file: str, log_dir: str) -> str:
    """Description of the process that runs in the folder, for a message; "" if that process is
    gone.
    """
    file_system.invalidate_cache()
    try:
        claim_fields = json.loads(file_system.cat_file(claim_file))
        host = str(claim_fields["host"])
        pid = int(claim_fields["pid"])
        claim_time = str(claim_fields["since"])
        process_start = float(claim_fields["started"])
    except FileNotFoundError:
        return ""
    except (ValueError, TypeError, KeyError):
        host = "another machine"
        pid = 0
        claim_time = "some time"
        process_start = 0.0
    is_here = host == socket.gethostname()
    if is_here and not _is_alive(pid, process_start):
        return ""
    possible_state = "another program" if is_here else "gone"
    return (
        f"{log_dir} is in use: process {pid} on {host} has been running in it since {claim_time}. "
        f"Wait for it, or give another --log-dir; if that process is {possible_state}, delete "
        f"{CLAIM_FILE} there and the same command goes on"
    )


def _is_alive(pid: int, process_start: float) -> bool:
    """True if the process of a claim runs on this machine; the one that asks has its number only
    since it began.

    Args:
        pid: Number of the process.
        process_start: See `_process_start`.
    """
    try:
        process = psutil.Process(pid)
        if pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(_process_start(process) - process_start) <= PROCESS_START_SLACK_SECONDS
    except psutil.AccessDenied:
        return True
    except psutil.Error:
        return False


def _process_start(process: psutil.Process) -> float:
    """Start of a process, in seconds after the machine's: no change of the clock moves that."""
    boot_time = psutil.boot_time()  # before: older versions of psutil remember what it says
    return round(float(process.create_time()) - float(boot_time), 2)


_CallKey = tuple[str, ...]
"""Task, model, sample, epoch, and a hash of what was asked with which settings."""

_unused_replies: dict[_CallKey, list[ModelOutput]] = defaultdict(list)
"""Replies of samples that did not end well, which no call has taken; of equal calls the first one
is first.
"""


@dataclass(frozen=True)
class AskedCall:
    """What a model is asked."""

    model: str
    """Name of the model in Inspect."""
    messages: Sequence[ChatMessage]
    tools: Sequence[ToolInfo]
    tool_choice: ToolChoice
    config: GenerateConfig

    @property
    def digest(self) -> str:
        """Hash of everything but the model; settings that say how a call is sent do not count."""
        messages = [
            message.model_dump(mode="json", exclude={"id"}, exclude_none=True)
            for message in self.messages
        ]
        tools = [tool.model_dump(mode="json", exclude_none=True) for tool in self.tools]
        config = self.config.model_dump(mode="json", exclude=HOW_CALLED, exclude_none=True)
        tool_choice = self.tool_choice
        choice_name = tool_choice if isinstance(tool_choice, str) else tool_choice.name
        call_text = json.dumps([[*messages, *tools, config], choice_name], sort_keys=True)
        return hashlib.sha256(call_text.encode()).hexdigest()


@dataclass
class _Attempt:
    """One attempt at a sample."""

    id: str
    """Inspect's id of the attempt; the sample has a uuid that all of its attempts share."""
    replies: list[tuple[AskedCall, ModelOutput]] = field(default_factory=list)


_attempts: dict[str, _Attempt] | None = None
"""Sample's uuid → its last attempt, of samples of this wave without a score; None outside of a
wave.
"""


@dataclass(frozen=True)
class WaveRun:
    """A run of a wave, before it is asked."""

    identity: Identity
    version: str
    """Version of its task, which ends with the hash of its data."""
    items: frozenset[str]


@contextmanager
def replies_kept(log_dir: str, wave_runs: Sequence[WaveRun]) -> Iterator[None]:
    """A block in which a sample that is asked anew takes the replies that it had; killed runs are
    restored first.

    Where the task or the data changed since, samples take the replies to the prompts that are as
    they were.

    Args:
        log_dir: Folder of the logs of one wave, or of one share of it.
        wave_runs: The runs of the wave.

    Raises:
        InputError: A log cannot be read.
    """
    global _attempts
    restore(log_dir)
    headers = readable_logs(logs_in(log_dir)).headers  # an empty folder of a store is none
    run_of_log = {
        header.location: (identity_of(header), str(header.eval.task_version)) for header in headers
    }
    wave_identities = {(run.identity, run.version) for run in wave_runs}
    whole_runs = {run_of_log[header.location] for header in headers if is_whole(header)}
    pending_items = defaultdict[Identity, set[str]](set)
    for run in wave_runs:
        if (run.identity, run.version) not in whole_runs:
            pending_items[replace(run.identity, data="")] |= run.items

    message_ids = set[str]()
    for header in headers:
        identity, _ = run_of_log[header.location]
        items = set[str]()
        if run_of_log[header.location] not in wave_identities:  # an earlier task or data set
            items = pending_items.get(replace(identity, data=""), set())
        if items or not is_whole(header):
            _take_up(header, items, message_ids)
    _attempts = {}
    try:
        yield
    finally:
        _attempts = None
        _unused_replies.clear()


def _take_up(header: EvalLog, items: Collection[str], message_ids: set[str]) -> None:
    """Note the answered calls of samples of a log: of those that ended in an error or were cut off,
    and of these items.

    Args:
        header: Header of the log.
        items: Items of which every sample counts.
        message_ids: Ids of the replies that are noted already: a later log can repeat those of an
            earlier one.
    """
    places = [
        (sample.id, sample.epoch)
        for sample in summaries(header.location)
        if sample.error or str(sample.id) in items
    ]
    for sample in transcripts(header.location, places=places):
        for event in answered_events(sample):
            message_id = str(event.output.message.id)
            if message_id in message_ids:
                continue
            message_ids.add(message_id)
            call = AskedCall(event.model, event.input, event.tools, event.tool_choice, event.config)
            key = _key(task_of(header), sample.id, sample.epoch, call)
            _unused_replies[key].append(event.output)


def answered_events(sample: EvalSample) -> Iterator[ModelEvent]:
    """The calls of a sample that were answered."""
    for event in sample.events:
        if not isinstance(event, ModelEvent):
            continue
        if not event.pending and event.error is None and event.output.choices:
            yield event


def _key(task: str, sample_id: int | str | None, epoch: int, call: AskedCall) -> _CallKey:
    return task, call.model, str(sample_id), str(epoch), call.digest


def earlier_reply(asked_call: AskedCall) -> ModelOutput | None:
    """The reply that the sample under way had to this call when it was asked before; each is given
    once.
    """
    active = sample_active()
    if _attempts is None or active is None:
        return None
    task = short_task(active.task)
    last_attempt = _attempts.get(active.sample_uuid)
    if last_attempt is not None and last_attempt.id != active.id:  # it failed
        for call, reply in last_attempt.replies:
            _unused_replies[_key(task, active.sample.id, active.epoch, call)].append(reply)
        del _attempts[active.sample_uuid]
    if not _unused_replies:  # no hash of the call is needed
        return None
    unused_replies = _unused_replies.get(_key(task, active.sample.id, active.epoch, asked_call))
    if not unused_replies:
        return None
    reply = unused_replies.pop(0)
    keep_reply(asked_call, reply)
    return reply.model_copy(deep=True)


def keep_reply(asked_call: AskedCall, reply: ModelOutput) -> None:
    """Note the reply to a call of the sample under way, for a further attempt at the sample."""
    active = sample_active()
    if _attempts is not None and active is not None:
        attempt = _attempts.setdefault(active.sample_uuid, _Attempt(active.id))
        attempt.replies.append((asked_call, reply))


def forget_replies(sample_uuid: str) -> None:
    """Let the replies of a sample go that has its scores."""
    if _attempts is not None:
        _attempts.pop(sample_uuid, None)
