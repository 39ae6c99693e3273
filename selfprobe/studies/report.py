"""One page of all that a folder holds: each study is a part of it, and logs of no study are named."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from inspect_ai.log import EvalLog

from selfprobe.embed import DEFAULT_EMBEDDER
from selfprobe.errors import InputError, NoLogs
from selfprobe.errors.output import place_file
from selfprobe.logs import CANNOT, decisions, first_of, none_found, readable_logs, task_of
from selfprobe.page import LINES, Page, Section, set_aside
from selfprobe.studies import every
from selfprobe.studies.card import TASK
from selfprobe.studies.matrix.diversity import OPEN
from selfprobe.studies.matrix.page import matrix_page as matrix
from selfprobe.studies.probe_compare import compare_runs, folder_and_family, read_runs
from selfprobe.studies.probe_compare import comparison_page as side_by_side
from selfprobe.studies.rewrite import of_versions
from selfprobe.study._registry import measures
from selfprobe.study.local import said_plainly
from selfprobe.text import busy
from selfprobe.text.safe import cleaned, csv, echo


def report_page(paths: Sequence[str], *, embedder: str | None = DEFAULT_EMBEDDER) -> Page:
    """The page of the studies whose logs lie under these paths; of a single study its own page.

    Args:
        paths: Logs, or folders of logs; or folders of `probe run`, one a model, or FAMILY=FOLDER,
            which stand side by side. Default: the family and size of a model come from its name.
        embedder: What tells how similar the models' replies are; None: the default one, where they
            are few.

    Raises:
        InputError: A path does not exist, no study has a finished log there, or runs of probes
            cannot be compared.
    """
    if any((folder_and_family(path)[0] / "run.json").is_file() for path in paths):
        with said_plainly("Nothing was written."):
            return side_by_side(compare_runs(read_runs(paths)))
    studies: dict[str, tuple[set[str], Callable[[Sequence[str]], Page]]] = {
        "matrix": ({*measures(), OPEN}, lambda logs: matrix(logs, embedder=embedder)),
    }
    for study in every():
        studies.setdefault(study.__name__.lower(), (set(study.reads), study.reported))
    there = readable_logs(paths)
    ignored, pages = dict(there.ignored), dict[str, Page]()
    for name in dict.fromkeys([*TITLES, *studies]):
        tasks, make = studies[name]
        logs = [header.location for header in there.headers if _task(header) in tasks]
        busy.set_stage(name)
        try:
            pages |= {name: make(logs)} if logs else {}
        except NoLogs as none:
            ignored |= none.ignored or dict.fromkeys(logs, f"{name}: {none}")
    known = set[str]().union(*(tasks for tasks, _ in studies.values()))
    ignored |= {
        header.location: _stray(header) for header in there.headers if _task(header) not in known
    }
    if not pages:
        raise InputError(none_found(paths, ignored))
    whole = next(iter(pages.values())) if len(pages) == 1 else _together(pages)
    if not ignored:
        return whole
    rest = Section("Logs of no study", set_aside(ignored), name="other")
    notes = [*(whole.notes[: LINES - 1] if whole.answer else whole.notes), _left_out(ignored)]
    return replace(whole, sections=[*whole.sections, rest], notes=notes)


def _left_out(ignored: Mapping[str, str]) -> str:
    """The line that says how many logs are on no page, with the name of the first one that cannot
    be read.
    """
    damaged = [Path(log).name for log, why in ignored.items() if why.startswith(CANNOT)]
    strays, parts = len(ignored) - len(damaged), list[str]()
    if damaged:
        further = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        parts.append(
            f"{len(damaged)} log{'s' * (len(damaged) > 1)} cannot be read ({damaged[0]}{further})"
        )
    if strays:
        parts.append(
            "1 log belongs to no study" if strays == 1 else f"{strays} logs belong to no study"
        )
    return f"{', '.join(parts)}; the page says why"


def _task(header: EvalLog) -> str:
    """Task of a log; judges and subjects who read rewrites and their originals belong to the
    rewriting.
    """
    task = task_of(header)
    compared = task == TASK and header.eval.task_args.get("pairs")
    return "rewriting" if compared or of_versions(header) else task


def _stray(header: EvalLog) -> str:
    """Why a log has no part in the page."""
    task = _task(header)
    return f"a log of {task}, which belongs to no study here; try selfprobe report --rows FILE, or selfprobe check"


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


def _together(pages: dict[str, Page]) -> Page:
    lines = [
        f"{TITLES.get(study, study)}: {part.answer}" for study, part in pages.items() if part.answer
    ]
    return Page(
        title="What do these models know about themselves?",
        parts=pages,
        tables={
            f"{study}/{name}": table
            for study, part in pages.items()
            for name, table in part.tables.items()
        },
        files={name: content for part in pages.values() for name, content in part.files.items()},
        notes=[*lines, *(line for part in pages.values() for line in part.notes)][
            : len(pages) + LINES - 1
        ],
        holes=[hole for part in pages.values() for hole in part.holes],
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
    rows = decisions(files := list(paths), repeats=True)
    aside = rows.attrs.pop("aside")
    if rows.empty:
        raise NoLogs(f"no decision of selfprobe in {', '.join(files)}{first_of(aside)}")
    rows = rows.rename(columns={"model": "observer"})
    first = ["log", "task", "target", "observer", "status", "item", "epoch", "input"]
    last = ["settings", "run"]
    return rows[[*first, *(name for name in rows if name not in (*first, *last)), *last]], aside


def place_rows(paths: Iterable[str], out: str) -> str:
    """Write the rows into a file, here or at an fsspec address: .csv, .json, or .parquet, which
    keeps the types.

    Returns:
        A line that says what was written.
    """
    if not out.endswith((".csv", ".json", ".parquet")):
        raise InputError(f"--rows takes a .csv, .json or .parquet file, got {out!r}")
    rows, ignored = decision_rows(paths)
    for log, why in ignored.items():
        echo(f"not used: {log}: {why}", err=True)
    if out.endswith(".parquet"):
        content = cleaned(rows).to_parquet(index=False)
    else:
        content = (
            csv(rows)
            if out.endswith(".csv")
            else cleaned(rows).to_json(orient="records", indent=2).encode()
        )
    place_file(content, out)
    return f"{len(rows)} decisions of {rows.log.nunique()} logs in {out}"
