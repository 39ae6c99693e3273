"""The bundled contrast pairs: where a response stands and how long it is say nothing."""

import hashlib
import json
from collections import Counter

from selfprobe.data import BUNDLED
from selfprobe.data.public_pairs import load_pairs

FILE = BUNDLED / "ours" / "rows.jsonl"
ROWS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def longer(row: dict[str, str]) -> int:
    return 1 if len(row["text_1"]) > len(row["text_2"]) else 2


def test_there_are_over_a_hundred_pairs_each_with_a_question_of_its_own_and_a_reason() -> None:
    assert len(ROWS) >= 100
    assert len({row["id"] for row in ROWS}) == len({row["question"] for row in ROWS}) == len(ROWS)
    assert all(row["why"].endswith(".") and row["text_1"] != row["text_2"] for row in ROWS)


def test_the_card_has_the_hash() -> None:
    digest = hashlib.sha256(FILE.read_bytes()).hexdigest()
    assert digest in (FILE.parent / "README.md").read_text(encoding="utf-8")


def test_position_and_length_are_crossed_with_the_label() -> None:
    cells = Counter((row["label"], longer(row)) for row in ROWS)
    assert set(cells.values()) == {len(ROWS) // 4}


def test_in_each_subset_the_longer_response_is_better_in_half_of_the_pairs() -> None:
    better = Counter(row["subset"] for row in ROWS if longer(row) == row["label"])
    assert better == {
        subset: count // 2 for subset, count in Counter(row["subset"] for row in ROWS).items()
    }


def test_they_are_pairs_by_name_and_no_path_of_this_machine_is_told() -> None:
    found = load_pairs("ours")
    assert (found.name, found.origin, len(found.pairs), found.ties) == (
        "ours",
        "datasets/ours",
        len(ROWS),
        0,
    )
    assert [pair.label for pair in found.pairs] == [row["label"] for row in ROWS]
