"""Ablation: take a direction out of the last token's state after every block, ask again (paper 004, appendix B)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from selfprobe.probes.forward import _inputs, _spoken
from selfprobe.probes.harvest import BATCH_TOKENS, batches
from selfprobe.probes.model import Judge
from selfprobe.probes.tokens import Prompt, encode
from selfprobe.sources.pairs import Pair

FloatArray = npt.NDArray[np.floating[Any]]


def rejected(states: Tensor, direction: Tensor) -> Tensor:
    """x' = x − (x·p / p·p) p for states [..., d_model]."""
    p = direction.to(states.device, torch.float32)
    x = states.float()
    return (x - (x @ p / (p @ p))[..., None] * p).to(states.dtype)


@contextmanager
def ablated(judge: Judge, direction: FloatArray) -> Iterator[None]:
    """Within it, the last position's state loses `direction` [d_model] after every block and the final norm."""
    p = torch.as_tensor(np.asarray(direction, dtype=np.float32))
    if p.shape != (judge.d_model,) or not float(p.norm()):
        raise ValueError(f"expected a direction of {judge.d_model} numbers, not all 0, got shape {tuple(p.shape)}")

    def hook(_module: Any, _inputs: Any, output: Any) -> Any:
        hidden = output[0] if isinstance(output, tuple) else output
        hidden = torch.cat([hidden[:, :-1], rejected(hidden[:, -1:], p)], dim=1)
        return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

    norm = getattr(judge.model.get_decoder(), "norm", None)
    if norm is None:
        raise ValueError(f"{type(judge.model).__name__} has no final `norm` beside its blocks; it cannot be ablated")
    handles = [module.register_forward_hook(hook) for module in (*judge.blocks, norm)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def answers(
    judge: Judge,
    pairs: Sequence[Pair],
    directions: Mapping[str, FloatArray | None],
    *,
    batch_tokens: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, npt.NDArray[np.float32]]:
    """The model's own log P("1"), log P("2") under each ablation: name → [pair, order, token].

    None ablates nothing: the baseline. All but a prompt's last token are read once for all directions, as only the
    last token's state is changed. A pair longer than the context is NaN.
    """
    shown = [version for pair in pairs for version in (pair, pair.swapped)]
    prompts = encode(judge.tokenizer, shown)
    device = judge.model.get_input_embeddings().weight.device
    budget = batch_tokens or BATCH_TOKENS.get(device.type, BATCH_TOKENS["cuda"])
    found = {name: np.full((len(prompts), 2), np.nan, dtype=np.float32) for name in directions}
    order = sorted(range(len(prompts)), key=lambda i: prompts[i].length)
    order = [i for i in order if prompts[i].length <= judge.context]
    for count, batch in enumerate(batches(prompts, order, budget), start=1):
        with torch.inference_mode():
            asked = _batch(judge, [prompts[i] for i in batch], directions, device)
        for name, log_probs in asked.items():
            found[name][batch] = log_probs.numpy()
        if count % 20 == 0:
            progress(f"{count} batches asked again under {len(directions)} ablations")
    return {name: table.reshape(len(pairs), 2, 2) for name, table in found.items()}


def _batch(
    judge: Judge, prompts: Sequence[Prompt], directions: Mapping[str, FloatArray | None], device: torch.device
) -> dict[str, Tensor]:
    first = _inputs([p.prefix[:-1] for p in prompts], device)
    cache = judge.model(**first, use_cache=True, logits_to_keep=1).past_key_values
    last: dict[str, Any] = {"input_ids": torch.tensor([[p.prefix[-1]] for p in prompts], device=device)}
    last["position_ids"] = torch.tensor([[len(p.prefix) - 1] for p in prompts], device=device)
    if "attention_mask" in first:
        last["attention_mask"] = torch.nn.functional.pad(first["attention_mask"], (0, 1), value=1)
    found = {}
    for name, direction in directions.items():
        if direction is None:
            out = judge.model(**last, past_key_values=deepcopy(cache), use_cache=True)
        else:
            with ablated(judge, direction):
                out = judge.model(**last, past_key_values=deepcopy(cache), use_cache=True)
        found[name] = _spoken(out.logits[:, -1], prompts)
    return found
