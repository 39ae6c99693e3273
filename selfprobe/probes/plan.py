"""Estimate of what a run or a training takes, before it runs: pairs, passes, tokens, time, memory
and disk.
"""

import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

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
from selfprobe.probes.model import TRAINED_NUMBER_BYTES, LocalModel, bytes_text, decoder_blocks
from selfprobe.probes.rate import is_scored_alone, pending_ratings
from selfprobe.probes.tokens import Prompt, encode
from selfprobe.probes.training import (
    Example,
    Recipe,
    answer_loss,
    is_linear_layer,
    train_flops,
)

PlanRow = tuple[str, str]
"""Line of a plan: its label, and its text."""


def plan_lines(rows: Iterable[PlanRow]) -> list[str]:
    """Rows of a plan as they are printed."""
    return [f"{label}: {text}" for label, text in rows]


def work_rows(
    *, pending: str, weight_bytes: int, work_bytes: int, disk: str = "", duration: str
) -> list[PlanRow]:
    """Rows on what is still to be read by a loaded model, and what that takes.

    Args:
        pending: Text of what is still to be read.
        work_bytes: Memory besides the weights.
        disk: Text of what is to be written; "" where that is little, and has no row.
        duration: Text on how long it takes.
    """
    memory = f"weights {bytes_text(weight_bytes)}, about {bytes_text(work_bytes)} besides"
    disk_rows = [("Disk", disk)] if disk else []
    return [("To do", pending), ("Memory", memory), *disk_rows, ("Time", duration)]


@dataclass(frozen=True)
class PlannedSet:
    """Estimate for one data set."""

    pairs: int
    reasons: Mapping[str, str]
    """Pair id → reason why it cannot be read: too long, or equal texts."""
    passes: int
    """Number of forward passes over a prefix: one per pair and order."""
    tokens: int
    stored_passes: int
    """Number of passes that are on disk already."""
    stored_tokens: int
    scoring: tuple[int, int] = (0, 0)
    """Numbers of texts still to be scored alone, a forward pass each, and of their tokens; see
    `rate`.
    """

    @property
    def pending_passes(self) -> int:
        """Number of passes still to be made."""
        return self.passes - self.stored_passes

    @property
    def pending_tokens(self) -> int:
        """Number of tokens still to be read."""
        return self.tokens - self.stored_tokens


@dataclass(frozen=True)
class HarvestPlan:
    """Estimate for all data sets together."""

    model_line: str
    """The model's name, number of blocks and width."""
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
        return sum(planned_set.pending_passes for planned_set in self.sets.values())

    @property
    def tokens(self) -> int:
        """Number of tokens still to be read."""
        return sum(planned_set.pending_tokens for planned_set in self.sets.values())

    @property
    def scoring(self) -> tuple[int, int]:
        """Numbers of texts still to be scored alone, and of their tokens."""
        scored_texts = 0
        scored_tokens = 0
        for planned_set in self.sets.values():
            set_texts, set_tokens = planned_set.scoring
            scored_texts += set_texts
            scored_tokens += set_tokens
        return scored_texts, scored_tokens


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
    token_budget = batch_tokens or batch_budget(judge)
    planned_sets = {}
    pending_prompts: list[Prompt] = []
    for name, pair_set in sets.items():
        planned_set, set_prompts = _plan_set(judge, pair_set, activations, longest, scoring)
        planned_sets[name] = planned_set
        pending_prompts += set_prompts

    layer_count = len(judge.blocks)
    number_bytes = 4 if judge.has_float32_residual else judge.model.dtype.itemsize
    pending_passes = sum(planned_set.pending_passes for planned_set in planned_sets.values())
    disk_bytes = pending_passes * 2 * layer_count * judge.d_model * number_bytes
    return HarvestPlan(
        model_line=judge.size_line,
        sets=planned_sets,
        weight_bytes=judge.weight_bytes,
        work_bytes=_batch_bytes(judge, token_budget) + 3 * min(SHARD_BYTES, disk_bytes),
        disk_bytes=disk_bytes,
        free_bytes=free_disk_bytes(activations),
        sample=tuple(_middle_batch(pending_prompts, token_budget)),
    )


def _plan_set(
    judge: LocalModel,
    pair_set: PairSet,
    activations: Path,
    longest: int | None,
    scoring: bool | None,
) -> tuple[PlannedSet, list[Prompt]]:
    """Estimate for one data set, and its prompts that are still to be read."""
    ordered_pairs = []
    for pair in pair_set.pairs:
        ordered_pairs += [pair, pair.swapped]
    prompts = encode(judge.tokenizer, ordered_pairs, judge.chat)
    reasons = unreadable_pairs(pair_set.pairs, prompts, judge.context, longest)

    folder = activations / states_identity(judge, ordered_pairs, 2).folder_name
    label_files = sorted(folder.glob("*/pairs.jsonl"))
    labelled_folder = label_files[0].parent if label_files else None
    stored_numbers = Store(labelled_folder).done() if labelled_folder else set()

    readable_prompts = []
    stored_prompts = []
    pending_prompts = []
    for number, prompt in enumerate(prompts):
        if pair_set.pairs[number // 2].id in reasons:
            continue
        readable_prompts.append(prompt)
        if number in stored_numbers:
            stored_prompts.append(prompt)
        else:
            pending_prompts.append(prompt)

    scored_counts = (0, 0)
    readable_pairs = [pair for pair in pair_set.pairs if pair.id not in reasons]
    if scoring is not False and is_scored_alone(readable_pairs, scoring):
        scored_counts = pending_ratings(judge, readable_pairs, labelled_folder)
    readable_tokens = sum(prompt.length for prompt in readable_prompts)
    stored_tokens = sum(prompt.length for prompt in stored_prompts)
    planned_set = PlannedSet(
        pairs=len(pair_set.pairs),
        reasons=reasons,
        passes=len(readable_prompts),
        tokens=readable_tokens,
        stored_passes=len(stored_prompts),
        stored_tokens=stored_tokens,
        scoring=scored_counts,
    )
    return planned_set, pending_prompts


def free_disk_bytes(folder: Path) -> int:
    """Free bytes on the disk of a folder that may not exist yet."""
    folders = (folder, *folder.absolute().parents)
    existing_folder = next(parent for parent in folders if parent.exists())
    return shutil.disk_usage(existing_folder).free


def _batch_bytes(judge: LocalModel, tokens: int) -> int:
    """Bytes that a forward pass over this many tokens takes; rough."""
    config = judge.model.config.get_text_config()
    inner_width = int(getattr(config, "intermediate_size", 4 * judge.d_model))
    numbers_a_token = 3 * inner_width + 8 * judge.d_model
    return tokens * numbers_a_token * int(judge.model.dtype.itemsize)


def _middle_batch(prompts: list[Prompt], token_budget: int) -> list[Prompt]:
    prompt_order = sorted(range(len(prompts)), key=lambda number: prompts[number].length)
    batches = list(cut_batches(prompts, prompt_order, token_budget))
    if not batches:
        return []
    return [prompts[number] for number in batches[len(batches) // 2]]


def time_text(
    judge: LocalModel, planned: HarvestPlan, control: HarvestPlan | None = None, copies: int = 1
) -> str:
    """Estimated time of reading by two plain forwards, from one batch that is read so; `auto` takes
    about half.

    The batch is read twice and the second time counts, as the first call on a device prepares it.
    `copies` of the model share the pairs.
    """
    scored_texts, scored_tokens = planned.scoring
    pair_tokens = planned.tokens
    sample = planned.sample
    if control:
        pair_tokens += control.tokens
        sample = sample or control.sample
    if not sample:
        exception = " but the texts to score" if scored_texts else ""
        return f"nothing is left to read{exception}"

    # a text that is scored alone is read once, not once per side, and by the command's own copy
    token_count = pair_tokens / copies + scored_tokens / 2
    seconds = token_count * seconds_a_token(judge, sample)
    copies_words = f" on each of {copies} copies" if copies > 1 else ""
    return (
        f"about {duration_text(seconds)} to read by two plain forwards{copies_words} (measured on "
        "one batch), half of it where auto finds a faster way; then the fit"
    )


def seconds_a_token(judge: LocalModel, sample: Sequence[Prompt]) -> float:
    """Seconds per token of reading both sides of prompts by two plain forwards, from one batch."""
    for _ in range(2):  # the first call on a device prepares it
        start_time = time.perf_counter()
        forward.read_states(judge, sample, "two_forwards")
        batch_seconds = time.perf_counter() - start_time
    return batch_seconds / sum(prompt.length for prompt in sample)


def duration_text(seconds: float) -> str:
    """`40 s`, `12 min`, `3.1 h`."""
    minutes = seconds / 60
    hours = seconds / 3600
    if hours >= 2:
        return f"{hours:.1f} h"
    if minutes >= 2:
        return f"{minutes:.0f} min"
    return f"{seconds:.0f} s"


def set_lines(planned: HarvestPlan) -> list[str]:
    """The model, and a table of the data sets."""
    lines = [
        planned.model_line,
        "",
        f"{'data set':16} {'pairs':>7} {'unscored':>9} {'passes':>8} {'tokens':>11} {'on disk':>8}",
    ]
    for name, planned_set in planned.sets.items():
        lines.append(
            f"{name:16} {planned_set.pairs:>7,} {len(planned_set.reasons):>9,} "
            f"{planned_set.passes:>8,} {planned_set.tokens:>11,} {planned_set.stored_passes:>8,}"
        )
    return lines


def harvest_rows(
    planned: HarvestPlan, control: HarvestPlan | None = None, *, duration: str
) -> list[PlanRow]:
    """Rows on reading all data sets.

    Args:
        control: The plan of the same architecture with random weights.
        duration: Text on how long both take.
    """
    to_do, memory, disk, time_row = work_rows(
        pending=f"{planned.passes:,} forward passes (each pair once an order), "
        f"{planned.tokens:,} tokens",
        weight_bytes=planned.weight_bytes,
        work_bytes=planned.work_bytes,
        disk=f"{bytes_text(planned.disk_bytes)} of states ({bytes_text(planned.free_bytes)} free)",
        duration=duration,
    )
    rows = [to_do]
    scored_texts, scored_tokens = planned.scoring
    if scored_texts:
        scoring = (
            f"{scored_texts:,} forward passes (each text once), {scored_tokens:,} tokens besides; "
            "--no-scoring leaves them out"
        )
        rows.append(("Direct scoring and G-Eval", scoring))
    rows += [memory, disk]
    if control:
        control_needs = (
            f"{control.passes:,} passes, {control.tokens:,} tokens, "
            f"{bytes_text(control.weight_bytes)} of memory, {bytes_text(control.disk_bytes)} on "
            "disk besides; --no-random-weights leaves it out"
        )
        rows.append(("Control, the same architecture with random weights", control_needs))
    return [*rows, time_row]


def check_disk(planned: HarvestPlan, control: HarvestPlan | None = None) -> None:
    """ValueError where the disk is too full for the states."""
    needed_bytes = planned.disk_bytes
    if control:
        needed_bytes += control.disk_bytes
    if needed_bytes > planned.free_bytes:
        raise ValueError(
            f"the states need {bytes_text(needed_bytes)} on disk, and {bytes_text(planned.free_bytes)} are "
            "free: take fewer pairs (--limit), or another --out"
        )


STEP_FORWARD_PASSES = 3
"""Duration of a step in forward passes: frozen weights need no gradient, adapters and states do."""

TRAINING_FILE_PATTERNS = ("checkpoint.pt*", "*model.safetensors")
"""Files of a training that take disk space: its checkpoint, and the trained weights."""


@dataclass(frozen=True)
class TrainingNeeds:
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

    def row(self, trainings: int = 1) -> PlanRow:
        """Row of a plan, in two lines, on that many trainings of the same kind."""
        trained_part = "weights: all of them" if self.full else "parameters of the adapters"
        text = (
            f"{self.examples:,} examples, {self.steps:,} steps, {self.tokens:,} tokens, "
            f"{self.parameters:,} {trained_part}, {self.flops:.1e} FLOPs\n"
            f"  time about {duration_text(self.seconds)} (measured on one forward pass), "
            f"memory about {self.memory_bytes / 1e9:.1f} GB beside the weights, "
            f"disk {self.disk_bytes / 1e6:.0f} MB"
        )
        if trainings > 1:
            text += f", {trainings} times"
        return "Training", text


def estimate_needs(
    judge: LocalModel,
    examples: Sequence[Example],
    recipe: Recipe,
    *,
    batch_tokens: int | None = None,
    trainings: int = 1,
) -> TrainingNeeds:
    """Estimate for training on `examples`, as the last of `trainings` trainings whose results all
    stay.
    """
    token_budget = batch_tokens or batch_budget(judge)
    token_count = recipe.epochs * sum(example.length for example in examples)
    example_order = sorted(range(len(examples)), key=lambda number: examples[number].length)
    fullest_batch = max(cut_batches(examples, example_order, token_budget), key=len)
    batch = [examples[number] for number in fullest_batch[: recipe.batch]]
    batch_length = sum(example.length for example in batch)
    for _ in range(2):  # the first call on a device prepares it
        start_time = time.perf_counter()
        with torch.no_grad():
            float(answer_loss(judge, batch).sum())
        forward_seconds = time.perf_counter() - start_time

    if recipe.rank is None:
        parameter_count = sum(weight.numel() for weight in judge.model.parameters())
    else:
        parameter_count = adapter_parameters(judge, recipe.rank)
    is_full = recipe.rank is None
    longest_example = examples[example_order[-1]].length
    largest_step = min(token_budget, recipe.batch * longest_example)
    gradient_bytes = _gradient_bytes(judge, max(largest_step, longest_example), recipe.batch)
    file_copies = 2 * 3 + trainings - 1  # the checkpoint twice, and earlier results
    return TrainingNeeds(
        examples=len(examples),
        steps=recipe.steps(len(examples)),
        tokens=token_count,
        parameters=parameter_count,
        full=is_full,
        seconds=STEP_FORWARD_PASSES * forward_seconds * token_count / batch_length,
        memory_bytes=TRAINED_NUMBER_BYTES * parameter_count + gradient_bytes,
        disk_bytes=file_copies * 4 * parameter_count,
        flops=train_flops(judge, token_count, parameter_count, full=is_full),
    )


def adapter_parameters(judge: LocalModel, rank: int) -> int:
    """Number of parameters of LoRA at all linear layers of the blocks."""
    side_lengths = 0
    for module in decoder_blocks(judge.model).modules():
        if isinstance(module, nn.Linear):
            side_lengths += module.in_features + module.out_features
        elif is_linear_layer(module):  # GPT-2's, whose weights lie the other way
            side_lengths += sum(module.weight.shape)
    return rank * side_lengths


def _gradient_bytes(judge: LocalModel, tokens: int, rows: int) -> int:
    """Bytes that one batch keeps for its gradient: inputs of all layers, and the logits of a few
    places in float32.
    """
    config = judge.model.config.get_text_config()
    inner_width = int(getattr(config, "intermediate_size", None) or 4 * judge.d_model)
    numbers_a_layer = 12 * judge.d_model + 4 * inner_width
    layer_count = len(decoder_blocks(judge.model))
    input_bytes = tokens * layer_count * numbers_a_layer * int(judge.dtype.itemsize)
    logit_bytes = rows * 3 * 3 * 4 * int(config.vocab_size)
    return input_bytes + logit_bytes


def check_room(judge: LocalModel, needed: TrainingNeeds, out: Path) -> None:
    """ValueError where memory, or the disk of the folder `out`, is too small; the model is loaded
    already.
    """
    from accelerate.utils import get_max_memory

    device: str | int = judge.device.type
    if device == "cuda":
        device = judge.device.index or 0
    free_memory = get_max_memory().get(device, 0)
    if free_memory and needed.memory_bytes > free_memory:
        remedy = (
            "adapters (without --full)" if needed.full else "a smaller --rank, --dtype bfloat16"
        )
        raise ValueError(
            f"training {judge.name} takes about {needed.memory_bytes / 1e9:.1f} GB beside its "
            f"weights, and {free_memory / 1e9:.1f} GB are free: take fewer --batch-tokens, "
            f"{remedy}, or a smaller model"
        )

    free_disk = free_disk_bytes(out)
    stored_bytes = 0  # a killed training continues with these files
    for pattern in TRAINING_FILE_PATTERNS:
        stored_bytes += sum(file.stat().st_size for file in out.rglob(pattern))
    pending_bytes = needed.disk_bytes - stored_bytes
    if pending_bytes > free_disk:
        raise ValueError(
            f"checkpoints and what is trained take {bytes_text(pending_bytes)} of disk, and "
            f"{bytes_text(free_disk)} are free at {out}: give another --out"
        )
