"""What `selfprobe check` puts out: its exit statuses, and cases as lines, JUnit's XML and GitHub's
workflow commands.
"""

import os
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from selfprobe.errors import InputError
from selfprobe.text.safe import clean


class ExitStatus(IntEnum):
    """Exit statuses."""

    GOOD = 0
    WORSE = 1
    WRONG_COMMAND = 2
    INCOMPLETE = 3
    CANNOT_TELL = 4


COMPLETE_SUITE = "complete"
"""Suite of the cases that need no comparison."""
JUNIT_COUNTS = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
"""Number that JUnit has for a suite → the element that it counts."""


class CaseKind(StrEnum):
    """What a case is for a program; the value is JUnit's element."""

    GOOD = ""
    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Case:
    """One thing that was judged, a run or a metric, as every output has it."""

    suite: str
    group: str
    """The task and its models, or COMPLETE_SUITE; with the name it is JUnit's identity of a case."""
    name: str
    """The metric, or the run."""
    kind: CaseKind
    text: str
    line: tuple[str, ...]
    """Columns of the case in a terminal."""
    row: tuple[str, ...]
    """Row of the case in the step summary."""
    data: dict[str, Any]
    """Data for programs."""


@dataclass(frozen=True)
class CheckResult:
    """Result of a check."""

    status: ExitStatus
    cases: list[Case]
    headings: tuple[str, ...]
    """Column headings of the cases' rows."""
    notes: list[str]
    """Notes for the reader."""
    summary: str
    fields: dict[str, Any]
    """Fields for programs."""

    def lines(self) -> list[str]:
        """A line a case, then what to know."""
        full_lines = [case.line for case in self.cases if len(case.line) > 1]
        widths = [max(map(len, column)) for column in zip(*full_lines, strict=True)]
        if not widths:
            widths = [0]
        case_lines = list[str]()
        for case in self.cases:
            padded_cells = [
                f"{cell:{width}}" for cell, width in zip(case.line, widths, strict=False)
            ]
            case_lines.append("  ".join(padded_cells).rstrip())
        return [clean(line) for line in [*case_lines, *self.notes, self.summary]]

    def markdown(self) -> str:
        """The step summary of a GitHub workflow."""
        heading_line = f"### selfprobe check: {markdown_cell(self.summary)}"
        rows = [self.headings, ["---"] * len(self.headings)]
        for case in self.cases:
            rows.append([markdown_cell(cell) for cell in case.row])
        table_lines = ["| " + " | ".join(row) + " |" for row in rows]
        note_lines = [f"- {markdown_cell(note)}" for note in self.notes]
        return "\n".join([heading_line, "", *table_lines, "", *note_lines, ""])

    def annotations(self) -> list[str]:
        """GitHub's workflow commands: an error for what is worse, refused or bad, a warning for
        what cannot be told.
        """
        commands = list[str]()
        for case in self.cases:
            if case.kind is CaseKind.GOOD:
                continue
            title = case.name if case.group == COMPLETE_SUITE else f"{case.suite} {case.name}"
            escaped_title = _workflow_text(title).replace(":", "%3A").replace(",", "%2C")
            level = "warning" if case.kind is CaseKind.SKIPPED else "error"
            commands.append(f"::{level} title={escaped_title}::{_workflow_text(case.text)}")
        return commands

    def junit(self) -> bytes:
        """JUnit's XML."""
        root_element = ElementTree.Element("testsuites", name="selfprobe check")
        cases_by_suite = defaultdict[str, list[Case]](list)
        for case in self.cases:
            cases_by_suite[case.suite].append(case)
        for suite_name, suite_cases in cases_by_suite.items():
            suite_element = ElementTree.SubElement(
                root_element, "testsuite", name=clean(suite_name)
            )
            for case in suite_cases:
                case_element = ElementTree.SubElement(
                    suite_element, "testcase", classname=clean(case.group), name=clean(case.name)
                )
                text = clean(case.text)
                if case.kind is CaseKind.GOOD:
                    ElementTree.SubElement(case_element, "system-out").text = text
                else:
                    ElementTree.SubElement(case_element, case.kind.value, message=text)
            for count_name, tag in JUNIT_COUNTS.items():
                element_count = len(list(suite_element.iter(tag)))
                suite_element.set(count_name, str(element_count))
        return bytes(ElementTree.tostring(root_element, encoding="utf-8", xml_declaration=True))


def _workflow_text(text: str) -> str:
    """A text for a workflow command of GitHub."""
    return clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def markdown_cell(cell: str) -> str:
    """A text for a cell of a Markdown table, in which nothing is a sign of Markdown or HTML."""
    text = re.sub(r"([\\`*_|\[\]])", r"\\\1", " ".join(clean(cell).split()))
    return text.replace("<", "&lt;").replace(">", "&gt;")


def add_to_summary(text: str) -> None:
    """Add Markdown to the step summary, where there is one.

    Raises:
        InputError: Its file cannot be written.
    """
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"cannot write the step summary {path}: {error.strerror}") from None


def bad_case(name: str, text: str, column_count: int) -> Case:
    """Case of something that is bad without any comparison."""
    empty_cells = [""] * (column_count - 2)
    return Case(
        suite=COMPLETE_SUITE,
        group=COMPLETE_SUITE,
        name=name,
        kind=CaseKind.ERROR,
        text=text,
        line=(f"{name}  {text}",),
        row=(name, *empty_cells, text),
        data={},
    )


def unasked_case(log_folder: str, text: str) -> Case:
    """Warning that the runs are those of an earlier command."""
    case = bad_case(log_folder, text, 2)
    return replace(case, kind=CaseKind.SKIPPED, data={"unasked": text})
