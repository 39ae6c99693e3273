"""Pictures of several probe runs for the latent-preference paper: by size, by depth, and of a
direction taken out. No file is written here.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from selfprobe.page.numerals import Interval
from selfprobe.page.plots import Picture, curves, interval_rows
from selfprobe.studies.probe_figures import (
    BY_QUESTION,
    CHANGE_OF_F1,
    METRIC_NAMES,
    PROBE_KINDS,
    interval_of,
    intervals_of,
    size_text,
    stem_of,
)

DIRECTION_KINDS = (*PROBE_KINDS, "random")
SIZED_METHODS = (
    "supervised",
    "unsupervised",
    "unsupervised, flipped",
    "prompting",
    "direct scoring",
    "G-Eval",
    "fine-tuned judge",
    "fine-tuned judge, all weights",
    "no model (length)",
    "no model (TF-IDF)",
)
"""Methods of a picture by size, in the order of its legend."""


def size_pictures(
    table: pd.DataFrame, *, title: str, stem: str, metric: str = "f1"
) -> list[Picture]:
    """A score against the model's parameters: a picture a family, a line a method, 95 % intervals.

    `table` has family, parameters, method, metric, value, low, high; models of unknown size are
    left out.
    """
    sized = table[(table.metric == metric) & table.parameters.notna()]
    pictures = []
    for family, rows in sized.groupby("family", sort=False):
        series: dict[str, tuple[Sequence[float], Sequence[Interval]]] = {}
        for method in SIZED_METHODS:
            line = rows[rows.method == method].sort_values("parameters")
            if len(line):
                series[method] = (list(np.log10(line.parameters)), intervals_of(line))
        sizes = sorted(set(rows.parameters))
        picture = curves(
            stem_of(stem, family),
            series,
            caption=(
                f"{title}, {family}: {METRIC_NAMES[metric]} by the model's parameters, "
                "95 % intervals."
            ),
            x_title="parameters",
            y_title=METRIC_NAMES[metric],
            title=f"{title}: {family}",
            ticks={float(np.log10(size)): size_text(size) for size in sizes},
            line=0.5,
        )
        pictures.append(picture)
    return pictures


def depth_pictures(
    table: pd.DataFrame, *, title: str, stem: str, metric: str = "f1"
) -> list[Picture]:
    """A score by layer of one data set, as a share of the model's blocks: a picture a kind, a line
    a model.
    """
    scored = table[table.metric == metric]
    pictures = []
    for kind, rows in scored.groupby("probe", sort=False):
        series: dict[str, tuple[Sequence[float], Sequence[Interval]]] = {}
        for model, layers in rows.groupby("model", sort=False):
            curve = layers.sort_values("depth")
            series[str(model)] = (list(curve.depth), intervals_of(curve))
        picture = curves(
            stem_of(stem, kind),
            series,
            caption=f"{title}, {kind} probe: {METRIC_NAMES[metric]} by depth, 95 % intervals.",
            x_title="block, as a share of the model's blocks",
            y_title=METRIC_NAMES[metric],
            title=f"{title}: {kind}",
            marks=False,
            line=0.5,
            alt=(
                f"{METRIC_NAMES[metric]} of the {kind} probe by depth; "
                "the numbers are in the table."
            ),
        )
        pictures.append(picture)
    return pictures


def change_pictures(table: pd.DataFrame, *, stem: str) -> list[Picture]:
    """Change of asking's F1 with a direction taken out: a picture a data set, a row a model (table
    2).

    Of several random directions the one that takes most is drawn: the strongest control.
    """
    taken_out = table[table.direction != "none"]
    pictures = []
    for dataset, rows in taken_out.groupby("dataset", sort=False):
        marks: dict[str, dict[str, Interval]] = {}
        for model, directions in rows.groupby("model", sort=False):
            marks[str(model)] = {}
            for kind in DIRECTION_KINDS:
                of_kind = directions[directions.direction.str.startswith(kind)].sort_values("value")
                if len(of_kind):
                    marks[str(model)][kind] = interval_of(next(of_kind.itertuples()))
        picture = interval_rows(
            stem_of(stem, dataset),
            marks,
            caption=f"{dataset}: {CHANGE_OF_F1}; of random directions the lowest. {BY_QUESTION}",
            axis="change of F1",
            title=str(dataset),
            scale="signed",
            line=0,
        )
        pictures.append(picture)
    return pictures
