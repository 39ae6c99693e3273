"""Fitting a probe on contrast pairs: centring, logistic regression, first principal component (paper 004, §3, §4.4).

A feature is x = φ̃⁺ − φ̃⁻, both sides centred with means of the training half. With a pair shown in both orders the
feature is ½(x of the pair − x of the swapped pair): what position alone does is in both and drops out, and so do the
means. A positive score says that text 1 is better.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from selfprobe.stats.rank import auroc

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
Kind = Literal["supervised", "unsupervised", "mean_difference", "ccs"]
Orders = Literal["first", "both"]

C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0)
"""Candidates for features of mean square norm 1."""


@dataclass(frozen=True)
class Probe:
    """A direction in the states of one layer."""

    kind: Kind
    layer: int
    """Block whose output is read, from 0."""
    orders: Orders
    """Whether a pair is scored from both orders."""
    direction: FloatArray  # [d_model]
    bias: float
    mean_plus: FloatArray  # [d_model], of the side that says 1
    mean_minus: FloatArray  # [d_model], of the side that says 2
    orientation: str
    """How the sign was fixed: "labels" (supervised), "few:32", "logit", "none", "oracle"."""
    c: float = math.nan
    """Inverse regularisation that was chosen, in units of `C_GRID`."""
    train_score: float = math.nan
    """What the layer was chosen by: AUROC out of fold, or on the few labels; never on test labels."""
    scale: float = math.nan
    """P(text 1 is better) is the logistic function of so many times the score; NaN where it was not calibrated."""

    def score(self, states: FloatArray, *, orders: Orders | None = None) -> npt.NDArray[np.float64]:
        """Scores [pair] of states [pair, order, side, d_model] of the probe's layer; > 0: text 1 is better."""
        x = features(states, self.mean_plus, self.mean_minus, orders=orders or self.orders)
        return np.asarray(x @ self.direction.astype(np.float64) + self.bias)


def means(states: FloatArray, orders: Orders) -> tuple[FloatArray, FloatArray]:
    """Mean state of each side over pairs (and orders) of states [pair, order, side, d_model]."""
    used = states[:, : 1 if orders == "first" else 2].astype(np.float64)
    plus, minus = np.moveaxis(used.mean(axis=(0, 1)), 0, 0)
    return plus, minus


def features(
    states: FloatArray, mean_plus: FloatArray, mean_minus: FloatArray, *, orders: Orders
) -> npt.NDArray[np.float64]:
    """x [pair, d_model] of states [pair, order, side, d_model]."""
    if orders == "both" and states.shape[1] < 2:
        raise ValueError("this needs every pair in both orders, but the harvest has one: harvest with both_orders")
    x = states[:, :, 0].astype(np.float64) - mean_plus - states[:, :, 1] + mean_minus
    return np.asarray(x[:, 0] if orders == "first" else (x[:, 0] - x[:, 1]) / 2)


def check_labels(first_better: BoolArray, groups: npt.NDArray[Any], *, folds: int) -> None:
    """Enough to learn from: both labels, and as many questions as folds."""
    ones, questions = int(first_better.sum()), len(np.unique(groups))
    if len(first_better) < 2 * folds or questions < folds:
        raise ValueError(
            f"the training half has {len(first_better)} pairs of {questions} questions; choosing the regularisation "
            f"in {folds} folds needs at least {2 * folds} pairs of {folds} questions: give more pairs"
        )
    if not 0 < ones < len(first_better):
        only = 1 if ones else 2
        raise ValueError(
            f"the training half has only label {only} ({len(first_better)} pairs): nothing to learn from. "
            "Let the better text come first in some rows and second in others"
        )


def learnable(first_better: BoolArray, groups: npt.NDArray[Any], *, folds: int) -> bool:
    """Whether these labels teach a regression whose C is chosen in grouped folds: what `check_labels` asks for."""
    enough = len(first_better) >= 2 * folds and len(np.unique(groups)) >= folds
    return enough and 0 < int(first_better.sum()) < len(first_better)


@dataclass(frozen=True)
class Logistic:
    """A fitted logistic regression with its choice of C."""

    direction: npt.NDArray[np.float64]  # [d_model]
    bias: float
    c: float
    score: float
    """AUROC of the scores out of fold at the chosen C; NaN where C was not chosen."""


def logistic(
    x: FloatArray,
    first_better: BoolArray,
    groups: npt.NDArray[Any],
    *,
    intercept: bool = False,
    balanced: bool = False,
    c: float | None = None,
    folds: int = 4,
) -> Logistic:
    """L2 logistic regression of `first_better` on x [pair, d]; C by log loss over grouped folds of these pairs.

    Paper: σ(wᵀx), regularisation not stated. Here: C from `C_GRID`, chosen inside the training half. A given `c` is for
    features as they are (scikit-learn's meaning). `balanced`: both labels weigh the same, however often each occurs.
    """
    from sklearn.model_selection import GroupKFold

    scale = math.sqrt(float((x**2).sum(axis=1).mean())) or 1.0
    z, basis = _compressed(x / scale)
    if c is not None:
        chosen, score = c * scale**2, math.nan
    else:
        out = np.empty((len(C_GRID), len(x)))
        for train, test in GroupKFold(folds).split(z, groups=groups):
            for k, candidate in enumerate(C_GRID):
                w, b = _solve(z[train], first_better[train], candidate, intercept, balanced)
                out[k, test] = z[test] @ w + b
        losses = np.logaddexp(0, np.where(first_better, -out, out)).mean(axis=1)
        best = int(np.argmin(losses))
        chosen, score = C_GRID[best], auroc(first_better, out[best])
    w, b = _solve(z, first_better, chosen, intercept, balanced, tol=1e-6 if c is None else 1e-10)
    return Logistic(basis @ w / scale, b, chosen, score)


def _solve(
    z: FloatArray, y: BoolArray, c: float, intercept: bool, balanced: bool, *, tol: float = 1e-6
) -> tuple[npt.NDArray[np.float64], float]:
    from sklearn.linear_model import LogisticRegression

    if y.all() or not y.any():  # a fold without one label says nothing
        return np.zeros(z.shape[1]), 0.0
    how: dict[str, Any] = {"fit_intercept": intercept, "class_weight": "balanced" if balanced else None}
    fitted = LogisticRegression(C=c, max_iter=10_000, tol=tol, **how).fit(z, y)
    return fitted.coef_[0], float(fitted.intercept_[0]) if intercept else 0.0


def _compressed(x: FloatArray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """z [pair, r] and basis [d, r] with z = x·basis, nothing lost: an L2 solution lies in the span of the rows."""
    if x.shape[1] <= x.shape[0]:
        return np.asarray(x), np.eye(x.shape[1])
    q, r = np.linalg.qr(x.T)
    return r.T, q


def principal(x: FloatArray, *, symmetric: bool) -> npt.NDArray[np.float64]:
    """First principal component [d] of x [pair, d], unit length; its sign is arbitrary (largest entry positive).

    `symmetric`: features of both orders, where −x is as much a feature as x: no mean is taken off. All 0 where the
    pairs do not differ, as after a first block that sees but the last tokens (a convolution's).
    """
    from scipy.sparse.linalg import svds

    centred = x if symmetric else x - x.mean(axis=0)
    if len(x) < 3:
        raise ValueError(f"a principal component needs at least 3 pairs, got {len(x)}")
    if not centred.any():
        return np.zeros(x.shape[1])
    start = np.random.default_rng(0).standard_normal(min(centred.shape))
    direction = svds(centred, k=1, v0=start)[2][0]
    return np.asarray(direction * np.sign(direction[np.argmax(np.abs(direction))]))


def parse_orientation(text: str) -> tuple[str, int]:
    """("few", 32) of "few:32"; ("logit" | "none" | "oracle", 0)."""
    if match := re.fullmatch(r"few:([1-9]\d*)", text):
        return "few", int(match[1])
    if text in ("logit", "none", "oracle"):
        return text, 0
    raise ValueError(f"orientation must be few:K (K labelled training pairs), logit, none or oracle, got {text!r}")


def sign_agreement(first_better: BoolArray, scores: FloatArray) -> float:
    """In −1..1: share of pairs that the sign gets right less the share that it gets wrong; ties of 0 by the sizes."""
    truth = np.where(first_better, 1.0, -1.0)
    votes = float(np.mean(truth * np.sign(scores)))
    sizes = float(np.mean(truth * scores) / (np.mean(np.abs(scores)) or 1.0))
    return votes or sizes * 1e-6


def few_of(orientation: str, size: int, *, seed: int) -> IntArray:
    """Which of `size` training pairs give their labels to `few:K`: all where there are fewer; none elsewhere."""
    _, labelled = parse_orientation(orientation)
    return np.sort(np.random.default_rng([seed, 5]).permutation(size)[:labelled]).astype(np.intp)


def best_layer(scores: Sequence[float] | FloatArray) -> int:
    """Place of the best of scores [layer]; the last one on a tie, and where all are NaN."""
    found = np.asarray(scores, dtype=float)
    last = len(found) - 1
    return last if np.isnan(found).all() else last - int(np.nanargmax(found[::-1]))
