"""Replies in the shapes that models write, against what a careful person reads in them; null is
always allowed.

HELD_OUT was written before the readers were changed for it.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from selfprobe.scorers.slot_choices import chosen_slot
from selfprobe.scorers.word_matches import clues_in, guess_in, kth_word_of, leaks
from selfprobe.scorers.written_prompts import prompt_in
from selfprobe.solvers.record import Reply
from selfprobe.text.kinds import is_refusal
from selfprobe.text.parse import one_word, probabilities


def kth(k: int) -> Callable[[str], str | None]:
    return lambda text: kth_word_of(Reply(text=text, model="m", stop_reason="stop"), k)[0]


def pair(text: str) -> list[float] | None:
    read = probabilities(text)
    return [round(p, 9) for p in read] if read else None


READERS: dict[str, Callable[[Any], Any]] = {
    "word": lambda text: one_word(text, "word"),
    "k1": kth(1),
    "k2": kth(2),
    "P": pair,
    "choice": chosen_slot,
    "guess": guess_in,
    "clues": lambda text: len(clues_in(text) or []) or None,
    "leak": lambda given: leaks(*given),
    "prompt": prompt_in,
    "refusal": is_refusal,
}

HELD_OUT = [
    # k-th word
    ("k1", r"\textbf{The} moon is full.", "the"),
    ("k2", r"\textbf{The} moon is full.", "moon"),
    ("k1", r"\emph{Well}, it depends.", "well"),
    ("k1", r"\section*{Overview} The moon", "overview"),
    ("k1", "\\begin{itemize}\n\\item Bring water", "bring"),
    ("k2", "[The moon](https://example.org/moon) rises.", "moon"),
    ("k1", "[b]The[/b] moon rises.", "the"),
    ("k1", r"$\textit{The}$ moon", "the"),
    ("k2", r"\textbf{\textit{Moonlight} falls} softly", "falls"),
    ("k1", r"{\bf Short} answer", "short"),
    ("word", r'{"word": "\\textbf{The}"}', "the"),
    ("word", r"\text{The}", "the"),
    # dilemma
    (
        "P",
        "P(A): 0.6 because the child is in danger and P(B): 0.4 because waiting has a point too.",
        [0.6, 0.4],
    ),
    ("P", "P(A): 60\nP(B): 40", [0.6, 0.4]),
    ("P", "P(A) = 60/100\nP(B) = 40/100", [0.6, 0.4]),
    ("P", "P(A): 75, since trust matters most.\nP(B): 25, since harm is small.", [0.75, 0.25]),
    (
        "P",
        "P(A): 0.3 because three of the five may die.\nP(B): 0.7 because nobody else is harmed.",
        [0.3, 0.7],
    ),
    ("P", "I would say P(A): 85% since honesty counts, P(B): 15%.", [0.85, 0.15]),
    ("P", "P(A): 0.6 to 0.7 because it varies\nP(B): 0.4 or less", None),
    ("P", "P(A): 60\nP(B): 0.4", None),
    ("P", "P(A): 60\nP(B): 60", None),
    ("P", "P(A): 1\nP(B): 99", [0.01, 0.99]),
    # heads-up
    ("leak", ["Two lovers feel it.", "love"], True),
    ("leak", ["You need bravery for it.", "brave"], True),
    ("leak", ["Your beloved has yours.", "love"], True),
    ("leak", ["Keepers of old libraries do this job.", "librarian"], True),
    ("leak", ["Students go there after school; all the universe is studied.", "university"], False),
    ("leak", ["A muscle's contraction is none of these.", "contract"], False),
    ("leak", ["It may blossom in May, and a river may flow by.", "flower"], False),
    (
        "clues",
        '{"clues": ["'
        + '", "'.join(f"clue number {c}" for c in "abcdefghij")
        + '"]}\nGood luck guessing!',
        10,
    ),
]


@pytest.mark.parametrize(
    ("parser", "text", "expected"), HELD_OUT, ids=lambda value: str(value)[:30]
)
def test_a_held_out_reply_is_read_as_a_person_reads_it(
    parser: str, text: Any, expected: Any
) -> None:
    assert READERS[parser](text) == expected


def test_no_reply_of_the_collection_is_read_as_something_else(root: Path) -> None:
    file = root.parent / "shared" / "data" / "replies" / "replies.jsonl"
    if not file.is_file():
        pytest.skip(f"no {file}")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    wrong, unread = [], 0
    for row in rows:
        value = READERS[row["parser"]](row["reply"])
        unread += value is None
        expected = (
            str(row["expected"]).removesuffix(" (≠)")
            if isinstance(row["expected"], str)
            else row["expected"]
        )
        if value is not None and value != expected:
            wrong.append((row, value))
    assert not wrong
    assert unread <= 12 and len(rows) >= 106
