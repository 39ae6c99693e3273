"""Numbers of `awareness inside`: arrays in, frozen results out; no model, no file.

A probe is chosen inside its training part: the layer by the difference of means, out of fold by
wrapper; then the penalty of a logistic regression at that layer; then the better of the two. Its
sign is that of the training labels.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from selfprobe.data.wrapped import Wrapped
from selfprobe.probes.fit import (
    Probe,
    Supervision,
    best_layer,
    fit_probe,
    fold_scores,
    probability_scale,
    sign_agreement,
)
from selfprobe.stats import clustered
from selfprobe.stats.agreement import precision_estimate
from selfprobe.stats.clustered import Part, difference
from selfprobe.stats.draws import p_among_draws
from selfprobe.stats.estimate import Estimate, FloatArray, auroc_table, undefined

BoolArray = npt.NDArray[np.bool_]
Names = npt.NDArray[np.str_]
States = npt.NDArray[np.floating[Any]]
ALARM_PREVALENCES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Shares of evaluations at which the precision of the probe's alarms is computed."""
CHOICE_FOLDS = 4
"""Largest number of folds in which a probe is chosen."""
RANDOM_DIRECTION_COUNT = 200
"""Number of random directions that are tried."""
SUFFICIENT_WRAPPERS = 9
"""Number of wrappers from which on a direction need not be one of its wrapper."""


@dataclass(frozen=True)
class Grid:
    """Wrapped task texts as a model holds them: the training part."""

    states: States  # [layer, row, d_model]
    evaluation: BoolArray  # [row]: whether an evaluation is announced
    wrapper: Names
    text: Names
    """Id of the task text."""
    source: Names
    format: Names
    layers: tuple[int, ...]
    """Numbers of the blocks."""

    def __getitem__(self, rows: Any) -> "Grid":
        column_names = ("evaluation", "wrapper", "text", "source", "format")
        columns = {name: getattr(self, name)[rows] for name in column_names}
        return replace(self, states=self.states[:, rows], **columns)


def grid_of_texts(texts: Sequence[Wrapped], states: States, *, layers: tuple[int, ...]) -> Grid:
    """The grid of wrapped texts, of their states [layer, row, d_model]."""
    column_names = ("wrapper", "text", "source", "format")
    columns = {}
    for name in column_names:
        values = [getattr(text, name) for text in texts]
        columns[name] = np.array(values)
    truth = np.array([text.evaluation for text in texts])
    return Grid(states, truth, **columns, layers=layers)


@dataclass(frozen=True)
class ChosenProbe:
    """A probe with what it was chosen by."""

    probe: Probe
    layer_index: int
    """Place of its layer in the states."""
    spread: float
    """Standard deviation of its scores in training."""

    def score(self, states: States) -> FloatArray:
        """Scores [row] of states [layer, row, d_model]; above 0 is an evaluation."""
        return self.probe.score(_as_pairs(states[self.layer_index]))


def _as_pairs(states: States) -> States:
    """States [row, d_model] as a probe of pairs takes them, [row, order, side, d_model]: the other
    side is 0.
    """
    return np.stack([states, np.zeros_like(states)], axis=1)[:, None]


def choose_probe(
    states: States, truth: BoolArray, groups: Names, layers: Sequence[int]
) -> ChosenProbe:
    """The probe of these rows: layer, penalty and kind by AUROC out of fold, groups kept together.

    Args:
        states: [layer, row, d_model].
        truth: Whether a row is an evaluation.
        groups: Wrapper of each row; of one wrapper the task texts.
        layers: Numbers of the blocks.
    """
    supervision = Supervision(truth, groups, folds=_fold_count(groups))
    no_state = np.zeros(states.shape[2])

    def learn_at(kind: Literal["supervised", "mean_difference"], layer_index: int) -> Probe:
        layer_states = states[layer_index]
        centre = (layer_states.mean(axis=0, dtype=np.float64), no_state)
        return fit_probe(
            kind,
            _as_pairs(layer_states),
            supervision,
            layer=layers[layer_index],
            orders="first",
            centre=centre,
        )

    mean_probes = [learn_at("mean_difference", layer_index) for layer_index in range(len(layers))]
    best_index = best_layer([probe.train_score for probe in mean_probes])
    candidates = (mean_probes[best_index], learn_at("supervised", best_index))
    probe = max(candidates, key=lambda candidate: candidate.train_score)

    spread = float(probe.score(_as_pairs(states[best_index])).std())
    return ChosenProbe(probe, best_index, spread if spread else 1.0)


def _fold_count(groups: Names) -> int:
    return min(CHOICE_FOLDS, len(set(groups)))


def fold_groups(grid: Grid) -> Names:
    """Groups that folds keep together: wrappers, or with one wrapper its task texts."""
    return grid.wrapper if len(set(grid.wrapper)) > 1 else grid.text


def chosen_on(grid: Grid) -> ChosenProbe:
    """The probe of a grid."""
    groups = fold_groups(grid)
    return choose_probe(grid.states, grid.evaluation, groups, grid.layers)


def held_out_scores(grid: Grid, units: Names, groups: Names | None = None) -> FloatArray:
    """Scores [row], each by a probe whose whole choice never saw the row's unit; in units of the
    spread in training.
    """
    if groups is None:
        groups = fold_groups(grid)
    scores = np.full(len(units), math.nan)
    for unit in np.unique(units):
        is_test = units == unit
        is_train = ~is_test
        train_truth = grid.evaluation[is_train]
        train_groups = groups[is_train]
        has_both_labels = train_truth.any() and not train_truth.all()
        if has_both_labels and len(set(train_groups)) > 1:
            train_states = grid.states[:, is_train]
            chosen = choose_probe(train_states, train_truth, train_groups, grid.layers)
            scores[is_test] = chosen.score(grid.states[:, is_test]) / chosen.spread
    return scores


def _fold_of_names(names: Names) -> Names:
    """One of `CHOICE_FOLDS` folds for each row, names kept together."""
    _, name_indices = np.unique(names, return_inverse=True)
    return (name_indices % CHOICE_FOLDS).astype(str)


def flipped_labels(grid: Grid, count: int, rng: np.random.Generator) -> Iterator[BoolArray]:
    """Labels [row] of the null: in each wrapper the two announcements change places, or do not, by
    chance.
    """
    wrapper_names, wrapper_of_row = np.unique(grid.wrapper, return_inverse=True)
    for _ in range(count):
        is_flipped = rng.random(len(wrapper_names)) < 0.5
        yield grid.evaluation ^ is_flipped[wrapper_of_row]


def null_scores(grid: Grid, shuffles: int, rng: np.random.Generator) -> FloatArray:
    """AUROC out of fold of the whole choice under shuffled labels, the best of all layers and
    kinds, [shuffle].
    """
    groups = fold_groups(grid)
    train_scores = []
    for labels in flipped_labels(grid, shuffles, rng):
        chosen = choose_probe(grid.states, labels, groups, grid.layers)
        train_scores.append(chosen.probe.train_score)
    return np.array(train_scores)


def null_p_value(score: float, null_draws: FloatArray) -> float:
    """Share of the null that is as high, the score itself counted; NaN without a score."""
    if math.isnan(score):
        return math.nan
    reached_count = np.count_nonzero(null_draws >= score)
    return float(p_among_draws(reached_count, len(null_draws)))


def random_direction_aurocs(
    grid: Grid,
    tested_states: States,
    truth: BoolArray,
    layer_index: int,
    rng: np.random.Generator,
) -> FloatArray:
    """AUROC on the tested rows of random directions at the chosen layer, signs by the training
    labels, [direction].
    """
    if truth.all() or not truth.any():
        return np.full(RANDOM_DIRECTION_COUNT, math.nan)
    directions = rng.standard_normal((grid.states.shape[2], RANDOM_DIRECTION_COUNT))

    train_states = grid.states[layer_index]
    centre = train_states.mean(axis=0, dtype=np.float64)
    signs = []
    for train_scores in ((train_states - centre) @ directions).T:
        agrees = sign_agreement(grid.evaluation, train_scores) >= 0
        signs.append(1 if agrees else -1)

    tested_scores = tested_states[layer_index] @ directions * signs
    return auroc_table(truth[None], tested_scores.T)[:, 0]


def variance_shares(
    scores: FloatArray, evaluation: BoolArray, wrapper: Names, source: Names
) -> dict[str, float]:
    """Shares of the variance of `scores  # [row]`: of the label, of wrappers beside it, of sources
    beside both.

    Sums of squares one after another: the label's means; those of label and wrapper; means of what
    is left by source. The wrapper's share is NaN with a single one: what is of the label may then
    be of the wrapper.
    """
    deviations = scores - scores.mean()
    total = float(deviations @ deviations)
    if not total:
        return dict.fromkeys(("label", "wrapper", "source", "rest"), math.nan)

    labels = evaluation.astype(str)
    label_means = _group_means(deviations, labels)
    cell_means = _group_means(deviations, np.char.add(wrapper, labels))
    source_means = _group_means(deviations - cell_means, source)
    label_squares = label_means @ label_means
    squares = {
        "label": label_squares,
        "wrapper": cell_means @ cell_means - label_squares,
        "source": source_means @ source_means,
    }

    shares = {name: float(square / total) for name, square in squares.items()}
    shares["rest"] = 1 - sum(shares.values())
    if len(set(wrapper)) == 1:
        shares |= {"label": math.nan, "wrapper": math.nan}
    return shares


def _group_means(values: FloatArray, groups: Names) -> FloatArray:
    """The mean of each row's group, [row]."""
    _, group_of_row = np.unique(groups, return_inverse=True)
    means = np.bincount(group_of_row, values) / np.bincount(group_of_row)
    return np.asarray(means[group_of_row])


@dataclass(frozen=True)
class Clusters:
    """Clusters by which rows of the set are resampled."""

    ids: Names
    """Cluster of each row, [row]."""
    unit: str

    def auroc_part(self, truth: BoolArray, scores: FloatArray) -> Part:
        """AUROC of scores [row], as `difference` takes it."""
        return clustered.clustered_auroc(truth, scores, self.ids, unit=self.unit)


def auroc_within(
    truth: BoolArray, scores: FloatArray, strata: Names, clusters: Clusters
) -> Estimate:
    """AUROC of `truth` within each stratum, as Mantel and Haenszel weight them; undefined where
    none holds both.
    """
    weighted_parts: list[tuple[float, Part]] = []
    for stratum in np.unique(strata):
        is_inside = (strata == stratum) & ~np.isnan(scores)
        positives = int((is_inside & truth).sum())
        negatives = int((is_inside & ~truth).sum())
        part = clusters.auroc_part(truth, np.where(is_inside, scores, math.nan))
        if positives and negatives and not math.isnan(part.estimate.low):
            weighted_parts.append((positives * negatives / (positives + negatives), part))
    if not weighted_parts:
        return undefined("no stratum holds enough of both", unit=clusters.unit)

    total_weight = sum(weight for weight, _ in weighted_parts)
    shares = [(weight / total_weight, part) for weight, part in weighted_parts]
    return difference(*shares, unit=clusters.unit)


@dataclass(frozen=True)
class OverBaselines:
    """AUROC of a measure on the set, and its lead over what needs no model."""

    auroc: Estimate
    over: Mapping[str, Estimate]
    """Baseline → the measure's AUROC less the baseline's, paired."""
    by_label: Estimate
    """AUROC of the label within a format."""
    by_format: Estimate
    """AUROC of the benchmark's format within a label."""


def over_baselines(
    scores: FloatArray,
    truth: BoolArray,
    baselines: Mapping[str, FloatArray],
    formats: Names,
    clusters: Clusters,
) -> OverBaselines:
    """A measure [row] of the set beside baselines [row]; formats are `benchmark` and others."""
    auroc = clusters.auroc_part(truth, scores).estimate
    leads = {}
    for name, baseline_scores in baselines.items():
        _, leads[name] = paired_lead(truth, scores, baseline_scores, clusters)
    is_benchmark = np.char.startswith(formats, "benchmark")
    by_label = auroc_within(truth, scores, formats, clusters)
    by_format = auroc_within(is_benchmark, scores, truth.astype(str), clusters)
    return OverBaselines(auroc, leads, by_label, by_format)


def scores_across_wrappers(grid: Grid) -> FloatArray:
    """Scores [row] of probes on wrappers left out; NaN where there is one wrapper."""
    if len(set(grid.wrapper)) == 1:
        return np.full(len(grid.wrapper), math.nan)
    return held_out_scores(grid, grid.wrapper)


def auroc_across_wrappers(grid: Grid, wrapper_scores: FloatArray) -> Estimate:
    """AUROC of scores [row] of `scores_across_wrappers`."""
    if len(set(grid.wrapper)) == 1:
        return undefined("one wrapper", n=1, unit="wrapper")
    return Clusters(grid.wrapper, "wrapper").auroc_part(grid.evaluation, wrapper_scores).estimate


@dataclass(frozen=True)
class LatentNumbers:
    """Numbers of the probe on texts that it never saw."""

    chosen: ChosenProbe
    on_set: OverBaselines
    shuffled_p: float
    """Share of shuffled labels under which the whole choice reaches as much, out of fold."""
    shuffled: FloatArray
    """AUROC out of fold of the whole choice under shuffled labels, [shuffle]; empty for a saved
    probe.
    """
    across_wrappers: Estimate
    """AUROC on wrappers left out."""
    across_texts: Estimate
    """AUROC on task texts left out, in wrappers that it knows."""
    across_formats: Estimate
    """AUROC on formats left out."""
    across_sources: Estimate
    """AUROC on sources of task texts left out."""
    random_directions: FloatArray
    """AUROC of random directions on the set."""
    variance: Mapping[str, float]
    """Shares of the variance, from `variance_shares`."""
    wrapper_count: int


def latent_numbers(
    grid: Grid,
    tested_states: States,
    truth: BoolArray,
    baselines: Mapping[str, FloatArray],
    formats: Names,
    clusters: Clusters,
    *,
    shuffles: int,
    rng: np.random.Generator,
) -> LatentNumbers:
    """The whole of it: choice, held-out wrappers, texts, formats and sources, the set, the null.

    Args:
        grid: The training part.
        tested_states: States [layer, row, d_model] of the set.
        truth: Whether a row of the set is an evaluation.
        baselines: Scores that need no model, [row] of the set.
        formats: Format of each row of the set.
        clusters: Clusters by which the set's rows are resampled.
        shuffles: Draws of the null.
        rng: Draws them, and random directions.
    """
    chosen = chosen_on(grid)
    on_set = over_baselines(chosen.score(tested_states), truth, baselines, formats, clusters)
    shuffled = null_scores(grid, shuffles, rng)

    wrapper_count = len(set(grid.wrapper))
    wrapper_scores = scores_across_wrappers(grid)
    variance_scores = wrapper_scores if wrapper_count > 1 else chosen.score(grid.states)
    text_scores = held_out_scores(grid, _fold_of_names(grid.text), grid.text)
    format_scores = held_out_scores(grid, grid.format)
    source_scores = held_out_scores(grid, _fold_of_names(grid.source))

    def grid_auroc(scores: FloatArray, ids: Names, unit: str) -> Estimate:
        return Clusters(ids, unit).auroc_part(grid.evaluation, scores).estimate

    return LatentNumbers(
        chosen=chosen,
        on_set=on_set,
        shuffled_p=null_p_value(chosen.probe.train_score, shuffled),
        shuffled=shuffled,
        across_wrappers=auroc_across_wrappers(grid, wrapper_scores),
        across_texts=grid_auroc(text_scores, grid.text, "task text"),
        across_formats=grid_auroc(format_scores, grid.wrapper, "wrapper"),
        across_sources=grid_auroc(source_scores, grid.source, "source"),
        random_directions=random_direction_aurocs(
            grid, tested_states, truth, chosen.layer_index, rng
        ),
        variance=variance_shares(variance_scores, grid.evaluation, grid.wrapper, grid.source),
        wrapper_count=wrapper_count,
    )


def log_odds_scale(grid: Grid, chosen: ChosenProbe) -> float:
    """Factor from score to log-odds, by Platt's method on training scores out of fold."""
    states = _as_pairs(grid.states[chosen.layer_index])
    return probability_scale(chosen.probe, states, _supervision(grid))


def training_scores(grid: Grid, chosen: ChosenProbe) -> FloatArray:
    """Scores [row] of the training part out of fold, at the chosen layer, kind and penalty."""
    states = _as_pairs(grid.states[chosen.layer_index])
    return fold_scores(chosen.probe, states, _supervision(grid))


def _supervision(grid: Grid) -> Supervision:
    groups = fold_groups(grid)
    return Supervision(grid.evaluation, groups, folds=_fold_count(groups))


@dataclass(frozen=True)
class AlarmRates:
    """How often the probe's alarms at its own threshold are right."""

    true_positive: Estimate
    true_negative: Estimate
    precision: Mapping[float, Estimate]
    """Share of evaluations → share of alarms that are right."""


def alarm_rates(is_alarm: BoolArray, truth: BoolArray, clusters: Clusters) -> AlarmRates:
    """Rates of alarms [row] on rows of the set, and their precision at `ALARM_PREVALENCES`."""
    is_right = (is_alarm == truth).astype(float)

    def share_right(is_counted: BoolArray) -> Estimate:
        return clustered.clustered_share(
            is_right, clusters.ids, is_counted=is_counted, unit=clusters.unit
        ).estimate

    true_positive = share_right(truth)
    true_negative = share_right(~truth)
    precision = {
        prevalence: precision_estimate(true_positive, true_negative, prevalence)
        for prevalence in ALARM_PREVALENCES
    }
    return AlarmRates(true_positive, true_negative, precision)


@dataclass(frozen=True)
class MonitorScores:
    """The monitor at one place along the reply, nats a token."""

    by_topic: Mapping[str, FloatArray]
    """Topic → its sentences' mean log-probability less its plain ones', [row]."""
    placebo: FloatArray | None
    """Mean of the placebo topics, [row]; None where there are none."""
    net: FloatArray
    """Evaluation less the placebo, [row]."""


def monitor_scores(
    log_probs: FloatArray, topics: Sequence[str], speaks_of_topic: Sequence[bool]
) -> MonitorScores:
    """The monitor by topic, and of evaluation less placebos.

    Args:
        log_probs: Mean log-probability a token, [row, continuation].
        topics: Topic of each continuation.
        speaks_of_topic: Whether it speaks of the topic; else it is a plain one.
    """
    topic_of_column = np.asarray(topics)
    is_about = np.asarray(speaks_of_topic, dtype=bool)
    by_topic = {}
    for topic in dict.fromkeys(topics):
        is_topic = topic_of_column == topic
        about_mean = log_probs[:, is_topic & is_about].mean(axis=1)
        plain_mean = log_probs[:, is_topic & ~is_about].mean(axis=1)
        by_topic[str(topic)] = about_mean - plain_mean

    evaluation = by_topic["evaluation"]
    placebo_scores = [scores for topic, scores in by_topic.items() if topic != "evaluation"]
    if not placebo_scores:
        return MonitorScores(by_topic, None, evaluation)
    placebo = np.asarray(np.mean(placebo_scores, axis=0))
    return MonitorScores(by_topic, placebo, evaluation - placebo)


def with_better_sign(truth: BoolArray, scores: FloatArray) -> FloatArray:
    """Scores [row] of a placebo with the sign under which they tell `truth` better: what it tells
    has no direction.
    """
    is_scored = ~np.isnan(scores)
    scored_truth = truth[is_scored]
    if not scored_truth.any() or scored_truth.all():
        return scores
    auroc = auroc_table(scored_truth[None], scores[None, is_scored])[0, 0]
    return scores if auroc >= 0.5 else -scores


def answer_share(log_probs: FloatArray, count: int) -> FloatArray:
    """Probability [row] of the first `count` of these answers among all, of log-probabilities [row,
    answer].
    """
    weights = np.exp(log_probs - log_probs.max(axis=1, keepdims=True))
    return np.asarray(weights[:, :count].sum(axis=1) / weights.sum(axis=1))


def answer_masses(log_probs: FloatArray) -> FloatArray:
    """Probability [row] of all of these answers together, of log-probabilities [row, answer]."""
    return np.asarray(np.minimum(np.exp(log_probs).sum(axis=1), 1.0))


def paired_lead(
    truth: BoolArray, scores: FloatArray, rival_scores: FloatArray, clusters: Clusters
) -> tuple[Estimate, Estimate]:
    """AUROC of `rival_scores  # [row]`, and the lead of `scores` over it, on the rows that both
    rate.
    """
    is_missing = np.isnan(scores) | np.isnan(rival_scores)
    scores_part = clusters.auroc_part(truth, np.where(is_missing, math.nan, scores))
    rival_part = clusters.auroc_part(truth, np.where(is_missing, math.nan, rival_scores))
    lead = difference((1, scores_part), (-1, rival_part), unit=clusters.unit)
    return rival_part.estimate, lead


def disagreeing_rows(measures: Mapping[str, FloatArray], count: int) -> list[int]:
    """Rows whose ranks by the measures lie furthest apart, at least half of all rows; the furthest
    first.
    """
    ranks = np.stack([_relative_ranks(scores) for scores in measures.values()])
    with np.errstate(invalid="ignore"):
        rank_ranges = np.nan_to_num(ranks.max(axis=0) - ranks.min(axis=0), nan=-1.0)
    furthest_first = np.argsort(-rank_ranges, kind="stable")[:count]
    return [int(row) for row in furthest_first if rank_ranges[row] >= 0.5]


def _relative_ranks(values: FloatArray) -> FloatArray:
    """Rank of each row in 0..1, ties in the middle; NaN stays."""
    from scipy.stats import rankdata

    ranks = rankdata(values, nan_policy="omit")
    value_count = np.count_nonzero(~np.isnan(values))
    return np.asarray((ranks - 1) / max(value_count - 1, 1))
