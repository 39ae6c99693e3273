"""Does a model notice a thought that is put into it, and can it name it? The command `mechanism
inject`.

IntrospectBench (§2, Appendix C) separates introspection of policies, which the tasks measure, from
that of activations, which it defers. Here a concept's direction is added to the residual stream
while an earlier note is read, and the model is asked about it afterwards. The folder holds:

    run.json                       what it is of: model, revision, precision, concepts, questions
    readings/…npz                  what was read: of a block, a dose and a note; of plain notes
    tables/, figures/, index.html  what the study makes of it
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator
from scipy.stats import beta

from selfprobe import page
from selfprobe.data import Table, load
from selfprobe.data.concept_words import LARGEST_DOSE, ConceptWords, concept_words, word_key
from selfprobe.data.pairs import digest
from selfprobe.errors import InputError
from selfprobe.mechanism import injection_prompts as prompts
from selfprobe.page.columns import BLOCK_HEADING, Heading, RowTable, columns_of
from selfprobe.page.numerals import number, percent, signed_interval, signed_number
from selfprobe.page.plots import bar_rows, cut_name
from selfprobe.stats.claim import Claim
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.inject_numbers import (
    InjectionNumbers,
    InjectionReadings,
    PlainReadings,
    naming_claim,
    noticing_claim,
)
from selfprobe.studies.inject_sentences import (
    SentenceNumbers,
    SentenceReadings,
    locating_claim,
)
from selfprobe.study.arrays import Arrays, store_arrays, stored_arrays
from selfprobe.study.local import Blocks, LocalStudy, OpenModel, Progress, blocks
from selfprobe.text.counts import count_text

if TYPE_CHECKING:
    from selfprobe.mechanism.injection import (
        AskedModel,
        Conversation,
        Injection,
        ReadingSpeed,
        TokenBranch,
    )

Where = Literal["earlier", "all", "sentence"]

TOKENS_UNDER_VECTORS = {
    "earlier": "the note",
    "all": "the note and all that follows",
    "sentence": "one of five sentences",
}
READ_BLOCKS = 6
"""Number of blocks that are read unless --layers says others."""
ROWS_ON_CPU = 8
ROWS_ON_DEVICE = 128
"""Largest number of vectors that are read together."""
FEWEST_CONCEPTS = 3
"""Smallest number of concepts with which names can be told apart."""
NO_AWARENESS_NOTE = (
    "It does not show awareness of thoughts in general: vectors of single words were added, and "
    "answers of one token were read."
)
INJECTION_METHOD = (
    "A vector is a concept's state less the mean of other words' states, at unit length; the dose "
    "is its share of the mean length of the note's states at that block, without the first token. "
    "Nothing is generated: the next token after each question is read."
)
NOTICING_METHOD = (
    "The noticing score is in log-odds: half the difference of a question and its negation (which "
    "a bias towards Yes leaves alone), less what is left of that without a vector, given how far "
    "the vector flattens plain facts, less the same for the question about another assistant. p: "
    "against the largest t of all cells under random signs of whole concepts. Intervals are for new "
    "concepts and wordings."
)
NAMING_METHOD = (
    "The naming score is the log-probability of each injected concept's own name, less what its "
    "vector does to all names and what is said of all vectors. p: against the best of all cells "
    "under random orders of the names. A reader names the concept from 24 tokens that were written "
    "under its vector."
)
LOCATING_METHOD = (
    "The locating score is the log-probability of the disturbed sentence's number, less what a "
    "vector does to all numbers and what each number gets wherever the vector is. The claim is of "
    'that at "which one?" less that at "which is the longest?". p: against the largest t of all cells '
    "under random signs of whole concepts. A cell counts where the numbers keep at least half of "
    "their probability and a tenth of all."
)
GATE_METHOD = (
    "A cell counts where Yes and No keep at least half of their probability and a tenth of all, "
    "nine tenths of the facts stay right, and a neutral text loses at most half a nat a token."
)


class Inject(LocalStudy):
    """Does a model notice a thought that is put into it, and can it name it?

    Directions of concepts are added to the residual stream while an earlier note is read; beside
    them vectors without a concept, odd texts, plain facts and the same questions about another
    assistant. What is in the folder is not read again.
    """

    reads: ClassVar[frozenset[str]] = frozenset()

    concepts: str = Field(
        "injection",
        description="Words: bundled, a file or hf:…, with columns word and use (concept or base).",
    )
    layers: Blocks = Field(
        "",
        description="Blocks after which vectors are added, as 8,16 or 0-31:4, from 0. Default: six.",
    )
    doses: tuple[float, ...] = Field(
        (0.25, 0.5, 1.0),
        description="Lengths of the vectors, as shares of the mean length of the states.",
    )
    notes: int = Field(
        2, ge=1, le=len(prompts.NOTES), description="Number of notes that are read under vectors."
    )
    where: Where = Field(
        "earlier",
        description="Tokens under vectors: those of the note, all later ones too, or those of one of five "
        "sentences, which the model is to find.",
    )
    reader: OpenModel | None = Field(
        None,
        description="Model that names concepts from what is written. Default: the model itself.",
    )
    out: str = Field("injection", description="Folder of what is read, the tables and the page.")

    @field_validator("doses")
    @classmethod
    def _in_order(cls, doses: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted(set(doses)))

    @model_validator(mode="after")
    def _has_doses(self) -> Self:
        example = "take --doses .5,1"
        if not self.doses:
            raise ValueError(f"--doses is empty, and a dose is above 0: {example}")
        dose_by_name: dict[str, float] = {}
        for dose in self.doses:
            if not 0 < dose <= LARGEST_DOSE:
                raise ValueError(
                    f"a dose is above 0 (plain notes are read anyway) and at most "
                    f"{LARGEST_DOSE:g}, got --doses {dose:g}: {example}"
                )
            name = f"{dose:g}"
            if name in dose_by_name:
                raise ValueError(
                    f"the doses {dose_by_name[name]!r} and {dose!r} are both written {name}: give "
                    "doses that differ by more"
                )
            dose_by_name[name] = dose
        return self

    @model_validator(mode="after")
    def _has_sentences(self) -> Self:
        most = len(prompts.SENTENCE_NOTES)
        if self.is_of_sentences and self.notes > most:
            raise ValueError(f"--where sentence has {most} notes, got --notes {self.notes}")
        if self.is_of_sentences and self.reader:
            raise ValueError("--where sentence writes nothing: leave out --reader")
        return self

    @cached_property
    def table(self) -> Table:
        """The words."""
        return load(self.concepts, "word", ("use",))

    @property
    def loading(self) -> dict[str, Any]:
        """All blocks are loaded; vectors are added after some."""
        return super().loading | {"layers": ()}

    @cached_property
    def words(self) -> "UsedWords":
        """The words that are one token of the model.

        Raises:
            InputError: Too few are.
        """
        read_words = self.read_words
        concepts = read_words.concepts
        base_words = read_words.base
        if not base_words and not read_words.base_concepts:
            concept_keys = {word_key(word) for word in concepts}
            bundled_words = concept_words(load("injection", "word", ("use",))).base
            base_words = tuple(word for word in bundled_words if word_key(word) not in concept_keys)
        every_single = [word for word in concepts if self._is_one_token(word)]
        left_out = [word for word in concepts if word not in every_single]
        single = every_single[: self.limit]
        single_base = [word for word in base_words if self._is_one_token(word)]
        if len(single) < FEWEST_CONCEPTS <= len(every_single):
            raise InputError(
                f"--limit {self.limit} leaves {count_text(len(single), 'concept')}; expected at "
                f"least {FEWEST_CONCEPTS}, so that names can be told apart: give a larger --limit"
            )
        if len(single) < FEWEST_CONCEPTS or len(single_base) < FEWEST_CONCEPTS:
            raise InputError(self._too_few_words(len(single), len(single_base), left_out))
        return UsedWords(tuple(single), tuple(single_base), tuple(left_out))

    @cached_property
    def read_words(self) -> ConceptWords:
        """The words of the data set, each once.

        Raises:
            InputError: A row has another use than concept and base.
        """
        return concept_words(self.table)

    def _too_few_words(self, concept_count: int, base_count: int, left_out: Sequence[str]) -> str:
        """Error of a data set of which too few words can be used."""
        reasons = list(self.read_words.left_out_lines)
        if left_out:
            reasons.insert(0, f"{left_out[0]} is several")
        reason_text = f" ({'; '.join(reasons)})" if reasons else ""
        concepts = count_text(concept_count, "concept")
        base_words = count_text(base_count, "base word")
        return (
            f"{concepts} and {base_words} of {self.concepts} are one token of "
            f"{self.judge.name}{reason_text}; expected at least {FEWEST_CONCEPTS} of each: give "
            "shorter and commoner words"
        )

    def _is_one_token(self, word: str) -> bool:
        tokens = self.judge.tokenizer(f" {word}", add_special_tokens=False)["input_ids"]
        return len(tokens) == 1

    @cached_property
    def asked_model(self) -> "AskedModel":
        """The model with the questions as its tokens."""
        from selfprobe.mechanism.injection import AskedModel

        return AskedModel(self.judge, [*self.words.concepts, *self.words.base])

    @property
    def read_blocks(self) -> tuple[int, ...]:
        """Blocks after which vectors are added.

        Raises:
            InputError: The model has no such block.
        """
        from selfprobe.probes.model import missing_block_text

        block_count = len(self.judge.blocks)
        listed_blocks = blocks(self.layers)
        if not listed_blocks:
            depths = np.linspace(0.25, 0.85, READ_BLOCKS)
            default_blocks = {min(int(depth * block_count), block_count - 1) for depth in depths}
            return tuple(sorted(default_blocks))
        if listed_blocks[-1] >= block_count:
            argument = f"--layers {self.layers}"
            raise InputError(missing_block_text(self.judge.name, block_count, argument))
        return listed_blocks

    @property
    def is_of_sentences(self) -> bool:
        """Whether vectors are added on one of five sentences, and the model is to find it."""
        return self.where == "sentence"

    @property
    def cells(self) -> tuple[tuple[int, float], ...]:
        """Block and dose of each cell."""
        return tuple((block, dose) for block in self.read_blocks for dose in self.doses)

    @property
    def state(self) -> dict[str, Any]:
        """Settings that the folder belongs to."""
        judge, words = self.judge, self.words
        questions = [*prompts.yes_no_questions(), *prompts.naming_questions()]
        if self.is_of_sentences:
            questions = prompts.sentence_questions()
        fixed_texts = (
            *prompts.NOTES,
            *prompts.ODD_NOTES,
            *map(prompts.numbered_sentences, prompts.SENTENCE_NOTES),
            prompts.CEILING,
            prompts.ELICITATION,
            prompts.NEUTRAL_TEXT,
            prompts.READER_PROMPT,
            prompts.WRITING_PROMPT,
        )
        return {
            "model": judge.name,
            "revision": judge.revision,
            "precision": judge.precision,
            "concepts": list(words.concepts),
            "base": list(words.base),
            "where": self.where,
            "questions": digest(str(questions), *fixed_texts),
            "system": judge.chat.system,
            "arguments": dict(judge.chat.arguments),
        }

    # ---- the plan

    @property
    def needs_lines(self) -> list[str]:
        """Cells, tokens and time of what is still to be read."""
        from selfprobe.probes.plan import duration_text, plan_lines, work_rows

        self.claim_folder(self.state, dry=True)
        self._check_stored_cells()
        judge, words = self.judge, self.words
        self._check_context()
        unread_cells = list(self._unread_cells())
        unread_plain = list(self._unread_plain())
        vectors = len(self.vector_labels)
        row_count = len(unread_cells) * vectors * self._rows_of_vector
        tokens = (row_count + len(unread_plain)) * self._row_tokens
        block_text = ", ".join(map(str, self.read_blocks))
        dose_text = ", ".join(f"{dose:g}" for dose in self.doses)
        lines = [
            judge.size_line,
            f"Concepts: {len(words.concepts)}, and "
            f"{vectors - len(words.concepts)} vectors without one",
        ]
        lines += self.read_words.left_out_lines
        if words.left_out:
            lines.append(f"Left out, as several tokens: {', '.join(words.left_out[:5])}")
        lines += [
            f"Cells (a block and a dose each): {len(self.cells)} (blocks {block_text}; doses {dose_text}) after "
            f"{count_text(self.notes, 'note')}",
        ]
        pending_text = (
            f"{tokens:,} tokens in {count_text(len(unread_cells), 'reading')} of "
            f"{count_text(vectors, 'vector')} and {len(unread_plain)} without one"
        )
        if not tokens:
            nothing_rows = [("To do", pending_text), ("Time", "nothing is left to read")]
            return [*lines, *plan_lines(nothing_rows)]
        seconds, cpu_seconds, memory = self._reading_cost(unread_cells, unread_plain)
        time_text = f"about {duration_text(seconds)}"
        if judge.device.type == "cpu":
            time_text += f", {duration_text(cpu_seconds)} of CPU time"
        rows = work_rows(
            pending=pending_text,
            weight_bytes=judge.weight_bytes,
            work_bytes=memory,
            duration=f"{time_text} (measured on one question)",
        )
        return [*lines, *plan_lines(rows)]

    def _reading_cost(
        self,
        unread_cells: "Sequence[tuple[int, float, int]]",
        unread_plain: "Sequence[tuple[str, Conversation]]",
    ) -> tuple[float, float, int]:
        """Seconds, CPU seconds, and bytes beyond the weights of what is still to be read."""
        cells_by_block = Counter(block for block, _, _ in unread_cells)
        rows_of_cell = len(self.vector_labels) * self._rows_of_vector
        plain_sizes = [len(group) for group in self._plain_groups(unread_plain)]
        single_rows = plain_sizes.count(1)
        rows_and_speeds = [(single_rows, self._speed(1))]
        if rows_in_groups := sum(plain_sizes) - single_rows:
            rows_and_speeds.append((rows_in_groups, self._speed(max(plain_sizes))))
        self.asked_model.share_lower_blocks(
            self.asked_model.conversation(prompts.NOTES[0]), self.read_blocks
        )
        for block, cell_count in cells_by_block.items():
            speed = self._speed(self._rows_together, block)
            rows_and_speeds.append((cell_count * rows_of_cell, speed))
        tokens = self._row_tokens
        seconds = sum(rows * tokens * speed.seconds_a_token for rows, speed in rows_and_speeds)
        cpu_seconds = sum(
            rows * tokens * speed.cpu_seconds_a_token for rows, speed in rows_and_speeds
        )
        return seconds, cpu_seconds, max(speed.memory for _, speed in rows_and_speeds)

    @cached_property
    def vector_labels(self) -> list[prompts.VectorLabel]:
        """The vectors, concepts first."""
        return prompts.vector_labels(self.words.concepts)

    @cached_property
    def _row_tokens(self) -> int:
        """Tokens that are read for one vector after one note."""
        conversation = self._note(0)
        branch_tokens = sum(branch.token_count for branch in self._branches)
        tokens = len(conversation.tokens) + branch_tokens
        if not self.is_of_sentences:
            tokens += len(self.asked_model.neutral_tokens(conversation))
        return tokens

    @cached_property
    def _branches(self) -> "list[TokenBranch]":
        """What is asked after a note."""
        if self.is_of_sentences:
            return self.asked_model.sentence_branches(self._note(0))
        return self.asked_model.question_branches(self._note(0))

    def _check_context(self) -> None:
        """Refuse a model that cannot hold the longest note with what follows it.

        Raises:
            InputError: Its context is shorter.
        """
        judge = self.judge
        if self._longest_reading > judge.context:
            raise InputError(
                f"{judge.name} reads at most {judge.context} tokens, and the longest note with a "
                f"question has {self._longest_reading}: use a model with a longer context"
            )

    @cached_property
    def _longest_reading(self) -> int:
        """Tokens of the longest note with the longest that is asked or written after it."""
        from selfprobe.mechanism.injection import WRITTEN_TOKENS

        plain_notes = self._plain_sentences() if self.is_of_sentences else self._plain_notes()
        note_lengths = [len(conversation.tokens) for conversation in plain_notes.values()]
        later_lengths = [branch.longest for branch in self._branches]
        if not self.is_of_sentences:
            conversation = self._note(0)
            writing = prompts.AskedQuestion("write", prompts.WRITING_PROMPT)
            writing_tokens = self.asked_model.asked_after(conversation, writing)
            later_lengths.append(len(writing_tokens) + WRITTEN_TOKENS)
            later_lengths.append(len(self.asked_model.neutral_tokens(conversation)))
        return max(note_lengths) + max(later_lengths)

    @property
    def _rows_of_vector(self) -> int:
        """Number of places on which each vector is added."""
        return prompts.SENTENCE_COUNT if self.is_of_sentences else 1

    def _speed(self, rows: int, block: int | None = None) -> "ReadingSpeed":
        """How fast as many rows are read together, by one note and the questions that begin alike;
        with a vector in each row after a block where one is given.
        """
        from selfprobe.mechanism.injection import measured_speed

        return measured_speed(self.asked_model, self._note(0), self._branches, rows, block)

    def _note(self, number: int) -> "Conversation":
        """The note of a number, as it is read under vectors."""
        if self.is_of_sentences:
            return self.asked_model.sentence_conversation(prompts.SENTENCE_NOTES[number])
        return self.asked_model.conversation(prompts.NOTES[number])

    @property
    def _rows_at_once(self) -> int:
        return ROWS_ON_CPU if self.judge.device.type == "cpu" else ROWS_ON_DEVICE

    @property
    def _rows_together(self) -> int:
        return min(self._rows_at_once, len(self.vector_labels) * self._rows_of_vector)

    # ---- reading

    def _check_stored_cells(self) -> None:
        """Hold the cells that are asked for against those that the folder has.

        Raises:
            InputError: Some would be left out, and p-values are for the choice among all.
        """
        stored_cells = {
            (int(match["block"]), float(match["dose"]))
            for file in (self.folder / "readings").glob("block-*")
            if (match := CELL_NAME.match(file.name))
        }
        if not stored_cells <= set(self.cells):
            blocks = sorted({block for block, _ in stored_cells} | set(self.read_blocks))
            doses = sorted({dose for _, dose in stored_cells} | set(self.doses))
            block_text = ",".join(map(str, blocks))
            dose_text = ",".join(f"{dose:g}" for dose in doses)
            raise InputError(
                f"{self.out} holds readings of more cells, and an answer is corrected for all that "
                f"were read: give --layers {block_text} --doses {dose_text}, or another --out"
            )

    def _unread_cells(self) -> Iterator[tuple[int, float, int]]:
        """Block, dose and note of each reading that is not in the folder."""
        for note_index in range(self.notes):
            for block, dose in self.cells:
                if self._stored(_cell_name(block, dose, note_index)) is None:
                    yield block, dose, note_index

    def _unread_plain(self) -> Iterator[tuple[str, "Conversation"]]:
        """Name and turns of each plain reading that is not in the folder."""
        plain_notes = self._plain_sentences() if self.is_of_sentences else self._plain_notes()
        for name, conversation in plain_notes.items():
            if self._stored(name) is None:
                yield name, conversation

    def _plain_notes(self) -> "dict[str, Conversation]":
        """Name → turns that are read without a vector."""
        texts = {f"clean-{number}": note for number, note in enumerate(prompts.NOTES)}
        texts |= {f"odd-{index}": text for index, text in enumerate(prompts.ODD_NOTES)}
        for word in self.words.concepts:
            for index, note in enumerate(prompts.NOTES[: self.notes]):
                texts[f"written-{word}-{index}"] = note + prompts.CEILING.format(word=word)
        return {name: self.asked_model.conversation(text) for name, text in texts.items()}

    def _plain_sentences(self) -> "dict[str, Conversation]":
        """Name → sentences that are read without a vector; each concept's thought in one of them."""
        sentences_of_name = {}
        for index, sentences in enumerate(prompts.SENTENCE_NOTES[: self.notes]):
            sentences_of_name[f"clean-{index}"] = list(sentences)
            for concept, word in enumerate(self.words.concepts):
                written = list(sentences)
                written[concept % len(written)] += prompts.CEILING.format(word=word)
                sentences_of_name[f"written-{word}-{index}"] = written
        return {
            name: self.asked_model.sentence_conversation(sentences)
            for name, sentences in sentences_of_name.items()
        }

    def _stored(self, name: str) -> Arrays | None:
        return stored_arrays(self.folder / "readings", name)

    def work(self, progress: Progress) -> None:
        """Read what is not in the folder yet."""
        from selfprobe.probes.harvesting import Meter

        self.claim_folder(self.state)
        self._check_stored_cells()
        self._check_context()
        unread_plain, unread_cells = list(self._unread_plain()), list(self._unread_cells())
        folder = self.folder / "readings"
        if unread_plain or unread_cells:
            plain_note = self.asked_model.conversation(prompts.NOTES[0])
            self.asked_model.check_cache(plain_note)
            self.asked_model.share_lower_blocks(plain_note, self.read_blocks)
            vectors = len(self.vector_labels)
            vector_tokens = vectors * self._rows_of_vector * self._row_tokens
            tokens = len(unread_plain) * self._row_tokens + len(unread_cells) * vector_tokens
            readings = len(unread_plain) + len(unread_cells)
            progress(f"{count_text(readings, 'reading')} to make in {folder}")
            meter = Meter(tokens, readings, progress, "readings")
            for group in self._plain_groups(unread_plain):
                self._read_plain(group)
                meter.add(len(group) * self._row_tokens, len(group))
            for block, dose, note in unread_cells:
                store_arrays(
                    folder,
                    _cell_name(block, dose, note),
                    self._read_under_vectors(block, dose, note),
                )
                meter.add(vector_tokens, 1)
            meter.finish()
        if not self.is_of_sentences:
            self._read_written_texts(progress)

    def _plain_groups(
        self, unread_plain: "Sequence[tuple[str, Conversation]]"
    ) -> "list[list[tuple[str, Conversation]]]":
        """Plain readings, those together that are made together."""
        from selfprobe.mechanism.injection import read_together

        conversations = [conversation for _, conversation in unread_plain]
        groups = read_together(conversations, self._rows_at_once)
        plain_groups = []
        for group in groups:
            plain_groups.append([unread_plain[index] for index in group])
        return plain_groups

    def _read_plain(self, group: "Sequence[tuple[str, Conversation]]") -> None:
        """Read some notes together, without a vector."""
        _, first = group[0]
        token_rows = tuple(conversation.tokens for _, conversation in group)
        arrays = self._read_rows(replace(first, token_rows=token_rows), None, len(group))
        for row, (name, _) in enumerate(group):
            own_arrays = {field: values[row : row + 1] for field, values in arrays.items()}
            store_arrays(self.folder / "readings", name, own_arrays)

    @cached_property
    def vectors(self) -> dict[int, Any]:
        """Vectors of unit length, block → [vector, width]; concepts first."""
        from selfprobe.mechanism.injection import injected_vectors

        return injected_vectors(
            self.asked_model, self.words.concepts, self.words.base, self.read_blocks
        )

    @cached_property
    def _mean_lengths(self) -> list[dict[int, float]]:
        """Mean length of the states of each note, by block."""
        return [
            self.asked_model.mean_lengths(self._note(number), self.read_blocks)
            for number in range(self.notes)
        ]

    def _injections(
        self, block: int, dose: float, note: int, *, vector_count: int | None = None
    ) -> "Iterator[Injection]":
        """The first vectors (default: all) at their length, a few rows at a time; on each sentence
        in turn where one is to be found.
        """
        from selfprobe.mechanism.injection import Injection

        vectors = self.vectors[block][:vector_count]
        scaled = vectors * dose * self._mean_lengths[note][block]
        rows = scaled.repeat_interleave(self._rows_of_vector, dim=0)
        spans = self._note(note).sentence_spans * len(vectors)
        for start in range(0, len(rows), self._rows_at_once):
            end = start + self._rows_at_once
            yield Injection(
                block, rows[start:end], everywhere=self.where == "all", spans=spans[start:end]
            )

    def _read_under_vectors(self, block: int, dose: float, note: int) -> Arrays:
        """What is read under each vector at a block and dose after a note."""
        conversation = self._note(note)
        parts = [
            self._read_rows(conversation, injection, len(injection.vectors))
            for injection in self._injections(block, dose, note)
        ]
        arrays: Arrays = {}
        for name in parts[0]:
            arrays[name] = np.concatenate([part[name] for part in parts])
        return arrays

    def _read_rows(
        self, conversation: "Conversation", injection: "Injection | None", rows: int
    ) -> Arrays:
        if self.is_of_sentences:
            return vars(self.asked_model.read_sentences(conversation, injection, rows))
        return vars(self.asked_model.read_cell(conversation, injection, rows))

    def _read_written_texts(self, progress: Progress) -> None:
        """What is written under each concept at the cell of the naming claim, as a reader names it."""
        numbers = InjectionNumbers(self._readings_without_reader)
        cell = numbers.naming_cell
        if cell < 0 or self._stored(self._reader_name(cell)) is not None:
            return
        block, dose = self.cells[cell]
        progress(f"block {block}, dose {dose:g}: writing under each concept, for the reader")
        conversation = self.asked_model.conversation(prompts.NOTES[0])
        texts = []
        concept_count = len(self.words.concepts)
        for injection in self._injections(block, dose, 0, vector_count=concept_count):
            texts += self.asked_model.written_texts(conversation, injection, len(injection.vectors))
        log_probs = self._reading_model.read_texts(texts)
        arrays = {"log_probs": log_probs, "texts": np.array(texts)}
        store_arrays(self.folder / "readings", self._reader_name(cell), arrays)

    @property
    def _reading_model(self) -> "AskedModel":
        if self.reader is None:
            return self.asked_model
        from selfprobe.mechanism.injection import AskedModel
        from selfprobe.probes.model import load_model

        loading = self.loading | {"revision": None}
        reader = load_model(self.reader, chat=self.judge.chat, **loading)
        return AskedModel(reader, self.asked_model.words)

    def _reader_name(self, cell: int) -> str:
        block, dose = self.cells[cell]
        reader = digest(self.reader)[:8] if self.reader else "itself"
        return f"reader-{reader}-block-{block}-dose-{dose}"

    # ---- what was read

    @cached_property
    def _readings_without_reader(self) -> InjectionReadings:
        concepts = self.words.concepts
        stacked = self._stacked_cells
        vector_names = [label.name for label in self.vector_labels]
        vector_kinds = [label.kind.value for label in self.vector_labels]
        clean_names = [f"clean-{number}" for number in range(len(prompts.NOTES))]
        odd_names = [f"odd-{number}" for number in range(len(prompts.ODD_NOTES))]
        written_names = []
        for word in concepts:
            written_names += [f"written-{word}-{note}" for note in range(self.notes)]
        return InjectionReadings(
            model=cut_name(self.judge.name),
            concepts=concepts,
            vector_names=tuple(vector_names),
            vector_kinds=tuple(vector_kinds),
            cells=self.cells,
            log_odds=stacked("log_odds"),
            masses=stacked("masses"),
            names=stacked("names"),
            neutral=stacked("neutral"),
            clean=self._plain(clean_names),
            odd=self._plain(odd_names),
            written=self._plain(written_names),
        )

    def _stacked_cells(self, name: str) -> Any:
        """Arrays of this name of all cells, [note, cell, …]."""
        arrays = []
        for note in range(self.notes):
            cells = [
                self._stored(_cell_name(block, dose, note)) or {} for block, dose in self.cells
            ]
            arrays.append([cell[name] for cell in cells])
        return np.array(arrays, dtype=float)

    @property
    def _sentence_readings(self) -> SentenceReadings:
        concepts = self.words.concepts
        clean = [self._stored(f"clean-{note}") or {} for note in range(self.notes)]
        clean_log_probs = [reading["log_probs"][0] for reading in clean]
        clean_masses = [reading["masses"][0] for reading in clean]
        written_log_probs = []
        for word in concepts:
            written = [self._stored(f"written-{word}-{note}") or {} for note in range(self.notes)]
            written_log_probs.append([reading["log_probs"][0] for reading in written])
        return SentenceReadings(
            model=cut_name(self.judge.name),
            concepts=concepts,
            cells=self.cells,
            log_probs=self._by_sentence("log_probs"),
            masses=self._by_sentence("masses"),
            clean_log_probs=np.array(clean_log_probs, dtype=float),
            clean_masses=np.array(clean_masses, dtype=float),
            written_log_probs=np.array(written_log_probs, dtype=float),
            written_sentences=np.arange(len(concepts)) % prompts.SENTENCE_COUNT,
        )

    def _by_sentence(self, name: str) -> Any:
        """Arrays of all cells whose rows are vectors on sentences, [note, cell, vector, sentence,
        …].
        """
        arrays = self._stacked_cells(name)
        notes, cells, _, *further = arrays.shape
        return arrays.reshape(notes, cells, -1, prompts.SENTENCE_COUNT, *further)

    def _plain(self, names: Sequence[str]) -> PlainReadings:
        arrays = [self._stored(name) or {} for name in names]
        columns = []
        for field in ("log_odds", "masses", "names", "neutral"):
            first_rows = [array[field][0] for array in arrays]
            columns.append(np.array(first_rows, dtype=float))
        return PlainReadings(*columns)

    def folder_content(self) -> "FolderContents":
        """What is in the folder."""
        if self.is_of_sentences:
            return FolderContents(SentenceNumbers(self._sentence_readings), self.run_record)
        readings = self._readings_without_reader
        cell = InjectionNumbers(readings).naming_cell
        stored = self._stored(self._reader_name(cell)) if cell >= 0 else None
        if stored is not None:
            readings = replace(readings, reader=np.array(stored["log_probs"], dtype=float))
        return FolderContents(InjectionNumbers(readings), self.run_record)

    @classmethod
    def page(cls, folder_contents: "FolderContents") -> page.Page:
        """Two answers that are never one, each with its picture, tables and checks; one where a
        sentence is to be found.
        """
        if isinstance(folder_contents.numbers, SentenceNumbers):
            return _locating_page(folder_contents, folder_contents.numbers)
        parts = {
            "notices": _noticing_page(folder_contents, folder_contents.numbers),
            "names": _naming_page(folder_contents, folder_contents.numbers),
        }
        return page.Page(
            "Does a model notice a thought that is put into it, and can it name it?",
            parts=parts,
            tables=parts["notices"].tables,
            notes=[f"{part.title} {part.answer}" for part in parts.values()],
        )


CELL_NAME = re.compile(r"block-(?P<block>\d+)-dose-(?P<dose>[\d.e+-]+)-note-\d+")
"""Names of `_cell_name`."""


def _cell_name(block: int, dose: float, note: int) -> str:
    return f"block-{block}-dose-{dose}-note-{note}"


@dataclass(frozen=True)
class UsedWords:
    """Words that are one token of the model."""

    concepts: tuple[str, ...]
    base: tuple[str, ...]
    left_out: tuple[str, ...]
    """Concepts of several tokens."""


@dataclass(frozen=True)
class FolderContents:
    """Contents of the folder."""

    numbers: InjectionNumbers | SentenceNumbers
    state: dict[str, Any]
    """Settings of the run, from run.json."""

    @property
    def run_line(self) -> str:
        """Sentence on the run that the folder holds."""
        state = self.state
        tokens = TOKENS_UNDER_VECTORS[state["where"]]
        return (
            f"{state['model']}, revision {state['revision']}, {state['precision']}; vectors were "
            f"added on the tokens of {tokens}; selfprobe {state['selfprobe']}."
        )


# ---- tables

DOSE_HEADING = Heading("dose", "Length of the vector over that of the states.", number)


@dataclass(frozen=True)
class CellRow:
    """What is read at each block and dose."""

    block: Annotated[int, BLOCK_HEADING]
    dose: Annotated[float, DOSE_HEADING]
    gate: Annotated[str, Heading("can be asked", "Whether the cell may decide.")]
    noticing: Annotated[
        Estimate,
        Heading("notices", "Noticing score of concepts.", signed_interval),
    ]
    controls: Annotated[
        Estimate,
        Heading(
            "without a concept",
            "Noticing score of the other vectors that come closest: random ones, concepts with "
            "permuted coordinates, or differences of two words.",
            signed_interval,
        ),
    ]
    naming: Annotated[
        Estimate,
        Heading("names", "Naming score of the thought.", signed_interval),
    ]
    any_word: Annotated[
        Estimate,
        Heading("any word", "Naming score of any word.", signed_interval),
    ]
    lift: Annotated[
        float,
        Heading("rise of Yes", "Rise of the log-odds of Yes, without a control.", signed_number),
    ]
    named_right: Annotated[
        int, Heading("named", "Concepts whose name is the likeliest of all concepts.")
    ]
    slope: Annotated[
        float, Heading("facts kept", "Share of the facts' signals that is left.", number)
    ]
    mass: Annotated[float, Heading("P(Yes or No)", "Probability of the answers.", number)]
    facts_right: Annotated[float, Heading("facts right", "Share of facts that are right.", number)]
    text_loss: Annotated[
        float, Heading("text loss", "Nats a token that a neutral text loses.", signed_number)
    ]


def cell_rows(numbers: InjectionNumbers) -> list[CellRow]:
    """A row a cell."""
    readings = numbers.readings
    rows = []
    for cell, ((block, dose), gate) in enumerate(zip(readings.cells, numbers.gates, strict=True)):
        slopes = numbers.slopes[:, cell, : readings.concept_count]
        rows.append(
            CellRow(
                block=block,
                dose=dose,
                gate="yes" if gate.passes else "no",
                noticing=numbers.noticing(cell),
                controls=numbers.kind_noticing(cell, numbers.closest_kind(cell)),
                naming=numbers.naming(cell),
                any_word=numbers.naming(cell, prompts.Frame.ANY),
                lift=numbers.lift(cell),
                named_right=numbers.named_right(cell),
                slope=float(slopes.mean()),
                mass=gate.mass,
                facts_right=gate.facts_right,
                text_loss=gate.text_loss,
            )
        )
    return rows


@dataclass(frozen=True)
class VectorRow:
    """What each vector does at each block and dose."""

    block: Annotated[int, BLOCK_HEADING]
    dose: Annotated[float, DOSE_HEADING]
    vector: Annotated[str, Heading("vector", "The concept, or what else was added.")]
    kind: Annotated[str, Heading("kind", "What the vector is of.")]
    noticing: Annotated[
        float, Heading("notices", "Noticing score, a mean over notes and wordings.", signed_number)
    ]
    slope: Annotated[
        float, Heading("facts kept", "Share of the facts' signals that is left.", number)
    ]


def vector_rows(numbers: InjectionNumbers) -> list[VectorRow]:
    """A row a cell and vector."""
    readings = numbers.readings
    rows = []
    for cell, (block, dose) in enumerate(readings.cells):
        scores = numbers.scores[cell].mean(axis=(1, 2))
        slopes = numbers.slopes[:, cell].mean(axis=0)
        for index, (name, kind) in enumerate(
            zip(readings.vector_names, readings.vector_kinds, strict=True)
        ):
            row = VectorRow(block, dose, name, kind, float(scores[index]), float(slopes[index]))
            rows.append(row)
    return rows


# ---- pages


def _count_text(count: Estimate) -> str:
    return f"{count.value:.0f}"


CONTROL_LABELS = {
    prompts.VectorKind.GAUSSIAN.value: "random\nvectors",
    prompts.VectorKind.PERMUTED.value: "permuted\nconcepts",
    prompts.VectorKind.WORDS.value: "differences of\ntwo words",
}
"""Kinds of vectors without a concept, as a picture says them."""


def _share_text(share: Estimate) -> str:
    return percent(share.value)


BLOCKING_CHECKS = {
    "answers": "answering as it is asked to without a vector",
    "facts": "knowing plain facts without a vector",
    "can_be_asked": "able to answer under a vector",
    "concepts": "asked about enough concepts",
}
"""What both claims need."""
BLOCKING_UNMET = {
    "answers": "does not answer as it is asked to, even without a vector",
    "facts": "knows no plain fact well enough to compare with, even without a vector",
    "can_be_asked": "loses its answers, facts or text at every block and dose",
    "concepts": "was asked about few concepts",
}
BLOCKING_UNITS = {
    "answers": _share_text,
    "facts": _share_text,
    "can_be_asked": _share_text,
    "concepts": _count_text,
}
NOTICING_WORDS = page.ClaimWords(
    yes="notices the thought: its answer moves by {effect} in log-odds {place}; closest: {competitor}",
    no="moves its answer by less than {smallest} in log-odds: {effect}",
    explained="moves its answer by {effect} in log-odds {place}, no more than {competitor}",
    checks={
        **BLOCKING_CHECKS,
        "ceiling": "reporting a thought that is written as text",
        "signal": "noticing the thought at some block and dose",
        "size": "noticing it by as much as matters",
        "wordings": "noticing it in other wordings too",
        "beyond_controls": "noticing concepts more than each kind of vectors without one",
        "beyond_odd_text": "noticing concepts more than odd text",
    },
    unmet=BLOCKING_UNMET,
    units=BLOCKING_UNITS,
    write=signed_interval,
)
NAMING_WORDS = page.ClaimWords(
    yes="names the thought: its word gains {effect} {place}; closest: {competitor}",
    no="gives the thought's word less than {smallest} nats: {effect}",
    explained="gives the thought's word {effect} {place}, no more than {competitor}",
    checks={
        **BLOCKING_CHECKS,
        "ceiling": "naming a thought that is written as text",
        "signal": "naming the thought at some block and dose",
        "size": "naming it by as much as matters",
        "beyond_other": "naming it more than when asked about another assistant",
        "beyond_any_word": "naming it more than when asked for any word",
        "beyond_reader": "naming it better than a reader of what it writes",
    },
    unmet=BLOCKING_UNMET,
    units=BLOCKING_UNITS,
    write=signed_interval,
)


LOCATING_WORDS = page.ClaimWords(
    yes="finds the disturbed sentence: it gains {effect} {place} beyond the question for the "
    "longest one",
    no="gives the disturbed sentence less than {smallest} nats beyond the question for the longest "
    "one: {effect}",
    checks={
        **BLOCKING_CHECKS,
        "ceiling": "finding a thought that is written into a sentence",
        "signal": "finding the sentence beyond the question for the longest one",
        "size": "finding it by as much as matters",
        "chosen": "choosing it when asked which one",
    },
    unmet={**BLOCKING_UNMET, "can_be_asked": "hardly names a sentence at any block and dose"},
    units=BLOCKING_UNITS,
    write=signed_interval,
)


def _noticing_page(folder_contents: FolderContents, numbers: InjectionNumbers) -> page.Page:
    """The page of the first claim."""
    rows = cell_rows(numbers)
    cell = numbers.noticing_cell
    estimate_by_label = {}
    if cell >= 0:
        estimate_by_label = {"concepts": numbers.noticing(cell)}
        for kind in numbers.control_kinds:
            estimate_by_label[CONTROL_LABELS[kind]] = numbers.kind_noticing(cell, kind)
    estimate_by_label |= {
        "odd text": numbers.odd_noticing,
        "the thought\nas text": numbers.written_noticing,
    }
    caption = _caption("Noticing", numbers, cell)
    return _claim_page(
        folder_contents,
        "Does it notice a thought that is put into it?",
        noticing_claim(numbers),
        NOTICING_WORDS,
        picture=_bars("noticing", estimate_by_label, caption, "addition to the signal, log-odds"),
        table=page.Table(
            rows, columns_of(CellRow, "block", "dose", "gate", "noticing", "controls")
        ),
        tables={
            "cells": RowTable(CellRow, rows),
            "vectors": RowTable(VectorRow, vector_rows(numbers), on_page=False),
        },
        reason_blocks=[_field_line(numbers), _alarm_line(numbers), NO_AWARENESS_NOTE],
        method=[INJECTION_METHOD, NOTICING_METHOD, GATE_METHOD],
    )


def _naming_page(folder_contents: FolderContents, numbers: InjectionNumbers) -> page.Page:
    """The page of the second claim."""
    rows = cell_rows(numbers)
    cell = numbers.naming_cell
    estimate_by_label = {}
    if cell >= 0:
        estimate_by_label = {
            "the thought": numbers.naming(cell),
            "another\nassistant's": numbers.naming(cell, prompts.Frame.OTHER),
            "any word": numbers.naming(cell, prompts.Frame.ANY),
        }
    estimate_by_label["the thought\nas text"] = numbers.written_naming
    if numbers.readings.reader is not None:
        estimate_by_label["a reader of what\nit writes"] = numbers.reader_naming
    caption = _caption("Naming", numbers, cell)
    return _claim_page(
        folder_contents,
        "Can it name the thought?",
        naming_claim(numbers),
        NAMING_WORDS,
        picture=_bars("naming", estimate_by_label, caption, "addition to the log-probability"),
        table=page.Table(rows, columns_of(CellRow, "block", "dose", "gate", "naming", "any_word")),
        tables={"cells": RowTable(CellRow, rows)},
        reason_blocks=[_named_line(numbers), NO_AWARENESS_NOTE],
        method=[INJECTION_METHOD, NAMING_METHOD, GATE_METHOD],
    )


@dataclass(frozen=True)
class LocatingRow:
    """What is read at each block and dose where a sentence is to be found."""

    block: Annotated[int, BLOCK_HEADING]
    dose: Annotated[float, DOSE_HEADING]
    gate: Annotated[str, Heading("can be asked", "Whether the cell may decide.")]
    which: Annotated[
        Estimate,
        Heading(
            "which one?",
            "Gain of the disturbed sentence, in nats.",
            signed_interval,
        ),
    ]
    longest: Annotated[
        Estimate,
        Heading(
            "which is longest?",
            "The same where the longest sentence is asked for.",
            signed_interval,
        ),
    ]
    controls: Annotated[
        Estimate,
        Heading(
            "without a concept",
            "The same of other vectors, asked which one it is.",
            signed_interval,
        ),
    ]
    which_right: Annotated[
        float, Heading("which one? right", "Share; a guess has a fifth.", percent)
    ]
    longest_right: Annotated[
        float, Heading("longest, the disturbed one", "Share; a guess has a fifth.", percent)
    ]
    mass: Annotated[float, Heading("P(a number)", "Probability of the answers.", number)]


def locating_rows(numbers: SentenceNumbers) -> list[LocatingRow]:
    """A row a cell."""
    rows = []
    for cell, (block, dose) in enumerate(numbers.readings.cells):
        rows.append(
            LocatingRow(
                block=block,
                dose=dose,
                gate="yes" if numbers.passing[cell] else "no",
                which=numbers.locating(cell),
                longest=numbers.locating(cell, longest=True),
                controls=numbers.control_locating(cell),
                which_right=numbers.share_right(cell),
                longest_right=numbers.share_right(cell, longest=True),
                mass=float(numbers.masses[cell]),
            )
        )
    return rows


def _locating_page(folder_contents: FolderContents, numbers: SentenceNumbers) -> page.Page:
    """The page where a sentence is to be found."""
    rows = locating_rows(numbers)
    cell_index = numbers.cell
    estimate_by_label = {}
    if cell_index >= 0:
        estimate_by_label = {
            "which one?": rows[cell_index].which,
            "which is\nthe longest?": rows[cell_index].longest,
            "which one?, without\na concept": rows[cell_index].controls,
        }
    estimate_by_label["the thought\nas text"] = numbers.written_locating
    best_row = max(rows, key=lambda row: row.which_right)
    right_line = (
        f"Others report how often it is right, where that is largest: "
        f"{percent(best_row.which_right)} at block {best_row.block}, dose {best_row.dose:g}; asked "
        f"which is the longest it takes the disturbed sentence in {percent(best_row.longest_right)}."
    )
    return _claim_page(
        folder_contents,
        "Does it know on which of five sentences a vector was put?",
        locating_claim(numbers),
        LOCATING_WORDS,
        picture=_bars(
            "locating",
            estimate_by_label,
            _caption("Locating", numbers, cell_index),
            "addition to the log-probability",
        ),
        table=page.Table(
            rows, columns_of(LocatingRow, "block", "dose", "gate", "which", "longest")
        ),
        tables={"cells": RowTable(LocatingRow, rows)},
        reason_blocks=[right_line, NO_AWARENESS_NOTE],
        method=[INJECTION_METHOD, LOCATING_METHOD],
    )


def _place_text(numbers: InjectionNumbers | SentenceNumbers, cell: int) -> str:
    block, dose = numbers.readings.cells[cell]
    return f"block {block}, dose {dose:g}"


def _caption(score: str, numbers: InjectionNumbers | SentenceNumbers, cell: int) -> str:
    """Caption of a picture at a cell; without one that can be asked nothing under a vector is drawn."""
    if cell < 0:
        return f"{score} score without a vector: no block and dose can be asked. 95 % intervals."
    return f"{score} score at {_place_text(numbers, cell)}. 95 % intervals."


def _bars(
    file_stem: str, estimate_by_label: dict[str, Estimate], caption: str, axis_label: str
) -> page.Picture:
    rows = {name: {"": estimate} for name, estimate in estimate_by_label.items()}
    return bar_rows(file_stem, rows, caption=caption, axis=axis_label, scale="signed", line=0)


def _claim_page(
    folder_contents: FolderContents,
    title: str,
    claim: Claim,
    words: page.ClaimWords,
    *,
    picture: page.Picture,
    table: page.Table,
    tables: dict[str, RowTable],
    reason_blocks: Sequence[page.Block],
    method: Sequence[page.Block],
) -> page.Page:
    """The page of one claim, with the run under Runs."""
    claim_page = page.claim_page(
        title,
        [claim],
        words,
        picture=picture,
        table=table,
        tables=tables,
        method=method,
        notes={claim.subject: reason_blocks},
        terminal_lines=[NO_AWARENESS_NOTE],
    )
    return replace(
        claim_page, sections=[*claim_page.sections, *page.headings(runs=[folder_contents.run_line])]
    )


def _field_line(numbers: InjectionNumbers) -> str:
    """What others report of the same readings: the best of all cells."""
    lifts = [numbers.lift(cell) for cell in range(len(numbers.readings.cells))]
    best_cell = int(np.argmax(lifts))
    return (
        f"Others report the rise of Yes alone, where it is largest: "
        f"{signed_number(lifts[best_cell])} in log-odds at {_place_text(numbers, best_cell)}. A "
        "bias towards Yes, and flattened answers, raise it too."
    )


def _named_line(numbers: InjectionNumbers) -> str:
    """What others report of names: the best of all cells."""
    counts = [numbers.named_right(cell) for cell in range(len(numbers.readings.cells))]
    best_cell = int(np.argmax(counts))
    return (
        f"The own name is the likeliest of {numbers.readings.concept_count} for "
        f"{counts[best_cell]} concepts at {_place_text(numbers, best_cell)}, which is what others "
        "report: it counts words that are said of every vector."
    )


def _alarm_line(numbers: InjectionNumbers) -> str:
    """False alarms without a vector, with the upper end of their interval."""
    alarms, asked = numbers.false_alarms
    upper = float(beta.ppf(0.95, alarms + 1, asked - alarms)) if alarms < asked else 1.0
    return (
        f"Without a vector it says Yes to {alarms} of {asked} questions, so false alarms may be as "
        f"frequent as {percent(upper)}."
    )
