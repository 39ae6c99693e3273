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
from selfprobe.embed import DEFAULT_EMBEDDER, embed_unasked, unfetched
from selfprobe.embed.weights import Progress
from selfprobe.probes.fit import (
    FITTED_KINDS,
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
    few_label_pairs,
    fit_layer,
    halves,
    logistic,
    parse_orientation,
    sign_agreement,
    signed_f1,
)
from selfprobe.probes.harvesting import Harvest
from selfprobe.stats.draws import p_among_draws
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
    first_texts = [pair.text_1 for pair in pairs]
    second_texts = [pair.text_2 for pair in pairs]
    truth = np.array([pair.label == 1 for pair in pairs])
    groups = np.array([pair.group for pair in pairs])
    scores = np.full((len(splits), len(pairs)), np.nan)
    for half_scores, half in zip(scores, splits, strict=True):
        x = pair_differences(first_texts, second_texts, half.train)
        if x is not None:
            train = half.train
            regression = logistic(x[train], truth[train], groups[train], folds=folds)
            half_scores[half.test] = x[half.test] @ regression.direction
    return scores


def by_sentence_embedding(
    pairs: Sequence[Pair], splits: Sequence[Half], *, folds: int = 4
) -> Scores | None:
    """Scores [seed, pair] of a logistic regression on differences of the texts' MiniLM embeddings,
    on the same halves; None where its weights are not on this machine.

    What a probe reads beyond this is something that the judge does with the texts, and not what
    another small encoder holds of each of them alone.
    """
    if unfetched(DEFAULT_EMBEDDER):
        return None
    first_texts = [pair.text_1 for pair in pairs]
    second_texts = [pair.text_2 for pair in pairs]
    vectors = embed_unasked(first_texts + second_texts, most_texts=None)
    first_vectors, second_vectors = np.split(vectors, 2)
    x = first_vectors - second_vectors
    truth = np.array([pair.label == 1 for pair in pairs])
    groups = np.array([pair.group for pair in pairs])
    scores = np.full((len(splits), len(pairs)), np.nan)
    for half_scores, half in zip(scores, splits, strict=True):
        train = half.train
        regression = logistic(x[train], truth[train], groups[train], folds=folds)
        half_scores[half.test] = x[half.test] @ regression.direction
    return scores


def by_length(pairs: Sequence[Pair], splits: Sequence[Half]) -> Scores:
    """Scores [seed, pair] of log(characters of text 1 / characters of text 2), with the sign of the
    training half.

    This is the score of a direction that merely holds the length of the texts.
    """
    length_ratios = [(len(pair.text_1) + 1) / (len(pair.text_2) + 1) for pair in pairs]
    log_ratios = np.log(length_ratios)
    truth = np.array([pair.label == 1 for pair in pairs])
    scores = np.full((len(splits), len(pairs)), np.nan)
    for half_scores, half in zip(scores, splits, strict=True):
        agreement = sign_agreement(truth[half.train], log_ratios[half.train])
        sign = 1.0 if agreement >= 0 else -1.0
        half_scores[half.test] = sign * log_ratios[half.test]
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
    rate_candidates = _f1_table if metric == "f1" else auroc_table
    best_by_half = []
    for layer_scores in scores:
        test = np.flatnonzero(~np.isnan(layer_scores).all(axis=0))
        shuffled_truths = np.stack(
            [_shuffled(first_better[test], groups[test], rng) for _ in range(shuffles)]
        )
        candidate_values = rate_candidates(shuffled_truths, layer_scores[:, test])
        if both_signs:
            flipped_values = rate_candidates(shuffled_truths, -layer_scores[:, test])
            candidate_values = np.maximum(candidate_values, flipped_values)
        best_by_half.append(candidate_values.max(axis=0))

    best_values = np.concatenate(best_by_half)
    candidates = f"{scores.shape[1]} layers"
    if both_signs:
        candidates += ", both signs"
    high = float(np.quantile(best_values, 0.95))
    p_value = math.nan
    if not math.isnan(reached):
        as_good_count = np.count_nonzero(best_values >= reached)
        p_value = float(p_among_draws(as_good_count, len(best_values)))
    mean = float(best_values.mean())
    return Floor(metric, candidates, mean, high, len(best_values), reached, p_value)


def _shuffled(labels: BoolArray, groups: npt.NDArray[Any], rng: np.random.Generator) -> BoolArray:
    """`labels` moved to other questions, keeping those of a question together; see
    `selection_floor`.
    """
    _, question_of_pair = np.unique(groups, return_inverse=True)
    question_count = question_of_pair.max() + 1

    def pairs_by_shuffled_question() -> npt.NDArray[np.intp]:
        return np.argsort(rng.permutation(question_count)[question_of_pair], kind="stable")

    target_pairs = pairs_by_shuffled_question()
    source_pairs = pairs_by_shuffled_question()
    moved_labels = np.empty_like(labels)
    moved_labels[target_pairs] = labels[source_pairs]
    return moved_labels


def _f1_table(truth: BoolArray, scores: Scores) -> Scores:
    """Weighted F1 [layer, shuffle] of scores [layer, pair] against truth [shuffle, pair]."""
    predicted = np.stack([scores > 0, scores < 0]).astype(float)  # [label, layer, pair]
    true = np.stack([truth, ~truth]).astype(float)  # [label, shuffle, pair]
    hit_counts = predicted @ true.swapaxes(1, 2)
    predicted_counts = predicted.sum(axis=2)[:, :, None]
    true_counts = true.sum(axis=2)[:, None]
    return f1_of_counts(hit_counts, predicted_counts, true_counts)


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
    """Halves, one per seed, or per aspect and seed; `half` below is their number."""
    probes: dict[Kind, list[list[Probe]]]
    """[half][layer]"""
    scores: dict[Kind, Scores]
    """[half, layer, pair], NaN for training pairs."""
    one_order_scores: dict[Kind, Scores]
    """[half, layer, pair]: scores of the same probes on the first order alone."""
    random_scores: Scores
    """[half, layer, direction, pair]: scores of random directions, with the sign from all training
    labels.
    """
    few_label_scores: Scores
    """[half, layer, pair]: scores of a regression on the labels of `few:K` alone; NaN without them.
    """
    few_label_train_scores: Scores
    """[half, layer]: out-of-fold AUROC of that regression, on those labels."""
    untrained: "Fits | None" = None
    """Fits of the same pairs under the same architecture with random weights, where those states
    were harvested.
    """

    @classmethod
    def empty(cls, harvest: Harvest, settings: FitSettings, splits: list[Half]) -> "Fits":
        """Fits before any layer is fitted."""
        half_count = len(splits)
        layer_count = harvest.identity.layers
        pair_count = len(harvest.pairs)
        no_scores = np.full((half_count, layer_count, pair_count), np.nan)
        random_shape = (half_count, layer_count, RANDOM_DIRECTIONS, pair_count)
        probes: dict[Kind, list[list[Probe]]] = {}
        for kind in FITTED_KINDS:
            probes[kind] = [[] for _ in splits]
        return cls(
            harvest=harvest,
            settings=settings,
            halves=splits,
            probes=probes,
            scores={kind: no_scores.copy() for kind in FITTED_KINDS},
            one_order_scores={kind: no_scores.copy() for kind in FITTED_KINDS},
            random_scores=np.full(random_shape, np.nan),
            few_label_scores=no_scores.copy(),
            few_label_train_scores=np.full((half_count, layer_count), np.nan),
        )

    def add(self, half_number: int, layer: int, layer_fit: LayerFit) -> None:
        """Add the fit of one layer and half; layers come first to last."""
        test = self.halves[half_number].test
        for kind in FITTED_KINDS:
            self.probes[kind][half_number].append(layer_fit.probes[kind])
            self.scores[kind][half_number, layer, test] = layer_fit.scores[kind]
            self.one_order_scores[kind][half_number, layer, test] = layer_fit.one_order_scores[kind]
        self.random_scores[half_number, layer][:, test] = layer_fit.random_scores
        self.few_label_scores[half_number, layer, test] = layer_fit.few_label_scores
        self.few_label_train_scores[half_number, layer] = layer_fit.few_label_train_score

    def layers_chosen_in_training(self, kind: Kind) -> list[int]:
        """Layer of each half: best on the training pairs; the last one on a tie, or if the settings
        say so.
        """
        train_scores: list[list[float]] = []
        for layer_probes in self.probes[kind]:
            train_scores.append([probe.train_score for probe in layer_probes])
        return self.layers_by_train_scores(train_scores)

    def layers_by_train_scores(self, train_scores: Sequence[Sequence[float]] | Scores) -> list[int]:
        """Layer of each half by scores [half, layer] of its training pairs; see
        `layers_chosen_in_training`.
        """
        if self.settings.layer == "last":
            return [self.harvest.identity.layers - 1] * len(self.halves)
        return [best_layer(layer_scores) for layer_scores in train_scores]

    def block_numbers(self, layers: Sequence[int]) -> list[int]:
        """Numbers of the blocks, each once, at these places among the harvest's layers."""
        return sorted({self.harvest.layers[layer] for layer in layers})

    def scores_at_chosen_layers(self, kind: Kind) -> Scores:
        """[half, pair] at the layer that each half's training pairs chose."""
        return at_layers(self.scores[kind], self.layers_chosen_in_training(kind))

    def labels_seen(self, kind: Kind) -> BoolArray:
        """[half, pair]: whether the half's fit saw the pair's label, in training or for the
        component's sign.
        """
        sign_source, _ = parse_orientation(self.settings.orientation)
        is_seen = np.zeros((len(self.halves), len(self.harvest.pairs)), dtype=bool)
        for half_is_seen, half in zip(is_seen, self.halves, strict=True):
            if kind == "supervised":
                half_is_seen[half.train] = True
            elif sign_source == "few":
                half_is_seen[half.few] = True
        return is_seen

    @cached_property
    def text_only_scores(self) -> Scores:
        """Scores [half, pair] of the two texts without any model, see `no_model`; fitted once."""
        return no_model(self.harvest.pairs, self.halves, folds=self.settings.folds)

    @cached_property
    def sentence_embedding_scores(self) -> Scores | None:
        """Scores [half, pair] of the two texts' embeddings, see `by_sentence_embedding`; fitted
        once.
        """
        return by_sentence_embedding(self.harvest.pairs, self.halves, folds=self.settings.folds)


def at_layers(table: Scores, layers: Sequence[int]) -> Scores:
    """[half, ...] of a table [half, layer, ...] at one layer per half."""
    return np.stack([half_table[layer] for half_table, layer in zip(table, layers, strict=True)])


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
    halves_of_all: list[Half] = []
    for aspect in fitted_apart(pairs, settings) or [""]:
        halves_of_all += _halves_of_aspect(pairs, settings, aspect, train_subsets)
    return halves_of_all


def fitted_apart(pairs: Sequence[Pair], settings: FitSettings) -> list[str]:
    """The aspects that have a probe each, in the order of their halves; none where one probe learns
    from all pairs.
    """
    if settings.aspects != "apart":
        return []
    aspects = sorted({pair.aspect for pair in pairs})
    return aspects if len(aspects) > 1 else []


def _halves_of_aspect(
    pairs: Sequence[Pair], settings: FitSettings, aspect: str, train_subsets: tuple[str, ...]
) -> list[Half]:
    """Halves of one aspect's pairs, or of all pairs for ""; a `train` that is a number is split
    between the aspects.
    """
    pair_numbers = np.array(
        [number for number, pair in enumerate(pairs) if aspect in ("", pair.aspect)], dtype=np.intp
    )
    aspect_pairs = [pairs[number] for number in pair_numbers]
    groups = np.array([pair.group for pair in aspect_pairs])
    first_better = np.array([pair.label == 1 for pair in aspect_pairs], dtype=bool)
    train_share = settings.train
    if train_share >= 1:
        train_share *= len(aspect_pairs) / len(pairs)
    train_from = None
    if train_subsets:
        train_from = np.array([pair.subset in train_subsets for pair in aspect_pairs], dtype=bool)

    aspect_halves: list[Half] = []
    aspect_label = f"{aspect}: " if aspect else ""
    for seed in range(settings.seeds):
        train, test = halves(
            groups, seed, grouped=settings.grouped, train_from=train_from, train=train_share
        )
        try:
            check_labels(first_better[train], groups[train], folds=settings.folds)
        except ValueError as error:
            raise ValueError(f"{aspect_label}{error}") from None
        if not len(test):
            raise ValueError(
                f"{aspect_label}{train_share:g} pairs are to train, of {len(aspect_pairs)} of "
                f"{len(set(groups))} questions: none is left to test. Train on fewer, or give more "
                "pairs (--limit)"
            )
        few = train[few_label_pairs(settings.orientation, len(train), seed=seed)]
        aspect_halves.append(
            Half(pair_numbers[train], pair_numbers[test], pair_numbers[few], aspect)
        )
    return aspect_halves


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
    inputs = fit_inputs(harvest, settings, train_subsets=train_subsets)
    splits = list(inputs.halves)
    fits = Fits.empty(harvest, settings, splits)
    layer_count = harvest.identity.layers
    started = time.monotonic()
    for layer, half_numbers, layer_fits in _layer_fits(harvest, inputs, processes):
        for half_number, layer_fit in zip(half_numbers, layer_fits, strict=True):
            fits.add(half_number, layer, layer_fit)
        if half_numbers[-1] == len(splits) - 1:
            seconds_a_layer = (time.monotonic() - started) / (layer + 1)
            seconds_left = seconds_a_layer * (layer_count - layer - 1)
            progress(f"layer {layer + 1} of {layer_count} fitted, {seconds_left:.0f} s left")
    return fits


def fit_inputs(
    harvest: Harvest, settings: FitSettings, *, train_subsets: tuple[str, ...] = ()
) -> FitInputs:
    """What the fits of all halves need besides the states; ValueError as `split_pairs`."""
    splits = split_pairs(harvest.pairs, settings, train_subsets=train_subsets)
    model_answers = own_answers(harvest).mean(axis=1) - 0.5
    return FitInputs(settings, splits, harvest.labels == 1, harvest.groups, model_answers)


def _layer_fits(
    harvest: Harvest, inputs: FitInputs, processes: int
) -> Iterator[tuple[int, list[int], list[LayerFit]]]:
    """Triples (place of a layer, numbers of halves, a fit per half) in order; each layer's states
    are read once.
    """
    half_numbers = list(range(len(inputs.halves)))
    if processes == 1:
        for layer, block in enumerate(harvest.layers):
            states = harvest.layer(block)
            yield layer, half_numbers, fit_layer(states, inputs, block, half_numbers)
        return

    from joblib import Parallel, delayed, parallel_config

    def fit_calls() -> Iterator[Any]:
        for block in harvest.layers:
            states = harvest.layer(block)
            for half_number in half_numbers:
                yield delayed(fit_layer)(states, inputs, block, [half_number])

    with parallel_config(backend="loky", inner_max_num_threads=1):
        results = iter(Parallel(n_jobs=processes, return_as="generator")(fit_calls()))
        for layer in range(len(harvest.layers)):
            for half_number in half_numbers:
                yield layer, [half_number], next(results)


def estimate(
    scores: Scores,
    first_better: BoolArray,
    groups: npt.NDArray[Any],
    metric: str,
    *,
    resamples: int,
    learnt: BoolArray | None = None,
    subtracted_scores: Scores | None = None,
    seed: int = 0,
) -> Estimate:
    """Mean over `scores` [column, pair] (seeds, random directions; NaN: not tested) of a metric,
    with its interval.

    Questions are resampled, and all columns with them, so that a pair tested under several seeds
    counts as one. The interval is then widened, for the pairs whose label one column's fit saw
    (`learnt`, [column, pair]) and another column is tested on: the variance by `dependence`, as far
    as it is `own_share`. It holds for the probes as fitted.

    With `subtracted_scores`, of the same shape, the estimate is the paired difference of `scores`
    from these.
    """
    if subtracted_scores is not None:
        is_missing = np.isnan(scores) | np.isnan(subtracted_scores)
        scores = np.where(is_missing, np.nan, scores)
        subtracted_scores = np.where(is_missing, np.nan, subtracted_scores)
    is_tested = ~np.isnan(scores)
    used_columns = is_tested.any(axis=1)
    tested_pairs = is_tested.any(axis=0)
    if not tested_pairs.any():
        return undefined("no pair was tested", unit="question")

    truth = first_better[tested_pairs]
    parts = [scores[used_columns][:, tested_pairs].T]  # [pair, column]
    if subtracted_scores is not None:
        parts.append(subtracted_scores[used_columns][:, tested_pairs].T)
    if metric != "auroc":
        parts = [_outcomes(part, truth) for part in parts]
    rate_columns = {"auroc": _auroc, "f1": _f1, "accuracy": _accuracy}[metric]
    column_values: list[Scores] = []  # [column], of the data and then of every resample

    def mean_over_columns(truth: BoolArray, *parts: Scores) -> float:
        values = rate_columns(parts[0], truth)
        if len(parts) > 1:
            values = values - rate_columns(parts[1], truth)
        column_values.append(values)
        return float(values.mean())

    question_estimate = bootstrap(
        mean_over_columns,
        truth,
        *parts,
        clusters=groups[tested_pairs],
        rng=np.random.default_rng(seed),
        resamples=resamples,
        unit="question",
    )
    if learnt is None or math.isnan(question_estimate.low):
        return question_estimate

    further_variance = dependence(learnt, is_tested) - 1
    share = 0.0
    if further_variance:
        resampled_values = np.array(column_values[1 : resamples + 1])
        share = own_share(resampled_values, learnt[used_columns], is_tested[used_columns])
    factor = math.sqrt(1 + share * further_variance)
    floor = 0.0 if subtracted_scores is None else -1.0
    return _widened(question_estimate, factor, floor=floor)


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
    shared_squares = ((trains @ trains.T) * (tests @ tests.T)).sum()
    if not shared_squares:
        return 1.0
    return float(1 + (crossed * crossed.T).sum() / shared_squares)


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
    test_sizes, train_sizes = tests.sum(axis=1), np.maximum(trains.sum(axis=1), 1)
    test_overlap = (tests @ tests.T) / np.outer(test_sizes, test_sizes)
    train_overlap = (trains @ trains.T) / np.sqrt(np.outer(train_sizes, train_sizes))
    own_weights = test_overlap * 2 / np.pi * np.arcsin(np.clip(train_overlap, 0, 1))

    # Aspects that are fitted apart share questions, but no pair.
    is_other_column = ~np.eye(len(tests), dtype=bool) & (test_overlap > 0)
    overlap_of_others = test_overlap[is_other_column].sum()
    distinct_share = 1 - own_weights[is_other_column].sum() / max(overlap_of_others, 1e-12)
    if len(drawn) < 2 or not is_other_column.any() or distinct_share < 1e-6:
        return 1.0

    covariance = np.cov(drawn, rowvar=False)
    if not covariance.sum() > 0:
        return 1.0
    column_variance = float(np.trace(covariance) / np.trace(test_overlap))
    common_variance = covariance[is_other_column].sum() / overlap_of_others
    own_variance = (column_variance - common_variance) / distinct_share
    return float(np.clip(own_variance * own_weights.sum() / covariance.sum(), 0, 1))


def _widened(narrow: Estimate, factor: float, *, floor: float) -> Estimate:
    """The interval, wider by a factor on each side of the value, within `floor` and 1."""
    low = narrow.value + factor * (narrow.low - narrow.value)
    high = narrow.value + factor * (narrow.high - narrow.value)
    return replace(narrow, low=float(np.maximum(low, floor)), high=float(np.minimum(high, 1.0)))


# F1 and accuracy of all columns at a time and from counts: a resample then costs microseconds.


def _outcomes(columns: Scores, truth: BoolArray) -> Scores:
    """[pair, column, (true 1 predicted 1, 2, tied; true 2 predicted 1, 2, tied)] of scores [pair,
    column], 1 or 0; NaN: none.
    """
    predictions = (columns > 0, columns < 0, columns == 0)
    outcomes: list[Scores] = []
    for is_true in (truth, ~truth):
        outcomes += [(is_true[:, None] & predicted).astype(float) for predicted in predictions]
    return np.stack(outcomes, axis=2)


def _f1(outcomes: Scores, _: BoolArray) -> Scores:
    right_1, wrong_1, tied_1, wrong_2, right_2, tied_2 = outcomes.sum(axis=0).T
    predicted_counts = [right_1 + wrong_2, wrong_1 + right_2]
    true_counts = [right_1 + wrong_1 + tied_1, wrong_2 + right_2 + tied_2]
    return f1_of_counts([right_1, right_2], predicted_counts, true_counts)


def _accuracy(outcomes: Scores, _: BoolArray) -> Scores:
    right_1, wrong_1, tied_1, wrong_2, right_2, tied_2 = outcomes.sum(axis=0).T
    right = right_1 + right_2 + (tied_1 + tied_2) / 2
    total = right_1 + wrong_1 + tied_1 + wrong_2 + right_2 + tied_2
    with np.errstate(invalid="ignore"):
        return np.asarray(right / total)


def _auroc(columns: Scores, truth: BoolArray) -> Scores:
    return np.array([auroc(truth, column) for column in columns.T])
