"""What a check says: lines for a terminal, annotations and a summary for GitHub, JUnit's XML, and the exit status.

`Complete` judges each run by itself, `Gate` holds runs against a baseline.
"""

import math
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

from selfprobe.check import GOOD, INCOMPLETE, UNTOLD, WORSE
from selfprobe.check.baseline import Kept
from selfprobe.check.changes import Paired, Row, paired, rows_of
from selfprobe.check.runs import Checked, Logged, about, asked_differently, checked
from selfprobe.errors import InputError
from selfprobe.safe import clean

DECIMALS, MOST_DECIMALS = 2, 4
"""Of a number that is shown."""
A_BILLION = 10**9
COMPLETE = "complete"
"""Suite of what is judged by itself."""


Kind = Literal["", "failure", "error", "skipped"]


@dataclass(frozen=True)
class Case:
    """One thing that was judged, as a workflow shows it."""

    suite: str
    group: str
    """The run's task, or COMPLETE."""
    name: str
    """The metric, or the run."""
    kind: Kind
    """JUnit's word; "" is good."""
    text: str


@dataclass(frozen=True)
class Complete:
    """Whether each run is complete and scored."""

    results: list[Checked]
    logged: Logged

    @property
    def status(self) -> int:
        """The exit status."""
        return INCOMPLETE if self.logged.broken or any(result.wrong for result in self.results) else GOOD

    def told(self) -> str:
        """The last line."""
        good = sum(not result.wrong for result in self.results)
        last = f"{good} of {len(self.results)} runs good"
        if broken := len(self.logged.broken):
            last += f", {broken} log{'s' * (broken != 1)} cannot be read"
        if earlier := len(self.logged.earlier):
            runs = "1 other run of the same is" if earlier == 1 else f"{earlier} other runs of the same are"
            last += f"; {runs} not counted"
        return last

    @property
    def notes(self) -> list[str]:
        """What a reader should know."""
        return [*asked_differently(self.logged.runs), *self.logged.left_out()]

    def lines(self) -> list[str]:
        """A line a run, then what to know."""
        width = max((len(result.run.task) for result in self.results), default=0)
        runs = [(result.run, result) for result in self.results]
        out = [f"{run.task:{width}}  {run.model}{about(run.model, run.target)}  {result}" for run, result in runs]
        out += [f"{log}  bad: {why}" for log, why in self.logged.broken.items()]
        return [clean(line) for line in [*out, *self.notes, self.told()]]

    def fields(self) -> dict[str, Any]:
        """For programs: of a run all but its values."""
        names = ("log", "task", "model", "target", "status", "wanted", "done", "error")
        judged = ("asked", "scored", "reasons", "wrong")
        runs = [
            {name: getattr(one.run, name) for name in names} | {name: getattr(one, name) for name in judged}
            for one in self.results
        ]
        whole = {"broken": self.logged.broken, "earlier": self.logged.earlier, "whole": self.status == GOOD}
        return {"runs": runs, **whole}

    def cases(self) -> list[Case]:
        """A case a run, and a log that cannot be read; a bad one is an error."""
        judged = [(result.run.name, str(result), bool(result.wrong)) for result in self.results]
        judged += [(log, f"bad: {why}", True) for log, why in self.logged.broken.items()]
        return [Case(COMPLETE, COMPLETE, name, "error" if bad else "", text) for name, text, bad in judged]

    def table(self) -> list[Sequence[str]]:
        """The table of a step summary."""
        return [("run", "found"), *((case.name, case.text) for case in self.cases())]


@dataclass(frozen=True)
class Gate:
    """A baseline's runs, the runs of now, and every change between them."""

    paired: Paired
    rows: list[Row]
    smallest: float
    strict: bool = False
    """Whether what cannot be told fails."""
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """Runs that are bad in themselves, and why."""

    @property
    def status(self) -> int:
        """The exit status."""
        verdicts = {row.verdict for row in self.rows}
        if self.paired.refused or self.incomplete or not self.rows:
            return INCOMPLETE
        if "worse" in verdicts:
            return WORSE
        return UNTOLD if self.strict and "cannot tell" in verdicts else GOOD

    def told(self) -> str:
        """The last line."""
        count = Counter[str](row.verdict for row in self.rows)
        count |= {kind: len(runs) for kind, runs in self.bad.items() if runs}
        return ", ".join(f"{number} {name}" for name, number in count.items()) or "nothing to compare"

    @property
    def bad(self) -> dict[str, Mapping[str, str]]:
        """Runs that are not compared or bad in themselves, with the reasons."""
        return {"refused": self.paired.refused, "incomplete": self.incomplete}

    @property
    def notes(self) -> list[str]:
        """What a reader of the summary should know."""
        left = [f"{run}: {kind}, {why}" for kind, runs in self.bad.items() for run, why in runs.items()]
        return left + self.paired.notes

    def lines(self) -> list[str]:
        """A line a metric, then what is refused and what to know."""
        several = len({row.model for row in self.rows}) > 1
        cells = [
            (row.task, *([row.model] if several else []), row.metric, moved(row), size(row), said(row, self))
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        out = ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
        out += [f"{run}  {kind}: {why}" for kind, runs in self.bad.items() for run, why in runs.items()]
        return [clean(line) for line in [*out, *self.paired.notes, self.told()]]

    def fields(self) -> dict[str, Any]:
        """For programs."""
        names = ("task", "model", "metric", "verdict", "why", "change", "p_holm", "needed", "power")
        rows = [{name: getattr(row, name) for name in names} for row in self.rows]
        return {"status": self.status, "rows": rows, **self.bad, "notes": self.paired.notes}

    def cases(self) -> list[Case]:
        """A suite a run, a case a metric; worse is a failure, refused an error, cannot tell skipped unless strict."""
        kinds: dict[str, Kind] = {"worse": "failure", "cannot tell": "failure" if self.strict else "skipped"}
        metrics = [
            Case(
                f"{row.task} of {row.model}",
                row.task,
                row.metric,
                kinds.get(row.verdict, ""),
                f"{moved(row)} {size(row)} {said(row, self)}".strip(),
            )
            for row in self.rows
        ]
        bad = [(run, f"{kind}: {why}") for kind, runs in self.bad.items() for run, why in runs.items()]
        return metrics + [Case(COMPLETE, COMPLETE, run, "error", text) for run, text in bad]

    def table(self) -> list[Sequence[str]]:
        """The table of a step summary."""
        out: list[Sequence[str]] = [("task", "metric", "change", "95 % interval", "n", "verdict")]
        for row in self.rows:
            change, bracket, interval = moved(row).partition(" [")
            inside = f"{bracket.strip()}{interval}"
            out.append((row.task, row.metric, change, inside, size(row).removeprefix("n "), said(row, self)))
        return out


def complete(logged: Logged, *, most: float) -> Complete:
    """Judge each run by itself.

    Args:
        logged: Of `check.runs.load`.
        most: The largest share of unscored values that is good, 0 to 1.
    """
    return Complete([checked(run, most=most) for run in logged.runs], logged)


def gated(
    before: Sequence[Kept],
    after: Sequence[Kept],
    *,
    smallest: float,
    lower: Collection[str] = (),
    strict: bool = False,
    incomplete: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> Gate:
    """Hold runs against a baseline.

    Args:
        before: The baseline's.
        after: Those of now.
        smallest: The smallest change that matters, above 0.
        lower: Metrics of which less is better.
        strict: Whether what cannot be told fails.
        incomplete: Of the runs of now those that are bad in themselves, and why.
        notes: What to know about the logs, before what pairing has to say.
    """
    found = paired(before, after)
    found.notes[:0] = notes
    for name in {*(incomplete or {})} - {run.name for run in after}:
        found.refused.pop(name, None)  # it is there, and cannot be compared: one reason is enough
    rows = rows_of(found.pairs, smallest=smallest, lower=lower)
    return Gate(found, rows, smallest, strict, incomplete or {})


def moved(row: Row) -> str:
    """Before, after and the change: `.61 → .48  −.13 [−.19, −.07]`, with two to four decimals, so that it adds up."""
    if row.change is None:
        return ""
    one = row.change.estimate
    digits = _adding_up(row.change.before, row.change.after, one.value)
    before, after = short(row.change.before, digits), short(row.change.after, digits)
    if math.isnan(one.low):
        return f"{before} → {after}  {signed(one.value, digits)}"
    low, high = signed(one.low, digits), signed(one.high, digits)
    return f"{before} → {after}  {signed(one.value, digits)} [{low}, {high}]"


def _adding_up(before: float, after: float, change: float) -> int:
    """Decimals: the fewest with which the rounded change is that of the rounded numbers; .474 → .336 is −.138.

    Two where four do not suffice either: more would claim a precision that no run has.
    """
    numbers = (before, after, change)
    for digits in range(DECIMALS, MOST_DECIMALS + 1) if all(map(math.isfinite, numbers)) else ():
        was, now, moved = (float(short(number, digits)) for number in numbers)
        if abs(now - was - moved) < 10**-digits / 2:
            return digits
    return DECIMALS


def size(row: Row) -> str:
    """`n 208`."""
    return f"n {row.change.estimate.n}" if row.change is not None else ""


def said(row: Row, gate: Gate) -> str:
    """The verdict, why, and what it would take to tell."""
    word, told = row.verdict, row.why
    if row.change is None:
        return f"{'worse' if row.verdict == 'worse' else 'not the same'} ({told})"
    if word == "cannot tell":
        word = f"cannot tell a change of {short(gate.smallest)}"  # type: ignore[assignment]
        many = f"{row.needed:,}" if row.needed is not None and row.needed < A_BILLION else "more than a billion"
        needs = f"needs {many} {row.change.estimate.unit}s" if _more(row) else ""
        told = row.why if row.why and row.metric != "unscored" else needs or row.change.estimate.reason
    elif row.metric == "unscored" and word != "worse":
        told = ""
    return f"{word} ({told})" if told else word


def _more(row: Row) -> bool:
    return row.needed is not None and row.change is not None and row.needed > row.change.estimate.n


def short(value: float, digits: int = DECIMALS) -> str:
    """`.61`, `1.00`, `12.3`: two decimals below 10, without a zero before the point."""
    if math.isnan(value):
        return "?"
    text = f"{value:.{digits}f}" if abs(value) < 10 else f"{value:.{digits + 2}g}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def signed(value: float, digits: int = DECIMALS) -> str:
    """`+.03`, `−.13`, `.00`."""
    text = short(abs(value), digits)
    return text if text == "?" or not text.strip(".0") else f"{'−' if value < 0 else '+'}{text}"


def markdown(found: Complete | Gate) -> str:
    """The step summary of a GitHub workflow."""
    head, *rows = found.table()
    table = [head, ["---"] * len(head), *rows]
    out = ["| " + " | ".join(escaped(cell) for cell in row) + " |" for row in table]
    notes = [f"- {escaped(line)}" for line in found.notes]
    return "\n".join([f"### selfprobe check: {escaped(found.told())}", "", *out, "", *notes, ""])


def escaped(cell: str) -> str:
    """A text for a cell of a Markdown table, in which nothing is a sign of Markdown or HTML."""
    text = " ".join(clean(cell).split())
    for sign in "\\`*_<>|[]":
        text = text.replace(sign, f"\\{sign}" if sign not in "<>" else f"&{'lt' if sign == '<' else 'gt'};")
    return text


def annotations(found: Complete | Gate) -> list[str]:
    """GitHub's workflow commands: an error for what is worse, refused or bad, a warning for what cannot be told."""
    return [_annotation(case) for case in found.cases() if case.kind]


def _annotation(case: Case) -> str:
    title = case.name if case.group == COMPLETE else f"{case.group} {case.name}"
    title, text = (
        clean(one).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A") for one in (title, case.text)
    )
    level = "warning" if case.kind == "skipped" else "error"
    return f"::{level} title={title.replace(':', '%3A').replace(',', '%2C')}::{text}"


def summarise(text: str) -> None:
    """Add Markdown to the step summary, where there is one.

    Raises:
        InputError: Its file cannot be written.
    """
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise InputError(f"cannot write the step summary {path}: {error.strerror}") from None


def junit(found: Complete | Gate) -> bytes:
    """JUnit's XML."""
    root = ElementTree.Element("testsuites", name="selfprobe check")
    cases = found.cases()
    for name in dict.fromkeys(case.suite for case in cases):
        suite = ElementTree.SubElement(root, "testsuite", name=clean(name))
        for case in (one for one in cases if one.suite == name):
            inside = ElementTree.SubElement(suite, "testcase", classname=clean(case.group), name=clean(case.name))
            if case.kind:
                ElementTree.SubElement(inside, case.kind, message=clean(case.text))
            else:
                ElementTree.SubElement(inside, "system-out").text = clean(case.text)
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(name, str(sum(1 for _ in suite.iter(tag))))
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))
