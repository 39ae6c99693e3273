"""Pictures of the tables of a probe run. No file is written here."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.data.public_pairs import LLMBAR_NATURAL
from selfprobe.page.numerals import Interval
from selfprobe.page.plots import Picture, bar_rows, curves, heat_map, interval_rows, scatter
from selfprobe.stats.estimate import Estimate

METRIC_NAMES = {"f1": "weighted F1", "accuracy": "accuracy", "auroc": "AUROC"}
PROBE_KINDS = ("supervised", "unsupervised")
LEVEL_METHODS = ("prompting", "no model (TF-IDF)", "no model (length)")
"""Methods without layers: a level line in a picture by layer."""
CHANGE_OF_F1 = "F1 of asking with a direction taken out, less F1 without"
BY_QUESTION = "95 % intervals by question."


def drawn_pictures(tables: Mapping[str, pd.DataFrame]) -> dict[str, list[Picture]]:
    """Table → its pictures, mostly one a data set, of those tables that are there."""
    makers: Mapping[str, Callable[[pd.DataFrame], list[Picture]]] = {
        "methods": method_pictures,
        "layers": lambda table: layer_pictures(table, tables["floors"], tables["methods"]),
        "transfer": transfer_pictures,
        "cosine": cosine_pictures,
        "adversarial": adversarial_pictures,
        "finetuned": partial(method_pictures, stem="finetuned"),
        "finetuning": loss_pictures,
        "ablation": ablation_pictures,
        "components": partial(component_pictures, by="dataset"),
    }
    return {name: make(tables[name]) for name, make in makers.items() if name in tables}


def method_pictures(
    table: pd.DataFrame, *, metric: str = "f1", stem: str = "methods"
) -> list[Picture]:
    """Probes, the model's own answers and the controls: bars with intervals, a picture a data set."""
    scored = table[table.metric == metric]
    pictures = []
    for dataset, rows in scored.groupby("dataset", sort=False):
        bars = {str(row.method): {"": interval_of(row)} for row in rows.itertuples()}
        title = named_with_questions(dataset, rows)
        picture = bar_rows(
            stem_of(stem, dataset),
            bars,
            caption=f"{title}: {METRIC_NAMES[metric]} on held-out pairs. {BY_QUESTION}",
            axis=METRIC_NAMES[metric],
            title=title,
            line=0.5,
        )
        pictures.append(picture)
    return pictures


def layer_pictures(
    table: pd.DataFrame, floors: pd.DataFrame, methods: pd.DataFrame, *, metric: str = "f1"
) -> list[Picture]:
    """Both probes by layer, above what the best of all layers finds when labels are shuffled."""
    scored = table[table.metric == metric]
    pictures = []
    for dataset, rows in scored.groupby("dataset", sort=False):
        ends = (1.0, float(rows.layer.max()) + 1)
        series: dict[str, tuple[Sequence[float], Sequence[Interval]]] = {}
        for kind in PROBE_KINDS:
            curve = rows[rows.probe == kind].sort_values("layer")
            series[kind] = (list(curve.layer + 1), intervals_of(curve))
        is_level = (methods.dataset == dataset) & (methods.metric == metric)
        level_of_method = methods[is_level].set_index("method").value
        for method in LEVEL_METHODS:
            if method in level_of_method.index:
                series[method] = (ends, [level(float(level_of_method[method]))] * 2)
        is_floor = (
            (floors.dataset == dataset)
            & (floors.metric == metric)
            & ~floors.over.str.contains("signs")
        )
        floor = floors[is_floor]
        if len(floor):
            mean = float(floor["mean"].max())
            band = Estimate(mean, mean, float(floor.high.max()), int(floor.n.max()), "shuffle")
            series["best layer on shuffled labels (mean to 95 %)"] = (ends, [band, band])
        title = named_with_questions(dataset, rows)
        picture = curves(
            stem_of("layers", dataset),
            series,
            caption=f"{title}: {METRIC_NAMES[metric]} on held-out pairs, by block. {BY_QUESTION}",
            x_title="after block",
            y_title=METRIC_NAMES[metric],
            title=title,
            marks=False,
            alt=(
                f"{METRIC_NAMES[metric]} of both probes of {dataset} by block; "
                "the numbers are in the table."
            ),
        )
        pictures.append(picture)
    return pictures


def transfer_pictures(
    table: pd.DataFrame, *, metric: str = "f1", stem: str = "transfer"
) -> list[Picture]:
    """Probes of one data set (column) on another (row), with intervals; framed: their own test
    halves.
    """
    scored = table[table.metric == metric]
    names = list(dict.fromkeys(scored.trained_on))
    pictures = []
    for kind, rows in scored.groupby("probe", sort=False):
        cells = rows.set_index(["tested_on", "trained_on"])
        title = f"{kind}: {METRIC_NAMES[metric]} on pairs whose question the probe has not seen"
        picture = heat_map(
            stem_of(stem, kind),
            square_of(cells.value, names),
            names,
            caption=f"{title}.",
            title=f"{kind}: {METRIC_NAMES[metric]}",
            low=square_of(cells.low, names),
            high=square_of(cells.high, names),
            x_title="trained on",
            y_title="tested on",
        )
        pictures.append(picture)
    return pictures


def cosine_pictures(table: pd.DataFrame, *, stem: str = "cosine") -> list[Picture]:
    """Cosines of directions at one layer, as a magnitude; framed: of one data set.

    A magnitude, since labels, or nothing at all, fix the sign of a component.
    """
    names = list(dict.fromkeys(table.a))
    block = int(table.layer.iloc[0]) + 1
    pictures = []
    for kind, rows in table.groupby("probe", sort=False):
        cells = rows.set_index(["a", "b"])
        picture = heat_map(
            stem_of(stem, kind),
            square_of(cells.absolute, names),
            names,
            caption=(
                f"{kind}: magnitude of the directions' cosine after block {block}, "
                "mean over halves."
            ),
            title=f"{kind}, after block {block}",
            x_title="",
            y_title="",
        )
        pictures.append(picture)
    return pictures


def adversarial_pictures(
    table: pd.DataFrame, *, metric: str = "f1", stem: str = "adversarial"
) -> list[Picture]:
    """LLMBar: learnt from its natural subsets, tested on all, which come after them."""
    scored = table[table.metric == metric]
    subsets = sorted(set(scored.subset), key=lambda subset: (subset not in LLMBAR_NATURAL, subset))
    bars: dict[str, dict[str, Interval]] = {}
    for subset in subsets:
        rows = scored[scored.subset == subset]
        name = f"{subset}, natural" if subset in LLMBAR_NATURAL else subset
        bars[f"{name}\n{int(rows.n.max())} questions"] = {
            str(row.method): interval_of(row) for row in rows.itertuples()
        }
    caption = (
        f"Learnt from the natural subsets, tested on all: {METRIC_NAMES[metric]}. {BY_QUESTION}"
    )
    return [bar_rows(stem, bars, caption=caption, axis=METRIC_NAMES[metric], line=0.5)]


def loss_pictures(table: pd.DataFrame) -> list[Picture]:
    """Loss of the fine-tuned judge by step, a picture a data set; and of one that says 1 or 2 at
    random.
    """
    pictures = []
    for dataset, rows in table.groupby("dataset", sort=False):
        series: dict[str, tuple[Sequence[float], Sequence[Interval]]] = {}
        for training, steps in rows.groupby("training", sort=False):
            series[str(training)] = (list(steps.step), [level(loss) for loss in steps.loss])
        ends = (float(rows.step.min()), float(rows.step.max()))
        series["1 or 2 at random"] = (ends, [level(float(np.log(2)))] * 2)
        picture = curves(
            stem_of("finetuning", dataset),
            series,
            caption=f"{dataset}: loss of the judge while it is trained.",
            x_title="step",
            y_title="−log P of the right answer",
            title=str(dataset),
            marks=False,
            alt=f"Loss of the judge on {dataset} by step; its ends are in the table.",
        )
        pictures.append(picture)
    return pictures


def ablation_pictures(table: pd.DataFrame) -> list[Picture]:
    """Change of the prompting baseline's F1 when a direction is taken out, beside random directions."""
    taken_out = table[table.direction != "none"]
    pictures = []
    for dataset, rows in taken_out.groupby("dataset", sort=False):
        marks = {str(row.direction): {"": interval_of(row)} for row in rows.itertuples()}
        picture = interval_rows(
            stem_of("ablation", dataset),
            marks,
            caption=f"{named_with_questions(dataset, rows)}: {CHANGE_OF_F1}. {BY_QUESTION}",
            axis="change of F1",
            title=named_with_questions(dataset, rows),
            scale="signed",
            line=0,
        )
        pictures.append(picture)
    return pictures


def component_pictures(table: pd.DataFrame, *, by: str, stem: str = "components") -> list[Picture]:
    """Contrast differences along their first two principal components, coloured by preference.

    `by` is the column whose values have a picture each: the data set, or the model.
    """
    pictures = []
    for name, rows in table.groupby(by, sort=False):
        points = {}
        for better in (1, 2):
            preferred = rows[rows.preferred == better]
            points[f"text {better} is better"] = (
                list(preferred["first"]),
                list(preferred["second"]),
            )
        first = rows.iloc[0]
        block = int(first.layer) + 1
        picture = scatter(
            stem_of(stem, name),
            points,
            caption=f"{name}: contrast differences of {len(rows)} pairs after block {block}.",
            x_title=f"first component ({100 * first.share_first:.0f} % of the variance)",
            y_title=f"second component ({100 * first.share_second:.0f} %)",
            title=f"{name}, block {block}",
        )
        pictures.append(picture)
    return pictures


def size_text(parameters: float) -> str:
    """Size as text: 8B, 0.5B, 135M, 20k."""
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if parameters >= unit / 2 or unit == 1e3:
            digits = ".2g" if parameters < 100 * unit else ".0f"
            return f"{parameters / unit:{digits}}{letter}"
    raise AssertionError


def level(value: float) -> Estimate:
    """A value without an interval."""
    return Estimate(value, np.nan, np.nan, 0, "step")


def interval_of(row: Any) -> Interval:
    """A row with value, low and high, as pictures take estimates."""
    return Estimate(float(row.value), float(row.low), float(row.high), int(row.n), "question")


def intervals_of(rows: pd.DataFrame) -> list[Interval]:
    """`interval_of` each row."""
    return [interval_of(row) for row in rows.itertuples()]


def square_of(values: pd.Series, names: Sequence[str]) -> npt.NDArray[np.float64]:
    """Values by (row, column) as an array [row, column]."""
    square = np.empty((len(names), len(names)))
    for i, row_name in enumerate(names):
        for j, column_name in enumerate(names):
            square[i, j] = values.loc[(row_name, column_name)]
    return square


def named_with_questions(dataset: object, rows: pd.DataFrame) -> str:
    """Name of a data set with the number of its questions."""
    return f"{dataset} ({int(rows.n.max())} questions)"


def stem_of(stem: str, name: object) -> str:
    """Stem of a picture's file: the table's and what the picture is about."""
    return f"{stem}-{slug(name)}"


def slug(name: object) -> str:
    """A name as a file has it."""
    return re.sub(r"[^\w.-]+", "-", str(name)).strip("-.") or "model"
