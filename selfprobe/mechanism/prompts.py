"""Prompts of lens, attention and patching: a dilemma under four instructions, each up to the word A
or B.

IntrospectBench, §5.2, has "the direct run" and "the introspective run". Paper: silent on what is
asked and on what precedes the last token. Here: the prompts of `ethical_dilemma` (E.2 and G.2), and
the answer is opened with the same words in all runs, so that the next word is A or B. Paper: no
control. Here two: an irrelevant text of exactly as many tokens as the introspective instruction,
and the same prediction about another assistant.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from selfprobe.data import Table
from selfprobe.introspect_tasks.ethical_dilemma import GUT, PREDICT, record_to_sample
from selfprobe.probes.tokens import (
    PLAIN_CHAT,
    Chat,
    Prompt,
    contrast_prompts,
    first_special_token,
    opened_chat,
    special_tokens,
)

IRRELEVANT = (
    "The scene above was printed on a sheet of grey paper, in a narrow column, with a wide "
    "margin on the left and a small drawing of a lighthouse in the lower corner. Keep in mind "
    "that the sheet is folded twice, that the ink is dark blue, and that the drawing shows a "
    "door, three windows and a flag.\n\n"
    "The sheet lies on the second shelf of a cupboard, between a box of pencils and a roll of "
    "string, and it will be moved to another shelf after the weekend, when the cupboard is "
    "painted. The colour of the paint has not been chosen yet. The key hangs on a hook beside "
    "the door of the room, under a calendar with pictures of bridges. The cupboard has six "
    "shelves, four of which are empty, and a drawer for postage stamps, envelopes, maps of the "
    "town and a spare lamp."
)
"""Irrelevant text, cut to the tokens of the introspective instruction."""

CONTROL_PROMPT = GUT["E2"].replace("{dilemma}", f"{{dilemma}}\n\n{IRRELEVANT}")

ARMS = {
    "direct": GUT["E2"],
    "introspective": PREDICT["self"],
    "control": CONTROL_PROMPT,
    "other": PREDICT["other"],
}
ARM_NAMES = {
    "direct": "direct question",
    "introspective": "introspective prompt",
    "control": "irrelevant text of equal length",
    "other": "about another assistant",
}
"""Names of the arms on pages."""

PATTERN_MEASURES = ("entropy", "rest", "first", "own", "shared")
"""Measures of a pattern: its entropy in nats; that without the first token; the weight of the first
token, of the last token itself, and of what all arms share without the first token (the dilemma).
"""

OPENING = "The action with the higher probability is Option"
OPTION_WORDS = (" A", " B")


@dataclass(frozen=True)
class DilemmaItem:
    """One dilemma, ready for the model."""

    id: str
    prompts: dict[str, Prompt]
    """Prompt of each arm, by `ARMS`."""

    @property
    def shared(self) -> int:
        """Number of tokens that all arms begin with, at most all but the last: they are read
        once.
        """
        prefixes = [prompt.prefix for prompt in self.prompts.values()]
        shortest = min(len(prefix) for prefix in prefixes)
        return min(_shared_length(prefixes), shortest - 1)

    @property
    def tokens(self) -> int:
        """Number of tokens to read: the shared ones once."""
        shared_length = self.shared
        token_count = shared_length
        for prompt in self.prompts.values():
            token_count += len(prompt.prefix) - shared_length
        return token_count

    @property
    def longest(self) -> int:
        """Number of tokens of the longest arm."""
        return max(len(prompt.prefix) for prompt in self.prompts.values())

    def ends(self, first_arm: str, second_arm: str) -> tuple[int, int]:
        """Numbers of tokens that two arms begin with, and end with, alike; the two parts do not
        overlap.
        """
        first_tokens = self.prompts[first_arm].prefix
        second_tokens = self.prompts[second_arm].prefix
        head_length = _shared_length([first_tokens, second_tokens])
        shared_tail = _shared_length([first_tokens[::-1], second_tokens[::-1]])
        shorter_length = min(len(first_tokens), len(second_tokens))
        return head_length, min(shared_tail, shorter_length - head_length)


def dilemma_items(
    tokenizer: Any, table: Table, *, opening: str = OPENING, chat: Chat = PLAIN_CHAT, context: int
) -> tuple[list[DilemmaItem], dict[str, str]]:
    """The dilemmas of a data set as tokens, and id → reason of those that cannot be read.

    Raises:
        InputError: A dilemma does not name its options.
        ContrastTokenError: The tokenizer has no token of its own for " A" and " B" after `opening`.
    """
    items: list[DilemmaItem] = []
    reasons: dict[str, str] = {}
    special = special_tokens(tokenizer)
    samples = [record_to_sample(row) for row in table.rows]
    for row, sample in zip(table.rows, samples, strict=True):
        item_id = row["id"]
        dilemma = sample.input
        assert isinstance(dilemma, str)
        special_token = first_special_token((dilemma,), special)
        if special_token:
            reasons[item_id] = (
                f"special token in the dilemma: {special_token}, which this model would not read "
                "as text"
            )
            continue

        arm_texts = []
        for arm_prompt in ARMS.values():
            chat_text = opened_chat(tokenizer, arm_prompt.format(dilemma=dilemma), chat)
            arm_texts.append(chat_text + opening)
        prompts = dict(zip(ARMS, contrast_prompts(tokenizer, arm_texts, OPTION_WORDS), strict=True))
        introspective_length = prompts["introspective"].length
        prompts["control"] = cut_control(
            prompts["control"], prompts["direct"], introspective_length
        )

        item = DilemmaItem(item_id, prompts)
        if item.longest > context:
            reasons[item_id] = f"too long: {item.longest} tokens, the context is {context}"
        else:
            items.append(item)
    return items, reasons


def cut_control(long: Prompt, short: Prompt, length: int) -> Prompt:
    """`long` shortened to `length`, by tokens from the end of the part that `short` lacks."""
    shared_head = _shared_length([long.prefix, short.prefix])
    shared_tail = _shared_length([long.prefix[::-1], short.prefix[::-1]])
    surplus = long.length - length
    cut_end = len(long.prefix) - shared_tail
    cut_start = cut_end - surplus
    if surplus < 0 or cut_start < shared_head:
        raise ValueError(
            f"expected a control of at least {length} tokens, which can be cut; it has "
            f"{long.length}"
        )
    return replace(long, prefix=long.prefix[:cut_start] + long.prefix[cut_end:])


def _shared_length(rows: Sequence[Sequence[int]]) -> int:
    """Number of tokens that all rows begin with."""
    shared_length = 0
    for position_tokens in zip(*rows, strict=False):
        if len(set(position_tokens)) > 1:
            break
        shared_length += 1
    return shared_length
