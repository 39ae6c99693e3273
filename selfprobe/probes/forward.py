"""Tokens to states: last-token states of all blocks for both sides of a pair, and P("1"), P("2") on
the way.

Two ways that must agree (`choose_reading` checks it, before the work, for a model and its prompts):

- `two_forwards`  one plain forward a side; the reference
- `shared_cache`  one forward of the prefix, then both contrast tokens on its key-value cache

Batches are padded on the left, so that the last position is the same column in every row.

The reference reads one text at a time, with nothing but its tokens. A way is right where its states
agree with the reference and the difference of a pair's two sides, which is what a probe reads,
agrees too.
"""

import inspect
import logging
import math
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any, Literal, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from selfprobe.probes.model import HALVES, LocalModel, in_float32
from selfprobe.probes.tokens import HasLength, Prompt

logger = logging.getLogger(__name__)

STATE_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}
"""Largest difference of a state that counts as rounding for every model, as a share of the state's
length.
"""
CONTRAST_TOLERANCE = 1e-2
"""Largest difference of φ⁺ − φ⁻ that counts as rounding, as a share of what a probe reads in it."""
PADDING_NOISE_MULTIPLE = 5
"""More counts as rounding up to this multiple of what padding alone changes in plain forwards …"""
PADDING_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}
"""… unless that exceeds these values: then padding itself does not work."""
TOKEN_BUDGET_SETTINGS = ("index_topk", "indexer_budget")
"""Settings that say how many tokens a token attends to, where the model selects them."""
MODEL_FAILURES = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Errors of models that take no such cache or padding; each family has another one."""

_lock_by_model: MutableMapping[Any, RLock] = WeakKeyDictionary()

JobT = TypeVar("JobT")
Float32Array = npt.NDArray[np.float32]
Way = Literal["shared_cache", "two_forwards"]


@dataclass(frozen=True)
class States:
    """Results of one batch; on the CPU."""

    hidden: Tensor
    """[row, side, layer, d_model] in the dtype of the model's residual stream."""
    log_probs: Tensor
    """[row, token] float32: log P("1"), log P("2") after the prefix, over the whole vocabulary."""


@dataclass(frozen=True)
class Batch:
    """Prompts that are read together."""

    rows: Sequence[int]
    """Numbers of the prompts among all prompts."""
    prompts: Sequence[Prompt]
    way: Way


Reader = Callable[[LocalModel, Iterable[Batch]], Iterator[tuple[Batch, States]]]
"""Prompts → states: gives each batch once with its states, in the order in which they are read."""

JobCall = Callable[[JobT], tuple[Any, ...]]
"""Function: job → the function that does it (of a module, with a model as its first argument) and
its arguments.
"""

JobRunner = Callable[[LocalModel, Prompt, Iterable[Any], JobCall[Any]], Iterator[tuple[Any, Any]]]
"""Function that does jobs: this process one after another (`do_jobs_here`), or copies of the model
(`on_ray.Copies.spread`).
"""


def attention_name(model: Any) -> str:
    """Name of the text model's attention in transformers: sdpa, eager, flash_attention_2 …"""
    return str(model.config.get_text_config()._attn_implementation)


def model_lock(model: Any) -> RLock:
    """Lock to hold while `model` is read: another thread would see our hooks."""
    return _lock_by_model.setdefault(model, RLock())


def hidden_of(output: Any) -> Tensor:
    """The states in what a block returns."""
    hidden: Tensor = output[0] if isinstance(output, tuple) else output
    return hidden


def with_hidden(output: Any, hidden: Tensor) -> Any:
    """What a block returns, with other states."""
    return (hidden, *output[1:]) if isinstance(output, tuple) else hidden


@contextmanager
def recorded_states(
    blocks: Any, select_states: Callable[[Tensor], Tensor], stream: int | None = None
) -> Iterator[list[Tensor]]:
    """Collect `select_states(output)` of every block, in order; the output is after the block,
    before any final norm.

    `stream` is the one to take from a block that gives several, [stream, row, token, d_model]; see
    `LocalModel.stream`.
    """
    block_states: list[Tensor] = []

    def hook(_module: Any, _inputs: Any, output: Any) -> None:
        # A block returns a tensor or a tuple that begins with it, depending on model and version.
        hidden = output[0] if isinstance(output, (tuple, list)) else output
        if stream is not None:
            hidden = hidden[stream]
        if hidden.ndim > 3:
            raise ValueError(
                f"a block gives states of shape {tuple(hidden.shape)}, "
                "expected [row, token, d_model]"
            )
        block_states.append(select_states(hidden))

    handles = [block.register_forward_hook(hook) for block in blocks]
    try:
        yield block_states
    finally:
        for handle in handles:
            handle.remove()


def model_output(judge: LocalModel, *, keep: int, **inputs: Any) -> Any:
    """The model's output for `inputs`; its logits end with those of the last `keep` tokens."""
    if "logits_to_keep" in inspect.signature(judge.model.forward).parameters:
        inputs["logits_to_keep"] = keep
    return judge.model(**inputs)


def left_padded(token_rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Token ids [row, column] padded on the left with 0, and the number of pads of each row."""
    width = max(len(tokens) for tokens in token_rows)
    pad_counts = [width - len(tokens) for tokens in token_rows]
    padded_rows = [
        [0] * pad_count + list(tokens)
        for pad_count, tokens in zip(pad_counts, token_rows, strict=True)
    ]
    return torch.tensor(padded_rows, device=device), torch.tensor(pad_counts, device=device)


def plain_inputs(token_rows: Sequence[Sequence[int]], device: torch.device) -> dict[str, Tensor]:
    """Inputs of a plain forward; no mask where nothing is padded, which lets sdpa take its causal
    kernel.
    """
    ids, pad_counts = left_padded(token_rows, device)
    if not int(pad_counts.max()):
        return {"input_ids": ids}
    columns = torch.arange(ids.shape[1], device=device)
    return {
        "input_ids": ids,
        "attention_mask": (columns >= pad_counts[:, None]).long(),
        "position_ids": (columns - pad_counts[:, None]).clamp(min=0),
    }


def inputs_after(
    inputs: dict[str, Tensor], lengths: Sequence[int], *, columns: int = 1
) -> dict[str, Tensor]:
    """Mask and positions of `columns` tokens after `inputs`, whose rows have `lengths` tokens;
    their ids are to be set.
    """
    positions = [list(range(length, length + columns)) for length in lengths]
    device = inputs["input_ids"].device
    later_inputs = {"position_ids": torch.tensor(positions, device=device)}
    if "attention_mask" in inputs:
        later_inputs["attention_mask"] = torch.nn.functional.pad(
            inputs["attention_mask"], (0, columns), value=1
        )
    return later_inputs


def contrast_logprobs(logits: Tensor, prompts: Sequence[Prompt]) -> Tensor:
    """Logits [row, vocabulary] after the prefix → log-probabilities of the two contrast tokens."""
    tokens = torch.tensor([prompt.contrast for prompt in prompts], device=logits.device)
    logits = logits.float()
    return (logits.gather(1, tokens) - torch.logsumexp(logits, dim=1, keepdim=True)).cpu()


def two_forwards(judge: LocalModel, prompts: Sequence[Prompt]) -> States:
    """One plain forward per side; for a single prompt it is the reference, with nothing but its
    tokens as input.
    """
    side_states: list[Tensor] = []
    for side in (0, 1):
        token_rows = [(*prompt.prefix, prompt.contrast[side]) for prompt in prompts]
        inputs = plain_inputs(token_rows, judge.device)
        with recorded_states(judge.blocks, _last_column, judge.stream) as block_states:
            logits = model_output(judge, **inputs, use_cache=False, keep=2).logits
        side_states.append(_stacked_layers(block_states))
    return States(torch.cat(side_states, dim=1), contrast_logprobs(logits[:, -2], prompts))


def shared_cache(judge: LocalModel, prompts: Sequence[Prompt]) -> States:
    """One prefix pass per pair; each contrast token is then a batch of one column on its cache.

    The cache is copied rather than widened to two rows a pair, as recurrent states cannot be
    widened.
    """
    prefix_inputs = plain_inputs([prompt.prefix for prompt in prompts], judge.device)
    prefix_output = model_output(judge, **prefix_inputs, use_cache=True, keep=1)
    contrast_inputs = inputs_after(prefix_inputs, [len(prompt.prefix) for prompt in prompts])

    side_states: list[Tensor] = []
    for side in (0, 1):
        contrast_column = [[prompt.contrast[side]] for prompt in prompts]
        contrast_inputs["input_ids"] = torch.tensor(contrast_column, device=judge.device)
        cache = prefix_output.past_key_values
        if side == 0:
            cache = deepcopy(cache)
        with recorded_states(judge.blocks, _last_column, judge.stream) as block_states:
            model_output(judge, **contrast_inputs, past_key_values=cache, use_cache=True, keep=1)
        side_states.append(_stacked_layers(block_states))

    log_probs = contrast_logprobs(prefix_output.logits[:, -1], prompts)
    return States(torch.cat(side_states, dim=1), log_probs)


def _last_column(output: Tensor) -> Tensor:
    """States of the last token: [row, token, d_model] → [row, 1, d_model]."""
    return output[:, -1:].clone()


def _stacked_layers(block_states: list[Tensor]) -> Tensor:
    """Tensors [row, side, d_model] of each layer, on whatever devices → [row, side, layer, d_model]
    on the CPU.
    """
    if len({states.device for states in block_states}) == 1:
        return torch.stack(block_states, dim=2).cpu()
    return torch.stack([states.cpu() for states in block_states], dim=2)


WAYS: dict[Way, Callable[[LocalModel, Sequence[Prompt]], States]] = {
    "shared_cache": shared_cache,
    "two_forwards": two_forwards,
}


def read_states(judge: LocalModel, prompts: Sequence[Prompt], way: Way) -> States:
    """States of one batch, without gradients; one thread at a time reads a model."""
    with torch.inference_mode(), model_lock(judge.model):
        return WAYS[way](judge, prompts)


def read_in_process(judge: LocalModel, batches: Iterable[Batch]) -> Iterator[tuple[Batch, States]]:
    """Reader that reads one batch after another in this process."""
    for batch in batches:
        yield batch, read_states(judge, batch.prompts, batch.way)


def do_jobs_here(
    judge: LocalModel, prompt: Prompt, jobs: Iterable[JobT], work: JobCall[JobT]
) -> Iterator[tuple[JobT, Any]]:
    """Results of jobs that this process does, in their order."""
    for job in jobs:
        function, *arguments = work(job)
        yield job, function(judge, *arguments)


@dataclass(frozen=True)
class Reading:
    """Settings of a way of reading prompts."""

    way: Way
    mixes_lengths: bool = True
    """Prompts of different lengths share a batch; where padding changes a state they do not."""
    switch_lengths: tuple[int, ...] = ()
    """Lengths in tokens: a batch holds no prompts both up to and past one, as the model's positions
    change there.
    """
    rounding: tuple[float, ...] = ()
    """[layer]: distance of φ⁺ − φ⁻ from the reference's, as a share of what a probe reads in it;
    see `state_distance`.
    """

    def __str__(self) -> str:
        if self.mixes_lengths:
            return self.way
        return f"{self.way}, one length a batch"


PADDED_FORWARDS = Reading("two_forwards")


def cut_batches(
    prompts: Sequence[HasLength],
    order: Sequence[int],
    batch_tokens: int,
    reading: Reading = PADDED_FORWARDS,
) -> Iterator[list[int]]:
    """Cut `order` (by rising length) into batches of at most `batch_tokens` with padding; at least
    one row each.
    """
    batch: list[int] = []
    for number in order:
        length = prompts[number].length
        if batch:
            previous_length = prompts[batch[-1]].length
            if reading.mixes_lengths:
                is_apart = any(
                    previous_length <= switch_length < length
                    for switch_length in reading.switch_lengths
                )
            else:
                is_apart = previous_length != length
            padded_tokens = (len(batch) + 1) * (length + 1)
            if is_apart or padded_tokens > batch_tokens:
                yield batch
                batch = []
        batch.append(number)
    if batch:
        yield batch


@dataclass(frozen=True)
class StateDistance:
    """Distance between two readings."""

    states: tuple[float, ...]
    """[layer]: largest ‖a − b‖ / ‖b‖ over rows and sides."""
    contrasts: tuple[float, ...]
    """[layer]: root mean square over rows of the distance of φ⁺ − φ⁻, divided by its spread around
    its mean, as a probe centres it.
    """
    log_probs: float
    """Largest difference of log-probabilities, relative where below −1."""

    @property
    def largest(self) -> float:
        """Largest distance over states and log-probabilities."""
        return max(*self.states, self.log_probs)


def state_distance(states: States, reference: States) -> StateDistance:
    """Distance of `states` from `reference`."""
    hidden, right_hidden = states.hidden.double(), reference.hidden.double()
    lengths = right_hidden.norm(dim=-1).clamp(min=1e-12)
    state_shares = ((hidden - right_hidden).norm(dim=-1) / lengths).amax(dim=(0, 1))

    contrasts = hidden[:, 0] - hidden[:, 1]  # [row, layer, d_model]
    right_contrasts = right_hidden[:, 0] - right_hidden[:, 1]
    spread = right_contrasts
    if len(right_contrasts) > 2:  # a few rows show a spread; fewer are compared without it
        spread = right_contrasts - right_contrasts.mean(dim=0)
    contrast_gap = _mean_length(contrasts - right_contrasts)
    contrast_shares = contrast_gap / _mean_length(spread).clamp(min=1e-12)

    logprob_gaps = (states.log_probs - reference.log_probs).abs()
    logprob_shares = logprob_gaps / reference.log_probs.abs().clamp(min=1.0)
    return StateDistance(
        tuple(state_shares.tolist()),
        tuple(contrast_shares.tolist()),
        float(logprob_shares.max()),
    )


def _mean_length(vectors: Tensor) -> Tensor:
    """Root mean square of the lengths of [row, layer, d_model], by layer."""
    return vectors.square().sum(dim=-1).mean(dim=0).sqrt()


def switch_lengths_of(config: Any) -> tuple[int, ...]:
    """Lengths at which positions are turned differently, for a whole batch (Phi-3's long rope)."""
    rope = getattr(config, "rope_parameters", None) or {}
    lengths: set[int] = set()
    for settings in (rope, *rope.values()):  # one for all layers, or one per type of layer
        if isinstance(settings, dict) and settings.get("rope_type") == "longrope":
            lengths.add(int(settings["original_max_position_embeddings"]))
    return tuple(sorted(lengths))


def attended_tokens(config: Any) -> float:
    """Number of tokens that each token attends to at most, where the model selects them (DeepSeek
    3.2, GLM 5, dots3); infinite where it does not.

    A padded row may then select other tokens than it does alone.
    """
    for name in TOKEN_BUDGET_SETTINGS:
        budget = getattr(config, name, None)
        if budget:
            return int(budget)
    return math.inf


def way_obstacle(judge: LocalModel, way: Way, switch_lengths: Sequence[int]) -> str:
    """Reason why `way` is not tried; "" where a trial shows whether it is right.

    On a CPU a state-space model takes long for a trial: its scan goes from token to token.
    """
    if way != "shared_cache":
        return ""
    if "past_key_values" not in inspect.signature(judge.model.forward).parameters:
        return "it goes on from no key-value cache"
    if switch_lengths:
        return (
            f"positions are turned anew past {switch_lengths[0]} tokens, "
            "and a cache would keep the old ones"
        )
    return ""


class WrongWay(ValueError):
    """A way of reading gives other states than plain forwards do, or fails."""


def choose_reading(
    judge: LocalModel,
    prompts: Sequence[Prompt],
    wanted: Way | Literal["auto"],
    *,
    batch_tokens: int = 1024,
) -> Reading:
    """The reading to use: `wanted`, or "auto": the shared cache if it is right, else two forwards.

    A way is first tried with padding, then with batches of one length. Every fall-back is logged as
    a warning. A way asked for by name that fails is an error, not a fall-back: ValueError, as for a
    model that cannot be read at all.
    """
    if wanted not in ("auto", *WAYS):
        raise ValueError(f"path must be one of auto, {', '.join(WAYS)}, got {wanted!r}")
    ways: tuple[Way, ...] = ("shared_cache", "two_forwards") if wanted == "auto" else (wanted,)
    if not prompts:
        return Reading(ways[0])
    if judge.dtype not in HALVES:
        return _first_right_reading(judge, prompts, ways, batch_tokens, judge.dtype)[0]

    # Rounding would hide what a wrong cache does: ways are tried in float32, on the same weights.
    try:
        with in_float32(judge.model):
            reading, sample = _first_right_reading(
                judge, prompts, ways, batch_tokens, torch.float32
            )
    except WrongWay:
        raise
    except MODEL_FAILURES as error:
        logger.warning("%s is not tried in float32: %s", judge.name, _error_line(error))
        reading = _first_right_reading(judge, prompts, ways, batch_tokens, judge.dtype)[0]
        return replace(reading, rounding=())
    if not sample.prompts:
        return reading
    half_states = _reference_states(judge, sample.prompts, judge.dtype)
    return replace(reading, rounding=state_distance(half_states, sample.reference).contrasts)


@dataclass(frozen=True)
class _Sample:
    """Prompts on which the ways are tried."""

    prompts: tuple[Prompt, ...]
    """Prompts in order of rising length."""
    reference: States
    dtype: torch.dtype
    """Type that the model computes in."""


def _first_right_reading(
    judge: LocalModel,
    prompts: Sequence[Prompt],
    ways: Sequence[Way],
    batch_tokens: int,
    dtype: torch.dtype,
) -> tuple[Reading, _Sample]:
    """The first of `ways` that is right, with padding or without, and the sample on which it was
    tried; `dtype` is the model's type of computing.
    """
    sample = _trial_sample(judge, prompts, batch_tokens, dtype)
    longest = max(prompt.length for prompt in prompts)
    text_config = judge.model.config.get_text_config()
    all_switch_lengths = switch_lengths_of(text_config)
    switch_lengths = tuple(length for length in all_switch_lengths if length < longest)

    mixing = [Reading(way, True, switch_lengths) for way in ways]
    unmixed = [replace(reading, mixes_lengths=False) for reading in mixing]
    if longest > attended_tokens(text_config):
        readings = unmixed
    else:
        readings = mixing + unmixed
    problems: list[WrongWay] = []
    for reading in readings:
        try:
            distance = _tried_reading(judge, sample, reading, batch_tokens)
        except WrongWay as problem:
            problems.append(problem)
            logger.warning("%s is not used for %s: %s", reading, judge.name, problem)
        else:
            return replace(reading, rounding=distance.contrasts), sample
    raise WrongWay(
        f"{ways[0]} cannot be used with {judge.name}: {problems[0]}. Leave the choice to 'auto'"
    )


def _trial_sample(
    judge: LocalModel, prompts: Sequence[Prompt], batch_tokens: int, dtype: torch.dtype
) -> _Sample:
    """Sample of up to four prompts: three as different in length as may share a batch, and the
    longest of all.
    """
    by_length = sorted(prompts, key=lambda prompt: prompt.length)
    fitting = [prompt for prompt in by_length if 3 * (prompt.length + 1) <= batch_tokens]
    if not fitting:
        fitting = by_length[:1]
    middle = fitting[len(fitting) // 2]
    sampled = list(dict.fromkeys([fitting[0], middle, fitting[-1], by_length[-1]]))
    reference = _reference_states(judge, sampled, dtype)

    # Where all is NaN a way cannot be wrong; the harvest leaves such pairs unscored.
    finite = [
        number for number in range(len(sampled)) if bool(reference.hidden[number].isfinite().all())
    ]
    return _Sample(
        tuple(sampled[number] for number in finite),
        States(reference.hidden[finite], reference.log_probs[finite]),
        dtype,
    )


def _reference_states(judge: LocalModel, prompts: Sequence[Prompt], dtype: torch.dtype) -> States:
    """Each prompt read alone, by two plain forwards of its tokens; ValueError where the result
    makes no sense.
    """
    swapped_prompt = replace(prompts[0], contrast=prompts[0].contrast[::-1])
    try:
        prompt_states = [read_states(judge, [prompt], "two_forwards") for prompt in prompts]
        swapped_states = read_states(judge, [swapped_prompt], "two_forwards")
    except MODEL_FAILURES as error:
        raise _unreadable(judge, f"a plain forward fails ({_error_line(error)})") from error

    layers, width = prompt_states[0].hidden.shape[2:]
    if layers != len(judge.blocks):
        raise _unreadable(
            judge, f"its {len(judge.blocks)} blocks run {layers} times in one forward"
        )
    if width != judge.d_model:
        raise _unreadable(
            judge, f"its blocks give states of width {width}, expected {judge.d_model}"
        )

    repeated_states = States(swapped_states.hidden.flip(1), swapped_states.log_probs.flip(1))
    repetition = state_distance(repeated_states, prompt_states[0])
    tolerance = STATE_TOLERANCE[dtype]
    if max(repetition.states) > tolerance:
        advice = ": it is in training mode, so call its eval()" if judge.model.training else ""
        raise _unreadable(
            judge,
            "the same text read twice gives states that differ by "
            f"{max(repetition.states):.2g}{advice}",
        )
    if repetition.log_probs > tolerance:
        raise _unreadable(
            judge, "its words depend on the tokens after them: it reads in both directions"
        )
    return _joined_states(prompt_states)


def _tried_reading(
    judge: LocalModel, sample: _Sample, reading: Reading, batch_tokens: int
) -> StateDistance:
    """Distance of `reading` from the reference; WrongWay where it is not right."""
    obstacle = way_obstacle(judge, reading.way, reading.switch_lengths)
    if obstacle:
        raise WrongWay(obstacle)
    if not sample.prompts:
        return StateDistance((), (), 0.0)

    try:
        distance = _sample_distance(judge, sample, reading, batch_tokens)
        if reading == PADDED_FORWARDS:
            state_limit, contrast_limit = PADDING_TOLERANCE[sample.dtype], math.inf
        else:
            state_limit, contrast_limit = STATE_TOLERANCE[sample.dtype], CONTRAST_TOLERANCE
            if not _is_within(distance, state_limit, contrast_limit):
                noise = _sample_distance(judge, sample, PADDED_FORWARDS, batch_tokens)
                if noise.largest <= PADDING_TOLERANCE[sample.dtype]:
                    largest_contrast = max(noise.contrasts)
                    state_limit = max(state_limit, PADDING_NOISE_MULTIPLE * noise.largest)
                    contrast_limit = max(contrast_limit, PADDING_NOISE_MULTIPLE * largest_contrast)
    except MODEL_FAILURES as error:
        raise WrongWay(f"it fails ({_error_line(error)})") from error

    if not distance.largest <= state_limit:
        raise WrongWay(
            f"its states differ from two plain forwards by {distance.largest:.2g}, "
            f"more than {state_limit:.2g}"
        )
    if not max(distance.contrasts) <= contrast_limit:
        raise WrongWay(
            f"the difference of two sides is off by {max(distance.contrasts):.2g} of its spread, "
            f"more than {contrast_limit:.2g}"
        )
    return distance


def _is_within(distance: StateDistance, state_limit: float, contrast_limit: float) -> bool:
    return distance.largest <= state_limit and max(distance.contrasts) <= contrast_limit


def _sample_distance(
    judge: LocalModel, sample: _Sample, reading: Reading, batch_tokens: int
) -> StateDistance:
    """Distance from the reference of the sample in batches as mixed as the reading allows; where it
    does not mix, each prompt stands twice in a batch.
    """
    parts: list[States] = []
    if reading.mixes_lengths:
        order = range(len(sample.prompts))
        for batch in cut_batches(sample.prompts, order, batch_tokens, reading):
            batch_prompts = [sample.prompts[number] for number in batch]
            parts.append(read_states(judge, batch_prompts, reading.way))
    else:
        for prompt in sample.prompts:
            doubled = read_states(judge, [prompt, prompt], reading.way)
            parts.append(States(doubled.hidden[1:], doubled.log_probs[1:]))
    return state_distance(_joined_states(parts), sample.reference)


def _joined_states(parts: Sequence[States]) -> States:
    hidden = torch.cat([states.hidden for states in parts])
    log_probs = torch.cat([states.log_probs for states in parts])
    return States(hidden, log_probs)


def _unreadable(judge: LocalModel, reason: str) -> ValueError:
    return ValueError(f"{judge.name} ({type(judge.model).__name__}) cannot be read: {reason}")


def _error_line(error: Exception) -> str:
    """The first line of an error, shortened, after its type."""
    first_line = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first_line[:120]}"
