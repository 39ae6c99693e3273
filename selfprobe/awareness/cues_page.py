"""The page of sentences taken out."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from selfprobe.awareness.cues import Found, told
from selfprobe.page import (
    Block,
    Box,
    Bullets,
    Column,
    Details,
    Figures,
    Page,
    Picture,
    Quoted,
    Section,
    Table,
    columns,
    estimated,
    number,
    percent,
    shown,
)
from selfprobe.plots import MUTED, SELF, dots, label, name_rows, new_axes, short
from selfprobe.solvers.edited import ALL, ORIGINAL, PARAPHRASE
from selfprobe.stats.edits import Effect

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEANS = (
    "Each sentence, list of options, placeholder and tool of a prompt is taken out, and the model is asked again how "
    "probable it finds an evaluation. The effect is what the number falls by, less what it falls by where as much text "
    "is taken out elsewhere. Its interval (95 %) is made of how far those deletions move the number, and is about "
    "these prompts. Probabilities are corrected by Holm over all that was taken out. The same text in several prompts "
    "is one line."
)
CLASSES = (
    "What rules for English take for a giveaway, by class. A rule names what it matches; the effect says whether this "
    "model goes by it."
)
FLIPS = "Verdicts (P(evaluation) from .5 on) that an edit turned: what is wanted beside what any edit does."
SHOWN, DRAWN = 60, 15
"""Lines of the table and of the figure."""


def page_of(founds: Sequence[Found], aside: Mapping[str, str]) -> Page:
    """The page, with tables forms, effects and classes."""
    sections = [Section(found.model, list(_blocks(found, n)), f"m{n}") for n, found in enumerate(founds, start=1)]
    if aside:
        rows = [f"{name}: {why}" for name, why in aside.items()]
        sections.append(Section("Prompts set aside", [Bullets(rows)], "aside"))
    tables = {
        "forms": pd.concat([found.rows for found in founds]),
        "effects": _table([(found.model, found.sentences) for found in founds]),
        "classes": _table([(found.model, found.classes) for found in founds]),
    }
    lines = [line for found in founds for line in (found.model, *(f"  {said}" for said in told(found)))]
    return Page("What gives the evaluation away?", MEANS, sections, tables=tables, told=lines)


def _blocks(found: Found, place: int) -> list[Block]:
    head, *rest = told(found)
    sure = any(effect.holm < 0.05 and effect.estimate.value > 0 for effect in found.sentences)
    blocks: list[Block] = [Box(head, " ".join(rest), "yes" if sure else "")]
    drawn = [effect for effect in found.sentences if not math.isnan(effect.estimate.value)][:DRAWN]
    if drawn:
        caption = "What each adds to P(evaluation) beyond a deletion of equal length. Green: p (Holm) below .05."
        blocks.append(Figures([Picture(f"effects_{place}", caption, caption, effects_figure(found.model, drawn))]))
    classes = _classes(found) if found.classes else "No rule matches anything in these prompts."
    blocks += [_effects(found), Section("By class", [CLASSES, classes])]
    blocks += [Section("Beside what any edit does", [FLIPS, _flips(found)])]
    return [*blocks, Section("Prompts", [Details("Prompts, the most telling first", list(_prompts(found)))])]


def _effects(found: Found) -> Table:
    kinds = found.rows.dropna(subset="text").groupby("text").kind.first().to_dict()
    columns_ = [
        Column("taken out", "name", lambda name: name if len(name) < 300 else f"{name[:299]}…", look="text"),
        Column("is a", lambda e: kinds.get(e.name, "")),
        Column("prompts", lambda e: e.estimate.n, str),
        estimated("adds to P(evaluation)", "estimate"),
        Column("p (Holm)", "holm", _p),
    ]
    return Table(found.sentences[:SHOWN], columns_)


def _p(p: float) -> str:
    return number(p, 4) if math.isnan(p) or p >= 1e-4 else "< 0.0001"


def _classes(found: Found) -> Table:
    columns_ = [
        Column("class", "name"),
        Column("times", lambda e: e.estimate.n, str),
        estimated("adds to P(evaluation)", "estimate"),
        Column("p (Holm)", "holm", _p),
    ]
    every = [found.everything] if found.everything else []
    return Table([*found.classes, *every], columns_)


def _flips(found: Found) -> Table:
    rows = [(name, hits, of) for name, (hits, of) in found.flips.items() if of]
    kinds = found.rows.kind.where(found.rows.kind.isin([ORIGINAL, *_KINDS.values()]), "one")
    sizes = found.rows.change.abs().groupby(kinds).mean()
    columns_ = [
        Column("edit", lambda r: r[0]),
        Column("verdicts turned", lambda r: f"{r[1]} of {r[2]}", str),
        Column("share", lambda r: r[1] / r[2], percent),
        Column("mean size of the change", lambda r: sizes.get(_KINDS.get(r[0], "one"), math.nan), number),
    ]
    return Table(rows, columns_)


_KINDS = {"as much text elsewhere": "control", "in other words": PARAPHRASE, "all giveaways taken out": ALL}


def _prompts(found: Found) -> list[Block]:
    """The prompts with the highest P(evaluation), each with what gives it away."""
    whole = found.rows[found.rows.arm == ORIGINAL].sort_values("p", ascending=False).head(SHOWN)
    blocks: list[Block] = []
    for row in whole.itertuples():
        mine = found.rows[(found.rows.item == row.item) & found.rows.change.notna()]
        units = mine[~mine.kind.isin([ORIGINAL, PARAPHRASE, "control", ALL])].nlargest(3, "change")
        left = [f"{name} {p:.2f}" for name, kind in _LEFT.items() for p in mine[mine.kind == kind].p]
        beside = f" ({', '.join(left)})" if left else ""
        lines = [f"{unit.change:+.2f}  {unit.text[:300]}" for unit in units.itertuples()]
        blocks += [f"{row.item}: P(evaluation) {number(row.p, 2)}{beside}. Most telling:", Quoted("\n".join(lines))]
    return blocks


_LEFT = {"in other words": PARAPHRASE, "without all giveaways": ALL}


def effects_figure(model: str, effects: Sequence[Effect]) -> "Figure":
    """Effects with their intervals, one a row."""
    figure, ax = new_axes(width=8.6, height=1.0 + 0.34 * len(effects))
    sure = [effect.holm < 0.05 for effect in effects]
    for place, effect in enumerate(effects):
        dots(ax, [place], [effect.estimate], colour=SELF if sure[place] else MUTED, marker="o")
    ax.axvline(0, color=MUTED, linewidth=0.8)
    name_rows(ax, [label(short(" ".join(effect.name.split()), 60)) for effect in effects])
    ax.set_xlabel("adds to P(evaluation), 95 % interval")
    figure.suptitle(label(short(model, 40)), x=0.01, ha="left", fontsize=11)
    return figure


def _table(of: Sequence[tuple[str, Sequence[Effect]]]) -> pd.DataFrame:
    rows: list[dict[str, Any]] = [
        {"model": model, "taken_out": e.name, "effect": shown(e.estimate), "p": e.p, "p_holm": e.holm}
        | columns(e.estimate)
        for model, effects in of
        for e in effects
    ]
    return pd.DataFrame(rows)
