"""Numbers and claims of a matrix, from its tables, task by task (IntrospectBench, §4.1 and G.3)."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten

import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.stats.claim import Claim
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, holm, undefined
from selfprobe.stats.pairs import FEWEST_MODELS
from selfprobe.studies.matrix.advantage import (
    ModelsTest,
    Permutation,
    SelfAdvantage,
    capability_control,
    double_centre,
    observers_permuted,
    self_advantage,
    total_bounds,
    total_of,
    wilcoxon_models,
)
from selfprobe.studies.matrix.habit import ItemSpecificScores, groups, item_specific
from selfprobe.studies.matrix.rows import (
    InformedObserver,
    ModelRow,
    baseline_hits,
    baselines_left_out,
    informed_hits,
    informed_observers,
    model_rows,
    models_with_replies,
    stand_in_scores,
)
from selfprobe.studies.matrix.table import Results, TaskMatrix, counted_rows, matrix_of
from selfprobe.studies.matrix.verdict import MatrixFacts, matrix_claims, relative_notes
from selfprobe.study._registry import measures, takes_about
from selfprobe.text import busy

CAPABILITY_RESAMPLES = 1000
"""Number of resamples of the capability control's bootstrap; each matches all models anew."""


@dataclass(frozen=True)
class TaskAnalysis:
    """One task of a matrix."""

    task: str
    matrix: TaskMatrix
    """All models, holes included."""
    models: tuple[str, ...]
    """The models that the statistics use: those without a hole among them."""
    left_out: tuple[str, ...]
    """Models left out, whose cells are holes."""
    asked_in_full: tuple[str, ...]
    """Models left out of which every cell has a finished run."""
    holes: str
    """The first three holes, with their reasons."""
    cluster_of_item: npt.NDArray[np.intp]
    """[item]: the number of the cluster that it counts with."""
    cells: pd.DataFrame
    """One row a cell: target, observer, value, low, high, n (items), unscored (share), reasoned,
    hole.
    """
    chance: float
    """Score of a blind guess; NaN where there is no such thing."""
    advantage: SelfAdvantage | None
    """T and the models' own advantages; None with fewer than two complete models."""
    capability: Estimate | None
    total_advantage: Estimate
    """T of the item-specific scores, on which everything that is named runs."""
    complete: Estimate
    """T over the items that every cell scored."""
    worst: tuple[float, float]
    """T if all that is missing spoke against it, and if all spoke for it; NaN where scores are not
    in [0, 1].
    """
    permutation: Permutation
    """Permutation test of the item-specific scores' observers, all models together."""
    centred: FloatArray
    """Double-centred means of the item-specific scores of the complete models, [target, observer].
    """
    taken_off: str
    """Description of what was taken off a score to have the item-specific one; empty where nothing
    could be.
    """
    rows: tuple[ModelRow, ...]
    """Claims about each model, on its row; empty with fewer than three models."""
    rows_p_holm: tuple[float, ...]
    """p of the rows, Holm-adjusted over all models of all tasks: below .05 a model is named."""
    informed: tuple[InformedObserver, ...]
    """The observers that were told of their target; the closest one to each model is among its
    baselines.
    """
    reason_by_missing_baseline: Mapping[str, str]
    """Baseline that the task does not have → why."""
    test: ModelsTest | None
    p: float
    """One-sided item-level p of T."""
    p_holm: float
    """The p of T, Holm-adjusted over the tasks of the matrix."""
    claims: tuple[Claim, ...] = ()
    """The claim of each model of `matrix.models`, those that are left out too."""
    relatives: Mapping[str, list[str]] = field(default_factory=dict)
    """Model → sentences on its near-copy and its relatives in the matrix."""


@dataclass(frozen=True)
class Analysis:
    """A whole matrix."""

    tasks: tuple[TaskAnalysis, ...]


def analyse(results: Results, *, rng: np.random.Generator) -> Analysis:
    """All statistics of the matrices in these results, without tasks that have a single model."""
    all_matrices = [matrix_of(results, task) for task in sorted(set(results.cells.task))]
    matrices = [matrix for matrix in all_matrices if len(matrix.models) > 1]
    model_counts = [len(complete_models(matrix)) for matrix in matrices]
    test_count = sum(count for count in model_counts if count >= FEWEST_MODELS)

    # A generator for each task: no task moves another's resamples.
    generators = rng.spawn(len(measures()))
    rng_of_task = dict(zip(measures(), generators, strict=True))
    tasks = [
        _analyse_task(results, matrix, test_count, rng_of_task[matrix.task]) for matrix in matrices
    ]
    return Analysis(tuple(_with_claims(tasks)))


def _with_claims(tasks: Sequence[TaskAnalysis]) -> list[TaskAnalysis]:
    """Analyses with p corrected over all tasks, for T and, over all their models too, for the
    names.
    """
    if not tasks:
        return []
    total_ps = holm([task.p for task in tasks]).tolist()
    all_rows = [row for task in tasks for row in task.rows]
    row_ps = iter(holm([row.p for row in all_rows]).tolist())
    tasks_with_claims = []
    for task, total_p in zip(tasks, total_ps, strict=True):
        facts = _facts(task)
        tasks_with_claims.append(
            replace(
                task,
                p_holm=float(total_p),
                rows_p_holm=tuple(next(row_ps) for _ in task.rows),
                claims=matrix_claims(facts, family=all_rows),
                relatives=relative_notes(facts),
            )
        )
    return tasks_with_claims


def _facts(task: TaskAnalysis) -> MatrixFacts:
    """The numbers of a task that its claims are made of."""
    measure = measures()[task.task]
    means = task.advantage.means if task.advantage else np.full((1, 1), np.nan)
    return MatrixFacts(
        models=task.matrix.models,
        rows=task.rows,
        holes={model: _first_hole(model, task.matrix) for model in task.left_out},
        asked_in_full=task.asked_in_full,
        means=means,
        centred=task.centred,
        total=task.total_advantage,
        can_be_told=takes_about(task.task),
        replies=measure.replies,
        is_graded=measure.graded,
    )


def _reason_by_empty_cell(matrix: TaskMatrix) -> dict[tuple[str, str], str]:
    """(target, observer) → why the cell has no score."""
    unscored = dict.fromkeys(sorted(unscored_cells(matrix)), "nothing was scored")
    return unscored | dict(matrix.holes)


def _asked_in_full(results: Results, matrix: TaskMatrix, models: Sequence[str]) -> list[str]:
    """Those of the models of which every cell has a finished run."""
    cells = results.cells
    is_finished = (cells.task == matrix.task) & (cells.status == "complete")
    finished_cells = cells[is_finished]
    finished_pairs = set(zip(finished_cells.target, finished_cells.observer, strict=True))
    unfinished_models = {
        model for pair in matrix.holes if pair not in finished_pairs for model in pair
    }
    return [model for model in models if model not in unfinished_models]


def _hole_text(target: str, observer: str, reason: str) -> str:
    return f"{target} seen by {observer}: {shorten(reason, 120, placeholder='…')}"


def _first_hole(model: str, matrix: TaskMatrix) -> str:
    """The first hole of a model's cells, with its reason."""
    for (target, observer), reason in _reason_by_empty_cell(matrix).items():
        if model in (target, observer):
            return _hole_text(target, observer, reason)
    return "its cells have no score"


def _analyse_task(
    results: Results, matrix: TaskMatrix, test_count: int, rng: np.random.Generator
) -> TaskAnalysis:
    """The numbers of a task; its claims are made when all tasks are known (`_with_claims`)."""
    busy.set_stage(f"{matrix.task}: statistics")
    decisions = counted_rows(results, matrix)
    analysis = _empty_analysis(results, matrix, decisions)
    models = analysis.models
    model_indices = [matrix.models.index(model) for model in models]
    groups_by_feature = alike_items(results, matrix)
    measure = measures()[matrix.task]
    all_specific = item_specific(decisions, matrix, measure, groups_by_feature)
    specific = all_specific.for_models(model_indices)
    specific = replace(specific, scores=cluster_means(specific.scores, analysis.cluster_of_item))
    analysis = replace(analysis, taken_off=specific.taken_off)
    if len(models) < 2:
        return analysis
    return _compared_analysis(results, analysis, specific, groups_by_feature, test_count, rng)


def _empty_analysis(results: Results, matrix: TaskMatrix, decisions: pd.DataFrame) -> TaskAnalysis:
    """The analysis of a task of which no models are compared yet."""
    models = complete_models(matrix)
    cluster_of_item = item_clusters(results, matrix)
    reasons = list(_reason_by_empty_cell(matrix).items())[:3]
    holes = [_hole_text(target, observer, reason) for (target, observer), reason in reasons]
    chance = math.nan
    if "chance" in decisions:
        chance = float(decisions.chance.mean())

    no_advantage = undefined("fewer than two models are complete")
    left_out = tuple(model for model in matrix.models if model not in models)
    return TaskAnalysis(
        task=matrix.task,
        matrix=matrix,
        models=tuple(models),
        left_out=left_out,
        asked_in_full=tuple(_asked_in_full(results, matrix, left_out)),
        holes="; ".join(holes),
        cluster_of_item=cluster_of_item,
        cells=_cell_table(results, matrix, cluster_of_item),
        chance=chance,
        advantage=None,
        capability=None,
        total_advantage=no_advantage,
        complete=no_advantage,
        worst=(math.nan, math.nan),
        permutation=Permutation(math.nan, 0, True),
        centred=np.full((len(models), len(models)), np.nan),
        taken_off="",
        rows=(),
        rows_p_holm=(),
        informed=informed_observers(results, matrix),
        reason_by_missing_baseline=baselines_left_out(results, matrix.task, {}),
        test=None,
        p=math.nan,
        p_holm=math.nan,
    )


def _compared_analysis(
    results: Results,
    analysis: TaskAnalysis,
    specific: ItemSpecificScores,
    groups_by_feature: Mapping[str, pd.Series],
    test_count: int,
    rng: np.random.Generator,
) -> TaskAnalysis:
    """The analysis with all that compares two models or more.

    Args:
        results: Tables of the runs.
        analysis: Result of `_empty_analysis`.
        specific: Item-specific scores [target, observer, cluster] of its complete models.
        groups_by_feature: Result of `alike_items`.
        test_count: Number of models of all tasks.
        rng: Draws, in an order that numbers depend on.
    """
    matrix = analysis.matrix
    models = analysis.models
    cluster_of_item = analysis.cluster_of_item
    model_indices = [matrix.models.index(model) for model in models]
    model_scores = matrix.scores[np.ix_(model_indices, model_indices)]
    scores = cluster_means(model_scores, cluster_of_item)
    advantage = self_advantage(scores, models, rng=rng)
    item_hits = baseline_hits(results, matrix, models, groups_by_feature)
    item_hits |= informed_hits(analysis.informed, models, len(matrix.items))
    hits = {name: cluster_means(item_hit, cluster_of_item) for name, item_hit in item_hits.items()}
    replying_models = models_with_replies(results, matrix, models)
    stand_ins = stand_in_scores(results, matrix, models, replying_models)
    if stand_ins is not None:
        stand_ins = cluster_means(stand_ins, cluster_of_item)

    # These draw from one generator, as does `self_advantage`: another order moves their numbers.
    total = total_of(specific.scores, models)
    centred = analysis.centred
    permutation = analysis.permutation
    if total.n:
        centred = double_centre(np.nanmean(specific.scores, axis=2))
        permutation = observers_permuted(centred, rng=rng)
    capability = capability_control(scores, rng=rng, resamples=CAPABILITY_RESAMPLES)
    rows = model_rows(
        models,
        scores,
        specific,
        hits,
        tests=test_count,
        rng=rng,
        graded=measures()[matrix.task].graded,
        stand_ins=stand_ins,
        stand_in_names=replying_models,
    )
    is_complete_item = ~np.isnan(scores).any(axis=(0, 1))
    return replace(
        analysis,
        advantage=advantage,
        capability=capability,
        total_advantage=total,
        complete=total_of(scores[:, :, is_complete_item], models),
        worst=total_bounds(scores),
        permutation=permutation,
        centred=centred,
        rows=rows,
        reason_by_missing_baseline=baselines_left_out(results, matrix.task, hits),
        test=_paper_test(advantage),
        p=advantage.p,
    )


def alike_items(results: Results, matrix: TaskMatrix) -> Mapping[str, pd.Series]:
    """Groups of the items in the matrix's order, by kind, and by text only where the text can tell
    the truth.
    """
    items = _items_in_order(results, matrix)
    texts = pd.Series("", items.index)
    if measures()[matrix.task].text_tells:
        texts = items.input.fillna("")
    return groups(texts, items.kind)


def _items_in_order(results: Results, matrix: TaskMatrix) -> pd.DataFrame:
    """The rows of `Results.items` in the matrix's order."""
    task_items = results.items[results.items.task == matrix.task]
    return task_items.set_index("item").reindex(matrix.items)


def item_clusters(results: Results, matrix: TaskMatrix) -> npt.NDArray[np.intp]:
    """[item]: the number of the cluster that it counts with."""
    if results.items.empty:
        return np.arange(len(matrix.items))
    items = _items_in_order(results, matrix)
    cluster_names = items.cluster.fillna(items.index.to_series())
    return np.asarray(pd.factorize(cluster_names)[0])


def unit_name(cluster_of_item: npt.NDArray[np.intp]) -> str:
    """Name of one unit of an interval: the item, or the cluster where items share one."""
    are_alone = len(set(cluster_of_item)) == len(cluster_of_item)
    return "item" if are_alone else "cluster"


def cluster_means(x: FloatArray, cluster_of_item: npt.NDArray[np.intp]) -> FloatArray:
    """Scores [..., item] averaged to [..., cluster], so that items of one template are one unit of
    all statistics.
    """
    if len(set(cluster_of_item)) == x.shape[-1]:
        return x
    cluster_numbers = np.arange(cluster_of_item.max() + 1)
    is_member = (cluster_of_item[:, None] == cluster_numbers).astype(float)
    is_scored = ~np.isnan(x)
    counts = is_scored.astype(float) @ is_member
    sums = np.where(is_scored, x, 0.0) @ is_member
    return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))


def complete_models(matrix: TaskMatrix) -> list[str]:
    """Models that leave no hole, after dropping the one with the most holes again and again."""
    empty_cells = set(matrix.holes) | unscored_cells(matrix)
    models = list(matrix.models)
    while True:
        remaining_holes = [pair for pair in empty_cells if set(pair) <= set(models)]
        if not remaining_holes:
            return models
        hole_counts = Counter(model for pair in remaining_holes for model in set(pair))
        models.remove(max(models, key=lambda model: hole_counts[model]))


def unscored_cells(matrix: TaskMatrix) -> set[tuple[str, str]]:
    """(target, observer) of the cells without any score."""
    is_empty = np.isnan(matrix.scores).all(axis=2)
    return {
        (matrix.models[target], matrix.models[observer])
        for target, observer in np.argwhere(is_empty)
    }


def _paper_test(advantage: SelfAdvantage) -> ModelsTest:
    """The test over models of their own scores against the means of the others on them."""
    means = advantage.means
    means_of_others = [np.delete(row, model_index).mean() for model_index, row in enumerate(means)]
    return wilcoxon_models(np.diag(means), means_of_others)


def _cell_table(
    results: Results, matrix: TaskMatrix, cluster_of_item: npt.NDArray[np.intp]
) -> pd.DataFrame:
    """The table `TaskAnalysis.cells`."""
    decisions = results.decisions_of(matrix.task)
    pairs = [decisions.target, decisions.observer]
    unscored_by_pair = decisions.value.isna().groupby(pairs).mean().to_dict()
    reasoned_by_pair = decisions.reasoned.groupby(pairs).mean().to_dict()
    unit = unit_name(cluster_of_item)
    cells = []
    for target_index, observer_index in np.ndindex(matrix.scores.shape[:2]):
        scores = matrix.scores[target_index, observer_index]
        estimate = clustered_mean(scores, cluster_of_item, unit=unit)
        pair = (matrix.models[target_index], matrix.models[observer_index])
        no_hole = "" if estimate.n else "nothing was scored"
        cells.append(
            {
                "task": matrix.task,
                "target": pair[0],
                "observer": pair[1],
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": estimate.n,
                "reason": estimate.reason,
                "unscored": unscored_by_pair.get(pair, math.nan),
                "reasoned": reasoned_by_pair.get(pair, math.nan),
                "hole": matrix.holes.get(pair, no_hole),
            }
        )
    return pd.DataFrame(cells)
