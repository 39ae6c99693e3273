"""The bank of nulls and truths: worlds of which it is known what a study should answer.

A line draws one world from a generator and lets the study's own code make its claim.
`bench/claims.py` counts the answers; tests hold that a null is called Yes in at most 5 % of the
draws, and that a truth is found.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from selfprobe.stats.claim import Claim, Verdict

LARGEST_RATE = 0.05
"""Largest rate of a false Yes."""


FloatArray = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]
"""Draws noise of a shape."""


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Noise of variance 1."""
    return rng.normal(size=shape)


def heavy_tailed(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Noise of variance 1 by t with 3 degrees of freedom."""
    return rng.standard_t(3, size=shape) / np.sqrt(3)


def unscaled_t(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Noise of variance 3 by t with 3 degrees of freedom."""
    return rng.standard_t(3, size=shape)


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Exponential noise of variance 1 and mean 0."""
    return rng.exponential(size=shape) - 1


def rounded(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Noise in steps of .25 of which three quarters are exactly 0."""
    values = np.round(rng.normal(size=shape) * 4) / 4
    return np.where(rng.random(shape) < 0.75, 0.0, values)


@dataclass(frozen=True)
class Line:
    """One kind of world."""

    claim: Callable[[np.random.Generator], Claim]
    """Draws a world and makes the study's claim of it."""
    is_true: bool = False
    """Whether the answer should be Yes."""
    least_power: float = 0.0
    """For a truth: the smallest share of Yes that a test holds."""


Lines = Mapping[str, Line]
"""Name of a kind of world → how it is drawn."""


@dataclass(frozen=True)
class Rate:
    """Share of draws with an answer, with its Clopper-Pearson interval."""

    count: int
    draws: int

    @property
    def share(self) -> float:
        """Share of the draws."""
        return self.count / self.draws

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        return (
            float(beta.ppf(0.025, self.count, self.draws - self.count + 1)) if self.count else 0.0
        )

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        if self.count == self.draws:
            return 1.0
        return float(beta.ppf(0.975, self.count + 1, self.draws - self.count))

    def __str__(self) -> str:
        return f"{100 * self.share:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def count_verdicts(line: Line, draws: int, *, first_seed: int = 0) -> Counter[Verdict]:
    """Answers of a line over seeds; the world of a seed is the same in every run."""
    counts: Counter[Verdict] = Counter()
    for seed in range(first_seed, first_seed + draws):
        counts[line.claim(np.random.default_rng(seed)).verdict] += 1
    return counts


def yes_rate(line: Line, draws: int, *, first_seed: int = 0) -> Rate:
    """Share of Yes of a line."""
    counts = count_verdicts(line, draws, first_seed=first_seed)
    return Rate(counts[Verdict.YES], draws)
