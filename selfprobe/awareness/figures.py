"""Figures of the awareness comparison (paper 002, Figures 7, 9, 10 and footnotes 3 and 4)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from selfprobe.awareness.numbers import ArmNumbers, Baselines, Pair
from selfprobe.awareness.runs import ARM, marks
from selfprobe.awareness.table import Logged
from selfprobe.plots import MUTED, OTHERS, SELF, bars, label, legend_below, name_rows, new_axes, short
from selfprobe.stats.agreement import BINS, equal_mass

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#1b7837", "#2166ac", "#b35806", "#762a83", "#4d4d4d", "#01665e")
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
"""Lines differ in style as well as in colour."""


def called(methods: Sequence[ArmNumbers]) -> "Figure":
    """Share of evaluation rows and of deployment rows that each method calls evaluation, with intervals.

    A method that works has its bars far apart; both high is a subject that calls everything an evaluation.
    """
    figure, ax = new_axes(width=7.2, height=1.4 + 0.55 * len(methods))
    ours = [m.tpr for m in methods]
    others = [replace(m.tnr, value=1 - m.tnr.value, low=1 - m.tnr.high, high=1 - m.tnr.low) for m in methods]
    at = np.arange(len(methods))
    bars(ax, at - 0.18, ours, colours=SELF, width=0.32, name="evaluation rows")
    bars(ax, at + 0.18, others, colours=OTHERS, width=0.32, name="deployment rows")
    name_rows(ax, [_name(m) for m in methods], grid=False)
    ax.set_xlim(0, 1)
    ax.set_xlabel("share called evaluation, 95 % interval")
    ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def roc(logged: Logged, baselines: Baselines, model: str) -> "Figure":
    """ROC of a model's methods, and of the text-only baselines in grey."""
    from sklearn.metrics import roc_curve

    figure, ax = new_axes(width=5.2, height=5.0)
    ax.plot([0, 1], [0, 1], color="#d9dde3", linewidth=1)
    for column, grey in (("length", ":"), ("words", "--"), ("words_other_source", "-")):
        known = baselines.shown[baselines.shown[column].notna()]
        if known.label.nunique() == 2:
            false, true, _ = roc_curve(known.label == "evaluation", known[column])
            ax.plot(false, true, color=MUTED, linestyle=grey, label=f"text only: {column.replace('_', ' ')}")
    mine = logged.verdicts[(logged.verdicts.model == model) & logged.verdicts.truth.notna()]
    for (key, rows), colour, style in zip(mine.groupby(ARM, sort=False), COLOURS * 3, STYLES * 3, strict=False):
        ranked = rows[rows.score.notna() & rows.said.notna()]
        if ranked.truth.nunique() == 2 and ranked.score.nunique() > 1:
            false, true, _ = roc_curve(ranked.truth == "evaluation", ranked.score)
            ax.plot(false, true, color=colour, linestyle=style, label=_arm_name(key), linewidth=1.8)
    ax.set_xlabel("share of deployment rows called evaluation")
    ax.set_ylabel("share of evaluation rows called evaluation")
    figure.suptitle(label(short(model, 40)), x=0.01, ha="left", fontsize=11)
    legend_below(figure, ax)
    return figure


def calibration(logged: Logged) -> "Figure | None":
    """Stated P(evaluation) against the share of evaluations, in the bins of the ECE; None where none is stated."""
    stated = logged.verdicts[logged.verdicts.probability.notna() & logged.verdicts.truth.notna()]
    if stated.empty:
        return None
    figure, ax = new_axes(width=5.2, height=4.6)
    ax.plot([0, 1], [0, 1], color="#d9dde3", linewidth=1)
    for (key, rows), colour, style in zip(stated.groupby(ARM, sort=False), COLOURS * 3, STYLES * 3, strict=False):
        bins = rows.assign(positive=rows.truth == "evaluation").groupby(equal_mass(rows.probability, BINS))
        x, y = bins.probability.mean(), bins.positive.mean()
        ax.plot(
            x,
            y,
            color=colour,
            linestyle=style,
            marker="o",
            markersize=4,
            label=label(f"{_arm_name(key)}, {short(key[1])}"),
        )
    ax.set_xlabel("stated P(evaluation)")
    ax.set_ylabel("share that are evaluations")
    legend_below(figure, ax)
    return figure


def kappa_by_decisions(pairs: Sequence[Pair]) -> "Figure | None":
    """Kappa of binary against probability by number of decisions (footnote 3); None without a 25-decision run."""
    curves = [(pair.model, pair.curve) for pair in pairs if pair.curve]
    if not curves:
        return None
    figure, ax = new_axes(width=5.6, height=3.6)
    for (model, curve), colour in zip(curves, COLOURS * 3, strict=False):
        ax.plot(curve.decisions, curve.mean, color=colour, marker="o", markersize=4, label=label(short(model)))
        ax.fill_between(curve.decisions, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
    ax.set_xlabel("decisions drawn of 25")
    ax.set_ylabel("Cohen's kappa, binary and probability")
    legend_below(figure, ax)
    return figure


def error_by_turns(logged: Logged, methods: Sequence[ArmNumbers]) -> "Figure | None":
    """Absolute error against turns with the trend line (footnote 4); None where turns do not vary."""
    shown = [m for m in methods if not np.isnan(m.trend.slope)]
    if not shown:
        return None
    figure, ax = new_axes(width=5.6, height=3.8)
    for m, colour in zip(shown, COLOURS * 3, strict=False):
        key = [getattr(m, name) for name in ARM]
        rows = logged.verdicts[(logged.verdicts[ARM] == key).all(axis=1)]
        rows = rows[rows.probability.notna() & rows.truth.notna()]
        error = (rows.probability - (rows.truth == "evaluation")).abs()
        ax.scatter(rows.turns.astype(float), error, s=8, color=colour, alpha=0.4, linewidths=0)
        ends = np.array([rows.turns.min(), rows.turns.max()], dtype=float)
        told = label(f"{m.method}, {short(m.model)}: r = {m.trend.r:.2f}, p = {m.trend.p:.3f} by source")
        ax.plot(ends, m.trend.intercept + m.trend.slope * ends, color=colour, label=told)
    ax.set_xlabel("turns of the conversation")
    ax.set_ylabel("|P(evaluation) − label|")
    legend_below(figure, ax)
    return figure


def _name(m: ArmNumbers) -> str:
    return _arm_name([getattr(m, name) for name in ARM]) + "\n" + short(m.model)


def _arm_name(key: Sequence[object]) -> str:
    return f"{key[0]}{marks(key)}"
