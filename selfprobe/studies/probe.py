"""`selfprobe probe score`: a thin command line over selfprobe/probes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from selfprobe.study import commands, options
from selfprobe.study.local import ALLOW_PICKLE, quiet_model, said_plainly
from selfprobe.text.safe import echo

if TYPE_CHECKING:
    from selfprobe.probes.probe_file import Judgement


def _studies() -> dict[str, click.Command]:
    return {"run": commands("proberun")["proberun"]}


@click.group(cls=options.Group, studies=_studies)
def probe() -> None:
    """Preference probes: what a judge model knows before it speaks (paper 004)."""


@probe.command()
@click.option("--probe", "file", required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.argument("pairs")
@click.option(
    "--model", help="Path or hub name of the model. Default: the one on the probe's card."
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Decisions as JSONL. Default: standard output.",
)
@click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for cached states. Default: next to the probe.",
)
@click.option("--device", default="cpu", show_default=True)
@click.option("--device-map", help="Accelerate's device map, such as auto.")
@ALLOW_PICKLE
def score(
    file: Path, pairs: str, model: str | None, out: Path | None, cache: Path | None, **loading: Any
) -> None:
    """Judge PAIRS with a fitted probe: your own file (question, text_1, text_2),
    hf:owner/name@REVISION, or a data set.

    What is asked, and the system turn, are those that the probe was fitted under.
    """
    with said_plainly("The same command goes on where this one stopped."):
        from selfprobe.data.own import Words
        from selfprobe.data.public_pairs import load_pairs
        from selfprobe.probes.probe_file import judge_pairs, load_probe

        fitted = load_probe(file)
        card = fitted.card
        given = load_pairs(
            pairs,
            words=Words(card.question, card.item),
            conversations=card.prompts == "conversations",
        )
        commit = None if model or card.revision.startswith("local-") else card.revision
        judge = quiet_model(
            model or card.model, loading | card.precision | {"revision": commit, "chat": card.chat}
        )
        found = judge_pairs(fitted, judge, given.pairs, cache=cache or file.parent / "activations")
        lines = "".join(
            json.dumps(_row(judgement), ensure_ascii=False) + "\n" for judgement in found
        )
        if out:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(lines, encoding="utf-8")
        else:
            echo(lines, nl=False)
        echo(_summary(found, file, given.ties), err=True)


def _row(said: "Judgement") -> dict[str, Any]:
    named = {"id": said.pair.id, "preferred": said.preferred, "score": said.score}
    named |= {
        "own_answer": said.own_answer,
        "label": said.pair.label,
        "seen_in_training": said.seen,
    }
    return named | ({"unscored": said.reason} if said.reason else {})


def _summary(found: "Sequence[Judgement]", file: Path, ties: int) -> str:
    scored = [d for d in found if d.preferred is not None]
    lines = [
        f"{len(scored)} of {len(found)} pairs judged by {file.name}"
        + (f"; {ties} ties left out" if ties else "")
    ]
    held = [d for d in scored if d.pair.label is not None and not d.seen]
    if held:
        right = sum(d.preferred == d.pair.label for d in held)
        asked = sum(
            (d.own_answer or 0.0) > 0.5 if d.pair.label == 1 else (d.own_answer or 0.0) < 0.5
            for d in held
        )
        lines.append(
            f"of {len(held)} labelled pairs that are new to it {right} right; asking the model itself {asked}"
        )
    if seen := sum(d.seen for d in scored):
        lines.append(f"{seen} pairs have a question that it was trained on: they do not count")
    for reason in sorted({d.reason.partition(":")[0] for d in found if d.reason}):
        lines.append(f"unscored, {reason}: {sum(d.reason.startswith(reason) for d in found)}")
    return "\n".join(lines)
