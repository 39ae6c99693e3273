"""Planted prompt reconstruction, of texts that answer the bundled open questions.

`reconstructs_self`   chance to write the true prompt of a text of its own (.6)
`reconstructs_other`  the same for a text of another planted model (.3)

Any other time it writes another bundled question. A target answers the true prompt with the same text (cosine 1) and
another question as it answers others (the floor), so the expected skill is the chance to write the true prompt. A text
of another model is told apart by the words that all planted models share, so `common` must be above 0.
"""

import functools
import json

from selfprobe.data import load
from selfprobe.introspect_tasks.prompt_reconstruction import RECONSTRUCT
from selfprobe.providers.behaviours.paraphrase_recognition import prompt_behind
from selfprobe.providers.mind import Mind, behaviour, by_access

by_access("reconstructs_self", "reconstructs_other")


@behaviour(RECONSTRUCT["E3"], reconstructs_self=0.6, reconstructs_other=0.3)
@behaviour(RECONSTRUCT["ours"], reconstructs_self=0.6, reconstructs_other=0.3)
def reconstruct(mind: Mind, asked: dict[str, str]) -> str:
    text, prompts = asked["text"], _questions()
    source, own = prompt_behind(mind, text, prompts)
    place = prompts.index(source)
    if not mind.happens("reconstructs_self" if own else "reconstructs_other", text):
        place = (place + 1 + int((len(prompts) - 1) * mind.chance("wrong prompt", text))) % len(prompts)
    return json.dumps({"prompt": prompts[place]})


@functools.cache
def _questions() -> tuple[str, ...]:
    return tuple(row["question"] for row in load("open_questions", ("question",)).rows)
