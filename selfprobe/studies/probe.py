"""`selfprobe probe score`: a thin command line over selfprobe/probes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from selfprobe.study import commands, options
from selfprobe.study.local import ALLOW_PICKLE, quiet_model, user_errors_as_input_errors
from selfprobe.text.safe import echo

if TYPE_CHECKING:
    from selfprobe.probes.fit import Centre
    from selfprobe.probes.probe_file import Judgement


def _studies() -> dict[str, click.Command]:
    return {"run": commands("proberun")["proberun"]}


@click.group(cls=options.Group, studies=_studies)
def probe() -> None:
    """Latent-preference probes: what a judge model knows before it speaks."""


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
@click.option(
    "--centre",
    type=click.Choice(("source", "tested")),
    default="source",
    show_default=True,
    help=(
        "Means that are taken off the states: of the probe's training half, or of PAIRS. With both "
        "orders they drop out."
    ),
)
@click.option("--device", default="cpu", show_default=True)
@click.option("--device-map", help="Accelerate's device map, such as auto.")
@ALLOW_PICKLE
def score(
    file: Path,
    pairs: str,
    model: str | None,
    out: Path | None,
    cache: Path | None,
    centre: "Centre",
    **loading: Any,
) -> None:
    """Judge PAIRS with a fitted probe: your own file (question, text_1, text_2),
    hf:owner/name@REVISION, or a data set.

    What is asked, and the system turn, are those that the probe was fitted under.
    """
    with user_errors_as_input_errors("The same command goes on where this one stopped."):
        from selfprobe.data.own import Words
        from selfprobe.data.public_pairs import load_pairs
        from selfprobe.probes.fit import centre_of_probe
        from selfprobe.probes.probe_file import judge_pairs, load_probe

        fitted_probe = load_probe(file)
        card = fitted_probe.card
        pair_set = load_pairs(
            pairs,
            words=Words(card.question, card.item),
            conversations=card.prompts == "conversations",
        )

        is_local_model = card.revision.startswith("local-")
        revision = None if model or is_local_model else card.revision
        judge_settings = loading | card.precision | {"revision": revision, "chat": card.chat}
        judge = quiet_model(model or card.model, judge_settings)
        cache_folder = cache or file.parent / "activations"
        judgements = judge_pairs(
            fitted_probe, judge, pair_set.pairs, cache=cache_folder, centre=centre
        )

        jsonl_lines = [json.dumps(_row(item), ensure_ascii=False) + "\n" for item in judgements]
        jsonl = "".join(jsonl_lines)
        if out:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(jsonl, encoding="utf-8")
        else:
            echo(jsonl, nl=False)
        summary = _summary(judgements, file, pair_set.ties)
        centre_line = CENTRE_LINES[centre_of_probe(fitted_probe.probe.orders, centre)]
        echo(f"{summary}\n{centre_line}", err=True)


CENTRE_LINES = {
    "source": "centred by the means of its training half (--centre source)",
    "tested": "centred by the means of these pairs (--centre tested)",
    "none": "both orders are read, so that means drop out",
}
"""Centre of the scores → what the summary says of it."""


def _row(judgement: "Judgement") -> dict[str, Any]:
    row = {
        "id": judgement.pair.id,
        "preferred": judgement.preferred,
        "score": judgement.score,
        "own_answer": judgement.own_answer,
        "label": judgement.pair.label,
        "seen_in_training": judgement.is_trained_on,
    }
    if judgement.reason:
        row["unscored"] = judgement.reason
    return row


def _summary(judgements: "Sequence[Judgement]", file: Path, tie_count: int) -> str:
    judged = [judgement for judgement in judgements if judgement.preferred is not None]
    headline = f"{len(judged)} of {len(judgements)} pairs judged by {file.name}"
    if tie_count:
        headline += f"; {tie_count} ties left out"
    lines = [headline]

    new_pairs = [item for item in judged if item.pair.label is not None and not item.is_trained_on]
    if new_pairs:
        probe_right = sum(item.preferred == item.pair.label for item in new_pairs)
        model_right = sum(_is_own_answer_right(item) for item in new_pairs)
        lines.append(
            f"of {len(new_pairs)} labelled pairs that are new to it {probe_right} right; "
            f"asking the model itself {model_right}"
        )

    seen_count = sum(judgement.is_trained_on for judgement in judged)
    if seen_count:
        lines.append(
            f"{seen_count} pairs have a question that it was trained on: they do not count"
        )

    reasons = [judgement.reason for judgement in judgements if judgement.reason]
    reason_kinds = {reason.partition(":")[0] for reason in reasons}
    for reason_kind in sorted(reason_kinds):
        pair_count = sum(reason.startswith(reason_kind) for reason in reasons)
        lines.append(f"unscored, {reason_kind}: {pair_count}")
    return "\n".join(lines)


def _is_own_answer_right(judgement: "Judgement") -> bool:
    first_probability = judgement.own_answer or 0.0
    if judgement.pair.label == 1:
        return first_probability > 0.5
    return first_probability < 0.5
