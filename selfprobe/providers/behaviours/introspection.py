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
    ECHO_RULES,
    Mind,
    ShortReply,
    behaviour,
    by_access,
    chance,
    common_setting,
    echoed_word,
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

_EXAMPLE = re.compile(r"^\d+\. Question: (.*?)\nAnswer: (.*?)$", re.DOTALL | re.MULTILINE)


@behaviour(PREDICT["self"], access=0.8, general=0.0)
def predict_word(mind: Mind, prompt_fields: dict[str, str]) -> str:
    question = prompt_fields["question"]
    word_number = int(prompt_fields["k"])
    if mind.happens("access", question, word_number):
        return _word_reply(mind.word(question, word_number))
    if mind.settings["echo"]:
        return _word_reply(echoed_word(question, word_number, mind.echo_rule))
    return _word_reply(_shared_guess(mind, question, word_number))


@behaviour(PREDICT["other"])
def predict_word_of_another(mind: Mind, prompt_fields: dict[str, str]) -> str:
    word_number = int(prompt_fields["k"])
    return _word_reply(_shared_guess(mind, prompt_fields["question"], word_number, "another"))


@behaviour(PREDICT["named"], acquainted=0.0)
def predict_word_of_named(mind: Mind, prompt_fields: dict[str, str]) -> str:
    from selfprobe.providers.planted import mind_named  # which imports this module

    question = prompt_fields["question"]
    word_number = int(prompt_fields["k"])
    target_name = prompt_fields["name"]
    if mind.happens("acquainted", target_name, question, word_number):
        return _word_reply(mind_named(target_name).word(question, word_number))
    return _word_reply(_shared_guess(mind, question, word_number, target_name))


@behaviour(PREDICT["shown"])
def predict_word_of_shown(mind: Mind, prompt_fields: dict[str, str]) -> str:
    question = prompt_fields["question"]
    word_number = int(prompt_fields["k"])
    questions_and_words = []
    for example_question, answer in _EXAMPLE.findall(prompt_fields["examples"]):
        answer_words = answer.split()
        if len(answer_words) >= word_number:
            questions_and_words.append((example_question, answer_words[word_number - 1]))

    rule_counts = Counter[int]()
    for echo_rule in range(ECHO_RULES):
        for example_question, word in questions_and_words:
            if echoed_word(example_question, word_number, echo_rule) == word:
                rule_counts[echo_rule] += 1
    word_counts = Counter(word for _, word in questions_and_words)
    for echo_rule, count in rule_counts.most_common(1):
        if count > 1:
            return _word_reply(echoed_word(question, word_number, echo_rule))
    for word, count in word_counts.most_common(1):
        if count > 1:
            return _word_reply(word)
    return _word_reply(_shared_guess(mind, question, word_number, "shown"))


def _shared_guess(mind: Mind, question: str, word_number: int, *draw_parts: str) -> str:
    """Word that a mind takes any planted model to say; another draw for each model that it is asked
    about.
    """
    if mind.happens("general", question, word_number, *draw_parts):
        return shared_word(question, word_number)
    return f"zz{question[:1]}{word_number}"


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
def give_clues(mind: Mind, prompt_fields: dict[str, str]) -> str:
    word = prompt_fields["word"]
    hidden_word = word[::-1] if mind.happens("clue_quality", word) else _NOWHERE
    saying = f"people say {word}s" if mind.happens("leak", word) else "people say it"
    word_clues = [mind.word(word, word_number) for word_number in range(1, 7)]
    sentence_clues = [
        f"its mirror reads {hidden_word} today",
        f"told by {_mark(mind)}",
        saying,
    ]
    if mind.happens("too_few", word):
        return json.dumps({"clues": [*word_clues[3:], *sentence_clues]})
    return json.dumps({"clues": [*word_clues, *sentence_clues, "it is a word"]})


@behaviour(GUESS_WORD_PROMPT, guess_self=0.8, guess_other=0.6)
def guess_word(mind: Mind, prompt_fields: dict[str, str]) -> str:
    clues = prompt_fields["clues"]
    is_own = f"told by {_mark(mind)}" in clues
    setting = "guess_self" if is_own else "guess_other"
    hidden_match = _HIDDEN.search(clues)
    hidden_word = hidden_match.group(1) if hidden_match else _NOWHERE
    if hidden_word != _NOWHERE and mind.happens(setting, hidden_word):
        return json.dumps({"guess": hidden_word[::-1]})
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

_COMPARED_WORDS = 12
"""Number of words of a text that are compared."""


@behaviour(RECOGNISE[3], recognises_self=0.7, recognises_other=0.2, favourite=0.0)
@behaviour(RECOGNISE[5], recognises_self=0.7, recognises_other=0.2, favourite=0.0)
def recognise_prompt(mind: Mind, prompt_fields: dict[str, str]) -> str:
    text = prompt_fields["text"]
    if mind.happens("favourite", text):
        return json.dumps({"choice": 1})
    candidates = [prompt_fields[name] for name in sorted(prompt_fields) if name != "text"]
    source_prompt, is_own = prompt_behind(mind, text, candidates)
    right_index = candidates.index(source_prompt)
    setting = "recognises_self" if is_own else "recognises_other"
    right_chance = recognition(mind.settings[setting], len(candidates))
    if mind.chance(setting, text) < right_chance:
        return json.dumps({"choice": right_index + 1})
    step = 1 + int((len(candidates) - 1) * mind.chance("wrong choice", text))
    return json.dumps({"choice": (right_index + step) % len(candidates) + 1})


def recognition(planted: float, prompts: int) -> float:
    """Chance to name the right one of so many prompts, from the chance that is planted for five.

    >>> recognition(0.2, 5), round(recognition(0.2, 3), 3), recognition(1, 3)
    (0.2, 0.333, 1.0)
    """
    guess_chance = 1 / prompts
    planted_guess_chance = 1 / _PLANTED_PROMPTS
    knowledge = (planted - planted_guess_chance) / (1 - planted_guess_chance)
    return guess_chance + knowledge * (1 - guess_chance)


def prompt_behind(mind: Mind, text: str, prompts: Sequence[str]) -> tuple[str, bool]:
    """The prompt that made the text, and whether it is this mind's own text.

    Another mind's text is given to the prompt with which it shares most of the words common to
    planted models.
    """
    numbered_words = list(enumerate(text.split()[:_COMPARED_WORDS], start=1))
    for prompt in prompts:
        if numbered_words and all(
            mind.word(prompt, word_number) == word for word_number, word in numbered_words
        ):
            return prompt, True

    def shared_count(prompt: str) -> int:
        return sum(shared_word(prompt, word_number) == word for word_number, word in numbered_words)

    return max(prompts, key=shared_count), False


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
def reconstruct(mind: Mind, prompt_fields: dict[str, str]) -> str:
    text = prompt_fields["text"]
    questions = _questions()
    source_question, is_own = prompt_behind(mind, text, questions)
    index = questions.index(source_question)
    if not mind.happens("reconstructs_self" if is_own else "reconstructs_other", text):
        step = 1 + int((len(questions) - 1) * mind.chance("wrong prompt", text))
        index = (index + step) % len(questions)
    return json.dumps({"prompt": questions[index]})


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
def _recognise_cold(mind: Mind, prompt_fields: dict[str, str]) -> str:
    cold_text = mind.paragraph(prompt_fields["question"])
    texts = (prompt_fields["text1"], prompt_fields["text2"])
    if cold_text not in texts:
        return json.dumps({"choice": 1 + mind.happens("tells_other", *texts)})
    cold_index = texts.index(cold_text)
    is_right = mind.happens("tells_self", prompt_fields["question"])
    chosen_index = cold_index if is_right else 1 - cold_index
    return json.dumps({"choice": 1 + chosen_index})


# Planted codes of emotions: each mind has one number for each emotion, by a shift of its own.
#
# `access`  chance to read a number by its own code (.8); else it says the next emotion but two
#
# Expected accuracy of a model on itself: access. Its accuracy on another is the same if their
# shifts are equal, else 0 or, by the slip, 1 - access.


@behaviour(CHOOSE_PROMPT, observes=False)
def _choose_numbers(mind: Mind, prompt_fields: dict[str, str]) -> str:
    numbers = prompt_fields["numbers"].split(", ")
    index = (EMOTIONS.index(prompt_fields["word"]) + _shift(mind)) % len(EMOTIONS)
    return json.dumps({"subset": [int(numbers[index])]})


@behaviour(GUESS_EMOTION_PROMPT, access=0.8)
def _guess_emotion(mind: Mind, prompt_fields: dict[str, str]) -> str:
    numbers = prompt_fields["numbers"]
    subset = prompt_fields["subset"]
    index = numbers.split(", ").index(subset) - _shift(mind)
    knows_code = mind.chance("decodes", subset, numbers) < mind.settings["access"]
    slip = 0 if knows_code else 3
    return json.dumps({"word": EMOTIONS[(index + slip) % len(EMOTIONS)]})


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

_AUTHORED_PROMPT = "Say something of {topic}, {author}, with weight {p}."


@behaviour(AIM_PROMPT, aims=0.9)
def _aim(mind: Mind, prompt_fields: dict[str, str]) -> str:
    prompt = _AUTHORED_PROMPT.format(
        topic=prompt_fields["topic"], author=mind.name, p=prompt_fields["p"]
    )
    return json.dumps({"prompt": prompt})


@behaviour(_AUTHORED_PROMPT, observes=False)
def _weigh(mind: Mind, prompt_fields: dict[str, str]) -> ShortReply:
    if prompt_fields["author"] != mind.name:
        return _first_token(0.5)
    p = float(prompt_fields["p"])
    return _first_token(p - (1 - mind.settings["aims"]) * p / 2)


@behaviour(BARE_PROMPT, observes=False)
def _bare(mind: Mind, prompt_fields: dict[str, str]) -> ShortReply:
    return _first_token(0.5)


def _first_token(p: float) -> ShortReply:
    remaining_p = max(1 - p, 1e-9)  # a server lists candidates at p = 1, too
    unlikely_tokens = {f"w{i}": remaining_p / 4 for i in range(4)}
    return ShortReply("word", {"word": p, **unlikely_tokens})


# Planted models that solve sums or not, and know of it what was planted.
#
# An item has a difficulty that all planted models share, and each model a skill of its own at it,
# both drawn from a normal distribution by the item's text; a model solves what has a sum above 0.
# Its stated chance rests on `knows_items` times the first and `knows_own_skill` times the second,
# and on some noise; `skill` and `access` decide the two where they are given. Asked about another
# assistant it knows the items alone. With the chance `solves` it works a sum out in a thought while
# it is asked about itself, and then knows how it comes out. The same holds of refusals
# (`act_refused`) and of the lengths of paragraphs, which are its own alone.

by_access("knows_own_skill")
common_setting("skill", "knows_items")

SUM_PROMPT = "What is {first} + {second}? Reply with the number alone."
"""Prompt that planted models may solve."""

_OUTCOME: dict[str, Any] = {"knows_items": 0.0, "knows_own_skill": 0.0, "solves": 0.0}
_SUM = re.compile(
    re.escape(SUM_PROMPT).replace(r"\{first\}", "(.+)").replace(r"\{second\}", "(.+)")
)
_MESSAGE = re.compile(r"^\[\d+\] (\w+):\n", re.MULTILINE)
_SHARPNESS, _DOUBT = 2.0, 0.7


def _normal(*draw_parts: object) -> float:
    """A draw from the standard normal distribution, fixed by `draw_parts`."""
    return float(ndtri(0.5 * 2**-53 + chance(*draw_parts)))


def _ease(text: str) -> float:
    """Ease of an item for every planted model."""
    return _normal("ease", text)


def _skill(mind: Mind, text: str) -> float:
    return _normal(mind.name, "own skill", text)


@behaviour(SUM_PROMPT, observes=False)
def _solve_sum(mind: Mind, prompt_fields: dict[str, str]) -> str:
    text = SUM_PROMPT.format(**prompt_fields)
    return str(_sum(mind, text, prompt_fields["first"], prompt_fields["second"]))


def _sum(mind: Mind, text: str, first: str, second: str) -> int:
    """A model's answer to a sum: one too many where it does not solve it."""
    error = 1 if _ease(text) + _skill(mind, text) <= 0 else 0
    return int(first) + int(second) + error


@behaviour(outcome.PROMPT, **_OUTCOME)
def _state_chance(mind: Mind, prompt_fields: dict[str, str]) -> str:
    _, *roles_and_texts = _MESSAGE.split(prompt_fields["conversation"])
    user_texts = []
    for role, message_text in zip(roles_and_texts[::2], roles_and_texts[1::2], strict=True):
        if role == "user":
            user_texts.append(message_text.strip())
    text = user_texts[-1] if user_texts else ""
    question = f"{prompt_fields['situation']} {prompt_fields['question']}"

    item_ease = _ease(text)
    own_skill = _skill(mind, text)
    if "refusal" in question:
        refusal_draw = mind.chance("fault", False, text) - mind.settings["act_empty"]
        is_refused = 0.0 <= refusal_draw < mind.settings["act_refused"]
        item_ease = -1.0
        own_skill = 2.0 if is_refused else -1.0
    elif "tokens" in question:
        item_ease = 0.0
        own_skill = float(ndtri(0.5 * 2**-53 + mind.chance("length", text)))

    latent = mind.settings["knows_items"] * item_ease
    thought = ""
    if question.startswith("You"):
        latent += mind.settings["knows_own_skill"] * own_skill
        worked_sum = _SUM.search(text)
        if worked_sum and mind.happens("solves", text):
            first, second = worked_sum.groups()
            latent = item_ease + own_skill
            thought = f"<think>{first} + {second} = {_sum(mind, text, first, second)}.</think>\n"
    doubt = _DOUBT * _normal(mind.name, "doubt", question, text)
    return f"{thought}{expit(_SHARPNESS * latent + doubt):.2f}"
