"""A key that a YAML file gives twice: YAML's readers take the last one and drop the other without a word."""

from typing import Any

import yaml


def loaded(text: str, loader: type[Any] = yaml.SafeLoader) -> Any:
    """What the text says in YAML.

    Raises:
        yaml.YAMLError: It is none, or gives a key twice.
    """
    refuse_twice(text)
    return yaml.load(text, Loader=loader)


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
