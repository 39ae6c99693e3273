"""A set of conversations and a reference to hold it against, as one table, so that one run asks both."""

from itertools import zip_longest

from selfprobe.data import Row, Table, table_of
from selfprobe.errors import InputError

BUNDLED = {"bundled": "eval_awareness"}
"""What a reference may be called beside the names of data sets."""
ID = "reference:"
"""How the ids of a reference's conversations begin."""


def joined(ours: Table, reference: Table, given: str) -> Table:
    """Both in turns, so that a limit takes as many of each; every row with `set`: "yours" or "reference".

    A conversation of the reference whose text is in our set as well would be held against itself: it is set aside.

    Args:
        ours: From `conversations`.
        reference: The same; its ids get `reference:` before them.
        given: The reference as the user named it.

    Raises:
        InputError: Nothing is left of the reference.
    """
    mine = {_text(row): row["id"] for row in ours.rows}
    aside = {
        f"{reference.name}: {row['id']}": f"the same text is in your set, as {mine[_text(row)]!r}"
        for row in reference.rows
        if _text(row) in mine
    }
    others = [{**row, "id": f"{ID}{row['id']}", "set": "reference"} for row in reference.rows if _text(row) not in mine]
    if not others:
        raise InputError(
            f"against={given}: all {len(reference.rows)} of its texts are in your set {ours.name} as well, and nothing "
            "can be told from a set held against itself; give other conversations"
        )
    yours = [{**row, "set": "yours"} for row in ours.rows]
    rows = [row for both in zip_longest(yours, others) for row in both if row is not None]
    return table_of(f"{ours.name} against {given}", rows, {**ours.aside, **reference.aside, **aside})


def _text(row: Row) -> tuple[tuple[str, str], ...]:
    return tuple((message["role"], message["content"].strip()) for message in row["messages"])
