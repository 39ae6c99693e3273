"""Half precision: rounding, beside what a probe reads, and two ways around it.

A probe reads how φ⁺ − φ⁻ differs from pair to pair. Of SmolLM2's in bfloat16 a fifth to a quarter is rounding from the
middle blocks on, and half of that with the residual stream in float32, which is therefore the default; see
docs/statistics.md for what it costs a score.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from selfprobe.probes.decoder import decoder_blocks, decoder_of

HALVES = (torch.bfloat16, torch.float16)


def keep_residual(model: Any) -> bool:
    """Let the residual stream of `model` (half precision) be float32 from now on; False where its blocks take none.

    Weights and what is computed within a block stay as they are: norms read float32 and give half precision, and what a
    block adds to the stream is added in float32.
    """
    decoder = decoder_of(model)
    blocks = decoder_blocks(model)
    handles = [model.get_input_embeddings().register_forward_hook(lambda _m, _given, out: out.float())]
    outside = [m for m in decoder.children() if m is not blocks and not isinstance(m, nn.Embedding)]
    for owner in (*blocks, *outside):
        for module in owner.modules():
            name = type(module).__name__.lower()
            if "norm" in name:
                handles += _narrowed(module, next(owner.parameters(), None))
            elif "rotary" in name:
                handles += _narrowed(module, next(blocks.parameters()))
    try:
        with torch.inference_mode(), _outputs(blocks) as seen:
            model(input_ids=torch.tensor([[1, 2, 3]], device=model.get_input_embeddings().weight.device))
        if all(dtype == torch.float32 for dtype in seen):
            return True
    except (AttributeError, RuntimeError, TypeError, ValueError):
        pass  # the blocks of this family take no float32 stream: tried, and taken back
    for handle in handles:
        handle.remove()
    return False


def _narrowed(module: Any, weight: Tensor | None) -> list[Any]:
    """Hooks that give `module`'s output in the dtype that `weight` has then, and a LayerNorm its input too."""
    if weight is None:
        return []

    def narrow(given: Any) -> Any:
        if isinstance(given, tuple):
            return tuple(map(narrow, given))
        return given.to(weight.dtype) if isinstance(given, Tensor) and given.is_floating_point() else given

    handles = [module.register_forward_hook(lambda _m, _given, out: narrow(out))]
    if isinstance(module, nn.LayerNorm):  # torch's own takes no input of another dtype than its weights
        handles.append(module.register_forward_pre_hook(lambda _m, given: narrow(given)))
    return handles


@contextmanager
def _outputs(blocks: Any) -> Iterator[list[torch.dtype]]:
    """The dtype of each block's state."""
    seen: list[torch.dtype] = []

    def note(_module: Any, _given: Any, out: Any) -> None:
        seen.append((out[0] if isinstance(out, (tuple, list)) else out).dtype)

    handles = [block.register_forward_hook(note) for block in blocks]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def in_float32(model: Any) -> Iterator[None]:
    """Within it a model of half precision computes in float32 on the same weights, widened a block at a time.

    It takes the memory of one block in float32 more, so that a large model has a reference too.
    """
    decoder, half = decoder_of(model), model.dtype
    widened: dict[int, list[Tensor]] = {}

    def widen(module: Any, *_: Any) -> None:
        tensors = [t for t in (*module.parameters(), *module.buffers()) if t.dtype == half]
        widened[id(module)] = tensors
        for tensor in tensors:
            tensor.data = tensor.data.float()

    def narrow(module: Any, *_: Any) -> None:
        for tensor in widened.pop(id(module), ()):  # lossless: the values were of half precision
            tensor.data = tensor.data.to(half)

    inner = [m for m in decoder.children() if not isinstance(m, (nn.ModuleList, nn.Embedding))]
    head = model.get_output_embeddings()
    owners = [*decoder_blocks(model), *inner, *([head] if head is not None else [])]
    handles = [model.get_input_embeddings().register_forward_hook(lambda _m, _given, out: out.float())]
    for owner in owners:
        handles += [owner.register_forward_pre_hook(widen, prepend=True), owner.register_forward_hook(narrow)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        for owner in owners:
            narrow(owner)
