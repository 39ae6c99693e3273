"""Planted codes of emotions: each mind has one number for each emotion, by a shift of its own.

`decodes`  chance to read a number by its own code (.8); else it says the next emotion but two

Expected accuracy of a model on itself: decodes. Its accuracy on another is the same if their shifts are equal, else 0
or, by the slip, 1 - decodes.
"""

import json

from selfprobe.introspect_tasks.subset_choice import CHOOSE_PROMPT, GUESS_PROMPT
from selfprobe.providers.mind import Mind, behaviour, by_access, chance
from selfprobe.scorers.emotion_guess import EMOTIONS

by_access("decodes")


@behaviour(CHOOSE_PROMPT, observes=False)
def _choose(mind: Mind, asked: dict[str, str]) -> str:
    numbers = asked["numbers"].split(", ")
    return json.dumps({"subset": [int(numbers[(EMOTIONS.index(asked["word"]) + _shift(mind)) % len(EMOTIONS)])]})


@behaviour(GUESS_PROMPT, decodes=0.8)
def guess(mind: Mind, asked: dict[str, str]) -> str:
    place = asked["numbers"].split(", ").index(asked["subset"]) - _shift(mind)
    slip = 0 if mind.happens("decodes", asked["subset"], asked["numbers"]) else 3
    return json.dumps({"word": EMOTIONS[(place + slip) % len(EMOTIONS)]})


def _shift(mind: Mind) -> int:
    return int(len(EMOTIONS) * chance(mind.name, "shift"))
