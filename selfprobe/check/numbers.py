"""What is wrong with a run, in words and shares."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from selfprobe.check.table import Run

SHOWN = 4
"""Ways of asking that are shown."""


@dataclass(frozen=True)
class Checked:
    """A run as it is judged."""

    run: Run
    scored: int
    """Values, of `asked`."""
    asked: int
    reasons: dict[str, float]
    """Why values are unscored, with the share of `asked`, the most frequent first."""
    wrong: list[str]
    """What is wrong with it; empty for a good run."""

    @property
    def unscored(self) -> float:
        """Share of the values; NaN without one."""
        return 1 - self.scored / self.asked if self.asked else math.nan

    def __str__(self) -> str:
        if self.wrong:
            return f"bad: {'; '.join(self.wrong)}"
        why = f" ({told(self.reasons)})" if self.reasons else ""
        return f"good: {self.run.done} samples, unscored {share(self.unscored)}{why}"


def checked(run: Run, *, most: float) -> Checked:
    """Judge a run.

    Args:
        run: Of `check.table.load`.
        most: The largest share of unscored values that is good, 0 to 1.
    """
    missing = Counter(value.unscored for value in run.values if value.unscored)
    asked, scored = len(run.values), len(run.values) - missing.total()
    reasons = {reason: count / asked for reason, count in missing.most_common()}
    wrong = []
    if run.status != "success":
        wrong.append({"started": "still running, or killed", "cancelled": "interrupted"}.get(run.status, "failed"))
    if run.done < run.wanted:
        told_why = run.error and not run.error.startswith("CancelledError")  # which every interrupt leaves
        first = f", the first: {run.error}" if told_why else ""
        wrong.append(f"{run.wanted - run.done} of {run.wanted} samples failed or missing{first}")
    elif run.error:
        wrong.append(run.error)
    if not scored or run.silent:
        why = ", ".join(list(reasons)[:3])
        wrong.append(f"nothing scored ({why})" if why else "nothing scored")
    elif 1 - scored / asked > most:
        wrong.append(f"unscored {share(1 - scored / asked, most)} ({told(reasons)}), more than {share(most)}")
    wrong += [
        f"{part:.0%} of replies ended at the token limit; -T {name}=… raises it" for name, part in run.cut.items()
    ]
    return Checked(run, scored, asked, reasons, wrong)


def asked_differently(runs: Iterable[Run]) -> list[str]:
    """A line for each task and model whose samples were not all asked with the same settings, within a run or between.

    Their numbers are of one measurement only where that was meant, as with several `-T effort`.
    """
    found = defaultdict[tuple[str, str], Counter[str]](Counter)
    for run in runs:
        found[run.task, run.model].update(run.asked)
    return [
        f"{task}  {model} was not always asked alike: {_ways(ways)}"
        for (task, model), ways in found.items()
        if len(ways) > 1
    ]


def _ways(ways: Counter[str]) -> str:
    shown = [f"{n} sample{'s' * (n != 1)} with {way.replace('; ', ' or ')}" for way, n in ways.most_common(SHOWN)]
    return "; ".join([*shown, *([f"and {len(ways) - SHOWN} further ways"] if len(ways) > SHOWN else [])])


def told(reasons: dict[str, float]) -> str:
    """The three most frequent reasons with their shares."""
    return ", ".join(f"{reason} {share(part)}" for reason, part in list(reasons.items())[:3])


def share(x: float, *others: float) -> str:
    """Two decimals, or as many as tell `x` from none, all, and `others`."""
    for digits in range(2, 6):
        if all(x == other or f"{x:.{digits}f}" != f"{other:.{digits}f}" for other in (0.0, 1.0, *others)):
            break
    return f"{x:.{digits}f}"
