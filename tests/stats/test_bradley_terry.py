"""Scores of prompts from pairs that were decided."""

import math

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from selfprobe.stats.bradley_terry import MEAN_DEVIATION, SCORE_QUANTILE, _design, _laplace, order


def drawn(
    rng: np.random.Generator, *, n: int = 15, spread: float = 2.0, each: int = 8
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    u, v = rng.normal(-1, spread, n), rng.normal(0, 1, n)
    ours = np.repeat(np.arange(n), each)
    theirs = (np.arange(n)[:, None] + np.arange(each)).ravel() % n
    return ours, theirs, rng.random(n * each) < expit(u[ours] - v[theirs]), u


def test_one_point_of_the_grid_is_scikit_learns_ridge_regression() -> None:
    ours, theirs, won, _ = drawn(np.random.default_rng(0))
    deviations = np.r_[MEAN_DEVIATION, np.full(15, 1.5), np.full(15, 0.8)]
    fit = _laplace(_design(ours, theirs, 15, 15), won.astype(float), deviations, np.zeros(31))
    theirs_ = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=5000)
    theirs_.fit(_design(ours, theirs, 15, 15).toarray() * deviations, won)
    assert fit.z == pytest.approx(theirs_.coef_[0], abs=1e-4)


def test_prompts_that_win_more_score_higher_and_an_order_shows() -> None:
    ours, theirs, won, u = drawn(np.random.default_rng(1))
    found = order(ours, theirs, won, prompt_count=15, real_count=15)
    assert np.corrcoef(found.scores, u)[0, 1] > 0.7 and found.p < 0.01
    assert 1 < found.spread < 4 and (found.distance_errors < found.errors + 1).all()


def test_a_prompt_that_lost_all_its_pairs_has_a_finite_score() -> None:
    found = order(
        np.array([0, 0, 1, 1]),
        np.array([0, 1, 0, 1]),
        np.array([False, False, True, True]),
        prompt_count=3,
        real_count=2,
    )
    assert np.isfinite(found.scores).all() and found.scores[0] < found.scores[2] < found.scores[1]
    assert found.errors[2] >= found.distance_errors[2] > 0  # no pair of it was decided


def test_without_a_decided_pair_there_are_no_scores() -> None:
    nothing = np.empty(0, dtype=np.intp)
    found = order(nothing, nothing, np.empty(0, dtype=bool), prompt_count=2, real_count=2)
    assert math.isnan(found.p) and np.isnan(found.scores).all()


@pytest.mark.slow(5)
def test_intervals_hold_the_scores_and_a_random_judge_gets_no_order() -> None:
    """More data sets and worlds are in docs/statistics.md."""
    rng, held, claimed = np.random.default_rng(2), [], 0
    for _ in range(40):
        ours, theirs, won, u = drawn(rng)
        found = order(ours, theirs, won, prompt_count=15, real_count=15)
        held.append(np.abs(found.scores - u) < SCORE_QUANTILE * found.errors)
        claimed += (
            order(ours, theirs, rng.random(len(ours)) < 0.5, prompt_count=15, real_count=15).p
            < 0.05
        )
    assert 0.92 < np.mean(held) < 0.985 and claimed <= 4
