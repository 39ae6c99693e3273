"""`selfprobe awareness prevalence`: a thin command line."""

from collections.abc import Sequence

import click

from selfprobe import options


@click.command()
@click.argument("paths", nargs=-1, required=True)
@options.as_json
def prevalence(paths: Sequence[str], as_json: bool) -> None:
    """How common it is, corrected for the judge's errors by rows that people labelled.

    PATHS are a file with labels (a column `aware`: yes, no or empty) and what the judge said of them: the logs that a
    sheet of `sample-labels` was drawn from, a folder of Scout scans, or a table such as tables/transcripts.csv of
    `scan`; one table may hold both. Rows that are labelled in another set say how the judge errs there.
    """
    from selfprobe.awareness.prevalence import corrected
    from selfprobe.safe import plain

    found = corrected(paths)
    if as_json:
        options.echo_json(found)
        return
    for line in found.told():
        click.echo(plain(line))
