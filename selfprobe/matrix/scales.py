"""Does a model know more of itself than skill explains, on every scale on which skill may act?

Without access a cell is F(skill of the observer, predictability of the target) with some F that rises in both, and
nobody knows F. For model i, a rival j and a scale g the contrast is

    C_ij = [g(x_ii) - g(x_ij)] - mean over the other targets k of [g(x_ki) - g(x_kj)]

F additive on a scale g makes C zero there, and may make it large elsewhere: a model counts only where C is above 0 for
all rivals on all scales (an intersection-union test, which needs no correction over either). Crossing needs no scale
at all (Loftus 1978): i beats every rival on i, and a rival that is the better observer of the others.
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
