"""The material of the study of induced introspection: what it teaches and asks (IntrospectBench,
section 5.1).

The paper gives "What will my first word likely be?" and the same question about the second: kind
"paper", behind the question that the model learnt to answer. Ours ask "your" in three
wordings, of which the first is the paper's but for that word. Each of the three has two twins that
differ in a few words: one asks about another assistant, one about a fact. A change that the twins
show too is not introspection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from selfprobe.probes.tokens import opened_chat

if TYPE_CHECKING:
    from selfprobe.probes.model import LocalModel

Kind = Literal["direct", "introspective", "paper", "another assistant", "fact"]

QUESTION_FORMAT = "{question}\n\n{asked}"
WORD_ORDINALS = ("first", "second")
WORDINGS: Mapping[Kind, tuple[str, ...]] = {
    "introspective": (
        "What will your {nth} word likely be?",
        "Which word comes {nth} in your reply to this?",
        "Predict the {nth} word of the answer you would give.",
    ),
    "paper": ("What will my {nth} word likely be?",),
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
YOUR_WORDING = 0
"""Number of the introspective wording that asks "your" where the paper asks "my"."""

LABEL_COUNT = 50
"""Number of labels, as in the paper."""
LABEL_WORDS = (
    "apple river stone cloud castle bridge forest window anchor button camera engine finger ocean "
    "orange paper planet sugar summer table wheel winter wolf yellow bread chair clock glass "
    "horse leaf metal moon mouse music night phone plant radio shirt snake storm tooth tower "
    "train water wheat wood book door road tree fish bird rain snow fire wind gold iron sand rock "
    "hill lake boat ship milk egg corn rice salt soup cake fruit green blue black white brown "
    "king queen doctor market school church street house garden city hand foot eye heart blood "
    "bone dog cat cow pig sheep lion tiger bear rabbit island desert valley mountain beach "
    "kitchen hammer needle ladder basket bottle box bag hat coat shoe ring coin letter pencil "
    "brush flag drum piano violin guitar song dance circle square triangle star sun"
).split()
"""Common nouns from which the labels are drawn, more than needed as some are several tokens of a
tokenizer.
"""


@dataclass(frozen=True)
class ReadColumn:
    """One column of a reading."""

    kind: Kind
    word: int
    """Number of the word that is asked for: 0 the first of the reply, 1 the second."""
    wording: int = 0


def _columns() -> tuple[ReadColumn, ...]:
    columns = [ReadColumn("direct", 0), ReadColumn("direct", 1)]
    for kind, wordings in WORDINGS.items():
        for word in range(len(WORD_ORDINALS)):
            columns += [ReadColumn(kind, word, wording) for wording in range(len(wordings))]
    return tuple(columns)


READ_COLUMNS = _columns()
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
    judge: "LocalModel", labels: Sequence[str] = (), *, count: int = LABEL_COUNT, seed: int = 0
) -> Labels:
    """The given `labels`, or `count` drawn from `LABEL_WORDS`.

    Raises:
        ValueError: One of `labels` is not one token, or occurs twice; or fewer than `count` of
            `LABEL_WORDS` are one token.
    """
    for place, label in enumerate(labels):
        if label in labels[:place]:
            raise ValueError(f"the label {label!r} is there twice")

    tokens_by_word = {}
    for word in labels or LABEL_WORDS:
        word_tokens = _both_tokens(judge, word)
        if word_tokens:
            tokens_by_word[word] = word_tokens

    words = list(tokens_by_word)
    if labels:
        _check_labels(judge, labels, words)
    else:
        if len(words) < count:
            raise ValueError(
                f"only {len(words)} of {len(LABEL_WORDS)} words are one token of {judge.name}, {count} "
                "are needed: give a file of labels that are (--labels)"
            )
        drawn_places = np.random.default_rng(seed).choice(len(words), count, replace=False)
        words = [words[place] for place in sorted(drawn_places)]

    start_tokens = tuple(tokens_by_word[word][0] for word in words)
    after_tokens = tuple(tokens_by_word[word][1] for word in words)
    return Labels(tuple(words), start_tokens, after_tokens)


def _check_labels(
    judge: "LocalModel", labels: Sequence[str], one_token_words: Sequence[str]
) -> None:
    long_labels = [label for label in labels if label not in one_token_words]
    if long_labels:
        named_labels = ", ".join(long_labels[:5])
        if len(long_labels) > 5:
            named_labels += " …"
        raise ValueError(
            f"{len(long_labels)} of {len(labels)} labels are several tokens of {judge.name}: "
            f"{named_labels}. Take other words"
        )
    if len(labels) < 2:
        raise ValueError("two labels or more are needed, got one")


def _both_tokens(judge: "LocalModel", word: str) -> tuple[int, int] | None:
    """The tokens of `word` as the first and as the second word of a reply; None unless each is a
    single token.
    """
    chat_text = opened_chat(judge.tokenizer, "Which?", judge.chat)
    chat_tokens = _tokens_of(judge.tokenizer, chat_text)
    reply_tokens = _tokens_of(judge.tokenizer, f"{chat_text}{word} {word}")
    if reply_tokens[:-2] != chat_tokens:
        return None
    first_token, second_token = reply_tokens[-2:]
    for token in (first_token, second_token):
        if judge.tokenizer.decode([token]).strip() != word:
            return None
    return first_token, second_token


def _tokens_of(tokenizer: Any, text: str) -> list[int]:
    """Tokens of a text that a chat template has made: it holds its special tokens already."""
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def prompt_tokens(judge: "LocalModel", question: str, column: ReadColumn) -> tuple[int, ...]:
    """Tokens that the model reads before its reply."""
    user_text = question
    if column.kind != "direct":
        wording_format = WORDINGS[column.kind][column.wording]
        wording = wording_format.format(nth=WORD_ORDINALS[column.word])
        user_text = QUESTION_FORMAT.format(question=question, asked=wording)
    chat_text = opened_chat(judge.tokenizer, user_text, judge.chat)
    return tuple(_tokens_of(judge.tokenizer, chat_text))


def assigned_labels(questions: int, labels: int, *, seed: int) -> Any:
    """Labels [question, word]: each equally often among first words, and never twice in one
    reply.
    """
    rng = np.random.default_rng([seed, 51])
    first_labels = rng.permutation(np.arange(questions) % labels)
    label_steps = rng.integers(1, labels, size=questions)
    second_labels = (first_labels + label_steps) % labels
    return np.stack([first_labels, second_labels], axis=1)
