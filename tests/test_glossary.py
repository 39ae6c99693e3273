"""Every heading over numbers on a page says what they are where a reader points at it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from selfprobe.page import GLOSSARY, meaning_of

ROOT = Path(__file__).parent.parent / "selfprobe"
NAMED = {"run", "taken out", "hole", "why"}
"""Headings over names and reasons."""


def headings() -> Iterator[tuple[str, str]]:
    """Module and heading of each column that is written out and shown as a number or an estimate."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="estimated"), args=[ast.Constant(value=str(title)), *_]):
                    yield path.name, title
                case ast.Call(func=ast.Name(id="Column"), args=[ast.Constant(value=str(title)), _, _, *_]):
                    yield path.name, title
                case ast.Call(func=ast.Name(id="Column"), args=[ast.Constant(value=str(title)), *_], keywords=[*more]):
                    if any(each.arg == "look" for each in more):
                        yield path.name, title


@pytest.mark.parametrize(("module", "title"), sorted(set(headings())))
def test_a_heading_over_numbers_is_explained(module: str, title: str) -> None:
    assert title in NAMED or meaning_of(title), f"{module}: {title!r} is not in GLOSSARY of selfprobe/page"


def test_an_explanation_is_a_sentence() -> None:
    assert [told for told in GLOSSARY.values() if not told.endswith((".", "]"))] == []
