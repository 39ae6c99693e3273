"""Both probes at one layer on one training half: the fits of `evaluate.fit_all`, here or in other processes.

PyTorch is not imported here: a process that fits would load it for seconds and not use it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from selfprobe.probes.fit import (
    BoolArray,
    FloatArray,
    IntArray,
    Kind,
    Lesson,
    Probe,
    features,
    learn,
    learnable,
    logistic,
    means,
    sign_agreement,
)
from selfprobe.probes.splits import FitSettings
from selfprobe.stats import estimate

Scores = npt.NDArray[np.float64]
KINDS: tuple[Kind, Kind] = ("supervised", "unsupervised")
"""Kinds of probe that a run fits."""
RANDOM_DIRECTIONS = 4


@dataclass(frozen=True)
class Half:
    """One random split."""

    train: IntArray
    test: IntArray
    few: IntArray
    """Training pairs whose labels `few:K` uses; none under another orientation."""
    aspect: str = ""
    """Aspect of these pairs, where aspects are fitted apart."""


@dataclass(frozen=True)
class FitInputs:
    """Inputs that the fits of all halves need besides the states."""

    settings: FitSettings
    halves: Sequence[Half]
    first_better: BoolArray  # [pair]
    groups: npt.NDArray[np.str_]  # [pair]
    own: Scores
    """[pair]: swap-averaged answer of the model itself, > 0: text 1."""

    def lesson(self, seed: int) -> Lesson:
        """What the probes of one half may learn from; the sign that an oracle gives comes later."""
        settings, train = self.settings, self.halves[seed].train
        orientation = "none" if settings.orientation == "oracle" else settings.orientation
        truth, groups, own = self.first_better[train], self.groups[train], self.own[train]
        given = {"bias": False, "balanced": settings.balanced}  # paper: σ(wᵀx), as does its code
        return Lesson(truth, groups, own, orientation, settings.c, settings.folds, seed, **given)


@dataclass(frozen=True)
class LayerFit:
    """The probes of one layer and half, and their scores on the half's test pairs."""

    probes: dict[Kind, Probe]
    scores: dict[Kind, Scores]
    """[test pair]"""
    one_order: dict[Kind, Scores]
    """[test pair]: scores of the same probes on the first order alone."""
    random: Scores
    """[direction, test pair]: scores of random directions, with the sign from all training labels."""
    few: Scores
    """[test pair]: scores of a regression on the labels of `few:K` alone; NaN without them."""
    few_score: float
    """Out-of-fold AUROC of that regression, on those labels."""


def fit_layer(states: FloatArray, study: FitInputs, layer: int, seeds: Sequence[int]) -> list[LayerFit]:
    """One `LayerFit` per seed, from states [pair, order, side, d_model] of the block with number `layer`."""
    return [_fit(states, study, layer=layer, seed=seed) for seed in seeds]


def _fit(states: FloatArray, study: FitInputs, *, layer: int, seed: int) -> LayerFit:
    settings, half, lesson = study.settings, study.halves[seed], study.lesson(seed)
    orders, train, test = settings.orders, states[half.train], states[half.test]
    centre = means(train if settings.centre == "train" else np.concatenate([train, test]), orders)
    probes = {kind: learn(kind, train, lesson, layer=layer, orders=orders, centre=centre) for kind in KINDS}
    if settings.orientation == "oracle":
        probes["unsupervised"] = _by_test_labels(probes["unsupervised"], test, study.first_better[half.test])
    learnt, tested = (features(part, *centre, orders=orders) for part in (train, test))
    chance = np.random.default_rng([seed, layer, 7]).standard_normal((learnt.shape[1], RANDOM_DIRECTIONS))
    truth = lesson.truth()
    signs = [1.0 if sign_agreement(truth, column) >= 0 else -1.0 for column in (learnt @ chance).T]
    few = learnt[np.searchsorted(half.train, half.few)]
    return LayerFit(
        probes,
        {kind: probe.score(test) for kind, probe in probes.items()},
        {kind: probe.score(test, orders="first") for kind, probe in probes.items()},
        (tested @ chance * signs).T,
        *_few(few, tested, study, half),
    )


def _by_test_labels(probe: Probe, test: FloatArray, truth: BoolArray) -> Probe:
    """The better sign on the test half, which the released code takes. LEAKS."""
    scores = probe.score(test)
    sign = 1.0 if weighted_f1(truth, scores) >= weighted_f1(truth, -scores) else -1.0
    return replace(probe, direction=sign * probe.direction, bias=sign * probe.bias, orientation="oracle")


def _few(few: FloatArray, tested: FloatArray, study: FitInputs, half: Half) -> tuple[Scores, float]:
    """Scores of a regression on the few labels that the unsupervised probe gets, and its AUROC out of fold.

    `few` and `tested` are features [pair, d] of these pairs and of the test half.
    """
    truth, groups, folds = study.first_better[half.few], study.groups[half.few], study.settings.folds
    if not learnable(truth, groups, folds=folds):
        return np.full(len(half.test), np.nan), np.nan
    fitted = logistic(few, truth, groups, folds=folds)
    return tested @ fitted.direction + fitted.bias, fitted.score


def weighted_f1(first_better: BoolArray, scores: FloatArray) -> float:
    """F1 of both labels, weighted by the frequency of each; a score of 0 is a tie and counts for neither."""
    return estimate.weighted_f1(np.where(first_better, 1, -1), np.sign(scores))
