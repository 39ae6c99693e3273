"""One wave of runs by Inspect's `eval_set`, for every study: what is shown of it, and how it ends.

Inspect's own display prints hundreds of lines where there is no terminal. Here it is a line each time another tenth of
the samples is done, and for runs that failed their first error.
"""

import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from inspect_ai import Task, eval_set, task_with
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log, read_eval_log_sample_summaries
from inspect_ai.model import Model, ModelConfig, get_model
from inspect_ai.solver import TaskState

from selfprobe.errors import InputError, Interrupted, PrerequisiteError, one_line

SHOWN = 10
"""Failed runs that are shown with their first error; the others are counted."""

REFUSED = re.compile(r"\b(Authentication|PermissionDenied|NotFound|BadRequest)\w*Error\b|\b40[0134]\b")
"""Errors that the same call meets again: a wrong key, model or request."""


def opened(name: str, **args: Any) -> Model:
    """A model that can be had; Inspect gives one handle for equal arguments.

    Args:
        name: As Inspect names it.
        args: Of `get_model`.

    Raises:
        InputError: No such provider, no key, a wrong argument, no weights.
    """
    try:
        return get_model(name, **args)
    except (PrerequisiteError, ValueError, TypeError, OSError, ImportError) as error:
        raise InputError(f"{name}: {one_line(error)}") from None


def run_wave(tasks: Sequence[Task], log_dir: str, *, title: str, settings: Mapping[str, Any]) -> list[EvalLog]:
    """Run tasks, or what is left of them where logs are there; the headers of their logs.

    Args:
        tasks: Each with its model.
        log_dir: Folder of this wave's logs, local or any fsspec path.
        title: What the user reads above its progress.
        settings: Further arguments of `eval_set`, e.g. limit, display, max_connections; None is its default.

    Raises:
        Interrupted: The user stopped it: no further wave may start.
        InputError: The folder cannot be written or holds logs of other runs.
    """
    chosen = {name: value for name, value in settings.items() if value is not None}
    # Scores of half a run say nothing, and computing them after every sample is work.
    given = {"retry_attempts": 1, "max_tasks": len(tasks), "score_display": False, **chosen}
    if not sys.stdout.isatty():
        given.setdefault("display", "none")
    started = time.monotonic()
    if given.get("display") == "none":
        _Progress(tasks, given.get("limit"), started).announce(title)
    try:
        _, logs = eval_set(list(tasks), log_dir=log_dir, **given)
    except KeyboardInterrupt:
        raise _interrupted(tasks, log_dir) from None
    except PrerequisiteError as error:
        raise InputError(_refusal(error, log_dir)) from None
    except OSError as error:
        raise InputError(f"cannot write logs into {log_dir}: {error}") from None
    if len(logs) < len(tasks) or any(log.status == "cancelled" for log in logs):
        raise _interrupted(tasks, log_dir)
    done = sum(log.status == "success" for log in logs)
    click.echo(f"  {done} of {len(tasks)} runs done ({_clock(started)})", err=True)
    _tell(logs)
    return logs


class _Progress:
    """A line each time another tenth of a wave's samples is done; one that fails and is asked again counts once."""

    def __init__(self, tasks: Sequence[Task], limit: int | None, started: float) -> None:
        self.started, self.runs, self.done = started, len(tasks), set[tuple[int, str | int, int]]()
        self.samples = sum(min(len(task.dataset), limit or sys.maxsize) * (task.epochs or 1) for task in tasks)
        for number, task in enumerate(tasks):
            self._watch(number, task)

    def announce(self, title: str) -> None:
        """The heading of the wave."""
        click.echo(f"{title}: {self.runs} runs, {self.samples} samples; what is finished is not asked again", err=True)

    def _watch(self, number: int, task: Task) -> None:
        before = task.cleanup

        async def count(state: TaskState) -> None:
            if before is not None:
                await before(state)
            tenths = self._tenths()
            self.done.add((number, state.sample_id, state.epoch))
            if tenths < self._tenths() < 10:  # the end is said with the runs
                click.echo(f"  {len(self.done)} of {self.samples} samples ({_clock(self.started)})", err=True)

        task_with(task, cleanup=count)

    def _tenths(self) -> int:
        return 10 * len(self.done) // max(self.samples, 1)


@dataclass(frozen=True)
class _Failure:
    """What went wrong in a run."""

    run: str
    samples: int
    """Errored ones."""
    first: str
    """The vendor's first error."""
    refused: bool
    """Every sample met an error that the same call meets again."""
    ended: bool
    """Whether the run is finished all the same."""

    def __str__(self) -> str:
        share = f"{self.samples} samples failed, the first with " if self.samples else ""
        return f"{self.run}: {share}{self.first[:300]}"


def _failure(log: EvalLog) -> _Failure | None:
    complete = log.results is not None and log.results.completed_samples == log.results.total_samples
    if log.status == "success" and complete:
        return None
    summaries = read_eval_log_sample_summaries(log.location)
    errors = [summary.error for summary in summaries if summary.error]
    first = errors[0] if errors else log.error.message if log.error else f"status {log.status}, no reason in the log"
    target = (log.eval.model_roles or {}).get("target")
    on = f" on {target.model}" if isinstance(target, ModelConfig) else ""
    return _Failure(
        run=f"{log.eval.task.rpartition('/')[2]}, {log.eval.model}{on}",
        samples=len(errors),
        first=" ".join(first.split()),
        refused=len(errors) == len(summaries) and all(REFUSED.search(error) for error in errors),
        ended=log.status == "success",
    )


def _tell(logs: Sequence[EvalLog]) -> None:
    failures = [failure for log in logs if (failure := _failure(log))]
    for failure in failures[:SHOWN]:
        click.echo(f"  {failure}", err=True)
    if len(failures) > SHOWN:
        click.echo(f"  and {len(failures) - SHOWN} further runs", err=True)
    open_ends = [failure for failure in failures if not failure.ended]
    if open_ends and not all(failure.refused for failure in open_ends):
        click.echo("  The same command asks again only for what failed.", err=True)


def _interrupted(tasks: Sequence[Task], log_dir: str) -> Interrupted:
    wanted = Counter((task.name.rpartition("/")[2], str(task.model)) for task in tasks)
    headers = [read_eval_log(info, header_only=True) for info in list_eval_logs(log_dir)]
    there = Counter((log.eval.task.rpartition("/")[2], log.eval.model) for log in headers if log.status == "success")
    return Interrupted(f"Interrupted: {(wanted & there).total()} of {len(tasks)} runs done; the same command goes on.")


def _refusal(error: PrerequisiteError, log_dir: str) -> str:
    said = one_line(error)
    if "not associated with a task" not in said:
        return said
    log = said.partition("'")[2].partition("'")[0]
    return (
        f"{log_dir} holds a log of other runs ({log}): another matrix, other task arguments or generation settings, a "
        "model less, or a data set that changed since. Go on with the same command, or give a new --log-dir"
    )


def _clock(started: float) -> str:
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    return f"{minutes}:{seconds:02}"
