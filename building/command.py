"""`selfprobe dilemmas`: a thin command line."""

import json
from pathlib import Path

import click

from selfprobe import options
from selfprobe.safe import echo


@click.group(cls=options.Group)
def dilemmas() -> None:
    """Make a data set of ethical dilemmas (paper 003, appendix F)."""


@dilemmas.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("--out", required=True, help="The data set file to write, .jsonl.")
def collect(logs: tuple[str, ...], out: str) -> None:
    """Write the dilemmas that the judges of LOGS (dilemma_judging: files or folders) disagree about."""
    if not out.endswith(".jsonl"):
        raise click.BadParameter(f"the data set is a .jsonl file, got {out!r}", param_hint="--out")
    from selfprobe.building.dilemmas import judged_rows, kept_table
    from selfprobe.errors import RunError

    rows, lost = judged_rows(logs)
    echo(kept_table(rows))
    for reason, count in sorted(lost.items()):
        echo(f"unscored: {count} ({reason})")
    kept = [{key: value for key, value in row.items() if key != "kept"} for row in rows if row["kept"]]
    if not kept:
        raise RunError("no dilemma was kept, so no file is written; the threshold is the runs' -T threshold")
    Path(out).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept), encoding="utf-8")
    echo(f"{len(kept)} dilemmas in {out}: inspect eval selfprobe/ethical_dilemma -T dataset={out}")
