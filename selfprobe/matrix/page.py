"""The page of a matrix: its answer, the statistics behind it, the paper's tables and figures, and its tables."""

import io
import math
import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from selfprobe.embed import DEFAULT_EMBEDDER
from selfprobe.logs import Identity
from selfprobe.matrix.answer import first_screen
from selfprobe.matrix.axes import axes_section, axes_table, axis_rows
from selfprobe.matrix.comparable import left_out_of
from selfprobe.matrix.diversity import OPEN, diversity_section, not_measured
from selfprobe.matrix.effort import effort_sections
from selfprobe.matrix.figures import others_picture
from selfprobe.matrix.frames import frames_section, frames_table, frames_told
from selfprobe.matrix.informed_section import informed_alone, informed_frame, informed_rows, informed_told
from selfprobe.matrix.numbers import Analysis, TaskAnalysis, analyse
from selfprobe.matrix.paper_section import paper_sections, paper_tables
from selfprobe.matrix.power import EFFECT
from selfprobe.matrix.reproduction import reproduce
from selfprobe.matrix.self_section import models_on_themselves, published_section, self_table
from selfprobe.matrix.table import Results, load
from selfprobe.matrix.task_section import cells_section, why_section
from selfprobe.page import (
    LINES,
    PI,
    Block,
    Column,
    Details,
    Figures,
    Log,
    Page,
    Section,
    Table,
    columns,
    headings,
    set_aside,
)
from selfprobe.plots import called
from selfprobe.safe import clean

MOST = 200
"""Samples whose replies a report embeds unasked: more take minutes."""


def page(
    logs: Sequence[str],
    *,
    embedder: str | None = DEFAULT_EMBEDDER,
    of: Collection[Identity] | None = None,
    limit: int | None = None,
) -> Page:
    """The page of the matrices in these logs; with several models also how alike their replies are.

    Args:
        logs: Files and folders.
        embedder: What makes vectors of the replies; None: the default one, and of at most `MOST` samples.
        of: The runs that are shown; None is all.
        limit: Number of items of each that are shown; None is all.

    Raises:
        InputError: A path does not exist.
        NoLogs: There is no log of a matrix task among them.
    """
    results = load(logs, of=of, limit=limit)
    sampled = [run.log for run in results.runs if run.identity.task == OPEN]
    results = replace(results, ignored={log: why for log, why in results.ignored.items() if log not in sampled})
    counting = [*_counting(results), *sampled]
    logs_here = {run.log: run.header for run in results.runs}
    samples = sum(log.results.total_samples for name, log in logs_here.items() if log.results and name in counting)
    if embedder is None and samples > MOST:
        similar, tables = [not_measured(samples)], dict[str, pd.DataFrame]()
    else:
        similar, tables = diversity_section(counting, embedder=embedder or DEFAULT_EMBEDDER)
    whole = page_of(results, analyse(results, rng=np.random.default_rng(0)), paper=similar)
    return replace(whole, tables={**whole.tables, **tables})


def _counting(results: Results) -> list[str]:
    """The logs of cells that are no holes."""
    out = left_out_of(results.cells)
    cells = results.cells[~results.cells.joined.astype(bool)]
    return [cell.log for cell in cells.itertuples() if (cell.task, cell.target, cell.observer) not in out]


def page_of(results: Results, analysis: Analysis, *, paper: Sequence[Block] = ()) -> Page:
    """The page of tables and numbers that are at hand.

    Args:
        results: The tables.
        analysis: Their numbers.
        paper: More that stands under “As in the paper”.
    """
    informed = informed_rows(results, analysis)
    themselves = self_table(results, {task.task: task.matrix for task in analysis.tasks})
    decisions = io.BytesIO()
    results.decisions.to_parquet(decisions, index=False)
    alone = _alone(analysis, themselves)
    axes = axis_rows(results) if results.runs else []
    reproduced = reproduce(results, rng=np.random.default_rng(0))
    first = first_screen(analysis, themselves)
    named = [results.cells, *([results.informed] if len(results.informed) else [])]
    names = called(models := sorted({model for table in named for model in (*table.target, *table.observer)}))
    notes = [
        *_substitutes(results),
        *first.notes,
        *alone,
        *frames_told(results, {task.task for task in analysis.tasks}),
    ]
    notes += informed_told(informed, analysis)
    return Page(
        title="Does a model predict itself better than others predict it?",
        answer=first.answer,
        picture=first.picture,
        table=first.table,
        models=models,
        sections=headings(
            why=[
                *(why_section(task) for task in analysis.tasks),
                *(escape(clean(_renamed(line, names))) for line in alone),
                *informed_alone(informed, analysis),
                *frames_section(results),
            ],
            paper=[
                *paper_sections(reproduced),
                *_others(analysis),
                *paper,
                *effort_sections(results.runs),
                *axes_section(axes),
                published_section(),
            ],
            cells=[*(cells_section(task) for task in analysis.tasks), models_on_themselves(themselves)],
            method=[f"{_counted(results)}. {COUNTS}", *_method()],
            runs=_runs(results),
        ),
        tables={
            "cells": pd.concat([task.cells for task in analysis.tasks]) if analysis.tasks else pd.DataFrame(),
            "runs": results.cells,
            "advantage": _advantage_table(analysis),
            "self": themselves,
            **paper_tables(reproduced),
            **({"axes": axes_table(axes)} if axes else {}),
            **({"frames": frames_table(results)} if results.frames else {}),
            **({"informed": informed_frame(informed)} if informed else {}),
        },
        files={"tables/decisions.parquet": decisions.getvalue()},
        told=[_renamed(note, names) for note in notes[:LINES]],
        holes=_holes(analysis.tasks)
        + [f"{task}, {one.observer} ({one.arm}) on {one.target}: {one.hole}" for task, one in informed if one.hole],
    )


COUNTS = "Scores count what could be read; what could not is shown as unscored, never guessed."


def _others(analysis: Analysis) -> list[Section]:
    """Figure 2 of each task; of a single one it stands under Figure 2 already."""
    pictures = [others_picture(task) for task in analysis.tasks if task.advantage]
    if len(pictures) < 2:
        return []
    return [Section("Figure 2, task by task", [Figures(pictures)])]


def _renamed(text: str, names: dict[str, str]) -> str:
    """A line with its models by the names that people call them; a command keeps theirs."""
    line, command, rest = text.partition("selfprobe matrix ")
    for model in sorted(names, key=len, reverse=True):
        line = line.replace(model, names[model])
    return line + command + rest


def _alone(analysis: Analysis, themselves: pd.DataFrame) -> list[str]:
    """Why tasks that a single model ran on itself have no verdict; the other tasks have one."""
    lone = themselves[~themselves.task.isin([task.task for task in analysis.tasks])] if len(themselves) else themselves
    if not len(lone):
        return []
    holes = [f"{row.task}, {row.model}: no score, since {row.hole}." for row in lone.itertuples() if row.hole]
    names, tasks = list(dict.fromkeys(lone.model)), ",".join(dict.fromkeys(lone.task))
    models = shlex.quote(",".join([*names, "B", "C"][: max(3, len(names))]))
    return [
        *holes,
        f"One model alone has no verdict, which compares it with at least two others: selfprobe matrix --models "
        f"{models} --tasks {tasks}.",
    ]


def _holes(tasks: Sequence[TaskAnalysis]) -> list[str]:
    """The cells without a score, and why."""
    return [
        f"{t.task}, {observer} on {target}: {why}" for t in tasks for (target, observer), why in t.matrix.holes.items()
    ]


def _counted(results: Results) -> str:
    """Cells, the runs that they come from, and tasks."""
    joined, informed = int(results.cells.joined.sum()), len(results.informed)
    cells, runs = len(results.cells), len(results.cells) - joined + informed
    told = f" ({informed} of observers that were told of their target)" if informed else ""
    return f"{_many(cells, 'cell')} from {_many(runs, 'run')}{told}, {_many(results.cells.task.nunique(), 'task')}"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


METHOD = {
    "cell": "The observer's answers, compared with what the target did when it ran on itself: all observers face one "
    "truth. In a join the other observer's answer is what it said of itself: it was not asked about the target.",
    "T": "The mean of the diagonal above what row and column means predict. It is an estimate and no test: skill times "
    "predictability looks the same.",
    "skill": "How well a model predicts the other models. In the table of models on themselves: the share of the way "
    "from the best baseline to 1 that the model goes.",
    "habit": "What a model's answers get against its acts at other items.",
    "item-specific": "The score that is left without the habit.",
    "ceiling": "What the target reaches when it is asked twice: perfect knowledge reaches no more.",
    "without a model": "The best of the predictions that need no model: the commonest answer, a classifier of the "
    "item's text, and what a task adds.",
    "closest": "Of the other observers, or of the informed ones, the one with the best score on the named model: the "
    "model must know more of itself than that one.",
    "informed observer": "An observer that was told the target's name, or shown replies of the target to other items. "
    "Where there is one, a named model must know more of itself than the one that comes closest to it.",
    "Yes": "A named model knows more of itself than every other observer does, beyond skill, on all three scales (as "
    "scored, log, logit), item-specific, and more than each baseline on its own row. The p is corrected by Holm over "
    "all models and tasks, and the permutation of the observers agrees where it can. In the tables: supported.",
    "on any scale at all": "The model also beats, on itself, a better observer of the others: no scale makes skill of "
    "that (the scores cross).",
    "No": "Nothing is above 0, or a baseline explains it; an advantage of interest would have been seen. In the "
    "tables: not supported.",
    "Cannot tell": f"Something is above 0, but skill could look like this (in the tables: not told apart), or this "
    f"size could not see an advantage of {EFFECT:.2f} in one model (underpowered).",
    "what can still pass": "Habits that hang on something in the question which the baselines do not see.",
}
"""The words of the page, for people who have not read the paper."""


def _method() -> list[Block]:
    rows = Table(list(METHOD.items()), (Column("word", lambda row: row[0]), Column("what it says", lambda row: row[1])))
    tests = Markup(
        "The question is that of {}. Tests: <code>selfprobe/matrix/scales.py</code>, <code>habit.py</code>, "
        "<code>verdict.py</code>; how often they are right: <code>docs/verdict_rates.md</code>."
    ).format(PI)
    return [rows, tests]


def _runs(results: Results) -> list[Block]:
    rows, arms = [*results.cells.itertuples(), *results.informed.itertuples()], not results.informed.empty
    table = Table(
        rows,
        (
            *(Column(name, name) for name in ("task", "target", "observer", "status")),
            *([Column("told", lambda run: getattr(run, "arm", ""))] if arms else []),
            Column("why", "reason", look="hole"),
            *(Column(name, name, str) for name in ("samples", "tokens")),
            Column("applied", lambda run: "; ".join(f"{role}: {told}" for role, told in run.applied.items())),
            Column("versions", lambda run: f"task {run.version}, selfprobe {run.selfprobe}, inspect {run.inspect}"),
            Column("log", lambda run: "no run: joined from both models' own" if run.joined else Log(run.log)),
        ),
    )
    return [*_substitutes(results), Details(f"All {_many(len(rows), 'cell')}", [table]), *set_aside(results.ignored)]


def _substitutes(results: Results) -> list[str]:
    """Models in whose place another one answered, by task."""
    cells = (cell for table in (results.cells, results.informed) for cell in table.itertuples())
    return [f"{cell.task}, {line}" for cell in cells for line in getattr(cell, "substitutes", ())]


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
                "p_permutation": task.permutation.p,
                "p_wilcoxon": task.test.wilcoxon_p if task.test else math.nan,
                "verdict": task.verdict.kind,
                "why": task.verdict.sentence,
            }
        )
        rows += [
            {"task": task.task, "model": m.model, **columns(m.advantage), **_row_columns(task, m.model)}
            for m in task.advantage.models
        ]
    return pd.DataFrame(rows)


def _row_columns(task: TaskAnalysis, model: str) -> dict[str, float]:
    """What the table of advantages holds of a model's own row."""
    return next(
        (
            {"p": row.p, "p_holm": p, "habit": row.habit, "item_specific": row.specific.value}
            | {f"p_{scale.replace(' ', '_')}": value for scale, value in row.beyond.scales.items()}
            | {"p_crossing": row.beyond.crossing, "detects": row.power.detects, "items_needed": row.power.items}
            for row, p in zip(task.rows, task.rows_p_holm, strict=True)
            if row.model == model
        ),
        {},
    )
