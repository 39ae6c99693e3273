"""Task texts in announcements of an evaluation and of use (wrappers), and the continuations of the
monitor.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from selfprobe.data import Row, load
from selfprobe.data.conversations import Label, conversations
from selfprobe.errors import InputError
from selfprobe.text.kinds import language_of

DEFAULT_WRAPPERS = "awareness_wrappers"
"""Bundled set of announcements."""

DEFAULT_CONTINUATIONS = "awareness_continuations"
"""Bundled set of sentences with which a reply may begin."""

DEFAULT_TEXTS = "eval_awareness"
"""Bundled set of task texts."""

OPTIONAL_WRAPPER_COLUMNS = ("system", "place", "length", "register", "language")
"""Columns that wrappers may have besides those they need."""

SLOT = "{task}"
"""Place of the task text in a wrapper."""

TEXTS_A_WRAPPER = 8
"""Task texts of each wrapper, two of each cell of format × label."""

Side = Literal["about", "plain"]


@dataclass(frozen=True)
class Wrapped:
    """A task text in an announcement, as one model turn reads it."""

    id: str
    user: str
    system: str
    evaluation: bool
    """True if an evaluation is announced."""
    wrapper: str
    text: str
    """Id of the task text."""
    source: str
    """Source of the task text."""
    format: str

    @property
    def whole_text(self) -> str:
        """System prompt and user's message."""
        return f"{self.system}\n\n{self.user}".strip()


@dataclass(frozen=True)
class Continuation:
    """A sentence with which a reply may begin."""

    id: str
    topic: str
    """`evaluation`, or a placebo."""
    side: Side
    text: str


def wrappers(dataset: str = DEFAULT_WRAPPERS) -> Sequence[Row]:
    """The announcements of a data set, checked.

    Raises:
        InputError: A row's `{task}` is missing or double, or a wrapper has not one row of each
            label.
    """
    rows = load(dataset, ("wrapper", "label", "text"), OPTIONAL_WRAPPER_COLUMNS).rows
    labels_of_wrapper: dict[str, list[str]] = {}
    for row in rows:
        row_place = f"{dataset}, row {row['id']!r}"
        if row["text"].count(SLOT) != 1:
            raise InputError(
                f"{row_place}: text must hold {SLOT} once, where the task text goes, "
                f"got {row['text'][:60]!r}"
            )
        if row["label"] not in get_args(Label):
            raise InputError(
                f"{row_place}: label must be evaluation or deployment, got {row['label']!r}"
            )
        labels_of_wrapper.setdefault(row["wrapper"], []).append(row["label"])
    for wrapper, labels in labels_of_wrapper.items():
        if sorted(labels) != ["deployment", "evaluation"]:
            raise InputError(
                f"{dataset}: wrapper {wrapper!r} has {', '.join(labels)}; expected one row that "
                "announces an evaluation and one that announces use, of the same form"
            )
    return rows


def task_texts(dataset: str = DEFAULT_TEXTS) -> list[Row]:
    """Conversations of one English user message in pairs of both labels, the shortest pairs first;
    no text twice.
    """
    pairs: dict[str, list[Row]] = {}
    for row in conversations(dataset).rows:
        if row["pair"] and row["format"] and row["label"] and _is_one_english_message(row):
            pairs.setdefault(row["pair"], []).append(row)
    both_labels = set(get_args(Label))
    whole_pairs = []
    for pair in pairs.values():
        labels = {row["label"] for row in pair}
        if labels == both_labels:
            whole_pairs.append(pair)
    text_counts = Counter(_first_content(row) for pair in whole_pairs for row in pair)
    unique_pairs = []
    for pair in whole_pairs:
        if all(text_counts[_first_content(row)] == 1 for row in pair):
            unique_pairs.append(pair)
    unique_pairs.sort(key=_pair_length)
    return [row for pair in unique_pairs for row in pair]


def _pair_length(pair: Sequence[Row]) -> int:
    return sum(len(_first_content(row)) for row in pair)


def _first_content(row: Row) -> str:
    return str(row["messages"][0]["content"])


def _is_one_english_message(row: Row) -> bool:
    if row["turns"] != 1 or len(row["messages"]) != 1:
        return False
    return language_of(_first_content(row)) == "English"


def crossed_wrappers(
    announcements: Sequence[Row], texts: Sequence[Row], *, texts_a_wrapper: int = TEXTS_A_WRAPPER
) -> list[Wrapped]:
    """Each wrapper round so many of the texts under both labels; all cells of format × label of the
    texts as often.

    What a wrapper announces says nothing of the text's own format or label, and wrappers share
    texts in turn.

    Raises:
        InputError: The texts have too few of a cell.
    """
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in texts:
        cells.setdefault((row["format"], row["label"]), []).append(row)
    texts_a_cell = texts_a_wrapper // max(len(cells), 1)
    smallest_cell = min(map(len, cells.values()), default=0)
    if not texts_a_cell or smallest_cell < texts_a_cell:
        raise InputError(
            f"{smallest_cell} task texts in a cell of format and label; expected at least "
            f"{max(texts_a_cell, 1)} in each"
        )
    wrapper_names = list(dict.fromkeys(row["wrapper"] for row in announcements))

    def texts_in_turn(cell: Sequence[Row], wrapper: str) -> list[Row]:
        first = wrapper_names.index(wrapper) * texts_a_cell
        pool_size = min(len(cell), 3 * texts_a_cell)
        return [cell[(first + offset) % pool_size] for offset in range(texts_a_cell)]

    wrapped_texts = []
    for announcement in announcements:
        for cell in cells.values():
            for row in texts_in_turn(cell, announcement["wrapper"]):
                wrapped_texts.append(_wrapped(announcement, row))
    return wrapped_texts


def _wrapped(announcement: Row, row: Row) -> Wrapped:
    return Wrapped(
        id=f"{announcement['wrapper']}/{row['id']}/{announcement['label']}",
        user=announcement["text"].replace(SLOT, _first_content(row)),
        system=announcement.get("system") or "",
        evaluation=announcement["label"] == "evaluation",
        wrapper=announcement["wrapper"],
        text=row["id"],
        source=row["source"],
        format=row["format"],
    )


def continuations(dataset: str = DEFAULT_CONTINUATIONS) -> list[Continuation]:
    """The sentences of the monitor, checked.

    Raises:
        InputError: A frame has not both sides with as many words, or no topic is `evaluation`.
    """
    rows = load(dataset, ("topic", "frame", "side", "text")).rows
    frames: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        if row["side"] not in get_args(Side):
            raise InputError(
                f"{dataset}, row {row['id']!r}: side must be about or plain, got {row['side']!r}"
            )
        frames.setdefault((row["topic"], row["frame"]), {})[row["side"]] = row["text"]
    for (_, frame), text_by_side in frames.items():
        word_counts = {side: len(text.split()) for side, text in text_by_side.items()}
        if set(word_counts) != set(get_args(Side)) or len(set(word_counts.values())) > 1:
            sides = ", ".join(f"{side} of {count} words" for side, count in word_counts.items())
            raise InputError(
                f"{dataset}, frame {frame!r}: expected about and plain of equal length, got {sides}"
            )
    topics = {topic for topic, _ in frames}
    if "evaluation" not in topics:
        raise InputError(f"{dataset}: no topic evaluation; got {', '.join(topics)}")
    return [Continuation(row["id"], row["topic"], row["side"], row["text"]) for row in rows]


def languages(announcements: Sequence[Row], texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Language → ids of the texts in it, of those in no language of the wrappers or the task texts
    (English).

    A text whose language is unknown is not counted.
    """
    expected_languages = {"unknown", "English"}
    for announcement in announcements:
        announcement_text = announcement["text"] + " " + (announcement.get("system") or "")
        expected_languages.add(language_of(announcement_text))
    ids_of_language: dict[str, list[str]] = {}
    for text_id, text in texts.items():
        language = language_of(text)
        if language not in expected_languages:
            ids_of_language.setdefault(language, []).append(text_id)
    return ids_of_language
