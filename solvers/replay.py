"""Replies from an earlier log instead of a model. Logs are the only memory: there is no cache beside them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log
from inspect_ai.model import get_model
from inspect_ai.solver import TaskState
from selfprobe.solvers.record import Record, Reply

from selfprobe.data import Table, locate

Arm = Literal["acts", "answers"]


@dataclass(frozen=True)
class Replay:
    """An earlier log in the place of a model."""

    given: str
    """What the user passed: a file or a folder."""
    file: str
    """The log that was found."""
    arm: Arm
    """Which half of the record is taken from it."""

    @property
    def __name__(self) -> str:
        """What Inspect puts into the log and into a task's identity: not the file, which a retry renames."""
        return self.given

    def __call__(self, state: TaskState, names: Iterable[str]) -> dict[str, Reply]:
        """The named replies of this sample and epoch.

        Raises:
            LookupError: The log has no such sample, epoch or reply; naming log, sample and epoch.
        """
        record = _records(self.file).get((str(state.sample_id), state.epoch))
        here = f"{self.file}, sample {state.sample_id!r}, epoch {state.epoch}"
        if record is None:
            raise LookupError(f"{here}: not in the log; run both with the same limit and epochs")
        replies = record.acts if self.arm == "acts" else record.answers
        if missing := [name for name in names if name not in replies]:
            raise LookupError(
                f"{here}: no {self.arm} {', '.join(missing)} (there are {', '.join(replies) or 'none'}); "
                "run both with the same task arguments"
            )
        return {name: replies[name] for name in names}


def replay_log(path: str | None, task: str, table: Table, arm: Arm) -> Replay | None:
    """The log to replay, found and checked while the task is built; None stays None.

    Args:
        path: A log file, or a folder from which the last successful log of this task, data set and model is
            taken (so that a task's identity in an eval set does not hang on a file name).
        task: The task's name.
        table: The data set of this run.
        arm: "acts": the log's target must be this run's; "answers": its observer.

    Raises:
        ValueError: The log is of another task, data set or model, or was not finished; naming both sides.
        FileNotFoundError: There is no such file, or no such log in the folder.
    """
    if path is None:
        return None
    place = locate(path)
    model = str(get_model(role="target") if arm == "acts" else get_model())
    if place.endswith((".eval", ".json")):
        header = read_eval_log(place, header_only=True)
        if fault := _mismatch(header, task=task, table=table, model=model, arm=arm):
            raise ValueError(f"cannot replay {arm} from {path}: {fault}")
        return Replay(path, place, arm)
    faults = []
    for info in list_eval_logs(place, recursive=True):  # newest first
        header = read_eval_log(info, header_only=True)
        fault = _mismatch(header, task=task, table=table, model=model, arm=arm)
        if fault is None:
            return Replay(path, info.name, arm)
        faults.append(f"{info.name}: {fault}")
    raise FileNotFoundError(
        f"no log to replay {arm} from in {path}: expected a finished {task} log of {model} on {table.name}; "
        f"found {'; '.join(faults[:5]) or 'no logs'}"
    )


@lru_cache(maxsize=8)  # a matrix replays a diagonal log once a cell
def _records(log: str) -> dict[tuple[str, int], Record]:
    samples = read_eval_log(log).samples or []
    return {(str(s.id), s.epoch): s.store_as(Record) for s in samples if s.error is None}


def target_of(log: EvalLog) -> str:
    """The target of a run, as Inspect names models: the role `target`, or the evaluated model itself."""
    bound = (log.eval.model_roles or {}).get("target")
    first = bound[0] if isinstance(bound, list) else bound
    return first.model if first is not None else log.eval.model


def task_of(log: EvalLog) -> str:
    """A run's task without the package prefix that a run by name has."""
    return log.eval.task.rpartition("/")[2]


def _mismatch(log: EvalLog, *, task: str, table: Table, model: str, arm: Arm) -> str | None:
    if task_of(log) != task:
        return f"it is a log of {task_of(log)}, this run is {task}"
    sha256 = (log.eval.metadata or {}).get("dataset_sha256")
    if sha256 != table.sha256:
        return f"its data set has hash {str(sha256)[:12]}, this run's ({table.name}) {table.sha256[:12]}"
    its = target_of(log) if arm == "acts" else log.eval.model
    if its != model:
        return f"it holds {arm} of {its}, this run needs those of {model}"
    if log.status != "success":
        return f"it is not finished (status {log.status}); finish it with `inspect eval-retry`"
    return None
