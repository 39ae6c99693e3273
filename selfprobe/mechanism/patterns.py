"""Attention patterns, read and changed by a registered attention function: no model's code is touched.

    with registered(judge.model), tapped(tap):   # tap(layer, pattern) sees [row, head, query, key] of the last queries
        judge.model(**inputs)

Outputs of all but the changed queries are those of sdpa (or of plain softmax where a model caps its scores). Patterns
of the last queries alone are computed, and go to `tap` layer by layer: none is kept here.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from selfprobe.probes.attention import attending

NAME = "selfprobe_patterns"
WORKS = "Llama, Mistral, Qwen 2 and 3, Gemma 2 and 3, Phi 3, OLMo 2, GPT-2"
"""Families whose code calls transformers' attention interface: tests read tiny ones of each."""

Tap = Callable[[int, Tensor], Tensor | None]
"""Layer, pattern [row, head, query, key] float32 → the pattern to use instead, or None to leave it."""

_tap: ContextVar[tuple[Tap, int] | None] = ContextVar("tap", default=None)


def registered(model: Any) -> AbstractContextManager[None]:
    """Within it `model` calls our attention function, which does what its own did until something is `tapped`."""
    return attending(model, NAME, _attend, sdpa_mask)


@contextmanager
def tapped(tap: Tap, *, queries: int = 1) -> Iterator[None]:
    """Within it, and within `registered`, `tap` sees and may replace the patterns of the last `queries` tokens."""
    token = _tap.set((tap, queries))
    try:
        yield
    finally:
        _tap.reset(token)


def _attend(
    module: Any,
    query: Tensor,  # [row, head, query, d]
    key: Tensor,  # [row, group, key, d]
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """As transformers calls an attention function: the output [row, query, head, d]."""
    if extra := [name for name in ("s_aux", "position_bias") if others.get(name) is not None]:
        raise ValueError(f"its attention is given {extra[0]}, which a pattern over tokens does not hold")
    watching = _tap.get()
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    wanted = min(watching[1], query.shape[2]) if watching else 0
    if softcap is None:
        given: dict[str, Any] = {"scaling": scale, **others}
        out, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **given)
    else:
        whole = pattern(query, key, attention_mask, scale, softcap, query.shape[2])
        out = _mixed(whole, value)
    if watching:
        replaced = watching[0](module.layer_idx, pattern(query, key, attention_mask, scale, softcap, wanted))
        if replaced is not None:
            out = torch.cat([out[:, : out.shape[1] - wanted], _mixed(replaced, value)], dim=1)
    return out, None


def pattern(
    query: Tensor, key: Tensor, mask: Tensor | None, scale: float, softcap: float | None, queries: int
) -> Tensor:
    """Softmax of the last `queries` rows, [row, head, query, key] float32; hidden keys are 0."""
    rows, heads, _, width = query.shape
    length = key.shape[2]
    asked = query[:, :, -queries:].float().view(rows, key.shape[1], -1, queries, width)  # [row, group, in it, query, d]
    scores = (asked @ key.float().transpose(2, 3)[:, :, None]).view(rows, heads, queries, length) * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if mask is None:
        seen = torch.ones(queries, length, dtype=torch.bool, device=key.device).tril(length - queries)
    else:
        seen = mask[:, :, -queries:, :length]
    if seen.dtype == torch.bool:
        return torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1)
    return torch.softmax(scores + seen.float(), dim=-1)


def _mixed(patterns: Tensor, value: Tensor) -> Tensor:
    """Values [row, group, key, d] mixed by patterns [row, head, query, key] → [row, query, head, d]."""
    rows, heads, queries, length = patterns.shape
    groups = value.shape[1]
    grouped = patterns.to(value.dtype).view(rows, groups, heads // groups, queries, length)
    return (grouped @ value[:, :, None]).view(rows, heads, queries, -1).transpose(1, 2).contiguous()


def entropy(patterns: Tensor) -> Tensor:
    """Of patterns [..., key] in nats; 0 log 0 is 0.

    >>> round(float(entropy(torch.tensor([0.5, 0.5, 0.0]))), 3)
    0.693
    """
    return torch.special.entr(patterns).sum(dim=-1)


def without_first(patterns: Tensor) -> Tensor:
    """Patterns [..., key] over all but the first token, summing to 1 again; NaN where the first has everything."""
    rest = patterns[..., 1:]
    return rest / rest.sum(dim=-1, keepdim=True)
