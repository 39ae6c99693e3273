"""The examples in docstrings give what they say."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted(
    path.relative_to(ROOT)
    for folder in (
        "selfprobe",
        "solvers",
        "scorers",
        "introspect_tasks",
        "evalawareness_tasks",
        "building",
    )
    for path in (ROOT / folder).rglob("*.py")
    if ">>>" in path.read_text()
)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_the_examples_of_a_module_give_what_they_say(file: Path) -> None:
    parts = [part for part in file.with_suffix("").parts if part != "__init__"]
    module = import_module(".".join(parts if parts[0] == "selfprobe" else ["selfprobe", *parts]))
    assert doctest.testmod(module).failed == 0
