"""Does a model predict itself better than others predict it? (Paper 003, §4.1 and G.3.)

Scores are `x  # [target, observer, item]`, NaN where unscored, observers in the order of targets; epochs and
keys of an item are averaged before. One difference carries everything here, for target i and another observer
j:

    d_ij = (x_ii - x_ij) - (skill of i - skill of j on the targets that are neither i nor j)

The self advantage T = [tr(A) - ΣA/M]/(M - 1) of the cell means A is the mean of all d_ij; a model's own
advantage is the mean over j, and what it has over its closest observer the smallest. Models are fixed, items
are resampled.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats import (
    Estimate,
    FloatArray,
    Permutation,
    undefined,
    wilson,
)

SMALLEST_TEXT_SAMPLE = 20  # fewer questions cannot teach a text classifier anything


@dataclass(frozen=True)
class ModelAdvantage:
    """One model's advantage at predicting itself."""

    model: str
    """Name, as given."""
    advantage: Estimate
    """Its diagonal score minus what row and column effects of the off-diagonal cells predict."""
    p: float
    """One-sided p that it beats *every* other observer of it, skill removed (the largest of these p)."""
    p_holm: float
    """The same, Holm-adjusted over models: below .05 the model is named as having access."""


@dataclass(frozen=True)
class SelfAdvantage:
    """Result of `self_advantage`."""

    total: Estimate
    """T with its item-level t interval."""
    se: float
    """Item-level standard error of T."""
    permutation: Permutation
    """Test over all assignments of observers to targets; smallest p is 1/M!, so it needs M >= 4."""
    closest: Estimate
    """Mean advantage over each target's closest other observer (shared similarity alone gives none)."""
    models: tuple[ModelAdvantage, ...]
    """One a model, in order; empty for two models, where there is no third target to measure skill on."""
    means: FloatArray
    """Cell means A[target, observer]."""
    centred: FloatArray
    """A, double-centred: sum of the diagonal/(M - 1) is T."""


@dataclass(frozen=True)
class ModelsTest:
    """Result of `wilcoxon_models`."""

    wilcoxon_p: float
    """One-sided Wilcoxon signed-rank p (exact up to 13 models, and up to 50 without ties)."""
    sign_p: float
    """One-sided exact sign test p."""
    wins: int
    """Models that score higher on themselves."""
    n: int
    """Models with a difference other than 0."""


@dataclass(frozen=True)
class PaperTransform:
    """Result of `paper_transform`."""

    aggregate: FloatArray
    """A[target, observer], the mean of the min-max normalised tasks; NaN where a task has no score."""
    log: FloatArray
    """L = ln(A + ε)."""
    centred: FloatArray
    """C, the double-centred L; all NaN if a cell is."""
    eps: float
    """ε."""
    reasons: Mapping[str, str]
    """Tasks left out of A, and why."""


@dataclass(frozen=True)
class Verdict:
    """What the matrix says about privileged access."""

    kind: Literal["supported", "not supported", "underpowered"]
    """The finding."""
    sentence: str
    """Why, with the numbers."""


@dataclass(frozen=True)
class TextOnly:
    """Result of `text_only_observer`."""

    hits: FloatArray
    """1 where the classifier names the truth of a question it was not trained on, [question]."""
    reason: str = ""
    """Why all are NaN."""


def double_centre(matrix: npt.ArrayLike) -> FloatArray:
    """Subtract row and column means and add the grand mean (G.3); a NaN anywhere makes all NaN."""
    m = np.asarray(matrix, dtype=float)
    return np.asarray(m - m.mean(0) - m.mean(1, keepdims=True) + m.mean())


def _checked(x: npt.ArrayLike, models: Sequence[str] | None) -> tuple[FloatArray, list[str]]:
    scores = np.asarray(x, dtype=float)
    if scores.ndim != 3 or scores.shape[0] != scores.shape[1] or len(scores) < 2:
        raise ValueError(f"expected [target, observer, item] of at least two models, got shape
        {scores.shape}")
    names = list(models) if models is not None else [f"model {i + 1}" for i in range(len(scores))]
    if len(names) != len(scores) or len(set(names)) != len(names):
        raise ValueError(f"expected {len(scores)} different model names, got {names}")
    return scores[:, :, ~np.isnan(scores).all(axis=(0, 1))], names


def _empty_cell(scores: FloatArray, names: list[str]) -> str:
    """Why nothing can be said, when a cell has no score."""
    holes = np.argwhere(np.isnan(scores).all(axis=2))
    if not len(holes):
        return ""
    more = f" and {len(holes) - 1} more" if len(holes) > 1 else ""
    return f"no score in cell (target {names[holes[0][0]]}, observer {names[holes[0][1]]}){more}"


def _pair_weights(size: int) -> FloatArray:
    """w[i, j, target, observer] with d_ij = Σ w·A, for three models or more; w[i, i] is 0."""
    w = np.zeros((size,) * 4)
    for i, j in zip(*np.nonzero(~np.eye(size, dtype=bool)), strict=True):
        common = [t for t in range(size) if t not in (i, j)]
        w[i, j, i, i], w[i, j, i, j] = 1, -1
        w[i, j, common, i], w[i, j, common, j] = -1 / len(common), 1 / len(common)
    return w


def _influence(scores: FloatArray, weights: FloatArray) -> FloatArray:
    """Per-item influence [k, item] of the contrasts Σ w·A, weights[k, target, observer]; its mean is 0."""
    scored = ~np.isnan(scores)
    counts = scored.sum(axis=2, keepdims=True)
    residuals = np.where(scored, scores - np.nansum(scores, axis=2, keepdims=True) / counts, 0.0)
    return np.asarray(np.tensordot(weights, residuals * scores.shape[2] / counts, 2))


def _contrast(scores: FloatArray, weights: FloatArray, level: float) -> tuple[Estimate, float, float]:
    """Estimate with t interval, SE and one-sided p of Σ w·A; Σ w = 0, items are the clusters.

    Without any spread between items (all alike) a t interval would have no width; for scores in [0, 1] the
    contrast lies in ±Σ|w|/2 and Wilson's interval on that range is taken instead.
    """
    n = scores.shape[2]
    value = float((weights * np.nanmean(scores, axis=2)).sum())
    if n < 2:
        return undefined("no interval from one item", n=n, value=value), math.nan, math.nan
    influence = _influence(scores, weights[None])[0]
    se = math.sqrt(float(influence @ influence) / (n * (n - 1)))
    if se > 1e-12:
        half = -float(special.stdtrit(n - 1, (1 - level) / 2)) * se return Estimate(value, value - half, value
        + half, n, "item"), se, float(special.stdtr(n - 1, -value / se))
    if np.nanmin(scores) < 0 or np.nanmax(scores) > 1:
        return undefined("all items are alike", n=n, value=value), se, math.nan
    bound = float(np.abs(weights).sum() / 2)
    low, high = ((2 * end - 1) * bound for end in wilson((value / bound + 1) / 2, n, df=n - 1, level=level))
    return Estimate(value, low, high, n, "item"), se, float(special.ndtr(-value / bound * math.sqrt(n)))


def self_advantage(
    x: npt.ArrayLike, models: Sequence[str] | None = None, *, rng: np.random.Generator, level: float = 0.95
) -> SelfAdvantage:
    """Linear self advantage of `x  # [target, observer, item]` with item-level inference; see the module's
    top.

    A cell without any score makes everything undefined, with a reason that names the cell. Naming a model
    takes that it beats every other observer of it (an intersection-union test: the p is the largest), so that
    a family of models that know one another, or a capable observer, is not taken for self access.
    """
    scores, names = _checked(x, models)
    size, empty = len(scores), _empty_cell(scores, names)
    if empty:
        hole, nothing = undefined(empty), np.full((size, size), math.nan) own = tuple(ModelAdvantage(name,
        hole, math.nan, math.nan) for name in names) return SelfAdvantage(hole, math.nan,
        Permutation(math.nan, math.nan, 0, True), hole, own, nothing, nothing)
    means, eye = np.nanmean(scores, axis=2), np.eye(size)
    total, se, _ = _contrast(scores, (eye - 1 / size) / (size - 1), level)
    base = means.sum() / size
    permutation = permutation_test(
        lambda order: float((means[np.arange(size), order].sum() - base) / (size - 1)), size, rng=rng
    )
    if size == 2:
        closest = undefined("needs three models: no third target to measure the observers' skill on")
        return SelfAdvantage(total, se, permutation, closest, (), means, double_centre(means))
    pairs, others = _pair_weights(size), ~np.eye(size, dtype=bool)
    own_p = [max(_contrast(scores, w, level)[2] for w in pairs[i][others[i]]) for i in range(size)]
    differences = np.where(others, (pairs * means).sum(axis=(2, 3)), math.inf)
    closest_weights = pairs[np.arange(size), differences.argmin(axis=1)].mean(axis=0)
    own = tuple(
        ModelAdvantage(name, _contrast(scores, pairs[i][others[i]].mean(axis=0), level)[0], own_p[i],
        adjusted) for i, (name, adjusted) in enumerate(zip(names, holm(own_p).tolist(), strict=True))
    )
    closest = _contrast(scores, closest_weights, level)[0]
    return SelfAdvantage(total, se, permutation, closest, own, means, double_centre(means))


def capability_control(
    x: npt.ArrayLike, *, rng: np.random.Generator, resamples: int = 2000, level: float = 0.95
) -> Estimate:
    """Self advantage over observers of like capability, averaged over targets.

    For each target the differences d_ij (module's top) are weighted by exp(-½(gap/h)²), gap being the skill
    difference of i and j on common targets, h the median gap: matching with bias correction (Abadie & Imbens
    2011). The interval resamples items and does the matching anew. Needs three models.
    """
    scores, names = _checked(x, None)
    if len(scores) == 2:
        return undefined("needs three models: no third target to measure the observers' skill on")
    if empty := _empty_cell(scores, names):
        return undefined(empty)
    items = np.ascontiguousarray(np.moveaxis(scores, 2, 0))
    clusters = np.arange(len(items))
    return bootstrap(_matched, items, clusters=clusters, rng=rng, resamples=resamples, level=level)


def _matched(items: FloatArray) -> float:
    """The statistic of `capability_control` for items[item, target, observer]; NaN if a cell has no score."""
    scored = ~np.isnan(items)
    counts = scored.sum(axis=0)
    if not counts.all():
        return math.nan
    a = np.where(scored, items, 0.0).sum(axis=0) / counts
    size, own, off = len(a), np.diag(a), ~np.eye(len(a), dtype=bool)
    skill_i = a.sum(axis=0)[:, None] - own[:, None] - a.T  # of i, over targets other than i and j
    skill_j = a.sum(axis=0)[None, :] - own[None, :] - a
    gap = (skill_i - skill_j) / (size - 2)
    width = float(np.median(np.abs(gap[off]))) or 1.0  # all alike: all weigh the same
    weights = np.where(off, np.exp(-0.5 * (gap / width) ** 2), 0.0)
    matched = (weights * (own[:, None] - a - gap)).sum(axis=1) / weights.sum(axis=1)
    return float(matched.mean())
