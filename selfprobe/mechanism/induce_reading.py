"""The reading of a model's words: log P of each label after every prompt of a question
(IntrospectBench, section 5.1).

All prompts of a question begin alike (the chat's head and the question). This beginning is read
once, and each prompt's end on its key-value cache. Where this gives other numbers than whole
prompts (sliding windows, recurrent states) whole prompts are read.

Apart from `induce`, since the study's options need no torch.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from selfprobe.embed.weights import Progress
from selfprobe.mechanism.induce import READ_COLUMNS, Labels, prompt_tokens
from selfprobe.probes.forward import (
    MODEL_FAILURES,
    Float32Array,
    cut_batches,
    inputs_after,
    model_output,
    plain_inputs,
)
from selfprobe.probes.harvesting import Meter, batch_budget
from selfprobe.probes.model import LocalModel

CACHE_TOLERANCE_BY_DTYPE = {torch.float32: 1e-3, torch.bfloat16: 0.25, torch.float16: 0.05}
"""Largest difference of a log-probability that counts as rounding."""
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Prompts:
    """All prompts of one question."""

    shared: Tokens
    """Tokens that all prompts begin with."""
    ends: tuple[Tokens, ...]
    """Rest of each prompt, for `READ_COLUMNS` without the direct second word."""

    @property
    def length(self) -> int:
        """Number of tokens of the longest prompt."""
        return len(self.shared) + max(self.end_lengths)

    @property
    def end_lengths(self) -> tuple[int, ...]:
        """Number of tokens of each end."""
        return tuple(len(end) for end in self.ends)

    @property
    def tokens(self) -> int:
        """Number of tokens that are read on a cache, the direct second word's too."""
        second_word_tokens = len(self.ends[0]) + 1
        return len(self.shared) + sum(self.end_lengths) + second_word_tokens


def prompts_of(judge: LocalModel, question: str) -> Prompts:
    """The prompts of a question, cut where they part."""
    prompts = []
    for column in READ_COLUMNS:
        if (column.kind, column.word) != ("direct", 1):
            prompts.append(prompt_tokens(judge, question, column))

    shared_length = 0
    for position_tokens in zip(*(tokens[:-1] for tokens in prompts), strict=False):
        if len(set(position_tokens)) > 1:
            break
        shared_length += 1
    ends = tuple(tokens[shared_length:] for tokens in prompts)
    return Prompts(prompts[0][:shared_length], ends)


def read_labels(
    judge: LocalModel,
    prompts: Sequence[Prompts],
    labels: Labels,
    *,
    batch_tokens: int | None = None,
    progress: Progress = lambda _: None,
) -> Float32Array:
    """Log-probability of each label [question, column, label], columns as in `READ_COLUMNS`, over the
    whole vocabulary.
    """
    shape = (len(prompts), len(READ_COLUMNS), len(labels.words))
    log_probs = np.full(shape, np.nan, dtype=np.float32)
    token_count = sum(question.tokens for question in prompts)
    meter = Meter(token_count, len(prompts), progress, "questions")
    token_budget = batch_tokens or batch_budget(judge)
    with torch.inference_mode():
        read_batch = _read_whole
        if _cache_is_right(judge, prompts[0], labels):
            read_batch = _read_on_cache
        for numbers in _batches(prompts, token_budget):
            batch = [prompts[number] for number in numbers]
            log_probs[numbers] = read_batch(judge, batch, labels)
            meter.add(sum(question.tokens for question in batch), len(batch))
    meter.finish()
    return log_probs


def _batches(prompts: Sequence[Prompts], token_budget: int) -> Iterator[list[int]]:
    """Questions whose ends are of the same lengths, so that the ends need no padding."""

    def end_lengths(number: int) -> tuple[int, ...]:
        return prompts[number].end_lengths

    def all_lengths(number: int) -> tuple[tuple[int, ...], int]:
        return end_lengths(number), prompts[number].length

    order = sorted(range(len(prompts)), key=all_lengths)
    for _, numbers in groupby(order, key=end_lengths):
        yield from cut_batches(prompts, list(numbers), token_budget)


def _cache_is_right(judge: LocalModel, question: Prompts, labels: Labels) -> bool:
    try:
        cached_log_probs = _read_on_cache(judge, [question, question], labels)[:1]
        whole_log_probs = _read_whole(judge, [question], labels)
    except MODEL_FAILURES:
        return False
    difference = np.abs(cached_log_probs - whole_log_probs).max()
    return bool(difference <= CACHE_TOLERANCE_BY_DTYPE[judge.dtype])


def _read_on_cache(judge: LocalModel, batch: Sequence[Prompts], labels: Labels) -> Float32Array:
    shared_inputs = plain_inputs([question.shared for question in batch], judge.device)
    shared_output = model_output(judge, **shared_inputs, use_cache=True, keep=1)
    shared_lengths = [len(question.shared) for question in batch]

    def logits_after(ends: Sequence[Tokens]) -> Tensor:
        inputs: dict[str, Any] = inputs_after(shared_inputs, shared_lengths, columns=len(ends[0]))
        inputs["input_ids"] = torch.tensor(ends, device=judge.device)
        cache = deepcopy(shared_output.past_key_values)
        output = model_output(judge, **inputs, past_key_values=cache, use_cache=True, keep=1)
        return output.logits[:, -1]

    return _read_columns(logits_after, batch, labels)


def _read_whole(judge: LocalModel, batch: Sequence[Prompts], labels: Labels) -> Float32Array:
    def logits_after(ends: Sequence[Tokens]) -> Tensor:
        prompts = [(*question.shared, *end) for question, end in zip(batch, ends, strict=True)]
        inputs = plain_inputs(prompts, judge.device)
        return model_output(judge, **inputs, use_cache=False, keep=1).logits[:, -1]

    return _read_columns(logits_after, batch, labels)


def _read_columns(
    logits_after: Callable[[Sequence[Tokens]], Tensor], batch: Sequence[Prompts], labels: Labels
) -> Float32Array:
    """[question, column, label]; `logits_after` gives the logits [question, vocabulary] behind one
    end a question.
    """
    columns = []
    for end_number in range(len(batch[0].ends)):
        ends = [question.ends[end_number] for question in batch]
        columns.append(_label_log_probs(logits_after(ends), labels.start))

    first_words = columns[0].argmax(axis=1)  # of the direct answer itself
    second_word_ends = []
    for question, first_word in zip(batch, first_words, strict=True):
        second_word_ends.append((*question.ends[0], labels.start[first_word]))
    second_words = _label_log_probs(logits_after(second_word_ends), labels.after)
    columns.insert(1, second_words)
    return np.stack(columns, axis=1)


def _label_log_probs(logits: Tensor, label_tokens: Sequence[int]) -> Float32Array:
    """Log-probability of the labels [question, label]."""
    log_probs: Tensor = logits.float().log_softmax(dim=1)
    label_log_probs: Float32Array = log_probs[:, list(label_tokens)].cpu().numpy()
    return label_log_probs
