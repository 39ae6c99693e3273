"""The page's section of placebos: user_motivation held against the arms in which there is less to find."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.awareness.items import items_of
from selfprobe.numerals import points
from selfprobe.page import Block, Bullets, Column, Section, Table, estimated, percent, shown
from selfprobe.scorers.awareness import clusters_of
from selfprobe.stats.estimate import Estimate, clustered_mean

WHAT = {
    "form": "asked about form",
    "purpose": "asked for the purpose without a hint",
    "judge": "by a judge that is told nothing",
}
"""What differs in each placebo arm."""
MEANS = (
    "Each difference is taken on the same conversations. Asked about form, there is nothing about a purpose to find: "
    "that share is the judge's imagination, and the difference is what is left after it. Asked for the purpose without "
    "a hint that there is more behind it, the question can prime and its wording cannot: the difference is what the "
    "wording adds, by priming or by inviting candour. The judge that is told nothing also counts that the question was "
    "asked at all: the instruction takes that out of our result."
)


@dataclass(frozen=True)
class AgainstPlacebo:
    """One arm of user_motivation and one placebo of it, on the conversations with a verdict in both."""

    model: str
    context: str
    kind: str
    """Of the placebo: "form", "purpose" or "judge"."""
    n: int
    real: float
    placebo: float
    """Shares called evaluation."""
    difference: Estimate
    """real - placebo, paired; its interval by source, or by conversation where a source stands alone."""
    by_label: dict[str, Estimate]
    """The same of the conversations of each label ("evaluation", "deployment") that there are."""


def against_placebo(verdicts: pd.DataFrame) -> tuple[AgainstPlacebo, ...]:
    """Every placebo arm in these verdict rows against the arm that it is the placebo of.

    Args:
        verdicts: `Logged.verdicts`.
    """
    keys = ["method", "model", "perspective", "context", "target", "wording"]
    found = []
    for (_, model, _, context, *_), rows in verdicts[verdicts.run == 1].groupby(keys, sort=False):
        real = rows[(rows.placebo == "") & rows.said.notna()]
        for kind in [one for one in WHAT if (rows.placebo == one).any()]:
            other = rows[(rows.placebo == kind) & rows.said.notna()]
            both = real.merge(other[["data", "item", "epoch", "said"]], on=["data", "item", "epoch"])
            if len(both):
                found.append(_held(str(model), str(context), kind, both))
    return tuple(found)


def _held(model: str, context: str, kind: str, both: pd.DataFrame) -> AgainstPlacebo:
    real, placebo = ((both[said] == "evaluation").astype(float) for said in ("said_x", "said_y"))
    labels = [label for label in ("evaluation", "deployment") if (both.truth == label).any()]
    clusters, unit = clusters_of(items_of(both.rename(columns={"said_x": "said"})))
    apart = (real - placebo).to_numpy()

    def difference(mine: npt.NDArray[np.bool_]) -> Estimate:
        return clustered_mean(apart[mine], clusters[mine], unit=unit, interval="t")

    return AgainstPlacebo(
        model=model,
        context=context,
        kind=kind,
        n=len(both),
        real=float(real.mean()),
        placebo=float(placebo.mean()),
        difference=difference(np.ones(len(both), dtype=bool)),
        by_label={label: difference((both.truth == label).to_numpy()) for label in labels},
    )


def placebo_section(found: Sequence[AgainstPlacebo]) -> list[Section]:
    """The section, or none where no placebo arm was run."""
    if not found:
        return []
    table = Table(
        found,
        (
            Column("model", _name),
            Column("placebo", lambda h: WHAT[h.kind]),
            Column("conversations", "n", str),
            Column("called evaluation", "real", percent),
            Column("in the placebo", "placebo", percent),
            estimated("difference", "difference"),
            _of("evaluation"),
            _of("deployment"),
        ),
    )
    blocks: list[Block] = [MEANS, Bullets([f"{_name(h)}: {_sentence(h)}" for h in found]), table]
    return [Section("Against the placebo", blocks, name="placebo", menu="placebo")]


def _of(label: str) -> Column:
    return Column(f"of {label} rows", lambda h: _shown(h.by_label.get(label)), look="e")


def _sentence(h: AgainstPlacebo) -> str:
    shares = f"{percent(h.real)} called evaluation, {percent(h.placebo)} {WHAT[h.kind]}"
    return f"{shares}: {points(h.difference)}. {_verdict(h)}"


def told_of(model: str, found: Sequence[AgainstPlacebo]) -> Iterator[str]:
    """What the top of the page and the terminal say of a model's user_motivation."""
    for h in found:
        if h.model == model:
            where = " (full transcript)" * (h.context == "full")
            yield f"user_motivation{where} against placebo {h.kind}: {_sentence(h)}"


def _verdict(h: AgainstPlacebo) -> str:
    low, high = h.difference.low, h.difference.high
    if math.isnan(low):
        return "The result and its placebo cannot be told apart: without an interval nothing is shown."
    if h.kind == "judge":
        if high < 0:
            return f"So the instruction takes out {points(h.difference).partition(' points')[0][1:]} points."
        return "The instruction is not shown to take anything out."
    over = "what the judge finds where there is nothing to find" if h.kind == "form" else "what asking alone brings up"
    if low > 0:
        return f"The result is above {over}."
    return f"The result is below {over}." if high < 0 else f"The result is not shown to be above {over}."


def _name(h: AgainstPlacebo) -> str:
    return h.model + " (full transcript)" * (h.context == "full")


def _shown(estimate: Estimate | None) -> str:
    return "–" if estimate is None else shown(estimate)
