"""From logs to tidy tables: the only place that reads logs for analysis.

Reads headers and sample summaries, not transcripts, and of many logs in several processes.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from fsspec.core import url_to_fs
from inspect_ai.log import (
    EvalLog,
    EvalSampleSummary,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
)
from joblib import Parallel, cpu_count, delayed

from selfprobe.data import locate
from selfprobe.errors import InputError, NoLogs
from selfprobe.logs import log_files
from selfprobe.matrix.run import TASKS
from selfprobe.scorers.decision import Decision, last_decisions
from selfprobe.solvers.replay import effort_of, target_of, task_of

CELL = ["task", "target", "observer"]

LOGS_A_PROCESS = 40
"""So many more to read are worth a process of their own, which takes seconds to start."""

NOT_COMPARED = {"dataset", "resamples", "target_log", "observer_log"}
"""Task arguments that leave a cell's scores alone: where things come from (a data set has its hash), the ceiling."""
ACT_ONLY = {"act_tokens", "rollout_tokens"}
"""Task arguments that a cell with replayed acts makes no use of."""


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

    Of several logs of one cell, the last finished one wins; without a finished one, the last, as "failed". Runs with
    an `effort` of their own give way to one without: they are points of the effort curve (`selfprobe.matrix.effort`).

    Raises:
        InputError: A path does not exist.
        NoLogs: There is no selfprobe log.
    """
    ignored: dict[str, str] = {}
    runs: dict[tuple[str, ...], list[EvalLog]] = {}
    ours: list[EvalLog] = []
    for file in _files(paths):
        try:
            log = read_eval_log(file, header_only=True)
        except (ValueError, OSError) as error:
            ignored[file] = f"cannot be read: {error}"
            continue
        if "dataset_sha256" not in (log.eval.metadata or {}):
            ignored[log.location] = f"not a selfprobe log (task {log.eval.task})"
            continue
        ours.append(log)
        if task_of(log) not in TASKS:
            ignored[log.location] = (
                f"not a matrix task ({task_of(log)}); see `selfprobe awareness` or `selfprobe dilemmas`"
            )
            continue
        runs.setdefault((task_of(log), target_of(log), log.eval.model), []).append(log)
    chosen, read = _best(runs, ignored)
    if not chosen:
        told = "".join(f"; {log}: {why}" for log, why in list(ignored.items())[:3])
        raise NoLogs(f"no selfprobe log in {', '.join(paths)}; found {len(ignored)} other logs{told}")
    return Results(
        cells=pd.DataFrame([_cell(cell, log, read[cell]) for cell, log in chosen.items()]),
        decisions=_decisions(read),
        items=_items(read),
        ignored=ignored,
        headers=ours,
    )


def _best(
    runs: Mapping[tuple[str, ...], list[EvalLog]], ignored: dict[str, str]
) -> tuple[dict[tuple[str, ...], EvalLog], "dict[tuple[str, ...], _Samples]"]:
    """Each cell's best usable log and its samples; why the others are not used goes into `ignored`."""
    ranked = {cell: sorted(logs, key=_rank) for cell, logs in runs.items()}
    read: dict[tuple[str, ...], _Samples] = {}
    while waiting := [cell for cell, logs in ranked.items() if logs and cell not in read]:
        processes = max(1, min(cpu_count(), len(waiting) // LOGS_A_PROCESS))
        found = Parallel(n_jobs=processes)(delayed(_samples)(ranked[cell][-1].location) for cell in waiting)
        for cell, samples in zip(waiting, found, strict=True):
            log = ranked[cell][-1]
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
            ignored[worse.location] = f"{why} {better.location}"
    return chosen, {cell: read[cell] for cell in chosen}


def _scored(log: EvalLog, samples: "_Samples") -> bool:
    """Whether decisions are to be expected; a run that failed before them is a hole that tells its reason."""
    return log.status == "success" and samples.errors < samples.count


def _rank(log: EvalLog) -> tuple[bool, bool, str]:
    return effort_of(log) is None, log.status == "success", str(log.eval.created)


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
    odd = _odd(cells[cells.status == "complete"])
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


def _odd(cells: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(target, observer) → how the cell measured something else than the models' runs on themselves usually do.

    Without any such run, most of all cells decide; of equally many, those of the first models by name.
    """
    measured = {(str(c.target), str(c.observer)): _measured(c) for c in cells.sort_values(CELL[1:]).itertuples()}
    own = {pair: what for pair, what in measured.items() if pair[0] == pair[1]} or measured
    odd: dict[tuple[str, str], str] = {}
    for name in sorted({name for what in own.values() for name in what}):
        usual = Counter(what[name] for what in own.values() if name in what).most_common(1)[0][0]
        for pair, what in measured.items():
            if what.get(name, usual) != usual:
                told = f"{name} is {what[name]}, in most runs of models on themselves {usual}"
                odd[pair] = f"{odd[pair]}; {told}" if pair in odd else f"cannot be compared: {told}"
    return odd


def _measured(cell: Any) -> dict[str, str]:
    """What a cell's scores depend on besides its models, as text."""
    left_out = NOT_COMPARED | (ACT_ONLY if cell.args.get("target_log") else set())
    args = {f"argument {name}": value for name, value in cell.args.items() if name not in left_out}
    told = {name: ",".join(map(str, v)) if isinstance(v, list) else str(v) for name, v in args.items()}
    task = str(cell.version).partition("+")[0]  # what follows is the data set's hash again
    return {"data set": str(cell.dataset_sha256)[:12], "task version": task, **told}


def item_scores(rows: pd.DataFrame) -> pd.Series:
    """The one score of each item of one task: target × observer × item → score; NaN where unscored.

    Args:
        rows: Decisions of a single task, or none.
    """
    (task,) = set(rows.task) or {""}
    return ITEM_SCORES.get(task, _mean_value)(rows)


def _mean_value(rows: pd.DataFrame) -> pd.Series:
    """The mean of the scored decisions over keys and epochs."""
    return rows.groupby([*CELL[1:], "item"]).value.mean()


def _dilemmas(rows: pd.DataFrame) -> pd.Series:
    """1 - |mean p - mean p'| over epochs: the `cot_pred` of `scorers/dilemma_prediction.py` for all cells at once.

    A dilemma with less than half of its replies readable in any arm (p, p_direct, p_predicted) is unscored, as there.
    """
    arms = rows.groupby([*CELL[1:], "item", "key"]).value.agg(["mean", "count", "size"]).unstack("key")
    asked = arms["size"]["p"].groupby(level=CELL[1:]).transform("max")  # a sample in error counts as unreadable
    read = arms["count"].fillna(0)
    enough = (read.gt(0) & read.mul(2).ge(asked, axis=0)).all(axis=1)
    return (1 - (arms["mean"]["p"] - arms["mean"]["p_predicted"]).abs()).where(enough)


ITEM_SCORES: Mapping[str, Callable[[pd.DataFrame], pd.Series]] = {"ethical_dilemma": _dilemmas}
"""Tasks whose item score is not the mean of its decisions' values (a dilemma's are probabilities, none a score)."""


def headers(paths: Iterable[str]) -> list[EvalLog]:
    """Headers of all logs under these files and folders."""
    return [read_eval_log(log, header_only=True) for log in _files(paths)]


def _files(paths: Iterable[str]) -> list[str]:
    found: list[str] = []
    for path in paths:
        place = locate(path)
        system, inside = url_to_fs(place)
        if not system.exists(inside):
            raise InputError(f"there is no log file or folder {path} (looked at {place})")
        found += log_files(place)
    return found


@dataclass(frozen=True)
class _Samples:
    """The sample summaries of a log as rows, which go from process to process faster."""

    count: int
    errors: int
    cause: str
    """What the first sample in error ended with."""
    decisions: list[tuple[Any, ...]]
    """Item, epoch, and the fields of Decision."""
    texts: dict[str, str]
    """Item → its input."""


def _samples(log: str) -> _Samples | str:
    """The rows, or why there are none."""
    try:
        found = read_eval_log_sample_summaries(log)
    except (ValueError, OSError) as error:
        return f"cannot be read: {error}"
    errors = [sample for sample in found if sample.error]
    return _Samples(
        count=len(found),
        errors=len(errors),
        cause=_cause(log, errors[0]) if errors else "",
        decisions=[
            (str(sample.id), sample.epoch, *(getattr(decision, field) for field in Decision.model_fields))
            for sample in found
            for decision in last_decisions(sample.scores)
        ],
        texts={str(s.id): s.input if isinstance(s.input, str) else s.input[-1].text for s in found},
    )


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
        "tokens": sum(usage.total_tokens for usage in log.stats.model_usage.values()),
    }


def _cause(log: str, sample: EvalSampleSummary) -> str:
    """The error that a sample ended with; of a RetryError, which names none, the one that was retried."""
    error = read_eval_log_sample(log, sample.id, sample.epoch).error
    told = (error.message if error else sample.error or "").strip()
    raised = re.findall(r"^[\w.]+(?:Error|Exception|Timeout)\w*: .+$", error.traceback if error else "", re.MULTILINE)
    return str(raised[0]) if told.startswith("RetryError") and raised else told.rpartition("\n")[2]


def _decisions(read: Mapping[tuple[str, ...], _Samples]) -> pd.DataFrame:
    rows = [(*cell, *row) for cell, samples in read.items() for row in samples.decisions]
    table = pd.DataFrame(rows, columns=[*CELL, "item", "epoch", *Decision.model_fields])
    return table.astype({"value": float, "chance": float, "ceiling": float, "floor": float, "reasoned": bool})


def _items(read: Mapping[tuple[str, ...], _Samples]) -> pd.DataFrame:
    texts = {(cell[0], item): text for cell, samples in read.items() for item, text in samples.texts.items()}
    return pd.DataFrame([(*key, text) for key, text in texts.items()], columns=["task", "item", "input"])
