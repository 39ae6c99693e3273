"""The step at which curves change, all together: one step for all of them, by least squares."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from selfprobe.stats.estimate import Estimate, FloatArray, undefined

FEWEST = 6
"""Number of curves from which their signs can show a change at 5 %: 2·2⁻⁶ is less, 2·2⁻⁵ is more."""
ALPHA = 0.05


@dataclass(frozen=True)
class ChangePoint:
    """The time at which curves step up or down."""

    at: Estimate
    """The time from which on they differ; a bootstrap interval of whole curves."""
    step: Estimate
    """Size of the step; each resample at the time that is the best for it."""
    p: float
    """p of no change at any time, by the signs of whole curves; NaN with fewer than FEWEST."""

    @property
    def shown(self) -> bool:
        """True if a change is shown."""
        return self.p < ALPHA


def change_point(
    curves: npt.ArrayLike,
    times: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    from_zero: bool,
    unit: str,
    resamples: int = 2000,
) -> ChangePoint:
    """The time at which a step fits `curves` best: b from then on, 0 before; all curves have the same step.

    If `from_zero`, the curves are differences that are 0 before the step, which may stand at the first time. Else
    each curve has a level of its own, and the step is a change within it. The p is that of the largest fit over all
    times, where the sign of each whole curve is thrown anew: correlation within a curve does no harm, and looking at
    every time is paid for. Whole curves are resampled for the intervals (2.5 to 97.5 %).

    Args:
        curves: `[curve, time]`, NaN where a curve has no value.
        times: `[time]`, in order.
        rng: Generator of the resamples and the signs.
        from_zero: See above.
        unit: Name of what a curve belongs to.
        resamples: Number of the bootstrap's resamples, and of throws of the signs.
    """
    y, at = np.asarray(curves, dtype=float), np.asarray(times, dtype=float)
    if y.ndim != 2 or y.shape[1] != len(at):
        raise ValueError(f"expected curves [curve, time] with {len(at)} times, got {y.shape}")
    there = ~np.isnan(y)
    useful = there.any(axis=1) if from_zero else there.sum(axis=1) > 1
    y, there = y[useful], there[useful]
    n = len(y)
    xy, xx = _sums(y, there, from_zero)
    fits = _fit(xy.sum(axis=0), xx.sum(axis=0))
    if not n or not (fits > 0).any():
        why = f"no {unit} has a second turn to compare" if not n and not from_zero else "nothing changes"
        lacking = undefined(why, n=n, unit=unit)
        return ChangePoint(lacking, lacking, math.nan)
    best = int(np.argmax(fits))
    value = (float(at[best]), float(xy[:, best].sum() / xx[:, best].sum()))
    if n < 2:
        told = f"no interval from one {unit}"
        when, step = (undefined(told, n=n, unit=unit, value=v) for v in value)
        return ChangePoint(when, step, math.nan)
    ends = _ends(xy, xx, at, rng, resamples)
    found = [Estimate(v, float(low), float(high), n, unit) for v, (low, high) in zip(value, ends, strict=True)]
    if found[1].high - found[1].low < 1e-12:  # a time may be sure; a size that never varies tells nothing of its spread
        found[1] = undefined("every resample gives the same value", n=n, unit=unit, value=value[1])
    signs = rng.choice([-1.0, 1.0], size=(resamples, n))
    reached = _fit(signs @ xy, xx.sum(axis=0)[None]).max(axis=1) >= fits[best] * (1 - 1e-9)
    p = (1 + int(reached.sum())) / (resamples + 1) if n >= FEWEST else math.nan
    return ChangePoint(found[0], found[1], p)


def _ends(
    xy: FloatArray, xx: FloatArray, at: FloatArray, rng: np.random.Generator, resamples: int
) -> tuple[FloatArray, FloatArray]:
    """Intervals of the time and of the step, from whole curves drawn again; each draw at its best time."""
    n = len(xy)
    weights = rng.multinomial(n, np.full(n, 1 / n), size=resamples)
    drawn_xy, drawn_xx = weights @ xy, weights @ xx
    places = np.argmax(_fit(drawn_xy, drawn_xx), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        steps = (drawn_xy / drawn_xx)[np.arange(resamples), places]
    return np.quantile(at[places], [0.025, 0.975]), np.nanquantile(steps, [0.025, 0.975])


def _sums(y: FloatArray, there: npt.NDArray[np.bool_], from_zero: bool) -> tuple[FloatArray, FloatArray]:
    """Products [curve, time] of a step at each time with the curve, and with itself."""
    values = np.where(there, y, 0.0)
    after = np.cumsum(values[:, ::-1], axis=1)[:, ::-1]
    count = np.cumsum(there[:, ::-1], axis=1)[:, ::-1].astype(float)
    if from_zero:
        return after, count
    total, of = values.sum(axis=1, keepdims=True), there.sum(axis=1, keepdims=True)
    return after - count * total / of, count - count**2 / of


def _fit(xy: FloatArray, xx: FloatArray) -> FloatArray:
    """Reduction of the sum of squares by a step, at each time."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(xx > 1e-9, xy**2 / xx, 0.0)
