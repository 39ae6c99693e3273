"""The figure kit: six shapes, each a function from data to a `Picture`.

`heat_map`, `interval_rows`, `bar_rows`, `curves`, `calibration_curves` and `scatter` write SVG
themselves: a page of thirty figures is drawn in a tenth of a second, dark where a reader prefers
dark pages. Names that others chose are cleaned first.
"""

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal
from unicodedata import east_asian_width
from urllib.parse import parse_qsl

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from selfprobe.page.numerals import MINUS, fixed, number, percent, percents, shown
from selfprobe.page.numerals import Interval as Interval
from selfprobe.text.safe import clean, masked

INK, SELF, OTHERS, MUTED = "#1b1f24", "#1b7837", "#2166ac", "#8a8f98"
"""Text, the paper's green for self and blue for others, and what steps back; distinct without
colour vision too.
"""

GRID = "#e4e6ea"
PAPER = "#fff"
CELL_INK = "#16191d"
"""Dark text on a coloured cell, which stays dark on a dark page."""
DARK = {
    PAPER: "#15181c",
    INK: "#e6e9ee",
    GRID: "#39414c",
    SELF: "#63c17f",
    OTHERS: "#6fa8dc",
    MUTED: "#a2abb7",
    "#b35806": "#e59a55",
    "#762a83": "#c79ad6",
    "#01665e": "#4db6ac",
    "#c51b7d": "#f1a1cf",
    "#8c510a": "#d8b365",
}
"""Colour → the one that takes its place where a reader prefers dark pages."""
FAINT = 0.05
"""Least distance of the ends of a diverging scale from 0: smaller values stay pale."""

SERIES = (
    (SELF, "circle", ""),
    (OTHERS, "square", "7 3"),
    (MUTED, "diamond", "2 3"),
    ("#b35806", "triangle", "9 3 2 3"),
    ("#762a83", "circle", "4 2"),
    ("#01665e", "square", "1 2"),
    ("#c51b7d", "diamond", "9 3"),
    ("#8c510a", "triangle", "5 5"),
    (INK, "circle", "1 4"),
    (INK, "square", "3 1"),
)
"""Colour, mark and dashes of the first series, the second, …: distinguishable without colours."""

SEQUENTIAL = (
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
DIVERGING = (
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

WIDTH, TEXT, SMALL = 450.0, 14.0, 12.0
"""Pixels of a picture that fills half a page or a telephone, and of its letters."""

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
        return self.drawing.width > 1.5 * WIDTH


def cut_name(name: str, longest: int = 26) -> str:
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
        alike = [
            dict(parse_qsl(other.partition("?")[2]))
            for other in models
            if other.partition("?")[0] == stem
        ]
        differ = [
            f"{k}={v}" for k, v in parse_qsl(settings) if any(other.get(k) != v for other in alike)
        ]
        names[model] = f"{stem}?{'&'.join(differ)}" if differ else stem
    return names if len(set(names.values())) == len(names) else {model: model for model in models}


def cut_names(models: Sequence[str]) -> list[str]:
    """Names of models, short enough for an axis."""
    names = model_names(models)
    return [cut_name(names[model]) for model in models]


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
    series = list(dict.fromkeys(key for row in rows.values() for key in row))
    names = {row: [_cut(line) for line in row.split("\n")] for row in rows}
    left = 10 + max((_width(line) for lines in names.values() for line in lines), default=0)
    right = (
        WIDTH
        - 14
        - max(
            _width(_written(e.value, scale), SMALL) for row in rows.values() for e in row.values()
        )
    )
    ends = [
        x
        for row in rows.values()
        for e in row.values()
        for x in (e.value, e.low, e.high)
        if math.isfinite(x)
    ]
    low, high, ticks = _axis(
        [*ends, *([] if line is None else [line]), *([0.0] if bars else [])], scale
    )
    sheet = _Sheet(WIDTH, title)
    styles = {key: (*SERIES[i % len(SERIES)][:2], "") for i, key in enumerate(series)}
    sheet.legend(styles if len(series) > 1 else {}, bars=bars)
    step, top = 19.0, sheet.y + 4
    tall = {
        row: max(step * max(len(marks), 1) + 9, 16.0 * len(names[row]) + 8)
        for row, marks in rows.items()
    }
    height = sum(tall.values())

    def at(x: float) -> float:
        return left + 12 + (x - low) / (high - low) * (right - left - 20)

    for tick in ticks:
        sheet.line(at(tick), top, at(tick), top + height, GRID)
        sheet.text(at(tick), top + height + 16, _tick(tick, scale), anchor="middle", size=SMALL)
    if line is not None:
        sheet.line(at(line), top, at(line), top + height, MUTED, dashes="4 3")
    y = top
    for row, estimates in rows.items():
        middle, end = y + tall[row] / 2 + 5 - 8 * (len(names[row]) - 1), y + tall[row]
        for place, line_of_name in enumerate(names[row]):
            sheet.text(left, middle + 16 * place, line_of_name, anchor="end")
        y += (tall[row] - step * max(len(estimates), 1) - 9) / 2
        for key, e in estimates.items():
            y += step
            colour, mark, _ = styles[key]
            if math.isnan(e.value):
                sheet.text(at(low), y, "no score", size=SMALL, colour=MUTED)
                continue
            if bars:
                sheet.rectangle(
                    min(at(0), at(e.value)), y - 11, abs(at(e.value) - at(0)), 13, colour
                )
            if not math.isnan(e.low):
                sheet.interval(at(e.low), at(e.high), y - 4.5, INK if bars else colour)
            if not bars:
                sheet.mark(at(e.value), y - 4.5, colour, mark)
            sheet.text(right, y, _written(e.value, scale), size=SMALL)
        y = end
    sheet.y = top + height + 22
    sheet.footing((left + right) / 2, axis)
    words = "; ".join(
        f"{', '.join(names[row])}: {', '.join(_in_words(key, e, scale) for key, e in es.items())}"
        for row, es in rows.items()
    )
    return Picture(name, f"{caption} {words}", caption, sheet.drawing())


@dataclass(frozen=True)
class _Plane:
    """Place of a picture's axes: from numbers to pixels."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    top: float
    height: float
    left: float = 58.0
    right: float = WIDTH - 16

    def x(self, value: float) -> float:
        """Pixels from the left."""
        return self.left + (value - self.x_low) / (self.x_high - self.x_low) * (
            self.right - self.left
        )

    def y(self, value: float) -> float:
        """Pixels from above."""
        return (
            self.top + self.height - (value - self.y_low) / (self.y_high - self.y_low) * self.height
        )

    @property
    def bottom(self) -> float:
        """Pixels of the lower end from above."""
        return self.top + self.height

    def draw_grid(
        self, sheet: "_Sheet", x_ticks: Mapping[float, str], y_ticks: Mapping[float, str], up: str
    ) -> None:
        """Lines and numbers of both axes, and the title of the y axis."""
        sheet.text(8, self.top - 10, up, size=SMALL)
        for value, name in x_ticks.items():
            sheet.line(self.x(value), self.top, self.x(value), self.bottom, GRID)
            sheet.text(self.x(value), self.bottom + 16, name, anchor="middle", size=SMALL)
        for value, name in y_ticks.items():
            sheet.line(self.left, self.y(value), self.right, self.y(value), GRID)
            sheet.text(self.left - 6, self.y(value) + 4, name, anchor="end", size=SMALL)

    def draw_across(self, sheet: "_Sheet", across: str) -> None:
        """The title of the x axis."""
        sheet.y = self.bottom + 22
        sheet.footing((self.left + self.right) / 2, across)


def _tick_names(ticks: Sequence[float]) -> dict[float, str]:
    return {tick: _tick(tick, "score") for tick in ticks}


UNIT_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


def curves(
    name: str,
    series: Mapping[str, tuple[Sequence[float], Sequence[Interval]]],
    *,
    caption: str,
    across: str,
    up: str,
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
        across, up: Titles of the axes.
        title: Above it.
        diagonal: Draw y = x, on axes from 0 to 1.
        marks: Whether each estimate has a mark.
        alt: The picture in words; without it every estimate is listed.
        shaded: Ends of a span of the x axis.
        ticks: Place along the x axis → its name, where places are no plain numbers.
        line: A height at which nothing is shown, such as 0 or guessing.
    """
    xs = [float(x) for at, _ in series.values() for x in at]
    ys = [
        y
        for _, es in series.values()
        for e in es
        for y in (e.value, e.low, e.high)
        if math.isfinite(y)
    ]
    if line is not None:
        ys.append(line)
    x_low, x_high, x_ticks = (
        (0.0, 1.0, list(UNIT_TICKS)) if diagonal else _axis(xs, "score", tight=True)
    )
    y_low, y_high, y_ticks = (0.0, 1.0, list(UNIT_TICKS)) if diagonal else _axis(ys, "score")
    x_names = dict(ticks) if ticks else _tick_names(x_ticks)
    if ticks:
        x_low, x_high = _with_margin(min(ticks), max(ticks))
    sheet = _Sheet(WIDTH, title)
    sheet.legend({key: SERIES[i % len(SERIES)] for i, key in enumerate(series)})
    plane = _Plane(
        x_low, x_high, y_low, y_high, top=sheet.y + 24, height=330.0 if diagonal else 240.0
    )
    plane.draw_grid(sheet, x_names, _tick_names(y_ticks), up)
    if diagonal:
        sheet.line(plane.x(0), plane.y(0), plane.x(1), plane.y(1), MUTED)
    if line is not None:
        sheet.line(plane.left, plane.y(line), plane.right, plane.y(line), MUTED, dashes="4 3")
    if shaded:
        first, last = (min(max(plane.x(x), plane.left), plane.right) for x in shaded)
        sheet.area(
            [(first, plane.top), (last, plane.top), (last, plane.bottom), (first, plane.bottom)],
            MUTED,
        )
    for i, (at, estimates) in enumerate(series.values()):
        colour, mark, dashes = SERIES[i % len(SERIES)]
        points = [
            (plane.x(x), e) for x, e in zip(at, estimates, strict=True) if math.isfinite(e.value)
        ]
        banded = [(x, e) for x, e in points if not math.isnan(e.low)]
        if len(banded) > 1:
            edge = [(x, plane.y(e.high)) for x, e in banded] + [
                (x, plane.y(e.low)) for x, e in reversed(banded)
            ]
            sheet.area(edge, colour)
        sheet.path([(x, plane.y(e.value)) for x, e in points], colour, dashes)
        for x, e in points if marks else ():
            sheet.mark(x, plane.y(e.value), colour, mark)
    plane.draw_across(sheet, across)
    words = "; ".join(
        f"{key}: {', '.join(f'{x:g} {_plain(e)}' for x, e in zip(at, es, strict=True))}"
        for key, (at, es) in series.items()
    )
    return Picture(name, alt or f"{caption} {words}", caption, sheet.drawing())


def _with_margin(low: float, high: float) -> tuple[float, float]:
    """Ends of an axis with room beside its first and last place."""
    margin = 0.08 * ((high - low) or 1.0)
    return low - margin, high + margin


def scatter(
    name: str,
    groups: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    caption: str,
    across: str,
    up: str,
    title: str = "",
) -> Picture:
    """Points of several groups, each with a colour and a mark of its own.

    Args:
        name: Stem of its file.
        groups: Name → places of its points along the x and the y axis.
        caption: What a reader sees under it.
        across, up: Titles of the axes.
        title: Above it.
    """
    xs = [float(x) for places, _ in groups.values() for x in places]
    ys = [float(y) for _, places in groups.values() for y in places]
    x_low, x_high, x_ticks = _axis(xs, "signed")
    y_low, y_high, y_ticks = _axis(ys, "signed")
    sheet = _Sheet(WIDTH, title)
    sheet.legend({key: (*SERIES[i % len(SERIES)][:2], "") for i, key in enumerate(groups)})
    plane = _Plane(x_low, x_high, y_low, y_high, top=sheet.y + 24, height=300.0)
    plane.draw_grid(sheet, _tick_names(x_ticks), _tick_names(y_ticks), up)
    for i, (x_places, y_places) in enumerate(groups.values()):
        colour, mark, _ = SERIES[i % len(SERIES)]
        for x, y in zip(x_places, y_places, strict=True):
            sheet.mark(plane.x(float(x)), plane.y(float(y)), colour, mark)
    plane.draw_across(sheet, across)
    counts = "; ".join(f"{key}: {len(places)} points" for key, (places, _) in groups.items())
    return Picture(name, f"{caption} {counts}", caption, sheet.drawing())


def calibration_curves(
    name: str,
    series: Mapping[str, tuple[Sequence[float], Sequence[Interval]]],
    *,
    caption: str,
    across: str,
    up: str,
    title: str = "",
) -> Picture:
    """Stated probabilities against observed shares, with the diagonal; arguments as of `curves`."""
    return curves(name, series, caption=caption, across=across, up=up, title=title, diagonal=True)


MOST_WRITTEN = 900
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
    across: str = "observer (predicts)",
    down: str = "target (is predicted)",
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
        across, down: Titles of the axes; "" for none.
    """
    cells = np.asarray(values, dtype=float)
    ends = (
        None
        if low is None or high is None
        else (np.asarray(low, dtype=float), np.asarray(high, dtype=float))
    )
    heads, square = list(rows if columns is None else columns), columns is None
    notes = {row: f"no model {x:.2f}" for row, x in (under or {}).items() if math.isfinite(x)}
    left = (
        16
        + 18 * bool(down)
        + max(max(_width(_cut(row)), _width(notes.get(row, ""), SMALL)) for row in rows)
    )
    written = cells.size <= MOST_WRITTEN
    side, tall = (78.0, 44.0) if ends is not None else (64.0, 36.0)
    if not written:
        side, tall, notes = 20.0, 20.0, {}
    foot = max(_width(_cut(head)) for head in heads) * 0.6 + 22
    sheet = _Sheet(left + side * len(heads) + 24, title)
    top = sheet.y + 4
    shades = _shades(cells, centred=centred, by_column=by_column)
    for (r, c), value in np.ndenumerate(cells):
        x, y = left + side * c, top + tall * r
        if not math.isfinite(value):
            sheet.hole(x, y, side, tall, named=written)
            continue
        colour, ink = _shade(float(shades[r, c]), DIVERGING if centred else SEQUENTIAL)
        sheet.cell(x, y, side - 1, tall - 1, colour)
        if written:
            sheet.text(
                x + side / 2,
                y + tall / 2 + (5 if ends is None else -2),
                fixed(float(value), signed=centred),
                anchor="middle",
                colour=ink,
            )
        if written and ends is not None and math.isfinite(ends[0][r, c]):
            text = f"{fixed(float(ends[0][r, c]))}–{fixed(float(ends[1][r, c]))}"
            sheet.text(x + side / 2, y + tall / 2 + 14, text, anchor="middle", size=11, colour=ink)
        if square and r == c:
            sheet.frame(x + 2, y + 2, side - 5, tall - 5, ink)
    if framed is not None:
        sheet.frame(left, top + tall * framed, side * len(heads) - 1, tall - 1, SELF)
    for r, row in enumerate(rows):
        y = top + tall * (r + 0.5) + 5
        sheet.text(left - 6, y - 8 * (row in notes), _cut(row), anchor="end")
        if row in notes:
            sheet.text(left - 6, y + 8, notes[row], anchor="end", size=SMALL, colour=MUTED)
    bottom = top + tall * len(rows)
    for c, head in enumerate(heads):
        sheet.text(left + side * (c + 0.5) + 4, bottom + 16, _cut(head), anchor="end", turned=-35)
    if down:
        sheet.text(14, (top + bottom) / 2, down, anchor="middle", size=SMALL, turned=-90)
    sheet.y = bottom + foot
    sheet.footing(left + side * len(heads) / 2, across)
    every = [(r, c) for r, c in np.ndindex(cells.shape) if math.isfinite(cells[r, c])]
    listed = every if len(every) <= 25 or not square else [(r, c) for r, c in every if r == c]
    words = "; ".join(
        f"{heads[c]} on {rows[r]} {fixed(float(cells[r, c]), signed=centred)}" for r, c in listed
    )
    return Picture(name, f"{caption} {words}", caption, sheet.drawing())


class _Sheet:
    """SVG that grows downwards: `y` is where the next thing goes."""

    def __init__(self, width: float, title: str) -> None:
        self.width, self.y, self.marks = max(width, _width(title) + 16), 8.0, list[str]()
        if title:
            self.y = 24
            self.text(8, 18, title)
            self.y += 8

    def legend(self, names: Mapping[str, tuple[str, str, str]], *, bars: bool = False) -> None:
        """Names with their marks, in as many lines as they need."""
        x, self.y = 12.0, self.y + (18 if names else 0)
        for name, (colour, mark, dashes) in names.items():
            text = _cut(name, 60)
            if x > 12 and x + _width(text, SMALL) + 30 > self.width:
                x, self.y = 12.0, self.y + 18
            if bars:
                self.rectangle(x, self.y - 10, 14, 11, colour)
            else:
                self.path([(x - 4, self.y - 4), (x + 18, self.y - 4)], colour, dashes)
                self.mark(x + 7, self.y - 4, colour, mark)
            self.text(x + 22, self.y, text, size=SMALL)
            x += _width(text, SMALL) + 40
        self.y += 8 if names else 0

    def footing(self, x: float, text: str) -> None:
        """The title of the x axis."""
        if text:
            self.y += 12
            self.text(x, self.y, text, anchor="middle", size=SMALL)
        self.y += 10

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: str = "start",
        size: float = TEXT,
        colour: str = INK,
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
            self.marks.append(
                f'<polyline points="{_points(points)}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dash}/>'
            )

    def area(self, points: Sequence[tuple[float, float]], colour: str) -> None:
        self.marks.append(f'<polygon points="{_points(points)}" fill="{colour}" opacity="0.15"/>')

    def interval(self, x0: float, x1: float, y: float, colour: str) -> None:
        self.path([(x0, y), (x1, y)], colour)
        for x in (x0, x1):
            self.path([(x, y - 4), (x, y + 4)], colour)

    def rectangle(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self.marks.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
        )

    def cell(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A cell of a colour scale, the same on light and dark pages."""
        shape = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self.marks.append(f'<rect {shape} style="fill:{colour}"/>')

    def frame(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        shape = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self.marks.append(f'<rect {shape} fill="none" stroke="{colour}" stroke-width="2"/>')

    def hole(self, x: float, y: float, width: float, height: float, *, named: bool) -> None:
        """Mark of a cell without a score."""
        self.rectangle(x, y, width - 1, height - 1, "url(#hatched)")
        if named:
            self.text(x + width / 2, y + height / 2 + 4, "no score", anchor="middle", size=11)

    def mark(self, x: float, y: float, colour: str, shape: str) -> None:
        if shape == "circle":
            self.marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>')
            return
        corners = {
            "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
            "diamond": ((0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)),
            "triangle": ((0, -5), (5, 4), (-5, 4)),
        }[shape]
        self.marks.append(
            f'<polygon points="{_points([(x + dx, y + dy) for dx, dy in corners])}" fill="{colour}"/>'
        )

    def drawing(self) -> Drawing:
        """The whole picture, on white or, where a reader prefers dark pages, on black."""
        body = "\n".join(self.marks)
        head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}" height="{self.y:.0f}"'
        box = f'viewBox="0 0 {self.width:.0f} {self.y:.0f}" font-family="system-ui, sans-serif"'
        back = f'<rect width="100%" height="100%" fill="{PAPER}"/>{HATCHED if "#hatched" in body else ""}'
        return Drawing(
            self.width, f"{head} {box}>\n{DARK_STYLE}\n{back}\n{body}\n</svg>\n".encode()
        )


def _dark_style() -> str:
    """Style sheet that changes the colours of a picture where a reader prefers dark pages."""
    rules = [
        f'[{attribute}="{light}"]{{{attribute}:{dark}}}'
        for light, dark in DARK.items()
        for attribute in ("fill", "stroke")
    ]
    return f"<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>"


DARK_STYLE = _dark_style()


HATCHED = (
    '<defs><pattern id="hatched" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    f'<rect width="8" height="8" fill="#f3f4f6"/><rect width="2" height="8" fill="{MUTED}" opacity="0.5"/>'
    "</pattern></defs>"
)


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _width(text: str, size: float = TEXT) -> float:
    return size * sum(1.0 if east_asian_width(sign) in "WF" else 0.56 for sign in text)


def _cut(text: str, longest: int = 26) -> str:
    text = masked(text)  # of a part of a secret nobody would know that it is one
    return text if len(text) <= longest else f"{text[: longest // 2]}…{text[-longest // 2 + 1 :]}"


def _axis(
    values: Sequence[float], scale: Scale, *, tight: bool = False
) -> tuple[float, float, list[float]]:
    """The ends of an axis that holds these values, and its ticks; shares and scores have all of 0
    to 1.
    """
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if scale != "signed" and not tight and low >= 0 and high <= 1:
        return 0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= span / 4)
    if tight:
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    else:
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1) if not tight else last
    ticks = [i * step for i in range(first, last + 1)]
    return (
        (low, high if high > low else low + step, ticks) if tight else (ticks[0], ticks[-1], ticks)
    )


def _tick(x: float, scale: Scale) -> str:
    text = f"{100 * x:.3g} %" if scale == "percent" else f"{round(x, 9):g}"
    return text.replace("-", MINUS)


def _written(x: float, scale: Scale) -> str:
    if math.isnan(x):
        return ""
    if scale == "percent":
        return percent(x)
    return fixed(x, signed=True) if scale == "signed" else number(x)


def _plain(e: Interval) -> str:
    return number(e.value) if math.isnan(e.low) else shown(e)


def _in_words(key: str, e: Interval, scale: Scale) -> str:
    return (
        f"{key} {percents(e) if scale == 'percent' else shown(e, sign=scale == 'signed')}".strip()
    )


def _shades(
    cells: npt.NDArray[np.float64], *, centred: bool, by_column: bool
) -> npt.NDArray[np.float64]:
    """[row, column]: where each number lies on the colour scale, from 0 to 1; NaN where there is
    none.
    """
    seen = np.ma.masked_invalid(cells)
    if centred:
        edge = max(float(np.abs(seen).max()), FAINT) if seen.count() else 1.0
        return np.asarray((seen / edge / 2 + 0.5).filled(np.nan))
    least, most = (seen.min(axis=0), seen.max(axis=0)) if by_column else (seen.min(), seen.max())
    return np.asarray(
        np.ma.asarray((seen - least) / np.maximum(most - least, FAINT)).filled(np.nan)
    )


def _shade(place: float, colours: Sequence[str]) -> tuple[str, str]:
    """The colour at a place of a scale, and the colour of text that can be read on it."""
    at = min(max(place, 0.0), 1.0) * (len(colours) - 1)
    one, other = colours[math.floor(at)], colours[math.ceil(at)]
    mixed = [
        int(one[i : i + 2], 16) * (1 - at % 1) + int(other[i : i + 2], 16) * (at % 1)
        for i in (0, 2, 4)
    ]
    light = (0.299 * mixed[0] + 0.587 * mixed[1] + 0.114 * mixed[2]) / 255
    return (
        f"#{''.join(f'{round(part):02x}' for part in mixed)}",
        CELL_INK if light > 0.5 else "#ffffff",
    )
