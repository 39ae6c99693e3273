"""Conversations out of Inspect itself: the data set of any task, and any logs. No model is asked."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import ChatMessage, ContentText

from selfprobe.arguments import locate, meant
from selfprobe.errors import InputError, one_line
from selfprobe.inspect_private import PrerequisiteError, registry_find, registry_info
from selfprobe.logs import apart, found, samples, task_of

Row = dict[str, Any]

SCHEMES = ("task:", "logs:")
"""How a data set begins that is an Inspect task's, or the samples of logs."""

_UNBUILT = (
    *(OSError, ImportError, ValueError, LookupError, PrerequisiteError, httpx.HTTPError),
    *(NameError, TypeError, AttributeError, RuntimeError, SyntaxError),  # faults of a task's own file
)
"""What building a task of somebody else may raise."""


def rows_of(source: str, *, full: bool = False) -> list[Row]:
    """The conversations of `task:NAME` or `logs:PATH`, as `rows_of_task` and `rows_of_logs` give them."""
    scheme, _, place = source.partition(":")
    return rows_of_task(place) if scheme == "task" else rows_of_logs(place, full=full)


def rows_of_task(name: str) -> list[Row]:
    """The samples of an Inspect task's data set, label evaluation; the choices of a multiple-choice sample are added.

    The task is built as `inspect eval` builds it, and not run: what its solver adds to a prompt is not seen.

    Args:
        name: A registered name (`inspect_evals/gsm8k`), or a file, with @task where it holds several.

    Raises:
        InputError: There is no such task, the file holds several, its data set cannot be had (network, a missing
            package), is empty, or has samples without input because it is made while the task runs.
    """
    short = name.rpartition("/")[2].rpartition("@")[2].removesuffix(".py")
    return [
        {
            "id": str(sample.id if sample.id is not None else number),
            "messages": _of_sample(sample, name),
            "label": "evaluation",
            "source": short,
        }
        for number, sample in enumerate(_build(name).dataset, start=1)
    ]


def _build(name: str) -> Task:
    from selfprobe.inspect_private import load_tasks

    spec, at, which = name.partition("@")
    by_file = spec.endswith(".py")
    try:
        found = load_tasks([_relative(locate(spec)) + at + which if by_file else name])
    except _UNBUILT as error:
        if by_file and isinstance(error, InputError) and spec in str(error):
            raise
        raise InputError(
            f"{name}: the task cannot be built here ({type(error).__name__}: {one_line(error)}); its data may need a "
            "network, a login or a package. Run it where it works and give its logs: -T dataset=logs:…"
        ) from error
    if not found:
        raise InputError(
            f"no task {name!r}; expected a registered name as package/task (is the package installed?) or a file"
            + meant(name, [registry_info(known).name for known in registry_find(lambda info: info.type == "task")])
        )
    if len(found) > 1:
        raise InputError(f"{name} holds {len(found)} tasks ({', '.join(t.name for t in found)}); pick one: {spec}@name")
    return found[0]


def _relative(path: str) -> str:
    """Inspect's loader globs, which absolute paths break on Python 3.11."""
    return os.path.relpath(path, Path.cwd())


def rows_of_logs(path: str, *, full: bool) -> list[Row]:
    """The conversations of all samples in a log or in a folder of logs: what the model was shown first, or all of it.

    Errored samples count too: they were asked. Of several epochs the first is taken, except for full transcripts. Ids
    are `task:sample`, with the start of the run's id where a folder holds the same twice.

    Args:
        path: A log file, or a folder.
        full: Whether to take the whole transcript.

    Raises:
        InputError: There is no such file or folder, there are no logs in it, or no samples in them.
    """
    logs = apart(_read, path)
    rows: dict[str, Row] = {}
    for log, seen in logs:
        task = task_of(log)
        for sample in seen:
            if sample.epoch > 1 and not full:
                continue
            given = sample.messages if full and sample.messages else sample.input
            messages = [{"role": "user", "content": given}] if isinstance(given, str) else list(_plain(given))
            key = f"{task}:{sample.id}" + (f":{sample.epoch}" if sample.epoch > 1 else "")
            key = f"{key}:{log.eval.run_id[:8]}-{log.eval.eval_id[:8]}" if key in rows else key
            label = (sample.metadata or {}).get("label")
            rows[key] = {"id": key, "messages": messages, "source": task}
            if label in ("evaluation", "deployment"):
                rows[key]["label"] = label
    if not rows:
        raise InputError(f"{path}: {len(logs)} logs and no samples in them; expected Inspect logs (.eval or .json)")
    return list(rows.values())


def _read(path: str) -> list[tuple[EvalLog, list[EvalSample]]]:
    return [(log, samples(log.location)) for log in reversed(found([path]).headers)]


def _of_sample(sample: Sample, name: str) -> list[dict[str, Any]]:
    messages = (
        [{"role": "user", "content": sample.input}] if isinstance(sample.input, str) else list(_plain(sample.input))
    )
    if not any(m["content"].strip() if isinstance(m["content"], str) else m["content"] for m in messages):
        raise InputError(
            f"{name}, sample {sample.id!r}: its input is empty; the task makes its prompts while it runs. Run it, "
            "and give its logs: -T dataset=logs:…"
        )
    if sample.choices and isinstance(messages[-1]["content"], str):  # an image is refused by `conversations`
        listed = "\n".join(f"{chr(65 + i)}) {text}" for i, text in enumerate(sample.choices))
        messages[-1] = {**messages[-1], "content": f"{messages[-1]['content']}\n\n{listed}"}
    return messages


def _plain(messages: Iterable[ChatMessage]) -> Iterable[dict[str, Any]]:
    """Inspect's messages as role and content; text parts are joined, others stay for `conversations` to refuse."""
    for message in messages:
        content = message.content
        if not isinstance(content, str):
            parts = [part for part in content if part.type != "reasoning"]
            if all(isinstance(part, ContentText) for part in parts):
                content = message.text
            else:
                yield {"role": message.role, "content": [part.model_dump() for part in parts]}
                continue
        calls = getattr(message, "tool_calls", None) or []
        yield {
            "role": message.role,
            "content": content,
            "tool_calls": [{"function": {"name": c.function, "arguments": c.arguments}} for c in calls],
        }
