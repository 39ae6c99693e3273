"""The logs that `selfprobe check` was given: which of them count, and whether these are good."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from selfprobe.errors import InputError, NoLogs, one_line
from selfprobe.logs import UNREADABLE, Identity, Run, no_logs_text
from selfprobe.logs import runs as runs_in
from selfprobe.studies.check_baseline_run import baseline_run
from selfprobe.studies.check_cases import CaseKind, CheckResult, ExitStatus, bad_case
from selfprobe.studies.check_pairs import BaselineRun
from selfprobe.studies.check_read import ReadRun, read_checked_run
from selfprobe.text.counts import count_text

MOST_LISTED_SETTINGS = 4
"""Largest number of settings that a note on other settings lists."""


@dataclass(frozen=True)
class CheckedLogs:
    """Contents of a set of logs."""

    runs: list[ReadRun]
    """Runs that count (`logs.runs`), and failed ones that none of these replaces; the oldest first.
    """
    replaced: dict[str, str]
    """Log that does not count → log of the same run that counts in its place."""
    unreadable: dict[str, str]
    """Logs that cannot be read, and why: nobody knows which run they were."""
    other_files: Sequence[str] = ()
    """JSON files in the folders that are no logs."""

    def other_file_notes(self) -> list[str]:
        """A line on the files that are no logs, or none."""
        return [f"Passed over: {no_logs_text(self.other_files)}."] if self.other_files else []

    def replaced_notes(self) -> list[str]:
        """A line for each run with several logs: which one counts, and how many do not."""
        run_by_log = {run.run.log: run for run in self.runs}
        notes = list[str]()
        for log, count in Counter(self.replaced.values()).items():
            run = run_by_log[log]
            file_name = log.rpartition("/")[2]
            notes.append(f"{run.name}: {file_name} counts; {other_runs_text(count)} left out")
        return notes

    def settings_notes(self) -> list[str]:
        """A line for each task and model whose samples were not all asked with the same settings.

        Their numbers are of one measurement only where that was meant, as with several `-T effort`.
        """
        settings_counts = defaultdict[tuple[str, str], Counter[str]](Counter)
        for run in self.runs:
            settings_counts[run.task, run.models].update(run.applied_settings)
        notes = list[str]()
        for (task, models), counts in settings_counts.items():
            if len(counts) < 2:
                continue
            parts = list[str]()
            for settings, count in counts.most_common(MOST_LISTED_SETTINGS):
                parts.append(f"{count_text(count, 'sample')} with {settings.replace('; ', ' or ')}")
            if len(counts) > MOST_LISTED_SETTINGS:
                parts.append(f"and {len(counts) - MOST_LISTED_SETTINGS} further ways")
            notes.append(f"{task}  {models} was not always asked alike: {'; '.join(parts)}")
        return notes

    def comparable_runs(self, largest_unscored: float) -> tuple[list[BaselineRun], dict[str, str]]:
        """The runs that can be compared, and those that are bad in themselves with the reason."""
        comparable = list[BaselineRun]()
        bad_runs = dict(self.unreadable)
        for run in self.runs:
            faults = run.faults(largest_unscored)
            if faults:
                bad_runs[run.name] = "; ".join(faults)
            try:
                comparable.append(baseline_run(run))
            except InputError as error:
                bad_runs.setdefault(run.name, one_line(error))
        return comparable, bad_runs

    def baseline_runs(self) -> list[BaselineRun]:
        """The runs as a baseline keeps them.

        Raises:
            InputError: See `baseline_run`; or a log cannot be read.
        """
        for log, reason in self.unreadable.items():
            raise InputError(f"{log}: {reason}")
        return [baseline_run(run) for run in self.runs]


def read_logs(
    paths: Iterable[str], limits: Mapping[Identity, int | None] | None = None
) -> CheckedLogs:
    """All logs of these files and folders.

    Args:
        paths: Files and folders.
        limits: Identity of a run → number of its items that count; None, and no entry, is all.

    Raises:
        NoLogs: There is no log.
        InputError: A path does not exist.
    """
    path_names = list(paths)
    logged_runs = runs_in(path_names).limited(limits or {})
    replaced = dict[str, str]()
    unreadable = dict(logged_runs.set_aside_reasons)
    read_runs = list[ReadRun]()
    for run in logged_runs.counted:
        headers = [run.header]
        for header in run.others:
            if header.status != "success" and _is_open(run, replace(run, header=header)):
                headers.append(header)
            else:
                replaced[header.location] = run.log
        for header in headers:
            try:
                read_runs.append(read_checked_run(replace(run, header=header)))
            except UNREADABLE as error:  # InputError is one
                unreadable[header.location] = one_line(error)
            else:
                unreadable.pop(header.location, None)
    unreadable = {log: reason for log, reason in unreadable.items() if log not in replaced}
    if not read_runs and not unreadable:
        passed_over = f"; {no_logs_text(logged_runs.no_logs)}" if logged_runs.no_logs else ""
        raise NoLogs(f"no log in {', '.join(path_names)}{passed_over}")
    runs_by_time = sorted(read_runs, key=lambda read_run: str(read_run.run.header.eval.created))
    return CheckedLogs(runs_by_time, replaced, unreadable, logged_runs.no_logs)


def _is_open(run: Run, failed: Run) -> bool:
    """Whether a failed run is not replaced by the one that counts: it is later, or was to have more
    samples.
    """
    was_larger = failed.planned_samples > run.planned_samples
    return failed.log in run.later or was_larger or not failed.items() <= run.items()


def other_runs_text(count: int) -> str:
    """Text on runs in whose place others count, with its verb: "2 other runs of the same are"."""
    verb = "is" if count == 1 else "are"
    return f"{count_text(count, 'other run')} of the same {verb}"


def complete(logs: CheckedLogs, largest_unscored: float) -> CheckResult:
    """Cases that say whether each run is complete and scored, if a share of up to
    `largest_unscored` of its values may be unscored.
    """
    run_cases = [run.case(largest_unscored) for run in logs.runs]
    good_count = sum(case.kind is CaseKind.GOOD for case in run_cases)
    summary = f"{good_count} of {count_text(len(run_cases), 'run')} good"
    if logs.unreadable:
        summary += f", {count_text(len(logs.unreadable), 'log')} cannot be read"
    if logs.replaced:
        summary += f"; {other_runs_text(len(logs.replaced))} not counted"
    unreadable_cases = [
        bad_case(log, f"bad: {reason}", 2) for log, reason in logs.unreadable.items()
    ]
    is_good = good_count == len(run_cases) and not unreadable_cases
    fields = {
        "runs": [case.data for case in run_cases],
        "broken": logs.unreadable,
        "earlier": logs.replaced,
        "whole": is_good,
    }
    return CheckResult(
        status=ExitStatus.GOOD if is_good else ExitStatus.INCOMPLETE,
        cases=run_cases + unreadable_cases,
        headings=("run", "found"),
        notes=[*logs.settings_notes(), *logs.replaced_notes(), *logs.other_file_notes()],
        summary=summary,
        fields=fields,
    )
