"""What users type: names that are not known, files that are not there, and YAML. Imports nothing of Inspect.

In YAML a key that occurs twice is an error, and so is what nests too deep: YAML's own readers take the last of two
equal keys without a word, and end in a RecursionError.
"""

import os
import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

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


TOO_DEEP = "nests lists and objects too deep to be read"
"""Reason for YAML or JSON that Python's readers give up on."""


def loaded(text: str, loader: type[Any] = yaml.SafeLoader) -> Any:
    """The content of a YAML text.

    Raises:
        yaml.YAMLError: It is none, gives a key twice, or nests too deep.
    """
    try:
        refuse_twice(text)
        return yaml.load(text, Loader=loader)  # inspect-evals-lint: ignore[host_code_execution] -- a file of the user
    except RecursionError:
        raise yaml.YAMLError(f"it {TOO_DEEP}") from None


def refuse_twice(text: str) -> None:
    """YAMLError where a mapping has one key twice, with both lines; what a document is otherwise does not matter.

    >>> refuse_twice("a: 1\\nb: {a: 2}\\n")
    >>> refuse_twice("a: 1\\nb: 2\\na: 3\\n")
    Traceback (most recent call last):
    yaml.error.YAMLError: a is there twice, in lines 1 and 3: give it once
    """
    left, seen = [yaml.compose(text, Loader=yaml.SafeLoader)], set[int]()
    while left:
        node = left.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))  # an alias is its anchor, which may hold itself
        if isinstance(node, yaml.MappingNode):
            _refuse(node)
            left += [value for _, value in node.value]
        else:
            left += node.value


def _refuse(node: yaml.MappingNode) -> None:
    lines: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        name, line = (key.tag, key.value), key.start_mark.line + 1
        if name in lines:
            raise yaml.YAMLError(f"{key.value} is there twice, in lines {lines[name]} and {line}: give it once")
        lines[name] = line
