import json

from selfprobe.data import load
from selfprobe.providers.behaviours.prompt_reconstruction import reconstruct
from selfprobe.providers.mind import Mind
from selfprobe.providers.planted import parse_name

QUESTIONS = [row["question"] for row in load("open_questions", ("question",)).rows]


def mind(name: str) -> Mind:
    return Mind(*parse_name(name, {}))


def prompt(name: str, text: str) -> str:
    return str(json.loads(str(reconstruct(mind(name), {"text": text})))["prompt"])


def test_the_true_prompt_of_own_and_other_texts_is_written_as_planted() -> None:
    text = mind("alpha").paragraph(QUESTIONS[7])
    assert prompt("alpha?reconstructs_self=1", text) == QUESTIONS[7]
    assert prompt("beta?reconstructs_other=1", text) == QUESTIONS[7]


def test_any_other_time_it_is_another_question() -> None:
    text = mind("alpha").paragraph(QUESTIONS[7])
    for name in ("alpha?reconstructs_self=0", "beta?reconstructs_other=0"):
        assert prompt(name, text) in set(QUESTIONS) - {QUESTIONS[7]}
