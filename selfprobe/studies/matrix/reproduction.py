"""The numbers of paper 003's Table 2 and Figures 2 and 8 to 12, from the logs of one matrix.

Only its four tasks count (`published.PLACES`), of k-th words k = 1 alone. A cell without a score is
a hole; a model with a hole is left out of its task for all observers, so that every mean of a
column is over the same models.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Annotated

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from selfprobe.page import (
    PI,
    Block,
    Bullets,
    Details,
    Figures,
    Heading,
    Picture,
    RowTable,
    Section,
    Table,
    number,
    p_digits,
    plots,
    signed_number,
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
from selfprobe.studies.matrix.numbers import (
    cluster_means,
    complete_models,
    item_clusters,
    unit_name,
    unscored_cells,
)
from selfprobe.studies.matrix.published import (
    CHANCE,
    PLACES,
    SELF,
    TABLE_2,
    WILCOXON_P,
    paper_name,
    published_scores,
)
from selfprobe.studies.matrix.sections import self_against_others
from selfprobe.studies.matrix.table import Results, TaskMatrix, matrix_of

EPSILON = 0.01
"""ε of the paper's transform. Paper: no number in the text; the public notebook adds 1e-5, and
centres raw scores too. Here: .01, since min-max makes the least cell 0, and ln(1e-5) = -11.5 of one
cell would be most of C.
"""

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
    """Figure 2 on one task, or on a mean of all: each model's score on itself and the others' mean
    on it.
    """

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
    """Figure 2 of each task with two complete models; of several tasks their average; then the
    aggregate.
    """
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
    present_tasks = set(results.cells.task)
    tasks = [_task(results, task) for task in PLACES if task in present_tasks]
    tasks = [task for task in tasks if len(task.matrix.models) > 1]
    if not tasks:
        return None
    usable_tasks = [task for task in tasks if task.models]
    common_models = _common_models(usable_tasks)
    figure2 = [_self_and_others(task) for task in usable_tasks]
    transform: PaperTransform | None = None
    epsilons = tuple[EpsilonRow, ...]()
    if len(common_models) > 1:
        means = {task.task: _means(task.among(common_models)) for task in usable_tasks}
        transform = paper_transform(means, EPSILON)
        epsilons = epsilon_sensitivity(means)
        if len(usable_tasks) > 1:
            figure2.append(_averaged(usable_tasks, common_models))
        if not np.isnan(transform.aggregate).any():
            figure2.append(_aggregate(usable_tasks, common_models, transform, rng))
    table2 = _table2(tasks)
    task_names = [task.task for task in tasks]
    task_pairs = combinations([task.task for task in usable_tasks], 2)
    return Reproduction(
        tasks=tuple(tasks),
        missing=tuple(task for task in PLACES if task not in task_names),
        table2=table2,
        figure2=tuple(figure2),
        models=common_models,
        transform=transform,
        by_task={
            task.task: paper_transform({task.task: _means(task.scores)}, EPSILON)
            for task in usable_tasks
        },
        epsilons=epsilons,
        transfer=tuple(_transfer(pair, table2, figure2) for pair in task_pairs),
    )


def _common_models(tasks: Sequence[PaperTask]) -> tuple[str, ...]:
    """Models that are complete in every task, in the order of the first one."""
    if not tasks:
        return ()
    complete_everywhere = set(tasks[0].models).intersection(*(task.models for task in tasks))
    return tuple(model for model in tasks[0].models if model in complete_everywhere)


def _task(results: Results, task: str) -> PaperTask:
    key = PLACES[task].key
    matrix = matrix_of(results, task, key=key)
    complete = complete_models(matrix)
    models = tuple(complete) if len(complete) > 1 else ()
    rows = results.decisions_of(task)
    counted = rows if key is None else rows[rows.key == key]
    was_asked = key is None or len(counted) > 0
    reason = (
        "nothing was scored"
        if was_asked
        else f"{key} was not asked, which is what the paper's number counts"
    )
    reason_by_cell = dict.fromkeys(sorted(unscored_cells(matrix)), reason) | dict(matrix.holes)
    return PaperTask(
        task=task,
        matrix=matrix,
        models=models,
        left_out={
            model: _why(model, models, reason_by_cell)
            for model in matrix.models
            if model not in models
        },
        cluster=item_clusters(results, matrix),
        chance=float(counted.chance.mean()),
    )


def _why(
    model: str, kept_models: Sequence[str], reason_by_cell: Mapping[tuple[str, str], str]
) -> str:
    """The first hole of a model, one with the models that are kept first."""
    allowed = {model, *kept_models}
    holes = [pair for pair in reason_by_cell if model in pair]
    holes.sort(key=lambda pair: not set(pair) <= allowed)
    if not holes:
        return "fewer than two models are complete"
    target, observer = holes[0]
    where = "on itself" if target == observer else f"{observer} on {target}"
    return f"{where}: {reason_by_cell[holes[0]]}"


def mean_of_cells(cells: FloatArray, cluster: npt.NDArray[np.intp]) -> Estimate:
    """The mean of the means of some cells `[cell, item]`, each counting alike, with an interval
    over their items.

    The interval is of the items' influence on it: an item that a cell lacks has none there.
    """
    seen = ~np.isnan(cells).all(axis=0)
    x, known = cells[:, seen], ~np.isnan(cells[:, seen])
    means = np.nanmean(x, axis=1, keepdims=True)
    off = np.where(known, x - means, 0.0) * x.shape[1] / known.sum(axis=1, keepdims=True)
    influence = means.mean() + off.mean(axis=0)
    rounded = np.where(np.abs(influence - influence.round()) < 1e-12, influence.round(), influence)
    return clustered_mean(rounded, cluster[seen], unit=unit_name(cluster))


def _table2(tasks: Sequence[PaperTask]) -> tuple[Table2Row, ...]:
    models = list(dict.fromkeys(model for task in tasks for model in task.matrix.models))
    lines = []
    for model in [*models, SELF]:
        scores = {task.task: _entry(task, model) for task in tasks}
        lines.append(_line(model, scores))
    lines.sort(key=lambda line: (math.isnan(line.average.value), -line.average.value, line.model))
    ranked_models = [
        line.model for line in lines if line.model != SELF and not math.isnan(line.average.value)
    ]
    rank_of_model = {model: rank for rank, model in enumerate(ranked_models, start=1)}
    return tuple(replace(line, rank=rank_of_model.get(line.model)) for line in lines)


def _line(model: str, scores: Mapping[str, Estimate]) -> Table2Row:
    if missing := [task for task, score in scores.items() if math.isnan(score.value)]:
        return Table2Row(model, scores, undefined(f"no score in {', '.join(missing)}"), None)
    return Table2Row(model, scores, _mean_of_tasks(list(scores.values())), None)


def _mean_of_tasks(scores: Sequence[Estimate]) -> Estimate:
    """The mean of scores on different tasks, whose items are independent."""
    if len(scores) == 1:  # the mean of one number is that number, with its interval
        return scores[0]
    value = float(np.mean([score.value for score in scores]))
    se = math.sqrt(sum(score.se**2 for score in scores)) / len(scores)
    if math.isnan(se):
        return undefined("a task's scores are all equal", n=len(scores), value=value)
    return Estimate(value, value - 1.96 * se, value + 1.96 * se, len(scores), "task", se=se)


def _entry(task: PaperTask, model: str) -> Estimate:
    """Mean of a model on the others, or of all on themselves."""
    if model == SELF:
        if not task.models:
            return undefined("fewer than two models are complete")
        return mean_of_cells(
            task.scores[range(len(task.models)), range(len(task.models))], task.cluster
        )
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
    own = tuple(_mean_of_tasks(scores) for scores in zip(*(own for own, _ in sides), strict=True))
    others = tuple(
        _mean_of_tasks(scores) for scores in zip(*(others for _, others in sides), strict=True)
    )
    return SelfAndOthers(AVERAGE, tuple(models), own, others, _tested(own, others))


def _both_sides(
    task: PaperTask, models: Sequence[str]
) -> tuple[tuple[Estimate, ...], tuple[Estimate, ...]]:
    """[model]: each of these on itself, and the mean of the others on it."""
    scores = task.among(models)
    places = range(len(models))
    own = tuple(mean_of_cells(scores[place, [place]], task.cluster) for place in places)
    others = tuple(
        mean_of_cells(np.delete(scores[place], place, axis=0), task.cluster) for place in places
    )
    return own, others


def _tested(own: Sequence[Estimate], others: Sequence[Estimate]) -> ModelsTest:
    return wilcoxon_models([score.value for score in own], [score.value for score in others])


def resampled_means(scores: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
    """Cell means [resample, target, observer]; a cell that a resample leaves without a score has
    the observed mean.
    """
    size, n = len(scores), scores.shape[2]
    scored = ~np.isnan(scores)
    flat = np.where(scored, scores, 0.0).reshape(-1, n).T  # [item, cell]
    times = rng.multinomial(n, np.full(n, 1 / n), size=resamples).astype(float)
    counts = np.full(1, float(n)) if scored.all() else times @ scored.reshape(-1, n).T
    observed = flat.sum(axis=0) / scored.reshape(-1, n).sum(axis=1)
    drawn = np.where(counts > 0, (times @ flat) / np.maximum(counts, 1), observed)
    return np.asarray(drawn.reshape(resamples, size, size))


def _aggregate(
    tasks: Sequence[PaperTask],
    models: Sequence[str],
    transform: PaperTransform,
    rng: np.random.Generator,
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
        return tuple(
            undefined("no interval from one item", n=items, value=float(value)) for value in values
        )
    ends = np.nanpercentile(drawn, [2.5, 97.5], axis=0)
    return tuple(
        Estimate(float(value), float(low), float(high), items, "item")
        for value, low, high in zip(values, *ends, strict=True)
    )


def _means(scores: FloatArray) -> FloatArray:
    """Cell means [target, observer] of scores [target, observer, item]."""
    return np.asarray(np.nanmean(scores, axis=2))


def _transfer(
    pair: tuple[str, str], table2: Sequence[Table2Row], figure2: Sequence[SelfAndOthers]
) -> Transfer:
    observer_scores = [
        [line.scores[task].value for line in table2 if line.model != SELF] for task in pair
    ]
    own_scores = {part.name: dict(zip(part.models, part.own, strict=True)) for part in figure2}
    both = [model for model in own_scores[pair[0]] if model in own_scores[pair[1]]]
    printed_scores = [
        [row[task] for model, row in TABLE_2.items() if model != SELF] for task in pair
    ]
    return Transfer(
        pair,
        observers=spearman(*observer_scores),
        own=spearman(*([own_scores[task][model].value for model in both] for task in pair)),
        paper=spearman(*printed_scores),
    )


# ---- tables


@dataclass(frozen=True)
class ObserverRow:
    """The paper's Table 2: observers on the others."""

    rank: Annotated[int | None, Heading("rank", "1 is the best observer of the others.")]
    observer: Annotated[
        str,
        Heading("observer", "Model that predicts; “Self Introspection” is models on themselves."),
    ]
    kth_word: Annotated[Estimate, Heading("kth_word", "Mean score on the other models, k = 1.")]
    ethical_dilemma: Annotated[
        Estimate, Heading("ethical_dilemma", "Mean score on the other models.")
    ]
    paraphrase_recognition: Annotated[
        Estimate, Heading("paraphrase_recognition", "Mean score on the other models.")
    ]
    heads_up: Annotated[Estimate, Heading("heads_up", "Mean score on the other models.")]
    avg: Annotated[Estimate, Heading("Avg", "Mean over the tasks.")]
    tasks_averaged: Annotated[
        str, Heading("tasks averaged", "Number of the paper's tasks that Avg is over.")
    ]
    hole: Annotated[str, Heading("hole", "Reason of a score that is missing.")]
    kth_word_targets: Annotated[
        int, Heading("targets", "Number of targets behind kth_word.", on_page=False)
    ]
    ethical_dilemma_targets: Annotated[
        int, Heading("targets", "Number of targets behind ethical_dilemma.", on_page=False)
    ]
    paraphrase_recognition_targets: Annotated[
        int, Heading("targets", "Number of targets behind paraphrase_recognition.", on_page=False)
    ]
    heads_up_targets: Annotated[
        int, Heading("targets", "Number of targets behind heads_up.", on_page=False)
    ]
    kth_word_chance: Annotated[
        float, Heading("chance", "Score of a blind guess in kth_word.", on_page=False)
    ]
    ethical_dilemma_chance: Annotated[
        float, Heading("chance", "Score of a blind guess in ethical_dilemma.", on_page=False)
    ]
    paraphrase_recognition_chance: Annotated[
        float, Heading("chance", "Score of a blind guess in paraphrase_recognition.", on_page=False)
    ]
    heads_up_chance: Annotated[
        float, Heading("chance", "Score of a blind guess in heads_up.", on_page=False)
    ]
    paper_row: Annotated[
        str | None, Heading("paper's row", "The paper's name of the model.", on_page=False)
    ]
    paper_kth_word: Annotated[
        float, Heading("paper", "The paper's number in kth_word.", on_page=False)
    ]
    paper_ethical_dilemma: Annotated[
        float, Heading("paper", "The paper's number in ethical_dilemma.", on_page=False)
    ]
    paper_paraphrase_recognition: Annotated[
        float, Heading("paper", "The paper's number in paraphrase_recognition.", on_page=False)
    ]
    paper_heads_up: Annotated[
        float, Heading("paper", "The paper's number in heads_up.", on_page=False)
    ]


def observer_rows(reproduction: Reproduction) -> list[ObserverRow]:
    """One row an observer, and one for models on themselves."""
    return [_observer_row(reproduction, line) for line in reproduction.table2]


def _observer_row(reproduction: Reproduction, line: Table2Row) -> ObserverRow:
    task_by_name = {task.task: task for task in reproduction.tasks}
    printed_name = SELF if line.model == SELF else paper_name(line.model)
    printed_scores = TABLE_2.get(printed_name or "", {})
    fields: dict[str, Estimate | float | int] = {}
    for name in PLACES:
        task = task_by_name.get(name)
        score = line.scores.get(name, undefined(f"no model ran {name}"))
        is_scored = task is not None and not math.isnan(score.value)
        targets = len(task.models) if task else 0
        if line.model != SELF:
            targets -= 1
        fields[name] = score
        fields[f"{name}_targets"] = targets if is_scored else 0
        fields[f"{name}_chance"] = task.chance if task else math.nan
        fields[f"paper_{name}"] = printed_scores.get(name, math.nan) / 100
    has_average = not math.isnan(line.average.value)
    holes = [
        f"{name}: {score.reason}" for name, score in line.scores.items() if math.isnan(score.value)
    ]
    return ObserverRow(
        rank=line.rank,
        observer=line.model,
        avg=line.average,
        tasks_averaged=f"{len(reproduction.tasks)} of {len(PLACES)}" if has_average else "",
        hole="; ".join(holes),
        paper_row=printed_name if printed_scores else None,
        **fields,  # type: ignore[arg-type]  # four tasks × four columns
    )


@dataclass(frozen=True)
class SelfAndOthersRow:
    """The paper's Figure 2: each model on itself and the others on it."""

    on: Annotated[str, Heading("on", "Task, or the mean of several.")]
    model: Annotated[str, Heading("model", "Model that is predicted.")]
    own: Annotated[Estimate, Heading("on itself", "Its score on itself.")]
    others: Annotated[Estimate, Heading("the others on it", "Mean score of the others on it.")]
    difference: Annotated[
        float, Heading("difference", "On itself less the others on it.", signed_number)
    ]


def self_and_others_rows(reproduction: Reproduction) -> list[SelfAndOthersRow]:
    """One row a task (or mean) and model."""
    rows = []
    for part in reproduction.figure2:
        for model, own, others in zip(part.models, part.own, part.others, strict=True):
            rows.append(SelfAndOthersRow(part.name, model, own, others, own.value - others.value))
    return rows


@dataclass(frozen=True)
class ModelsTestRow:
    """Tests of the paper's Figure 2."""

    on: Annotated[str, Heading("on", "Task, or the mean of several.")]
    decision: Annotated[
        str, Heading("counted", "The one decision that counts, as in the paper; empty for all.")
    ]
    models: Annotated[int, Heading("models", "Models that were compared.")]
    n: Annotated[int, Heading("differ", "Models with a difference other than 0.")]
    wins: Annotated[
        int,
        Heading(
            "better on themselves", "Models that score higher on themselves than the others do."
        ),
    ]
    rank_sum: Annotated[
        float,
        Heading(
            "rank sum against it",
            "Wilcoxon's statistic: the ranks of the models that do worse on themselves.",
            partial(number, digits=1),
        ),
    ]
    wilcoxon_p: Annotated[
        float, Heading("Wilcoxon p", "One-sided, exact signed-rank test over models.", p_digits)
    ]
    sign_p: Annotated[float, Heading("sign test p", "One-sided sign test over models.", p_digits)]


def models_test_rows(reproduction: Reproduction) -> list[ModelsTestRow]:
    """One row a task, and one a mean of several."""
    rows = []
    for part in reproduction.figure2:
        decision = PLACES[part.name].key if part.name in PLACES else None
        rows.append(
            ModelsTestRow(
                on=part.name,
                decision=decision or "",
                models=len(part.models),
                n=part.test.n,
                wins=part.test.wins,
                rank_sum=part.test.rank_sum,
                wilcoxon_p=part.test.wilcoxon_p,
                sign_p=part.test.sign_p,
            )
        )
    return rows


@dataclass(frozen=True)
class TaskRanksRow:
    """Likeness of two tasks' rankings of the models."""

    task: Annotated[str, Heading("task", "One task.")]
    other_task: Annotated[str, Heading("other task", "The other task.")]
    observers: Annotated[
        Estimate,
        Heading("observers", "Spearman correlation of the observers' ranks in the two tasks."),
    ]
    own: Annotated[
        Estimate,
        Heading(
            "models on themselves",
            "Spearman correlation of the models' own scores in the two tasks.",
        ),
    ]
    paper_observers: Annotated[
        Estimate, Heading("the paper's ten observers", "The same of the paper's Table 2.")
    ]


@dataclass(frozen=True)
class GridRow:
    """Cells of the paper's transform."""

    target: Annotated[str, Heading("target", "Model that is predicted.")]
    observer: Annotated[str, Heading("observer", "Model that predicts.")]
    value: Annotated[
        float, Heading("value", "Normalised score (A), or what is left without row and column (C).")
    ]


@dataclass(frozen=True)
class EpsilonSensitivity:
    """The paper's statistic by ε."""

    epsilon: Annotated[
        float, Heading("ε", "What is added before the logarithm.", lambda epsilon: f"{epsilon:g}")
    ]
    raw: Annotated[
        bool, Heading("raw scores", "Whether the scores are taken as they are, without min-max.")
    ]
    advantage: Annotated[
        float,
        Heading(
            "T on the log scale",
            "Mean diagonal of the double-centred matrix of logarithms.",
            partial(number, digits=3),
        ),
    ]
    positive: Annotated[
        int,
        Heading(
            "models with a positive own cell", "Models whose own cell is above 0 after centring."
        ),
    ]


def paper_tables(reproduction: Reproduction | None) -> dict[str, RowTable]:
    """Tables of the paper by file stem."""
    if reproduction is None:
        return {}
    ranks = [
        TaskRanksRow(*transfer.tasks, transfer.observers, transfer.own, transfer.paper)
        for transfer in reproduction.transfer
    ]
    epsilons = [
        EpsilonSensitivity(row.eps, row.raw, row.advantage, row.positive)
        for row in reproduction.epsilons
    ]
    tables = {
        "table2": RowTable(ObserverRow, observer_rows(reproduction), hides_empty=True),
        "table2-printed": published_scores(),
        "figure2": RowTable(SelfAndOthersRow, self_and_others_rows(reproduction)),
        "figure2-test": RowTable(ModelsTestRow, models_test_rows(reproduction)),
        "task-ranks": RowTable(TaskRanksRow, ranks),
        "epsilons": RowTable(EpsilonSensitivity, epsilons),
    }
    if reproduction.transform is not None:
        tables |= _grids("figure8", reproduction.transform, reproduction.models)
    for task in reproduction.tasks:
        if task.task in reproduction.by_task:
            tables |= _grids(
                f"figure{PLACES[task.task].figure}", reproduction.by_task[task.task], task.models
            )
    return tables


def _grids(figure: str, transform: PaperTransform, models: Sequence[str]) -> dict[str, RowTable]:
    """A and C, one row a target and observer; pages show them as pictures."""
    tables = {}
    for letter, grid in (("A", transform.aggregate), ("C", transform.centred)):
        rows = []
        for target, values in zip(models, grid, strict=True):
            rows += [
                GridRow(target, observer, float(value))
                for observer, value in zip(models, values, strict=True)
            ]
        tables[f"{figure}-{letter}"] = RowTable(GridRow, rows, on_page=False)
    return tables


# ---- sections


def paper_sections(reproduction: Reproduction | None) -> list[Section]:
    """Sections as in the paper, without an average over one task; none where no task of the paper
    has two models.
    """
    if reproduction is None:
        return []
    return [
        _table2_section(reproduction),
        _figure2_section(reproduction),
        *_transform_section(reproduction),
    ]


def _shown_table(table: RowTable) -> Table:
    return Table(table.rows, table.columns)


def _table2_section(reproduction: Reproduction) -> Section:
    intro = Markup(
        "Table 2 of {}. A row is an observer: the mean of its scores on the other models, k = 1 for k-th words. Only "
        "“Self Introspection” is models on themselves. Compare models' rows with each other, and the “Self "
        "Introspection” row only with the paper's. Unscored items are left out; their shares are under Tables."
    ).format(PI)
    tables = paper_tables(reproduction)
    printed_title = "The paper's Table 2 as printed (percent; 11 models, other items, no intervals)"
    blocks: list[Block] = [
        intro,
        *_table2_remarks(reproduction),
        _shown_table(tables["table2"]),
        Figures([_table2_picture(reproduction)]),
        Details(printed_title, [_shown_table(tables["table2-printed"])]),
    ]
    return Section("The paper's Table 2: observers on the others", blocks, name="table2")


def _table2_remarks(reproduction: Reproduction) -> list[Block]:
    """Chance, what is missing, and that columns are over different models where they are."""
    remarks = []
    for task in reproduction.tasks:
        if not math.isnan(task.chance) and task.task in CHANCE:
            printed = number(TABLE_2[SELF][task.task] / 100)
            remarks.append(
                f"{task.task}: a blind guess gets {number(task.chance)} here and {number(CHANCE[task.task])} in the "
                f"paper's code, whose models on themselves reach {printed}."
            )
    for task in reproduction.tasks:
        remarks += [
            f"{task.task}: {model} is left out, since {why}."
            for model, why in task.left_out.items()
        ]
    if reproduction.missing and len(reproduction.tasks) > 1:
        missing = ", ".join(reproduction.missing)
        remarks.append(
            f"Avg is over {len(reproduction.tasks)} of the paper's four tasks; not here: {missing}."
        )
    models_by_task = {task.task: task.models for task in reproduction.tasks if task.models}
    if len(set(models_by_task.values())) > 1:
        names = "; ".join(f"{task}: {', '.join(models)}" for task, models in models_by_task.items())
        remarks.append(
            f"The columns are over different models, so compare within a column only. {names}."
        )
    return [Bullets(remarks)] if remarks else []


def _table2_picture(reproduction: Reproduction) -> Picture:
    tasks = [task.task for task in reproduction.tasks]
    columns = [PLACES[task].column for task in tasks]
    has_average = len(tasks) > 1
    if has_average:
        columns.append("Avg")
    rows = []
    for line in reproduction.table2:
        scores = [line.scores[task] for task in tasks]
        rows.append([*scores, line.average] if has_average else scores)
    models = [line.model for line in reproduction.table2]
    short_names = dict(zip(models, plots.cut_names(models), strict=True))
    names = []
    for line in reproduction.table2:
        names.append(
            SELF if line.model == SELF else f"{line.rank or '–'}. {short_names[line.model]}"
        )
    return plots.heat_map(
        "table2",
        [[score.value for score in row] for row in rows],
        names,
        columns,
        caption="Mean score of each observer on the other models, coloured within a column; framed: the models on "
        "themselves.",
        title="Observers on the other models",
        low=[[score.low for score in row] for row in rows],
        high=[[score.high for score in row] for row in rows],
        by_column=True,
        framed=names.index(SELF),
        across="",
        down="",
    )


def _figure2_section(reproduction: Reproduction) -> Section:
    intro = (
        "Each model's score on itself is compared with the mean of the others on it: a signed-rank test over models, "
        f"one-sided, exact. The paper prints p = {p_digits(WILCOXON_P)} and does not say of which mean of its tasks. "
        f"{AVERAGE.capitalize()}: the mean of the scores as they are, the Average of its public notebook. "
        f"{AGGREGATE.capitalize()}: the mean of the min-max normalised tasks (G.3). The two can fall on different "
        "sides of .05. Neither removes skill or predictability; the answer above does."
    )
    tables = paper_tables(reproduction)
    has_aggregate = len(reproduction.by_task) > 1
    shown_parts = [part for part in reproduction.figure2 if part.name != AGGREGATE or has_aggregate]
    shown_names = [part.name for part in shown_parts]
    test_rows = [row for row in tables["figure2-test"].rows if row.on in shown_names]
    pictured = [part for part in shown_parts if part.name == AVERAGE] or shown_parts[-1:]
    blocks: list[Block] = [intro]
    if test_rows:
        blocks.append(
            _shown_table(replace(tables["figure2-test"], rows=test_rows, hides_empty=True))
        )
        blocks.append(Figures([_figure2_picture(part) for part in pictured]))
    if tables["task-ranks"].rows:
        blocks.append(
            "How alike two tasks rank the models (Spearman); the paper: strong performance on one does not transfer."
        )
        blocks.append(_shown_table(tables["task-ranks"]))
    return Section(
        "The paper's Figure 2: each model on itself against the others", blocks, name="figure2"
    )


def _figure2_picture(part: SelfAndOthers) -> Picture:
    title = "mean of the tasks" if part.name == AVERAGE else part.name
    names = plots.cut_names(part.models)
    pairs = zip(part.own, part.others, strict=True)
    return self_against_others(
        "figure2",
        dict(zip(names, pairs, strict=True)),
        caption=f"The paper's Figure 2, {title}: each model on itself, and the mean of the others on it.",
        title=f"{title}: itself against the others",
    )


def _transform_section(reproduction: Reproduction) -> list[Section]:
    """The transform over all tasks, where there are several, and of each."""
    task_pictures = []
    for task in reproduction.tasks:
        if task.task in reproduction.by_task:
            figure = f"figure{PLACES[task.task].figure}"
            task_pictures += _grid_pictures(
                figure, task.task, reproduction.by_task[task.task], task.models
            )
    if reproduction.transform is None or len(reproduction.by_task) < 2:
        if not task_pictures:
            return []
        return [
            Section("The paper's transform", [TRANSFORM, Figures(task_pictures)], name="transform")
        ]
    reasons = [
        f"{task} is left out of A: {why}." for task, why in reproduction.transform.reasons.items()
    ]
    pictures = _grid_pictures("figure8", "all tasks", reproduction.transform, reproduction.models)
    epsilons = paper_tables(reproduction)["epsilons"]
    blocks: list[Block] = [
        TRANSFORM,
        OF_EPSILON,
        _shown_table(epsilons),
        *reasons,
        Figures(pictures),
    ]
    if task_pictures:
        blocks.append(Details("The same of each task (Figures 9 to 12)", [Figures(task_pictures)]))
    return [Section("The paper's transform over all tasks", blocks, name="transform")]


TRANSFORM = "Min-max per task, mean A, C: ln(A + ε), double-centred (G.3)."
OF_EPSILON = (
    "ε moves the result. The paper's text has no number; its public notebook adds 1e-05, and centres raw scores too, "
    f"without min-max. Here it is {EPSILON}: min-max makes the least cell of a task 0, and ln(1e-05) of that one cell "
    "would be most of C."
)


def _grid_pictures(
    figure: str, scope: str, transform: PaperTransform, models: Sequence[str]
) -> list[Picture]:
    """A and C as heat maps; a task whose scores are all equal has neither."""
    if np.isnan(transform.aggregate).all():
        return []
    names = plots.cut_names(models)
    return [
        plots.heat_map(
            f"{figure}-A",
            transform.aggregate,
            names,
            caption=f"Min-max normalised scores, A (G.3): {scope}.",
            title=f"A: normalised scores, {scope}",
        ),
        plots.heat_map(
            f"{figure}-C",
            transform.centred,
            names,
            caption=f"C, double-centred ln(A + ε), ε = {transform.eps:g}: {scope}.",
            title=f"C: double-centred ln(A + ε), {scope}",
            centred=True,
        ),
    ]
