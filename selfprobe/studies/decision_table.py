"""Every decision of any logs of the suite as one row, for other tools: `selfprobe report --rows`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from selfprobe.text.safe import echo

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


def place_rows(paths: Iterable[str], out: str) -> str:
    """Write the rows into a file, here or at an fsspec address: .csv, .json, or .parquet, which keeps the types.

    Returns:
        A line that says what was written.
    """
    from selfprobe.errors import InputError
    from selfprobe.errors.output import place_file
    from selfprobe.text.safe import cleaned, csv

    if not out.endswith((".csv", ".json", ".parquet")):
        raise InputError(f"--rows takes a .csv, .json or .parquet file, got {out!r}")
    rows, ignored = decision_rows(paths)
    for log, why in ignored.items():
        echo(f"not used: {log}: {why}", err=True)
    if out.endswith(".parquet"):
        content = cleaned(rows).to_parquet(index=False)
    else:
        content = csv(rows) if out.endswith(".csv") else cleaned(rows).to_json(orient="records", indent=2).encode()
    place_file(content, out)
    return f"{len(rows)} decisions of {rows.log.nunique()} logs in {out}"
