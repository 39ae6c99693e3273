"""How far the mean of clustered rows may be off: its variance, degrees of freedom, and Wilson's interval.

With clusters of one size the variances here are CR1's (statsmodels' OLS on a constant), and the degrees of freedom
clusters - 1. Of unequal ones CR1 is too small and clusters - 1 too many: where one of 40 clusters has half of the rows,
65 to 89 % of simulated 95 % t intervals hold the truth with them, and 96 to 99 % with those here (docs/statistics.md).
"""

import math

import numpy as np
import numpy.typing as npt
from scipy import special

FloatArray = npt.NDArray[np.float64]

FEW = 6
"""Number of clusters below which equal clusters may be chance: a variance is then at least that of independent rows."""
NOTHING = 1e-24
"""Variance that is rounding error."""


def by_cluster(errors: FloatArray, inverse: npt.NDArray[np.intp], n: int = 0) -> tuple[FloatArray, FloatArray]:
    """What each cluster adds to the error of a mean, and its share of the rows, [cluster].

    Args:
        errors: Of each row, from the mean.
        inverse: The cluster of each row, 0, 1, ….
        n: At least so many clusters; those without a row have a share of 0.
    """
    rows = len(errors)
    return np.bincount(inverse, errors, minlength=n) / rows, np.bincount(inverse, minlength=n) / rows


def cr2(errors: FloatArray, held: FloatArray) -> float:
    """Variance of a mean, of what each cluster adds to its error and its share of the rows (Bell & McCaffrey 2002)."""
    return float((errors**2 / (1 - held)).sum())


def jackknife(errors: FloatArray, held: FloatArray) -> float:
    """Variance of a mean by leaving out one cluster at a time (CR3), of the same two."""
    without = errors / (1 - held)
    n = np.count_nonzero(held)
    return (n - 1) / n * float(without @ without)


def floored(variance: float, clusters: int, *errors: FloatArray) -> float:
    """Variance of a mean, or of a sum of means; of fewer than FEW clusters at least that of independent rows.

    Clusters that do not differ at all tell nothing of their spread, however many: then it is that of the rows too.

    Args:
        variance: From the clusters.
        clusters: Number of clusters that it comes from.
        errors: Distance of each row from its mean, `[row]`, one array per mean.
    """
    if clusters >= FEW and variance > NOTHING:
        return variance
    return max(variance, sum(float(each @ each) / (len(each) * max(len(each) - 1, 1)) for each in errors))


def bell_mccaffrey(held: FloatArray) -> float:
    """Degrees of freedom of either variance, of each cluster's share of the rows (2002, Survey Methodology 28:169).

    >>> round(bell_mccaffrey(np.full(8, 1 / 8)), 9), round(bell_mccaffrey(np.array([0.9, 0.05, 0.05])), 2)
    (7.0, 1.11)
    """
    spread = held**2 / (1 - held)
    return 1 / float(held @ held + spread.sum() ** 2 - spread @ spread)


def effective(scores: FloatArray, inverse: npt.NDArray[np.intp]) -> float:
    """Independent scores in [0, 1] that would know as much of the mean as these in their clusters.

    At most their number where they are 0 or 1, and of fewer than FEW clusters what they would know if they were
    independent. One further cluster counts, half right and half wrong: few wrong ones would pretend to be independent.
    """
    rows, n = len(scores), int(inverse.max()) + 1
    each = rows / n  # rows of the further cluster
    total = rows + each
    mean = (scores.sum() + each / 2) / total
    errors, held = by_cluster(scores - mean, inverse)
    variance = cr2(errors * rows / total, held * rows / total)
    variance += (each / total) ** 2 * (mean**2 + (1 - mean) ** 2) / 2 / (1 - each / total)
    found = float(rows * mean * (1 - mean) / (variance * total))
    if n < min(FEW, rows):
        found = min(found, effective(scores, np.arange(rows)))
    return min(found, float(rows)) if np.isin(scores, (0, 1)).all() else found


def wilson(share: float, n: float, *, df: float = math.inf, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a share of n (possibly an effective n), with t(df) in the place of z."""
    t2 = float(special.stdtrit(df, (1 - level) / 2)) ** 2
    centre = (share + t2 / (2 * n)) / (1 + t2 / n)
    half = math.sqrt(t2) / (1 + t2 / n) * math.sqrt(share * (1 - share) / n + t2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)
