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

from selfprobe.stats.estimate import BoolArray, FloatArray

FEWEST_MODELS = 4
"""Least number of models. Three leave no symmetric residual, which would show how much pairs
differ.
"""
MISFIT_CUT = 3.84
"""Rise of the misfit over the best scale's (quasi-likelihood ratio, one degree of freedom) that
rejects a scale.
"""
EXPERT_P = 0.2
"""p, times M - 1, of a residual in i's column below which i must also beat itself on the other
targets.
"""
LIKENESS_P = 0.4
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
ABOVE_ALL_PAIRS = "above all pairs"
"""Condition that holds (0) or not (1), and has no p."""
CONDITIONAL_STEPS = ("itself above others", "without its likest")
"""Conditions that are tested only where something in the matrix calls for it; else their p is 0."""


@dataclass(frozen=True)
class OwnCells:
    """Result of `own_cells`."""

    p_by_step: Mapping[str, FloatArray]
    """One of `STEPS` → one-sided p [model]."""
    scales: Mapping[str, FloatArray]
    """Scale → one-sided p [model] that s is above the noise there; NaN where the off-diagonal cells
    reject it.
    """
    advantage: FloatArray
    """[model]: the own cell above what skill and predictability give, as scored."""
    advantage_low: FloatArray
    """[model]: lower end of its 95 % interval, which pays for the noise, for the spread of pairs
    and for the scale.
    """
    advantage_high: FloatArray
    """[model]: upper end of it."""
    spread: float
    """Standard deviation of pairs around the fit, beyond noise, as scored."""
    outsider: BoolArray
    """[model]: True for the hardest target and the worst observer by far that is on itself not
    better than the others on one another: a stranger among similar models has these cells too.
    """

    @property
    def p(self) -> FloatArray:
        """Largest p of the steps [model]; NaN with fewer than `FEWEST_MODELS`. The caller corrects
        over models (Holm).
        """
        return np.asarray(np.max(list(self.p_by_step.values()), axis=0))


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
    def least_variance(self) -> FloatArray:
        """The least variance of a mean: one of all ones is not known exactly."""
        share = self.share if self.binary else 0.5 / (self.count + 1)
        return np.asarray(
            np.broadcast_to(share * (1 - share) / np.maximum(self.count - 1, 1), self.mean.shape)
        )


def own_cells(x: npt.ArrayLike, *, floor: bool = False) -> OwnCells:
    """Evidence in the own cells of `x  # [target, observer, item]`, NaN where unscored; takes some
    milliseconds.

    Args:
        x: Scores less chance or habit, 0/1 or graded. Items of one cluster are averaged before.
        floor: Whether scores may have an unknown floor above 0, as likenesses have.
    """
    scores = np.asarray(x, dtype=float)
    if scores.ndim != 3 or scores.shape[0] != scores.shape[1]:
        raise ValueError(f"expected [target, observer, item], got shape {scores.shape}")
    size = len(scores)
    measured = moments(scores[None])
    if size < FEWEST_MODELS or np.isnan(measured.mean).any() or measured.units < 2:
        no_numbers = np.full(size, np.nan)
        return OwnCells(
            p_by_step=dict.fromkeys(STEPS, no_numbers),
            scales={},
            advantage=no_numbers,
            advantage_low=no_numbers,
            advantage_high=no_numbers,
            spread=np.nan,
            outsider=np.zeros(size, dtype=bool),
        )
    evidence = steps_of(measured, floor=floor)
    p_by_step = {name: p_values[0] for name, p_values in evidence.p_by_step.items()}
    p_by_scale = {name: p_values[0] for name, p_values in evidence.scales.items()}
    return OwnCells(
        p_by_step=p_by_step,
        scales=p_by_scale,
        advantage=evidence.advantage[0],
        advantage_low=evidence.advantage_low[0],
        advantage_high=evidence.advantage_high[0],
        spread=float(evidence.spread[0]),
        outsider=_outsiders(measured),
    )


def completed(x: FloatArray) -> FloatArray:
    """[R, target, observer, item]: own missing scores are wrong where another observer has one;
    then whole rows.
    """
    if not np.isnan(x).any():
        return x
    scores = x.copy()
    models = np.arange(scores.shape[1])
    own_scores = scores[:, models, models]
    has_score = ~np.isnan(scores).all(axis=2)
    is_own_missing = np.isnan(own_scores) & has_score
    wrong_score = 0.0
    if is_own_missing.any():
        wrong_score = min(0.0, float(np.nanmin(scores)))
    scores[:, models, models] = np.where(is_own_missing, wrong_score, own_scores)
    is_incomplete = np.isnan(scores).any(axis=2, keepdims=True)
    return np.asarray(np.where(is_incomplete, np.nan, scores))


def moments(x: FloatArray) -> Moments:
    """Moments of the cells of `x  # [R, target, observer, item]`, NaN where unscored."""
    scores = completed(x)
    batch, size, _, item_count = scores.shape
    cell_scores = scores.reshape(batch, size * size, item_count)
    is_scored = ~np.isnan(cell_scores)
    counts = is_scored.sum(axis=2)
    divisors = np.maximum(counts, 1)
    sums = np.where(is_scored, cell_scores, 0).sum(axis=2)
    means = np.where(counts, sums / divisors, np.nan)

    deviations = np.where(is_scored, cell_scores - means[:, :, None], 0)
    factor = deviations / divisors[:, :, None]
    factor *= math.sqrt(item_count / max(item_count - 1, 1))
    if item_count > size * size:
        triangles = np.asarray(np.linalg.qr(factor.transpose(0, 2, 1), mode="r"))
        factor = triangles.transpose(0, 2, 1)
    return Moments(
        mean=means,
        factor=factor,
        count=counts.astype(float),
        units=item_count,
        binary=bool(np.isin(cell_scores[is_scored], (0, 1)).all()),
    )


@dataclass(frozen=True)
class BatchSteps:
    """Fields of `OwnCells` for R matrices, each with a first axis [R]."""

    p_by_step: dict[str, FloatArray]
    scales: dict[str, FloatArray]
    advantage: FloatArray
    advantage_low: FloatArray
    advantage_high: FloatArray
    spread: FloatArray


class _Places:
    """Places of the cells of M models; a pair is an off-diagonal cell."""

    def __init__(self, size: int) -> None:
        self.models = np.arange(size)
        self.targets, self.observers = np.nonzero(~np.eye(size, dtype=bool))
        self.own_cells = self.models * (size + 1)
        """[model]: target * M + observer, as the others."""
        self.pair_cells = self.targets * size + self.observers
        """[pair]."""
        pair_by_cell = np.zeros((size, size), dtype=int)
        pair_by_cell[self.targets, self.observers] = np.arange(len(self.targets))
        self.swapped_pairs = pair_by_cell[self.observers, self.targets]
        """[pair]: the same two models the other way round."""
        self.symmetric_df = size * (size - 3) / 2
        """Degrees of freedom of the residuals' symmetric part."""
        self.antisymmetric_df = (size - 1) * (size - 2) / 2


@dataclass(frozen=True)
class _ScaledCells:
    """Cells of R matrices on a scale, each [R, target, observer]."""

    levels: FloatArray
    factor: FloatArray
    """[R, target, observer, part]: see `Moments.factor`."""
    extra_variance: FloatArray
    """What a cell's variance lacks to the least one, on the scale."""


@dataclass(frozen=True)
class _ScaleEvidence:
    """Evidence in the own cells of R matrices on one scale."""

    cells: _ScaledCells
    noise_p: FloatArray
    """[R, model]: that the self term is above the noise."""
    pairs_p: FloatArray
    """[R, model]: that it is above noise and spread of pairs."""
    is_above_all_pairs: BoolArray
    """[R, model]."""
    residual_z: FloatArray
    """[R, pair]."""
    likeness_z: FloatArray
    """[R, pair]: of the pair's mean residual."""
    z_without_pair: FloatArray
    """[R, pair]: of the target's self term, with what the pair shares fitted."""
    misfit: FloatArray
    """[R]: of the off-diagonal cells."""
    self_term: FloatArray
    """[R, model]: s, on the scale."""
    advantage_low: FloatArray
    """[R, model]: as scored, and so is the other end."""
    advantage_high: FloatArray
    spread: FloatArray
    """[R]: standard deviation of pairs beyond noise, on the scale."""


def steps_of(
    measured: Moments, *, floor: bool = False, scale_names: Sequence[str] = ()
) -> BatchSteps:
    """Evidence in the own cells of R matrices of four models or more, on all scales or on those
    that are named; "x" is one of them.
    """
    places = _Places(math.isqrt(measured.mean.shape[1]))
    lowest = measured.mean[:, places.pair_cells].min(axis=1, keepdims=True)
    evidence_by_scale = dict[str, _ScaleEvidence]()
    for name, scale in _scales(lowest, floor=floor).items():
        if not scale_names or name in scale_names:
            evidence_by_scale[name] = _scale_evidence(measured, places, scale)

    evidences = list(evidence_by_scale.values())
    misfits = np.array([evidence.misfit for evidence in evidences])
    least_misfit = misfits.min(axis=0)
    misfit_unit = least_misfit / (places.symmetric_df + places.antisymmetric_df)
    is_possible_scale = misfits - least_misfit <= MISFIT_CUT * np.maximum(misfit_unit, 1)
    is_possible = is_possible_scale[:, :, None]  # [scale, R, model]

    noise_p = np.array([evidence.noise_p for evidence in evidences])
    pairs_p = np.array([evidence.pairs_p for evidence in evidences])
    is_above_all_pairs = np.array([evidence.is_above_all_pairs for evidence in evidences])
    is_above_where_possible = (is_above_all_pairs | ~is_possible).all(axis=0)
    p_by_step = {
        "above 0": _above_zero_p(measured, places),
        "noise": noise_p.max(axis=0),
        "pairs": np.where(is_possible, pairs_p, 0).max(axis=0),
        ABOVE_ALL_PAIRS: np.where(is_above_where_possible, 0.0, 1.0),
        "itself above others": _itself_above_others_p(evidences, places, measured.units - 1),
        "without its likest": _without_likest_p(evidences, places, measured.units - 1),
    }
    possible_noise_p = np.where(is_possible, noise_p, np.nan)
    lows = np.array([evidence.advantage_low for evidence in evidences])
    highs = np.array([evidence.advantage_high for evidence in evidences])
    lowest_end = np.where(is_possible, lows, math.inf).min(axis=0)
    highest_end = np.where(is_possible, highs, -math.inf).max(axis=0)
    as_scored = evidence_by_scale["x"]
    return BatchSteps(
        p_by_step=p_by_step,
        scales=dict(zip(evidence_by_scale, possible_noise_p, strict=True)),
        advantage=as_scored.self_term,
        advantage_low=np.minimum(lowest_end, as_scored.self_term),
        advantage_high=np.maximum(highest_end, as_scored.self_term),
        spread=as_scored.spread,
    )


@dataclass(frozen=True)
class _Residuals:
    """Residuals of the off-diagonal cells on a scale, and their noise; each [R, pair] where nothing
    else is said.
    """

    self_term: FloatArray
    """[R, model]: s."""
    self_variance: FloatArray
    """[R, model]: variance of its noise."""
    residual: FloatArray
    variance: FloatArray
    """Variance of the residual's noise."""
    symmetric: FloatArray
    """Mean of the residual and of the swapped one."""
    symmetric_variance: FloatArray
    antisymmetric: FloatArray
    """Half of their difference."""
    antisymmetric_variance: FloatArray
    shared_variance: FloatArray
    """Covariance of the noise of the target's self term and of the symmetric part."""


@dataclass(frozen=True)
class _PairSpread:
    """Squares of the residuals, each [R]."""

    symmetric_square: FloatArray
    """Mean square of the symmetric part."""
    antisymmetric_square: FloatArray
    symmetric_beyond: FloatArray
    """What `symmetric_square` is above its noise, which may be below 0."""
    antisymmetric_beyond: FloatArray
    beyond_noise: FloatArray
    """Square of the spread of pairs beyond noise, both parts together."""


def _scale_evidence(measured: Moments, places: _Places, scale: "Scale") -> _ScaleEvidence:
    """Evidence in the own cells on one scale; the formulas are at the module's top."""
    models = places.models
    weights = FitWeights(len(models))
    noise_df = measured.units - 1
    cells = _on_scale(measured, scale)
    residuals = _residuals(cells, places, weights)
    spread = _pair_spread(residuals, places)

    # The self term against noise and pairs, with Satterthwaite's degrees of freedom.
    symmetric_weight = 0.5 + weights.fit_variance
    pairs_variance = symmetric_weight * np.maximum(spread.symmetric_beyond, 0)
    pairs_variance = pairs_variance + 0.5 * np.maximum(spread.antisymmetric_beyond, 0)
    total_variance = residuals.self_variance + pairs_variance[:, None]
    symmetric_share = symmetric_weight * spread.symmetric_square
    antisymmetric_share = 0.5 * spread.antisymmetric_square
    pooled_df = _pooled_df(symmetric_share, antisymmetric_share, places)
    pairs_df = np.clip(pooled_df, 1, noise_df)[:, None]
    pairs_z = residuals.self_term / np.sqrt(total_variance)
    half_width = -special.stdtrit(pairs_df, 0.025) * np.sqrt(total_variance)
    advantage_low, advantage_high = _advantage_ends(
        scale.inverse,
        cells.levels[:, models, models],
        residuals.self_term,
        half_width,
        measured.mean[:, places.own_cells],
    )

    residual_width = residuals.variance + spread.beyond_noise[:, None] * weights.residual_variance
    largest_pair_z = (residuals.residual / np.sqrt(residual_width)).max(axis=1, keepdims=True)
    return _ScaleEvidence(
        cells=cells,
        noise_p=_upper_tail(residuals.self_term / np.sqrt(residuals.self_variance), noise_df),
        pairs_p=_upper_tail(pairs_z, pairs_df),
        is_above_all_pairs=pairs_z > largest_pair_z,
        residual_z=residuals.residual / np.sqrt(residuals.variance),
        likeness_z=residuals.symmetric / np.sqrt(residuals.symmetric_variance),
        z_without_pair=_z_without_pair(residuals, places, weights),
        misfit=_misfit(measured, places, scale, cells, residuals),
        self_term=residuals.self_term,
        advantage_low=advantage_low,
        advantage_high=advantage_high,
        spread=np.sqrt(spread.beyond_noise),
    )


def _residuals(cells: _ScaledCells, places: _Places, weights: "FitWeights") -> _Residuals:
    """Self terms and residuals of the additive fit, and the noise of both."""
    models = places.models
    swapped_pairs = places.swapped_pairs
    beyond_fit = less_fit(cells.levels)
    residual = beyond_fit[:, places.targets, places.observers]
    swapped_residual = residual[:, swapped_pairs]

    # Noise of the self term, of the residuals, and what a residual shares with the swapped one.
    noise_parts = less_fit(cells.factor)
    self_parts = noise_parts[:, models, models]
    pair_parts = noise_parts[:, places.targets, places.observers]
    swapped_parts = pair_parts[:, swapped_pairs]
    self_variance = np.square(self_parts).sum(axis=2)
    self_variance = self_variance + weights.own_variance(cells.extra_variance)
    residual_variance = np.square(pair_parts).sum(axis=2)
    residual_variance = residual_variance + weights.weighted_sums_by_relation(
        weights.residual**2, cells.extra_variance
    )
    residual_variance = np.maximum(residual_variance, LEAST_VARIANCE)
    swapped_covariance = (pair_parts * swapped_parts).sum(axis=2)
    swapped_covariance += weights.weighted_sums_by_relation(
        weights.residual * weights.swapped, cells.extra_variance
    )
    shared_variance = (self_parts[:, places.targets] * (pair_parts + swapped_parts)).sum(axis=2) / 2
    shared_variance += weights.weighted_sums_by_relation(
        weights.own * (weights.residual + weights.swapped) / 2, cells.extra_variance
    )

    both_variances = residual_variance + residual_variance[:, swapped_pairs]
    symmetric_variance = (both_variances + 2 * swapped_covariance) / 4
    antisymmetric_variance = (both_variances - 2 * swapped_covariance) / 4
    return _Residuals(
        self_term=beyond_fit[:, models, models],
        self_variance=np.maximum(self_variance, LEAST_VARIANCE),
        residual=residual,
        variance=residual_variance,
        symmetric=(residual + swapped_residual) / 2,
        symmetric_variance=np.maximum(symmetric_variance, TINY),
        antisymmetric=(residual - swapped_residual) / 2,
        antisymmetric_variance=np.maximum(antisymmetric_variance, TINY),
        shared_variance=shared_variance,
    )


def _pair_spread(residuals: _Residuals, places: _Places) -> _PairSpread:
    """Squares of the residuals' symmetric and antisymmetric part, beyond their noise."""
    symmetric_df = places.symmetric_df
    antisymmetric_df = places.antisymmetric_df
    symmetric_square = (residuals.symmetric**2).sum(axis=1) / symmetric_df
    antisymmetric_square = (residuals.antisymmetric**2).sum(axis=1) / antisymmetric_df
    symmetric_noise = residuals.symmetric_variance.sum(axis=1) / symmetric_df
    antisymmetric_noise = residuals.antisymmetric_variance.sum(axis=1) / antisymmetric_df
    symmetric_beyond = symmetric_square - symmetric_noise
    antisymmetric_beyond = antisymmetric_square - antisymmetric_noise
    beyond_noise = symmetric_beyond * symmetric_df + antisymmetric_beyond * antisymmetric_df
    beyond_noise = beyond_noise / (symmetric_df + antisymmetric_df)
    return _PairSpread(
        symmetric_square=symmetric_square,
        antisymmetric_square=antisymmetric_square,
        symmetric_beyond=symmetric_beyond,
        antisymmetric_beyond=antisymmetric_beyond,
        beyond_noise=np.maximum(beyond_noise, 0),
    )


def _misfit(
    measured: Moments,
    places: _Places,
    scale: "Scale",
    cells: _ScaledCells,
    residuals: _Residuals,
) -> FloatArray:
    """[R]: squared errors of the fitted off-diagonal means, in units of their variances."""
    fitted_levels = cells.levels[:, places.targets, places.observers] - residuals.residual
    fitted_means = np.clip(scale.inverse(fitted_levels), -1, 2)
    squared_errors = (fitted_means - measured.mean[:, places.pair_cells]) ** 2
    misfit = squared_errors / _bounded_variance(measured)[:, places.pair_cells]
    return np.asarray(misfit.sum(axis=1))


def _z_without_pair(residuals: _Residuals, places: _Places, weights: "FitWeights") -> FloatArray:
    """[R, pair]: z of the target's self term with what the pair shares fitted: s less a multiple of
    the pair's mean residual.
    """
    term_without_pair = (
        residuals.self_term[:, places.targets] - weights.pair_share * residuals.symmetric
    )
    variance_without_pair = (
        residuals.self_variance[:, places.targets]
        - 2 * weights.pair_share * residuals.shared_variance
        + weights.pair_share**2 * residuals.symmetric_variance
    )
    return np.asarray(term_without_pair / np.sqrt(np.maximum(variance_without_pair, TINY)))


def _on_scale(measured: Moments, scale: "Scale") -> _ScaledCells:
    size = math.isqrt(measured.mean.shape[1])
    square = (len(measured.mean), size, size)
    cell_values = measured.mean if scale.is_of_means else measured.share
    slopes = scale.slope(cell_values)
    factor = slopes[:, :, None] * measured.factor
    return _ScaledCells(
        levels=scale.transform(cell_values).reshape(square),
        factor=factor.reshape(*square, -1),
        extra_variance=(slopes**2 * _missing_variance(measured)).reshape(square),
    )


def _missing_variance(measured: Moments) -> FloatArray:
    """[R, cell]: what a variance lacks to the least one."""
    return np.asarray(np.maximum(measured.least_variance - measured.variance, 0))


def _bounded_variance(measured: Moments) -> FloatArray:
    """[R, cell]."""
    return np.asarray(np.maximum(measured.variance + _missing_variance(measured), TINY))


def _pooled_df(
    symmetric_share: FloatArray, antisymmetric_share: FloatArray, places: _Places
) -> FloatArray:
    """Satterthwaite's degrees of freedom [R] of a sum of two squares [R]."""
    sum_of_squares = (
        symmetric_share**2 / places.symmetric_df + antisymmetric_share**2 / places.antisymmetric_df
    )
    pooled = (symmetric_share + antisymmetric_share) ** 2 / np.maximum(sum_of_squares, 1e-300)
    fewest = min(places.symmetric_df, places.antisymmetric_df)
    return np.asarray(np.where(sum_of_squares > 0, pooled, fewest))


def _above_zero_p(measured: Moments, places: _Places) -> FloatArray:
    """[R, model]."""
    own_variance = _bounded_variance(measured)[:, places.own_cells]
    z = measured.mean[:, places.own_cells] / np.sqrt(own_variance)
    return _upper_tail(z, measured.units - 1)


def _without_likest_p(
    evidences: Sequence[_ScaleEvidence], places: _Places, noise_df: float
) -> FloatArray:
    """p [R, model] of the self term without the pair that matters most, on the scale that says
    least; 0 without a likeness.
    """
    likeness_z = np.min([evidence.likeness_z for evidence in evidences], axis=0)
    self_term_z = np.min([evidence.z_without_pair for evidence in evidences], axis=0)
    pairs_of_model = len(places.models) - 1
    likeness_p = _upper_tail(likeness_z, noise_df) * pairs_of_model
    is_alike = likeness_p < LIKENESS_P
    pair_p = np.where(is_alike, _upper_tail(self_term_z, noise_df), 0)
    model_p = [pair_p[:, places.targets == model].max(axis=1) for model in places.models]
    return np.stack(model_p, axis=1)


def _advantage_ends(
    inverse: Callable[[FloatArray], FloatArray],
    own_levels: FloatArray,
    self_term: FloatArray,
    half_width: FloatArray,
    own_means: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Ends of an interval of the own cell above the fit, as scored, [R, model].

    On a curved scale it matters whether the own cell or the fit is uncertain: the interval holds
    both.

    Args:
        inverse: Inverse of the scale.
        own_levels: Own cells on the scale [R, model].
        self_term: Own cells above the fit, on the scale [R, model].
        half_width: Half of the interval of the self term, on the scale.
        own_means: Own cells as scored [R, model].
    """
    are_shares = bool((own_means >= 0).all() and (own_means <= 1).all())
    limits = (0, 1) if are_shares else (-1, 2)

    def scores(levels: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.clip(inverse(levels), *limits)

    fitted = scores(own_levels - self_term)
    low_of_fit = own_means - scores(own_levels - self_term + half_width)
    high_of_fit = own_means - scores(own_levels - self_term - half_width)
    low_of_own = scores(own_levels - half_width) - fitted
    high_of_own = scores(own_levels + half_width) - fitted
    return np.minimum(low_of_fit, low_of_own), np.maximum(high_of_fit, high_of_own)


def fit_alone(measured: Moments) -> FloatArray:
    """[cell]: cell means of one matrix by skill and predictability alone, on the scale that fits
    the others best.
    """
    places = _Places(math.isqrt(measured.mean.shape[1]))
    size = len(places.models)
    lowest = measured.mean[:, places.pair_cells].min(axis=1, keepdims=True)
    fits_with_errors = list[tuple[float, FloatArray]]()
    for scale in _scales(lowest, floor=False).values():
        cell_values = measured.mean if scale.is_of_means else measured.share
        levels = scale.transform(cell_values[:1]).reshape(1, size, size)
        ease, skill = additive_effects(levels)
        fitted_means = scale.inverse((ease[0, :, None] + skill[0]).ravel())
        squared_errors = np.square(fitted_means - measured.mean[0])
        error = float(squared_errors[places.pair_cells].sum())
        fits_with_errors.append((error, fitted_means))
    _, best_fit = min(fits_with_errors, key=lambda error_and_fit: error_and_fit[0])
    return np.asarray(np.clip(best_fit, 0, 1))


def additive_effects(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least-squares effects [R, model, …] of targets and of observers, with equal sums, on the
    off-diagonal cells.

    Args:
        y: [R, target, observer, …]; what stands on the diagonal is in no fit.
    """
    size = y.shape[1]
    models = np.arange(size)
    diagonal_values = y[:, models, models]
    target_sums = y.sum(axis=2) - diagonal_values
    observer_sums = y.sum(axis=1) - diagonal_values
    effects_sum = target_sums.sum(axis=1, keepdims=True) / (2 * (size - 1))
    target_sums = target_sums - effects_sum
    observer_sums = observer_sums - effects_sum
    determinant = size * (size - 2)
    ease = ((size - 1) * target_sums + observer_sums) / determinant
    skill = (target_sums + (size - 1) * observer_sums) / determinant
    return ease, skill


def less_fit(y: FloatArray) -> FloatArray:
    """`y  # [R, target, observer, …]` less the additive fit to its off-diagonal cells: residuals;
    s on the diagonal.
    """
    ease, skill = additive_effects(y)
    return np.asarray(y - ease[:, :, None] - skill[:, None])


def _itself_above_others_p(
    evidences: Sequence[_ScaleEvidence], places: _Places, noise_df: float
) -> FloatArray:
    """p [R, model] that an observer that stands out on another target beats itself on every other
    one; 0 for those that do not stand out.

    The contrast is its score on itself less that on j, compared with the others' scores on both.
    """
    size = len(places.models)
    # The largest p of all scales is that of the smallest z.
    least_residual_z = np.min([evidence.residual_z for evidence in evidences], axis=0)
    stands_out = _upper_tail(least_residual_z, noise_df) * (size - 1) < EXPERT_P
    p_values = np.zeros((len(stands_out), size))
    for model in map(int, places.models):
        is_expert = stands_out[:, places.observers == model].any(axis=1)
        experts = np.flatnonzero(is_expert)
        if not len(experts):
            continue
        p_by_scale = []
        for evidence in evidences:
            cells = evidence.cells
            contrast = _contrast(_cells_of_contrast(cells.levels[experts], model), size)
            contrast_parts = _contrast(_cells_of_contrast(cells.factor[experts], model), size)
            extra = _cells_of_contrast(cells.extra_variance[experts], model)
            variance = (
                np.square(contrast_parts).sum(axis=2)
                + extra.own
                + extra.on_other
                + (extra.rest_own + extra.rest_other) / (size - 2) ** 2
            )
            z = contrast / np.sqrt(np.maximum(variance, LEAST_VARIANCE))
            p_by_scale.append(_upper_tail(z, noise_df))
        p_values[experts, model] = np.max(p_by_scale, axis=(0, 2))
    return p_values


@dataclass(frozen=True)
class _ContrastCells:
    """Cells of observer i and of the others on i and on each other target j, each [R, j, …]."""

    own: FloatArray
    """i on itself, [R, 1, …]."""
    on_other: FloatArray
    """i on j."""
    rest_own: FloatArray
    """Sum of the observers other than i and j on i."""
    rest_other: FloatArray
    """Sum of the observers other than i and j on j."""


def _contrast(cells: _ContrastCells, size: int) -> FloatArray:
    others_difference = (cells.rest_own - cells.rest_other) / (size - 2)
    return np.asarray(cells.own - cells.on_other - others_difference)


def _cells_of_contrast(cells: FloatArray, model: int) -> _ContrastCells:
    """The cells that the contrasts of one model are of.

    Args:
        cells: [R, target, observer, …].
        model: The observer i.
    """
    others = np.delete(np.arange(cells.shape[1]), model)
    target_sums = cells.sum(axis=2)
    own = cells[:, model, model][:, None]
    on_other = cells[:, others, model]
    others_on_own = cells[:, model, others]
    others_on_themselves = cells[:, others, others]
    return _ContrastCells(
        own=own,
        on_other=on_other,
        rest_own=target_sums[:, model][:, None] - own - others_on_own,
        rest_other=target_sums[:, others] - on_other - others_on_themselves,
    )


def _outsiders(measured: Moments) -> BoolArray:
    """The array `OwnCells.outsider` of one matrix."""
    size = math.isqrt(measured.mean.shape[1])
    is_outsider = np.zeros(size, dtype=bool)
    levels = special.logit(measured.share[:1]).reshape(1, size, size)
    (ease,), (skill,) = additive_effects(levels)
    effects = ease + skill
    candidate = int(np.argmin(effects))
    others = np.delete(np.arange(size), candidate)
    other_effects = np.sort(effects[others])
    if ease[candidate] >= ease[others].min() or skill[candidate] >= skill[others].min():
        return is_outsider
    if other_effects[0] - effects[candidate] < np.ptp(other_effects) / 2:
        return is_outsider

    weights = np.zeros((size, size))
    weights[np.ix_(others, others)] = -(1 - np.eye(size - 1)) / ((size - 1) * (size - 2))
    weights[candidate, candidate] = 1
    cell_weights = weights.ravel()
    variance = float(np.square(cell_weights @ measured.factor[0]).sum())
    variance = variance + measured.least_variance[0, candidate * (size + 1)]
    z = measured.mean[0] @ cell_weights / np.sqrt(variance)
    is_outsider[candidate] = _upper_tail(z, measured.units - 1) >= 0.05
    return is_outsider


def _upper_tail(z: FloatArray, df: FloatArray | float) -> FloatArray:
    """One-sided p by Student's t."""
    return np.asarray(special.stdtr(df, -np.asarray(z)))


@dataclass(frozen=True)
class Scale:
    """A scale of cell means."""

    transform: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    """Derivative of the transformation."""
    inverse: Callable[[FloatArray], FloatArray]
    is_of_means: bool = False
    """Whether it is of the means as they are, not of those kept off 0 and 1 (`Moments.share`)."""


def _scales(lowest: FloatArray, *, floor: bool) -> dict[str, Scale]:
    """Name → scale. A floor adds logarithms of what is above a share of the `lowest  # [R, 1]` cell
    of others.
    """
    scales = {
        "x": Scale(np.positive, np.ones_like, np.positive, is_of_means=True),
        "log": Scale(np.log, np.reciprocal, np.exp),
        "logit": Scale(special.logit, _logit_slope, special.expit),
        "failures": Scale(_log_failures, _log_failures_slope, _share_of_log_failures),
    }
    if floor:
        for floor_share in (0.5, 0.8):
            floors = floor_share * np.maximum(lowest, 0)
            scales[f"log above {floor_share}"] = _log_above(floors)
    return scales


def _logit_slope(shares: FloatArray) -> FloatArray:
    return 1 / (shares * (1 - shares))


def _log_failures(shares: FloatArray) -> FloatArray:
    return -np.log1p(-shares)


def _log_failures_slope(shares: FloatArray) -> FloatArray:
    return 1 / (1 - shares)


def _share_of_log_failures(levels: FloatArray) -> FloatArray:
    return -np.expm1(-levels)


def _log_above(floors: FloatArray) -> Scale:
    """Logarithm of what is above a floor [R, 1]."""

    def above_floor(means: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(means - floors, 1e-3))

    def log_above_floor(means: FloatArray) -> FloatArray:
        return np.log(above_floor(means))

    def slope_above_floor(means: FloatArray) -> FloatArray:
        return 1 / above_floor(means)

    def means_of_levels(levels: FloatArray) -> FloatArray:
        return np.exp(levels) + floors

    return Scale(log_above_floor, slope_above_floor, means_of_levels, is_of_means=True)


class FitWeights:
    """Weights of the cells in s and in the residuals of an additive fit to the off-diagonal cells
    of M models.

    What weight a cell (t', o') has in the residual of (t, o) depends on nothing but which of the
    four are the same model. Seven relations, in this order: the same cell; the same pair the other
    way round; t' = t; o' = o; t' = o; o' = t; none. A table of all weights would have a number for
    every two cells.
    """

    def __init__(self, size: int) -> None:
        mean_share = size / (size - 1)
        no_model = -mean_share
        one_model = size - 1 - mean_share
        two_models = 2 * (size - 1) - mean_share
        swapped = 2 - mean_share
        crossed = 1 + no_model
        fitted = np.array([two_models, swapped, one_model, one_model, crossed, crossed, no_model])
        fitted = fitted / (size * (size - 2))
        self.size = size
        self.residual = np.array([1.0, 0, 0, 0, 0, 0, 0]) - fitted
        """[relation]: weights of the residual of (t, o)."""
        self.swapped = self.residual[[1, 0, 4, 5, 2, 3, 6]]
        """[relation]: weights of the residual of (o, t)."""
        related_weight = -1 / (size - 1)
        unrelated_weight = 1 / ((size - 1) * (size - 2))
        self.own = np.array(
            [
                related_weight,
                related_weight,
                related_weight,
                unrelated_weight,
                unrelated_weight,
                related_weight,
                unrelated_weight,
            ]
        )
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

    def weighted_sums_by_relation(self, weights: FloatArray, values: FloatArray) -> FloatArray:
        """Sum [R, k] of weighted values over the off-diagonal cells, for each off-diagonal cell k =
        (t, o).

        Args:
            weights: [relation].
            values: [R, target, observer].
        """
        targets, observers = np.nonzero(~np.eye(self.size, dtype=bool))
        models = np.arange(self.size)
        diagonal_values = values[:, models, models]
        target_sums = values.sum(axis=2) - diagonal_values
        observer_sums = values.sum(axis=1) - diagonal_values
        same_cell = values[:, targets, observers]
        swapped_cell = values[:, observers, targets]
        related_sums = [
            target_sums[:, targets] - same_cell,
            observer_sums[:, observers] - same_cell,
            target_sums[:, observers] - swapped_cell,
            observer_sums[:, targets] - swapped_cell,
        ]
        total = target_sums.sum(axis=1, keepdims=True)
        unrelated_sum = total - same_cell - swapped_cell - sum(related_sums)
        relations = np.stack([same_cell, swapped_cell, *related_sums, unrelated_sum], axis=2)
        return np.asarray(relations @ weights)

    def own_variance(self, values: FloatArray) -> FloatArray:
        """Variance [R, model] of s, where `values  # [R, target, observer]` are variances of
        independent cells.
        """
        models = np.arange(self.size)
        diagonal_values = values[:, models, models]
        related_sum = values.sum(axis=2) + values.sum(axis=1) - 2 * diagonal_values
        off_diagonal = values.sum(axis=(1, 2))[:, None] - diagonal_values.sum(axis=1, keepdims=True)
        unrelated_sum = off_diagonal - related_sum
        own_variance = (
            diagonal_values + self.own[0] ** 2 * related_sum + self.own[3] ** 2 * unrelated_sum
        )
        return np.asarray(own_variance)
