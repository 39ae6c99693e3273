"""What paper 003 itself computes from a matrix: its test over models, and its transform (§4.1 and G.3)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from selfprobe.matrix.advantage import double_centre
from selfprobe.stats.spread import FloatArray


@dataclass(frozen=True)
class ModelsTest:
    """Result of `wilcoxon_models`."""

    wilcoxon_p: float
    """One-sided Wilcoxon signed-rank p (exact up to 13 models, and up to 50 without ties)."""
    sign_p: float
    """One-sided exact sign test p."""
    wins: int
    """Models that score higher on themselves."""
    n: int
    """Models with a difference other than 0."""
    rank_sum: float = 0.0
    """Of the ranks of those that score lower on themselves: the smaller sum, where most score higher."""


@dataclass(frozen=True)
class PaperTransform:
    """Result of `paper_transform`."""

    aggregate: FloatArray
    """A[target, observer], the mean of the min-max normalised tasks; NaN where a task has no score."""
    log: FloatArray
    """L = ln(A + ε)."""
    centred: FloatArray
    """C, the double-centred L; all NaN if a cell is."""
    eps: float
    """ε."""
    reasons: Mapping[str, str]
    """Tasks left out of A, and why."""


@dataclass(frozen=True)
class EpsilonRow:
    """One line of `epsilon_sensitivity`."""

    eps: float
    """ε."""
    advantage: float
    """tr(C)/(M - 1), T on the log scale; NaN where C is."""
    positive: int
    """Models whose own cell in C is positive."""


def wilcoxon_models(selfs: npt.ArrayLike, others: npt.ArrayLike) -> ModelsTest:
    """The paper's test: each model's score on itself against the mean of the others on it, `selfs  # [model]`.

    One-sided Wilcoxon signed-rank; models without a difference are dropped. Paper: p = 0.0210, which is the exact
    43/2048 of 11 models with a smaller rank sum of 10. Skill is not removed here.
    """
    difference = np.asarray(selfs, dtype=float) - np.asarray(others, dtype=float)
    if difference.ndim != 1 or np.isnan(difference).any():
        raise ValueError(f"expected two scores for each model and no NaN, got differences {difference}")
    nonzero = (rounded := difference.round(12))[rounded != 0]  # what is equal but for rounding is a tie
    wins, n = int((nonzero > 0).sum()), len(nonzero)
    if n == 0:
        return ModelsTest(math.nan, math.nan, 0, 0)
    from scipy import stats  # here: slow to import

    p = float(stats.wilcoxon(nonzero, alternative="greater").pvalue)
    below = float(stats.rankdata(np.abs(nonzero))[nonzero < 0].sum())
    return ModelsTest(p, float(stats.binomtest(wins, n, alternative="greater").pvalue), wins, n, below)


def paper_transform(matrices: Mapping[str, npt.ArrayLike], eps: float) -> PaperTransform:
    """Min-max per task, mean A, L = ln(A + ε), double-centred C (G.3), for task name -> matrix[target, observer].

    A task whose scores are all equal has no min-max: it is left out of A, with a reason. A hole in a task is a hole
    in A. Paper: ε is not given. Here: given by the caller, and shown; see `epsilon_sensitivity`.
    """
    tasks = {name: np.asarray(matrix, dtype=float) for name, matrix in matrices.items()}
    shapes = {name: task.shape for name, task in tasks.items()}
    if len(set(shapes.values())) != 1 or any(len(shape) != 2 or shape[0] != shape[1] for shape in shapes.values()):
        raise ValueError(f"expected one or more square matrices of one size, got {shapes}")
    if eps < 0:
        raise ValueError(f"eps must be 0 or more, got {eps}")
    parts, reasons = [], {}
    for name, task in tasks.items():
        scored = task[~np.isnan(task)]
        if scored.size and np.ptp(scored) > 0:
            parts.append(normalised(task))
        else:
            reasons[name] = "all scores are equal: min-max is undefined" if scored.size else "no score"
    size = next(iter(tasks.values())).shape
    aggregate = np.mean(parts, axis=0) if parts else np.full(size, math.nan)
    if eps == 0 and (aggregate == 0).any():
        i, j = np.argwhere(aggregate == 0)[0]
        raise ValueError(f"ln(0): A is 0 for target {i}, observer {j} (counted from 0); choose eps > 0, such as 0.01")
    log = np.log(aggregate + eps)
    return PaperTransform(aggregate, log, double_centre(log), eps, reasons)


def normalised(means: FloatArray) -> FloatArray:
    """Min-max over the last two axes of [..., target, observer]; NaN where all of them are equal."""
    low, high = (end(means, axis=(-2, -1), keepdims=True) for end in (np.nanmin, np.nanmax))
    return np.asarray((means - low) / np.where(high > low, high - low, math.nan))


def epsilon_sensitivity(
    matrices: Mapping[str, npt.ArrayLike], epsilons: Sequence[float] = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
) -> tuple[EpsilonRow, ...]:
    """What the paper's transform says for each ε: the log-scale T, and how many diagonal cells are positive."""
    diagonals = [(eps, np.diag(paper_transform(matrices, eps).centred)) for eps in epsilons]
    return tuple(
        EpsilonRow(eps, float(diagonal.sum() / (len(diagonal) - 1)), int((diagonal > 0).sum()))
        for eps, diagonal in diagonals
    )
