"""The page of a scan: task × turn, the first turn noticed, and every quote."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from selfprobe.awareness.figures import COLOURS, STYLES
from selfprobe.awareness.scan import by_task
from selfprobe.page import (
    Block,
    Column,
    Details,
    Figures,
    Page,
    Picture,
    Section,
    Table,
    estimated,
    percent,
    set_aside,
    shown,
)
from selfprobe.plots import label, new_axes, short
from selfprobe.stats.survival import FirstTime, first_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 10), (11, 20), (21, 50), (51, math.inf))
"""Turns, first and last of each column."""
AT = (1, 2, 5, 10, 20, 50)
"""Turns by which the share that noticed is shown."""
SHOWN = 200
"""Quotes of a task on the page; all of them are in its table."""

MEANS = (
    "A turn is one call of the model. A transcript counts as noticed from the first turn in which a quote of the "
    "grader really stands; quotes that are in no turn are discarded and counted. The share by a turn is Kaplan and "
    "Meier's: a transcript that ends without it tells of the turns it had, and of none after them. That it ends must "
    "have nothing to do with what it would have noticed. Intervals are 95 %, by transcript; of several epochs the "
    "first was read."
)
SILENT = (
    "Not noticed means that nothing was said. Where reasoning is hidden or a summary, less can be said than was "
    "thought: compare tasks and models only where their reasoning is shown alike."
)


@dataclass(frozen=True)
class ByTask:
    """The transcripts of one task by one model."""

    task: str
    model: str
    rows: pd.DataFrame
    quotes: pd.DataFrame
    curve: FirstTime

    @property
    def name(self) -> str:
        return f"{self.task}, {short(self.model, 40)}"

    @property
    def late(self) -> int:
        """The last turn that five transcripts, or all, reach unnoticed."""
        held = self.curve.times[self.curve.at_risk >= min(5, self.curve.n)]
        return int(held[-1]) if len(held) else 1

    @property
    def noticed(self) -> int:
        """Transcripts in which it is noticed at all."""
        return int(self.curve.events.sum())


def tasks_of(rows: pd.DataFrame, quotes: pd.DataFrame) -> list[ByTask]:
    """The numbers of each task and model; transcripts that are unscored before their first turn are left out."""
    made = []
    for task, model, part in by_task(rows):
        scored = part[part.seen > 0]
        mine = quotes[(quotes.task == task) & (quotes.model == model)]
        seen = scored["first"].notna().to_numpy()
        curve = first_time(scored.seen.to_numpy(dtype=float), seen, unit="transcript")
        made.append(ByTask(task, model, part, mine, curve))
    return made


def page_of(rows: pd.DataFrame, quotes: pd.DataFrame, grader: str, ignored: Mapping[str, str]) -> Page:
    """The page, with tables transcripts, quotes and first_turn."""
    made = tasks_of(rows, quotes)
    sections = [
        Section("When it is noticed", [MEANS, _first(made), Figures([_picture(made)]), SILENT], "first"),
        Section("Task × turn", [_PER_TURN, _turns(made)], "turns"),
        Section("What was said", [_quotes(each) for each in made if len(each.quotes)] or ["Nothing."], "quotes"),
        Section("What was read", [_read(made), *set_aside(ignored)], "read"),
    ]
    lead = f"Where models bring up an evaluation in logs that were there, found by {grader}; no subject was asked."
    tables = {"transcripts": rows, "quotes": quotes, "first_turn": _rows_of_curves(made)}
    return Page("Evaluation awareness in logs", lead, sections, tables=tables, told=list(_told(made)))


def _told(made: Sequence[ByTask]) -> list[str]:
    lines = []
    for each in made:
        lost = int(each.rows.unscored.notna().sum())
        unread = f"; {lost} unscored" if lost else ""
        by = f"by turn {each.late} {shown(each.curve.by(each.late))}"
        lines.append(f"{each.name}: noticed in {each.noticed} of {each.curve.n} transcripts; {by}{unread}")
    return lines


def _first(made: Sequence[ByTask]) -> Table:
    at = [turn for turn in AT if any(len(e.curve.times) and turn <= e.curve.times[-1] for e in made)]
    columns = [
        Column("task", "task"),
        Column("model", "model"),
        Column("noticed", lambda e: f"{e.noticed} of {e.curve.n}", str),
        *(estimated(f"by turn {turn}", _by(turn)) for turn in at),
        Column("half by turn", lambda e: e.curve.median, lambda m: "–" if math.isnan(m) else f"{m:.0f}"),
    ]
    return Table(made, columns)


def _by(turn: int) -> Callable[[Any], Any]:
    return lambda each: each.curve.by(turn)


_PER_TURN = (
    "Of the transcripts that reach these turns, the share in which a quote stands there; a transcript can have quotes "
    "in several turns."
)


def _turns(made: Sequence[ByTask]) -> Table:
    longest = max((int(each.rows.turns.max()) for each in made), default=0)
    bins = [(low, high) for low, high in BINS if low <= longest]
    columns = [Column("task", "task"), Column("model", "model")]
    return Table(made, [*columns, *(Column(_bin_name(*ends), _share_in(*ends), str) for ends in bins)])


def _bin_name(low: float, high: float) -> str:
    return f"turn {low}" if low == high else f"{low} and later" if math.isinf(high) else f"{low}–{high:.0f}"


def _share_in(low: float, high: float) -> Callable[[Any], Any]:
    def share(each: ByTask) -> str:
        reach = int((each.rows.turns >= low).sum())
        inside = each.quotes[(each.quotes.turn >= low) & (each.quotes.turn <= high)]
        with_one = len(inside[["log", "sample"]].drop_duplicates())
        return f"{percent(with_one / reach)} ({with_one} of {reach})" if reach else "–"

    return share


def _read(made: Sequence[ByTask]) -> Table:
    def of_turns(column: str) -> Callable[[Any], Any]:
        return lambda e: e.rows[column].sum() / max(e.rows[["full", "summary", "hidden"]].sum().sum(), 1)

    columns = [
        Column("task", "task"),
        Column("model", "model"),
        Column("transcripts", lambda e: len(e.rows), str),
        Column("turns", lambda e: int(e.rows.turns.sum()), str),
        Column("reasoning shown", of_turns("full"), percent),
        Column("a summary, or redacted", of_turns("summary"), percent),
        Column("no reasoning", of_turns("hidden"), percent),
        Column("quotes", lambda e: int(e.rows.quotes.sum()), str),
        Column("quotes in no turn", lambda e: int(e.rows.discarded.sum()), str),
        Column("unscored", lambda e: _reasons(e.rows)),
    ]
    return Table(made, columns)


def _reasons(rows: pd.DataFrame) -> str:
    counts = rows.unscored.dropna().value_counts().sort_index().sort_values(ascending=False, kind="stable")
    return ", ".join(f"{count} {reason}" for reason, count in counts.items()) or "0"


def _quotes(each: ByTask) -> Block:
    rows = each.quotes.sort_values(["turn", "log", "sample"]).head(SHOWN).to_dict("records")
    columns = [
        Column("turn", "turn", str),
        Column("sample", "sample"),
        Column("in its", "part"),
        Column("quote", "quote"),
    ]
    more: list[Block] = [f"The first {SHOWN} of {len(each.quotes)}; all are in tables/quotes.csv."]
    table = Table(rows, columns)
    return Details(f"{each.name}: {len(each.quotes)} quotes", [table, *(more if len(each.quotes) > SHOWN else [])])


def _picture(made: Sequence[ByTask]) -> Picture:
    alt = "Share of transcripts in which the model has brought up an evaluation, by turn"
    caption = "Share noticed by each turn (Kaplan–Meier, 95 % interval); marks: transcripts that end unnoticed."
    return Picture("first_turn", alt, caption, first_turn_figure([(each.name, each.curve) for each in made]))


def first_turn_figure(curves: Sequence[tuple[str, FirstTime]]) -> "Figure":
    """Share noticed by turn, a step line each, with its interval; at most eight are drawn."""
    figure, ax = new_axes(width=7.6, height=4.0)
    for (name, curve), colour, style in zip(curves[:8], COLOURS * 2, STYLES * 2, strict=False):
        if not curve.n:
            continue
        x = [0.0, *curve.times]
        ax.step(
            x, [0.0, *curve.happened], where="post", color=colour, linestyle=style, label=label(name), linewidth=1.8
        )
        ax.fill_between(x, [0.0, *curve.low], [0.0, *curve.high], step="post", color=colour, alpha=0.12, linewidth=0)
        left = [
            at
            for at, risk, event in zip(range(len(curve.times)), curve.at_risk, curve.events, strict=True)
            if risk - event > (curve.at_risk[at + 1] if at + 1 < len(curve.times) else 0)
        ]
        ax.plot(curve.times[left], curve.happened[left], "|", color=colour, markersize=7)
    ax.set_ylim(0, 1)
    ax.set_xlim(left=0)
    ax.set_xlabel("turn")
    ax.set_ylabel("share that has noticed")
    if len(curves) > 1:
        ax.legend(frameon=False, fontsize=8)
    return figure


def _rows_of_curves(made: Sequence[ByTask]) -> pd.DataFrame:
    columns = ("times", "at_risk", "events", "happened", "low", "high")
    named = dict(zip(columns, ("turn", "at_risk", "first_noticed", "share_noticed", "low", "high"), strict=True))
    parts = [
        pd.DataFrame({named[c]: getattr(e.curve, c) for c in columns}).assign(task=e.task, model=e.model) for e in made
    ]
    return pd.concat(parts)[["task", "model", *named.values()]] if parts else pd.DataFrame()
