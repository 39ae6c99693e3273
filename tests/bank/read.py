"""Worlds of `mechanism read`: how much of each dilemma's shift the other run's patterns bring, and
every control's.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from lines import Line, Lines

from selfprobe.stats.claim import Claim
from selfprobe.stats.estimate import clustered_mean, undefined
from selfprobe.studies.read import (
    PATTERN_CONTROLS,
    SHIFT,
    UNIT,
    PatchRow,
    patch_claim,
    share_of_shift,
)

FloatArray = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], FloatArray]
DRAWS = 5
"""Number of random sets of blocks, and of random heads."""


def normal(rng: np.random.Generator, count: int) -> FloatArray:
    return rng.normal(size=count)


def heavy_tailed(rng: np.random.Generator, count: int) -> FloatArray:
    return rng.standard_t(3, size=count)


def skewed(rng: np.random.Generator, count: int) -> FloatArray:
    return rng.exponential(size=count) - 1


def rounded(rng: np.random.Generator, count: int) -> FloatArray:
    """Noise of which three quarters are exactly 0."""
    return np.where(rng.random(count) < 0.75, 0.0, np.round(rng.normal(size=count) * 4) / 4)


def world(
    share: float,
    *,
    text: float = 0.0,
    random_blocks: float = 0.0,
    shift: float = 1.0,
    dilemmas: int = 30,
    noise: Noise = normal,
) -> Callable[[np.random.Generator], Claim]:
    """A world of dilemmas.

    Args:
        share: Share of the shift that the other run's pattern brings.
        text: Share that the pattern of irrelevant text brings.
        random_blocks: Share that each set of random blocks brings.
        shift: Mean shift of the logit difference, in standard deviations over dilemmas.
        dilemmas: Number of dilemmas.
        noise: Draws noise of variance about 1.
    """
    brought = {"above_irrelevant_text": text, "above_random_blocks": random_blocks}

    def claim(rng: np.random.Generator) -> Claim:
        names = [str(place) for place in range(dilemmas)]
        shifts = shift + noise(rng, dilemmas)
        mean_shift = clustered_mean(shifts, names, unit=UNIT, interval="t")
        nothing = undefined("no share", n=dilemmas, unit=UNIT)

        def change(part: float) -> FloatArray:
            return part * shifts + 0.5 * noise(rng, dilemmas)

        own = change(share)
        rows = [PatchRow(SHIFT, SHIFT, mean_shift, nothing, nothing, "")]
        rows.append(
            PatchRow(
                "own",
                "own",
                mean_shift,
                share_of_shift(own, shifts, mean_shift, names),
                nothing,
                "",
            )
        )
        for control in PATTERN_CONTROLS:
            for place in range(DRAWS if "random" in control.check else 1):
                other = change(brought.get(control.check, 0.0))
                its_share = share_of_shift(other, shifts, mean_shift, names)
                over = share_of_shift(own - other, shifts, mean_shift, names)
                rows.append(
                    PatchRow(
                        f"{control.label} {place}", control.group, mean_shift, its_share, over, ""
                    )
                )
        return patch_claim(rows, "m")

    return claim


LINES: Lines = {
    "the patterns bring nothing": Line(world(0.0)),
    "no shift": Line(world(0.5, shift=0.0)),
    "irrelevant text brings as much, normal": Line(world(0.5, text=0.5)),
    "the same, t with 3 degrees": Line(world(0.5, text=0.5, noise=heavy_tailed)),
    "the same, exponential": Line(world(0.5, text=0.5, noise=skewed)),
    "the same, three quarters exactly 0": Line(world(0.5, text=0.5, noise=rounded)),
    "the same, 8 dilemmas": Line(world(0.5, text=0.5, dilemmas=8)),
    "each of five sets of random blocks brings as much": Line(world(0.5, random_blocks=0.5)),
    "5 dilemmas": Line(world(0.5, dilemmas=5)),
    "the patterns bring half of the shift, 30 dilemmas": Line(world(0.5), True, 0.6),
    "the patterns bring half of the shift, 60 dilemmas": Line(world(0.5, dilemmas=60), True, 0.8),
}
