"""Transcripts, and in which of their turns graders quote the model: from logs of `awareness scan`,
or from a .jsonl file of the same fields.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, NotRequired

from inspect_ai.log import EvalSample
from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from selfprobe.data import each_row, first_reason
from selfprobe.data.conversations import conversation, ends, label_of_word
from selfprobe.data.inspect_data import inspect_rows
from selfprobe.data.messages import Unaskable
from selfprobe.errors import InputError, one_line
from selfprobe.errors.output import is_local
from selfprobe.logs import Run, roles_of, runs
from selfprobe.solvers.turns import Turn, turns_of

SCAN_TASKS = {"turn_scan"}


def _whole_characters(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half a character (a lone surrogate)") from None
    return text


class TranscriptMessage(TypedDict):
    """A message; of the model's with its calls of tools, as function and arguments in JSON."""

    role: Literal["system", "user", "assistant", "tool"]
    content: Annotated[str, AfterValidator(_whole_characters)]
    calls: NotRequired[list[Annotated[list[str], Field(min_length=2, max_length=2)]]]


def _known_label(label: object) -> str | None:
    if label is None:
        return None
    known_label = label_of_word(label)
    if known_label is None:
        raise ValueError(f"expected evaluation, deployment or null, got {label!r:.80}")
    return known_label


@dataclass(frozen=True)
class SaidTranscript:
    """A transcript, and what graders find in its turns.

    A line of a .jsonl file has these fields, four of them under shorter names: said, placebo_said,
    read and graders.
    """

    id: str
    model: str
    """Model that wrote it."""
    source: str
    label: Annotated[str | None, BeforeValidator(_known_label)]
    """Evaluation, deployment or None."""
    messages: list[TranscriptMessage]
    """Messages with role and content, in order."""
    said_turns: Annotated[list[int], Field(alias="said")]
    """Turns, from 1, in which the model brings an evaluation up."""
    placebo_said_turns: Annotated[list[int] | None, Field(alias="placebo_said")]
    """Turns in which it brings the time of day up; None where no grader looked for it."""
    readable_turn_count: Annotated[int, Field(alias="read")]
    """Number of turns from the first on that graders could read."""
    grader_count: Annotated[int, Field(alias="graders", ge=1)]

    @property
    def is_real_use(self) -> bool:
        """Whether it is labelled deployment."""
        return self.label == "deployment"

    @property
    def jsonl_line(self) -> str:
        """The transcript as a line of a .jsonl file, without its end."""
        return _TRANSCRIPT.dump_json(self, by_alias=True).decode()

    @cached_property
    def chats_by_turn(self) -> list[list[dict[str, str]]]:
        """Messages up to the end of each turn with a reply, neighbours of one role joined."""
        prefixes = [self.messages[:end] for end in ends(self.messages)]
        return [_joined(prefix) for prefix in prefixes if _has_new_reply(prefix)]

    def require_turns_of_messages(self) -> None:
        """ValueError where what graders found is of turns that the messages do not have."""
        turn_count = len(self.chats_by_turn)
        turns_by_field = {"said": self.said_turns, "placebo_said": self.placebo_said_turns or []}
        for field, turns in turns_by_field.items():
            for turn in turns:
                if not 1 <= turn <= turn_count:
                    raise ValueError(f"{field}: expected turns from 1 to {turn_count}, got {turn}")
        if not 0 <= self.readable_turn_count <= turn_count:
            raise ValueError(
                f"read: expected 0 to {turn_count} turns, got {self.readable_turn_count}"
            )


_TRANSCRIPT = TypeAdapter(SaidTranscript)


def _has_new_reply(prefix: Sequence[TranscriptMessage]) -> bool:
    """Whether messages end with a reply, or with what its tools returned."""
    for message in reversed(prefix):
        if message["role"] != "tool":
            return bool(message["role"] == "assistant")
    return False


def _joined(messages: Sequence[TranscriptMessage]) -> list[dict[str, str]]:
    """Messages as roles system, user and assistant take turns: results of tools are the user's."""
    joined_messages: list[dict[str, str]] = []
    for message in messages:
        role = "user" if message["role"] == "tool" else message["role"]
        calls_text = json.dumps(message["calls"]) if message.get("calls") else ""
        text = "\n".join(part for part in (message["content"], calls_text) if part)
        if joined_messages and joined_messages[-1]["role"] == role:
            text = f"{joined_messages.pop()['content']}\n\n{text}"
        joined_messages.append({"role": role, "content": text})
    return joined_messages


@dataclass(frozen=True)
class SaidTranscripts:
    """Transcripts of one model."""

    transcripts: list[SaidTranscript]
    set_aside: dict[str, str]
    """Transcript or log → why it does not count."""


def said_transcripts(address: str) -> SaidTranscripts:
    """The transcripts of scans, or of a .jsonl file. One that several scans read counts once, as the
    newest of them has it.

    Args:
        address: Logs of `awareness scan`, a folder of them, or the file.

    Raises:
        InputError: There are none, a row lacks a field, or several models wrote them.
    """
    set_aside: dict[str, str] = {}
    transcripts: list[SaidTranscript] = []
    scan_count = 0
    if address.endswith(".jsonl"):
        transcripts += _transcripts_of_file(address)
    else:
        scans = runs([address], SCAN_TASKS)
        set_aside |= scans.set_aside_reasons
        scan_count = len(scans.finished)
        transcripts += _newest_transcripts(scans.finished, set_aside)
    if not transcripts:
        reason = first_reason(set_aside.values()) or "there is none"
        if scan_count:
            raise InputError(f"{address}: no transcript of the scan can be read: {reason}")
        raise InputError(
            f"{address}: no transcript of a finished `awareness scan` ({reason}); run it with "
            "--placebo, and name its --log-dir here"
        )
    models = list(dict.fromkeys(transcript.model for transcript in transcripts))
    if len(models) > 1:
        raise InputError(
            f"{address}: transcripts of {len(models)} models ({', '.join(models)}); scan those of one "
            "into a --log-dir of their own: the model whose weights are read"
        )
    return SaidTranscripts(transcripts, set_aside)


def _newest_transcripts(
    scans: Sequence[Run], set_aside: dict[str, str]
) -> Iterator[SaidTranscript]:
    """The transcripts of scans, the newest first: each as the newest has it, and under a name of
    its own where another log has a sample of that id.
    """
    log_of_id: dict[str, str] = {}
    for run in scans:
        log_name = PurePath(str(run.header.eval.task_args["log"])).name
        for transcript in _transcripts_of_scan(run, set_aside):
            if log_of_id.get(transcript.id, log_name) != log_name:
                transcript = replace(transcript, id=f"{transcript.id} of {log_name}")
            if transcript.id in log_of_id:
                set_aside[run.log] = "a newer scan read it too"
                continue
            log_of_id[transcript.id] = log_name
            yield transcript


def _transcripts_of_file(address: str) -> Iterator[SaidTranscript]:
    for row in each_row(address, address):
        where = f"{address}, row {row['id']!r}"
        try:
            transcript = _TRANSCRIPT.validate_python(row)
            transcript.require_turns_of_messages()
        except ValidationError as error:
            fault = error.errors()[0]
            field = ".".join(map(str, fault["loc"]))
            reason = fault["msg"].removeprefix("Value error, ")
            raise InputError(f"{where}: {field}: {reason}") from None
        except ValueError as error:
            raise InputError(f"{where}: {error}") from None
        yield transcript


def _transcripts_of_scan(run: Run, set_aside: dict[str, str]) -> Iterator[SaidTranscript]:
    """The transcripts that a scan read, with their messages from the log that it read."""
    task_args = run.header.eval.task_args
    log = str(task_args["log"])
    try:
        messages_by_id = _logged_messages(log, task_args.get("role"), set_aside)
    except InputError as error:
        set_aside[log] = one_line(error)
        if is_local(log) and not Path(log.removeprefix("file://")).exists():
            set_aside[log] = (
                f"the log that was scanned, {log}, is not here: type the command in the folder in "
                "which `awareness scan` was typed, or scan it again"
            )
        return
    for sample in run.samples:
        sample_id = f"{sample.metadata['task']}:{sample.id}"
        if sample_id not in messages_by_id:
            reason = "its messages are not in the log that was scanned"
            set_aside.setdefault(sample_id, reason)
            continue
        transcript = _transcript_of_sample(run, sample, messages_by_id[sample_id])
        shortening = _shortening(turns_of(sample.metadata), transcript)
        if shortening:
            set_aside[sample_id] = shortening
            continue
        yield transcript


def _logged_messages(
    log: str, role: str | None, set_aside: dict[str, str]
) -> dict[str, list[TranscriptMessage]]:
    """Id → messages of each sample of a log, also of samples that are alike."""
    messages_by_id = {}
    for row in inspect_rows(f"logs:{log}", full=True, role=role):
        sample_id = row["id"]
        try:
            record = conversation(
                row,
                where=sample_id,
                source=log,
                label="evaluation",  # not used, and the log's own may be any word
                context="full",
                as_sent=True,
            )
        except Unaskable as error:
            set_aside[sample_id] = one_line(error).removeprefix(f"{sample_id}: ")
        else:
            messages_by_id[sample_id] = record["messages"]
    return messages_by_id


def _shortening(turns: Sequence[Turn], transcript: SaidTranscript) -> str:
    """Why the turns that graders read are not those of the messages; "" where they are."""
    reply_count = len(transcript.chats_by_turn)
    if len(turns) == reply_count:
        return ""
    for turn in turns:
        if not turn.reply:
            return f"its turn {turn.number} has no reply, and the log no message of it"
    return (
        f"its {len(turns)} calls are not its {reply_count} replies: the conversation was "
        "shortened, or went on elsewhere"
    )


def _transcript_of_sample(
    run: Run, sample: EvalSample, messages: list[TranscriptMessage]
) -> SaidTranscript:
    (score,) = (sample.scores or {}).values()
    findings = score.metadata or {}
    read_turn_count = findings["read"]
    placebo_turns = None
    if "found_placebo" in findings:
        read_turn_count = min(read_turn_count, findings["read_placebo"])
        placebo_turns = _quoted_turns(findings["found_placebo"])
    metadata = run.header.eval.metadata or {}
    return SaidTranscript(
        id=f"{sample.metadata['task']}:{sample.id}",
        model=str(metadata["read_model"]),
        source=str(sample.metadata["source"]),
        label=sample.metadata["label"],
        messages=messages,
        said_turns=_quoted_turns(findings["found"]),
        placebo_said_turns=placebo_turns,
        readable_turn_count=read_turn_count,
        grader_count=len(roles_of(run.header)["grader"]),
    )


def _quoted_turns(quotes: Sequence[Sequence[Any]]) -> list[int]:
    return sorted({int(turn) for turn, *_ in quotes})
