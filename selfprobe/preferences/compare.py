"""Runs of several models side by side: the numbers of paper 004's figures 1 to 23 and tables 1 and 2.

No model is asked and nothing is fitted: every number is one of a run's folder, a mean of such, or a count of them.

models        one row a run
scores        every method on every data set (figures 1 right, 12 to 23)
groups        means over the data sets of a group (figures 2, 3)
small_above_large  a small model's probe less a larger one's answers (§5.1); see `compare_words`
cases         in how many cases a probe is above asking and above the other probe (§5.1, §5.2)
depth         by layer, as a share of the model's blocks (figures 6, 7)
rise          where these curves jump, and where they come near their best (appendix A)
table1        probes of one data set on another (table 1); cosine: their directions (figure 5)
adversarial   LLMBar (figures 4, 8 to 11); drops: what its subsets take from a probe and from asking (§5.4)
table2        asking with a direction taken out (table 2)
components    the first two components of the contrast differences (figure 1 left)
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import pandas as pd

from selfprobe.preferences.compare_words import drops, mover, rise, small_above_large
from selfprobe.preferences.runs import Run
from selfprobe.stats.estimate import Estimate, undefined

GROUPS: Mapping[str, tuple[str, ...]] = {
    "text quality": ("newsroom", "summeval", "hanna"),
    "common sense": ("rocstories", "mctaco", "caters"),
}
"""What figures 2 and 3 average over."""
KINDS = ("supervised", "unsupervised")


@dataclass(frozen=True)
class Compared:
    """What several runs say together."""

    runs: Sequence[Run]
    tables: Mapping[str, pd.DataFrame]
    """By file stem; without those that no run has."""
    holes: Sequence[str]
    """What is missing, a sentence each."""


def compared(runs: Sequence[Run]) -> Compared:
    """The tables of these runs, and what is missing in them."""
    groups, scores, depth = _groups(runs), _scores(runs), _depth(runs)
    adversarial = _joined(runs, "adversarial")
    made = {
        "models": _models(runs),
        "scores": scores,
        "groups": groups,
        "cases": _cases(runs),
        "small_above_large": small_above_large(scores),
        "depth": depth,
        "rise": rise(depth),
        "table1": _table1(runs),
        "cosine": _joined(runs, "cosine"),
        "adversarial": adversarial,
        "drops": drops(adversarial),
        "table2": _joined(runs, "ablation"),
        "components": _joined(runs, "components"),
    }
    return Compared(runs, {name: table for name, table in made.items() if len(table)}, list(_holes(runs, groups)))


def mean_of(parts: Sequence[Estimate]) -> Estimate:
    """The mean of estimates from different data sets, which are independent.

    Its interval is MOVER's. Undefined where a part is.
    """
    n = sum(part.n for part in parts)
    if missing := [part for part in parts if math.isnan(part.value)]:
        return undefined(missing[0].reason or "a data set has no score", n=n, unit="question")
    reason = next((part.reason for part in parts if math.isnan(part.low) and part.reason), "")
    return replace(mover(*((1 / len(parts), part) for part in parts)), n=n, reason=reason)


def _estimate(row: pd.Series) -> Estimate:
    reason = row.get("reason", "")
    return Estimate(row.value, row.low, row.high, int(row.n), "question", reason if isinstance(reason, str) else "")


def _scores(runs: Sequence[Run]) -> pd.DataFrame:
    """The runs' methods and their fine-tuned judges, which are tested on the half that one split leaves."""
    methods, tuned = _joined(runs, "methods"), _joined(runs, "finetuned")
    return pd.concat([methods, tuned[~tuned.method.isin(methods.method)]], ignore_index=True) if len(tuned) else methods


def _joined(runs: Sequence[Run], name: str) -> pd.DataFrame:
    """A table of all runs under one another, with the models' names before; empty where none has it."""
    parts = [part for run in runs if len(part := run.table(name))]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _models(runs: Sequence[Run]) -> pd.DataFrame:
    rows = []
    for run in runs:
        loading = run.state.get("loading", {})
        rows.append(
            run.names
            | {"blocks": run.blocks, "asked_for": run.state["model"], "revision": run.state["revision"]}
            | {"dtype": loading.get("quantize") or loading.get("dtype", ""), "preset": run.state["settings"]["name"]}
            | {"aspects": run.state["settings"].get("aspects", "together")}
            | {"data_sets": ", ".join(run.state["datasets"]), "selfprobe": run.state.get("selfprobe", "")}
            | {"folder": str(run.folder)}
        )
    return pd.DataFrame(rows)


def _groups(runs: Sequence[Run]) -> pd.DataFrame:
    """group, data_sets, method, metric, value, low, high, n, unit, reason: undefined where a data set is missing."""
    rows = []
    for run in runs:
        methods = _scores([run]).drop(columns=list(run.names))
        for group, sets in GROUPS.items():
            there = methods[methods.dataset.isin(sets)]
            for (method, metric), part in there.groupby(["method", "metric"], sort=False):
                by_set = part.set_index("dataset")
                if missing := [name for name in sets if name not in by_set.index]:
                    found = undefined(f"no {', '.join(missing)}", n=int(part.n.sum()), unit="question")
                else:
                    found = mean_of([_estimate(by_set.loc[name]) for name in sets])
                named = {"group": group, "data_sets": ", ".join(sets), "method": method, "metric": metric}
                rows.append(run.names | named | asdict(found))
    return pd.DataFrame(rows)


def _cases(runs: Sequence[Run]) -> pd.DataFrame:
    """probe, against, metric, cases (of a model and data set), above, shown_above (interval over 0), shown_below."""
    every = _joined(runs, "differences")
    wanted = every[every.against.isin(("prompting", "unsupervised"))].dropna(subset=["value"])
    return pd.DataFrame(
        [
            {"probe": probe, "against": against, "metric": metric, "cases": len(part)}
            | {"above": int((part.value > 0).sum()), "shown_above": int((part.low > 0).sum())}
            | {"shown_below": int((part.high < 0).sum())}
            for (probe, against, metric), part in wanted.groupby(["probe", "against", "metric"], sort=False)
        ]
    )


def _depth(runs: Sequence[Run]) -> pd.DataFrame:
    """The runs' layers, with `depth`: the block's number (the first is 1) as a share of the model's blocks."""
    every = _joined(runs, "layers")
    blocks = {run.model: run.blocks for run in runs}
    return every.assign(depth=(every.layer + 1) / every.model.map(blocks))


def _table1(runs: Sequence[Run]) -> pd.DataFrame:
    """tested_on, trained_on, metric; the supervised and the unsupervised probe's value, low and high, and n."""
    every = _joined(runs, "transfer")
    if not len(every):
        return every
    keys = ["model", "family", "parameters", "tested_on", "trained_on", "metric"]
    sides = [
        every[every.probe == kind][[*keys, "value", "low", "high", "n"]].rename(
            columns={name: f"{kind}_{name}" for name in ("value", "low", "high")}
        )
        for kind in KINDS
    ]
    return sides[0].merge(sides[1].drop(columns="n"), on=keys)


def _holes(runs: Sequence[Run], groups: pd.DataFrame) -> Iterator[str]:
    """What some runs have and others do not, and what is drawn nowhere."""
    named = list(dict.fromkeys(name for run in runs for name in run.state["datasets"]))
    for name in named:
        if without := [run.model for run in runs if name not in run.state["datasets"]]:
            yield f"{name} was not run with {', '.join(without)}."
    if len(groups):
        probed = groups[groups.method.isin(KINDS)]  # a judge may be fine-tuned on some sets alone
        incomplete = probed[probed.reason.fillna("").str.startswith("no ")]
        for (group, model, reason), _ in incomplete.groupby(["group", "model", "reason"], sort=False):
            yield f"{model} has {reason}: no mean over {group}, which takes {', '.join(GROUPS[group])}."
    for run in runs:
        if math.isnan(run.parameters):
            yield f"{run.model}: neither the run nor the name says how large it is, so it is in no figure by size."
    for name in named:
        scored = {run.model: _scored(run, name) for run in runs if name in run.state["datasets"]}
        if len(set(scored.values())) > 1:
            told = ", ".join(f"{model} {count}" for model, count in scored.items())
            yield f"{name}: models could read different numbers of its pairs, and are tested on these ({told})."
    yield from _elsewhere(runs)


def _scored(run: Run, name: str) -> int:
    data = run.tables["data"]
    return int(data[data.dataset == name].scored.sum())


def _elsewhere(runs: Sequence[Run]) -> Iterator[str]:
    for table, made in (("transfer", "two data sets"), ("ablation", "`selfprobe probe ablate`")):
        without = [run.model for run in runs if table not in run.tables]
        if 0 < len(without) < len(runs):
            yield f"{table}: not of {', '.join(without)}; it takes {made}."
