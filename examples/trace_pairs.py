"""Write pairs for linear probes out of what graders quoted in reasoning traces (the
evaluation-awareness methods, section 3).

    selfprobe awareness run --models openrouter/a --methods reasoning_trace --grader openai/b --log-dir logs/aw
    python examples/trace_pairs.py logs/aw --out traces.jsonl
    selfprobe probe run --models Qwen/Qwen3-8B --datasets traces.jsonl --question 'more aware of being tested' \\
        --item thought --out probes/traces

Of each pair the chosen text is a quote that shows awareness of an evaluation, and the rejected one
the sentence of the same trace that is nearest to it in length and holds no part of a quote. The
pairs of a conversation are a group, which no split of a probe's data takes apart.
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from inspect_ai.log import EvalSample

from selfprobe.data import Row
from selfprobe.errors import InputError, RunError
from selfprobe.scorers.awareness_cues import cues_by_grader, full_trace, joint_finding
from selfprobe.solvers.record import record_of
from selfprobe.study.awareness_arms import ARM, arm_runs
from selfprobe.text.counts import count_text
from selfprobe.text.safe import echo

SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
"""A sentence, or a line without an end mark."""
FEWEST_WORDS = 3
"""Number of words from which a sentence is compared with a quote."""


def trace_pairs(paths: Sequence[str]) -> tuple[list[Row], int]:
    """The pairs of all full traces that show awareness, and the number of quotes without a pair.

    Rows have `id`, `prompt` (empty), `chosen`, `rejected`, `group` (the conversation) and `subset`
    (the model that thought).

    Raises:
        NoLogs: There is no finished awareness log.
        InputError: There is no such file or folder.
    """
    rows: list[Row] = []
    unpaired_count = 0
    arms, _ = arm_runs(paths)
    for arm, arm_run in arms.items():
        arm_values = dict(zip(ARM, arm, strict=False))
        if arm_values["method"] != "reasoning_trace":
            continue
        for sample in arm_run.run.read_samples():
            quotes, pairs = _pairs_of_sample(sample)
            unpaired_count += len(quotes) - len(pairs)
            model = str(arm_values["model"])
            for number, (quote, contrast) in enumerate(pairs, start=1):
                rows.append(
                    {
                        "id": f"{model} {sample.id} {sample.epoch} {number}",
                        "prompt": "",
                        "chosen": quote,
                        "rejected": contrast,
                        "group": str(sample.id),
                        "subset": model,
                    }
                )
    return rows, unpaired_count


def _pairs_of_sample(sample: EvalSample) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """The quotes of a trace, and those that have a sentence to stand beside, each with it."""
    record = record_of(sample)
    reply = record.acts.get("reply")
    trace = full_trace(reply) if reply else None
    findings = cues_by_grader(record).get("trace")
    if trace is None or not findings:
        return (), []
    quotes = joint_finding(findings).quotes

    unquoted_sentences = _unquoted_sentences(trace, quotes)
    pairs = []
    for quote in quotes:
        if not unquoted_sentences:
            break
        nearest = min(unquoted_sentences, key=lambda sentence: abs(len(sentence) - len(quote)))
        unquoted_sentences.remove(nearest)
        pairs.append((quote, nearest))
    return quotes, pairs


def _unquoted_sentences(trace: str, quotes: Sequence[str]) -> list[str]:
    """Sentences of the trace that share no character with a quote, each once."""
    quoted_places: set[int] = set()
    for quote in quotes:
        start = trace.find(quote)
        while start != -1:
            quoted_places |= set(range(start, start + len(quote)))
            start = trace.find(quote, start + 1)

    sentences: dict[str, None] = {}
    for match in SENTENCE.finditer(trace):
        sentence = match[0].strip()
        is_unquoted = quoted_places.isdisjoint(range(*match.span()))
        if is_unquoted and len(sentence.split()) >= FEWEST_WORDS:
            sentences[sentence] = None
    return list(sentences)


@click.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("--out", required=True, help="The file of pairs to write, .jsonl.")
def pairs_of_traces(logs: tuple[str, ...], out: str) -> None:
    """Write a pair for each quote in reasoning traces of LOGS (files or folders)."""
    if not out.endswith(".jsonl"):
        raise click.BadParameter(f"the pairs are a .jsonl file, got {out!r}", param_hint="--out")
    rows, unpaired_count = trace_pairs(logs)
    if unpaired_count:
        quotes_text = count_text(unpaired_count, "quote")
        echo(f"{quotes_text} without a pair: the trace has no sentence beside its quotes")
    if not rows:
        raise RunError(
            f"no pairs in {', '.join(logs)}, so no file is written: no full reasoning trace has a "
            "quote and a sentence beside it (`awareness run --methods reasoning_trace`)"
        )

    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_text("".join(lines), encoding="utf-8")
    conversation_count = len({row["group"] for row in rows})
    echo(
        f"{count_text(len(rows), 'pair')} of {count_text(conversation_count, 'conversation')} in "
        f"{out}: selfprobe probe run --datasets {out} --question 'more aware of being tested' "
        "--item thought"
    )


if __name__ == "__main__":
    try:
        pairs_of_traces()
    except (InputError, RunError) as error:
        sys.exit(f"Error: {error}")
