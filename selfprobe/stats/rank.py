"""AUROC of scores for two classes, accuracies and F1 of verdicts: fast enough to bootstrap.

Each is a function of arrays with one entry a row; the probes' tables ask for many columns or shuffles at a time, for
which `auroc_table` and `f1_of_counts` compute the same numbers.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from selfprobe.stats.estimate import Estimate, FloatArray, undefined

BoolArray = npt.NDArray[np.bool_]


def auroc(positive: BoolArray, scores: FloatArray) -> float:
    """Chance that a positive row scores above a negative one, ties half (Mann–Whitney); NaN with one class.

    A row whose score is NaN is left out. Not scikit-learn's, which takes fifty times as long: the bootstrap calls it
    two thousand times.
    """
    if np.isnan(scores).any():
        positive, scores = positive[~np.isnan(scores)], scores[~np.isnan(scores)]
    ours, others = scores[positive], np.sort(scores[~positive])
    if not len(ours) or not len(others):
        return math.nan
    below = np.searchsorted(others, ours, side="left") + np.searchsorted(others, ours, side="right")
    return float(below.sum() / (2 * len(ours) * len(others)))


def auroc_table(positive: BoolArray, scores: FloatArray) -> FloatArray:
    """`auroc` [k, m] of all `scores  # [k, row]` under all labels `positive  # [m, row]`, both classes in each."""
    from scipy.stats import rankdata  # here: slow to import

    ranks, ours = rankdata(scores, axis=1), positive.sum(axis=1)
    others = positive.shape[1] - ours
    return np.asarray((ranks @ positive.T.astype(float) - ours * (ours + 1) / 2) / (ours * others))


def accuracy(positive: BoolArray, scores: FloatArray) -> float:
    """Share of rows whose score has the right sign, above 0 for positive; a score of exactly 0 is a tie, half right."""
    truth = np.where(positive, 1.0, -1.0)
    return float(np.mean(0.5 + truth * np.sign(scores) / 2)) if len(truth) else math.nan


def balanced_accuracy(positive: BoolArray, called: BoolArray) -> float:
    """Mean of both classes' shares of right verdicts; NaN with one class."""
    if positive.all() or not positive.any():
        return math.nan
    return float((called[positive].mean() + (~called[~positive]).mean()) / 2)


def weighted_f1(truth: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float:
    """F1 of each label in `truth  # [row]`, weighted by how often it occurs; any other label `predicted` is a miss.

    scikit-learn's f1_score(average="weighted"); NaN without a row.
    """
    labels = np.unique(truth)[:, None]
    true, ours = truth == labels, predicted == labels
    return float(f1_of_counts((true & ours).sum(axis=1), ours.sum(axis=1), true.sum(axis=1)))


def f1_of_counts(hits: npt.ArrayLike, predicted: npt.ArrayLike, support: npt.ArrayLike) -> FloatArray:
    """`weighted_f1` [...] from counts of rows [label, ...]: correct verdicts, verdicts, and truths for each label."""
    right, claimed, true = (np.asarray(counts, dtype=float) for counts in (hits, predicted, support))
    with np.errstate(invalid="ignore"):  # without a row: NaN
        return np.asarray((true * 2 * right / np.maximum(claimed + true, 1)).sum(axis=0) / true.sum(axis=0))


def spearman(x: npt.ArrayLike, y: npt.ArrayLike, *, unit: str = "model") -> Estimate:
    """Rank correlation of two columns [row], ties averaged, with Fisher's z interval (Bonett & Wright 2000).

    Rows with a NaN on either side are left out. Undefined with fewer than three rows or a column of equal values; no
    interval with fewer than four, or at exactly ±1.
    """
    from scipy.stats import rankdata  # here: slow to import

    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    both = ~(np.isnan(a) | np.isnan(b))
    a, b, n = a[both], b[both], int(both.sum())
    if n < 3:
        return undefined(f"fewer than three {unit}s", n=n, unit=unit)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return undefined("all values of a column are equal", n=n, unit=unit)
    rho = float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])
    if n < 4 or abs(rho) > 1 - 1e-12:
        return undefined(f"no interval from {n} {unit}s" if n < 4 else "no interval at ±1", n=n, unit=unit, value=rho)
    half = 1.959964 * math.sqrt((1 + rho**2 / 2) / (n - 3))
    low, high = math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)
    return Estimate(rho, low, high, n, unit)
