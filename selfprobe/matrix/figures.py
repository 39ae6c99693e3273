"""The pictures of a matrix's tasks, each with its numbers in words."""

import numpy as np
import pandas as pd

from selfprobe.matrix.advantage import SelfAdvantage
from selfprobe.matrix.numbers import TaskAnalysis
from selfprobe.page import Picture
from selfprobe.plots import heat_map, interval_rows, short_names
from selfprobe.stats.estimate import Estimate, clustered_mean


def cells_picture(task: TaskAnalysis) -> Picture:
    """The matrix of a task, holes included."""
    models = list(task.matrix.models)
    names = short_names(models)

    def grid(column: str) -> pd.DataFrame:
        return task.cells.pivot(index="target", columns="observer", values=column).loc[models, models]

    guesses = {row.model: row.without_a_model[1] for row in task.rows}
    chance = "" if np.isnan(task.chance) else f" A blind guess gets {task.chance:.2f}."
    holes = f" Hatched: {len(task.matrix.holes)} of {len(models) ** 2} cells have no finished run." * bool(
        task.matrix.holes
    )
    return heat_map(
        f"{task.task}-matrix",
        grid("value"),
        names,
        caption="Scores with 95 % intervals by item; framed: models on themselves. “No model”: the best baseline."
        f"{chance}{holes}",
        title=f"{task.task}: score of each observer on each target",
        low=grid("low"),
        high=grid("high"),
        under={name: guesses[model] for name, model in zip(names, models, strict=True) if model in guesses},
    )


def centred_picture(task: TaskAnalysis, advantage: SelfAdvantage) -> Picture:
    """What is left of the cells without skill and difficulty."""
    return heat_map(
        f"{task.task}-centred",
        advantage.centred,
        short_names(task.models),
        caption="What is left of a cell without the observer's skill and the target's difficulty. Violet on the "
        "diagonal speaks for self access.",
        title=f"{task.task}: row and column means removed",
        centred=True,
    )


def advantage_picture(task: TaskAnalysis, advantage: SelfAdvantage) -> Picture:
    """Each model's own advantage."""
    names = short_names([model.model for model in advantage.models])
    return interval_rows(
        f"{task.task}-advantage",
        {name: {"advantage": model.advantage} for name, model in zip(names, advantage.models, strict=True)},
        caption="Self advantage of each model over what skill and difficulty predict.",
        axis="self advantage, 95 % interval by item",
        title=f"{task.task}: self advantage by model",
        scale="signed",
        line=0,
    )


def others_picture(task: TaskAnalysis) -> Picture:
    """Each model on itself, and the mean of the others on it."""
    names, (itself, others) = short_names(task.models), _self_and_others(task)
    return self_against_others(
        f"{task.task}-self-others",
        {name: (a, b) for name, a, b in zip(names, itself, others, strict=True)},
        caption="How well each model predicts itself, and how well the others predict it on average.",
        title=f"{task.task}: itself against the others",
    )


def self_against_others(
    name: str, models: dict[str, tuple[Estimate, Estimate]], *, caption: str, title: str
) -> Picture:
    """The paper's Figure 2: name → its score on itself and the mean of the others on it."""
    rows = {model: {"predicts itself": a, "mean of the others on it": b} for model, (a, b) in models.items()}
    return interval_rows(name, rows, caption=caption, axis="score, 95 % interval by item", title=title)


def _self_and_others(task: TaskAnalysis) -> tuple[list[Estimate], list[Estimate]]:
    at = [task.matrix.models.index(model) for model in task.models]
    scores = task.matrix.scores[np.ix_(at, at)]  # [target, observer, item]
    items = task.cluster
    own, others = [], []
    for i in range(len(at)):
        own.append(clustered_mean(scores[i, i], items))
        rest = np.delete(scores[i], i, axis=0)
        others.append(clustered_mean(rest.ravel(), np.tile(items, len(rest))))
    return own, others
