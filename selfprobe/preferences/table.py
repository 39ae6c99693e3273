"""Verdicts of the Inspect baselines (pairwise_preference, direct_scoring, g_eval) on a run's pairs, from their logs."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from inspect_ai.log import EvalLog

from selfprobe.errors import NoLogs
from selfprobe.logs import Run, first_of, runs, summaries
from selfprobe.plots import short
from selfprobe.scorers.decision import last_decisions
from selfprobe.scorers.preference import VERDICT
from selfprobe.sources.public_pairs import PairSet, named
from selfprobe.stats.estimate import Estimate

TASKS = ("pairwise_preference", "direct_scoring", "g_eval", "preference_probe")

Margins = dict[str, dict[str, dict[str, float]]]
"""Data set → method → pair id → margin, > 0 where text 1 is preferred; pairs without a verdict are not there."""


@dataclass(frozen=True)
class Judged:
    """A finished run of a preference task: what its log's header says."""

    method: str
    """Task, and its arguments where they are not the usual ones."""
    model: str
    dataset: str
    metrics: Mapping[str, float]
    """As the metric `preference` names them."""
    log: str

    def estimate(self, name: str) -> Estimate:
        """One of the metrics with its interval."""
        value, low, high = (self.metrics.get(key, math.nan) for key in (name, f"{name}_low", f"{name}_high"))
        return Estimate(value, low, high, int(self.metrics.get("questions", 0)), "question")


def judged(paths: Iterable[str]) -> tuple[list[Judged], dict[str, str]]:
    """The last finished run of each task, model, arguments and data set, in this order; why logs are not used, by log.

    Raises:
        NoLogs: There is none.
    """
    named = list(paths)
    there = runs(named, TASKS)
    aside, judgements = dict(there.aside), list[Judged]()
    for run in there.counted:
        if not run.finished:
            aside[run.log] = f"status {run.header.status}"
        elif (judgement := _judged(run)).metrics:
            judgements.append(judgement)
        else:
            aside[run.log] = "it holds none of the numbers of a preference task: another scorer scored it"
    if not judgements:
        raise NoLogs(f"no finished log of {', '.join(TASKS)} in {', '.join(named)}{first_of(aside)}")
    return sorted(judgements, key=lambda one: (one.method, one.model, one.dataset)), aside


def _judged(run: Run) -> Judged:
    scores = run.header.results.scores if run.header.results else []
    # `inspect score` appends its own beside the task's.
    metrics = next((s.metrics for s in scores if "questions" in s.metrics), {})
    return Judged(
        method=", ".join([run.identity.task, *_settings(run)]),
        model=run.identity.model,
        dataset=_data_set(run.header),
        metrics={name: float(metric.value) for name, metric in metrics.items()},
        log=run.log,
    )


def _settings(run: Run) -> list[str]:
    """How it was asked, where that is not the usual way."""
    return [f"{name}={value}" for name, value in (*run.identity.args, *run.identity.config, *run.identity.roles)]


def margins(paths: Iterable[str], sets: Mapping[str, PairSet]) -> Margins:
    """Verdicts in all finished logs under `paths`; of one task, model and arguments on a data set the newest counts.

    A method is named by its task and model, in full and with its arguments where that is needed to tell two apart.

    Raises:
        ValueError: No finished log is of these tasks and data sets, or a log is of other pairs than the run.
    """
    typed = list(paths)
    finished = runs(typed, TASKS).finished
    by_set: dict[str, list[Run]] = {}
    for run in reversed(finished):  # the newest last
        if (name := _data_set(run.header)) in sets:
            by_set.setdefault(name, []).append(run)
    if not by_set:
        held = ", ".join(sorted({_data_set(run.header) for run in finished})) or "none"
        raise ValueError(
            f"no finished log of {', '.join(TASKS)} on {', '.join(sets)} in {', '.join(typed)}; found "
            f"{len(finished)} logs, of these tasks on: {held}"
        )
    result: Margins = {}
    for name, logs in by_set.items():
        times = Counter(each for run in logs for each in set(_names(run)))
        for run in logs:
            shortest = next((each for each in _names(run) if times[each] == 1), _names(run)[-1])
            result.setdefault(name, {})[shortest] = _read(run.header, name, sets[name])
    return result


def _names(run: Run) -> tuple[str, str, str]:
    """Of what was run, from the shortest; the last one tells all methods apart."""
    task, model = run.identity.task, run.identity.model
    return f"{task}, {short(model)}", f"{task}, {model}", ", ".join([task, model, *_settings(run)])


def _data_set(log: EvalLog) -> str:
    """The name that `sources.load` gives to what a log's task was given."""
    return named(str((log.eval.metadata or {}).get("dataset", "")))[0]


def _read(log: EvalLog, name: str, pair_set: PairSet) -> dict[str, float]:
    pairs = {pair.id: pair for pair in pair_set.pairs}
    read: dict[str, list[float]] = {}
    # A log holds its samples as they ended: by id, one log gives one message.
    for sample in sorted(summaries(log.location), key=lambda one: str(one.id)):
        if str(sample.id) not in pairs or not sample.scores:
            continue
        pair = pairs[str(sample.id)]
        verdict = next((d for d in last_decisions(sample.scores) if d.key == VERDICT), None)
        if verdict is None:
            continue
        if (sample.metadata or {}).get("shown") != pair.shown:
            raise ValueError(
                f"{log.location} is of other pairs: pair {sample.id} of {name} has other texts there. Give logs of the "
                "same data, asked in the same words (question, item)"
            )
        if verdict.truth != (pair.label and str(pair.label)):
            raise ValueError(
                f"{log.location} is of other pairs: in {name}, pair {sample.id} has label {pair.label}, in the log "
                f"{verdict.truth}. Give logs of the same data"
            )
        if verdict.score is not None:
            read.setdefault(str(sample.id), []).append(verdict.score)
    return {key: sum(values) / len(values) for key, values in read.items()}
