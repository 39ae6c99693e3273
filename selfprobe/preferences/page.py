"""From the tables in a run's folder to its figures and one page of text, report.md."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from selfprobe.preferences import figures
from selfprobe.probes.folder import read_run

Tables = dict[str, pd.DataFrame]
CAPTIONS = {
    "methods": "Probes, the model's own answers, and controls",
    "layers": "By layer",
    "transfer": "Probes of one data set on another",
    "cosine": "Cosine of the directions",
    "adversarial": "LLMBar: learnt from the natural subsets",
    "ablation": "Asking with a direction taken out",
}


def publish(out: Path) -> Path:
    """Write figures/*.png and report.md from tables/*.csv of the run in `out`; the path of report.md."""
    tables = {file.stem: pd.read_csv(file) for file in sorted((out / "tables").glob("*.csv"))}
    (out / "figures").mkdir(exist_ok=True)
    drawn = figures.made(tables)
    for name, figure in drawn.items():
        figure.savefig(out / "figures" / f"{name}.png")
    state = read_run(out)
    lines = [
        f"# Preference probes of {state['model']}",
        "",
        f"Revision {state['revision']}, preset {state['settings']['name']}, {state['settings']['seeds']} halves, "
        f"orientation {state['settings']['orientation']}, selfprobe {state['selfprobe']}. Numbers are means over test "
        "halves with 95 % intervals by question; the intervals hold for the probes as fitted.",
    ]
    for name, caption in CAPTIONS.items():
        if name in tables:
            lines += ["", f"## {caption}", "", *_section(name, tables)]
            lines += ["", f"![{caption}](figures/{name}.png)"] if name in drawn else []
    lines += ["", "## Data", "", *markdown(tables["data"])]
    (out / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return out / "report.md"


def _section(name: str, tables: Tables) -> list[str]:
    table = tables[name]
    if name == "methods":
        return markdown(methods(table))
    if name == "layers":
        return [*markdown(best(tables)), "", "Best layer and sign picked on the test half, to be read against luck."]
    if name == "transfer":
        rows = table[table.metric == "f1"].assign(f1=lambda t: [shown(r) for r in t.itertuples()])
        return markdown(rows[["trained_on", "tested_on", "probe", "f1", "n"]])
    if name == "cosine":
        return markdown(table.round(2))
    if name == "adversarial":
        rows = table[table.metric == "f1"].assign(f1=lambda t: [shown(r) for r in t.itertuples()])
        return markdown(rows.pivot(index="subset", columns="method", values="f1").reset_index())
    rows = table.assign(change=lambda t: [shown(r, sign=True) for r in t.itertuples()]).round({"changed_answers": 3})
    return markdown(rows[["dataset", "direction", "f1", "change", "changed_answers", "n"]].round({"f1": 3}))


def methods(table: pd.DataFrame) -> pd.DataFrame:
    """dataset, method, f1, accuracy, auroc, n, note, with intervals as text; one row a method."""
    rows = []
    for (dataset, method), part in table.groupby(["dataset", "method"], sort=False):
        by = {r.metric: r for r in part.itertuples()}
        numbers = {metric: shown(by[metric]) for metric in ("f1", "accuracy", "auroc")}
        rows.append({"dataset": dataset, "method": method} | numbers | {"n": by["f1"].n, "note": by["f1"].note})
    return pd.DataFrame(rows)


def best(tables: Tables) -> pd.DataFrame:
    """dataset, probe, metric, best (layer and sign on the test half: leaks), luck: the same with shuffled labels."""
    floors = tables["floors"][tables["floors"].over.str.contains("signs")]
    keys = ["dataset", "probe", "metric"]
    joined = tables["selected_on_test"].merge(floors, on=keys)
    luck = [f"{mean:.2f}, 95 % below {high:.2f}" for mean, high in zip(joined["mean"], joined.high, strict=True)]
    return joined[keys].assign(best=joined.value.round(2), luck=luck)


def shown(row: Any, *, sign: bool = False) -> str:
    """`.61 [.55, .67]` of a row with value, low and high; the reason where there is none."""
    number = "+.2f" if sign else ".2f"
    if math.isnan(row.value):
        return f"– ({row.reason})"
    if math.isnan(row.low):
        why = row.reason if isinstance(row.reason, str) else "no interval"
        return f"{row.value:{number}} ({why})"
    return f"{row.value:{number}} [{row.low:{number}}, {row.high:{number}}]"


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
