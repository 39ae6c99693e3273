"""One dilemma read under all arms: logit lens and attention patterns, by a registered attention
function.

    with registered(judge.model), tapped(tap):
        judge.model(**inputs)    # tap(layer, pattern): [row, head, query, key] of the last queries

Outputs of all but the changed queries are those of sdpa (or of plain softmax where a model caps its
scores). Patterns of the last queries alone are computed, and go to `tap` layer by layer: none is
kept here.

The common beginning of the arms is read once; each then continues from a copy of its cache.

Patching puts attention patterns of one run into the other, at some blocks and heads, and reads the
change of the answer. Only the last tokens, which both runs share, are read again: all before them
stays unchanged, on a cache. Patterns of the two runs are over different tokens. Those that both
begin with (the dilemma) and end with (the format) keep the donor's weights; the donor's weights on
tokens between, which are its own instruction, go to the recipient's tokens between, in the
recipient's proportions. So a run's own pattern changes nothing.

All patterns of all blocks need not explain a whole shift: values and residual states stay the
recipient's, and the tokens between differ. They do where the two runs differ in patterns over
shared tokens alone.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from selfprobe.mechanism.prompts import ARMS, PATTERN_MEASURES, DilemmaItem
from selfprobe.probes.forward import (
    MODEL_FAILURES,
    PADDING_TOLERANCE,
    Float32Array,
    model_lock,
    model_output,
    recorded_states,
)
from selfprobe.probes.model import LocalModel, decoder_blocks, final_norm
from selfprobe.probes.tokens import Prompt

PATTERNS_ATTENTION = "selfprobe_patterns"
"""Name of our attention function in transformers."""
KNOWN_FAMILIES = "Llama, Mistral, Qwen 2 and 3, Gemma 2 and 3, Phi 3, OLMo 2, GPT-2"
"""Families whose code calls transformers' attention interface: tests read tiny ones of each."""

Tap = Callable[[int, Tensor], Tensor | None]
"""Function: layer, its pattern [row, head, query, key] float32 → the pattern to use instead, or
None to leave it.
"""

WINDOWS = (
    "sliding_window",
    "attention_chunk_size",
    "attention_window_size",
    "window_size",
    "local_attention",
)
"""Settings of models whose layers hide far tokens: a pattern would not cover all of them."""

_active_tap: ContextVar[tuple[Tap, int] | None] = ContextVar("tap", default=None)
"""The tap and its number of queries."""


def registered(model: Any) -> AbstractContextManager[None]:
    """Context in which `model` calls our attention function, with its usual outputs unless
    `tapped`.
    """
    return attending(model, PATTERNS_ATTENTION, _attend, sdpa_mask)


@contextmanager
def attending(
    model: Any, name: str, attend: Callable[..., Any], mask: Callable[..., Any]
) -> Iterator[None]:
    """Context in which `model` calls `attend`, under `mask`'s mask of a batch; both follow
    transformers' interfaces.
    """
    AttentionInterface.register(name, attend)
    AttentionMaskInterface.register(name, mask)
    with model_lock(model):
        configurations = _configurations(model)
        attentions = [configuration._attn_implementation for configuration in configurations]
        try:
            model.set_attn_implementation(name)
            yield
        finally:
            # transformers' own way back is not used: it knows no None, as DBRX's parts have
            for configuration, attention in zip(configurations, attentions, strict=True):
                configuration._attn_implementation = attention


def _configurations(model: Any) -> list[Any]:
    """Configurations of the model and its parts, whose attention may differ: outer ones first, some
    twice.
    """
    configurations = [part.config for part in model.modules() if isinstance(part, PreTrainedModel)]
    for configuration in configurations:  # the list grows during the loop
        for name in configuration.sub_configs:
            part_configuration = getattr(configuration, name, None)
            if part_configuration is not None:
                configurations.append(part_configuration)
    return configurations


@contextmanager
def tapped(tap: Tap, *, queries: int = 1) -> Iterator[None]:
    """Context, inside `registered`, in which `tap` sees and may replace the patterns of the last
    `queries` tokens.
    """
    token = _active_tap.set((tap, queries))
    try:
        yield
    finally:
        _active_tap.reset(token)


def _attend(
    module: Any,
    query: Tensor,  # [row, head, query, d]
    key: Tensor,  # [row, group, key, d]
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Attention function, called as transformers does: the output [row, query, head, d]."""
    for name in ("s_aux", "position_bias"):
        if others.get(name) is not None:
            raise ValueError(
                f"its attention is given {name}, which a pattern over tokens does not hold"
            )
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    query_count = query.shape[2]
    if softcap is None:
        output, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scale, **others
        )
    else:
        all_patterns = pattern(query, key, attention_mask, scale, softcap, query_count)
        output = _mixed_values(all_patterns, value)

    active_tap = _active_tap.get()
    if active_tap:
        tap, wanted_queries = active_tap
        tapped_queries = min(wanted_queries, query_count)
        last_patterns = pattern(query, key, attention_mask, scale, softcap, tapped_queries)
        new_patterns = tap(module.layer_idx, last_patterns)
        if new_patterns is not None:
            unchanged = output[:, : query_count - tapped_queries]
            output = torch.cat([unchanged, _mixed_values(new_patterns, value)], dim=1)
    return output, None


def pattern(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    scale: float,
    softcap: float | None,
    queries: int,
) -> Tensor:
    """Softmax of the last `queries` rows, [row, head, query, key] float32; hidden keys are 0."""
    rows, heads, _, width = query.shape
    groups, length = key.shape[1], key.shape[2]
    last_queries = query[:, :, -queries:].float()
    grouped_queries = last_queries.view(rows, groups, -1, queries, width)
    group_keys = key.float().transpose(2, 3)[:, :, None]  # [row, group, 1, d, key]
    scores = (grouped_queries @ group_keys).view(rows, heads, queries, length) * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap

    if mask is None:
        all_keys = torch.ones(queries, length, dtype=torch.bool, device=key.device)
        visible = all_keys.tril(length - queries)
    else:
        visible = mask[:, :, -queries:, :length]
    if visible.dtype == torch.bool:
        return torch.softmax(scores.masked_fill(~visible, -torch.inf), dim=-1)
    return torch.softmax(scores + visible.float(), dim=-1)


def _mixed_values(patterns: Tensor, value: Tensor) -> Tensor:
    """Values [row, group, key, d] mixed by patterns [row, head, query, key] → [row, query, head,
    d].
    """
    rows, heads, queries, length = patterns.shape
    groups = value.shape[1]
    grouped = patterns.to(value.dtype).view(rows, groups, heads // groups, queries, length)
    mixed = (grouped @ value[:, :, None]).view(rows, heads, queries, -1)
    return mixed.transpose(1, 2).contiguous()


def entropy(patterns: Tensor) -> Tensor:
    """Entropy of patterns [..., key] in nats; 0 log 0 is 0.

    >>> round(float(entropy(torch.tensor([0.5, 0.5, 0.0]))), 3)
    0.693
    """
    return torch.special.entr(patterns).sum(dim=-1)


def without_first(patterns: Tensor) -> Tensor:
    """Patterns [..., key] over all but the first token, summing to 1 again; NaN where the first has
    everything.
    """
    later_tokens = patterns[..., 1:]
    return later_tokens / later_tokens.sum(dim=-1, keepdim=True)


class NoPatterns(ValueError):
    """Error: the attention of a model cannot be read; its states can."""


CHECKED_ARMS = ("introspective",)
"""Arms on which a model is checked."""

LOGIT_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 5e-2, torch.float16: 1e-2}
"""Largest difference of logits from those of the model's own attention, relative where above 1."""


@dataclass(frozen=True)
class DilemmaReading:
    """Results of one dilemma."""

    lens: Float32Array
    """[arm, layer]: logit of A less that of B, through the final norm, after each block."""
    spoken: Float32Array
    """[arm]: the same for the model's output."""
    attention: Float32Array
    """[arm, measure, layer, head]; NaN where a layer has no attention, or it was not read."""
    tokens: NDArray[np.int64]
    """[arm]: number of tokens that the last token sees, itself included."""


def read_item(
    judge: LocalModel,
    item: DilemmaItem,
    *,
    sharing: bool = True,
    attention: bool = True,
    arms: Sequence[str] = tuple(ARMS),
) -> DilemmaReading:
    """Read an item; inside `registered` where `attention` is wanted."""
    lens_differences: list[Tensor] = []
    answer_differences: list[Tensor] = []
    arm_measures: list[list[Tensor | None]] = []
    for arm, inputs in arm_inputs(judge, item, arms, sharing=sharing):
        prompt = item.prompts[arm]
        measures_by_layer: dict[int, Tensor] = {}
        tap = _measuring_tap(measures_by_layer, item.shared)
        attention_context = tapped(tap) if attention else nullcontext()
        with (
            recorded_states(judge.blocks, _last_token, judge.stream) as block_states,
            attention_context,
        ):
            logits, last_state = logits_and_last_state(judge, **inputs)
        states = torch.cat([state.to(judge.device) for state in block_states])  # [layer, d_model]
        lens_differences.append(_lens_difference(judge, states, prompt))
        answer_differences.append(answer_difference(judge, logits, last_state, prompt)[0])
        arm_measures.append([measures_by_layer.get(number) for number in judge.block_numbers])

    return DilemmaReading(
        torch.stack(lens_differences).cpu().numpy(),
        torch.stack(answer_differences).cpu().numpy(),
        _stacked_measures(arm_measures),
        np.array([len(item.prompts[arm].prefix) for arm in arms]),
    )


def _stacked_measures(arm_measures: Sequence[Sequence[Tensor | None]]) -> Float32Array:
    """Measures [measure, head] of each arm and layer → [arm, measure, layer, head]; NaN where a
    layer has none.
    """
    shape = torch.Size((len(PATTERN_MEASURES), 0))
    for layer_measures in arm_measures:
        for measures in layer_measures:
            if measures is not None:
                shape = measures.shape
    missing = torch.full(shape, math.nan)
    stacked_arms: list[Tensor] = []
    for layer_measures in arm_measures:
        filled_measures = [missing] * len(layer_measures)
        for layer, measures in enumerate(layer_measures):
            if measures is not None:
                filled_measures[layer] = measures
        stacked_arms.append(torch.stack(filled_measures, dim=1))
    stacked: Float32Array = torch.stack(stacked_arms).numpy()
    return stacked


def _last_token(output: Tensor) -> Tensor:
    """[row, token, d_model] → [row, d_model]."""
    return output[:, -1].clone()


def read_in_context(
    judge: LocalModel, item: DilemmaItem, sharing: bool, attention: bool
) -> DilemmaReading:
    """Call `read_item` in a new context, which a copy of the model on another machine needs."""
    with torch.inference_mode(), registered(judge.model) if attention else nullcontext():
        return read_item(judge, item, sharing=sharing, attention=attention)


def _measuring_tap(measures_by_layer: dict[int, Tensor], shared_tokens: int) -> Tap:
    """Tap that keeps `PATTERN_MEASURES` of each layer's last-token pattern: [measure, head] on the CPU."""

    def tap(layer: int, patterns: Tensor) -> None:
        last_pattern = patterns[0, :, -1]  # [head, key]
        measures = (
            entropy(last_pattern),
            entropy(without_first(last_pattern)),
            last_pattern[:, 0],
            last_pattern[:, -1],
            last_pattern[:, 1:shared_tokens].sum(dim=-1),
        )
        measures_by_layer[layer] = torch.stack(measures).cpu()

    return tap


def arm_inputs(
    judge: LocalModel,
    item: DilemmaItem,
    arms: Sequence[str],
    *,
    sharing: bool = True,
    omitted_tokens: Mapping[str, int] | None = None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Inputs of each arm's forward pass: the tokens after the shared ones, on a copy of their
    cache.

    `omitted_tokens`: arm → number of its last tokens that are left out.
    """
    arm_tokens: dict[str, tuple[int, ...]] = {}
    for arm in arms:
        prefix = item.prompts[arm].prefix
        omitted_count = (omitted_tokens or {}).get(arm, 0)
        arm_tokens[arm] = prefix[: len(prefix) - omitted_count]

    if not sharing:
        shared_count = 0
    else:
        shared_count = min(item.shared, *(len(tokens) - 1 for tokens in arm_tokens.values()))
    if not shared_count:
        for arm, tokens in arm_tokens.items():
            ids = torch.tensor([tokens], device=judge.device)
            yield arm, {"input_ids": ids, "use_cache": False}
        return

    shared_ids = torch.tensor([arm_tokens[arms[0]][:shared_count]], device=judge.device)
    shared_cache = model_output(judge, input_ids=shared_ids, use_cache=True, keep=1).past_key_values
    for arm, tokens in arm_tokens.items():
        ids = torch.tensor([tokens[shared_count:]], device=judge.device)
        yield (
            arm,
            {"input_ids": ids, "past_key_values": deepcopy(shared_cache), "use_cache": True},
        )


def logits_and_last_state(judge: LocalModel, **inputs: Any) -> tuple[Tensor, Tensor]:
    """The model's logits of the last token [row, vocabulary], and its state after the last block
    [row, d_model].
    """
    last_block = decoder_blocks(judge.model)[-1:]
    with recorded_states(last_block, _last_token, judge.stream) as block_states:
        logits = model_output(judge, **inputs, keep=1).logits[:, -1]
    return logits, block_states[0].to(judge.device)


def answer_difference(
    judge: LocalModel, logits: Tensor, last_state: Tensor, prompt: Prompt
) -> Tensor:
    """Logit of A less that of B in the model's answer: [row]; from the results of
    `logits_and_last_state`.

    The last state gives it in half precision: the model's own logits are rounded to 1/8 where they
    are 16 or more.
    """
    if judge.dtype == torch.float32:
        return _logit_difference(logits, prompt)
    return _lens_difference(judge, last_state, prompt)


def _lens_difference(judge: LocalModel, states: Tensor, prompt: Prompt) -> Tensor:
    """Logit of A less that of B for states [layer, d_model] through the model's norm and output
    layer: [layer].
    """
    norm_dtype = states.dtype if judge.has_float32_residual else judge.dtype
    normed = final_norm(judge.model)(states[None].to(norm_dtype))[0]
    output_layer = judge.model.get_output_embeddings()
    is_plain = type(output_layer) is nn.Linear and not output_layer.weight.is_meta
    if judge.dtype == torch.float32 or not is_plain:
        return _logit_difference(_capped_logits(judge, output_layer(normed)), prompt)

    # In half precision the two logits are computed in float32.
    tokens = list(prompt.contrast)
    bias = None if output_layer.bias is None else output_layer.bias[tokens].float()
    normed = normed.to(output_layer.weight.device).float()
    logits = nn.functional.linear(normed, output_layer.weight[tokens].float(), bias)
    capped = _capped_logits(judge, logits)
    return capped[..., 0] - capped[..., 1]


def _capped_logits(judge: LocalModel, logits: Tensor) -> Tensor:
    """Logits scaled and capped as Cohere, Granite and Gemma 2 do after the output layer."""
    config = judge.model.config.get_text_config()
    logit_scale = getattr(config, "logit_scale", None) or 1.0
    logits_scaling = getattr(config, "logits_scaling", None) or 1.0
    logits = logits * logit_scale / logits_scaling
    cap = getattr(config, "final_logit_softcapping", None)
    if not cap:
        return logits
    return torch.tanh(logits / cap) * cap


def _logit_difference(logits: Tensor, prompt: Prompt) -> Tensor:
    """Logit of A less that of B, from logits [..., vocabulary]."""
    token_a, token_b = prompt.contrast
    return logits[..., token_a].float() - logits[..., token_b].float()


@contextmanager
def checked_reading(
    judge: LocalModel, item: DilemmaItem, *, attention: bool = True
) -> Iterator[bool]:
    """Context for reading, after trying `judge` on `item`; it gives whether arms may share their
    beginning.

    Raises:
        ValueError: The lens does not end at the model's logits.
        NoPatterns: Its attention cannot be read by a registered function, or that gives something
            else.
    """
    with torch.inference_mode():
        plain_differences, answer_logits = _plain_answers(judge, item)
        reread = read_item(judge, item, sharing=False, attention=False, arms=CHECKED_ARMS)
        _check_equal(judge, reread.spoken, plain_differences, "reading the same text twice")
        _check_lens(judge, reread, answer_logits)
        can_share = _arms_can_share(judge, item)
        if not attention:
            yield can_share
            return
        _check_windows(judge, item.longest)
        with registered(judge.model):
            _check_attention(judge, item, plain_differences)
            yield can_share


def _check_lens(judge: LocalModel, reading: DilemmaReading, answer_logits: Float32Array) -> None:
    """ValueError unless the lens after the last block gives the model's logits [arm, 2]."""
    if judge.block_numbers[-1] != len(decoder_blocks(judge.model)) - 1:
        return
    rounding = 0.0
    if judge.dtype != torch.float32:
        rounding = torch.finfo(judge.dtype).eps * float(abs(answer_logits).max())
    _check_equal(
        judge,
        reading.lens[:, -1],
        answer_logits[:, 0] - answer_logits[:, 1],
        "the lens after its last block, which does not give its logits,",
        rounding=rounding,
    )


def _plain_answers(judge: LocalModel, item: DilemmaItem) -> tuple[Float32Array, Float32Array]:
    """Plain forward passes of `CHECKED_ARMS`: their answers [arm], and the model's logits of A and
    B [arm, 2].
    """
    differences: list[float] = []
    answer_logits: list[Float32Array] = []
    for arm in CHECKED_ARMS:
        prompt = item.prompts[arm]
        ids = torch.tensor([prompt.prefix], device=judge.device)
        logits, last_state = logits_and_last_state(judge, input_ids=ids, use_cache=False)
        differences.append(float(answer_difference(judge, logits, last_state, prompt)[0]))
        answer_logits.append(logits[0, list(prompt.contrast)].float().cpu().numpy())
    return np.array(differences, dtype=np.float32), np.stack(answer_logits)


def _largest_difference(values: Float32Array, plain_values: Float32Array) -> float:
    """Largest difference, relative where above 1."""
    return float(np.max(np.abs(values - plain_values) / np.maximum(np.abs(plain_values), 1.0)))


def _check_equal(
    judge: LocalModel,
    values: Float32Array,
    plain_values: Float32Array,
    reading: str,
    *,
    rounding: float = 0.0,
) -> None:
    """ValueError where they differ by more than rounding; `rounding`: that of what `plain_values`
    were computed from.
    """
    difference = _largest_difference(values, plain_values)
    if not difference <= 10 * LOGIT_TOLERANCE[judge.dtype] + rounding:
        raise ValueError(f"{judge.name} cannot be read: {reading} is off by {difference:.2g}")


def _arms_can_share(judge: LocalModel, item: DilemmaItem) -> bool:
    """Whether arms may continue from a shared cache: a recurrent model may not, nor one that turns
    positions anew.

    The last token's states decide: in half precision two logits' difference is rounded by as much
    as a prompt moves it.
    """
    try:
        whole_states = _last_token_states(judge, item, sharing=False)
        shared_states = _last_token_states(judge, item, sharing=True)
    except MODEL_FAILURES:
        return False
    smallest = torch.finfo(torch.float32).tiny
    lengths = whole_states.norm(dim=-1).clamp(min=smallest)
    differences = (shared_states - whole_states).norm(dim=-1) / lengths
    return bool((differences <= PADDING_TOLERANCE[judge.dtype]).all())


def _last_token_states(judge: LocalModel, item: DilemmaItem, *, sharing: bool) -> Tensor:
    """States of the last token of `CHECKED_ARMS`: [arm and layer, d_model]."""
    states: list[Tensor] = []
    for _, inputs in arm_inputs(judge, item, CHECKED_ARMS, sharing=sharing):
        with recorded_states(judge.blocks, _last_token, judge.stream) as block_states:
            model_output(judge, **inputs, keep=1)
        states += [state.float().to(judge.device) for state in block_states]
    return torch.cat(states)


def _check_attention(judge: LocalModel, item: DilemmaItem, plain_differences: Float32Array) -> None:
    """NoPatterns unless patterns come from the model's attention, and values mixed by them are its
    output.
    """
    tapped_layers: set[int] = set()

    def unchanged_patterns(layer: int, patterns: Tensor) -> Tensor:
        tapped_layers.add(layer)
        return patterns

    try:
        with tapped(unchanged_patterns, queries=item.longest):
            differences, _ = _plain_answers(judge, item)
    except MODEL_FAILURES as error:
        raise _unreadable_attention(judge, f"{type(error).__name__}: {error}") from error
    if not tapped_layers & set(judge.block_numbers):
        raise _unreadable_attention(judge, "it never calls one that is registered")
    largest = _largest_difference(differences, plain_differences)
    if not largest <= 10 * LOGIT_TOLERANCE[judge.dtype]:
        raise _unreadable_attention(
            judge, f"with patterns put back its logits are off by {largest:.2g}"
        )


def _unreadable_attention(judge: LocalModel, reason: str) -> NoPatterns:
    first_line = reason.strip().partition("\n")[0]
    return NoPatterns(
        f"the attention of {judge.name} ({type(judge.model).__name__}) cannot be read by a "
        f"registered function: {first_line[:160]}. It works with {KNOWN_FAMILIES}; --parts lens "
        "works without"
    )


def _check_windows(judge: LocalModel, longest: int) -> None:
    """NoPatterns where a sliding window hides tokens of the longest prompt: patterns would not
    cover all of them.
    """
    config = judge.model.config.get_text_config()
    settings = [getattr(config, name, None) for name in WINDOWS]
    windows = [window for window in settings if isinstance(window, int) and 0 < window < longest]
    if windows:
        raise NoPatterns(
            f"{judge.name} has layers with a sliding window of {min(windows)} tokens, and prompts "
            f"up to {longest}: patterns over a window are not comparable. Take shorter dilemmas; "
            "--parts lens works without"
        )


def weight_and_prompt_bytes(judge: LocalModel, longest: int) -> tuple[int, int]:
    """Bytes of the weights, and roughly those of the longest prompt."""
    config = judge.model.config.get_text_config()
    intermediate_size = int(getattr(config, "intermediate_size", 4 * judge.d_model))
    forward_numbers = 3 * intermediate_size + 8 * judge.d_model
    cache_numbers = 4 * len(judge.blocks) * judge.d_model * 2
    logit_bytes = 4 * len(judge.block_numbers) * int(config.vocab_size)
    prompt_bytes = judge.dtype.itemsize * longest * (forward_numbers + cache_numbers)
    return judge.weight_bytes, prompt_bytes + logit_bytes


def tokens_a_second(judge: LocalModel, prompt: Sequence[int]) -> float:
    """Tokens per second of one forward pass, after a short one that prepares the device."""
    for length in (8, len(prompt)):
        ids = torch.tensor([list(prompt[:length])], device=judge.device)
        start = time.perf_counter()
        with torch.inference_mode():
            float(model_output(judge, input_ids=ids, use_cache=False, keep=1).logits[0, -1, 0])
    return len(prompt) / (time.perf_counter() - start)


MEAN = "mean"
"""Name of the donor that is the mean over other dilemmas."""
VARIANTS_AT_ONCE = 4
"""Number of variants of one dilemma that are read together."""
RANDOM_BLOCK_SETS = 5
"""Number of random sets of blocks, and half the number of random heads."""


@dataclass(frozen=True)
class Variant:
    """One set of patterns to put in."""

    name: str
    group: str
    """Kind of the variant, as pages call it."""
    donor: str = ""
    """Donor: an arm, or `MEAN`."""
    heads: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Block → its heads that are patched; none: all of them."""


@dataclass(frozen=True)
class Patching:
    """The patterns to patch, and the run that gets them."""

    into: str
    donor: str
    blocks: tuple[int, ...]
    queries: int
    """Number of last tokens whose patterns are patched: 1, or all that both runs end with."""
    tail: int
    """Number of tokens that both runs of every dilemma end with."""
    variants: tuple[Variant, ...]

    def ends(self, item: DilemmaItem, donor: str) -> tuple[int, int]:
        """Numbers of tokens of the recipient and a donor that are matched at the beginning and at
        the end.
        """
        start_count, end_count = item.ends(self.into, donor)
        if donor == self.donor:
            end_count = min(end_count, self.tail)
        return start_count, end_count


def patching_plan_of(
    items: Sequence[DilemmaItem],
    blocks: Sequence[int],
    *,
    into: str,
    layer_count: int,
    head_count: int,
    whole_tail: bool = False,
) -> Patching:
    """Variants of patching `blocks` of a model with this number of layers and heads.

    Variants with the donor's pattern cover all blocks together, each block, and each of their
    heads; the others are its mean over other dilemmas, the patterns of both controls, random other
    blocks and heads, and all blocks.
    """
    donor = "direct" if into == "introspective" else "introspective"
    tail = min(item.ends(into, donor)[1] for item in items)
    donor_pattern = f"{donor} pattern"
    block_list = _listed(blocks)
    given_blocks = dict.fromkeys(blocks, ())
    all_blocks = dict.fromkeys(range(layer_count), ())

    variants = [
        Variant("unpatched", "unpatched"),
        Variant(
            f"{donor_pattern}, blocks {block_list}",
            f"{donor_pattern}, given blocks",
            donor,
            given_blocks,
        ),
    ]
    if len(blocks) > 1:
        for block in blocks:
            name = f"{donor_pattern}, block {block}"
            variants.append(Variant(name, f"{donor_pattern}, one block", donor, {block: ()}))
    all_blocks_name = f"{donor_pattern}, all blocks"
    variants.append(Variant(all_blocks_name, all_blocks_name, donor, all_blocks))
    variants.append(
        Variant(
            f"mean {donor_pattern}, blocks {block_list}",
            f"mean {donor_pattern}, given blocks",
            MEAN,
            given_blocks,
        )
    )
    control_names = {
        "control": "pattern of the irrelevant text",
        "other": "pattern of the prompt about another",
    }
    for arm, control_name in control_names.items():
        name = f"{control_name}, blocks {block_list}"
        group = f"control: {control_name}, given blocks"
        variants.append(Variant(name, group, arm, given_blocks))
    variants += _random_variants(donor, blocks, layer_count=layer_count, head_count=head_count)
    for block in blocks:
        for head in range(head_count):
            name = f"{donor_pattern}, head {block}.{head}"
            variants.append(Variant(name, f"{donor_pattern}, one head", donor, {block: (head,)}))

    variant_by_name = {variant.name: variant for variant in variants}
    queries = tail if whole_tail else 1
    return Patching(into, donor, tuple(blocks), queries, tail, tuple(variant_by_name.values()))


def _random_variants(
    donor: str, blocks: Sequence[int], *, layer_count: int, head_count: int
) -> list[Variant]:
    """Controls: the donor's patterns at as many random other blocks, and at heads of them."""
    rng = np.random.default_rng(0)
    other_blocks = [block for block in range(layer_count) if block not in set(blocks)]
    variants: list[Variant] = []
    if len(other_blocks) >= len(blocks):
        for _ in range(RANDOM_BLOCK_SETS):
            drawn_blocks = rng.choice(other_blocks, len(blocks), replace=False)
            random_blocks = sorted(int(block) for block in drawn_blocks)
            name = f"{donor} pattern, random blocks {_listed(random_blocks)}"
            blocks_patched = dict.fromkeys(random_blocks, ())
            variants.append(Variant(name, "control: random blocks", donor, blocks_patched))

    other_heads = [(block, head) for block in other_blocks for head in range(head_count)]
    if other_heads:
        drawn_head_count = min(2 * RANDOM_BLOCK_SETS, len(other_heads))
        for drawn_place in rng.choice(len(other_heads), drawn_head_count, replace=False):
            block, head = other_heads[int(drawn_place)]
            name = f"{donor} pattern, random head {block}.{head}"
            variants.append(Variant(name, "control: random heads", donor, {block: (head,)}))
    return variants


def _listed(blocks: Sequence[int]) -> str:
    return ", ".join(map(str, blocks))


def patched_in_context(
    judge: LocalModel,
    item: DilemmaItem,
    patch: Patching,
    variants: Sequence[Variant],
    mean: Float32Array | None = None,
) -> tuple[Float32Array, Float32Array]:
    """Call `patched` in a new context, which a copy of the model on another machine needs."""
    with torch.inference_mode(), registered(judge.model):
        mean_profile = None if mean is None else torch.from_numpy(mean)
        return patched_differences(judge, item, patch, variants, mean_profile)


def patched_differences(
    judge: LocalModel,
    item: DilemmaItem,
    patch: Patching,
    variants: Sequence[Variant],
    mean: Tensor | None = None,
) -> tuple[Float32Array, Float32Array]:
    """Logit differences [variant] under `variants`, and the donor's profile [block, head, query,
    place].

    `mean`: the profile that `MEAN` stands for. The call runs inside `reading.registered`.
    """
    blocks_by_donor: dict[str, set[int]] = {}
    if mean is None:
        blocks_by_donor[patch.donor] = set(patch.blocks)
    for variant in variants:
        if variant.donor not in ("", MEAN):
            blocks_by_donor.setdefault(variant.donor, set()).update(variant.heads)

    donor_patterns: dict[str, dict[int, Tensor]] = {}
    logit_differences: list[float] = []
    donor_arms = [arm for arm in blocks_by_donor if arm != patch.into]
    all_inputs = arm_inputs(
        judge, item, (*donor_arms, patch.into), omitted_tokens={patch.into: patch.queries}
    )
    for arm, inputs in all_inputs:
        if arm != patch.into:
            donor_patterns[arm] = {}
            tap = _keeping_tap(donor_patterns[arm], blocks_by_donor[arm])
            with tapped(tap, queries=patch.queries):
                model_output(judge, **inputs, keep=1)
            continue

        recipient = item.prompts[arm]
        cache = model_output(judge, **inputs, keep=1).past_key_values
        last_ids = torch.tensor([recipient.prefix[-patch.queries :]], device=judge.device)
        for start in range(0, len(variants), VARIANTS_AT_ONCE):
            batch = variants[start : start + VARIANTS_AT_ONCE]
            batch_cache = deepcopy(cache)
            batch_cache.batch_repeat_interleave(len(batch))
            tap = _patching_tap(item, patch, batch, donor_patterns, mean)
            with tapped(tap, queries=patch.queries):
                logits, last_states = logits_and_last_state(
                    judge,
                    input_ids=last_ids.expand(len(batch), -1),
                    past_key_values=batch_cache,
                    use_cache=True,
                )
            batch_differences = answer_difference(judge, logits, last_states, recipient)
            logit_differences += batch_differences.tolist()

    profiles = np.empty(0, np.float32)
    if donor_patterns:
        ends = patch.ends(item, patch.donor)
        block_profiles = [
            profile(donor_patterns[patch.donor][block].cpu(), *ends) for block in patch.blocks
        ]
        if block_profiles:
            profiles = torch.stack(block_profiles).numpy()
    return np.array(logit_differences, dtype=np.float32), profiles


def _keeping_tap(pattern_by_layer: dict[int, Tensor], blocks: set[int]) -> Tap:
    """Tap that keeps the patterns [head, query, key] of `blocks`."""

    def tap(layer: int, patterns: Tensor) -> None:
        if layer in blocks:
            pattern_by_layer[layer] = patterns[0]

    return tap


def _patching_tap(
    item: DilemmaItem,
    patch: Patching,
    variants: Sequence[Variant],
    donor_patterns: Mapping[str, Mapping[int, Tensor]],
    mean: Tensor | None,
) -> Tap:
    """Tap that puts the donors' patterns into the rows that ask for them at a layer."""

    def donated_pattern(variant: Variant, layer: int, recipient_pattern: Tensor) -> Tensor:
        if variant.donor == MEAN:
            assert mean is not None
            places = mean[patch.blocks.index(layer)].to(recipient_pattern.device)
            return spread(places, recipient_pattern, *patch.ends(item, patch.donor))
        if variant.donor == patch.into:  # a run's own pattern, unchanged
            return recipient_pattern
        donor_pattern = donor_patterns[variant.donor][layer].to(recipient_pattern.device)
        return aligned(donor_pattern, recipient_pattern, *patch.ends(item, variant.donor))

    def tap(layer: int, patterns: Tensor) -> Tensor | None:
        if not any(layer in variant.heads for variant in variants):
            return None
        patched_patterns = patterns.clone()
        for row, variant in enumerate(variants):
            if layer not in variant.heads:
                continue
            new_pattern = donated_pattern(variant, layer, patterns[row])
            heads = list(variant.heads[layer]) or slice(None)
            patched_patterns[row, heads] = new_pattern[heads]
        return patched_patterns

    return tap


def aligned(donor: Tensor, recipient: Tensor, start_count: int, end_count: int) -> Tensor:
    """The donor's pattern [head, query, key] over the recipient's keys, whose pattern is
    `recipient`; see the module.

    start_count, end_count: numbers of keys that both begin and end with. Without recipient keys
    between, the rest is rescaled to 1.
    """
    donor_end_start = donor.shape[-1] - end_count
    donor_ends = (donor[..., :start_count], donor[..., donor_end_start:])
    donor_between = donor[..., start_count:donor_end_start].sum(dim=-1, keepdim=True)
    recipient_between = recipient[..., start_count : recipient.shape[-1] - end_count]
    return _joined_parts(donor_ends, donor_between, recipient_between)


def _joined_parts(
    ends: tuple[Tensor, Tensor], between_weight: Tensor, recipient_between: Tensor
) -> Tensor:
    """Weights of the ends, and `between_weight` over the recipient's keys between in the
    proportions of `recipient_between`.
    """
    key_count = recipient_between.shape[-1]
    if not key_count:
        both_ends = torch.cat(ends, dim=-1)
        return both_ends / both_ends.sum(dim=-1, keepdim=True)
    total = recipient_between.sum(dim=-1, keepdim=True)
    smallest = torch.finfo(recipient_between.dtype).tiny
    proportions = recipient_between / total.clamp(min=smallest)
    shares = torch.where(total > 0, proportions, 1 / key_count)
    return torch.cat([ends[0], between_weight * shares, ends[1]], dim=-1)


def profile(pattern: Tensor, start_count: int, end_count: int) -> Tensor:
    """A pattern [head, query, key] by place, which all dilemmas share → [head, query,
    3 + end_count].

    The places are the first token, the rest of the shared beginning, the tokens between, and each
    token of the end.
    """
    end_start = pattern.shape[-1] - end_count
    first_token = pattern[..., :1]
    later_beginning = pattern[..., 1:start_count].sum(dim=-1, keepdim=True)
    middle = pattern[..., start_count:end_start].sum(dim=-1, keepdim=True)
    return torch.cat([first_token, later_beginning, middle, pattern[..., end_start:]], dim=-1)


def spread(places: Tensor, recipient: Tensor, start_count: int, end_count: int) -> Tensor:
    """A profile [head, query, 3 + end_count] as a pattern over the recipient's keys: even over the
    rest of the beginning.
    """
    even_weight = places[..., 1:2] / max(start_count - 1, 1)
    later_beginning = even_weight.expand(*places.shape[:-1], start_count - 1)
    ends = (torch.cat([places[..., :1], later_beginning], dim=-1), places[..., 3:])
    recipient_between = recipient[..., start_count : recipient.shape[-1] - end_count]
    return _joined_parts(ends, places[..., 2:3], recipient_between)
