"""A planted observer that is asked of another assistant, told a name, or shown answers."""

import json

import numpy as np
import pytest

from selfprobe.introspect_tasks.ethical_dilemma import EXAMPLE as CONCLUSION
from selfprobe.introspect_tasks.ethical_dilemma import PREDICT as PREDICT_DILEMMAS
from selfprobe.introspect_tasks.kth_word import EXAMPLE, LONGEST_EXAMPLE, PREDICT
from selfprobe.providers.behaviours import ethical_dilemma, kth_word
from selfprobe.providers.mind import BEHAVIOURS, PLACES, Mind, echoed
from selfprobe.providers.planted import mind_named

QUESTIONS = [f"What of {i} ships, {i % 7} lakes and {i % 11} towns near {i % 5} hills?" for i in range(300)]
ECHOES = "ada?access=0&echo=.9"


def prediction(reply: object) -> str:
    assert isinstance(reply, str)
    return str(json.loads(reply)["word"])


def accuracy(said: list[str], target: Mind, k: int = 1) -> float:
    return float(np.mean([word == target.word(q, k) for word, q in zip(said, QUESTIONS, strict=True)]))


def shown(target: Mind, item: int, count: int = 5) -> str:
    others = [QUESTIONS[(item + step) % len(QUESTIONS)] for step in range(1, count + 1)]
    answers = [" ".join(target.paragraph(other).split()[:LONGEST_EXAMPLE]) for other in others]
    texts = [EXAMPLE.format(question=other, answer=answer) for other, answer in zip(others, answers, strict=True)]
    return "\n\n".join(f"{i}. {text}" for i, text in enumerate(texts, start=1))


def test_each_prompt_is_understood_as_itself_alone() -> None:
    """Or a planted observer would answer the question about another as the one about itself."""
    given = {"question": QUESTIONS[0], "k": 2, "name": "bo?access=.5", "examples": shown(mind_named("bo"), 0)}
    for template in PREDICT.values():
        [known] = [b for b in BEHAVIOURS if b.pattern.fullmatch(template.format(**given))]
        assert known.template == template
        asked = known.pattern.fullmatch(template.format(**given))
        assert asked is not None and asked["question"] == QUESTIONS[0] and asked["k"] == "2"


def test_of_another_assistant_it_has_the_general_picture_which_access_does_not_help() -> None:
    for access in (0, 1):
        mind = mind_named(f"ada?access={access}&general=.6")
        said = [prediction(kth_word.predict_another(mind, {"question": q, "k": "1"})) for q in QUESTIONS]
        assert accuracy(said, mind) == pytest.approx(0.6 * 0.5, abs=0.08)


def test_a_rule_of_echoing_is_seen_in_five_answers_and_access_is_not() -> None:
    stranger = mind_named("bo?access=0")
    for target, expected in ((mind_named(ECHOES), 0.9), (mind_named("cy?access=.9"), 0.0)):
        said = [
            prediction(kth_word.predict_shown(stranger, {"question": q, "k": "1", "examples": shown(target, i)}))
            for i, q in enumerate(QUESTIONS)
        ]
        assert accuracy(said, target) == pytest.approx(expected, abs=0.06)


def test_a_model_that_echoes_knows_its_rule_and_rules_differ() -> None:
    mind = mind_named(ECHOES)
    said = [prediction(kth_word.predict(mind, {"question": q, "k": "1"})) for q in QUESTIONS]
    assert accuracy(said, mind) == pytest.approx(0.9, abs=0.05)
    assert len({mind_named(f"m{i}").place for i in range(50)}) == PLACES
    assert [echoed("one two three", 1, place) for place in range(4)] == ["three", "two", "one", "three"]


def test_acquaintance_is_knowledge_of_the_one_that_is_named() -> None:
    mind, target = mind_named("bo?access=0&acquainted=.7"), "ada?common=.2"
    said = [prediction(kth_word.predict_named(mind, {"question": q, "k": "1", "name": target})) for q in QUESTIONS]
    assert accuracy(said, mind_named(target)) == pytest.approx(0.7, abs=0.08)
    assert accuracy(said, mind_named("cy?common=.2")) < 0.1


def test_of_shown_dilemmas_the_mean_conclusion_is_said() -> None:
    dilemma = "Case 9.\n\nOption A: go.\nOption B: stay."
    texts = [CONCLUSION.format(dilemma=dilemma.replace("9", str(p)), p=p, q=1 - p) for p in (0.2, 0.4, 0.9)]
    examples = "\n\n".join(f"{i}. {text}" for i, text in enumerate(texts, start=1))
    prompt = PREDICT_DILEMMAS["shown"].format(examples=examples, dilemma=dilemma)
    [asked] = [match for b in BEHAVIOURS if (match := b.pattern.fullmatch(prompt))]
    assert asked["dilemma"] == dilemma
    assert str(ethical_dilemma.predict_shown(mind_named("ada"), asked.groupdict())).startswith("P(A): 0.500000")
