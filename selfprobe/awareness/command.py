"""`selfprobe awareness`: its studies, `sample-labels` and `validate`."""

from collections.abc import Sequence

import click

from selfprobe import options
from selfprobe.safe import echo
from selfprobe.study import commands

GRADED = ("user_motivation", "reasoning_trace")


@click.group(
    cls=options.Group,
    studies=lambda: (
        commands("cues", "features", "inside", "scan", "turns")
        | {"effect": commands("noticing")["noticing"], "run": commands("awareness")["awareness"]}
    ),
)
def awareness() -> None:
    """Evaluation awareness: five methods on the same conversations (paper 002)."""


@awareness.command("sample-labels")
@click.argument("n", type=options.COUNT)
@click.argument("logs", nargs=-1, required=True)
@click.option("--out", default="labels.csv", show_default=True, type=click.Path(dir_okay=False), help="CSV to write.")
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the draw.")
@click.option(
    "--methods",
    type=options.Names("method"),
    default=",".join(GRADED),
    show_default=True,
    help="Whose texts: answers of user_motivation, traces of reasoning_trace.",
)
def sample_labels(n: int, logs: Sequence[str], out: str, seed: int, methods: list[str]) -> None:
    """Draw N graded texts of LOGS for people to label: a blinded sheet, which `validate` reads.

    All texts that the grader found aware, at most half of N, and others by chance. Write yes or no under `aware`.
    """
    from pathlib import Path

    import numpy as np

    from selfprobe.arguments import one_of
    from selfprobe.awareness.validate import sample_labels as drawn
    from selfprobe.errors import InputError
    from selfprobe.safe import csv

    for method in methods:
        one_of("--methods", method, GRADED)
    if Path(out).exists():
        raise InputError(f"{out} is there already, and may hold labels; give another --out")
    sheet, told = drawn(n, logs, rng=np.random.default_rng(seed), methods=methods)
    try:
        Path(out).write_bytes(csv(sheet))
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from None
    echo(told)
    echo(f"Sheet: {out}   Then: selfprobe awareness validate {out} {' '.join(logs)}")


@awareness.command()
@click.argument("paths", nargs=-1, required=True)
@options.as_json
def validate(paths: Sequence[str], as_json: bool) -> None:
    """How often the grader agrees with people, and what rate that makes of the logs.

    PATHS are a file with labels (a column `aware`: yes, no or empty) and what the grader said. The labels are a sheet
    of `sample-labels`, or a CSV of item, key (m1, m2, m3 or trace), aware and, where the logs hold several, model,
    perspective (first where there is no such column) and epoch. What the grader said is logs, a folder of Scout scans,
    or a table such as tables/transcripts.csv of `scan`; one table may hold both. Rows that are labelled in another set
    say how the grader errs there.
    """
    from selfprobe.awareness.validate import validated
    from selfprobe.safe import plain

    found = validated(paths)
    if as_json:
        options.echo_json(found)
        return
    for line in found.lines():
        echo(plain(line))
