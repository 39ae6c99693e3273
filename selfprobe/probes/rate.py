"""Direct scoring and G-Eval by the judge itself, with the same weights and precision as its states
(§4.3).

Each text is shown alone; the assistant's turn begins with "I would rate the coherence as a", and
the probabilities of 1 to 5 after it are read by a plain forward. The text with the higher score is
preferred, and equal scores are a tie.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from selfprobe.data.pairs import ASPECTS, LEVELS, SCORE, Pair, digest, score_priming, score_prompt
from selfprobe.data.public_pairs import PairSet
from selfprobe.embed.weights import Progress
from selfprobe.probes.folder import put_array
from selfprobe.probes.forward import (
    choose_reading,
    contrast_logprobs,
    cut_batches,
    model_output,
    plain_inputs,
)
from selfprobe.probes.harvesting import Harvest, batch_budget
from selfprobe.probes.model import LocalModel
from selfprobe.probes.tokens import Prompt, continued, opened

DIRECT, G_EVAL = "direct scoring", "G-Eval"
FLUSH_SECONDS = 60
"""Largest number of seconds of work that a killed run loses."""
Table = npt.NDArray[np.float64]
Margins = Mapping[str, Mapping[str, float]]
"""Method → pair id → margin, > 0: text 1."""


def rated(pairs: Sequence[Pair], asked: bool | None) -> bool:
    """Whether these pairs' texts are scored alone: as asked, where there is a prompt; default:
    those with aspects.
    """
    kinds = ASPECTS if asked is None else SCORE if asked else ()
    return all(
        pair.kind in kinds and (not pair.criterion or pair.criterion.startswith("more "))
        for pair in pairs
    )


def check_scoring(sets: Mapping[str, PairSet], asked: bool | None) -> None:
    """ValueError, before the work, where scores are asked for and there is no prompt for any of the
    sets.
    """
    if asked and not any(rated(given.pairs, asked) for given in sets.values()):
        raise ValueError(
            f"{', '.join(sets)} cannot be scored text by text: there are prompts for {', '.join(SCORE)}, and for your "
            "own pairs where the question is 'more …'. Leave --scoring out"
        )


def rate_sets(
    judge: LocalModel,
    harvests: Mapping[str, Harvest],
    asked: bool | None,
    *,
    batch_tokens: int | None = None,
    progress: Progress,
) -> dict[str, Margins]:
    """Data set → `rate_texts` of its pairs; an empty mapping for those that are not `rated`."""
    return {
        name: rate_texts(judge, h, batch_tokens=batch_tokens, progress=progress)
        if rated(h.pairs, asked)
        else {}
        for name, h in harvests.items()
    }


def margins(log_probs: Table) -> dict[str, Table]:
    """Method → margin [pair], > 0 where text 1 scores higher, from log_probs [pair, text, level];
    NaN where unread.

    Direct scoring: the most probable level, the lower one of two as probable. G-Eval: Σ s·p(s) / Σ
    p(s).
    """
    known = ~np.isnan(log_probs).any(axis=(1, 2))
    scores = {
        DIRECT: np.full(log_probs.shape[:2], np.nan),
        G_EVAL: np.full(log_probs.shape[:2], np.nan),
    }
    shares = np.exp(log_probs[known] - log_probs[known].max(axis=2, keepdims=True))
    scores[DIRECT][known] = 1 + shares.argmax(axis=2)
    scores[G_EVAL][known] = (shares @ np.arange(1, len(LEVELS) + 1)) / shares.sum(axis=2)
    return {method: score[:, 0] - score[:, 1] for method, score in scores.items()}


def rate_texts(
    judge: LocalModel, harvest: Harvest, *, batch_tokens: int | None = None, progress: Progress
) -> Margins:
    """Method → pair id → margin of the harvest's pairs; pairs that do not fit the model's context
    are missing.

    What was read is kept in the harvest's folder, so that the same call continues a killed one
    where it stopped.
    """
    pairs = harvest.pairs
    prompts, file, read, todo = _to_read(judge, pairs, harvest.folder)
    if todo:
        progress(f"{len(todo)} texts to score alone under {judge.name}")
        _read(
            judge,
            prompts,
            sorted(todo, key=lambda i: prompts[i].length),
            read,
            file,
            batch_tokens,
            progress,
        )
    found = margins(read.reshape(len(pairs), 2, len(LEVELS)))
    return {
        method: {
            pair.id: float(m) for pair, m in zip(pairs, values, strict=True) if not np.isnan(m)
        }
        for method, values in found.items()
    }


def to_score(judge: LocalModel, pairs: Sequence[Pair], folder: Path | None) -> tuple[int, int]:
    """Numbers of these pairs' texts still to be scored alone, and of their tokens; `folder`: their
    harvest's.
    """
    prompts, _, _, todo = _to_read(judge, pairs, folder or Path())
    return len(todo), sum(prompts[i].length for i in todo)


def _to_read(
    judge: LocalModel, pairs: Sequence[Pair], folder: Path
) -> tuple[Sequence[Prompt], Path, Table, list[int]]:
    """Prompts [pair and side], file of the table, the table [prompt, level], and the rows it lacks."""
    texts = [
        opened(judge.tokenizer, score_prompt(pair, side), judge.chat) + score_priming(pair)
        for pair in pairs for side in (1, 2)
    ]  # fmt: skip
    prompts = continued(judge.tokenizer, texts, LEVELS)
    file = folder / f"ratings-{digest(*texts)}.npy"
    read = np.load(file) if file.is_file() else np.full((len(prompts), len(LEVELS)), np.nan)
    todo = [
        i
        for i, prompt in enumerate(prompts)
        if prompt.length <= judge.context and np.isnan(read[i]).any()
    ]
    return prompts, file, read, todo


def _read(
    judge: LocalModel,
    prompts: Sequence[Prompt],
    todo: Sequence[int],
    read: Table,
    file: Path,
    batch_tokens: int | None,
    progress: Progress,
) -> None:
    """Fill the rows `todo` of `read` [text, level], and save it to `file` from time to time."""
    budget = batch_tokens or batch_budget(judge)
    of_two = [
        replace(prompts[i], contrast=prompts[i].contrast[:2]) for i in todo
    ]  # as `choose` tries them
    reading = choose_reading(judge, of_two, "two_forwards", batch_tokens=budget)
    kept, done = time.monotonic(), 0
    try:
        for batch in cut_batches(prompts, todo, budget, reading):
            shown = [prompts[i] for i in batch]
            with torch.inference_mode():
                inputs = plain_inputs([p.prefix for p in shown], judge.device)
                logits = model_output(judge, **inputs, use_cache=False, keep=1).logits
                read[batch] = contrast_logprobs(logits[:, -1], shown).numpy()
            done += len(batch)
            if time.monotonic() - kept > FLUSH_SECONDS:
                kept = time.monotonic()
                put_array(read, file)
                progress(f"  {done} of {len(todo)} texts scored")
    finally:  # what was read before an interrupt is kept
        put_array(read, file)
