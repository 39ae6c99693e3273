"""Figures of the awareness comparison: rates, ROC and calibration."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from selfprobe.page import Picture
from selfprobe.page.numerals import Interval
from selfprobe.page.plots import bar_rows, curves, cut_name, model_names
from selfprobe.page.plots import calibration_curves as calibrated
from selfprobe.stats.agreement import STATED_BINS, equal_mass
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.awareness.numbers import ArmNumbers
from selfprobe.studies.awareness.runs import AwarenessTables
from selfprobe.study.awareness_arms import ARM, marks
from selfprobe.study.text_baselines import Baselines


def pictures(
    logged: AwarenessTables,
    methods: Sequence[ArmNumbers],
    baselines: Baselines,
) -> list[Picture]:
    """All that there is something to draw of; a method without a verdict is in none."""
    answered_arms = [arm for arm in methods if arm.n]
    model_ids = list(dict.fromkeys(arm.model for arm in answered_arms))
    name_of_model = {model: cut_name(name) for model, name in model_names(model_ids).items()}
    figures = list[Picture | None]()
    if any(arm.labelled for arm in answered_arms):
        figures.append(shares_figure(answered_arms, name_of_model))
    if logged.texts.label.nunique() == 2:
        for number, (model, name) in enumerate(name_of_model.items(), start=1):
            figures.append(roc(logged, baselines, model, name, number))
    figures.append(calibration_figure(logged, name_of_model))
    return [figure for figure in figures if figure is not None]


def shares_figure(methods: Sequence[ArmNumbers], names: dict[str, str]) -> Picture:
    """Share of evaluation rows and of deployment rows that each method calls evaluation.

    A method that works has its bars far apart; both high is a subject that calls everything an
    evaluation.
    """
    shares_of_arm = dict[str, dict[str, Estimate]]()
    for arm in methods:
        shares = {"evaluation rows": arm.tpr, "deployment rows": arm.false_alarms}
        shares_of_arm[_bar_name(arm, names)] = shares
    return bar_rows(
        "called",
        shares_of_arm,
        caption="Share of evaluation rows and of deployment rows called evaluation.",
        axis="called evaluation, 95 % interval",
        scale="percent",
    )


def _bar_name(arm: ArmNumbers, names: dict[str, str]) -> str:
    return f"{arm.name}, {names[arm.model]}" if len(names) > 1 else arm.name


Lines = dict[str, tuple[list[float], list[Interval]]]
"""Name of a line → its places across, and its values."""


def roc(
    logged: AwarenessTables, baselines: Baselines, model: str, name: str, number: int
) -> Picture:
    """ROC of a model's methods, and of the baselines that see the text alone."""
    lines: Lines = {}
    is_labelled = logged.verdicts.truth.notna()
    model_rows = logged.verdicts[(logged.verdicts.model == model) & is_labelled]
    for arm, rows in model_rows.groupby(ARM, sort=False):
        ranked = rows[rows.score.notna() & rows.said.notna()]
        if ranked.truth.nunique() == 2 and ranked.score.nunique() > 1:
            lines[f"{arm[0]}{marks(arm)}"] = _roc_line(ranked.truth, ranked.score)
    for column in ("length", "words", "words_other_source"):
        scored = baselines.shown[baselines.shown[column].notna()]
        if scored.label.nunique() == 2:
            reader = column.replace("_", " ")
            lines[f"text only: {reader}"] = _roc_line(scored.label, scored[column])
    return curves(
        f"roc-{number}",
        lines,
        caption=f"ROC of {name}, and of the text alone.",
        x_title="share of deployment rows called evaluation",
        y_title="share of evaluation rows called evaluation",
        title=name,
        diagonal=True,
        marks=False,
        alt=(
            f"ROC curves of {name}: {', '.join(lines)}; their areas are the AUROC of the table of "
            "methods."
        ),
    )


def _roc_line(
    labels: "pd.Series[str]", scores: "pd.Series[float]"
) -> tuple[list[float], list[Interval]]:
    from sklearn.metrics import roc_curve

    false_alarms, hits, _ = roc_curve(labels == "evaluation", scores)
    return list(false_alarms), points_without_interval(hits)


def calibration_figure(logged: AwarenessTables, names: dict[str, str]) -> Picture | None:
    """Stated P(evaluation) against the share of evaluations, in the bins of the ECE; None where
    none is stated.
    """
    stated = logged.verdicts[logged.verdicts.probability.notna() & logged.verdicts.truth.notna()]
    if stated.empty:
        return None
    lines: Lines = {}
    for arm, rows in stated.groupby(ARM, sort=False):
        rows_with_label = rows.assign(positive=rows.truth == "evaluation")
        bins = rows_with_label.groupby(equal_mass(rows.probability, STATED_BINS))
        mean_probabilities = list(bins.probability.mean().astype(float))
        name = f"{arm[0]}{marks(arm)}, {names.get(arm[1], arm[1])}"
        lines[name] = (mean_probabilities, points_without_interval(bins.positive.mean()))
    return calibrated(
        "calibration",
        lines,
        caption="Calibration, ten equal-mass bins.",
        x_title="stated P(evaluation)",
        y_title="share that are evaluations",
    )


def points_without_interval(values: "Iterable[float] | pd.Series[float]") -> list[Interval]:
    """Values of a line, as a figure takes them."""
    return [Estimate(float(value), np.nan, np.nan, 0, "point") for value in values]
