"""Figures of several runs side by side (paper 004: figures 1, 2, 3, 6, 7, 12 to 23 and table 2). No file is written."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from selfprobe.plots import GRID, INK, MUTED, OTHERS, SELF, dots, label, legend_below, name_rows
from selfprobe.preferences.figures import ASKED, panels, rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = (
    ("supervised", SELF, "o"),
    ("unsupervised", OTHERS, "s"),
    ("unsupervised, flipped", "#92c5de", "s"),
    ("prompting", ASKED, "^"),
    ("direct scoring", "#e08214", "v"),
    ("G-Eval", "#fdb863", "D"),
    ("fine-tuned judge", "#1b7837", "P"),
    ("fine-tuned judge, all weights", "#a6dba0", "X"),
    ("no model (length)", MUTED, "x"),
    ("no model (TF-IDF)", INK, "+"),
)
"""Methods of a figure by size, with colour and marker."""
FAMILIES = ("#1b7837", "#2166ac", "#b35806", "#762a83", "#c51b7d", "#35978f")


def by_size(table: pd.DataFrame, *, title: str, metric: str = "f1") -> "Figure":
    """A score against the model's parameters: a panel a family, a line a method, 95 % intervals.

    `table` has family, parameters, method, metric, value, low, high; models of unknown size are left out.
    """
    rows = table[(table.metric == metric) & table.parameters.notna()]
    figure, drawn = panels(list(dict.fromkeys(rows.family)), width=3.3, height=3.0, left=0.6)
    there = [line for line in LINES if line[0] in set(rows.method)]
    for family, ax in drawn.items():
        mine = rows[rows.family == family]
        for k, (method, colour, marker) in enumerate(there):
            line = mine[mine.method == method].sort_values("parameters")
            beside = 1 + 0.02 * (k - (len(there) - 1) / 2)  # or intervals hide one another
            at = line.parameters.to_numpy(float) * beside
            dots(ax, at, rows_of(line), colour=colour, marker=marker, name=method, upright=True, joined=True)
        ax.axhline(0.5, color=MUTED, linewidth=0.8, linestyle=":")
        ax.set_xscale("log")
        sizes = sorted(set(mine.parameters))
        ax.set_xticks(sizes, [size_text(size) for size in sizes])
        ax.minorticks_off()
        ax.set_xlim(sizes[0] / 1.6, sizes[-1] * 1.6)
        ax.set_ylim(0, 1)
        ax.set_xlabel("parameters", fontsize=9)
        ax.set_title(label(family), fontsize=10, loc="left")
        ax.tick_params(labelsize=8.5)
        ax.grid(axis="y", color=GRID, linewidth=0.7)
    figure.supylabel("weighted F1, 95 % interval", fontsize=9)
    figure.suptitle(label(title), x=0.01, ha="left", fontsize=10)
    legend_below(figure, next(iter(drawn.values())))
    return figure


def size_text(parameters: float) -> str:
    """8B, 0.5B, 135M, 20k."""
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if parameters >= unit / 2 or unit == 1e3:
            return f"{parameters / unit:.2g}{letter}" if parameters < 100 * unit else f"{parameters / unit:.0f}{letter}"
    raise AssertionError


def by_depth(table: pd.DataFrame, *, title: str, metric: str = "f1") -> "Figure":
    """A score by layer of one data set, as a share of the model's blocks: a panel a kind, a line a model."""
    rows = table[table.metric == metric]
    figure, drawn = panels(list(dict.fromkeys(rows.probe)), width=4.6, height=3.4, left=0.6)
    families = list(dict.fromkeys(rows.family))
    for kind, ax in drawn.items():
        for family in families:
            models = list(dict.fromkeys(rows[rows.family == family].model))
            for k, model in enumerate(models):
                curve = rows[(rows.probe == kind) & (rows.model == model)].sort_values("depth")
                how: dict[str, Any] = {"color": FAMILIES[families.index(family) % len(FAMILIES)]}
                how["linestyle"] = ("-", "--", "-.", ":")[k % 4]
                ax.fill_between(curve.depth, curve.low, curve.high, alpha=0.08, linewidth=0, color=how["color"])
                ax.plot(curve.depth, curve.value, linewidth=1.5, label=label(model), **how)
        ax.axhline(0.5, color=MUTED, linewidth=0.8, linestyle=":")
        ax.set_xlim(0, 1)
        ax.set_xlabel("block, as a share of the model's blocks", fontsize=9)
        ax.set_title(kind, fontsize=10, loc="left")
        ax.tick_params(labelsize=8.5)
        ax.grid(axis="y", color=GRID, linewidth=0.7)
    figure.supylabel("weighted F1, 95 % interval", fontsize=9)
    figure.suptitle(label(title), x=0.01, ha="left", fontsize=10)
    legend_below(figure, next(iter(drawn.values())))
    return figure


def changes(table: pd.DataFrame) -> "Figure":
    """Change of the prompting baseline's F1 with a direction taken out: a panel a data set, a row a model (table 2)."""
    rows = table[table.direction != "none"]
    models = list(dict.fromkeys(rows.model))
    figure, drawn = panels(list(dict.fromkeys(rows.dataset)), width=3.4, height=1.0 + 0.45 * len(models), left=1.4)
    for dataset, ax in drawn.items():
        for offset, beginning, colour in (
            (-0.2, "supervised", SELF),
            (0.0, "unsupervised", OTHERS),
            (0.2, "random", MUTED),
        ):
            mine = rows[(rows.dataset == dataset) & rows.direction.str.startswith(beginning)]
            at = [models.index(model) + offset for model in mine.model]
            dots(ax, at, rows_of(mine), colour=colour, name=beginning)
        ax.axvline(0, color=MUTED, linewidth=0.8)
        name_rows(ax, models)
        ax.set_ylim(len(models) - 0.5, -0.5)
        ax.set_xlabel("change of F1, 95 % interval by question", fontsize=9)
        ax.set_title(label(dataset), fontsize=10, loc="left")
        ax.tick_params(labelsize=8.5)
    legend_below(figure, next(iter(drawn.values())))
    return figure
