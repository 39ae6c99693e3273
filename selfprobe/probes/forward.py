"""Tokens to states: last-token states of all blocks for both sides of a pair, and P("1"), P("2") on
the way.

Two ways that must agree (`choose` checks it, before the work, for a model and its prompts):

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

import torch
from torch import Tensor

from selfprobe.probes.model import HALVES, LocalModel, in_float32
from selfprobe.probes.tokens import Measured, Prompt

_locks: MutableMapping[Any, RLock] = WeakKeyDictionary()


def one_thread(model: Any) -> RLock:
    """Lock to hold while `model` is read: another thread would see our hooks, and restore the wrong
    attention.
    """
    return _locks.setdefault(model, RLock())


def kernel(model: Any) -> str:
    """Name of the text model's attention in transformers: sdpa, eager, flash_attention_2 …"""
    return str(model.config.get_text_config()._attn_implementation)


J = TypeVar("J")
Way = Literal["shared_cache", "two_forwards"]


@dataclass(frozen=True)
class States:
    """Results of one batch; on the CPU."""

    hidden: Tensor  # [row, side, layer, d_model] in the dtype of the model's residual stream
    log_probs: Tensor  # [row, token] float32: log P("1"), log P("2") after the prefix, over the whole vocabulary


@dataclass(frozen=True)
class Batch:
    """Prompts that are read together."""

    rows: Sequence[int]
    """Numbers of the prompts among all prompts."""
    prompts: Sequence[Prompt]
    way: Way


Reader = Callable[[LocalModel, Iterable[Batch]], Iterator[tuple[Batch, States]]]
"""Prompts → states: gives each batch once with its states, in the order in which they are read."""


@contextmanager
def recorded(
    blocks: Any, take: Callable[[Tensor], Tensor], stream: int | None = None
) -> Iterator[list[Tensor]]:
    """Collect `take(output)` of every block, in order; the output is after the block, before any
    final norm.

    `stream` is the one to take from a block that gives several, [stream, row, token, d_model]; see
    `LocalModel.stream`.
    """
    kept: list[Tensor] = []

    def hook(_module: Any, _given: Any, output: Any) -> None:
        # A block returns a tensor or a tuple that begins with it, depending on model and version.
        hidden = output[0] if isinstance(output, (tuple, list)) else output
        if stream is not None:
            hidden = hidden[stream]
        if hidden.ndim > 3:
            raise ValueError(
                f"a block gives states of shape {tuple(hidden.shape)}, expected [row, token, d_model]"
            )
        kept.append(take(hidden))

    handles = [block.register_forward_hook(hook) for block in blocks]
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()


def output_of(judge: LocalModel, *, keep: int, **inputs: Any) -> Any:
    """The model's output for `inputs`; its logits end with those of the last `keep` tokens."""
    if "logits_to_keep" in inspect.signature(judge.model.forward).parameters:
        inputs["logits_to_keep"] = keep
    return judge.model(**inputs)


def _padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Token ids [row, column] padded on the left with 0, and the number of pads of each row [row]."""
    width = max(map(len, rows))
    pads = [width - len(row) for row in rows]
    ids = torch.tensor(
        [[0] * pad + list(row) for pad, row in zip(pads, rows, strict=True)], device=device
    )
    return ids, torch.tensor(pads, device=device)


def _stacked(kept: list[Tensor]) -> Tensor:
    """Tensors [row, side, d_model] of each layer, on whatever devices → [row, side, layer, d_model]
    on the CPU.
    """
    if len({t.device for t in kept}) == 1:
        return torch.stack(kept, dim=2).cpu()
    return torch.stack([t.cpu() for t in kept], dim=2)


def spoken_tokens(logits: Tensor, prompts: Sequence[Prompt]) -> Tensor:
    """Logits [row, vocabulary] after the prefix → log-probabilities of the two contrast tokens."""
    tokens = torch.tensor([p.contrast for p in prompts], device=logits.device)
    logits = logits.float()
    return (logits.gather(1, tokens) - torch.logsumexp(logits, dim=1, keepdim=True)).cpu()


def plain_inputs(rows: Sequence[Sequence[int]], device: torch.device) -> dict[str, Tensor]:
    """Inputs of a plain forward; no mask where nothing is padded, which lets sdpa take its causal
    kernel.
    """
    ids, pads = _padded(rows, device)
    if not int(pads.max()):
        return {"input_ids": ids}
    columns = torch.arange(ids.shape[1], device=device)
    return {
        "input_ids": ids,
        "attention_mask": (columns >= pads[:, None]).long(),
        "position_ids": (columns - pads[:, None]).clamp(min=0),
    }


def two_forwards(judge: LocalModel, prompts: Sequence[Prompt]) -> States:
    """One plain forward per side; for a single prompt it is the reference, with nothing but its
    tokens as input.
    """
    device, sides = judge.device, []
    for side in (0, 1):
        rows = [(*p.prefix, p.contrast[side]) for p in prompts]
        with recorded(judge.blocks, lambda out: out[:, -1:].clone(), judge.stream) as kept:
            logits = output_of(judge, **plain_inputs(rows, device), use_cache=False, keep=2).logits
        sides.append(_stacked(kept))
    return States(torch.cat(sides, dim=1), spoken_tokens(logits[:, -2], prompts))


def shared_cache(judge: LocalModel, prompts: Sequence[Prompt]) -> States:
    """One prefix pass per pair; each contrast token is then a batch of one column on its cache.

    The cache is copied rather than widened to two rows a pair, as recurrent states cannot be
    widened.
    """
    device, sides = judge.device, []
    inputs = plain_inputs([p.prefix for p in prompts], device)
    first = output_of(judge, **inputs, use_cache=True, keep=1)
    after = one_more(inputs, [len(p.prefix) for p in prompts])
    for side in (0, 1):
        after["input_ids"] = torch.tensor([[p.contrast[side]] for p in prompts], device=device)
        cache = deepcopy(first.past_key_values) if side == 0 else first.past_key_values
        with recorded(judge.blocks, lambda out: out[:, -1:].clone(), judge.stream) as kept:
            output_of(judge, **after, past_key_values=cache, use_cache=True, keep=1)
        sides.append(_stacked(kept))
    return States(torch.cat(sides, dim=1), spoken_tokens(first.logits[:, -1], prompts))


def one_more(
    inputs: dict[str, Tensor], lengths: Sequence[int], *, columns: int = 1
) -> dict[str, Tensor]:
    """Mask and positions of more columns after `inputs`, whose rows have `lengths` tokens; their
    ids are to be set.
    """
    places = [range(length, length + columns) for length in lengths]
    after = {
        "position_ids": torch.tensor(
            [list(each) for each in places], device=inputs["input_ids"].device
        )
    }
    if "attention_mask" in inputs:
        after["attention_mask"] = torch.nn.functional.pad(
            inputs["attention_mask"], (0, columns), value=1
        )
    return after


def states_of(judge: LocalModel, prompts: Sequence[Prompt], path: Way) -> States:
    """States of one batch, by one of the ways, without gradients; one thread at a time reads
    a model.
    """
    with torch.inference_mode(), one_thread(judge.model):
        return WAYS[path](judge, prompts)


def in_process(judge: LocalModel, batches: Iterable[Batch]) -> Iterator[tuple[Batch, States]]:
    """Reader that reads one batch after another in this process."""
    for batch in batches:
        yield batch, states_of(judge, batch.prompts, batch.way)


Work = Callable[[J], tuple[Any, ...]]
"""Function: job → the function that does it (of a module, with a model as its first argument) and
its arguments.
"""

Spread = Callable[[LocalModel, Prompt, Iterable[Any], Work[Any]], Iterator[tuple[Any, Any]]]
"""Function that does jobs: this process one after another (`here`), or copies of the model
(`on_ray.Copies.spread`).
"""


def here(
    judge: LocalModel, prompt: Prompt, jobs: Iterable[J], work: Work[J]
) -> Iterator[tuple[J, Any]]:
    """Results of jobs that this process does, in their order."""
    for job in jobs:
        function, *arguments = work(job)
        yield job, function(judge, *arguments)


WAYS: dict[Way, Callable[[LocalModel, Sequence[Prompt]], States]] = {
    "shared_cache": shared_cache,
    "two_forwards": two_forwards,
}


logger = logging.getLogger(__name__)

STATE = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}
"""Largest difference of a state that counts as rounding for every model, as a share of the state's
length.
"""
CONTRAST = 1e-2
"""The same for φ⁺ − φ⁻, as a share of what a probe reads in it."""
NOISE = 5
"""More counts as rounding up to this multiple of what padding alone changes in plain forwards …"""
BROKEN = {torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}
"""… unless that exceeds these values: then padding itself does not work."""
FAILURES = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Errors of models that take no such cache or padding; each family has another one."""


def length_switches(config: Any) -> tuple[int, ...]:
    """Lengths at which positions are turned differently, for a whole batch (Phi-3's long rope)."""
    rope = getattr(config, "rope_parameters", None) or {}
    found = {
        int(kind["original_max_position_embeddings"])
        for kind in (rope, *rope.values())  # one setting for all layers, or one per type of layer
        if isinstance(kind, dict) and kind.get("rope_type") == "longrope"
    }
    return tuple(sorted(found))


def blocked(judge: LocalModel, way: Way, switches: Sequence[int]) -> str:
    """Reason why `way` is not tried; "" where a trial shows whether it is right.

    On a CPU a state-space model takes long for a trial: its scan goes from token to token.
    """
    if way != "shared_cache":
        return ""
    if "past_key_values" not in inspect.signature(judge.model.forward).parameters:
        return "it goes on from no key-value cache"
    if switches:
        return (
            f"positions are turned anew past {switches[0]} tokens, "
            "and a cache would keep the old ones"
        )
    return ""


class WrongWay(ValueError):
    """A way that was asked for by name gives other states than plain forwards do."""


@dataclass(frozen=True)
class Reading:
    """Settings of a way of reading prompts."""

    way: Way
    mixed: bool = True
    """Prompts of different lengths share a batch; where padding changes a state they do not."""
    switches: tuple[int, ...] = ()
    """Lengths in tokens: a batch holds no prompts both up to and past one, as the model's positions
    change there.
    """
    rounding: tuple[float, ...] = ()
    """[layer]: distance of φ⁺ − φ⁻ from the reference's, as a share of what a probe reads in it;
    see `off`.
    """

    def __str__(self) -> str:
        return f"{self.way}" + ("" if self.mixed else ", one length a batch")


PADDED = Reading("two_forwards")


@dataclass(frozen=True)
class Off:
    """Distance between two readings, by layer."""

    state: tuple[float, ...]
    """Largest ‖a − b‖ / ‖b‖ over rows and sides."""
    contrast: tuple[float, ...]
    """Root mean square over rows: that of φ⁺ − φ⁻, divided by its spread around its mean, as a
    probe centres it.
    """
    spoken: float
    """Largest difference of log-probabilities, relative where below −1."""

    @property
    def largest(self) -> float:
        """Largest distance over states and log-probabilities."""
        return max(*self.state, self.spoken)


def choose(
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
        return _first_right(judge, prompts, ways, batch_tokens)[0]
    try:  # rounding would hide what a wrong cache does, so the ways are tried in float32, on the same weights
        with in_float32(judge.model):
            reading, sample = _first_right(judge, prompts, ways, batch_tokens, torch.float32)
    except WrongWay:
        raise
    except FAILURES as error:
        logger.warning("%s is not tried in float32: %s", judge.name, _said(error))
        return replace(_first_right(judge, prompts, ways, batch_tokens)[0], rounding=())
    if not sample.prompts:
        return reading
    return replace(
        reading, rounding=off(_reference(judge, sample.prompts), sample.reference).contrast
    )


def _first_right(
    judge: LocalModel,
    prompts: Sequence[Prompt],
    ways: Sequence[Way],
    batch_tokens: int,
    dtype: torch.dtype | None = None,
) -> "tuple[Reading, _Sample]":
    """The first of `ways` that is right, with padding or without; `dtype` is the model's type of
    computing.
    """
    longest = max(p.length for p in prompts)
    sample = _sample(judge, prompts, batch_tokens, dtype or judge.dtype)
    switches = tuple(
        n for n in length_switches(judge.model.config.get_text_config()) if n < longest
    )
    tried = [Reading(way, True, switches) for way in ways]
    problems = []
    for reading in (*tried, *(replace(one, mixed=False) for one in tried)):
        found = blocked(judge, reading.way, switches) or _trial(
            judge, sample, reading, batch_tokens
        )
        if isinstance(found, Off):
            return replace(reading, rounding=found.contrast), sample
        problems.append(found)
        logger.warning("%s is not used for %s: %s", reading, judge.name, found)
    raise WrongWay(
        f"{ways[0]} cannot be used with {judge.name}: {problems[0]}. Leave the choice to 'auto'"
    )


def batches(
    prompts: Sequence[Measured],
    order: Sequence[int],
    batch_tokens: int,
    reading: Reading | None = None,
) -> Iterator[list[int]]:
    """Cut `order` (by rising length) into batches of at most `batch_tokens` with padding; at least
    one row each.
    """
    reading = reading or PADDED
    batch: list[int] = []
    for i in order:
        longer = prompts[i].length
        if batch:
            shorter = prompts[batch[-1]].length
            switched = any(shorter <= n < longer for n in reading.switches)
            apart = switched if reading.mixed else shorter != longer
            if apart or (len(batch) + 1) * (longer + 1) > batch_tokens:
                yield batch
                batch = []
        batch.append(i)
    if batch:
        yield batch


def off(states: States, reference: States) -> Off:
    """Distance of `states` from `reference`."""
    a, b = states.hidden.double(), reference.hidden.double()
    hidden = ((a - b).norm(dim=-1) / b.norm(dim=-1).clamp(min=1e-12)).amax(dim=(0, 1))
    contrast, right = a[:, 0] - a[:, 1], b[:, 0] - b[:, 1]  # [row, layer, d_model]
    # A few rows show a spread; fewer are compared without it.
    spread = right - right.mean(dim=0) if len(right) > 2 else right
    share = _length(contrast - right) / _length(spread).clamp(min=1e-12)
    spoken = (states.log_probs - reference.log_probs).abs() / reference.log_probs.abs().clamp(
        min=1.0
    )
    return Off(tuple(hidden.tolist()), tuple(share.tolist()), float(spoken.max()))


def _length(vectors: Tensor) -> Tensor:
    """Root mean square of the lengths of [row, layer, d_model], by layer."""
    return vectors.square().sum(dim=-1).mean(dim=0).sqrt()


@dataclass(frozen=True)
class _Sample:
    """Prompts on which the ways are tried, and the reference's states."""

    prompts: tuple[Prompt, ...]  # sorted by rising length
    reference: States
    dtype: torch.dtype  # type that the model computes in


def _sample(
    judge: LocalModel, prompts: Sequence[Prompt], batch_tokens: int, dtype: torch.dtype
) -> _Sample:
    """Sample of up to four prompts: three as different in length as may share a batch, and the
    longest of all.
    """
    by_length = sorted(prompts, key=lambda p: p.length)
    fitting = [p for p in by_length if 3 * (p.length + 1) <= batch_tokens] or by_length[:1]
    taken = list(
        dict.fromkeys([fitting[0], fitting[len(fitting) // 2], fitting[-1], by_length[-1]])
    )
    reference = _reference(judge, taken, dtype)
    # Where all is NaN a way cannot be wrong; the harvest leaves such pairs unscored.
    fine = [k for k in range(len(taken)) if bool(reference.hidden[k].isfinite().all())]
    return _Sample(
        tuple(taken[k] for k in fine),
        States(reference.hidden[fine], reference.log_probs[fine]),
        dtype,
    )


def _reference(
    judge: LocalModel, prompts: Sequence[Prompt], dtype: torch.dtype | None = None
) -> States:
    """Each prompt read alone, by two plain forwards of its tokens; ValueError where the result
    makes no sense.
    """
    first = prompts[0]
    try:
        read = [states_of(judge, [p], "two_forwards") for p in prompts]
        again = states_of(judge, [replace(first, contrast=first.contrast[::-1])], "two_forwards")
    except FAILURES as error:
        raise _unreadable(judge, f"a plain forward fails ({_said(error)})") from error
    layers, width = read[0].hidden.shape[2:]
    if layers != len(judge.blocks):
        raise _unreadable(
            judge, f"its {len(judge.blocks)} blocks run {layers} times in one forward"
        )
    if width != judge.d_model:
        raise _unreadable(
            judge, f"its blocks give states of width {width}, expected {judge.d_model}"
        )
    repeated = off(States(again.hidden.flip(1), again.log_probs.flip(1)), read[0])
    tolerance = STATE[dtype or judge.dtype]
    if max(repeated.state) > tolerance:
        advice = ": it is in training mode, so call its eval()" * bool(judge.model.training)
        raise _unreadable(
            judge,
            f"the same text read twice gives states that differ by {max(repeated.state):.2g}{advice}",
        )
    if repeated.spoken > tolerance:
        raise _unreadable(
            judge, "its words depend on the tokens after them: it reads in both directions"
        )
    return _joined(read)


def _unreadable(judge: LocalModel, why: str) -> ValueError:
    return ValueError(f"{judge.name} ({type(judge.model).__name__}) cannot be read: {why}")


def _said(error: Exception) -> str:
    """The first line of an error, shortened, after its type."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:120]}"


def _joined(read: Sequence[States]) -> States:
    return States(torch.cat([s.hidden for s in read]), torch.cat([s.log_probs for s in read]))


def _trial(judge: LocalModel, sample: _Sample, reading: Reading, batch_tokens: int) -> Off | str:
    """Distance of `reading` from the reference, or the reason why it fails."""
    if not sample.prompts:
        return Off((), (), 0.0)
    try:
        found = off(_read(judge, sample.prompts, reading, batch_tokens), sample.reference)
        state, contrast = STATE[sample.dtype], CONTRAST
        if not (found.largest <= state and max(found.contrast) <= contrast) and reading != PADDED:
            noise = off(_read(judge, sample.prompts, PADDED, batch_tokens), sample.reference)
            if noise.largest <= BROKEN[sample.dtype]:
                state = max(state, NOISE * noise.largest)
                contrast = max(contrast, NOISE * max(noise.contrast))
    except FAILURES as error:
        return f"it fails ({_said(error)})"
    if reading == PADDED:
        state, contrast = BROKEN[sample.dtype], math.inf
    if not found.largest <= state:
        return f"its states differ from two plain forwards by {found.largest:.2g}, more than {state:.2g}"
    if not max(found.contrast) <= contrast:
        return f"the difference of two sides is off by {max(found.contrast):.2g} of its spread, more than {contrast:.2g}"
    return found


def _read(
    judge: LocalModel, prompts: Sequence[Prompt], reading: Reading, batch_tokens: int
) -> States:
    """`prompts` in batches as mixed as the reading allows; where it does not mix, each prompt twice
    in a batch.
    """
    if reading.mixed:
        cut = batches(prompts, range(len(prompts)), batch_tokens, reading)
        parts = ([prompts[i] for i in batch] for batch in cut)
        return _joined([states_of(judge, part, reading.way) for part in parts])
    twice = [states_of(judge, [p, p], reading.way) for p in prompts]
    return _joined([States(s.hidden[1:], s.log_probs[1:]) for s in twice])
