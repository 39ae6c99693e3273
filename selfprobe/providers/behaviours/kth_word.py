"""Planted k-th word predictions.

`access`      chance that the model knows its own next words
`general`     chance that, where it does not, it says the word that all planted models have in common; or `skill`
`acquainted`  chance that, asked about another model by name, it knows that one's next words

Expected accuracy, observer o on target t: with o = t, access + (1 - access)·general·common; with o ≠ t,
common_t·(access_o·common_o + (1 - access_o)·general_o). Any other prediction is a word that nobody writes.
A model that echoes (`echo`) knows its own rule: on itself it reaches access + (1 - access)·echo.

Asked about "another AI assistant" it has the general picture alone, and reaches general·common (without access as much
as of itself). Shown a target's answers, it takes the rule of echoing that most of them follow, if two do, else their
commonest word, if two have it, else the general picture.
"""

import json
import re
from collections import Counter

from selfprobe.introspect_tasks.kth_word import PREDICT
from selfprobe.providers.mind import PLACES, Mind, behaviour, common_setting, echoed, shared_word

common_setting("skill", "general")

_SHOWN = re.compile(r"^\d+\. Question: (.*?)\nAnswer: (.*?)$", re.DOTALL | re.MULTILINE)


@behaviour(PREDICT["self"], access=0.8, general=0.0)
def predict(mind: Mind, asked: dict[str, str]) -> str:
    question, k = asked["question"], int(asked["k"])
    if mind.happens("access", question, k):
        return _said(mind.word(question, k))
    if mind.settings["echo"]:
        return _said(echoed(question, k, mind.place))
    return _said(_general(mind, question, k))


@behaviour(PREDICT["other"])
def predict_another(mind: Mind, asked: dict[str, str]) -> str:
    return _said(_general(mind, asked["question"], int(asked["k"]), "another"))


@behaviour(PREDICT["named"], acquainted=0.0)
def predict_named(mind: Mind, asked: dict[str, str]) -> str:
    from selfprobe.providers.planted import mind_named  # which imports this module

    question, k = asked["question"], int(asked["k"])
    if mind.happens("acquainted", asked["name"], question, k):
        return _said(mind_named(asked["name"]).word(question, k))
    return _said(_general(mind, question, k, asked["name"]))


@behaviour(PREDICT["shown"])
def predict_shown(mind: Mind, asked: dict[str, str]) -> str:
    question, k = asked["question"], int(asked["k"])
    shown = [(other, answer.split()[k - 1 : k]) for other, answer in _SHOWN.findall(asked["examples"])]
    follow = Counter(p for p in range(PLACES) for other, word in shown if [echoed(other, k, p)] == word)
    for place, count in follow.most_common(1):
        if count > 1:
            return _said(echoed(question, k, place))
    for word, count in Counter(word[0] for _, word in shown if word).most_common(1):
        if count > 1:
            return _said(word)
    return _said(_general(mind, question, k, "shown"))


def _general(mind: Mind, question: str, k: int, *about: str) -> str:
    """Word that a mind takes any planted model to say; another draw for each model that it is asked about."""
    return shared_word(question, k) if mind.happens("general", question, k, *about) else f"zz{question[:1]}{k}"


def _said(word: str) -> str:
    return json.dumps({"word": word})
