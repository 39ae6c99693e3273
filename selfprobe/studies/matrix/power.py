"""Power of a matrix: the own advantage with which a model would be named, and the items that it takes.

A matrix is drawn again and judged by the same test (`selfprobe.stats.pairs`): cells where skill alone would put them,
pairs that differ as they do there, one model's own cell plus an advantage, and the noise of its items. Skill alone is
the additive fit to the cells off the diagonal, on the scale on which it fits best. What baselines and stand-ins ask for
is left out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from selfprobe.stats.estimate import FloatArray
from selfprobe.stats.pairs import FEWEST, Moments, fit_alone, moments, own_cells, steps_of

POWER = 0.8
EFFECT = 0.1
"""Own advantage for which the number of items is computed."""
EFFECTS = np.array([0.03, 0.05, 0.07, 0.09, 0.11, 0.13, 0.16, 0.2, 0.25, 0.3, 0.36, 0.43, 0.52, 0.63, 0.76, 0.9])
SIZES = np.geomspace(1 / 16, 256, 13)
"""Numbers of items to try, in units of those that there are."""
DRAWS = 2500
"""Number of cells that are drawn: at least forty matrices."""
MOST = 12
"""Number of models that are drawn together; more are drawn in parts, each as if the others were not there."""
PAIRS = 0.15
"""Standard deviation in logits by which pairs of real models differ: of the words of 62 models as predictions."""
LIKENESS = 0.2
"""Standard deviation of a likeness over items, before a run."""
ENDLESS = 10**6
"""Number of items beyond which more would not help."""


@dataclass(frozen=True)
class Power:
    """Power of this matrix for one model."""

    detects: float
    """Smallest own advantage with which the model is named in 80 % of such matrices; NaN where none would do."""
    items: float
    """Number of items with which an own advantage of `EFFECT` is named in 80 %; NaN where none of up to 256 times as
    many would do: pairs of these models differ by too much."""


def powers(
    x: FloatArray, *, tests: int, rng: np.random.Generator, floor: bool = False, alpha: float = 0.05
) -> tuple[Power, ...]:
    """Power for each model of `x  # [target, observer, item]`, NaN where unscored, among `tests` models of all tasks.

    The model is taken to be the only one with access, so that Holm's first step, alpha/tests, is what it must pass.
    """
    size, level = len(x), alpha / max(tests, len(x))
    nothing = (Power(math.nan, math.nan),) * size
    if size > MOST:
        parts = np.array_split(np.arange(size), math.ceil(size / MOST))
        return tuple(
            one for at in parts for one in powers(x[np.ix_(at, at)], tests=tests, rng=rng, floor=floor, alpha=alpha)
        )
    found = moments(x[None])
    if size < FEWEST or np.isnan(found.mean).any() or not found.cov.max() > 1e-12:
        return nothing  # every item scored alike: of the noise of other items nothing is known
    expected = fit_alone(found)
    draw = _drawing(found, expected, own_cells(x, floor=floor).spread, rng)
    detects = _reached(EFFECTS, lambda effect: _named(draw(effect, 1.0), floor, level))
    items = np.exp(_reached(np.log(SIZES), lambda log: _named(draw(EFFECT, math.exp(log)), floor, level))) * x.shape[2]
    return tuple(Power(float(least), float(takes)) for least, takes in zip(detects, items, strict=True))


def planned(
    models: int,
    items: int,
    *,
    tests: int,
    rng: np.random.Generator,
    chance: float = 0.0,
    right_or_wrong: bool = True,
) -> float:
    """The smallest own advantage that is named in 80 %, before a run; NaN where none is.

    All cells are half-way between chance and 1, independent; pairs differ as those of real models do.

    Args:
        models: Number of models.
        items: Number of items.
        tests: Models of all tasks.
        rng: Draws the matrices.
        chance: Score of a blind guess, which is taken off.
        right_or_wrong: Whether a score is 0 or 1; else it is a likeness.
    """
    if models < FEWEST or items < 2:
        return math.nan
    size, share = min(models, MOST), (1 + chance) / 2
    cells, spread = size * size, share * (1 - share) if right_or_wrong else LIKENESS**2
    mean = np.full((1, cells), share - chance)
    found = Moments(mean, np.eye(cells)[None] * spread / items, np.full((1, cells), float(items)), items, False)
    draw = _drawing(found, mean[0], PAIRS * share * (1 - share), rng)
    level = 0.05 / max(tests, models)
    return float(_reached(EFFECTS, lambda effect: _named(draw(effect, 1.0), False, level).mean(keepdims=True))[0])


def _drawing(
    found: Moments, expected: FloatArray, pairs: float, rng: np.random.Generator
) -> Callable[[float, float], Moments]:
    """Function from an effect and a multiple of the items to drawn matrices in which every model has it on itself.

    Own cells are in nobody's fit but their own, so that one draw tells of all models.
    """
    cells = len(expected)
    own = np.arange(0, cells, math.isqrt(cells) + 1)
    values, vectors = np.linalg.eigh(found.cov[0])
    draws = max(40, DRAWS // cells)
    noise = rng.normal(size=(draws, cells)) @ (vectors * np.sqrt(np.maximum(values, 0))).T
    differ = pairs * rng.normal(size=(draws, cells))
    seen = np.maximum(np.diagonal(found.cov[0])[own], 1e-12)

    def draw(effect: float, times: float) -> Moments:
        mean, width = expected.copy(), np.ones(cells)
        mean[own] = np.minimum(expected[own] + effect, 1)
        limit = 0.5 / found.count[0, own]
        share = np.clip(np.stack([mean[own], found.mean[0, own]]), limit, 1 - limit)
        after, before = share * (1 - share)
        width[own] = np.sqrt(np.minimum(after / before, 0.25 / (seen * found.count[0, own])))
        cov = found.cov * width[:, None] * width / times
        drawn = mean + differ + noise * width / math.sqrt(times)
        return replace(found, mean=drawn, cov=cov, count=found.count * times, units=max(found.units * times, 2))

    return draw


def _named(drawn: Moments, floor: bool, level: float) -> FloatArray:
    """Share of matrices in which a model is named, [model]."""
    steps = steps_of(drawn, floor=floor)[0]
    return np.asarray((np.max(list(steps.values()), axis=0) < level).mean(axis=0))


def _reached(at: FloatArray, power: Callable[[float], FloatArray]) -> FloatArray:
    """[model]: where its power reaches `POWER`, between the two points around it; NaN where it does not."""
    found = list[FloatArray]()
    while len(found) < len(at) and not (found and (np.max(found, axis=0) >= POWER).all()):
        found.append(power(float(at[len(found)])))
    table = np.array(found)
    out = np.full(table.shape[1], math.nan)
    for i in np.flatnonzero((table >= POWER).any(axis=0)):
        k = int(np.argmax(table[:, i] >= POWER))
        out[i] = at[0]
        if k:
            share = (POWER - table[k - 1, i]) / (table[k, i] - table[k - 1, i])
            out[i] = at[k - 1] + share * (at[k] - at[k - 1])
    return out
