"""Figures and page of a probe run, index.html and as text report.md, from the tables in its folder."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from selfprobe.page import (
    LINES,
    ROWS,
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
from selfprobe.page.plots import interval_rows, short_name
from selfprobe.probes.folder import read_run
from selfprobe.studies.preferences import figures
from selfprobe.studies.preferences.findings import (
    JUDGES,
    LEAD,
    METRIC,
    findings,
    finetuned_sentences,
    judge_findings,
    probed,
)

Tables = dict[str, pd.DataFrame]
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
LUCK = "Best layer and sign picked on the test half, to be read against luck."


def page_of(out: Path, about: Literal["probes", "judges"] = "probes") -> Page:
    """The page of the run in `out`, with report.md: of its probes, or of the judges that were trained beside them."""
    tables = {file.stem: pd.read_csv(file) for file in sorted((out / "tables").glob("*.csv"))}
    state = read_run(out)
    model, train = short_name(state["model"]), state["settings"].get("train", 0.5)
    halves = "halves" if train == 0.5 else f"splits that train on {f'{train:.0%}' if train < 1 else f'{train:g} pairs'}"
    lead = (
        f"{state['model']}, revision {state['revision']}, preset {state['settings']['name']}, "
        f"{state['settings']['seeds']} {halves}, orientation {state['settings']['orientation']}, selfprobe "
        f"{state['selfprobe']}. Numbers are means over test halves with 95 % intervals by question. The intervals hold "
        "for the probes as fitted, and allow for pairs that train the probe of one half and test that of another. "
        "Layers of the tables are counted from 0: layer 3 is the state after block 4 of the figures."
    )
    judges = finetuned_sentences(tables) if "finetuned" in tables else []
    said = [*findings(tables), *judges]
    found = strongest(judge_findings(tables) if about == "judges" else probed(tables))
    answer, told = overall_answer(found, "data sets")
    sections, lines = list[Section](), [f"# {TITLES[about].format(model)}", "", answer, "", LEAD, ""]
    lines += [*(f"- {sentence}" for sentence in said), "", lead]
    drawn = figures.made(tables)
    for name, caption in (*CAPTIONS.items(), ("data", "Data")):
        if name not in tables:
            continue
        rows = _rows(name, tables)
        blocks: list[Block] = [text_table(rows)]
        lines += ["", f"## {caption}", "", *markdown(rows)]
        if name == "layers":
            blocks.append(LUCK)
            lines += ["", LUCK]
        if name in drawn:
            blocks.append(Figures([Picture(name, f"{caption}: the numbers of the table above", caption, drawn[name])]))
            lines += ["", f"![{caption}](figures/{name}.png)"]
        sections.append(Section(caption, blocks, name=name))
    return Page(
        TITLES[about].format(model),
        answer=answer,
        picture=_picture(found, tables, about),
        table=Table(found[:ROWS], COLUMNS[about]),
        sections=headings(why=[LEAD, Bullets(said)], cells=sections, method=[lead]),
        tables=tables,
        files={"report.md": ("\n".join(lines) + "\n").encode()},
        told=judges[:LINES] if about == "judges" else told,
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
    more = f" {len(found) - ROWS} more data sets are under All cells." if len(found) > ROWS else ""
    caption = f"95 % intervals by question.{more}"
    return interval_rows(about, rows, caption=caption, axis="AUROC on held-out pairs", line=0.5)


def _rows(name: str, tables: Tables) -> pd.DataFrame:
    """Rows of a table as the page shows them, intervals as text."""
    table = tables[name]
    if name in ("methods", "finetuned"):
        return methods(table)
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


def methods(table: pd.DataFrame) -> pd.DataFrame:
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
