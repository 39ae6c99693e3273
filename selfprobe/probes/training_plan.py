"""What a training takes, before it does it: time, memory, disk."""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from selfprobe.probes.choose import batches
from selfprobe.probes.decoder import decoder_blocks
from selfprobe.probes.harvesting import batch_budget
from selfprobe.probes.memory import ADAM, size
from selfprobe.probes.model import LocalModel
from selfprobe.probes.plan import span
from selfprobe.probes.training import Example, Recipe, answer_loss, train_flops

BACKWARD = 3
"""A step takes about so many times its forward pass: frozen weights need no gradient, adapters and states do."""

KEPT = ("checkpoint.pt*", "*model.safetensors")
"""Files of a training that take room: on the way, and of what was trained."""


@dataclass(frozen=True)
class Needs:
    """What one training takes; rough."""

    examples: int
    steps: int
    tokens: int
    parameters: int
    """Of what learns."""
    full: bool
    """All weights learn, not adapters."""
    seconds: float
    """By the forward pass of one batch."""
    memory_bytes: int
    """Beside the weights: what learns with its optimizer, and what one batch keeps for its gradient."""
    disk_bytes: int
    """While it trains: the checkpoint twice, as one is whole before the other goes, and what others leave behind."""
    flops: float

    @property
    def text(self) -> str:
        """In three lines."""
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
    """What training on `examples` takes, the last of so many trainings whose results all stay."""
    budget, tokens = batch_tokens or batch_budget(judge), recipe.epochs * sum(e.length for e in examples)
    order = sorted(range(len(examples)), key=lambda i: examples[i].length)
    batch = [examples[i] for i in max(batches(examples, order, budget), key=len)[: recipe.batch]]
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
        memory_bytes=ADAM * parameters + _kept_bytes(judge, max(widest, examples[order[-1]].length), recipe.batch),
        disk_bytes=(2 * 3 + trainings - 1) * 4 * parameters,
        flops=train_flops(judge, tokens, parameters, full=full),
    )


def adapter_parameters(judge: LocalModel, rank: int) -> int:
    """Of LoRA at all linear layers of the blocks."""
    modules = list(decoder_blocks(judge.model).modules())
    sides: list[int] = [m.in_features + m.out_features for m in modules if isinstance(m, nn.Linear)]
    sides += [sum(m.weight.shape) for m in modules if type(m).__name__ == "Conv1D"]  # as GPT-2 has them
    return rank * sum(sides)


def _kept_bytes(judge: LocalModel, tokens: int, rows: int) -> int:
    """What one batch keeps for its gradient: inputs of all layers, and the logits of a few places in float32."""
    config = judge.model.config.get_text_config()
    wide = 12 * judge.d_model + 4 * int(getattr(config, "intermediate_size", None) or 4 * judge.d_model)
    layers = len(decoder_blocks(judge.model))
    return tokens * layers * wide * int(judge.dtype.itemsize) + rows * 3 * 3 * 4 * int(config.vocab_size)


def check_room(judge: LocalModel, needed: Needs, out: Path) -> None:
    """ValueError where memory, or the disk of the folder `out`, has no room for it; the model is loaded already."""
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
    held = [file.stat().st_size for kind in KEPT for file in out.rglob(kind)]  # a killed training goes on with it
    if (more := needed.disk_bytes - sum(held)) > disk:
        raise ValueError(
            f"checkpoints and what is trained take {size(more)} of disk, and {size(disk)} are free at {out}: "
            "give another --out"
        )
