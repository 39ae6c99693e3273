"""Knowledge of oneself beyond knowledge of the items: what is left of a statement, and whether
items hide domains.

Whoever knows which items are hard ranks the successes of every model. Two questions ask for more.
Within strata of items that as many models solved, does a statement still rank its model's outcomes?
And what is left of a statement beyond what other observers state of the same items, does that rank
them? The second holds where items come of domains in which models have other strengths, and where
models differ in how steeply they fail, which no strata cure; rates: docs/statistics.md.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import FloatArray

LOGIT_CLIP = 0.01
"""Least distance of stated chances from 0 and 1 on the logit scale."""
STRATA_DRAWS = 999
MOST_MODELS = 12
"""Largest number of models whose patterns are enumerated."""
FITTING_STEPS = 200
SCORE_TIE = 1e-9
LEFT_DECIMALS = 9
"""Decimals of what is left: what a line leaves of a constant is no order of items."""


def left_of_statement(stated: npt.ArrayLike, others: npt.ArrayLike) -> FloatArray:
    """What is left of a statement beyond the line through the mean of other observers' statements,
    in logits, [item].

    Args:
        stated: Chances that the model stated about itself, `[item]`.
        others: Chances that other observers stated about the same items, `[observer, item]`, NaN
            where unknown.
    """
    own_logits = special.logit(np.clip(np.asarray(stated, dtype=float), LOGIT_CLIP, 1 - LOGIT_CLIP))
    chances = np.asarray(others, dtype=float)
    counts = (~np.isnan(chances)).sum(axis=0)
    means = np.nansum(chances, axis=0) / np.where(counts, counts, math.nan)
    item_logits = special.logit(np.clip(means, LOGIT_CLIP, 1 - LOGIT_CLIP))
    is_known = ~np.isnan(own_logits) & ~np.isnan(item_logits)
    left = np.full(len(own_logits), math.nan)
    if not is_known.any():
        return left
    if np.ptp(item_logits[is_known]) <= SCORE_TIE:
        left[is_known] = own_logits[is_known]
        return left
    slope, intercept = np.polyfit(item_logits[is_known], own_logits[is_known], 1)
    left[is_known] = own_logits[is_known] - (slope * item_logits[is_known] + intercept)
    return np.asarray(left.round(LEFT_DECIMALS))


def without_own_outcomes(
    stated: npt.ArrayLike, outcomes: npt.ArrayLike, strata: npt.ArrayLike
) -> FloatArray:
    """An observer's chances less what they tell of its own outcomes, [item]: what it states of the
    items.

    Among items that as many models solved, another model's success makes the observer's less
    likely. So what an observer knows of itself, turned round, would count as knowledge of the other
    model.

    Args:
        stated: Chances that the observer stated, `[item]`, NaN where unknown.
        outcomes: The observer's outcomes, `[item]`, NaN where unknown.
        strata: Items on which as many models succeeded, the observer among them, `[item]`.
    """
    logits = special.logit(np.clip(np.asarray(stated, dtype=float), LOGIT_CLIP, 1 - LOGIT_CLIP))
    own_outcomes = np.asarray(outcomes, dtype=float)
    is_known = ~np.isnan(logits) & ~np.isnan(own_outcomes)
    if not is_known.any():
        return np.asarray(special.expit(logits))
    labels = np.unique(np.asarray(strata)[is_known], return_inverse=True)[1]
    centred_logits = _centred(logits[is_known], labels)
    centred_outcomes = _centred(own_outcomes[is_known], labels)
    spread = float(centred_outcomes @ centred_outcomes)
    if spread > SCORE_TIE:
        slope = float(centred_outcomes @ centred_logits) / spread
        logits[is_known] -= slope * (own_outcomes[is_known] - own_outcomes[is_known].mean())
    return np.asarray(special.expit(logits))


def _centred(values: FloatArray, labels: npt.NDArray[np.intp]) -> FloatArray:
    """Values less the mean of their stratum."""
    return np.asarray(values - (np.bincount(labels, values) / np.bincount(labels))[labels])


def within_strata_p(
    stated: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    strata: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    draws: int = STRATA_DRAWS,
) -> float:
    """One-sided p that a statement ranks outcomes within strata: statements are exchanged among
    items of a stratum.

    Exact for independent items, however small the strata are. The statistic is the rank sum of the
    successes by stratum, which is how `stratified_auroc` counts pairs. NaN where no stratum holds
    both outcomes.

    Args:
        stated: `[item]`, without NaN.
        outcomes: Outcomes in 0..1, `[item]`.
        strata: Label of each item's stratum, `[item]`.
        rng: Generator of the exchanges.
        draws: Number of exchanges.
    """
    values = np.asarray(stated, dtype=float)
    labels = np.unique(np.asarray(strata), return_inverse=True)[1]
    order = np.lexsort((values, labels))
    sorted_labels = labels[order]
    successes = np.asarray(outcomes, dtype=float)[order]
    ranks = _centred_ranks(values[order], sorted_labels)
    if not _varies_within(successes, sorted_labels):
        return math.nan
    real = float(ranks @ successes)
    keys = sorted_labels[None] + rng.random((draws, len(values)))
    drawn = ranks[np.argsort(keys, axis=1)] @ successes
    return float((1 + (drawn >= real - SCORE_TIE).sum()) / (draws + 1))


def _centred_ranks(values: FloatArray, labels: npt.NDArray[np.intp]) -> FloatArray:
    """Rank of each value within its stratum, ties by half, with the mean 0; rows are sorted by
    stratum and value.
    """
    first = np.searchsorted(labels, labels)
    sizes = np.searchsorted(labels, labels, side="right") - first
    places = np.arange(len(labels)) - first
    pairs = np.stack([labels.astype(float), values], axis=1)
    ties = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
    mean_places = np.bincount(ties, places) / np.bincount(ties)
    return np.asarray(mean_places[ties] - (sizes - 1) / 2)


def _varies_within(successes: FloatArray, labels: npt.NDArray[np.intp]) -> bool:
    """Whether some stratum holds different outcomes."""
    highest = np.maximum.reduceat(successes, np.flatnonzero(np.diff(labels, prepend=-1)))
    lowest = np.minimum.reduceat(successes, np.flatnonzero(np.diff(labels, prepend=-1)))
    return bool((highest > lowest).any())


@dataclass(frozen=True)
class _PatternGroup:
    """Patterns of successes in which as many models solved an item."""

    indices: npt.NDArray[np.intp]
    """Which of all patterns they are."""
    patterns: FloatArray
    """[pattern, model] of 0 and 1."""
    items: int
    """Number of items with such a pattern."""


def hidden_domains_p(
    outcomes: npt.ArrayLike, *, rng: np.random.Generator, draws: int = 199
) -> float:
    """p that models differ in skill and items in difficulty alone (Rasch 1960), from outcomes of
    0 or 1, `[model, item]`.

    Given how many models solved an item, which ones did depends on their skills alone; the null
    draws such patterns. The statistic is the largest eigenvalue of the models' covariance beyond
    what such draws have: items of two domains in which models have other strengths make it large. A
    p above 5 % closes nothing below 5 models × 800 items or 10 × 200. NaN with fewer than 3 models
    or more than MOST_MODELS.
    """
    table = np.asarray(outcomes, dtype=float)
    models = len(table)
    if not 3 <= models <= MOST_MODELS:
        return math.nan
    patterns = np.array(list(product((0, 1), repeat=models)), dtype=float)
    weights = 1 << np.arange(models)[::-1]
    pattern_of_item = table.astype(int).T @ weights
    counts = np.bincount(pattern_of_item, minlength=len(patterns)).astype(float)
    groups = _pattern_groups(patterns, counts)
    chances = _fitted_chances(groups, patterns, counts)
    return _eigenvalue_p(groups, chances, counts, models, rng=rng, draws=draws)


def _pattern_groups(patterns: FloatArray, counts: FloatArray) -> list[_PatternGroup]:
    solved = patterns.sum(axis=1).astype(int)
    groups = []
    for number in range(1, patterns.shape[1]):
        indices = np.flatnonzero(solved == number)
        groups.append(_PatternGroup(indices, patterns[indices], int(counts[indices].sum())))
    return groups


def _fitted_chances(
    groups: list[_PatternGroup], patterns: FloatArray, counts: FloatArray
) -> list[FloatArray]:
    """Chance of each pattern given its number of successes, at the skills of greatest conditional
    likelihood.
    """
    informative = counts.copy()
    informative[[0, -1]] = 0  # nobody or everybody solved the item
    solved_by_model = informative @ patterns
    skills = np.zeros(patterns.shape[1])
    for _ in range(FITTING_STEPS):
        chances = [_conditional_chances(group, skills) for group in groups]
        expected = np.zeros(len(skills))
        for group, chance in zip(groups, chances, strict=True):
            expected += group.items * (chance @ group.patterns)
        change = np.log((solved_by_model + 0.25) / (expected + 0.25))
        skills += change
        if np.abs(change).max() < 1e-4:
            break
    return [_conditional_chances(group, skills) for group in groups]


def _conditional_chances(group: _PatternGroup, skills: FloatArray) -> FloatArray:
    weights = np.exp(group.patterns @ skills)
    return np.asarray(weights / weights.sum())


def _eigenvalue_p(
    groups: list[_PatternGroup],
    chances: list[FloatArray],
    counts: FloatArray,
    models: int,
    *,
    rng: np.random.Generator,
    draws: int,
) -> float:
    residuals = [
        group.patterns - chance @ group.patterns
        for group, chance in zip(groups, chances, strict=True)
    ]
    covariances = [
        (chance[:, None] * residual).T @ residual
        for chance, residual in zip(chances, residuals, strict=True)
    ]
    outer_products = [
        (residual[:, :, None] * residual[:, None, :]).reshape(len(residual), -1)
        for residual in residuals
    ]
    expected = sum(
        (group.items * covariance for group, covariance in zip(groups, covariances, strict=True)),
        start=np.zeros((models, models)),
    )
    scale = np.sqrt(np.maximum(SCORE_TIE, np.diag(expected)))

    def largest_eigenvalues(tables: list[FloatArray]) -> FloatArray:
        """Largest eigenvalue of each draw, from the counts [draw, pattern] of each group."""
        observed = np.zeros((len(tables[0]), models, models))
        for table, products in zip(tables, outer_products, strict=True):
            observed += (table @ products).reshape(-1, models, models)
        excess = (observed - expected) / np.outer(scale, scale)
        return np.asarray(np.linalg.eigvalsh(excess)[:, -1])

    real = largest_eigenvalues([counts[group.indices][None] for group in groups])[0]
    drawn_tables = [
        rng.multinomial(group.items, chance, size=draws).astype(float)
        for group, chance in zip(groups, chances, strict=True)
    ]
    drawn = largest_eigenvalues(drawn_tables)
    return float((1 + (drawn >= real).sum()) / (draws + 1))
