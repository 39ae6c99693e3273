"""Ablation: take a direction out of the last token's state after every block, ask again
(latent-preference probes, appendix B).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import asdict
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from selfprobe.data.pairs import Pair
from selfprobe.embed.weights import Progress, to_stderr
from selfprobe.probes.evaluate import first_text_answers, fitted_apart
from selfprobe.probes.fit import FITTED_KINDS, BoolArray, FitSettings, FloatArray, signed_f1
from selfprobe.probes.folder import probe_name, read_run, write_tables
from selfprobe.probes.forward import (
    Reading,
    choose_reading,
    contrast_logprobs,
    cut_batches,
    hidden_of,
    inputs_after,
    model_output,
    plain_inputs,
    with_hidden,
)
from selfprobe.probes.harvesting import batch_budget, open_harvest
from selfprobe.probes.model import LocalModel, decoder_blocks, final_norm
from selfprobe.probes.probe_file import Card, load_probe
from selfprobe.probes.tokens import Prompt, encode
from selfprobe.stats.estimate import bootstrap


def rejected(states: Tensor, direction: Tensor) -> Tensor:
    """x' = x − (x·p / p·p) p for states x [..., d_model] and the direction p [d_model]."""
    p = direction.to(states.device, torch.float32)
    x = states.float()
    projection = (x @ p / (p @ p))[..., None] * p
    return (x - projection).to(states.dtype)


@contextmanager
def ablated(judge: LocalModel, direction: FloatArray) -> Iterator[None]:
    """Context in which the last position's state loses `direction` [d_model] after every block and
    the final norm.
    """
    direction_tensor = torch.as_tensor(np.asarray(direction, dtype=np.float32))
    if direction_tensor.shape != (judge.d_model,) or not float(direction_tensor.norm()):
        raise ValueError(
            f"expected a direction of {judge.d_model} numbers, not all 0, "
            f"got shape {tuple(direction_tensor.shape)}"
        )

    def hook(_module: Any, _inputs: Any, output: Any) -> Any:
        hidden = hidden_of(output)
        last_states = rejected(hidden[:, -1:], direction_tensor)
        ablated_hidden = torch.cat([hidden[:, :-1], last_states], dim=1)
        return with_hidden(output, ablated_hidden)

    modules = (*decoder_blocks(judge.model), _last_norm(judge))
    handles = [module.register_forward_hook(hook) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _last_norm(judge: LocalModel) -> Any:
    """The final norm; ValueError where a direction cannot be taken out of this model's states."""
    if judge.stream is not None:
        raise ValueError(
            f"{judge.name} keeps several streams of states, "
            "so one direction cannot be ablated in it"
        )
    return final_norm(judge.model)


def answers(
    judge: LocalModel,
    pairs: Sequence[Pair],
    directions: Mapping[str, FloatArray | None],
    *,
    batch_tokens: int | None = None,
    progress: Progress = lambda _: None,
) -> dict[str, npt.NDArray[np.float32]]:
    """The judge's log P("1"), log P("2") under each ablation: name → [pair, order, token].

    A direction of None ablates nothing: the baseline. All but a prompt's last token are read once
    for all directions where the model's cache can be shared, as only the last token's state is
    changed. A pair longer than the context is NaN.
    """
    ordered_pairs: list[Pair] = []
    for pair in pairs:
        ordered_pairs += [pair, pair.swapped]
    prompts = encode(judge.tokenizer, ordered_pairs, judge.chat)
    budget = batch_tokens or batch_budget(judge)
    log_probs = {name: np.full((len(prompts), 2), np.nan, dtype=np.float32) for name in directions}
    by_length = sorted(range(len(prompts)), key=lambda number: prompts[number].length)
    fitting = [number for number in by_length if prompts[number].length <= judge.context]
    reading = _reading(judge, [prompts[number] for number in fitting], budget)
    ask = _asked_on_a_cache if reading.way == "shared_cache" else _asked_whole

    batches = cut_batches(prompts, fitting, budget, reading)
    for batch_number, batch in enumerate(batches, start=1):
        with torch.inference_mode():
            batch_log_probs = ask(judge, [prompts[number] for number in batch], directions)
        for name, answers_under in batch_log_probs.items():
            log_probs[name][batch] = answers_under.numpy()
        if batch_number % 20 == 0:
            progress(f"{batch_number} batches asked again under {len(directions)} ablations")
    return {name: table.reshape(len(pairs), 2, 2) for name, table in log_probs.items()}


def _reading(judge: LocalModel, prompts: Sequence[Prompt], budget: int) -> Reading:
    """The shared cache if that is right for the model, else whole texts."""
    try:
        return choose_reading(judge, prompts, "shared_cache", batch_tokens=budget)
    except ValueError:
        # `choose_reading` logged the reason; the next call raises where nothing can be read at all
        return choose_reading(judge, prompts, "two_forwards", batch_tokens=budget)


def _ablation(judge: LocalModel, direction: FloatArray | None) -> AbstractContextManager[None]:
    return nullcontext() if direction is None else ablated(judge, direction)


def _asked_on_a_cache(
    judge: LocalModel, prompts: Sequence[Prompt], directions: Mapping[str, FloatArray | None]
) -> dict[str, Tensor]:
    earlier_inputs = plain_inputs([prompt.prefix[:-1] for prompt in prompts], judge.device)
    cache = model_output(judge, **earlier_inputs, use_cache=True, keep=1).past_key_values
    last_inputs = inputs_after(earlier_inputs, [len(prompt.prefix) - 1 for prompt in prompts])
    last_tokens = [[prompt.prefix[-1]] for prompt in prompts]
    last_inputs["input_ids"] = torch.tensor(last_tokens, device=judge.device)
    log_probs: dict[str, Tensor] = {}
    for name, direction in directions.items():
        with _ablation(judge, direction):
            output = model_output(
                judge, **last_inputs, past_key_values=deepcopy(cache), use_cache=True, keep=1
            )
        log_probs[name] = contrast_logprobs(output.logits[:, -1], prompts)
    return log_probs


def _asked_whole(
    judge: LocalModel, prompts: Sequence[Prompt], directions: Mapping[str, FloatArray | None]
) -> dict[str, Tensor]:
    inputs = plain_inputs([prompt.prefix for prompt in prompts], judge.device)
    log_probs: dict[str, Tensor] = {}
    for name, direction in directions.items():
        with _ablation(judge, direction):
            output = model_output(judge, **inputs, use_cache=False, keep=1)
        log_probs[name] = contrast_logprobs(output.logits[:, -1], prompts)
    return log_probs


def ablate_run(
    out: Path,
    judge: LocalModel,
    *,
    datasets: Sequence[str] = (),
    random_directions: int = 5,
    limit: int | None = 200,
    progress: Progress = to_stderr,
) -> pd.DataFrame:
    """Table "ablation": prompting on held-out pairs with each probe's direction taken out, and with
    random ones.

    Source: appendix B, table 2. Paper: the change of F1 alone. Here: with an interval (paired, over
    questions), and random directions of the same model, as any direction taken out of a state may
    do something. `limit` of the held-out pairs are drawn with a fixed seed; None: all. Each aspect
    that has a probe has rows of its own.
    """
    run = read_run(out)
    if judge.revision != run["revision"]:
        raise ValueError(
            f"{out} is a run of {run['model']} ({run['revision']}), "
            f"got {judge.name} ({judge.revision})"
        )
    _last_norm(judge)  # a model that cannot be ablated is refused before the work
    run_sets = run["datasets"]
    rows: list[dict[str, Any]] = []
    for name in datasets or tuple(run_sets):
        if name not in run_sets:
            raise ValueError(f"{out} has no data set {name!r}, only {', '.join(run_sets)}")
        harvested = open_harvest(out / run_sets[name]["activations"], judge=judge)
        states_precision = harvested.identity.dtype
        if states_precision != judge.precision:
            raise ValueError(
                f"{out} is a run in {states_precision}, and the model is loaded in "
                f"{judge.precision}: give the run's --dtype and --quantize"
            )
        aspects = fitted_apart(harvested.pairs, FitSettings(**run["settings"]))
        for aspect in aspects or [""]:
            pairs = [pair for pair in harvested.pairs if aspect in ("", pair.aspect)]
            file_name = probe_name(name, aspect)
            rows += _ablation_rows(out, file_name, pairs, judge, random_directions, limit, progress)
    return write_tables(out, {"ablation": pd.DataFrame(rows)})["ablation"]


def _held_out_pairs(
    run_folder: Path,
    name: str,
    card: Card,
    all_pairs: Sequence[Pair],
    limit: int | None,
    rng: np.random.Generator,
) -> list[Pair]:
    """Pairs that a probe has not learnt from; no more than `limit`, which are drawn, as files list
    their pairs aspect by aspect and subset by subset.
    """
    pairs = list(compress(all_pairs, card.held_out(all_pairs)))
    if not pairs:
        raise ValueError(
            f"{name}: its probe in {run_folder} learnt from the questions of all "
            f"{len(all_pairs)} pairs, and its card names no test half of them, so none is held "
            "out: run --parts probes again in this folder"
        )
    if limit is None or limit >= len(pairs):
        return pairs
    drawn_numbers = sorted(rng.choice(len(pairs), limit, replace=False))
    return [pairs[number] for number in drawn_numbers]


def _ablation_rows(
    run_folder: Path,
    name: str,
    all_pairs: Sequence[Pair],
    judge: LocalModel,
    random_direction_count: int,
    limit: int | None,
    progress: Progress,
) -> list[dict[str, Any]]:
    files = {
        kind: load_probe(run_folder / f"{name}-{kind}.safetensors", revision=judge.revision)
        for kind in FITTED_KINDS
    }
    rng = np.random.default_rng(0)
    pairs = _held_out_pairs(run_folder, name, files["supervised"].card, all_pairs, limit, rng)

    directions: dict[str, FloatArray | None] = {"none": None}
    for kind, file in files.items():
        directions[kind] = file.probe.direction
    for number in range(random_direction_count):
        directions[f"random {number + 1}"] = rng.standard_normal(judge.d_model)
    progress(f"{name}: {len(pairs)} held-out pairs under {len(directions)} ablations")

    truth = np.array([pair.label == 1 for pair in pairs])
    groups = np.array([pair.group for pair in pairs])
    margins: dict[str, FloatArray] = {}
    for direction, log_probs in answers(judge, pairs, directions, progress=progress).items():
        margins[direction] = first_text_answers(log_probs).mean(axis=1) - 0.5

    def f1_change(truth: BoolArray, margin: FloatArray, plain_margin: FloatArray) -> float:
        return signed_f1(truth, margin) - signed_f1(truth, plain_margin)

    rows: list[dict[str, Any]] = []
    plain_margin = margins["none"]
    for direction, margin in margins.items():
        change = bootstrap(
            f1_change,
            truth,
            margin,
            plain_margin,
            clusters=groups,
            rng=np.random.default_rng(0),
            unit="question",
        )
        row = {
            "dataset": name,
            "direction": direction,
            "metric": "f1",
            "f1": signed_f1(truth, margin),
            "changed_answers": float(np.mean(np.sign(margin) != np.sign(plain_margin))),
        }
        rows.append(row | asdict(change))
    return rows
