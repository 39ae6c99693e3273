"""Preference probe: which of two texts does a fitted direction in a model's states prefer?

Latent-preference probes, §3, §4.4: φ± is the last token's state after the probe's block, x =
φ̃⁺ − φ̃⁻, and the sign of the probe's score decides; with a probe fitted to both orders the two are
averaged, and with one fitted to the first order the means of its training half are taken off
(`centre` in the log). Fit it before, with `selfprobe probe run`; here nothing is fitted. Pairs that are not
held out are left out: those of a question that the probe was trained on, but for the test half of
its own run.

The states are those of a transformers model, loaded in this process: the one that the probe's card
names, or `-T model=PATH`. Inspect's `--model` is not asked: say `--model none/none`.

    inspect eval preference_tasks/preference_probe.py --model none/none -T probe=probes/x.safetensors -T dataset=llmbar
    inspect eval selfprobe/preference_probe --model none/none -T probe=x.safetensors -T dataset=mine.jsonl -T model=DIR
"""

from itertools import compress

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset

from selfprobe.data.pairs import Pair
from selfprobe.data.preferences import preferences, record_to_sample
from selfprobe.errors import InputError
from selfprobe.errors.arguments import one_of, task
from selfprobe.probes.fit import centre_of_probe
from selfprobe.scorers.preference import preference_probe_reading
from selfprobe.solvers.apply_probe import apply_probe, read_card

VERSION = 1
PAPER = "latent-preference probes"
CALLS = 0
NEEDS = ("-T probe=…", "-T dataset=…")


@task
def preference_probe(
    probe: str | None = None,
    dataset: str | None = None,
    pairs: int | None = None,
    model: str | None = None,
    device: str = "cpu",
    dtype: str | None = None,
    device_map: str | None = None,
    attention: str | None = None,
    allow_pickle: bool = False,
) -> Task:
    """A fitted probe compares two texts; the model's own answers come from the same passes.

    Args:
        probe: A probe file (.safetensors).
        dataset: llmbar, mt_bench, summeval, newsroom, hanna, mctaco; NAME=PATH for a local copy
            (rocstories=…); or your own .jsonl, .json, .csv, .tsv, .parquet or
            hf:owner/name@REVISION: question, text_1, text_2, label.
        pairs: Use a random sample of this many pairs, drawn before those with a question seen in
            training are left out.
        model: Probe's model: a folder, GGUF file or name. Default: the one on the probe's card.
        device: "cpu", "cuda", "cuda:1", "mps".
        dtype: float32, bfloat16 or float16. Default: the type in which the probe was fitted.
        device_map: accelerate's, such as auto, for a model on several devices.
        attention: transformers' attn_implementation.
        allow_pickle: Load weights that exist as pickle alone, which runs any code of their author.
    """
    one_of("allow_pickle", allow_pickle, (False, True))
    if probe is None:
        raise InputError(
            "probe must be a probe file, as -T probe=x.safetensors; `selfprobe probe run` makes them"
        )
    _, probe_file, sha256 = read_card(probe)
    card = probe_file.card
    loaded = preferences(
        dataset,
        pairs=pairs,
        question=card.question,
        item=card.item,
        conversations=card.prompts == "conversations",
    )
    all_rows = loaded.table.rows
    is_held_out = card.held_out([Pair(**row) for row in all_rows])
    rows = list(compress(all_rows, is_held_out))
    if not rows:
        raise InputError(
            f"{probe} was trained on the questions of all {len(all_rows)} pairs of {dataset}: "
            "nothing is held out. Take another data set, or the one it was fitted on without "
            "`pairs`"
        )
    model_options = {
        "model": model,
        "device": device,
        "dtype": dtype,
        "device_map": device_map,
        "attention": attention,
        "allow_pickle": allow_pickle,
    }
    return Task(
        dataset=MemoryDataset([record_to_sample(row) for row in rows], name=dataset),
        solver=apply_probe(probe, model_options),
        scorer=preference_probe_reading(),
        continue_on_fail=True,
        version=f"{loaded.table.version(VERSION)}+{sha256[:12]}",
        metadata=loaded.metadata
        | {
            "seen_in_training_left_out": len(all_rows) - len(rows),
            "probe_sha256": sha256,
            "probe_kind": probe_file.probe.kind,
            "probe_layer": probe_file.probe.layer,
            "orientation": probe_file.probe.orientation,
            "orders": probe_file.probe.orders,
            "centre": centre_of_probe(probe_file.probe.orders, "source"),
            "probe_model": card.model,
            "probe_revision": card.revision,
            "fitted_on": card.dataset,
        },
    )
