"""Direct scoring and G-Eval by the judge itself, with the same weights and precision as its states
(§4.3).

Each text is shown alone; the assistant's turn begins with "I would rate the coherence as a", and
the probabilities of 1 to 5 after it are read by a plain forward. The text with the higher score is
preferred, and equal scores are a tie.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from selfprobe.probes.tokens import Prompt, contrast_prompts, opened_chat

DIRECT = "direct scoring"
G_EVAL = "G-Eval"
RATING_FLUSH_SECONDS = 60
"""Largest number of seconds of work that a killed run loses."""
Floats = npt.NDArray[np.float64]
Margins = Mapping[str, Mapping[str, float]]
"""Method → pair id → margin, > 0: text 1."""


@dataclass(frozen=True)
class _Ratings:
    """The texts of pairs, each for itself, and what was read of them."""

    prompts: Sequence[Prompt]
    """[pair and side]"""
    file: Path
    """File of the log-probabilities."""
    log_probs: Floats
    """[prompt, level]; NaN where unread."""
    pending: list[int]
    """Numbers of the prompts that are still to be read."""


def is_scored_alone(pairs: Sequence[Pair], scoring: bool | None) -> bool:
    """Whether these pairs' texts are scored alone: as `scoring` asks, where there is a prompt;
    default: those with aspects.
    """
    if scoring is None:
        rated_kinds = set(ASPECTS)
    elif scoring:
        rated_kinds = set(SCORE)
    else:
        rated_kinds = set()
    for pair in pairs:
        has_prompt = not pair.criterion or pair.criterion.startswith("more ")
        if pair.kind not in rated_kinds or not has_prompt:
            return False
    return True


def check_scoring(sets: Mapping[str, PairSet], scoring: bool | None) -> None:
    """ValueError, before the work, where scores are asked for and there is no prompt for any of the
    sets.
    """
    if not scoring:
        return
    if not any(is_scored_alone(pair_set.pairs, scoring) for pair_set in sets.values()):
        raise ValueError(
            f"{', '.join(sets)} cannot be scored text by text: there are prompts for "
            f"{', '.join(SCORE)}, and for your own pairs where the question is 'more …'. Leave "
            "--scoring out"
        )


def rate_sets(
    judge: LocalModel,
    harvests: Mapping[str, Harvest],
    scoring: bool | None,
    *,
    batch_tokens: int | None = None,
    progress: Progress,
) -> dict[str, Margins]:
    """Data set → `rate_texts` of its pairs; an empty mapping for those that are not `rated`."""
    margins_by_set: dict[str, Margins] = {}
    for name, harvest in harvests.items():
        margins_by_set[name] = {}
        if is_scored_alone(harvest.pairs, scoring):
            margins_by_set[name] = rate_texts(
                judge, harvest, batch_tokens=batch_tokens, progress=progress
            )
    return margins_by_set


def score_margins(log_probs: Floats) -> dict[str, Floats]:
    """Method → margin [pair], > 0 where text 1 scores higher, from log_probs [pair, text, level];
    NaN where unread.

    Direct scoring: the most probable level, the lower one of two as probable. G-Eval: Σ s·p(s) / Σ
    p(s).
    """
    is_read = ~np.isnan(log_probs).any(axis=(1, 2))
    read_log_probs = log_probs[is_read]
    level_weights = np.exp(read_log_probs - read_log_probs.max(axis=2, keepdims=True))
    levels = np.arange(1, len(LEVELS) + 1)
    scores_by_method = {
        DIRECT: 1 + level_weights.argmax(axis=2),
        G_EVAL: (level_weights @ levels) / level_weights.sum(axis=2),
    }

    margins_by_method = {}
    for method, text_scores in scores_by_method.items():
        pair_margins = np.full(len(log_probs), np.nan)
        pair_margins[is_read] = text_scores[:, 0] - text_scores[:, 1]
        margins_by_method[method] = pair_margins
    return margins_by_method


def rate_texts(
    judge: LocalModel, harvest: Harvest, *, batch_tokens: int | None = None, progress: Progress
) -> Margins:
    """Method → pair id → margin of the harvest's pairs; pairs that do not fit the model's context
    are missing.

    What was read is kept in the harvest's folder, so that the same call continues a killed one
    where it stopped.
    """
    pairs = harvest.pairs
    ratings = _stored_ratings(judge, pairs, harvest.folder)
    if ratings.pending:
        progress(f"{len(ratings.pending)} texts to score alone under {judge.name}")
        _read_pending(judge, ratings, batch_tokens or batch_budget(judge), progress)

    log_probs = ratings.log_probs.reshape(len(pairs), 2, len(LEVELS))
    margins_by_method: dict[str, dict[str, float]] = {}
    for method, pair_margins in score_margins(log_probs).items():
        margin_by_id = {}
        for pair, margin in zip(pairs, pair_margins, strict=True):
            if not np.isnan(margin):
                margin_by_id[pair.id] = float(margin)
        margins_by_method[method] = margin_by_id
    return margins_by_method


def pending_ratings(
    judge: LocalModel, pairs: Sequence[Pair], folder: Path | None
) -> tuple[int, int]:
    """Numbers of these pairs' texts still to be scored alone, and of their tokens; `folder`: their
    harvest's.
    """
    ratings = _stored_ratings(judge, pairs, folder or Path())
    token_count = sum(ratings.prompts[number].length for number in ratings.pending)
    return len(ratings.pending), token_count


def _stored_ratings(judge: LocalModel, pairs: Sequence[Pair], folder: Path) -> _Ratings:
    texts = []
    for pair in pairs:
        for side in (1, 2):
            chat_text = opened_chat(judge.tokenizer, score_prompt(pair, side), judge.chat)
            texts.append(chat_text + score_priming(pair))
    prompts = contrast_prompts(judge.tokenizer, texts, LEVELS)

    file = folder / f"ratings-{digest(*texts)}.npy"
    if file.is_file():
        log_probs = np.load(file)
    else:
        log_probs = np.full((len(prompts), len(LEVELS)), np.nan)
    pending = []
    for prompt_index, prompt in enumerate(prompts):
        is_unread = np.isnan(log_probs[prompt_index]).any()
        if is_unread and prompt.length <= judge.context:
            pending.append(prompt_index)
    return _Ratings(prompts, file, log_probs, pending)


def _read_pending(
    judge: LocalModel, ratings: _Ratings, token_budget: int, progress: Progress
) -> None:
    """Fill the pending rows of the log-probabilities, and save them from time to time."""
    prompts = ratings.prompts
    pending = sorted(ratings.pending, key=lambda number: prompts[number].length)

    two_level_prompts = []  # as `choose_reading` tries them
    for number in pending:
        two_levels = prompts[number].contrast[:2]
        two_level_prompts.append(replace(prompts[number], contrast=two_levels))
    reading = choose_reading(judge, two_level_prompts, "two_forwards", batch_tokens=token_budget)

    flush_time = time.monotonic()
    read_count = 0
    try:
        for batch_numbers in cut_batches(prompts, pending, token_budget, reading):
            batch = [prompts[number] for number in batch_numbers]
            with torch.inference_mode():
                inputs = plain_inputs([prompt.prefix for prompt in batch], judge.device)
                output = model_output(judge, **inputs, use_cache=False, keep=1)
                level_log_probs = contrast_logprobs(output.logits[:, -1], batch)
                ratings.log_probs[batch_numbers] = level_log_probs.numpy()
            read_count += len(batch)
            if time.monotonic() - flush_time > RATING_FLUSH_SECONDS:
                flush_time = time.monotonic()
                put_array(ratings.log_probs, ratings.file)
                progress(f"  {read_count} of {len(pending)} texts scored")
    finally:  # what was read before an interrupt is kept
        put_array(ratings.log_probs, ratings.file)
