"""Time until something first happens, if it may not happen before the observation ends (Kaplan and Meier 1958)."""

import math
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from selfprobe.stats.estimate import Estimate, FloatArray, undefined, wilson


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
