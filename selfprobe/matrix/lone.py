"""What a run of a model on itself says without other models: a sentence a task, and what a verdict would take."""

import math
import shlex
from typing import Any

import numpy as np
import pandas as pd

from selfprobe._registry import measures
from selfprobe.matrix.numbers import Analysis, alike_items
from selfprobe.matrix.rows import baseline_hits
from selfprobe.matrix.table import Matrix, Results, matrix_of
from selfprobe.page import percent, shown
from selfprobe.scorers.frames import Frames

NEEDS = "A verdict needs two models more: selfprobe matrix --models {models} --tasks {task}."
TOLD = {"half": "always .5", "mean": "the mean of the other items"}
"""Names of baselines in a log that say too little alone."""


def lone_told(results: Results, analysis: Analysis, own: pd.DataFrame) -> list[str]:
    """What each task that a single model ran on itself says of it; the other tasks have a verdict.

    Args:
        results: The tables.
        analysis: The tasks of several models.
        own: From `self_section.self_table`.
    """
    known = {task.task for task in analysis.tasks}
    return [_told(results, row) for row in own.itertuples() if row.task not in known]


def _told(results: Results, row: Any) -> str:
    matrix, who = matrix_of(results, row.task), f"{row.task}, {row.model}"
    if row.hole:
        return f"{who}: no score, since {row.hole}."
    name, reached = _best_without_a_model(results, matrix, row)
    beside = f"best without a model {reached:.3f} ({name})" if name else "nothing without a model to hold it against"
    frames, measure = results.frames.get((row.task, row.model, row.model)), measures()[row.task]
    alone = "" if frames or not measure.frames else " Of one model alone, -T frame=both says more."
    lost = f" ({percent(row.unscored)} unscored)" if row.unscored else ""
    said = f"{who}: {shown(row, 3)} on itself{lost}, {beside}{_other(frames)}."
    needs = NEEDS.format(models=shlex.quote(f"{row.model},B,C"), task=row.task)
    return f"{said} {needs}{alone} {results.settings.get(row.task, '')}".rstrip()


def _other(frames: Frames | None) -> str:
    if frames is None:
        return ""
    return (
        f"; about another assistant {shown(frames.other, 3)}, itself minus another {shown(frames.gain, 3, sign=True)}"
    )


def _best_without_a_model(results: Results, matrix: Matrix, row: Any) -> tuple[str, float]:
    """Of what the report computes and of what the run's own log holds."""
    hits = baseline_hits(results, matrix, [row.model], alike_items(results, matrix))
    found = {name: float(np.nanmean(hit)) for name, hit in hits.items()}
    if not math.isnan(row.baseline):
        found.setdefault(TOLD.get(row.baseline_name, row.baseline_name), row.baseline)
    return max(found.items(), key=lambda item: item[1], default=("", math.nan))
