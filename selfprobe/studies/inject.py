"""Does a model notice a thought that is put into it, and can it name it? The command `mechanism
inject`.

Paper 003 (§2, Appendix C) separates introspection of policies, which the tasks measure, from that
of activations, which it defers. Here a concept's direction is added to the residual stream while an
earlier note is read, and the model is asked about it afterwards. The folder holds:

    run.json                       what it is of: model, revision, precision, concepts, questions
    readings/…npz                  what was read: of a block, a dose and a note; of plain notes
    tables/, figures/, index.html  what the study makes of it
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator
from scipy.stats import beta

from selfprobe import page
from selfprobe.data import Table, load
from selfprobe.data.pairs import digest
from selfprobe.errors import InputError
from selfprobe.mechanism import injection_prompts as prompts
from selfprobe.page.columns import Heading, RowTable, columns_of
from selfprobe.page.numerals import interval_text, number, percent, signed_number
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
from selfprobe.study.arrays import Arrays, store_arrays, stored_arrays
from selfprobe.study.local import Blocks, LocalStudy, OpenModel, Progress, blocks

if TYPE_CHECKING:
    from selfprobe.mechanism.injection import AskedModel, Injection

Where = Literal["earlier", "all"]

READ_BLOCKS = 6
"""Number of blocks that are read unless --layers says others."""
ROWS_ON_CPU = 32
ROWS_ON_DEVICE = 128
"""Largest number of vectors that are read together."""
FEWEST_CONCEPTS = 3
"""Smallest number of concepts with which names can be told apart."""
NOT = (
    "It does not show awareness of thoughts in general: vectors of single words were added, and "
    "answers of one token were read."
)
METHOD = (
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
        description="Tokens under vectors: those of the note, or all later ones too.",
    )
    reader: OpenModel | None = Field(
        None,
        description="Model that names concepts from what is written. Default: the model itself.",
    )
    out: str = Field("injection", description="Folder of what is read, the tables and the page.")

    @field_validator("doses")
    @classmethod
    def _are_doses(cls, doses: tuple[float, ...]) -> tuple[float, ...]:
        wrong = [dose for dose in doses if not (math.isfinite(dose) and dose > 0)]
        if wrong or not doses:
            given = ", ".join(f"{dose:g}" for dose in wrong) or "none"
            raise ValueError(
                f"a dose is above 0, and plain notes are read anyway; got {given}: take --doses .5,1"
            )
        return tuple(sorted(set(doses)))

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
        rows = [(str(row["word"]), str(row.get("use") or "concept")) for row in self.table.rows]
        concepts = [word for word, use in rows if use != "base"]
        base_words = [word for word, use in rows if use == "base"]
        if not base_words:
            base_words = [
                str(row["word"]) for row in load("injection", "word", ("use",)).rows
                if row.get("use") == "base" and row["word"] not in concepts
            ]  # fmt: skip
        every_single = [word for word in concepts if self._is_one_token(word)]
        left_out = [word for word in concepts if word not in every_single]
        single = every_single[: self.limit]
        single_base = [word for word in base_words if self._is_one_token(word)]
        if len(single) < FEWEST_CONCEPTS or len(single_base) < FEWEST_CONCEPTS:
            example = f" ({left_out[0]} is several)" if left_out else ""
            raise InputError(
                f"{len(single)} concepts and {len(single_base)} base words of {self.concepts} are "
                f"one token of {self.judge.name}{example}; expected at least {FEWEST_CONCEPTS} of "
                "each: give shorter and commoner words, or a larger --limit"
            )
        return UsedWords(tuple(single), tuple(single_base), tuple(left_out))

    def _is_one_token(self, word: str) -> bool:
        tokens = self.judge.tokenizer(f" {word}", add_special_tokens=False)["input_ids"]
        return len(tokens) == 1

    @cached_property
    def asked(self) -> "AskedModel":
        """The model with the questions as its tokens."""
        from selfprobe.mechanism.injection import AskedModel

        return AskedModel(self.judge, [*self.words.concepts, *self.words.base])

    @property
    def read_blocks(self) -> tuple[int, ...]:
        """Blocks after which vectors are added.

        Raises:
            InputError: The model has no such block.
        """
        count = len(self.judge.blocks)
        wanted = blocks(self.layers)
        if not wanted:
            depths = np.linspace(0.25, 0.85, READ_BLOCKS)
            return tuple(sorted({min(int(depth * count), count - 1) for depth in depths}))
        if wanted[-1] >= count:
            raise InputError(
                f"{self.judge.name} has blocks 0..{count - 1}, got --layers {self.layers}"
            )
        return wanted

    @property
    def cells(self) -> tuple[tuple[int, float], ...]:
        """Block and dose of each cell."""
        return tuple((block, dose) for block in self.read_blocks for dose in self.doses)

    @property
    def state(self) -> dict[str, Any]:
        """Settings that the folder belongs to."""
        judge, words = self.judge, self.words
        questions = [*prompts.yes_no_questions(), *prompts.naming_questions()]
        fixed_texts = (
            *prompts.NOTES,
            *prompts.ODD_NOTES,
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
        from selfprobe.probes.model import bytes_text
        from selfprobe.probes.plan import duration_text

        self.claim_folder(self.state, dry=True)
        judge, words = self.judge, self.words
        unread_cells = list(self._unread_cells())
        unread_plain = list(self._unread_plain())
        vectors = len(self.vector_labels)
        rows = len(unread_cells) * vectors + len(unread_plain)
        tokens = rows * self._row_tokens
        weights = sum(p.numel() * p.element_size() for p in judge.model.parameters())
        left_out = words.left_out
        return [
            f"{judge.name}: {len(judge.blocks)} blocks of width {judge.d_model}",
            f"Concepts: {len(words.concepts)}, and "
            f"{vectors - len(words.concepts)} vectors without one",
            *([f"Left out, as several tokens: {', '.join(left_out[:5])}"] if left_out else []),
            f"Cells: {len(self.cells)} (blocks {', '.join(map(str, self.read_blocks))}; doses "
            f"{', '.join(f'{dose:g}' for dose in self.doses)}) after {self.notes} notes",
            f"To do: {tokens:,} tokens in {len(unread_cells)} readings of {vectors} vectors and "
            f"{len(unread_plain)} plain ones",
            f"Memory: weights {bytes_text(weights)}",
            f"Time: about {duration_text(tokens / self._rate)} (measured on one question)"
            if tokens
            else "Time: nothing is left to read",
        ]

    @cached_property
    def vector_labels(self) -> list[prompts.VectorLabel]:
        """The vectors, concepts first."""
        return prompts.vector_labels(self.words.concepts)

    @cached_property
    def _row_tokens(self) -> int:
        """Tokens that one vector takes after one note."""
        conversation = self.asked.conversation(prompts.NOTES[0])
        questions = [
            *self.asked.questions,
            *self.asked.naming_questions,
            prompts.AskedQuestion("neutral", prompts.NEUTRAL_TEXT),
        ]
        asked_tokens = sum(
            len(self.asked.asked_after(conversation, question)) for question in questions
        )
        return len(conversation.tokens) + asked_tokens

    @cached_property
    def _rate(self) -> float:
        """Tokens a second, by one note and one question under as many rows as are read together."""
        from time import perf_counter

        conversation = self.asked.conversation(prompts.NOTES[0])
        tokens = self.asked.asked_after(conversation, self.asked.questions[0])
        rows = min(self._rows_at_once, len(self.vector_labels))
        cache = self.asked.read_note(conversation, None, rows)
        self.asked.read_after(cache, tokens, None, rows, 1)
        start = perf_counter()
        for _ in range(2):
            self.asked.read_after(cache, tokens, None, rows, 1)
        return 2 * rows * len(tokens) / (perf_counter() - start)

    @property
    def _rows_at_once(self) -> int:
        return ROWS_ON_CPU if self.judge.device.type == "cpu" else ROWS_ON_DEVICE

    # ---- reading

    def _unread_cells(self) -> Iterator[tuple[int, float, int]]:
        """Block, dose and note of each reading that is not in the folder."""
        for note_index in range(self.notes):
            for block, dose in self.cells:
                if self._stored(_cell_name(block, dose, note_index)) is None:
                    yield block, dose, note_index

    def _unread_plain(self) -> Iterator[tuple[str, str]]:
        """Name and text of each plain reading that is not in the folder."""
        for name, text in self._plain_texts().items():
            if self._stored(name) is None:
                yield name, text

    def _plain_texts(self) -> dict[str, str]:
        """Name → text that is read without a vector."""
        texts = {f"clean-{number}": note for number, note in enumerate(prompts.NOTES)}
        texts |= {f"odd-{index}": text for index, text in enumerate(prompts.ODD_NOTES)}
        for word in self.words.concepts:
            for index, note in enumerate(prompts.NOTES[: self.notes]):
                texts[f"written-{word}-{index}"] = note + prompts.CEILING.format(word=word)
        return texts

    def _stored(self, name: str) -> Arrays | None:
        return stored_arrays(self.folder / "readings", name)

    def work(self, progress: Progress) -> None:
        """Read what is not in the folder yet."""
        from selfprobe.probes.harvesting import Meter

        self.claim_folder(self.state)
        unread_plain, unread_cells = list(self._unread_plain()), list(self._unread_cells())
        folder = self.folder / "readings"
        if unread_plain or unread_cells:
            self.asked.check_cache(self.asked.conversation(prompts.NOTES[0]))
            vectors = len(self.vector_labels)
            rows = len(unread_plain) + len(unread_cells) * vectors
            readings = len(unread_plain) + len(unread_cells)
            progress(f"{readings} readings to make in {folder}")
            meter = Meter(rows * self._row_tokens, readings, progress, "readings")
            for name, text in unread_plain:
                reading = self.asked.read_cell(self.asked.conversation(text), None, 1)
                store_arrays(folder, name, vars(reading))
                meter.add(self._row_tokens, 1)
            for block, dose, note in unread_cells:
                store_arrays(folder, _cell_name(block, dose, note), self._read(block, dose, note))
                meter.add(vectors * self._row_tokens, 1)
            meter.finish()
        self._read_written_texts(progress)

    @cached_property
    def vectors(self) -> dict[int, Any]:
        """Vectors of unit length, block → [vector, width]; concepts first."""
        from selfprobe.mechanism.injection import injected_vectors

        return injected_vectors(self.asked, self.words.concepts, self.words.base, self.read_blocks)

    @cached_property
    def _mean_lengths(self) -> list[dict[int, float]]:
        """Mean length of the states of each note, by block."""
        conversations = [self.asked.conversation(note) for note in prompts.NOTES[: self.notes]]
        return [
            self.asked.mean_lengths(conversation, self.read_blocks)
            for conversation in conversations
        ]

    def _injections(
        self, block: int, dose: float, note: int, *, vector_count: int | None = None
    ) -> "Iterator[Injection]":
        """The first vectors (default: all) at their length, a few rows at a time."""
        from selfprobe.mechanism.injection import Injection

        vectors = self.vectors[block][:vector_count]
        scaled = vectors * dose * self._mean_lengths[note][block]
        for rows in scaled.split(self._rows_at_once):
            yield Injection(block, rows, everywhere=self.where == "all")

    def _read(self, block: int, dose: float, note: int) -> Arrays:
        """What is read under each vector at a block and dose after a note."""
        conversation = self.asked.conversation(prompts.NOTES[note])
        parts = [
            vars(self.asked.read_cell(conversation, injection, len(injection.vectors)))
            for injection in self._injections(block, dose, note)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _read_written_texts(self, progress: Progress) -> None:
        """What is written under each concept at the cell of the naming claim, as a reader names it."""
        numbers = InjectionNumbers(self._readings_without_reader)
        cell = numbers.naming_cell
        if cell < 0 or self._stored(self._reader_name(cell)) is not None:
            return
        block, dose = self.cells[cell]
        progress(f"block {block}, dose {dose:g}: writing under each concept, for the reader")
        conversation = self.asked.conversation(prompts.NOTES[0])
        texts = []
        concept_count = len(self.words.concepts)
        for injection in self._injections(block, dose, 0, vector_count=concept_count):
            texts += self.asked.written_texts(conversation, injection, len(injection.vectors))
        log_probs = self._reading_model.read_texts(texts)
        arrays = {"log_probs": log_probs, "texts": np.array(texts)}
        store_arrays(self.folder / "readings", self._reader_name(cell), arrays)

    @property
    def _reading_model(self) -> "AskedModel":
        if self.reader is None:
            return self.asked
        from selfprobe.mechanism.injection import AskedModel
        from selfprobe.probes.model import load_model

        loading = self.loading | {"revision": None}
        reader = load_model(self.reader, chat=self.judge.chat, **loading)
        return AskedModel(reader, self.asked.words)

    def _reader_name(self, cell: int) -> str:
        block, dose = self.cells[cell]
        reader = digest(self.reader)[:8] if self.reader else "itself"
        return f"reader-{reader}-block-{block}-dose-{dose}"

    # ---- what was read

    @cached_property
    def _readings_without_reader(self) -> InjectionReadings:
        words, notes = self.words, range(self.notes)
        by_note = [
            [self._stored(_cell_name(block, dose, note)) or {} for block, dose in self.cells]
            for note in notes
        ]

        def stacked(name: str) -> Any:
            return np.array([[cell[name] for cell in cells] for cells in by_note], dtype=float)

        written = [f"written-{word}-{note}" for word in words.concepts for note in notes]
        return InjectionReadings(
            model=cut_name(self.judge.name),
            concepts=words.concepts,
            vector_names=tuple(label.name for label in self.vector_labels),
            vector_kinds=tuple(label.kind.value for label in self.vector_labels),
            cells=self.cells,
            log_odds=stacked("log_odds"),
            masses=stacked("masses"),
            names=stacked("names"),
            neutral=stacked("neutral"),
            clean=self._plain([f"clean-{number}" for number in range(len(prompts.NOTES))]),
            odd=self._plain([f"odd-{number}" for number in range(len(prompts.ODD_NOTES))]),
            written=self._plain(written),
        )

    def _plain(self, names: Sequence[str]) -> PlainReadings:
        arrays = [self._stored(name) or {} for name in names]
        fields = ("log_odds", "masses", "names", "neutral")
        return PlainReadings(
            *(np.array([array[field][0] for array in arrays], dtype=float) for field in fields)
        )

    def folder_content(self) -> "Found":
        """What is in the folder."""
        readings = self._readings_without_reader
        cell = InjectionNumbers(readings).naming_cell
        stored = self._stored(self._reader_name(cell)) if cell >= 0 else None
        if stored is not None:
            readings = replace(readings, reader=np.array(stored["log_probs"], dtype=float))
        return Found(InjectionNumbers(readings), self.run_record)

    @classmethod
    def page(cls, found: "Found") -> page.Page:
        """Two answers that are never one, each with its picture, tables and checks."""
        parts = {"notices": _noticing_page(found), "names": _naming_page(found)}
        return page.Page(
            "Does a model notice a thought that is put into it, and can it name it?",
            parts=parts,
            tables=parts["notices"].tables,
            notes=[part.answer for part in parts.values()],
        )


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
class Found:
    """Contents of the folder."""

    numbers: InjectionNumbers
    state: dict[str, Any]
    """Settings of the run, from run.json."""

    @property
    def run_line(self) -> str:
        """Sentence on the run that the folder holds."""
        state = self.state
        tokens = "the note" if state["where"] == "earlier" else "the note and all that follows"
        return (
            f"{state['model']}, revision {state['revision']}, {state['precision']}; vectors were "
            f"added on the tokens of {tokens}; selfprobe {state['selfprobe']}."
        )


# ---- tables


@dataclass(frozen=True)
class CellRow:
    """What is read at each block and dose."""

    block: Annotated[int, Heading("block", "Block of the transformer, from 0.")]
    dose: Annotated[
        float, Heading("dose", "Length of the vector over that of the states.", partial(number))
    ]
    gate: Annotated[str, Heading("can be asked", "Whether the cell may decide.")]
    noticing: Annotated[
        Estimate,
        Heading("notices", "Noticing score of concepts.", partial(interval_text, sign=True)),
    ]
    controls: Annotated[
        Estimate,
        Heading(
            "without a concept",
            "Noticing score of other vectors.",
            partial(interval_text, sign=True),
        ),
    ]
    naming: Annotated[
        Estimate,
        Heading("names", "Naming score of the thought.", partial(interval_text, sign=True)),
    ]
    any_word: Annotated[
        Estimate,
        Heading("any word", "Naming score of any word.", partial(interval_text, sign=True)),
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
                controls=numbers.control_noticing(cell),
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

    block: Annotated[int, Heading("block", "Block of the transformer, from 0.")]
    dose: Annotated[float, Heading("dose", "Length of the vector over that of the states.", number)]
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

signal_text = partial(interval_text, sign=True)


def _count_text(count: Estimate) -> str:
    return f"{count.value:.0f}"


BLOCKING_CHECKS = {
    "can_be_asked": "able to answer under a vector",
    "concepts": "asked about enough concepts",
}
"""What both claims need."""
BLOCKING_UNMET = {
    "can_be_asked": "answers Yes or No too rarely at every block and dose",
    "concepts": "was asked about few concepts",
}
BLOCKING_UNITS = {"can_be_asked": page.percent_interval, "concepts": _count_text}
NOTICING_WORDS = page.ClaimWords(
    yes="notices the thought: its answer moves by {effect} {place}; closest: {competitor}",
    no="moves its answer by less than {smallest} in log-odds: {effect}",
    explained="moves its answer by {effect} {place}, no more than {competitor}",
    checks={
        **BLOCKING_CHECKS,
        "ceiling": "reporting a thought that is written as text",
        "signal": "noticing the thought at some block and dose",
        "size": "noticing it by as much as matters",
        "wordings": "noticing it in other wordings too",
        "beyond_controls": "noticing concepts more than vectors without one",
        "beyond_odd_text": "noticing concepts more than odd text",
    },
    unmet=BLOCKING_UNMET,
    units=BLOCKING_UNITS,
    write=signal_text,
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
    write=signal_text,
)


def _noticing_page(found: Found) -> page.Page:
    """The page of the first claim."""
    numbers = found.numbers
    claim = noticing_claim(numbers)
    rows = cell_rows(numbers)
    cell = max(numbers.noticing_cell, 0)
    marks = {
        "concepts": numbers.noticing(cell),
        "vectors without\na concept": numbers.control_noticing(cell),
        "odd text": numbers.odd_noticing,
        "the thought\nas text": numbers.written_noticing,
    }
    block, dose = numbers.readings.cells[cell]
    caption = f"Noticing score at block {block}, dose {dose:g}. 95 % intervals."
    return _claim_page(
        found,
        "Does it notice a thought that is put into it?",
        claim,
        NOTICING_WORDS,
        picture=_bars("noticing", marks, caption, "addition to the signal, log-odds"),
        table=page.Table(
            rows, columns_of(CellRow, "block", "dose", "gate", "noticing", "controls")
        ),
        tables={
            "cells": RowTable(CellRow, rows),
            "vectors": RowTable(VectorRow, vector_rows(numbers), on_page=False),
        },
        why=[_field_line(numbers, cell), _alarm_line(numbers), NOT],
        method=[METHOD, NOTICING_METHOD, GATE_METHOD],
    )


def _naming_page(found: Found) -> page.Page:
    """The page of the second claim."""
    numbers = found.numbers
    claim = naming_claim(numbers)
    rows = cell_rows(numbers)
    cell = max(numbers.naming_cell, 0)
    marks = {
        "the thought": numbers.naming(cell),
        "another\nassistant's": numbers.naming(cell, prompts.Frame.OTHER),
        "any word": numbers.naming(cell, prompts.Frame.ANY),
        "the thought\nas text": numbers.written_naming,
    }
    if numbers.readings.reader is not None:
        marks["a reader of what\nit writes"] = numbers.reader_naming
    block, dose = numbers.readings.cells[cell]
    caption = f"Naming score at block {block}, dose {dose:g}. 95 % intervals."
    concepts = numbers.readings.concept_count
    named_line = (
        f"The own name is the likeliest of {concepts} for {rows[cell].named_right} concepts there, "
        "which is what others report: it counts words that are said of every vector."
    )
    return _claim_page(
        found,
        "Can it name the thought?",
        claim,
        NAMING_WORDS,
        picture=_bars("naming", marks, caption, "addition to the log-probability"),
        table=page.Table(rows, columns_of(CellRow, "block", "dose", "gate", "naming", "any_word")),
        tables={"cells": RowTable(CellRow, rows)},
        why=[named_line, NOT],
        method=[METHOD, NAMING_METHOD, GATE_METHOD],
    )


def _bars(stem: str, marks: dict[str, Estimate], caption: str, axis: str) -> page.Picture:
    rows = {name: {"": estimate} for name, estimate in marks.items()}
    return bar_rows(stem, rows, caption=caption, axis=axis, scale="signed", line=0)


def _claim_page(
    found: Found,
    title: str,
    claim: Claim,
    words: page.ClaimWords,
    *,
    picture: page.Picture,
    table: page.Table,
    tables: dict[str, RowTable],
    why: Sequence[page.Block],
    method: Sequence[page.Block],
) -> page.Page:
    """The page of one claim, with the run under Runs."""
    made = page.claim_page(
        title,
        [claim],
        words,
        picture=picture,
        table=table,
        tables=tables,
        method=method,
        notes={claim.subject: why},
        lines=[NOT],
    )
    return replace(made, sections=[*made.sections, *page.headings(runs=[found.run_line])])


def _field_line(numbers: InjectionNumbers, cell: int) -> str:
    """What others report of the same readings."""
    block, dose = numbers.readings.cells[cell]
    return (
        f"Others report the rise of Yes alone: {signed_number(numbers.lift(cell))} in log-odds at "
        f"block {block}, dose {dose:g}. A bias towards Yes, and flattened answers, raise it too."
    )


def _alarm_line(numbers: InjectionNumbers) -> str:
    """False alarms without a vector, with the upper end of their interval."""
    alarms, asked = numbers.false_alarms
    upper = float(beta.ppf(0.95, alarms + 1, asked - alarms)) if alarms < asked else 1.0
    return (
        f"Without a vector it says Yes to {alarms} of {asked} questions, so false alarms may be as "
        f"frequent as {percent(upper)}."
    )
