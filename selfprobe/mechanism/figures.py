"""Figures of lens, attention and patching, from their tables (paper 003: Figures 5, 6, 7). No file is written here."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from selfprobe.mechanism.findings import CONTROL_FIRST, LEFT, OTHER, PAPER_FIRST, block_of
from selfprobe.mechanism.numbers import SCALES
from selfprobe.mechanism.prompts import TOLD
from selfprobe.plots import GRID, INK, MUTED, OTHERS, SELF, bars, label, name_rows, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Tables = Mapping[str, pd.DataFrame]

LOOKS = {
    "direct": (OTHERS, "--"),
    "introspective": (SELF, "-"),
    "control": (MUTED, "-."),
    "other": ("#b35806", ":"),
}
COMPARED = {
    PAPER_FIRST: (SELF, "-", "introspective less direct (the paper's)"),
    CONTROL_FIRST: (MUTED, "-.", "irrelevant text less direct"),
    LEFT: (INK, "-", "introspective less irrelevant text (what is left)"),
    OTHER: ("#b35806", ":", "introspective less the same about another assistant"),
}
PAPER_SHARE = 0.239
PLACES = {"first token": "#c3c7cd", "dilemma": OTHERS, "instruction": SELF, "itself": "#b35806"}


def lens(tables: Tables) -> "Figure":
    """Logit of A less that of B by block, of each arm, and paired differences with the block where they part."""
    figure, (above, below) = _stacked(7.2, 6.2)
    rows = tables["lens"]
    for name, (colour, style) in LOOKS.items():
        _curve(above, rows[rows.what == name], colour, style, TOLD[name])
    for what, (colour, style, name) in COMPARED.items():
        _curve(below, rows[rows.what == what], colour, style, name)
    parts = tables["partings"].set_index("what")
    for what, colour in ((PAPER_FIRST, SELF), (CONTROL_FIRST, MUTED)):
        found = parts.loc[what]
        if pd.notna(found.block):
            below.axvspan(found.low - 0.5, found.high + 0.5, color=colour, alpha=0.12, linewidth=0)
            below.axvline(found.block, color=colour, linewidth=1, linestyle=":")
    above.set_ylabel("logit of A less that of B", fontsize=9)
    below.set_ylabel("paired difference", fontsize=9)
    below.set_xlabel("after block; shaded: where the arms part, 95 % interval", fontsize=9)
    above.legend(frameon=False, fontsize=8)
    _legend_below(figure, below)
    return figure


def entropies(tables: Tables) -> "Figure":
    """Paired differences of entropy by block, in nats and over ln (N − 1) without the first token (Figure 7)."""
    figure, panels = _stacked(7.2, 6.2)
    for ax, scale in zip(panels, (SCALES[0], SCALES[3]), strict=True):
        rows = tables["attention"]
        rows = rows[rows.scale == scale]
        for what, (colour, style, name) in COMPARED.items():
            _curve(ax, rows[rows.what == what], colour, style, name)
        ax.axvline(block_of(tables, "attention")[0], color=MUTED, linewidth=1, linestyle=":")
        ax.set_ylabel("entropy, nats" if scale == SCALES[0] else f"entropy {scale}", fontsize=8.5)
    panels[1].set_xlabel(f"block, mean over its heads; dotted line: {block_of(tables, 'attention')[1]}", fontsize=9)
    _legend_below(figure, panels[0])
    return figure


def heads(tables: Tables) -> "Figure":
    """Differences of entropy by block and head: the paper's comparison beside what is left; dots: after Holm."""
    from matplotlib.figure import Figure

    rows = tables["heads"]
    rows = rows[(rows.scale == SCALES[3]) & rows.what.isin([PAPER_FIRST, LEFT])]
    edge = max(float(rows.value.abs().max()), 1e-6)
    blocks, count = rows.block.nunique(), rows["head"].nunique()
    figure = Figure(
        figsize=(2.6 + 0.28 * min(2 * count, 40), 1.6 + 0.16 * min(blocks, 64)), layout="constrained", dpi=150
    )
    drawn = []
    for place, what in enumerate((PAPER_FIRST, LEFT)):
        ax = figure.add_subplot(1, 2, place + 1)
        table = rows[rows.what == what].pivot(index="block", columns="head")
        image = ax.imshow(table["value"], cmap="PuOr", vmin=-edge, vmax=edge, aspect="auto", origin="lower")
        y, x = np.nonzero((table["holm"] < 0.05).to_numpy())
        ax.scatter(x, y, s=4, color=INK, linewidths=0)
        ticks = np.unique(np.linspace(0, blocks - 1, min(blocks, 7)).round().astype(int))
        ax.set_yticks(ticks, [str(table.index[tick]) for tick in ticks], fontsize=8)
        ax.set_title(COMPARED[what][2].partition(" (")[0], fontsize=8.5, loc="left")
        ax.set_xlabel("head", fontsize=8.5)
        drawn.append(ax)
    drawn[0].set_ylabel("block", fontsize=8.5)
    figure.colorbar(image, ax=drawn, fraction=0.05, pad=0.03).ax.tick_params(labelsize=8)
    return figure


def places(tables: Tables) -> "Figure":
    """Where the last token looks at the block where the runs part: a bar an arm (Figure 6, as a mean)."""
    block = block_of(tables, "places")[0]
    rows = tables["places"]
    rows = rows[rows.block == block]
    figure, ax = new_axes(width=6.4, height=2.4)
    names = list(dict.fromkeys(rows["arm"]))
    start = np.zeros(len(names))
    for place, colour in PLACES.items():
        values = rows[rows.place == place].set_index("arm").reindex(names).value.to_numpy(float)
        ax.barh(range(len(names)), values, left=start, color=colour, label=place, height=0.62)
        start = start + np.nan_to_num(values)
    name_rows(ax, [TOLD[name] for name in names], grid=False)
    ax.set_xlim(0, 1)
    ax.set_xlabel(f"share of the last token's attention at block {block}", fontsize=8.5)
    ax.tick_params(labelsize=8.5)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure


def patch(tables: Tables) -> "Figure":
    """What each pattern brings of the logit shift, with intervals: as a share, or where there is no shift as it is."""
    rows = tables["patch"]
    rows = rows[~rows.group.isin(["shift", "one head"]) & ~rows.group.str.endswith("one head")]
    as_share = bool(rows.share.notna().any())
    if as_share:
        rows = rows[rows.share.notna()].assign(value=rows.share, low=rows.share_low, high=rows.share_high)
    figure, ax = new_axes(width=7.4, height=1.2 + 0.27 * len(rows))
    colours = [MUTED if group.startswith("control") else SELF for group in rows.group]
    bars(ax, range(len(rows)), list(rows.itertuples()), colours=colours, width=0.62)
    ax.axvline(0, color=MUTED, linewidth=0.9)
    if as_share:
        ax.axvline(1, color=MUTED, linewidth=0.9, linestyle=":")
        ax.axvline(PAPER_SHARE, color=OTHERS, linewidth=1.1, linestyle="--", label="paper: 23.9 %")
        figure.legend(loc="outside lower right", frameon=False, fontsize=8)
    name_rows(ax, rows.variant)
    what = "share of the shift" if as_share else "change of the logit difference (no shift is shown)"
    ax.set_xlabel(f"{what}\n95 % interval by dilemma; grey: controls", fontsize=8.5)
    ax.tick_params(labelsize=8)
    return figure


def _stacked(width: float, height: float) -> "tuple[Figure, tuple[Axes, Axes]]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", dpi=150)
    above = figure.add_subplot(2, 1, 1)
    below = figure.add_subplot(2, 1, 2, sharex=above)
    for ax in (above, below):
        ax.spines[["top", "right"]].set_visible(False)
        ax.axhline(0, color=MUTED, linewidth=0.8)
        ax.grid(axis="y", color=GRID, linewidth=0.7)
        ax.set_axisbelow(True)
        ax.tick_params(labelsize=8.5)
    return figure, (above, below)


def _curve(ax: "Axes", rows: pd.DataFrame, colour: str, style: str, name: str) -> None:
    how: dict[str, Any] = {"color": colour, "linewidth": 1.6, "linestyle": style, "label": label(name)}
    ax.fill_between(rows.block, rows.low, rows.high, color=colour, alpha=0.15, linewidth=0)
    ax.plot(rows.block, rows.value, **how)


def _legend_below(figure: "Figure", ax: "Axes") -> None:
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
