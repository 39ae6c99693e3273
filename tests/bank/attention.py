"""Worlds of `mechanism read --parts attention`: entropies of four instructions by block and
dilemma.
"""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from lines import Line, Lines, Noise, heavy_tailed, normal, skewed

from selfprobe.mechanism.prompts import ARMS
from selfprobe.stats.claim import Claim
from selfprobe.studies.read_attention import FAIR_SCALE, attention_claim, difference_rows
from selfprobe.studies.read_lens import COMPARED_ARMS

FloatArray = npt.NDArray[np.float64]
BLOCKS = 12
NOISE = 0.03
"""Standard deviation of an entropy about its arm's mean."""


def world(
    sources: list[int],
    shifts: Mapping[str, float],
    *,
    correlation: float = 0.0,
    noise: Noise = normal,
    is_best_block: bool = False,
) -> Callable[[np.random.Generator], Claim]:
    """Entropies of dilemmas of sources under four instructions.

    Args:
        sources: Number of dilemmas of each source.
        shifts: Arm → how much wider it makes the attention.
        correlation: Share of the variance that dilemmas of one source have in common.
        noise: Draws noise of variance 1, [dilemma, arm, block].
        is_best_block: Whether the block is claimed where the introspective prompt is widest, as if
            one had looked.
    """
    labels = np.repeat(np.arange(len(sources)), sources)
    clusters = [f"s{label}" for label in labels]
    arm_names = list(ARMS)

    def claim(rng: np.random.Generator) -> Claim:
        shared = noise(rng, (len(sources), len(ARMS), BLOCKS))[labels]
        own = noise(rng, (len(labels), len(ARMS), BLOCKS))
        entropy = NOISE * (np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own)
        for index, arm in enumerate(arm_names):
            entropy[:, index] += shifts.get(arm, 0.0)
        arms = [entropy[:, index] for index in range(len(arm_names))]
        introspective = arms[arm_names.index("introspective")]
        widest = (introspective - np.mean(arms, axis=0)).mean(axis=0).argmax()
        block = int(widest) if is_best_block else BLOCKS // 2
        rows = {}
        for first, second in COMPARED_ARMS:
            differences = arms[arm_names.index(first)] - arms[arm_names.index(second)]
            row = difference_rows(
                f"{first} − {second}", FAIR_SCALE, differences, range(BLOCKS), clusters
            )[block]
            rows[FAIR_SCALE, row.what] = row
        return attention_claim(rows, block, "m")

    return claim


ALONE = [1] * 24
UNEQUAL = [20, 12, 8, 5, 3, 2, 1, 1]
AS_ANOTHER = {"introspective": 0.05, "other": 0.05}
LINES: Lines = {
    "no instruction widens it": Line(world(ALONE, {})),
    "none does, the widest block is claimed": Line(world(ALONE, {}, is_best_block=True)),
    "as much as irrelevant text": Line(world(ALONE, {"introspective": 0.05, "control": 0.05})),
    "as much as another assistant's": Line(world(ALONE, AS_ANOTHER)),
    "as another's, the widest block is claimed": Line(world(ALONE, AS_ANOTHER, is_best_block=True)),
    "as another's: t with 3 degrees": Line(world(ALONE, AS_ANOTHER, noise=heavy_tailed)),
    "as another's: exponential": Line(world(ALONE, AS_ANOTHER, noise=skewed)),
    "as another's: 3 sources × 8 with shocks": Line(world([8] * 3, AS_ANOTHER, correlation=0.5)),
    "as another's: 12 sources × 4 with shocks": Line(world([4] * 12, AS_ANOTHER, correlation=0.5)),
    "as another's: 8 unequal sources (1 to 20), the widest block": Line(
        world(UNEQUAL, AS_ANOTHER, correlation=0.5, is_best_block=True)
    ),
    "as another's, 8 dilemmas, the widest block": Line(
        world([1] * 8, AS_ANOTHER, is_best_block=True)
    ),
    "narrower": Line(world(ALONE, {"introspective": -0.05})),
    "wider than every control by .04, 24 dilemmas": Line(
        world(ALONE, {"introspective": 0.08, "control": 0.04, "other": 0.04}), True, 0.8
    ),
    "wider by .04, 12 sources × 4 with shocks": Line(
        world([4] * 12, {"introspective": 0.08, "control": 0.04, "other": 0.04}, correlation=0.5),
        True,
        0.5,
    ),
    "wider by .01, 24 dilemmas": Line(
        world(ALONE, {"introspective": 0.03, "control": 0.02, "other": 0.02}), True
    ),
}
