"""What a model's configuration and modules tell of the ways of reading, without a forward pass."""

import inspect
from collections.abc import Sequence
from typing import Any

from torch import nn

from selfprobe.probes.decoder import decoder_blocks
from selfprobe.probes.forward import Way
from selfprobe.probes.model import LocalModel

WINDOWS = ("sliding_window", "attention_chunk_size", "attention_window_size", "window_size", "local_attention")
"""Settings that hide far tokens: layers that do so have a mask of their own, which the tree mask would replace."""


def length_switches(config: Any) -> tuple[int, ...]:
    """Lengths up to and past which positions are turned differently, for a whole batch (Phi-3's long rope)."""
    rope = getattr(config, "rope_parameters", None) or {}
    found = {
        int(kind["original_max_position_embeddings"])
        for kind in (rope, *rope.values())  # one for all layers, or one a type of layer
        if isinstance(kind, dict) and kind.get("rope_type") == "longrope"
    }
    return tuple(sorted(found))


def blocked(judge: LocalModel, way: Way, switches: Sequence[int], longest: int) -> str:
    """Why `way` would be wrong for prompts of up to `longest` tokens, or "" where only a trial can tell.

    A trial might not see a few hidden tokens, and on a CPU a state-space model takes long for each: its scan goes from
    token to token.
    """
    config = judge.model.config.get_text_config()
    windows = [w for name in WINDOWS if isinstance(w := getattr(config, name, None), int) and 0 < w <= longest]
    if way == "tree_mask" and windows:
        return f"pairs of up to {longest} tokens pass the sliding window of {min(windows)}"
    if way == "tree_mask" and recurrent(judge):
        return "its blocks mix neighbouring tokens without attention, and no mask hides one from the next"
    if way == "shared_cache" and "past_key_values" not in inspect.signature(judge.model.forward).parameters:
        return "it goes on from no key-value cache"
    if way == "shared_cache" and switches:
        return f"positions are turned anew past {switches[0]} tokens, and a cache would keep the old ones"
    return ""


def recurrent(judge: LocalModel) -> bool:
    """Whether some block convolves over tokens, as all state-space models and their hybrids do."""
    return any(
        isinstance(module, nn.Conv1d) and module.kernel_size[0] > 1
        for block in decoder_blocks(judge.model)
        for module in block.modules()
    )
