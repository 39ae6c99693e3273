"""Columns of tables, defined once: an annotated field of the row's dataclass.

    @dataclass(frozen=True)
    class TurnMean:
        turn: Annotated[int, Heading("turn", "Number of the turn, from 1.")]
        estimate: Annotated[Estimate, Heading("P(evaluation)", "Mean stated probability.")]

The table on the page, the help of its headings, the header of the CSV file and the data dictionary
`tables/columns.json` all come from these fields (`RowTable`).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from typing import Any, get_type_hints

import pandas as pd

from selfprobe.page.numerals import interval_text, number
from selfprobe.stats.estimate import Estimate
from selfprobe.text.docstrings import docstring_summary

MAIN_ESTIMATE = "estimate"
"""Field whose columns are called value, low, high and n; those of another one begin with its name.
"""
INTERVAL_HELP = "95 % interval in brackets."


@dataclass(frozen=True)
class Heading:
    """Heading of a column: the annotation of a row's field."""

    title: str
    """Words of the heading on a page."""
    help: str
    """One sentence that says what the number is."""
    write: Callable[[Any], str] | None = None
    """Function that writes a value on a page. Default: by the type of the value."""
    on_page: bool = True
    """Whether pages show the column; the files have all columns."""


RUN_MODEL_HEADING = Heading(
    "model", "Model that was asked, with settings that differ between runs."
)
BLOCK_HEADING = Heading("block", "Block of the transformer, from 0.")


@dataclass(frozen=True)
class Column:
    """A column of a table on a page."""

    title: str
    of: str | Callable[[Any], Any]
    """Attribute or key of the row, or a function of the row."""
    show: Callable[[Any], object] | None = None
    """Function that writes the value; None writes it unchanged."""
    look: str = ""
    """Class of the stylesheet. Default: columns with a `show` are aligned as numbers."""
    help: str = ""
    """Sentence that a reader sees who points at the heading."""

    def cell(self, row: Any) -> object:
        """Content of this column in a row."""
        if callable(self.of):
            value = self.of(row)
        elif isinstance(row, dict):
            value = row[self.of]
        else:
            value = getattr(row, self.of)
        return self.show(value) if self.show else value

    @property
    def style(self) -> str:
        """Class of the stylesheet."""
        return self.look or ("n" if self.show else "")


@cache
def headings_of(row_type: type) -> dict[str, Heading]:
    """Field → heading of a row's dataclass, in the order of its fields; fields without a heading
    are left out.
    """
    hints = get_type_hints(row_type, include_extras=True)
    headings = {}
    for field in fields(row_type):
        for annotation in getattr(hints[field.name], "__metadata__", ()):
            if isinstance(annotation, Heading):
                headings[field.name] = annotation
    return headings


def columns_of(row_type: type, *names: str) -> list[Column]:
    """Columns of a page for fields of a row's dataclass.

    Args:
        row_type: Dataclass with annotated fields.
        names: Fields in the order of the columns. Default: all that pages show.
    """
    headings = headings_of(row_type)
    if not names:
        names = tuple(name for name, heading in headings.items() if heading.on_page)
    return [_column(name, headings[name], _field_type(row_type, name)) for name in names]


def _field_type(row_type: type, field_name: str) -> Any:
    return get_type_hints(row_type)[field_name]


def _column(field_name: str, heading: Heading, field_type: Any) -> Column:
    if field_type is Estimate:
        write = heading.write or interval_text
        interval_help = f"{heading.help} {INTERVAL_HELP}"
        return Column(heading.title, field_name, _unbroken(write), look="e", help=interval_help)
    is_number = field_type in (int, float)
    look = "n" if is_number else "t"
    return Column(
        heading.title, field_name, heading.write or write_cell, look=look, help=heading.help
    )


def _unbroken(write: Callable[[Any], str]) -> Callable[[Any], str]:
    """`write` with a no-break space between the ends of an interval."""
    return lambda estimate: write(estimate).replace(", ", ",\N{NO-BREAK SPACE}")


def write_cell(value: Any) -> str:
    """A value as a cell of a page.

    >>> write_cell(0.256), write_cell(3), write_cell(True), write_cell(None), write_cell(("a", "b"))
    ('0.26', '3', 'yes', '–', 'a, b')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, tuple | list):
        return ", ".join(map(write_cell, value))
    return str(value)


@dataclass(frozen=True)
class RowTable:
    """Rows of one dataclass: a table of the page, a CSV file and a JSON file."""

    row_type: type
    rows: Sequence[Any]
    on_page: bool = True
    """Whether the page shows it; rows with ids whose texts are not on the page are in its files
    alone.
    """
    hides_empty: bool = False
    """Whether the page leaves out columns that are empty in all rows."""

    @property
    def title(self) -> str:
        """First paragraph of the row's docstring."""
        return docstring_summary(self.row_type.__doc__).rstrip(".")

    @property
    def columns(self) -> list[Column]:
        """Columns that the page shows."""
        headings = headings_of(self.row_type)
        names = [name for name, heading in headings.items() if heading.on_page]
        if self.hides_empty and self.rows:
            names = [name for name in names if self._has_values(name)]
        return columns_of(self.row_type, *names)

    def _has_values(self, field_name: str) -> bool:
        return not all(_is_empty(getattr(row, field_name)) for row in self.rows)

    @property
    def frame(self) -> pd.DataFrame:
        """The table of the files: an estimate has a column each for value, low, high and n."""
        records = [dict(_flat_record(self.row_type, row)) for row in self.rows]
        frame = pd.DataFrame(records, columns=list(self.dictionary))
        count_fields = [
            name
            for name in headings_of(self.row_type)
            if _field_type(self.row_type, name) == int | None
        ]
        return frame.astype(dict.fromkeys(count_fields, "Int64"))

    @property
    def dictionary(self) -> dict[str, dict[str, str]]:
        """Column of the files → its title and help."""
        entries: dict[str, dict[str, str]] = {}
        for name, heading in headings_of(self.row_type).items():
            if _field_type(self.row_type, name) is not Estimate:
                entries[name] = {"title": heading.title, "help": heading.help}
                continue
            parts = {
                "value": heading.help,
                "low": f"Lower end of the 95 % interval: {heading.help}",
                "high": f"Upper end of the 95 % interval: {heading.help}",
                "n": "Number of independent units behind the estimate.",
            }
            for part, help_text in parts.items():
                entries[estimate_column(name, part)] = {"title": heading.title, "help": help_text}
        return entries


def _is_empty(value: Any) -> bool:
    """Whether a cell holds nothing that a reader could miss.

    >>> _is_empty(""), _is_empty(None), _is_empty(math.nan), _is_empty(0)
    (True, True, True, False)
    """
    if isinstance(value, Estimate):
        value = value.value
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or value == "" or value == {} or value == () or value == []


def estimate_column(field_name: str, part: str) -> str:
    """Column of the files for a part of an estimate.

    >>> estimate_column("estimate", "low"), estimate_column("skill", "value"), estimate_column("skill", "low")
    ('low', 'skill', 'skill_low')
    """
    if field_name == MAIN_ESTIMATE:
        return part
    return field_name if part == "value" else f"{field_name}_{part}"


def _flat_record(row_type: type, row: Any) -> Iterator[tuple[str, Any]]:
    for name in headings_of(row_type):
        value = getattr(row, name)
        if isinstance(value, Estimate):
            for part in ("value", "low", "high", "n"):
                yield estimate_column(name, part), getattr(value, part)
        elif isinstance(value, Enum):
            yield name, value.value
        elif isinstance(value, tuple):
            yield name, list(value)
        else:
            yield name, value


def rows_of_frame(row_type: type, frame: pd.DataFrame, *, unit: str) -> list[Any]:
    """Rows of a table that was read back from its file; estimates have no reason there.

    Args:
        row_type: Dataclass with annotated fields, as it was written.
        frame: `RowTable.frame`, or what pandas makes of its CSV file.
        unit: Name of an independent unit of the estimates.
    """
    rows = []
    field_names = list(headings_of(row_type))
    for record in frame.to_dict("records"):
        values = {
            field_name: _field_value(row_type, field_name, record, unit)
            for field_name in field_names
        }
        rows.append(row_type(**values))
    return rows


def _field_value(row_type: type, field_name: str, record: dict[Any, Any], unit: str) -> Any:
    field_type = _field_type(row_type, field_name)
    if field_type is Estimate:
        value = float(record[estimate_column(field_name, "value")])
        low = float(record[estimate_column(field_name, "low")])
        high = float(record[estimate_column(field_name, "high")])
        unit_count = int(record[estimate_column(field_name, "n")])
        return Estimate(value, low, high, unit_count, unit)
    value = record[field_name]
    if field_type is str:
        return "" if isinstance(value, float) else str(value)
    return field_type(value)
