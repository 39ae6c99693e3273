"""Whether a model fits into memory, said before its weights are loaded."""

from typing import Any, Literal

import torch

from selfprobe.probes.model import DTYPES, source_of

BITS = {"4bit": 0.6, "8bit": 1.1}
"""Bytes of a quantised weight, with its scales and what is left in half precision."""
ROOM = 1.15
"""What reading takes beside the weights, at most."""
ADAM = 16
"""Bytes of a number that learns: an adapter's with its gradient and two means, all in float32; or a weight's gradient,
its two means, and the copy that it is put back from."""


def check_memory(name: str, loading: dict[str, Any], *, learns: Literal["full", "lora"] | None = None) -> None:
    """ValueError where the weights of `name` do not fit into what is free; nothing is loaded.

    `learns`: what is to be trained: all of them, which only float32 can, or adapters, which float16 cannot. What cannot
    be told from the configuration is left to loading, which says what is wrong with it.
    """
    from accelerate.utils import get_max_memory

    full = learns == "full"
    if learns == "lora" and loading["dtype"] == "float16":
        raise ValueError("float16 loses small gradients: train in bfloat16 or float32 (--dtype)")
    if full and (loading["quantize"] or loading["dtype"] != "float32"):
        raise ValueError(
            f"all weights are trained in float32 alone, got {loading['quantize'] or loading['dtype']}: a step is "
            "smaller than what that rounds. Take --dtype float32 without --quantize, or adapters (without --full)"
        )
    count = _weights(name, loading)
    if count is None:
        return
    each = BITS.get(loading["quantize"] or "", float(DTYPES[loading["dtype"]].itemsize))
    needed = count * (each * ROOM + ADAM * full)
    free = {str(place): int(found) for place, found in get_max_memory().items()}
    device, several = loading["device"], loading["device_map"]
    place = device.partition(":")[2] or "0" if device.startswith("cuda") else "cpu"
    there = sum(free.values()) if several else free.get(place, 0)
    if there and needed > there:
        where = "over all devices" if several else f"on {device}"
        advice = "--dtype bfloat16, --quantize 4bit, --device-map auto"
        raise ValueError(
            f"{name} needs about {size(int(needed))} of memory in {loading['quantize'] or loading['dtype']}"
            f"{', all of its weights trained' * full}, and {size(there)} are free {where}: try "
            f"{'adapters (without --full)' if full else advice}, or a smaller model"
        )


def _weights(name: str, loading: dict[str, Any]) -> int | None:
    """How many, by the configuration alone; None where there is none to be read."""
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        config = AutoConfig.from_pretrained(source_of(name), revision=loading["revision"] or "main")
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except (OSError, ValueError, KeyError):
        return None
    return int(sum(p.numel() for p in model.parameters()))


def size(count: int) -> str:
    """`1.2 GB`, `35 MB`."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
