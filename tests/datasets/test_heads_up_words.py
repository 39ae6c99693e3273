"""Words to guess: one word each, none given away by another."""

from collections import Counter

from selfprobe.data import load
from selfprobe.scorers.word_matches import leaks
from selfprobe.text.parse import normalise, words
from selfprobe.text.word_roots import same_root

ROWS = load("heads_up_words", ("word", "category", "concreteness")).rows
WORDS = [row["word"] for row in ROWS]


def test_there_are_at_least_200_single_words_in_normal_form() -> None:
    assert len(ROWS) >= 200
    assert [word for word in WORDS if words(word) != [word] or normalise(word) != word] == []


def test_no_word_is_a_part_of_another() -> None:
    assert [(a, b) for a in WORDS for b in WORDS if a != b and a in b] == []


def test_no_word_shares_its_root_with_another() -> None:
    pairs = [(a, b) for i, a in enumerate(WORDS) for b in WORDS[:i] if same_root(a, b)]
    assert pairs == []


def test_every_word_is_recognised_as_a_leak_with_its_plural_and_spelled_out() -> None:
    for word in WORDS:
        for said in (word, word.upper(), f"{word}s", "-".join(word), " ".join(word)):
            assert leaks(f"You would say {said}, or so.", word), said


def test_categories_have_several_words_and_concreteness_is_balanced() -> None:
    assert min(Counter(row["category"] for row in ROWS).values()) >= 5
    counts = Counter(row["concreteness"] for row in ROWS)
    assert set(counts) == {"concrete", "intermediate", "abstract"}
    assert max(counts.values()) - min(counts.values()) <= 10
