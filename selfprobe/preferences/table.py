"""Verdicts of the Inspect baselines (pairwise_preference, direct_scoring, g_eval) on a run's pairs, from their logs."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from selfprobe.errors import InputError, NoLogs
from selfprobe.logs import Run, first_of, read_best, runs, summaries
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
    """Task, and the settings of the run that are no default."""
    model: str
    dataset: str
    """Name; with the start of its hash where the same name stands for several."""
    metrics: Mapping[str, float]
    """As the metric `preference` names them."""
    log: str

    def estimate(self, name: str) -> Estimate:
        """One of the metrics with its interval."""
        value, low, high = (self.metrics.get(key, math.nan) for key in (name, f"{name}_low", f"{name}_high"))
        return Estimate(value, low, high, int(self.metrics.get("questions", 0)), "question")


def judged(paths: Iterable[str]) -> tuple[list[Judged], dict[str, str]]:
    """The run of each identity that counts, in their order; why logs are not used, by log.

    Raises:
        NoLogs: There is none.
    """
    named = list(paths)
    there = runs(named, TASKS)
    ignored, counted = dict(there.aside), list[Judged]()
    ignored |= {run.log: f"status {run.header.status}" for run in there.counted if not run.finished}
    for dataset, several in _by_set(there.finished).items():
        times = Counter(_names(run)[2] for run in several)
        for run in several:
            name = dataset if times[_names(run)[2]] == 1 else f"{dataset} {run.identity.settings['data set']}"
            judgement = read_best(run, partial(_judged, dataset=name), ignored)
            counted += [judgement] if judgement else []
    if not counted:
        raise NoLogs(f"no finished log of {', '.join(TASKS)} in {', '.join(named)}{first_of(ignored)}")
    return sorted(counted, key=lambda run: (run.method, run.model, run.dataset)), ignored


def _by_set(found: Sequence[Run]) -> dict[str, list[Run]]:
    """Name that `sources.load` gives to what a run's task was given → its runs."""
    by_set: dict[str, list[Run]] = {}
    for run in found:
        name = named(str((run.header.eval.metadata or {}).get("dataset", "")))[0]
        by_set.setdefault(name, []).append(run)
    return by_set


def _judged(run: Run, dataset: str) -> Judged:
    scores = run.header.results.scores if run.header.results else []
    # `inspect score` appends its own beside the task's.
    metrics = next((s.metrics for s in scores if "questions" in s.metrics), {})
    if not metrics:
        raise InputError("it holds none of the numbers of a preference task: another scorer scored it")
    values = {name: float(metric.value) for name, metric in metrics.items()}
    _, plain, whole, _ = _names(run)
    return Judged(run.identity.task + whole.removeprefix(plain), run.identity.model, dataset, values, run.log)


def _names(run: Run) -> tuple[str, str, str, str]:
    """Names of a method from the shortest; the last one tells all apart."""
    of = run.identity
    settings = of.settings
    data = settings.pop("data set", "")
    plain = f"{of.task}, {of.model}"
    whole = ", ".join([plain, *(f"{name}={value}" for name, value in sorted(settings.items()))])
    return f"{of.task}, {short(of.model)}", plain, whole, f"{whole}, data set {data}"


def margins(paths: Iterable[str], sets: Mapping[str, PairSet]) -> Margins:
    """Verdicts in the finished logs that count under `paths`; each identity is a method.

    A method is named by its task and model, in full and with its settings where that is needed to tell two apart.

    Raises:
        ValueError: No finished log is of these tasks and data sets, or a log is of other pairs than the run.
    """
    named = list(paths)
    there = runs(named, TASKS)
    by_set = _by_set(there.finished)
    if not sets.keys() & by_set.keys():
        held = ", ".join(sorted(by_set)) or "none"
        raise ValueError(
            f"no finished log of {', '.join(TASKS)} on {', '.join(sets)} in {', '.join(named)}; found "
            f"{len(there.counted) + len(there.aside)} logs, of these tasks on: {held}"
        )
    result: Margins = {}
    for name in [name for name in by_set if name in sets]:
        times = Counter(each for run in by_set[name] for each in enumerate(_names(run)))
        for run in by_set[name]:
            method = next(each for at, each in enumerate(_names(run)) if times[at, each] == 1)
            result.setdefault(name, {})[method] = _read(run.log, name, sets[name])
    return result


def _read(log: str, name: str, pair_set: PairSet) -> dict[str, float]:
    pairs = {pair.id: pair for pair in pair_set.pairs}
    read: dict[str, list[float]] = {}
    # A log holds its samples as they ended: by id, one log gives one message.
    for sample in sorted(summaries(log), key=lambda one: str(one.id)):
        if str(sample.id) not in pairs or not sample.scores:
            continue
        pair = pairs[str(sample.id)]
        verdict = next((d for d in last_decisions(sample.scores) if d.key == VERDICT), None)
        if verdict is None:
            continue
        if (sample.metadata or {}).get("shown") != pair.shown:
            raise ValueError(
                f"{log} is of other pairs: pair {sample.id} of {name} has other texts there. Give logs of the "
                "same data, asked in the same words (question, item)"
            )
        if verdict.truth != (pair.label and str(pair.label)):
            raise ValueError(
                f"{log} is of other pairs: in {name}, pair {sample.id} has label {pair.label}, in the log "
                f"{verdict.truth}. Give logs of the same data"
            )
        if verdict.score is not None:
            read.setdefault(str(sample.id), []).append(verdict.score)
    return {key: sum(values) / len(values) for key, values in read.items()}
