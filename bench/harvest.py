"""Harvesting beside two plain forwards a pair, and beside nnsight and TransformerLens where they
are installed.

    python bench/harvest.py --model smollm2 --dataset llmbar=PATH --count 200
    python bench/harvest.py --model meta-llama/Llama-3.1-8B-Instruct --dataset llmbar --device cuda --dtype bfloat16 \
        --batch-tokens 16384 --peak-tflops 989
    python bench/harvest.py --smoke
    pip install nnsight transformer-lens       # in an environment of their own: they may change the tested versions

Same pairs, same batches, same model for all. The ways take turns batch by batch, so that a busy
machine slows all alike; on a CPU processor seconds are counted, on a GPU wall seconds. Memory is
measured in processes of their own. Must reach on a CPU: ratio to two plain forwards 2.0, to nnsight
1.7, to TransformerLens 1.9; relative difference 1e-3; peak memory 1.1 times the model with one
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
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from selfprobe.data.pairs import Pair
from selfprobe.data.public_pairs import load_pairs
from selfprobe.probes import forward
from selfprobe.probes.forward import States, batches
from selfprobe.probes.forward import off as apart
from selfprobe.probes.harvesting import BATCH_TOKENS, harvest
from selfprobe.probes.model import LocalModel, load_model
from selfprobe.probes.tokens import Prompt, encode

Way = Callable[[Sequence[Prompt]], States]


def smoke_pairs(count: int) -> list[Pair]:
    pairs: list[Pair] = []
    for i in range(count):
        left_text = "left " * (3 + i % 7)
        right_text = "right " * (2 + i % 5)
        pairs.append(Pair(f"p{i}", left_text, right_text, 1, context=f"Question {i}?"))
    return pairs


def sides(prompts: Sequence[Prompt], side: int, device: torch.device) -> dict[str, Tensor]:
    """Inputs of one side, padded on the left, as a user of another library would make them."""
    token_rows = [(*prompt.prefix, prompt.contrast[side]) for prompt in prompts]
    input_ids, pad_counts = forward._padded(token_rows, device)
    positions = torch.arange(input_ids.shape[1], device=device)
    is_token = positions >= pad_counts[:, None]
    return {"input_ids": input_ids, "attention_mask": is_token.long()}


def nnsight_way(reader: LocalModel) -> Way:
    """The same states through nnsight: one trace a side, the last token of every block saved."""
    from nnsight import LanguageModel

    traced = LanguageModel(reader.model, tokenizer=reader.tokenizer)
    device = reader.model.device

    def read(prompts: Sequence[Prompt]) -> States:
        states_of_sides: list[Tensor] = []
        for side in (0, 1):
            saved_states: list[Any] = []
            with torch.inference_mode(), traced.trace(sides(prompts, side, device)):
                for block in traced.model.layers:
                    output = block.output
                    block_states = output[0] if isinstance(output, tuple) else output
                    saved_states.append(block_states[:, -1].save())
                spoken_logits = traced.lm_head.output[:, -2].save()
            layer_states = [states.cpu() for states in saved_states]
            states_of_sides.append(torch.stack(layer_states, dim=1))
        hidden_states = torch.stack(states_of_sides, dim=1)
        return States(hidden_states, forward.spoken_tokens(spoken_logits, prompts))

    return read


def transformer_lens_way(reader: LocalModel) -> Way:
    """The same states through TransformerLens: one `run_with_cache` a side, the last token of
    `resid_post` kept.
    """
    from transformer_lens.model_bridge import TransformerBridge

    bridge = TransformerBridge.boot_transformers(
        reader.model.config._name_or_path,
        hf_model=reader.model,
        tokenizer=reader.tokenizer,
        device=str(reader.model.device),
    )
    device = reader.model.device

    def read(prompts: Sequence[Prompt]) -> States:
        states_of_sides: list[Tensor] = []
        for side in (0, 1):
            inputs = sides(prompts, side, device)
            with torch.inference_mode():
                logits, cache = bridge.run_with_cache(
                    inputs["input_ids"],
                    attention_mask=inputs["attention_mask"],
                    names_filter=lambda name: name.endswith("hook_resid_post"),
                    prepend_bos=False,
                )
            layer_states = [
                cache[f"blocks.{layer}.hook_resid_post"][:, -1].cpu()
                for layer in range(len(reader.blocks))
            ]
            states_of_sides.append(torch.stack(layer_states, dim=1))
        hidden_states = torch.stack(states_of_sides, dim=1)
        return States(hidden_states, forward.spoken_tokens(logits[:, -2], prompts))

    return read


def clock(device: str) -> float:
    """Processor seconds on a CPU, wall seconds on a GPU after all its work is done."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def measured(
    ways: dict[str, Way], prompts: list[Prompt], batch_tokens: int, device: str
) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds and largest relative difference from two plain forwards, of each way, taking turns."""
    order = shortest_first(prompts)
    seconds_by_way = dict.fromkeys(ways, 0.0)
    largest_differences = dict.fromkeys(ways, 0.0)
    for way in ways.values():  # the first call of a shape is slower
        way([prompts[order[0]]])

    way_names = list(ways)
    all_batches = list(batches(prompts, order, batch_tokens))
    for batch_index, batch in enumerate(all_batches):
        print(
            f"\rbatch {batch_index + 1} of {len(all_batches)}, the longer ones last",
            end="",
            file=sys.stderr,
        )
        batch_prompts = [prompts[i] for i in batch]
        states_by_way: dict[str, States] = {}
        first_way = batch_index % len(way_names)
        for name in way_names[first_way:] + way_names[:first_way]:
            start = clock(device)
            states_by_way[name] = ways[name](batch_prompts)
            seconds_by_way[name] += clock(device) - start
        for name, states in states_by_way.items():
            difference = apart(states, states_by_way["two_forwards"]).largest
            largest_differences[name] = max(largest_differences[name], difference)
    print(file=sys.stderr)
    return seconds_by_way, largest_differences


def shortest_first(prompts: Sequence[Prompt]) -> list[int]:
    return sorted(range(len(prompts)), key=lambda i: prompts[i].length)


def flops(reader: LocalModel, tokens: int, prompts: Sequence[Prompt]) -> float:
    """Of one prefix pass a pair: two a weight and token (embeddings apart), and causal attention."""
    config = reader.model.config.get_text_config()
    weight_count = 0
    for block in reader.blocks:
        weight_count += sum(weights.numel() for weights in block.parameters())

    head_width = getattr(config, "head_dim", None)
    if not head_width:
        head_width = config.hidden_size // config.num_attention_heads
    attention_width = config.num_attention_heads * head_width
    squared_lengths = sum(prompt.length**2 for prompt in prompts)
    attention_flops = 2 * squared_lengths * attention_width * len(reader.blocks)
    return 2.0 * weight_count * tokens + attention_flops


def child(options: argparse.Namespace) -> None:
    """Peak memory in bytes of the model with one batch ("batch"), or of a whole harvest
    ("harvest").
    """
    reader, pairs = prepared(options)
    forget_peak()
    prompts = encode(reader.tokenizer, pairs)
    if options.child == "batch":
        *_, last_batch = batches(prompts, shortest_first(prompts), options.batch_tokens)
        forward.states_of(reader, [prompts[i] for i in last_batch], "two_forwards")
    else:
        with tempfile.TemporaryDirectory() as folder:
            harvest(
                reader,
                pairs,
                Path(folder),
                both_orders=False,
                batch_tokens=options.batch_tokens,
                progress=lambda _: None,
            )
    if reader.model.device.type == "cuda":
        print(torch.cuda.max_memory_allocated())
    else:
        print(peak_resident())


def forget_peak() -> None:
    """Loading a model takes more for a moment than using it; where the system can, the peak begins
    anew.
    """
    clear_refs = Path("/proc/self/clear_refs")
    if clear_refs.exists():
        clear_refs.write_text("5")


def peak_resident() -> int:
    """Bytes; of the whole process where the system does not tell since when."""
    status_file = Path("/proc/self/status")
    if status_file.exists():
        for line in status_file.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def prepared(options: argparse.Namespace) -> tuple[LocalModel, list[Pair]]:
    reader = load_model(options.model, device=options.device, dtype=options.dtype)
    if options.smoke:
        return reader, smoke_pairs(options.count)
    pairs = [pair for pair in load_pairs(options.dataset).pairs if not pair.equal_texts]
    prompts = encode(reader.tokenizer, pairs)
    max_length = min(reader.context, options.longest)
    fitting_pairs = [
        pair for pair, prompt in zip(pairs, prompts, strict=True) if prompt.length < max_length
    ]
    return reader, fitting_pairs[: options.count]


def peak_bytes(part: str) -> int:
    """Peak memory of this call's "batch" or "harvest", in a process of its own."""
    command = [sys.executable, *sys.argv, "--child", part]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(process.stdout.split()[-1])


def forward_way(reader: LocalModel, way_name: forward.Way) -> Way:
    """One of the ways of this package."""

    def read(prompts: Sequence[Prompt]) -> States:
        return forward.states_of(reader, prompts, way_name)

    return read


def available(options: argparse.Namespace, reader: LocalModel) -> dict[str, Way]:
    ways: dict[str, Way] = {}
    for way_name in forward.WAYS:
        ways[way_name] = forward_way(reader, way_name)
    if not options.others:
        return ways
    other_libraries = {"nnsight": nnsight_way, "transformer_lens": transformer_lens_way}
    for module, make_way in other_libraries.items():
        if importlib.util.find_spec(module) is None:
            print(f"{module} is not installed: not compared")
        else:
            ways[module] = make_way(reader)
    return ways


def compare(options: argparse.Namespace, reader: LocalModel, pairs: list[Pair]) -> None:
    """Run all ways on the pairs and print what was found."""
    prompts = encode(reader.tokenizer, pairs)
    device = reader.model.device.type
    tokens = sum(len(prompt.prefix) + 2 for prompt in prompts)
    seconds_by_way, largest_differences = measured(
        available(options, reader), prompts, options.batch_tokens, device
    )
    print(
        f"{reader.name}, {len(pairs)} pairs, {tokens} tokens, {options.dtype} on {options.device}, "
        f"{options.threads} threads"
    )
    unit = "CPU s" if device == "cpu" else "s"
    for name, seconds in sorted(seconds_by_way.items(), key=lambda item: -item[1]):
        ratio = seconds_by_way["two_forwards"] / seconds
        print(
            f"{name:18s} {seconds:9.2f} {unit}  {len(pairs) / seconds:8.2f} pairs/{unit}  "
            f"{tokens / seconds:9.0f} tokens/s  ratio to two forwards {ratio:5.2f}  "
            f"difference {largest_differences[name]:.1e}"
        )

    fastest_way = min(("tree_mask", "shared_cache"), key=seconds_by_way.__getitem__)
    fastest_seconds = seconds_by_way[fastest_way]
    for name in set(seconds_by_way) - set(forward.WAYS):
        print(f"{fastest_way} is {seconds_by_way[name] / fastest_seconds:.2f} times {name}")

    batch_bytes = peak_bytes("batch")
    harvest_bytes = peak_bytes("harvest")
    peak_ratio = harvest_bytes / batch_bytes
    print(
        f"peak memory: harvest {harvest_bytes / 1e6:.0f} MB, "
        f"model with one batch {batch_bytes / 1e6:.0f} MB, ratio {peak_ratio:.2f}"
    )
    if options.peak_tflops:
        flops_per_second = flops(reader, tokens, prompts) / fastest_seconds
        share = flops_per_second / (options.peak_tflops * 1e12)
        print(
            f"{tokens / fastest_seconds:.0f} tokens/s, "
            f"{100 * share:.1f} % of the card's {options.peak_tflops:g} TFLOP/s"
        )
    numbers = {
        "seconds": seconds_by_way,
        "difference": largest_differences,
        "peak_ratio": peak_ratio,
    }
    print(json.dumps(numbers))


def main() -> None:
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
    if not options.batch_tokens:
        device = "cuda" if options.device.startswith("cuda") else "cpu"
        options.batch_tokens = BATCH_TOKENS[device]
    torch.set_num_threads(options.threads)
    if options.child:
        child(options)
        return
    compare(options, *prepared(options))


if __name__ == "__main__":
    main()
