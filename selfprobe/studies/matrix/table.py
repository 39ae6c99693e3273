"""The tidy tables of a matrix, from its logs' headers and sample summaries; many are read in several processes."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from joblib import Parallel, cpu_count, delayed

from selfprobe.errors import NoLogs
from selfprobe.logs import Identity, Run, about_of, informed_of, item_count, none_found, runs, target_of
from selfprobe.scorers.decision import Decision
from selfprobe.scorers.frames import Frames, frames
from selfprobe.studies.matrix.cells import (
    CELL,
    Cell,
    ChosenRuns,
    DecisionRow,
    Samples,
    cell_of,
    choose_setting,
    crossed_rows,
    joinable,
    joined_cell,
    lost_in,
    no_log,
    odd_cells,
    own_cell,
    sample_rows,
)
from selfprobe.studies.matrix.effort import SWEPT
from selfprobe.study._registry import measures

T = TypeVar("T")

SAMPLES_A_PROCESS = 10_000
"""Number of further samples that are worth a process of their own, which takes seconds to start."""


@dataclass(frozen=True)
class Results:
    """Tables of a set of logs. Each has the columns `task`, `target`, `observer`."""

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
    """Logs that were not used, and why: superseded, of another setting, unreadable, or of something else."""
    runs: list[Run]
    """Every run of the suite, in use or not."""
    informed: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The runs of observers that were told of their target, like `cells`, with a column `arm` ("named", "shown:5")."""
    informed_decisions: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Decisions of these runs, with the column `arm`."""
    frames: Mapping[Cell, Frames] = field(default_factory=dict)
    """Statements of models about themselves and about another assistant, for the runs that asked both."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """See `cells.ChosenRuns`."""
    elsewhere: Mapping[Cell, str] = field(default_factory=dict)
    """See `cells.ChosenRuns`."""


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
    """(target, observer) → reason of the hole."""


def load(paths: Iterable[str], *, of: Collection[Identity] | None = None, limit: int | None = None) -> Results:
    """Tables of all logs of a matrix's tasks under these files and folders (local or any fsspec address).

    The cells of a task are of one setting (`cells.choose_setting`); the finished run of a cell with most items counts,
    then the newest (`logs.runs`); without a finished one it is "failed". Runs with an `effort` of their own give way to
    those without: they are points of the effort curve (`matrix.effort`). Cells that need no call are joined from their
    models' runs on themselves.

    Args:
        paths: Files and folders.
        of: The runs that are wanted; None is all.
        limit: Number of items of each that count; None is all.

    Raises:
        InputError: A path does not exist.
        NoLogs: There is no selfprobe log.
    """
    named, known = list(paths), measures()
    there = runs(named) if of is None else runs(named).of(of)
    ignored = dict(there.aside)
    ours, choice, read_all = _read(there.counted, ignored, limit)
    chosen, read = _of_size(choice.runs, 3), _of_size(read_all, 3)
    told, read_told = _of_size(choice.runs, 4), _of_size(read_all, 4)
    if not chosen:
        why = "its observer was told of the target, and no model's run on itself is here to hold it against"
        ignored |= {run.log: why for run in told.values()}
        raise NoLogs(none_found(named, ignored), ignored)
    cells = [cell_of(cell, run, read[cell], limit) for cell, run in chosen.items()]
    joined = [pair for task, measure in known.items() if measure.observer == 0 for pair in joinable(task, chosen)]
    rows = {cell: samples.decisions for cell, samples in read.items()}
    rows |= {pair: crossed_rows(rows[own_cell(pair, 1)], rows[own_cell(pair, 2)], known[pair[0]]) for pair in joined}
    _add_others(rows, chosen)
    by_cell = {tuple(cell[name] for name in CELL): cell for cell in cells}
    cells += [joined_cell(pair, by_cell[own_cell(pair, 1)], by_cell[own_cell(pair, 2)]) for pair in joined]
    return Results(
        cells=pd.DataFrame(cells),
        decisions=_decisions(rows),
        items=_items(read),
        ignored=ignored,
        runs=ours,
        informed=pd.DataFrame([cell_of(cell, run, read_told[cell], limit) for cell, run in told.items()]),
        informed_decisions=_decisions({cell: samples.decisions for cell, samples in read_told.items()}, "arm"),
        frames=_frames({cell: samples for cell, samples in read.items() if chosen[cell].finished}),
        settings=choice.settings,
        elsewhere=choice.elsewhere,
    )


def _cells(found: Sequence[Run], ignored: dict[str, str]) -> tuple[list[Run], dict[Cell, list[Run]]]:
    """The runs of the suite, and those of each cell; why a run is neither goes into `ignored`."""
    cells: dict[Cell, list[Run]] = {}
    ours, known = list[Run](), measures()
    for run in found:
        task, header = run.identity.task, run.header
        if "dataset_sha256" not in (header.eval.metadata or {}):
            ignored[run.log] = f"not a selfprobe log (task {header.eval.task})"
            continue
        ours.append(run)
        if task not in known:
            why = f"not a matrix task ({task}); see `selfprobe awareness` or examples/dilemmas.py"
            ignored[run.log] = why
            continue
        if about_of(header) == "other":
            ignored[run.log] = "it asks about another assistant alone (about=other); about=self,other has a difference"
            continue
        arm = informed_of(header)
        cells.setdefault((task, target_of(header), header.eval.model, *([arm] if arm else [])), []).append(run)
    return ours, cells


def _of_size(by_cell: Mapping[Cell, T], size: int) -> dict[Cell, T]:
    """The entries of observers that were told of their target (4), or of the others (3)."""
    return {cell: entry for cell, entry in by_cell.items() if len(cell) == size}


def _frames(read: Mapping[Cell, Samples]) -> dict[Cell, Frames]:
    out: dict[Cell, Frames] = {}
    for cell, samples in read.items():
        if samples.others and cell[1] == cell[2]:
            compare = measures()[cell[0]].frames or frames
            both = [(item, decision) for item, _, decision in (*samples.decisions, *samples.others)]
            if (found := compare(both)) is not None:
                out[cell] = found
    return out


def _add_others(rows: dict[Cell, list[DecisionRow]], chosen: Mapping[Cell, Run]) -> None:
    """Give the decisions of each target its floor, and its runs on itself what the likest other reply gets."""
    for cell, run in chosen.items():
        others = measures()[cell[0]].others
        if others is None or cell[1] != cell[2] or not run.finished:
            continue
        found = others(run.log)
        for same in [one for one in rows if one[:2] == cell[:2]]:
            rows[same] = [
                (item, epoch, _beside(decision, *found[item]) if item in found else decision)
                for item, epoch, decision in rows[same]
            ]


def _beside(decision: Decision, mean: float, most: float) -> Decision:
    return decision.model_copy(update={"floor": mean, "plain": {"nearest other reply": most}})


def _read(
    found: Sequence[Run], ignored: dict[str, str], limit: int | None
) -> tuple[list[Run], ChosenRuns, dict[Cell, Samples]]:
    """The runs of the suite, those that count, and their samples; why the others do not count goes into `ignored`.

    Where a log turns out to be useless, the next one of the same identity takes its place.
    """
    ours, cells = _cells(found, ignored)
    read: dict[str, Samples] = {}
    while True:
        choice = choose_setting(cells, swept=SWEPT)
        waiting = {cell: run for cell, run in choice.runs.items() if run.log not in read}
        if not waiting:
            ignored |= choice.aside
            return ours, choice, {cell: read[run.log] for cell, run in choice.runs.items()}
        headers = [run.header for run in waiting.values()]
        count = sum(item_count(log) * (log.eval.config.epochs or 1) for log in headers)
        processes = max(1, min(cpu_count(), len(headers), count // SAMPLES_A_PROCESS))
        read_now = Parallel(n_jobs=processes)(
            delayed(sample_rows)(run.log, lost_in(run.header), limit and run.items(limit)) for run in waiting.values()
        )
        for (cell, run), samples in zip(waiting.items(), read_now, strict=True):
            if isinstance(samples, Samples) and (samples.decisions or not _scored(run, samples)):
                read[run.log] = samples
                continue
            foreign = "no score in it carries decisions: it was not made by a selfprobe scorer"
            ignored[run.log] = samples if isinstance(samples, str) else foreign
            further = run.next
            for held in (ours, cells[cell]):
                held[:] = [one for one in held if one is not run] + ([further] if further else [])
            if further:
                del ignored[further.log]
            elif not cells[cell]:
                del cells[cell]


def _scored(run: Run, samples: Samples) -> bool:
    """Whether decisions are to be expected; a run that failed before them is a hole that tells its reason."""
    return run.finished and samples.errors < samples.count


def matrix_of(results: Results, task: str, *, key: str | None = None) -> Matrix:
    """The scores of one task as [target, observer, item], by `scores_by_item`; with a `key` of this decision alone.

    Models are those that are a target or an observer of the task. A cell without a finished run, or with another task
    version, other items or generation settings than most models' runs on themselves, is a hole with a reason: all its
    scores are NaN, never 0.
    """
    cells = results.cells[results.cells.task == task]
    models = sorted({*cells.target, *cells.observer})
    rows = results.decisions[results.decisions.task == task]
    rows = rows if key is None else rows[rows.key == key]
    lost = no_log(results.ignored)
    holes = {(t, o): results.elsewhere.get((task, t, o), lost) for t in models for o in models}
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
    scored = scores_by_item(counted)
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


def scores_by_item(rows: pd.DataFrame) -> pd.Series:
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


def _items(read: Mapping[Cell, Samples]) -> pd.DataFrame:
    """Inputs, kinds and clusters of the items, by id."""
    texts = {(cell[0], item): text for cell, samples in read.items() for item, text in samples.texts.items()}
    kinds = {(cell[0], item): kind for cell, samples in read.items() for item, kind in samples.kinds.items()}
    clusters = {(cell[0], item): of for cell, samples in read.items() for item, of in samples.clusters.items()}
    rows = [(*key, text, kinds.get(key, ""), clusters.get(key, key[1])) for key, text in texts.items()]
    return pd.DataFrame(rows, columns=["task", "item", "input", "kind", "cluster"])
