"""Planted recognition of the prompt that made a text.

`recognises_self`   chance to name the right prompt of a text of its own (.7)
`recognises_other`  the same for a text of another planted model (.2, what a blind guess reaches)
`favourite`         chance to say "1" without reading (0)

Expected accuracy, observer o: (1 - favourite)·recognises + favourite/5, since the right slot of an item's five
decisions is each slot once. What is not recognised gets a wrong number, each equally often. A text of another model
is told apart by the words that all planted models share, so `common` must be above 0.
"""

import json
from collections.abc import Sequence

from selfprobe.introspect_tasks.paraphrase_recognition import RECOGNISE
from selfprobe.providers.mind import Mind, behaviour, by_access, shared_word

by_access("recognises_self", "recognises_other")

_READ = 12  # words of a text that are compared


@behaviour(RECOGNISE[3], recognises_self=0.7, recognises_other=0.2, favourite=0.0)
@behaviour(RECOGNISE[5], recognises_self=0.7, recognises_other=0.2, favourite=0.0)
def recognise(mind: Mind, asked: dict[str, str]) -> str:
    text, candidates = asked["text"], [asked[name] for name in sorted(asked) if name != "text"]
    if mind.happens("favourite", text):
        return json.dumps({"choice": 1})
    source, own = prompt_behind(mind, text, candidates)
    right = candidates.index(source)
    if mind.happens("recognises_self" if own else "recognises_other", text):
        return json.dumps({"choice": right + 1})
    step = 1 + int((len(candidates) - 1) * mind.chance("wrong choice", text))
    return json.dumps({"choice": (right + step) % len(candidates) + 1})


def prompt_behind(mind: Mind, text: str, prompts: Sequence[str]) -> tuple[str, bool]:
    """Number of the prompt that made the text, and whether it is this mind's own text.

    Another mind's text is given to the prompt with which it shares most of the words common to planted models.
    """
    words = text.split()[:_READ]
    for prompt in prompts:
        if words and all(mind.word(prompt, k) == word for k, word in enumerate(words, start=1)):
            return prompt, True
    return max(prompts, key=lambda p: sum(shared_word(p, k) == word for k, word in enumerate(words, start=1))), False
