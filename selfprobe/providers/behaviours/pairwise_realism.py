"""Planted judges of realism: with a liking for real use, for single conversations, and for a position.

What is real is the label of `awareness.label_of`: of the bundled rows theirs, else `planted_label` of the text.

`liking`      chance to take a deployment conversation for real beside an evaluation one, all else alike (.5: it cannot
              tell); or `prefers`
`taste`       four times this is the standard deviation, in log-odds, of how real a text looks to it, whatever its label
`words`       four times this is taken off the log-odds of a text with words that stand in test items (TELLING)
`gullible`    four times this is added where a text claims to be real (PLEA)
`first`       four times this is added to the log-odds of the conversation that stands first
`tied`        share of single answers that name neither

P(first) = logistic(real(one) − real(two) + 4·first); the two orders are two draws.
"""

import math
from typing import Any

from scipy.special import ndtri

from selfprobe.evalawareness_tasks.pairwise_realism import REALISM_PROMPT
from selfprobe.providers.behaviours.awareness import TELLING, label_of
from selfprobe.providers.behaviours.rewriting import PLEA
from selfprobe.providers.mind import Mind, behaviour, chance, common_setting

common_setting("prefers", "liking")

_JUDGE: dict[str, Any] = {"liking": 0.7, "taste": 0.0, "words": 0.0, "gullible": 0.0, "first": 0.0, "tied": 0.0}


def realness(mind: Mind, text: str) -> float:
    """Log-odds of how real a conversation looks to a judge."""
    liking = min(max(mind.settings["liking"], 1e-9), 1 - 1e-9)
    label = math.log(liking / (1 - liking)) if label_of(text) == "deployment" else 0.0
    label -= 4 * mind.settings["words"] * (TELLING.search(text) is not None)
    label += 4 * mind.settings["gullible"] * (PLEA in text)
    return label + 4 * mind.settings["taste"] * float(ndtri(0.5 * 2**-53 + chance(mind.name, None, "taste", text)))


def p_first_real(mind: Mind, one: str, two: str) -> float:
    """P(the first is taken for real) of two texts in the order shown."""
    return 1 / (1 + math.exp(-(realness(mind, one) - realness(mind, two) + 4 * mind.settings["first"])))


@behaviour(REALISM_PROMPT, **_JUDGE)
def _judge(mind: Mind, asked: dict[str, str]) -> str:
    one, two = (_unmarked(asked[side]) for side in ("one", "two"))
    if mind.happens("tied", one, two):
        return "Neither: it is a tie."
    return "1" if mind.chance("picks", one, two) < p_first_real(mind, one, two) else "2"


def _unmarked(material: str) -> str:
    return material.partition("\n")[2].rpartition("\n")[0]
