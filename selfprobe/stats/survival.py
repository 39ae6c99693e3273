"""When something happens first, where it may not have happened by the end of what was seen (Kaplan and Meier 1958)."""

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
    """[time], at which something happened or a unit ended, in order."""
    happened: FloatArray
    """[time], share by then: 1 − Kaplan and Meier's survival."""
    low: FloatArray
    high: FloatArray
    """[time], 95 %, on the log-log scale; before the first event, and after the last unit had one, Wilson's."""
    at_risk: FloatArray
    """[time], units that reach it without an event before."""
    events: FloatArray
    """[time]"""
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
        times: `[unit]`, when it happened; where it did not, the last time that was seen.
        happened: `[unit]`, bool.
        unit: What a unit is called; units are independent, and how long one was seen tells nothing of the event.
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
