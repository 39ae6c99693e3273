"""What an argument may be; a wrong one is refused in one line that names it, what it must be and what came."""

from collections.abc import Iterable
from difflib import get_close_matches


def meant(given: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: "; did you mean …?" where a known name is close, else nothing.

    >>> meant("acces", ["access", "common"])
    '; did you mean access?'
    """
    close = get_close_matches(str(given).lower(), list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
