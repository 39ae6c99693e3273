"""Decisions of logs as rows."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from inspect_ai.log import EvalSampleSummary

from selfprobe.errors import InputError, one_line
from selfprobe.logs.decision import Decision
from selfprobe.logs.header import target_of
from selfprobe.logs.judged import FAILED, judged_sample
from selfprobe.logs.reading import UNREADABLE, T, question_of
from selfprobe.logs.run import Run, runs

if TYPE_CHECKING:
    import pandas as pd


def decisions(
    paths: Iterable[str], tasks: Collection[str] | None = None, *, repeats: bool = False
) -> "pd.DataFrame":
    """One row a decision of the logs that count, with the columns of `decision_columns`.

    `attrs["aside"]` has the logs that do not count, with the reason, and of the others how many
    samples are invalidated.

    Args:
        paths: Logs, or folders of logs.
        tasks: Names of the tasks that are wanted; None is any.
        repeats: See `runs`.

    Raises:
        InputError: A path does not exist.
    """
    import pandas as pd

    logged_runs = runs(paths, tasks, repeats=repeats)
    invalidated_texts = dict[str, str]()
    for run in logged_runs.counted:
        if run.invalidated.provenance:
            invalidated_texts[run.log] = str(run.invalidated)

    columns = dict[str, list[Any]]()
    unused_logs = dict(logged_runs.set_aside_reasons)
    while logged_runs.counted:  # what was read of a run is let go with it
        run = logged_runs.counted.pop()
        run_columns = read_best(run, _columns_with_decisions, unused_logs)
        for name, values in (run_columns or {}).items():
            columns.setdefault(name, []).extend(values)
    table = pd.DataFrame(columns)
    table.attrs["aside"] = invalidated_texts | unused_logs
    return table


def read_best(run: Run, read_run: Callable[[Run], T], unused_logs: dict[str, str]) -> T | None:
    """The content of a run's log or, if it turns out to be useless, of the next best of the same
    identity.

    Args:
        run: A run that counts.
        read_run: What reads it; an error of UNREADABLE says that it is useless.
        unused_logs: Log → why it does not count; what is found out here goes into it.
    """
    candidate: Run | None = run
    while candidate:
        unused_logs.pop(candidate.log, None)
        try:
            return read_run(candidate)
        except UNREADABLE as error:
            unused_logs[candidate.log] = one_line(error)
            candidate = candidate.next
    return None


def _columns_with_decisions(run: Run) -> dict[str, list[Any]]:
    columns = decision_columns(run)
    if not any(columns["key"]):
        raise InputError(f"no decision in it (task {run.identity.task})")
    return columns


SAMPLE_COLUMNS = ("item", "epoch", "input", "kind", "cluster")
"""Columns of a table of decisions that say which sample a decision is of."""


def decision_columns(
    run: Run, run_samples: Sequence[EvalSampleSummary] | None = None
) -> dict[str, list[Any]]:
    """Column → its value for each decision of a run.

    Columns: task, model, target, settings (of the identity, as text), run (see `Run.number`), log,
    status, item, epoch, input, kind (the data set's, else ""), cluster (else the item), and the
    fields of `Decision` (key, value, unscored, truth, said …). A sample that ended in an error has
    one row without a key, unscored "error".

    Args:
        run: A run that counts.
        run_samples: Its summaries, where they are at hand. Default: they are read.

    Raises:
        InputError: The log cannot be read.
    """
    settings = "; ".join(f"{name} {value}" for name, value in run.identity.settings.items())
    run_fields: dict[str, Any] = {
        "task": run.identity.task,
        "model": run.identity.model,
        "target": target_of(run.header),
        "settings": settings,
        "run": run.number,
        "log": run.log,
        "status": run.header.status,
    }
    columns: dict[str, list[Any]] = {
        name: [] for name in (*run_fields, *SAMPLE_COLUMNS, *Decision.model_fields)
    }
    keyless_decision = Decision(key="", unscored=FAILED)
    for summary in run.summaries if run_samples is None else run_samples:
        judged = judged_sample(summary, run.header)
        sample_fields = {
            "item": judged.item,
            "epoch": judged.epoch,
            "input": question_of(summary),
            "kind": str(summary.metadata.get("kind") or summary.metadata.get("category") or ""),
            "cluster": str(summary.metadata.get("cluster") or summary.id),
        }
        decisions = (keyless_decision,) if summary.error else judged.decisions
        for decision in decisions:
            row = run_fields | sample_fields | vars(decision)
            for name, value in row.items():
                columns[name].append(value)
    return columns


def item_decisions(run: Run) -> list[tuple[str, Decision]]:
    """Id of the item and decision, for each decision of a run.

    Raises:
        InputError: The log cannot be read.
    """
    return [
        (sample.item, decision) for sample in run.judged_samples() for decision in sample.decisions
    ]
