"""Split of a score into knowledge of this item and knowledge of a habit.

Who begins every answer with "The" and says "The" knows a habit. The habit of a cell is what the
same answers get against the same target's acts at *other* items: a join that costs no call. A habit
may hang on what kind of question it is, so pairs are drawn among all items and among those that are
alike in something that can be seen (`groups`); where a target's own habit is largest, that one is
taken off, from all observers of it. The item-specific score is what is left. With h_ij the grade of
the answer at item i against the act at item j, an item's is

    h_ii - mean over j of h_ij - mean over j of h_ji + mean of all such pairs

whose mean is score minus habit, and whose spread over items is that of the difference (both sides
of a pair are drawn).
"""

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.scorers.decision import Measure
from selfprobe.stats.estimate import FloatArray
from selfprobe.studies.matrix.table import TaskMatrix
from selfprobe.text.parse import normalise, words

SMALLEST_GROUP = 4
"""Smallest number of items of a group; smaller ones are put together, and what hangs on them is
then no habit that is seen.
"""
ALL_ITEMS = "all items"
LENGTH_GROUPS = 5
"""Number of groups by length, of about as many items."""
ITEMS_PER_TOPIC = 25


def groups(texts: pd.Series, kinds: pd.Series) -> Mapping[str, pd.Series]:
    """Name of what is seen → item → group. The first is `ALL_ITEMS`, one group; those that part
    nothing are left out.

    Args:
        texts: Item → its text.
        kinds: Item → the data set's kind of it, or "".
    """
    group_by_feature = {
        "kind": kinds.reindex(texts.index).fillna("").astype(str),
        "first word": texts.map(_first_word),
        "punctuation": texts.map(_punctuation),
        "last sign": texts.map(_last_sign),
    }
    word_counts = texts.map(lambda text: len(text.split()))
    if word_counts.nunique() > 1:
        length_groups = pd.qcut(word_counts, LENGTH_GROUPS, labels=False, duplicates="drop")
        group_by_feature["length"] = length_groups.astype(str)
    if len(texts) >= 2 * ITEMS_PER_TOPIC:
        group_by_feature["topic"] = _topics(texts)

    useful_groups = {ALL_ITEMS: pd.Series("", texts.index)}
    for feature, item_groups in group_by_feature.items():
        large_groups = _joined(item_groups)
        if large_groups.nunique() > 1:
            useful_groups[feature] = large_groups
    return useful_groups


def _first_word(text: str) -> str:
    return normalise(next(iter(words(text)), ""))


def _punctuation(text: str) -> str:
    """Each sign of a text once."""
    return "".join(sorted(set(re.findall(r"[^\w\s]", text))))


def _last_sign(text: str) -> str:
    return text.strip()[-1:] if re.search(r"[^\w\s]\s*$", text) else ""


def _joined(item_groups: pd.Series) -> pd.Series:
    """Small groups as one; where that is small too it goes to the largest."""
    group_sizes = item_groups.map(item_groups.value_counts())
    large_groups = item_groups.where(group_sizes >= SMALLEST_GROUP, "(others)")
    is_in_small_group = large_groups == "(others)"
    small_group_items = is_in_small_group.sum()
    if 0 < small_group_items < SMALLEST_GROUP and not is_in_small_group.all():
        largest_group = large_groups[~is_in_small_group].mode()[0]
        return large_groups.where(~is_in_small_group, largest_group)
    return large_groups


def _topics(texts: pd.Series) -> pd.Series:
    """Clusters of the texts' words."""
    from sklearn.cluster import KMeans
    from sklearn.feature_extraction.text import TfidfVectorizer
    from threadpoolctl import threadpool_limits

    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    if not any(map(vectorizer.build_analyzer(), texts)):
        return pd.Series("", texts.index)
    vectors = vectorizer.fit_transform(texts)
    topic_count = len(texts) // ITEMS_PER_TOPIC
    with threadpool_limits(1):
        topic_numbers = KMeans(topic_count, n_init=3, random_state=0).fit_predict(vectors)
    return pd.Series(topic_numbers, texts.index).astype(str)


SHIFTED_ORDERS = 12
"""Mismatched orders of the items, for tasks that score all decisions of an item together."""
PAIR_COLUMNS = ["target", "observer"]
Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class ItemSpecificScores:
    """Result of `item_specific`."""

    scores: FloatArray
    """[target, observer, item]; NaN where unscored. The score itself where nothing could be taken
    off.
    """
    habit: FloatArray
    """[target, observer]: what the same answers get elsewhere; NaN where it cannot be told."""
    taken_off: str
    """Description of what was taken off; empty where nothing was."""
    habit_by_feature: tuple[Mapping[str, float], ...] = ()
    """Each model's habit on itself by what the items have in common; the largest is what was taken
    off.
    """

    def for_models(self, models: Sequence[int]) -> "ItemSpecificScores":
        """The same result for these models alone, by their indices."""
        square = np.ix_(models, models)
        chosen = replace(self, scores=self.scores[square], habit=self.habit[square])
        if not self.habit_by_feature:
            return chosen
        return replace(chosen, habit_by_feature=tuple(self.habit_by_feature[i] for i in models))


def item_specific(
    rows: pd.DataFrame,
    matrix: TaskMatrix,
    measure: Measure,
    groups_by_feature: Mapping[str, pd.Series] | None = None,
) -> ItemSpecificScores:
    """The item-specific scores of a matrix.

    Args:
        rows: Decisions of the task.
        matrix: Its scores.
        measure: Its grading rule.
        groups_by_feature: Result of `groups`: what is seen → item → group. Default: all items are one group.
    """
    if not groups_by_feature:
        groups_by_feature = {ALL_ITEMS: pd.Series("", matrix.items)}
    taken_off = "the same answers compared with what the target did at other items"
    if len(groups_by_feature) > 1:
        features = ", ".join(list(groups_by_feature)[1:])
        taken_off += f" that are alike (in {features}, where that takes off more)"

    no_habit = ItemSpecificScores(matrix.scores, np.full(matrix.scores.shape[:2], np.nan), "")
    is_paired = (rows.value.notna() & rows.truth.notna() & rows.said.notna()).to_numpy()
    if measure.item_scores is not None:
        # There are no rows where every cell is a hole.
        if rows.empty or not set(rows.key) <= set(measure.sides):
            return no_habit
        specific = _shifted_pairs(rows, matrix, measure, _kinds(groups_by_feature, matrix))
    elif is_paired.any():
        specific = _by_pairs(rows, is_paired, matrix, measure, groups_by_feature)
    elif rows.floor.notna().any():
        specific = _above_floor(rows, matrix)
        taken_off = "what an unrelated reply reaches"
    else:
        return no_habit
    scores = np.where(np.isnan(matrix.scores), np.nan, specific.scores)
    return replace(specific, scores=scores, taken_off=taken_off)


def _above_floor(rows: pd.DataFrame, matrix: TaskMatrix) -> ItemSpecificScores:
    """Scores less the floor of each decision."""
    rows_above_floor = rows.assign(value=rows.value - rows.floor)
    item_rows = rows_above_floor.groupby([*PAIR_COLUMNS, "item"])
    item_means = item_rows[["value", "floor"]].mean()
    habit = _item_means(_grid(item_means.floor, matrix))
    return ItemSpecificScores(_grid(item_means.value, matrix), habit, "")


def _kinds(groups_by_feature: Mapping[str, pd.Series], matrix: TaskMatrix) -> pd.Series:
    """Group of each item by the data set's kinds, for a task whose pairs are drawn among one sort
    of groups.
    """
    item_kinds = groups_by_feature.get("kind", groups_by_feature[ALL_ITEMS])
    return item_kinds.reindex(matrix.items).fillna("").astype(str)


def _by_pairs(
    rows: pd.DataFrame,
    is_paired: npt.NDArray[np.bool_],
    matrix: TaskMatrix,
    measure: Measure,
    groups_by_feature: Mapping[str, pd.Series],
) -> ItemSpecificScores:
    """All mismatched pairs of a cell and key, exactly.

    Args:
        rows: Decisions of the task.
        is_paired: [row]: True for those with a value, a truth and a prediction.
        matrix: Its scores.
        measure: Its grading rule.
        groups_by_feature: Result of `groups`.
    """
    model_count = len(matrix.models)
    item_count = len(matrix.items)
    item_names = pd.Index(matrix.items)
    model_names = pd.Index(matrix.models)
    target_codes = _codes(rows.target[is_paired], model_names)
    observer_codes = _codes(rows.observer[is_paired], model_names)
    item_codes = _codes(rows.item[is_paired], item_names)
    cell_codes = target_codes * model_count + observer_codes
    values = rows.value[is_paired].to_numpy()
    predictions = rows.said[is_paired].astype(str)
    truths = rows.truth[is_paired].astype(str)
    texts = pd.Index(predictions.unique()).union(pd.Index(truths.unique()))
    prediction_codes = _codes(predictions, texts)
    truth_codes = _codes(truths, texts)
    group_by_item = {
        feature: pd.factorize(item_groups.reindex(item_names))[0]
        for feature, item_groups in groups_by_feature.items()
    }

    grid_size = model_count**2 * item_count
    sums_by_feature = {
        feature: _HabitSums(np.zeros(grid_size), np.zeros(grid_size))
        for feature in groups_by_feature
    }
    counts = np.zeros(grid_size)
    key_codes, keys = pd.factorize(rows.key[is_paired], sort=True)
    for key_code in range(len(keys)):
        rows_of_key = np.flatnonzero(key_codes == key_code)
        # Equal texts are counted in all cells of a target at once; other rules take a table of all
        # pairs in a cell.
        grades = None
        block_codes = target_codes
        if measure.right is not operator.eq:
            grades = _grade_table(
                texts, prediction_codes[rows_of_key], truth_codes[rows_of_key], measure
            )
            block_codes = cell_codes

        for block in _blocks(rows_of_key, block_codes):
            block_items = item_codes[block]
            cell_items = observer_codes[block] * item_count + block_items
            places = cell_codes[block] * item_count + block_items
            np.add.at(counts, places, 1)
            for feature, item_groups in group_by_item.items():
                group_count = item_groups.max() + 1
                cell_groups = observer_codes[block] * group_count + item_groups[block_items]
                decisions = _BlockDecisions(
                    prediction_codes[block], truth_codes[block], cell_items, cell_groups
                )
                pair_sums = decisions.matched() if grades is None else decisions.graded(grades)
                specific_part, habit_part = _without_habit(pair_sums, cell_groups, values[block])
                np.add.at(sums_by_feature[feature].specific, places, specific_part)
                np.add.at(sums_by_feature[feature].habit, places, habit_part)
    return _less_largest_habit(sums_by_feature, counts, matrix)


@dataclass(frozen=True)
class _HabitSums:
    """Sums over the decisions of each place, [target × observer × item]."""

    specific: FloatArray
    habit: FloatArray


def _less_largest_habit(
    sums_by_feature: Mapping[str, _HabitSums], counts: FloatArray, matrix: TaskMatrix
) -> ItemSpecificScores:
    """Item-specific scores by what takes off most of each target's own habit.

    Args:
        sums_by_feature: What is seen → sums by place.
        counts: Number of decisions by place.
        matrix: The scores.
    """
    shape = matrix.scores.shape
    scores_by_feature = dict[str, FloatArray]()
    habit_by_feature = dict[str, FloatArray]()
    with np.errstate(invalid="ignore"):  # a place without a decision: NaN
        for feature, sums in sums_by_feature.items():
            scores_by_feature[feature] = (sums.specific / counts).reshape(shape)
            habit_by_feature[feature] = _item_means((sums.habit / counts).reshape(shape))

    scores = scores_by_feature[ALL_ITEMS].copy()
    habit = habit_by_feature[ALL_ITEMS].copy()
    own_habits = list[dict[str, float]]()
    for model in range(len(matrix.models)):
        own_habit = {
            feature: float(habits[model, model]) for feature, habits in habit_by_feature.items()
        }
        own_habits.append(own_habit)
        defined_features = [
            feature for feature, own_value in own_habit.items() if not np.isnan(own_value)
        ]
        largest_feature = max(defined_features, key=own_habit.__getitem__, default=ALL_ITEMS)
        scores[model] = scores_by_feature[largest_feature][model]
        habit[model] = habit_by_feature[largest_feature][model]
    return ItemSpecificScores(scores, habit, "", tuple(own_habits))


def _codes(column: pd.Series, names: pd.Index) -> Codes:
    """Place [row] of each value among the names."""
    value_codes, values = pd.factorize(column)  # else each row's text becomes an object of its own
    return np.asarray(names.get_indexer(values)[value_codes])


def _blocks(rows: Codes, codes: Codes) -> list[Codes]:
    """The rows, apart by their code, each in order."""
    ordered_rows = rows[np.argsort(codes[rows], kind="stable")]
    block_ends = np.flatnonzero(np.diff(codes[ordered_rows])) + 1
    return np.split(ordered_rows, block_ends)


def _grade_table(
    texts: pd.Index, prediction_codes: Codes, truth_codes: Codes, measure: Measure
) -> FloatArray:
    """Grade [prediction, truth] by the codes of their texts."""
    grades = np.zeros((len(texts), len(texts)))
    for prediction in np.unique(prediction_codes):
        for truth in np.unique(truth_codes):
            grades[prediction, truth] = measure.right(str(texts[prediction]), str(texts[truth]))
    return grades


@dataclass(frozen=True)
class _PairSums:
    """Sums over the mismatched pairs of each decision, [decision]."""

    of_prediction: FloatArray
    """Grades of its prediction against the truths of other items."""
    of_truth: FloatArray
    """Grades of the predictions at other items against its truth."""
    pair_counts: FloatArray


@dataclass(frozen=True)
class _BlockDecisions:
    """The decisions of one key in a cell, or in several cells, each [decision]."""

    predictions: Codes
    truths: Codes
    items: Codes
    """Items of each cell: those of several cells have codes of their own."""
    item_groups: Codes
    """Groups of each cell's items; pairs are drawn within them."""

    def graded(self, grades: FloatArray) -> _PairSums:
        """Sums over all pairs.

        Args:
            grades: Grade [prediction, truth].
        """
        is_other_item = self.items[:, None] != self.items
        is_same_group = self.item_groups[:, None] == self.item_groups
        is_pair = is_other_item & is_same_group
        pair_grades = grades[self.predictions[:, None], self.truths] * is_pair
        return _PairSums(
            of_prediction=pair_grades.sum(axis=1),
            of_truth=pair_grades.sum(axis=0),
            pair_counts=is_pair.sum(axis=1),
        )

    def matched(self) -> _PairSums:
        """Sums like `graded` where a prediction is right if it equals the truth: counts, without
        all pairs.
        """
        group_sizes = _occurrences(self.item_groups, self.item_groups)
        item_sizes = _occurrences(self.items, self.items)
        return _PairSums(
            of_prediction=self._matches_at_other_items(self.predictions, self.truths),
            of_truth=self._matches_at_other_items(self.truths, self.predictions),
            pair_counts=group_sizes - item_sizes,
        )

    def _matches_at_other_items(self, texts: Codes, other_texts: Codes) -> FloatArray:
        """Number of times each decision's text is that of other items of its group."""
        text_count = 1 + int(max(texts.max(), other_texts.max()))
        matches_in_group = _occurrences(
            self.item_groups * text_count + texts, self.item_groups * text_count + other_texts
        )
        matches_in_item = _occurrences(
            self.items * text_count + texts, self.items * text_count + other_texts
        )
        return matches_in_group - matches_in_item


def _occurrences(codes: Codes, counted_codes: Codes) -> FloatArray:
    """Number of times each of `codes` is in `counted_codes`."""
    ordered = np.sort(counted_codes)
    first_places = np.searchsorted(ordered, codes, "left")
    end_places = np.searchsorted(ordered, codes, "right")
    return np.asarray(end_places - first_places, dtype=float)


def _without_habit(
    pair_sums: _PairSums, item_groups: Codes, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Item-specific score and habit of each decision; see the module's top."""
    pair_counts = np.maximum(pair_sums.pair_counts, 1)
    habit = pair_sums.of_prediction / pair_counts
    habit_of_truth = pair_sums.of_truth / pair_counts
    group_codes = np.unique(item_groups, return_inverse=True)[1]
    group_habits = np.bincount(group_codes, habit) / np.bincount(group_codes)
    specific = values - habit - habit_of_truth + group_habits[group_codes]
    return np.asarray(specific), np.asarray(habit)


def _shifted_pairs(
    rows: pd.DataFrame, matrix: TaskMatrix, measure: Measure, item_kinds: pd.Series
) -> ItemSpecificScores:
    """Pairs of some shifted orders, for tasks whose score needs all decisions of an item."""
    assert measure.item_scores is not None
    rng = np.random.default_rng(0)
    item_count = len(matrix.items)
    is_act = rows.key.map(measure.sides) == "target"
    habit_sums = np.zeros(matrix.scores.shape)
    habit_counts = np.zeros(matrix.scores.shape)
    act_sums = np.zeros(matrix.scores.shape)
    act_counts = np.zeros(matrix.scores.shape)
    for order in _orders(item_kinds, rng, min(SHIFTED_ORDERS, item_count - 1)):
        # order[i] is the item whose act item i's answer is compared with
        answer_item_by_act_item = dict(
            zip(np.asarray(matrix.items)[order], matrix.items, strict=True)
        )
        act_items = rows.item.map(answer_item_by_act_item)
        shifted_rows = rows.assign(item=rows.item.where(~is_act, act_items))
        shifted_scores = _grid(measure.item_scores(shifted_rows), matrix)
        is_counted = ~np.isnan(shifted_scores)
        is_counted[:, :, order == np.arange(item_count)] = False
        shifted_scores = np.where(is_counted, shifted_scores, 0.0)
        habit_sums += shifted_scores
        habit_counts += is_counted
        act_sums[:, :, order] += shifted_scores
        act_counts[:, :, order] += is_counted

    habit = habit_sums / np.maximum(habit_counts, 1)
    habit_of_act = act_sums / np.maximum(act_counts, 1)
    kind_habit = np.zeros(matrix.scores.shape)
    for kind in pd.unique(item_kinds):
        is_of_kind = (item_kinds == kind).to_numpy()
        kind_habit[:, :, is_of_kind] = habit[:, :, is_of_kind].mean(axis=2, keepdims=True)
    scores = matrix.scores - habit - habit_of_act + kind_habit
    return ItemSpecificScores(scores, habit.mean(axis=2), "")


def _orders(item_kinds: pd.Series, rng: np.random.Generator, count: int) -> list[Codes]:
    """Orders of the items that put none in its own place, within kinds (one alone in its kind
    stays).
    """
    orders = [np.arange(len(item_kinds)) for _ in range(count)]
    for kind in pd.unique(item_kinds):
        places = rng.permutation(np.flatnonzero(item_kinds == kind))
        shift_count = max(len(places) - 1, 1)
        for order_number, order in enumerate(orders):
            order[places] = np.roll(places, 1 + order_number % shift_count)
    return orders


def _grid(values: pd.Series, matrix: TaskMatrix) -> FloatArray:
    """target × observer × item → [target, observer, item]."""
    axes = (matrix.models, matrix.models, matrix.items)
    labels = pd.MultiIndex.from_product(axes)
    shape = tuple(len(axis) for axis in axes)
    return np.asarray(values.reindex(labels).to_numpy(dtype=float).reshape(shape))


def _item_means(grid: FloatArray) -> FloatArray:
    """Mean [target, observer] over items; NaN where nothing is scored."""
    is_scored = ~np.isnan(grid)
    sums = np.where(is_scored, grid, 0.0).sum(axis=2)
    means = sums / np.maximum(is_scored.sum(axis=2), 1)
    return np.asarray(np.where(is_scored.any(axis=2), means, np.nan))
