"""Worlds of `mechanism read --parts lens`: logit differences of four instructions by block and
dilemma.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
from lines import Line, Lines, Noise, heavy_tailed, normal, rounded, skewed

from selfprobe.mechanism.prompts import ARMS
from selfprobe.page.columns import rows_of_frame
from selfprobe.stats.claim import Claim
from selfprobe.studies.read_lens import (
    LensRow,
    PartingRow,
    lens_claim,
    lens_table,
    partings,
    partings_by_comparison,
)

FloatArray = npt.NDArray[np.float64]
BLOCKS = 8
NOISE = 0.3
"""Standard deviation of a logit about its arm's mean."""


def growing(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """What each block adds is kept by those after it."""
    return np.asarray(rng.normal(size=shape).cumsum(axis=-1) / 2)


def world(
    sources: list[int],
    shifts: Mapping[str, float] | None = None,
    *,
    correlation: float = 0.0,
    noise: Noise = normal,
    spread: float = 0.0,
    drifts: bool = False,
    last_block: int = BLOCKS,
) -> Callable[[np.random.Generator], Claim]:
    """Dilemmas of sources, and what their instructions do from the middle block on.

    Args:
        sources: Number of dilemmas of each source.
        shifts: Arm → how much it shifts the logit.
        correlation: Share of the variance that dilemmas of one source have in common.
        noise: Draws noise of variance 1, [dilemma, arm, block].
        spread: Standard deviation over sources of what each arm does.
        drifts: Whether the introspective prompt drifts in the first dilemma.
        last_block: Last block with what instructions do; after it they do nothing.
    """
    labels = np.repeat(np.arange(len(sources)), sources)
    blocks = np.arange(BLOCKS)
    late = ((blocks >= BLOCKS // 2) & (blocks <= last_block)).astype(float)

    def claim(rng: np.random.Generator) -> Claim:
        shared = noise(rng, (len(sources), len(ARMS), BLOCKS))[labels]
        own = noise(rng, (len(labels), len(ARMS), BLOCKS))
        lens = NOISE * (np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own)
        lens += spread * rng.normal(size=(len(sources), len(ARMS), 1))[labels] * late
        for index, arm in enumerate(ARMS):
            lens[:, index] += (shifts or {}).get(arm, 0.0) * late
        if drifts:
            lens[0, list(ARMS).index("introspective")] += np.arange(BLOCKS)
        readings = {f"d{k:03d}": SimpleNamespace(lens=row) for k, row in enumerate(lens)}
        clusters = [f"s{label}" for label in labels]
        lens_frame = lens_table(readings, range(BLOCKS), clusters)  # type: ignore[arg-type]
        parting_frame = partings(readings, range(BLOCKS), clusters)  # type: ignore[arg-type]
        parting_rows = rows_of_frame(PartingRow, parting_frame, unit="dilemma")
        lens_rows = rows_of_frame(LensRow, lens_frame, unit="dilemma")
        return lens_claim(partings_by_comparison(parting_rows, lens_rows), lens_rows, "m")

    return claim


ALONE = [1] * 24
UNEQUAL = [20, 12, 8, 5, 3, 2, 1, 1]
ALL_ALIKE = {"introspective": 1.0, "control": 1.0, "other": 1.0}
LINES: Lines = {
    "no instruction does anything, 24 dilemmas": Line(world(ALONE)),
    "none does: 3 sources × 8 with shocks": Line(world([8] * 3, correlation=0.5, spread=0.5)),
    "every instruction moves it alike, 24 dilemmas": Line(world(ALONE, ALL_ALIKE)),
    "alike: t with 3 degrees": Line(world(ALONE, ALL_ALIKE, noise=heavy_tailed)),
    "alike: exponential": Line(world(ALONE, ALL_ALIKE, noise=skewed)),
    "alike: three quarters exactly 0": Line(world(ALONE, ALL_ALIKE, noise=rounded)),
    "alike: what a block adds is kept": Line(world(ALONE, ALL_ALIKE, noise=growing)),
    "alike: 12 sources × 4 with shocks": Line(
        world([4] * 12, ALL_ALIKE, correlation=0.5, spread=0.3)
    ),
    "alike: 8 unequal sources (1 to 20)": Line(
        world(UNEQUAL, ALL_ALIKE, correlation=0.5, spread=0.3)
    ),
    "as much as irrelevant text": Line(world(ALONE, {"introspective": 1.0, "control": 1.0})),
    "as much as another assistant's, 24 dilemmas": Line(
        world(ALONE, {"introspective": 1.0, "other": 1.0})
    ),
    "as another's: what a block adds is kept": Line(
        world(ALONE, {"introspective": 1.0, "other": 1.0}, noise=growing)
    ),
    "as another's: 12 sources × 4 with shocks": Line(
        world([4] * 12, {"introspective": 1.0, "other": 1.0}, correlation=0.5, spread=0.3)
    ),
    "as another's, and one dilemma drifts": Line(
        world(ALONE, {"introspective": 1.0, "other": 1.0}, drifts=True)
    ),
    "beyond both at blocks 4 and 5 alone, 24 dilemmas": Line(
        world(ALONE, {"introspective": 1.0}, last_block=5)
    ),
    "beyond both at blocks 4 to 6 alone, 60 dilemmas": Line(
        world([1] * 60, {"introspective": 1.0, "control": 0.1, "other": 0.3}, last_block=6)
    ),
    "as another's, 8 dilemmas": Line(world([1] * 8, {"introspective": 1.0, "other": 1.0})),
    "beyond both controls by 1 sd, 24 dilemmas": Line(
        world(ALONE, {"introspective": 0.6, "control": 0.1, "other": 0.3}), True, 0.9
    ),
    "beyond both by 1 sd, 12 sources × 4 with shocks": Line(
        world([4] * 12, {"introspective": 0.6, "control": 0.1, "other": 0.3}, correlation=0.5),
        True,
        0.6,
    ),
    "beyond both by .1 (a third of a sd), 24 dilemmas": Line(
        world(ALONE, {"introspective": 0.3, "control": 0.1, "other": 0.2}), True
    ),
}
