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

EVERY = 10.0
"""Longest silence in seconds, where no line can be overwritten."""
TICK = 1.0
"""Seconds between two states of the line on a terminal."""

_now = [""]


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
    most: float | None = None
    """Dollars at which the command stops."""
    spent: float = 0.0
    """Dollars spent on calls whose price is known."""

    @property
    def over(self) -> bool:
        """True if the dollars are spent."""
        return self.most is not None and self.spent >= self.most

    def note(self, model: str, tokens: int, dollars: float) -> None:
        """A call is answered; the one that reaches the limit ends the command as Ctrl-C does."""
        was_over = self.over
        self.answered, self.tokens, self.model = self.answered + 1, self.tokens + tokens, model
        self.spent += dollars
        if self.over and not was_over:
            signal.raise_signal(signal.SIGINT)


calls = Calls()


def set_stage(stage: str) -> None:
    """Set what is being worked on."""
    _now[0] = stage


def _stage(terminal: bool, seconds: float) -> str:
    return f"{_now[0] or 'reading logs'} ({seconds:.0f} s)"


@contextmanager
def status_line(line: Callable[[bool, float], str] = _stage) -> Iterator[None]:
    """A block that reports on stderr what it works on, and for how long: on a terminal in one line,
    else line by line.

    Args:
        line: (whether it is a terminal, seconds since the block began) → text of the line; ""
            prints none.
    """
    done, began, stream = (
        threading.Event(),
        time.monotonic(),
        sys.stderr,
    )  # Inspect puts another in its place
    terminal = stream.isatty()

    drawn = threading.Event()

    def tell() -> None:
        while not done.wait(TICK if terminal else EVERY):
            if text := line(terminal, time.monotonic() - began):
                stream.write(f"\r\x1b[K{_cut(text)}\r" if terminal else f"{text}\n")
                stream.flush()
                drawn.set()

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        set_stage("")
        if terminal and drawn.is_set():
            stream.write("\r\x1b[K")
            stream.flush()


def _cut(text: str) -> str:
    """A line that a terminal does not wrap, its bar in colour unless NO_COLOR is set."""
    text = text[: shutil.get_terminal_size((100, 30)).columns - 1]
    return text if os.environ.get("NO_COLOR") else text.replace("█", "\x1b[32m█\x1b[0m")
