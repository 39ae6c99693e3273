"""Progress of a wave, in place of Inspect's own display.

A terminal shows one line that moves; a pipe gets a line each time another tenth is done, and after
a silence. All say the same: "call 523 of 3,300, about 8 min left".
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

    def __init__(self, title: str, runs: int, first_model: str = "") -> None:
        self.title = title
        self.runs = runs
        self.first_model = first_model
        """The model that is opened first; it may take a while until it replies."""
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
            echo(f"  {self._state(self.line_time - self.start_time)}", err=True)

    def line(self, terminal: bool, seconds: float) -> str:
        """Line for `busy.status_line`: on a terminal at once; in a pipe after a silence."""
        if terminal:
            parts = [self.title, self._bar(), self._state(seconds)]
            return clean(" · ".join(filter(None, parts)))
        if time.monotonic() - self.line_time < self.pause_seconds:
            return ""
        self.line_time = time.monotonic()
        self.pause_seconds = min(2 * self.pause_seconds, LONGEST_SILENCE_SECONDS)
        return f"  {self._state(seconds)}"

    def _bar(self) -> str:
        done_count, whole_count = self._done_and_whole()
        full_signs = BAR_SIGNS * min(done_count, whole_count) // max(whole_count, 1)
        return "█" * full_signs + "░" * (BAR_SIGNS - full_signs)

    def _state(self, seconds: float) -> str:
        """What every line says, such as `call 523 of 3,300, about 8 min left`.

        Args:
            seconds: Seconds since the wave began.
        """
        done_count, whole_count = self._done_and_whole()
        if not done_count and not busy.calls.answered:
            return f"starting {self.first_model}" if self.first_model else "starting"
        if self._counts_calls() and done_count >= whole_count:
            return "all calls are answered; scoring"

        noun = "call" if self._counts_calls() else "sample"
        wave_count = done_count - self.earlier_calls if self._counts_calls() else done_count
        text = f"{noun} {done_count:,} of {whole_count:,}"
        if wave_count <= 0:
            return text
        remaining_seconds = seconds * max(whole_count - done_count, 0) / wave_count
        return f"{text}, about {_duration(remaining_seconds)} left"

    def clock(self) -> str:
        """Minutes and seconds since the wave began."""
        minutes, seconds = divmod(round(time.monotonic() - self.start_time), 60)
        return f"{minutes}:{seconds:02}"

    def _counts_calls(self) -> bool:
        return bool(busy.calls.expected and busy.calls.answered)

    def _done_and_whole(self) -> tuple[int, int]:
        """Number that is done, and of how many: calls of the command, or samples of the wave."""
        if self._counts_calls():
            return busy.calls.answered, busy.calls.expected
        return len(self.done), sum(self.samples.values())


def _duration(seconds: float) -> str:
    """A time that is left, as one says it.

    >>> _duration(41), _duration(470), _duration(7300)
    ('40 s', '8 min', '2.0 h')
    """
    if seconds < 90:
        return f"{max(round(seconds, -1), 10):.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
