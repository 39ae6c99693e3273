"""Errors in the user's input and failed runs, as opposed to bugs; `selfprobe.cli` turns each into a
line.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache

from inspect_ai._util.error import PrerequisiteError
from rich.errors import MarkupError
from rich.markup import escape, render

from selfprobe.text.safe import clean, masked

LONGEST_OWN_MESSAGE = 2000
"""Largest number of characters of our own messages, which name files and what there is."""

LONGEST_MESSAGE = 300
"""Largest number of characters of a library's message that are shown."""


class InputError(PrerequisiteError, ValueError):
    """A wrong argument or file. `inspect eval` prints the message alone, without a traceback.

    The message says what was expected, what came and what to do.
    """

    def __init__(self, message: str) -> None:
        super().__init__(escape(message))  # Inspect prints with rich, to which [name] is a style

    exit_status = 2
    """Status of a command that ends with it."""


class IncomparableError(InputError):
    """What a gate would ask cannot be compared with its baseline."""

    exit_status = 3
    """Status of `selfprobe check` for what is not the baseline's."""


class RunError(Exception):
    """Runs failed, or cells are missing: nothing about the command was wrong."""


class Interrupted(KeyboardInterrupt):
    """The user stopped a run; the message says what is done and how to go on."""


NO_RUN_ENDED_WELL = "no run ended well; see above. The same command goes on"


class NoLogs(InputError):
    """Files and folders hold no log of a study: a report leaves the study out."""

    def __init__(self, message: str, ignored: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.ignored = dict(ignored or {})
        """Log → why it is none, where that is known for each."""


@cache
def warn_once(text: str) -> None:
    """Print a warning, the first time in this process."""
    logging.getLogger(__name__).warning(clean(text))


@contextmanager
def as_input_errors() -> Iterator[None]:
    """A block in which a library's error about an argument or file is an `InputError`; for code
    without Inspect.
    """
    try:
        yield
    except InputError:
        raise
    except (ValueError, OSError, ImportError) as error:
        raise InputError(one_line(error)) from error


def one_line(error: BaseException | str, *, longest: int = LONGEST_MESSAGE) -> str:
    """Text of an error on one line, or the error's kind if it has none.

    Without rich's styles, without secrets, and without control characters, which a terminal would
    obey.

    Args:
        error: An error, or the text of one.
        longest: Number of characters; the rest is cut off, since a library's message may have many.
    """
    text = str(error)
    if isinstance(error, InputError):
        longest = max(longest, LONGEST_OWN_MESSAGE)
    elif isinstance(error, PrerequisiteError):
        with suppress(MarkupError):  # a message of another package that was not meant for rich
            text = render(text, emoji=False).plain
    # Masked before it is cut: a cut would hide the form of a secret.
    text = masked(" ".join(text.split())).removeprefix("ERROR: ")
    text = text or type(error).__name__
    visible = ""
    for character in text:
        visible += character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
    return visible if len(visible) <= longest else f"{visible[: longest - 1]}…"
