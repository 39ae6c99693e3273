"""One dilemma read under all arms: logit lens and attention patterns, by a registered attention
function.

    with registered(judge.model), tapped(tap):   # tap(layer, pattern) sees [row, head, query, key] of the last queries
        judge.model(**inputs)

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

from selfprobe.mechanism.prompts import ARMS, MEASURES, Item
from selfprobe.probes.forward import (
    MODEL_FAILURES,
    PADDING_TOLERANCE,
    model_lock,
    model_output,
    recorded_states,
)
from selfprobe.probes.model import LocalModel, decoder_blocks, final_norm
from selfprobe.probes.tokens import Prompt

NAME = "selfprobe_patterns"
WORKS = "Llama, Mistral, Qwen 2 and 3, Gemma 2 and 3, Phi 3, OLMo 2, GPT-2"
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

_tap: ContextVar[tuple[Tap, int] | None] = ContextVar("tap", default=None)


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
        before = [(config, config._attn_implementation) for config in _configurations(model)]
        try:
            model.set_attn_implementation(name)
            yield
        finally:
            # transformers' own way back is not used: it knows no None, as DBRX's parts have
            for config, own in before:
                config._attn_implementation = own


def _configurations(model: Any) -> list[Any]:
    """Configurations of the model and its parts, whose attention may differ: outer ones first, some
    twice.
    """
    found = [part.config for part in model.modules() if isinstance(part, PreTrainedModel)]
    for config in found:  # the list grows during the loop
        found += [
            part for name in config.sub_configs if (part := getattr(config, name, None)) is not None
        ]
    return found


def registered(model: Any) -> AbstractContextManager[None]:
    """Context in which `model` calls our attention function, with its usual outputs unless
    `tapped`.
    """
    return attending(model, NAME, _attend, sdpa_mask)


@contextmanager
def tapped(tap: Tap, *, queries: int = 1) -> Iterator[None]:
    """Context, inside `registered`, in which `tap` sees and may replace the patterns of the last
    `queries` tokens.
    """
    token = _tap.set((tap, queries))
    try:
        yield
    finally:
        _tap.reset(token)


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
    if extra := [name for name in ("s_aux", "position_bias") if others.get(name) is not None]:
        raise ValueError(
            f"its attention is given {extra[0]}, which a pattern over tokens does not hold"
        )
    watching = _tap.get()
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    wanted = min(watching[1], query.shape[2]) if watching else 0
    if softcap is None:
        given: dict[str, Any] = {"scaling": scale, **others}
        out, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **given)
    else:
        whole = pattern(query, key, attention_mask, scale, softcap, query.shape[2])
        out = _mixed(whole, value)
    if watching:
        replaced = watching[0](
            module.layer_idx, pattern(query, key, attention_mask, scale, softcap, wanted)
        )
        if replaced is not None:
            out = torch.cat([out[:, : out.shape[1] - wanted], _mixed(replaced, value)], dim=1)
    return out, None


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
    length = key.shape[2]
    asked = (
        query[:, :, -queries:].float().view(rows, key.shape[1], -1, queries, width)
    )  # [row, group, in it, query, d]
    scores = (asked @ key.float().transpose(2, 3)[:, :, None]).view(
        rows, heads, queries, length
    ) * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if mask is None:
        seen = torch.ones(queries, length, dtype=torch.bool, device=key.device).tril(
            length - queries
        )
    else:
        seen = mask[:, :, -queries:, :length]
    if seen.dtype == torch.bool:
        return torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1)
    return torch.softmax(scores + seen.float(), dim=-1)


def _mixed(patterns: Tensor, value: Tensor) -> Tensor:
    """Values [row, group, key, d] mixed by patterns [row, head, query, key] → [row, query, head,
    d].
    """
    rows, heads, queries, length = patterns.shape
    groups = value.shape[1]
    grouped = patterns.to(value.dtype).view(rows, groups, heads // groups, queries, length)
    return (grouped @ value[:, :, None]).view(rows, heads, queries, -1).transpose(1, 2).contiguous()


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
    rest = patterns[..., 1:]
    return rest / rest.sum(dim=-1, keepdim=True)


Floats = NDArray[np.float32]


class NoPatterns(ValueError):
    """Error: the attention of a model cannot be read; its states can."""


TRIED = ("introspective",)
"""Arms on which a model is checked."""

AGREE = {torch.float32: 1e-5, torch.bfloat16: 5e-2, torch.float16: 1e-2}
"""Largest difference of logits from those of the model's own attention, relative where above 1."""


@dataclass(frozen=True)
class DilemmaReading:
    """Results of one dilemma."""

    lens: (
        Floats  # [arm, layer]: logit of A less that of B, through the final norm, after each block
    )
    spoken: Floats  # [arm]: the same for the model's output
    attention: Floats  # [arm, measure, layer, head]; NaN where a layer has no attention, or it was not read
    tokens: NDArray[np.int64]  # [arm]: number of tokens that the last token sees, itself included


def read_item(
    judge: LocalModel,
    item: Item,
    *,
    sharing: bool = True,
    attention: bool = True,
    arms: Sequence[str] = tuple(ARMS),
) -> DilemmaReading:
    """Read an item; inside `registered` where `attention` is wanted."""
    lens, spoken, measured = [], [], []
    for arm, inputs in arm_inputs(judge, item, arms, sharing=sharing):
        prompt, layers = item.prompts[arm], dict[int, Tensor]()
        tap = _measuring(layers, item.shared)
        watching = tapped(tap) if attention else nullcontext()
        with (
            recorded_states(judge.blocks, lambda out: out[:, -1].clone(), judge.stream) as kept,
            watching,
        ):
            logits, last = ended(judge, **inputs)
        states = torch.cat([state.to(judge.device) for state in kept])  # [layer, d_model]
        lens.append(_lensed(judge, states, prompt))
        spoken.append(answer_difference(judge, logits, last, prompt)[0])
        measured.append([layers.get(number) for number in judge.numbers])
    shape = next(
        (found.shape for arm in measured for found in arm if found is not None),
        torch.Size((len(MEASURES), 0)),
    )
    missing = torch.full(shape, math.nan)
    stacked = [
        torch.stack([missing if one is None else one for one in arm], dim=1) for arm in measured
    ]
    return DilemmaReading(
        torch.stack(lens).cpu().numpy(),
        torch.stack(spoken).cpu().numpy(),
        torch.stack(stacked).numpy(),
        np.array([len(item.prompts[arm].prefix) for arm in arms]),
    )


def read_in_context(
    judge: LocalModel, item: Item, sharing: bool, attention: bool
) -> DilemmaReading:
    """Call `read_item` in a context of its own, which a copy of the model on another machine needs."""
    with torch.inference_mode(), registered(judge.model) if attention else nullcontext():
        return read_item(judge, item, sharing=sharing, attention=attention)


def _measuring(into: dict[int, Tensor], shared: int) -> Tap:
    """Keep `MEASURES` of each layer's last-token pattern: [measure, head] on the CPU."""

    def tap(layer: int, patterns: Tensor) -> None:
        p = patterns[0, :, -1]  # [head, key]
        measures = (
            entropy(p),
            entropy(without_first(p)),
            p[:, 0],
            p[:, -1],
            p[:, 1:shared].sum(dim=-1),
        )
        into[layer] = torch.stack(measures).cpu()

    return tap


def arm_inputs(
    judge: LocalModel,
    item: Item,
    arms: Sequence[str],
    *,
    sharing: bool = True,
    last: Mapping[str, int] | None = None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Inputs of each arm's forward pass: the tokens after the shared ones, on a copy of their
    cache.

    `last`: arm → number of its last tokens that are left out.
    """
    device, left = judge.device, last or {}
    rows = {
        arm: item.prompts[arm].prefix[: len(item.prompts[arm].prefix) - left.get(arm, 0)]
        for arm in arms
    }
    head = min(item.shared, *(len(row) - 1 for row in rows.values())) if sharing else 0
    cache = None
    if head:
        shared = torch.tensor([rows[arms[0]][:head]], device=device)
        cache = model_output(judge, input_ids=shared, use_cache=True, keep=1).past_key_values
    for arm, row in rows.items():
        kept: dict[str, Any] = (
            {"past_key_values": deepcopy(cache), "use_cache": True}
            if head
            else {"use_cache": False}
        )
        yield arm, {"input_ids": torch.tensor([row[head:]], device=device), **kept}


def ended(judge: LocalModel, **inputs: Any) -> tuple[Tensor, Tensor]:
    """The model's logits of the last token [row, vocabulary], and its state after the last block
    [row, d_model].
    """
    with recorded_states(
        decoder_blocks(judge.model)[-1:], lambda out: out[:, -1].clone(), judge.stream
    ) as kept:
        logits = model_output(judge, **inputs, keep=1).logits[:, -1]
    return logits, kept[0].to(judge.device)


def answer_difference(judge: LocalModel, logits: Tensor, last: Tensor, prompt: Prompt) -> Tensor:
    """Logit of A less that of B in the model's answer, from the results of `ended`: [row].

    The last state gives it in half precision: the model's own logits are rounded to 1/8 where they
    are 16 or more.
    """
    return (
        _difference(logits, prompt)
        if judge.dtype == torch.float32
        else _lensed(judge, last, prompt)
    )


def _lensed(judge: LocalModel, states: Tensor, prompt: Prompt) -> Tensor:
    """Logit of A less that of B for states [layer, d_model] through the model's norm and output
    layer: [layer].
    """
    normed = final_norm(judge.model)(
        states[None].to(judge.dtype if not judge.has_float32_residual else states.dtype)
    )[0]
    head = judge.model.get_output_embeddings()
    if judge.dtype == torch.float32 or type(head) is not nn.Linear or head.weight.is_meta:
        return _difference(_capped(judge, head(normed)), prompt)
    rows = list(prompt.contrast)
    bias = None if head.bias is None else head.bias[rows].float()
    normed = normed.to(head.weight.device).float()
    logits = _capped(judge, nn.functional.linear(normed, head.weight[rows].float(), bias))
    return logits[..., 0] - logits[..., 1]


def _capped(judge: LocalModel, logits: Tensor) -> Tensor:
    """Logits capped as Cohere, Granite and Gemma 2 do after the output layer."""
    config = judge.model.config.get_text_config()
    logits = (
        logits
        * (getattr(config, "logit_scale", None) or 1.0)
        / (getattr(config, "logits_scaling", None) or 1.0)
    )
    cap = getattr(config, "final_logit_softcapping", None)
    return torch.tanh(logits / cap) * cap if cap else logits


def _difference(logits: Tensor, prompt: Prompt) -> Tensor:
    """Logit of A less that of B, from logits [..., vocabulary]."""
    a, b = prompt.contrast
    return logits[..., a].float() - logits[..., b].float()


@contextmanager
def checked_reading(judge: LocalModel, item: Item, *, attention: bool = True) -> Iterator[bool]:
    """Context for reading, after trying `judge` on `item`; it gives whether arms may share their
    beginning.

    Raises:
        ValueError: The lens does not end at the model's logits.
        NoPatterns: Its attention cannot be read by a registered function, or that gives something
            else.
    """
    with torch.inference_mode():
        plain, logits = _plain(judge, item)
        found = read_item(judge, item, sharing=False, attention=False, arms=TRIED)
        _agree(judge, found.spoken, plain, "reading the same text twice")
        if judge.numbers[-1] == len(decoder_blocks(judge.model)) - 1:
            rounded = (
                0.0
                if judge.dtype == torch.float32
                else torch.finfo(judge.dtype).eps * float(abs(logits).max())
            )
            said, what = (
                logits[:, 0] - logits[:, 1],
                "the lens after its last block, which does not give its logits,",
            )
            _agree(judge, found.lens[:, -1], said, what, besides=rounded)
        sharing = _shares(judge, item)
        if not attention:
            yield sharing
            return
        _check_windows(judge, item.longest)
        with registered(judge.model):
            _check_attention(judge, item, plain)
            yield sharing


def _plain(judge: LocalModel, item: Item) -> tuple[Floats, Floats]:
    """Plain forward passes of `TRIED`: their answers [arm], and the model's logits of A and B [arm,
    2].
    """
    found, logits = [], []
    for prompt in (item.prompts[arm] for arm in TRIED):
        said, last = ended(
            judge, input_ids=torch.tensor([prompt.prefix], device=judge.device), use_cache=False
        )
        found.append(float(answer_difference(judge, said, last, prompt)[0]))
        logits.append(said[0, list(prompt.contrast)].float().cpu().numpy())
    return np.array(found, dtype=np.float32), np.stack(logits)


def _off(found: Floats, plain: Floats) -> float:
    return float(np.max(np.abs(found - plain) / np.maximum(np.abs(plain), 1.0)))


def _agree(
    judge: LocalModel, found: Floats, plain: Floats, what: str, *, besides: float = 0.0
) -> None:
    """ValueError where they differ by more than rounding; `besides`: rounding of what `plain` was
    computed from.
    """
    if not (off := _off(found, plain)) <= 10 * AGREE[judge.dtype] + besides:
        raise ValueError(f"{judge.name} cannot be read: {what} is off by {off:.2g}")


def _shares(judge: LocalModel, item: Item) -> bool:
    """Whether arms may continue from a shared cache: a recurrent model may not, nor one that turns
    positions anew.

    The last token's states decide: in half precision two logits' difference is rounded by as much
    as a prompt moves it.
    """
    try:
        whole, shared = (_last_states(judge, item, sharing=sharing) for sharing in (False, True))
    except MODEL_FAILURES:
        return False
    off = (shared - whole).norm(dim=-1) / whole.norm(dim=-1).clamp(
        min=torch.finfo(torch.float32).tiny
    )
    return bool((off <= PADDING_TOLERANCE[judge.dtype]).all())


def _last_states(judge: LocalModel, item: Item, *, sharing: bool) -> Tensor:
    """States of the last token of `TRIED`: [arm and layer, d_model]."""
    states: list[Tensor] = []
    for _, inputs in arm_inputs(judge, item, TRIED, sharing=sharing):
        with recorded_states(judge.blocks, lambda out: out[:, -1].clone(), judge.stream) as kept:
            model_output(judge, **inputs, keep=1)
        states += [state.float().to(judge.device) for state in kept]
    return torch.cat(states)


def _check_attention(judge: LocalModel, item: Item, plain: Floats) -> None:
    """NoPatterns unless patterns come from the model's attention, and values mixed by them are its
    output.
    """
    seen = set[int]()

    def same(layer: int, patterns: Tensor) -> Tensor:
        seen.add(layer)
        return patterns

    try:
        with tapped(same, queries=item.longest):
            found, _ = _plain(judge, item)
    except MODEL_FAILURES as error:
        raise _unregistered(judge, f"{type(error).__name__}: {error}") from error
    if not seen & set(judge.numbers):
        raise _unregistered(judge, "it never calls one that is registered")
    if not (off := _off(found, plain)) <= 10 * AGREE[judge.dtype]:
        raise _unregistered(judge, f"with patterns put back its logits are off by {off:.2g}")


def _unregistered(judge: LocalModel, why: str) -> NoPatterns:
    return NoPatterns(
        f"the attention of {judge.name} ({type(judge.model).__name__}) cannot be read by a registered function: "
        f"{why.strip().partition(chr(10))[0][:160]}. It works with {WORKS}; --parts lens works without"
    )


def _check_windows(judge: LocalModel, longest: int) -> None:
    """NoPatterns where a sliding window hides tokens of the longest prompt: patterns would not
    cover all of them.
    """
    config = judge.model.config.get_text_config()
    windows = [
        w
        for name in WINDOWS
        if isinstance(w := getattr(config, name, None), int) and 0 < w < longest
    ]
    if windows:
        raise NoPatterns(
            f"{judge.name} has layers with a sliding window of {min(windows)} tokens, and prompts up to {longest}: "
            "patterns over a window are not comparable. Take shorter dilemmas; --parts lens works without"
        )


def memory(judge: LocalModel, longest: int) -> tuple[int, int]:
    """Bytes of the weights, and roughly those of the longest prompt."""
    config = judge.model.config.get_text_config()
    width = 3 * int(getattr(config, "intermediate_size", 4 * judge.d_model)) + 8 * judge.d_model
    cache = 4 * len(judge.blocks) * judge.d_model * 2
    logits = 4 * len(judge.numbers) * int(config.vocab_size)
    weights = sum(p.numel() * p.element_size() for p in judge.model.parameters())
    return weights, judge.dtype.itemsize * longest * (width + cache) + logits


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
ROWS = 4
"""Number of variants of one dilemma that are read together."""
DRAWS = 5
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

    def ends(self, item: Item, donor: str) -> tuple[int, int]:
        """Numbers of tokens of the recipient and a donor that are matched at the beginning and at
        the end.
        """
        head, tail = item.ends(self.into, donor)
        return head, min(tail, self.tail) if donor == self.donor else tail


def patching(
    items: Sequence[Item],
    blocks: Sequence[int],
    *,
    into: str,
    layers: int,
    heads: int,
    whole_tail: bool = False,
) -> Patching:
    """Variants of patching `blocks` of a model with this number of layers and heads.

    Variants with the donor's pattern cover all blocks together, each block, and each of their
    heads; the others are its mean over other dilemmas, the patterns of both controls, random other
    blocks and heads, and all blocks.
    """
    donor = "direct" if into == "introspective" else "introspective"
    tail = min(item.ends(into, donor)[1] for item in items)
    rng, others = (
        np.random.default_rng(0),
        [block for block in range(layers) if block not in set(blocks)],
    )
    every = dict.fromkeys(blocks, ())
    named = f"{donor} pattern"
    made = [
        Variant("unpatched", "unpatched"),
        Variant(f"{named}, blocks {_listed(blocks)}", f"{named}, given blocks", donor, every),
    ]
    if len(blocks) > 1:
        made += [
            Variant(f"{named}, block {block}", f"{named}, one block", donor, {block: ()})
            for block in blocks
        ]
    made += [
        Variant(
            f"{donor} pattern, all blocks",
            f"{named}, all blocks",
            donor,
            dict.fromkeys(range(layers), ()),
        )
    ]
    made += [
        Variant(
            f"mean {named}, blocks {_listed(blocks)}", f"mean {named}, given blocks", MEAN, every
        )
    ]
    for arm, word in (
        ("control", "pattern of the irrelevant text"),
        ("other", "pattern of the prompt about another"),
    ):
        made.append(
            Variant(
                f"{word}, blocks {_listed(blocks)}", f"control: {word}, given blocks", arm, every
            )
        )
    for _ in range(DRAWS if len(others) >= len(blocks) else 0):
        drawn = sorted(int(block) for block in rng.choice(others, len(blocks), replace=False))
        made.append(
            Variant(
                f"{named}, random blocks {_listed(drawn)}",
                "control: random blocks",
                donor,
                dict.fromkeys(drawn, ()),
            )
        )
    places = [(block, head) for block in others for head in range(heads)]
    for place in (
        rng.choice(len(places), min(2 * DRAWS, len(places)), replace=False) if places else ()
    ):
        block, head = places[int(place)]
        made.append(
            Variant(
                f"{named}, random head {block}.{head}",
                "control: random heads",
                donor,
                {block: (head,)},
            )
        )
    made += [
        Variant(f"{named}, head {b}.{h}", f"{named}, one head", donor, {b: (h,)})
        for b in blocks
        for h in range(heads)
    ]
    unique = tuple({variant.name: variant for variant in made}.values())
    return Patching(into, donor, tuple(blocks), tail if whole_tail else 1, tail, unique)


def _listed(blocks: Sequence[int]) -> str:
    return ", ".join(map(str, blocks))


def patched_in_context(
    judge: LocalModel,
    item: Item,
    patch: Patching,
    variants: Sequence[Variant],
    mean: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Call `patched` in a context of its own, which a copy of the model on another machine needs."""
    with torch.inference_mode(), registered(judge.model):
        return patched(
            judge, item, patch, variants, None if mean is None else torch.from_numpy(mean)
        )


def patched(
    judge: LocalModel,
    item: Item,
    patch: Patching,
    variants: Sequence[Variant],
    mean: Tensor | None = None,
) -> tuple[Floats, Floats]:
    """Logit differences [variant] under `variants`, and the donor's profile [block, head, query,
    place].

    `mean`: the profile that `MEAN` stands for. The call runs inside `reading.registered`.
    """
    wanted: dict[str, set[int]] = {patch.donor: set(patch.blocks)} if mean is None else {}
    for variant in variants:
        if variant.donor not in ("", MEAN):
            wanted.setdefault(variant.donor, set()).update(variant.heads)
    held: dict[str, dict[int, Tensor]] = {}
    found: list[float] = []
    order = (*(arm for arm in wanted if arm != patch.into), patch.into)
    for arm, inputs in arm_inputs(judge, item, order, last={patch.into: patch.queries}):
        if arm != patch.into:
            held[arm] = {}
            with tapped(_holding(held[arm], wanted[arm]), queries=patch.queries):
                model_output(judge, **inputs, keep=1)
            continue
        cache = model_output(judge, **inputs, keep=1).past_key_values
        last = torch.tensor([item.prompts[arm].prefix[-patch.queries :]], device=judge.device)
        for rows in _cut(variants):
            own = deepcopy(cache)
            own.batch_repeat_interleave(len(rows))
            with tapped(_putting(item, patch, rows, held, mean), queries=patch.queries):
                said = ended(
                    judge, input_ids=last.expand(len(rows), -1), past_key_values=own, use_cache=True
                )
            found += answer_difference(judge, *said, item.prompts[arm]).tolist()
    profiles = (
        [
            profile(held[patch.donor][block].cpu(), *patch.ends(item, patch.donor))
            for block in patch.blocks
        ]
        if held
        else []
    )
    return np.array(found, dtype=np.float32), torch.stack(
        profiles
    ).numpy() if profiles else np.empty(0, np.float32)


def _cut(variants: Sequence[Variant]) -> Iterator[Sequence[Variant]]:
    for start in range(0, len(variants), ROWS):
        yield variants[start : start + ROWS]


def _holding(into: dict[int, Tensor], blocks: set[int]) -> Tap:
    def tap(layer: int, patterns: Tensor) -> None:
        if layer in blocks:
            into[layer] = patterns[0]  # [head, query, key]

    return tap


def _putting(
    item: Item,
    given: Patching,
    rows: Sequence[Variant],
    held: Mapping[str, Mapping[int, Tensor]],
    mean: Tensor | None,
) -> Tap:
    """Put the donors' patterns into the rows that ask for them at a layer."""

    def tap(layer: int, patterns: Tensor) -> Tensor | None:
        if not any(layer in variant.heads for variant in rows):
            return None
        out = patterns.clone()
        for row, variant in enumerate(rows):
            if layer not in variant.heads:
                continue
            if variant.donor == MEAN:
                assert mean is not None
                at = mean[given.blocks.index(layer)].to(patterns.device)
                new = spread(at, patterns[row], *given.ends(item, given.donor))
            elif variant.donor == given.into:  # a run's own pattern, unchanged
                new = patterns[row]
            else:
                donor = held[variant.donor][layer].to(patterns.device)
                new = aligned(donor, patterns[row], *given.ends(item, variant.donor))
            chosen = list(variant.heads[layer]) or slice(None)
            out[row, chosen] = new[chosen]
        return out

    return tap


def aligned(donor: Tensor, recipient: Tensor, head: int, tail: int) -> Tensor:
    """The donor's pattern [head, query, key] over the recipient's keys, whose pattern is
    `recipient`; see the module.

    head, tail: numbers of keys that both begin and end with. Without recipient keys between, the
    rest is rescaled to 1.
    """
    length = recipient.shape[-1]
    ends = (donor[..., :head], donor[..., donor.shape[-1] - tail :])
    between = donor[..., head : donor.shape[-1] - tail].sum(dim=-1, keepdim=True)
    return _joined(ends, between, recipient[..., head : length - tail])


def _joined(ends: tuple[Tensor, Tensor], between: Tensor, mine: Tensor) -> Tensor:
    """Weights of the ends, and `between` over the recipient's keys between in the proportions of
    `mine`.
    """
    if not mine.shape[-1]:
        whole = torch.cat(ends, dim=-1)
        return whole / whole.sum(dim=-1, keepdim=True)
    total = mine.sum(dim=-1, keepdim=True)
    share = torch.where(
        total > 0, mine / total.clamp(min=torch.finfo(mine.dtype).tiny), 1 / mine.shape[-1]
    )
    return torch.cat([ends[0], between * share, ends[1]], dim=-1)


def profile(pattern: Tensor, head: int, tail: int) -> Tensor:
    """A pattern [head, query, key] by place, which all dilemmas share → [head, query, 3 + tail].

    The places are the first token, the rest of the shared beginning, the tokens between, and each
    token of the end.
    """
    between = pattern[..., head : pattern.shape[-1] - tail].sum(dim=-1, keepdim=True)
    rest = pattern[..., 1:head].sum(dim=-1, keepdim=True)
    return torch.cat(
        [pattern[..., :1], rest, between, pattern[..., pattern.shape[-1] - tail :]], dim=-1
    )


def spread(places: Tensor, recipient: Tensor, head: int, tail: int) -> Tensor:
    """A profile [head, query, 3 + tail] as a pattern over the recipient's keys: even over the rest
    of the beginning.
    """
    rest = (places[..., 1:2] / max(head - 1, 1)).expand(*places.shape[:-1], head - 1)
    ends = (torch.cat([places[..., :1], rest], dim=-1), places[..., 3:])
    return _joined(ends, places[..., 2:3], recipient[..., head : recipient.shape[-1] - tail])
