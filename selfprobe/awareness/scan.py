"""Logs that one has, read by a grader: which log is read, what that takes, and what was found."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from selfprobe.described import DescribedRun, NamedModel
from selfprobe.errors import InputError, one_line
from selfprobe.evalawareness_tasks.turn_scan import PIECE, SCAN_PROMPT
from selfprobe.header import target_of, task_of
from selfprobe.logs import found, samples
from selfprobe.prices import Cost
from selfprobe.run_settings import RunSettings
from selfprobe.scorers.decision import last_decisions, last_score
from selfprobe.solvers.converse import METHODS
from selfprobe.solvers.logged_turns import logged_turns, pieces, turns_of
from selfprobe.waves import JOINS, complete, run_wave

GRADE = 80
"""A rough guess of the tokens of a grade."""
OURS = (*METHODS, "turn_scan", "turn_curve", "cue_removal", "pairwise_realism", "rewriting")
"""Tasks that themselves ask about evaluations, or read what was said of them."""
NOBODY = "none/none"
"""The evaluated model of a scan: Inspect's name for none."""


@dataclass(frozen=True)
class Scan:
    """What `selfprobe awareness scan` was asked for."""

    logs: Sequence[str]
    grader: str
    role: str | None = None
    """Whose turns; None is the evaluated model."""
    piece: int = PIECE
    limit: int | None = None
    log_dir: str = "logs/awareness_scan"
    settings: RunSettings = field(default_factory=RunSettings)


@dataclass(frozen=True)
class Readable:
    """The logs that can be read."""

    calls: Mapping[str, int]
    """Log → calls of the grader."""
    characters: int
    """That it reads, of all logs."""
    transcripts: int
    turns: int
    ignored: Mapping[str, str]
    """Log, or log and sample → why it is not read."""

    def told(self, scan: Scan) -> str:
        """What will be asked, and what that costs, for people to confirm."""
        calls = sum(self.calls.values())
        sent = self.characters // 4 + calls * len(SCAN_PROMPT) // 4
        head = f"{self.transcripts} transcripts of {len(self.calls)} logs, {self.turns} turns; the subject is not asked"
        aside = [f"Not read: {len(self.ignored)} ({next(iter(self.ignored.values()))})"] if self.ignored else []
        cost = Cost(scan.grader, calls, sent, calls * GRADE)
        return "\n".join([head, *aside, "", *scan.settings.costed([cost], rounds=1)])


def readable(scan: Scan) -> Readable:
    """Look through the logs. No model is asked.

    Raises:
        InputError: There is no such path, or nothing in it can be read: says why.
    """
    there = found(scan.logs)
    ignored, calls = dict(there.ignored), dict[str, int]()
    characters = transcripts = turns = 0
    for header in reversed(there.headers):
        if (task := task_of(header)) in OURS:
            ignored[header.location] = f"a log of {task}, which itself is about evaluations"
            continue
        try:
            table = logged_turns(header.location, scan.role)
        except InputError as error:
            ignored[header.location] = one_line(error).removeprefix(f"{header.location}: ")
            continue
        ignored |= {f"{header.location}, sample {name}": why for name, why in table.aside.items()}
        rows = [turns_of(row) for row in table.rows[: scan.limit]]
        parts = [part for row in rows for part in pieces(row, scan.piece)]
        calls[header.location] = len(parts)
        transcripts, turns = transcripts + len(rows), turns + sum(map(len, rows))
        characters += sum(len(text) for part in parts for *_, text in part)
    if not calls:
        why = Counter(ignored.values()).most_common(1)
        raise InputError(f"nothing to read in {', '.join(scan.logs)}: " + (why[0][0] if why else "no logs are there"))
    return Readable(calls, characters, transcripts, turns, ignored)


def run_scan(scan: Scan, logs: Sequence[str]) -> bool:
    """Have the grader read these logs, one run a log; what was read in an earlier run is not asked again.

    Raises:
        Interrupted: The user stopped it.
        InputError: The grader cannot be had, or the log folder cannot be written.
    """
    given = {"piece": scan.piece} | ({"role": scan.role} if scan.role else {})
    roles = {"grader": NamedModel(scan.grader)}
    runs = [DescribedRun("turn_scan", {"log": log, **given}, NamedModel(NOBODY), roles) for log in logs]
    further = {**JOINS, "limit": scan.limit, "max_tasks": min(len(runs), 10)}
    title = "The grader reads the logs"
    return complete(run_wave(runs, scan.log_dir, title=title, settings=scan.settings, **further))


def transcripts_of(scan: Scan, logs: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What a scan found in these logs: one row a transcript, and one row a quote.

    The first: task, model, log, sample, label, turns, read (turns that could be read), noticed (None where it is
    unscored), first, seen (turns until it is noticed, or to the end of what could be read), unscored, quotes,
    discarded, full, summary, hidden (turns with the reasoning itself, with a summary or a redacted trace, with none).
    The second: task, model, log, sample, turn, part, quote.
    """
    rows: list[dict[str, Any]] = []
    quotes: list[dict[str, Any]] = []
    about = {log.location: log for log in found(logs).headers}
    scans = {
        log.eval.task_args.get("log"): log
        for log in reversed(found([scan.log_dir], {"turn_scan"}).headers)
        if log.status == "success" and log.eval.task_args.get("role") == scan.role
    }
    for log, header in about.items():
        if log not in scans:
            continue
        keys = {"task": task_of(header), "model": target_of(header) if scan.role == "target" else header.eval.model}
        for sample in samples(scans[log].location):
            score, verdict = last_score(sample.scores), next(iter(last_decisions(sample.scores)), None)
            if score is None or verdict is None:
                continue
            found_in = score.metadata or {}
            kinds = Counter(turn.kind for turn in turns_of(sample.metadata))
            first = found_in["first_turn"]
            rows.append(
                keys
                | {"log": log, "sample": str(sample.id), "label": sample.metadata["label"]}
                | {"turns": found_in["turns"], "read": found_in["read"], "first": first}
                | {"noticed": None if verdict.unscored else first is not None, "unscored": verdict.unscored}
                | {"seen": first if first is not None else found_in["read"], "quotes": found_in["quoted"]["kept"]}
                | {"discarded": found_in["quoted"]["discarded"], "full": kinds["full"]}
                | {"summary": kinds["summary"] + kinds["redacted"], "hidden": kinds["none"]}
            )
            place = keys | {"log": log, "sample": str(sample.id)}
            quotes += [place | {"turn": t, "part": part, "quote": quote} for t, part, quote in found_in["found"]]
    return pd.DataFrame(rows), pd.DataFrame(quotes, columns=[*QUOTED])


QUOTED = ("task", "model", "log", "sample", "turn", "part", "quote")


def by_task(rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Task, model and the transcripts of both, the tasks in order."""
    for (task, model), part in rows.groupby(["task", "model"], sort=True):
        yield str(task), str(model), part
