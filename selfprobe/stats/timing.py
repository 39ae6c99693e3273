"""When something happens: where curves rise in an order of places, and the first time of an event.

Places are turns of a conversation, layers or blocks. Curves rise all together, by one shape for all
of them. An event may not happen before the observation ends (Kaplan and Meier 1958).
"""

import math
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.claim import ALPHA
from selfprobe.stats.estimate import Estimate, FloatArray, undefined, wilson

FEWEST_CLUSTERS = 6
"""Number of clusters from which their signs can show a change at 5 %: 2·2⁻⁶ is less, 2·2⁻⁵ is more.
"""
WIDEST_STEP = 2
"""Largest number of gaps between places that a rise may take and still be told of as one place."""
RISE_DRAWS = 999
"""Number of draws of the clusters' signs."""
MOST_PLACES = 24
"""Number of places beyond which a rise over more than one gap begins and ends at every second
place, or third, ….
"""


@dataclass(frozen=True)
class RiseShape:
    """A rise: 0 up to the place `before`, 1 from the place `after` on, even between them."""

    before: int
    """Index of the last place without any of the rise; -1 where the rise is there from the first
    place on.
    """
    after: int
    """Index of the first place with all of the rise."""

    @property
    def gaps(self) -> int:
        """Number of gaps between places that the rise takes; a step takes one."""
        return self.after - self.before


@dataclass(frozen=True)
class Rise:
    """Result of `rise_in`: whether curves change over places, and at which place."""

    step: Estimate
    """Size of the step that fits best; an interval of whole clusters drawn again, each draw at its
    own best place.
    """
    place: float
    """Place from which on the step that fits best is there; NaN without one."""
    change_p: float
    """p of no change at any place; NaN with fewer than FEWEST_CLUSTERS clusters."""
    sharp_p: float
    """Largest p of a rise that takes more than WIDEST_STEP gaps: below 5 % each of them is ruled
    out.
    """
    earliest: float
    """Last place before the first rise that is not ruled out; NaN where nothing is shown to change.
    """
    latest: float
    """First place after the last rise that is not ruled out."""

    @property
    def is_change(self) -> bool:
        """Whether a change at some place is shown."""
        return self.change_p < ALPHA

    @property
    def is_sharp(self) -> bool:
        """Whether the change is shown to take no more than WIDEST_STEP gaps."""
        return self.is_change and self.sharp_p < ALPHA


def rise_in(
    curves: npt.ArrayLike,
    places: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    from_zero: bool,
    unit: str,
    draws: int = RISE_DRAWS,
) -> Rise:
    """Whether `curves` change together over places, and which shapes of the change are ruled out.

    Every rise from one place to a later one is tried. The p of no change is that of the largest fit
    over all shapes, where the signs of whole clusters are thrown anew: correlation within a cluster
    does no harm, and looking at every shape is paid for. For each shape the null "it is this one"
    is imposed and the residuals' signs are thrown anew by cluster (a wild cluster bootstrap). A
    change has a place only where every rise that takes more than WIDEST_STEP gaps is ruled out in
    favour of a step; each at 5 %, since all of them must go. Rates: docs/statistics.md.

    Args:
        curves: `[curve, place]`, NaN where a curve has no value.
        places: `[place]`, in order.
        clusters: `[curve]`, labels of independent units, such as the sources of the transcripts.
        rng: Generator of signs and resamples.
        from_zero: Whether curves are differences that are 0 before the rise, which may stand at the
            first place. Else each curve has a level of its own.
        unit: Name of a cluster.
        draws: Number of draws of signs, and of resamples.
    """
    values = np.asarray(curves, dtype=float)
    positions = np.asarray(places, dtype=float)
    if values.ndim != 2 or values.shape[1] != len(positions):
        raise ValueError(
            f"expected curves [curve, place] with {len(positions)} places, got {values.shape}"
        )
    is_known = ~np.isnan(values)
    fewest_values = 1 if from_zero else 2
    is_useful = is_known.sum(axis=1) >= fewest_values
    labels = np.unique(np.asarray(clusters)[is_useful], return_inverse=True)[1]
    values, is_known = values[is_useful], is_known[is_useful]
    if not len(values):
        return _no_rise(
            f"no {unit} has a second turn to compare" if not from_zero else "nothing changes",
            0,
            unit,
        )
    shapes, shape_values = _rise_shapes(positions, from_zero=from_zero)
    products = _shape_products(values, is_known, labels, shape_values, from_zero=from_zero)
    return _rise_from(products, shapes, positions, rng=rng, unit=unit, draws=draws)


def _no_rise(reason: str, clusters: int, unit: str) -> Rise:
    nothing = undefined(reason, n=clusters, unit=unit)
    return Rise(nothing, math.nan, math.nan, math.nan, math.nan, math.nan)


def _rise_shapes(positions: FloatArray, *, from_zero: bool) -> tuple[list[RiseShape], FloatArray]:
    """Every rise between two places, and its values `[shape, place]`."""
    count = len(positions)
    grid = math.ceil(count / MOST_PLACES)
    shapes = []
    for before in range(count - 1):
        for after in range(before + 1, count):
            is_on_grid = before % grid == 0 and after % grid == 0
            if after - before == 1 or is_on_grid:
                shapes.append(RiseShape(before, after))
    rows = []
    for shape in shapes:
        length = positions[shape.after] - positions[shape.before]
        rows.append(np.clip((positions - positions[shape.before]) / length, 0, 1))
    if from_zero:
        shapes = [RiseShape(-1, 0), *shapes]
        rows = [np.ones(count), *rows]
    return shapes, np.array(rows).reshape(len(shapes), count)


@dataclass(frozen=True)
class _ShapeProducts:
    """Sums over places of products of curves and shapes, by cluster."""

    with_curves: FloatArray
    """[cluster, shape]: shape times curve."""
    curve_counts: FloatArray
    """[cluster, pattern]: number of curves that are known at the places of a pattern."""
    between_shapes: FloatArray
    """[pattern, shape, shape]: shape times shape over the places of a pattern."""

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return len(self.with_curves)

    @cached_property
    def gram(self) -> FloatArray:
        """[shape, shape] over all clusters."""
        return np.asarray(np.tensordot(self.curve_counts.sum(axis=0), self.between_shapes, axes=1))

    @property
    def norms_by_cluster(self) -> FloatArray:
        """[cluster, shape]: shape times itself."""
        return np.asarray(self.curve_counts @ np.diagonal(self.between_shapes, axis1=1, axis2=2))


def _shape_products(
    values: FloatArray,
    is_known: npt.NDArray[np.bool_],
    labels: npt.NDArray[np.intp],
    shape_values: FloatArray,
    *,
    from_zero: bool,
) -> _ShapeProducts:
    curve_rows = _without_level(values, is_known, from_zero=from_zero)
    members = np.eye(int(labels.max()) + 1)[labels]  # [curve, cluster]
    patterns, pattern_of = np.unique(is_known, axis=0, return_inverse=True)
    pattern_of = pattern_of.ravel()
    count = len(shape_values)
    with_curves = np.zeros((members.shape[1], count))
    between_shapes = np.zeros((len(patterns), count, count))
    for index, known in enumerate(patterns):
        repeated = np.broadcast_to(known, shape_values.shape)
        shapes_there = _without_level(shape_values, repeated, from_zero=from_zero)
        rows = pattern_of == index
        with_curves += members[rows].T @ (curve_rows[rows] @ shapes_there.T)
        between_shapes[index] = shapes_there @ shapes_there.T
    curve_counts = members.T @ np.eye(len(patterns))[pattern_of]
    return _ShapeProducts(with_curves, curve_counts, between_shapes)


def _without_level(
    rows: FloatArray, is_known: npt.NDArray[np.bool_], *, from_zero: bool
) -> FloatArray:
    """Rows with 0 where nothing is known and, unless they start from zero, without their means."""
    filled = np.where(is_known, rows, 0.0)
    if from_zero:
        return np.asarray(filled)
    counts = np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    level = filled.sum(axis=1, keepdims=True) / counts
    return np.where(is_known, rows - level, 0.0)


def _rise_from(
    products: _ShapeProducts,
    shapes: list[RiseShape],
    positions: FloatArray,
    *,
    rng: np.random.Generator,
    unit: str,
    draws: int,
) -> Rise:
    steps = np.array([index for index, shape in enumerate(shapes) if shape.gaps == 1], dtype=int)
    sums = products.with_curves.sum(axis=0)
    norms = np.diag(products.gram)
    fits = _fit(sums, norms)
    clusters = products.clusters
    if not (fits > 0).any():
        return _no_rise("nothing changes", clusters, unit)
    best_step = int(steps[np.argmax(fits[steps])])
    place = float(positions[shapes[best_step].after])
    size = float(sums[best_step] / norms[best_step])
    if clusters < 2:
        alone = undefined(f"no interval from one {unit}", n=clusters, unit=unit, value=size)
        return Rise(alone, place, math.nan, math.nan, math.nan, math.nan)
    low, high = _step_interval(products, steps, rng, draws)
    step = Estimate(size, low, high, clusters, unit)
    if high - low < 1e-12:
        step = undefined("every resample gives the same value", n=clusters, unit=unit, value=size)
    if clusters < FEWEST_CLUSTERS:
        reason = f"{clusters} {unit}s; {FEWEST_CLUSTERS} are the least"
        few = Estimate(size, step.low, step.high, clusters, unit, reason)
        return Rise(few, place, math.nan, math.nan, math.nan, math.nan)
    signs = rng.choice([-1.0, 1.0], size=(draws, clusters))
    largest_fits = _fit(signs @ products.with_curves, norms).max(axis=1)
    change_p = _share_that_reaches(largest_fits, fits.max())
    directed_p, set_p = _shape_p_values(products, steps, signs)
    is_wide = np.array([shape.gaps > WIDEST_STEP for shape in shapes])
    sharp_p = float(directed_p[is_wide].max()) if is_wide.any() else 0.0
    kept = [shape for shape, p in zip(shapes, set_p, strict=True) if p > ALPHA]
    if not change_p < ALPHA or not kept:
        return Rise(step, place, change_p, sharp_p, math.nan, math.nan)
    earliest = min(shape.before for shape in kept)
    latest = max(shape.after for shape in kept)
    return Rise(
        step, place, change_p, sharp_p, float(positions[max(earliest, 0)]), float(positions[latest])
    )


def _fit(sums: FloatArray, norms: FloatArray) -> FloatArray:
    """Reduction of the sum of squares by each shape."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(norms > 1e-9, sums**2 / norms, 0.0)


def _share_that_reaches(drawn: FloatArray, real: float) -> float:
    """p of a real statistic among drawn ones, itself included; a rounding error breaks no tie."""
    reached = int((drawn >= real * (1 - 1e-9) - 1e-12).sum())
    return (1 + reached) / (len(drawn) + 1)


def _shape_p_values(
    products: _ShapeProducts, steps: npt.NDArray[np.intp], signs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For each shape the p that it is the truth: against every step, and against every shape."""
    gram = products.gram
    norms = np.diag(gram)
    sums = products.with_curves.sum(axis=0)
    fits = _fit(sums, norms)
    clusters = products.clusters
    inflation = math.sqrt(clusters / (clusters - 1))
    signed_curves = signs @ products.with_curves
    signed_counts = signs @ products.curve_counts
    directed_p = np.ones(len(fits))
    set_p = np.ones(len(fits))
    for index, norm in enumerate(norms):
        if norm <= 1e-9:
            continue
        size = sums[index] / norm
        signed_residuals = signed_curves - size * (
            signed_counts @ products.between_shapes[:, index]
        )
        drawn_fits = _fit(signed_residuals * inflation + size * gram[index], norms)
        gain_of_steps = drawn_fits[:, steps].max(axis=1) - drawn_fits[:, index]
        gain_of_all = drawn_fits.max(axis=1) - drawn_fits[:, index]
        directed_p[index] = _share_that_reaches(gain_of_steps, fits[steps].max() - fits[index])
        set_p[index] = _share_that_reaches(gain_of_all, fits.max() - fits[index])
    return directed_p, set_p


def _step_interval(
    products: _ShapeProducts, steps: npt.NDArray[np.intp], rng: np.random.Generator, draws: int
) -> tuple[float, float]:
    """Interval of the step's size from whole clusters drawn again, each draw at its best place."""
    clusters = products.clusters
    weights = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=draws)
    drawn_sums = weights @ products.with_curves[:, steps]
    drawn_norms = weights @ products.norms_by_cluster[:, steps]
    best = np.argmax(_fit(drawn_sums, drawn_norms), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        sizes = (drawn_sums / drawn_norms)[np.arange(draws), best]
    low, high = np.nanquantile(sizes, [0.025, 0.975])
    return float(low), float(high)


def largest_p(
    values: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    draws: int = RISE_DRAWS,
) -> FloatArray:
    """Two-sided p [place] that means differ from 0, corrected for having looked at every place.

    The statistic of a place is the sum of its clusters' sums over their root sum of squares; the
    largest over places counts, and the signs of whole clusters are thrown anew. NaN with fewer than
    FEWEST_CLUSTERS clusters, and where all values of a place are 0.

    Args:
        values: `[unit, place]`.
        clusters: `[unit]`, labels of independent clusters.
        rng: Generator of the signs.
        draws: Number of draws.
    """
    rows = np.asarray(values, dtype=float)
    inverse = np.unique(np.asarray(clusters), return_inverse=True)[1]
    sums = np.eye(int(inverse.max()) + 1)[inverse].T @ rows if len(rows) else rows
    lengths = np.sqrt((sums**2).sum(axis=0))
    if len(sums) < FEWEST_CLUSTERS:
        return np.full(rows.shape[1], math.nan)
    scaled = sums / np.where(lengths > 0, lengths, 1.0)
    signs = rng.choice([-1.0, 1.0], size=(draws, len(sums)))
    largest = np.abs(signs @ scaled).max(axis=1)
    real = np.abs(scaled.sum(axis=0))
    reached = (largest[:, None] >= real - 1e-9).sum(axis=0)
    return np.where(lengths > 0, (1 + reached) / (1 + draws), math.nan)


@dataclass(frozen=True)
class FirstTime:
    """The share of units in which it has happened by each time."""

    times: FloatArray
    """Times [time] at which something happened or a unit ended, in order."""
    happened: FloatArray
    """Share [time] of units in which it has happened by then: 1 − Kaplan and Meier's survival."""
    low: FloatArray
    high: FloatArray
    """Upper end [time], 95 %, on the log-log scale; Wilson's before the first event and after the
    last unit's.
    """
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
        """The time by which it has happened in half of the units; NaN where it has not."""
        reached = self.times[self.happened >= 0.5]
        return float(reached[0]) if len(reached) else math.nan


def first_time(
    times: npt.ArrayLike,
    happened: npt.ArrayLike,
    *,
    unit: str,
    clusters: npt.ArrayLike | None = None,
) -> FirstTime:
    """Kaplan and Meier's estimate of the share of units in which it has happened, by time.

    Intervals are Kaplan and Meier's on the log-log scale. Where clusters hold several units each is
    at least as wide as the one from leaving out one cluster at a time (jackknife on that scale, t
    with clusters − 1 degrees of freedom).

    Args:
        times: Time of the event, `[unit]`; where there was none, the last time that was seen.
        happened: Whether there was an event, `[unit]`, bool.
        unit: Name of a unit; how long one was seen says nothing about the event.
        clusters: Label of the independent group of each unit, `[unit]`. Default: units are
            independent.
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
        warnings.simplefilter(
            "ignore", RuntimeWarning
        )  # no interval where nothing, or everything, has happened
        ends = survival.confidence_interval(method="log-log")
    moments = np.asarray(survival.quantiles, dtype=float)
    risk = np.array([(at >= moment).sum() for moment in moments], dtype=float)
    events = np.array([(seen & (at == moment)).sum() for moment in moments], dtype=float)
    share = 1 - np.asarray(survival.probabilities, dtype=float)
    low, high = 1 - np.asarray(ends.high.probabilities), 1 - np.asarray(ends.low.probabilities)
    labels = (
        np.arange(len(at))
        if clusters is None
        else np.unique(np.asarray(clusters), return_inverse=True)[1]
    )
    cluster_count = int(labels.max()) + 1
    for place in np.flatnonzero(np.isnan(low) | np.isnan(high)):
        reaching = at >= moments[place]
        nothing_happened = share[place] < 0.5
        counted = labels[reaching] if nothing_happened else labels
        ends_of_none = wilson(0.0, len(np.unique(counted)))[1]
        low[place], high[place] = (
            (0.0, ends_of_none) if nothing_happened else (1 - ends_of_none, 1.0)
        )
    if 1 < cluster_count < len(at):
        cluster_low, cluster_high = _left_out_interval(at, seen, labels, moments, share)
        low, high = np.fmin(low, cluster_low), np.fmax(high, cluster_high)
    return FirstTime(moments, share, low, high, risk, events, len(at), unit)


def _left_out_interval(
    at: FloatArray,
    seen: npt.NDArray[np.bool_],
    labels: npt.NDArray[np.intp],
    moments: FloatArray,
    share: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Ends [time] from leaving out one cluster at a time, on the log-log scale; NaN where nothing,
    or all, happened.
    """
    count = int(labels.max()) + 1
    members = np.eye(count)[labels]  # [unit, cluster]
    at_risk = (at[:, None] >= moments).astype(float)  # [unit, time]
    event = (seen[:, None] & (at[:, None] == moments)).astype(float)
    risk_without = at_risk.sum(axis=0) - members.T @ at_risk  # [cluster, time]
    events_without = event.sum(axis=0) - members.T @ event
    survived = np.cumprod(1 - events_without / np.maximum(risk_without, 1), axis=1)
    half_a_unit = 0.5 / len(at)
    surviving = np.clip(survived, half_a_unit, 1 - half_a_unit)
    scale = np.log(-np.log(surviving))
    deviations = scale - scale.mean(axis=0)
    error = np.sqrt((count - 1) / count * (deviations**2).sum(axis=0))
    half = -float(special.stdtrit(count - 1, 0.025)) * error
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.log(-np.log(1 - share))
        low = 1 - np.exp(-np.exp(centre - half))
        high = 1 - np.exp(-np.exp(centre + half))
    is_inside = (share > 0) & (share < 1)
    return np.where(is_inside, low, np.nan), np.where(is_inside, high, np.nan)
