"""Does a model predict itself better than others predict it? (IntrospectBench, §4.1 and G.3.)

Scores are `x  # [target, observer, item]`, NaN where unscored, observers in the order of targets;
average the epochs and keys of an item before. One difference carries everything here, for target i
and another observer j:

    d_ij = (x_ii - x_ij) - (skill of i - skill of j on the targets that are neither i nor j)

The self advantage T = [tr(A) - ΣA/M]/(M - 1) of the cell means A is the mean of all d_ij, and a
model's own advantage the mean over j. Models are fixed; intervals and p are t's, over items. Below
stands the test over models that gives the paper's p (`wilcoxon_models`).
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import Estimate, FloatArray, bootstrap, t_quantile, undefined, wilson

TWO_MODELS = (
    "needs three models: with two there is no third target to measure the observers' skill on"
)
EXACT_MODELS = 8
"""Largest number of models of which all assignments of observers to targets are enumerated
(40,320).
"""
PERMUTATIONS = 9_999


@dataclass(frozen=True)
class Permutation:
    """Result of `observers_permuted`."""

    p: float
    """Share of assignments with at least this T; the observed one counts as one."""
    count: int
    """Number of assignments looked at. The smallest p possible is 1/count (exact) or 1/(count + 1)
    (sampled).
    """
    exact: bool
    """Whether all assignments were enumerated."""


@dataclass(frozen=True)
class ModelAdvantage:
    """One model's advantage at predicting itself."""

    model: str
    """Name of the model."""
    advantage: Estimate
    """The model's diagonal score minus what row and column effects of the off-diagonal cells
    predict.
    """


@dataclass(frozen=True)
class SelfAdvantage:
    """Result of `self_advantage`."""

    total: Estimate
    """T with its item-level t interval."""
    se: float
    """Item-level standard error of T."""
    p: float
    """One-sided item-level p of T."""
    permutation: Permutation
    """Test over all assignments of observers to targets; smallest p is 1/M!, so it needs M >= 4."""
    models: tuple[ModelAdvantage, ...]
    """One a model, in order; empty for two models, where there is no third target to measure skill
    on.
    """
    means: FloatArray
    """Cell means A[target, observer]."""
    centred: FloatArray
    """A, double-centred: sum of the diagonal/(M - 1) is T."""


def double_centre(matrix: npt.ArrayLike) -> FloatArray:
    """Subtract row and column means and add the grand mean (G.3); a NaN anywhere makes all NaN."""
    m = np.asarray(matrix, dtype=float)
    return np.asarray(m - m.mean(0) - m.mean(1, keepdims=True) + m.mean())


def _checked(x: npt.ArrayLike, models: Sequence[str] | None) -> tuple[FloatArray, list[str]]:
    """Scores of the items that some cell has, and the models' names."""
    scores = np.asarray(x, dtype=float)
    if scores.ndim != 3 or scores.shape[0] != scores.shape[1] or len(scores) < 2:
        raise ValueError(
            f"expected [target, observer, item] of two or more models, got shape {scores.shape}"
        )
    size = len(scores)
    if models is None:
        names = [f"model {number}" for number in range(1, size + 1)]
    else:
        names = list(models)
    if len(names) != size or len(set(names)) != size:
        raise ValueError(f"expected {size} different model names, got {names}")
    is_unscored_item = np.isnan(scores).all(axis=(0, 1))
    return scores[:, :, ~is_unscored_item], names


def _empty_cell(scores: FloatArray, names: list[str]) -> str:
    """Why nothing can be said, when a cell has no score."""
    empty_cells = np.argwhere(np.isnan(scores).all(axis=2))
    if not len(empty_cells):
        return ""
    target, observer = empty_cells[0]
    reason = f"no score in cell (target {names[target]}, observer {names[observer]})"
    if len(empty_cells) > 1:
        reason += f" and {len(empty_cells) - 1} more"
    return reason


def total_weights(size: int) -> FloatArray:
    """w[target, observer] with T = Σ w·A."""
    return np.asarray((np.eye(size) - 1 / size) / (size - 1))


def _own_weights(size: int) -> FloatArray:
    """w[i, target, observer] with the mean over j of d_ij = Σ w·A, for three models or more."""
    weights = np.zeros((size,) * 3)
    for i, j in itertools.permutations(range(size), 2):
        third_targets = [target for target in range(size) if target not in (i, j)]
        weights[i, i, i] += 1
        weights[i, i, j] -= 1
        weights[i, third_targets, i] -= 1 / len(third_targets)
        weights[i, third_targets, j] += 1 / len(third_targets)
    return weights / (size - 1)


@dataclass(frozen=True)
class _Contrast:
    """A weighted sum of cell means."""

    estimate: Estimate
    se: float
    p: float
    """One-sided."""


def _contrasts(scores: FloatArray, weights: FloatArray, level: float) -> list[_Contrast]:
    """Each Σ w·A with its t interval, for weights[k, target, observer], Σ w = 0.

    Items are the clusters, shared by all cells. If the items do not differ at all, a t interval
    would have no width; for scores in [0, 1] the contrast lies in ±Σ|w|/2 and Wilson's interval on
    that range is taken instead.
    """
    item_count = scores.shape[2]
    is_scored = ~np.isnan(scores)
    means = np.nanmean(scores, axis=2)
    counts = is_scored.sum(axis=2)
    deviations = np.where(is_scored, scores - means[:, :, None], 0.0)
    residuals = deviations * (item_count / counts)[:, :, None]
    influences = np.tensordot(weights, residuals, 2)  # [k, item]
    are_shares = np.nanmin(scores) >= 0 and np.nanmax(scores) <= 1

    contrasts = list[_Contrast]()
    for cell_weights, item_influence in zip(weights, influences, strict=True):
        value = float((cell_weights * means).sum())
        if item_count < 2:
            reason = "no interval from one item or cluster"
            estimate = undefined(reason, n=item_count, value=value)
            contrasts.append(_Contrast(estimate, math.nan, math.nan))
            continue

        df = item_count - 1
        se = math.sqrt(float(item_influence @ item_influence) / (item_count * df))
        if se > 1e-12:
            half_width = t_quantile(df, (1 - level) / 2) * se
            estimate = Estimate(
                value, value - half_width, value + half_width, item_count, "item", se=se
            )
            p = float(special.stdtr(df, -value / se))
        elif are_shares:
            bound = float(np.abs(cell_weights).sum() / 2)
            low, high = wilson((value / bound + 1) / 2, item_count, df=df, level=level)
            estimate = Estimate(
                value, (2 * low - 1) * bound, (2 * high - 1) * bound, item_count, "item"
            )
            p = float(special.ndtr(-value / bound * math.sqrt(item_count)))
        else:
            estimate = undefined("all items are alike", n=item_count, value=value)
            p = math.nan
        contrasts.append(_Contrast(estimate, se, p))
    return contrasts


def self_advantage(
    x: npt.ArrayLike,
    models: Sequence[str] | None = None,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
) -> SelfAdvantage:
    """Linear self advantage of `x  # [target, observer, item]` with item-level inference; see the
    module's top.

    A cell without any score makes everything undefined, with a reason that names the cell. T and
    the own advantages are estimates on an additive scale, where skill times predictability looks
    like access: no verdict rests on them.
    """
    scores, names = _checked(x, models)
    size = len(scores)
    reason = _empty_cell(scores, names)
    if reason:
        hole = undefined(reason)
        no_numbers = np.full((size, size), math.nan)
        return SelfAdvantage(
            total=hole,
            se=math.nan,
            p=math.nan,
            permutation=Permutation(math.nan, 0, True),
            models=tuple(ModelAdvantage(name, hole) for name in names),
            means=no_numbers,
            centred=no_numbers,
        )

    means = np.nanmean(scores, axis=2)
    centred = double_centre(means)
    total = _contrasts(scores, total_weights(size)[None], level)[0]
    permutation = observers_permuted(centred, rng=rng)
    own_advantages = list[ModelAdvantage]()
    if size > 2:
        own_contrasts = _contrasts(scores, _own_weights(size), level)
        for name, contrast in zip(names, own_contrasts, strict=True):
            own_advantages.append(ModelAdvantage(name, contrast.estimate))
    return SelfAdvantage(
        total=total.estimate,
        se=total.se,
        p=total.p,
        permutation=permutation,
        models=tuple(own_advantages),
        means=means,
        centred=centred,
    )


def total_of(
    x: npt.ArrayLike, models: Sequence[str] | None = None, *, level: float = 0.95
) -> Estimate:
    """T alone, with its item-level interval; as in `self_advantage`."""
    scores, names = _checked(x, models)
    reason = _empty_cell(scores, names)
    if reason:
        return undefined(reason)
    total = _contrasts(scores, total_weights(len(scores))[None], level)[0]
    return total.estimate


def total_bounds(x: npt.ArrayLike) -> tuple[float, float]:
    """T if every score that is missing spoke against it (own 0, others' 1), and if every one spoke
    for it.

    An item that no observer of a target has, since the target's act failed, is not among them. NaN
    where scores leave [0, 1], or a cell stays empty.
    """
    scores, _ = _checked(x, None)
    size = len(scores)
    is_scored = ~np.isnan(scores)
    if (scores[is_scored] < 0).any() or (scores[is_scored] > 1).any():
        return math.nan, math.nan
    is_missing = ~is_scored & is_scored.any(axis=1, keepdims=True)
    is_own = np.eye(size, dtype=bool)[:, :, None]
    bounds = []
    for own_score, other_score in ((0.0, 1.0), (1.0, 0.0)):
        missing_scores = np.where(is_own, own_score, other_score)
        filled_scores = np.where(is_missing, missing_scores, scores)
        counts = (~np.isnan(filled_scores)).sum(axis=2)
        means = np.nansum(filled_scores, axis=2) / np.where(counts, counts, math.nan)
        bounds.append(float((total_weights(size) * means).sum()))
    return bounds[0], bounds[1]


def observers_permuted(centred: FloatArray, *, rng: np.random.Generator) -> Permutation:
    """One-sided permutation test of T, the trace of `centred  # [target, observer]`, over the order
    of observers.
    """
    from scipy import stats  # here: slow to import

    size = len(centred)
    targets = np.arange(size)

    def trace(observers: npt.NDArray[np.intp], axis: int) -> FloatArray:
        sums = centred[targets, observers].sum(axis=axis)
        return np.asarray(np.round(sums, 12))  # rounding errors must not break ties

    is_exact = size <= EXACT_MODELS
    test = stats.permutation_test(
        (targets,),
        trace,
        permutation_type="pairings",
        vectorized=True,
        n_resamples=math.factorial(size) if is_exact else PERMUTATIONS,
        alternative="greater",
        rng=rng,
    )
    return Permutation(float(test.pvalue), len(test.null_distribution), is_exact)


def permute_observers_of(
    centred: FloatArray, model_indices: Sequence[int], *, rng: np.random.Generator | None = None
) -> Permutation:
    """One-sided permutation test of the sum of the named models' own centred cells, over the order
    of observers.

    Args:
        centred: Double-centred cell means [target, observer].
        model_indices: Indices of the named models.
        rng: Draws orders where there are more than can be enumerated. Default: a fixed seed.
    """
    size = len(centred)
    count = len(model_indices)
    orders = math.perm(size, count)
    is_exact = orders <= math.factorial(EXACT_MODELS)
    if is_exact:
        observers = np.array(list(itertools.permutations(range(size), count)))
    else:
        generator = rng or np.random.default_rng(0)
        identity = np.tile(np.arange(size), (PERMUTATIONS, 1))
        drawn = generator.permuted(identity, axis=1)[:, :count]
        observers = np.concatenate([np.array([model_indices]), drawn])
    sums = np.round(centred[np.asarray(model_indices), observers].sum(axis=1), 12)
    observed = np.round(centred[model_indices, model_indices].sum(), 12)
    return Permutation(float((sums >= observed).mean()), len(observers), is_exact)


def capability_control(
    x: npt.ArrayLike, *, rng: np.random.Generator, resamples: int = 2000, level: float = 0.95
) -> Estimate:
    """Self advantage over observers of similar capability, averaged over targets.

    For each target the differences d_ij (module's top) are weighted by exp(-½(gap/h)²), gap being
    the skill difference of i and j on common targets, h the median gap: matching with bias
    correction (Abadie & Imbens 2011). The interval resamples items and does the matching anew.
    Needs three models.
    """
    scores, names = _checked(x, None)
    if len(scores) == 2:
        return undefined(TWO_MODELS)
    reason = _empty_cell(scores, names)
    if reason:
        return undefined(reason)
    items = np.ascontiguousarray(np.moveaxis(scores, 2, 0))
    return bootstrap(
        _matched, items, clusters=np.arange(len(items)), rng=rng, resamples=resamples, level=level
    )


def _matched(items: FloatArray) -> float:
    """The statistic of `capability_control` for items[item, target, observer]; NaN if a cell has no
    score.
    """
    is_scored = ~np.isnan(items)
    counts = is_scored.sum(axis=0)
    if not counts.all():
        return math.nan
    means = np.where(is_scored, items, 0.0).sum(axis=0) / counts
    size = len(means)
    own = np.diag(means)
    is_pair = ~np.eye(size, dtype=bool)

    # Sums over the targets other than i and j, of observer i and of observer j.
    observer_sums = means.sum(axis=0)
    skill_i = observer_sums[:, None] - own[:, None] - means.T
    skill_j = observer_sums[None, :] - own[None, :] - means
    skill_gap = (skill_i - skill_j) / (size - 2)
    median_gap = float(np.median(np.abs(skill_gap[is_pair])))
    gap_width = median_gap or 1.0  # all alike: all weigh the same

    squared_gap = np.where(is_pair, (skill_gap / gap_width) ** 2, math.inf)
    # The nearest one weighs 1: only ratios of weights count.
    beyond_nearest = squared_gap - squared_gap.min(axis=1, keepdims=True)
    weights = np.exp(-0.5 * beyond_nearest)
    differences = own[:, None] - means - skill_gap
    matched = (weights * differences).sum(axis=1) / weights.sum(axis=1)
    return float(matched.mean())


@dataclass(frozen=True)
class ModelsTest:
    """Result of `wilcoxon_models`."""

    wilcoxon_p: float
    """One-sided Wilcoxon signed-rank p (exact up to 13 models, and up to 50 without ties)."""
    sign_p: float
    """One-sided exact sign test p."""
    wins: int
    """Number of models that score higher on themselves."""
    n: int
    """Number of models with a difference other than 0."""
    rank_sum: float = 0.0
    """Sum of the ranks of models that score lower on themselves: the smaller sum, where most score
    higher.
    """


def wilcoxon_models(selfs: npt.ArrayLike, others: npt.ArrayLike) -> ModelsTest:
    """Each model's score on itself, [model], against the mean of the others on it.

    One-sided Wilcoxon signed-rank; models without a difference are dropped. Paper: p = 0.0210 of a
    test that it does not name. That it is this one is our inference: 43/2048 is the exact p of 11
    models with a smaller rank sum of 10. Skill is not removed here.
    """
    differences = np.asarray(selfs, dtype=float) - np.asarray(others, dtype=float)
    if differences.ndim != 1 or np.isnan(differences).any():
        raise ValueError(
            f"expected two scores for each model and no NaN, got differences {differences}"
        )
    rounded = differences.round(12)  # what is equal but for rounding is a tie
    nonzero = rounded[rounded != 0]
    model_count = len(nonzero)
    if model_count == 0:
        return ModelsTest(math.nan, math.nan, 0, 0)
    from scipy import stats  # here: slow to import

    wins = int((nonzero > 0).sum())
    signed_ranks = stats.wilcoxon(nonzero, alternative="greater")
    signs = stats.binomtest(wins, model_count, alternative="greater")
    ranks = stats.rankdata(np.abs(nonzero))
    return ModelsTest(
        wilcoxon_p=float(signed_ranks.pvalue),
        sign_p=float(signs.pvalue),
        wins=wins,
        n=model_count,
        rank_sum=float(ranks[nonzero < 0].sum()),
    )
