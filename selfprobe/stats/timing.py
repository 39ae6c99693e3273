"""When something happens: the step at which curves change, and the first time of an event.

Curves change all together: one step for all of them, by least squares. An event may not happen before the observation
ends (Kaplan and Meier 1958).
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from selfprobe.stats.estimate import Estimate, FloatArray, undefined, wilson

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


@dataclass(frozen=True)
class FirstTime:
    """The share of units in which it has happened by each time."""

    times: FloatArray
    """Times [time] at which something happened or a unit ended, in order."""
    happened: FloatArray
    """Share [time] of units in which it has happened by then: 1 − Kaplan and Meier's survival."""
    low: FloatArray
    high: FloatArray
    """Upper end [time], 95 %, on the log-log scale; Wilson's before the first event and after the last unit's."""
    at_risk: FloatArray
    """Number of units [time] that reach it without an event before."""
    events: FloatArray
    """Number of events [time]."""
    n: int
    unit: str

    def by(self, time: float) -> Estimate:
        """The share by a time; undefined after the last time that a unit was seen at."""
        if not self.n or time > self.times[-1]:
            return undefined(f"no {self.unit} is that long", n=self.n, unit=self.unit)
        at = int(np.searchsorted(self.times, time, side="right")) - 1
        if at < 0:
            return Estimate(0.0, *wilson(0.0, self.n), self.n, self.unit)
        value, low, high = (float(ends[at]) for ends in (self.happened, self.low, self.high))
        return Estimate(value, low, high, self.n, self.unit)

    @property
    def median(self) -> float:
        """The time by which it has happened in half of the units; NaN where it has not by the end."""
        reached = self.times[self.happened >= 0.5]
        return float(reached[0]) if len(reached) else math.nan


def first_time(times: npt.ArrayLike, happened: npt.ArrayLike, *, unit: str) -> FirstTime:
    """Kaplan and Meier's estimate of the share of units in which it has happened, by time.

    Args:
        times: Time of the event, `[unit]`; where there was none, the last time that was seen.
        happened: Whether there was an event, `[unit]`, bool.
        unit: Name of a unit; units are independent, and how long one was seen says nothing about the event.
    """
    at, seen = np.asarray(times, dtype=float), np.asarray(happened, dtype=bool)
    if at.shape != seen.shape or at.ndim != 1:
        raise ValueError(f"expected one time and one bool a unit, got {at.shape} and {seen.shape}")
    if not len(at):
        none = np.empty(0)
        return FirstTime(none, none, none, none, none, none, 0, unit)
    from scipy import stats  # here: slow to import

    survival = stats.ecdf(stats.CensoredData(uncensored=at[seen], right=at[~seen])).sf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no interval where nothing, or everything, has happened
        ends = survival.confidence_interval(method="log-log")
    moments = np.asarray(survival.quantiles, dtype=float)
    risk = np.array([(at >= moment).sum() for moment in moments], dtype=float)
    events = np.array([(seen & (at == moment)).sum() for moment in moments], dtype=float)
    share = 1 - np.asarray(survival.probabilities, dtype=float)
    low, high = 1 - np.asarray(ends.high.probabilities), 1 - np.asarray(ends.low.probabilities)
    for place in np.flatnonzero(np.isnan(low) | np.isnan(high)):
        ends_of_none = wilson(0.0, risk[place] if share[place] < 0.5 else len(at))[1]
        low[place], high[place] = (0.0, ends_of_none) if share[place] < 0.5 else (1 - ends_of_none, 1.0)
    return FirstTime(moments, share, low, high, risk, events, len(at), unit)
