"""Agreement of several graders that read the same texts, as a section of a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from selfprobe.page import Block, Heading, RowTable, Section, Table, percent
from selfprobe.scorers.votes import Panel, grader_pairs
from selfprobe.stats.estimate import Estimate

PANEL_NOTE = (
    "Several graders read each text, and most of them decide; a tie has no verdict. Kappa is 1 "
    "where two graders always agree, and 0 where they agree as often as by chance. Its interval "
    "(95 %) is clustered by item."
)
Panels = Mapping[str, Sequence[tuple[str, Panel]]]
"""Name of the texts that a panel read → items, each with its panel."""


@dataclass(frozen=True)
class GraderPairRow:
    """Agreement of each two graders."""

    read: Annotated[str, Heading("read", "Texts that the graders read.")]
    first: Annotated[str, Heading("first grader", "One of the two graders.")]
    second: Annotated[str, Heading("second grader", "The other of the two graders.")]
    texts: Annotated[int, Heading("texts", "Texts on which both graders have a verdict.")]
    equal: Annotated[
        float,
        Heading("equal", "Share of these texts on which both have the same verdict.", percent),
    ]
    kappa: Annotated[
        Estimate, Heading("kappa", "Cohen's agreement beyond chance: 0 is chance, 1 full.")
    ]


def panel_agreement(panels: Panels) -> tuple[list[Section], dict[str, RowTable]]:
    """The section of a page, and its table `graders`; both empty where no panel read any."""
    grader_rows = []
    for text_name, item_panels in panels.items():
        for pair in grader_pairs(item_panels):
            agreement = pair.agreement
            grader_row = GraderPairRow(
                read=text_name,
                first=pair.first,
                second=pair.second,
                texts=agreement.n,
                equal=agreement.observed,
                kappa=agreement.kappa,
            )
            grader_rows.append(grader_row)
    if not grader_rows:
        return [], {}

    table = RowTable(GraderPairRow, grader_rows, on_page=False)
    blocks: list[Block] = [PANEL_NOTE, Table(grader_rows, table.columns)]
    section = Section("Agreement of the graders", blocks, name="graders", menu="graders")
    return [section], {"graders": table}
