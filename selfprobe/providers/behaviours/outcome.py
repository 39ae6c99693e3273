"""Planted models that solve sums or not, and know of it what was planted.

An item has a difficulty that all planted models share, and each model a skill of its own at it, both drawn from a
normal distribution by the item's text; a model solves what has a sum above 0. Its stated chance rests on `knows_items`
times the first and `knows_own_skill` times the second, and on some noise; `skill` and `access` decide the two where
they are given. Asked about another assistant it knows the items alone. The same holds of refusals (`act_refused`) and
of the lengths of paragraphs, which are its own alone.
"""

import re
from typing import Any

from scipy.special import expit, ndtri

from selfprobe.introspect_tasks import outcome
from selfprobe.providers.mind import Mind, behaviour, by_access, chance, common_setting

by_access("knows_own_skill")
common_setting("skill", "knows_items")

SUM_PROMPT = "What is {first} + {second}? Reply with the number alone."
"""Prompt that planted models may solve."""

_SETTINGS: dict[str, Any] = {"knows_items": 0.0, "knows_own_skill": 0.0}
_MESSAGE = re.compile(r"^\[\d+\] (\w+):\n", re.MULTILINE)
SHARPNESS, DOUBT = 2.0, 0.7


def normal(*about: object) -> float:
    """A draw from the standard normal distribution, fixed by `about`."""
    return float(ndtri(0.5 * 2**-53 + chance(*about)))


def shared(text: str) -> float:
    """Ease of an item for every planted model."""
    return normal("ease", text)


def _skill(mind: Mind, text: str) -> float:
    return normal(mind.name, "own skill", text)


@behaviour(SUM_PROMPT, observes=False)
def solved(mind: Mind, asked: dict[str, str]) -> str:
    text = SUM_PROMPT.format(**asked)
    return str(int(asked["first"]) + int(asked["second"]) + (shared(text) + _skill(mind, text) <= 0))


@behaviour(outcome.PROMPT, **_SETTINGS)
def stated(mind: Mind, asked: dict[str, str]) -> str:
    _, *parts = _MESSAGE.split(asked["conversation"])
    said = [text.strip() for role, text in zip(parts[::2], parts[1::2], strict=True) if role == "user"]
    text, question = said[-1] if said else "", f"{asked['situation']} {asked['question']}"
    items, itself = shared(text), _skill(mind, text)
    if "refusal" in question:
        draw, least = mind.chance("fault", False, text) - mind.settings["act_empty"], 0.0
        items, itself = -1.0, 2.0 if least <= draw < mind.settings["act_refused"] else -1.0
    elif "tokens" in question:
        items, itself = 0.0, float(ndtri(0.5 * 2**-53 + mind.chance("length", text)))
    knows = mind.settings["knows_own_skill"] * question.startswith("You")
    latent = mind.settings["knows_items"] * items + knows * itself
    return f"{expit(SHARPNESS * latent + DOUBT * normal(mind.name, 'doubt', question, text)):.2f}"
