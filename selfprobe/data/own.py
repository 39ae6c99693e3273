"""A user's own pairs: rows with two texts and who is better, or with a chosen and a rejected text.

    # id, label, group, subset: if any
    {"id": "a", "question": "2 + 2?", "text_1": "4", "text_2": "5", "label": 1}
    # texts, or lists of chat messages
    {"prompt": "2 + 2?", "chosen": "4", "rejected": "5"}
    # as in HH-RLHF
    {"chosen": "Human: 2 + 2?\\n\\nAssistant: 4", "rejected": "Human: 2 + 2?\\n\\nAssistant: 5"}

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
    if not place.startswith("hf:"):
        return Path(place).stem
    repository = re.split("[@?]", place)[0]
    return repository.rsplit("/", 1)[-1]


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
    store = RowStore()
    seen_columns: dict[str, None] = {}
    for raw_row in rows_at(place):
        row = with_columns(raw_row, COLUMNS)
        if not row.keys() <= seen_columns.keys():
            seen_columns |= dict.fromkeys(row)
        store.append(row)
    unused_lines = unused_columns(seen_columns, {*COLUMNS, "canary"})
    return UserRows(store.rows(), "".join(f"{place}: {line}" for line in unused_lines))


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
        row_place = f"{origin}, row {number}"
        pair_id = id_text(row.get("id"), row_place) or f"row-{number}"
        refuse_unnameable(pair_id, origin)
        group = "" if _is_empty(row.get("group")) else str(row["group"])
        subset = "" if _is_empty(row.get("subset")) else str(row["subset"])
        if _has_all(row, CHOICES) and not _has_all(row, TEXTS):
            choice = _choice(row, row_place)
            pair = Pair(
                pair_id,
                choice.chosen,
                choice.rejected,
                1,
                context=choice.context,
                group=group,
                subset=subset,
            )
            yield in_drawn_order(pair)
            continue

        _check_columns(row, row_place)
        label = row.get("label")
        if label is not None and _label_text(label) in ("0", "tie"):
            yield None
            continue
        yield Pair(
            pair_id,
            row["text_1"],
            row["text_2"],
            _label(label, pair_id),
            context=_question(row),
            group=group,
            subset=subset,
        )


def _is_empty(cell: Any) -> bool:
    """True for an empty cell: null, no text in a CSV file, or NaN."""
    return cell is None or cell == "" or cell != cell


def _has_all(row: Row, columns: tuple[str, ...]) -> bool:
    return not any(_is_empty(row.get(column)) for column in columns)


def _question(row: Row) -> Any:
    """The text that both texts answer, from the first column of the row that holds something."""
    for column in ("question", *ALIASES["question"]):
        if not _is_empty(row.get(column)):
            return row[column]
    return ""


def _check_columns(row: Row, row_place: str) -> None:
    missing_columns = [column for column in TEXTS if _is_empty(row.get(column))]
    if not missing_columns and not {"question", *ALIASES["question"]} & set(row):
        missing_columns = ["question"]
    if missing_columns:
        raise ValueError(
            f"{row_place}: no {', '.join(missing_columns)}; expected id, question, text_1, text_2, "
            "label, group (id, label and group if you have them), or prompt, chosen, rejected; got "
            f"{', '.join(map(str, row)) or 'nothing'}"
        )


def _label_text(label: Any) -> str:
    """A label as text: 1, 1.0 and " 1 " are "1"; true and false are not."""
    return str(label).strip().lower().removesuffix(".0")


def _label(label: Any, pair_id: str) -> Label | None:
    if _is_empty(label):
        return None
    match _label_text(label):
        case "1":
            return 1
        case "2":
            return 2
    raise ValueError(
        f"row {pair_id!r}: label must be 1, 2, 'tie' or left out, got {label!r:.80}: write 1 where "
        "text_1 is the better one and 2 where text_2 is"
    )


def _check_labels(rows: Sequence[Row], origin: str) -> None:
    """Refuse 0 and 1, which may mean tie and first, first and second, or second and first."""
    labels = {_label_text(row["label"]) for row in rows if not _is_empty(row.get("label"))}
    if {"0", "1"} <= labels and "2" not in labels:
        raise ValueError(
            f"{origin}: the labels are 0 and 1, which leaves open whether 0 is text_1, text_2 or a "
            "tie: write 1 where text_1 is the better one, 2 where text_2 is, and 'tie' where none "
            "is"
        )


@dataclass(frozen=True)
class _Choice:
    """A chosen and a rejected text; what is no text is for `Pair` to refuse."""

    chosen: Any
    rejected: Any
    context: Any
    """What both answer: the turns before them, or the prompt if it holds more."""


Chat = list[dict[str, Any]]
"""Messages with role and content."""


def _choice(row: Row, row_place: str) -> _Choice:
    """The texts of a row with a chosen and a rejected one.

    Raises:
        ValueError: They answer different conversations.
    """
    prompt = _question(row)
    chosen_dialogue, rejected_dialogue = _dialogue(row["chosen"]), _dialogue(row["rejected"])
    if chosen_dialogue and rejected_dialogue:
        return _dialogue_choice(chosen_dialogue, rejected_dialogue, prompt, row_place)

    chosen_chat = _chat(row["chosen"], row_place)
    rejected_chat = _chat(row["rejected"], row_place)
    beginnings = [chat[:-1] for chat in (chosen_chat, rejected_chat) if len(chat) > 1]
    beginning_texts = {_chat_text(beginning) for beginning in beginnings}
    if len(beginning_texts) > 1:
        raise ValueError(
            f"{row_place}: chosen and rejected answer different conversations; "
            "expected the same turns before"
        )
    beginning = beginnings[0] if beginnings else []
    prompt_chat = _chat(prompt, row_place)
    prompt_text = _chat_text(prompt_chat) if prompt_chat else prompt
    if len(beginning) > 1 or not prompt_text:
        context = _chat_text(beginning)
    else:
        context = prompt_text
    chosen_text = chosen_chat[-1]["content"] if chosen_chat else row["chosen"]
    rejected_text = rejected_chat[-1]["content"] if rejected_chat else row["rejected"]
    return _Choice(chosen_text, rejected_text, context)


def _chat(cell: Any, row_place: str) -> Chat:
    """The messages of a cell that is a chat; none where it is a text, or cannot be read."""
    if isinstance(cell, str) and CHAT.match(cell):
        raise ValueError(
            f"{row_place}: messages written as a text ({cell[:40]} …): give them as lists, "
            "in .jsonl or .parquet"
        )
    if not isinstance(cell, list) or not cell:
        return []
    for message in cell:
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            raise ValueError(
                f"{row_place}: expected a text or a list of messages with role and content, "
                f"got {str(cell)[:80]}"
            )
    return cell


def _dialogue(cell: Any) -> Chat:
    """The messages of a text that is a dialogue of a human and an assistant; none where it is
    something else.
    """
    text = cell.strip() if isinstance(cell, str) else ""
    turns = list(DIALOGUE_TURN.finditer(text))
    if len(turns) < 2 or turns[0].start() or turns[0][1] != "Human":
        return []
    turn_ends = [turn.start() for turn in turns[1:]]
    turn_ends.append(len(text))
    return [
        {"role": turn[1], "content": text[turn.end() : turn_end].strip()}
        for turn, turn_end in zip(turns, turn_ends, strict=True)
    ]


def _dialogue_choice(chosen: Chat, rejected: Chat, prompt: Any, row_place: str) -> _Choice:
    """What two dialogues add to their common beginning, and that beginning; or the prompt, if it is
    there and one turn.

    Raises:
        ValueError: They begin differently, or one of them is the beginning of the other.
    """
    common_count = 0
    for chosen_turn, rejected_turn in zip(chosen, rejected, strict=False):
        if chosen_turn != rejected_turn:
            break
        common_count += 1
    if not common_count:
        fault = "they begin with different questions"
    elif common_count == min(len(chosen), len(rejected)):
        fault = "one is the beginning of the other"
    else:
        fault = ""
    if fault:
        raise ValueError(
            f"{row_place}: chosen and rejected are dialogues of which {fault}; "
            "expected the same turns, and two last ones"
        )
    beginning = chosen[:common_count]
    return _Choice(
        _chat_text(chosen[common_count:]),
        _chat_text(rejected[common_count:]),
        _chat_text(beginning) if len(beginning) > 1 or _is_empty(prompt) else prompt,
    )


def _chat_text(messages: Chat) -> str:
    """Text of one message; several messages with their roles."""
    if len(messages) < 2:
        return "".join(message["content"] for message in messages)
    turns = []
    for message in messages:
        speaker = str(message.get("role", "")).capitalize()
        turns.append(f"{speaker}: {message['content']}")
    return "\n\n".join(turns)
