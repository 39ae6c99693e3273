"""Test of whether model i knows more of itself than the pairs of models differ anyhow.

A cell mean m[t, o] (observer o on target t) is, on some scale g, level + ease[t] + skill[o] + pair[t, o] + noise of the
items: the social relations model (Kenny & La Voie 1984), of people who judge one another. Pair terms are what
particular models share (data, distillation). They do not shrink with more items, so that the self term

    s[i] = g(m[i, i]) - (fit to the off-diagonal cells)[i, i]

is compared with the noise and with the spread of pairs. The spread comes from the residuals of the off-diagonal cells
beyond their noise, its symmetric and antisymmetric part apart, since i on j and j on i may be one likeness:

    s[i] / sqrt(var of noise + (1/2 + h) spread_sym + 1/2 spread_anti)

h is the variance of the fit at [i, i] in units of a cell's; the degrees of freedom are Satterthwaite's (1946), of
M(M-3)/2 symmetric and (M-1)(M-2)/2 antisymmetric residuals. Nobody knows the scale: s[i] must exceed the noise on every
scale, and noise plus pairs on every scale that the off-diagonal cells do not reject against the one that fits best. All
steps must hold, so that the largest p is the p (an intersection-union test, Berger 1982). How often it is right, and
where it is not, is in docs/statistics.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import FloatArray

FEWEST = 4
"""Least number of models. Three leave no symmetric residual, which would show how much pairs differ."""
CUT = 3.84
"""Rise of the misfit over the best scale's (quasi-likelihood ratio, one degree of freedom) that rejects a scale."""
ELSEWHERE = 0.2
"""p, times M - 1, of a residual in i's column below which i must also beat itself on the other targets."""
ALIKE = 0.4
"""p, times M - 1, of a pair's residual, both ways together, below which s[i] must hold without what the pair shares."""
TINY = 1e-12
STEPS = ("above 0", "noise", "pairs", "above all pairs", "itself above others", "without its likest")
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
    """Scale → one-sided p [model] that s is above the noise there; NaN where the off-diagonal cells reject it."""
    over: FloatArray
    """[model]: the own cell above what skill and predictability give, as scored."""
    spread: float
    """Standard deviation of pairs around the fit, beyond noise, as scored."""
    outsider: npt.NDArray[np.bool_]
    """[model]: True for the hardest target and the worst observer by far that is on itself not better than the others
    on one another: a stranger among similar models has these cells too."""

    @property
    def p(self) -> FloatArray:
        """Largest p of the steps [model]; NaN with fewer than `FEWEST`. The caller corrects over models (Holm)."""
        return np.asarray(np.max(list(self.steps.values()), axis=0))


@dataclass(frozen=True)
class Moments:
    """Cells of R matrices of M models; a cell is target * M + observer."""

    mean: FloatArray
    """Means [R, cell]."""
    cov: FloatArray
    """Covariance of the means [R or 1, cell, cell]."""
    count: FloatArray
    """Number of items [R or 1, cell]."""
    units: float
    """Number of items that are resampled; unscored ones count too."""
    binary: bool
    """True if every score is 0 or 1."""

    @property
    def share(self) -> FloatArray:
        """The means, kept off 0 and 1 by half an item."""
        return np.asarray((np.clip(self.mean, 0, 1) * self.count + 0.5) / (self.count + 1))

    @property
    def least(self) -> FloatArray:
        """The least variance of a mean: one of all ones is not known exactly."""
        share = self.share if self.binary else 0.5 / (self.count + 1)
        return np.asarray(np.broadcast_to(share * (1 - share) / np.maximum(self.count - 1, 1), self.mean.shape))


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
    found = moments(scores[None])
    if size < FEWEST or np.isnan(found.mean).any() or found.units < 2:
        nothing = np.full(size, np.nan)
        return OwnCells(dict.fromkeys(STEPS, nothing), {}, nothing, np.nan, np.zeros(size, dtype=bool))
    steps, scales, over, spread = steps_of(found, floor=floor)
    first, fitting = ({name: p[0] for name, p in table.items()} for table in (steps, scales))
    return OwnCells(first, fitting, over[0], float(spread[0]), _outsiders(found))


def completed(x: FloatArray) -> FloatArray:
    """[R, target, observer, item]: own missing scores are wrong where another observer has one; then whole rows."""
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
    part = np.where(known, flat - mean[:, :, None], 0) / np.maximum(count, 1)[:, :, None]
    cov = part @ part.transpose(0, 2, 1) * (n / max(n - 1, 1))
    return Moments(mean, cov, count.astype(float), n, bool(np.isin(flat[known], (0, 1)).all()))


def steps_of(
    measured: Moments, *, floor: bool = False
) -> tuple[dict[str, FloatArray], dict[str, FloatArray], FloatArray, FloatArray]:
    """Steps and scales of `OwnCells` [R, model], over [R, model] and spread [R], of four models or more."""
    cells = measured.mean.shape[1]
    size = round(cells**0.5)
    of, models = _functionals(size), np.arange(size)
    target, observer, df_sym, df_anti = of.target, of.observer, size * (size - 3) / 2, (size - 1) * (size - 2) / 2
    off, own, df = target * size + observer, models * (size + 1), measured.units - 1
    diagonal = np.einsum("rcc->rc", measured.cov)
    short = np.maximum(measured.least - diagonal, 0)
    variance = np.maximum(diagonal + short, TINY)
    scales = _scales(measured.mean[:, off].min(axis=1, keepdims=True), floor=floor)
    noise, pairs, top, misfit, elsewhere, alike, column, without = ([] for _ in range(8))
    over = spread = np.empty(0)
    for name, (there, slope, back) in scales.items():
        level = measured.mean if name in AS_MEAN or name.startswith(ABOVE) else measured.share
        y, d = there(level), slope(level)
        cov = d[:, :, None] * measured.cov * d[:, None, :]
        cov[:, np.arange(cells), np.arange(cells)] += d**2 * short
        s, residual = y @ of.own.T, y @ of.residual.T
        own_cov, residual_cov = of.own @ cov, of.residual @ cov
        s_var, r_var = _squares(own_cov, of.own), _squares(residual_cov, of.residual)
        with_back = np.einsum("rkc,kc->rk", residual_cov, of.residual[of.swap])
        sym, anti = (residual + residual[:, of.swap]) / 2, (residual - residual[:, of.swap]) / 2
        sym_var, anti_var = (
            np.maximum((r_var + r_var[:, of.swap] + sign * 2 * with_back) / 4, TINY) for sign in (1, -1)
        )
        sym_square, anti_square = (sym**2).sum(axis=1) / df_sym, (anti**2).sum(axis=1) / df_anti
        sym_beyond = sym_square - sym_var.sum(axis=1) / df_sym
        anti_beyond = anti_square - anti_var.sum(axis=1) / df_anti
        total = s_var + ((0.5 + of.h) * np.maximum(sym_beyond, 0) + 0.5 * np.maximum(anti_beyond, 0))[:, None]
        sym_share, anti_share = (0.5 + of.h) * sym_square, 0.5 * anti_square
        each = sym_share**2 / df_sym + anti_share**2 / df_anti
        pooled = np.where(each > 0, (sym_share + anti_share) ** 2 / np.maximum(each, 1e-300), min(df_sym, df_anti))
        z = s / np.sqrt(total)
        noise.append(_tail(s / np.sqrt(s_var), df))
        pairs.append(_tail(z, np.clip(pooled, 1, df)[:, None]))
        both = (sym_beyond * df_sym + anti_beyond * df_anti) / (df_sym + df_anti)
        width = r_var + np.maximum(both, 0)[:, None] * (of.residual**2).sum(axis=1)
        top.append(z > (residual / np.sqrt(width)).max(axis=1, keepdims=True))
        elsewhere.append(_tail(residual / np.sqrt(r_var), df))
        alike.append(_tail(sym / np.sqrt(sym_var), df))
        fit = np.clip(back(y[:, off] - residual), -1, 2)
        misfit.append(((fit - measured.mean[:, off]) ** 2 / variance[:, off]).sum(axis=1))
        column.append((y, cov))
        # s[i] with what the pair (i, j) shares fitted is s[i] less a multiple of the pair's mean residual
        shared = np.einsum("rkc,kc->rk", own_cov[:, target], of.residual + of.residual[of.swap]) / 2
        lone = s[:, target] - of.share * sym
        lone_var = np.maximum(s_var[:, target] - 2 * of.share * shared + of.share**2 * sym_var, TINY)
        without.append(_tail(lone / np.sqrt(lone_var), df))
        if name == "x":
            over, spread = s, np.sqrt(np.maximum(both, 0))
    free = df_sym + df_anti
    least = np.min(misfit, axis=0)
    kept = (np.array(misfit) - least <= CUT * np.maximum(least / free, 1))[:, :, None]
    stands_out = np.max(elsewhere, axis=0) * (size - 1) < ELSEWHERE
    expert = np.stack([stands_out[:, observer == i].any(axis=1) for i in models], axis=1)
    twin = np.max(alike, axis=0) * (size - 1) < ALIKE
    lone_p = np.where(twin, np.max(without, axis=0), 0)
    steps = {
        "above 0": _tail(measured.mean[:, own] / np.sqrt(variance[:, own]), df),
        "noise": np.max(noise, axis=0),
        "pairs": np.where(kept, np.array(pairs), 0).max(axis=0),
        "above all pairs": np.where((np.array(top) | ~kept).all(axis=0), 0.0, 1.0),
        "itself above others": _itself_above_others(column, expert, df),
        "without its likest": np.stack([lone_p[:, target == i].max(axis=1) for i in models], axis=1),
    }
    fitting = dict(zip(scales, np.where(kept, np.array(noise), np.nan), strict=True))
    return steps, fitting, np.asarray(over), np.asarray(spread)


def fit_alone(measured: Moments) -> FloatArray:
    """[cell]: cell means of one matrix by skill and predictability alone, on the scale that fits the others best."""
    size = round(measured.mean.shape[1] ** 0.5)
    target, observer = np.nonzero(~np.eye(size, dtype=bool))
    columns, off = np.eye(size), target * size + observer
    fit = np.linalg.pinv(np.hstack([columns[target], columns[observer]]))
    fits = []
    for name, (there, _, back) in _scales(measured.mean[:, off].min(axis=1, keepdims=True), floor=False).items():
        effects = fit @ there(measured.mean[0] if name in AS_MEAN else measured.share[0])[off]
        cells = back((effects[:size, None] + effects[size:]).ravel())
        fits.append((float(np.square(cells - measured.mean[0])[off].sum()), cells))
    return np.asarray(np.clip(min(fits, key=lambda one: one[0])[1], 0, 1))


def _itself_above_others(on: list[tuple[FloatArray, FloatArray]], expert: FloatArray, df: float) -> FloatArray:
    """p [R, model] that an observer that stands out on another target beats itself on every other one.

    The contrast is its score on itself less that on j, compared with the others' scores on both.
    """
    size = expert.shape[1]
    out = np.zeros(expert.shape)
    for i in np.flatnonzero(expert.any(axis=0)):
        others = [j for j in range(size) if j != i]
        weights = np.zeros((len(others), size, size))
        for row, j in zip(weights, others, strict=True):
            rest = [k for k in others if k != j]
            row[i, i], row[j, i] = 1, -1
            row[i, rest], row[j, rest] = -1 / len(rest), 1 / len(rest)
        flat, at = weights.reshape(len(others), -1), np.flatnonzero(expert[:, i])
        p = [_tail(y[at] @ flat.T / np.sqrt(_squares(flat @ cov[at], flat)), df) for y, cov in on]
        out[at, i] = np.max(p, axis=(0, 2))
    return out


def _outsiders(found: Moments) -> npt.NDArray[np.bool_]:
    """The array `OwnCells.outsider` of one matrix."""
    size = round(found.mean.shape[1] ** 0.5)
    target, observer = np.nonzero(~np.eye(size, dtype=bool))
    columns, off, out = np.eye(size), target * size + observer, np.zeros(size, dtype=bool)
    effects = np.linalg.pinv(np.hstack([columns[target], columns[observer]])) @ special.logit(found.share[0, off])
    ease, skill = effects[:size], effects[size:]
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
    better = found.mean[0] @ flat / np.sqrt(flat @ found.cov[0] @ flat + found.least[0, i * (size + 1)])
    out[i] = _tail(better, found.units - 1) >= 0.05
    return out


def _tail(z: FloatArray, df: FloatArray | float) -> FloatArray:
    return np.asarray(special.stdtr(df, -np.asarray(z)))


def _squares(weighted: FloatArray, weights: FloatArray) -> FloatArray:
    """Variances [R, k] of functionals, from `weights @ cov  # [R, k, cell]` and `weights  # [k, cell]`."""
    return np.asarray(np.maximum(np.einsum("rkc,kc->rk", weighted, weights), 1e-18))


Scale = tuple[
    Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]
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


@dataclass(frozen=True)
class _Functionals:
    """Linear functionals of the cells of M models; k runs over the off-diagonal cells."""

    own: FloatArray
    """Weights of s [model, cell]."""
    residual: FloatArray
    """Weights of the residuals [k, cell]."""
    target: npt.NDArray[np.intp]
    observer: npt.NDArray[np.intp]
    swap: npt.NDArray[np.intp]
    """Index [k] of the same pair the other way round."""
    h: float
    share: float
    """Multiple of the mean residual of a pair of i that s[i] loses when the pair's effect is fitted."""


@lru_cache
def _functionals(size: int) -> _Functionals:
    target, observer = np.nonzero(~np.eye(size, dtype=bool))
    columns, k = np.eye(size), np.arange(len(target))
    design = np.hstack([columns[target], columns[observer]])
    fit = np.linalg.pinv(design)
    residual = np.zeros((len(k), size * size))
    residual[:, target * size + observer] = np.eye(len(k)) - design @ fit
    own = np.zeros((size, size * size))
    own[:, target * size + observer] = -np.hstack([columns, columns]) @ fit
    h = float((own[0] ** 2).sum())
    own[np.arange(size), np.arange(size) * (size + 1)] = 1
    place = np.full((size, size), -1)
    place[target, observer] = k
    swap = place[observer, target]
    both = np.zeros(size * size)
    both[[1, size]] = 1  # the pair (0, 1), both ways; all pairs are alike
    held = residual[place[0, 1]] @ both  # what is left of the pair's effect in either of its residuals
    share = (1 + float(own[0] @ both)) / float(held)
    return _Functionals(own, residual, target, observer, swap, h, share)
