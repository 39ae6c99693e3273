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
    pair_style_margins,
    pair_word_margins,
    text_only_observer,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_text_only_observer_learns_what_the_text_tells_and_nothing_else() -> None:
    animals = ["cat", "dog", "owl", "fox"]
    topics = [f"topic{number}" for number in range(20)]
    questions = [f"Write about a {animal}, {topic}" for animal in animals for topic in topics]
    told_truths = [question.split()[3] for question in questions]
    told = text_only_observer(questions, told_truths)
    assert told.hits.mean() > 0.95 and told.reason == ""

    drawn_truths = rng().integers(0, 4, 80)
    blind_hits = text_only_observer(questions, drawn_truths).hits
    assert 0.05 < blind_hits.mean() < 0.45
    assert text_only_observer(questions, drawn_truths).hits.tolist() == blind_hits.tolist()


def test_text_only_observer_agrees_with_scikit_learns_cross_val_predict() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    words = np.array(["sun", "sea", "sky", "oak", "elm", "ash"])
    generator = rng()
    questions = [f"{' '.join(generator.choice(words, 4))} {number}" for number in range(60)]
    truths = ["a" if "sun" in question else "b" for question in questions]
    vectorizer = TfidfVectorizer(token_pattern=r"\w+|[^\w\s]", sublinear_tf=True)
    predicted = cross_val_predict(
        make_pipeline(vectorizer, LogisticRegression(C=10)),
        np.array(questions, object),
        truths,
        groups=questions,
        cv=GroupKFold(5, shuffle=True, random_state=0),
    )
    hits = text_only_observer(questions, truths).hits
    assert hits.tolist() == (predicted == truths).tolist()


def test_text_only_observer_never_sees_a_repeated_question_in_training() -> None:
    questions = [f"question number{i}" for i in range(40)] * 2
    truths = [f"word{i}" for i in range(40)] * 2  # only a copy of the question could tell
    assert text_only_observer(questions, truths).hits.sum() == 0


def test_text_only_observer_with_rare_or_single_classes_and_too_few_questions() -> None:
    questions = [f"question number{number}" for number in range(30)]
    assert text_only_observer(questions, ["the"] * 30).hits.tolist() == [1] * 30
    rare_truths = ["the"] * 29 + ["a"]
    assert text_only_observer(questions, rare_truths).hits.tolist() == [1] * 29 + [0]
    too_few = text_only_observer(questions[:19], ["the"] * 19)
    assert np.isnan(too_few.hits).all()
    assert too_few.reason == "19 different questions, a text classifier needs 20"
    with pytest.raises(ValueError, match="one truth a question"):
        text_only_observer(questions, ["the"])


def sentences(sentence_count: int) -> list[str]:
    vocabulary = [f"word{number}" for number in range(30)]
    return [" ".join(words) for words in rng().choice(vocabulary, (sentence_count, 6))]


def test_neither_text_nor_label_of_a_group_reaches_the_scores_of_its_rows() -> None:
    texts = sentences(60)
    groups = np.repeat(np.arange(12), 5)
    positive = np.arange(60) % 2 == 0
    odds = log_odds(texts, positive, groups, each_apart=True)
    changed_texts = ["word1 word2 word3", *texts[1:]]
    changed_odds = log_odds(changed_texts, positive, groups, each_apart=True)
    assert (changed_odds[1:5] == odds[1:5]).all() and (changed_odds[5:] != odds[5:]).all()
    positive[:2] = ~positive[:2]
    assert (log_odds(texts, positive, groups, each_apart=True)[:5] == odds[:5]).all()


def test_log_odds_are_undefined_where_there_is_nothing_to_learn() -> None:
    texts = sentences(8)
    groups = np.arange(8)
    half_positive = groups % 2 == 0
    assert np.isnan(log_odds(texts, np.ones(8, dtype=bool), groups)).all()
    assert np.isnan(log_odds(texts, half_positive, np.zeros(8))).all()
    assert np.isfinite(log_odds(texts, half_positive, groups)).all()
    # One positive row, and groups of one label each: no two folds hold both.
    single_positive = groups == 0
    assert np.isnan(log_odds(texts, single_positive, groups, each_apart=True)).all()


def test_words_of_the_tested_pairs_move_no_coordinate_of_the_others() -> None:
    first_texts = sentences(20)
    second_texts = sentences(40)[20:]
    train = np.arange(12)
    x = pair_differences(first_texts, second_texts, train)
    assert x is not None and x.shape[0] == 20
    changed_texts = [*first_texts[:19], "word1 word2 word3 unheard"]
    changed_x = pair_differences(changed_texts, second_texts, train)
    assert changed_x is not None
    assert (x[:19] == changed_x[:19]).all() and (x[19] != changed_x[19]).any()


def test_coordinates_of_pairs_keep_the_products_of_the_training_rows() -> None:
    first_texts = sentences(20)
    second_texts = sentences(40)[20:]
    train = np.arange(12)
    x = pair_differences(first_texts, second_texts, train)
    swapped_x = pair_differences(second_texts, first_texts, train)
    assert x is not None and swapped_x is not None
    assert swapped_x @ swapped_x.T == pytest.approx(x @ x.T)
    norms = np.linalg.norm(x[train], axis=1)
    assert (norms > 0.5).all() and (norms < 2).all(), "differences of two unit vectors"


def test_pairs_without_words_or_without_a_difference_teach_nothing() -> None:
    assert pair_differences(["a", "b"], ["c", "d"], np.arange(2)) is None
    assert pair_differences(["one two", "to be"], ["two one", "be to"], np.arange(2)) is None


def test_texts_without_a_word_of_two_letters_have_no_odds_and_stop_nobody() -> None:
    positive = np.arange(40) % 2 == 0
    groups = np.arange(40) // 4
    assert np.isnan(text_only.log_odds(["? !", "a b"] * 20, positive, groups)).all()


def test_the_best_reader_finds_what_words_do_not_show_and_nothing_in_noise() -> None:
    """Capitals go with the label; words are read in small letters."""
    positive = rng().random(120) < 0.5
    groups = np.arange(120) // 6
    vocabulary = [f"word{number}" for number in range(30)]
    plain_texts = [" ".join(rng(seed).choice(vocabulary, 8)) for seed in range(120)]
    capital_texts = []
    for text, is_positive in zip(plain_texts, positive, strict=True):
        capital_texts.append(text.upper() if is_positive else text)

    capital_features = text_only.read_by(capital_texts)
    best = text_only.best_reader(capital_features, positive, groups)
    assert auroc(positive, best.scores) > 0.95 and best.name in ("characters", "style")
    assert auroc(positive, text_only.log_odds(capital_texts, positive, groups)) < 0.7

    plain_features = text_only.read_by(plain_texts)
    best_of_noise = text_only.best_reader(plain_features, positive, groups, each_apart=True)
    assert 0.3 < auroc(positive, best_of_noise.scores) < 0.7


def test_the_best_reader_of_one_class_or_one_group_is_none() -> None:
    features_of = text_only.read_by(["one", "two", "three", "four"])
    for positive, groups in ((np.ones(4, bool), np.arange(4)), (np.arange(4) < 2, np.zeros(4))):
        best = text_only.best_reader(features_of, positive, groups)
        assert np.isnan(best.scores).all() and best.name == ""


@pytest.mark.parametrize("reader", [pair_length_margins, pair_word_margins])
def test_a_reader_of_pairs_learns_what_tells_the_better_text_and_swapping_texts_turns_its_margin(
    reader: Any,
) -> None:
    first_texts = []
    second_texts = []
    first_is_better = np.arange(40) % 3 == 0
    for number, is_better in enumerate(first_is_better):
        texts = [f"surely yes indeed {number}", f"no {number}"]
        if not is_better:
            texts.reverse()
        first_texts.append(texts[0])
        second_texts.append(texts[1])
    groups = np.arange(40).astype(str)
    margins = reader(first_texts, second_texts, first_is_better, groups)
    assert ((margins > 0) == first_is_better).all()
    swapped_margins = reader(second_texts, first_texts, ~first_is_better, groups)
    np.testing.assert_allclose(swapped_margins, -margins, atol=1e-6)


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
    first_texts = []
    second_texts = []
    is_first = np.arange(60) % 2 == 0
    for first_is_better in is_first:
        texts = [" ".join(generator.choice(fillers, 5)) for _ in range(2)]
        texts[0 if first_is_better else 1] += " certainly"
        first_texts.append(texts[0])
        second_texts.append(texts[1])
    groups = np.arange(60).astype(str)
    margins = pair_keyword_margins(first_texts, second_texts, is_first, groups)
    assert margins.shape == (60, 3)
    assert ((margins[:, 0] > 0) == is_first).all()
    wordless = pair_keyword_margins(["a"] * 6, ["b"] * 6, np.ones(6, bool), np.arange(6))
    assert np.isnan(wordless).all()


@pytest.mark.parametrize(
    "written",
    [
        "\n".join,
        ",".join,
        lambda words: " ".join(words).title(),
        lambda words: " ".join(sorted(words)),
        lambda words: " ".join([words[0]] * len(words)),
    ],
    ids=["line breaks", "commas", "capitals", "sorted", "one word repeated"],
)
def test_a_reader_of_style_sees_how_the_better_text_is_written(written: Any) -> None:
    generator = rng()
    fillers = [f"filler{number}" for number in range(30)]
    is_first = np.arange(60) % 2 == 0
    first_texts = []
    second_texts = []
    for first_is_better in is_first:
        better, worse = (list(generator.choice(fillers, 8)) for _ in range(2))
        texts = [written(better), " ".join(worse)]
        first_texts.append(texts[0 if first_is_better else 1])
        second_texts.append(texts[1 if first_is_better else 0])
    groups = np.arange(60).astype(str)
    margins = pair_style_margins(first_texts, second_texts, is_first, groups)
    assert margins.shape == (60, 4)
    assert ((margins[:, 1] > 0) == is_first).mean() > 0.95
    assert pair_style_margins([], [], np.zeros(0, bool), np.zeros(0)).shape == (0, 4)


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
