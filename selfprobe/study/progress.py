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
from selfprobe.text.counts import count_text
from selfprobe.text.safe import clean, echo

BAR_SIGNS = 20
LONGEST_SILENCE_SECONDS = 60.0
"""Largest number of seconds between two lines in a pipe."""

Key = tuple[int, str | int, int]
"""A sample of a wave: the number of its run, its id, its epoch."""


def sample_count(tasks: Sequence[Task], limit: int | None) -> int:
    """Number of samples that the runs are to have."""
    most_items = limit or sys.maxsize
    return sum(min(len(task.dataset), most_items) * (task.epochs or 1) for task in tasks)


def watch(tasks: Sequence[Task], note_sample: Callable[[Key], None]) -> None:
    """Have a function called for each sample that gets scores; one that failed or was cut off has
    none.
    """
    number_by_task = {id(task): number for number, task in enumerate(tasks)}

    def note_scored(task: Task, state: TaskState) -> None:
        note_sample((number_by_task[id(task)], state.sample_id, state.epoch))

    on_scored(tasks, note_scored)


def on_scored(tasks: Sequence[Task], note_scored: Callable[[Task, TaskState], None]) -> None:
    """Have a function called with task and state of each sample that gets scores, after the task's
    own cleanup.
    """
    for task in tasks:
        _on_scored(task, note_scored)


def _on_scored(task: Task, note_scored: Callable[[Task, TaskState], None]) -> None:
    task_cleanup = task.cleanup

    async def cleanup(state: TaskState) -> None:
        if task_cleanup is not None:
            await task_cleanup(state)
        if state.scores:
            note_scored(task, state)

    task_with(task, cleanup=cleanup)


class Progress:
    """The lines of one wave, of all its processes."""

    def __init__(self, title: str, runs: int) -> None:
        self.title = title
        self.runs = runs
        self.start_time = time.monotonic()
        self.samples: dict[int, int] = {}
        """Number of the share → its samples; a share is the part of a wave that one process runs.
        """
        self.done = set[tuple[int, Key]]()
        self.is_announced = False
        self.is_terminal = sys.stderr.isatty()
        self.line_time = self.start_time
        """Time at which the last line was printed."""
        self.pause_seconds = busy.LINE_PAUSE_SECONDS
        """Seconds from that line to the next one, unless a tenth is done before."""
        self.earlier_calls = busy.calls.answered
        """Number of calls of earlier waves."""
        self.printed_tenths = 10 * self.earlier_calls // max(busy.calls.expected, 1)

    def announce(self) -> None:
        """Print the heading, once."""
        if self.is_announced:
            return
        self.is_announced = True
        counts = count_text(self.runs, "run")
        if self.samples:
            counts += f", {count_text(sum(self.samples.values()), 'sample')}"
        echo(f"{self.title}: {counts}; what is finished is not asked again", err=True)

    def note(self, share: int, key: Key) -> None:
        """Count a sample that is done."""
        self.done.add((share, key))
        done_count, whole_count = self._done_and_whole()
        tenths = 10 * done_count // max(whole_count, 1)
        is_end = len(self.done) >= sum(self.samples.values())  # which is said elsewhere
        if tenths > self.printed_tenths and not is_end and not self.is_terminal:
            self.line_time = time.monotonic()
            self.pause_seconds = busy.LINE_PAUSE_SECONDS
            self.printed_tenths = tenths
            echo(f"  {self._count()} ({self.clock()})", err=True)

    def line(self, terminal: bool, seconds: float) -> str:
        """Line for `busy.status_line`: on a terminal all; in a pipe, after a silence, the calls
        that were answered.
        """
        if terminal:
            return self._terminal_line(seconds)
        if time.monotonic() - self.line_time < self.pause_seconds:
            return ""
        self.line_time = time.monotonic()
        self.pause_seconds = min(2 * self.pause_seconds, LONGEST_SILENCE_SECONDS)
        return f"  {_answered()} ({self.clock()})"

    def _terminal_line(self, seconds: float) -> str:
        done_count, whole_count = self._done_and_whole()
        wave_count = done_count - self.earlier_calls if self._counts_calls() else done_count
        clock = self.clock()
        if wave_count > 0:
            remaining_count = max(whole_count - done_count, 0)
            clock += f", about {_clock(seconds * remaining_count / wave_count)} left"

        full_signs = BAR_SIGNS * min(done_count, whole_count) // max(whole_count, 1)
        bar = "█" * full_signs + "░" * (BAR_SIGNS - full_signs)
        model = busy.calls.model.partition("?")[0]
        parts = [self.title, model, bar, self._count(), clock]
        return clean(" · ".join(filter(None, parts)))

    def _count(self) -> str:
        """Progress in calls; in samples where the number of calls is unknown."""
        done_count, whole_count = self._done_and_whole()
        if self._counts_calls():
            return f"call {done_count:,} of {max(whole_count, done_count):,}"
        if self.done or not busy.calls.answered:
            return f"{done_count} of {whole_count} samples"
        return _answered()

    def clock(self) -> str:
        """Minutes and seconds since the wave began."""
        return _clock(time.monotonic() - self.start_time)

    def _counts_calls(self) -> bool:
        return bool(busy.calls.expected and busy.calls.answered)

    def _done_and_whole(self) -> tuple[int, int]:
        """Number that is done, and of how many: calls of the command, or samples of the wave."""
        if self._counts_calls():
            return busy.calls.answered, busy.calls.expected
        return len(self.done), sum(self.samples.values())


def _clock(seconds: float) -> str:
    minutes, remaining_seconds = divmod(round(seconds), 60)
    return f"{minutes}:{remaining_seconds:02}"


def _answered() -> str:
    return f"{busy.calls.answered:,} calls answered, {busy.calls.tokens:,} tokens"
