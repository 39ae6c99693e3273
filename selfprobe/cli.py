"""The `selfprobe` command. Each subcommand lives beside what it does; the table says where."""

from importlib import import_module

import click

COMMANDS = {
    "awareness": "selfprobe.awareness.command:awareness",
    "dilemmas": "selfprobe.building.dilemmas:dilemmas",
    "diversity": "selfprobe.matrix.diversity:diversity",
    "effort": "selfprobe.matrix.effort:effort",
    "fetch-model": "selfprobe.cli:fetch_model",
    "matrix": "selfprobe.matrix.command:matrix",
    "probe": "selfprobe.preferences.command:probe",
    "report": "selfprobe.cli:report",
}
"""Module and attribute of each subcommand; imported when it is asked for, since Inspect alone takes seconds."""


class Subcommands(click.Group):
    """The commands of `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command), COMMANDS[cmd_name]
        return command


@click.group(cls=Subcommands)
@click.version_option(package_name="selfprobe")
def main() -> None:
    """Measure what a language model knows about itself."""


@click.command()
def fetch_model() -> None:
    """Fetch the weights of embedded/smollm2 (98 MB, once), verify them and print their path."""
    from selfprobe.inspect_private import PrerequisiteError
    from selfprobe.weights import fetch

    try:
        click.echo(fetch())
    except PrerequisiteError as error:
        raise click.ClickException(str(error)) from None


@click.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("--out", default="report", show_default=True, help="Folder to write, or any fsspec address.")
@click.option(
    "--embedder",
    default="sentence-transformers/all-MiniLM-L6-v2",
    show_default=True,
    help="Model of sentence embeddings, for how alike replies are.",
)
def report(logs: tuple[str, ...], out: str, embedder: str) -> None:
    """Write one page of all that LOGS hold: index.html, tables/ and figures/."""
    from selfprobe.errors import InputError
    from selfprobe.output import destination
    from selfprobe.page import write
    from selfprobe.report import page
    from selfprobe.safe import clean

    try:
        destination(out)  # a wrong address shows before the work
        made = page(logs, embedder=embedder)
        address = write(made, out)
    except InputError as error:
        raise click.ClickException(clean(str(error))) from None
    for line in made.told:
        click.echo(clean(line))
    for line in made.holes:
        click.echo(clean(f"  hole: {line}"), err=True)
    click.echo(f"Report: {address}")
    if made.holes:
        raise click.ClickException("some cells are holes; the report names them")
