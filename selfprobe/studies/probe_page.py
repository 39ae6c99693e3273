"""Page of a probe run, index.html and as text report.md, from the tables in its folder."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from markupsafe import Markup

from selfprobe.page import (
    MOST_FINDINGS,
    MOST_TERMINAL_LINES,
    PROBES,
    Block,
    Column,
    Figures,
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
    p_digits,
    percent_interval,
    signed_number,
)
from selfprobe.page.claims import ClaimWords, check_table, claim_sentence
from selfprobe.page.columns import INTERVAL_HELP, columns_of
from selfprobe.page.plots import cut_name, interval_rows
from selfprobe.probes.folder import read_run
from selfprobe.stats.claim import Claim, Outcome, Verdict, ordered_claims
from selfprobe.stats.estimate import Estimate
from selfprobe.studies import probe_figures
from selfprobe.studies.probe_claims import (
    JUDGE_WORDS,
    JUDGES,
    PROBE_WORDS,
    JudgeEvidence,
    ProbeEvidence,
    evidence_of_run,
    judge_claim,
    judge_evidence,
    probe_claim,
)

Tables = Mapping[str, pd.DataFrame]
METRIC: Literal["auroc"] = "auroc"
"""Metric of the claims: at .5 nothing is known, however often a method says 1."""
SCALE_SENTENCE = "AUROC on held-out pairs, with 95 % intervals by question; .5 is chance."
PROBE_CHECKS = (
    "Yes takes a lead over asking and over each control, with its whole 95 % interval above 0; "
    "a control that was not run leaves it open, and one that is shown to reach as much explains "
    "it. Shuffled labels are those of the test half, and the best of all layers counts. Of random "
    "directions each half has four, their signs from the training labels. Sentence embeddings are "
    "MiniLM's of each text, their differences under the same fit: a probe says something of the "
    "judge only above that. Where the model, asked, "
    "puts less than one half of its probability on 1 and 2, asking says little, and a lead over it "
    "as little."
)
LEAK_SENTENCE = (
    "The paper's own halves leak: §4.4 draws pairs, so that one question is in the training half and "
    "in the test half, and a probe may know it again. So no number of this preset is a measurement. "
    "Beside it, the same states under the preset strict: halves of questions, both orders, "
    "regularisation chosen in the training half; of the last block alone."
)
PROBE_PAPER_LINE = Markup(
    "The tables and figures of {} from these runs: "
    "<code>selfprobe paper latent-preferences FOLDERS</code>."
).format(PROBES)
ONE_TRAINING = (
    "This is one training on one half: another half or seed may differ by more than the interval."
)


@dataclass(frozen=True)
class ProbeAnswerRow:
    """Answers by data set."""

    dataset: Annotated[str, Heading("data set", "Data set whose pairs are judged.")]
    answer: Annotated[
        Verdict,
        Heading("answer", "Whether the supervised probe is above asking and every control."),
    ]
    probe: Annotated[float, Heading("probe", "AUROC of the supervised probe.", number)]
    asking: Annotated[float, Heading("asking", "AUROC of the model's own answers.", number)]
    difference: Annotated[float, Heading("difference", "The probe less asking.", signed_number)]


@dataclass(frozen=True)
class JudgeAnswerRow:
    """Answers by data set and training."""

    dataset: Annotated[str, Heading("data set", "Data set whose pairs are judged.")]
    answer: Annotated[
        Verdict, Heading("answer", "Whether the fine-tuned judge is above its probe and the texts.")
    ]
    judge: Annotated[float, Heading("judge", "AUROC of the fine-tuned judge.", number)]
    probe: Annotated[float, Heading("probe", "AUROC of the supervised probe.", number)]
    difference: Annotated[float, Heading("difference", "The judge less the probe.", signed_number)]


@dataclass(frozen=True)
class ProbeCheckRow:
    """Probes less asking and each control, check by check"""

    dataset: Annotated[str, Heading("data set", "Data set whose pairs are judged.")]
    probe: Annotated[str, Heading("probe", "Kind of the probe.")]
    check: Annotated[str, Heading("check", "What a sceptic would ask of the claim.")]
    estimate: Annotated[
        Estimate, Heading("measured", "The probe less the control, paired; or a share.")
    ]
    compared_with: Annotated[str, Heading("compared with", "The control, and what it reaches.")]
    p_value: Annotated[
        float, Heading("p", "p of the check; a dash where its interval decides.", p_digits)
    ]
    outcome: Annotated[
        Outcome, Heading("outcome", "Holds, fails, or open: these data cannot decide it.")
    ]


def check_rows(claim: Claim, kind: str, words: ClaimWords) -> list[ProbeCheckRow]:
    """The checks of a claim as rows."""
    return [
        ProbeCheckRow(
            claim.subject,
            kind,
            words.checks[check.name],
            check.difference,
            check.compared_with,
            check.p_value,
            check.outcome,
        )
        for check in claim.checks
    ]


def cost_sentences(tables: Tables) -> list[str]:
    """A sentence a data set and training: how long learning took the judge, and the probe."""
    sentences = []
    costs = tables["finetuning_cost"]
    trainings = tables["finetuned_less"][["dataset", "probe"]].drop_duplicates()
    for dataset, judge in trainings.itertuples(index=False):
        seconds = costs[costs.dataset == dataset].set_index("what").seconds
        judge_seconds = seconds[seconds.index.str.startswith(f"{judge}:")].sum()
        probe_seconds = seconds[seconds.index.str.startswith("probe:")].sum()
        times = f"Training took {judge_seconds:.0f} s, and the probe {probe_seconds:.0f} s."
        sentences.append(f"{dataset}: {judge}. {times} {ONE_TRAINING}")
    return sentences


TABLE_CAPTIONS = {
    "methods": "Probes, the model's own answers, and controls",
    "strict": "By halves of questions (preset strict), last block",
    "differences": "Probes less asking and less each control, by metric",
    "layers": "By layer",
    "transfer": "Probes of one data set on another",
    "cosine": "Cosine of the directions",
    "prompted": (
        "Under another system turn, F1: the other run's probes and asking (moved), "
        "and these probes (refitted)"
    ),
    "components": "First two components of the contrast differences: shares of their variance",
    "aspects": "By aspect, F1",
    "adversarial": "LLMBar: learnt from the natural subsets",
    "ablation": "Asking with a direction taken out",
    "finetuned": "Fine-tuned judge, on the test half of the first split",
    "finetuned_less": "Fine-tuned judge less the probes, asking and the controls, pair by pair",
    "saturation": (
        "By number of training texts, F1: the judge, and the probe that learnt from the same pairs"
    ),
    "finetuning": "Training of the fine-tuned judge, loss by step",
    "finetuning_cost": "What learning from the training half costs",
    "rounding": "Rounding by block in half precision, as a share of what a probe reads",
}
DATA_COLUMN_TITLES = {
    "ties": "rows without a better text",
    "left_out": "pairs not drawn",
    "scored": "pairs scored",
    "unscored": "pairs unscored",
    "humans_agree": "people agree",
    "humans_low": "from",
    "humans_high": "to",
    "answer_mass": "answers with 1 or 2",
}
"""Column of the table of data → what it counts."""
DRAWN_METHODS = ("supervised", "unsupervised", "prompting", *JUDGES)
"""Methods of the first picture."""
PROBE_PAGE_TITLES = {
    "probes": "Do probes of {} judge better than asking it?",
    "judges": "Does {} judge better when it is fine-tuned than its probe does?",
}
LUCK_SENTENCE = (
    "The best layer and sign are picked on the test half, so compare each number with what luck "
    "reaches."
)


def probe_page(out: Path, about: Literal["probes", "judges"] = "probes") -> Page:
    """The page of the run in `out`, with report.md: of its probes, or of the judges that were
    trained beside them.
    """
    tables = {file.stem: pd.read_csv(file) for file in sorted((out / "tables").glob("*.csv"))}
    state = read_run(out)
    title = PROBE_PAGE_TITLES[about].format(cut_name(state["model"]))
    costs_of_judges = cost_sentences(tables) if "finetuned" in tables else []
    run_sentence = _run_sentence(state)
    pictures = probe_figures.drawn_pictures(tables)
    sections = [
        _table_section(name, tables, pictures)
        for name in (*TABLE_CAPTIONS, "data")
        if name in tables
    ]
    shared: dict[str, Any] = {
        "further_figures": sections,
        "method": [SCALE_SENTENCE, PROBE_CHECKS, run_sentence, PROBE_PAPER_LINE],
    }
    if about == "judges":
        page = _judge_page(title, tables, shared, costs_of_judges)
    else:
        page = _probe_page(title, tables, shared)
    report = _report(page, run_sentence, costs_of_judges, tables, pictures)
    return replace(page, files={"report.md": report.encode()})


def _probe_page(title: str, tables: Tables, shared: Mapping[str, Any]) -> Page:
    evidence_by_subject = {
        evidence.subject: evidence for evidence in evidence_of_run(tables, "supervised", METRIC)
    }
    claims = ordered_claims([probe_claim(evidence) for evidence in evidence_by_subject.values()])
    rows: list[ProbeCheckRow] = []
    for claim in claims:
        rows += check_rows(claim, "supervised", PROBE_WORDS)

    notes: dict[str, list[Block]] = {}
    for evidence in evidence_of_run(tables, "unsupervised", METRIC):
        claim = probe_claim(evidence)
        checks = check_table(claim, PROBE_WORDS)
        sentence = f"Unsupervised probe. {claim_sentence(claim, PROBE_WORDS)}"
        notes[evidence.subject] = [sentence, Table(checks.rows, checks.columns)]
        rows += check_rows(claim, "unsupervised", PROBE_WORDS)

    answers = [
        _probe_answer(claim, evidence_by_subject[claim.subject]) for claim in claims[:MOST_FINDINGS]
    ]
    page = claim_page(
        title,
        claims,
        PROBE_WORDS,
        picture=_picture(claims, [claim.subject for claim in claims], tables, "probes"),
        table=Table(answers, columns_of(ProbeAnswerRow)),
        tables={"checks": RowTable(ProbeCheckRow, rows)},
        notes=notes,
        **shared,
    )
    return replace(page, tables={**tables, **page.tables})


def _probe_answer(claim: Claim, evidence: ProbeEvidence) -> ProbeAnswerRow:
    asking = evidence.leads.get("above_asking")
    score = asking.score if asking else math.nan
    return ProbeAnswerRow(
        claim.subject, claim.verdict, evidence.score.value, score, claim.effect.value
    )


def _judge_page(
    title: str, tables: Tables, shared: Mapping[str, Any], costs_of_judges: Sequence[str]
) -> Page:
    evidence_by_subject = {evidence.subject: evidence for evidence in judge_evidence(tables)}
    claims = ordered_claims([judge_claim(evidence) for evidence in evidence_by_subject.values()])
    answers = [
        _judge_answer(claim, evidence_by_subject[claim.subject]) for claim in claims[:MOST_FINDINGS]
    ]
    datasets = [evidence_by_subject[claim.subject].dataset for claim in claims]
    rows: list[ProbeCheckRow] = []
    for claim in claims:
        rows += check_rows(claim, "fine-tuned judge", JUDGE_WORDS)
    page = claim_page(
        title,
        claims,
        JUDGE_WORDS,
        picture=_picture(claims, datasets, tables, "judges"),
        table=Table(answers, columns_of(JudgeAnswerRow)),
        tables={"checks": RowTable(ProbeCheckRow, rows)},
        terminal_lines=costs_of_judges[:MOST_TERMINAL_LINES],
        **shared,
    )
    return replace(page, tables={**tables, **page.tables})


def _judge_answer(claim: Claim, evidence: JudgeEvidence) -> JudgeAnswerRow:
    probe = evidence.leads.get("above_probe")
    score = probe.score if probe else math.nan
    return JudgeAnswerRow(claim.subject, claim.verdict, evidence.score, score, claim.effect.value)


def _run_sentence(state: Mapping[str, Any]) -> str:
    """What a run is of, and how its numbers are to be read."""
    settings = state["settings"]
    train = settings.get("train", 0.5)
    if train == 0.5:
        halves = "halves"
    else:
        share = f"{train:.0%}" if train < 1 else f"{train:g} pairs"
        halves = f"splits that train on {share}"
    return (
        f"{state['model']}, revision {state['revision']}, preset {settings['name']}, "
        f"{settings['seeds']} {halves}, orientation {settings['orientation']}, "
        f"selfprobe {state['selfprobe']}. Numbers are means over test halves with 95 % intervals "
        "by question. The intervals hold for the probes as fitted, and allow for pairs that train "
        "the probe of one half and test that of another. Layers of the tables are counted from 0: "
        "layer 3 is the state after block 4 of the figures."
    )


def _table_section(name: str, tables: Tables, pictures: Mapping[str, Sequence[Picture]]) -> Section:
    """A table of the run with its figure."""
    blocks: list[Block] = [text_table(_rows(name, tables))]
    if name == "strict":
        blocks.insert(0, LEAK_SENTENCE)
    if name == "layers":
        blocks.append(LUCK_SENTENCE)
    if name in pictures:
        blocks.append(Figures(pictures[name]))
    return Section(TABLE_CAPTIONS.get(name, "Data"), blocks, name=name)


def _report(
    page: Page,
    run_sentence: str,
    costs_of_judges: Sequence[str],
    tables: Tables,
    pictures: Mapping[str, Sequence[Picture]],
) -> str:
    """The page as Markdown."""
    assert page.words is not None
    lines = [f"# {page.title}", "", page.answer, "", SCALE_SENTENCE, ""]
    lines += [f"- {claim_sentence(claim, page.words)}" for claim in page.claims]
    lines += [f"- {sentence}" for sentence in costs_of_judges]
    lines += ["", run_sentence, "", "## Checks", "", *markdown(_checks_text(page))]
    for name in (*TABLE_CAPTIONS, "data"):
        if name not in tables:
            continue
        caption = TABLE_CAPTIONS.get(name, "Data")
        lines += ["", f"## {caption}", ""]
        if name == "strict":
            lines += [LEAK_SENTENCE, ""]
        lines += markdown(_rows(name, tables))
        if name == "layers":
            lines += ["", LUCK_SENTENCE]
        if name in pictures:
            lines.append("")
            lines += [
                f"![{picture.caption}](figures/{picture.name}.svg)" for picture in pictures[name]
            ]
    return "\n".join(lines) + "\n"


def _checks_text(page: Page) -> pd.DataFrame:
    """The checks of a page, both kinds of probe, as text."""
    checks = page.tables["checks"]
    assert isinstance(checks, RowTable)
    rows = []
    for row in checks.rows:
        measured = interval_text(row.estimate, sign=bool(row.compared_with))
        rows.append(
            {
                "data set": row.dataset,
                "probe": row.probe,
                "check": row.check,
                "measured": measured,
                "compared with": row.compared_with,
                "outcome": row.outcome.value,
            }
        )
    return pd.DataFrame(rows)


def _picture(
    claims: Sequence[Claim],
    datasets: Sequence[str],
    tables: Tables,
    about: Literal["probes", "judges"],
) -> Picture:
    """AUROC of the probes and of asking; a judge in the place of the unsupervised probe."""
    all_metrics = tables["finetuned" if about == "judges" else "methods"]
    methods = all_metrics[all_metrics.metric == METRIC]
    drawn_methods = [name for name in dict.fromkeys(methods.method) if name in DRAWN_METHODS]
    rows = {}
    for claim, dataset in zip(claims[:MOST_FINDINGS], datasets[:MOST_FINDINGS], strict=True):
        dataset_rows = methods[methods.dataset == dataset]
        row_by_method = {row.method: row for row in dataset_rows.itertuples()}
        rows[claim.subject] = {
            method: row_by_method[method] for method in drawn_methods if method in row_by_method
        }
    caption = f"95 % intervals by question.{more_in_tables(len(claims) - MOST_FINDINGS)}"
    return interval_rows(about, rows, caption=caption, axis="AUROC on held-out pairs", line=0.5)


def _rows(name: str, tables: Tables) -> pd.DataFrame:
    """Rows of a table as the page shows them, intervals as text."""
    table = tables[name]
    if name in ("methods", "finetuned"):
        return methods_text(table)
    if name == "strict":
        return _by_metric(table, ["dataset", "method"])
    if name == "finetuning":
        return _training_ends(table)
    if name == "finetuning_cost":
        return costs(table)
    if name == "layers":
        return best_layers(tables)
    if name == "cosine":
        return table.round(2)
    if name == "components":
        columns = ["dataset", "layer", "share_first", "share_second"]
        pair_counts = table.groupby("dataset", sort=False).size().to_list()
        return table[columns].drop_duplicates().round(3).assign(pairs=pair_counts)
    if name == "rounding":
        by_layer = table.pivot(index="layer", columns="dataset", values="rounding")
        return by_layer.round(3).reset_index()
    if name in ("differences", "finetuned_less"):
        rows = _by_metric(table, ["dataset", "probe", "against"], sign=True)
        return rows.rename(columns={"against": "less"})
    if name == "prompted":
        rows = table[table.metric == "f1"]
        texts = [interval_text(row, sign="less" in row.what) for row in rows.itertuples()]
        return _f1_columns(rows, texts, index=["dataset", "method"], columns="what").fillna("")
    if name in ("saturation", "aspects", "transfer", "adversarial"):
        rows = table[table.metric == "f1"]
        texts = [interval_text(row) for row in rows.itertuples()]
        if name == "saturation":
            return _f1_columns(rows, texts, index=["dataset", "samples"]).fillna("")
        if name == "aspects":
            return _f1_columns(rows, texts, index=["dataset", "aspect"])
        if name == "adversarial":
            return _f1_columns(rows, texts, index=["subset"])
        return rows.assign(f1=texts)[["trained_on", "tested_on", "probe", "centre", "f1", "n"]]
    if name == "data":
        mass_texts = [percent_interval(_mass_of(row)) for row in table.itertuples()]
        rows = table.assign(answer_mass=mass_texts)
        rows = rows.drop(columns=["answer_mass_low", "answer_mass_high"])
        return rows.round(3).rename(columns=DATA_COLUMN_TITLES)
    change_texts = [interval_text(row, sign=True) for row in table.itertuples()]
    rows = table.assign(change=change_texts).round({"changed_answers": 3, "f1": 3})
    return rows[["dataset", "direction", "f1", "change", "changed_answers", "n"]]


def _f1_columns(
    rows: pd.DataFrame, texts: Sequence[str], *, index: list[str], columns: str = "method"
) -> pd.DataFrame:
    """F1 as text, a row for each value of the index and a column for each of `columns`."""
    return rows.assign(f1=texts).pivot(index=index, columns=columns, values="f1").reset_index()


def _mass_of(row: Any) -> Estimate:
    """Share of its probability that a model puts on the two answers, of a row of the table data."""
    return Estimate(
        row.answer_mass, row.answer_mass_low, row.answer_mass_high, int(row.scored), "pair"
    )


def _training_ends(table: pd.DataFrame) -> pd.DataFrame:
    """dataset, training, steps, first, last: mean loss of the first and the last tenth of the
    steps.
    """
    rows = []
    for (dataset, training), steps in table.groupby(["dataset", "training"], sort=False):
        tenth = max(1, len(steps) // 10)
        rows.append(
            {
                "dataset": dataset,
                "training": training,
                "steps": len(steps),
                "first": steps.loss.iloc[:tenth].mean(),
                "last": steps.loss.iloc[-tenth:].mean(),
            }
        )
    return pd.DataFrame(rows).round(3)


def costs(table: pd.DataFrame) -> pd.DataFrame:
    """dataset, what, seconds, FLOPs, parameters as text."""
    seconds_texts = [f"{seconds:.1f}" for seconds in table.seconds]
    flops_texts = ["" if math.isnan(flops) else f"{flops:.1e}" for flops in table.flops]
    parameter_texts = [f"{parameters:,}" for parameters in table.parameters]
    rows = table.assign(seconds=seconds_texts, FLOPs=flops_texts, parameters=parameter_texts)
    return rows[["dataset", "what", "seconds", "FLOPs", "parameters"]]


COLUMN_HELP = {
    "n": "Questions that were counted.",
    "pairs": "Pairs that were counted.",
    "accuracy": "Share of pairs judged as people did.",
    "weighted F1": "F1 of the two classes, weighted by their sizes.",
    "ties": "Share of pairs without a preference.",
    "consistent": "Share of pairs judged alike in both orders.",
    "f1": f"F1 of the two classes, weighted by their sizes. {INTERVAL_HELP}",
    "auroc": (
        "Chance that a pair whose first text is better scores above another; .5 is guessing. "
        f"{INTERVAL_HELP}"
    ),
    "best": "What the best layer and sign reach that were picked on the test half itself.",
    "luck": "The same with shuffled labels: mean, and what 95 % of the shuffles stay below.",
    "layer": "Layer whose states are read, from 0: layer 3 is the state after the fourth block.",
    "share_first": "Share of the variance of the contrast differences along the first component.",
    "share_second": "The same along the second component.",
    "rows without a better text": (
        "Rows of the data set that made no pair, since neither text is better."
    ),
    "pairs not drawn": "Pairs beyond the limit, left out at random.",
    "pairs scored": "Pairs whose states were read, and that every number of the page counts.",
    "pairs unscored": "Pairs that could not be read; the reasons stand beside.",
    "answers with 1 or 2": (
        "Share of its probability that the model puts on the two answers when it is asked."
    ),
    "people agree": "How often two judges of a pair agree, where the data set has single votes.",
    "from": "Lower end of its 95 % interval.",
    "to": "Upper end of its 95 % interval.",
    "cosine": "Cosine of the two directions, mean over halves.",
    "absolute": "Mean of its size without the sign, which labels, or nothing at all, fix.",
    "centre": (
        "Means that are taken off the states: of the probe's training half (source), or of the "
        "pairs tested."
    ),
    "change": f"F1 of asking with the direction taken out, less F1 without. {INTERVAL_HELP}",
    "changed_answers": "Share of pairs whose answer became the other one.",
    "steps": "Steps of the training.",
    "first": "Mean loss of the first tenth of the steps.",
    "last": "Mean loss of the last tenth of the steps.",
    "seconds": "Time that it took on this machine.",
    "FLOPs": "Floating-point operations, by count.",
    "parameters": "Numbers that are learnt.",
}
"""Column of the tables of a run → what its numbers are."""


def text_table(rows: pd.DataFrame) -> Table:
    """A table of the page, numbers as they stand in `rows`."""
    names = [str(name) for name in rows.columns]
    columns = []
    for name, dtype in zip(names, rows.dtypes, strict=True):
        look = "n" if pd.api.types.is_numeric_dtype(dtype) else "e"
        help_text = COLUMN_HELP.get(name, "")
        columns.append(Column(name.replace("_", " "), name, _cell, look, help_text))
    row_values = [dict(zip(names, row, strict=True)) for row in rows.to_numpy(object)]
    return Table(row_values, columns)


def _cell(value: object) -> str:
    """A number as it stands in the table, rounded there; nothing where there is none."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:g}"
    return str(value)


def methods_text(table: pd.DataFrame) -> pd.DataFrame:
    """dataset, method, f1, accuracy, auroc, n, note, with intervals as text; one row a method."""
    return _by_metric(table, ["dataset", "method"], more=("n", "note"))


def _by_metric(
    table: pd.DataFrame, keys: list[str], *, more: Sequence[str] = ("n",), sign: bool = False
) -> pd.DataFrame:
    """The keys, f1, accuracy and auroc with intervals as text, and what else the rows of f1 hold;
    one row a key.
    """
    rows = []
    for key, group in table.groupby(keys, sort=False):
        row_by_metric: dict[str, Any] = {row.metric: row for row in group.itertuples()}
        cells = dict(zip(keys, key, strict=True))
        for metric in ("f1", "accuracy", "auroc"):
            cells[metric] = interval_text(row_by_metric[metric], sign=sign)
        for name in more:
            cells[name] = getattr(row_by_metric["f1"], name)
        rows.append(cells)
    return pd.DataFrame(rows)


def best_layers(tables: Tables) -> pd.DataFrame:
    """dataset, probe, metric, best (layer and sign on the test half: leaks), luck: the same with
    shuffled labels.
    """
    floors = tables["floors"][tables["floors"].over.str.contains("signs")]
    keys = ["dataset", "probe", "metric"]
    joined = tables["selected_on_test"].merge(floors, on=keys)
    luck = [
        f"{mean:.2f}, 95 % below {high:.2f}"
        for mean, high in zip(joined["mean"], joined.high, strict=True)
    ]
    return joined[keys].assign(best=joined.value.round(2), luck=luck)


def markdown(table: pd.DataFrame) -> list[str]:
    """A table as Markdown lines."""
    lines = [_markdown_line(table.columns), _markdown_line("---" for _ in table.columns)]
    for row in table.to_numpy(object):
        lines.append(_markdown_line(_without_nan(value) for value in row))
    return lines


def _without_nan(value: object) -> object:
    return "" if isinstance(value, float) and math.isnan(value) else value


def _markdown_line(cells: Iterable[object]) -> str:
    texts = [str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells]
    return f"| {' | '.join(texts)} |"
