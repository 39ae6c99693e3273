"""Dotted names in backticks, such as `Record.answers` and `logs.runs`, are of something that is there."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tests import legible

DOTTED_NAME = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)`")
FILE_ENDINGS = {"json", "py", "toml"}
FOREIGN_NAMES = {"model.model.layers", "ModelOutput.metadata"}
"""Names of other programs."""


@lru_cache
def top_level_names() -> dict[str, set[str]]:
    """Module, as `selfprobe.a.b` or `solvers.a` → names that it defines."""
    names_by_module = {}
    for path in legible.product_files():
        parts = Path(legible.relative(path)).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        names = set()
        for node in ast.walk(legible.parsed(path)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.ImportFrom):
                names |= {alias.asname or alias.name for alias in node.names}
        names_by_module[module] = names
    return names_by_module


@lru_cache
def attribute_names() -> dict[str, set[str]]:
    """Class → its attributes and those of its bases."""
    own_names = defaultdict[str, set[str]](set)
    base_names = defaultdict[str, set[str]](set)
    for path in legible.product_files():
        for node in ast.walk(legible.parsed(path)):
            if not isinstance(node, ast.ClassDef):
                continue
            base_names[node.name] |= {ast.unparse(base).split(".")[-1] for base in node.bases}
            for part in ast.walk(node):
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    own_names[node.name].add(part.name)
                elif isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Store):
                    name = part.id if isinstance(part, ast.Name) else part.attr
                    own_names[node.name].add(name)

    def all_names(class_name: str) -> set[str]:
        names = set(own_names[class_name])
        for base in base_names[class_name] - {class_name}:
            names |= all_names(base)
        return names

    return {class_name: all_names(class_name) for class_name in list(own_names)}


def is_there(dotted_name: str) -> bool:
    """Whether a class has such an attribute, or a module such a name; what begins with a variable is
    an attribute of any class.
    """
    *parents, name = dotted_name.split(".")
    attributes_of = attribute_names()
    if parents[-1] in attributes_of:
        return name in attributes_of[parents[-1]]
    if any(module.endswith(dotted_name) for module in top_level_names()):
        return True
    place = "." + ".".join(parents)
    module_names = [
        names for module, names in top_level_names().items() if f".{module}".endswith(place)
    ]
    if any(name in names for names in module_names):
        return True
    is_variable = len(parents) == 1
    return is_variable and any(name in names for names in attributes_of.values())


def dangling_references() -> Iterator[str]:
    for path in legible.product_files():
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            for dotted_name in DOTTED_NAME.findall(line):
                is_file = dotted_name.split(".")[-1] in FILE_ENDINGS
                if not is_file and dotted_name not in FOREIGN_NAMES and not is_there(dotted_name):
                    yield f"{legible.relative(path)}:{number}: {dotted_name}"


def test_what_docstrings_refer_to_is_there() -> None:
    assert not list(dangling_references())
