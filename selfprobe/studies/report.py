"""One page of all that a folder holds: each study is a part of it, and logs of no study are named."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import pandas as pd
from inspect_ai.log import EvalLog

from selfprobe.errors import InputError, NoLogs
from selfprobe.errors.output import place_file
from selfprobe.logs import CANNOT, decisions, first_of, none_found, readable_logs, task_of
from selfprobe.page import MOST_TERMINAL_LINES, Page, RowTable, Section, set_aside
from selfprobe.studies import every
from selfprobe.studies.probe_compare import (
    compare_runs,
    comparison_page,
    folder_and_family,
    read_runs,
)
from selfprobe.studies.rewrite import of_versions
from selfprobe.study.local import user_errors_as_input_errors
from selfprobe.study.realism_verdicts import PAIRS_TASK
from selfprobe.text import busy
from selfprobe.text.counts import count_text
from selfprobe.text.safe import cleaned, csv, echo


def report_page(paths: Sequence[str]) -> Page:
    """The page of the studies whose logs lie under these paths; of a single study its own page.

    Args:
        paths: Logs, or folders of logs; or folders of `probe run`, one a model, or FAMILY=FOLDER,
            which stand side by side. Default: the family and size of a model come from its name.

    Raises:
        InputError: A path does not exist, no study has a finished log there, or runs of probes
            cannot be compared.
    """
    if any((folder_and_family(path)[0] / "run.json").is_file() for path in paths):
        with user_errors_as_input_errors("Nothing was written."):
            return comparison_page(compare_runs(read_runs(paths)))
    logs_by_task = _LogsByTask.read(paths)
    ignored = dict(logs_by_task.ignored)
    pages: dict[str, Page] = {}
    tasks_by_study: dict[str, set[str]] = {}
    page_makers: dict[str, Callable[[Sequence[str]], Page]] = {}
    for study in every():
        study_name = study.__name__.lower()
        tasks_by_study[study_name] = set(study.reads)
        page_makers[study_name] = study.page_of_logs
    for study_name in dict.fromkeys([*TITLES, *page_makers]):
        logs = logs_by_task.of_tasks(tasks_by_study[study_name])
        busy.set_stage(study_name)
        if not logs:
            continue
        try:
            pages[study_name] = page_makers[study_name](logs)
        except NoLogs as error:
            ignored |= error.ignored or dict.fromkeys(logs, f"{study_name}: {error}")
    ignored |= logs_by_task.strays(set[str]().union(*tasks_by_study.values()))
    if not pages:
        raise InputError(none_found(paths, ignored))

    page = next(iter(pages.values())) if len(pages) == 1 else _joined_page(pages)
    if not ignored:
        return page
    ignored_section = Section("Logs of no study", set_aside(ignored), name="other")
    notes = page.notes[: MOST_TERMINAL_LINES - 1] if page.answer else page.notes
    return replace(
        page,
        sections=[*page.sections, ignored_section],
        notes=[*notes, _ignored_sentence(ignored)],
    )


REMEDY_OF_TASK: Mapping[str, str] = {"open_answers": "selfprobe paper introspectbench"}
"""Task of no study → the command that reads its logs."""


@dataclass(frozen=True)
class _LogsByTask:
    """The readable logs under some paths."""

    task_of_log: Mapping[str, str]
    """Log → the task that it counts as."""
    ignored: Mapping[str, str]
    """Log that cannot be read → why."""

    @classmethod
    def read(cls, paths: Sequence[str]) -> Self:
        readable = readable_logs(paths)
        task_of_log = {header.location: _counted_task(header) for header in readable.headers}
        return cls(task_of_log, readable.ignored)

    def of_tasks(self, tasks: AbstractSet[str]) -> list[str]:
        """Logs of these tasks."""
        return [log for log, task in self.task_of_log.items() if task in tasks]

    def strays(self, known_tasks: AbstractSet[str]) -> dict[str, str]:
        """Log of no study → why it has no part in the page."""
        stray_logs = dict[str, str]()
        for log, task in self.task_of_log.items():
            if task not in known_tasks:
                remedy = REMEDY_OF_TASK.get(
                    task, "selfprobe report --rows FILE, or selfprobe check"
                )
                stray_logs[log] = f"a log of {task}, which belongs to no study here; try {remedy}"
        return stray_logs


def _counted_task(header: EvalLog) -> str:
    """Task of a log; judges and subjects who read rewrites and their originals belong to the
    rewriting.
    """
    task = task_of(header)
    compares_pairs = task == PAIRS_TASK and header.eval.task_args.get("pairs")
    return "rewriting" if compares_pairs or of_versions(header) else task


def _ignored_sentence(ignored: Mapping[str, str]) -> str:
    """The line that says how many logs are on no page, with the name of the first one that cannot
    be read.
    """
    damaged_names = [Path(log).name for log, reason in ignored.items() if reason.startswith(CANNOT)]
    damaged_count = len(damaged_names)
    stray_count = len(ignored) - damaged_count
    parts: list[str] = []
    if damaged_names:
        names = damaged_names[0]
        if damaged_count > 1:
            names += f" and {damaged_count - 1} more"
        parts.append(f"{count_text(damaged_count, 'log')} cannot be read ({names})")
    if stray_count:
        verb = "belongs" if stray_count == 1 else "belong"
        parts.append(f"{count_text(stray_count, 'log')} {verb} to no study")
    return f"{', '.join(parts)}; the page says why"


TITLES = {
    "matrix": "Self-knowledge",
    "outcome": "Known in advance",
    "awareness": "Evaluation awareness",
    "preferences": "Preferences",
    "realism": "Realism",
    "rewriting": "Rewriting",
    "cues": "Giveaways",
    "turns": "Turn by turn",
    "scan": "Read in logs",
    "noticing": "Effect of noticing",
}
"""Names of the studies in the menu."""


def _joined_page(pages: Mapping[str, Page]) -> Page:
    """One page of which each study is a part."""
    lines: list[str] = []
    tables: dict[str, pd.DataFrame | RowTable] = {}
    files: dict[str, bytes] = {}
    holes: list[str] = []
    for study, part in pages.items():
        if part.answer:
            lines.append(f"{TITLES.get(study, study)}: {part.answer}")
        tables |= {f"{study}/{name}": table for name, table in part.tables.items()}
        files |= part.files
        holes += part.holes
    for part in pages.values():
        lines += part.notes
    return Page(
        title="What do these models know about themselves?",
        parts=dict(pages),
        tables=tables,
        files=files,
        notes=lines[: len(pages) + MOST_TERMINAL_LINES - 1],
        holes=holes,
    )


# ---- every decision as a row, for other tools: `selfprobe report --rows`


def decision_rows(paths: Iterable[str]) -> tuple[pd.DataFrame, dict[str, str]]:
    """One row a decision, and the logs that do not count with the reason.

    Columns: log, task, target, observer (the evaluated model), status (of the run), item, epoch,
    input, the fields of `Decision`, settings and run as `logs.decisions` has them. A sample that
    ended in an error has one row without a key, its `unscored` is "error".

    Args:
        paths: Logs, or folders of logs.

    Raises:
        NoLogs: No log holds a decision.
        InputError: A path does not exist.
    """
    path_list = list(paths)
    rows = decisions(path_list, repeats=True)
    ignored = rows.attrs.pop("aside")
    if rows.empty:
        raise NoLogs(f"no decision of selfprobe in {', '.join(path_list)}{first_of(ignored)}")
    rows = rows.rename(columns={"model": "observer"})
    first_columns = ["log", "task", "target", "observer", "status", "item", "epoch", "input"]
    last_columns = ["settings", "run"]
    inner_columns = [name for name in rows if name not in (*first_columns, *last_columns)]
    return rows[[*first_columns, *inner_columns, *last_columns]], ignored


def place_rows(paths: Iterable[str], out: str) -> str:
    """Write the rows into a file, here or at an fsspec address: .csv, .json, or .parquet, which
    keeps the types.

    Returns:
        A line that says what was written.
    """
    if not out.endswith((".csv", ".json", ".parquet")):
        raise InputError(f"--rows takes a .csv, .json or .parquet file, got {out!r}")
    rows, ignored = decision_rows(paths)
    for log, reason in ignored.items():
        echo(f"not used: {log}: {reason}", err=True)
    if out.endswith(".parquet"):
        content = cleaned(rows).to_parquet(index=False)
    elif out.endswith(".csv"):
        content = csv(rows)
    else:
        content = cleaned(rows).to_json(orient="records", indent=2).encode()
    place_file(content, out)
    log_count = rows.log.nunique()
    return f"{count_text(len(rows), 'decision')} of {count_text(log_count, 'log')} in {out}"
