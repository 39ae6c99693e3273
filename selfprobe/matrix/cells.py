"""What a run says of its cell, and the cells that need no run: two models' runs on themselves, joined."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inspect_ai.log import EvalLog

from selfprobe.errors import InputError, one_line
from selfprobe.logs import CANNOT, UNREADABLE, Run, asked, cause, lost_replies, summaries
from selfprobe.measure import Measure
from selfprobe.scorers.decision import Decision, crossed, last_decisions
from selfprobe.solvers.frame import OTHER
from selfprobe.solvers.sent import applied_in, substitutes_in

CELL = ["task", "target", "observer"]
Cell = tuple[str, ...]
"""Task, target and observer; of an observer that is told of its target, how (`header.informed_of`) too."""
DecisionRow = tuple[str, int, Decision]
"""Item, epoch and what was decided there."""


@dataclass(frozen=True)
class Samples:
    """The sample summaries of a log as rows, which go from process to process faster."""

    count: int
    errors: int
    cause: str
    """What the first sample in error ended with."""
    decisions: list[DecisionRow]
    others: list[DecisionRow]
    """Those about another assistant, which no cell counts (`scorers.frames`)."""
    texts: dict[str, str]
    """Item → its input."""
    kinds: dict[str, str]
    """Item → the data set's kind of it, where it has one."""
    clusters: dict[str, str]
    """Item → what it comes from, where the run was told."""
    applied: dict[str, str]
    """See `sent.applied_in`."""
    substitutes: list[str]
    """See `sent.substitutes_in`."""


def lost_in(log: EvalLog) -> str:
    """See `logs.lost_replies`; a log that cannot be read at all is told apart where its samples are read."""
    try:
        return lost_replies(log)
    except InputError:
        return ""


def samples_of(log: str, lost: str, items: Collection[str] | None) -> Samples | str:
    """The rows of these items (None is all), or why there are none."""
    if lost:
        return lost
    try:
        seen = [sample for sample in summaries(log) if items is None or str(sample.id) in items]
        errors = [sample for sample in seen if sample.error]
        rows = [(str(s.id), s.epoch, decision) for s in seen for decision in last_decisions(s.scores)]
        return Samples(
            count=len(seen),
            errors=len(errors),
            cause=cause(log, errors[0]) if errors else "",
            decisions=[row for row in rows if not row[2].key.startswith(OTHER)],
            others=[row for row in rows if row[2].key.startswith(OTHER)],
            texts={str(s.id): asked(s) for s in seen},
            kinds={
                str(s.id): str(kind) for s in seen if (kind := s.metadata.get("kind") or s.metadata.get("category"))
            },
            clusters={str(s.id): str(of) for s in seen if (of := s.metadata.get("cluster"))},
            applied=applied_in(seen),
            substitutes=substitutes_in(seen),
        )
    except UNREADABLE as error:
        return f"cannot be read: {one_line(error)}"


def cell_of(cell: Sequence[str], run: Run, samples: Samples, limit: int | None) -> dict[str, Any]:
    """The row of a cell that is a run; the columns are those of `Results.cells`."""
    log = run.header
    if log.status == "success" and not samples.errors:
        status, reason = "complete", ""
    else:
        planned = len(log.eval.dataset.sample_ids or samples.texts) * (log.eval.config.epochs or 1)
        status = "failed"
        reason = f"run ended as {log.status}; {samples.errors} of {planned} samples in error"
        first = samples.cause or (log.error.message if log.error else "")
        reason += f": {first[:200]}" if first else ""
    return dict(zip([*CELL, "arm"], cell, strict=False)) | {
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
        "settings": dict(run.identity.config),
        "items": sorted(run.items(limit)),
        "joined": False,
        "applied": samples.applied,
        "substitutes": samples.substitutes,
        "tokens": sum(usage.total_tokens for usage in log.stats.model_usage.values()),
    }


def joinable(task: str, chosen: Mapping[Cell, Run]) -> list[Cell]:
    """The cells of a task that are no run, and both of whose models ran on themselves."""
    own = sorted(target for name, target, observer in chosen if name == task and target == observer)
    cells = [(task, target, observer) for target in own for observer in own if target != observer]
    return [cell for cell in cells if cell not in chosen]


def own_cell(cell: Cell, side: int) -> Cell:
    """The run on itself of a cell's target (1) or observer (2)."""
    return (cell[0], cell[side], cell[side])


def crossed_rows(of_target: list[DecisionRow], of_observer: list[DecisionRow], measure: Measure) -> list[DecisionRow]:
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
            "substitutes": [],
            "applied": {
                role: run["applied"][role]
                for role, run in (("target", target), ("observer", observer))
                if role in run["applied"]
            },
            "tokens": 0,
        }
    )


def no_log(ignored: Mapping[str, str]) -> str:
    """What is said of a cell of which no log is here; a damaged log does not say whose it is."""
    lost = sum(why.startswith(CANNOT) for why in ignored.values())
    return "there is no log of this cell" + (f" ({lost} log{'s' * (lost != 1)} cannot be read)" if lost else "")
