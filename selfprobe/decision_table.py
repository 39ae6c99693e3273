"""`selfprobe table`: every decision of any logs of the suite as one row, for other tools."""

import click

from selfprobe import options

RUN = {"log": "log", "task": "task", "target": "target", "model": "observer", "status": "status"}
"""The first columns, by their names in `logs.decisions`; that with the settings of the run comes last."""


@click.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("--csv/--json", "as_csv", default=True, help="The form; CSV unless told.")
@click.option(
    "--out",
    help="Write to this file, here or at an fsspec address, instead of to the screen; .parquet keeps the types.",
)
def table(logs: tuple[str, ...], as_csv: bool, out: str | None) -> None:
    """Print every decision in LOGS as a row: what was asked, predicted, true, and why it is unscored."""
    from selfprobe.errors import NoLogs
    from selfprobe.logs import decisions, first_of
    from selfprobe.output import place_file
    from selfprobe.safe import cleaned, csv, plain

    rows = decisions(logs)
    ignored = rows.attrs.pop("aside")
    if rows.empty:
        raise NoLogs(f"no decision of selfprobe in {', '.join(logs)}{first_of(ignored)}")
    rows = rows[[*RUN, *rows.columns.difference([*RUN, "settings", "run"], sort=False), "settings"]]
    rows = rows.rename(columns=RUN)
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
