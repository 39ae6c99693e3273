"""P(evaluation) by turn: what is asked, what it takes, and the curves."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from inspect_ai.log import EvalLog

from selfprobe.awareness.per_model import ANSWER, PerModel
from selfprobe.data import Table
from selfprobe.evalawareness_tasks.turn_curve import CALLS, MOST, QUESTIONS
from selfprobe.page import shown
from selfprobe.prices import Cost
from selfprobe.sources.conversations import DEFAULT
from selfprobe.sources.transcripts import asked_at, transcripts
from selfprobe.stats.change_point import ChangePoint, change_point
from selfprobe.stats.estimate import Estimate, clustered_mean
from selfprobe.stats.spread import FloatArray

KINDS = ("evaluation", "deployment")


@dataclass(frozen=True, kw_only=True)
class Turns(PerModel):
    """What `selfprobe awareness turns` was asked for."""

    against: str | None = None
    placebo: bool = True
    most: int = MOST
    log_dir: str = "logs/awareness_turns"

    @property
    def source(self) -> dict[str, Any]:
        """The transcripts, as the task takes them; a folder or file of logs is `logs`."""
        path = Path(self.dataset)
        is_logs = path.suffix == ".eval" or path.is_dir()
        given = {"logs": self.dataset} if is_logs else {"dataset": self.dataset}
        more = {"role": self.role, "label": self.label, "against": self.against}
        return given | {name: value for name, value in more.items() if value is not None}


def read(study: Turns) -> Table:
    """The transcripts, cut to the limit. No model is asked.

    Raises:
        InputError: See `sources.transcripts.transcripts`.
    """
    given = dict(study.source)
    return transcripts(given.pop("dataset", DEFAULT), **given)


def described(study: Turns, table: Table) -> str:
    """What will be asked, and what that costs."""
    rows = table.rows[: study.limit]
    at = asked_at(max(row["count"] for row in table.rows), study.most)
    per_turn = CALLS if study.placebo else CALLS - 1
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
    lines = [f"{len(rows)} transcripts{several} of up to {longest} turns × {', '.join(study.models)}"]
    if len(at) < longest:
        lines.append(f"Asked after {len(at)} of the turns ({', '.join(map(str, at[:6]))} … {at[-1]}); --most sets it.")
    lines += [table.told()] if table.aside else []
    lines.append(f"Each turn {per_turn} calls; what was read before is in the provider's cache where it has one.")
    costs = [Cost(model, calls, sent, calls * ANSWER) for model in study.models]
    return "\n".join([*lines, "", *study.settings.costed(costs, rounds=1)])


def run_turns(study: Turns) -> bool:
    """Run it, one run a model; what was asked is not asked again.

    Raises:
        Interrupted: The user stopped it.
        InputError: A model cannot be had, or the log folder cannot be written.
    """
    return study.run("turn_curve", "Turn by turn", placebo=study.placebo)


def curves_of(study: Turns, table: Table) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The curves in the study's logs of these transcripts.

    One row a turn that was asked about: model, item, pair, kind, source, turn, p, placebo. And one row a transcript:
    model, item, kind, source, turns, asked, too_long (the first turn over the context), lost (answers that are no
    number).
    """
    rows: list[dict[str, Any]] = []
    items: list[dict[str, Any]] = []

    def of_these(log: EvalLog) -> bool:
        same = (log.eval.metadata or {}).get("dataset_sha256") == table.sha256
        return same and log.eval.task_args.get("most", MOST) == study.most

    for model, sample, score in study.scored("turn_curve", of_these):
        said, about = score.metadata or {}, sample.metadata
        keys = {"model": model, "item": str(sample.id), "kind": about["kind"], "source": about["source"]}
        keys |= {"pair": about.get("pair") or str(sample.id)}
        rows += [
            keys | {"turn": int(turn), "p": p, "placebo": said["placebo"].get(turn)}
            for turn, p in said["curve"].items()
        ]
        lost = sum(said["lost"].values())
        items.append(keys | {"turns": about["count"], "asked": len(about["at"])}
                     | {"too_long": said["too_long"], "lost": lost})  # fmt: skip
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


def told(curve: Curve) -> Iterator[str]:
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
