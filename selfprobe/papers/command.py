"""`selfprobe paper`: the tables and figures of a paper from logs."""

from collections.abc import Callable
from functools import partial

import click

from selfprobe.page import Page, write
from selfprobe.study import options, refuse_missing
from selfprobe.text import busy


@click.group(cls=options.Group)
def paper() -> None:
    """Make a paper's tables and figures from LOGS, with the paper's numbers beside them."""


@paper.command()
@click.argument("logs", nargs=-1, required=True)
@click.option(
    "--out", "page_folder", default="introspectbench", show_default=True, help=options.OUT_HELP
)
@options.embedder
@click.option(
    "--sizes",
    metavar="FILE",
    help="CSV file with columns model and size (8B) for the figure of score by size. Default: what "
    "the models' names say.",
)
@options.as_json
def introspectbench(
    logs: tuple[str, ...], page_folder: str, embedder: str, sizes: str | None, as_json: bool
) -> None:
    """IntrospectBench ("Me, Myself, and π"): Tables 1 and 2, Figures 2, 3 and 8 to 12.

    LOGS are logs, or folders of logs, of a matrix, of open answers and of an effort sweep.
    """
    from selfprobe.papers.introspectbench import introspectbench_page, read_sizes

    parameters_by_model = read_sizes(sizes) if sizes else {}
    make_page = partial(
        introspectbench_page, logs, embedder=embedder, parameters_by_model=parameters_by_model
    )
    _write_page(logs, page_folder, as_json, make_page)


@paper.command("evaluation-awareness")
@click.argument("logs", nargs=-1, required=True)
@click.option(
    "--out", "page_folder", default="evaluation-awareness", show_default=True, help=options.OUT_HELP
)
@options.as_json
def evaluation_awareness(logs: tuple[str, ...], page_folder: str, as_json: bool) -> None:
    """Evaluation-awareness methods: Table 1, Figures 7 to 10, footnotes 3 and 4, §3, §4 and §7.

    LOGS are logs, or folders of logs, of `selfprobe awareness run`.
    """
    from selfprobe.papers.evaluation_awareness import evaluation_awareness_page

    _write_page(logs, page_folder, as_json, partial(evaluation_awareness_page, logs))


@paper.command("latent-preferences")
@click.argument("logs", metavar="FOLDERS...", nargs=-1, required=True)
@click.option(
    "--out", "page_folder", default="latent-preferences", show_default=True, help=options.OUT_HELP
)
@options.as_json
def latent_preferences(logs: tuple[str, ...], page_folder: str, as_json: bool) -> None:
    """Latent-preference probes: Tables 1 and 2, Figures 1 to 23, §5 and Appendix A.

    FOLDERS are folders of `selfprobe probe run`, one a model, or FAMILY=FOLDER.
    """
    from selfprobe.papers.latent_preferences import latent_preferences_page

    _write_page(logs, page_folder, as_json, partial(latent_preferences_page, logs))


def _write_page(
    logs: tuple[str, ...], page_folder: str, as_json: bool, make_page: Callable[[], Page]
) -> None:
    """Write the page and say what it holds."""
    from selfprobe.errors.output import refuse_unwritable

    refuse_missing({"logs": logs})
    refuse_unwritable(page_folder)  # a wrong address shows before the work
    with busy.status_line():
        page = make_page()
        address = write(page, page_folder)
    if as_json:
        options.echo_json({name: table.to_dict("records") for name, table in page.frames.items()})
    else:
        options.echo_lines([*page.lines, f"Page: {address}"])
