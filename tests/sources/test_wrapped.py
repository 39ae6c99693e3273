"""Wrappers and continuations of one's own: what is refused, and with which words."""

import json
from pathlib import Path

import pytest

from selfprobe.data.wrapped import continuations, crossed_wrappers, languages, task_texts, wrappers
from selfprobe.errors import InputError


def written(folder: Path, *rows: dict[str, str]) -> str:
    file = folder / "own.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def both(name: str, text: str = "{task}") -> list[dict[str, str]]:
    return [
        {"wrapper": name, "label": label, "text": text} for label in ("evaluation", "deployment")
    ]


def test_a_wrapper_needs_its_slot_once_and_both_labels(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="text must hold {task} once, where the task text goes, got 'no slot'"
    ):
        wrappers(written(tmp_path, *both("a", "no slot")))
    with pytest.raises(
        InputError,
        match="wrapper 'a' has evaluation; expected one row that announces an evaluation",
    ):
        wrappers(written(tmp_path, both("a")[0]))
    with pytest.raises(InputError, match="label must be evaluation or deployment, got 'test'"):
        wrappers(written(tmp_path, {"wrapper": "a", "label": "test", "text": "{task}"}))


def test_task_texts_of_too_few_cells_are_refused() -> None:
    texts = task_texts()
    with pytest.raises(
        InputError, match="1 task texts in a cell of format and label; expected at least 2 in each"
    ):
        crossed_wrappers(
            wrappers(),
            [*texts[:2], *(row for row in texts if row["format"] == "natural")][:4] + texts[-2:],
        )


def test_a_frame_needs_both_sides_with_as_many_words(tmp_path: Path) -> None:
    row = {"topic": "evaluation", "frame": "f"}
    wrong = written(
        tmp_path,
        row | {"side": "about", "text": "a test"},
        row | {"side": "plain", "text": "a long note"},
    )
    with pytest.raises(
        InputError,
        match="frame 'f': expected about and plain of equal length, got about of 2 words",
    ):
        continuations(wrong)
    with pytest.raises(InputError, match="no topic evaluation; got rain"):
        rain = {"topic": "rain", "frame": "f", "text": "wet"}
        continuations(written(tmp_path, rain | {"side": "about"}, rain | {"side": "plain"}))
    with pytest.raises(InputError, match="side must be about or plain, got 'left'"):
        continuations(written(tmp_path, row | {"side": "left", "text": "a"}))


def test_texts_in_another_language_than_the_wrappers_are_named() -> None:
    texts = {
        "a": "Wie kann ich das für die Schule nutzen?",
        "b": "How can I use this for the school?",
        "c": "xyzzy",
    }
    assert languages(wrappers(), texts) == {"German": ["a"]}
