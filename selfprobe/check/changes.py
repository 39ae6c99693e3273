"""What changed between two runs of the same items, and whether it is worse."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from selfprobe.check.kept import Kept
from selfprobe.check.pairs import Pair, told_apart
from selfprobe.stats.estimate import holm
from selfprobe.stats.paired import TWO_SIDED, Change, change
from selfprobe.stats.spread import FloatArray

Cell = tuple[str, str]
"""An item and a key."""
Verdict = Literal["worse", "better", "unchanged", "no worse", "cannot tell"]

FAILED = "error"
"""Why a decision of a sample that failed has no value."""
FEWEST = 5
"""Clusters from which a skill is compared; with fewer the score is."""
SAME_WAY = 0.05
"""Share of samples that may be asked otherwise than before, such as those that got a higher limit."""


@dataclass(frozen=True)
class Row:
    """One metric of one run, before and after."""

    task: str
    """With the arguments that tell it from others of the same task and model: "kth_word (k=2)"."""
    model: str
    metric: str
    """ "skill", "accuracy", another suite's scorer, or "unscored", "reasoned", "asked"."""
    change: Change | None
    """None of how the model was asked, which is no number."""
    down: bool = False
    """Whether less is better."""
    hidden: Change | None = None
    """The same if what is newly unscored were as bad as can be; None where nothing is."""
    why: str = ""
    """The reason that grew most, or what was asked otherwise."""
    verdict: Verdict = "cannot tell"
    p_holm: float = math.nan
    """Two-sided p, corrected over all rows."""
    needed: int | None = None
    """Items to find a change of the smallest size with 80 % power; None where that is not known."""
    power: float = math.nan
    """The chance to find one here."""


def rows_of(pairs: Sequence[Pair], *, smallest: float, lower: Collection[str] = ()) -> list[Row]:
    """Every metric of every pair with its verdict, p corrected over all of them (Holm).

    Args:
        pairs: Runs before and after.
        smallest: The smallest change that matters, in units of each metric.
        lower: Metrics of which less is better.
    """
    tasks = told_apart([new for _, new in pairs])
    rows = [replace(row, task=task) for task, pair in zip(tasks, pairs, strict=True) for row in _rows(*pair, lower)]
    numbers = [row.change for row in rows if row.change is not None]
    adjusted = iter(holm([one.p for one in numbers]).tolist() if numbers else [])
    return [
        row if row.change is None else judged(row, row.change, next(adjusted), smallest, len(numbers)) for row in rows
    ]


def judged(row: Row, moved: Change, p_holm: float, smallest: float, tests: int) -> Row:
    """A row with its verdict.

    "unchanged": the interval lies inside ± smallest. "worse", "better": p_holm below .05, else. "no worse": the
    interval excludes a fall of the smallest size. What is newly unscored can turn each but "worse" into "cannot tell".
    """
    low, high = _oriented(moved, row.down)
    sure = p_holm < TWO_SIDED
    verdict: Verdict = "cannot tell"
    if -smallest < low and high < smallest:
        verdict = "unchanged"
    elif sure and high < 0:
        verdict = "worse"
    elif sure and low > 0:
        verdict = "better"
    elif low > -smallest:
        verdict = "no worse"
    why = row.why
    if row.hidden is not None and verdict in ("better", "unchanged", "no worse"):
        worst, best = _oriented(row.hidden, row.down)
        if verdict == "better" and not worst > 0:
            verdict = "no worse" if worst > -smallest else "cannot tell"
        elif not worst > -smallest or (verdict == "unchanged" and not best < smallest):
            verdict = "cannot tell"
        why = "newly unscored values could hide a fall" if verdict == "cannot tell" else why
    needed, power = moved.needed(smallest, tests=tests), moved.power(smallest, tests=tests)
    return replace(row, verdict=verdict, p_holm=p_holm, needed=needed, power=power, why=why)


def _oriented(moved: Change, down: bool) -> tuple[float, float]:
    """The interval, upwards what is better; NaN where there is none."""
    low, high = moved.estimate.low, moved.estimate.high
    return (-high, -low) if down else (low, high)


def _rows(old: Kept, new: Kept, lower: Collection[str]) -> Iterator[Row]:
    """The rows of a pair, undecided: scores, then what is unscored or reasoned, then how the model was asked."""
    sides = (old, new) if new.metric else (old,)  # another suite's new score has nothing to be compared with
    keys = list(dict.fromkeys(key for run in sides for cell in run.items.values() for key in cell))
    for names in [keys] if new.metric else [[key] for key in keys]:
        yield _score(old, new, names, lower)
    cells = _cells(old, new, keys)
    clusters, before, after = _clusters(new, cells), _side(old, cells), _side(new, cells)
    rates = {"unscored": (before.missing, after.missing), "reasoned": (before.reasoned, after.reasoned)}
    for name, (was, now) in rates.items():
        if was.any() or now.any():
            more = after.reasons - before.reasons if name == "unscored" else Counter[str]()
            why = max(sorted(more), key=lambda reason: more[reason], default="")
            yield Row(new.task, new.model, name, change(was, now, clusters, unit=_unit(new)), down=True, why=why)
    if told := _asked(old, new):
        same = old.model == new.model and old.model_args == new.model_args
        yield Row(new.task, new.model, "asked", None, why=told, verdict="worse" if same else "cannot tell")


def _score(old: Kept, new: Kept, keys: Sequence[str], lower: Collection[str]) -> Row:
    """The row of a score; a skill where something can be guessed without a model."""
    cells = _cells(old, new, keys)
    clusters, before, after = _clusters(new, cells), _side(old, cells), _side(new, cells)
    name = new.metric or keys[0]
    down = name in lower
    known = np.concatenate([before.values, after.values])
    known = known[~np.isnan(known)] if not np.isnan(known).all() else np.zeros(1)
    bounded = bool(((known >= 0) & (known <= 1)).all())
    worst = float(down) if bounded else float(known.max() if down else known.min())
    filled = _filled(before, after, worst)
    now = [after] if filled is None else [after, filled]
    both = ~np.isnan(before.values) & ~np.isnan(after.values)
    if (old.blind or new.blind) and len(np.unique(clusters[both])) >= FEWEST:
        skills = [_skill(before, side, clusters, _unit(new)) for side in now]
        if skills[0] is not None and skills[-1] is not None:
            return Row(new.task, new.model, "skill", skills[0], hidden=skills[1] if filled else None)
    scale = 1.0 if bounded else float(np.ptp(known)) or 1.0
    moved = [change(before.values, side.values, clusters, unit=_unit(new), scale=scale) for side in now]
    return Row(new.task, new.model, name, moved[0], down=down, hidden=moved[1] if filled else None)


def _filled(before: "_Side", after: "_Side", worst: float) -> "_Side | None":
    """The run of now with what it lost as bad as can be; None where it lost no more than it gained.

    What is lost and gained by chance balances: as many as became scored are taken to be as they were.
    """
    lost = np.where(np.isnan(before.values), 0.0, np.maximum(0.0, after.missing - before.missing))
    gained = np.maximum(0.0, before.missing - after.missing)
    if lost.sum() <= gained.sum():
        return None
    bad = lost * (1 - gained.sum() / lost.sum())
    gone = np.isnan(after.values)
    values = (1 - bad) * np.where(gone, before.values, after.values) + bad * worst
    return replace(after, values=values, blind=np.where(gone, before.blind, after.blind))


def _skill(before: "_Side", after: "_Side", clusters: npt.NDArray[np.intp], unit: str) -> Change | None:
    """The change of the skill, linearised as in `stats.estimate.skill`; None where a guess is always right."""
    both = ~np.isnan(before.values) & ~np.isnan(after.values)
    sides, scale = [], 1.0
    for side in (before, after):
        score, guess = float(side.values[both].mean()), float(side.blind[both].mean())
        if guess >= 1:
            return None
        scale = max(scale, 1 / (1 - guess))
        sides.append((side.values - (1 - score) / (1 - guess) * (side.blind - guess) - guess) / (1 - guess))
    return change(sides[0], sides[1], clusters, unit=unit, scale=scale)


def _asked(old: Kept, new: Kept) -> str:
    """How the model was asked otherwise than before, where that is more than a few samples; or ""."""
    before, after = (sum(run.applied.values()) for run in (old, new))
    if not before or not after:
        return ""
    ways = {*old.applied, *new.applied}
    moved = {way: new.applied.get(way, 0) / after - old.applied.get(way, 0) / before for way in ways}
    if sum(share for share in moved.values() if share > 0) <= SAME_WAY:
        return ""
    was, now = min(sorted(moved), key=lambda way: moved[way]), max(sorted(moved), key=lambda way: moved[way])
    return f"{was} → {now}"


@dataclass(frozen=True)
class _Side:
    """One run, `[cell]`."""

    values: FloatArray
    """Mean over epochs; NaN where none is scored."""
    missing: FloatArray
    """Share of epochs that are unscored."""
    blind: FloatArray
    reasoned: FloatArray
    reasons: Counter[str]
    """Why values are unscored."""


def _cells(old: Kept, new: Kept, keys: Sequence[str]) -> list[Cell]:
    """The baseline's items with the keys that either run has of each; where both failed, all."""
    found = []
    for item, before in old.items.items():
        own = [key for key in keys if key in before or key in new.items[item]]
        found += [(item, key) for key in own or (keys if not before and not new.items[item] else [])]
    return found


def _side(run: Kept, cells: Sequence[Cell]) -> _Side:
    given = [run.items[item].get(key, [FAILED]) for item, key in cells]
    scored = [[value for value in one if not isinstance(value, str)] for one in given]
    reasoned = [run.reasoned.get(item, []).count(key) for item, key in cells]
    epochs = np.array([len(one) for one in given], dtype=float)
    return _Side(
        values=np.array([math.fsum(one) / len(one) if one else math.nan for one in scored]),
        missing=1 - np.array([len(one) for one in scored]) / epochs,
        blind=np.array([run.blind.get(item, {}).get(key, 0.0) for item, key in cells]),
        reasoned=np.array(reasoned) / epochs,
        reasons=Counter(value for one in given for value in one if isinstance(value, str)),
    )


def _clusters(run: Kept, cells: Sequence[Cell]) -> npt.NDArray[np.intp]:
    """The number of each cell's cluster, `[cell]`."""
    known: dict[str, int] = {}
    return np.array([known.setdefault(run.clusters.get(item, item), len(known)) for item, _ in cells], dtype=np.intp)


def _unit(run: Kept) -> str:
    return "cluster" if run.clusters else "item"
