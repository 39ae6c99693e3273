"""`selfprobe probe finetune`: a thin command line over `probes.finetune`."""

from pathlib import Path
from typing import Any

import click

from selfprobe import options
from selfprobe.probes.options import asking_options, loading_options, reading_options, said_plainly, training
from selfprobe.safe import echo


@click.command()
@click.option("--model", required=True, help="Folder, .gguf file, hub name, or smollm2.")
@click.option(
    "--datasets", required=True, help="Comma-separated, as `selfprobe probe run` takes them: llmbar, mine.jsonl …"
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="probes",
    show_default=True,
    help="Folder of the probe run of the same model and data; without one the probes are made first.",
)
@training(rank=64, alpha=1, rate=1e-4, epochs=1, batch=8)
@click.option(
    "--samples",
    type=options.COUNT,
    metavar="N",
    default=5000,
    show_default=True,
    help="Train on a random sample of this many texts: a pair in one order each.",
)
@click.option("--seed", type=options.COUNT_OR_NONE, metavar="N", default=0, show_default=True, help="Of the training.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done (the model is loaded).")
@reading_options
@asking_options
@loading_options
def finetune(
    model: str,
    datasets: str,
    out: Path,
    samples: int,
    seed: int,
    dry_run: bool,
    training: dict[str, Any],
    reading: dict[str, Any],
    asking: dict[str, Any],
    loading: dict[str, Any],
) -> None:
    """Train the model itself as a judge on the half that its probe learnt from, and test both on the other.

    Paper 004, section 5.2 and appendix D: adapters (LoRA), or with --full all weights. Adds tables and figures to the
    page in --out. The same command goes on where a killed one stopped.
    """
    with said_plainly("The same command goes on where this one stopped."):
        from selfprobe.probes.finetune import finetune_run, lessons, unfitted
        from selfprobe.probes.folder import claim
        from selfprobe.probes.memory import check_memory
        from selfprobe.probes.model import load_model, without_bars
        from selfprobe.probes.run import Loading, load_sets, run_probes
        from selfprobe.probes.tokens import Chat
        from selfprobe.probes.training import Recipe
        from selfprobe.sources.own import Words

        without_bars()
        recipe = Recipe(**training, seed=seed)
        names = options.names(datasets)
        sets = load_sets(names, reading["limit"], Words(asking["question"] or "", asking["item"] or ""))
        check_memory(model, loading, learns=recipe.way)
        judge = load_model(model, **loading, chat=Chat(asking["system"] or "", dict(asking["arguments"])))
        claim(out, judge, sets)
        if lost := unfitted(out, {name: given.pairs for name, given in sets.items()}):
            echo(f"{out} has no probes of {', '.join(lost)}: they are made first, as by `selfprobe probe run`")
            if dry_run:
                return
            run_probes(judge, sets, out, loading=Loading(**loading), random_weights=False, **reading)
        given = lessons(out, judge, list(sets))
        _say_plan(judge, given, recipe, samples, reading["batch_tokens"], out)
        if dry_run:
            return
        made = finetune_run(out, judge, given, recipe=recipe, samples=samples, batch_tokens=reading["batch_tokens"])
        _say_found(out, made)


def _say_plan(judge: Any, given: Any, recipe: Any, samples: int, batch_tokens: int | None, out: Path) -> None:
    """Print what each training takes; ValueError where memory or the disk does not suffice."""
    from selfprobe.probes.training_plan import check_room, needs

    for place, lesson in enumerate(given):
        needed = needs(judge, lesson.examples(samples), recipe, batch_tokens=batch_tokens, trainings=place + 1)
        of = f", {lesson.aspect}" if lesson.aspect else ""
        echo(f"{lesson.name}{of}, {len(lesson.half.train)} pairs to learn from, {len(lesson.half.test)} to test on")
        echo(needed.text)
        check_room(judge, needed, out)


def _say_found(out: Path, made: Any) -> None:
    """Publish the page, and print what it says of the tables `made`."""
    from selfprobe.preferences.findings import finetuned
    from selfprobe.preferences.page import costs, methods, publish, text

    page = publish(out)
    echo("\n" + "\n".join(finetuned(made)))
    echo(f"\n{text(methods(made['finetuned']).drop(columns='note'))}\n\n{text(costs(made['finetuning_cost']))}")
    echo(f"\nTables: {out}/tables   Figures: {out}/figures   Report: {page}")
