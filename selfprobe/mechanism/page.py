"""One page of a run's folder: what lens, attention and patching made so far, each with its sentences."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from selfprobe.mechanism import figures
from selfprobe.mechanism.findings import FOUND, PAPER_FIRST, block_of, small
from selfprobe.mechanism.folder import read_run
from selfprobe.mechanism.numbers import SCALES
from selfprobe.page import Block, Bullets, Column, Details, Figures, Page, Picture, Section, Table, estimated, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAD = (
    "A dilemma is read up to the word A or B under four instructions: the direct question, the introspective prompt "
    "(predict what you will conclude), an irrelevant text of exactly as many tokens, and the prediction about another "
    "assistant. Numbers are means over dilemmas with 95 % intervals."
)


@dataclass(frozen=True)
class _Part:
    title: str
    figures: Mapping[str, tuple[Callable[[Mapping[str, pd.DataFrame]], "Figure"], str]]
    """File stem → how it is drawn, and its caption."""
    tables: Callable[[Mapping[str, pd.DataFrame]], Sequence[Block]]


def publish(out: Path, made: Mapping[str, pd.DataFrame], tell: str) -> tuple[str, list[str]]:
    """Write tables, figures and index.html; the page's address, and the sentences of the part `tell`."""
    kept = made if tell == "lens" else with_fullest_lens(out, made)
    tables = {name: table for name, table in _before(out).items() if name not in kept} | dict(kept)
    state = read_run(out)
    lead = (
        f"Revision {state['revision']}, {state['precision']}, data set {state['dataset']}, selfprobe "
        f"{state['selfprobe']}. {LEAD} The answer is opened with “{state['opening']}”."
    )
    sections = [_section(name, tables) for name in PARTS if name in tables]
    page = Page(f"Mechanisms of introspection in {state['model']}", lead, sections, tables=tables)
    return write(page, str(out)), FOUND[tell](tables)


def with_fullest_lens(out: Path, made: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """`made`, its lens in place of the folder's only where that has not all of its blocks, or fewer dilemmas.

    A trial of `patch` on 20 dilemmas is not to take the figure of 150 away, nor where their runs part.
    """
    before = _before(out)
    if not {"lens", "partings"} <= before.keys():
        return dict(made)
    old, new = before["lens"], made["lens"]
    if not set(old.block) >= set(new.block) or old.n.max() < new.n.max():
        return dict(made)
    return dict(made) | {name: before[name] for name in ("lens", "partings")}


def _before(out: Path) -> dict[str, pd.DataFrame]:
    """The tables of the folder as they are."""
    return {file.stem: pd.read_csv(file) for file in sorted((out / "tables").glob("*.csv"))}


def _section(name: str, tables: Mapping[str, pd.DataFrame]) -> Section:
    part = PARTS[name]
    pictures = [
        Picture(stem, f"{caption}: the numbers of tables/{name}.csv", caption, draw(tables))
        for stem, (draw, caption) in part.figures.items()
    ]
    *found, last = FOUND[name](tables)
    blocks: list[Block] = [Bullets(found), last, Figures(pictures), *part.tables(tables)]
    return Section(part.title, blocks, name=name, menu=name)


def _lens_tables(tables: Mapping[str, pd.DataFrame]) -> list[Block]:
    rows = tables["lens"]
    wide = [dict(part.set_index("what").iterrows()) | {"block": block} for block, part in rows.groupby("block")]
    columns = [Column("block", "block", str, "n"), *(estimated(what, what) for what in dict.fromkeys(rows.what))]
    return [Details("By block", [Table(wide, columns)])]


def _attention_tables(tables: Mapping[str, pd.DataFrame]) -> list[Block]:
    rows = tables["attention"]
    here = list(rows[rows.block == block_of(tables, "attention")[0]].itertuples())
    heads = tables["heads"]
    most = heads[(heads.scale == SCALES[3]) & (heads.what == PAPER_FIRST)].sort_values("holm").head(12)
    left = heads[(heads.scale == SCALES[3]) & (heads.what != PAPER_FIRST)].set_index(["what", "block", "head"])
    found = [row._asdict() | _beside(left, row.block, row.head) for row in most.itertuples()]
    names = [Column(word, word) for word in dict.fromkeys(left.index.get_level_values("what"))]
    columns = [Column("block", "block", str, "n"), Column("head", "head", str, "n")]
    columns += [Column(PAPER_FIRST, "value", lambda v: f"{v:+.4f}"), Column("p, Holm", "holm", small), *names]
    what = [Column("comparison", "what"), Column("scale", "scale"), estimated("difference", digits=4)]
    return [
        Table(here, [*what, Column("p", "p", small), Column("n", "n", str, "n")]),
        Details("Heads that differ most in the paper's comparison, beside the others", [Table(found, columns)]),
    ]


def _beside(left: pd.DataFrame, block: int, head: int) -> dict[str, str]:
    rows = left.xs((block, head), level=("block", "head"))
    return {str(row.Index): f"{row.value:+.4f}, {small(row.holm)}" for row in rows.itertuples()}


def _patch_tables(tables: Mapping[str, pd.DataFrame]) -> list[Block]:
    rows = list(tables["patch"].itertuples())

    def share(row: object) -> object:
        return pd.Series(
            {"value": row.share, "low": row.share_low, "high": row.share_high, "reason": row.reason}  # type: ignore[attr-defined]
        )

    columns = [Column("pattern", "variant"), estimated("change of the logit difference", digits=3)]
    return [Details("All patterns", [Table(rows, [*columns, estimated("share of the shift", share, 3)])])]


PARTS = {
    "lens": _Part("Logit lens", {"lens": (figures.lens, "A less B by block (Figure 5)")}, _lens_tables),
    "attention": _Part(
        "Attention",
        {
            "entropies": (figures.entropies, "Differences of entropy by block (Figure 7)"),
            "heads": (figures.heads, "By block and head, over ln (N − 1) without the first token; dots: after Holm"),
            "places": (figures.places, "Where the last token looks (Figure 6)"),
        },
        _attention_tables,
    ),
    "patch": _Part("Patched patterns", {"patch": (figures.patch, "Share of the logit shift")}, _patch_tables),
}
"""By the table that must be there."""
