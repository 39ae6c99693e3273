"""What models say of themselves minus what they say of "another AI assistant", a row each, without any matrix."""

from collections.abc import Collection

import pandas as pd

from selfprobe.matrix.table import Results
from selfprobe.page import Column, Section, Table, columns, estimated, percent, shown

INTRO = (
    "The same model and item, asked about itself and about “another AI assistant”; both answers are held against what "
    "the model does itself (-T frame=both). Itself minus another is what its picture of itself adds to its picture of "
    "an assistant; it needs no other model. The interval is paired, over items."
)


def frames_section(results: Results) -> list[Section]:
    """A row a model and task, where a run asked both."""
    if not results.frames:
        return []
    table = Table(
        sorted(results.frames.items()),
        (
            Column("task", lambda row: row[0][0]),
            Column("model", lambda row: row[0][1]),
            estimated("about itself", lambda row: row[1].own),
            estimated("about another assistant", lambda row: row[1].other),
            Column("itself minus another", lambda row: shown(row[1].gain, sign=True), look="e"),
            Column("items with both", lambda row: str(row[1].gain.n)),
            Column("unscored, another", lambda row: percent(row[1].unscored)),
        ),
    )
    return [Section("About itself, and about another assistant", [INTRO, table], name="frames", menu="own frame")]


def frames_table(results: Results) -> pd.DataFrame:
    """The same for other programs: one row a task, model and quantity (own, other, gain)."""
    return pd.DataFrame(
        [
            {"task": cell[0], "model": cell[1], "quantity": name, **columns(getattr(found, name))}
            for cell, found in sorted(results.frames.items())
            for name in ("own", "other", "gain")
        ]
    )


def frames_told(results: Results, tasks: Collection[str]) -> list[str]:
    """A line a model of these tasks, for the terminal."""
    return [
        f"{cell[0]}, {cell[1]}: {shown(found.own)} about itself, {shown(found.other)} about another assistant, "
        f"itself minus another {shown(found.gain, sign=True)}"
        for cell, found in sorted(results.frames.items())
        if cell[0] in tasks
    ]
