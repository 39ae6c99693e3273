"""Findings of a probe run, in sentences: each probe beside asking and the controls that have learnt nothing."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from selfprobe.page import Answer, Finding, shown, signed_number

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
LUCK = "the best layer on shuffled labels"


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
        return lost | ({LUCK: ""} if lucky else {})


@dataclass(frozen=True)
class Numbers:
    """AUROC of a probe and of asking, or of a judge and of the probe, on one data set, and the paired difference."""

    dataset: str
    value: float
    other: float
    less: float


def with_controls(tables: Tables, kind: str) -> list[WithControls]:
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
    for one in with_controls(tables, "supervised"):
        lost, less = [name for name in one.not_above if name != "asking"], one.margins["asking"]
        answer, clause = claim_of(less, "asking, by AUROC", lost)
        if "LEAKS" in str(one.probe.note):
            answer, clause = "Cannot tell", "has a probe that test labels or test texts reached"
        of = Numbers(one.dataset, one.probe.value, one.others["asking"].value, less.value)
        found.append(Finding(one.dataset, answer, clause, of))
    return found


def findings(tables: Tables) -> list[str]:
    """One paragraph a data set and probe, from the tables methods, differences and floors of a run.

    "one, supervised probe: 0.74 [0.70, 0.78], asking 0.66 [0.62, 0.70], paired difference +0.08 [+0.03, +0.13];
    controls: length 0.58, words 0.61, … Not shown to be above: …"
    """
    both = {kind: with_controls(tables, kind) for kind in ("supervised", "unsupervised")}
    return [
        f"{one.dataset}, {kind} probe: {_sentence(one)}"
        for pair in zip(*both.values(), strict=True)
        for kind, one in zip(both, pair, strict=True)
    ]


def _sentence(one: WithControls) -> str:
    asking, *controls = one.others.items()
    told = [f"{name} {row.value:.2f}".replace("nan", "–") for name, row in controls]
    if one.floor is not None:
        told.append(f"{LUCK} {one.floor.mean:.2f} (95 % stay below {one.floor.high:.2f})")
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
        of = Numbers(row.dataset, rows[row.probe].value, rows["supervised"].value, row.value)
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
    return f", and not shown to be above what the texts tell without a model: {', '.join(lost)}" if lost else ""


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
            f"{_above_texts(margins)}. Learning took {took:.0f} s against {probe:.0f} s. One training, one half: "
            "another half or seed may differ by more than the interval."
        )
    return found
