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
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import FloatArray

IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

NONE = 0.05
"""Standard deviation that counts as none, in log-odds."""
PROMPTS = (NONE, 0.5, 1.0, 1.6, 2.3, 3.2, 4.5)
REAL = (NONE, 0.8, 1.8, 3.2)
"""The grid: standard deviations of prompts and of real conversations."""
USUAL, WIDE = 2.5, 10.0
"""Prior scales: the standard deviations are half-normal with USUAL, and the mean is normal with
WIDE.
"""
QUANTILE = 2.1
"""Number of standard errors to either side of a score."""
CORRECTION = 0.5
"""Share of the first-order step from a mode to a mean that is taken. The whole step goes too far
where pairs are few, and without it scores far from zero are too near. With both numbers .93 to .97
of intervals hold the truth (docs/statistics.md); more do where all prompts are similar.
"""
SMALL = 1e-3
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
    apart: FloatArray
    """Standard error of each score's distance to the mean [prompt]."""
    spread: float
    """Standard deviation of prompts."""
    p: float
    """p of no spread at all: likelihood ratio on the boundary (Self & Liang 1987); NaN where
    nothing was decided.
    """


def order(ours: IntArray, theirs: IntArray, won: BoolArray, *, prompts: int, real: int) -> Order:
    """Scores of all prompts; those without a decided pair are at the mean.

    Args:
        ours, theirs: Number of the prompt and of the real conversation, [pair]: of pairs that were
            decided alone. Given that both orders name the same one, what a judge makes of a
            position drops out of the odds.
        won: Whether the prompt was taken for real, [pair].
        prompts, real: Number of prompts, and of real conversations.
    """
    if not len(won):
        nothing = np.full(prompts, math.nan)
        return Order(math.nan, nothing, nothing, nothing, math.nan, math.nan)
    x, y, start = (
        _design(ours, theirs, prompts, real),
        won.astype(float),
        np.zeros(1 + prompts + real),
    )
    fits: list[tuple[float, _Fit]] = []
    for u, v in product(PROMPTS, REAL):
        fits.append((u, _laplace(x, y, np.r_[WIDE, np.full(prompts, u), np.full(real, v)], start)))
        start = fits[-1][1].z
    marginals = np.array([fit.marginal for _, fit in fits])
    prior = np.outer(_weights(PROMPTS), _weights(REAL)).ravel()
    weights = special.softmax(marginals + np.log(prior))
    weights = np.where(weights < SMALL, 0, weights) / weights[weights >= SMALL].sum()
    kept = [
        (weight, *fit.of_prompts(prompts))
        for weight, (_, fit) in zip(weights, fits, strict=True)
        if weight
    ]
    means, scores, errors, apart = (_mixed(kept, at) for at in (1, 2, 3, 5))
    ratio = 2 * (marginals.max() - marginals[: len(REAL)].max())
    return Order(
        mean=float(means),
        scores=scores,
        errors=np.sqrt(errors + _between(kept, 2)),
        apart=np.sqrt(apart + _between(kept, 4)),
        spread=float(sum(weight * u for weight, (u, _) in zip(weights, fits, strict=True))),
        p=0.5 * float(special.chdtrc(1, ratio)) if ratio > 0 else 1.0,
    )


@dataclass(frozen=True)
class _Fit:
    """One point of the grid."""

    marginal: float
    z: FloatArray
    """Coefficients in units of their prior standard deviations."""
    deviations: FloatArray
    solve: Any
    """Function that solves a linear system with the Hessian."""

    scaled: Any
    """Design matrix in those units, sparse [pair, column]."""

    def of_prompts(
        self, prompts: int
    ) -> tuple[float, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Mean; scores and their variances; distances to the mean and their variances [prompt]."""
        inverse, own = self.solve(np.eye(len(self.z))), slice(1, 1 + prompts)
        beta = self._centre(inverse) * self.deviations
        variances = np.diag(inverse)[own] * self.deviations[own] ** 2
        with_mean = inverse[0, own] * self.deviations[own] * WIDE
        errors = variances + inverse[0, 0] * WIDE**2 + 2 * with_mean
        return float(beta[0]), beta[0] + beta[own], errors, beta[own], variances

    def _centre(self, inverse: FloatArray) -> FloatArray:
        """Correction of z from its mode to its mean (Tierney, Kass & Kadane 1989, JASA 84:710)."""
        p = special.expit(self.scaled @ self.z)
        leverage = np.asarray(self.scaled.multiply(self.scaled @ inverse).sum(axis=1)).ravel()
        pull = self.scaled.T @ (p * (1 - p) * (1 - 2 * p) * leverage)
        return np.asarray(self.z - CORRECTION * self.solve(pull) / 2)


def _laplace(x: Any, y: FloatArray, deviations: FloatArray, start: FloatArray) -> _Fit:
    """A ridge logistic regression by Newton's method, and its marginal likelihood."""
    from scipy.sparse import diags, identity
    from scipy.sparse.linalg import splu

    scaled, z, ridge = x @ diags(deviations), start.copy(), identity(len(start), format="csc")
    for _ in range(50):
        p = special.expit(scaled @ z)
        factors = splu((scaled.T @ diags(p * (1 - p)) @ scaled + ridge).tocsc())
        step = factors.solve(scaled.T @ (y - p) - z)
        z += step
        if np.abs(step).max() < 1e-6:
            break
    linear = scaled @ z
    likelihood = float(y @ linear - np.logaddexp(0, linear).sum() - z @ z / 2)
    determinant = float(np.log(np.abs(factors.U.diagonal())).sum())
    return _Fit(likelihood - determinant / 2, z, deviations, factors.solve, scaled)


def _design(ours: IntArray, theirs: IntArray, prompts: int, real: int) -> Any:
    """The mean, the prompts and the real conversations as columns; sparse, since a pair has one
    prompt.
    """
    from scipy.sparse import csc_matrix

    rows, one = np.arange(len(ours)), np.ones(len(ours))
    columns = np.concatenate([np.zeros(len(ours), dtype=np.intp), 1 + ours, 1 + prompts + theirs])
    return csc_matrix(
        (np.concatenate([one, one, -one]), (np.tile(rows, 3), columns)),
        (len(ours), 1 + prompts + real),
    )


def _weights(grid: tuple[float, ...]) -> FloatArray:
    """Prior weight of each standard deviation."""
    points = np.array(grid)
    return np.asarray(np.gradient(points) * np.exp(-((points / USUAL) ** 2) / 2))


def _mixed(kept: list[tuple[Any, ...]], at: int) -> Any:
    return sum(parts[0] * parts[at] for parts in kept)


def _between(kept: list[tuple[Any, ...]], at: int) -> Any:
    """Variance of the points' means about the overall mean."""
    mean = _mixed(kept, at)
    return sum(parts[0] * (parts[at] - mean) ** 2 for parts in kept)
