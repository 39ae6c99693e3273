"""Texts with one beginning, read together: log-probabilities of their endings, and the states at
their last tokens.

A text is a stem and the ending that is spoken after it. What all texts begin with, the trunk, is
read once. Each stem goes on from a copy of the trunk's key-value cache, and the endings of a stem
are the rows of a batch on its cache, padded on the right: no token sees what comes after it.
"""

import logging
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from selfprobe.probes.forward import (
    MODEL_FAILURES,
    PADDING_TOLERANCE,
    Float32Array,
    model_lock,
    model_output,
    recorded_states,
    switch_lengths_of,
    way_obstacle,
)
from selfprobe.probes.model import LocalModel

logger = logging.getLogger(__name__)
ENDINGS_AT_ONCE = 8
"""Number of endings that are read together: each has a copy of its stem's cache."""
ENDING_TOKENS = 16
"""Number of tokens of a usual ending, for the estimate of memory."""
BRANCH_TOLERANCE = 1e-4
"""Largest difference of float32 log-probabilities and states from plain forwards, relative where
above 1.
"""


@dataclass(frozen=True)
class Text:
    """One text as tokens, and which results are wanted."""

    tokens: tuple[int, ...]
    spoken: int = 0
    """Number of last tokens whose log-probability is wanted."""
    state: bool = False
    """Whether the states after its last token are wanted; nothing is spoken then."""

    def __post_init__(self) -> None:
        if self.state and self.spoken:
            raise ValueError("a text has spoken tokens or a state, not both")
        if self.spoken >= len(self.tokens):
            raise ValueError(
                f"spoken must be below the {len(self.tokens)} tokens of the text, got {self.spoken}"
            )

    @property
    def stem(self) -> tuple[int, ...]:
        """Tokens before the spoken ones."""
        return self.tokens[: len(self.tokens) - self.spoken]

    @property
    def ending(self) -> tuple[int, ...]:
        """The spoken tokens."""
        return self.tokens[len(self.tokens) - self.spoken :]


@dataclass(frozen=True)
class BranchResults:
    """Results of reading texts."""

    log_probs: Float32Array
    """[text]: mean log-probability of the spoken tokens; NaN where none is wanted."""
    totals: Float32Array
    """[text]: sum of the spoken tokens' log-probabilities."""
    states: Float32Array
    """[text with a state, layer, d_model]."""


@dataclass(frozen=True)
class _TextReading:
    """Results of reading one text."""

    token_logprobs: list[float]
    """Log-probability of each spoken token."""
    states: Tensor | None
    """[layer, d_model]."""


def branched(judge: LocalModel, texts: Sequence[Text], *, sharing: bool = True) -> BranchResults:
    """Read texts that begin alike; without `sharing` each is read by a separate plain forward."""
    trunk_length = _trunk_length(texts) if sharing else 0
    with torch.inference_mode(), model_lock(judge.model):
        if trunk_length:
            readings = _read_on_trunk(judge, texts, trunk_length)
        else:
            readings = [_read_plainly(judge, text) for text in texts]

    means = np.full(len(texts), np.nan, dtype=np.float32)
    totals = np.full(len(texts), np.nan, dtype=np.float32)
    states = []
    for number, reading in enumerate(readings):
        if reading.token_logprobs:
            means[number] = np.mean(reading.token_logprobs)
            totals[number] = np.sum(reading.token_logprobs)
        if reading.states is not None:
            states.append(reading.states.float().cpu().numpy())
    return BranchResults(
        means,
        totals,
        np.stack(states) if states else np.empty((0, 0, 0), dtype=np.float32),
    )


def tokens_of(texts: Sequence[Text]) -> int:
    """Number of tokens that the model reads when these texts are read together."""
    trunk_length = _trunk_length(texts)
    stems = {text.stem for text in texts}
    stem_tokens = sum(len(stem) - trunk_length for stem in stems)
    ending_tokens = sum(max(text.spoken - 1, 0) for text in texts)
    return trunk_length + stem_tokens + ending_tokens


def _trunk_length(texts: Sequence[Text]) -> int:
    """Number of tokens that all stems begin with; at least one token of each stem is left."""
    equal_tokens = 0
    for tokens in zip(*(text.stem for text in texts), strict=False):
        if len(set(tokens)) > 1:
            break
        equal_tokens += 1
    return min(equal_tokens, *(len(text.stem) - 1 for text in texts))


def _read_plainly(judge: LocalModel, text: Text) -> _TextReading:
    """One text's results by a plain forward of its tokens alone."""
    ids = torch.tensor([text.tokens], device=judge.device)
    with recorded_states(
        judge.blocks, lambda output: output[0, -1].clone(), judge.stream
    ) as states:
        output = model_output(judge, input_ids=ids, use_cache=False, keep=text.spoken + 1)
    if text.state:
        return _TextReading([], _stacked_layers(states))
    logits = output.logits[0, -text.spoken - 1 : -1]
    return _TextReading(_token_logprobs(logits, text.ending), None)


def _read_on_trunk(
    judge: LocalModel, texts: Sequence[Text], trunk_length: int
) -> list[_TextReading]:
    """Results of texts that begin with the same `trunk_length` tokens."""
    trunk_ids = torch.tensor([texts[0].tokens[:trunk_length]], device=judge.device)
    trunk_cache = model_output(judge, input_ids=trunk_ids, use_cache=True, keep=1).past_key_values

    numbers_by_stem: dict[tuple[int, ...], list[int]] = {}
    for number, text in enumerate(texts):
        numbers_by_stem.setdefault(text.stem, []).append(number)

    reading_by_number: dict[int, _TextReading] = {}
    for stem, numbers in numbers_by_stem.items():
        stem_texts = [texts[number] for number in numbers]
        readings = _read_stem(judge, stem[trunk_length:], stem_texts, deepcopy(trunk_cache))
        reading_by_number.update(zip(numbers, readings, strict=True))
    return [reading_by_number[number] for number in range(len(texts))]


def _read_stem(
    judge: LocalModel, stem_tokens: Sequence[int], texts: Sequence[Text], cache: Any
) -> list[_TextReading]:
    """Results of the texts of one stem; `stem_tokens` come after those that `cache` holds."""
    ids = torch.tensor([stem_tokens], device=judge.device)
    with recorded_states(
        judge.blocks, lambda output: output[0, -1].clone(), judge.stream
    ) as states:
        output = model_output(judge, input_ids=ids, past_key_values=cache, use_cache=True, keep=1)

    token_logprobs: list[list[float]] = []
    for text in texts:
        token_logprobs.append(_token_logprobs(output.logits[0, -1:], text.ending[:1]))

    longer = [number for number, text in enumerate(texts) if text.spoken > 1]
    longer.sort(key=lambda number: texts[number].spoken)  # rows of like length need few pads
    for start in range(0, len(longer), ENDINGS_AT_ONCE):
        numbers = longer[start : start + ENDINGS_AT_ONCE]
        endings = [texts[number].ending for number in numbers]
        later_logprobs = _read_endings(judge, endings, deepcopy(output.past_key_values))
        for number, logprobs in zip(numbers, later_logprobs, strict=True):
            token_logprobs[number] += logprobs

    stem_states = _stacked_layers(states)
    readings = []
    for text, logprobs in zip(texts, token_logprobs, strict=True):
        text_states = stem_states if text.state else None
        readings.append(_TextReading(logprobs, text_states))
    return readings


def _read_endings(
    judge: LocalModel, endings: Sequence[Sequence[int]], stem_cache: Any
) -> list[list[float]]:
    """Log-probabilities of all but the first token of each ending, read as one batch."""
    rows = [torch.tensor(ending[:-1], device=judge.device) for ending in endings]
    ids = pad_sequence(rows, batch_first=True)
    stem_cache.batch_repeat_interleave(len(endings))
    output = model_output(
        judge, input_ids=ids, past_key_values=stem_cache, use_cache=True, keep=ids.shape[1]
    )
    return [
        _token_logprobs(logits[: len(ending) - 1], ending[1:])
        for logits, ending in zip(output.logits, endings, strict=True)
    ]


def _token_logprobs(logits: Tensor, tokens: Sequence[int]) -> list[float]:
    """Log-probability of each token over the whole vocabulary, from logits [token, vocabulary]."""
    if not tokens:
        return []
    token_column = torch.tensor(tokens, device=logits.device)[:, None]
    logprobs: list[float] = logits.float().log_softmax(dim=1).gather(1, token_column)[:, 0].tolist()
    return logprobs


def _stacked_layers(states: Sequence[Tensor]) -> Tensor:
    """States [d_model] of each layer, on whatever devices → [layer, d_model]."""
    return torch.stack([state.to(states[0].device) for state in states])


def branch_memory(judge: LocalModel, longest: int) -> tuple[int, int]:
    """Bytes of the weights, and roughly those of the longest text and the endings after it."""
    config = judge.model.config.get_text_config()
    heads = getattr(config, "num_attention_heads", 1)
    key_value_share = (getattr(config, "num_key_value_heads", None) or heads) / heads
    cache_numbers = 2 * len(judge.blocks) * judge.d_model * key_value_share
    forward_numbers = 3 * getattr(config, "intermediate_size", 0)
    token_numbers = (1 + ENDINGS_AT_ONCE) * cache_numbers + forward_numbers
    logit_bytes = 12 * ENDINGS_AT_ONCE * ENDING_TOKENS * config.vocab_size
    return judge.weight_bytes, int(judge.dtype.itemsize * longest * token_numbers) + logit_bytes


def shares(judge: LocalModel, texts: Sequence[Text]) -> bool:
    """Whether texts read together give the numbers of plain forwards; if not, a warning says why.

    The trial compares one text per kind: with spoken tokens the shortest and the longest, with
    states the longest.
    """
    problem = _sharing_problem(judge, texts)
    if problem:
        logger.warning("%s reads each continuation by itself: %s", judge.name, problem)
    return not problem


def _sharing_problem(judge: LocalModel, texts: Sequence[Text]) -> str:
    """Reason why texts are not read together, or ""."""
    config = judge.model.config.get_text_config()
    longest = max(len(text.tokens) for text in texts)
    switch_lengths = tuple(length for length in switch_lengths_of(config) if length < longest)
    problem = way_obstacle(judge, "shared_cache", switch_lengths)
    if problem:
        return problem

    spoken_texts = _by_length(texts, lambda text: text.spoken > 0)
    state_texts = _by_length(texts, lambda text: text.state)
    spoken_sample = [*spoken_texts[:1], *spoken_texts[-1:]]
    state_sample = state_texts[-1:]
    try:
        together = branched(judge, texts)
        plain = branched(judge, [*spoken_sample, *state_sample], sharing=False)
    except MODEL_FAILURES as error:
        return f"{type(error).__name__}: {error}"

    differences = []
    if spoken_sample:
        spoken_numbers = [texts.index(text) for text in spoken_sample]
        plain_totals = plain.totals[: len(spoken_sample)]
        gaps = np.abs(together.totals[spoken_numbers] - plain_totals)
        differences.append(float(np.max(gaps / np.maximum(np.abs(plain_totals), 1.0))))
    if state_sample:
        state_number = [text for text in texts if text.state].index(state_sample[0])
        lengths = np.maximum(np.linalg.norm(plain.states[0], axis=-1), 1e-12)
        gaps = np.linalg.norm(together.states[state_number] - plain.states[0], axis=-1)
        differences.append(float(np.max(gaps / lengths)))

    tolerance = BRANCH_TOLERANCE if judge.dtype == torch.float32 else PADDING_TOLERANCE[judge.dtype]
    largest_difference = max(differences)
    if not largest_difference <= tolerance:
        return f"together they are off by {largest_difference:.2g}"
    return ""


def _by_length(texts: Sequence[Text], wanted: Callable[[Text], bool]) -> list[Text]:
    return sorted(filter(wanted, texts), key=lambda text: len(text.tokens))


def greedy_reply(
    judge: LocalModel, prompt_tokens: Sequence[int], most_tokens: int
) -> tuple[int, ...]:
    """The model's most probable reply, token by token, up to its end of turn."""
    end_tokens = _end_tokens(judge)
    reply_tokens: list[int] = []
    cache = None
    ids = torch.tensor([list(prompt_tokens)], device=judge.device)
    with torch.inference_mode(), model_lock(judge.model):
        while len(reply_tokens) < most_tokens:
            output = model_output(
                judge, input_ids=ids, past_key_values=cache, use_cache=True, keep=1
            )
            cache = output.past_key_values
            token = int(output.logits[0, -1].argmax())
            if token in end_tokens:
                break
            reply_tokens.append(token)
            ids = torch.tensor([[token]], device=judge.device)
    return tuple(reply_tokens)


def _end_tokens(judge: LocalModel) -> set[int]:
    """Tokens that end a turn, as the model's generation settings and its tokenizer name them."""
    settings = getattr(judge.model, "generation_config", None)
    ends = getattr(settings, "eos_token_id", None)
    named_ends = ends if isinstance(ends, list) else [ends]
    all_ends = (*named_ends, judge.tokenizer.eos_token_id)
    return {int(token) for token in all_ends if token is not None}
