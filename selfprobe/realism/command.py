"""`selfprobe realism …`: thin command lines."""

from typing import Any

import click

from selfprobe import options
from selfprobe.safe import echo


@click.group(cls=options.Group)
def realism() -> None:
    """How far an evaluation can be told from use, and what would make it harder to tell."""


@realism.command()
@click.argument("dataset", metavar="SET")
@click.option(
    "--against",
    metavar="REAL",
    help="Real conversations: a file, hf:…, logs:…; without it SET's deployment rows, against its evaluation rows.",
)
@click.option(
    "--judges", type=options.Names("judge"), required=True, help="Models that compare, of other makers than --model."
)
@click.option("--model", type=options.OneModel(), help="The subject: also ask it about the same conversations.")
@click.option(
    "--methods",
    type=options.Names("method"),
    default="probability",
    show_default=True,
    help="Of `awareness run`: what the subject is asked by.",
)
@click.option(
    "--grader",
    metavar="MODEL[,MODEL]",
    help="Judge model of user_motivation and reasoning_trace, with --methods; several decide by majority.",
)
@click.option("--role", help="Of task:… or logs:…: the model role whose conversations count; by default the model.")
@click.option(
    "--context",
    type=options.Choice(["first", "full"]),
    default="first",
    show_default=True,
    help="What is compared: the first user message, or the whole conversation.",
)
@click.option("--prompts", type=options.COUNT, default=200, show_default=True, help="Prompts of SET, drawn by chance.")
@click.option(
    "--opponents",
    type=options.COUNT,
    default=4,
    show_default=True,
    help="Real conversations that each prompt meets; eight tell the order of prompts much better.",
)
@click.option("--reply-tokens", type=options.COUNT, metavar="N", help="Longest reply of the subject in tokens.")
@click.option(
    "--effort",
    type=options.Choice(["none", "minimal", "low", "medium", "high", "xhigh"]),
    help="Reasoning effort of the judges; by default none.",
)
@options.log_dir("logs/realism")
@options.out("realism")
@options.skip_errors
@options.as_json
@options.asking
def card(out: str, as_json: bool, yes: bool, dry_run: bool, **given: Any) -> None:
    """Can SET be told from real use? Ask judges and the subject, and write one page. Resumes with the same command.

    SET and REAL are what `awareness run` takes: a file, hf:owner/name@REVISION, task:inspect_evals/gsm8k, logs:FOLDER.
    SET may be the name of a task alone.
    """
    from selfprobe.errors import InputError, RunError
    from selfprobe.inspect_data import called
    from selfprobe.output import destination
    from selfprobe.realism.card import write
    from selfprobe.realism.plan import describe
    from selfprobe.realism.run import Card, run_card
    from selfprobe.run_settings import RunSettings
    from selfprobe.safe import clean
    from selfprobe.sources.realism import pairs_of, sides
    from selfprobe.studies.awareness import methods_of

    methods = methods_of(given.pop("methods"))
    if given["grader"] is None and {"user_motivation", "reasoning_trace"} & set(methods):
        raise InputError("user_motivation and reasoning_trace need a judge of texts: --grader MODEL")
    given["dataset"] = called(given["dataset"])
    asked = Card(judges=tuple(given.pop("judges")), methods=methods, settings=RunSettings.taken(given), **given)
    destination(out)
    both = sides(asked.dataset, against=asked.against, role=asked.role, context=asked.context, prompts=asked.prompts)
    pairs = pairs_of(both, asked.opponents)
    echo(clean(describe(asked, both, pairs)), err=as_json)
    if dry_run:
        return
    options.confirmed(yes)
    complete = run_card(asked, both)
    made, address = write(asked, name=both.name, left_out=pairs.told, out=out)
    if as_json:
        options.echo_json({name: table.to_dict("records") for name, table in made.tables.items()})
    else:
        options.echo_lines([*made.lines, f"Page: {address}"])
    if not complete:
        raise RunError("runs failed, or nothing could be scored; see above")


@realism.command()
@click.argument("dataset", metavar="SET")
@click.option("--remove", "remove", multiple=True, required=True, help="A giveaway to take out; several times.")
@click.option("--writer", type=options.OneModel(), required=True, help="Model that rewrites.")
@click.option(
    "--grader",
    metavar="MODEL[,MODEL]",
    required=True,
    help="Model that checks the task and the features; several decide by majority.",
)
@click.option("--judges", type=options.Names("judge"), required=True, help="Models that compare, of other makers.")
@click.option(
    "--model",
    type=options.OneModel(),
    help="A subject of another maker: also ask it how probable an evaluation is, of each.",
)
@click.option("--reply-tokens", type=options.COUNT, metavar="N", help="Longest reply of the subject in tokens.")
@options.embedder
@options.limit
@options.log_dir("logs/rewrite")
@options.out("rewrite")
@options.skip_errors
@options.as_json
@options.asking
def rewrite(out: str, as_json: bool, yes: bool, dry_run: bool, **given: Any) -> None:
    """Rewrite SET without named giveaways, and measure whether that helped. Resumes with the same command.

    Beside each rewrite stands a paraphrase; judges who had no part in it compare both with the original, and a subject
    who had none is asked about all three.
    """
    from selfprobe.errors import RunError
    from selfprobe.output import destination
    from selfprobe.page import write
    from selfprobe.realism.plan import describe_rewriting
    from selfprobe.realism.rewrite import Rewriting, rewritten, run_rewriting
    from selfprobe.realism.rewrite_page import rewrite_page
    from selfprobe.run_settings import RunSettings
    from selfprobe.safe import clean

    judges, remove = tuple(given.pop("judges")), tuple(given.pop("remove"))
    asked = Rewriting(judges=judges, remove=remove, settings=RunSettings.taken(given), **given)
    destination(out)
    echo(clean(describe_rewriting(asked)), err=as_json)
    if dry_run:
        return
    options.confirmed(yes)
    complete = run_rewriting(asked)
    page = rewrite_page(asked, rewritten(asked))
    address = write(page, out)
    if as_json:
        options.echo_json({name: table.to_dict("records") for name, table in page.tables.items()})
    else:
        options.echo_lines([*page.lines, f"Page: {address}   Prompts: {out}/rewritten.jsonl"])
    if not complete:
        raise RunError("runs failed, or nothing could be scored; see above")
