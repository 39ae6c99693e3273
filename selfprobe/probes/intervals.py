"""Intervals of scores on test halves, where a pair trains one half's probe and tests another's."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from selfprobe.probes.fit import BoolArray
from selfprobe.probes.layer_fit import Scores
from selfprobe.stats.estimate import Estimate, auroc, bootstrap, f1_of_counts, undefined


def estimate(
    scores: Scores,
    first_better: BoolArray,
    groups: npt.NDArray[Any],
    metric: str,
    *,
    resamples: int,
    learnt: BoolArray | None = None,
    less: Scores | None = None,
    seed: int = 0,
) -> Estimate:
    """Mean over `scores` [column, pair] (seeds, random directions; NaN: not tested) of a metric, with its interval.

    Questions are resampled, and all columns with them, so that a pair tested under several seeds counts as one. The
    interval is then widened, for the pairs whose label one column's fit saw (`learnt`, [column, pair]) and another
    column is tested on: the variance by `dependence`, as far as it is `own_share`. It holds for the probes as fitted.

    `less`: scores of the same shape; the estimate is then the paired difference, `scores` less these.
    """
    if less is not None:
        both = np.isnan(scores) | np.isnan(less)
        scores, less = np.where(both, np.nan, scores), np.where(both, np.nan, less)
    used, tested = ~np.isnan(scores).all(axis=1), ~np.isnan(scores).all(axis=0)
    if not tested.any():
        return undefined("no pair was tested", unit="question")
    truth, each = first_better[tested], [s[used][:, tested].T for s in (scores, less) if s is not None]
    of_columns = {"auroc": _auroc, "f1": _f1, "accuracy": _accuracy}[metric]
    drawn: list[Scores] = []  # [column], of the data and then of every resample of questions

    def mean(truth: BoolArray, *parts: Scores) -> float:
        columns = [of_columns(part, truth) for part in parts]
        drawn.append(columns[0] - columns[1] if len(columns) > 1 else columns[0])
        return float(drawn[-1].mean())

    found = bootstrap(
        mean,
        truth,
        *(each if metric == "auroc" else [_outcomes(columns, truth) for columns in each]),
        clusters=groups[tested],
        rng=np.random.default_rng(seed),
        resamples=resamples,
        unit="question",
    )
    if learnt is None:
        return found
    inside = ~np.isnan(scores)
    more = dependence(learnt, inside) - 1
    share = own_share(np.array(drawn[1 : resamples + 1]), learnt[used], inside[used]) if more else 0.0
    return _widened(found, math.sqrt(1 + share * more), floor=0.0 if less is None else -1.0)


def dependence(learnt: BoolArray, tested: BoolArray) -> float:
    """Factor (at least 1) of variance of a mean over columns that resampling test pairs alone leaves out.

    `learnt` and `tested` are [column, pair]: the pairs whose labels a column's fit saw, and those it is tested on.

    Where labels tell nothing, a column's score is a sum over pairs i that it learnt from and j that it is tested on
    of terms y_i·k(i, j)·y_j, k alike both ways. With C_ij the share of columns that learn from i and test on j, the
    mean has variance Σ_{i<j} (C_ij + C_ji)²; a bootstrap of the test pairs with the probes as fitted sees Σ C_ij².
    Their ratio is 1 + Σ C_ij C_ji / Σ C_ij²: 1 for one half, 1.5 for five random halves, 2 for very many. What a probe
    has really learnt is the same in all halves and needs no widening, see `own_share`.
    """
    trains, tests = learnt.astype(float), tested.astype(float)
    crossed = trains @ tests.T
    alike = ((trains @ trains.T) * (tests @ tests.T)).sum()
    return float(1 + (crossed * crossed.T).sum() / alike) if alike else 1.0


def own_share(drawn: Scores, learnt: BoolArray, tested: BoolArray) -> float:
    """Share (0..1) of the variance of the columns' mean that comes from what each column learnt for itself.

    `drawn` is [resample, column]. Over resamples, two columns s and t vary together on the pairs that both are tested
    on, o_st, by what all have in common (a share of 1) and by what they learnt for themselves, as far as their training
    pairs are the same: cov_st = o_st·(common + τ_st·own). Both are solved for from the variances and the mean
    covariance. τ is 2/π·asin of the share of training pairs that are the same, as a metric counts signs: scores that
    correlate by r have signs that correlate by 2/π·asin r. Where columns do not tell them apart all counts as own,
    which is the wider interval.
    """
    drawn = drawn[~np.isnan(drawn).any(axis=1)]
    trains, tests = learnt.astype(float), tested.astype(float)
    sizes, seen = tests.sum(axis=1), np.maximum(trains.sum(axis=1), 1)
    both = (tests @ tests.T) / np.outer(sizes, sizes)
    same = (trains @ trains.T) / np.sqrt(np.outer(seen, seen))
    alike = both * 2 / np.pi * np.arcsin(np.clip(same, 0, 1))
    off = ~np.eye(len(tests), dtype=bool) & (both > 0)  # aspects that are fitted apart share questions, but no pair
    apart = 1 - alike[off].sum() / max(both[off].sum(), 1e-12)
    if len(drawn) < 2 or not off.any() or apart < 1e-6:
        return 1.0
    varies = np.cov(drawn, rowvar=False)
    whole = float(np.trace(varies) / np.trace(both))
    own = (whole - varies[off].sum() / both[off].sum()) / apart
    return float(np.clip(own * alike.sum() / varies.sum(), 0, 1)) if varies.sum() > 0 else 1.0


def _widened(found: Estimate, factor: float, *, floor: float) -> Estimate:
    """The interval, wider by a factor on each side of the value, within `floor` and 1."""
    low, high = (found.value + factor * (end - found.value) for end in (found.low, found.high))
    return replace(found, low=float(np.maximum(low, floor)), high=float(np.minimum(high, 1.0)))


# F1 and accuracy of all columns at a time and from counts: a resample then costs microseconds.


def _outcomes(columns: Scores, truth: BoolArray) -> Scores:
    """[pair, column, (1 said 1, 1 said 2, 1 tied, 2 said 1, 2 said 2, 2 tied)] of scores [pair, column]; NaN: none."""
    said = (columns > 0, columns < 0, columns == 0)
    kinds = [true[:, None] & answer for true in (truth, ~truth) for answer in said]
    return np.stack([kind.astype(float) for kind in kinds], axis=2)


def _f1(outcomes: Scores, _: BoolArray) -> Scores:
    a, b, tied_1, c, d, tied_2 = outcomes.sum(axis=0).T
    return f1_of_counts([a, d], [a + c, b + d], [a + b + tied_1, c + d + tied_2])


def _accuracy(outcomes: Scores, _: BoolArray) -> Scores:
    a, b, tied_1, c, d, tied_2 = outcomes.sum(axis=0).T
    with np.errstate(invalid="ignore"):
        return np.asarray((a + d + (tied_1 + tied_2) / 2) / (a + b + tied_1 + c + d + tied_2))


def _auroc(columns: Scores, truth: BoolArray) -> Scores:
    return np.array([auroc(truth, column) for column in columns.T])
