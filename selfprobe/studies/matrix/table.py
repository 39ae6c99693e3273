"""The tidy tables of a matrix, from its logs; many are read in several processes.

The module says what a run says of its cell, which cells need no run since two models' own runs are
joined, and what counts as the same measurement: of which setting a matrix is (`choose_setting`),
and which cells may be compared.
"""

import math
import operator
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from joblib import Parallel, cpu_count, delayed

from selfprobe.errors import NoLogs, one_line
from selfprobe.logs import (
    CANNOT,
    UNREADABLE,
    Identity,
    Run,
    Runs,
    about_of,
    args_of,
    cause,
    decision_columns,
    differing,
    informed_of,
    none_found,
    runs,
    target_of,
    token_count,
    valid_samples,
)
from selfprobe.logs.decision import Decision
from selfprobe.scorers.decision import NO_PREDICTION
from selfprobe.scorers.frames import Frames, frames
from selfprobe.solvers.observe import OTHER
from selfprobe.solvers.reply_notes import applied_in, remarks_in
from selfprobe.study._registry import measures
from selfprobe.text.safe import masked

CELL = ["task", "target", "observer"]
Cell = tuple[str, ...]
"""Task, target and observer; of an observer that is told of its target, how (`header.informed_of`)
too.
"""


@dataclass(frozen=True)
class RunContent:
    """The content of a run's log, as far as a matrix uses it."""

    sample_count: int
    error_count: int
    first_error: str
    """Error that ended the first sample in error."""
    columns: dict[str, list[Any]]
    """Decisions, see `logs.decision_columns`."""
    applied: dict[str, str]
    """See `sent.applied_in`."""
    remarks: list[str]
    """See `sent.remarks_in`."""
    tokens: int
    """Tokens of all calls of the run's items, those for invalidated samples too."""

    @property
    def has_decisions(self) -> bool:
        """Whether some decision is no mere error."""
        return any(self.columns["key"])


def run_content(run: Run) -> RunContent | str:
    """The content of a run's log, or why there is none."""
    try:
        all_samples = run.read_summaries(valid=False)
        run_samples = valid_samples(run.log, all_samples)
        samples_in_error = [sample for sample in run_samples if sample.error]
        return RunContent(
            sample_count=len(run_samples),
            error_count=len(samples_in_error),
            first_error=cause(run.log, samples_in_error[0]) if samples_in_error else "",
            columns=decision_columns(run, run_samples),
            applied=applied_in(run_samples),
            remarks=remarks_in(run_samples),
            tokens=token_count(all_samples),
        )
    except UNREADABLE as error:
        return f"cannot be read: {one_line(error)}"


def cell_of(cell: Sequence[str], run: Run, content: RunContent) -> dict[str, Any]:
    """The row of a cell that is a run; the columns are those of `Results.cells`."""
    log = run.header
    metadata = log.eval.metadata or {}
    status, reason = _status_and_reason(run, content)
    return dict(zip([*CELL, "arm"], cell, strict=False)) | {
        "status": status,
        "reason": reason,
        "log": log.location,
        "samples": content.sample_count,
        "errors": content.error_count,
        "epochs": log.eval.config.epochs or 1,
        "version": str(log.eval.task_version),
        "dataset": metadata.get("dataset"),
        "dataset_sha256": metadata.get("dataset_sha256"),
        "selfprobe": metadata.get("selfprobe"),
        "inspect": log.eval.packages.get("inspect_ai"),
        "created": log.eval.created,
        "args": args_of(log),
        "settings": dict(run.identity.config),
        "items": sorted(run.items()),
        "joined": False,
        "applied": content.applied,
        "remarks": content.remarks,
        "tokens": content.tokens,
    }


def _status_and_reason(run: Run, content: RunContent) -> tuple[str, str]:
    """Status of a cell that is a run, and the reason where it is not complete."""
    if run.finished and not content.error_count:
        return "complete", ""
    if run.invalidated.are_all:
        return "failed", str(run.invalidated)
    log = run.header
    planned = run.planned_samples or content.sample_count
    if log.status == "started":
        reason = f"the run was cut off; {content.sample_count} of {planned} samples are in its log"
    else:
        reason = f"run ended as {log.status}; {content.error_count} of {planned} samples in error"
    first_error = content.first_error
    if not first_error and log.error:
        first_error = masked(log.error.message)
    return "failed", f"{reason}: {first_error[:200]}" if first_error else reason


def joinable(task: str, chosen: Mapping[Cell, Run]) -> list[Cell]:
    """The cells of a task that are no run, and both of whose models ran on themselves."""
    own = sorted(target for name, target, observer in chosen if name == task and target == observer)
    cells = [(task, target, observer) for target in own for observer in own if target != observer]
    return [cell for cell in cells if cell not in chosen]


def own_cell(cell: Cell, side: int) -> Cell:
    """The run on itself of a cell's target (1) or observer (2)."""
    return (cell[0], cell[side], cell[side])


def with_joined(own: pd.DataFrame, cells: Sequence[Cell]) -> pd.DataFrame:
    """The decisions of runs, and then those of cells that need no call: columns of
    `Results.decisions`.

    In such a cell the observer's predictions of itself are compared with the target's truths at the
    same questions.

    Args:
        own: Decisions of runs, among them those of the cells' models on themselves.
        cells: The cells that are no run.
    """
    if not cells or own.empty:
        return own
    question = own.groupby(["item", "epoch", "key"], sort=False).ngroup().to_numpy()
    sides = [measures()[task].sides.get(key) for task, key in zip(own.task, own.key, strict=True)]
    of_target, of_observer = (
        np.array([side == name for side in sides]) for name in ("target", "observer")
    )
    rows_by_cell: dict[Any, npt.NDArray[np.intp]] = own.groupby(CELL, sort=False).indices
    row_by_question = {cell: np.full(question.max() + 1, -1) for cell in rows_by_cell}
    for cell, rows in rows_by_cell.items():
        row_by_question[cell][question[rows]] = rows

    none = np.empty(0, dtype=np.intp)
    target_rows, observer_rows, sizes = [none], [none], list[int]()
    for cell in cells:
        rows = rows_by_cell.get(own_cell(cell, 1), none)
        observed = row_by_question.get(own_cell(cell, 2))
        met = np.full(len(rows), -1) if observed is None else observed[question[rows]]
        kept = of_target[rows] | (met >= 0)
        target_rows.append(rows[kept])
        observer_rows.append(met[kept])
        sizes.append(int(kept.sum()))
    target_row, observer_row = np.concatenate(target_rows), np.concatenate(observer_rows)

    observers = pd.Series([cell[2] for cell in cells]).repeat(sizes)
    columns: dict[str, Any] = {
        "target": pd.concat([own.target, own.target.take(target_row)], ignore_index=True),
        "observer": pd.concat([own.observer, observers], ignore_index=True),
    }
    whole_row = np.concatenate(
        [np.arange(len(own)), np.where(of_observer[target_row], observer_row, target_row)]
    )
    both_sides = np.flatnonzero(~of_target[target_row] & ~of_observer[target_row])
    for name, values in crossed_columns(
        own, target_row[both_sides], observer_row[both_sides]
    ).items():
        column = _with_none(own[name]) if values.dtype == object else own[name].to_numpy()
        columns[name] = column[whole_row]
        columns[name][len(own) + both_sides] = values
    table = own.drop(columns=list(columns)).take(whole_row).reset_index(drop=True)
    return table.assign(**columns)[list(own.columns)]


def crossed_columns(
    own: pd.DataFrame, target_row: npt.NDArray[np.intp], observer_row: npt.NDArray[np.intp]
) -> dict[str, npt.NDArray[Any]]:
    """Observers' predictions of themselves, compared with other targets' truths; faults of either
    side stay reasons.

    Args:
        own: Decisions of models on themselves.
        target_row: [comparison]: row of the target's decision.
        observer_row: [comparison]: row of the observer's decision at the same question.

    Returns:
        Column → values [comparison], of the columns that are not the target's.
    """
    said, truth, unscored, unread = (
        _with_none(own[name]) for name in ("said", "truth", "unscored", "unread")
    )
    has_said, has_truth, has_unread = (
        own[name].notna().to_numpy() for name in ("said", "truth", "unread")
    )
    nothing = np.full(len(own), None)
    target_fault = np.where(~has_truth | has_unread | has_said, unscored, nothing)
    own_fault = np.where(has_truth, unscored, nothing)
    observer_fault = np.where(
        has_unread, unread, np.where(pd.isna(own_fault), NO_PREDICTION, own_fault)
    )
    observer_fault[has_said] = None
    reason = target_fault[target_row]
    reason = np.where(pd.isna(reason), observer_fault[observer_row], reason)

    texts = pd.Index(pd.unique(np.concatenate([said.astype(str), truth.astype(str)])))
    said_code, truth_code = (
        texts.get_indexer(said.astype(str)),
        texts.get_indexer(truth.astype(str)),
    )
    value = np.full(len(target_row), math.nan)
    tasks, task_code = np.unique(own.task, return_inverse=True)
    for code, task in enumerate(tasks):
        at = np.flatnonzero((task_code[target_row] == code) & pd.isna(reason))
        said_there, truth_there = said_code[observer_row[at]], truth_code[target_row[at]]
        right = measures()[task].right
        if right is operator.eq:
            value[at] = said_there == truth_there
            continue
        pairs, place = np.unique(said_there * len(texts) + truth_there, return_inverse=True)
        graded = [right(texts[pair // len(texts)], texts[pair % len(texts)]) for pair in pairs]
        value[at] = np.array(graded, dtype=float)[place]
    return {
        "value": value,
        "unscored": reason,
        "said": said[observer_row],
        "unread": np.full(len(target_row), None),
        "reasoned": own.reasoned.to_numpy()[observer_row],
    }


def _with_none(column: pd.Series) -> npt.NDArray[np.object_]:
    """The values of a column of texts, None where there is none."""
    values: npt.NDArray[np.object_] = column.to_numpy(dtype=object, copy=True)
    values[column.isna().to_numpy()] = None
    return values


def joined_cell(cell: Cell, target: dict[str, Any], observer: dict[str, Any]) -> dict[str, Any]:
    """The row of a cell that is no run; complete where both models' runs on themselves are."""
    failed = next((run for run in (target, observer) if run["status"] != "complete"), None)
    why = f"{failed['target']} on itself: {failed['reason']}" if failed else ""
    return (
        target
        | dict(zip(CELL, cell, strict=True))
        | {
            "status": "failed" if failed else "complete",
            "reason": why,
            "log": f"{target['log']} × {observer['log']}",
            "joined": True,
            "remarks": [],
            "applied": {
                role: run["applied"][role]
                for role, run in (("target", target), ("observer", observer))
                if role in run["applied"]
            },
            "tokens": 0,
        }
    )


def no_log(ignored: Mapping[str, str]) -> str:
    """Reason of a cell without a log; a damaged log does not say whose it is."""
    lost = sum(why.startswith(CANNOT) for why in ignored.values())
    return "there is no log of this cell" + (
        f" ({lost} log{'s' * (lost != 1)} cannot be read)" if lost else ""
    )


NOT_COMPARED = frozenset({"resamples", "about", "shown_items"})
"""Task arguments that leave a cell's scores alone, or name its arm: the ceiling, whom the observer
is asked about, and of which items it is shown replies.
"""


@dataclass(frozen=True)
class ChosenRuns:
    """One run a cell, all of one task in one setting."""

    runs: Mapping[Cell, Run]
    aside: Mapping[str, str]
    """Log → how its run was made otherwise."""
    elsewhere: Mapping[Cell, str]
    """Cell without a run in the setting → how its best run was made otherwise."""
    settings: Mapping[str, str]
    """Task → which settings its runs have, which of them counts, and how to choose another. Without
    a task whose runs are all of one setting.
    """


def choose_setting(
    cells: Mapping[Cell, Sequence[Run]],
    *,
    free: Collection[str] = NOT_COMPARED,
    swept: Mapping[str, str] | None = None,
) -> ChosenRuns:
    """The run of each cell, with the setting that most cells of a task have; a cell without one is
    left out.

    A setting is the task's arguments and the data set. The one of several counts that most models
    finished on themselves; of equals one without an `effort`, then the one with more items, then
    the newer one. Within a cell finished runs come first, then those with the generation settings
    of its models' runs on themselves.

    Args:
        cells: Cell → its runs, each of another identity. The first entry of a cell is its task; a
            model's run on itself has its name twice.
        free: Arguments that may differ.
        swept: Task → the argument that makes its runs points of a curve: no word about those that
            differ in it alone.
    """
    runs, aside, elsewhere, settings = (
        dict[Cell, Run](),
        dict[str, str](),
        dict[Cell, str](),
        dict[str, str](),
    )
    for task in dict.fromkeys(cell[0] for cell in cells):
        own = sorted(
            (cell for cell in cells if cell[0] == task), key=lambda cell: cell[1] != cell[2]
        )
        usual = _usual({cell: cells[cell] for cell in own}, free)
        alone, left = dict[str, Run](), list[tuple[Identity, Run]]()
        for cell in own:
            ranked = sorted(
                cells[cell], key=lambda run: (_as_alone(run, alone), *run.weight), reverse=True
            )
            fitting = [run for run in ranked if _within(run, usual, free) == run.identity]
            for run in ranked:
                if fitting and run is fitting[0]:
                    continue
                there = _within(run, usual, free)
                there = fitting[0].identity if there == run.identity else there
                aside[run.log] = differing(run.identity, [there])
                if _names(run.identity, there) != {(swept or {}).get(task)}:
                    left.append((there, run))
            if not fitting:
                elsewhere[cell] = aside[ranked[0].log]
                continue
            runs[cell] = fitting[0]
            if cell[1] == cell[2]:
                alone[cell[1]] = fitting[0]
        if left:
            settings[task] = _several([run for cell, run in runs.items() if cell[0] == task], left)
    return ChosenRuns(runs, aside, elsewhere, settings)


def _usual(cells: Mapping[Cell, Sequence[Run]], free: Collection[str]) -> Identity:
    """An identity with the arguments and the data that count."""
    every = [(cell, run) for cell, runs in cells.items() for run in runs]
    finished = [(cell, run) for cell, run in every if run.finished]
    asked: dict[object, list[tuple[Cell, Run]]] = {}
    for cell, run in (
        [(cell, run) for cell, run in finished if cell[1] == cell[2]] or finished or every
    ):
        args = tuple(
            (name, value)
            for name, value in run.identity.args
            if name not in {*free, *_act_only(run)}
        )
        asked.setdefault((args, run.identity.data), []).append((cell, run))

    def weight(same: list[tuple[Cell, Run]]) -> tuple[int, bool, tuple[object, ...]]:
        swept = "effort" in dict(same[0][1].identity.args)
        return len({cell for cell, _ in same}), not swept, max(run.weight for _, run in same)

    return max(asked.values(), key=weight)[0][1].identity


def _within(run: Run, setting: Identity, free: Collection[str]) -> Identity:
    """The identity that a run would have in a setting."""
    kept = {*free, *_act_only(run)}
    args = {name: value for name, value in run.identity.args if name in kept}
    args |= {name: value for name, value in setting.args if name not in kept}
    return replace(run.identity, args=tuple(sorted(args.items())), data=setting.data)


def _act_only(run: Run) -> frozenset[str]:
    """Arguments on which a replay's scores do not depend."""
    measure = measures().get(run.identity.task)
    return (
        measure.act_only if measure and run.header.eval.task_args.get("target_log") else frozenset()
    )


def _as_alone(run: Run, alone: Mapping[str, Run]) -> bool:
    """Whether the models of a cell have the generation settings of their runs on themselves."""
    config, target = dict(run.identity.config), " of target"
    of_observer = {name: value for name, value in config.items() if " of " not in name}
    of_target = {
        name.removesuffix(target): value for name, value in config.items() if name.endswith(target)
    }
    sides = {run.identity.model: of_observer}
    sides |= (
        {target_of(run.header): of_target} if target_of(run.header) != run.identity.model else {}
    )
    return all(
        model not in alone or dict(alone[model].identity.config) == given
        for model, given in sides.items()
    )


def _names(one: Identity, other: Identity) -> set[str]:
    """The settings in which two runs differ."""
    mine, theirs = one.settings, other.settings
    return {name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)}


def _several(counted: Sequence[Run], left: Sequence[tuple[Identity, Run]]) -> str:
    """Sentence on the settings that a task's runs have, on the one that counts, and on how to
    choose.

    Args:
        counted: The runs in the setting that counts.
        left: The others, each with the identity that it would have in that setting.
    """
    names = sorted(set[str]().union(*(_names(run.identity, there) for there, run in left)))
    usual = {
        name: there.settings.get(name)
        for there, run in reversed(left)
        for name in _names(run.identity, there)
    }
    groups: dict[tuple[str | None, ...], list[Run]] = {}
    for there, run in left:
        differ = _names(run.identity, there)
        values = tuple(
            (run.identity.settings if name in differ else usual).get(name) for name in names
        )
        groups.setdefault(values, []).append(run)
    told = [
        _described(dict(zip(names, values, strict=True)), runs) for values, runs in groups.items()
    ]
    return (
        f"Runs of {len(groups) + 1} settings: {_described(usual, counted)} counts; left out: {', '.join(told)}. To use "
        "another, give its logs alone."
    )


def _described(settings: Mapping[str, str | None], runs: Sequence[Run]) -> str:
    """A setting with its samples, runs and date."""
    label = ", ".join(f"{name} {settings[name] or 'not set'}" for name in sorted(settings))
    if not runs:
        return f"{label} (no run)"
    newest = max((run.header.eval for run in runs), key=lambda spec: str(spec.created))
    name = f"{(newest.metadata or {}).get('dataset', '?')}; " * ("data set" in settings)
    samples, created = (
        max(len(run.items()) for run in runs),
        str(newest.created)[:16].replace("T", " "),
    )
    return f"{label} ({name}{samples} samples, {len(runs)} run{'s' * (len(runs) != 1)}, {created})"


def incomparable_cells(cells: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(target, observer) → how the cell measured something else than the models' runs on themselves
    usually do.

    If there is no such run, most of all cells decide; of equally many, those of the first models by
    name. Generation settings may differ from model to model, and are those of the model's run on
    itself. A joined cell is as good as the two runs that it is made of.
    """
    runs = {
        (str(c.target), str(c.observer)): c
        for c in cells.sort_values(["target", "observer"]).itertuples()
        if not c.joined
    }
    measured = {pair: _measured(cell) for pair, cell in runs.items()}
    own = {pair: what for pair, what in measured.items() if pair[0] == pair[1]} or measured
    told: dict[tuple[str, str], list[str]] = {pair: [] for pair in measured}
    for name in sorted({name for what in own.values() for name in what}):
        usual = Counter(what[name] for what in own.values() if name in what).most_common(1)[0][0]
        for pair, what in measured.items():
            if what.get(name, usual) != usual:
                told[pair].append(
                    f"{name} is {what[name]}, in most runs of models on themselves {usual}"
                )
    usual_items = Counter(tuple(runs[pair].items) for pair in own).most_common(1)
    for pair, cell in runs.items():
        told[pair] += _other_items(set(cell.items), set(usual_items[0][0])) + _other_settings(
            pair, runs
        )
    odd = {pair: f"cannot be compared: {'; '.join(why)}" for pair, why in told.items() if why}
    for cell in cells[cells.joined.astype(bool)].itertuples():
        made_of = [
            odd[model, model] for model in (cell.target, cell.observer) if (model, model) in odd
        ]
        odd |= {(str(cell.target), str(cell.observer)): made_of[0]} if made_of else {}
    return odd


def left_out_of(cells: pd.DataFrame) -> set[tuple[str, ...]]:
    """The cells that are holes in their task's matrix."""
    failed = cells[cells.status != "complete"]
    out = set[tuple[str, ...]]()
    out |= {(str(cell.task), str(cell.target), str(cell.observer)) for cell in failed.itertuples()}
    for task, group in cells[cells.status == "complete"].groupby("task"):
        out |= {(str(task), *pair) for pair in incomparable_cells(group)}
    return out


def _measured(cell: Any) -> dict[str, str]:
    """Name → text of what a cell's scores depend on besides its models and its setting."""
    task = str(cell.version).partition("+")[0]  # what follows is the data set's hash again
    epochs = {} if "epochs" in cell.args else {"number of epochs": str(cell.epochs)}
    return {"task version": task, **epochs}


def _other_items(items: set[str], usual: set[str]) -> list[str]:
    """Lines on how a cell's items differ from those that most runs of models on themselves asked
    about.
    """
    if items == usual or not items:
        return []
    return [
        f"it asks about {len(items & usual)} of {len(usual)} items"
        + ", and others" * bool(items - usual)
    ]


def _other_settings(pair: tuple[str, str], runs: Mapping[tuple[str, str], Any]) -> list[str]:
    """Lines on how the generation settings of a cell differ from those of its models' runs on
    themselves.
    """
    target, observer = pair
    if target == observer:
        return []
    its, told = runs[pair].settings, []
    for model, suffix, who in ((observer, "", "observer"), (target, " of target", "target")):
        if (model, model) not in runs:
            continue
        own = {
            name: value for name, value in runs[model, model].settings.items() if " of " not in name
        }
        here = {
            n.removesuffix(suffix): v
            for n, v in its.items()
            if (n.endswith(suffix) if suffix else " of " not in n)
        }
        for name in sorted(own.keys() | here.keys()):
            if own.get(name) != here.get(name):
                was = f"on itself it ran with {own.get(name, 'none')}"
                told.append(f"{name} of the {who} is {here.get(name, 'not set')}; {was}")
    return told


# ---- the tables


SWEPT = {"ethical_dilemma": "effort"}
"""The argument that makes runs of a task the points of a curve."""

T = TypeVar("T")

SAMPLES_A_PROCESS = 10_000
"""Number of further samples that are worth a process of their own, which takes seconds to start."""


@dataclass(frozen=True)
class Results:
    """Tables of a set of logs. Each has the columns `task`, `target`, `observer`."""

    cells: pd.DataFrame
    """One row a task × target × observer: log, status ("complete", "failed", "missing"), reason,
    samples, errors, reasoned (share), epochs, version, dataset, dataset_sha256, created, args.
    """
    decisions: pd.DataFrame
    """One row a cell × item × epoch × key: value (NaN when unscored), unscored, truth, said,
    chance, ceiling, floor, reasoned. Rows of failed cells are there too; `cells.status` says so.
    """
    items: pd.DataFrame
    """One row a task × item: its input text, its kind or "" where the data set has none, and the
    cluster that it counts with (its own id without one).
    """
    ignored: dict[str, str]
    """Logs that were not used, and why: superseded, of another setting, unreadable, or of something
    else.
    """
    runs: list[Run]
    """Every run of the suite, in use or not."""
    informed: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The runs of observers that were told of their target, like `cells`, with a column `arm`
    ("named", "shown:5").
    """
    informed_decisions: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Decisions of these runs, with the column `arm`."""
    frames: Mapping[Cell, Frames] = field(default_factory=dict)
    """Statements of models about themselves and about another assistant, for the runs that asked
    both.
    """
    settings: Mapping[str, str] = field(default_factory=dict)
    """See `ChosenRuns`."""
    elsewhere: Mapping[Cell, str] = field(default_factory=dict)
    """See `ChosenRuns`."""

    def decisions_of(self, task: str) -> pd.DataFrame:
        """The decisions of one task; no copy where there is no other: of 110 models they take 200
        MB.
        """
        of_task = self.decisions.task == task
        return self.decisions if of_task.all() else self.decisions[of_task]


@dataclass(frozen=True)
class TaskMatrix:
    """Scores of one task, for the statistics."""

    task: str
    models: list[str]
    """Targets and observers, in this order."""
    items: list[str]
    scores: npt.NDArray[np.float64]
    """[target, observer, item]; NaN where unscored or where the cell is a hole."""
    holes: dict[tuple[str, str], str]
    """(target, observer) → reason of the hole."""


def read_matrices(paths: Iterable[str]) -> Results:
    """`matrices_of` all logs under these files and folders, local or any fsspec address.

    Raises:
        InputError: A path does not exist.
        NoLogs: There is no selfprobe log.
    """
    named = list(paths)
    return matrices_of(runs(named), named)


def matrices_of(there: Runs, paths: Sequence[str] = ()) -> Results:
    """Tables of the runs of a matrix's tasks.

    The cells of a task are of one setting (`cells.choose_setting`); the finished run of a cell with
    most items counts, then the newest (`logs.runs`); without a finished one it is "failed". Runs
    with an `effort` of their own give way to those without: they are points of the effort curve
    (`matrix.effort`). Cells that need no call are joined from their models' runs on themselves.

    Args:
        there: Runs of these tasks, and of others.
        paths: Paths that were searched, for messages.

    Raises:
        NoLogs: There is no selfprobe log.
    """
    ignored = dict(there.aside)
    suite_runs, choice, contents = _read(there.counted, ignored)
    plain_runs = _of_size(choice.runs, PLAIN)
    plain_contents = _of_size(contents, PLAIN)
    informed_runs = _of_size(choice.runs, INFORMED)
    informed_contents = _of_size(contents, INFORMED)
    if not plain_runs:
        why = "its observer was told of the target, and no model's run on itself is here to compare it with"
        ignored |= {run.log: why for run in informed_runs.values()}
        raise NoLogs(none_found(paths, ignored), ignored)

    cells = [cell_of(cell, run, plain_contents[cell]) for cell, run in plain_runs.items()]
    tasks_without_call = [task for task, measure in measures().items() if measure.observer == 0]
    joined_pairs = [pair for task in tasks_without_call for pair in joinable(task, plain_runs)]
    cell_by_name = {tuple(cell[name] for name in CELL): cell for cell in cells}
    for pair in joined_pairs:
        cells.append(
            joined_cell(pair, cell_by_name[own_cell(pair, 1)], cell_by_name[own_cell(pair, 2)])
        )
    cells.sort(key=lambda cell: [cell[name] for name in CELL])  # an order that no run's end moves

    rows = _decision_table(plain_contents)
    decisions = rows[~rows.key.str.startswith(OTHER)].reset_index(drop=True)
    informed = [
        cell_of(cell, run, informed_contents[cell]) for cell, run in sorted(informed_runs.items())
    ]
    finished_cells = [cell for cell, run in plain_runs.items() if run.finished]
    return Results(
        cells=pd.DataFrame(cells),
        decisions=_with_others(with_joined(decisions[DECISION_COLUMNS], joined_pairs), plain_runs),
        items=_items(rows),
        ignored=ignored,
        runs=suite_runs,
        informed=pd.DataFrame(informed),
        informed_decisions=_informed_decisions(informed_contents),
        frames=_frames(rows, finished_cells),
        settings=choice.settings,
        elsewhere=choice.elsewhere,
    )


def _cells(
    counted_runs: Sequence[Run], ignored: dict[str, str]
) -> tuple[list[Run], dict[Cell, list[Run]]]:
    """The runs of the suite, and those of each cell; why a run is neither goes into `ignored`."""
    runs_by_cell: dict[Cell, list[Run]] = {}
    suite_runs = list[Run]()
    for run in counted_runs:
        task = run.identity.task
        header = run.header
        if "dataset_sha256" not in (header.eval.metadata or {}):
            ignored[run.log] = f"not a selfprobe log (task {header.eval.task})"
            continue
        suite_runs.append(run)
        if task not in measures():
            ignored[run.log] = (
                f"not a matrix task ({task}); see `selfprobe awareness` or examples/dilemmas.py"
            )
            continue
        if about_of(header) == "other":
            ignored[run.log] = (
                "it asks about another assistant alone (about=other); about=self,other has a difference"
            )
            continue
        cell: Cell = (task, target_of(header), header.eval.model)
        if arm := informed_of(header):
            cell = (*cell, arm)
        runs_by_cell.setdefault(cell, []).append(run)
    return suite_runs, runs_by_cell


PLAIN, INFORMED = 3, 4
"""Length of the name of a cell, and of one whose observer was told of its target."""


def _of_size(by_cell: Mapping[Cell, T], size: int) -> dict[Cell, T]:
    """The entries of informed observers' cells (INFORMED), or of the others (PLAIN)."""
    return {cell: entry for cell, entry in by_cell.items() if len(cell) == size}


def _frames(rows: pd.DataFrame, finished_cells: Collection[Cell]) -> dict[Cell, Frames]:
    """Both frames of each model that was asked about another assistant too.

    Args:
        rows: Decisions of all plain cells, with those about another assistant.
        finished_cells: Cells whose run ended well.
    """
    frames_by_cell: dict[Cell, Frames] = {}
    own_rows = rows[rows.target == rows.observer]
    for (task, target, observer), cell_rows in own_rows.groupby(CELL, sort=False):
        cell = (str(task), str(target), str(observer))
        about_other = cell_rows.key.str.startswith(OTHER)
        if cell not in finished_cells or not about_other.any():
            continue
        compare = measures()[cell[0]].frames or frames
        ordered_rows = pd.concat([cell_rows[~about_other], cell_rows[about_other]])
        fields = (
            ordered_rows[list(Decision.model_fields)]
            .astype(object)
            .where(lambda table: table.notna(), None)
        )
        judged = [
            (str(item), Decision(**record))
            for item, record in zip(ordered_rows["item"], fields.to_dict("records"), strict=True)
        ]
        cell_frames = compare(judged)
        if cell_frames is not None:
            frames_by_cell[cell] = cell_frames
    return frames_by_cell


def _with_others(decisions: pd.DataFrame, chosen: Mapping[Cell, Run]) -> pd.DataFrame:
    """The decisions with each target's floor, and with what the likest other reply gets, where the
    task has them.
    """
    for (task, target, observer), run in chosen.items():
        others = measures()[task].others
        if others is None or target != observer or not run.finished:
            continue
        similarities = others(run.read_samples())
        at = (
            (decisions.task == task)
            & (decisions.target == target)
            & decisions.item.isin(list(similarities))
        )
        mean_and_most = [similarities[item] for item in decisions.item[at]]
        decisions.loc[at, "floor"] = [mean for mean, _ in mean_and_most]
        plain = decisions.plain.to_numpy(dtype=object, copy=True)
        for row, (_, most) in zip(np.flatnonzero(at), mean_and_most, strict=True):
            plain[row] = {"nearest other reply": most}
        decisions["plain"] = plain
    return decisions


def _read(
    counted_runs: Sequence[Run], ignored: dict[str, str]
) -> tuple[list[Run], ChosenRuns, dict[Cell, RunContent]]:
    """The runs of the suite, those that count, and their content; why the others do not count goes
    into `ignored`.

    Where a log turns out to be useless, the next one of the same identity takes its place.
    """
    suite_runs, runs_by_cell = _cells(counted_runs, ignored)
    content_by_log: dict[str, RunContent] = {}
    while True:
        choice = choose_setting(runs_by_cell, swept=SWEPT)
        unread_runs = {
            cell: run for cell, run in choice.runs.items() if run.log not in content_by_log
        }
        if not unread_runs:
            ignored |= choice.aside
            return (
                suite_runs,
                choice,
                {cell: content_by_log[run.log] for cell, run in choice.runs.items()},
            )
        sample_count = sum(run.planned_samples for run in unread_runs.values())
        processes = max(1, min(cpu_count(), len(unread_runs), sample_count // SAMPLES_A_PROCESS))
        contents = Parallel(n_jobs=processes)(
            delayed(run_content)(run) for run in unread_runs.values()
        )
        for (cell, run), content in zip(unread_runs.items(), contents, strict=True):
            if isinstance(content, RunContent) and (
                content.has_decisions or not _scored(run, content)
            ):
                content_by_log[run.log] = content
                continue
            foreign = "no score in it carries decisions: it was not made by a selfprobe scorer"
            ignored[run.log] = content if isinstance(content, str) else foreign
            next_run = run.next
            for run_list in (suite_runs, runs_by_cell[cell]):
                run_list[:] = [other for other in run_list if other is not run] + (
                    [next_run] if next_run else []
                )
            if next_run:
                del ignored[next_run.log]
            elif not runs_by_cell[cell]:
                del runs_by_cell[cell]


def _scored(run: Run, content: RunContent) -> bool:
    """Whether decisions are to be expected; a run that failed before them is a hole that tells its
    reason.
    """
    return run.finished and content.error_count < content.sample_count


def matrix_of(results: Results, task: str, *, key: str | None = None) -> TaskMatrix:
    """The scores of one task as [target, observer, item], by `scores_by_item`; with a `key` of this
    decision alone.

    Models are those that are a target or an observer of the task. A cell without a finished run, or
    with another task version, other items or generation settings than most models' runs on
    themselves, is a hole with a reason: all its scores are NaN, never 0.
    """
    cells = results.cells[results.cells.task == task]
    models = sorted({*cells.target, *cells.observer})
    rows = results.decisions_of(task)
    rows = rows if key is None else rows[rows.key == key]
    lost = no_log(results.ignored)
    holes = {(t, o): results.elsewhere.get((task, t, o), lost) for t in models for o in models}
    odd = incomparable_cells(cells[cells.status == "complete"])
    for cell in cells.itertuples():
        pair = (str(cell.target), str(cell.observer))
        if cell.status != "complete":
            holes[pair] = str(cell.reason)
        elif pair in odd:
            holes[pair] = odd[pair]
        else:
            del holes[pair]
    counted = _without(rows, holes)
    items = sorted(counted.item.unique()) or sorted(rows.item.unique())
    scores = np.full((len(models), len(models), len(items)), math.nan)
    scored = scores_by_item(counted)
    axes = zip((models, models, items), scored.index.levels, scored.index.codes, strict=True)
    places = [pd.Index(labels).get_indexer(names)[codes] for labels, names, codes in axes]
    scores[tuple(places)] = scored
    return TaskMatrix(task=task, models=models, items=items, scores=scores, holes=holes)


def counted_rows(results: Results, matrix: TaskMatrix) -> pd.DataFrame:
    """The decisions of a matrix's cells that are no holes: what is left out moves no number of the
    others.
    """
    return _without(results.decisions_of(matrix.task), matrix.holes)


def _without(rows: pd.DataFrame, holes: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    if not holes:
        return rows
    return rows[~pd.MultiIndex.from_frame(rows[CELL[1:]]).isin(list(holes))]


def scores_by_item(rows: pd.DataFrame) -> pd.Series:
    """The one score of each item of one task: target × observer × item → score; NaN where unscored.

    Args:
        rows: Decisions of a single task, or none.
    """
    (task,) = rows.task.unique() if len(rows) else [""]
    measure = measures().get(task)
    return (measure.item_scores if measure and measure.item_scores else _mean_value)(rows)


def _mean_value(rows: pd.DataFrame) -> pd.Series:
    """The mean of the scored decisions over keys and epochs."""
    return rows.groupby([*CELL[1:], "item"]).value.mean()


DECISION_COLUMNS = [*CELL, "item", "epoch", *Decision.model_fields]
"""Columns of `Results.decisions`."""
NUMBER_TYPES = {"value": float, "chance": float, "ceiling": float, "floor": float, "reasoned": bool}


def _decision_table(contents: Mapping[Cell, RunContent]) -> pd.DataFrame:
    """Decisions of cells, with the input, kind and cluster of the item; samples in error are left
    out.

    Args:
        contents: Cell → content of its run; the fourth part of a cell is its arm.
    """
    names = [*CELL, "arm", "item", "epoch", "input", "kind", "cluster", *Decision.model_fields]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for cell, content in contents.items():
        row_count = len(content.columns["key"])
        for name, value in zip(names, (*cell, "")[: len(CELL) + 1], strict=False):
            columns[name] += [value] * row_count
        for name in names[len(CELL) + 1 :]:
            columns[name] += content.columns[name]
    table = pd.DataFrame(columns)
    judged = table[np.array(columns["key"], dtype=object) != ""]
    return judged.astype(NUMBER_TYPES | {"key": object}).reset_index(drop=True)


def _informed_decisions(contents: Mapping[Cell, RunContent]) -> pd.DataFrame:
    rows = _decision_table(contents)
    about_target = ~rows.key.str.startswith(OTHER)
    names = [*CELL, "arm", *DECISION_COLUMNS[len(CELL) :]]
    return rows.loc[about_target, names].reset_index(drop=True)


def _items(rows: pd.DataFrame) -> pd.DataFrame:
    """Inputs, kinds and clusters of the items, by id; of several cells the last one's."""
    names = ["task", "item", "input", "kind", "cluster"]
    return rows[names].drop_duplicates(["task", "item"], keep="last").reset_index(drop=True)
