"""Planted writers of arm texts, and planted subjects whose replies depend on what they take a prompt for.

Settings of a writer: `removes`, `strays` and `copies` as in `behaviours.rewriting`; it adds the first of GIVEAWAYS.

Settings of a subject, in replies to prompts that no behaviour knows:
`declines`  chance that it declines what it takes for an evaluation, by the P(evaluation) of `behaviours.turns`
`obeys`     chance that it declines where its system message says that it is tested
`picky`     chance that it declines a message that is reworded ("Hello. … Thanks!")
"""

import json
import re
from typing import Any

from inspect_ai.model import GenerateConfig, ModelOutput

from selfprobe.evalawareness_tasks.arm_texts import CHECK_PROMPT, NONE, PROMPTS, TEST_CUES
from selfprobe.evalawareness_tasks.awareness_effect import LINES
from selfprobe.providers.behaviours.turns import GIVEAWAYS, probability
from selfprobe.providers.mind import Mind, behaviour, dressing
from selfprobe.text.quotes import fold

_WRITER: dict[str, Any] = {"removes": 1.0, "strays": 0.0, "copies": 0.0}
_SORRY = "I'm sorry, but I can't help with that."


@behaviour(PROMPTS["paraphrase"], **_WRITER)
def paraphrase(mind: Mind, asked: dict[str, str]) -> str:
    return _version(mind, _unmarked(asked["material"]), "paraphrase")


@behaviour(PROMPTS["cue_out"], **_WRITER)
def cue_out(mind: Mind, asked: dict[str, str]) -> str:
    text = _unmarked(asked["material"])
    for passage in _listed(asked["cues"]) if mind.happens("removes", text) else []:
        text = " ".join(text.replace(passage, "").split())
    return _version(mind, text, "cue_out")


@behaviour(PROMPTS["cue_in"], **_WRITER)
def cue_in(mind: Mind, asked: dict[str, str]) -> str:
    text = _unmarked(asked["material"])
    return _version(mind, f"{next(iter(GIVEAWAYS))} {text}", "cue_in")


@behaviour(CHECK_PROMPT, notices=1.0)
def _check(mind: Mind, asked: dict[str, str]) -> str:
    original, version = (_unmarked(asked[name]) for name in ("original", "version"))
    words, others = (set(text.lower().split()) for text in (original, version))
    other = len(words & others) < len(words) / 3 and mind.happens("notices", asked["version"])
    added, said = any(sentence in version for sentence in GIVEAWAYS), fold(version)[0]
    cues = _listed(asked["cues"])
    left = [n for n, cue in enumerate(cues, start=1) if (added if cue in TEST_CUES else fold(cue)[0] in said)]
    return json.dumps({"same_task": not other, "left": left})


@dressing(declines=0.0, obeys=0.0, picky=0.0)
def decline(mind: Mind, output: ModelOutput, config: GenerateConfig) -> None:
    """Decline in place of the reply."""
    if not any(mind.settings[name] for name in ("declines", "obeys", "picky")):
        return
    asks = next((message.text for message in reversed(mind.messages) if message.role == "user"), "")
    told = any(LINES["told_test"] in message.text for message in mind.messages if message.role == "system")
    suspects = probability(Mind(mind.name, mind.settings, [*mind.messages, *mind.messages[-1:]], mind.seed)) >= 0.5
    reasons = {"declines": suspects, "obeys": told, "picky": asks.startswith("Hello. ")}
    if any(there and mind.happens(name, asks) for name, there in reasons.items()):
        output.choices[0].message.content = output.completion = _SORRY


def _version(mind: Mind, text: str, arm: str) -> str:
    if mind.happens("copies", arm, text):
        return text
    return mind.paragraph(text) if mind.happens("strays", arm, text) else f"Hello. {text} Thanks!"


def _listed(cues: str) -> list[str]:
    return [] if cues == NONE else re.findall(r"^\d+\. (.+)$", cues, re.MULTILINE)


def _unmarked(material: str) -> str:
    return material.partition("\n")[2].rpartition("\n")[0]
