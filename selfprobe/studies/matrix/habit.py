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

SMALLEST = 4
"""Smallest number of items of a group; smaller ones are put together, and what hangs on them is
then no habit that is seen.
"""
ALL = "all items"
LENGTHS = 5
A_TOPIC = 25
"""Number of items per topic."""


def groups(texts: pd.Series, kinds: pd.Series) -> Mapping[str, pd.Series]:
    """Name of what is seen → item → group. The first is `ALL`, one group; those that part nothing
    are left out.

    Args:
        texts: Item → its text.
        kinds: Item → the data set's kind of it, or "".
    """
    seen = {"kind": kinds.reindex(texts.index).fillna("").astype(str)}
    seen["first word"] = texts.map(lambda text: normalise(next(iter(words(text)), "")))
    seen["punctuation"] = texts.map(lambda text: "".join(sorted(set(re.findall(r"[^\w\s]", text)))))
    seen["last sign"] = texts.map(
        lambda text: text.strip()[-1:] if re.search(r"[^\w\s]\s*$", text) else ""
    )
    counts = texts.map(lambda text: len(text.split()))
    if counts.nunique() > 1:
        seen["length"] = pd.qcut(counts, LENGTHS, labels=False, duplicates="drop").astype(str)
    if len(texts) >= 2 * A_TOPIC:
        seen["topic"] = _topics(texts)
    joined = {name: _joined(group) for name, group in seen.items()}
    everything = {ALL: pd.Series("", texts.index)}
    return everything | {name: group for name, group in joined.items() if group.nunique() > 1}


def _joined(group: pd.Series) -> pd.Series:
    """Small groups as one; where that is small too it goes to the largest."""
    sizes = group.map(group.value_counts())
    out = group.where(sizes >= SMALLEST, "(others)")
    rest = out == "(others)"
    return (
        out.where(~rest, out[~rest].mode()[0])
        if 0 < rest.sum() < SMALLEST and not rest.all()
        else out
    )


def _topics(texts: pd.Series) -> pd.Series:
    """Clusters of the texts' words."""
    from sklearn.cluster import KMeans
    from sklearn.feature_extraction.text import TfidfVectorizer
    from threadpoolctl import threadpool_limits

    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    if not any(map(vectorizer.build_analyzer(), texts)):
        return pd.Series("", texts.index)
    vectors = vectorizer.fit_transform(texts)
    with threadpool_limits(1):
        found = KMeans(len(texts) // A_TOPIC, n_init=3, random_state=0).fit_predict(vectors)
    return pd.Series(found, texts.index).astype(str)


SHIFTS = 12
"""Mismatched orders of the items, for tasks that score all decisions of an item together."""
CELL = ["target", "observer"]
Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Specific:
    """Result of `item_specific`."""

    scores: FloatArray
    """[target, observer, item]; NaN where unscored. The score itself where nothing could be taken
    off.
    """
    habit: FloatArray
    """[target, observer]: what the same answers get elsewhere; NaN where it cannot be told."""
    taken_off: str
    """Description of what was taken off; empty where nothing was."""
    by: tuple[Mapping[str, float], ...] = ()
    """Each model's habit on itself by what the items have in common; the largest is what was taken
    off.
    """

    def of(self, models: Sequence[int]) -> "Specific":
        """The same result for these models alone, by their places."""
        square = np.ix_(models, models)
        by = tuple(self.by[i] for i in models) if self.by else ()
        return replace(self, scores=self.scores[square], habit=self.habit[square], by=by)


def item_specific(
    rows: pd.DataFrame,
    matrix: TaskMatrix,
    measure: Measure,
    alike: Mapping[str, pd.Series] | None = None,
) -> Specific:
    """The item-specific scores of a matrix.

    Args:
        rows: Decisions of the task.
        matrix: Its scores.
        measure: Its grading rule.
        alike: Result of `groups`: what is seen → item → group. Default: all items are one group.
    """
    hidden = np.isnan(matrix.scores)
    alike = alike or {ALL: pd.Series("", matrix.items)}
    taken_off = "the same answers compared with what the target did at other items"
    if len(alike) > 1:
        taken_off += f" that are alike (in {', '.join(list(alike)[1:])}, where that takes off more)"
    paired = (rows.value.notna() & rows.truth.notna() & rows.said.notna()).to_numpy()
    if measure.item_scores is not None:
        if rows.empty or not set(rows.key) <= set(
            measure.sides
        ):  # empty where every cell is a hole
            return Specific(matrix.scores, np.full(hidden.shape[:2], np.nan), "")
        found = _shifted(rows, matrix, measure, _kinds(alike, matrix))
    elif paired.any():
        found = _by_pairs(rows, paired, matrix, measure, alike)
    elif rows.floor.notna().any():
        off = (
            rows.assign(value=rows.value - rows.floor)
            .groupby([*CELL, "item"])[["value", "floor"]]
            .mean()
        )
        found = Specific(_grid(off.value, matrix), _nanmean(_grid(off.floor, matrix)), "")
        taken_off = "what an unrelated reply reaches"
    else:
        return Specific(matrix.scores, np.full(hidden.shape[:2], np.nan), "")
    return replace(found, scores=np.where(hidden, np.nan, found.scores), taken_off=taken_off)


def _kinds(alike: Mapping[str, pd.Series], matrix: TaskMatrix) -> pd.Series:
    """Group of each item by the data set's kinds, for a task whose pairs are drawn among one sort
    of groups.
    """
    kind = alike.get("kind", alike[ALL])
    return kind.reindex(matrix.items).fillna("").astype(str)


def _by_pairs(
    rows: pd.DataFrame,
    paired: npt.NDArray[np.bool_],
    matrix: TaskMatrix,
    measure: Measure,
    alike: Mapping[str, pd.Series],
) -> Specific:
    """All mismatched pairs of a cell and key, exactly.

    Args:
        rows: Decisions of the task.
        paired: [row]: True for those with a value, a truth and a prediction.
        matrix: Its scores.
        measure: Its grading rule.
        alike: Result of `groups`.
    """
    models, item_names = pd.Index(matrix.models), pd.Index(matrix.items)
    target, observer = (_codes(rows[name][paired], models) for name in CELL)
    items = _codes(rows.item[paired], item_names)
    cells = target * len(models) + observer
    key_codes, keys = pd.factorize(rows.key[paired], sort=True)
    value = rows.value[paired].to_numpy()
    said, truth = rows.said[paired].astype(str), rows.truth[paired].astype(str)
    words = pd.Index(said.unique()).union(pd.Index(truth.unique()))
    said, truth = _codes(said, words), _codes(truth, words)
    kinds = {name: pd.factorize(group.reindex(item_names))[0] for name, group in alike.items()}

    size = len(models) ** 2 * len(item_names)
    sums = {name: (np.zeros(size), np.zeros(size)) for name in alike}
    counts = np.zeros(size)
    for key in range(len(keys)):
        of_key = np.flatnonzero(key_codes == key)
        graded = (
            None
            if measure.right is operator.eq
            else _graded(words, said[of_key], truth[of_key], measure)
        )
        # Equal words are counted in all cells of a target at once; other rules take a table of all
        # pairs in a cell.
        for at in _blocks(of_key, target if graded is None else cells):
            cell_items = observer[at] * len(item_names) + items[at]
            place = cells[at] * len(item_names) + items[at]
            np.add.at(counts, place, 1)
            for name, kind in kinds.items():
                cell_kinds = observer[at] * (kind.max() + 1) + kind[items[at]]
                alike_at = _Alike(said[at], truth[at], cell_items, cell_kinds)
                pairs = alike_at.matched() if graded is None else alike_at.graded(graded)
                for total, part in zip(
                    sums[name], _without_habit(*pairs, cell_kinds, value[at]), strict=True
                ):
                    np.add.at(total, place, part)
    shape = matrix.scores.shape
    with np.errstate(invalid="ignore"):  # a place without a decision: NaN
        grids = {name: (specific / counts).reshape(shape) for name, (specific, _) in sums.items()}
        habits = {
            name: _nanmean((habit / counts).reshape(shape)) for name, (_, habit) in sums.items()
        }
    own_habits = [
        {name: float(habit[i, i]) for name, habit in habits.items()}
        for i in range(len(matrix.models))
    ]
    scores, taken = grids[ALL].copy(), habits[ALL].copy()
    for i, own_habit in enumerate(own_habits):
        known_habits = {name: value for name, value in own_habit.items() if not np.isnan(value)}
        largest = max(known_habits, key=lambda name: known_habits[name], default=ALL)
        scores[i], taken[i] = grids[largest][i], habits[largest][i]
    return Specific(scores, taken, "", tuple(own_habits))


def _codes(column: pd.Series, names: pd.Index) -> Codes:
    """Place [row] of each value among the names."""
    codes, values = pd.factorize(column)  # else every row's text becomes an object of its own
    return np.asarray(names.get_indexer(values)[codes])


def _blocks(rows: Codes, codes: Codes) -> list[Codes]:
    """The rows, apart by their code, each in order."""
    order = rows[np.argsort(codes[rows], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _graded(
    words: pd.Index, said: npt.NDArray[np.intp], truth: npt.NDArray[np.intp], measure: Measure
) -> FloatArray:
    table = np.zeros((len(words), len(words)))
    for i in np.unique(said):
        for j in np.unique(truth):
            table[i, j] = measure.right(str(words[i]), str(words[j]))
    return table


@dataclass(frozen=True)
class _Alike:
    """The decisions of one key in a cell, or in several cells, each [decision]."""

    said: Codes
    truth: Codes
    items: Codes
    """Items of each cell: those of several cells have codes of their own."""
    kinds: Codes
    """Groups of each cell's items; pairs are drawn within them."""

    def graded(self, table: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sum of grades of each answer elsewhere, of each act by answers elsewhere, and the number
        of such pairs.
        """
        other = (self.items[:, None] != self.items) & (self.kinds[:, None] == self.kinds)
        kept = table[self.said[:, None], self.truth] * other
        return kept.sum(axis=1), kept.sum(axis=0), other.sum(axis=1)

    def matched(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sums like `graded` where an answer is right if it equals the act: counts, without all
        pairs.
        """
        pairs = _times(self.kinds, self.kinds) - _times(self.items, self.items)
        return self._elsewhere(self.said, self.truth), self._elsewhere(self.truth, self.said), pairs

    def _elsewhere(self, word: Codes, among: Codes) -> FloatArray:
        """Number of times each one's `word` is `among` those of other items of its kind."""
        size = 1 + int(max(word.max(), among.max()))
        within = (_times(of * size + word, of * size + among) for of in (self.kinds, self.items))
        return next(within) - next(within)


def _times(codes: Codes, among: Codes) -> FloatArray:
    """Number of times each of `codes` is in `among`."""
    ordered = np.sort(among)
    return np.asarray(
        np.searchsorted(ordered, codes, "right") - np.searchsorted(ordered, codes, "left"),
        dtype=float,
    )


def _without_habit(
    hits: FloatArray, met: FloatArray, pairs: FloatArray, kinds: Codes, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Item-specific score and habit of each row, from the sums of grades over its mismatched pairs."""
    pairs, kind = np.maximum(pairs, 1), np.unique(kinds, return_inverse=True)[1]
    habit = hits / pairs
    of_kind = (np.bincount(kind, habit) / np.bincount(kind))[kind]
    return np.asarray(values - habit - met / pairs + of_kind), np.asarray(habit)


def _shifted(rows: pd.DataFrame, matrix: TaskMatrix, measure: Measure, kind: pd.Series) -> Specific:
    """Pairs of some shifted orders, for tasks whose score needs all decisions of an item."""
    assert measure.item_scores is not None
    rng, n = np.random.default_rng(0), len(matrix.items)
    acts = rows.key.map(measure.sides) == "target"
    shape = (*matrix.scores.shape[:2], n)
    habit, met, count, count_met = (np.zeros(shape) for _ in range(4))
    for order in _orders(kind, rng, min(SHIFTS, n - 1)):
        # order[i] is the item whose act item i's answer is held against
        at = dict(zip(np.asarray(matrix.items)[order], matrix.items, strict=True))
        moved = rows.assign(item=rows.item.where(~acts, rows.item.map(at)))
        grid = _grid(measure.item_scores(moved), matrix)
        known = ~np.isnan(grid)
        known[:, :, order == np.arange(n)] = False
        grid = np.where(known, grid, 0.0)
        habit, count = habit + grid, count + known
        met[:, :, order] += grid
        count_met[:, :, order] += known
    habit, met = (
        total / np.maximum(times, 1) for total, times in ((habit, count), (met, count_met))
    )
    of_kind = np.zeros(shape)
    for one in pd.unique(kind):
        here = (kind == one).to_numpy()
        of_kind[:, :, here] = habit[:, :, here].mean(axis=2, keepdims=True)
    return Specific(matrix.scores - habit - met + of_kind, habit.mean(axis=2), "")


def _orders(kind: pd.Series, rng: np.random.Generator, count: int) -> list[npt.NDArray[np.intp]]:
    """Orders of the items that put none in its own place, within kinds (one alone in its kind
    stays).
    """
    orders = [np.arange(len(kind)) for _ in range(count)]
    for one in pd.unique(kind):
        places = rng.permutation(np.flatnonzero(kind == one))
        for k, order in enumerate(orders):
            order[places] = np.roll(places, 1 + k % max(len(places) - 1, 1))
    return orders


def _grid(values: pd.Series, matrix: TaskMatrix) -> FloatArray:
    """target × observer × item → [target, observer, item]."""
    labels = pd.MultiIndex.from_product([matrix.models, matrix.models, matrix.items])
    shape = (len(matrix.models), len(matrix.models), len(matrix.items))
    return np.asarray(values.reindex(labels).to_numpy(dtype=float).reshape(shape))


def _nanmean(grid: FloatArray) -> FloatArray:
    known = ~np.isnan(grid)
    sums = np.where(known, grid, 0.0).sum(axis=2) / np.maximum(known.sum(axis=2), 1)
    return np.asarray(np.where(known.any(axis=2), sums, np.nan))
