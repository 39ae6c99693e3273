"""A claim is a list of checks: the one rule by which every study answers Yes, No or Cannot tell.

A study measures an effect on a subject and lists the requirements that a sceptic would make of it,
in the order in which a sceptic asks. Nothing here knows a sentence: `selfprobe.page.claims` writes
claims as words.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from selfprobe.stats.estimate import Estimate

ALPHA = 0.05
"""Level of every check with a p."""
LEAST_ANSWER_MASS = 0.5
"""Share of the probability on the words that an answer is read from, below which the answer says
little.
"""


class Verdict(Enum):
    """Answer of a study about one subject; the value is the word on the page."""

    YES = "Yes"
    NO = "No"
    CANNOT_TELL = "Cannot tell"


class Outcome(Enum):
    """Outcome of one check."""

    HOLDS = "holds"
    """The requirement is shown to be met."""
    FAILS = "fails"
    """The requirement is shown not to be met, or whatever lies beyond it is too small to matter."""
    OPEN = "open"
    """These data cannot decide it."""


@dataclass(frozen=True)
class Check:
    """One requirement that a sceptic would make of a claim, and what the data say of it."""

    name: str
    """Key of the requirement, the same in every run of a study: "above_strongest_rival"."""
    difference: Estimate
    """What was measured; without a value its `reason` says why there is none."""
    outcome: Outcome
    compared_with: str = ""
    """The competitor, with its number: "beta on it: 37 %"; "" where the check has none."""
    p_value: float = math.nan
    """p of the check, corrected as its family asks; NaN where there is no test."""
    explains: bool = False
    """Whether the effect is explained if the control of this check reaches as much: the answer is
    then No.
    """
    remedy: str = ""
    """What to type or add where the check is open."""
    competitor_score: float = math.nan
    """What the competitor itself reaches, where `difference` is what is left beyond it and not the
    subject's lead over it; NaN where the lead says it.
    """


def outcome_above_zero(
    difference: Estimate, *, smallest: float, p_value: float | None = None, alpha: float = ALPHA
) -> Outcome:
    """Outcome of the requirement that a difference is above 0.

    Args:
        difference: What was measured.
        smallest: Smallest difference that matters: one that is shown to be smaller fails.
        p_value: One-sided p of the difference; None where its 95 % interval decides.
        alpha: Level of the test.
    """
    is_shown = difference.low > 0 if p_value is None else p_value < alpha
    if is_shown and difference.value > 0:
        return Outcome.HOLDS
    if difference.high < smallest:
        return Outcome.FAILS
    return Outcome.OPEN


def outcome_if(is_met: bool) -> Outcome:
    """Outcome of a requirement that is shown to be met, or that these data leave open."""
    return Outcome.HOLDS if is_met else Outcome.OPEN


def remedy_unless_met(outcome: Outcome, remedy: str) -> str:
    """The remedy of a check; "" where its requirement is met."""
    return "" if outcome is Outcome.HOLDS else remedy


def above_zero_check(
    name: str,
    difference: Estimate,
    *,
    smallest: float,
    p_value: float | None = None,
    compared_with: str = "",
    explains: bool = False,
    remedy: str = "",
) -> Check:
    """The requirement that a difference is above 0, as `outcome_above_zero` decides it; its remedy
    where it is not met.
    """
    outcome = outcome_above_zero(difference, smallest=smallest, p_value=p_value)
    return Check(
        name,
        difference,
        outcome,
        compared_with,
        p_value=math.nan if p_value is None else p_value,
        explains=explains,
        remedy=remedy_unless_met(outcome, remedy),
    )


def answered_check(share: Estimate, *, remedy: str) -> Check:
    """The requirement that some answer could be read.

    Args:
        share: Share of the answers that could be; undefined where none could.
        remedy: What to type or add then.
    """
    outcome = outcome_if(not math.isnan(share.value))
    return Check("answered", share, outcome, remedy=remedy_unless_met(outcome, remedy))


def answer_mass_check(mass: Estimate, *, remedy: str) -> Check:
    """The requirement that a model answers with the words that its answer is read from.

    Whatever is renormalised to these words says little of a model that hardly ever says one: the
    whole interval of their share must be at least `LEAST_ANSWER_MASS`.

    Args:
        mass: Share of the probability on these words.
        remedy: What to type or add where it is less.
    """
    outcome = outcome_if(mass.low >= LEAST_ANSWER_MASS)
    return Check("answer_mass", mass, outcome, remedy=remedy_unless_met(outcome, remedy))


@dataclass(frozen=True)
class Claim:
    """What a study says of one subject."""

    subject: str
    effect: Estimate
    """The number of the first sentence."""
    checks: tuple[Check, ...]
    """The requirements, in the order in which a sceptic asks."""
    smallest: float
    """Smallest effect that matters, on the scale of `effect`."""
    details: Mapping[str, str] = field(default_factory=dict)
    """Further slots of the study's words, such as the turn that was found."""

    @property
    def verdict(self) -> Verdict:
        """Yes where every check holds; No where the effect is explained or too small to matter."""
        if self.checks and self.first_unmet_check is None:
            return Verdict.YES
        if self.is_too_small or self.explanation is not None:
            return Verdict.NO
        return Verdict.CANNOT_TELL

    @property
    def is_too_small(self) -> bool:
        """Whether every effect in the interval is smaller than the smallest that matters."""
        return self.effect.high < self.smallest

    @property
    def explanation(self) -> Check | None:
        """The first control that is shown to reach as much as the subject; None where none does."""
        for check in self.checks:
            is_small = check.difference.high < self.smallest
            if check.explains and check.outcome is Outcome.FAILS and is_small:
                return check
        return None

    @property
    def first_unmet_check(self) -> Check | None:
        """The first check that does not hold; None where all hold."""
        for check in self.checks:
            if check.outcome is not Outcome.HOLDS:
                return check
        return None

    @property
    def strongest_competitor(self) -> Check | None:
        """The check with the competitor that reaches most, where they say what they reach, else
        with the smallest difference; None where nothing could be compared.
        """
        compared = [
            check
            for check in self.checks
            if check.compared_with and not math.isnan(check.difference.value)
        ]
        scored = [check for check in compared if not math.isnan(check.competitor_score)]
        if scored:
            return max(scored, key=lambda check: check.competitor_score)
        return min(compared, key=lambda check: check.difference.value, default=None)

    @property
    def margin(self) -> float:
        """Difference from the strongest competitor, else the effect; minus infinity where neither
        has a value.
        """
        competitor = self.strongest_competitor
        margin = competitor.difference.value if competitor else self.effect.value
        return -math.inf if math.isnan(margin) else margin


VERDICT_ORDER = (Verdict.YES, Verdict.CANNOT_TELL, Verdict.NO)
"""Order in which a page lists its subjects."""


def ordered_claims(claims: Sequence[Claim]) -> list[Claim]:
    """Claims in the order Yes, Cannot tell, No; those of one verdict keep their order."""
    return sorted(claims, key=lambda claim: VERDICT_ORDER.index(claim.verdict))


def strongest_claims(claims: Sequence[Claim]) -> list[Claim]:
    """Claims in the order Yes, Cannot tell, No; of one verdict the largest margin first."""
    return ordered_claims(sorted(claims, key=lambda claim: -claim.margin))
