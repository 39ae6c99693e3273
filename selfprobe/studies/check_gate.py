"""The comparison of `selfprobe check` with a baseline: the status, the cases and their words."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from selfprobe.stats.paired import Change
from selfprobe.studies.check_cases import Case, CaseKind, CheckResult, ExitStatus, bad_case
from selfprobe.studies.check_cells import TurnedCell, turned_cells
from selfprobe.studies.check_numbers import UNSCORED_METRIC, ChangeVerdict, MetricChange, changes_of
from selfprobe.studies.check_pairs import BaselineRun, RunPairs, pair_runs
from selfprobe.text.counts import plural

FALSE_ALARM_NOTE = (
    "A model that did not change has an alarm within 30 nights with one baseline in four. Run it "
    "again before you act: with 6 % of baselines both runs of a night are worse. A baseline of "
    "several epochs has more alarms (40 %), not fewer; only the worst luck is smaller. Where answers "
    "differ from day to day for other reasons, the second run must be of another night."
)


GATE_HEADINGS = ("task", "metric", "change", "95 % interval", "n", "verdict")
"""Column headings of a comparison."""
MOST_LISTED_CELLS = 10
"""Largest number of turned items that are listed."""


@dataclass(frozen=True)
class VerdictWords:
    """What a page says of a verdict."""

    of_number: str
    """Words of a metric that is a number; {smallest} is the smallest change that matters."""
    of_asking: str = ""
    """Words of how the model was asked."""


VERDICT_WORDS = {
    ChangeVerdict.WORSE: VerdictWords("worse", of_asking="worse"),
    ChangeVerdict.CANNOT_TELL: VerdictWords(
        "cannot tell a change of {smallest}", of_asking="not the same"
    ),
    ChangeVerdict.NO_WORSE: VerdictWords("no worse"),
    ChangeVerdict.UNCHANGED: VerdictWords("unchanged"),
    ChangeVerdict.BETTER: VerdictWords("better"),
}


@dataclass(frozen=True)
class Gate:
    """A baseline's runs, the runs of now, and every change between them."""

    before: Sequence[BaselineRun]
    after: Sequence[BaselineRun]
    smallest: float = 0.05
    """The smallest change that matters."""
    lower: Sequence[str] = ()
    """Metrics whose lower values are better."""
    strict: bool = False
    """Whether "cannot tell" counts as a failure."""
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """Current runs that are bad without any comparison → why."""
    log_notes: Sequence[str] = ()
    """Notes about the logs, printed before those about pairing."""

    @cached_property
    def paired(self) -> RunPairs:
        """Runs before and now."""
        run_pairs = pair_runs(self.before, self.after)
        incomparable = {*self.incomplete} - {run.name for run in self.after}  # one reason is enough
        refused = {
            name: reason for name, reason in run_pairs.refused.items() if name not in incomparable
        }
        return replace(run_pairs, refused=refused, notes=[*self.log_notes, *run_pairs.notes])

    @cached_property
    def rows(self) -> list[MetricChange]:
        """Every change."""
        return changes_of(self.paired.pairs, smallest=self.smallest, lower=self.lower)

    @property
    def status(self) -> ExitStatus:
        """The exit status."""
        verdicts = {row.verdict for row in self.rows}
        if self.paired.refused or self.incomplete or not self.rows:
            return ExitStatus.INCOMPLETE
        if ChangeVerdict.WORSE in verdicts:
            return ExitStatus.WORSE
        if self.strict and ChangeVerdict.CANNOT_TELL in verdicts:
            return ExitStatus.CANNOT_TELL
        return ExitStatus.GOOD

    def result(self) -> CheckResult:
        """The result in the form that every output takes."""
        has_several_models = len({row.models for row in self.rows}) > 1
        is_about_another = any(row.target != row.model for row in self.rows)
        names_models = has_several_models or is_about_another
        row_cases = [self.case(row, names_models=names_models) for row in self.rows]
        verdict_counts = Counter(row.verdict for row in self.rows)
        count_texts = [f"{count} {verdict}" for verdict, count in verdict_counts.items()]

        bad_runs = {"refused": self.paired.refused, "incomplete": self.incomplete}
        bad_cases = list[Case]()
        for word, reasons in bad_runs.items():
            if reasons:
                count_texts.append(f"{len(reasons)} {word}")
            for run_name, reason in reasons.items():
                bad_cases.append(bad_case(run_name, f"{word}: {reason}", len(GATE_HEADINGS)))

        cells = turned_cells(self.paired.pairs, self.lower)
        notes = [*_turned_notes(cells, names_models=names_models), *self.paired.notes]
        if ChangeVerdict.WORSE in verdict_counts:
            notes.append(FALSE_ALARM_NOTE)
        fields = {
            "status": self.status,
            "rows": [case.data for case in row_cases],
            **bad_runs,
            "notes": self.paired.notes,
            "turned": cells,
        }
        return CheckResult(
            status=self.status,
            cases=row_cases + bad_cases,
            headings=GATE_HEADINGS,
            notes=notes,
            summary=", ".join(count_texts) or "nothing to compare",
            fields=fields,
        )

    def case(self, row: MetricChange, *, names_models: bool) -> Case:
        """A metric: worse is a failure, cannot tell skipped unless strict."""
        kind_by_verdict = {
            ChangeVerdict.WORSE: CaseKind.FAILURE,
            ChangeVerdict.CANNOT_TELL: CaseKind.FAILURE if self.strict else CaseKind.SKIPPED,
        }
        change_words = change_text(row)
        size_words = f"n {row.change.estimate.n}" if row.change else ""
        verdict_words = verdict_text(row, self.smallest)
        run_name = f"{row.task} of {row.models}"
        model_column = [row.models] if names_models else []
        summary_name = run_name if names_models else row.task
        values_words, bracket, interval_words = change_words.partition(" [")
        field_names = (
            "task",
            "model",
            "target",
            "metric",
            "verdict",
            "why",
            "change",
            "p_holm",
            "needed",
            "power",
        )
        return Case(
            suite=run_name,
            group=run_name,
            name=row.metric,
            kind=kind_by_verdict.get(row.verdict, CaseKind.GOOD),
            text=f"{change_words} {size_words} {verdict_words}".strip(),
            line=(row.task, *model_column, row.metric, change_words, size_words, verdict_words),
            row=(
                summary_name,
                row.metric,
                values_words,
                f"{bracket.strip()}{interval_words}",
                size_words.removeprefix("n "),
                verdict_words,
            ),
            data={name: getattr(row, name) for name in field_names},
        )


def _turned_notes(cells: Sequence[TurnedCell], *, names_models: bool) -> list[str]:
    """A line for each of the first cells that turned, and how many there are in all."""
    listed_cells = cells[:MOST_LISTED_CELLS]
    notes = [cell.line(names_models=names_models) for cell in listed_cells]
    if len(cells) > MOST_LISTED_CELLS:
        right_count = sum(cell.right for cell in cells)
        totals = f"{len(cells) - right_count} right → wrong, {right_count} wrong → right in all"
        notes.append(f"and {len(cells) - MOST_LISTED_CELLS} more: {totals}")
    return notes


def change_text(row: MetricChange) -> str:
    """Text of the value before, after and the change: `.61 → .48  −.13 [−.19, −.07]`, with two to
    four decimals, so that it adds up.
    """
    if row.change is None:
        return ""
    estimate = row.change.estimate
    digits = _digits_that_add_up(row.change.before, row.change.after, estimate.value)
    old_text = _short(row.change.before, digits)
    new_text = _short(row.change.after, digits)
    text = f"{old_text} → {new_text}  {_signed(estimate.value, digits)}"
    if not math.isnan(estimate.low):
        text += f" [{_signed(estimate.low, digits)}, {_signed(estimate.high, digits)}]"
    return text


def _digits_that_add_up(old_value: float, new_value: float, change: float) -> int:
    """Decimals: the fewest with which the rounded change is that of the rounded numbers; .474 →
    .336 is −.138.

    Two where four do not suffice either: more would claim a precision that no run has.
    """
    if not all(map(math.isfinite, (old_value, new_value, change))):
        return 2
    for digits in range(2, 5):
        rounded_old = float(_short(old_value, digits))
        rounded_new = float(_short(new_value, digits))
        rounded_change = float(_short(change, digits))
        if abs(rounded_new - rounded_old - rounded_change) < 10**-digits / 2:
            return digits
    return 2


def verdict_text(row: MetricChange, smallest: float) -> str:
    """The verdict, why, and what it would take to tell."""
    words = VERDICT_WORDS[row.verdict]
    if row.change is None:
        return f"{words.of_asking} ({row.why})"
    verdict = words.of_number.format(smallest=_short(smallest))
    detail = _verdict_detail(row, row.change, smallest)
    return f"{verdict} ({detail})" if detail else verdict


def _verdict_detail(row: MetricChange, change: Change, smallest: float) -> str:
    """Why a metric has its verdict, or what it would take to tell; or ""."""
    is_unscored_share = row.metric == UNSCORED_METRIC
    if row.verdict is ChangeVerdict.CANNOT_TELL:
        if row.why and not is_unscored_share:
            return row.why
        estimate = change.estimate
        excluding_items = change.excluding_items(smallest)
        if excluding_items is not None and excluding_items > estimate.n:
            unit = plural(estimate.unit)
            return f"needs {excluding_items:,} {unit} that change as little"
        if _leans_to_one_side(change, smallest):
            # What is in question is a change as large as this, not one of the smallest size.
            if row.needed_as_large is None or row.needed_as_large <= estimate.n:
                return ""
            unit = plural(estimate.unit)
            return f"needs {row.needed_as_large:,} {unit} to show a change as large"
        if row.needed is not None and row.needed > estimate.n:
            needed = f"{row.needed:,}" if row.needed < 10**9 else "more than a billion"
            return f"needs {needed} {plural(estimate.unit)}"
        return estimate.reason
    if is_unscored_share and row.verdict is not ChangeVerdict.WORSE:
        return ""
    return row.why


def _leans_to_one_side(change: Change, smallest: float) -> bool:
    """Whether a change is larger than the smallest, and one as large the other way is excluded."""
    size = abs(change.estimate.value)
    opposite_bound = -change.estimate.low
    if change.estimate.value < 0:
        opposite_bound = change.estimate.high
    return size > smallest and opposite_bound < size


def _short(value: float, digits: int = 2) -> str:
    """`.61`, `1.00`, `12.3`: two decimals below 10, without a zero before the point."""
    if math.isnan(value):
        return "?"
    text = f"{value:.{digits}f}" if abs(value) < 10 else f"{value:.{digits + 2}g}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def _signed(value: float, digits: int = 2) -> str:
    """`+.03`, `−.13`, `.00`."""
    text = _short(abs(value), digits)
    if text == "?" or not text.strip(".0"):
        return text
    sign = "−" if value < 0 else "+"
    return f"{sign}{text}"
