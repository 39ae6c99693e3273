"""Every kind of probe as one function of states: what direction it takes, and what its layer is chosen by.

supervised        logistic regression on x (paper 004)                     labels of all training pairs
mean_difference   mean x of the pairs with one label less the others'      labels of all training pairs
unsupervised      first principal component of x (paper 004)               labels for the sign alone, see `Sign`
ccs               contrast-consistent search (Burns et al. 2023, §2)       labels for the sign alone

The pieces are those of `fit`. `layer_fit` and `estimator` learn through `learn`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from selfprobe.probes.fit import (
    BoolArray,
    FloatArray,
    IntArray,
    Kind,
    Orders,
    Probe,
    features,
    few_of,
    logistic,
    means,
    parse_orientation,
    principal,
    sign_agreement,
)
from selfprobe.stats.rank import auroc

Floats = npt.NDArray[np.float64]
LABELLED: tuple[Kind, ...] = ("supervised", "mean_difference")
"""Kinds that learn their direction from labels."""


@dataclass(frozen=True)
class Lesson:
    """What a probe may learn from beside the states."""

    first_better: BoolArray | None  # [pair]
    """Labels; None: there are none."""
    groups: npt.NDArray[Any]  # [pair]
    """Source questions: folds keep them together."""
    own: Floats | None = None  # [pair]
    """The model's own swap-averaged answer, > 0: text 1."""
    orientation: str = "few:32"
    c: float | None = None
    folds: int = 4
    seed: int = 0
    bias: bool = True
    """Fit a constant beside wᵀx where pairs have one order; with both there is none."""
    balanced: bool = False
    """Of supervised: both labels weigh the same."""

    @property
    def few(self) -> IntArray:
        """The pairs whose labels `few:K` uses."""
        return few_of(self.orientation, len(self.groups), seed=self.seed)

    def truth(self) -> BoolArray:
        """The labels, which this kind or orientation needs."""
        if self.first_better is None:
            raise ValueError(
                "this kind of probe, or its orientation, needs labels: give y, or orientation logit or none"
            )
        return self.first_better


def learn(
    kind: Kind,
    states: FloatArray,
    lesson: Lesson,
    *,
    layer: int,
    orders: Orders,
    centre: tuple[FloatArray, FloatArray] | None = None,
) -> Probe:
    """A probe of `kind` on states [pair, order, side, d_model]; not calibrated yet, see `calibrated`.

    `centre`: means [d_model] of the two sides; by default those of `states`.
    """
    plus, minus = centre or means(states, orders)
    x = features(states, plus, minus, orders=orders)
    made = DIRECTIONS[kind](x, states, lesson, orders)
    return Probe(
        kind, layer, orders, made.direction, made.bias, plus, minus,
        "labels" if kind in LABELLED else lesson.orientation, made.c, made.score,
    )  # fmt: skip


def calibrated(probe: Probe, states: FloatArray, lesson: Lesson) -> float:
    """The `scale` of a probe fitted to these states; NaN where no label may be used for it.

    Platt's method without a constant, so that the texts swapped have the other probability: on scores out of fold where
    labels gave the direction, else on the few pairs whose labels gave the sign.
    """
    if probe.kind not in LABELLED:
        if parse_orientation(lesson.orientation)[0] != "few":
            return math.nan
        return _scale(probe.score(states)[lesson.few], lesson.truth()[lesson.few])
    from sklearn.model_selection import GroupKFold

    truth, out = lesson.truth(), np.empty(len(states))
    x = features(states, probe.mean_plus, probe.mean_minus, orders=probe.orders)
    c = probe.c / (float((x**2).sum(axis=1).mean()) or 1.0)  # as `logistic` takes it
    for train, test in GroupKFold(lesson.folds).split(states, groups=lesson.groups):
        part = Lesson(truth[train], lesson.groups[train], c=c, folds=2)
        fitted = DIRECTIONS[probe.kind](x[train], states[train], part, probe.orders)
        out[test] = x[test] @ fitted.direction + fitted.bias
    return _scale(out, truth)


def _scale(scores: Floats, truth: BoolArray) -> float:
    """The factor (above 0) with the least log loss of σ(factor · score), against Platt's (n + 1) / (n + 2), not 1."""
    from scipy.optimize import minimize_scalar

    unit = float(np.abs(scores).mean())
    if not unit or truth.all() or not truth.any():
        return math.nan
    signed, sure = np.where(truth, scores, -scores) / unit, (len(scores) + 1) / (len(scores) + 2)

    def loss(log: float) -> float:
        z = math.exp(log) * signed
        return float((sure * np.logaddexp(0, -z) + (1 - sure) * np.logaddexp(0, z)).mean())

    return math.exp(float(minimize_scalar(loss, bounds=(-8, 4), method="bounded").x)) / unit


@dataclass(frozen=True)
class Learnt:
    """A direction and its choice."""

    direction: Floats  # [d_model]
    bias: float = 0.0
    c: float = math.nan
    score: float = math.nan
    """What the layer may be chosen by."""


def _supervised(x: Floats, _: FloatArray, lesson: Lesson, orders: Orders) -> Learnt:
    given: dict[str, Any] = {"intercept": lesson.bias and orders == "first", "balanced": lesson.balanced}
    given |= {"c": lesson.c, "folds": lesson.folds}
    fitted = logistic(x, lesson.truth(), lesson.groups, **given)
    return Learnt(fitted.direction, fitted.bias, fitted.c, fitted.score)


def _mean_difference(x: Floats, _: FloatArray, lesson: Lesson, orders: Orders) -> Learnt:
    from sklearn.model_selection import GroupKFold

    truth = lesson.truth()

    def between(rows: IntArray) -> tuple[Floats, float]:
        one, two = x[rows][truth[rows]], x[rows][~truth[rows]]
        if orders == "both":  # −x of a pair is x of the pair swapped: there is one mean
            return np.concatenate([one, -two]).mean(axis=0), 0.0
        if not len(one) or not len(two):
            return np.zeros(x.shape[1]), 0.0
        direction = one.mean(axis=0) - two.mean(axis=0)
        return direction, -float(direction @ (one.mean(axis=0) + two.mean(axis=0))) / 2

    out = np.empty(len(x))
    for train, test in GroupKFold(lesson.folds).split(x, groups=lesson.groups):
        direction, bias = between(train)
        out[test] = x[test] @ direction + bias
    return Learnt(*between(np.arange(len(x))), score=auroc(truth, out))


def _unsupervised(x: Floats, _: FloatArray, lesson: Lesson, orders: Orders) -> Learnt:
    direction = principal(x, symmetric=orders == "both")
    # As PCA has it: the mean of these pairs is taken off, which is 0 unless others were centred over too.
    offset = 0.0 if orders == "both" else -float(x.mean(axis=0) @ direction)
    return _signed(direction, x, lesson, offset)


def _ccs(x: Floats, states: FloatArray, lesson: Lesson, orders: Orders) -> Learnt:
    """Burns et al. 2023: p = σ(θφ + b) should be 1 − p on the other side of the contrast, and far from ½.

    Paper: each side normalised, AdamW with weight decay .01, best of 10 random starts by the loss, predicts from both
    p. Here: the same loss and decay on centred sides by L-BFGS, and θ scores as every direction does.
    """
    from scipy.optimize import minimize

    used = states[:, : 1 if orders == "first" else 2].astype(np.float64)
    plus, minus = np.moveaxis((used - used.mean(axis=(0, 1))).reshape(-1, 2, used.shape[-1]), 1, 0)
    size = math.sqrt(float(np.mean([plus**2, minus**2]))) or 1.0
    q, r = np.linalg.qr(np.concatenate([plus, minus]).T / size)
    sides = r.T.reshape(2, len(plus), -1)  # [side, row, rank]: θ lies in the span of the states

    def loss(theta: Floats) -> tuple[float, Floats]:
        p, n = 1 / (1 + np.exp(-np.clip(sides @ theta[:-1] + theta[-1], -500, 500)))
        off, sure, lower = p + n - 1, np.minimum(p, n), p < n
        value = float(np.mean(off**2 + sure**2)) + 0.005 * float(theta[:-1] @ theta[:-1])
        by_p, by_n = (2 * off + 2 * sure * lower) * p * (1 - p), (2 * off + 2 * sure * ~lower) * n * (1 - n)
        slope = (by_p @ sides[0] + by_n @ sides[1]) / len(p) + 0.01 * theta[:-1]
        return value, np.append(slope, float(np.mean(by_p + by_n)))

    rng = np.random.default_rng([lesson.seed, 6])
    starts = (rng.standard_normal(sides.shape[2] + 1) / math.sqrt(sides.shape[2]) for _ in range(10))
    best = min((minimize(loss, start, jac=True, method="L-BFGS-B") for start in starts), key=lambda found: found.fun)
    return _signed(q @ best.x[:-1] / size, x, lesson)


def _signed(direction: Floats, x: Floats, lesson: Lesson, bias: float = 0.0) -> Learnt:
    """A direction that labels did not give (and its constant), with its sign by the lesson's orientation."""
    way, _ = parse_orientation(lesson.orientation)
    scores = x @ direction + bias
    if way == "few":
        few, truth = lesson.few, lesson.truth()
        sign = 1.0 if sign_agreement(truth[few], scores[few]) >= 0 else -1.0
        return Learnt(sign * direction, sign * bias, score=auroc(truth[few], sign * scores[few]))
    if way == "logit":
        if lesson.own is None:
            raise ValueError("orientation logit needs the model's own answers: fit to a Harvest, which holds them")
        sign = 1.0 if float(scores @ lesson.own) >= 0 else -1.0
        return Learnt(sign * direction, sign * bias)
    if way == "oracle":
        raise ValueError("orientation oracle takes the labels of a test half, which a fit does not see")
    return Learnt(direction, bias)


DIRECTIONS: dict[Kind, Callable[[Floats, FloatArray, Lesson, Orders], Learnt]] = {
    "supervised": _supervised,
    "mean_difference": _mean_difference,
    "unsupervised": _unsupervised,
    "ccs": _ccs,
}
