"""The figure kit and the figures of a matrix. No file is written and no global state is touched.

Names that others chose go through `label` before they are drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from selfprobe.safe import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SELF, OTHERS, MUTED = "#1b1f24", "#1b7837", "#2166ac", "#8a8f98"
"""Text, the paper's green for self and blue for others, and what steps back; distinct without colour vision too."""

GRID = "#e4e6ea"
FAINT = 0.05
"""Ends of a diverging scale, at least: what is smaller stays pale."""

LEGEND_MARK, LEGEND_LETTER, LEGEND_LINE = 0.55, 0.063, 0.16
"""Inches of a legend at font size 8: beside a name, of a letter, of a line."""


class Interval(Protocol):
    """An `Estimate`, or a table's row with these columns; NaN where undefined."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def short(name: str, longest: int = 26) -> str:
    """A model's name as an axis can hold it: without provider, cut in the middle."""
    last = name.rpartition("/")[2]
    return last if len(last) <= longest else f"{last[: longest // 2]}…{last[-longest // 2 + 1 :]}"


def called(models: Sequence[str]) -> dict[str, str]:
    """Each model → what sentences call it: a planted one without its settings, where no other is called the same."""
    stems = [model.partition("?")[0] for model in models]
    return {m: stem if stems.count(stem) == 1 else m for m, stem in zip(models, stems, strict=True)}


def _names(models: Sequence[str]) -> list[str]:
    """As an axis can hold them."""
    names = called(models)
    return [short(names[model]) for model in models]


def label(text: object) -> str:
    """A text of others as matplotlib draws it: no formula between dollar signs, no control character."""
    drawn = plain(str(text)).replace("$", r"\$")
    return f" {drawn}" if drawn.startswith("_") else drawn  # a legend leaves out what begins with _


def heat_map(
    values: npt.ArrayLike,
    models: Sequence[str],
    *,
    title: str,
    low: npt.ArrayLike | None = None,
    high: npt.ArrayLike | None = None,
    holes: Mapping[tuple[str, str], str] | None = None,
    centred: bool = False,
    marks: Mapping[str, float] | None = None,
    baselines: Mapping[str, float] | None = None,
) -> "Figure":
    """A matrix values[target, observer] with its numbers written in, as in the paper's Figures 8 to 12.

    Args:
        values: NaN is drawn as a hatched hole.
        models: Names, in order.
        title: What the numbers are.
        low, high: Interval ends, written small under the number.
        holes: (target, observer) → reason; listed under the figure.
        marks: Scores that are marked on the colour scale, by name, such as chance.
        baselines: Model → what needs no model gets on it; written beside its name.
        centred: Diverging colours around 0 (orange below, violet above) instead of a sequential scale.
    """
    figure, ax = new_axes(width=2.6 + 0.95 * len(models), height=2.2 + 0.75 * len(models))
    shown = np.asarray(values, dtype=float)
    finite = shown[np.isfinite(shown)]
    edge = max(float(np.abs(finite).max()), FAINT) if finite.size else 1.0
    limits = (-edge, edge) if centred else (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    image = ax.imshow(shown, cmap="PuOr" if centred else "cividis", vmin=limits[0], vmax=limits[1], aspect="auto")

    def text(t: int, o: int) -> str:
        ends = "" if low is None or high is None else f"\n{np.asarray(low)[t, o]:.2f}–{np.asarray(high)[t, o]:.2f}"
        return f"{shown[t, o]:{'+' if centred else ''}.2f}{ends}"

    write_cells(ax, image, shown, text)
    names = [label(name) for name in _names(models)]
    ax.set_xticks(range(len(names)), names, rotation=35, ha="right")
    known = {model: f"\nno model {value:.2f}" for model, value in (baselines or {}).items() if np.isfinite(value)}
    ax.set_yticks(range(len(names)), [name + known.get(model, "") for name, model in zip(names, models, strict=True)])
    ax.set_xlabel("observer (predicts)")
    ax.set_ylabel("target (is predicted)")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    scale = figure.colorbar(image, ax=ax, fraction=0.05, pad=0.03).ax
    for name, value in (marks or {}).items():
        if limits[0] <= value <= limits[1]:
            _mark(scale, name, value)
    if holes:
        figure.supxlabel(f"hatched: {len(holes)} of {shown.size} cells without a finished run", fontsize=7, color=MUTED)
    return figure


def _mark(scale: "Axes", name: str, value: float) -> None:
    """A line on a colour scale, with its name."""
    scale.axhline(value, color="white", linewidth=2.5)
    scale.axhline(value, color=INK, linewidth=1)
    scale.text(-0.25, value, label(name), transform=scale.get_yaxis_transform(), ha="right", va="center", fontsize=7)


def score_table(
    rows: Sequence[Sequence[Interval]], names: Sequence[str], columns: Sequence[str], *, title: str, framed: int
) -> "Figure":
    """A table of scores [row, column] with intervals, coloured within each column; holes are hatched, one row framed.

    Args:
        rows: In order, the first on top.
        names: Of the rows.
        columns: Of the columns.
        title: What the numbers are.
        framed: Which row is of another kind.
    """
    from matplotlib.patches import Rectangle

    figure, ax = new_axes(width=2.8 + 1.1 * len(columns), height=1.6 + 0.5 * len(rows))
    values, low, high = (np.array([[getattr(e, end) for e in row] for row in rows]) for end in ("value", "low", "high"))
    seen = np.ma.masked_invalid(values)
    least, most = seen.min(axis=0), seen.max(axis=0)
    shade = ((seen - least) / np.maximum(most - least, FAINT)).filled(np.nan)
    image = ax.imshow(shade, cmap="cividis", vmin=0, vmax=1, aspect="auto")

    def text(y: int, x: int) -> str:
        ends = "" if np.isnan(low[y, x]) else f"\n{low[y, x]:.2f}–{high[y, x]:.2f}"
        return f"{values[y, x]:.3f}{ends}"

    write_cells(ax, image, shade, text, diagonal=False)
    ax.add_patch(Rectangle((-0.5, framed - 0.49), len(columns), 0.98, fill=False, edgecolor=SELF, linewidth=2.5))
    ax.set_xticks(range(len(columns)), [label(column) for column in columns])
    ax.set_yticks(range(len(names)), [label(name) for name in names])
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def write_cells(
    ax: "Axes",
    image: Any,
    values: npt.NDArray[np.float64],
    text: Callable[[int, int], str],
    *,
    diagonal: bool = True,
) -> None:
    """Write into each cell (row, column) of a drawn matrix; holes are hatched, the diagonal is framed if wanted."""
    from matplotlib.patches import Rectangle

    for (y, x), value in np.ndenumerate(values):
        if not np.isfinite(value):
            hole: dict[str, Any] = {"facecolor": "#f3f4f6", "edgecolor": MUTED, "hatch": "///", "linewidth": 0}
            ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **hole))
            ax.text(x, y, "no\nscore", ha="center", va="center", fontsize=7, color=INK)
            continue
        red, green, blue, _ = image.cmap(image.norm(value))
        ink = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else INK
        ax.text(x, y, text(y, x), ha="center", va="center", fontsize=8, color=ink)
        if diagonal and x == y:
            ax.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, fill=False, edgecolor=ink, linewidth=1.8))


def dots(
    ax: "Axes",
    at: npt.ArrayLike,
    estimates: Sequence[Interval],
    *,
    colour: str,
    marker: str = "o",
    name: str = "",
    upright: bool = False,
    joined: bool = False,
) -> None:
    """A dot with its interval for each estimate, in rows at the heights `at`, or upright beside one another.

    Args:
        ax: Where.
        at: Places on the other axis.
        estimates: An undefined value has no dot, an undefined interval no line.
        colour, marker: Of all.
        name: In the legend.
        upright: Values go upwards.
        joined: With a line from dot to dot.
    """
    middle, ends = _middle_and_ends(estimates)
    how: dict[str, Any] = {"fmt": f"{marker}-" if joined else marker, "capsize": 3, "markersize": 5}
    if upright:
        ax.errorbar(at, middle, yerr=ends, color=colour, label=name, **how)
    else:
        ax.errorbar(middle, at, xerr=ends, color=colour, label=name, **how)


def bars(
    ax: "Axes",
    at: npt.ArrayLike,
    estimates: Sequence[Interval],
    *,
    colours: str | Sequence[str],
    width: float,
    name: str = "",
    upright: bool = False,
) -> None:
    """A bar from 0 with its interval for each estimate, lying or upright; an undefined value has no bar."""
    middle, ends = _middle_and_ends(estimates)
    if upright:
        ax.bar(at, np.nan_to_num(middle), width=width, color=colours, label=name)
        ax.errorbar(at, middle, yerr=ends, fmt="none", ecolor=INK, capsize=2, linewidth=1)
    else:
        ax.barh(at, np.nan_to_num(middle), height=width, color=colours, label=name)
        ax.errorbar(middle, at, xerr=ends, fmt="none", ecolor=INK, capsize=2, linewidth=1)


def name_rows(ax: "Axes", names: Sequence[object], *, grid: bool = True) -> None:
    """Names of others down the side, the first on top."""
    ax.set_yticks(range(len(names)), [label(name) for name in names])
    ax.invert_yaxis()
    if grid:
        ax.grid(axis="x", color=GRID)
        ax.set_axisbelow(True)


def self_against_others(
    models: Sequence[str], own: Sequence[Interval], others: Sequence[Interval], *, title: str
) -> "Figure":
    """Each model's score on itself (green) and the other observers' on it (blue), with intervals (Figure 2)."""
    figure, ax = new_axes(width=6.4, height=1.4 + 0.5 * len(models))
    at = np.arange(len(models))
    dots(ax, at - 0.14, own, colour=SELF, name="predicts itself")
    dots(ax, at + 0.14, others, colour=OTHERS, marker="s", name="mean of the others on it")
    name_rows(ax, _names(models))
    ax.set_xlabel("score, 95 % interval by item")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    figure.legend(frameon=False, fontsize=8, loc="outside lower right", ncols=2)
    return figure


def advantages(models: Sequence[str], estimates: Sequence[Interval], *, title: str) -> "Figure":
    """Advantage of each model at itself after removing skill and difficulty, with intervals around 0."""
    figure, ax = new_axes(width=6.4, height=1.3 + 0.4 * len(models))
    ax.axvline(0, color=MUTED, linewidth=1)
    dots(ax, np.arange(len(models)), estimates, colour=SELF, marker="D")
    name_rows(ax, _names(models))
    ax.set_xlabel("self advantage, 95 % interval by item")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def new_axes(*, width: float, height: float) -> "tuple[Figure, Axes]":
    """A figure of one plot in the house's look; sizes in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", dpi=110)
    ax = figure.add_subplot()
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return figure, ax


def legend_below(figure: "Figure", ax: "Axes") -> None:
    """The legend of `ax` under the whole figure, each name once, in as many columns as the figure is wide."""
    found = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    if not found:
        return
    wide = LEGEND_MARK + LEGEND_LETTER * max(map(len, found))
    columns = min(4, len(found), max(1, int(figure.get_figwidth() // wide)))
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE * (-(-len(found) // columns) - 1))
    placed: dict[str, Any] = {"loc": "outside lower center", "ncols": columns}
    figure.legend(list(found.values()), list(found), frameon=False, fontsize=8, **placed)


def _middle_and_ends(estimates: Sequence[Interval]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Values [estimate], and how far the interval goes below and above them [2, estimate]; NaN where undefined."""
    middle, low, high = np.array([(e.value, e.low, e.high) for e in estimates], dtype=float).reshape(-1, 3).T
    return middle, np.array([middle - low, high - middle]).clip(min=0)
