"""Whether each run is complete and scored: lines for a terminal, annotations and a summary for GitHub, JUnit's XML."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from selfprobe.check import GOOD, INCOMPLETE
from selfprobe.check.numbers import Checked, asked_differently, checked
from selfprobe.check.page import annotation, counted, escaped
from selfprobe.check.table import Logged, about
from selfprobe.safe import clean


@dataclass(frozen=True)
class Complete:
    """What was found."""

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


def complete(logged: Logged, *, most: float) -> Complete:
    """Judge each run by itself.

    Args:
        logged: Of `check.table.load`.
        most: The largest share of unscored values that is good, 0 to 1.
    """
    return Complete([checked(run, most=most) for run in logged.runs], logged)


def lines(found: Complete) -> list[str]:
    """A line a run, then what to know."""
    width = max((len(result.run.task) for result in found.results), default=0)
    runs = [(result.run, result) for result in found.results]
    out = [f"{run.task:{width}}  {run.model}{about(run.model, run.target)}  {result}" for run, result in runs]
    out += [f"{log}  bad: {why}" for log, why in found.logged.broken.items()]
    notes = [*asked_differently(found.logged.runs), *found.logged.left_out()]
    return [clean(line) for line in [*out, *notes, found.told()]]


def fields(found: Complete) -> dict[str, Any]:
    """For programs: of a run all but its values."""
    names = ("log", "task", "model", "target", "status", "wanted", "done", "error")
    judged = ("asked", "scored", "reasons", "wrong")
    runs = [
        {name: getattr(one.run, name) for name in names} | {name: getattr(one, name) for name in judged}
        for one in found.results
    ]
    logged = found.logged
    return {"runs": runs, "broken": logged.broken, "earlier": logged.earlier, "whole": found.status == GOOD}


def markdown(found: Complete) -> str:
    """The step summary of a GitHub workflow."""
    head = ["| run | found |", "| --- | --- |"]
    rows = [f"| {escaped(name)} | {escaped(said)} |" for name, said, _ in _cases(found)]
    notes = [*asked_differently(found.logged.runs), *found.logged.left_out()]
    told = [f"- {escaped(line)}" for line in notes]
    return "\n".join([f"### selfprobe check: {escaped(found.told())}", "", *head, *rows, "", *told, ""])


def annotations(found: Complete) -> list[str]:
    """GitHub's workflow commands: an error for each run that is bad."""
    return [annotation("error", name, said) for name, said, good in _cases(found) if not good]


def junit(found: Complete) -> bytes:
    """JUnit's XML: a case a run; a bad one is an error."""
    root = ElementTree.Element("testsuites", name="selfprobe check")
    suite = ElementTree.SubElement(root, "testsuite", name="complete")
    for name, said, good in _cases(found):
        case = ElementTree.SubElement(suite, "testcase", classname="complete", name=clean(name))
        if good:
            ElementTree.SubElement(case, "system-out").text = clean(said)
        else:
            ElementTree.SubElement(case, "error", message=clean(said))
    counted(suite)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _cases(found: Complete) -> Iterator[tuple[str, str, bool]]:
    """Of each run, and each log that cannot be read: its name, what was found, whether it is good."""
    for result in found.results:
        yield result.run.name, str(result), not result.wrong
    for log, why in found.logged.broken.items():
        yield log, f"bad: {why}", False
