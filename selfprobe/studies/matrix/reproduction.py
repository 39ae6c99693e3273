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
        places = [self.matrix.models.index(model) for model in models]
        return self.matrix.scores[np.ix_(places, places)]


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
    tasks = list[PaperTask]()
    for task_name in PLACES:
        if not (results.cells.task == task_name).any():
            continue
        task = _task(results, task_name)
        if len(task.matrix.models) > 1:
            tasks.append(task)
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

    transform_by_task = dict[str, PaperTransform]()
    for task in usable_tasks:
        transform_by_task[task.task] = paper_transform({task.task: _means(task.scores)}, EPSILON)
    table2 = _table2(tasks)
    present_names = [task.task for task in tasks]
    usable_names = [task.task for task in usable_tasks]
    transfers = [_transfer(pair, table2, figure2) for pair in combinations(usable_names, 2)]
    return Reproduction(
        tasks=tuple(tasks),
        missing=tuple(name for name in PLACES if name not in present_names),
        table2=table2,
        figure2=tuple(figure2),
        models=common_models,
        transform=transform,
        by_task=transform_by_task,
        epsilons=epsilons,
        transfer=tuple(transfers),
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
    models = tuple(complete_models(matrix))
    if len(models) < 2:
        models = ()

    counted_rows = results.decisions_of(task)
    unscored_reason = "nothing was scored"
    if key is not None:
        counted_rows = counted_rows[counted_rows.key == key]
        if counted_rows.empty:
            unscored_reason = f"{key} was not asked, which is what the paper's number counts"
    reason_by_cell = dict.fromkeys(sorted(unscored_cells(matrix)), unscored_reason)
    reason_by_cell |= matrix.holes
    left_out_models = [model for model in matrix.models if model not in models]
    return PaperTask(
        task=task,
        matrix=matrix,
        models=models,
        left_out={
            model: _left_out_reason(model, models, reason_by_cell) for model in left_out_models
        },
        cluster=item_clusters(results, matrix),
        chance=float(counted_rows.chance.mean()),
    )


def _left_out_reason(
    model: str, kept_models: Sequence[str], reason_by_cell: Mapping[tuple[str, str], str]
) -> str:
    """The first hole of a model, one with the models that are kept first."""
    allowed_models = {model, *kept_models}
    holes = [cell for cell in reason_by_cell if model in cell]
    holes.sort(key=lambda cell: not set(cell) <= allowed_models)
    if not holes:
        return "fewer than two models are complete"
    target, observer = holes[0]
    cell_text = "on itself" if target == observer else f"{observer} on {target}"
    return f"{cell_text}: {reason_by_cell[holes[0]]}"


def mean_of_cells(cells: FloatArray, cluster: npt.NDArray[np.intp]) -> Estimate:
    """The mean of the means of some cells `[cell, item]`, each counting alike, with an interval
    over their items.

    The interval is of the items' influence on it: an item that a cell lacks has none there.
    """
    is_scored_item = ~np.isnan(cells).all(axis=0)
    scores = cells[:, is_scored_item]
    is_scored = ~np.isnan(scores)
    means = np.nanmean(scores, axis=1, keepdims=True)
    deviations = np.where(is_scored, scores - means, 0.0)
    item_counts = is_scored.sum(axis=1, keepdims=True)
    residuals = deviations * scores.shape[1] / item_counts
    influence = means.mean() + residuals.mean(axis=0)
    is_whole_number = np.abs(influence - influence.round()) < 1e-12
    rounded = np.where(is_whole_number, influence.round(), influence)
    return clustered_mean(rounded, cluster[is_scored_item], unit=unit_name(cluster))


def _table2(tasks: Sequence[PaperTask]) -> tuple[Table2Row, ...]:
    models = list(dict.fromkeys(model for task in tasks for model in task.matrix.models))
    rows = list[Table2Row]()
    for model in [*models, SELF]:
        scores = {task.task: _observer_score(task, model) for task in tasks}
        rows.append(Table2Row(model, scores, _average(scores), None))
    rows.sort(key=lambda row: (math.isnan(row.average.value), -row.average.value, row.model))

    ranked_rows = list[Table2Row]()
    rank = 0
    for row in rows:
        if row.model != SELF and not math.isnan(row.average.value):
            rank += 1
            ranked_rows.append(replace(row, rank=rank))
        else:
            ranked_rows.append(row)
    return tuple(ranked_rows)


def _average(scores: Mapping[str, Estimate]) -> Estimate:
    """Mean over tasks; undefined where one has no score."""
    missing_tasks = [task for task, score in scores.items() if math.isnan(score.value)]
    if missing_tasks:
        return undefined(f"no score in {', '.join(missing_tasks)}")
    return _mean_of_tasks(list(scores.values()))


def _mean_of_tasks(scores: Sequence[Estimate]) -> Estimate:
    """The mean of scores on different tasks, whose items are independent."""
    if len(scores) == 1:  # the mean of one number is that number, with its interval
        return scores[0]
    value = float(np.mean([score.value for score in scores]))
    se = math.sqrt(sum(score.se**2 for score in scores)) / len(scores)
    if math.isnan(se):
        return undefined("a task's scores are all equal", n=len(scores), value=value)
    return Estimate(value, value - 1.96 * se, value + 1.96 * se, len(scores), "task", se=se)


def _observer_score(task: PaperTask, model: str) -> Estimate:
    """Mean of a model on the others, or of all on themselves."""
    if model == SELF:
        if not task.models:
            return undefined("fewer than two models are complete")
        models = range(len(task.models))
        return mean_of_cells(task.scores[models, models], task.cluster)
    if model not in task.models:
        return undefined(task.left_out.get(model, f"it did not run {task.task}"))
    observer = task.models.index(model)
    scores_on_others = np.delete(task.scores[:, observer], observer, axis=0)
    return mean_of_cells(scores_on_others, task.cluster)


def _self_and_others(task: PaperTask) -> SelfAndOthers:
    own, others = _both_sides(task, task.models)
    return SelfAndOthers(task.task, task.models, own, others, _tested(own, others))


def _averaged(tasks: Sequence[PaperTask], models: Sequence[str]) -> SelfAndOthers:
    """Figure 2 on the mean of the tasks' scores as they are."""
    own_by_task = list[tuple[Estimate, ...]]()
    others_by_task = list[tuple[Estimate, ...]]()
    for task in tasks:
        own_scores, others_scores = _both_sides(task, models)
        own_by_task.append(own_scores)
        others_by_task.append(others_scores)
    own = tuple(_mean_of_tasks(scores) for scores in zip(*own_by_task, strict=True))
    others = tuple(_mean_of_tasks(scores) for scores in zip(*others_by_task, strict=True))
    return SelfAndOthers(AVERAGE, tuple(models), own, others, _tested(own, others))


def _both_sides(
    task: PaperTask, models: Sequence[str]
) -> tuple[tuple[Estimate, ...], tuple[Estimate, ...]]:
    """[model]: each of these on itself, and the mean of the others on it."""
    own = list[Estimate]()
    others = list[Estimate]()
    for target, scores_on_target in enumerate(task.among(models)):
        own.append(mean_of_cells(scores_on_target[[target]], task.cluster))
        scores_of_others = np.delete(scores_on_target, target, axis=0)
        others.append(mean_of_cells(scores_of_others, task.cluster))
    return tuple(own), tuple(others)


def _tested(own: Sequence[Estimate], others: Sequence[Estimate]) -> ModelsTest:
    own_values = [score.value for score in own]
    other_values = [score.value for score in others]
    return wilcoxon_models(own_values, other_values)


def resampled_means(scores: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
    """Cell means [resample, target, observer]; a cell that a resample leaves without a score has
    the observed mean.
    """
    size = len(scores)
    item_count = scores.shape[2]
    is_scored = ~np.isnan(scores)
    is_scored_by_cell = is_scored.reshape(-1, item_count)  # [cell, item]
    scores_by_item = np.where(is_scored, scores, 0.0).reshape(-1, item_count).T  # [item, cell]
    draws = rng.multinomial(item_count, np.full(item_count, 1 / item_count), size=resamples)
    item_weights = draws.astype(float)
    if is_scored.all():
        counts = np.full(1, float(item_count))
    else:
        counts = item_weights @ is_scored_by_cell.T
    observed_means = scores_by_item.sum(axis=0) / is_scored_by_cell.sum(axis=1)
    drawn_means = (item_weights @ scores_by_item) / np.maximum(counts, 1)
    means = np.where(counts > 0, drawn_means, observed_means)
    return np.asarray(means.reshape(resamples, size, size))


def _aggregate(
    tasks: Sequence[PaperTask],
    models: Sequence[str],
    transform: PaperTransform,
    rng: np.random.Generator,
) -> SelfAndOthers:
    """Figure 2 on A, with intervals from resampled items of each task."""
    counted_tasks = [task for task in tasks if task.task not in transform.reasons]
    sums: FloatArray | float = 0.0  # [resample, target, observer]
    for task in counted_tasks:  # one after the other: those of 110 models take 50 MB
        scores = cluster_means(task.among(models), task.cluster)
        sums = sums + min_max(resampled_means(scores, rng, RESAMPLES))
    aggregates = np.asarray(sums / len(counted_tasks))
    item_count = min(len(set(task.cluster)) for task in tasks)
    own, others = _sides(transform.aggregate)
    drawn_own, drawn_others = _sides(aggregates)
    return SelfAndOthers(
        name=AGGREGATE,
        models=tuple(models),
        own=_estimates(own, drawn_own, item_count),
        others=_estimates(others, drawn_others, item_count),
        test=wilcoxon_models(own, others),
    )


def _sides(aggregate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The diagonal of [..., target, observer], and the mean of the rest of each row."""
    size = aggregate.shape[-1]
    own = np.diagonal(aggregate, axis1=-2, axis2=-1)
    others = (aggregate.sum(axis=-1) - own) / (size - 1)
    return own, others


def _estimates(values: FloatArray, drawn_values: FloatArray, items: int) -> tuple[Estimate, ...]:
    """Each value [model] with a percentile interval of the drawn ones [resample, model]."""
    if items < 2:
        reason = "no interval from one item"
        return tuple(undefined(reason, n=items, value=float(value)) for value in values)
    lows, highs = np.nanpercentile(drawn_values, [2.5, 97.5], axis=0)
    estimates = list[Estimate]()
    for value, low, high in zip(values, lows, highs, strict=True):
        estimates.append(Estimate(float(value), float(low), float(high), items, "item"))
    return tuple(estimates)


def _means(scores: FloatArray) -> FloatArray:
    """Cell means [target, observer] of scores [target, observer, item]."""
    return np.asarray(np.nanmean(scores, axis=2))


def _transfer(
    pair: tuple[str, str], table2: Sequence[Table2Row], figure2: Sequence[SelfAndOthers]
) -> Transfer:
    figure_by_name = {figure.name: figure for figure in figure2}
    observer_scores = list[list[float]]()
    own_score_by_model = list[dict[str, float]]()
    printed_scores = list[list[float]]()
    for task in pair:
        figure = figure_by_name[task]
        own_values = [score.value for score in figure.own]
        own_score_by_model.append(dict(zip(figure.models, own_values, strict=True)))
        observer_scores.append([row.scores[task].value for row in table2 if row.model != SELF])
        printed_scores.append([row[task] for model, row in TABLE_2.items() if model != SELF])

    first_scores, second_scores = own_score_by_model
    common_models = [model for model in first_scores if model in second_scores]
    return Transfer(
        tasks=pair,
        observers=spearman(*observer_scores),
        own=spearman(
            [first_scores[model] for model in common_models],
            [second_scores[model] for model in common_models],
        ),
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
    return [_observer_row(reproduction, table2_row) for table2_row in reproduction.table2]


def _observer_row(reproduction: Reproduction, table2_row: Table2Row) -> ObserverRow:
    task_by_name = {task.task: task for task in reproduction.tasks}
    is_self = table2_row.model == SELF
    printed_name = SELF if is_self else paper_name(table2_row.model)
    printed_scores = TABLE_2.get(printed_name or "", {})
    task_fields: dict[str, Estimate | float | int] = {}
    holes = list[str]()
    for name in PLACES:
        task = task_by_name.get(name)
        score = table2_row.scores.get(name, undefined(f"no model ran {name}"))
        target_count = 0
        if task is not None and not math.isnan(score.value):
            target_count = len(task.models) if is_self else len(task.models) - 1
        task_fields[name] = score
        task_fields[f"{name}_targets"] = target_count
        task_fields[f"{name}_chance"] = task.chance if task else math.nan
        task_fields[f"paper_{name}"] = printed_scores.get(name, math.nan) / 100
    for name, score in table2_row.scores.items():
        if math.isnan(score.value):
            holes.append(f"{name}: {score.reason}")

    tasks_averaged = ""
    if not math.isnan(table2_row.average.value):
        tasks_averaged = f"{len(reproduction.tasks)} of {len(PLACES)}"
    return ObserverRow(
        rank=table2_row.rank,
        observer=table2_row.model,
        avg=table2_row.average,
        tasks_averaged=tasks_averaged,
        hole="; ".join(holes),
        paper_row=printed_name if printed_scores else None,
        **task_fields,  # type: ignore[arg-type]  # four tasks × four columns
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
        "Table 2 of {}. A row is an observer: the mean of its scores on the other models, k = 1 "
        "for k-th words. Only “Self Introspection” is models on themselves. Compare models' rows with "
        "each other, and the “Self Introspection” row only with the paper's. Unscored items are "
        "left out; their shares are under Tables."
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
    tasks = reproduction.tasks
    remarks = list[str]()
    for task in tasks:
        if not math.isnan(task.chance) and task.task in CHANCE:
            printed_score = number(TABLE_2[SELF][task.task] / 100)
            remarks.append(
                f"{task.task}: a blind guess gets {number(task.chance)} here and "
                f"{number(CHANCE[task.task])} in the paper's code, whose models on themselves "
                f"reach {printed_score}."
            )
    for task in tasks:
        for model, reason in task.left_out.items():
            remarks.append(f"{task.task}: {model} is left out, since {reason}.")
    if reproduction.missing and len(tasks) > 1:
        missing_tasks = ", ".join(reproduction.missing)
        remarks.append(
            f"Avg is over {len(tasks)} of the paper's four tasks; not here: {missing_tasks}."
        )

    models_by_task = {task.task: task.models for task in tasks if task.models}
    if len(set(models_by_task.values())) > 1:
        column_texts = [f"{task}: {', '.join(models)}" for task, models in models_by_task.items()]
        remarks.append(
            "The columns are over different models, so compare within a column only. "
            f"{'; '.join(column_texts)}."
        )
    return [Bullets(remarks)] if remarks else []


def _table2_picture(reproduction: Reproduction) -> Picture:
    tasks = [task.task for task in reproduction.tasks]
    columns = [PLACES[task].column for task in tasks]
    has_average = len(tasks) > 1
    if has_average:
        columns.append("Avg")
    models = [row.model for row in reproduction.table2]
    short_names = dict(zip(models, plots.cut_names(models), strict=True))

    row_names = list[str]()
    values = list[list[float]]()
    lows = list[list[float]]()
    highs = list[list[float]]()
    for row in reproduction.table2:
        if row.model == SELF:
            row_names.append(SELF)
        else:
            row_names.append(f"{row.rank or '–'}. {short_names[row.model]}")
        scores = [row.scores[task] for task in tasks]
        if has_average:
            scores.append(row.average)
        values.append([score.value for score in scores])
        lows.append([score.low for score in scores])
        highs.append([score.high for score in scores])
    return plots.heat_map(
        "table2",
        values,
        row_names,
        columns,
        caption=(
            "Mean score of each observer on the other models, coloured within a column; framed: "
            "the models on themselves."
        ),
        title="Observers on the other models",
        low=lows,
        high=highs,
        by_column=True,
        framed=row_names.index(SELF),
        across="",
        down="",
    )


def _figure2_section(reproduction: Reproduction) -> Section:
    intro = (
        "Each model's score on itself is compared with the mean of the others on it: a signed-rank "
        f"test over models, one-sided, exact. The paper prints p = {p_digits(WILCOXON_P)} and does "
        f"not say of which mean of its tasks. {AVERAGE.capitalize()}: the mean of the scores as "
        f"they are, the Average of its public notebook. {AGGREGATE.capitalize()}: the mean of the "
        "min-max normalised tasks (G.3). The two can fall on different sides of .05. Neither "
        "removes skill or predictability; the answer above does."
    )
    tables = paper_tables(reproduction)
    has_aggregate = len(reproduction.by_task) > 1
    parts_on_page = [
        part for part in reproduction.figure2 if part.name != AGGREGATE or has_aggregate
    ]
    names_on_page = [part.name for part in parts_on_page]
    test_rows = [row for row in tables["figure2-test"].rows if row.on in names_on_page]
    pictured_parts = [part for part in parts_on_page if part.name == AVERAGE]
    if not pictured_parts:
        pictured_parts = parts_on_page[-1:]

    blocks: list[Block] = [intro]
    if test_rows:
        test_table = replace(tables["figure2-test"], rows=test_rows, hides_empty=True)
        blocks.append(_shown_table(test_table))
        blocks.append(Figures([_figure2_picture(part) for part in pictured_parts]))
    if tables["task-ranks"].rows:
        blocks.append(
            "How alike two tasks rank the models (Spearman); the paper: strong performance on one "
            "does not transfer."
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
        caption=(
            f"The paper's Figure 2, {title}: each model on itself, and the mean of the others on "
            "it."
        ),
        title=f"{title}: itself against the others",
    )


def _transform_section(reproduction: Reproduction) -> list[Section]:
    """The transform over all tasks, where there are several, and of each."""
    task_pictures = list[Picture]()
    for task in reproduction.tasks:
        if task.task in reproduction.by_task:
            task_pictures += _grid_pictures(
                f"figure{PLACES[task.task].figure}",
                task.task,
                reproduction.by_task[task.task],
                task.models,
            )
    transform = reproduction.transform
    if transform is None or len(reproduction.by_task) < 2:
        if not task_pictures:
            return []
        task_blocks: list[Block] = [TRANSFORM, Figures(task_pictures)]
        return [Section("The paper's transform", task_blocks, name="transform")]

    left_out_lines = [
        f"{task} is left out of A: {reason}." for task, reason in transform.reasons.items()
    ]
    pictures = _grid_pictures("figure8", "all tasks", transform, reproduction.models)
    blocks: list[Block] = [
        TRANSFORM,
        OF_EPSILON,
        _shown_table(paper_tables(reproduction)["epsilons"]),
        *left_out_lines,
        Figures(pictures),
    ]
    if task_pictures:
        blocks.append(Details("The same of each task (Figures 9 to 12)", [Figures(task_pictures)]))
    return [Section("The paper's transform over all tasks", blocks, name="transform")]


TRANSFORM = "Min-max per task, mean A, C: ln(A + ε), double-centred (G.3)."
OF_EPSILON = (
    "ε moves the result. The paper's text has no number; its public notebook adds 1e-05, and "
    f"centres raw scores too, without min-max. Here it is {EPSILON}: min-max makes the least cell "
    "of a task 0, and ln(1e-05) of that one cell would be most of C."
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
