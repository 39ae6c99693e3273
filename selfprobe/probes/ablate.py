"""Ablation: take a direction out of the last token's state after every block, ask again (paper 004,
appendix B).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import asdict
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
from selfprobe.probes.fit import KINDS, FitSettings, FloatArray, held_out, signed_f1
from selfprobe.probes.folder import probe_name, read_run, write_tables
from selfprobe.probes.forward import (
    Reading,
    choose_reading,
    contrast_logprobs,
    cut_batches,
    inputs_after,
    model_output,
    plain_inputs,
)
from selfprobe.probes.harvesting import batch_budget, open_harvest
from selfprobe.probes.model import LocalModel, decoder_blocks, final_norm
from selfprobe.probes.probe_file import load_probe
from selfprobe.probes.tokens import Prompt, encode
from selfprobe.stats.estimate import bootstrap


def rejected(states: Tensor, direction: Tensor) -> Tensor:
    """x' = x − (x·p / p·p) p for states x [..., d_model] and the direction p [d_model]."""
    p = direction.to(states.device, torch.float32)
    x = states.float()
    return (x - (x @ p / (p @ p))[..., None] * p).to(states.dtype)


@contextmanager
def ablated(judge: LocalModel, direction: FloatArray) -> Iterator[None]:
    """Context in which the last position's state loses `direction` [d_model] after every block and
    the final norm.
    """
    p = torch.as_tensor(np.asarray(direction, dtype=np.float32))
    if p.shape != (judge.d_model,) or not float(p.norm()):
        raise ValueError(
            f"expected a direction of {judge.d_model} numbers, not all 0, got shape {tuple(p.shape)}"
        )

    def hook(_module: Any, _given: Any, output: Any) -> Any:
        hidden = output[0] if isinstance(output, tuple) else output
        hidden = torch.cat([hidden[:, :-1], rejected(hidden[:, -1:], p)], dim=1)
        return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

    handles = [
        m.register_forward_hook(hook) for m in (*decoder_blocks(judge.model), _last_norm(judge))
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _last_norm(judge: LocalModel) -> Any:
    """The final norm; ValueError where a direction cannot be taken out of this model's states."""
    if judge.stream is not None:
        raise ValueError(
            f"{judge.name} keeps several streams of states, so one direction cannot be ablated in it"
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
    shown = [version for pair in pairs for version in (pair, pair.swapped)]
    prompts = encode(judge.tokenizer, shown, judge.chat)
    budget = batch_tokens or batch_budget(judge)
    found = {name: np.full((len(prompts), 2), np.nan, dtype=np.float32) for name in directions}
    order = sorted(range(len(prompts)), key=lambda i: prompts[i].length)
    order = [i for i in order if prompts[i].length <= judge.context]
    reading = _reading(judge, [prompts[i] for i in order], budget)
    asking = _on_a_cache if reading.way == "shared_cache" else _whole
    for count, batch in enumerate(cut_batches(prompts, order, budget, reading), start=1):
        with torch.inference_mode():
            asked = asking(judge, [prompts[i] for i in batch], directions)
        for name, log_probs in asked.items():
            found[name][batch] = log_probs.numpy()
        if count % 20 == 0:
            progress(f"{count} batches asked again under {len(directions)} ablations")
    return {name: table.reshape(len(pairs), 2, 2) for name, table in found.items()}


def _reading(judge: LocalModel, prompts: Sequence[Prompt], budget: int) -> Reading:
    """The shared cache if that is right for the model, else whole texts."""
    try:
        return choose_reading(judge, prompts, "shared_cache", batch_tokens=budget)
    except (
        ValueError
    ):  # `choose` logged the reason; the next call raises where nothing can be read at all
        return choose_reading(judge, prompts, "two_forwards", batch_tokens=budget)


def _on_a_cache(
    judge: LocalModel, prompts: Sequence[Prompt], directions: Mapping[str, FloatArray | None]
) -> dict[str, Tensor]:
    first = plain_inputs([p.prefix[:-1] for p in prompts], judge.device)
    cache = model_output(judge, **first, use_cache=True, keep=1).past_key_values
    last = inputs_after(first, [len(p.prefix) - 1 for p in prompts])
    last["input_ids"] = torch.tensor([[p.prefix[-1]] for p in prompts], device=judge.device)
    found = {}
    for name, direction in directions.items():
        with ablated(judge, direction) if direction is not None else nullcontext():
            logits = model_output(
                judge, **last, past_key_values=deepcopy(cache), use_cache=True, keep=1
            ).logits
        found[name] = contrast_logprobs(logits[:, -1], prompts)
    return found


def _whole(
    judge: LocalModel, prompts: Sequence[Prompt], directions: Mapping[str, FloatArray | None]
) -> dict[str, Tensor]:
    given, found = plain_inputs([p.prefix for p in prompts], judge.device), {}
    for name, direction in directions.items():
        with ablated(judge, direction) if direction is not None else nullcontext():
            found[name] = contrast_logprobs(
                model_output(judge, **given, use_cache=False, keep=1).logits[:, -1], prompts
            )
    return found


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
    state = read_run(out)
    if judge.revision != state["revision"]:
        raise ValueError(
            f"{out} is a run of {state['model']} ({state['revision']}), got {judge.name} ({judge.revision})"
        )
    _last_norm(judge)  # a model that cannot be ablated is refused before the work
    rows: list[dict[str, Any]] = []
    for name in datasets or tuple(state["datasets"]):
        if name not in state["datasets"]:
            raise ValueError(f"{out} has no data set {name!r}, only {', '.join(state['datasets'])}")
        harvested = open_harvest(out / state["datasets"][name]["activations"], judge=judge)
        if (read := harvested.identity.dtype) != judge.precision:
            raise ValueError(
                f"{out} is a run in {read}, and the model is loaded in {judge.precision}: give the run's --dtype and "
                "--quantize"
            )
        for aspect in fitted_apart(harvested.pairs, FitSettings(**state["settings"])) or [""]:
            pairs = [pair for pair in harvested.pairs if aspect in ("", pair.aspect)]
            rows += _ablated(
                out, probe_name(name, aspect), pairs, judge, random_directions, limit, progress
            )
    return write_tables(out, {"ablation": pd.DataFrame(rows)})["ablation"]


def _ablated(
    out: Path,
    name: str,
    every: Sequence[Pair],
    judge: LocalModel,
    count: int,
    limit: int | None,
    progress: Progress,
) -> list[dict[str, Any]]:
    files = {
        kind: load_probe(out / f"{name}-{kind}.safetensors", revision=judge.revision)
        for kind in KINDS
    }
    unseen = held_out(files["supervised"].card.train_groups, every)
    pairs = [p for p, new in zip(every, unseen, strict=True) if new]
    rng = np.random.default_rng(0)
    if limit is not None and limit < len(
        pairs
    ):  # files list their pairs aspect by aspect and subset by subset
        pairs = [pairs[i] for i in sorted(rng.choice(len(pairs), limit, replace=False))]
    directions: dict[str, Any] = {"none": None} | {
        kind: f.probe.direction for kind, f in files.items()
    }
    directions |= {f"random {k + 1}": rng.standard_normal(judge.d_model) for k in range(count)}
    progress(f"{name}: {len(pairs)} held-out pairs under {len(directions)} ablations")
    truth, groups = np.array([p.label == 1 for p in pairs]), np.array([p.group for p in pairs])
    given = answers(judge, pairs, directions, progress=progress)
    margins = {
        k: first_text_answers(log_probs).mean(axis=1) - 0.5 for k, log_probs in given.items()
    }
    rows = []
    for direction, margin in margins.items():
        found = bootstrap(
            lambda t, a, b: signed_f1(t, a) - signed_f1(t, b),
            truth, margin, margins["none"],
            clusters=groups, rng=np.random.default_rng(0), unit="question",
        )  # fmt: skip
        flips = float(np.mean(np.sign(margin) != np.sign(margins["none"])))
        rows.append(
            {
                "dataset": name,
                "direction": direction,
                "metric": "f1",
                "f1": signed_f1(truth, margin),
            }
            | {"changed_answers": flips}
            | asdict(found)
        )
    return rows
