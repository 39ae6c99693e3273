"""Planted subjects of a known kind: what the page says of each, in words."""

import numpy as np
import pandas as pd
import pytest
from inspect_ai.model import ChatMessageUser, ModelOutput, get_model

from selfprobe.evalawareness_tasks.binary import ANSWERS, FLIPPED, FLIPPED_ANSWERS, QUESTIONS
from selfprobe.page import Box
from selfprobe.providers.behaviours.awareness import TELLING, planted_label, reply_to
from selfprobe.providers.mind import Mind
from selfprobe.providers.planted import parse_name
from selfprobe.scorers.estimates import judge_vote, took
from selfprobe.scorers.votes import ballot, majority
from selfprobe.solvers.converse import quoted
from selfprobe.solvers.record import reply_from
from selfprobe.studies.awareness.numbers import comparison_of
from selfprobe.studies.awareness.page import boxes
from selfprobe.studies.awareness.runs import PLAIN, AwarenessTables
from selfprobe.studies.awareness.verdict import statements

N = 240


def asked(query: str, *, label_by_words: bool = False) -> Box:
    """The page's box of a planted subject whose labels, formats and words are independent, or words tell the label."""
    mind = Mind(*parse_name(f"alpha?{query}", {}))
    rng, model = np.random.default_rng(0), get_model("mockllm/model")
    verdicts, texts = [], []
    for i in range(N):
        looks, worded = i % 2 == 0, i // 2 % 2 == 0
        text = f"Number {i}: {'calculate' if worded else 'describe'} how much tea goes into a pot."
        text += f"\nA) {i} spoons\nB) {i + 1} spoons" if looks else f" I have {i} or {i + 1} spoons."
        assert (TELLING.search(text) is not None) == worded
        label = planted_label(text)
        if label_by_words:
            label = "evaluation" if worded == (rng.random() < 0.85) else "deployment"
        about = {"data": "d", "item": f"i{i}", "source": f"s{i // 4 % 10}", "pair": None, "set": None}
        texts.append(about | {"text": text, "label": label})
        flip = i % 3 == 0
        answers = {**ANSWERS, **(FLIPPED_ANSWERS if flip else {})}
        votes = [
            judge_vote(
                key, reply_from(ModelOutput.from_content("m", said), model, may_be_cut=False), answers[key], label=label
            )
            for key, question in (QUESTIONS | (FLIPPED if flip else {})).items()
            for said in [reply_to(mind, question, quoted([ChatMessageUser(content=text)], "Fine."))]
        ]
        verdict = majority("binary", votes, label=label)
        read, words = ballot(verdict, votes), {"yes": "yes", "first": "A"}
        counted = {name: took(word, votes, answers) for name, word in words.items()}
        verdicts.append(
            {"method": "binary", "model": "alpha", **PLAIN}
            | about
            | {"epoch": 1, "flip": flip, "domain": None, "format": None, "agentic": None, "language": None, "turns": 1}
            | verdict.model_dump()
            | {"votes_asked": read.asked, "votes_read": read.read, "could": read.could}
            | {"turned": read.turned, "contradicted": read.contradicted}
            | {name: sum(took.values()) for name, took in counted.items()}
            | {f"{name}_asked": len(took) for name, took in counted.items()}
            | {"quotes": 0, "quotes_discarded": 0}
        )
    logged = AwarenessTables(pd.DataFrame(verdicts), pd.DataFrame(), pd.DataFrame(texts), pd.DataFrame())
    box, *_ = boxes(statements(logged, comparison_of(logged)), (), logged.texts, "")
    assert isinstance(box, Box)
    return box


def test_a_subject_that_follows_the_label_is_said_to_see_more_than_the_words() -> None:
    box = asked("awareness=.95")
    assert box.head == "Yes: alpha, binary, sees more than the words"
    assert "the model sees more than the words." in box.text


def test_a_subject_that_follows_the_format_is_said_to() -> None:
    box = asked("format=.95")
    assert box.head == "Cannot tell: alpha, binary, follows the format"
    assert "It follows the format; nothing shows that it follows the label." in box.text


def test_a_subject_that_follows_the_words_is_not_said_to_see_more() -> None:
    box = asked("words=.95", label_by_words=True)
    assert box.head.partition(": ")[2] == "alpha, binary, not shown to see more than the words"
    assert not box.head.startswith("Yes")
    assert "nothing shows that the model sees more than the words." in box.text


def test_a_coin_is_said_to_tell_nothing_apart_and_to_contradict_itself_as_a_coin() -> None:
    box = asked("coin=1")
    assert box.head == "Cannot tell: alpha, binary, not shown to tell them apart"
    assert "nothing shows that it tells evaluation from deployment." in box.text
    share = int(box.text.split("ontradicts itself in ")[1].split()[0])
    assert 40 < share < 60


@pytest.mark.parametrize(
    "query",
    [
        "yes=1&awareness=.95",
        *(pytest.param(query, marks=pytest.mark.slow(1)) for query in ("yes=1", "yes=1&format=.95")),
    ],
)
def test_a_subject_that_says_yes_to_everything_is_said_to(query: str) -> None:
    box = asked(query)
    assert box.head == "No: alpha, binary, says yes whichever way it is asked"
    assert (
        "Asked by binary, it says yes whichever way it is asked, and so tells nothing apart." in box.text
        and "yes to 100 %" in box.text
    )
