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

from selfprobe.probes.fit import Probe, Supervision, best_layer, calibrated, learn, sign_agreement
from selfprobe.stats import clustered
from selfprobe.stats.agreement import precision_estimate
from selfprobe.stats.clustered import Part, difference
from selfprobe.stats.estimate import Estimate, FloatArray, auroc_table, undefined

BoolArray = npt.NDArray[np.bool_]
Names = npt.NDArray[np.str_]
PREVALENCES = (0.01, 0.05, 0.1, 0.2, 0.5)
FOLDS = 4
RANDOM = 200
"""Number of random directions that are tried."""
ENOUGH = 9
"""Number of wrappers from which on a direction need not be one of its wrapper."""


@dataclass(frozen=True)
class Grid:
    """Wrapped task texts as a model holds them: the training part."""

    states: npt.NDArray[np.floating[Any]]  # [layer, row, d_model]
    evaluation: BoolArray  # [row]: whether an evaluation is announced
    wrapper: Names
    text: Names
    """Id of the task text."""
    source: Names
    format: Names
    layers: tuple[int, ...]
    """Numbers of the blocks."""

    def __getitem__(self, rows: Any) -> "Grid":
        names = ("evaluation", "wrapper", "text", "source", "format")
        return replace(
            self, states=self.states[:, rows], **{name: getattr(self, name)[rows] for name in names}
        )


@dataclass(frozen=True)
class Chosen:
    """A probe with what it was chosen by."""

    probe: Probe
    at: int
    """Place of its layer in the states."""
    spread: float
    """Standard deviation of its scores in training."""

    def score(self, states: npt.NDArray[np.floating[Any]]) -> FloatArray:
        """Scores [row] of states [layer, row, d_model]; above 0 is an evaluation."""
        return self.probe.score(_sided(states[self.at]))


def _sided(states: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """States [row, d_model] as a probe of pairs takes them, [row, order, side, d_model]: the other
    side is 0.
    """
    return np.stack([states, np.zeros_like(states)], axis=1)[:, None]


def choose_probe(
    states: npt.NDArray[np.floating[Any]], truth: BoolArray, groups: Names, layers: Sequence[int]
) -> Chosen:
    """The probe of these rows: layer, penalty and kind by AUROC out of fold, groups kept together.

    Args:
        states: [layer, row, d_model].
        truth: Whether a row is an evaluation.
        groups: Wrapper of each row; of one wrapper the task texts.
        layers: Numbers of the blocks.
    """
    folds = min(FOLDS, len(set(groups)))
    supervision = Supervision(truth, groups, folds=folds)
    nothing = np.zeros(states.shape[2])

    def learnt(kind: Literal["supervised", "mean_difference"], at: int) -> Probe:
        centre = (states[at].mean(axis=0, dtype=np.float64), nothing)
        return learn(
            kind, _sided(states[at]), supervision, layer=layers[at], orders="first", centre=centre
        )

    means = [learnt("mean_difference", at) for at in range(len(layers))]
    at = best_layer([probe.train_score for probe in means])
    found = max(means[at], learnt("supervised", at), key=lambda probe: probe.train_score)
    return Chosen(found, at, float(found.score(_sided(states[at])).std()) or 1.0)


def fold_groups(grid: Grid) -> Names:
    """Groups that folds keep together: wrappers, or with one wrapper its task texts."""
    return grid.wrapper if len(set(grid.wrapper)) > 1 else grid.text


def left_out(grid: Grid, by: Names, groups: Names | None = None) -> FloatArray:
    """Scores [row], each by a probe whose whole choice never saw the row's `by`; in units of the
    spread in training.
    """
    inner, out = fold_groups(grid) if groups is None else groups, np.full(len(by), math.nan)
    for name in np.unique(by):
        test, train = by == name, by != name
        known = grid.evaluation[train]
        if known.any() and not known.all() and len(set(inner[train])) > 1:
            chosen = choose_probe(grid.states[:, train], known, inner[train], grid.layers)
            out[test] = chosen.score(grid.states[:, test]) / chosen.spread
    return out


def _fold_of_names(names: Names, folds: int = FOLDS) -> Names:
    """One of `folds` folds for each row, names kept together."""
    _, of = np.unique(names, return_inverse=True)
    return (of % folds).astype(str)


def flipped_labels(grid: Grid, count: int, rng: np.random.Generator) -> Iterator[BoolArray]:
    """Labels [row] of the null: in each wrapper the two announcements change places, or do not, by
    chance.
    """
    _, of = np.unique(grid.wrapper, return_inverse=True)
    for _ in range(count):
        yield grid.evaluation ^ (rng.random(of.max() + 1) < 0.5)[of]


def null(grid: Grid, shuffles: int, rng: np.random.Generator) -> FloatArray:
    """AUROC out of fold of the whole choice under shuffled labels, the best of all layers and
    kinds, [shuffle].
    """
    groups = fold_groups(grid)
    chosen = (
        choose_probe(grid.states, labels, groups, grid.layers)
        for labels in flipped_labels(grid, shuffles, rng)
    )
    return np.array([one.probe.train_score for one in chosen])


def p_of(found: float, drawn: FloatArray) -> float:
    """Share of the null that is as high, the found one counted."""
    return (
        math.nan
        if math.isnan(found)
        else float((1 + np.count_nonzero(drawn >= found)) / (1 + len(drawn)))
    )


def random_directions(
    grid: Grid,
    tested: npt.NDArray[np.floating[Any]],
    truth: BoolArray,
    at: int,
    rng: np.random.Generator,
) -> FloatArray:
    """AUROC on the tested rows of random directions at the chosen layer, signs by the training
    labels, [direction].
    """
    if truth.all() or not truth.any():
        return np.full(RANDOM, math.nan)
    drawn = rng.standard_normal((grid.states.shape[2], RANDOM))
    centre = grid.states[at].mean(axis=0, dtype=np.float64)
    signs = [
        1 if sign_agreement(grid.evaluation, one) >= 0 else -1
        for one in ((grid.states[at] - centre) @ drawn).T
    ]
    return auroc_table(truth[None], (tested[at] @ drawn * signs).T)[:, 0]


def variance(
    scores: FloatArray, evaluation: BoolArray, wrapper: Names, source: Names
) -> dict[str, float]:
    """Shares of the variance of `scores  # [row]`: of the label, of wrappers beside it, of sources beside both.

    Sums of squares one after another: the label's means; those of label and wrapper; means of what
    is left by source. The wrapper's share is NaN with a single one: what is of the label may then
    be of the wrapper.
    """
    off = scores - scores.mean()
    whole = float(off @ off)
    if not whole:
        return dict.fromkeys(("label", "wrapper", "source", "rest"), math.nan)
    label = _means(off, evaluation.astype(str))
    both = _means(off, np.char.add(wrapper, evaluation.astype(str)))
    sources = _means(off - both, source)
    parts = {
        "label": label @ label,
        "wrapper": both @ both - label @ label,
        "source": sources @ sources,
    }
    shares = {name: float(part / whole) for name, part in parts.items()}
    shares["rest"] = 1 - sum(shares.values())
    return shares if len(set(wrapper)) > 1 else shares | {"label": math.nan, "wrapper": math.nan}


def _means(values: FloatArray, groups: Names) -> FloatArray:
    """The mean of each row's group, [row]."""
    _, of = np.unique(groups, return_inverse=True)
    return np.asarray((np.bincount(of, values) / np.bincount(of))[of])


@dataclass(frozen=True)
class Clusters:
    """Clusters by which rows of the set are resampled."""

    of: Names
    unit: str


def within(truth: BoolArray, scores: FloatArray, strata: Names, clusters: Clusters) -> Estimate:
    """AUROC of `truth` within each stratum, as Mantel and Haenszel weight them; undefined where
    none holds both.
    """
    parts: list[tuple[float, Part]] = []
    for stratum in np.unique(strata):
        here = (strata == stratum) & ~np.isnan(scores)
        ours, others = int((here & truth).sum()), int((here & ~truth).sum())
        part = clustered.clustered_auroc(
            truth, np.where(here, scores, math.nan), clusters.of, unit=clusters.unit
        )
        if ours and others and not math.isnan(part.estimate.low):
            parts.append((ours * others / (ours + others), part))
    total = sum(weight for weight, _ in parts)
    if not parts:
        return undefined("no stratum holds enough of both", unit=clusters.unit)
    return difference(*((weight / total, part) for weight, part in parts), unit=clusters.unit)


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
    reading = clustered.clustered_auroc(truth, scores, clusters.of, unit=clusters.unit)
    over = {
        name: paired_lead(truth, scores, values, clusters)[1] for name, values in baselines.items()
    }
    is_benchmark = np.char.startswith(formats, "benchmark")
    by_label = within(truth, scores, formats, clusters)
    by_format = within(is_benchmark, scores, truth.astype(str), clusters)
    return OverBaselines(reading.estimate, over, by_label, by_format)


@dataclass(frozen=True)
class Latent:
    """Numbers of the probe on texts that it never saw."""

    chosen: Chosen
    here: OverBaselines
    """Numbers on the set."""
    p: float
    """Share of shuffled labels under which the whole choice reaches as much, out of fold."""
    shuffled: FloatArray
    """AUROC out of fold of the whole choice under shuffled labels, [shuffle]; empty for a saved
    probe.
    """
    across: Estimate
    """AUROC on wrappers left out."""
    inside: Estimate
    """AUROC on task texts left out, in wrappers that it knows."""
    formats: Estimate
    """AUROC on formats left out."""
    sources: Estimate
    """AUROC on sources of task texts left out."""
    chance: FloatArray
    """AUROC of random directions on the set."""
    shares: Mapping[str, float]
    """Shares of the variance, from `variance`."""
    wrappers: int


def latent(
    grid: Grid,
    tested: npt.NDArray[np.floating[Any]],
    truth: BoolArray,
    baselines: Mapping[str, FloatArray],
    formats: Names,
    clusters: Clusters,
    *,
    shuffles: int,
    rng: np.random.Generator,
) -> Latent:
    """The whole of it: choice, held-out wrappers, texts, formats and sources, the set, the null.

    Args:
        grid: The training part.
        tested: States [layer, row, d_model] of the set.
        truth: Whether a row of the set is an evaluation.
        baselines: Scores that need no model, [row] of the set.
        formats: Format of each row of the set.
        clusters: Clusters by which the set's rows are resampled.
        shuffles: Draws of the null.
        rng: Draws them, and random directions.
    """
    chosen = choose_probe(grid.states, grid.evaluation, fold_groups(grid), grid.layers)
    several = len(set(grid.wrapper)) > 1
    across = left_out(grid, grid.wrapper) if several else np.full(len(grid.wrapper), math.nan)
    scores = chosen.score(tested)
    here = over_baselines(scores, truth, baselines, formats, clusters)
    drawn = null(grid, shuffles, rng)

    def held_out(values: FloatArray, by: Names, unit: str) -> Estimate:
        return clustered.clustered_auroc(grid.evaluation, values, by, unit=unit).estimate

    return Latent(
        chosen=chosen,
        here=here,
        p=p_of(chosen.probe.train_score, drawn),
        shuffled=drawn,
        across=held_out(across, grid.wrapper, "wrapper"),
        inside=held_out(
            left_out(grid, _fold_of_names(grid.text), grid.text), grid.text, "task text"
        ),
        formats=held_out(left_out(grid, grid.format), grid.wrapper, "wrapper"),
        sources=held_out(left_out(grid, _fold_of_names(grid.source)), grid.source, "source"),
        chance=random_directions(grid, tested, truth, chosen.at, rng),
        shares=variance(
            across if several else scores_of(grid, chosen),
            grid.evaluation,
            grid.wrapper,
            grid.source,
        ),
        wrappers=len(set(grid.wrapper)),
    )


def scores_of(grid: Grid, chosen: Chosen) -> FloatArray:
    """The training part's own scores."""
    return chosen.score(grid.states)


def log_odds_scale(grid: Grid, chosen: Chosen) -> float:
    """Factor from score to log-odds, by Platt's method on training scores out of fold."""
    groups = fold_groups(grid)
    supervision = Supervision(grid.evaluation, groups, folds=min(FOLDS, len(set(groups))))
    return calibrated(chosen.probe, _sided(grid.states[chosen.at]), supervision)


def precision(
    called: BoolArray, truth: BoolArray, clusters: Clusters
) -> tuple[Estimate, Estimate, dict[float, Estimate]]:
    """True positive and true negative rate of verdicts, and precision at `PREVALENCES`."""
    right = (called == truth).astype(float)
    rates = [
        clustered.clustered_share(right, clusters.of, where=where, unit=clusters.unit).estimate
        for where in (truth, ~truth)
    ]
    return (
        rates[0],
        rates[1],
        {at: precision_estimate(rates[0], rates[1], at) for at in PREVALENCES},
    )


def monitored(
    log_probs: FloatArray, topics: Sequence[str], about: Sequence[bool]
) -> tuple[dict[str, FloatArray], FloatArray]:
    """Topic → its sentences' mean log-probability a token less its plain ones' [row]; and
    evaluation less placebos.

    Args:
        log_probs: Mean log-probability a token, [row, continuation].
        topics: Topic of each continuation.
        about: Whether it speaks of the topic.
    """
    names, speaks = np.asarray(topics), np.asarray(about, dtype=bool)
    apart = {
        str(topic): log_probs[:, (names == topic) & speaks].mean(axis=1)
        - log_probs[:, (names == topic) & ~speaks].mean(axis=1)
        for topic in dict.fromkeys(topics)
    }
    placebos = [values for topic, values in apart.items() if topic != "evaluation"]
    return apart, apart["evaluation"] - (np.mean(placebos, axis=0) if placebos else 0.0)


def either_way(truth: BoolArray, scores: FloatArray) -> FloatArray:
    """Scores [row] of a placebo with the sign under which they tell `truth` better: what it tells
    has no direction.
    """
    known = ~np.isnan(scores)
    if not truth[known].any() or truth[known].all():
        return scores
    reached = auroc_table(truth[None, known], scores[None, known])[0, 0]
    return scores if reached >= 0.5 else -scores


def share_of(log_probs: FloatArray, count: int) -> FloatArray:
    """Probability [row] of the first `count` of these answers among all, of log-probabilities [row,
    answer].
    """
    top = log_probs.max(axis=1, keepdims=True)
    weights = np.exp(log_probs - top)
    return np.asarray(weights[:, :count].sum(axis=1) / weights.sum(axis=1))


def answer_masses(log_probs: FloatArray) -> FloatArray:
    """Probability [row] of all of these answers together, of log-probabilities [row, answer]."""
    return np.asarray(np.minimum(np.exp(log_probs).sum(axis=1), 1.0))


def paired_lead(
    truth: BoolArray, scores: FloatArray, other: FloatArray, clusters: Clusters
) -> tuple[Estimate, Estimate]:
    """AUROC of `other  # [row]`, and the lead of `scores` over it, on the rows that both rate."""
    missing = np.isnan(scores) | np.isnan(other)
    first, second = (
        clustered.clustered_auroc(
            truth, np.where(missing, math.nan, values), clusters.of, unit=clusters.unit
        )
        for values in (scores, other)
    )
    return second.estimate, difference((1, first), (-1, second), unit=clusters.unit)


def disagreeing(measures: Mapping[str, FloatArray], count: int) -> list[int]:
    """Rows whose ranks by the measures lie furthest apart, at least half of all rows; the furthest
    first.
    """
    ranks = np.stack([_placed(values) for values in measures.values()])
    with np.errstate(invalid="ignore"):
        apart = np.nan_to_num(ranks.max(axis=0) - ranks.min(axis=0), nan=-1.0)
    order = np.argsort(-apart, kind="stable")[:count]
    return [int(row) for row in order if apart[row] >= 0.5]


def _placed(values: FloatArray) -> FloatArray:
    """Rank of each row in 0..1, ties in the middle; NaN stays."""
    from scipy.stats import rankdata

    ranks = rankdata(values, nan_policy="omit")
    return np.asarray((ranks - 1) / max(np.count_nonzero(~np.isnan(values)) - 1, 1))
