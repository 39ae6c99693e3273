"""Predictions from the text alone, without any model: classifiers that are never tested on what
they learnt from.

The text-only observer of a matrix (`text_only_observer`), the words of evaluation awareness
(`log_odds`, `log_odds_elsewhere`), the best of several readers of a text (`best_reader`) and the
pairs of the probes (`pair_differences`, whose regression is the probes' own).
"""

import functools
import itertools
import math
import operator
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from selfprobe.stats.estimate import BoolArray, FloatArray, IntArray, auroc

TWO_LETTERS = re.compile(r"\w\w")
SMALLEST_TEXT_SAMPLE = 20  # fewer questions teach a text classifier nothing


@dataclass(frozen=True)
class TextOnly:
    """Result of `text_only_observer`."""

    hits: FloatArray
    """1 where the classifier names the truth of a question it was not trained on, else 0,
    [question].
    """
    reason: str = ""
    """Reason why all hits are NaN."""


def text_only_observer(
    questions: Sequence[str],
    truths: Sequence[Any],
    *,
    right: Callable[[Any, Any], bool] = operator.eq,
    folds: int = 5,
    seed: int = 0,
) -> TextOnly:
    """Hits of an observer that sees only the question's text, by the grading rule `right(said,
    truth)`.

    A truth is predicted from words and punctuation marks by a classifier that saw neither its
    question nor a verbatim repetition of it. Truths may be of many classes, rare ones included: a
    class absent from training is never named. Under 20 different questions: NaN.
    """
    texts = np.asarray(questions, dtype=object)
    labels = np.asarray(truths)
    if texts.shape != labels.shape or texts.ndim != 1 or folds < 2:
        raise ValueError(
            f"expected one truth a question and folds >= 2, got {labels.shape}, {texts.shape}, "
            f"{folds}"
        )
    hits = np.full(len(texts), math.nan)
    different_count = len(set(questions))
    if different_count < max(SMALLEST_TEXT_SAMPLE, folds):
        reason = (
            f"{different_count} different questions, a text classifier needs {SMALLEST_TEXT_SAMPLE}"
        )
        return TextOnly(hits, reason)

    row_order = _value_order(texts)
    labels = labels[row_order]
    label_codes = np.unique(labels.astype(str), return_inverse=True)[1]
    for fold in _folds_of_texts(tuple(texts[row_order]), folds, seed):
        train_labels = labels[fold.train]
        if len(set(train_labels)) == 1:  # scikit-learn refuses one class
            predicted_labels = np.full(len(fold.test), train_labels[0])
        else:
            label_order = np.argsort(label_codes[fold.train], kind="stable")
            # Many classes: lbfgs takes twice as long for the same predictions.
            classifier = _regression(c=10, solver="newton-cg")
            with _single_threaded():
                classifier.fit(fold.train_words[label_order], train_labels[label_order])
            predicted_labels = classifier.predict(fold.test_words)
        label_pairs = zip(predicted_labels, labels[fold.test], strict=True)
        hits[row_order[fold.test]] = [right(predicted, truth) for predicted, truth in label_pairs]
    return TextOnly(hits)


@dataclass(frozen=True)
class _Fold:
    """A fold of texts, with its words as numbers."""

    train: IntArray
    """Rows to train on."""
    test: IntArray
    train_words: Any
    """TF-IDF [training row, word] of words and punctuation marks, sparse."""
    test_words: Any


@functools.lru_cache(maxsize=8)  # the models of a matrix were asked the same questions
def _folds_of_texts(texts: tuple[str, ...], folds: int, seed: int) -> tuple[_Fold, ...]:
    """Folds of texts; equal texts are in one fold."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.model_selection import GroupKFold

    rows = np.asarray(texts, dtype=object)
    splitter = GroupKFold(folds, shuffle=True, random_state=seed)
    text_folds = []
    for train, test in splitter.split(rows, groups=rows):
        vectorizer = TfidfVectorizer(token_pattern=r"\w+|[^\w\s]", sublinear_tf=True)
        train_words = vectorizer.fit_transform(rows[train])
        test_words = vectorizer.transform(rows[test])
        text_folds.append(_Fold(train, test, train_words, test_words))
    return tuple(text_folds)


def log_odds(
    texts: Sequence[str],
    positive: BoolArray,
    groups: npt.NDArray[Any],
    *,
    each_apart: bool = False,
) -> FloatArray:
    """Log-odds [row] by words and pairs of words, from a classifier that never saw the row's group.

    NaN where it cannot be trained: one group, one class, no word of two letters. `each_apart`: see
    `_folds`.
    """
    text_log_odds = np.full(len(texts), math.nan)
    if len(set(groups)) < 2 or positive.all() or not positive.any():
        return text_log_odds
    rows = np.asarray(texts, dtype=object)
    row_order = _value_order(rows, positive, groups)
    rows, positive, groups = rows[row_order], positive[row_order], groups[row_order]
    for train, test in _folds(positive, groups, each_apart):
        has_both_labels = len(set(positive[train])) == 2
        if has_both_labels and any(map(TWO_LETTERS.search, rows[train])):
            classifier = _word_classifier(rows[train], positive[train])
            text_log_odds[row_order[test]] = classifier.decision_function(rows[test])
    return text_log_odds


def log_odds_elsewhere(
    texts: Sequence[str], positive: BoolArray, others: Sequence[str]
) -> FloatArray:
    """Log-odds of `others` by words and pairs of words, from a classifier of `texts`; NaN where
    that has one class.
    """
    if positive.all() or not positive.any() or not others:
        return np.full(len(others), math.nan)
    rows = np.asarray(texts, dtype=object)
    row_order = _value_order(rows, positive)
    classifier = _word_classifier(rows[row_order], positive[row_order])
    other_rows = np.asarray(others, dtype=object)
    return np.asarray(classifier.decision_function(other_rows), dtype=float)


def _value_order(*columns: npt.NDArray[Any]) -> IntArray:
    """An order of the rows by their values alone: a solver ends slightly elsewhere where rows are
    ordered otherwise.
    """
    value_codes = [np.unique(column.astype(str), return_inverse=True)[1] for column in columns]
    return np.lexsort(value_codes)


def _folds(
    positive: BoolArray, groups: npt.NDArray[Any], each_apart: bool
) -> Iterator[tuple[IntArray, IntArray]]:
    """(train, test) rows of five folds of groups; with `each_apart` of one fold a group, where all
    hold both labels.

    Else leaving out a group shifts the share of labels against it, and the scores of all groups
    together rank backwards (.31 on 33 public sources of one label each, where five folds of like
    shares find .63): then five folds of groups, stratified by label.
    """
    from sklearn.model_selection import GroupKFold, LeaveOneGroupOut

    splitter: Any = GroupKFold(min(5, len(set(groups))), shuffle=True, random_state=0)
    if each_apart:
        splitter = LeaveOneGroupOut()
        for group in set(groups):
            if len(set(positive[groups == group])) == 1:
                yield from _stratified_folds(positive, groups)
                return
    yield from splitter.split(positive, positive, groups)


def _stratified_folds(
    positive: BoolArray, groups: npt.NDArray[Any]
) -> Iterator[tuple[IntArray, IntArray]]:
    """(train, test) rows of up to five folds of groups with like shares of labels; none where there
    are too few.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    positive_count = int(positive.sum())
    fold_count = min(5, len(set(groups)), positive_count, len(positive) - positive_count)
    if fold_count > 1:
        splitter = StratifiedGroupKFold(fold_count, shuffle=True, random_state=0)
        yield from splitter.split(positive, positive, groups)


def _word_classifier(texts: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Any:
    """A fitted pipeline over words of two letters or more and pairs of them."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    with _single_threaded():
        return make_pipeline(vectorizer, _regression()).fit(texts, labels)


def _regression(*, c: float = 1.0, solver: str = "lbfgs") -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=c, max_iter=2000, solver=solver)


@contextmanager
def _single_threaded() -> Iterator[None]:
    """A block of fits: several threads would wait for one another. That most truths are rare is no
    fault here.
    """
    with _thread_pools().limit(limits=1), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="The number of unique classes", category=UserWarning
        )
        yield


@functools.cache  # looking for them takes as long as a fit
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


READERS = ("words", "characters", "style")
"""Readers of a text: TF-IDF of words and pairs of words, of 2 to 5 characters with their case, and
`style_of`.
"""
CHARACTERS_READ = 4000
"""Number of characters of a text that the reader of characters sees."""
RIDGE_PENALTY = 1.0
"""Ridge penalty, where the mean square of a row is 1."""
MOST_DIRECTIONS = 400
"""Number of singular directions of more texts than that; of fewer all are kept."""
MOST_STRATIFIED_GROUPS = 50
"""Number of groups up to which folds are stratified by label, which takes a second of hundreds."""
OPTION_MARK = re.compile(r"(?m)^\s*\(?[A-Ea-e1-9][).:\]]\s")
PUNCTUATION_MARKS = "?!.,:;\"'()-*#`"


@dataclass(frozen=True)
class BestReader:
    """Result of `best_reader`."""

    scores: FloatArray
    """Scores [row] in standard deviations of the training rows' own; NaN where nothing could be
    learnt.
    """
    name: str = ""
    """Reader that was chosen in most folds; "" where nothing could be learnt."""


def read_by(texts: Sequence[str]) -> dict[str, FloatArray]:
    """Features of the texts for each of READERS, [row, k], for `best_reader`. No label is used
    here.
    """
    if not texts:
        return {}
    rows = np.asarray(texts, dtype=object)
    row_order = _value_order(rows)
    original_order = np.argsort(row_order)
    ordered_texts = list(rows[row_order])
    return {reader: _reader_features(reader, ordered_texts)[original_order] for reader in READERS}


def best_reader(
    features_of: Mapping[str, FloatArray],
    positive: BoolArray,
    groups: npt.NDArray[Any],
    *,
    each_apart: bool = False,
) -> BestReader:
    """Ratings of each row by the best reader, which is chosen and trained on rows of other groups
    alone.

    In each fold every reader is cross-fitted on the training rows, groups together, and the one
    with the highest AUROC there rates the fold's rows.

    Args:
        features_of: Name of a reader → its features, [row, k], of mean square 1 a row, as
            `read_by` has them.
        positive: Label of each row, [row].
        groups: Group of each row, [row]: rows of one group are never on both sides.
        each_apart: See `_folds`.
    """
    scores = np.full(len(positive), math.nan)
    if len(set(groups)) < 2 or positive.all() or not positive.any():
        return BestReader(scores)

    first_features = [features.round(6).T[0] for features in features_of.values()]
    row_order = _value_order(*first_features, positive, groups)
    positive, groups = positive[row_order], groups[row_order]
    features_of = {reader: features[row_order] for reader, features in features_of.items()}

    folds_won = Counter[str]()
    for train, test in _folds(positive, groups, each_apart):
        train_ratings = {}
        train_aurocs = {}
        for reader, features in features_of.items():
            ratings = _cross_fitted(features[train], positive[train], groups[train])
            train_ratings[reader] = ratings
            train_aurocs[reader] = auroc(positive[train], ratings)
        if any(map(math.isnan, train_aurocs.values())):  # too few groups to choose by
            continue

        best_name = max(train_aurocs, key=lambda reader: train_aurocs[reader])
        folds_won[best_name] += 1
        features = features_of[best_name]
        test_ratings = _ridge(features[train], positive[train], features[test])
        train_mean = np.nanmean(train_ratings[best_name])
        train_spread = float(np.nanstd(train_ratings[best_name])) or 1.0
        scaled_ratings = (test_ratings - train_mean) / train_spread
        scores[row_order[test]] = scaled_ratings.round(9)  # equal texts are equal
    if not folds_won:
        return BestReader(scores)
    return BestReader(scores, max(features_of, key=lambda reader: folds_won[reader]))


def style_of(text: str) -> list[float]:
    """Style of a text: length, digits, line breaks, option marks, capitals, punctuation,
    paragraphs, words.
    """
    length = max(len(text), 1)
    letter_count = max(sum(map(str.isalpha, text)), 1)
    digit_share = sum(map(str.isdigit, text)) / length
    line_break_share = text.count("\n") / length
    capital_share = sum(map(str.isupper, text)) / letter_count
    mark_shares = [text.count(mark) / length for mark in PUNCTUATION_MARKS]
    option_count = 1 + len(OPTION_MARK.findall(text))
    paragraph_count = 1 + text.count("\n\n")
    word_count = 1 + len(text.split())
    return [
        digit_share,
        line_break_share,
        capital_share,
        *mark_shares,
        *np.log([length, option_count, paragraph_count, word_count]),
        float(text[:1].isupper()),
    ]


def _reader_features(reader: str, texts: list[str]) -> FloatArray:
    """Features of a reader, [row, k], of mean square 1 a row."""
    if reader == "style":
        styles = np.array([style_of(text) for text in texts])
        spreads = styles.std(axis=0)
        divisors = np.where(spreads > 1e-12, spreads, 1.0)
        features = (styles - styles.mean(axis=0)) / divisors
    else:
        features = _dense_coordinates(_sparse_words(reader, texts))
    mean_norm = math.sqrt(float((features**2).sum(axis=1).mean()))
    return np.asarray(features / mean_norm if mean_norm else features)


def _sparse_words(reader: str, texts: list[str]) -> Any:
    """TF-IDF of the texts, sparse; without a single word or character a column of 0."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2))
    if reader == "characters":
        vectorizer = TfidfVectorizer(
            sublinear_tf=True, analyzer="char", ngram_range=(2, 5), lowercase=False
        )
        texts = [text[:CHARACTERS_READ] for text in texts]
    if not any(map(vectorizer.build_analyzer(), texts)):
        return csr_matrix((len(texts), 1))
    return vectorizer.fit_transform(texts)


def _dense_coordinates(sparse_rows: Any) -> FloatArray:
    """Coordinates of sparse rows in the span of their largest singular directions; inner products
    stay.
    """
    if min(sparse_rows.shape) > MOST_DIRECTIONS:
        from sklearn.decomposition import TruncatedSVD

        decomposition = TruncatedSVD(MOST_DIRECTIONS, random_state=0)
        return np.asarray(decomposition.fit_transform(sparse_rows))
    values, vectors = np.linalg.eigh((sparse_rows @ sparse_rows.T).toarray())
    is_spanned = values > 1e-9 * max(values[-1], 1e-12)
    return np.asarray(vectors[:, is_spanned] * np.sqrt(values[is_spanned]))


def label_folds(
    positive: BoolArray, groups: npt.NDArray[Any]
) -> Iterator[tuple[IntArray, IntArray]]:
    """(train, test) rows of up to five folds of groups with like shares of labels."""
    if len(set(groups)) <= MOST_STRATIFIED_GROUPS:
        yield from _stratified_folds(positive, groups)
        return
    yield from _folds(positive, groups, each_apart=False)  # of many, random folds have like shares


def _cross_fitted(
    features: FloatArray, positive: BoolArray, groups: npt.NDArray[Any]
) -> FloatArray:
    """Ratings by a reader of rows in groups that it was not trained on; NaN where it cannot be
    trained.
    """
    ratings = np.full(len(features), math.nan)
    for train, test in label_folds(positive, groups):
        if len(set(positive[train])) == 2:
            ratings[test] = _ridge(features[train], positive[train], features[test])
    return ratings


def _ridge(features: FloatArray, positive: BoolArray, test_features: FloatArray) -> FloatArray:
    """Ratings of other rows by ridge regression on the labels."""
    feature_means = features.mean(axis=0)
    x = features - feature_means
    y = positive - positive.mean()
    weights = np.linalg.solve(x.T @ x + RIDGE_PENALTY * np.eye(x.shape[1]), x.T @ y)
    return np.asarray((test_features - feature_means) @ weights)


def pair_differences(
    first: Sequence[str], second: Sequence[str], train: IntArray
) -> FloatArray | None:
    """Coordinates [pair, k] of TF-IDF(first) − TF-IDF(second), with words and weights of the pairs
    in `train` alone.

    An L2 solution lies in the span of the training rows: coordinates in it are as good, and dense
    but small. None where there is nothing to learn: texts without a word of two letters, or pairs
    that differ in order alone.
    """
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(sublinear_tf=True)
    train_texts = [texts[index] for texts in (first, second) for index in train]
    if not any(map(vectorizer.build_analyzer(), train_texts)):
        return None
    vectorizer.fit(train_texts)
    word_differences: Any = csr_matrix(vectorizer.transform(first) - vectorizer.transform(second))
    products = (word_differences @ word_differences[train].T).toarray()
    values, vectors = np.linalg.eigh(products[train])
    is_spanned = values > 1e-9 * max(values[-1], 1e-12)
    if not is_spanned.any():
        return None
    return np.asarray(products @ (vectors[:, is_spanned] / np.sqrt(values[is_spanned])))


def pair_word_margins(
    first_texts: Sequence[str],
    second_texts: Sequence[str],
    first_is_better: BoolArray,
    groups: npt.NDArray[Any],
) -> FloatArray:
    """Log-odds [pair] that the first of two texts is the better one, by their words alone.

    Each is from a classifier that saw no pair of its group, and every other one in both orders:
    NaN where there is no other group, or no word of two letters.
    """
    margins = np.full(len(first_texts), math.nan)
    for train, test in _pair_folds(first_is_better, groups):
        differences = pair_differences(first_texts, second_texts, train)
        if differences is None:
            continue
        both_orders = np.concatenate([differences[train], -differences[train]])
        labels = np.concatenate([first_is_better[train], ~first_is_better[train]])
        with _single_threaded():
            classifier = _regression().fit(both_orders, labels)
        margins[test] = differences[test] @ classifier.coef_[0]
    return margins


def pair_length_margins(
    first_texts: Sequence[str],
    second_texts: Sequence[str],
    first_is_better: BoolArray,
    groups: npt.NDArray[Any],
) -> FloatArray:
    """How much longer [pair] the first of two texts is, or shorter where of the pairs of other
    groups the shorter text is better more often; NaN where there is no other group.
    """
    first_lengths = np.array([len(text) for text in first_texts])
    second_lengths = np.array([len(text) for text in second_texts])
    log_ratios = np.log((first_lengths + 1) / (second_lengths + 1))
    better_is_longer = np.sign(log_ratios) * np.where(first_is_better, 1, -1)
    margins = np.full(len(log_ratios), math.nan)
    for train, test in _pair_folds(first_is_better, groups):
        longer_is_better = better_is_longer[train].sum() >= 0
        margins[test] = log_ratios[test] if longer_is_better else -log_ratios[test]
    return margins


KEYWORD_COUNTS = (1, 2, 4)
"""Numbers of words that the readers of few words go by."""
LEAST_PAIRS_WITH_WORD = 3


def pair_keyword_margins(
    first_texts: Sequence[str],
    second_texts: Sequence[str],
    first_is_better: BoolArray,
    groups: npt.NDArray[Any],
) -> FloatArray:
    """Margins [pair, count] by the 1, 2 and 4 words that tell the better text best, each word said
    by one of the two texts; learnt as in `pair_word_margins`, and 0 where no word is.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    pair_count = len(first_texts)
    margins = np.full((pair_count, len(KEYWORD_COUNTS)), math.nan)
    vectorizer = CountVectorizer(binary=True)
    texts = [*first_texts, *second_texts]
    if not any(map(vectorizer.build_analyzer(), texts)):
        return margins

    has_word = vectorizer.fit_transform(texts).tocsc()
    all_differences = has_word[:pair_count] - has_word[pair_count:]
    pairs_with_word = abs(all_differences).sum(axis=0).A1
    frequent_words = np.flatnonzero(pairs_with_word >= LEAST_PAIRS_WITH_WORD)
    differences = all_differences[:, frequent_words].toarray().astype(float)
    return _few_mark_margins(differences, first_is_better, groups)


def style_and_order_of(text: str) -> list[float]:
    """Style of a text, the share of its words that are different, and the share of neighbouring
    words in alphabetical order.
    """
    words = text.lower().split()
    different_share = len(set(words)) / max(len(words), 1)
    neighbours = list(itertools.pairwise(words))
    rising_count = sum(first <= second for first, second in neighbours)
    rising_share = rising_count / max(len(neighbours), 1)
    return [*style_of(text), different_share, rising_share]


def pair_style_margins(
    first_texts: Sequence[str],
    second_texts: Sequence[str],
    first_is_better: BoolArray,
    groups: npt.NDArray[Any],
) -> FloatArray:
    """Margins [pair, 1 + count] by how two texts are written (`style_and_order_of`): by all marks
    together, and by the 1, 2 and 4 that tell the better text best; learnt as in `pair_word_margins`.
    """
    first_styles = np.array([style_and_order_of(text) for text in first_texts])
    second_styles = np.array([style_and_order_of(text) for text in second_texts])
    if not len(first_styles):
        return np.zeros((0, 1 + len(KEYWORD_COUNTS)))
    style_differences = first_styles - second_styles
    sizes = np.sqrt((style_differences**2).mean(axis=0))
    scaled_differences = style_differences / np.where(sizes > 1e-12, sizes, 1.0)

    margins = np.full((len(first_texts), 1), math.nan)
    labels = np.where(first_is_better, 1.0, -1.0)
    mark_count = scaled_differences.shape[1]
    for train, test in _pair_folds(first_is_better, groups):
        train_differences = scaled_differences[train]
        penalised_products = train_differences.T @ train_differences + mark_count * np.eye(
            mark_count
        )
        weights = np.linalg.solve(penalised_products, train_differences.T @ labels[train])
        margins[test, 0] = scaled_differences[test] @ weights
    few_mark_margins = _few_mark_margins(scaled_differences, first_is_better, groups)
    return np.concatenate([margins, few_mark_margins], axis=1)


def _few_mark_margins(
    differences: FloatArray, first_is_better: BoolArray, groups: npt.NDArray[Any]
) -> FloatArray:
    """Margins [pair, count] by the 1, 2 and 4 columns of `differences  # [pair, mark]` that tell
    the better text best.
    """
    margins = np.full((len(differences), len(KEYWORD_COUNTS)), math.nan)
    labels = np.where(first_is_better, 1.0, -1.0)
    for train, test in _pair_folds(first_is_better, groups):
        marks: list[int] = []
        residuals: FloatArray = labels[train]
        weights = np.zeros(0)
        for column, mark_count in enumerate(KEYWORD_COUNTS):
            while len(marks) < min(mark_count, differences.shape[1]):
                similarities = np.abs(differences[train].T @ residuals)
                similarities[marks] = -1
                marks.append(int(similarities.round(9).argmax()))
                mark_differences = differences[train][:, marks]
                solution = np.linalg.lstsq(mark_differences, labels[train], rcond=None)
                weights = np.asarray(solution[0], dtype=float)
                residuals = labels[train] - mark_differences @ weights
            margins[test, column] = differences[test][:, marks] @ weights
    return margins


def _pair_folds(
    first_is_better: BoolArray, groups: npt.NDArray[Any]
) -> Iterator[tuple[IntArray, IntArray]]:
    """(train, test) pairs of up to five folds of groups; none of a single group."""
    if len(set(groups)) > 1:
        yield from _folds(first_is_better, groups, each_apart=False)


LEAST_EFFECTIVE_PAIRS = 8
"""Number of pairs that must be left to see what a judge knows beyond a reader."""


def advantages_beyond_reader(judge_values: FloatArray, reader_margins: FloatArray) -> FloatArray:
    """Values [pair] whose mean is a judge's advantage over guessing among pairs on which a reader
    says the same, and whose spread is that of this mean.

    It is the coefficient of the better text in a line for the judge's choice that has the reader's
    choice and the rank of its margin too: 0 for a judge that goes by the reader and a coin, and
    the share of right choices less one half where the reader knows nothing.

    Args:
        judge_values: 1 right, 0 wrong, .5 a tie, [pair]; NaN unscored.
        reader_margins: Above 0 where the reader names the better text, [pair] or, of several
            readers, [pair, reader]; NaN where it could not be trained.

    Returns:
        NaN where either has no value, and everywhere where the reader leaves fewer than
        `LEAST_EFFECTIVE_PAIRS` pairs.
    """
    advantages = np.full(len(judge_values), math.nan)
    all_margins = reader_margins.reshape(len(judge_values), -1)
    is_known = ~(np.isnan(judge_values) | np.isnan(all_margins).any(axis=1))
    pair_count = int(is_known.sum())
    if pair_count < LEAST_EFFECTIVE_PAIRS:
        return advantages

    # Each pair is turned so that its better text is the first: 1 is right, -1 wrong.
    choices = 2 * judge_values[is_known] - 1
    margins = all_margins[is_known].round(9)
    reader_choices = np.sign(margins)
    margin_ranks = reader_choices * rankdata(np.abs(margins), axis=0) / pair_count
    reader_columns = np.concatenate([reader_choices, margin_ranks], axis=1)
    label_and_choice = np.stack([np.ones(pair_count), choices], axis=1)
    reader_weights = np.linalg.lstsq(reader_columns, label_and_choice, rcond=None)[0]
    label_residuals, choice_residuals = (label_and_choice - reader_columns @ reader_weights).T

    label_variance = float(np.mean(label_residuals**2))
    if label_variance < 1e-9:
        return advantages
    effective_pairs = pair_count * label_variance**2 / float(np.mean(label_residuals**4))
    if effective_pairs < LEAST_EFFECTIVE_PAIRS:
        return advantages

    coefficient = float(label_residuals @ choice_residuals) / pair_count / label_variance
    errors = label_residuals * (choice_residuals - coefficient * label_residuals) / label_variance
    spare_share = (pair_count - int(np.linalg.matrix_rank(reader_columns))) / pair_count
    advantages[is_known] = (coefficient + errors / math.sqrt(spare_share)) / 2
    return advantages
