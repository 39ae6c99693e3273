"""What a gate says: lines for a terminal, annotations and a summary for GitHub, JUnit's XML."""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from selfprobe.check.changes import Row
from selfprobe.check.gate import Gate
from selfprobe.errors import InputError
from selfprobe.safe import clean

HEADINGS = ("task", "metric", "change", "95 % interval", "n", "verdict")

DECIMALS, MOST_DECIMALS = 2, 4
"""Of a number that is shown."""
A_BILLION = 10**9


def lines(gate: Gate) -> list[str]:
    """A line a metric, then what is refused and what to know."""
    several = len({row.model for row in gate.rows}) > 1
    cells = [
        (row.task, *([row.model] if several else []), row.metric, moved(row), size(row), said(row, gate))
        for row in gate.rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    found = ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    found += [f"{run}  refused: {why}" for run, why in gate.paired.refused.items()]
    found += [f"{run}  incomplete: {why}" for run, why in gate.incomplete.items()]
    return [clean(line) for line in [*found, *gate.paired.notes, gate.told()]]


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


def markdown(gate: Gate) -> str:
    """The step summary of a GitHub workflow."""
    rows = [
        [
            row.task,
            row.metric,
            moved(row).partition(" [")[0],
            _interval(row),
            size(row).removeprefix("n "),
            said(row, gate),
        ]
        for row in gate.rows
    ]
    table = [HEADINGS, ["---"] * len(HEADINGS), *rows]
    out = [f"### selfprobe check: {gate.told()}", ""]
    out += ["| " + " | ".join(escaped(cell) for cell in row) + " |" for row in table]
    rest = [f"{run}: refused, {why}" for run, why in gate.paired.refused.items()]
    rest += [f"{run}: incomplete, {why}" for run, why in gate.incomplete.items()] + gate.paired.notes
    return "\n".join([*out, "", *(f"- {escaped(line)}" for line in rest), ""])


def _interval(row: Row) -> str:
    found = moved(row).partition("[")[2]
    return f"[{found}" if found else ""


def escaped(cell: str) -> str:
    """A text for a cell of a Markdown table, in which nothing is a sign of Markdown or HTML."""
    text = " ".join(clean(cell).split())
    for sign in "\\`*_<>|[]":
        text = text.replace(sign, f"\\{sign}" if sign not in "<>" else f"&{'lt' if sign == '<' else 'gt'};")
    return text


def annotations(gate: Gate) -> list[str]:
    """GitHub's workflow commands: an error for what is worse or refused, a warning for what cannot be told."""
    found = []
    for row in gate.rows:
        level = {"worse": "error", "cannot tell": "error" if gate.strict else "warning"}.get(row.verdict)
        if level:
            found.append(annotation(level, f"{row.task} {row.metric}", f"{moved(row)} {size(row)} {said(row, gate)}"))
    for kind, bad in (("refused", gate.paired.refused), ("incomplete", gate.incomplete)):
        found += [annotation("error", run, f"{kind}: {why}") for run, why in bad.items()]
    return found


def annotation(level: str, title: str, text: str) -> str:
    """A workflow command of GitHub."""
    title, text = (clean(one).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A") for one in (title, text))
    return f"::{level} title={title.replace(':', '%3A').replace(',', '%2C')}::{text.strip()}"


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


def junit(gate: Gate) -> bytes:
    """JUnit's XML: a suite a run, a case a metric; worse is a failure, refused an error, cannot tell skipped."""
    root = ElementTree.Element("testsuites", name="selfprobe check")
    for task, model in dict.fromkeys((row.task, row.model) for row in gate.rows):
        suite = ElementTree.SubElement(root, "testsuite", name=clean(f"{task} of {model}"))
        for row in gate.rows:
            if (row.task, row.model) == (task, model):
                _case(suite, row, gate)
        counted(suite)
    if gate.paired.refused or gate.incomplete:
        suite = ElementTree.SubElement(root, "testsuite", name="complete")
        for run, why in [*gate.paired.refused.items(), *gate.incomplete.items()]:
            case = ElementTree.SubElement(suite, "testcase", classname="complete", name=clean(run))
            ElementTree.SubElement(case, "error", message=clean(why))
        counted(suite)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _case(suite: ElementTree.Element, row: Row, gate: Gate) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=clean(row.task), name=clean(row.metric))
    message = clean(f"{moved(row)} {size(row)} {said(row, gate)}".strip())
    kind = {"worse": "failure", "cannot tell": "failure" if gate.strict else "skipped"}.get(row.verdict)
    if kind:
        ElementTree.SubElement(case, kind, message=message)
    else:
        ElementTree.SubElement(case, "system-out").text = message


def counted(suite: ElementTree.Element) -> None:
    """Write into a suite how many cases it has of each kind."""
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(1 for _ in suite.iter(tag))))


def fields(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Rows for programs."""
    return [
        {
            "task": row.task, "model": row.model, "metric": row.metric, "verdict": row.verdict, "why": row.why,
            "change": row.change, "p_holm": row.p_holm, "needed": row.needed, "power": row.power,
        }
        for row in rows
    ]  # fmt: skip
