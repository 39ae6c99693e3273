"""The runs of a folder: which log counts for each arm, why the others do not, and what is still missing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from inspect_ai.log import EvalLog

from selfprobe.awareness.second_runs import Run, in_order
from selfprobe.errors import InputError, NoLogs, one_line
from selfprobe.header import target_of, task_of
from selfprobe.logs import UNREADABLE, Runs, first_of, item_count, lost_replies, runs, summaries
from selfprobe.scorers.decision import last_decisions
from selfprobe.solvers.converse import METHODS

Arm = tuple[Any, ...]
PLAIN: dict[str, str | int] = {
    "perspective": "first",
    "context": "first",
    "placebo": "",
    "target": "",
    "wording": "",
    "run": 1,
}
"""What an arm is where nothing else is asked for.

`placebo` is its kind, "" where it is none. `target` is the model whose replies the conversations hold, "" where it is
the model itself. `wording` is the short hash of the user's own questions, "" where they are ours. `run` is 1, or 2, 3 …
where the same was asked again.
"""
ARM = ["method", "model", *PLAIN]
"""What makes two runs different measurements."""
SHORT = 8
"""Characters of a hash that stand for it."""
RESUME = "the same command goes on with it"


def chosen(paths: Iterable[str]) -> tuple[dict[Arm, Run], dict[str, str]]:
    """The log of each arm and data set, by the values of ARM (run 1) and the data set, in the paper's order.

    Of several that can be used, run 1 is the one with the most conversations; of equals, that of the study with the
    most arms, then the earliest. Then why the other logs are not used, by log; second runs are not among them.

    Raises:
        NoLogs: There is no finished awareness log.
    """
    there = runs(paths, METHODS, repeats=True)
    used, aside = chosen_of(there, list(paths))
    return {arm: run for arm, run in used.items() if run_of(arm) == 1}, aside


def chosen_of(there: Runs, paths: Sequence[str]) -> tuple[dict[Arm, Run], dict[str, str]]:
    """`chosen` of these runs with all second runs, for messages under the paths as they were typed.

    A run that was asked otherwise (another grader, effort, answer limit …) is no second run: it is an arm of its own,
    whose model is named with the settings that differ.
    """
    aside, held = dict(there.aside), dict[Arm, list[Run]]()
    for counted in sorted(there.counted, key=lambda run: item_count(run.header), reverse=True):
        log = counted.header
        if log.status != "success":
            aside[log.location] = f"status {log.status}"
        elif "dataset_sha256" not in (log.eval.metadata or {}):
            aside[log.location] = "not a selfprobe log: it names no data set"
        else:
            try:
                run = _read(log)
            except UNREADABLE as error:
                aside[log.location] = one_line(error)
                continue
            held.setdefault(arm_of(log), []).append(run)
    if not held:
        raise NoLogs(
            f"no finished log of {', '.join(METHODS)} in {', '.join(paths)}; "
            f"found {len(aside)} other or unfinished logs{first_of(aside)}"
            + "".join(f"; {line}" for line in islice(missing(headers_in(there), {}), 3))
        )
    used = dict[Arm, Run]()
    for arms in _by_writer(held):
        look = any(arm[ARM.index("perspective")] == "third" for arm in arms)
        for arm, ordered in zip(arms, in_order([held[arm] for arm in arms], look=look), strict=True):
            variants: dict[str, list[Run]] = {}
            for run, otherwise in ordered:
                variants.setdefault(", ".join(line.partition(", there ")[0] for line in otherwise), []).append(run)
            for mark, same in variants.items():
                method, model, *rest = arm[:-2]
                name = f"{model}, {mark}" if mark else model
                used |= {(method, name, *rest, number, arm[-1]): run for number, run in enumerate(same, start=1)}
    return dict(sorted(used.items(), key=lambda pair: (METHODS.index(pair[0][0]), *map(str, pair[0][1:])))), aside


def headers_in(there: Runs) -> list[EvalLog]:
    """The headers of all runs, the newest first."""
    return [run.header for run in there.counted]


def run_of(arm: Arm) -> int:
    """The number of a run among those of its arm."""
    return int(arm[ARM.index("run")])


def _by_writer(arms: Iterable[Arm]) -> list[list[Arm]]:
    """The arms that read one model's replies to one data set."""
    found: dict[tuple[str, str], list[Arm]] = {}
    for arm in arms:
        of = dict(zip([*ARM, "data"], arm, strict=True))
        found.setdefault((str(of["target"] or of["model"]), str(of["data"])), []).append(arm)
    return list(found.values())


def _read(log: EvalLog) -> Run:
    """A log's samples, each with a verdict or in error.

    Raises:
        InputError: It cannot be read, holds lost replies, or was scored by another scorer.
    """
    if why := lost_replies(log):
        raise InputError(why)
    run = Run(log, summaries(log.location))
    for sample in run.samples:
        if sample.scores and not last_decisions(sample.scores):
            raise InputError(
                f"sample {sample.id}: expected a score of {task_of(log)}'s own scorer, got {', '.join(sample.scores)}; "
                "`inspect score --action append` keeps the one beside others"
            )
    return run


def missing(headers: Sequence[EvalLog], used: Mapping[Arm, Run]) -> Iterator[str]:
    """One sentence for each arm and data set that is not whole.

    Args:
        headers: Of all logs of the five methods, newest first.
        used: From `chosen`.
    """
    told = set[Arm]()
    for log in headers:
        if log.status != "success" and "dataset_sha256" in (log.eval.metadata or {}):
            arm = arm_of(log)
            if arm not in used and arm not in told:
                told.add(arm)
                status = "is running or was killed" if log.status == "started" else f"ended with {log.status}"
                yield f"{named(arm)} {status} after {_finished(log)} of {_asked(log)} conversations; {RESUME}"
    most = {arm[1:]: 0 for arm in used}
    for arm, run in used.items():
        most[arm[1:]] = max(most[arm[1:]], len(run.samples))
    for arm, run in used.items():
        failed = sum(sample.error is not None for sample in run.samples)
        if (there := len(run.samples)) < (asked := max(_asked(run.header), most[arm[1:]])):
            yield f"{named(arm)} has {there} of {asked} conversations; {RESUME}"
        elif failed:
            yield f"{named(arm)}: {failed} of {there} conversations failed and have no verdict (error)"


def _asked(log: EvalLog) -> int:
    return item_count(log) * (log.eval.config.epochs or 1)


def _finished(log: EvalLog) -> int:
    if log.results is not None:
        return log.results.completed_samples
    try:
        return len(summaries(log.location))
    except UNREADABLE:
        return 0


def arm_of(log: EvalLog) -> Arm:
    """What a log of ours measures, as the keys of `chosen`; as a first run."""
    about = log.eval.metadata or {}
    target = target_of(log)
    return (
        task_of(log),
        log.eval.model,
        str(about.get("perspective") or "first"),
        str(about.get("context") or "first"),
        "form" if about.get("placebo") is True else str(about.get("placebo") or ""),
        "" if target == log.eval.model else target,
        str(about.get("questions_sha256") or "")[:SHORT],
        1,
        str(about["dataset_sha256"]),
    )


def named(arm: Arm) -> str:
    """ "binary of openai/a (third person)"."""
    return f"{arm[0]} of {arm[1]}{marks(arm)}"


def marks(arm: Sequence[object]) -> str:
    """What sets an arm apart from the plain one of its method and model: " (third person)", or "".

    Args:
        arm: The values of ARM, and what comes after them.
    """
    of = dict(zip(ARM, arm, strict=False))
    told = {
        "third person": of["perspective"] == "third",
        f"reading {of['target']}": bool(of["target"]),
        f"placebo {of['placebo']}": bool(of["placebo"]),
        "full transcript": of["context"] == "full",
        f"questions {of['wording']}": bool(of["wording"]),
        f"run {of['run']}": of["run"] != 1,
    }
    return "".join(f" ({mark})" for mark, on in told.items() if on)
