"""The numbers of paper 003's Table 2 and Figures 2 and 8 to 12, from the logs of one matrix.

Only its four tasks count (`published.PLACES`), of k-th words k = 1 alone. A cell without a score is a hole; a model
with a hole is left out of its task for all observers, so that every mean of a column is over the same models.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from selfprobe.matrix.numbers import by_cluster, clusters_of, complete_models, unit_of, unscored_cells
from selfprobe.matrix.paper import (
    EpsilonRow,
    ModelsTest,
    PaperTransform,
    epsilon_sensitivity,
    normalised,
    paper_transform,
    wilcoxon_models,
)
from selfprobe.matrix.published import PLACES, SELF, TABLE_2
from selfprobe.matrix.scales import resampled
from selfprobe.matrix.table import Matrix, Results, matrix_of
from selfprobe.stats.estimate import Estimate, clustered_mean, undefined
from selfprobe.stats.rank import spearman
from selfprobe.stats.spread import FloatArray

EPSILON = 0.01
"""ε of the paper's transform. Paper: not given."""

RESAMPLES = 500
"""Of the aggregate's intervals."""

AGGREGATE = "aggregate"


@dataclass(frozen=True)
class PaperTask:
    """One of the paper's tasks, as its tables count it."""

    task: str
    matrix: Matrix
    """All models, holes included."""
    models: tuple[str, ...]
    """Those without a hole among them; at least two, or none."""
    left_out: Mapping[str, str]
    """The others, and why."""
    cluster: npt.NDArray[np.intp]
    """[item]: the number of the cluster that it counts with."""

    @property
    def scores(self) -> FloatArray:
        """[target, observer, item] of `models`."""
        return self.among(self.models)

    def among(self, models: Sequence[str]) -> FloatArray:
        """[target, observer, item] of these."""
        at = [self.matrix.models.index(model) for model in models]
        return self.matrix.scores[np.ix_(at, at)]


@dataclass(frozen=True)
class Line:
    """A row of Table 2."""

    model: str
    """The observer; SELF for the mean of all models on themselves."""
    scores: Mapping[str, Estimate]
    """By task: its mean over the other targets."""
    average: Estimate
    """Mean over the tasks that are here."""
    rank: int | None
    """Among the observers with an average, 1 is best."""


@dataclass(frozen=True)
class SelfAndOthers:
    """Figure 2 on one task, or on the aggregate of all: each model's score on itself and the others' mean on it."""

    name: str
    """A task, or "aggregate"."""
    models: tuple[str, ...]
    own: tuple[Estimate, ...]
    others: tuple[Estimate, ...]
    test: ModelsTest


@dataclass(frozen=True)
class Transfer:
    """How alike two tasks rank the models: Spearman's correlations over models."""

    tasks: tuple[str, str]
    observers: Estimate
    """Over the rows of Table 2."""
    own: Estimate
    """Over the models on themselves."""
    paper: Estimate
    """Over the ten observers that the paper prints."""


@dataclass(frozen=True)
class Reproduction:
    """What the paper's tables and figures are here."""

    tasks: tuple[PaperTask, ...]
    missing: tuple[str, ...]
    """Those of the paper's four that are not here."""
    table2: tuple[Line, ...]
    """In the paper's order: by average, the best first; rows with a hole last."""
    figure2: tuple[SelfAndOthers, ...]
    """Tasks with two complete models, then the aggregate."""
    models: tuple[str, ...]
    """Those of the aggregate: complete in every task that is here."""
    transform: PaperTransform | None
    """A and C of all tasks together (Figure 8); None with fewer than two such models."""
    by_task: Mapping[str, PaperTransform]
    """The same of each task alone (Figures 9 to 12), over its own complete models."""
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
    asked = key is None or (results.decisions[results.decisions.task == task].key == key).any()
    why = "nothing was scored" if asked else f"{key} was not asked, which is what the paper's number counts"
    empty = dict.fromkeys(sorted(unscored_cells(matrix)), why) | dict(matrix.holes)
    kept = tuple(models) if len(models) > 1 else ()
    return PaperTask(
        task=task,
        matrix=matrix,
        models=kept,
        left_out={model: _why(model, kept, empty) for model in matrix.models if model not in kept},
        cluster=clusters_of(results, matrix),
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


def _table2(tasks: Sequence[PaperTask]) -> tuple[Line, ...]:
    models = list(dict.fromkeys(model for task in tasks for model in task.matrix.models))
    lines = [_line(model, {task.task: _entry(task, model) for task in tasks}) for model in [*models, SELF]]
    lines.sort(key=lambda line: (math.isnan(line.average.value), -line.average.value, line.model))
    order = [line.model for line in lines if line.model != SELF and not math.isnan(line.average.value)]
    return tuple(replace(line, rank=order.index(line.model) + 1) if line.model in order else line for line in lines)


def _line(model: str, scores: Mapping[str, Estimate]) -> Line:
    if missing := [task for task, score in scores.items() if math.isnan(score.value)]:
        return Line(model, scores, undefined(f"no score in {', '.join(missing)}"), None)
    if len(scores) == 1:  # the mean of one number is that number, with its interval
        return Line(model, scores, next(iter(scores.values())), None)
    values, errors = [one.value for one in scores.values()], [one.se for one in scores.values()]
    value, se = float(np.mean(values)), math.sqrt(sum(error**2 for error in errors)) / len(errors)
    if math.isnan(se):
        return Line(model, scores, undefined("a task's scores are all equal", n=len(values), value=value), None)
    return Line(model, scores, Estimate(value, value - 1.96 * se, value + 1.96 * se, len(values), "task", se=se), None)


def _entry(task: PaperTask, model: str) -> Estimate:
    """What a model reaches on the others, or all on themselves."""
    if model == SELF:
        if not task.models:
            return undefined("fewer than two models are complete")
        return mean_of_cells(task.scores[range(len(task.models)), range(len(task.models))], task.cluster)
    if model not in task.models:
        return undefined(task.left_out.get(model, f"it did not run {task.task}"))
    at = task.models.index(model)
    return mean_of_cells(np.delete(task.scores[:, at], at, axis=0), task.cluster)


def _self_and_others(task: PaperTask) -> SelfAndOthers:
    scores, at = task.scores, range(len(task.models))
    own = tuple(mean_of_cells(scores[i, [i]], task.cluster) for i in at)
    others = tuple(mean_of_cells(np.delete(scores[i], i, axis=0), task.cluster) for i in at)
    test = wilcoxon_models([one.value for one in own], [one.value for one in others])
    return SelfAndOthers(task.task, task.models, own, others, test)


def _aggregate(
    tasks: Sequence[PaperTask], models: Sequence[str], transform: PaperTransform, rng: np.random.Generator
) -> SelfAndOthers:
    """Figure 2 on A, with intervals from resampled items of each task."""
    drawn = [
        resampled(by_cluster(task.among(models), task.cluster), rng, RESAMPLES)
        for task in tasks
        if task.task not in transform.reasons
    ]
    aggregates = np.mean([normalised(means) for means in drawn], axis=0)  # [resample, target, observer]
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
    """[target, observer] of scores [target, observer, item]."""
    return np.asarray(np.nanmean(scores, axis=2))


def _transfer(pair: tuple[str, str], table2: Sequence[Line], figure2: Sequence[SelfAndOthers]) -> Transfer:
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
