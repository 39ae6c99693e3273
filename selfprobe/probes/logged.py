"""Verdicts of the Inspect baselines (pairwise_preference, direct_scoring, g_eval) on a run's pairs, from their logs."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from inspect_ai.log import EvalLog, read_eval_log_sample_summaries

from selfprobe.plots import short
from selfprobe.probes.sources import PairSet
from selfprobe.results import headers
from selfprobe.scorers.decision import decisions_of
from selfprobe.scorers.preference import VERDICT
from selfprobe.solvers.replay import task_of

TASKS = ("pairwise_preference", "direct_scoring", "g_eval", "preference_probe")

Margins = dict[str, dict[str, dict[str, float]]]
"""Data set → method → pair id → margin, > 0 where text 1 is preferred; pairs without a verdict are not there."""


def margins(paths: Iterable[str], sets: Mapping[str, PairSet]) -> Margins:
    """Verdicts in all finished logs under `paths`; of equal task, model and data set the newest log counts.

    Raises:
        ValueError: No finished log is of these tasks and data sets, or a log is of other pairs than the run.
    """
    named = list(paths)
    found = headers(named)
    finished = [log for log in found if task_of(log) in TASKS and log.status == "success"]
    result: Margins = {}
    for log in sorted(finished, key=lambda one: str(one.eval.created)):
        name = _data_set(log)
        if name in sets:
            result.setdefault(name, {})[f"{task_of(log)}, {short(log.eval.model)}"] = _read(log, name, sets[name])
    if not result:
        held = ", ".join(sorted({_data_set(log) for log in finished})) or "none"
        raise ValueError(
            f"no finished log of {', '.join(TASKS)} on {', '.join(sets)} in {', '.join(named)}; found {len(found)} "
            f"logs, of these tasks on: {held}"
        )
    return result


def _data_set(log: EvalLog) -> str:
    """The name that `sources.load` gives to what a log's task was given."""
    given = str((log.eval.metadata or {}).get("dataset", ""))
    name = given.partition("=")[0]
    return Path(name).stem if name.endswith((".jsonl", ".csv")) else name


def _read(log: EvalLog, name: str, pair_set: PairSet) -> dict[str, float]:
    labels = {pair.id: pair.label for pair in pair_set.pairs}
    read: dict[str, list[float]] = {}
    # A log holds its samples as they ended: by id, one log gives one message.
    for sample in sorted(read_eval_log_sample_summaries(log.location), key=lambda one: str(one.id)):
        if str(sample.id) not in labels or not sample.scores:
            continue
        verdict = next(d for d in decisions_of(next(iter(sample.scores.values()))) if d.key == VERDICT)
        label = labels[str(sample.id)]
        if verdict.truth != (label and str(label)):
            raise ValueError(
                f"{log.location} is of other pairs: in {name}, pair {sample.id} has label {label}, in the log "
                f"{verdict.truth}. Give logs of the same data"
            )
        if verdict.score is not None:
            read.setdefault(str(sample.id), []).append(verdict.score)
    return {key: sum(values) / len(values) for key, values in read.items()}
