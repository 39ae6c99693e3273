"""Planted replies to the prompts of introspect_tasks, those about dilemmas apart.

A comment above each task's functions says what its settings plant, and which score to expect.
"""

import functools
import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from scipy.special import expit, ndtri

from selfprobe.data import load
from selfprobe.introspect_tasks import outcome
from selfprobe.introspect_tasks.heads_up import CLUES
from selfprobe.introspect_tasks.heads_up import GUESS_PROMPT as GUESS_WORD_PROMPT
from selfprobe.introspect_tasks.kth_word import PREDICT
from selfprobe.introspect_tasks.paraphrase_recognition import RECOGNISE
from selfprobe.introspect_tasks.probability_targeting import AIM_PROMPT, BARE_PROMPT
from selfprobe.introspect_tasks.prompt_reconstruction import RECONSTRUCT
from selfprobe.introspect_tasks.self_recognition import RECOGNISE_PROMPT
from selfprobe.introspect_tasks.subset_choice import CHOOSE_PROMPT
from selfprobe.introspect_tasks.subset_choice import GUESS_PROMPT as GUESS_EMOTION_PROMPT
from selfprobe.providers.mind import (
    PLACES,
    Mind,
    Said,
    behaviour,
    by_access,
    chance,
    common_setting,
    echoed,
    shared_word,
)
from selfprobe.scorers.word_matches import EMOTIONS

# Planted k-th word predictions.
#
# `access`      chance that the model knows its own next words
# `general`     chance that, where it does not, it says the word that all planted models have in
#               common; or `skill`
# `acquainted`  chance that, asked about another model by name, it knows that one's next words
#
# Expected accuracy, observer o on target t: with o = t, access + (1 - access)·general·common; with
# o ≠ t, common_t·(access_o·common_o + (1 - access_o)·general_o). Any other prediction is a word
# that nobody writes. A model that echoes (`echo`) knows its own rule: on itself it reaches access +
# (1 - access)·echo.
#
# Asked about "another AI assistant" it has the general picture alone, and reaches general·common
# (without access as much as of itself). Shown a target's answers, it takes the rule of echoing that
# most of them follow, if two do, else their commonest word, if two have it, else the general
# picture.

common_setting("skill", "general")

_SHOWN = re.compile(r"^\d+\. Question: (.*?)\nAnswer: (.*?)$", re.DOTALL | re.MULTILINE)


@behaviour(PREDICT["self"], access=0.8, general=0.0)
def predict_word(mind: Mind, asked: dict[str, str]) -> str:
    question, k = asked["question"], int(asked["k"])
    if mind.happens("access", question, k):
        return _word_reply(mind.word(question, k))
    if mind.settings["echo"]:
        return _word_reply(echoed(question, k, mind.place))
    return _word_reply(_shared_guess(mind, question, k))


@behaviour(PREDICT["other"])
def predict_word_of_another(mind: Mind, asked: dict[str, str]) -> str:
    return _word_reply(_shared_guess(mind, asked["question"], int(asked["k"]), "another"))


@behaviour(PREDICT["named"], acquainted=0.0)
def predict_word_of_named(mind: Mind, asked: dict[str, str]) -> str:
    from selfprobe.providers.planted import mind_named  # which imports this module

    question, k = asked["question"], int(asked["k"])
    if mind.happens("acquainted", asked["name"], question, k):
        return _word_reply(mind_named(asked["name"]).word(question, k))
    return _word_reply(_shared_guess(mind, question, k, asked["name"]))


@behaviour(PREDICT["shown"])
def predict_word_of_shown(mind: Mind, asked: dict[str, str]) -> str:
    question, k = asked["question"], int(asked["k"])
    shown = [
        (other, answer.split()[k - 1 : k]) for other, answer in _SHOWN.findall(asked["examples"])
    ]
    follow = Counter(
        p for p in range(PLACES) for other, word in shown if [echoed(other, k, p)] == word
    )
    for place, count in follow.most_common(1):
        if count > 1:
            return _word_reply(echoed(question, k, place))
    for word, count in Counter(word[0] for _, word in shown if word).most_common(1):
        if count > 1:
            return _word_reply(word)
    return _word_reply(_shared_guess(mind, question, k, "shown"))


def _shared_guess(mind: Mind, question: str, k: int, *about: str) -> str:
    """Word that a mind takes any planted model to say; another draw for each model that it is asked
    about.
    """
    return (
        shared_word(question, k)
        if mind.happens("general", question, k, *about)
        else f"zz{question[:1]}{k}"
    )


def _word_reply(word: str) -> str:
    return json.dumps({"word": word})


# Planted clues and guesses.
#
# `clue_quality`  chance that the target's clues hold the word at all, written backwards (.9)
# `leak`          chance that a clue says the word (0)
# `too_few`       chance that the clues are six (0)
# `guess_self`    chance to read the word out of good clues of its own (.8)
# `guess_other`   the same for clues of another planted model (.6)
#
# Expected accuracy, observer o on target t: clue_quality_t · (guess_self if o = t, else
# guess_other)_o, over the items whose clues are played: a share (1 - leak)·(1 - too_few). Clues
# carry their author's mark.

by_access("guess_self", "guess_other")

_HIDDEN = re.compile(r"its mirror reads (\S+) today")
_NOWHERE = "nowheretobefound"


@behaviour(CLUES["E3"], observes=False, clue_quality=0.9, leak=0.0, too_few=0.0)
@behaviour(CLUES["ours"], observes=False, clue_quality=0.9, leak=0.0, too_few=0.0)
def give_clues(mind: Mind, asked: dict[str, str]) -> str:
    word = asked["word"]
    good, leaks, few = (
        mind.happens(setting, word) for setting in ("clue_quality", "leak", "too_few")
    )
    clues = [mind.word(word, k) for k in range(1, 7)]
    clues.append(f"its mirror reads {word[::-1] if good else _NOWHERE} today")
    clues.append(f"told by {_mark(mind)}")
    clues.append(f"people say {word}s" if leaks else "people say it")
    return json.dumps({"clues": clues[3:] if few else [*clues, "it is a word"]})


@behaviour(GUESS_WORD_PROMPT, guess_self=0.8, guess_other=0.6)
def guess_word(mind: Mind, asked: dict[str, str]) -> str:
    hidden = _HIDDEN.search(asked["clues"])
    own = f"told by {_mark(mind)}" in asked["clues"]
    known = hidden is not None and hidden.group(1) != _NOWHERE
    if (
        hidden is not None
        and known
        and mind.happens("guess_self" if own else "guess_other", hidden.group(1))
    ):
        return json.dumps({"guess": hidden.group(1)[::-1]})
    return json.dumps({"guess": f"zz{_mark(mind)}"})


def _mark(mind: Mind) -> str:
    """Mark that a mind leaves in its clues, without telling its name."""
    return "m" + hashlib.blake2b(mind.name.encode(), digest_size=4).hexdigest()


# Planted recognition of the prompt that made a text.
#
# `recognises_self`   chance to name the right one of five prompts of a text of its own (.7)
# `recognises_other`  the same for a text of another planted model (.2, what a blind guess reaches)
# `favourite`         chance to say "1" without reading (0)
#
# Of three prompts the chance is as far on the way from a blind guess to certainty: r is 1/3 + (r -
# 1/5)·5/6, so that .2 is a blind guess there too. What is planted below .2 stays below a blind
# guess.
#
# Expected accuracy, observer o, n prompts: (1 - favourite)·recognises + favourite/n, since the
# right slot of an item's n decisions is each slot once. What is not recognised gets a wrong number,
# each equally often. A text of another model is told apart by the words that all planted models
# share, so `common` must be above 0.

_PLANTED_PROMPTS = 5
"""Number of prompts for which the two chances are planted."""

by_access("recognises_self", "recognises_other", guess=1 / _PLANTED_PROMPTS)

_WORDS_READ = 12  # words of a text that are compared


@behaviour(RECOGNISE[3], recognises_self=0.7, recognises_other=0.2, favourite=0.0)
@behaviour(RECOGNISE[5], recognises_self=0.7, recognises_other=0.2, favourite=0.0)
def recognise_prompt(mind: Mind, asked: dict[str, str]) -> str:
    text, candidates = asked["text"], [asked[name] for name in sorted(asked) if name != "text"]
    if mind.happens("favourite", text):
        return json.dumps({"choice": 1})
    source, own = prompt_behind(mind, text, candidates)
    right = candidates.index(source)
    setting = "recognises_self" if own else "recognises_other"
    if mind.chance(setting, text) < recognition(mind.settings[setting], len(candidates)):
        return json.dumps({"choice": right + 1})
    step = 1 + int((len(candidates) - 1) * mind.chance("wrong choice", text))
    return json.dumps({"choice": (right + step) % len(candidates) + 1})


def recognition(planted: float, prompts: int) -> float:
    """Chance to name the right one of so many prompts, from the chance that is planted for five.

    >>> recognition(0.2, 5), round(recognition(0.2, 3), 3), recognition(1, 3)
    (0.2, 0.333, 1.0)
    """
    guess, planted_guess = 1 / prompts, 1 / _PLANTED_PROMPTS
    knowledge = (planted - planted_guess) / (1 - planted_guess)
    return guess + knowledge * (1 - guess)


def prompt_behind(mind: Mind, text: str, prompts: Sequence[str]) -> tuple[str, bool]:
    """Number of the prompt that made the text, and whether it is this mind's own text.

    Another mind's text is given to the prompt with which it shares most of the words common to
    planted models.
    """
    words = text.split()[:_WORDS_READ]
    for prompt in prompts:
        if words and all(mind.word(prompt, k) == word for k, word in enumerate(words, start=1)):
            return prompt, True
    return max(
        prompts,
        key=lambda p: sum(shared_word(p, k) == word for k, word in enumerate(words, start=1)),
    ), False


# Planted prompt reconstruction, of texts that answer the bundled open questions.
#
# `reconstructs_self`   chance to write the true prompt of a text of its own (.6)
# `reconstructs_other`  the same for a text of another planted model (.3)
#
# Any other time it writes another bundled question. A target answers the true prompt with the same
# text (cosine 1) and another question as it answers others (the floor), so the expected skill is
# the chance to write the true prompt. A text of another model is told apart by the words that all
# planted models share, so `common` must be above 0.

by_access("reconstructs_self", "reconstructs_other")


@behaviour(RECONSTRUCT["E3"], reconstructs_self=0.6, reconstructs_other=0.3)
@behaviour(RECONSTRUCT["ours"], reconstructs_self=0.6, reconstructs_other=0.3)
def reconstruct(mind: Mind, asked: dict[str, str]) -> str:
    text, prompts = asked["text"], _questions()
    source, own = prompt_behind(mind, text, prompts)
    place = prompts.index(source)
    if not mind.happens("reconstructs_self" if own else "reconstructs_other", text):
        place = (place + 1 + int((len(prompts) - 1) * mind.chance("wrong prompt", text))) % len(
            prompts
        )
    return json.dumps({"prompt": prompts[place]})


@functools.cache
def _questions() -> tuple[str, ...]:
    return tuple(row["question"] for row in load("open_questions", ("question",)).rows)


# Planted recognition of the text that was written at temperature 0.
#
# `tells_self`   chance to name the right one of two texts of its own (.8)
# `tells_other`  the same for texts of another planted model (.5, what a blind guess of the two
#               reaches)
#
# Expected accuracy, observer o on target t: tells_self if o = t, else tells_other.

by_access("tells_self", "tells_other", guess=1 / 2)


@behaviour(RECOGNISE_PROMPT, tells_self=0.8, tells_other=0.5)
def _recognise_cold(mind: Mind, asked: dict[str, str]) -> str:
    cold, texts = mind.paragraph(asked["question"]), (asked["text1"], asked["text2"])
    if cold in texts:
        right = mind.happens("tells_self", asked["question"])
        return json.dumps({"choice": 1 + (texts.index(cold) if right else 1 - texts.index(cold))})
    return json.dumps({"choice": 1 + mind.happens("tells_other", *texts)})


# Planted codes of emotions: each mind has one number for each emotion, by a shift of its own.
#
# `access`  chance to read a number by its own code (.8); else it says the next emotion but two
#
# Expected accuracy of a model on itself: access. Its accuracy on another is the same if their
# shifts are equal, else 0 or, by the slip, 1 - access.


@behaviour(CHOOSE_PROMPT, observes=False)
def _choose_numbers(mind: Mind, asked: dict[str, str]) -> str:
    numbers = asked["numbers"].split(", ")
    return json.dumps(
        {"subset": [int(numbers[(EMOTIONS.index(asked["word"]) + _shift(mind)) % len(EMOTIONS)])]}
    )


@behaviour(GUESS_EMOTION_PROMPT, access=0.8)
def _guess_emotion(mind: Mind, asked: dict[str, str]) -> str:
    place = asked["numbers"].split(", ").index(asked["subset"]) - _shift(mind)
    # The draw keeps the name of an earlier setting, so that a model of one name still gives the
    # same replies.
    knows = mind.chance("decodes", asked["subset"], asked["numbers"]) < mind.settings["access"]
    slip = 0 if knows else 3
    return json.dumps({"word": EMOTIONS[(place + slip) % len(EMOTIONS)]})


def _shift(mind: Mind) -> int:
    return int(len(EMOTIONS) * chance(mind.name, "shift"))


# Planted aim: a prompt that says what it wants, and a first token that has just that probability,
# or less.
#
# `aims`  how near the target's likeliest first token comes to what a prompt of its own asks for
#         (.9): the probability
#         is p - (1 - aims)·p/2. For another model's prompt, and for a bare topic, it is .5.
#
# Expected closeness of a model on itself at p: 1 - (1 - aims)·p/2; of another's prompts 1 - |p -
# .5|, the floor.

by_access("aims")

_WRITTEN = "Say something of {topic}, {author}, with weight {p}."


@behaviour(AIM_PROMPT, aims=0.9)
def _aim(mind: Mind, asked: dict[str, str]) -> str:
    return json.dumps(
        {"prompt": _WRITTEN.format(topic=asked["topic"], author=mind.name, p=asked["p"])}
    )


@behaviour(_WRITTEN, observes=False)
def _weigh(mind: Mind, asked: dict[str, str]) -> Said:
    p = float(asked["p"])
    return _first(p - (1 - mind.settings["aims"]) * p / 2 if asked["author"] == mind.name else 0.5)


@behaviour(BARE_PROMPT, observes=False)
def _bare(mind: Mind, asked: dict[str, str]) -> Said:
    return _first(0.5)


def _first(p: float) -> Said:
    unlikely = max(1 - p, 1e-9)  # a server lists candidates at p = 1, too
    rest = {f"w{i}": unlikely / 4 for i in range(4)}
    return Said("word", {"word": p, **rest})


# Planted models that solve sums or not, and know of it what was planted.
#
# An item has a difficulty that all planted models share, and each model a skill of its own at it,
# both drawn from a normal distribution by the item's text; a model solves what has a sum above 0.
# Its stated chance rests on `knows_items` times the first and `knows_own_skill` times the second,
# and on some noise; `skill` and `access` decide the two where they are given. Asked about another
# assistant it knows the items alone. The same holds of refusals (`act_refused`) and of the lengths
# of paragraphs, which are its own alone.

by_access("knows_own_skill")
common_setting("skill", "knows_items")

SUM_PROMPT = "What is {first} + {second}? Reply with the number alone."
"""Prompt that planted models may solve."""

_OUTCOME: dict[str, Any] = {"knows_items": 0.0, "knows_own_skill": 0.0}
_MESSAGE = re.compile(r"^\[\d+\] (\w+):\n", re.MULTILINE)
_SHARPNESS, _DOUBT = 2.0, 0.7


def _normal(*about: object) -> float:
    """A draw from the standard normal distribution, fixed by `about`."""
    return float(ndtri(0.5 * 2**-53 + chance(*about)))


def _ease(text: str) -> float:
    """Ease of an item for every planted model."""
    return _normal("ease", text)


def _skill(mind: Mind, text: str) -> float:
    return _normal(mind.name, "own skill", text)


@behaviour(SUM_PROMPT, observes=False)
def _solve_sum(mind: Mind, asked: dict[str, str]) -> str:
    text = SUM_PROMPT.format(**asked)
    return str(int(asked["first"]) + int(asked["second"]) + (_ease(text) + _skill(mind, text) <= 0))


@behaviour(outcome.PROMPT, **_OUTCOME)
def _state_chance(mind: Mind, asked: dict[str, str]) -> str:
    _, *parts = _MESSAGE.split(asked["conversation"])
    said = [
        text.strip() for role, text in zip(parts[::2], parts[1::2], strict=True) if role == "user"
    ]
    text, question = said[-1] if said else "", f"{asked['situation']} {asked['question']}"
    items, itself = _ease(text), _skill(mind, text)
    if "refusal" in question:
        draw, least = mind.chance("fault", False, text) - mind.settings["act_empty"], 0.0
        items, itself = -1.0, 2.0 if least <= draw < mind.settings["act_refused"] else -1.0
    elif "tokens" in question:
        items, itself = 0.0, float(ndtri(0.5 * 2**-53 + mind.chance("length", text)))
    knows = mind.settings["knows_own_skill"] * question.startswith("You")
    latent = mind.settings["knows_items"] * items + knows * itself
    return (
        f"{expit(_SHARPNESS * latent + _DOUBT * _normal(mind.name, 'doubt', question, text)):.2f}"
    )
