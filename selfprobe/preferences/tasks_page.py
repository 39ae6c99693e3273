"""The page of the preference tasks' logs: which of two texts each model prefers, by each way of asking."""

from collections.abc import Callable, Sequence

import pandas as pd

from selfprobe.logs import summaries
from selfprobe.page import Column, Log, Page, Section, Table, estimated, number, percent, set_aside, shown
from selfprobe.preferences.table import Judged, judged
from selfprobe.solvers.sent import substitutes_in
from selfprobe.stats.estimate import Estimate

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
    substitutes = [f"{run.method}, {line}" for run in runs for line in substitutes_in(summaries(run.log))]
    table = Table(
        runs,
        (
            Column("data", "dataset"),
            Column("method", "method"),
            Column("model", "model"),
            *(estimated(title, _estimate(name)) for title, name in ESTIMATES.items()),
            Column("position bias", lambda run: run.metrics.get("position_bias"), number),
            Column("unscored", lambda run: run.metrics.get("unscored"), percent),
            Column("pairs", lambda run: int(run.metrics.get("pairs", 0)), str),
            Column("log", lambda run: Log(run.log)),
        ),
    )
    return Page(
        title="Which of two texts do these models prefer?",
        lead="Pairs with a known better text; each row is one way of asking one model.",
        sections=[
            Section("Methods", [*substitutes, table, *set_aside(ignored)], name="methods", menu="methods"),
            Section("Method", [METHOD], name="method", menu="method"),
        ],
        tables={"runs": pd.DataFrame([_row(run) for run in runs])},
        told=[f"{run.method}, {run.model} on {run.dataset}: accuracy {shown(run.estimate('accuracy'))}" for run in runs]
        + substitutes,
    )


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
