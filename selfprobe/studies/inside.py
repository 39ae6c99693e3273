"""Evaluation awareness from inside: what a model's states hold, what it almost says, and what it
says when asked.

The folder holds:

    run.json                 what it is of: model, revision, precision, system turn, place of the
                             monitor
    readings/KEY.npz         a prompt's states, and the log-probabilities of what could follow it
    tables/, figures/, index.html
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from selfprobe.data import Table, first_reason, wrapped
from selfprobe.data.conversations import conversations, counted_label, stands_for
from selfprobe.data.pairs import digest
from selfprobe.data.wrapped import Continuation, Wrapped
from selfprobe.embed import DEFAULT_EMBEDDER, embed_unasked, unfetched
from selfprobe.errors import InputError
from selfprobe.page import Page
from selfprobe.stats.agreement import ece
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, undefined
from selfprobe.stats.text_only import log_odds, log_odds_elsewhere
from selfprobe.studies import inside_numbers, inside_page, inside_turns
from selfprobe.studies.inside_claims import (
    Baseline,
    ProbeNumbers,
    ReadingEvidence,
    probe_numbers,
)
from selfprobe.studies.inside_numbers import (
    BoolArray,
    Clusters,
    Grid,
    LatentNumbers,
    MonitorScores,
    Names,
    OverBaselines,
    chosen_on,
    grid_of_texts,
)
from selfprobe.studies.inside_page import FittedProbe, InsideResults
from selfprobe.studies.inside_rows import (
    ANSWER_METHODS,
    PLACEBO_QUESTION,
    READINGS,
    YES_ANSWERS,
    YES_NO_ANSWERS,
    InsideMeasure,
    Row,
    answer_scores,
    limits_of_data,
    placebo_lead,
    row_clusters,
    row_frame,
    row_of_table,
)
from selfprobe.studies.inside_turn_claims import CONTROL_REMEDIES, TurnReading
from selfprobe.studies.inside_turns import ReadableTurns, TurnResults
from selfprobe.study import Label
from selfprobe.study.arrays import store_arrays, stored_arrays
from selfprobe.study.local import Blocks, LocalStudy, Progress
from selfprobe.study.said_by_turn import SaidTranscript
from selfprobe.study.text_baselines import text_baselines
from selfprobe.text.counts import count_text

if TYPE_CHECKING:
    from selfprobe.probes.branches import Text
    from selfprobe.probes.model import LocalModel
    from selfprobe.probes.probe_file import ProbeFile
    from selfprobe.probes.tokens import Chat


OPTIONS_OF_SETS = (
    "set",
    "against",
    "label",
    "probe",
    "save",
    "continuations",
    "at",
    "places",
    "reply_tokens",
    "random_weights",
)
"""Options of what is read of --set alone."""


@dataclass(frozen=True)
class PendingReading:
    """A reading that the folder lacks."""

    row: Row | Wrapped | SaidTranscript
    texts: "list[Text]"
    by_copy: bool
    """Whether the untrained copy reads it."""


@dataclass(frozen=True)
class RowReadings:
    """What a model made of rows."""

    states: FloatArray
    """States [reading, layer, row, d_model]."""
    log_probs: FloatArray
    """Mean log-probability a token [row, text]."""
    totals: FloatArray
    """Log-probability [row, text]."""


@dataclass(frozen=True)
class SaidMeasures:
    """What a model says, or almost says, of rows."""

    scores: Mapping[str, FloatArray]
    """Measure → its scores, [row]."""
    placebos: Mapping[str, FloatArray | None]
    """Measure → scores of its placebo, [row]; None of a monitor without one."""
    masses: Mapping[str, Estimate]
    """Measure → share of the probability on its answers, of those that have answers."""
    monitor_by_place: Sequence[MonitorScores]
    """The monitor by place along the reply."""


class Inside(LocalStudy):
    """Does a model hold, almost say or say that it is evaluated? States, unsaid sentences and
    answers, row by row.

    A probe learns from announcements round the same task texts and is tested on --set. The same
    command goes on where a killed one stopped.
    """

    reads: ClassVar[frozenset[str]] = frozenset()

    set: str | None = Field(
        None,
        description=(
            "Conversations whose first prompts are read: a bundled name, a file (.jsonl, .csv, "
            ".json) or hf:…."
        ),
    )
    by_turn: str | None = Field(
        None,
        description=(
            "Instead of --set: transcripts, read after each turn beside what is said in it: logs of "
            "awareness scan, or .jsonl."
        ),
    )
    against: str | None = Field(
        None, description="Real use to compare with, in a form of --set; or bundled."
    )
    label: Label | None = Field(
        None, description="Label of every row of --set. Default: each row's label."
    )
    wrappers: str = Field(
        wrapped.DEFAULT_WRAPPERS,
        description="Announcements that the probe learns from: a bundled name or .jsonl.",
    )
    continuations: str = Field(
        wrapped.DEFAULT_CONTINUATIONS,
        description="Sentences of the monitor: a bundled name or .jsonl.",
    )
    at: Literal["reply", "thinking"] = Field(
        "reply",
        description="Place where the monitor listens: start of the reply, or of the thinking.",
    )
    places: int = Field(
        1, ge=1, description="Number of places along the model's reply where the monitor listens."
    )
    reply_tokens: int = Field(
        48, ge=1, description="Longest reply in tokens, with --places above 1."
    )
    shuffles: int = Field(
        100, ge=20, description="Number of draws of the null of the probe's choice."
    )
    random_weights: bool | None = Field(
        None,
        description=(
            "Control: the same architecture with random weights. Default: up to 1 billion "
            "parameters."
        ),
    )
    layers: Blocks = Field(
        "", description="Blocks whose states are read, as 8,16,24 or 0-31:4, from 0. Default: all."
    )
    probe: str | None = Field(None, description="Apply this saved probe; none is fitted.")
    save: str | None = Field(None, description="File to write the probe to, as direction.probe.")
    out: str = Field(
        "awareness_inside", description="Local folder of what was read, the tables and the page."
    )

    @model_validator(mode="after")
    def _one_set(self) -> Self:
        if self.set is None and self.by_turn is None:
            raise ValueError(
                "give what is read: --set with conversations, or --by-turn with logs of "
                "`awareness scan`"
            )
        if self.by_turn is None:
            return self
        fields = type(self).model_fields
        for name in OPTIONS_OF_SETS:
            value = getattr(self, name)
            if value != fields[name].default:
                raise ValueError(
                    f"--by-turn reads transcripts alone: leave out {_typed_option(name, value)}, "
                    "or --by-turn"
                )
        return self

    @model_validator(mode="after")
    def _one_probe(self) -> Self:
        if self.probe and self.save:
            raise ValueError(
                f"--save writes a probe that is fitted, and --probe {self.probe} is one: "
                "give one of them"
            )
        if self.save and Path(self.save).suffix not in (".probe", ".safetensors"):
            raise ValueError(f"--save writes a .probe or .safetensors file, got {self.save}")
        return self

    @cached_property
    def table(self) -> Table:
        """The conversations as they are given."""
        return conversations(str(self.set), against=self.against, label=self.label)

    @cached_property
    def rows(self) -> list[Row]:
        """The labelled conversations.

        Raises:
            InputError: There is no label, one label alone, or no language of the wrappers.
        """
        your_label = stands_for((row.get("set"), row["label"]) for row in self.table.rows)
        labelled_rows = []
        for row in self.table.first(self.limit):
            label = counted_label(your_label, row.get("set"), row["label"])
            if label:
                labelled_rows.append(row_of_table(row, label))
        if not labelled_rows:
            raise InputError(
                f"{self.set} has no labels: give --label evaluation, or real use with --against"
            )
        labels = {row.label for row in labelled_rows}
        if len(labels) < 2:
            raise InputError(
                f"all {len(labelled_rows)} conversations are {labels.pop()}: with one class "
                "nothing can be told apart; give the other with --against"
            )

        familiar_ids = {row.id for row in labelled_rows}
        for foreign_ids in self.foreign_languages(labelled_rows).values():
            familiar_ids -= set(foreign_ids)
        if not familiar_ids:
            raise InputError(
                f"{self.set}: no conversation is in a language of {self.wrappers}; "
                "bring --wrappers of it"
            )
        return labelled_rows

    def foreign_languages(self, rows: Sequence[Row]) -> dict[str, list[str]]:
        """Language → ids of rows in it, of those that no wrapper is in."""
        text_by_id = {row.id: row.text for row in rows}
        return wrapped.languages(wrapped.wrappers(self.wrappers), text_by_id)

    @cached_property
    def grid_texts(self) -> list[Wrapped]:
        """Wrapped texts that the probe learns from; none with --probe."""
        return [] if self.probe else self.wrapped_texts

    @cached_property
    def wrapped_texts(self) -> list[Wrapped]:
        """Task texts in all wrappers."""
        return self.texts_in_wrappers(self.wrappers)

    def texts_in_wrappers(self, wrappers: str) -> list[Wrapped]:
        """Task texts in all wrappers of a data set."""
        task_texts = wrapped.task_texts(wrapped.DEFAULT_TEXTS)
        return wrapped.crossed_wrappers(wrapped.wrappers(wrappers), task_texts)

    @cached_property
    def turns_to_read(self) -> ReadableTurns:
        """The transcripts of --by-turn, as the model reads them."""
        return inside_turns.readable_turns(
            str(self.by_turn),
            self.texts_in_wrappers(inside_turns.PLACEBO_WRAPPERS),
            self.judge,
            self.encoded_conversation,
            self.limit,
        )

    @property
    def rows_to_read(self) -> list[Row | Wrapped | SaidTranscript]:
        """All that is read, in order."""
        if self.by_turn is None:
            return [*self.grid_texts, *self.readable_rows]
        return [
            *self.grid_texts,
            *self.turns_to_read.placebo_texts,
            *self.turns_to_read.transcripts,
        ]

    @cached_property
    def sentences(self) -> list[Continuation]:
        """Sentences of the monitor."""
        return wrapped.continuations(self.continuations)

    @cached_property
    def saved_probe(self) -> "ProbeFile | None":
        """The probe of --probe.

        Raises:
            ValueError: It is another model's, or no probe of prompts.
        """
        from selfprobe.probes.probe_file import PROMPT_PROBE_SETTINGS, load_probe
        from selfprobe.probes.tokens import template_hash

        if not self.probe:
            return None
        template = template_hash(self.judge.tokenizer, self.judge.chat)
        file = load_probe(Path(self.probe), revision=self.judge.revision, template=template)
        if (
            file.card.settings != PROMPT_PROBE_SETTINGS
            or file.probe.layer not in self.judge.block_numbers
        ):
            raise ValueError(
                f"{self.probe} is no probe of prompts at a block that is read: make one with --save"
            )
        return file

    @cached_property
    def has_system_turn(self) -> bool:
        """Whether the chat template has a system turn; where it has none, system prompts begin the
        user's turn.
        """
        from selfprobe.probes.tokens import Chat, opened_chat

        chat = Chat("b", self.judge.chat.arguments)
        try:
            return bool(opened_chat(self.judge.tokenizer, "a", chat))
        except ValueError:
            return False

    def render_prompt(
        self, row: Row | Wrapped, question: str = "", *, thinking: bool = False
    ) -> str:
        """The chat up to the model's turn, with a question below the user's text."""
        from selfprobe.probes.tokens import opened_chat

        chat, user_text = self.chat_under(row.system, row.user)
        if question:
            user_text = f"{user_text}\n\n{question}"
        return opened_chat(self.judge.tokenizer, user_text, chat, thinking=thinking)

    def encoded_conversation(self, messages: Sequence[Mapping[str, str]]) -> tuple[int, ...]:
        """Tokens of a chat of several turns with the model's next turn open."""
        from selfprobe.probes.tokens import opened_conversation

        system_texts = [message["content"] for message in messages if message["role"] == "system"]
        turns = [dict(message) for message in messages if message["role"] != "system"]
        chat, turns[0]["content"] = self.chat_under("\n\n".join(system_texts), turns[0]["content"])
        return self.encoded(opened_conversation(self.judge.tokenizer, turns, chat))

    def chat_under(self, system_text: str, user_text: str) -> "tuple[Chat, str]":
        """The chat under a system prompt and the first user's text, which holds the prompt where
        the template has no system turn.
        """
        from selfprobe.probes.tokens import Chat

        chat = self.judge.chat
        if not system_text:
            return chat, user_text
        if not self.has_system_turn:
            return chat, f"{system_text}\n\n{user_text}"
        system_texts = [text for text in (chat.system, system_text) if text]
        return Chat("\n\n".join(system_texts), chat.arguments), user_text

    def render_opening(self, row: Row) -> str:
        """The chat up to where the monitor listens first."""
        return self.render_prompt(row, thinking=self.at == "thinking")

    def encoded(self, text: str) -> tuple[int, ...]:
        """Tokens of a rendered chat."""
        return tuple(self.judge.tokenizer(text, add_special_tokens=False)["input_ids"])

    def texts_with_endings(
        self, prompt: str, endings: Sequence[str], head: tuple[int, ...] | None = None
    ) -> "Iterator[Text]":
        """Each ending after a prompt (whose tokens are `head`, with a reply), as what is spoken.

        Raises:
            InputError: The tokenizer merges the seam.
        """
        from selfprobe.probes.branches import Text

        prompt_tokens = self.encoded(prompt)
        if head is None:
            head = prompt_tokens
        prompts_with_endings = [prompt + ending for ending in endings]
        encodings = self.judge.tokenizer(prompts_with_endings, add_special_tokens=False)
        for ending, token_ids in zip(endings, encodings["input_ids"], strict=True):
            tokens = tuple(token_ids)
            ending_tokens = tokens[len(prompt_tokens) :]
            if tokens[: len(prompt_tokens)] != prompt_tokens or not ending_tokens:
                raise InputError(
                    f"{self.model}: the tokenizer merges the end of the prompt {prompt[-12:]!r} "
                    f"with the beginning of {ending[:20]!r}: its continuations cannot be told "
                    "apart from the prompt; take another model"
                )
            yield Text((*head, *ending_tokens), spoken=len(ending_tokens))

    def state_texts(self, row: Row | Wrapped) -> "list[Text]":
        """The two texts whose states are read: the prompt, and with the placebo question."""
        from selfprobe.probes.branches import Text

        prompts = [self.render_prompt(row), self.render_prompt(row, PLACEBO_QUESTION)]
        return [Text(self.encoded(prompt), state=True) for prompt in prompts]

    def texts_with_reply(self, row: Row, reply: tuple[int, ...] = ()) -> "list[Text]":
        """States, answers, and the sentences at each place along a reply."""
        answer_texts: list[Text] = []
        for method in ANSWER_METHODS.values():
            for question in (method.about_evaluation, method.about_use):
                prompt = self.render_prompt(row, question)
                answer_texts += self.texts_with_endings(prompt, method.answers)
        placebo_prompt = self.render_prompt(row, PLACEBO_QUESTION)
        answer_texts += self.texts_with_endings(placebo_prompt, YES_NO_ANSWERS)

        opening = self.render_opening(row)
        if self.at == "thinking" and opening == self.render_prompt(row):
            raise InputError(f"the chat template of {self.model} opens no thought: take --at reply")
        opening_tokens = self.encoded(opening)
        sentence_texts = [sentence.text for sentence in self.sentences]
        monitor_texts: list[Text] = []
        for place in range(self.places):
            reply_length = round(len(reply) * place / max(self.places - 1, 1))
            head = (*opening_tokens, *reply[:reply_length])
            monitor_texts += self.texts_with_endings(opening, sentence_texts, head)
        return [*self.state_texts(row), *answer_texts, *monitor_texts]

    @cached_property
    def texts_by_id(self) -> "dict[str, list[Text]]":
        """Id → texts of rows of the set, with the monitor at the start of the reply in all
        places: what a row's model replies is not known yet.
        """
        return {row.id: self.texts_with_reply(row) for row in self.rows}

    def texts_of(
        self, row: Row | Wrapped | SaidTranscript, *, by_copy: bool = False
    ) -> "list[Text]":
        """All that is read of a row; of it the untrained copy reads the prompt's state alone, and
        so does the model beside transcripts.
        """
        if isinstance(row, SaidTranscript):
            return self.turns_to_read.texts_by_id[row.id]
        if by_copy or self.by_turn:
            return self.state_texts(row)[:1]
        if isinstance(row, Row):
            return self.texts_by_id[row.id]
        return self.state_texts(row)

    @cached_property
    def unreadable_reasons(self) -> dict[str, str]:
        """Id of a row → why the model cannot read it."""
        from selfprobe.probes.tokens import first_special_token, special_tokens

        tokenizer_specials = special_tokens(self.judge.tokenizer)
        token_limit = self.judge.context
        if self.places > 1:
            token_limit -= self.reply_tokens
        reasons: dict[str, str] = {}
        for row in self.rows:
            special_token = first_special_token((row.text,), tokenizer_specials)
            if special_token:
                reasons[row.id] = f"special token in its text: {special_token}"
                continue
            length = max(len(text.tokens) for text in self.texts_of(row))
            if length > token_limit:
                reasons[row.id] = f"too long: {length} tokens, the context is {token_limit}"
        return reasons

    @cached_property
    def readable_rows(self) -> list[Row]:
        """Rows that the model can read.

        Raises:
            InputError: Too few are left.
        """
        reasons = self.unreadable_reasons
        readable = [row for row in self.rows if row.id not in reasons]
        if len({row.evaluation for row in readable}) < 2:
            raise InputError(
                f"{len(readable)} of {count_text(len(self.rows), 'conversation')} can be read, and "
                f"not of both classes ({first_reason(reasons.values())}): give shorter ones, or a "
                "model with a longer context"
            )
        return readable

    @property
    def folder_state(self) -> dict[str, Any]:
        """Settings that the folder belongs to."""
        return {
            "model": self.judge.name,
            "revision": self.judge.revision,
            "precision": self.judge.precision,
            "at": self.at,
            "system": self.judge.chat.system,
            "arguments": dict(self.judge.chat.arguments),
            "layers": self.layers,
        }

    @property
    def readings_folder(self) -> Path:
        """Folder of what was read."""
        return self.folder / "readings"

    def reading_key(self, judge: "LocalModel", texts: "Sequence[Text]") -> str:
        """A name for what a model makes of texts."""
        parts = [judge.revision, judge.precision, str(judge.block_numbers)]
        parts += [f"{text.tokens} {text.spoken} {text.state}" for text in texts]
        if self.places > 1 and any(text.spoken for text in texts):
            parts.append(f"{self.places} {self.reply_tokens}")
        return digest(*parts)

    def stored_reading(self, judge: "LocalModel", texts: "Sequence[Text]") -> dict[str, Any] | None:
        """Reading of these texts, if the folder has it."""
        return stored_arrays(self.readings_folder, self.reading_key(judge, texts))

    @property
    def reads_untrained_copy(self) -> bool:
        """Whether a copy with random weights is read too."""
        from selfprobe.probes.model import wants_untrained_control

        is_asked = not self.probe and not self.by_turn
        return is_asked and wants_untrained_control(self.judge, self.random_weights)

    def pending_readings(self) -> Iterator[PendingReading]:
        """Readings that the folder lacks, those of the untrained copy last."""
        from selfprobe.probes.model import named_untrained

        all_rows = self.rows_to_read
        readers = (False, True) if self.reads_untrained_copy else (False,)
        for by_copy in readers:
            judge = named_untrained(self.judge) if by_copy else self.judge
            for row in all_rows:
                texts = self.texts_of(row, by_copy=by_copy)
                if self.stored_reading(judge, texts) is None:
                    yield PendingReading(row, texts, by_copy)

    def measured_cost(self, pending: Sequence[PendingReading]) -> tuple[int, float]:
        """Tokens of prompts, and seconds by reading one: half of all tokens are in prompts as long
        or longer.
        """
        from selfprobe.probes.branches import branched, tokens_of

        if not pending:
            return 0, 0.0
        shortest_first = sorted((reading.texts for reading in pending), key=tokens_of)
        token_sums = np.cumsum([tokens_of(texts) for texts in shortest_first])
        token_count = int(token_sums[-1])
        median_texts = shortest_first[int(np.searchsorted(token_sums, token_sums[-1] / 2))]

        branched(self.judge, shortest_first[0])  # the first reading is slower than others
        start = time.perf_counter()
        branched(self.judge, median_texts)
        seconds = time.perf_counter() - start
        return token_count, seconds * token_count / tokens_of(median_texts)

    @property
    def model_line(self) -> str:
        """Line of the plan on the model."""
        return self.judge.size_line

    @property
    def needs_lines(self) -> list[str]:
        """Rows, tokens, time, memory and disk of what is still to be read.

        Raises:
            InputError: The folder holds another run, or a row cannot be asked about.
        """
        if self.by_turn:
            _ = self.grid_texts
            set_lines = self.turns_to_read.plan_lines(len(self.grid_texts))
            if unfetched(DEFAULT_EMBEDDER):
                remedy = CONTROL_REMEDIES[TurnReading.EMBEDDINGS]
                set_lines.append(f"No sentence embeddings: {remedy}")
            self.claim_folder(self.folder_state, dry=True)
            return [self.model_line, *set_lines, *self.work_lines()]

        # what can be refused is read before a model is loaded
        rows = self.rows
        foreign_languages = self.foreign_languages(rows)
        wrapper_names = {text.wrapper for text in self.grid_texts}
        _ = (self.sentences, self.saved_probe)

        readable_rows = self.readable_rows
        reasons = self.unreadable_reasons
        self.claim_folder(self.folder_state, dry=True)
        evaluation_count = sum(row.evaluation for row in rows)
        lines = [
            self.model_line,
            f"Set: {count_text(len(rows), 'conversation')} ({evaluation_count} evaluation, "
            f"{len(rows) - evaluation_count} deployment), {len(reasons)} cannot be read",
        ]
        for row_id, reason in list(reasons.items())[:1]:
            lines.append(f"Not read: {row_id}: {reason}")
        lines += self.table.plan_notes(self.limit)
        for language, row_ids in foreign_languages.items():
            is_text = "is" if len(row_ids) == 1 else "are"
            lines.append(
                f"{count_text(len(row_ids), 'conversation')} {is_text} in {language}, and no "
                "wrapper is: read as all others"
            )
        if self.probe:
            lines.append(f"Probe: {self.probe}")
        else:
            prompts_text = count_text(len(self.grid_texts), "prompt")
            lines.append(f"Grid: {prompts_text} of {count_text(len(wrapper_names), 'wrapper')}")
        lines += limits_of_data(rows, wrapper_names, fitted=not self.probe)
        replies_text = ""
        if self.places > 1:
            replies = count_text(len(readable_rows), "reply")
            replies_text = f", and {replies} of up to {self.reply_tokens}"
        return [*lines, *self.work_lines(replies_text)]

    def work_lines(self, replies_text: str = "") -> list[str]:
        """Lines of the plan on what is still to be read, and what it takes."""
        from selfprobe.probes.branches import branch_memory
        from selfprobe.probes.model import bytes_text
        from selfprobe.probes.plan import duration_text, plan_lines, work_rows

        pending = list(self.pending_readings())
        token_count, seconds = self.measured_cost(pending)
        longest = max(
            (len(text.tokens) for reading in pending for text in reading.texts), default=0
        )
        weight_bytes, activation_bytes = branch_memory(self.judge, longest)
        disk_bytes = len(pending) * 8 * len(self.judge.block_numbers) * self.judge.d_model
        reading_text = f"{count_text(len(pending), 'prompt')}, {token_count:,} tokens{replies_text}"
        time_text = "all is read"
        if pending:
            time_text = f"about {duration_text(seconds)} (measured on one prompt)"
        rows = work_rows(
            pending=f"{reading_text} (what texts share is read once)",
            weight_bytes=weight_bytes,
            work_bytes=activation_bytes,
            disk=f"{bytes_text(disk_bytes)} to write",
            duration=time_text,
        )
        return plan_lines(rows)

    def work(self, progress: Progress) -> None:
        """Read what is not in the folder yet, the untrained copy last."""
        from selfprobe.probes.branches import branched, greedy_reply, shares, tokens_of
        from selfprobe.probes.harvesting import Meter
        from selfprobe.probes.model import random_weights

        self.claim_folder(self.folder_state)
        pending = list(self.pending_readings())
        if not pending:
            return
        progress(f"{count_text(len(pending), 'prompt')} to read in {self.readings_folder}")
        sharing = shares(self.judge, max((reading.texts for reading in pending), key=tokens_of))
        token_count = sum(tokens_of(reading.texts) for reading in pending)
        meter = Meter(token_count, len(pending), progress)

        trained = judge = self.judge
        for reading in pending:
            row = reading.row
            if reading.by_copy and judge is trained:
                for weights in trained.model.parameters():  # memory holds one model at a time
                    weights.data = weights.data.new_empty(0)
                judge = random_weights(trained)
                del self.judge  # loaded again where it is asked for
            texts = reading.texts
            if self.places > 1 and isinstance(row, Row) and not reading.by_copy:
                opening_tokens = self.encoded(self.render_opening(row))
                reply = greedy_reply(judge, opening_tokens, self.reply_tokens)
                texts = self.texts_with_reply(row, reply)
            arrays = vars(branched(judge, texts, sharing=sharing))
            store_arrays(self.readings_folder, self.reading_key(judge, reading.texts), arrays)
            meter.add(tokens_of(reading.texts), 1)
        meter.finish()

    def read(
        self, judge: "LocalModel", rows: Sequence[Row | Wrapped], *, by_copy: bool = False
    ) -> RowReadings:
        """What the folder holds of the rows.

        Raises:
            InputError: It lacks one.
        """
        readings = [
            self.required_reading(judge, row, self.texts_of(row, by_copy=by_copy)) for row in rows
        ]
        states = np.stack([reading["states"] for reading in readings])
        return RowReadings(
            states=states.transpose(1, 2, 0, 3),
            log_probs=np.stack([reading["log_probs"] for reading in readings]).astype(float),
            totals=np.stack([reading["totals"] for reading in readings]).astype(float),
        )

    def required_reading(
        self, judge: "LocalModel", row: Row | Wrapped | SaidTranscript, texts: "Sequence[Text]"
    ) -> dict[str, Any]:
        """What the folder holds of a row's texts; InputError where it lacks it."""
        reading = self.stored_reading(judge, texts)
        if reading is None:
            raise InputError(
                f"{self.folder} has lost what was read of {row.id}: run the same command again"
            )
        return reading

    def read_turns(self, transcripts: Sequence[SaidTranscript]) -> FloatArray:
        """States [layer, row, d_model] after all turns of transcripts.

        Raises:
            InputError: The folder lacks a transcript.
        """
        states = []
        for transcript in transcripts:
            reading = self.required_reading(self.judge, transcript, self.texts_of(transcript))
            states.append(reading["states"])
        return np.concatenate(states).transpose(1, 0, 2)

    def folder_content(self) -> InsideResults | TurnResults:
        """Numbers of what is in the folder; a probe that --save names is written.

        Raises:
            ValueError: States are not finite.
        """
        if self.by_turn:
            return self.turn_results()
        rows = self.readable_rows
        readings = self.read(self.judge, rows)
        self.require_finite(readings.states)
        truth = np.array([row.evaluation for row in rows])
        formats = np.array([row.format for row in rows])
        clusters = row_clusters(rows)
        baselines = self.text_readers(rows)

        fitted, measures = self.probe_measures(
            rows, readings.states, truth, baselines, formats, clusters
        )
        said_measures = self.said_measures(readings, clusters)
        measures |= said_measures.scores
        numbers = {
            name: inside_numbers.over_baselines(scores, truth, baselines, formats, clusters)
            for name, scores in measures.items()
        }
        baseline_aurocs = {
            name: clusters.auroc_part(truth, scores).estimate for name, scores in baselines.items()
        }
        if self.save and self.grid_texts:
            self.write_probe(fitted, numbers[InsideMeasure.PROBE_READING])

        after_placebo = undefined("not read with a saved probe", unit=clusters.unit)
        if InsideMeasure.PROBE_AFTER_PLACEBO in numbers:
            after_placebo = numbers[InsideMeasure.PROBE_AFTER_PLACEBO].auroc
        probe = probe_numbers(fitted.numbers, after_placebo, is_saved=not self.grid_texts)
        evidence = reading_evidence(numbers, baseline_aurocs, said_measures, probe, truth, clusters)

        probe_scores = measures[InsideMeasure.PROBE_READING]
        log_odds_scores = np.clip(fitted.scale * probe_scores, -500, 500)
        probabilities = 1 / (1 + np.exp(-log_odds_scores))
        wrapper_names = {text.wrapper for text in self.grid_texts}
        return InsideResults(
            state={**self.run_record, "set": self.table.name},
            rows=rows,
            fitted=fitted,
            evidence=evidence,
            numbers=numbers,
            baseline_aurocs=baseline_aurocs,
            measures=measures,
            masses=said_measures.masses,
            monitor_by_place=said_measures.monitor_by_place,
            calibration=ece(probabilities, truth, clusters.ids, unit=clusters.unit),
            alarm_rates=inside_numbers.alarm_rates(probe_scores > 0, truth, clusters),
            notes=limits_of_data(rows, wrapper_names, fitted=not self.probe),
        )

    def probe_measures(
        self,
        rows: Sequence[Row],
        states: FloatArray,
        truth: BoolArray,
        baselines: dict[str, FloatArray],
        formats: Names,
        clusters: Clusters,
    ) -> tuple[FittedProbe, dict[str, FloatArray]]:
        """The probe that is saved or fitted, and measure → its scores [row].

        Args:
            states: [reading, layer, row, d_model] of the rows.
            baselines: Baseline → its score [row]; the untrained copy's is added where it was read.
        """
        if self.saved_probe is not None:
            fitted = _apply_saved(
                self.saved_probe,
                states[0],
                self.judge.block_numbers,
                truth,
                baselines,
                formats,
                clusters,
            )
            return fitted, {InsideMeasure.PROBE_READING: fitted.numbers.chosen.score(states[0])}

        grid, grid_after_placebo = self.grids(self.read(self.judge, self.grid_texts).states)
        if self.reads_untrained_copy:
            baselines[Baseline.UNTRAINED.value] = self.untrained_scores(rows)
        fitted = self.fit_probe(grid, states[0], truth, baselines, formats, clusters)
        return fitted, {
            InsideMeasure.PROBE_READING: fitted.numbers.chosen.score(states[0]),
            InsideMeasure.PROBE_AFTER_PLACEBO: chosen_on(grid_after_placebo).score(states[1]),
        }

    def said_measures(self, readings: RowReadings, clusters: Clusters) -> SaidMeasures:
        """What the rows' texts say: the monitor of sentences, and the answers."""
        answer_count = sum(2 * len(method.answers) for method in ANSWER_METHODS.values())
        first_placebo = 2 + answer_count
        first_sentence = first_placebo + len(YES_NO_ANSWERS)
        answers = answer_scores(readings.totals[:, 2:first_placebo])
        placebo_totals = readings.totals[:, first_placebo:first_sentence]
        placebo_answer = inside_numbers.answer_share(placebo_totals, len(YES_ANSWERS))
        monitor_by_place = self.monitor_by_place(readings.log_probs[:, first_sentence:])

        first_place = monitor_by_place[0]
        scores: dict[str, FloatArray] = {InsideMeasure.MONITOR: first_place.net}
        placebos: dict[str, FloatArray | None] = {InsideMeasure.MONITOR: first_place.placebo}
        masses: dict[str, Estimate] = {}
        for name, answer in answers.items():
            scores[name] = answer.stated
            placebos[name] = placebo_answer
            masses[name] = clustered_mean(answer.mass, clusters.ids, unit=clusters.unit)
        return SaidMeasures(scores, placebos, masses, monitor_by_place)

    def turn_results(self) -> TurnResults:
        """Numbers of what is in the folder of the turns of transcripts.

        Raises:
            InputError: The folder lacks a reading.
            ValueError: States are not finite.
        """
        turns = self.turns_to_read
        turn_states = self.read_turns(turns.transcripts)
        self.require_finite(turn_states)
        evaluation_states = self.read(self.judge, self.grid_texts).states
        placebo_states = self.read(self.judge, turns.placebo_texts).states[0]
        embeddings = None
        if not unfetched(DEFAULT_EMBEDDER):
            embeddings = inside_turns.banded_scores(*self.embedded_grid(turns.turn_texts()))
        return inside_turns.turn_results(
            turns,
            turn_states,
            self.grids(evaluation_states)[0],
            grid_of_texts(turns.placebo_texts, placebo_states, layers=self.judge.block_numbers),
            embeddings=embeddings,
            shuffles=self.shuffles,
            state=self.run_record,
        )

    def require_finite(self, states: FloatArray) -> None:
        """ValueError where the model gave states that are not finite."""
        if not np.isfinite(states).all():
            raise ValueError(
                f"{self.judge.name} gives states that are not finite: "
                "try --dtype float32 or bfloat16"
            )

    def text_readers(self, rows: Sequence[Row]) -> dict[str, FloatArray]:
        """Baseline → its score [row], of those that read the texts alone."""
        text_scores = text_baselines(row_frame(rows)).scores
        readers = {
            Baseline.WORDS_ELSEWHERE.value: text_scores.words_other_source.to_numpy(float),
            Baseline.LENGTH.value: text_scores.length.to_numpy(float),
        }
        if self.saved_probe is not None:
            wrapped_hash = _hash_of(self.wrapped_texts)
            if wrapped_hash != self.saved_probe.card.data_hash:
                return readers  # the saved probe learnt from other wrappers, absent here
        train_texts = [text.whole_text for text in self.wrapped_texts]
        train_labels = np.array([text.evaluation for text in self.wrapped_texts])
        row_texts = [row.text for row in rows]
        words = log_odds_elsewhere(train_texts, train_labels, row_texts)
        readers = {Baseline.WRAPPER_WORDS.value: words, **readers}
        if not unfetched(DEFAULT_EMBEDDER):
            readers[Baseline.SENTENCE_EMBEDDINGS.value] = self.embedding_scores(row_texts)
        return readers

    def embedding_scores(self, row_texts: Sequence[str]) -> FloatArray:
        """Scores [row] of a probe that is fitted to sentence embeddings of the wrapped texts, as
        the model's is to its states.
        """
        grid, row_vectors = self.embedded_grid(row_texts)
        return chosen_on(grid).score(row_vectors)

    def embedded_grid(self, row_texts: Sequence[str]) -> tuple[Grid, FloatArray]:
        """The wrapped texts as sentence embeddings, and vectors [1, row, dimension] of others."""
        train_texts = [text.whole_text for text in self.wrapped_texts]
        vectors = embed_unasked([*train_texts, *row_texts], most_texts=None)[None]
        train_vectors = vectors[:, : len(train_texts)]
        grid = grid_of_texts(self.wrapped_texts, train_vectors, layers=(0,))
        return grid, vectors[:, len(train_texts) :]

    def untrained_scores(self, rows: Sequence[Row]) -> FloatArray:
        """Scores [row] of a probe of the copy with random weights."""
        from selfprobe.probes.model import named_untrained

        copy = named_untrained(self.judge)
        grid = self.grids(self.read(copy, self.grid_texts, by_copy=True).states)[0]
        tested_states = self.read(copy, rows, by_copy=True).states[0]
        return chosen_on(grid).score(tested_states)

    def fit_probe(
        self,
        grid: Grid,
        tested_states: FloatArray,
        truth: BoolArray,
        baselines: Mapping[str, FloatArray],
        formats: Names,
        clusters: Clusters,
    ) -> FittedProbe:
        """The probe with its numbers on the set, and what words reach on wrappers left out."""
        numbers = inside_numbers.latent_numbers(
            grid,
            tested_states,
            truth,
            baselines,
            formats,
            clusters,
            shuffles=self.shuffles,
            rng=np.random.default_rng(0),
        )
        texts = [text.whole_text for text in self.grid_texts]
        word_scores = log_odds(texts, grid.evaluation, grid.wrapper, each_apart=True)
        by_wrapper = Clusters(grid.wrapper, "wrapper")
        words = by_wrapper.auroc_part(grid.evaluation, word_scores).estimate
        return FittedProbe(numbers, inside_numbers.log_odds_scale(grid, numbers.chosen), words)

    def monitor_by_place(self, log_probs: FloatArray) -> list[MonitorScores]:
        """The monitor by place along the reply, of log-probabilities [row, place × sentence]."""
        topics = [sentence.topic for sentence in self.sentences]
        speaks_of_topic = [sentence.side == "about" for sentence in self.sentences]
        return [
            inside_numbers.monitor_scores(place_log_probs, topics, speaks_of_topic)
            for place_log_probs in np.split(log_probs, self.places, axis=1)
        ]

    def grids(self, states: FloatArray) -> list[Grid]:
        """The grid by reading, of states [reading, layer, row, d_model]."""
        return [
            grid_of_texts(self.grid_texts, reading_states, layers=self.judge.block_numbers)
            for reading_states in states
        ]

    def write_probe(self, fitted: FittedProbe, on_set: OverBaselines) -> None:
        """The probe with its card into --save."""
        from selfprobe.probes.probe_file import PROMPT_PROBE_SETTINGS, Card, save_probe
        from selfprobe.probes.tokens import template_hash

        judge = self.judge
        numbers = fitted.numbers
        estimates = {
            "across": numbers.across_wrappers,
            "inside": numbers.across_texts,
            "words": fitted.words,
        }
        scores = {
            "p": numbers.shuffled_p,
            "wrappers": float(numbers.wrapper_count),
            "set": on_set.auroc.value,
        }
        for name, estimate in estimates.items():
            scores[name] = estimate.value
            scores[f"{name}_low"] = estimate.low
            scores[f"{name}_high"] = estimate.high
        known_scores = {
            name: float(score) for name, score in scores.items() if not math.isnan(score)
        }
        train_groups = dict.fromkeys(text.wrapper for text in self.grid_texts)
        card = Card(
            model=judge.name,
            revision=judge.revision,
            template=template_hash(judge.tokenizer, judge.chat),
            dtype=judge.precision,
            dataset=self.wrappers,
            data_hash=_hash_of(self.grid_texts),
            settings=PROMPT_PROBE_SETTINGS,
            split_seed=0,
            train_groups=tuple(train_groups),
            train_pairs=len(self.grid_texts) // 2,
            test_scores=known_scores,
            selfprobe=version("selfprobe"),
            system=judge.chat.system,
            template_arguments=dict(judge.chat.arguments),
        )
        save_probe(Path(str(self.save)), replace(numbers.chosen.probe, scale=fitted.scale), card)

    @classmethod
    def page(cls, results: InsideResults | TurnResults) -> Page:
        """The answer, with tables measures, leads, conversations, precision, monitor and topics; of
        transcripts with classes, held_by_turn and turns.
        """
        if isinstance(results, TurnResults):
            return inside_turns.turn_page(results)
        return inside_page.inside_page(results)


def reading_evidence(
    numbers: Mapping[str, OverBaselines],
    baseline_aurocs: Mapping[str, Estimate],
    said_measures: SaidMeasures,
    probe: ProbeNumbers,
    truth: BoolArray,
    clusters: Clusters,
) -> list[ReadingEvidence]:
    """Evidence of each reading of which a claim is made.

    Args:
        numbers: Measure → its numbers on the set.
        baseline_aurocs: Baseline → its AUROC.
        probe: Numbers of the probe alone, for the reading of the state.
        truth: Whether a row is an evaluation, [row].
    """
    evidence = []
    for name, reading in READINGS.items():
        reading_of_measure = ReadingEvidence(
            reading, numbers[name], baseline_aurocs, answer_mass=said_measures.masses.get(name)
        )
        if name is InsideMeasure.PROBE_READING:
            reading_of_measure = replace(reading_of_measure, probe=probe)
        else:
            placebo, lead = placebo_lead(
                truth, said_measures.scores[name], said_measures.placebos[name], clusters
            )
            reading_of_measure = replace(reading_of_measure, placebo=placebo, over_placebo=lead)
        evidence.append(reading_of_measure)
    return evidence


def _typed_option(name: str, value: object) -> str:
    """An option as it is typed, by the name of its field."""
    option_name = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{option_name}" if value else f"--no-{option_name}"
    return f"--{option_name} {value}"


def _hash_of(texts: Sequence[Wrapped]) -> str:
    return digest(*(f"{text.id} {text.system} {text.user}" for text in texts))


def _apply_saved(
    file: "ProbeFile",
    states: FloatArray,
    layers: Sequence[int],
    truth: BoolArray,
    baselines: Mapping[str, FloatArray],
    formats: Names,
    clusters: Clusters,
) -> FittedProbe:
    """The numbers of a saved probe on a set; those of its training are the card's."""
    card_scores = file.card.test_scores
    wrapper_count = int(card_scores["wrappers"])

    def card_estimate(name: str) -> Estimate:
        return Estimate(
            card_scores.get(name, math.nan),
            card_scores.get(f"{name}_low", math.nan),
            card_scores.get(f"{name}_high", math.nan),
            n=wrapper_count,
            unit="wrapper",
        )

    layer_index = list(layers).index(file.probe.layer)
    chosen = inside_numbers.ChosenProbe(file.probe, layer_index, 1.0)
    unknown = undefined("the saved probe does not say", unit="wrapper")
    numbers = LatentNumbers(
        chosen=chosen,
        on_set=inside_numbers.over_baselines(
            chosen.score(states), truth, baselines, formats, clusters
        ),
        shuffled_p=card_scores["p"],
        shuffled=np.empty(0),
        across_wrappers=card_estimate("across"),
        across_texts=card_estimate("inside"),
        across_formats=unknown,
        across_sources=unknown,
        random_directions=np.full(1, math.nan),
        variance={},
        wrapper_count=wrapper_count,
    )
    return FittedProbe(numbers, file.probe.scale, card_estimate("words"))
