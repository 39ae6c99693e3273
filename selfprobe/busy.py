"""A line that moves while something is worked on that has no progress of its own, such as a report.

with shown():
    at("kth_word: statistics")
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

EVERY = 10.0
"""Seconds of silence, at most, where no line can be overwritten."""
TICK = 1.0
"""Seconds between two states of the line on a terminal."""

_now = [""]


def at(stage: str) -> None:
    """Say what is worked on."""
    _now[0] = stage


@contextmanager
def shown() -> Iterator[None]:
    """A block that says on stderr what it works on, and for how long: on a terminal in one line, else line by line."""
    done, began, terminal = threading.Event(), time.monotonic(), sys.stderr.isatty()

    def tell() -> None:
        while not done.wait(TICK if terminal else EVERY):
            line = f"{_now[0] or 'reading logs'} ({time.monotonic() - began:.0f} s)"
            sys.stderr.write(f"\r\x1b[K{line}" if terminal else f"{line}\n")
            sys.stderr.flush()

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        at("")
        if terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
