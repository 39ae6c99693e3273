"""Predictions from the text alone, without any model: classifiers that are never tested on what
they learnt from.

The text-only observer of a matrix (`text_only_observer`), the words of evaluation awareness
(`log_odds`, `log_odds_elsewhere`), the best of several readers of a text (`best_reader`) and the
pairs of the probes (`pair_differences`, whose regression is the probes' own).
"""

import functools
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

from selfprobe.stats.estimate import FloatArray, auroc

IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
_WORD = re.compile(r"\w\w")
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
    texts, labels = np.asarray(questions, dtype=object), np.asarray(truths)
    if texts.shape != labels.shape or texts.ndim != 1 or folds < 2:
        raise ValueError(
            f"expected one truth a question and folds >= 2, got {labels.shape}, {texts.shape}, {folds}"
        )
    hits, different = np.full(len(texts), math.nan), len(set(questions))
    if different < max(SMALLEST_TEXT_SAMPLE, folds):
        return TextOnly(
            hits, f"{different} different questions, a text classifier needs {SMALLEST_TEXT_SAMPLE}"
        )
    order = _order(texts)
    labels = labels[order]
    label_codes = np.unique(labels.astype(str), return_inverse=True)[1]
    for fold in _folds_of_texts(tuple(texts[order]), folds, seed):
        if (
            len(set(labels[fold.train])) == 1
        ):  # nothing to choose between; scikit-learn refuses one class
            predicted = np.full(len(fold.test), labels[fold.train][0])
        else:
            by_label = np.argsort(label_codes[fold.train], kind="stable")
            # Many classes: lbfgs takes twice as long for the same predictions.
            model = _regression(c=10, solver="newton-cg")
            with _single_threaded():
                model.fit(fold.train_words[by_label], labels[fold.train][by_label])
            predicted = model.predict(fold.test_words)
        hits[order[fold.test]] = [
            right(said, truth) for said, truth in zip(predicted, labels[fold.test], strict=True)
        ]
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
    out = list[_Fold]()
    for train, test in GroupKFold(folds, shuffle=True, random_state=seed).split(rows, groups=rows):
        words = TfidfVectorizer(token_pattern=r"\w+|[^\w\s]", sublinear_tf=True)
        train_words = words.fit_transform(rows[train])
        out.append(_Fold(train, test, train_words, words.transform(rows[test])))
    return tuple(out)


def log_odds(
    texts: Sequence[str],
    positive: npt.NDArray[np.bool_],
    groups: npt.NDArray[Any],
    *,
    each_apart: bool = False,
) -> FloatArray:
    """Log-odds [row] by words and pairs of words, from a classifier that never saw the row's group.

    NaN where it cannot be trained: one group, one class, no word of two letters. `each_apart`: see
    `_folds`.
    """
    rows, out = np.asarray(texts, dtype=object), np.full(len(texts), math.nan)
    if len(set(groups)) < 2 or positive.all() or not positive.any():
        return out
    order = _order(rows, positive, groups)
    rows, positive, groups = rows[order], positive[order], groups[order]
    for train, test in _folds(positive, groups, each_apart):
        if len(set(positive[train])) == 2 and any(map(_WORD.search, rows[train])):
            out[order[test]] = _fitted(rows[train], positive[train]).decision_function(rows[test])
    return out


def log_odds_elsewhere(
    texts: Sequence[str], positive: npt.NDArray[np.bool_], others: Sequence[str]
) -> FloatArray:
    """Log-odds of `others` by words and pairs of words, from a classifier of `texts`; NaN where
    that has one class.
    """
    if positive.all() or not positive.any() or not others:
        return np.full(len(others), math.nan)
    rows = np.asarray(texts, dtype=object)
    order = _order(rows, positive)
    fitted = _fitted(rows[order], positive[order])
    return np.asarray(fitted.decision_function(np.asarray(others, dtype=object)), dtype=float)


def _order(*columns: npt.NDArray[Any]) -> IntArray:
    """An order of the rows by their values alone: a solver ends slightly elsewhere where rows are
    ordered otherwise.
    """
    return np.lexsort([np.unique(column.astype(str), return_inverse=True)[1] for column in columns])


def _folds(
    positive: npt.NDArray[np.bool_], groups: npt.NDArray[Any], each_apart: bool
) -> Iterator[tuple[IntArray, IntArray]]:
    """(train, test) rows of five folds of groups; with `each_apart` of one fold a group, where all
    hold both labels.

    Else leaving out a group shifts the share of labels against it, and the scores of all groups
    together rank backwards (.31 on 33 public sources of one label each, where five folds of like
    shares find .63): then five folds of groups, stratified by label.
    """
    from sklearn.model_selection import GroupKFold, LeaveOneGroupOut

    if each_apart and any(len(set(positive[groups == group])) == 1 for group in set(groups)):
        yield from _stratified(positive, groups)
        return
    five = GroupKFold(min(5, len(set(groups))), shuffle=True, random_state=0)
    splitter: Any = LeaveOneGroupOut() if each_apart else five
    yield from splitter.split(positive, positive, groups)


def _stratified(
    positive: npt.NDArray[np.bool_], groups: npt.NDArray[Any]
) -> Iterator[tuple[IntArray, IntArray]]:
    """(train, test) rows of up to five folds of groups with like shares of labels; none where there
    are too few.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    folds = min(5, len(set(groups)), int(positive.sum()), int((~positive).sum()))
    if folds > 1:
        yield from StratifiedGroupKFold(folds, shuffle=True, random_state=0).split(
            positive, positive, groups
        )


def _fitted(texts: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Any:
    """A fitted pipeline over words of two letters or more and pairs of them."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    with _single_threaded():
        return make_pipeline(words, _regression()).fit(texts, labels)


def _regression(*, c: float = 1.0, solver: str = "lbfgs") -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=c, max_iter=2000, solver=solver)


@contextmanager
def _single_threaded() -> Iterator[None]:
    """A block of fits: several threads would wait for one another. That most truths are rare is no
    fault here.
    """
    with _pools().limit(limits=1), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="The number of unique classes", category=UserWarning
        )
        yield


@functools.cache  # looking for them takes as long as a fit
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


READERS = ("words", "characters", "style")
"""Readers of a text: TF-IDF of words and pairs of words, of 2 to 5 characters with their case, and
`style_of`.
"""
READ = 4000
"""Number of characters of a text that the reader of characters sees."""
PENALTY = 1.0
"""Ridge penalty, where the mean square of a row is 1."""
DIMENSIONS = 400
"""Number of singular directions of more texts than that; of fewer all are kept."""
FEW_GROUPS = 50
"""Number of groups up to which folds are stratified by label, which takes a second of hundreds."""
_OPTION = re.compile(r"(?m)^\s*\(?[A-Ea-e1-9][).:\]]\s")
_MARKS = "?!.,:;\"'()-*#`"


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
    rows = np.asarray(texts, dtype=object)
    order = _order(rows)
    back = np.argsort(order)
    return (
        {name: _coordinates(name, list(rows[order]))[back] for name in READERS} if len(rows) else {}
    )


def best_reader(
    read: Mapping[str, FloatArray],
    positive: npt.NDArray[np.bool_],
    groups: npt.NDArray[Any],
    *,
    each_apart: bool = False,
) -> BestReader:
    """Ratings of each row by the best reader, which is chosen and trained on rows of other groups
    alone.

    In each fold every reader is cross-fitted on the training rows, groups together, and the one
    with the highest AUROC there rates the fold's rows.

    Args:
        read: Name of a reader → its features, [row, k], of mean square 1 a row, as `read_by` has
            them.
        positive: Label of each row, [row].
        groups: Group of each row, [row]: rows of one group are never on both sides.
        each_apart: See `_folds`.
    """
    out, chosen = np.full(len(positive), math.nan), Counter[str]()
    if len(set(groups)) < 2 or positive.all() or not positive.any():
        return BestReader(out)
    order = _order(*(x.round(6).T[0] for x in read.values()), positive, groups)
    positive, groups = positive[order], groups[order]
    read = {name: x[order] for name, x in read.items()}
    for train, test in _folds(positive, groups, each_apart):
        inner = {
            name: _cross_fitted(x[train], positive[train], groups[train])
            for name, x in read.items()
        }
        ranked = {name: auroc(positive[train], scores) for name, scores in inner.items()}
        if any(map(math.isnan, ranked.values())):  # too few groups to choose by
            continue
        name = max(ranked, key=lambda name: ranked[name])
        chosen[name] += 1
        rated = _ridge(read[name][train], positive[train], read[name][test])
        scaled = (rated - np.nanmean(inner[name])) / (float(np.nanstd(inner[name])) or 1.0)
        out[order[test]] = scaled.round(9)  # equal texts are equal
    return BestReader(out, max(read, key=lambda name: chosen[name]) if chosen else "")


def style_of(text: str) -> list[float]:
    """Style of a text: length, digits, line breaks, option marks, capitals, punctuation,
    paragraphs, words.
    """
    n, letters = max(len(text), 1), max(sum(map(str.isalpha, text)), 1)
    shares = [
        sum(map(str.isdigit, text)) / n,
        text.count("\n") / n,
        sum(map(str.isupper, text)) / letters,
    ]
    marks = [text.count(mark) / n for mark in _MARKS]
    counts = [n, 1 + len(_OPTION.findall(text)), 1 + text.count("\n\n"), 1 + len(text.split())]
    return [*shares, *marks, *np.log(counts), float(text[:1].isupper())]


def _coordinates(reader: str, texts: list[str]) -> FloatArray:
    """Features of a reader, [row, k], of mean square 1 a row."""
    if reader == "style":
        x = np.array([style_of(text) for text in texts])
        x = (x - x.mean(axis=0)) / np.where((sd := x.std(axis=0)) > 1e-12, sd, 1.0)
    else:
        x = _spanned(_weighed(reader, texts))
    size = math.sqrt(float((x**2).sum(axis=1).mean()))
    return np.asarray(x / size if size else x)


def _weighed(reader: str, texts: list[str]) -> Any:
    """TF-IDF of the texts, sparse; without a single word or character a column of 0."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

    how: dict[str, Any] = {"ngram_range": (1, 2)}
    if reader == "characters":
        how, texts = (
            {"analyzer": "char", "ngram_range": (2, 5), "lowercase": False},
            [text[:READ] for text in texts],
        )
    words = TfidfVectorizer(sublinear_tf=True, **how)
    return (
        words.fit_transform(texts)
        if any(map(words.build_analyzer(), texts))
        else csr_matrix((len(texts), 1))
    )


def _spanned(x: Any) -> FloatArray:
    """Coordinates of sparse rows in the span of their largest singular directions; inner products
    stay.
    """
    if min(x.shape) > DIMENSIONS:
        from sklearn.decomposition import TruncatedSVD

        return np.asarray(TruncatedSVD(DIMENSIONS, random_state=0).fit_transform(x))
    values, vectors = np.linalg.eigh((x @ x.T).toarray())
    keep = values > 1e-9 * max(values[-1], 1e-12)
    return np.asarray(vectors[:, keep] * np.sqrt(values[keep]))


def label_folds(
    positive: npt.NDArray[np.bool_], groups: npt.NDArray[Any]
) -> Iterator[tuple[IntArray, IntArray]]:
    """(train, test) rows of up to five folds of groups with like shares of labels."""
    if len(set(groups)) <= FEW_GROUPS:
        yield from _stratified(positive, groups)
        return
    yield from _folds(positive, groups, each_apart=False)  # of many, random folds have like shares


def _cross_fitted(
    x: FloatArray, positive: npt.NDArray[np.bool_], groups: npt.NDArray[Any]
) -> FloatArray:
    """Ratings by a reader of rows in groups that it was not trained on; NaN where it cannot be
    trained.
    """
    out = np.full(len(x), math.nan)
    for train, test in label_folds(positive, groups):
        if len(set(positive[train])) == 2:
            out[test] = _ridge(x[train], positive[train], x[test])
    return out


def _ridge(x: FloatArray, positive: npt.NDArray[np.bool_], other: FloatArray) -> FloatArray:
    """Ratings of other rows by ridge regression on the labels."""
    middle, y = x.mean(axis=0), positive - positive.mean()
    centred = x - middle
    weights = np.linalg.solve(centred.T @ centred + PENALTY * np.eye(x.shape[1]), centred.T @ y)
    return np.asarray((other - middle) @ weights)


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

    words, texts = (
        TfidfVectorizer(sublinear_tf=True),
        [side[i] for side in (first, second) for i in train],
    )
    if not any(map(words.build_analyzer(), texts)):
        return None
    words.fit(texts)
    x: Any = csr_matrix(words.transform(first) - words.transform(second))
    products = (x @ x[train].T).toarray()
    values, vectors = np.linalg.eigh(products[train])
    keep = values > 1e-9 * max(values[-1], 1e-12)
    return np.asarray(products @ (vectors[:, keep] / np.sqrt(values[keep]))) if keep.any() else None


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
    lengths = [np.array([len(text) for text in texts]) for texts in (first_texts, second_texts)]
    longer = np.log((lengths[0] + 1) / (lengths[1] + 1))
    better_is_longer = np.sign(longer) * np.where(first_is_better, 1, -1)
    margins = np.full(len(longer), math.nan)
    for train, test in _pair_folds(first_is_better, groups):
        longer_is_better = better_is_longer[train].sum() >= 0
        margins[test] = longer[test] if longer_is_better else -longer[test]
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
    said = vectorizer.fit_transform(texts).tocsc()
    difference = said[:pair_count] - said[pair_count:]
    frequent = np.flatnonzero(abs(difference).sum(axis=0).A1 >= LEAST_PAIRS_WITH_WORD)
    differences = difference[:, frequent].toarray().astype(float)
    labels = np.where(first_is_better, 1.0, -1.0)
    for train, test in _pair_folds(first_is_better, groups):
        chosen: list[int] = []
        rest = labels[train]
        weights = np.zeros(0)
        for place, keyword_count in enumerate(KEYWORD_COUNTS):
            while len(chosen) < min(keyword_count, differences.shape[1]):
                likeness = np.abs(differences[train].T @ rest)
                likeness[chosen] = -1
                chosen.append(int(likeness.round(9).argmax()))
                known = differences[train][:, chosen]
                weights = np.linalg.lstsq(known, labels[train], rcond=None)[0]
                rest = labels[train] - known @ weights
            margins[test, place] = differences[test][:, chosen] @ weights
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
    columns = np.concatenate([reader_choices, margin_ranks], axis=1)
    both = np.stack([np.ones(pair_count), choices], axis=1)
    rest_of_label, rest_of_choice = (
        both - columns @ np.linalg.lstsq(columns, both, rcond=None)[0]
    ).T
    label_variance = float(np.mean(rest_of_label**2))
    if label_variance < 1e-9:
        return advantages
    effective_pairs = pair_count * label_variance**2 / float(np.mean(rest_of_label**4))
    if effective_pairs < LEAST_EFFECTIVE_PAIRS:
        return advantages
    coefficient = float(rest_of_label @ rest_of_choice) / pair_count / label_variance
    errors = rest_of_label * (rest_of_choice - coefficient * rest_of_label) / label_variance
    spare_share = (pair_count - int(np.linalg.matrix_rank(columns))) / pair_count
    advantages[is_known] = (coefficient + errors / math.sqrt(spare_share)) / 2
    return advantages
