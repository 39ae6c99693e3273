"""Planted aim: a prompt that says what it wants, and a first token that has just that probability, or less.

`aims`  how near the target's likeliest first token comes to what a prompt of its own asks for (.9): the probability is
        p - (1 - aims)·p/2. For another model's prompt, and for a bare topic, it is .5.

Expected closeness of a model on itself at p: 1 - (1 - aims)·p/2; of another's prompts 1 - |p - .5|, the floor.
"""

import json

from selfprobe.introspect_tasks.probability_targeting import AIM_PROMPT, BARE_PROMPT
from selfprobe.providers.mind import Mind, Said, behaviour, by_access

by_access("aims")

WRITTEN = "Say something of {topic}, {author}, with weight {p}."


@behaviour(AIM_PROMPT, aims=0.9)
def aim(mind: Mind, asked: dict[str, str]) -> str:
    return json.dumps({"prompt": WRITTEN.format(topic=asked["topic"], author=mind.name, p=asked["p"])})


@behaviour(WRITTEN, observes=False)
def weigh(mind: Mind, asked: dict[str, str]) -> Said:
    p = float(asked["p"])
    return _first(p - (1 - mind.settings["aims"]) * p / 2 if asked["author"] == mind.name else 0.5)


@behaviour(BARE_PROMPT, observes=False)
def bare(mind: Mind, asked: dict[str, str]) -> Said:
    return _first(0.5)


def _first(p: float) -> Said:
    rest = {f"w{i}": (1 - p) / 4 for i in range(4)} if p < 1 else {}
    return Said("word", {"word": p, **rest})
