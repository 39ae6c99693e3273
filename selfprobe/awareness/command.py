"""`selfprobe awareness run`, `compare`, `sample-labels`, `validate` and `features`: thin command lines."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import click

from selfprobe import options
from selfprobe.configuration import config
from selfprobe.safe import echo
from selfprobe.study import commands

GRADED = ("user_motivation", "reasoning_trace")


@click.group(cls=options.Group, studies=lambda: commands("cues", "scan", "turns"))
def awareness() -> None:
    """Evaluation awareness: five methods on the same conversations (paper 002)."""


@awareness.command()
@config
@options.models(required=True)
@click.option("--dataset", default="eval_awareness_2", show_default=True, help="Conversations: bundled, file, or hf:….")
@click.option("--task", help="Instead of --dataset: what an Inspect task asks its model.")
@click.option("--logs", help="Instead of --dataset: what the model of Inspect logs was asked.")
@click.option("--role", help="Of --task or --logs: the model role whose conversations count; by default the model.")
@click.option("--label", type=options.Choice(["evaluation", "deployment"]), help="Give every conversation this label.")
@click.option(
    "--against",
    metavar="SET",
    help="A reference to hold it against, asked in the same run: bundled, file, hf:…, task:… or logs:….",
)
@click.option(
    "--methods",
    type=options.Names("method"),
    default="all",
    show_default=True,
    help="Of binary, probability, user_motivation, reasoning_trace, first_token; or `features`: what `awareness "
    "features` reads, user_motivation alone.",
)
@click.option(
    "--grader",
    metavar="MODEL[,MODEL]",
    help="Judge model, needed for user_motivation and reasoning_trace; several decide by majority.",
)
@click.option(
    "--context",
    type=options.Choice(["first", "full"]),
    default="first",
    show_default=True,
    help="What the subject reads: the first user message, or the whole conversation.",
)
@click.option(
    "--decisions",
    type=options.Choice(["5", "25"]),
    default="5",
    show_default=True,
    help="Times that binary and probability are asked about each conversation.",
)
@click.option("--third", is_flag=True, help="Also ask in the third person, about the conversation quoted in a new one.")
@click.option(
    "--observers",
    is_flag=True,
    help="As --third, and of every other model: who reads whose conversations.",
)
@click.option("--questions", metavar="FILE", help="YAML with questions of your own for each of --methods.")
@click.option(
    "--placebo",
    is_flag=True,
    help="Also ask user_motivation's three placebos: about form, about purpose without a hint, with a judge that is "
    "told nothing.",
)
@click.option(
    "--reply-tokens",
    type=options.COUNT,
    metavar="N",
    help="Longest reply in tokens; by default the model's limit.",
)
@click.option(
    "--answer-tokens",
    type=options.COUNT,
    metavar="N",
    help="Longest answer in tokens; a cut one is unscored.",
)
@click.option(
    "--effort",
    type=options.Choice(["none", "minimal", "low", "medium", "high", "xhigh"]),
    help="Reasoning effort of the subject; by default the model's own.",
)
@options.limit
@options.log_dir("logs/awareness")
@options.skip_errors
@options.engine
@options.asking
def run(models: list[str], methods: list[str], yes: bool, dry_run: bool, **given: Any) -> None:
    """Run methods on subjects: one reply a conversation, which every method reads. Resumes with the same command."""
    from selfprobe.awareness.plan import describe, methods_of
    from selfprobe.awareness.run import Study, run_study
    from selfprobe.errors import InputError, RunError
    from selfprobe.run_settings import RunSettings

    chosen = methods_of(methods)
    if given["grader"] is None and (graded := [method for method in chosen if method in GRADED]):
        raise InputError(f"{', '.join(graded)} need a judge: --grader MODEL (a subject never grades itself silently)")
    if given["placebo"] and "user_motivation" not in chosen:
        raise InputError(
            "--placebo is of user_motivation, which is not among --methods; add it, or leave --placebo out"
        )
    study = Study(models=tuple(models), methods=chosen, settings=RunSettings.taken(given), **given)
    echo(describe(study))
    if dry_run:
        return
    options.confirmed(yes)
    complete = run_study(study)
    echo(f"\nLogs: {study.log_dir}   Compare: selfprobe awareness compare {study.log_dir}")
    if not complete:
        raise RunError("runs failed, or nothing could be scored; see above")


@awareness.command()
@click.argument("logs", nargs=-1, required=True)
@options.out("awareness")
@options.as_json
def compare(logs: Sequence[str], out: str, as_json: bool) -> None:
    """Compare the methods in LOGS: tables, figures and one page."""
    from selfprobe.awareness.page import write

    made, page = write(logs, out)
    text = made.comparison.baselines
    if as_json:
        alone = {"length": text.length, "words": text.words, "words_other_source": text.words_other_source}
        told = [{"model": f.model, "claim": f.kind, "why": " ".join(f.sentences)} for f in made.statements]
        found = {"methods": made.comparison.methods, "pairs": made.comparison.pairs, "paired": made.comparison.paired}
        options.echo_json({"text_alone": alone, "statements": told, "not_used": made.logged.ignored} | found)
        return
    options.echo_lines([*page.lines, f"Page: {out}/index.html"])


@awareness.command("sample-labels")
@click.argument("n", type=options.COUNT)
@click.argument("logs", nargs=-1, required=True)
@click.option("--out", default="labels.csv", show_default=True, type=click.Path(dir_okay=False), help="CSV to write.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draw.")
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
    from selfprobe.awareness.label_sheet import sample_labels as drawn
    from selfprobe.errors import InputError
    from selfprobe.safe import csv

    for method in methods:
        one_of("--methods", method, GRADED)
    if Path(out).exists():
        raise InputError(f"{out} is there already, and may hold labels; give another --out")
    sheet = drawn(n, logs, rng=np.random.default_rng(seed), methods=methods)
    try:
        Path(out).write_bytes(csv(sheet.table))
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from None
    echo(sheet.told())
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


prevalence = copy(validate)
prevalence.hidden = True
awareness.add_command(prevalence, "prevalence")  # its earlier name


@awareness.command()
@click.argument("logs", nargs=-1, required=True)
@click.option(
    "--clusters",
    type=options.COUNT,
    metavar="N",
    help="Number of clusters. Default: none, only the curve to choose by.",
)
@click.option("--grader", type=options.OneModel(), help="Model that names the clusters; needed with --clusters.")
@click.option(
    "--groups",
    type=options.COUNT,
    metavar="N",
    default=15,
    show_default=True,
    help="Most groups at the top level.",
)
@options.embedder
@options.out("features")
def features(
    logs: Sequence[str],
    clusters: int | None,
    grader: str | None,
    groups: int,
    embedder: str,
    out: str,
) -> None:
    """What in the prompts gives the evaluation away: a taxonomy of the evidence in user_motivation's LOGS."""
    from selfprobe.awareness.features_page import write
    from selfprobe.described import opened

    if clusters is not None and grader is None:
        raise click.UsageError("--clusters needs a model that names them: --grader MODEL")
    judge = opened(grader) if grader else None
    found = write(logs, out, embedder=embedder, clusters=clusters, grader=judge, most=groups)
    if found is None:
        echo(f"By number of clusters: {out}/figures/inertia.svg, {out}/clusters.csv; then give --clusters")
        return
    named = [c for c in found.clusters if c.name]
    ours = sum(c.artefact for c in named)
    echo(f"{len(found.clusters)} clusters: {len(named)} named, {ours} of them artefacts of the question set aside")
    for name in found.groups:
        quotes = sum(len(c.quotes) for c in found.clusters if c.group == name)
        echo(f"  {quotes:5} quotes  {name}")
    echo(f"Page: {out}/index.html")
