"""Worlds of `awareness effect`: items under arms, their scores and what a model states about an
evaluation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from lines import Line, Lines, Noise, heavy_tailed, normal, rounded, skewed

from selfprobe.stats.arms import arm_contrasts, corrected_contrasts
from selfprobe.stats.claim import Claim, Verdict
from selfprobe.studies.effect import ScoreFacts, effect_claim

FloatArray = npt.NDArray[np.float64]
ARMS = ("as_is", "paraphrase", "cue_out", "placebo", "told_test", "told_use")
PAIRS = (("cue_out", "paraphrase"), ("told_test", "placebo"), ("told_use", "placebo"))
NOTICING = {
    "as_is": 0.7,
    "paraphrase": 0.7,
    "cue_out": 0.3,
    "placebo": 0.7,
    "told_test": 0.9,
    "told_use": 0.4,
}
"""Mean stated probability by arm."""


DECLINES_ITS_CUES = dict.fromkeys(ARMS, 0.3) | {"cue_out": 0.0}
"""Share of replies that decline, of a model that declines where it reads a giveaway."""


@dataclass(frozen=True)
class World:
    """Models that are asked about the same task."""

    clusters: Sequence[int] = (1,) * 40
    """Number of items of each cluster."""
    correlation: float = 0.0
    """Share of the variance of a score's noise that the items of a cluster have in common, anew in
    each arm.
    """
    noise: Noise = normal
    """Noise of a graded score, of variance 1."""
    solves: float | None = None
    """Share of items that are solved, for scores of 0 and 1; None is a graded score."""
    again: float = 0.3
    """Share of items that are solved anew in each arm."""
    cue_effect: float = 0.0
    """What taking giveaways out adds to the score (to the share that is solved)."""
    told_effect: float = 0.0
    """What being told that it is a test adds."""
    reworded_effect: float = 0.0
    """What any rewording adds."""
    sensitivities: float = 1.0
    """Ratio of the largest noise of an item to the smallest."""
    moves: bool = True
    """Whether the arms move P(evaluation)."""
    answers: float = 1.0
    """Share of P(evaluation) that can be read."""
    states: Callable[[FloatArray], FloatArray] | None = None
    """Function of the stated probabilities that gives those that are read."""
    declines: Mapping[str, float] = field(default_factory=dict)
    """Arm → share of its replies that decline, and score 0."""
    models: int = 1

    def __call__(self, rng: np.random.Generator) -> Claim:
        families = [self._facts(rng) for _ in range(self.models)]
        corrected = corrected_contrasts([facts.contrasts for facts in families])
        claims = [
            effect_claim(ScoreFacts(contrasts, facts.smallest), "m")
            for facts, contrasts in zip(families, corrected, strict=True)
        ]
        return next((claim for claim in claims if claim.verdict is Verdict.YES), claims[0])

    def _facts(self, rng: np.random.Generator) -> ScoreFacts:
        labels = np.repeat(np.arange(len(self.clusters)), self.clusters)
        count = len(labels)
        added = dict.fromkeys(ARMS, 0.0) | {
            "told_test": self.told_effect,
            "paraphrase": self.reworded_effect,
        }
        added["cue_out"] = self.reworded_effect + self.cue_effect
        spread = self.sensitivities ** rng.random(count)
        ability = rng.random(count)
        scores = {}
        stated = {}
        for arm in ARMS:
            if self.solves is None:
                shared = self.noise(rng, (len(self.clusters),))[labels]
                own = self.noise(rng, (count,))
                error = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * own
                scores[arm] = 0.5 + added[arm] + 0.15 * spread * error
            else:
                shown_ability = np.where(rng.random(count) < self.again, rng.random(count), ability)
                scores[arm] = (shown_ability < self.solves + added[arm]).astype(float)
            level = NOTICING[arm] if self.moves else NOTICING["as_is"]
            chances = np.clip(level + 0.15 * rng.normal(size=count), 0, 1).round(2)
            if self.states is not None:
                chances = self.states(chances)
            stated[arm] = np.where(rng.random(count) < self.answers, chances, np.nan)
        declines = {arm: rng.random(count) < self.declines.get(arm, 0.0) for arm in ARMS}
        for arm in ARMS:
            scores[arm] = np.where(declines[arm], 0.0, scores[arm])
        unanswered = {arm: declined.astype(float) for arm, declined in declines.items()}
        contrasts = arm_contrasts(scores, stated, PAIRS, unanswered=unanswered, clusters=labels)
        return ScoreFacts(contrasts, 0.05)


def constant(chances: FloatArray) -> FloatArray:
    return np.full(len(chances), 0.6)


def coin(chances: FloatArray) -> FloatArray:
    return np.asarray(np.random.default_rng(round(1e6 * float(chances.sum()))).random(len(chances)))


LINES: Lines = {
    "notices, no effect: 40 items, normal": Line(World()),
    "notices, no effect: 14 items, normal": Line(World((1,) * 14)),
    "notices, no effect: 40 items, t with 3 degrees": Line(World(noise=heavy_tailed)),
    "notices, no effect: 14 items, exponential": Line(World((1,) * 14, noise=skewed)),
    "notices, no effect: 40 items, three quarters exactly 0": Line(World(noise=rounded)),
    "notices, no effect: items that differ 1 : 6 in sensitivity": Line(World(sensitivities=6)),
    "notices, no effect: 3 sources × 4 with shared shocks": Line(World((4,) * 3, correlation=0.5)),
    "notices, no effect: 6 sources × 10, correlation .4": Line(World((10,) * 6, correlation=0.4)),
    "notices, no effect: 8 unequal sources (1 to 20)": Line(
        World((20, 12, 8, 5, 3, 2, 1, 1), correlation=0.3)
    ),
    "notices, no effect: 100 items solved or not": Line(World((1,) * 100, solves=0.6)),
    "notices, no effect: at the ceiling": Line(World((1,) * 100, solves=0.97)),
    "notices, no effect: five models": Line(World(models=5)),
    "notices, no effect: any rewording costs .2": Line(World(reworded_effect=-0.2)),
    "notices, no effect: told of a test it scores .3 less": Line(World(told_effect=-0.3)),
    "the score changes, P(evaluation) does not move": Line(World(cue_effect=0.3, moves=False)),
    "the score changes, a constant P(evaluation)": Line(World(cue_effect=0.3, states=constant)),
    "the score changes, a coin for P(evaluation)": Line(World(cue_effect=0.3, states=coin)),
    "the score changes, nothing is answered": Line(World(cue_effect=0.3, answers=0.0)),
    "the cues make it decline 3 in 10, 40 items": Line(World(declines=DECLINES_ITS_CUES)),
    "the cues make it decline 3 in 10, 100 items solved or not": Line(
        World((1,) * 100, solves=0.6, declines=DECLINES_ITS_CUES)
    ),
    "it declines 1 in 5 under each arm, no effect": Line(World(declines=dict.fromkeys(ARMS, 0.2))),
    "an effect of .10, 40 items, normal": Line(World(cue_effect=0.1), True, 0.6),
    "an effect of .10, 40 items, three quarters exactly 0": Line(
        World(cue_effect=0.1, noise=rounded), True, 0.7
    ),
    "an effect of .20, 14 items": Line(World((1,) * 14, cue_effect=0.2), True, 0.6),
    "an effect of .20, 8 sources × 5": Line(
        World((5,) * 8, correlation=0.3, cue_effect=0.2), True, 0.6
    ),
    "an effect of 20 points, 100 items solved or not": Line(
        World((1,) * 100, solves=0.6, cue_effect=0.2), True, 0.6
    ),
    "an effect of .05, 200 items": Line(World((1,) * 200, cue_effect=0.05), True, 0.5),
}
