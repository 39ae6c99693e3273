"""From tokens to states: last-token states of all blocks for both sides of a pair, and P("1"), P("2") on the way.

Three ways that must agree (`verify` checks it):

- `two_forwards`  one plain forward a side; the reference
- `shared_cache`  one forward of the prefix, then both contrast tokens on its key-value cache
- `tree_mask`     one forward of prefix + "1" + "2", where "2" does not see "1" and has the same position

Batches are padded on the left, so that the last position is the same column in every row.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from selfprobe.probes.model import LocalModel
from selfprobe.probes.tokens import Prompt

logger = logging.getLogger(__name__)

Way = Literal["shared_cache", "tree_mask", "two_forwards"]
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 5e-2, torch.float16: 1e-2}
"""Largest relative difference of a state between two ways; half precision rounds at every layer."""


@dataclass(frozen=True)
class States:
    """What one batch gives; on the CPU."""

    hidden: Tensor  # [row, side, layer, d_model] in the model's dtype
    log_probs: Tensor  # [row, token] float32: log P("1"), log P("2") after the prefix, over the whole vocabulary


@contextmanager
def recorded(blocks: Any, take: Callable[[Tensor], Tensor]) -> Iterator[list[Tensor]]:
    """Collect `take(output)` of every block, in order; the output is after the block, before any final norm."""
    kept: list[Tensor] = []

    def hook(_module: Any, _given: Any, output: Any) -> None:
        # A block returns a tensor or a tuple that begins with it, depending on model and version.
        kept.append(take(output[0] if isinstance(output, tuple) else output))

    handles = [block.register_forward_hook(hook) for block in blocks]
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()


def _padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Token ids [row, column] padded on the left with 0, and the number of pads of each row [row]."""
    width = max(map(len, rows))
    pads = [width - len(row) for row in rows]
    ids = torch.tensor([[0] * pad + list(row) for pad, row in zip(pads, rows, strict=True)], device=device)
    return ids, torch.tensor(pads, device=device)


def _stacked(kept: list[Tensor]) -> Tensor:
    """Tensors [row, side, d_model] of each layer, on whatever devices → [row, side, layer, d_model] on the CPU."""
    if len({t.device for t in kept}) == 1:
        return torch.stack(kept, dim=2).cpu()
    return torch.stack([t.cpu() for t in kept], dim=2)


def spoken_tokens(logits: Tensor, prompts: Sequence[Prompt]) -> Tensor:
    """Logits [row, vocabulary] after the prefix → log-probabilities of the two contrast tokens."""
    tokens = torch.tensor([p.contrast for p in prompts], device=logits.device)
    logits = logits.float()
    return (logits.gather(1, tokens) - torch.logsumexp(logits, dim=1, keepdim=True)).cpu()


def plain_inputs(rows: Sequence[Sequence[int]], device: torch.device) -> dict[str, Tensor]:
    """Inputs of a plain forward; no mask where nothing is padded, which lets sdpa take its causal kernel."""
    ids, pads = _padded(rows, device)
    if not int(pads.max()):
        return {"input_ids": ids}
    columns = torch.arange(ids.shape[1], device=device)
    return {
        "input_ids": ids,
        "attention_mask": (columns >= pads[:, None]).long(),
        "position_ids": (columns - pads[:, None]).clamp(min=0),
    }


def two_forwards(judge: LocalModel, prompts: Sequence[Prompt]) -> States:
    """The reference: a plain forward of each side."""
    device, sides = judge.device, []
    for side in (0, 1):
        rows = [(*p.prefix, p.contrast[side]) for p in prompts]
        with recorded(judge.blocks, lambda out: out[:, -1:].clone()) as kept:
            logits = judge.model(**plain_inputs(rows, device), use_cache=False, logits_to_keep=2).logits
        sides.append(_stacked(kept))
    return States(torch.cat(sides, dim=1), spoken_tokens(logits[:, 0], prompts))


def shared_cache(judge: LocalModel, prompts: Sequence[Prompt]) -> States:
    """One prefix pass a pair; the two contrast tokens are a second batch of one column on its cache."""
    device = judge.device
    inputs = plain_inputs([p.prefix for p in prompts], device)
    first = judge.model(**inputs, use_cache=True, logits_to_keep=1)
    cache, rows, width = first.past_key_values, len(prompts), inputs["input_ids"].shape[1]
    cache.batch_repeat_interleave(2)
    second: dict[str, Tensor] = {"input_ids": torch.tensor([[t] for p in prompts for t in p.contrast], device=device)}
    if "attention_mask" in inputs:
        mask = torch.nn.functional.pad(inputs["attention_mask"], (0, 1), value=1)
        second["attention_mask"] = mask.repeat_interleave(2, dim=0)
    positions = torch.tensor([[len(p.prefix)] for p in prompts for _ in p.contrast], device=device)
    second["position_ids"] = (
        positions if "attention_mask" in inputs else torch.full((2 * rows, 1), width, device=device)
    )
    with recorded(judge.blocks, lambda out: out[:, -1].view(rows, 2, -1).clone()) as kept:
        judge.model(**second, past_key_values=cache, use_cache=True, logits_to_keep=1)
    return States(_stacked(kept), spoken_tokens(first.logits[:, -1], prompts))


def tree_mask(judge: LocalModel, prompts: Sequence[Prompt]) -> States:
    """One pass of [prefix, "1", "2"] under a mask that hides "1" from "2"; both have the same position."""
    device = judge.device
    ids, pads = _padded([(*p.prefix, *p.contrast) for p in prompts], device)
    width = ids.shape[1]
    columns = torch.arange(width, device=device)
    allowed = columns[:, None] >= columns[None, :]
    allowed[-1, -2] = False
    mask = (allowed[None] & (columns[None, None, :] >= pads[:, None, None]))[:, None]
    # A pad must see something, or its softmax is 0/0; nothing sees a pad.
    mask |= torch.eye(width, dtype=torch.bool, device=device)
    positions = (columns - pads[:, None]).clamp(min=0)
    positions[:, -1] -= 1
    if judge.model.config._attn_implementation != "sdpa":
        dtype = judge.model.dtype
        mask = torch.zeros(mask.shape, dtype=dtype, device=device).masked_fill(~mask, torch.finfo(dtype).min)
    with recorded(judge.blocks, lambda out: out[:, -2:].clone()) as kept:
        out = judge.model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False, logits_to_keep=3)
    return States(_stacked(kept), spoken_tokens(out.logits[:, 0], prompts))


def states_of(judge: LocalModel, prompts: Sequence[Prompt], path: Way) -> States:
    """States of one batch, by one of the three ways, without gradients."""
    with torch.inference_mode():
        return WAYS[path](judge, prompts)


WAYS: dict[Way, Callable[[LocalModel, Sequence[Prompt]], States]] = {
    "shared_cache": shared_cache,
    "tree_mask": tree_mask,
    "two_forwards": two_forwards,
}


def difference(states: States, reference: States) -> float:
    """Largest relative difference: of a state ‖a − b‖/‖b‖ over rows, sides and layers, or of a log-probability."""
    a, b = states.hidden.float(), reference.hidden.float()
    hidden = (a - b).norm(dim=-1) / b.norm(dim=-1).clamp(min=1e-12)
    spoken = (states.log_probs - reference.log_probs).abs() / reference.log_probs.abs().clamp(min=1.0)
    return max(float(hidden.max()), float(spoken.max()))


def verify(judge: LocalModel, prompts: Sequence[Prompt], path: Way) -> float:
    """How far `path` is from two plain forwards on `prompts` (of different lengths, so that padding is tested)."""
    return difference(states_of(judge, prompts, path), states_of(judge, prompts, "two_forwards"))


def choose(judge: LocalModel, prompts: Sequence[Prompt], wanted: Way | Literal["auto"]) -> Way:
    """The way to use: `wanted`, or "auto": the tree mask where it verifies, else the shared cache, else two forwards.

    Every fall-back is logged as a warning. A way asked for by name that fails is an error, not a fall-back.
    """
    if wanted == "two_forwards" or not prompts:
        return "two_forwards" if prompts else "shared_cache"
    by_length = sorted(prompts, key=lambda p: p.length)
    sample = [by_length[0], by_length[min(3, len(by_length) - 1)]]
    window = getattr(judge.model.config.get_text_config(), "sliding_window", None)
    tolerance = TOLERANCE.get(judge.model.dtype, 1e-3)
    ways: tuple[Way, ...] = ("tree_mask", "shared_cache") if wanted == "auto" else (wanted,)
    for way in ways:
        if way == "tree_mask" and window and by_length[-1].length + 1 > window:
            problem = f"pairs of up to {by_length[-1].length} tokens pass the sliding window of {window}"
        else:
            off = verify(judge, sample, way)
            if off <= tolerance:
                return way
            problem = f"its states differ from two plain forwards by {off:.2g}, more than {tolerance:g}"
        if wanted != "auto":
            raise ValueError(f"{wanted} cannot be used with {judge.name}: {problem}. Leave the choice to 'auto'")
        logger.warning("%s is not used for %s: %s", way, judge.name, problem)
    return "two_forwards"
