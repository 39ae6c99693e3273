"""Write the dilemmas that the judges of logs disagree about as a data set (paper 003, appendix F,
Algorithm 1).

    inspect eval selfprobe/dilemma_generation --model google/gemini-2.5-flash --log-dir logs/dilemmas
    inspect eval selfprobe/dilemma_judging --model none -T generation_log=logs/dilemmas --log-dir logs/judging \\
        --model-role judge=openai/gpt-5-mini,anthropic/claude-haiku-4-5,mistral/mistral-medium-latest
    python examples/dilemmas.py logs/judging --out mine.jsonl
    inspect eval selfprobe/ethical_dilemma --model openai/gpt-5-mini -T dataset=mine.jsonl
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from inspect_ai.log import EvalSample
from inspect_ai.scorer import Score

from selfprobe.building.dilemma_judging import finished_runs
from selfprobe.data import Row
from selfprobe.errors import InputError, RunError
from selfprobe.logs import samples
from selfprobe.scorers.decision import decisions_of
from selfprobe.scorers.dilemma_making import JudgeSamples
from selfprobe.text.safe import echo


def judged_rows(paths: Sequence[str]) -> tuple[list[Row], Counter[str]]:
    """Every scored dilemma of finished logs of dilemma_judging, and why others are none, by reason.

    Rows are in schema F.5: `id`, `dilemma`, `axes`, `judges` (each `model`, `samples` [[P(A), P(B)]
    or null], `faults`, and the `mean` that was used), `jsd` in nats, `generation`; and `kept`.

    Raises:
        ValueError: There is no finished log, two hold the same dilemma, or a dilemma has no score
            of this task.
        InputError: There is no such file or folder.
    """
    rows: dict[str, tuple[str, Row]] = {}
    lost: Counter[str] = Counter()
    for run in finished_runs(paths, "dilemma_judging"):
        place = run.log
        for sample in samples(place):
            if str(sample.id) in rows:
                raise InputError(
                    f"dilemma {sample.id} is in {rows[str(sample.id)][0]} and in {place}; pass one of these logs"
                )
            if sample.error or not sample.scores:
                lost["error"] += 1
                continue
            score = _own_score(sample, place)
            decisions = {decision.key: decision for decision in decisions_of(score)}
            if reason := decisions["jsd"].unscored:
                lost[reason] += 1
                continue
            panel = [JudgeSamples(**given) for given in (score.metadata or {})["judges"]]
            rows[str(sample.id)] = (
                place,
                {
                    "id": str(sample.id),
                    "dilemma": sample.input,
                    "axes": sample.metadata["axes"],
                    "judges": [_as_row(one) for one in panel],
                    "jsd": decisions["jsd"].value,
                    "generation": sample.metadata["generation"],
                    "kept": bool(decisions["kept"].value),
                },
            )
    return [row for _, row in rows.values()], lost


def _own_score(sample: EvalSample, place: str) -> Score:
    """The task's own score, its last one: `inspect score --action append` adds others, and new ones
    of the same.
    """
    scores = sample.scores or {}
    own = [score for score in scores.values() if {"keys", "judges"} <= set(score.metadata or {})]
    if not own:
        raise InputError(
            f"{place}: expected a score of dilemma_controversy for dilemma {sample.id}, got {', '.join(scores)}; "
            "`inspect score --scorer selfprobe/dilemma_controversy` adds it"
        )
    return own[-1]


def _as_row(one: JudgeSamples) -> dict[str, Any]:
    return {"model": one.model, "samples": one.samples, "faults": one.faults, "mean": one.mean}


def kept_table(rows: Sequence[Row]) -> str:
    """How many dilemmas were kept, for each axis value and in all."""
    total, kept = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in rows:
        for pair in (row["axes"] or {"axes": "none given"}).items():
            total[pair] += 1
            kept[pair] += row["kept"]
    lines = [
        f"{axis:13} {value:26} {kept[axis, value]:4} of {total[axis, value]:4}"
        for axis, value in sorted(total)
    ]
    return "\n".join([*lines, f"{'all':40} {sum(row['kept'] for row in rows):4} of {len(rows):4}"])


@click.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("--out", required=True, help="The data set file to write, .jsonl.")
def dilemmas(logs: tuple[str, ...], out: str) -> None:
    """Write the dilemmas that the judges of LOGS (dilemma_judging: files or folders) disagree
    about.
    """
    if not out.endswith(".jsonl"):
        raise click.BadParameter(f"the data set is a .jsonl file, got {out!r}", param_hint="--out")
    rows, lost = judged_rows(logs)
    echo(kept_table(rows))
    for reason, count in sorted(lost.items()):
        echo(f"unscored: {count} ({reason})")
    kept = [
        {key: value for key, value in row.items() if key != "kept"} for row in rows if row["kept"]
    ]
    if not kept:
        raise RunError(
            "no dilemma was kept, so no file is written; the threshold is the runs' -T threshold"
        )
    Path(out).write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept), encoding="utf-8"
    )
    echo(f"{len(kept)} dilemmas in {out}: inspect eval selfprobe/ethical_dilemma -T dataset={out}")


if __name__ == "__main__":
    try:
        dilemmas()
    except (InputError, RunError) as error:
        sys.exit(f"Error: {error}")
