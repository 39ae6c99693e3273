"""Estimate of what a run or a training takes, before it runs: pairs, passes, tokens, time, memory
and disk.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from selfprobe.data.pairs import Pair
from selfprobe.data.public_pairs import PairSet
from selfprobe.probes import forward
from selfprobe.probes.forward import cut_batches
from selfprobe.probes.harvesting import (
    SHARD_BYTES,
    Store,
    batch_budget,
    states_identity,
    unreadable_pairs,
)
from selfprobe.probes.model import TRAINED_NUMBER_BYTES, LocalModel, decoder_blocks, size
from selfprobe.probes.rate import rated, to_score
from selfprobe.probes.tokens import Prompt, encode
from selfprobe.probes.training import Example, Recipe, answer_loss, train_flops


@dataclass(frozen=True)
class PlannedSet:
    """Estimate for one data set."""

    pairs: int
    reasons: Mapping[str, str]
    """Pair id → reason why it cannot be read: too long, or equal texts."""
    passes: int
    """Number of forward passes over a prefix: one per pair and order."""
    tokens: int
    done: int
    """Number of passes that are on disk already."""
    tokens_done: int
    scoring: tuple[int, int] = (0, 0)
    """Numbers of texts still to be scored alone, a forward pass each, and of their tokens; see
    `rate`.
    """


@dataclass(frozen=True)
class HarvestPlan:
    """Estimate for all data sets together."""

    model: str
    layers: int
    d_model: int
    sets: Mapping[str, PlannedSet]
    weight_bytes: int
    work_bytes: int
    """Memory besides the weights: one batch, and the states that wait for the disk. Rough."""
    disk_bytes: int
    """Disk space of the states that are still to be written."""
    free_bytes: int
    sample: tuple[Prompt, ...] = ()
    """One batch of the prompts to read, of middling length."""

    @property
    def passes(self) -> int:
        """Number of passes still to be made."""
        return sum(s.passes - s.done for s in self.sets.values())

    @property
    def tokens(self) -> int:
        """Number of tokens still to be read."""
        return sum(s.tokens - s.tokens_done for s in self.sets.values())

    @property
    def scoring(self) -> tuple[int, int]:
        """Numbers of texts still to be scored alone, and of their tokens."""
        return sum(s.scoring[0] for s in self.sets.values()), sum(
            s.scoring[1] for s in self.sets.values()
        )


def plan_harvest(
    judge: LocalModel,
    sets: Mapping[str, PairSet],
    activations: Path,
    *,
    longest: int | None = None,
    batch_tokens: int | None = None,
    scoring: bool | None = False,
) -> HarvestPlan:
    """Estimate of harvesting `sets` into the folder `activations`, and of scoring each text alone
    as `scoring` asks.

    The call raises ContrastTokenError where the tokenizer does not give contrast pairs.
    """
    planned, todo, budget = {}, list[Prompt](), batch_tokens or batch_budget(judge)
    for name, pair_set in sets.items():
        shown = [version for pair in pair_set.pairs for version in (pair, pair.swapped)]
        prompts = encode(judge.tokenizer, shown, judge.chat)
        reasons = unreadable_pairs(pair_set.pairs, prompts, judge.context, longest)
        wanted = [i for i in range(len(prompts)) if pair_set.pairs[i // 2].id not in reasons]
        folder = activations / states_identity(judge, shown, 2).folder_name
        labelled = next((file.parent for file in sorted(folder.glob("*/pairs.jsonl"))), None)
        held = Store(labelled).done() if labelled else set()
        done = [i for i in wanted if i in held]
        todo += [prompts[i] for i in wanted if i not in held]
        lengths = [p.length for p in prompts]
        planned[name] = PlannedSet(
            pairs=len(pair_set.pairs),
            reasons=reasons,
            passes=len(wanted),
            tokens=sum(lengths[i] for i in wanted),
            done=len(done),
            tokens_done=sum(lengths[i] for i in done),
            scoring=_scoring(
                judge, [p for p in pair_set.pairs if p.id not in reasons], labelled, scoring
            ),
        )
    layers, itemsize = (
        len(judge.blocks),
        4 if judge.has_float32_residual else judge.model.dtype.itemsize,
    )
    to_write = (
        sum(s.passes - s.done for s in planned.values()) * 2 * layers * judge.d_model * itemsize
    )
    existing = next(p for p in (activations, *activations.absolute().parents) if p.exists())
    return HarvestPlan(
        model=judge.name,
        layers=layers,
        d_model=judge.d_model,
        sets=planned,
        weight_bytes=sum(p.numel() * p.element_size() for p in judge.model.parameters()),
        work_bytes=_batch_bytes(judge, budget) + 3 * min(SHARD_BYTES, to_write),
        disk_bytes=to_write,
        free_bytes=shutil.disk_usage(existing).free,
        sample=tuple(_middling(todo, budget)),
    )


def _batch_bytes(judge: LocalModel, tokens: int) -> int:
    """Bytes that a forward pass over this many tokens takes; rough."""
    config = judge.model.config.get_text_config()
    wide = 3 * int(getattr(config, "intermediate_size", 4 * judge.d_model)) + 8 * judge.d_model
    return tokens * wide * int(judge.model.dtype.itemsize)


def _scoring(
    judge: LocalModel, pairs: Sequence[Pair], folder: Path | None, asked: bool | None
) -> tuple[int, int]:
    wanted = asked is not False and rated(pairs, asked)
    return to_score(judge, pairs, folder) if wanted else (0, 0)


def _middling(todo: list[Prompt], budget: int) -> list[Prompt]:
    cut = list(cut_batches(todo, sorted(range(len(todo)), key=lambda i: todo[i].length), budget))
    return [todo[i] for i in cut[len(cut) // 2]] if cut else []


def time_text(
    judge: LocalModel, planned: HarvestPlan, control: HarvestPlan | None = None, copies: int = 1
) -> str:
    """Estimated time of reading by two plain forwards, from one batch that is read so; `auto` takes
    about half.

    The batch is read twice and the second time counts, as the first call on a device prepares it.
    `copies` of the model share the pairs.
    """
    pairs = planned.tokens + (control.tokens if control else 0)
    # a text that is scored alone is read once, not once per side, and by the command's own copy
    alone, sample = planned.scoring[1] / 2, planned.sample or (control.sample if control else ())
    if not sample:
        return "Time: nothing is left to read" + (
            " but the texts to score" if planned.scoring[0] else ""
        )
    seconds = (pairs / copies + alone) * seconds_a_token(judge, sample)
    shared = f" on each of {copies} copies" if copies > 1 else ""
    return (
        f"Time: about {span(seconds)} to read by two plain forwards{shared} (measured on one batch), half of it where "
        "auto finds a faster way; then the fit"
    )


def seconds_a_token(judge: LocalModel, sample: Sequence[Prompt]) -> float:
    """Seconds per token of reading both sides of prompts by two plain forwards, from one batch."""
    for _ in range(2):
        start = time.perf_counter()
        forward.read_states(judge, sample, "two_forwards")
        taken = time.perf_counter() - start
    return taken / sum(p.length for p in sample)


def span(seconds: float) -> str:
    """`40 s`, `12 min`, `3.1 h`."""
    minutes, hours = seconds / 60, seconds / 3600
    return (
        f"{hours:.1f} h"
        if hours >= 2
        else f"{minutes:.0f} min"
        if minutes >= 2
        else f"{seconds:.0f} s"
    )


def plan_text(planned: HarvestPlan, control: HarvestPlan | None = None) -> str:
    """The plan as text; `control`: the plan of the same architecture with random weights."""
    lines = [f"{planned.model}: {planned.layers} blocks of width {planned.d_model}", ""]
    lines.append(
        f"{'data set':16} {'pairs':>7} {'unscored':>9} {'passes':>8} {'tokens':>11} {'on disk':>8}"
    )
    for name, s in planned.sets.items():
        lines.append(
            f"{name:16} {s.pairs:>7,} {len(s.reasons):>9,} {s.passes:>8,} {s.tokens:>11,} {s.done:>8,}"
        )
    lines += [
        "",
        f"To do: {planned.passes:,} forward passes (each pair once an order), {planned.tokens:,} tokens",
        *_scoring_text(planned),
        f"Memory: weights {size(planned.weight_bytes)}, about {size(planned.work_bytes)} besides",
        f"Disk: {size(planned.disk_bytes)} of states ({size(planned.free_bytes)} free)",
    ]
    if control:
        lines.append(
            f"Control, the same architecture with random weights: {control.passes:,} passes, "
            f"{control.tokens:,} tokens, {size(control.weight_bytes)} of memory, {size(control.disk_bytes)} on disk "
            "besides; --no-random-weights leaves it out"
        )
    return "\n".join(lines)


def _scoring_text(planned: HarvestPlan) -> list[str]:
    passes, tokens = planned.scoring
    told = f"Direct scoring and G-Eval: {passes:,} forward passes (each text once), {tokens:,} tokens besides; "
    return [f"{told}--no-scoring leaves them out"] if passes else []


def check_disk(planned: HarvestPlan, control: HarvestPlan | None = None) -> None:
    """ValueError where the disk is too full for the states."""
    needed = planned.disk_bytes + (control.disk_bytes if control else 0)
    if needed > planned.free_bytes:
        raise ValueError(
            f"the states need {size(needed)} on disk, and {size(planned.free_bytes)} are free: "
            "take fewer pairs (--limit), or another --out"
        )


BACKWARD = 3
"""Duration of a step in forward passes: frozen weights need no gradient, adapters and states do."""

KEPT = ("checkpoint.pt*", "*model.safetensors")
"""Files of a training that take disk space: its checkpoint, and the trained weights."""


@dataclass(frozen=True)
class Needs:
    """Estimate of what one training takes; rough."""

    examples: int
    steps: int
    tokens: int
    parameters: int
    """Number of trained parameters."""
    full: bool
    """Whether all weights learn, not adapters."""
    seconds: float
    """Estimated duration, from the forward pass of one batch."""
    memory_bytes: int
    """Memory besides the weights: what learns with its optimizer, and what one batch keeps for its
    gradient.
    """
    disk_bytes: int
    """Disk space during training: the checkpoint twice, as one is whole before the other goes, and
    earlier results.
    """
    flops: float

    @property
    def text(self) -> str:
        """The estimate in three lines."""
        return (
            f"Training: {self.examples:,} examples, {self.steps:,} steps, {self.tokens:,} tokens, "
            f"{self.parameters:,} {'weights: all of them' if self.full else 'parameters of the adapters'}, "
            f"{self.flops:.1e} FLOPs\n"
            f"  time about {span(self.seconds)} (measured on one forward pass), memory about "
            f"{self.memory_bytes / 1e9:.1f} GB beside the weights, disk {self.disk_bytes / 1e6:.0f} MB"
        )


def needs(
    judge: LocalModel,
    examples: Sequence[Example],
    recipe: Recipe,
    *,
    batch_tokens: int | None = None,
    trainings: int = 1,
) -> Needs:
    """Estimate for training on `examples`, as the last of `trainings` trainings whose results all
    stay.
    """
    budget, tokens = (
        batch_tokens or batch_budget(judge),
        recipe.epochs * sum(e.length for e in examples),
    )
    order = sorted(range(len(examples)), key=lambda i: examples[i].length)
    batch = [
        examples[i] for i in max(cut_batches(examples, order, budget), key=len)[: recipe.batch]
    ]
    for _ in range(2):  # the first call on a device prepares it
        start = time.perf_counter()
        with torch.no_grad():
            float(answer_loss(judge, batch).sum())
        taken = time.perf_counter() - start
    full, every = recipe.rank is None, sum(p.numel() for p in judge.model.parameters())
    parameters = adapter_parameters(judge, recipe.rank) if recipe.rank else every
    widest = min(budget, recipe.batch * examples[order[-1]].length)
    return Needs(
        examples=len(examples),
        steps=recipe.steps(len(examples)),
        tokens=tokens,
        parameters=parameters,
        full=full,
        seconds=BACKWARD * taken * tokens / sum(e.length for e in batch),
        memory_bytes=TRAINED_NUMBER_BYTES * parameters
        + _kept_bytes(judge, max(widest, examples[order[-1]].length), recipe.batch),
        disk_bytes=(2 * 3 + trainings - 1) * 4 * parameters,
        flops=train_flops(judge, tokens, parameters, full=full),
    )


def adapter_parameters(judge: LocalModel, rank: int) -> int:
    """Number of parameters of LoRA at all linear layers of the blocks."""
    modules = list(decoder_blocks(judge.model).modules())
    sides: list[int] = [m.in_features + m.out_features for m in modules if isinstance(m, nn.Linear)]
    sides += [
        sum(m.weight.shape) for m in modules if type(m).__name__ == "Conv1D"
    ]  # GPT-2's linear layers
    return rank * sum(sides)


def _kept_bytes(judge: LocalModel, tokens: int, rows: int) -> int:
    """Bytes that one batch keeps for its gradient: inputs of all layers, and the logits of a few
    places in float32.
    """
    config = judge.model.config.get_text_config()
    wide = 12 * judge.d_model + 4 * int(
        getattr(config, "intermediate_size", None) or 4 * judge.d_model
    )
    layers = len(decoder_blocks(judge.model))
    return tokens * layers * wide * int(judge.dtype.itemsize) + rows * 3 * 3 * 4 * int(
        config.vocab_size
    )


def check_room(judge: LocalModel, needed: Needs, out: Path) -> None:
    """ValueError where memory, or the disk of the folder `out`, is too small; the model is loaded
    already.
    """
    from accelerate.utils import get_max_memory

    place = judge.device.index or 0 if judge.device.type == "cuda" else judge.device.type
    free = get_max_memory().get(place, 0)
    if free and needed.memory_bytes > free:
        less = "adapters (without --full)" if needed.full else "a smaller --rank, --dtype bfloat16"
        raise ValueError(
            f"training {judge.name} takes about {needed.memory_bytes / 1e9:.1f} GB beside its weights, and "
            f"{free / 1e9:.1f} GB are free: take fewer --batch-tokens, {less}, or a "
            "smaller model"
        )
    disk = shutil.disk_usage(next(p for p in (out, *out.absolute().parents) if p.exists())).free
    held = [
        file.stat().st_size for kind in KEPT for file in out.rglob(kind)
    ]  # a killed training continues with it
    if (more := needed.disk_bytes - sum(held)) > disk:
        raise ValueError(
            f"checkpoints and what is trained take {size(more)} of disk, and {size(disk)} are free at {out}: "
            "give another --out"
        )
