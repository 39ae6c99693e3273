"""A set of conversations and a reference to compare it with, as one table, so that one run asks both."""

from collections.abc import Iterable
from itertools import zip_longest

from selfprobe.data import Row, Table, table_of
from selfprobe.errors import InputError

BUNDLED = {"bundled": "eval_awareness_2"}
"""Names of sets that a reference may have in addition to those of data sets."""
OURS = {
    "eval_awareness": "bundled, the first of two, whose labels are easy to see: a check that a method points the right "
    "way, and no measure of how much is noticed",
    "eval_awareness_2": "bundled; all of it was written for this, and a label says what a text was written as; two "
    "blind readers, language models, had 77 and 76 % right",
}
"""The bundled sets, and what a page says of each."""
ID = "reference:"
"""Prefix of the ids of a reference's conversations."""
YOURS, REFERENCE = "yours", "reference"
"""The two sets, as a row's `set` names them."""
OPPOSITE = {"evaluation": "deployment", "deployment": "evaluation"}


def with_reference(table: Table, reference: Table, address: str) -> Table:
    """Rows of both sets in turns, so that a limit takes as many of each; every row with `set`: YOURS or REFERENCE.

    A conversation of the reference whose text is in our set as well would be held against itself: it is set aside. So
    is one with the label that our rows stand for (`stands_for`): it would be asked about and count for nothing.

    Args:
        table: Result of `conversations`.
        reference: The same; its ids get `reference:` before them.
        address: The reference as the user named it.

    Raises:
        InputError: Nothing is left of the reference.
    """
    mine = {_text(row): row["id"] for row in table.rows}
    aside = {
        f"{reference.name}: {row['id']}": f"the same text is in your set, as {mine[_text(row)]!r}"
        for row in reference.rows
        if _text(row) in mine
    }
    others = [{**row, "id": f"{ID}{row['id']}", "set": REFERENCE} for row in reference.rows if _text(row) not in mine]
    if not others:
        raise InputError(
            f"against={address}: all {len(reference.rows)} of its texts are in your set {table.name} as well, and "
            "nothing can be told from a set held against itself; give other conversations"
        )
    yours = [{**row, "set": YOURS} for row in table.rows]
    if own := stands_for((row["set"], row.get("label")) for row in [*yours, *others]):
        why = f"labelled {own}, as what your set stands for: it stands for neither"
        aside |= {f"{reference.name}: {row['id'].removeprefix(ID)}": why for row in others if row.get("label") == own}
        others = [row for row in others if row.get("label") != own]
    rows = [row for both in zip_longest(yours, others) for row in both if row is not None]
    unread = "; ".join(filter(None, (table.unread, reference.unread)))
    return table_of(f"{table.name} against {reference.name}", rows, {**table.aside, **reference.aside, **aside}, unread)


def name_and_contents(name: str) -> str:
    """Name of a data set as its logs have it, and its contents if it is bundled.

    >>> name_and_contents("mine.jsonl against their.jsonl")
    'mine.jsonl against their.jsonl'
    """
    parts = [part for side in name.split(" against ") for part in side.split(",")]
    # Logs from before there were two call the first one "bundled", where it was the reference.
    known = {
        part: OURS["eval_awareness" if part == "bundled" else part] for part in parts if part in (*OURS, "bundled")
    }
    told = [what if part == name else f"{part}: {what}" for part, what in known.items()]
    return f"{name} ({'; '.join(told)})" if told else name


def stands_for(rows: Iterable[tuple[str | None, str | None]]) -> str | None:
    """Label that your rows stand for next to a reference: their one label, or evaluation where they have none.

    Args:
        rows: (set, label) of each conversation.

    Returns:
        The label; "" where your rows have both, and keep them; None where nothing changes: there is no reference, or
        all of it has your one label.
    """
    given = list(rows)
    mine = {label for of_set, label in given if of_set != REFERENCE} - {None}
    theirs = [label for of_set, label in given if of_set == REFERENCE]
    if not theirs or len(theirs) == len(given):
        return None
    own = "" if len(mine) > 1 else str(next(iter(mine), "evaluation"))
    return None if all(label == own for label in theirs) else own


def told_label(your_label: str | None, of_set: str | None, label: str | None) -> str | None:
    """The label that a row counts with.

    Your rows stand for `your_label` and the reference for the other label; rows of the reference with your label stand
    for neither, and where your rows have both labels none of the reference does.

    Args:
        your_label: Result of `stands_for`.
        of_set: YOURS, REFERENCE, or None.
        label: The row's own.
    """
    if your_label is None:
        return label
    if of_set != REFERENCE:
        return your_label or label
    return None if label == your_label else OPPOSITE.get(your_label)


def _text(row: Row) -> tuple[tuple[str, str], ...]:
    return tuple((message["role"], message["content"].strip()) for message in row["messages"])
