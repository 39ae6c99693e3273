"""Worlds of `awareness inside`: what is read of a model at each conversation, what texts tell, and
what a probe learns.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
from lines import Line, Lines, Noise, normal, rounded, skewed, unscaled_t

from selfprobe.stats.claim import Claim, Verdict, ordered_claims
from selfprobe.stats.clustered import clustered_auroc
from selfprobe.stats.estimate import Estimate, auroc_table, clustered_mean
from selfprobe.studies.inside_claims import (
    Baseline,
    ModelReading,
    ProbeNumbers,
    ReadingEvidence,
    reading_claim,
)
from selfprobe.studies.inside_numbers import (
    Clusters,
    Grid,
    choose_probe,
    null_p_value,
    null_scores,
    over_baselines,
    paired_lead,
    with_better_sign,
)

FloatArray = npt.NDArray[np.float64]
WRAPPERS = 9
SHUFFLES = 40


@dataclass(frozen=True)
class World:
    """Conversations of a set, and how far each reading tells their labels, in standard deviations
    of its noise.
    """

    reading: ModelReading = ModelReading.LATENT
    sizes: tuple[int, ...] = (4,) * 30
    """Conversations of each source."""
    shared: float = 0.0
    """Share of the variance that conversations of one source have in common."""
    shared_labels: bool = False
    """Whether most conversations of a source have one label."""
    knows: float = 0.0
    length: float = 0.0
    by_length: float = 0.0
    """How far a reading goes by the length of the text."""
    by_format: float = 0.0
    """How far a reading goes by the format, which goes with the label in 80 %."""
    texts: float = 0.0
    by_texts: float = 0.0
    """How far a reading goes by what an encoder holds that reads the text alone."""
    placebo: float = 0.0
    """How far the answer to the placebo tells the label."""
    untrained: float = 0.0
    answer_mass: float = 0.9
    layers: int = 24
    trained: float = 0.0
    """How far the announcements of the wrappers lie apart at each layer."""
    noise: Noise = normal


def evidence_of(given: World, rng: np.random.Generator) -> ReadingEvidence:
    """Evidence of a world, by the study's own statistics."""
    sources = np.repeat(np.arange(len(given.sizes)), given.sizes)
    count = len(sources)
    truth = rng.random(count) < 0.5
    if given.shared_labels:
        leans = rng.random(len(given.sizes)) < 0.5
        truth = np.where(rng.random(count) < 0.8, leans[sources], truth)
    sign = np.where(truth, 1.0, -1.0)
    follows = 0.8 if given.by_format else 0.5
    is_benchmark = np.where(rng.random(count) < follows, truth, ~truth)
    clusters = Clusters(sources.astype(str), "source")

    def values(knows: float) -> FloatArray:
        own = given.noise(rng, (count,))
        common = given.noise(rng, (len(given.sizes),))[sources]
        return np.asarray(
            knows * sign + np.sqrt(1 - given.shared) * own + np.sqrt(given.shared) * common
        )

    length = values(given.length)
    texts = values(given.texts)
    scores = (
        values(given.knows)
        + given.by_length * length
        + given.by_texts * texts
        + given.by_format * np.where(is_benchmark, 1.0, -1.0)
    )
    baselines = {
        Baseline.LENGTH.value: length,
        Baseline.WRAPPER_WORDS.value: values(0.0),
        Baseline.WORDS_ELSEWHERE.value: values(0.0),
        Baseline.SENTENCE_EMBEDDINGS.value: texts,
        Baseline.UNTRAINED.value: values(given.untrained),
    }
    formats = np.where(is_benchmark, "benchmark", "natural")
    evidence = ReadingEvidence(
        given.reading,
        over_baselines(scores, truth, baselines, formats, clusters),
        {
            name: clustered_auroc(truth, baseline, clusters.ids).estimate
            for name, baseline in baselines.items()
        },
    )
    if given.reading is ModelReading.LATENT:
        after_placebo = clustered_auroc(truth, values(given.knows), clusters.ids).estimate
        return replace(evidence, probe=trained_probe(given, after_placebo, rng))
    auroc, lead = paired_lead(
        truth, scores, with_better_sign(truth, values(given.placebo)), clusters
    )
    evidence = replace(evidence, placebo=auroc, over_placebo=lead)
    if given.reading is ModelReading.ALMOST:
        return evidence
    mass = np.clip(given.answer_mass + 0.05 * rng.normal(size=count), 0, 1)
    return replace(evidence, answer_mass=clustered_mean(mass, clusters.ids, unit="source"))


def trained_probe(given: World, after_placebo: Estimate, rng: np.random.Generator) -> ProbeNumbers:
    """A probe whose layer is the best of many on its wrappers, against labels that are turned by
    wrapper.
    """
    wrapper = np.repeat(np.arange(WRAPPERS), 8)
    labels = np.tile([True, False], 4 * WRAPPERS)
    sign = np.where(labels, 1.0, -1.0)
    own_directions = rng.normal(size=(given.layers, WRAPPERS))[:, wrapper]
    states = (given.trained + own_directions) * sign + rng.normal(size=(given.layers, len(labels)))
    turned = labels ^ (rng.random((SHUFFLES, WRAPPERS)) < 0.5)[:, wrapper]
    reached = auroc_table(np.vstack([labels[None], turned]), states)
    best = reached.max(axis=0)

    def left_out() -> Estimate:
        tested = (given.trained + rng.normal(size=WRAPPERS)[wrapper]) * sign + rng.normal(
            size=len(labels)
        )
        return clustered_auroc(labels, tested, wrapper, unit="wrapper").estimate

    return ProbeNumbers(
        across_wrappers=left_out(),
        across_formats=left_out(),
        across_sources=left_out(),
        after_placebo=after_placebo,
        train_score=float(best[0]),
        shuffled=best[1:],
        shuffled_p=null_p_value(float(best[0]), best[1:]),
        random_directions=np.clip(0.5 + 0.08 * rng.normal(size=200), 0, 1),
    )


def world(given: World) -> Callable[[np.random.Generator], Claim]:
    return lambda rng: reading_claim(evidence_of(given, rng))


def strongest_of_four(given: World) -> Callable[[np.random.Generator], Claim]:
    """The claim that the page's answer begins with."""

    def claim(rng: np.random.Generator) -> Claim:
        worlds = [replace(given, reading=reading) for reading in ModelReading]
        return ordered_claims([reading_claim(evidence_of(one, rng)) for one in worlds])[0]

    return claim


def whole_choice(rng: np.random.Generator, *, sources: int) -> Claim:
    """A real probe of states without a label in them: layer, penalty and kind are chosen, and again
    for each null.
    """
    rows = [
        (name, text, side)
        for name in range(WRAPPERS)
        for text in range(4)
        for side in (True, False)
    ]
    wrapper, text = (np.array([row[place] for row in rows]) for place in (0, 1))
    labels = np.array([row[2] for row in rows])
    sign = np.where(labels, 1.0, -1.0)[:, None]
    states = rng.normal(size=(3, len(rows), 6)) + rng.normal(size=(WRAPPERS, 6))[wrapper] * sign
    looks = np.where(text % 2, "benchmark", "natural")
    grid = Grid(
        states, labels, wrapper.astype(str), text.astype(str), text.astype(str), looks, (4, 5, 6)
    )
    chosen = choose_probe(grid.states, grid.evaluation, grid.wrapper, grid.layers)
    given = World(sizes=(120 // sources,) * sources, trained=4.0)
    evidence = evidence_of(given, rng)
    learnt = evidence.probe
    assert learnt is not None
    of = np.repeat(np.arange(sources), 120 // sources)
    truth = rng.random(120) < 0.5
    tested = rng.normal(size=(3, 120, 6)) + rng.normal(size=(sources, 6))[of]
    clusters = Clusters(of.astype(str), "source")
    baselines = {baseline.value: rng.normal(size=120) for baseline in Baseline}
    formats = np.where(rng.random(120) < 0.5, "benchmark", "natural")
    numbers = over_baselines(chosen.score(tested), truth, baselines, formats, clusters)
    evidence = replace(evidence, numbers=numbers)
    if reading_claim(evidence).verdict is not Verdict.YES:
        return reading_claim(evidence)  # whatever the null of the choice is
    drawn = null_scores(grid, 24, rng)
    probe = replace(
        learnt, shuffled=drawn, shuffled_p=null_p_value(chosen.probe.train_score, drawn)
    )
    return reading_claim(replace(evidence, probe=probe))


UNEQUAL = (20, 16, 12, 10, 8, 6, 5, 4, 3, 3, 2, 2, *(1,) * 12)
KNOWN = World(trained=2.0)
"""A probe that has learnt what its wrappers share: what is open is whether the set's labels are
told.
"""
SAYS = World(reading=ModelReading.YES_OR_NO)
LINES: Lines = {
    "states without a label, the whole choice of a real probe": Line(
        partial(whole_choice, sources=30)
    ),
    "labels at random, the best of 24 layers": Line(world(World())),
    "labels at random, a probe that has learnt its wrappers": Line(world(KNOWN)),
    "the same, 3 sources × 40 with shared shocks": Line(
        world(replace(KNOWN, sizes=(40,) * 3, shared=0.5, shared_labels=True))
    ),
    "the same, 6 sources × 20 with shared shocks": Line(
        world(replace(KNOWN, sizes=(20,) * 6, shared=0.5, shared_labels=True))
    ),
    "the same, 24 unequal sources (1 to 20)": Line(
        world(replace(KNOWN, sizes=UNEQUAL, shared=0.5, shared_labels=True))
    ),
    "a reader of the length of the texts": Line(world(replace(KNOWN, length=0.8, by_length=2.0))),
    "a reader of the texts alone, as a small encoder reads them": Line(
        world(replace(KNOWN, texts=0.8, by_texts=2.0))
    ),
    "a reader of the format": Line(world(replace(KNOWN, by_format=2.0))),
    "an untrained copy tells as much": Line(world(replace(KNOWN, knows=0.8, untrained=0.8))),
    "the same, t with 3 degrees": Line(
        world(replace(KNOWN, knows=0.8, untrained=0.8, noise=unscaled_t))
    ),
    "the same, exponential": Line(world(replace(KNOWN, knows=0.8, untrained=0.8, noise=skewed))),
    "the same, three quarters exactly 0": Line(
        world(replace(KNOWN, knows=0.5, untrained=0.5, noise=rounded))
    ),
    "each wrapper has a direction of its own, and the set is told": Line(world(World(knows=1.0))),
    "it answers in 3 % of the probability, and these tell": Line(
        world(replace(SAYS, knows=1.0, answer_mass=0.03))
    ),
    "the placebo's answer tells as much": Line(world(replace(SAYS, knows=0.8, placebo=0.8))),
    "the placebo's sentences tell as much, the other way": Line(
        world(replace(SAYS, reading=ModelReading.ALMOST, knows=0.8, placebo=-0.8))
    ),
    "labels at random, any of the four readings": Line(strongest_of_four(KNOWN)),
    "the probe tells by 1 sd": Line(world(replace(KNOWN, knows=1.0)), True, 0.7),
    "the answers tell by 1 sd": Line(world(replace(SAYS, knows=1.0)), True, 0.7),
    "the answers tell by .5 sd": Line(world(replace(SAYS, knows=0.5)), True),
}
