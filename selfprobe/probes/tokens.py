"""A pair as tokens: chat template, priming text in the assistant's turn, and the contrast token (paper 004, §4.1.1)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from selfprobe.sources.pairs import Pair, comparison_prompt, digest, priming
from selfprobe.sources.prompts import CONTRAST

FIXED_DATE = "26 Jul 2024"
"""Llama 3's templates print today's date where none is given: states must not depend on the day."""


class ContrastTokenError(ValueError):
    """The two sides of a pair do not differ in exactly their last token."""


@dataclass(frozen=True)
class Prompt:
    """One order of one pair, ready for the model."""

    prefix: tuple[int, ...]
    """Tokens of both sides up to the contrast token."""
    contrast: tuple[int, int]
    """The tokens that say 1 and 2."""

    @property
    def length(self) -> int:
        """Of one side: the prefix and its contrast token."""
        return len(self.prefix) + 1


def template_hash(tokenizer: Any) -> str:
    """Identifies the chat template and its fixed date."""
    return digest(str(tokenizer.chat_template), FIXED_DATE)


def rendered(tokenizer: Any, pair: Pair) -> str:
    """The chat up to and with the priming text, the assistant's turn left open. No system turn (Gemma has none)."""
    chat = [{"role": "user", "content": comparison_prompt(pair)}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True, date_string=FIXED_DATE)
    return f"{text}{priming(pair)}"


def encode(tokenizer: Any, pairs: Iterable[Pair]) -> list[Prompt]:
    """Tokens of `pairs` in their order; both continuations are tokenised whole and compared.

    Raises ContrastTokenError where a tokenizer merges the digit with the text before it, splits it in several
    tokens, adds an end token, or begins the two sides differently.
    """
    # The template writes the special tokens itself; adding them again would double BOS.
    texts = [rendered(tokenizer, pair) for pair in pairs]
    if not texts:
        return []
    sides = [tokenizer([f"{text}{c}" for text in texts], add_special_tokens=False)["input_ids"] for c in CONTRAST]
    return [_prompt(tokenizer, list(one), list(two)) for one, two in zip(*sides, strict=True)]


def _prompt(tokenizer: Any, one: list[int], two: list[int]) -> Prompt:
    def shown(ids: list[int]) -> str:
        return str(tokenizer.convert_ids_to_tokens(ids[-4:]))

    if len(one) != len(two) or one[:-1] != two[:-1] or one[-1] == two[-1]:
        raise ContrastTokenError(
            f"the two sides must differ in exactly their last token, but end in {shown(one)} and {shown(two)} "
            f"({len(one)} and {len(two)} tokens): this tokenizer cannot be used with contrast pairs"
        )
    said = [tokenizer.decode([ids[-1]]).strip() for ids in (one, two)]
    if said != [c.strip() for c in CONTRAST]:
        raise ContrastTokenError(
            f"the last tokens must say '1' and '2' alone, but say {said[0]!r} and {said[1]!r}: the tokenizer "
            "merges the digit with the text before it, or ends every text with a token of its own"
        )
    return Prompt(tuple(one[:-1]), (one[-1], two[-1]))
