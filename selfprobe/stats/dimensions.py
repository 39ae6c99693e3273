"""Number of dimensions in which the stated chances of several models vary over items."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import FloatArray, IntArray

FEWEST_COMPARED_MODELS = 4
FEWEST_COMPARED_ITEMS = 20
NULL_QUANTILE = 0.95
NULL_DRAWS = 199
LOGIT_CLIP = 0.01


@dataclass(frozen=True)
class Dimensions:
    """Eigenvalues of the correlations of models' statements over items, the largest first."""

    count: int | None
    """Number of leading eigenvalues above those of the null; None where there are none."""
    eigenvalues: FloatArray
    null_eigenvalues: FloatArray
    """95 % quantile of each by chance."""
    reason: str = ""
    """Why there are none."""


def count_dimensions(chances: npt.ArrayLike, clusters: IntArray) -> Dimensions:
    """Number of dimensions in which models' stated chances vary over items, by parallel analysis
    (Horn 1965): the null shuffles the items of each model.

    Args:
        chances: `[model, item]`; items that a model stated nothing of do not count.
        clusters: `[item]`; the mean logit of each cluster counts.
    """
    values = np.asarray(chances, dtype=float)
    if len(values) < FEWEST_COMPARED_MODELS:
        return _no_dimensions("models", len(values), FEWEST_COMPARED_MODELS)
    is_complete = ~np.isnan(values).any(axis=0)
    logits = special.logit(np.clip(values[:, is_complete], LOGIT_CLIP, 1 - LOGIT_CLIP))
    cluster_numbers = np.unique(clusters[is_complete], return_inverse=True)[1]
    cluster_sizes = np.bincount(cluster_numbers)
    if len(cluster_sizes) < FEWEST_COMPARED_ITEMS:
        return _no_dimensions(
            "items with all statements", len(cluster_sizes), FEWEST_COMPARED_ITEMS
        )
    means = np.array([np.bincount(cluster_numbers, row) / cluster_sizes for row in logits])
    means = means[np.ptp(means, axis=1) > 0]
    if len(means) < FEWEST_COMPARED_MODELS:
        return _no_dimensions(
            "models with statements that differ", len(means), FEWEST_COMPARED_MODELS
        )

    rng = np.random.default_rng(0)
    eigenvalues = _sorted_eigenvalues(means)
    null_draws = []
    for _ in range(NULL_DRAWS):
        shuffled_means = rng.permuted(means, axis=1)
        null_draws.append(_sorted_eigenvalues(shuffled_means))
    null_eigenvalues = np.quantile(null_draws, NULL_QUANTILE, axis=0, method="weibull")
    is_above = eigenvalues > null_eigenvalues
    count = int(np.cumprod(is_above).sum())
    return Dimensions(count, eigenvalues, null_eigenvalues)


def _no_dimensions(units: str, count: int, fewest: int) -> Dimensions:
    reason = f"{units}: {count}; {fewest} are the least"
    return Dimensions(None, np.zeros(0), np.zeros(0), reason)


def _sorted_eigenvalues(rows: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.eigvalsh(np.corrcoef(rows))[::-1])
