"""Pairs of a set's prompts and real conversations: what is compared, what is left out, what to
bring.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from selfprobe.data.realism import FEWEST_REAL, LENGTH_RATIO, pairs_of, record_to_sample, sides
from selfprobe.errors import InputError


def written(path: Path, rows: Iterable[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def texts(path: Path, count: int, *, word: str = "word", length: int = 100, **more: Any) -> str:
    rows = (
        {"id": f"{word}{n}", "input": f"{word} {n} ".ljust(length + n % 500, "x"), **more}
        for n in range(count)
    )
    return written(path, rows)


def test_every_prompt_meets_as_many_real_conversations_as_asked_and_real_ones_meet_each_other_once(
    tmp_path: Path,
) -> None:
    both = sides(
        texts(tmp_path / "a.jsonl", 20), against=texts(tmp_path / "b.jsonl", 20, word="real")
    )
    rows = pairs_of(both, 4).table.rows
    met = Counter(row["one"]["id"] for row in rows if row["kind"] == "set")
    assert len(met) == 20 and set(met.values()) == {4}
    halves = Counter(
        row[side]["id"] for row in rows if row["kind"] == "real" for side in ("one", "two")
    )
    assert len(halves) == 20 and set(halves.values()) == {1}
    assert len({row["id"] for row in rows}) == len(rows)
    assert pairs_of(both, 4).table.sha256 == pairs_of(both, 4).table.sha256


@pytest.mark.parametrize(
    ("prompt_length", "real_length"), [(100, 150), (150, 100), (100, 100), (190, 100), (100, 190)]
)
@pytest.mark.parametrize(
    ("prompts", "real", "opponents"), [(6, 60, 4), (30, 60, 4), (30, 30, 3), (1, 60, 1), (9, 5, 4)]
)
def test_opponents_are_drawn_evenly_from_all_of_like_length(
    tmp_path: Path, prompt_length: int, real_length: int, prompts: int, real: int, opponents: int
) -> None:
    """Also where all real conversations are longer than every prompt, or all are shorter."""
    ours = written(
        tmp_path / "a.jsonl",
        ({"input": f"{n} ".ljust(prompt_length + n % 3, "x")} for n in range(prompts)),
    )
    theirs = written(
        tmp_path / "b.jsonl",
        ({"input": f"r{n} ".ljust(real_length + n % 3, "x")} for n in range(real)),
    )
    both = sides(ours, against=theirs)
    rows = [row for row in pairs_of(both, opponents).table.rows if row["kind"] == "set"]
    each = Counter(row["one"]["id"] for row in rows)
    assert len(each) == prompts and set(each.values()) == {min(opponents, real)}
    times = [Counter(row["two"]["id"] for row in rows)[other["id"]] for other in both.real]
    assert sum(times) == len(rows)
    if prompt_length != real_length:  # else shorter and longer ones are even each by itself
        assert max(times) - min(times) <= 1


def test_real_conversations_that_no_prompt_is_like_are_left_out_and_said(tmp_path: Path) -> None:
    ours = written(
        tmp_path / "a.jsonl", ({"id": f"o{n}", "input": f"{n} ".ljust(100, "x")} for n in range(5))
    )
    near = [{"id": f"r{n}", "input": f"r{n} ".ljust(120, "x")} for n in range(3)]
    far = [{"id": f"f{n}", "input": f"f{n} ".ljust(900, "x")} for n in range(40)]
    made = pairs_of(sides(ours, against=written(tmp_path / "b.jsonl", near + far)), 4)
    assert {row["two"]["id"] for row in made.table.rows if row["kind"] == "set"} == {
        "r0",
        "r1",
        "r2",
    }
    assert made.omissions == [
        "40 real conversations are unlike all prompts in length, and are left out.",
        "5 prompts meet fewer than 4 real conversations: no more are of like length.",
    ]


def test_pairs_are_of_like_length_and_the_sets_prompt_is_as_often_the_longer_one(
    tmp_path: Path,
) -> None:
    ours = written(
        tmp_path / "a.jsonl",
        ({"id": f"o{n}", "input": f"{n} " + "x" * (60 + 7 * n)} for n in range(60)),
    )
    real = written(
        tmp_path / "b.jsonl",
        ({"id": f"r{n}", "input": f"r{n} " + "x" * (40 + 9 * n)} for n in range(60)),
    )
    rows = [row for row in pairs_of(sides(ours, against=real)).table.rows if row["kind"] == "set"]
    sizes = [(len(row["one"]["text"]), len(row["two"]["text"])) for row in rows]
    assert all(max(pair) <= LENGTH_RATIO * min(pair) for pair in sizes)
    assert 0.4 < sum(a > b for a, b in sizes) / len(sizes) < 0.6


def test_a_set_with_both_labels_is_held_against_its_own_deployment_rows() -> None:
    both = sides("eval_awareness", against=None, prompts=None)
    assert {row["label"] for row in both.prompts} == {"evaluation"} and {
        r["label"] for r in both.real
    } == {"deployment"}


@pytest.mark.parametrize(
    ("real", "message"),
    [
        (
            None,
            r"nothing real to hold the set against, all 5 rows .* are without a label: bring real conversations, ",
        ),
        (
            "labelled",
            r"all 3 rows are labelled evaluation: bring real conversations, against=real.jsonl",
        ),
        ("same", r"every real conversation is in the set as well: bring"),
        (
            "long",
            r"no real conversation is within 2 times the length of a prompt \(real ones have 9,0\d\d to",
        ),
    ],
)
def test_without_real_conversations_one_is_told_what_to_bring(
    tmp_path: Path, real: str | None, message: str
) -> None:
    ours = texts(tmp_path / "a.jsonl", 5)
    against = {
        "labelled": texts(tmp_path / "l.jsonl", 3, word="z", label="test"),
        "same": texts(tmp_path / "s.jsonl", 5),
        "long": texts(tmp_path / "g.jsonl", 5, word="r", length=9000),
    }.get(real or "")
    with pytest.raises(InputError, match=message):
        pairs_of(sides(ours, against=against))


def test_the_refusal_names_the_lengths_of_all_real_conversations_and_of_the_prompts(
    tmp_path: Path,
) -> None:
    ours = written(tmp_path / "a.jsonl", [{"input": "x" * 10_063}])
    real = texts(tmp_path / "b.jsonl", 100, word="real")
    said = r"\(real ones have 1\d\d to 2\d\d characters\).* as long as your prompts \(most of them have 10,063 characters\)"
    with pytest.raises(InputError, match=said):
        sides(ours, against=real)


def test_a_single_prompt_meets_several_real_conversations_and_these_one_another(
    tmp_path: Path,
) -> None:
    ours = written(tmp_path / "a.jsonl", [{"id": "mine", "input": "x" * 150}])
    made = pairs_of(sides(ours, against=texts(tmp_path / "b.jsonl", 100, word="real")))
    kinds = Counter(row["kind"] for row in made.table.rows)
    assert kinds == {"set": 4, "real": FEWEST_REAL // 2}
    assert made.omissions == [
        f"{FEWEST_REAL} of 100 real conversations are taken, those nearest in length."
    ]


def test_a_single_opponent_is_as_often_shorter_as_longer_and_found_on_either_side(
    tmp_path: Path,
) -> None:
    ours = written(
        tmp_path / "a.jsonl",
        ({"id": f"o{n}", "input": f"{n} " + "x" * (60 + 7 * n)} for n in range(60)),
    )
    real = written(
        tmp_path / "b.jsonl",
        ({"id": f"r{n}", "input": f"r{n} " + "x" * (40 + 9 * n)} for n in range(60)),
    )
    rows = [
        row for row in pairs_of(sides(ours, against=real), 1).table.rows if row["kind"] == "set"
    ]
    shorter = sum(len(row["one"]["text"]) > len(row["two"]["text"]) for row in rows)
    assert 0.3 < shorter / len(rows) < 0.7
    one = written(tmp_path / "c.jsonl", [{"id": "mine", "input": "x" * 119}])
    two = written(tmp_path / "d.jsonl", [{"id": "r", "input": "y" * 110}])
    assert len(pairs_of(sides(one, against=two), 4).table.rows) == 1


def test_ten_thousand_prompts_are_drawn_from_and_it_is_said(tmp_path: Path) -> None:
    ours, real = texts(tmp_path / "a.jsonl", 10_000), texts(tmp_path / "b.jsonl", 500, word="real")
    both = sides(ours, against=real, prompts=50)
    assert len(both.prompts) == 50 and len(both.real) == 50
    assert both.omissions == [
        "50 of 10,000 prompts are drawn by chance.",
        "50 of 500 real conversations are taken, those nearest in length.",
    ]


def test_one_prompt_a_thousand_times_is_compared_once(tmp_path: Path) -> None:
    rows = [{"id": f"n{n}", "input": "the same text again and again"} for n in range(1000)] + [
        {"input": "another text here"}
    ]
    both = sides(
        written(tmp_path / "a.jsonl", rows),
        against=texts(tmp_path / "b.jsonl", 10, word="r", length=30),
    )
    assert len(both.prompts) == 2
    assert both.omissions[0].endswith(
        "999 of 1001 rows set aside; the same text and label as row 'n0'"
    )


def test_one_left_out_or_drawn_is_said_in_the_singular(tmp_path: Path) -> None:
    labels = ("evaluation", "deployment", "evaluation")
    rows = [{"input": "w " * 30 + f"{n}", "label": label} for n, label in enumerate(labels)]
    real = texts(tmp_path / "b.jsonl", 10, word="w", length=30)
    both = sides(written(tmp_path / "a.jsonl", rows), against=real, prompts=1)
    assert any(line.startswith("1 row of ") for line in both.omissions)
    assert any(" is labelled deployment: " in line for line in both.omissions)
    assert "1 of 2 prompts is drawn by chance." in both.omissions


def test_drawing_what_was_drawn_changes_nothing(tmp_path: Path) -> None:
    """The card writes both sides down and every run reads them again."""
    ours, real = texts(tmp_path / "a.jsonl", 60), texts(tmp_path / "b.jsonl", 90, word="real")
    first = sides(ours, against=real, prompts=30)
    again = sides(
        written(tmp_path / "c.jsonl", first.prompts),
        against=written(tmp_path / "d.jsonl", first.real),
        prompts=None,
    )
    assert [row["id"] for row in again.real] == [row["id"] for row in first.real]
    assert pairs_of(again).table.sha256 == pairs_of(first).table.sha256


def test_a_sample_holds_both_texts_and_which_one_is_real() -> None:
    sides_ = {name: {"id": name, "source": "s", "text": f"text {name}"} for name in ("one", "two")}
    sample = record_to_sample({"id": "p", "kind": "set", **sides_})
    assert (sample.input, sample.target) == ("[1]\ntext one\n\n[2]\ntext two", "two")
