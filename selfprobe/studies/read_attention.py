"""Attention diffusion: does an introspective prompt spread attention? (IntrospectBench, §5.2,
Figures 6 and 7)
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import pandas as pd
from scipy import stats

from selfprobe.mechanism.prompts import ARM_NAMES, ARMS, PATTERN_MEASURES
from selfprobe.page import (
    ClaimWords,
    Figures,
    Heading,
    Page,
    Picture,
    RowTable,
    interval_text,
    p_value,
)
from selfprobe.page import Table as PageTable
from selfprobe.page.columns import columns_of, rows_of_frame
from selfprobe.page.numerals import fixed, signed_number
from selfprobe.page.plots import bar_rows, heat_map
from selfprobe.stats.claim import ALPHA, Check, Claim, Outcome
from selfprobe.stats.estimate import Estimate, clustered_mean, holm, two_sided, undefined
from selfprobe.stats.timing import FEWEST_CLUSTERS, largest_p
from selfprobe.studies.read_lens import (
    BLOCK_HEADING,
    COMPARED_ARMS,
    COMPARISON_HEADING,
    COMPARISON_TITLES,
    UNIT,
    Comparison,
    FloatArray,
    FolderContents,
    Lens,
    Tables,
    arm,
    block_of,
    by_block,
    shift_text,
)
from selfprobe.text.counts import count_text

if TYPE_CHECKING:
    from selfprobe.mechanism.reading import DilemmaReading

SCALES = (
    "entropy",
    "over ln N",
    "without the first token",
    "over ln (N − 1), without the first token",
)
FAIR_SCALE = SCALES[3]
"""Scale on which neither length nor the first token widens a pattern: 0 is one token, 1 all alike.
"""
SMALLEST_SPREAD = 0.01
"""Smallest difference of entropy, on the scale FAIR_SCALE, that matters."""
MOST_HEADS = 12
"""Number of heads in the table of those that differ most."""
ATTENTION_PAPER = (
    "Paper: +0.5326 nats at block 60, p < 1e-12, without a control; its text says lower, its "
    "Figure 7 higher. The last token's weight on itself, Figure 6: .059 direct, .008 introspective."
)
ATTENTION_LIMIT = "It does not show what the attention is for."
ATTENTION_LIMITS_NOTE = (
    "This shows how widely the last token looks. Entropy grows with the number of tokens, and with "
    "any text between the dilemma and the answer; only what is left beside a control of equal "
    f"length can be due to what the instruction says. {ATTENTION_LIMIT}"
)
SPREAD_METHOD = (
    "p of a table is of a paired t over dilemmas, as the paper's; Holm's correction is over all "
    "heads. The checks' p is corrected for all blocks: the largest difference, in units of its own "
    "spread, under random signs of whole dilemmas or sources."
)


class Attention(Lens):
    """Does introspection spread attention? Entropy of the last token's pattern, by block and head
    (Figures 6, 7).

    It adds to the paper's comparison an irrelevant text of equal length, and entropy over ln N and
    without the first token.
    """

    patterns: ClassVar[bool] = True

    def tables_of(
        self, readings: "Mapping[str, DilemmaReading]", blocks: Sequence[int]
    ) -> dict[str, pd.DataFrame]:
        """Tables lens, partings, attention, heads and places."""
        clusters = [self.clusters[name] for name in readings]
        return super().tables_of(readings, blocks) | {
            "attention": RowTable(AttentionRow, attention_rows(readings, blocks, clusters)).frame,
            "heads": heads_table(readings, blocks),
            "places": RowTable(PlaceRow, place_rows(readings, blocks, clusters)).frame,
        }

    @classmethod
    def page(cls, contents: FolderContents) -> Page:
        """The answer at the block where the runs part, with tables attention, heads and places."""
        tables = contents.tables
        block, block_reason = block_of(tables, "attention")
        frame = tables["attention"]
        rows: list[AttentionRow] = rows_of_frame(AttentionRow, frame, unit=UNIT)
        block_rows = [row for row in rows if row.block == block]
        row_of = {(row.scale, row.what): row for row in block_rows}
        claim = attention_claim(row_of, block, contents.model)
        dilemma_count = max(row.estimate.n for row in block_rows)
        titled_rows = [replace(row, what=COMPARISON_TITLES[row.what]) for row in block_rows]
        fair_rows = [row for row in titled_rows if row.scale == FAIR_SCALE]

        heads = tables["heads"]
        fair_heads = heads[heads.scale == FAIR_SCALE]
        head_counts = []
        for comparison, title in COMPARISON_TITLES.items():
            compared_heads = fair_heads[fair_heads.what == comparison]
            head_counts.append(f"{title} {_differing_heads(compared_heads)}")
        difference_in_nats = row_of[SCALES[0], Comparison.INTROSPECTIVE_LESS_DIRECT].estimate
        difference_from_other = row_of[FAIR_SCALE, Comparison.INTROSPECTIVE_LESS_OTHER].estimate
        entropy_picture = by_block(
            "entropies",
            frame[frame.scale == FAIR_SCALE],
            COMPARISON_TITLES,
            caption=f"Entropy {FAIR_SCALE}.",
            y_title="difference of entropy",
        )
        return contents.claim_page(
            "Does an introspective prompt spread the model's attention?",
            claim,
            ATTENTION_WORDS,
            picture=entropy_picture,
            table=PageTable(fair_rows, columns_of(AttentionRow, "what", "estimate", "p")),
            verdict_blocks=[
                f"Block {block} ({block_reason}), mean over its heads, paired over "
                f"{count_text(dilemma_count, UNIT)}:",
                PageTable(titled_rows, columns_of(AttentionRow, "what", "scale", "estimate", "p")),
                f"Heads that differ after Holm's correction ({FAIR_SCALE}): "
                f"{'; '.join(head_counts)}.",
                ATTENTION_LIMITS_NOTE,
            ],
            paper=[ATTENTION_PAPER, Figures([_nats_picture(frame), _places_picture(tables)])],
            further_figures=[
                Figures([_heads_picture(fair_heads)]),
                _most_differing_heads(fair_heads),
            ],
            method=[SPREAD_METHOD],
            tables={
                "attention": RowTable(AttentionRow, rows),
                "heads": RowTable(HeadRow, rows_of_frame(HeadRow, heads, unit=UNIT)),
                "places": RowTable(PlaceRow, rows_of_frame(PlaceRow, tables["places"], unit=UNIT)),
            },
            terminal_lines=[
                f"Block {block} ({block_reason}): in nats, introspective less direct "
                f"{interval_text(difference_in_nats, 3, sign=True)}.",
                "Less the same about another assistant: "
                f"{interval_text(difference_from_other, 3, sign=True)} {FAIR_SCALE}.",
                ATTENTION_PAPER,
                ATTENTION_LIMIT,
            ],
        )


# ---- the claim


ATTENTION_WORDS = ClaimWords(
    yes=(
        "spreads its attention under the introspective prompt at block {block}, by {effect}; "
        "closest: {competitor}"
    ),
    no="spreads its attention by less than {smallest} at block {block}: {effect}",
    explained="spreads its attention at block {block} by {effect}, no more than under {competitor}",
    checks={
        "wider": "looking more widely than under the direct question",
        "beyond_text": "looking more widely than under irrelevant text of equal length",
        "beyond_other": "looking more widely than under the same about another assistant",
    },
    unmet={
        "wider": "is not shown to spread its attention at block {block} ({difference})",
        "beyond_text": (
            "spreads its attention at block {block}, not shown to be more than under {competitor}"
        ),
        "beyond_other": (
            "spreads its attention at block {block}, not shown to be more than under {competitor}"
        ),
    },
    write=partial(shift_text, digits=3, sign=True),
)


def attention_claim(
    row_of: "Mapping[tuple[str, str], AttentionRow]", block: int, subject: str
) -> Claim:
    """The claim that an introspective prompt spreads attention.

    Args:
        row_of: Scale and comparison → its row at the block.
        block: The block.
        subject: The model's name on the page.
    """
    direct_row = row_of[FAIR_SCALE, Comparison.INTROSPECTIVE_LESS_DIRECT]
    other_row = row_of[FAIR_SCALE, Comparison.INTROSPECTIVE_LESS_OTHER]
    control_value = row_of[FAIR_SCALE, Comparison.CONTROL_LESS_DIRECT].estimate.value
    other_value = direct_row.estimate.value - other_row.estimate.value
    control_text = f"irrelevant text: {fixed(control_value, 3, signed=True)}"
    other_text = f"another assistant's prompt: {fixed(other_value, 3, signed=True)}"
    checks = (
        _wider_check("wider", direct_row),
        _wider_check(
            "beyond_text", row_of[FAIR_SCALE, Comparison.INTROSPECTIVE_LESS_CONTROL], control_text
        ),
        _wider_check("beyond_other", other_row, other_text),
    )
    return Claim(subject, direct_row.estimate, checks, SMALLEST_SPREAD, {"block": str(block)})


def _wider_check(name: str, row: "AttentionRow", competitor: str = "") -> Check:
    """The check that a difference of entropy is above 0; one of a control, which has a competitor,
    explains.
    """
    estimate = row.estimate
    explains = bool(competitor)
    if estimate.value > 0 and row.p_blocks < ALPHA:
        return Check(name, estimate, Outcome.HOLDS, competitor, row.p_blocks, explains=explains)
    if estimate.high < SMALLEST_SPREAD:
        return Check(name, estimate, Outcome.FAILS, competitor, row.p_blocks, explains=explains)
    if estimate.n < FEWEST_CLUSTERS:
        reason = f"{estimate.n} independent {UNIT}s; {FEWEST_CLUSTERS} are the least"
        estimate = undefined(reason, n=estimate.n, unit=UNIT)
    return Check(
        name,
        estimate,
        Outcome.OPEN,
        competitor,
        row.p_blocks,
        explains=explains,
        remedy="add dilemmas",
    )


# ---- tables of the folder


def small_p(p: float) -> str:
    """A p, a small one with its power of ten, which the paper's is compared with.

    >>> small_p(0.0314), small_p(1.4e-73), small_p(float("nan"))
    ('0.031', '1e-73', '–')
    """
    if pd.isna(p):
        return "–"
    return f"{p:.1g}" if p < 1e-3 else p_value(p).removeprefix("p = ")


SCALE = Heading(
    "scale", "Scale of the entropy: nats, or a share of the largest that the length allows."
)


@dataclass(frozen=True)
class AttentionRow:
    """Differences of entropy by block, mean over its heads."""

    block: Annotated[int, BLOCK_HEADING]
    what: Annotated[str, COMPARISON_HEADING]
    scale: Annotated[str, SCALE]
    estimate: Annotated[
        Estimate,
        Heading(
            "difference",
            "Paired difference of entropy.",
            partial(interval_text, digits=3, sign=True),
        ),
    ]
    p: Annotated[float, Heading("p", "p of a paired t over dilemmas, as the paper's.", small_p)]
    p_blocks: Annotated[
        float,
        Heading("p over blocks", "p by signs, corrected for having looked at all blocks.", small_p),
    ]


@dataclass(frozen=True)
class HeadRow:
    """Differences of entropy by head."""

    block: Annotated[int, BLOCK_HEADING]
    head: Annotated[int, Heading("head", "Attention head of the block, from 0.")]
    what: Annotated[str, COMPARISON_HEADING]
    scale: Annotated[str, SCALE]
    value: Annotated[
        float,
        Heading(
            "difference", "Mean paired difference of entropy.", partial(signed_number, digits=4)
        ),
    ]
    p: Annotated[float, Heading("p", "p of a paired t over dilemmas.", small_p)]
    holm: Annotated[
        float, Heading("p after Holm", "p, corrected over all heads of the comparison.", small_p)
    ]
    n: Annotated[int, Heading("dilemmas", "Dilemmas that were counted.")]


@dataclass(frozen=True)
class PlaceRow:
    """Where the last token looks, mean over heads."""

    block: Annotated[int, BLOCK_HEADING]
    arm: Annotated[str, Heading("instruction", "Arm that was read.")]
    place: Annotated[str, Heading("place", "Part of the prompt.")]
    estimate: Annotated[Estimate, Heading("share of attention", "Mean weight of the place.")]


def entropies_by_scale(readings: "Mapping[str, DilemmaReading]") -> dict[str, FloatArray]:
    """Scale → entropy [dilemma, arm, layer, head] of the last token's pattern: `SCALES`."""
    measures = _stacked_attention(readings)
    entropy = measures[:, :, PATTERN_MEASURES.index("entropy")]
    entropy_without_first = measures[:, :, PATTERN_MEASURES.index("rest")]
    tokens_by_dilemma = [reading.tokens for reading in readings.values()]
    token_counts = np.stack(tokens_by_dilemma).astype(float)[:, :, None, None]
    return {
        SCALES[0]: entropy,
        SCALES[1]: entropy / np.log(token_counts),
        SCALES[2]: entropy_without_first,
        SCALES[3]: entropy_without_first / np.log(token_counts - 1),
    }


def _stacked_attention(readings: "Mapping[str, DilemmaReading]") -> FloatArray:
    """What was measured of patterns [dilemma, arm, measure, layer, head]; see `PATTERN_MEASURES`."""
    attention_by_dilemma = [reading.attention for reading in readings.values()]
    return np.stack(attention_by_dilemma).astype(float)


def attention_rows(
    readings: "Mapping[str, DilemmaReading]", blocks: Sequence[int], clusters: Sequence[str]
) -> list[AttentionRow]:
    """Paired differences of entropy, mean over the heads of a block."""
    rows = []
    for scale, entropies in entropies_by_scale(readings).items():
        entropy_by_block = entropies.mean(axis=3)  # [dilemma, arm, layer]
        for first, second in COMPARED_ARMS:
            differences = entropy_by_block[:, arm(first)] - entropy_by_block[:, arm(second)]
            rows += difference_rows(f"{first} − {second}", scale, differences, blocks, clusters)
    return rows


def difference_rows(
    comparison: str,
    scale: str,
    differences: FloatArray,
    blocks: Sequence[int],
    clusters: Sequence[str],
) -> list[AttentionRow]:
    """One row a block of `differences  # [dilemma, layer]`."""
    p_by_block = largest_p(differences, clusters, rng=np.random.default_rng(0))
    rows = []
    for block_index, block in enumerate(blocks):
        estimate = clustered_mean(differences[:, block_index], clusters, unit=UNIT, interval="t")
        rows.append(
            AttentionRow(
                block=block,
                what=comparison,
                scale=scale,
                estimate=estimate,
                p=two_sided(estimate),
                p_blocks=float(p_by_block[block_index]),
            )
        )
    return rows


def heads_table(readings: "Mapping[str, DilemmaReading]", blocks: Sequence[int]) -> pd.DataFrame:
    """Rows of `HeadRow`: paired differences of entropy; Holm over all heads of a comparison."""
    tables = []
    for scale, entropies in entropies_by_scale(readings).items():
        for first, second in COMPARED_ARMS:
            differences = entropies[:, arm(first)] - entropies[:, arm(second)]
            table = _table_of_heads(differences, blocks)
            tables.append(table.assign(what=f"{first} − {second}", scale=scale, n=len(readings)))
    return pd.concat(tables, ignore_index=True)


def _table_of_heads(differences: FloatArray, blocks: Sequence[int]) -> pd.DataFrame:
    """block, head, value, p, holm of `differences  # [dilemma, layer, head]`.

    A head whose entropy never differs has no p, and is no member of the family.
    """
    n = len(differences)
    mean = differences.mean(axis=0)
    error = np.full(mean.shape, math.nan)
    if n > 1:
        error = differences.std(axis=0, ddof=1) / math.sqrt(n)
    with np.errstate(invalid="ignore", divide="ignore"):
        is_varied = error > 1e-9 * np.maximum(np.abs(mean), 1e-3)
        t = np.where(is_varied, np.abs(mean) / error, math.nan)
    p = 2 * stats.t.sf(t, n - 1)
    block_grid, head_grid = np.meshgrid(blocks, np.arange(mean.shape[1]), indexing="ij")
    return pd.DataFrame(
        {
            "block": block_grid.ravel(),
            "head": head_grid.ravel(),
            "value": mean.ravel(),
            "p": p.ravel(),
            "holm": np.ravel(holm(p.ravel())),
        }
    )


def place_rows(
    readings: "Mapping[str, DilemmaReading]", blocks: Sequence[int], clusters: Sequence[str]
) -> list[PlaceRow]:
    """Where the last token looks, mean over heads (Figure 6, §5.2's .059)."""
    measures = _stacked_attention(readings).mean(axis=4)
    first_token = measures[:, :, PATTERN_MEASURES.index("first")]
    last_token = measures[:, :, PATTERN_MEASURES.index("own")]
    dilemma = measures[:, :, PATTERN_MEASURES.index("shared")]
    weights_by_place = {
        "first token": first_token,
        "dilemma": dilemma,
        "instruction": 1 - first_token - last_token - dilemma,
        "itself": last_token,
    }
    rows = []
    for arm_name, (place, weights) in product(ARMS, weights_by_place.items()):
        arm_weights = weights[:, arm(arm_name)]
        for block_index, block in enumerate(blocks):
            estimate = clustered_mean(
                arm_weights[:, block_index], clusters, unit=UNIT, interval="t"
            )
            rows.append(PlaceRow(block, arm_name, place, estimate))
    return rows


# ---- pictures and further tables


def _differing_heads(heads: pd.DataFrame) -> str:
    is_shown = heads.holm < ALPHA
    wider = int((is_shown & (heads.value > 0)).sum())
    narrower = int((is_shown & (heads.value < 0)).sum())
    return f"{wider} wider and {narrower} narrower of {len(heads)}"


def _nats_picture(rows: pd.DataFrame) -> Picture:
    return by_block(
        "entropies_nats",
        rows[rows.scale == SCALES[0]],
        COMPARISON_TITLES,
        caption="Entropy in nats by block (Figure 7).",
        y_title="difference, nats",
    )


def _places_picture(tables: Tables) -> Picture:
    """Picture of where the last token looks at the block where the runs part (Figure 6, a mean)."""
    block, _ = block_of(tables, "places")
    places = tables["places"]
    block_places = places[places.block == block]
    bars_by_arm = {}
    for arm_name, arm_places in block_places.groupby("arm", sort=False):
        bars_by_arm[ARM_NAMES[arm_name]] = {row.place: row for row in arm_places.itertuples()}
    return bar_rows(
        "places",
        bars_by_arm,
        caption="Where the last token looks (Figure 6).",
        axis=f"share of the last token's attention at block {block}",
        scale="percent",
    )


def _heads_picture(heads: pd.DataFrame) -> Picture:
    """Picture of what is left beside the irrelevant text, by block and head."""
    table = heads[heads.what == Comparison.INTROSPECTIVE_LESS_CONTROL].pivot(
        index="block", columns="head", values="value"
    )
    block_names = [f"block {block}" for block in table.index]
    head_names = [str(head) for head in table.columns]
    caption = f"{COMPARISON_TITLES[Comparison.INTROSPECTIVE_LESS_CONTROL]}, {FAIR_SCALE}."
    return heat_map(
        "heads",
        table,
        block_names,
        head_names,
        caption=caption,
        centred=True,
        x_title="head",
        y_title="",
    )


def _most_differing_heads(heads: pd.DataFrame) -> PageTable:
    """The heads that differ most in the paper's comparison."""
    compared_heads = heads[heads.what == Comparison.INTROSPECTIVE_LESS_DIRECT]
    head_rows = rows_of_frame(
        HeadRow, compared_heads.sort_values("holm").head(MOST_HEADS), unit=UNIT
    )
    return PageTable(head_rows, columns_of(HeadRow, "block", "head", "value", "holm"))
