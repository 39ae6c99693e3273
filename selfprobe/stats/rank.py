"""How well scores tell two classes apart, and verdicts the truth: AUROC, accuracies and F1, fast enough to bootstrap.

Each is a function of arrays with one entry a row; the probes' tables ask for many columns or shuffles at a time, for
which `auroc_table` and `f1_of_counts` compute the same numbers.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from selfprobe.stats.estimate import FloatArray

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


def weighted_f1(truth: npt.NDArray[Any], said: npt.NDArray[Any]) -> float:
    """F1 of each label in `truth  # [row]`, weighted by how often it occurs; any other label `said` is a miss.

    scikit-learn's f1_score(average="weighted"); NaN without a row.
    """
    labels = np.unique(truth)[:, None]
    true, ours = truth == labels, said == labels
    return float(f1_of_counts((true & ours).sum(axis=1), ours.sum(axis=1), true.sum(axis=1)))


def f1_of_counts(hits: npt.ArrayLike, said: npt.ArrayLike, support: npt.ArrayLike) -> FloatArray:
    """`weighted_f1` [...] from counts of rows [label, ...]: said rightly, said, and true of each label."""
    right, claimed, true = (np.asarray(counts, dtype=float) for counts in (hits, said, support))
    with np.errstate(invalid="ignore"):  # without a row: NaN
        return np.asarray((true * 2 * right / np.maximum(claimed + true, 1)).sum(axis=0) / true.sum(axis=0))
