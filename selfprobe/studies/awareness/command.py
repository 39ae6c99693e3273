"""`selfprobe awareness`: its studies, and `validate`."""

from collections.abc import Sequence

import click

from selfprobe.study import commands, options
from selfprobe.text.safe import echo

GRADED_METHODS = ("user_motivation", "reasoning_trace")


@click.group(
    cls=options.Group,
    studies=lambda: (
        commands("cues", "features", "inside", "scan", "turns")
        | {"effect": commands("noticing")["noticing"], "run": commands("awareness")["awareness"]}
    ),
)
def awareness() -> None:
    """Evaluation-awareness methods: five of them on the same conversations."""


@awareness.command()
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--samples",
    type=options.COUNT,
    metavar="N",
    help="Draw N graded texts of logs for people to label.",
)
@click.option(
    "--methods",
    type=options.Names("method"),
    default=",".join(GRADED_METHODS),
    show_default=True,
    help="Methods whose texts are drawn: answers of user_motivation, traces of reasoning_trace.",
)
@click.option(
    "--out",
    default="labels.csv",
    show_default=True,
    type=click.Path(dir_okay=False),
    help="Sheet to write.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the draw.")
@options.as_json
def validate(
    paths: Sequence[str],
    samples: int | None,
    methods: list[str],
    out: str,
    seed: int,
    as_json: bool,
) -> None:
    """Measure how often the grader agrees with people, and what rate in the logs follows from that.

    PATHS are a file with labels (a column `aware`: yes, no or empty) and what the grader said. The
    labels are a sheet that --samples made, or a CSV of item, key (m1, m2, m3 or trace), aware and,
    where the logs hold several, model, perspective (first where there is no such column) and epoch.
    What the grader said is logs, a folder of Scout scans, or a table such as tables/transcripts.csv
    of `scan`; one table may hold both. Rows that are labelled in another set say how the grader
    errs there.

    A sheet of --samples is blinded: all texts that the grader found aware, at most half of N, and
    others by chance. Write yes or no under `aware`.
    """
    from selfprobe.text.safe import plain

    if samples:
        _write_label_sheet(samples, paths, out, seed, methods)
        return
    from selfprobe.studies.awareness.validate import validated

    validation = validated(paths)
    if as_json:
        options.echo_json(validation)
        return
    for line in validation.lines():
        echo(plain(line))


def _write_label_sheet(
    text_count: int, logs: Sequence[str], out: str, seed: int, methods: list[str]
) -> None:
    """Write the sheet; one that is there may hold labels, and is never written over."""
    from pathlib import Path

    import numpy as np

    from selfprobe.errors import InputError
    from selfprobe.errors.arguments import one_of
    from selfprobe.studies.awareness.validate import sample_labels
    from selfprobe.text.safe import csv

    for method in methods:
        one_of("--methods", method, GRADED_METHODS)
    if Path(out).exists():
        raise InputError(f"{out} is there already, and may hold labels; give another --out")
    rng = np.random.default_rng(seed)
    sheet, draw_sentence = sample_labels(text_count, logs, rng=rng, methods=methods)
    try:
        Path(out).write_bytes(csv(sheet))
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from None
    echo(draw_sentence)
    echo(f"Sheet: {out}   Then: selfprobe awareness validate {out} {' '.join(logs)}")
