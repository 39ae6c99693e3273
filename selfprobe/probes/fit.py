"""Fitting probes on contrast pairs: every kind of probe as a function of states (latent-preference
probes, §3, §4.4).

A feature is x = φ̃⁺ − φ̃⁻, both sides centred with means of the training half. With a pair shown in
both orders the feature is ½(x of the pair − x of the swapped pair): what position alone does is in
both and drops out, and so do the means. A positive score says that text 1 is better.

supervised        logistic regression on x (the paper's)                all training labels
mean_difference   mean x of the pairs with one label less the others'   all training labels
unsupervised      first principal component of x (the paper's)          labels for the sign alone

`fit_layer` and `estimator` learn through `fit_probe`. The settings of an evaluation, its presets and
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
Floats = npt.NDArray[np.float64]
Scores = npt.NDArray[np.float64]
Kind = Literal["supervised", "unsupervised", "mean_difference"]
Orders = Literal["first", "both"]
Centre = Literal["source", "tested"]
"""Means that a probe takes off the states of another set: those of its own training half, or those
of the pairs that are scored.
"""

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

    def score(self, states: FloatArray, *, orders: Orders | None = None) -> Scores:
        """Scores [pair] of states [pair, order, side, d_model] at the probe's layer; > 0: text 1 is
        better.
        """
        pair_features = features(
            states, self.mean_plus, self.mean_minus, orders=orders or self.orders
        )
        return np.asarray(pair_features @ self.direction.astype(np.float64) + self.bias)

    def centred_on(self, states: FloatArray) -> "Probe":
        """The probe with the means of these states [pair, order, side, d_model], its centre
        "tested"; with both orders means drop out, so that it scores as before.
        """
        mean_plus, mean_minus = means(states, self.orders)
        return replace(self, mean_plus=mean_plus, mean_minus=mean_minus)


def centre_of_probe(orders: Orders, centre: Centre) -> str:
    """Which means a score has less: "source" or "tested"; "none" with both orders, where they drop
    out.
    """
    return centre if orders == "first" else "none"


def means(states: FloatArray, orders: Orders) -> tuple[FloatArray, FloatArray]:
    """Mean state of each side over pairs (and orders) of states [pair, order, side, d_model]."""
    order_count = 1 if orders == "first" else 2
    fitted_states = states[:, :order_count].astype(np.float64)
    mean_plus, mean_minus = np.moveaxis(fitted_states.mean(axis=(0, 1)), 0, 0)
    return mean_plus, mean_minus


def features(
    states: FloatArray, mean_plus: FloatArray, mean_minus: FloatArray, *, orders: Orders
) -> Scores:
    """x [pair, d_model] of states [pair, order, side, d_model]."""
    if orders == "both" and states.shape[1] < 2:
        raise ValueError(
            "this needs every pair in both orders, but the harvest has one: "
            "harvest with both_orders"
        )
    x = states[:, :, 0].astype(np.float64) - mean_plus - states[:, :, 1] + mean_minus
    if orders == "first":
        return np.asarray(x[:, 0])
    return np.asarray((x[:, 0] - x[:, 1]) / 2)


def check_labels(first_better: BoolArray, groups: npt.NDArray[Any], *, folds: int) -> None:
    """Require enough to learn from: both labels, and at least as many questions as folds."""
    pair_count, question_count = len(first_better), len(np.unique(groups))
    if pair_count < 2 * folds or question_count < folds:
        raise ValueError(
            f"the training half has {pair_count} pairs of {question_count} questions; choosing "
            f"the regularisation in {folds} folds needs at least {2 * folds} pairs of {folds} "
            "questions: give twice that or more"
        )
    first_better_count = int(first_better.sum())
    if not 0 < first_better_count < pair_count:
        only_label = 1 if first_better_count else 2
        raise ValueError(
            f"the training half has only label {only_label} ({pair_count} pairs): nothing to "
            "learn from. Let the better text come first in some rows and second in others"
        )


def learnable(first_better: BoolArray, groups: npt.NDArray[Any], *, folds: int) -> bool:
    """Whether these labels suffice for a regression whose C is chosen in grouped folds; see
    `check_labels`.
    """
    has_enough = len(first_better) >= 2 * folds and len(np.unique(groups)) >= folds
    return has_enough and 0 < int(first_better.sum()) < len(first_better)


@dataclass(frozen=True)
class Logistic:
    """A fitted logistic regression and its choice of C."""

    direction: Floats  # [d_model]
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

    feature_length = math.sqrt(float((x**2).sum(axis=1).mean())) or 1.0
    z, basis = _compressed(x / feature_length)
    if c is not None:
        chosen_c, fold_auroc, tolerance = c * feature_length**2, math.nan, 1e-10
    else:
        fold_scores = np.empty((len(C_GRID), len(x)))  # [candidate, pair], out of fold
        for train, test in GroupKFold(folds).split(z, groups=groups):
            for candidate_number, candidate_c in enumerate(C_GRID):
                weights, bias = _solved_logistic(
                    z[train], first_better[train], candidate_c, intercept, balanced
                )
                fold_scores[candidate_number, test] = z[test] @ weights + bias
        signed_scores = np.where(first_better, -fold_scores, fold_scores)
        losses = np.logaddexp(0, signed_scores).mean(axis=1)
        best_candidate = int(np.argmin(losses))
        chosen_c = C_GRID[best_candidate]
        fold_auroc, tolerance = auroc(first_better, fold_scores[best_candidate]), 1e-6

    weights, bias = _solved_logistic(
        z, first_better, chosen_c, intercept, balanced, tolerance=tolerance
    )
    return Logistic(basis @ weights / feature_length, bias, chosen_c, fold_auroc)


def _solved_logistic(
    z: FloatArray,
    first_better: BoolArray,
    c: float,
    intercept: bool,
    balanced: bool,
    *,
    tolerance: float = 1e-6,
) -> tuple[Floats, float]:
    """Weights and constant of one logistic regression."""
    from sklearn.linear_model import LogisticRegression

    if first_better.all() or not first_better.any():  # a fold without one label says nothing
        return np.zeros(z.shape[1]), 0.0
    regression = LogisticRegression(
        C=c,
        max_iter=10_000,
        tol=tolerance,
        fit_intercept=intercept,
        class_weight="balanced" if balanced else None,
    ).fit(z, first_better)
    bias = float(regression.intercept_[0]) if intercept else 0.0
    return regression.coef_[0], bias


def _compressed(x: FloatArray) -> tuple[Floats, Floats]:
    """z [pair, r] and basis [d, r] with z = x·basis, without loss: an L2 solution lies in the span
    of the rows.
    """
    if x.shape[1] <= x.shape[0]:
        return np.asarray(x), np.eye(x.shape[1])
    q, r = np.linalg.qr(x.T)
    return r.T, q


def principal(x: FloatArray, *, symmetric: bool) -> Floats:
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
    start_vector = np.random.default_rng(0).standard_normal(min(centred.shape))
    direction = svds(centred, k=1, v0=start_vector)[2][0]
    largest_entry = direction[np.argmax(np.abs(direction))]
    return np.asarray(direction * np.sign(largest_entry))


def parse_orientation(text: str) -> tuple[str, int]:
    """("few", 32) of "few:32"; ("logit" | "none" | "oracle", 0)."""
    few_match = re.fullmatch(r"few:([1-9]\d*)", text)
    if few_match:
        return "few", int(few_match[1])
    if text in ("logit", "none", "oracle"):
        return text, 0
    raise ValueError(
        "orientation must be few:K (K labelled training pairs), logit, none or oracle, "
        f"got {text!r}"
    )


def sign_agreement(first_better: BoolArray, scores: FloatArray) -> float:
    """Share of pairs (−1..1) that the sign gets right less the share that it gets wrong; ties of 0
    by the sizes.
    """
    signed_truth = np.where(first_better, 1.0, -1.0)
    sign_balance = float(np.mean(signed_truth * np.sign(scores)))
    if sign_balance:
        return sign_balance
    mean_size = float(np.mean(np.abs(scores))) or 1.0
    return float(np.mean(signed_truth * scores) / mean_size) * 1e-6


def few_label_pairs(orientation: str, size: int, *, seed: int) -> IntArray:
    """Which of `size` training pairs give their labels to `few:K`, at most all; none for other
    orientations.
    """
    _, label_count = parse_orientation(orientation)
    drawn_order = np.random.default_rng([seed, 5]).permutation(size)
    return np.sort(drawn_order[:label_count]).astype(np.intp)


def best_layer(scores: Sequence[float] | FloatArray) -> int:
    """Place of the best of scores [layer]; the last one on a tie, and where all are NaN."""
    layer_scores = np.asarray(scores, dtype=float)
    last_layer = len(layer_scores) - 1
    if np.isnan(layer_scores).all():
        return last_layer
    return last_layer - int(np.nanargmax(layer_scores[::-1]))


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
        return few_label_pairs(self.orientation, len(self.groups), seed=self.seed)

    def truth(self) -> BoolArray:
        """The labels; ValueError where this kind or orientation needs them and there are none."""
        if self.first_better is None:
            raise ValueError(
                "this kind of probe, or its orientation, needs labels: "
                "give y, or orientation logit or none"
            )
        return self.first_better


def fit_probe(
    kind: Kind,
    states: FloatArray,
    supervision: Supervision,
    *,
    layer: int,
    orders: Orders,
    centre: tuple[FloatArray, FloatArray] | None = None,
) -> Probe:
    """A probe of `kind` on states [pair, order, side, d_model]; not calibrated yet, see
    `probability_scale`.

    `centre`: means [d_model] of the two sides; default: those of `states`.
    """
    mean_plus, mean_minus = centre or means(states, orders)
    x = features(states, mean_plus, mean_minus, orders=orders)
    learnt = DIRECTIONS[kind](x, supervision, orders)
    return Probe(
        kind=kind,
        layer=layer,
        orders=orders,
        direction=learnt.direction,
        bias=learnt.bias,
        mean_plus=mean_plus,
        mean_minus=mean_minus,
        orientation="labels" if kind in LABELLED else supervision.orientation,
        c=learnt.c,
        train_score=learnt.train_score,
    )


def probability_scale(probe: Probe, states: FloatArray, supervision: Supervision) -> float:
    """The `scale` of a probe fitted to these states; NaN where no label may be used for it.

    Platt's method without a constant, so that the texts swapped have the other probability: on
    scores out of fold where labels gave the direction, else on the few pairs whose labels gave the
    sign.
    """
    if probe.kind not in LABELLED:
        if parse_orientation(supervision.orientation)[0] != "few":
            return math.nan
        few = supervision.few
        return _probability_scale(probe.score(states)[few], supervision.truth()[few])

    return _probability_scale(fold_scores(probe, states, supervision), supervision.truth())


def fold_scores(probe: Probe, states: FloatArray, supervision: Supervision) -> Scores:
    """Scores [pair] out of fold of a probe that labels gave: those of its kind and penalty, fitted
    to the other folds.
    """
    from sklearn.model_selection import GroupKFold

    truth = supervision.truth()
    x = features(states, probe.mean_plus, probe.mean_minus, orders=probe.orders)
    mean_square = float((x**2).sum(axis=1).mean()) or 1.0
    feature_c = probe.c / mean_square  # as `logistic` takes it
    scores = np.empty(len(states))
    for train, test in GroupKFold(supervision.folds).split(states, groups=supervision.groups):
        fold_supervision = Supervision(
            truth[train], supervision.groups[train], c=feature_c, folds=2
        )
        fold_fit = DIRECTIONS[probe.kind](x[train], fold_supervision, probe.orders)
        scores[test] = x[test] @ fold_fit.direction + fold_fit.bias
    return scores


def _probability_scale(scores: Floats, truth: BoolArray) -> float:
    """The factor (above 0) with the least log loss of σ(factor · score), against Platt's (n + 1) /
    (n + 2), not 1.
    """
    from scipy.optimize import minimize_scalar

    mean_size = float(np.abs(scores).mean())
    if not mean_size or truth.all() or not truth.any():
        return math.nan
    signed_scores = np.where(truth, scores, -scores) / mean_size
    target = (len(scores) + 1) / (len(scores) + 2)

    def loss(log_factor: float) -> float:
        logits = math.exp(log_factor) * signed_scores
        right_loss = target * np.logaddexp(0, -logits)
        wrong_loss = (1 - target) * np.logaddexp(0, logits)
        return float((right_loss + wrong_loss).mean())

    best_log_factor = float(minimize_scalar(loss, bounds=(-8, 4), method="bounded").x)
    return math.exp(best_log_factor) / mean_size


@dataclass(frozen=True)
class Learnt:
    """A direction and what its choice gave."""

    direction: Floats  # [d_model]
    bias: float = 0.0
    c: float = math.nan
    train_score: float = math.nan
    """Score on training pairs by which the layer may be chosen."""


def _supervised(x: Floats, supervision: Supervision, orders: Orders) -> Learnt:
    regression = logistic(
        x,
        supervision.truth(),
        supervision.groups,
        intercept=supervision.bias and orders == "first",
        balanced=supervision.balanced,
        c=supervision.c,
        folds=supervision.folds,
    )
    return Learnt(regression.direction, regression.bias, regression.c, regression.score)


def _mean_difference(x: Floats, supervision: Supervision, orders: Orders) -> Learnt:
    from sklearn.model_selection import GroupKFold

    truth = supervision.truth()

    def difference_of_means(rows: IntArray) -> tuple[Floats, float]:
        first_better, second_better = x[rows][truth[rows]], x[rows][~truth[rows]]
        if orders == "both":  # −x of a pair is x of the pair swapped: there is one mean
            return np.concatenate([first_better, -second_better]).mean(axis=0), 0.0
        if not len(first_better) or not len(second_better):
            return np.zeros(x.shape[1]), 0.0
        first_mean, second_mean = first_better.mean(axis=0), second_better.mean(axis=0)
        direction = first_mean - second_mean
        return direction, -float(direction @ (first_mean + second_mean)) / 2

    fold_scores = np.empty(len(x))
    for train, test in GroupKFold(supervision.folds).split(x, groups=supervision.groups):
        fold_direction, fold_bias = difference_of_means(train)
        fold_scores[test] = x[test] @ fold_direction + fold_bias
    direction, bias = difference_of_means(np.arange(len(x)))
    return Learnt(direction, bias, train_score=auroc(truth, fold_scores))


def _unsupervised(x: Floats, supervision: Supervision, orders: Orders) -> Learnt:
    direction = principal(x, symmetric=orders == "both")
    if orders == "both":
        return _oriented(direction, x, supervision)
    # PCA takes off the mean of these pairs, which is 0 unless the centre came from others too.
    bias = -float(x.mean(axis=0) @ direction)
    return _oriented(direction, x, supervision, bias)


def _oriented(direction: Floats, x: Floats, supervision: Supervision, bias: float = 0.0) -> Learnt:
    """A direction (and its constant) that was fitted without labels, with its sign as the
    orientation asks.
    """
    sign_source, _ = parse_orientation(supervision.orientation)
    scores = x @ direction + bias
    if sign_source == "few":
        few_scores = scores[supervision.few]
        few_truth = supervision.truth()[supervision.few]
        sign = 1.0 if sign_agreement(few_truth, few_scores) >= 0 else -1.0
        few_auroc = auroc(few_truth, sign * few_scores)
        return Learnt(sign * direction, sign * bias, train_score=few_auroc)
    if sign_source == "logit":
        if supervision.model_answers is None:
            raise ValueError(
                "orientation logit needs the model's own answers: fit to a Harvest, which holds "
                "them"
            )
        sign = 1.0 if float(scores @ supervision.model_answers) >= 0 else -1.0
        return Learnt(sign * direction, sign * bias)
    if sign_source == "oracle":
        raise ValueError(
            "orientation oracle takes the labels of a test half, which a fit does not see"
        )
    return Learnt(direction, bias)


DIRECTIONS: dict[Kind, Callable[[Floats, Supervision, Orders], Learnt]] = {
    "supervised": _supervised,
    "mean_difference": _mean_difference,
    "unsupervised": _unsupervised,
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
    fit_centre: Literal["train", "all"] = "train"
    """Pairs over which the means of the fit are taken; "all" leaks the test half."""
    centre: Centre = "source"
    """Means that are taken off the states of other data sets. Paper, §3: a set's differences are
    centred by their own mean ("tested").
    """
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
        return bool(self.leak)

    @property
    def leak(self) -> str:
        """What of the test half reaches the fit, the worst first; "" for nothing."""
        if self.orientation == "oracle":
            return "the labels of the test half give its sign"
        if self.fit_centre == "all":
            return "the texts of the test half give its means"
        if not self.grouped:
            return "one question is in both halves"
        return ""


PRESETS: Mapping[str, FitSettings] = {
    "strict": FitSettings(),
    "paper": FitSettings(
        "paper",
        grouped=False,
        orders="first",
        centre="tested",
        layer="last",
        orientation="none",
        c=1.0,
        aspects="apart",
    ),
    "released-code": FitSettings(
        "released-code",
        grouped=False,
        orders="first",
        fit_centre="all",
        centre="tested",
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
    pair_count = len(groups)
    may_train = np.ones(pair_count, dtype=bool) if train_from is None else train_from
    units = groups if grouped else np.arange(pair_count)
    unit_names, unit_of_pair = np.unique(units, return_inverse=True)
    trainable_counts = np.bincount(unit_of_pair[may_train], minlength=len(unit_names))

    drawn_units = np.random.default_rng([seed, 4]).permutation(len(unit_names))
    drawn_counts = trainable_counts[drawn_units]
    pairs_before = np.cumsum(drawn_counts) - drawn_counts
    train_share = 0.5 if train_from is not None else train
    train_pairs = may_train.sum() * train_share if train_share < 1 else train_share
    is_train_unit = np.zeros(len(unit_names), dtype=bool)
    is_train_unit[drawn_units[pairs_before < train_pairs]] = True
    is_train_unit &= trainable_counts > 0

    is_train = is_train_unit[unit_of_pair] & may_train
    is_test = ~is_train_unit[unit_of_pair] if grouped else ~is_train
    return np.flatnonzero(is_train), np.flatnonzero(is_test)


def groups_and_questions(pairs: Iterable[Pair]) -> set[str]:
    """Groups of `pairs`, and their questions, which have other names elsewhere: all that a probe of
    them has seen.
    """
    names: set[str] = set()
    for pair in pairs:
        names.update((pair.group, pair.question_digest))
    return names


def are_held_out(seen: Iterable[str], pairs: Iterable[Pair]) -> list[bool]:
    """Whether per pair neither its group nor its question is in `seen`, which
    `groups_and_questions` made.
    """
    seen_names = set(seen)
    return [seen_names.isdisjoint((pair.group, pair.question_digest)) for pair in pairs]


FITTED_KINDS: tuple[Kind, Kind] = ("supervised", "unsupervised")
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

    def training_supervision(self, half_number: int) -> Supervision:
        """What the probes of one half may learn from; the sign that an oracle gives comes later."""
        settings = self.settings
        train = self.halves[half_number].train
        orientation = "none" if settings.orientation == "oracle" else settings.orientation
        return Supervision(
            first_better=self.first_better[train],
            groups=self.groups[train],
            model_answers=self.model_answers[train],
            orientation=orientation,
            c=settings.c,
            folds=settings.folds,
            seed=half_number,
            bias=False,  # paper: σ(wᵀx), as does its code
            balanced=settings.balanced,
        )


@dataclass(frozen=True)
class LayerFit:
    """The probes of one layer and half, and their scores on the half's test pairs."""

    probes: dict[Kind, Probe]
    scores: dict[Kind, Scores]
    """[test pair]"""
    one_order_scores: dict[Kind, Scores]
    """[test pair]: scores of the same probes on the first order alone."""
    random_scores: Scores
    """[direction, test pair]: scores of random directions, with the sign from all training labels.
    """
    few_label_scores: Scores
    """[test pair]: scores of a regression on the labels of `few:K` alone; NaN without them."""
    few_label_train_score: float
    """Out-of-fold AUROC of that regression, on those labels."""


def fit_layer(
    states: FloatArray, inputs: FitInputs, layer: int, half_numbers: Sequence[int]
) -> list[LayerFit]:
    """One `LayerFit` per half, from states [pair, order, side, d_model] of the block with number
    `layer`.
    """
    return [_fit_layer_on_half(states, inputs, layer, number) for number in half_numbers]


def _fit_layer_on_half(
    states: FloatArray, inputs: FitInputs, layer: int, half_number: int
) -> LayerFit:
    settings, half = inputs.settings, inputs.halves[half_number]
    supervision = inputs.training_supervision(half_number)
    train_states, test_states = states[half.train], states[half.test]
    if settings.fit_centre == "train":
        centre = means(train_states, settings.orders)
    else:
        centre = means(np.concatenate([train_states, test_states]), settings.orders)

    probes: dict[Kind, Probe] = {}
    for kind in FITTED_KINDS:
        probes[kind] = fit_probe(
            kind, train_states, supervision, layer=layer, orders=settings.orders, centre=centre
        )
    if settings.orientation == "oracle":
        probes["unsupervised"] = _oriented_by_test_labels(
            probes["unsupervised"], test_states, inputs.first_better[half.test]
        )

    train_features = features(train_states, *centre, orders=settings.orders)
    test_features = features(test_states, *centre, orders=settings.orders)
    rng = np.random.default_rng([half_number, layer, 7])
    random_directions = rng.standard_normal((train_features.shape[1], RANDOM_DIRECTIONS))
    train_truth = supervision.truth()
    random_signs: list[float] = []
    for direction_scores in (train_features @ random_directions).T:
        agrees = sign_agreement(train_truth, direction_scores) >= 0
        random_signs.append(1.0 if agrees else -1.0)

    few_features = train_features[np.searchsorted(half.train, half.few)]
    few_label_scores, few_label_train_score = _few_label_regression(
        few_features, test_features, inputs, half
    )
    scores: dict[Kind, Scores] = {}
    one_order_scores: dict[Kind, Scores] = {}
    for kind, probe in probes.items():
        scores[kind] = probe.score(test_states)
        one_order_scores[kind] = probe.score(test_states, orders="first")
    return LayerFit(
        probes=probes,
        scores=scores,
        one_order_scores=one_order_scores,
        random_scores=(test_features @ random_directions * random_signs).T,
        few_label_scores=few_label_scores,
        few_label_train_score=few_label_train_score,
    )


def _oriented_by_test_labels(probe: Probe, test_states: FloatArray, test_truth: BoolArray) -> Probe:
    """The better sign on the test half, which the released code takes. LEAKS."""
    scores = probe.score(test_states)
    sign = 1.0 if signed_f1(test_truth, scores) >= signed_f1(test_truth, -scores) else -1.0
    return replace(
        probe, direction=sign * probe.direction, bias=sign * probe.bias, orientation="oracle"
    )


def _few_label_regression(
    few_features: FloatArray, test_features: FloatArray, inputs: FitInputs, half: Half
) -> tuple[Scores, float]:
    """Scores [test pair] of a regression on the few labels that the unsupervised probe gets, and
    its AUROC out of fold.

    The features are [pair, d] of these pairs and of the test half.
    """
    few_truth, few_groups = inputs.first_better[half.few], inputs.groups[half.few]
    folds = inputs.settings.folds
    if not learnable(few_truth, few_groups, folds=folds):
        return np.full(len(half.test), np.nan), np.nan
    regression = logistic(few_features, few_truth, few_groups, folds=folds)
    return test_features @ regression.direction + regression.bias, regression.score


def signed_f1(first_better: BoolArray, scores: FloatArray) -> float:
    """F1 of both labels, weighted by the frequency of each; a score of 0 is a tie and counts for
    neither.
    """
    return estimate.weighted_f1(np.where(first_better, 1, -1), np.sign(scores))
