"""What items share is no knowledge of oneself: cells of models that know nothing of themselves are
told.
"""

import itertools

import numpy as np
import pytest
from scipy import special

from selfprobe.stats.estimate import FloatArray, holm
from selfprobe.stats.pairs import own_cells
from selfprobe.stats.shared_items import (
    SHARED_ITEMS,
    expected_from_votes,
    have_shared_difficulty,
    hits_beyond_agreement,
    hits_beyond_agreement_p,
    own_cells_of_hits,
    vote_shares,
)

STRONG = np.array([0.9, 0.3, 0.3, 0.3, 0.3])
EASY = np.array([0.8, 0.3, 0.3, 0.3, 0.3])


def hits_of_leading_answers(
    rng: np.random.Generator,
    margins: FloatArray,
    skill: FloatArray = STRONG,
    ease: FloatArray = EASY,
    access: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Scores and stand-ins of models that give and predict the answer that leads; the first may
    know itself.
    """
    gives = rng.random((len(ease), len(margins))) < special.expit(
        special.logit(ease)[:, None] + margins
    )
    predicts = rng.random((len(skill), len(margins))) < special.expit(
        special.logit(skill)[:, None] + margins
    )
    scores = (gives[:, None] & predicts[None]).astype(float)
    scores[0, 0] = np.maximum(scores[0, 0], rng.random(len(margins)) < access)
    return scores, (gives[:, None] & gives[None]).astype(float)


@pytest.mark.parametrize("spread", [0.0, 0.6, 3.0])
def test_where_each_item_has_one_answer_nothing_is_beyond_agreement(spread: float) -> None:
    rng = np.random.default_rng(1)
    margins = spread * rng.normal(size=300)
    scores, _ = hits_of_leading_answers(rng, margins)
    assert (hits_beyond_agreement(scores) == 0).all()
    scores[0, 0] = 1
    beyond_agreement = hits_beyond_agreement(scores)
    assert beyond_agreement[0, 0].mean() > 0.01
    beyond_agreement[0, 0] = 0
    assert (beyond_agreement == 0).all(), "own cells are compared with nobody else's"


def test_hits_beyond_agreement_are_means_over_pairs_of_other_models() -> None:
    rng = np.random.default_rng(3)
    scores = rng.random((5, 5, 2))
    scores[2, 3, 1] = np.nan
    expected = np.full(scores.shape, np.nan)
    filled = np.nan_to_num(scores)
    for target, observer, item in np.ndindex(scores.shape):
        if np.isnan(scores[target, observer, item]):
            continue
        products = [
            filled[target, observer, item] * filled[other_target, other_observer, item]
            - filled[target, other_observer, item] * filled[other_target, observer, item]
            for other_target, other_observer in itertools.permutations(
                sorted(set(range(5)) - {target, observer}), 2
            )
        ]
        expected[target, observer, item] = np.mean(products)
    assert hits_beyond_agreement(scores) == pytest.approx(expected, nan_ok=True)


def test_items_that_share_nothing_are_no_reason_to_ask() -> None:
    rng = np.random.default_rng(1)
    independent = (rng.random((5, 5, 400)) < 0.5).astype(float)
    assert not have_shared_difficulty(independent)
    assert (hits_beyond_agreement_p(independent) == 0).all()
    scores, _ = hits_of_leading_answers(rng, 1.5 * rng.normal(size=400))
    assert have_shared_difficulty(scores)
    assert (hits_beyond_agreement_p(scores) >= 0.5).all()


def named_share(
    draws: int, *, items: int, access: float = 0.0, spread: float = 1.5, replies: bool = True
) -> float:
    """Share of matrices in which somebody is named."""
    count = 0
    for seed in range(draws):
        rng = np.random.default_rng([3, seed])
        margins = spread * rng.normal(size=items)
        equal = np.full(5, 0.6)
        skill, ease = (equal, equal) if access else (STRONG, EASY)
        scores, stand_ins = hits_of_leading_answers(rng, margins, skill, ease, access)
        evidence = own_cells_of_hits(scores, scores, stand_ins if replies else None)
        count += holm(evidence.p).min() < 0.05
    return count / draws


@pytest.mark.parametrize("replies", [True, False])
def test_a_strong_model_at_items_that_share_a_difficulty_is_not_named(replies: bool) -> None:
    """Without the step it was named in most of these matrices."""
    scores, _ = hits_of_leading_answers(
        np.random.default_rng(1), 1.5 * np.random.default_rng(2).normal(size=400)
    )
    assert own_cells(scores).p[0] < 0.01
    assert named_share(40, items=400, replies=replies) <= 0.1


def test_access_of_one_is_found_where_items_share_a_difficulty() -> None:
    assert named_share(20, items=400, access=0.4) >= 0.8


def test_votes_leave_out_the_observers_own_prediction_and_the_targets_own_reply() -> None:
    scores = np.zeros((4, 4, 2))
    scores[0, 1:3, 0] = 1  # two of four observers are right of the first target's first reply
    stand_ins = np.zeros((4, 4, 2))
    stand_ins[:, :, 1] = 1  # at the second item all replies are alike
    shares = vote_shares(scores, stand_ins)
    assert shares[0, 0, 0] == pytest.approx(2 / 6) and shares[0, 1, 0] == pytest.approx(1 / 6)
    assert (shares[:, :, 1] == 3 / 6).all()
    assert vote_shares(scores, None)[0, 0, 0] == pytest.approx(2 / 3)


def test_what_is_expected_comes_of_other_targets_at_items_that_as_many_get() -> None:
    x = np.zeros((4, 4, 6))
    shares = np.zeros((4, 4, 6))
    shares[:, :, 3:] = 0.9
    x[:, 1, 3:] = 1  # the second observer is right where many are
    expected = expected_from_votes(x, shares)
    mean = 0.5
    assert expected[0, 1, 5] == pytest.approx(
        (6 + 2 * mean) / (6 + 2)
    )  # two other targets, three items each
    assert expected[0, 1, 0] == pytest.approx(2 * mean / (6 + 2))
    assert expected[1, 1, 5] == pytest.approx((9 + 2 * mean) / (9 + 2)), (
        "its own cell is in no expectation"
    )
    x[0, 2, 0] = np.nan
    assert np.isnan(expected_from_votes(x, shares)[0, 2, 0])


def test_too_few_models_have_no_p_of_this_step() -> None:
    scores = np.ones((3, 3, 5))
    assert np.isnan(own_cells_of_hits(scores, scores, None).p_by_step[SHARED_ITEMS]).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("score", [0.0, 1.0])
def test_cells_without_variation_share_nothing(score: float) -> None:
    assert not have_shared_difficulty(np.full((5, 5, 20), score))
