"""Does the grader agree with people? `selfprobe awareness validate labels.csv LOGS`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import get_args

import numpy as np

from selfprobe.awareness.runs import chosen
from selfprobe.data import load
from selfprobe.errors import InputError
from selfprobe.logs import samples
from selfprobe.scorers.awareness_cues import cues_in
from selfprobe.solvers.converse import Perspective
from selfprobe.solvers.record import record_of
from selfprobe.stats.agreement import cohen_kappa
from selfprobe.stats.estimate import wilson

YES_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}

Label = tuple[str, str, str, str, str]
"""Item, key, perspective, and model and epoch ("" where the labels do not say)."""


@dataclass(frozen=True)
class Finding:
    """What a grader said of one text."""

    item: str
    key: str
    model: str
    perspective: str
    epoch: str
    aware: bool | None
    """None where its reply could not be used."""
    log: str


def validate_grader(labels: str, logs: Sequence[str]) -> str:
    """Agreement of the graders in these logs with human labels, as text: Wilson intervals, kappa, parse rate.

    Args:
        labels: CSV or JSONL with `item` (the sample's id), `key` (m1 … m3, or trace), `aware` (yes or no) and, where
            the logs hold several, `model` and `epoch`. Without `perspective` (first or third) it is the first person.
        logs: Logs of user_motivation or reasoning_trace; their placebo arms answer another question and do not count.

    Raises:
        InputError: A label is neither yes nor no, of an unknown perspective or comes twice, fits several texts, or no
            label belongs to a graded text in the logs.
    """
    wanted = _labels(labels)
    seen: dict[Label, Finding] = {}
    for finding in _findings(logs):
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
        said = str(row["aware"]).strip().lower()
        if said not in YES_NO:
            raise InputError(f"{path}, row {number}: aware must be yes or no, got {row['aware']!r}")
        model, epoch = (str(row.get(column) or "") for column in ("model", "epoch"))
        perspective = str(row.get("perspective") or "first")
        if perspective not in get_args(Perspective):
            raise InputError(
                f"{path}, row {number}: perspective must be {' or '.join(get_args(Perspective))}, got {perspective!r}"
            )
        label = (str(row["item"]), str(row["key"]), perspective, model, epoch)
        if label in wanted:
            raise InputError(f"{path}, row {number}: a second label for item {label[0]!r}, key {label[1]!r}")
        wanted[label] = YES_NO[said]
    return wanted


def _twice(one: Finding, other: Finding) -> str:
    """What to do about a label that fits both: only what really tells them apart."""
    differ = [name for name in ("model", "epoch") if getattr(one, name) != getattr(other, name)]
    remedies = ["name one log"] if one.log != other.log else []
    remedies += [f"add the column {' and '.join(differ)} to the labels"] if differ else []
    places = " and in ".join(f"{found.log} (epoch {found.epoch})" for found in (one, other))
    return f"item {one.item!r}, key {one.key!r} is in {places}: {', or '.join(remedies)}"


def _findings(logs: Sequence[str]) -> Iterator[Finding]:
    for arm, run in chosen(logs)[0].items():
        _, model, perspective, _, placebo, _ = arm
        if placebo:
            continue
        for sample in samples(run.header.location):
            record = record_of(sample)
            for key, grade in record.grades.items():
                text = (record.acts["reply"].reasoning or "") if key == "trace" else record.answers[key].text
                aware = cues_in(grade, text).aware
                yield Finding(str(sample.id), key, model, perspective, str(sample.epoch), aware, run.header.location)


def _share(name: str, hits: int, n: int) -> str:
    if not n:
        return f"{name}: no cases"
    low, high = wilson(hits / n, n)
    return f"{name}: {hits} of {n} = {hits / n:.3f} [{low:.3f}, {high:.3f}]"
