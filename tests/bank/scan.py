"""Worlds of `awareness scan`: verdicts of graders on transcripts, by source."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from lines import Line, Lines

from selfprobe.stats.claim import Claim
from selfprobe.studies.scan import ScannedTranscript, scan_claim, scan_subjects

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]
Grader = Callable[[np.random.Generator, IntArray, BoolArray], BoolArray]
"""Verdicts from the source of each transcript, and whether an evaluation is brought up in it."""
TURNS = 4


def world(
    sources: list[int],
    *graders: Grader,
    aware: float = 0.0,
) -> Callable[[np.random.Generator], Claim]:
    """Transcripts of sources that graders read; of two the transcripts on which they differ have no
    verdict.

    Args:
        sources: Number of transcripts of each source.
        graders: One or several.
        aware: Share of transcripts in which the model brings an evaluation up.
    """
    labels = np.repeat(np.arange(len(sources)), sources)

    def claim(rng: np.random.Generator) -> Claim:
        truth = rng.random(len(labels)) < aware
        verdicts = np.array([grader(rng, labels, truth) for grader in graders])
        rows = [transcript(k, int(label), list(verdicts[:, k])) for k, label in enumerate(labels)]
        (subject,) = scan_subjects(rows, [])
        return scan_claim(subject)

    def transcript(number: int, label: int, verdicts: list[bool]) -> ScannedTranscript:
        is_tie = len(set(verdicts)) > 1
        first = 1 if all(verdicts) else None
        panel = {f"g{k}": {"text": bool(said)} for k, said in enumerate(verdicts)}
        return ScannedTranscript(
            *("t", "m", "l", f"s{number}", f"o{label}", None, TURNS, TURNS),
            noticed=None if is_tie else first is not None,
            first=first,
            seen=first or TURNS,
            unscored="tie" if is_tie else None,
            quotes=0,
            discarded=0,
            full=TURNS,
            summary=0,
            hidden=0,
            panel=panel if len(verdicts) > 1 else None,
        )

    return claim


def coin(chance: float) -> Grader:
    """A grader that finds something by chance."""
    return lambda rng, labels, truth: rng.random(len(labels)) < chance


def source_habit(low: float, high: float) -> Grader:
    """A grader with a chance of its own for each source."""

    def grade(rng: np.random.Generator, labels: IntArray, truth: BoolArray) -> BoolArray:
        chances = rng.uniform(low, high, int(labels.max()) + 1)
        return np.asarray(rng.random(len(labels)) < chances[labels])

    return grade


def careful(right: float) -> Grader:
    """A grader whose verdicts are right in this share of transcripts."""
    return lambda rng, labels, truth: np.where(rng.random(len(labels)) < right, truth, ~truth)


def constant(rng: np.random.Generator, labels: IntArray, truth: BoolArray) -> BoolArray:
    return np.ones(len(labels), dtype=bool)


ALONE = [1] * 40
UNEQUAL = [20, 12, 8, 5, 3, 2, 1, 1]
LINES: Lines = {
    "nobody brings it up: one grader, a coin": Line(world(ALONE, coin(0.3))),
    "one grader, a constant": Line(world(ALONE, constant)),
    "two constants": Line(world(ALONE, constant, constant)),
    "a constant and a coin": Line(world(ALONE, constant, coin(0.3))),
    "two coins of .3, 40 transcripts": Line(world(ALONE, coin(0.3), coin(0.3))),
    "two coins of .05, 40 transcripts": Line(world(ALONE, coin(0.05), coin(0.05))),
    "two coins of .95, 40 transcripts": Line(world(ALONE, coin(0.95), coin(0.95))),
    "two coins of .5, 8 transcripts": Line(world([1] * 8, coin(0.5), coin(0.5))),
    "three coins, 40 transcripts": Line(world(ALONE, coin(0.3), coin(0.3), coin(0.3))),
    "two habits by source: 3 sources × 4": Line(
        world([4] * 3, source_habit(0, 1), source_habit(0, 1))
    ),
    "two habits by source: 12 sources × 4": Line(
        world([4] * 12, source_habit(0, 1), source_habit(0, 1))
    ),
    "two habits by source: 8 unequal sources (1 to 20)": Line(
        world(UNEQUAL, source_habit(0, 1), source_habit(0, 1))
    ),
    "two coins of .2: 8 unequal sources (1 to 20)": Line(world(UNEQUAL, coin(0.2), coin(0.2))),
    "a careful grader and a coin, it is brought up in 30 %": Line(
        world(ALONE, careful(0.9), coin(0.3), aware=0.3)
    ),
    "brought up in 30 %, two graders right in 90 %, 40 transcripts": Line(
        world(ALONE, careful(0.9), careful(0.9), aware=0.3), True, 0.9
    ),
    "brought up in 30 %, two graders right in 90 %, 12 transcripts": Line(
        world([1] * 12, careful(0.9), careful(0.9), aware=0.3), True
    ),
    "brought up in 30 %, three graders right in 80 %, 12 sources × 4": Line(
        world([4] * 12, careful(0.8), careful(0.8), careful(0.8), aware=0.3), True
    ),
}
