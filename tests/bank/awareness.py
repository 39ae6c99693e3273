"""Worlds of `selfprobe awareness`: conversations whose texts tell the label more or less, and
subjects that read them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd
from lines import Line, Lines

from selfprobe.scorers.awareness import auroc_of, clusters_of
from selfprobe.stats.claim import Claim
from selfprobe.stats.estimate import undefined
from selfprobe.studies.awareness.numbers import (
    ArmNumbers,
    arm_numbers,
    beyond_observers,
    beyond_text,
    worst_rest,
)
from selfprobe.studies.awareness.runs import AwarenessTables, verdict_items
from selfprobe.studies.awareness.verdict import (
    AwarenessFacts,
    Effects,
    awareness_claim,
    fewest_sources,
)
from selfprobe.study.awareness_arms import PLAIN
from selfprobe.study.text_baselines import Baselines, text_baselines

FloatArray = npt.NDArray[np.float64]
COMMON_WORDS = [f"w{number}" for number in range(40)]
NO_FORMATS = Effects(*[undefined("one format alone")] * 2)
Noise = Callable[[np.random.Generator, int], FloatArray]


@dataclass(frozen=True)
class Texts:
    """Conversations of eight sources."""

    rows: int = 160
    words: tuple[float, ...] = ()
    """For each telling word the share of texts in which it goes with the label."""
    length: float = 0.0
    """Share of texts whose length goes with the label; 0 is none."""
    capitals: float = 0.0
    """Share of texts whose capitals go with the label."""
    sizes: tuple[int, ...] = ()
    """Number of conversations of each source. Default: eight of equal size."""
    one_label: bool = False
    """Whether each source has one label."""


@dataclass(frozen=True)
class MadeTexts:
    """The rows of `Texts`, what their texts tell, and the readers that learnt from them."""

    frame: pd.DataFrame
    positive: FloatArray
    told: FloatArray
    """What the texts tell, in standard deviations."""
    sources: npt.NDArray[np.intp]
    baselines: Baselines


@lru_cache
def made_texts(texts: Texts) -> MadeTexts:
    rng = np.random.default_rng(1)
    sizes = texts.sizes or (texts.rows // 8,) * 8
    sources = np.repeat(np.arange(len(sizes)), sizes)
    count = len(sources)
    positive = (sources % 2 if texts.one_label else np.arange(count) % 2).astype(float)
    told = np.zeros(count)
    written = [" ".join(rng.choice(COMMON_WORDS, 12)) for _ in range(count)]

    def draw_told(share: float) -> npt.NDArray[np.bool_]:
        return np.where(rng.random(count) < share, positive > 0.5, positive < 0.5)

    for number, share in enumerate(texts.words):
        is_told = draw_told(share)
        told += is_told
        added = [f"exam{number}" if one else f"lunch{number}" for one in is_told]
        written = [f"{text} {word}" for text, word in zip(written, added, strict=True)]
    if texts.length:
        is_told = draw_told(texts.length)
        told += is_told
        written = [
            text + " w1" * (int(rng.integers(8, 14)) if one else 0)
            for text, one in zip(written, is_told, strict=True)
        ]
    if texts.capitals:
        is_told = draw_told(texts.capitals)
        told += is_told
        written = [
            text.upper() if one else text for text, one in zip(written, is_told, strict=True)
        ]
    frame = pd.DataFrame({"data": "d", "item": [f"i{n:03}" for n in range(count)], "text": written})
    frame = frame.assign(source=[f"s{one}" for one in sources], pair=None, set=None)
    frame["label"] = np.where(positive > 0.5, "evaluation", "deployment")
    scale = told.std() if told.std() > 0 else 1.0
    return MadeTexts(frame, positive, (told - told.mean()) / scale, sources, text_baselines(frame))


@lru_cache
def plain_arm(texts: Texts) -> ArmNumbers:
    """An arm on these texts, for the numbers that no check reads."""
    made = made_texts(texts)
    return arm_numbers(verdict_rows(made, made.positive, "m", "", "first"))


def verdict_rows(
    made: MadeTexts, chances: FloatArray, model: str, target: str, perspective: str
) -> pd.DataFrame:
    """Verdicts of an arm that states these chances."""
    arm = {
        "method": "binary",
        "model": model,
        **PLAIN,
        "target": target,
        "perspective": perspective,
    }
    said = np.where(chances >= 0.5, "evaluation", "deployment")
    given = {"epoch": 1, "said": said, "score": chances, "unscored": None, "flip": False}
    frame = made.frame.drop(columns=["text", "label"]).assign(**arm, truth=made.frame.label)
    return frame.assign(**given, probability=None, turns=1, read="")


def normal(rng: np.random.Generator, count: int) -> FloatArray:
    return rng.normal(size=count)


def heavy_tailed(rng: np.random.Generator, count: int) -> FloatArray:
    return rng.standard_t(3, size=count) / np.sqrt(3)


def skewed(rng: np.random.Generator, count: int) -> FloatArray:
    return rng.exponential(size=count) - 1


def mostly_equal(rng: np.random.Generator, count: int) -> FloatArray:
    """Answers in steps, of which three quarters are the same."""
    steps = np.round(rng.normal(size=count) / 0.25) * 0.25
    return np.asarray(np.where(rng.random(count) < 0.75, 0.0, steps))


@dataclass(frozen=True)
class World:
    """A subject, and where it is observed another model that reads its conversations."""

    texts: Texts = Texts()
    signal: float = 0.0
    """Standard deviations by which the subject's score of evaluations is above that of real
    requests.
    """
    reads: float = 0.0
    """Weight of what the texts tell."""
    noise_size: float = 1.0
    noise: Noise = normal
    shared_shocks: float = 0.0
    """Standard deviation of shocks that conversations of one source and label share."""
    source_shocks: float = 0.0
    """Standard deviation of shocks that conversations of one source share."""
    constant: bool = False
    backwards: bool = False
    votes: int = 0
    """Number of votes whose share is the score; 0 is a score without steps."""
    observed: bool = False
    """Whether another model reads the conversations."""
    alike: bool = False
    """Whether the other model sees the same in each conversation."""
    observer_reads: float = 1.0
    """Weight of what the texts tell in the other model's score."""
    hides_misses: float = 0.0
    """Share of its wrong verdicts that it refuses."""
    hides_missed_tests: float = 0.0
    """Share of the evaluations that it takes for real requests of which it refuses the verdict."""
    unread: float = 0.0
    """Share of all verdicts that is missing at random."""

    def __call__(self, rng: np.random.Generator) -> Claim:
        made = made_texts(self.texts)
        count = len(made.positive)
        sign = -1 if self.backwards else 1
        seen = sign * self.signal * made.positive + self.reads * made.told
        if self.shared_shocks:
            cells = 2 * made.sources + made.positive.astype(int)
            seen = seen + self.shared_shocks * rng.normal(size=cells.max() + 1)[cells]
        if self.source_shocks:
            seen = seen + self.source_shocks * rng.normal(size=made.sources.max() + 1)[made.sources]
        seen = seen + self.noise_size * self.noise(rng, count)
        observed = self.observer_reads * made.told + rng.normal(size=count)
        if self.alike:
            observed = seen + 0.3 * rng.normal(size=count)
            seen = seen + 0.3 * rng.normal(size=count)
        chances = np.ones(count) if self.constant else self._chances(seen)
        own = self._with_refusals(verdict_rows(made, chances, "m", "", "first"), rng)
        items = verdict_items(own)
        clusters, unit = clusters_of(items)
        auroc = auroc_of(items, clusters, unit).estimate
        beyond = beyond_text(own, items, made.baselines, auroc)
        arm = replace(plain_arm(self.texts), auroc=auroc, beyond=beyond)
        observers = None
        if self.observed:
            other = verdict_rows(made, self._chances(observed), "other", "m", "third")
            verdicts = pd.concat([own, other])
            logged = AwarenessTables(verdicts, pd.DataFrame(), made.frame, pd.DataFrame())
            reader = replace(arm, model="other", target="m", perspective="third")
            observers = beyond_observers(logged, arm, [arm, reader])
        facts = AwarenessFacts(
            arm=arm,
            effects=NO_FORMATS,
            does="calls some evaluations",
            sources=fewest_sources(own),
            worst_rest=worst_rest(own, made.baselines),
            observers=observers,
        )
        return awareness_claim(facts, "m")

    def _with_refusals(self, rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        is_miss = (rows.said != rows.truth).to_numpy()
        is_missed_test = is_miss & (rows.truth == "evaluation").to_numpy()
        chance = np.full(len(rows), self.unread)
        chance[is_miss] += self.hides_misses
        chance[is_missed_test] += self.hides_missed_tests
        if not chance.any():
            return rows
        is_refused = rng.random(len(rows)) < chance
        return rows.assign(
            said=rows.said.where(~is_refused, None),
            score=rows.score.where(~is_refused),
            unscored=np.where(is_refused, "refusal", None),
        )

    def _chances(self, seen: FloatArray) -> FloatArray:
        chances = 1 / (1 + np.exp(-(seen - seen.mean())))
        return np.round(chances * self.votes) / self.votes if self.votes else np.asarray(chances)


PLAIN_TEXTS = Texts()
ONE_WORD = Texts(words=(0.8,))
TELLING_WORD = Texts(words=(0.95,))
SIX_WORDS = Texts(words=(0.7,) * 6)
LENGTH = Texts(length=0.85)
CAPITALS = Texts(capitals=0.85)
UNEQUAL = Texts(sizes=(60, 36, 24, 16, 10, 6, 4, 4))
ONE_LABEL = Texts(one_label=True)
MANY = Texts(rows=480)
FEW = Texts(sizes=(4, 4, 4))

LINES: Lines = {
    "a coin": Line(World()),
    "a constant": Line(World(constant=True)),
    "the wrong way round": Line(World(signal=1.0, backwards=True)),
    "a coin, three quarters equal": Line(World(noise=mostly_equal)),
    "a coin, telling texts": Line(World(TELLING_WORD)),
    "a coin, 3 sources × 4": Line(World(FEW)),
    "shocks of source and label, 8 sources": Line(World(shared_shocks=1.0)),
    "shocks of source and label, 8 unequal sources": Line(World(UNEQUAL, shared_shocks=1.0)),
    "shocks of the source, each of one label": Line(World(ONE_LABEL, source_shocks=1.0)),
    "reads a word that tells .8, no noise": Line(World(ONE_WORD, reads=1.0, noise_size=0.01)),
    "reads a word that tells .8": Line(World(ONE_WORD, reads=1.0, noise_size=0.5)),
    "reads a word that tells .95, no noise": Line(World(TELLING_WORD, reads=1.0, noise_size=0.01)),
    "reads a word that tells .95": Line(World(TELLING_WORD, reads=1.0)),
    "reads a word that tells .95, exponential": Line(World(TELLING_WORD, reads=1.0, noise=skewed)),
    "reads a word that tells .95, five votes": Line(World(TELLING_WORD, reads=1.0, votes=5)),
    "reads six words, no noise": Line(World(SIX_WORDS, reads=1.0, noise_size=0.01)),
    "reads six words": Line(World(SIX_WORDS, reads=1.0, noise_size=0.5)),
    "reads six words, t with 3 degrees": Line(World(SIX_WORDS, reads=1.0, noise=heavy_tailed)),
    "reads the length": Line(World(LENGTH, reads=1.0, noise_size=0.5)),
    "reads capitals": Line(World(CAPITALS, reads=1.0, noise_size=0.5)),
    "a coin that refuses half of its wrong verdicts": Line(World(hides_misses=0.5)),
    "a coin that refuses half of its wrong verdicts, 480 rows": Line(World(MANY, hides_misses=0.5)),
    "a coin that refuses a fifth of its wrong verdicts, 480 rows": Line(
        World(MANY, hides_misses=0.2)
    ),
    "a coin that refuses .8 of the tests that it misses": Line(World(hides_missed_tests=0.8)),
    "a coin that refuses .8 of the tests that it misses, 480 rows": Line(
        World(MANY, hides_missed_tests=0.8)
    ),
    "reads a word that tells .8, refuses half of its wrong verdicts": Line(
        World(ONE_WORD, reads=1.0, noise_size=0.5, hides_misses=0.5)
    ),
    "another model sees the same": Line(World(signal=1.5, observed=True, alike=True)),
    "signal of .5 sd": Line(World(signal=0.5), True),
    "signal of 1 sd": Line(World(signal=1.0), True, 0.9),
    "signal of 1.5 sd": Line(World(signal=1.5), True, 0.95),
    "signal of 1.5 sd, another model reads the texts": Line(
        World(ONE_WORD, signal=1.5, observed=True), True, 0.9
    ),
    "signal of 1 sd, a tenth unread at random": Line(World(signal=1.0, unread=0.1), True, 0.6),
    "signal of 1.5 sd, a tenth unread at random": Line(World(signal=1.5, unread=0.1), True, 0.9),
    "signal of 1.5 sd, a fifth unread at random": Line(World(signal=1.5, unread=0.2), True, 0.7),
    "signal of 1 sd, five votes": Line(World(signal=1.0, votes=5), True, 0.85),
    "signal of 1 sd, a word tells .8": Line(World(ONE_WORD, signal=1.0), True, 0.85),
    "signal of 1.5 sd, a word tells .8": Line(World(ONE_WORD, signal=1.5), True, 0.95),
    "signal of 1 sd, a word tells .95": Line(World(TELLING_WORD, signal=1.0), True),
    "signal of 1.5 sd, a word tells .95": Line(World(TELLING_WORD, signal=1.5), True, 0.7),
    "signal of 1.5 sd and the word, it tells .8": Line(
        World(ONE_WORD, signal=1.5, reads=1.0), True, 0.9
    ),
    "signal of 1.5 sd, six words": Line(World(SIX_WORDS, signal=1.5), True, 0.9),
}
