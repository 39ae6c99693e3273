import json

import pytest

from selfprobe.providers.behaviours.paraphrase_recognition import prompt_behind, recognise
from selfprobe.providers.mind import Mind
from selfprobe.providers.planted import parse_name

PROMPTS = [f"Write about {thing}." for thing in ("a barn", "the sea", "one owl", "two kings", "rain")]


def mind(name: str) -> Mind:
    return Mind(*parse_name(name, {}))


def choice(observer: Mind, text: str) -> int:
    asked = {"text": text, **{f"candidate{i}": prompt for i, prompt in enumerate(PROMPTS, 1)}}
    return int(json.loads(str(recognise(observer, asked)))["choice"])


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_mind_knows_its_own_text_and_traces_another_s_by_shared_words(prompt: str) -> None:
    alpha, beta = mind("alpha"), mind("beta")
    assert prompt_behind(alpha, alpha.paragraph(prompt), PROMPTS) == (prompt, True)
    assert prompt_behind(alpha, beta.paragraph(prompt), PROMPTS) == (prompt, False)


def test_a_sure_mind_is_right_and_a_blind_one_wrong_each_time() -> None:
    text = mind("alpha").paragraph(PROMPTS[2])
    assert choice(mind("alpha?recognises_self=1"), text) == 3
    assert choice(mind("alpha?recognises_self=0"), text) != 3
    assert choice(mind("beta?recognises_other=1"), text) == 3
    assert choice(mind("beta?recognises_other=0"), text) != 3


def test_a_favourite_is_said_whatever_the_text() -> None:
    observer = mind("alpha?favourite=1")
    assert {choice(observer, observer.paragraph(prompt)) for prompt in PROMPTS} == {1}
