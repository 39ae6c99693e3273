"""Does a model know more of itself than skill explains, on every scale on which skill may act?

Without access a cell is F(skill of the observer, predictability of the target) with some F that rises in both, and
nobody knows F. For model i, a rival j and a scale g the contrast is

    C_ij = [g(x_ii) - g(x_ij)] - mean over the other targets k of [g(x_ki) - g(x_kj)]

F additive on a scale g makes C zero there, and may make it large elsewhere: a model counts only where C is above 0 for
all rivals on all scales (an intersection-union test, which needs no correction over either). Crossing needs no scale
at all (Loftus 1978): i beats every rival on i, and a rival that is the better observer of the others.

`powers` and `planned` say what a matrix can detect by these contrasts: the advantage with which a model would be named,
and the items that it takes. A matrix of this size is drawn again: cells where skill alone would put them, the model's
own plus an advantage, and the noise of the bootstrap. Skill alone is the additive fit to the cells off the diagonal, on
the scale on which it fits best. What baselines ask for is left out.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from selfprobe.stats.spread import FloatArray

RESAMPLES = 4000
"""Of the items. The smallest p is then about 1/4000, so that 55 tests (11 models, 5 tasks) can pass Holm's."""
SCALES = ("as scored", "log", "logit")


@dataclass(frozen=True)
class Beyond:
    """One model against every rival."""

    scales: Mapping[str, float]
    """Scale → one-sided p that the model's contrast is above 0 for every rival (the largest p of them)."""
    above: float
    """One-sided p that its score on itself is above 0."""
    crossing: float
    """One-sided p that it beats every rival on itself, and one of them is the better observer of the other targets."""


def beyond_skill(x: npt.ArrayLike, *, rng: np.random.Generator, resamples: int = RESAMPLES) -> tuple[Beyond, ...]:
    """Each model of `x  # [target, observer, item]`, NaN where unscored; scores from which chance or habit is taken.

    Items are resampled, together for all cells.

    Raises:
        ValueError: Fewer than three models or two items, or a cell without a score.
    """
    scores = np.asarray(x, dtype=float)
    if scores.ndim != 3 or scores.shape[0] != scores.shape[1] or len(scores) < 3 or scores.shape[2] < 2:
        raise ValueError(f"expected [target, observer, item], three models and two items or more, got {scores.shape}")
    if np.isnan(scores).all(axis=2).any():
        raise ValueError("expected a score in every cell")
    size, n = len(scores), scores.shape[2]
    means = resampled(scores, rng, resamples)
    rivals = ~np.eye(size, dtype=bool)
    p = {s: np.where(rivals, _p(contrasts(on_scale(s, means, n)), n), 0).max(axis=1) for s in SCALES}
    own = np.einsum("dii->di", means)
    beats = np.where(rivals, _p(own[:, :, None] - means, n), 0).max(axis=1)
    outdone = np.where(rivals, _p(-_skill(means), n), 1).min(axis=1) * (size - 1)
    return tuple(
        Beyond(
            scales={scale: float(p[scale][i]) for scale in SCALES},
            above=float(_p(own[:, i], n)),
            crossing=min(1.0, max(float(beats[i]), float(outdone[i]))),
        )
        for i in range(size)
    )


def resampled(scores: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
    """Cell means [resample, target, observer]; a cell that a resample leaves without a score has the observed mean."""
    size, n = len(scores), scores.shape[2]
    scored = ~np.isnan(scores)
    flat = np.where(scored, scores, 0.0).reshape(-1, n).T  # [item, cell]
    times = rng.multinomial(n, np.full(n, 1 / n), size=resamples).astype(float)
    counts = np.full(1, float(n)) if scored.all() else times @ scored.reshape(-1, n).T
    observed = flat.sum(axis=0) / scored.reshape(-1, n).sum(axis=1)
    drawn = np.where(counts > 0, (times @ flat) / np.maximum(counts, 1), observed)
    return np.asarray(drawn.reshape(resamples, size, size))


def on_scale(scale: str, means: FloatArray, n: float) -> FloatArray:
    """Cell means on a scale; half a success is added before a logarithm, and a mean below 0 is none."""
    if scale == "as scored":
        return means
    share = (np.clip(means, 0, 1) * n + 0.5) / (n + 1)
    return np.asarray(np.log(share) if scale == "log" else special.logit(share))


def _skill(g: FloatArray) -> FloatArray:
    """How much better an observer i is than j on the targets that are neither, [draw, i, j]."""
    size, own, total = g.shape[-1], np.einsum("dii->di", g), g.sum(axis=1)
    others = total - own
    return np.asarray((others[:, :, None] - g.transpose(0, 2, 1) - others[:, None, :] + g) / (size - 2))


def contrasts(g: FloatArray) -> FloatArray:
    """C [draw, i, j] of means `g  # [draw, target, observer]`; what stands on the diagonal means nothing."""
    return np.asarray(np.einsum("dii->di", g)[:, :, None] - g - _skill(g))


def _p(draws: FloatArray, n: int) -> FloatArray:
    """One-sided p that what was resampled, [draw, …], is above 0, as wide as a t test over n items (Hesterberg)."""
    share = (1 + (draws <= 1e-9).sum(axis=0)) / (1 + len(draws))
    return np.asarray(special.stdtr(n - 1, special.ndtri(share) * math.sqrt((n - 1) / n)))


POWER = 0.8
EFFECT = 0.1
"""The own advantage for which the items are told."""
EFFECTS = np.concatenate([np.arange(0.01, 0.3, 0.01), np.arange(0.3, 1, 0.025)])
SIZES = np.geomspace(1 / 32, 256, 20)
"""Items to try, in units of those that there are."""
DRAWS = 500


@dataclass(frozen=True)
class Power:
    """What this matrix says of one model."""

    detects: float
    """The smallest own advantage with which it is named in 80 % of such matrices; NaN where none would do."""
    items: float
    """The items with which an own advantage of `EFFECT` is named in 80 %; NaN where none of up to 256 times as many
    would do: such an advantage hangs on the scale."""


def powers(x: FloatArray, *, tests: int, rng: np.random.Generator, alpha: float = 0.05) -> tuple[Power, ...]:
    """Of each model of `x  # [target, observer, item]`, NaN where unscored, among `tests` models of all tasks.

    The model is taken to be the only one with access, so that Holm's first step, alpha/tests, is what it must pass.
    """
    n, means = x.shape[2], np.nanmean(x, axis=2)
    noise, skill = resampled(x, rng, DRAWS) - means, skill_alone(means, n)
    if not np.nanmax(np.abs(noise)) > 1e-12:  # every item scored alike: of the noise of other items nothing is known
        return (Power(math.nan, math.nan),) * len(x)
    own, level = np.arange(len(x)), alpha / max(tests, len(x))
    noise[:, own, own] *= np.sqrt(_variance(skill[own, own], n) / _variance(means[own, own], n))
    named = np.stack([_named(skill, noise, n, np.array([EFFECT]), size, level)[0] for size in SIZES])
    at_n = _named(skill, noise, n, EFFECTS, 1.0, level)
    return tuple(
        Power(_crossing(EFFECTS, at_n[:, i]), math.exp(_crossing(np.log(SIZES * n), named[:, i])))
        for i in range(len(means))
    )


def planned(models: int, items: int, *, tests: int, rng: np.random.Generator, share: float = 0.5) -> float:
    """The smallest own advantage that is named in 80 %, before a run: all cells 0/1 with this share, independent."""
    if models < 3 or items < 2:
        return math.nan
    means = np.full((models, models), share)
    noise = rng.normal(0, math.sqrt(share * (1 - share) / items), (DRAWS, models, models))
    level = 0.05 / max(tests, models)
    named = _named(means, noise, items, EFFECTS, 1.0, level)
    return _crossing(EFFECTS, named.mean(axis=1))


def skill_alone(means: FloatArray, n: int) -> FloatArray:
    """Cell means by skill and predictability alone, [target, observer], fitted to `means` off the diagonal."""
    size = len(means)
    target, observer = np.nonzero(~np.eye(size, dtype=bool))
    columns = np.eye(size)
    design = np.hstack([columns[target], columns[observer]])
    fits = []
    for scale in SCALES:
        fitted = np.linalg.lstsq(design, on_scale(scale, means, n)[target, observer], rcond=None)[0]
        back = {"as scored": lambda v: v, "log": np.exp, "logit": special.expit}[scale]
        wrong = float(np.square(back(design @ fitted) - means[target, observer]).sum())
        fits.append((wrong, np.asarray(back(fitted[:size, None] + fitted[size:]))))
    return np.asarray(np.clip(min(fits, key=lambda fit: fit[0])[1], 0, 1))


def _named(skill: FloatArray, noise: FloatArray, n: int, effects: FloatArray, size: float, level: float) -> FloatArray:
    """Share of draws in which a model is named, [effect, model], with `size` times as many items as `n`."""
    items, own = size * n, np.arange(len(skill))
    bar = -float(special.stdtrit(max(items - 1, 1), level))
    drawn = skill + noise / math.sqrt(size)
    alone, against = skill[own, own], {}
    for scale in SCALES:
        g = on_scale(scale, drawn, items)
        against[scale] = g[:, own, own][:, :, None] - contrasts(g)
    out = []
    for effect in effects:
        reached = np.minimum(alone + effect, 1)
        itself = reached + noise[:, own, own] * np.sqrt(_variance(reached, n) / (_variance(alone, n) * size))
        good = itself > bar * _spread(itself)
        for scale in SCALES:
            c = on_scale(scale, itself, items)[:, :, None] - against[scale]
            c[:, own, own] = 1  # no rival of itself
            good &= (c > bar * _spread(c)).all(axis=2)
        out.append(good.mean(axis=0))
    return np.stack(out)


def _variance(share: FloatArray, n: int) -> FloatArray:
    """Of a score around this mean: a right or wrong one's."""
    p = np.clip(share, 0.5 / n, 1 - 0.5 / n)
    return np.asarray(p * (1 - p))


def _spread(c: FloatArray) -> FloatArray:
    """Of draws, [draw, …], downwards, as a standard deviation: logarithms are skewed."""
    low = np.partition(c, DRAWS // 20, axis=0)[DRAWS // 20]
    return np.asarray((c.mean(axis=0) - low) / -special.ndtri(0.05))


def _crossing(at: FloatArray, power: FloatArray) -> float:
    """Where the power reaches `POWER`, between the two points around it; NaN where it does not."""
    above = np.flatnonzero(power >= POWER)
    if not len(above):
        return math.nan
    k = int(above[0])
    if k == 0:
        return float(at[0])
    share = (POWER - power[k - 1]) / (power[k] - power[k - 1])
    return float(at[k - 1] + share * (at[k] - at[k - 1]))
