"""Bradley–Terry scores of prompts from pairs with real conversations, with intervals, and whether
there is an order.

Won(i, j) ~ Bernoulli(logistic(mean + u_i − v_j)), u and v normal: a logistic regression with a
ridge. Without the ridge a prompt that lost its few pairs would score minus infinity. How far
prompts and real conversations differ is not known either: scores are averaged over a grid of both
standard deviations, each with its marginal likelihood (Laplace). Coverage by simulation:
docs/statistics.md.
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy import special

from selfprobe.stats.estimate import BoolArray, FloatArray, IntArray

NO_SPREAD = 0.05
"""Standard deviation that counts as none, in log-odds."""
PROMPT_SPREADS = (NO_SPREAD, 0.5, 1.0, 1.6, 2.3, 3.2, 4.5)
REAL_SPREADS = (NO_SPREAD, 0.8, 1.8, 3.2)
"""The grid: standard deviations of prompts and of real conversations."""
USUAL_SPREAD = 2.5
"""Scale of the half-normal prior of the standard deviations."""
MEAN_DEVIATION = 10.0
"""Standard deviation of the normal prior of the mean."""
SCORE_QUANTILE = 2.1
"""Number of standard errors to either side of a score."""
MEAN_CORRECTION = 0.5
"""Share of the first-order step from a mode to a mean that is taken. The whole step goes too far
where pairs are few, and without it scores far from zero are too near. With both numbers .93 to .97
of intervals hold the truth (docs/statistics.md); more do where all prompts are similar.
"""
NEGLIGIBLE_WEIGHT = 1e-3
"""Share of the weight below which a point of the grid is left out."""


@dataclass(frozen=True)
class Order:
    """Comparison of prompts with real conversations."""

    mean: float
    """Log-odds that the average prompt wins against the average real conversation."""
    scores: FloatArray
    """Log-odds that each prompt wins against the average real conversation [prompt]."""
    errors: FloatArray
    """Standard error of each score [prompt]."""
    distance_errors: FloatArray
    """Standard error of each score's distance to the mean [prompt]."""
    spread: float
    """Standard deviation of prompts."""
    p: float
    """p of no spread at all: likelihood ratio on the boundary (Self & Liang 1987); NaN where
    nothing was decided.
    """


def order(
    prompt_numbers: IntArray,
    real_numbers: IntArray,
    won: BoolArray,
    *,
    prompt_count: int,
    real_count: int,
) -> Order:
    """Scores of all prompts; those without a decided pair are at the mean.

    Args:
        prompt_numbers, real_numbers: Number of the prompt and of the real conversation, [pair]: of
            pairs that were decided alone. Given that both orders name the same one, what a judge
            makes of a position drops out of the odds.
        won: Whether the prompt was taken for real, [pair].
        prompt_count, real_count: Number of prompts, and of real conversations.
    """
    if not len(won):
        no_scores = np.full(prompt_count, math.nan)
        return Order(math.nan, no_scores, no_scores, no_scores, math.nan, math.nan)
    design = _design(prompt_numbers, real_numbers, prompt_count, real_count)
    outcomes = won.astype(float)

    fits: list[_Fit] = []
    start = np.zeros(1 + prompt_count + real_count)
    for prompt_spread, real_spread in product(PROMPT_SPREADS, REAL_SPREADS):
        prompt_deviations = np.full(prompt_count, prompt_spread)
        real_deviations = np.full(real_count, real_spread)
        deviations = np.r_[MEAN_DEVIATION, prompt_deviations, real_deviations]
        fit = _laplace(design, outcomes, deviations, start)
        fits.append(fit)
        start = fit.z

    marginals = np.array([fit.marginal for fit in fits])
    prior = np.outer(_prior_weights(PROMPT_SPREADS), _prior_weights(REAL_SPREADS)).ravel()
    posterior = special.softmax(marginals + np.log(prior))
    is_negligible = posterior < NEGLIGIBLE_WEIGHT
    weights = np.where(is_negligible, 0, posterior) / posterior[~is_negligible].sum()
    weighted_fits = [
        (weight, fit.of_prompts(prompt_count))
        for weight, fit in zip(weights, fits, strict=True)
        if weight
    ]

    def mixed(name: str) -> Any:
        return sum(weight * getattr(numbers, name) for weight, numbers in weighted_fits)

    def variance_between(name: str) -> Any:
        """Variance of the points' means about the overall mean."""
        mean = mixed(name)
        return sum(
            weight * (getattr(numbers, name) - mean) ** 2 for weight, numbers in weighted_fits
        )

    grid_spreads = np.repeat(PROMPT_SPREADS, len(REAL_SPREADS))
    marginals_without_spread = marginals[: len(REAL_SPREADS)]
    ratio = 2 * (marginals.max() - marginals_without_spread.max())
    return Order(
        mean=float(mixed("mean")),
        scores=mixed("scores"),
        errors=np.sqrt(mixed("score_variances") + variance_between("scores")),
        distance_errors=np.sqrt(mixed("distance_variances") + variance_between("distances")),
        spread=float(sum(weights * grid_spreads)),
        p=0.5 * float(special.chdtrc(1, ratio)) if ratio > 0 else 1.0,
    )


@dataclass(frozen=True)
class _PromptNumbers:
    """The prompts at one point of the grid."""

    mean: float
    scores: FloatArray
    score_variances: FloatArray
    distances: FloatArray
    """Distances to the mean, [prompt]."""
    distance_variances: FloatArray


@dataclass(frozen=True)
class _Fit:
    """One point of the grid."""

    marginal: float
    z: FloatArray
    """Coefficients in units of their prior standard deviations."""
    deviations: FloatArray
    solve: Any
    """Function that solves a linear system with the Hessian."""

    scaled_design: Any
    """Design matrix in those units, sparse [pair, column]."""

    def of_prompts(self, prompt_count: int) -> _PromptNumbers:
        """Posterior means and variances of so many prompts."""
        covariance = self.solve(np.eye(len(self.z)))
        coefficients = self._posterior_mean(covariance) * self.deviations
        mean = coefficients[0]
        prompt_columns = slice(1, 1 + prompt_count)
        distances = coefficients[prompt_columns]
        prompt_deviations = self.deviations[prompt_columns]
        distance_variances = np.diag(covariance)[prompt_columns] * prompt_deviations**2
        mean_variance = covariance[0, 0] * MEAN_DEVIATION**2
        covariances_with_mean = covariance[0, prompt_columns] * prompt_deviations * MEAN_DEVIATION
        return _PromptNumbers(
            mean=float(mean),
            scores=mean + distances,
            score_variances=distance_variances + mean_variance + 2 * covariances_with_mean,
            distances=distances,
            distance_variances=distance_variances,
        )

    def _posterior_mean(self, covariance: FloatArray) -> FloatArray:
        """z moved from its mode towards its mean (Tierney, Kass & Kadane 1989, JASA 84:710)."""
        p = special.expit(self.scaled_design @ self.z)
        design_covariance = self.scaled_design @ covariance
        leverage = np.asarray(self.scaled_design.multiply(design_covariance).sum(axis=1)).ravel()
        pull = self.scaled_design.T @ (p * (1 - p) * (1 - 2 * p) * leverage)
        return np.asarray(self.z - MEAN_CORRECTION * self.solve(pull) / 2)


def _laplace(design: Any, outcomes: FloatArray, deviations: FloatArray, start: FloatArray) -> _Fit:
    """A ridge logistic regression by Newton's method, and its marginal likelihood."""
    from scipy.sparse import diags, identity
    from scipy.sparse.linalg import splu

    scaled_design = design @ diags(deviations)
    z = start.copy()
    ridge = identity(len(start), format="csc")
    for _ in range(50):
        p = special.expit(scaled_design @ z)
        hessian = scaled_design.T @ diags(p * (1 - p)) @ scaled_design + ridge
        factors = splu(hessian.tocsc())
        step = factors.solve(scaled_design.T @ (outcomes - p) - z)
        z += step
        if np.abs(step).max() < 1e-6:
            break
    log_odds = scaled_design @ z
    log_posterior = float(outcomes @ log_odds - np.logaddexp(0, log_odds).sum() - z @ z / 2)
    log_determinant = float(np.log(np.abs(factors.U.diagonal())).sum())
    marginal = log_posterior - log_determinant / 2
    return _Fit(marginal, z, deviations, factors.solve, scaled_design)


def _design(
    prompt_numbers: IntArray, real_numbers: IntArray, prompt_count: int, real_count: int
) -> Any:
    """The mean, the prompts and the real conversations as columns; sparse, since a pair has one
    prompt.
    """
    from scipy.sparse import csc_matrix

    pair_count = len(prompt_numbers)
    ones = np.ones(pair_count)
    values = np.concatenate([ones, ones, -ones])
    rows = np.tile(np.arange(pair_count), 3)
    mean_columns = np.zeros(pair_count, dtype=np.intp)
    columns = np.concatenate([mean_columns, 1 + prompt_numbers, 1 + prompt_count + real_numbers])
    return csc_matrix((values, (rows, columns)), (pair_count, 1 + prompt_count + real_count))


def _prior_weights(spreads: tuple[float, ...]) -> FloatArray:
    """Prior weight of each standard deviation."""
    points = np.array(spreads)
    densities = np.exp(-((points / USUAL_SPREAD) ** 2) / 2)
    return np.asarray(np.gradient(points) * densities)
