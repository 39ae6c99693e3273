"""Another attention function for a while, registered with transformers: no model's code is touched."""

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface

FORK = "selfprobe_fork"
_locks: MutableMapping[Any, RLock] = WeakKeyDictionary()


def one_thread(model: Any) -> RLock:
    """Held while `model` is read: another thread would see our attention and our hooks, and put back the wrong one."""
    return _locks.setdefault(model, RLock())


@contextmanager
def attending(model: Any, name: str, attend: Callable[..., Any], mask: Callable[..., Any]) -> Iterator[None]:
    """Within it `model` calls `attend`, under what `mask` makes of a batch; both as transformers' interfaces say."""
    AttentionInterface.register(name, attend)
    AttentionMaskInterface.register(name, mask)
    with one_thread(model):
        before = [(config, config._attn_implementation) for config in _configurations(model)]
        try:
            model.set_attn_implementation(name)
            yield
        finally:
            for config, own in before:  # not by transformers' own way back, which knows no None as DBRX's parts have
                config._attn_implementation = own


def _configurations(model: Any) -> list[Any]:
    """Of the model and of the parts within it, whose attention may differ: outer ones first, some twice."""
    found = [part.config for part in model.modules() if isinstance(part, PreTrainedModel)]
    for config in found:  # grows as it goes
        found += [part for name in config.sub_configs if (part := getattr(config, name, None)) is not None]
    return found


def kernel(model: Any) -> str:
    """The attention of its text model, as transformers names it: sdpa, eager, flash_attention_2 …"""
    return str(model.config.get_text_config()._attn_implementation)


def forks(model: Any) -> bool:
    """Whether `forked` takes this model: sdpa by transformers' attention interface, not by code of its own."""
    return kernel(model) == "sdpa" and bool(model._can_set_attn_implementation())


@contextmanager
def forked(model: Any) -> Iterator[None]:
    """Within it the last token of each row does not see the one before it; the other tokens see all before them.

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
    """As transformers calls an attention function, some families by name: the output [row, query, head, d]."""
    if attention_mask is not None:
        raise ValueError("its attention is given a mask of the model's own, which the causal kernel would leave out")
    out, _ = sdpa_attention_forward(module, query, key, value, None, **given | {"is_causal": True})
    key, value = (torch.cat([one[:, :, :-2], one[:, :, -1:]], dim=2) for one in (key, value))
    out[:, -1:], _ = sdpa_attention_forward(module, query[:, :, -1:], key, value, None, **given | {"is_causal": False})
    return out, None
