"""Planted preferences: a judge that knows, to a degree, which of two texts is better.

Each text has a true quality, fixed by its words (`planted_quality`); `planted_label` of two texts
labels test data.

`prefers`     share of pairs of which the judge prefers the better text, position aside (.5: it
              knows nothing)
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
from selfprobe.providers.mind import Behaviour, Mind, ShortReply, behaviour, chance


def planted_quality(text: str) -> float:
    """The true quality of a text, uniform in (0, 1)."""
    return 0.5 * 2**-53 + chance("planted quality", text.strip())


def perceived(mind: Mind, text: str) -> float:
    """Quality of a text in the judge's eyes, N(0, 1); equal at every seed."""
    correlation = math.sin(math.pi * (mind.settings["prefers"] - 0.5))
    noise = ndtri(0.5 * 2**-53 + chance(mind.name, None, "quality", text.strip()))
    true_quality = ndtri(planted_quality(text))
    return float(correlation * true_quality + math.sqrt(1 - correlation * correlation) * noise)


def p_choice_1(mind: Mind, text_1: str, text_2: str) -> float:
    """P(choice 1) of two texts in the order shown."""
    difference = (perceived(mind, text_1) - perceived(mind, text_2)) / math.sqrt(2)
    texts = sorted((text_1.strip(), text_2.strip()))
    if chance(mind.name, None, "tied", *texts) < mind.settings["tied"]:
        difference = 0.0
    log_odds = 3 * difference + 4 * mind.settings["first"]
    return 1 / (1 + math.exp(-log_odds))


def score_levels(mind: Mind, text: str) -> dict[str, float]:
    """P(score) of a text scored alone."""
    expected = 1 + 4 * float(ndtr(perceived(mind, text)))
    low = min(int(expected), 4)
    return {str(low): low + 1 - expected, str(low + 1): expected - low}


def _compare(mind: Mind, prompt_fields: dict[str, str]) -> ShortReply:
    p_1 = p_choice_1(mind, prompt_fields["text_1"], prompt_fields["text_2"])
    return _answer(mind, {"1": p_1, "2": 1 - p_1}, prompt_fields)


def _rate(mind: Mind, prompt_fields: dict[str, str]) -> ShortReply:
    return _answer(mind, score_levels(mind, prompt_fields["text"]), prompt_fields)


_SETTINGS: dict[str, Any] = {"prefers": 0.8, "first": 0.0, "tied": 0.0, "mute": 0.0}

for _template in COMPARE.values():  # as it stands before a prefilled answer
    behaviour(_template, **_SETTINGS)(_compare)
for _template in SCORE.values():
    behaviour(_template, **_SETTINGS)(_rate)


@behaviour(COMPLETE_PROMPT, **_SETTINGS)
def _complete(mind: Mind, prompt_fields: dict[str, str]) -> ShortReply:
    for pattern in _comparison_patterns():
        if comparison := pattern.fullmatch(prompt_fields["comparison"]):
            return _compare(mind, comparison.groupdict())
    raise ValueError("the comparison is none of the paper's")


@lru_cache(maxsize=1)
def _comparison_patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(
        Behaviour(template, _compare, {}, observes=True).pattern for template in COMPARE.values()
    )


def _answer(
    mind: Mind, probabilities: dict[str, float], prompt_fields: dict[str, str]
) -> ShortReply:
    """The most probable answer at temperature 0, else one drawn with the call's seed."""
    draw_name = ("said", *sorted(prompt_fields.items()))
    if mind.seed is None:
        text = max(probabilities, key=lambda answer: probabilities[answer])
    else:
        text = _drawn(probabilities, mind.chance(*draw_name))
    candidates: dict[str, float] = {}
    if chance(mind.name, None, "mute", *draw_name) >= mind.settings["mute"]:
        candidates = {answer: 0.9 * p for answer, p in probabilities.items() if p > 0}
    return ShortReply(text, candidates)


def _drawn(probabilities: dict[str, float], draw: float) -> str:
    """The answer at a uniform number in [0, 1)."""
    for answer, p in probabilities.items():
        if draw < p:
            return answer
        draw -= p
    return list(probabilities)[-1]
