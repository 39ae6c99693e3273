"""Shares and AUROCs of clustered rows, and differences of them, with intervals that hold near 0 and
1.

Rows of one cluster (a source) are alike. Each estimate keeps what every cluster adds to its error,
so that estimates on the same rows, on other rows of the same clusters, or on rows of other clusters
are compared by one function, `difference`. Coverage by simulation: docs/statistics.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.estimate import (
    FEW,
    NOTHING,
    Estimate,
    FloatArray,
    bell_mccaffrey,
    cluster_errors,
    cr2,
    floored,
    undefined,
)

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """An estimate, and the contributions of each cluster and each row to its error."""

    estimate: Estimate
    errors: FloatArray
    """Contributions [cluster] of all clusters that were named, sorted by name; they sum to 0. Empty
    if undefined.
    """
    rows: FloatArray
    """Contributions [row] of all rows that were passed; they sum to the same."""

    @classmethod
    def undefined(cls, reason: str, *, n: int = 0, unit: str) -> "Part":
        """A part without a value."""
        return cls(undefined(reason, n=n, unit=unit), np.empty(0), np.empty(0))


def resampling_units(
    sources: Sequence[str], conversations: Sequence[str], groups: Sequence[str]
) -> tuple[npt.NDArray[np.str_], str]:
    """The cluster of each row and the clusters' name: the source, where each group holds several.

    One source has no spread that could be seen. So a source that stands alone in a group of rows (a
    label, a set) is taken apart into its conversations, and the interval is about other
    conversations of that source.
    """
    held: dict[str, set[str]] = {}
    for source, group in zip(sources, groups, strict=True):
        held.setdefault(group, set()).add(source)
    alone = set[str]().union(*(names for names in held.values() if len(names) == 1))
    units = [f"{s}: {c}" if s in alone else s for s, c in zip(sources, conversations, strict=True)]
    several = (
        "source"
        if not alone
        else "conversation"
        if alone >= set(sources)
        else "source or conversation"
    )
    return np.array(units, dtype=str), several


def clustered_share(
    values: npt.ArrayLike, clusters: npt.ArrayLike, *, where: npt.ArrayLike | None = None, unit: str
) -> Part:
    """Share of `values  # [row]` (0 or 1, NaN unscored) over the rows `where`, clustered, on the logit scale.

    The variance is cluster-robust (CR2; Bell & McCaffrey 2002, Survey Methodology 28:169), with the
    floors of `clustered_auroc` and t with Bell & McCaffrey's degrees of freedom: clusters − 1 where
    all hold as many rows. Where that is wider than the exact interval (Clopper & Pearson) of rows
    that are all alike in their cluster, which count as Kish weighs them (Korn & Graubard 1998,
    Survey Methodology 24:193), it is that one: 8 of 8 clusters of one row each give .63 to 1.
    """
    scores, labels = np.asarray(values, dtype=float), np.asarray(clusters)
    rows = ~np.isnan(scores) & (
        np.ones(len(scores), dtype=bool) if where is None else np.asarray(where, dtype=bool)
    )
    names, inverse = np.unique(labels, return_inverse=True)
    n, count = len(np.unique(inverse[rows])), int(rows.sum())
    if not count:
        return Part.undefined("nothing was scored", unit=unit)
    value, added = float(scores[rows].mean()), np.zeros(len(scores))
    errors, held = cluster_errors(off := scores[rows] - value, inverse[rows], len(names))
    added[rows] = off / count
    if n < 2:
        return Part(
            undefined(f"no interval from one {unit}", n=n, unit=unit, value=value), errors, added
        )
    variance, alike = floored(cr2(errors, held), n, off), 1 / float(held @ held)
    low, high = _share_interval(value, count, variance, df=bell_mccaffrey(held), alike=alike)
    return Part(Estimate(value, low, high, n, unit), errors, added)


def clustered_auroc(
    positive: npt.ArrayLike, scores: npt.ArrayLike, clusters: npt.ArrayLike, *, unit: str = "source"
) -> Part:
    """AUROC of `scores  # [row]` with an interval on the logit scale, clustered.

    The variance is Obuchowski's (1997, Biometrics 53:567): placement values summed by cluster. Few
    clusters whose AUROCs happen to be alike would make it too small: below six (`FEW`) it is at
    least what independent rows would have, and near the ends at least (2·AUROC − 1)² of it (Hanley
    & McNeil 1982, as Newcombe 2006 writes it). For z stands t, with Welch's degrees of freedom, at
    most clusters − 1. An AUROC of 0 or 1 counts half a row of the smaller class as misplaced, for
    the interval alone. A row whose score is NaN is left out.
    """
    values, labels = np.asarray(scores, dtype=float), np.asarray(clusters)
    names, inverse = np.unique(labels, return_inverse=True)
    ours, others = (np.asarray(positive, dtype=bool) == side for side in (True, False))
    ours, others = ours & ~np.isnan(values), others & ~np.isnan(values)
    held = [np.unique(inverse[rows]) for rows in (ours, others)]
    n = len(np.union1d(*held))
    if not ours.any() or not others.any():
        both = 0 < np.count_nonzero(positive) < len(values)
        return Part.undefined(
            "no row of a class is rated" if both else "one class alone", n=n, unit=unit
        )
    above = _placements(values[ours], values[others])
    value = float(above[0].mean())
    off, added = [place - value for place in above], np.zeros(len(values))
    added[ours], added[others] = (each / len(each) for each in off)
    sums = [
        np.asarray(np.bincount(inverse[rows], added[rows], minlength=len(names)), dtype=float)
        for rows in (ours, others)
    ]
    if min(map(len, held)) < 2:
        return Part(
            undefined(f"a class with one {unit}", n=n, unit=unit, value=value),
            sums[0] + sums[1],
            added,
        )
    a, b = (
        len(clusters) / (len(clusters) - 1) * float(each @ each)
        for clusters, each in zip(held, sums, strict=True)
    )
    variance = floored(a + b + 2 * n / (n - 1) * float(sums[0] @ sums[1]), n, *off)
    sizes = len(above[0]), len(above[1])
    centre = _off_the_end(value, min(sizes))
    independent = independent_variance(centre, *sizes)
    low, high = _logit_interval(
        value, centre, variance, independent=independent, df=_welch(a, b, held, n)
    )
    return Part(Estimate(value, low, high, n, unit), sums[0] + sums[1], added)


def crossed(
    values: npt.ArrayLike,
    ours: npt.ArrayLike,
    theirs: npt.ArrayLike,
    *,
    unit: str,
    signed: bool = False,
) -> Estimate:
    """Mean of `values  # [pair]` in [0, 1], NaN unscored, where pairs share what stands on either side of them.

    The variance is that of clusters on both sides (Cameron, Gelbach & Miller 2011, JBES 29:238): of
    either side's clusters, less that of their crossings, and at least the largest of the three; t
    with the fewer degrees of freedom of the two sides. The rest is as in `clustered_share`.

    Args:
        values: Score of each pair.
        ours, theirs: The cluster of either side, [pair].
        unit: Name of the clusters `ours`; n counts them.
        signed: Whether values are differences in [−1, 1].
    """
    given = np.asarray(values, dtype=float)
    rows = ~np.isnan(given)
    scores = (given[rows] + 1) / 2 if signed else given[rows]
    sides = [np.unique(np.asarray(side)[rows], return_inverse=True) for side in (ours, theirs)]
    n, fewest = len(sides[0][0]), min(len(names) for names, _ in sides)
    if not len(scores):
        return undefined("nothing was scored", unit=unit)
    mean = float(scores.mean())
    value = 2 * mean - 1 if signed else mean
    if fewest < 2:
        return undefined("no interval from one cluster on a side", n=n, unit=unit, value=value)
    (a, b), wide = (inverse for _, inverse in sides), len(sides[1][0])
    both = np.unique(a * wide + b, return_inverse=True)[1]
    parts, held = zip(
        *(cluster_errors(scores - mean, inverse) for inverse in (a, b, both)), strict=True
    )
    variances = [cr2(errors, of) for errors, of in zip(parts, held, strict=True)]
    low, high = _share_interval(
        mean,
        len(scores),
        floored(max(variances[0] + variances[1] - variances[2], *variances), fewest, scores - mean),
        df=min(map(bell_mccaffrey, held[:2])),
        alike=1 / float(held[0] @ held[0] + held[1] @ held[1] - held[2] @ held[2]),
    )
    return (
        Estimate(value, 2 * low - 1, 2 * high - 1, n, unit)
        if signed
        else Estimate(value, low, high, n, unit)
    )


def _share_interval(
    value: float, rows: int, variance: float, *, df: float, alike: float
) -> tuple[float, float]:
    """The narrower of the interval on the logit scale and of the exact one for `alike` rows; see
    `clustered_share`.
    """
    centre = _off_the_end(value, rows)
    logit = _logit_interval(
        value, centre, variance, independent=centre * (1 - centre) / rows, df=df
    )
    hits, misses = value * alike, (1 - value) * alike
    low = float(special.betaincinv(hits, misses + 1, 0.025)) if value > 0 else 0.0
    high = float(special.betaincinv(hits + 1, misses, 0.975)) if value < 1 else 1.0
    return min(logit, (low, high), key=lambda ends: ends[1] - ends[0])


def _placements(ours: FloatArray, others: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each positive the share of negatives below it, and for each negative the share of
    positives above it.
    """

    def below(each: FloatArray, ranked: FloatArray) -> FloatArray:
        counts = np.searchsorted(ranked, each, side="left") + np.searchsorted(
            ranked, each, side="right"
        )
        return np.asarray(counts / (2 * len(ranked)))

    return below(ours, np.sort(others)), 1 - below(others, np.sort(ours))


def _welch(a: float, b: float, held: Sequence[npt.NDArray[np.intp]], n: int) -> float:
    """Degrees of freedom of two variances, each with clusters of its own; n of both together."""
    spread = a * a / (len(held[0]) - 1) + b * b / (len(held[1]) - 1)
    return max(1.0, min((a + b) ** 2 / spread if spread else math.inf, n - 1.0))


def _off_the_end(value: float, rows: int) -> float:
    """The value or, where it is 0 or 1, the value if half a row were on the other side."""
    half_a_row = 0.5 / (rows + 1)
    return min(max(value, half_a_row), 1 - half_a_row)


def _logit_interval(
    value: float, centre: float, variance: float, *, independent: float, df: float
) -> tuple[float, float]:
    """95 % interval about `centre`; the variance is never 0, and at least (2·value − 1)² of
    independent rows'.
    """
    variance = max(variance, (2 * value - 1) ** 2 * independent)
    spread = math.sqrt(variance if variance > NOTHING else independent) / (centre * (1 - centre))
    half = -float(special.stdtrit(df, 0.025)) * spread
    low, high = (float(special.expit(special.logit(centre) + sign * half)) for sign in (-1, 1))
    return (0.0 if value == 0 else min(low, value)), (1.0 if value == 1 else max(high, value))


def independent_variance(value: float, ours: int, others: int) -> float:
    """Variance of an AUROC of independent rows (Hanley & McNeil 1982; Newcombe 2006, method 5: the
    sizes' mean).

    >>> round(independent_variance(0.8, 50, 50) ** 0.5, 3)
    0.045
    """
    size = (ours + others) / 2 - 1
    return (
        value
        * (1 - value)
        * (1 + size * (1 - value) / (2 - value) + size * value / (1 + value))
        / (ours * others)
    )


def expected_auroc_half(value: float, positive: npt.ArrayLike, clusters: npt.ArrayLike) -> float:
    """Half of the width of the interval that `clustered_auroc` gives where rows of a cluster are no
    more alike than others, at this AUROC; NaN where a class has one cluster. The interval is wider
    where they are alike.

    Args:
        value: The AUROC, above 0 and below 1.
        positive: Whether each row is of the first class, [row].
        clusters: Cluster of each row, [row].

    >>> rows = np.arange(40)
    >>> round(expected_auroc_half(0.7, rows % 2 == 0, rows), 3), round(expected_auroc_half(0.7, rows < 20, rows % 4), 3)
    (0.164, 0.247)
    """
    is_positive, labels = np.asarray(positive, dtype=bool), np.asarray(clusters)
    held = [
        np.unique(np.unique(labels, return_inverse=True)[1][rows])
        for rows in (is_positive, ~is_positive)
    ]
    if min(map(len, held)) < 2:
        return math.nan
    positives, negatives = int(is_positive.sum()), int((~is_positive).sum())
    df = _welch(1 / positives, 1 / negatives, held, len(np.union1d(*held)))
    variance = independent_variance(value, positives, negatives)
    low, high = _logit_interval(value, value, variance, independent=variance, df=df)
    return (high - low) / 2


def detectable_difference(*sides: npt.ArrayLike) -> float:
    """Smallest difference of two shares near one half that is seen with 80 % power, at 5 % on two
    sides.

    The interval is that of `difference` of two `clustered_share`, of rows that are no more alike in
    their cluster than others.

    Args:
        sides: Clusters of the rows of one side, [row], and those of the other.
    """
    errors, limits = list[float](), list[float]()
    for clusters in sides:
        counts = np.unique(np.asarray(clusters), return_counts=True)[1]
        if len(counts) < 2:
            return math.nan
        errors.append(0.5 / math.sqrt(counts.sum()))
        limits.append(
            -float(special.stdtrit(bell_mccaffrey(counts / counts.sum()), 0.025)) * errors[-1]
        )
    return math.hypot(*limits) + POWER_QUANTILE * math.hypot(*errors)


POWER_QUANTILE = float(special.ndtri(0.8))


def difference(*parts: tuple[float, Part], unit: str = "source") -> Estimate:
    """Weighted sum of estimates, such as (1, model), (−1, words), with an interval made of theirs
    (MOVER).

    Zou & Donner (2008, Statistics in Medicine 27:1693): the distance of each estimate to its own
    limit, on the side that matters, takes the place of its standard error. Correlations are those
    of the clusters' errors; where a part has fewer than six clusters (`FEW`) they are those of the
    rows' errors if these make the interval wider. So intervals that are lopsided near 0 and 1 stay
    so, and an estimate that never varied still has its own uncertainty.
    """
    weights = np.array([weight for weight, _ in parts])
    estimates = [part.estimate for _, part in parts]
    n = max((estimate.n for estimate in estimates), default=0)
    if missing := [e for e in estimates if math.isnan(e.value)]:
        return undefined(missing[0].reason or "a part is undefined", n=n, unit=unit)
    value = float(weights @ [e.value for e in estimates])
    if missing := [e for e in estimates if math.isnan(e.low)]:
        why = "no interval: one of the parts that are compared has none"
        return undefined(
            f"{why} ({missing[0].reason})" if missing[0].reason else why,
            n=n,
            unit=unit,
            value=value,
        )
    alike = _correlations([part.errors for _, part in parts])
    if min(estimate.n for estimate in estimates) < FEW:
        by_row, signs = (
            _correlations([part.rows for _, part in parts]),
            np.sign(np.outer(weights, weights)),
        )
        alike = np.where(signs * by_row > signs * alike, by_row, alike)
    below, above = (
        np.array([abs(e.value - getattr(e, end)) for e in estimates]) for end in ("low", "high")
    )
    sides = (
        weights * np.where(weights > 0, below, above),
        weights * np.where(weights > 0, above, below),
    )
    low, high = (math.sqrt(max(0.0, float(side @ alike @ side))) for side in sides)
    if max(low, high) < 1e-7:  # the root of a rounding error
        return undefined("the two never differ", n=n, unit=unit, value=value)
    return Estimate(value, value - low, value + high, n, unit)


def _correlations(errors: Sequence[FloatArray]) -> FloatArray:
    """Correlations [part, part] of the contributions of clusters or rows to the parts' errors; 0
    where they are 0.
    """
    each = np.array(errors)
    lengths = np.sqrt((each**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.nan_to_num(each @ each.T / np.outer(lengths, lengths))
    np.fill_diagonal(found, 1.0)
    return found
