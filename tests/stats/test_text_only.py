"""The classifiers that see no model: what they learn, and that nothing of a tested text reaches
them.
"""

from typing import Any

import numpy as np
import pytest

from selfprobe.stats import text_only
from selfprobe.stats.estimate import auroc
from selfprobe.stats.text_only import (
    advantages_beyond_reader,
    log_odds,
    pair_differences,
    pair_keyword_margins,
    pair_length_margins,
    pair_word_margins,
    text_only_observer,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_text_only_observer_learns_what_the_text_tells_and_nothing_else() -> None:
    animals, forms = ["cat", "dog", "owl", "fox"], [f"topic{i}" for i in range(20)]
    questions = [f"Write about a {animal}, {form}" for animal in animals for form in forms]
    told = text_only_observer(questions, [question.split()[3] for question in questions])
    assert told.hits.mean() > 0.95 and told.reason == ""
    blind = text_only_observer(questions, rng().integers(0, 4, 80))
    assert 0.05 < blind.hits.mean() < 0.45
    again = text_only_observer(questions, rng().integers(0, 4, 80))
    assert again.hits.tolist() == blind.hits.tolist()


def test_text_only_observer_agrees_with_scikit_learns_cross_val_predict() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    words, generator = np.array("sun sea sky oak elm ash".split()), rng()
    questions = [" ".join(generator.choice(words, 4)) + f" {i}" for i in range(60)]
    truths = ["a" if "sun" in question else "b" for question in questions]
    model = make_pipeline(
        TfidfVectorizer(token_pattern=r"\w+|[^\w\s]", sublinear_tf=True), LogisticRegression(C=10)
    )
    folds = GroupKFold(5, shuffle=True, random_state=0)
    theirs = cross_val_predict(
        model, np.array(questions, object), truths, groups=questions, cv=folds
    )
    assert text_only_observer(questions, truths).hits.tolist() == (theirs == truths).tolist()


def test_text_only_observer_never_sees_a_repeated_question_in_training() -> None:
    questions = [f"question number{i}" for i in range(40)] * 2
    truths = [f"word{i}" for i in range(40)] * 2  # only a copy of the question could tell
    assert text_only_observer(questions, truths).hits.sum() == 0


def test_text_only_observer_with_rare_or_single_classes_and_too_few_questions() -> None:
    questions = [f"question number{i}" for i in range(30)]
    assert text_only_observer(questions, ["the"] * 30).hits.tolist() == [1] * 30
    assert text_only_observer(questions, ["the"] * 29 + ["a"]).hits.tolist() == [1] * 29 + [0]
    few = text_only_observer(questions[:19], ["the"] * 19)
    assert (
        np.isnan(few.hits).all()
        and few.reason == "19 different questions, a text classifier needs 20"
    )
    with pytest.raises(ValueError, match="one truth a question"):
        text_only_observer(questions, ["the"])


def sentences(n: int) -> list[str]:
    return [" ".join(words) for words in rng().choice([f"word{i}" for i in range(30)], (n, 6))]


def test_neither_text_nor_label_of_a_group_reaches_the_scores_of_its_rows() -> None:
    texts, groups = sentences(60), np.repeat(np.arange(12), 5)
    positive = np.arange(60) % 2 == 0
    before = log_odds(texts, positive, groups, each_apart=True)
    after = log_odds(["word1 word2 word3", *texts[1:]], positive, groups, each_apart=True)
    assert (after[1:5] == before[1:5]).all() and (after[5:] != before[5:]).all()
    positive[:2] = ~positive[:2]
    assert (log_odds(texts, positive, groups, each_apart=True)[:5] == before[:5]).all()


def test_log_odds_are_undefined_where_there_is_nothing_to_learn() -> None:
    texts, groups, half = sentences(8), np.arange(8), np.arange(8) % 2 == 0
    assert np.isnan(log_odds(texts, np.ones(8, dtype=bool), groups)).all()
    assert np.isnan(log_odds(texts, half, np.zeros(8))).all()
    assert np.isfinite(log_odds(texts, half, groups)).all()
    alone = (
        np.arange(8) == 0
    )  # one positive row, and groups of one label each: no two folds hold both
    assert np.isnan(log_odds(texts, alone, groups, each_apart=True)).all()


def test_words_of_the_tested_pairs_move_no_coordinate_of_the_others() -> None:
    first, second, train = sentences(20), sentences(40)[20:], np.arange(12)
    x = pair_differences(first, second, train)
    assert x is not None and x.shape[0] == 20
    other = pair_differences([*first[:19], "word1 word2 word3 unheard"], second, train)
    assert other is not None and (x[:19] == other[:19]).all() and (x[19] != other[19]).any()


def test_coordinates_of_pairs_keep_the_products_of_the_training_rows() -> None:
    first, second, train = sentences(20), sentences(40)[20:], np.arange(12)
    x, swapped = pair_differences(first, second, train), pair_differences(second, first, train)
    assert x is not None and swapped is not None
    assert swapped @ swapped.T == pytest.approx(x @ x.T)
    norms = np.linalg.norm(x[train], axis=1)
    assert (norms > 0.5).all() and (norms < 2).all(), "differences of two unit vectors"


def test_pairs_without_words_or_without_a_difference_teach_nothing() -> None:
    assert pair_differences(["a", "b"], ["c", "d"], np.arange(2)) is None
    assert pair_differences(["one two", "to be"], ["two one", "be to"], np.arange(2)) is None


def test_texts_without_a_word_of_two_letters_have_no_odds_and_stop_nobody() -> None:
    positive, groups = np.arange(40) % 2 == 0, np.arange(40) // 4
    assert np.isnan(text_only.log_odds(["? !", "a b"] * 20, positive, groups)).all()


def test_the_best_reader_finds_what_words_do_not_show_and_nothing_in_noise() -> None:
    """Capitals go with the label; words are read in small letters."""
    positive, groups = rng().random(120) < 0.5, np.arange(120) // 6
    plain = [" ".join(rng(k).choice([f"word{i}" for i in range(30)], 8)) for k in range(120)]
    loud = [text.upper() if yes else text for text, yes in zip(plain, positive, strict=True)]
    found = text_only.best_reader(text_only.read_by(loud), positive, groups)
    assert auroc(positive, found.scores) > 0.95 and found.name in ("characters", "style")
    assert auroc(positive, text_only.log_odds(loud, positive, groups)) < 0.7
    noise = text_only.best_reader(text_only.read_by(plain), positive, groups, each_apart=True)
    assert 0.3 < auroc(positive, noise.scores) < 0.7


def test_the_best_reader_of_one_class_or_one_group_is_none() -> None:
    read = text_only.read_by(["one", "two", "three", "four"])
    for positive, groups in ((np.ones(4, bool), np.arange(4)), (np.arange(4) < 2, np.zeros(4))):
        found = text_only.best_reader(read, positive, groups)
        assert np.isnan(found.scores).all() and found.name == ""


@pytest.mark.parametrize("reader", [pair_length_margins, pair_word_margins])
def test_a_reader_of_pairs_learns_what_tells_the_better_text_and_swapping_texts_turns_its_margin(
    reader: Any,
) -> None:
    better = [f"surely yes indeed {number}" for number in range(40)]
    worse = [f"no {number}" for number in range(40)]
    is_first = np.arange(40) % 3 == 0
    first = [better[i] if is_first[i] else worse[i] for i in range(40)]
    second = [worse[i] if is_first[i] else better[i] for i in range(40)]
    groups = np.arange(40).astype(str)
    margins = reader(first, second, is_first, groups)
    assert ((margins > 0) == is_first).all()
    swapped = reader(second, first, ~is_first, groups)
    np.testing.assert_allclose(swapped, -margins, atol=1e-6)


@pytest.mark.parametrize("reader", [pair_length_margins, pair_word_margins])
def test_a_reader_of_pairs_needs_no_two_labels_and_learns_from_other_groups_alone(
    reader: Any,
) -> None:
    better = [f"surely yes {number}" for number in range(20)]
    worse = [f"no {number}" for number in range(20)]
    always_first = np.ones(20, dtype=bool)
    groups = np.arange(20).astype(str)
    assert (reader(better, worse, always_first, groups) > 0).all()
    assert np.isnan(reader(better, worse, always_first, np.full(20, "q"))).all()
    # A group that goes the other way tells nothing of itself.
    odd = always_first.copy()
    odd[groups == "7"] = False
    assert reader(better, worse, odd, groups)[7] > 0


def test_pairs_without_a_word_of_two_letters_have_no_reader_of_words() -> None:
    margins = pair_word_margins(["a", "b"] * 3, ["c", "d"] * 3, np.ones(6, bool), np.arange(6))
    assert np.isnan(margins).all()


def test_a_reader_of_few_words_finds_the_word_that_tells() -> None:
    generator = rng()
    fillers = [f"filler{number}" for number in range(30)]
    first, second, is_first = [], [], np.arange(60) % 2 == 0
    for first_is_better in is_first:
        texts = [" ".join(generator.choice(fillers, 5)) for _ in range(2)]
        texts[0 if first_is_better else 1] += " certainly"
        first.append(texts[0])
        second.append(texts[1])
    margins = pair_keyword_margins(first, second, is_first, np.arange(60).astype(str))
    assert margins.shape == (60, 3)
    assert ((margins[:, 0] > 0) == is_first).all()
    silent = pair_keyword_margins(["a"] * 6, ["b"] * 6, np.ones(6, bool), np.arange(6))
    assert np.isnan(silent).all()


def advantage_beyond(judge: list[float], margins: list[float]) -> float:
    return float(advantages_beyond_reader(np.array(judge), np.array(margins)).mean())


def test_the_advantage_beyond_a_reader_is_0_for_a_judge_that_goes_by_it() -> None:
    margins = [1.0] * 40 + [-1.0] * 10
    judge_of_reader = [1.0] * 40 + [0.0] * 10
    assert advantage_beyond(judge_of_reader, margins) == pytest.approx(0)
    # On pairs of which the reader knows nothing both guess: right in half of them.
    unsure = [1.0] * 40 + [1e-12] * 40
    assert advantage_beyond([1.0] * 40 + [1.0, 0.0] * 20, unsure) == pytest.approx(0, abs=1e-6)


def test_the_advantage_beyond_a_reader_that_knows_nothing_is_that_over_guessing() -> None:
    margins = [1.0, -1.0] * 20
    judge = [1.0, 1.0, 1.0, 0.0] * 5 + [1.0, 1.0, 0.0, 1.0] * 5
    assert advantage_beyond(judge, margins) == pytest.approx(np.mean(judge) - 0.5)
    assert advantage_beyond(judge, [0.0] * 40) == pytest.approx(np.mean(judge) - 0.5)


def test_a_reader_that_is_nearly_always_right_leaves_too_few_pairs_to_see_more() -> None:
    judge = np.array([1.0] * 57 + [0.0] * 3)
    margins = np.array([1.0] * 57 + [-1.0] * 3)
    assert np.isnan(advantages_beyond_reader(judge, margins)).all()
    assert np.isnan(advantages_beyond_reader(judge, np.ones(60))).all()
    unscored = np.where(np.arange(60) == 5, np.nan, judge)
    advantages = advantages_beyond_reader(unscored, np.resize([1.0, -1.0], 60))
    assert np.isnan(advantages[5]) and np.isfinite(np.delete(advantages, 5)).all()
