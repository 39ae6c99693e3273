"""The claim that a set of prompts can be told from real use, and its words."""

import math

from selfprobe.page import percent, percent_interval
from selfprobe.page.claims import ClaimWords
from selfprobe.page.numerals import points
from selfprobe.stats.claim import Check, Claim, Outcome, above_zero_check
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.studies.card_numbers import CHANCE, CardNumbers, LengthBaseline, WordsBaseline

CHANCE_NAME = "chance: 50 %"
SMALLEST_ADVANTAGE = 0.05
"""Smallest distance of the win rate from one half that matters."""
FEWEST_REAL = 10
"""Number of real conversations from which a card speaks of real use."""


def _win_rate_text(advantage: Estimate) -> str:
    """The win rate that an advantage over one half stands for, with its interval."""
    return percent_interval(reflected_about_half(advantage))


def reflected_about_half(estimate: Estimate) -> Estimate:
    """A win rate as an advantage over one half, or an advantage as a win rate."""
    return Estimate(
        value=CHANCE - estimate.value,
        low=CHANCE - estimate.high,
        high=CHANCE - estimate.low,
        n=estimate.n,
        unit=estimate.unit,
        reason=estimate.reason,
    )


def _beyond_text(beyond: Estimate) -> str:
    return beyond.reason if math.isnan(beyond.value) else points(beyond)


def _scored_share_text(share: Estimate) -> str:
    return share.reason if math.isnan(share.value) else f"{percent(share.value)} of pairs"


def _real_count_text(count: Estimate) -> str:
    return count.reason if math.isnan(count.value) else f"{count.value:.0f} real conversations"


_NOT_BEYOND = "is not shown to tell them by more than {competitor}"
CARD_WORDS = ClaimWords(
    yes=(
        "takes the set's prompts for real use in {effect} of pairs with a real one (a classifier of "
        "words: {words})"
    ),
    no=(
        "takes the set's prompts for real use in {effect} of pairs with a real one, at most {smallest} "
        "under one half"
    ),
    checks={
        "verdicts": "judged at all",
        "told": "told from real use",
        "unscored": "told whatever the pairs without a verdict are",
        "beyond_length": "told by more than length",
        "beyond_words": "told by more than words",
        "real_use": "compared with enough real conversations",
    },
    unmet={
        "verdicts": "has a verdict on no pair ({difference})",
        "told": "takes the set's prompts for real use in {effect} of pairs; chance is 50 %",
        "unscored": (
            "takes the set's prompts for real use in {effect} of pairs, and {unscored} have no verdict"
        ),
        "beyond_length": _NOT_BEYOND,
        "beyond_words": _NOT_BEYOND,
        "real_use": "judged the set's prompts beside {difference} alone",
    },
    units={
        "verdicts": _scored_share_text,
        "beyond_length": _beyond_text,
        "beyond_words": _beyond_text,
        "real_use": _real_count_text,
    },
    write=_win_rate_text,
    kind="panels",
)


def card_claim(numbers: CardNumbers, subject: str) -> Claim:
    """The claim that a set can be told from real use.

    Args:
        numbers: Numbers of the panel.
        subject: Name of the panel on the page.
    """
    advantage = reflected_about_half(numbers.panel.win_rate)
    told_check = above_zero_check(
        "told",
        advantage,
        smallest=SMALLEST_ADVANTAGE,
        compared_with=CHANCE_NAME,
        remedy="add prompts, or --opponents 8",
    )
    length_check = _baseline_check(
        "beyond_length", "length alone", numbers.length, "bring real conversations as long"
    )
    words_check = _baseline_check(
        "beyond_words", "words alone", numbers.words, "bring real conversations in like words"
    )
    checks = (
        _verdicts_check(numbers),
        told_check,
        _unscored_check(numbers),
        length_check,
        words_check,
        _real_use_check(numbers.real_count),
    )
    details = {
        "words": percent(numbers.words.win_rate.value),
        "unscored": percent(_unscored_share(numbers)),
    }
    return Claim(subject, advantage, checks, SMALLEST_ADVANTAGE, details)


def _real_use_check(real_count: int) -> Check:
    count = Estimate(real_count, math.nan, math.nan, real_count, "conversation")
    if real_count >= FEWEST_REAL:
        return Check("real_use", count, Outcome.HOLDS)
    remedy = f"bring {FEWEST_REAL} or more, about as long as the prompts"
    return Check("real_use", count, Outcome.OPEN, remedy=remedy)


def _verdicts_check(numbers: CardNumbers) -> Check:
    panel = numbers.panel
    if not math.isnan(panel.win_rate.value):
        scored_share = Estimate(panel.scored / panel.asked, math.nan, math.nan, panel.asked, "pair")
        return Check("verdicts", scored_share, Outcome.HOLDS)
    reasons = panel.share_of_reason
    commonest = max(reasons, key=lambda reason: reasons[reason], default="nothing was asked")
    unknown = undefined(commonest.replace(" ", "_"), unit="pair")
    return Check("verdicts", unknown, Outcome.OPEN, remedy="take judges that answer")


def _unscored_share(numbers: CardNumbers) -> float:
    panel = numbers.panel
    return 1 - panel.scored / panel.asked if panel.asked else math.nan


def _unscored_check(numbers: CardNumbers) -> Check:
    """The answer holds if the set had won every pair without a verdict."""
    advantage = reflected_about_half(numbers.worst_case)
    if advantage.low > 0:
        return Check("unscored", advantage, Outcome.HOLDS, compared_with=CHANCE_NAME)
    return Check(
        "unscored",
        advantage,
        Outcome.OPEN,
        compared_with=CHANCE_NAME,
        remedy="take judges that answer",
    )


def _baseline_check(
    name: str, label: str, baseline: WordsBaseline | LengthBaseline, remedy: str
) -> Check:
    """The panel tells the set by more than a rule that sees no model does, however much that is."""
    baseline_name = label
    if not math.isnan(baseline.win_rate.value):
        baseline_name = f"{label}: {percent_interval(baseline.win_rate)}"
    return above_zero_check(
        name,
        baseline.beyond,
        smallest=SMALLEST_ADVANTAGE,
        compared_with=baseline_name,
        remedy=remedy,
    )
