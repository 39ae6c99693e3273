"""Figures, from tables to matplotlib figures. No file is written and no global state is touched."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    from selfprobe.stats.estimate import Estimate

INK, SELF, OTHERS, MUTED = "#1b1f24", "#1b7837", "#2166ac", "#8a8f98"
"""Text, the paper's green for self and blue for others, and what steps back; distinct without colour vision too."""

FAINT = 0.05
"""Ends of a diverging scale, at least: what is smaller stays pale."""


def short(name: str, longest: int = 26) -> str:
    """A model's name as an axis can hold it: without provider, cut in the middle."""
    last = name.rpartition("/")[2]
    return last if len(last) <= longest else f"{last[: longest // 2]}…{last[-longest // 2 + 1 :]}"


def heat_map(
    values: npt.ArrayLike,
    models: Sequence[str],
    *,
    title: str,
    low: npt.ArrayLike | None = None,
    high: npt.ArrayLike | None = None,
    holes: Mapping[tuple[str, str], str] | None = None,
    centred: bool = False,
) -> "Figure":
    """A matrix values[target, observer] with its numbers written in, as in the paper's Figures 8 to 12.

    Args:
        values: NaN is drawn as a hatched hole.
        models: Names, in order.
        title: What the numbers are.
        low, high: Interval ends, written small under the number.
        holes: (target, observer) → reason; listed under the figure.
        centred: Diverging colours around 0 (orange below, violet above) instead of a sequential scale.
    """
    figure, ax = new_axes(width=2.6 + 0.95 * len(models), height=2.2 + 0.75 * len(models))
    shown = np.asarray(values, dtype=float)
    finite = shown[np.isfinite(shown)]
    edge = max(float(np.abs(finite).max()), FAINT) if finite.size else 1.0
    limits = (-edge, edge) if centred else (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    image = ax.imshow(shown, cmap="PuOr" if centred else "cividis", vmin=limits[0], vmax=limits[1], aspect="auto")
    for (t, o), value in np.ndenumerate(shown):
        if not np.isfinite(value):
            ax.add_patch(_hatched(o, t))
            ax.text(o, t, "no\nscore", ha="center", va="center", fontsize=7, color=INK)
            continue
        red, green, blue, _ = image.cmap(image.norm(value))
        ink = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else INK
        text = f"{value:+.2f}" if centred else f"{value:.2f}"
        if low is not None and high is not None:
            text += f"\n{np.asarray(low)[t, o]:.2f}–{np.asarray(high)[t, o]:.2f}"
        ax.text(o, t, text, ha="center", va="center", fontsize=8, color=ink)
        if t == o:
            ax.add_patch(_frame(o, t, ink))
    names = [short(model) for model in models]
    ax.set_xticks(range(len(names)), names, rotation=35, ha="right")
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("observer (predicts)")
    ax.set_ylabel("target (is predicted)")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    figure.colorbar(image, ax=ax, fraction=0.05, pad=0.03)
    if holes:
        figure.supxlabel(f"hatched: {len(holes)} of {shown.size} cells without a finished run", fontsize=7, color=MUTED)
    return figure


def self_against_others(
    models: Sequence[str], own: "Sequence[Estimate]", others: "Sequence[Estimate]", *, title: str
) -> "Figure":
    """Each model's score on itself (green) and the other observers' on it (blue), with intervals (Figure 2)."""
    figure, ax = new_axes(width=6.4, height=1.4 + 0.5 * len(models))
    for offset, estimates, colour, marker, label in (
        (-0.14, own, SELF, "o", "predicts itself"),
        (0.14, others, OTHERS, "s", "mean of the others on it"),
    ):
        at = np.arange(len(models)) + offset
        middle = np.array([e.value for e in estimates])
        ends = np.array([[e.value - e.low, e.high - e.value] for e in estimates]).T.clip(min=0)
        ax.errorbar(middle, at, xerr=ends, fmt=marker, color=colour, label=label, capsize=3, markersize=5)
    ax.set_yticks(range(len(models)), [short(model) for model in models])
    ax.invert_yaxis()
    ax.grid(axis="x", color="#e4e6ea")
    ax.set_xlabel("score, 95 % interval by item")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    figure.legend(frameon=False, fontsize=8, loc="outside lower right", ncols=2)
    return figure


def advantages(models: Sequence[str], estimates: "Sequence[Estimate]", *, title: str) -> "Figure":
    """Advantage of each model at itself after removing skill and difficulty, with intervals around 0."""
    figure, ax = new_axes(width=6.4, height=1.3 + 0.4 * len(models))
    at = np.arange(len(models))
    middle = np.array([e.value for e in estimates])
    ends = np.array([[e.value - e.low, e.high - e.value] for e in estimates]).T.clip(min=0)
    ax.axvline(0, color=MUTED, linewidth=1)
    ax.errorbar(middle, at, xerr=ends, fmt="D", color=SELF, capsize=3, markersize=5)
    ax.set_yticks(at, [short(model) for model in models])
    ax.invert_yaxis()
    ax.grid(axis="x", color="#e4e6ea")
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


def _hatched(x: int, y: int) -> "Patch":
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor="#f3f4f6", edgecolor=MUTED, hatch="///", linewidth=0)


def _frame(x: int, y: int, colour: str) -> "Patch":
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, fill=False, edgecolor=colour, linewidth=1.8)
