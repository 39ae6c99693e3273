"""Replies from an earlier log instead of a model. Logs are the only memory: there is no separate
cache.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, EvalSpec
from inspect_ai.scorer import SampleScore
from inspect_ai.solver import TaskState
from inspect_ai.util import EarlyStop, EarlyStopping
from pydantic import JsonValue

from selfprobe.data import Table
from selfprobe.errors import InputError
from selfprobe.errors.arguments import locate
from selfprobe.errors.output import from_anywhere
from selfprobe.logs import (
    LEFT_OUT,
    Run,
    about_of,
    as_typed,
    in_thread,
    informed_of,
    invalidated_in,
    runs,
    samples,
    summaries,
    target_of,
    task_defaults,
    task_of,
)
from selfprobe.solvers.ask import flag_substituted_model, in_a_run, single_model_of_role
from selfprobe.solvers.record import Reply, record_of

Arm = Literal["acts", "answers"]
NO_VALUE = as_typed(None)
"""Text of an argument that is None."""


@dataclass(frozen=True)
class Replay:
    """An earlier log, used instead of a model."""

    path: str
    """Path that the user passed, made absolute: a file or a folder."""
    task: str | tuple[str, ...]
    """Tasks whose logs are accepted; several where tasks share their acts."""
    table: Table
    arm: Arm
    """Half of the record that is taken from it."""
    asked: tuple[tuple[str, str], ...] = ()
    """Task arguments of this run on which the replies depend, as text: of several logs one with the
    same is taken.
    """

    chosen: dict[str, EvalLog] = field(default_factory=dict, compare=False, repr=False)
    """Headers of the logs found so far, by model: one task object can be run on several."""

    @property
    def __name__(self) -> str:
        """Name in the log and in a task's identity for Inspect: not the file, which a retry
        renames.
        """
        return self.path

    @property
    def tasks(self) -> str:
        """Tasks whose logs are accepted, for messages."""
        return self.task if isinstance(self.task, str) else " or ".join(self.task)

    @property
    def file(self) -> str:
        """Address of the log."""
        return from_anywhere(self.header.location)

    @property
    def header(self) -> EvalLog:
        """The log, found and checked against the models of the run that is under way; see
        `replay_log`.
        """
        model = str(single_model_of_role("target" if self.arm == "acts" else None))
        if model not in self.chosen:
            self.chosen[model] = self._find(model)
        return self.chosen[model]

    @property
    def items(self) -> list[str]:
        """Ids of the log's items, in the order in which a limit takes them."""
        return [str(item) for item in self.header.eval.dataset.sample_ids or []]

    def _find(self, model: str) -> EvalLog:
        """The header of the log that holds the replies of a model.

        Raises:
            InputError: No log fits, or several do whose settings differ.
        """
        fitting_runs = self._fitting_runs(model)
        asked_settings = dict(self.asked)
        settings_by_run = [self._settings(run) for run in fitting_runs]
        for run, settings in zip(fitting_runs, settings_by_run, strict=True):
            if settings == asked_settings:
                return run.header
        are_alike = all(settings == settings_by_run[0] for settings in settings_by_run)
        has_reply_limit = asked_settings.get("reply_tokens", NO_VALUE) != NO_VALUE
        if are_alike and not has_reply_limit:
            return fitting_runs[0].header
        raise InputError(
            f"{self.path} holds {self.arm} of {model} with other settings: "
            f"{self._differences(settings_by_run)}; give the log itself"
        )

    def _fitting_runs(self, model: str) -> list[Run]:
        """Runs at the path that hold replies of a model to this data set.

        Raises:
            InputError: There is none; names the first five faults.
        """
        found_runs = in_thread(runs, [self.path])
        faults = [f"{log}: {reason}" for log, reason in found_runs.set_aside_reasons.items()]
        fitting_runs = []
        for run in found_runs.counted:
            fault = self._mismatch(run.header, model)
            if fault:
                faults.append(f"{run.log}: {fault}")
            else:
                fitting_runs.append(run)
        if not fitting_runs:
            raise InputError(
                f"no log to replay {self.arm} from in {self.path}: expected a finished {self.tasks} "
                f"log of {model} on {self.table.name}; found {'; '.join(faults[:5]) or 'no logs'}"
            )
        return fitting_runs

    def _settings(self, run: Run) -> dict[str, str]:
        """Settings of a log's run that this run is asked with too."""
        task_args = run.header.eval.task_args
        return {name: as_typed(task_args.get(name)) for name, _ in self.asked}

    def _differences(self, settings_by_run: list[dict[str, str]]) -> str:
        """Each setting that is not this run's, with the values of the logs."""
        parts = []
        for name, asked_value in sorted(self.asked):
            values = {settings[name] for settings in settings_by_run}
            if values != {asked_value}:
                parts.append(f"{name} {' or '.join(sorted(values))}")
        return ", ".join(parts)

    def __call__(self, state: TaskState, names: Iterable[str]) -> dict[str, Reply]:
        """Named replies of this sample and epoch.

        Raises:
            LookupError: The log has no such sample, epoch or reply; naming log, sample and epoch.
        """
        replies_of_arm = _records(self.file)[self.arm]
        replies = replies_of_arm.get((str(state.sample_id), state.epoch))
        sample_place = f"{self.file}, sample {state.sample_id!r}, epoch {state.epoch}"
        if replies is None:
            invalidated = str(in_thread(invalidated_in, self.header))
            if invalidated:
                raise LookupError(f"{sample_place}: no valid sample of the log; {invalidated}")
            raise LookupError(
                f"{sample_place}: not in the log; run both with the same limit and epochs"
            )
        missing_names = [name for name in names if name not in replies]
        if missing_names:
            raise LookupError(
                f"{sample_place}: no {self.arm} {', '.join(missing_names)} "
                f"(there are {', '.join(replies) or 'none'}); run both with the same task arguments"
            )
        lost_names = [name for name in names if replies[name].problem == "lost"]
        if lost_names:
            raise LookupError(
                f"{sample_place}: the text of {', '.join(lost_names)} is not in the log; "
                "run it again"
            )
        return {name: flag_substituted_model(replies[name]) for name in names}

    def of_item(self, item: str) -> list[dict[str, Reply]]:
        """Replies to an item, one dict per epoch; empty where the log lacks it."""
        flagged_epochs = []
        for replies in _by_item(self.file, self.arm).get(item, []):
            flagged = {name: flag_substituted_model(reply) for name, reply in replies.items()}
            flagged_epochs.append(flagged)
        return flagged_epochs

    def _mismatch(self, header: EvalLog, model: str) -> str | None:
        """Why a log does not hold the replies of a model to this data set; None where it does."""
        accepted_tasks = (self.task,) if isinstance(self.task, str) else self.task
        if task_of(header) not in accepted_tasks:
            return f"it is a log of {task_of(header)}, this run is {self.tasks}"
        sha256 = (header.eval.metadata or {}).get("dataset_sha256")
        if sha256 != self.table.sha256:
            return (
                f"its data set has hash {str(sha256)[:12]}, "
                f"this run's ({self.table.name}) {self.table.sha256[:12]}"
            )
        replying_model = target_of(header) if self.arm == "acts" else header.eval.model
        if replying_model != model:
            return f"it holds {self.arm} of {replying_model}, this run needs those of {model}"
        if self.arm == "answers":
            hint = informed_of(header)
            if hint:
                return f"its observer was told of {target_of(header)} (about={hint})"
            if about_of(header) == "other":
                return "its observer was asked about another assistant alone (about=other)"
        if header.status != "success":
            return (
                f"it is not finished (status {header.status}); finish it with `inspect eval-retry`"
            )
        invalidated = invalidated_in(header)
        return str(invalidated) if invalidated.are_all else None


@dataclass(frozen=True)
class LeftOut:
    """Inspect's early stopping of the samples that failed in a replayed log: nothing can be asked
    about them yet.

    They are in no log of the run, and are asked when the replayed log has them (`logs.is_whole`).
    """

    replays: tuple[Replay, ...]

    async def start_task(self, task: EvalSpec, samples: list[Sample], epochs: int) -> str:
        """Name of what stops samples, for the log."""
        return LEFT_OUT

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        """The reason why a sample is left out; None where it is asked."""
        with suppress(InputError):  # without a log to replay the sample itself fails, and says so
            for replay in self.replays:
                if (str(id), epoch) in _failed_samples(replay.file):
                    return EarlyStop(
                        id=id, epoch=epoch, reason="its calls failed in the log that is replayed"
                    )
        return None

    async def complete_sample(
        self, id: str | int, epoch: int, scores: dict[str, SampleScore]
    ) -> None:
        """Nothing: a sample does not depend on the others."""

    async def complete_task(self) -> dict[str, JsonValue]:
        """Nothing for the log."""
        return {}


def leave_out_failed(*replays: Replay | None) -> EarlyStopping | None:
    """The early stopping of a task that replays logs; None where it replays none."""
    given_replays = tuple(replay for replay in replays if replay is not None)
    return LeftOut(given_replays) if given_replays else None


def require_same_settings(
    replay: Replay | None, reply_kind: str, **run_settings: object
) -> Replay | None:
    """Log to replay; replies asked for in another way are refused, since nothing else in a log
    shows that.

    Args:
        replay: Log to replay; None stays None.
        reply_kind: Kind of the log's replies, for the message ("rollouts").
        run_settings: Arguments that determined how they were asked for, in this run; a log may lack one at
            its default.
    """
    # A matrix builds tasks first, both waves with the same arguments.
    if replay is None or not in_a_run():
        return replay
    task_args = replay.header.eval.task_args
    for name, value in run_settings.items():
        asked_value = as_typed(value)
        log_value: str | None
        if name in task_args:
            log_value = as_typed(task_args[name])
        else:
            log_value = task_defaults(replay.tasks).get(name)
        if log_value != asked_value:
            raise InputError(
                f"{replay.file} holds {reply_kind} of {name} {log_value}, this run is of {name} "
                f"{asked_value}; give both the same"
            )
    return replay


def replay_log(
    path: str | None, task: str | tuple[str, ...], table: Table, arm: Arm, **run_settings: object
) -> Replay | None:
    """Log to replay; None stays None.

    Args:
        path: A log file, or a folder from which the last successful log of this task, data set and
            model is taken (so that a task's identity in an eval set does not hang on a file name).
        task: Name of the task, or of a family of tasks that ask for the same acts.
        table: The data set of this run.
        arm: "acts": the log's target must be this run's; "answers": its observer.
        run_settings: Task arguments of this run on which the replies depend. Where a folder holds logs
            with several values of them, one with these is taken, and without such a log none.

    Raises:
        ValueError: No log there is of this task, data set and model, and finished; it names both
            sides. Raised while the task is built where the run's models are known by then (not in a
            matrix, which builds tasks first).
        InputError: There is no such file or folder.
    """
    if path is None:
        return None
    asked_arguments = tuple((name, as_typed(value)) for name, value in run_settings.items())
    replay = Replay(locate(path), task, table, arm, asked_arguments)
    if in_a_run():
        _ = replay.header
    return replay


@lru_cache(maxsize=128)  # a matrix replays a diagonal log once per cell
def _records(log: str) -> dict[Arm, dict[tuple[str, int], dict[str, Reply]]]:
    acts: dict[tuple[str, int], dict[str, Reply]] = {}
    answers: dict[tuple[str, int], dict[str, Reply]] = {}
    for sample in in_thread(samples, log):
        if sample.error is not None:
            continue
        record = record_of(sample)
        acts[str(sample.id), sample.epoch] = record.acts
        answers[str(sample.id), sample.epoch] = record.answers
    return {"acts": acts, "answers": answers}


@lru_cache(maxsize=128)
def _failed_samples(log: str) -> frozenset[tuple[str, int]]:
    """Id and epoch of the samples that ended in an error."""
    return frozenset(
        (str(sample.id), sample.epoch) for sample in in_thread(summaries, log) if sample.error
    )


@lru_cache(maxsize=128)
def _by_item(log: str, arm: Arm) -> dict[str, list[dict[str, Reply]]]:
    epochs_by_item: dict[str, list[dict[str, Reply]]] = {}
    for (item, _), replies in sorted(_records(log)[arm].items()):
        epochs_by_item.setdefault(item, []).append(replies)
    return epochs_by_item
