"""Conversations out of Inspect itself: what any task asks, and what any logs show was asked. No
model is asked.

A conversation is what the model was sent, not a sample's `input`: solvers add system prompts,
templates and options.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from inspect_ai.event import Event, ModelEvent
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import ChatMessage, ContentText

from selfprobe.errors import InputError, one_line
from selfprobe.errors.arguments import locate
from selfprobe.logs import header_of, in_thread, invalidated_in, readable_logs, task_of, transcripts
from selfprobe.logs.files import stamp
from selfprobe.logs.first_call import RUN_ELSEWHERE, SUBJECT, first_calls

Row = dict[str, Any]
"""`id`, `messages`, `called` (it is what a model was sent), `source` and, where there are any,
`tools` and `label`; or `id` and `aside`: why there is no conversation.
"""

SCHEMES = ("task:", "logs:")
"""Prefixes of data sets that are an Inspect task's, or the samples of logs."""

_TASK = re.compile(r"\w+/\w+")
"""The registered name of a task."""

NO_EVENTS = (
    "no calls of a model are logged; Inspect logs them since version 0.3.25 (August 2024), except with "
    "--no-log-samples, and tools that shorten logs may take them out: run the task again"
)


def address_of(name: str) -> str:
    """A data set as it is named everywhere: `package/task` is `task:package/task`, unless there is
    such a path.

    >>> address_of("inspect_evals/gsm8k"), address_of("hf:a/b@c"), address_of("mine.jsonl")
    ('task:inspect_evals/gsm8k', 'hf:a/b@c', 'mine.jsonl')
    """
    return f"task:{name}" if _TASK.fullmatch(name) and not Path(name).exists() else name


def inspect_rows(source: str, *, full: bool = False, role: str | None = None) -> list[Row]:
    """The conversations of `task:NAME` or `logs:PATH`, as `rows_of_task` and `rows_of_logs` give
    them.

    Args:
        source: The role may stand behind it, as in `logs:logs/audit?role=target`.
        full: See `rows_of_logs`.
        role: Where none stands there.

    Raises:
        InputError: Something else than one role stands behind it; see `rows_of_task` and
            `rows_of_logs`.
    """
    scheme, _, place = source.partition(":")
    place, mark, query = place.partition("?role=" if "://" in place else "?")
    keys = (
        parse_qsl(query if mark == "?" else f"role={query}", keep_blank_values=True) if mark else []
    )
    if wrong := [name for name, _ in keys if name != "role"]:
        raise InputError(f"{source}: unknown ?{wrong[0]}; there is role, such as ?role=target")
    if len(keys) > 1:
        raise InputError(
            f"{source}: role is {' and '.join(value for _, value in keys)}; give one value"
        )
    if mark and not (keys and keys[0][1]):
        raise InputError(f"{source}: expected a role after the question mark, such as ?role=target")
    role = keys[0][1] if keys else role
    return (
        rows_of_task(place, role=role)
        if scheme == "task"
        else rows_of_logs(place, full=full, role=role)
    )


def rows_of_task(name: str, *, role: str | None = None) -> list[Row]:
    """The first call of the evaluated model in each sample of an Inspect task, with label
    evaluation.

    The task's solver runs up to that call, in a process of its own; sandboxes and other models do
    not.

    Args:
        name: A registered name (`inspect_evals/gsm8k`), or a file, with @task where it holds
            several.
        role: The model role whose conversations are wanted; None is the evaluated model.

    Raises:
        InputError: There is no such task, the file holds several, it cannot be built here, or no
            sample comes to such a call: it needs a sandbox, a key, or another model's reply before.
    """
    place = locate(name.partition("@")[0]) if name.partition("@")[0].endswith(".py") else ""
    return list(_rows_of_task(name, role, place, Path(place).stat().st_mtime_ns if place else 0))


@cache  # a study asks for the same task once for each of its runs
def _rows_of_task(name: str, role: str | None, place: str, changed: int) -> tuple[Row, ...]:
    short = name.rpartition("/")[2].rpartition("@")[2].removesuffix(".py")
    with first_calls(name) as folder:
        rows = in_thread(
            lambda: [
                row
                for log in readable_logs([folder]).headers
                for row in _rows_of_log(log, role, full=False)
            ]
        )
    if not any("messages" in row for row in rows):
        count = (
            f"none of its {len(rows)} samples comes"
            if len(rows) != 1
            else "its sample does not come"
        )
        first = f" ({rows[0]['aside']})" if rows else ""
        raise InputError(f"{name}: {count} to a call of {_named(role)}{first}. {RUN_ELSEWHERE}")
    return tuple({**row, "source": short, "label": "evaluation"} for row in rows)


def rows_of_logs(path: str, *, full: bool = False, role: str | None = None) -> list[Row]:
    """The first call of the evaluated model in each sample of a log or of a folder of logs, or the
    whole conversation.

    Errored samples count too, if they came to a call. Only the first of several epochs is taken,
    except for full transcripts. Ids are `task:sample`, with the start of the run's id where a
    folder holds the same twice.

    Args:
        path: A log file, or a folder.
        full: Whether to take the last call that goes on with the first conversation.
        role: The model role whose conversations are wanted ("target"); None is the evaluated model.

    Raises:
        InputError: There is no such file or folder, there are no logs in it, no samples in them, or
            no call of that role: names the roles that there are.
    """
    return in_thread(_rows_of_logs, path, full, role)


def _rows_of_logs(path: str, full: bool, role: str | None) -> list[Row]:
    there = readable_logs([path])
    logs = there.headers
    rows: dict[str, Row] = {
        log: {"id": log, "aside": why, "source": "logs"} for log, why in there.ignored.items()
    }
    for log in reversed(logs):
        try:
            read = _rows_of_unchanged(log.location, stamp(log.location), role, full)
        except InputError as error:  # a damaged sample: the other logs are read
            why = one_line(error).removeprefix(f"{log.location} ")
            rows[log.location] = {"id": log.location, "aside": why, "source": "logs"}
            continue
        if log.status != "success" and (planned := len(log.eval.dataset.sample_ids or [])) > len(
            read
        ):
            cut = f"the run ended as {log.status}: {len(read)} of {planned} samples are in the log"
            rows[log.location] = {"id": log.location, "aside": cut, "source": "logs"}
        elif invalidated := str(invalidated_in(log)):
            rows[log.location] = {"id": log.location, "aside": invalidated, "source": "logs"}
        for row in read:
            key = f"{task_of(log)}:{row['id']}"
            key = f"{key}:{log.eval.run_id[:8]}-{log.eval.eval_id[:8]}" if key in rows else key
            rows[key] = {**row, "id": key, "source": task_of(log)}
    if not rows:
        raise InputError(
            f"{path}: {len(logs)} logs and no samples in them; expected Inspect logs (.eval or .json)"
        )
    if not any("messages" in row for row in rows.values()):
        (why, count), *_ = Counter(row["aside"] for row in rows.values()).most_common()
        raise InputError(f"{path}: {count} of {len(rows)} samples cannot be used: {why}")
    return list(rows.values())


@lru_cache(maxsize=256)  # a study asks for the same logs once for each of its runs
def _rows_of_unchanged(log: str, stamp: str, role: str | None, full: bool) -> tuple[Row, ...]:
    return tuple(_rows_of_log(header_of(log), role, full=full))


def _rows_of_log(log: EvalLog, role: str | None, *, full: bool) -> Iterator[Row]:
    for sample in transcripts(log.location, epochs=None if full else 1):
        key = f"{sample.id}:{sample.epoch}" if sample.epoch > 1 else str(sample.id)
        label = (sample.metadata or {}).get("label")
        labelled = {"label": label} if label in ("evaluation", "deployment") else {}
        yield {"id": key} | _conversation(sample, log.eval.model, role, full=full) | labelled


def _conversation(sample: EvalSample, model: str, role: str | None, *, full: bool) -> Row:
    """Messages and tools of the role's first call, or why there are none."""
    calls = list(calls_in(sample.events))
    mine = calls_of(calls, model, role)
    if not mine:
        return {"aside": missing_call(sample, calls, role)}
    first = next((call for call in mine if _sends_input(call, sample)), mine[0])
    if _plays_two_parts(mine):
        return {
            "aside": f"{_named(role)} is asked under two system prompts in turn, as where it plays the user too: which "
            "of the two conversations is its own cannot be told; bind the other part to a role (--model-role user=…) "
            "when the task is run"
        }
    taken = next(call for call in reversed(mine) if goes_on(first, call)) if full else first
    tools = [tool.model_dump(exclude_none=True) for tool in taken.tools]
    last = (
        [taken.output.message] if full and taken.output.choices else []
    )  # `conversations` keeps it where it is wanted
    messages = list(plain_messages([*taken.input, *last]))
    return {"messages": messages, "called": True} | ({"tools": tools} if tools else {})


def _sends_input(call: ModelEvent, sample: EvalSample) -> bool:
    """Whether a call ends with the sample's own input: of calls that a solver makes at the same
    time, any one may be the first in the log.
    """
    sample_input = sample.input
    if isinstance(sample_input, list):
        sample_input = sample_input[-1].text if sample_input else ""
    return bool(call.input) and call.input[-1].text == sample_input


def calls_of(calls: Sequence[ModelEvent], model: str, role: str | None) -> list[ModelEvent]:
    """The calls of a model role; of None those of the evaluated model under no role."""
    return [
        call for call in calls if call.role == role and (role is not None or call.model == model)
    ]


def calls_in(events: Iterable[Event]) -> Iterator[ModelEvent]:
    """The calls of models in a transcript, in order."""
    for event in events:
        if isinstance(event, ModelEvent):
            yield event
        else:
            yield from calls_in(
                getattr(event, "events", None) or ()
            )  # how logs before 0.3.90 nest them


def missing_call(sample: EvalSample, calls: Sequence[ModelEvent], role: str | None) -> str:
    """Why a sample has no call of this role."""
    if calls and SUBJECT in calls[0].model:  # a task that was stopped at its first call
        if not (asked := calls[0].role):
            return "it first asks the evaluated model; leave role out"
        bound = f"run it with --model-role {asked}=MODEL"
        return f"it first asks role {asked!r}, whose reply the conversation may need ({bound})"
    if calls:
        known = list(
            dict.fromkeys(
                f"role {c.role!r}" if c.role else f"{c.model} without a role" for c in calls
            )
        )
        any_role = any(call.role for call in calls)
        hint = (
            "; choose one by role=… (of a reference: logs:PATH?role=…)"
            if any_role
            else "; leave role out"
        )
        return f"no call of {_named(role)}; calls are of {', '.join(known)}{hint}"
    if sample.error and "INSPECT_DISABLE_MODEL_API" in sample.error.message:
        return "it first asks a model of its own choice, whose reply the conversation may need"
    if sample.error and "No sandbox environment" in sample.error.message:
        return "it failed before it asked: it needs its sandbox, and none is started here"
    if sample.error:
        return f"it failed before it asked: {one_line(sample.error.message)}"
    return NO_EVENTS


def _named(role: str | None) -> str:
    return f"the role {role!r}" if role else "the evaluated model"


def _plays_two_parts(calls: Sequence[ModelEvent]) -> bool:
    """True if a solver asks the model in turn under another system prompt, about another
    conversation.

    Sub-agents and scorers ask in spans of their own.
    """
    first = calls[0]
    system, opening = first_text(first, "system"), first_text(first, "user")
    return any(
        (other := first_text(call, "system")) is not None
        and other != system
        and not any(message.text == opening for message in call.input)
        for call in calls[1:]
        if system is not None and call.span_id == first.span_id
    )


def first_text(call: ModelEvent, role: str) -> str | None:
    """The first message of a message role ("system", "user") that a call sent, or None."""
    return next((message.text for message in call.input if message.role == role), None)


def goes_on(first: ModelEvent, call: ModelEvent) -> bool:
    start = call.input[: len(first.input)]
    return [(m.role, m.text) for m in start] == [(m.role, m.text) for m in first.input]


def plain_messages(messages: Iterable[ChatMessage]) -> Iterable[dict[str, Any]]:
    """Inspect's messages as role and content; text parts are joined, others stay for
    `conversations` to set aside.
    """
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
            "tool_calls": [
                {"function": {"name": c.function, "arguments": c.arguments}} for c in calls
            ],
        }
