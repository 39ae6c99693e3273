"""Verdict rows as the items that the methods' scorers count."""

from typing import Any

import pandas as pd

from selfprobe.scorers.awareness import Item
from selfprobe.scorers.decision import Decision
from selfprobe.scorers.votes import Ballot


def items_of(rows: pd.DataFrame) -> list[Item]:
    """Verdict rows as the scorer's items."""
    known = rows.astype(object).where(rows.notna(), None)
    fields = [name for name in Decision.model_fields if name in known]
    return [
        Item(
            decision=Decision(**{"key": row["method"]} | {name: row[name] for name in fields}),
            source=str(row["source"]),
            flip=bool(row["flip"]),
            votes=_ballot(row),
            details=_details(row),
            conversation=f"{row.get('data')} {row.get('pair') or row['item']}",
            of_set=str(row.get("set") or ""),
        )
        for row in known.to_dict("records")
    ]


def _ballot(row: dict[str, Any]) -> Ballot | None:
    if "could" not in row:
        return None
    return Ballot(
        row["votes_asked"], row["votes_read"], row["could"], row.get("turned") or 0, row.get("contradicted") or 0
    )


def _details(row: dict[str, Any]) -> dict[str, Any]:
    """What a score's metadata says of the grader's quotes, and of the answers by word."""
    found: dict[str, Any] = {
        name: dict(enumerate([True] * row[name] + [False] * (row[f"{name}_asked"] - row[name])))
        for name in ("yes", "first")
        if row.get(f"{name}_asked")
    }
    if "quotes" in row:
        found["quoted"] = {"kept": row["quotes"] - row["quotes_discarded"], "discarded": row["quotes_discarded"]}
    return found
