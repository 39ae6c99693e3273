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
        raise InputError(one_line(error)) from error


def one_line(error: BaseException) -> str:
    """What an error says, on one line of at most 300 characters (a library's may have many); its kind if nothing."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:299]}…"
