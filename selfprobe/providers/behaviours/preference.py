"""Planted preferences: a judge that knows, to a degree, which of two texts is better.

Each text has a true quality, fixed by its words (`planted_quality`); `planted_label` of two texts
labels test data.

`prefers`     share of pairs of which the judge prefers the better text, position aside (.5: it knows nothing)
`first`       four times this is added to the log-odds of choice 1
`tied`        share of pairs to which it is indifferent
`mute`        share of replies without logprobs, where they are asked for

A judge's quality of a text is normal, correlated sin(π(prefers - .5)) with the true one, so that
its difference of two texts D ~ N(0, 1) has the right sign with chance `prefers`. Compared, P(choice
1) is the logistic function of 3·D + 4·first: said_1 is Φ(4/3·first) without ties. Scored alone, the
expected score is 1 + 4Φ(quality), spread over the two nearest levels, so that G-Eval has `prefers`
as its accuracy, and direct scoring ties in 7/32 of pairs.
"""

import math
import re
from functools import lru_cache
from typing import Any

from scipy.special import ndtr, ndtri

from selfprobe.data.pairs import COMPARE, SCORE
from selfprobe.preference_tasks.pairwise_preference import COMPLETE_PROMPT
from selfprobe.providers.mind import Behaviour, Mind, Said, behaviour, chance


def planted_quality(text: str) -> float:
    """The true quality of a text, uniform in (0, 1)."""
    return 0.5 * 2**-53 + chance("planted quality", text.strip())


def planted_better_text(text_1: str, text_2: str) -> int:
    """Number of the better text, 1 or 2."""
    return 1 if planted_quality(text_1) > planted_quality(text_2) else 2


def perceived(mind: Mind, text: str) -> float:
    """Quality of a text in the judge's eyes, N(0, 1); equal at every seed."""
    r = math.sin(math.pi * (mind.settings["prefers"] - 0.5))
    noise = ndtri(0.5 * 2**-53 + chance(mind.name, None, "quality", text.strip()))
    return float(r * ndtri(planted_quality(text)) + math.sqrt(1 - r * r) * noise)


def p_choice_1(mind: Mind, one: str, two: str) -> float:
    """P(choice 1) of two texts in the order shown."""
    difference = (perceived(mind, one) - perceived(mind, two)) / math.sqrt(2)
    if chance(mind.name, None, "tied", *sorted((one.strip(), two.strip()))) < mind.settings["tied"]:
        difference = 0.0
    return 1 / (1 + math.exp(-(3 * difference + 4 * mind.settings["first"])))


def score_levels(mind: Mind, text: str) -> dict[str, float]:
    """P(score) of a text scored alone."""
    expected = 1 + 4 * float(ndtr(perceived(mind, text)))
    low = min(int(expected), 4)
    return {str(low): low + 1 - expected, str(low + 1): expected - low}


def _compare(mind: Mind, asked: dict[str, str]) -> Said:
    p = p_choice_1(mind, asked["text_1"], asked["text_2"])
    return _said(mind, {"1": p, "2": 1 - p}, asked)


def _rate(mind: Mind, asked: dict[str, str]) -> Said:
    return _said(mind, score_levels(mind, asked["text"]), asked)


_SETTINGS: dict[str, Any] = {"prefers": 0.8, "first": 0.0, "tied": 0.0, "mute": 0.0}

for _template in COMPARE.values():  # as it stands before a prefilled answer
    behaviour(_template, **_SETTINGS)(_compare)
for _template in SCORE.values():
    behaviour(_template, **_SETTINGS)(_rate)


@behaviour(COMPLETE_PROMPT, **_SETTINGS)
def _complete(mind: Mind, asked: dict[str, str]) -> Said:
    found = (pattern.fullmatch(asked["comparison"]) for pattern in _comparisons())
    return _compare(mind, next(match for match in found if match).groupdict())


@lru_cache(maxsize=1)
def _comparisons() -> tuple[re.Pattern[str], ...]:
    return tuple(
        Behaviour(template, _compare, {}, observes=True).pattern for template in COMPARE.values()
    )


def _said(mind: Mind, probabilities: dict[str, float], asked: dict[str, str]) -> Said:
    """The most probable answer at temperature 0, else one drawn with the call's seed."""
    about = ("said", *sorted(asked.items()))
    text = max(probabilities, key=lambda answer: probabilities[answer])
    if mind.seed is not None:
        draw, text = mind.chance(*about), list(probabilities)[-1]
        for answer, p in probabilities.items():
            if draw < p:
                text = answer
                break
            draw -= p
    mute = chance(mind.name, None, "mute", *about) < mind.settings["mute"]
    return Said(
        text, {} if mute else {token: 0.9 * p for token, p in probabilities.items() if p > 0}
    )
