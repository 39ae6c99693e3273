"""Probes of several models side by side: do they judge better than asking, and where? Paper 004,
figures and tables.

No model is asked and nothing is fitted: every number is one of a run's folder, a mean of such, or a
count of them.

above         the supervised probe less asking and each control, a row a run and control: the answer
models        one row a run
scores        every method on every data set (figures 1 right, 12 to 23)
groups        means over the data sets of a group (figures 2, 3)
small_above_large  a small model's probe less a larger one's answers (§5.1)
cases         in how many cases a probe is above each way of asking and the other probe (§5.1, §5.2)
depth         by layer, as a share of the model's blocks (figures 6, 7)
rise          where these curves jump, and where they come near their best (appendix A)
table1        probes of one data set on another (table 1); general: how many reach .95 there (§5.3)
cosine        their directions (figure 5)
adversarial   LLMBar (figures 4, 8 to 11); drops: what its subsets take from probe and asking (§5.4)
table2        asking with a direction taken out (table 2)
strict        of presets whose halves share questions: F1 by halves of questions
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

from selfprobe.data.public_pairs import DATA_SET_GROUPS, LLMBAR_NATURAL
from selfprobe.page import (
    MOST_FINDINGS,
    MOST_TERMINAL_LINES,
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
    interval_text,
    more_in_tables,
    number,
)
from selfprobe.page.columns import columns_of
from selfprobe.page.plots import cut_name, interval_rows
from selfprobe.probes.folder import read_run
from selfprobe.stats.claim import Claim, Verdict, ordered_claims
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.studies import probe_figures
from selfprobe.studies.probe_claims import (
    CONTROLS,
    PROBE_WORDS,
    ProbeEvidence,
    estimate_of,
    evidence_of_run,
    mean_evidence,
    probe_claim,
)
from selfprobe.studies.probe_page import LEAK_SENTENCE, text_table

_SIZE_IN_NAME = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)([BbMm])(?![a-zA-Z0-9])")
_PARAMETERS_OF_UNIT = {"b": 1e9, "m": 1e6}
COLUMNS_OF_RUN_TABLES: Mapping[str, frozenset[str]] = {
    "methods": frozenset({"dataset", "method", "metric", "value", "low", "high", "n"}),
    "layers": frozenset({"dataset", "probe", "layer", "metric", "value", "low", "high", "n"}),
    "differences": frozenset(
        {"dataset", "probe", "against", "metric", "value", "low", "high", "n"}
    ),
    "data": frozenset({"dataset", "pairs", "scored"}),
}
"""Tables of every finished run, with the columns that are read here."""
TRANSFER_NUMBERS = (
    "value",
    "low",
    "high",
    "source_value",
    "source_low",
    "source_high",
    "tested_value",
    "tested_low",
    "tested_high",
)
"""Columns of a probe on another data set: its number under the run's centre, and under either."""
COLUMNS_OF_FURTHER_TABLES: Mapping[str, frozenset[str]] = {
    "transfer": frozenset(
        {"trained_on", "tested_on", "probe", "metric", "centre", "n", *TRANSFER_NUMBERS}
    ),
}
"""Tables of some runs, with the columns that are read here."""


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
        table = self.tables.get(name, pd.DataFrame())
        name_columns = {column: [value] * len(table) for column, value in self.names.items()}
        return pd.DataFrame(name_columns).join(table)


def family_of(model: str) -> str:
    """Part of a model's name before the size: Llama-3.1 of Llama-3.1-8B-Instruct; else its first
    word.
    """
    name = model.rstrip("/").rpartition("/")[2]
    size = _SIZE_IN_NAME.search(name)
    if size:
        family = name[: size.start()]
    else:
        family = re.split(r"[-_ ]", name)[0]
    return family.rstrip("-_ ") or name


def size_of(model: str) -> float:
    """Parameters by a model's name: 8e9 of Llama-3.1-8B; NaN where it says none."""
    size = _SIZE_IN_NAME.search(model.rpartition("/")[2])
    if size is None:
        return math.nan
    number_text, unit = size.groups()
    return float(number_text) * _PARAMETERS_OF_UNIT[unit.lower()]


def read_runs(paths: Sequence[str]) -> list[ModelRun]:
    """The runs in these folders, by family and size; FAMILY=FOLDER names the family of one.

    Raises:
        ValueError: A folder holds no finished run, or its run cannot be compared with the others.
    """
    runs = [_read_run(*folder_and_family(path)) for path in paths]
    runs = _with_different_names(runs)
    _check_comparable(runs)
    return sorted(runs, key=_family_and_size)


def _with_different_names(runs: Sequence[ModelRun]) -> list[ModelRun]:
    """The runs with short names of their models, or full ones where a short name is of several."""
    short_names = [cut_name(run.state["model"]) for run in runs]
    named_runs = []
    for run, short_name in zip(runs, short_names, strict=True):
        is_unique = short_names.count(short_name) == 1
        name = short_name if is_unique else str(run.state["model"])
        named_runs.append(replace(run, model=name))
    return named_runs


def _family_and_size(run: ModelRun) -> tuple[str, bool, float, str]:
    return run.family.lower(), math.isnan(run.parameters), run.parameters, run.model


def folder_and_family(path: str) -> tuple[Path, str]:
    """The folder, and the family of FAMILY=FOLDER or ""."""
    family, sign, folder = path.partition("=")
    if not sign or Path(path).exists():
        return Path(path), ""
    return Path(folder), family


def _read_run(folder: Path, family: str) -> ModelRun:
    state = read_run(folder)
    table_files = sorted((folder / "tables").glob("*.csv"))
    tables = {file.stem: _read_table(file) for file in table_files}
    _check_tables(folder, tables)
    _check_state(folder, state)
    model = str(state["model"])
    parameters = float(state.get("parameters") or size_of(model))
    blocks = int(state.get("blocks") or tables["layers"].layer.max() + 1)
    return ModelRun(folder, model, family or family_of(model), parameters, blocks, state, tables)


def _check_tables(folder: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    for name, columns in COLUMNS_OF_RUN_TABLES.items():
        if name not in tables:
            raise ValueError(
                f"the run in {folder} is not finished (no tables/{name}.csv): its `selfprobe probe "
                "run` goes on with it"
            )
        _check_columns(folder, name, tables[name], columns)
    for name, columns in COLUMNS_OF_FURTHER_TABLES.items():
        if name in tables:
            _check_columns(folder, name, tables[name], columns)


def _check_columns(folder: Path, name: str, table: pd.DataFrame, columns: frozenset[str]) -> None:
    missing_columns = sorted(columns - set(table.columns))
    if missing_columns:
        raise ValueError(
            f"{folder}/tables/{name}.csv has no column {', '.join(missing_columns)}, which a run "
            "writes: run it again"
        )


def _check_state(folder: Path, state: Mapping[str, Any]) -> None:
    missing_keys = sorted({"model", "revision", "settings", "datasets"} - set(state))
    if missing_keys:
        raise ValueError(
            f"{folder}/run.json lacks {', '.join(missing_keys)}, which a run writes: run it again"
        )
    for key in ("settings", "datasets"):
        if not isinstance(state[key], dict):
            type_name = type(state[key]).__name__
            raise ValueError(
                f"{folder}/run.json: expected a mapping under {key}, got a {type_name}: run it "
                "again"
            )


def _read_table(file: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(file)
    except ValueError as error:  # pandas' own errors are of this kind
        raise ValueError(
            f"{file} is not a table that a run writes ({error}): run it again"
        ) from None


def _check_comparable(runs: Sequence[ModelRun]) -> None:
    """ValueError where two runs are of the same model, or of different data, layers or presets."""
    first_run = runs[0]
    for run_index, run in enumerate(runs):
        for earlier_run in runs[:run_index]:
            if earlier_run.state["revision"] == run.state["revision"]:
                raise ValueError(
                    f"{earlier_run.folder} and {run.folder} are runs of one model, "
                    f"{run.state['model']} ({run.state['revision']}): give one of them"
                )
            _check_same_data(earlier_run, run)
        _check_same_settings(first_run, run)
        _check_same_layers(first_run, run)


def _check_same_data(first_run: ModelRun, second_run: ModelRun) -> None:
    first_datasets = first_run.state["datasets"]
    second_datasets = second_run.state["datasets"]
    for name in sorted(set(first_datasets) & set(second_datasets)):
        first_data = first_datasets[name]
        second_data = second_datasets[name]
        if first_data["hash"] != second_data["hash"]:
            raise ValueError(
                f"{first_run.folder} and {second_run.folder} have different pairs of {name} "
                f"({first_data.get('pairs', 'some')} from {first_data['origin']}, "
                f"{second_data.get('pairs', 'some')} from {second_data['origin']}; rows, labels, "
                "--limit or the question differ), so their scores cannot be compared: run one "
                "again with the other's data"
            )


def _check_same_settings(first_run: ModelRun, second_run: ModelRun) -> None:
    first_settings = dict(first_run.state["settings"])
    second_settings = dict(second_run.state["settings"])
    for settings in (first_settings, second_settings):
        settings.pop("resamples", None)  # how many an interval takes changes no score

    differences = []
    for name in sorted(first_settings | second_settings):
        first_value = first_settings.get(name)
        second_value = second_settings.get(name)
        if first_value != second_value:
            differences.append(f"{name} {first_value} and {second_value}")
    if differences:
        raise ValueError(
            f"{first_run.folder} and {second_run.folder} are of different presets "
            f"({'; '.join(differences)}): run one again as the other"
        )

    first_system = first_run.state.get("chat", {}).get("system", "")
    second_system = second_run.state.get("chat", {}).get("system", "")
    if first_system != second_system:
        raise ValueError(
            f"{first_run.folder} and {second_run.folder} have different system turns "
            f"({first_system!r} and {second_system!r}): run one again with the other's --system"
        )


def _check_same_layers(first_run: ModelRun, second_run: ModelRun) -> None:
    first_layers = _read_layers(first_run)
    second_layers = _read_layers(second_run)
    if not first_layers and not second_layers:
        return
    if (first_layers, first_run.blocks) != (second_layers, second_run.blocks):
        raise ValueError(
            f"{_layers_text(first_run)} and {_layers_text(second_run)}: of different layers, "
            "scores cannot be compared. Run them with all blocks, that is without --layers"
        )


def _read_layers(run: ModelRun) -> tuple[int, ...]:
    """Blocks that --layers named; none where all were read."""
    return tuple(run.state.get("loading", {}).get("layers", ()))


def _layers_text(run: ModelRun) -> str:
    layers = ", ".join(map(str, _read_layers(run))) or "all"
    return f"{run.folder} has {layers} of {run.blocks} blocks"


Tables = Mapping[str, pd.DataFrame]
PROBE_KINDS = ("supervised", "unsupervised")
WAYS_OF_ASKING = ("prompting", "direct scoring", "G-Eval")
"""Pairwise comparison, and what text quality has besides (§4.3)."""
EACH_WAY_OF_ASKING = "each way of asking"
SIX_DATA_SETS = "the paper's six"
ALL_DATA_SETS = "all"
SETS_OF_GROUPS = tuple(name for set_names in DATA_SET_GROUPS.values() for name in set_names)
HIGH_F1 = 0.95
"""F1 that unsupervised probes reach on other data sets "in several cases" (§5.3)."""
CHANCE_F1 = 0.5
SHARE_NEAR_BEST = 0.9
"""A curve is near its best at this share of the way up from `CHANCE`."""
GROUP_MEANS_NOTE = (
    "The unweighted mean over the data sets of a group; its interval takes them as independent. A "
    "model without one of them has no mean. Of NEWSROOM, SummEval and HANNA "
)
ASPECTS_NOTES = {
    "apart": (
        "each aspect has a probe of its own, and a number is the mean over aspects, of every "
        "method."
    ),
    "together": (
        "one probe learns from all aspects; the paper's code fits and averages each "
        "(`--aspects apart`)."
    ),
}
SMALL_MODELS_NOTE = (
    "The same of a smaller model's probe against a larger model's own answers, each two models of "
    "a family on a data set; the intervals take both as independent (table small_above_large)."
)
DROPS_NOTE = (
    "A drop is F1 on a natural subset less that on an adversarial one. In how many cases (a model "
    "and subset) the probe's is smaller than asking's (above), and in how many the interval says "
    "so; it takes the four scores as independent (table drops)."
)
RISE_NOTE = (
    "Where each curve rises most from one block to the next (jump), and the first block at which "
    "it has made nine tenths of the way from .5 to its best (near); as shares of the model's "
    "blocks, without intervals. Empty where even the best block is not shown to be above .5."
)
CASES_NOTE = (
    "In how many cases (a model on a data set) the probe's number is the larger one (above), and "
    "in how many the 95 % interval of the paired difference says so (shown above, shown below). "
    "The paper counts its six data sets of text quality and common sense, against direct scoring, "
    "G-Eval and pairwise comparison; “each way of asking” has to be above all that were asked."
)
HIGH_TRANSFER_NOTE = (
    "F1 on another data set than the probe learnt from, in how many cells of table 1 at least .95 "
    "(high), and in how many the lower end of the interval too (shown high); the paper says that "
    "of unsupervised probes in several cases."
)
FIGURES_OF_SET = {"mt_bench": "figure 1, right"} | {
    name: f"figures {12 + k} and {18 + k}" for k, name in enumerate(SETS_OF_GROUPS)
}
"""Data set → the paper's figures that show it by size."""
COMPARISON_METHOD = (
    "Runs of `selfprobe probe run` on the same data and under one preset. Numbers are weighted F1 "
    "on held-out pairs, with 95 % intervals by question, which hold for the probes as fitted. "
    "Preset: "
)
_ANSWER_MASS_WORDS = {
    "answer_mass": "answers with 1 or 2 in {difference} of the probability when it is asked"
}
COMPARED_WORDS = replace(
    PROBE_WORDS, kind="models", unmet={**PROBE_WORDS.unmet, **_ANSWER_MASS_WORDS}
)
COMPARISON_CHECKS_NOTE = (
    "Each check is about the mean over the model's data sets of the supervised probe's F1 less "
    "that of asking, or of a control. A control that was not run on each of them is open. Of "
    "shuffled labels the largest p of the data sets counts."
)


@dataclass(frozen=True)
class LeadRow:
    """Supervised probe less asking and each control, means over data sets."""

    model: Annotated[str, Heading("model", "Model whose states the probe reads.")]
    family: Annotated[str, Heading("family", "Models of one family are one line of a figure.")]
    parameters: Annotated[
        float, Heading("parameters", "Number of parameters.", probe_figures.size_text)
    ]
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
        Heading("probe less asking, F1", "Mean over data sets.", partial(interval_text, sign=True)),
    ]


@dataclass(frozen=True)
class Compared:
    """Results of several runs together."""

    runs: Sequence[ModelRun]
    tables: Mapping[str, pd.DataFrame]
    """Tables by file stem, without those that no run has."""
    missing: Sequence[str]
    """Sentences on what is missing."""
    evidence: Mapping[str, ProbeEvidence]
    """Model → numbers on which its claim rests."""


def compare_runs(runs: Sequence[ModelRun]) -> Compared:
    """The tables of these runs, and what is missing in them."""
    groups = _group_table(runs)
    scores = _score_table(runs)
    depth = _depth_table(runs)
    adversarial = _joined(runs, "adversarial")
    table1 = _transfer_table(runs)
    all_tables = {
        "models": _model_table(runs),
        "scores": scores,
        "groups": groups,
        "cases": _case_table(runs),
        "small_above_large": _small_above_large(scores),
        "depth": depth,
        "rise": rise(depth),
        "table1": table1,
        "general": _high_transfer_table(table1),
        "cosine": _joined(runs, "cosine"),
        "adversarial": adversarial,
        "drops": drops(adversarial),
        "table2": _joined(runs, "ablation"),
        "components": _joined(runs, "components"),
        "strict": _joined(runs, "strict"),
    }
    tables = {name: table for name, table in all_tables.items() if len(table)}
    evidence = {run.model: mean_over_data_sets(run) for run in runs}
    return Compared(runs, tables, list(_missing_sentences(runs, groups)), evidence)


def mean_over_data_sets(run: ModelRun) -> ProbeEvidence:
    """Evidence of a run's supervised probe: F1, the mean over its data sets."""
    evidence_by_set = evidence_of_run(run.tables, "supervised", "f1")
    return mean_evidence(run.model, evidence_by_set, mean_of_estimates)


def mean_of_estimates(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of estimates from different data sets, which are independent.

    Its interval is MOVER's. Undefined where a part is.
    """
    n = sum(estimate.n for estimate in estimates)
    for estimate in estimates:
        if math.isnan(estimate.value):
            reason = estimate.reason or "a data set has no score"
            return undefined(reason, n=n, unit="question")

    reasons = [
        estimate.reason for estimate in estimates if math.isnan(estimate.low) and estimate.reason
    ]
    weight = 1 / len(estimates)
    mean = _weighted_sum(*((weight, estimate) for estimate in estimates))
    return replace(mean, n=n, reason=reasons[0] if reasons else "")


def _score_table(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """The runs' methods and their fine-tuned judges, which are tested on the half that one split
    leaves.
    """
    methods = _joined(runs, "methods")
    tuned_judges = _joined(runs, "finetuned")
    if not len(tuned_judges):
        return methods
    is_in_methods = tuned_judges.method.isin(methods.method)
    return pd.concat([methods, tuned_judges[~is_in_methods]], ignore_index=True)


def _joined(runs: Sequence[ModelRun], name: str) -> pd.DataFrame:
    """A table of all runs under one another, with the models' names before; empty where none has
    it.
    """
    tables = [run.table(name) for run in runs]
    filled_tables = [table for table in tables if len(table)]
    if not filled_tables:
        return pd.DataFrame()
    return pd.concat(filled_tables, ignore_index=True)


def _model_table(runs: Sequence[ModelRun]) -> pd.DataFrame:
    rows = []
    for run in runs:
        loading = run.state.get("loading", {})
        settings = run.state["settings"]
        row = {
            "blocks": run.blocks,
            "asked_for": run.state["model"],
            "revision": run.state["revision"],
            "dtype": loading.get("quantize") or loading.get("dtype", ""),
            "preset": settings["name"],
            "aspects": settings.get("aspects", "together"),
            "data_sets": ", ".join(run.state["datasets"]),
            "selfprobe": run.state.get("selfprobe", ""),
            "folder": str(run.folder),
        }
        rows.append(run.names | row)
    return pd.DataFrame(rows)


def _group_table(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """group, data_sets, method, metric, value, low, high, n, unit, reason: undefined where a data
    set is missing.
    """
    rows = []
    for run in runs:
        scores = _score_table([run]).drop(columns=list(run.names))
        for group, set_names in DATA_SET_GROUPS.items():
            group_scores = scores[scores.dataset.isin(set_names)]
            for (method, metric), method_scores in group_scores.groupby(
                ["method", "metric"], sort=False
            ):
                mean = _mean_over_sets(method_scores, set_names)
                row = {
                    "group": group,
                    "data_sets": ", ".join(set_names),
                    "method": method,
                    "metric": metric,
                }
                rows.append(run.names | row | asdict(mean))
    return pd.DataFrame(rows)


def _mean_over_sets(method_scores: pd.DataFrame, set_names: Sequence[str]) -> Estimate:
    """Mean of a method's scores over all of these data sets; undefined where one is missing."""
    score_by_set = method_scores.set_index("dataset")
    missing_sets = [name for name in set_names if name not in score_by_set.index]
    if missing_sets:
        reason = f"no {', '.join(missing_sets)}"
        return undefined(reason, n=int(method_scores.n.sum()), unit="question")
    return mean_of_estimates([estimate_of(score_by_set.loc[name]) for name in set_names])


def _case_table(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """data_sets, probe, against, metric, cases (of a model and data set), above, shown_above,
    shown_below.

    `data_sets` is `SIX_DATA_SETS` (those of figures 2 and 3, which the paper counts) or
    `ALL_DATA_SETS`. Against `EACH_WAY_OF_ASKING`, the largest of direct scoring, G-Eval and
    pairwise comparison that the run has, each pair of scores on its own: `above` is above all of
    them, `shown_above` has all of their intervals over 0, `shown_below` any below.
    """
    differences = _joined(runs, "differences").dropna(subset=["value"])
    case_columns = [*runs[0].names, "dataset", "probe", "metric"]
    from_asking = differences[differences.against.isin(WAYS_OF_ASKING)]
    by_case = from_asking.groupby(case_columns, sort=False, dropna=False)
    smallest_lead = by_case.agg(value=("value", "min"), low=("low", "min"), high=("high", "min"))
    from_each = smallest_lead.reset_index().assign(against=EACH_WAY_OF_ASKING)
    counted_differences = differences[differences.against.isin((*WAYS_OF_ASKING, "unsupervised"))]
    counted_differences = pd.concat([counted_differences, from_each], ignore_index=True)
    differences_of_six = counted_differences[counted_differences.dataset.isin(SETS_OF_GROUPS)]

    rows = []
    for data_sets, cases in (
        (SIX_DATA_SETS, differences_of_six),
        (ALL_DATA_SETS, counted_differences),
    ):
        comparisons = cases.groupby(["probe", "against", "metric"], sort=False)
        for (probe, against, metric), compared_cases in comparisons:
            names = {"data_sets": data_sets, "probe": probe, "against": against, "metric": metric}
            rows.append(names | _counts_of_cases(compared_cases))
    return pd.DataFrame(rows)


def _counts_of_cases(differences: pd.DataFrame) -> dict[str, int]:
    """Number of differences, of those above 0, and of those whose interval is above or below 0."""
    return {
        "cases": len(differences),
        "above": int((differences.value > 0).sum()),
        "shown_above": int((differences.low > 0).sum()),
        "shown_below": int((differences.high < 0).sum()),
    }


def _high_transfer_table(table1: pd.DataFrame) -> pd.DataFrame:
    """model, probe, cells, high, shown_high: F1 of a probe on another data set of at least
    `HIGH_F1` (§5.3).

    `high` counts numbers, `shown_high` the lower ends of their intervals.

    Args:
        table1: model, tested_on, trained_on, metric; supervised_value, supervised_low and the
            unsupervised probe's.
    """
    if not len(table1):
        return table1
    is_other_set = table1.tested_on != table1.trained_on
    transfers = table1[(table1.metric == "f1") & is_other_set]
    rows = []
    for model, model_transfers in transfers.groupby("model", sort=False):
        for probe in PROBE_KINDS:
            values = model_transfers[f"{probe}_value"]
            lower_ends = model_transfers[f"{probe}_low"]
            rows.append(
                {
                    "model": model,
                    "probe": probe,
                    "cells": int(values.notna().sum()),
                    "high": int((values >= HIGH_F1).sum()),
                    "shown_high": int((lower_ends >= HIGH_F1).sum()),
                }
            )
    return pd.DataFrame(rows)


def _depth_table(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """The runs' layers, with `depth`: the block's number (the first is 1) as a share of the model's
    blocks.
    """
    layers = _joined(runs, "layers")
    block_counts = {run.model: run.blocks for run in runs}
    return layers.assign(depth=(layers.layer + 1) / layers.model.map(block_counts))


def _transfer_table(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """tested_on, trained_on, metric, centre; the supervised and the unsupervised probe's value, low
    and high under that centre and under either one (`supervised_tested_value` …), and n.
    """
    transfers = _joined(runs, "transfer")
    if not len(transfers):
        return transfers
    cell_columns = ["model", "family", "parameters", "tested_on", "trained_on", "metric", "centre"]
    supervised = _transfers_of_probe(transfers, "supervised", cell_columns)
    unsupervised = _transfers_of_probe(transfers, "unsupervised", cell_columns)
    return supervised.merge(unsupervised.drop(columns="n"), on=cell_columns)


def _transfers_of_probe(
    transfers: pd.DataFrame, probe: str, cell_columns: list[str]
) -> pd.DataFrame:
    scores = transfers[transfers.probe == probe][[*cell_columns, *TRANSFER_NUMBERS, "n"]]
    return scores.rename(columns={name: f"{probe}_{name}" for name in TRANSFER_NUMBERS})


def _missing_sentences(runs: Sequence[ModelRun], groups: pd.DataFrame) -> Iterator[str]:
    """Sentences on what some runs have and others do not, and on what is drawn nowhere."""
    datasets = list(dict.fromkeys(name for run in runs for name in run.state["datasets"]))
    for name in datasets:
        models_without = [run.model for run in runs if name not in run.state["datasets"]]
        if models_without:
            yield f"{name} was not run with {', '.join(models_without)}."
    if len(groups):
        yield from _missing_means(groups)
    for run in runs:
        if math.isnan(run.parameters):
            yield (
                f"{run.model}: neither the run nor the name says how large it is, so it is in no "
                "figure by size."
            )
    for name in datasets:
        scored_pairs = {
            run.model: _scored_pairs(run, name) for run in runs if name in run.state["datasets"]
        }
        if len(set(scored_pairs.values())) > 1:
            counts_text = ", ".join(f"{model} {count}" for model, count in scored_pairs.items())
            yield (
                f"{name}: models could read different numbers of its pairs, and are tested on "
                f"these ({counts_text})."
            )
    yield from _missing_parts(runs)


def _missing_means(groups: pd.DataFrame) -> Iterator[str]:
    probe_means = groups[groups.method.isin(PROBE_KINDS)]  # a judge may learn from some sets alone
    is_incomplete = probe_means.reason.fillna("").str.startswith("no ")
    incomplete_means = probe_means[is_incomplete]
    keys = ["group", "model", "reason"]
    for (group, model, reason), _ in incomplete_means.groupby(keys, sort=False):
        yield f"{model} has {reason}: no mean over {group}, which takes {', '.join(DATA_SET_GROUPS[group])}."


def _scored_pairs(run: ModelRun, dataset: str) -> int:
    data = run.tables["data"]
    return int(data[data.dataset == dataset].scored.sum())


def _missing_parts(runs: Sequence[ModelRun]) -> Iterator[str]:
    requirements = {
        "transfer": "two data sets",
        "ablation": "`selfprobe probe run --parts ablate`",
    }
    for table, requirement in requirements.items():
        models_without = [run.model for run in runs if table not in run.tables]
        if 0 < len(models_without) < len(runs):
            yield f"{table}: not of {', '.join(models_without)}; it takes {requirement}."


def lead_rows(run: ModelRun, evidence: ProbeEvidence) -> list[LeadRow]:
    """Rows of a run: its supervised probe less asking and less each control."""
    data_set_count = run.tables["methods"].dataset.nunique()
    rows = []
    for control in CONTROLS:
        lead = evidence.leads.get(control.check)
        if lead is not None:
            rows.append(
                LeadRow(
                    model=run.model,
                    family=run.family,
                    parameters=run.parameters,
                    data_sets=data_set_count,
                    against=control.label,
                    score=lead.score,
                    estimate=lead.lead,
                )
            )
    return rows


def _small_above_large(scores: pd.DataFrame) -> pd.DataFrame:
    """family, dataset, probe, small, large, times (as many parameters), value, low, high; F1, small
    less large.

    Paper: "almost always", read off figure 2. Here: each two models of a family. The interval takes
    both scores as independent (MOVER, Zou and Donner 2008); they are of the same pairs, so it is
    rather too wide.

    Args:
        scores: family, model, parameters, dataset, method, metric, value, low, high.
    """
    has_numbers = scores.value.notna() & scores.parameters.notna()
    f1_scores = scores[(scores.metric == "f1") & has_numbers]
    rows = []
    for (family, dataset), family_scores in f1_scores.groupby(["family", "dataset"], sort=False):
        score_by_model_and_method = {
            (score.model, score.method): score for score in family_scores.itertuples()
        }
        models_by_size = family_scores.drop_duplicates("model").sort_values("parameters")
        model_pairs = combinations(models_by_size.itertuples(), 2)
        for (small, large), probe in product(model_pairs, PROBE_KINDS):
            probe_score = score_by_model_and_method.get((small.model, probe))
            asking_score = score_by_model_and_method.get((large.model, "prompting"))
            if small.parameters == large.parameters or probe_score is None or asking_score is None:
                continue
            names = {
                "family": family,
                "dataset": dataset,
                "probe": probe,
                "small": small.model,
                "large": large.model,
                "times": large.parameters / small.parameters,
            }
            lead = _weighted_sum((1, probe_score), (-1, asking_score))
            rows.append(names | _value_columns(lead))
    return pd.DataFrame(rows)


def _weighted_sum(*weighted_scores: tuple[float, Any]) -> Estimate:
    """The weighted sum of independent scores, with MOVER's interval (Zou and Donner 2008).

    Each end is as far from the sum as the parts' ends are from theirs, in quadrature.

    Args:
        weighted_scores: Each a weight and what has value, low and high: an estimate, or a row of a
            table.
    """
    value = sum(weight * score.value for weight, score in weighted_scores)
    distances_down = []
    distances_up = []
    for weight, score in weighted_scores:
        lower_end, upper_end = score.low, score.high
        if weight <= 0:
            lower_end, upper_end = score.high, score.low
        distances_down.append(weight * (score.value - lower_end))
        distances_up.append(weight * (upper_end - score.value))
    low = value - math.hypot(*distances_down)
    high = value + math.hypot(*distances_up)
    return Estimate(value, low, high, 0, "question")


def _value_columns(estimate: Estimate) -> dict[str, float]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def drops(adversarial: pd.DataFrame) -> pd.DataFrame:
    """model, family, subset, natural, probe, probe_drop, prompting_drop, value, low, high; F1, each
    with low and high.

    A drop is the score on the natural pairs less that on an adversarial subset; `value` is asking's
    less the probe's, above 0 where the probe's is the smaller one. Paper: "for all but one subset".
    Here: of each model and natural subset. The intervals take the scores as independent
    (`_weighted_sum`); probe and asking are of the same pairs, so that they are rather too wide.

    Args:
        adversarial: model, family, subset, method, metric, value, low, high; empty where no run has
            LLMBar.
    """
    if not len(adversarial):
        return adversarial
    f1_scores = adversarial[(adversarial.metric == "f1") & adversarial.value.notna()]
    rows = []
    for (model, family), model_scores in f1_scores.groupby(["model", "family"], sort=False):
        score_by_subset_and_method = {
            (score.subset, score.method): score for score in model_scores.itertuples()
        }
        subsets = list(dict.fromkeys(model_scores.subset))
        natural_subsets = [subset for subset in subsets if subset in LLMBAR_NATURAL]
        adversarial_subsets = [subset for subset in subsets if subset not in LLMBAR_NATURAL]
        for natural, subset, probe in product(natural_subsets, adversarial_subsets, PROBE_KINDS):
            names = {
                "model": model,
                "family": family,
                "subset": subset,
                "natural": natural,
                "probe": probe,
            }
            columns = _drop_columns(score_by_subset_and_method, natural, subset, probe)
            if columns:
                rows.append(names | columns)
    return pd.DataFrame(rows)


def _drop_columns(
    score_by_subset_and_method: Mapping[tuple[str, str], Any], natural: str, subset: str, probe: str
) -> dict[str, float]:
    """Drops of a probe and of asking, and their difference; empty where a score is missing."""
    natural_probe = score_by_subset_and_method.get((natural, probe))
    subset_probe = score_by_subset_and_method.get((subset, probe))
    natural_asking = score_by_subset_and_method.get((natural, "prompting"))
    subset_asking = score_by_subset_and_method.get((subset, "prompting"))
    if any(score is None for score in (natural_probe, subset_probe, natural_asking, subset_asking)):
        return {}
    probe_drop = _weighted_sum((1, natural_probe), (-1, subset_probe))
    asking_drop = _weighted_sum((1, natural_asking), (-1, subset_asking))
    difference = _weighted_sum(
        (1, natural_asking), (-1, subset_asking), (-1, natural_probe), (1, subset_probe)
    )
    return {
        **interval_columns("probe_drop", probe_drop),
        **interval_columns("prompting_drop", asking_drop),
        **_value_columns(difference),
    }


def rise(depth: pd.DataFrame) -> pd.DataFrame:
    """Table of each model, data set and probe: best, best_depth, jump, jump_depth, near_depth.

    `jump` is the largest rise of F1 from one read block to the next, at `jump_depth`; `near_depth`
    is the first block at which the curve has made `SHARE_NEAR_BEST` of the way from chance to its
    best. Depths are shares of the model's blocks. NaN where even the best block is not shown to be
    above chance. Paper: in words ("a discontinuity", "by around 40-50 %").

    Args:
        depth: model, family, parameters, dataset, probe, metric, depth, value, low.
    """
    rows = []
    key_columns = ["model", "family", "parameters", "dataset", "probe"]
    f1_scores = depth[depth.metric == "f1"]
    for key, curve in f1_scores.groupby(key_columns, sort=False, dropna=False):
        names = dict(zip(key_columns, key, strict=True))
        rows.append(names | _rise_of_curve(curve.sort_values("depth")))
    return pd.DataFrame(rows)


def _rise_of_curve(curve: pd.DataFrame) -> dict[str, float]:
    columns = dict.fromkeys(("best", "best_depth", "jump", "jump_depth", "near_depth"), math.nan)
    scores = curve[curve.value.notna()]
    if len(scores) < 2:
        return columns
    best_block = scores.loc[scores.value.idxmax()]
    columns |= {"best": float(best_block.value), "best_depth": float(best_block.depth)}
    if not best_block.low > CHANCE_F1:
        return columns

    steps = scores.value.diff()
    score_near_best = CHANCE_F1 + SHARE_NEAR_BEST * (best_block.value - CHANCE_F1)
    blocks_near_best = scores[scores.value >= score_near_best]
    return columns | {
        "jump": float(steps.max()),
        "jump_depth": float(scores.depth[steps.idxmax()]),
        "near_depth": float(blocks_near_best.depth.iloc[0]),
    }


def case_counts(differences: pd.DataFrame) -> pd.DataFrame:
    """probe, cases, above, shown_above, shown_below of `_small_above_large` or `drops`."""
    rows = []
    for probe, probe_differences in differences.groupby("probe", sort=False):
        rows.append({"probe": probe} | _counts_of_cases(probe_differences))
    return pd.DataFrame(rows)


def comparison_page(compared: Compared) -> Page:
    """The answer by run; what the paper shows of several models under its headings."""
    tables = compared.tables
    claims = ordered_claims([probe_claim(compared.evidence[run.model]) for run in compared.runs])
    answers = [
        ModelAnswerRow(claim.subject, claim.verdict, claim.effect)
        for claim in claims[:MOST_FINDINGS]
    ]
    leads = list[LeadRow]()
    for run in compared.runs:
        leads += lead_rows(run, compared.evidence[run.model])

    paper_sections = list[Section]()
    for title, make_blocks in PAPER_SECTIONS.items():
        blocks = list(make_blocks(tables))
        if blocks:
            paper_sections.append(Section(title, blocks))
    score_sections = [
        Section(name, [text_table(_scores_by_method(scores))])
        for name, scores in _scores_by_set(tables)
    ]
    preset = compared.runs[0].state["settings"]["name"]
    page = claim_page(
        "Do probes of a model's states judge better than its own answers?",
        claims,
        COMPARED_WORDS,
        picture=_lead_picture(claims),
        table=Table(answers, columns_of(ModelAnswerRow)),
        tables={"above": RowTable(LeadRow, leads)},
        paper=[*_count_blocks(tables), *paper_sections],
        cells=score_sections,
        method=[
            f"{COMPARISON_METHOD}{preset}.",
            COMPARISON_CHECKS_NOTE,
            GROUP_MEANS_NOTE + ASPECTS_NOTES[tables["models"].aspects[0]],
        ],
    )
    runs_section = Section("Runs", _run_blocks(compared), name="runs")
    missing_table = pd.DataFrame({"what": compared.missing})
    return replace(
        page,
        sections=[*page.sections, runs_section],
        tables={**page.tables, **tables, "missing": missing_table},
        notes=_terminal_lines(page.notes, compared.missing),
    )


def _run_blocks(compared: Compared) -> list[Block]:
    """The runs, and what some have and others do not."""
    columns = ["model", "family", "parameters", "blocks", "dtype", "data_sets"]
    models = compared.tables["models"][columns]
    size_texts = [probe_figures.size_text(count) for count in models.parameters]
    blocks: list[Block] = [text_table(models.assign(parameters=size_texts))]
    if compared.missing:
        blocks.append(Bullets(compared.missing))
    return blocks


def _terminal_lines(lines: Sequence[str], missing: Sequence[str]) -> list[str]:
    """Lines of the terminal, the last of them on what is missing."""
    if not missing:
        return list(lines)
    missing_line = f"Missing: {missing[0]}"
    if len(missing) > 1:
        missing_line += f" {len(missing) - 1} more under Runs."
    return [*lines[: MOST_TERMINAL_LINES - 1], missing_line]


def _lead_picture(claims: Sequence[Claim]) -> Picture:
    leads = {
        claim.subject: {"supervised probe less asking": claim.effect}
        for claim in claims[:MOST_FINDINGS]
    }
    caption = (
        f"Means over data sets with 95 % intervals.{more_in_tables(len(claims) - MOST_FINDINGS)}"
    )
    return interval_rows("above", leads, caption=caption, axis="F1, probe less asking", line=0)


def _scores_by_set(tables: Tables) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each group and data set with its scores."""
    for table, column in (("groups", "group"), ("scores", "dataset")):
        if table in tables:
            for name, scores in tables[table].groupby(column, sort=False):
                yield str(name), scores


def _size_blocks(tables: Tables) -> Iterator[Block]:
    """A figure by size of each group and data set that has one."""
    for name, scores in _scores_by_set(tables):
        has_numbers = scores.parameters.notna() & scores.value.notna()
        drawn_scores = scores[(scores.metric == "f1") & has_numbers]
        if not len(drawn_scores):
            continue
        title = f"{name} ({FIGURES_OF_SET[name]})" if name in FIGURES_OF_SET else name
        stem = probe_figures.stem_of("means" if name in DATA_SET_GROUPS else "size", name)
        yield Figures(probe_figures.size_pictures(drawn_scores, title=title, stem=stem))


def _scores_by_method(scores: pd.DataFrame) -> pd.DataFrame:
    """model, then a column a method: F1 with its interval as text."""
    f1_scores = scores[scores.metric == "f1"]
    texts = {(score.model, score.method): interval_text(score) for score in f1_scores.itertuples()}
    methods = list(dict.fromkeys(f1_scores.method))
    rows = []
    for model in dict.fromkeys(f1_scores.model):
        text_by_method = {method: texts.get((model, method), "") for method in methods}
        rows.append({"model": model} | text_by_method)
    return pd.DataFrame(rows)


def _count_blocks(tables: Tables) -> Iterator[Block]:
    """Counts for what the paper says in words: in how many cases it holds."""
    if "cases" in tables:
        yield CASES_NOTE
        yield text_table(tables["cases"].query("metric == 'f1'").drop(columns="metric"))
    for name, note in (("small_above_large", SMALL_MODELS_NOTE), ("drops", DROPS_NOTE)):
        if name in tables:
            yield note
            yield text_table(case_counts(tables[name]))


def _layer_blocks(tables: Tables) -> Iterator[Block]:
    for dataset, curves in tables["depth"].groupby("dataset", sort=False):
        stem = probe_figures.stem_of("depth", dataset)
        yield Figures(probe_figures.depth_pictures(curves, title=f"{dataset}, by layer", stem=stem))
    if "rise" in tables:
        yield RISE_NOTE
        yield text_table(tables["rise"].drop(columns=["family", "parameters"]).round(2))


def _transfer_blocks(tables: Tables) -> Iterator[Block]:
    """A table a model, as the paper's: rows tested on, columns trained on, supervised /
    unsupervised.
    """
    if "table1" not in tables:
        return
    for model, transfers in tables["table1"].query("metric == 'f1'").groupby("model", sort=False):
        texts = []
        for row in transfers.itertuples():
            estimates = [_estimate_of_probe(row, probe) for probe in PROBE_KINDS]
            texts.append(" / ".join(map(interval_text, estimates)))
        names = list(dict.fromkeys(transfers.trained_on))
        cells = transfers.assign(cell=texts).pivot(
            index="tested_on", columns="trained_on", values="cell"
        )
        square = cells.loc[names, names]
        centre_words = CENTRE_WORDS[transfers.centre.iloc[0]]
        yield (
            f"{model}: F1, supervised / unsupervised; rows tested on, columns trained on; "
            f"{centre_words}."
        )
        yield text_table(square.rename_axis(None, axis=1).reset_index())
    yield from _pictures_by("model", "table1", tables, _transfer_maps)
    if "general" in tables:
        yield HIGH_TRANSFER_NOTE
        yield text_table(tables["general"])


CENTRE_WORDS: Mapping[str, str] = {
    "source": "differences less the means of the set trained on (columns tested_ hold the others)",
    "tested": "differences less the means of the set tested (columns source_ hold the others)",
}
"""Centre → how states of another data set were centred."""


def _estimate_of_probe(row: Any, probe: str) -> Estimate:
    return Estimate(
        getattr(row, f"{probe}_value"),
        getattr(row, f"{probe}_low"),
        getattr(row, f"{probe}_high"),
        row.n,
        "question",
    )


def _transfer_maps(transfers: pd.DataFrame, stem: str) -> list[Picture]:
    cells = transfers[["tested_on", "trained_on", "metric"]]
    frames = []
    for probe in PROBE_KINDS:
        columns = {end: transfers[f"{probe}_{end}"] for end in ("value", "low", "high")}
        frames.append(cells.assign(probe=probe, **columns))
    return probe_figures.transfer_pictures(pd.concat(frames, ignore_index=True), stem=stem)


def _pictures_by(
    column: str, name: str, tables: Tables, draw: "Callable[..., list[Picture]]"
) -> Iterator[Block]:
    """Pictures of a table for each model, or data set, under its name."""
    if name in tables:
        for value, rows in tables[name].groupby(column, sort=False):
            yield str(value)
            yield Figures(draw(rows, stem=probe_figures.stem_of(name, value)))


def _ablation_blocks(tables: Tables) -> Iterator[Block]:
    if "table2" not in tables:
        return
    table = tables["table2"]
    yield Figures(probe_figures.change_pictures(table, stem="table2"))
    ablations = table[table.direction != "none"]
    change_texts = [interval_text(row, sign=True) for row in ablations.itertuples()]
    cells = ablations.assign(change=change_texts).pivot_table(
        index=["dataset", "direction"],
        columns="model",
        values="change",
        aggfunc="first",
        sort=False,
    )
    yield text_table(cells.rename_axis(None, axis=1).reset_index().fillna(""))


def _cosine_blocks(tables: Tables) -> Iterator[Block]:
    return _pictures_by("model", "cosine", tables, probe_figures.cosine_pictures)


def _adversarial_blocks(tables: Tables) -> Iterator[Block]:
    return _pictures_by("model", "adversarial", tables, probe_figures.adversarial_pictures)


def _component_blocks(tables: Tables) -> Iterator[Block]:
    draw = partial(probe_figures.component_pictures, by="model")
    return _pictures_by("dataset", "components", tables, draw)


def _strict_blocks(tables: Tables) -> Iterator[Block]:
    """What the paper's halves leak, and F1 by halves of questions, a row a model and data set."""
    if "strict" not in tables:
        return
    f1_scores = tables["strict"].query("metric == 'f1'")
    texts = [interval_text(score) for score in f1_scores.itertuples()]
    cells = f1_scores.assign(text=texts).pivot_table(
        index=["model", "dataset"], columns="method", values="text", aggfunc="first", sort=False
    )
    yield LEAK_SENTENCE
    yield text_table(cells.rename_axis(None, axis=1).reset_index())


PAPER_SECTIONS: "Mapping[str, Callable[[Tables], Iterator[Block]]]" = {
    "By halves of questions (preset strict)": _strict_blocks,
    "By size (figures 1 to 3, 12 to 23)": _size_blocks,
    "By layer (figures 6, 7)": _layer_blocks,
    "Probes of one data set on another (table 1)": _transfer_blocks,
    "Directions (figure 5)": _cosine_blocks,
    "LLMBar (figures 4, 8 to 11)": _adversarial_blocks,
    "A direction taken out (table 2)": _ablation_blocks,
    "First two components (figure 1, left)": _component_blocks,
}
"""Headings of what the paper shows → how it is made here."""
