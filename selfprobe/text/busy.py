"""A line that moves while something without progress of its own is worked on, such as a report.

with status_line():
    set_stage("kth_word: statistics")
"""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LINE_PAUSE_SECONDS = 10.0
"""Longest silence in seconds, where no line can be overwritten."""
REDRAW_SECONDS = 1.0
"""Seconds between two states of the line on a terminal."""

_current_stage = [""]


@dataclass
class Calls:
    """The calls of this process's command."""

    expected: int = 0
    """Number of calls in the command's plan; 0 without a plan."""
    answered: int = 0
    tokens: int = 0
    """Tokens of the calls' prompts and replies."""
    model: str = ""
    """The model that answered last."""
    dollar_limit: float | None = None
    """Dollars at which the command stops."""
    spent_dollars: float = 0.0
    """Dollars spent on calls whose price is known."""

    @property
    def is_over(self) -> bool:
        """True if the dollars are spent."""
        return self.dollar_limit is not None and self.spent_dollars >= self.dollar_limit

    def note(self, model: str, tokens: int, dollars: float) -> None:
        """A call is answered; the one that reaches the limit ends the command as Ctrl-C does."""
        was_over = self.is_over
        self.answered += 1
        self.tokens += tokens
        self.model = model
        self.spent_dollars += dollars
        if self.is_over and not was_over:
            signal.raise_signal(signal.SIGINT)


calls = Calls()


def set_stage(stage: str) -> None:
    """Set what is being worked on."""
    _current_stage[0] = stage


def _stage_line(is_terminal: bool, seconds: float) -> str:
    return f"{_current_stage[0] or 'reading logs'} ({seconds:.0f} s)"


@contextmanager
def status_line(line_of: Callable[[bool, float], str] = _stage_line) -> Iterator[None]:
    """A block that reports on stderr what it works on, and for how long: on a terminal in one line,
    else line by line.

    Args:
        line_of: (whether it is a terminal, seconds since the block began) → text of the line; ""
            prints none.
    """
    is_done = threading.Event()
    is_drawn = threading.Event()
    start_time = time.monotonic()
    stream = sys.stderr  # Inspect puts another in its place
    is_terminal = stream.isatty()
    pause_seconds = REDRAW_SECONDS if is_terminal else LINE_PAUSE_SECONDS

    def print_lines() -> None:
        while not is_done.wait(pause_seconds):
            text = line_of(is_terminal, time.monotonic() - start_time)
            if text:
                stream.write(f"\r\x1b[K{_cut(text)}\r" if is_terminal else f"{text}\n")
                stream.flush()
                is_drawn.set()

    thread = threading.Thread(target=print_lines, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()
        set_stage("")
        if is_terminal and is_drawn.is_set():
            stream.write("\r\x1b[K")
            stream.flush()


def _cut(text: str) -> str:
    """A line that a terminal does not wrap, its bar in colour unless NO_COLOR is set."""
    text = text[: shutil.get_terminal_size((100, 30)).columns - 1]
    return text if os.environ.get("NO_COLOR") else text.replace("█", "\x1b[32m█\x1b[0m")
