"""`selfprobe table`: every decision of any logs of the suite as one row, for other tools."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from selfprobe import options

if TYPE_CHECKING:
    import pandas as pd
    from inspect_ai.log import EvalLog


def decision_rows(paths: Iterable[str]) -> "tuple[pd.DataFrame, dict[str, str]]":
    """One row a decision, and the logs that were left out with the reason.

    Columns: log, task, target, observer (the evaluated model), status (of the run), item, epoch, input, and the fields
    of `Decision`; empty where a decision has none. A sample that ended in an error has one row without a key, its
    `unscored` is "error".

    Args:
        paths: Logs, or folders of logs.

    Raises:
        NoLogs: No log holds a decision.
        InputError: A path does not exist.
    """
    import pandas as pd

    from selfprobe.errors import NoLogs, one_line
    from selfprobe.header import task_of
    from selfprobe.logs import UNREADABLE, first_of, found

    named = list(paths)
    there = found(named)
    ignored, rows = dict(there.ignored), list[dict[str, Any]]()
    for header in reversed(there.headers):
        try:
            own = _rows_of(header)
        except UNREADABLE as error:
            ignored[header.location] = one_line(error)
            continue
        if any(row["key"] for row in own):
            rows += own
        else:
            ignored[header.location] = f"no decision in it (task {task_of(header)})"
    if not rows:
        raise NoLogs(f"no decision of selfprobe in {', '.join(named)}{first_of(ignored)}")
    return pd.DataFrame(rows), ignored


def _rows_of(header: "EvalLog") -> list[dict[str, Any]]:
    from selfprobe.errors import InputError
    from selfprobe.header import target_of, task_of
    from selfprobe.logs import asked, lost_replies, summaries
    from selfprobe.scorers.decision import Decision, last_decisions

    if why := lost_replies(header):
        raise InputError(why)
    failed = Decision(key="", unscored="error")
    run = {"log": header.location, "task": task_of(header), "target": target_of(header)}
    run |= {"observer": header.eval.model, "status": header.status}
    return [
        run | {"item": str(sample.id), "epoch": sample.epoch, "input": asked(sample)} | decision.model_dump()
        for sample in summaries(header.location)
        for decision in ([failed] if sample.error else last_decisions(sample.scores))
    ]


@click.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("--csv/--json", "as_csv", default=True, help="The form; CSV unless told.")
@click.option(
    "--out",
    help="Write to this file, here or at an fsspec address, instead of to the screen; .parquet keeps the types.",
)
def table(logs: tuple[str, ...], as_csv: bool, out: str | None) -> None:
    """Print every decision in LOGS as a row: what was asked, predicted, true, and why it is unscored."""
    from selfprobe.output import place_file
    from selfprobe.safe import cleaned, csv, plain

    rows, ignored = decision_rows(logs)
    for log, why in ignored.items():
        click.echo(plain(f"not used: {log}: {why}"), err=True)
    if out is None and not as_csv:
        options.echo_json(cleaned(rows).to_dict("records"))
        return
    if out is not None and out.endswith(".parquet"):
        content = cleaned(rows).to_parquet(index=False)
    else:
        content = csv(rows) if as_csv else cleaned(rows).to_json(orient="records", indent=2).encode()
    if out is None:
        click.echo(content.decode(), nl=False)
        return
    place_file(content, out)
    click.echo(f"{len(rows)} decisions of {rows.log.nunique()} logs in {out}")
