"""Both probes at one layer on one training half: what `evaluate.fit_all` asks for, here or in other processes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from selfprobe.probes.fit import (
    BoolArray,
    FloatArray,
    IntArray,
    Kind,
    Probe,
    agreement,
    features,
    learnable,
    logistic,
    means,
    parse_orientation,
    principal,
)
from selfprobe.probes.harvesting import Harvest
from selfprobe.probes.splits import FitSettings
from selfprobe.stats import rank
from selfprobe.stats.rank import auroc

Scores = npt.NDArray[np.float64]
RANDOM_DIRECTIONS = 4


@dataclass(frozen=True)
class Half:
    """One random split."""

    train: IntArray
    test: IntArray
    few: IntArray
    """The training pairs whose labels `few:K` uses; none under another orientation."""


@dataclass(frozen=True)
class Lesson:
    """What a fit needs beside the states."""

    settings: FitSettings
    halves: Sequence[Half]
    first_better: BoolArray  # [pair]
    groups: npt.NDArray[np.str_]  # [pair]
    own: Scores
    """[pair]: the model's own swap-averaged answer, > 0: text 1."""


@dataclass(frozen=True)
class LayerFit:
    """The probes of one layer and half, and their scores on the half's test pairs."""

    probes: dict[Kind, Probe]
    scores: dict[Kind, Scores]
    """[test pair]"""
    one_order: dict[Kind, Scores]
    """[test pair]: the same probes on the first order alone."""
    random: Scores
    """[direction, test pair]: random directions, sign by all training labels."""
    few: Scores
    """[test pair]: a regression on the labels of `few:K` alone; NaN without them."""
    few_score: float
    """AUROC of that regression out of fold, on those labels."""


def fit_layer(harvest: Harvest, lesson: Lesson, layer: int, seeds: Sequence[int]) -> list[LayerFit]:
    """One `LayerFit` a seed, from the states of the `layer`-th of the harvest's layers, which are read once."""
    number = harvest.layers[layer]
    states = harvest.layer(number)
    return [_fit(states, lesson, layer=number, seed=seed) for seed in seeds]


def _fit(states: FloatArray, lesson: Lesson, *, layer: int, seed: int) -> LayerFit:
    settings, half = lesson.settings, lesson.halves[seed]
    plus, minus = means(states[half.train] if settings.centre == "train" else states, settings.orders)
    x = features(states, plus, minus, orders=settings.orders)
    truth, groups = lesson.first_better[half.train], lesson.groups[half.train]
    one = settings.orders == "first"
    fitted = logistic(x[half.train], truth, groups, intercept=one, c=settings.c, folds=settings.folds)
    supervised = Probe(
        "supervised",
        layer,
        settings.orders,
        fitted.direction,
        fitted.bias,
        plus,
        minus,
        "labels",
        fitted.c,
        fitted.score,
    )
    component = principal(x[half.train], symmetric=not one)
    sign, train_score = _orient(lesson, x @ component, half)
    unsupervised = Probe(
        "unsupervised", layer, settings.orders, sign * component, 0.0, plus, minus, settings.orientation,
        train_score=train_score,
    )  # fmt: skip
    probes: tuple[Probe, ...] = (supervised, unsupervised)
    rng = np.random.default_rng([seed, layer, 7])
    chance = x @ rng.standard_normal((x.shape[1], RANDOM_DIRECTIONS))
    signs = [1.0 if agreement(truth, chance[half.train, k]) >= 0 else -1.0 for k in range(RANDOM_DIRECTIONS)]
    return LayerFit(
        {p.kind: p for p in probes},
        {p.kind: (x @ p.direction + p.bias)[half.test] for p in probes},
        {p.kind: p.score(states[half.test], orders="first") for p in probes},
        (chance * signs)[half.test].T,
        *_few(x, lesson, half),
    )


def _orient(lesson: Lesson, scores: Scores, half: Half) -> tuple[float, float]:
    """Sign of a component by the settings' orientation, and what its layer may be chosen by (NaN: nothing)."""
    way, _ = parse_orientation(lesson.settings.orientation)
    first_better = lesson.first_better
    if way == "few":
        sign = 1.0 if agreement(first_better[half.few], scores[half.few]) >= 0 else -1.0
        return sign, auroc(first_better[half.few], sign * scores[half.few])
    if way == "logit":
        return (1.0 if float(scores[half.train] @ lesson.own[half.train]) >= 0 else -1.0), np.nan
    if way == "oracle":
        straight = weighted_f1(first_better[half.test], scores[half.test])
        return (1.0 if straight >= weighted_f1(first_better[half.test], -scores[half.test]) else -1.0), np.nan
    return 1.0, np.nan


def _few(x: FloatArray, lesson: Lesson, half: Half) -> tuple[Scores, float]:
    """What a regression makes of the few labels that the unsupervised probe gets, and its AUROC out of fold."""
    truth, groups, folds = lesson.first_better[half.few], lesson.groups[half.few], lesson.settings.folds
    if not learnable(truth, groups, folds=folds):
        return np.full(len(half.test), np.nan), np.nan
    fitted = logistic(x[half.few], truth, groups, intercept=lesson.settings.orders == "first", folds=folds)
    return x[half.test] @ fitted.direction + fitted.bias, fitted.score


def weighted_f1(first_better: BoolArray, scores: FloatArray) -> float:
    """F1 of both labels, weighted by how often each occurs; a score of 0 is a tie and says neither."""
    return rank.weighted_f1(np.where(first_better, 1, -1), np.sign(scores))
