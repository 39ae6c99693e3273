"""Worlds of `selfprobe outcome`: models with skills, items with difficulties, and what models state
of the items.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from lines import Line, Lines
from scipy import special

from selfprobe.stats.claim import Check, Claim, Outcome
from selfprobe.stats.dimensions import count_dimensions
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.stats.metacognition import metacognition
from selfprobe.stats.routing import routing
from selfprobe.studies.outcome_numbers import (
    StatedChances,
    corrected,
    outcome_claim,
    outcome_facts,
)
from selfprobe.studies.outcome_reasoning import Reasoning

FloatArray = npt.NDArray[np.float64]
SUBJECT = "m/0"
"""The model of the claim; the others know nothing of themselves."""


@dataclass(frozen=True)
class World:
    """Models that succeed by skill less difficulty, and state what they take an item's ease for."""

    others: int = 4
    """Number of other models; all have logs."""
    asked: int | None = None
    """Number of other models that are asked. Default: all."""
    items: int = 200
    domains: int = 1
    domain_sd: float = 0.0
    """Standard deviation of a model's skill from domain to domain."""
    harder: float = 0.0
    """Difficulty of the last domain more than that of the first."""
    slope_sd: float = 0.0
    """Standard deviation of the log of how much difficulty counts for a model."""
    ease: float = 0.0
    """Added to every model's skill: at 3 nearly all succeed."""
    clusters: int = 0
    """Number of clusters with a shock of their own for each model; 0 is none."""
    knows_itself: float = 0.0
    """Logits by which the subject's own outcome moves its statement, either way."""
    others_know_themselves: float = 0.0
    """The same of the other models."""
    own_noise: float = 0.7
    """Standard deviation of the subject's statement about what it takes the ease for, in logits."""
    other_noise: float = 0.7
    state: Callable[[FloatArray], FloatArray] | None = None
    """Function of the subject's chances that gives those that it states."""
    reads_text: bool = False
    """Whether the text tells the subject's outcome, and the subject reads nothing else."""
    copies_relative: float = 0.0
    """Logits by which the outcome of one other model, its relative, moves the subject's statement.
    """
    relative_likeness: float = 0.0
    """Share of items on which the relative's outcome is the subject's."""
    solves: float = 0.0
    """Share of items that the subject solves in its reasoning, which then tells it its outcome."""
    voices: bool = False
    """Whether the reasoning says in words what the subject's outcome is, 4 times in 5, and the
    statement knows no more.
    """
    reasons: bool = False
    """Whether the subject reasons, without solving anything."""

    def __call__(self, rng: np.random.Generator) -> Claim:
        models = [f"m/{number}" for number in range(self.others + 1)]
        outcomes, ease_of_item = self._outcomes(rng)
        noise = np.full(len(models), self.other_noise)
        noise[0] = self.own_noise
        logits = ease_of_item + noise[:, None] * rng.normal(size=outcomes.shape)
        texts = [f"text {number}" for number in range(self.items)]
        if self.reads_text:
            is_told = np.where(rng.random(self.items) < 0.8, outcomes[0], 1 - outcomes[0]) > 0.5
            texts = [
                f"{'plain easy' if told else 'odd hard'} {text}"
                for text, told in zip(texts, is_told, strict=True)
            ]
            logits[0] = 2 * (2 * is_told - 1) + 0.3 * rng.normal(size=self.items)
        logits[0] += self.knows_itself * (2 * outcomes[0] - 1)
        logits[1:] += self.others_know_themselves * (2 * outcomes[1:] - 1)
        logits[0] += self.copies_relative * (2 * outcomes[1] - 1)
        reasoning = {}
        if self.solves or self.voices or self.reasons:
            reasoning = {(SUBJECT, "solve"): self._reasoning(rng, outcomes[0], logits)}
        chances = special.expit(logits).round(2)
        if self.state is not None:
            chances[0] = self.state(chances[0])
        asked = models[: 1 + (self.others if self.asked is None else self.asked)]
        stated = StatedChances(
            items=tuple(map(str, range(self.items))),
            texts=dict.fromkeys(models, tuple(texts)),
            clusters=np.arange(self.items) * self.clusters // self.items
            if self.clusters
            else np.arange(self.items),
            questions=("solve",),
            observers={model: model for model in asked},
            outcomes={
                (model, "solve"): results for model, results in zip(models, outcomes, strict=True)
            },
            chances={
                (model, "self", "", "solve"): chances[number] for number, model in enumerate(asked)
            },
            reasoning=reasoning,
        )
        (facts,) = corrected([outcome_facts(stated, SUBJECT, "solve", draws=399)])
        return outcome_claim(facts, SUBJECT)

    def _reasoning(
        self, rng: np.random.Generator, outcomes: FloatArray, logits: FloatArray
    ) -> Reasoning:
        """Reasoning of the subject, by which its statements in `logits` are moved."""
        is_solved = rng.random(self.items) < self.solves
        logits[0] += 3 * np.where(is_solved, 2 * outcomes - 1, 0)
        words = np.full(self.items, "thinking it over")
        if self.voices:
            is_right = rng.random(self.items) < 0.8
            says_sure = np.where(is_right, outcomes, 1 - outcomes) > 0.5
            logits[0] += 2 * np.where(says_sure, 1, -1)
            words = np.where(says_sure, "quite sure of it", "hardly any idea")
        return Reasoning(
            texts=tuple(f"{text} {number}" for number, text in enumerate(words)),
            has_reasoning=np.ones(self.items, dtype=bool),
            answer_flags=is_solved.astype(float),
        )

    def _outcomes(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Outcomes [model, item], and the items' ease."""
        count = self.others + 1
        domain = rng.integers(self.domains, size=self.items)
        ease = rng.normal(size=self.items) - self.harder * domain / max(1, self.domains - 1)
        skills = (
            rng.normal(0, 0.5, size=count)[:, None]
            + self.domain_sd * rng.normal(size=(count, self.domains))[:, domain]
        )
        slopes = np.exp(self.slope_sd * rng.normal(size=count))[:, None]
        logits = self.ease + skills + slopes * ease * 1.3
        if self.clusters:
            labels = np.arange(self.items) * self.clusters // self.items
            logits = logits + rng.normal(size=(count, self.clusters))[:, labels]
        outcomes = (rng.random(logits.shape) < special.expit(logits)).astype(float)
        if self.relative_likeness:
            is_alike = rng.random(self.items) < self.relative_likeness
            outcomes[1] = np.where(is_alike, outcomes[0], outcomes[1])
        return outcomes, ease


def coin(chances: FloatArray) -> FloatArray:
    return np.asarray(np.random.default_rng(round(1e6 * float(chances.sum()))).random(len(chances)))


def constant(chances: FloatArray) -> FloatArray:
    return np.full(len(chances), 0.7)


def tenths(uniform_draws: FloatArray) -> FloatArray:
    return uniform_draws.round(1)


def hardly_ever_sure(uniform_draws: FloatArray) -> FloatArray:
    """One chance in twenty is .99."""
    return np.where(uniform_draws < 0.05, 0.99, 0.5)


def two_values(chances: FloatArray) -> FloatArray:
    return np.where(chances > 0.5, 0.9, 0.5)


def rounded(chances: FloatArray) -> FloatArray:
    return np.asarray((np.clip(chances, 0.6, 0.95) * 20).round() / 20)


def mostly_one_value(chances: FloatArray) -> FloatArray:
    """Three quarters of the statements are alike."""
    return np.where(np.arange(len(chances)) % 4 == 0, chances, 0.8)


def outside_claim(estimate: Estimate, truth: float) -> Claim:
    """A claim that a truth lies outside of its interval: Yes in about 5 % of draws."""
    is_outside = not estimate.low <= truth <= estimate.high
    is_known = estimate.low == estimate.low
    outcome = Outcome.HOLDS if is_known and is_outside else Outcome.OPEN
    return Claim("m/0", estimate, (Check("outside", estimate, outcome),), 0.1)


@dataclass(frozen=True)
class RatedAnswers:
    """A two-choice observer with confidence of a sensitivity of its own; whether the interval of
    its M-ratio misses the truth.
    """

    m_ratio: float
    d_prime: float = 1.5
    items: int = 200
    bias: float = 0.0
    """Logits added to every statement."""
    clusters: int = 0
    """Number of clusters of items that are asked alike; 0 is none."""

    def __call__(self, rng: np.random.Generator) -> Claim:
        units = self.clusters or self.items
        right = (rng.random(units) < special.ndtr(self.d_prime / 2)).astype(float)
        means = np.where(right > 0, 0.5, -0.5) * self.m_ratio * self.d_prime
        below_zero = special.ndtr(-means)
        evidence = means + special.ndtri(below_zero + rng.random(units) * (1 - below_zero))
        labels = np.arange(self.items) * units // self.items
        chances = special.expit(1.5 * evidence - 1 + self.bias).round(2)
        fitted = metacognition(chances[labels], right[labels], labels)
        return outside_claim(fitted.m_ratio, self.m_ratio)


@dataclass(frozen=True)
class SharedDimensions:
    """Models that state what they see along some dimensions; whether more are counted."""

    dimensions: int
    models: int = 6
    items: int = 200
    noise: float = 0.7
    ceiling: bool = False
    more_than: int | None = None
    """Number of dimensions above which the answer is Yes. Default: the true one."""

    def __call__(self, rng: np.random.Generator) -> Claim:
        factors = rng.normal(size=(max(self.dimensions, 1), self.items))
        logits = self.noise * rng.normal(size=(self.models, self.items))
        if self.dimensions:
            logits += factors[np.arange(self.models) % self.dimensions]
        chances = special.expit(logits + (4 if self.ceiling else 0)).round(2)
        counted = count_dimensions(chances, np.arange(self.items))
        assert counted.count is not None
        most = self.dimensions if self.more_than is None else self.more_than
        outcome = Outcome.HOLDS if counted.count > most else Outcome.OPEN
        count = undefined("", value=float(counted.count))
        return Claim("m", count, (Check("more", count, outcome),), 1)


@dataclass(frozen=True)
class Routed:
    """Statements by which help is asked for; whether both gains are shown to be above 0."""

    knows: float = 0.0
    """Logits by which the outcome moves the statement."""
    ease: float = 0.5
    price: float = 0.3
    items: int = 200
    state: Callable[[FloatArray], FloatArray] | None = None
    """Function of uniform draws that gives the chances. Default: those that know something."""
    clusters: int = 0
    """Number of clusters of items that are alike in chance and outcome; 0 is none."""

    def __call__(self, rng: np.random.Generator) -> Claim:
        outcomes = (rng.random(self.items) < special.expit(self.ease)).astype(float)
        logits = self.knows * (2 * outcomes - 1) + rng.normal(size=self.items)
        chances = special.expit(logits).round(2)
        if self.state is not None:
            chances = self.state(rng.random(self.items))
        labels = np.arange(self.items)
        if self.clusters:
            labels = labels * self.clusters // self.items
            outcomes = outcomes[labels]
            chances = chances[labels]
        routed = routing(chances, outcomes, labels, self.price)
        checks = []
        for name, gain in (("acting", routed.over_acting), ("asking", routed.over_asking)):
            outcome = Outcome.HOLDS if gain.low > 0 else Outcome.OPEN
            checks.append(Check(name, gain, outcome))
        return Claim("m/0", routed.over_acting, tuple(checks), 0.01)


TWO_DOMAINS = {"domains": 2, "harder": 1.5}


def world(**settings: object) -> World:
    return World(**settings)  # type: ignore[arg-type]


NINE_IN_TEN = float(special.logit(0.9))
ROUTING_COINS = {"a coin in tenths": tenths, "a coin of one sure chance in 20": hardly_ever_sure}
"""Name → chances that know nothing."""


LINES: Lines = {
    "one domain, 2 others": Line(world(others=2)),
    "one domain, 4 others": Line(world()),
    "one domain, 9 others": Line(world(others=9)),
    "two domains, one 1.5 harder, skills sd .7, 2 others": Line(
        world(others=2, domain_sd=0.7, **TWO_DOMAINS)
    ),
    "two domains, one 1.5 harder, skills sd .7, 4 others": Line(
        world(domain_sd=0.7, **TWO_DOMAINS)
    ),
    "two domains, one 1.5 harder, skills sd 1.2, 2 others": Line(
        world(others=2, domain_sd=1.2, **TWO_DOMAINS)
    ),
    "two domains, one 1.5 harder, skills sd 1.2, 4 others": Line(
        world(domain_sd=1.2, **TWO_DOMAINS)
    ),
    "two domains, equally hard, skills sd 1.2": Line(world(domains=2, domain_sd=1.2)),
    "ten domains over 3 logits, skills sd .7": Line(world(domains=10, domain_sd=0.7, harder=3.0)),
    "two domains, 800 items": Line(world(items=800, domain_sd=0.7, **TWO_DOMAINS)),
    "slopes of models sd .4, 2 others": Line(world(others=2, slope_sd=0.4)),
    "slopes of models sd .4, 4 others": Line(world(slope_sd=0.4)),
    "observers know less by .75, two domains, 2 others": Line(
        world(others=2, domain_sd=1.2, other_noise=1.4, **TWO_DOMAINS)
    ),
    "observers know less by 1.5, two domains, 2 others": Line(
        world(others=2, domain_sd=1.2, other_noise=2.2, **TWO_DOMAINS)
    ),
    "observers know less by 1.5, two domains, 4 others": Line(
        world(domain_sd=1.2, other_noise=2.2, **TWO_DOMAINS)
    ),
    "observers know less by 1.5, slopes sd .4, 2 others": Line(
        world(others=2, slope_sd=0.4, other_noise=2.2)
    ),
    "observers know less by 1.5, slopes sd .4, 4 others": Line(
        world(slope_sd=0.4, other_noise=2.2)
    ),
    "the others know themselves by 1 logit, 2 others": Line(
        world(others=2, others_know_themselves=1.0)
    ),
    "the others know themselves by 1 logit, 4 others": Line(world(others_know_themselves=1.0)),
    "the others know themselves by 1 logit, two domains": Line(
        world(others_know_themselves=1.0, domain_sd=1.2, **TWO_DOMAINS)
    ),
    "the others know themselves by 1 logit, slopes sd .4, 2 others": Line(
        world(others=2, others_know_themselves=1.0, slope_sd=0.4)
    ),
    "a coin": Line(world(state=coin)),
    "a constant": Line(world(state=constant)),
    "two values (ties), two domains": Line(world(state=two_values, domain_sd=1.2, **TWO_DOMAINS)),
    "rounded and cut (ties), slopes sd .4": Line(world(state=rounded, slope_sd=0.4)),
    "three quarters one value (ties), two domains": Line(
        world(state=mostly_one_value, domain_sd=1.2, **TWO_DOMAINS)
    ),
    "a ceiling: nearly all succeed": Line(world(ease=3.0)),
    "a floor: nearly none succeeds, two domains": Line(
        world(ease=-2.5, domain_sd=1.2, **TWO_DOMAINS)
    ),
    "25 items": Line(world(items=25)),
    "25 items, two domains, 2 others": Line(
        world(items=25, others=2, domain_sd=1.2, **TWO_DOMAINS)
    ),
    "19 items, knows itself": Line(world(items=19, knows_itself=2.0)),
    "40 clusters of 5 with shocks, 4 others": Line(world(clusters=40)),
    "12 clusters of 16 with shocks, 4 others": Line(world(clusters=12)),
    "one other observer, two domains": Line(world(others=4, asked=1, domain_sd=1.2, **TWO_DOMAINS)),
    "a reader of the text alone": Line(world(reads_text=True)),
    "an expert of its family, whose log is there": Line(
        world(copies_relative=1.0, relative_likeness=0.5)
    ),
    "reasoning solves 70 % of the items": Line(world(solves=0.7)),
    "reasoning solves 70 % of the items, two domains": Line(
        world(solves=0.7, domain_sd=1.2, **TWO_DOMAINS)
    ),
    "reasoning solves all items": Line(world(solves=1.0)),
    "reasoning voices all that the statement knows": Line(world(voices=True)),
    "M-ratio 0, 200 items: interval without it": Line(RatedAnswers(0.0)),
    "M-ratio .5, 200 items: interval without it": Line(RatedAnswers(0.5)),
    "M-ratio 1, 200 items: interval without it": Line(RatedAnswers(1.0)),
    "M-ratio 1, 800 items: interval without it": Line(RatedAnswers(1.0, items=800)),
    "M-ratio 1, all chances higher by 1 logit: interval without it": Line(
        RatedAnswers(1.0, bias=1.0)
    ),
    "M-ratio 1, 19 in 20 right: interval without it": Line(RatedAnswers(1.0, d_prime=3.3)),
    "M-ratio .5, 100 clusters of 2 alike: interval without it": Line(
        RatedAnswers(0.5, clusters=100)
    ),
    "no dimension, 6 models: more": Line(SharedDimensions(0)),
    "one dimension, 4 models: more": Line(SharedDimensions(1, models=4)),
    "one dimension, 8 models: more": Line(SharedDimensions(1, models=8)),
    "one dimension, ceiling, 8 models: more": Line(SharedDimensions(1, models=8, ceiling=True)),
    "two dimensions, 6 models: more": Line(SharedDimensions(2)),
    "routing by a coin, price .3": Line(Routed()),
    "routing by a coin, price near the failures": Line(Routed(price=0.38)),
    "routing by a coin, nearly all succeed": Line(Routed(ease=3.0)),
    **{
        f"routing by {name}, 9 in 10 right, price {price:g}, {items} items": Line(
            Routed(ease=NINE_IN_TEN, price=price, items=items, state=state)
        )
        for name, state in ROUTING_COINS.items()
        for price in (0.05, 0.1)
        for items in (40, 80, 200)
    },
    "routing by a coin in tenths, 9 in 10 right, price .1, 80 clusters of 3": Line(
        Routed(ease=NINE_IN_TEN, price=0.1, items=240, state=tenths, clusters=80)
    ),
    "two dimensions, 6 models: more than one": Line(SharedDimensions(2, more_than=1), True, 0.9),
    "routing by 1 logit, price .3": Line(Routed(knows=1.0), True, 0.8),
    "reasons and knows itself by 1 logit": Line(world(knows_itself=1.0, reasons=True), True, 0.8),
    "knows itself by .25 logits, 2 others": Line(world(others=2, knows_itself=0.25), True),
    "knows itself by .25 logits, 4 others": Line(world(knows_itself=0.25), True),
    "knows itself by .5 logits, 2 others": Line(world(others=2, knows_itself=0.5), True, 0.6),
    "knows itself by .5 logits, 4 others": Line(world(knows_itself=0.5), True, 0.6),
    "knows itself by .5 logits, two domains, 4 others": Line(
        world(knows_itself=0.5, domain_sd=0.7, **TWO_DOMAINS), True, 0.6
    ),
    "knows itself by .5 logits, slopes sd .4, 9 others": Line(
        world(others=9, knows_itself=0.5, slope_sd=0.4), True, 0.6
    ),
    "all know themselves by .5 logits, 4 others": Line(
        world(knows_itself=0.5, others_know_themselves=0.5), True, 0.5
    ),
    "knows itself by 1 logit, 4 others": Line(world(knows_itself=1.0), True, 0.9),
    "knows itself by .25 logits, 800 items": Line(world(items=800, knows_itself=0.25), True, 0.6),
}
