"""Prompts of lens, attention and patching: a dilemma under four instructions, each up to the word A
or B.

Paper 003, §5.2, has "the direct run" and "the introspective run". Paper: silent on what is asked
and on what precedes the last token. Here: the prompts of `ethical_dilemma` (E.2 and G.2), and the
answer is opened with the same words in all runs, so that the next word is A or B. Paper: no
control. Here two: an irrelevant text of exactly as many tokens as the introspective instruction,
and the same prediction about another assistant.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from selfprobe.data import Table
from selfprobe.introspect_tasks.ethical_dilemma import GUT, PREDICT, record_to_sample
from selfprobe.probes.tokens import (
    PLAIN,
    Chat,
    Prompt,
    continued,
    held_special,
    opened,
    special_tokens,
)

IRRELEVANT = """\
The scene above was printed on a sheet of grey paper, in a narrow column, with a wide margin on the left and a small \
drawing of a lighthouse in the lower corner. Keep in mind that the sheet is folded twice, that the ink is dark blue, \
and that the drawing shows a door, three windows and a flag.

The sheet lies on the second shelf of a cupboard, between a box of pencils and a roll of string, and it will be moved \
to another shelf after the weekend, when the cupboard is painted. The colour of the paint has not been chosen yet. The \
key hangs on a hook beside the door of the room, under a calendar with pictures of bridges. The cupboard has six \
shelves, four of which are empty, and a drawer for postage stamps, envelopes, maps of the town and a spare lamp."""
"""Irrelevant text, cut to the tokens of the introspective instruction."""

CONTROL_PROMPT = GUT["E2"].replace("{dilemma}", f"{{dilemma}}\n\n{IRRELEVANT}")

ARMS = {
    "direct": GUT["E2"],
    "introspective": PREDICT["self"],
    "control": CONTROL_PROMPT,
    "other": PREDICT["other"],
}
TOLD = {
    "direct": "direct question",
    "introspective": "introspective prompt",
    "control": "irrelevant text of equal length",
    "other": "about another assistant",
}
"""Names of the arms on pages."""

MEASURES = ("entropy", "rest", "first", "own", "shared")
"""Measures of a pattern: its entropy in nats; that without the first token; the weight of the first
token, of the last token itself, and of what all arms share without the first token (the dilemma).
"""

OPENING = "The action with the higher probability is Option"
WORDS = (" A", " B")


@dataclass(frozen=True)
class Item:
    """One dilemma, ready for the model."""

    id: str
    prompts: dict[str, Prompt]
    """Prompt of each arm, by `ARMS`."""

    @property
    def shared(self) -> int:
        """Number of tokens that all arms begin with, at most all but the last: they are read once."""
        return min(
            _alike([p.prefix for p in self.prompts.values()]),
            *(len(p.prefix) - 1 for p in self.prompts.values()),
        )

    @property
    def tokens(self) -> int:
        """Number of tokens to read: the shared ones once."""
        return self.shared + sum(len(p.prefix) - self.shared for p in self.prompts.values())

    @property
    def longest(self) -> int:
        """Number of tokens of the longest arm."""
        return max(len(p.prefix) for p in self.prompts.values())

    def ends(self, one: str, two: str) -> tuple[int, int]:
        """Numbers of tokens that two arms begin with, and end with, alike; the two parts do not
        overlap.
        """
        a, b = self.prompts[one].prefix, self.prompts[two].prefix
        head = _alike([a, b])
        tail = min(_alike([a[::-1], b[::-1]]), min(len(a), len(b)) - head)
        return head, tail


def dilemma_items(
    tokenizer: Any, table: Table, *, opening: str = OPENING, chat: Chat = PLAIN, context: int
) -> tuple[list[Item], dict[str, str]]:
    """The dilemmas of a data set as tokens, and id → reason of those that cannot be read.

    Raises:
        InputError: A dilemma does not name its options.
        ContrastTokenError: The tokenizer has no token of its own for " A" and " B" after `opening`.
    """
    texts = {row["id"]: record_to_sample(row).input for row in table.rows}
    special, read, reasons = special_tokens(tokenizer), list[Item](), dict[str, str]()
    for name, dilemma in texts.items():
        assert isinstance(dilemma, str)
        if token := held_special((dilemma,), special):
            reasons[name] = (
                f"special token in the dilemma: {token}, which this model would not read as text"
            )
            continue
        asked = [
            opened(tokenizer, prompt.format(dilemma=dilemma), chat) + opening
            for prompt in ARMS.values()
        ]
        made = dict(zip(ARMS, continued(tokenizer, asked, WORDS), strict=True))
        made["control"] = cut(made["control"], made["direct"], made["introspective"].length)
        item = Item(name, made)
        if item.longest > context:
            reasons[name] = f"too long: {item.longest} tokens, the context is {context}"
        else:
            read.append(item)
    return read, reasons


def cut(long: Prompt, short: Prompt, length: int) -> Prompt:
    """`long` shortened to `length`, by tokens from the end of the part that `short` lacks."""
    surplus = long.length - length
    end = len(long.prefix) - _alike([long.prefix[::-1], short.prefix[::-1]])
    if surplus < 0 or end - surplus < _alike([long.prefix, short.prefix]):
        raise ValueError(
            f"expected a control of at least {length} tokens, which can be cut; it has {long.length}"
        )
    return replace(long, prefix=long.prefix[: end - surplus] + long.prefix[end:])


def _alike(rows: Sequence[Sequence[int]]) -> int:
    """Number of tokens that all rows begin with."""
    return next(
        (at for at, tokens in enumerate(zip(*rows, strict=False)) if len(set(tokens)) > 1),
        min(map(len, rows)),
    )
