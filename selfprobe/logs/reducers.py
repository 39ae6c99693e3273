"""How the epochs of an item become one value: Inspect's own reducers, by the names that a log has
of them.
"""

import json
import math
from collections.abc import Sequence
from functools import cache

from inspect_ai.log import EvalLog, EvalSampleReductions, read_eval_log
from inspect_ai.scorer import (
    Score,
    ScoreReducer,
    at_least,
    majority_score,
    max_score,
    mean_score,
    median_score,
    mode_score,
    pass_at,
    pass_k,
)
from pydantic import TypeAdapter

from selfprobe.logs.packed import member_text

MEAN = "mean"
"""Name of the reducer that a task has where it names none."""
_REDUCER_BY_NAME = {
    MEAN: mean_score,
    "median": median_score,
    "mode": mode_score,
    "max": max_score,
    "majority": majority_score,
}
_REDUCER_BY_KIND = {"at_least": at_least, "pass_at": pass_at, "pass_k": pass_k}
"""Reducers with a number in their names: "pass_at_2"."""
GROW_WITH_EPOCHS = ("max", "at_least")
"""Reducers whose values grow with the number of epochs, though the model is the same."""


def reducers_of(header: EvalLog) -> list[str]:
    """Names of the reducers of a run's epochs, the first one first."""
    return header.eval.config.epochs_reducer or [MEAN]


def parts_of(reducer: str) -> tuple[str, int]:
    """Kind of a reducer and its number of epochs, 0 where it has none.

    >>> parts_of("pass_at_2"), parts_of("max")
    (('pass_at', 2), ('max', 0))
    """
    kind, _, epoch_digits = reducer.rpartition("_")
    if kind in _REDUCER_BY_KIND and epoch_digits.isdigit():
        return kind, int(epoch_digits)
    return reducer, 0


@cache
def known_reducer(reducer: str) -> ScoreReducer | None:
    """Inspect's reducer of this name; None for one that somebody made."""
    kind, epoch_count = parts_of(reducer)
    if epoch_count:
        return _REDUCER_BY_KIND[kind](epoch_count)
    if reducer in _REDUCER_BY_NAME:
        return _REDUCER_BY_NAME[reducer]()
    return None


def reduced(epoch_values: Sequence[float], reducer: str) -> float:
    """Value of an item; NaN where no epoch is scored, or too few are. The mean stands in for an
    unknown reducer.

    Args:
        epoch_values: Value of each epoch that a scorer saw; NaN where it is unscored.
        reducer: Name of the reducer.

    >>> reduced([0.0, 1.0, 0.0, 0.0], "max"), reduced([0.0, 1.0, 0.0, 0.0], "pass_at_2")
    (1.0, 0.5)
    """
    scored_values = [value for value in epoch_values if not math.isnan(value)]
    if not scored_values:
        return math.nan
    score_reducer = None if reducer == MEAN else known_reducer(reducer)
    if score_reducer is None:
        return math.fsum(scored_values) / len(scored_values)
    epoch_scores = [Score(value=value) for value in epoch_values]
    reduced_value = score_reducer(epoch_scores).value
    assert isinstance(reduced_value, int | float), "numbers are reduced to a number"
    return float(reduced_value)


def logged_reductions(log: str) -> list[EvalSampleReductions]:
    """What Inspect made of the epochs of each sample, by scorer and reducer.

    Raises:
        Errors of `UNREADABLE`: The log cannot be read.
    """
    if not log.endswith(".eval"):
        return read_eval_log(log).reductions or []
    text = member_text(log, "reductions.json")
    return TypeAdapter(list[EvalSampleReductions]).validate_python(json.loads(text)) if text else []
