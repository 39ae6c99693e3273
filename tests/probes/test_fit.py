import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from selfprobe.probes.fit import (
    Probe,
    best_layer,
    check_labels,
    features,
    logistic,
    means,
    parse_orientation,
    principal,
    sign_agreement,
)

RNG = np.random.default_rng(0)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b))


def test_features_by_hand() -> None:
    # One number a state; two pairs, two orders, sides (1, 2).
    states = np.array([[[[3.0], [1.0]], [[0.0], [2.0]]], [[[5.0], [1.0]], [[2.0], [6.0]]]])
    plus, minus = means(states, "first")
    assert (plus[0], minus[0]) == (4.0, 1.0)
    assert features(states, plus, minus, orders="first").tolist() == [
        [-1.0],
        [1.0],
    ]  # (3-4)-(1-1), (5-4)-(1-1)
    assert features(states, plus, minus, orders="both").tolist() == [
        [2.0],
        [4.0],
    ]  # ((3-1)-(0-2))/2, ((5-1)-(2-6))/2
    plus, minus = means(states, "both")
    assert (plus[0], minus[0]) == (2.5, 2.5)


def test_features_of_both_orders_are_antisymmetric_and_free_of_position() -> None:
    states = RNG.standard_normal((7, 2, 2, 5))
    plus, minus = means(states, "both")
    x = features(states, plus, minus, orders="both")
    np.testing.assert_allclose(features(states[:, ::-1], plus, minus, orders="both"), -x)
    moved = states + RNG.standard_normal((7, 1, 2, 5))  # the same in both orders: position
    np.testing.assert_allclose(features(moved, *means(moved, "both"), orders="both"), x)
    with pytest.raises(ValueError, match="needs every pair in both orders"):
        features(states[:, :1], plus, minus, orders="both")


def test_centring_removes_what_only_the_side_tells() -> None:
    states = RNG.standard_normal((9, 1, 2, 4))
    shifted = states + np.array([10.0, -3.0])[None, None, :, None]
    np.testing.assert_allclose(
        features(shifted, *means(shifted, "first"), orders="first"),
        features(states, *means(states, "first"), orders="first"),
    )


@pytest.mark.parametrize(("pairs", "width"), [(60, 8), (30, 90)])
def test_logistic_agrees_with_scikit_learn(pairs: int, width: int) -> None:
    x = RNG.standard_normal((pairs, width)) * 3
    y = x[:, 0] + RNG.standard_normal(pairs) > 0
    ours = logistic(x, y, np.arange(pairs), c=0.5, intercept=True)
    theirs = LogisticRegression(C=0.5, max_iter=10_000, tol=1e-10).fit(x, y)
    np.testing.assert_allclose(
        x @ ours.direction + ours.bias, theirs.decision_function(x), rtol=1e-2, atol=1e-2
    )


def test_regularisation_is_chosen_by_questions_not_rows() -> None:
    # Rows of a question are copies: a fold that shared them would look perfect.
    x = np.repeat(RNG.standard_normal((20, 40)), 5, axis=0)
    y = np.repeat(RNG.random(20) < 0.5, 5)
    fitted = logistic(x, y, np.repeat(np.arange(20), 5))
    assert fitted.c == 0.01
    assert fitted.score < 0.65


def test_principal_component_agrees_with_scikit_learn() -> None:
    for shape in ((50, 12), (20, 70)):
        x = RNG.standard_normal(shape) + 3
        x[:, 2] += 4 * RNG.standard_normal(shape[0])
        assert cosine(principal(x, symmetric=False), PCA(1).fit(x).components_[0]) == pytest.approx(
            1, abs=1e-6
        )
        both = np.concatenate([x, -x])
        assert cosine(
            principal(x, symmetric=True), PCA(1).fit(both).components_[0]
        ) == pytest.approx(1, abs=1e-6)


def test_agreement_is_one_when_every_sign_is_right() -> None:
    truth = np.array([True, False, True, False])
    assert sign_agreement(truth, np.array([1.0, -1.0, 2.0, -0.1])) == 1.0
    assert (
        sign_agreement(truth, np.array([1.0, -1.0, -3.0, 3.0])) < 0
    )  # two right, two wrong: the larger ones decide
    assert sign_agreement(np.ones(3, dtype=bool), np.array([1.0, 1.0, -1.0])) > 0, (
        "works with one label"
    )


def test_a_probe_scores_by_hand() -> None:
    probe = Probe(
        "supervised", 0, "first", np.array([2.0]), 0.5, np.array([1.0]), np.array([0.0]), "labels"
    )
    states = np.array([[[[3.0], [1.0]], [[0.0], [2.0]]]])
    assert probe.score(states).tolist() == [2.5]  # 2·((3-1)-(1-0)) + .5


@pytest.mark.parametrize("wrong", ["few:0", "few", "best", ""])
def test_an_unknown_orientation_lists_the_known_ones(wrong: str) -> None:
    with pytest.raises(ValueError, match="must be few:K .* logit, none or oracle"):
        parse_orientation(wrong)


def test_too_little_to_learn_from_is_an_error() -> None:
    with pytest.raises(ValueError, match="has only label 1 .5 pairs.: nothing to learn"):
        check_labels(np.ones(5, dtype=bool), np.arange(5), folds=2)
    with pytest.raises(ValueError, match="5 pairs of 5 questions.*at least 8 pairs of 4"):
        check_labels(np.array([True, False, True, False, True]), np.arange(5), folds=4)
    with pytest.raises(ValueError, match="at least 3 pairs, got 2"):
        principal(np.ones((2, 4)), symmetric=True)


def test_pairs_that_do_not_differ_have_no_component() -> None:
    assert not principal(np.zeros((5, 4)), symmetric=True).any()
    assert not principal(np.ones((5, 4)), symmetric=False).any()


def test_the_last_of_equally_good_layers_is_chosen_and_one_that_is_undefined_never() -> None:
    assert best_layer([0.5, 0.7, 0.7, 0.6]) == 2
    assert best_layer([np.nan, 0.7, np.nan]) == 1
    assert best_layer([np.nan, np.nan]) == 1
