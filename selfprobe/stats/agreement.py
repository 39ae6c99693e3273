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

from selfprobe.stats.draws import p_among_draws
from selfprobe.stats.estimate import (
    FEW_CLUSTERS,
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    bootstrap,
    clustered_mean,
    t_quantile,
    two_sided_p,
    undefined,
    wilson,
)

STATED_BINS = 10
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
    """Kappa against the number of decisions (evaluation-awareness methods, footnote 3)."""

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
    """Absolute error against the number of turns (evaluation-awareness methods, footnote 4)."""

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


def cohen_kappa(first: BoolArray, second: BoolArray) -> float:
    """Cohen's kappa of two yes/no ratings; NaN when chance agreement is 1 (both constant and
    equal).
    """
    first_share = first.mean()
    second_share = second.mean()
    expected = first_share * second_share + (1 - first_share) * (1 - second_share)
    if expected >= 1:
        return math.nan
    observed = (first == second).mean()
    return float((observed - expected) / (1 - expected))


def pearson(x: FloatArray, y: FloatArray) -> float:
    """Pearson's correlation; NaN where one of the two never varies."""
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


def agreement(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike,
    rng: np.random.Generator,
    unit: str = "source",
) -> Agreement:
    """Agreement of two methods' or two graders' verdicts on the same rows.

    Args:
        first: True where the one says "evaluation", [row].
        second: True where the other says "evaluation", [row].
        clusters: The source, or other unit, of each row.
        rng: Generator of the bootstrap.
        unit: What a cluster is.
    """
    first_verdicts = np.asarray(first, dtype=bool)
    second_verdicts = np.asarray(second, dtype=bool)
    observed = math.nan
    mean_share = math.nan
    if len(first_verdicts):
        observed = float((first_verdicts == second_verdicts).mean())
        mean_share = (first_verdicts.mean() + second_verdicts.mean()) / 2
    ac1_chance = 2 * mean_share * (1 - mean_share)
    kappa = bootstrap(
        cohen_kappa, first_verdicts, second_verdicts, clusters=clusters, rng=rng, unit=unit
    )
    return Agreement(
        n=len(first_verdicts),
        observed=observed,
        kappa=kappa,
        pabak=2 * observed - 1,
        ac1=float((observed - ac1_chance) / (1 - ac1_chance)),
        mcnemar_p=mcnemar(first_verdicts, second_verdicts),
    )


AGREEMENT_DRAWS = 999
"""Number of exchanges of one rater's verdicts."""


def agreement_p(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
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
        first: Verdicts of the one, [row].
        second: Verdicts of the other, [row].
        clusters: The source, or other unit, of each row; at least FEW_CLUSTERS (six).
        rng: Generator of the exchanges.
        draws: Number of exchanges.
    """
    cluster_names, cluster_of_row = np.unique(np.asarray(clusters), return_inverse=True)
    if len(cluster_names) < FEW_CLUSTERS:
        return math.nan
    first_verdicts = np.asarray(first, dtype=float)
    second_verdicts = np.asarray(second, dtype=float)
    if np.ptp(first_verdicts) == 0 or np.ptp(second_verdicts) == 0:
        return math.nan

    cluster_sizes = np.bincount(cluster_of_row)
    first_shares = np.bincount(cluster_of_row, first_verdicts) / cluster_sizes
    second_shares = np.bincount(cluster_of_row, second_verdicts) / cluster_sizes
    cluster_orders = np.argsort(rng.random((draws, len(cluster_names))), axis=1)
    share_deviations = first_shares - first_shares.mean()
    between_p = _exchange_p(share_deviations, second_shares, cluster_orders)
    row_count = len(first_verdicts)
    if len(cluster_names) == row_count:
        return between_p

    by_cluster = np.argsort(cluster_of_row, kind="stable")
    row_orders = np.argsort(cluster_of_row[by_cluster] + rng.random((draws, row_count)), axis=1)
    row_deviations = (first_verdicts - first_shares[cluster_of_row])[by_cluster]
    within_p = _exchange_p(row_deviations, second_verdicts[by_cluster], row_orders)
    return min(1.0, 2 * min(between_p, within_p))


def _exchange_p(deviations: FloatArray, values: FloatArray, orders: IntArray) -> float:
    """Share of orders of the values, the real one included, whose product with the deviations is as
    large.
    """
    real_product = float(deviations @ values)
    reached_count = int((values[orders] @ deviations >= real_product - 1e-9).sum())
    return float(p_among_draws(reached_count, len(orders)))


def mcnemar(first: BoolArray, second: BoolArray) -> float:
    """McNemar's exact p that both say yes equally often, `[row]`; NaN without rows."""
    if not len(first):
        return math.nan
    first_alone = int((first & ~second).sum())
    second_alone = int((~first & second).sum())
    fewer = min(first_alone, second_alone)
    return min(1.0, 2 * float(special.bdtr(fewer, first_alone + second_alone, 0.5)))


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
    vote_array = np.asarray(votes, dtype=float)
    estimate_array = np.asarray(estimates, dtype=float)
    if vote_array.ndim != 2 or len(vote_array) != len(estimate_array):
        raise ValueError(
            "expected two [row, decision] arrays with the same rows, "
            f"got {vote_array.shape} and {estimate_array.shape}"
        )
    decision_count = min(vote_array.shape[1], estimate_array.shape[1])
    sizes = tuple(range(5, decision_count + 1, 2))
    means = []
    lows = []
    highs = []
    for size in sizes:
        kappas = []
        for _ in range(resamples):
            vote_shares = _drawn_means(vote_array, size, rng)
            mean_estimates = _drawn_means(estimate_array, size, rng)
            is_decided = ~np.isnan(vote_shares) & ~np.isnan(mean_estimates) & (vote_shares != 0.5)
            if is_decided.any():
                voted = vote_shares[is_decided] > 0.5
                estimated = mean_estimates[is_decided] >= 0.5
                kappas.append(cohen_kappa(voted, estimated))
        defined_kappas = np.array([kappa for kappa in kappas if not math.isnan(kappa)])
        if not len(defined_kappas):
            defined_kappas = np.array([math.nan])
        low, high = np.quantile(defined_kappas, [0.025, 0.975])
        means.append(float(defined_kappas.mean()))
        lows.append(float(low))
        highs.append(float(high))
    return KappaCurve(sizes, tuple(means), tuple(lows), tuple(highs))


def _drawn_means(values: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Mean of `size` decisions drawn without replacement from each row; NaN where all drawn ones
    are unscored.
    """
    row_count, decision_count = values.shape
    decisions = np.tile(np.arange(decision_count), (row_count, 1))
    drawn_decisions = rng.permuted(decisions, axis=1)[:, :size]
    drawn_values = np.take_along_axis(values, drawn_decisions, axis=1)
    is_scored = ~np.isnan(drawn_values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(is_scored, drawn_values, 0).sum(axis=1) / is_scored.sum(axis=1))


def equivalence(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
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
    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    difference = clustered_mean(differences, clusters, unit=unit, level=0.90, interval="t")
    half_width = (difference.high - difference.low) / 2
    if half_width > 0:
        standard_error = half_width / float(special.stdtrit(difference.df, 0.95))
        distance_to_margin = margin - abs(difference.value)
        p = float(special.stdtr(difference.df, -distance_to_margin / standard_error))
    elif difference.n:
        p = _largest_equal_share(abs(difference.value), margin) ** difference.n
    else:
        p = math.nan
    return Equivalence(difference, margin, p, p < 0.05)


def _largest_equal_share(d: float, margin: float) -> float:
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
    (evaluation-awareness methods) in 22 to 29 %.
    """
    x = np.asarray(turns, dtype=float)
    y = np.asarray(errors, dtype=float)
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Trend(math.nan, math.nan, math.nan, math.nan, math.nan, len(x))
    from scipy.stats import linregress  # here: slow to import

    fit = linregress(x, y)
    x_deviations = x - x.mean()
    y_deviations = y - y.mean()
    summands = [
        np.ones(len(x)),
        x_deviations,
        y_deviations,
        x_deviations * x_deviations,
        x_deviations * y_deviations,
    ]
    standard_error, cluster_count = _jackknife_error(_slope, np.stack(summands, axis=1), clusters)
    p = math.nan
    if standard_error > 0:
        p = two_sided_p(fit.slope / standard_error, cluster_count - 1)
    return Trend(
        r=float(fit.rvalue),
        p=p,
        p_rows=float(fit.pvalue),
        slope=float(fit.slope),
        intercept=float(fit.intercept),
        n=len(x),
    )


def _slope(sums: FloatArray) -> FloatArray:
    """Slopes of least squares from `sums  # [..., (rows, x, y, x², x·y)]`; NaN where x does not
    vary.
    """
    n, x, y, xx, xy = np.moveaxis(sums, -1, 0)
    spread = n * xx - x * x
    positive_spread = np.where(spread > 1e-9 * n * xx, spread, math.nan)
    return np.asarray((n * xy - x * y) / positive_spread)


def _jackknife_error(
    statistic: Callable[[FloatArray], FloatArray], rows: FloatArray, clusters: npt.ArrayLike
) -> tuple[float, int]:
    """Standard error of a statistic of sums over rows, and the number of clusters.

    Each cluster is left out in turn; of fewer than FEW_CLUSTERS the error is at least that from
    leaving out each row. NaN with one cluster, where the statistic needs one of them to be defined,
    and where nothing varies.

    Args:
        statistic: Function that takes sums `[unit, column]` and returns a number for each unit.
        rows: Contribution of each row to the sums, `[row, column]`.
        clusters: Cluster of each row.
    """
    cluster_names, cluster_of_row = np.unique(np.asarray(clusters), return_inverse=True)
    cluster_count = len(cluster_names)
    if cluster_count < 2:
        return math.nan, cluster_count

    def error_without_each(unit_of_row: IntArray, unit_count: int) -> float:
        sums_by_unit = np.stack(
            [np.bincount(unit_of_row, column, minlength=unit_count) for column in rows.T], axis=1
        )
        values = statistic(rows.sum(axis=0) - sums_by_unit)
        squares = np.square(values - values.mean())
        return float(np.sqrt((unit_count - 1) / unit_count * squares.sum()))

    standard_error = error_without_each(cluster_of_row, cluster_count)
    if cluster_count < FEW_CLUSTERS and not math.isnan(standard_error):
        row_error = error_without_each(np.arange(len(rows)), len(rows))
        standard_error = float(np.fmax(standard_error, row_error))
    if not standard_error > 1e-12:
        standard_error = math.nan
    return standard_error, cluster_count


def debiased_ece(p: npt.ArrayLike, positive: npt.ArrayLike, *, bins: int = STATED_BINS) -> float:
    """Expected calibration error in equal-mass bins, L2, less its own sampling noise (Kumar et al.
    2019, §4.2).
    """
    stated = np.asarray(p, dtype=float)
    outcomes = np.asarray(positive, dtype=float)
    squared_error = _squared_ece(_bin_sums(stated, outcomes, bins).sum(axis=0))
    return float(np.sqrt(np.maximum(0.0, squared_error)))


def ece(
    p: npt.ArrayLike,
    positive: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    unit: str = "source",
    bins: int = STATED_BINS,
) -> Estimate:
    """`debiased_ece` with a 95 % interval: t on its square, the standard error a jackknife over
    clusters, same bins.

    The square is what is debiased, and it may be below 0; it is clipped there before the interval
    is taken, so that an error of 0 has an upper end too.
    """
    stated = np.asarray(p, dtype=float)
    truth = np.asarray(positive, dtype=float)
    if not len(stated):
        return undefined("no probability is stated", unit=unit)
    rows = _bin_sums(stated, truth, bins)
    squared = float(np.maximum(0.0, _squared_ece(rows.sum(axis=0))))  # NaN stays NaN
    value = math.sqrt(squared)

    squared_error, cluster_count = _jackknife_error(
        partial(_squared_ece, lone_rows="skipped"), rows, clusters
    )
    if math.isnan(squared_error) or math.isnan(squared):
        return undefined(
            f"no interval from {cluster_count} {unit}s that are alike",
            n=cluster_count,
            unit=unit,
            value=value,
        )
    half_width = t_quantile(cluster_count - 1) * squared_error
    low = math.sqrt(max(0.0, squared - half_width))
    high = math.sqrt(max(0.0, squared + half_width))
    return Estimate(value, low, min(1.0, high), cluster_count, unit)


def equal_mass(stated: npt.ArrayLike, bins: int) -> IntArray:
    """The bin of each of `stated  # [row]`: 0, 1, …, of equal mass as far as ties stay together.

    A cut that would part a tie moves to the nearer end of it, and is left out where a bin would
    have less than two rows.
    """
    values = np.asarray(stated, dtype=float)
    row_count = len(values)
    ascending = np.argsort(values, kind="stable")
    steps = np.diff(values[ascending], prepend=-math.inf)
    untied_places = np.flatnonzero(steps > 1e-12)  # a cut may stand before them

    cuts = [0]
    bin_count = min(bins, max(1, row_count // 2))
    for places in np.array_split(np.arange(row_count), bin_count)[1:]:
        nearest = np.argmin(np.abs(untied_places - places[0]))
        cut = int(untied_places[nearest])
        if cut - cuts[-1] >= 2 and row_count - cut >= 2:
            cuts.append(cut)

    bin_of_row = np.empty(row_count, dtype=np.intp)
    bin_of_row[ascending] = np.searchsorted(cuts, np.arange(row_count), side="right") - 1
    return bin_of_row


def _bin_sums(stated: FloatArray, truth: FloatArray, bins: int) -> FloatArray:
    """Contribution of each row to the counts, stated probabilities and truths of each bin, [row,
    3·bin].
    """
    in_bin = np.eye(bins)[equal_mass(stated, bins)]
    return np.concatenate([in_bin, in_bin * stated[:, None], in_bin * truth[:, None]], axis=1)


def _squared_ece(
    bin_sums: FloatArray, *, lone_rows: Literal["undefined", "skipped"] = "undefined"
) -> FloatArray:
    """The debiased square from `_bin_sums` of rows, [..., 3·bin]; a bin with one row has no noise
    to take off.
    """
    counts, stated_sums, true_sums = np.split(bin_sums.round(12), 3, axis=-1)
    counts_from_two = np.maximum(counts, 2)
    true_shares = true_sums / counts_from_two
    noise = true_shares * (1 - true_shares) / (counts_from_two - 1)
    squared_gaps = (stated_sums / counts_from_two - true_shares) ** 2 - noise
    summand_of_lone_row = 0.0 if lone_rows == "skipped" else math.nan
    summands_of_few = np.where(counts > 0, summand_of_lone_row, 0.0)
    summands = np.where(counts > 1, counts * squared_gaps, summands_of_few)
    return np.asarray(summands.sum(axis=-1) / counts.sum(axis=-1))


def precision_at(tpr: float, tnr: float, prevalence: float) -> float:
    """Share of "evaluation" verdicts that are right, where evaluations are this rare."""
    true_alarms = prevalence * tpr
    alarms = true_alarms + (1 - prevalence) * (1 - tnr)
    return true_alarms / alarms if alarms > 0 else math.nan


def precision_estimate(tpr: Estimate, tnr: Estimate, prevalence: float) -> Estimate:
    """`precision_at` with an interval: both rates at their lower, and at their upper ends.

    Precision rises with both, so this is at least as wide as an interval made of the two together,
    however they go together.
    """
    value = precision_at(tpr.value, tnr.value, prevalence)
    n = min(tpr.n, tnr.n)
    for rate in (tpr, tnr):
        if math.isnan(rate.low):
            return undefined(rate.reason, n=n, unit=tpr.unit, value=value)
    low = precision_at(tpr.low, tnr.low, prevalence)
    high = precision_at(tpr.high, tnr.high, prevalence)
    if math.isnan(low):
        low = 0.0
    if math.isnan(high):
        high = 1.0
    return Estimate(value, low, high, n, tpr.unit)


RATE_LEVEL = 0.95
"""Level of the intervals of rates."""
RATE_DRAWS = 20_000
"""Number of draws of a corrected rate."""
JUDGE_DRIFT = 0.1
"""Change of a judge's sensitivity or specificity from one set to another whose effect is shown."""
RATE_QUANTILE = -float(special.ndtri((1 - RATE_LEVEL) / 2))
"""Standard errors to either side of a corrected rate: z of the formula."""


@dataclass(frozen=True)
class Share:
    """k out of n."""

    hits: int
    total: int

    @property
    def value(self) -> float:
        """Share as a number; NaN where the total is 0."""
        return self.hits / self.total if self.total else math.nan

    def estimate(self, unit: str) -> Estimate:
        """Share with Wilson's interval."""
        if not self.total:
            return undefined("none is labelled", unit=unit)
        low, high = wilson(self.value, self.total)
        return Estimate(self.value, low, high, self.total, unit)


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
    independent_count = flagged.total if independent is None else independent
    rate = flagged.estimate(unit)
    other_count = flagged.total - flagged.hits
    reason = ""
    if flagged.hits and not of_flagged.total:
        reason = f"none of the {flagged.hits} flagged is labelled"
    elif other_count and not of_others.total:
        reason = f"none of the {other_count} not flagged is labelled"
    if reason:
        return Prevalence(rate, undefined(reason, unit=unit), math.nan, math.nan)

    r = flagged.value
    rng = np.random.default_rng(0)
    drawn_rates = rng.beta(
        r * independent_count + 0.5, (1 - r) * independent_count + 0.5, RATE_DRAWS
    )
    true_in_flagged = _posterior_shares(of_flagged, rng)
    true_in_others = _posterior_shares(of_others, rng)
    true_flagged = 0.0
    false_flagged = 0.0
    drawn = np.zeros(RATE_DRAWS)
    if r:
        true_flagged = r * of_flagged.value
        false_flagged = r * (1 - of_flagged.value)
        drawn += drawn_rates * true_in_flagged
    true_unflagged = 0.0
    if r < 1:
        true_unflagged = (1 - r) * of_others.value
        drawn += (1 - drawn_rates) * true_in_others
    value = true_flagged + true_unflagged

    tail = (1 - RATE_LEVEL) / 2
    low, high = np.quantile(drawn, [tail, (1 + RATE_LEVEL) / 2])
    corrected = Estimate(
        value, min(float(low), value), max(float(high), value), round(independent_count), unit
    )
    sensitivity = math.nan
    if value:
        sensitivity = true_flagged / value
    specificity = math.nan
    if value < 1:
        specificity = 1 - false_flagged / (1 - value)
    return Prevalence(rate, corrected, sensitivity, specificity)


def _posterior_shares(share: Share, rng: np.random.Generator) -> FloatArray:
    """Draws of a share under Jeffreys' prior."""
    return rng.beta(share.hits + 0.5, share.total - share.hits + 0.5, RATE_DRAWS)


LEAST_YOUDEN = 1e-9
"""Sensitivity and specificity above chance, by adjusted counts, below which there is no interval."""


def labelled_elsewhere(
    flagged: Share, sensitivity: Share, specificity: Share, *, unit: str = "text"
) -> Prevalence:
    """Prevalence where the judge was checked on labelled cases of another set: Rogan and Gladen
    (1978).

    (flagged + specificity − 1) / (sensitivity + specificity − 1), cut to a share. The interval is
    Lang and Reiczigel's (2014, Preventive Veterinary Medicine 113:13), which holds the errors of
    all three shares, 95 %.

    Args:
        flagged: Cases that the judge flags, out of all.
        sensitivity: Flagged cases among those that people call true.
        specificity: Cases without a flag among those that people call not true.
        unit: What was judged.
    """
    rate = flagged.estimate(unit)
    reason = ""
    if not flagged.total:
        reason = "nothing was judged"
    elif not sensitivity.total:
        reason = "nothing is labelled yes"
    elif not specificity.total:
        reason = "nothing is labelled no"
    if reason:
        no_rate = undefined(reason, unit=unit)
        return Prevalence(rate, no_rate, sensitivity.value, specificity.value)
    value_above_chance = sensitivity.value + specificity.value - 1
    if sensitivity.value + specificity.value <= 1:
        reason = (
            "the judge is no better than chance: "
            f"sensitivity {sensitivity.value:.2f}, specificity {specificity.value:.2f}"
        )
        no_rate = undefined(reason, n=flagged.total, unit=unit)
        return Prevalence(rate, no_rate, sensitivity.value, specificity.value)

    raw_value = (flagged.value + specificity.value - 1) / value_above_chance
    value = min(max(raw_value, 0.0), 1.0)
    clipped = ""
    if value != raw_value:
        clipped = f"the correction gives {raw_value:.3f}, which is no share: cut to {value:.0f}"

    # the numbers of the paper's formula: shares with their adjusted counts
    n = flagged.total + RATE_QUANTILE**2
    p = (flagged.hits + RATE_QUANTILE**2 / 2) / n
    n_se = sensitivity.total + 2
    n_sp = specificity.total + 2
    se = (sensitivity.hits + 1) / n_se
    sp = (specificity.hits + 1) / n_sp
    youden = se + sp - 1
    if youden < LEAST_YOUDEN:
        labels = sensitivity.total + specificity.total
        reason = f"{labels} labels do not show that the judge is better than chance"
        no_interval = undefined(reason, n=flagged.total, unit=unit, value=value)
        return Prevalence(rate, no_interval, sensitivity.value, specificity.value)
    centre = (p + sp - 1) / youden
    se_variance = se * (1 - se) / n_se
    sp_variance = sp * (1 - sp) / n_sp
    variance = p * (1 - p) / n + se_variance * centre**2 + sp_variance * (1 - centre) ** 2
    half_width = RATE_QUANTILE * (math.sqrt(variance) / abs(youden))
    se_shift = centre * se * (1 - se) / n_se
    sp_shift = (1 - centre) * sp * (1 - sp) / n_sp
    shift = 2 * RATE_QUANTILE**2 * (se_shift - sp_shift)
    low = min(max(centre + shift - half_width, 0.0), 1.0)
    high = min(max(centre + shift + half_width, 0.0), 1.0)
    corrected = Estimate(value, min(low, value), max(high, value), flagged.total, unit)
    return Prevalence(rate, corrected, sensitivity.value, specificity.value, clipped)


def drifted(
    flagged: Share, sensitivity: float, specificity: float, *, by: float = JUDGE_DRIFT
) -> tuple[float, float]:
    """Lowest and highest corrected rate if one of the two had changed by so much since the judge
    was checked.

    >>> drifted(Share(200, 1000), 0.8, 0.9)
    (0.0, 0.25)
    """
    drifts = [(-by, 0.0), (by, 0.0), (0.0, -by), (0.0, by)]
    rates = []
    for sensitivity_drift, specificity_drift in drifts:
        drifted_sensitivity = min(sensitivity + sensitivity_drift, 1.0)
        drifted_specificity = min(specificity + specificity_drift, 1.0)
        above_chance = drifted_sensitivity + drifted_specificity - 1
        rate = 1.0
        if drifted_sensitivity + drifted_specificity > 1:
            rate = (flagged.value + drifted_specificity - 1) / above_chance
        rates.append(min(max(rate, 0.0), 1.0))
    return round(min(rates), 6), round(max(rates), 6)
