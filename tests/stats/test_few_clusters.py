"""Intervals over fewer than six clusters: none has no width, and none knows more than independent
rows would.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

from selfprobe.stats.agreement import agreement, cohen_kappa, ece, equivalence, turns_trend
from selfprobe.stats.clustered import (
    clustered_auroc,
    clustered_share,
    difference,
    two_way_clustered_mean,
)
from selfprobe.stats.estimate import Estimate, bootstrap, clustered_mean, effective_size
from selfprobe.stats.paired import change

Draw = Callable[[np.random.Generator, int, np.ndarray], Estimate]


def right(rng: np.random.Generator, n: int, p: float = 0.45) -> np.ndarray:
    return (rng.random(n) < p).astype(float)


def rated(rng: np.random.Generator, positive: np.ndarray) -> np.ndarray:
    return rng.normal(size=len(positive)) + math.sqrt(2) * float(special.ndtri(0.75)) * positive


def labels(n: int) -> np.ndarray:
    """Evaluation and deployment by turns, ten rows long: whatever the number of clusters, each has
    both.
    """
    return np.arange(n) // 10 % 2 == 0


def of_auroc(rng: np.random.Generator, n: int, clusters: np.ndarray) -> Estimate:
    return clustered_auroc(labels(n), rated(rng, labels(n)), clusters).estimate


def of_two_aurocs(rng: np.random.Generator, n: int, clusters: np.ndarray) -> Estimate:
    common = rng.normal(size=n)
    first, second = (
        clustered_auroc(labels(n), rated(rng, labels(n)) + common, clusters) for _ in range(2)
    )
    return difference((1, first), (-1, second))


def of_two_labels(sign: float) -> Draw:
    def draw(rng: np.random.Generator, n: int, clusters: np.ndarray) -> Estimate:
        values = right(rng, n, 0.6)
        ours, others = (
            clustered_share(values, clusters, is_counted=side, unit="source")
            for side in (labels(n), ~labels(n))
        )
        return difference((0.5, ours), (0.5 * sign, others))

    return draw


def of_pairs(rng: np.random.Generator, n: int, clusters: np.ndarray) -> Estimate:
    theirs = np.roll(clusters, n // 3)
    return two_way_clustered_mean(
        rng.choice([-1, -0.5, 0, 0.5, 1], n), clusters, theirs, unit="source", signed=True
    )


def of_kappa(rng: np.random.Generator, n: int, clusters: np.ndarray) -> Estimate:
    a = rng.random(n) < 0.5
    b = np.where(rng.random(n) < 0.6, a, rng.random(n) < 0.5)
    return bootstrap(cohen_kappa, a, b, clusters=clusters, rng=rng, resamples=200)


def of_resampled_mean(rng: np.random.Generator, n: int, clusters: np.ndarray) -> Estimate:
    values = rng.normal(size=n)
    return bootstrap(lambda x: x, values, clusters=clusters, rng=rng, of_means=True)


def of_ece(rng: np.random.Generator, n: int, clusters: np.ndarray) -> Estimate:
    odds = rng.normal(0, 1.5, n)
    return ece(special.expit(2 * odds), rng.random(n) < special.expit(odds), clusters)


def _ece() -> float:
    odds = np.random.default_rng(1).normal(0, 1.5, 400_000)
    return math.sqrt(np.mean((special.expit(2 * odds) - special.expit(odds)) ** 2))


INTERVALS: dict[str, tuple[Draw, float]] = {
    "share": (
        lambda rng, n, clusters: clustered_share(right(rng, n), clusters, unit="source").estimate,
        0.45,
    ),
    "mean, Wilson": (lambda rng, n, clusters: clustered_mean(right(rng, n), clusters), 0.45),
    "mean of grades": (lambda rng, n, clusters: clustered_mean(rng.beta(2, 3, n), clusters), 0.4),
    "mean, t": (
        lambda rng, n, clusters: clustered_mean(rng.normal(size=n), clusters, interval="t"),
        0,
    ),
    "mean of differences": (
        lambda rng, n, clusters: clustered_mean(
            rng.choice([-1.0, 0, 1], n), clusters, interval="difference"
        ),
        0,
    ),
    "change": (lambda rng, n, clusters: change(right(rng, n), right(rng, n), clusters).estimate, 0),
    "AUROC": (of_auroc, 0.75),
    "difference of AUROCs": (of_two_aurocs, 0),
    "mean of two shares": (of_two_labels(1), 0.6),
    "difference of two shares": (of_two_labels(-1), 0),
    "pairs that share both sides": (of_pairs, 0),
    "kappa": (of_kappa, 0.6),
    "resampled mean": (of_resampled_mean, 0),
    "calibration error": (of_ece, _ece()),
}


@pytest.mark.parametrize("name", INTERVALS)
@pytest.mark.parametrize("clusters", [2, 3, 5])
def test_few_clusters_never_know_more_than_as_many_independent_rows(
    name: str, clusters: int
) -> None:
    draw, _ = INTERVALS[name]
    for seed in range(12):
        ours, rows = (
            draw(np.random.default_rng(seed), 40, of)
            for of in (np.arange(40) % clusters, np.arange(40))
        )
        assert rows.high - rows.low > 0 and ours.high - ours.low > 0.98 * (rows.high - rows.low)


@pytest.mark.slow(6)
@pytest.mark.parametrize("name", INTERVALS)
@pytest.mark.parametrize("clusters", [2, 3, 4, 5])
def test_few_clusters_of_independent_rows_hold_the_truth_as_often_as_the_rows_do(
    name: str, clusters: int
) -> None:
    """Two clusters' bootstrap held it in half of the draws, and a difference of shares in 79 %."""
    draw, truth = INTERVALS[name]

    def held(of: np.ndarray) -> float:
        found = [draw(np.random.default_rng(seed), 40, of) for seed in range(300)]
        return float(
            np.mean([one.low <= truth <= one.high for one in found if not math.isnan(one.low)])
        )

    ours, rows = held(np.arange(40) % clusters), held(np.arange(40))
    assert ours >= rows - 0.01 and ours > 0.92


def test_a_share_of_clusters_that_happen_to_be_alike_has_an_interval() -> None:
    """Two sources that are half right each: .5 [.5, .5] before."""
    got = clustered_share([1, 0] * 6, ["a"] * 6 + ["b"] * 6, unit="source").estimate
    assert got.value == 0.5 and got.low < 0.1 and got.high > 0.9
    several = clustered_share([1, 0] * 30, np.repeat(range(30), 2), unit="source").estimate
    assert several.value == 0.5 and several.low < 0.4, (
        "clusters that never differ tell nothing of their spread"
    )


def test_what_never_varies_has_a_reason_or_a_width() -> None:
    two = np.repeat([0, 1], 6)
    level = clustered_auroc([True, False] * 6, [0.5] * 12, two).estimate
    assert level.value == 0.5 and level.low < 0.3 < 0.7 < level.high
    even = two_way_clustered_mean([0.5] * 12, two, two, unit="source")
    assert even.value == 0.5 and even.low < 0.3 < 0.7 < even.high
    alike = clustered_mean([1.0, -1.0] * 6, two, interval="t")
    assert alike.value == 0 and alike.low < -1 < 1 < alike.high, (
        "the clusters' means are equal, and the values are not"
    )
    assert clustered_mean([0.3] * 12, two, interval="t").reason == "all values are equal"
    exact = ece([0.1, 0.9] * 20, [0, 1] * 20, np.arange(40) % 4)
    assert exact.value == pytest.approx(0.1) and "alike" in exact.reason


def test_a_calibration_error_of_0_has_an_upper_end() -> None:
    found = [of_ece(np.random.default_rng(seed), 12, np.arange(12) % 4) for seed in range(60)]
    nothing = [one for one in found if one.value == 0]
    assert len(nothing) > 5 and all(one.low == 0 and one.high > 0.05 for one in nothing)


def test_two_sources_tell_nothing_of_how_two_shares_go_together() -> None:
    """Of two sources every correlation is 1 or -1: taken as it is, the half of two shares had
    almost no width.
    """
    values, clusters = np.array([1, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0.0]), np.repeat([0, 1], 6)
    positive = np.arange(12) % 2 == 0
    ours, others = (
        clustered_share(values, clusters, is_counted=side, unit="source")
        for side in (positive, ~positive)
    )
    apart = difference((1, ours), (-1, others))
    assert apart.high - apart.low > max(
        part.estimate.high - part.estimate.low for part in (ours, others)
    )


def test_few_clusters_make_neither_arms_equal_nor_a_trend_sure() -> None:
    """Arms that differ in half of the rows of each of two sources, once this way and once that."""
    clusters, a = np.repeat([0, 1], 20), np.tile([1.0, 0, 0, 0], 10)
    got = equivalence(a, np.roll(a, 1), clusters=clusters)
    assert got.difference.value == 0 and not got.equivalent and got.p > 0.2
    turns, errors = np.tile([1, 2, 3, 4], 10), np.tile([0.1, 0.4, 0.3, 0.35], 10)
    assert turns_trend(list(turns), errors, clusters).p > 0.01
    both = agreement(a, np.roll(a, 2), clusters=clusters, rng=np.random.default_rng(0))
    assert both.kappa.high - both.kappa.low > 0.3


def test_graded_scores_of_few_clusters_count_at_most_as_independent_ones() -> None:
    scores, clusters = np.tile([0.1, 0.9], 5), np.repeat(range(5), 2)
    assert effective_size(scores, clusters) == effective_size(scores, np.arange(10))
