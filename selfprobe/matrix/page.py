"""The page of a matrix: its verdicts, the statistics and figures of each task, and its tables."""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from selfprobe._registry import measures
from selfprobe.embed import DEFAULT_EMBEDDER
from selfprobe.matrix.diversity import diversity_section
from selfprobe.matrix.effort import effort_sections
from selfprobe.matrix.figures import paper_pictures, task_pictures
from selfprobe.matrix.numbers import SMALLEST, Analysis, TaskAnalysis, analyse
from selfprobe.matrix.table import Matrix, Results, load, matrix_of
from selfprobe.page import (
    Block,
    Box,
    Column,
    Details,
    Figures,
    Log,
    Page,
    Section,
    Table,
    columns,
    estimated,
    number,
    p_value,
    percent,
    set_aside,
    shown,
)
from selfprobe.stats.estimate import Estimate, clustered_mean


def page(logs: Sequence[str], *, embedder: str = DEFAULT_EMBEDDER) -> Page:
    """The page of the matrices in these logs; with several models also how alike their replies are, by `embedder`.

    Raises:
        InputError: A path does not exist.
        NoLogs: There is no log of a matrix task among them.
    """
    results = load(logs)
    made = page_of(results, analyse(results, rng=np.random.default_rng(0)))
    similar, tables = diversity_section(logs, embedder=embedder)
    return replace(
        made, sections=[*made.sections[:-2], *similar, *made.sections[-2:]], tables={**made.tables, **tables}
    )


def page_of(results: Results, analysis: Analysis) -> Page:
    """The page of tables and numbers that are at hand."""
    own = _self_table(results, {task.task: task.matrix for task in analysis.tasks})
    decisions = io.BytesIO()
    results.decisions.to_parquet(decisions, index=False)
    size, runs = len(analysis.tasks), len(results.cells) - int(results.cells.joined.sum())
    return Page(
        title="Does a model predict itself better than others predict it?",
        lead=f"{len(results.cells)} cells from {runs} runs, {size} task{'s' * (size != 1)}. Scores count what could be "
        "read; what could not is shown as unscored, never guessed.",
        top=[_verdict(task) for task in analysis.tasks]
        or ["No task here has two models: a matrix needs at least two."],
        sections=[
            *(_task(task) for task in analysis.tasks),
            *_overall(analysis),
            *effort_sections(results.headers),
            _models_on_themselves(own),
            Section("Method", [METHOD], name="method", menu="method"),
            _runs(results),
        ],
        tables={
            "cells": pd.concat([task.cells for task in analysis.tasks]) if analysis.tasks else pd.DataFrame(),
            "runs": results.cells,
            "advantage": _advantage_table(analysis),
            "self": own,
        },
        files={"tables/decisions.parquet": decisions.getvalue()},
        told=[f"{task.task}: {task.verdict.kind}. {task.verdict.sentence}" for task in analysis.tasks],
        holes=[
            f"{task.task}, {observer} on {target}: {why}"
            for task in analysis.tasks
            for (target, observer), why in task.matrix.holes.items()
        ],
    )


def _verdict(task: TaskAnalysis) -> Box:
    models = f" for {', '.join(task.verdict.models)}" if task.verdict.models else ""
    return Box(f"{task.task}: {task.verdict.kind}{models}", task.verdict.sentence, task.verdict.kind.partition(" ")[0])


def _task(task: TaskAnalysis) -> Section:
    left_out = ", ".join(task.left_out)
    said = f"Left out of the statistics, because cells of theirs are holes: {left_out}."
    cells = Table(
        list(task.cells.itertuples()),
        (Column("target", "target"), Column("observer", "observer"), *SCORED, Column("hole", "hole", look="hole")),
    )
    blocks: list[Block] = [said] if left_out else []
    blocks += [_statistics(task)] if task.advantage else []
    blocks += [Figures(task_pictures(task)), Details(f"All cells of {task.task}", [cells])]
    return Section(task.task, blocks, name=task.task)


SCORED = (
    estimated("score [95 % interval]", digits=3),
    Column("items", "n", str),
    Column("unscored", "unscored", percent),
    Column("reasoned", "reasoned", percent),
)
"""Columns of a cell's score."""


def _statistics(task: TaskAnalysis) -> Table:
    """The tests of one task, a row each: quantity, value, what it says."""
    assert task.advantage is not None and task.capability is not None and task.test is not None
    total, shuffled, test = task.advantage.total, task.advantage.permutation, task.test
    about = {
        "mode": "always the most frequent truth of the other items",
        "text only": "TF-IDF and logistic regression on the item's text, cross-fitted",
    }
    rows = [
        (
            "self advantage T",
            shown(total, 3),
            f"(trace − ΣA/M)/(M − 1), items resampled ({total.n} items); {p_value(task.p)}, Holm over tasks "
            f"{p_value(task.p_holm)}",
        ),
        ("over like observers", shown(task.capability, 3), "capability control" + _left_out(task.capability)),
        *((f"over “{name}”", shown(e, 3), about[name] + _left_out(e)) for name, e in task.baselines.items()),
        *(
            (f"over “{name}”", "–", f"not applied, so the verdict does not ask for it: {why}")
            for name, why in task.without.items()
        ),
        (
            "permutation of observers",
            p_value(shuffled.p),
            f"{shuffled.count} orders{', all of them' if shuffled.exact else ''}; needs four models to reach .05",
        ),
        (
            "Wilcoxon over models",
            p_value(test.wilcoxon_p),
            f"the paper's test (p = .0210 there): {test.wins} of {test.n} models score higher on themselves; skill not "
            "removed",
        ),
        (
            "power",
            number(task.power, 2),
            f"chance to see an advantage of {SMALLEST}; {_detects(task)}",
        ),
    ]
    heads = ("quantity", "value [95 % interval]", "what it says")
    named = [dict(zip(heads, row, strict=True)) for row in rows]
    return Table(named, tuple(Column(head, head, look="e" * ("value" in head)) for head in heads))


def _detects(task: TaskAnalysis) -> str:
    if not task.mde < 1:  # an advantage of 1: only the model itself is ever right
        return "this matrix is too small to detect any self advantage with 80 % power"
    return f"the smallest advantage that this matrix detects with 80 % power is {number(task.mde)}"


def _left_out(estimate: Estimate) -> str:
    """What an interval that there is leaves out; `shown` gives the reason of one that there is not."""
    return f"; {estimate.reason}" if estimate.reason and not math.isnan(estimate.low) else ""


def _models_on_themselves(own: pd.DataFrame) -> Section:
    known = {task: measure.published for task, measure in measures().items() if measure.published}
    rows = pd.DataFrame(known).rename_axis("model").reset_index().to_dict("records")
    published = Table(rows, (Column("model", "model"), *(Column(n, n, lambda x: number(x, 2)) for n in known)))
    hint = "Another data set, other models, no intervals and no unscored rates: for orientation only."
    summary = "Published numbers (paper 003, Table 2, percent), to hold these against"
    columns_ = (Column("task", "task"), Column("model", "model"), *SCORED, Column("hole", "hole", look="hole"))
    blocks: list[Block] = [Table(list(own.itertuples()), columns_), Details(summary, [published, hint])]
    return Section("Models on themselves", blocks, name="self", menu="models on themselves")


METHOD = Markup(
    "Each model's run on itself is the record of its behaviour. A cell (target, observer) holds the observer's "
    "answers against the target's recorded behaviour, so all observers face one truth. T is the mean of the diagonal "
    "above what row and column means predict. “Supported” asks for: T's interval above 0; a model that beats every "
    "other observer of it (Holm), or all on average; a permutation test that agrees where it can; an advantage over "
    "observers of like capability, and over the mode and a text-only observer where these are defined (each task's "
    f"table says which were applied). “Underpowered” means this size could not see an advantage of {SMALLEST}. Tests "
    "in <code>selfprobe/matrix/advantage.py</code> and <code>selfprobe/matrix/verdict.py</code>."
)


def _runs(results: Results) -> Section:
    table = Table(
        list(results.cells.itertuples()),
        (
            *(Column(name, name) for name in ("task", "target", "observer", "status")),
            Column("why", "reason", look="hole"),
            *(Column(name, name, str) for name in ("samples", "tokens")),
            Column("versions", lambda run: f"task {run.version}, selfprobe {run.selfprobe}, inspect {run.inspect}"),
            Column("log", lambda run: "no run: joined from both models' own" if run.joined else Log(run.log)),
        ),
    )
    return Section(
        "Runs",
        [Details(f"All {len(results.cells)} cells", [table]), *set_aside(results.ignored)],
        name="runs",
        menu="runs",
    )


def _overall(analysis: Analysis) -> list[Section]:
    """Figure 8: the paper's aggregate, where two models or more are complete in every task."""
    if analysis.paper is None:
        return []
    models = len(analysis.paper_models)
    epsilons = Table(
        analysis.epsilons,
        (
            Column("ε", "eps", str),
            Column("T on the log scale", "advantage", number),
            Column("models with a positive own cell", "positive", lambda count: f"{count} of {models}"),
        ),
    )
    intro = (
        "Min-max per task, mean A, ln(A + ε), double-centred (G.3). ε is not given in the paper and moves the result:"
    )
    reasons = [f"{task} is left out of A: {why}." for task, why in analysis.paper.reasons.items()]
    blocks: list[Block] = [intro, epsilons, *reasons, Figures(paper_pictures(analysis))]
    return [Section("The paper's transform over all tasks", blocks, name="paper", menu="all tasks")]


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
                **columns(total),
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
            {"task": task.task, "model": m.model, **columns(m.advantage), "p": m.p, "p_holm": m.p_holm}
            for m in task.advantage.models
        ]
    return pd.DataFrame(rows)


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
                    **columns(estimate),
                    "unscored": float(group.value.isna().mean()),
                    "reasoned": float(group.reasoned.mean()),
                    "hole": matrix.holes.get((model, model), "" if estimate.n else "nothing was scored"),
                }
            )
    return pd.DataFrame(rows)
