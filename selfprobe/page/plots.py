"""The figure kit: six shapes, each a function from data to a `Picture`.

`heat_map`, `interval_rows`, `bar_rows`, `curves`, `calibration_curves` and `scatter` write SVG
themselves: a page of thirty figures is drawn in a tenth of a second, dark where a reader prefers
dark pages. Names that others chose are cleaned first.
"""

import base64
import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from textwrap import wrap
from typing import Literal
from unicodedata import east_asian_width
from urllib.parse import parse_qsl

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from selfprobe.page.numerals import MINUS, fixed, interval_text, number, percent, percent_interval
from selfprobe.page.numerals import Interval as Interval
from selfprobe.text.safe import clean, masked

TEXT_COLOUR, SELF_COLOUR, OTHERS_COLOUR, MUTED_COLOUR = "#1b1f24", "#1b7837", "#2166ac", "#8a8f98"
"""Text, the paper's green for self and blue for others, and what steps back; distinct without
colour vision too.
"""

GRID_COLOUR = "#e4e6ea"
PAGE_COLOUR = "#fff"
CELL_INK = "#16191d"
"""Dark text on a coloured cell, which stays dark on a dark page."""
DARK_BY_COLOUR = {
    PAGE_COLOUR: "#15181c",
    TEXT_COLOUR: "#e6e9ee",
    GRID_COLOUR: "#39414c",
    SELF_COLOUR: "#63c17f",
    OTHERS_COLOUR: "#6fa8dc",
    MUTED_COLOUR: "#a2abb7",
    "#b35806": "#e59a55",
    "#762a83": "#c79ad6",
    "#01665e": "#4db6ac",
    "#c51b7d": "#f1a1cf",
    "#8c510a": "#d8b365",
}
"""Colour → the one that takes its place where a reader prefers dark pages."""
LEAST_COLOUR_SPAN = 0.05
"""Least span of a colour scale, of a diverging one to either side of 0: smaller values stay pale."""

SERIES_STYLES = (
    (SELF_COLOUR, "circle", ""),
    (OTHERS_COLOUR, "square", "7 3"),
    (MUTED_COLOUR, "diamond", "2 3"),
    ("#b35806", "triangle", "9 3 2 3"),
    ("#762a83", "circle", "4 2"),
    ("#01665e", "square", "1 2"),
    ("#c51b7d", "diamond", "9 3"),
    ("#8c510a", "triangle", "5 5"),
    (TEXT_COLOUR, "circle", "1 4"),
    (TEXT_COLOUR, "square", "3 1"),
)
"""Colour, mark and dashes of the first series, the second, …: distinguishable without colours."""

SEQUENTIAL_COLOURS = (
    "00224e",
    "123570",
    "3b496c",
    "575d6d",
    "707173",
    "8a8678",
    "a59c74",
    "c3b369",
    "e1cc55",
    "fee838",
)
"""Cividis, from low to high."""
DIVERGING_COLOURS = (
    "7f3b08",
    "b35806",
    "e08214",
    "fdb863",
    "fee0b6",
    "f7f7f7",
    "d8daeb",
    "b2abd2",
    "8073ac",
    "542788",
    "2d004b",
)
"""ColorBrewer's PuOr: orange below 0, violet above."""

HALF_PAGE_WIDTH, TEXT_SIZE, SMALL_SIZE = 450.0, 14.0, 12.0
"""Pixels of a picture that fills half a page or a telephone, and of its letters."""
LINE_GAP = 5.0
"""Distance of words from a line beside them."""
LONGEST_NAME = 26
"""Largest number of signs of a name on an axis; longer ones are cut."""
NO_SCORE = "no score"

Scale = Literal["score", "percent", "signed"]
"""Formats of values: 0.88, 88 %, +0.12."""
Rows = Mapping[str, Mapping[str, Interval]]
"""Row → series → estimate, in the order in which they are drawn."""


@dataclass(frozen=True)
class Drawing:
    """A finished picture."""

    width: float
    """Width in pixels."""
    svg: bytes


@dataclass(frozen=True)
class Picture:
    """A figure in the page and beside it."""

    name: str
    alt: str
    caption: str
    drawing: Drawing

    @property
    def source(self) -> Markup:
        """The figure as an SVG data URL."""
        return Markup("data:image/svg+xml;base64,{}").format(
            base64.b64encode(self.drawing.svg).decode()
        )

    @property
    def wide(self) -> bool:
        """True if the picture has a row of its own: a wider one is too small to read in half of the
        page's width.
        """
        return self.drawing.width > 1.5 * HALF_PAGE_WIDTH


def cut_name(name: str, longest: int = LONGEST_NAME) -> str:
    """A model's name, and what follows it after a comma, short enough for an axis: no provider, cut
    in the middle.

    >>> cut_name("planted/a, grader planted/g,planted/h")
    'a, grader g,h'
    """
    return _cut(re.sub(r"[^\s,?]*/", "", masked(name).rstrip("/")), longest)


def model_names(models: Sequence[str]) -> dict[str, str]:
    """Each model → its name without settings; where models differ only in settings, with those that
    differ.

    >>> model_names(["planted/a?x=1&y=2", "planted/a?x=3&y=2", "planted/b?x=1"])
    {'planted/a?x=1&y=2': 'planted/a?x=1', 'planted/a?x=3&y=2': 'planted/a?x=3', 'planted/b?x=1': 'planted/b'}
    """
    names = {}
    for model in models:
        stem, _, settings = model.partition("?")
        common_settings = set(parse_qsl(settings))
        for namesake in models:
            namesake_stem, _, namesake_settings = namesake.partition("?")
            if namesake_stem == stem:
                common_settings &= set(dict(parse_qsl(namesake_settings)).items())
        differing_settings = [
            f"{key}={value}"
            for key, value in parse_qsl(settings)
            if (key, value) not in common_settings
        ]
        names[model] = f"{stem}?{'&'.join(differing_settings)}" if differing_settings else stem
    if len(set(names.values())) < len(names):
        return {model: model for model in models}
    return names


def cut_names(models: Sequence[str]) -> list[str]:
    """Names of models, short enough for an axis."""
    names = model_names(models)
    return [cut_name(names[model]) for model in models]


def row_name(text: str, taken: Container[str]) -> str:
    """A text as the name of a row, in two lines; other than each that is taken.

    >>> row_name("one two three four five six seven", {})
    'one two three four five\\nsix seven'
    """
    name = "\n".join(wrap(" ".join(text.split()), LONGEST_NAME, max_lines=2, placeholder="…"))
    while name in taken:
        name += "\N{ZERO WIDTH SPACE}"
    return name


def interval_rows(
    name: str,
    rows: Rows,
    *,
    caption: str,
    axis: str,
    title: str = "",
    scale: Scale = "score",
    line: float | None = None,
) -> Picture:
    """Estimates as marks with their intervals, a row a name and a mark a series.

    Args:
        name: Stem of its file.
        rows: Names may have two lines. Undefined values are written as “no score”; an undefined
            interval has no line.
        caption: What a reader sees under it.
        axis: What the numbers are.
        title: Above it, where it stands alone.
        scale: How values are written.
        line: A value at which nothing is shown, such as 0 or guessing.
    """
    return _rows(
        name, rows, caption=caption, axis=axis, title=title, scale=scale, line=line, bars=False
    )


def bar_rows(
    name: str,
    rows: Rows,
    *,
    caption: str,
    axis: str,
    title: str = "",
    scale: Scale = "score",
    line: float | None = None,
) -> Picture:
    """Bars from 0 with intervals; arguments as of `interval_rows`."""
    return _rows(
        name, rows, caption=caption, axis=axis, title=title, scale=scale, line=line, bars=True
    )


def _rows(
    name: str,
    rows: Rows,
    *,
    caption: str,
    axis: str,
    title: str,
    scale: Scale,
    line: float | None,
    bars: bool,
) -> Picture:
    series = list(dict.fromkeys(key for estimates in rows.values() for key in estimates))
    styles = _marks_of(series)
    sheet = _Sheet(HALF_PAGE_WIDTH, title)
    sheet.legend(styles if len(series) > 1 else {}, bars=bars)
    layout = _row_layout(rows, top=sheet.y + 4, scale=scale, line=line, bars=bars)
    _draw_row_axis(sheet, layout, scale, line)

    row_top = layout.top
    for row, estimates in rows.items():
        _draw_row_name(sheet, layout, row, row_top)
        _draw_row_marks(sheet, layout, estimates, styles, scale, row, row_top, bars=bars)
        row_top += layout.row_heights[row]

    sheet.y = layout.bottom + 22
    sheet.footing((layout.left_edge + layout.right_edge) / 2, axis)
    row_texts = []
    for row, estimates in rows.items():
        values = ", ".join(_in_words(key, value, scale) for key, value in estimates.items())
        row_texts.append(f"{', '.join(layout.name_lines[row])}: {values}")
    return Picture(name, f"{caption} {'; '.join(row_texts)}", caption, sheet.drawing())


MARK_HEIGHT = 19.0
"""Pixels from one mark of a row to the next."""


@dataclass(frozen=True)
class _RowLayout:
    """Places of a picture of rows, in pixels, and the ends of its axis."""

    name_lines: Mapping[str, Sequence[str]]
    """Row → the lines of its name."""
    row_heights: Mapping[str, float]
    left_edge: float
    """Where names end."""
    right_edge: float
    """Where written values begin."""
    top: float
    low: float
    high: float
    ticks: Sequence[float]
    line: float | None
    """Value at which a line is drawn across the rows."""

    @property
    def no_score_x(self) -> float:
        """Where words in place of a score begin, in pixels: beside the line, not on it."""
        x = self.x(self.low) + LINE_GAP
        if self.line is None:
            return x
        end = x + _width(NO_SCORE, SMALL_SIZE) + LINE_GAP
        is_crossed = x - LINE_GAP <= self.x(self.line) <= end
        return self.x(self.line) + LINE_GAP if is_crossed else x

    @property
    def bottom(self) -> float:
        """Lower end of the last row."""
        return self.top + sum(self.row_heights.values())

    def x(self, value: float) -> float:
        """Pixels from the left."""
        share = (value - self.low) / (self.high - self.low)
        return self.left_edge + 12 + share * (self.right_edge - self.left_edge - 20)


def _row_layout(
    rows: Rows, *, top: float, scale: Scale, line: float | None, bars: bool
) -> _RowLayout:
    all_estimates = [estimate for estimates in rows.values() for estimate in estimates.values()]
    name_lines = {}
    row_heights = {}
    for row, estimates in rows.items():
        name_lines[row] = [_cut(name_line) for name_line in row.split("\n")]
        marks_height = MARK_HEIGHT * max(len(estimates), 1) + 9
        row_heights[row] = max(marks_height, 16.0 * len(name_lines[row]) + 8)
    name_widths = [_width(name_line) for lines in name_lines.values() for name_line in lines]
    value_widths = [
        _width(_written(estimate.value, scale), SMALL_SIZE) for estimate in all_estimates
    ]

    axis_values = _finite_ends(all_estimates)
    if line is not None:
        axis_values.append(line)
    if bars:
        axis_values.append(0.0)
    low, high, ticks = _axis(axis_values, scale)
    return _RowLayout(
        name_lines=name_lines,
        row_heights=row_heights,
        left_edge=10 + max(name_widths, default=0),
        right_edge=HALF_PAGE_WIDTH - 14 - max(value_widths),
        top=top,
        low=low,
        high=high,
        ticks=ticks,
        line=line,
    )


def _draw_row_axis(sheet: "_Sheet", layout: _RowLayout, scale: Scale, line: float | None) -> None:
    for tick in layout.ticks:
        x = layout.x(tick)
        sheet.line(x, layout.top, x, layout.bottom, GRID_COLOUR)
        sheet.text(x, layout.bottom + 16, _tick(tick, scale), anchor="middle", size=SMALL_SIZE)
    if line is not None:
        x = layout.x(line)
        sheet.line(x, layout.top, x, layout.bottom, MUTED_COLOUR, dashes="4 3")


def _draw_row_name(sheet: "_Sheet", layout: _RowLayout, row: str, row_top: float) -> None:
    name_lines = layout.name_lines[row]
    first_line_y = row_top + layout.row_heights[row] / 2 + 5 - 8 * (len(name_lines) - 1)
    for position, name_line in enumerate(name_lines):
        sheet.text(layout.left_edge, first_line_y + 16 * position, name_line, anchor="end")


def _draw_row_marks(
    sheet: "_Sheet",
    layout: _RowLayout,
    estimates: Mapping[str, Interval],
    styles: Mapping[str, tuple[str, str, str]],
    scale: Scale,
    row: str,
    row_top: float,
    *,
    bars: bool,
) -> None:
    """Bars or marks of a row's series, each with its interval and its value."""
    marks_height = MARK_HEIGHT * max(len(estimates), 1)
    y = row_top + (layout.row_heights[row] - marks_height - 9) / 2
    for key, estimate in estimates.items():
        y += MARK_HEIGHT
        colour, mark, _ = styles[key]
        if math.isnan(estimate.value):
            sheet.text(layout.no_score_x, y, NO_SCORE, size=SMALL_SIZE, colour=MUTED_COLOUR)
            continue
        x = layout.x(estimate.value)
        if bars:
            zero_x = layout.x(0)
            sheet.rectangle(min(zero_x, x), y - 11, abs(x - zero_x), 13, colour)
        if not math.isnan(estimate.low):
            interval_colour = TEXT_COLOUR if bars else colour
            low_x = layout.x(estimate.low)
            high_x = layout.x(estimate.high)
            sheet.interval(low_x, high_x, y - 4.5, interval_colour)
        if not bars:
            sheet.mark(x, y - 4.5, colour, mark)
        sheet.text(layout.right_edge, y, _written(estimate.value, scale), size=SMALL_SIZE)


def _finite_ends(estimates: Iterable[Interval]) -> list[float]:
    """Values and ends of intervals, where they are defined."""
    ends = []
    for estimate in estimates:
        ends += [estimate.value, estimate.low, estimate.high]
    return [end for end in ends if math.isfinite(end)]


def _marks_of(series: Iterable[str]) -> dict[str, tuple[str, str, str]]:
    """Series → its colour and mark, without dashes."""
    styles = {}
    for index, key in enumerate(series):
        colour, mark, _ = SERIES_STYLES[index % len(SERIES_STYLES)]
        styles[key] = (colour, mark, "")
    return styles


@dataclass(frozen=True)
class _Plane:
    """Place of a picture's axes: from numbers to pixels."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    top: float
    height: float
    left_edge: float = 58.0
    right_edge: float = HALF_PAGE_WIDTH - 16

    def x(self, value: float) -> float:
        """Pixels from the left."""
        share = (value - self.x_low) / (self.x_high - self.x_low)
        return self.left_edge + share * (self.right_edge - self.left_edge)

    def y(self, value: float) -> float:
        """Pixels from above."""
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return self.bottom - share * self.height

    @property
    def bottom(self) -> float:
        """Pixels of the lower end from above."""
        return self.top + self.height

    def draw_grid(
        self,
        sheet: "_Sheet",
        x_ticks: Mapping[float, str],
        y_ticks: Mapping[float, str],
        y_title: str,
    ) -> None:
        """Lines and numbers of both axes, and the title of the y axis."""
        sheet.text(8, self.top - 10, y_title, size=SMALL_SIZE)
        for value, name in x_ticks.items():
            sheet.line(self.x(value), self.top, self.x(value), self.bottom, GRID_COLOUR)
            sheet.text(self.x(value), self.bottom + 16, name, anchor="middle", size=SMALL_SIZE)
        for value, name in y_ticks.items():
            sheet.line(self.left_edge, self.y(value), self.right_edge, self.y(value), GRID_COLOUR)
            sheet.text(self.left_edge - 6, self.y(value) + 4, name, anchor="end", size=SMALL_SIZE)

    def draw_curve(
        self,
        sheet: "_Sheet",
        places: Sequence[float],
        estimates: Sequence[Interval],
        style: tuple[str, str, str],
        *,
        marks: bool,
    ) -> None:
        """A line through the estimates, with a band between the ends of their intervals."""
        colour, mark, dashes = style
        points = [
            (self.x(place), estimate)
            for place, estimate in zip(places, estimates, strict=True)
            if math.isfinite(estimate.value)
        ]
        points_with_interval = [
            (x, estimate) for x, estimate in points if not math.isnan(estimate.low)
        ]
        if len(points_with_interval) > 1:
            upper_edge = [(x, self.y(estimate.high)) for x, estimate in points_with_interval]
            lower_edge = [(x, self.y(estimate.low)) for x, estimate in points_with_interval]
            sheet.area([*upper_edge, *reversed(lower_edge)], colour)
        line_points = [(x, self.y(estimate.value)) for x, estimate in points]
        sheet.path(line_points, colour, dashes)
        if marks:
            for x, y in line_points:
                sheet.mark(x, y, colour, mark)

    def draw_x_title(self, sheet: "_Sheet", x_title: str) -> None:
        """The title of the x axis."""
        sheet.y = self.bottom + 22
        sheet.footing((self.left_edge + self.right_edge) / 2, x_title)


def _tick_names(ticks: Sequence[float]) -> dict[float, str]:
    return {tick: _tick(tick, "score") for tick in ticks}


UNIT_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


def curves(
    name: str,
    series: Mapping[str, tuple[Sequence[float], Sequence[Interval]]],
    *,
    caption: str,
    x_title: str,
    y_title: str,
    title: str = "",
    diagonal: bool = False,
    marks: bool = True,
    alt: str = "",
    shaded: tuple[float, float] | None = None,
    ticks: Mapping[float, str] | None = None,
    line: float | None = None,
) -> Picture:
    """Lines with a band between the ends of their intervals.

    Args:
        name: Stem of its file.
        series: Name → places along the x axis, and the estimate at each.
        caption: What a reader sees under it.
        x_title, y_title: Titles of the axes.
        title: Above it.
        diagonal: Draw y = x, on axes from 0 to 1.
        marks: Whether each estimate has a mark.
        alt: The picture in words; without it every estimate is listed.
        shaded: Ends of a span of the x axis.
        ticks: Place along the x axis → its name, where places are no plain numbers.
        line: A height at which nothing is shown, such as 0 or guessing.
    """
    x_values = [float(x) for places, _ in series.values() for x in places]
    y_values = _finite_ends(estimate for _, estimates in series.values() for estimate in estimates)
    if line is not None:
        y_values.append(line)
    if diagonal:
        x_low, x_high, x_ticks = 0.0, 1.0, list(UNIT_TICKS)
        y_low, y_high, y_ticks = 0.0, 1.0, list(UNIT_TICKS)
    else:
        x_low, x_high, x_ticks = _axis(x_values, "score", tight=True)
        y_low, y_high, y_ticks = _axis(y_values, "score")
    x_names = _tick_names(x_ticks)
    if ticks:
        x_names = dict(ticks)
        x_low, x_high = _with_margin(min(ticks), max(ticks))

    styles = {key: SERIES_STYLES[index % len(SERIES_STYLES)] for index, key in enumerate(series)}
    sheet = _Sheet(HALF_PAGE_WIDTH, title)
    sheet.legend(styles)
    height = 330.0 if diagonal else 240.0
    plane = _Plane(x_low, x_high, y_low, y_high, top=sheet.y + 24, height=height)
    plane.draw_grid(sheet, x_names, _tick_names(y_ticks), y_title)
    if diagonal:
        sheet.line(plane.x(0), plane.y(0), plane.x(1), plane.y(1), MUTED_COLOUR)
    if line is not None:
        y = plane.y(line)
        sheet.line(plane.left_edge, y, plane.right_edge, y, MUTED_COLOUR, dashes="4 3")
    if shaded:
        start, end = (min(max(plane.x(x), plane.left_edge), plane.right_edge) for x in shaded)
        corners = [
            (start, plane.top),
            (end, plane.top),
            (end, plane.bottom),
            (start, plane.bottom),
        ]
        sheet.area(corners, MUTED_COLOUR)
    for key, (places, estimates) in series.items():
        plane.draw_curve(sheet, places, estimates, styles[key], marks=marks)
    plane.draw_x_title(sheet, x_title)

    series_texts = []
    for key, (places, estimates) in series.items():
        pairs = zip(places, estimates, strict=True)
        points = ", ".join(f"{x:g} {_value_with_interval(estimate)}" for x, estimate in pairs)
        series_texts.append(f"{key}: {points}")
    return Picture(name, alt or f"{caption} {'; '.join(series_texts)}", caption, sheet.drawing())


def _with_margin(low: float, high: float) -> tuple[float, float]:
    """Ends of an axis with room beside its first and last place."""
    margin = 0.08 * ((high - low) or 1.0)
    return low - margin, high + margin


def scatter(
    name: str,
    groups: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    caption: str,
    x_title: str,
    y_title: str,
    title: str = "",
) -> Picture:
    """Points of several groups, each with a colour and a mark of its own.

    Args:
        name: Stem of its file.
        groups: Name → places of its points along the x and the y axis.
        caption: What a reader sees under it.
        x_title, y_title: Titles of the axes.
        title: Above it.
    """
    x_values = [float(x) for x_places, _ in groups.values() for x in x_places]
    y_values = [float(y) for _, y_places in groups.values() for y in y_places]
    x_low, x_high, x_ticks = _axis(x_values, "signed")
    y_low, y_high, y_ticks = _axis(y_values, "signed")
    styles = _marks_of(groups)
    sheet = _Sheet(HALF_PAGE_WIDTH, title)
    sheet.legend(styles)
    plane = _Plane(x_low, x_high, y_low, y_high, top=sheet.y + 24, height=300.0)
    plane.draw_grid(sheet, _tick_names(x_ticks), _tick_names(y_ticks), y_title)
    for key, (x_places, y_places) in groups.items():
        colour, mark, _ = styles[key]
        for x, y in zip(x_places, y_places, strict=True):
            sheet.mark(plane.x(float(x)), plane.y(float(y)), colour, mark)
    plane.draw_x_title(sheet, x_title)
    counts = "; ".join(f"{key}: {len(places)} points" for key, (places, _) in groups.items())
    return Picture(name, f"{caption} {counts}", caption, sheet.drawing())


def calibration_curves(
    name: str,
    series: Mapping[str, tuple[Sequence[float], Sequence[Interval]]],
    *,
    caption: str,
    x_title: str,
    y_title: str,
    title: str = "",
) -> Picture:
    """Stated probabilities against observed shares, with the diagonal; arguments as of `curves`."""
    return curves(
        name, series, caption=caption, x_title=x_title, y_title=y_title, title=title, diagonal=True
    )


MOST_NUMBERED_CELLS = 900
"""Largest number of cells of a heat map that holds their numbers."""


def heat_map(
    name: str,
    values: npt.ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str] | None = None,
    *,
    caption: str,
    title: str = "",
    low: npt.ArrayLike | None = None,
    high: npt.ArrayLike | None = None,
    centred: bool = False,
    by_column: bool = False,
    framed: int | None = None,
    under: Mapping[str, float] | None = None,
    x_title: str = "observer (predicts)",
    y_title: str = "target (is predicted)",
) -> Picture:
    """A matrix with its numbers written in, as the paper's Figures 8 to 12; a large one has colours
    alone.

    Args:
        name: Stem of its file.
        values: [row, column]; NaN is a hatched hole.
        rows: Names of the rows.
        columns: Names of the columns; None: those of the rows, and the diagonal is framed.
        caption: What a reader sees under it.
        title: What the numbers are.
        low, high: Interval ends, small under the number.
        centred: Diverging colours around 0 instead of a sequential scale.
        by_column: Colours go from the least to the most of each column.
        framed: A row of another kind.
        under: Name of a row → score of what needs no model, small under the name.
        x_title, y_title: Titles of the axes; "" for none.
    """
    cells = np.asarray(values, dtype=float)
    column_names = list(rows if columns is None else columns)
    is_square = columns is None
    has_intervals = low is not None and high is not None
    layout = _heat_layout(cells, rows, column_names, under or {}, has_intervals, bool(y_title))
    sheet = _Sheet(layout.left_edge + layout.matrix_width + 24, title)
    layout = replace(layout, top=sheet.y + 4)
    intervals = None
    if low is not None and high is not None:
        intervals = (np.asarray(low, dtype=float), np.asarray(high, dtype=float))

    _draw_heat_cells(
        sheet,
        layout,
        cells,
        intervals,
        _shades(cells, centred=centred, by_column=by_column),
        centred=centred,
        is_square=is_square,
    )
    if framed is not None:
        framed_top = layout.row_top(framed)
        frame_width = layout.matrix_width - 1
        sheet.frame(layout.left_edge, framed_top, frame_width, layout.cell_height - 1, SELF_COLOUR)
    _draw_heat_names(sheet, layout, rows, column_names)
    if y_title:
        middle = (layout.top + layout.bottom) / 2
        sheet.text(14, middle, y_title, anchor="middle", size=SMALL_SIZE, turned=-90)
    foot_height = max(_width(_cut(column)) for column in column_names) * 0.6 + 22
    sheet.y = layout.bottom + foot_height
    sheet.footing(layout.left_edge + layout.matrix_width / 2, x_title)
    cells_text = _heat_map_text(cells, rows, column_names, centred=centred, is_square=is_square)
    return Picture(name, f"{caption} {cells_text}", caption, sheet.drawing())


@dataclass(frozen=True)
class _HeatLayout:
    """Places of a heat map, in pixels."""

    row_count: int
    column_count: int
    notes: Mapping[str, str]
    """Row → what is written under its name."""
    has_numbers: bool
    """Whether cells hold their numbers."""
    left_edge: float
    """Where names end and cells begin."""
    cell_width: float
    cell_height: float
    top: float = 0.0

    @property
    def matrix_width(self) -> float:
        """Width of all cells."""
        return self.cell_width * self.column_count

    @property
    def bottom(self) -> float:
        """Lower end of the last row."""
        return self.row_top(self.row_count)

    def row_top(self, row_index: float) -> float:
        """Pixels from above."""
        return self.top + self.cell_height * row_index

    def column_left(self, column_index: float) -> float:
        """Pixels from the left."""
        return self.left_edge + self.cell_width * column_index


def _heat_layout(
    cells: npt.NDArray[np.float64],
    rows: Sequence[str],
    column_names: Sequence[str],
    score_under_name: Mapping[str, float],
    has_intervals: bool,
    has_y_title: bool,
) -> _HeatLayout:
    has_numbers = cells.size <= MOST_NUMBERED_CELLS
    notes = {
        row: f"no model {score:.2f}"
        for row, score in score_under_name.items()
        if math.isfinite(score)
    }
    name_width = max(max(_width(_cut(row)), _width(notes.get(row, ""), SMALL_SIZE)) for row in rows)
    cell_width, cell_height = (78.0, 44.0) if has_intervals else (64.0, 36.0)
    if not has_numbers:
        cell_width, cell_height = 20.0, 20.0
        notes = {}
    return _HeatLayout(
        row_count=len(rows),
        column_count=len(column_names),
        notes=notes,
        has_numbers=has_numbers,
        left_edge=16 + name_width + (18 if has_y_title else 0),
        cell_width=cell_width,
        cell_height=cell_height,
    )


def _draw_heat_cells(
    sheet: "_Sheet",
    layout: _HeatLayout,
    cells: npt.NDArray[np.float64],
    intervals: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None,
    shades: npt.NDArray[np.float64],
    *,
    centred: bool,
    is_square: bool,
) -> None:
    """Colours of the cells, and their numbers where the map has them.

    Args:
        sheet: Where to draw.
        layout: Places.
        cells: [row, column].
        intervals: Ends of the intervals, each [row, column].
        shades: Result of `_shades`.
        centred: Whether the colours diverge from 0.
        is_square: Whether the diagonal is framed.
    """
    width = layout.cell_width
    height = layout.cell_height
    for (row_index, column_index), value in np.ndenumerate(cells):
        x = layout.column_left(column_index)
        y = layout.row_top(row_index)
        if not math.isfinite(value):
            sheet.hole(x, y, width, height, named=layout.has_numbers)
            continue
        shade = float(shades[row_index, column_index])
        colour, ink = _shade(shade, DIVERGING_COLOURS if centred else SEQUENTIAL_COLOURS)
        sheet.cell(x, y, width - 1, height - 1, colour)
        middle_x = x + width / 2
        middle_y = y + height / 2
        if layout.has_numbers:
            number_y = middle_y + 5 if intervals is None else middle_y - 2
            text = fixed(float(value), signed=centred)
            sheet.text(middle_x, number_y, text, anchor="middle", colour=ink)
        if layout.has_numbers and intervals is not None:
            low, high = (float(ends[row_index, column_index]) for ends in intervals)
            if math.isfinite(low):
                text = f"{fixed(low)}–{fixed(high)}"
                sheet.text(middle_x, middle_y + 14, text, anchor="middle", size=11, colour=ink)
        if is_square and row_index == column_index:
            sheet.frame(x + 2, y + 2, width - 5, height - 5, ink)


def _draw_heat_names(
    sheet: "_Sheet", layout: _HeatLayout, rows: Sequence[str], column_names: Sequence[str]
) -> None:
    """Names of the rows, with what is written under them, and of the columns."""
    name_end = layout.left_edge - 6
    for row_index, row in enumerate(rows):
        y = layout.row_top(row_index + 0.5) + 5
        note = layout.notes.get(row)
        name_y = y if note is None else y - 8
        sheet.text(name_end, name_y, _cut(row), anchor="end")
        if note is not None:
            sheet.text(name_end, y + 8, note, anchor="end", size=SMALL_SIZE, colour=MUTED_COLOUR)
    for column_index, column in enumerate(column_names):
        x = layout.column_left(column_index + 0.5) + 4
        sheet.text(x, layout.bottom + 16, _cut(column), anchor="end", turned=-35)


def _heat_map_text(
    cells: npt.NDArray[np.float64],
    rows: Sequence[str],
    column_names: Sequence[str],
    *,
    centred: bool,
    is_square: bool,
) -> str:
    """The numbers in words; of a large square map those of the diagonal."""
    places = [place for place in np.ndindex(cells.shape) if math.isfinite(cells[place])]
    if is_square and len(places) > 25:
        places = [(row_index, column) for row_index, column in places if row_index == column]
    cell_texts = []
    for row_index, column_index in places:
        text = fixed(float(cells[row_index, column_index]), signed=centred)
        cell_texts.append(f"{column_names[column_index]} on {rows[row_index]} {text}")
    return "; ".join(cell_texts)


class _Sheet:
    """SVG that grows downwards: `y` is where the next thing goes."""

    def __init__(self, width: float, title: str) -> None:
        self.width = max(width, _width(title) + 16)
        self.y = 8.0
        self.marks: list[str] = []
        if title:
            self.y = 24
            self.text(8, 18, title)
            self.y += 8

    def legend(self, names: Mapping[str, tuple[str, str, str]], *, bars: bool = False) -> None:
        """Names with their marks, in as many lines as they need."""
        if not names:
            return
        x = 12.0
        self.y += 18
        for name, (colour, mark, dashes) in names.items():
            text = _cut(name, 60)
            text_width = _width(text, SMALL_SIZE)
            if x > 12 and x + text_width + 30 > self.width:
                x = 12.0
                self.y += 18
            if bars:
                self.rectangle(x, self.y - 10, 14, 11, colour)
            else:
                self.path([(x - 4, self.y - 4), (x + 18, self.y - 4)], colour, dashes)
                self.mark(x + 7, self.y - 4, colour, mark)
            self.text(x + 22, self.y, text, size=SMALL_SIZE)
            x += text_width + 40
        self.y += 8

    def footing(self, x: float, text: str) -> None:
        """The title of the x axis."""
        if text:
            self.y += 12
            self.text(x, self.y, text, anchor="middle", size=SMALL_SIZE)
        self.y += 10

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: str = "start",
        size: float = TEXT_SIZE,
        colour: str = TEXT_COLOUR,
        turned: int = 0,
    ) -> None:
        turn = f' transform="rotate({turned} {x:.1f} {y:.1f})"' if turned else ""
        self.marks.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{colour}"{turn}>'
            f"{escape(clean(words))}</text>"
        )

    def line(
        self, x0: float, y0: float, x1: float, y1: float, colour: str, *, dashes: str = ""
    ) -> None:
        self.path([(x0, y0), (x1, y1)], colour, dashes, width=1)

    def path(
        self,
        points: Sequence[tuple[float, float]],
        colour: str,
        dashes: str = "",
        *,
        width: float = 1.8,
    ) -> None:
        if len(points) > 1:
            dash = f' stroke-dasharray="{dashes}"' if dashes else ""
            line_style = f'fill="none" stroke="{colour}" stroke-width="{width:g}"{dash}'
            self.marks.append(f'<polyline points="{_coordinates(points)}" {line_style}/>')

    def area(self, points: Sequence[tuple[float, float]], colour: str) -> None:
        self.marks.append(
            f'<polygon points="{_coordinates(points)}" fill="{colour}" opacity="0.15"/>'
        )

    def interval(self, x0: float, x1: float, y: float, colour: str) -> None:
        self.path([(x0, y), (x1, y)], colour)
        for x in (x0, x1):
            self.path([(x, y - 4), (x, y + 4)], colour)

    def rectangle(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self.marks.append(f'<rect {_box(x, y, width, height)} fill="{colour}"/>')

    def cell(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A cell of a colour scale, the same on light and dark pages."""
        self.marks.append(f'<rect {_box(x, y, width, height)} style="fill:{colour}"/>')

    def frame(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        outline = f'fill="none" stroke="{colour}" stroke-width="2"'
        self.marks.append(f"<rect {_box(x, y, width, height)} {outline}/>")

    def hole(self, x: float, y: float, width: float, height: float, *, named: bool) -> None:
        """Mark of a cell without a score."""
        self.rectangle(x, y, width - 1, height - 1, "url(#hatched)")
        if named:
            self.text(x + width / 2, y + height / 2 + 4, NO_SCORE, anchor="middle", size=11)

    def mark(self, x: float, y: float, colour: str, shape: str) -> None:
        if shape == "circle":
            self.marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>')
            return
        corners = {
            "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
            "diamond": ((0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)),
            "triangle": ((0, -5), (5, 4), (-5, 4)),
        }[shape]
        points = _coordinates([(x + dx, y + dy) for dx, dy in corners])
        self.marks.append(f'<polygon points="{points}" fill="{colour}"/>')

    def drawing(self) -> Drawing:
        """The whole picture, on white or, where a reader prefers dark pages, on black."""
        body = "\n".join(self.marks)
        width = f"{self.width:.0f}"
        height = f"{self.y:.0f}"
        patterns = HATCHED if "#hatched" in body else ""
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif">\n'
            f'{DARK_STYLE}\n<rect width="100%" height="100%" fill="{PAGE_COLOUR}"/>{patterns}\n'
            f"{body}\n</svg>\n"
        )
        return Drawing(self.width, svg.encode())


def _dark_style() -> str:
    """Style sheet that changes the colours of a picture where a reader prefers dark pages."""
    rules = [
        f'[{attribute}="{light}"]{{{attribute}:{dark}}}'
        for light, dark in DARK_BY_COLOUR.items()
        for attribute in ("fill", "stroke")
    ]
    return f"<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>"


DARK_STYLE = _dark_style()


HATCHED = (
    '<defs><pattern id="hatched" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    f'<rect width="8" height="8" fill="#f3f4f6"/><rect width="2" height="8" fill="{MUTED_COLOUR}" opacity="0.5"/>'
    "</pattern></defs>"
)


def _box(x: float, y: float, width: float, height: float) -> str:
    """Place and size of a rectangle, as SVG's attributes."""
    return f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'


def _coordinates(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _width(text: str, size: float = TEXT_SIZE) -> float:
    return size * sum(_sign_width(sign) for sign in text)


def _sign_width(sign: str) -> float:
    return 1.0 if east_asian_width(sign) in "WF" else 0.56


def _cut(text: str, longest: int = LONGEST_NAME) -> str:
    text = masked(text)  # of a part of a secret nobody would know that it is one
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]}…{text[-longest // 2 + 1 :]}"


def _axis(
    values: Sequence[float], scale: Scale, *, tight: bool = False
) -> tuple[float, float, list[float]]:
    """The ends of an axis that holds these values, and its ticks; shares and scores have all of 0
    to 1.
    """
    low = min(values, default=0.0)
    high = max(values, default=1.0)
    if scale != "signed" and not tight and low >= 0 and high <= 1:
        return 0.0, 1.0, list(UNIT_TICKS)
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    steps = [power * factor for factor in (1, 2, 5, 10)]
    [step, *_] = [step for step in steps if step >= span / 4]
    if tight:
        first_tick = math.ceil(low / step - 1e-9)
        last_tick = math.floor(high / step + 1e-9)
        ticks = [index * step for index in range(first_tick, last_tick + 1)]
        return low, high if high > low else low + step, ticks
    first_tick = math.floor(low / step + 1e-9)
    last_tick = max(math.ceil(high / step - 1e-9), first_tick + 1)
    ticks = [index * step for index in range(first_tick, last_tick + 1)]
    return ticks[0], ticks[-1], ticks


def _tick(x: float, scale: Scale) -> str:
    text = f"{100 * x:.3g} %" if scale == "percent" else f"{round(x, 9):g}"
    return text.replace("-", MINUS)


def _written(x: float, scale: Scale) -> str:
    if math.isnan(x):
        return ""
    if scale == "percent":
        return percent(x)
    return fixed(x, signed=True) if scale == "signed" else number(x)


def _value_with_interval(estimate: Interval) -> str:
    return number(estimate.value) if math.isnan(estimate.low) else interval_text(estimate)


def _in_words(key: str, estimate: Interval, scale: Scale) -> str:
    if scale == "percent":
        text = percent_interval(estimate)
    else:
        text = interval_text(estimate, sign=scale == "signed")
    return f"{key} {text}".strip()


def _shades(
    cells: npt.NDArray[np.float64], *, centred: bool, by_column: bool
) -> npt.NDArray[np.float64]:
    """[row, column]: where each number lies on the colour scale, from 0 to 1; NaN where there is
    none.
    """
    scores = np.ma.masked_invalid(cells)
    if centred:
        edge = max(float(np.abs(scores).max()), LEAST_COLOUR_SPAN) if scores.count() else 1.0
        return np.asarray((scores / edge / 2 + 0.5).filled(np.nan))
    axis = 0 if by_column else None
    least_score = scores.min(axis=axis)
    span = np.maximum(scores.max(axis=axis) - least_score, LEAST_COLOUR_SPAN)
    return np.asarray(np.ma.asarray((scores - least_score) / span).filled(np.nan))


def _shade(place: float, colours: Sequence[str]) -> tuple[str, str]:
    """The colour at a place of a scale, and the colour of text that can be read on it."""
    position = min(max(place, 0.0), 1.0) * (len(colours) - 1)
    lower_colour = colours[math.floor(position)]
    upper_colour = colours[math.ceil(position)]
    upper_share = position % 1
    mixed = []
    for start in (0, 2, 4):
        lower_part = int(lower_colour[start : start + 2], 16)
        upper_part = int(upper_colour[start : start + 2], 16)
        mixed.append(lower_part * (1 - upper_share) + upper_part * upper_share)
    red, green, blue = mixed
    lightness = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
    hex_colour = "".join(f"{round(part):02x}" for part in mixed)
    return f"#{hex_colour}", CELL_INK if lightness > 0.5 else "#ffffff"
