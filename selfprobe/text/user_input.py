"""What users type: names that are not known, files that are not there or never end, and YAML.

In YAML a key that occurs twice is an error, and so is what nests too deep, is too large, or is made
large by aliases: YAML's own readers take the last of two equal keys without a word, end in a
RecursionError, and take minutes. Imports nothing of Inspect.
"""

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

FILE = re.compile(r"(?i)\.{0,2}/.*|.*\.(jsonl?|csv|tsv|parquet|ya?ml|eval|txt)")
"""Texts that can only be the path of a file: no bundled set and no address has such a name."""


def unknown_names_fault(names: Iterable[str], known_names: Collection[str]) -> str:
    """The end of a message about names that are not known, with the nearest known ones; "" where
    all are known.

    >>> unknown_names_fault(["kk", "dataset"], ["k", "dataset"])
    'kk; did you mean k?'
    """
    unknown_names = [name for name in names if name not in known_names]
    if not unknown_names:
        return ""
    nearest_names: list[str] = []
    for name in unknown_names:
        nearest_names += get_close_matches(name, list(known_names), n=1)
    if nearest_names:
        remedy = f"did you mean {' or '.join(nearest_names)}?"
    else:
        remedy = f"there are {', '.join(known_names)}"
    return f"{' or '.join(unknown_names)}; {remedy}"


def nearest_name_hint(name: object, known_names: Iterable[str]) -> str:
    """The end of a message about an unknown name: "; did you mean …?" where a known name is close,
    else nothing.

    >>> nearest_name_hint("acces", ["access", "common"])
    '; did you mean access?'
    """
    nearest_names = get_close_matches(str(name).lower(), list(known_names), n=1)
    return f"; did you mean {nearest_names[0]}?" if nearest_names else ""


def places_of(path: str) -> list[Path]:
    """Places where a path of the user may lie: the folder that the command was called from, or the
    current one.
    """
    calling_folder = Path(os.environ.get("PWD", "."))
    return list(dict.fromkeys((calling_folder / path, Path.cwd() / path)))


def nowhere(path: str) -> str:
    """Message that a file or folder does not exist, with the places looked in; "" if it exists.

    >>> nowhere("/")
    ''
    """
    places = places_of(path)
    if any(map(is_there, places)):
        return ""
    if len(path) > LONGEST_PATH:
        return (
            f"no file or folder {path[:40]!r} …: a path has at most {LONGEST_PATH:,} "
            f"characters, got {len(path):,}"
        )
    return f"no file or folder {path!r}; looked at {', '.join(map(str, places))}"


LONGEST_PATH = 4000


def is_there(place: Path) -> bool:
    """True if something is at a place; False also for a text that is no path (too long, with a
    NUL).
    """
    try:
        return place.exists()
    except (OSError, ValueError):
        return False


OTHER_THAN_FILES: dict[str, Callable[[int], bool]] = {
    "is a pipe": stat.S_ISFIFO,
    "is a socket": stat.S_ISSOCK,
    "is a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
}


def not_plain(path: str) -> str:
    """The end of a message about what is at a path and is no plain file, which may never end; ""
    for files, folders and where nothing is.

    >>> not_plain("/dev/null")
    'is a device; expected a plain file, so copy what it holds into one'
    """
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):  # it is not there, hidden, or no path: opening it says so
        return ""
    remedy = "expected a plain file, so copy what it holds into one"
    for kind, is_of_kind in OTHER_THAN_FILES.items():
        if is_of_kind(mode):
            return f"{kind}; {remedy}"
    if str(Path(path).resolve()).startswith(("/proc/", "/sys/")) and not stat.S_ISDIR(mode):
        return f"is a file of the system; {remedy}"
    return ""


def names(text: str | None) -> list[str]:
    """The one split of a list of names: `"a, b,"` is `["a", "b"]`."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


TOO_DEEP = "nests lists and objects too deep to be read"
"""Reason for YAML or JSON that Python's readers give up on."""


LARGEST_YAML_BYTES = 300_000
"""Bytes of a YAML file, at most: Python reads about 100,000 a second."""
MOST_NODES = 100_000
"""Largest number of texts, lists and mappings of a YAML text, each alias counted as what it stands
for.
"""


def loaded_file(path: str, loader: type[Any] = yaml.SafeLoader) -> Any:
    """The content of a YAML file.

    Raises:
        yaml.YAMLError: It is no plain file, too large, not UTF-8, or as `loaded` says.
        OSError: It cannot be read.
    """
    if reason := not_plain(path):
        raise yaml.YAMLError(f"it {reason}")
    with Path(path).open("rb") as file:
        content = file.read(LARGEST_YAML_BYTES + 1)
    if len(content) > LARGEST_YAML_BYTES:
        raise yaml.YAMLError(
            f"it has more than {LARGEST_YAML_BYTES:,} bytes, which is no file of options or "
            f"questions"
        )
    try:
        text = content.decode("utf-16" if content.startswith(UTF_16_MARKS) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise yaml.YAMLError(
            f"it is not UTF-8 ({error.reason} at byte {error.start:,}); save it as UTF-8"
        ) from None
    return loaded(text, loader)


UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""Bytes that begin a text in UTF-16."""


def loaded(text: str, loader: type[Any] = yaml.SafeLoader) -> Any:
    """The content of a YAML text.

    Raises:
        yaml.YAMLError: It is none, gives a key twice, nests too deep, is too large with its aliases,
            or has a value that is none of its type (a number of 5,000 digits, the 45th of a month).
    """
    try:
        refuse_twice(text)
        return yaml.load(
            text, Loader=loader
        )  # inspect-evals-lint: ignore[host_code_execution] -- a file of the user
    except RecursionError:
        raise yaml.YAMLError(f"it {TOO_DEEP}") from None
    except (
        ValueError,
        OverflowError,
        AttributeError,
        LookupError,
        TypeError,
    ) as error:  # of YAML's constructors
        raise yaml.YAMLError(
            f"a value is none of its type ({error}); write it as a text in quotes"
        ) from None


def refuse_twice(text: str) -> None:
    """YAMLError where a mapping has one key twice, with both lines; what a document is otherwise
    does not matter.

    So it is where aliases stand for more than `MOST_NODES` nodes: a few lines of them may stand for
    millions, and print as such.

    >>> refuse_twice("a: 1\\nb: {a: 2}\\n")
    >>> refuse_twice("a: 1\\nb: 2\\na: 3\\n")
    Traceback (most recent call last):
    yaml.error.YAMLError: a is there twice, in lines 1 and 3: give it once
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    pending_nodes = [root]
    seen_nodes = set[int]()
    while pending_nodes:
        node = pending_nodes.pop()
        if id(node) in seen_nodes or not isinstance(node, yaml.CollectionNode):
            continue
        seen_nodes.add(id(node))  # an alias is its anchor, which may hold itself
        if isinstance(node, yaml.MappingNode):
            _refuse_key_twice(node)
        pending_nodes += _children(node)
    if root is not None and _node_count(root, {}) > MOST_NODES:
        raise yaml.YAMLError(
            f"its aliases (*name) stand for more than {MOST_NODES:,} values; write it without them"
        )


def _refuse_key_twice(node: yaml.MappingNode) -> None:
    line_of_key: dict[tuple[str, str], int] = {}
    for key_node, _ in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            continue
        key = (key_node.tag, key_node.value)
        line = key_node.start_mark.line + 1
        if key in line_of_key:
            raise yaml.YAMLError(
                f"{key_node.value} is there twice, in lines {line_of_key[key]} and {line}: "
                "give it once"
            )
        line_of_key[key] = line


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [value for _, value in node.value]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _node_count(node: yaml.Node, counts: dict[int, int]) -> int:
    """Number of nodes at and below one, with each alias counted as what it stands for, but one in
    itself as one.
    """
    if id(node) not in counts:
        counts[id(node)] = 1  # while it is counted
        counts[id(node)] = 1 + sum(_node_count(child, counts) for child in _children(node))
    return counts[id(node)]
