"""`selfprobe mechanism induce`: a thin command line over `induce`."""

from pathlib import Path
from typing import Any

import click

from selfprobe import options
from selfprobe.probes.options import SYSTEM, TEMPLATE_ARGUMENT, gathered, loading, said_plainly, training
from selfprobe.safe import echo


@click.command()
@click.option("--model", required=True, help="Folder, .gguf file, hub name, or smollm2.")
@click.option(
    "--dataset",
    default="open_questions",
    show_default=True,
    help="Questions: a bundled name, a file, or hf:owner/name.",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="induce", show_default=True)
@click.option("--questions", "taught", type=options.COUNT, metavar="N", default=96, show_default=True, help="To learn.")
@click.option("--held-out", type=options.COUNT, metavar="N", default=24, show_default=True, help="Never learnt.")
@click.option(
    "--seeds", type=options.COUNT, metavar="N", default=2, show_default=True, help="Trainings, each with other labels."
)
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of labels, a word a line; by default 50 drawn from a list of nouns.",
)
@training(rank=16, alpha=2, rate=5e-4, epochs=8, batch=4)
@click.option(
    "--batch-tokens", type=options.COUNT, metavar="N", help="Tokens read at a time; 1024 on a CPU, else 16384."
)
@gathered("asking", SYSTEM, TEMPLATE_ARGUMENT)
@click.option("--dry-run", is_flag=True, help="Only say what would be done (the model is loaded).")
@loading()
def induce(
    model: str,
    dataset: str,
    out: Path,
    taught: int,
    held_out: int,
    seeds: int,
    labels: Path | None,
    batch_tokens: int | None,
    dry_run: bool,
    training: dict[str, Any],
    asking: dict[str, Any],
    loading: dict[str, Any],
) -> None:
    """Teach a model random labels as answers, and read whether it can then say what it would answer (Figure 4).

    Writes index.html, tables, figures and what was trained into --out. The same command goes on where a killed one
    stopped.
    """
    with said_plainly("The same command goes on where this one stopped."):
        from selfprobe.data import load
        from selfprobe.mechanism.induce import induce as run
        from selfprobe.mechanism.induce import plan, study_of
        from selfprobe.mechanism.induce_page import publish
        from selfprobe.probes.memory import check_memory
        from selfprobe.probes.model import load_model, without_bars
        from selfprobe.probes.tokens import Chat
        from selfprobe.probes.training import Recipe
        from selfprobe.probes.training_plan import check_room, needs

        without_bars()
        table = load(dataset, ("question",))
        own = _words(labels) if labels else []
        recipe = Recipe(**training)
        check_memory(model, loading, learns=recipe.way)
        judge = load_model(model, **loading, chat=Chat(asking["system"] or "", dict(asking["arguments"])))
        study = study_of(
            judge, [str(row["question"]) for row in table.rows], taught=taught, held_out=held_out, labels=own
        )
        needed = needs(judge, study.examples(judge, 0), recipe, batch_tokens=batch_tokens, trainings=seeds)
        echo(plan(study, needed, seeds))
        check_room(judge, needed, out)
        if dry_run:
            return
        told = {"dataset": table.metadata["dataset"], "dataset_sha256": table.sha256}
        found = run(judge, study, recipe, out, seeds=seeds, told=told, batch_tokens=batch_tokens)
        page, said = publish(out, judge.name, study, found)
        echo("\n" + "\n\n".join(said))
        echo(f"\nTables: {out}/tables   Figures: {out}/figures   Page: {page}")


def _words(file: Path) -> list[str]:
    """The lines of a file; ValueError where it has none."""
    found = [word for line in file.read_text("utf-8").splitlines() if (word := line.strip())]
    if not found:
        raise ValueError(f"{file} holds no labels: expected a word a line")
    return found
