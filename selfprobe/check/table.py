"""From any Inspect logs with scores of samples to one row a value."""

import hashlib
import math
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_uppercase

from inspect_ai.log import EvalLog, EvalSampleSummary

from selfprobe.errors import NoLogs, one_line
from selfprobe.header import target_of, task_of
from selfprobe.logs import UNREADABLE, cause, counted, cut_in, item_count, summaries, values_of
from selfprobe.logs import runs as runs_in
from selfprobe.scorers.decision import Decision, last_decisions

NO_REASON = "no_reason"
"""Of a value that another suite left out without saying why."""


@dataclass(frozen=True)
class Value:
    """What one scorer said about one key of one sample."""

    item: str
    epoch: int
    key: str
    """Of the suite's logs the decision's; of others the scorer's name, and after a dot the key of a dict."""
    value: float | None
    """None when unscored, and for a text ("B") that is no number."""
    unscored: str | None
    """Why there is no value."""
    decision: Decision | None = None
    """Of the suite's logs, with what a blind guess gets."""


@dataclass(frozen=True)
class Run:
    """One log."""

    header: EvalLog
    log: str
    task: str
    model: str
    target: str
    status: str
    """As Inspect says it: success, error, cancelled, started."""
    wanted: int
    """Samples that it was to have, epochs counted."""
    done: int
    """Samples that ended without an error."""
    error: str
    """The first error, or ""."""
    silent: bool
    """Whether its own metrics count no item."""
    asked: dict[str, int]
    """How the evaluated model was really asked (`solvers.sent`) → samples; nothing of other suites."""
    cut: dict[str, float]
    """Task argument → share of replies that ended at its limit, where those are most."""
    values: list[Value]
    """Of the samples that ended without an error."""
    inputs: dict[str, str]
    """Item → a digest of what it asks."""
    answers: dict[str, str]
    """Item → a digest of its options and its target; nothing of one without a target."""
    clusters: dict[str, str]
    """Item → what it comes from, where items were grouped (`-T cluster=`)."""

    @property
    def name(self) -> str:
        """For people: the task and its model."""
        return f"{self.task} of {self.model}{about(self.model, self.target)}"


def about(model: str, target: str) -> str:
    """What a run's name has of a target that is not its model."""
    return f" about {target}" if target != model else ""


@dataclass(frozen=True)
class Logged:
    """What a set of logs holds."""

    runs: list[Run]
    """Those that count (`logs.runs`), and failed ones that none of these makes good; the oldest first."""
    earlier: dict[str, str]
    """Log that does not count → log of the same that counts in its place."""
    broken: dict[str, str]
    """Logs that cannot be read, and why: nobody knows which run they were."""

    def left_out(self) -> list[str]:
        """For each run with others of the same: which log counts, and how many do not."""
        count, run = Counter(self.earlier.values()), {one.log: one for one in self.runs}
        return [
            f"{run[log].task} of {run[log].model}: {log.rpartition('/')[2]} counts; {number} other "
            f"run{'s' * (number > 1)} of the same {'are' if number > 1 else 'is'} left out"
            for log, number in count.items()
        ]


def load(paths: Iterable[str]) -> Logged:
    """All logs of these files and folders.

    Args:
        paths: Logs, or folders of logs.

    Raises:
        NoLogs: There is no log.
        InputError: A path does not exist.
    """
    named = list(paths)
    there = runs_in(named)
    earlier, broken, runs = dict[str, str](), dict(there.aside), list[Run]()
    for one in there.counted:
        bad = [log for log in one.others if log.status != "success"]
        failed = [log for log in bad if log.location in one.later or not _makes_good(one.header, log)]
        earlier |= {log.location: one.log for log in one.others if log not in failed}
        for header in (one.header, *failed):
            try:
                runs.append(_run(header))
            except UNREADABLE as error:  # InputError is one
                broken[header.location] = one_line(error)
            else:
                broken.pop(header.location, None)
    broken = {log: why for log, why in broken.items() if log not in earlier}
    if not runs and not broken:
        raise NoLogs(f"no log in {', '.join(named)}")
    return Logged(sorted(runs, key=lambda run: str(run.header.eval.created)), earlier, broken)


def _makes_good(later: EvalLog, failed: EvalLog) -> bool:
    """Whether a later run was to have all samples of a failed one of the same, epochs counted."""
    if (later.eval.config.epochs or 1) < (failed.eval.config.epochs or 1):
        return False
    had, has = failed.eval.dataset.sample_ids, later.eval.dataset.sample_ids
    if had is None or has is None:
        return item_count(later) >= item_count(failed)
    return set(had) <= set(has)


def _run(header: EvalLog) -> Run:
    samples = summaries(header.location)
    failed = [sample for sample in samples if sample.error]
    whole = [sample for sample in samples if not sample.error]
    said = cause(header.location, failed[0]) if failed else header.error.message if header.error else ""
    return Run(
        header=header,
        log=header.location,
        task=task_of(header),
        model=header.eval.model,
        target=target_of(header),
        status=header.status,
        wanted=max(item_count(header) * (header.eval.config.epochs or 1), len(samples)),
        done=len(whole),
        error=one_line(said) if said else "",
        silent=counted(header) == 0,
        asked=dict(Counter(way for sample in whole for way in _ways(sample))),
        cut=cut_in(header),
        values=[value for sample in whole for value in _values(sample)],
        inputs={str(sample.id): _digest(_asked(sample)) for sample in samples},
        answers={str(sample.id): _digest(right) for sample in samples if (right := _right(sample))},
        clusters={str(s.id): str(s.metadata["cluster"]) for s in samples if s.metadata.get("cluster")},
    )


def _digest(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:8]


def _asked(sample: EvalSampleSummary) -> list[str]:
    """What a sample asks, texts alone: messages have ids of their own in every run."""
    given = sample.input
    return [given] if isinstance(given, str) else [f"{message.role}: {message.text}" for message in given]


def _right(sample: EvalSampleSummary) -> list[str]:
    """A sample's options and its target: letters as their options' texts, and in no order, since tasks shuffle them."""
    options = sample.choices or []
    target = [sample.target] if isinstance(sample.target, str) else sample.target
    texts = dict(zip(ascii_uppercase, options, strict=False))
    return [*sorted(options), "→", *sorted(texts.get(one, one) for one in target)] if any(target) else []


def _ways(sample: EvalSampleSummary) -> list[str]:
    told = sample.metadata.get("applied")
    way = told.get("observer", told.get("target")) if isinstance(told, dict) else None
    return ["; ".join(sorted(str(way).split("; ")))] if way else []


def _values(sample: EvalSampleSummary) -> list[Value]:
    at = (str(sample.id), sample.epoch)
    if ours := last_decisions(sample.scores):
        return [Value(*at, decision.key, decision.value, decision.unscored, decision) for decision in ours]
    out = []
    for scorer, score in (sample.scores or {}).items():
        given, value = values_of(score), score.value
        keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
        for key in map(str, keys) if keys else [""]:
            missing = None if key in given else score.reason or NO_REASON
            out.append(Value(*at, f"{scorer}.{key}".removesuffix("."), _number(given.get(key)), missing))
    return out


WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0} | {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Inspect's: correct, partial, incorrect, no answer; and the words that it takes for numbers."""


def _number(value: object) -> float | None:
    if isinstance(value, str):
        if (word := value if value in WORDS else value.lower()) in WORDS:
            return WORDS[word]
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, int | float) or math.isnan(value):
        return None
    return float(value) if abs(value) <= sys.float_info.max else math.copysign(math.inf, value)
