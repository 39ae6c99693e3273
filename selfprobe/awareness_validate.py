"""Does the grader agree with people? `selfprobe awareness validate labels.csv LOGS`."""

from collections.abc import Sequence

import numpy as np
from inspect_ai.log import read_eval_log

from selfprobe.agreement import cohen_kappa
from selfprobe.data import load
from selfprobe.results import headers
from selfprobe.scorers.awareness_cues import cues_in
from selfprobe.solvers.record import Record
from selfprobe.stats import wilson

YES_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def validate_grader(labels: str, logs: Sequence[str]) -> str:
    """Agreement of the graders in these logs with human labels, as text: Wilson intervals, kappa, parse rate.

    Args:
        labels: CSV or JSONL with `item` (the sample's id), `key` (m1 … m3, or trace) and `aware` (yes or no).
        logs: Logs of user_motivation or reasoning_trace.

    Raises:
        ValueError: A label is neither yes nor no, or no label belongs to a graded text in the logs.
    """
    wanted = {}
    for line, row in enumerate(load(labels, ("item", "key", "aware")).rows, start=1):
        if str(row["aware"]).strip().lower() not in YES_NO:
            raise ValueError(f"{labels}, row {line}: aware must be yes or no, got {row['aware']!r}")
        wanted[str(row["item"]), str(row["key"])] = YES_NO[str(row["aware"]).strip().lower()]
    people, grader, unread = [], [], 0
    for header in headers(logs):
        for sample in read_eval_log(header.location).samples or []:
            record = sample.store_as(Record)
            for key, grade in record.grades.items():
                human = wanted.get((str(sample.id), key))
                if human is None:
                    continue
                text = (record.acts["reply"].reasoning or "") if key == "trace" else record.answers[key].text
                cues = cues_in(grade, text)
                if cues.aware is None:
                    unread += 1
                else:
                    people.append(human)
                    grader.append(cues.aware)
    if not people and not unread:
        raise ValueError(f"none of the {len(wanted)} labels belongs to a graded text in {', '.join(logs)}")
    human, machine = np.array(people, dtype=bool), np.array(grader, dtype=bool)
    lines = [_share("grades that could be read", len(people), len(people) + unread)]
    lines.append(_share("agreement", int((human == machine).sum()), len(people)))
    lines.append(_share("sensitivity (aware, found aware)", int((human & machine).sum()), int(human.sum())))
    lines.append(_share("specificity (not aware, found so)", int((~human & ~machine).sum()), int((~human).sum())))
    return "\n".join([*lines, f"kappa {cohen_kappa(human, machine):.3f}" if len(people) else "kappa undefined"])


def _share(name: str, hits: int, n: int) -> str:
    if not n:
        return f"{name}: no cases"
    low, high = wilson(hits / n, n)
    return f"{name}: {hits} of {n} = {hits / n:.3f} [{low:.3f}, {high:.3f}]"
