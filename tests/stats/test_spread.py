"""Variances, degrees of freedom and effective sizes of means of clustered rows."""

import math

import numpy as np
import pytest

from selfprobe.stats.estimate import (
    bell_mccaffrey_df,
    cluster_errors,
    clustered_mean,
    cr2_variance,
    effective_size,
    jackknife_variance,
)

UNEQUAL = np.repeat(np.arange(14), [60, 9, *range(1, 13)])
SHAPES = {
    "one of half": [40, *[1] * 40],
    "two large": [60, 60, *[3] * 28],
    "a long tail": [max(1, 120 // k) for k in range(1, 21)],
    "alike": [7] * 30,
}


def test_the_jackknife_leaves_out_a_cluster_at_a_time() -> None:
    values = np.random.default_rng(3).normal(size=len(UNEQUAL))
    without = np.array([values[cluster != UNEQUAL].mean() for cluster in range(14)])
    found = jackknife_variance(*cluster_errors(values - values.mean(), UNEQUAL))
    assert found == pytest.approx(13 / 14 * np.sum((without - values.mean()) ** 2))


def test_cr2_expects_the_variance_of_independent_rows() -> None:
    """What it was made for: over many draws of independent rows its mean is 1/rows, where CR1's is
    less.
    """
    rng, found = np.random.default_rng(4), []
    for values in rng.normal(size=(4000, len(UNEQUAL))):
        errors, held = cluster_errors(values - values.mean(), UNEQUAL)
        found.append((cr2_variance(errors, held), 14 / 13 * float(errors @ errors)))
    two, one = np.mean(found, axis=0) * len(UNEQUAL)
    assert two == pytest.approx(1, abs=0.05) and one < 0.9


def test_the_degrees_of_freedom_are_those_that_satterthwaite_asks_for() -> None:
    """2·mean²/variance of CR2, drawn; of the clusters' errors under independent rows."""
    rng, found = np.random.default_rng(5), []
    for values in rng.normal(size=(20_000, len(UNEQUAL))):
        found.append(cr2_variance(*cluster_errors(values - values.mean(), UNEQUAL)))
    held = cluster_errors(np.zeros(len(UNEQUAL)), UNEQUAL)[1]
    assert bell_mccaffrey_df(held) == pytest.approx(
        2 * np.mean(found) ** 2 / np.var(found), rel=0.1
    )


def test_clusters_of_one_size_have_the_usual_error_and_degrees() -> None:
    values, clusters = np.random.default_rng(4).normal(size=60), np.arange(60) // 4
    errors, held = cluster_errors(values - values.mean(), clusters)
    usual = 15 / 14 * float(errors @ errors)
    assert (
        jackknife_variance(errors, held),
        cr2_variance(errors, held),
        bell_mccaffrey_df(held),
    ) == pytest.approx((usual, usual, 14))
    found = clustered_mean(values, clusters, interval="t")
    assert (found.se, found.df) == pytest.approx((math.sqrt(usual), 14))


@pytest.mark.parametrize("n", [2, 6, 40])
def test_clusters_that_are_all_wrong_know_as_much_as_their_number(n: int) -> None:
    """By hand: with a further cluster half right, the mean is 1/(2(n+1)), and n²/(n+1) rows know as
    much.
    """
    assert effective_size(np.zeros(20 * n), np.repeat(np.arange(n), 20)) == pytest.approx(
        n**2 / (n + 1)
    )


def test_rows_that_know_each_other_know_less() -> None:
    scores = np.arange(60) % 4 < 3
    assert effective_size(scores.astype(float), np.arange(60)) == pytest.approx(60, rel=0.02)
    assert effective_size(np.sort(scores).astype(float), np.arange(60) // 6) < 15


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("interval", ["t", "wilson"])
def test_intervals_hold_the_truth_whatever_the_clusters_sizes(shape: str, interval: str) -> None:
    """Scores that correlate by .5 within a cluster. With CR1 and clusters - 1 up to a third of
    intervals missed it.
    """
    rng, missed = np.random.default_rng(6), 0
    clusters = np.repeat(np.arange(len(SHAPES[shape])), SHAPES[shape])
    for _ in range(1000):
        chances = rng.beta(0.5, 0.5, len(SHAPES[shape]))[clusters]
        values = (rng.random(len(clusters)) < chances).astype(float)
        found = clustered_mean(values, clusters, interval="t" if interval == "t" else "wilson")
        missed += not found.low <= 0.5 <= found.high
    assert missed / 1000 < (0.1 if interval == "t" else 0.07)
