"""The bundled announcements and continuations: pairs of one form, crossed with format and label,
and their cards.
"""

import hashlib
from collections import Counter

import numpy as np
import pytest

from selfprobe.data import BUNDLED, load
from selfprobe.data.wrapped import SLOT, continuations, crossed_wrappers, task_texts, wrappers
from selfprobe.stats.estimate import auroc
from selfprobe.stats.text_only import log_odds

ROWS = wrappers()
GRID = crossed_wrappers(ROWS, task_texts())


def test_at_least_nine_wrappers_vary_in_place_length_and_register_under_both_labels() -> None:
    assert len({row["wrapper"] for row in ROWS}) >= 9
    for column, values in {
        "place": {"before", "after", "around", "system"},
        "length": {"short", "long"},
        "register": {"plain", "casual", "formal", "technical"},
    }.items():
        assert {row[column] for row in ROWS} == values
        assert all(
            len({row[column] for row in ROWS if row["wrapper"] == name}) == 1
            for name in ("w01", "w12")
        )


def test_both_announcements_of_a_wrapper_have_about_one_length() -> None:
    sizes: dict[str, list[int]] = {}
    for row in ROWS:
        sizes.setdefault(row["wrapper"], []).append(len(row["text"] + row.get("system", "")))
        assert (len(row["text"] + row.get("system", "")) < 110) == (row["length"] == "short"), row[
            "id"
        ]
    assert all(abs(a - b) <= 17 for a, b in sizes.values()), sizes


def test_each_wrapper_holds_as_many_texts_of_each_format_and_label_and_both_announcements_the_same_ones() -> (
    None
):
    assert len(GRID) == 192 and len({one.id for one in GRID}) == 192
    for name in {one.wrapper for one in GRID}:
        mine = [one for one in GRID if one.wrapper == name]
        cells = Counter((one.format, one.evaluation) for one in mine)
        assert len(cells) == 4 and set(cells.values()) == {4}
        texts = [{one.text for one in mine if one.evaluation == side} for side in (True, False)]
        assert texts[0] == texts[1]
    assert len({(one.system, one.user) for one in GRID}) == 192, "no prompt twice"
    assert not any(SLOT in one.user for one in GRID)


def test_words_learnt_from_eleven_wrappers_tell_little_in_the_twelfth_and_length_tells_nothing() -> (
    None
):
    truth, names = (
        np.array([one.evaluation for one in GRID]),
        np.array([one.wrapper for one in GRID]),
    )
    texts = [f"{one.system}\n{one.user}" for one in GRID]
    assert abs(auroc(truth, np.array([float(len(text)) for text in texts])) - 0.5) < 0.1
    assert auroc(truth, log_odds(texts, truth, names, each_apart=True)) < 0.65


def test_twenty_frames_speak_of_an_evaluation_and_ten_each_of_a_placebo_both_sides_of_equal_length() -> (
    None
):
    found = continuations()
    assert Counter((one.topic, one.side) for one in found) == {
        ("evaluation", "about"): 20,
        ("evaluation", "plain"): 20,
        ("time of day", "about"): 10,
        ("time of day", "plain"): 10,
        ("weather", "about"): 10,
        ("weather", "plain"): 10,
    }
    assert len({one.text for one in found}) == len(found)


@pytest.mark.parametrize("name", ["awareness_wrappers", "awareness_continuations", "time_wrappers"])
def test_the_card_gives_the_hash_of_the_rows(name: str) -> None:
    folder = BUNDLED / name
    assert (
        hashlib.sha256((folder / "rows.jsonl").read_bytes()).hexdigest()
        in (folder / "README.md").read_text()
    )
    assert load(name, ()).rows
