"""Test of the own cells where items differ in how far the answer leads that many give.

Two things make the cells of a strong, predictable model stand out above an additive fit on every
scale, though nobody knows itself: items that are easy for all, and pairs of models that are alike,
at items that many get.

Easy items: the own cell must exceed what a shared difficulty of the items gives
(`selfprobe.stats.consensus`).

Likeness: where other models' replies can stand in for predictions, each score is compared with what
the same observer gets of other targets at items that as many others get, and what is left, z, is
held against pairs of models. Likeness and skill show at items that many get; access shows anywhere,
so that z has more power than the score itself.

    votes[t, o, k] = other models whose reply to item k equals t's + other observers than o whose prediction does
    h[t, o, k]     = mean of x[t', o, k'], t' neither t nor o, over items k' of the same bin of votes
    z              = x - h

z alone is no test where one model is strong: at items without votes only that model finds the
answer. Rates are in docs/statistics.md.
"""

import math
from dataclasses import replace

import numpy as np
from scipy import special

from selfprobe.stats.consensus import expected_own_cells
from selfprobe.stats.estimate import FloatArray
from selfprobe.stats.pairs import (
    AS_NEEDED,
    OVER_PAIRS,
    OwnCells,
    completed,
    moments,
    own_cells,
    own_noise,
    steps_of,
)

SHARED_ITEMS = "shared items"
"""Step that the own cell is above what a shared difficulty of the items gives."""
VOTE_EDGES = np.array([1e-9, 0.13, 0.26, 0.45, 0.7])
"""Shares of the votes at which a bin ends: none, and five more. They were set once, by hand."""
SHRUNK_BY = 2
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
        return replace(scored, steps={**scored.steps, SHARED_ITEMS: np.full(len(x), np.nan)})
    steps = {**scored.steps, SHARED_ITEMS: shared_difficulty_p(x)}
    if stand_ins is None:
        return replace(scored, steps=steps)
    expected = expected_from_votes(x, vote_shares(scores, stand_ins))
    z = completed(x[None]) - np.where(np.isnan(expected), 0.0, expected)
    found = steps_of(moments(z), scale_names=("x",))
    for name in ("noise", *AS_NEEDED):
        steps[name] = np.maximum(scored.steps[name], found.steps[name][0])
    for name in ("pairs", OVER_PAIRS):
        steps[name] = found.steps[name][0]
    return replace(
        scored,
        steps=steps,
        over=found.over[0],
        over_low=found.over_low[0],
        over_high=found.over_high[0],
        spread=float(found.spread[0]),
    )


def shared_difficulty_p(x: FloatArray) -> FloatArray:
    """One-sided p [model] that the own cell is above what a shared difficulty of the items gives,
    against noise.

    Args:
        x: Scores less habit, [target, observer, item]; NaN where unscored.
    """
    measured = moments(x[None])
    own_means = measured.mean[0, :: len(x) + 1]
    expected = expected_own_cells(x)
    beyond = own_means - expected
    of_scores, of_logarithms = own_noise(measured)
    largest_error = np.maximum(of_scores[0], of_logarithms[0] * expected)
    return np.asarray(special.stdtr(measured.units - 1, -beyond / largest_error))


def vote_shares(scores: FloatArray, stand_ins: FloatArray | None) -> FloatArray:
    """Share of the votes that agree with the target, [target, observer, item]; NaN where nobody
    else voted.

    Args:
        scores: Scores as they were given, in [0, 1], [target, observer, item]; NaN where unscored.
        stand_ins: Scores of other models' replies as predictions, [target, other model, item], of
            which the models of the matrix come first; None where replies cannot stand in.
    """
    known = ~np.isnan(scores)
    right = np.where(known, scores, 0.0)
    votes = right.sum(axis=1, keepdims=True) - right
    counts = known.sum(axis=1, keepdims=True) - known.astype(float)
    if stand_ins is not None:
        replies = stand_ins[:, : len(scores)].copy()
        own = np.arange(len(scores))
        replies[own, own] = np.nan
        reply_known = ~np.isnan(replies)
        votes = votes + np.where(reply_known, replies, 0.0).sum(axis=1, keepdims=True)
        counts = counts + reply_known.sum(axis=1, keepdims=True)
    return np.asarray(np.where(counts > 0, votes / np.maximum(counts, 1), np.nan))


def expected_from_votes(x: FloatArray, shares: FloatArray) -> FloatArray:
    """h [target, observer, item]: what the observer gets of other targets at items that as many
    others get.

    Args:
        x: Scores [target, observer, item], NaN where unscored; three targets or more.
        shares: Result of `vote_shares`.
    """
    size = len(x)
    own = np.arange(size)
    known = ~np.isnan(x)
    values = np.where(known, x, 0.0)
    bins = np.where(
        np.isnan(shares), 0, np.searchsorted(VOTE_EDGES, np.nan_to_num(shares), side="right")
    )

    def of_others(cell_sums: FloatArray) -> FloatArray:
        """Sum over the targets that are neither the target nor the observer, [target, observer]."""
        without_own = cell_sums.copy()
        without_own[own, own] = 0
        return np.asarray(without_own.sum(axis=0) - without_own)

    observer_sums, observer_counts = (
        of_others(values.sum(axis=2)),
        of_others(known.sum(axis=2).astype(float)),
    )
    observer_means = observer_sums / np.maximum(observer_counts, 1)
    expected = np.zeros_like(values)
    for number in range(len(VOTE_EDGES) + 1):
        in_bin = (bins == number) & known
        bin_sums = of_others(np.where(in_bin, values, 0.0).sum(axis=2))
        bin_counts = of_others(in_bin.sum(axis=2).astype(float))
        bin_means = (bin_sums + SHRUNK_BY * observer_means) / (bin_counts + SHRUNK_BY)
        expected = np.where(bins == number, bin_means[:, :, None], expected)
    return np.asarray(np.where(known, expected, np.nan))
