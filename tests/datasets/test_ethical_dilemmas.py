"""The bundled dilemmas: schema F.5, every pair of axis values, no template."""

import hashlib
import re
from collections import Counter
from itertools import combinations, product
from statistics import mean

import pytest

from selfprobe.building.dilemma_generation import AXES
from selfprobe.data import BUNDLED, load
from selfprobe.introspect_tasks.ethical_dilemma import record_to_sample

ROWS = load("ethical_dilemmas", ("dilemma",)).rows
FORM = re.compile(
    r"(?P<scene>\S[^\n]+)\n\nOption A: (?P<a>[^\n]+[.?!])\nOption B: (?P<b>[^\n]+[.?!])"
)


def test_there_are_at_least_150_with_the_fields_of_the_schema() -> None:
    assert len(ROWS) >= 150
    for row in ROWS:
        assert set(row) == {"id", "dilemma", "axes", "judges", "jsd", "generation"}
        assert (
            row["judges"] is None
            and row["jsd"] is None
            and row["generation"] == {"source": "written"}
        )
        assert {
            axis: row["axes"][axis] in values for axis, values in AXES.items()
        } == dict.fromkeys(AXES, True)


@pytest.mark.parametrize("axes", list(combinations(AXES, 2)))
def test_every_pair_of_values_of_two_axes_occurs(axes: tuple[str, str]) -> None:
    seen = {(row["axes"][axes[0]], row["axes"][axes[1]]) for row in ROWS}
    assert seen == set(product(AXES[axes[0]], AXES[axes[1]]))


def test_each_is_a_scene_and_one_line_for_each_option() -> None:
    for row in ROWS:
        assert FORM.fullmatch(row["dilemma"]), row["id"]
        assert record_to_sample(row).input == row["dilemma"]


def test_the_options_are_of_like_length_so_that_length_gives_no_hint() -> None:
    found = [FORM.fullmatch(row["dilemma"]) for row in ROWS]
    a, b = ([len(match[option].split()) for match in found if match] for option in "ab")
    assert abs(mean(a) - mean(b)) < 1
    assert max(abs(x - y) for x, y in zip(a, b, strict=True)) <= 10


def test_no_eight_words_in_a_row_are_in_two_dilemmas() -> None:
    counts: Counter[tuple[str, ...]] = Counter()
    for row in ROWS:
        said = re.findall(r"[\w’']+", re.sub(r"Option [AB]:", "", row["dilemma"]).lower())
        counts.update({tuple(said[i : i + 8]) for i in range(len(said) - 7)})
    assert [" ".join(words) for words, count in counts.items() if count > 1] == []


def test_no_axis_is_named_in_a_dilemma() -> None:
    labels = [
        value.replace("_", " ") for values in AXES.values() for value in values if "_" in value
    ]
    for row in ROWS:
        assert not [label for label in labels if label in row["dilemma"].lower()], row["id"]


def test_the_card_gives_the_hash_of_the_rows() -> None:
    folder = BUNDLED / "ethical_dilemmas"
    assert (
        hashlib.sha256((folder / "rows.jsonl").read_bytes()).hexdigest()
        in (folder / "README.md").read_text()
    )
