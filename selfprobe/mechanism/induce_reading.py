"""The reading of a model's words: log P of each label after every prompt of a question (paper 003,
section 5.1).

All prompts of a question begin alike (the chat's head and the question). This beginning is read
once, and each prompt's end on its key-value cache. Where this gives other numbers than whole
prompts (sliding windows, recurrent states) whole prompts are read.

Apart from `induce`, since the study's options need no torch.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from selfprobe.embed.weights import Progress
from selfprobe.mechanism.induce import COLUMNS, Labels, prompt_tokens
from selfprobe.probes.forward import (
    MODEL_FAILURES,
    cut_batches,
    inputs_after,
    model_output,
    plain_inputs,
)
from selfprobe.probes.harvesting import Meter, batch_budget
from selfprobe.probes.model import LocalModel

Floats = npt.NDArray[np.float32]
SAME = {torch.float32: 1e-3, torch.bfloat16: 0.25, torch.float16: 0.05}
"""Largest difference of a log-probability that counts as rounding."""
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Prompts:
    """All prompts of one question."""

    shared: Tokens
    """Tokens that all prompts begin with."""
    ends: tuple[Tokens, ...]
    """Rest of each prompt, for `COLUMNS` without the direct second word."""

    @property
    def length(self) -> int:
        """Number of tokens of the longest prompt."""
        return len(self.shared) + max(map(len, self.ends))

    @property
    def tokens(self) -> int:
        """Number of tokens that are read on a cache, the direct second word's too."""
        return len(self.shared) + sum(map(len, self.ends)) + len(self.ends[0]) + 1


def prompts_of(judge: LocalModel, question: str) -> Prompts:
    """The prompts of a question, cut where they part."""
    whole = [
        prompt_tokens(judge, question, asked)
        for asked in COLUMNS
        if (asked.kind, asked.word) != ("direct", 1)
    ]
    cut = 0
    while all(len(tokens) > cut + 1 and tokens[cut] == whole[0][cut] for tokens in whole):
        cut += 1
    return Prompts(whole[0][:cut], tuple(tokens[cut:] for tokens in whole))


def read_labels(
    judge: LocalModel,
    prompts: Sequence[Prompts],
    labels: Labels,
    *,
    batch_tokens: int | None = None,
    progress: Progress = lambda _: None,
) -> Floats:
    """Log-probability of each label [question, column, label], columns as in `COLUMNS`, over the
    whole vocabulary.
    """
    found = np.full((len(prompts), len(COLUMNS), len(labels.words)), np.nan, dtype=np.float32)
    meter = Meter(sum(p.tokens for p in prompts), len(prompts), progress, "questions")
    with torch.inference_mode():
        ways = (_on_a_cache,) if _cache_is_right(judge, prompts[0], labels) else (_whole,)
        for batch in _batches(prompts, batch_tokens or batch_budget(judge)):
            shown = [prompts[i] for i in batch]
            found[batch] = ways[0](judge, shown, labels)
            meter.add(sum(p.tokens for p in shown), len(batch))
    meter.finish()
    return found


def _batches(prompts: Sequence[Prompts], budget: int) -> Iterator[list[int]]:
    """Questions whose ends are of the same lengths, so that the ends need no padding."""

    def lengths(i: int) -> tuple[int, ...]:
        return tuple(map(len, prompts[i].ends))

    order = sorted(range(len(prompts)), key=lambda i: (lengths(i), prompts[i].length))
    for _, alike in groupby(order, key=lengths):
        yield from cut_batches(prompts, list(alike), budget)


def _cache_is_right(judge: LocalModel, one: Prompts, labels: Labels) -> bool:
    try:
        off = np.abs(
            _on_a_cache(judge, [one, one], labels)[:1] - _whole(judge, [one], labels)
        ).max()
    except MODEL_FAILURES:
        return False
    return bool(off <= SAME[judge.dtype])


def _on_a_cache(judge: LocalModel, shown: Sequence[Prompts], labels: Labels) -> Floats:
    inputs = plain_inputs([p.shared for p in shown], judge.device)
    cache = model_output(judge, **inputs, use_cache=True, keep=1).past_key_values

    def after(ends: Sequence[Tokens]) -> Tensor:
        more: dict[str, Any] = inputs_after(
            inputs, [len(p.shared) for p in shown], columns=len(ends[0])
        )
        more["input_ids"] = torch.tensor(ends, device=judge.device)
        return model_output(
            judge, **more, past_key_values=deepcopy(cache), use_cache=True, keep=1
        ).logits[:, -1]

    return _columns(after, [p.ends for p in shown], labels)


def _whole(judge: LocalModel, shown: Sequence[Prompts], labels: Labels) -> Floats:
    def after(ends: Sequence[Tokens]) -> Tensor:
        inputs = plain_inputs(
            [(*p.shared, *end) for p, end in zip(shown, ends, strict=True)], judge.device
        )
        return model_output(judge, **inputs, use_cache=False, keep=1).logits[:, -1]

    return _columns(after, [p.ends for p in shown], labels)


def _columns(after: Any, ends: Sequence[tuple[Tokens, ...]], labels: Labels) -> Floats:
    """[question, column, label]; `after` gives the logits [question, vocabulary] behind one end a
    question.
    """
    first = [_spoken(after([each[k] for each in ends]), labels.start) for k in range(len(ends[0]))]
    said = first[0].argmax(axis=1)  # first word of the direct answer itself
    second = _spoken(
        after([(*e[0], labels.start[w]) for e, w in zip(ends, said, strict=True)]), labels.after
    )
    return np.stack([first[0], second, *first[1:]], axis=1)


def _spoken(logits: Tensor, tokens: Sequence[int]) -> Floats:
    """Log-probability of `tokens` [question, token]."""
    found: Floats = torch.log_softmax(logits.float(), dim=1)[:, list(tokens)].cpu().numpy()
    return found
