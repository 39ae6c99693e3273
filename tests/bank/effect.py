"""Worlds of `awareness effect`: items under arms, their scores and what a model states about an
evaluation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from lines import Line, Lines, Noise, heavy_tailed, normal, rounded, skewed

from selfprobe.evalawareness_tasks.awareness_effect import KIND_CONTROL
from selfprobe.stats.arms import arm_contrasts, corrected_contrasts
from selfprobe.stats.claim import Claim, Outcome, Verdict
from selfprobe.studies.effect_claims import effect_claim, kinds_claim
from selfprobe.studies.effect_numbers import ScoreFacts, corrected_facts, pooled_kinds

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


def lognormal(sigma: float, scale: float = 4.0) -> Noise:
    """Noise of mean 0 and median scale · (1 - exp(sigma² / 2))."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return scale * (rng.lognormal(sigma=sigma, size=shape) - np.exp(sigma**2 / 2))

    return draw


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
    noise_sd: float = 0.15
    level: float = 0.5
    """Mean of a graded score."""
    cue_noise: Noise | None = None
    """Noise of the score without giveaways; None is that of other arms."""
    rare_losses: float = 0.0
    """Share of items that score 0 without giveaways; the others gain as much."""
    rare_gains: float = 0.0
    """Share of items that score 1 without giveaways; the others lose as much."""
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
                is_cue_arm = arm == "cue_out"
                noise = self.cue_noise if self.cue_noise and is_cue_arm else self.noise
                shared = noise(rng, (len(self.clusters),))[labels]
                own = noise(rng, (count,))
                error = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * own
                scores[arm] = self.level + added[arm] + self.noise_sd * spread * error
            else:
                shown_ability = np.where(rng.random(count) < self.again, rng.random(count), ability)
                scores[arm] = (shown_ability < self.solves + added[arm]).astype(float)
            if arm == "cue_out":
                scores[arm] = self._with_rare_changes(scores[arm], rng)
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

    def _with_rare_changes(self, scores: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Scores of which few are all lost, or all gained, and the others move the other way by as
        much on average.
        """
        for share, end in ((self.rare_losses, 0.0), (self.rare_gains, 1.0)):
            if share:
                is_rare = rng.random(len(scores)) < share
                other_change = (self.level - end) * share / (1 - share)
                scores = np.where(is_rare, end, scores + other_change)
        return scores


NO_EFFECTS = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class KindWorld:
    """Models that are asked with four kinds of evaluation suggested."""

    effects: Sequence[float] = NO_EFFECTS
    """What each kind adds to the score (to the share that is solved)."""
    clusters: Sequence[int] = (1,) * 40
    correlation: float = 0.0
    """Share of the variance of a score's noise that the items of a cluster have in common, anew in
    each arm.
    """
    noise: Noise = normal
    hint_noise: Noise | None = None
    """Noise of the score under each kind; None is that of the placebos."""
    spreads: Sequence[float] = (1.0, 1.0, 1.0, 1.0)
    """Standard deviation of the noise under each kind, in units of that under the placebos."""
    item_spread: float = 0.0
    """Standard deviation over items of what every kind adds."""
    own_item_spread: float = 0.0
    """The same of what each kind adds by itself."""
    line_effect: float = 0.0
    """What any line adds, placebos too."""
    odd_placebo_effect: float = 0.0
    """What one of the placebos adds by itself."""
    sensitivities: float = 1.0
    """Ratio of the largest noise of an item to the smallest."""
    solves: float | None = None
    """Share of items that are solved, for scores of 0 and 1; None is a graded score."""
    rises: float = 0.3
    """What each kind adds to P(evaluation)."""
    declines: Mapping[str, float] = field(default_factory=dict)
    """Arm → share of its replies that decline, and score 0."""
    models: int = 1
    says_apart: bool = False
    """Whether the claim is that the kinds pull apart."""

    def __call__(self, rng: np.random.Generator) -> Claim:
        facts_of_models = corrected_facts([self._facts(rng) for _ in range(self.models)])
        claims = [kinds_claim(facts, "m") for facts in facts_of_models]
        if self.says_apart:
            claims = [_apart(claim) for claim in claims]
        return next((claim for claim in claims if claim.verdict is Verdict.YES), claims[0])

    def _facts(self, rng: np.random.Generator) -> ScoreFacts:
        labels = np.repeat(np.arange(len(self.clusters)), self.clusters)
        count = len(labels)
        arms = [*KIND_CONTROL, *KIND_CONTROL.values()]
        effect_of_arm = dict(zip(KIND_CONTROL, self.effects, strict=True))
        effect_of_arm["placebo_trap"] = self.odd_placebo_effect
        spread_of_arm = dict(zip(KIND_CONTROL, self.spreads, strict=True))
        item_effects = self.item_spread * rng.normal(size=count)
        spread_of_item = self.sensitivities ** rng.random(count)
        ability = rng.random(count)
        scores = {}
        stated = {}
        unanswered = {}
        for arm in arms:
            added = np.full(count, effect_of_arm.get(arm, 0.0) + self.line_effect)
            if arm in KIND_CONTROL:
                added += item_effects + self.own_item_spread * rng.normal(size=count)
            is_hint = arm in KIND_CONTROL
            noise = self.hint_noise if self.hint_noise and is_hint else self.noise
            shared = noise(rng, (len(self.clusters),))[labels]
            own = noise(rng, (count,))
            error = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * own
            if self.solves is None:
                scale = 0.15 * spread_of_item * spread_of_arm.get(arm, 1.0)
                scores[arm] = 0.5 + added + scale * error
            else:
                shown_ability = np.where(rng.random(count) < 0.3, rng.random(count), ability)
                scores[arm] = (shown_ability < self.solves + added).astype(float)
            declined = rng.random(count) < self.declines.get(arm, 0.0)
            scores[arm] = np.where(declined, 0.0, scores[arm])
            unanswered[arm] = declined.astype(float)
            level = 0.4 + self.rises * (arm in KIND_CONTROL)
            stated[arm] = np.clip(level + 0.15 * rng.normal(size=count), 0, 1).round(2)
        asked = {arm: np.ones(count, dtype=bool) for arm in arms}
        kinds = pooled_kinds(
            scores,
            stated,
            unanswered=unanswered,
            is_asked_by_arm=asked,
            clusters=labels,
            unit="item",
        )
        contrasts = arm_contrasts(
            scores, stated, list(KIND_CONTROL.items()), unanswered=unanswered, clusters=labels
        )
        return ScoreFacts(contrasts, 0.05, kinds=kinds)


def _apart(claim: Claim) -> Claim:
    """The claim that kinds pull apart: Yes where a page says so."""
    is_said = (
        claim.verdict is Verdict.CANNOT_TELL
        and claim.first_unmet_check is not None
        and claim.first_unmet_check.name == "kinds_agree"
        and claim.first_unmet_check.outcome is Outcome.FAILS
    )
    agreement = next(check for check in claim.checks if check.name == "kinds_agree")
    outcome = Outcome.HOLDS if is_said else Outcome.OPEN
    return replace(claim, checks=(replace(agreement, outcome=outcome),))


HEAVY_SKEW = lognormal(1.5)
HEAVIEST_SKEW = lognormal(2.0)
ALL_UP = (0.1, 0.1, 0.1, 0.1)
APART = (-0.1, -0.1, 0.1, 0.1)
DECLINES_TRAPS = {"kind_trap": 0.3, "kind_safety": 0.3}
NULLS_OF_KINDS: dict[str, KindWorld] = {
    "no effect: 40 items, normal": KindWorld(),
    "no effect: 14 items, normal": KindWorld(clusters=(1,) * 14),
    "no effect: 7 items, normal": KindWorld(clusters=(1,) * 7),
    "no effect: 40 items, t with 3 degrees": KindWorld(noise=heavy_tailed),
    "no effect: 14 items, t with 3 degrees": KindWorld(clusters=(1,) * 14, noise=heavy_tailed),
    "no effect: 14 items, exponential": KindWorld(clusters=(1,) * 14, noise=skewed),
    "no effect: 40 items, three quarters exactly 0": KindWorld(noise=rounded),
    "no effect: items that differ 1 : 6 in sensitivity": KindWorld(sensitivities=6),
    "no effect: 6 sources × 10, correlation .4": KindWorld(clusters=(10,) * 6, correlation=0.4),
    "no effect: 8 unequal sources (1 to 20)": KindWorld(
        clusters=(20, 12, 8, 5, 3, 2, 1, 1), correlation=0.3
    ),
    "no effect: 100 items solved or not": KindWorld(clusters=(1,) * 100, solves=0.6),
    "no effect: one kind spreads four times as much": KindWorld(spreads=(1, 1, 1, 4)),
    "no effect: one kind spreads four times as much, exponential": KindWorld(
        spreads=(1, 1, 1, 4), noise=skewed
    ),
    "no effect: kinds that spread 1 : 6": KindWorld(spreads=(0.5, 1, 2, 3), noise=heavy_tailed),
    "no effect: any line costs .2, placebos too": KindWorld(line_effect=-0.2),
    "no effect: at the ceiling": KindWorld(clusters=(1,) * 100, solves=0.97),
    "no effect: one of four placebos costs .2": KindWorld(odd_placebo_effect=-0.2),
    "no effect: five models": KindWorld(models=5),
    "no effect: lognormal (σ = 1.5) under each kind, 14 items": KindWorld(
        clusters=(1,) * 14, hint_noise=HEAVY_SKEW
    ),
    "no effect: lognormal (σ = 1.5) under each kind, 40 items": KindWorld(hint_noise=HEAVY_SKEW),
}
EQUAL_KINDS: dict[str, KindWorld] = {
    "an effect of .10 under each, 40 items": KindWorld(ALL_UP),
    "an effect of .20 under each, 14 items": KindWorld((0.2,) * 4, clusters=(1,) * 14),
    "an effect of .05 under each, 200 items": KindWorld((0.05,) * 4, clusters=(1,) * 200),
    "an effect of .10 under each, otherwise by item (sd .2), 100 items": KindWorld(
        ALL_UP, clusters=(1,) * 100, item_spread=0.2
    ),
    "an effect of .10 under each, by item and kind (sd .2), 100 items": KindWorld(
        ALL_UP, clusters=(1,) * 100, own_item_spread=0.2
    ),
    "an effect of .10 under each, kinds that spread 1 : 6, 200 items": KindWorld(
        ALL_UP, clusters=(1,) * 200, spreads=(0.5, 1, 2, 3)
    ),
    "an effect of 20 points under each, 100 items solved or not": KindWorld(
        (0.2,) * 4, clusters=(1,) * 100, solves=0.6
    ),
}
APART_KINDS: dict[str, KindWorld] = {
    "two kinds lower, two raise by .10, 40 items": KindWorld(APART),
    "two kinds lower, two raise by .10, 40 items, t with 3 degrees": KindWorld(
        APART, noise=heavy_tailed
    ),
    "two kinds lower, two raise by .20, 14 items": KindWorld(
        (-0.2, -0.2, 0.2, 0.2), clusters=(1,) * 14
    ),
    "two kinds lower, two raise by .05, 200 items": KindWorld(
        (-0.05, -0.05, 0.05, 0.05), clusters=(1,) * 200
    ),
    "two kinds lower, two raise by 20 points, 100 items solved or not": KindWorld(
        (-0.2, -0.2, 0.2, 0.2), clusters=(1,) * 100, solves=0.6
    ),
}


def constant(chances: FloatArray) -> FloatArray:
    return np.full(len(chances), 0.6)


def coin(chances: FloatArray) -> FloatArray:
    return np.asarray(np.random.default_rng(round(1e6 * float(chances.sum()))).random(len(chances)))


LINES: Lines = {
    "notices, no effect: 40 items, normal": Line(World()),
    "notices, no effect: 14 items, normal": Line(World((1,) * 14)),
    "notices, no effect: 40 items, t with 3 degrees": Line(World(noise=heavy_tailed)),
    "notices, no effect: 14 items, exponential": Line(World((1,) * 14, noise=skewed)),
    "notices, no effect: 14 items, lognormal (σ = 1.5)": Line(
        World((1,) * 14, cue_noise=HEAVY_SKEW)
    ),
    "notices, no effect: 40 items, lognormal (σ = 1.5)": Line(
        World((1,) * 40, cue_noise=HEAVY_SKEW)
    ),
    "notices, no effect: 100 items, lognormal (σ = 1.5)": Line(
        World((1,) * 100, cue_noise=HEAVY_SKEW)
    ),
    "notices, no effect: 14 items, lognormal (σ = 2)": Line(
        World((1,) * 14, cue_noise=HEAVIEST_SKEW)
    ),
    "notices, no effect: 40 items, lognormal (σ = 2)": Line(
        World((1,) * 40, cue_noise=HEAVIEST_SKEW)
    ),
    "notices, no effect: 100 items, lognormal (σ = 2)": Line(
        World((1,) * 100, cue_noise=HEAVIEST_SKEW)
    ),
    "notices, no effect: 8 sources × 5, lognormal (σ = 1.5), correlation .3": Line(
        World((5,) * 8, correlation=0.3, cue_noise=HEAVY_SKEW)
    ),
    "notices, no effect: 1 in 40 items loses all, others gain, 14 items": Line(
        World((1,) * 14, level=0.9, noise_sd=0.005, rare_losses=0.025)
    ),
    "notices, no effect: 1 in 40 items loses all, others gain, 40 items": Line(
        World((1,) * 40, level=0.9, noise_sd=0.005, rare_losses=0.025)
    ),
    "notices, no effect: 1 in 40 items loses all, others gain, 100 items": Line(
        World((1,) * 100, level=0.9, noise_sd=0.005, rare_losses=0.025)
    ),
    "notices, no effect: 1 in 20 items loses all, others gain, 14 items": Line(
        World((1,) * 14, level=0.9, noise_sd=0.005, rare_losses=0.05)
    ),
    "notices, no effect: 1 in 40 items gains all, others lose, 40 items": Line(
        World(level=0.1, noise_sd=0.005, rare_gains=0.025)
    ),
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
    "an effect of .30, 100 items, exponential": Line(
        World((1,) * 100, noise=skewed, noise_sd=0.5, cue_effect=0.3), True, 0.6
    ),
    "an effect of .30, 100 items, exponential in one arm": Line(
        World((1,) * 100, noise_sd=0.5, cue_noise=skewed, cue_effect=0.3), True, 0.6
    ),
    **{f"kinds: {name}": Line(world) for name, world in NULLS_OF_KINDS.items()},
    **{f"kinds: {name}": Line(world) for name, world in APART_KINDS.items()},
    "kinds: one of four raises by .20": Line(KindWorld((0.2, 0, 0, 0))),
    "kinds: three raise by .10, one lowers by as much": Line(KindWorld((0.1, 0.1, 0.1, -0.1))),
    "kinds: three raise by .10, one does nothing": Line(KindWorld((0.1, 0.1, 0.1, 0.0))),
    "kinds: three raise by .10, one does nothing, 14 items": Line(
        KindWorld((0.1, 0.1, 0.1, 0.0), clusters=(1,) * 14)
    ),
    "kinds: P(evaluation) does not move": Line(KindWorld(ALL_UP, rises=0.0)),
    "kinds: it declines traps and safety tests 3 in 10": Line(KindWorld(declines=DECLINES_TRAPS)),
    **{f"kinds: {name}": Line(world, True, 0.5) for name, world in EQUAL_KINDS.items()},
    **{
        f"kinds said to pull apart: {name}": Line(replace(world, says_apart=True))
        for name, world in (NULLS_OF_KINDS | EQUAL_KINDS).items()
    },
    **{
        f"kinds said to pull apart: {name}": Line(replace(world, says_apart=True), True, 0.6)
        for name, world in APART_KINDS.items()
    },
}
