"""Test of whether model i knows more of itself than the pairs of models differ anyhow.

A cell mean m[t, o] (observer o on target t) is, on some scale g, level + ease[t] + skill[o] +
pair[t, o] + noise of the items: the social relations model (Kenny & La Voie 1984), of people who
judge one another. Pair terms are what particular models share (data, distillation). They do not
shrink with more items, so that the self term

    s[i] = g(m[i, i]) - (fit to the off-diagonal cells)[i, i]

is compared with the noise and with the spread of pairs. The spread comes from the residuals of the
off-diagonal cells beyond their noise, its symmetric and antisymmetric part apart, since i on j and
j on i may be one likeness:

    s[i] / sqrt(var of noise + (1/2 + h) spread_sym + 1/2 spread_anti)

h is the variance of the fit at [i, i] in units of a cell's; the degrees of freedom are
Satterthwaite's (1946), of M(M-3)/2 symmetric and (M-1)(M-2)/2 antisymmetric residuals. Nobody knows
the scale: s[i] must exceed the noise on every scale, and noise plus pairs on every scale that the
off-diagonal cells do not reject against the one that fits best. All steps must hold, so that the
largest p is the p (an intersection-union test, Berger 1982). How often it is right, and where it is
not, is in docs/statistics.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import FloatArray

FEWEST = 4
"""Least number of models. Three leave no symmetric residual, which would show how much pairs
differ.
"""
CUT = 3.84
"""Rise of the misfit over the best scale's (quasi-likelihood ratio, one degree of freedom) that
rejects a scale.
"""
ELSEWHERE = 0.2
"""p, times M - 1, of a residual in i's column below which i must also beat itself on the other
targets.
"""
ALIKE = 0.4
"""p, times M - 1, of a pair's residual, both ways together, below which s[i] must hold without what
the pair shares.
"""
TINY = 1e-12
LEAST_VARIANCE = 1e-18
"""Least variance of a contrast."""
STEPS = (
    "above 0",
    "noise",
    "pairs",
    "above all pairs",
    "itself above others",
    "without its likest",
)
"""Conditions that must all hold for a model, in the order in which they are tested."""
OVER_PAIRS = "above all pairs"
"""Condition that holds (0) or not (1), and has no p."""
AS_NEEDED = ("itself above others", "without its likest")
"""Conditions that are tested only where something in the matrix calls for it; else their p is 0."""


@dataclass(frozen=True)
class OwnCells:
    """Result of `own_cells`."""

    steps: Mapping[str, FloatArray]
    """One of `STEPS` → one-sided p [model]."""
    scales: Mapping[str, FloatArray]
    """Scale → one-sided p [model] that s is above the noise there; NaN where the off-diagonal cells
    reject it.
    """
    over: FloatArray
    """[model]: the own cell above what skill and predictability give, as scored."""
    over_low: FloatArray
    """[model]: lower end of its 95 % interval, which pays for the noise, for the spread of pairs
    and for the scale.
    """
    over_high: FloatArray
    """[model]: upper end of it."""
    spread: float
    """Standard deviation of pairs around the fit, beyond noise, as scored."""
    outsider: npt.NDArray[np.bool_]
    """[model]: True for the hardest target and the worst observer by far that is on itself not
    better than the others on one another: a stranger among similar models has these cells too.
    """

    @property
    def p(self) -> FloatArray:
        """Largest p of the steps [model]; NaN with fewer than `FEWEST`. The caller corrects over
        models (Holm).
        """
        return np.asarray(np.max(list(self.steps.values()), axis=0))


@dataclass(frozen=True)
class Moments:
    """Cells of R matrices of M models; a cell is target * M + observer."""

    mean: FloatArray
    """Means [R, cell]."""
    factor: FloatArray
    """Factor [R or 1, cell, part] of the covariance of the means, which is `factor @ factor.T`: as
    many parts as items, at most as many as cells. The covariance itself would have a number for
    every two cells.
    """
    count: FloatArray
    """Number of items [R or 1, cell]."""
    units: float
    """Number of items that are resampled; unscored ones count too."""
    binary: bool
    """True if every score is 0 or 1."""

    @property
    def variance(self) -> FloatArray:
        """Variances of the means [R or 1, cell]."""
        return np.asarray(np.square(self.factor).sum(axis=2))

    @property
    def share(self) -> FloatArray:
        """The means, kept off 0 and 1 by half an item."""
        return np.asarray((np.clip(self.mean, 0, 1) * self.count + 0.5) / (self.count + 1))

    @property
    def least(self) -> FloatArray:
        """The least variance of a mean: one of all ones is not known exactly."""
        share = self.share if self.binary else 0.5 / (self.count + 1)
        return np.asarray(
            np.broadcast_to(share * (1 - share) / np.maximum(self.count - 1, 1), self.mean.shape)
        )


def own_cells(x: npt.ArrayLike, *, floor: bool = False) -> OwnCells:
    """Evidence in the own cells of `x  # [target, observer, item]`, NaN where unscored; takes some milliseconds.

    Args:
        x: Scores less chance or habit, 0/1 or graded. Items of one cluster are averaged before.
        floor: Whether scores may have an unknown floor above 0, as likenesses have.
    """
    scores = np.asarray(x, dtype=float)
    if scores.ndim != 3 or scores.shape[0] != scores.shape[1]:
        raise ValueError(f"expected [target, observer, item], got shape {scores.shape}")
    size = len(scores)
    measured = moments(scores[None])
    if size < FEWEST or np.isnan(measured.mean).any() or measured.units < 2:
        nothing = np.full(size, np.nan)
        is_outsider = np.zeros(size, dtype=bool)
        return OwnCells(
            dict.fromkeys(STEPS, nothing), {}, nothing, nothing, nothing, np.nan, is_outsider
        )
    found = steps_of(measured, floor=floor)
    return OwnCells(
        steps={name: p[0] for name, p in found.steps.items()},
        scales={name: p[0] for name, p in found.scales.items()},
        over=found.over[0],
        over_low=found.over_low[0],
        over_high=found.over_high[0],
        spread=float(found.spread[0]),
        outsider=_outsiders(measured),
    )


def completed(x: FloatArray) -> FloatArray:
    """[R, target, observer, item]: own missing scores are wrong where another observer has one;
    then whole rows.
    """
    if not np.isnan(x).any():
        return x
    x, own = x.copy(), np.arange(x.shape[1])
    lost = np.isnan(x[:, own, own]) & ~np.isnan(x).all(axis=2)
    wrong = min(0.0, float(np.nanmin(x))) if lost.any() else 0.0
    x[:, own, own] = np.where(lost, wrong, x[:, own, own])
    return np.asarray(np.where(np.isnan(x).any(axis=2, keepdims=True), np.nan, x))


def moments(x: FloatArray) -> Moments:
    """Moments of the cells of `x  # [R, target, observer, item]`, NaN where unscored."""
    x = completed(x)
    batch, size, _, n = x.shape
    flat = x.reshape(batch, size * size, n)
    known = ~np.isnan(flat)
    count = known.sum(axis=2)
    mean = np.where(count, np.where(known, flat, 0).sum(axis=2) / np.maximum(count, 1), np.nan)
    factor = np.where(known, flat - mean[:, :, None], 0) / np.maximum(count, 1)[:, :, None]
    factor *= math.sqrt(n / max(n - 1, 1))
    if n > size * size:
        triangles = np.asarray(np.linalg.qr(factor.transpose(0, 2, 1), mode="r"))
        factor = triangles.transpose(0, 2, 1)
    return Moments(mean, factor, count.astype(float), n, bool(np.isin(flat[known], (0, 1)).all()))


@dataclass(frozen=True)
class BatchSteps:
    """Fields of `OwnCells` for R matrices, each with a first axis [R]."""

    steps: dict[str, FloatArray]
    scales: dict[str, FloatArray]
    over: FloatArray
    over_low: FloatArray
    over_high: FloatArray
    spread: FloatArray


def steps_of(
    measured: Moments, *, floor: bool = False, scale_names: Sequence[str] = ()
) -> BatchSteps:
    """Evidence in the own cells of R matrices of four models or more, on all scales or on those
    that are named.
    """
    batch, cells = measured.mean.shape
    size = math.isqrt(cells)
    square = (batch, size, size)
    models, (target, observer) = np.arange(size), np.nonzero(~np.eye(size, dtype=bool))
    off, own = target * size + observer, models * (size + 1)
    place = np.zeros((size, size), dtype=int)
    place[target, observer] = np.arange(len(target))
    swap = place[observer, target]
    weights, df = FitWeights(size), measured.units - 1
    df_sym, df_anti = size * (size - 3) / 2, (size - 1) * (size - 2) / 2
    short = np.maximum(measured.least - measured.variance, 0)
    variance = np.maximum(measured.variance + short, TINY)

    scales = _scales(measured.mean[:, off].min(axis=1, keepdims=True), floor=floor)
    scales = {
        name: scale for name, scale in scales.items() if not scale_names or name in scale_names
    }
    noise, pairs, top, misfit, elsewhere, alike, column, without = ([] for _ in range(8))
    lows, highs = list[FloatArray](), list[FloatArray]()
    over = spread = np.empty(0)
    for name, (there, slope, back) in scales.items():
        level = measured.mean if name in AS_MEAN or name.startswith(ABOVE) else measured.share
        slopes = slope(level)
        y = there(level).reshape(square)
        factor = (slopes[:, :, None] * measured.factor).reshape(*square, -1)
        extra = (slopes**2 * short).reshape(square)
        beyond_fit = less_fit(y)
        s = beyond_fit[:, models, models]
        residual = beyond_fit[:, target, observer]
        swapped = residual[:, swap]

        noise_parts = less_fit(factor)
        s_parts = noise_parts[:, models, models]
        parts = noise_parts[:, target, observer]
        swapped_parts = parts[:, swap]
        s_var = np.square(s_parts).sum(axis=2) + weights.own_variance(extra)
        s_var = np.maximum(s_var, LEAST_VARIANCE)
        r_var = np.square(parts).sum(axis=2) + weights.by_relation(weights.residual**2, extra)
        r_var = np.maximum(r_var, LEAST_VARIANCE)
        with_back = (parts * swapped_parts).sum(axis=2)
        with_back += weights.by_relation(weights.residual * weights.swapped, extra)

        sym, anti = (residual + swapped) / 2, (residual - swapped) / 2
        sym_var, anti_var = (
            np.maximum((r_var + r_var[:, swap] + sign * 2 * with_back) / 4, TINY)
            for sign in (1, -1)
        )
        sym_square, anti_square = (sym**2).sum(axis=1) / df_sym, (anti**2).sum(axis=1) / df_anti
        sym_beyond = sym_square - sym_var.sum(axis=1) / df_sym
        anti_beyond = anti_square - anti_var.sum(axis=1) / df_anti
        sym_weight = 0.5 + weights.fit_variance
        pairs_var = sym_weight * np.maximum(sym_beyond, 0) + 0.5 * np.maximum(anti_beyond, 0)
        total = s_var + pairs_var[:, None]
        sym_share, anti_share = sym_weight * sym_square, 0.5 * anti_square
        each = sym_share**2 / df_sym + anti_share**2 / df_anti
        pooled = np.where(
            each > 0, (sym_share + anti_share) ** 2 / np.maximum(each, 1e-300), min(df_sym, df_anti)
        )
        z = s / np.sqrt(total)
        noise.append(_tail(s / np.sqrt(s_var), df))
        pair_df = np.clip(pooled, 1, df)[:, None]
        pairs.append(_tail(z, pair_df))
        half_width = -special.stdtrit(pair_df, 0.025) * np.sqrt(total)
        low, high = _advantage_ends(
            back, y[:, models, models], s, half_width, measured.mean[:, own]
        )
        lows.append(low)
        highs.append(high)

        both = (sym_beyond * df_sym + anti_beyond * df_anti) / (df_sym + df_anti)
        width = r_var + np.maximum(both, 0)[:, None] * weights.residual_variance
        top.append(z > (residual / np.sqrt(width)).max(axis=1, keepdims=True))
        elsewhere.append(residual / np.sqrt(r_var))
        alike.append(sym / np.sqrt(sym_var))
        fit = np.clip(back(y[:, target, observer] - residual), -1, 2)
        misfit.append(((fit - measured.mean[:, off]) ** 2 / variance[:, off]).sum(axis=1))
        column.append((y, factor, extra))

        # s[i] with what the pair (i, j) shares fitted is s[i] less a multiple of the pair's mean
        # residual
        shared = (s_parts[:, target] * (parts + swapped_parts)).sum(axis=2) / 2
        shared += weights.by_relation(weights.own * (weights.residual + weights.swapped) / 2, extra)
        lone = s[:, target] - weights.pair_share * sym
        lone_var = (
            s_var[:, target] - 2 * weights.pair_share * shared + weights.pair_share**2 * sym_var
        )
        without.append(lone / np.sqrt(np.maximum(lone_var, TINY)))
        if name == "x":
            over, spread = s, np.sqrt(np.maximum(both, 0))
    free = df_sym + df_anti
    least = np.min(misfit, axis=0)
    kept = (np.array(misfit) - least <= CUT * np.maximum(least / free, 1))[:, :, None]
    # The largest p of all scales is that of the smallest z.
    stands_out = _tail(np.min(elsewhere, axis=0), df) * (size - 1) < ELSEWHERE
    expert = np.stack([stands_out[:, observer == i].any(axis=1) for i in models], axis=1)
    twin = _tail(np.min(alike, axis=0), df) * (size - 1) < ALIKE
    lone_p = np.where(twin, _tail(np.min(without, axis=0), df), 0)
    steps = {
        "above 0": _tail(measured.mean[:, own] / np.sqrt(variance[:, own]), df),
        "noise": np.max(noise, axis=0),
        "pairs": np.where(kept, np.array(pairs), 0).max(axis=0),
        "above all pairs": np.where((np.array(top) | ~kept).all(axis=0), 0.0, 1.0),
        "itself above others": _itself_above_others(column, expert, df),
        "without its likest": np.stack(
            [lone_p[:, target == i].max(axis=1) for i in models], axis=1
        ),
    }
    fitting = dict(zip(scales, np.where(kept, np.array(noise), np.nan), strict=True))
    over_low = np.minimum(np.where(kept, np.array(lows), math.inf).min(axis=0), over)
    over_high = np.maximum(np.where(kept, np.array(highs), -math.inf).max(axis=0), over)
    return BatchSteps(steps, fitting, over, over_low, over_high, spread)


def _advantage_ends(
    back: Callable[[FloatArray], FloatArray],
    own_levels: FloatArray,
    s: FloatArray,
    half_width: FloatArray,
    own_means: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Ends of an interval of the own cell above the fit, as scored, [R, model].

    On a curved scale it matters whether the own cell or the fit is uncertain: the interval holds
    both.

    Args:
        back: Inverse of the scale.
        own_levels: Own cells on the scale [R, model].
        s: Own cells above the fit, on the scale [R, model].
        half_width: Half of the interval of `s`, on the scale.
        own_means: Own cells as scored [R, model].
    """
    are_shares = bool((own_means >= 0).all() and (own_means <= 1).all())
    limits = (0, 1) if are_shares else (-1, 2)

    def scores(levels: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.clip(back(levels), *limits)

    fitted = scores(own_levels - s)
    low_of_fit = own_means - scores(own_levels - s + half_width)
    high_of_fit = own_means - scores(own_levels - s - half_width)
    low_of_own = scores(own_levels - half_width) - fitted
    high_of_own = scores(own_levels + half_width) - fitted
    return np.minimum(low_of_fit, low_of_own), np.maximum(high_of_fit, high_of_own)


def fit_alone(measured: Moments) -> FloatArray:
    """[cell]: cell means of one matrix by skill and predictability alone, on the scale that fits
    the others best.
    """
    size = math.isqrt(measured.mean.shape[1])
    target, observer = np.nonzero(~np.eye(size, dtype=bool))
    off = target * size + observer
    fits = []
    for name, (there, _, back) in _scales(
        measured.mean[:, off].min(axis=1, keepdims=True), floor=False
    ).items():
        level = measured.mean if name in AS_MEAN else measured.share
        ease, skill = additive_effects(there(level[:1]).reshape(1, size, size))
        cells = back((ease[0, :, None] + skill[0]).ravel())
        fits.append((float(np.square(cells - measured.mean[0])[off].sum()), cells))
    return np.asarray(np.clip(min(fits, key=lambda one: one[0])[1], 0, 1))


def additive_effects(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least-squares effects [R, model, …] of targets and of observers, with equal sums, on the
    off-diagonal cells.

    Args:
        y: [R, target, observer, …]; what stands on the diagonal is in no fit.
    """
    size = y.shape[1]
    own = y[:, np.arange(size), np.arange(size)]
    target_sums, observer_sums = y.sum(axis=2) - own, y.sum(axis=1) - own
    effects_sum = target_sums.sum(axis=1, keepdims=True) / (2 * (size - 1))
    target_sums, observer_sums = target_sums - effects_sum, observer_sums - effects_sum
    determinant = size * (size - 2)
    ease = ((size - 1) * target_sums + observer_sums) / determinant
    skill = (target_sums + (size - 1) * observer_sums) / determinant
    return ease, skill


def less_fit(y: FloatArray) -> FloatArray:
    """`y  # [R, target, observer, …]` less the additive fit to its off-diagonal cells: residuals; s on the diagonal."""
    ease, skill = additive_effects(y)
    return np.asarray(y - ease[:, :, None] - skill[:, None])


def _itself_above_others(
    on: list[tuple[FloatArray, FloatArray, FloatArray]], expert: npt.NDArray[np.bool_], df: float
) -> FloatArray:
    """p [R, model] that an observer that stands out on another target beats itself on every other
    one.

    The contrast is its score on itself less that on j, compared with the others' scores on both.

    Args:
        on: Levels [R, target, observer], factor [R, target, observer, part] and further variances
            [R, target, observer] of the cells, by scale.
        expert: [R, model]: True for those that are tested.
        df: Degrees of freedom of the noise.
    """
    size = expert.shape[1]
    out = np.zeros(expert.shape)
    for i in map(int, np.flatnonzero(expert.any(axis=0))):
        at = np.flatnonzero(expert[:, i])
        p_by_scale = []
        for y, factor, extra in on:
            own, on_other, rest_own, rest_other = _cells_of_contrast(y[at], i)
            contrast = own - on_other - (rest_own - rest_other) / (size - 2)
            own, on_other, rest_own, rest_other = _cells_of_contrast(factor[at], i)
            parts = own - on_other - (rest_own - rest_other) / (size - 2)
            own, on_other, rest_own, rest_other = _cells_of_contrast(extra[at], i)
            variance = (
                np.square(parts).sum(axis=2)
                + own
                + on_other
                + (rest_own + rest_other) / (size - 2) ** 2
            )
            p_by_scale.append(_tail(contrast / np.sqrt(np.maximum(variance, LEAST_VARIANCE)), df))
        out[at, i] = np.max(p_by_scale, axis=(0, 2))
    return out


def _cells_of_contrast(
    cells: FloatArray, i: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The own cell of i, i on each other target j, and the sums of the observers other than i and j
    on i and on j.

    Args:
        cells: [R, target, observer, …]. Results are [R, j, …].
        i: A model.
    """
    others = np.delete(np.arange(cells.shape[1]), i)
    sums = cells.sum(axis=2)
    own, on_other = cells[:, i, i][:, None], cells[:, others, i]
    rest_own = sums[:, i][:, None] - own - cells[:, i, others]
    rest_other = sums[:, others] - on_other - cells[:, others, others]
    return own, on_other, rest_own, rest_other


def _outsiders(measured: Moments) -> npt.NDArray[np.bool_]:
    """The array `OwnCells.outsider` of one matrix."""
    size = math.isqrt(measured.mean.shape[1])
    out = np.zeros(size, dtype=bool)
    (ease,), (skill,) = additive_effects(special.logit(measured.share[:1]).reshape(1, size, size))
    i = int(np.argmin(ease + skill))
    others = np.delete(np.arange(size), i)
    apart = np.sort((ease + skill)[others])
    if (
        ease[i] >= ease[others].min()
        or skill[i] >= skill[others].min()
        or apart[0] - (ease + skill)[i] < np.ptp(apart) / 2
    ):
        return out
    weights = np.zeros((size, size))
    weights[np.ix_(others, others)] = -(1 - np.eye(size - 1)) / ((size - 1) * (size - 2))
    weights[i, i] = 1
    flat = weights.ravel()
    variance = float(np.square(flat @ measured.factor[0]).sum())
    better = measured.mean[0] @ flat / np.sqrt(variance + measured.least[0, i * (size + 1)])
    out[i] = _tail(better, measured.units - 1) >= 0.05
    return out


def _tail(z: FloatArray, df: FloatArray | float) -> FloatArray:
    return np.asarray(special.stdtr(df, -np.asarray(z)))


Scale = tuple[
    Callable[[FloatArray], FloatArray],
    Callable[[FloatArray], FloatArray],
    Callable[[FloatArray], FloatArray],
]
"""Transformation, its slope, and its inverse."""
AS_MEAN, ABOVE = ("x",), "log above"


def _scales(lowest: FloatArray, *, floor: bool) -> dict[str, Scale]:
    """Name → scale. A floor adds logarithms of what is above a share of the `lowest  # [R, 1]` cell of others."""

    def above(c: FloatArray) -> Scale:
        def up(a: FloatArray) -> FloatArray:
            return np.asarray(np.maximum(a - c, 1e-3))

        return lambda a: np.log(up(a)), lambda a: 1 / up(a), lambda y: np.exp(y) + c

    found: dict[str, Scale] = {
        "x": (lambda a: a, np.ones_like, lambda y: y),
        "log": (np.log, lambda a: 1 / a, np.exp),
        "logit": (special.logit, lambda a: 1 / (a * (1 - a)), special.expit),
        "failures": (lambda a: -np.log1p(-a), lambda a: 1 / (1 - a), lambda y: -np.expm1(-y)),
    }
    shares = (0.5, 0.8) if floor else ()
    return found | {f"{ABOVE} {share}": above(share * np.maximum(lowest, 0)) for share in shares}


class FitWeights:
    """Weights of the cells in s and in the residuals of an additive fit to the off-diagonal cells
    of M models.

    What weight a cell (t', o') has in the residual of (t, o) depends on nothing but which of the
    four are the same model. Seven relations, in this order: the same cell; the same pair the other
    way round; t' = t; o' = o; t' = o; o' = t; none. A table of all weights would have a number for
    every two cells.
    """

    def __init__(self, size: int) -> None:
        both, one, none = (shared - size / (size - 1) for shared in (2 * (size - 1), size - 1, 0))
        fitted = np.array([both, 2 - size / (size - 1), one, one, 1 + none, 1 + none, none]) / (
            size * (size - 2)
        )
        self.size = size
        self.residual = np.array([1.0, 0, 0, 0, 0, 0, 0]) - fitted
        """[relation]: weights of the residual of (t, o)."""
        self.swapped = self.residual[[1, 0, 4, 5, 2, 3, 6]]
        """[relation]: weights of the residual of (o, t)."""
        touching, apart = -1 / (size - 1), 1 / ((size - 1) * (size - 2))
        self.own = np.array([touching, touching, touching, apart, apart, touching, apart])
        """[relation]: weights of the off-diagonal cells in s[t]."""
        cells_in_relation = np.array([1, 1, *[size - 2] * 4, (size - 2) * (size - 3)])
        self.fit_variance = float(self.own**2 @ cells_in_relation)
        """Variance of the fit at [i, i], in units of a cell's."""
        self.residual_variance = float(self.residual**2 @ cells_in_relation)
        """Variance of a residual, in units of a cell's."""
        self.pair_share = (1 + self.own[0] + self.own[1]) / (self.residual[0] + self.residual[1])
        """Multiple of the mean residual of a pair of i that s[i] loses when the pair's effect is
        fitted.
        """

    def by_relation(self, weights: FloatArray, values: FloatArray) -> FloatArray:
        """Sum [R, k] of weighted values over the off-diagonal cells, for each off-diagonal cell k =
        (t, o).

        Args:
            weights: [relation].
            values: [R, target, observer].
        """
        target, observer = np.nonzero(~np.eye(self.size, dtype=bool))
        own = values[:, np.arange(self.size), np.arange(self.size)]
        target_sums, observer_sums = values.sum(axis=2) - own, values.sum(axis=1) - own
        same, swap = values[:, target, observer], values[:, observer, target]
        touching = [
            target_sums[:, target] - same,
            observer_sums[:, observer] - same,
            target_sums[:, observer] - swap,
            observer_sums[:, target] - swap,
        ]
        rest = target_sums.sum(axis=1, keepdims=True) - same - swap - sum(touching)
        relations = np.stack([same, swap, *touching, rest], axis=2)
        return np.asarray(relations @ weights)

    def own_variance(self, values: FloatArray) -> FloatArray:
        """Variance [R, model] of s, where `values  # [R, target, observer]` are variances of independent cells."""
        own = values[:, np.arange(self.size), np.arange(self.size)]
        touching = values.sum(axis=2) + values.sum(axis=1) - 2 * own
        off_diagonal = values.sum(axis=(1, 2))[:, None] - own.sum(axis=1, keepdims=True)
        apart = off_diagonal - touching
        return np.asarray(own + self.own[0] ** 2 * touching + self.own[3] ** 2 * apart)
