"""What lens, attention and patching found, in sentences: the paper's number, its control, and what it does not show."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from selfprobe.mechanism.numbers import PAIRS, SCALES, SHOWABLE
from selfprobe.page import p_value, shown

Tables = Mapping[str, pd.DataFrame]

PAPER_FIRST, CONTROL_FIRST, LEFT, OTHER = (f"{a} − {b}" for a, b in PAIRS)
LENS_NOT = (
    "A block where they part says about where the instruction comes to matter for the next word, as the output layer "
    "reads it: the one step that fits the size of the difference best, which is the middle of a slow rise and not the "
    "first block that differs. It does not show introspection: any instruction that moves the answer parts somewhere, "
    "and states of middle blocks are read through a norm that was not made for them."
)
ATTENTION_NOT = (
    "This shows how widely the last token looks. Entropy grows with the number of tokens, and with any text between "
    "the dilemma and the answer; only what is left beside a control of equal length can be due to what the instruction "
    "says. It does not show what the attention is for."
)
PATCH_NOT = (
    "A share says how much of the change of the answer comes with the weights of attention alone. It does not show "
    "that they hold self-knowledge: the control's pattern and random blocks say how much any other pattern does."
)


def lens_findings(tables: Tables) -> list[str]:
    """Of the tables lens and partings."""
    lens, parts = tables["lens"], tables["partings"].set_index("what")
    end = int(lens.block.max())
    last = lens[lens.block == end].set_index("what")
    said = []
    for what, name in ((PAPER_FIRST, "introspective prompt"), (CONTROL_FIRST, "irrelevant text of equal length")):
        by = f"after block {end} the logit of A less that of B differs by {shown(last.loc[what], sign=True)}"
        said.append(f"Direct question and {name}: {_parted(parts.loc[what], lens)}; {by}.")
    said.append(
        f"Introspective prompt less the irrelevant text, after block {end}: {shown(last.loc[LEFT], sign=True)}; less "
        f"the same question about another assistant: {shown(last.loc[OTHER], sign=True)}."
    )
    return [*said, "Paper: block 60 of the 64 of Qwen3-32B, by eye, in one dilemma.", LENS_NOT]


def _parted(found: Any, lens: pd.DataFrame) -> str:
    of = f"of {int(lens.block.min())} to {int(lens.block.max())}, {int(found.n)} dilemmas"
    if found.n < SHOWABLE:
        return f"whether they part cannot be shown by {int(found.n)} dilemmas ({SHOWABLE} or more can)"
    if lens.block.min() == lens.block.max():
        return f"block {int(lens.block.min())} alone was read, so where they part is not known"
    if pd.isna(found.block):
        return f"not shown to differ at any block ({of}, {p_value(found.p) if pd.notna(found.p) else 'no p'})"
    step = f"; one step there explains {_percent(found.fit)} of how the size varies" * bool(pd.notna(found.fit))
    return f"they part at block {found.block:.0f} [{found.low:.0f}, {found.high:.0f}] ({of}, {p_value(found.p)}{step})"


def block_of(tables: Tables, name: str = "lens") -> tuple[int, str]:
    """The block of the table `name` to show, and why: where introspective and direct run part, or the last."""
    found, there = tables["partings"].set_index("what").loc[PAPER_FIRST].block, tables[name].block
    if (there == found).any():
        return int(found), "where direct and introspective runs part"
    why = "the runs are not shown to part" if pd.isna(found) else f"that where the runs part, {found:.0f}, was not"
    return int(there.max()), f"the last that was read, as {why}"


def attention_findings(tables: Tables) -> list[str]:
    """Of the tables attention and heads, at the block where the runs part."""
    block, why = block_of(tables, "attention")
    rows = tables["attention"]
    at = rows[rows.block == block].set_index(["scale", "what"])
    said = [f"Block {block} ({why}), mean over its heads, paired over {int(at.n.max())} dilemmas:"]
    for scale in SCALES:
        parts = [f"{word} {_told(at.loc[(scale, what)])}" for word, what in _WORDS]
        said.append(f"Entropy, {'in nats' if scale == SCALES[0] else scale}: {'; '.join(parts)}.")
    heads = tables["heads"]
    heads = heads[heads.scale == SCALES[3]]
    counted = [f"{word} {_different(heads[heads.what == what])}" for word, what in _WORDS]
    said.append(f"Heads that differ after Holm's correction ({SCALES[3]}): {'; '.join(counted)}.")
    said.append(
        "Paper: +0.5326 nats at block 60, p < 1e-12, without a control; its text says lower, its Figure 7 higher."
    )
    return [*said, ATTENTION_NOT]


_WORDS = (
    ("introspective less direct (the paper's)", PAPER_FIRST),
    ("irrelevant text less direct", CONTROL_FIRST),
    ("introspective less irrelevant text (what is left)", LEFT),
    ("introspective less the same about another assistant", OTHER),
)


def _told(row: Any) -> str:
    return f"{shown(row, 4, sign=True)}, {small(row.p)}"


def small(p: float) -> str:
    """`p = 0.012`; a small one with its power of ten, to be held against the paper's."""
    return "no p" if pd.isna(p) else f"p = {p:.1g}" if p < 1e-3 else f"p = {p:.3f}"


def _different(rows: pd.DataFrame) -> str:
    up, down = (int(((rows.holm < 0.05) & (rows.value * sign > 0)).sum()) for sign in (1, -1))
    return f"{up} wider and {down} narrower of {len(rows)}"


def patch_findings(tables: Tables) -> list[str]:
    """Of the table patch."""
    rows = tables["patch"].set_index("variant")
    there = bool(rows.share.notna().any())
    shift = rows.loc["shift"]
    bare = f", without an interval as these are fewer than {SHOWABLE} dilemmas," * bool(shift.n < SHOWABLE)
    said = [
        f"The other prompt moves the logit of A less that of B by {shown(shift, sign=True)} ({int(shift.n)} dilemmas). "
        + (f"Share of it{bare}" if there else "That is not shown to differ from 0, so there is no share of it. Change")
        + " that a pattern in place of a run's own brings:"
    ]
    for group, part in rows[rows.group != "shift"].groupby("group", sort=False):
        told = _of_one(part.iloc[0], there) if len(part) == 1 else _of_many(part, there)
        said.append(f"{_upper(str(group))}: {told}.")
    return [*said, "Paper: 23.9 % at block 60 of Qwen3-32B, one number without a control.", PATCH_NOT]


def _of_one(row: Any, as_share: bool) -> str:
    if not as_share:
        return shown(row, 3, sign=True)
    if pd.isna(row.share):
        return f"– ({row.reason})"
    ends = f" [{_percent(row.share_low)}, {_percent(row.share_high)}]" if pd.notna(row.share_low) else ""
    return f"{_percent(row.share)}{ends}"


def _of_many(rows: pd.DataFrame, as_share: bool) -> str:
    found = (rows.share if as_share else rows.value).dropna()
    if found.empty:
        return "–"
    form = _percent if as_share else "{:+.3f}".format
    furthest = str(found.abs().idxmax())
    ends = f"{form(found.min())} to {form(found.max())}, mean {form(found.mean())}"
    return f"{ends} ({len(found)} of them; the largest is {furthest})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


FOUND: dict[str, Callable[[Tables], list[str]]] = {
    "lens": lens_findings,
    "attention": attention_findings,
    "patch": patch_findings,
}
"""Table that must be there → its sentences."""
