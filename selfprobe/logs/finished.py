"""Calls that a killed run had finished: the same command takes their replies, and asks again what was in flight.

Inspect restores the samples that were finished. Of those under way its buffer holds each finished call with its reply;
all of them would be asked again, which with many connections is most of a short run.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput

from selfprobe.logs.header import short_task, task_of
from selfprobe.errors.inspect_private import sample_active
from selfprobe.logs import HOW_CALLED, found, listed, restore, summaries, transcripts

CUT = "CancelledError"
"""The error of a sample that was under way when its run ended."""

Call = tuple[str, ...]
"""Task, model, sample, epoch, and a hash of what was asked with which settings."""

_left: dict[Call, list[ModelOutput]] = defaultdict(list)
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
    for log in found(listed(log_dir)).headers:  # an empty folder of a store is none
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
        model: As Inspect names it.
        messages: What is asked.
        config: With which settings.
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
