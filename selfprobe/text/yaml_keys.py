"""YAML as it is read everywhere: a key that occurs twice is an error, and so is what nests too deep.

YAML's own readers take the last of two equal keys without a word, and end in a RecursionError.
"""

from typing import Any

import yaml

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
    yaml.YAMLError: a is there twice, in lines 1 and 3: give it once
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
