"""The matrix statistics by hand, against reference implementations, and on planted matrices."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from selfprobe.studies.matrix.advantage import (
    PERMUTATIONS,
    capability_control,
    double_centre,
    observers_permuted,
    self_advantage,
    total_bounds,
    total_of,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def hits(p: np.ndarray, items: int, generator: np.random.Generator) -> np.ndarray:
    """0/1 scores [target, observer, item] for cell probabilities p[target, observer]."""
    return (generator.random((*p.shape, items)) < p[:, :, None]).astype(float)


# ---- T


def test_t_of_two_models_by_hand() -> None:
    # A = [[.75, .25], [.5, .5]]: T = [1.25 - 2/2]/1 = .25; per item T is .5, 0, .5, 0: SE =
    # sqrt(1/12)/2
    x = np.array([[[1, 1, 1, 0], [0, 0, 0, 1]], [[1, 0, 1, 0], [1, 0, 0, 1.0]]])
    own = [x[:, :, k].trace() - x[:, :, k].sum() / 2 for k in range(4)]
    got = self_advantage(x, rng=rng())
    assert got.total.value == pytest.approx(0.25)
    assert got.se == pytest.approx(np.std(own, ddof=1) / 2)
    assert (got.total.low, got.total.high) == pytest.approx(
        scipy_stats.t.interval(0.95, 3, np.mean(own), scipy_stats.sem(own))
    )
    assert got.models == ()
    assert got.permutation.p == 0.5


def test_t_is_the_formula_the_centred_trace_the_mean_of_own_advantages_and_the_diagonal_gap() -> (
    None
):
    x = rng().random((4, 4, 30))
    a, got = x.mean(axis=2), self_advantage(x, rng=rng())
    off = a[~np.eye(4, dtype=bool)].mean()
    assert got.total.value == pytest.approx((a.trace() - a.sum() / 4) / 3)
    assert got.total.value == pytest.approx(got.centred.trace() / 3)
    assert got.total.value == pytest.approx(a.trace() / 4 - off)
    assert got.total.value == pytest.approx(np.mean([m.advantage.value for m in got.models]))


def test_capability_and_difficulty_alone_give_exactly_no_advantage() -> None:
    skill, easy = np.array([0.1, 0.2, 0.3, 0.0]), np.array([0.5, 0.2, 0.3, 0.1])
    x = (easy[:, None] + skill[None, :])[:, :, None] + np.zeros(10)
    got = self_advantage(x, rng=rng())
    assert got.total.value == pytest.approx(0) and [
        m.advantage.value for m in got.models
    ] == pytest.approx([0] * 4)
    assert got.total.low < 0 < got.total.high  # no spread between items: Wilson's width, not zero


def test_own_advantage_is_what_a_regression_on_the_other_cells_leaves() -> None:
    import statsmodels.api as sm

    a = rng().random((5, 5))
    got = self_advantage(np.stack([a, a + rng(1).normal(0, 0.01, a.shape)], axis=2), rng=rng())
    rows, columns = np.indices((5, 5)).reshape(2, -1)
    design = np.c_[
        np.ones(25), rows[:, None] == np.arange(1, 5), columns[:, None] == np.arange(1, 5)
    ].astype(float)
    off = rows != columns
    fit = sm.OLS(got.means.ravel()[off], design[off]).fit()
    residual = got.means.ravel()[~off] - fit.predict(design[~off])
    assert [m.advantage.value for m in got.models] == pytest.approx(residual)


def test_access_of_two_models_does_not_leak_into_the_others() -> None:
    p = np.full((5, 5), 0.5)
    p[1, 1] = p[3, 3] = 0.9
    got = self_advantage(hits(p, 200, rng()), list("abcde"), rng=rng())
    for m in got.models:
        planted = 0.4 if m.model in "bd" else 0.0
        assert m.advantage.low - 0.02 < planted < m.advantage.high + 0.02
    assert got.permutation.p < 0.06 and got.permutation.count == 120


def test_unscored_items_count_by_cell_and_a_fully_unscored_item_not_at_all() -> None:
    x = rng().random((3, 3, 40))
    same = self_advantage(np.concatenate([x, np.full((3, 3, 7), math.nan)], axis=2), rng=rng())
    assert same.total == self_advantage(x, rng=rng()).total
    x[0, 1, :5] = math.nan
    got = self_advantage(x, rng=rng())
    assert got.means[0, 1] == pytest.approx(x[0, 1, 5:].mean()) and got.total.n == 40


def test_standard_error_with_unscored_items_agrees_with_the_jackknife() -> None:
    x = rng().random((3, 3, 80))
    x[rng(1).random(x.shape) < 0.2] = math.nan

    def t(scores: np.ndarray) -> float:
        return float(double_centre(np.nanmean(scores, axis=2)).trace() / 2)

    left_out = np.array([t(np.delete(x, k, axis=2)) for k in range(80)])
    jackknife = math.sqrt(79 / 80 * ((left_out - left_out.mean()) ** 2).sum())
    assert self_advantage(x, rng=rng()).se == pytest.approx(jackknife, rel=0.03)


def test_a_cell_without_scores_makes_t_undefined_and_is_named() -> None:
    x = rng().random((3, 3, 10))
    x[2, 0] = math.nan
    got = self_advantage(x, ["a", "b", "c"], rng=rng())
    assert (
        math.isnan(got.total.value)
        and got.total.reason == "no score in cell (target c, observer a)"
    )
    x[1, 1] = math.nan
    assert "and 1 more" in capability_control(x, rng=rng()).reason
    one = self_advantage(rng().random((3, 3, 1)), rng=rng())
    assert (
        math.isfinite(one.total.value)
        and one.total.reason == "no interval from one item or cluster"
    )


def test_wrong_shapes_and_names_are_errors() -> None:
    with pytest.raises(ValueError, match=r"two or more models, got shape \(1, 1, 5\)"):
        self_advantage(np.zeros((1, 1, 5)), rng=rng())
    with pytest.raises(ValueError, match=r"got shape \(2, 3, 5\)"):
        capability_control(np.zeros((2, 3, 5)), rng=rng())
    with pytest.raises(ValueError, match="expected 2 different model names"):
        self_advantage(np.zeros((2, 2, 5)), ["a", "a"], rng=rng())


def test_perfect_access_has_an_interval_and_a_small_p() -> None:
    got = self_advantage(np.repeat(np.eye(4)[:, :, None], 100, axis=2), rng=rng())
    assert got.total.value == 1 and 0.9 < got.total.low < got.total.high <= 1
    assert got.permutation.p == pytest.approx(1 / 24)


def test_p_of_t_where_all_items_are_alike_is_the_one_of_its_interval() -> None:
    small = self_advantage(np.eye(4)[:, :, None] * np.full(10, 0.1), rng=rng())
    assert small.total.low < 0 < small.total.high and 0.2 < small.p < 0.5
    perfect = self_advantage(np.eye(4)[:, :, None] * np.ones(60), rng=rng())
    assert perfect.p == pytest.approx(scipy_stats.norm.sf(np.sqrt(60)))


def test_p_of_t_is_the_one_sided_t_test_of_the_items_own_t() -> None:
    x = rng().random((4, 4, 30))
    own = [x[:, :, k].trace() / 3 - x[:, :, k].sum() / 12 for k in range(30)]
    expected = scipy_stats.ttest_1samp(own, 0, alternative="greater").pvalue
    assert self_advantage(x, rng=rng()).p == pytest.approx(expected)


def test_permutation_p_cannot_be_below_one_over_m_factorial() -> None:
    x = np.repeat(np.eye(5)[:, :, None], 10, axis=2)
    assert self_advantage(x, rng=rng()).permutation.p == pytest.approx(1 / 120)


@pytest.mark.slow(5)
def test_interval_of_t_covers_the_planted_t() -> None:
    generator, covered = rng(7), 0
    for _ in range(1000):
        skill, easy = generator.uniform(0, 0.3, 3), generator.uniform(0.1, 0.4, 3)
        x = hits(skill[None, :] + easy[:, None] + 0.2 * np.eye(3), 100, generator)
        total = self_advantage(x, rng=generator).total
        covered += total.low <= 0.2 <= total.high
    assert 0.93 <= covered / 1000 <= 0.97


def test_double_centring_by_hand() -> None:
    assert double_centre([[1, 2], [3, 8]]).tolist() == [[1, -1], [-1, 1]]
    c = double_centre(rng().random((5, 5)))
    assert c.sum(axis=0) == pytest.approx(np.zeros(5)) and c.sum(axis=1) == pytest.approx(
        np.zeros(5)
    )


# ---- the permutation test


def test_the_permutation_of_three_observers_by_hand() -> None:
    # the trace of this matrix is the largest of its 6 assignments
    got = observers_permuted(np.diag([3.0, 2, 1]), rng=rng())
    assert (got.p, got.count, got.exact) == (1 / 6, 6, True)


@pytest.mark.parametrize("size", range(2, 7))
def test_the_permutation_p_is_the_share_of_all_assignments_with_at_least_this_trace(
    size: int,
) -> None:
    centred = double_centre(
        rng(size).integers(0, 3, (size, size))
    )  # whole numbers: assignments tie
    traces = [
        sum(centred[i, j] for i, j in enumerate(order)) for order in permutations(range(size))
    ]
    at_least = sum(trace >= centred.trace() - 1e-9 for trace in traces)
    got = observers_permuted(centred, rng=rng())
    assert got.count == len(traces) and got.exact and got.p == pytest.approx(at_least / len(traces))


def test_rounding_errors_break_no_ties() -> None:
    assert observers_permuted(rng().normal(0, 1e-17, (5, 5)), rng=rng()).p == 1


def test_assignments_of_many_models_are_drawn_and_the_data_count_as_one_of_them() -> None:
    got = observers_permuted(np.eye(11), rng=rng())
    assert (
        not got.exact
        and got.count == PERMUTATIONS
        and got.p == pytest.approx(1 / (PERMUTATIONS + 1))
    )


@pytest.mark.slow(5)
def test_the_permutation_p_is_uniform_without_an_effect() -> None:
    generator = rng(5)
    small = sum(
        observers_permuted(generator.normal(size=(6, 6)), rng=generator).p <= 0.05
        for _ in range(1000)
    )
    assert 0.03 <= small / 1000 <= 0.07


# ---- controls


def test_matched_advantage_is_the_planted_one_whatever_the_capability() -> None:
    skill = np.array([0.0, 0.1, 0.2, 0.4])
    x = hits(0.2 + skill[None, :] + 0.25 * np.eye(4), 2000, rng(1))
    got = capability_control(x, rng=rng(), resamples=300)
    assert got.value == pytest.approx(0.25, abs=0.02) and 0.015 < got.high - got.low < 0.03
    exact = (0.2 + skill[None, :] + 0.25 * np.eye(4))[:, :, None] + np.zeros(5)
    assert capability_control(exact, rng=rng()).value == pytest.approx(0.25)


@pytest.mark.slow(5)
def test_interval_of_the_matched_advantage_covers_the_planted_one() -> None:
    p = 0.2 + np.array([0.0, 0.1, 0.2, 0.4])[None, :] + 0.25 * np.eye(4)
    generator = rng(8)
    got = [
        capability_control(hits(p, 200, generator), rng=generator, resamples=150)
        for _ in range(200)
    ]
    assert 0.9 <= np.mean([e.low <= 0.25 <= e.high for e in got]) <= 0.98


def test_matching_weighs_the_observer_of_like_skill_most() -> None:
    # 0 and 1 are alike and so are 2 and 3, which are far better. Observers 2, 3 do worse on targets
    # 0, 1 than their skill would have them (-.3), which T takes for self access and the matched
    # comparison does not.
    a = np.full((4, 4), 0.3) + np.array([0, 0.01, 0.4, 0.41])[None, :]
    a[:2, 2:] -= 0.3
    x = a[:, :, None] + rng().normal(0, 0.001, (4, 4, 20))
    assert (
        abs(capability_control(x, rng=rng(), resamples=200).value)
        < self_advantage(x, rng=rng()).total.value
    )


def test_matched_advantage_of_three_models_by_hand() -> None:
    # Gaps in skill on the third target: 0 (of models 1, 2), .4 (1, 3), .8 (2, 3); their median .4
    # is h, so that the weights are 1, exp(-1/2), exp(-2). Differences without the gap: .1, .5 / 0,
    # -.4 / .4, .8.
    a = np.array([[1.0, 0.9, 0.1], [0.5, 0.5, 0.1], [0.2, 0.2, 0.2]])
    near, far = math.exp(-0.5), math.exp(-2)
    by_target = (
        (0.1 + near * 0.5) / (1 + near),
        far * -0.4 / (1 + far),
        (near * 0.4 + far * 0.8) / (near + far),
    )
    got = capability_control(a[:, :, None] + np.zeros(5), rng=rng())
    assert got.value == pytest.approx(sum(by_target) / 3) == pytest.approx(0.22544, abs=1e-5)


def test_two_models_cannot_be_matched() -> None:
    got = capability_control(rng().random((2, 2, 9)), rng=rng())
    assert math.isnan(got.value) and "needs three models" in got.reason


def test_a_gap_in_skill_that_no_other_observer_comes_near_leaves_a_matched_advantage() -> None:
    x = hits(np.array([[0.8] + [0.1] * 4] + [[0.3] + [0.1] * 4] * 4), 200, rng())
    assert math.isfinite(capability_control(x, rng=rng(), resamples=200).value)


def test_t_alone_is_the_one_of_the_whole() -> None:
    x = rng().random((4, 4, 30))
    assert total_of(x) == self_advantage(x, rng=rng()).total
    x[0, 1] = math.nan
    assert "no score in cell" in total_of(x).reason


def test_what_is_missing_bounds_t_by_hand() -> None:
    x = np.full((2, 2, 4), 0.5)
    x[0, 0, 0] = x[0, 1, 1] = math.nan  # one of four own scores, one of four others'
    x[1, :, 3] = math.nan  # the target's act failed: nobody could be right
    low, high = total_bounds(x)
    assert (low, high) == pytest.approx(
        (-0.125, 0.125)
    )  # T = (own - others') of two targets, halved: -+(1.5 - 2.5)/4/2
    assert total_bounds(np.full((2, 2, 3), 0.4)) == pytest.approx((0, 0))
    assert all(map(math.isnan, total_bounds(np.full((2, 2, 3), -0.4))))
