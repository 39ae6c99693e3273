"""Worlds of `mechanism inject`: log-odds of Yes under vectors that do, or do not do, what is asked."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from lines import Line, Lines, Noise, heavy_tailed, normal, rounded, skewed

from selfprobe.mechanism.injection_prompts import (
    CONTROL_COUNTS,
    FACTS,
    ORDERS,
    WORDINGS,
    VectorKind,
)
from selfprobe.stats.claim import Claim
from selfprobe.studies.inject_numbers import (
    InjectionNumbers,
    InjectionReadings,
    PlainReadings,
    naming_claim,
    noticing_claim,
)
from selfprobe.studies.inject_sentences import SentenceNumbers, SentenceReadings, locating_claim

FloatArray = npt.NDArray[np.float64]
CONCEPTS, NOTES = 20, 2
CONTROL_KINDS = tuple(kind.value for kind, count in CONTROL_COUNTS.items() for _ in range(count))
CONTROLS = len(CONTROL_KINDS)
DOSES = np.repeat([0.25, 0.5, 1.0], 3)
DEPTHS = np.tile([0.0, 1.0, 0.5], 3)
"""Dose of each cell, and how much of the effect its block has."""
WORD_KIND = VectorKind.WORDS.value
NOISE = 0.5
"""Standard deviation of a log-odds."""
SHAPE = (len(WORDINGS), len(ORDERS))


@dataclass(frozen=True)
class World:
    """What the vectors of a world do."""

    noticing: float = 0.0
    """Addition to the signal of concepts at dose 1, at the best block."""
    control_noticing: float = 0.0
    """The same of vectors without a concept."""
    word_noticing: float = 0.0
    """The same of differences of two words."""
    other_noticing: float = 0.0
    """The same in the question about another assistant."""
    yes_bias: float = 0.0
    flattening: float = 0.0
    """Share of all signals that dose 1 takes away."""
    question_flattening: float = 0.0
    """Share of the signals of questions alone, not of facts, that vectors of words take away at dose
    1.
    """
    knows_facts: bool = True
    phrasing_spread: float = 0.0
    """Standard deviation of what a vector does to a phrasing, whatever the vector is."""
    wording_spread: float = 0.0
    """The same of a wording, after every note."""
    odd_signal: float = 0.0
    """Addition to the signal after odd texts."""
    naming: float = 0.0
    """Addition to the log-probability of the own name at dose 1, at the best block."""
    any_naming: float = 0.0
    """The same when asked for any word."""
    reader_naming: float = 0.0
    noise: Noise = normal
    clean_noise: float = NOISE
    """Standard deviation of a log-odds where there is no vector."""

    def readings(self, rng: np.random.Generator) -> InjectionReadings:
        """Readings of a model in this world."""
        cells, vectors = len(DOSES), CONCEPTS + CONTROLS
        is_concept = np.arange(vectors) < CONCEPTS
        noticed_share = np.where(rng.random(vectors) < 0.6, 1.0, 0.0)
        is_of_words = np.array(["concept"] * CONCEPTS + list(CONTROL_KINDS)) == WORD_KIND
        strength = np.where(is_concept, self.noticing, self.control_noticing)
        strength = np.where(is_of_words, strength + self.word_noticing, strength)
        reach = DOSES[:, None] * DEPTHS[:, None]
        own_addition = reach * strength * noticed_share
        other_addition = reach * self.other_noticing * noticed_share
        kept = 1 - self.flattening * DOSES[:, None] * np.ones((1, vectors))
        is_word_vector = is_concept | is_of_words
        question_share = self.question_flattening * DOSES[:, None] * is_word_vector
        kept_of_questions = kept * (1 - question_share)
        bias = self.yes_bias * DOSES[:, None] + 0.4 * rng.normal(size=(cells, vectors))
        phrasing_shift = self.phrasing_spread * rng.normal(size=(NOTES, cells, 1, *SHAPE[:1]))
        wording_shift = self.wording_spread * rng.normal(size=(1, cells, 1, *SHAPE[:1]))
        clean = self._clean_signals(rng)
        own = (
            kept_of_questions[None, ..., None] * clean[0][:, None, None]
            + own_addition[None, ..., None]
        )
        own = own + phrasing_shift + wording_shift
        other = (
            kept_of_questions[None, ..., None] * clean[1][:, None, None]
            + other_addition[None, ..., None]
        )
        facts = kept[None, ..., None] * clean[2][:, None, None]
        log_odds = self._log_odds(rng, own, other, facts, 0.4 + bias[None, ..., None])
        names = self._names(rng, (NOTES, cells, vectors), reach[None, :, :, None])
        ones = np.ones((NOTES, cells, vectors))
        return InjectionReadings(
            model="m",
            concepts=tuple(f"c{index}" for index in range(CONCEPTS)),
            vector_names=tuple(f"v{index}" for index in range(vectors)),
            vector_kinds=("concept",) * CONCEPTS + CONTROL_KINDS,
            cells=tuple((index % 3, dose) for index, dose in enumerate(DOSES)),
            log_odds=log_odds,
            masses=np.full(log_odds.shape, 0.8),
            names=names,
            neutral=-3 * ones,
            clean=self._plain(rng, clean, np.zeros(NOTES), self.clean_noise),
            odd=self._plain(
                rng,
                tuple(np.tile(part, (3, 1)) for part in clean),
                np.full(3 * NOTES, self.odd_signal),
            ),
            written=self._written(rng, clean),
            reader=self._concept_names(rng, self.reader_naming),
        )

    def _clean_signals(self, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        """Signals of each note without a vector: own, other [note, wording], facts [note, fact]."""
        own_mean = -5.0 if self.question_flattening else -1.5
        own = np.full((NOTES, len(WORDINGS)), own_mean) + 0.3 * rng.normal(size=len(WORDINGS))
        other = np.full((NOTES, len(WORDINGS)), -1.3) + 0.3 * rng.normal(size=len(WORDINGS))
        facts = np.tile(rng.uniform(1.5, 4, len(FACTS)), (NOTES, 1))
        facts = facts if self.knows_facts else -facts
        return own, other, facts

    def _log_odds(
        self,
        rng: np.random.Generator,
        own: FloatArray,
        other: FloatArray,
        facts: FloatArray,
        bias: FloatArray,
        noise: float = NOISE,
    ) -> FloatArray:
        """Log-odds of Yes [..., question] with the given signals."""
        leads = np.array([1.0, -1.0])
        parts = []
        for signals in (own, other):
            by_order = np.repeat(signals[..., None], len(ORDERS), axis=-1)
            values = bias[..., None, None] + by_order[..., None] * leads
            parts.append(values.reshape(*signals.shape[:-1], -1))
        fact_values = bias[..., None] + facts[..., None] * leads
        parts.append(fact_values.reshape(*facts.shape[:-1], -1))
        log_odds = np.concatenate(parts, axis=-1)
        return log_odds + noise * self.noise(rng, log_odds.shape)

    def _plain(
        self,
        rng: np.random.Generator,
        clean: tuple[FloatArray, ...],
        additions: FloatArray,
        noise: float = NOISE,
    ) -> PlainReadings:
        """Readings of texts without a vector, which add something to the own signal."""
        own = clean[0] + additions[:, None]
        bias = np.full((len(own), 1), 0.4)
        log_odds = self._log_odds(rng, own, clean[1], clean[2], bias, noise)
        names = 0.5 * self.noise(rng, (len(own), 3, CONCEPTS))
        mass = np.full(log_odds.shape, 0.8)
        return PlainReadings(log_odds, mass, names, np.full(len(own), -3.0))

    def _written(self, rng: np.random.Generator, clean: tuple[FloatArray, ...]) -> PlainReadings:
        """Readings where each concept stands in the text, which is noticed and named."""
        repeated = tuple(np.tile(part, (CONCEPTS, 1)) for part in clean)
        readings = self._plain(rng, repeated, np.full(CONCEPTS * NOTES, 3.0))
        own_names = np.repeat(4.0 * np.eye(CONCEPTS), NOTES, axis=0)
        names = readings.names.copy()
        names[:, 0] += own_names
        return PlainReadings(readings.log_odds, readings.masses, names, readings.neutral)

    def _names(
        self, rng: np.random.Generator, shape: tuple[int, ...], reach: FloatArray
    ) -> FloatArray:
        """Log-probabilities [note, cell, vector, frame, word]; some words and vectors say more."""
        names = 0.5 * self.noise(rng, (*shape, 3, CONCEPTS))
        names += rng.normal(size=CONCEPTS) + rng.normal(size=(1, 1, shape[2], 1, 1))
        own_name = np.zeros((shape[2], CONCEPTS))
        own_name[:CONCEPTS] = np.eye(CONCEPTS)
        names[..., 0, :] += self.naming * reach * own_name
        names[..., 2, :] += self.any_naming * reach * own_name
        return names

    def _concept_names(self, rng: np.random.Generator, addition: float) -> FloatArray:
        noise = 0.5 * self.noise(rng, (CONCEPTS, CONCEPTS))
        return addition * np.eye(CONCEPTS) + noise


SENTENCES, WORDINGS_OF_SENTENCES = 5, 2


@dataclass(frozen=True)
class SentenceWorld:
    """What vectors on one of five sentences do."""

    finding: float = 0.0
    """Addition to the disturbed sentence at "which one?", at dose 1 and the best block."""
    drawn: float = 0.0
    """The same at both questions."""
    noise: Noise = normal

    def readings(self, rng: np.random.Generator) -> SentenceReadings:
        """Readings of a model in this world."""
        questions = 2 * WORDINGS_OF_SENTENCES
        is_which = np.arange(questions) < WORDINGS_OF_SENTENCES
        shape = (NOTES, len(DOSES), CONCEPTS + CONTROLS, SENTENCES, questions, SENTENCES)
        addition = self.drawn + self.finding * is_which
        reach = DOSES * DEPTHS
        own = np.eye(SENTENCES)[:, None, :] * addition[None, :, None]
        log_probs = -1.6 + 0.5 * self.noise(rng, shape) + rng.normal(size=SENTENCES)
        log_probs += reach[None, :, None, None, None, None] * own
        written = 0.5 * self.noise(rng, (CONCEPTS, NOTES, questions, SENTENCES))
        written_sentences = np.arange(CONCEPTS) % SENTENCES
        written += 3 * np.eye(SENTENCES)[written_sentences][:, None, None, :]
        return SentenceReadings(
            model="m",
            concepts=tuple(f"c{index}" for index in range(CONCEPTS)),
            cells=tuple((index % 3, dose) for index, dose in enumerate(DOSES)),
            log_probs=log_probs,
            masses=np.full(shape[:-1], 0.8),
            clean_log_probs=np.zeros((NOTES, questions, SENTENCES)),
            clean_masses=np.full((NOTES, questions), 0.8),
            written_log_probs=written,
            written_sentences=written_sentences,
        )


def locates(world: SentenceWorld) -> Callable[[np.random.Generator], Claim]:
    """The claim that a model of a world finds the disturbed sentence."""
    return lambda rng: locating_claim(SentenceNumbers(world.readings(rng)))


def notices(world: World) -> Callable[[np.random.Generator], Claim]:
    """The claim that a model of a world notices."""
    return lambda rng: noticing_claim(InjectionNumbers(world.readings(rng)))


def names(world: World) -> Callable[[np.random.Generator], Claim]:
    """The claim that a model of a world names."""
    return lambda rng: naming_claim(InjectionNumbers(world.readings(rng)))


LINES: Lines = {
    "notices: nothing": Line(notices(World())),
    "notices: nothing, t with 3 degrees": Line(notices(World(noise=heavy_tailed))),
    "notices: nothing, exponential": Line(notices(World(noise=skewed))),
    "notices: nothing, three quarters exactly 0": Line(notices(World(noise=rounded))),
    "notices: a bias towards Yes": Line(notices(World(yes_bias=2.0))),
    "notices: signals flattened": Line(notices(World(flattening=0.8))),
    "notices: both": Line(notices(World(yes_bias=2.0, flattening=0.8))),
    "notices: says so of any assistant": Line(notices(World(noticing=2.5, other_noticing=2.5))),
    "notices: vectors move a phrasing": Line(notices(World(phrasing_spread=0.5))),
    "notices: vectors move a wording": Line(notices(World(wording_spread=0.5))),
    "notices: any vector": Line(notices(World(noticing=2.5, control_noticing=2.5))),
    "notices: any difference of words": Line(notices(World(noticing=2.5, word_noticing=2.5))),
    "notices: signals of questions flattened, not of facts": Line(
        notices(World(question_flattening=0.4))
    ),
    "notices: every fact is wrong": Line(notices(World(noticing=2.5, knows_facts=False))),
    "notices: odd texts too": Line(notices(World(noticing=2.5, odd_signal=2.5))),
    "notices: nothing, and no noise without a vector": Line(notices(World(clean_noise=0.0))),
    "notices: .8 at dose 1": Line(notices(World(noticing=0.8)), True, 0.5),
    "notices: .8 at dose 1, and no noise without a vector": Line(
        notices(World(noticing=0.8, clean_noise=0.0)), True, 0.5
    ),
    "notices: 2.5 at dose 1": Line(notices(World(noticing=2.5)), True, 0.9),
    "notices: 2.5 at dose 1, signals flattened": Line(
        notices(World(noticing=2.5, flattening=0.8)), True, 0.9
    ),
    "names: nothing": Line(names(World())),
    "names: nothing, t with 3 degrees": Line(names(World(noise=heavy_tailed))),
    "names: nothing, exponential": Line(names(World(noise=skewed))),
    "names: any word too": Line(names(World(naming=2.0, any_naming=2.0))),
    "names: in what it writes": Line(names(World(naming=2.0, reader_naming=2.0))),
    "names: 2 nats at dose 1": Line(names(World(naming=2.0)), True, 0.9),
    "locates: nothing": Line(locates(SentenceWorld())),
    "locates: nothing, t with 3 degrees": Line(locates(SentenceWorld(noise=heavy_tailed))),
    "locates: the longest too": Line(locates(SentenceWorld(drawn=2.0))),
    "locates: 2 nats at dose 1": Line(locates(SentenceWorld(finding=2.0)), True, 0.9),
    "names: .8 nats at dose 1": Line(names(World(naming=0.8)), True, 0.5),
}
