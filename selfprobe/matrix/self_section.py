"""The section of the models on themselves: Table 2 of paper 003, with baselines, ceilings and what is missing."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from selfprobe.logs import metrics_in
from selfprobe.matrix.numbers import clusters_of, unit_of
from selfprobe.matrix.published import SELF, TABLE_2
from selfprobe.matrix.table import Matrix, Results, matrix_of
from selfprobe.matrix.task_section import SCORED
from selfprobe.page import Block, Column, Details, Section, Table, columns, number, percent
from selfprobe.stats.estimate import clustered_mean

BESIDE = {
    "baseline": "best baseline of the log",
    "skill": "skill over it",
    "ceiling": "ceiling",
    "worst_case": "unscored as wrong",
    "best_case": "unscored as right",
    "unsure_refusal": "may be refusals",
    "foreign_reply": "may be a proxy's",
    "kl_predicted": "KL(p‖p′)",
    "kl_direct": "KL(p‖p*)",
}
"""What a run's log says beside the score, by metric, and its column's head."""

ENDS = ("_low", "_high")
"""How a metric's interval is called in a log."""


def models_on_themselves(own: pd.DataFrame) -> Section:
    mean = {"model": "mean of 11 models on themselves", **TABLE_2[SELF]}
    known = tuple(Column(task, task, lambda x: number(x, 2)) for task in TABLE_2[SELF])
    published = Table([mean], (Column("model", "model"), *known))
    hint = (
        "Another data set, other models, no intervals and no unscored rates: for orientation only. The table's other "
        "rows are observers of other models; they stand beside such means under “Table 2”. Its k-th words are first "
        "words (k1 in a run's log)."
    )
    summary = "The published mean of models on themselves (paper 003, Table 2, last row; percent)"
    beside = [name for name in BESIDE if not own[name].isna().all()] if len(own) else []
    columns_ = (
        *(Column("task", "task"), Column("model", "model"), *SCORED),
        *(Column(BESIDE[name], partial(_with_ends, name), look="e") for name in beside),
        Column("why unscored", "why_unscored"),
        Column("hole", "hole", look="hole"),
    )
    blocks: list[Block] = [Table(list(own.itertuples()), columns_), Details(summary, [published, hint])]
    return Section("Models on themselves", blocks, name="self", menu="models on themselves")


def self_table(results: Results, matrices: Mapping[str, Matrix]) -> pd.DataFrame:
    """Table 2 with intervals: each model on itself, task by task, from the item scores that the matrices hold.

    `matrices`: those at hand, by task; a task of a single model has none in an analysis.
    """
    cells = results.cells[results.cells.target == results.cells.observer]
    own = results.decisions[results.decisions.target == results.decisions.observer]
    runs = {run.log: run for run in results.runs}
    metrics = {
        (c.task, c.target): dict(metrics_in(runs[c.log].header)) if c.log in runs else {} for c in cells.itertuples()
    }
    rows = []
    for task, models in cells.groupby("task").target:
        matrix = matrices.get(str(task)) or matrix_of(results, str(task))
        clusters = clusters_of(results, matrix)
        for model in sorted(models):
            place = matrix.models.index(model)
            group = own[(own.task == task) & (own.target == model)]
            estimate = clustered_mean(matrix.scores[place, place], clusters, unit=unit_of(clusters))
            rows.append(
                {
                    "task": task,
                    "model": model,
                    **columns(estimate),
                    "reason": estimate.reason,
                    **_of_its_log(metrics.get((str(task), str(model)), {})),
                    "unscored": float(group.value.isna().mean()),
                    "why_unscored": _reasons(group.unscored),
                    "reasoned": float(group.reasoned.mean()),
                    "hole": matrix.holes.get((model, model), "" if estimate.n else "nothing was scored"),
                }
            )
    return pd.DataFrame(rows)


def _of_its_log(found: Mapping[str, float]) -> dict[str, float | str]:
    """What else the table of models on themselves shows; NaN where the run's log has no such number."""
    head, divergence = "baseline_", "baseline_kl_"
    baselines = {
        name.removeprefix(head): value
        for name, value in found.items()
        if name.startswith(head) and not name.startswith(divergence)
    }
    best = max(baselines, key=lambda name: baselines[name], default="")
    wanted = [f"{name}{end}" for name in BESIDE if name != "baseline" for end in ("", *ENDS)]
    numbers = {name: found.get(name, math.nan) for name in wanted}
    return {**numbers, "baseline": baselines.get(best, math.nan), "baseline_name": best}


def _with_ends(name: str, row: Any) -> str:
    """A number of the table with its interval, where the log has one."""
    low, high = (getattr(row, f"{name}{end}", math.nan) for end in ENDS)
    ends = "" if math.isnan(low) else f" [{number(low)}, {number(high)}]"
    of = f" ({row.baseline_name})" if name == "baseline" and row.baseline_name else ""
    return number(getattr(row, name)) + ends + of


def _reasons(unscored: pd.Series) -> str:
    """The reasons with their shares, the commonest first."""
    counts = unscored.dropna().value_counts().sort_index().sort_values(ascending=False, kind="stable")
    return ", ".join(f"{reason} {percent(count / len(unscored))}" for reason, count in counts.items())
