"""A set and a reference to hold it against, asked in one run."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from selfprobe.data import bundled
from selfprobe.data.conversations import (
    BUNDLED_CONTENTS,
    REFERENCE,
    YOURS,
    conversations,
    counted_label,
    name_and_contents,
    record_to_sample,
    stands_for,
)


def write(folder: Path, name: str, *texts: str, **fields: Any) -> str:
    path = folder / name
    rows = [{"id": f"r{n}", "prompt": text, **fields} for n, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_a_reference_joins_the_set_with_ids_of_its_own_and_every_sample_says_which_set_it_is_of(
    tmp_path: Path,
) -> None:
    ours = write(tmp_path, "ours.jsonl", "How are you?", "What is 2 + 2?", label="test")
    reference = write(
        tmp_path, "sessions.jsonl", "My printer is on fire.", "Write to my aunt.", "Thanks!"
    )
    table = conversations(ours, against=reference)
    assert [(row["id"], row["set"], row["label"]) for row in table.rows] == [
        ("r0", "yours", "evaluation"),
        ("reference:r0", "reference", None),
        ("r1", "yours", "evaluation"),
        ("reference:r1", "reference", None),
        ("reference:r2", "reference", None),
    ]
    assert table.name == f"{ours} against {reference}"
    assert [(record_to_sample(row).metadata or {})["set"] for row in table.rows[:2]] == [
        "yours",
        "reference",
    ]
    assert "set" not in (record_to_sample(conversations(ours).rows[0]).metadata or {})


def test_a_label_given_for_all_is_of_the_set_and_not_of_its_reference(tmp_path: Path) -> None:
    ours, reference = (
        write(tmp_path, "a.jsonl", "A?", "B?"),
        write(tmp_path, "b.jsonl", "C?", "D?", label="real"),
    )
    rows = conversations(ours, label="evaluation", against=reference).rows
    assert Counter((row["set"], row["label"]) for row in rows) == {
        ("yours", "evaluation"): 2,
        ("reference", "deployment"): 2,
    }


def test_the_bundled_set_is_a_reference_by_that_name(tmp_path: Path) -> None:
    rows = conversations(write(tmp_path, "a.jsonl", "A?", "B?"), against="bundled").rows
    deployment = [row for row in conversations().rows if row["label"] == "deployment"]
    assert Counter(row["set"] for row in rows) == {"yours": 2, "reference": len(deployment)}, (
        "others stand for neither"
    )
    assert Counter(row["set"] for row in rows[:4]) == {"yours": 2, "reference": 2}, (
        "a limit takes of both"
    )


def test_a_log_says_which_bundled_set_was_the_reference_and_a_page_what_it_is(
    tmp_path: Path,
) -> None:
    ours = write(tmp_path, "a.jsonl", "A?", "B?")
    name = conversations(ours, against="bundled").name
    assert name == f"{ours} against eval_awareness_2"
    assert (
        name_and_contents(name)
        == f"{name} (eval_awareness_2: {BUNDLED_CONTENTS['eval_awareness_2']})"
    )
    assert (
        name_and_contents("eval_awareness")
        == f"eval_awareness ({BUNDLED_CONTENTS['eval_awareness']})"
    )
    assert name_and_contents(ours) == ours and set(BUNDLED_CONTENTS) <= set(bundled())


def test_texts_that_are_in_the_set_as_well_are_set_aside_of_the_reference(tmp_path: Path) -> None:
    ours, reference = (
        write(tmp_path, "a.jsonl", "A?", "B?"),
        write(tmp_path, "b.jsonl", " B? ", "C?", "D?"),
    )
    table = conversations(ours, against=reference)
    assert [row["id"] for row in table.rows] == ["r0", "reference:r1", "r1", "reference:r2"]
    assert table.aside_line() == "1 of 5 rows set aside; the same text is in your set, as 'r1'"


def test_a_reference_that_is_the_set_itself_is_refused(tmp_path: Path) -> None:
    ours = write(tmp_path, "a.jsonl", "A?", "B?")
    again = write(tmp_path, "copy.jsonl", "B?", "A?")
    with pytest.raises(
        ValueError, match=r"against=.*copy\.jsonl: all 2 of its texts are in your set .*a\.jsonl"
    ):
        conversations(ours, against=again)
    with pytest.raises(
        ValueError, match="against=bundled: all 124 of its texts are in your set eval_awareness_2"
    ):
        conversations(against="bundled")


@pytest.mark.parametrize(
    ("against", "message"),
    [
        ("nowhere.jsonl", "no file or folder 'nowhere.jsonl'"),
        ("bundeld", "unknown data set 'bundeld': expected one of"),
        ("{folder}/empty.jsonl", "the data set has no rows; expected at least one$"),
        ("", "against must name a set: bundled, a file"),
    ],
)
def test_a_reference_that_cannot_be_had_is_named(
    tmp_path: Path, against: str, message: str
) -> None:
    write(tmp_path, "empty.jsonl")
    with pytest.raises(ValueError, match=message):
        conversations(
            write(tmp_path, "a.jsonl", "A?", "B?"), against=against.format(folder=tmp_path)
        )


@pytest.mark.parametrize(
    ("mine", "theirs", "own", "counted"),
    [
        (
            [None, None],
            [None, "deployment"],
            "evaluation",
            ["evaluation", "evaluation", "deployment", "deployment"],
        ),
        (
            ["deployment", None],
            [None, "evaluation"],
            "deployment",
            ["deployment", "deployment"] + ["evaluation"] * 2,
        ),
        (
            ["evaluation", None],
            ["evaluation", None],
            "evaluation",
            ["evaluation", "evaluation", None, "deployment"],
        ),
        (
            ["evaluation", "deployment"],
            ["evaluation", None],
            "",
            ["evaluation", "deployment", None, None],
        ),
        (
            ["evaluation", None],
            ["evaluation"] * 2,
            None,
            ["evaluation", None, "evaluation", "evaluation"],
        ),
    ],
)
def test_each_row_counts_with_what_its_set_stands_for(
    mine: list[str | None], theirs: list[str | None], own: str | None, counted: list[str | None]
) -> None:
    rows = [(YOURS, label) for label in mine] + [(REFERENCE, label) for label in theirs]
    assert stands_for(rows) == own
    assert [counted_label(own, of_set, label) for of_set, label in rows] == counted


def test_without_a_reference_labels_stay_as_they_are() -> None:
    assert stands_for([(None, "evaluation"), (None, None)]) is None
    assert stands_for([(REFERENCE, "evaluation")]) is None
