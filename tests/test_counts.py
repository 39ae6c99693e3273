"""What a study prints counts one thing in the singular: by `count_text`, which knows the noun."""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.trees import parsed

STUDIES = Path(__file__).parent.parent / "selfprobe" / "studies"
COUNTING_FILES = (
    "read*.py",
    "outcome*.py",
    "scan.py",
    "report.py",
    "turns.py",
    "awareness/*.py",
)
NOUNS = (
    "cluster conversation decision dilemma evaluation file item label log model pair pattern "
    "prompt quote row run sample set source text transcript turn verdict"
).split()
COUNTED = re.compile(rf" (?:[a-z]+ )?(?:{'|'.join(NOUNS)})s\b")
NEVER_ONE = {
    "len(label_paths)": "none or several",
    "set_count": "several: one has no sentence",
    "model_count": "several: of one no dimensions are counted",
    "facts.items": "more than its clusters",
    "most_crossed": "a constant less 1",
    "calls_per_turn": "2 or 3",
    "labels.iloc[0]": "a label",
}
"""Expression before a plural → why it is never 1."""


def counting_paths() -> list[Path]:
    paths = []
    for path in sorted(STUDIES.rglob("*.py")):
        name = path.relative_to(STUDIES).as_posix()
        if any(fnmatch(name, pattern) for pattern in COUNTING_FILES):
            paths.append(path)
    return paths


def counts_by_hand(module: ast.AST) -> Iterator[str]:
    """Texts in which a count, which may be 1, stands before a noun in the plural."""
    for text in ast.walk(module):
        if not isinstance(text, ast.JoinedStr):
            continue
        for value, following in zip(text.values, text.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not is_count(value.value):
                continue
            noun = following.value if isinstance(following, ast.Constant) else None
            if isinstance(noun, str) and COUNTED.match(noun):
                yield f"{ast.unparse(value.value)}{noun}"


def is_count(node: ast.expr) -> bool:
    if ast.unparse(node) in NEVER_ONE:
        return False
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in ("len", "sum") or ast.unparse(node).endswith(
            (".sum()", ".nunique()")
        )
    if isinstance(node, ast.Name):
        return not node.id.isupper() and not node.id.endswith(("_text", "_share", "name"))
    return isinstance(node, ast.Attribute | ast.BinOp | ast.Subscript)


@pytest.mark.parametrize("path", counting_paths(), ids=lambda path: path.stem)
def test_no_text_of_a_study_has_a_count_that_may_be_1_before_a_plural(path: Path) -> None:
    assert not list(counts_by_hand(parsed(path)))


@pytest.mark.parametrize(
    "source",
    ["f'{len(logs)} logs'", "f'{logs} new logs'", "f'of {run.logs} logs'", "f'{a - b} turns'"],
)
def test_a_count_by_hand_is_found(source: str) -> None:
    assert list(counts_by_hand(ast.parse(source)))


@pytest.mark.parametrize(
    "source", ["f'{FEWEST} logs'", "f'{count_text(n, \"log\")} logs'", "f'{name} looks'"]
)
def test_what_is_no_count_is_not_found(source: str) -> None:
    assert not list(counts_by_hand(ast.parse(source)))
