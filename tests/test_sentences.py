"""No sentence of the project says more than what was computed licenses."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("selfprobe", "scorers", "solvers", "introspect_tasks", "evalawareness_tasks", "preference_tasks", "bench")
UNLICENSED = {
    r"(violet|diagonal)[^.]* speaks for": "on the additive scale skill times predictability looks like self access",
    r"shows? nothing about": "what is not above a classifier may still read the inside; it is not shown to",
    r"(?<!there )is no (introspection|self-knowledge)": "it does not show it, and does not show its absence either",
    r"skill explains nothing": "a verdict is beyond what skill explains",
    r"\bs? resampled \(": "T has a t interval; nothing is resampled",
    r"proves?\b[^.]*\b(introspect|access|self-knowledge)": "nothing here is a proof",
    r"at most 5 % (?!false is what the verdict promises, whatever)[^.]*promise[^.]*\.": "a promise names its nulls",
}
"""Pattern → why no sentence may say it."""
PROMISE = r"roughly normal"
"""What a sentence with the promise of 5 % names: under which nulls it holds."""


def sentences() -> Iterator[tuple[str, str]]:
    """Every text of the code and of the documentation, with the file that holds it."""
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                parts = node.values if isinstance(node, ast.JoinedStr) else [node]
                texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
                if texts:
                    yield str(file.relative_to(ROOT)), " ".join(" … ".join(texts).split())
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        yield str(file.relative_to(ROOT)), " ".join(file.read_text(encoding="utf-8").split())


TEXTS = tuple(sentences())


@pytest.mark.parametrize("pattern", UNLICENSED)
def test_no_text_says_what_the_numbers_do_not_license(pattern: str) -> None:
    found = [(file, hit[0]) for file, text in TEXTS if (hit := re.search(pattern, text, re.IGNORECASE))]
    wrong = [one for one in found if "promise" not in pattern or PROMISE not in one[1]]
    assert not wrong, UNLICENSED[pattern]
