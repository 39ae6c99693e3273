"""`selfprobe awareness run`, `compare` and `validate`: thin command lines over ordinary runs and awareness.py."""

from collections.abc import Sequence
from typing import Any

import click

from selfprobe.embed import DEFAULT_EMBEDDER
from selfprobe.solvers.converse import METHODS

GRADED = ("user_motivation", "reasoning_trace")


@click.group()
def awareness() -> None:
    """Evaluation awareness: five methods on the same conversations (paper 002)."""


@awareness.command()
@click.option("--models", required=True, help="Subjects, comma-separated.")
@click.option("--dataset", default="eval_awareness", show_default=True, help="Conversations: bundled, file, or hf:….")
@click.option("--task", help="Instead: the data set of an Inspect task.")
@click.option("--logs", help="Instead: conversations of Inspect logs.")
@click.option("--label", type=click.Choice(["evaluation", "deployment"]), help="Label of every row.")
@click.option("--methods", default="all", show_default=True, help=f"Comma-separated: {','.join(METHODS)}.")
@click.option("--grader", help="Judge model; needed for user_motivation and reasoning_trace.")
@click.option("--context", type=click.Choice(["first", "full"]), default="first", show_default=True)
@click.option("--decisions", type=click.Choice(["5", "25"]), default="5", show_default=True)
@click.option("--third", is_flag=True, help="Also ask in the third person, about the quoted conversation.")
@click.option("--placebo", is_flag=True, help="Also the placebo arm of user_motivation.")
@click.option("--reply-tokens", type=click.IntRange(min=1), help="Most tokens of a reply; else the model's own limit.")
@click.option("--answer-tokens", type=click.IntRange(min=1), help="Most tokens of an answer; a cut one is unscored.")
@click.option("--limit", type=click.IntRange(min=1), help="Conversations; by default all.")
@click.option("--log-dir", default="logs/awareness", show_default=True)
@click.option("--max-connections", type=click.IntRange(min=1), help="Calls at once to one model.")
@click.option(
    "--attempt-timeout", type=click.IntRange(min=1), help="Seconds for one attempt at a call.  [default: 300]"
)
@click.option("--max-retries", type=click.IntRange(min=0), help="Of a failed call.  [default: 5]")
@click.option("--skip-errors", is_flag=True, help="Leave conversations out whose calls fail for good: unscored.")
@click.option("--display", type=click.Choice(["full", "rich", "plain", "none"]), help="Inspect's display.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def run(models: str, methods: str, yes: bool, dry_run: bool, **given: Any) -> None:
    """Run methods on subjects: one reply a conversation, which every method reads. Resumes with the same command."""
    from selfprobe.awareness.run import Study, describe, run_study

    named = METHODS if methods == "all" else tuple(part.strip() for part in methods.split(","))
    if unknown := [method for method in named if method not in METHODS]:
        raise click.UsageError(f"unknown method {', '.join(unknown)}; there are {', '.join(METHODS)}")
    chosen = tuple(method for method in METHODS if method in named)
    if given["grader"] is None and (graded := [method for method in chosen if method in GRADED]):
        raise click.UsageError(
            f"{', '.join(graded)} need a judge: --grader MODEL (a subject never grades itself silently)"
        )
    study = Study(models=tuple(m.strip() for m in models.split(",")), methods=chosen, **given)
    try:
        click.echo(describe(study))
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    if dry_run:
        return
    if not yes:
        click.confirm("Run it?", abort=True)
    complete = run_study(study)
    click.echo(f"\nLogs: {study.log_dir}   Compare: selfprobe awareness compare {study.log_dir}")
    if not complete:
        raise click.ClickException("not every run is complete: the same command tries the rest again")


@awareness.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("--out", default="awareness", show_default=True, help="Folder to write, or any fsspec address.")
def compare(logs: Sequence[str], out: str) -> None:
    """Compare the methods in LOGS: tables, figures and one page."""
    from selfprobe.awareness.page import write
    from selfprobe.page import shown
    from selfprobe.safe import plain

    try:
        comparison = write(logs, out)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    text = comparison.baselines
    click.echo("AUROC of the text alone, without any model:")
    for name, value in (("length", text.length), ("words", text.words), ("other source", text.words_other_source)):
        click.echo(f"  {name:15} {shown(value)}")
    for model in dict.fromkeys(m.model for m in comparison.methods):
        click.echo(plain(model))
        for m in (one for one in comparison.methods if one.model == model):
            kind = " third person" * (m.perspective == "third") + " placebo" * m.placebo
            unscored = f"  unscored {sum(m.unscored.values()):.0%}" if m.unscored else ""
            rates = f"AUROC {shown(m.auroc)}  called evaluation {shown(m.called)}"
            click.echo(f"  {m.method + kind:15} {rates}{unscored}")
    click.echo(f"Page: {out}/index.html")


@awareness.command()
@click.argument("labels", type=click.Path(exists=True, dir_okay=False))
@click.argument("logs", nargs=-1, required=True)
def validate(labels: str, logs: Sequence[str]) -> None:
    """How often the grader agrees with people.

    LABELS is a CSV of item, key (m1, m2, m3 or trace), aware (yes, no) and, where LOGS hold several, model, perspective
    (first where there is no such column) and epoch.
    """
    from selfprobe.awareness.validate import validate_grader

    try:
        click.echo(validate_grader(labels, logs))
    except ValueError as error:
        raise click.ClickException(str(error)) from None


@awareness.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("--clusters", type=click.IntRange(min=1), help="How many; without it only the curve to choose by.")
@click.option("--grader", help="Model that names the clusters; needed with --clusters.")
@click.option("--groups", type=click.IntRange(min=1), default=15, show_default=True, help="Most at the top level.")
@click.option("--embedder", default=DEFAULT_EMBEDDER, show_default=True)
@click.option("--out", default="features", show_default=True, help="Folder to write, or any fsspec address.")
def features(
    logs: Sequence[str], clusters: int | None, grader: str | None, groups: int, embedder: str, out: str
) -> None:
    """What in the prompts gives the evaluation away: a taxonomy of the evidence in user_motivation's LOGS."""
    from inspect_ai.model import get_model

    from selfprobe.awareness.features_page import write
    from selfprobe.inspect_private import PrerequisiteError

    if clusters is not None and grader is None:
        raise click.UsageError("--clusters needs a model that names them: --grader MODEL")
    try:
        judge = get_model(grader) if grader else None
        found = write(logs, out, embedder=embedder, clusters=clusters, grader=judge, most=groups)
    except (PrerequisiteError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    if found is None:
        click.echo(f"Inertia by number of clusters: {out}/figures/inertia.svg; then give --clusters")
        return
    named = [c for c in found.clusters if c.name]
    ours = sum(c.artefact for c in named)
    click.echo(
        f"{len(found.clusters)} clusters: {len(named)} named, {ours} of them artefacts of the question set aside"
    )
    for name in found.groups:
        quotes = sum(len(c.quotes) for c in found.clusters if c.group == name)
        click.echo(f"  {quotes:5} quotes  {name}")
    click.echo(f"Page: {out}/index.html")
