"""A vector that is added after a block leaves the blocks up to it as they were: they are run once,
without a vector, and their states stand for those of every row under one.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from transformers import Cache

from selfprobe.probes.forward import hidden_of


@contextmanager
def recorded_passes(layers: Any, blocks: Sequence[int]) -> Iterator[dict[int, list[Any]]]:
    """Keep what some blocks return, once a forward pass: states [row, token, width], alone or as the
    only part of a tuple.
    """
    passes_by_block: dict[int, list[Any]] = {block: [] for block in blocks}

    def keep(block: int) -> Any:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            states = hidden_of(output).clone()
            returned = (states,) if isinstance(output, tuple) else states
            passes_by_block[block].append(returned)

        return hook

    handles = [layers[block].register_forward_hook(keep(block)) for block in blocks]
    try:
        yield passes_by_block
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def replayed_passes(layers: Any, block: int, passes: Sequence[Any]) -> Iterator[None]:
    """Do not run a block and those below it: each forward pass takes what the block returned for
    one row in the next of `passes`, in every row.

    A cache then holds the number of tokens in these blocks, and no keys or values of theirs.

    Raises:
        RuntimeError: A pass has another number of tokens than before, or a block gets no cache.
    """
    pending_passes = iter(passes)
    returns_tuples = bool(passes) and isinstance(passes[0], tuple)

    def replacement(number: int) -> Any:
        def forward(hidden: Tensor, *inputs: Any, **settings: Any) -> Any:
            token_count = hidden.shape[1]
            arguments = (*inputs, *settings.values())
            caches = [value for value in arguments if isinstance(value, Cache)]
            if not caches:
                raise RuntimeError("a block gets no cache")
            counted_tokens = hidden.new_zeros(1, 1, token_count, 1)
            caches[0].update(counted_tokens, counted_tokens, number)
            if number == block:
                states = hidden_of(next(pending_passes))
                if states.shape[1] != token_count:
                    raise RuntimeError(f"expected {states.shape[1]} tokens, got {token_count}")
                hidden = states.to(hidden.device).repeat(hidden.shape[0], 1, 1)
            return (hidden,) if returns_tuples else hidden

        return forward

    lower_layers = [layers[number] for number in range(block + 1)]
    own_forwards = [vars(layer).get("forward") for layer in lower_layers]
    try:
        for number, layer in enumerate(lower_layers):
            layer.forward = replacement(number)
        yield
    finally:
        for layer, own_forward in zip(lower_layers, own_forwards, strict=True):
            del layer.forward
            if own_forward is not None:
                layer.forward = own_forward
