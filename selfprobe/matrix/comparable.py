"""What counts as the same measurement: which cells of a matrix may be held against each other."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd
from inspect_ai.log import EvalLog

from selfprobe._registry import measures

NOT_COMPARED = {"dataset", "resamples", "target_log", "observer_log", "frame", "observer"}
"""Task arguments that leave a cell's scores alone, or name its arm: where things come from (a data set has its hash),
the ceiling, whom else the observer is asked about, what it is told."""


def data_set_of(log: EvalLog) -> str:
    """The hash of what a run asked."""
    return str((log.eval.metadata or {}).get("dataset_sha256"))


def usual_data_sets(runs: Mapping[tuple[str, ...], Sequence[EvalLog]]) -> dict[str, str]:
    """Task → the data set of which its cells are taken, where there are logs of several.

    The one that most models finished on themselves; of equals the one with more items, then the newer one.

    Args:
        runs: Cell → its logs.
    """
    finished: dict[str, dict[str, list[tuple[str, int, str]]]] = {}
    for (task, target, observer, *_), logs in runs.items():
        for log in logs if target == observer else ():
            if log.status == "success":
                of = finished.setdefault(task, {}).setdefault(data_set_of(log), [])
                of.append((target, len(log.eval.dataset.sample_ids or []), str(log.eval.created)))

    def weight(seen: list[tuple[str, int, str]]) -> tuple[int, int, str]:
        return len({model for model, *_ in seen}), max(n for _, n, _ in seen), max(created for *_, created in seen)

    return {task: max(sets, key=lambda one: weight(sets[one])) for task, sets in finished.items()}


def several_data_sets(logs: Sequence[EvalLog], used: Collection[str]) -> str:
    """That the logs of a task are of several data sets, which of them count and how to choose; else "".

    Args:
        logs: Headers of one task's runs.
        used: Hashes of the data sets whose cells count.
    """
    sets: dict[str, list[EvalLog]] = {}
    for log in logs:
        sets.setdefault(data_set_of(log), []).append(log)
    if len(sets) < 2:
        return ""
    taken = [_data_set(sets[one]) for one in sets if one in used]
    rest = [_data_set(sets[one]) for one in sets if one not in used]
    what = f"{', '.join(taken) or 'none'} counts; left out: {', '.join(rest)}"
    return f"Logs of {len(sets)} data sets: {what}. To use another, give the logs of that data set alone."


def _data_set(logs: Sequence[EvalLog]) -> str:
    """Name, hash, samples, runs and date of the logs of one data set."""
    newest = max(logs, key=lambda log: str(log.eval.created))
    samples = max(len(log.eval.dataset.sample_ids or []) for log in logs)
    name = (newest.eval.metadata or {}).get("dataset", "?")
    created = str(newest.eval.created)[:16].replace("T", " ")
    runs = f"{len(logs)} run{'s' * (len(logs) != 1)}"
    return f"{name} ({data_set_of(newest)[:12]}, {samples} samples, {runs}, {created})"


def odd_cells(cells: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(target, observer) → how the cell measured something else than the models' runs on themselves usually do.

    Without any such run, most of all cells decide; of equally many, those of the first models by name. Generation
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
    """What a cell's scores depend on besides its models, as text."""
    act_only = measures()[cell.task].act_only if cell.args.get("target_log") else frozenset()
    left_out = NOT_COMPARED | act_only
    args = {f"argument {name}": value for name, value in cell.args.items() if name not in left_out}
    told = {name: ",".join(map(str, v)) if isinstance(v, list) else str(v) for name, v in args.items()}
    task = str(cell.version).partition("+")[0]  # what follows is the data set's hash again
    epochs = {} if "epochs" in cell.args else {"number of epochs": str(cell.epochs)}
    return {"data set": str(cell.dataset_sha256)[:12], "task version": task, **epochs, **told}


def _other_items(items: set[str], usual: set[str]) -> list[str]:
    """How a cell's items differ from those that most runs of models on themselves asked about."""
    if items == usual or not items:
        return []
    return [f"it asks about {len(items & usual)} of {len(usual)} items" + ", and others" * bool(items - usual)]


def _other_settings(pair: tuple[str, str], runs: Mapping[tuple[str, str], Any]) -> list[str]:
    """How the generation settings of a cell differ from those of its models' runs on themselves."""
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
