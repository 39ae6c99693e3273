"""The gate: a baseline's runs, the runs of now, every change between them, and the exit status."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from selfprobe.check import GOOD, INCOMPLETE, UNTOLD, WORSE
from selfprobe.check.changes import Row, rows_of
from selfprobe.check.kept import Kept
from selfprobe.check.pairs import Paired, paired


@dataclass(frozen=True)
class Gate:
    """What was found."""

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
        found = {row.verdict for row in self.rows}
        if self.paired.refused or self.incomplete or not self.rows:
            return INCOMPLETE
        if "worse" in found:
            return WORSE
        return UNTOLD if self.strict and "cannot tell" in found else GOOD

    def told(self) -> str:
        """The last line."""
        count = Counter[str](row.verdict for row in self.rows)
        if self.paired.refused:
            count["refused"] = len(self.paired.refused)
        if self.incomplete:
            count["incomplete"] = len(self.incomplete)
        return ", ".join(f"{number} {name}" for name, number in count.items()) or "nothing to compare"


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
