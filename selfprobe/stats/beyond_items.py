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

from selfprobe.stats.draws import p_among_draws
from selfprobe.stats.estimate import FloatArray, IntArray

LOGIT_CLIP = 0.01
"""Least distance of stated chances from 0 and 1 on the logit scale."""
STRATA_DRAWS = 999
MOST_MODELS = 12
"""Largest number of models whose patterns are enumerated."""
FITTING_STEPS = 200
SCORE_TIE = 1e-9
RESIDUAL_DECIMALS = 9
"""Decimals of what is left: what a line leaves of a constant is no order of items."""


def statement_residuals(stated: npt.ArrayLike, others: npt.ArrayLike) -> FloatArray:
    """What is left of a statement beyond the line through the mean of other observers' statements,
    in logits, [item].

    Args:
        stated: Chances that the model stated about itself, `[item]`.
        others: Chances that other observers stated about the same items, `[observer, item]`, NaN
            where unknown.
    """
    own_logits = _clipped_logits(np.asarray(stated, dtype=float))
    observer_chances = np.asarray(others, dtype=float)
    observer_counts = (~np.isnan(observer_chances)).sum(axis=0)
    chance_sums = np.nansum(observer_chances, axis=0)
    mean_chances = chance_sums / np.where(observer_counts, observer_counts, math.nan)
    observer_logits = _clipped_logits(mean_chances)

    is_known = ~np.isnan(own_logits) & ~np.isnan(observer_logits)
    residuals = np.full(len(own_logits), math.nan)
    if not is_known.any():
        return residuals
    known_logits = observer_logits[is_known]
    if np.ptp(known_logits) <= SCORE_TIE:
        residuals[is_known] = own_logits[is_known]
        return residuals
    slope, intercept = np.polyfit(known_logits, own_logits[is_known], 1)
    residuals[is_known] = own_logits[is_known] - (slope * known_logits + intercept)
    return np.asarray(residuals.round(RESIDUAL_DECIMALS))


def _clipped_logits(chances: FloatArray) -> FloatArray:
    return np.asarray(special.logit(np.clip(chances, LOGIT_CLIP, 1 - LOGIT_CLIP)))


def chances_without_own_outcomes(
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
    logits = _clipped_logits(np.asarray(stated, dtype=float))
    own_outcomes = np.asarray(outcomes, dtype=float)
    is_known = ~np.isnan(logits) & ~np.isnan(own_outcomes)
    if not is_known.any():
        return np.asarray(special.expit(logits))

    known_outcomes = own_outcomes[is_known]
    stratum_numbers = np.unique(np.asarray(strata)[is_known], return_inverse=True)[1]
    centred_logits = _centred(logits[is_known], stratum_numbers)
    centred_outcomes = _centred(known_outcomes, stratum_numbers)
    outcome_spread = float(centred_outcomes @ centred_outcomes)
    if outcome_spread > SCORE_TIE:
        slope = float(centred_outcomes @ centred_logits) / outcome_spread
        logits[is_known] -= slope * (known_outcomes - known_outcomes.mean())
    return np.asarray(special.expit(logits))


def _centred(values: FloatArray, stratum_numbers: IntArray) -> FloatArray:
    """Values less the mean of their stratum."""
    stratum_means = np.bincount(stratum_numbers, values) / np.bincount(stratum_numbers)
    return np.asarray(values - stratum_means[stratum_numbers])


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
    stratum_numbers = np.unique(np.asarray(strata), return_inverse=True)[1]
    item_order = np.lexsort((values, stratum_numbers))
    sorted_stratum_numbers = stratum_numbers[item_order]
    successes = np.asarray(outcomes, dtype=float)[item_order]
    if not _varies_within(successes, sorted_stratum_numbers):
        return math.nan

    ranks = _centred_ranks(values[item_order], sorted_stratum_numbers)
    real_sum = float(ranks @ successes)
    shuffle_keys = sorted_stratum_numbers[None] + rng.random((draws, len(values)))
    drawn_sums = ranks[np.argsort(shuffle_keys, axis=1)] @ successes
    reaching_count = (drawn_sums >= real_sum - SCORE_TIE).sum()
    return float(p_among_draws(reaching_count, draws))


def _centred_ranks(values: FloatArray, stratum_numbers: IntArray) -> FloatArray:
    """Rank of each value within its stratum, ties by half, with the mean 0; rows are sorted by
    stratum and value.
    """
    stratum_starts = np.searchsorted(stratum_numbers, stratum_numbers)
    stratum_sizes = np.searchsorted(stratum_numbers, stratum_numbers, side="right") - stratum_starts
    ranks = np.arange(len(stratum_numbers)) - stratum_starts
    stratum_values = np.stack([stratum_numbers.astype(float), values], axis=1)
    tie_groups = np.unique(stratum_values, axis=0, return_inverse=True)[1].ravel()
    mean_ranks = np.bincount(tie_groups, ranks) / np.bincount(tie_groups)
    return np.asarray(mean_ranks[tie_groups] - (stratum_sizes - 1) / 2)


def _varies_within(successes: FloatArray, stratum_numbers: IntArray) -> bool:
    """Whether some stratum holds different outcomes."""
    stratum_starts = np.flatnonzero(np.diff(stratum_numbers, prepend=-1))
    highest = np.maximum.reduceat(successes, stratum_starts)
    lowest = np.minimum.reduceat(successes, stratum_starts)
    return bool((highest > lowest).any())


@dataclass(frozen=True)
class _PatternGroup:
    """Patterns of successes in which as many models solved an item."""

    indices: IntArray
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
    model_count = len(table)
    if not 3 <= model_count <= MOST_MODELS:
        return math.nan
    patterns = np.array(list(product((0, 1), repeat=model_count)), dtype=float)
    bit_weights = 1 << np.arange(model_count)[::-1]
    pattern_by_item = table.astype(int).T @ bit_weights
    counts = np.bincount(pattern_by_item, minlength=len(patterns)).astype(float)
    groups = _pattern_groups(patterns, counts)
    chances = _fitted_chances(groups, patterns, counts)
    return _eigenvalue_p(groups, chances, counts, model_count, rng=rng, draws=draws)


def _pattern_groups(patterns: FloatArray, counts: FloatArray) -> list[_PatternGroup]:
    solver_counts = patterns.sum(axis=1).astype(int)
    groups = []
    for solver_count in range(1, patterns.shape[1]):
        indices = np.flatnonzero(solver_counts == solver_count)
        item_count = int(counts[indices].sum())
        groups.append(_PatternGroup(indices, patterns[indices], item_count))
    return groups


def _fitted_chances(
    groups: list[_PatternGroup], patterns: FloatArray, counts: FloatArray
) -> list[FloatArray]:
    """Chance of each pattern given its number of successes, at the skills of greatest conditional
    likelihood.
    """
    informative_counts = counts.copy()
    informative_counts[[0, -1]] = 0  # nobody or everybody solved the item
    solved_counts = informative_counts @ patterns
    skills = np.zeros(patterns.shape[1])
    for _ in range(FITTING_STEPS):
        expected_counts = np.zeros(len(skills))
        for group in groups:
            group_chances = _conditional_chances(group, skills)
            expected_counts += group.items * (group_chances @ group.patterns)
        skill_changes = np.log((solved_counts + 0.25) / (expected_counts + 0.25))
        skills += skill_changes
        if np.abs(skill_changes).max() < 1e-4:
            break
    return [_conditional_chances(group, skills) for group in groups]


def _conditional_chances(group: _PatternGroup, skills: FloatArray) -> FloatArray:
    weights = np.exp(group.patterns @ skills)
    return np.asarray(weights / weights.sum())


def _eigenvalue_p(
    groups: list[_PatternGroup],
    chances: list[FloatArray],
    counts: FloatArray,
    model_count: int,
    *,
    rng: np.random.Generator,
    draws: int,
) -> float:
    outer_products = []
    expected = np.zeros((model_count, model_count))
    for group, group_chances in zip(groups, chances, strict=True):
        residuals = group.patterns - group_chances @ group.patterns
        residual_products = residuals[:, :, None] * residuals[:, None, :]
        outer_products.append(residual_products.reshape(len(residuals), -1))
        expected += group.items * ((group_chances[:, None] * residuals).T @ residuals)
    scales = np.sqrt(np.maximum(SCORE_TIE, np.diag(expected)))

    def largest_eigenvalues(group_counts: list[FloatArray]) -> FloatArray:
        """Largest eigenvalue of each draw, from the counts [draw, pattern] of each group."""
        observed = np.zeros((len(group_counts[0]), model_count, model_count))
        for pattern_counts, products in zip(group_counts, outer_products, strict=True):
            observed += (pattern_counts @ products).reshape(observed.shape)
        excess = (observed - expected) / np.outer(scales, scales)
        return np.asarray(np.linalg.eigvalsh(excess)[:, -1])

    real_eigenvalue = largest_eigenvalues([counts[group.indices][None] for group in groups])[0]
    drawn_counts = []
    for group, group_chances in zip(groups, chances, strict=True):
        pattern_counts = rng.multinomial(group.items, group_chances, size=draws)
        drawn_counts.append(pattern_counts.astype(float))
    drawn_eigenvalues = largest_eigenvalues(drawn_counts)
    return float((1 + (drawn_eigenvalues >= real_eigenvalue).sum()) / (draws + 1))
