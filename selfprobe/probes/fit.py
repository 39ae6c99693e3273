"""Fitting probes on contrast pairs: every kind of probe as a function of states (paper 004, §3,
§4.4).

A feature is x = φ̃⁺ − φ̃⁻, both sides centred with means of the training half. With a pair shown in
both orders the feature is ½(x of the pair − x of the swapped pair): what position alone does is in
both and drops out, and so do the means. A positive score says that text 1 is better.

supervised        logistic regression on x (paper 004)                     labels of all training pairs
mean_difference   mean x of the pairs with one label less the others'      labels of all training pairs
unsupervised      first principal component of x (paper 004)               labels for the sign alone, see `Sign`
ccs               contrast-consistent search (Burns et al. 2023, §2)       labels for the sign alone

`fit_layer` and `estimator` learn through `learn`. The settings of an evaluation, its presets and
its random halves (§4.4) are here too.

PyTorch is not imported here: a process that fits would load it for seconds and not use it.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from selfprobe.data.pairs import Pair
from selfprobe.stats import estimate
from selfprobe.stats.estimate import auroc

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
Kind = Literal["supervised", "unsupervised", "mean_difference", "ccs"]
Orders = Literal["first", "both"]

C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0)
"""Candidate values of C for features of mean square norm 1."""


@dataclass(frozen=True)
class Probe:
    """A direction in the states of one layer."""

    kind: Kind
    layer: int
    """Block whose output is read, from 0."""
    orders: Orders
    """Whether a pair is scored from both orders or from the first."""
    direction: FloatArray  # [d_model]
    bias: float
    mean_plus: FloatArray  # [d_model], mean of the side that says 1
    mean_minus: FloatArray  # [d_model], mean of the side that says 2
    orientation: str
    """How the sign was fixed: "labels" (supervised), "few:32", "logit", "none", "oracle"."""
    c: float = math.nan
    """Chosen inverse regularisation, in units of `C_GRID`."""
    train_score: float = math.nan
    """Score by which the layer was chosen: AUROC out of fold, or on the few labels; never on test
    labels.
    """
    scale: float = math.nan
    """Factor of the score: P(text 1 is better) is the logistic function of scale · score; NaN
    without calibration.
    """

    def score(self, states: FloatArray, *, orders: Orders | None = None) -> npt.NDArray[np.float64]:
        """Scores [pair] of states [pair, order, side, d_model] at the probe's layer; > 0: text 1 is
        better.
        """
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
        raise ValueError(
            "this needs every pair in both orders, but the harvest has one: harvest with both_orders"
        )
    x = states[:, :, 0].astype(np.float64) - mean_plus - states[:, :, 1] + mean_minus
    return np.asarray(x[:, 0] if orders == "first" else (x[:, 0] - x[:, 1]) / 2)


def check_labels(first_better: BoolArray, groups: npt.NDArray[Any], *, folds: int) -> None:
    """Require enough to learn from: both labels, and at least as many questions as folds."""
    ones, questions = int(first_better.sum()), len(np.unique(groups))
    if len(first_better) < 2 * folds or questions < folds:
        raise ValueError(
            f"the training half has {len(first_better)} pairs of {questions} questions; choosing the regularisation "
            f"in {folds} folds needs at least {2 * folds} pairs of {folds} questions: give twice that or more"
        )
    if not 0 < ones < len(first_better):
        only = 1 if ones else 2
        raise ValueError(
            f"the training half has only label {only} ({len(first_better)} pairs): nothing to learn from. "
            "Let the better text come first in some rows and second in others"
        )


def learnable(first_better: BoolArray, groups: npt.NDArray[Any], *, folds: int) -> bool:
    """Whether these labels suffice for a regression whose C is chosen in grouped folds; see
    `check_labels`.
    """
    enough = len(first_better) >= 2 * folds and len(np.unique(groups)) >= folds
    return enough and 0 < int(first_better.sum()) < len(first_better)


@dataclass(frozen=True)
class Logistic:
    """A fitted logistic regression and its choice of C."""

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
    """L2 logistic regression of `first_better` on x [pair, d]; C by log loss over grouped folds of
    these pairs.

    Paper: σ(wᵀx), regularisation not stated. Here: C from `C_GRID`, chosen inside the training
    half. A given `c` is for features as they are (scikit-learn's meaning). `balanced`: both labels
    weigh the same, however often each occurs.
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
    how: dict[str, Any] = {
        "fit_intercept": intercept,
        "class_weight": "balanced" if balanced else None,
    }
    fitted = LogisticRegression(C=c, max_iter=10_000, tol=tol, **how).fit(z, y)
    return fitted.coef_[0], float(fitted.intercept_[0]) if intercept else 0.0


def _compressed(x: FloatArray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """z [pair, r] and basis [d, r] with z = x·basis, without loss: an L2 solution lies in the span
    of the rows.
    """
    if x.shape[1] <= x.shape[0]:
        return np.asarray(x), np.eye(x.shape[1])
    q, r = np.linalg.qr(x.T)
    return r.T, q


def principal(x: FloatArray, *, symmetric: bool) -> npt.NDArray[np.float64]:
    """First principal component [d] of x [pair, d], unit length; its sign is arbitrary (largest
    entry positive).

    `symmetric`: features of both orders, where −x is as much a feature as x: no mean is taken off.
    The result is all 0 where the pairs do not differ, as after a first block that sees only the
    last tokens (a convolution's).
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
    raise ValueError(
        f"orientation must be few:K (K labelled training pairs), logit, none or oracle, got {text!r}"
    )


def sign_agreement(first_better: BoolArray, scores: FloatArray) -> float:
    """Share of pairs (−1..1) that the sign gets right less the share that it gets wrong; ties of 0
    by the sizes.
    """
    truth = np.where(first_better, 1.0, -1.0)
    votes = float(np.mean(truth * np.sign(scores)))
    sizes = float(np.mean(truth * scores) / (np.mean(np.abs(scores)) or 1.0))
    return votes or sizes * 1e-6


def few_of(orientation: str, size: int, *, seed: int) -> IntArray:
    """Which of `size` training pairs give their labels to `few:K`, at most all; none for other
    orientations.
    """
    _, labelled = parse_orientation(orientation)
    return np.sort(np.random.default_rng([seed, 5]).permutation(size)[:labelled]).astype(np.intp)


def best_layer(scores: Sequence[float] | FloatArray) -> int:
    """Place of the best of scores [layer]; the last one on a tie, and where all are NaN."""
    found = np.asarray(scores, dtype=float)
    last = len(found) - 1
    return last if np.isnan(found).all() else last - int(np.nanargmax(found[::-1]))


Floats = npt.NDArray[np.float64]
LABELLED: tuple[Kind, ...] = ("supervised", "mean_difference")
"""Kinds that learn their direction from labels."""


@dataclass(frozen=True)
class Supervision:
    """Everything besides the states that a probe may learn from."""

    first_better: BoolArray | None  # [pair]
    """Whether text 1 is better; None: there are no labels."""
    groups: npt.NDArray[Any]  # [pair]
    """Source questions; folds keep the pairs of one together."""
    model_answers: Floats | None = None  # [pair]
    """The model's own swap-averaged answer, > 0: text 1."""
    orientation: str = "few:32"
    c: float | None = None
    folds: int = 4
    seed: int = 0
    bias: bool = True
    """Whether a constant is fitted with wᵀx where pairs have one order; with both orders there is
    none.
    """
    balanced: bool = False
    """Whether both labels weigh the same in the supervised fit."""

    @property
    def few(self) -> IntArray:
        """Pairs whose labels `few:K` uses."""
        return few_of(self.orientation, len(self.groups), seed=self.seed)

    def truth(self) -> BoolArray:
        """The labels; ValueError where this kind or orientation needs them and there are none."""
        if self.first_better is None:
            raise ValueError(
                "this kind of probe, or its orientation, needs labels: give y, or orientation logit or none"
            )
        return self.first_better


def learn(
    kind: Kind,
    states: FloatArray,
    supervision: Supervision,
    *,
    layer: int,
    orders: Orders,
    centre: tuple[FloatArray, FloatArray] | None = None,
) -> Probe:
    """A probe of `kind` on states [pair, order, side, d_model]; not calibrated yet, see
    `calibrated`.

    `centre`: means [d_model] of the two sides; default: those of `states`.
    """
    plus, minus = centre or means(states, orders)
    x = features(states, plus, minus, orders=orders)
    made = DIRECTIONS[kind](x, states, supervision, orders)
    return Probe(
        kind, layer, orders, made.direction, made.bias, plus, minus,
        "labels" if kind in LABELLED else supervision.orientation, made.c, made.score,
    )  # fmt: skip


def calibrated(probe: Probe, states: FloatArray, supervision: Supervision) -> float:
    """The `scale` of a probe fitted to these states; NaN where no label may be used for it.

    Platt's method without a constant, so that the texts swapped have the other probability: on
    scores out of fold where labels gave the direction, else on the few pairs whose labels gave the
    sign.
    """
    if probe.kind not in LABELLED:
        if parse_orientation(supervision.orientation)[0] != "few":
            return math.nan
        return _scale(probe.score(states)[supervision.few], supervision.truth()[supervision.few])
    from sklearn.model_selection import GroupKFold

    truth, out = supervision.truth(), np.empty(len(states))
    x = features(states, probe.mean_plus, probe.mean_minus, orders=probe.orders)
    c = probe.c / (float((x**2).sum(axis=1).mean()) or 1.0)  # as `logistic` takes it
    for train, test in GroupKFold(supervision.folds).split(states, groups=supervision.groups):
        part = Supervision(truth[train], supervision.groups[train], c=c, folds=2)
        fitted = DIRECTIONS[probe.kind](x[train], states[train], part, probe.orders)
        out[test] = x[test] @ fitted.direction + fitted.bias
    return _scale(out, truth)


def _scale(scores: Floats, truth: BoolArray) -> float:
    """The factor (above 0) with the least log loss of σ(factor · score), against Platt's (n + 1) /
    (n + 2), not 1.
    """
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
    """A direction and what its choice gave."""

    direction: Floats  # [d_model]
    bias: float = 0.0
    c: float = math.nan
    score: float = math.nan
    """Score by which the layer may be chosen."""


def _supervised(x: Floats, _: FloatArray, supervision: Supervision, orders: Orders) -> Learnt:
    given: dict[str, Any] = {
        "intercept": supervision.bias and orders == "first",
        "balanced": supervision.balanced,
    }
    given |= {"c": supervision.c, "folds": supervision.folds}
    fitted = logistic(x, supervision.truth(), supervision.groups, **given)
    return Learnt(fitted.direction, fitted.bias, fitted.c, fitted.score)


def _mean_difference(x: Floats, _: FloatArray, supervision: Supervision, orders: Orders) -> Learnt:
    from sklearn.model_selection import GroupKFold

    truth = supervision.truth()

    def between(rows: IntArray) -> tuple[Floats, float]:
        one, two = x[rows][truth[rows]], x[rows][~truth[rows]]
        if orders == "both":  # −x of a pair is x of the pair swapped: there is one mean
            return np.concatenate([one, -two]).mean(axis=0), 0.0
        if not len(one) or not len(two):
            return np.zeros(x.shape[1]), 0.0
        direction = one.mean(axis=0) - two.mean(axis=0)
        return direction, -float(direction @ (one.mean(axis=0) + two.mean(axis=0))) / 2

    out = np.empty(len(x))
    for train, test in GroupKFold(supervision.folds).split(x, groups=supervision.groups):
        direction, bias = between(train)
        out[test] = x[test] @ direction + bias
    return Learnt(*between(np.arange(len(x))), score=auroc(truth, out))


def _unsupervised(x: Floats, _: FloatArray, supervision: Supervision, orders: Orders) -> Learnt:
    direction = principal(x, symmetric=orders == "both")
    # PCA takes off the mean of these pairs, which is 0 unless the centre came from others too.
    offset = 0.0 if orders == "both" else -float(x.mean(axis=0) @ direction)
    return _signed(direction, x, supervision, offset)


def _ccs(x: Floats, states: FloatArray, supervision: Supervision, orders: Orders) -> Learnt:
    """Burns et al. 2023: p = σ(θφ + b) should be 1 − p on the other side of the contrast, and far
    from ½.

    Paper: each side normalised, AdamW with weight decay .01, best of 10 random starts by the loss,
    predicts from both p. Here: the same loss and decay on centred sides by L-BFGS, and θ scores as
    every direction does.
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
        by_p, by_n = (
            (2 * off + 2 * sure * lower) * p * (1 - p),
            (2 * off + 2 * sure * ~lower) * n * (1 - n),
        )
        slope = (by_p @ sides[0] + by_n @ sides[1]) / len(p) + 0.01 * theta[:-1]
        return value, np.append(slope, float(np.mean(by_p + by_n)))

    rng = np.random.default_rng([supervision.seed, 6])
    starts = (
        rng.standard_normal(sides.shape[2] + 1) / math.sqrt(sides.shape[2]) for _ in range(10)
    )
    best = min(
        (minimize(loss, start, jac=True, method="L-BFGS-B") for start in starts),
        key=lambda found: found.fun,
    )
    return _signed(q @ best.x[:-1] / size, x, supervision)


def _signed(direction: Floats, x: Floats, supervision: Supervision, bias: float = 0.0) -> Learnt:
    """A direction (and its constant) that was fitted without labels, with its sign as the
    orientation asks.
    """
    way, _ = parse_orientation(supervision.orientation)
    scores = x @ direction + bias
    if way == "few":
        few, truth = supervision.few, supervision.truth()
        sign = 1.0 if sign_agreement(truth[few], scores[few]) >= 0 else -1.0
        return Learnt(sign * direction, sign * bias, score=auroc(truth[few], sign * scores[few]))
    if way == "logit":
        if supervision.model_answers is None:
            raise ValueError(
                "orientation logit needs the model's own answers: fit to a Harvest, which holds them"
            )
        sign = 1.0 if float(scores @ supervision.model_answers) >= 0 else -1.0
        return Learnt(sign * direction, sign * bias)
    if way == "oracle":
        raise ValueError(
            "orientation oracle takes the labels of a test half, which a fit does not see"
        )
    return Learnt(direction, bias)


DIRECTIONS: dict[Kind, Callable[[Floats, FloatArray, Supervision, Orders], Learnt]] = {
    "supervised": _supervised,
    "mean_difference": _mean_difference,
    "unsupervised": _unsupervised,
    "ccs": _ccs,
}


@dataclass(frozen=True)
class FitSettings:
    """How probes are fitted and tested; the defaults are the preset "strict"."""

    name: str = "strict"
    grouped: bool = True
    """Keep all pairs of a question on one side of the split."""
    orders: Orders = "both"
    """Whether pairs are fitted and scored from both orders, which removes position, or from the
    first alone.
    """
    centre: Literal["train", "all"] = "train"
    """Pairs over which the means are taken; "all" leaks the test half."""
    layer: Literal["train", "last"] = "train"
    """Whether the layer is chosen on the training half, or is the last block."""
    orientation: str = "few:32"
    """Sign of the principal component: few:K labelled training pairs, logit (the model's own
    answers on the training half), none (both signs reported), oracle (the better one on the test
    half: leaks).
    """
    c: float | None = None
    """Inverse regularisation; None: chosen inside the training half."""
    balanced: bool = False
    """Whether both labels weigh the same in the supervised fit, however often each occurs."""
    train: float = 0.5
    """Size of the training half: below 1 a share of the pairs, else their number (§5.2: 5,000); all
    others test. Aspects that are fitted apart divide it between them.
    """
    aspects: Literal["together", "apart"] = "together"
    """Whether data with several aspects (SummEval, NEWSROOM, HANNA) get one probe for all, or one
    for each; a number is then the mean over aspects, for every method. The paper is silent; its
    public code fits and averages them apart.
    """
    prompts: Literal["paper", "conversations"] = "paper"
    """Form of LLMBar and MT-Bench: the paper's with the question in a line of its own, or whole
    conversations, unchanged (MT-Bench then without judges who are authors, as in the public code).
    """
    seeds: int = 5
    """Number of random halves; numbers are means over them."""
    folds: int = 4
    """Number of folds inside the training half."""
    resamples: int = 500
    """Number of bootstrap resamples per interval. A curve over layers takes a fifth of them (but
    100), shuffled labels two fifths, an ablation four times as many.
    """

    def __post_init__(self) -> None:
        parse_orientation(self.orientation)
        if self.seeds < 1 or self.folds < 2:
            raise ValueError(
                f"expected seeds >= 1 and folds >= 2, got {self.seeds} and {self.folds}"
            )
        if not 0 < self.train < 1 and (self.train < 1 or self.train != int(self.train)):
            raise ValueError(
                f"train must be a share in (0, 1) or a whole number of pairs, got {self.train}"
            )
        if self.resamples < 100:
            raise ValueError(f"expected resamples >= 100, got {self.resamples}")

    @property
    def leaks(self) -> bool:
        """Whether test labels or states of the test half reach the fit."""
        return self.orientation == "oracle" or self.centre == "all" or not self.grouped


PRESETS: Mapping[str, FitSettings] = {
    "strict": FitSettings(),
    "paper": FitSettings(
        "paper",
        grouped=False,
        orders="first",
        layer="last",
        orientation="none",
        c=1.0,
        aspects="apart",
    ),
    "released-code": FitSettings(
        "released-code",
        grouped=False,
        orders="first",
        centre="all",
        layer="last",
        orientation="oracle",
        c=1.0,
        balanced=True,
        train=0.7,
        aspects="apart",
        prompts="conversations",
    ),
}
"""strict: everything above. paper: §4.4 to the letter (random halves, one order, last layer, an
unsigned component, σ(wᵀx) without a constant; the paper does not state the regularisation:
scikit-learn's, nor how it treats aspects: each has its probe, as in the code). released-code: what
maiush/LP-as-a-Judge does besides: 70 % train, balanced weights, means over both parts, the sign
that is better on the test labels, and MT-Bench's whole conversations without judges who are
authors; its wording is not taken over, as it has no licence. Only strict is an honest measurement.
"""


def halves(
    groups: npt.NDArray[Any],
    seed: int,
    *,
    grouped: bool = True,
    train_from: npt.NDArray[np.bool_] | None = None,
    train: float = 0.5,
) -> tuple[IntArray, IntArray]:
    """Rows of the training and the test half.

    Groups are drawn at random until the training half has `train` of the pairs, a share or a
    number. `train_from` restricts it to half of those rows (LLMBar: natural pairs); all others are
    test pairs, except those whose question is in the training half.
    """
    size = len(groups)
    eligible = np.ones(size, dtype=bool) if train_from is None else train_from
    rng = np.random.default_rng([seed, 4])
    names = np.unique(groups) if grouped else np.arange(size)
    of = np.searchsorted(names, groups) if grouped else np.arange(size)
    counts = np.bincount(of[eligible], minlength=len(names))
    order = rng.permutation(len(names))
    before = np.cumsum(counts[order]) - counts[order]
    chosen = np.zeros(len(names), dtype=bool)
    share = 0.5 if train_from is not None else train
    chosen[order[before < (eligible.sum() * share if share < 1 else share)]] = True
    chosen &= counts > 0
    learnt = chosen[of] & eligible
    test = ~chosen[of] if grouped else ~learnt
    return np.flatnonzero(learnt), np.flatnonzero(test)


def questions(pairs: Iterable[Pair]) -> set[str]:
    """Groups of `pairs`, and their questions, which have other names elsewhere: all that a probe of
    them has seen.
    """
    return {name for pair in pairs for name in (pair.group, pair.asked)}


def held_out(seen: Iterable[str], pairs: Iterable[Pair]) -> list[bool]:
    """Whether per pair neither its group nor its question is in `seen`, which `questions` made."""
    names = set(seen)
    return [names.isdisjoint((pair.group, pair.asked)) for pair in pairs]


Scores = npt.NDArray[np.float64]
KINDS: tuple[Kind, Kind] = ("supervised", "unsupervised")
"""Kinds of probe that a run fits."""
RANDOM_DIRECTIONS = 4


@dataclass(frozen=True)
class Half:
    """One random split."""

    train: IntArray
    test: IntArray
    few: IntArray
    """Training pairs whose labels `few:K` uses; none under another orientation."""
    aspect: str = ""
    """Aspect of these pairs, where aspects are fitted apart."""


@dataclass(frozen=True)
class FitInputs:
    """Inputs that the fits of all halves need besides the states."""

    settings: FitSettings
    halves: Sequence[Half]
    first_better: BoolArray  # [pair]
    groups: npt.NDArray[np.str_]  # [pair]
    model_answers: Scores
    """[pair]: swap-averaged answer of the model itself, > 0: text 1."""

    def supervision(self, seed: int) -> Supervision:
        """What the probes of one half may learn from; the sign that an oracle gives comes later."""
        settings, train = self.settings, self.halves[seed].train
        orientation = "none" if settings.orientation == "oracle" else settings.orientation
        truth, groups, answers = (
            self.first_better[train],
            self.groups[train],
            self.model_answers[train],
        )
        given = {"bias": False, "balanced": settings.balanced}  # paper: σ(wᵀx), as does its code
        return Supervision(
            truth, groups, answers, orientation, settings.c, settings.folds, seed, **given
        )


@dataclass(frozen=True)
class LayerFit:
    """The probes of one layer and half, and their scores on the half's test pairs."""

    probes: dict[Kind, Probe]
    scores: dict[Kind, Scores]
    """[test pair]"""
    one_order: dict[Kind, Scores]
    """[test pair]: scores of the same probes on the first order alone."""
    random: Scores
    """[direction, test pair]: scores of random directions, with the sign from all training labels.
    """
    few: Scores
    """[test pair]: scores of a regression on the labels of `few:K` alone; NaN without them."""
    few_score: float
    """Out-of-fold AUROC of that regression, on those labels."""


def fit_layer(
    states: FloatArray, study: FitInputs, layer: int, seeds: Sequence[int]
) -> list[LayerFit]:
    """One `LayerFit` per seed, from states [pair, order, side, d_model] of the block with number
    `layer`.
    """
    return [_fit(states, study, layer=layer, seed=seed) for seed in seeds]


def _fit(states: FloatArray, study: FitInputs, *, layer: int, seed: int) -> LayerFit:
    settings, half, supervision = study.settings, study.halves[seed], study.supervision(seed)
    orders, train, test = settings.orders, states[half.train], states[half.test]
    centre = means(train if settings.centre == "train" else np.concatenate([train, test]), orders)
    probes = {
        kind: learn(kind, train, supervision, layer=layer, orders=orders, centre=centre)
        for kind in KINDS
    }
    if settings.orientation == "oracle":
        probes["unsupervised"] = _by_test_labels(
            probes["unsupervised"], test, study.first_better[half.test]
        )
    learnt, tested = (features(part, *centre, orders=orders) for part in (train, test))
    chance = np.random.default_rng([seed, layer, 7]).standard_normal(
        (learnt.shape[1], RANDOM_DIRECTIONS)
    )
    truth = supervision.truth()
    signs = [1.0 if sign_agreement(truth, column) >= 0 else -1.0 for column in (learnt @ chance).T]
    few = learnt[np.searchsorted(half.train, half.few)]
    return LayerFit(
        probes,
        {kind: probe.score(test) for kind, probe in probes.items()},
        {kind: probe.score(test, orders="first") for kind, probe in probes.items()},
        (tested @ chance * signs).T,
        *_few(few, tested, study, half),
    )


def _by_test_labels(probe: Probe, test: FloatArray, truth: BoolArray) -> Probe:
    """The better sign on the test half, which the released code takes. LEAKS."""
    scores = probe.score(test)
    sign = 1.0 if signed_f1(truth, scores) >= signed_f1(truth, -scores) else -1.0
    return replace(
        probe, direction=sign * probe.direction, bias=sign * probe.bias, orientation="oracle"
    )


def _few(few: FloatArray, tested: FloatArray, study: FitInputs, half: Half) -> tuple[Scores, float]:
    """Scores of a regression on the few labels that the unsupervised probe gets, and its AUROC out
    of fold.

    `few` and `tested` are features [pair, d] of these pairs and of the test half.
    """
    truth, groups, folds = (
        study.first_better[half.few],
        study.groups[half.few],
        study.settings.folds,
    )
    if not learnable(truth, groups, folds=folds):
        return np.full(len(half.test), np.nan), np.nan
    fitted = logistic(few, truth, groups, folds=folds)
    return tested @ fitted.direction + fitted.bias, fitted.score


def signed_f1(first_better: BoolArray, scores: FloatArray) -> float:
    """F1 of both labels, weighted by the frequency of each; a score of 0 is a tie and counts for
    neither.
    """
    return estimate.weighted_f1(np.where(first_better, 1, -1), np.sign(scores))
