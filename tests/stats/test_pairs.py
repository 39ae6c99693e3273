"""The own cell among the pairs: by hand, against a plain rewriting, at the edges, and on drawn
matrices.
"""

import math
import time
import tracemalloc

import numpy as np
import pytest
from scipy import special

from selfprobe.stats.estimate import holm
from selfprobe.stats.pairs import STEPS, FitWeights, fit_alone, less_fit, moments, own_cells

SCALES = {
    "x": lambda g: g,
    "log": lambda g: np.exp(g - 2),
    "logit": special.expit,
    "failures": lambda g: -np.expm1(-g - 1),
}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def hits(p: np.ndarray, items: int, seed: int = 0) -> np.ndarray:
    return (rng(seed).random((*p.shape, items)) < p[:, :, None]).astype(float)


def named(x: np.ndarray, **given: bool) -> set[int]:
    return set(np.flatnonzero(holm(own_cells(x, **given).p) < 0.05).tolist())


def knower(size: int, *who: int, base: float = 0.4, own: float = 0.85) -> np.ndarray:
    p = np.full((size, size), base)
    p[list(who), list(who)] = own
    return p


# ---- by hand


def test_the_own_cell_above_the_fit_of_least_squares() -> None:
    a = rng(1).random((5, 5))
    target, observer = np.nonzero(~np.eye(5, dtype=bool))
    design = np.zeros((20, 10))
    design[np.arange(20), target] = design[np.arange(20), 5 + observer] = 1
    effects, *_ = np.linalg.lstsq(design, a[target, observer], rcond=None)
    found = own_cells(np.repeat(a[:, :, None], 50, axis=2) + rng(2).normal(0, 1e-9, (5, 5, 50)))
    assert found.advantage == pytest.approx(np.diag(a) - effects[:5] - effects[5:], abs=1e-6)


@pytest.mark.parametrize("size", [4, 5, 9])
def test_residuals_and_their_variances_are_those_of_a_table_of_all_weights(size: int) -> None:
    cells, models = size * size, np.arange(size)
    target, observer = np.nonzero(~np.eye(size, dtype=bool))
    pairs = np.arange(len(target))
    design = np.zeros((len(target), 2 * size))
    design[pairs, target] = design[pairs, size + observer] = 1
    fit = np.linalg.pinv(design)
    residual_weights = np.zeros((len(target), cells))
    residual_weights[:, target * size + observer] = np.eye(len(target)) - design @ fit
    own_weights = np.zeros((size, cells))
    own_weights[:, target * size + observer] = -(fit[:size] + fit[size:])
    own_weights[models, models * (size + 1)] = 1
    place = np.zeros((size, size), dtype=int)
    place[target, observer] = pairs
    swapped_weights = residual_weights[place[observer, target]]

    y = rng(3).normal(size=(2, size, size))
    flat = y.reshape(2, cells)
    beyond_fit = less_fit(y)
    assert beyond_fit[:, target, observer] == pytest.approx(flat @ residual_weights.T)
    assert beyond_fit[:, models, models] == pytest.approx(flat @ own_weights.T)

    weights, noise = FitWeights(size), rng(4).random((2, size, size))
    flat = noise.reshape(2, cells)
    own_of_pair = own_weights[target]
    weighted_sums_by_relation = weights.weighted_sums_by_relation
    assert weights.own_variance(noise) == pytest.approx(flat @ np.square(own_weights).T)
    assert weighted_sums_by_relation(weights.residual**2, noise) == pytest.approx(
        flat @ np.square(residual_weights).T
    )
    assert weighted_sums_by_relation(weights.residual * weights.swapped, noise) == pytest.approx(
        flat @ (residual_weights * swapped_weights).T
    )
    assert weighted_sums_by_relation(weights.own * weights.residual, noise) == pytest.approx(
        flat @ (own_of_pair * residual_weights).T
    )
    assert weighted_sums_by_relation(weights.own * weights.swapped, noise) == pytest.approx(
        flat @ (own_of_pair * swapped_weights).T
    )
    assert weights.fit_variance == pytest.approx(float(np.square(own_weights[0]).sum()) - 1)
    assert weights.residual_variance == pytest.approx(float(np.square(residual_weights[0]).sum()))
    both = own_weights[0, 1] + own_weights[0, size]
    assert weights.pair_share == pytest.approx(
        (1 + both) / (residual_weights[0, 1] + residual_weights[0, size])
    )


@pytest.mark.parametrize("items", [7, 40])
def test_the_factor_of_the_moments_is_that_of_the_covariance_of_the_means(items: int) -> None:
    x = rng(5).random((4, 4, items))
    found = moments(x[None])
    assert found.factor.shape == (1, 16, min(items, 16))
    covariance = np.cov(x.reshape(16, items)) / items
    assert found.factor[0] @ found.factor[0].T == pytest.approx(covariance)
    assert found.variance[0] == pytest.approx(np.diag(covariance))


def test_the_spread_of_pairs_is_that_of_the_residuals_beyond_noise() -> None:
    spreads = []
    for seed in range(40):
        p = 0.5 + rng(seed).normal(0, 0.06, (6, 6))
        spreads.append(own_cells(hits(p, 2000, seed)).spread)
    assert np.mean(np.square(spreads)) ** 0.5 == pytest.approx(0.06, rel=0.1)
    assert (
        np.mean([own_cells(hits(np.full((6, 6), 0.5), 2000, seed)).spread for seed in range(20)])
        < 0.01
    )


@pytest.mark.parametrize("scale", SCALES)
def test_what_is_additive_on_a_scale_is_what_skill_alone_gives(scale: str) -> None:
    g = rng(3).uniform(-0.2, 0.2, 5)[:, None] + rng(4).uniform(-0.2, 0.2, 5)
    truth = np.clip(SCALES[scale](g + (0.5 if scale == "x" else 0)), 0, 1)
    found = moments(np.repeat(truth[None, :, :, None], 20_000, axis=3))
    assert fit_alone(found).reshape(5, 5) == pytest.approx(truth, abs=1e-3)


def test_the_p_is_the_largest_step() -> None:
    found = own_cells(hits(knower(5, 2), 200))
    assert (
        tuple(found.p_by_step) == STEPS
        and (found.p == np.max([found.p_by_step[name] for name in STEPS], axis=0)).all()
    )
    fitting = [p for p in found.scales.values() if not np.isnan(p).any()]
    assert fitting and (found.p_by_step["noise"] >= np.max(fitting, axis=0)).all()


# ---- what it must not name, and what it must


def test_a_knower_stands_out_and_nobody_else() -> None:
    assert named(hits(knower(5, 1, 3), 200)) == {1, 3}
    assert named(hits(knower(30, 1, 17), 100)) == {1, 17}


@pytest.mark.parametrize("form", ["product", "logistic"])
def test_skill_and_predictability_are_no_access_on_any_scale(form: str) -> None:
    skill, easy = np.array([0.95, 0.4, 0.4, 0.3, 0.3]), np.array([0.9, 0.5, 0.4, 0.4, 0.3])
    latent = special.logit(easy)[:, None] + special.logit(skill)
    p = np.outer(easy, skill) if form == "product" else special.expit(latent)
    assert sum(bool(named(hits(p, 400, seed))) for seed in range(40)) <= 4


def test_an_expert_of_its_family_is_not_named() -> None:
    p = np.full((5, 5), 0.5)
    p[[0, 1], 0] = 0.88
    assert not any(named(hits(p, 400, seed)) for seed in range(20))


def test_twins_that_know_one_another_as_well_are_not_named() -> None:
    family = np.arange(6) // 2
    p = 0.4 + 0.3 * (family[:, None] == family)
    assert sum(bool(named(hits(p, 400, seed))) for seed in range(20)) <= 2


def test_more_items_do_not_make_access_of_pairs_that_differ() -> None:
    found = 0
    for seed in range(60):
        pairs = rng(seed).normal(0, 0.5, (5, 5))
        found += bool(named(hits(special.expit(pairs), 3000, seed)))
    assert found <= 7, "of 60: 7 or fewer come with .99 at a rate of .05"


def test_an_outsider_among_look_alikes_is_told_and_a_knower_is_none() -> None:
    p = np.full((5, 5), 0.73)
    p[4, :4] = p[:4, 4] = 0.5
    found = own_cells(hits(p, 400))
    assert found.outsider.tolist() == [False] * 4 + [True]
    p[4, 4] = 0.95
    assert not own_cells(hits(p, 400)).outsider.any(), (
        "it knows more of itself than they of one another"
    )
    assert not own_cells(hits(knower(5, 2), 400)).outsider.any()


# ---- the edges


@pytest.mark.parametrize("size", [2, 3])
def test_fewer_than_four_models_have_no_p(size: int) -> None:
    found = own_cells(hits(knower(size, 0), 100))
    assert np.isnan(found.p).all() and np.isnan(found.spread) and not found.outsider.any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("score", [0.0, 0.5, 1.0])
def test_scores_that_are_all_equal_name_nobody(score: float) -> None:
    assert not named(np.full((5, 5, 60), score))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cell", [(0, 0), (1, 2)])
@pytest.mark.parametrize("score", [0.0, 1.0])
def test_a_cell_of_all_ones_or_never_right_is_not_known_exactly(
    cell: tuple[int, int], score: float
) -> None:
    skill = np.array([0.97, 0.95, 0.9, 0.85, 0.8])
    wrong = 0
    for seed in range(30):
        x = hits(np.outer(np.full(5, 0.98), skill), 100, seed)
        x[cell] = score if cell == (0, 0) or score == 0 else 1
        wrong += bool(named(x) - ({0} if cell == (0, 0) else set()))
    assert wrong <= 4


@pytest.mark.filterwarnings("error")
def test_a_cell_below_nothing_is_none_on_the_logarithms_and_makes_nobody_a_knower() -> None:
    for seed in range(20):
        x = hits(np.full((5, 5), 0.3), 200, seed)
        x[1, 2] = -0.02
        assert not named(x) and np.isfinite(own_cells(x).p).all()


def test_missing_own_scores_are_wrong_and_a_row_keeps_the_items_that_all_its_observers_have() -> (
    None
):
    x = hits(knower(5, 0), 200)
    x[0, 0, :20] = np.nan
    worst = x.copy()
    worst[0, 0, :20] = 0
    assert own_cells(x).p == pytest.approx(own_cells(worst).p)
    x = hits(knower(5, 0), 200)
    x[3, 1, :50] = np.nan
    short = moments(x[None])
    assert (
        short.count[0].reshape(5, 5)[3].tolist() == [150] * 5
        and short.count[0].reshape(5, 5)[0].tolist() == [200] * 5
    )


@pytest.mark.filterwarnings("error")
def test_a_model_without_a_whole_row_has_no_p() -> None:
    x = hits(knower(5, 0), 40)
    x[2, 1, :20] = x[2, 3, 20:] = np.nan
    assert np.isnan(own_cells(x).p).all()


def test_graded_scores_below_nothing_and_likenesses_with_a_floor() -> None:
    def likeness(access: float, seed: int) -> np.ndarray:
        p = 0.5 + 0.1 * rng(seed).random(5)[:, None] + 0.1 * rng(seed + 1).random(5)
        p[2, 2] += access
        return np.clip(rng(seed).normal(p[:, :, None], 0.25, (5, 5, 200)), -1, 1)

    assert sum(bool(named(likeness(0, seed), floor=True)) for seed in range(30)) <= 3
    assert all(named(likeness(0.3, seed), floor=True) == {2} for seed in range(5))


def test_eleven_models_and_four_hundred_items_take_milliseconds() -> None:
    x = hits(np.full((11, 11), 0.5), 400)
    own_cells(x)
    start = time.process_time()
    for _ in range(5):
        own_cells(x)
    assert (time.process_time() - start) / 5 < 0.05  # some 3 ms


def test_the_memory_of_many_models_grows_with_their_cells_and_not_with_pairs_of_cells() -> None:
    x = hits(knower(80, 3), 20)
    tracemalloc.start()
    found = own_cells(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.isfinite(found.p).all() and found.p[3] == found.p.min()
    assert peak < 100e6, "a number for every two of the 6,400 cells would take 328 MB"


def test_what_is_no_matrix_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"expected \[target, observer, item\], got shape \(4, 3, 5\)"
    ):
        own_cells(np.zeros((4, 3, 5)))
    assert math.isnan(own_cells(np.zeros((5, 5, 1))).p[0])
