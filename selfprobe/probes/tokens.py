"""A pair as tokens: chat template, priming text in the assistant's turn, and the contrast token
(paper 004, §4.1.1).
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from jinja2 import TemplateError

from selfprobe.data.pairs import CONTRAST, Pair, comparison_prompt, digest, priming
from selfprobe.text.thought_markers import answer_opening

FIXED_DATE = "26 Jul 2024"
"""Date for Llama 3's templates, which print today's where none is given: states must not depend on
the day.
"""
FIXED_CLOCK = datetime(2024, 7, 26, 12)
"""Time for templates that ask the clock themselves (`strftime_now`)."""


@dataclass(frozen=True)
class Chat:
    """Content of the chat template besides the comparison."""

    system: str = ""
    """The system turn; default: none (Gemma's template has none)."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the template, such as enable_thinking: false."""


PLAIN = Chat()


class ContrastTokenError(ValueError):
    """Error: the two sides of a pair do not differ in exactly their last token."""


class Measured(Protocol):
    """Anything with a length in tokens, so that batches can be cut."""

    @property
    def length(self) -> int: ...


@dataclass(frozen=True)
class Prompt:
    """One order of one pair, ready for the model."""

    prefix: tuple[int, ...]
    """Tokens of both sides up to the contrast token."""
    contrast: tuple[int, ...]
    """Tokens that say 1 and 2; for a text that is scored alone, those of all its levels."""
    special: str = ""
    """Special token that the pair's texts hold, such as the end of a turn; such a pair is not read.
    """

    @property
    def length(self) -> int:
        """Tokens of one side: the prefix and its contrast token."""
        return len(self.prefix) + 1


def template_hash(tokenizer: Any, chat: Chat = PLAIN) -> str:
    """Hash of the chat template and all else that goes into it, from its result for a pair: the
    priming text too.
    """
    more = [] if chat == PLAIN else [chat.system, json.dumps(dict(chat.arguments), sort_keys=True)]
    shown = rendered(tokenizer, Pair("", "one", "two", context="Which?"), chat)
    return digest(str(tokenizer.chat_template), shown, *more)


def rendered(tokenizer: Any, pair: Pair, chat: Chat = PLAIN) -> str:
    """The chat up to and with the priming text, the assistant's turn left open; see `opened`."""
    return f"{opened(tokenizer, comparison_prompt(pair), chat)}{priming(pair)}"


def opened(tokenizer: Any, asked: str, chat: Chat = PLAIN, *, thinking: bool = False) -> str:
    """The chat with `asked` as the user's turn and the assistant's turn open, ready for the
    beginning of an answer.

    With `thinking` a thought that the template opens stays open.
    Raises ValueError where the template itself refuses the turns, as Gemma's does a system turn.
    """
    turns = [{"role": "system", "content": chat.system}] if chat.system else []
    turns.append({"role": "user", "content": asked})
    template = _without_clock(tokenizer.get_chat_template())
    try:
        text = tokenizer.apply_chat_template(
            turns,
            tokenize=False,
            add_generation_prompt=True,
            chat_template=template,
            **{"date_string": FIXED_DATE, **chat.arguments},
        )
    except (TemplateError, TypeError) as error:
        turn = "a system and a user turn" if chat.system else "a user turn"
        given = (
            f" and {', '.join(f'{name}={value}' for name, value in chat.arguments.items())}"
            * bool(chat.arguments)
        )
        raise ValueError(
            f"the model's chat template fails on {turn}{given}: {error}. "
            + (
                "Try it without --system"
                if chat.system
                else "Use a model whose template takes one user turn"
            )
        ) from error
    if chat.system.strip() not in text:
        raise ValueError(
            "the model's chat template leaves the system turn out: try it without --system"
        )
    answer = None if thinking else answer_opening(text)
    if answer is not None:  # the priming text is part of the answer, not of a thought
        text = text.rstrip() + answer
    return str(text)


def _without_clock(template: str) -> str:
    """`template` with the fixed day wherever it asks the clock; transformers lets no other clock
    in.
    """
    fixed = re.sub(
        r"""strftime_now\(\s*(['"])(.*?)\1\s*\)""",
        lambda call: repr(FIXED_CLOCK.strftime(call[2])),
        template,
    )
    if "strftime_now" in re.sub(r"strftime_now is (not )?defined", "", fixed):
        raise ValueError(
            "the model's chat template asks for the time in a way that cannot be fixed to one day"
        )
    return fixed


def encode(tokenizer: Any, pairs: Iterable[Pair], chat: Chat = PLAIN) -> list[Prompt]:
    """Tokens of `pairs` in their order; both continuations are tokenised whole and compared.

    Raises ContrastTokenError where a tokenizer merges the digit with the text before it, splits it
    in several tokens, adds an end token, or begins the two sides differently. ValueError where the
    template fails.
    """
    known = list(pairs)
    prompts = continued(tokenizer, [rendered(tokenizer, pair, chat) for pair in known], CONTRAST)
    special = special_tokens(tokenizer)
    held = (
        held_special((pair.text_1, pair.text_2, pair.context, pair.question), special)
        for pair in known
    )
    return [replace(p, special=token) for p, token in zip(prompts, held, strict=True)]


def continued(tokenizer: Any, texts: Sequence[str], options: Sequence[str]) -> list[Prompt]:
    """Tokens of `texts`, each with every one of `options` as its last token; raises as `encode`."""
    if not texts:
        return []
    # The template writes the special tokens itself; adding them again would double BOS.
    sides = [
        tokenizer([f"{text}{option}" for text in texts], add_special_tokens=False)["input_ids"]
        for option in options
    ]
    return [
        _prompt(tokenizer, [list(ids) for ids in each], options)
        for each in zip(*sides, strict=True)
    ]


def special_tokens(tokenizer: Any) -> list[str]:
    """Tokens that a text must not hold: special ones, and added ones that the chat template writes
    (<think>).
    """
    template = str(tokenizer.chat_template)
    added = tokenizer.added_tokens_decoder.values()
    return sorted(
        {t.content for t in added if t.content.strip() and (t.special or t.content in template)}
    )


def held_special(texts: Sequence[str], special: Sequence[str]) -> str:
    """The first of the tokens `special` that a text holds; "" where none does."""
    return next((token for token in special if any(token in text for text in texts)), "")


def _prompt(tokenizer: Any, sides: Sequence[list[int]], options: Sequence[str]) -> Prompt:
    for other in sides[1:]:
        _check_sides(tokenizer, sides[0], other, (options[0], options[sides.index(other)]))
    last = tuple(side[-1] for side in sides)
    return Prompt(tuple(sides[0][:-1]), last)


def _check_sides(tokenizer: Any, one: list[int], two: list[int], options: tuple[str, str]) -> None:
    def shown(ids: list[int]) -> str:
        return str(tokenizer.convert_ids_to_tokens(ids[-4:]))

    if len(one) != len(two) or one[:-1] != two[:-1] or one[-1] == two[-1]:
        raise ContrastTokenError(
            f"the two sides must differ in exactly their last token, but end in {shown(one)} and {shown(two)} "
            f"({len(one)} and {len(two)} tokens): this tokenizer cannot be used with contrast pairs"
        )
    said = [tokenizer.decode([ids[-1]]).strip() for ids in (one, two)]
    if said != [option.strip() for option in options]:
        raise ContrastTokenError(
            f"the last tokens must say '{options[0].strip()}' and '{options[1].strip()}' alone, but say {said[0]!r} "
            f"and {said[1]!r}: the tokenizer merges the digit with the text before it, or ends every text with a token "
            "of its own"
        )
