"""Estimates with intervals by cluster, baselines, divergences and Holm's correction: arrays in,
frozen results out.

With clusters of one size the variances here are CR1's (statsmodels' OLS on a constant), and the
degrees of freedom clusters - 1. With unequal ones CR1 is too small and clusters - 1 too many: where
one of 40 clusters has half of the rows, 65 to 89 % of simulated 95 % t intervals hold the truth
with them, and 96 to 99 % with those here (docs/statistics.md).

One bootstrap, which everything else calls. A result that is undefined is NaN with a reason, never
0. Scores that were not given ("unscored") are NaN.
"""

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

FloatArray = npt.NDArray[np.float64]

FEW = 6
"""Number of clusters below which equal clusters may be chance: a variance is then at least that of
independent rows.
"""
NOTHING = 1e-24
"""Largest variance that is rounding error."""


def cluster_errors(
    errors: FloatArray, inverse: npt.NDArray[np.intp], n: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Contribution of each cluster to the error of a mean, and its share of the rows, [cluster].

    Args:
        errors: Distance of each row from the mean.
        inverse: Cluster of each row, 0, 1, ….
        n: Least number of clusters; those without a row have a share of 0.
    """
    rows = len(errors)
    return np.bincount(inverse, errors, minlength=n) / rows, np.bincount(
        inverse, minlength=n
    ) / rows


def cr2(errors: FloatArray, held: FloatArray) -> float:
    """Variance of a mean (CR2, Bell & McCaffrey 2002), from each cluster's part of its error and
    share of rows.
    """
    return float((errors**2 / (1 - held)).sum())


def jackknife(errors: FloatArray, held: FloatArray) -> float:
    """Variance of a mean by leaving out one cluster at a time (CR3), from the arrays that `cr2`
    takes.
    """
    without = errors / (1 - held)
    n = np.count_nonzero(held)
    return (n - 1) / n * float(without @ without)


def floored(variance: float, clusters: int, *errors: FloatArray) -> float:
    """Variance of a mean, or of a sum of means; with fewer than FEW clusters at least that of
    independent rows.

    Clusters that do not differ at all tell nothing of their spread, however many: then it is that
    of the rows too.

    Args:
        variance: Variance from the clusters.
        clusters: Number of clusters that it comes from.
        errors: Distance of each row from its mean, `[row]`, one array per mean.
    """
    if clusters >= FEW and variance > NOTHING:
        return variance
    return max(
        variance, sum(float(each @ each) / (len(each) * max(len(each) - 1, 1)) for each in errors)
    )


def bell_mccaffrey(held: FloatArray) -> float:
    """Degrees of freedom of either variance, of each cluster's share of the rows (2002, Survey
    Methodology 28:169).

    >>> round(bell_mccaffrey(np.full(8, 1 / 8)), 9), round(bell_mccaffrey(np.array([0.9, 0.05, 0.05])), 2)
    (7.0, 1.11)
    """
    spread = held**2 / (1 - held)
    return 1 / float(held @ held + spread.sum() ** 2 - spread @ spread)


def effective(scores: FloatArray, inverse: npt.NDArray[np.intp]) -> float:
    """Number of independent scores in [0, 1] that would say as much about the mean as these in
    their clusters.

    At most their number where they are 0 or 1, and of fewer than FEW clusters what they would know
    if they were independent. One further cluster counts, half right and half wrong: few wrong ones
    would pretend to be independent.
    """
    rows, n = len(scores), int(inverse.max()) + 1
    each = rows / n  # rows of the further cluster
    total = rows + each
    mean = (scores.sum() + each / 2) / total
    errors, held = cluster_errors(scores - mean, inverse)
    variance = cr2(errors * rows / total, held * rows / total)
    variance += (each / total) ** 2 * (mean**2 + (1 - mean) ** 2) / 2 / (1 - each / total)
    found = float(rows * mean * (1 - mean) / (variance * total))
    if n < min(FEW, rows):
        found = min(found, effective(scores, np.arange(rows)))
    return min(found, float(rows)) if np.isin(scores, (0, 1)).all() else found


def wilson(
    share: float, n: float, *, df: float = math.inf, level: float = 0.95
) -> tuple[float, float]:
    """Wilson's score interval for a share of n (possibly an effective n), with t(df) in the place
    of z.
    """
    t2 = float(special.stdtrit(df, (1 - level) / 2)) ** 2
    centre = (share + t2 / (2 * n)) / (1 + t2 / n)
    half = math.sqrt(t2) / (1 + t2 / n) * math.sqrt(share * (1 - share) / n + t2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)


FEWEST = 5
"""Number of clusters from which a skill over a baseline that varies has an interval; see `skill`.
"""


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, e.g. `Estimate(.62, .55, .69, n=200, unit="question")`."""

    value: float
    """The point estimate; NaN where undefined."""
    low: float
    """Lower end of the interval (95 % unless asked otherwise); NaN where undefined."""
    high: float
    """Upper end of the interval; NaN where undefined."""
    n: int
    """Number of independent units (clusters) that carry a score: what was resampled."""
    unit: str
    """Name of one such unit: "item", "question", "model"."""
    reason: str = ""
    """Reason why the value or its interval is undefined, or what was left out; else empty."""
    se: float = math.nan
    """Cluster-robust standard error, for a mean alone; NaN where the values are all equal."""
    df: float = math.nan
    """Degrees of freedom of a mean's interval: clusters - 1 where all hold as many rows, else
    fewer.
    """


def undefined(reason: str, *, n: int = 0, unit: str = "item", value: float = math.nan) -> Estimate:
    """An estimate without an interval (and, unless `value` is passed, without a value) that gives a
    reason.
    """
    return Estimate(value, math.nan, math.nan, n, unit, reason)


def bootstrap(
    statistic: Callable[..., Any],
    *arrays: npt.ArrayLike,
    clusters: npt.ArrayLike,
    rng: np.random.Generator,
    resamples: int = 2000,
    level: float = 0.95,
    unit: str = "item",
    of_means: bool = False,
) -> Estimate:
    """Cluster bootstrap: whole clusters are drawn with replacement, all their rows together.

    `arrays` share their first axis (rows) with `clusters`, one label a row. `statistic(*arrays)`
    gets the rows of the drawn clusters and returns a float, NaN where undefined: such resamples are
    left out, and counted in `reason`. With `of_means` it gets the mean of each array instead,
    floats for the value itself and one call with arrays [resample] for the rest, which takes no
    time. The interval is Hesterberg's expanded percentile interval (2015, The American Statistician
    69:371): for a mean as wide as the t interval with clusters - 1 degrees of freedom. Of fewer
    than six clusters (`spread.FEW`) single rows are drawn too, and the interval holds both: two
    clusters have three resamples, and theirs held the truth in half of simulations. One cluster, or
    the same value in every resample, tells nothing about the spread: the interval is then NaN with
    a reason.
    """
    data, labels = [np.asarray(array) for array in arrays], np.asarray(clusters)
    if not data or labels.ndim != 1 or any(array.shape[:1] != labels.shape for array in data):
        shapes = [array.shape for array in data]
        raise ValueError(
            f"expected arrays with one row for each of {labels.shape} cluster labels, got {shapes}"
        )
    if resamples < 100 or not 0 < level < 1:
        raise ValueError(
            f"expected resamples >= 100 and a level in (0, 1), got {resamples} and {level}"
        )
    inverse = np.unique(labels, return_inverse=True)[1]
    n = int(inverse.max()) + 1 if len(inverse) else 0
    value = (
        float(statistic(*[array.mean() for array in data] if of_means else data)) if n else math.nan
    )
    if math.isnan(value):
        return undefined(
            "the statistic is undefined for these data" if n else "no data", n=n, unit=unit
        )
    if n < 2:
        return undefined(f"no interval from one {unit}", n=n, unit=unit, value=value)
    draws = [_draws(statistic, data, inverse, rng, resamples, of_means)]
    if n < min(FEW, len(inverse)):
        order = _canonical(data, inverse)
        rows = [array[order] for array in data]
        draws.append(_draws(statistic, rows, np.arange(len(order)), rng, resamples, of_means))
    defined = [each[~np.isnan(each)] for each in draws]
    drawn = resamples * len(draws)
    left_out = drawn - sum(map(len, defined))
    reason = f"{left_out} of {drawn} resamples undefined, left out" if left_out else ""
    if not all(map(len, defined)) or max(map(np.ptp, defined)) <= 1e-12 * max(abs(value), 1):
        return undefined(
            reason or "every resample gives the same value", n=n, unit=unit, value=value
        )
    tail = special.ndtr(math.sqrt(n / (n - 1)) * special.stdtrit(n - 1, (1 - level) / 2))
    # "weibull": unbiased tails for few resamples
    lows, highs = zip(
        *(np.quantile(each, [tail, 1 - tail], method="weibull") for each in defined), strict=True
    )
    return Estimate(value, float(min(lows)), float(max(highs)), n, unit, reason)


def _draws(
    statistic: Callable[..., Any],
    data: Sequence[npt.NDArray[Any]],
    inverse: npt.NDArray[np.intp],
    rng: np.random.Generator,
    resamples: int,
    of_means: bool,
) -> FloatArray:
    """The statistic of each resample of the clusters `inverse  # [row]`."""
    sizes = np.bincount(inverse)
    if of_means:
        times = rng.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), size=resamples)
        return np.asarray(
            statistic(*[times @ np.bincount(inverse, array) / (times @ sizes) for array in data])
        )
    picks = (_rows_of_drawn_clusters(inverse, sizes, rng) for _ in range(resamples))
    return np.array([statistic(*[array[rows] for array in data]) for rows in picks], dtype=float)


def _canonical(
    data: Sequence[npt.NDArray[Any]], inverse: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Order of the rows by cluster and values, which does not depend on the order in which they
    came.
    """
    codes = [
        np.unique(a, axis=0 if a.ndim > 1 else None, return_inverse=True)[1].ravel() for a in data
    ]
    return np.asarray(np.lexsort([*codes, inverse]))


def _rows_of_drawn_clusters(inverse: Any, sizes: Any, rng: np.random.Generator) -> Any:
    """Rows of as many clusters as there are, drawn with replacement; `inverse  # [row]` is each row's cluster."""
    order, starts = np.argsort(inverse, kind="stable"), np.cumsum(sizes) - sizes
    pick = rng.integers(len(sizes), size=len(sizes))
    ends = np.cumsum(sizes[pick])
    return order[np.repeat(starts[pick] - ends + sizes[pick], sizes[pick]) + np.arange(ends[-1])]


def clustered_mean(
    values: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    unit: str = "item",
    level: float = 0.95,
    interval: Literal["auto", "wilson", "t", "difference"] = "auto",
) -> Estimate:
    """Mean of the scored `values  # [row]` with an interval robust to correlation within clusters.

    NaN is unscored and left out; `n` counts the clusters that have a score. The standard error is
    the jackknife's, with Bell & McCaffrey's degrees of freedom (see `spread`): those of
    statsmodels' OLS on a constant where clusters are of one size; of few clusters at least that of
    independent rows (`spread.floored`).

    "t": mean ± t·SE. "wilson": Wilson's score interval with t for z and for n the effective size
    mean(1 - mean)/SE² (Korn & Graubard 1998; Franco et al. 2019), as `effective` finds it. "auto":
    Wilson when all values lie in [0, 1]; say "t" for divergences, which may lie there by chance.
    "difference": of two scores in [0, 1], Wilson's on [-1, 1], the further cluster half at either
    end; a single value may be more than 1, where what is taken off varies too. On simulated
    item-specific scores it covers .89 to 1.0, where t covers .21 to 1.0.
    """
    scores, labels = np.asarray(values, dtype=float), np.asarray(clusters)
    if scores.ndim != 1 or scores.shape != labels.shape:
        raise ValueError(
            f"expected one cluster label for each value, got {labels.shape} for {scores.shape}"
        )
    if np.isinf(scores).any():
        raise ValueError("values must be finite, or NaN where unscored; got an infinite one")
    scored = ~np.isnan(scores)
    scores, (_, inverse) = scores[scored], np.unique(labels[scored], return_inverse=True)
    n = int(inverse.max()) + 1 if len(inverse) else 0
    if n == 0:
        return undefined("nothing was scored", unit=unit)
    in_unit = bool(((scores >= 0) & (scores <= 1)).all())
    if interval == "wilson" and not in_unit:
        raise ValueError(
            f"expected values in [0, 1] for wilson, got {scores.min():g} to {scores.max():g}"
        )
    mean = float(scores.mean())
    if interval == "difference" and abs(mean) > 1 + 1e-9:
        raise ValueError(
            f"expected differences of scores in [0, 1], got {scores.min():g} to {scores.max():g}"
        )
    if n < 2:
        return undefined(f"no interval from one {unit}", n=n, unit=unit, value=mean)
    errors, held = cluster_errors(scores - mean, inverse)
    se, df = math.sqrt(floored(jackknife(errors, held), n, scores - mean)), bell_mccaffrey(held)
    known = se if se > 1e-12 else math.nan
    if interval == "difference":
        low, high = wilson(
            np.clip((mean + 1) / 2, 0, 1), effective((scores + 1) / 2, inverse), df=df, level=level
        )
        return Estimate(mean, 2 * low - 1, 2 * high - 1, n, unit, se=known, df=df)
    if interval == "wilson" or (interval == "auto" and in_unit):
        ends = wilson(mean, effective(scores, inverse), df=df, level=level)
        return Estimate(mean, *ends, n, unit, se=known, df=df)
    if se <= 1e-12 * max(abs(mean), 1):
        return undefined("all values are equal", n=n, unit=unit, value=mean)
    half = -float(special.stdtrit(df, (1 - level) / 2)) * se
    return Estimate(mean, mean - half, mean + half, n, unit, se=se, df=df)


def mode_baseline(
    truths: Iterable[Any],
    clusters: npt.ArrayLike | None = None,
    *,
    right: Callable[[Any, Any], bool] = operator.eq,
) -> FloatArray:
    """Hits in [0, 1] of saying the truth that is right most often for the *other* items, for `truths  # [row]`.

    With equality that is the most frequent truth; else `right(said, truth)` is the grading rule.
    Rows with the same label in `clusters` are one item, left out together. A single item has no
    others: NaN. Truths that tie are guessed alike, and a hit is their expected one. A truth that
    some other item has, and that would tie with the item's own rows counted, ties too: leaving it
    out would else make every guess wrong where truths are equally frequent. So the baseline is, if
    anything, above what such a guess reaches on new items.
    """
    said, truth = np.unique(np.asarray(list(truths)), return_inverse=True)
    same = right is operator.eq
    hit = np.eye(len(said)) if same else np.array([[bool(right(a, b)) for b in said] for a in said])
    items = np.arange(len(truth)) if clusters is None else np.asarray(clusters)
    _, groups = np.unique(items, return_inverse=True)
    if truth.ndim != 1 or groups.shape != truth.shape:
        raise ValueError(
            f"expected one cluster label for each truth, got {groups.shape} for {truth.shape}"
        )
    counts, hits = np.bincount(truth), np.full(len(truth), math.nan)
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        if len(rows) < len(truth):
            others = counts - np.bincount(truth[rows], minlength=len(counts))
            score, own = (
                (others, counts - others) if same else (hit @ others, hit @ (counts - others))
            )
            tied = (score + own >= score.max()) & (score >= min(1, score.max()))
            hits[rows] = hit[tied][:, truth[rows]].mean(axis=0)
    return hits


def skill(
    values: npt.ArrayLike, baseline: npt.ArrayLike, clusters: npt.ArrayLike, *, unit: str = "item"
) -> Estimate:
    """Share of the way from the baseline to a perfect score: (s - b)/(1 - b), s and b the two
    means.

    `values` and `baseline  # [decision]` with the item of each in `clusters`. Undefined where the baseline is perfect.
    The interval is that of s, as wide as s and b together vary: of s - (1 - s)/(1 - b)·(b_i - mean b), linearised.
    Of fewer than five clusters a baseline that varies leaves it without one.
    """
    scores, hits = np.asarray(values, dtype=float), np.asarray(baseline, dtype=float)
    n, b = len(np.unique(np.asarray(clusters))), float(hits.mean()) if hits.size else math.nan
    if not b < 1:
        return undefined("the baseline is perfect" if hits.size else "no data", n=n, unit=unit)
    bounded = bool(((scores >= 0) & (scores <= 1)).all())
    together = scores - (1 - scores.mean()) / (1 - b) * (hits - b)  # has the mean of the scores
    if np.ptp(hits) == 0:
        s = clustered_mean(scores, clusters, unit=unit)
    elif n < FEWEST:
        reason = f"the baseline varies too much for an interval from {n} {unit}{'s' * (n != 1)}"
        return undefined(reason, n=n, unit=unit, value=float((scores.mean() - b) / (1 - b)))
    elif bounded and scores.mean() >= b:  # below, what varies together leaves [0, 1] by far
        on = clustered_mean(2 * together - 1, clusters, unit=unit, interval="difference")
        s = Estimate((on.value + 1) / 2, (on.low + 1) / 2, (on.high + 1) / 2, on.n, unit)
    else:
        s = clustered_mean(together, clusters, unit=unit, interval="t")
    value, low, high = (float((end - b) / (1 - b)) for end in (s.value, s.low, s.high))
    return Estimate(value, low, high, s.n, unit, s.reason)


def worst_case(values: npt.ArrayLike, unscored: int) -> tuple[float, float]:
    """Mean of scores in [0, 1] if all `unscored` ones were wrong, and if they were right. NaN
    without any.
    """
    scores = np.asarray(values, dtype=float)
    if unscored < 0 or not ((scores >= 0) & (scores <= 1)).all():
        raise ValueError(
            f"expected scored values in [0, 1] and unscored >= 0, got {scores} and {unscored}"
        )
    total = scores.size + unscored
    if total == 0:
        return math.nan, math.nan
    return float(scores.sum() / total), float((scores.sum() + unscored) / total)


def _probabilities(name: str, values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=float)
    if ((array < 0) | (array > 1)).any():
        raise ValueError(
            f"{name} must hold probabilities in [0, 1] (NaN where unscored), got {array}"
        )
    return array


def smoothed(p: npt.ArrayLike, n: npt.ArrayLike) -> FloatArray:
    """Jeffreys-smoothed mean probability over n rollouts, (n·p + ½)/(n + 1): never 0 or 1;
    broadcasts.
    """
    mean, rollouts = _probabilities("p", p), np.asarray(n, dtype=float)
    if (rollouts < 1).any():
        raise ValueError(f"n must be at least 1 rollout, got {rollouts}")
    return np.asarray((rollouts * mean + 0.5) / (rollouts + 1))


def kl(p: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
    """KL(Bernoulli(p) ‖ Bernoulli(q)) in nats, elementwise; NaN stays NaN, infinite where q rules p
    out.
    """
    a, b = _probabilities("p", p), _probabilities("q", q)
    return np.asarray(special.rel_entr(a, b) + special.rel_entr(1 - a, 1 - b))


def js(p: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
    """Jensen–Shannon divergence of Bernoulli(p) and Bernoulli(q) in nats, elementwise: at most ln
    2.
    """
    middle = (_probabilities("p", p) + _probabilities("q", q)) / 2
    return np.asarray((kl(p, middle) + kl(q, middle)) / 2)


def jsd(distributions: npt.ArrayLike) -> FloatArray:
    """Equal-weight JSD in nats of `distributions  # [..., judge, option]` (paper 003, F.4, Algorithm 1)."""
    array = _probabilities("distributions", distributions)
    sums = array.sum(axis=-1) if array.ndim >= 2 else np.zeros(1)
    if array.ndim < 2 or (np.abs(sums - 1) > 1e-6).any():
        raise ValueError(
            f"expected [..., judge, option] summing to 1 over options (normalise first), got {sums}"
        )
    mixture = array.mean(axis=-2, keepdims=True)
    return np.asarray(special.rel_entr(array, mixture).sum(axis=-1).mean(axis=-1))


def holm(pvalues: npt.ArrayLike) -> FloatArray:
    """Holm-adjusted `pvalues  # [test]`; an undefined one (NaN) stays NaN and is no member of the family.

    Not statsmodels' multipletests, which collects garbage at every call (0.1 s); the tests compare
    the two.
    """
    p = _probabilities("pvalues", pvalues)
    adjusted, order = np.full(p.shape, math.nan), np.argsort(p)[: np.count_nonzero(~np.isnan(p))]
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return adjusted


def two_sided(mean: Estimate) -> float:
    """p of the hypothesis that a mean is 0, by its t; NaN where it has no standard error."""
    return two_sided_p(mean.value / mean.se, mean.df) if mean.se > 0 else math.nan


def two_sided_p(t: float, df: float) -> float:
    """p of no difference at a t value with so many degrees of freedom."""
    return 2 * float(special.stdtr(df, -abs(t)))


# ---- AUROC of scores for two classes, accuracies and F1 of verdicts: fast enough to bootstrap Each
# is a function of arrays with one entry a row; the probes' tables ask for many columns or shuffles
# at a time, for which `auroc_table` and `f1_of_counts` compute the same numbers.

BoolArray = npt.NDArray[np.bool_]


def auroc(positive: BoolArray, scores: FloatArray) -> float:
    """Chance that a positive row scores above a negative one, ties half (Mann–Whitney); NaN with
    one class.

    A row whose score is NaN is left out. Not scikit-learn's, which takes fifty times as long: the
    bootstrap calls it two thousand times.
    """
    if np.isnan(scores).any():
        positive, scores = positive[~np.isnan(scores)], scores[~np.isnan(scores)]
    ours, others = scores[positive], np.sort(scores[~positive])
    if not len(ours) or not len(others):
        return math.nan
    below = np.searchsorted(others, ours, side="left") + np.searchsorted(others, ours, side="right")
    return float(below.sum() / (2 * len(ours) * len(others)))


def auroc_table(positive: BoolArray, scores: FloatArray) -> FloatArray:
    """`auroc` [k, m] of all `scores  # [k, row]` under all labels `positive  # [m, row]`, both classes in each."""
    from scipy.stats import rankdata  # here: slow to import

    ranks, ours = rankdata(scores, axis=1), positive.sum(axis=1)
    others = positive.shape[1] - ours
    return np.asarray((ranks @ positive.T.astype(float) - ours * (ours + 1) / 2) / (ours * others))


def accuracy(positive: BoolArray, scores: FloatArray) -> float:
    """Share of rows whose score has the right sign, above 0 for positive; a score of exactly 0 is a
    tie, half right.
    """
    truth = np.where(positive, 1.0, -1.0)
    return float(np.mean(0.5 + truth * np.sign(scores) / 2)) if len(truth) else math.nan


def balanced_accuracy(positive: BoolArray, called: BoolArray) -> float:
    """Mean of both classes' shares of right verdicts; NaN with one class."""
    if positive.all() or not positive.any():
        return math.nan
    return float((called[positive].mean() + (~called[~positive]).mean()) / 2)


def weighted_f1(truth: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float:
    """F1 of each label in `truth  # [row]`, weighted by how often it occurs; any other label `predicted` is a miss.

    scikit-learn's f1_score(average="weighted"); NaN without a row.
    """
    labels = np.unique(truth)[:, None]
    true, ours = truth == labels, predicted == labels
    return float(f1_of_counts((true & ours).sum(axis=1), ours.sum(axis=1), true.sum(axis=1)))


def f1_of_counts(
    hits: npt.ArrayLike, predicted: npt.ArrayLike, support: npt.ArrayLike
) -> FloatArray:
    """`weighted_f1` [...] from counts of rows [label, ...]: correct verdicts, verdicts, and truths
    for each label.
    """
    right, claimed, true = (
        np.asarray(counts, dtype=float) for counts in (hits, predicted, support)
    )
    with np.errstate(invalid="ignore"):  # without a row: NaN
        return np.asarray(
            (true * 2 * right / np.maximum(claimed + true, 1)).sum(axis=0) / true.sum(axis=0)
        )


def spearman(x: npt.ArrayLike, y: npt.ArrayLike, *, unit: str = "model") -> Estimate:
    """Rank correlation of two columns [row], ties averaged, with Fisher's z interval (Bonett &
    Wright 2000).

    Rows with a NaN on either side are left out. Undefined with fewer than three rows or a column of
    equal values; no interval with fewer than four, or at exactly ±1.
    """
    from scipy.stats import rankdata  # here: slow to import

    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    both = ~(np.isnan(a) | np.isnan(b))
    a, b, n = a[both], b[both], int(both.sum())
    if n < 3:
        return undefined(f"fewer than three {unit}s", n=n, unit=unit)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return undefined("all values of a column are equal", n=n, unit=unit)
    rho = float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])
    if n < 4 or abs(rho) > 1 - 1e-12:
        return undefined(
            f"no interval from {n} {unit}s" if n < 4 else "no interval at ±1",
            n=n,
            unit=unit,
            value=rho,
        )
    half = 1.959964 * math.sqrt((1 + rho**2 / 2) / (n - 3))
    low, high = math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)
    return Estimate(rho, low, high, n, unit)
