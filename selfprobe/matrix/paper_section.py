"""Table 2 and Figures 2 and 8 to 12 of “Me, Myself, and π” as sections, tables and pictures of the page."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from markupsafe import Markup

from selfprobe import plots
from selfprobe.matrix.figures import self_against_others
from selfprobe.matrix.paper import PaperTransform
from selfprobe.matrix.published import PLACES, SELF, TABLE_2, WILCOXON_P, paper_name
from selfprobe.matrix.reproduction import AGGREGATE, Line, Reproduction, SelfAndOthers
from selfprobe.page import (
    PI,
    Block,
    Bullets,
    Column,
    Details,
    Figures,
    Picture,
    Section,
    Table,
    estimated,
    named,
    number,
    p_digits,
)
from selfprobe.stats.estimate import Estimate


def paper_sections(made: Reproduction | None) -> list[Section]:
    """What the paper shows of a matrix, no average over one task; nothing where no task of it has two models."""
    if made is None:
        return []
    return [_table2_section(made), _figure2_section(made), *_matrices_section(made)]


def paper_tables(made: Reproduction | None) -> dict[str, pd.DataFrame]:
    """The same by file stem."""
    if made is None:
        return {}
    tables = {
        "table2": _table2_frame(made),
        "figure2": _figure2_frame(made),
        "figure2-test": _tests_frame(made),
        "task-ranks": _transfer_frame(made),
    }
    if made.transform is not None:
        tables |= _grids("figure8", made.transform, made.models)
    for task in made.tasks:
        if task.task in made.by_task:
            tables |= _grids(f"figure{PLACES[task.task].figure}", made.by_task[task.task], task.models)
    return tables


def _table2_section(made: Reproduction) -> Section:
    columns = (
        Column("rank", lambda line: line.rank or "", look="n"),
        Column("observer", _name),
        *(estimated(f"{task.task}, {_targets(len(task.models))}", partial(_score, task.task)) for task in made.tasks),
        *([estimated("Avg", "average")] if len(made.tasks) > 1 else []),
    )
    printed = [{"model": model, **scores, "Avg": sum(scores.values()) / 4} for model, scores in TABLE_2.items()]
    columns_ = (
        Column("observer", "model"),
        *(Column(task, task, number) for task in PLACES),
        Column("Avg", "Avg", number),
    )
    summary = "The paper's Table 2 as printed (percent; 11 models, other items, no intervals)"
    intro = Markup(
        "Table 2 of {}. A row is an observer: the mean of its scores on the other models, k = 1 for k-th words. Only "
        "“Self Introspection” is models on themselves. Compare models' rows with each other, and the “Self "
        "Introspection” row only with the paper's. Unscored items are left out; their shares are under All cells."
    ).format(PI)
    blocks: list[Block] = [intro, *_told(made), Table(made.table2, columns), Figures([_table2_picture(made)])]
    return Section(
        "The paper's Table 2: observers on the others",
        [*blocks, Details(summary, [Table(printed, columns_)])],
        name="table2",
    )


def _score(task: str, line: Line) -> Estimate:
    return line.scores[task]


def _targets(models: int) -> str:
    return f"{models} models" if models else "no score"


def _name(line: Line) -> str:
    return f"{SELF} (mean of all models on themselves)" if line.model == SELF else line.model


def _told(made: Reproduction) -> list[Block]:
    """What is missing, and that columns are over different models where they are."""
    out = [
        f"{task.task}: {model} is left out, since {why}." for task in made.tasks for model, why in task.left_out.items()
    ]
    if made.missing and len(made.tasks) > 1:
        out.append(f"Avg is over {len(made.tasks)} of the paper's four tasks; not here: {', '.join(made.missing)}.")
    sets = {task.task: task.models for task in made.tasks if task.models}
    if len(set(sets.values())) > 1:
        names = "; ".join(f"{task}: {', '.join(models)}" for task, models in sets.items())
        out.append(f"The columns are over different models, so compare within a column only. {names}.")
    return [Bullets(out)] if out else []


def _table2_picture(made: Reproduction) -> Picture:
    tasks = [task.task for task in made.tasks]
    several = len(tasks) > 1
    rows = [[line.scores[task] for task in tasks] + [line.average] * several for line in made.table2]
    short = dict(zip(models := [line.model for line in made.table2], plots.short_names(models), strict=True))
    names = [SELF if line.model == SELF else f"{line.rank or '–'}. {short[line.model]}" for line in made.table2]
    return plots.heat_map(
        "table2",
        [[one.value for one in row] for row in rows],
        names,
        [*(PLACES[task].column for task in tasks), *["Avg"] * several],
        caption="Mean score of each observer on the other models, coloured within a column; framed: the models on "
        "themselves.",
        title="Observers on the other models",
        low=[[one.low for one in row] for row in rows],
        high=[[one.high for one in row] for row in rows],
        by_column=True,
        framed=names.index(SELF),
        across="",
        down="",
    )


def _table2_frame(made: Reproduction) -> pd.DataFrame:
    rows = []
    for line in made.table2:
        row: dict[str, object] = {"observer": line.model, "rank": line.rank}
        entries = {task.task: line.scores[task.task] for task in made.tasks} | {"avg": line.average}
        for name, one in entries.items():
            row |= named(name, one)
            if name != "avg":
                row[f"{name}_targets"] = _count(made, name, line)
        averaged = f"{len(made.tasks)} of {len(PLACES)}"
        row["tasks_averaged"] = "" if math.isnan(line.average.value) else averaged
        row["hole"] = "; ".join(
            f"{name}: {one.reason}" for name, one in entries.items() if name != "avg" and math.isnan(one.value)
        )
        printed = SELF if line.model == SELF else paper_name(line.model)
        row["paper_row"] = printed if printed in TABLE_2 else None
        row |= {f"paper_{name}": TABLE_2[str(printed)][name] / 100 for name in PLACES if printed in TABLE_2}
        rows.append(row)
    return pd.DataFrame(rows).astype({"rank": "Int64"})


def _count(made: Reproduction, name: str, line: Line) -> int:
    """Cells whose mean an entry is."""
    models = next(task.models for task in made.tasks if task.task == name)
    return 0 if math.isnan(line.scores[name].value) else len(models) - (line.model != SELF)


def _figure2_section(made: Reproduction) -> Section:
    tests = Table(
        _figure2(made),
        (
            Column("on", "name"),
            Column("models", lambda one: len(one.models), str),
            Column("better on themselves", lambda one: f"{one.test.wins} of {one.test.n}"),
            Column("rank sum against it", lambda one: number(one.test.rank_sum, 1), look="n"),
            Column("Wilcoxon p", lambda one: p_digits(one.test.wilcoxon_p), look="n"),
            Column("sign test p", lambda one: p_digits(one.test.sign_p), look="n"),
        ),
    )
    ranks = Table(
        made.transfer,
        (
            Column("tasks", lambda one: " and ".join(one.tasks)),
            estimated("observers (rows of Table 2)", "observers"),
            estimated("models on themselves", "own"),
            estimated("the paper's ten observers", "paper"),
        ),
    )
    intro = (
        "Each model's score on itself against the mean of the others on it: a signed-rank test over models, one-sided, "
        f"exact. The paper's p = {p_digits(WILCOXON_P)} is this test on the aggregate of its four tasks, the mean of "
        "the min-max normalised matrices. It takes off no skill and no predictability: the answer above does."
    )
    told = "How alike two tasks rank the models (Spearman); the paper: strong performance on one does not transfer."
    blocks: list[Block] = [intro, tests, Figures([_figure2_picture(one) for one in _figure2(made)[-1:]])]
    blocks += [told, ranks] if ranks.rows else []
    return Section(
        "The paper's Figure 2: each model on itself against the others",
        blocks,
        name="figure2",
    )


def _figure2(made: Reproduction) -> list[SelfAndOthers]:
    """Each task, and the aggregate where it is of several."""
    return [one for one in made.figure2 if one.name != AGGREGATE or len(made.by_task) > 1]


def _figure2_picture(one: SelfAndOthers) -> Picture:
    what = "mean of the normalised tasks" if one.name == AGGREGATE else one.name
    names = plots.short_names(one.models)
    return self_against_others(
        "figure2",
        {name: (a, b) for name, a, b in zip(names, one.own, one.others, strict=True)},
        caption=f"The paper's Figure 2, {what}: each model on itself, and the mean of the others on it.",
        title=f"{what}: itself against the others",
    )


def _figure2_frame(made: Reproduction) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"on": one.name, "model": model}
            | named("self", own)
            | named("others", others)
            | {"difference": own.value - others.value}
            for one in made.figure2
            for model, own, others in zip(one.models, one.own, one.others, strict=True)
        ]
    )


def _tests_frame(made: Reproduction) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"on": one.name, "models": len(one.models), "n": one.test.n, "wins": one.test.wins}
            | {"rank_sum": one.test.rank_sum, "wilcoxon_p": one.test.wilcoxon_p, "sign_p": one.test.sign_p}
            for one in made.figure2
        ]
    )


def _transfer_frame(made: Reproduction) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"task": one.tasks[0], "other_task": one.tasks[1], "n": one.observers.n}
            | named("observers", one.observers)
            | named("self", one.own)
            | named("paper_observers", one.paper)
            for one in made.transfer
        ]
    )


def _grids(figure: str, transform: PaperTransform, models: Sequence[str]) -> dict[str, pd.DataFrame]:
    """A and C as tables, a row a target and a column an observer."""
    return {
        f"{figure}-{letter}": pd.DataFrame(grid, columns=list(models)).assign(target=list(models))[["target", *models]]
        for letter, grid in (("A", transform.aggregate), ("C", transform.centred))
    }


def _matrices_section(made: Reproduction) -> list[Section]:
    """The transform over all tasks, where there are several, and of each."""
    apart = [
        picture
        for task in made.tasks
        if task.task in made.by_task
        for picture in _pictures(f"figure{PLACES[task.task].figure}", task.task, made.by_task[task.task], task.models)
    ]
    if made.transform is None or len(made.by_task) < 2:
        return [Section("The paper's transform", [TRANSFORM, Figures(apart)], name="transform")] if apart else []
    epsilons = Table(
        made.epsilons,
        (
            Column("ε", "eps", str),
            Column("T on the log scale", "advantage", lambda x: number(x, 3)),
            Column("models with a positive own cell", "positive", lambda count: f"{count} of {len(made.models)}"),
        ),
    )
    reasons = [f"{task} is left out of A: {why}." for task, why in made.transform.reasons.items()]
    blocks: list[Block] = [TRANSFORM, "ε is not given in the paper and moves the result:", epsilons, *reasons]
    blocks += [Figures(_pictures("figure8", "all tasks", made.transform, made.models))]
    blocks += [Details("The same of each task (Figures 9 to 12)", [Figures(apart)])] if apart else []
    return [Section("The paper's transform over all tasks", blocks, name="transform")]


TRANSFORM = "Min-max per task, mean A, C: ln(A + ε), double-centred (G.3)."


def _pictures(figure: str, of: str, transform: PaperTransform, models: Sequence[str]) -> list[Picture]:
    """A and C as heat maps; a task whose scores are all equal has neither."""
    if np.isnan(transform.aggregate).all():
        return []
    names = plots.short_names(models)
    return [
        plots.heat_map(
            f"{figure}-A",
            transform.aggregate,
            names,
            caption=f"Min-max normalised scores, A (G.3): {of}.",
            title=f"A: normalised scores, {of}",
        ),
        plots.heat_map(
            f"{figure}-C",
            transform.centred,
            names,
            caption=f"C, double-centred ln(A + ε), ε = {transform.eps:g}: {of}.",
            title=f"C: double-centred ln(A + ε), {of}",
            centred=True,
        ),
    ]
