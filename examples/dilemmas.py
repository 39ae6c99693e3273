"""Write the dilemmas that the judges of logs disagree about as a data set (IntrospectBench,
appendix F, Algorithm 1).

    inspect eval selfprobe/dilemma_generation --model google/gemini-3.5-flash-lite --log-dir logs/dilemmas
    inspect eval selfprobe/dilemma_judging --model none -T generation_log=logs/dilemmas --log-dir logs/judging \\
        --model-role judge=openai/gpt-5.6-luna,anthropic/claude-haiku-5-5,mistral/mistral-medium-latest
    python examples/dilemmas.py logs/judging --out mine.jsonl
    inspect eval selfprobe/ethical_dilemma --model openai/gpt-5.6-luna -T dataset=mine.jsonl
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
    row_by_id: dict[str, Row] = {}
    log_by_id: dict[str, str] = {}
    unscored_counts: Counter[str] = Counter()
    for run in finished_runs(paths, "dilemma_judging"):
        for sample in samples(run.log):
            item = str(sample.id)
            if item in row_by_id:
                raise InputError(
                    f"dilemma {item} is in {log_by_id[item]} and in {run.log}; "
                    "pass one of these logs"
                )
            if sample.error or not sample.scores:
                unscored_counts["error"] += 1
                continue
            score = _score_of_judges(sample, run.log)
            decisions = {decision.key: decision for decision in decisions_of(score)}
            if decisions["jsd"].unscored:
                unscored_counts[decisions["jsd"].unscored] += 1
                continue

            judges = [_judge_row(fields) for fields in (score.metadata or {})["judges"]]
            log_by_id[item] = run.log
            row_by_id[item] = {
                "id": item,
                "dilemma": sample.input,
                "axes": sample.metadata["axes"],
                "judges": judges,
                "jsd": decisions["jsd"].value,
                "generation": sample.metadata["generation"],
                "kept": bool(decisions["kept"].value),
            }
    return list(row_by_id.values()), unscored_counts


def _score_of_judges(sample: EvalSample, log: str) -> Score:
    """The task's own score, its last one: `inspect score --action append` adds others, and new ones
    of the same.
    """
    scores = sample.scores or {}
    judge_scores = [
        score for score in scores.values() if {"keys", "judges"} <= set(score.metadata or {})
    ]
    if not judge_scores:
        raise InputError(
            f"{log}: expected a score of dilemma_controversy for dilemma {sample.id}, got "
            f"{', '.join(scores)}; `inspect score --scorer selfprobe/dilemma_controversy` adds it"
        )
    return judge_scores[-1]


def _judge_row(fields: dict[str, Any]) -> dict[str, Any]:
    judge = JudgeSamples(**fields)
    return {
        "model": judge.model,
        "samples": judge.samples,
        "faults": judge.faults,
        "mean": judge.mean,
    }


def kept_table(rows: Sequence[Row]) -> str:
    """How many dilemmas were kept, for each axis value and in all."""
    total_counts: Counter[tuple[str, str]] = Counter()
    kept_counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        axes = row["axes"] or {"axes": "none given"}
        for axis_and_value in axes.items():
            total_counts[axis_and_value] += 1
            kept_counts[axis_and_value] += row["kept"]

    lines: list[str] = []
    for axis, value in sorted(total_counts):
        kept_count = kept_counts[axis, value]
        lines.append(f"{axis:13} {value:26} {kept_count:4} of {total_counts[axis, value]:4}")
    kept_total = sum(row["kept"] for row in rows)
    lines.append(f"{'all':40} {kept_total:4} of {len(rows):4}")
    return "\n".join(lines)


@click.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("--out", required=True, help="The data set file to write, .jsonl.")
def dilemmas(logs: tuple[str, ...], out: str) -> None:
    """Write the dilemmas that the judges of LOGS (dilemma_judging: files or folders) disagree
    about.
    """
    if not out.endswith(".jsonl"):
        raise click.BadParameter(f"the data set is a .jsonl file, got {out!r}", param_hint="--out")
    rows, unscored_counts = judged_rows(logs)
    echo(kept_table(rows))
    for reason, count in sorted(unscored_counts.items()):
        echo(f"unscored: {count} ({reason})")

    lines: list[str] = []
    for row in rows:
        is_kept = row.pop("kept")
        if is_kept:
            lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    if not lines:
        raise RunError(
            "no dilemma was kept, so no file is written; the threshold is the runs' -T threshold"
        )
    Path(out).write_text("".join(lines), encoding="utf-8")
    echo(f"{len(lines)} dilemmas in {out}: inspect eval selfprobe/ethical_dilemma -T dataset={out}")


if __name__ == "__main__":
    try:
        dilemmas()
    except (InputError, RunError) as error:
        sys.exit(f"Error: {error}")
