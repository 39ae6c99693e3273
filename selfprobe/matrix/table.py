"""From logs to tidy tables: the only place that reads logs for analysis.

Reads headers and sample summaries, not transcripts, and of many logs in several processes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from inspect_ai.log import EvalLog
from joblib import Parallel, cpu_count, delayed

from selfprobe._registry import measures
from selfprobe.errors import InputError, one_line
from selfprobe.logs import UNREADABLE, cause, effort_of, found, lost_replies, summaries, target_of, task_of
from selfprobe.matrix.comparable import odd_cells
from selfprobe.measure import Measure
from selfprobe.scorers.decision import Decision, crossed, last_decisions

CELL = ["task", "target", "observer"]
Cell = tuple[str, ...]
"""Task, target and observer."""
DecisionRow = tuple[str, int, Decision]
"""Item, epoch and what was decided there."""

LOGS_A_PROCESS = 40
"""So many more to read are worth a process of their own, which takes seconds to start."""

HOW_IT_RUNS = {"max_connections", "max_retries", "timeout", "attempt_timeout", "adaptive_connections", "batch", "cache"}
"""Generation settings that say how calls are sent, not what is asked."""


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
    """One row a task × item: its input text."""
    ignored: dict[str, str]
    """Logs that were not used, and why: superseded, killed, unreadable, or of something else."""
    headers: list[EvalLog]
    """Of every selfprobe log found, in use or not."""


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

    Of several logs of one cell, the finished one with the most items wins, then the last; without a finished one, the
    last, as "failed". Runs with an `effort` of their own give way to one without: they are points of the effort curve
    (`matrix.effort`). Cells that need no call are joined from their models' runs on themselves.

    Raises:
        InputError: A path does not exist, or there is no selfprobe log.
    """
    named = list(paths)
    there = found(named)
    ignored, known = dict(there.ignored), measures()
    runs: dict[Cell, list[EvalLog]] = {}
    ours: list[EvalLog] = []
    for log in there.headers:
        if "dataset_sha256" not in (log.eval.metadata or {}):
            ignored[log.location] = f"not a selfprobe log (task {log.eval.task})"
            continue
        ours.append(log)
        if task_of(log) not in known:
            ignored[log.location] = (
                f"not a matrix task ({task_of(log)}); see `selfprobe awareness` or `selfprobe dilemmas`"
            )
            continue
        runs.setdefault((task_of(log), target_of(log), log.eval.model), []).append(log)
    chosen, read = _best(runs, ignored)
    if not chosen:
        told = "".join(f"; {log}: {why}" for log, why in list(ignored.items())[:3])
        raise InputError(f"no selfprobe log in {', '.join(named)}; found {len(ignored)} other logs{told}")
    cells = [_cell(cell, log, read[cell]) for cell, log in chosen.items()]
    joined = [pair for task, measure in known.items() if measure.observer == 0 for pair in _pairs(task, chosen)]
    rows = {cell: samples.decisions for cell, samples in read.items()}
    rows |= {pair: _crossed(rows[_own(pair, 1)], rows[_own(pair, 2)], known[pair[0]]) for pair in joined}
    by_cell = {tuple(cell[name] for name in CELL): cell for cell in cells}
    cells += [_joined(pair, by_cell[_own(pair, 1)], by_cell[_own(pair, 2)]) for pair in joined]
    return Results(
        cells=pd.DataFrame(cells), decisions=_decisions(rows), items=_items(read), ignored=ignored, headers=ours
    )


def _pairs(task: str, chosen: Mapping[Cell, EvalLog]) -> list[Cell]:
    """The cells of a task that are no run, and both of whose models ran on themselves."""
    own = sorted(target for name, target, observer in chosen if name == task and target == observer)
    cells = [(task, target, observer) for target in own for observer in own if target != observer]
    return [cell for cell in cells if cell not in chosen]


def _own(cell: Cell, side: int) -> Cell:
    """The run on itself of a cell's target (1) or observer (2)."""
    return (cell[0], cell[side], cell[side])


def _crossed(of_target: list[DecisionRow], of_observer: list[DecisionRow], measure: Measure) -> list[DecisionRow]:
    """The decisions of a cell that needs no call: the observer's predictions held against the target's truths."""
    theirs = {(item, epoch, decision.key): decision for item, epoch, decision in of_observer}
    out: list[DecisionRow] = []
    for item, epoch, decision in of_target:
        other = theirs.get((item, epoch, decision.key))
        side = measure.sides.get(decision.key)
        if side == "target":
            out.append((item, epoch, decision))
        elif other is not None:
            out.append((item, epoch, other if side == "observer" else crossed(decision, other, measure.right)))
    return out


def _joined(cell: Cell, target: dict[str, Any], observer: dict[str, Any]) -> dict[str, Any]:
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
            "tokens": 0,
        }
    )


def _best(
    runs: Mapping[Cell, list[EvalLog]], ignored: dict[str, str]
) -> "tuple[dict[Cell, EvalLog], dict[Cell, _Samples]]":
    """Each cell's best usable log and its samples; why the others are not used goes into `ignored`."""
    ranked = {cell: sorted(logs, key=_rank) for cell, logs in runs.items()}
    read: dict[Cell, _Samples] = {}
    while waiting := [cell for cell, logs in ranked.items() if logs and cell not in read]:
        processes = max(1, min(cpu_count(), len(waiting) // LOGS_A_PROCESS))
        heads = [ranked[cell][-1] for cell in waiting]
        read_now = Parallel(n_jobs=processes)(delayed(_samples)(log.location, _lost(log)) for log in heads)
        for cell, log, samples in zip(waiting, heads, read_now, strict=True):
            if isinstance(samples, _Samples) and (samples.decisions or not _scored(log, samples)):
                read[cell] = samples
                continue
            foreign = "no score in it carries decisions: it was not made by a selfprobe scorer"
            ignored[log.location] = samples if isinstance(samples, str) else foreign
            ranked[cell].pop()
    chosen = {cell: ranked[cell][-1] for cell in ranked if cell in read}
    for cell, better in chosen.items():
        for worse in ranked[cell][:-1]:
            why = "superseded by" if effort_of(worse) == effort_of(better) else "of another effort than"
            few = " (it holds more items)" if _items_of(worse) < _items_of(better) else ""
            ignored[worse.location] = f"{why} {better.location}{few}"
    return chosen, {cell: read[cell] for cell in chosen}


def _scored(log: EvalLog, samples: "_Samples") -> bool:
    """Whether decisions are to be expected; a run that failed before them is a hole that tells its reason."""
    return log.status == "success" and samples.errors < samples.count


def _rank(log: EvalLog) -> tuple[bool, bool, int, str]:
    return effort_of(log) is None, log.status == "success", _items_of(log), str(log.eval.created)


def _items_of(log: EvalLog) -> int:
    """Items that a run was to ask about."""
    return len(log.eval.dataset.sample_ids or [])


def matrix_of(results: Results, task: str) -> Matrix:
    """The scores of one task as [target, observer, item], by `item_scores`.

    Models are those that are a target or an observer of the task. A cell without a finished run, or with another data
    set, task version or task argument than most models' runs on themselves, is a hole with a reason: all its scores
    are NaN, never 0.
    """
    cells = results.cells[results.cells.task == task]
    models = sorted({*cells.target, *cells.observer})
    rows = results.decisions[results.decisions.task == task]
    items = sorted(set(rows.item))
    scores = np.full((len(models), len(models), len(items)), math.nan)
    holes = {(t, o): "there is no log of this cell" for t in models for o in models}
    odd = odd_cells(cells[cells.status == "complete"])
    for cell in cells.itertuples():
        pair = (str(cell.target), str(cell.observer))
        if cell.status != "complete":
            holes[pair] = str(cell.reason)
        elif pair in odd:
            holes[pair] = odd[pair]
        else:
            del holes[pair]
    scored = item_scores(rows)
    axes = zip((models, models, items), [*CELL[1:], "item"], strict=True)
    places = [pd.Index(labels).get_indexer(scored.index.get_level_values(level)) for labels, level in axes]
    scores[tuple(places)] = scored
    for target, observer in holes:
        scores[models.index(target), models.index(observer)] = math.nan
    return Matrix(task=task, models=models, items=items, scores=scores, holes=holes)


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


@dataclass(frozen=True)
class _Samples:
    """The sample summaries of a log as rows, which go from process to process faster."""

    count: int
    errors: int
    cause: str
    """What the first sample in error ended with."""
    decisions: list[DecisionRow]
    texts: dict[str, str]
    """Item → its input."""


def _lost(log: EvalLog) -> str:
    """See `logs.lost_replies`; a log that cannot be read at all is told apart where its samples are read."""
    try:
        return lost_replies(log)
    except InputError:
        return ""


def _samples(log: str, lost: str) -> _Samples | str:
    """The rows, or why there are none."""
    if lost:
        return lost
    try:
        seen = summaries(log)
        errors = [sample for sample in seen if sample.error]
        return _Samples(
            count=len(seen),
            errors=len(errors),
            cause=cause(log, errors[0]) if errors else "",
            decisions=[(str(s.id), s.epoch, decision) for s in seen for decision in last_decisions(s.scores)],
            texts={str(s.id): s.input if isinstance(s.input, str) else s.input[-1].text for s in seen},
        )
    except UNREADABLE as error:
        return f"cannot be read: {one_line(error)}"


def _cell(cell: Sequence[str], log: EvalLog, samples: _Samples) -> dict[str, Any]:
    if log.status == "success" and not samples.errors:
        status, reason = "complete", ""
    else:
        planned = len(log.eval.dataset.sample_ids or samples.texts) * (log.eval.config.epochs or 1)
        status = "failed"
        reason = f"run ended as {log.status}; {samples.errors} of {planned} samples in error"
        first = samples.cause or (log.error.message if log.error else "")
        reason += f": {first[:200]}" if first else ""
    return dict(zip(CELL, cell, strict=True)) | {
        "status": status,
        "reason": reason,
        "log": log.location,
        "samples": samples.count,
        "errors": samples.errors,
        "epochs": log.eval.config.epochs or 1,
        "version": str(log.eval.task_version),
        "dataset": log.eval.metadata.get("dataset") if log.eval.metadata else None,
        "dataset_sha256": log.eval.metadata.get("dataset_sha256") if log.eval.metadata else None,
        "selfprobe": log.eval.metadata.get("selfprobe") if log.eval.metadata else None,
        "inspect": log.eval.packages.get("inspect_ai"),
        "created": log.eval.created,
        "args": dict(log.eval.task_args),
        "settings": _settings(log),
        "items": sorted(str(item) for item in log.eval.dataset.sample_ids or []),
        "joined": False,
        "tokens": sum(usage.total_tokens for usage in log.stats.model_usage.values()),
    }


def _settings(log: EvalLog) -> dict[str, str]:
    """Generation settings that the command line or a model of the run was given; what a task fixes wins over them."""
    given = {"": log.eval.model_generate_config}
    for role, bound in (log.eval.model_roles or {}).items():
        first = bound[0] if isinstance(bound, list) else bound
        given |= {f" of {role}": first.config}
    return {
        f"{name}{role}": str(value)
        for role, config in given.items()
        for name, value in config.model_dump(exclude_none=True).items()
        if name not in HOW_IT_RUNS
    }


def _decisions(rows: Mapping[Cell, list[DecisionRow]]) -> pd.DataFrame:
    fields = list(Decision.model_fields)
    flat = [
        (*cell, item, epoch, *(getattr(d, f) for f in fields)) for cell, own in rows.items() for item, epoch, d in own
    ]
    table = pd.DataFrame(flat, columns=[*CELL, "item", "epoch", *fields])
    return table.astype({"value": float, "chance": float, "ceiling": float, "floor": float, "reasoned": bool})


def _items(read: "Mapping[Cell, _Samples]") -> pd.DataFrame:
    texts = {(cell[0], item): text for cell, samples in read.items() for item, text in samples.texts.items()}
    return pd.DataFrame([(*key, text) for key, text in texts.items()], columns=["task", "item", "input"])
