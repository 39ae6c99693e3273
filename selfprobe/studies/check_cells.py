"""The values of two runs at the cells that they share, and the cells that turned."""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from selfprobe.logs.judged import FAILED, NO_SCORE
from selfprobe.logs.reducers import MEAN, reduced
from selfprobe.stats.estimate import FloatArray
from selfprobe.studies.check_pairs import BaselineRun, Pair, distinct_names, keys_of, target_suffix

Cell = tuple[str, str]
"""An item and a key."""


@dataclass(frozen=True)
class CellValues:
    """One run, `[cell]`."""

    values: FloatArray
    """What the reducer makes of the epochs; NaN where too few are scored."""
    missing: FloatArray
    """Share of epochs that are unscored."""
    blind: FloatArray
    reasoned: FloatArray
    reasons: Counter[str]
    """Why values are unscored."""


def shared_cells(old: BaselineRun, new: BaselineRun, keys: Sequence[str]) -> list[Cell]:
    """The baseline's items with the keys that either run has of each; where both failed, all."""
    cells = list[Cell]()
    for item, old_values in old.items.items():
        new_values = new.items[item]
        item_keys = [key for key in keys if key in old_values or key in new_values]
        if not old_values and not new_values:
            item_keys = list(keys)
        cells += [(item, key) for key in item_keys]
    return cells


def values_at(run: BaselineRun, cells: Sequence[Cell], reducer: str = MEAN) -> CellValues:
    cell_values = list[float]()
    missing_shares = list[float]()
    blind_scores = list[float]()
    reasoned_shares = list[float]()
    reason_counts = Counter[str]()
    for item, key in cells:
        epoch_values = run.items[item].get(key, [FAILED])
        epoch_count = len(epoch_values)
        reasons = [value for value in epoch_values if isinstance(value, str)]
        reason_counts.update(reasons)
        scored_count = epoch_count - len(reasons)
        cell_values.append(reduced(_seen_by_scorer(epoch_values), reducer))
        missing_shares.append(1 - scored_count / epoch_count)
        blind_scores.append(run.blind.get(item, {}).get(key, 0.0))
        reasoned_shares.append(run.reasoned.get(item, []).count(key) / epoch_count)
    return CellValues(
        values=np.array(cell_values),
        missing=np.array(missing_shares),
        blind=np.array(blind_scores),
        reasoned=np.array(reasoned_shares),
        reasons=reason_counts,
    )


def _seen_by_scorer(epoch_values: Sequence[float | str]) -> list[float]:
    """Values of the epochs that a scorer saw, NaN where it left one unscored."""
    seen_values = list[float]()
    for value in epoch_values:
        if not isinstance(value, str):
            seen_values.append(value)
        elif value not in (FAILED, NO_SCORE):
            seen_values.append(math.nan)
    return seen_values


@dataclass(frozen=True)
class TurnedCell:
    """A cell that was right and is wrong, or the reverse. Its fields are those of the JSON."""

    task: str
    model: str
    target: str
    item: str
    key: str
    right: bool
    """Whether the cell is right now."""
    was: str
    """Most frequent answer before; "" where none is kept."""
    now: str

    def line(self, *, names_models: bool) -> str:
        """A line for people; the models stand in it where other runs have other ones."""
        turn = "wrong → right" if self.right else "right → wrong"
        old_answer = f'"{self.was}"' if self.was else "no answer kept"
        new_answer = f'"{self.now}"' if self.now else "no answer kept"
        run_name = self.task
        if names_models:
            run_name = f"{self.task} of {self.model}{target_suffix(self.model, self.target)}"
        return f"{run_name} {self.item} {self.key}  {turn}: {old_answer} → {new_answer}"


RIGHT_OR_WRONG = frozenset({0.0, 0.5, 1.0})
"""Scores that say right, undecided or wrong; a cell of other ones does not turn."""


def turned_cells(pairs: Sequence[Pair], lower: Collection[str] = ()) -> list[TurnedCell]:
    """The cells that turned, those that are wrong now first; of scores that are 0, ½ or 1, by their
    first reducer.
    """
    all_turned = list[TurnedCell]()
    task_names = distinct_names([new for _, new in pairs])
    for task_name, (old, new) in zip(task_names, pairs, strict=True):
        reducer = new.reducers[0] if new.reducers else MEAN
        for key in sorted(keys_of(old) & keys_of(new)):
            cells = shared_cells(old, new, [key])
            all_scores = _scores(old, cells) | _scores(new, cells)
            if not all_scores <= RIGHT_OR_WRONG:
                continue
            sign = -1 if (new.metric or key) in lower else 1
            old_signs = sign * np.sign(values_at(old, cells, reducer).values - 0.5)
            new_signs = sign * np.sign(values_at(new, cells, reducer).values - 0.5)
            for (item, _), old_sign, new_sign in zip(cells, old_signs, new_signs, strict=True):
                if old_sign * new_sign < 0:
                    turned_cell = TurnedCell(
                        task=task_name,
                        model=new.model,
                        target=new.target,
                        item=item,
                        key=key,
                        right=bool(new_sign > 0),
                        was=_most_frequent_answer(old, item, key),
                        now=_most_frequent_answer(new, item, key),
                    )
                    all_turned.append(turned_cell)
    return sorted(all_turned, key=lambda cell: cell.right)


def scores_of(run: BaselineRun) -> set[float]:
    """All different scores of a run."""
    cells = list[Cell]()
    for item, values_by_key in run.items.items():
        cells += [(item, key) for key in values_by_key]
    return _scores(run, cells)


def _scores(run: BaselineRun, cells: Sequence[Cell]) -> set[float]:
    """All different scores of a run at these cells."""
    scores = set[float]()
    for item, key in cells:
        scores |= {value for value in run.items[item].get(key, []) if not isinstance(value, str)}
    return scores


def _most_frequent_answer(run: BaselineRun, item: str, key: str) -> str:
    answers = run.said.get(item, {}).get(key, [""])
    return Counter(answers).most_common(1)[0][0]
