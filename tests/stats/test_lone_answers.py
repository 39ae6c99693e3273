"""Access shows at any answer; strength at those that some of the others find too."""

import numpy as np
import pytest
from scipy import special

from selfprobe.stats.estimate import FloatArray
from selfprobe.stats.lone_answers import (
    are_equal_answers,
    has_two_answers,
    lone_answers,
    support_shares,
)

RIGHT, SHARED_ERROR, FIRST_OTHER = 0, 1, 10


def matrix_of(replies: FloatArray, predictions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scores and stand-ins of words [model, item]."""
    scores = (replies[:, None] == predictions[None]).astype(float)
    return scores, (replies[:, None] == replies[None]).astype(float)


def strong_among_weak(
    rng: np.random.Generator, *, weak: float, shared: float, models: int = 5, items: int = 1000
) -> tuple[FloatArray, FloatArray]:
    """The first model finds the right answer; the others mostly give one wrong answer."""
    margins = 1.5 * rng.normal(size=items)
    words = []
    for strong in (0.8, 0.9):
        chances = np.array([strong] + [weak] * (models - 1))[:, None]
        is_right = rng.random((models, items)) < special.expit(special.logit(chances) + margins)
        is_shared = rng.random((models, items)) < shared
        others = rng.integers(FIRST_OTHER, 10**6, (models, items))
        words.append(np.where(is_right, RIGHT, np.where(is_shared, SHARED_ERROR, others)))
    replies, predictions = words
    return matrix_of(replies, predictions)


def knower(
    rng: np.random.Generator, access: float, *, words: int = 1000, items: int = 1000
) -> tuple[FloatArray, FloatArray]:
    """Equal models, of which the first knows a share of its answers."""
    shape = (5, items)
    replies = np.where(rng.random(shape) < 0.6, -1, rng.integers(0, words, shape))
    predictions = np.where(rng.random(shape) < 0.6, -1, rng.integers(0, words, shape))
    predictions[0] = np.where(rng.random(items) < access, replies[0], predictions[0])
    return matrix_of(replies, predictions)


@pytest.mark.parametrize(
    ("weak", "shared", "with_replies"),
    [
        (0.15, 0.3, True),
        (0.15, 0.8, True),
        (0.3, 0.5, True),
        (0.3, 0.8, True),
        (0.15, 0.3, False),
        (0.3, 0.5, False),
    ],
)
def test_a_strong_model_among_weak_ones_that_share_wrong_answers_is_not_beyond_strength(
    weak: float, shared: float, with_replies: bool
) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        scores, stand_ins = strong_among_weak(rng, weak=weak, shared=shared)
        strong, *_ = lone_answers(scores, stand_ins if with_replies else None)
        assert not strong.is_beyond_strength(0.05)
        assert strong.difference.value < 0


@pytest.mark.parametrize("words", [2, 6, 1000])
@pytest.mark.parametrize("access", [0.4, 0.95])
def test_a_model_that_knows_the_same_share_of_all_its_answers_is_beyond_strength(
    access: float, words: int
) -> None:
    scores, stand_ins = knower(np.random.default_rng(0), access, words=words)
    first, *_ = lone_answers(scores, stand_ins)
    assert first.is_beyond_strength(0.05)
    assert first.difference.high > 0


def test_support_counts_models_that_gave_or_predicted_the_reply_but_not_the_two_that_are_compared() -> (
    None
):
    hits = np.zeros((4, 4, 1))
    replies = np.zeros((4, 4, 1))
    hits[0, 2] = replies[0, 1] = replies[0, 2] = 1
    assert support_shares(0, 0, hits, replies)[:, 0].tolist() == [0, 0, 1, 0]
    assert support_shares(0, 1, hits, replies)[:, 0].tolist() == [0, 1, 0, 0]
    replies[0, 1] = 0.25
    assert support_shares(0, 0, hits, replies)[:, 0].tolist() == [0, 0.75, 0.25, 0]


def test_of_two_answers_and_of_scores_that_are_no_answers_nothing_is_asked() -> None:
    rng = np.random.default_rng(0)
    answers = rng.integers(0, 2, (2, 5, 200))
    scores, stand_ins = matrix_of(*answers)
    assert has_two_answers(stand_ins) and lone_answers(scores, stand_ins) == ()
    scores = (rng.random((5, 5, 200)) < 0.4).astype(float)
    assert not are_equal_answers(scores) and lone_answers(scores, None) == ()


def test_what_nobody_gave_and_what_is_unscored_is_no_reply() -> None:
    scores, stand_ins = knower(np.random.default_rng(0), 0.4)
    with_holes, stand_ins_with_holes = np.full((5, 5, 1500), np.nan), np.full((5, 5, 1500), np.nan)
    with_holes[:, :, :1000] = scores
    stand_ins_with_holes[:, :, :1000] = stand_ins
    # As texts: from Python 3.13 on, dataclasses that hold the same nan differ.
    assert repr(lone_answers(with_holes, stand_ins_with_holes)) == repr(
        lone_answers(scores, stand_ins)
    )
