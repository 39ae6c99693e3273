"""How often a 95 % interval holds what is known to be true: the cases that bench/verdict.py counts.

Shares near 0 and 1, few items, several answers an item, scores from which a habit or a baseline is
taken.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from truths import WORDS, cells, worded

from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, mode_baseline, skill
from selfprobe.studies.matrix.advantage import self_advantage, total_of, total_weights

MODELS = 5
MODE = 0.5
"""How often the commonest answer is right, where there is one."""
Told = tuple[Estimate, float]


@dataclass(frozen=True)
class Interval:
    """One quantity under one truth."""

    name: str
    draw: Callable[[np.random.Generator, int], Told]
    """From a generator and a number of items to the estimate and the truth."""
    at_once: int = 20
    """Draws that count as one matrix: most cost nothing."""


def intervals() -> Iterator[Interval]:
    """The quantities that a report shows with an interval."""
    for p in (0.02, 0.05, 0.5, 0.95):
        yield Interval(f"score {p:g}", partial(_score, p))
    for p in (0.05, 0.5, 0.95):
        yield Interval(f"score {p:g}, three answers an item", partial(_clustered, p))
    for p in (0.05, 0.5, 0.95):
        yield Interval(f"score {p:g}, sources of unequal size", partial(_unequal, p))
    yield Interval("difference of two scores, sources of unequal size", _apart)
    for p in (0.05, 0.5, 0.95):
        yield Interval(f"score {p:g} minus the commonest answer's", partial(_over, p))
    for p in (0.05, 0.5, 0.95):
        yield Interval(f"skill at a score of {p:g}", partial(_skill, p))
    for name, low, high in (("near 0", 0.1, 0.4), ("middle", 0.5, 0.8), ("near 1", 0.95, 0.99)):
        yield Interval(f"T, cells {name}", partial(_total, low, high))
        yield Interval(f"own advantage of the strongest, cells {name}", partial(_own, low, high), 5)
    for habit, access in ((0.1, 0.05), (0.5, 0.4), (0.1, 0.9)):
        name = f"item-specific score, habit {habit:g}, access {access:g}"
        yield Interval(name, partial(_item_specific, habit, access), 3)


def _right(p: float | FloatArray, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    return (rng.random(shape) < p).astype(float)


def _score(p: float, rng: np.random.Generator, items: int) -> Told:
    return clustered_mean(_right(p, (items,), rng), np.arange(items)), p


def _clustered(p: float, rng: np.random.Generator, items: int) -> Told:
    """Chances of items are spread so that two answers to one correlate by .5."""
    chances = rng.beta(p, 1 - p, items)
    right = (rng.random((items, 3)) < chances[:, None]).astype(float)
    return clustered_mean(right.ravel(), np.repeat(np.arange(items), 3)), p


def _sources(
    p: float, rng: np.random.Generator, items: int
) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Answers to items of as many sources, the k-th with 1/k of the items of the first; correlated
    by .5 in one.
    """
    sizes = np.maximum(1, items // np.arange(1, items + 1))
    return _right(rng.beta(p, 1 - p, items).repeat(sizes), (sizes.sum(),), rng), np.arange(
        items
    ).repeat(sizes)


def _unequal(p: float, rng: np.random.Generator, items: int) -> Told:
    return clustered_mean(*_sources(p, rng, items)), p


def _apart(rng: np.random.Generator, items: int) -> Told:
    one, sources = _sources(0.5, rng, items)
    return clustered_mean(one - _sources(0.5, rng, items)[0], sources, interval="t"), 0.0


def _with_mode(p: float, rng: np.random.Generator, items: int) -> tuple[FloatArray, FloatArray]:
    truth = np.where(rng.random(items) < MODE, -1, np.arange(items))
    return _right(p, (items,), rng), mode_baseline(truth)


def _over(p: float, rng: np.random.Generator, items: int) -> Told:
    right, mode = _with_mode(p, rng, items)
    return clustered_mean(right - mode, np.arange(items), interval="t"), p - MODE


def _skill(p: float, rng: np.random.Generator, items: int) -> Told:
    right, mode = _with_mode(p, rng, items)
    return skill(right, mode, np.arange(items)), (p - MODE) / (1 - MODE)


def _matrix(
    low: float, high: float, rng: np.random.Generator, items: int
) -> tuple[FloatArray, FloatArray]:
    graded = np.linspace(low, high, MODELS)
    p = cells("product", graded, graded)
    return (rng.random((MODELS, MODELS, items)) < p[:, :, None]).astype(float), p


def _total(low: float, high: float, rng: np.random.Generator, items: int) -> Told:
    x, p = _matrix(low, high, rng, items)
    return total_of(x), float((total_weights(MODELS) * p).sum())


def _own(low: float, high: float, rng: np.random.Generator, items: int) -> Told:
    x, p = _matrix(low, high, rng, items)
    i = MODELS - 1
    others = np.arange(i)
    rest = [[k for k in others if k != j] for j in others]
    true = [
        p[i, i] - p[i, j] - (p[k, i] - p[k, j]).mean() for j, k in zip(others, rest, strict=True)
    ]
    return self_advantage(x, rng=rng).models[i].advantage, float(np.mean(true))


def _item_specific(habit: float, access: float, rng: np.random.Generator, items: int) -> Told:
    _, found, *_ = worded([habit] * 3, {0: access})(rng, items)
    luck = 1 / WORDS
    says = access * habit + (1 - access) * habit
    score = access + (1 - access) * (habit**2 + (1 - habit) ** 2 * luck)
    elsewhere = says * habit + (1 - says) * (1 - habit) * luck
    return clustered_mean(found.scores[0, 0], np.arange(items), interval="t"), score - elsewhere
