"""Names that are not known and files that are not there, in a line each. Imports nothing of Inspect."""

import os
import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import Path

FILE = re.compile(r"(?i)\.{0,2}/.*|.*\.(jsonl?|csv|tsv|parquet|ya?ml|eval|txt)")
"""Texts that can only be the path of a file: no bundled set and no address has such a name."""


def unknown(names: Iterable[str], known: Collection[str]) -> str:
    """The end of a message about names that are not known, with the nearest known ones; "" where all are known.

    >>> unknown(["kk", "dataset"], ["k", "dataset"])
    'kk; did you mean k?'
    """
    wrong = [name for name in names if name not in known]
    near = [close[0] for name in wrong if (close := get_close_matches(name, list(known), n=1))]
    remedy = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    return f"{' or '.join(wrong)}; {remedy}" if wrong else ""


def meant(name: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: "; did you mean …?" where a known name is close, else nothing.

    >>> meant("acces", ["access", "common"])
    '; did you mean access?'
    """
    close = get_close_matches(str(name).lower(), list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def places_of(path: str) -> list[Path]:
    """Places where a path of the user may lie: the folder that the command was called from, or the current one."""
    return list(dict.fromkeys(Path(folder) / path for folder in (os.environ.get("PWD", "."), Path.cwd())))


def nowhere(path: str) -> str:
    """Message that a file or folder does not exist, with the places looked in; "" if it exists.

    >>> nowhere("/")
    ''
    """
    places = places_of(path)
    looked = ", ".join(map(str, places))
    return "" if any(place.exists() for place in places) else f"no file or folder {path!r}; looked at {looked}"


def names(text: str | None) -> list[str]:
    """The one split of a list of names: `"a, b,"` is `["a", "b"]`."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]
