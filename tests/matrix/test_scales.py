"""Contrasts on every scale, and crossing."""

import math
import time

import numpy as np
import pytest

from selfprobe.matrix.scales import SCALES, beyond_skill, contrasts, on_scale, resampled


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def hits(p: np.ndarray, items: int, seed: int = 0) -> np.ndarray:
    return (rng(seed).random((*p.shape, items)) < p[:, :, None]).astype(float)


def test_a_contrast_by_hand() -> None:
    # model 0 on itself .9, rival 1 on it .4; on the one other target they have .5 and .3: (.9 - .4) - (.5 - .3) = .3
    a = np.array([[0.9, 0.4, 0.2], [0.1, 0.6, 0.2], [0.5, 0.3, 0.7]])
    assert contrasts(a[None])[0, 0, 1] == pytest.approx(0.3)
    # rival 2 has .2 on it, and on target 1 they have .1 and .2: (.9 - .2) - (.1 - .2) = .8
    assert contrasts(a[None])[0, 0, 2] == pytest.approx(0.8)


@pytest.mark.parametrize("scale", SCALES)
def test_what_is_additive_on_a_scale_leaves_nothing_there(scale: str) -> None:
    skill, easy = np.array([0.1, 0.4, -0.2, 0.3]), np.array([-0.3, 0.2, 0.1, 0.5])
    g = skill[None, :] + easy[:, None]
    back = {"as scored": g, "log": np.exp(g - 2), "logit": 1 / (1 + np.exp(-g))}[scale]
    found = contrasts(on_scale(scale, back[None], 10**9))[0]
    assert found[~np.eye(4, dtype=bool)] == pytest.approx(np.zeros(12), abs=1e-6)


def test_skill_times_predictability_passes_as_scored_and_not_on_every_scale() -> None:
    big = beyond_skill(hits(np.outer([0.8, 0.3, 0.3, 0.3], [0.95, 0.3, 0.3, 0.3]), 400), rng=rng())[0]
    assert big.scales["as scored"] < 0.001 and big.scales["log"] > 0.05 and big.crossing > 0.05


def test_a_score_on_itself_that_is_nothing_is_not_above_it() -> None:
    x = hits(np.full((3, 3), 0.3), 100)
    x[0, 0] = 0
    found = beyond_skill(x, rng=rng())
    assert found[0].above == 1 and found[1].above < 0.001


def test_crossing_is_beating_a_better_observer_on_oneself() -> None:
    p = np.full((4, 4), 0.6)
    p[:, 0] = 0.3
    p[0, 0] = 0.9
    found = beyond_skill(hits(p, 300), rng=rng())
    assert found[0].crossing < 0.01 and min(one.crossing for one in found[1:]) > 0.05


def test_a_rivals_knowledge_of_itself_makes_no_crossing_of_the_best_observer() -> None:
    p = np.full((4, 4), 0.3)
    p[:, 0] = 0.6  # the best observer of all, of itself too, without access
    p[1, 1] = 0.95
    assert beyond_skill(hits(p, 300), rng=rng())[0].crossing > 0.05


def test_families_that_know_one_another_are_not_beyond_their_sibling() -> None:
    family = np.arange(6) // 2
    found = beyond_skill(hits(0.4 + 0.3 * (family[:, None] == family[None, :]), 400), rng=rng())
    assert all(max(one.scales.values()) > 0.01 for one in found)


def test_eleven_models_and_four_hundred_items_take_seconds() -> None:
    start = time.perf_counter()
    assert len(beyond_skill(hits(np.full((11, 11), 0.5), 400), rng=rng())) == 11
    assert time.perf_counter() - start < 20


def test_fewer_than_three_models_and_empty_cells_are_errors() -> None:
    with pytest.raises(ValueError, match=r"three models and two items or more, got \(2, 2, 5\)"):
        beyond_skill(np.zeros((2, 2, 5)), rng=rng())
    x = np.zeros((3, 3, 5))
    x[0, 1] = math.nan
    with pytest.raises(ValueError, match="expected a score in every cell"):
        beyond_skill(x, rng=rng())


def test_means_of_resamples_are_those_of_the_items_drawn_also_where_every_item_is_scored() -> None:
    x = hits(np.full((3, 3), 0.5), 40)
    times = rng(1).multinomial(40, np.full(40, 1 / 40), size=50)
    expected = np.stack([np.repeat(x, drawn, axis=2).mean(axis=2) for drawn in times])
    assert resampled(x, rng(1), 50) == pytest.approx(expected, abs=1e-12)
    x[0, 1, :3] = np.nan  # the same by the way that counts scores
    expected = np.stack([np.nanmean(np.repeat(x, drawn, axis=2), axis=2) for drawn in times])
    assert resampled(x, rng(1), 50) == pytest.approx(expected, abs=1e-12)
