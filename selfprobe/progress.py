"""What is shown of a wave where Inspect's own display is not: a line each time another tenth of the samples is done."""

import sys
import time
from collections.abc import Callable, Sequence

from inspect_ai import Task, task_with
from inspect_ai.solver import TaskState

from selfprobe.safe import echo

Key = tuple[int, str | int, int]
"""A sample of a wave: the number of its run, its id, its epoch."""


def samples_of(tasks: Sequence[Task], limit: int | None) -> int:
    """How many samples the runs are to have."""
    return sum(min(len(task.dataset), limit or sys.maxsize) * (task.epochs or 1) for task in tasks)


def watch(tasks: Sequence[Task], done: Callable[[Key], None]) -> None:
    """Have `done` called for each sample that gets scores; one that failed or was cut off has none."""
    for number, task in enumerate(tasks):
        _watch(number, task, done)


def _watch(number: int, task: Task, done: Callable[[Key], None]) -> None:
    before = task.cleanup

    async def count(state: TaskState) -> None:
        if before is not None:
            await before(state)
        if state.scores:
            done((number, state.sample_id, state.epoch))

    task_with(task, cleanup=count)


class Progress:
    """The lines of one wave, of all its processes."""

    def __init__(self, title: str, runs: int) -> None:
        self.title, self.runs, self.started = title, runs, time.monotonic()
        self.samples: dict[int, int] = {}
        """By the number of the share; a share is the part of a wave that one process runs."""
        self.done = set[tuple[int, Key]]()
        self.announced = False

    def announce(self) -> None:
        """The heading, once."""
        if self.announced:
            return
        self.announced = True
        samples = f", {sum(self.samples.values())} samples" if self.samples else ""
        runs = "run" if self.runs == 1 else "runs"
        echo(f"{self.title}: {self.runs} {runs}{samples}; what is finished is not asked again", err=True)

    def note(self, share: int, key: Key) -> None:
        """A sample is done."""
        tenths = self._tenths()
        self.done.add((share, key))
        if tenths < self._tenths() < 10:  # the end is said with the runs
            echo(f"  {len(self.done)} of {sum(self.samples.values())} samples ({self.clock()})", err=True)

    def clock(self) -> str:
        """Minutes and seconds since the wave began."""
        minutes, seconds = divmod(round(time.monotonic() - self.started), 60)
        return f"{minutes}:{seconds:02}"

    def _tenths(self) -> int:
        return 10 * len(self.done) // max(sum(self.samples.values()), 1)
