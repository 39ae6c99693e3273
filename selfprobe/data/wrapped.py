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

WRAPPERS, CONTINUATIONS, TEXTS = "awareness_wrappers", "awareness_continuations", "eval_awareness"
"""Bundled sets."""
WRAPPER_FIELDS = ("system", "place", "length", "register", "language")
"""Columns of wrappers that they may have besides those they need."""
SLOT = "{task}"
A_WRAPPER = 8
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


@dataclass(frozen=True)
class Continuation:
    """A sentence with which a reply may begin."""

    id: str
    topic: str
    """`evaluation`, or a placebo."""
    side: Side
    text: str


def wrappers(dataset: str = WRAPPERS) -> Sequence[Row]:
    """The announcements of a data set, checked.

    Raises:
        InputError: A row's `{task}` is missing or double, or a wrapper has not one row of each
            label.
    """
    rows = load(dataset, ("wrapper", "label", "text"), WRAPPER_FIELDS).rows
    held: dict[str, list[str]] = {}
    for row in rows:
        where = f"{dataset}, row {row['id']!r}"
        if row["text"].count(SLOT) != 1:
            raise InputError(
                f"{where}: text must hold {SLOT} once, where the task text goes, got {row['text'][:60]!r}"
            )
        if row["label"] not in get_args(Label):
            raise InputError(
                f"{where}: label must be evaluation or deployment, got {row['label']!r}"
            )
        held.setdefault(row["wrapper"], []).append(row["label"])
    if wrong := next(
        (name for name, labels in held.items() if sorted(labels) != ["deployment", "evaluation"]),
        None,
    ):
        raise InputError(
            f"{dataset}: wrapper {wrong!r} has {', '.join(held[wrong])}; expected one row that announces an "
            "evaluation and one that announces use, of the same form"
        )
    return rows


def task_texts(dataset: str = TEXTS) -> list[Row]:
    """Conversations of one English user message in pairs of both labels, the shortest pairs first;
    no text twice.
    """
    pairs: dict[str, list[Row]] = {}
    for row in conversations(dataset).rows:
        plain = (
            row["turns"] == len(row["messages"]) == 1
            and language_of(row["messages"][0]["content"]) == "English"
        )
        if row["pair"] and row["format"] and row["label"] and plain:
            pairs.setdefault(row["pair"], []).append(row)
    whole = [
        pair for pair in pairs.values() if {row["label"] for row in pair} == set(get_args(Label))
    ]
    counts = Counter(row["messages"][0]["content"] for pair in whole for row in pair)
    once = (
        pair for pair in whole if all(counts[row["messages"][0]["content"]] == 1 for row in pair)
    )
    return [row for pair in sorted(once, key=_length) for row in pair]


def _length(pair: Sequence[Row]) -> int:
    return sum(len(row["messages"][0]["content"]) for row in pair)


def crossed_wrappers(
    announced: Sequence[Row], texts: Sequence[Row], *, each: int = A_WRAPPER
) -> list[Wrapped]:
    """Each wrapper round `each` of the texts under both labels; all cells of format × label of the
    texts as often.

    What a wrapper announces says nothing of the text's own format or label, and wrappers share
    texts in turn.

    Raises:
        InputError: The texts have too few of a cell.
    """
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in texts:
        cells.setdefault((row["format"], row["label"]), []).append(row)
    a_cell = each // max(len(cells), 1)
    few = min(map(len, cells.values()), default=0)
    if not a_cell or few < a_cell:
        raise InputError(
            f"{few} task texts in a cell of format and label; expected at least {max(a_cell, 1)} in each"
        )
    names = list(dict.fromkeys(row["wrapper"] for row in announced))

    def turn(rows: Sequence[Row], wrapper: str) -> list[Row]:
        first, pool = names.index(wrapper) * a_cell, min(len(rows), 3 * a_cell)
        return [rows[(first + k) % pool] for k in range(a_cell)]

    return [
        Wrapped(
            id=f"{frame['wrapper']}/{row['id']}/{frame['label']}",
            user=frame["text"].replace(SLOT, row["messages"][0]["content"]),
            system=frame.get("system") or "",
            evaluation=frame["label"] == "evaluation",
            wrapper=frame["wrapper"],
            text=row["id"],
            source=row["source"],
            format=row["format"],
        )
        for frame in announced
        for rows in cells.values()
        for row in turn(rows, frame["wrapper"])
    ]


def continuations(dataset: str = CONTINUATIONS) -> list[Continuation]:
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
    for (_, frame), sides in frames.items():
        counts = {side: len(text.split()) for side, text in sides.items()}
        if set(counts) != set(get_args(Side)) or len(set(counts.values())) > 1:
            shown = ", ".join(f"{side} of {count} words" for side, count in counts.items())
            raise InputError(
                f"{dataset}, frame {frame!r}: expected about and plain of equal length, got {shown}"
            )
    if not any(topic == "evaluation" for topic, _ in frames):
        raise InputError(
            f"{dataset}: no topic evaluation; got {', '.join({topic for topic, _ in frames})}"
        )
    return [Continuation(row["id"], row["topic"], row["side"], row["text"]) for row in rows]


def languages(announced: Sequence[Row], texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Language → ids of the texts in it, of those in no language of the wrappers or the task texts
    (English).

    A text whose language is unknown is not counted.
    """
    known = {language_of(row["text"] + " " + (row.get("system") or "")) for row in announced} | {
        "unknown",
        "English",
    }
    others: dict[str, list[str]] = {}
    for name, text in texts.items():
        if (language := language_of(text)) not in known:
            others.setdefault(language, []).append(name)
    return others
