"""How far several graders of the same texts agree, for every page whose texts they read."""

from collections.abc import Mapping, Sequence

import pandas as pd

from selfprobe.page import Column, Section, Table, estimated, named, percent
from selfprobe.scorers.panel import GraderPair, Panel, grader_pairs

MEANS = (
    "Several graders read each text, and most of them decide; a tie has no verdict. Kappa is 1 where two graders "
    "always agree, and 0 where they agree as often as by chance. Its interval (95 %) is clustered by item."
)

PanelRows = Sequence[tuple[str, GraderPair]]
"""What was read, and two of its graders."""


def pair_rows(panels: Mapping[str, Sequence[tuple[str, Panel]]]) -> PanelRows:
    """Every two graders of each kind of text; empty where no panel read any.

    Args:
        panels: What was read → item and its panel.
    """
    return [(name, pair) for name, of in panels.items() for pair in grader_pairs(of)]


def panel_section(rows: PanelRows) -> list[Section]:
    """The section of a page, where there was a panel."""
    columns = (
        Column("read", lambda row: row[0]),
        Column("graders", lambda row: f"{row[1].first}, {row[1].second}"),
        Column("texts", lambda row: row[1].agreement.n, str),
        Column("equal", lambda row: row[1].agreement.observed, percent),
        estimated("kappa", lambda row: row[1].agreement.kappa),
    )
    title = "Agreement of the graders"
    return [Section(title, [MEANS, Table(rows, columns)], name="graders", menu="graders")] if rows else []


def panel_table(rows: PanelRows) -> dict[str, pd.DataFrame]:
    """The table `graders` of a page, where there was a panel."""
    table = [
        {
            "read": name,
            "first": pair.first,
            "second": pair.second,
            "texts": pair.agreement.n,
            "equal": pair.agreement.observed,
            **named("kappa", pair.agreement.kappa),
        }
        for name, pair in rows
    ]
    return {"graders": pd.DataFrame(table)} if table else {}
