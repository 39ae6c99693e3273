"""The number of dimensions of planted statements."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special

from selfprobe.stats.dimensions import count_dimensions
from selfprobe.stats.estimate import FloatArray


def statements(dimension_count: int, models: int, items: int = 300) -> FloatArray:
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(dimension_count, items))
    logits = factors[np.arange(models) % dimension_count] + 0.7 * rng.normal(size=(models, items))
    return np.asarray(special.expit(logits))


ITEMS = np.arange(300)
ONE_DIMENSION = statements(1, models=4)


@pytest.mark.parametrize("dimension_count", [1, 2])
def test_the_planted_number_of_dimensions_is_counted(dimension_count: int) -> None:
    counted = count_dimensions(statements(dimension_count, models=6), np.arange(300))
    assert counted.count == dimension_count and not counted.reason
    assert counted.eigenvalues.sum() == pytest.approx(6)


@pytest.mark.parametrize(
    ("chances", "clusters", "reason"),
    [
        (ONE_DIMENSION[:3], ITEMS, "models: 3; 4 are the least"),
        (ONE_DIMENSION[:1], ITEMS, "models: 1; 4 are the least"),
        (
            np.array([*ONE_DIMENSION[:3], np.full(300, 0.7)]),
            ITEMS,
            "models with statements that differ: 3; 4 are the least",
        ),
        (
            np.where(ITEMS < 15, ONE_DIMENSION, math.nan),
            ITEMS,
            "items with all statements: 15; 20 are the least",
        ),
        (ONE_DIMENSION, ITEMS // 20, "items with all statements: 15; 20 are the least"),
    ],
    ids=["few models", "one model", "a constant model", "few items", "few clusters"],
)
def test_statements_that_have_no_number_of_dimensions_say_why(
    chances: FloatArray, clusters: npt.NDArray[np.intp], reason: str
) -> None:
    counted = count_dimensions(chances, clusters)
    assert counted.count is None and counted.reason == reason and not len(counted.eigenvalues)


def test_a_cluster_of_items_counts_once_for_dimensions() -> None:
    assert count_dimensions(ONE_DIMENSION, ITEMS // 12).count == 1
