"""Figures of the awareness comparison (paper 002, Figures 7, 9, 10 and footnotes 3 and 4)."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from selfprobe.page import Picture, p_value
from selfprobe.page.numerals import Interval
from selfprobe.page.plots import bar_rows, curves, cut_name, model_names
from selfprobe.page.plots import calibration_curves as calibrated
from selfprobe.stats.agreement import BINS, equal_mass
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.awareness.numbers import ArmNumbers, Baselines, MethodPair
from selfprobe.studies.awareness.runs import ARM, AwarenessTables, marks


def pictures(
    logged: AwarenessTables,
    methods: Sequence[ArmNumbers],
    baselines: Baselines,
    pairs: Sequence[MethodPair],
) -> list[Picture]:
    """All that there is something to draw of; a method without a verdict is in none."""
    rated = [m for m in methods if m.n]
    names = {
        model: cut_name(name)
        for model, name in model_names(list(dict.fromkeys(m.model for m in rated))).items()
    }
    models = list(names) if logged.texts.label.nunique() == 2 else []
    drawn = [
        shares_figure(rated, names) if any(m.labelled for m in rated) else None,
        *(
            roc(logged, baselines, model, names[model], place)
            for place, model in enumerate(models, start=1)
        ),
        calibration_figure(logged, names),
        kappa_by_decisions(pairs, names),
        error_by_turns(logged, rated, names),
    ]
    return [picture for picture in drawn if picture is not None]


def shares_figure(methods: Sequence[ArmNumbers], names: dict[str, str]) -> Picture:
    """Share of evaluation rows and of deployment rows that each method calls evaluation.

    A method that works has its bars far apart; both high is a subject that calls everything an
    evaluation.
    """
    labels = [f"{m.name}, {names[m.model]}" if len(names) > 1 else m.name for m in methods]
    shares = [{"evaluation rows": m.tpr, "deployment rows": m.false_alarms} for m in methods]
    return bar_rows(
        "called",
        dict(zip(labels, shares, strict=True)),
        caption="Share of evaluation rows and of deployment rows called evaluation (Figures 7, 9, 10).",
        axis="called evaluation, 95 % interval",
        scale="percent",
    )


def roc(
    logged: AwarenessTables, baselines: Baselines, model: str, name: str, place: int
) -> Picture:
    """ROC of a model's methods, and of the baselines that see the text alone."""
    from sklearn.metrics import roc_curve

    lines = dict[str, tuple[list[float], list[Interval]]]()
    mine = logged.verdicts[(logged.verdicts.model == model) & logged.verdicts.truth.notna()]
    for key, rows in mine.groupby(ARM, sort=False):
        ranked = rows[rows.score.notna() & rows.said.notna()]
        if ranked.truth.nunique() == 2 and ranked.score.nunique() > 1:
            false, true, _ = roc_curve(ranked.truth == "evaluation", ranked.score)
            lines[f"{key[0]}{marks(key)}"] = (list(false), _points(true))
    for column in ("length", "words", "words_other_source"):
        known = baselines.shown[baselines.shown[column].notna()]
        if known.label.nunique() == 2:
            false, true, _ = roc_curve(known.label == "evaluation", known[column])
            lines[f"text only: {column.replace('_', ' ')}"] = (list(false), _points(true))
    return curves(
        f"roc-{place}",
        lines,
        caption=f"ROC of {name}, and of the text alone.",
        across="share of deployment rows called evaluation",
        up="share of evaluation rows called evaluation",
        title=name,
        diagonal=True,
        marks=False,
        alt=f"ROC curves of {name}: {', '.join(lines)}; their areas are the AUROC of the table of methods.",
    )


def calibration_figure(logged: AwarenessTables, names: dict[str, str]) -> Picture | None:
    """Stated P(evaluation) against the share of evaluations, in the bins of the ECE; None where
    none is stated.
    """
    stated = logged.verdicts[logged.verdicts.probability.notna() & logged.verdicts.truth.notna()]
    if stated.empty:
        return None
    lines = dict[str, tuple[list[float], list[Interval]]]()
    for key, rows in stated.groupby(ARM, sort=False):
        bins = rows.assign(positive=rows.truth == "evaluation").groupby(
            equal_mass(rows.probability, BINS)
        )
        at = list(bins.probability.mean().astype(float))
        lines[f"{key[0]}{marks(key)}, {names.get(key[1], key[1])}"] = (
            at,
            _points(bins.positive.mean()),
        )
    return calibrated(
        "calibration",
        lines,
        caption="Calibration, ten equal-mass bins.",
        across="stated P(evaluation)",
        up="share that are evaluations",
    )


def kappa_by_decisions(pairs: Sequence[MethodPair], names: dict[str, str]) -> Picture | None:
    """Kappa of binary against probability by number of decisions (footnote 3); None without a
    25-decision run.
    """
    lines = {}
    for pair in pairs:
        if curve := pair.curve:
            ends = zip(curve.mean, curve.low, curve.high, strict=True)
            estimates = [Estimate(mean, low, high, 0, "draw") for mean, low, high in ends]
            lines[names.get(pair.model, pair.model)] = (list(curve.decisions), estimates)
    if not lines:
        return None
    return curves(
        "kappa",
        lines,
        caption="Agreement by number of decisions, with 95 % range over 100 draws (footnote 3).",
        across="decisions drawn of 25",
        up="Cohen's kappa, binary and probability",
    )


def error_by_turns(
    logged: AwarenessTables, methods: Sequence[ArmNumbers], names: dict[str, str]
) -> Picture | None:
    """Mean absolute error by number of turns, and the trend (footnote 4); None where turns do not
    vary.
    """
    lines = dict[str, tuple[list[float], list[Interval]]]()
    for m in methods:
        if np.isnan(m.trend.slope):
            continue
        rows = logged.verdicts[
            (logged.verdicts[ARM] == [getattr(m, name) for name in ARM]).all(axis=1)
        ]
        rows = rows[rows.probability.notna() & rows.truth.notna()]
        error = (rows.probability - (rows.truth == "evaluation")).abs().astype(float)
        means = error.groupby(rows.turns.astype(float)).mean()
        who = f"{m.method}, {names.get(m.model, m.model)}"
        lines[who] = (list(means.index), _points(means))
        ends = [float(rows.turns.min()), float(rows.turns.max())]
        trend = f"its trend: r = {m.trend.r:.2f}, {p_value(m.trend.p)} by source"
        lines[f"{who}, {trend}"] = (
            ends,
            _points(m.trend.intercept + m.trend.slope * np.array(ends)),
        )
    if not lines:
        return None
    return curves(
        "turns",
        lines,
        caption="Mean absolute error by turns, where the subject saw them (footnote 4); p clustered by source.",
        across="turns of the conversation",
        up="|P(evaluation) − label|",
    )


def _points(values: "Iterable[float] | pd.Series[float]") -> list[Interval]:
    return [Estimate(float(y), np.nan, np.nan, 0, "point") for y in values]
