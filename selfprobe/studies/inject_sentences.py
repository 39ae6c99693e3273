"""Numbers and claim of `mechanism inject --where sentence`: does a model know on which sentence a
vector was put?

A disturbed sentence is chosen at any question about sentences where the vector only draws
attention to it. So "which one?" always stands beside "which is the longest?".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from selfprobe.mechanism.injection_prompts import WHICH_SENTENCE
from selfprobe.stats import injection
from selfprobe.stats.claim import Check, Claim, Outcome, above_zero_check
from selfprobe.stats.estimate import BoolArray, Estimate, FloatArray, clustered_mean
from selfprobe.studies.inject_numbers import (
    CONCEPT_UNIT,
    LEAST_MASS,
    LEAST_MASS_SHARE,
    answers_check,
    asked_check,
    blocked_claim,
    ceiling_check,
    effect_checks,
    enough_check,
    place_details,
    shown_cell,
)

SMALLEST_LOCATING = 0.3
"""Smallest addition to the log-probability of the disturbed sentence that matters."""
WHICH_COUNT = len(WHICH_SENTENCE)
"""Number of wordings of "which one?"; those of "which is the longest?" follow."""


@dataclass(frozen=True)
class SentenceReadings:
    """All that was read of one model."""

    model: str
    concepts: tuple[str, ...]
    cells: tuple[tuple[int, float], ...]
    """Block and dose of each cell."""
    log_probs: FloatArray
    """Log-probabilities of sentences' numbers, [note, cell, vector, disturbed sentence, question,
    named sentence]; concepts first.
    """
    masses: FloatArray
    """Probabilities of all numbers, [note, cell, vector, disturbed sentence, question]."""
    clean_log_probs: FloatArray
    """Without a vector, [note, question, named sentence]."""
    clean_masses: FloatArray
    """[note, question]."""
    written_log_probs: FloatArray
    """Where a thought is written into a sentence, [concept, note, question, named sentence]."""
    written_sentences: npt.NDArray[np.intp]
    """The sentence that holds each concept's thought, from 0."""

    @property
    def concept_count(self) -> int:
        """Number of concepts."""
        return len(self.concepts)


class SentenceNumbers:
    """The numbers of readings.

    Args:
        readings: What was read.
        seed: Of the random signs.
    """

    def __init__(self, readings: SentenceReadings, *, seed: int = 0) -> None:
        self.readings = readings
        self.seed = seed

    @cached_property
    def _scores(self) -> FloatArray:
        """How much more probable the disturbed sentence is at each question, [cell, vector, note,
        question]; means over the sentences.
        """
        by_question = np.moveaxis(self.readings.log_probs, 4, 3)
        *shape, sentences, _ = by_question.shape
        matrices = by_question.reshape(-1, sentences, sentences)
        scores = injection.own_names(matrices).mean(axis=1).reshape(shape)
        by_cell: FloatArray = np.moveaxis(scores, 0, 2)
        return by_cell

    def scores_at(self, cell: int, *, longest: bool = False) -> FloatArray:
        """Scores [vector, note, wording] at "which one?", or at "which is the longest?"."""
        questions = slice(WHICH_COUNT, None) if longest else slice(None, WHICH_COUNT)
        scores: FloatArray = self._scores[cell][..., questions]
        return scores

    @cached_property
    def masses(self) -> FloatArray:
        """Probability of all numbers at "which one?" under concepts, [cell]."""
        masses = self.readings.masses[:, :, : self.readings.concept_count, :, :WHICH_COUNT]
        means: FloatArray = masses.mean(axis=(0, 2, 3, 4))
        return means

    @property
    def clean_mass(self) -> float:
        """Probability of all numbers at "which one?" without a vector."""
        return float(self.readings.clean_masses[:, :WHICH_COUNT].mean())

    @property
    def passing(self) -> BoolArray:
        """Cells that may decide, [cell]."""
        passing: BoolArray = self.masses >= max(LEAST_MASS, LEAST_MASS_SHARE * self.clean_mass)
        return passing

    @cached_property
    def p_values(self) -> FloatArray:
        """p of locating at each cell, with the choice of the cell taken into account."""
        scores = self._scores[:, : self.readings.concept_count].mean(axis=2)
        differences = scores[..., :WHICH_COUNT] - scores[..., WHICH_COUNT:]
        rng = np.random.default_rng(self.seed)
        return injection.sign_test(differences.mean(axis=-1), self.passing, rng)

    @cached_property
    def cell(self) -> int:
        """The cell that the page shows; −1 where none can be asked."""
        return shown_cell(self.passing, self.p_values, self.beyond_longest, SMALLEST_LOCATING)

    def locating(self, cell: int, *, longest: bool = False) -> Estimate:
        """Score of concepts at "which one?", or at "which is the longest?"."""
        scores = self.scores_at(cell, longest=longest)
        return injection.crossed_mean(scores[: self.readings.concept_count], unit=CONCEPT_UNIT)

    def control_locating(self, cell: int) -> Estimate:
        """Score of vectors without a concept at "which one?"."""
        scores = self.scores_at(cell)
        return injection.crossed_mean(scores[self.readings.concept_count :], unit="vector")

    def beyond_longest(self, cell: int) -> Estimate:
        """Score at "which one?" less that at "which is the longest?", of the same vectors."""
        differences = self.scores_at(cell) - self.scores_at(cell, longest=True)
        return injection.crossed_mean(differences[: self.readings.concept_count], unit=CONCEPT_UNIT)

    def share_right(self, cell: int, *, longest: bool = False) -> float:
        """What others report: how often the disturbed sentence is the likeliest, with the answers'
        own preference taken off.
        """
        questions = slice(WHICH_COUNT, None) if longest else slice(None, WHICH_COUNT)
        concepts = self.readings.concept_count
        log_probs = self.readings.log_probs[:, cell, :concepts, :, questions]
        chosen = (log_probs - log_probs.mean(axis=2, keepdims=True)).argmax(axis=-1)
        disturbed = np.arange(log_probs.shape[2])[None, None, :, None]
        return float((chosen == disturbed).mean())

    @cached_property
    def written_locating(self) -> Estimate:
        """The same score where the thought is written into a sentence."""
        readings = self.readings
        clean = readings.clean_log_probs[: readings.written_log_probs.shape[1]]
        gains = (readings.written_log_probs - clean)[:, :, :WHICH_COUNT]
        gains = gains - gains.mean(axis=-1, keepdims=True)
        concepts = np.arange(readings.concept_count)
        own_gains = gains[concepts, :, :, readings.written_sentences].mean(axis=(1, 2))
        return clustered_mean(own_gains, list(readings.concepts), unit=CONCEPT_UNIT, interval="t")


LOCATING_CHECKS = ("signal", "size", "chosen")


def locating_claim(numbers: SentenceNumbers) -> Claim:
    """The claim that a model knows on which sentence a vector was put; its effect is the score at
    "which one?" less that at "which is the longest?".
    """
    readings = numbers.readings
    blocking: Sequence[Check] = [
        answers_check(numbers.clean_mass),
        asked_check(numbers.passing),
        enough_check(readings.concept_count),
        ceiling_check(numbers.written_locating, SMALLEST_LOCATING),
    ]
    if any(check.outcome is not Outcome.HOLDS for check in blocking):
        return blocked_claim(readings.model, blocking, LOCATING_CHECKS, SMALLEST_LOCATING)
    cell = numbers.cell
    effect = numbers.beyond_longest(cell)
    p_value = float(numbers.p_values[cell])
    which = numbers.locating(cell)
    checks = (
        *blocking,
        *effect_checks(effect, p_value, SMALLEST_LOCATING),
        above_zero_check("chosen", which, smallest=SMALLEST_LOCATING),
    )
    details = place_details(readings.cells[cell])
    return Claim(readings.model, effect, checks, SMALLEST_LOCATING, details)
