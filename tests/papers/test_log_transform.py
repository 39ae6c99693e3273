"""The paper's own test and transform: its printed p, and cases worked by hand."""

import math

import numpy as np
import pytest

from selfprobe.papers.log_transform import epsilon_sensitivity, paper_transform
from selfprobe.studies.matrix.advantage import wilcoxon_models


def test_the_papers_p_is_43_of_2048() -> None:
    difference = np.arange(1.0, 12.0)
    difference[9] = -10  # smaller rank sum 10 of 11 models
    got = wilcoxon_models(difference, np.zeros(11))
    assert got.wilcoxon_p == pytest.approx(43 / 2048) and round(got.wilcoxon_p, 4) == 0.021
    assert (got.wins, got.n) == (10, 11) and got.sign_p == pytest.approx(12 / 2048)


def test_models_without_a_difference_are_dropped() -> None:
    got = wilcoxon_models([0.5, 0.6, 0.7, 0.4], [0.5, 0.5, 0.5, 0.1])
    assert (got.n, got.wins, got.wilcoxon_p, got.sign_p) == (3, 3, 1 / 8, 1 / 8)
    none = wilcoxon_models([0.5], [0.5])
    assert none.n == 0 and math.isnan(none.wilcoxon_p)
    with pytest.raises(ValueError, match="no NaN"):
        wilcoxon_models([math.nan], [0.5])


def test_wilcoxon_with_ties_is_exact() -> None:
    got = wilcoxon_models([2, 2, 2, -1, 0.5], np.zeros(5))
    ranks, signs = np.array([4, 4, 4, 2, 1]), np.indices((2,) * 5).reshape(5, -1)
    assert got.wilcoxon_p == pytest.approx(np.mean(ranks @ signs >= 13))


def test_the_papers_transform_by_hand() -> None:
    # min-max: [[1, 0], [.5, 1]] and [[1, .5], [0, 1]]; A = [[1, .25], [.25, 1]]; C_11 =
    # ln(1.1/.35)/2
    got = paper_transform({"k": [[6, 2], [4, 6]], "h": [[0.9, 0.8], [0.7, 0.9]]}, 0.1)
    assert got.aggregate == pytest.approx(np.array([[1, 0.25], [0.25, 1]]))
    assert got.log[0, 1] == pytest.approx(math.log(0.35))
    assert got.centred[0] == pytest.approx([math.log(1.1 / 0.35) / 2, -math.log(1.1 / 0.35) / 2])
    assert got.reasons == {} and got.eps == 0.1


def test_equal_scores_are_left_out_with_a_reason_never_zero() -> None:
    one = [[0.9, 0.1], [0.3, 0.7]]
    got = paper_transform(
        {"flat": np.full((2, 2), 0.4), "none": np.full((2, 2), math.nan), "k": one}, 0.01
    )
    assert got.reasons == {"flat": "all scores are equal: min-max is undefined", "none": "no score"}
    assert got.aggregate == pytest.approx(paper_transform({"k": one}, 0.01).aggregate)
    assert np.isnan(paper_transform({"flat": np.zeros((2, 2))}, 0.01).centred).all()


def test_a_hole_stays_a_hole() -> None:
    got = paper_transform({"k": [[0.9, math.nan], [0.3, 0.7]]}, 0.01)
    assert (
        np.isnan(got.aggregate[0, 1])
        and not np.isnan(got.aggregate[0, 0])
        and np.isnan(got.centred).all()
    )


def test_epsilon_zero_with_a_zero_cell_says_to_choose_a_larger_one() -> None:
    with pytest.raises(ValueError, match=r"A is 0 for target 0, observer 1 .* choose eps > 0"):
        paper_transform({"k": [[0.9, 0.1], [0.3, 0.7]]}, 0)
    fine = paper_transform({"a": [[0.9, 0.1], [0.3, 0.7]], "b": [[0.9, 0.3], [0.1, 0.7]]}, 0)
    assert np.isfinite(fine.centred).all()
    with pytest.raises(ValueError, match="0 or more"):
        paper_transform({"k": [[0.9, 0.1], [0.3, 0.7]]}, -1)
    with pytest.raises(ValueError, match="square matrices of one size"):
        paper_transform({"a": np.zeros((2, 2)), "b": np.zeros((3, 3))}, 1)


def test_epsilon_sensitivity_shows_how_a_small_epsilon_inflates_the_advantage() -> None:
    *rows, raw = epsilon_sensitivity({"k": [[0.9, 0.1], [0.3, 0.7]]}, (1e-6, 0.1, 10))
    assert [row.epsilon for row in rows] == [1e-6, 0.1, 10] and [row.positive for row in rows] == [
        2,
        2,
        2,
    ]
    assert rows[0].advantage > 5 > rows[1].advantage > rows[2].advantage > 0
    assert raw.raw and raw.epsilon == 1e-5 and not any(row.raw for row in rows)
    assert raw.advantage == pytest.approx((math.log(0.9 * 0.7) - math.log(0.1 * 0.3)) / 2, abs=1e-3)


def test_the_epsilon_of_the_public_notebook_is_in_the_table() -> None:
    assert 1e-5 in [
        row.epsilon for row in epsilon_sensitivity({"k": [[0.9, 0.1], [0.3, 0.7]]}) if not row.raw
    ]
    below = epsilon_sensitivity({"k": [[0.9, -0.1], [0.3, 0.7]]})
    assert not any(row.raw for row in below), "no logarithm of a score below 0"
