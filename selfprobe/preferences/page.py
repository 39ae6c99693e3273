"""From the tables in a probe run's folder to its figures and its page, index.html and as text report.md."""

import math
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from selfprobe.page import Block, Column, Figures, Page, Picture, Section, Table, shown, write
from selfprobe.preferences import figures
from selfprobe.preferences.findings import LEAD, findings, finetuned
from selfprobe.probes.folder import read_run

Tables = dict[str, pd.DataFrame]
CAPTIONS = {
    "methods": "Probes, the model's own answers, and controls",
    "differences": "Probes less asking and less each control, pair by pair",
    "layers": "By layer",
    "transfer": "Probes of one data set on another",
    "cosine": "Cosine of the directions",
    "components": "First two components of the contrast differences: shares of their variance",
    "aspects": "By aspect, F1",
    "adversarial": "LLMBar: learnt from the natural subsets",
    "ablation": "Asking with a direction taken out",
    "finetuned": "Fine-tuned judge, on the test half of the first split",
    "finetuned_less": "Fine-tuned judge less the probes, asking and the controls, pair by pair",
    "finetuning": "Training of the fine-tuned judge, loss by step",
    "finetuning_cost": "What learning from the training half costs",
    "rounding": "Rounding by block in half precision, as a share of what a probe reads",
}
OF_DATA = {"ties": "rows without a better text", "left_out": "pairs not drawn", "scored": "pairs scored"}
OF_DATA |= {"unscored": "pairs unscored", "humans_agree": "people agree", "humans_low": "from", "humans_high": "to"}
"""Columns of the table of data by what they count."""
FOUND = "What was found"
LUCK = "Best layer and sign picked on the test half, to be read against luck."


def publish(out: Path) -> Path:
    """Write index.html, report.md and figures/ from tables/*.csv of the run in `out`; the path of index.html."""
    tables = {file.stem: pd.read_csv(file) for file in sorted((out / "tables").glob("*.csv"))}
    state = read_run(out)
    title = f"Preference probes of {state['model']}"
    train = state["settings"].get("train", 0.5)
    halves = "halves" if train == 0.5 else f"splits that train on {f'{train:.0%}' if train < 1 else f'{train:g} pairs'}"
    lead = (
        f"Revision {state['revision']}, preset {state['settings']['name']}, {state['settings']['seeds']} {halves}, "
        f"orientation {state['settings']['orientation']}, selfprobe {state['selfprobe']}. Numbers are means over test "
        "halves with 95 % intervals by question. The intervals hold for the probes as fitted, and allow for pairs that "
        "train the probe of one half and test that of another. Layers of the tables are counted from 0: layer 3 is the "
        "state after block 4 of the figures."
    )
    drawn = figures.made(tables)
    sections, lines = [], [f"# {title}", "", lead]
    if {"methods", "differences", "floors"} <= set(tables):
        said = [LEAD, *findings(tables), *(finetuned(tables) if "finetuned" in tables else ())]
        sections.append(Section(FOUND, list[Block](said), name="found", menu="found"))
        lines += ["", f"## {FOUND}", "", said[0], "", *(f"- {sentence}" for sentence in said[1:])]
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
        sections.append(Section(caption, blocks, name=name, menu=name))
    page = Page(title, lead, sections, files={"report.md": ("\n".join(lines) + "\n").encode()})
    return Path(write(page, str(out)))


def _rows(name: str, tables: Tables) -> pd.DataFrame:
    """What the page shows of a table, intervals as text."""
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
        return differences(table)
    if name == "aspects":
        rows = table[table.metric == "f1"].assign(f1=lambda t: [shown(r) for r in t.itertuples()])
        return rows.pivot(index=["dataset", "aspect"], columns="method", values="f1").reset_index()
    if name in ("transfer", "adversarial"):
        rows = table[table.metric == "f1"].assign(f1=lambda t: [shown(r) for r in t.itertuples()])
        if name == "transfer":
            return rows[["trained_on", "tested_on", "probe", "f1", "n"]]
        return rows.pivot(index="subset", columns="method", values="f1").reset_index()
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
    columns = [Column(name, name, _cell, "n" if number else "e") for name, number in zip(names, kinds, strict=True)]
    return Table([dict(zip(names, row, strict=True)) for row in rows.to_numpy(object)], columns)


def _cell(value: object) -> str:
    """A number as it stands in the table, rounded there; nothing where there is none."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:g}"
    return str(value)


def methods(table: pd.DataFrame) -> pd.DataFrame:
    """dataset, method, f1, accuracy, auroc, n, note, with intervals as text; one row a method."""
    rows = []
    for (dataset, method), part in table.groupby(["dataset", "method"], sort=False):
        by = {r.metric: r for r in part.itertuples()}
        numbers = {metric: shown(by[metric]) for metric in ("f1", "accuracy", "auroc")}
        rows.append({"dataset": dataset, "method": method} | numbers | {"n": by["f1"].n, "note": by["f1"].note})
    return pd.DataFrame(rows)


def differences(table: pd.DataFrame) -> pd.DataFrame:
    """dataset, probe, less, f1, accuracy, auroc, n, with intervals as text; one row a comparison."""
    rows = []
    for (dataset, probe, against), part in table.groupby(["dataset", "probe", "against"], sort=False):
        by = {r.metric: r for r in part.itertuples()}
        numbers = {metric: shown(by[metric], sign=True) for metric in ("f1", "accuracy", "auroc")}
        rows.append({"dataset": dataset, "probe": probe, "less": against} | numbers | {"n": by["f1"].n})
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
