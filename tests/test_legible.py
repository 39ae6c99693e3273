"""Code of the product decides by no sentence, multiplies no text by a truth value, and names values
by what they hold.

Files that still do otherwise stand in `hard_to_read.txt`, with their number of such places, which
may only shrink; `python -m tests.legible` writes it anew.
"""

import ast

import pytest

from tests import legible


def test_no_file_has_more_places_that_are_hard_to_read_than_its_line_says() -> None:
    faults = legible.found_faults()
    listed_counts = legible.listed_counts()
    for (kind, path), count in legible.fault_counts(faults).items():
        places = [
            f"{path}:{fault.line}: {fault.text!r}"
            for fault in faults
            if (fault.kind, fault.path) == (kind, path)
        ]
        assert count <= listed_counts[kind, path], (kind, *places)


def test_a_file_whose_places_are_mended_leaves_the_list() -> None:
    counts = legible.fault_counts(legible.found_faults())
    mended = [f"{kind} {path}" for kind, path in legible.listed_counts() if not counts[kind, path]]
    assert not mended, ("python -m tests.legible writes hard_to_read.txt anew", *mended)


def test_each_text_of_another_program_is_compared_where_the_list_says() -> None:
    compared = set()
    for path in legible.product_files():
        module = legible.parsed(path)
        texts_by_constant = legible.constant_texts(module)
        for node in ast.walk(module):
            for expression in legible.deciding_expressions(node):
                for text in legible.texts_in(expression, texts_by_constant):
                    compared.add((legible.relative(path), text))
    assert not set(legible.FOREIGN_TEXTS) - compared


def faults_in(source: str) -> list[str]:
    return [fault.text for fault in legible.faults_of("a.py", ast.parse(source))]


@pytest.mark.parametrize(
    "source",
    [
        'if kind == "cannot tell": pass',
        'if "cannot tell" in reason: pass',
        'if kind in ("Yes", "cannot tell"): pass',
        'if kind in {"cannot tell"}: pass',
        'if reason.startswith("cannot tell"): pass',
        'if reason.startswith(("Yes", "cannot tell")): pass',
        'REASON = "cannot tell"\nif kind == REASON: pass',
        'REASONS = frozenset({"cannot tell"})\nif kind in REASONS: pass',
        'words["cannot tell"]',
        'words.get("cannot tell", "")',
        'match kind:\n    case "cannot tell": pass',
    ],
)
def test_a_decision_by_a_sentence_is_a_fault(source: str) -> None:
    assert faults_in(source) == ["cannot tell"]


@pytest.mark.parametrize(
    "source",
    [
        "def f(found): pass",
        "def f(*found): pass",
        "def f(*, found=1): pass",
        "def f():\n    found = 1",
        "def f():\n    _found = 1",
        "def f():\n    _, found = 1, 2",
        "def f():\n    return [1 for found in ()]",
        "def f():\n    return (found := 1)",
        "def f():\n    with open() as found: pass",
        "def f(self):\n    self.found = 1",
        "key = lambda found: 1",
        "class C:\n    found: int",
        "class C:\n    found = 1",
        "async def f():\n    for found in (): pass",
    ],
)
def test_a_vague_name_of_a_value_is_a_fault(source: str) -> None:
    assert [name.strip("_") for name in faults_in(source)] == ["found"]


@pytest.mark.parametrize(
    "source", ['"s" * (n != 1)', 'is_many * "s"', 'f"{n} runs" * bool(n)', '"runs" * is_many']
)
def test_a_text_times_a_truth_value_is_a_fault(source: str) -> None:
    assert len(faults_in(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        'if kind == "cannot_tell": pass',
        'line = "cannot tell"',
        'rows = {"data set": 1}',
        '"-" * width + " " * (width - 2)',
        "def found_pairs(): pass",
        "def f():\n    found_pairs = 1",
    ],
)
def test_legible_code_is_no_fault(source: str) -> None:
    assert faults_in(source) == []
