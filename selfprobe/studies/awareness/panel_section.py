"""Agreement of several graders of the same texts, for every page whose texts they read."""

from collections.abc import Mapping, Sequence

import pandas as pd

from selfprobe.page import Column, Section, Table, estimated, interval_columns, percent
from selfprobe.scorers.votes import Panel, grader_pairs

MEANS = (
    "Several graders read each text, and most of them decide; a tie has no verdict. Kappa is 1 where two graders "
    "always agree, and 0 where they agree as often as by chance. Its interval (95 %) is clustered by item."
)
Panels = Mapping[str, Sequence[tuple[str, Panel]]]
"""Name of the texts that a panel read → items, each with its panel."""


def panel_agreement(panels: Panels) -> tuple[list[Section], dict[str, pd.DataFrame]]:
    """The section of a page, and its table `graders`; both empty where no panel read any."""
    pairs = [(read, pair) for read, of in panels.items() for pair in grader_pairs(of)]
    rows = [
        {"read": read, "first": pair.first, "second": pair.second, "texts": pair.agreement.n}
        | {"equal": pair.agreement.observed, "kappa": pair.agreement.kappa}
        for read, pair in pairs
    ]
    columns = (
        Column("read", "read"),
        Column("graders", lambda row: f"{row['first']}, {row['second']}"),
        Column("texts", "texts", str),
        Column("equal", "equal", percent),
        estimated("kappa", "kappa"),
    )
    if not rows:
        return [], {}
    section = Section("Agreement of the graders", [MEANS, Table(rows, columns)], name="graders", menu="graders")
    return [section], {"graders": pd.DataFrame([row | interval_columns("kappa", row["kappa"]) for row in rows])}
