"""Does the grader agree with people? `selfprobe awareness validate labels.csv LOGS`."""

from collections.abc import Sequence
from itertools import product
from typing import get_args

import numpy as np

from selfprobe.awareness.findings import Finding, findings
from selfprobe.awareness.label_sheet import COLUMN, counted, reweighted
from selfprobe.data import Row, load
from selfprobe.errors import InputError
from selfprobe.page import shown
from selfprobe.solvers.converse import Perspective
from selfprobe.stats.agreement import cohen_kappa
from selfprobe.stats.spread import wilson

YES_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}

Label = tuple[str, str, str, str, str]
"""Item, key, perspective, and model and epoch ("" where the labels do not say)."""


def validate_grader(labels: str, logs: Sequence[str]) -> str:
    """Agreement of the graders in these logs with human labels, as text: Wilson intervals, kappa, parse rate.

    Args:
        labels: CSV or JSONL with `item` (the sample's id), `key` (m1 … m3, or trace), `aware` (yes or no) and, where
            the logs hold several, `model` and `epoch`. Without `perspective` (first or third) it is the first person.
            Or a sheet of `sample_labels`: `text_id` and `aware`, which may be empty where nobody labelled yet.
        logs: Logs of user_motivation or reasoning_trace; their placebo arms answer another question and do not count.

    Raises:
        InputError: A label is neither yes nor no, of an unknown perspective or comes twice, fits several texts, or no
            label belongs to a graded text in the logs.
    """
    if COLUMN in (rows := load(labels, ()).rows)[0]:
        return _of_sheet(labels, rows, logs)
    wanted = _labels(labels)
    seen: dict[Label, Finding] = {}
    for finding in findings(logs):
        for model, epoch in product((finding.model, ""), (finding.epoch, "")):
            label = (finding.item, finding.key, finding.perspective, model, epoch)
            if label not in wanted:
                continue
            if label in seen:
                raise InputError(_twice(seen[label], finding))
            seen[label] = finding
    if not seen:
        raise InputError(
            f"none of the {len(wanted)} labels belongs to a graded text in {', '.join(logs)} (placebo arms do not "
            "count, and the third person only for labels with perspective third)"
        )
    read = [(wanted[label], found.aware) for label, found in seen.items() if found.aware is not None]
    human, machine = (np.array([pair[at] for pair in read], dtype=bool) for at in (0, 1))
    return "\n".join(
        [
            f"labels that belong to a graded text: {len(seen)} of {len(wanted)}",
            _share("grades that could be used", len(read), len(seen)),
            _share("agreement", int((human == machine).sum()), len(read)),
            _share("sensitivity (aware, found aware)", int((human & machine).sum()), int(human.sum())),
            _share("specificity (not aware, found so)", int((~human & ~machine).sum()), int((~human).sum())),
            f"kappa: {cohen_kappa(human, machine):.3f}" if len(read) else "kappa: no cases",
        ]
    )


def _labels(path: str) -> dict[Label, bool]:
    wanted: dict[Label, bool] = {}
    for number, row in enumerate(load(path, ("item", "key", "aware")).rows, start=1):
        said = _said(row, f"{path}, row {number}")
        model, epoch = (str(row.get(column) or "") for column in ("model", "epoch"))
        perspective = str(row.get("perspective") or "first")
        if perspective not in get_args(Perspective):
            raise InputError(
                f"{path}, row {number}: perspective must be {' or '.join(get_args(Perspective))}, got {perspective!r}"
            )
        label = (str(row["item"]), str(row["key"]), perspective, model, epoch)
        if label in wanted:
            raise InputError(f"{path}, row {number}: a second label for item {label[0]!r}, key {label[1]!r}")
        wanted[label] = said
    return wanted


def _said(row: Row, where: str) -> bool:
    said = str(row["aware"]).strip().lower()
    if said not in YES_NO:
        raise InputError(f"{where}: aware must be yes or no, got {row['aware']!r}")
    return YES_NO[said]


def _of_sheet(path: str, rows: Sequence[Row], logs: Sequence[str]) -> str:
    """A sheet's texts were drawn by what the grader found: shares of the aware are put right for that."""
    given = {
        str(row[COLUMN]): _said(row, f"{path}, row {n}") for n, row in enumerate(rows, start=1) if row.get("aware")
    }
    if not given:
        raise InputError(f"{path}: none of its {len(rows)} rows has a label yet; write yes or no under `aware`")
    ours, others = counted(given, logs)
    there = ours.labelled + others.labelled
    if not there:
        raise InputError(f"none of the {len(given)} labels belongs to a graded text in {', '.join(logs)}")
    checked = reweighted(ours, others)
    waiting = len(rows) - len(given)
    return "\n".join(
        [
            f"labels that belong to a graded text: {there} of {len(given)}",
            *([f"without a label yet: {waiting} of {len(rows)}"] if waiting else []),
            _share("precision (found aware, aware)", ours.aware, ours.labelled),
            _share("not found aware, and not aware", others.labelled - others.aware, others.labelled),
            f"Of all {ours.found + others.found} graded texts, each label standing for those of which the grader said "
            "the same:",
            f"sensitivity (aware, found aware): {shown(checked.sensitivity, 3)}",
            f"specificity (not aware, found so): {shown(checked.specificity, 3)}",
        ]
    )


def _twice(one: Finding, other: Finding) -> str:
    """What to do about a label that fits both: only what really tells them apart."""
    differ = [name for name in ("model", "epoch") if getattr(one, name) != getattr(other, name)]
    remedies = ["name one log"] if one.log != other.log else []
    remedies += [f"add the column {' and '.join(differ)} to the labels"] if differ else []
    places = " and in ".join(f"{found.log} (epoch {found.epoch})" for found in (one, other))
    return f"item {one.item!r}, key {one.key!r} is in {places}: {', or '.join(remedies)}"


def _share(name: str, hits: int, n: int) -> str:
    if not n:
        return f"{name}: no cases"
    low, high = wilson(hits / n, n)
    return f"{name}: {hits} of {n} = {hits / n:.3f} [{low:.3f}, {high:.3f}]"
