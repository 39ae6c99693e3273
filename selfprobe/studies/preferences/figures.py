"""Figures of one probe run, and of several side by side (paper 004, all figures). No file is written here."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from selfprobe.data.public_pairs import LLMBAR_NATURAL
from selfprobe.page.plots import GRID, INK, MUTED, OTHERS, SELF, bars, dots, label, legend_below, name_rows, write_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ASKED = "#b35806"
"""Colour of the model's own answers."""
STYLES = {"supervised": (SELF, "-"), "unsupervised": (OTHERS, "--")}
CONTROLS = (("prompting", ASKED, "-."), ("no model (TF-IDF)", INK, ":"), ("no model (length)", MUTED, "--"))
COLUMNS = 3
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


def drawn_figures(tables: Mapping[str, pd.DataFrame]) -> "dict[str, Figure]":
    """File stem → figure, of those whose tables are there."""
    makers: Mapping[str, Callable[[pd.DataFrame], Figure]] = {
        "methods": methods_figure,
        "layers": lambda table: layers(table, tables["floors"], tables["methods"]),
        "transfer": transfer,
        "cosine": cosine_figure,
        "adversarial": adversarial,
        "finetuned": methods_figure,
        "finetuning": finetuning,
        "ablation": _ablation,
        "components": partial(components, by="dataset"),
    }
    return {name: make(tables[name]) for name, make in makers.items() if name in tables}


def methods_figure(table: pd.DataFrame, *, metric: str = "f1") -> "Figure":
    """Probes, the model's own answers and the controls: bars with intervals, a panel a data set (figures 2, 3)."""
    rows = table[table.metric == metric]
    names = list(dict.fromkeys(rows.method))
    figure, drawn = panels(list(dict.fromkeys(rows.dataset)), width=2.9, height=0.9 + 0.27 * len(names), left=2.1)
    for dataset, ax in drawn.items():
        mine = rows[rows.dataset == dataset].set_index("method").reindex(names)
        bars(ax, range(len(names)), _rows(mine), colours=[_colour(name) for name in names], width=0.62)
        for y in np.flatnonzero(mine.value.isna()):
            ax.text(0.02, float(y), "no score", va="center", fontsize=8, color=MUTED)
        ax.axvline(0.5, color=MUTED, linewidth=0.8, linestyle=":")
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
        name_rows(ax, names, grid=False)
        _title(ax, dataset, mine)
        ax.tick_params(labelsize=8.5, labelleft=_first(ax))
    figure.supxlabel(f"{_label(metric)} on held-out pairs, 95 % interval by question", fontsize=9)
    return figure


def layers(table: pd.DataFrame, floors: pd.DataFrame, asked: pd.DataFrame, *, metric: str = "f1") -> "Figure":
    """Both probes by layer, above what the best of all layers finds when labels are shuffled (figures 6, 7)."""
    from matplotlib.ticker import MaxNLocator

    rows = table[table.metric == metric]
    figure, drawn = panels(list(dict.fromkeys(rows.dataset)), width=3.6, height=2.9, left=0.6)
    for dataset, ax in drawn.items():
        mine = rows[rows.dataset == dataset]
        luck = floors[(floors.dataset == dataset) & (floors.metric == metric) & ~floors.over.str.contains("signs")]
        for kind, (colour, style) in STYLES.items():
            curve = mine[mine.probe == kind].sort_values("layer")
            ax.fill_between(curve.layer + 1, curve.low, curve.high, color=colour, alpha=0.13, linewidth=0)
            ax.plot(curve.layer + 1, curve.value, color=colour, linestyle=style, linewidth=1.7, label=kind)
        for method, colour, style in CONTROLS:
            found = asked[(asked.dataset == dataset) & (asked.metric == metric) & (asked.method == method)]
            for value in found.value:
                ax.axhline(value, color=colour, linestyle=style, linewidth=1.2, label=method)
        band = "best layer on shuffled labels (mean to 95 %)"
        ax.axhspan(luck["mean"].max(), luck.high.max(), color="#d9dde3", linewidth=0, label=band, zorder=0.5)
        _title(ax, dataset, mine)
        ax.set_xlim(1, mine.layer.max() + 1)
        ax.xaxis.set_major_locator(MaxNLocator(7, integer=True))
        ax.set_xlabel("after block", fontsize=9)
        ax.tick_params(labelsize=8.5)
        ax.grid(axis="y", color=GRID, linewidth=0.7)
        ax.set_axisbelow(True)
    figure.supylabel(f"{_label(metric)} on held-out pairs", fontsize=9)
    legend_below(figure, next(iter(drawn.values())))
    return figure


def transfer(table: pd.DataFrame, *, metric: str = "f1") -> "Figure":
    """Probes of one data set (column) on another (row), with intervals; framed: their own test halves (table 1)."""
    rows = table[table.metric == metric]
    names = list(dict.fromkeys(rows.trained_on))
    return _matrices(
        {kind: rows[rows.probe == kind].set_index(["tested_on", "trained_on"]) for kind in dict.fromkeys(rows.probe)},
        names,
        column="value",
        colours=("cividis", min(0.4, float(rows.value.min())), max(0.8, float(rows.value.max()))),
        axes=("trained on", "tested on"),
        title=f"{_label(metric)} on pairs whose question the probe has not seen",
    )


def cosine_figure(table: pd.DataFrame) -> "Figure":
    """Cosines of directions at one layer, as a magnitude; framed: of one data set (figure 5).

    A magnitude, since labels, or nothing at all, fix the sign of a component.
    """
    names = list(dict.fromkeys(table.a))
    layer = int(table.layer.iloc[0]) + 1
    return _matrices(
        {kind: table[table.probe == kind].set_index(["a", "b"]) for kind in dict.fromkeys(table.probe)},
        names,
        column="absolute",
        colours=("cividis", 0.0, 1.0),
        axes=("", ""),
        title=f"Magnitude of the directions' cosine after block {layer}, mean over halves",
    )


def adversarial(table: pd.DataFrame, *, metric: str = "f1") -> "Figure":
    """LLMBar: learnt from its natural subsets (bold), tested on all (figure 4)."""
    rows = table[table.metric == metric]
    subsets = sorted(set(rows.subset), key=lambda s: (s not in LLMBAR_NATURAL, s))
    names = list(dict.fromkeys(rows.method))
    figure, drawn = panels([""], width=1.6 + 1.15 * len(subsets), height=3.2, left=0.5)
    ax = drawn[""]
    width = 0.8 / len(names)
    for k, name in enumerate(names):
        mine = rows[rows.method == name].set_index("subset").reindex(subsets)
        at = np.arange(len(subsets)) + (k - (len(names) - 1) / 2) * width
        bars(ax, at, _rows(mine), colours=_colour(name), width=width * 0.92, name=label(name), upright=True)
    sizes = rows.groupby("subset").n.max()
    ax.set_xticks(range(len(subsets)), [label(f"{s}\n{sizes[s]} questions") for s in subsets], fontsize=8.5)
    for tick, subset in zip(ax.get_xticklabels(), subsets, strict=True):
        tick.set_fontweight("bold" if subset in LLMBAR_NATURAL else "normal")
    ax.axhline(0.5, color=MUTED, linewidth=0.8, linestyle=":")
    ax.set_ylim(0, 1)
    ax.set_ylabel(f"{_label(metric)}, 95 % interval by question", fontsize=9)
    legend_below(figure, ax)
    return figure


def finetuning(table: pd.DataFrame) -> "Figure":
    """Loss of the fine-tuned judge by step, a panel a data set; dotted: a judge that says 1 or 2 at random."""
    figure, drawn = panels(list(dict.fromkeys(table.dataset)), width=3.2, height=2.4, left=0.6)
    for dataset, ax in drawn.items():
        for (training, mine), colour in zip(
            table[table.dataset == dataset].groupby("training", sort=False), (SELF, OTHERS), strict=False
        ):
            ax.plot(mine.step, mine.loss, color=colour, linewidth=1, label=label(str(training)))
        ax.axhline(float(np.log(2)), color=MUTED, linewidth=0.8, linestyle=":")
        ax.set_title(label(dataset), fontsize=10, loc="left")
        ax.set_ylim(bottom=0)
        ax.set_xlabel("step", fontsize=9)
        ax.tick_params(labelsize=8.5)
        if table.training.nunique() > 1:
            ax.legend(frameon=False, fontsize=8)
    figure.supylabel("−log P of the right answer", fontsize=9)
    return figure


def _ablation(table: pd.DataFrame) -> "Figure":
    """Change of the prompting baseline's F1 when a direction is taken out, beside random directions (table 2)."""
    from matplotlib.ticker import MaxNLocator

    rows = table[table.direction != "none"]
    names = list(dict.fromkeys(rows.direction))
    figure, drawn = panels(list(dict.fromkeys(rows.dataset)), width=3.0, height=0.9 + 0.27 * len(names), left=1.2)
    for dataset, ax in drawn.items():
        mine = rows[rows.dataset == dataset].set_index("direction").reindex(names)
        for k, row in enumerate(_rows(mine)):
            dots(ax, [k], [row], colour=_colour(names[k]))
        ax.axvline(0, color=MUTED, linewidth=0.8)
        name_rows(ax, names)
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.xaxis.set_major_locator(MaxNLocator(4))
        _title(ax, dataset, mine)
        ax.tick_params(labelsize=8.5, labelleft=_first(ax))
    figure.supxlabel("change of the prompting baseline's F1, 95 % interval by question", fontsize=9)
    return figure


def components(table: pd.DataFrame, *, by: str) -> "Figure":
    """Contrast differences along their first two principal components, coloured by preference (figure 1, left).

    `by` is the column whose values have a panel each: the data set, or the model.
    """
    figure, drawn = panels(list(dict.fromkeys(table[by])), width=3.2, height=3.0, left=0.6)
    for name, ax in drawn.items():
        mine = table[table[by] == name]
        for better, colour, marker in ((1, SELF, "o"), (2, OTHERS, "^")):
            points = mine[mine.preferred == better]
            how: dict[str, Any] = {"s": 12, "color": colour, "alpha": 0.6, "linewidths": 0}
            ax.scatter(points["first"], points["second"], marker=marker, label=f"text {better} is better", **how)
        ax.axvline(0, color=MUTED, linewidth=0.8, linestyle=":")
        shares = [f"{100 * mine[f'share_{which}'].iloc[0]:.0f} %" for which in ("first", "second")]
        ax.set_xlabel(f"first component ({shares[0]} of the variance)", fontsize=8.5)
        ax.set_ylabel(f"second ({shares[1]})", fontsize=8.5)
        ax.set_title(label(f"{name}, block {int(mine.layer.iloc[0]) + 1}"), fontsize=10, loc="left")
        ax.tick_params(labelsize=8)
    legend_below(figure, next(iter(drawn.values())))
    return figure


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
            dots(ax, at, _rows(line), colour=colour, marker=marker, name=method, upright=True, joined=True)
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
    """Size as text: 8B, 0.5B, 135M, 20k."""
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
            dots(ax, at, _rows(mine), colour=colour, name=beginning)
        ax.axvline(0, color=MUTED, linewidth=0.8)
        name_rows(ax, models)
        ax.set_ylim(len(models) - 0.5, -0.5)
        ax.set_xlabel("change of F1, 95 % interval by question", fontsize=9)
        ax.set_title(label(dataset), fontsize=10, loc="left")
        ax.tick_params(labelsize=8.5)
    legend_below(figure, next(iter(drawn.values())))
    return figure


def panels(names: Sequence[str], *, width: float, height: float, left: float) -> "tuple[Figure, dict[str, Axes]]":
    """A figure with a panel a name, at most `COLUMNS` in a row; inches of one panel, and for labels on the left."""
    from matplotlib.figure import Figure

    columns = min(len(names), COLUMNS)
    lines = -(-len(names) // columns)
    figure = Figure(figsize=(left + width * columns, height * lines + 0.6), layout="constrained", dpi=150)
    drawn = [figure.add_subplot(lines, columns, k + 1) for k in range(len(names))]
    for ax in drawn:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, dict(zip(names, drawn, strict=True))


def _matrices(
    parts: Mapping[Any, pd.DataFrame],
    names: Sequence[str],
    *,
    column: str,
    colours: tuple[str, float, float],
    axes: tuple[str, str],
    title: str,
) -> "Figure":
    """Heat maps side by side under one colour bar; `parts`: title → values by (row, column) of the map."""
    figure, drawn = panels([str(p) for p in parts], width=1.3 + 1.0 * len(names), height=1.0 + 0.7 * len(names), left=1)
    for (part, ax), values in zip(drawn.items(), parts.values(), strict=True):
        shown = np.array([[float(values.loc[(row, col), column]) for col in names] for row in names])
        image = ax.imshow(shown, cmap=colours[0], vmin=colours[1], vmax=colours[2], aspect="auto")

        def text(y: int, x: int, shown: Any = shown, values: pd.DataFrame = values) -> str:
            one = values.loc[(names[y], names[x])]
            return f"{shown[y, x]:.2f}" + (f"\n{one.low:.2f}–{one.high:.2f}" if "low" in values else "")

        write_cells(ax, image, shown, text)
        shortened = [label(name) for name in names]
        ax.set_xticks(range(len(names)), shortened, rotation=30, ha="right", rotation_mode="anchor", fontsize=8.5)
        ax.set_yticks(range(len(names)), shortened, fontsize=8.5)
        ax.tick_params(labelleft=_first(ax))
        ax.set_title(part, fontsize=10, loc="left")
        ax.set_xlabel(axes[0], fontsize=9)
        ax.set_ylabel(axes[1] if _first(ax) else "", fontsize=9)
    figure.colorbar(image, ax=list(drawn.values()), fraction=0.06, pad=0.03).ax.tick_params(labelsize=8)
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return figure


def _first(ax: "Axes") -> bool:
    """Whether the panel is the first in its row."""
    place = ax.get_subplotspec()
    return place is not None and place.is_first_col()


def _colour(method: str) -> str:
    for beginning, colour in (
        ("supervised", SELF),
        ("unsupervised", OTHERS),
        ("random", MUTED),
        ("no model (l", "#c3c7cd"),
        ("no model", MUTED),
    ):
        if method.startswith(beginning):
            return colour
    return ASKED


def _rows(table: pd.DataFrame) -> list[Any]:
    """The rows of a table, as `plots` takes estimates."""
    return list(table.itertuples())


def _title(ax: "Axes", dataset: str, rows: pd.DataFrame) -> None:
    ax.set_title(label(f"{dataset} ({int(rows.n.max())} questions)"), fontsize=10, loc="left")


def _label(metric: str) -> str:
    return {"f1": "weighted F1", "accuracy": "accuracy", "auroc": "AUROC"}[metric]
