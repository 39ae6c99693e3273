"""Honest evaluation of probes: halves over seeds, all layers, and for every score what chance would
reach.

fits = fit_all(harvested)                  # preset "strict": both probes, all layers, all halves
methods_table(fits)                        # of `run`: one row a method and metric, with interval

Intervals allow for a pair that trains one half's probe and tests another's; see `estimate`.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from selfprobe.data.pairs import Pair
from selfprobe.embed.weights import Progress
from selfprobe.probes.fit import (
    KINDS,
    RANDOM_DIRECTIONS,
    BoolArray,
    FitInputs,
    FitSettings,
    Half,
    Kind,
    LayerFit,
    Probe,
    Scores,
    best_layer,
    check_labels,
    few_of,
    fit_layer,
    halves,
    logistic,
    parse_orientation,
    sign_agreement,
    signed_f1,
)
from selfprobe.probes.harvesting import Harvest
from selfprobe.stats.estimate import (
    Estimate,
    accuracy,
    auroc,
    auroc_table,
    bootstrap,
    clustered_mean,
    f1_of_counts,
    undefined,
)
from selfprobe.stats.text_only import pair_differences


def no_model(pairs: Sequence[Pair], splits: Sequence[Half], *, folds: int = 4) -> Scores:
    """Scores [seed, pair] of TF-IDF(text 1) − TF-IDF(text 2) under logistic regression on the same
    halves.

    Words and weights are learnt from the training half's texts alone; neither question nor model is
    seen. A half is NaN where that leaves nothing to learn, see `pair_differences`.
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
    """Scores [seed, pair] of log(characters of text 1 / characters of text 2), with the sign of the
    training half.

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
    reached: float = math.nan
    """Number that is compared with the shuffles; NaN where none is."""
    p_value: float = math.nan
    """Share of the shuffles whose best candidate is as good as that, itself counted."""


def selection_floor(
    scores: Scores,
    first_better: npt.NDArray[np.bool_],
    groups: npt.NDArray[Any],
    *,
    both_signs: bool,
    metric: Literal["f1", "auroc"] = "f1",
    shuffles: int = 200,
    rng: np.random.Generator | None = None,
    reached: float = math.nan,
) -> Floor:
    """Best over layers (and signs) of `scores` [seed, layer, pair] against shuffled labels of the
    test half.

    A published "best layer" must beat this, not .5. A shuffle arranges the labels, question by
    question in one random order, along the pairs, question by question in another: labels of one
    question stay together, and the number of each label is kept.
    """
    rng = rng or np.random.default_rng(0)
    best = []
    for table in scores:
        test = np.flatnonzero(~np.isnan(table).all(axis=0))
        truth = np.stack(
            [_shuffled(first_better[test], groups[test], rng) for _ in range(shuffles)]
        )
        rated = _f1_table if metric == "f1" else auroc_table
        values = rated(truth, table[:, test])
        if both_signs:
            values = np.maximum(values, rated(truth, -table[:, test]))
        best.append(values.max(axis=0))
    drawn = np.concatenate(best)
    over = f"{scores.shape[1]} layers" + (", both signs" if both_signs else "")
    high = float(np.quantile(drawn, 0.95))
    p_value = math.nan
    if not math.isnan(reached):
        p_value = float((1 + np.count_nonzero(drawn >= reached)) / (1 + len(drawn)))
    return Floor(metric, over, float(drawn.mean()), high, len(drawn), reached, p_value)


def _shuffled(
    labels: npt.NDArray[np.bool_], groups: npt.NDArray[Any], rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """`labels` moved to other questions, keeping those of a question together; see
    `selection_floor`.
    """
    _, of = np.unique(groups, return_inverse=True)
    target, source = (
        np.argsort(rng.permutation(of.max() + 1)[of], kind="stable") for _ in range(2)
    )
    result = np.empty_like(labels)
    result[target] = labels[source]
    return result


def _f1_table(truth: npt.NDArray[np.bool_], scores: Scores) -> Scores:
    """Weighted F1 [layer, shuffle] of scores [layer, pair] against truth [shuffle, pair]."""
    said, true = (
        np.stack([scores > 0, scores < 0]).astype(float),
        np.stack([truth, ~truth]).astype(float),
    )
    return f1_of_counts(
        said @ true.swapaxes(1, 2), said.sum(axis=2)[:, :, None], true.sum(axis=2)[:, None]
    )


METRICS: dict[str, Callable[[Any, Any], float]] = {
    "f1": signed_f1,
    "accuracy": accuracy,
    "auroc": auroc,
}


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
    """[seed, layer, direction, pair]: scores of random directions, with the sign from all training
    labels.
    """
    few: Scores
    """[seed, layer, pair]: scores of a regression on the labels of `few:K` alone; NaN without them.
    """
    few_score: Scores
    """[seed, layer]: out-of-fold AUROC of that regression, on those labels."""
    untrained: "Fits | None" = None
    """Fits of the same pairs under the same architecture with random weights, where those states
    were harvested.
    """

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
        """Layer of each seed: best on the training half; the last one on a tie, or if the settings
        say so.
        """
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
        return at_layers(self.scores[kind] if scores is None else scores, self.chosen(kind))

    def labels_seen(self, kind: Kind) -> BoolArray:
        """[seed, pair]: whether the seed's fit saw the pair's label, in training or for the
        component's sign.
        """
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


def at_layers(table: Scores, layers: Sequence[int]) -> Scores:
    """[seed, ...] of a table [seed, layer, ...] at one layer per seed."""
    return np.stack([table[seed, layer] for seed, layer in enumerate(layers)])


def own_answers(harvest: Harvest) -> Scores:
    """Preference of the model itself for text 1 per order [pair, order]: P("1"), P("2")
    renormalised to the two.

    Both columns refer to the pair's first text: in the swapped order it is P("2").
    """
    return first_text_answers(harvest.log_probs)


def first_text_answers(log_probs: npt.NDArray[Any]) -> Scores:
    """P(text 1) [pair, order] from log_probs [pair, order, token] of the answers "1" and "2"."""
    log_odds = log_probs[..., 0].astype(np.float64) - log_probs[..., 1]
    log_odds[:, 1:] *= -1
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def answer_mass(harvest: Harvest) -> Estimate:
    """Share of its probability that the model puts on the answers "1" and "2" when it is asked,
    mean over orders.

    What is renormalised to two answers says little where both together are improbable.
    """
    mass = np.exp(harvest.log_probs.astype(np.float64)).sum(axis=2).mean(axis=1)
    return clustered_mean(np.minimum(mass, 1.0), harvest.groups, unit="question")


def split_pairs(
    pairs: Sequence[Pair], settings: FitSettings, *, train_subsets: tuple[str, ...] = ()
) -> list[Half]:
    """Halves of every seed; where aspects are fitted apart, those of each aspect, one aspect after
    another.

    Raises ValueError where there is too little to learn from: no label or one only, too few pairs
    or questions.
    """
    unlabelled = sum(pair.label is None for pair in pairs)
    if unlabelled:
        raise ValueError(
            f"{unlabelled} of {len(pairs)} pairs have no label; fitting and testing need them all"
        )
    parts = fitted_apart(pairs, settings)
    return [
        half
        for aspect in parts or [""]
        for half in _of_aspect(pairs, settings, aspect, train_subsets)
    ]


def fitted_apart(pairs: Sequence[Pair], settings: FitSettings) -> list[str]:
    """The aspects that have a probe each, in the order of their halves; none where one probe learns
    from all pairs.
    """
    named = sorted({pair.aspect for pair in pairs}) if settings.aspects == "apart" else []
    return named if len(named) > 1 else []


def _of_aspect(
    pairs: Sequence[Pair], settings: FitSettings, aspect: str, train_subsets: tuple[str, ...]
) -> list[Half]:
    """Halves of one aspect's pairs, or of all pairs for ""; a `train` that is a number is split
    between the aspects.
    """
    rows = np.array(
        [i for i, pair in enumerate(pairs) if aspect in ("", pair.aspect)], dtype=np.intp
    )
    mine, share = [pairs[i] for i in rows], settings.train
    share = share if share < 1 else share * len(mine) / len(pairs)
    groups, first_better = (
        np.array([p.group for p in mine]),
        np.array([p.label == 1 for p in mine], dtype=bool),
    )
    train_from = (
        np.array([p.subset in train_subsets for p in mine], dtype=bool) if train_subsets else None
    )
    found, said = [], f"{aspect}: " if aspect else ""
    for seed in range(settings.seeds):
        train, test = halves(
            groups, seed, grouped=settings.grouped, train_from=train_from, train=share
        )
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
        processes: Number of layers and halves fitted at a time, each in a process of its own with
            one thread; the
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


def _fitted(
    harvest: Harvest, study: FitInputs, processes: int
) -> Iterator[tuple[int, list[int], list[LayerFit]]]:
    """Triples (place of a layer, seeds, a fit per seed) in order; each layer's states are read
    once.
    """
    every, read = list(range(len(study.halves))), ((n, harvest.layer(n)) for n in harvest.layers)
    if processes == 1:
        for place, (number, states) in enumerate(read):
            yield place, every, fit_layer(states, study, number, every)
        return
    from joblib import Parallel, delayed, parallel_config

    jobs = [(place, [seed]) for place in range(len(harvest.layers)) for seed in every]
    calls = (
        delayed(fit_layer)(states, study, number, [seed])
        for number, states in read
        for seed in every
    )
    with parallel_config(backend="loky", inner_max_num_threads=1):
        found = Parallel(n_jobs=processes, return_as="generator")(calls)
        yield from ((*job, fits) for job, fits in zip(jobs, found, strict=True))


def estimate(
    scores: Scores,
    first_better: BoolArray,
    groups: npt.NDArray[Any],
    metric: str,
    *,
    resamples: int,
    learnt: BoolArray | None = None,
    less: Scores | None = None,
    seed: int = 0,
) -> Estimate:
    """Mean over `scores` [column, pair] (seeds, random directions; NaN: not tested) of a metric,
    with its interval.

    Questions are resampled, and all columns with them, so that a pair tested under several seeds
    counts as one. The interval is then widened, for the pairs whose label one column's fit saw
    (`learnt`, [column, pair]) and another column is tested on: the variance by `dependence`, as far
    as it is `own_share`. It holds for the probes as fitted.

    `less`: scores of the same shape; the estimate is then the paired difference, `scores` less
    these.
    """
    if less is not None:
        both = np.isnan(scores) | np.isnan(less)
        scores, less = np.where(both, np.nan, scores), np.where(both, np.nan, less)
    used, tested = ~np.isnan(scores).all(axis=1), ~np.isnan(scores).all(axis=0)
    if not tested.any():
        return undefined("no pair was tested", unit="question")
    truth, each = (
        first_better[tested],
        [s[used][:, tested].T for s in (scores, less) if s is not None],
    )
    of_columns = {"auroc": _auroc, "f1": _f1, "accuracy": _accuracy}[metric]
    drawn: list[Scores] = []  # [column], of the data and then of every resample of questions

    def mean(truth: BoolArray, *parts: Scores) -> float:
        columns = [of_columns(part, truth) for part in parts]
        drawn.append(columns[0] - columns[1] if len(columns) > 1 else columns[0])
        return float(drawn[-1].mean())

    found = bootstrap(
        mean,
        truth,
        *(each if metric == "auroc" else [_outcomes(columns, truth) for columns in each]),
        clusters=groups[tested],
        rng=np.random.default_rng(seed),
        resamples=resamples,
        unit="question",
    )
    if learnt is None or math.isnan(found.low):
        return found
    inside = ~np.isnan(scores)
    more = dependence(learnt, inside) - 1
    share = (
        own_share(np.array(drawn[1 : resamples + 1]), learnt[used], inside[used]) if more else 0.0
    )
    return _widened(found, math.sqrt(1 + share * more), floor=0.0 if less is None else -1.0)


def dependence(learnt: BoolArray, tested: BoolArray) -> float:
    """Factor (at least 1) of variance of a mean over columns that resampling test pairs alone
    leaves out.

    `learnt` and `tested` are [column, pair]: the pairs whose labels a column's fit saw, and those
    it is tested on.

    Where labels tell nothing, a column's score is a sum over pairs i that it learnt from and j that
    it is tested on of terms y_i·k(i, j)·y_j, k alike both ways. With C_ij the share of columns that
    learn from i and test on j, the mean has variance Σ_{i<j} (C_ij + C_ji)²; a bootstrap of the
    test pairs with the probes as fitted sees Σ C_ij². Their ratio is 1 + Σ C_ij C_ji / Σ C_ij²: 1
    for one half, 1.5 for five random halves, 2 for very many. What a probe has really learnt is the
    same in all halves and needs no widening, see `own_share`.
    """
    trains, tests = learnt.astype(float), tested.astype(float)
    crossed = trains @ tests.T
    alike = ((trains @ trains.T) * (tests @ tests.T)).sum()
    return float(1 + (crossed * crossed.T).sum() / alike) if alike else 1.0


def own_share(drawn: Scores, learnt: BoolArray, tested: BoolArray) -> float:
    """Share (0..1) of the variance of the columns' mean that comes from what each column learnt for
    itself.

    `drawn` is [resample, column]. Over resamples, two columns s and t vary together on the pairs
    that both are tested on, o_st, by what all have in common (a share of 1) and by what they learnt
    for themselves, as far as their training pairs are the same: cov_st = o_st·(common + τ_st·own).
    Both are solved for from the variances and the mean covariance. τ is 2/π·asin of the share of
    training pairs that are the same, as a metric counts signs: scores that correlate by r have
    signs that correlate by 2/π·asin r. Where columns do not tell them apart all counts as own,
    which is the wider interval.
    """
    drawn = drawn[~np.isnan(drawn).any(axis=1)]
    trains, tests = learnt.astype(float), tested.astype(float)
    sizes, seen = tests.sum(axis=1), np.maximum(trains.sum(axis=1), 1)
    both = (tests @ tests.T) / np.outer(sizes, sizes)
    same = (trains @ trains.T) / np.sqrt(np.outer(seen, seen))
    alike = both * 2 / np.pi * np.arcsin(np.clip(same, 0, 1))
    off = ~np.eye(len(tests), dtype=bool) & (
        both > 0
    )  # aspects that are fitted apart share questions, but no pair
    apart = 1 - alike[off].sum() / max(both[off].sum(), 1e-12)
    if len(drawn) < 2 or not off.any() or apart < 1e-6:
        return 1.0
    varies = np.cov(drawn, rowvar=False)
    whole = float(np.trace(varies) / np.trace(both))
    own = (whole - varies[off].sum() / both[off].sum()) / apart
    return float(np.clip(own * alike.sum() / varies.sum(), 0, 1)) if varies.sum() > 0 else 1.0


def _widened(found: Estimate, factor: float, *, floor: float) -> Estimate:
    """The interval, wider by a factor on each side of the value, within `floor` and 1."""
    low, high = (found.value + factor * (end - found.value) for end in (found.low, found.high))
    return replace(found, low=float(np.maximum(low, floor)), high=float(np.minimum(high, 1.0)))


# F1 and accuracy of all columns at a time and from counts: a resample then costs microseconds.


def _outcomes(columns: Scores, truth: BoolArray) -> Scores:
    """[pair, column, (1 said 1, 1 said 2, 1 tied, 2 said 1, 2 said 2, 2 tied)] of scores [pair,
    column]; NaN: none.
    """
    said = (columns > 0, columns < 0, columns == 0)
    kinds = [true[:, None] & answer for true in (truth, ~truth) for answer in said]
    return np.stack([kind.astype(float) for kind in kinds], axis=2)


def _f1(outcomes: Scores, _: BoolArray) -> Scores:
    a, b, tied_1, c, d, tied_2 = outcomes.sum(axis=0).T
    return f1_of_counts([a, d], [a + c, b + d], [a + b + tied_1, c + d + tied_2])


def _accuracy(outcomes: Scores, _: BoolArray) -> Scores:
    a, b, tied_1, c, d, tied_2 = outcomes.sum(axis=0).T
    with np.errstate(invalid="ignore"):
        return np.asarray((a + d + (tied_1 + tied_2) / 2) / (a + b + tied_1 + c + d + tied_2))


def _auroc(columns: Scores, truth: BoolArray) -> Scores:
    return np.array([auroc(truth, column) for column in columns.T])
