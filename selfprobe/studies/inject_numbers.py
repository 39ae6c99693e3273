"""Numbers and claims of `mechanism inject`: what was read under vectors, and what it says.

Two claims that are never one: a model *notices* a thought that was put into it, and it *names* the
thought. Nothing here needs torch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from selfprobe.mechanism.injection_prompts import (
    FACTS,
    NAMING_QUESTIONS,
    ORDERS,
    WORDINGS,
    Frame,
    VectorKind,
)
from selfprobe.page.numerals import signed_number
from selfprobe.stats import injection
from selfprobe.stats.claim import (
    ALPHA,
    Check,
    Claim,
    Outcome,
    above_zero_check,
    outcome_if,
    remedy_unless_met,
)
from selfprobe.stats.estimate import BoolArray, Estimate, FloatArray, clustered_mean, undefined

SMALLEST_SIGNAL = 0.3
"""Smallest addition to a signal that matters, in log-odds."""
SMALLEST_NAMING = 0.3
"""Smallest addition to the log-probability of a name that matters."""
LEAST_CONCEPTS = 20
"""Number of concepts below which nothing is claimed."""
LEAST_MASS = 0.1
LEAST_MASS_SHARE = 0.5
LEAST_FACTS_SHARE = 0.9
LARGEST_TEXT_LOSS = 0.5
LEAST_CLEAN_FACTS = 0.5
"""The gate of a cell: P(Yes) + P(No), and as a share of that without a vector; facts that are right,
as a share; nats a token that a neutral text may lose; and the share of facts that must be exceeded
without a vector.
"""
CONCEPT_UNIT = "concept"
CONTROL_NAMES = {
    VectorKind.GAUSSIAN.value: "random vectors",
    VectorKind.PERMUTED.value: "concepts with permuted coordinates",
    VectorKind.WORDS.value: "differences of two words",
}
"""Kinds of vectors without a concept, as a page says them."""
OWN_QUESTIONS = len(WORDINGS) * len(ORDERS) * 2
NAMING_FRAMES = tuple(NAMING_QUESTIONS)
"""Frames in the order of the readings of names."""


@dataclass(frozen=True)
class Signals:
    """Signals of all questions of readings: half the difference of a question and its negation."""

    own: FloatArray
    """About itself, [..., wording], means over the orders of the answers."""
    other: FloatArray
    """About another assistant, [..., wording]."""
    facts: FloatArray
    """[..., fact]."""


def signals_of(log_odds: FloatArray) -> Signals:
    """Signals from log-odds of Yes [..., question], in the order of `yes_no_questions`."""
    shape = (*log_odds.shape[:-1], len(WORDINGS), len(ORDERS), 2)
    own = log_odds[..., :OWN_QUESTIONS].reshape(shape)
    other = log_odds[..., OWN_QUESTIONS : 2 * OWN_QUESTIONS].reshape(shape)
    facts = log_odds[..., 2 * OWN_QUESTIONS :].reshape(*log_odds.shape[:-1], len(FACTS), 2)
    return Signals(
        injection.paired_signals(own[..., 0], own[..., 1]).mean(axis=-1),
        injection.paired_signals(other[..., 0], other[..., 1]).mean(axis=-1),
        injection.paired_signals(facts[..., 0], facts[..., 1]),
    )


@dataclass(frozen=True)
class PlainReadings:
    """Readings without a vector, one a text."""

    log_odds: FloatArray
    """[text, question]."""
    masses: FloatArray
    """[text, question]."""
    names: FloatArray
    """[text, frame, word]."""
    neutral: FloatArray
    """[text]."""


@dataclass(frozen=True)
class InjectionReadings:
    """All that was read of one model."""

    model: str
    concepts: tuple[str, ...]
    """Injected concepts; they are the first words that can be named."""
    vector_names: tuple[str, ...]
    """Names of the vectors, concepts first."""
    vector_kinds: tuple[str, ...]
    cells: tuple[tuple[int, float], ...]
    """Block and dose of each cell."""
    log_odds: FloatArray
    """[note, cell, vector, question]."""
    masses: FloatArray
    """[note, cell, vector, question]."""
    names: FloatArray
    """[note, cell, vector, frame, word]."""
    neutral: FloatArray
    """[note, cell, vector]."""
    clean: PlainReadings
    """Without a vector: first the notes that are read under vectors, then further ones."""
    odd: PlainReadings
    """Odd texts, without a vector."""
    written: PlainReadings
    """The thought as text, by concept and then note."""
    reader: FloatArray | None = None
    """Log-probabilities [text, word] of a reader of what was written under each concept, at the
    cell `naming_cell`.
    """

    @property
    def note_count(self) -> int:
        """Number of notes that are read under vectors."""
        return len(self.log_odds)

    @property
    def concept_count(self) -> int:
        """Number of concepts."""
        return len(self.concepts)


@dataclass(frozen=True)
class Gate:
    """Whether a model can still be asked under the vectors of a cell."""

    mass: float
    """Mean P(Yes) + P(No) of the questions about itself."""
    clean_mass: float
    facts_right: float
    """Share of facts whose signal is above 0."""
    clean_facts_right: float
    text_loss: float
    """Nats a token that a neutral text loses."""
    has_slopes: bool
    """Whether some fact is known well enough to say how far vectors flatten signals."""

    @property
    def knows_facts(self) -> bool:
        """Whether most facts are right without a vector, and one is known well enough."""
        return self.has_slopes and self.clean_facts_right > LEAST_CLEAN_FACTS

    @property
    def passes(self) -> bool:
        """Whether the cell may decide."""
        has_mass = self.mass >= max(LEAST_MASS, LEAST_MASS_SHARE * self.clean_mass)
        knows_facts = self.facts_right >= LEAST_FACTS_SHARE * self.clean_facts_right
        still_writes = self.text_loss <= LARGEST_TEXT_LOSS
        return has_mass and knows_facts and still_writes and self.has_slopes


class InjectionNumbers:
    """The numbers of readings.

    Args:
        readings: What was read.
        seed: Of the random signs and orders.
    """

    def __init__(self, readings: InjectionReadings, *, seed: int = 0) -> None:
        self.readings = readings
        self.seed = seed

    @cached_property
    def slopes(self) -> FloatArray:
        """How much of the facts' signals is left, [note, cell, vector]."""
        signals = signals_of(self.readings.log_odds)
        return injection.fact_slopes(signals.facts, self._clean_signals.facts)

    @cached_property
    def _clean_signals(self) -> Signals:
        """Signals of the notes that are read under vectors, without one."""
        return signals_of(self.readings.clean.log_odds[: self.readings.note_count])

    @cached_property
    def scores(self) -> FloatArray:
        """Noticing scores, [cell, vector, note, wording]."""
        signals = signals_of(self.readings.log_odds)
        clean = self._clean_signals
        return injection.noticing_scores(
            signals.own, signals.other, self.slopes, clean.own, clean.other
        )

    @cached_property
    def gates(self) -> list[Gate]:
        """The gate of each cell, over its concepts."""
        readings = self.readings
        count = readings.concept_count
        clean_mass = float(readings.clean.masses[: readings.note_count, :OWN_QUESTIONS].mean())
        clean_facts_right = float((self._clean_signals.facts > 0).mean())
        clean_neutral = readings.clean.neutral[: readings.note_count]
        facts = signals_of(readings.log_odds).facts
        gates = []
        for cell in range(len(readings.cells)):
            neutral_change = readings.neutral[:, cell, :count] - clean_neutral[:, None]
            gates.append(
                Gate(
                    float(readings.masses[:, cell, :count, :OWN_QUESTIONS].mean()),
                    clean_mass,
                    float((facts[:, cell, :count] > 0).mean()),
                    clean_facts_right,
                    -float(neutral_change.mean()),
                    bool(np.isfinite(self.slopes[:, cell]).all()),
                )
            )
        return gates

    @property
    def passing(self) -> BoolArray:
        """Cells that may decide, [cell]."""
        return np.array([gate.passes for gate in self.gates], dtype=bool)

    # ---- noticing

    @cached_property
    def noticing_p_values(self) -> FloatArray:
        """p of noticing at each cell, with the choice of the cell taken into account."""
        concept_scores = self.scores[:, : self.readings.concept_count].mean(axis=(2, 3))
        return injection.sign_test(concept_scores, self.passing, np.random.default_rng(self.seed))

    @cached_property
    def noticing_cell(self) -> int:
        """The cell that the page shows for noticing; −1 where none can be asked."""
        return shown_cell(self.passing, self.noticing_p_values, self.noticing, SMALLEST_SIGNAL)

    def noticing(self, cell: int) -> Estimate:
        """Noticing score of concepts at a cell."""
        return injection.crossed_mean(
            self.scores[cell, : self.readings.concept_count], unit=CONCEPT_UNIT
        )

    @property
    def control_kinds(self) -> list[str]:
        """Kinds of vectors without a concept."""
        kinds = self.readings.vector_kinds[self.readings.concept_count :]
        return list(dict.fromkeys(kinds))

    def _scores_of_kind(self, cell: int, kind: str) -> FloatArray:
        """Noticing scores [vector, note, wording] of the vectors of a kind at a cell."""
        is_of_kind = np.array(self.readings.vector_kinds) == kind
        scores: FloatArray = self.scores[cell, is_of_kind]
        return scores

    def kind_noticing(self, cell: int, kind: str) -> Estimate:
        """Noticing score of the vectors of a kind at a cell."""
        return injection.crossed_mean(self._scores_of_kind(cell, kind), unit="vector")

    def beyond_kind(self, cell: int, kind: str) -> Estimate:
        """Noticing score of concepts less that of the vectors of a kind."""
        concept_scores = self.scores[cell, : self.readings.concept_count]
        kind_scores = self._scores_of_kind(cell, kind)
        return injection.crossed_difference(concept_scores, kind_scores, unit=CONCEPT_UNIT)

    def closest_kind(self, cell: int) -> str:
        """The kind of vectors without a concept that concepts lead the least: what notices any
        difference of words does not notice noise, so that kinds are never pooled.
        """
        return min(self.control_kinds, key=lambda kind: self.beyond_kind(cell, kind).low)

    def beyond_odd_text(self, cell: int) -> Estimate:
        """Noticing score of concepts less that of odd texts."""
        scores = self.scores[cell, : self.readings.concept_count]
        by_wording = scores.mean(axis=1, keepdims=True)
        return injection.crossed_difference(by_wording, self._odd_scores, unit=CONCEPT_UNIT)

    @property
    def odd_noticing(self) -> Estimate:
        """Noticing score of odd texts without a vector."""
        return injection.crossed_mean(self._odd_scores, unit="text")

    @cached_property
    def _odd_scores(self) -> FloatArray:
        return _plain_scores(self.readings.odd, self._clean_signals)

    @cached_property
    def written_noticing(self) -> Estimate:
        """Noticing score where the thought is written as text."""
        scores = _plain_scores(self.readings.written, self._clean_signals)
        by_concept = scores.reshape(self.readings.concept_count, -1, scores.shape[-1])
        return injection.crossed_mean(by_concept, unit=CONCEPT_UNIT)

    def lift(self, cell: int) -> float:
        """What the field reports: the change of the log-odds of Yes to "is there a thought in your
        mind?", with no control.
        """
        questions = slice(0, OWN_QUESTIONS, 2)
        injected = self.readings.log_odds[:, cell, : self.readings.concept_count, questions]
        clean = self.readings.clean.log_odds[: self.readings.note_count, questions]
        return float((injected - clean[:, None]).mean())

    @cached_property
    def false_alarms(self) -> tuple[int, int]:
        """How often Yes is likelier than No without a vector, and of how many."""
        log_odds = self.readings.clean.log_odds[:, 0:OWN_QUESTIONS:2]
        return int((log_odds > 0).sum()), log_odds.size

    # ---- naming

    def name_log_probs(self, frame: Frame) -> FloatArray:
        """Log-probabilities of concepts as words, [cell, injected concept, named concept]; means
        over notes.
        """
        count = self.readings.concept_count
        names = self.readings.names[:, :, :count, NAMING_FRAMES.index(frame), :count]
        log_probs: FloatArray = names.mean(axis=0)
        return log_probs

    @cached_property
    def naming_p_values(self) -> FloatArray:
        """p of naming at each cell, with the choice of the cell taken into account."""
        rng = np.random.default_rng(self.seed)
        return injection.name_test(self.name_log_probs(Frame.OWN), self.passing, rng)

    @cached_property
    def naming_cell(self) -> int:
        """The cell that the page shows for naming; −1 where none can be asked."""
        return shown_cell(self.passing, self.naming_p_values, self.naming, SMALLEST_NAMING)

    def naming(self, cell: int, frame: Frame = Frame.OWN) -> Estimate:
        """How much more probable each concept's own name is at a cell."""
        return self._by_concept(injection.own_names(self.name_log_probs(frame))[cell])

    def _by_concept(self, values: FloatArray) -> Estimate:
        concepts = list(self.readings.concepts)
        return clustered_mean(values, concepts, unit=CONCEPT_UNIT, interval="t")

    def naming_beyond(self, cell: int, frame: Frame) -> Estimate:
        """Naming when asked for its own thought, less naming in another frame."""
        own = injection.own_names(self.name_log_probs(Frame.OWN))[cell]
        other = injection.own_names(self.name_log_probs(frame))[cell]
        return self._by_concept(own - other)

    @property
    def reader_naming(self) -> Estimate:
        """How well a reader of what was written under the vectors names their concepts."""
        return self._by_concept(self._reader_names)

    @property
    def _reader_names(self) -> FloatArray:
        readings = self.readings
        assert readings.reader is not None, "the reader is asked before the page"
        reader_log_probs = readings.reader[None, :, : readings.concept_count]
        names: FloatArray = injection.own_names(reader_log_probs)[0]
        return names

    @property
    def naming_beyond_reader(self) -> Estimate:
        """Naming at the page's cell, less the reader's."""
        own = injection.own_names(self.name_log_probs(Frame.OWN))[self.naming_cell]
        return self._by_concept(own - self._reader_names)

    @cached_property
    def written_naming(self) -> Estimate:
        """How well concepts are named that are written as text."""
        readings = self.readings
        count = readings.concept_count
        names = readings.written.names[:, NAMING_FRAMES.index(Frame.OWN), :count]
        by_note = names.reshape(count, -1, count).mean(axis=1)  # [concept, named concept]
        return self._by_concept(injection.own_names(by_note[None])[0])

    def named_right(self, cell: int) -> int:
        """What the field reports: concepts whose own name is the likeliest of all concepts'."""
        log_probs = self.name_log_probs(Frame.OWN)[cell]
        return int((log_probs.argmax(axis=1) == np.arange(len(log_probs))).sum())


def shown_cell(
    passing: BoolArray,
    p_values: FloatArray,
    estimate_at: Callable[[int], Estimate],
    smallest: float,
) -> int:
    """The cell to show: of significant ones whose effect matters that with the largest; without
    any the one at which most may be missed; −1 where none can be asked.
    """
    cells = [int(cell) for cell in np.flatnonzero(passing)]
    if not cells:
        return -1
    significant = [
        cell for cell in cells if p_values[cell] < ALPHA and estimate_at(cell).value >= smallest
    ]
    if significant:
        return max(significant, key=lambda cell: estimate_at(cell).value)
    return max(cells, key=lambda cell: estimate_at(cell).high)


def _plain_scores(readings: PlainReadings, clean: Signals) -> FloatArray:
    """Noticing scores of texts without a vector [text, 1, wording], against the mean of clean
    notes.
    """
    signals = signals_of(readings.log_odds)
    mean_clean = Signals(*(part.mean(axis=0)[None] for part in vars(clean).values()))
    slopes = injection.fact_slopes(signals.facts[None, :, None], mean_clean.facts)
    scores = injection.noticing_scores(
        signals.own[None, :, None],
        signals.other[None, :, None],
        slopes,
        mean_clean.own,
        mean_clean.other,
    )
    return scores[:, 0]  # the one vector is none


# ---- the claims


def noticing_claim(numbers: InjectionNumbers) -> Claim:
    """The claim that a model notices a thought that was put into it."""
    cell = numbers.noticing_cell
    blocking = _blocking_checks(numbers, numbers.written_noticing, SMALLEST_SIGNAL)
    if any(check.outcome is not Outcome.HOLDS for check in blocking):
        return blocked_claim(numbers.readings.model, blocking, NOTICING_CHECKS, SMALLEST_SIGNAL)
    effect = numbers.noticing(cell)
    p_value = float(numbers.noticing_p_values[cell])
    closest_kind = numbers.closest_kind(cell)
    checks = [
        *blocking,
        *effect_checks(effect, p_value, SMALLEST_SIGNAL),
        above_zero_check("wordings", effect, smallest=SMALLEST_SIGNAL, remedy=MORE_DATA_REMEDY),
        explaining_check(
            "beyond_controls",
            numbers.beyond_kind(cell, closest_kind),
            CONTROL_NAMES[closest_kind],
            numbers.kind_noticing(cell, closest_kind),
            smallest=SMALLEST_SIGNAL,
        ),
        explaining_check(
            "beyond_odd_text",
            numbers.beyond_odd_text(cell),
            "odd text without a vector",
            numbers.odd_noticing,
            smallest=SMALLEST_SIGNAL,
        ),
    ]
    details = place_details(numbers.readings.cells[cell])
    return Claim(numbers.readings.model, effect, tuple(checks), SMALLEST_SIGNAL, details)


MORE_DATA_REMEDY = "add concepts, notes (--notes) or doses (--doses)"
NOTICING_CHECKS = ("signal", "size", "wordings", "beyond_controls", "beyond_odd_text")
NAMING_CHECKS = ("signal", "size", "beyond_other", "beyond_any_word", "beyond_reader")


def naming_claim(numbers: InjectionNumbers) -> Claim:
    """The claim that a model names a thought that was put into it."""
    cell = numbers.naming_cell
    blocking = _blocking_checks(numbers, numbers.written_naming, SMALLEST_NAMING)
    if any(check.outcome is not Outcome.HOLDS for check in blocking):
        return blocked_claim(numbers.readings.model, blocking, NAMING_CHECKS, SMALLEST_NAMING)
    effect = numbers.naming(cell)
    p_value = float(numbers.naming_p_values[cell])
    any_word = numbers.naming(cell, Frame.ANY)
    other = numbers.naming(cell, Frame.OTHER)
    checks = [
        *blocking,
        *effect_checks(effect, p_value, SMALLEST_NAMING),
        explaining_check(
            "beyond_other",
            numbers.naming_beyond(cell, Frame.OTHER),
            "asked about another",
            other,
            smallest=SMALLEST_NAMING,
        ),
        explaining_check(
            "beyond_any_word",
            numbers.naming_beyond(cell, Frame.ANY),
            "asked for any word",
            any_word,
            smallest=SMALLEST_NAMING,
        ),
        explaining_check(
            "beyond_reader",
            numbers.naming_beyond_reader,
            "a reader of what it writes",
            numbers.reader_naming,
            smallest=SMALLEST_NAMING,
        ),
    ]
    details = place_details(numbers.readings.cells[cell])
    return Claim(numbers.readings.model, effect, tuple(checks), SMALLEST_NAMING, details)


def place_details(cell: tuple[int, float]) -> dict[str, str]:
    """Where a claim is made, for its sentence."""
    block, dose = cell
    return {"place": f"at block {block}, dose {dose:g}"}


def _blocking_checks(numbers: InjectionNumbers, ceiling: Estimate, smallest: float) -> list[Check]:
    """The requirements without which nothing is said."""
    return [
        facts_check(numbers.gates[0]),
        answers_check(numbers.gates[0].clean_mass),
        asked_check(numbers.passing),
        enough_check(numbers.readings.concept_count),
        ceiling_check(ceiling, smallest),
    ]


def effect_checks(effect: Estimate, p_value: float, smallest: float) -> list[Check]:
    """The requirements that an effect is above 0, and large enough to matter."""
    is_large = outcome_if(effect.value >= smallest)
    return [
        above_zero_check(
            "signal", effect, smallest=smallest, p_value=p_value, remedy=MORE_DATA_REMEDY
        ),
        Check("size", effect, is_large, remedy=remedy_unless_met(is_large, MORE_DATA_REMEDY)),
    ]


def answers_check(clean_mass: float) -> Check:
    """The requirement that the model answers as it is asked to, without a vector."""
    outcome = outcome_if(clean_mass >= LEAST_MASS)
    return Check(
        "answers",
        Estimate(clean_mass, clean_mass, clean_mass, 1, "model"),
        outcome,
        remedy=remedy_unless_met(outcome, "use a model that was trained to chat"),
    )


def facts_check(gate: Gate) -> Check:
    """The requirement that the model knows plain facts, and one well enough for a slope, without a
    vector.
    """
    share = gate.clean_facts_right
    outcome = outcome_if(gate.knows_facts)
    return Check(
        "facts",
        Estimate(share, share, share, len(FACTS), "fact"),
        outcome,
        remedy=remedy_unless_met(outcome, "use a larger model"),
    )


def asked_check(passing_cells: BoolArray) -> Check:
    """The requirement that the model can still be asked at one cell at least."""
    passing = int(passing_cells.sum())
    count = len(passing_cells)
    share = passing / count
    outcome = outcome_if(passing > 0)
    return Check(
        "can_be_asked",
        Estimate(share, share, share, count, "cell"),
        outcome,
        remedy=remedy_unless_met(outcome, "take smaller doses (--doses) or a larger model"),
    )


def ceiling_check(ceiling: Estimate, smallest: float) -> Check:
    """The requirement that the model reports a thought that stands in its text."""
    outcome = outcome_if(ceiling.low > 0 and ceiling.value >= smallest)
    remedy = remedy_unless_met(outcome, "use a larger model")
    return Check("ceiling", ceiling, outcome, remedy=remedy)


def enough_check(count: int) -> Check:
    """The requirement of enough concepts."""
    outcome = outcome_if(count >= LEAST_CONCEPTS)
    return Check(
        "concepts",
        Estimate(count, count, count, count, CONCEPT_UNIT),
        outcome,
        remedy=remedy_unless_met(outcome, f"give {LEAST_CONCEPTS} concepts or more"),
    )


def explaining_check(
    name: str, difference: Estimate, label: str, reached: Estimate, *, smallest: float
) -> Check:
    """The requirement that a difference from a control is above 0; a control that reaches as much
    explains.
    """
    return above_zero_check(
        name,
        difference,
        smallest=smallest,
        compared_with=f"{label}: {signed_number(reached.value)}",
        explains=True,
        remedy=MORE_DATA_REMEDY,
    )


def blocked_claim(
    model: str, blocking: Sequence[Check], later: Sequence[str], smallest: float
) -> Claim:
    """A claim of a model that cannot be asked: no number is said of what comes after."""
    nothing = undefined("the model cannot be asked so", unit=CONCEPT_UNIT)
    open_checks = [Check(name, nothing, Outcome.OPEN) for name in later]
    return Claim(model, nothing, (*blocking, *open_checks), smallest, {"place": ""})
