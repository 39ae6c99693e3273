"""Worlds of `probe run`: what the layers of a model hold of pairs, what it answers when asked, and
what texts tell.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
from lines import Line, Lines, Noise, normal, rounded, skewed, unscaled_t

from selfprobe.probes.evaluate import estimate, selection_floor
from selfprobe.probes.fit import halves
from selfprobe.stats.claim import Claim
from selfprobe.stats.estimate import auroc_table, clustered_mean
from selfprobe.studies.probe_claims import (
    CONTROLS,
    Lead,
    ProbeEvidence,
    ShuffledLabels,
    probe_claim,
)

FloatArray = npt.NDArray[np.float64]
SEEDS = 3
RESAMPLES = 100


@dataclass(frozen=True)
class World:
    """What each of the readers of a pair knows of its label, in standard deviations of its noise."""

    sizes: tuple[int, ...] = (2,) * 60
    """Pairs of each question."""
    layers: int = 12
    probe: float = 0.0
    asking: float = 0.0
    length: float = 0.0
    reads_length: bool = False
    """Whether the states hold the length of the texts, and nothing else of the label."""
    texts: float = 0.0
    """How far an encoder that reads each text alone tells the label."""
    reads_texts: bool = False
    """Whether the states hold what that encoder holds, and nothing else of the label."""
    shared: float = 0.0
    """Share of the variance that pairs of one question have in common."""
    shared_labels: bool = False
    """Whether most pairs of a question have one label."""
    answer_mass: float = 0.9
    noise: Noise = normal


def world(given: World) -> Callable[[np.random.Generator], Claim]:
    """A world whose claim is made by the run's own code."""

    def claim(rng: np.random.Generator) -> Claim:
        groups = np.repeat(np.arange(len(given.sizes)), given.sizes)
        truth = rng.random(len(groups)) < 0.5
        if given.shared_labels:
            leans = rng.random(len(given.sizes)) < 0.5
            truth = np.where(rng.random(len(groups)) < 0.8, leans[groups], truth)
        sign = np.where(truth, 1.0, -1.0)

        def values(knows: float, layers: int = 1) -> FloatArray:
            own = given.noise(rng, (layers, len(groups)))
            common = given.noise(rng, (layers, len(given.sizes)))[:, groups]
            return np.asarray(
                knows * sign + np.sqrt(1 - given.shared) * own + np.sqrt(given.shared) * common
            )

        splits = [halves(groups, seed) for seed in range(SEEDS)]
        learnt = np.zeros((SEEDS, len(groups)), dtype=bool)
        for row, (train, _) in zip(learnt, splits, strict=True):
            row[train] = True

        def tested(layers: FloatArray) -> tuple[FloatArray, FloatArray]:
            """Scores [seed, layer, pair] with the sign of the training half, and [seed, pair] of
            its best layer.
            """
            every = np.full((SEEDS, len(layers), len(groups)), np.nan)
            best = np.full((SEEDS, len(groups)), np.nan)
            for seed, (train, test) in enumerate(splits):
                with np.errstate(invalid="ignore"):  # a source may hold one label
                    reached = np.nan_to_num(
                        auroc_table(truth[None, train], layers[:, train])[:, 0], nan=0.5
                    )
                every[seed][:, test] = (
                    np.where(reached >= 0.5, 1.0, -1.0)[:, None] * layers[:, test]
                )
                best[seed] = every[seed, np.abs(reached - 0.5).argmax()]
            return every, best

        length = values(given.length)
        states = values(given.probe, given.layers)
        if given.reads_length:
            states = states + length
        texts = values(given.texts)
        if given.reads_texts:
            states = states + texts
        every, probe = tested(states)
        asked = np.where(learnt, np.nan, values(given.asking))
        controls = {
            "above_asking": asked,
            "above_calibrated_asking": asked,
            "above_length": tested(length)[1],
            "above_words": tested(values(0.0))[1],
            "above_sentence_embeddings": tested(texts)[1],
            "above_random_direction": tested(values(0.0))[1],
            "above_random_weights": tested(values(0.0, given.layers))[1],
        }
        auroc = partial(
            estimate,
            first_better=truth,
            groups=groups,
            metric="auroc",
            resamples=RESAMPLES,
            learnt=learnt,
        )
        leads = {
            control.check: Lead(0.5, auroc(probe, subtracted_scores=controls[control.check]))
            for control in CONTROLS
            if control.check in controls
        }
        score = auroc(probe)
        floor = selection_floor(
            every,
            truth,
            groups,
            both_signs=False,
            metric="auroc",
            shuffles=40,
            rng=rng,
            reached=score.value,
        )
        mass = np.clip(given.answer_mass + 0.05 * rng.normal(size=len(groups)), 0, 1)
        evidence = ProbeEvidence(
            subject="m",
            kind="supervised",
            metric="AUROC",
            score=score,
            leads=leads,
            answer_mass=clustered_mean(mass, groups, unit="question"),
            shuffled=ShuffledLabels(
                floor.mean, floor.high, score.value - floor.mean, floor.p_value, floor.n
            ),
        )
        return probe_claim(evidence)

    return claim


UNEQUAL = (40, 20, 12, 8, 6, 5, 4, 3, 2, 2, *(1,) * 18)
EQUAL = World(probe=0.6, asking=0.6, layers=1)
"""Its answers know as much as its states."""
LINES: Lines = {
    "labels at random, 12 layers": Line(world(World())),
    "labels at random, the best of 48 layers": Line(world(World(layers=48))),
    "labels at random, 3 sources × 40 with shared shocks": Line(
        world(World(sizes=(40,) * 3, shared=0.5, shared_labels=True))
    ),
    "a reader of the length of the texts": Line(world(World(length=0.8, reads_length=True))),
    "a reader of the texts alone, as a small encoder reads them": Line(
        world(World(texts=0.8, reads_texts=True))
    ),
    "asked, it answers with 1 or 2 in 3 %, and its states know": Line(
        world(World(probe=1.0, answer_mass=0.03))
    ),
    "its answers know as much as its states, normal": Line(world(EQUAL)),
    "its answers know as much, t with 3 degrees": Line(world(replace(EQUAL, noise=unscaled_t))),
    "its answers know as much, exponential": Line(world(replace(EQUAL, noise=skewed))),
    "its answers know as much, three quarters exactly 0": Line(
        world(replace(EQUAL, noise=rounded))
    ),
    "its answers know as much, 28 unequal questions (1 to 40)": Line(
        world(replace(EQUAL, sizes=UNEQUAL, shared=0.5))
    ),
    "its answers know as much, 3 sources × 40 with shared shocks": Line(
        world(replace(EQUAL, sizes=(40,) * 3, shared=0.5, shared_labels=True))
    ),
    "its answers know as much, 6 sources × 20 with shared shocks": Line(
        world(replace(EQUAL, sizes=(20,) * 6, shared=0.5, shared_labels=True))
    ),
    "at the ceiling: both know all": Line(world(World(probe=4.0, asking=4.0))),
    "states know by 1 sd, answers by .2": Line(world(World(probe=1.0, asking=0.2)), True, 0.9),
    "states know by .6 sd, answers by .2": Line(world(World(probe=0.6, asking=0.2)), True, 0.4),
}
