"""The page of a matrix: its answer, the statistics behind it, the paper's tables and figures, and its tables."""

import io
import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from selfprobe.data.clusters import few_clusters
from selfprobe.embed import DEFAULT_EMBEDDER
from selfprobe.errors import NoLogs
from selfprobe.logs import Run, Runs, runs
from selfprobe.page import (
    LINES,
    PI,
    Block,
    Column,
    Details,
    Figures,
    Log,
    Page,
    Picture,
    Section,
    Table,
    columns,
    headings,
    more_in_tables,
    set_aside,
)
from selfprobe.page.claims import answer_over, claim_sentence
from selfprobe.page.numerals import Interval, number, percent
from selfprobe.page.plots import Scale, cut_name, interval_rows, model_names
from selfprobe.stats.claim import VERDICT_ORDER, Claim, Verdict, ordered_claims
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.stats.pairs import OVER_PAIRS
from selfprobe.studies.matrix.diversity import OPEN, TITLE, diversity_lines, diversity_section, not_measured
from selfprobe.studies.matrix.effort import effort_sections
from selfprobe.studies.matrix.numbers import Analysis, TaskAnalysis, analyse
from selfprobe.studies.matrix.reproduction import paper_sections, paper_tables, reproduce
from selfprobe.studies.matrix.rows import EFFECT
from selfprobe.studies.matrix.sections import (
    axes_section,
    axes_table,
    axis_rows,
    cells_section,
    frames_section,
    frames_table,
    frames_told,
    informed_alone,
    informed_frame,
    informed_rows,
    informed_told,
    models_on_themselves,
    others_picture,
    published_section,
    self_table,
    why_section,
)
from selfprobe.studies.matrix.table import Results, left_out_of, matrices_of
from selfprobe.studies.matrix.verdict import MATRIX_WORDS, NEAR_COPY_CAUTION
from selfprobe.study._registry import measures
from selfprobe.text.safe import clean, cleaned

ROWS = 6
"""Largest number of rows of picture and table."""
ORDER = tuple(verdict.value for verdict in VERDICT_ORDER)


@dataclass(frozen=True)
class Standing:
    """Score of one model on itself, and what comes closest."""

    task: str
    model: str
    answer: str
    itself: Interval
    other: Interval
    """The best other model's score on it."""
    guess: Interval
    """The best prediction that needs no model."""

    @property
    def lead(self) -> float:
        """Lead over the best of the others; NaN counts as nothing."""
        rest = [x for x in (self.other.value, self.guess.value) if not math.isnan(x)]
        return -math.inf if math.isnan(self.itself.value) else self.itself.value - max(rest, default=0)


@dataclass(frozen=True)
class FirstScreen:
    """Part of the page that a reader sees before anything is opened."""

    answer: str
    picture: Picture | None
    table: Table
    notes: tuple[str, ...]
    """A line a task for the terminal, where there are several; and which control could still overturn the result."""


def first_screen(analysis: Analysis, themselves: pd.DataFrame) -> FirstScreen:
    """The answer over all tasks of a matrix.

    Args:
        analysis: The tasks of several models.
        themselves: Rows of `sections.self_table`: tasks of a single model are in no analysis.
    """
    known = {task.task for task in analysis.tasks}
    lone = [row for row in themselves.itertuples() if row.task not in known]
    standings = [one for task in analysis.tasks for one in _standings(task)] + [_standing_alone(row) for row in lone]
    standings.sort(key=lambda one: (ORDER.index(one.answer), -one.lead))
    tasks = list(dict.fromkeys([task.task for task in analysis.tasks] + [row.task for row in lone]))
    scale: Scale = "percent" if all(measures()[task].graded for task in tasks) else "score"
    names = {name: text.replace(" ", "\N{NO-BREAK SPACE}") for name, text in model_names(_models(standings)).items()}
    strongest = [next(one for one in standings if one.task == task) for task in tasks]
    several = len(tasks) > 1
    claims = claims_by_name(analysis, names, several=several)
    shown = (sorted(strongest, key=standings.index) if several else standings)[:ROWS]
    return FirstScreen(
        _renamed(answer_over(claims, MATRIX_WORDS)[0], names) if claims else _only(standings, names, scale),
        _picture(shown, names, scale, several=several, left=len(strongest if several else standings) - len(shown)),
        _table(shown, names, scale, several=several),
        _notes(analysis, names, several=several),
    )


def _models(standings: Sequence[Standing]) -> list[str]:
    return sorted({one.model for one in standings})


def _standings(task: TaskAnalysis) -> list[Standing]:
    """A task's models, each on itself; those without a complete row by their cells alone."""
    rows = {row.model: row for row in task.rows}
    claims = {claim.subject: claim for claim in task.claims}
    cells = {(cell.target, cell.observer): cell for cell in task.cells.itertuples()}
    out = []
    for model in task.matrix.models:
        others = [cells[model, one] for one in task.matrix.models if one != model]
        best = max(others, key=lambda cell: -math.inf if math.isnan(cell.value) else cell.value, default=None)
        row = rows.get(model)
        out.append(
            Standing(
                task=task.task,
                model=model,
                answer=claims[model].verdict.value,
                itself=row.score if row else cells[model, model],
                other=cells[model, row.rival] if row else best or undefined("no other model"),
                guess=row.guess if row else undefined("no baseline without a complete row"),
            )
        )
    return out


def _standing_alone(row: Any) -> Standing:
    """A model that no other one was compared with; a row of `sections.self_table`."""
    guess = Estimate(row.baseline, math.nan, math.nan, 0, "item", reason="no interval")
    return Standing(row.task, row.model, Verdict.CANNOT_TELL.value, row, undefined("no other model"), guess)


def claims_by_name(analysis: Analysis, names: dict[str, str], *, several: bool) -> list[Claim]:
    """The claims of all tasks, by the names that people call their models."""
    claims = []
    for task in analysis.tasks:
        for claim in task.claims:
            where = f" in {task.task}" if several else ""
            claims.append(replace(claim, subject=f"{names.get(claim.subject, claim.subject)}{where}"))
    return claims


def _only(standings: Sequence[Standing], names: dict[str, str], scale: Scale) -> str:
    """The answer where every task has a single model."""
    one = standings[0] if standings else None
    who = _who(_models(standings), names) if standings else "any model"
    if len(standings) != 1 or one is None:
        return f"Cannot tell for {who}: each task has a single model, and comparing takes five."
    if math.isnan(one.itself.value):
        return f"Cannot tell for {who}: it has no score."
    at = percent(one.itself.value) if scale == "percent" else number(one.itself.value)
    reached = f"it predicts itself in {at} of cases" if scale == "percent" else f"it scores {at} on itself"
    guess = percent(one.guess.value) if scale == "percent" else number(one.guess.value)
    without = "" if math.isnan(one.guess.value) else f", guessing without a model {guess}"
    return f"Cannot tell for {who} alone: {reached}{without}; comparing takes five models."


def _who(models: Sequence[str], names: dict[str, str]) -> str:
    return " and ".join(names[model] for model in models) if len(models) < 3 else f"{len(models)} models"


def _picture(
    rows: Sequence[Standing], names: dict[str, str], scale: Scale, *, several: bool, left: int
) -> Picture | None:
    drawn = {}
    for one in rows:
        marks = {"itself": one.itself, "best other model": one.other, "without a model": one.guess}
        label = f"{one.task}\n{cut_name(names[one.model])}" if several else cut_name(names[one.model])
        drawn[label] = {key: e for key, e in marks.items() if key == "itself" or not math.isnan(e.value)}
    if not any(not math.isnan(one.itself.value) for one in rows):
        return None
    caption = f"95 % intervals.{more_in_tables(left)}"
    axis = "cases in which the model is predicted" if scale == "percent" else "score on the model"
    return interval_rows("predicted", drawn, caption=caption, axis=axis, scale=scale)


def _table(rows: Sequence[Standing], names: dict[str, str], scale: Scale, *, several: bool) -> Table:
    write = percent if scale == "percent" else number

    def score(of: str) -> Column:
        title = {"itself": "on itself", "other": "best other", "guess": "without a model"}[of]
        return Column(title, lambda one: getattr(one, of).value, write)

    model = Column("model", lambda one: names[one.model])
    if several:
        task = Column("task", lambda one: Markup("_<wbr>").join(one.task.split("_")))
        ahead = Column("model ahead", lambda one: names[one.model])
        return Table(rows, (task, Column("answer", "answer"), ahead, score("itself"), score("other")))
    return Table(rows, (model, Column("answer", "answer"), score("itself"), score("other"), score("guess")))


def _notes(analysis: Analysis, names: dict[str, str], *, several: bool) -> tuple[str, ...]:
    claims = ordered_claims(claims_by_name(analysis, names, several=several))
    lines = [_renamed(claim_sentence(claim, MATRIX_WORDS), names) for claim in claims[1:]]
    if len(lines) > 4:
        lines[3:] = [f"{len(lines) - 3} more answers are on the page."]
    if unscored := sorted({model for task in analysis.tasks for model in task.left_out}):
        lines.insert(0, f"No score, so no answer, for {', '.join(names[model] for model in unscored)}.")
    cautions = [NEAR_COPY_CAUTION.format(model=claim.subject) for claim in claims if claim.verdict is Verdict.YES]
    return (*lines, *cautions)[:LINES]


MOST = 200
"""Largest number of samples whose replies a report embeds unasked: more take minutes."""


def matrix_page(logs: Sequence[str], *, embedder: str | None = DEFAULT_EMBEDDER) -> Page:
    """`runs_page` of all logs under these files and folders.

    Raises:
        InputError: A path does not exist.
        NoLogs: There is no log of a matrix task among them.
    """
    return runs_page(runs(logs), logs, embedder=embedder)


def runs_page(there: Runs, paths: Sequence[str] = (), *, embedder: str | None = DEFAULT_EMBEDDER) -> Page:
    """The page of the matrices of these runs; with several models also how alike their replies are.

    Args:
        there: Runs of matrix tasks, and of open answers.
        paths: Paths that were searched, for messages.
        embedder: What makes vectors of the replies; None: the default one, for at most `MOST` samples.

    Raises:
        NoLogs: There is no log of a matrix task among them.
    """
    open_answers = [run for run in there.finished if run.identity.task == OPEN]
    try:
        results = matrices_of(there, paths)
    except NoLogs:
        if not open_answers:
            raise
        similar, tables = _alike(open_answers, embedder)
        return Page(TITLE, sections=similar, tables=tables, notes=diversity_lines(tables))
    sampled = {run.log for run in results.runs if run.identity.task == OPEN}
    results = replace(results, ignored={log: why for log, why in results.ignored.items() if log not in sampled})
    counting = {*_counting(results), *sampled}
    similar, tables = _alike([run for run in results.runs if run.log in counting], embedder)
    whole = results_page(results, analyse(results, rng=np.random.default_rng(0)), paper=similar)
    return replace(whole, tables={**whole.tables, **tables})


def _alike(found: Sequence[Run], embedder: str | None) -> tuple[list[Section], dict[str, pd.DataFrame]]:
    sample_count = sum(run.planned_samples for run in found if run.header.results)
    if embedder is None and sample_count > MOST:
        return [not_measured(sample_count)], {}
    return diversity_section(found, embedder=embedder or DEFAULT_EMBEDDER)


def _counting(results: Results) -> list[str]:
    """The logs of cells that are no holes."""
    out = left_out_of(results.cells)
    cells = results.cells[~results.cells.joined.astype(bool)]
    return [cell.log for cell in cells.itertuples() if (cell.task, cell.target, cell.observer) not in out]


def results_page(results: Results, analysis: Analysis, *, paper: Sequence[Block] = ()) -> Page:
    """The page of tables and numbers that are at hand.

    Args:
        results: The tables.
        analysis: Their numbers.
        paper: More that stands under “As in the paper”.
    """
    informed = informed_rows(results, analysis)
    themselves = self_table(results, {task.task: task.matrix for task in analysis.tasks})
    decisions = io.BytesIO()
    cleaned(results.decisions).to_parquet(decisions, index=False)
    alone = _alone(analysis, themselves)
    axes = axis_rows(results) if results.runs else []
    efforts, effort_tables = effort_sections(results.runs)
    reproduced = reproduce(results, rng=np.random.default_rng(0))
    first = first_screen(analysis, themselves)
    named = [results.cells, *([results.informed] if len(results.informed) else [])]
    names = model_names(models := sorted({model for table in named for model in (*table.target, *table.observer)}))
    notes = [
        *_remarks(results),
        *results.settings.values(),
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
                *map(escape, results.settings.values()),
                *(why_section(task) for task in analysis.tasks),
                *(escape(clean(_renamed(line, names))) for line in alone),
                *informed_alone(informed, analysis),
                *frames_section(results),
            ],
            paper=[
                *paper_sections(reproduced),
                *_others(analysis),
                *paper,
                *efforts,
                *axes_section(axes),
                published_section(),
            ],
            cells=[*(cells_section(task) for task in analysis.tasks), models_on_themselves(themselves)],
            method=[f"{_counted(results)}. {COUNTS}", *_few_clusters(results), *_method()],
            runs=_runs(results),
        ),
        tables={
            "cells": pd.concat([task.cells for task in analysis.tasks]) if analysis.tasks else pd.DataFrame(),
            "runs": results.cells,
            "advantage": _advantage_table(analysis),
            "self": themselves,
            **paper_tables(reproduced),
            **effort_tables,
            **({"axes": axes_table(axes)} if axes else {}),
            **({"frames": frames_table(results)} if results.frames else {}),
            **({"informed": informed_frame(informed)} if informed else {}),
        },
        files={"tables/decisions.parquet": decisions.getvalue()},
        notes=[_renamed(note, names) for note in notes[:LINES]],
        holes=_holes(analysis.tasks, results.cells)
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
    models = shlex.quote(",".join([*names, "B", "C", "D", "E"][: max(5, len(names))]))
    return [
        *holes,
        f"One model alone has no verdict, which compares it with at least four others: selfprobe matrix --models "
        f"{models} --tasks {tasks}.",
    ]


def _holes(tasks: Sequence[TaskAnalysis], cells: pd.DataFrame) -> list[str]:
    """The cells without a score, and why; none that is joined from runs, which are named where they are holes."""
    joined = {(cell.task, cell.target, cell.observer) for cell in cells[cells.joined.astype(bool)].itertuples()}
    return [
        f"{t.task}, {observer} on {target}: {why}"
        for t in tasks
        for (target, observer), why in t.matrix.holes.items()
        if (t.task, target, observer) not in joined
    ]


def _counted(results: Results) -> str:
    """Cells, the runs that they come from, and tasks."""
    joined, informed = int(results.cells.joined.sum()), len(results.informed)
    cells, runs = len(results.cells), len(results.cells) - joined + informed
    told = f" ({informed} of observers that were told of their target)" if informed else ""
    return f"{_many(cells, 'cell')} from {_many(runs, 'run')}{told}, {_many(results.cells.task.nunique(), 'task')}"


def _few_clusters(results: Results) -> Iterator[str]:
    """A sentence for each task whose items count as few clusters."""
    remedy = "?cluster=COLUMN behind the data file's name takes another column"
    for task, items in results.items.groupby("task"):
        clusters = list(items.cluster.astype(str))
        if few := few_clusters(clusters, rows=f"items of {task}", unit="cluster", remedy=remedy):
            yield few


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
    "over the fit": "A model's own cell less what its skill and predictability give, as fitted to the other cells.",
    "pairs": "How much particular models know of one another anyhow (shared data, distillation). More items do not "
    "make it less.",
    "likest other's replies": "What another model's own replies get as predictions of this model, from the logs.",
    "Yes": "A named model's own cell stands out above skill, noise and the spread of all other pairs, item-specific; "
    "it is above each baseline and each other model's own replies on its own row. Its own unscored replies count as "
    "wrong. The p is corrected by Holm over all models and tasks, and the permutation of the observers agrees where "
    "it can. In the tables: supported.",
    "No": "Nothing is above 0, or a baseline explains it; an advantage of interest would have been seen. In the "
    "tables: not supported.",
    "Cannot tell": "Something is above 0, but skill or the likeness of models could look like this (in the tables: "
    f"not told apart), or this size could not see an advantage of {EFFECT:.2f} in one model (underpowered). With three "
    "models nobody can be named.",
    "what can still pass": "Habits that hang on something in the question which the baselines do not see; a likeness "
    "of few models that none of the others has.",
}
"""The words of the page, for people who have not read the paper."""


def _method() -> list[Block]:
    rows = Table(list(METHOD.items()), (Column("word", lambda row: row[0]), Column("what it says", lambda row: row[1])))
    tests = Markup(
        "The question is that of {}. Tests: <code>selfprobe/stats/pairs.py</code>, "
        "<code>selfprobe/studies/matrix/habit.py</code>, <code>verdict.py</code>; "
        "how often they are right: <code>docs/statistics.md</code>."
    ).format(PI)
    return [rows, tests]


def _runs(results: Results) -> list[Block]:
    joined = int(results.cells.joined.sum())
    runs = results.cells[~results.cells.joined.astype(bool)]
    rows, arms = [*runs.itertuples(), *results.informed.itertuples()], not results.informed.empty
    table = Table(
        rows,
        (
            *(Column(name, name) for name in ("task", "target", "observer", "status")),
            *([Column("told", lambda run: getattr(run, "arm", ""))] if arms else []),
            Column("why", "reason", look="hole"),
            *(Column(name, name, str) for name in ("samples", "tokens")),
            Column("applied", lambda run: "; ".join(f"{role}: {told}" for role, told in run.applied.items())),
            Column("versions", lambda run: f"task {run.version}, selfprobe {run.selfprobe}, inspect {run.inspect}"),
            Column("log", lambda run: Log(run.log)),
        ),
    )
    blocks: list[Block] = [table]
    if joined:
        verb = "is no run" if joined == 1 else "are no runs"
        blocks.append(f"{_many(joined, 'cell')} {verb}: joined from both models' own, as tables/runs.csv lists.")
    return [*_remarks(results), Details(f"All {_many(len(rows), 'run')}", blocks), *set_aside(results.ignored)]


def _remarks(results: Results) -> list[str]:
    """Remarks on how models answered, by task (see `sent.remarks_in`), and on samples that are invalidated."""
    cells = [cell for table in (results.cells, results.informed) for cell in table.itertuples()]
    shown_logs = {cell.log for cell in cells}
    shown_runs = Runs([run for run in results.runs if run.log in shown_logs])
    remarks = [f"{cell.task}, {line}" for cell in cells for line in getattr(cell, "remarks", ())]
    return [*remarks, *shown_runs.invalidated_lines]


def _advantage_table(analysis: Analysis) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for task in analysis.tasks:
        if task.advantage is None:
            rows += [{"task": task.task, "model": claim.subject, **_claim_columns(claim)} for claim in task.claims]
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
            }
        )
        claims = {claim.subject: claim for claim in task.claims}
        for model in task.advantage.models:
            of_row = _row_columns(task, model.model)
            of_claim = _claim_columns(claims[model.model])
            rows.append({"task": task.task, "model": model.model, **columns(model.advantage), **of_row, **of_claim})
    return pd.DataFrame(rows)


def _claim_columns(claim: Claim) -> dict[str, Any]:
    return {"verdict": claim.verdict.value, "why": claim_sentence(claim, MATRIX_WORDS)}


def _row_columns(task: TaskAnalysis, model: str) -> dict[str, Any]:
    """Values of a model's own row for the table of advantages."""
    return next(
        (
            {"p": row.p, "p_holm": p, "habit": row.habit, "item_specific": row.specific.value}
            | {f"p_{step.replace(' ', '_')}": row.p_of(step) for step in row.steps if step != OVER_PAIRS}
            | {"beyond_all_pairs": None if math.isnan(row.steps[OVER_PAIRS]) else row.steps[OVER_PAIRS] == 0}
            | {"over_fit": row.above_fit, "pairs": row.pairs}
            | {"likest": row.stand_in[0], "likest_replies": row.stand_in[1]}
            | {"detects": row.power.detects, "items_needed": row.power.items}
            for row, p in zip(task.rows, task.rows_p_holm, strict=True)
            if row.model == model
        ),
        {},
    )
