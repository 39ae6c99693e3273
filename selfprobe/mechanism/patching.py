"""Patching: attention patterns of one run in the other, at some blocks and heads; the change of the answer.

Only the last tokens, which both runs share, are read again: all before them stays unchanged, on a cache. Patterns of
the two runs are over different tokens. Those that both begin with (the dilemma) and end with (the format) keep the
donor's weights; the donor's weights on tokens between, which are its own instruction, go to the recipient's tokens
between, in the recipient's proportions. So a run's own pattern changes nothing.

All patterns of all blocks need not explain a whole shift: values and residual states stay the recipient's, and the
tokens between differ. They do where the two runs differ in patterns over shared tokens alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from selfprobe.mechanism.prompts import Item
from selfprobe.mechanism.reading import Floats, Tap, answered, arm_runs, ended, registered, tapped
from selfprobe.probes.forward import output_of
from selfprobe.probes.model import LocalModel

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
        """Numbers of tokens of the recipient and a donor that are matched at the beginning and at the end."""
        head, tail = item.ends(self.into, donor)
        return head, min(tail, self.tail) if donor == self.donor else tail


def patching(
    items: Sequence[Item], blocks: Sequence[int], *, into: str, layers: int, heads: int, whole_tail: bool = False
) -> Patching:
    """Variants of patching `blocks` of a model with this number of layers and heads.

    Variants with the donor's pattern cover all blocks together, each block, and each of their heads; the others are its
    mean over other dilemmas, the patterns of both controls, random other blocks and heads, and all blocks.
    """
    donor = "direct" if into == "introspective" else "introspective"
    tail = min(item.ends(into, donor)[1] for item in items)
    rng, others = np.random.default_rng(0), [block for block in range(layers) if block not in set(blocks)]
    every = dict.fromkeys(blocks, ())
    named = f"{donor} pattern"
    made = [
        Variant("unpatched", "unpatched"),
        Variant(f"{named}, blocks {_listed(blocks)}", f"{named}, given blocks", donor, every),
    ]
    if len(blocks) > 1:
        made += [Variant(f"{named}, block {block}", f"{named}, one block", donor, {block: ()}) for block in blocks]
    made += [Variant(f"{donor} pattern, all blocks", f"{named}, all blocks", donor, dict.fromkeys(range(layers), ()))]
    made += [Variant(f"mean {named}, blocks {_listed(blocks)}", f"mean {named}, given blocks", MEAN, every)]
    for arm, word in (("control", "pattern of the irrelevant text"), ("other", "pattern of the prompt about another")):
        made.append(Variant(f"{word}, blocks {_listed(blocks)}", f"control: {word}, given blocks", arm, every))
    for _ in range(DRAWS if len(others) >= len(blocks) else 0):
        drawn = sorted(int(block) for block in rng.choice(others, len(blocks), replace=False))
        made.append(
            Variant(
                f"{named}, random blocks {_listed(drawn)}", "control: random blocks", donor, dict.fromkeys(drawn, ())
            )
        )
    places = [(block, head) for block in others for head in range(heads)]
    for place in rng.choice(len(places), min(2 * DRAWS, len(places)), replace=False) if places else ():
        block, head = places[int(place)]
        made.append(Variant(f"{named}, random head {block}.{head}", "control: random heads", donor, {block: (head,)}))
    made += [
        Variant(f"{named}, head {b}.{h}", f"{named}, one head", donor, {b: (h,)}) for b in blocks for h in range(heads)
    ]
    unique = tuple({variant.name: variant for variant in made}.values())
    return Patching(into, donor, tuple(blocks), tail if whole_tail else 1, tail, unique)


def _listed(blocks: Sequence[int]) -> str:
    return ", ".join(map(str, blocks))


def apart(
    judge: LocalModel, item: Item, patch: Patching, variants: Sequence[Variant], mean: Floats | None = None
) -> tuple[Floats, Floats]:
    """Call `patched` in a context of its own, which a copy of the model on another machine needs."""
    with torch.inference_mode(), registered(judge.model):
        return patched(judge, item, patch, variants, None if mean is None else torch.from_numpy(mean))


def patched(
    judge: LocalModel, item: Item, patch: Patching, variants: Sequence[Variant], mean: Tensor | None = None
) -> tuple[Floats, Floats]:
    """Logit differences [variant] under `variants`, and the donor's profile [block, head, query, place].

    `mean`: the profile that `MEAN` stands for. The call runs inside `reading.registered`.
    """
    wanted: dict[str, set[int]] = {patch.donor: set(patch.blocks)} if mean is None else {}
    for variant in variants:
        if variant.donor not in ("", MEAN):
            wanted.setdefault(variant.donor, set()).update(variant.heads)
    held: dict[str, dict[int, Tensor]] = {}
    found: list[float] = []
    order = (*(arm for arm in wanted if arm != patch.into), patch.into)
    for arm, inputs in arm_runs(judge, item, order, last={patch.into: patch.queries}):
        if arm != patch.into:
            held[arm] = {}
            with tapped(_holding(held[arm], wanted[arm]), queries=patch.queries):
                output_of(judge, **inputs, keep=1)
            continue
        cache = output_of(judge, **inputs, keep=1).past_key_values
        last = torch.tensor([item.prompts[arm].prefix[-patch.queries :]], device=judge.device)
        for rows in _cut(variants):
            own = deepcopy(cache)
            own.batch_repeat_interleave(len(rows))
            with tapped(_putting(item, patch, rows, held, mean), queries=patch.queries):
                said = ended(judge, input_ids=last.expand(len(rows), -1), past_key_values=own, use_cache=True)
            found += answered(judge, *said, item.prompts[arm]).tolist()
    profiles = (
        [profile(held[patch.donor][block].cpu(), *patch.ends(item, patch.donor)) for block in patch.blocks]
        if held
        else []
    )
    return np.array(found, dtype=np.float32), torch.stack(profiles).numpy() if profiles else np.empty(0, np.float32)


def _cut(variants: Sequence[Variant]) -> Iterator[Sequence[Variant]]:
    for start in range(0, len(variants), ROWS):
        yield variants[start : start + ROWS]


def _holding(into: dict[int, Tensor], blocks: set[int]) -> Tap:
    def tap(layer: int, patterns: Tensor) -> None:
        if layer in blocks:
            into[layer] = patterns[0]  # [head, query, key]

    return tap


def _putting(
    item: Item, given: Patching, rows: Sequence[Variant], held: Mapping[str, Mapping[int, Tensor]], mean: Tensor | None
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
    """The donor's pattern [head, query, key] over the recipient's keys, whose pattern is `recipient`; see the module.

    head, tail: numbers of keys that both begin and end with. Without recipient keys between, the rest is rescaled to 1.
    """
    length = recipient.shape[-1]
    ends = (donor[..., :head], donor[..., donor.shape[-1] - tail :])
    between = donor[..., head : donor.shape[-1] - tail].sum(dim=-1, keepdim=True)
    return _joined(ends, between, recipient[..., head : length - tail])


def _joined(ends: tuple[Tensor, Tensor], between: Tensor, mine: Tensor) -> Tensor:
    """Weights of the ends, and `between` over the recipient's keys between in the proportions of `mine`."""
    if not mine.shape[-1]:
        whole = torch.cat(ends, dim=-1)
        return whole / whole.sum(dim=-1, keepdim=True)
    total = mine.sum(dim=-1, keepdim=True)
    share = torch.where(total > 0, mine / total.clamp(min=torch.finfo(mine.dtype).tiny), 1 / mine.shape[-1])
    return torch.cat([ends[0], between * share, ends[1]], dim=-1)


def profile(pattern: Tensor, head: int, tail: int) -> Tensor:
    """A pattern [head, query, key] by place, which all dilemmas share → [head, query, 3 + tail].

    The places are the first token, the rest of the shared beginning, the tokens between, and each token of the end.
    """
    between = pattern[..., head : pattern.shape[-1] - tail].sum(dim=-1, keepdim=True)
    rest = pattern[..., 1:head].sum(dim=-1, keepdim=True)
    return torch.cat([pattern[..., :1], rest, between, pattern[..., pattern.shape[-1] - tail :]], dim=-1)


def spread(places: Tensor, recipient: Tensor, head: int, tail: int) -> Tensor:
    """A profile [head, query, 3 + tail] as a pattern over the recipient's keys: even over the rest of the beginning."""
    rest = (places[..., 1:2] / max(head - 1, 1)).expand(*places.shape[:-1], head - 1)
    ends = (torch.cat([places[..., :1], rest], dim=-1), places[..., 3:])
    return _joined(ends, places[..., 2:3], recipient[..., head : recipient.shape[-1] - tail])
