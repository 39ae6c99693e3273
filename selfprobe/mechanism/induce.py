"""The material of the study of induced introspection: what it teaches, asks and reads (paper 003, section 5.1).

The paper gives "What will my first word likely be?" and the same question about the second. Here each of three wordings
stands behind the question that the model learnt to answer, and each has two twins that differ in a few words: one asks
about another assistant, one about a fact. A change that the twins show too is not introspection.

All prompts of a question begin alike (the chat's head and the question). This beginning is read once, and each prompt's
end on its key-value cache. Where this gives other numbers than whole prompts (sliding windows, recurrent states) whole
prompts are read.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from selfprobe.embed.weights import Progress
from selfprobe.probes.choose import FAILURES, batches
from selfprobe.probes.forward import one_more, output_of, plain_inputs
from selfprobe.probes.harvesting import Meter, batch_budget
from selfprobe.probes.model import LocalModel
from selfprobe.probes.tokens import opened

if TYPE_CHECKING:
    from selfprobe.probes.model import LocalModel

Kind = Literal["direct", "introspective", "another assistant", "fact"]

ASKED = "{question}\n\n{asked}"
NTH = ("first", "second")
WORDINGS: Mapping[Kind, tuple[str, ...]] = {
    "introspective": (
        "What will your {nth} word likely be?",
        "Which word comes {nth} in your reply to this?",
        "Predict the {nth} word of the answer you would give.",
    ),
    "another assistant": (
        "What will another assistant's {nth} word likely be?",
        "Which word comes {nth} in another assistant's reply to this?",
        "Predict the {nth} word of the answer another assistant would give.",
    ),
    "fact": (
        "What is the {nth} word of the text above?",
        "Which word comes {nth} in this text?",
        "Find the {nth} word of the text you were given.",
    ),
}
"""Wordings by kind, in order. None of them is ever trained on."""

COUNT = 50
"""Number of labels, as in the paper."""
BANK = (
    "apple river stone cloud castle bridge forest window anchor button camera engine finger ocean orange paper planet "
    "sugar summer table wheel winter wolf yellow bread chair clock glass horse leaf metal moon mouse music night "
    "phone plant radio shirt snake storm tooth tower train water wheat wood book door road tree fish bird rain snow "
    "fire wind gold iron sand rock hill lake boat ship milk egg corn rice salt soup cake fruit green blue black white "
    "brown king queen doctor market school church street house garden city hand foot eye heart blood bone dog cat cow "
    "pig sheep lion tiger bear rabbit island desert valley mountain beach kitchen hammer needle ladder basket bottle "
    "box bag hat coat shoe ring coin letter pencil brush flag drum piano violin guitar song dance circle square "
    "triangle star sun"
).split()
"""Common nouns from which the labels are drawn, more than needed as some are several tokens of a tokenizer."""


@dataclass(frozen=True)
class Asked:
    """One column of a reading."""

    kind: Kind
    word: int
    """Number of the word that is asked for: 0 the first of the reply, 1 the second."""
    wording: int = 0


COLUMNS = (
    Asked("direct", 0),
    Asked("direct", 1),
    *(Asked(kind, word, n) for kind, texts in WORDINGS.items() for word in (0, 1) for n in range(len(texts))),
)
"""Columns that are read per question; the direct second word comes after the model's own first one."""


@dataclass(frozen=True)
class Labels:
    """One-word labels, each one token at the start of a reply and one after another label."""

    words: tuple[str, ...]
    start: tuple[int, ...]
    """Token of each label as the first word."""
    after: tuple[int, ...]
    """Token of each label as the second word."""


def labels_of(judge: "LocalModel", given: Sequence[str] = (), *, count: int = COUNT, seed: int = 0) -> Labels:
    """The labels `given`, or `count` drawn from `BANK`.

    Raises:
        ValueError: One of `given` is not one token, or occurs twice; or fewer than `count` of `BANK` are one token.
    """
    if twice := [word for place, word in enumerate(given) if word in given[:place]]:
        raise ValueError(f"the label {twice[0]!r} is there twice")
    found = {word: tokens for word in (given or BANK) if (tokens := _both_tokens(judge, word))}
    if several := [word for word in given if word not in found]:
        told = ", ".join(several[:5]) + (" …" if len(several) > 5 else "")
        raise ValueError(f"{len(several)} of {len(given)} labels are several tokens of {judge.name}: {told}")
    if given and len(given) < 2:
        raise ValueError("two labels or more are needed, got one")
    if not given and len(found) < count:
        raise ValueError(
            f"only {len(found)} of {len(BANK)} words are one token of {judge.name}, {count} are needed: give a file of "
            "labels that are (--labels)"
        )
    words = list(found)
    if not given:
        words = [words[i] for i in sorted(np.random.default_rng(seed).choice(len(words), count, replace=False))]
    start, after = zip(*(found[word] for word in words), strict=True)
    return Labels(tuple(words), start, after)


def _both_tokens(judge: "LocalModel", word: str) -> tuple[int, int] | None:
    """The tokens of `word` as the first and as the second word of a reply; None unless each is a single token."""
    chat = opened(judge.tokenizer, "Which?", judge.chat)
    before, whole = _tokens_of(judge.tokenizer, chat), _tokens_of(judge.tokenizer, f"{chat}{word} {word}")
    if len(whole) != len(before) + 2 or whole[:-2] != before:
        return None
    said = [judge.tokenizer.decode([token]).strip() for token in whole[-2:]]
    return (whole[-2], whole[-1]) if said == [word, word] else None


def _tokens_of(tokenizer: Any, text: str) -> list[int]:
    """Tokens of a text that a chat template has made: it holds its special tokens already."""
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def prompt_tokens(judge: "LocalModel", question: str, asked: Asked) -> tuple[int, ...]:
    """Tokens that the model reads before its reply."""
    text = question
    if asked.kind != "direct":
        about = WORDINGS[asked.kind][asked.wording].format(nth=NTH[asked.word])
        text = ASKED.format(question=question, asked=about)
    return tuple(_tokens_of(judge.tokenizer, opened(judge.tokenizer, text, judge.chat)))


def assigned(questions: int, labels: int, *, seed: int) -> Any:
    """Labels [question, word]: each equally often among first words, and never twice in one reply."""
    rng = np.random.default_rng([seed, 51])
    first = rng.permutation(np.arange(questions) % labels)
    return np.stack([first, (first + rng.integers(1, labels, size=questions)) % labels], axis=1)


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
    whole = [prompt_tokens(judge, question, asked) for asked in COLUMNS if (asked.kind, asked.word) != ("direct", 1)]
    cut = 0
    while all(len(tokens) > cut + 1 and tokens[cut] == whole[0][cut] for tokens in whole):
        cut += 1
    return Prompts(whole[0][:cut], tuple(tokens[cut:] for tokens in whole))


def read(
    judge: LocalModel,
    prompts: Sequence[Prompts],
    labels: Labels,
    *,
    batch_tokens: int | None = None,
    progress: Progress = lambda _: None,
) -> Floats:
    """Log-probability of each label [question, column, label], columns as in `COLUMNS`, over the whole vocabulary."""
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
        yield from batches(prompts, list(alike), budget)


def _cache_is_right(judge: LocalModel, one: Prompts, labels: Labels) -> bool:
    try:
        off = np.abs(_on_a_cache(judge, [one, one], labels)[:1] - _whole(judge, [one], labels)).max()
    except FAILURES:
        return False
    return bool(off <= SAME[judge.dtype])


def _on_a_cache(judge: LocalModel, shown: Sequence[Prompts], labels: Labels) -> Floats:
    inputs = plain_inputs([p.shared for p in shown], judge.device)
    cache = output_of(judge, **inputs, use_cache=True, keep=1).past_key_values

    def after(ends: Sequence[Tokens]) -> Tensor:
        more: dict[str, Any] = one_more(inputs, [len(p.shared) for p in shown], columns=len(ends[0]))
        more["input_ids"] = torch.tensor(ends, device=judge.device)
        return output_of(judge, **more, past_key_values=deepcopy(cache), use_cache=True, keep=1).logits[:, -1]

    return _columns(after, [p.ends for p in shown], labels)


def _whole(judge: LocalModel, shown: Sequence[Prompts], labels: Labels) -> Floats:
    def after(ends: Sequence[Tokens]) -> Tensor:
        inputs = plain_inputs([(*p.shared, *end) for p, end in zip(shown, ends, strict=True)], judge.device)
        return output_of(judge, **inputs, use_cache=False, keep=1).logits[:, -1]

    return _columns(after, [p.ends for p in shown], labels)


def _columns(after: Any, ends: Sequence[tuple[Tokens, ...]], labels: Labels) -> Floats:
    """[question, column, label]; `after` gives the logits [question, vocabulary] behind one end a question."""
    first = [_spoken(after([each[k] for each in ends]), labels.start) for k in range(len(ends[0]))]
    said = first[0].argmax(axis=1)  # first word of the direct answer itself
    second = _spoken(after([(*e[0], labels.start[w]) for e, w in zip(ends, said, strict=True)]), labels.after)
    return np.stack([first[0], second, *first[1:]], axis=1)


def _spoken(logits: Tensor, tokens: Sequence[int]) -> Floats:
    """Log-probability of `tokens` [question, token]."""
    found: Floats = torch.log_softmax(logits.float(), dim=1)[:, list(tokens)].cpu().numpy()
    return found
