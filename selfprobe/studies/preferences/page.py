"""Findings in sentences and page of a probe run, index.html and as text report.md, from the tables in its folder."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from selfprobe.page import (
    LINES,
    ROWS,
    Answer,
    Block,
    Bullets,
    Column,
    Figures,
    Finding,
    Page,
    Picture,
    Section,
    Table,
    headings,
    number,
    overall_answer,
    shown,
    signed_number,
    strongest,
)
from selfprobe.page.plots import cut_name, interval_rows
from selfprobe.probes.folder import read_run
from selfprobe.studies.preferences import figures

Tables = Mapping[str, pd.DataFrame]

METRIC = "auroc"
"""Metric of all numbers in the sentences: at .5 nothing is known, however often a method says 1."""
LEAD = "AUROC on held-out pairs, with 95 % intervals by question; .5 is chance."
CONTROLS = {
    "no model (length)": "length",
    "no model (TF-IDF)": "words",
    "random weights": "the same architecture with random weights",
}
"""Method → what the sentence calls it; random weights are those of the same kind of probe."""
SHUFFLED = "the best layer on shuffled labels"


@dataclass(frozen=True)
class WithControls:
    """A probe of one data set beside asking and the controls."""

    dataset: str
    probe: Any
    """Row of the probe in the table methods."""
    others: dict[str, Any]
    """Rows of asking first, then of the controls, by what a sentence calls them."""
    margins: dict[str, Any]
    """Rows of the differences by the same names: the probe less each."""
    floor: Any
    """Row of what the best layer finds on shuffled labels; None where the run has none."""

    @property
    def not_above(self) -> dict[str, str]:
        """Names of what the probe is not shown to be above, by the paired differences and luck's 95 %, and what shows
        that."""
        lost = {name: f" ({shown(row, sign=True)})" for name, row in self.margins.items() if not row.low > 0}
        lucky = self.floor is not None and not self.probe.value > self.floor.high
        return lost | ({SHUFFLED: ""} if lucky else {})


@dataclass(frozen=True)
class ScorePair:
    """AUROC of a probe and of asking, or of a judge and of the probe, on one data set, and the paired difference."""

    dataset: str
    value: float
    other: float
    less: float


def _with_controls(tables: Tables, kind: str) -> list[WithControls]:
    """The probes of one kind by data set, from the tables methods, differences and floors of a run."""
    methods, differences, floors = (
        tables[name].query("metric == @METRIC") for name in ("methods", "differences", "floors")
    )
    found = []
    for dataset in dict.fromkeys(methods.dataset):
        mine, less, luck = (rows[rows.dataset == dataset] for rows in (methods, differences, floors))
        rows: dict[str, Any] = {row.method: row for row in mine.itertuples()}
        margins: dict[str, Any] = {row.against: row for row in less[less.probe == kind].itertuples()}
        every = {"prompting": "asking"} | CONTROLS
        names = {name: f"{method}, {kind}" if method == "random weights" else method for method, name in every.items()}
        there = {name: method for name, method in names.items() if method in rows}
        floor = next(iter(luck[(luck.probe == kind) & ~luck.over.str.contains("signs")].itertuples()), None)
        others, by = ({name: of[method] for name, method in there.items()} for of in (rows, margins))
        found.append(WithControls(str(dataset), rows[kind], others, by, floor))
    return found


def claim_of(less: Any, than: str, lost: Sequence[str]) -> tuple[Answer, str]:
    """An answer and its clause: Yes where a probe is above asking, and above everything else.

    Args:
        less: The paired difference to asking.
        than: Name of what the probe is compared with, and of the number.
        lost: Names of what else it is not shown to be above.
    """
    by = f"{than} {signed_number(less.value) if math.isnan(less.low) else shown(less, sign=True)}"
    if less.high < 0:
        return "No", f"has a probe below {by}"
    if not less.low > 0:
        return "Cannot tell", f"has a probe that is not shown to be above {by}"
    if lost:
        return "Cannot tell", f"has a probe above {by}, and not above {lost[0]}"
    return "Yes", f"has a probe above {by}"


def probed(tables: Tables) -> list[Finding]:
    """Answers by data set: is the supervised probe above asking and every control?"""
    found = []
    for one in _with_controls(tables, "supervised"):
        lost, less = [name for name in one.not_above if name != "asking"], one.margins["asking"]
        answer, clause = claim_of(less, "asking, by AUROC", lost)
        if "LEAKS" in str(one.probe.note):
            answer, clause = "Cannot tell", "has a probe that test labels or test texts reached"
        of = ScorePair(one.dataset, one.probe.value, one.others["asking"].value, less.value)
        found.append(Finding(one.dataset, answer, clause, of))
    return found


def finding_sentences(tables: Tables) -> list[str]:
    """One paragraph a data set and probe, from the tables methods, differences and floors of a run.

    "one, supervised probe: 0.74 [0.70, 0.78], asking 0.66 [0.62, 0.70], paired difference +0.08 [+0.03, +0.13];
    controls: length 0.58, words 0.61, … Not shown to be above: …"
    """
    both = {kind: _with_controls(tables, kind) for kind in ("supervised", "unsupervised")}
    return [
        f"{one.dataset}, {kind} probe: {_sentence(one)}"
        for pair in zip(*both.values(), strict=True)
        for kind, one in zip(both, pair, strict=True)
    ]


def _sentence(one: WithControls) -> str:
    asking, *controls = one.others.items()
    told = [f"{name} {row.value:.2f}".replace("nan", "–") for name, row in controls]
    if one.floor is not None:
        told.append(f"{SHUFFLED} {one.floor.mean:.2f} (95 % stay below {one.floor.high:.2f})")
    text = (
        f"{shown(one.probe)}, asking {shown(asking[1])}, paired difference {shown(one.margins['asking'], sign=True)}; "
        f"controls: {', '.join(told)}"
    )
    note = str(one.probe.note)
    if "LEAKS" in note:
        return f"{text}. Test labels or test texts reached this probe: it is no measurement."
    if "sign arbitrary" in note:
        return f"{text}. The sign is arbitrary: a number under .5 says as much as one above it."
    if math.isnan(one.probe.value):
        return f"{text}. No score, no verdict."
    if lost := one.not_above:
        return f"{text}. Not shown to be above {'; '.join(f'{name}{by}' for name, by in lost.items())}."
    return f"{text}. Above asking and every control."


TEXT_ONLY = {"no model (TF-IDF)": "words", "no model (length)": "length"}
"""Controls that see the texts alone, and how sentences call them."""
JUDGES = ("fine-tuned judge", "fine-tuned judge, all weights")


def judge_findings(tables: Tables) -> list[Finding]:
    """Answers by data set and training: is the fine-tuned judge above the supervised probe?"""
    methods, less = (tables[name].query("metric == @METRIC") for name in ("finetuned", "finetuned_less"))
    found = []
    for row in less[less.against == "supervised"].itertuples():
        rows: dict[str, Any] = {one.method: one for one in methods[methods.dataset == row.dataset].itertuples()}
        of = ScorePair(row.dataset, rows[row.probe].value, rows["supervised"].value, row.value)
        by = f"its probe, by AUROC {signed_number(row.value) if math.isnan(row.low) else shown(row, sign=True)}"
        answer: Answer = "Yes" if row.low > 0 else "No" if row.high < 0 else "Cannot tell"
        place = "above" if row.low > 0 else "below" if row.high < 0 else "that is not shown to differ from"
        name = (
            row.dataset if row.probe == JUDGES[0] else f"{row.dataset} (all weights)".replace(" ", "\N{NO-BREAK SPACE}")
        )
        found.append(Finding(name, answer, f"has a fine-tuned judge {place} {by}", of))
    return found


def _above_texts(margins: pd.DataFrame) -> str:
    """Names of the controls without a model that a fine-tuned judge is not shown to be above, or ""."""
    less = {row.against: row for row in margins.itertuples()}
    lost = [f"{told} ({shown(less[n], sign=True)})" for n, told in TEXT_ONLY.items() if not less[n].low > 0]
    return f", and not shown to be above what the texts alone reach: {', '.join(lost)}" if lost else ""


def finetuned_sentences(tables: Tables) -> list[str]:
    """A sentence a data set and training: the fine-tuned judge beside the probe and asking, and what either costs."""
    found = []
    methods, less = (tables[name].query("metric == @METRIC") for name in ("finetuned", "finetuned_less"))
    for (dataset, judge), margins in less.groupby(["dataset", "probe"], sort=False):
        rows: dict[str, Any] = {row.method: row for row in methods[methods.dataset == dataset].itertuples()}
        margin = next(margins[margins.against == "supervised"].itertuples())
        cost = tables["finetuning_cost"].query("dataset == @dataset").set_index("what").seconds
        took, probe = (cost[cost.index.str.startswith(f"{name}:")].sum() for name in (judge, "probe"))
        verdict = "above" if margin.low > 0 else "below" if margin.high < 0 else "not shown to differ from"
        alone = ", ".join(f"{told} {rows[name].value:.2f}" for name, told in TEXT_ONLY.items())
        found.append(
            f"{dataset}: {judge} {shown(rows[str(judge)])}, supervised probe {shown(rows['supervised'])}, asking "
            f"{shown(rows['prompting'])}, {alone}; the judge is {verdict} the probe ({shown(margin, sign=True)})"
            f"{_above_texts(margins)}. Training took {took:.0f} s, and the probe {probe:.0f} s. This is one training "
            "on one half: another half or seed may differ by more than the interval."
        )
    return found


CAPTIONS = {
    "methods": "Probes, the model's own answers, and controls",
    "differences": "Probes less asking and less each control, pair by pair",
    "layers": "By layer",
    "transfer": "Probes of one data set on another",
    "cosine": "Cosine of the directions",
    "prompted": "Under another system turn, F1: the other run's probes and asking (moved), and these probes (refitted)",
    "components": "First two components of the contrast differences: shares of their variance",
    "aspects": "By aspect, F1",
    "adversarial": "LLMBar: learnt from the natural subsets",
    "ablation": "Asking with a direction taken out",
    "finetuned": "Fine-tuned judge, on the test half of the first split",
    "finetuned_less": "Fine-tuned judge less the probes, asking and the controls, pair by pair",
    "saturation": "By number of training texts, F1: the judge, and the probe that learnt from the same pairs",
    "finetuning": "Training of the fine-tuned judge, loss by step",
    "finetuning_cost": "What learning from the training half costs",
    "rounding": "Rounding by block in half precision, as a share of what a probe reads",
}
OF_DATA = {"ties": "rows without a better text", "left_out": "pairs not drawn", "scored": "pairs scored"}
OF_DATA |= {"unscored": "pairs unscored", "humans_agree": "people agree", "humans_low": "from", "humans_high": "to"}
"""Columns of the table of data by what they count."""
DRAWN = ("supervised", "unsupervised", "prompting", *JUDGES)
TITLES = {
    "probes": "Do probes of {} judge better than asking it?",
    "judges": "Does {} judge better when it is fine-tuned than its probe does?",
}
_OTHERS = {"probes": "asking", "judges": "probe"}
COLUMNS = {
    about: (
        Column("data set", "model"),
        Column("answer", "answer"),
        Column("probe" if about == "probes" else "judge", lambda one: one.of.value, number),
        Column(other, lambda one: one.of.other, number),
        Column("difference", lambda one: one.of.less, signed_number),
    )
    for about, other in _OTHERS.items()
}
"""AUROC of the probe and of asking, or of the judge and of the probe."""
LUCK = "The best layer and sign are picked on the test half, so compare each number with what luck reaches."


def probe_page(out: Path, about: Literal["probes", "judges"] = "probes") -> Page:
    """The page of the run in `out`, with report.md: of its probes, or of the judges that were trained beside them."""
    tables = {file.stem: pd.read_csv(file) for file in sorted((out / "tables").glob("*.csv"))}
    state = read_run(out)
    model, train = cut_name(state["model"]), state["settings"].get("train", 0.5)
    halves = "halves" if train == 0.5 else f"splits that train on {f'{train:.0%}' if train < 1 else f'{train:g} pairs'}"
    lead = (
        f"{state['model']}, revision {state['revision']}, preset {state['settings']['name']}, "
        f"{state['settings']['seeds']} {halves}, orientation {state['settings']['orientation']}, selfprobe "
        f"{state['selfprobe']}. Numbers are means over test halves with 95 % intervals by question. The intervals hold "
        "for the probes as fitted, and allow for pairs that train the probe of one half and test that of another. "
        "Layers of the tables are counted from 0: layer 3 is the state after block 4 of the figures."
    )
    judges = finetuned_sentences(tables) if "finetuned" in tables else []
    said = [*finding_sentences(tables), *judges]
    found = strongest(judge_findings(tables) if about == "judges" else probed(tables))
    answer, notes = overall_answer(found, "data sets")
    sections, lines = list[Section](), [f"# {TITLES[about].format(model)}", "", answer, "", LEAD, ""]
    lines += [*(f"- {sentence}" for sentence in said), "", lead]
    pictures = figures.drawn_pictures(tables)
    for name, caption in (*CAPTIONS.items(), ("data", "Data")):
        if name not in tables:
            continue
        rows = _rows(name, tables)
        blocks: list[Block] = [text_table(rows)]
        lines += ["", f"## {caption}", "", *markdown(rows)]
        if name == "layers":
            blocks.append(LUCK)
            lines += ["", LUCK]
        if name in pictures:
            blocks.append(Figures(pictures[name]))
            lines += ["", *(f"![{picture.caption}](figures/{picture.name}.svg)" for picture in pictures[name])]
        sections.append(Section(caption, blocks, name=name))
    return Page(
        TITLES[about].format(model),
        answer=answer,
        picture=_picture(found, tables, about),
        table=Table(found[:ROWS], COLUMNS[about]),
        sections=headings(why=[LEAD, Bullets(said)], cells=sections, method=[lead]),
        tables=tables,
        files={"report.md": ("\n".join(lines) + "\n").encode()},
        notes=judges[:LINES] if about == "judges" else notes,
    )


def _picture(found: Sequence[Finding], tables: Tables, about: str) -> Picture:
    """AUROC of the probes and of asking; a judge in the place of the unsupervised probe."""
    every = tables["finetuned" if about == "judges" else "methods"]
    methods = every[every.metric == METRIC]
    shown_methods = [name for name in dict.fromkeys(methods.method) if name in DRAWN]
    rows = {}
    for one in found[:ROWS]:
        mine = {row.method: row for row in methods[methods.dataset == one.of.dataset].itertuples()}
        rows[one.model] = {name: mine[name] for name in shown_methods if name in mine}
    more = f" {len(found) - ROWS} more data sets are under Tables." if len(found) > ROWS else ""
    caption = f"95 % intervals by question.{more}"
    return interval_rows(about, rows, caption=caption, axis="AUROC on held-out pairs", line=0.5)


def _rows(name: str, tables: Tables) -> pd.DataFrame:
    """Rows of a table as the page shows them, intervals as text."""
    table = tables[name]
    if name in ("methods", "finetuned"):
        return methods_text(table)
    if name == "finetuning":
        return _ends(table)
    if name == "finetuning_cost":
        return costs(table)
    if name == "layers":
        return best(tables)
    if name == "cosine":
        return table.round(2)
    if name == "components":
        told = ["dataset", "layer", "share_first", "share_second"]
        return (
            table[told].drop_duplicates().round(3).assign(pairs=table.groupby("dataset", sort=False).size().to_list())
        )
    if name == "rounding":
        return table.pivot(index="layer", columns="dataset", values="rounding").round(3).reset_index()
    if name in ("differences", "finetuned_less"):
        return _by_metric(table, ["dataset", "probe", "against"], sign=True).rename(columns={"against": "less"})
    if name == "prompted":
        rows = table[table.metric == "f1"].assign(
            f1=lambda t: [shown(r, sign="less" in r.what) for r in t.itertuples()]
        )
        return rows.pivot(index=["dataset", "method"], columns="what", values="f1").reset_index().fillna("")
    if name == "saturation":
        rows = table[table.metric == "f1"].assign(f1=lambda t: [shown(r) for r in t.itertuples()])
        return rows.pivot(index=["dataset", "samples"], columns="method", values="f1").reset_index().fillna("")
    if name in ("aspects", "transfer", "adversarial"):
        rows = table[table.metric == "f1"].assign(f1=lambda t: [shown(r) for r in t.itertuples()])
        if name == "transfer":
            return rows[["trained_on", "tested_on", "probe", "f1", "n"]]
        index = ["dataset", "aspect"] if name == "aspects" else ["subset"]
        return rows.pivot(index=index, columns="method", values="f1").reset_index()
    if name == "data":
        return table.round(3).rename(columns=OF_DATA)
    rows = table.assign(change=lambda t: [shown(r, sign=True) for r in t.itertuples()]).round({"changed_answers": 3})
    return rows[["dataset", "direction", "f1", "change", "changed_answers", "n"]].round({"f1": 3})


def _ends(table: pd.DataFrame) -> pd.DataFrame:
    """dataset, training, steps, first, last: mean loss of the first and the last tenth of the steps."""
    rows = []
    for (dataset, training), part in table.groupby(["dataset", "training"], sort=False):
        tenth = max(1, len(part) // 10)
        ends = {"first": part.loss.iloc[:tenth].mean(), "last": part.loss.iloc[-tenth:].mean()}
        rows.append({"dataset": dataset, "training": training, "steps": len(part)} | ends)
    return pd.DataFrame(rows).round(3)


def costs(table: pd.DataFrame) -> pd.DataFrame:
    """dataset, what, seconds, FLOPs, parameters as text."""
    said = table.assign(
        seconds=[f"{x:.1f}" for x in table.seconds],
        FLOPs=["" if math.isnan(x) else f"{x:.1e}" for x in table.flops],
        parameters=[f"{x:,}" for x in table.parameters],
    )
    return said[["dataset", "what", "seconds", "FLOPs", "parameters"]]


def text_table(rows: pd.DataFrame) -> Table:
    """A table of the page, numbers as they stand in `rows`."""
    names = [str(name) for name in rows.columns]
    kinds = [pd.api.types.is_numeric_dtype(dtype) for dtype in rows.dtypes]
    columns = [
        Column(name.replace("_", " "), name, _cell, "n" if number else "e")
        for name, number in zip(names, kinds, strict=True)
    ]
    return Table([dict(zip(names, row, strict=True)) for row in rows.to_numpy(object)], columns)


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
    """The keys, f1, accuracy and auroc with intervals as text, and what else the rows of f1 hold; one row a key."""
    rows = []
    for key, part in table.groupby(keys, sort=False):
        by: dict[str, Any] = {row.metric: row for row in part.itertuples()}
        numbers = {metric: shown(by[metric], sign=sign) for metric in ("f1", "accuracy", "auroc")}
        rows.append(dict(zip(keys, key, strict=True)) | numbers | {name: getattr(by["f1"], name) for name in more})
    return pd.DataFrame(rows)


def best(tables: Tables) -> pd.DataFrame:
    """dataset, probe, metric, best (layer and sign on the test half: leaks), luck: the same with shuffled labels."""
    floors = tables["floors"][tables["floors"].over.str.contains("signs")]
    keys = ["dataset", "probe", "metric"]
    joined = tables["selected_on_test"].merge(floors, on=keys)
    luck = [f"{mean:.2f}, 95 % below {high:.2f}" for mean, high in zip(joined["mean"], joined.high, strict=True)]
    return joined[keys].assign(best=joined.value.round(2), luck=luck)


def markdown(table: pd.DataFrame) -> list[str]:
    """A table as Markdown lines."""
    return [
        _line(table.columns),
        _line("---" for _ in table.columns),
        *(_line("" if isinstance(v, float) and math.isnan(v) else v for v in row) for row in table.to_numpy(object)),
    ]


def text(table: pd.DataFrame) -> str:
    """A table for the terminal."""
    return str(table.to_string(index=False, justify="left"))


def _line(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
