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

from selfprobe.stats.estimate import (
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    clustered_mean,
    undefined,
)
from selfprobe.stats.text_only import RIDGE_PENALTY, label_folds, style_of

PURSUIT_STEPS = (1, 2, 4, 8, 12)
"""Numbers of words and marks that the reader of few words goes by."""
MOST_KEYWORDS = 4000
"""Largest number of words among which it chooses."""
LEAST_TEXTS_WITH_WORD = 3
BEST_READERS = 2
"""Number of readers of the labels, and of the statement, whose predictions are columns."""
RANK_DECIMALS = 9
LEAST_LABEL_SPREAD = 0.01
"""Smallest share of the labels' variance that the texts must leave."""
LABELS_TOLD_BY_TEXTS = "every label is told without it"
"""Reason why nothing can be left of a statement."""
LEAST_ROWS = 16
"""Smallest number of conversations beyond the number of columns."""


@dataclass(frozen=True)
class TextReaders:
    """Readers of some texts, which predict any number of each text from that of the others."""

    positive: BoolArray
    """Label of each text, [text]."""
    groups: npt.NDArray[np.str_]
    """Group of each text: texts of one group are never on both sides of a fold."""
    features: Mapping[str, FloatArray]
    """Reader → features, [text, k], of mean square 1 a text."""
    marks: FloatArray
    """Whether a text has each word, and its style, [text, mark]."""

    def predictions(self, values: FloatArray, rows: IntArray) -> FloatArray:
        """Cross-fitted predictions of each column of `values`, [column, row, reader].

        Args:
            values: Numbers of the texts at `rows`, [row, column].
            rows: Which of the texts, [row].
        """
        column_count = values.shape[1]
        reader_count = len(self.features) + len(PURSUIT_STEPS)
        predictions = np.zeros((column_count, len(rows), reader_count))
        features_of_readers = [features[rows] for features in self.features.values()]
        marks = self.marks[rows]

        for train, test in label_folds(self.positive[rows], self.groups[rows]):
            for reader, features in enumerate(features_of_readers):
                ridge_predictions = _ridge(features[train], values[train], features[test])
                predictions[:, test, reader] = ridge_predictions.T

            train_marks, test_marks = _standardised(marks[train], marks[test])
            for column in range(column_count):
                pursuit_predictions = _pursuit(train_marks, values[train, column], test_marks)
                predictions[column][test, len(self.features) :] = pursuit_predictions
        return predictions


def text_readers(
    texts: Sequence[str],
    positive: BoolArray,
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
    scaled_lengths = [_scaled(lengths), _scaled(np.log1p(lengths))]
    length_features = np.stack(scaled_lengths, axis=1) / math.sqrt(2)

    styles = np.array([style_of(text) for text in texts], dtype=float).reshape(len(texts), -1)
    marks = np.concatenate([_words_in(texts), styles], axis=1)
    all_features = {**features, "length": length_features}
    return TextReaders(positive, groups, all_features, marks)


def _words_in(texts: Sequence[str]) -> FloatArray:
    """Whether each text has each of the words that divide the texts most evenly, [text, word]."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(binary=True)
    if not any(map(vectorizer.build_analyzer(), texts)):
        return np.zeros((len(texts), 0))

    has_word = vectorizer.fit_transform(texts).tocsc()
    text_counts = np.asarray(has_word.sum(axis=0)).ravel()
    evenness = np.minimum(text_counts, len(texts) - text_counts)
    frequent_words = np.flatnonzero(evenness >= LEAST_TEXTS_WITH_WORD)
    order = np.argsort(-evenness[frequent_words], kind="stable")
    keywords = np.sort(frequent_words[order[:MOST_KEYWORDS]])
    return np.asarray(has_word[:, keywords].toarray(), dtype=float)


def _scaled(values: FloatArray) -> FloatArray:
    deviation = float(values.std())
    if deviation <= 0:
        deviation = 1.0
    return np.asarray((values - values.mean()) / deviation)


def _ridge(train: FloatArray, values: FloatArray, test: FloatArray) -> FloatArray:
    """Predictions [row, column] by ridge regression."""
    feature_means = train.mean(axis=0)
    value_means = values.mean(axis=0)
    centred_train = train - feature_means
    penalised_products = centred_train.T @ centred_train + RIDGE_PENALTY * np.eye(train.shape[1])
    weights = np.linalg.solve(penalised_products, centred_train.T @ (values - value_means))
    return np.asarray(value_means + (test - feature_means) @ weights)


def _standardised(train: FloatArray, test: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns that vary in training, in standard deviations."""
    deviations = train.std(axis=0)
    is_varying = deviations > 1e-9
    means = train[:, is_varying].mean(axis=0)
    scales = deviations[is_varying]
    standardised_train = (train[:, is_varying] - means) / scales
    standardised_test = (test[:, is_varying] - means) / scales
    return standardised_train, standardised_test


def _pursuit(train: FloatArray, values: FloatArray, test: FloatArray) -> FloatArray:
    """Predictions [row, step] by the 1, 2, … columns that orthogonal matching pursuit chooses."""
    mean_value = float(values.mean())
    centred_values = values - mean_value
    residuals = centred_values
    predictions = np.full((len(test), len(PURSUIT_STEPS)), mean_value)
    chosen_columns: list[int] = []
    step_count = min(PURSUIT_STEPS[-1], train.shape[1], len(train) // 4)
    for step in range(1, step_count + 1):
        similarities = np.abs(train.T @ residuals)
        similarities[chosen_columns] = 0
        chosen_columns.append(int(similarities.round(9).argmax()))

        chosen_train = train[:, chosen_columns]
        weights = np.linalg.lstsq(chosen_train, centred_values, rcond=None)[0]
        residuals = centred_values - chosen_train @ weights
        step_predictions = mean_value + test[:, chosen_columns] @ weights
        later_steps = [index for index, size in enumerate(PURSUIT_STEPS) if size >= step]
        predictions[:, later_steps] = step_predictions[:, None]
    return predictions


def with_ranks(columns: FloatArray) -> FloatArray:
    """Columns and their ranks, [row, 2 k]: a statement may go by a score in whatever curve."""
    rounded_columns = columns.round(RANK_DECIMALS)  # rounding errors are no order
    ranks_of_columns = [rankdata(column) / len(column) for column in rounded_columns.T]
    rank_columns = np.array(ranks_of_columns).reshape(-1, len(columns)).T
    return np.concatenate([columns, rank_columns], axis=1)


def reader_columns(readers: TextReaders, statement: FloatArray, rows: IntArray) -> FloatArray:
    """What the best readers predict of the labels and of the statement, with ranks, [row, column].

    Args:
        readers: Readers of all texts.
        statement: The statement on the texts at `rows`; its ranks are predicted.
        rows: Which of the texts, [row].
    """
    labels = readers.positive[rows].astype(float)
    values = np.stack([labels, shares_below(statement)], axis=1)
    best_predictions = []
    for column, predictions in enumerate(readers.predictions(values, rows)):
        squared_errors = (predictions - values[:, [column]]) ** 2
        reader_errors = squared_errors.sum(axis=0).round(9)
        best_readers = np.argsort(reader_errors, kind="stable")[:BEST_READERS]
        best_predictions.append(predictions[:, best_readers])
    return with_ranks(np.concatenate(best_predictions, axis=1))


def shares_below(statement: FloatArray) -> FloatArray:
    """Share of the statements below each, ties by half: its mean in one class less that in the
    other is AUROC − .5.
    """
    return np.asarray((rankdata(statement.round(RANK_DECIMALS)) - 0.5) / len(statement))


def auroc_beyond(
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
    row_count = len(ranks)
    design = np.concatenate([np.ones((row_count, 1)), columns], axis=1)
    spare_rows = row_count - int(np.linalg.matrix_rank(design))
    if spare_rows < LEAST_ROWS:
        return undefined("too few conversations", unit=unit)

    labels_and_ranks = np.stack([labels, ranks], axis=1)
    weights = np.linalg.lstsq(design, labels_and_ranks, rcond=None)[0]
    label_residuals, rank_residuals = (labels_and_ranks - design @ weights).T
    label_spread = float(label_residuals @ label_residuals) / row_count
    if label_spread < LEAST_LABEL_SPREAD * labels.var():
        return undefined(LABELS_TOLD_BY_TEXTS, unit=unit, value=0.0)

    coefficient = float(label_residuals @ rank_residuals) / row_count / label_spread
    unexplained_ranks = rank_residuals - coefficient * label_residuals
    influences = label_residuals * unexplained_ranks / label_spread
    widening = math.sqrt(row_count / spare_rows)
    row_values = coefficient + widening * influences
    estimate = clustered_mean(row_values, clusters, unit=unit, interval="t")
    if math.isnan(estimate.low) and estimate.n > 1:
        # A statement that is the label itself has no spread of its own: the interval of a share is
        # never of width 0.
        clipped_coefficient = min(max(coefficient, -1.0), 1.0)
        equal_values = np.full(row_count, clipped_coefficient)
        return clustered_mean(equal_values, clusters, unit=unit, interval="difference")
    return estimate
