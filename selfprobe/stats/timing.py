"""When something happens: where curves rise in an order of places, and the first time of an event.

Places are turns of a conversation, layers or blocks. Curves rise all together, by one shape for all
of them. An event may not happen before the observation ends (Kaplan and Meier 1958).
"""

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from selfprobe.stats.claim import ALPHA
from selfprobe.stats.draws import of_unit_length, p_among_draws, p_of_largest
from selfprobe.stats.estimate import (
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    t_quantile,
    undefined,
)

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
    if not is_useful.any():
        reason = "nothing changes" if from_zero else f"no {unit} has a second turn to compare"
        return _no_rise(reason, 0, unit)

    cluster_of_curve = np.unique(np.asarray(clusters)[is_useful], return_inverse=True)[1]
    shapes, shape_values = _rise_shapes(positions, from_zero=from_zero)
    products = _shape_products(
        values[is_useful], is_known[is_useful], cluster_of_curve, shape_values, from_zero=from_zero
    )
    return _rise_from(products, shapes, positions, rng=rng, unit=unit, draws=draws)


def _no_rise(reason: str, cluster_count: int, unit: str) -> Rise:
    no_step = undefined(reason, n=cluster_count, unit=unit)
    return Rise(no_step, math.nan, math.nan, math.nan, math.nan, math.nan)


def _rise_shapes(positions: FloatArray, *, from_zero: bool) -> tuple[list[RiseShape], FloatArray]:
    """Every rise between two places, and its values `[shape, place]`."""
    place_count = len(positions)
    grid_step = math.ceil(place_count / MOST_PLACES)
    shapes = []
    if from_zero:
        shapes.append(RiseShape(-1, 0))
    for before in range(place_count - 1):
        for after in range(before + 1, place_count):
            is_on_grid = before % grid_step == 0 and after % grid_step == 0
            if after - before == 1 or is_on_grid:
                shapes.append(RiseShape(before, after))

    shape_values = np.ones((len(shapes), place_count))
    for index, shape in enumerate(shapes):
        if shape.before >= 0:
            rise_start = positions[shape.before]
            rise_length = positions[shape.after] - rise_start
            shape_values[index] = np.clip((positions - rise_start) / rise_length, 0, 1)
    return shapes, shape_values


@dataclass(frozen=True)
class _ShapeProducts:
    """Sums over places of products of curves and shapes, by cluster."""

    curve_products: FloatArray
    """[cluster, shape]: shape times curve."""
    curve_counts: FloatArray
    """[cluster, pattern]: number of curves that are known at the places of a pattern."""
    shape_products: FloatArray
    """[pattern, shape, shape]: shape times shape over the places of a pattern."""

    @property
    def cluster_count(self) -> int:
        return len(self.curve_products)

    @cached_property
    def gram(self) -> FloatArray:
        """[shape, shape] over all clusters."""
        return np.asarray(np.tensordot(self.curve_counts.sum(axis=0), self.shape_products, axes=1))

    @property
    def norms_by_cluster(self) -> FloatArray:
        """[cluster, shape]: shape times itself."""
        return np.asarray(self.curve_counts @ np.diagonal(self.shape_products, axis1=1, axis2=2))


def _shape_products(
    values: FloatArray,
    is_known: BoolArray,
    cluster_of_curve: IntArray,
    shape_values: FloatArray,
    *,
    from_zero: bool,
) -> _ShapeProducts:
    centred_curves = _without_level(values, is_known, from_zero=from_zero)
    members = np.eye(int(cluster_of_curve.max()) + 1)[cluster_of_curve]  # [curve, cluster]
    patterns, pattern_by_curve = np.unique(is_known, axis=0, return_inverse=True)
    pattern_by_curve = pattern_by_curve.ravel()
    shape_count = len(shape_values)
    curve_products = np.zeros((members.shape[1], shape_count))
    shape_products = np.zeros((len(patterns), shape_count, shape_count))
    for pattern_index, pattern in enumerate(patterns):
        is_shape_known = np.broadcast_to(pattern, shape_values.shape)
        centred_shapes = _without_level(shape_values, is_shape_known, from_zero=from_zero)
        in_pattern = pattern_by_curve == pattern_index
        products_by_curve = centred_curves[in_pattern] @ centred_shapes.T
        curve_products += members[in_pattern].T @ products_by_curve
        shape_products[pattern_index] = centred_shapes @ centred_shapes.T
    curve_counts = members.T @ np.eye(len(patterns))[pattern_by_curve]
    return _ShapeProducts(curve_products, curve_counts, shape_products)


def _without_level(rows: FloatArray, is_known: BoolArray, *, from_zero: bool) -> FloatArray:
    """Rows with 0 where nothing is known and, unless they start from zero, without their means."""
    filled_rows = np.where(is_known, rows, 0.0)
    if from_zero:
        return np.asarray(filled_rows)
    known_counts = np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    row_means = filled_rows.sum(axis=1, keepdims=True) / known_counts
    return np.where(is_known, rows - row_means, 0.0)


def _rise_from(
    products: _ShapeProducts,
    shapes: list[RiseShape],
    positions: FloatArray,
    *,
    rng: np.random.Generator,
    unit: str,
    draws: int,
) -> Rise:
    step_indices = np.array(
        [index for index, shape in enumerate(shapes) if shape.gaps == 1], dtype=int
    )
    sums = products.curve_products.sum(axis=0)
    norms = np.diag(products.gram)
    fits = _explained_squares(sums, norms)
    cluster_count = products.cluster_count
    if not (fits > 0).any():
        return _no_rise("nothing changes", cluster_count, unit)

    best_step = int(step_indices[np.argmax(fits[step_indices])])
    place = float(positions[shapes[best_step].after])
    step_size = float(sums[best_step] / norms[best_step])
    if cluster_count < 2:
        reason = f"no interval from one {unit}"
        step = undefined(reason, n=cluster_count, unit=unit, value=step_size)
        return Rise(step, place, math.nan, math.nan, math.nan, math.nan)

    low, high = _step_interval(products, step_indices, rng, draws)
    step = Estimate(step_size, low, high, cluster_count, unit)
    if high - low < 1e-12:
        reason = "every resample gives the same value"
        step = undefined(reason, n=cluster_count, unit=unit, value=step_size)
    if cluster_count < FEWEST_CLUSTERS:
        reason = f"{cluster_count} {unit}s; {FEWEST_CLUSTERS} are the least"
        step = replace(step, reason=reason)
        return Rise(step, place, math.nan, math.nan, math.nan, math.nan)

    signs = rng.choice([-1.0, 1.0], size=(draws, cluster_count))
    largest_fits = _explained_squares(signs @ products.curve_products, norms).max(axis=1)
    change_p = _share_that_reaches(largest_fits, fits.max())
    directed_p, set_p = _shape_p_values(products, step_indices, signs)
    is_wide = np.array([shape.gaps > WIDEST_STEP for shape in shapes])
    sharp_p = float(directed_p[is_wide].max()) if is_wide.any() else 0.0
    possible_shapes = [shape for shape, p in zip(shapes, set_p, strict=True) if p > ALPHA]
    if not change_p < ALPHA or not possible_shapes:
        return Rise(step, place, change_p, sharp_p, math.nan, math.nan)
    first_before = min(shape.before for shape in possible_shapes)
    last_after = max(shape.after for shape in possible_shapes)
    earliest = float(positions[max(first_before, 0)])
    latest = float(positions[last_after])
    return Rise(step, place, change_p, sharp_p, earliest, latest)


def _explained_squares(sums: FloatArray, norms: FloatArray) -> FloatArray:
    """Reduction of the sum of squares by each shape."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(norms > 1e-9, sums**2 / norms, 0.0)


def _share_that_reaches(drawn: FloatArray, real: float) -> float:
    """p of a real statistic among drawn ones, itself included; a rounding error breaks no tie."""
    reaching_count = int((drawn >= real * (1 - 1e-9) - 1e-12).sum())
    return float(p_among_draws(reaching_count, len(drawn)))


def _shape_p_values(
    products: _ShapeProducts, step_indices: IntArray, signs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For each shape the p that it is the truth: against every step, and against every shape."""
    gram = products.gram
    norms = np.diag(gram)
    sums = products.curve_products.sum(axis=0)
    fits = _explained_squares(sums, norms)
    cluster_count = products.cluster_count
    inflation = math.sqrt(cluster_count / (cluster_count - 1))
    signed_curves = signs @ products.curve_products
    signed_counts = signs @ products.curve_counts

    directed_p = np.ones(len(fits))
    set_p = np.ones(len(fits))
    for index, norm in enumerate(norms):
        if norm <= 1e-9:
            continue
        size = sums[index] / norm
        signed_shapes = signed_counts @ products.shape_products[:, index]
        signed_residuals = signed_curves - size * signed_shapes
        drawn_fits = _explained_squares(signed_residuals * inflation + size * gram[index], norms)
        gain_of_steps = drawn_fits[:, step_indices].max(axis=1) - drawn_fits[:, index]
        gain_of_all = drawn_fits.max(axis=1) - drawn_fits[:, index]
        best_step_fit = fits[step_indices].max()
        directed_p[index] = _share_that_reaches(gain_of_steps, best_step_fit - fits[index])
        set_p[index] = _share_that_reaches(gain_of_all, fits.max() - fits[index])
    return directed_p, set_p


def _step_interval(
    products: _ShapeProducts,
    step_indices: IntArray,
    rng: np.random.Generator,
    draws: int,
) -> tuple[float, float]:
    """Interval of the step's size from whole clusters drawn again, each draw at its best place."""
    cluster_count = products.cluster_count
    cluster_shares = np.full(cluster_count, 1 / cluster_count)
    weights = rng.multinomial(cluster_count, cluster_shares, size=draws)
    drawn_sums = weights @ products.curve_products[:, step_indices]
    drawn_norms = weights @ products.norms_by_cluster[:, step_indices]
    best_columns = np.argmax(_explained_squares(drawn_sums, drawn_norms), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn_sizes = (drawn_sums / drawn_norms)[np.arange(draws), best_columns]
    low, high = np.nanquantile(drawn_sizes, [0.025, 0.975])
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
    unit_values = np.asarray(values, dtype=float)
    distinct_clusters, cluster_of_unit = np.unique(np.asarray(clusters), return_inverse=True)
    if len(distinct_clusters) < FEWEST_CLUSTERS:
        return np.full(unit_values.shape[1], math.nan)
    members = np.eye(len(distinct_clusters))[cluster_of_unit]  # [unit, cluster]
    cluster_sums = members.T @ unit_values
    scaled_sums = of_unit_length(cluster_sums)
    signs = rng.choice([-1.0, 1.0], size=(draws, len(distinct_clusters)))
    corrected_p = p_of_largest(np.abs(scaled_sums.sum(axis=0)), np.abs(signs @ scaled_sums))
    is_above_zero = (cluster_sums**2).sum(axis=0) > 0
    return np.where(is_above_zero, corrected_p, math.nan)


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

    def share_by_time(self, time: float) -> Estimate:
        """The share by a time; undefined after the last time that a unit was seen at."""
        if not self.n or time > self.times[-1]:
            return undefined(f"no {self.unit} is that long", n=self.n, unit=self.unit)
        index = int(np.searchsorted(self.times, time, side="right")) - 1
        if index < 0:
            return Estimate(0.0, 0.0, 1 - 0.025 ** (1 / self.n), self.n, self.unit)
        return Estimate(
            float(self.happened[index]),
            float(self.low[index]),
            float(self.high[index]),
            self.n,
            self.unit,
        )

    @property
    def median(self) -> float:
        """The time by which it has happened in half of the units; NaN where it has not."""
        median_times = self.times[self.happened >= 0.5]
        return float(median_times[0]) if len(median_times) else math.nan


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
    unit_times = np.asarray(times, dtype=float)
    had_event = np.asarray(happened, dtype=bool)
    if unit_times.shape != had_event.shape or unit_times.ndim != 1:
        raise ValueError(
            f"expected one time and one bool a unit, got {unit_times.shape} and {had_event.shape}"
        )
    unit_count = len(unit_times)
    if not unit_count:
        empty = np.empty(0)
        return FirstTime(empty, empty, empty, empty, empty, empty, 0, unit)
    from scipy import stats  # here: slow to import

    censored = stats.CensoredData(uncensored=unit_times[had_event], right=unit_times[~had_event])
    survival = stats.ecdf(censored).sf
    with warnings.catch_warnings():
        # no interval where nothing, or everything, has happened
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = survival.confidence_interval(method="log-log")
    event_times = np.asarray(survival.quantiles, dtype=float)
    at_risk = unit_times[:, None] >= event_times  # [unit, time]
    has_event_at = had_event[:, None] & (unit_times[:, None] == event_times)  # [unit, time]
    share = 1 - np.asarray(survival.probabilities, dtype=float)
    low = 1 - np.asarray(interval.high.probabilities)
    high = 1 - np.asarray(interval.low.probabilities)

    cluster_of_unit = np.arange(unit_count)
    if clusters is not None:
        cluster_of_unit = np.unique(np.asarray(clusters), return_inverse=True)[1]
    for index in np.flatnonzero(np.isnan(low) | np.isnan(high)):
        nothing_happened = share[index] < 0.5
        counted_clusters = cluster_of_unit
        if nothing_happened:
            counted_clusters = cluster_of_unit[at_risk[:, index]]
        # The exact interval, as of the share over all turns.
        largest_share = 1 - 0.025 ** (1 / len(np.unique(counted_clusters)))
        low[index] = 0.0 if nothing_happened else 1 - largest_share
        high[index] = largest_share if nothing_happened else 1.0
    if 1 < int(cluster_of_unit.max()) + 1 < unit_count:
        cluster_low, cluster_high = _left_out_interval(
            at_risk.astype(float), has_event_at.astype(float), cluster_of_unit, share
        )
        low = np.fmin(low, cluster_low)
        high = np.fmax(high, cluster_high)
    risk_counts = at_risk.sum(axis=0).astype(float)
    event_counts = has_event_at.sum(axis=0).astype(float)
    return FirstTime(event_times, share, low, high, risk_counts, event_counts, unit_count, unit)


def _left_out_interval(
    at_risk: FloatArray,
    has_event: FloatArray,
    cluster_of_unit: IntArray,
    share: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Ends [time] from leaving out one cluster at a time, on the log-log scale; NaN where nothing,
    or all, happened; from `at_risk` and `has_event  # [unit, time]`.
    """
    cluster_count = int(cluster_of_unit.max()) + 1
    members = np.eye(cluster_count)[cluster_of_unit]  # [unit, cluster]
    risk_counts = at_risk.sum(axis=0) - members.T @ at_risk  # [left-out cluster, time]
    event_counts = has_event.sum(axis=0) - members.T @ has_event
    survival = np.cumprod(1 - event_counts / np.maximum(risk_counts, 1), axis=1)
    half_a_unit = 0.5 / len(at_risk)
    clipped_survival = np.clip(survival, half_a_unit, 1 - half_a_unit)
    log_logs = np.log(-np.log(clipped_survival))
    deviations = log_logs - log_logs.mean(axis=0)
    squared_deviations = (deviations**2).sum(axis=0)
    standard_error = np.sqrt((cluster_count - 1) / cluster_count * squared_deviations)
    half_width = t_quantile(cluster_count - 1) * standard_error
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.log(-np.log(1 - share))
        low = 1 - np.exp(-np.exp(centre - half_width))
        high = 1 - np.exp(-np.exp(centre + half_width))
    is_inside = (share > 0) & (share < 1)
    return np.where(is_inside, low, np.nan), np.where(is_inside, high, np.nan)
