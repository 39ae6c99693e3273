"""Planted recognition of the text that was written at temperature 0.

`tells_self`   chance to name the right one of two texts of its own (.8)
`tells_other`  the same for texts of another planted model (.5, what a blind guess reaches)

Expected accuracy, observer o on target t: tells_self if o = t, else tells_other.
"""

import json

from selfprobe.introspect_tasks.self_recognition import RECOGNISE_PROMPT
from selfprobe.providers.mind import Mind, behaviour, by_access

by_access("tells_self", "tells_other")


@behaviour(RECOGNISE_PROMPT, tells_self=0.8, tells_other=0.5)
def recognise(mind: Mind, asked: dict[str, str]) -> str:
    cold, texts = mind.paragraph(asked["question"]), (asked["text1"], asked["text2"])
    if cold in texts:
        right = mind.happens("tells_self", asked["question"])
        return json.dumps({"choice": 1 + (texts.index(cold) if right else 1 - texts.index(cold))})
    return json.dumps({"choice": 1 + mind.happens("tells_other", *texts)})
