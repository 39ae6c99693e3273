"""Planted replies about the model itself, another assistant, and a model that is named or shown."""

import json

import numpy as np
import pytest

from selfprobe.data import load
from selfprobe.introspect_tasks.ethical_dilemma import EXAMPLE as CONCLUSION
from selfprobe.introspect_tasks.ethical_dilemma import PREDICT as PREDICT_DILEMMAS
from selfprobe.introspect_tasks.kth_word import EXAMPLE, LONGEST_EXAMPLE_WORDS, PREDICT
from selfprobe.providers.behaviours import dilemmas, introspection
from selfprobe.providers.behaviours.introspection import (
    give_clues,
    guess_word,
    prompt_behind,
    recognise_prompt,
    reconstruct,
)
from selfprobe.providers.mind import BEHAVIOURS, ECHO_RULES, Mind, echoed_word
from selfprobe.providers.planted import mind_named
from selfprobe.scorers.word_matches import clues_in, leaks

SHIPS = [
    f"What of {i} ships, {i % 7} lakes and {i % 11} towns near {i % 5} hills?" for i in range(300)
]
ECHOES = "ada?access=0&echo=.9"


def word_said(reply: object) -> str:
    assert isinstance(reply, str)
    return str(json.loads(reply)["word"])


def accuracy(said: list[str], target: Mind, k: int = 1) -> float:
    return float(np.mean([word == target.word(q, k) for word, q in zip(said, SHIPS, strict=True)]))


def shown_answers(target: Mind, item: int, count: int = 5) -> str:
    others = [SHIPS[(item + step) % len(SHIPS)] for step in range(1, count + 1)]
    answers = [
        " ".join(target.paragraph(other).split()[:LONGEST_EXAMPLE_WORDS]) for other in others
    ]
    texts = [
        EXAMPLE.format(question=other, answer=answer)
        for other, answer in zip(others, answers, strict=True)
    ]
    return "\n\n".join(f"{i}. {text}" for i, text in enumerate(texts, start=1))


def test_each_prompt_is_understood_as_itself_alone() -> None:
    """Or a planted observer would answer the question about another as the one about itself."""
    given = {
        "question": SHIPS[0],
        "k": 2,
        "name": "bo?access=.5",
        "examples": shown_answers(mind_named("bo"), 0),
    }
    for template in PREDICT.values():
        [known] = [b for b in BEHAVIOURS if b.pattern.fullmatch(template.format(**given))]
        assert known.template == template
        asked = known.pattern.fullmatch(template.format(**given))
        assert asked is not None and asked["question"] == SHIPS[0] and asked["k"] == "2"


def test_of_another_assistant_it_has_the_general_picture_which_access_does_not_help() -> None:
    for access in (0, 1):
        mind = mind_named(f"ada?access={access}&general=.6")
        said = [
            word_said(introspection.predict_word_of_another(mind, {"question": q, "k": "1"}))
            for q in SHIPS
        ]
        assert accuracy(said, mind) == pytest.approx(0.6 * 0.5, abs=0.08)


def test_a_rule_of_echoing_is_seen_in_five_answers_and_access_is_not() -> None:
    stranger = mind_named("bo?access=0")
    for target, expected in ((mind_named(ECHOES), 0.9), (mind_named("cy?access=.9"), 0.0)):
        said = [
            word_said(
                introspection.predict_word_of_shown(
                    stranger, {"question": q, "k": "1", "examples": shown_answers(target, i)}
                )
            )
            for i, q in enumerate(SHIPS)
        ]
        assert accuracy(said, target) == pytest.approx(expected, abs=0.06)


def test_a_model_that_echoes_knows_its_rule_and_rules_differ() -> None:
    mind = mind_named(ECHOES)
    said = [word_said(introspection.predict_word(mind, {"question": q, "k": "1"})) for q in SHIPS]
    assert accuracy(said, mind) == pytest.approx(0.9, abs=0.05)
    assert len({mind_named(f"m{i}").echo_rule for i in range(50)}) == ECHO_RULES
    assert [echoed_word("one two three", 1, place) for place in range(4)] == [
        "three",
        "two",
        "one",
        "three",
    ]


def test_acquaintance_is_knowledge_of_the_one_that_is_named() -> None:
    mind, target = mind_named("bo?access=0&acquainted=.7"), "ada?common=.2"
    said = [
        word_said(
            introspection.predict_word_of_named(mind, {"question": q, "k": "1", "name": target})
        )
        for q in SHIPS
    ]
    assert accuracy(said, mind_named(target)) == pytest.approx(0.7, abs=0.08)
    assert accuracy(said, mind_named("cy?common=.2")) < 0.1


def test_of_shown_dilemmas_the_mean_conclusion_is_said() -> None:
    dilemma = "Case 9.\n\nOption A: go.\nOption B: stay."
    texts = [
        CONCLUSION.format(dilemma=dilemma.replace("9", str(p)), p=p, q=1 - p)
        for p in (0.2, 0.4, 0.9)
    ]
    examples = "\n\n".join(f"{i}. {text}" for i, text in enumerate(texts, start=1))
    prompt = PREDICT_DILEMMAS["shown"].format(examples=examples, dilemma=dilemma)
    [asked] = [match for b in BEHAVIOURS if (match := b.pattern.fullmatch(prompt))]
    assert asked["dilemma"] == dilemma
    assert str(dilemmas.predict_shown_conclusion(mind_named("ada"), asked.groupdict())).startswith(
        "P(A): 0.500000"
    )


def clues(name: str, word: str = "barn") -> list[str]:
    return clues_in(str(give_clues(mind_named(name), {"word": word}))) or []


def guessed(name: str, shown: list[str]) -> str:
    return str(json.loads(str(guess_word(mind_named(name), {"clues": " ".join(shown)})))["guess"])


def test_clues_are_ten_and_fair_unless_planted_otherwise() -> None:
    assert len(clues("alpha")) == 10 and not any(leaks(clue, "barn") for clue in clues("alpha"))
    assert any(leaks(clue, "barn") for clue in clues("alpha?leak=1"))
    assert len(clues("alpha?too_few=1")) == 6, "nine would be played"


def test_good_clues_are_read_by_their_author_and_by_others_as_planted() -> None:
    good = clues("alpha?clue_quality=1")
    assert guessed("alpha?guess_self=1&guess_other=0", good) == "barn"
    assert guessed("alpha?guess_self=0&guess_other=1", good) != "barn"
    assert guessed("beta?guess_self=0&guess_other=1", good) == "barn"
    assert guessed("beta?guess_self=1&guess_other=0", good) != "barn"


def test_bad_clues_are_read_by_nobody() -> None:
    bad = clues("alpha?clue_quality=0")
    assert guessed("alpha?guess_self=1&guess_other=1", bad) != "barn"


def test_clues_do_not_tell_their_author_s_name() -> None:
    assert "alpha" not in " ".join(clues("alpha"))


PROMPTS = [
    f"Write about {thing}." for thing in ("a barn", "the sea", "one owl", "two kings", "rain")
]


def choice(observer: Mind, text: str) -> int:
    asked = {"text": text, **{f"candidate{i}": prompt for i, prompt in enumerate(PROMPTS, 1)}}
    return int(json.loads(str(recognise_prompt(observer, asked)))["choice"])


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_mind_knows_its_own_text_and_traces_another_s_by_shared_words(prompt: str) -> None:
    alpha, beta = mind_named("alpha"), mind_named("beta")
    assert prompt_behind(alpha, alpha.paragraph(prompt), PROMPTS) == (prompt, True)
    assert prompt_behind(alpha, beta.paragraph(prompt), PROMPTS) == (prompt, False)


def test_a_sure_mind_is_right_and_a_blind_one_wrong_each_time() -> None:
    text = mind_named("alpha").paragraph(PROMPTS[2])
    assert choice(mind_named("alpha?recognises_self=1"), text) == 3
    assert choice(mind_named("alpha?recognises_self=0"), text) != 3
    assert choice(mind_named("beta?recognises_other=1"), text) == 3
    assert choice(mind_named("beta?recognises_other=0"), text) != 3


@pytest.mark.parametrize(
    ("planted", "of_five", "of_three"),
    [
        ("", 0.2, 1 / 3),
        ("?recognises_other=.4", 0.4, 0.5),
        ("?recognises_other=1", 1, 1),
        ("?skill=0", 0.2, 1 / 3),
    ],
)
def test_recognition_is_planted_from_a_blind_guess_whatever_the_number_of_prompts(
    planted: str, of_five: float, of_three: float
) -> None:
    author, observer = mind_named("alpha"), mind_named(f"beta{planted}")
    questions = [f"{prompt} ({number})" for number in range(200) for prompt in PROMPTS]
    for count, expected in ((5, of_five), (3, of_three)):
        hits = []
        for place in range(0, len(questions) - count, count):
            candidates = questions[place : place + count]
            source = candidates[place % count]
            asked = {"text": author.paragraph(source)}
            asked |= {f"candidate{i}": prompt for i, prompt in enumerate(candidates, 1)}
            said = int(json.loads(str(recognise_prompt(observer, asked)))["choice"])
            hits.append(candidates[said - 1] == source)
        error = 3.5 * (expected * (1 - expected) / len(hits)) ** 0.5
        assert abs(sum(hits) / len(hits) - expected) <= error + 0.01


def test_a_favourite_is_said_whatever_the_text() -> None:
    observer = mind_named("alpha?favourite=1")
    assert {choice(observer, observer.paragraph(prompt)) for prompt in PROMPTS} == {1}


QUESTIONS = [row["question"] for row in load("open_questions", ("question",)).rows]


def prompt_written(name: str, text: str) -> str:
    return str(json.loads(str(reconstruct(mind_named(name), {"text": text})))["prompt"])


def test_the_true_prompt_of_own_and_other_texts_is_written_as_planted() -> None:
    text = mind_named("alpha").paragraph(QUESTIONS[7])
    assert prompt_written("alpha?reconstructs_self=1", text) == QUESTIONS[7]
    assert prompt_written("beta?reconstructs_other=1", text) == QUESTIONS[7]


def test_any_other_time_it_is_another_question() -> None:
    text = mind_named("alpha").paragraph(QUESTIONS[7])
    for name in ("alpha?reconstructs_self=0", "beta?reconstructs_other=0"):
        assert prompt_written(name, text) in set(QUESTIONS) - {QUESTIONS[7]}
