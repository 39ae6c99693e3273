"""Dilemmas by the four axes that they were made of (paper 003, F.3 and F.5): KL and cot_pred of each value."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from selfprobe.logs import Run
from selfprobe.matrix.effort import TASK
from selfprobe.matrix.table import Results
from selfprobe.page import Column, Details, Section, Table, estimated, named
from selfprobe.scorers.decision import last_decisions
from selfprobe.scorers.dilemma import dilemmas_of
from selfprobe.scorers.dilemma_prediction import estimates, infinite
from selfprobe.scorers.frames import split
from selfprobe.stats.estimate import Estimate, undefined

SHOWN = ("kl_predicted", "kl_direct", "kl_gain", "cot_pred")


@dataclass(frozen=True)
class AxisRow:
    """The dilemmas of one value of an axis, of a model on itself."""

    model: str
    axis: str
    """As the data set calls it: "conflict", "relationship", "domain", "ambiguity"."""
    value: str
    dilemmas: int
    """Scored ones."""
    infinite: int
    """Of them, left out of the means of KL since one of both is infinite."""
    numbers: dict[str, Estimate]
    """Of SHOWN; see `dilemma_prediction.estimates`."""


def axis_rows(results: Results) -> list[AxisRow]:
    """A row a model, axis and value, of the finished runs of models on themselves; none where no dilemma has axes."""
    cells, runs = results.cells, {run.log: run for run in results.runs}
    own = cells[(cells.task == TASK) & (cells.target == cells.observer) & (cells.status == "complete")]
    return [row for cell in own.itertuples() if cell.log in runs for row in _rows(str(cell.target), runs[cell.log])]


def _rows(model: str, run: Run) -> list[AxisRow]:
    seen = run.summaries
    axes = {str(s.id): given for s in seen if isinstance(given := s.metadata.get("axes"), dict)}
    if not axes:
        return []
    decisions, _ = split([(str(s.id), d) for s in seen for d in last_decisions(s.scores)])
    dilemmas = {item: one for item, one in dilemmas_of(decisions).items() if not one.unscored and item in axes}
    clusters = {str(s.id): str(s.metadata.get("cluster") or s.id) for s in seen}
    rows = []
    for axis in dict.fromkeys(name for given in axes.values() for name in given):
        for value in sorted({str(axes[item][axis]) for item in dilemmas if axis in axes[item]}):
            here = [item for item in dilemmas if str(axes[item].get(axis)) == value]
            found = estimates([dilemmas[item] for item in here], [clusters[item] for item in here])
            numbers = {name: found.get(name, undefined("KL is infinite everywhere")) for name in SHOWN}
            rows.append(
                AxisRow(model, axis, value, len(here), infinite([dilemmas[i] for i in here])["either"], numbers)
            )
    return rows


def axes_section(rows: Sequence[AxisRow]) -> list[Section]:
    """The same on a page, folded by model."""
    if not rows:
        return []
    columns = (
        Column("axis", "axis"),
        Column("value", "value"),
        Column("dilemmas", "dilemmas", str),
        *(estimated(title, partial(_number, name)) for name, title in _TITLES.items()),
        Column("infinite", "infinite", str),
    )
    told = (
        "Divergences in nats with 95 % intervals over dilemmas, over those at which both are finite. Many values are "
        "compared here: of twenty, one differs by chance."
    )
    models = list(dict.fromkeys(row.model for row in rows))
    tables = [Details(model, [Table([row for row in rows if row.model == model], columns)]) for model in models]
    return [Section("ethical_dilemma by what the dilemmas are about", [told, *tables], name="axes", menu="axes")]


def _number(name: str, row: AxisRow) -> Estimate:
    return row.numbers[name]


_TITLES = {
    "kl_predicted": "KL(p‖p′)",
    "kl_direct": "KL(p‖p*)",
    "kl_gain": "gut answer minus prediction",
    "cot_pred": "cot_pred",
}


def axes_table(rows: Sequence[AxisRow]) -> pd.DataFrame:
    """The same as a table, a row a model, axis and value."""
    return pd.DataFrame(
        [
            {"model": row.model, "axis": row.axis, "value": row.value, "dilemmas": row.dilemmas}
            | {"infinite": row.infinite}
            | {key: x for name, one in row.numbers.items() for key, x in named(name, one).items()}
            for row in rows
        ]
    )
