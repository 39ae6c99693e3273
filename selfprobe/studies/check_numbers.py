"""The numbers of `selfprobe check`: what changed between two runs of the same items, and whether it is worse."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from selfprobe.errors import InputError
from selfprobe.logs.reducers import GROW_WITH_EPOCHS, MEAN, known_reducer, parts_of, reduced
from selfprobe.stats.claim import Check, Claim, Outcome, Verdict
from selfprobe.stats.estimate import FloatArray, holm
from selfprobe.stats.paired import TWO_SIDED, Change, change
from selfprobe.text.safe import concealed

UNBOUND = "the evaluated model"
"""Stand-in for the model of a role that nobody was given."""
FAILED = "error"
"""Reason why a decision of a failed sample has no value."""
NO_SCORE = "no score"
"""Reason of a value where the scorer gave none: Inspect's scorers may return None."""
UNNAMED_SCORE = "score"
"""Name of the score of a run in which nothing was scored: its log does not say what the score is called."""
FEWEST = 5
"""Smallest number of clusters for which a skill is compared; with fewer the score is."""
SAME_WAY = 0.05
"""Share of samples that may be asked otherwise than before, such as those that got a higher limit."""

Cell = tuple[str, str]
"""An item and a key."""


class ChangeVerdict(StrEnum):
    """What is said of a change, the worst first; the value is the word of lines and of JSON."""

    WORSE = "worse"
    CANNOT_TELL = "cannot tell"
    NO_WORSE = "no worse"
    UNCHANGED = "unchanged"
    BETTER = "better"


WORST_FIRST = tuple(ChangeVerdict)


def target_suffix(model: str, target: str) -> str:
    """Part of a run's name about a target that is not its model."""
    return f" about {target}" if target != model else ""


@dataclass(frozen=True)
class Kept:
    """One run, with fields that are all JSON."""

    task: str
    model: str
    target: str
    version: str
    """Version of the task, without the data set's hash."""
    selfprobe: str
    """Version of the suite; "" of other suites' logs."""
    args: dict[str, Any]
    """Task arguments that are set; for the suite's tasks those that differ from the default."""
    model_args: dict[str, Any]
    data: str
    """Hash of the whole data set; "" for other suites, whose `inputs` are compared."""
    plan: str
    """Digest of the solvers and their arguments; "" for the suite's tasks, whose version says it."""
    prompts: list[str]
    """Digests of the first sample's prompts."""
    applied: dict[str, int]
    """Settings that the model was really asked with (other suites: that it was to be asked with) → samples."""
    metric: str
    """Name of the score of the suite's task; "" for other suites, which have one per scorer."""
    metrics: dict[str, float]
    """Metrics as the log has them, for the reader."""
    items: dict[str, dict[str, list[float | str]]]
    """Item → key → each epoch's value, or why there is none: "error" for a sample that failed."""
    blind: dict[str, dict[str, float]] = field(default_factory=dict)
    """Item → key → score of the best guess without a model (chance, the most frequent truth); 0 where left out."""
    reasoned: dict[str, list[str]] = field(default_factory=dict)
    """Item → keys at which the model reasoned against the task's wish, once per epoch."""
    inputs: dict[str, str] = field(default_factory=dict)
    """Item → digest of what it asks."""
    clusters: dict[str, str] = field(default_factory=dict)
    """Item → what it comes from, where items were grouped."""
    answers: dict[str, str] = field(default_factory=dict)
    """Item → digest of its options and its target; nothing in files of earlier versions."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Key of another suite's score → why it is not compared."""
    roles: dict[str, str] = field(default_factory=dict)
    """Role → its model, for all roles but the target; nothing in files of earlier versions."""
    scorers: dict[str, str] = field(default_factory=dict)
    """Scorer of another suite → digest of its arguments; nothing in files of earlier versions."""
    said: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Item → key → answers, "" where one could not be read; nothing in files of earlier versions."""
    reducers: list[str] = field(default_factory=list)
    """Names of what made one value of the epochs of an item, of another suite's scores; none is the mean."""

    @property
    def epochs(self) -> int:
        """Number of epochs of the item that has most."""
        return max((len(given) for cell in self.items.values() for given in cell.values()), default=0)

    @property
    def name(self) -> str:
        """Name for people: the task and its model."""
        return f"{self.task} of {self.model}{target_suffix(self.model, self.target)}"


Pair = tuple[Kept, Kept]


_SAME: tuple[Callable[[Kept], Hashable], ...] = (
    lambda run: (run.task, repr(run.args), run.model, run.target, repr(concealed(run.model_args))),
    lambda run: (run.task, repr(run.args), run.model, run.target),
    lambda run: (run.task, repr(run.args), run.model),
    lambda run: (run.task, repr(run.args), run.model == run.target),
    lambda run: (run.task, run.model),
    lambda run: run.task,
)
"""Properties that two runs may share, from the closest. The last ones find the pair whose difference is worth a
word."""


@dataclass(frozen=True)
class RunPairs:
    """Runs before and after."""

    pairs: list[Pair] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """A run's name → why it is not compared."""
    notes: list[str] = field(default_factory=list)
    """Notes for the reader that are no reason to refuse."""


def pair_runs(before: Sequence[Kept], after: Sequence[Kept]) -> RunPairs:
    """Pair each earlier run with the current one of the same task, arguments and model; a single other model counts."""
    out, left, there = RunPairs(), list(before), list(after)
    for same in _SAME:
        groups = defaultdict[Hashable, tuple[list[Kept], list[Kept]]](lambda: ([], []))
        for side, runs in enumerate((left, there)):
            for run in runs:
                groups[same(run)][side].append(run)
        for old, new in groups.values():
            if len(old) == len(new) == 1:
                _hold(old[0], new[0], out)
                left.remove(old[0])
                there.remove(new[0])
    for run in left:
        others = sorted(other.name for other in there if other.task == run.task)
        if (twice := others.count(run.name)) > 1:
            out.refused[run.name] = (
                f"the logs have {twice} runs of it with other arguments or samples, and one is compared; give its log"
            )
            continue
        of = ", ".join([*others[:3], *([f"{len(others) - 3} more"] if len(others) > 3 else [])]) or "none"
        out.refused[run.name] = f"the baseline has it and the logs lack it; of {run.task} they have {of}"
    named = {run.task for run in before}
    for run in there:
        if run.task not in named or not any(other.task == run.task for other in left):
            out.notes.append(f"{run.name} is not in the baseline")
    return out


def distinct_names(runs: Sequence[Kept]) -> list[str]:
    """The task of each run, with its arguments where others of the same task and model have other ones."""
    ways = {(run.task, run.model, run.target, repr(run.args)) for run in runs}
    same = Counter(way[:3] for way in ways)
    given = [", ".join(f"{name}={value}" for name, value in sorted(run.args.items())) or "defaults" for run in runs]
    several = [same[run.task, run.model, run.target] > 1 for run in runs]
    return [f"{run.task} ({told})" if more else run.task for run, told, more in zip(runs, given, several, strict=True)]


def _hold(old: Kept, new: Kept, out: RunPairs) -> None:
    if why := refusal(old, new):
        out.refused[new.name] = why
        return
    out.pairs.append((old, new))
    further = [] if new.metric else sorted(keys_of(new) - keys_of(old))
    notes = {
        f"the baseline is of selfprobe {old.selfprobe}, the logs are of {new.selfprobe}; the task's version is the "
        "same": old.selfprobe != new.selfprobe,
        f"the baseline's model is {old.model}": old.model != new.model,
        f"the baseline has {old.epochs} epoch{'s' * (old.epochs != 1)} of an item, the logs {new.epochs}; what is "
        f"compared is each item's {', '.join(new.reducers) or MEAN}": old.epochs != new.epochs,
        f"{', '.join(further)} is not in the baseline": bool(further),
    } | {f"not compared: {why}": True for why in new.left_out.values()}
    for reducer in new.reducers:
        if known_reducer(reducer) is None:
            note = f"the log reduces an item's epochs by {reducer}, which is not known here: their mean is compared"
        else:
            note = f"an item's value is the {reducer} of its epochs, as in the log"
        notes[note] = True
    out.notes.extend(f"{new.name}: {note}" for note, is_so in notes.items() if is_so)


def refusal(old: Kept, new: Kept) -> str:
    """Why two runs say nothing about a change of the model, or ""."""
    if old.version != new.version:
        return f"the baseline is of task version {old.version}, the logs are of {new.version}; save a new baseline"
    if old.args != new.args:
        names = [name for name in sorted({*old.args, *new.args}) if old.args.get(name) != new.args.get(name)]
        was, now = ([repr(run.args[n]) if n in run.args else "left out" for n in names] for run in (old, new))
        args = [f"{name} was {one} and is {other}" for name, one, other in zip(names, was, now, strict=True)]
        return f"asked with other task arguments: {', '.join(args)}"
    if old.data != new.data:
        return f"another data set: its hash was {old.data[:12] or 'none'} and is {new.data[:12] or 'none'}"
    if changed := [item for item in old.inputs.keys() & new.inputs.keys() if old.inputs[item] != new.inputs[item]]:
        return f"{len(changed)} of {len(old.inputs)} samples ask something else under the same id, as {min(changed)}"
    if changed := [item for item in old.answers.keys() & new.answers.keys() if old.answers[item] != new.answers[item]]:
        return (
            f"{len(changed)} of {len(old.answers)} samples have another target or other options, as {min(changed)}: "
            "the same reply is scored otherwise; save a new baseline"
        )
    if old.plan != new.plan:
        return "its solvers or their arguments changed (a prompt template among them)"
    if why := _scored_otherwise(old, new):
        return f"{why}: the same reply is scored otherwise; save a new baseline"
    if old.prompts and new.prompts and not {*old.prompts} & {*new.prompts}:
        return "the prompts changed, and the task's version did not; save a new baseline"
    growing = [reducer for reducer in new.reducers if parts_of(reducer)[0] in GROW_WITH_EPOCHS]
    if growing and old.epochs != new.epochs:
        return (
            f"the baseline has {old.epochs} epochs of an item, the logs {new.epochs}, and their {growing[0]} grows "
            "with them; run as many, or save a new baseline"
        )
    for less, more, told in ((new, old, "the baseline has numbers there"), (old, new, "that is the baseline's")):
        if odd := [why for key, why in less.left_out.items() if key in keys_of(more)]:
            return f"{odd[0]}; {told}"
    if not new.metric and (gone := sorted(keys_of(old) - keys_of(new))) and keys_of(new):
        return f"the logs lack the score {gone[0]}, which the baseline has; they have {', '.join(sorted(keys_of(new)))}"
    if lacking := old.items.keys() - new.items.keys():
        return (
            f"the logs have {len(old.items) - len(lacking)} of the baseline's {len(old.items)} items (without "
            f"{min(lacking)}); run all of them, or save a baseline of fewer"
        )
    return ""


def _scored_otherwise(old: Kept, new: Kept) -> str:
    """Another grader, or another argument of a scorer that both have; "" where there is none."""
    if old.roles and new.roles:
        for role in sorted({*old.roles, *new.roles}):
            was, now = (run.roles.get(role, UNBOUND) for run in (old, new))
            if was != now:
                return f"another model has the role {role}, it was {was} and is {now}"
    if old.reducers != new.reducers:
        was, now = (", ".join(run.reducers) or MEAN for run in (old, new))
        return f"an item's epochs were reduced by {was} and are by {now}"
    changed = [name for name in sorted({*old.scorers} & {*new.scorers}) if old.scorers[name] != new.scorers[name]]
    return f"the arguments of its scorer {changed[0]} changed (its grader or a template among them)" if changed else ""


def keys_of(run: Kept) -> set[str]:
    """Keys of all values of a run, including unscored ones."""
    return {key for cell in run.items.values() for key in cell}


@dataclass(frozen=True)
class MetricChange:
    """One metric of one run, before and after."""

    task: str
    """Task with the arguments that distinguish it from others of the same task and model: "kth_word (k=2)"."""
    model: str
    metric: str
    """Name: "skill", "accuracy", another suite's scorer, or "unscored", "reasoned", "asked"."""
    change: Change | None
    """Change of the metric; None for how the model was asked, which is no number."""
    down: bool = False
    """Whether less is better."""
    hidden: Change | None = None
    """Change if what is newly unscored were as bad as can be; None where nothing is."""
    why: str = ""
    """The reason that grew most, or what was asked otherwise."""
    verdict: ChangeVerdict = ChangeVerdict.CANNOT_TELL
    p_holm: float = math.nan
    """Two-sided p, corrected over all rows."""
    needed: int | None = None
    """Number of items that show a change of the smallest size with 80 % power; None where that is not known."""
    power: float = math.nan
    """Probability that such a change is shown here."""


def changes_of(pairs: Sequence[Pair], *, smallest: float, lower: Collection[str] = ()) -> list[MetricChange]:
    """Every metric of every pair with its verdict, p corrected over all of them (Holm).

    Args:
        pairs: Runs before and after.
        smallest: The smallest change that matters, in units of each metric.
        lower: Metrics whose lower values are better.
    """
    tasks = distinct_names([new for _, new in pairs])
    rows = [replace(row, task=task) for task, pair in zip(tasks, pairs, strict=True) for row in _rows(*pair, lower)]
    numbers = [row.change for row in rows if row.change is not None]
    adjusted = iter(holm([one.p for one in numbers]).tolist() if numbers else [])
    return [
        row if row.change is None else with_verdict(row, row.change, next(adjusted), smallest, len(numbers))
        for row in rows
    ]


def with_verdict(row: MetricChange, moved: Change, p_holm: float, smallest: float, tests: int) -> MetricChange:
    """A row with its verdict.

    "worse": the claim that it fell is a Yes. Where it is a No: "unchanged" if the interval lies inside ± smallest,
    "better" if it rose with p_holm below .05, else "no worse". What is newly unscored can turn each but "worse" into
    "cannot tell".
    """
    claim = fall_claim(row, moved, p_holm, smallest)
    low, high = _oriented(moved, row.down)
    hidden_low, _ = _oriented(row.hidden or moved, row.down)
    verdict = ChangeVerdict.NO_WORSE
    why = row.why
    if claim.verdict is Verdict.YES:
        verdict = ChangeVerdict.WORSE
    elif claim.verdict is Verdict.CANNOT_TELL:
        verdict = ChangeVerdict.CANNOT_TELL
        if row.hidden is not None and low > -smallest:
            why = "newly unscored values could hide a fall"
    elif -smallest < low and high < smallest:
        verdict = ChangeVerdict.UNCHANGED
    elif p_holm < TWO_SIDED and low > 0 and hidden_low > 0:
        verdict = ChangeVerdict.BETTER
    needed, power = moved.needed(smallest, tests=tests), moved.power(smallest, tests=tests)
    return replace(row, verdict=verdict, p_holm=p_holm, needed=needed, power=power, why=why)


def fall_claim(row: MetricChange, moved: Change, p_holm: float, smallest: float) -> Claim:
    """The claim that a metric fell, or rose where less is better.

    Args:
        row: The metric, with its change if what is newly unscored were as bad as can be.
        moved: Its change.
        p_holm: Two-sided p, corrected over all metrics.
        smallest: Smallest change that matters.
    """
    low, high = _oriented(moved, row.down)
    hidden_low, _ = _oriented(row.hidden or moved, row.down)
    estimate = moved.estimate
    sign = 1 if row.down else -1
    fall = replace(estimate, value=sign * estimate.value, low=-high, high=-low)
    largest_fall = replace(fall, high=float(np.maximum(-low, -hidden_low)))  # NaN where either is unknown
    is_shown = p_holm < TWO_SIDED and fall.low > 0
    is_within = fall.low > -smallest and fall.high < smallest
    checks = (
        Check("fell", fall, Outcome.HOLDS if is_shown else Outcome.OPEN, p_value=p_holm, remedy="add items"),
        Check("matters", fall, Outcome.FAILS if is_within else Outcome.HOLDS),
    )
    return Claim(f"{row.task} {row.metric}", largest_fall, checks, smallest)


def _oriented(moved: Change, down: bool) -> tuple[float, float]:
    """The interval, upwards what is better; NaN where there is none."""
    low, high = moved.estimate.low, moved.estimate.high
    return (-high, -low) if down else (low, high)


def _rows(old: Kept, new: Kept, lower: Collection[str]) -> Iterator[MetricChange]:
    """The rows of a pair, undecided: scores, then what is unscored or reasoned, then how the model was asked."""
    sides = (old, new) if new.metric else (old,)  # another suite's new score has nothing to be compared with
    keys = list(dict.fromkeys(key for run in sides for cell in run.items.values() for key in cell))
    for reducer in new.reducers or [MEAN]:
        for names in [keys] if new.metric else [[key] for key in keys]:
            yield _score(old, new, names, lower, reducer)
    clusters, before, after = _sides(old, new, _cells(old, new, keys))
    rates = {"unscored": (before.missing, after.missing), "reasoned": (before.reasoned, after.reasoned)}
    for name, (was, now) in rates.items():
        if was.any() or now.any():
            more = after.reasons - before.reasons if name == "unscored" else Counter[str]()
            why = max(sorted(more), key=lambda reason: more[reason], default="")
            yield MetricChange(
                new.task, new.model, name, change(was, now, clusters, unit=_unit(new)), down=True, why=why
            )
    if told := _asked(old, new):
        same = old.model == new.model and concealed(old.model_args) == concealed(new.model_args)
        verdict = ChangeVerdict.WORSE if same else ChangeVerdict.CANNOT_TELL
        yield MetricChange(new.task, new.model, "asked", None, why=told, verdict=verdict)


def _score(old: Kept, new: Kept, keys: Sequence[str], lower: Collection[str], reducer: str) -> MetricChange:
    """The row of a score; a skill where something can be guessed without a model."""
    clusters, before, after = _sides(old, new, _cells(old, new, keys), reducer)
    name = new.metric or keys[0]
    if name == UNNAMED_SCORE:
        name = old.metric or name
    if len(new.reducers) > 1:
        name = f"{name} ({reducer})"
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
            return MetricChange(new.task, new.model, "skill", skills[0], hidden=skills[1] if filled else None)
    scale = 1.0 if bounded else float(np.ptp(known)) or 1.0
    moved = [change(before.values, side.values, clusters, unit=_unit(new), scale=scale) for side in now]
    return MetricChange(new.task, new.model, name, moved[0], down=down, hidden=moved[1] if filled else None)


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
    """Text on how the model was asked otherwise than before, where that is more than a few samples; or ""."""
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
    """What the reducer makes of the epochs; NaN where too few are scored."""
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


def _side(run: Kept, cells: Sequence[Cell], reducer: str = MEAN) -> _Side:
    given = [run.items[item].get(key, [FAILED]) for item, key in cells]
    scored = [[value for value in one if not isinstance(value, str)] for one in given]
    reasoned = [run.reasoned.get(item, []).count(key) for item, key in cells]
    epochs = np.array([len(one) for one in given], dtype=float)
    return _Side(
        values=np.array([reduced(_seen_by_scorer(one), reducer) for one in given]),
        missing=1 - np.array([len(one) for one in scored]) / epochs,
        blind=np.array([run.blind.get(item, {}).get(key, 0.0) for item, key in cells]),
        reasoned=np.array(reasoned) / epochs,
        reasons=Counter(value for one in given for value in one if isinstance(value, str)),
    )


def _seen_by_scorer(epoch_values: Sequence[float | str]) -> list[float]:
    """Values of the epochs that a scorer saw, NaN where it left one unscored."""
    seen = [value for value in epoch_values if value not in (FAILED, NO_SCORE)]
    return [math.nan if isinstance(value, str) else value for value in seen]


def _sides(
    old: Kept, new: Kept, cells: Sequence[Cell], reducer: str = MEAN
) -> tuple[npt.NDArray[np.intp], _Side, _Side]:
    """The number of each cell's cluster, `[cell]`, and both runs."""
    known: dict[str, int] = {}
    clusters = [known.setdefault(new.clusters.get(item, item), len(known)) for item, _ in cells]
    return np.array(clusters, dtype=np.intp), _side(old, cells, reducer), _side(new, cells, reducer)


def _unit(run: Kept) -> str:
    return "cluster" if run.clusters else "item"


@dataclass(frozen=True)
class Turned:
    """A cell that was right and is wrong, or the reverse."""

    task: str
    model: str
    item: str
    key: str
    right: bool
    """Whether the cell is right now."""
    was: str
    """Most frequent answer before; "" where none is kept."""
    now: str

    def __str__(self) -> str:
        turn = "wrong → right" if self.right else "right → wrong"
        answers = " → ".join(f'"{one}"' if one else "no answer kept" for one in (self.was, self.now))
        return f"{self.task} {self.item} {self.key}  {turn}: {answers}"


def turned(pairs: Sequence[Pair], lower: Collection[str] = ()) -> list[Turned]:
    """The cells that turned, those that are wrong now first; of scores that are 0, ½ or 1, by their first reducer."""
    found = []
    tasks = distinct_names([new for _, new in pairs])
    for task, (old, new) in zip(tasks, pairs, strict=True):
        reducer = next(iter(new.reducers), MEAN)
        for key in sorted(keys_of(old) & keys_of(new)):
            cells = _cells(old, new, [key])
            given = [value for run in (old, new) for item, _ in cells for value in run.items[item].get(key, [])]
            if not {value for value in given if not isinstance(value, str)} <= {0.0, 0.5, 1.0}:
                continue
            signs = (-1 if (new.metric or key) in lower else 1) * np.array(
                [np.sign(_side(run, cells, reducer).values - 0.5) for run in (old, new)]
            )
            found += [
                Turned(task, new.model, item, key, bool(now > 0), _answer(old, item, key), _answer(new, item, key))
                for (item, _), was, now in zip(cells, *signs, strict=True)
                if was * now < 0
            ]
    return sorted(found, key=lambda one: one.right)


def _answer(run: Kept, item: str, key: str) -> str:
    return Counter(run.said.get(item, {}).get(key, [""])).most_common(1)[0][0]


def item_draws(pairs: Sequence[Pair]) -> Callable[[np.random.Generator], list[Pair]]:
    """Draws the items of both runs anew, whole clusters with replacement."""
    return lambda rng: [_drawn(old, new, rng) for old, new in pairs]


def _drawn(old: Kept, new: Kept, rng: np.random.Generator) -> Pair:
    held: dict[str, list[str]] = {}
    for item in old.items:
        held.setdefault(new.clusters.get(item, item), []).append(item)
    names = sorted(held)
    picks = [(names[i], draw) for draw, i in enumerate(rng.integers(len(names), size=len(names)))]
    drawn = {f"{item} {draw}": (item, f"{name} {draw}") for name, draw in picks for item in held[name]}

    def of(run: Kept) -> Kept:
        tables: list[Any] = [
            {name: table[item] for name, (item, _) in drawn.items() if item in table}
            for table in (run.items, run.blind, run.reasoned)
        ]
        clusters = {name: cluster for name, (_, cluster) in drawn.items()}
        return replace(run, items=tables[0], blind=tables[1], reasoned=tables[2], clusters=clusters)

    return of(old), of(new)


def epoch_deals(runs: Sequence[Kept]) -> Callable[[np.random.Generator], list[Pair]]:
    """Deals the epochs of each item to a run before and one after: the model against itself.

    Raises:
        InputError: A run has one epoch.
    """
    for run in runs:
        if run.epochs < 2:
            raise InputError(
                f"--aa deals the epochs of a run to two sides, and {run.name} has one; run it with --epochs 2 or more, "
                "or compare it with --baseline FILE.json, and its items are drawn anew"
            )
        for reducer in run.reducers:
            if parts_of(reducer)[1] > run.epochs // 2:
                raise InputError(
                    f"--aa deals the {run.epochs} epochs of {run.name} to two sides, and {reducer} needs more of them; "
                    "run it with more epochs, or compare it with --baseline FILE.json"
                )
    return lambda rng: [_dealt(run, rng) for run in runs]


def _dealt(run: Kept, rng: np.random.Generator) -> Pair:
    sides: tuple[dict[str, Any], ...] = ({}, {})
    for item, cell in sorted(run.items.items()):
        epochs = rng.permutation(max(map(len, cell.values()), default=0))
        half = len(epochs) // 2
        for side, chosen in zip(sides, (epochs[:half], epochs[half : 2 * half]), strict=True):
            side[item] = {
                key: [given[i] for i in sorted(chosen) if i < len(given)] or given[:1] for key, given in cell.items()
            }
    before, after = (replace(run, items=side, reasoned={}) for side in sides)
    return before, after


def verdict_counts(
    draw: Callable[[np.random.Generator], list[Pair]], times: int, *, smallest: float, lower: Collection[str] = ()
) -> Counter[ChangeVerdict]:
    """Number of draws in which each verdict is the worst of all rows; the same draws in every call."""
    rng, worst = np.random.default_rng(0), Counter[ChangeVerdict]()
    for _ in range(times):
        found = [row.verdict for row in changes_of(draw(rng), smallest=smallest, lower=lower)]
        worst[min(found, key=WORST_FIRST.index, default=ChangeVerdict.CANNOT_TELL)] += 1
    return worst
