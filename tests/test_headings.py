"""Every heading over numbers on a page says what they are where a reader points at it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trees import parsed

ROOT = Path(__file__).parent.parent / "selfprobe"
NAMED = {"run", "taken out", "hole", "why"}
"""Headings over names and reasons."""


def columns_over_numbers() -> Iterator[tuple[str, str, ast.expr | None]]:
    """Module, heading and help of each column that is written out and shown as a number or an
    estimate.
    """
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(parsed(path)):
            if (
                not isinstance(node, ast.Call)
                or not isinstance(node.func, ast.Name)
                or not node.args
            ):
                continue
            title = node.args[0]
            if node.func.id not in ("Column", "estimated") or not isinstance(title, ast.Constant):
                continue
            keywords = {keyword.arg: keyword.value for keyword in node.keywords}
            is_number = node.func.id == "estimated" or len(node.args) > 2 or "look" in keywords
            if is_number:
                yield path.name, str(title.value), keywords.get("help")


def headings_of_rows() -> Iterator[tuple[str, ast.Call]]:
    """Module and each heading that is a field's annotation."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(parsed(path)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "Heading"
            ):
                yield path.name, node


COLUMNS = list(columns_over_numbers())


@pytest.mark.parametrize(
    ("module", "title"), sorted({(module, title) for module, title, _ in COLUMNS})
)
def test_a_heading_over_numbers_is_explained(module: str, title: str) -> None:
    helps = [
        help_text for name, heading, help_text in COLUMNS if (name, heading) == (module, title)
    ]
    assert title in NAMED or None not in helps, f"{module}: {title!r} has no help"


def test_the_help_of_a_row_is_a_sentence() -> None:
    for module, heading in headings_of_rows():
        help_text = heading.args[1]
        if isinstance(help_text, ast.Constant):
            assert str(help_text.value).endswith((".", "]")), f"{module}: {help_text.value}"
