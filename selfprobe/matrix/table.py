"""The tidy tables of a matrix, from its logs' headers and sample summaries; many are read in several processes."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from inspect_ai.log import EvalLog
from joblib import Parallel, cpu_count, delayed

from selfprobe._registry import measures
from selfprobe.errors import NoLogs
from selfprobe.header import effort_of, informed_of, target_of, task_of
from selfprobe.logs import found, item_count, none_found
from selfprobe.matrix.cells import (
    CELL,
    Cell,
    DecisionRow,
    Samples,
    cell_of,
    crossed_rows,
    joinable,
    joined_cell,
    lost_in,
    no_log,
    own_cell,
    samples_of,
)
from selfprobe.matrix.comparable import data_set_of, left_out_of, odd_cells, usual_data_sets
from selfprobe.scorers.decision import Decision
from selfprobe.scorers.frames import Frames

T = TypeVar("T")

SAMPLES_A_PROCESS = 10_000
"""So many more to read are worth a process of their own, which takes seconds to start."""


@dataclass(frozen=True)
class Results:
    """What a set of logs says. Every table has the columns `task`, `target`, `observer`."""

    cells: pd.DataFrame
    """One row a task × target × observer: log, status ("complete", "failed", "missing"), reason, samples, errors,
    reasoned (share), epochs, version, dataset, dataset_sha256, created, args."""
    decisions: pd.DataFrame
    """One row a cell × item × epoch × key: value (NaN when unscored), unscored, truth, said, chance, ceiling, floor,
    reasoned. Rows of failed cells are there too; `cells.status` says so."""
    items: pd.DataFrame
    """One row a task × item: its input text, its kind or "" where the data set has none, and the cluster that it counts
    with (its own id without one)."""
    ignored: dict[str, str]
    """Logs that were not used, and why: superseded, killed, unreadable, or of something else."""
    headers: list[EvalLog]
    """Of every selfprobe log found, in use or not."""
    informed: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The runs of observers that were told of their target, like `cells`, with a column `arm` ("asked", "shown:5")."""
    informed_decisions: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Their decisions, with the same column."""
    frames: Mapping[Cell, Frames] = field(default_factory=dict)
    """What models say of themselves and of another assistant, of the runs that asked both."""


@dataclass(frozen=True)
class Matrix:
    """Scores of one task, for the statistics."""

    task: str
    models: list[str]
    """Targets and observers, in this order."""
    items: list[str]
    scores: npt.NDArray[np.float64]
    """[target, observer, item]; NaN where unscored or where the cell is a hole."""
    holes: dict[tuple[str, str], str]
    """(target, observer) → why there is nothing."""


def load(paths: Iterable[str]) -> Results:
    """Tables of all logs of a matrix's tasks under these files and folders (local or any fsspec address).

    Of several logs of one cell, those of the task's usual data set come first (`comparable.usual_data_sets`); of them
    the finished one with the most items wins, then the last; without a finished one, the last, as "failed". Runs with
    an `effort` of their own give way to one without: they are points of the effort curve (`matrix.effort`). Cells that
    need no call are joined from their models' runs on themselves.

    Raises:
        InputError: A path does not exist.
        NoLogs: There is no selfprobe log.
    """
    named = list(paths)
    there = found(named)
    ignored, known = dict(there.ignored), measures()
    ours, runs = _runs(there.headers, ignored)
    everything, read_all = _best(runs, ignored)
    chosen, read = _of_size(everything, 3), _of_size(read_all, 3)
    told, read_told = _of_size(everything, 4), _of_size(read_all, 4)
    if not chosen:
        why = "its observer was told of the target, and no model's run on itself is here to hold it against"
        ignored |= {log.location: why for log in told.values()}
        raise NoLogs(none_found(named, ignored), ignored)
    cells = [cell_of(cell, log, read[cell]) for cell, log in chosen.items()]
    joined = [pair for task, measure in known.items() if measure.observer == 0 for pair in joinable(task, chosen)]
    rows = {cell: samples.decisions for cell, samples in read.items()}
    rows |= {pair: crossed_rows(rows[own_cell(pair, 1)], rows[own_cell(pair, 2)], known[pair[0]]) for pair in joined}
    _add_others(rows, chosen)
    by_cell = {tuple(cell[name] for name in CELL): cell for cell in cells}
    cells += [joined_cell(pair, by_cell[own_cell(pair, 1)], by_cell[own_cell(pair, 2)]) for pair in joined]
    table = pd.DataFrame(cells)
    return Results(
        cells=table,
        decisions=_decisions(rows),
        items=_items(read, left_out_of(table)),
        ignored=ignored,
        headers=ours,
        informed=pd.DataFrame([cell_of(cell, log, read_told[cell]) for cell, log in told.items()]),
        informed_decisions=_decisions({cell: samples.decisions for cell, samples in read_told.items()}, "arm"),
        frames=_frames({cell: samples for cell, samples in read.items() if chosen[cell].status == "success"}),
    )


def _runs(headers: Iterable[EvalLog], ignored: dict[str, str]) -> tuple[list[EvalLog], dict[Cell, list[EvalLog]]]:
    """The logs of the suite, and those of each cell; why a log is neither goes into `ignored`."""
    runs: dict[Cell, list[EvalLog]] = {}
    ours, known = list[EvalLog](), measures()
    for log in headers:
        cell = (task_of(log), target_of(log), log.eval.model)
        if "dataset_sha256" not in (log.eval.metadata or {}):
            ignored[log.location] = f"not a selfprobe log (task {log.eval.task})"
            continue
        ours.append(log)
        if cell[0] not in known:
            why = f"not a matrix task ({cell[0]}); see `selfprobe awareness` or `selfprobe dilemmas`"
            ignored[log.location] = why
            continue
        if log.eval.task_args.get("frame") == "other":
            ignored[log.location] = "it asks about another assistant alone (frame=other); frame=both has a difference"
            continue
        arm = informed_of(log)
        runs.setdefault((*cell, arm) if arm else cell, []).append(log)
    return ours, runs


def _of_size(by_cell: Mapping[Cell, T], size: int) -> dict[Cell, T]:
    """The entries of observers that were told of their target (4), or of the others (3)."""
    return {cell: entry for cell, entry in by_cell.items() if len(cell) == size}


def _frames(read: Mapping[Cell, Samples]) -> dict[Cell, Frames]:
    out: dict[Cell, Frames] = {}
    for cell, samples in read.items():
        compare = measures()[cell[0]].frames
        if compare is not None and samples.others and cell[1] == cell[2]:
            out[cell] = compare([(item, decision) for item, _, decision in (*samples.decisions, *samples.others)])
    return out


def _add_others(rows: dict[Cell, list[DecisionRow]], chosen: Mapping[Cell, EvalLog]) -> None:
    """Give the decisions of each target its floor, and its runs on itself what the likest other reply gets."""
    for cell, log in chosen.items():
        others = measures()[cell[0]].others
        if others is None or cell[1] != cell[2] or log.status != "success":
            continue
        found = others(log.location)
        for same in [one for one in rows if one[:2] == cell[:2]]:
            rows[same] = [
                (item, epoch, _beside(decision, *found[item]) if item in found else decision)
                for item, epoch, decision in rows[same]
            ]


def _beside(decision: Decision, mean: float, most: float) -> Decision:
    return decision.model_copy(update={"floor": mean, "plain": {"nearest other reply": most}})


def _best(
    runs: Mapping[Cell, list[EvalLog]], ignored: dict[str, str]
) -> tuple[dict[Cell, EvalLog], dict[Cell, Samples]]:
    """Each cell's best usable log and its samples; why the others are not used goes into `ignored`."""
    usual = usual_data_sets(runs)
    ranked = {
        cell: sorted(logs, key=lambda log: (data_set_of(log) == usual.get(task_of(log)), _rank(log)))
        for cell, logs in runs.items()
    }
    read: dict[Cell, Samples] = {}
    while waiting := [cell for cell, logs in ranked.items() if logs and cell not in read]:
        heads = [ranked[cell][-1] for cell in waiting]
        count = sum(item_count(log) * (log.eval.config.epochs or 1) for log in heads)
        processes = max(1, min(cpu_count(), len(heads), count // SAMPLES_A_PROCESS))
        read_now = Parallel(n_jobs=processes)(delayed(samples_of)(log.location, lost_in(log)) for log in heads)
        for cell, log, samples in zip(waiting, heads, read_now, strict=True):
            if isinstance(samples, Samples) and (samples.decisions or not _scored(log, samples)):
                read[cell] = samples
                continue
            foreign = "no score in it carries decisions: it was not made by a selfprobe scorer"
            ignored[log.location] = samples if isinstance(samples, str) else foreign
            ranked[cell].pop()
    chosen = {cell: ranked[cell][-1] for cell in ranked if cell in read}
    for cell, better in chosen.items():
        for worse in ranked[cell][:-1]:
            why = "superseded by" if effort_of(worse) == effort_of(better) else "of another effort than"
            why = why if data_set_of(worse) == data_set_of(better) else "of another data set than"
            few = " (it holds more items)" if _items_of(worse) < _items_of(better) else ""
            ignored[worse.location] = f"{why} {better.location}{few}"
    return chosen, {cell: read[cell] for cell in chosen}


def _scored(log: EvalLog, samples: Samples) -> bool:
    """Whether decisions are to be expected; a run that failed before them is a hole that tells its reason."""
    return log.status == "success" and samples.errors < samples.count


def _rank(log: EvalLog) -> tuple[bool, bool, int, str]:
    return effort_of(log) is None, log.status == "success", _items_of(log), str(log.eval.created)


def _items_of(log: EvalLog) -> int:
    """Items that a run was to ask about."""
    return len(log.eval.dataset.sample_ids or [])


def matrix_of(results: Results, task: str, *, key: str | None = None) -> Matrix:
    """The scores of one task as [target, observer, item], by `item_scores`; with a `key` of this decision alone.

    Models are those that are a target or an observer of the task. A cell without a finished run, or with another data
    set, task version or task argument than most models' runs on themselves, is a hole with a reason: all its scores
    are NaN, never 0.
    """
    cells = results.cells[results.cells.task == task]
    models = sorted({*cells.target, *cells.observer})
    rows = results.decisions[results.decisions.task == task]
    rows = rows if key is None else rows[rows.key == key]
    holes = {(t, o): no_log(results.ignored) for t in models for o in models}
    odd = odd_cells(cells[cells.status == "complete"])
    for cell in cells.itertuples():
        pair = (str(cell.target), str(cell.observer))
        if cell.status != "complete":
            holes[pair] = str(cell.reason)
        elif pair in odd:
            holes[pair] = odd[pair]
        else:
            del holes[pair]
    counted = rows[~_in(rows, holes)]
    items = sorted(set(counted.item)) or sorted(set(rows.item))
    scores = np.full((len(models), len(models), len(items)), math.nan)
    scored = item_scores(counted)
    axes = zip((models, models, items), [*CELL[1:], "item"], strict=True)
    places = [pd.Index(labels).get_indexer(scored.index.get_level_values(level)) for labels, level in axes]
    scores[tuple(places)] = scored
    return Matrix(task=task, models=models, items=items, scores=scores, holes=holes)


def counted_rows(results: Results, matrix: Matrix) -> pd.DataFrame:
    """The decisions of a matrix's cells that are no holes: what is left out moves no number of the others."""
    rows = results.decisions[results.decisions.task == matrix.task]
    return rows[~_in(rows, matrix.holes)]


def _in(rows: pd.DataFrame, holes: Mapping[tuple[str, str], str]) -> npt.NDArray[np.bool_]:
    pairs = zip(rows.target, rows.observer, strict=True)
    return np.fromiter((pair in holes for pair in pairs), dtype=bool, count=len(rows))


def item_scores(rows: pd.DataFrame) -> pd.Series:
    """The one score of each item of one task: target × observer × item → score; NaN where unscored.

    Args:
        rows: Decisions of a single task, or none.
    """
    (task,) = set(rows.task) or {""}
    measure = measures().get(task)
    return (measure.item_scores if measure and measure.item_scores else _mean_value)(rows)


def _mean_value(rows: pd.DataFrame) -> pd.Series:
    """The mean of the scored decisions over keys and epochs."""
    return rows.groupby([*CELL[1:], "item"]).value.mean()


def _decisions(rows: Mapping[Cell, list[DecisionRow]], *more: str) -> pd.DataFrame:
    fields = list(Decision.model_fields)
    flat = [
        (*cell, item, epoch, *(getattr(d, f) for f in fields)) for cell, own in rows.items() for item, epoch, d in own
    ]
    table = pd.DataFrame(flat, columns=[*CELL, *more, "item", "epoch", *fields])
    return table.astype({"value": float, "chance": float, "ceiling": float, "floor": float, "reasoned": bool})


def _items(runs: Mapping[Cell, Samples], left_out: set[Cell]) -> pd.DataFrame:
    """What is asked under an id; where runs differ, as runs of different data sets do, what those that count ask."""
    read = {cell: runs[cell] for cell in sorted(runs, key=lambda cell: cell not in left_out)}
    texts = {(cell[0], item): text for cell, samples in read.items() for item, text in samples.texts.items()}
    kinds = {(cell[0], item): kind for cell, samples in read.items() for item, kind in samples.kinds.items()}
    clusters = {(cell[0], item): of for cell, samples in read.items() for item, of in samples.clusters.items()}
    rows = [(*key, text, kinds.get(key, ""), clusters.get(key, key[1])) for key, text in texts.items()]
    return pd.DataFrame(rows, columns=["task", "item", "input", "kind", "cluster"])
