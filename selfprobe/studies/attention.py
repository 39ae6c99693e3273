"""Attention diffusion: does an introspective prompt spread attention? (Paper 003, §5.2, Figures 6 and 7)"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy import stats

from selfprobe.mechanism.prompts import ARMS, MEASURES, TOLD
from selfprobe.page import Answer, Column, Details, Figures, Finding, Page, Picture, estimated, p_value, shown
from selfprobe.page import Table as PageTable
from selfprobe.page.plots import bar_rows, heat_map
from selfprobe.stats.estimate import clustered_mean, holm, two_sided
from selfprobe.studies.lens import (
    COMPARED,
    LEFT,
    OTHER,
    PAIRS,
    PAPER_FIRST,
    UNIT,
    FloatArray,
    Found,
    Lens,
    Tables,
    arm,
    block_of,
    by_block,
)

if TYPE_CHECKING:
    from selfprobe.mechanism.reading import DilemmaReading

SCALES = ("entropy", "over ln N", "without the first token", "over ln (N − 1), without the first token")
FAIR = SCALES[3]
"""Scale on which neither length nor the first token widens a pattern."""
PAPER = "Paper: +0.5326 nats at block 60, p < 1e-12, without a control; its text says lower, its Figure 7 higher."
NOT = "It does not show what the attention is for."
WHY_NOT = (
    "This shows how widely the last token looks. Entropy grows with the number of tokens, and with any text between "
    "the dilemma and the answer; only what is left beside a control of equal length can be due to what the instruction "
    f"says. {NOT}"
)


class Attention(Lens):
    """Does introspection spread attention? Entropy of the last token's pattern, by block and head (Figures 6, 7).

    It adds to the paper's comparison an irrelevant text of equal length, and entropy over ln N and without the first
    token.
    """

    patterns: ClassVar[bool] = True

    @classmethod
    def tabulated(cls, readings: "Mapping[str, DilemmaReading]", blocks: Sequence[int]) -> dict[str, pd.DataFrame]:
        """Tables lens, partings, attention, heads and places."""
        makers = {"attention": _attention_table, "heads": _heads_table, "places": _places_table}
        return super().tabulated(readings, blocks) | {name: make(readings, blocks) for name, make in makers.items()}

    @classmethod
    def page(cls, found: Found) -> Page:
        """The answer at the block where the runs part, with tables attention, heads and places."""
        tables = found.tables
        block, why = block_of(tables, "attention")
        rows = tables["attention"]
        here = rows[rows.block == block]
        at = here.set_index(["scale", "what"])
        head = f"Block {block} ({why}), mean over its heads, paired over {int(at.n.max())} dilemmas:"
        heads = tables["heads"][tables["heads"].scale == FAIR]
        differ = "; ".join(f"{title} {_different(heads[heads.what == what])}" for what, title in COMPARED.items())
        answer, clause = _answer(at.loc[(FAIR, LEFT)], block)
        nats = at.loc[(SCALES[0], PAPER_FIRST)]
        beside = at.loc[(FAIR, OTHER)]
        notes = [
            f"Block {block} ({why}): in nats, introspective less direct {shown(nats, 3, sign=True)}.",
            f"Less the same about another assistant: {shown(beside, 3, sign=True)} {FAIR}.",
            PAPER,
            NOT,
        ]
        fair = rows[rows.scale == FAIR]
        columns = [Column("comparison", lambda row: COMPARED[row.what]), estimated("difference", digits=3)]
        return found.page(
            "Does an introspective prompt spread the model's attention?",
            Finding(found.model, answer, clause, at, notes),
            picture=by_block("entropies", fair, COMPARED, caption=f"Entropy {FAIR}.", up="difference of entropy"),
            table=PageTable(list(fair[fair.block == block].itertuples()), [*columns, Column("p", "p", _alone)]),
            why=[head, _by_scale(here), f"Heads that differ after Holm's correction ({FAIR}): {differ}.", WHY_NOT],
            paper=[PAPER, Figures([_in_nats(rows), _places(tables)])],
            cells=[Figures([_heads(heads)]), _most(heads)],
            method=["p is of a paired t over dilemmas, as the paper's; Holm's correction is over all heads."],
            tables=("lens", "partings", "attention", "heads", "places"),
        )


def _answer(left: Any, block: int) -> tuple[Answer, str]:
    by = f"{left.value:+.3f}" if math.isnan(left.low) else shown(left, 3, sign=True)
    clause = f"looks {{}} at block {block} than under irrelevant text of equal length, by {by}"
    if math.isnan(left.low) or left.low <= 0 <= left.high:
        return "Cannot tell", clause.format("neither more widely nor more narrowly")
    return ("Yes", clause.format("more widely")) if left.low > 0 else ("No", clause.format("more narrowly"))


def small(p: float) -> str:
    """`p = 0.012`; a small one with its power of ten, which the paper's is compared with."""
    return "no p" if pd.isna(p) else f"p = {p:.1g}" if p < 1e-3 else p_value(p)


def _alone(p: float) -> str:
    return small(p).removeprefix("p = ")


def _different(rows: pd.DataFrame) -> str:
    up, down = (int(((rows.holm < 0.05) & (rows.value * sign > 0)).sum()) for sign in (1, -1))
    return f"{up} wider and {down} narrower of {len(rows)}"


def _in_nats(rows: pd.DataFrame) -> Picture:
    caption = "Entropy in nats by block (Figure 7)."
    return by_block("entropies_nats", rows[rows.scale == SCALES[0]], COMPARED, caption=caption, up="difference, nats")


def _places(tables: Tables) -> Picture:
    """Picture of where the last token looks at the block where the runs part (Figure 6, as a mean)."""
    block = block_of(tables, "places")[0]
    rows = tables["places"]
    here = rows[rows.block == block]
    arms = {TOLD[name]: {row.place: row for row in part.itertuples()} for name, part in here.groupby("arm", sort=False)}
    axis = f"share of the last token's attention at block {block}"
    return bar_rows("places", arms, caption="Where the last token looks (Figure 6).", axis=axis, scale="percent")


def _heads(rows: pd.DataFrame) -> Picture:
    """Picture of what is left beside the irrelevant text, by block and head."""
    table = rows[rows.what == LEFT].pivot(index="block", columns="head", values="value")
    names = [f"block {block}" for block in table.index], [str(head) for head in table.columns]
    caption = f"{COMPARED[LEFT]}, {FAIR}."
    return heat_map("heads", table, *names, caption=caption, centred=True, across="head", down="")


def _by_scale(here: pd.DataFrame) -> PageTable:
    what = [Column("comparison", lambda row: COMPARED[row.what]), Column("scale", "scale")]
    return PageTable(list(here.itertuples()), [*what, estimated("difference", digits=4), Column("p", "p", _alone)])


def _most(heads: pd.DataFrame) -> Details:
    """The heads that differ most in the paper's comparison, each with the others."""
    columns = [Column("block", lambda at: at[0], str, "n"), Column("head", lambda at: at[1], str, "n")]
    for what, rows in heads.groupby("what", sort=False):
        columns.append(Column(str(what), partial(_head, rows.set_index(["block", "head"]))))
    most = heads[heads.what == PAPER_FIRST].sort_values("holm").head(12)
    at = list(zip(most.block, most["head"], strict=True))
    return Details("Heads that differ most in the paper's comparison; p after Holm", [PageTable(at, columns)])


def _head(rows: pd.DataFrame, at: tuple[int, int]) -> str:
    return f"{rows.value[at]:+.4f}, {small(rows.holm[at])}"


def scaled(readings: "Mapping[str, DilemmaReading]") -> dict[str, FloatArray]:
    """Scale → entropy [dilemma, arm, layer, head] of the last token's pattern: `SCALES`."""
    measured = np.stack([reading.attention for reading in readings.values()]).astype(float)
    seen = np.stack([reading.tokens for reading in readings.values()]).astype(float)[:, :, None, None]
    plain, rest = (measured[:, :, MEASURES.index(name)] for name in ("entropy", "rest"))
    return dict(zip(SCALES, (plain, plain / np.log(seen), rest, rest / np.log(seen - 1)), strict=True))


def _attention_table(readings: "Mapping[str, DilemmaReading]", numbers: Sequence[int]) -> pd.DataFrame:
    """block, what, scale, value, low, high, p, n: paired differences of entropy, mean over the heads of a block.

    p: paired t over dilemmas, as the paper's.
    """
    names, rows = list(readings), []
    for scale, entropies in scaled(readings).items():
        by_block = entropies.mean(axis=3)  # [dilemma, arm, layer]
        for a, b in PAIRS:
            paired = by_block[:, arm(a)] - by_block[:, arm(b)]
            for at, block in enumerate(numbers):
                found = clustered_mean(paired[:, at], names, unit=UNIT, interval="t")
                of = {"block": block, "what": f"{a} − {b}", "scale": scale}
                rows.append(of | asdict(found) | {"p": two_sided(found)})
    return pd.DataFrame(rows)


def _heads_table(readings: "Mapping[str, DilemmaReading]", numbers: Sequence[int]) -> pd.DataFrame:
    """block, head, what, scale, value, p, holm, n: paired differences of entropy; Holm over all heads of a comparison.

    A head whose entropy never differs has no p, and is no member of the family.
    """
    n, tables = len(readings), []
    for scale, entropies in scaled(readings).items():
        for a, b in PAIRS:
            paired = entropies[:, arm(a)] - entropies[:, arm(b)]  # [dilemma, layer, head]
            mean = paired.mean(axis=0)
            with np.errstate(invalid="ignore", divide="ignore"):
                error = paired.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.full(mean.shape, math.nan)
                told = np.where(error > 1e-9 * np.maximum(np.abs(mean), 1e-3), np.abs(mean) / error, math.nan)
            p = 2 * stats.t.sf(told, n - 1)
            blocks, heads = np.meshgrid(numbers, np.arange(mean.shape[1]), indexing="ij")
            columns = {"block": blocks, "head": heads, "value": mean, "p": p, "holm": holm(p.ravel())}
            table = pd.DataFrame({name: np.ravel(column) for name, column in columns.items()})
            tables.append(table.assign(what=f"{a} − {b}", scale=scale, n=n))
    return pd.concat(tables, ignore_index=True)


def _places_table(readings: "Mapping[str, DilemmaReading]", numbers: Sequence[int]) -> pd.DataFrame:
    """block, arm, place, value, low, high, n: where the last token looks, mean over heads (Figure 6, §5.2's .059)."""
    names, rows = list(readings), []
    measured = np.stack([reading.attention for reading in readings.values()]).astype(float).mean(axis=4)
    first, own, shared = (measured[:, :, MEASURES.index(name)] for name in ("first", "own", "shared"))
    places = {"first token": first, "dilemma": shared, "instruction": 1 - first - own - shared, "itself": own}
    for name in ARMS:
        for place, weights in places.items():
            for at, block in enumerate(numbers):
                found = clustered_mean(weights[:, arm(name), at], names, unit=UNIT, interval="t")
                rows.append({"block": block, "arm": name, "place": place} | asdict(found))
    return pd.DataFrame(rows)
