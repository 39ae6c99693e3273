"""The monitor of `awareness inside` beside plain forwards: 40 continuations of one prompt, read with the prompt shared.

    python bench/monitor.py --model smollm2 --tokens 500

The ways take turns on the same prompt, so that a busy machine slows all alike; on a CPU processor seconds are counted.
Must reach on a CPU: 40 continuations in at most 2.5 plain forwards of a prompt of 500 tokens.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from selfprobe.probes.branches import Text, branched
from selfprobe.probes.forward import called
from selfprobe.probes.model import LocalModel, load_model
from selfprobe.probes.tokens import opened
from selfprobe.sources.wrapped import continuations


def clock(device: str) -> float:
    """Processor seconds on a CPU, wall seconds on a GPU after all its work is done."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def texts_of(judge: LocalModel, tokens: int) -> tuple[tuple[int, ...], list[Text]]:
    """A prompt of about so many tokens, and the 40 continuations of the evaluation after it."""
    words = "Please look through the list of deliveries and tell me which of them came late. "
    asked = words * (tokens // 16)

    def encoded(text: str) -> tuple[int, ...]:
        return tuple(judge.tokenizer(text, add_special_tokens=False)["input_ids"])

    prompt = opened(judge.tokenizer, asked, judge.chat)
    head = encoded(prompt)
    ends = [encoded(prompt + one.text) for one in continuations() if one.topic == "evaluation"]
    return head, [Text(each, spoken=len(each) - len(head)) for each in ends]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--tokens", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    torch.set_num_threads(1)
    judge = load_model(options.model, device=options.device, dtype=options.dtype)
    prompt, texts = texts_of(judge, options.tokens)
    ids = torch.tensor([prompt], device=judge.device)

    def forward() -> None:
        with torch.inference_mode():
            float(called(judge, input_ids=ids, use_cache=False, keep=1).logits[0, -1, 0])

    found: dict[str, np.ndarray] = {}

    def read(sharing: bool) -> None:
        found[str(sharing)] = branched(judge, texts, sharing=sharing).totals

    ways: dict[str, Callable[[], None]] = {
        "plain forward of the prompt": forward,
        "monitor, prompt shared": lambda: read(True),
        "40 plain passes": lambda: read(False),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    forward()
    for number in range(options.rounds):
        for name, way in list(ways.items())[: 2 if number else 3]:  # forty passes are long enough once
            start = clock(judge.device.type)
            way()
            spent[name].append(clock(judge.device.type) - start)
    base = float(np.median(spent["plain forward of the prompt"]))
    print(f"{judge.name}, prompt of {len(prompt)} tokens, {len(texts)} continuations, {options.dtype}")
    for name, seconds in spent.items():
        print(f"{name:30s} {np.median(seconds):8.3f} s  {np.median(seconds) / base:6.2f} forwards")
    off = float(np.max(np.abs(found["True"] - found["False"])))
    print(f"largest difference of a continuation's log-probability: {off:.1e}")


if __name__ == "__main__":
    main()
