"""`selfprobe probe compare`: a thin command line."""

from collections.abc import Sequence

import click

from selfprobe import options
from selfprobe.probes.options import said_plainly
from selfprobe.safe import echo


@click.command()
@click.argument("folders", nargs=-1, required=True)
@options.out("probes-compared")
@options.as_json
def compare(folders: Sequence[str], out: str, as_json: bool) -> None:
    """Hold runs of several models side by side: scores by size, means over data sets, transfer, layers, ablation.

    FOLDERS are those of `probe run`, one a model, or FAMILY=FOLDER; by default the family and size of a model come from
    its name. No model is asked. Refused: runs on other pairs, of other layers, or under another preset.
    """
    with said_plainly("Nothing was written."):
        from selfprobe.output import destination
        from selfprobe.page import write
        from selfprobe.preferences.compare import compared
        from selfprobe.preferences.compare_page import means, page
        from selfprobe.preferences.runs import read_runs

        destination(out)
        found = compared(read_runs(folders))
        made = page(found)
        address = write(made, out)
        if as_json:
            named = {name: table.to_dict("records") for name, table in found.tables.items() if name != "components"}
            options.echo_json({"missing": found.holes} | named)
            return
        echo(means(found.tables))
        for line in made.told:
            echo(line)
        echo(f"\nPage: {address}   Tables: {out}/tables   Figures: {out}/figures")
