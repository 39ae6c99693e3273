"""The monitor of `awareness inside` beside plain forwards: 40 continuations of one prompt, read
with the prompt shared.

    python bench/monitor.py --model smollm2 --tokens 500

The ways take turns on the same prompt, so that a busy machine slows all alike; on a CPU processor
seconds are counted. Of the plain passes, one for each continuation, `--alone` are made, spread over
the 40: they are as long as each other. Must reach on a CPU: 40 continuations in at most 3 plain
forwards of a prompt of 500 tokens.
"""

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

from selfprobe.data.wrapped import continuations
from selfprobe.probes.branches import Text, branched
from selfprobe.probes.forward import model_output
from selfprobe.probes.model import LocalModel, load_model
from selfprobe.probes.tokens import opened_chat

Result = TypeVar("Result")


def clock(device: str) -> float:
    """Processor seconds on a CPU, wall seconds on a GPU after all its work is done."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def texts_of(judge: LocalModel, tokens: int) -> tuple[tuple[int, ...], list[Text]]:
    """A prompt of about so many tokens, and the 40 continuations of the evaluation after it."""
    sentence = "Please look through the list of deliveries and tell me which of them came late. "
    user_message = sentence * (tokens // 16)

    def encoded(text: str) -> tuple[int, ...]:
        return tuple(judge.tokenizer(text, add_special_tokens=False)["input_ids"])

    prompt = opened_chat(judge.tokenizer, user_message, judge.chat)
    prompt_tokens = encoded(prompt)
    texts: list[Text] = []
    for continuation in continuations():
        if continuation.topic == "evaluation":
            text_tokens = encoded(prompt + continuation.text)
            texts.append(Text(text_tokens, spoken=len(text_tokens) - len(prompt_tokens)))
    return prompt_tokens, texts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--tokens", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone", type=int, default=8, help="Number of plain passes. Default: 8.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    torch.set_num_threads(1)
    judge = load_model(options.model, device=options.device, dtype=options.dtype)
    prompt, texts = texts_of(judge, options.tokens)
    ids = torch.tensor([prompt], device=judge.device)

    def forward() -> None:
        with torch.inference_mode():
            float(model_output(judge, input_ids=ids, use_cache=False, keep=1).logits[0, -1, 0])

    plain_indices = range(0, len(texts), max(len(texts) // options.alone, 1))
    plain_texts = [texts[index] for index in plain_indices]

    def monitor() -> np.ndarray:
        return branched(judge, texts).totals

    def plainly() -> np.ndarray:
        return branched(judge, plain_texts, sharing=False).totals

    ways: dict[str, Callable[[], object]] = {
        "plain forward of the prompt": forward,
        "monitor, prompt shared": monitor,
    }
    seconds_by_way: dict[str, list[float]] = {name: [] for name in ways}

    def timed(way: Callable[[], Result]) -> tuple[float, Result]:
        start = clock(judge.device.type)
        result = way()
        return clock(judge.device.type) - start, result

    forward()
    for _ in range(options.rounds):
        for name, way in ways.items():
            way_seconds, _ = timed(way)
            seconds_by_way[name].append(way_seconds)
    shared_totals = monitor()
    plain_seconds, plain_totals = timed(plainly)
    pass_count = len(plain_texts)
    seconds_by_way[f"{pass_count} plain passes, each"] = [plain_seconds / pass_count]

    forward_seconds = float(np.median(seconds_by_way["plain forward of the prompt"]))
    print(
        f"{judge.name}, prompt of {len(prompt)} tokens, {len(texts)} continuations, {options.dtype}"
    )
    for name, all_seconds in seconds_by_way.items():
        median_seconds = np.median(all_seconds)
        ratio = median_seconds / forward_seconds
        print(f"{name:30s} {median_seconds:8.3f} s  {ratio:6.2f} forwards")
    differences = np.abs(shared_totals[plain_indices] - plain_totals)
    print(f"largest difference of a continuation's log-probability: {np.max(differences):.1e}")


if __name__ == "__main__":
    main()
