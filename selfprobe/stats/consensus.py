"""Cells that a shared difficulty of the items alone would give, whoever knows nothing of itself.

At each item some answer leads by a margin d, drawn from a normal distribution. Target t gives that
answer with probability expit(ease[t] + d), observer o predicts it with expit(skill[o] + d),
independently given d:

    cell[t, o] = E[expit(ease[t] + d) expit(skill[o] + d)]

Ease and skill are fitted to the cells off the diagonal; the spread of d is the one that gives the
covariance over items of cells that share neither target nor observer. What stands on the diagonal
is in no fit.
"""

import numpy as np
from scipy import special

from selfprobe.stats.estimate import FloatArray

SPREADS = np.array([0.0, 0.35, 0.7, 1.0, 1.5, 2.0, 2.75, 4.0])
"""Standard deviations of d that are tried, in logits; between two of them the cells are
interpolated.
"""
STEPS_OF_FIT = 30
LARGEST_LOGIT = 8.0


NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()


def expected_own_cells(x: FloatArray) -> FloatArray:
    """Own cells [model] that a shared difficulty of the items gives without any knowledge of
    oneself.

    Args:
        x: Scores in [0, 1], [target, observer, item]; NaN where unscored. Four models or more.
    """
    means = np.nanmean(x, axis=2)
    covariance = _unrelated_covariance(x)
    off = ~np.eye(len(means), dtype=bool)
    mean_share = np.sqrt(np.clip(means[off].mean(), 0, 1))
    start = special.logit(np.clip(mean_share, 0.02, 0.98))
    ease, skill = np.full(len(means), start), np.full(len(means), start)
    own_cells: list[FloatArray] = []
    covariances: list[float] = []
    for spread in SPREADS:
        ease, skill = _fitted(means, spread, ease, skill)
        of_targets, of_observers = _shares(ease, spread), _shares(skill, spread)
        own_cells.append((of_targets * of_observers) @ NODE_WEIGHTS)
        covariances.append(_model_covariance(of_targets, of_observers))
        if covariances[-1] >= covariance:
            break
    if covariances[-1] < covariance or len(covariances) == 1:
        return own_cells[-1]
    rise = covariances[-1] - covariances[-2]
    weight = np.clip((covariance - covariances[-2]) / max(rise, 1e-12), 0, 1)
    return np.asarray(own_cells[-2] * (1 - weight) + own_cells[-1] * weight)


def _shares(levels: FloatArray, spread: float) -> FloatArray:
    """Chance of the leading answer [model, node]."""
    return np.asarray(special.expit(levels[:, None] + spread * NODES))


def _unrelated_covariance(x: FloatArray) -> float:
    """Mean covariance over items of off-diagonal cells that share neither target nor observer."""
    centred = np.nan_to_num(x - np.nanmean(x, axis=2, keepdims=True))
    return float(_unrelated_products(centred).mean())


def _model_covariance(of_targets: FloatArray, of_observers: FloatArray) -> float:
    """The same by shares of the leading answer [model, node]."""
    cells = of_targets[:, None] * of_observers[None]
    means = cells @ NODE_WEIGHTS
    return float(_unrelated_products(cells - means[:, :, None]) @ NODE_WEIGHTS)


def _unrelated_products(centred: FloatArray) -> FloatArray:
    """Mean product of two off-diagonal cells [place] that share neither target nor observer.

    Args:
        centred: [target, observer, place], where a place is an item or a node.
    """
    size = len(centred)
    own = np.arange(size)
    cells = centred.copy()
    cells[own, own] = 0
    all_pairs = np.square(cells.sum(axis=(0, 1)))
    of_one_target = np.square(cells.sum(axis=1)).sum(axis=0)
    of_one_observer = np.square(cells.sum(axis=0)).sum(axis=0)
    of_one_cell = np.square(cells).sum(axis=(0, 1))
    count = size * (size - 1) * (size**2 - 3 * size + 3)
    return np.asarray((all_pairs - of_one_target - of_one_observer + of_one_cell) / count)


def _fitted(
    means: FloatArray, spread: float, ease: FloatArray, skill: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ease and skill [model] that give the row and column sums of the cells off the diagonal."""
    off = (~np.eye(len(means), dtype=bool)).astype(float)
    row_sums, column_sums = (means * off).sum(axis=1), (means * off).sum(axis=0)
    for _ in range(STEPS_OF_FIT):
        of_others = off @ _shares(skill, spread)
        ease = _newton_step(ease, spread, of_others, row_sums)
        of_others = off @ _shares(ease, spread)
        skill = _newton_step(skill, spread, of_others, column_sums)
    return ease, skill


def _newton_step(
    levels: FloatArray, spread: float, of_others: FloatArray, sums: FloatArray
) -> FloatArray:
    """Levels [model] that come closer to E[expit(level + d) of_others] = sums."""
    shares = _shares(levels, spread)
    value = (shares * of_others) @ NODE_WEIGHTS
    slope = (shares * (1 - shares) * of_others) @ NODE_WEIGHTS
    step = (sums - value) / np.maximum(slope, 1e-6)
    return np.clip(levels + np.clip(step, -1, 1), -LARGEST_LOGIT, LARGEST_LOGIT)
