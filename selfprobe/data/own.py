"""A user's own pairs: rows with two texts and who is better, or with a chosen and a rejected text.

    {"id": "a", "question": "2 + 2?", "text_1": "4", "text_2": "5", "label": 1}      # id, label, group, subset: if any
    {"prompt": "2 + 2?", "chosen": "4", "rejected": "5"}                            # texts, or lists of chat messages
    {"chosen": "Human: 2 + 2?\\n\\nAssistant: 4", "rejected": "Human: 2 + 2?\\n\\nAssistant: 5"}   # as in HH-RLHF

Rows come from a .jsonl, .json, .csv, .tsv or .parquet file, here or at any fsspec address, or from
the Hugging Face hub.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from selfprobe.data import ALIASES, hugging_face, id_text, refuse_unnameable, unused_columns
from selfprobe.data.files import file_rows, json_rows, parquet_rows, with_columns
from selfprobe.data.pairs import Label, Pair, check_criterion, in_drawn_order
from selfprobe.data.stored import RowStore
from selfprobe.errors import InputError
from selfprobe.errors.arguments import locate

Row = dict[str, Any]
FORMATS = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
TEXTS = ("text_1", "text_2")
CHOICES = ("chosen", "rejected")
COLUMNS = (*TEXTS, *CHOICES, "id", "question", *ALIASES["question"], "label", "group", "subset")
"""Columns of a user's pairs, whose names may have capitals."""
DIALOGUE_TURN = re.compile(r"(?:\A|\n\n)(Human|Assistant):")
"""Beginning of a turn in a dialogue that is one text, as HH-RLHF has them."""
CHAT = re.compile(r"""\s*\[\s*\{\s*['"](role|content|from)['"]\s*:""")
"""Beginning of a list of messages that somebody saved as the text of a cell."""


@dataclass(frozen=True)
class Words:
    """The question about pairs of the general kind, where it differs from "the more helpful
    response".
    """

    question: str = ""
    """Comparative that is asked for: "more honest", "better"."""
    item: str = ""
    """Noun for the texts: "answer"."""

    def __post_init__(self) -> None:
        if self.question:
            check_criterion(self.question)

    def asked_of(self, pair: Pair) -> Pair:
        """`pair` under this question; a pair of another kind keeps the paper's."""
        return (
            replace(pair, criterion=self.question, item=self.item)
            if pair.kind == "general"
            else pair
        )


def is_user_place(place: str) -> bool:
    """True if `rows_at` reads `place`."""
    return place.startswith("hf:") or place.lower().endswith(FORMATS)


def name_at(place: str) -> str:
    """Name of a user's own set: its file, or its name on the hub."""
    return (
        re.split("[@?]", place)[0].rsplit("/", 1)[-1]
        if place.startswith("hf:")
        else Path(place).stem
    )


def rows_at(place: str) -> Iterator[Row]:
    """Rows of `hf:owner/name@REVISION` or of a file of one of `FORMATS`; errors name the file and
    the line.
    """
    if place.startswith("hf:"):
        return (row for _, row in hugging_face(place))
    return rows_in_file(locate(place))


def rows_in_file(path: str) -> Iterator[Row]:
    """Rows of a file of one of `FORMATS`; errors name the file and the line."""
    ending = Path(path.lower()).suffix
    if ending == ".parquet":
        return parquet_rows(path)
    if ending == ".json":
        return json_rows(
            path, expected="rows as JSON objects, one a line (.jsonl) or in one list (.json)"
        )
    if ending in FORMATS:
        return (row for _, row in file_rows(path))
    raise InputError(f"{path}: expected a {', '.join(FORMATS)} file")


@dataclass(frozen=True)
class UserRows:
    """Rows of a user's own pairs, with the names of columns as they are in `COLUMNS`."""

    rows: Sequence[Row]
    """The rows; those of a large file stay on disk."""
    unread: str
    """Sentence that names the columns that are not used; "" if there are none."""


def stored_rows(place: str) -> UserRows:
    """The rows of `rows_at`."""
    store, seen_columns = RowStore(), dict[str, None]()
    for row in rows_at(place):
        renamed = with_columns(row, COLUMNS)
        if not renamed.keys() <= seen_columns.keys():
            seen_columns |= dict.fromkeys(renamed)
        store.append(renamed)
    unused = unused_columns(seen_columns, {*COLUMNS, "canary"})
    return UserRows(store.rows(), "".join(f"{place}: {line}" for line in unused))


def user_pairs(rows: Sequence[Row], origin: str) -> Iterator[Pair | None]:
    """Pairs of a user's rows, in their order; None for a tie. `origin` is named in errors.

    Label 1 or 2 says which text is better, "tie" (or 0, where 2 occurs) that none is. A chosen and
    a rejected text come in an order that the row's id decides.

    Raises:
        ValueError: A row lacks a column, a text is none, or the labels leave open which text they
            mean.
    """
    _check_labels(rows, origin)
    for number, row in enumerate(rows, start=1):
        name = id_text(row.get("id"), f"{origin}, row {number}") or f"row-{number}"
        refuse_unnameable(name, origin)
        group, subset = (
            "" if _empty(row.get(column)) else str(row[column]) for column in ("group", "subset")
        )
        if _has(row, CHOICES) and not _has(row, TEXTS):
            text_1, text_2, context = _chosen(row, f"{origin}, row {number}")
            yield in_drawn_order(
                Pair(name, text_1, text_2, 1, context=context, group=group, subset=subset)
            )
            continue
        _check_columns(row, number, origin)
        if (label := row.get("label")) is not None and _plain(label) in ("0", "tie"):
            yield None
        else:
            label, context = _label(label, name), _question(row)
            yield Pair(
                name,
                row["text_1"],
                row["text_2"],
                label,
                context=context,
                group=group,
                subset=subset,
            )


def _empty(cell: Any) -> bool:
    """True for an empty cell: null, no text in a CSV file, or NaN."""
    return cell is None or cell == "" or cell != cell


def _has(row: Row, columns: tuple[str, ...]) -> bool:
    return not any(_empty(row.get(column)) for column in columns)


def _question(row: Row) -> Any:
    """The text that both texts answer, from the first column of the row that holds something."""
    found = (row.get(column) for column in ("question", *ALIASES["question"]))
    return next((cell for cell in found if not _empty(cell)), "")


def _check_columns(row: Row, number: int, origin: str) -> None:
    missing = [column for column in TEXTS if _empty(row.get(column))]
    if not missing and not {"question", *ALIASES["question"]} & set(row):
        missing = ["question"]
    if missing:
        raise ValueError(
            f"{origin}, row {number}: no {', '.join(missing)}; expected id, question, text_1, text_2, label, group "
            "(id, label and group if you have them), or prompt, chosen, rejected; got "
            f"{', '.join(map(str, row)) or 'nothing'}"
        )


def _plain(label: Any) -> str:
    """A label as text: 1, 1.0 and " 1 " are "1"; true and false are not."""
    text = str(label).strip().lower()
    return text.removesuffix(".0")


def _label(label: Any, name: str) -> Label | None:
    if _empty(label):
        return None
    if (text := _plain(label)) in ("1", "2"):
        return 1 if text == "1" else 2
    raise ValueError(
        f"row {name!r}: label must be 1, 2, 'tie' or left out, got {label!r:.80}: write 1 where text_1 is the better "
        "one and 2 where text_2 is"
    )


def _check_labels(rows: Sequence[Row], origin: str) -> None:
    """Refuse 0 and 1, which may mean tie and first, first and second, or second and first."""
    found = {_plain(row["label"]) for row in rows if not _empty(row.get("label"))}
    if {"0", "1"} <= found and "2" not in found:
        raise ValueError(
            f"{origin}: the labels are 0 and 1, which leaves open whether 0 is text_1, text_2 or a tie: write 1 where "
            "text_1 is the better one, 2 where text_2 is, and 'tie' where none is"
        )


def _chosen(row: Row, place: str) -> tuple[Any, Any, Any]:
    """The chosen text, the rejected one, and what both answer: the turns before them, or the prompt
    if it holds more.

    Texts that are none are for `Pair` to refuse. ValueError where the two answer different
    conversations.
    """
    dialogues = [_dialogue(row[column]) for column in CHOICES]
    if all(dialogues):
        return _last_turns(dialogues[0], dialogues[1], _question(row), place)
    chats = [_chat(row[column], place) for column in CHOICES]
    texts = [
        chat[-1]["content"] if chat else row[column]
        for chat, column in zip(chats, CHOICES, strict=True)
    ]
    before = [chat[:-1] for chat in chats if len(chat) > 1]
    if len({_told(each) for each in before}) > 1:
        raise ValueError(
            f"{place}: chosen and rejected answer different conversations; expected the same turns before"
        )
    said, prompt = before[0] if before else [], _question(row)
    asked = _told(chat) if (chat := _chat(prompt, place)) else prompt
    return texts[0], texts[1], _told(said) if len(said) > 1 else asked or _told(said)


def _chat(cell: Any, place: str) -> list[dict[str, Any]]:
    """The messages of a cell that is a chat; none where it is a text, or nothing that can be read."""
    if isinstance(cell, str) and CHAT.match(cell):
        raise ValueError(
            f"{place}: messages written as a text ({cell[:40]} …): give them as lists, in .jsonl or .parquet"
        )
    if not isinstance(cell, list) or not cell:
        return []
    if not all(isinstance(m, dict) and isinstance(m.get("content"), str) for m in cell):
        raise ValueError(
            f"{place}: expected a text or a list of messages with role and content, got {str(cell)[:80]}"
        )
    return cell


def _dialogue(cell: Any) -> list[dict[str, Any]]:
    """The messages of a text that is a dialogue of a human and an assistant; none where it is
    something else.
    """
    text = cell.strip() if isinstance(cell, str) else ""
    turns = list(DIALOGUE_TURN.finditer(text))
    if len(turns) < 2 or turns[0].start() or turns[0][1] != "Human":
        return []
    ends = [*(turn.start() for turn in turns[1:]), len(text)]
    return [
        {"role": turn[1], "content": text[turn.end() : end].strip()}
        for turn, end in zip(turns, ends, strict=True)
    ]


def _last_turns(
    chosen: list[dict[str, Any]], rejected: list[dict[str, Any]], prompt: Any, place: str
) -> tuple[str, str, Any]:
    """What two dialogues add to their common beginning, and that beginning; or the prompt, if it is
    there and one turn.

    Raises:
        ValueError: They begin differently, or one of them is the beginning of the other.
    """
    pairs = zip(chosen, rejected, strict=False)
    common = next(
        (number for number, (one, other) in enumerate(pairs) if one != other),
        min(len(chosen), len(rejected)),
    )
    rests = chosen[common:], rejected[common:]
    if not common or not all(rests):
        fault = (
            "one is the beginning of the other" if common else "they begin with different questions"
        )
        raise ValueError(
            f"{place}: chosen and rejected are dialogues of which {fault}; expected the same turns, and two last ones"
        )
    before = chosen[:common]
    context = _told(before) if len(before) > 1 or _empty(prompt) else prompt
    return _told(rests[0]), _told(rests[1]), context


def _told(messages: list[dict[str, Any]]) -> str:
    """Text of one message; several messages with their roles."""
    if len(messages) < 2:
        return "".join(m["content"] for m in messages)
    return "\n\n".join(f"{str(m.get('role', '')).capitalize()}: {m['content']}" for m in messages)
