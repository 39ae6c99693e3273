"""The transform of IntrospectBench's G.3: min-max per task, mean A, C = ln(A + ε), double-centred."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
import numpy.typing as npt

from selfprobe.page import Heading, number
from selfprobe.stats.estimate import FloatArray
from selfprobe.studies.matrix.advantage import double_centre

EPSILON = 0.01
"""ε of the transform. Paper: no number in the text; the public notebook adds 1e-5, and centres raw
scores too. Here: .01, since min-max makes the least cell 0, and ln(1e-5) = -11.5 of one cell would
be most of C.
"""
NOTEBOOK_EPSILON = 1e-5
"""ε of the paper's public notebook."""


@dataclass(frozen=True)
class PaperTransform:
    """Result of `paper_transform`."""

    aggregate: FloatArray
    """A[target, observer], the mean of the min-max normalised tasks; NaN where a task has no score.
    """
    log: FloatArray
    """L = ln(A + ε)."""
    centred: FloatArray
    """C, the double-centred L; all NaN if a cell is."""
    eps: float
    """The ε that was added."""
    reasons: Mapping[str, str]
    """Tasks left out of A → why."""


@dataclass(frozen=True)
class EpsilonRow:
    """The paper's statistic by ε."""

    epsilon: Annotated[
        float, Heading("ε", "What is added before the logarithm.", lambda epsilon: f"{epsilon:g}")
    ]
    raw: Annotated[
        bool, Heading("raw scores", "Whether the scores are taken as they are, without min-max.")
    ]
    advantage: Annotated[
        float,
        Heading(
            "T on the log scale",
            "Mean diagonal of the double-centred matrix of logarithms.",
            partial(number, digits=3),
        ),
    ]
    positive: Annotated[
        int,
        Heading(
            "models with a positive own cell", "Models whose own cell is above 0 after centring."
        ),
    ]


def paper_transform(matrices: Mapping[str, npt.ArrayLike], eps: float) -> PaperTransform:
    """Min-max per task, mean A, L = ln(A + ε), double-centred C (G.3), for task name ->
    matrix[target, observer].

    A task whose scores are all equal has no min-max: it is left out of A, with a reason. A hole in
    a task is a hole in A. Paper: no number of ε in the text, 1e-5 in the public notebook. Here: the
    caller's, and shown; see `epsilon_sensitivity`.
    """
    matrix_by_task = {name: np.asarray(matrix, dtype=float) for name, matrix in matrices.items()}
    shapes = {name: matrix.shape for name, matrix in matrix_by_task.items()}
    are_square = all(len(shape) == 2 and shape[0] == shape[1] for shape in shapes.values())
    if len(set(shapes.values())) != 1 or not are_square:
        raise ValueError(f"expected one or more square matrices of one size, got {shapes}")
    if eps < 0:
        raise ValueError(f"eps must be 0 or more, got {eps}")

    normalised_matrices = list[FloatArray]()
    reasons = dict[str, str]()
    for name, matrix in matrix_by_task.items():
        scores = matrix[~np.isnan(matrix)]
        if not scores.size:
            reasons[name] = "no score"
        elif np.ptp(scores) > 0:
            normalised_matrices.append(min_max(matrix))
        else:
            reasons[name] = "all scores are equal: min-max is undefined"
    if normalised_matrices:
        aggregate = np.mean(normalised_matrices, axis=0)
    else:
        first_shape = next(iter(shapes.values()))
        aggregate = np.full(first_shape, math.nan)

    if eps == 0 and (aggregate == 0).any():
        target, observer = np.argwhere(aggregate == 0)[0]
        raise ValueError(
            f"ln(0): A is 0 for target {target}, observer {observer} (counted from 0); "
            "choose eps > 0, such as 0.01"
        )
    log = np.log(aggregate + eps)
    return PaperTransform(aggregate, log, double_centre(log), eps, reasons)


def min_max(means: FloatArray) -> FloatArray:
    """Min-max over the last two axes of [..., target, observer]; NaN where all are equal."""
    lowest = np.nanmin(means, axis=(-2, -1), keepdims=True)
    highest = np.nanmax(means, axis=(-2, -1), keepdims=True)
    ranges = np.where(highest > lowest, highest - lowest, math.nan)
    return np.asarray((means - lowest) / ranges)


def epsilon_sensitivity(
    matrices: Mapping[str, npt.ArrayLike],
    epsilons: Sequence[float] = (1e-6, NOTEBOOK_EPSILON, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
) -> tuple[EpsilonRow, ...]:
    """Results of the paper's transform for each ε: the log-scale T, and how many diagonal cells are
    positive.

    The last row is of the mean of the scores as they are, which the public notebook centres too,
    with its ε; it is left out where that mean plus ε is not above 0.
    """
    rows = list[EpsilonRow]()
    for eps in epsilons:
        centred = paper_transform(matrices, eps).centred
        rows.append(_epsilon_row(eps, centred, raw=False))

    raw_matrices = [np.asarray(matrix, dtype=float) for matrix in matrices.values()]
    raw_means = np.mean(raw_matrices, axis=0) + NOTEBOOK_EPSILON
    if not (raw_means <= 0).any():
        raw_centred = double_centre(np.log(raw_means))
        rows.append(_epsilon_row(NOTEBOOK_EPSILON, raw_centred, raw=True))
    return tuple(rows)


def _epsilon_row(eps: float, centred: FloatArray, *, raw: bool) -> EpsilonRow:
    own_cells = np.diag(centred)
    return EpsilonRow(
        epsilon=eps,
        advantage=float(own_cells.sum() / (len(own_cells) - 1)),
        positive=int((own_cells > 0).sum()),
        raw=raw,
    )
