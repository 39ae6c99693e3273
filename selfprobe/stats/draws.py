"""p of a statistic among draws of it without an effect."""

import numpy as np
import numpy.typing as npt

from selfprobe.stats.estimate import FloatArray


def p_among_draws(reaching_counts: npt.ArrayLike, draw_count: int) -> FloatArray:
    """p of statistics that so many draws reach; each real one counts as a draw too.

    >>> float(p_among_draws(4, 99))
    0.05
    """
    return np.asarray((1 + np.asarray(reaching_counts)) / (1 + draw_count))


def p_of_largest(real: FloatArray, drawn: FloatArray) -> FloatArray:
    """p of each of `real  # [column]`, corrected for having looked at all: the largest statistic of
    each of `drawn  # [draw, column]` counts.
    """
    largest = drawn.max(axis=1)
    reaching_counts = (largest[:, None] >= real - 1e-9).sum(axis=0)
    return p_among_draws(reaching_counts, len(drawn))


def of_unit_length(values: FloatArray) -> FloatArray:
    """Values [cluster, column] over the root sum of squares of each column; a column of zeros stays."""
    lengths = np.sqrt((values**2).sum(axis=0))
    return np.asarray(values / np.where(lengths > 0, lengths, 1.0))
