"""`selfprobe table`: every decision of any logs of the suite as one row, for other tools."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from selfprobe import options
from selfprobe.safe import echo

if TYPE_CHECKING:
    import pandas as pd


def decision_rows(paths: Iterable[str]) -> "tuple[pd.DataFrame, dict[str, str]]":
    """One row a decision, and the logs that do not count with the reason.

    Columns: log, task, target, observer (the evaluated model), status (of the run), item, epoch, input, the fields of
    `Decision`, settings and run as `logs.decisions` has them. A sample that ended in an error has one row without a
    key, its `unscored` is "error".

    Args:
        paths: Logs, or folders of logs.

    Raises:
        NoLogs: No log holds a decision.
        InputError: A path does not exist.
    """
    from selfprobe.errors import NoLogs
    from selfprobe.logs import decisions, first_of

    named = list(paths)
    rows = decisions(named, repeats=True)
    aside = rows.attrs.pop("aside")
    if rows.empty:
        raise NoLogs(f"no decision of selfprobe in {', '.join(named)}{first_of(aside)}")
    rows = rows.rename(columns={"model": "observer"})
    first = ["log", "task", "target", "observer", "status", "item", "epoch", "input"]
    last = ["settings", "run"]
    return rows[[*first, *(name for name in rows if name not in (*first, *last)), *last]], aside


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
    from selfprobe.safe import cleaned, csv

    rows, ignored = decision_rows(logs)
    for log, why in ignored.items():
        echo(f"not used: {log}: {why}", err=True)
    if out is None and not as_csv:
        options.echo_json(cleaned(rows).to_dict("records"))
        return
    if out is not None and out.endswith(".parquet"):
        content = cleaned(rows).to_parquet(index=False)
    else:
        content = csv(rows) if as_csv else cleaned(rows).to_json(orient="records", indent=2).encode()
    if out is None:
        click.echo(content.decode(), nl=False)  # is clean, and too large for what `echo` remembers
        return
    place_file(content, out)
    echo(f"{len(rows)} decisions of {rows.log.nunique()} logs in {out}")
