"""Shares, AUROCs and their differences: hand-worked cases, agreement with others, and simulated
coverage.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from scipy import stats as scipy_stats
from sklearn.metrics import roc_auc_score

from selfprobe.stats.clustered import (
    clustered_auroc,
    clustered_share,
    detectable_difference,
    difference,
    expected_auroc_half,
    independent_variance,
    resampling_units,
    two_way_clustered_mean,
)
from selfprobe.stats.estimate import clustered_mean


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def rated(
    generator: np.random.Generator,
    n: int,
    clusters: int,
    *,
    value: float,
    alike: float,
    nested: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, scores and clusters of normal scores; `alike` is the correlation within a cluster."""
    cluster = np.arange(n) % clusters
    positive = cluster % 2 == 0 if nested else np.arange(n) // clusters % 2 == 0
    d = math.sqrt(2) * scipy_stats.norm.ppf(value)
    shared = generator.normal(0, math.sqrt(alike), clusters)
    return (
        positive,
        d * positive + shared[cluster] + generator.normal(0, math.sqrt(1 - alike), n),
        cluster,
    )


# ---- one estimate


def test_auroc_by_hand() -> None:
    """Positives .9 and .4, negatives .6 and .1: three of four pairs are in order."""
    got = clustered_auroc(
        [True, True, False, False], [0.9, 0.4, 0.6, 0.1], ["a", "b", "a", "b"]
    ).estimate
    assert got.value == 0.75 and got.n == 2 and 0 < got.low < 0.75 < got.high < 1


def test_auroc_is_that_of_scikit_learn_and_leaves_out_rows_without_a_score() -> None:
    positive, scores, clusters = rated(rng(), 200, 10, value=0.8, alike=0.2)
    scores = np.round(scores, 1)  # ties
    assert clustered_auroc(positive, scores, clusters).estimate.value == pytest.approx(
        roc_auc_score(positive, scores)
    )
    holes = np.where(np.arange(200) % 7 == 0, np.nan, scores)
    kept = ~np.isnan(holes)
    with_holes = clustered_auroc(positive, holes, clusters).estimate
    without_holes = clustered_auroc(positive[kept], scores[kept], clusters[kept]).estimate
    # As texts: from Python 3.13 on, dataclasses that hold the same nan differ.
    assert repr(with_holes) == repr(without_holes)


def test_the_variance_of_independent_rows_is_that_of_delong() -> None:
    """With a cluster for each row Obuchowski's variance is DeLong's, but for a factor n/(n - 1)."""
    positive, scores, _ = rated(rng(), 300, 300, value=0.75, alike=0, nested=True)
    got = clustered_auroc(positive, scores, np.arange(300)).estimate
    ours, others = scores[positive], scores[~positive]
    above = (ours[:, None] > others).astype(float)
    delong = above.mean(axis=1).var(ddof=1) / len(ours) + above.mean(axis=0).var(ddof=1) / len(
        others
    )
    spread = np.diff([math.log(x / (1 - x)) for x in (got.low, got.high)])[0] / 2 / 1.96
    assert spread * got.value * (1 - got.value) == pytest.approx(math.sqrt(delong), rel=0.03)


def test_what_both_classes_share_in_a_cluster_is_taken_off_the_variance_as_by_the_jackknife() -> (
    None
):
    positive, scores, clusters = rated(rng(2), 800, 40, value=0.75, alike=0.7)
    got = clustered_auroc(positive, scores, clusters).estimate
    without = [
        roc_auc_score(positive[kept], scores[kept])
        for kept in (clusters != one for one in range(40))
    ]
    spread = (
        np.diff([math.log(x / (1 - x)) for x in (got.low, got.high)])[0]
        / 2
        / scipy_stats.t.ppf(0.975, 39)
    )
    assert spread * got.value * (1 - got.value) == pytest.approx(
        math.sqrt(39 * np.var(without)), rel=0.05
    )
    alone = clustered_auroc(positive, scores, clusters * 2 + positive).estimate
    assert got.high - got.low < 0.6 * (alone.high - alone.low)


def test_an_auroc_of_one_still_has_an_interval() -> None:
    got = clustered_auroc(
        np.arange(40) % 2 == 0, (np.arange(40) % 2 == 0).astype(float), np.arange(40) // 4
    ).estimate
    assert (got.value, got.high) == (1, 1) and 0.7 < got.low < 0.97
    back = clustered_auroc(
        np.arange(40) % 2 == 1, (np.arange(40) % 2 == 0).astype(float), np.arange(40) // 4
    ).estimate
    assert (back.value, back.low) == (0, 0) and back.high == pytest.approx(1 - got.low)


def test_what_cannot_be_estimated_says_why() -> None:
    assert (
        clustered_auroc([True, True], [1.0, 2.0], ["a", "b"]).estimate.reason == "one class alone"
    )
    one = clustered_auroc([True, False], [1.0, 2.0], ["a", "a"], unit="source").estimate
    assert one.value == 0 and math.isnan(one.low) and one.reason == "a class with one source"
    nothing = clustered_share([math.nan], ["a"], unit="source").estimate
    assert math.isnan(nothing.value) and nothing.reason == "nothing was scored"
    alone = clustered_share([1.0, 0.0], ["a", "a"], unit="source").estimate
    assert alone.value == 0.5 and alone.reason == "no interval from one source"


def test_a_share_of_clusters_of_one_size_has_the_standard_error_of_the_clustered_mean() -> None:
    clusters = rng().permutation(np.arange(390) % 30)
    values = (rng(1).random(390) < 0.4 + clusters / 100).astype(float)
    got, mean = (
        clustered_share(values, clusters, unit="source").estimate,
        clustered_mean(values, clusters),
    )
    spread = np.diff([math.log(x / (1 - x)) for x in (got.low, got.high)])[0] / 2
    t = scipy_stats.t.ppf(0.975, len(set(clusters)) - 1)
    assert got.value == mean.value and spread * got.value * (1 - got.value) == pytest.approx(
        t * mean.se
    )


def test_a_share_of_all_has_an_interval_that_ends_at_one() -> None:
    got = clustered_share(np.ones(60), np.arange(60) % 6, unit="source").estimate
    assert (got.value, got.high) == (1, 1) and 0.7 < got.low < 0.97


def test_clusters_of_unequal_size_have_the_variance_and_degrees_of_freedom_of_bell_and_mccaffrey() -> (
    None
):
    """By matrices: residuals scaled by (1 - leverage)^-1/2, and (trace B)^2 / trace B^2 under
    independent rows.
    """
    sizes = np.array([4.0, 6, 9, 20, 31])
    n, held, clusters = sizes.sum(), sizes / sizes.sum(), np.repeat(np.arange(5), sizes.astype(int))
    values = (rng(3).random(70) < 0.3 + clusters / 10).astype(float)
    got = clustered_share(values, clusters, unit="source").estimate
    adjusted = np.diag((1 - held) ** -0.5) @ np.eye(5)[:, clusters] @ (np.eye(70) - 1 / 70)
    variance = float(((adjusted @ values / n) ** 2).sum())
    moments = adjusted @ adjusted.T
    t = scipy_stats.t.ppf(0.975, np.trace(moments) ** 2 / np.trace(moments @ moments))
    spread = np.diff([math.log(x / (1 - x)) for x in (got.low, got.high)])[0] / 2
    assert spread * got.value * (1 - got.value) == pytest.approx(t * math.sqrt(variance))


@pytest.mark.parametrize(("hits", "rows"), [(8, 8), (0, 8), (7, 8), (4, 8), (15, 16)])
def test_a_share_of_few_clusters_of_one_row_has_the_exact_interval(hits: int, rows: int) -> None:
    got = clustered_share(np.arange(rows) < hits, np.arange(rows), unit="conversation").estimate
    exact = scipy_stats.binomtest(hits, rows).proportion_ci(method="exact")
    assert (got.value, got.low, got.high) == pytest.approx((hits / rows, exact.low, exact.high))


def test_a_second_row_in_one_of_many_clusters_moves_a_share_of_all_a_little() -> None:
    alone = clustered_share(np.ones(8), np.arange(8), unit="conversation").estimate
    one_more = clustered_share(np.ones(9), [*range(8), 0], unit="conversation").estimate
    assert 0.63 < alone.low < 0.64 and one_more.low == pytest.approx(alone.low, abs=0.03)


def test_rows_that_are_all_alike_in_their_cluster_count_as_one() -> None:
    """Four clusters of ten rows, each of one mind: what is known of the share is what four rows
    tell.
    """
    got = clustered_share(
        np.repeat([1, 1, 1, 0], 10), np.repeat(range(4), 10), unit="source"
    ).estimate
    exact = scipy_stats.binomtest(3, 4).proportion_ci(method="exact")
    assert (got.low, got.high) == pytest.approx((exact.low, exact.high))


def test_hanley_and_mcneil_by_simulation() -> None:
    drawn = []
    for seed in range(400):
        positive, scores, _ = rated(rng(seed), 80, 80, value=0.85, alike=0, nested=True)
        drawn.append(roc_auc_score(positive, scores))
    assert np.var(drawn) == pytest.approx(independent_variance(0.85, 40, 40), rel=0.2)


# ---- differences


def test_a_difference_from_itself_is_none_and_of_what_never_varied_is_uncertain() -> None:
    positive, scores, clusters = rated(rng(), 120, 12, value=0.8, alike=0.2)
    same = clustered_auroc(positive, scores, clusters)
    got = difference((1, same), (-1, same))
    assert got.value == 0 and got.high < (same.estimate.high - same.estimate.low) / 2, (
        "lopsided limits leave some"
    )
    perfect = clustered_auroc(positive, positive.astype(float), clusters)
    apart = difference((1, perfect), (-1, same))
    assert apart.low < apart.value < apart.high <= 1 - same.estimate.low


def test_a_paired_difference_is_narrower_than_one_of_strangers() -> None:
    positive, scores, clusters = rated(rng(), 400, 20, value=0.8, alike=0.3)
    close = scores + rng(2).normal(0, 0.3, 400)
    pair = difference(
        (1, clustered_auroc(positive, scores, clusters)),
        (-1, clustered_auroc(positive, close, clusters)),
    )
    apart = clustered_auroc(positive, close, clusters)
    shuffled = replace(apart, errors=rng(3).permutation(apart.errors))
    strangers = difference((1, clustered_auroc(positive, scores, clusters)), (-1, shuffled))
    assert pair.high - pair.low < 0.7 * (strangers.high - strangers.low)


def test_a_difference_of_independent_shares_is_newcombes() -> None:
    """MOVER without correlation: the distances of each share to its own limits, squared and added."""
    first, second = (np.arange(50) < 30).astype(float), (np.arange(50) < 20).astype(float)
    values, where = np.concatenate([first, second]), np.arange(100) < 50
    a, b = (
        clustered_share(values, np.arange(100), is_counted=side, unit="row")
        for side in (where, ~where)
    )
    got = difference((1, a), (-1, b))
    low = math.hypot(a.estimate.value - a.estimate.low, b.estimate.high - b.estimate.value)
    assert got.value == pytest.approx(0.2) and got.value - got.low == pytest.approx(low, rel=1e-6)


def test_a_difference_says_which_part_is_missing() -> None:
    positive, scores, clusters = rated(rng(), 40, 4, value=0.8, alike=0)
    missing = clustered_auroc(positive, np.full(40, np.nan), clusters)
    got = difference((1, clustered_auroc(positive, scores, clusters)), (-1, missing))
    assert math.isnan(got.value) and got.reason == "no row of a class is rated"


# ---- what is resampled


def test_sources_are_clusters_where_each_label_has_several() -> None:
    names, unit = resampling_units(["a", "a", "b", "b"], ["1", "2", "3", "4"], ["x", "y", "x", "y"])
    assert list(names) == ["a", "a", "b", "b"] and unit == "source"


def test_a_source_that_stands_alone_is_taken_apart_into_conversations() -> None:
    names, unit = resampling_units(["f"] * 3, ["1", "2", "2"], ["x"] * 3)
    assert len(set(names)) == 2 and unit == "conversation"
    names, unit = resampling_units(
        ["mine", "mine", "r1", "r2"], list("1234"), ["yours", "yours", "other", "other"]
    )
    assert (
        len(set(names)) == 4
        and list(names[2:]) == ["r1", "r2"]
        and unit == "source or conversation"
    )


# ---- coverage; the whole table is in docs/statistics.md


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(("value", "clusters"), [(0.5, 8), (0.9, 8), (0.97, 4), (0.97, 20)])
def test_auroc_intervals_cover(value: float, clusters: int, nested: bool) -> None:
    hits = []
    for seed in range(300):
        positive, scores, cluster = rated(
            rng(seed), 120, clusters, value=value, alike=0.15, nested=nested
        )
        got = clustered_auroc(positive, scores, cluster).estimate
        hits.append(got.low <= value <= got.high)
    assert np.mean(hits) > 0.91


@pytest.mark.parametrize(("value", "clusters"), [(0.5, 4), (0.95, 8), (0.99, 20)])
def test_share_intervals_cover(value: float, clusters: int) -> None:
    hits = []
    for seed in range(300):
        generator, cluster = rng(seed), np.arange(120) % clusters
        shared = generator.normal(0, math.sqrt(0.15), clusters)
        latent = (
            scipy_stats.norm.ppf(value)
            + shared[cluster]
            + generator.normal(0, math.sqrt(0.85), 120)
        )
        got = clustered_share((latent > 0).astype(float), cluster, unit="source").estimate
        hits.append(got.low <= value <= got.high)
    assert np.mean(hits) > 0.91


@pytest.mark.parametrize("alike", [0.0, 0.4])
@pytest.mark.parametrize(
    "sizes", [[1] * 8, [3, 5, 12, 40], [5, 5, 5, 105], [1] * 10 + [5] * 8 + [30] * 2]
)
def test_share_intervals_cover_where_clusters_are_few_and_of_unequal_size(
    sizes: list[int], alike: float
) -> None:
    clusters, hits = np.repeat(np.arange(len(sizes)), sizes), []
    for seed in range(300):
        generator = rng(seed)
        shared = generator.normal(0, math.sqrt(alike), len(sizes))
        latent = (
            scipy_stats.norm.ppf(0.8)
            + shared[clusters]
            + generator.normal(0, math.sqrt(1 - alike), sum(sizes))
        )
        got = clustered_share((latent > 0).astype(float), clusters, unit="source").estimate
        hits.append(got.low <= 0.8 <= got.high)
    assert np.mean(hits) > 0.92


def test_pairs_of_clusters_of_one_each_have_the_variance_of_independent_pairs() -> None:
    rng = np.random.default_rng(0)
    values = (rng.random(400) < 0.4).astype(float)
    found = two_way_clustered_mean(values, np.arange(400), np.arange(400), unit="prompt")
    alone = clustered_share(values, np.arange(400), unit="prompt").estimate
    assert (found.value, found.low, found.high) == pytest.approx(
        (alone.value, alone.low, alone.high), abs=1e-9
    )


def test_what_either_side_shares_widens_the_interval() -> None:
    rng = np.random.default_rng(1)
    ours, theirs = np.repeat(np.arange(20), 20), np.tile(np.arange(20), 20)
    values = (
        rng.random(400) < special.expit(rng.normal(0, 2, 20)[ours] + rng.normal(0, 2, 20)[theirs])
    ).astype(float)
    pairs, one, both = (
        two_way_clustered_mean(values, a, b, unit="prompt")
        for a, b in ((np.arange(400), np.arange(400)), (ours, np.arange(400)), (ours, theirs))
    )
    assert pairs.high - pairs.low < one.high - one.low < both.high - both.low and both.n == 20


def test_differences_lie_in_the_middle_of_their_interval_and_one_cluster_has_none() -> None:
    found = two_way_clustered_mean(
        [1, -1, 0, 0], [0, 1, 2, 3], [0, 1, 2, 3], unit="prompt", signed=True
    )
    assert found.value == 0 and found.low == pytest.approx(-found.high)
    assert math.isnan(two_way_clustered_mean([1, 0], [0, 0], [0, 1], unit="prompt").low)
    assert (
        two_way_clustered_mean([math.nan], [0], [0], unit="prompt").reason == "nothing was scored"
    )


def test_intervals_of_crossed_pairs_hold_the_win_rate() -> None:
    rng, held = np.random.default_rng(2), 0
    truth = float(special.expit(rng.normal(-0.5, 2**0.5, 400_000)).mean())
    for _ in range(500):
        ours, theirs = (
            np.repeat(np.arange(40), 4),
            (np.arange(40)[:, None] + np.arange(4)).ravel() % 40,
        )
        odds = -0.5 + rng.normal(0, 1, 40)[ours] - rng.normal(0, 1, 40)[theirs]
        found = two_way_clustered_mean(
            rng.random(160) < special.expit(odds), ours, theirs, unit="prompt"
        )
        held += found.low <= truth <= found.high
    assert 0.93 <= held / 500 <= 0.98


@pytest.mark.parametrize("cluster_count", [2, 4, 8, 40])
def test_the_width_that_a_plan_promises_is_that_of_the_interval(cluster_count: int) -> None:
    generator, rows = rng(), np.arange(40)
    positive, clusters = rows % 2 == 0, rows // (40 // cluster_count)
    halves = []
    for _ in range(200):
        scores = generator.normal(size=40) + 0.7416 * positive  # an AUROC of .70
        estimate = clustered_auroc(positive, scores, clusters).estimate
        halves.append((estimate.high - estimate.low) / 2)
    assert expected_auroc_half(0.7, positive, clusters) == pytest.approx(np.mean(halves), rel=0.1)


def test_a_class_of_one_cluster_promises_nothing() -> None:
    assert math.isnan(expected_auroc_half(0.7, np.arange(10) < 5, np.repeat([0, 1], 5)))
    assert math.isnan(detectable_difference(["a", "a"], ["b", "c"]))


def test_the_difference_that_a_plan_promises_is_seen_in_four_of_five_draws() -> None:
    generator, sources = rng(), np.arange(60) // 6
    least = detectable_difference(sources, sources)
    seen = 0
    for _ in range(300):
        sides = [generator.random(60) < share for share in (0.5 + least / 2, 0.5 - least / 2)]
        of_side = np.repeat([True, False], 60)
        values, clusters = np.concatenate(sides), np.concatenate([sources, sources + 10])
        parts = [
            clustered_share(values, clusters, is_counted=where, unit="source")
            for where in (of_side, ~of_side)
        ]
        seen += difference((1, parts[0]), (-1, parts[1])).low > 0
    assert 0.74 < seen / 300 < 0.9
