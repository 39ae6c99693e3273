"""The report of a matrix: one self-contained page, its tables as CSV and JSON, its figures as SVG and PNG."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from selfprobe import plots
from selfprobe._registry import measures
from selfprobe.matrix.effort import draw, effort_points, sweeps
from selfprobe.matrix.numbers import SMALLEST, Analysis, TaskAnalysis, analyse
from selfprobe.matrix.table import Matrix, Results, load, matrix_of
from selfprobe.page import Picture, render, save_pictures, save_tables
from selfprobe.stats.estimate import Estimate, clustered_mean


def write(logs: Sequence[str], out: Path) -> Analysis:
    """Read the logs, analyse them, and write `index.html`, `tables/` and `figures/` into `out`.

    Raises:
        ValueError: There is no selfprobe log among them.
    """
    results = load(logs)
    analysis = analyse(results, rng=np.random.default_rng(0))
    tables = {
        "cells": pd.concat([task.cells for task in analysis.tasks]) if analysis.tasks else pd.DataFrame(),
        "runs": results.cells,
        "advantage": _advantage_table(analysis),
        "self": _self_table(results, {task.task: task.matrix for task in analysis.tasks}),
    }
    pictures = {task.task: _pictures(task) for task in analysis.tasks}
    overall = _overall(analysis)
    effort, why_no_effort = _effort(results)
    save_tables(tables, out / "tables")
    results.decisions.to_parquet(out / "tables" / "decisions.parquet", index=False)
    save_pictures([*overall, *effort, *(p for several in pictures.values() for p in several)], out / "figures")
    page = render(
        "report.html",
        analysis=analysis,
        results=results,
        pictures=pictures,
        overall=overall,
        effort=effort,
        why_no_effort=why_no_effort,
        self_rows=tables["self"].to_dict("records"),
        published=_published(),
        runs=results.cells.to_dict("records"),
        ignored=results.ignored,
        smallest=SMALLEST,
    )
    (out / "index.html").write_text(page, encoding="utf-8")
    return analysis


def _published() -> list[dict[str, Any]]:
    """Rows of paper 003, Table 2 (percent), by model; its data and its unscored rates are not public."""
    columns = {task: measure.published for task, measure in measures().items() if measure.published}
    table = pd.DataFrame(columns).rename_axis("model").reset_index()
    return [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False)]


def _pictures(task: TaskAnalysis) -> list[Picture]:
    models = list(task.matrix.models)

    def grid(column: str) -> pd.DataFrame:
        return task.cells.pivot(index="target", columns="observer", values=column).loc[models, models]

    raw = plots.heat_map(
        grid("value"),
        models,
        title=f"{task.task}: score of each observer on each target",
        low=grid("low"),
        high=grid("high"),
        holes=task.matrix.holes,
    )
    told = "; ".join(f"{r.observer} on {r.target} {r.value:.2f}" for r in task.cells.itertuples() if r.n)
    pictures = [
        Picture(
            f"{task.task}-matrix",
            f"Heat map of scores. {told}",
            "Scores with 95 % intervals by item; framed: models on themselves.",
            raw,
        )
    ]
    if task.advantage is None:
        return pictures
    kept = list(task.models)
    centred = plots.heat_map(
        task.advantage.centred, kept, title=f"{task.task}: row and column means removed", centred=True
    )
    pictures.append(
        Picture(
            f"{task.task}-centred",
            "Heat map of the double-centred scores; on the diagonal "
            + "; ".join(f"{m} {v:+.2f}" for m, v in zip(kept, np.diag(task.advantage.centred), strict=True)),
            "What is left of a cell without the observer's skill and the target's difficulty. "
            "Violet on the diagonal speaks for self access.",
            centred,
        )
    )
    own, others = _self_and_others(task)
    pictures.append(
        Picture(
            f"{task.task}-self-others",
            "; ".join(f"{m}: itself {_told(a)}, others {_told(b)}" for m, a, b in zip(kept, own, others, strict=True)),
            "Each model's prediction of itself beside the other observers' (the paper's Figure 2).",
            plots.self_against_others(kept, own, others, title=f"{task.task}: itself against the others"),
        )
    )
    if task.advantage.models:
        estimates = [model.advantage for model in task.advantage.models]
        pictures.append(
            Picture(
                f"{task.task}-advantage",
                "; ".join(f"{m} {_told(e)}" for m, e in zip(kept, estimates, strict=True)),
                "Self advantage of each model over what skill and difficulty predict.",
                plots.advantages(kept, estimates, title=f"{task.task}: self advantage by model"),
            )
        )
    return pictures


def _told(estimate: Estimate) -> str:
    """For a reader who does not see the figure."""
    ends = "no interval" if math.isnan(estimate.low) else f"{estimate.low:.2f} to {estimate.high:.2f}"
    return f"{estimate.value:.2f} ({ends})"


def _self_and_others(task: TaskAnalysis) -> tuple[list[Estimate], list[Estimate]]:
    at = [task.matrix.models.index(model) for model in task.models]
    scores = task.matrix.scores[np.ix_(at, at)]  # [target, observer, item]
    items = np.arange(scores.shape[2])
    own, others = [], []
    for i in range(len(at)):
        own.append(clustered_mean(scores[i, i], items))
        rest = np.delete(scores[i], i, axis=0)
        others.append(clustered_mean(rest.ravel(), np.tile(items, len(rest))))
    return own, others


def _overall(analysis: Analysis) -> list[Picture]:
    """Figure 8: the paper's aggregate, where two models or more are complete in every task."""
    if analysis.paper is None:
        return []
    models = list(analysis.paper_models)
    return [
        Picture(
            "paper-aggregate",
            "Heat map of the mean of the min-max normalised tasks",
            f"Mean of the min-max normalised tasks, A (G.3); {len(analysis.tasks)} tasks.",
            plots.heat_map(analysis.paper.aggregate, models, title="A: mean of normalised tasks"),
        ),
        Picture(
            "paper-centred",
            "Heat map of the paper's double-centred log matrix",
            f"The paper's C: double-centred ln(A + ε), ε = {analysis.paper.eps:g}.",
            plots.heat_map(analysis.paper.centred, models, title="C: double-centred ln(A + ε)", centred=True),
        ),
    ]


def _effort(results: Results) -> tuple[list[Picture], str]:
    """Figure 3, where a model has runs of ethical_dilemma at several efforts; or why it cannot be drawn."""
    runs = sweeps(results.headers)
    if not runs:
        return [], ""
    try:
        points = effort_points(runs)
    except ValueError as error:
        return [], str(error)
    told = "; ".join(
        f"{p.observer} on {p.target} at {p.effort}: prediction {_told(p.kl_predicted)}, gut answer {_told(p.kl_direct)}"
        for p in points
    )
    caption = "How far the predicted and the gut answer are from the conclusion, by effort (the paper's Figure 3)."
    return [Picture("effort", f"KL in nats. {told}", caption, draw(points))], ""


def _advantage_table(analysis: Analysis) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for task in analysis.tasks:
        if task.advantage is None:
            rows.append({"task": task.task, "model": "all", "verdict": task.verdict.kind, "why": task.verdict.sentence})
            continue
        total = task.advantage.total
        rows.append(
            {
                "task": task.task,
                "model": "all",
                **_columns(total),
                "p": task.p,
                "p_holm": task.p_holm,
                "p_permutation": task.advantage.permutation.p,
                "p_wilcoxon": task.test.wilcoxon_p if task.test else math.nan,
                "mde": task.mde,
                "power": task.power,
                "verdict": task.verdict.kind,
                "why": task.verdict.sentence,
            }
        )
        rows += [
            {"task": task.task, "model": m.model, **_columns(m.advantage), "p": m.p, "p_holm": m.p_holm}
            for m in task.advantage.models
        ]
    return pd.DataFrame(rows)


def _columns(estimate: Estimate) -> dict[str, float]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "n": estimate.n}


def _self_table(results: Results, matrices: Mapping[str, Matrix]) -> pd.DataFrame:
    """Table 2 with intervals: each model on itself, task by task, from the item scores that the matrices hold.

    `matrices`: those at hand, by task; a task of a single model has none in an analysis.
    """
    cells = results.cells[results.cells.target == results.cells.observer]
    own = results.decisions[results.decisions.target == results.decisions.observer]
    rows = []
    for task, models in cells.groupby("task").target:
        matrix = matrices.get(str(task)) or matrix_of(results, str(task))
        for model in sorted(models):
            place = matrix.models.index(model)
            group = own[(own.task == task) & (own.target == model)]
            estimate = clustered_mean(matrix.scores[place, place], np.arange(len(matrix.items)))
            rows.append(
                {
                    "task": task,
                    "model": model,
                    **_columns(estimate),
                    "unscored": float(group.value.isna().mean()),
                    "reasoned": float(group.reasoned.mean()),
                    "hole": matrix.holes.get((model, model), "" if estimate.n else "nothing was scored"),
                }
            )
    return pd.DataFrame(rows)
