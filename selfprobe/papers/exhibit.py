"""A table, a figure or a quoted number of a paper, and the page of several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import pandas as pd

from selfprobe.errors import NoLogs
from selfprobe.page import (
    Block,
    Bullets,
    Figures,
    Heading,
    Page,
    Paper,
    Picture,
    RowTable,
    Section,
    Table,
    set_aside,
)
from selfprobe.page.columns import columns_of


@dataclass(frozen=True)
class Exhibit:
    """A table, a figure or a quoted number of a paper, made from logs."""

    name: str
    """Name in the paper: "Table 2", "§4.1"."""
    shows: str
    """Noun phrase for what it shows."""
    printed: str
    """What the paper prints: its numbers, or a description of its drawing."""
    measured: str
    """The same from these logs, in a sentence or a number."""
    tables: Mapping[str, RowTable | pd.DataFrame]
    """File stem → table."""
    pictures: Sequence[Picture] = ()
    remarks: Sequence[str] = ()
    """Sentences on how to read it, and on what differs from the paper."""
    hidden_tables: Sequence[str] = ()
    """Stems of tables that the page does not show, since a picture has their numbers."""
    blocks: Sequence[Block] = ()
    """Further parts of its section, between its tables and its pictures."""

    @property
    def files(self) -> list[str]:
        """Its files, as the page's folder has them."""
        table_files = [f"tables/{stem}.csv" for stem in self.tables]
        return [*table_files, *(f"figures/{picture.name}.svg" for picture in self.pictures)]

    @property
    def section(self) -> Section:
        """Its part of the page."""
        blocks: list[Block] = [f"The paper: {self.printed}", f"Here: {self.measured}"]
        if self.remarks:
            blocks.append(Bullets(self.remarks))
        for stem, table in self.tables.items():
            if isinstance(table, RowTable) and table.rows and stem not in self.hidden_tables:
                blocks.append(Table(table.rows, table.columns))
        blocks += self.blocks
        if self.pictures:
            blocks.append(Figures(self.pictures))
        return Section(f"{self.name}: {self.shows}", blocks, name=anchor_of(self.name))


def anchor_of(name: str) -> str:
    """Anchor of an exhibit on the page.

    >>> anchor_of("Table 2"), anchor_of("§4.1")
    ('table-2', '-4-1')
    """
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())


@dataclass(frozen=True)
class ContentsRow:
    """Tables and figures of the paper."""

    name: Annotated[str, Heading("in the paper", "Table, figure or section of the paper.")]
    shows: Annotated[str, Heading("shows", "What it shows.")]
    printed: Annotated[str, Heading("the paper", "What the paper prints.")]
    measured: Annotated[str, Heading("here", "The same from these logs.")]
    files: Annotated[
        tuple[str, ...], Heading("files", "Files that hold it, in the page's folder.", ", ".join)
    ]


@dataclass(frozen=True)
class PaperResults:
    """What a paper's module made from logs."""

    exhibits: Sequence[Exhibit]
    missing: Mapping[str, str] = field(default_factory=dict)
    """Exhibit that these logs cannot make → why, and what to type."""
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Log that was not used → why."""
    models: Sequence[str] = ()


def paper_page(paper: Paper, results: PaperResults) -> Page:
    """The page of a paper: its contents with the paper's numbers and ours, then each exhibit.

    Raises:
        NoLogs: There is no exhibit.
    """
    if not results.exhibits:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in results.missing.items())
        raise NoLogs(f"no table or figure of {paper.title} can be made: {reasons}")
    contents = RowTable(
        ContentsRow,
        [
            ContentsRow(
                name=exhibit.name,
                shows=exhibit.shows,
                printed=exhibit.printed,
                measured=exhibit.measured,
                files=tuple(exhibit.files),
            )
            for exhibit in results.exhibits
        ],
    )
    missing_lines = [f"{name} is not here: {reason}" for name, reason in results.missing.items()]
    contents_blocks: list[Block] = [Table(contents.rows, columns_of(ContentsRow))]
    if missing_lines:
        contents_blocks.append(Bullets(missing_lines))
    contents_blocks += set_aside(results.ignored)

    tables: dict[str, RowTable | pd.DataFrame] = {"contents": contents}
    for exhibit in results.exhibits:
        tables |= exhibit.tables
    sections = [exhibit.section for exhibit in results.exhibits]
    return Page(
        f"Tables and figures of {paper.title}",
        sections=[Section("Contents", contents_blocks, name="contents"), *sections],
        tables=tables,
        models=results.models,
        notes=_terminal_lines(results.exhibits, missing_lines),
    )


def _terminal_lines(exhibits: Sequence[Exhibit], missing_lines: Sequence[str]) -> list[str]:
    names = ", ".join(exhibit.name for exhibit in exhibits)
    lines = [f"Made: {names}."]
    if missing_lines:
        lines.append(missing_lines[0])
    if len(missing_lines) > 1:
        lines.append(f"{len(missing_lines) - 1} more are not here; the page says why.")
    return lines
