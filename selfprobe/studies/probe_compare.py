"""Probes of several models side by side: do they judge better than asking? The page of their runs.

No model is asked and nothing is fitted: every number is one of a run's folder, a mean of such, or a
count of them. The tables and figures of the latent-preference paper are made of the same runs by
selfprobe/papers/latent_preferences.py.

above         the supervised probe less asking and each control, a row a run and control: the answer
models        one row a run
scores        every method on every data set
strict        of presets whose halves share questions: F1 by halves of questions
missing       what some runs have and others do not, a sentence a row
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from selfprobe.page import (
    MOST_FINDINGS,
    MOST_TERMINAL_LINES,
    Block,
    Bullets,
    Heading,
    Page,
    Picture,
    RowTable,
    Section,
    Table,
    claim_page,
    interval_text,
    more_in_tables,
    number,
    signed_interval,
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
    evidence_of_run,
    mean_evidence,
    probe_claim,
)
from selfprobe.studies.probe_page import LEAK_SENTENCE, PROBE_PAPER_LINE, text_table

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
ASPECTS_NOTES = {
    "apart": (
        "Of NEWSROOM, SummEval and HANNA each aspect has a probe of its own, and a number is the "
        "mean over aspects, of every method."
    ),
    "together": (
        "Of NEWSROOM, SummEval and HANNA one probe learns from all aspects; the paper's code fits "
        "and averages each (`--aspects apart`)."
    ),
}
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
        Heading("probe less asking, F1", "Mean over data sets.", signed_interval),
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
    all_tables = {
        "models": _model_table(runs),
        "scores": score_table(runs),
        "strict": joined(runs, "strict"),
    }
    tables = {name: table for name, table in all_tables.items() if len(table)}
    evidence = {run.model: mean_over_data_sets(run) for run in runs}
    return Compared(runs, tables, list(_missing_sentences(runs)), evidence)


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
    mean = weighted_sum(*((weight, estimate) for estimate in estimates))
    return replace(mean, n=n, reason=reasons[0] if reasons else "")


def score_table(runs: Sequence[ModelRun]) -> pd.DataFrame:
    """The runs' methods and their fine-tuned judges, which are tested on the half that one split
    leaves.
    """
    methods = joined(runs, "methods")
    tuned_judges = joined(runs, "finetuned")
    if not len(tuned_judges):
        return methods
    is_in_methods = tuned_judges.method.isin(methods.method)
    return pd.concat([methods, tuned_judges[~is_in_methods]], ignore_index=True)


def joined(runs: Sequence[ModelRun], name: str) -> pd.DataFrame:
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


def _missing_sentences(runs: Sequence[ModelRun]) -> Iterator[str]:
    """Sentences on what some runs have and others do not."""
    datasets = list(dict.fromkeys(name for run in runs for name in run.state["datasets"]))
    for name in datasets:
        models_without = [run.model for run in runs if name not in run.state["datasets"]]
        if models_without:
            yield f"{name} was not run with {', '.join(models_without)}."
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


def _scored_pairs(run: ModelRun, dataset: str) -> int:
    data = run.tables["data"]
    return int(data[data.dataset == dataset].scored.sum())


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


def weighted_sum(*weighted_scores: tuple[float, Any]) -> Estimate:
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


def comparison_page(compared: Compared) -> Page:
    """The answer by run, and the scores of every method by data set."""
    tables = compared.tables
    claims = ordered_claims([probe_claim(compared.evidence[run.model]) for run in compared.runs])
    answers = [
        ModelAnswerRow(claim.subject, claim.verdict, claim.effect)
        for claim in claims[:MOST_FINDINGS]
    ]
    leads = list[LeadRow]()
    for run in compared.runs:
        leads += lead_rows(run, compared.evidence[run.model])

    score_sections = [
        Section(str(dataset), [text_table(f1_by_method(scores))])
        for dataset, scores in tables["scores"].groupby("dataset", sort=False)
    ]
    preset = compared.runs[0].state["settings"]["name"]
    page = claim_page(
        "Do probes of a model's states judge better than its own answers?",
        claims,
        COMPARED_WORDS,
        picture=_lead_picture(claims),
        table=Table(answers, columns_of(ModelAnswerRow)),
        tables={"above": RowTable(LeadRow, leads)},
        further_figures=[*_strict_sections(tables), *score_sections],
        method=[
            f"{COMPARISON_METHOD}{preset}.",
            COMPARISON_CHECKS_NOTE,
            ASPECTS_NOTES[tables["models"].aspects[0]],
            PROBE_PAPER_LINE,
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


def f1_by_method(scores: pd.DataFrame) -> pd.DataFrame:
    """model, then a column a method: F1 with its interval as text."""
    f1_scores = scores[scores.metric == "f1"]
    texts = {(score.model, score.method): interval_text(score) for score in f1_scores.itertuples()}
    methods = list(dict.fromkeys(f1_scores.method))
    rows = []
    for model in dict.fromkeys(f1_scores.model):
        text_by_method = {method: texts.get((model, method), "") for method in methods}
        rows.append({"model": model} | text_by_method)
    return pd.DataFrame(rows)


def _strict_sections(tables: Tables) -> list[Section]:
    """What the paper's halves leak, and F1 by halves of questions, a row a model and data set."""
    if "strict" not in tables:
        return []
    f1_scores = tables["strict"].query("metric == 'f1'")
    texts = [interval_text(score) for score in f1_scores.itertuples()]
    cells = f1_scores.assign(text=texts).pivot_table(
        index=["model", "dataset"], columns="method", values="text", aggfunc="first", sort=False
    )
    table = text_table(cells.rename_axis(None, axis=1).reset_index())
    return [Section("By halves of questions (preset strict)", [LEAK_SENTENCE, table])]
