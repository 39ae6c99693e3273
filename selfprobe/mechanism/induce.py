"""The material of the study of induced introspection: what it teaches and asks (paper 003, section
5.1).

The paper gives "What will my first word likely be?" and the same question about the second. Here
each of three wordings stands behind the question that the model learnt to answer, and each has two
twins that differ in a few words: one asks about another assistant, one about a fact. A change that
the twins show too is not introspection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

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
"""Common nouns from which the labels are drawn, more than needed as some are several tokens of a
tokenizer.
"""


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
    *(
        Asked(kind, word, n)
        for kind, texts in WORDINGS.items()
        for word in (0, 1)
        for n in range(len(texts))
    ),
)
"""Columns that are read per question; the direct second word comes after the model's own first one.
"""


@dataclass(frozen=True)
class Labels:
    """One-word labels, each one token at the start of a reply and one after another label."""

    words: tuple[str, ...]
    start: tuple[int, ...]
    """Token of each label as the first word."""
    after: tuple[int, ...]
    """Token of each label as the second word."""


def labels_of(
    judge: "LocalModel", given: Sequence[str] = (), *, count: int = COUNT, seed: int = 0
) -> Labels:
    """The labels `given`, or `count` drawn from `BANK`.

    Raises:
        ValueError: One of `given` is not one token, or occurs twice; or fewer than `count` of
            `BANK` are one token.
    """
    if twice := [word for place, word in enumerate(given) if word in given[:place]]:
        raise ValueError(f"the label {twice[0]!r} is there twice")
    found = {word: tokens for word in (given or BANK) if (tokens := _both_tokens(judge, word))}
    if several := [word for word in given if word not in found]:
        told = ", ".join(several[:5]) + (" …" if len(several) > 5 else "")
        raise ValueError(
            f"{len(several)} of {len(given)} labels are several tokens of {judge.name}: {told}. Take other words"
        )
    if given and len(given) < 2:
        raise ValueError("two labels or more are needed, got one")
    if not given and len(found) < count:
        raise ValueError(
            f"only {len(found)} of {len(BANK)} words are one token of {judge.name}, {count} are needed: give a file of "
            "labels that are (--labels)"
        )
    words = list(found)
    if not given:
        words = [
            words[i]
            for i in sorted(np.random.default_rng(seed).choice(len(words), count, replace=False))
        ]
    start, after = zip(*(found[word] for word in words), strict=True)
    return Labels(tuple(words), start, after)


def _both_tokens(judge: "LocalModel", word: str) -> tuple[int, int] | None:
    """The tokens of `word` as the first and as the second word of a reply; None unless each is a
    single token.
    """
    chat = opened(judge.tokenizer, "Which?", judge.chat)
    before, whole = (
        _tokens_of(judge.tokenizer, chat),
        _tokens_of(judge.tokenizer, f"{chat}{word} {word}"),
    )
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
