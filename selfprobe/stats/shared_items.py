"""Test of the own cells where items differ in how far the answer leads that many give.

Two things make the cells of a strong, predictable model stand out above an additive fit on every
scale, though nobody knows itself: items that are easy for all, and pairs of models that are alike,
at items that many get.

Easy items: where an item has one answer that models give and predict, each score is a product,
x[t, o, k] = gives[t, k] · predicts[o, k], so that for two other models t' and o'

    x[t, o, k] x[t', o', k] - x[t, o', k] x[t', o, k] = 0

whatever the items' difficulties are, and however much they move each model. Where that is above 0,
o knows an answer of t other than the one on which t' and o' agree. Its mean over all t' and o' must
stand out in the own cell.

Likeness: where other models' replies can stand in for predictions, each score is compared with what
the same observer gets of other targets at items that as many others get, and what is left, z, is
held against pairs of models. Likeness and skill show at items that many get; access shows anywhere,
so that z has more power than the score itself.

    votes[t, o, k] = other models whose reply to item k equals t's
                     + other observers than o whose prediction does
    h[t, o, k]     = mean of x[t', o, k'], t' neither t nor o, over items k' of the same bin of votes
    z              = x - h

z alone is no test where one model is strong: at items without votes only that model finds the
answer. Rates are in docs/statistics.md.
"""

import math
from dataclasses import replace

import numpy as np

from selfprobe.stats.estimate import FloatArray
from selfprobe.stats.pairs import (
    ABOVE_ALL_PAIRS,
    CONDITIONAL_STEPS,
    OwnCells,
    completed,
    moments,
    own_cells,
    steps_of,
)

SHARED_ITEMS = "shared items"
"""Step that the model knows answers of its own at items at which others agree on another one."""
NOTHING_SHARED = 0.0
"""p of that step where items share no difficulty: there is nothing to be above."""
CLEAR_COVARIANCE = 2.0
"""Standard errors above 0 from which cells of different models vary together over items."""
VOTE_EDGES = np.array([1e-9, 0.13, 0.26, 0.45, 0.7])
"""Shares of the votes at which a bin ends: none, and five more. They were set once, by hand."""
ITEMS_OF_SHRINKAGE = 2
"""Number of items by which the mean of a bin is drawn to the observer's mean."""


def own_cells_of_hits(x: FloatArray, scores: FloatArray, stand_ins: FloatArray | None) -> OwnCells:
    """`own_cells` of scores that are shares of right answers, held against what items share.

    Args:
        x: Scores less habit, [target, observer, item]; NaN where unscored.
        scores: The same scores as they were given, in [0, 1].
        stand_ins: See `vote_shares`.
    """
    scored = own_cells(x)
    if math.isnan(scored.spread):
        no_p = np.full(len(x), np.nan)
        return replace(scored, p_by_step={**scored.p_by_step, SHARED_ITEMS: no_p})

    p_by_step = {**scored.p_by_step, SHARED_ITEMS: hits_beyond_agreement_p(x)}
    if stand_ins is None:
        return replace(scored, p_by_step=p_by_step)

    expected = expected_from_votes(x, vote_shares(scores, stand_ins))
    z = completed(x[None]) - np.where(np.isnan(expected), 0.0, expected)
    beyond_votes = steps_of(moments(z), scale_names=("x",))
    for name in ("noise", *CONDITIONAL_STEPS):
        p_by_step[name] = np.maximum(scored.p_by_step[name], beyond_votes.p_by_step[name][0])
    for name in ("pairs", ABOVE_ALL_PAIRS):
        p_by_step[name] = beyond_votes.p_by_step[name][0]
    return replace(
        scored,
        p_by_step=p_by_step,
        advantage=beyond_votes.advantage[0],
        advantage_low=beyond_votes.advantage_low[0],
        advantage_high=beyond_votes.advantage_high[0],
        spread=float(beyond_votes.spread[0]),
    )


def hits_beyond_agreement_p(scores: FloatArray) -> FloatArray:
    """One-sided p [model] that it has hits beyond agreement, more than skill gives, against noise.

    `NOTHING_SHARED` where items share no difficulty.

    Args:
        scores: Scores less habit, [target, observer, item]; NaN where unscored. Four models or more.
    """
    if not have_shared_difficulty(scores):
        return np.full(len(scores), NOTHING_SHARED)
    beyond_agreement = hits_beyond_agreement(completed(scores[None])[0])
    p_by_step = steps_of(moments(beyond_agreement[None]), scale_names=("x",)).p_by_step
    return np.asarray(np.maximum(p_by_step["above 0"][0], p_by_step["noise"][0]))


def have_shared_difficulty(x: FloatArray) -> bool:
    """Whether cells that share neither target nor observer vary together over items.

    Args:
        x: Scores less habit, [target, observer, item]; NaN where unscored.
    """
    centred = np.nan_to_num(x - np.nanmean(x, axis=2, keepdims=True))
    diagonal = np.arange(len(x))
    centred[diagonal, diagonal] = 0

    # Products of all pairs of cells, less those with the same target or the same observer.
    all_products = np.square(centred.sum(axis=(0, 1)))
    same_target_products = np.square(centred.sum(axis=1)).sum(axis=0)
    same_observer_products = np.square(centred.sum(axis=0)).sum(axis=0)
    same_cell_products = np.square(centred).sum(axis=(0, 1))
    products = all_products - same_target_products - same_observer_products + same_cell_products
    standard_error = products.std(ddof=1) / math.sqrt(len(products))
    return bool(products.mean() > CLEAR_COVARIANCE * standard_error)


def hits_beyond_agreement(x: FloatArray) -> FloatArray:
    """Hits on other answers than those on which others agree, [target, observer, item].

    The mean over pairs t', o' of other models, t' ≠ o', of x[t, o] x[t', o'] - x[t, o'] x[t', o].

    Args:
        x: Scores less habit, [target, observer, item]; NaN where unscored, which agrees with
            nobody.
    """
    size = len(x)
    diagonal = np.arange(size)
    scores = np.nan_to_num(x)
    others = scores.copy()
    others[diagonal, diagonal] = 0
    target_sums = others.sum(axis=1)
    observer_sums = others.sum(axis=0)

    # Sums over the cells [t', o'] that share no model with the cell [t, o].
    model_sums = target_sums + observer_sums
    related_sums = model_sums[:, None] + model_sums[None] - others - others.swapaxes(0, 1)
    related_sums[diagonal, diagonal] = model_sums
    agreement = others.sum(axis=(0, 1)) - related_sums

    # Sums over t' and o' of x[t, o'] x[t', o], less those in which t' is o'.
    of_target = target_sums[:, None] - others
    of_observer = observer_sums[None] - others
    same_model = np.einsum("tmk,mok->tok", others, others)
    exchanged = of_target * of_observer - same_model

    pair_counts = np.full((size, size, 1), (size - 2) * (size - 3))
    pair_counts[diagonal, diagonal] = (size - 1) * (size - 2)
    beyond_agreement = (scores * agreement - exchanged) / pair_counts
    return np.asarray(np.where(np.isnan(x), np.nan, beyond_agreement))


def vote_shares(scores: FloatArray, stand_ins: FloatArray | None) -> FloatArray:
    """Share of the votes that agree with the target, [target, observer, item]; NaN without votes.

    Args:
        scores: Scores as they were given, in [0, 1], [target, observer, item]; NaN where unscored.
        stand_ins: Scores of other models' replies as predictions, [target, other model, item], of
            which the models of the matrix come first; None where replies cannot stand in.
    """
    is_scored = ~np.isnan(scores)
    hits = np.where(is_scored, scores, 0.0)
    votes = hits.sum(axis=1, keepdims=True) - hits
    vote_counts = is_scored.sum(axis=1, keepdims=True) - is_scored.astype(float)
    if stand_ins is not None:
        replies = stand_ins[:, : len(scores)].copy()
        diagonal = np.arange(len(scores))
        replies[diagonal, diagonal] = np.nan
        is_reply = ~np.isnan(replies)
        votes = votes + np.where(is_reply, replies, 0.0).sum(axis=1, keepdims=True)
        vote_counts = vote_counts + is_reply.sum(axis=1, keepdims=True)
    shares = votes / np.maximum(vote_counts, 1)
    return np.asarray(np.where(vote_counts > 0, shares, np.nan))


def expected_from_votes(x: FloatArray, shares: FloatArray) -> FloatArray:
    """h [target, observer, item]: what the observer gets of other targets at such items.

    Args:
        x: Scores [target, observer, item], NaN where unscored; three targets or more.
        shares: Result of `vote_shares`.
    """
    is_scored = ~np.isnan(x)
    scores = np.where(is_scored, x, 0.0)
    bins = np.searchsorted(VOTE_EDGES, np.nan_to_num(shares), side="right")
    bins = np.where(np.isnan(shares), 0, bins)

    observer_sums = _sums_of_other_targets(scores.sum(axis=2))
    observer_counts = _sums_of_other_targets(is_scored.sum(axis=2).astype(float))
    observer_means = observer_sums / np.maximum(observer_counts, 1)

    expected = np.zeros_like(scores)
    for bin_number in range(len(VOTE_EDGES) + 1):
        in_bin = bins == bin_number
        is_counted = in_bin & is_scored
        bin_sums = _sums_of_other_targets(np.where(is_counted, scores, 0.0).sum(axis=2))
        bin_counts = _sums_of_other_targets(is_counted.sum(axis=2).astype(float))
        shrunk_sums = bin_sums + ITEMS_OF_SHRINKAGE * observer_means
        bin_means = shrunk_sums / (bin_counts + ITEMS_OF_SHRINKAGE)
        expected = np.where(in_bin, bin_means[:, :, None], expected)
    return np.asarray(np.where(is_scored, expected, np.nan))


def _sums_of_other_targets(cells: FloatArray) -> FloatArray:
    """Sums [target, observer] of the observer's cells over targets that are neither of the two."""
    diagonal = np.arange(len(cells))
    without_own = cells.copy()
    without_own[diagonal, diagonal] = 0
    return np.asarray(without_own.sum(axis=0) - without_own)
