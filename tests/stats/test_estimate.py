"""Hand-worked cases, agreement with SciPy / statsmodels, and simulated coverage of
selfprobe.stats.estimate.
"""

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.spatial.distance import jensenshannon

from selfprobe.stats.estimate import (
    bootstrap,
    clustered_mean,
    holm,
    js,
    jsd,
    kl,
    mode_baseline,
    skill,
    smoothed,
    wilson,
    worst_case,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def mean(values: np.ndarray) -> float:
    return float(values.mean())


def correlated_hits(
    generator: np.random.Generator, p: float, questions: int, keys: int
) -> np.ndarray:
    """0/1 hits [questions * keys] whose probability varies between questions: intra-question
    correlation .3.
    """
    q = generator.beta(p * 7 / 3, (1 - p) * 7 / 3, questions)
    return (generator.random(questions * keys) < np.repeat(q, keys)).astype(float)


# ---- bootstrap


def test_bootstrap_of_a_mean_agrees_with_the_t_interval() -> None:
    values = rng().normal(3, 2, 400)
    got = bootstrap(mean, values, clusters=np.arange(400), rng=rng(1), resamples=4000)
    low, high = scipy_stats.t.interval(0.95, 399, values.mean(), scipy_stats.sem(values))
    assert got.value == values.mean() and got.n == 400
    assert (got.low, got.high) == pytest.approx((low, high), abs=0.02)


def test_bootstrap_of_a_mean_agrees_with_scipy() -> None:
    values = rng().exponential(size=60)
    got = bootstrap(mean, values, clusters=np.arange(60), rng=rng(1), resamples=4000)
    theirs = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile", rng=rng(2)
    )
    interval = theirs.confidence_interval
    widened = scipy_stats.t.ppf(0.975, 59) * math.sqrt(60 / 59) / scipy_stats.norm.ppf(0.975)
    assert (got.high - got.low) == pytest.approx((interval.high - interval.low) * widened, rel=0.05)


def test_bootstrap_of_few_clusters_is_widened_to_the_t_interval() -> None:
    """Resampled means spread by SD·sqrt((n - 1)/n), normal quantiles by less than t's: both are
    made up for.
    """
    values, drawn = np.array([0.0, 1, 2, 4, 8]), []

    def noted(rows: np.ndarray) -> float:
        drawn.append(float(rows.mean()))
        return drawn[-1]

    got = bootstrap(noted, values, clusters=np.arange(5), rng=rng(), resamples=1000)
    tail = scipy_stats.norm.cdf(math.sqrt(5 / 4) * scipy_stats.t.ppf(0.025, 4))
    assert tail == pytest.approx(0.00095, abs=1e-5)
    assert (got.low, got.high) == pytest.approx(
        tuple(np.quantile(drawn[1:], [tail, 1 - tail], method="weibull"))
    )
    even = rng().normal(size=12)  # where the draws are near normal, the interval is that of t
    wide = bootstrap(mean, even, clusters=np.arange(12), rng=rng(), resamples=20_000)
    assert wide.high - wide.low == pytest.approx(
        2 * scipy_stats.t.ppf(0.975, 11) * scipy_stats.sem(even), rel=0.02
    )


def test_bootstrap_draws_whole_clusters_with_all_their_rows() -> None:
    labels = np.array([*"babcab", *"defg"])
    values = np.array([2.0, 1, 2, 3, 1, 2, 4, 5, 6, 7])
    seen: list[np.ndarray] = []

    def statistic(rows: np.ndarray, names: np.ndarray) -> float:
        assert (rows == [1 + "abcdefg".index(name) for name in names]).all()  # rows stay together
        seen.append(rows)
        return float(rows.mean())

    bootstrap(statistic, values, labels, clusters=labels, rng=rng(), resamples=200)
    for rows in seen[1:]:
        counts = [np.count_nonzero(rows == v) for v in range(1, 8)]
        assert counts[0] % 2 == 0 and counts[1] % 3 == 0
        assert (
            counts[0] // 2 + counts[1] // 3 + sum(counts[2:]) == 7
        )  # seven clusters drawn of seven


def test_bootstrap_widens_with_correlation_within_clusters() -> None:
    values = np.repeat(rng().normal(size=50), 10)
    by_cluster = bootstrap(mean, values, clusters=np.repeat(np.arange(50), 10), rng=rng(1))
    by_row = bootstrap(mean, values, clusters=np.arange(500), rng=rng(1))
    ratio = (by_cluster.high - by_cluster.low) / (by_row.high - by_row.low)
    assert ratio == pytest.approx(math.sqrt(10), rel=0.15)


def test_bootstrap_counts_the_resamples_where_the_statistic_is_undefined() -> None:
    def ratio(values: np.ndarray) -> float:
        return float(values.mean() / values.max()) if values.max() else math.nan

    got = bootstrap(ratio, [0, 0, 0, 1.0, 2.0], clusters=range(5), rng=rng(), resamples=1000)
    assert "of 1000 resamples undefined, left out" in got.reason
    assert got.low < got.value < got.high


def test_bootstrap_that_learns_nothing_has_no_interval() -> None:
    alike = bootstrap(mean, np.ones(9), clusters=np.arange(9), rng=rng())
    assert (
        alike.value == 1
        and math.isnan(alike.low)
        and alike.reason == "every resample gives the same value"
    )
    one = bootstrap(mean, np.arange(3), clusters=["a"] * 3, rng=rng(), unit="question")
    assert one.value == 1 and math.isnan(one.high) and one.reason == "no interval from one question"
    none = bootstrap(mean, [], clusters=[], rng=rng())
    assert math.isnan(none.value) and none.reason == "no data"
    nan = bootstrap(lambda _: math.nan, [1.0, 2], clusters=[1, 2], rng=rng())
    assert math.isnan(nan.value) and nan.reason == "the statistic is undefined for these data"


def test_bootstrap_rejects_arrays_without_a_label_for_each_row() -> None:
    with pytest.raises(
        ValueError, match=r"one row for each of \(3,\) cluster labels, got \[\(2,\)\]"
    ):
        bootstrap(mean, [1.0, 2.0], clusters=[1, 2, 3], rng=rng())
    with pytest.raises(ValueError, match="resamples >= 100"):
        bootstrap(mean, [1.0, 2.0], clusters=[1, 2], rng=rng(), resamples=10)


# ---- clustered mean


def test_clustered_mean_has_the_standard_error_of_statsmodels() -> None:
    import statsmodels.api as sm

    generator = rng()
    clusters = generator.permutation(np.repeat(np.arange(40), 4))  # of one size
    values = generator.normal(size=160) + clusters / 20
    values[clusters == 7] = math.nan
    kept = ~np.isnan(values)
    fit = sm.OLS(values[kept], np.ones(kept.sum())).fit(
        cov_type="cluster", cov_kwds={"groups": clusters[kept]}, use_t=True
    )
    got = clustered_mean(values, clusters)
    assert got.value == pytest.approx(fit.params[0])
    assert (got.low, got.high) == pytest.approx(tuple(fit.conf_int()[0]))
    assert got.n == len(np.unique(clusters[kept]))


def test_clustered_mean_by_hand() -> None:
    # means of 2 clusters: 1 and 4; residual sums -3, 3; SE = sqrt(2/1 * 18)/4 = 1.5; t(1) = 12.706
    got = clustered_mean([0, 2, 3, 5], ["a", "a", "b", "b"])
    assert (got.value, got.low, got.high) == pytest.approx(
        (2.5, 2.5 - 19.0593, 2.5 + 19.0593), abs=1e-3
    )


def test_wilson_agrees_with_scipy() -> None:
    theirs = scipy_stats.binomtest(27, 40).proportion_ci(method="wilson")
    assert wilson(27 / 40, 40) == pytest.approx((theirs.low, theirs.high))


def test_independent_hits_get_almost_the_plain_wilson_interval() -> None:
    hits = np.r_[np.ones(150), np.zeros(50)]
    got = clustered_mean(hits, np.arange(200))
    theirs = scipy_stats.binomtest(150, 200).proportion_ci(method="wilson")
    assert (got.low, got.high) == pytest.approx((theirs.low, theirs.high), abs=0.002)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_all_right_or_all_wrong_still_has_a_width_by_the_number_of_clusters(value: float) -> None:
    got = clustered_mean(np.full(600, value), np.repeat(np.arange(200), 3))
    assert got.value == value and got.high - got.low == pytest.approx(0.0191, abs=0.0003)
    assert 0 <= got.low <= got.high <= 1


def test_repeating_each_row_changes_nothing() -> None:
    hits = correlated_hits(rng(), 0.3, 50, 1)
    once, thrice = (
        clustered_mean(hits, np.arange(50)),
        clustered_mean(np.repeat(hits, 3), np.repeat(np.arange(50), 3)),
    )
    assert (once.low, once.high, once.n) == pytest.approx((thrice.low, thrice.high, thrice.n))


def test_unscored_values_are_left_out_and_undefined_means_have_a_reason() -> None:
    got = clustered_mean([1, math.nan, 0, math.nan], ["a", "a", "b", "c"])
    assert (got.value, got.n) == (0.5, 2)
    assert clustered_mean([math.nan], ["a"]).reason == "nothing was scored"
    assert math.isnan(clustered_mean([], []).value)
    assert (
        clustered_mean([1.0, 0.0], ["a", "a"], unit="question").reason
        == "no interval from one question"
    )
    alike = clustered_mean([7.0, 7.0], ["a", "b"])
    assert math.isnan(alike.low) and alike.reason == "all values are equal"


def test_clustered_mean_rejects_bad_input() -> None:
    with pytest.raises(ValueError, match=r"got \(1,\) for \(2,\)"):
        clustered_mean([1, 2], ["a"])
    with pytest.raises(ValueError, match="finite"):
        clustered_mean([1, math.inf], ["a", "b"])
    with pytest.raises(ValueError, match=r"expected values in \[0, 1\] for wilson, got -1 to 1"):
        clustered_mean([-1, 1], ["a", "b"], interval="wilson")


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_interval_covers_the_planted_accuracy(p: float) -> None:
    generator, labels = rng(int(p * 10)), np.repeat(np.arange(200), 3)
    estimates = [clustered_mean(correlated_hits(generator, p, 200, 3), labels) for _ in range(1000)]
    assert 0.93 <= np.mean([e.low <= p <= e.high for e in estimates]) <= 0.97


@pytest.mark.slow(2)
def test_bootstrap_interval_covers_the_truth() -> None:
    generator, labels = rng(4), np.repeat(np.arange(40), 3)
    covered = 0
    for _ in range(500):
        values = np.repeat(generator.normal(1, 2, size=40), 3) + generator.normal(size=120)
        got = bootstrap(mean, values, clusters=labels, rng=generator, resamples=200)
        covered += got.low <= 1 <= got.high
    assert 0.925 <= covered / 500 <= 0.975


# ---- baselines


def test_mode_baseline_leaves_the_item_itself_out() -> None:
    assert mode_baseline(["the", "the", "the", "a"]).tolist() == [1, 1, 1, 0]
    assert mode_baseline(["c", "b", "a"]).tolist() == [
        0,
        0,
        0,
    ]  # what no other item has cannot be guessed


def test_mode_baseline_shares_a_tie_also_one_that_only_leaving_the_item_out_breaks() -> None:
    assert mode_baseline(["a", "a", "b", "b"]).tolist() == [0.5] * 4
    assert mode_baseline(list("aabc")).tolist() == pytest.approx(
        [1 / 3, 1 / 3, 0, 0]
    )  # without one "a": a, b, c
    assert (
        mode_baseline(list("aabbc"), [1, 1, 2, 2, 3]).tolist() == [0] * 5
    )  # each is of one item alone


@pytest.mark.parametrize("words", [2, 10])
def test_mode_baseline_is_what_a_guess_reaches_where_truths_are_equally_frequent(
    words: int,
) -> None:
    """Leave-one-out alone names another word than the item's every time, and gets 0."""
    truths = np.repeat(np.arange(words), 10)
    assert mode_baseline(rng().permutation(truths)).mean() == pytest.approx(1 / words)


def test_mode_baseline_is_not_below_a_guess_and_nears_it_with_more_items() -> None:
    random, frequencies = rng(), np.full(10, 0.1)
    found = {
        n: np.mean([mode_baseline(random.choice(10, n, p=frequencies)).mean() for _ in range(200)])
        for n in (20, 500)
    }
    assert 0.1 <= found[500] <= 0.12 and found[500] < found[20] < 0.2


def test_mode_baseline_leaves_all_rows_of_an_item_out() -> None:
    items = [1, 1, 2, 2, 3]
    assert mode_baseline(["x", "x", "x", "x", "z"], items).tolist() == [1, 1, 1, 1, 0]
    assert np.isnan(mode_baseline(["x", "x"], [1, 1])).all() and mode_baseline([]).size == 0
    with pytest.raises(ValueError, match="one cluster label for each truth"):
        mode_baseline(["x", "y"], [1])


def test_mode_baseline_with_a_rule_agrees_with_equality() -> None:
    truths = rng().integers(0, 6, 80).tolist()
    found = mode_baseline(truths, right=lambda said, truth: bool(said == truth))
    assert found.tolist() == mode_baseline(truths).tolist()
    assert mode_baseline(["", ""], right=lambda said, truth: False).tolist() == [0, 0]


def test_mode_baseline_agrees_with_a_plain_count() -> None:
    truths = rng().integers(0, 6, 80).tolist()
    expected = []
    for i, truth in enumerate(truths):
        others = truths[:i] + truths[i + 1 :]
        most = max(map(others.count, others))
        tied = {one for one in others if others.count(one) + (one == truth) >= most}
        expected.append((truth in tied) / len(tied))
    assert mode_baseline(truths).tolist() == pytest.approx(expected)


def test_the_bootstrap_of_means_is_the_bootstrap() -> None:
    random = rng()
    items = np.repeat(np.arange(30), random.integers(1, 6, 30))
    first, second = (random.normal(k, 1, len(items)) + np.arange(30)[items] / 20 for k in (1, 2))
    of_means = partial(bootstrap, of_means=True)
    means = of_means(lambda a, b: a / b, first, second, clusters=items, rng=rng(), resamples=20_000)
    rows = bootstrap(
        lambda a, b: a.mean() / b.mean(), first, second, clusters=items, rng=rng(), resamples=20_000
    )
    assert means.value == pytest.approx(rows.value)
    width = rows.high - rows.low
    assert (means.low, means.high) == pytest.approx((rows.low, rows.high), abs=0.03 * width)
    assert (means.n, means.unit) == (rows.n, rows.unit)
    for none in (of_means(lambda a: a, [], clusters=[], rng=rng()), skill([1], [0], [1])):
        assert math.isnan(none.low) and none.reason
    with pytest.raises(ValueError, match="one row for each"):
        of_means(lambda a: a, [1, 2], clusters=[1], rng=rng())


def test_skill_and_worst_case_by_hand() -> None:
    items = range(5)
    assert skill([1, 1, 1, 0, 0], [0, 0, 0, 0, 1], items).value == pytest.approx(0.5)
    assert skill([0, 0, 0, 0, 0.5], [0, 0, 0, 0, 1], items).value == pytest.approx(-0.125)
    assert math.isnan(skill([1, 1], [1, 1], [0, 1]).value)
    assert worst_case([1, 0, 1], 2) == pytest.approx((2 / 5, 4 / 5))
    assert worst_case([1, 0], 0) == (0.5, 0.5)
    assert all(map(math.isnan, worst_case([], 0)))
    with pytest.raises(ValueError, match=r"scored values in \[0, 1\]"):
        worst_case([1, math.nan], 1)


# ---- divergences


def test_smoothing_by_hand() -> None:
    assert smoothed([0, 1, 0.5], 10).tolist() == pytest.approx([0.5 / 11, 10.5 / 11, 0.5])
    with pytest.raises(ValueError, match="at least 1 rollout"):
        smoothed(0.5, 0)
    with pytest.raises(ValueError, match=r"p must hold probabilities in \[0, 1\]"):
        smoothed(1.5, 10)


def test_kl_by_hand_and_with_scipy() -> None:
    assert kl(0.5, 0.25) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert (
        kl(0.3, 0.3) == 0
        and kl(0.0, 0.0) == 0
        and kl(0.5, 0.0) == math.inf
        and np.isnan(kl(math.nan, 0.5))
    )
    p, q = rng().random(20), rng(1).random(20)
    assert kl(p, q) == pytest.approx(
        [scipy_stats.entropy([a, 1 - a], [b, 1 - b]) for a, b in zip(p, q, strict=True)]
    )


def test_js_is_symmetric_bounded_and_agrees_with_scipy() -> None:
    p, q = rng().random(20), rng(1).random(20)
    theirs = [jensenshannon([a, 1 - a], [b, 1 - b]) ** 2 for a, b in zip(p, q, strict=True)]
    assert js(p, q) == pytest.approx(theirs) and js(p, q) == pytest.approx(js(q, p))
    assert js(0.0, 1.0) == pytest.approx(math.log(2))


def test_jsd_of_three_judges_by_hand() -> None:
    # (1,0), (0,1), (.5,.5): mixture (.5,.5); KLs ln2, ln2, 0
    assert jsd([[1, 0], [0, 1], [0.5, 0.5]]) == pytest.approx(2 / 3 * math.log(2))
    assert jsd([[0.2, 0.8]] * 3) == pytest.approx(0)
    p, q = rng().random(9), rng(1).random(9)
    pairs = np.stack(
        [np.stack([p, 1 - p], -1), np.stack([q, 1 - q], -1)], axis=1
    )  # [dilemma, judge, option]
    assert jsd(pairs) == pytest.approx(js(p, q))
    with pytest.raises(ValueError, match="summing to 1"):
        jsd([[0.5, 0.4], [0.5, 0.5]])
    with pytest.raises(ValueError, match="judge, option"):
        jsd([0.5, 0.5])


# ---- Holm


def test_holm_by_hand_with_statsmodels_and_with_an_undefined_test() -> None:
    from statsmodels.stats.multitest import multipletests

    assert holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])
    p = rng().random(12) ** 3
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    got = holm([0.02, math.nan, 0.03])
    assert got[[0, 2]].tolist() == pytest.approx([0.04, 0.04]) and math.isnan(got[1])
    assert holm([]).size == 0


def test_a_difference_of_scores_stays_within_one() -> None:
    values = np.array([1.0] * 9 + [0.0])
    t, bounded = (clustered_mean(values, range(10), interval=kind) for kind in ("t", "difference"))
    assert t.high > 1 and -1 <= bounded.low < bounded.value < bounded.high <= 1
    assert (bounded.value, bounded.se) == (t.value, t.se)
    same = clustered_mean(np.ones(10), range(10), interval="difference")
    assert same.high == pytest.approx(1) and 0 < same.low < 1, (
        "all alike, and ten items are still few"
    )
    none = clustered_mean(np.zeros(40), range(40), interval="difference")
    assert none.value == 0 and -0.3 < none.low < 0 < none.high < 0.3
    with pytest.raises(ValueError, match=r"expected differences of scores in \[0, 1\], got 1 to 3"):
        clustered_mean([1, 3], ["a", "b"], interval="difference")


def test_a_difference_is_wide_as_the_t_interval_where_neither_end_is_near() -> None:
    values = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], 400, p=[0.1, 0.5, 0.4])
    t, bounded = (clustered_mean(values, range(400), interval=kind) for kind in ("t", "difference"))
    assert (bounded.low, bounded.high) == pytest.approx((t.low, t.high), abs=0.01)


def test_a_skill_over_a_baseline_that_varies_needs_five_clusters_for_an_interval() -> None:
    """Two items said nothing of each other: the bootstrap of both gave [.60, .67]."""
    two = skill([1, 1, 1, 0, 1, 1], [0, 1, 0, 0, 0, 1], [0, 0, 0, 1, 1, 1])
    assert two.value == pytest.approx(0.75) and math.isnan(two.low)
    assert two.reason == "the baseline varies too much for an interval from 2 items"
    many = skill([1, 0] * 30, [1, 0, 0] * 20, np.repeat(range(20), 3))
    assert many.low < many.value < many.high < 1
    constant = skill([1, 1, 0], [0.5, 0.5, 0.5], [0, 1, 2])
    assert not math.isnan(constant.low), "one number leaves the score's own interval"


def test_a_skill_where_all_is_right_has_an_interval_that_ends_at_one() -> None:
    found = skill(np.ones(12), [1, 0] * 6, range(12))
    assert found.value == found.high == pytest.approx(1) and 0 < found.low < 1


@pytest.mark.parametrize(("clusters", "knows"), [(5, 0.5), (10, 0.9), (30, 0.2), (30, 0.97)])
def test_the_interval_of_a_skill_over_the_mode_covers_the_planted_one(
    clusters: int, knows: float
) -> None:
    random, common = np.random.default_rng(0), 0.4

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        truth = np.where(random.random((n, 3)) < common, 0, random.integers(1, 20, (n, 3)))
        said = np.where(
            random.random((n, 3)) < np.clip(knows + random.random((n, 1)) / 2 - 0.25, 0, 1),
            truth,
            0,
        )
        return truth, said == truth

    planted = (drawn(40_000)[1].mean() - common) / (1 - common)
    covered = []
    for _ in range(300):
        truth, right = drawn(clusters)
        hits = np.stack([mode_baseline(column) for column in truth.T], axis=1)
        found = skill(right.ravel() * 1.0, hits.ravel(), np.repeat(range(clusters), 3))
        covered.append(found.low <= planted <= found.high)
    assert np.mean(covered) > 0.92


@pytest.mark.parametrize(("items", "knows"), [(10, 0.8), (20, 0.95), (50, 0.95), (50, 0.5)])
def test_the_interval_of_an_item_specific_score_covers_the_planted_one(
    items: int, knows: float
) -> None:
    """Score minus habit, both of the same draws: near 1 the t interval covers .78 and passes 1."""
    random, common = np.random.default_rng(0), 0.25

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        truth = np.where(random.random(n) < common, 0, random.integers(1, 20, n))
        return truth, np.where(random.random(n) < knows, truth, 0)

    truth, said = drawn(400_000)
    habit = sum((said == word).mean() * (truth == word).mean() for word in range(20))
    planted, covered = (said == truth).mean() - habit, []
    for _ in range(300):
        truth, said = drawn(items)
        grades = (said[:, None] == truth) * (1 - np.eye(items)) / (items - 1)
        values = (said == truth) - grades.sum(0) - grades.sum(1) + grades.sum() / items
        found = clustered_mean(values, range(items), interval="difference")
        covered.append(found.low <= planted <= found.high)
        assert found.low >= -1 and found.high <= 1
    assert np.mean(covered) > 0.92


@pytest.mark.parametrize("items", [10, 50])
def test_the_interval_of_a_skill_far_below_the_baseline_covers_the_planted_one(items: int) -> None:
    """Right in .05, and the commonest answer in .5: as if what varies together lay in [0, 1], it
    covers .65.
    """
    random, covered = np.random.default_rng(0), []
    for _ in range(300):
        right, mode = random.random(items) < 0.05, (random.random(items) < 0.5) * 1.0
        if 0 < mode.mean() < 1:
            found = skill(right * 1.0, mode, range(items))
            covered.append(found.low <= (0.05 - 0.5) / (1 - 0.5) <= found.high)
    assert np.mean(covered) > 0.91
