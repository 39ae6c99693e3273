"""From a matrix's tables to its numbers and its verdict, task by task (paper 003, §4.1 and G.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from selfprobe._registry import measures
from selfprobe.matrix.advantage import SelfAdvantage, capability_control, self_advantage
from selfprobe.matrix.paper import (
    EpsilonRow,
    ModelsTest,
    PaperTransform,
    epsilon_sensitivity,
    paper_transform,
    wilcoxon_models,
)
from selfprobe.matrix.table import Matrix, Results, matrix_of
from selfprobe.matrix.verdict import (
    Verdict,
    item_sd,
    minimum_detectable,
    over_baseline,
    power,
    verdict,
)
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, holm, mode_baseline
from selfprobe.stats.text_only import SMALLEST_TEXT_SAMPLE, text_only_observer

SMALLEST = 0.05
"""The smallest self advantage of interest; a matrix that cannot see it is called underpowered."""
EPSILON = 0.01
"""ε of the paper's transform. Paper: not given."""

RESAMPLES = 1000
"""Of the capability control's bootstrap; each matches all models anew."""


@dataclass(frozen=True)
class TaskAnalysis:
    """One task of a matrix."""

    task: str
    matrix: Matrix
    """All models, holes included."""
    models: tuple[str, ...]
    """The models that the statistics use: those without a hole among them."""
    left_out: tuple[str, ...]
    """The others, whose cells are holes."""
    cells: pd.DataFrame
    """One row a cell: target, observer, value, low, high, n (items), unscored (share), reasoned, hole."""
    advantage: SelfAdvantage | None
    """None with fewer than two complete models."""
    capability: Estimate | None
    baselines: Mapping[str, Estimate]
    """Self minus baseline: "mode", "text only"; where the task has them."""
    without: Mapping[str, str]
    """The baselines that the task does not have, and why."""
    test: ModelsTest | None
    p: float
    """One-sided item-level p of T."""
    p_holm: float
    """The same, Holm-adjusted over the tasks of the matrix."""
    mde: float
    """The smallest T that this size detects with 80 % power."""
    power: float
    """The power at `SMALLEST`."""
    verdict: Verdict


@dataclass(frozen=True)
class Analysis:
    """A whole matrix."""

    tasks: tuple[TaskAnalysis, ...]
    paper: PaperTransform | None
    """The paper's transform over the tasks, for the models that are complete in all."""
    paper_models: tuple[str, ...]
    epsilons: tuple[EpsilonRow, ...]


def analyse(results: Results, *, rng: np.random.Generator) -> Analysis:
    """All statistics of the matrices in these results. A task that has a single model is left out."""
    matrices = [matrix_of(results, task) for task in sorted(set(results.cells.task))]
    tasks = [_task(results, matrix, rng) for matrix in matrices if len(matrix.models) > 1]
    adjusted = holm([task.p for task in tasks]).tolist() if tasks else []
    tasks = [_with(task, float(p)) for task, p in zip(tasks, adjusted, strict=True)]
    common = [m for m in (tasks[0].models if tasks else ()) if all(m in task.models for task in tasks)]
    if len(common) < 2:
        return Analysis(tuple(tasks), None, (), ())
    means = {task.task: _means(task, common) for task in tasks}
    return Analysis(tuple(tasks), paper_transform(means, EPSILON), tuple(common), epsilon_sensitivity(means))


def _task(results: Results, matrix: Matrix, rng: np.random.Generator) -> TaskAnalysis:
    models = _complete(matrix)
    at = [matrix.models.index(model) for model in models]
    scores = matrix.scores[np.ix_(at, at)]
    advantage = self_advantage(scores, models, rng=rng) if len(models) > 1 else None
    capability = capability_control(scores, rng=rng, resamples=RESAMPLES) if advantage else None
    baselines = _baselines(results, matrix, models, scores) if advantage else {}
    sd, items = (item_sd(scores), scores.shape[2]) if advantage else (float("nan"), 0)
    mde = minimum_detectable(items=items, sd=sd)
    if advantage and capability:
        said = verdict(advantage, capability=capability, mde=mde, baselines=baselines, smallest=SMALLEST)
        p = advantage.p
    else:
        reason = "; ".join(f"{t} seen by {o}: {why}" for (t, o), why in list(matrix.holes.items())[:3])
        said, p = Verdict("underpowered", f"Fewer than two models are complete ({reason})."), float("nan")
    return TaskAnalysis(
        task=matrix.task,
        matrix=matrix,
        models=tuple(models),
        left_out=tuple(model for model in matrix.models if model not in models),
        cells=_cells(results, matrix),
        advantage=advantage,
        capability=capability,
        baselines=baselines,
        without=_without(results, matrix.task, baselines),
        test=_paper_test(advantage) if advantage else None,
        p=p,
        p_holm=float("nan"),
        mde=mde,
        power=power(SMALLEST, items=items, sd=sd),
        verdict=said,
    )


def _with(task: TaskAnalysis, p_holm: float) -> TaskAnalysis:
    return replace(task, p_holm=p_holm)


def _complete(matrix: Matrix) -> list[str]:
    """Models that leave no hole, after dropping the one with the most holes again and again."""
    models = list(matrix.models)
    while True:
        empty = set(matrix.holes) | _unscored_cells(matrix)
        counts = {m: sum(m in pair and set(pair) <= set(models) for pair in empty) for m in models}
        if not any(counts.values()):
            return models
        models.remove(max(models, key=lambda m: counts[m]))


def _unscored_cells(matrix: Matrix) -> set[tuple[str, str]]:
    empty = np.argwhere(np.isnan(matrix.scores).all(axis=2))
    return {(matrix.models[t], matrix.models[o]) for t, o in empty}


def _paper_test(advantage: SelfAdvantage) -> ModelsTest:
    means = advantage.means
    off = ~np.eye(len(means), dtype=bool)
    return wilcoxon_models(np.diag(means), [float(row[keep].mean()) for row, keep in zip(means, off, strict=True)])


def _means(task: TaskAnalysis, models: Sequence[str]) -> FloatArray:
    assert task.advantage is not None
    at = [task.models.index(model) for model in models]
    return task.advantage.means[np.ix_(at, at)]


def _cells(results: Results, matrix: Matrix) -> pd.DataFrame:
    rows = results.decisions[results.decisions.task == matrix.task].groupby(["target", "observer"])
    counted = rows.agg(unscored=("value", lambda v: float(v.isna().mean())), reasoned=("reasoned", "mean"))
    out = []
    for t, target in enumerate(matrix.models):
        for o, observer in enumerate(matrix.models):
            estimate = clustered_mean(matrix.scores[t, o], np.arange(len(matrix.items)))
            pair = (target, observer)
            share = counted.loc[pair] if pair in counted.index else {"unscored": float("nan"), "reasoned": float("nan")}
            out.append(
                {
                    "task": matrix.task,
                    "target": target,
                    "observer": observer,
                    "value": estimate.value,
                    "low": estimate.low,
                    "high": estimate.high,
                    "n": estimate.n,
                    "unscored": share["unscored"],
                    "reasoned": share["reasoned"],
                    "hole": matrix.holes.get(pair, "" if estimate.n else "nothing was scored"),
                }
            )
    return pd.DataFrame(out)


def _baselines(results: Results, matrix: Matrix, models: Sequence[str], scores: FloatArray) -> dict[str, Estimate]:
    """Self minus what needs no model, where a truth is a class (`Decision.truth`) and not told by the item itself."""
    rows = results.decisions[(results.decisions.task == matrix.task) & results.decisions.truth.notna()]
    own = rows[(rows.target == rows.observer) & rows.target.isin(list(models))]
    if own.empty:
        return {}
    hits = {name: np.full(scores.shape[::2], np.nan) for name in ("mode", "text only")}
    texts = results.items[results.items.task == matrix.task].set_index("item").input
    measure = measures()[matrix.task]
    for place, model in enumerate(models):
        mine = own[own.target == model].drop_duplicates(["item", "key"])
        columns: dict[str, list[pd.Series]] = {name: [] for name in hits}
        for _, group in mine.groupby("key"):
            columns["mode"].append(pd.Series(mode_baseline(group.truth, group.item, right=measure.right), group.item))
            if not measure.text_tells:
                continue
            seen = text_only_observer(list(texts[group.item]), list(group.truth), right=measure.right)
            columns["text only"].append(pd.Series(seen.hits, group.item))
        for name, parts in columns.items():
            if parts:
                hits[name][place] = pd.concat(parts).groupby(level=0).mean().reindex(matrix.items).to_numpy()
    return {name: over_baseline(scores, hit) for name, hit in hits.items() if not np.isnan(hit).all()}


def _without(results: Results, task: str, applied: Mapping[str, Estimate]) -> dict[str, str]:
    """Why a baseline is not among those applied."""
    told = results.decisions[results.decisions.task == task].truth.notna().any()
    no_class = "" if told else "a truth of this task is no word or slot that could be guessed"
    reasons = {
        "mode": no_class or "too few truths to find a most frequent one",
        "text only": no_class
        or ("the item's text is the truth or tells nothing of it" if not measures()[task].text_tells else "")
        or f"a text classifier needs {SMALLEST_TEXT_SAMPLE} different questions with a truth",
    }
    return {name: why for name, why in reasons.items() if name not in applied}
