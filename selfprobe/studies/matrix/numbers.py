"""Numbers and claims of a matrix, from its tables, task by task (paper 003, §4.1 and G.3)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten

import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.stats.claim import Claim
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, holm, undefined
from selfprobe.stats.pairs import FEWEST
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
from selfprobe.studies.matrix.habit import groups, item_specific
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

RESAMPLES = 1000
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
    holes: str
    """The first three holes, with their reasons."""
    cluster: npt.NDArray[np.intp]
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
    total: Estimate
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
    without: Mapping[str, str]
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
    """All statistics of the matrices in these results. A task that has a single model is left out."""
    matrices = [matrix_of(results, task) for task in sorted(set(results.cells.task))]
    matrices = [matrix for matrix in matrices if len(matrix.models) > 1]
    tests = sum(size for matrix in matrices if (size := len(complete_models(matrix))) >= FEWEST)
    streams = dict(
        zip(measures(), rng.spawn(len(measures())), strict=True)
    )  # no task moves another's resamples
    return Analysis(
        tuple(_judged([_task(results, m, tests, streams[m.task]) for m in matrices], results))
    )


def _judged(tasks: Sequence[TaskAnalysis], results: Results) -> list[TaskAnalysis]:
    """Analyses with p corrected over all tasks, for T and, over all their models too, for the
    names.
    """
    totals = holm([task.p for task in tasks]).tolist() if tasks else []
    family = iter(holm([row.p for task in tasks for row in task.rows]).tolist())
    rows_of_tasks = [row for task in tasks for row in task.rows]
    judged = []
    for task, p_total in zip(tasks, totals, strict=True):
        p_rows = tuple(next(family) for _ in task.rows)
        facts = _facts(task)
        claims = matrix_claims(facts, family=rows_of_tasks)
        relatives = relative_notes(facts)
        judged.append(
            replace(
                task, p_holm=float(p_total), rows_p_holm=p_rows, claims=claims, relatives=relatives
            )
        )
    return judged


def _facts(task: TaskAnalysis) -> MatrixFacts:
    """The numbers of a task that its claims are made of."""
    measure = measures()[task.task]
    return MatrixFacts(
        models=task.matrix.models,
        rows=task.rows,
        holes={model: _holes_of(model, task) for model in task.left_out},
        means=task.advantage.means if task.advantage else np.full((1, 1), np.nan),
        centred=task.centred,
        total=task.total,
        can_be_told=takes_about(task.task),
        replies=measure.replies,
        is_graded=measure.graded,
    )


def _holes_of(model: str, task: TaskAnalysis) -> str:
    """The first hole of a model's cells, with its reason."""
    empty = dict.fromkeys(sorted(unscored_cells(task.matrix)), "nothing was scored") | dict(
        task.matrix.holes
    )
    for (target, observer), reason in empty.items():
        if model in (target, observer):
            return f"{target} seen by {observer}: {shorten(reason, 120, placeholder='…')}"
    return "its cells have no score"


def _task(
    results: Results, matrix: TaskMatrix, tests: int, rng: np.random.Generator
) -> TaskAnalysis:
    """The numbers of a task; its claims are made when all tasks are known (`_judged`)."""
    busy.set_stage(f"{matrix.task}: statistics")
    models = complete_models(matrix)
    at = [matrix.models.index(model) for model in models]
    square = np.ix_(at, at)
    cluster = item_clusters(results, matrix)
    scores = cluster_means(matrix.scores[square], cluster)
    enough = len(models) > 1
    advantage = self_advantage(scores, models, rng=rng) if enough else None
    alike, told = alike_items(results, matrix), informed_observers(results, matrix)
    hits = baseline_hits(results, matrix, models, alike) if enough else {}
    hits |= informed_hits(told, models, len(matrix.items)) if enough else {}
    hits = {name: cluster_means(hit, cluster) for name, hit in hits.items()}
    replying = models_with_replies(results, matrix, models) if enough else models
    stood = stand_in_scores(results, matrix, models, replying) if enough else None
    stood = None if stood is None else cluster_means(stood, cluster)
    rows, graded = counted_rows(results, matrix), measures()[matrix.task].graded
    specific = item_specific(rows, matrix, measures()[matrix.task], alike).of(at)
    specific = replace(specific, scores=cluster_means(specific.scores, cluster))
    total = (
        total_of(specific.scores, models)
        if enough
        else undefined("fewer than two models are complete")
    )
    shuffled = Permutation(float("nan"), 0, True)
    centred = np.full((len(models),) * 2, np.nan)
    if enough and total.n:
        centred = double_centre(np.nanmean(specific.scores, axis=2))
        shuffled = observers_permuted(centred, rng=rng)
    empty = dict.fromkeys(sorted(unscored_cells(matrix)), "nothing was scored") | dict(matrix.holes)
    holes = [(t, o, shorten(why, 120, placeholder="…")) for (t, o), why in list(empty.items())[:3]]
    reason = "; ".join(f"{t} seen by {o}: {why}" for t, o, why in holes)
    return TaskAnalysis(
        task=matrix.task,
        matrix=matrix,
        models=tuple(models),
        left_out=tuple(model for model in matrix.models if model not in models),
        holes=reason,
        cluster=cluster,
        cells=_cells(results, matrix, cluster),
        chance=float(rows.chance.mean()) if "chance" in rows else float("nan"),
        advantage=advantage,
        capability=capability_control(scores, rng=rng, resamples=RESAMPLES) if enough else None,
        total=total,
        complete=total_of(scores[:, :, ~np.isnan(scores).any(axis=(0, 1))], models)
        if enough
        else total,
        worst=total_bounds(scores) if enough else (float("nan"),) * 2,
        permutation=shuffled,
        centred=centred,
        taken_off=specific.taken_off,
        rows=model_rows(
            models,
            scores,
            specific,
            hits,
            tests=tests,
            rng=rng,
            graded=graded,
            stand_ins=stood,
            stand_in_names=replying,
        )
        if enough
        else (),
        rows_p_holm=(),
        informed=told,
        without=baselines_left_out(results, matrix.task, hits),
        test=_paper_test(advantage) if advantage else None,
        p=advantage.p if advantage else float("nan"),
        p_holm=float("nan"),
    )


def alike_items(results: Results, matrix: TaskMatrix) -> Mapping[str, pd.Series]:
    """Groups of the items in the matrix's order, by kind, and by text only where the text can tell
    the truth.
    """
    asked = _asked(results, matrix)
    texts = (
        asked.input.fillna("") if measures()[matrix.task].text_tells else pd.Series("", asked.index)
    )
    return groups(texts, asked.kind)


def _asked(results: Results, matrix: TaskMatrix) -> pd.DataFrame:
    """The rows of `Results.items` in the matrix's order."""
    return results.items[results.items.task == matrix.task].set_index("item").reindex(matrix.items)


def item_clusters(results: Results, matrix: TaskMatrix) -> npt.NDArray[np.intp]:
    """[item]: the number of the cluster that it counts with."""
    if results.items.empty:
        return np.arange(len(matrix.items))
    asked = _asked(results, matrix)
    return np.asarray(pd.factorize(asked.cluster.fillna(asked.index.to_series()))[0])


def unit_of(cluster: npt.NDArray[np.intp]) -> str:
    """Name of one unit of an interval."""
    return "item" if len(set(cluster)) == len(cluster) else "cluster"


def cluster_means(x: FloatArray, cluster: npt.NDArray[np.intp]) -> FloatArray:
    """Scores [..., item] averaged to [..., cluster], so that items of one template are one unit of
    all statistics.
    """
    if len(set(cluster)) == x.shape[-1]:
        return x
    member = (cluster[:, None] == np.arange(cluster.max() + 1)).astype(float)
    known = ~np.isnan(x)
    counts = known.astype(float) @ member
    return np.asarray(
        np.where(counts > 0, np.where(known, x, 0.0) @ member / np.maximum(counts, 1), np.nan)
    )


def complete_models(matrix: TaskMatrix) -> list[str]:
    """Models that leave no hole, after dropping the one with the most holes again and again."""
    models = list(matrix.models)
    while True:
        empty = set(matrix.holes) | unscored_cells(matrix)
        counts = {m: sum(m in pair and set(pair) <= set(models) for pair in empty) for m in models}
        if not any(counts.values()):
            return models
        models.remove(max(models, key=lambda m: counts[m]))


def unscored_cells(matrix: TaskMatrix) -> set[tuple[str, str]]:
    empty = np.argwhere(np.isnan(matrix.scores).all(axis=2))
    return {(matrix.models[t], matrix.models[o]) for t, o in empty}


def _paper_test(advantage: SelfAdvantage) -> ModelsTest:
    means = advantage.means
    off = ~np.eye(len(means), dtype=bool)
    return wilcoxon_models(
        np.diag(means), [float(row[keep].mean()) for row, keep in zip(means, off, strict=True)]
    )


def _cells(results: Results, matrix: TaskMatrix, cluster: npt.NDArray[np.intp]) -> pd.DataFrame:
    rows = results.decisions_of(matrix.task)
    unscored = rows.value.isna().groupby([rows.target, rows.observer]).mean().to_dict()
    reasoned = rows.reasoned.groupby([rows.target, rows.observer]).mean().to_dict()
    unit = unit_of(cluster)
    out = []
    for t, target in enumerate(matrix.models):
        for o, observer in enumerate(matrix.models):
            estimate = clustered_mean(matrix.scores[t, o], cluster, unit=unit)
            pair = (target, observer)
            out.append(
                {
                    "task": matrix.task,
                    "target": target,
                    "observer": observer,
                    "value": estimate.value,
                    "low": estimate.low,
                    "high": estimate.high,
                    "n": estimate.n,
                    "reason": estimate.reason,
                    "unscored": unscored.get(pair, math.nan),
                    "reasoned": reasoned.get(pair, math.nan),
                    "hole": matrix.holes.get(pair, "" if estimate.n else "nothing was scored"),
                }
            )
    return pd.DataFrame(out)
