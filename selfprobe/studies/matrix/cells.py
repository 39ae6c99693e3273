"""The cells of a matrix: what a run says of its cell, and the cells that need no run, joined of two models' own runs.

The module also says what counts as the same measurement: of which setting a matrix is (`choose_setting`), and which
cells may be compared.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from inspect_ai.log import EvalLog

from selfprobe.errors import InputError, one_line
from selfprobe.logs import (
    CANNOT,
    UNREADABLE,
    Identity,
    Run,
    args_of,
    cause,
    differing,
    lost_replies,
    question_of,
    summaries,
    target_of,
)
from selfprobe.scorers.decision import Decision, Measure, crossed_pairs, last_decisions
from selfprobe.solvers.observe import OTHER
from selfprobe.solvers.sent import applied_in, substitutes_in
from selfprobe.study._registry import measures

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
    """Error that ended the first sample in error."""
    decisions: list[DecisionRow]
    others: list[DecisionRow]
    """Decisions about another assistant, which no cell counts (`scorers.frames`)."""
    texts: dict[str, str]
    """Item → its input."""
    kinds: dict[str, str]
    """Item → the data set's kind of it, where it has one."""
    clusters: dict[str, str]
    """Item → what it comes from, where the run names that."""
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


def sample_rows(log: str, lost: str, items: Collection[str] | None) -> Samples | str:
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
            texts={str(s.id): question_of(s) for s in seen},
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
        cut_off = f"the run was cut off; {samples.count} of {planned} samples are in its log"
        ended = f"run ended as {log.status}; {samples.errors} of {planned} samples in error"
        reason = cut_off if log.status == "started" else ended
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
        "args": args_of(log),
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
    """Decisions of a cell that needs no call: the observer's predictions compared with the target's truths."""
    theirs = {(item, epoch, decision.key): decision for item, epoch, decision in of_observer}
    out: list[DecisionRow] = []
    for item, epoch, decision in of_target:
        other = theirs.get((item, epoch, decision.key))
        side = measure.sides.get(decision.key)
        if side == "target":
            out.append((item, epoch, decision))
        elif other is not None:
            out.append((item, epoch, other if side == "observer" else crossed_pairs(decision, other, measure.right)))
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
    """Reason of a cell without a log; a damaged log does not say whose it is."""
    lost = sum(why.startswith(CANNOT) for why in ignored.values())
    return "there is no log of this cell" + (f" ({lost} log{'s' * (lost != 1)} cannot be read)" if lost else "")


NOT_COMPARED = frozenset({"resamples", "about"})
"""Task arguments that leave a cell's scores alone, or name its arm: the ceiling, whom the observer is asked about."""


@dataclass(frozen=True)
class ChosenRuns:
    """One run a cell, all of one task in one setting."""

    runs: Mapping[Cell, Run]
    aside: Mapping[str, str]
    """Log → how its run was made otherwise."""
    elsewhere: Mapping[Cell, str]
    """Cell without a run in the setting → how its best run was made otherwise."""
    settings: Mapping[str, str]
    """Task → which settings its runs have, which of them counts, and how to choose another. Without a task whose runs
    are all of one setting."""


def choose_setting(
    cells: Mapping[Cell, Sequence[Run]], *, free: Collection[str] = NOT_COMPARED, swept: Mapping[str, str] | None = None
) -> ChosenRuns:
    """The run of each cell, with the setting that most cells of a task have; a cell without one is left out.

    A setting is the task's arguments and the data set. The one of several counts that most models finished on
    themselves; of equals one without an `effort`, then the one with more items, then the newer one. Within a cell
    finished runs come first, then those with the generation settings of its models' runs on themselves.

    Args:
        cells: Cell → its runs, each of another identity. The first entry of a cell is its task; a model's run on itself
            has its name twice.
        free: Arguments that may differ.
        swept: Task → the argument that makes its runs points of a curve: no word about those that differ in it alone.
    """
    runs, aside, elsewhere, settings = dict[Cell, Run](), dict[str, str](), dict[Cell, str](), dict[str, str]()
    for task in dict.fromkeys(cell[0] for cell in cells):
        own = sorted((cell for cell in cells if cell[0] == task), key=lambda cell: cell[1] != cell[2])
        usual = _usual({cell: cells[cell] for cell in own}, free)
        alone, left = dict[str, Run](), list[tuple[Identity, Run]]()
        for cell in own:
            ranked = sorted(cells[cell], key=lambda run: (_as_alone(run, alone), *run.weight), reverse=True)
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
    for cell, run in [(cell, run) for cell, run in finished if cell[1] == cell[2]] or finished or every:
        args = tuple((name, value) for name, value in run.identity.args if name not in {*free, *_act_only(run)})
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
    return measure.act_only if measure and run.header.eval.task_args.get("target_log") else frozenset()


def _as_alone(run: Run, alone: Mapping[str, Run]) -> bool:
    """Whether the models of a cell have the generation settings of their runs on themselves."""
    config, target = dict(run.identity.config), " of target"
    of_observer = {name: value for name, value in config.items() if " of " not in name}
    of_target = {name.removesuffix(target): value for name, value in config.items() if name.endswith(target)}
    sides = {run.identity.model: of_observer}
    sides |= {target_of(run.header): of_target} if target_of(run.header) != run.identity.model else {}
    return all(model not in alone or dict(alone[model].identity.config) == given for model, given in sides.items())


def _names(one: Identity, other: Identity) -> set[str]:
    """The settings in which two runs differ."""
    mine, theirs = one.settings, other.settings
    return {name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)}


def _several(counted: Sequence[Run], left: Sequence[tuple[Identity, Run]]) -> str:
    """Sentence on the settings that a task's runs have, on the one that counts, and on how to choose.

    Args:
        counted: The runs in the setting that counts.
        left: The others, each with the identity that it would have in that setting.
    """
    names = sorted(set[str]().union(*(_names(run.identity, there) for there, run in left)))
    usual = {name: there.settings.get(name) for there, run in reversed(left) for name in _names(run.identity, there)}
    groups: dict[tuple[str | None, ...], list[Run]] = {}
    for there, run in left:
        differ = _names(run.identity, there)
        values = tuple((run.identity.settings if name in differ else usual).get(name) for name in names)
        groups.setdefault(values, []).append(run)
    told = [_described(dict(zip(names, values, strict=True)), runs) for values, runs in groups.items()]
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
    samples, created = max(len(run.items()) for run in runs), str(newest.created)[:16].replace("T", " ")
    return f"{label} ({name}{samples} samples, {len(runs)} run{'s' * (len(runs) != 1)}, {created})"


def odd_cells(cells: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(target, observer) → how the cell measured something else than the models' runs on themselves usually do.

    If there is no such run, most of all cells decide; of equally many, those of the first models by name. Generation
    settings may differ from model to model, and are those of the model's run on itself. A joined cell is as good as
    the two runs that it is made of.
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
                told[pair].append(f"{name} is {what[name]}, in most runs of models on themselves {usual}")
    usual_items = Counter(tuple(runs[pair].items) for pair in own).most_common(1)
    for pair, cell in runs.items():
        told[pair] += _other_items(set(cell.items), set(usual_items[0][0])) + _other_settings(pair, runs)
    odd = {pair: f"cannot be compared: {'; '.join(why)}" for pair, why in told.items() if why}
    for cell in cells[cells.joined.astype(bool)].itertuples():
        made_of = [odd[model, model] for model in (cell.target, cell.observer) if (model, model) in odd]
        odd |= {(str(cell.target), str(cell.observer)): made_of[0]} if made_of else {}
    return odd


def left_out_of(cells: pd.DataFrame) -> set[tuple[str, ...]]:
    """The cells that are holes in their task's matrix."""
    failed = cells[cells.status != "complete"]
    out = set[tuple[str, ...]]()
    out |= {(str(cell.task), str(cell.target), str(cell.observer)) for cell in failed.itertuples()}
    for task, group in cells[cells.status == "complete"].groupby("task"):
        out |= {(str(task), *pair) for pair in odd_cells(group)}
    return out


def _measured(cell: Any) -> dict[str, str]:
    """Name → text of what a cell's scores depend on besides its models and its setting."""
    task = str(cell.version).partition("+")[0]  # what follows is the data set's hash again
    epochs = {} if "epochs" in cell.args else {"number of epochs": str(cell.epochs)}
    return {"task version": task, **epochs}


def _other_items(items: set[str], usual: set[str]) -> list[str]:
    """Lines on how a cell's items differ from those that most runs of models on themselves asked about."""
    if items == usual or not items:
        return []
    return [f"it asks about {len(items & usual)} of {len(usual)} items" + ", and others" * bool(items - usual)]


def _other_settings(pair: tuple[str, str], runs: Mapping[tuple[str, str], Any]) -> list[str]:
    """Lines on how the generation settings of a cell differ from those of its models' runs on themselves."""
    target, observer = pair
    if target == observer:
        return []
    its, told = runs[pair].settings, []
    for model, suffix, who in ((observer, "", "observer"), (target, " of target", "target")):
        if (model, model) not in runs:
            continue
        own = {name: value for name, value in runs[model, model].settings.items() if " of " not in name}
        here = {
            n.removesuffix(suffix): v for n, v in its.items() if (n.endswith(suffix) if suffix else " of " not in n)
        }
        for name in sorted(own.keys() | here.keys()):
            if own.get(name) != here.get(name):
                was = f"on itself it ran with {own.get(name, 'none')}"
                told.append(f"{name} of the {who} is {here.get(name, 'not set')}; {was}")
    return told
