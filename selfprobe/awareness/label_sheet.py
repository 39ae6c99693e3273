"""A sheet of graded texts for people to label: drawn by what the grader found, read back with that put right.

The sheet holds all texts that the grader found aware, and as many others by chance, in an order and under names that
tell nothing. So that the many others count for what they are, shares of the aware are of all texts in the logs, each
labelled one standing for those of its kind (paper 002 names no check of its judge against people).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from selfprobe.awareness.findings import Finding, findings
from selfprobe.awareness.run import GRADES
from selfprobe.errors import InputError
from selfprobe.stats.estimate import Estimate, undefined

COLUMN = "text_id"
"""What tells a sheet from labels by item and key."""
DRAWS = 4000
LEVEL = 0.95


@dataclass(frozen=True)
class Sheet:
    """Texts to label."""

    table: pd.DataFrame
    """text_id, text, and an empty `aware`; in random order."""
    aware: int
    others: int
    """Drawn of those that the grader found aware, and of the others."""
    of_aware: int
    of_others: int
    """How many there are of each."""

    def told(self) -> str:
        """What was drawn, in a sentence."""
        every = self.aware == self.of_aware
        ours = f"all {self.aware} found aware" if every else f"{self.aware} of {self.of_aware} found aware"
        more = "" if every else f"; for all of them give {2 * self.of_aware}"
        return f"{len(self.table)} texts: {ours} and {self.others} of {self.of_others} others by chance{more}"


def sample_labels(
    n: int, logs: Sequence[str], *, rng: np.random.Generator, methods: Collection[str] = tuple(GRADES)
) -> Sheet:
    """Texts for people to label: all that the grader found aware, at most half of the sheet, and others by chance.

    Args:
        n: Texts on the sheet, fewer where there are fewer.
        logs: Logs of user_motivation or reasoning_trace, whatever conversations they are on.
        rng: Draws the others, and the order.
        methods: Whose texts: answers of user_motivation, traces of reasoning_trace.

    Raises:
        NoLogs: There is no finished awareness log.
        InputError: No text was graded.
    """
    texts = {name: one for name, one in _by_id(logs).items() if one.method in methods}
    if not texts:
        raise InputError(f"no text graded by {' or '.join(methods)} in {', '.join(logs)}")
    ours, others = ([name for name, found in texts.items() if found.aware is said] for said in (True, False))
    few = min(len(ours), max(n // 2, n - len(others)))
    drawn = [*_drawn(ours, few, rng), *_drawn(others, min(n - few, len(others)), rng)]
    rows = [{COLUMN: name, "text": texts[name].text, "aware": ""} for name in _drawn(drawn, len(drawn), rng)]
    return Sheet(pd.DataFrame(rows), few, len(drawn) - few, len(ours), len(others))


def _by_id(logs: Sequence[str]) -> dict[str, Finding]:
    """Texts whose finding can be used."""
    return {found.text_id: found for found in findings(logs) if found.aware is not None}


def _drawn(names: Sequence[str], n: int, rng: np.random.Generator) -> list[str]:
    return [names[at] for at in rng.permutation(len(names))[:n]]


@dataclass(frozen=True)
class Counts:
    """Texts of which the grader said the same."""

    found: int
    """In the logs."""
    labelled: int
    aware: int
    """Of the labelled, by the people."""


@dataclass(frozen=True)
class Checked:
    """A grader against people, of all texts."""

    sensitivity: Estimate
    """Share of the aware texts that it found."""
    specificity: Estimate
    """Share of the others that it left alone."""


def reweighted(ours: Counts, others: Counts) -> Checked:
    """Shares over all texts, where those found aware were drawn more often than the others.

    The aware among all are estimated in each kind apart. Intervals are quantiles of the shares with the two
    proportions drawn from their posteriors under Jeffreys' prior (Brown, Cai & DasGupta 2001), 95 %.

    Args:
        ours: Texts that the grader found aware.
        others: Those that it did not.
    """
    for counts, said in ((ours, "found aware"), (others, "not found aware")):
        if (counts.found and not counts.labelled) or (not counts.found and counts is ours):
            lacking = undefined(f"no text {said} is labelled", unit="text")
            return Checked(lacking, lacking)
    rng = np.random.default_rng(0)
    p, q = (rng.beta(c.aware + 0.5, c.labelled - c.aware + 0.5, DRAWS) for c in (ours, others))
    n = ours.labelled + others.labelled

    def share(hits: Counts, misses: Counts, drawn: tuple[np.ndarray, np.ndarray], *, aware: bool) -> Estimate:
        def rate(c: Counts) -> float:
            of = c.aware / c.labelled if c.labelled else 0.0
            return c.found * (of if aware else 1 - of)

        a, b = drawn if aware else (1 - drawn[0], 1 - drawn[1])
        found, missed = hits.found * a, misses.found * b
        low, high = np.quantile(found / (found + missed), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        of_all = rate(hits) + rate(misses)
        if not of_all:
            return undefined("no text is labelled so", n=n, unit="text")
        return Estimate(rate(hits) / of_all, float(low), float(high), n, "text")

    return Checked(share(ours, others, (p, q), aware=True), share(others, ours, (q, p), aware=False))
