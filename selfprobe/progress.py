"""What is shown of a wave where Inspect's own display is not.

On a terminal one line that moves; in a pipe a line each time another tenth is done, and while nothing is done yet one
that says how many calls were answered.
"""

import sys
import time
from collections.abc import Callable, Sequence

from inspect_ai import Task, task_with
from inspect_ai.solver import TaskState

from selfprobe import busy
from selfprobe.safe import clean, echo

WIDE, LONGEST = 20, 60.0
"""Signs of the bar; and seconds between two lines in a pipe, at most."""

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
        self.announced, self.terminal = False, sys.stderr.isatty()
        self.line_at = self.started
        """When the last line was printed."""
        self.pause = busy.EVERY
        """Seconds from that line to the next one, where no tenth is done before."""

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
        if tenths < self._tenths() < 10 and not self.terminal:  # the end is said with the runs
            self.line_at, self.pause = time.monotonic(), busy.EVERY
            echo(f"  {self._count()} ({self.clock()})", err=True)

    def line(self, terminal: bool, seconds: float) -> str:
        """What `busy.shown` says: on a terminal all; in a pipe, after a silence, the calls that were answered."""
        if terminal:
            calls = busy.calls
            by_calls = (calls.answered, calls.expected) if calls.expected and calls.answered else None
            done, whole = by_calls or (len(self.done), sum(self.samples.values()))
            share = min(done / max(whole, 1), 1.0)
            full = int(WIDE * share)
            left = f", about {_clock(seconds / share - seconds)} left" if share else ""
            parts = [self.title, *filter(None, [calls.model.partition("?")[0]]), "█" * full + "░" * (WIDE - full)]
            return clean(" · ".join([*parts, self._count(), f"{self.clock()}{left}"]))
        if time.monotonic() - self.line_at < self.pause:
            return ""
        self.line_at, self.pause = time.monotonic(), min(2 * self.pause, LONGEST)
        return f"  {_answered()} ({self.clock()})"

    def _count(self) -> str:
        """How far it is, in calls; in samples where nothing says how many calls there are."""
        calls = busy.calls
        if calls.expected and calls.answered:
            return f"call {calls.answered:,} of {max(calls.expected, calls.answered):,}"
        if self.done or not calls.answered:
            return f"{len(self.done)} of {sum(self.samples.values())} samples"
        return _answered()

    def clock(self) -> str:
        """Minutes and seconds since the wave began."""
        return _clock(time.monotonic() - self.started)

    def _tenths(self) -> int:
        return 10 * len(self.done) // max(sum(self.samples.values()), 1)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def _answered() -> str:
    return f"{busy.calls.answered:,} calls answered, {busy.calls.tokens:,} tokens"
