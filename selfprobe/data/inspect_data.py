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

_TASK_NAME = re.compile(r"\w+/\w+")
"""The registered name of a task."""


NO_EVENTS = (
    "no calls of a model are logged; Inspect logs them since version 0.3.25 (August 2024), except "
    "with --no-log-samples, and tools that shorten logs may take them out: run the task again"
)


def address_of(name: str) -> str:
    """A data set as it is named everywhere: `package/task` is `task:package/task`, unless there is
    such a path.

    >>> address_of("inspect_evals/gsm8k"), address_of("hf:a/b@c"), address_of("mine.jsonl")
    ('task:inspect_evals/gsm8k', 'hf:a/b@c', 'mine.jsonl')
    """
    is_task = _TASK_NAME.fullmatch(name) and not Path(name).exists()
    return f"task:{name}" if is_task else name


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
    scheme, _, address = source.partition(":")
    if "://" in address:
        place, mark, query = address.partition("?role=")
        query = f"role={query}"
    else:
        place, mark, query = address.partition("?")
    if mark:
        role = _role_in_query(source, query)
    if scheme == "task":
        return rows_of_task(place, role=role)
    return rows_of_logs(place, full=full, role=role)


def _role_in_query(source: str, query: str) -> str:
    """The role that stands behind an address.

    Raises:
        InputError: Something else than one role stands there.
    """
    pairs = parse_qsl(query, keep_blank_values=True)
    for name, _ in pairs:
        if name != "role":
            raise InputError(f"{source}: unknown ?{name}; there is role, such as ?role=target")
    roles = [role for _, role in pairs]
    if len(roles) > 1:
        raise InputError(f"{source}: role is {' and '.join(roles)}; give one value")
    if not roles or not roles[0]:
        raise InputError(f"{source}: expected a role after the question mark, such as ?role=target")
    return roles[0]


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
    file_name, _, _ = name.partition("@")
    changed_ns = 0
    if file_name.endswith(".py"):
        file_name = locate(file_name)
        changed_ns = Path(file_name).stat().st_mtime_ns
    return list(_rows_of_unchanged_task(name, role, file_name, changed_ns))


@cache  # a study asks for the same task once for each of its runs
def _rows_of_unchanged_task(
    name: str, role: str | None, file_name: str, changed_ns: int
) -> tuple[Row, ...]:
    with first_calls(name) as log_dir:
        rows = in_thread(_first_rows_of_logs, log_dir, role)
    if not any("messages" in row for row in rows):
        if len(rows) == 1:
            count = "its sample does not come"
        else:
            count = f"none of its {len(rows)} samples comes"
        first_reason = f" ({rows[0]['aside']})" if rows else ""
        raise InputError(
            f"{name}: {count} to a call of {_role_name(role)}{first_reason}. {RUN_ELSEWHERE}"
        )
    short_name = name.rpartition("/")[2].rpartition("@")[2].removesuffix(".py")
    return tuple({**row, "source": short_name, "label": "evaluation"} for row in rows)


def _first_rows_of_logs(log_dir: str, role: str | None) -> list[Row]:
    rows = list[Row]()
    for log in readable_logs([log_dir]).headers:
        rows += _rows_of_log(log, role, full=False)
    return rows


TASKS_ABOUT_EVALUATION = (
    "binary",
    "probability",
    "user_motivation",
    "reasoning_trace",
    "first_token",
    "turn_scan",
    "turn_curve",
    "cue_removal",
    "pairwise_realism",
    "rewriting",
    "arm_texts",
    "awareness_features",
)
"""Tasks that themselves ask about evaluations, or read what was said of them."""


def about_evaluation_reason(task: str) -> str:
    """Why a log of a task is no transcript to ask about evaluations; "" where it is one."""
    if task not in TASKS_ABOUT_EVALUATION:
        return ""
    return f"a log of {task}, which itself is about evaluations"


def rows_of_logs(path: str, *, full: bool = False, role: str | None = None) -> list[Row]:
    """The first call of the evaluated model in each sample of a log or of a folder of logs, or the
    whole conversation.

    Errored samples count too, if they came to a call. Only the first of several epochs is taken,
    except for full transcripts; tasks about evaluations have none of these. Ids are `task:sample`,
    with the start of the run's id where a folder holds the same twice.

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
    readable = readable_logs([path])
    row_by_id = {log: _aside_row(log, reason) for log, reason in readable.ignored.items()}
    for log in reversed(readable.headers):
        task_reason = about_evaluation_reason(task_of(log)) if full else ""
        if task_reason:
            row_by_id[log.location] = _aside_row(log.location, task_reason)
            continue
        try:
            log_rows = _rows_of_unchanged_log(log.location, stamp(log.location), role, full)
        except InputError as error:  # a damaged sample: the other logs are read
            reason = one_line(error).removeprefix(f"{log.location} ")
            row_by_id[log.location] = _aside_row(log.location, reason)
            continue

        planned_count = len(log.eval.dataset.sample_ids or [])
        if log.status != "success" and planned_count > len(log_rows):
            reason = (
                f"the run ended as {log.status}: {len(log_rows)} of {planned_count} samples are in "
                "the log"
            )
            row_by_id[log.location] = _aside_row(log.location, reason)
        elif invalidated := str(invalidated_in(log)):
            row_by_id[log.location] = _aside_row(log.location, invalidated)

        task_name = task_of(log)
        for row in log_rows:
            row_id = f"{task_name}:{row['id']}"
            if row_id in row_by_id:
                row_id = f"{row_id}:{log.eval.run_id[:8]}-{log.eval.eval_id[:8]}"
            row_by_id[row_id] = {**row, "id": row_id, "source": task_name}

    rows = list(row_by_id.values())
    if not rows:
        raise InputError(
            f"{path}: {len(readable.headers)} logs and no samples in them; "
            "expected Inspect logs (.eval or .json)"
        )
    if not any("messages" in row for row in rows):
        [(reason, count)] = Counter(row["aside"] for row in rows).most_common(1)
        raise InputError(f"{path}: {count} of {len(rows)} samples cannot be used: {reason}")
    return rows


def _aside_row(log: str, reason: str) -> Row:
    return {"id": log, "aside": reason, "source": "logs"}


@lru_cache(maxsize=256)  # a study asks for the same logs once for each of its runs
def _rows_of_unchanged_log(
    log: str, log_stamp: str, role: str | None, full: bool
) -> tuple[Row, ...]:
    return tuple(_rows_of_log(header_of(log), role, full=full))


def _rows_of_log(log: EvalLog, role: str | None, *, full: bool) -> Iterator[Row]:
    for sample in transcripts(log.location, epochs=None if full else 1):
        row = _conversation(sample, log.eval.model, role, full=full)
        row["id"] = f"{sample.id}:{sample.epoch}" if sample.epoch > 1 else str(sample.id)
        label = (sample.metadata or {}).get("label")
        if label in ("evaluation", "deployment"):
            row["label"] = label
        yield row


def _conversation(sample: EvalSample, model: str, role: str | None, *, full: bool) -> Row:
    """Messages and tools of the role's first call, or why there are none."""
    calls = list(calls_in(sample.events))
    role_calls = calls_of(calls, model, role)
    if not role_calls:
        return {"aside": missing_call(sample, calls, role)}
    if _plays_two_parts(role_calls):
        return {
            "aside": (
                f"{_role_name(role)} is asked under two system prompts in turn, as where it plays "
                "the user too: which of the two conversations is its own cannot be told; bind the "
                "other part to a role (--model-role user=…) when the task is run"
            )
        }
    input_calls = [call for call in role_calls if _sends_input(call, sample)]
    first_call = input_calls[0] if input_calls else role_calls[0]
    call = first_call
    messages = list(call.input)
    if full:
        call = next(later for later in reversed(role_calls) if goes_on(first_call, later))
        messages = list(call.input)
        if call.output.choices:
            messages.append(call.output.message)  # `conversations` keeps it where it is wanted
    row: Row = {"messages": list(plain_messages(messages)), "called": True}
    if call.tools:
        row["tools"] = [tool.model_dump(exclude_none=True) for tool in call.tools]
    return row


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
    if role is None:
        return [call for call in calls if call.role is None and call.model == model]
    return [call for call in calls if call.role == role]


def calls_in(events: Iterable[Event]) -> Iterator[ModelEvent]:
    """The calls of models in a transcript, in order."""
    for event in events:
        if isinstance(event, ModelEvent):
            yield event
        else:
            # Logs of Inspect before 0.3.90 nest events.
            yield from calls_in(getattr(event, "events", None) or ())


def missing_call(sample: EvalSample, calls: Sequence[ModelEvent], role: str | None) -> str:
    """Why a sample has no call of this role."""
    if calls and SUBJECT in calls[0].model:  # a task that was stopped at its first call
        asked_role = calls[0].role
        if not asked_role:
            return "it first asks the evaluated model; leave role out"
        remedy = f"run it with --model-role {asked_role}=MODEL"
        return (
            f"it first asks role {asked_role!r}, whose reply the conversation may need ({remedy})"
        )
    if calls:
        callers = dict.fromkeys(map(_caller, calls))
        remedy = "leave role out"
        if any(call.role for call in calls):
            remedy = "choose one by role=… (of a reference: logs:PATH?role=…)"
        return f"no call of {_role_name(role)}; calls are of {', '.join(callers)}; {remedy}"
    if sample.error and "INSPECT_DISABLE_MODEL_API" in sample.error.message:
        return "it first asks a model of its own choice, whose reply the conversation may need"
    if sample.error and "No sandbox environment" in sample.error.message:
        return "it failed before it asked: it needs its sandbox, and none is started here"
    if sample.error:
        return f"it failed before it asked: {one_line(sample.error.message)}"
    return NO_EVENTS


def _caller(call: ModelEvent) -> str:
    return f"role {call.role!r}" if call.role else f"{call.model} without a role"


def _role_name(role: str | None) -> str:
    return f"the role {role!r}" if role else "the evaluated model"


def _plays_two_parts(calls: Sequence[ModelEvent]) -> bool:
    """True if a solver asks the model in turn under another system prompt, about another
    conversation.

    Sub-agents and scorers ask in spans of their own.
    """
    first_call, *later_calls = calls
    first_system = first_text(first_call, "system")
    opening = first_text(first_call, "user")
    if first_system is None:
        return False
    for call in later_calls:
        system = first_text(call, "system")
        if call.span_id != first_call.span_id or system in (None, first_system):
            continue
        if all(message.text != opening for message in call.input):
            return True
    return False


def first_text(call: ModelEvent, role: str) -> str | None:
    """The first message of a message role ("system", "user") that a call sent, or None."""
    return next((message.text for message in call.input if message.role == role), None)


def goes_on(first_call: ModelEvent, call: ModelEvent) -> bool:
    """True if a call has all messages of the first one, and in the same order."""
    beginning = call.input[: len(first_call.input)]
    return _roles_and_texts(beginning) == _roles_and_texts(first_call.input)


def _roles_and_texts(messages: Sequence[ChatMessage]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def plain_messages(messages: Iterable[ChatMessage]) -> Iterable[dict[str, Any]]:
    """Inspect's messages as role and content; text parts are joined, others stay for
    `conversations` to set aside.
    """
    for message in messages:
        content = message.content
        if not isinstance(content, str):
            parts = [part for part in content if part.type != "reasoning"]
            if not all(isinstance(part, ContentText) for part in parts):
                yield {"role": message.role, "content": [part.model_dump() for part in parts]}
                continue
            content = message.text
        tool_calls = [
            {"function": {"name": call.function, "arguments": call.arguments}}
            for call in getattr(message, "tool_calls", None) or []
        ]
        yield {"role": message.role, "content": content, "tool_calls": tool_calls}
