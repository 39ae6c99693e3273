"""Probes of several models side by side: do they judge better than asking, and where? Paper 004,
figures and tables.

No model is asked and nothing is fitted: every number is one of a run's folder, a mean of such, or a
count of them.

above         the supervised probe less asking and less each control, one row a run and control: the answer
models        one row a run
scores        every method on every data set (figures 1 right, 12 to 23)
groups        means over the data sets of a group (figures 2, 3)
small_above_large  a small model's probe less a larger one's answers (§5.1)
cases         in how many cases a probe is above each way of asking and above the other probe (§5.1, §5.2)
depth         by layer, as a share of the model's blocks (figures 6, 7)
rise          where these curves jump, and where they come near their best (appendix A)
table1        probes of one data set on another (table 1); general: how many reach .95 there (§5.3)
cosine        their directions (figure 5)
adversarial   LLMBar (figures 4, 8 to 11); drops: what its subsets take from a probe and from asking (§5.4)
table2        asking with a direction taken out (table 2)
components    the first two components of the contrast differences (figure 1 left)
missing       what some runs have and others do not, a sentence a row
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from selfprobe.data.public_pairs import GROUPS, LLMBAR_NATURAL
from selfprobe.page import (
    LINES,
    ROWS,
    Block,
    Bullets,
    Figures,
    Heading,
    Page,
    Picture,
    RowTable,
    Section,
    Table,
    claim_page,
    interval_columns,
    more_in_tables,
    number,
    shown,
)
from selfprobe.page.columns import columns_of
from selfprobe.page.plots import cut_name, interval_rows
from selfprobe.probes.folder import read_run
from selfprobe.stats.claim import Claim, Verdict, ordered_claims
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.studies.preferences import figures
from selfprobe.studies.preferences.claims import (
    CONTROLS,
    PROBE_WORDS,
    ProbeEvidence,
    estimate_of,
    evidence_of_run,
    mean_evidence,
    probe_claim,
)
from selfprobe.studies.preferences.page import text_table

_SIZE = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)([BbMm])(?![a-zA-Z0-9])")
_UNITS = {"b": 1e9, "m": 1e6}
NEEDED: Mapping[str, frozenset[str]] = {
    "methods": frozenset({"dataset", "method", "metric", "value", "low", "high", "n"}),
    "layers": frozenset({"dataset", "probe", "layer", "metric", "value", "low", "high", "n"}),
    "differences": frozenset(
        {"dataset", "probe", "against", "metric", "value", "low", "high", "n"}
    ),
    "data": frozenset({"dataset", "pairs", "scored"}),
}
"""Tables of every finished run, with the columns that are read here."""


@dataclass(frozen=True)
class ModelRun:
    """One model's run."""

    folder: Path
    model: str
    """Name in figures and tables."""
    family: str
    """Models of one family are one line of a figure."""
    parameters: float
    """Number of parameters; NaN where neither the run nor the model's name says it."""
    blocks: int
    state: Mapping[str, Any]
    """Settings that the run reports about itself, run.json."""
    tables: Mapping[str, pd.DataFrame]
    """Tables by file stem."""

    @property
    def names(self) -> dict[str, Any]:
        """The columns that tell this run in a table of several."""
        return {"model": self.model, "family": self.family, "parameters": self.parameters}

    def table(self, name: str) -> pd.DataFrame:
        """A table of the run with `names` before its columns; empty where the run has none."""
        found = self.tables.get(name, pd.DataFrame())
        return pd.DataFrame({key: [value] * len(found) for key, value in self.names.items()}).join(
            found
        )


def family_of(model: str) -> str:
    """Part of a model's name before the size: Llama-3.1 of Llama-3.1-8B-Instruct; else its first
    word.
    """
    name = model.rstrip("/").rpartition("/")[2]
    before = name[: found.start()] if (found := _SIZE.search(name)) else re.split(r"[-_ ]", name)[0]
    return before.rstrip("-_ ") or name


def size_of(model: str) -> float:
    """Parameters by a model's name: 8e9 of Llama-3.1-8B; NaN where it says none."""
    found = _SIZE.search(model.rpartition("/")[2])
    return float(found[1]) * _UNITS[found[2].lower()] if found else math.nan


def read_runs(given: Sequence[str]) -> list[ModelRun]:
    """The runs in these folders, by family and size; FAMILY=FOLDER names the family of one.

    Raises:
        ValueError: A folder holds no finished run, or its run cannot be compared with the others.
    """
    runs = [_read(*folder_and_family(each)) for each in given]
    shortest = [cut_name(run.state["model"]) for run in runs]
    labels = [
        name if shortest.count(name) == 1 else str(run.state["model"])
        for name, run in zip(shortest, runs, strict=True)
    ]
    runs = [replace(run, model=name) for run, name in zip(runs, labels, strict=True)]
    _check(runs)
    return sorted(
        runs,
        key=lambda run: (run.family.lower(), math.isnan(run.parameters), run.parameters, run.model),
    )


def folder_and_family(given: str) -> tuple[Path, str]:
    """The folder, and the family of FAMILY=FOLDER or ""."""
    family, sign, folder = given.partition("=")
    return (Path(given), "") if not sign or Path(given).exists() else (Path(folder), family)


def _read(folder: Path, family: str) -> ModelRun:
    state = read_run(folder)
    tables = {file.stem: _table(file) for file in sorted((folder / "tables").glob("*.csv"))}
    for name, columns in NEEDED.items():
        if name not in tables:
            raise ValueError(
                f"the run in {folder} is not finished (no tables/{name}.csv): its `selfprobe probe run` goes on with it"
            )
        if missing := sorted(columns - set(tables[name].columns)):
            raise ValueError(
                f"{folder}/tables/{name}.csv has no column {', '.join(missing)}, which a run writes: run it again"
            )
    if missing := sorted({"model", "revision", "settings", "datasets"} - set(state)):
        raise ValueError(
            f"{folder}/run.json lacks {', '.join(missing)}, which a run writes: run it again"
        )
    for name in ("settings", "datasets"):
        if not isinstance(state[name], dict):
            told = type(state[name]).__name__
            raise ValueError(
                f"{folder}/run.json: expected a mapping under {name}, got a {told}: run it again"
            )
    model = str(state["model"])
    parameters = float(state.get("parameters") or size_of(model))
    blocks = int(state.get("blocks") or tables["layers"].layer.max() + 1)
    return ModelRun(folder, model, family or family_of(model), parameters, blocks, state, tables)


def _table(file: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(file)
    except ValueError as error:  # pandas' own errors are of this kind
        raise ValueError(
            f"{file} is not a table that a run writes ({error}): run it again"
        ) from None


def _check(runs: Sequence[ModelRun]) -> None:
    """ValueError where two runs are of the same model, or of different data, layers or presets."""
    first = runs[0]
    for i, run in enumerate(runs):
        for before in runs[:i]:
            if before.state["revision"] == run.state["revision"]:
                raise ValueError(
                    f"{before.folder} and {run.folder} are runs of one model, {run.state['model']} "
                    f"({run.state['revision']}): give one of them"
                )
            _check_data(before, run)
        _check_settings(first, run)
        _check_layers(first, run)


def _check_data(one: ModelRun, other: ModelRun) -> None:
    for name in sorted(set(one.state["datasets"]) & set(other.state["datasets"])):
        a, b = one.state["datasets"][name], other.state["datasets"][name]
        if a["hash"] != b["hash"]:
            raise ValueError(
                f"{one.folder} and {other.folder} have different pairs of {name} ({a.get('pairs', 'some')} from "
                f"{a['origin']}, {b.get('pairs', 'some')} from {b['origin']}; rows, labels, --limit or the question "
                "differ), so their scores cannot be compared: run one again with the other's data"
            )


def _check_settings(one: ModelRun, other: ModelRun) -> None:
    # How many resamples an interval takes changes no score; old runs had one probe for all aspects.
    a, b = (
        {"aspects": "together"}
        | {k: v for k, v in run.state["settings"].items() if k != "resamples"}
        for run in (one, other)
    )
    if a != b:
        differing = [key for key in sorted(a | b) if a.get(key) != b.get(key)]
        told = "; ".join(f"{key} {a.get(key)} and {b.get(key)}" for key in differing)
        raise ValueError(
            f"{one.folder} and {other.folder} are of different presets ({told}): run one again as the other"
        )
    a, b = (run.state.get("chat", {}).get("system", "") for run in (one, other))
    if a != b:
        raise ValueError(
            f"{one.folder} and {other.folder} have different system turns ({a!r} and {b!r}): run one again with the "
            "other's --system"
        )


def _check_layers(one: ModelRun, other: ModelRun) -> None:
    a, b = (tuple(run.state.get("loading", {}).get("layers", ())) for run in (one, other))
    if (a or b) and (a, one.blocks) != (b, other.blocks):
        told = [
            f"{run.folder} has {_told(kept)} of {run.blocks} blocks"
            for run, kept in ((one, a), (other, b))
        ]
        raise ValueError(
            f"{' and '.join(told)}: of different layers, scores cannot be compared. Run them with all blocks, that is "
            "without --layers"
        )


def _told(kept: Sequence[int]) -> str:
    return f"{', '.join(map(str, kept))}" if kept else "all"


Tables = Mapping[str, pd.DataFrame]
PROBES = ("supervised", "unsupervised")
ASKED = ("prompting", "direct scoring", "G-Eval")
"""Pairwise comparison, and what text quality has besides (§4.3)."""
ASKING = "each way of asking"
SIX, EVERY = "the paper's six", "all"
HIGH = 0.95
"""F1 that unsupervised probes reach on other data sets "in several cases" (§5.3)."""
CHANCE = 0.5
NEAR = 0.9
"""A curve is near its best at this share of the way up from `CHANCE`."""
MEANS = (
    "The unweighted mean over the data sets of a group; its interval takes them as independent. A model without one of "
    "them has no mean. Of NEWSROOM, SummEval and HANNA "
)
ASPECTS = {
    "apart": "each aspect has a probe of its own, and a number is the mean over aspects, of every method.",
    "together": "one probe learns from all aspects; the paper's code fits and averages each (`--aspects apart`).",
}
SMALL = (
    "The same of a smaller model's probe against a larger model's own answers, each two models of a family on a data "
    "set; the intervals take both as independent (table small_above_large)."
)
DROPS = (
    "A drop is F1 on a natural subset less that on an adversarial one. In how many cases (a model and subset) the "
    "probe's is smaller than asking's (above), and in how many the interval says so; it takes the four scores as "
    "independent (table drops)."
)
RISE = (
    "Where each curve rises most from one block to the next (jump), and the first block at which it has made nine "
    "tenths of the way from .5 to its best (near); as shares of the model's blocks, without intervals. Empty where "
    "even the best block is not shown to be above .5."
)
CASES = (
    "In how many cases (a model on a data set) the probe's number is the larger one (above), and in how many the 95 % "
    "interval of the paired difference says so (shown above, shown below). The paper counts its six data sets of text "
    "quality and common sense, against direct scoring, G-Eval and pairwise comparison; “each way of asking” has to be "
    "above all that were asked."
)
GENERAL = (
    "F1 on another data set than the probe learnt from, in how many cells of table 1 at least .95 (high), and in how "
    "many the lower end of the interval too (shown high); the paper says that of unsupervised probes in several cases."
)
PAPERS = {"mt_bench": "figure 1, right"} | {
    name: f"figures {12 + k} and {18 + k}"
    for k, name in enumerate(name for sets in GROUPS.values() for name in sets)
}
"""Data set → the paper's figures that show it by size."""
METHOD = (
    "Runs of `selfprobe probe run` on the same data and under one preset. Numbers are weighted F1 on held-out pairs, "
    "with 95 % intervals by question, which hold for the probes as fitted. Preset: "
)
_ASKED_IN_VAIN = {
    "answer_mass": "answers with 1 or 2 in {difference} of the probability when it is asked"
}
COMPARED_WORDS = replace(PROBE_WORDS, kind="models", unmet={**PROBE_WORDS.unmet, **_ASKED_IN_VAIN})
CHECKS = (
    "Each check is about the mean over the model's data sets of the supervised probe's F1 less that of asking, or of a "
    "control. A control that was not run on each of them is open. Of shuffled labels the largest p of the data sets "
    "counts."
)


@dataclass(frozen=True)
class LeadRow:
    """Supervised probe less asking and each control, means over data sets."""

    model: Annotated[str, Heading("model", "Model whose states the probe reads.")]
    family: Annotated[str, Heading("family", "Models of one family are one line of a figure.")]
    parameters: Annotated[float, Heading("parameters", "Number of parameters.", figures.size_text)]
    data_sets: Annotated[int, Heading("data sets", "Data sets whose numbers are averaged.")]
    against: Annotated[str, Heading("against", "Asking, or a control.")]
    score: Annotated[float, Heading("its F1", "F1 of asking or of the control.", number)]
    estimate: Annotated[Estimate, Heading("probe less it", "F1 of the probe less it, paired.")]


@dataclass(frozen=True)
class ModelAnswerRow:
    """Answers by model."""

    model: Annotated[str, Heading("model", "Model whose states the probe reads.")]
    answer: Annotated[
        Verdict, Heading("answer", "Whether its probe is above asking and every control.")
    ]
    less_asking: Annotated[
        Estimate,
        Heading("probe less asking, F1", "Mean over data sets.", partial(shown, sign=True)),
    ]


@dataclass(frozen=True)
class Compared:
    """Results of several runs together."""

    runs: Sequence[ModelRun]
    tables: Mapping[str, pd.DataFrame]
    """Tables by file stem, without those that no run has."""
    holes: Sequence[str]
    """Sentences on what is missing."""
    evidence: Mapping[str, ProbeEvidence]
    """Model → numbers on which its claim rests."""


def compare_runs(runs: Sequence[ModelRun]) -> Compared:
    """The tables of these runs, and what is missing in them."""
    groups, scores, depth = _groups(runs), _scores(runs), _depth(runs)
    adversarial, table1 = _joined(runs, "adversarial"), _table1(runs)
    made = {
        "models": _models(runs),
        "scores": scores,
        "groups": groups,
        "cases": _cases(runs),
        "small_above_large": _small_above_large(scores),
        "depth": depth,
        "rise": rise(depth),
        "table1": table1,
        "general": _general(table1),
        "cosine": _joined(runs, "cosine"),
        "adversarial": adversarial,
        "drops": drops(adversarial),
        "table2": _joined(runs, "ablation"),
        "components": _joined(runs, "components"),
    }
    tables = {name: table for name, table in made.items() if len(table)}
    evidence = {run.model: mean_over_data_sets(run) for run in runs}
    return Compared(runs, tables, list(_holes(runs, groups)), evidence)


def mean_over_data_sets(run: ModelRun) -> ProbeEvidence:
    """Evidence of a run's supervised probe: F1, the mean over its data sets."""
    parts = evidence_of_run(run.tables, "supervised", "f1")
    return mean_evidence(run.model, parts, mean_of_estimates)


def mean_of_estimates(parts: Sequence[Estimate]) -> Estimate:
    """The mean of estimates from different data sets, which are independent.

    Its interval is MOVER's. Undefined where a part is.
    """
    n = sum(part.n for part in parts)
    if missing := [part for part in parts if math.isnan(part.value)]:
        return undefined(missing[0].reason or "a data set has no score", n=n, unit="question")
    reason = next((part.reason for part in parts if math.isnan(part.low) and part.reason), "")
    return replace(_mover(*((1 / len(parts), part) for part in parts)), n=n, reason=reason)


def _scores(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """The runs' methods and their fine-tuned judges, which are tested on the half that one split
    leaves.
    """
    methods, tuned = _joined(runs, "methods"), _joined(runs, "finetuned")
    return (
        pd.concat([methods, tuned[~tuned.method.isin(methods.method)]], ignore_index=True)
        if len(tuned)
        else methods
    )


def _joined(runs: Sequence[ModelRun], name: str) -> pd.DataFrame:
    """A table of all runs under one another, with the models' names before; empty where none has
    it.
    """
    parts = [part for run in runs if len(part := run.table(name))]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _models(runs: Sequence[ModelRun]) -> pd.DataFrame:
    rows = []
    for run in runs:
        loading = run.state.get("loading", {})
        rows.append(
            run.names
            | {
                "blocks": run.blocks,
                "asked_for": run.state["model"],
                "revision": run.state["revision"],
            }
            | {
                "dtype": loading.get("quantize") or loading.get("dtype", ""),
                "preset": run.state["settings"]["name"],
            }
            | {"aspects": run.state["settings"].get("aspects", "together")}
            | {
                "data_sets": ", ".join(run.state["datasets"]),
                "selfprobe": run.state.get("selfprobe", ""),
            }
            | {"folder": str(run.folder)}
        )
    return pd.DataFrame(rows)


def _groups(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """group, data_sets, method, metric, value, low, high, n, unit, reason: undefined where a data
    set is missing.
    """
    rows = []
    for run in runs:
        methods = _scores([run]).drop(columns=list(run.names))
        for group, sets in GROUPS.items():
            there = methods[methods.dataset.isin(sets)]
            for (method, metric), part in there.groupby(["method", "metric"], sort=False):
                by_set = part.set_index("dataset")
                if missing := [name for name in sets if name not in by_set.index]:
                    found = undefined(
                        f"no {', '.join(missing)}", n=int(part.n.sum()), unit="question"
                    )
                else:
                    found = mean_of_estimates([estimate_of(by_set.loc[name]) for name in sets])
                line = {
                    "group": group,
                    "data_sets": ", ".join(sets),
                    "method": method,
                    "metric": metric,
                }
                rows.append(run.names | line | asdict(found))
    return pd.DataFrame(rows)


def _cases(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """data_sets, probe, against, metric, cases (of a model and data set), above, shown_above,
    shown_below.

    `data_sets` is `SIX` (those of figures 2 and 3, which the paper counts) or `EVERY`. Against
    `ASKING`, the largest of direct scoring, G-Eval and pairwise comparison that the run has, each
    pair of scores on its own: `above` is above all of them, `shown_above` has all of their
    intervals over 0, `shown_below` any below.
    """
    every = _joined(runs, "differences").dropna(subset=["value"])
    keys = [*runs[0].names, "dataset", "probe", "metric"]
    asking = every[every.against.isin(ASKED)].groupby(keys, sort=False, dropna=False)
    most = asking.agg(
        value=("value", "min"), low=("low", "min"), high=("high", "min")
    ).reset_index()
    wanted = every[every.against.isin((*ASKED, "unsupervised"))]
    wanted = pd.concat([wanted, most.assign(against=ASKING)], ignore_index=True)
    six = wanted[wanted.dataset.isin([name for sets in GROUPS.values() for name in sets])]
    return pd.DataFrame(
        [
            {
                "data_sets": scope,
                "probe": probe,
                "against": against,
                "metric": metric,
                "cases": len(part),
            }
            | {"above": int((part.value > 0).sum()), "shown_above": int((part.low > 0).sum())}
            | {"shown_below": int((part.high < 0).sum())}
            for scope, rows in ((SIX, six), (EVERY, wanted))
            for (probe, against, metric), part in rows.groupby(
                ["probe", "against", "metric"], sort=False
            )
        ]
    )


def _general(table1: pd.DataFrame) -> pd.DataFrame:
    """model, probe, cells, high, shown_high: F1 of a probe on another data set of at least `HIGH`
    (§5.3).

    `high` counts numbers, `shown_high` the lower ends of their intervals.

    Args:
        table1: model, tested_on, trained_on, metric; supervised_value, supervised_low and the
            unsupervised probe's.
    """
    if not len(table1):
        return table1
    off = table1[(table1.metric == "f1") & (table1.tested_on != table1.trained_on)]
    return pd.DataFrame(
        [
            {"model": model, "probe": kind, "cells": int(part[f"{kind}_value"].notna().sum())}
            | {
                "high": int((part[f"{kind}_value"] >= HIGH).sum()),
                "shown_high": int((part[f"{kind}_low"] >= HIGH).sum()),
            }
            for model, part in off.groupby("model", sort=False)
            for kind in PROBES
        ]
    )


def _depth(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """The runs' layers, with `depth`: the block's number (the first is 1) as a share of the model's
    blocks.
    """
    every = _joined(runs, "layers")
    blocks = {run.model: run.blocks for run in runs}
    return every.assign(depth=(every.layer + 1) / every.model.map(blocks))


def _table1(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """tested_on, trained_on, metric; the supervised and the unsupervised probe's value, low and
    high, and n.
    """
    every = _joined(runs, "transfer")
    if not len(every):
        return every
    keys = ["model", "family", "parameters", "tested_on", "trained_on", "metric"]
    sides = [
        every[every.probe == kind][[*keys, "value", "low", "high", "n"]].rename(
            columns={name: f"{kind}_{name}" for name in ("value", "low", "high")}
        )
        for kind in PROBES
    ]
    return sides[0].merge(sides[1].drop(columns="n"), on=keys)


def _holes(runs: Sequence[ModelRun], groups: pd.DataFrame) -> Iterator[str]:
    """Sentences on what some runs have and others do not, and on what is drawn nowhere."""
    datasets = list(dict.fromkeys(name for run in runs for name in run.state["datasets"]))
    for name in datasets:
        if without := [run.model for run in runs if name not in run.state["datasets"]]:
            yield f"{name} was not run with {', '.join(without)}."
    if len(groups):
        probed = groups[groups.method.isin(PROBES)]  # a judge may be fine-tuned on some sets alone
        incomplete = probed[probed.reason.fillna("").str.startswith("no ")]
        for (group, model, reason), _ in incomplete.groupby(
            ["group", "model", "reason"], sort=False
        ):
            yield f"{model} has {reason}: no mean over {group}, which takes {', '.join(GROUPS[group])}."
    for run in runs:
        if math.isnan(run.parameters):
            yield f"{run.model}: neither the run nor the name says how large it is, so it is in no figure by size."
    for name in datasets:
        scored = {run.model: _scored(run, name) for run in runs if name in run.state["datasets"]}
        if len(set(scored.values())) > 1:
            told = ", ".join(f"{model} {count}" for model, count in scored.items())
            yield f"{name}: models could read different numbers of its pairs, and are tested on these ({told})."
    yield from _elsewhere(runs)


def _scored(run: ModelRun, name: str) -> int:
    data = run.tables["data"]
    return int(data[data.dataset == name].scored.sum())


def _elsewhere(runs: Sequence[ModelRun]) -> Iterator[str]:
    for table, made in (
        ("transfer", "two data sets"),
        ("ablation", "`selfprobe probe run --parts ablate`"),
    ):
        without = [run.model for run in runs if table not in run.tables]
        if 0 < len(without) < len(runs):
            yield f"{table}: not of {', '.join(without)}; it takes {made}."


def lead_rows(run: ModelRun, evidence: ProbeEvidence) -> list[LeadRow]:
    """Rows of a run: its supervised probe less asking and less each control."""
    data_sets = run.tables["methods"].dataset.nunique()
    return [
        LeadRow(
            run.model, run.family, run.parameters, data_sets, control.label, lead.score, lead.lead
        )
        for control in CONTROLS
        if (lead := evidence.leads.get(control.check)) is not None
    ]


def _small_above_large(scores: pd.DataFrame) -> pd.DataFrame:
    """family, dataset, probe, small, large, times (as many parameters), value, low, high; F1, small
    less large.

    Paper: "almost always", read off figure 2. Here: each two models of a family. The interval takes
    both scores as independent (MOVER, Zou and Donner 2008); they are of the same pairs, so it is
    rather too wide.

    Args:
        scores: family, model, parameters, dataset (or group), method, metric, value, low, high.
    """
    column = "dataset" if "dataset" in scores else "group"
    f1 = scores[(scores.metric == "f1") & scores.value.notna() & scores.parameters.notna()]
    rows = []
    for (family, name), part in f1.groupby(["family", column], sort=False):
        by = {(row.model, row.method): row for row in part.itertuples()}
        models = (
            part.drop_duplicates("model")
            .sort_values("parameters")[["model", "parameters"]]
            .to_numpy()
            .tolist()
        )
        for (small, few), (large, many) in combinations(models, 2):
            for probe in PROBES:
                one, other = by.get((small, probe)), by.get((large, "prompting"))
                if few < many and one is not None and other is not None:
                    of = {
                        "family": family,
                        column: name,
                        "probe": probe,
                        "small": small,
                        "large": large,
                    }
                    rows.append(of | {"times": many / few} | _ends(_mover((1, one), (-1, other))))
    return pd.DataFrame(rows)


def _mover(*parts: tuple[float, Any]) -> Estimate:
    """The weighted sum of independent scores, with MOVER's interval (Zou and Donner 2008).

    Each end is as far from the sum as the parts' ends are from theirs, in quadrature.

    Args:
        parts: Each a weight and what has value, low and high: an estimate, or a row of a table.
    """
    value = sum(weight * part.value for weight, part in parts)
    down = [
        weight * (part.value - (part.low if weight > 0 else part.high)) for weight, part in parts
    ]
    up = [weight * ((part.high if weight > 0 else part.low) - part.value) for weight, part in parts]
    return Estimate(value, value - math.hypot(*down), value + math.hypot(*up), 0, "question")


def _ends(found: Estimate) -> dict[str, float]:
    return {"value": found.value, "low": found.low, "high": found.high}


def drops(adversarial: pd.DataFrame) -> pd.DataFrame:
    """model, family, subset, natural, probe, probe_drop, prompting_drop, value, low, high; F1, each
    with low and high.

    A drop is the score on the natural pairs less that on an adversarial subset; `value` is asking's
    less the probe's, above 0 where the probe's is the smaller one. Paper: "for all but one subset".
    Here: of each model and natural subset. The intervals take the scores as independent (`_mover`);
    probe and asking are of the same pairs, so that they are rather too wide.

    Args:
        adversarial: model, family, subset, method, metric, value, low, high; empty where no run has
            LLMBar.
    """
    if not len(adversarial):
        return adversarial
    f1 = adversarial[(adversarial.metric == "f1") & adversarial.value.notna()]
    rows = []
    for (model, family), part in f1.groupby(["model", "family"], sort=False):
        by = {(row.subset, row.method): row for row in part.itertuples()}
        subsets = list(dict.fromkeys(part.subset))
        for natural, subset in product(subsets, subsets):
            if natural not in LLMBAR_NATURAL or subset in LLMBAR_NATURAL:
                continue
            for probe in PROBES:
                cells = [
                    by.get((name, method))
                    for method in (probe, "prompting")
                    for name in (natural, subset)
                ]
                if any(cell is None for cell in cells):
                    continue
                own, own_hard, asked, asked_hard = cells
                lost = interval_columns("probe_drop", _mover((1, own), (-1, own_hard)))
                lost |= interval_columns("prompting_drop", _mover((1, asked), (-1, asked_hard)))
                of = {
                    "model": model,
                    "family": family,
                    "subset": subset,
                    "natural": natural,
                    "probe": probe,
                }
                found = _mover((1, asked), (-1, asked_hard), (-1, own), (1, own_hard))
                rows.append(of | lost | _ends(found))
    return pd.DataFrame(rows)


def rise(depth: pd.DataFrame) -> pd.DataFrame:
    """Table of each model, data set and probe: best, best_depth, jump, jump_depth, near_depth.

    `jump` is the largest rise of F1 from one read block to the next, at `jump_depth`; `near_depth`
    is the first block at which the curve has made `NEAR` of the way from chance to its best. Depths
    are shares of the model's blocks. NaN where even the best block is not shown to be above chance.
    Paper: in words ("a discontinuity", "by around 40-50 %").

    Args:
        depth: model, family, parameters, dataset, probe, metric, depth, value, low.
    """
    rows = []
    names = ["model", "family", "parameters", "dataset", "probe"]
    for key, part in depth[depth.metric == "f1"].groupby(names, sort=False, dropna=False):
        rows.append(dict(zip(names, key, strict=True)) | _of_curve(part.sort_values("depth")))
    return pd.DataFrame(rows)


def _of_curve(curve: pd.DataFrame) -> dict[str, float]:
    empty = {
        "best": math.nan,
        "best_depth": math.nan,
        "jump": math.nan,
        "jump_depth": math.nan,
        "near_depth": math.nan,
    }
    known = curve[curve.value.notna()]
    if len(known) < 2:
        return empty
    best = known.loc[known.value.idxmax()]
    told = empty | {"best": float(best.value), "best_depth": float(best.depth)}
    if not best.low > CHANCE:
        return told
    steps = known.value.diff()
    near = known[known.value >= CHANCE + NEAR * (best.value - CHANCE)]
    return told | {
        "jump": float(steps.max()),
        "jump_depth": float(known.depth[steps.idxmax()]),
        "near_depth": float(near.depth.iloc[0]),
    }


def case_counts(found: pd.DataFrame) -> pd.DataFrame:
    """probe, cases, above, shown_above, shown_below of `_small_above_large` or `drops`."""
    parts: Sequence[tuple[Any, pd.DataFrame]] = list(found.groupby("probe", sort=False))
    return pd.DataFrame(
        [
            {"probe": probe, "cases": len(part), "above": int((part.value > 0).sum())}
            | {"shown_above": int((part.low > 0).sum()), "shown_below": int((part.high < 0).sum())}
            for probe, part in parts
        ]
    )


def comparison_page(compared: Compared) -> Page:
    """The answer by run; what the paper shows of several models under its headings."""
    tables = compared.tables
    claims = ordered_claims([probe_claim(compared.evidence[run.model]) for run in compared.runs])
    answers = [
        ModelAnswerRow(claim.subject, claim.verdict, claim.effect) for claim in claims[:ROWS]
    ]
    rows = [row for run in compared.runs for row in lead_rows(run, compared.evidence[run.model])]
    paper = [
        Section(title, blocks) for title, made in PAPER.items() if (blocks := list(made(tables)))
    ]
    scores = [Section(name, [text_table(_by_method(rows))]) for name, rows in _sets(tables)]
    settings = compared.runs[0].state["settings"]
    page = claim_page(
        "Do probes of a model's states judge better than its own answers?",
        claims,
        COMPARED_WORDS,
        picture=_picture(claims),
        table=Table(answers, columns_of(ModelAnswerRow)),
        tables={"above": RowTable(LeadRow, rows)},
        paper=[*_counts(tables), *paper],
        cells=scores,
        method=[
            f"{METHOD}{settings['name']}.",
            CHECKS,
            MEANS + ASPECTS[tables["models"].aspects[0]],
        ],
    )
    missing = pd.DataFrame({"what": compared.holes})
    return replace(
        page,
        sections=[*page.sections, Section("Runs", _run_blocks(compared), name="runs")],
        tables={**page.tables, **tables, "missing": missing},
        notes=_lines(page.notes, compared.holes),
    )


def _run_blocks(compared: Compared) -> list[Block]:
    """The runs, and what some have and others do not."""
    models = compared.tables["models"][
        ["model", "family", "parameters", "blocks", "dtype", "data_sets"]
    ]
    sized = models.assign(parameters=[figures.size_text(count) for count in models.parameters])
    blocks: list[Block] = [text_table(sized)]
    if compared.holes:
        blocks.append(Bullets(compared.holes))
    return blocks


def _lines(lines: Sequence[str], holes: Sequence[str]) -> list[str]:
    """Lines of the terminal, the last of them on what is missing."""
    if not holes:
        return list(lines)
    more = f" {len(holes) - 1} more under Runs." if len(holes) > 1 else ""
    return [*lines[: LINES - 1], f"Missing: {holes[0]}{more}"]


def _picture(claims: Sequence[Claim]) -> Picture:
    rows = {
        claim.subject: {"supervised probe less asking": claim.effect} for claim in claims[:ROWS]
    }
    caption = f"Means over data sets with 95 % intervals.{more_in_tables(len(claims) - ROWS)}"
    return interval_rows("above", rows, caption=caption, axis="F1, probe less asking", line=0)


def _sets(tables: Tables) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each group and data set with its scores."""
    for table, column in (("groups", "group"), ("scores", "dataset")):
        if table in tables:
            yield from (
                (str(name), rows) for name, rows in tables[table].groupby(column, sort=False)
            )


def _sizes(tables: Tables) -> Iterator[Block]:
    """A figure by size of each group and data set that has one."""
    for name, rows in _sets(tables):
        title = f"{name} ({PAPERS[name]})" if name in PAPERS else name
        drawn = rows[rows.parameters.notna() & (rows.metric == "f1") & rows.value.notna()]
        if len(drawn):
            stem = figures.stem_of("means" if name in GROUPS else "size", name)
            yield Figures(figures.size_pictures(drawn, title=title, stem=stem))


def _by_method(rows: pd.DataFrame) -> pd.DataFrame:
    """model, then a column a method: F1 with its interval as text."""
    f1 = rows[rows.metric == "f1"]
    methods, models = list(dict.fromkeys(f1.method)), list(dict.fromkeys(f1.model))
    cells = {(row.model, row.method): shown(row) for row in f1.itertuples()}
    return pd.DataFrame(
        [{"model": m} | {name: cells.get((m, name), "") for name in methods} for m in models]
    )


def _counts(tables: Tables) -> Iterator[Block]:
    """Counts for what the paper says in words: in how many cases it holds."""
    if "cases" in tables:
        yield CASES
        yield text_table(tables["cases"].query("metric == 'f1'").drop(columns="metric"))
    for name, said in (("small_above_large", SMALL), ("drops", DROPS)):
        if name in tables:
            yield said
            yield text_table(case_counts(tables[name]))


def _layers(tables: Tables) -> Iterator[Block]:
    for name, rows in tables["depth"].groupby("dataset", sort=False):
        yield Figures(
            figures.depth_pictures(
                rows, title=f"{name}, by layer", stem=figures.stem_of("depth", name)
            )
        )
    if "rise" in tables:
        yield RISE
        yield text_table(tables["rise"].drop(columns=["family", "parameters"]).round(2))


def _transfer(tables: Tables) -> Iterator[Block]:
    """A table a model, as the paper's: rows tested on, columns trained on, supervised /
    unsupervised.
    """
    if "table1" not in tables:
        return
    for model, rows in tables["table1"].query("metric == 'f1'").groupby("model", sort=False):
        pairs = [[shown(_ends_of(row, kind)) for kind in PROBES] for row in rows.itertuples()]
        names = list(dict.fromkeys(rows.trained_on))
        cells = rows.assign(cell=[" / ".join(pair) for pair in pairs])
        wide = cells.pivot(index="tested_on", columns="trained_on", values="cell").loc[names, names]
        yield f"{model}: F1, supervised / unsupervised; rows tested on, columns trained on."
        yield text_table(wide.rename_axis(None, axis=1).reset_index())
    yield from _by("model", "table1", tables, _transfer_maps)
    if "general" in tables:
        yield GENERAL
        yield text_table(tables["general"])


def _ends_of(row: Any, kind: str) -> Estimate:
    value, low, high = (getattr(row, f"{kind}_{end}") for end in ("value", "low", "high"))
    return Estimate(value, low, high, row.n, "question")


def _transfer_maps(rows: pd.DataFrame, stem: str) -> list[Picture]:
    keys = ["tested_on", "trained_on", "metric"]
    long = [
        rows[keys].assign(
            probe=kind, **{end: rows[f"{kind}_{end}"] for end in ("value", "low", "high")}
        )
        for kind in PROBES
    ]
    return figures.transfer_pictures(pd.concat(long, ignore_index=True), stem=stem)


def _by(
    column: str, name: str, tables: Tables, draw: "Callable[..., list[Picture]]"
) -> Iterator[Block]:
    """Pictures of a table for each model, or data set, under its name."""
    if name in tables:
        for value, rows in tables[name].groupby(column, sort=False):
            yield str(value)
            yield Figures(draw(rows, stem=figures.stem_of(name, value)))


def _ablation(tables: Tables) -> Iterator[Block]:
    if "table2" not in tables:
        return
    table = tables["table2"]
    yield Figures(figures.change_pictures(table, stem="table2"))
    rows = table[table.direction != "none"]
    rows = rows.assign(change=[shown(row, sign=True) for row in rows.itertuples()])
    cells = rows.pivot_table(
        index=["dataset", "direction"],
        columns="model",
        values="change",
        aggfunc="first",
        sort=False,
    )
    yield text_table(cells.rename_axis(None, axis=1).reset_index().fillna(""))


PAPER: "Mapping[str, Callable[[Tables], Iterator[Block]]]" = {
    "By size (figures 1 to 3, 12 to 23)": _sizes,
    "By layer (figures 6, 7)": _layers,
    "Probes of one data set on another (table 1)": _transfer,
    "Directions (figure 5)": lambda tables: _by("model", "cosine", tables, figures.cosine_pictures),
    "LLMBar (figures 4, 8 to 11)": lambda tables: _by(
        "model", "adversarial", tables, figures.adversarial_pictures
    ),
    "A direction taken out (table 2)": _ablation,
    "First two components (figure 1, left)": lambda tables: _by(
        "dataset", "components", tables, partial(figures.component_pictures, by="model")
    ),
}
"""Headings of what the paper shows → how it is made here."""
