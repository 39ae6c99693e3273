"""What is said when the input is at fault, not the program."""

from collections.abc import Iterator
from contextlib import contextmanager

from inspect_ai._util.error import PrerequisiteError
from rich.markup import escape


class InputError(PrerequisiteError, ValueError):
    """A wrong argument or file. `inspect eval` prints the message alone, without a traceback.

    The message says what was expected, what came and what to do.
    """

    def __init__(self, message: str) -> None:
        super().__init__(escape(message))  # Inspect prints with rich, to which [name] is a style


class NoLogs(InputError):
    """Files and folders hold no log of a study: a report leaves the study out."""


@contextmanager
def as_input_errors() -> Iterator[None]:
    """What a library says of a wrong argument or file, as an `InputError`; for code that knows nothing of Inspect."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, OSError, ImportError) as error:
        raise InputError(str(error)) from error
