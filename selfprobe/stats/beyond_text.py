"""What is left of a statement about texts beyond what the texts tell: "more than the words".

To be above a classifier of the words asks too much and too little: a subject that knows something
of its own loses to a classifier of telling texts, and one that reads the telling word itself beats
a classifier that learnt it badly. So readers of the text predict both the labels and the statement
(Robinson 1988, Econometrica 56:931; cross-fitted, as Chernozhukov and others 2018, The Econometrics
Journal 21:C1), and the question is whether what is left of the statement goes with what is left of
the label. An error of the readers counts only where they err in both. Rates: docs/statistics.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, undefined
from selfprobe.stats.text_only import RIDGE_PENALTY, label_folds, style_of

PURSUIT_STEPS = (1, 2, 4, 8, 12)
"""Numbers of words and marks that the reader of few words goes by."""
MOST_KEYWORDS = 4000
"""Largest number of words among which it chooses."""
LEAST_TEXTS_WITH_WORD = 3
BEST_READERS = 2
"""Number of readers of the labels, and of the statement, that a rest is taken from."""
RANK_DECIMALS = 9
LEAST_LABEL_REST = 0.01
"""Smallest share of the labels' variance that the texts must leave."""
ALL_TOLD = "every label is told without it"
"""Reason why nothing can be left of a statement."""
LEAST_ROWS = 16
"""Smallest number of conversations beyond the columns that a rest is taken from."""


@dataclass(frozen=True)
class TextReaders:
    """Readers of some texts, which predict any number of each text from that of the others."""

    positive: npt.NDArray[np.bool_]
    """Label of each text, [text]."""
    groups: npt.NDArray[np.str_]
    """Group of each text: texts of one group are never on both sides of a fold."""
    features: Mapping[str, FloatArray]
    """Reader → features, [text, k], of mean square 1 a text."""
    marks: FloatArray
    """Whether a text has each word, and its style, [text, mark]."""

    def predictions(self, values: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Cross-fitted predictions of each column of `values  # [row, column]`, [column, row, reader].

        Args:
            values: Numbers of the texts at `rows`.
            rows: Which of the texts, [row].
        """
        count = len(self.features) + len(PURSUIT_STEPS)
        predicted = np.zeros((values.shape[1], len(rows), count))
        for train, test in label_folds(self.positive[rows], self.groups[rows]):
            for reader, features in enumerate(self.features.values()):
                fold_features = features[rows]
                ridge = _ridge(fold_features[train], values[train], fold_features[test])
                predicted[:, test, reader] = ridge.T
            train_marks, test_marks = _standardised(self.marks[rows[train]], self.marks[rows[test]])
            for column in range(values.shape[1]):
                pursued = _pursuit(train_marks, values[train, column], test_marks)
                predicted[column][test, len(self.features) :] = pursued
        return predicted


def text_readers(
    texts: Sequence[str],
    positive: npt.NDArray[np.bool_],
    groups: npt.NDArray[np.str_],
    features: Mapping[str, FloatArray],
) -> TextReaders:
    """Readers of these texts: those of `features`, one of their length and one of few words and
    marks.

    Args:
        texts: `[text]`.
        positive: Label of each text.
        groups: Group of each text, such as its pair.
        features: Reader → features, as `text_only.read_by` makes them.
    """
    lengths = np.array([len(text) for text in texts], dtype=float)
    length_features = np.stack([_scaled(lengths), _scaled(np.log1p(lengths))], axis=1) / math.sqrt(
        2
    )
    styles = np.array([style_of(text) for text in texts], dtype=float).reshape(len(texts), -1)
    marks = np.concatenate([_words_in(texts), styles], axis=1)
    return TextReaders(positive, groups, {**features, "length": length_features}, marks)


def _words_in(texts: Sequence[str]) -> FloatArray:
    """Whether each text has each of the words that divide the texts most evenly, [text, word]."""
    from sklearn.feature_extraction.text import CountVectorizer

    words = CountVectorizer(binary=True)
    if not any(map(words.build_analyzer(), texts)):
        return np.zeros((len(texts), 0))
    counts = words.fit_transform(texts).tocsc()
    with_word = np.asarray(counts.sum(axis=0)).ravel()
    evenness = np.minimum(with_word, len(texts) - with_word)
    frequent = np.flatnonzero(evenness >= LEAST_TEXTS_WITH_WORD)
    most_even = frequent[np.argsort(-evenness[frequent], kind="stable")[:MOST_KEYWORDS]]
    return np.asarray(counts[:, np.sort(most_even)].toarray(), dtype=float)


def _scaled(values: FloatArray) -> FloatArray:
    deviation = float(values.std())
    return np.asarray((values - values.mean()) / (deviation if deviation > 0 else 1.0))


def _ridge(train: FloatArray, values: FloatArray, test: FloatArray) -> FloatArray:
    """Predictions [row, column] by ridge regression."""
    middle = train.mean(axis=0)
    centred = train - middle
    means = values.mean(axis=0)
    products = centred.T @ centred + RIDGE_PENALTY * np.eye(train.shape[1])
    weights = np.linalg.solve(products, centred.T @ (values - means))
    return np.asarray(means + (test - middle) @ weights)


def _standardised(train: FloatArray, test: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns that vary in training, in standard deviations."""
    deviation = train.std(axis=0)
    varies = deviation > 1e-9
    middle = train[:, varies].mean(axis=0)
    scale = deviation[varies]
    return (train[:, varies] - middle) / scale, (test[:, varies] - middle) / scale


def _pursuit(train: FloatArray, values: FloatArray, test: FloatArray) -> FloatArray:
    """Predictions [row, step] by the 1, 2, … columns that orthogonal matching pursuit chooses."""
    mean = float(values.mean())
    rest = values - mean
    predicted = np.full((len(test), len(PURSUIT_STEPS)), mean)
    chosen: list[int] = []
    for step in range(1, min(PURSUIT_STEPS[-1], train.shape[1], len(train) // 4) + 1):
        likeness = np.abs(train.T @ rest)
        likeness[chosen] = 0
        chosen.append(int(likeness.round(9).argmax()))
        weights = np.linalg.lstsq(train[:, chosen], values - mean, rcond=None)[0]
        rest = values - mean - train[:, chosen] @ weights
        later_steps = [index for index, size in enumerate(PURSUIT_STEPS) if size >= step]
        predicted[:, later_steps] = (mean + test[:, chosen] @ weights)[:, None]
    return predicted


def with_ranks(columns: FloatArray) -> FloatArray:
    """Columns and their ranks, [row, 2 k]: a statement may go by a score in whatever curve."""
    rounded = columns.round(RANK_DECIMALS)  # rounding errors are no order
    ranks = [rankdata(column) / len(column) for column in rounded.T]
    return np.concatenate([columns, np.array(ranks).reshape(-1, len(columns)).T], axis=1)


def reader_columns(
    readers: TextReaders, statement: FloatArray, rows: npt.NDArray[np.intp]
) -> FloatArray:
    """What the best readers predict of the labels and of the statement, with ranks, [row, column].

    Args:
        readers: Readers of all texts.
        statement: The statement on the texts at `rows`; its ranks are predicted.
        rows: Which of the texts, [row].
    """
    targets = np.stack([readers.positive[rows].astype(float), shares_below(statement)], axis=1)
    predicted = readers.predictions(targets, rows)
    chosen = []
    for column, predictions in enumerate(predicted):
        errors = ((predictions - targets[:, [column]]) ** 2).sum(axis=0).round(9)
        chosen.append(predictions[:, np.argsort(errors, kind="stable")[:BEST_READERS]])
    return with_ranks(np.concatenate(chosen, axis=1))


def shares_below(statement: FloatArray) -> FloatArray:
    """Share of the statements below each, ties by half: its mean in one class less that in the
    other is AUROC − .5.
    """
    return np.asarray((rankdata(statement.round(RANK_DECIMALS)) - 0.5) / len(statement))


def rest_beyond(
    statement: npt.ArrayLike,
    positive: npt.ArrayLike,
    columns: FloatArray,
    clusters: npt.ArrayLike,
    *,
    unit: str,
) -> Estimate:
    """AUROC − .5 of a statement among rows that are alike in `columns`, as far as lines through
    them go.

    The coefficient of the label in the partially linear model of the statement's rank; without
    columns it is the AUROC less .5. The interval is t by cluster, widened by the degrees of freedom
    that the columns take.

    Args:
        statement: `[row]`: the higher, the more like the positive class.
        positive: Label of each row.
        columns: What is known of the rows, `[row, column]`.
        clusters: Cluster of each row.
        unit: Name of a cluster.
    """
    ranks = shares_below(np.asarray(statement, dtype=float))
    labels = np.asarray(positive, dtype=float)
    design = np.concatenate([np.ones((len(ranks), 1)), columns], axis=1)
    spare_rows = len(ranks) - int(np.linalg.matrix_rank(design))
    if spare_rows < LEAST_ROWS:
        return undefined("too few conversations", unit=unit)
    both = np.stack([labels, ranks], axis=1)
    label_rest, statement_rest = (both - design @ np.linalg.lstsq(design, both, rcond=None)[0]).T
    spread = float(label_rest @ label_rest) / len(ranks)
    if spread < LEAST_LABEL_REST * labels.var():
        return undefined(ALL_TOLD, unit=unit, value=0.0)
    value = float(label_rest @ statement_rest) / len(ranks) / spread
    errors = label_rest * (statement_rest - value * label_rest) / spread
    widened = math.sqrt(len(ranks) / spare_rows)
    rest = clustered_mean(value + widened * errors, clusters, unit=unit, interval="t")
    if math.isnan(rest.low) and rest.n > 1:
        # A statement that is the label itself has no spread of its own: the interval of a share is
        # never of width 0.
        alike = np.full(len(ranks), min(max(value, -1.0), 1.0))
        return clustered_mean(alike, clusters, unit=unit, interval="difference")
    return rest
