"""Progress of a wave, in place of Inspect's own display.

A terminal shows one line that moves; a pipe gets a line each time another tenth is done, and until
then a line that says how many calls were answered.
"""

import sys
import time
from collections.abc import Callable, Sequence

from inspect_ai import Task, task_with
from inspect_ai.solver import TaskState

from selfprobe.text import busy
from selfprobe.text.safe import clean, echo

WIDE, LONGEST = 20, 60.0
"""Signs of the bar; and largest number of seconds between two lines in a pipe."""

Key = tuple[int, str | int, int]
"""A sample of a wave: the number of its run, its id, its epoch."""


def sample_count(tasks: Sequence[Task], limit: int | None) -> int:
    """Number of samples that the runs are to have."""
    return sum(min(len(task.dataset), limit or sys.maxsize) * (task.epochs or 1) for task in tasks)


def watch(tasks: Sequence[Task], done: Callable[[Key], None]) -> None:
    """Have `done` called for each sample that gets scores; one that failed or was cut off has none."""
    numbers = {id(task): number for number, task in enumerate(tasks)}
    on_scored(tasks, lambda task, state: done((numbers[id(task)], state.sample_id, state.epoch)))


def on_scored(tasks: Sequence[Task], scored: Callable[[Task, TaskState], None]) -> None:
    """Have `scored` called with task and state of each sample that gets scores, after the task's
    own cleanup.
    """
    for task in tasks:
        _on_scored(task, scored)


def _on_scored(task: Task, scored: Callable[[Task, TaskState], None]) -> None:
    before = task.cleanup

    async def cleanup(state: TaskState) -> None:
        if before is not None:
            await before(state)
        if state.scores:
            scored(task, state)

    task_with(task, cleanup=cleanup)


class Progress:
    """The lines of one wave, of all its processes."""

    def __init__(self, title: str, runs: int) -> None:
        self.title, self.runs, self.started = title, runs, time.monotonic()
        self.samples: dict[int, int] = {}
        """Number of the share → its samples; a share is the part of a wave that one process runs.
        """
        self.done = set[tuple[int, Key]]()
        self.announced, self.terminal = False, sys.stderr.isatty()
        self.line_at = self.started
        """Time at which the last line was printed."""
        self.pause = busy.EVERY
        """Seconds from that line to the next one, unless a tenth is done before."""
        self.before = busy.calls.answered
        """Number of calls of earlier waves."""
        self.tenths = 10 * self.before // max(busy.calls.expected, 1)
        """Number of tenths that were printed."""

    def announce(self) -> None:
        """Print the heading, once."""
        if self.announced:
            return
        self.announced = True
        count = sum(self.samples.values())
        samples = f", {count} sample{'s' * (count != 1)}" if self.samples else ""
        runs = "run" if self.runs == 1 else "runs"
        echo(
            f"{self.title}: {self.runs} {runs}{samples}; what is finished is not asked again",
            err=True,
        )

    def note(self, share: int, key: Key) -> None:
        """Count a sample that is done."""
        self.done.add((share, key))
        done, whole = self._far()
        tenths = 10 * done // max(whole, 1)
        if (
            tenths > self.tenths
            and len(self.done) < sum(self.samples.values())
            and not self.terminal
        ):  # the end is said
            self.line_at, self.pause, self.tenths = time.monotonic(), busy.EVERY, tenths
            echo(f"  {self._count()} ({self.clock()})", err=True)

    def line(self, terminal: bool, seconds: float) -> str:
        """Line for `busy.status_line`: on a terminal all; in a pipe, after a silence, the calls
        that were answered.
        """
        if terminal:
            done, whole = self._far()
            full = WIDE * min(done, whole) // max(whole, 1)
            here = done - self.before if self._by_calls() else done
            left = (
                f", about {_clock(seconds * max(whole - done, 0) / here)} left" if here > 0 else ""
            )
            parts = [
                self.title,
                *filter(None, [busy.calls.model.partition("?")[0]]),
                "█" * full + "░" * (WIDE - full),
            ]
            return clean(" · ".join([*parts, self._count(), f"{self.clock()}{left}"]))
        if time.monotonic() - self.line_at < self.pause:
            return ""
        self.line_at, self.pause = time.monotonic(), min(2 * self.pause, LONGEST)
        return f"  {_answered()} ({self.clock()})"

    def _count(self) -> str:
        """Progress in calls; in samples where the number of calls is unknown."""
        done, whole = self._far()
        if self._by_calls():
            return f"call {done:,} of {max(whole, done):,}"
        return f"{done} of {whole} samples" if self.done or not busy.calls.answered else _answered()

    def clock(self) -> str:
        """Minutes and seconds since the wave began."""
        return _clock(time.monotonic() - self.started)

    def _by_calls(self) -> bool:
        return bool(busy.calls.expected and busy.calls.answered)

    def _far(self) -> tuple[int, int]:
        """Number that is done, and of how many: calls of the command, or samples of the wave."""
        by_calls = (busy.calls.answered, busy.calls.expected) if self._by_calls() else None
        return by_calls or (len(self.done), sum(self.samples.values()))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def _answered() -> str:
    return f"{busy.calls.answered:,} calls answered, {busy.calls.tokens:,} tokens"
