"""Texts with one beginning, read together: log-probabilities of their ends, and the states at their
last tokens.

The tokens of the texts form a tree. Its trunk, which all of them begin with, is read by a plain
forward. The branches then lie side by side in one row on the trunk's cache, under a mask by which a
token sees its own way back alone, each at the position that it has in its own text. What texts
share is read once, wherever they part.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from selfprobe.probes.forward import (
    BROKEN,
    FAILURES,
    blocked,
    length_switches,
    one_thread,
    output_of,
    recorded,
    shown_to,
)
from selfprobe.probes.model import LocalModel

logger = logging.getLogger(__name__)
Floats = npt.NDArray[np.float32]
BRANCH_TOKENS = {"cpu": 128, "cuda": 4096}
"""Number of branch tokens that are read together, which bounds the memory of their logits."""
SAME = 1e-4
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
    """Whether the states after its last token are wanted."""


@dataclass(frozen=True)
class BranchResults:
    """Results of reading texts."""

    log_probs: Floats
    """[text]: mean log-probability of the spoken tokens; NaN where none is wanted."""
    totals: Floats
    """[text]: sum of the spoken tokens' log-probabilities."""
    states: Floats
    """[text with a state, layer, d_model]."""


def branched(judge: LocalModel, texts: Sequence[Text], *, sharing: bool = True) -> BranchResults:
    """Read texts that begin alike; without `sharing` each text is read by a separate plain forward."""
    trunk = _trunk(texts) if sharing else 0
    with torch.inference_mode(), one_thread(judge.model):
        if not trunk:
            return _read_by(texts, (_plain(judge, text) for text in texts))
        return _read_by(texts, _on_trunk(judge, texts, trunk))


def _trunk(texts: Sequence[Text]) -> int:
    """Number of tokens that all texts begin with, up to the token before the first wanted one of
    any text.
    """
    alike = 0
    for tokens in zip(*(text.tokens for text in texts), strict=False):
        if len(set(tokens)) > 1:
            break
        alike += 1
    return min(alike, *(len(text.tokens) - max(text.spoken, 1) for text in texts))


Found = tuple[list[float], Tensor | None]
"""Log-probabilities of a text's spoken tokens, and its states [layer, d_model]."""


def _read_by(texts: Sequence[Text], found: Iterator[Found]) -> BranchResults:
    spoken, states = zip(*found, strict=True)
    wanted = [state.float().cpu().numpy() for state in states if state is not None]
    return BranchResults(
        np.array([np.mean(one) if one else np.nan for one in spoken], dtype=np.float32),
        np.array([np.sum(one) if one else np.nan for one in spoken], dtype=np.float32),
        np.stack(wanted) if wanted else np.empty((0, 0, 0), dtype=np.float32),
    )


def _plain(judge: LocalModel, text: Text) -> Found:
    """One text's results by a plain forward of its tokens alone."""
    ids = torch.tensor([text.tokens], device=judge.device)
    with recorded(judge.blocks, lambda out: out[0, -1].clone(), judge.stream) as kept:
        logits = output_of(judge, input_ids=ids, use_cache=False, keep=text.spoken + 1).logits[
            0, -text.spoken - 1 :
        ]
    said = torch.tensor(
        text.tokens[len(text.tokens) - text.spoken :], device=judge.device, dtype=torch.long
    )
    by_token = _log_probs(logits[: len(said)], said).tolist() if text.spoken else []
    return by_token, torch.stack(
        [state.to(kept[0].device) for state in kept]
    ) if text.state else None


def _log_probs(logits: Tensor, tokens: Tensor) -> Tensor:
    """Log-probabilities [row] of one token per row, over the whole vocabulary, from logits [row,
    vocabulary].
    """
    logits = logits.float()
    return logits.gather(1, tokens[:, None])[:, 0] - torch.logsumexp(logits, dim=1)


def tokens_of(texts: Sequence[Text]) -> int:
    """Number of tokens that the model reads when these texts are read together."""
    return len(_Tree(texts, 0).tokens)


class _Tree:
    """The tokens after the trunk: node → token, parent (−1: the trunk's last token) and depth."""

    def __init__(self, texts: Sequence[Text], trunk: int) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.depths: list[int] = []
        self.ways: list[list[int]] = []
        """Per text its nodes, first to last."""
        known: dict[tuple[int, int], int] = {}
        for text in texts:
            node, way = -1, []
            for depth, token in enumerate(text.tokens[trunk:]):
                if (node, token) not in known:
                    known[node, token] = len(self.tokens)
                    self.tokens.append(token)
                    self.parents.append(node)
                    self.depths.append(depth)
                node = known[node, token]
                way.append(node)
            self.ways.append(way)

    def groups(self, most: int) -> Iterator[tuple[list[int], list[int]]]:
        """Texts and their nodes that are read together: at most `most` nodes, and at least one
        text, per group.
        """
        texts, nodes = list[int](), dict[int, None]()
        for at, way in enumerate(self.ways):
            both = nodes | dict.fromkeys(way)
            if texts and len(both) > most:
                yield texts, list(nodes)
                texts, both = [], dict.fromkeys(way)
            texts.append(at)
            nodes = both
        yield texts, list(nodes)


def _most(judge: LocalModel) -> int:
    return BRANCH_TOKENS.get(judge.device.type, BRANCH_TOKENS["cuda"])


def branch_memory(judge: LocalModel, longest: int) -> tuple[int, int]:
    """Bytes of the weights, and roughly those of the longest trunk and its branches."""
    config = judge.model.config.get_text_config()
    held = sum(p.numel() * p.element_size() for p in judge.model.parameters())
    heads = getattr(config, "num_attention_heads", 1)
    share = (getattr(config, "num_key_value_heads", None) or heads) / heads
    token = 2 * len(judge.blocks) * judge.d_model * share + 3 * getattr(
        config, "intermediate_size", 0
    )
    return held, int(judge.dtype.itemsize * longest * token) + 12 * _most(judge) * config.vocab_size


def _on_trunk(judge: LocalModel, texts: Sequence[Text], trunk: int) -> Iterator[Found]:
    tree, device = _Tree(texts, trunk), judge.device
    ids = torch.tensor([texts[0].tokens[:trunk]], device=device)
    first = output_of(judge, input_ids=ids, use_cache=True, keep=1)
    for members, nodes in tree.groups(_most(judge)):
        yield from _group(
            judge,
            [texts[at] for at in members],
            [tree.ways[at] for at in members],
            nodes,
            tree,
            first,
        )


def _group(
    judge: LocalModel,
    texts: Sequence[Text],
    ways: Sequence[list[int]],
    nodes: list[int],
    tree: _Tree,
    first: Any,
) -> Iterator[Found]:
    """Results of some texts, by one forward of their branches on the trunk's cache, which is left
    unchanged.
    """
    device, trunk = judge.device, first.past_key_values.get_seq_length()
    steps = [
        node
        for text, way in zip(texts, ways, strict=True)
        for node in way[len(way) - text.spoken :]
    ]
    wanted = {tree.parents[node] for node in steps} - {-1}
    ordered = [node for node in nodes if node not in wanted] + [
        node for node in nodes if node in wanted
    ]
    place = {node: at for at, node in enumerate(ordered)}
    ends = [place[way[-1]] for text, way in zip(texts, ways, strict=True) if text.state]
    given = {
        "input_ids": torch.tensor([[tree.tokens[node] for node in ordered]], device=device),
        "position_ids": torch.tensor(
            [[trunk + tree.depths[node] for node in ordered]], device=device
        ),
        "attention_mask": shown_to(judge, _mask(ordered, place, tree, trunk).to(device)),
    }
    cache = first.past_key_values
    with recorded(judge.blocks, lambda out: out[0, ends].clone(), judge.stream) as kept:
        logits = output_of(
            judge, **given, past_key_values=cache, use_cache=True, keep=max(len(wanted), 1)
        ).logits[0]
    cache.crop(-len(ordered))
    row = {node: at - len(ordered) for node, at in place.items()} | {
        -1: 0
    }  # counts from the end; 0 is the trunk
    at = torch.tensor(
        [row[tree.parents[node]] for node in steps], device=logits.device, dtype=torch.long
    )
    said = torch.tensor(
        [tree.tokens[node] for node in steps], device=logits.device, dtype=torch.long
    )

    def log_probs(logits: Tensor, rows: Tensor) -> Tensor:
        wide = logits.float()
        return wide[rows, said] - wide.logsumexp(dim=1)[rows]

    after_trunk = log_probs(first.logits[0, -1:].to(logits.device), 0 * at)
    values = iter(torch.where(at == 0, after_trunk, log_probs(logits, at)).tolist())
    states = iter(torch.stack([state.to(kept[0].device) for state in kept], dim=1))
    for text in texts:
        yield [next(values) for _ in range(text.spoken)], next(states) if text.state else None


def _mask(ordered: Sequence[int], place: dict[int, int], tree: _Tree, trunk: int) -> Tensor:
    """Mask of what each token sees, [1, 1, node, trunk and node]: the trunk, its ancestors, and
    itself.
    """
    seen = np.zeros((len(ordered), trunk + len(ordered)), dtype=bool)
    seen[:, :trunk] = True
    for node in sorted(ordered):  # parents have lower numbers
        at, parent = place[node], tree.parents[node]
        if parent >= 0:
            seen[at] = seen[place[parent]]
        seen[at, trunk + at] = True
    return torch.from_numpy(seen)[None, None]


def shares(judge: LocalModel, texts: Sequence[Text]) -> bool:
    """Whether texts read together give the numbers of plain forwards; if not, a warning says why.

    The trial reads one text per kind: with spoken tokens the shortest and the longest, with states
    the longest.
    """
    config, longest = judge.model.config.get_text_config(), max(len(text.tokens) for text in texts)
    switches = tuple(n for n in length_switches(config) if n < longest)
    if why := blocked(judge, "tree_mask", switches, longest) or blocked(
        judge, "shared_cache", switches, longest
    ):
        logger.warning("%s reads each continuation by itself: %s", judge.name, why)
        return False
    by_length = sorted(texts, key=lambda text: len(text.tokens))
    spoken, states = ([text for text in by_length if wanted(text)] for wanted in (_speaks, _holds))
    sample = list(dict.fromkeys([*spoken[:1], *spoken[-1:], *states[-1:]]))
    try:
        together, alone = (
            branched(judge, texts if sharing else sample, sharing=sharing)
            for sharing in (True, False)
        )
    except FAILURES as error:
        logger.warning(
            "%s reads each continuation by itself: %s: %s", judge.name, type(error).__name__, error
        )
        return False
    at = [texts.index(text) for text in sample]
    held = [text for text in texts if text.state]
    pairs = [(together.totals[at], alone.totals)] if spoken else []
    if states:
        kept = [held.index(text) for text in sample if text.state]
        pairs.append((together.states[kept], alone.states))
    off = max(_off(one, other) for one, other in pairs)
    tolerance = SAME if judge.dtype == torch.float32 else BROKEN[judge.dtype]
    if off > tolerance:
        logger.warning(
            "%s reads each continuation by itself: together they are off by %.2g", judge.name, off
        )
    return off <= tolerance


def _speaks(text: Text) -> bool:
    return text.spoken > 0


def _holds(text: Text) -> bool:
    return text.state


def _off(found: Floats, plain: Floats) -> float:
    """Largest difference of log-probabilities, or of states [row, layer, d_model] relative to their
    length.
    """
    if found.ndim == 1:
        known = ~np.isnan(plain)
        return float(
            np.max(
                np.abs(found - plain)[known] / np.maximum(np.abs(plain[known]), 1.0), initial=0.0
            )
        )
    lengths = np.maximum(np.linalg.norm(plain, axis=-1), 1e-12)
    return float(np.max(np.linalg.norm(found - plain, axis=-1) / lengths))


def replied(judge: LocalModel, tokens: Sequence[int], most: int) -> tuple[int, ...]:
    """The model's most probable reply, token by token, up to its end of turn or `most` tokens."""
    ends, cache, said = _ends(judge), None, list[int]()
    ids = torch.tensor([list(tokens)], device=judge.device)
    with torch.inference_mode(), one_thread(judge.model):
        while len(said) < most:
            out = output_of(judge, input_ids=ids, past_key_values=cache, use_cache=True, keep=1)
            cache, token = out.past_key_values, int(out.logits[0, -1].argmax())
            if token in ends:
                break
            said.append(token)
            ids = torch.tensor([[token]], device=judge.device)
    return tuple(said)


def _ends(judge: LocalModel) -> set[int]:
    """Tokens that end a turn, as the model's generation settings and its tokenizer name them."""
    settings = getattr(getattr(judge.model, "generation_config", None), "eos_token_id", None)
    named = settings if isinstance(settings, list) else [settings]
    return {int(token) for token in (*named, judge.tokenizer.eos_token_id) if token is not None}
