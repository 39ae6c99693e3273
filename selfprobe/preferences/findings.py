"""What a probe run found, in sentences: each probe beside asking and the controls that have learnt nothing."""

import math
from typing import Any

import pandas as pd

from selfprobe.page import shown

METRIC = "auroc"
"""Of all numbers in the sentences: at .5 nothing is known, however often a method says 1."""
LEAD = "AUROC on held-out pairs, with 95 % intervals by question; .5 is chance."
CONTROLS = {
    "no model (length)": "length",
    "no model (TF-IDF)": "words",
    "random weights": "the same architecture with random weights",
}
"""Method → what the sentence calls it; random weights are those of the same kind of probe."""
LUCK = "the best layer on shuffled labels"


def findings(tables: dict[str, pd.DataFrame]) -> list[str]:
    """One paragraph a data set and probe, from the tables methods, differences and floors of a run.

    "one, supervised probe: 0.74 [0.70, 0.78], asking 0.66 [0.62, 0.70], paired difference +0.08 [+0.03, +0.13];
    controls: length 0.58, words 0.61, … Not shown to be above: …"
    """
    methods, differences, floors = (
        tables[name].query("metric == @METRIC") for name in ("methods", "differences", "floors")
    )
    found = []
    for dataset in dict.fromkeys(methods.dataset):
        mine, less, luck = (rows[rows.dataset == dataset] for rows in (methods, differences, floors))
        for kind in ("supervised", "unsupervised"):
            found.append(f"{dataset}, {kind} probe: " + _sentence(kind, mine, less[less.probe == kind], luck))
    return found


def _sentence(kind: str, methods: pd.DataFrame, less: pd.DataFrame, luck: pd.DataFrame) -> str:
    rows: dict[str, Any] = {row.method: row for row in methods.itertuples()}
    margins: dict[str, Any] = {row.against: row for row in less.itertuples()}
    probe = rows[kind]
    text = f"{shown(probe)}, asking {shown(rows['prompting'])}"
    text += f", paired difference {shown(margins['prompting'], sign=True)}; controls: "
    names = {"prompting": "asking"}
    for method, name in CONTROLS.items():
        full = f"{method}, {kind}" if method == "random weights" else method
        if full in rows:
            names[full] = name
            text += f"{name} {rows[full].value:.2f}, ".replace("nan", "–")
    floor = next(iter(luck[(luck.probe == kind) & ~luck.over.str.contains("signs")].itertuples()), None)
    if floor is None:
        text = text.removesuffix(", ")
    else:
        text += f"{LUCK} {floor.mean:.2f} (95 % stay below {floor.high:.2f})"
    note = str(probe.note)
    if "LEAKS" in note:
        return f"{text}. Test labels or test texts reached this probe: it is no measurement."
    if "sign arbitrary" in note:
        return f"{text}. The sign is arbitrary: a number under .5 says as much as one above it."
    return f"{text}. {_verdict(probe, margins, names, floor)}"


def _verdict(probe: Any, margins: dict[str, Any], names: dict[str, str], floor: Any) -> str:
    """What the probe is not shown to be above: by the paired differences, and by luck's 95 %."""
    if math.isnan(probe.value):
        return "No score, no verdict."
    short = [f"{name} ({shown(margins[m], sign=True)})" for m, name in names.items() if not margins[m].low > 0]
    if floor is not None and not probe.value > floor.high:
        short.append(LUCK)
    if short:
        return f"Not shown to be above {'; '.join(short)}."
    return "Above asking and every control."


TEXT_ONLY = {"no model (TF-IDF)": "words", "no model (length)": "length"}
"""Controls that see the texts alone, and how sentences call them."""


def _above_texts(margins: pd.DataFrame) -> str:
    """Which controls without a model a fine-tuned judge is not shown to be above, or ""."""
    less = {row.against: row for row in margins.itertuples()}
    lost = [f"{told} ({shown(less[n], sign=True)})" for n, told in TEXT_ONLY.items() if not less[n].low > 0]
    return f", and not shown to be above what the texts tell without a model: {', '.join(lost)}" if lost else ""


def finetuned(tables: dict[str, pd.DataFrame]) -> list[str]:
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
            f"{_above_texts(margins)}. Learning took {took:.0f} s against {probe:.0f} s. One training, one half: "
            "another half or seed may differ by more than the interval."
        )
    return found
