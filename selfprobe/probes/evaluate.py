"""Evaluating probes honestly: halves over seeds, all layers, and beside every score what would reach it by chance.

fits = fit_all(harvested)                  # preset "strict": both probes, all layers, all halves
methods_table(fits)                        # of `tables`: one row a method and metric, with interval
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from selfprobe.probes.fit import (
    FloatArray,
    IntArray,
    Kind,
    Probe,
    agreement,
    check_labels,
    features,
    logistic,
    means,
    parse_orientation,
    principal,
    select,
)
from selfprobe.probes.harvesting import Harvest
from selfprobe.probes.splits import FitSettings, halves
from selfprobe.sources.pairs import Pair
from selfprobe.stats import rank
from selfprobe.stats.rank import accuracy, auroc
from selfprobe.weights import Progress

Scores = npt.NDArray[np.float64]
KINDS: tuple[Kind, Kind] = ("supervised", "unsupervised")
RANDOM_DIRECTIONS = 4


@dataclass(frozen=True)
class Half:
    """One random split."""

    train: IntArray
    test: IntArray


@dataclass
class Fits:
    """All probes of one data set and their scores on the test halves."""

    harvest: Harvest
    settings: FitSettings
    halves: list[Half]
    probes: dict[Kind, list[list[Probe]]]
    """[seed][layer]"""
    scores: dict[Kind, Scores]
    """[seed, layer, pair], NaN for training pairs."""
    one_order: dict[Kind, Scores]
    """The same probes on the first order alone."""
    random: Scores
    """[seed, layer, direction, pair]: random directions, sign by all training labels."""
    train_margin: list[Scores] = field(default_factory=list)
    """[seed]: the model's own swap-averaged answer on the training half."""

    def chosen(self, kind: Kind) -> list[int]:
        """The layer of each seed: best on the training half, the last one on a tie or by the settings."""
        last = self.harvest.identity.layers - 1
        if self.settings.layer == "last":
            return [last] * len(self.halves)
        scores = [[p.train_score for p in layers] for layers in self.probes[kind]]
        return [last if np.isnan(s).all() else last - int(np.nanargmax(s[::-1])) for s in scores]

    def at_chosen(self, kind: Kind, scores: Scores | None = None) -> Scores:
        """[seed, pair] at each seed's chosen layer."""
        table = self.scores[kind] if scores is None else scores
        return np.stack([table[seed, layer] for seed, layer in enumerate(self.chosen(kind))])


def own_answers(harvest: Harvest) -> Scores:
    """The model's own preference for text 1 in each order [pair, order], from P("1"), P("2") renormalised to the two.

    Both columns speak of the pair's first text: in the swapped order it is P("2").
    """
    return first_text_answers(harvest.log_probs)


def first_text_answers(log_probs: npt.NDArray[Any]) -> Scores:
    """P(text 1) [pair, order] from log_probs [pair, order, token] of the answers "1" and "2"."""
    log_odds = log_probs[..., 0].astype(np.float64) - log_probs[..., 1]
    log_odds[:, 1:] *= -1
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def split_pairs(pairs: Sequence[Pair], settings: FitSettings, *, train_subsets: tuple[str, ...] = ()) -> list[Half]:
    """The halves of every seed.

    Raises ValueError where there is too little to learn from: no label or one only, too few pairs or questions.
    """
    unlabelled = sum(pair.label is None for pair in pairs)
    if unlabelled:
        raise ValueError(f"{unlabelled} of {len(pairs)} pairs have no label; fitting and testing need them all")
    groups, first_better = np.array([p.group for p in pairs]), np.array([p.label == 1 for p in pairs], dtype=bool)
    train_from = np.array([p.subset in train_subsets for p in pairs], dtype=bool) if train_subsets else None
    splits = [
        Half(*halves(groups, seed, grouped=settings.grouped, train_from=train_from)) for seed in range(settings.seeds)
    ]
    for half in splits:
        check_labels(first_better[half.train], groups[half.train], folds=settings.folds)
    return splits


def fit_all(
    harvest: Harvest,
    settings: FitSettings | None = None,
    *,
    train_subsets: tuple[str, ...] = (),
    progress: Progress = lambda _: None,
) -> Fits:
    """Fit both probes at every layer on every training half, and score the test halves.

    `train_subsets`: learn from these subsets alone and test on all others too (§5.4).

    Raises ValueError where there is too little to learn from: one label only, too few pairs or questions.
    """
    settings = settings or FitSettings()
    splits = split_pairs(harvest.pairs, settings, train_subsets=train_subsets)
    labels = harvest.labels
    first_better = labels == 1
    own = own_answers(harvest).mean(axis=1) - 0.5
    seeds, layers, size = settings.seeds, harvest.identity.layers, len(labels)
    fits = Fits(
        harvest,
        settings,
        splits,
        {kind: [[] for _ in splits] for kind in KINDS},
        {kind: np.full((seeds, layers, size), np.nan) for kind in KINDS},
        {kind: np.full((seeds, layers, size), np.nan) for kind in KINDS},
        np.full((seeds, layers, RANDOM_DIRECTIONS, size), np.nan),
        [own[half.train] for half in splits],
    )
    for layer in range(layers):
        states = harvest.layer(layer)
        for seed in range(seeds):
            _fit_layer(fits, states, seed=seed, layer=layer, first_better=first_better)
        progress(f"layer {layer + 1} of {layers} fitted")
    return fits


def _fit_layer(fits: Fits, states: FloatArray, *, seed: int, layer: int, first_better: npt.NDArray[np.bool_]) -> None:
    settings, split = fits.settings, fits.halves[seed]
    plus, minus = means(states[split.train] if settings.centre == "train" else states, settings.orders)
    x = features(states, plus, minus, orders=settings.orders)
    truth, groups = first_better[split.train], fits.harvest.groups[split.train]
    intercept = settings.orders == "first"
    fitted = logistic(x[split.train], truth, groups, intercept=intercept, c=settings.c, folds=settings.folds)
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
    component = principal(x[split.train], symmetric=settings.orders == "both")
    sign, train_score = _orient(fits, x @ component, seed=seed, first_better=first_better)
    unsupervised = Probe(
        "unsupervised", layer, settings.orders, sign * component, 0.0, plus, minus, settings.orientation,
        train_score=train_score,
    )  # fmt: skip
    for probe in (supervised, unsupervised):
        fits.probes[probe.kind][seed].append(probe)
        fits.scores[probe.kind][seed, layer, split.test] = (x @ probe.direction + probe.bias)[split.test]
        fits.one_order[probe.kind][seed, layer, split.test] = probe.score(states[split.test], orders="first")
    rng = np.random.default_rng([seed, layer, 7])
    chance = x @ rng.standard_normal((x.shape[1], RANDOM_DIRECTIONS))
    signs = [1.0 if agreement(truth, chance[split.train, k]) >= 0 else -1.0 for k in range(RANDOM_DIRECTIONS)]
    fits.random[seed, layer][:, split.test] = (chance * signs)[split.test].T


def _orient(fits: Fits, scores: Scores, *, seed: int, first_better: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Sign of a component by the settings' orientation, and what its layer may be chosen by (NaN: nothing)."""
    split = fits.halves[seed]
    way, labelled = parse_orientation(fits.settings.orientation)
    if way == "few":
        few = split.train[select(labelled, len(split.train), rng=np.random.default_rng([seed, 5]))]
        sign = 1.0 if agreement(first_better[few], scores[few]) >= 0 else -1.0
        return sign, auroc(first_better[few], sign * scores[few])
    if way == "logit":
        return (1.0 if float(scores[split.train] @ fits.train_margin[seed]) >= 0 else -1.0), np.nan
    if way == "oracle":
        straight = weighted_f1(first_better[split.test], scores[split.test])
        return (1.0 if straight >= weighted_f1(first_better[split.test], -scores[split.test]) else -1.0), np.nan
    return 1.0, np.nan


def weighted_f1(first_better: npt.NDArray[np.bool_], scores: FloatArray) -> float:
    """F1 of both labels, weighted by how often each occurs; a score of 0 is a tie and says neither."""
    return rank.weighted_f1(np.where(first_better, 1, -1), np.sign(scores))


METRICS: dict[str, Callable[[Any, Any], float]] = {"f1": weighted_f1, "accuracy": accuracy, "auroc": auroc}
