"""The page of the preference tasks' logs: does each model prefer the better of two texts, by each way of asking?"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import pandas as pd
from markupsafe import Markup

from selfprobe.logs import summaries
from selfprobe.page import (
    LINES,
    PROBES,
    Column,
    Log,
    Page,
    Picture,
    Table,
    estimated,
    headings,
    number,
    percent,
    percents,
    set_aside,
)
from selfprobe.plots import called, interval_rows, short
from selfprobe.preferences.table import Judged, judged
from selfprobe.solvers.sent import substitutes_in
from selfprobe.stats.estimate import Estimate

ROWS = 6
"""Runs in picture and table, at most."""
WHY = (
    "Yes: the whole 95 % interval of the share of pairs is above one half, which guessing gets; No: below it. A tie "
    "counts half. Runs are not corrected for their number: of twenty that guess, one is above or below by chance."
)
METHOD = (
    "A tie counts half in accuracy, and as a miss in weighted F1. AUROC ranks by how much a model prefers the first "
    "text. Position bias is how far the share of choices of the first place is from one half, over both orders; "
    "consistent is the share of pairs whose two orders prefer the same text. Intervals resample questions, since pairs "
    "of one question are alike. Probes of a model's states are a page of their own: selfprobe probe run."
)


def page(logs: Sequence[str]) -> Page:
    """The page of the preference tasks among these logs.

    Raises:
        NoLogs: There is none.
    """
    runs, ignored = judged(logs)
    names = called(models := sorted({run.model for run in runs}))
    substitutes = [f"{run.method}, {line}" for run in runs for line in substitutes_in(summaries(run.log))]
    ordered = sorted(runs, key=lambda run: (ORDER.index(_answer(run)), -run.estimate("accuracy").value))
    first = ordered[:ROWS]
    lines = [
        f"{run.method}, {names[run.model]} on {run.dataset}: accuracy {percents(run.estimate('accuracy'))}"
        for run in ordered
    ]
    return Page(
        title="Do these models prefer the better of two texts?",
        answer=_sentence(ordered, names),
        picture=_picture(first, names, len(runs) - len(first)),
        table=_table(first, names),
        models=models,
        sections=headings(
            why=[WHY],
            cells=[_cells(runs)],
            method=[METHOD, Markup("The data sets and ways of asking are those of {}.").format(PROBES)],
            runs=[*substitutes, _runs(runs), *set_aside(ignored)],
        ),
        tables={"runs": pd.DataFrame([_row(run) for run in runs])},
        told=[*substitutes, *(lines if len(lines) > 1 else [])][:LINES],
    )


def _answer(run: Judged) -> Literal["Yes", "No", "Cannot tell"]:
    """Whether its whole interval is above, or below, what guessing gets."""
    accuracy = run.estimate("accuracy")
    return "Yes" if accuracy.low > 0.5 else "No" if accuracy.high < 0.5 else "Cannot tell"


def _sentence(runs: Sequence[Judged], names: dict[str, str]) -> str:
    best, count = runs[0], len(names)
    model, accuracy = names[best.model].replace(" ", "\N{NO-BREAK SPACE}"), best.estimate("accuracy")
    reached = f"prefers the better text in {percent(accuracy.value)} of pairs"
    answer, who = _answer(best), f"for {model}" if count == 1 else f"for {count} models"
    best_one = "it" if count == 1 else f"the best, {model},"
    if math.isnan(accuracy.value):
        return f"Cannot tell {who}: no pair has a verdict."
    if answer == "Yes":
        able = len({run.model for run in runs if _answer(run) == "Yes"})
        head = f"Yes, {who}: it" if count == 1 else f"Yes, for {able} of {count} models. {model}"
        return f"{head} {reached}, asked by {best.method.partition(',')[0]}; guessing gets 50 %."
    if answer == "Cannot tell":
        ends = "without an interval" if math.isnan(accuracy.low) else "and its interval holds 50 %, which guessing gets"
        return f"Cannot tell {who}: {best_one} {reached}, {ends}."
    return f"No, not {who}: {best_one} {reached}, fewer than by guessing."


def _picture(runs: Sequence[Judged], names: dict[str, str], left: int) -> Picture | None:
    rows = {_row_name(run, runs, names): {"accuracy": run.estimate("accuracy")} for run in runs}
    more = f" {left} more are under All cells." if left else ""
    return interval_rows(
        "preferred", rows, caption=f"95 % intervals.{more}", axis="pairs judged right", scale="percent", line=0.5
    )


def _row_name(run: Judged, runs: Sequence[Judged], names: dict[str, str]) -> str:
    """As little of a run's name as tells it from the others."""
    parts = [short(names[run.model])]
    parts += [run.method] if len({one.method for one in runs}) > 1 else []
    parts += [run.dataset] if len({one.dataset for one in runs}) > 1 else []
    return ", ".join(parts)


def _table(runs: Sequence[Judged], names: dict[str, str]) -> Table:
    several = len({run.dataset for run in runs}) > 1
    return Table(
        runs,
        (
            Column("model", lambda run: names[run.model]),
            Column("method", lambda run: f"{run.method} on {run.dataset}" if several else run.method),
            Column("answer", _answer),
            Column("accuracy", lambda run: run.estimate("accuracy").value, percent),
            Column("pairs", _pairs, str),
        ),
    )


def _cells(runs: Sequence[Judged]) -> Table:
    return Table(
        runs,
        (
            Column("data", "dataset"),
            Column("method", "method"),
            Column("model", "model"),
            *(estimated(title, _estimate(name)) for title, name in ESTIMATES.items()),
            Column("position bias", lambda run: run.metrics.get("position_bias"), number),
            Column("unscored", lambda run: run.metrics.get("unscored"), percent),
            Column("pairs", _pairs, str),
        ),
    )


def _runs(runs: Sequence[Judged]) -> Table:
    return Table(runs, (Column("model", "model"), Column("method", "method"), Column("log", lambda run: Log(run.log))))


def _pairs(run: Judged) -> int:
    return int(run.metrics.get("pairs", 0))


ORDER = ("Yes", "Cannot tell", "No")
ESTIMATES = {
    "accuracy": "accuracy",
    "weighted F1": "f1",
    "AUROC": "auroc",
    "ties": "tie_rate",
    "consistent": "consistency",
}


def _estimate(name: str) -> Callable[[Judged], Estimate]:
    return lambda run: run.estimate(name)


def _row(run: Judged) -> dict[str, object]:
    return {"dataset": run.dataset, "method": run.method, "model": run.model, **run.metrics, "log": run.log}
