"""The strongest control there is: what an observer reaches that was told of the target (`-T observer=asked|shown:N`).

What a stranger learns from a name or a few examples is no privileged access. A model is held against the informed
observer that comes closest to it, on the items that both score.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from selfprobe._registry import measures
from selfprobe.matrix.comparable import odd_cells
from selfprobe.matrix.table import Matrix, Results, item_scores
from selfprobe.stats.estimate import Estimate, clustered_mean
from selfprobe.stats.spread import FloatArray

INFORMED = "informed observer"
"""Its name among the baselines of a model's row."""

NOT_RUN = "no observer was told of its target; selfprobe matrix --observers shown:5 runs that"


@dataclass(frozen=True)
class InformedObserver:
    """One observer that was told of one target."""

    target: str
    observer: str
    arm: str
    """How: "asked" by name, or "shown:N"."""
    scores: FloatArray
    """[item]; NaN where unscored."""
    score: Estimate
    """Their mean."""
    over: Estimate
    """The target on itself minus this, of the items that both score."""
    unscored: float
    """Share of its decisions."""
    hole: str
    """Why it is not used; else empty."""


def informed_observers(results: Results, matrix: Matrix) -> tuple[InformedObserver, ...]:
    """Every run of the task in which an observer was told of a target of this matrix."""
    if results.informed.empty:
        return ()
    own = results.cells[(results.cells.task == matrix.task) & (results.cells.status == "complete")]
    own = own[own.target == own.observer]
    runs = results.informed[results.informed.task == matrix.task]
    out = []
    for arm, cells in runs.groupby("arm"):
        odd = odd_cells(pd.concat([own, cells[cells.status == "complete"]]))
        rows = results.informed_decisions
        rows = rows[(rows.task == matrix.task) & (rows.arm == arm)]
        graded = item_scores(rows)
        for cell in cells.sort_values(["target", "observer"]).itertuples():
            pair = (str(cell.target), str(cell.observer))
            its = rows[(rows.target == pair[0]) & (rows.observer == pair[1])]
            hole = str(cell.reason) or odd.get(pair, "") or ("" if pair[0] in matrix.models else "no run of its target")
            scores = np.full(len(matrix.items), np.nan)
            if not hole:
                scores = graded.loc[pair].reindex(matrix.items).to_numpy(dtype=float)
                hole = "" if np.isfinite(scores).any() else "nothing was scored"
            out.append(_observer(matrix, *pair, str(arm), scores, float(its.value.isna().mean()), hole))
        nothing = np.full(len(matrix.items), np.nan)
        lost = _lost(set(zip(cells.target, cells.observer, strict=True)), matrix.models)
        out += [_observer(matrix, *pair, str(arm), nothing, np.nan, "there is no log of this cell") for pair in lost]
    return tuple(out)


def _lost(there: set[tuple[str, str]], models: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs without a log, where most have one: of a matrix, not of single runs."""
    pairs = [(target, observer) for target in models for observer in models if target != observer]
    missing = [pair for pair in pairs if pair not in there]
    return missing if len(missing) < len(pairs) / 2 else []


def _observer(
    matrix: Matrix, target: str, observer: str, arm: str, scores: FloatArray, unscored: float, hole: str
) -> InformedObserver:
    items = np.arange(len(matrix.items))
    own = np.full(len(items), np.nan)
    if target in matrix.models:
        place = matrix.models.index(target)
        own = matrix.scores[place, place]
    return InformedObserver(
        target=target,
        observer=observer,
        arm=arm,
        scores=scores,
        score=clustered_mean(scores, items),
        over=clustered_mean(own - scores, items, interval="difference" if measures()[matrix.task].graded else "t"),
        unscored=unscored,
        hole=hole,
    )


def closest(observers: Sequence[InformedObserver], target: str) -> InformedObserver | None:
    """The one that comes closest to what the target reaches on itself, or passes it; None where there is none."""
    good = [one for one in observers if one.target == target and not one.hole and one.over.n]
    return min(good, key=lambda one: one.over.value, default=None)


def informed_hits(observers: Sequence[InformedObserver], models: Sequence[str], items: int) -> dict[str, FloatArray]:
    """INFORMED → [target, item], the scores of each model's closest informed observer; empty without any.

    Args:
        observers: From `informed_observers`.
        models: The targets, in the order of the axis.
        items: Length of the second axis.
    """
    found = [closest(observers, model) for model in models]
    if not any(found):
        return {}
    return {INFORMED: np.array([np.full(items, np.nan) if one is None else one.scores for one in found])}
