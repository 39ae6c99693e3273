"""Agreement between verdicts, calibration, rates at a prevalence, and the prevalence that a judge
who errs has counted.

Arrays in, frozen results out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import (
    FEW,
    Estimate,
    FloatArray,
    bootstrap,
    clustered_mean,
    two_sided_p,
    undefined,
    wilson,
)

BoolArray = npt.NDArray[np.bool_]
BINS = 10
"""Number of bins of stated probabilities, in the expected calibration error and its figure."""


@dataclass(frozen=True)
class Agreement:
    """Two methods' or graders' verdicts on the same rows."""

    n: int
    """Rows with both verdicts."""
    observed: float
    """Share of equal verdicts."""
    kappa: Estimate
    """Cohen's kappa with its clustered interval; NaN where both give the same verdict to every row.
    """
    pabak: float
    """Prevalence- and bias-adjusted kappa, 2·observed − 1."""
    ac1: float
    """Gwet's AC1."""
    mcnemar_p: float
    """Exact McNemar p of the hypothesis that both say "evaluation" equally often."""


@dataclass(frozen=True)
class KappaCurve:
    """Kappa against the number of decisions (paper 002, footnote 3)."""

    decisions: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    """2.5 % point over the resamples."""
    high: tuple[float, ...]


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests (TOST) on paired differences."""

    difference: Estimate
    """Mean difference with its 90 % interval: equivalent when that lies within ± margin."""
    margin: float
    p: float
    """Larger of the two one-sided p; exact where all differences are equal, NaN where nothing is
    known.
    """
    equivalent: bool


@dataclass(frozen=True)
class Trend:
    """Absolute error against the number of turns (paper 002, footnote 4)."""

    r: float
    p: float
    """Two-sided p of the slope, clustered."""
    p_rows: float
    """Two-sided p of the slope with rows taken as independent, as the paper has it; see
    `turns_trend`.
    """
    slope: float
    intercept: float
    n: int


def cohen_kappa(a: BoolArray, b: BoolArray) -> float:
    """Cohen's kappa of two yes/no ratings; NaN when chance agreement is 1 (both constant and
    equal).
    """
    expected = a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean())
    return float("nan") if expected >= 1 else float(((a == b).mean() - expected) / (1 - expected))


def pearson(a: FloatArray, b: FloatArray) -> float:
    """Pearson's correlation; NaN where one of the two never varies."""
    return (
        float("nan")
        if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0
        else float(np.corrcoef(a, b)[0, 1])
    )


def agreement(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike,
    rng: np.random.Generator,
    unit: str = "source",
) -> Agreement:
    """Agreement of two methods' or two graders' verdicts on the same rows.

    Args:
        a: True where the one says "evaluation", [row].
        b: True where the other says "evaluation", [row].
        clusters: The source, or other unit, of each row.
        rng: Generator of the bootstrap.
        unit: What a cluster is.
    """
    first, second = np.asarray(a, dtype=bool), np.asarray(b, dtype=bool)
    observed = float((first == second).mean()) if len(first) else float("nan")
    q = (first.mean() + second.mean()) / 2 if len(first) else float("nan")
    return Agreement(
        n=len(first),
        observed=observed,
        kappa=bootstrap(cohen_kappa, first, second, clusters=clusters, rng=rng, unit=unit),
        pabak=2 * observed - 1,
        ac1=float((observed - 2 * q * (1 - q)) / (1 - 2 * q * (1 - q))),
        mcnemar_p=mcnemar(first, second),
    )


AGREEMENT_DRAWS = 999
"""Number of exchanges of one rater's verdicts."""


def agreement_p(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    draws: int = AGREEMENT_DRAWS,
) -> float:
    """One-sided p that two raters agree no more than chance; NaN with few clusters, or where one
    has no variety.

    Between clusters each rater's share of yes is a number, and the second's are exchanged among the
    clusters; where clusters hold several rows the second's verdicts are exchanged within each too,
    and the smaller p counts twice. So what the rows of a cluster have in common is no agreement
    within it, and a rater who says yes to everything agrees with nobody.

    Args:
        a: Verdicts of the one, [row].
        b: Verdicts of the other, [row].
        clusters: The source, or other unit, of each row; at least FEW (six).
        rng: Generator of the exchanges.
        draws: Number of exchanges.
    """
    names, inverse = np.unique(np.asarray(clusters), return_inverse=True)
    if len(names) < FEW:
        return math.nan
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return math.nan
    sizes = np.bincount(inverse)
    first_shares, second_shares = (
        np.bincount(inverse, first) / sizes,
        np.bincount(inverse, second) / sizes,
    )
    between_order = np.argsort(rng.random((draws, len(names))), axis=1)
    between = _exchange_p(first_shares - first_shares.mean(), second_shares, between_order)
    if len(names) == len(first):
        return between
    by_cluster = np.argsort(inverse, kind="stable")
    within_order = np.argsort(inverse[by_cluster] + rng.random((draws, len(first))), axis=1)
    deviations = (first - first_shares[inverse])[by_cluster]
    within = _exchange_p(deviations, second[by_cluster], within_order)
    return min(1.0, 2 * min(between, within))


def _exchange_p(deviations: FloatArray, values: FloatArray, order: npt.NDArray[np.intp]) -> float:
    """Share of orders of the values, the real one included, whose product with the deviations is as
    large.
    """
    real = float(deviations @ values)
    reached = int((values[order] @ deviations >= real - 1e-9).sum())
    return (1 + reached) / (1 + len(order))


def mcnemar(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> float:
    """McNemar's exact p that both say yes equally often, `[row]`; NaN without rows."""
    changes = [int((first & ~second).sum()), int((~first & second).sum())]
    return (
        min(1.0, 2 * float(special.bdtr(min(changes), sum(changes), 0.5)))
        if len(first)
        else float("nan")
    )


def kappa_curve(
    votes: npt.ArrayLike,
    estimates: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    resamples: int = 100,
) -> KappaCurve:
    """Kappa of majority vote against mean estimate, by how many decisions of each are drawn.

    Args:
        votes: votes[row, decision]: 1 evaluation, 0 deployment, NaN unscored (binary).
        estimates: P(evaluation) [row, decision], NaN unscored (probability).
        rng: Generator of the draws, without replacement and separate for each row and method.
        resamples: Draws a size. Paper: 100, sizes 5 to 25 in steps of 2.
    """
    a, b = np.asarray(votes, dtype=float), np.asarray(estimates, dtype=float)
    if a.ndim != 2 or len(a) != len(b):
        raise ValueError(
            f"expected two [row, decision] arrays with the same rows, got {a.shape} and {b.shape}"
        )
    sizes = list(range(5, min(a.shape[1], b.shape[1]) + 1, 2))
    rows = []
    for size in sizes:
        kappas = []
        for _ in range(resamples):
            share, mean = _drawn(a, size, rng), _drawn(b, size, rng)
            both = ~np.isnan(share) & ~np.isnan(mean) & (share != 0.5)
            kappas.append(
                cohen_kappa(share[both] > 0.5, mean[both] >= 0.5) if both.any() else float("nan")
            )
        defined = np.array([k for k in kappas if not np.isnan(k)])
        rows.append(
            (defined.mean(), *np.quantile(defined, [0.025, 0.975]))
            if len(defined)
            else (np.nan,) * 3
        )
    columns = np.array(rows, dtype=float).reshape(-1, 3).T
    return KappaCurve(tuple(sizes), *(tuple(map(float, column)) for column in columns))


def _drawn(values: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Mean of `size` decisions drawn without replacement from each row; NaN where all drawn ones
    are unscored.
    """
    at = rng.permuted(np.tile(np.arange(values.shape[1]), (len(values), 1)), axis=1)[:, :size]
    drawn = np.take_along_axis(values, at, axis=1)
    scored = ~np.isnan(drawn)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(scored, drawn, 0).sum(axis=1) / scored.sum(axis=1))


def equivalence(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike,
    margin: float = 0.1,
    unit: str = "source",
) -> Equivalence:
    """Test that two paired arms of scores in [0, 1] differ by less than `margin` on average (TOST
    at 5 %), clustered.

    The test is about errors, not answers: two arms may give opposite answers everywhere, and on
    average the same. If all rows differ by the same d, by 0 as a rule, there is no spread for t,
    and p is exact: a mean of `margin` or more takes a share 1 - (1 - margin)/(1 - |d|) of clusters
    that differ otherwise, and none of n does by chance. Equal verdicts throughout are equivalent
    within ± .1 from 29 clusters on.
    """
    difference = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    estimate = clustered_mean(difference, clusters, unit=unit, level=0.90, interval="t")
    half = (estimate.high - estimate.low) / 2
    df = estimate.df
    if not half > 0:
        p = (
            _equal_throughout(abs(estimate.value), margin) ** estimate.n
            if estimate.n
            else float("nan")
        )
        return Equivalence(estimate, margin, p, p < 0.05)
    se = half / float(special.stdtrit(df, 0.95))
    p = max(float(special.stdtr(df, -(s * estimate.value + margin) / se)) for s in (1, -1))
    return Equivalence(estimate, margin, p, p < 0.05)


def _equal_throughout(d: float, margin: float) -> float:
    """The largest chance that a cluster differs by d where the mean is `margin` or more, scores
    being in [0, 1].
    """
    return (1 - margin) / (1 - d) if d < margin else 1.0


def turns_trend(turns: Sequence[int], errors: npt.ArrayLike, clusters: npt.ArrayLike) -> Trend:
    """Least-squares line of absolute error on the number of turns; NaN where the turns do not vary.

    Conversations of one source are alike, and so are their lengths: p is of the slope with its
    standard error from leaving out each cluster in turn (jackknife, CR3), t with clusters - 1
    degrees of freedom. Where turns and difficulty go with the source and nothing with one another,
    it is below .05 in 9, 6 and 4 % of draws with 8, 12 and 30 sources; that of independent rows
    (paper 002) in 22 to 29 %.
    """
    x, y = np.asarray(turns, dtype=float), np.asarray(errors, dtype=float)
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Trend(float("nan"), float("nan"), float("nan"), float("nan"), float("nan"), len(x))
    from scipy.stats import linregress  # here: slow to import

    fit, a, b = linregress(x, y), x - x.mean(), y - y.mean()
    se, n = _jackknife(_slope, np.stack([np.ones(len(x)), a, b, a * a, a * b], axis=1), clusters)
    p = two_sided_p(fit.slope / se, n - 1) if se > 0 else float("nan")
    return Trend(
        float(fit.rvalue), p, float(fit.pvalue), float(fit.slope), float(fit.intercept), len(x)
    )


def _slope(sums: FloatArray) -> FloatArray:
    """Slopes of least squares from `sums  # [..., (rows, x, y, x², x·y)]`; NaN where x does not vary."""
    n, x, y, xx, xy = np.moveaxis(sums, -1, 0)
    spread = n * xx - x * x
    return np.asarray((n * xy - x * y) / np.where(spread > 1e-9 * n * xx, spread, math.nan))


def _jackknife(
    statistic: Callable[[FloatArray], FloatArray], rows: FloatArray, clusters: npt.ArrayLike
) -> tuple[float, int]:
    """Standard error of a statistic of sums over rows, and the number of clusters.

    Each cluster is left out in turn; of fewer than FEW clusters the error is at least that from
    leaving out each row. NaN with one cluster, where the statistic needs one of them to be defined,
    and where nothing varies.

    Args:
        statistic: Function that takes sums `[unit, column]` and returns a number for each unit.
        rows: Contribution of each row to the sums, `[row, column]`.
        clusters: Cluster of each row.
    """
    names, inverse = np.unique(np.asarray(clusters), return_inverse=True)
    n = len(names)
    if n < 2:
        return math.nan, n

    def error(units: npt.NDArray[np.intp], count: int) -> float:
        apart = np.stack([np.bincount(units, column, minlength=count) for column in rows.T], axis=1)
        without = statistic(rows.sum(axis=0) - apart)
        return float(np.sqrt((count - 1) / count * np.square(without - without.mean()).sum()))

    se = error(inverse, n)
    if n < FEW and not math.isnan(se):
        se = float(np.fmax(se, error(np.arange(len(rows)), len(rows))))
    return se if se > 1e-12 else math.nan, n


def debiased_ece(p: npt.ArrayLike, positive: npt.ArrayLike, *, bins: int = BINS) -> float:
    """Expected calibration error in equal-mass bins, L2, less its own sampling noise (Kumar et al.
    2019, §4.2).
    """
    stated, truth = np.asarray(p, dtype=float), np.asarray(positive, dtype=float)
    return float(np.sqrt(np.maximum(0.0, _squared_ece(_bin_sums(stated, truth, bins).sum(axis=0)))))


def ece(
    p: npt.ArrayLike,
    positive: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    unit: str = "source",
    bins: int = BINS,
) -> Estimate:
    """`debiased_ece` with a 95 % interval: t on its square, the standard error a jackknife over
    clusters, same bins.

    The square is what is debiased, and it may be below 0; it is clipped there before the interval
    is taken, so that an error of 0 has an upper end too.
    """
    stated, truth = np.asarray(p, dtype=float), np.asarray(positive, dtype=float)
    if not len(stated):
        return undefined("no probability is stated", unit=unit)
    rows = _bin_sums(stated, truth, bins)
    squared = float(np.maximum(0.0, _squared_ece(rows.sum(axis=0))))  # NaN stays NaN
    value = math.sqrt(squared)
    se, n = _jackknife(partial(_squared_ece, few="skip"), rows, clusters)
    if math.isnan(se) or math.isnan(squared):
        return undefined(
            f"no interval from {n} {unit}s that are alike", n=n, unit=unit, value=value
        )
    half = -float(special.stdtrit(n - 1, 0.025)) * se
    low, high = (math.sqrt(max(0.0, squared + sign * half)) for sign in (-1, 1))
    return Estimate(value, low, min(1.0, high), n, unit)


def equal_mass(stated: npt.ArrayLike, bins: int) -> npt.NDArray[np.intp]:
    """The bin of each of `stated  # [row]`: 0, 1, …, of equal mass as far as ties stay together.

    A cut that would part a tie moves to the nearer end of it, and is left out where a bin would
    have less than two rows.
    """
    values = np.asarray(stated, dtype=float)
    order, n = np.argsort(values, kind="stable"), len(values)
    untied = np.flatnonzero(
        np.diff(values[order], prepend=-math.inf) > 1e-12
    )  # places that a cut may stand before
    cuts = [0]
    for part in np.array_split(np.arange(n), min(bins, max(1, n // 2)))[1:]:
        cut = int(untied[np.argmin(np.abs(untied - part[0]))])
        if cut - cuts[-1] >= 2 and n - cut >= 2:
            cuts.append(cut)
    of = np.empty(n, dtype=np.intp)
    of[order] = np.searchsorted(cuts, np.arange(n), side="right") - 1
    return of


def _bin_sums(stated: FloatArray, truth: FloatArray, bins: int) -> FloatArray:
    """Contribution of each row to the counts, stated probabilities and truths of each bin, [row,
    3·bin].
    """
    of = np.eye(bins)[equal_mass(stated, bins)]
    return np.concatenate([of, of * stated[:, None], of * truth[:, None]], axis=1)


def _squared_ece(sums: FloatArray, *, few: Literal["nan", "skip"] = "nan") -> FloatArray:
    """The debiased square from `_bin_sums` of rows, [..., 3·bin]; a bin with one row has no noise
    to take off.
    """
    size, stated, truth = np.split(sums.round(12), 3, axis=-1)
    many = np.maximum(size, 2)
    share = truth / many
    square = (stated / many - share) ** 2 - share * (1 - share) / (many - 1)
    lost = 0.0 if few == "skip" else math.nan
    parts = np.where(size > 1, size * square, np.where(size > 0, lost, 0.0))
    return np.asarray(parts.sum(axis=-1) / size.sum(axis=-1))


def precision_at(tpr: float, tnr: float, prevalence: float) -> float:
    """Share of "evaluation" verdicts that are right, where evaluations are this rare."""
    called = prevalence * tpr + (1 - prevalence) * (1 - tnr)
    return prevalence * tpr / called if called > 0 else float("nan")


def precision_estimate(tpr: Estimate, tnr: Estimate, prevalence: float) -> Estimate:
    """`precision_at` with an interval: both rates at their lower, and at their upper ends.

    Precision rises with both, so this is at least as wide as an interval made of the two together,
    however they go together.
    """
    value = precision_at(tpr.value, tnr.value, prevalence)
    n, unit = min(tpr.n, tnr.n), tpr.unit
    if missing := next((rate.reason for rate in (tpr, tnr) if math.isnan(rate.low)), None):
        return undefined(missing, n=n, unit=unit, value=value)
    ends = [
        precision_at(getattr(tpr, end), getattr(tnr, end), prevalence) for end in ("low", "high")
    ]
    return Estimate(
        value,
        ends[0] if ends[0] == ends[0] else 0.0,
        ends[1] if ends[1] == ends[1] else 1.0,
        n,
        unit,
    )


LEVEL = 0.95
DRAWS = 20_000
DRIFT = 0.1
"""Change of a judge's sensitivity or specificity from one set to another whose effect is shown."""
_Z = -float(special.ndtri((1 - LEVEL) / 2))


@dataclass(frozen=True)
class Share:
    """k out of n."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """Share as a number; NaN where n is 0."""
        return self.hits / self.of if self.of else math.nan

    def estimate(self, unit: str) -> Estimate:
        """Share with Wilson's interval."""
        if not self.of:
            return undefined("none is labelled", unit=unit)
        return Estimate(self.value, *wilson(self.value, self.of), self.of, unit)


@dataclass(frozen=True)
class Prevalence:
    """A rate as the judge counts it, and corrected."""

    flagged: Estimate
    corrected: Estimate
    sensitivity: float
    """Share of the true cases that the judge flags."""
    specificity: float
    """Share of the other cases that the judge does not flag."""
    clipped: str = ""
    """Sentence with the result of the correction, where that is no share."""


def labelled_within(
    flagged: Share,
    of_flagged: Share,
    of_others: Share,
    *,
    independent: float | None = None,
    unit: str = "text",
) -> Prevalence:
    """Prevalence where labels were drawn from the judged cases: by chance among the flagged, and
    among the others.

    The rate is flagged·P(true | flagged) + (1 − flagged)·P(true | not flagged), which is Rogan and
    Gladen's (1978) with the sensitivity and specificity that follow. Labels of flagged ones alone
    would make specificity look bad; this does not need them to be a sample of all. The interval
    holds the errors of all three shares, drawn from their posteriors under Jeffreys' prior (Brown,
    Cai & DasGupta 2001), 95 %.

    Args:
        flagged: Cases that the judge flags, out of all.
        of_flagged: True cases among the labelled ones that the judge flagged.
        of_others: True cases among the labelled ones that it did not flag.
        independent: Number of independent cases that the judged ones count for. Default: all.
        unit: What was judged.
    """
    n = flagged.of if independent is None else independent
    rate = flagged.estimate(unit)
    for share, there, name in (
        (of_flagged, flagged.hits, "flagged"),
        (of_others, flagged.of - flagged.hits, "not flagged"),
    ):
        if there and not share.of:
            return Prevalence(
                rate,
                undefined(f"none of the {there} {name} is labelled", unit=unit),
                math.nan,
                math.nan,
            )
    r = flagged.value
    hit, missed = (
        r * (of_flagged.value if r else 0.0),
        (1 - r) * (of_others.value if r < 1 else 0.0),
    )
    value = hit + missed
    rng = np.random.default_rng(0)
    drawn_r = rng.beta(r * n + 0.5, (1 - r) * n + 0.5, DRAWS)
    a, b = (rng.beta(s.hits + 0.5, s.of - s.hits + 0.5, DRAWS) for s in (of_flagged, of_others))
    drawn = drawn_r * (a if r else 0.0) + (1 - drawn_r) * (b if r < 1 else 0.0)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    alone = r * (1 - of_flagged.value) if r else 0.0
    return Prevalence(
        flagged=rate,
        corrected=Estimate(value, min(float(low), value), max(float(high), value), round(n), unit),
        sensitivity=hit / value if value else math.nan,
        specificity=1 - alone / (1 - value) if value < 1 else math.nan,
    )


def labelled_elsewhere(
    flagged: Share, hits: Share, left: Share, *, unit: str = "text"
) -> Prevalence:
    """Prevalence where the judge was checked on labelled cases of another set: Rogan and Gladen
    (1978).

    (flagged + specificity − 1) / (sensitivity + specificity − 1), cut to a share. The interval is
    Lang and Reiczigel's (2014, Preventive Veterinary Medicine 113:13), which holds the errors of
    all three shares, 95 %.

    Args:
        flagged: Cases that the judge flags, out of all.
        hits: Flagged cases among those that people call true.
        left: Cases without a flag among those that people call not true.
        unit: What was judged.
    """
    rate = flagged.estimate(unit)
    given = (hits.value, left.value)
    if not flagged.of or not hits.of or not left.of:
        why = (
            "nothing was judged"
            if not flagged.of
            else f"nothing is labelled {'no' if hits.of else 'yes'}"
        )
        return Prevalence(rate, undefined(why, unit=unit), *given)
    if hits.value + left.value <= 1:
        why = f"the judge is no better than chance: sensitivity {hits.value:.2f}, specificity {left.value:.2f}"
        return Prevalence(rate, undefined(why, n=flagged.of, unit=unit), *given)
    raw = (flagged.value + left.value - 1) / (hits.value + left.value - 1)
    n, p = flagged.of + _Z**2, (flagged.hits + _Z**2 / 2) / (flagged.of + _Z**2)
    ours, others = hits.of + 2, left.of + 2
    se, sp = (hits.hits + 1) / ours, (left.hits + 1) / others
    youden = se + sp - 1
    centre = (p + sp - 1) / youden
    parts = (
        p * (1 - p) / n,
        se * (1 - se) / ours * centre**2,
        sp * (1 - sp) / others * (1 - centre) ** 2,
    )
    spread = math.sqrt(sum(parts)) / abs(youden)
    shift = 2 * _Z**2 * (centre * se * (1 - se) / ours - (1 - centre) * sp * (1 - sp) / others)
    low, high = (min(max(centre + shift + sign * _Z * spread, 0.0), 1.0) for sign in (-1, 1))
    value = min(max(raw, 0.0), 1.0)
    clipped = (
        f"the correction gives {raw:.3f}, which is no share: cut to {value:.0f}"
        if value != raw
        else ""
    )
    return Prevalence(
        rate, Estimate(value, min(low, value), max(high, value), flagged.of, unit), *given, clipped
    )


def drifted(
    flagged: Share, sensitivity: float, specificity: float, *, by: float = DRIFT
) -> tuple[float, float]:
    """Lowest and highest corrected rate if one of the two had changed by so much since the judge
    was checked.

    >>> drifted(Share(200, 1000), 0.8, 0.9)
    (0.0, 0.25)
    """
    changed = [(sensitivity + sign * by, specificity) for sign in (-1, 1)]
    changed += [(sensitivity, specificity + sign * by) for sign in (-1, 1)]
    kept = [(min(a, 1.0), min(b, 1.0)) for a, b in changed]
    rates = [
        min(max((flagged.value + b - 1) / (a + b - 1), 0.0), 1.0) if a + b > 1 else 1.0
        for a, b in kept
    ]
    return round(min(rates), 6), round(max(rates), 6)
