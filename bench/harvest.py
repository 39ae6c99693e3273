"""Harvesting beside two plain forwards a pair, and beside nnsight and TransformerLens where they
are installed.

    python bench/harvest.py --model smollm2 --dataset llmbar=PATH --count 200
    python bench/harvest.py --model meta-llama/Llama-3.1-8B-Instruct --dataset llmbar --device cuda --dtype bfloat16 \
        --batch-tokens 16384 --peak-tflops 989
    python bench/harvest.py --smoke
    pip install nnsight transformer-lens       # in an environment of their own: they may change the tested versions

Same pairs, same batches, same model for all. The ways take turns batch by batch, so that a busy
machine slows all alike; on a CPU processor seconds are counted, on a GPU wall seconds. Memory is
measured in processes of their own. Must reach on a CPU: ratio to two plain forwards 1.7, to nnsight
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
    return [
        Pair(f"p{i}", "left " * (3 + i % 7), "right " * (2 + i % 5), 1, context=f"Question {i}?")
        for i in range(count)
    ]


def sides(prompts: Sequence[Prompt], side: int, device: torch.device) -> dict[str, Tensor]:
    """Inputs of one side, padded on the left, as a user of another library would make them."""
    ids, pads = forward._padded([(*p.prefix, p.contrast[side]) for p in prompts], device)
    return {
        "input_ids": ids,
        "attention_mask": (torch.arange(ids.shape[1], device=device) >= pads[:, None]).long(),
    }


def nnsight_way(reader: LocalModel) -> Way:
    """The same states through nnsight: one trace a side, the last token of every block saved."""
    from nnsight import LanguageModel

    traced = LanguageModel(reader.model, tokenizer=reader.tokenizer)
    device = reader.model.device

    def read(prompts: Sequence[Prompt]) -> States:
        hidden: list[Tensor] = []
        for side in (0, 1):
            kept: list[Any] = []
            with torch.inference_mode(), traced.trace(sides(prompts, side, device)):
                for block in traced.model.layers:
                    output = block.output
                    kept.append((output[0] if isinstance(output, tuple) else output)[:, -1].save())
                spoken = traced.lm_head.output[:, -2].save()
            hidden.append(torch.stack([k.cpu() for k in kept], dim=1))
        return States(torch.stack(hidden, dim=1), forward.spoken_tokens(spoken, prompts))

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
        hidden: list[Tensor] = []
        for side in (0, 1):
            given = sides(prompts, side, device)
            with torch.inference_mode():
                logits, cache = bridge.run_with_cache(
                    given["input_ids"],
                    attention_mask=given["attention_mask"],
                    names_filter=lambda name: name.endswith("hook_resid_post"),
                    prepend_bos=False,
                )
            layers = [
                cache[f"blocks.{k}.hook_resid_post"][:, -1].cpu() for k in range(len(reader.blocks))
            ]
            hidden.append(torch.stack(layers, dim=1))
        return States(torch.stack(hidden, dim=1), forward.spoken_tokens(logits[:, -2], prompts))

    return read


def clock(device: str) -> float:
    """Processor seconds on a CPU, wall seconds on a GPU after all its work is done."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def measured(
    ways: dict[str, Way], prompts: list[Prompt], budget: int, device: str
) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds and largest relative difference from two plain forwards, of each way, taking turns."""
    order = sorted(range(len(prompts)), key=lambda i: prompts[i].length)
    seconds, off = dict.fromkeys(ways, 0.0), dict.fromkeys(ways, 0.0)
    for way in ways.values():  # the first call of a shape is slower
        way([prompts[order[0]]])
    all_batches = list(batches(prompts, order, budget))
    for turn, batch in enumerate(all_batches):
        print(
            f"\rbatch {turn + 1} of {len(all_batches)}, the longer ones last",
            end="",
            file=sys.stderr,
        )
        chosen, found = [prompts[i] for i in batch], {}
        names = list(ways)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = clock(device)
            found[name] = ways[name](chosen)
            seconds[name] += clock(device) - start
        for name in names:
            off[name] = max(off[name], apart(found[name], found["two_forwards"]).largest)
    print(file=sys.stderr)
    return seconds, off


def flops(reader: LocalModel, tokens: int, prompts: Sequence[Prompt]) -> float:
    """Of one prefix pass a pair: two a weight and token (embeddings apart), and causal attention."""
    config = reader.model.config.get_text_config()
    weights = sum(p.numel() for block in reader.blocks for p in block.parameters())
    width = config.num_attention_heads * (
        getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    )
    attention = sum(2 * p.length**2 * width for p in prompts) * len(reader.blocks)
    return 2.0 * weights * tokens + attention


def child(options: argparse.Namespace) -> None:
    """Peak memory in bytes of the model with one batch ("batch"), or of a whole harvest
    ("harvest").
    """
    reader, pairs = prepared(options)
    forget_peak()
    prompts = encode(reader.tokenizer, pairs)
    device, budget = reader.model.device.type, options.batch_tokens
    if options.child == "batch":
        order = sorted(range(len(prompts)), key=lambda i: prompts[i].length)
        *_, last = batches(prompts, order, budget)
        forward.states_of(reader, [prompts[i] for i in last], "two_forwards")
    else:
        with tempfile.TemporaryDirectory() as folder:
            harvest(
                reader,
                pairs,
                Path(folder),
                both_orders=False,
                batch_tokens=budget,
                progress=lambda _: None,
            )
    if device == "cuda":
        print(torch.cuda.max_memory_allocated())
    else:
        print(peak_resident())


def forget_peak() -> None:
    """Loading a model takes more for a moment than using it; where the system can, the peak begins
    anew.
    """
    if (file := Path("/proc/self/clear_refs")).exists():
        file.write_text("5")


def peak_resident() -> int:
    """Bytes; of the whole process where the system does not tell since when."""
    if (file := Path("/proc/self/status")).exists():
        line = next(x for x in file.read_text().splitlines() if x.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def prepared(options: argparse.Namespace) -> tuple[LocalModel, list[Pair]]:
    reader = load_model(options.model, device=options.device, dtype=options.dtype)
    if options.smoke:
        return reader, smoke_pairs(options.count)
    pairs = [p for p in load_pairs(options.dataset).pairs if not p.equal_texts]
    lengths = [p.length for p in encode(reader.tokenizer, pairs)]
    fitting = [
        p for p, n in zip(pairs, lengths, strict=True) if n < min(reader.context, options.longest)
    ]
    return reader, fitting[: options.count]


def peak(options: argparse.Namespace, what: str) -> int:
    out = subprocess.run(
        [sys.executable, *sys.argv, "--child", what], check=True, capture_output=True, text=True
    ).stdout
    return int(out.split()[-1])


def available(options: argparse.Namespace, reader: LocalModel) -> dict[str, Way]:
    ways: dict[str, Way] = {
        name: (lambda p, n=name: forward.states_of(reader, p, n)) for name in forward.WAYS
    }  # type: ignore[misc]
    if options.others:
        for module, make in {
            "nnsight": nnsight_way,
            "transformer_lens": transformer_lens_way,
        }.items():
            if importlib.util.find_spec(module) is None:
                print(f"{module} is not installed: not compared")
            else:
                ways[module] = make(reader)
    return ways


def compare(options: argparse.Namespace, reader: LocalModel, pairs: list[Pair]) -> None:
    """Run all ways on the pairs and print what was found."""
    prompts, device = encode(reader.tokenizer, pairs), reader.model.device.type
    tokens = sum(len(p.prefix) + 2 for p in prompts)
    seconds, off = measured(available(options, reader), prompts, options.batch_tokens, device)
    print(
        f"{reader.name}, {len(pairs)} pairs, {tokens} tokens, {options.dtype} on {options.device}, "
        f"{options.threads} threads"
    )
    unit = "CPU s" if device == "cpu" else "s"
    for name, spent in sorted(seconds.items(), key=lambda item: -item[1]):
        print(
            f"{name:18s} {spent:9.2f} {unit}  {len(pairs) / spent:8.2f} pairs/{unit}  {tokens / spent:9.0f} tokens/s"
            f"  ratio to two forwards {seconds['two_forwards'] / spent:5.2f}  difference {off[name]:.1e}"
        )
    for other in set(seconds) - set(forward.WAYS):
        print(f"shared_cache is {seconds[other] / seconds['shared_cache']:.2f} times {other}")
    base, whole = peak(options, "batch"), peak(options, "harvest")
    print(
        f"peak memory: harvest {whole / 1e6:.0f} MB, model with one batch {base / 1e6:.0f} MB, ratio {whole / base:.2f}"
    )
    if options.peak_tflops:
        share = flops(reader, tokens, prompts) / seconds["shared_cache"] / (options.peak_tflops * 1e12)
        rate = f"{tokens / seconds['shared_cache']:.0f} tokens/s"
        print(f"{rate}, {100 * share:.1f} % of the card's {options.peak_tflops:g} TFLOP/s")
    print(json.dumps({"seconds": seconds, "difference": off, "peak_ratio": whole / base}))


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
    options.count = min(options.count, 6) if options.smoke else options.count
    options.batch_tokens = (
        options.batch_tokens or BATCH_TOKENS["cuda" if options.device.startswith("cuda") else "cpu"]
    )
    torch.set_num_threads(options.threads)
    if options.child:
        child(options)
        return
    compare(options, *prepared(options))


if __name__ == "__main__":
    main()
