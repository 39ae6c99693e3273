"""`selfprobe probe run`, `transfer`, `ablate` and `score`: thin command lines over selfprobe/probes."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from selfprobe import options
from selfprobe.configuration import config
from selfprobe.preferences.finetune_command import finetune
from selfprobe.probes.options import (
    ALLOW_PICKLE,
    asking_options,
    engine_options,
    gathered,
    loading_options,
    quiet_model,
    reading_options,
    said_plainly,
)
from selfprobe.safe import echo
from selfprobe.study import commands

if TYPE_CHECKING:
    from selfprobe.probes.score import Judgement
    from selfprobe.probes.splits import FitSettings


fitting_options = gathered(
    "fitting",
    click.option(
        "--prompts",
        type=options.Choice(["paper", "conversations"]),
        help="The paper's with the question in a line of its own, or of whole conversations (MT-Bench without judges "
        "who are authors); by default the preset's.",
    ),
    click.option(
        "--aspects",
        type=options.Choice(["together", "apart"]),
        help="Of SummEval, NEWSROOM, HANNA: one probe for all aspects, or one for each and their mean; by default the "
        "preset's (apart but for strict).",
    ),
    click.option(
        "--train", type=options.COUNT, metavar="N", help="Train on N pairs of each data set, test on the others."
    ),
    click.option("--seeds", type=options.COUNT, metavar="N", help="Random halves; by default 5."),
    click.option(
        "--resamples", type=click.IntRange(min=100), metavar="N", help="Resamples of an interval; by default 500."
    ),
    click.option("--orientation", help="Sign of the unsupervised direction: few:K, logit, none or oracle."),
)
"""What replaces a preset's own; as `FitSettings` has it."""


@click.group(cls=options.Group, studies=lambda: {"compare": commands("probecompare")["probecompare"]})
def probe() -> None:
    """Preference probes: what a judge model knows before it speaks (paper 004)."""


probe.add_command(finetune)


@probe.command()
@config
@click.option(
    "--model",
    "--models",
    "models",
    type=options.Names("model"),
    required=True,
    help="Folder, .gguf file, hub name, or smollm2; of several, comma-separated, each gets a folder in --out.",
)
@click.option(
    "--datasets",
    type=options.Names("data set"),
    required=True,
    help="Comma-separated: llmbar, mt_bench …, NAME=PATH, or your own .jsonl, .json, .csv, .tsv, .parquet, hf:….",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="probes", show_default=True)
@click.option(
    "--preset",
    type=click.Choice(["strict", "paper", "released-code"]),
    default="strict",
    show_default=True,
    help="strict is the honest measurement; the others replicate.",
)
@fitting_options
@click.option(
    "--logs", multiple=True, help="Also show methods from logs of pairwise_preference, direct_scoring, g_eval."
)
@click.option(
    "--random-weights/--no-random-weights",
    default=None,
    help="Control: the same architecture with random weights; by default up to 1 billion parameters.",
)
@click.option(
    "--scoring/--no-scoring",
    default=None,
    help="Also ask for a score of each text alone (direct scoring, G-Eval); by default of summeval, newsroom, hanna.",
)
@click.option("--processes", type=options.COUNT, metavar="N", default=1, help="Fit in so many processes.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done (the model is loaded).")
@reading_options
@engine_options
@asking_options
@loading_options
def run(
    models: list[str],
    out: Path,
    engine: dict[str, Any],
    **given: Any,
) -> None:
    """Read states at all layers, fit both probes, and hold them against prompting and controls.

    Writes probes, tables, figures, index.html and report.md into --out. The same command goes on where a killed one
    stopped.
    """
    from selfprobe.on_ray import copies
    from selfprobe.plots import short

    folders = [out / short(name.rstrip("/"), 100) for name in models] if len(models) > 1 else [out] * len(models)
    if not models or len(set(folders)) < len(folders):
        raise click.UsageError(
            f"each model needs a folder of its own in {out}, got models {', '.join(models) or 'none'}"
        )
    with copies(**engine) as copied:
        for model, folder in zip(models, folders, strict=True):
            _run(model, folder, copied=copied, **given)
    if len(models) > 1:
        echo(f"\nSide by side: selfprobe probe compare {' '.join(map(str, folders))}")


def _run(
    model: str,
    out: Path,
    *,
    copied: Any,
    datasets: list[str],
    preset: str,
    logs: Sequence[str],
    random_weights: bool | None,
    scoring: bool | None,
    processes: int,
    dry_run: bool,
    fitting: dict[str, Any],
    reading: dict[str, Any],
    asking: dict[str, Any],
    loading: dict[str, Any],
) -> None:
    """One model."""
    with said_plainly("The same command goes on where this one stopped."):
        from selfprobe.preferences.page import publish
        from selfprobe.preferences.terminal import findings, say_plan
        from selfprobe.probes.folder import claim
        from selfprobe.probes.forward import in_process
        from selfprobe.probes.rate import check_scoring
        from selfprobe.probes.run import Loading, check_sets, load_sets, run_probes
        from selfprobe.probes.tokens import Chat
        from selfprobe.probes.untrained import wanted
        from selfprobe.sources.own import Words

        settings = _settings(preset, **fitting)
        words = Words(asking["question"] or "", asking["item"] or "")
        sets = load_sets(datasets, reading["limit"], words, prompts=settings.prompts)
        check_sets(sets, settings)
        check_scoring(sets, scoring)
        logged = _margins(logs, sets) if logs else None
        judge = quiet_model(model, loading | {"chat": Chat(asking["system"] or "", dict(asking["arguments"]))})
        reader = copied(judge, model, loading) if copied else in_process
        claim(out, judge, sets)
        sizes, untrained = {name: reading[name] for name in ("longest", "batch_tokens")}, wanted(judge, random_weights)
        more: dict[str, Any] = {"untrained": untrained, "scoring": scoring, "copies": getattr(reader, "count", 1)}
        say_plan(judge, sets, settings, out / "activations", sizes, **more)
        if dry_run:
            return
        echo()
        given: dict[str, Any] = {"settings": settings, "loading": Loading(**loading), "logged": logged}
        given |= {"random_weights": untrained, "scoring": scoring, "processes": processes, "reader": reader}
        tables = run_probes(judge, sets, out, **given, **reading)
        echo(findings(tables, settings))
        echo(f"\nProbes: {out}/*.safetensors   Tables: {out}/tables   Report: {publish(out)}")


def _settings(preset: str, **given: Any) -> "FitSettings":
    """A preset with what the user gave (not None) in place of its own."""
    from selfprobe.probes.splits import PRESETS

    return replace(PRESETS[preset], **{name: value for name, value in given.items() if value is not None})


def _margins(logs: Sequence[str], sets: Any) -> Any:
    from selfprobe.studies.preferences import margins  # Inspect's log readers take seconds to import

    return margins(logs, sets)


@probe.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def transfer(folder: Path) -> None:
    """Probes of each data set of the run in FOLDER on every other one, and the cosines of their directions."""
    with said_plainly("Nothing was written."):
        from selfprobe.page import shown
        from selfprobe.preferences.page import publish, text
        from selfprobe.probes.transfer import transfer_run

        tables = transfer_run(folder)
        page = publish(folder)
        for kind, rows in tables["transfer"].query("metric == 'f1'").groupby("probe", sort=False):
            cells = rows.assign(f1=[shown(row) for row in rows.itertuples()])
            echo(f"\n{kind}: F1, rows tested on, columns trained on")
            echo(cells.pivot(index="tested_on", columns="trained_on", values="f1").to_string())
        echo("\nCosines of the directions:")
        echo(text(tables["cosine"].round(2)))
        echo(f"\nTables: {folder}/tables   Figures: {folder}/figures   Report: {page}")


@probe.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--datasets", default="", help="Comma-separated; by default all of the run.")
@click.option("--random", "directions", type=options.COUNT, metavar="N", default=5, show_default=True)
@click.option(
    "--limit",
    type=options.COUNT,
    metavar="N",
    default=200,
    show_default=True,
    help="Take at most N held-out pairs of each data set, always the same ones, drawn at random.",
)
@ALLOW_PICKLE
def ablate(folder: Path, datasets: str, directions: int, limit: int, allow_pickle: bool) -> None:
    """Ask the model again with each probe's direction taken out at all layers, beside random directions."""
    with said_plainly("Nothing was written."):
        from selfprobe.page import shown
        from selfprobe.preferences.page import publish, text
        from selfprobe.probes.ablate import ablate_run
        from selfprobe.probes.model import without_bars

        without_bars()
        asked: dict[str, Any] = {"datasets": options.names(datasets), "random_directions": directions}
        found = ablate_run(folder, limit=limit, allow_pickle=allow_pickle, **asked)
        page = publish(folder)
        found["change"] = [shown(row, sign=True) for row in found.itertuples()]
        echo(text(found[["dataset", "direction", "f1", "change", "changed_answers", "n"]].round(3)))
        echo(f"\nTable: {folder}/tables/ablation.csv   Figure: {folder}/figures/ablation.png   Report: {page}")


@probe.command()
@click.option("--probe", "file", required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.argument("pairs")
@click.option("--model", help="Where its model is; by default as the probe's card names it.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Decisions as JSONL; by default stdout.")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="States; by default beside the probe.")
@click.option("--device", default="cpu", show_default=True)
@click.option("--device-map", help="Accelerate's, such as auto.")
@ALLOW_PICKLE
def score(file: Path, pairs: str, model: str | None, out: Path | None, cache: Path | None, **loading: Any) -> None:
    """Judge PAIRS with a fitted probe: your own file (question, text_1, text_2), hf:owner/name@REVISION, or a data set.

    What is asked, and the system turn, are those that the probe was fitted under.
    """
    with said_plainly("The same command goes on where this one stopped."):
        if not file.is_file():
            raise ValueError(f"no probe file {file}: make one with `selfprobe probe run`")
        from selfprobe.probes.probe_file import load_probe
        from selfprobe.probes.score import judge_pairs
        from selfprobe.sources.own import Words
        from selfprobe.sources.public_pairs import load

        fitted = load_probe(file)
        card = fitted.card
        given = load(pairs, words=Words(card.question, card.item), conversations=card.prompts == "conversations")
        commit = None if model or card.revision.startswith("local-") else card.revision
        judge = quiet_model(model or card.model, loading | card.precision | {"revision": commit, "chat": card.chat})
        found = judge_pairs(fitted, judge, given.pairs, cache=cache or file.parent / "activations")
        lines = "".join(json.dumps(_row(judgement), ensure_ascii=False) + "\n" for judgement in found)
        if out:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(lines, encoding="utf-8")
        else:
            echo(lines, nl=False)
        echo(_summary(found, file, given.ties), err=True)


def _row(said: "Judgement") -> dict[str, Any]:
    named = {"id": said.pair.id, "preferred": said.preferred, "score": said.score}
    named |= {"own_answer": said.own_answer, "label": said.pair.label, "seen_in_training": said.seen}
    return named | ({"unscored": said.reason} if said.reason else {})


def _summary(found: "Sequence[Judgement]", file: Path, ties: int) -> str:
    scored = [d for d in found if d.preferred is not None]
    lines = [f"{len(scored)} of {len(found)} pairs judged by {file.name}" + (f"; {ties} ties left out" if ties else "")]
    held = [d for d in scored if d.pair.label is not None and not d.seen]
    if held:
        right = sum(d.preferred == d.pair.label for d in held)
        asked = sum((d.own_answer or 0.0) > 0.5 if d.pair.label == 1 else (d.own_answer or 0.0) < 0.5 for d in held)
        lines.append(f"of {len(held)} labelled pairs that are new to it {right} right; asking the model itself {asked}")
    if seen := sum(d.seen for d in scored):
        lines.append(f"{seen} pairs have a question that it was trained on: they do not count")
    for reason in sorted({d.reason.partition(":")[0] for d in found if d.reason}):
        lines.append(f"unscored, {reason}: {sum(d.reason.startswith(reason) for d in found)}")
    return "\n".join(lines)
