"""Does a model predict itself better than others predict it? (Paper 003, §4.1 and G.3.)

Scores are `x  # [target, observer, item]`, NaN where unscored, observers in the order of targets; average the epochs
and keys of an item before. One difference carries everything here, for target i and another observer j:

    d_ij = (x_ii - x_ij) - (skill of i - skill of j on the targets that are neither i nor j)

The self advantage T = [tr(A) - ΣA/M]/(M - 1) of the cell means A is the mean of all d_ij, and a
model's own advantage the mean over j. Models are fixed; intervals and p are t's, over items. Below
stands what the paper computes: its test over models (`wilcoxon_models`) and its transform
(`paper_transform`).
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import Estimate, FloatArray, bootstrap, undefined, wilson

TWO_MODELS = (
    "needs three models: with two there is no third target to measure the observers' skill on"
)
EXACT_MODELS = 8
"""Largest number of models of which all assignments of observers to targets are enumerated
(40,320).
"""
RESAMPLES = 9_999


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
    scores = np.asarray(x, dtype=float)
    if scores.ndim != 3 or scores.shape[0] != scores.shape[1] or len(scores) < 2:
        raise ValueError(
            f"expected [target, observer, item] of two or more models, got shape {scores.shape}"
        )
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


def total_weights(size: int) -> FloatArray:
    """w[target, observer] with T = Σ w·A."""
    return np.asarray((np.eye(size) - 1 / size) / (size - 1))


def _own_weights(size: int) -> FloatArray:
    """w[i, target, observer] with the mean over j of d_ij = Σ w·A, for three models or more."""
    weights = np.zeros((size,) * 3)
    for i, j in zip(*np.nonzero(~np.eye(size, dtype=bool)), strict=True):
        common = [t for t in range(size) if t not in (i, j)]
        weights[i, i, i] += 1
        weights[i, i, j] -= 1
        weights[i, common, i] -= 1 / len(common)
        weights[i, common, j] += 1 / len(common)
    return weights / (size - 1)


def _contrasts(
    scores: FloatArray, weights: FloatArray, level: float
) -> list[tuple[Estimate, float, float]]:
    """Estimate with t interval, SE and one-sided p of each Σ w·A, weights[k, target, observer], Σ w
    = 0.

    Items are the clusters, shared by all cells. If the items do not differ at all, a t interval
    would have no width; for scores in [0, 1] the contrast lies in ±Σ|w|/2 and Wilson's interval on
    that range is taken instead.
    """
    n, scored = scores.shape[2], ~np.isnan(scores)
    means, counts = np.nanmean(scores, axis=2), scored.sum(axis=2)
    residuals = np.where(scored, scores - means[:, :, None], 0.0) * (n / counts)[:, :, None]
    influence = np.tensordot(weights, residuals, 2)  # [k, item]
    results = []
    for w, row in zip(weights, influence, strict=True):
        value = float((w * means).sum())
        se = math.sqrt(float(row @ row) / (n * (n - 1))) if n > 1 else math.nan
        if se > 1e-12:
            half, p = (
                -float(special.stdtrit(n - 1, (1 - level) / 2)) * se,
                float(special.stdtr(n - 1, -value / se)),
            )
            results.append((Estimate(value, value - half, value + half, n, "item", se=se), se, p))
        elif n > 1 and np.nanmin(scores) >= 0 and np.nanmax(scores) <= 1:
            bound = float(np.abs(w).sum() / 2)
            low, high = wilson((value / bound + 1) / 2, n, df=n - 1, level=level)
            estimate = Estimate(value, (2 * low - 1) * bound, (2 * high - 1) * bound, n, "item")
            results.append((estimate, se, float(special.ndtr(-value / bound * math.sqrt(n)))))
        else:
            reason = "all items are alike" if n > 1 else "no interval from one item or cluster"
            results.append((undefined(reason, n=n, value=value), se, math.nan))
    return results


def self_advantage(
    x: npt.ArrayLike,
    models: Sequence[str] | None = None,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
) -> SelfAdvantage:
    """Linear self advantage of `x  # [target, observer, item]` with item-level inference; see the module's top.

    A cell without any score makes everything undefined, with a reason that names the cell. T and
    the own advantages are estimates on an additive scale, where skill times predictability looks
    like access: no verdict rests on them.
    """
    scores, names = _checked(x, models)
    size = len(scores)
    if empty := _empty_cell(scores, names):
        hole, nothing = undefined(empty), np.full((size, size), math.nan)
        own = tuple(ModelAdvantage(name, hole) for name in names)
        return SelfAdvantage(
            hole, math.nan, math.nan, Permutation(math.nan, 0, True), own, nothing, nothing
        )
    means, centred = np.nanmean(scores, axis=2), double_centre(np.nanmean(scores, axis=2))
    total, se, p_total = _contrasts(scores, total_weights(size)[None], level)[0]
    permutation = observers_permuted(centred, rng=rng)
    if size == 2:
        return SelfAdvantage(total, se, p_total, permutation, (), means, centred)
    found = _contrasts(scores, _own_weights(size), level)
    own = tuple(
        ModelAdvantage(name, estimate) for name, (estimate, _, _) in zip(names, found, strict=True)
    )
    return SelfAdvantage(total, se, p_total, permutation, own, means, centred)


def total_of(
    x: npt.ArrayLike, models: Sequence[str] | None = None, *, level: float = 0.95
) -> Estimate:
    """T alone, with its item-level interval; as in `self_advantage`."""
    scores, names = _checked(x, models)
    if empty := _empty_cell(scores, names):
        return undefined(empty)
    return _contrasts(scores, total_weights(len(scores))[None], level)[0][0]


def total_bounds(x: npt.ArrayLike) -> tuple[float, float]:
    """T if every score that is missing spoke against it (own 0, others' 1), and if every one spoke
    for it.

    An item that no observer of a target has, since the target's act failed, is not among them. NaN
    where scores leave [0, 1], or a cell stays empty.
    """
    scores, _ = _checked(x, None)
    known = ~np.isnan(scores)
    if (scores[known] < 0).any() or (scores[known] > 1).any():
        return math.nan, math.nan
    missing, own = (
        ~known & known.any(axis=1, keepdims=True),
        np.eye(len(scores), dtype=bool)[:, :, None],
    )
    ends = []
    for worst in (True, False):
        filled = np.where(
            missing, np.where(own, 0.0 if worst else 1.0, 1.0 if worst else 0.0), scores
        )
        counts = (~np.isnan(filled)).sum(axis=2)
        means = np.nansum(filled, axis=2) / np.where(counts, counts, math.nan)
        ends.append(float((total_weights(len(scores)) * means).sum()))
    return ends[0], ends[1]


def observers_permuted(centred: FloatArray, *, rng: np.random.Generator) -> Permutation:
    """One-sided permutation test of T, the trace of `centred  # [target, observer]`, over the order of observers."""
    from scipy import stats  # here: slow to import

    def trace(order: npt.NDArray[np.intp], axis: int) -> FloatArray:
        return np.asarray(
            np.round(centred[rows, order].sum(axis=axis), 12)
        )  # rounding errors must not break ties

    rows, exact = np.arange(len(centred)), len(centred) <= EXACT_MODELS
    resamples = math.factorial(len(centred)) if exact else RESAMPLES
    found = stats.permutation_test(
        (rows,),
        trace,
        permutation_type="pairings",
        vectorized=True,
        n_resamples=resamples,
        alternative="greater",
        rng=rng,
    )
    return Permutation(float(found.pvalue), len(found.null_distribution), exact)


def named_permuted(
    centred: FloatArray, named: Sequence[int], *, rng: np.random.Generator | None = None
) -> Permutation:
    """One-sided permutation test of the sum of the named models' own centred cells, over the order
    of observers.

    Args:
        centred: Double-centred cell means [target, observer].
        named: Places of the named models.
        rng: Draws orders where there are more than can be enumerated. Default: a fixed seed.
    """
    size, count = len(centred), len(named)
    orders = math.perm(size, count)
    is_exact = orders <= math.factorial(EXACT_MODELS)
    if is_exact:
        observers = np.array(list(itertools.permutations(range(size), count)))
    else:
        generator = rng or np.random.default_rng(0)
        identity = np.tile(np.arange(size), (RESAMPLES, 1))
        drawn = generator.permuted(identity, axis=1)[:, :count]
        observers = np.concatenate([np.array([named]), drawn])
    sums = np.round(centred[np.asarray(named), observers].sum(axis=1), 12)
    observed = np.round(centred[named, named].sum(), 12)
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
    if empty := _empty_cell(scores, names):
        return undefined(empty)
    items = np.ascontiguousarray(np.moveaxis(scores, 2, 0))
    return bootstrap(
        _matched, items, clusters=np.arange(len(items)), rng=rng, resamples=resamples, level=level
    )


def _matched(items: FloatArray) -> float:
    """The statistic of `capability_control` for items[item, target, observer]; NaN if a cell has no
    score.
    """
    scored = ~np.isnan(items)
    if not (counts := scored.sum(axis=0)).all():
        return math.nan
    a = np.where(scored, items, 0.0).sum(axis=0) / counts
    size, own, off = len(a), np.diag(a), ~np.eye(len(a), dtype=bool)
    skill_i = a.sum(axis=0)[:, None] - own[:, None] - a.T  # of i, over targets other than i and j
    skill_j = a.sum(axis=0)[None, :] - own[None, :] - a
    gap = (skill_i - skill_j) / (size - 2)
    width = float(np.median(np.abs(gap[off]))) or 1.0  # all alike: all weigh the same
    far = np.where(off, (gap / width) ** 2, math.inf)
    weights = np.exp(
        -0.5 * (far - far.min(axis=1, keepdims=True))
    )  # of the nearest 1: their ratios count alone
    matched = (weights * (own[:, None] - a - gap)).sum(axis=1) / weights.sum(axis=1)
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


@dataclass(frozen=True)
class PaperTransform:
    """Result of `paper_transform`."""

    aggregate: FloatArray
    """A[target, observer], the mean of the min-max normalised tasks; NaN where a task has no score.
    """
    log: FloatArray
    """L = ln(A + ε)."""
    centred: FloatArray
    """C, the double-centred L; all NaN if a cell is."""
    eps: float
    """The ε that was added."""
    reasons: Mapping[str, str]
    """Tasks left out of A → why."""


@dataclass(frozen=True)
class EpsilonRow:
    """One line of `epsilon_sensitivity`."""

    eps: float
    """The ε that was added."""
    advantage: float
    """tr(C)/(M - 1), T on the log scale; NaN where C is."""
    positive: int
    """Number of models whose own cell in C is positive."""
    raw: bool = False
    """Whether A is the mean of the scores as they are, without min-max."""


def wilcoxon_models(selfs: npt.ArrayLike, others: npt.ArrayLike) -> ModelsTest:
    """The paper's test: each model's score on itself against the mean of the others on it, `selfs  # [model]`.

    One-sided Wilcoxon signed-rank; models without a difference are dropped. Paper: p = 0.0210,
    which is the exact 43/2048 of 11 models with a smaller rank sum of 10. Skill is not removed
    here.
    """
    difference = np.asarray(selfs, dtype=float) - np.asarray(others, dtype=float)
    if difference.ndim != 1 or np.isnan(difference).any():
        raise ValueError(
            f"expected two scores for each model and no NaN, got differences {difference}"
        )
    nonzero = (rounded := difference.round(12))[
        rounded != 0
    ]  # what is equal but for rounding is a tie
    wins, n = int((nonzero > 0).sum()), len(nonzero)
    if n == 0:
        return ModelsTest(math.nan, math.nan, 0, 0)
    from scipy import stats  # here: slow to import

    p = float(stats.wilcoxon(nonzero, alternative="greater").pvalue)
    below = float(stats.rankdata(np.abs(nonzero))[nonzero < 0].sum())
    return ModelsTest(
        p, float(stats.binomtest(wins, n, alternative="greater").pvalue), wins, n, below
    )


def paper_transform(matrices: Mapping[str, npt.ArrayLike], eps: float) -> PaperTransform:
    """Min-max per task, mean A, L = ln(A + ε), double-centred C (G.3), for task name ->
    matrix[target, observer].

    A task whose scores are all equal has no min-max: it is left out of A, with a reason. A hole in
    a task is a hole in A. Paper: no number of ε in the text, 1e-5 in the public notebook. Here: the
    caller's, and shown; see `epsilon_sensitivity`.
    """
    tasks = {name: np.asarray(matrix, dtype=float) for name, matrix in matrices.items()}
    shapes = {name: task.shape for name, task in tasks.items()}
    if len(set(shapes.values())) != 1 or any(
        len(shape) != 2 or shape[0] != shape[1] for shape in shapes.values()
    ):
        raise ValueError(f"expected one or more square matrices of one size, got {shapes}")
    if eps < 0:
        raise ValueError(f"eps must be 0 or more, got {eps}")
    parts, reasons = [], {}
    for name, task in tasks.items():
        scored = task[~np.isnan(task)]
        if scored.size and np.ptp(scored) > 0:
            parts.append(min_max(task))
        else:
            reasons[name] = (
                "all scores are equal: min-max is undefined" if scored.size else "no score"
            )
    size = next(iter(tasks.values())).shape
    aggregate = np.mean(parts, axis=0) if parts else np.full(size, math.nan)
    if eps == 0 and (aggregate == 0).any():
        i, j = np.argwhere(aggregate == 0)[0]
        raise ValueError(
            f"ln(0): A is 0 for target {i}, observer {j} (counted from 0); choose eps > 0, such as 0.01"
        )
    log = np.log(aggregate + eps)
    return PaperTransform(aggregate, log, double_centre(log), eps, reasons)


def min_max(means: FloatArray) -> FloatArray:
    """Min-max over the last two axes of [..., target, observer]; NaN where all of them are equal."""
    low, high = (end(means, axis=(-2, -1), keepdims=True) for end in (np.nanmin, np.nanmax))
    return np.asarray((means - low) / np.where(high > low, high - low, math.nan))


NOTEBOOK = 1e-5
"""ε of the paper's public notebook."""


def epsilon_sensitivity(
    matrices: Mapping[str, npt.ArrayLike],
    epsilons: Sequence[float] = (1e-6, NOTEBOOK, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
) -> tuple[EpsilonRow, ...]:
    """Results of the paper's transform for each ε: the log-scale T, and how many diagonal cells are
    positive.

    The last row is of the mean of the scores as they are, which the public notebook centres too,
    with its ε; it is left out where that mean plus ε is not above 0.
    """
    found = [(eps, paper_transform(matrices, eps).centred, False) for eps in epsilons]
    raw = (
        np.mean([np.asarray(matrix, dtype=float) for matrix in matrices.values()], axis=0)
        + NOTEBOOK
    )
    if not (raw <= 0).any():
        found.append((NOTEBOOK, double_centre(np.log(raw)), True))
    return tuple(
        EpsilonRow(
            eps, float((own := np.diag(centred)).sum() / (len(own) - 1)), int((own > 0).sum()), raw
        )
        for eps, centred, raw in found
    )
