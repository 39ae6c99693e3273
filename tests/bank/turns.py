"""Worlds of `awareness turns`: curves of P(evaluation) over eight turns, by source."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from lines import Line, Lines, Noise, heavy_tailed, normal, rounded, skewed

from selfprobe.stats.claim import Claim
from selfprobe.studies.turns import TurnAnswer, turn_claim, turn_curve

FloatArray = npt.NDArray[np.float64]
TURNS = np.arange(1, 9)
NOISE = 0.2
"""Standard deviation of an answer about its curve."""


def random_walk(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return np.asarray(rng.normal(size=shape).cumsum(axis=1) / 2)


def world(
    sources: list[int],
    *,
    correlation: float = 0.0,
    change: Callable[[FloatArray], FloatArray] | None = None,
    noise: Noise = normal,
    drifts: bool = False,
    is_paired: bool = False,
) -> Callable[[np.random.Generator], Claim]:
    """A world of transcripts.

    Args:
        sources: Number of transcripts of each source.
        correlation: Share of the variance that transcripts of one source have in common.
        change: Function from turns to what is added to P(evaluation) of every transcript.
        noise: Draws noise of variance 1, [curve, turn].
        drifts: Whether the first curve drifts.
        is_paired: Whether curves are differences of pairs, an evaluation less real use.
    """
    labels = np.repeat(np.arange(len(sources)), sources)

    def claim(rng: np.random.Generator) -> Claim:
        shared = noise(rng, (len(sources), len(TURNS)))[labels]
        own = noise(rng, (len(labels), len(TURNS)))
        curves = NOISE * (np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own)
        if change is not None:
            curves = curves + change(TURNS.astype(float))
        if drifts:
            curves[0] += 0.1 * TURNS
        answers = [
            answer
            for row, curve in enumerate(curves)
            for answer in answers_of(row, labels[row], curve)
        ]
        return turn_claim(turn_curve(answers, "m", rng=rng), "m")

    def answers_of(row: int, label: int, curve: FloatArray) -> list[TurnAnswer]:
        kinds = (
            {"evaluation": curve, "deployment": np.zeros(len(TURNS))}
            if is_paired
            else {None: 0.5 + curve}
        )
        return [
            TurnAnswer("m", f"{row}{kind}", kind, f"s{label}", str(row), int(turn), float(p), 0.5)
            for kind, values in kinds.items()
            for turn, p in zip(TURNS, values, strict=True)
        ]

    return claim


def slope(size: float) -> Callable[[FloatArray], FloatArray]:
    return lambda turns: size * (turns - 1)


def ramp(first: float, last: float, size: float) -> Callable[[FloatArray], FloatArray]:
    return lambda turns: size * np.clip((turns - first) / (last - first), 0, 1)


def step(at: float, size: float) -> Callable[[FloatArray], FloatArray]:
    return lambda turns: size * (turns >= at)


def between(first: int, last: int, size: float) -> Callable[[FloatArray], FloatArray]:
    return lambda turns: size * ((turns >= first) & (turns <= last))


def saturating(size: float) -> Callable[[FloatArray], FloatArray]:
    return lambda turns: size * (1 - np.exp(-(turns - 1) / 2))


LINES: Lines = {
    "no change: 3 sources × 4 with shared shocks": Line(world([4] * 3, correlation=0.5)),
    "no change: 20 sources × 3, correlation .4": Line(world([3] * 20, correlation=0.4)),
    "no change: 6 sources × 10, correlation .4": Line(world([10] * 6, correlation=0.4)),
    "no change: 8 unequal sources (1 to 20)": Line(
        world([20, 12, 8, 5, 3, 2, 1, 1], correlation=0.3)
    ),
    "no change: 12 transcripts, t with 3 degrees": Line(world([1] * 12, noise=heavy_tailed)),
    "no change: 12 transcripts, exponential": Line(world([1] * 12, noise=skewed)),
    "no change: 12 transcripts, three quarters exactly 0": Line(world([1] * 12, noise=rounded)),
    "no change: 12 random walks": Line(world([1] * 12, noise=random_walk)),
    "no change: one curve of 12 drifts": Line(world([1] * 12, drifts=True)),
    "no change: 12 sources × 2 pairs": Line(world([2] * 12, correlation=0.3, is_paired=True)),
    "a slope of .1 sd a turn, 24 transcripts": Line(world([1] * 24, change=slope(0.02))),
    "a slope of .3 sd a turn, 12 transcripts": Line(world([1] * 12, change=slope(0.06))),
    "a slope of .3 sd a turn, 24 pairs": Line(world([1] * 24, change=slope(0.06), is_paired=True)),
    "a ramp over turns 3 to 7, 24 transcripts": Line(world([1] * 24, change=ramp(3, 7, 0.4))),
    "a ramp over turns 3 to 6, 24 transcripts": Line(world([1] * 24, change=ramp(3, 6, 0.4))),
    "a saturating rise, 24 transcripts": Line(world([1] * 24, change=saturating(0.4))),
    "a fall of 2 sd at turn 4": Line(world([1] * 24, change=step(4, -0.4))),
    "a dip at turns 2 to 4 that recovers": Line(world([1] * 24, change=between(2, 4, -0.4))),
    "a dip at turn 3 that recovers": Line(world([1] * 24, change=between(3, 3, -0.4))),
    "a dip at turns 4 and 5 that recovers": Line(world([1] * 24, change=between(4, 5, -0.4))),
    "a rise at turns 4 and 5 that is gone": Line(world([1] * 60, change=between(4, 5, 0.4))),
    "a rise at turns 4 to 6 that is gone": Line(world([1] * 24, change=between(4, 6, 0.4))),
    "a dip at turns 2 and 3 that recovers": Line(world([1] * 24, change=between(2, 3, -0.4))),
    "a step of 2 sd at turn 4, 12 transcripts": Line(
        world([1] * 12, change=step(4, 0.4)), True, 0.7
    ),
    "a step of 2 sd at turn 4, 12 sources × 2": Line(
        world([2] * 12, correlation=0.3, change=step(4, 0.4)), True, 0.9
    ),
    "a step of 2 sd at turn 4, 24 pairs": Line(
        world([1] * 24, change=step(4, 0.4), is_paired=True), True, 0.9
    ),
    "a step of .1 (half a sd) at turn 4, 24 sources": Line(
        world([1] * 24, change=step(4, 0.1)), True
    ),
}
