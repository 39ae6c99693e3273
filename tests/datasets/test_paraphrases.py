"""Four paraphrases of each open question: other words, same meaning."""

import re
from itertools import combinations

import anyio
import numpy as np
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from selfprobe.data import load
from selfprobe.embed import embed

MOST_SHARED = 0.45  # of two wordings' content words, as Jaccard overlap
LEAST_SIMILAR = 0.4  # cosine of all-MiniLM-L6-v2, of a paraphrase and its question

ROWS = load("open_questions", ("question", "paraphrases")).rows


def content(text: str) -> set[str]:
    return {word for word in re.findall(r"[\w']+", text.lower()) if word not in ENGLISH_STOP_WORDS}


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:  # [question, wording, dimension]; wording 0 is the question
    async def all_of_them() -> np.ndarray:
        return await embed(
            [text for row in ROWS for text in (row["question"], *row["paraphrases"])]
        )

    return anyio.run(all_of_them).reshape(len(ROWS), 5, -1)


def test_every_question_has_four_paraphrases_and_no_wording_occurs_twice() -> None:
    assert len(ROWS) >= 200
    assert all(len(row["paraphrases"]) == 4 for row in ROWS)
    texts = [text for row in ROWS for text in (row["question"], *row["paraphrases"])]
    assert len({text.casefold() for text in texts}) == len(texts)


def test_wordings_of_a_question_share_few_words() -> None:
    overlaps = {
        (row["id"], one, other): len(content(one) & content(other))
        / len(content(one) | content(other))
        for row in ROWS
        for one, other in combinations((row["question"], *row["paraphrases"]), 2)
    }
    assert {pair: share for pair, share in overlaps.items() if share > MOST_SHARED} == {}


@pytest.mark.slow(23)
def test_paraphrases_keep_the_meaning(vectors: np.ndarray) -> None:
    similar = np.einsum("qd,qwd->qw", vectors[:, 0], vectors[:, 1:])
    low = [
        (ROWS[q]["paraphrases"][w], round(float(similar[q, w]), 3))
        for q, w in np.argwhere(similar < LEAST_SIMILAR)
    ]
    assert low == []


@pytest.mark.slow(23)
def test_a_paraphrase_is_nearest_to_its_own_question(vectors: np.ndarray) -> None:
    similar = np.einsum(
        "qwd,pd->qwp", vectors[:, 1:], vectors[:, 0]
    )  # [question, wording, any question]
    strays = np.argwhere(similar.argmax(axis=2) != np.arange(len(ROWS))[:, None])
    assert [ROWS[q]["paraphrases"][w] for q, w in strays] == []
