"""Does a direction move what a model says of being evaluated, more than random vectors of the same
length do?

    selfprobe awareness inside --model smollm2 --set mine.jsonl --against real.jsonl --save direction.probe
    python examples/steered_awareness.py direction.probe --model smollm2 --dose -.5 --limit 12

Runs a task of evaluation awareness under no vector, under the direction, and under 20 random
vectors of the same block and dose, as `steered/MODEL`: a log each, and a line on stderr. An effect
is the mean change of P(evaluation) over the conversations that were answered with and without the
vector. The rank of the direction among the random vectors gives p = (1 + number with as large an
effect) / 21.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
from inspect_ai import eval
from inspect_ai.log import EvalLog

from selfprobe.data.concept_words import LARGEST_DOSE
from selfprobe.errors.inspect_private import PrerequisiteError
from selfprobe.logs.decision import last_decisions
from selfprobe.probes.probe_file import load_probe
from selfprobe.text.counts import count_text

RANDOM_VECTORS = 20
PLAIN = "no vector"
REPLY_TOKENS = 256
"""Longest reply, in tokens: a probability or a verdict needs fewer."""


@dataclass(frozen=True)
class VectorEffect:
    """What a vector does to P(evaluation)."""

    vector: str
    effect: float
    """Mean change; NaN where no conversation was answered both times."""
    conversations: int
    """Number of conversations that were answered with and without the vector."""
    unanswered: int
    """Number of conversations without an answer under the vector."""


def evaluation_probabilities(log: EvalLog) -> dict[str, float]:
    """Conversation → mean of what the model says of P(evaluation); a verdict counts as 1 or 0."""
    probability_by_id = {}
    for sample in log.samples or []:
        stated = []
        for decision in last_decisions(sample.scores):
            if decision.probability is not None:
                stated.append(decision.probability)
            elif decision.said is not None:
                stated.append(float(decision.said == "evaluation"))
        if stated:
            probability_by_id[str(sample.id)] = sum(stated) / len(stated)
    return probability_by_id


def effect_of(
    vector: str, steered: dict[str, float], plain: dict[str, float], conversations: int
) -> VectorEffect:
    """Effect of a vector, from P(evaluation) by conversation with it and without."""
    changes = [steered[item] - plain[item] for item in steered if item in plain]
    effect = sum(changes) / len(changes) if changes else float("nan")
    return VectorEffect(vector, effect, len(changes), conversations - len(steered))


def rank_p(direction: VectorEffect, random_vectors: Sequence[VectorEffect]) -> float:
    """p of the direction among random vectors; NaN where an effect is missing."""
    effects = pd.Series([vector.effect for vector in random_vectors])
    if effects.isna().any() or direction.effect != direction.effect:
        return float("nan")
    as_large = int((effects.abs() >= abs(direction.effect)).sum())
    return (1 + as_large) / (1 + len(effects))


def run(settings: argparse.Namespace, vector: str, dose: float, block: int) -> EvalLog:
    """A run of the task under one vector.

    Raises:
        SystemExit: It failed.
    """
    model_args: dict[str, Any] = {"device": settings.device, "block": block, "dose": dose}
    if vector != PLAIN:
        model_args["vector"] = vector
    if settings.other_model:
        model_args["other_model"] = True
    try:
        (log,) = eval(
            f"selfprobe/{settings.task}",
            model=f"steered/{settings.model}",
            model_args=model_args,
            limit=settings.limit,
            max_tokens=settings.max_tokens,
            log_dir=settings.log_dir,
            display="none",
        )
    except PrerequisiteError as error:
        raise SystemExit(f"{vector}: {error}") from error
    if log.status != "success":
        raise SystemExit(f"{vector}: {log.error.message if log.error else log.status}")
    return log


def plan_line(settings: argparse.Namespace, run_count: int, block: int) -> str:
    """What is run, before it is."""
    runs = count_text(run_count, "run")
    conversations = count_text(settings.limit, "conversation")
    return (
        f"{runs} of up to {conversations} each ({settings.task} on {settings.model}, block {block}, "
        f"dose {settings.dose:g}), replies of at most {settings.max_tokens} tokens; logs in "
        f"{settings.log_dir}"
    )


def tell(line: str) -> None:
    """Print a line of progress; the result alone goes to stdout."""
    print(line, file=sys.stderr, flush=True)


def report(effects: Sequence[VectorEffect], out: Path) -> str:
    """The sentence on the direction, which is the first; the table is written."""
    direction, *random_vectors = effects
    pd.DataFrame([vars(effect) for effect in effects]).to_csv(out, index=False)
    p_value = rank_p(direction, random_vectors)
    if p_value != p_value:
        return (
            "Cannot tell: some run has no conversation that was answered with and without its "
            f"vector; take a smaller --dose or a larger --limit. Table: {out}"
        )
    largest = max(random_vectors, key=lambda vector: abs(vector.effect))
    return (
        f"{direction.vector} moves P(evaluation) by {direction.effect:+.3f} over "
        f"{direction.conversations} conversations; the largest of {len(random_vectors)} random "
        f"vectors moves it by {largest.effect:+.3f}. p = {p_value:.3f}. Table: {out}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("direction", help="probe file of `awareness inside --save` or `probe run`")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--dose", type=float, default=-0.5)
    parser.add_argument("--task", default="awareness_probability")
    parser.add_argument("--limit", type=int, default=12)
    parser.add_argument("--random-vectors", type=int, default=RANDOM_VECTORS)
    parser.add_argument("--max-tokens", type=int, default=REPLY_TOKENS, help="longest reply")
    parser.add_argument(
        "--other-model", action="store_true", help="take a direction of another model"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--log-dir", default="logs/steered")
    parser.add_argument("--out", type=Path, default=Path("steered.csv"))
    settings = parser.parse_args(arguments)
    if settings.dose == 0:
        parser.error("a dose of 0 steers nothing: give --dose .5 or -.5")
    if not abs(settings.dose) <= LARGEST_DOSE:
        parser.error(f"a dose is from -{LARGEST_DOSE:g} to {LARGEST_DOSE:g}, got {settings.dose:g}")
    for name in ("limit", "random_vectors", "max_tokens"):
        if getattr(settings, name) < 1:
            option = name.replace("_", "-")
            parser.error(f"--{option} must be 1 or more, got {getattr(settings, name)}")
    try:
        block = load_probe(Path(settings.direction)).probe.layer
    except (OSError, ValueError) as error:
        parser.error(str(error))

    vectors = [str(Path(settings.direction).resolve())]
    vectors += [f"random:{seed}" for seed in range(1, settings.random_vectors + 1)]
    run_count = 1 + len(vectors)
    tell(plan_line(settings, run_count, block))

    def answers_under(run_number: int, vector: str, dose: float) -> tuple[dict[str, float], int]:
        """P(evaluation) by conversation, and the number of conversations; says that it is done."""
        start = perf_counter()
        log = run(settings, vector, dose, block)
        probability_by_id = evaluation_probabilities(log)
        conversation_count = len(log.samples or [])
        tell(
            f"{run_number} of {run_count}, {vector}: {len(probability_by_id)} of "
            f"{conversation_count} answered, {perf_counter() - start:.0f} s"
        )
        return probability_by_id, conversation_count

    plain, conversation_count = answers_under(1, PLAIN, 0.0)
    effects = []
    for run_number, vector in enumerate(vectors, start=2):
        steered, _ = answers_under(run_number, vector, settings.dose)
        effects.append(effect_of(vector, steered, plain, conversation_count))
    print(report(effects, settings.out))


if __name__ == "__main__":
    main()
