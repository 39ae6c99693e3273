"""The way of reading that is right for a model and its prompts, checked before the work.

The reference reads one text at a time, with nothing but its tokens. A way is right where its states agree with the
reference and the difference of a pair's two sides, which is what a probe reads, agrees too; and where nothing that is
hidden from a side reaches it: neither the other side's token nor a pad.
"""

import inspect
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from selfprobe.probes.forward import WAYS, States, Way, states_of
from selfprobe.probes.model import HALVES, LocalModel, decoder_blocks, in_float32
from selfprobe.probes.tokens import Measured, Prompt

logger = logging.getLogger(__name__)

STATE = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}
"""Largest difference of a state that counts as rounding for every model, as a share of the state's length."""
CONTRAST = 1e-2
"""The same for φ⁺ − φ⁻, as a share of what a probe reads in it."""
NOISE = 5
"""More counts as rounding up to this multiple of what padding alone changes in plain forwards …"""
BROKEN = {torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}
"""… unless that exceeds these values: then padding itself does not work."""
LEAK = 1e-2
"""Largest effect of a side's token on the other side, as a share of its effect on its own; 0 but for rounding."""
FAILURES = (AssertionError, AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError)
"""Errors of models that take no such mask, cache or padding; each family has another one."""


WINDOWS = ("sliding_window", "attention_chunk_size", "attention_window_size", "window_size", "local_attention")
"""Settings that hide far tokens: such layers have a mask of their own, which the tree mask would replace."""


def length_switches(config: Any) -> tuple[int, ...]:
    """Lengths at which positions are turned differently, for a whole batch (Phi-3's long rope)."""
    rope = getattr(config, "rope_parameters", None) or {}
    found = {
        int(kind["original_max_position_embeddings"])
        for kind in (rope, *rope.values())  # one setting for all layers, or one per type of layer
        if isinstance(kind, dict) and kind.get("rope_type") == "longrope"
    }
    return tuple(sorted(found))


def blocked(judge: LocalModel, way: Way, switches: Sequence[int], longest: int) -> str:
    """Reason why `way` would be wrong for prompts of up to `longest` tokens; "" where only a trial can show it.

    A trial might not see a few hidden tokens, and on a CPU a state-space model takes long for each: its scan goes from
    token to token.
    """
    config = judge.model.config.get_text_config()
    windows = [w for name in WINDOWS if isinstance(w := getattr(config, name, None), int) and 0 < w <= longest]
    if way == "tree_mask" and windows:
        return f"pairs of up to {longest} tokens pass the sliding window of {min(windows)}"
    if way == "tree_mask" and recurrent(judge):
        return "its blocks mix neighbouring tokens without attention, and no mask hides one from the next"
    if way == "shared_cache" and "past_key_values" not in inspect.signature(judge.model.forward).parameters:
        return "it goes on from no key-value cache"
    if way == "shared_cache" and switches:
        return f"positions are turned anew past {switches[0]} tokens, and a cache would keep the old ones"
    return ""


def recurrent(judge: LocalModel) -> bool:
    """Whether some block convolves over tokens, as all state-space models and their hybrids do."""
    return any(
        isinstance(module, nn.Conv1d) and module.kernel_size[0] > 1
        for block in decoder_blocks(judge.model)
        for module in block.modules()
    )


class WrongWay(ValueError):
    """A way that was asked for by name gives other states than plain forwards do."""


@dataclass(frozen=True)
class Reading:
    """Settings of a way of reading prompts."""

    way: Way
    mixed: bool = True
    """Prompts of different lengths share a batch; where padding changes a state they do not."""
    switches: tuple[int, ...] = ()
    """Lengths in tokens: a batch holds no prompts both up to and past one, as the model's positions change there."""
    apart_past: int | None = None
    """Tokens past which prompts share no batch with other lengths: without pads a causal kernel reads them."""
    rounding: tuple[float, ...] = ()
    """[layer]: distance of φ⁺ − φ⁻ from the reference's, as a share of what a probe reads in it; see `off`."""

    def __str__(self) -> str:
        return f"{self.way}" + ("" if self.mixed else ", one length a batch")


PADDED = Reading("two_forwards")


@dataclass(frozen=True)
class Off:
    """Distance between two readings, by layer."""

    state: tuple[float, ...]
    """Largest ‖a − b‖ / ‖b‖ over rows and sides."""
    contrast: tuple[float, ...]
    """Root mean square over rows: that of φ⁺ − φ⁻, divided by its spread around its mean, as a probe centres it."""
    spoken: float
    """Largest difference of log-probabilities, relative where below −1."""

    @property
    def largest(self) -> float:
        """Largest distance over states and log-probabilities."""
        return max(*self.state, self.spoken)


def choose(
    judge: LocalModel, prompts: Sequence[Prompt], wanted: Way | Literal["auto"], *, batch_tokens: int = 1024
) -> Reading:
    """The reading to use: `wanted`, or "auto": the tree mask if it is right, else the shared cache, else two forwards.

    Under the tree mask prompts of more tokens than a state has numbers share no batch with other lengths: from there
    on the half that a mask does for nothing is more than a twelfth of the work.
    A way is first tried with padding, then with batches of one length. Every fall-back is logged as a warning. A way
    asked for by name that fails is an error, not a fall-back: ValueError, as for a model that cannot be read at all.
    """
    if wanted not in ("auto", *WAYS):
        raise ValueError(f"path must be one of auto, {', '.join(WAYS)}, got {wanted!r}")
    ways: tuple[Way, ...] = ("tree_mask", "shared_cache", "two_forwards") if wanted == "auto" else (wanted,)
    if not prompts:
        return Reading(ways[0])
    if judge.dtype not in HALVES:
        return _first_right(judge, prompts, ways, batch_tokens)[0]
    try:  # rounding would hide what a wrong mask does, so the ways are tried in float32, on the same weights
        with in_float32(judge.model):
            reading, sample = _first_right(judge, prompts, ways, batch_tokens, torch.float32)
    except WrongWay:
        raise
    except FAILURES as error:
        logger.warning("%s is not tried in float32: %s", judge.name, _said(error))
        return replace(_first_right(judge, prompts, ways, batch_tokens)[0], rounding=())
    if not sample.prompts:
        return reading
    return replace(reading, rounding=off(_reference(judge, sample.prompts), sample.reference).contrast)


def _first_right(
    judge: LocalModel,
    prompts: Sequence[Prompt],
    ways: Sequence[Way],
    batch_tokens: int,
    dtype: torch.dtype | None = None,
) -> "tuple[Reading, _Sample]":
    """The first of `ways` that is right, with padding or without; `dtype` is the model's type of computing."""
    longest = max(p.length for p in prompts)
    sample = _sample(judge, prompts, batch_tokens, dtype or judge.dtype)
    switches = tuple(n for n in length_switches(judge.model.config.get_text_config()) if n < longest)
    tried = [Reading(way, True, switches, judge.d_model if way == "tree_mask" else None) for way in ways]
    problems = []
    for reading in (*tried, *(replace(one, mixed=False) for one in tried)):
        found = blocked(judge, reading.way, switches, longest) or _trial(judge, sample, reading, batch_tokens)
        if isinstance(found, Off):
            return replace(reading, rounding=found.contrast), sample
        problems.append(found)
        logger.warning("%s is not used for %s: %s", reading, judge.name, found)
    raise WrongWay(f"{ways[0]} cannot be used with {judge.name}: {problems[0]}. Leave the choice to 'auto'")


def batches(
    prompts: Sequence[Measured], order: Sequence[int], batch_tokens: int, reading: Reading | None = None
) -> Iterator[list[int]]:
    """Cut `order` (by rising length) into batches of at most `batch_tokens` with padding; at least one row each."""
    reading = reading or PADDED
    apart_past = math.inf if reading.apart_past is None else reading.apart_past
    batch: list[int] = []
    for i in order:
        longer = prompts[i].length
        if batch:
            shorter = prompts[batch[-1]].length
            alone = not reading.mixed or longer > apart_past
            apart = shorter != longer if alone else any(shorter <= n < longer for n in reading.switches)
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
    spoken = (states.log_probs - reference.log_probs).abs() / reference.log_probs.abs().clamp(min=1.0)
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


def _sample(judge: LocalModel, prompts: Sequence[Prompt], batch_tokens: int, dtype: torch.dtype) -> _Sample:
    """Sample of up to four prompts: three as different in length as may share a batch, and the longest of all."""
    by_length = sorted(prompts, key=lambda p: p.length)
    fitting = [p for p in by_length if 3 * (p.length + 1) <= batch_tokens] or by_length[:1]
    taken = list(dict.fromkeys([fitting[0], fitting[len(fitting) // 2], fitting[-1], by_length[-1]]))
    reference = _reference(judge, taken, dtype)
    # Where all is NaN a way cannot be wrong; the harvest leaves such pairs unscored.
    fine = [k for k in range(len(taken)) if bool(reference.hidden[k].isfinite().all())]
    return _Sample(tuple(taken[k] for k in fine), States(reference.hidden[fine], reference.log_probs[fine]), dtype)


def _reference(judge: LocalModel, prompts: Sequence[Prompt], dtype: torch.dtype | None = None) -> States:
    """Each prompt read alone, by two plain forwards of its tokens; ValueError where the result makes no sense."""
    first = prompts[0]
    try:
        read = [states_of(judge, [p], "two_forwards") for p in prompts]
        again = states_of(judge, [replace(first, contrast=first.contrast[::-1])], "two_forwards")
    except FAILURES as error:
        raise _unreadable(judge, f"a plain forward fails ({_said(error)})") from error
    layers, width = read[0].hidden.shape[2:]
    if layers != len(judge.blocks):
        raise _unreadable(judge, f"its {len(judge.blocks)} blocks run {layers} times in one forward")
    if width != judge.d_model:
        raise _unreadable(judge, f"its blocks give states of width {width}, expected {judge.d_model}")
    repeated = off(States(again.hidden.flip(1), again.log_probs.flip(1)), read[0])
    tolerance = STATE[dtype or judge.dtype]
    if max(repeated.state) > tolerance:
        advice = ": it is in training mode, so call its eval()" * bool(judge.model.training)
        raise _unreadable(
            judge, f"the same text read twice gives states that differ by {max(repeated.state):.2g}{advice}"
        )
    if repeated.spoken > tolerance:
        raise _unreadable(judge, "its words depend on the tokens after them: it reads in both directions")
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
    try:  # lengths are mixed here even where later batches of such long prompts do not mix them
        mixing = replace(reading, apart_past=None)
        found = off(_read(judge, sample.prompts, mixing, batch_tokens), sample.reference)
        largest, leak = found.largest, 0.0
        if reading.way == "tree_mask":  # without pads it takes another path than with them
            longest = States(sample.reference.hidden[-1:], sample.reference.log_probs[-1:])
            largest = max(largest, off(_read(judge, sample.prompts[-1:], reading, batch_tokens), longest).largest)
            leak = max(_leak(judge, sample.prompts[:rows]) for rows in ((1, 2) if reading.mixed else (1,)))
        state, contrast = STATE[sample.dtype], CONTRAST
        if not (largest <= state and max(found.contrast) <= contrast) and reading != PADDED:
            noise = off(_read(judge, sample.prompts, PADDED, batch_tokens), sample.reference)
            if noise.largest <= BROKEN[sample.dtype]:
                state = max(state, NOISE * noise.largest)
                contrast = max(contrast, NOISE * max(noise.contrast))
    except FAILURES as error:
        return f"it fails ({_said(error)})"
    if reading == PADDED:
        state, contrast = BROKEN[sample.dtype], math.inf
    if not largest <= state:
        return f"its states differ from two plain forwards by {largest:.2g}, more than {state:.2g}"
    if not leak <= LEAK:
        return f"the token of one side reaches the other ({leak:.2g} of its effect on its own)"
    if not max(found.contrast) <= contrast:
        return (
            f"the difference of two sides is off by {max(found.contrast):.2g} of its spread, more than {contrast:.2g}"
        )
    return found


def _read(judge: LocalModel, prompts: Sequence[Prompt], reading: Reading, batch_tokens: int) -> States:
    """`prompts` in batches as mixed as the reading allows; where it does not mix, each prompt twice in a batch."""
    if reading.mixed:
        cut = batches(prompts, range(len(prompts)), batch_tokens, reading)
        parts = ([prompts[i] for i in batch] for batch in cut)
        return _joined([states_of(judge, part, reading.way) for part in parts])
    twice = [states_of(judge, [p, p], reading.way) for p in prompts]
    return _joined([States(s.hidden[1:], s.log_probs[1:]) for s in twice])


def _leak(judge: LocalModel, prompts: Sequence[Prompt]) -> float:
    """Change of the second side, as a share of the first's, when the first row's first side gets another token."""
    first, *others = prompts
    changed = replace(first, contrast=(first.prefix[0], first.contrast[1]))
    found, right = (states_of(judge, [one, *others], "tree_mask").hidden[0].double() for one in (changed, first))
    change = (found - right).norm(dim=-1)  # [side, layer]
    return float((change[1] / change[0].clamp(min=1e-12)).max())
