"""The numbers of paper 003's Table 2 and Figures 2 and 8 to 12, from the logs of one matrix.

Only its four tasks count (`published.PLACES`), of k-th words k = 1 alone. A cell without a score is a hole; a model
with a hole is left out of its task for all observers, so that every mean of a column is over the same models.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd
from markupsafe import Markup

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
    interval_columns,
    number,
    p_digits,
    plots,
)
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, spearman, undefined
from selfprobe.studies.matrix.advantage import (
    EpsilonRow,
    ModelsTest,
    PaperTransform,
    epsilon_sensitivity,
    min_max,
    paper_transform,
    wilcoxon_models,
)
from selfprobe.studies.matrix.numbers import cluster_means, complete_models, item_clusters, unit_of, unscored_cells
from selfprobe.studies.matrix.published import CHANCE, PLACES, SELF, TABLE_2, WILCOXON_P, paper_name
from selfprobe.studies.matrix.sections import self_against_others
from selfprobe.studies.matrix.table import Results, TaskMatrix, matrix_of

EPSILON = 0.01
"""ε of the paper's transform. Paper: no number in the text; the public notebook adds 1e-5, and centres raw scores too.
Here: .01, since min-max makes the least cell 0, and ln(1e-5) = -11.5 of one cell would be most of C."""

RESAMPLES = 500
"""Number of resamples of the aggregate's intervals."""

AVERAGE = "average"
"""The mean of the tasks' scores as they are: the public notebook's Average, and Avg of Table 2."""
AGGREGATE = "aggregate"
"""The mean of the min-max normalised tasks: A of G.3."""


@dataclass(frozen=True)
class PaperTask:
    """One of the paper's tasks, as its tables count it."""

    task: str
    matrix: TaskMatrix
    """All models, holes included."""
    models: tuple[str, ...]
    """Models without a hole among them; at least two, or none."""
    left_out: Mapping[str, str]
    """Models left out → why."""
    cluster: npt.NDArray[np.intp]
    """[item]: the number of the cluster that it counts with."""
    chance: float
    """Score of a blind guess; NaN where the task has none."""

    @property
    def scores(self) -> FloatArray:
        """Scores [target, observer, item] of `models`."""
        return self.among(self.models)

    def among(self, models: Sequence[str]) -> FloatArray:
        """Scores [target, observer, item] of these models."""
        at = [self.matrix.models.index(model) for model in models]
        return self.matrix.scores[np.ix_(at, at)]


@dataclass(frozen=True)
class Table2Row:
    """A row of Table 2."""

    model: str
    """The observer; SELF for the mean of all models on themselves."""
    scores: Mapping[str, Estimate]
    """Task → mean over the other targets."""
    average: Estimate
    """Mean over the tasks that are here."""
    rank: int | None
    """Rank among the observers with an average; 1 is best."""


@dataclass(frozen=True)
class SelfAndOthers:
    """Figure 2 on one task, or on a mean of all: each model's score on itself and the others' mean on it."""

    name: str
    """A task, `AVERAGE` or `AGGREGATE`."""
    models: tuple[str, ...]
    own: tuple[Estimate, ...]
    others: tuple[Estimate, ...]
    test: ModelsTest


@dataclass(frozen=True)
class Transfer:
    """Similarity of two tasks' rankings of the models: Spearman's correlations over models."""

    tasks: tuple[str, str]
    observers: Estimate
    """Correlation over the rows of Table 2."""
    own: Estimate
    """Correlation over the models on themselves."""
    paper: Estimate
    """Correlation over the ten observers that the paper prints."""


@dataclass(frozen=True)
class Reproduction:
    """The paper's tables and figures, with the numbers of one matrix."""

    tasks: tuple[PaperTask, ...]
    missing: tuple[str, ...]
    """Tasks of the paper's four that are missing here."""
    table2: tuple[Table2Row, ...]
    """Rows of Table 2 in the paper's order: by average, the best first; rows with a hole last."""
    figure2: tuple[SelfAndOthers, ...]
    """Figure 2 of each task with two complete models; of several tasks their average; then the aggregate."""
    models: tuple[str, ...]
    """Models of the aggregate: complete in every task that is here."""
    transform: PaperTransform | None
    """A and C of all tasks together (Figure 8); None with fewer than two such models."""
    by_task: Mapping[str, PaperTransform]
    """A and C of each task alone (Figures 9 to 12), over its own complete models."""
    epsilons: tuple[EpsilonRow, ...]
    transfer: tuple[Transfer, ...]


def reproduce(results: Results, *, rng: np.random.Generator) -> Reproduction | None:
    """All of the paper's tables of a matrix; None where no task of the paper has two models."""
    here = [task for task in PLACES if task in set(results.cells.task)]
    tasks = [made for task in here if len((made := _task(results, task)).matrix.models) > 1]
    if not tasks:
        return None
    usable = [task for task in tasks if task.models]
    common = tuple(m for m in usable[0].models if all(m in t.models for t in usable)) if usable else ()
    figure2 = [_self_and_others(task) for task in usable]
    transform, epsilons = None, tuple[EpsilonRow, ...]()
    if len(common) > 1:
        means = {task.task: _means(task.among(common)) for task in usable}
        transform, epsilons = paper_transform(means, EPSILON), epsilon_sensitivity(means)
        if len(usable) > 1:
            figure2.append(_averaged(usable, common))
        if not np.isnan(transform.aggregate).any():
            figure2.append(_aggregate(usable, common, transform, rng))
    table2 = _table2(tasks)
    return Reproduction(
        tasks=tuple(tasks),
        missing=tuple(task for task in PLACES if task not in {one.task for one in tasks}),
        table2=table2,
        figure2=tuple(figure2),
        models=common,
        transform=transform,
        by_task={task.task: paper_transform({task.task: _means(task.scores)}, EPSILON) for task in usable},
        epsilons=epsilons,
        transfer=tuple(_transfer(pair, table2, figure2) for pair in combinations([t.task for t in usable], 2)),
    )


def _task(results: Results, task: str) -> PaperTask:
    key = PLACES[task].key
    matrix = matrix_of(results, task, key=key)
    models = complete_models(matrix)
    asked = key is None or (results.decisions_of(task).key == key).any()
    why = "nothing was scored" if asked else f"{key} was not asked, which is what the paper's number counts"
    empty = dict.fromkeys(sorted(unscored_cells(matrix)), why) | dict(matrix.holes)
    kept = tuple(models) if len(models) > 1 else ()
    rows = results.decisions_of(task)
    chance = rows.chance[rows.key == key] if key else rows.chance
    return PaperTask(
        task=task,
        matrix=matrix,
        models=kept,
        left_out={model: _why(model, kept, empty) for model in matrix.models if model not in kept},
        cluster=item_clusters(results, matrix),
        chance=float(chance.mean()),
    )


def _why(model: str, kept: Sequence[str], empty: Mapping[tuple[str, str], str]) -> str:
    """The first hole of a model, one with the models that are kept first."""
    holes = sorted((pair for pair in empty if model in pair), key=lambda pair: not {*pair} <= {model, *kept})
    if not holes:
        return "fewer than two models are complete"
    target, observer = holes[0]
    where = "on itself" if target == observer else f"{observer} on {target}"
    return f"{where}: {empty[holes[0]]}"


def mean_of_cells(cells: FloatArray, cluster: npt.NDArray[np.intp]) -> Estimate:
    """The mean of the means of some cells `[cell, item]`, each counting alike, with an interval over their items.

    The interval is of the items' influence on it: an item that a cell lacks has none there.
    """
    seen = ~np.isnan(cells).all(axis=0)
    x, known = cells[:, seen], ~np.isnan(cells[:, seen])
    means = np.nanmean(x, axis=1, keepdims=True)
    off = np.where(known, x - means, 0.0) * x.shape[1] / known.sum(axis=1, keepdims=True)
    influence = means.mean() + off.mean(axis=0)
    rounded = np.where(np.abs(influence - influence.round()) < 1e-12, influence.round(), influence)
    return clustered_mean(rounded, cluster[seen], unit=unit_of(cluster))


def _table2(tasks: Sequence[PaperTask]) -> tuple[Table2Row, ...]:
    models = list(dict.fromkeys(model for task in tasks for model in task.matrix.models))
    lines = [_line(model, {task.task: _entry(task, model) for task in tasks}) for model in [*models, SELF]]
    lines.sort(key=lambda line: (math.isnan(line.average.value), -line.average.value, line.model))
    order = [line.model for line in lines if line.model != SELF and not math.isnan(line.average.value)]
    return tuple(replace(line, rank=order.index(line.model) + 1) if line.model in order else line for line in lines)


def _line(model: str, scores: Mapping[str, Estimate]) -> Table2Row:
    if missing := [task for task, score in scores.items() if math.isnan(score.value)]:
        return Table2Row(model, scores, undefined(f"no score in {', '.join(missing)}"), None)
    return Table2Row(model, scores, _mean_of_tasks(list(scores.values())), None)


def _mean_of_tasks(scores: Sequence[Estimate]) -> Estimate:
    """The mean of scores on different tasks, whose items are independent."""
    if len(scores) == 1:  # the mean of one number is that number, with its interval
        return scores[0]
    value = float(np.mean([one.value for one in scores]))
    se = math.sqrt(sum(one.se**2 for one in scores)) / len(scores)
    if math.isnan(se):
        return undefined("a task's scores are all equal", n=len(scores), value=value)
    return Estimate(value, value - 1.96 * se, value + 1.96 * se, len(scores), "task", se=se)


def _entry(task: PaperTask, model: str) -> Estimate:
    """Mean of a model on the others, or of all on themselves."""
    if model == SELF:
        if not task.models:
            return undefined("fewer than two models are complete")
        return mean_of_cells(task.scores[range(len(task.models)), range(len(task.models))], task.cluster)
    if model not in task.models:
        return undefined(task.left_out.get(model, f"it did not run {task.task}"))
    at = task.models.index(model)
    return mean_of_cells(np.delete(task.scores[:, at], at, axis=0), task.cluster)


def _self_and_others(task: PaperTask) -> SelfAndOthers:
    own, others = _both_sides(task, task.models)
    return SelfAndOthers(task.task, task.models, own, others, _tested(own, others))


def _averaged(tasks: Sequence[PaperTask], models: Sequence[str]) -> SelfAndOthers:
    """Figure 2 on the mean of the tasks' scores as they are."""
    sides = [_both_sides(task, models) for task in tasks]
    own, others = ([_mean_of_tasks(parts) for parts in zip(*side, strict=True)] for side in zip(*sides, strict=True))
    return SelfAndOthers(AVERAGE, tuple(models), tuple(own), tuple(others), _tested(own, others))


def _both_sides(task: PaperTask, models: Sequence[str]) -> tuple[tuple[Estimate, ...], tuple[Estimate, ...]]:
    """[model]: each of these on itself, and the mean of the others on it."""
    scores, at = task.among(models), range(len(models))
    own = tuple(mean_of_cells(scores[i, [i]], task.cluster) for i in at)
    return own, tuple(mean_of_cells(np.delete(scores[i], i, axis=0), task.cluster) for i in at)


def _tested(own: Sequence[Estimate], others: Sequence[Estimate]) -> ModelsTest:
    return wilcoxon_models([one.value for one in own], [one.value for one in others])


def resampled_means(scores: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
    """Cell means [resample, target, observer]; a cell that a resample leaves without a score has the observed mean."""
    size, n = len(scores), scores.shape[2]
    scored = ~np.isnan(scores)
    flat = np.where(scored, scores, 0.0).reshape(-1, n).T  # [item, cell]
    times = rng.multinomial(n, np.full(n, 1 / n), size=resamples).astype(float)
    counts = np.full(1, float(n)) if scored.all() else times @ scored.reshape(-1, n).T
    observed = flat.sum(axis=0) / scored.reshape(-1, n).sum(axis=1)
    drawn = np.where(counts > 0, (times @ flat) / np.maximum(counts, 1), observed)
    return np.asarray(drawn.reshape(resamples, size, size))


def _aggregate(
    tasks: Sequence[PaperTask], models: Sequence[str], transform: PaperTransform, rng: np.random.Generator
) -> SelfAndOthers:
    """Figure 2 on A, with intervals from resampled items of each task."""
    counted = [task for task in tasks if task.task not in transform.reasons]
    aggregates: FloatArray | float = 0.0  # [resample, target, observer]
    for task in counted:  # one after the other: those of 110 models take 50 MB
        drawn = resampled_means(cluster_means(task.among(models), task.cluster), rng, RESAMPLES)
        aggregates = aggregates + min_max(drawn)
    aggregates = np.asarray(aggregates / len(counted))
    items = min(len(set(task.cluster)) for task in tasks)
    own, others = _sides(transform.aggregate)
    own_drawn, others_drawn = _sides(aggregates)
    return SelfAndOthers(
        AGGREGATE,
        tuple(models),
        _estimates(own, own_drawn, items),
        _estimates(others, others_drawn, items),
        wilcoxon_models(own, others),
    )


def _sides(aggregate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The diagonal of [..., target, observer], and the mean of the rest of each row."""
    own, size = np.diagonal(aggregate, axis1=-2, axis2=-1), aggregate.shape[-1]
    return own, (aggregate.sum(axis=-1) - own) / (size - 1)


def _estimates(values: FloatArray, drawn: FloatArray, items: int) -> tuple[Estimate, ...]:
    if items < 2:
        return tuple(undefined("no interval from one item", n=items, value=float(value)) for value in values)
    ends = np.nanpercentile(drawn, [2.5, 97.5], axis=0)
    return tuple(
        Estimate(float(value), float(low), float(high), items, "item")
        for value, low, high in zip(values, *ends, strict=True)
    )


def _means(scores: FloatArray) -> FloatArray:
    """Cell means [target, observer] of scores [target, observer, item]."""
    return np.asarray(np.nanmean(scores, axis=2))


def _transfer(pair: tuple[str, str], table2: Sequence[Table2Row], figure2: Sequence[SelfAndOthers]) -> Transfer:
    observers = [[line.scores[task].value for line in table2 if line.model != SELF] for task in pair]
    own = {one.name: dict(zip(one.models, one.own, strict=True)) for one in figure2}
    both = [model for model in own[pair[0]] if model in own[pair[1]]]
    printed = [[row[task] for model, row in TABLE_2.items() if model != SELF] for task in pair]
    return Transfer(
        pair,
        observers=spearman(*observers),
        own=spearman(*([own[task][model].value for model in both] for task in pair)),
        paper=spearman(*printed),
    )


def paper_sections(made: Reproduction | None) -> list[Section]:
    """Sections as in the paper, without an average over one task; none where no task of the paper has two models."""
    if made is None:
        return []
    return [_table2_section(made), _figure2_section(made), *_matrices_section(made)]


def paper_tables(made: Reproduction | None) -> dict[str, pd.DataFrame]:
    """Tables of the paper by file stem."""
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
        "Introspection” row only with the paper's. Unscored items are left out; their shares are under Tables."
    ).format(PI)
    blocks: list[Block] = [intro, *_told(made), Table(made.table2, columns), Figures([_table2_picture(made)])]
    return Section(
        "The paper's Table 2: observers on the others",
        [*blocks, Details(summary, [Table(printed, columns_)])],
        name="table2",
    )


def _score(task: str, line: Table2Row) -> Estimate:
    return line.scores[task]


def _targets(models: int) -> str:
    return f"{models} models" if models else "no score"


def _name(line: Table2Row) -> str:
    return f"{SELF} (mean of all models on themselves)" if line.model == SELF else line.model


def _told(made: Reproduction) -> list[Block]:
    """Chance, what is missing, and that columns are over different models where they are."""
    guessed = [task for task in made.tasks if not math.isnan(task.chance) and task.task in CHANCE]
    out = [
        f"{task.task}: a blind guess gets {number(task.chance)} here and {number(CHANCE[task.task])} in the paper's "
        f"code, whose models on themselves reach {number(TABLE_2[SELF][task.task] / 100)}."
        for task in guessed
    ]
    out += [
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
    short = dict(zip(models := [line.model for line in made.table2], plots.cut_names(models), strict=True))
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
            row |= interval_columns(name, one)
            if name != "avg":
                row[f"{name}_targets"] = _count(made, name, line)
                row[f"{name}_chance"] = next(task.chance for task in made.tasks if task.task == name)
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


def _count(made: Reproduction, name: str, line: Table2Row) -> int:
    """Cells whose mean an entry is."""
    models = next(task.models for task in made.tasks if task.task == name)
    return 0 if math.isnan(line.scores[name].value) else len(models) - (line.model != SELF)


def _figure2_section(made: Reproduction) -> Section:
    tests = Table(
        _figure2(made),
        (
            Column("on", _counted),
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
        "Each model's score on itself is compared with the mean of the others on it: a signed-rank test over models, "
        f"one-sided, exact. The paper prints p = {p_digits(WILCOXON_P)} and does not say of which mean of its tasks. "
        f"{AVERAGE.capitalize()}: the mean of the scores as they are, the Average of its public notebook. "
        f"{AGGREGATE.capitalize()}: the mean of the min-max normalised tasks (G.3). The two can fall on different "
        "sides of .05. Neither removes skill or predictability; the answer above does."
    )
    told = "How alike two tasks rank the models (Spearman); the paper: strong performance on one does not transfer."
    blocks: list[Block] = [intro, tests, Figures([_figure2_picture(one) for one in _pictured(made)])]
    blocks += [told, ranks] if ranks.rows else []
    return Section(
        "The paper's Figure 2: each model on itself against the others",
        blocks,
        name="figure2",
    )


def _counted(one: SelfAndOthers) -> str:
    """A task, and the one decision of it that counts here, as in the paper."""
    key = PLACES[one.name].key if one.name in PLACES else None
    return f"{one.name}, {key} alone" if key else one.name


def _figure2(made: Reproduction) -> list[SelfAndOthers]:
    """Each task, and the aggregate where it is of several."""
    return [one for one in made.figure2 if one.name != AGGREGATE or len(made.by_task) > 1]


def _pictured(made: Reproduction) -> list[SelfAndOthers]:
    """The average of the tasks, or the one task that is here."""
    there = _figure2(made)
    return [one for one in there if one.name == AVERAGE] or there[-1:]


def _figure2_picture(one: SelfAndOthers) -> Picture:
    what = "mean of the tasks" if one.name == AVERAGE else one.name
    names = plots.cut_names(one.models)
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
            | interval_columns("self", own)
            | interval_columns("others", others)
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
            | interval_columns("observers", one.observers)
            | interval_columns("self", one.own)
            | interval_columns("paper_observers", one.paper)
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
            Column("ε", lambda row: f"{row.eps:g}{', raw scores' if row.raw else ''}"),
            Column("T on the log scale", "advantage", lambda x: number(x, 3)),
            Column("models with a positive own cell", "positive", lambda count: f"{count} of {len(made.models)}"),
        ),
    )
    reasons = [f"{task} is left out of A: {why}." for task, why in made.transform.reasons.items()]
    blocks: list[Block] = [TRANSFORM, OF_EPSILON, epsilons, *reasons]
    blocks += [Figures(_pictures("figure8", "all tasks", made.transform, made.models))]
    blocks += [Details("The same of each task (Figures 9 to 12)", [Figures(apart)])] if apart else []
    return [Section("The paper's transform over all tasks", blocks, name="transform")]


TRANSFORM = "Min-max per task, mean A, C: ln(A + ε), double-centred (G.3)."
OF_EPSILON = (
    "ε moves the result. The paper's text has no number; its public notebook adds 1e-05, and centres raw scores too, "
    f"without min-max. Here it is {EPSILON}: min-max makes the least cell of a task 0, and ln(1e-05) of that one cell "
    "would be most of C."
)


def _pictures(figure: str, of: str, transform: PaperTransform, models: Sequence[str]) -> list[Picture]:
    """A and C as heat maps; a task whose scores are all equal has neither."""
    if np.isnan(transform.aggregate).all():
        return []
    names = plots.cut_names(models)
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
