"""`selfprobe probe transfer`, `ablate` and `score`: thin command lines over selfprobe/probes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from selfprobe import options
from selfprobe.probes.options import ALLOW_PICKLE, quiet_model, said_plainly
from selfprobe.safe import echo
from selfprobe.study import commands

if TYPE_CHECKING:
    from selfprobe.probes.score import Judgement


def _studies() -> dict[str, click.Command]:
    return {name: commands(f"probe{name}")[f"probe{name}"] for name in ("compare", "finetune", "run")}


@click.group(cls=options.Group, studies=_studies)
def probe() -> None:
    """Preference probes: what a judge model knows before it speaks (paper 004)."""


@probe.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--prompted",
    type=click.Path(file_okay=False, path_type=Path),
    help="A run of the same model and data under another --system: FOLDER's probes on its states.",
)
def transfer(folder: Path, prompted: Path | None) -> None:
    """Probes of each data set of the run in FOLDER on every other one, and the cosines of their directions."""
    with said_plainly("Nothing was written."):
        if prompted:
            _prompted(folder, prompted)
            return
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


def _prompted(folder: Path, other: Path) -> None:
    """What another system turn changes of probes and of asking."""
    from selfprobe.page import shown
    from selfprobe.preferences.page import publish, text
    from selfprobe.probes.transfer import prompted_run

    found = prompted_run(folder, other).query("metric == 'f1'")
    cells = found.assign(f1=[shown(row, sign="less" in row.what) for row in found.itertuples()])
    echo(text(cells.pivot(index=["dataset", "method"], columns="what", values="f1").reset_index().fillna("")))
    echo(f"\nTable: {other}/tables/prompted.csv   Report: {publish(other)}")


@probe.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--datasets", default="", help="Data sets, comma-separated. Default: all of the run.")
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
@click.option("--model", help="Path or hub name of the model. Default: the one on the probe's card.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Decisions as JSONL. Default: standard output."
)
@click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for cached states. Default: next to the probe.",
)
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
