"""What is said when the input is at fault, or a run, and not the program; `selfprobe.cli` turns each into a line."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from inspect_ai._util.error import PrerequisiteError
from rich.errors import MarkupError
from rich.markup import escape, render

__all__ = ["InputError", "Interrupted", "PrerequisiteError", "RunError", "as_input_errors", "one_line"]


class InputError(PrerequisiteError, ValueError):
    """A wrong argument or file. `inspect eval` prints the message alone, without a traceback.

    The message says what was expected, what came and what to do.
    """

    def __init__(self, message: str) -> None:
        super().__init__(escape(message))  # Inspect prints with rich, to which [name] is a style


class RunError(Exception):
    """Runs failed, or cells are missing: nothing about the command was wrong."""


class Interrupted(KeyboardInterrupt):
    """The user stopped a run; the message says what is done and how to go on."""


def one_line(error: BaseException) -> str:
    """An error's message without rich's styles, line breaks and control characters."""
    said = str(error)
    if isinstance(error, PrerequisiteError):
        with suppress(MarkupError):  # a message of another package that was not meant for rich
            said = render(said, emoji=False).plain
    said = " ".join(said.split()).removeprefix("ERROR: ")
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in said)


@contextmanager
def as_input_errors() -> Iterator[None]:
    """What a library says of a wrong argument or file, as an `InputError`; for code that knows nothing of Inspect."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, OSError, ImportError) as error:
        raise InputError(str(error)) from error
