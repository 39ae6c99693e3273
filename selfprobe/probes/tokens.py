"""A pair as tokens: chat template, priming text in the assistant's turn, and the contrast token
(latent-preference probes, §4.1.1).
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from jinja2 import TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from selfprobe.data.pairs import CONTRAST, Pair, comparison_prompt, digest, priming
from selfprobe.text.thought_markers import answer_opening, markers_in

FIXED_DATE = "26 Jul 2024"
"""Date for Llama 3's templates, which print today's where none is given: states must not depend on
the day.
"""
FIXED_CLOCK = datetime(2024, 7, 26, 12)
"""Time for templates that ask the clock themselves (`strftime_now`)."""
THINKING_ARGUMENTS = ("enable_thinking", "thinking")
"""Arguments by which chat templates switch thinking: of Qwen 3 and GLM 4.5, of DeepSeek 3.1."""
THINKING_LEVELS = {"reasoning_effort"}
"""Arguments that say how much is thought, in words."""
NAMED_THOUGHT = re.compile(r"think|thought|reason|analysis", re.IGNORECASE)
TEMPLATE_INPUTS = {
    *("messages", "add_generation_prompt", "tools", "documents", "raise_exception"),
    *("strftime_now", "namespace", "range", "bos_token", "eos_token"),
}
"""What transformers gives each chat template, and functions of it."""


@dataclass(frozen=True)
class Chat:
    """Content of the chat template besides the comparison."""

    system: str = ""
    """The system turn; default: none (Gemma's template has none)."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the template, such as enable_thinking: false."""


PLAIN_CHAT = Chat()


class ContrastTokenError(ValueError):
    """Error: the two sides of a pair do not differ in exactly their last token."""


class HasLength(Protocol):
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

    is_changed: bool = False
    """Whether the chat template cuts or changes the pair's texts; such a pair is not read."""

    @property
    def length(self) -> int:
        """Tokens of one side: the prefix and its contrast token."""
        return len(self.prefix) + 1


def template_hash(tokenizer: Any, chat: Chat = PLAIN_CHAT) -> str:
    """Hash of the chat template and all else that goes into it, from its result for a pair: the
    priming text too.
    """
    hashed_texts = [str(tokenizer.chat_template)]
    hashed_texts.append(pair_prompt(tokenizer, Pair("", "one", "two", context="Which?"), chat))
    if chat != PLAIN_CHAT:
        hashed_texts.append(chat.system)
        hashed_texts.append(json.dumps(dict(chat.arguments), sort_keys=True))
    return digest(*hashed_texts)


def pair_prompt(tokenizer: Any, pair: Pair, chat: Chat = PLAIN_CHAT) -> str:
    """The chat up to and with the priming text, the assistant's turn left open; see `opened_chat`."""
    return f"{opened_chat_unchecked(tokenizer, comparison_prompt(pair), chat)}{priming(pair)}"


def opened_chat(
    tokenizer: Any, user_text: str, chat: Chat = PLAIN_CHAT, *, thinking: bool = False
) -> str:
    """The chat with `user_text` as the user's turn and the assistant's turn open, ready for the
    beginning of an answer; see `opened_conversation`.

    Raises:
        ValueError: As there; or the template does not hold the user's turn whole.
    """
    text = opened_chat_unchecked(tokenizer, user_text, chat, thinking=thinking)
    if user_text.strip() not in text:
        raise ValueError(
            "the model's chat template cuts or changes the user's turn "
            f"({len(user_text)} characters), so it would not be read as it is. Use a model whose "
            "template keeps it"
        )
    return text


def opened_chat_unchecked(
    tokenizer: Any, user_text: str, chat: Chat = PLAIN_CHAT, *, thinking: bool = False
) -> str:
    """The chat that `opened_chat` gives, whatever the template makes of the user's turn."""
    user_turn = {"role": "user", "content": user_text}
    return opened_conversation(tokenizer, [user_turn], chat, thinking=thinking)


def opened_conversation(
    tokenizer: Any,
    turns: Sequence[Mapping[str, str]],
    chat: Chat = PLAIN_CHAT,
    *,
    opens_reply: bool = True,
    thinking: bool = False,
) -> str:
    """A chat of several turns under the system turn of `chat`, on a fixed day.

    Args:
        tokenizer: The model's tokenizer.
        turns: Role and content of each turn, without the system turn.
        chat: The system turn, and arguments of the template.
        opens_reply: Whether the assistant's next turn is opened, ready for the beginning of an
            answer.
        thinking: Whether a thought that the template opens stays open.

    Raises:
        ValueError: The template refuses the turns, as Gemma's does a system turn, leaves the system
            turn out, or asks for the time in a way that cannot be fixed.
    """
    all_turns = list(turns)
    if chat.system:
        all_turns.insert(0, {"role": "system", "content": chat.system})
    try:
        text = _chat_text(tokenizer, all_turns, chat, opens_reply=opens_reply)
    except (TemplateError, TypeError) as error:
        raise ValueError(_template_failure(turns, chat, error)) from error

    if chat.system.strip() not in text:
        raise ValueError(
            "the model's chat template leaves the system turn out: try it without --system"
        )
    if thinking or not opens_reply:
        return text
    reply_opening = answer_opening(text)
    if reply_opening is None:
        _refuse_unknown_thought(tokenizer, text, turns)
        return text
    return text.rstrip() + reply_opening  # a priming text is part of the answer, not of a thought


def _chat_text(
    tokenizer: Any, turns: Sequence[Mapping[str, str]], chat: Chat, *, opens_reply: bool
) -> str:
    """What the template makes of turns of text, or of turns of one part where it wants parts, as
    templates of models of images do.
    """
    settings = {
        "tokenize": False,
        "add_generation_prompt": opens_reply,
        "chat_template": _without_clock(tokenizer.get_chat_template()),
        "date_string": FIXED_DATE,
        **chat.arguments,
    }
    text: str = tokenizer.apply_chat_template(list(turns), **settings)
    if _holds_turns(text, turns):
        return text

    turns_of_parts = []
    for turn in turns:
        part = {"type": "text", "text": turn["content"]}
        turns_of_parts.append({**turn, "content": [part]})
    try:
        text_of_parts: str = tokenizer.apply_chat_template(turns_of_parts, **settings)
    except (TemplateError, TypeError):
        return text
    return text_of_parts if _holds_turns(text_of_parts, turns) else text


def _holds_turns(text: str, turns: Sequence[Mapping[str, str]]) -> bool:
    """Whether a chat holds all turns of the user and the system whole."""
    return all(
        turn["content"].strip() in text for turn in turns if turn["role"] in ("user", "system")
    )


def _refuse_unknown_thought(tokenizer: Any, text: str, turns: Sequence[Mapping[str, str]]) -> None:
    """ValueError where what follows the turns, or the last closed thought, names a thought."""
    turn_texts = [turn["content"].strip() for turn in turns]
    spoken_texts = [turn_text for turn_text in turn_texts if turn_text]
    ending = text
    if spoken_texts:
        ending = text.rpartition(spoken_texts[-1])[2]
    closings = [marker.end for marker in markers_in(ending) if marker.is_closing]
    if closings:
        ending = ending[closings[-1] :]
    if not NAMED_THOUGHT.search(ending):
        return

    switches = thinking_switches(tokenizer)
    if switches:
        remedy = f"Its template takes {switches[0]}: try --template-arg {switches[0]}=false"
    else:
        remedy = "Use a model whose template opens none"
    raise ValueError(
        f"the model's chat template ends in {ending.strip()[-60:]!r}, which names a thought in a "
        f"way that is not known here, so an answer would be read as a thought. {remedy}"
    )


def template_arguments(tokenizer: Any) -> set[str]:
    """Names that the chat template takes from outside: its arguments, and what transformers gives
    it.
    """
    template = str(tokenizer.chat_template)
    # marks of transformers' own around what the assistant says
    template = re.sub(r"\{%-?\s*(end)?generation\s*-?%\}", "", template)
    environment = ImmutableSandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"])
    try:
        names = meta.find_undeclared_variables(environment.parse(template))
    except TemplateError as error:
        raise ValueError(f"the model's chat template cannot be read: {error}") from error
    return names - TEMPLATE_INPUTS


def thinking_switches(tokenizer: Any) -> list[str]:
    """Arguments of the chat template that name a thought, and can be false."""
    switches = template_arguments(tokenizer) - THINKING_LEVELS
    return sorted(name for name in switches if NAMED_THOUGHT.search(name))


def thinking_note(tokenizer: Any, chat: Chat = PLAIN_CHAT) -> str:
    """What to type where an answer is read at a place at which the model would begin to think; ""
    where it is not.
    """
    for name in THINKING_ARGUMENTS:
        if name not in template_arguments(tokenizer):
            continue
        chat_without_thought = replace(chat, arguments={**chat.arguments, name: False})
        text = opened_chat_unchecked(tokenizer, "Which?", chat)
        if opened_chat_unchecked(tokenizer, "Which?", chat_without_thought) != text:
            setting = "without it"
            if name in chat.arguments:
                setting = f"with {name}={json.dumps(chat.arguments[name], ensure_ascii=False)}"
            return (
                f"Thinking: the chat template takes {name}, and {setting} an answer is read where "
                f"the model would begin to think; --template-arg {name}=false reads it after an "
                "empty thought"
            )
    return ""


def _template_failure(
    turns: Sequence[Mapping[str, str]], chat: Chat, error: TemplateError | TypeError
) -> str:
    user_turns = "a user turn" if len(turns) == 1 else f"{len(turns)} turns of a conversation"
    failing_parts = f"a system and {user_turns}" if chat.system else user_turns
    if chat.arguments:
        argument_words = [f"{name}={value}" for name, value in chat.arguments.items()]
        failing_parts += f" and {', '.join(argument_words)}"

    if chat.system:
        remedy = "Try it without --system"
    elif len(turns) == 1:
        remedy = "Use a model whose template takes one user turn"
    else:
        remedy = "Use a model whose template takes several turns"
    return f"the model's chat template fails on {failing_parts}: {error}. {remedy}"


def _without_clock(template: str) -> str:
    """`template` with the fixed day wherever it asks the clock; transformers lets no other clock
    in.
    """

    def fixed_time(clock_call: re.Match[str]) -> str:
        return repr(FIXED_CLOCK.strftime(clock_call["format"]))

    clock_call_pattern = r"""strftime_now\(\s*(['"])(?P<format>.*?)\1\s*\)"""
    fixed_template = re.sub(clock_call_pattern, fixed_time, template)

    without_guards = re.sub(r"strftime_now is (not )?defined", "", fixed_template)
    if "strftime_now" in without_guards:
        raise ValueError(
            "the model's chat template asks for the time in a way that cannot be fixed to one day"
        )
    return fixed_template


def encode(tokenizer: Any, pairs: Iterable[Pair], chat: Chat = PLAIN_CHAT) -> list[Prompt]:
    """Tokens of `pairs` in their order; both continuations are tokenised whole and compared.

    Raises ContrastTokenError where a tokenizer merges the digit with the text before it, splits it
    in several tokens, adds an end token, or begins the two sides differently. ValueError where the
    template fails.
    """
    pair_list = list(pairs)
    pair_prompts = [pair_prompt(tokenizer, pair, chat) for pair in pair_list]
    prompts = contrast_prompts(tokenizer, pair_prompts, CONTRAST)

    special = special_tokens(tokenizer)
    marked_prompts = []
    for prompt, pair, chat_text in zip(prompts, pair_list, pair_prompts, strict=True):
        pair_texts = (pair.text_1, pair.text_2, pair.context, pair.question)
        special_token = first_special_token(pair_texts, special)
        is_changed = comparison_prompt(pair).strip() not in chat_text
        marked_prompts.append(replace(prompt, special=special_token, is_changed=is_changed))
    return marked_prompts


def contrast_prompts(tokenizer: Any, texts: Sequence[str], options: Sequence[str]) -> list[Prompt]:
    """Tokens of `texts`, each with every one of `options` as its last token; raises as `encode`."""
    if not texts:
        return []

    ids_by_option = []
    for option in options:
        option_texts = [f"{text}{option}" for text in texts]
        # The template writes the special tokens itself; adding them again would double BOS.
        encoding = tokenizer(option_texts, add_special_tokens=False)
        ids_by_option.append(encoding["input_ids"])

    prompts = []
    for option_ids in zip(*ids_by_option, strict=True):
        sides = [list(ids) for ids in option_ids]
        prompts.append(_contrast_prompt(tokenizer, sides, options))
    return prompts


def special_tokens(tokenizer: Any) -> list[str]:
    """Tokens that a text must not hold: special ones, and added ones that the chat template writes
    (<think>).
    """
    template = str(tokenizer.chat_template)
    special = set()
    for token in tokenizer.added_tokens_decoder.values():
        is_special = token.special or token.content in template
        if is_special and token.content.strip():
            special.add(token.content)
    return sorted(special)


def first_special_token(texts: Sequence[str], special: Sequence[str]) -> str:
    """The first of the tokens `special` that a text holds; "" where none does."""
    for token in special:
        if any(token in text for text in texts):
            return token
    return ""


def _contrast_prompt(tokenizer: Any, sides: Sequence[list[int]], options: Sequence[str]) -> Prompt:
    first_side = sides[0]
    for number in range(1, len(sides)):
        option_pair = (options[0], options[number])
        _check_sides(tokenizer, first_side, sides[number], option_pair)
    contrast_tokens = tuple(side[-1] for side in sides)
    return Prompt(tuple(first_side[:-1]), contrast_tokens)


def _check_sides(
    tokenizer: Any, first_side: list[int], second_side: list[int], options: tuple[str, str]
) -> None:
    same_prefix = first_side[:-1] == second_side[:-1]
    if not same_prefix or first_side[-1] == second_side[-1]:
        first_end = tokenizer.convert_ids_to_tokens(first_side[-4:])
        second_end = tokenizer.convert_ids_to_tokens(second_side[-4:])
        raise ContrastTokenError(
            "the two sides must differ in exactly their last token, but end in "
            f"{first_end} and {second_end} ({len(first_side)} and {len(second_side)} tokens): "
            "this tokenizer cannot be used with contrast pairs"
        )

    last_texts = [tokenizer.decode([side[-1]]).strip() for side in (first_side, second_side)]
    option_texts = [option.strip() for option in options]
    if last_texts != option_texts:
        raise ContrastTokenError(
            f"the last tokens must say '{option_texts[0]}' and '{option_texts[1]}' alone, but say "
            f"{last_texts[0]!r} and {last_texts[1]!r}: the tokenizer merges the digit with the "
            "text before it, or ends every text with a token of its own"
        )
