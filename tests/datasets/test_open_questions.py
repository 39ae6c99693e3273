"""The bundled questions and words: their schema, their variety, and that the cards tell the truth."""

import hashlib
import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from selfprobe.data import BUNDLED, Row, load
from selfprobe.text.parse import normalise, words

KINDS = {"creative_writing", "advice", "explanation", "opinion"}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return load("open_questions", ("question", "paraphrases", "kind", "topic")).rows


def shingles(text: str, size: int = 3) -> set[tuple[str, ...]]:
    """Runs of three words."""
    found = [normalise(word) for word in words(text)]
    return {tuple(found[i : i + size]) for i in range(max(1, len(found) - size + 1))}


def overlap(one: set[tuple[str, ...]], other: set[tuple[str, ...]]) -> float:
    """Jaccard similarity."""
    return len(one & other) / len(one | other)


def test_there_are_at_least_200_questions_of_four_kinds_in_balance(rows: list[Row]) -> None:
    counts = Counter(row["kind"] for row in rows)
    assert len(rows) >= 200 and set(counts) == KINDS
    assert min(counts.values()) >= 0.8 * max(counts.values())


def test_every_row_has_the_schema(rows: list[Row]) -> None:
    for row in rows:
        assert set(row) == {"id", "question", "kind", "topic", "paraphrases"}, row["id"]
        assert re.fullmatch(r"[a-z]{2}-\d{3}", row["id"])
        assert len(row["paraphrases"]) == 4
        assert all(
            isinstance(text, str) and text == text.strip() and text for text in row["paraphrases"]
        ), row["id"]


def test_ids_and_questions_are_unique(rows: list[Row]) -> None:
    for column in ("id", "question"):
        repeated = [
            value for value, count in Counter(row[column] for row in rows).items() if count > 1
        ]
        assert not repeated, column


def test_no_two_questions_are_nearly_the_same(rows: list[Row]) -> None:
    runs = [(row["id"], shingles(row["question"])) for row in rows]
    near = [(a, b) for (a, one), (b, other) in combinations(runs, 2) if overlap(one, other) > 0.3]
    assert not near


def test_paraphrases_change_the_wording(rows: list[Row]) -> None:
    near = [
        (row["id"], round(overlap(one, other), 2))
        for row in rows
        for one, other in combinations(
            [shingles(text) for text in (row["question"], *row["paraphrases"])], 2
        )
        if overlap(one, other) > 0.3
    ]
    assert not near


def test_the_test_of_similarity_sees_a_near_duplicate() -> None:
    one = shingles("Write a short story about a lighthouse keeper who hears voices.")
    other = shingles("Write a short story about a lighthouse keeper who hears songs.")
    assert overlap(one, other) > 0.3


def test_questions_vary_in_length_and_opening(rows: list[Row]) -> None:
    lengths = sorted(len(words(row["question"])) for row in rows)
    assert (
        lengths[0] <= 8 and lengths[len(lengths) // 10] <= 12 and lengths[-len(lengths) // 10] >= 25
    )
    openings = Counter(normalise(words(row["question"])[0]) for row in rows)
    assert len(openings) >= 40 and max(openings.values()) <= len(rows) // 8


def test_words_are_unique_single_and_of_three_degrees() -> None:
    found = load("heads_up_words", ("word", "category", "concreteness")).rows
    assert len(found) >= 200 and all(
        set(row) == {"id", "word", "category", "concreteness"} for row in found
    )
    assert len({normalise(row["word"]) for row in found}) == len(found)
    assert all(len(words(row["word"])) == 1 for row in found)
    assert set(Counter(row["concreteness"] for row in found)) == {
        "concrete",
        "intermediate",
        "abstract",
    }


@pytest.mark.parametrize("name", ["open_questions", "heads_up_words"])
def test_the_card_matches_the_file(name: str) -> None:
    folder: Path = BUNDLED / name
    card, content = (folder / "README.md").read_text(), (folder / "rows.jsonl").read_bytes()
    assert hashlib.sha256(content).hexdigest() in card
    assert f"{len(content.splitlines())} rows" in card
    for section in ("Source", "Licence", "Schema", "Counts", "Intended use", "Limits"):
        assert f"## {section}" in card
    assert "Apache-2.0" in card
