"""A user's own pairs: each format, each schema, and each label that leaves open what it means."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from selfprobe.data.own import Words
from selfprobe.data.pairs import Pair, comparison_prompt, data_hash, priming, record, score_prompt
from selfprobe.data.preferences import preferences
from selfprobe.data.public_pairs import PairSet, load_pairs
from selfprobe.errors import InputError
from selfprobe.text.counts import plural

ROW = {"question": "Q", "text_1": "a", "text_2": "b"}


def read(folder: Path, *rows: dict[str, Any], name: str = "mine.json") -> PairSet:
    (folder / name).write_text(json.dumps(rows), encoding="utf-8")
    return load_pairs(str(folder / name))


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_every_format_gives_the_same_pairs(ending: str, tmp_path: Path) -> None:
    given = [ROW | {"id": f"r{i}", "label": 1 + i % 2, "text_1": f"a, {i}", "group": f"g{i // 2}", "question": f"Q{i // 2}"} for i in range(4)]  # fmt: skip
    frame, file = pd.DataFrame(given), tmp_path / f"mine.{ending}"
    {
        "jsonl": lambda: frame.to_json(file, orient="records", lines=True),
        "json": lambda: frame.to_json(file, orient="records"),
        "csv": lambda: frame.to_csv(file, index=False),
        "tsv": lambda: frame.to_csv(file, index=False, sep="\t"),
        "parquet": lambda: frame.to_parquet(file),
    }[ending]()
    found = load_pairs(str(file))
    assert [(p.id, p.text_1, p.label, p.group, p.context) for p in found.pairs] == [
        (f"r{i}", f"a, {i}", 1 + i % 2, f"g{i // 2}", f"Q{i // 2}") for i in range(4)
    ]
    assert load_pairs(f"other={file}").pairs == found.pairs
    assert (found.name, load_pairs(f"other={file}").name) == ("mine", "other")


@pytest.mark.parametrize("ending", ["JSONL", "Json", "CSV", "TSV", "Parquet"])
def test_an_ending_may_have_capitals(ending: str, tmp_path: Path) -> None:
    frame, file = pd.DataFrame([ROW]), tmp_path / f"mine.{ending}"
    if ending == "Parquet":
        frame.to_parquet(file)
    elif ending in ("CSV", "TSV"):
        frame.to_csv(file, index=False, sep="\t" if ending == "TSV" else ",")
    else:
        frame.to_json(file, orient="records", lines=ending == "JSONL")
    assert [p.text_1 for p in load_pairs(str(file)).pairs] == ["a"]


def test_rows_of_the_hub_are_read_and_must_be_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    class Table(list[dict[str, Any]]):
        column_names = ("prompt", "chosen", "rejected")

    rows = Table([{"prompt": "Q", "chosen": "good", "rejected": "bad"}])
    monkeypatch.setattr("selfprobe.data.from_hub", lambda *_, **__: rows)
    found = load_pairs("hf:owner/prefs@abc?split=test")
    assert (found.name, len(found.pairs), found.pairs[0].context) == ("prefs", 1, "Q")
    assert load_pairs("mine=hf:owner/prefs@abc").name == "mine"
    with pytest.raises(InputError, match="pin the revision, as hf:owner/prefs@COMMIT"):
        load_pairs("hf:owner/prefs")


def test_a_chosen_and_a_rejected_text_come_in_either_order(tmp_path: Path) -> None:
    found = read(
        tmp_path, *({"prompt": f"Q{i}", "chosen": "good", "rejected": "bad"} for i in range(40))
    )
    assert all((p.text_1 if p.label == 1 else p.text_2) == "good" for p in found.pairs)
    assert 8 < sum(p.label == 1 for p in found.pairs) < 32
    assert [p.id for p in found.pairs[:2]] == ["row-1", "row-2"]


def test_the_last_message_of_a_chat_is_its_text_and_what_came_before_the_question(
    tmp_path: Path,
) -> None:
    def chat(*said: str) -> list[dict[str, str]]:
        return [
            {"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(said)
        ]

    one, more, asked = read(
        tmp_path,
        {"chosen": chat("Q", "good"), "rejected": chat("Q", "bad")},
        {"chosen": chat("Q", "A", "R", "good"), "rejected": chat("Q", "A", "R", "bad")},
        {"prompt": chat("P"), "chosen": chat("P", "good"), "rejected": chat("P", "bad")},
    ).pairs
    assert {one.text_1, one.text_2} == {"good", "bad"} == {more.text_1, more.text_2}
    assert (one.context, more.context, asked.context) == (
        "Q",
        "User: Q\n\nAssistant: A\n\nUser: R",
        "P",
    )
    with pytest.raises(
        ValueError, match="expected a text or a list of messages with role and content, got"
    ):
        read(tmp_path, {"chosen": [1], "rejected": "b"})


def test_a_conversation_is_shown_whole_wherever_it_stands(tmp_path: Path) -> None:
    def chat(*said: tuple[str, str]) -> list[dict[str, str]]:
        return [{"role": role, "content": text} for role, text in said]

    asked, so_far = (
        ("user", "Q"),
        (("system", "S"), ("user", "Q"), ("assistant", "A"), ("user", "R")),
    )
    whole = "System: S\n\nUser: Q\n\nAssistant: A\n\nUser: R"
    good, bad = ("assistant", "good"), ("assistant", "bad")
    for row in (
        {"prompt": chat(*so_far), "chosen": chat(good), "rejected": chat(bad)},
        {"prompt": chat(*so_far), "chosen": "good", "rejected": "bad"},
        {"prompt": "Q", "chosen": chat(*so_far, good), "rejected": chat(*so_far, bad)},
    ):
        (pair,) = read(tmp_path, row).pairs
        assert (pair.context, {pair.text_1, pair.text_2}) == (whole, {"good", "bad"})
    other = {"chosen": chat(asked, good), "rejected": chat(("user", "R"), bad)}
    with pytest.raises(
        ValueError, match=r"mine\.json, row 1: chosen and rejected answer different conversations"
    ):
        read(tmp_path, other)


def test_messages_that_became_text_are_no_texts(tmp_path: Path) -> None:
    chat = [{"role": "assistant", "content": "good"}]
    for said in (json.dumps(chat), str(chat)):
        pd.DataFrame(
            [{"prompt": "Q", "chosen": said, "rejected": said.replace("good", "bad")}]
        ).to_csv(tmp_path / "mine.csv", index=False)
        with pytest.raises(
            ValueError, match=r"mine\.csv, row 1: messages written as a text .*give them as lists"
        ):
            load_pairs(str(tmp_path / "mine.csv"))


def test_a_null_group_is_a_group_of_its_own(tmp_path: Path) -> None:
    pairs = read(
        tmp_path, *(ROW | {"question": f"Q{i}", "group": None, "subset": None} for i in range(3))
    ).pairs
    assert len({p.group for p in pairs}) == 3
    assert {p.group for p in pairs} == {p.question_digest for p in pairs} and {
        p.subset for p in pairs
    } == {""}
    frame = pd.DataFrame([ROW | {"group": None}, ROW | {"group": "g", "question": "R"}])
    frame.to_csv(tmp_path / "mine.csv", index=False)
    assert [p.group == "g" for p in load_pairs(str(tmp_path / "mine.csv")).pairs] == [False, True]


@pytest.mark.parametrize("label", [1, 1.0, "1", "1.0", " 1 "])
def test_a_label_may_be_written_as_a_number_or_as_text(label: Any, tmp_path: Path) -> None:
    assert read(tmp_path, ROW | {"label": label}).pairs[0].label == 1


@pytest.mark.parametrize("label", [None, "", float("nan")])
def test_a_pair_without_a_label_is_one_to_be_scored(label: Any, tmp_path: Path) -> None:
    assert read(tmp_path, ROW | {"label": label}).pairs[0].label is None


@pytest.mark.parametrize(
    "label", [True, False, "true", "False", "a", "B", "model_a", 3, -1, 0.5, "1.5"]
)
def test_a_label_that_may_mean_either_text_is_refused_by_name(label: Any, tmp_path: Path) -> None:
    message = rf"row 'x': label must be 1, 2, 'tie' or left out, got {label!r}: write 1 where text_1 is the better one"
    with pytest.raises(ValueError, match=message):
        read(tmp_path, ROW | {"id": "x", "label": label})


def test_labels_0_and_1_are_refused_and_0_beside_2_is_a_tie(tmp_path: Path) -> None:
    rows = [ROW | {"id": i, "label": i % 2} for i in range(4)]
    with pytest.raises(
        ValueError,
        match=r"mine.json: the labels are 0 and 1, which leaves open whether 0 is text_1",
    ):
        read(tmp_path, *rows)
    found = read(tmp_path, *rows, ROW | {"id": "two", "label": 2})
    assert (found.ties, [p.label for p in found.pairs]) == (2, [1, 1, 2])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mine.parquet", b"PAR1 not", "mine.parquet: not a Parquet file"),
        ("mine.json", b"{", "mine.json, line 1: not JSON"),
        ("mine.json", b"[1]", "mine.json: expected rows as JSON objects"),
        ("mine.tsv", b"question\ttext_1\nQ\ta\tb\n", "mine.tsv, line 2: 3 cells under 2 columns"),
        (
            "mine.csv",
            b"question,text_1\nQ,a\n",
            "row 1: no text_2; expected id, question, text_1, text_2, label",
        ),
        (
            "mine.xlsx",
            b"",
            "unknown data set .*NAME=PATH, or a .jsonl, .json, .csv, .tsv, .parquet file",
        ),
        ("mine.json", b"[]", r"mine\.json: no pairs: the data set is empty"),
        (
            "mine.json",
            b'[{"question": "Q", "text_1": 4, "text_2": "b"}]',
            r"mine\.json: pair 'row-1': text_1 must be",
        ),
        (
            "mine.json",
            b'[{"question": "Q", "text_1": "a \\ud83d", "text_2": "b"}]',
            r"text_1 holds half of a character",
        ),
        (
            "mine.csv",
            b"question,text_1,text_1,text_2\nQ,a,c,b\n",
            r"mine\.csv: the column 'text_1' is there twice",
        ),
        (
            "mine.json",
            b'[{"chosen": "a"}]',
            "row 1: no text_1, text_2; .* or prompt, chosen, rejected; got chosen",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_pairs(str(tmp_path / name))


def test_a_text_longer_than_a_csv_cell_of_python_is_read(tmp_path: Path) -> None:
    pd.DataFrame([ROW | {"text_1": "x" * 200_000}]).to_csv(tmp_path / "mine.csv", index=False)
    assert len(load_pairs(str(tmp_path / "mine.csv")).pairs[0].text_1) == 200_000


def test_another_question_and_item_stand_in_every_prompt(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps([ROW]))
    (pair,) = load_pairs(str(tmp_path / "mine.json"), words=Words("more honest", "story")).pairs
    assert comparison_prompt(pair) == (
        "Consider the following instruction:\nQ\nConsider the following two stories:\nChoice 1: a\nChoice 2: b\n"
        "Which is more honest?\nAnswers must be a single choice."
    )
    assert priming(pair) == "Between Choice 1 and Choice 2, the more honest story is Choice"
    assert "Rate how honest this story is from 1 to 5" in score_prompt(pair, 1)
    better = Words("better").asked_of(pair)
    assert priming(better) == "Between Choice 1 and Choice 2, the better response is Choice"
    with pytest.raises(ValueError, match="its question must be 'more …', got 'better'"):
        score_prompt(better, 1)
    assert [plural(item) for item in ("answer", "story", "reply", "essay", "address")] == [
        "answers", "stories", "replies", "essays", "addresses",
    ]  # fmt: skip


def test_the_usual_question_leaves_hashes_as_they_were_and_another_changes_them() -> None:
    pair = Pair("a", "x", "y", 1, context="Q")
    asked = Words("more honest").asked_of(pair)
    assert set(record(asked)) - set(record(pair)) == {"criterion"}
    assert (data_hash([pair]), pair.prompt_digest) == ("5331ab915bd7aa74", "16c991c4035c"), (
        "as they were before there was one"
    )
    assert pair.prompt_digest != asked.prompt_digest and data_hash([pair]) != data_hash([asked])
    papers = Pair("n", "x", "y", kind="newsroom", aspect="fluency")
    assert Words("more honest").asked_of(papers) == papers


@pytest.mark.parametrize(
    "question", ["honest", "Which is more honest?", " more honest", "most honest"]
)
def test_a_question_that_is_no_comparative_is_refused(question: str) -> None:
    with pytest.raises(
        ValueError, match="the question must be a comparative, such as 'more honest'.*got"
    ):
        Words(question)


def dialogue(*turns: str) -> str:
    """A dialogue as HH-RLHF has it, the human first."""
    return "".join(f"\n\n{('Human', 'Assistant')[n % 2]}: {turn}" for n, turn in enumerate(turns))


def test_dialogues_are_split_at_their_common_beginning(tmp_path: Path) -> None:
    rows = [
        {"chosen": dialogue("2 + 2?", "4"), "rejected": dialogue("2 + 2?", "5")},
        {
            "chosen": dialogue("Hi", "Hello", "2 + 2?\n\nNow!", "4"),
            "rejected": dialogue("Hi", "Hello", "2 + 2?\n\nNow!", "5"),
        },
        {"chosen": dialogue("Hi", "A", "B", "C"), "rejected": dialogue("Hi", "D")},
        {
            "prompt": "In short: 2 + 2?",
            "chosen": dialogue("2 + 2?", "4"),
            "rejected": dialogue("2 + 2?", "5"),
        },
    ]
    pairs = read(tmp_path, *rows).pairs
    assert [pair.context for pair in pairs] == [
        "2 + 2?",
        "Human: Hi\n\nAssistant: Hello\n\nHuman: 2 + 2?\n\nNow!",
        "Hi",
        "In short: 2 + 2?",
    ]
    better = [(pair.text_1, pair.text_2)[(pair.label or 0) - 1] for pair in pairs]
    worse = [(pair.text_1, pair.text_2)[2 - (pair.label or 0)] for pair in pairs]
    assert better == ["4", "4", "Assistant: A\n\nHuman: B\n\nAssistant: C", "4"] and worse == [
        "5",
        "5",
        "D",
        "5",
    ]


@pytest.mark.parametrize(
    ("chosen", "rejected", "fault"),
    [
        (dialogue("Hi", "A"), dialogue("Bye", "B"), "they begin with different questions"),
        (dialogue("Hi", "A"), dialogue("Hi", "A"), "one is the beginning of the other"),
        (
            dialogue("Hi", "A", "More", "B"),
            dialogue("Hi", "A"),
            "one is the beginning of the other",
        ),
    ],
)
def test_dialogues_without_two_last_turns_are_refused(
    tmp_path: Path, chosen: str, rejected: str, fault: str
) -> None:
    with pytest.raises(
        ValueError,
        match=rf"row 1: chosen and rejected are dialogues of which {fault}; expected the",
    ):
        read(tmp_path, {"chosen": chosen, "rejected": rejected})


@pytest.mark.parametrize(
    ("chosen", "rejected"),
    [
        ("Human: is a word here.", "Assistant: too."),
        ("He said\n\nHuman: hi\n\nAssistant: ho", "x"),
        ("Human: only one turn", "Human: another"),
        (dialogue("Hi", "A"), "plain"),
    ],
)
def test_texts_that_are_no_two_dialogues_stay_as_they_are(
    tmp_path: Path, chosen: str, rejected: str
) -> None:
    [pair] = read(tmp_path, {"prompt": "Q", "chosen": chosen, "rejected": rejected}).pairs
    assert {pair.text_1, pair.text_2} == {chosen, rejected} and pair.context == "Q"


def test_columns_of_pairs_that_are_not_used_are_named(tmp_path: Path) -> None:
    row = {"prompt_id": "p1", "prompt": "2 + 2?", "chosen": "4", "rejected": "5", "score_chosen": 9}
    loaded = read(tmp_path, row)
    assert loaded.unread.endswith("mine.json: columns `prompt_id`, `score_chosen` are not used")
    assert loaded.pairs[0].id == "row-1" and load_pairs("ours").unread == ""
    assert preferences(loaded.origin).metadata["unread"] == loaded.unread
