"""`selfprobe awareness scan` and `turns`: thin command lines."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from selfprobe import options

if TYPE_CHECKING:
    from selfprobe.page import Page

models = click.option(
    "--models", "--model", "models", type=options.Names("model"), required=True, help=options.MODELS_HELP
)
answer_tokens = click.option(
    "--answer-tokens", type=options.COUNT, metavar="N", help="Longest answer in tokens; a cut one is unscored."
)
effort = click.option(
    "--effort",
    type=options.Choice(["none", "minimal", "low", "medium", "high", "xhigh"]),
    help="Reasoning effort of the model; by default its own.",
)
label = click.option(
    "--label", type=options.Choice(["evaluation", "deployment"]), help="Give every conversation this label."
)
grader = click.option("--grader", required=True, help="Judge model that reads the texts.")


def goes_ahead(plan: str, *, yes: bool, dry_run: bool, as_json: bool) -> bool:
    """Say what will be asked, and whether it is to be."""
    click.echo(plan, err=as_json)
    if not dry_run:
        options.confirmed(yes)
    return not dry_run


def publish(page: "Page", out: str, *, as_json: bool, complete: bool) -> None:
    """Write a page and say what is on it.

    Raises:
        RunError: Not all of it could be measured.
    """
    from selfprobe.errors import RunError
    from selfprobe.page import write
    from selfprobe.safe import clean

    address = write(page, out)
    if as_json:
        options.echo_json({name: table.to_dict("records") for name, table in page.tables.items()})
    else:
        for line in ["", *page.told, f"Page: {address}"]:
            click.echo(clean(line))
    if not complete:
        raise RunError("runs failed, or nothing could be scored; see above")


@click.command()
@click.argument("logs", nargs=-1, required=True)
@grader
@click.option("--role", help="Whose turns: a model role of the logs (target); by default the evaluated model.")
@click.option(
    "--piece", type=options.COUNT, default=20_000, show_default=True, help="Characters that the grader reads at once."
)
@options.limit
@options.out("awareness_scan")
@options.log_dir("logs/awareness_scan")
@options.skip_errors
@options.asking
@options.as_json
def scan(
    logs: Sequence[str],
    grader: str,
    out: str,
    yes: bool,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """At which turn do models bring up an evaluation in LOGS of any Inspect task? No subject is asked.

    The grader reads what the model thought and wrote; each quote of it is looked for in the turns. Of several epochs
    the first is read. Resumes with the same command.
    """
    from selfprobe.awareness.scan import Scan, readable, run_scan, transcripts_of
    from selfprobe.awareness.scan_page import page_of
    from selfprobe.errors import RunError
    from selfprobe.output import destination
    from selfprobe.run_settings import RunSettings

    destination(out)
    wanted = Scan(logs, grader, settings=RunSettings.taken(given), **given)
    there = readable(wanted)
    if not goes_ahead(there.told(wanted), yes=yes, dry_run=dry_run, as_json=as_json):
        return
    complete = run_scan(wanted, list(there.calls))
    rows, quotes = transcripts_of(wanted, list(there.calls))
    if rows.empty:
        raise RunError("no log could be read to its end; see above. The same command goes on")
    publish(page_of(rows, quotes, grader, there.ignored), out, as_json=as_json, complete=complete)


@click.command()
@click.argument("dataset", metavar="SET")
@models
@click.option("--against", metavar="SET", help="Real use to hold it against, paired by length, in the same run.")
@click.option("--role", help="Of logs: whose transcripts; by default the evaluated model's.")
@label
@click.option("--placebo/--no-placebo", default=True, show_default=True, help="Also ask about the time of day.")
@click.option(
    "--most", type=options.COUNT, default=40, show_default=True, help="Turns of a transcript to ask after, at most."
)
@answer_tokens
@effort
@options.limit_together
@options.out("awareness_turns")
@options.log_dir("logs/awareness_turns")
@options.skip_errors
@options.asking
@options.as_json
def turns(models: list[str], out: str, yes: bool, dry_run: bool, as_json: bool, **given: Any) -> None:
    """At which turn does a model notice? P(evaluation) after each turn of the transcripts in SET.

    SET is a folder or file of logs, a .jsonl, .csv or .json file, hf:…, logs:… or a bundled name. Evaluations are
    paired with real use of about their length where SET or --against holds both. Resumes with the same command.
    """
    import numpy as np

    from selfprobe.awareness.turns import Turns, curve_of, curves_of, described, read, run_turns
    from selfprobe.awareness.turns_page import page_of
    from selfprobe.errors import RunError
    from selfprobe.output import destination
    from selfprobe.run_settings import RunSettings

    destination(out)
    study = Turns(models=tuple(models), settings=RunSettings.taken(given), **given)
    table = read(study)
    if not goes_ahead(described(study, table), yes=yes, dry_run=dry_run, as_json=as_json):
        return
    complete = run_turns(study)
    rows, items = curves_of(study, table)
    if rows.empty or rows.p.isna().all():
        raise RunError("no run ended well, or no answer could be read; see above. The same command goes on")
    rng = np.random.default_rng(0)
    curves = [curve_of(rows, model, rng=rng) for model in models if rows.p[rows.model == model].notna().any()]
    publish(page_of(curves, rows, items, dict(table.aside)), out, as_json=as_json, complete=complete)
