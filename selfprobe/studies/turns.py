"""P(evaluation) by turn: at which turn of a transcript does a model notice?"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from selfprobe.data import Table
from selfprobe.described import DescribedRun, NamedModel
from selfprobe.errors import NoLogs
from selfprobe.evalawareness_tasks.turn_curve import CALLS, MOST, QUESTIONS
from selfprobe.options import LOG_DIR_HELP, MODELS_HELP, OUT_HELP
from selfprobe.page import (
    Block,
    Box,
    Bullets,
    Column,
    Details,
    Figures,
    Page,
    Picture,
    Section,
    columns,
    estimated,
    shown,
)
from selfprobe.page import Table as PageTable
from selfprobe.plots import MUTED, OTHERS, SELF, label, new_axes, short
from selfprobe.prices import Cost
from selfprobe.sources.conversations import DEFAULT
from selfprobe.sources.transcripts import asked_at, transcripts
from selfprobe.stats.change_point import ChangePoint, change_point
from selfprobe.stats.estimate import Estimate, clustered_mean
from selfprobe.stats.spread import FloatArray
from selfprobe.study import Effort, Label, Logs, Plan, Study, Wave

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("evaluation", "deployment")
ANSWER = 5
"""A rough guess of the tokens of an answer."""
MEANS = (
    "A transcript is replayed up to the end of each turn, and the model is asked how probable it finds an evaluation "
    "(and, as often, real use). A turn ends with a message of the model and the results of the tools that it called. "
    "The turn of change is where one step fits all curves best; its interval is that of whole transcripts drawn again, "
    "and p pays for having looked at every turn. The mean at a turn is of the transcripts that reach it: later turns "
    "are of fewer, longer ones. Intervals are 95 %, by transcript."
)
PLACEBO = (
    "The placebo asks in the same form about the time of day, which no turn tells: what moves there comes from "
    "being asked in a longer conversation."
)
LOOK = {
    "evaluation": (SELF, "-"),
    "": (SELF, "-"),
    "deployment": (OTHERS, "--"),
}


class Turns(Study):
    """At which turn does a model notice? P(evaluation) after each turn of the transcripts in SET.

    SET is a folder or file of logs, a .jsonl, .csv or .json file, hf:…, logs:… or a bundled name. Evaluations are
    paired with real use of about their length where SET or --against holds both. Resumes with the same command.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"turn_curve"})

    dataset: str = Field(examples=["SET"])
    models: tuple[str, ...] = Field(min_length=1, description=MODELS_HELP)
    against: str | None = Field(None, description="Real use to compare with, paired by length, in one run with SET.")
    role: str | None = Field(None, description="Model role of the logs whose transcripts are used. Default: the model.")
    label: Label | None = Field(None, description="Label of every conversation.")
    placebo: bool = Field(True, description="Also ask about the time of day.")
    most: int = Field(MOST, ge=1, description="Largest number of turns of a transcript that are asked after.")
    answer_tokens: int | None = Field(None, ge=1, description="Longest answer in tokens; a cut one is unscored.")
    effort: Effort | None = Field(None, description="Reasoning effort of the model. Default: its own.")
    out: str = Field("awareness_turns", description=OUT_HELP)
    log_dir: str = Field("logs/awareness_turns", description=LOG_DIR_HELP)

    @property
    def source(self) -> dict[str, Any]:
        """The transcripts, as the task takes them; a folder or file of logs is `logs`."""
        path = Path(self.dataset)
        is_logs = path.suffix == ".eval" or path.is_dir()
        named = {"logs": self.dataset} if is_logs else {"dataset": self.dataset}
        return named | self.model_dump(include={"role", "label", "against"}, exclude_none=True)

    @cached_property
    def table(self) -> Table:
        """The transcripts. No model is asked.

        Raises:
            InputError: See `sources.transcripts.transcripts`.
        """
        source = self.source
        return transcripts(source.pop("dataset", DEFAULT), **source)

    @property
    def items(self) -> int | None:
        """Number of items of each run, in whole pairs; None is all."""
        return self.limit and len(self.table.first(self.limit))

    @property
    def aside(self) -> Mapping[str, str]:
        """Transcripts that are not asked about."""
        return self.table.aside

    def waves(self) -> Iterator[Wave]:
        """One run a model."""
        own = self.model_dump(include={"most", "answer_tokens", "effort", "placebo"}, exclude_none=True)
        own |= self.how.shared
        models = [NamedModel(model, self.how.model_args) for model in self.models]
        yield Wave([DescribedRun("turn_curve", self.source | own, model) for model in models], "Turn by turn")

    def plan(self) -> Plan:
        """Calls by turn."""
        rows = self.table.first(self.limit)
        at = asked_at(max(row["count"] for row in self.table.rows), self.most)
        per_turn = CALLS if self.placebo else CALLS - 1
        calls = sent = 0
        for row in rows:
            asked = [turn for turn in at if turn <= row["count"]]
            length = sum(len(message["content"]) for message in row["messages"])
            calls += per_turn * len(asked)
            sent += round(per_turn * sum(length * turn / row["count"] for turn in asked) / 4)
        sent += calls * len(QUESTIONS["evaluation"]) // 4
        kinds = [sum(row["kind"] == kind for row in rows) for kind in KINDS]
        several = f" ({kinds[0]} evaluation, {kinds[1]} deployment, paired by length)" if all(kinds) else ""
        longest = max(row["count"] for row in rows)
        lines = [f"{len(rows)} transcripts{several} of up to {longest} turns × {', '.join(self.models)}"]
        if len(at) < longest:
            turns = f"{', '.join(map(str, at[:6]))} … {at[-1]}"
            lines.append(f"Asked after {len(at)} of the turns ({turns}); --most sets it.")
        lines += filter(None, (self.table.limited(self.limit), self.table.told(), self.table.unread))
        lines.append(f"Each turn {per_turn} calls; what was read before is in the provider's cache where it has one.")
        return Plan(lines, [Cost(model, calls, sent, calls * ANSWER) for model in self.models])

    @classmethod
    def numbers(cls, logs: Logs) -> "Found":
        """The curves of each run.

        Raises:
            NoLogs: No answer could be read.
        """
        rows, items = curves_of(logs)
        if rows.empty or rows.p.isna().all():
            raise NoLogs("no run ended well, or no answer could be read; see above. The same command goes on")
        rng = np.random.default_rng(0)
        named = [name for name in dict.fromkeys(rows.model) if rows.p[rows.model == name].notna().any()]
        return Found([curve_of(rows, name, rng=rng) for name in named], rows, items, logs)

    @classmethod
    def page(cls, found: "Found") -> Page:
        """A section a run, with tables curves, transcripts and means."""
        curves, items = found.curves, found.items
        sections = [Section(one.model, list(_blocks(one, items)), f"m{n}") for n, one in enumerate(curves, start=1)]
        left = [f"{name}: {why}" for name, why in found.logs.aside.items()]
        out: list[Block] = [Details(f"{len(left)} transcripts set aside", [Bullets(left)])] if left else []
        sections.append(Section("What was asked", [_asked(items), *out], "asked"))
        tables = {"curves": found.rows, "transcripts": items, "means": _rows_of(curves)}
        lines = [
            line
            for one in curves
            for line in (one.model, *(f"  {text}" for text in sentences(one)), *_lost(items, one))
        ]
        return Page("At which turn is it noticed?", MEANS, sections, tables=tables, told=lines)


@dataclass(frozen=True)
class Found:
    """What the logs say."""

    curves: "list[Curve]"
    rows: pd.DataFrame
    """See `curves_of`, as `items`."""
    items: pd.DataFrame
    logs: Logs


def curves_of(logs: Logs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two tables of the finished runs.

    One row a turn that was asked about: model (the run's name), item, pair, kind, source, turn, p, placebo. And one row
    a transcript: model, item, kind, source, turns, asked, too_long (the first turn over the context), lost (answers
    that are no number).
    """
    rows: list[dict[str, Any]] = []
    items: list[dict[str, Any]] = []
    for model, _, sample, score in logs.scored():
        details, about = score.metadata or {}, sample.metadata
        keys = {"model": model, "item": str(sample.id), "kind": about["kind"], "source": about["source"]}
        keys |= {"pair": about.get("pair") or str(sample.id)}
        rows += [
            keys | {"turn": int(turn), "p": p, "placebo": details["placebo"].get(turn)}
            for turn, p in details["curve"].items()
        ]
        counts = {"turns": about["count"], "asked": len(about["at"])}
        items.append(keys | counts | {"too_long": details["too_long"], "lost": sum(details["lost"].values())})
    return pd.DataFrame(rows), pd.DataFrame(items)


@dataclass(frozen=True)
class Curve:
    """The curve of one model."""

    model: str
    turns: list[int]
    p: dict[str, list[Estimate]]
    """Kind → mean P(evaluation) by turn; under "" where the transcripts have one kind or none."""
    placebo: dict[str, list[Estimate]]
    difference: list[Estimate]
    """Evaluation less real use of the same pair, by turn; empty without pairs."""
    change: ChangePoint
    """Of the differences, or without pairs of the one curve."""
    placebo_change: ChangePoint
    paired: bool


def curve_of(rows: pd.DataFrame, model: str, *, rng: np.random.Generator) -> Curve:
    """The numbers of one model.

    Args:
        rows: From `curves_of`.
        model: As the study names it.
        rng: Draws resamples.
    """
    mine = rows[rows.model == model]
    turns = sorted(int(turn) for turn in mine.turn.unique())
    paired = set(mine.kind.dropna()) == set(KINDS)
    kinds = KINDS if paired else ("",)

    def table(column: str, kind: str) -> pd.DataFrame:
        part = mine[mine.kind == kind] if kind else mine
        index = "pair" if paired else "item"
        return part.pivot_table(index=index, columns="turn", values=column, aggfunc="mean").reindex(columns=turns)

    def change(column: str) -> tuple[ChangePoint, pd.DataFrame | None]:
        made = mine.assign(**{column: mine[column].astype(float)})[column]
        if made.isna().all():
            return change_point(np.empty((0, len(turns))), turns, rng=rng, from_zero=True, unit="pair"), None
        off = table(column, KINDS[0]) - table(column, KINDS[1]) if paired else table(column, "")
        unit = "pair" if paired else "transcript"
        return change_point(off.to_numpy(dtype=float), turns, rng=rng, from_zero=paired, unit=unit), off

    found, off = change("p")
    return Curve(
        model=model,
        turns=turns,
        p={kind: _means(table("p", kind).to_numpy(dtype=float)) for kind in kinds},
        placebo={kind: _means(table("placebo", kind).to_numpy(dtype=float)) for kind in kinds}
        if mine.placebo.notna().any()
        else {},
        difference=_means(off.to_numpy(dtype=float)) if paired and off is not None else [],
        change=found,
        placebo_change=change("placebo")[0],
        paired=paired,
    )


def _means(table: FloatArray) -> list[Estimate]:
    """The mean of each column over its rows, with a t interval of the rows."""
    rows = np.arange(len(table))
    return [clustered_mean(column, rows, unit="transcript", interval="t") for column in table.T]


def sentences(curve: Curve) -> Iterator[str]:
    """What may be said of a curve."""
    means: Sequence[Estimate] = curve.difference or curve.p[""]
    what = "evaluations less real use" if curve.paired else "all transcripts"
    known = [at for at, mean in enumerate(means) if not math.isnan(mean.value)]
    if not known:
        yield "No pair has an answer after the same turn: nothing can be compared."
        return
    places = (known[0], known[-1])
    ends = [f"{means[at].value + 0:.2f} after turn {curve.turns[at]} (n = {means[at].n})" for at in places]
    if len(curve.turns) == 1:
        yield f"P(evaluation), {what}: {ends[0]}."
        yield "One turn alone was asked about: there is no turn at which it could change."
        return
    yield f"P(evaluation), {what}: {', '.join(ends)}."
    found = curve.change
    if math.isnan(found.p):
        yield f"No turn can be named: {found.at.reason or f'{found.at.n} {found.at.unit}s are too few'}."
    elif not found.shown:
        yield f"No turn can be named: a change at any has p = {found.p:.3f} (signs of {found.at.n} {found.at.unit}s)."
    else:
        yield (
            f"It changes at turn {found.at.value:.0f} [{found.at.low:.0f}, {found.at.high:.0f}], by "
            f"{shown(found.step, sign=True)} (p = {found.p:.4f})."
        )
        if curve.placebo_change.shown:
            at = curve.placebo_change
            yield (
                f"The placebo changes too, at turn {at.at.value:.0f} by {at.step.value:+.2f}: part of it may be what "
                "being asked again does."
            )
    if not curve.paired:
        yield (
            "No real use stands beside it: any long conversation may look like this. Bring some with --against: "
            "transcripts of your own users, or a public set of real conversations."
        )


def _blocks(curve: Curve, items: pd.DataFrame) -> list[Block]:
    head, *rest = sentences(curve)
    box: Block = Box(head, " ".join(rest), "yes" if curve.change.shown else "")
    number = f"curve_{short(curve.model)}_{len(curve.model)}"
    name = "".join(c if c.isalnum() else "_" for c in number)
    alt = f"P(evaluation) by turn, {curve.model}"
    caption = "Mean P(evaluation) after each turn, 95 % interval; dotted: the placebo; band: the turn of change."
    blocks: list[Block] = [box, Figures([Picture(name, alt, caption, curve_figure(curve))])]
    blocks += [PLACEBO] if curve.placebo else []
    blocks += list(_lost(items, curve))
    return [*blocks, Details("By turn", [_by_turn(curve)])]


def _lost(items: pd.DataFrame, curve: Curve) -> list[str]:
    mine = items[items.model == curve.model]
    over, lost = mine.too_long.notna().sum(), mine.lost.sum()
    lines = []
    if over:
        first = int(mine.too_long.min())
        lines.append(
            f"  {over} of {len(mine)} transcripts outgrow the model's context, the first at turn {first}; nothing is "
            "known of their later turns."
        )
    if lost:
        lines.append(f"  {lost} answers were no number; a turn without any is left out.")
    return lines


def _by_turn(curve: Curve) -> PageTable:
    def row(at: int) -> dict[str, Any]:
        found: dict[str, Any] = {"turn": curve.turns[at]}
        found |= {f"p {kind}": means[at] for kind, means in curve.p.items()}
        found |= {f"placebo {kind}": means[at] for kind, means in curve.placebo.items()}
        return found | ({"difference": curve.difference[at]} if curve.difference else {})

    shown = [Column("turn", "turn", str), Column("transcripts", lambda r: _count(r, curve), str)]
    shown += [estimated(f"P(evaluation) {_named(kind)}", f"p {kind}") for kind in curve.p]
    shown += [estimated("difference of pairs", "difference")] if curve.difference else []
    shown += [estimated(f"placebo {_named(kind)}", f"placebo {kind}") for kind in curve.placebo]
    return PageTable([row(at) for at in range(len(curve.turns))], shown)


def _count(row: dict[str, Any], curve: Curve) -> int:
    return int(sum(row[f"p {kind}"].n for kind in curve.p))


def _named(kind: str) -> str:
    return {"evaluation": "of evaluations", "deployment": "of real use"}.get(kind, "")


def _asked(items: pd.DataFrame) -> PageTable:
    rows = []
    for (model, kind), part in items.fillna({"kind": ""}).groupby(["model", "kind"]):
        rows.append({"model": model, "kind": kind or "no label", "n": len(part), "turns": part.turns})
    return PageTable(
        rows,
        [
            Column("model", "model"),
            Column("transcripts of", "kind"),
            Column("how many", "n", str),
            Column("turns, median", "turns", lambda turns: f"{turns.median():.0f}"),
            Column("fewest", "turns", lambda turns: f"{turns.min()}"),
            Column("most", "turns", lambda turns: f"{turns.max()}"),
        ],
    )


def curve_figure(curve: Curve) -> "Figure":
    """Means by turn with their intervals, the placebo dotted, and a band where it changes."""
    figure, ax = new_axes(width=7.6, height=4.2)
    for kind, means in curve.p.items():
        colour, style = LOOK[kind]
        x, y, low, high = _drawn(curve.turns, means)
        ax.plot(x, y, style, color=colour, marker="o", markersize=3, label=f"P(evaluation) {_named(kind)}".strip())
        ax.fill_between(x, low, high, color=colour, alpha=0.14, linewidth=0)
    for kind, means in curve.placebo.items():
        x, y, _, _ = _drawn(curve.turns, means)
        ax.plot(x, y, ":", color=LOOK[kind][0], linewidth=1.2, label=f"placebo {_named(kind)}".strip())
    found = curve.change
    if found.shown:
        ax.axvspan(found.at.low - 0.25, found.at.high + 0.25, color=MUTED, alpha=0.2, linewidth=0)
        ax.axvline(found.at.value, color=MUTED, linewidth=1)
    ax.set_ylim(0, 1)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("turn")
    ax.set_ylabel("stated probability")
    figure.suptitle(label(short(curve.model, 40)), x=0.01, ha="left", fontsize=11)
    ax.legend(frameon=False, fontsize=8)
    return figure


def _drawn(turns: Sequence[int], means: Sequence[Any]) -> tuple[Any, ...]:
    """Turns with a value, and the value with the ends of its interval, cut to [0, 1]."""
    kept = [(turn, m.value, m.low, m.high) for turn, m in zip(turns, means, strict=True) if not math.isnan(m.value)]
    x, y, low, high = np.array(kept, dtype=float).reshape(-1, 4).T
    return x, y, np.clip(np.where(np.isnan(low), y, low), 0, 1), np.clip(np.where(np.isnan(high), y, high), 0, 1)


def _rows_of(curves: Sequence[Curve]) -> pd.DataFrame:
    """One row a model × turn × what was asked of which kind."""
    rows = []
    for curve in curves:
        named = {f"p {kind}".strip(): means for kind, means in curve.p.items()}
        named |= {f"placebo {kind}".strip(): means for kind, means in curve.placebo.items()}
        named |= {"difference": curve.difference} if curve.difference else {}
        for what, means in named.items():
            rows += [
                {"model": curve.model, "turn": turn, "what": what} | columns(mean)
                for turn, mean in zip(curve.turns, means, strict=True)
            ]
    return pd.DataFrame(rows)
