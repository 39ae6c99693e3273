"""AUROC, accuracies and F1: scikit-learn's, by hand, and the same from tables and counts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from selfprobe.stats.estimate import (
    accuracy,
    auroc,
    auroc_table,
    balanced_accuracy,
    f1_of_counts,
    spearman,
    weighted_f1,
)

RNG = np.random.default_rng(0)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=2, max_size=40))
def test_auroc_and_balanced_accuracy_agree_with_scikit_learn(rows: list[tuple[bool, int]]) -> None:
    positive = np.array([label for label, _ in rows])
    scores = np.array([score for _, score in rows], dtype=float)
    if positive.all() or not positive.any():
        assert math.isnan(auroc(positive, scores)) and math.isnan(
            balanced_accuracy(positive, scores > 2)
        )
    else:
        assert auroc(positive, scores) == pytest.approx(roc_auc_score(positive, scores))
        assert balanced_accuracy(positive, scores > 2) == pytest.approx(
            balanced_accuracy_score(positive, scores > 2)
        )


def test_auroc_by_hand_leaves_out_what_has_no_score() -> None:
    positive = np.array([True, True, False, False, True, False])
    assert (
        auroc(positive, np.array([0.9, 0.4, 0.6, 0.1, math.nan, math.nan])) == 0.75
    )  # of four pairs three in order
    assert auroc(positive[:3], np.array([0.5, math.nan, 0.5])) == 0.5
    assert math.isnan(auroc(np.ones(3, dtype=bool), np.arange(3.0)))


def test_a_table_of_aurocs_holds_each_of_them() -> None:
    scores, positive = np.round(RNG.standard_normal((3, 40)), 1), RNG.random((5, 40)) < 0.4
    each = [[auroc(labels, row) for labels in positive] for row in scores]
    assert auroc_table(positive, scores) == pytest.approx(np.array(each))


def test_weighted_f1_is_sklearns_with_ties_as_neither_label() -> None:
    for _ in range(20):
        truth, said = RNG.integers(1, 3, 40), RNG.integers(0, 3, 40)
        ours = f1_score(truth, said, labels=[1, 2], average="weighted", zero_division=0)
        assert weighted_f1(truth, said) == pytest.approx(ours)
    assert math.isnan(weighted_f1(np.array([]), np.array([])))


def test_weighted_f1_from_counts_by_hand() -> None:
    # label 1: 3 true, 4 said, 2 right: F1 4/7; label 2: 1 true, none said: F1 0; (3·4/7 + 1·0)/4
    assert f1_of_counts([2, 0], [4, 0], [3, 1]) == pytest.approx(3 / 7)
    assert np.isnan(f1_of_counts([[0], [0]], [[0], [0]], [[0], [0]])).all()


def test_accuracy_counts_a_tie_as_half() -> None:
    assert (
        accuracy(np.array([True, False, True]), np.array([2.0, 1.0, 0.0])) == 0.5
    )  # (1 + 0 + ½)/3
    assert math.isnan(accuracy(np.array([], dtype=bool), np.array([])))


def test_spearman_agrees_with_scipy_and_its_interval_holds_the_truth_in_nine_of_ten_draws() -> None:
    rng, inside = np.random.default_rng(1), 0
    for _ in range(300):
        x, y = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=11).T
        got = spearman(x, y)
        assert got.value == pytest.approx(stats.spearmanr(x, y).statistic)
        inside += (
            got.low <= 6 / math.pi * math.asin(0.25) <= got.high
        )  # of a bivariate normal with r = .5
    assert inside >= 275


def test_the_interval_of_spearman_by_hand() -> None:
    """Squared differences of ranks sum to 10, so rho is .5; z is .5493 ± 1.96·√((1 + .5²/2)/2) =
    .5493 ± 1.47.
    """
    got = spearman([1, 2, 3, 4, 5], [3, 2, 1, 5, 4])
    assert (got.value, got.low, got.high) == pytest.approx(
        (0.5, math.tanh(-0.9207), math.tanh(2.0193)), abs=1e-4
    )


def test_spearman_says_why_there_is_none() -> None:
    assert spearman([1, 2], [2, 1]).reason == "fewer than three models"
    assert spearman([1, 2, math.nan, 3], [2, 2, 1, 2]).reason == "all values of a column are equal"
    perfect = spearman([1, 2, 3, 4], [2, 4, 6, 9])
    assert perfect.value == pytest.approx(1) and perfect.reason == "no interval at ±1"
    assert spearman([1, 2, 3], [1, 3, 2]).reason == "no interval from 3 models"
