"""Tokens to states: last-token states of all blocks for both sides of a pair, and P("1"), P("2") on the way.

Three ways that must agree (`choose.choose` checks it, before the work):

- `two_forwards`  one plain forward a side; the reference
- `shared_cache`  one forward of the prefix, then both contrast tokens on its key-value cache
- `tree_mask`     one forward of prefix + "1" + "2", where "2" does not see "1" and has the same position

Batches are padded on the left, so that the last position is the same column in every row.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from threading import RLock
from typing import Any, Literal, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface

from selfprobe.probes.model import LocalModel
from selfprobe.probes.tokens import Prompt

FORK = "selfprobe_fork"
_locks: MutableMapping[Any, RLock] = WeakKeyDictionary()


def one_thread(model: Any) -> RLock:
    """Lock to hold while `model` is read: another thread would see our hooks, and restore the wrong attention."""
    return _locks.setdefault(model, RLock())


@contextmanager
def attending(model: Any, name: str, attend: Callable[..., Any], mask: Callable[..., Any]) -> Iterator[None]:
    """Context in which `model` calls `attend`, under `mask`'s mask of a batch; both follow transformers' interfaces."""
    AttentionInterface.register(name, attend)
    AttentionMaskInterface.register(name, mask)
    with one_thread(model):
        before = [(config, config._attn_implementation) for config in _configurations(model)]
        try:
            model.set_attn_implementation(name)
            yield
        finally:
            for config, own in before:  # transformers' own way back is not used: it knows no None, as DBRX's parts have
                config._attn_implementation = own


def _configurations(model: Any) -> list[Any]:
    """Configurations of the model and its parts, whose attention may differ: outer ones first, some twice."""
    found = [part.config for part in model.modules() if isinstance(part, PreTrainedModel)]
    for config in found:  # the list grows during the loop
        found += [part for name in config.sub_configs if (part := getattr(config, name, None)) is not None]
    return found


def kernel(model: Any) -> str:
    """Name of the text model's attention in transformers: sdpa, eager, flash_attention_2 …"""
    return str(model.config.get_text_config()._attn_implementation)


def forks(model: Any) -> bool:
    """Whether `forked` takes this model: sdpa by transformers' attention interface, not by code of its own."""
    return kernel(model) == "sdpa" and bool(model._can_set_attn_implementation())


@contextmanager
def forked(model: Any) -> Iterator[None]:
    """Context in which the last token of each row does not see the one before it; other tokens see all before them.

    The causal kernel does half of what a mask would, and only the last token is done again. Rows have no pads. A
    window that is shorter than a row is not seen.
    """
    with attending(model, FORK, _fork, lambda *_given, **_named: None):
        yield


def _fork(
    module: Any,
    query: Tensor,  # [row, head, query, d]
    key: Tensor,  # [row, group, key, d]
    value: Tensor,
    attention_mask: None,
    **given: Any,
) -> tuple[Tensor, None]:
    """Attention function, called as transformers does, some families by name: the output [row, query, head, d]."""
    if attention_mask is not None:
        raise ValueError("its attention is given a mask of the model's own, which the causal kernel would leave out")
    out, _ = sdpa_attention_forward(module, query, key, value, None, **given | {"is_causal": True})
    key, value = (torch.cat([one[:, :, :-2], one[:, :, -1:]], dim=2) for one in (key, value))
    out[:, -1:], _ = sdpa_attention_forward(module, query[:, :, -1:], key, value, None, **given | {"is_causal": False})
    return out, None


J = TypeVar("J")
Way = Literal["shared_cache", "tree_mask", "two_forwards"]


@dataclass(frozen=True)
class States:
    """Results of one batch; on the CPU."""

    hidden: Tensor  # [row, side, layer, d_model] in the dtype of the model's residual stream
    log_probs: Tensor  # [row, token] float32: log P("1"), log P("2") after the prefix, over the whole vocabulary


@dataclass(frozen=True)
class Batch:
    """Prompts that are read together."""

    rows: Sequence[int]
    """Numbers of the prompts among all prompts."""
    prompts: Sequence[Prompt]
    way: Way


Reader = Callable[[LocalModel, Iterable[Batch]], Iterator[tuple[Batch, States]]]
"""Prompts → states: gives each batch once with its states, in the order in which they are read."""


@contextmanager
def recorded(blocks: Any, take: Callable[[Tensor], Tensor], stream: int | None = None) -> Iterator[list[Tensor]]:
    """Collect `take(output)` of every block, in order; the output is after the block, before any final norm.

    `stream` is the one to take from a block that gives several, [stream, row, token, d_model]; see `LocalModel.stream`.
    """
    kept: list[Tensor] = []

    def hook(_module: Any, _given: Any, output: Any) -> None:
        # A block returns a tensor or a tuple that begins with it, depending on model and version.
        hidden = output[0] if isinstance(output, (tuple, list)) else output
        if stream is not None:
            hidden = hidden[stream]
        if hidden.ndim > 3:
            raise ValueError(f"a block gives states of shape {tuple(hidden.shape)}, expected [row, token, d_model]")
        kept.append(take(hidden))

    handles = [block.register_forward_hook(hook) for block in blocks]
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()


def output_of(judge: LocalModel, *, keep: int, **inputs: Any) -> Any:
    """The model's output for `inputs`; its logits end with those of the last `keep` tokens."""
    if "logits_to_keep" in inspect.signature(judge.model.forward).parameters:
        inputs["logits_to_keep"] = keep
    return judge.model(**inputs)


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
    """One plain forward per side; for a single prompt it is the reference, with nothing but its tokens as input."""
    device, sides = judge.device, []
    for side in (0, 1):
        rows = [(*p.prefix, p.contrast[side]) for p in prompts]
        with recorded(judge.blocks, lambda out: out[:, -1:].clone(), judge.stream) as kept:
            logits = output_of(judge, **plain_inputs(rows, device), use_cache=False, keep=2).logits
        sides.append(_stacked(kept))
    return States(torch.cat(sides, dim=1), spoken_tokens(logits[:, -2], prompts))


def shared_cache(judge: LocalModel, prompts: Sequence[Prompt]) -> States:
    """One prefix pass per pair; each contrast token is then a batch of one column on its cache.

    The cache is copied rather than widened to two rows a pair, as recurrent states cannot be widened.
    """
    device, sides = judge.device, []
    inputs = plain_inputs([p.prefix for p in prompts], device)
    first = output_of(judge, **inputs, use_cache=True, keep=1)
    after = one_more(inputs, [len(p.prefix) for p in prompts])
    for side in (0, 1):
        after["input_ids"] = torch.tensor([[p.contrast[side]] for p in prompts], device=device)
        cache = deepcopy(first.past_key_values) if side == 0 else first.past_key_values
        with recorded(judge.blocks, lambda out: out[:, -1:].clone(), judge.stream) as kept:
            output_of(judge, **after, past_key_values=cache, use_cache=True, keep=1)
        sides.append(_stacked(kept))
    return States(torch.cat(sides, dim=1), spoken_tokens(first.logits[:, -1], prompts))


def one_more(inputs: dict[str, Tensor], lengths: Sequence[int], *, columns: int = 1) -> dict[str, Tensor]:
    """Mask and positions of more columns after `inputs`, whose rows have `lengths` tokens; their ids are to be set."""
    places = [range(length, length + columns) for length in lengths]
    after = {"position_ids": torch.tensor([list(each) for each in places], device=inputs["input_ids"].device)}
    if "attention_mask" in inputs:
        after["attention_mask"] = torch.nn.functional.pad(inputs["attention_mask"], (0, columns), value=1)
    return after


def tree_mask(judge: LocalModel, prompts: Sequence[Prompt]) -> States:
    """One pass of [prefix, "1", "2"] in which "2" does not see "1"; both have the same position.

    Rows without pads are read by the causal kernel where the model's attention can be replaced, others under a mask.
    """
    device = judge.device
    ids, pads = _padded([(*p.prefix, *p.contrast) for p in prompts], device)
    positions = (torch.arange(ids.shape[1], device=device) - pads[:, None]).clamp(min=0)
    positions[:, -1] -= 1
    given = {"input_ids": ids, "position_ids": positions}
    fork = not int(pads.max()) and forks(judge.model)
    if not fork:
        given["attention_mask"] = _tree(judge, pads, ids.shape[1])
    with (
        forked(judge.model) if fork else nullcontext(),
        recorded(judge.blocks, lambda out: out[:, -2:].clone(), judge.stream) as kept,
    ):
        logits = output_of(judge, **given, use_cache=False, keep=3).logits
    return States(_stacked(kept), spoken_tokens(logits[:, -3], prompts))


def _tree(judge: LocalModel, pads: Tensor, width: int) -> Tensor:
    """The mask [row, 1, query, key] that hides the last token but one from the last, and pads."""
    columns = torch.arange(width, device=judge.device)
    allowed = columns[:, None] >= columns[None, :]
    allowed[-1, -2] = False
    mask = (allowed[None] & (columns[None, None, :] >= pads[:, None, None]))[:, None]
    # A pad must see something, or its softmax is 0/0; nothing sees a pad.
    mask |= torch.eye(width, dtype=torch.bool, device=judge.device)
    return shown_to(judge, mask)


def shown_to(judge: LocalModel, mask: Tensor) -> Tensor:
    """A mask [row, 1, query, key] of what a token sees, in the form that the model's attention takes."""
    if kernel(judge.model) == "sdpa":
        return mask
    dtype = torch.float32 if judge.wide else judge.model.dtype  # transformers' own form: gpt-oss sums its scores in it
    return torch.zeros(mask.shape, dtype=dtype, device=judge.device).masked_fill(~mask, torch.finfo(dtype).min)


def states_of(judge: LocalModel, prompts: Sequence[Prompt], path: Way) -> States:
    """States of one batch, by one of the three ways, without gradients; one thread at a time reads a model."""
    with torch.inference_mode(), one_thread(judge.model):
        return WAYS[path](judge, prompts)


def in_process(judge: LocalModel, batches: Iterable[Batch]) -> Iterator[tuple[Batch, States]]:
    """Reader that reads one batch after another in this process."""
    for batch in batches:
        yield batch, states_of(judge, batch.prompts, batch.way)


Work = Callable[[J], tuple[Any, ...]]
"""Function: job → the function that does it (of a module, with a model as its first argument) and its arguments."""

Spread = Callable[[LocalModel, Prompt, Iterable[Any], Work[Any]], Iterator[tuple[Any, Any]]]
"""Function that does jobs: this process one after another (`here`), or copies of the model (`on_ray.Copies.spread`)."""


def here(judge: LocalModel, prompt: Prompt, jobs: Iterable[J], work: Work[J]) -> Iterator[tuple[J, Any]]:
    """Results of jobs that this process does, in their order."""
    for job in jobs:
        function, *arguments = work(job)
        yield job, function(judge, *arguments)


WAYS: dict[Way, Callable[[LocalModel, Sequence[Prompt]], States]] = {
    "shared_cache": shared_cache,
    "tree_mask": tree_mask,
    "two_forwards": two_forwards,
}
