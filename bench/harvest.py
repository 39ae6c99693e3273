"""Harvesting beside two plain forwards a pair, and beside nnsight and TransformerLens where they
are installed.

    python bench/harvest.py --model smollm2 --dataset llmbar=PATH --count 200
    python bench/harvest.py --model meta-llama/Llama-3.1-8B-Instruct --dataset llmbar \
        --device cuda --dtype bfloat16 --batch-tokens 16384 --peak-tflops 989
    python bench/harvest.py --smoke
    pip install nnsight transformer-lens       # elsewhere: they may change the tested versions

Same pairs, same batches, same model for all. The ways take turns batch by batch, so that a busy
machine slows all alike; on a CPU processor seconds are counted, on a GPU wall seconds. Memory is
measured in processes of their own. Must reach on a CPU: ratio to two plain forwards 1.7, to nnsight
1.7, to TransformerLens 1.9; relative difference 1e-3; peak memory 1.15 times the model with one
batch.
"""

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from selfprobe.data.pairs import Pair
from selfprobe.data.public_pairs import load_pairs
from selfprobe.probes import forward
from selfprobe.probes.forward import States
from selfprobe.probes.harvesting import BATCH_TOKENS, harvest
from selfprobe.probes.model import LocalModel, load_model
from selfprobe.probes.tokens import Prompt, encode

ReadPrompts = Callable[[Sequence[Prompt]], States]


def smoke_pairs(count: int) -> list[Pair]:
    pairs: list[Pair] = []
    for number in range(count):
        text_1, text_2 = "left " * (3 + number % 7), "right " * (2 + number % 5)
        pairs.append(Pair(f"p{number}", text_1, text_2, 1, context=f"Question {number}?"))
    return pairs


def side_inputs(prompts: Sequence[Prompt], side: int, device: torch.device) -> dict[str, Tensor]:
    """Inputs of one side, padded on the left, as a user of another library would make them."""
    token_rows = [(*prompt.prefix, prompt.contrast[side]) for prompt in prompts]
    ids, pad_counts = forward.left_padded(token_rows, device)
    columns = torch.arange(ids.shape[1], device=device)
    return {"input_ids": ids, "attention_mask": (columns >= pad_counts[:, None]).long()}


def nnsight_reader(judge: LocalModel) -> ReadPrompts:
    """The same states through nnsight: one trace a side, the last token of every block saved."""
    from nnsight import LanguageModel

    traced = LanguageModel(judge.model, tokenizer=judge.tokenizer)
    device = judge.model.device

    def read(prompts: Sequence[Prompt]) -> States:
        side_states: list[Tensor] = []
        for side in (0, 1):
            inputs = side_inputs(prompts, side, device)
            saved_states: list[Any] = []
            with torch.inference_mode(), traced.trace(inputs):
                for block in traced.model.layers:
                    output = block.output
                    hidden = output[0] if isinstance(output, tuple) else output
                    saved_states.append(hidden[:, -1].save())
                logits = traced.lm_head.output[:, -2].save()
            side_states.append(torch.stack([states.cpu() for states in saved_states], dim=1))
        log_probs = forward.contrast_logprobs(logits, prompts)
        return States(torch.stack(side_states, dim=1), log_probs)

    return read


def transformer_lens_reader(judge: LocalModel) -> ReadPrompts:
    """The same states through TransformerLens: one `run_with_cache` a side, the last token of
    `resid_post` kept.
    """
    from transformer_lens.model_bridge import TransformerBridge

    bridge = TransformerBridge.boot_transformers(
        judge.model.config._name_or_path,
        hf_model=judge.model,
        tokenizer=judge.tokenizer,
        device=str(judge.model.device),
    )
    device = judge.model.device
    hooks = [f"blocks.{number}.hook_resid_post" for number in range(len(judge.blocks))]

    def read(prompts: Sequence[Prompt]) -> States:
        side_states: list[Tensor] = []
        for side in (0, 1):
            inputs = side_inputs(prompts, side, device)
            with torch.inference_mode():
                logits, cache = bridge.run_with_cache(
                    inputs["input_ids"],
                    attention_mask=inputs["attention_mask"],
                    names_filter=lambda name: name.endswith("hook_resid_post"),
                    prepend_bos=False,
                )
            side_states.append(torch.stack([cache[hook][:, -1].cpu() for hook in hooks], dim=1))
        log_probs = forward.contrast_logprobs(logits[:, -2], prompts)
        return States(torch.stack(side_states, dim=1), log_probs)

    return read


def clock(device: str) -> float:
    """Processor seconds on a CPU, wall seconds on a GPU after all its work is done."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def seconds_and_differences(
    readers: dict[str, ReadPrompts], prompts: list[Prompt], batch_tokens: int, device: str
) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds and largest relative difference from two plain forwards of each way, in turns."""
    order = sorted(range(len(prompts)), key=lambda number: prompts[number].length)
    for read in readers.values():  # the first call of a shape is slower
        read([prompts[order[0]]])

    seconds = dict.fromkeys(readers, 0.0)
    differences = dict.fromkeys(readers, 0.0)
    names = list(readers)
    batches = list(forward.cut_batches(prompts, order, batch_tokens))
    for turn, batch in enumerate(batches):
        progress = f"\rbatch {turn + 1} of {len(batches)}, the longer ones last"
        print(progress, end="", file=sys.stderr)
        batch_prompts = [prompts[number] for number in batch]
        states_by_name: dict[str, States] = {}
        first_name = turn % len(names)
        for name in names[first_name:] + names[:first_name]:
            start = clock(device)
            states_by_name[name] = readers[name](batch_prompts)
            seconds[name] += clock(device) - start
        reference = states_by_name["two_forwards"]
        for name, states in states_by_name.items():
            difference = forward.state_distance(states, reference).largest
            differences[name] = max(differences[name], difference)
    print(file=sys.stderr)
    return seconds, differences


def floating_point_operations(judge: LocalModel, tokens: int, prompts: Sequence[Prompt]) -> float:
    """Operations of one prefix pass a pair: two a weight and token (without embeddings), and causal
    attention.
    """
    config = judge.model.config.get_text_config()
    block_weights = sum(weights.numel() for block in judge.blocks for weights in block.parameters())
    head_width = getattr(config, "head_dim", None)
    if not head_width:
        head_width = config.hidden_size // config.num_attention_heads
    width = config.num_attention_heads * head_width
    layer_attention = sum(2 * prompt.length**2 * width for prompt in prompts)
    return float(2.0 * block_weights * tokens + layer_attention * len(judge.blocks))


def print_peak_memory(options: argparse.Namespace) -> None:
    """Peak memory in bytes of the model with one batch ("batch"), or of a whole harvest
    ("harvest").
    """
    judge, pairs = judge_and_pairs(options)
    forget_peak()
    prompts = encode(judge.tokenizer, pairs)
    if options.child == "batch":
        order = sorted(range(len(prompts)), key=lambda number: prompts[number].length)
        *_, longest_batch = forward.cut_batches(prompts, order, options.batch_tokens)
        batch_prompts = [prompts[number] for number in longest_batch]
        forward.read_states(judge, batch_prompts, "two_forwards")
    else:
        with tempfile.TemporaryDirectory() as folder:
            harvest(
                judge,
                pairs,
                Path(folder),
                both_orders=False,
                batch_tokens=options.batch_tokens,
                progress=lambda _: None,
            )
    if judge.model.device.type == "cuda":
        print(torch.cuda.max_memory_allocated())
    else:
        print(peak_resident_bytes())


def forget_peak() -> None:
    """Loading a model takes more for a moment than using it; where the system can, the peak begins
    anew.
    """
    file = Path("/proc/self/clear_refs")
    if file.exists():
        file.write_text("5")


def peak_resident_bytes() -> int:
    """Bytes; of the whole process where the system does not tell since when."""
    file = Path("/proc/self/status")
    if file.exists():
        lines = file.read_text().splitlines()
        peak_line = next(line for line in lines if line.startswith("VmHWM:"))
        return int(peak_line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def judge_and_pairs(options: argparse.Namespace) -> tuple[LocalModel, list[Pair]]:
    judge = load_model(options.model, device=options.device, dtype=options.dtype)
    if options.smoke:
        return judge, smoke_pairs(options.count)
    pairs = [pair for pair in load_pairs(options.dataset).pairs if not pair.has_equal_texts]
    prompts = encode(judge.tokenizer, pairs)
    longest = min(judge.context, options.longest)
    fitting = [pair for pair, prompt in zip(pairs, prompts, strict=True) if prompt.length < longest]
    return judge, fitting[: options.count]


def peak_memory(what: Literal["batch", "harvest"]) -> int:
    """Bytes that a process of its own takes at most."""
    command = [sys.executable, *sys.argv, "--child", what]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(output.split()[-1])


def available_readers(options: argparse.Namespace, judge: LocalModel) -> dict[str, ReadPrompts]:
    readers: dict[str, ReadPrompts] = {}
    for way in forward.WAYS:
        readers[way] = partial(forward.read_states, judge, way=way)
    if not options.others:
        return readers
    makers = {"nnsight": nnsight_reader, "transformer_lens": transformer_lens_reader}
    for module, make_reader in makers.items():
        if importlib.util.find_spec(module) is None:
            print(f"{module} is not installed: not compared")
        else:
            readers[module] = make_reader(judge)
    return readers


def compare(options: argparse.Namespace, judge: LocalModel, pairs: list[Pair]) -> None:
    """Run all ways on the pairs and print seconds, differences and memory."""
    prompts = encode(judge.tokenizer, pairs)
    device = judge.model.device.type
    tokens = sum(len(prompt.prefix) + 2 for prompt in prompts)
    readers = available_readers(options, judge)
    seconds, differences = seconds_and_differences(readers, prompts, options.batch_tokens, device)

    print(
        f"{judge.name}, {len(pairs)} pairs, {tokens} tokens, {options.dtype} on {options.device}, "
        f"{options.threads} threads"
    )
    unit = "CPU s" if device == "cpu" else "s"
    slowest_first = sorted(seconds, key=lambda name: -seconds[name])
    for name in slowest_first:
        spent = seconds[name]
        print(
            f"{name:18s} {spent:9.2f} {unit}  {len(pairs) / spent:8.2f} pairs/{unit}  "
            f"{tokens / spent:9.0f} tokens/s  ratio to two forwards "
            f"{seconds['two_forwards'] / spent:5.2f}  difference {differences[name]:.1e}"
        )
    harvest_seconds = seconds["shared_cache"]
    for other in set(seconds) - set(forward.WAYS):
        print(f"shared_cache is {seconds[other] / harvest_seconds:.2f} times {other}")

    batch_bytes, harvest_bytes = peak_memory("batch"), peak_memory("harvest")
    peak_ratio = harvest_bytes / batch_bytes
    print(
        f"peak memory: harvest {harvest_bytes / 1e6:.0f} MB, "
        f"model with one batch {batch_bytes / 1e6:.0f} MB, ratio {peak_ratio:.2f}"
    )
    if options.peak_tflops:
        operations = floating_point_operations(judge, tokens, prompts)
        share = operations / harvest_seconds / (options.peak_tflops * 1e12)
        print(
            f"{tokens / harvest_seconds:.0f} tokens/s, "
            f"{100 * share:.1f} % of the card's {options.peak_tflops:g} TFLOP/s"
        )
    result = {"seconds": seconds, "difference": differences, "peak_ratio": peak_ratio}
    print(json.dumps(result))


def parsed_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--dataset", default="llmbar", help="as for selfprobe probe run")
    parser.add_argument("--count", type=int, default=200, help="pairs")
    parser.add_argument(
        "--longest", type=int, default=1 << 30, help="leave out longer pairs (tokens)"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch-tokens", type=int)
    parser.add_argument(
        "--peak-tflops", type=float, help="of the card in this dtype, to print the share of it"
    )
    parser.add_argument(
        "--no-others",
        dest="others",
        action="store_false",
        help="leave nnsight and TransformerLens out",
    )
    parser.add_argument("--smoke", action="store_true", help="a few made-up pairs")
    parser.add_argument("--child", choices=["batch", "harvest"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.smoke:
        options.count = min(options.count, 6)
    if options.batch_tokens is None:
        is_gpu = options.device.startswith("cuda")
        options.batch_tokens = BATCH_TOKENS["cuda" if is_gpu else "cpu"]
    return options


def main() -> None:
    options = parsed_options()
    torch.set_num_threads(options.threads)
    if options.child:
        print_peak_memory(options)
        return
    compare(options, *judge_and_pairs(options))


if __name__ == "__main__":
    main()
