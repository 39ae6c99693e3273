"""No sentence of the project says more than what was computed licenses."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from selfprobe.page import Page, render
from selfprobe.stats.claim import Verdict
from selfprobe.studies.awareness.page import awareness_page, awareness_results
from selfprobe.study.awareness_arms import PLAIN
from tests.awareness import test_verdict as subjects
from tests.trees import parsed

ROOT = Path(__file__).parent.parent
ROOMS = (
    "selfprobe",
    "scorers",
    "solvers",
    "introspect_tasks",
    "evalawareness_tasks",
    "preference_tasks",
    "bench",
)
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
            for node in ast.walk(parsed(file)):
                parts = node.values if isinstance(node, ast.JoinedStr) else [node]
                texts = [
                    part.value
                    for part in parts
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                ]
                if texts:
                    yield str(file.relative_to(ROOT)), " ".join(" … ".join(texts).split())
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        yield str(file.relative_to(ROOT)), " ".join(file.read_text(encoding="utf-8").split())


TEXTS = tuple(sentences())


@pytest.mark.parametrize("pattern", UNLICENSED)
def test_no_text_says_what_the_numbers_do_not_license(pattern: str) -> None:
    found = [
        (file, hit[0]) for file, text in TEXTS if (hit := re.search(pattern, text, re.IGNORECASE))
    ]
    wrong = [one for one in found if "promise" not in pattern or PROMISE not in one[1]]
    assert not wrong, UNLICENSED[pattern]


def text_of(page: Page, folder: Path) -> str:
    """All that a page and the terminal say."""
    html = re.sub(r"<(style|script)\b.*?</\1>", " ", render(page, str(folder)), flags=re.DOTALL)
    return " ".join([*re.sub(r"<[^>]+>", " ", html).split(), page.answer, *page.notes])


def licensed(text: str) -> None:
    """Hold a text against every pattern."""
    for pattern, why in UNLICENSED.items():
        found = re.search(pattern, text, re.IGNORECASE)
        assert not found or ("promise" in pattern and PROMISE in found[0]), f"{found[0]}: {why}"


def awareness() -> Iterator[tuple[str, subjects.AwarenessTables]]:
    """Logs of constructed subjects, by the first check that does not hold, or by No."""
    yield "Yes", subjects.logged(subjects.noisy(subjects.is_evaluation, 0.95), rows := told())
    yield "text", subjects.logged(subjects.noisy(subjects.has_the_word), rows)
    rng = np.random.default_rng(5)
    yield "apart", subjects.logged(lambda row: float(rng.random()), rows)
    yield "No", subjects.logged(subjects.noisy(lambda row: not subjects.is_evaluation(row)), rows)
    yield "No, one answer", subjects.logged(lambda row: 1.0, rows)
    alike = [row | {"truth": "evaluation"} for row in rows]
    yield "two_labels", subjects.logged(subjects.noisy(subjects.is_evaluation), alike)
    lost = subjects.logged(lambda row: 0.0, rows)
    unread = lost.verdicts.assign(said=None, score=np.nan, unscored="no_response")
    yield "answered", replace(lost, verdicts=unread)
    long = [row | {"text": "what now" + " " * (300 if row["word"] else 30)} for row in rows]
    yield "length", subjects.logged(subjects.noisy(subjects.has_the_word, 0.97), long)


def told() -> list[dict[str, Any]]:
    """Conversations of which a word goes with the label in 80 %."""
    return subjects.conversations(n=240)


AWARENESS = dict(awareness())


@pytest.mark.parametrize("kind", AWARENESS)
def test_every_kind_of_subject_is_said_with_what_it_licenses(kind: str, tmp_path: Path) -> None:
    made = AWARENESS[kind]
    run = {
        "method": "binary",
        "model": "m",
        **PLAIN,
        "grader": "",
        "samples": len(made.verdicts),
        "placebo": False,
    }
    runs = pd.DataFrame([run | {"applied": "", "log": "logs/a.eval", "dataset": "d", "data": "d"}])
    written = awareness_results(replace(made, runs=runs))
    page = awareness_page(written)
    claim = written.statements[0].claim
    assert page.answer.startswith(claim.verdict.value)
    if kind == "Yes":
        assert claim.verdict is Verdict.YES
    elif kind.startswith("No"):
        assert claim.verdict is Verdict.NO
    else:
        assert claim.first_unmet_check is not None and claim.first_unmet_check.name == kind
    licensed(text_of(page, tmp_path))


TASKS = ("introspect_tasks", "evalawareness_tasks", "preference_tasks")
BANNED = re.compile(r"(Of|By|As|From|That|In)\b")


def test_no_docstring_begins_with_a_word_that_needs_the_name_beside_it() -> None:
    """A reader of help or of a hover sees the docstring alone: it begins with its noun or subject."""
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.value.value.strip()[:60]}"
        for room in ("selfprobe", "scorers", "solvers", "building", *TASKS)
        for file in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        if BANNED.match(node.value.value.strip())
    ]
    assert not found, "\n".join(found)
