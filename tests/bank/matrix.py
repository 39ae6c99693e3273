"""Worlds of `selfprobe matrix`: models that give answers and predict them, their own and each
other's.

At each item one answer leads by a margin. A model gives it by its ease and the margin, else a word
of its own; it predicts it by its skill and the margin. Particular models may be alike beyond that.
A model with access knows its own answer in some share of the items.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from lines import Line, Lines
from scipy import special

from selfprobe.stats.claim import Claim, ordered_claims
from selfprobe.studies.matrix.advantage import double_centre, total_of
from selfprobe.studies.matrix.habit import ItemSpecificScores
from selfprobe.studies.matrix.rows import model_rows
from selfprobe.studies.matrix.verdict import MatrixFacts, matrix_claims

MATRIX_TESTS = Path(__file__).parents[1] / "matrix"
if str(MATRIX_TESTS) not in sys.path:
    sys.path.append(str(MATRIX_TESTS))

from truths import (  # noqa: E402
    Draw,
    Drawn,
    blocks,
    expert,
    outsider,
    plain,
    sharing_errors,
    without_habit,
    worded,
)

FloatArray = npt.NDArray[np.float64]
LEADING = 10**7
"""Code of the answer that leads at the first item; each item has one of its own."""
SHARED_ERROR = 2 * LEADING
"""Code of the wrong answer that models share at the first item; each item has one of its own."""
OWN_WORD = -3.0
"""Chance, in logits, that an observer which is not alike predicts a word of the target's own."""
Likeness = Callable[[np.random.Generator, int], FloatArray]
"""From a generator and a number of models to the logits by which a pair is alike beyond skill,
[target, observer].
"""


@dataclass(frozen=True)
class World:
    """Models that give and predict answers."""

    models: int = 5
    items: int = 200
    skills: tuple[float, ...] = ()
    """Chance of predicting the leading answer at a margin of 0. Default: .4 to .8, graded."""
    eases: tuple[float, ...] = ()
    """Chance of giving it. Default: .4 to .8, graded."""
    margin_sd: float = 1.0
    """Standard deviation of the margin, in logits."""
    easy_share: float | None = None
    """Share of easy items, with a margin of `margin_sd`; hard ones have minus that. None: margins
    are normal.
    """
    slopes: tuple[float, ...] = ()
    """By how much the margin moves a model, in answers and predictions. Default: 1."""
    vocabulary: int = 1000
    """Number of other words that a model may give."""
    shared_error: float = 0.0
    """Share of the answers other than the leading one that are the same word."""
    likeness: Likeness | None = None
    copies: int = 0
    """Number of models that copy the first one's replies, each at half of the items."""
    constant: bool = False
    """Whether every model predicts one word of its own, which it gives in three of ten items."""
    access: dict[int, float] = field(default_factory=dict)
    """Model → share of the items at which it knows its own answer."""

    def __call__(self, rng: np.random.Generator) -> Claim:
        return claim_of(self.draw(rng), rng, self.access)

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Scores, item-specific scores, hits of baselines, and what replies get as predictions."""
        graded = np.linspace(0.4, 0.8, self.models)
        skills = special.logit(np.array(self.skills or graded))[:, None]
        eases = special.logit(np.array(self.eases or graded))[:, None]
        margins = self._margins(rng)
        slopes = np.array(self.slopes or [1.0] * self.models)[:, None]
        shape = (self.models, self.items)
        leading = LEADING + np.arange(self.items)
        replies = np.where(
            rng.random(shape) < special.expit(eases + slopes * margins),
            leading,
            self._other_words(rng),
        )
        for copy in range(1, self.copies + 1):
            replies[copy] = np.where(rng.random(self.items) < 0.5, replies[0], replies[copy])
        predictions = np.where(
            rng.random(shape) < special.expit(skills + slopes * margins),
            leading,
            self._other_words(rng),
        )
        if self.constant:
            usual = -1 - np.arange(self.models)[:, None]
            replies = np.where(rng.random(shape) < 0.3, usual, replies)
            predictions = np.broadcast_to(usual, shape).copy()
        for model, share in self.access.items():
            knows = rng.random(self.items) < share
            predictions[model] = np.where(knows, replies[model], predictions[model])
        hits = replies[:, None] == predictions[None]
        if self.likeness is not None:
            hits = self._hits_of_alike(rng, replies == leading, skills, margins)
        scores = hits.astype(float)
        stand_ins = (replies[:, None] == replies[None]).astype(float)
        if self.likeness is not None:
            return (
                scores,
                ItemSpecificScores(scores, np.full(scores.shape[:2], np.nan), ""),
                {},
                stand_ins,
            )
        specific = without_habit(predictions[:, :, None], replies[:, :, None])
        return scores, specific, {"mode": mode_hits(replies)}, stand_ins

    def _other_words(self, rng: np.random.Generator) -> npt.NDArray[np.int_]:
        """Words [model, item] in the place of the leading answer."""
        shape = (self.models, self.items)
        words = rng.integers(1, self.vocabulary, shape)
        if self.shared_error:
            is_shared = rng.random(shape) < self.shared_error
            words = np.where(is_shared, SHARED_ERROR + np.arange(self.items), words)
        return words

    def _margins(self, rng: np.random.Generator) -> FloatArray:
        """Logits [item] by which the leading answer leads."""
        if self.easy_share is None:
            return self.margin_sd * rng.normal(size=self.items)
        is_easy = rng.random(self.items) < self.easy_share
        return np.where(is_easy, self.margin_sd, -self.margin_sd)

    def _hits_of_alike(
        self,
        rng: np.random.Generator,
        is_leading: npt.NDArray[np.bool_],
        skills: FloatArray,
        margins: FloatArray,
    ) -> npt.NDArray[np.bool_]:
        """Hits [target, observer, item] of predictions that are made for each target; own pairs are
        alike too.
        """
        assert self.likeness is not None
        likeness = self.likeness(rng, self.models)[:, :, None]
        of_leading = special.expit(skills[None] + margins + likeness)
        of_others = special.expit(OWN_WORD + likeness)
        chances = np.where(is_leading[:, None], of_leading, of_others)
        return rng.random(chances.shape) < chances


def mode_hits(replies: npt.NDArray[np.int_]) -> FloatArray:
    """Hits of the commonest reply to the other items, [model, item]; replies that tie are guessed
    alike.
    """
    hits = np.zeros(replies.shape)
    for model, words in enumerate(replies):
        _, codes, counts = np.unique(words, return_inverse=True, return_counts=True)
        *_, second, first = np.sort(counts)
        most_of_others = np.where(counts == first, second, first)[codes]
        own = counts[codes] - 1
        tied = (counts == most_of_others[:, None]).sum(axis=1)
        hits[model] = np.where(
            own > most_of_others, 1.0, np.where(own == most_of_others, 1 / (1 + tied), 0.0)
        )
    return hits


def claim_of(drawn: Drawn, rng: np.random.Generator, access: dict[int, float]) -> Claim:
    """The claim of the first model with access; where none has any, the one that comes first on the
    page.
    """
    scores, specific, hits, stand_ins = drawn
    names = [str(number) for number in range(len(scores))]
    rows = model_rows(
        names, scores, specific, hits, tests=len(names), rng=rng, power=False, stand_ins=stand_ins
    )
    centred = double_centre(np.nanmean(specific.scores, axis=2))
    facts = MatrixFacts(
        models=names,
        rows=rows,
        holes={},
        means=np.nanmean(scores, axis=2),
        centred=centred,
        total=total_of(specific.scores),
    )
    claims = matrix_claims(facts)
    if access:
        return claims[min(access)]
    return ordered_claims(claims)[0]


def drawn_line(draw: Draw, items: int) -> Callable[[np.random.Generator], Claim]:
    """A world of `tests/matrix/truths.py`."""
    return lambda rng: claim_of(draw(rng, items), rng, {})


def mutual(rng: np.random.Generator, models: int) -> FloatArray:
    """Pairs are alike both ways."""
    logits = rng.normal(0, 0.8, (models, models))
    return np.asarray(np.tril(logits) + np.tril(logits, -1).T)


def normal(rng: np.random.Generator, models: int) -> FloatArray:
    return np.asarray(rng.normal(0, 0.8, (models, models)))


def heavy_tailed(rng: np.random.Generator, models: int) -> FloatArray:
    return np.asarray(0.5 * rng.standard_t(3, (models, models)))


def sparse(rng: np.random.Generator, models: int) -> FloatArray:
    """One pair in ten is alike by 1.5 logits."""
    return 1.5 * (rng.random((models, models)) < 0.1)


def scores_alone(world: World) -> Callable[[np.random.Generator], Claim]:
    """A world where replies cannot stand in for predictions."""

    def claim(rng: np.random.Generator) -> Claim:
        scores, *_ = world.draw(rng)
        return claim_of(plain(scores), rng, world.access)

    return claim


def two_kinds(models: int, items: int, easy_share: float, gap: float) -> World:
    """One strong model among weak ones at easy and hard items, `gap` logits from the middle."""
    return World(models, items, margin_sd=gap, easy_share=easy_share, **strong(models))


def strong(models: int) -> dict[str, tuple[float, ...]]:
    weak = [0.3] * (models - 1)
    return {"skills": (0.9, *weak), "eases": (0.8, *weak)}


EQUAL = {models: {"skills": (0.6,) * models, "eases": (0.6,) * models} for models in (5, 8)}
HABITS = [0.7, 0.6, 0.5, 0.4, 0.3]

LINES: Lines = {
    "strangers, 5 x 200": Line(World()),
    "strangers, 8 x 200": Line(World(8)),
    "strangers, 5 x 20": Line(World(items=20)),
    "items share a difficulty, one strong, 5 x 200": Line(World(margin_sd=1.5, **strong(5))),
    "items share a difficulty, one strong, 8 x 200": Line(World(8, margin_sd=1.5, **strong(8))),
    "items share a difficulty, one strong, 5 x 400": Line(
        World(items=400, margin_sd=1.5, **strong(5))
    ),
    "the same, few words": Line(World(items=400, margin_sd=1.5, vocabulary=30, **strong(5))),
    "the same, scores alone, 5 x 400": Line(
        scores_alone(World(items=400, margin_sd=1.5, **strong(5)))
    ),
    "the same, scores alone, 8 x 200": Line(scores_alone(World(8, margin_sd=1.5, **strong(8)))),
    "three items in ten are easy, one strong, 5 x 400": Line(two_kinds(5, 400, 0.3, 1.5)),
    "one item in ten is easy, one strong, 5 x 400": Line(two_kinds(5, 400, 0.1, 2.5)),
    "one item in ten is easy, one strong, 8 x 200": Line(two_kinds(8, 200, 0.1, 2.5)),
    "one item in five is easy, scores alone, 5 x 400": Line(
        scores_alone(two_kinds(5, 400, 0.2, 2.0))
    ),
    "difficulty moves the strong one half as much, 5 x 400": Line(
        World(items=400, margin_sd=1.5, slopes=(0.5, 1, 1, 1, 1), **strong(5))
    ),
    "weak models share wrong answers, scores alone, 5 x 400": Line(
        drawn_line(lambda rng, items: sharing_errors(5, rng, items), 400)
    ),
    "weak models share wrong answers, 5 x 200": Line(
        World(margin_sd=1.5, shared_error=0.5, **strong(5))
    ),
    "most share them, 5 x 200": Line(World(margin_sd=1.5, shared_error=0.8, **strong(5))),
    "most share them, 8 x 200": Line(World(8, margin_sd=1.5, shared_error=0.8, **strong(8))),
    "likeness, mutual, 8 x 200": Line(World(8, likeness=mutual)),
    "likeness, normal, 8 x 200": Line(World(8, likeness=normal)),
    "likeness, t3, 8 x 200": Line(World(8, likeness=heavy_tailed)),
    "likeness, sparse, 5 x 200": Line(World(likeness=sparse)),
    "likeness, sparse, 8 x 200": Line(World(8, likeness=sparse)),
    "two copies of one": Line(World(8, copies=2)),
    "constants": Line(World(constant=True)),
    "habits": Line(drawn_line(worded(HABITS, {}), 200)),
    "two families": Line(drawn_line(lambda rng, items: blocks(np.arange(8) // 4, rng, items), 200)),
    "expert of its family, which is there": Line(
        drawn_line(lambda rng, items: expert(8, rng, items), 200)
    ),
    "a stranger to look-alikes": Line(drawn_line(lambda rng, items: outsider(5, rng, items), 200)),
    "weak targets": Line(World(eases=(0.1,) * 5, margin_sd=1.5)),
    "access .4 of one, 8 x 200": Line(World(8, access={3: 0.4}, **EQUAL[8]), True, 0.8),
    "access .4 of one, graded, 8 x 200": Line(World(8, access={3: 0.4}), True, 0.6),
    "access .4 of one, 5 x 400": Line(World(items=400, access={2: 0.4}, **EQUAL[5]), True, 0.8),
    "access .4 of two, 8 x 100": Line(
        World(8, 100, access={3: 0.4, 5: 0.4}, **EQUAL[8]), True, 0.4
    ),
    "access .2 of one, 8 x 400": Line(World(8, 400, access={3: 0.2}, **EQUAL[8]), True, 0.0),
}
