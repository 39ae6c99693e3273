"""A reader with a paper in hand: the number of a table, a figure or a section leads to its code."""

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from selfprobe.papers import evaluation_awareness, introspectbench, latent_preferences
from selfprobe.papers.exhibit import Exhibit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reproduce.md").read_text(encoding="utf-8")
MODULES = {
    "introspectbench": introspectbench,
    "evaluation-awareness": evaluation_awareness,
    "latent-preferences": latent_preferences,
}
END_OF_HEADING = {
    "introspectbench": ": IntrospectBench (",
    "evaluation-awareness": ": evaluation-awareness methods\n",
    "latent-preferences": ": latent-preference probes\n",
}
RANGE = re.compile(r"\b(Figure|Table|Footnote)s? (\d+)(?: \([^)]*\))? (to|and) (\d+)")
FURTHER_RANGE = re.compile(r"\band (\d+) to (\d+)")


def numbered(text: str) -> set[str]:
    """Names such as "Figure 9" in a text, ranges unrolled, and its sections."""
    names = {f"{kind} {number}" for kind, number in re.findall(r"(Figure|Table) (\d+)", text)}
    names |= {f"Footnote {number}" for number in re.findall(r"[Ff]ootnote (\d+)", text)}
    names |= {f"§{section}" for section in re.findall(r"§(\d(?:\.\d)*)", text)}
    names |= {
        f"Appendix {letter}"
        for letter in re.findall(r"(?:Appendix|Appendices|and) ([A-G])\b", text)
    }
    names |= set(re.findall(r"\b[A-G]\.\d\b", text))
    if "ntroduction" in text:
        names.add("Introduction")
    for kind, first, _, last in RANGE.findall(text):
        names |= {f"{kind} {number}" for number in range(int(first), int(last) + 1)}
        for further_first, further_last in FURTHER_RANGE.findall(text):
            numbers = range(int(further_first), int(further_last) + 1)
            names |= {f"{kind} {number}" for number in numbers}
    return names


def exhibit_docstrings(module: ModuleType) -> dict[str, str]:
    """Function that makes an exhibit → its docstring."""
    docstrings = {}
    for name, function in inspect.getmembers(module, inspect.isfunction):
        makes_exhibit = inspect.signature(function).return_annotation is Exhibit
        if makes_exhibit and not name.startswith("_") and function.__module__ == module.__name__:
            docstrings[name] = " ".join((inspect.getdoc(function) or "").split())
    return docstrings


def rows_of(paper: str) -> list[tuple[str, str]]:
    """The name in the paper, and the command, of each row of the page."""
    part = PAGE.partition(END_OF_HEADING[paper])[2].partition("\n## Paper")[0]
    rows = []
    for line in part.replace("\\|", "/").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 7 and cells[0] != "in the paper":
            rows.append((cells[0], cells[2]))
    return rows


@pytest.mark.parametrize("paper", MODULES)
def test_a_function_says_its_number_in_the_paper_what_is_printed_and_what_is_here(
    paper: str,
) -> None:
    docstrings = exhibit_docstrings(MODULES[paper])
    assert len(docstrings) >= 8
    for name, docstring in docstrings.items():
        first_words = docstring.partition(":")[0]
        assert numbered(first_words), (name, first_words)
        assert "Paper: " in docstring and "Here: " in docstring, name


@pytest.mark.parametrize("paper", MODULES)
def test_every_row_of_the_page_that_the_command_makes_is_named_by_a_function(paper: str) -> None:
    named = set[str]()
    for docstring in exhibit_docstrings(MODULES[paper]).values():
        named |= numbered(docstring)
    without_function = []
    for name, command in rows_of(paper):
        if f"paper {paper}" in command and not numbered(name) & named:
            without_function.append(name)
    assert without_function == []


@pytest.mark.parametrize("paper", MODULES)
def test_every_numbered_part_that_another_command_makes_is_in_the_modules_head(paper: str) -> None:
    docstring = " ".join((MODULES[paper].__doc__ or "").split())
    made = set[str]()
    for function_docstring in exhibit_docstrings(MODULES[paper]).values():
        made |= numbered(function_docstring)
    elsewhere = numbered(docstring)
    lost = []
    for name, _ in rows_of(paper):
        parts = {
            part for part in numbered(name) if part.startswith(("Figure", "Table", "Footnote"))
        }
        if parts and not parts & (made | elsewhere) and name != "Figure 1":
            lost.append(name)
    assert lost == []


@pytest.mark.parametrize("paper", MODULES)
def test_every_file_that_a_modules_head_names_is_there(paper: str) -> None:
    docstring = " ".join((MODULES[paper].__doc__ or "").split())
    names = re.findall(r"`([\w/]+(?:\.py|\.yaml|/))`", docstring)
    places = (ROOT, ROOT / "selfprobe")
    missing = [name for name in names if not any((place / name).exists() for place in places)]
    assert len(names) > 3 and missing == []
