"""Honest evaluation of probes: halves over seeds, all layers, and for every score what chance would reach.

fits = fit_all(harvested)                  # preset "strict": both probes, all layers, all halves
methods_table(fits)                        # of `tables`: one row a method and metric, with interval
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from selfprobe.data.pairs import Pair
from selfprobe.embed.weights import Progress
from selfprobe.probes.fit import (
    BoolArray,
    Kind,
    Probe,
    best_layer,
    check_labels,
    few_of,
    logistic,
    parse_orientation,
    sign_agreement,
)
from selfprobe.probes.harvesting import Harvest
from selfprobe.probes.layer_fit import (
    KINDS,
    RANDOM_DIRECTIONS,
    FitInputs,
    Half,
    LayerFit,
    Scores,
    fit_layer,
    weighted_f1,
)
from selfprobe.probes.splits import FitSettings, halves
from selfprobe.stats.estimate import accuracy, auroc, auroc_table, f1_of_counts
from selfprobe.stats.text_only import pair_differences


def no_model(pairs: Sequence[Pair], splits: Sequence[Half], *, folds: int = 4) -> Scores:
    """Scores [seed, pair] of TF-IDF(text 1) − TF-IDF(text 2) under logistic regression on the same halves.

    Words and weights are learnt from the training half's texts alone; neither question nor model is seen. A half is NaN
    where that leaves nothing to learn, see `pair_differences`.
    """
    first, second = [p.text_1 for p in pairs], [p.text_2 for p in pairs]
    truth, groups = np.array([p.label == 1 for p in pairs]), np.array([p.group for p in pairs])
    scores = np.full((len(splits), len(pairs)), np.nan)
    for seed, split in enumerate(splits):
        x = pair_differences(first, second, split.train)
        if x is not None:
            fitted = logistic(x[split.train], truth[split.train], groups[split.train], folds=folds)
            scores[seed, split.test] = x[split.test] @ fitted.direction
    return scores


def by_length(pairs: Sequence[Pair], splits: Sequence[Half]) -> Scores:
    """Scores [seed, pair] of log(characters of text 1 / characters of text 2), with the sign of the training half.

    This is the score of a direction that merely holds the length of the texts.
    """
    longer = np.array([np.log((len(p.text_1) + 1) / (len(p.text_2) + 1)) for p in pairs])
    truth = np.array([p.label == 1 for p in pairs])
    scores = np.full((len(splits), len(pairs)), np.nan)
    for seed, split in enumerate(splits):
        sign = 1.0 if sign_agreement(truth[split.train], longer[split.train]) >= 0 else -1.0
        scores[seed, split.test] = sign * longer[split.test]
    return scores


@dataclass(frozen=True)
class Floor:
    """Best score among several candidates when labels are shuffled."""

    metric: Literal["f1", "auroc"]
    over: str
    """Name of the candidates, e.g. "30 layers, both signs"."""
    mean: float
    high: float
    """95th percentile over shuffles."""
    n: int
    """Number of shuffles, over all seeds."""


def selection_floor(
    scores: Scores,
    first_better: npt.NDArray[np.bool_],
    groups: npt.NDArray[Any],
    *,
    both_signs: bool,
    metric: Literal["f1", "auroc"] = "f1",
    shuffles: int = 200,
    rng: np.random.Generator | None = None,
) -> Floor:
    """Best over layers (and signs) of `scores` [seed, layer, pair] against shuffled labels of the test half.

    A published "best layer" must beat this, not .5. A shuffle arranges the labels, question by question in one random
    order, along the pairs, question by question in another: labels of one question stay together, and the number of
    each label is kept.
    """
    rng = rng or np.random.default_rng(0)
    best = []
    for table in scores:
        test = np.flatnonzero(~np.isnan(table).all(axis=0))
        truth = np.stack([_shuffled(first_better[test], groups[test], rng) for _ in range(shuffles)])
        rated = _f1_table if metric == "f1" else auroc_table
        values = rated(truth, table[:, test])
        if both_signs:
            values = np.maximum(values, rated(truth, -table[:, test]))
        best.append(values.max(axis=0))
    found = np.concatenate(best)
    over = f"{scores.shape[1]} layers" + (", both signs" if both_signs else "")
    return Floor(metric, over, float(found.mean()), float(np.quantile(found, 0.95)), len(found))


def _shuffled(
    labels: npt.NDArray[np.bool_], groups: npt.NDArray[Any], rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """`labels` moved to other questions, keeping those of a question together; see `selection_floor`."""
    _, of = np.unique(groups, return_inverse=True)
    target, source = (np.argsort(rng.permutation(of.max() + 1)[of], kind="stable") for _ in range(2))
    result = np.empty_like(labels)
    result[target] = labels[source]
    return result


def _f1_table(truth: npt.NDArray[np.bool_], scores: Scores) -> Scores:
    """Weighted F1 [layer, shuffle] of scores [layer, pair] against truth [shuffle, pair]."""
    said, true = np.stack([scores > 0, scores < 0]).astype(float), np.stack([truth, ~truth]).astype(float)
    return f1_of_counts(said @ true.swapaxes(1, 2), said.sum(axis=2)[:, :, None], true.sum(axis=2)[:, None])


METRICS: dict[str, Callable[[Any, Any], float]] = {"f1": weighted_f1, "accuracy": accuracy, "auroc": auroc}


@dataclass
class Fits:
    """All probes of one data set and their scores on the test halves."""

    harvest: Harvest
    settings: FitSettings
    halves: list[Half]
    """Halves, one per seed, or per aspect and seed; `seed` below is their number."""
    probes: dict[Kind, list[list[Probe]]]
    """[seed][layer]"""
    scores: dict[Kind, Scores]
    """[seed, layer, pair], NaN for training pairs."""
    one_order: dict[Kind, Scores]
    """[seed, layer, pair]: scores of the same probes on the first order alone."""
    random: Scores
    """[seed, layer, direction, pair]: scores of random directions, with the sign from all training labels."""
    few: Scores
    """[seed, layer, pair]: scores of a regression on the labels of `few:K` alone; NaN without them."""
    few_score: Scores
    """[seed, layer]: out-of-fold AUROC of that regression, on those labels."""
    untrained: "Fits | None" = None
    """Fits of the same pairs under the same architecture with random weights, where those states were harvested."""

    @classmethod
    def empty(cls, harvest: Harvest, settings: FitSettings, splits: list[Half]) -> "Fits":
        """Fits before any layer is fitted."""
        shape = (len(splits), harvest.identity.layers, len(harvest.pairs))
        return cls(
            harvest,
            settings,
            splits,
            {kind: [[] for _ in splits] for kind in KINDS},
            {kind: np.full(shape, np.nan) for kind in KINDS},
            {kind: np.full(shape, np.nan) for kind in KINDS},
            np.full((*shape[:2], RANDOM_DIRECTIONS, shape[2]), np.nan),
            np.full(shape, np.nan),
            np.full(shape[:2], np.nan),
        )

    def add(self, seed: int, layer: int, fitted: LayerFit) -> None:
        """Add the fit of one layer and half; layers come first to last."""
        test = self.halves[seed].test
        for kind in KINDS:
            self.probes[kind][seed].append(fitted.probes[kind])
            self.scores[kind][seed, layer, test] = fitted.scores[kind]
            self.one_order[kind][seed, layer, test] = fitted.one_order[kind]
        self.random[seed, layer][:, test] = fitted.random
        self.few[seed, layer, test] = fitted.few
        self.few_score[seed, layer] = fitted.few_score

    def chosen(self, kind: Kind) -> list[int]:
        """Layer of each seed: best on the training half; the last one on a tie, or if the settings say so."""
        return self.best([[p.train_score for p in layers] for layers in self.probes[kind]])

    def best(self, scores: Sequence[Sequence[float]] | Scores) -> list[int]:
        """Layer of each seed by scores [seed, layer] of its training half; see `chosen`."""
        if self.settings.layer == "last":
            return [self.harvest.identity.layers - 1] * len(self.halves)
        return [best_layer(each) for each in scores]

    def numbered(self, layers: Sequence[int]) -> list[int]:
        """Numbers of the blocks, each once, at these places among the harvest's layers."""
        return sorted({self.harvest.layers[layer] for layer in layers})

    def at_chosen(self, kind: Kind, scores: Scores | None = None) -> Scores:
        """[seed, pair] at each seed's chosen layer."""
        return at(self.scores[kind] if scores is None else scores, self.chosen(kind))

    def labels_seen(self, kind: Kind) -> BoolArray:
        """[seed, pair]: whether the seed's fit saw the pair's label, in training or for the component's sign."""
        way, _ = parse_orientation(self.settings.orientation)
        seen = np.zeros((len(self.halves), len(self.harvest.pairs)), dtype=bool)
        for row, half in zip(seen, self.halves, strict=True):
            if kind == "supervised":
                row[half.train] = True
            elif way == "few":
                row[half.few] = True
        return seen

    @cached_property
    def words(self) -> Scores:
        """Scores [seed, pair] of the two texts without any model, see `no_model`; fitted once."""
        return no_model(self.harvest.pairs, self.halves, folds=self.settings.folds)


def at(table: Scores, layers: Sequence[int]) -> Scores:
    """[seed, ...] of a table [seed, layer, ...] at one layer per seed."""
    return np.stack([table[seed, layer] for seed, layer in enumerate(layers)])


def own_answers(harvest: Harvest) -> Scores:
    """Preference of the model itself for text 1 per order [pair, order]: P("1"), P("2") renormalised to the two.

    Both columns refer to the pair's first text: in the swapped order it is P("2").
    """
    return first_text_answers(harvest.log_probs)


def first_text_answers(log_probs: npt.NDArray[Any]) -> Scores:
    """P(text 1) [pair, order] from log_probs [pair, order, token] of the answers "1" and "2"."""
    log_odds = log_probs[..., 0].astype(np.float64) - log_probs[..., 1]
    log_odds[:, 1:] *= -1
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def split_pairs(pairs: Sequence[Pair], settings: FitSettings, *, train_subsets: tuple[str, ...] = ()) -> list[Half]:
    """Halves of every seed; where aspects are fitted apart, those of each aspect, one aspect after another.

    Raises ValueError where there is too little to learn from: no label or one only, too few pairs or questions.
    """
    unlabelled = sum(pair.label is None for pair in pairs)
    if unlabelled:
        raise ValueError(f"{unlabelled} of {len(pairs)} pairs have no label; fitting and testing need them all")
    parts = fitted_apart(pairs, settings)
    return [half for aspect in parts or [""] for half in _of_aspect(pairs, settings, aspect, train_subsets)]


def fitted_apart(pairs: Sequence[Pair], settings: FitSettings) -> list[str]:
    """The aspects that have a probe each, in the order of their halves; none where one probe learns from all pairs."""
    named = sorted({pair.aspect for pair in pairs}) if settings.aspects == "apart" else []
    return named if len(named) > 1 else []


def _of_aspect(pairs: Sequence[Pair], settings: FitSettings, aspect: str, train_subsets: tuple[str, ...]) -> list[Half]:
    """Halves of one aspect's pairs, or of all pairs for ""; a `train` that is a number is split between the aspects."""
    rows = np.array([i for i, pair in enumerate(pairs) if aspect in ("", pair.aspect)], dtype=np.intp)
    mine, share = [pairs[i] for i in rows], settings.train
    share = share if share < 1 else share * len(mine) / len(pairs)
    groups, first_better = np.array([p.group for p in mine]), np.array([p.label == 1 for p in mine], dtype=bool)
    train_from = np.array([p.subset in train_subsets for p in mine], dtype=bool) if train_subsets else None
    found, said = [], f"{aspect}: " if aspect else ""
    for seed in range(settings.seeds):
        train, test = halves(groups, seed, grouped=settings.grouped, train_from=train_from, train=share)
        try:
            check_labels(first_better[train], groups[train], folds=settings.folds)
        except ValueError as error:
            raise ValueError(f"{said}{error}") from None
        if not len(test):
            raise ValueError(
                f"{said}{share:g} pairs are to train, of {len(mine)} of {len(set(groups))} questions: none is left "
                "to test. Train on fewer, or give more pairs (--limit)"
            )
        few = train[few_of(settings.orientation, len(train), seed=seed)]
        found.append(Half(rows[train], rows[test], rows[few], aspect))
    return found


def fit_all(
    harvest: Harvest,
    settings: FitSettings | None = None,
    *,
    train_subsets: tuple[str, ...] = (),
    processes: int = 1,
    progress: Progress = lambda _: None,
) -> Fits:
    """Fit both probes at every layer on every training half, and score the test halves.

    Args:
        train_subsets: Subsets to learn from; all others are only tested on (§5.4).
        processes: Number of layers and halves fitted at a time, each in a process of its own with one thread; the
        numbers are the same. A few layers' states are held at a time.

    Raises:
        ValueError: There is too little to learn from: one label only, too few pairs or questions.
    """
    settings = settings or FitSettings()
    splits = split_pairs(harvest.pairs, settings, train_subsets=train_subsets)
    own = own_answers(harvest).mean(axis=1) - 0.5
    study = FitInputs(settings, splits, harvest.labels == 1, harvest.groups, own)
    fits, layers = Fits.empty(harvest, settings, splits), harvest.identity.layers
    started = time.monotonic()
    for layer, seeds, found in _fitted(harvest, study, processes):
        for seed, fitted in zip(seeds, found, strict=True):
            fits.add(seed, layer, fitted)
        if seeds[-1] == len(splits) - 1:
            left = (time.monotonic() - started) / (layer + 1) * (layers - layer - 1)
            progress(f"layer {layer + 1} of {layers} fitted, {left:.0f} s left")
    return fits


def _fitted(harvest: Harvest, study: FitInputs, processes: int) -> Iterator[tuple[int, list[int], list[LayerFit]]]:
    """Triples (place of a layer, seeds, a fit per seed) in order; each layer's states are read once."""
    every, read = list(range(len(study.halves))), ((n, harvest.layer(n)) for n in harvest.layers)
    if processes == 1:
        for place, (number, states) in enumerate(read):
            yield place, every, fit_layer(states, study, number, every)
        return
    from joblib import Parallel, delayed, parallel_config

    jobs = [(place, [seed]) for place in range(len(harvest.layers)) for seed in every]
    calls = (delayed(fit_layer)(states, study, number, [seed]) for number, states in read for seed in every)
    with parallel_config(backend="loky", inner_max_num_threads=1):
        found = Parallel(n_jobs=processes, return_as="generator")(calls)
        yield from ((*job, fits) for job, fits in zip(jobs, found, strict=True))
