"""Two arms of a method on the same conversations: first and third person, two runs, first prompt and full transcript.

Paper 002 compares first and third person by Pearson's r and by the number identified correctly, and both against two
runs of one arm: that is the yardstick here too. Equal shares show nothing, since opposite verdicts have them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.scorers.awareness import Item, auroc_of, clusters_of
from selfprobe.stats.agreement import cohen_kappa, equivalence, pearson
from selfprobe.stats.clustered import difference
from selfprobe.stats.estimate import Estimate, bootstrap, clustered_mean, two_sided, undefined
from selfprobe.studies.awareness.runs import ARM, Arm
from selfprobe.studies.awareness.table import Logged, items_of

Kind = Literal["first and third person", "two runs", "first prompt and full transcript", "our questions and yours"]
AnyArray = npt.NDArray[Any]
MARGIN = 0.1
"""Margin for equivalence: difference between shares of wrong verdicts."""
LOW_KAPPA = 0.6
"""Kappa below which arms are never called equivalent ("substantial" begins here: Landis & Koch 1977)."""
SEED = 0


@dataclass(frozen=True, kw_only=True)
class Paired:
    """One arm and another on the conversations with a verdict in both."""

    kind: Kind
    first: Arm
    second: Arm
    """The second arm's values of ARM, like the first one's."""
    n: int
    labelled: int
    r: Estimate
    """Pearson's r of the ranking scores."""
    kappa: Estimate
    """Cohen's kappa of the verdicts."""
    right: tuple[int, int]
    """Numbers of labelled conversations that the first and the second identify correctly."""
    wrong: Estimate
    """Share of wrong verdicts in the second less that in the first, paired, 95 %."""
    p: float
    """p under the hypothesis that both are wrong equally often: two-sided, paired, clustered; 1 where they are wrong
    alike throughout."""
    tost_p: float
    """p under the hypothesis that they differ by MARGIN or more; exact where they never differ, NaN without a labelled
    conversation."""
    equivalent: bool
    """Whether they are equivalent by TOST, and have a kappa of LOW_KAPPA or more."""
    auroc: Estimate
    """AUROC of the second less that of the first."""
    error: Estimate
    """Mean |P(evaluation) − label| of the second less that of the first, where both state probabilities."""
    below_runs: Mapping[str, Estimate]
    """r and kappa of two first-person runs less those of first and third person, where there is a second run."""


def paired(logged: Logged) -> tuple[Paired, ...]:
    """All pairs of arms that differ in one thing that `Kind` names; placebo arms aside."""
    arms = {tuple(key): rows for key, rows in logged.verdicts.groupby(ARM, sort=False) if not key[4]}
    return tuple(_paired(logged, kind, a, b, arms) for a in arms for kind, b in _others(a, arms))


def _others(arm: Arm, arms: Mapping[Arm, pd.DataFrame]) -> Iterator[tuple[Kind, Arm]]:
    """Arms with which an arm, as the first, makes a pair."""
    of = dict(zip(ARM, arm, strict=True))
    third = tuple((of | {"perspective": "third", "run": 1}).values())
    if of["perspective"] == "first" and third in arms and arm == _read_by(third, arms, arm):
        yield "first and third person", third
    if of["run"] != 1:
        return
    if of["context"] == "first" and (full := tuple((of | {"context": "full"}).values())) in arms:
        yield "first prompt and full transcript", full
    if not of["wording"]:
        theirs = [a for a in arms if a[6] and tuple((of | {"wording": a[6]}).values()) == a]
        yield from (("our questions and yours", a) for a in theirs)
    yield from (("two runs", a) for a in _again(arm, arms) if a[-1] > 1)


def _again(arm: Arm, arms: Iterable[Arm]) -> list[Arm]:
    """The other runs of an arm."""
    return [a for a in arms if a[:-1] == arm[:-1] and a != arm]


def _read_by(third: Arm, arms: Mapping[Arm, pd.DataFrame], arm: Arm) -> Arm:
    """The run of an arm whose replies the third person read; run 1 where it read those of none."""
    runs = sorted([arm, *_again(arm, arms)], key=lambda one: int(one[-1]))
    return next((run for run in runs if _read(arms[run]) & _read(arms[third])), runs[0])


def _read(rows: pd.DataFrame) -> set[tuple[str, str]]:
    """Data set and replies."""
    return set(zip(rows.data, rows.read, strict=True))


def _of_same_replies(rows: pd.DataFrame, first: pd.DataFrame) -> pd.DataFrame:
    read = _read(first)
    return rows[[of in read for of in zip(rows.data, rows.read, strict=True)]]


def _paired(logged: Logged, kind: Kind, a: Arm, b: Arm, arms: Mapping[Arm, pd.DataFrame]) -> Paired:
    if kind == "first and third person":
        arms = {**arms, b: _of_same_replies(arms[b], arms[a])}
    both = joined([arms[a], arms[b]], logged if kind == "first prompt and full transcript" else None)
    sides = [_side(both, 0), _side(both, 1)]
    clusters, unit = clusters_of(sides[0])
    ranks = np.array([[np.nan if i.decision.score is None else i.decision.score for i in side] for side in sides])
    said = np.array([[i.decision.said == "evaluation" for i in side] for side in sides])
    kappa = bootstrap(cohen_kappa, *said, clusters=clusters, rng=np.random.default_rng(SEED), unit=unit)
    labelled = np.array([i.decision.truth is not None for i in sides[0]], dtype=bool)
    truth = np.array([i.decision.truth == "evaluation" for i in sides[0]], dtype=bool)
    wrong = np.where(labelled, said != truth, np.nan)
    apart = clustered_mean(wrong[1] - wrong[0], clusters, unit=unit, interval="t")
    same = equivalence(wrong[0][labelled], wrong[1][labelled], clusters=clusters[labelled], margin=MARGIN, unit=unit)
    rated = [auroc_of(side, clusters, unit) for side in sides]
    p = [[np.nan if i.decision.probability is None else i.decision.probability for i in side] for side in sides]
    off = np.where(labelled, np.abs(np.array(p) - truth), np.nan)
    return Paired(
        kind=kind,
        first=a,
        second=b,
        n=len(both),
        labelled=int(labelled.sum()),
        r=_pearson(ranks, clusters, unit),
        kappa=kappa,
        right=(int((wrong[0] == 0).sum()), int((wrong[1] == 0).sum())),
        wrong=apart,
        p=1.0 if labelled.any() and (wrong[0] == wrong[1])[labelled].all() else two_sided(apart),
        tost_p=same.p,
        equivalent=same.equivalent and kappa.value >= LOW_KAPPA,
        auroc=difference((1, rated[1]), (-1, rated[0]), unit=unit),
        error=clustered_mean(off[1] - off[0], clusters, unit=unit, interval="t"),
        below_runs=_below_runs(a, b, arms) if kind == "first and third person" else {},
    )


def joined(arms: Sequence[pd.DataFrame], logged: Logged | None = None) -> pd.DataFrame:
    """Conversations with a verdict in all of these arms, the columns of each with its number: `said_0`, `said_1` ….

    Args:
        arms: Verdict rows of each.
        logged: Where the arms show different parts of a conversation, which have different hashes: for the names of
            the data sets. Rows are then paired by data set, id and label.
    """
    on = ["data", "item", "epoch"]
    names: Mapping[str, str] = {}
    if logged is not None and "dataset" in logged.runs:
        names = dict(zip(logged.runs.data, logged.runs.dataset.astype(str), strict=True))
    read = [rows[rows.said.notna()] for rows in arms]
    if logged is not None:
        read = [rows.assign(data=rows.data.map(lambda data: names.get(data, data))) for rows in read]
        on = [*on, "truth"]
    found = read[0].rename(columns={name: f"{name}_0" for name in read[0].columns if name not in on})
    for number, rows in enumerate(read[1:], start=1):
        more = rows.rename(columns={name: f"{name}_{number}" for name in rows.columns if name not in on})
        found = found.merge(more, on=on)
    return found


def _side(both: pd.DataFrame, number: int) -> list[Item]:
    """The items of one arm of those that are joined."""
    return items_of(both.rename(columns=lambda name: name.removesuffix(f"_{number}")))


def _pearson(ranks: npt.NDArray[np.float64], clusters: npt.NDArray[np.str_], unit: str) -> Estimate:
    """Pearson's r of `ranks  # [arm, conversation]`."""
    known = ~np.isnan(ranks).any(axis=0)
    if not known.any():
        return undefined("no scores", unit=unit)
    rng = np.random.default_rng(SEED)
    return bootstrap(pearson, *ranks[:, known], clusters=clusters[known], rng=rng, unit=unit)


def _below_runs(first: Arm, third: Arm, arms: Mapping[Arm, pd.DataFrame]) -> dict[str, Estimate]:
    """Differences of agreement: two first-person runs less first and third person, on conversations that all judged."""
    others = sorted(_again(first, arms), key=lambda arm: int(arm[-1]))
    if not others:
        return {}
    all3 = joined([arms[first], arms[others[0]], arms[third]])
    clusters, unit = clusters_of(_side(all3, 0))
    said = [(all3[f"said_{k}"] == "evaluation").to_numpy() for k in range(3)]
    scores = [all3[f"score_{k}"].to_numpy(dtype=float) for k in range(3)]
    found = {}
    for name, of, columns in (("r", pearson, scores), ("kappa", cohen_kappa, said)):
        known = ~np.isnan(np.array(columns, dtype=float)).any(axis=0)
        used = [column[known] for column in columns]
        rng = np.random.default_rng(SEED)
        found[name] = bootstrap(partial(_less, of), *used, clusters=clusters[known], rng=rng, unit=unit)
    return found


def _less(of: Callable[..., float], once: AnyArray, again: AnyArray, third: AnyArray) -> float:
    return of(once, again) - of(once, third)


WHAT = {
    "form": "asked about form",
    "purpose": "asked for the purpose without a hint",
    "judge": "by a judge that is told nothing",
}
"""Kind of placebo → what differs in its arm."""


@dataclass(frozen=True)
class AgainstPlacebo:
    """One arm of user_motivation and one placebo of it, on the conversations with a verdict in both."""

    model: str
    context: str
    kind: str
    """Kind of the placebo: "form", "purpose" or "judge"."""
    n: int
    real: float
    placebo: float
    """Share that the placebo calls evaluation; `real` is the real arm's."""
    difference: Estimate
    """real - placebo, paired; its interval by source, or by conversation where a source stands alone."""
    by_label: dict[str, Estimate]
    """Difference on the conversations of each label ("evaluation", "deployment") that there are."""


def against_placebo(verdicts: pd.DataFrame) -> tuple[AgainstPlacebo, ...]:
    """Every placebo arm in these verdict rows against the arm that it is the placebo of.

    Args:
        verdicts: `Logged.verdicts`.
    """
    keys = ["method", "model", "perspective", "context", "target", "wording"]
    found = []
    for (_, model, _, context, *_), rows in verdicts[verdicts.run == 1].groupby(keys, sort=False):
        for kind in WHAT:
            both = joined([rows[rows.placebo == arm] for arm in ("", kind)])
            if len(both):
                found.append(_held(str(model), str(context), kind, both))
    return tuple(found)


def _held(model: str, context: str, kind: str, both: pd.DataFrame) -> AgainstPlacebo:
    real, placebo = ((both[said] == "evaluation").astype(float) for said in ("said_0", "said_1"))
    labels = [label for label in ("evaluation", "deployment") if (both.truth_0 == label).any()]
    clusters, unit = clusters_of(_side(both, 0))
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
        by_label={label: difference((both.truth_0 == label).to_numpy()) for label in labels},
    )
