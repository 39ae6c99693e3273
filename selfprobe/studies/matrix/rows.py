"""Everything that is claimed of one model is tested on its own row: its own cell, its habit, and
what needs no call.

A stand-in is another model's own reply, taken as a prediction of this one: models are alike, and
that is no knowledge of oneself.

The strongest control is what an observer reaches that was given a hint about the target (`-T
about=named`, `shown:N`): what a stranger learns from a name or a few examples is no privileged
access. A model is compared with the informed observer that comes closest to it, on the items that
both score.

Power is the own advantage with which a model would be named, and the items that it takes. A matrix
is drawn again and judged by the same test (`selfprobe.stats.pairs`): cells where skill alone would
put them, pairs that differ as they do there, one model's own cell plus an advantage, and the noise
of its items. Skill alone is the additive fit to the cells off the diagonal, on the scale on which
it fits best. What baselines, stand-ins, shared items and orders of observers ask for is left out,
and so is what votes of replies add (`selfprobe.stats.shared_items`).
"""

import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from selfprobe.scorers.decision import Measure
from selfprobe.stats.estimate import (
    Estimate,
    FloatArray,
    clustered_mean,
    mode_baseline,
    shifted,
    undefined,
)
from selfprobe.stats.lone_answers import LoneAnswers, lone_answers
from selfprobe.stats.pairs import (
    CONDITIONAL_STEPS,
    FEWEST_MODELS,
    Moments,
    OwnCells,
    fit_alone,
    moments,
    own_cells,
    steps_of,
)
from selfprobe.stats.shared_items import own_cells_of_hits
from selfprobe.stats.text_only import SMALLEST_TEXT_SAMPLE, text_only_observer
from selfprobe.studies.matrix.habit import ALL_ITEMS, ItemSpecificScores
from selfprobe.studies.matrix.table import Results, TaskMatrix, incomparable_cells, scores_by_item
from selfprobe.study._registry import measures, takes_about

Interval = Literal["difference", "t"]
"""Kinds of interval of a difference of scores; see `clustered_mean`."""
POWER_WANTED = 0.8
"""Share of matrices in which an advantage that a matrix detects is named."""
EFFECT = 0.1
"""Own advantage for which the number of items is computed."""
TRIED_EFFECTS = np.array(
    [0.03, 0.05, 0.07, 0.09, 0.11, 0.13, 0.16, 0.2, 0.25, 0.3, 0.36, 0.43, 0.52, 0.63, 0.76, 0.9]
)
TRIED_ITEM_MULTIPLES = np.geomspace(1 / 16, 256, 13)
"""Numbers of items to try, in units of those that there are."""
DRAWN_CELLS = 2500
"""Number of cells that are drawn for a power: at least `LEAST_DRAWN_MATRICES`."""
LEAST_DRAWN_MATRICES = 40
MOST_MODELS_TOGETHER = 12
"""Number of models that are drawn together; more are drawn in parts, each as if the others were not
there.
"""
REAL_PAIR_SPREAD = 0.15
"""Standard deviation in logits by which pairs of real models differ: of the words of 62 models as
predictions.
"""
LIKENESS_SPREAD = 0.2
"""Standard deviation of a likeness over items, before a run."""
ENDLESS_ITEMS = 10**6
"""Number of items beyond which more would not help."""


@dataclass(frozen=True)
class Power:
    """Power of this matrix for one model."""

    detects: float
    """Smallest own advantage with which the model is named in 80 % of such matrices; NaN where none
    would do.
    """
    items: float
    """Number of items with which an own advantage of `EFFECT` is named in 80 %; NaN where none of
    up to 256 times as many would do: pairs of these models differ by too much.
    """


NO_POWER = Power(math.nan, math.nan)
DrawMatrices = Callable[[float, float], Moments]
"""Function from an own advantage and a multiple of the items to matrices in which all have it."""


def powers(
    x: FloatArray, *, tests: int, rng: np.random.Generator, floor: bool = False, alpha: float = 0.05
) -> tuple[Power, ...]:
    """Power for each model of `x  # [target, observer, item]`, NaN where unscored.

    The model is taken to be the only one with access, so that Holm's first step, alpha/tests, is
    what it must pass.

    Args:
        x: Scores less habit.
        tests: Number of models of all tasks.
        rng: Draws the matrices.
        floor: See `own_cells`.
        alpha: Level before Holm's correction.
    """
    size = len(x)
    level = alpha / max(tests, size)
    if size > MOST_MODELS_TOGETHER:
        part_count = math.ceil(size / MOST_MODELS_TOGETHER)
        powers_by_model: list[Power] = []
        for model_indices in np.array_split(np.arange(size), part_count):
            part = x[np.ix_(model_indices, model_indices)]
            powers_by_model += powers(part, tests=tests, rng=rng, floor=floor, alpha=alpha)
        return tuple(powers_by_model)

    measured = moments(x[None])
    has_noise = measured.variance.max() > 1e-12  # else of the noise of other items nothing is known
    if size < FEWEST_MODELS or np.isnan(measured.mean).any() or not has_noise:
        return (NO_POWER,) * size

    expected = fit_alone(measured)
    draw_matrices = _drawing(measured, expected, own_cells(x, floor=floor).spread, rng)

    def power_of_effect(effect: float) -> FloatArray:
        return _named_share(draw_matrices(effect, 1.0), floor, level)

    def power_of_log_multiple(log_multiple: float) -> FloatArray:
        return _named_share(draw_matrices(EFFECT, math.exp(log_multiple)), floor, level)

    effects = _reached_at(TRIED_EFFECTS, power_of_effect)
    log_multiples = _reached_at(np.log(TRIED_ITEM_MULTIPLES), power_of_log_multiple)
    item_counts = np.exp(log_multiples) * x.shape[2]
    return tuple(
        Power(float(effect), float(item_count))
        for effect, item_count in zip(effects, item_counts, strict=True)
    )


def planned_detectable_advantage(
    models: int,
    items: int,
    *,
    tests: int,
    rng: np.random.Generator,
    chance: float = 0.0,
    right_or_wrong: bool = True,
) -> float:
    """The smallest own advantage that is named in 80 %, before a run; NaN where not even a full
    score is.

    All cells are half-way between chance and 1, independent; pairs differ as those of real models
    do.

    Args:
        models: Number of models.
        items: Number of items.
        tests: Models of all tasks.
        rng: Draws the matrices.
        chance: Score of a blind guess, which is taken off.
        right_or_wrong: Whether a score is 0 or 1; else it is a likeness.
    """
    if models < FEWEST_MODELS or items < 2:
        return math.nan
    cells = min(models, MOST_MODELS_TOGETHER) ** 2
    share = (1 + chance) / 2
    item_variance = share * (1 - share) if right_or_wrong else LIKENESS_SPREAD**2
    planned = Moments(
        mean=np.full((1, cells), share - chance),
        factor=np.eye(cells)[None] * math.sqrt(item_variance / items),
        count=np.full((1, cells), float(items)),
        units=items,
        binary=False,
    )
    pair_spread = REAL_PAIR_SPREAD * share * (1 - share)
    draw_matrices = _drawing(planned, planned.mean[0], pair_spread, rng, taken_off=chance)
    level = 0.05 / max(tests, models)
    full_score_effect = largest_advantage(chance)
    possible_effects = TRIED_EFFECTS[full_score_effect > TRIED_EFFECTS]

    def power_of_effect(effect: float) -> FloatArray:
        shares = _named_share(draw_matrices(effect, 1.0), False, level)
        return np.asarray(shares.mean(keepdims=True))

    tried_effects = np.append(possible_effects, full_score_effect)
    (detectable_advantage,) = _reached_at(tried_effects, power_of_effect)
    return float(detectable_advantage)


def largest_advantage(chance: float) -> float:
    """Own advantage of a full score over others that are half-way between chance and 1."""
    return (1 - chance) / 2


def _drawing(
    measured: Moments,
    expected: FloatArray,
    pair_spread: float,
    rng: np.random.Generator,
    *,
    taken_off: float = 0.0,
) -> DrawMatrices:
    """Function that draws matrices with an advantage.

    Own cells are in nobody's fit but their own, so that one draw tells of all models.

    Args:
        measured: Moments of one matrix.
        expected: Its cells by skill and predictability alone.
        pair_spread: Standard deviation by which pairs of models differ, as scored.
        rng: Draws the noise once for all effects.
        taken_off: What was taken off each score.
    """
    cells = len(expected)
    diagonal = np.arange(0, cells, math.isqrt(cells) + 1)
    matrix_count = max(LEAST_DRAWN_MATRICES, DRAWN_CELLS // cells)
    values, vectors = np.linalg.eigh(measured.factor[0] @ measured.factor[0].T)
    noise_factor = vectors * np.sqrt(np.maximum(values, 0))
    noise = rng.normal(size=(matrix_count, cells)) @ noise_factor.T
    pair_effects = pair_spread * rng.normal(size=(matrix_count, cells))

    own_counts = measured.count[0, diagonal]
    own_variances = np.maximum(measured.variance[0, diagonal] * own_counts, 1e-12)
    share_limits = 0.5 / own_counts

    def own_widths(means: FloatArray) -> FloatArray:
        """Standard deviations of own scores with these means, in units of those that there are."""
        shares = np.clip(means + taken_off, share_limits, 1 - share_limits)
        measured_shares = measured.mean[0, diagonal] + taken_off
        measured_shares = np.clip(measured_shares, share_limits, 1 - share_limits)
        ratios = shares * (1 - shares) / (measured_shares * (1 - measured_shares))
        return np.asarray(np.sqrt(np.minimum(ratios, 0.25 / own_variances)))

    def draw_matrices(effect: float, item_multiple: float) -> Moments:
        expected_means = expected.copy()
        expected_means[diagonal] = np.minimum(expected[diagonal] + effect, 1 - taken_off)
        noise_widths = np.ones(cells)
        noise_widths[diagonal] = own_widths(expected_means[diagonal])
        scaled_noise = noise * noise_widths / math.sqrt(item_multiple)
        means = expected_means + pair_effects + scaled_noise

        # An own cell that comes out near 1 is also measured with less noise.
        factor_widths = np.ones(means.shape)
        factor_widths[:, diagonal] = own_widths(means[:, diagonal])
        return replace(
            measured,
            mean=means,
            factor=measured.factor * factor_widths[:, :, None] / math.sqrt(item_multiple),
            count=measured.count * item_multiple,
            units=max(measured.units * item_multiple, 2),
        )

    return draw_matrices


def _named_share(drawn: Moments, floor: bool, level: float) -> FloatArray:
    """Share of matrices in which a model is named, [model]."""
    p_by_step = steps_of(drawn, floor=floor).p_by_step
    largest_p = np.max(list(p_by_step.values()), axis=0)
    return np.asarray((largest_p < level).mean(axis=0))


def _reached_at(points: FloatArray, power_at: Callable[[float], FloatArray]) -> FloatArray:
    """[model]: where its power reaches `POWER_WANTED`, between two of the points; NaN where it does
    not.
    """
    power_rows: list[FloatArray] = []
    for point in points:
        power_rows.append(power_at(float(point)))
        if (np.max(power_rows, axis=0) >= POWER_WANTED).all():
            break

    power_table = np.array(power_rows)
    reached_at = np.full(power_table.shape[1], math.nan)
    for model in np.flatnonzero((power_table >= POWER_WANTED).any(axis=0)):
        k = int(np.argmax(power_table[:, model] >= POWER_WANTED))
        reached_at[model] = points[k]
        if k > 0:
            power_before, power_after = power_table[k - 1 : k + 1, model]
            share = (POWER_WANTED - power_before) / (power_after - power_before)
            reached_at[model] = points[k - 1] + share * (points[k] - points[k - 1])
    return reached_at


# ---- rows: what is claimed of each model, and its controls


INFORMED = "informed observer"
"""Name of the informed observer among the baselines of a model's row."""

NEAR_COPY = 0.1
"""Lead over every other model's replies with which a model's own replies predict its near-copy."""
NOT_RUN = "no observer was told of its target; selfprobe matrix --observers shown:5 runs that"


@dataclass(frozen=True)
class InformedObserver:
    """One observer that was told of one target."""

    target: str
    observer: str
    arm: str
    """Name of the hint: "asked" by name, or "shown:N"."""
    scores: FloatArray
    """Scores [item]; NaN where unscored."""
    score: Estimate
    """Mean of the scores."""
    target_above: Estimate
    """The target on itself minus this, of the items that both score."""
    unscored: float
    """Unscored share of its decisions."""
    hole: str
    """Reason why it is not used; else empty."""


def informed_observers(results: Results, matrix: TaskMatrix) -> tuple[InformedObserver, ...]:
    """Every run of the task in which an observer was told of a target of this matrix."""
    if results.informed.empty:
        return ()
    is_complete = (results.cells.task == matrix.task) & (results.cells.status == "complete")
    own_cells_of_task = results.cells[
        is_complete & (results.cells.target == results.cells.observer)
    ]
    informed_cells = results.informed[results.informed.task == matrix.task]
    decisions = results.informed_decisions
    decisions = decisions[decisions.task == matrix.task]

    observers = []
    for arm_name, arm_cells in informed_cells.groupby("arm"):
        arm = str(arm_name)
        complete_cells = arm_cells[arm_cells.status == "complete"]
        incomparable_pairs = incomparable_cells(pd.concat([own_cells_of_task, complete_cells]))
        arm_decisions = decisions[decisions.arm == arm_name]
        item_scores = scores_by_item(arm_decisions)
        for cell in arm_cells.sort_values(["target", "observer"]).itertuples():
            target, observer = str(cell.target), str(cell.observer)
            hole = str(cell.reason) or incomparable_pairs.get((target, observer), "")
            if not hole and target not in matrix.models:
                hole = "no run of its target"
            scores = np.full(len(matrix.items), np.nan)
            if not hole:
                cell_scores = item_scores.loc[target, observer].reindex(matrix.items)
                scores = cell_scores.to_numpy(dtype=float)
                if not np.isfinite(scores).any():
                    hole = "nothing was scored"
            is_of_cell = (arm_decisions.target == target) & (arm_decisions.observer == observer)
            unscored = float(arm_decisions[is_of_cell].value.isna().mean())
            observers.append(
                _informed_observer(matrix, target, observer, arm, scores, unscored, hole)
            )

        no_scores = np.full(len(matrix.items), np.nan)
        logged_pairs = set(zip(arm_cells.target, arm_cells.observer, strict=True))
        for target, observer in _pairs_without_log(logged_pairs, matrix.models):
            hole = "there is no log of this cell"
            observers.append(
                _informed_observer(matrix, target, observer, arm, no_scores, np.nan, hole)
            )
    return tuple(observers)


def _pairs_without_log(
    logged_pairs: set[tuple[str, str]], models: Sequence[str]
) -> list[tuple[str, str]]:
    """The pairs without a log, where most have one: of a matrix, not of single runs."""
    pairs = list(itertools.permutations(models, 2))
    missing = [pair for pair in pairs if pair not in logged_pairs]
    return missing if len(missing) < len(pairs) / 2 else []


def _informed_observer(
    matrix: TaskMatrix,
    target: str,
    observer: str,
    arm: str,
    scores: FloatArray,
    unscored: float,
    hole: str,
) -> InformedObserver:
    items = np.arange(len(matrix.items))
    own_scores = np.full(len(items), np.nan)
    if target in matrix.models:
        model_index = matrix.models.index(target)
        own_scores = matrix.scores[model_index, model_index]
    interval: Interval = "difference" if measures()[matrix.task].graded else "t"
    return InformedObserver(
        target=target,
        observer=observer,
        arm=arm,
        scores=scores,
        score=clustered_mean(scores, items),
        target_above=clustered_mean(own_scores - scores, items, interval=interval),
        unscored=unscored,
        hole=hole,
    )


def closest_informed(observers: Sequence[InformedObserver], target: str) -> InformedObserver | None:
    """The one that comes closest to what the target reaches on itself, or passes it; None where
    there is none.
    """
    usable = [
        observer
        for observer in observers
        if observer.target == target and not observer.hole and observer.target_above.n
    ]
    return min(usable, key=lambda observer: observer.target_above.value, default=None)


def informed_hits(
    observers: Sequence[InformedObserver], models: Sequence[str], items: int
) -> dict[str, FloatArray]:
    """INFORMED → [target, item], the scores of each model's closest informed observer; empty
    without any.

    Args:
        observers: Result of `informed_observers`.
        models: The targets, in the order of the axis.
        items: Length of the second axis.
    """
    hits = np.full((len(models), items), np.nan)
    has_observer = False
    for model_index, model in enumerate(models):
        observer = closest_informed(observers, model)
        if observer is not None:
            hits[model_index] = observer.scores
            has_observer = True
    return {INFORMED: hits} if has_observer else {}


@dataclass(frozen=True)
class ModelRow:
    """One model on itself."""

    model: str
    score: Estimate
    """Score on itself."""
    specific: Estimate
    """Score on itself without its habit."""
    habit: float
    """Score of its answers against its own acts at other items; NaN where that cannot be told."""
    habits: Mapping[str, float]
    """Habit by what the other items have in common; `habit` is the largest."""
    rival: str
    """The other observer that predicts it best."""
    rival_score: float
    """Score of the rival observer."""
    over_rival: Estimate
    """Score on itself minus the rival's, on the items that both have."""
    above_baselines: Mapping[str, Estimate]
    """Baseline → score on itself minus the baseline's, on the same items."""
    where_missed: Mapping[str, Estimate]
    """Baseline or other model → item-specific score on itself at the items that its prediction
    misses.
    """
    guess: Estimate
    """The score of the best baseline that needs no model, with its interval; undefined without any.
    """
    stand_ins: Mapping[str, Estimate]
    """Other model → score on itself minus what that model's own replies get as predictions, on the
    same items.
    """
    p_by_step: Mapping[str, float]
    """Step of `stats.pairs.STEPS` → one-sided p; NaN with fewer than four models."""
    scales: Mapping[str, float]
    """Scale → one-sided p that its own cell is above what skill and predictability give and the
    noise; NaN where the other cells reject the scale.
    """
    advantage: Estimate
    """Item-specific score of its own cell above what skill and predictability give; the interval
    pays for the noise of the items, for how much pairs of models differ, and for the scale.
    """
    pairs: float
    """Standard deviation by which pairs of these models differ without self-knowledge."""
    outsider: bool
    """Whether a stranger to look-alikes would have these cells too; see `stats.pairs.OwnCells`."""
    lone_answers: LoneAnswers | None
    """What it knows of its answers that nobody else gives; None where that cannot be asked."""
    power: Power
    """Power of this matrix for this model."""

    @property
    def test_p(self) -> float:
        """p for the claim that its own cell stands out above skill, noise and pairs, without any
        baseline.
        """
        return float(np.max(list(self.p_by_step.values())))

    def p_of(self, step: str) -> float:
        """p of a step; NaN where nothing in the matrix calls for it."""
        return (
            math.nan
            if step in CONDITIONAL_STEPS and self.p_by_step[step] == 0
            else self.p_by_step[step]
        )

    @property
    def stand_in_scores(self) -> Mapping[str, float]:
        """Other model → what its own replies get as predictions of this one."""
        return {name: self.score.value - over.value for name, over in self.stand_ins.items()}

    @property
    def stand_in(self) -> tuple[str, float]:
        """The other model whose own replies come closest, and what they get; ("", NaN) without
        any.
        """
        return max(self.stand_in_scores.items(), key=lambda entry: entry[1], default=("", math.nan))

    @property
    def near_copy(self) -> str:
        """The other model whose own replies predict this one better than every other's by
        `NEAR_COPY`; "" without.
        """
        scores = self.stand_in_scores
        if len(scores) < 2:
            return ""
        *_, second, first = sorted(scores, key=lambda name: scores[name])
        return first if scores[first] - scores[second] >= NEAR_COPY else ""

    @property
    def baselines(self) -> Mapping[str, float]:
        """Baseline → its score."""
        return {
            name: self.score.value - estimate.value
            for name, estimate in self.above_baselines.items()
        }

    @property
    def without_a_model(self) -> tuple[str, float]:
        """Name and score of the best of the baselines that need no model; ("", NaN) without any."""
        guesses = {name: score for name, score in self.baselines.items() if name != INFORMED}
        return max(guesses.items(), key=lambda entry: entry[1], default=("", math.nan))

    @property
    def over_p(self) -> Mapping[str, float]:
        """One-sided p over each baseline."""
        return {name: above_zero(estimate) for name, estimate in self.above_baselines.items()}

    @property
    def p(self) -> float:
        """p for the claim that it has access: the largest of all p that are asked for."""
        stand_in_ps = [above_zero(estimate) for estimate in self.stand_ins.values()]
        return float(np.max([self.test_p, *self.over_p.values(), *stand_in_ps]))


def _score_above(scores: FloatArray, hits: FloatArray, interval: Interval) -> Estimate:
    """Mean of scores less hits, [item]; of a baseline that is the same at every item with the
    scores' own interval.
    """
    items = np.arange(len(scores))
    if np.ptp(hits) == 0:
        return shifted(clustered_mean(scores, items), -float(hits[0]))
    return clustered_mean(scores - hits, items, interval=interval)


def _mean_where_missed(scores: FloatArray, hits: FloatArray) -> Estimate:
    """Mean of the scores [item] at the items that a prediction misses by half or more."""
    scores_where_missed = np.where(hits <= 0.5, scores, np.nan)
    return clustered_mean(scores_where_missed, np.arange(len(scores)), interval="t")


def above_zero(estimate: Estimate) -> float:
    """One-sided p of a mean with a t interval; where all values are equal the items' signs speak
    (sign test).
    """
    if estimate.se > 0:
        return float(special.stdtr(estimate.df, -estimate.value / estimate.se))
    return 0.5**estimate.n if estimate.value > 0 else 1.0


def model_rows(
    models: Sequence[str],
    scores: FloatArray,
    specific: ItemSpecificScores,
    hits: Mapping[str, FloatArray],
    *,
    tests: int,
    rng: np.random.Generator,
    graded: bool = True,
    power: bool = True,
    stand_ins: FloatArray | None = None,
    stand_in_names: Sequence[str] = (),
) -> tuple[ModelRow, ...]:
    """A row a model; none where fewer than three models or two items allow no contrast.

    Args:
        models: Names in the order of the axes of what follows.
        scores: [target, observer, item].
        specific: Item-specific scores of the same cells.
        hits: Baseline → what it gets right, [target, item].
        tests: Rows of all tasks of the report, over which p is corrected.
        rng: Draws matrices for the power.
        graded: See `Measure`; of other scores a difference has a t interval.
        power: Whether to compute what this matrix could see: most of the time, and no part of
            whether a model is named.
        stand_ins: Scores of other models' replies as predictions, [target, other model, item].
        stand_in_names: Names of its second axis, which begin with the models. Default: the models.
    """
    size = len(models)
    if size < 3 or scores.shape[2] < 2 or np.isnan(specific.scores).all(axis=2).any():
        return ()
    tested_scores = with_own_missing(specific)
    has_floor = not graded and not specific.taken_off
    lone_answers_by_index: dict[int, LoneAnswers] = {}
    if graded:
        evidence = own_cells_of_hits(tested_scores, scores, stand_ins)
        lone_answers_by_index = dict(enumerate(lone_answers(scores, stand_ins)))
    else:
        evidence = own_cells(tested_scores, floor=has_floor)
    power_by_model = (NO_POWER,) * size
    if power and size >= FEWEST_MODELS:
        power_by_model = powers(tested_scores, tests=tests, rng=rng, floor=has_floor)

    interval: Interval = "difference" if graded else "t"
    rows = list[ModelRow]()
    for model_index, model in enumerate(models):
        replies_of_others: dict[str, FloatArray] = {}
        if stand_ins is not None:
            names = stand_in_names or models
            replies_of_others = dict(zip(names, stand_ins[model_index], strict=True))
            replies_of_others.pop(model)
        baseline_hits_on_model = {
            name: hits_by_target[model_index] for name, hits_by_target in hits.items()
        }
        row = _model_row(
            models,
            model_index,
            scores,
            specific,
            baseline_hits_on_model,
            replies_of_others,
            evidence,
            lone_answers_by_index.get(model_index),
            power_by_model[model_index],
            interval,
        )
        rows.append(row)
    return tuple(rows)


def _model_row(
    models: Sequence[str],
    model_index: int,
    scores: FloatArray,
    specific: ItemSpecificScores,
    baseline_hits: Mapping[str, FloatArray],
    replies_of_others: Mapping[str, FloatArray],
    evidence: OwnCells,
    known_lone_answers: LoneAnswers | None,
    power: Power,
    interval: Interval,
) -> ModelRow:
    """The row of one model.

    Args:
        models: Names of the models.
        model_index: Index of this model among them.
        scores: [target, observer, item].
        specific: Item-specific scores of the same cells.
        baseline_hits: Baseline → what it gets right of this model, [item].
        replies_of_others: Other model → what its replies get as predictions of this one, [item].
        evidence: Of all own cells.
        known_lone_answers: Of this model.
        power: Of this model.
        interval: Of differences of scores.
    """
    items = np.arange(scores.shape[2])
    own_scores = scores[model_index, model_index]
    own_specific = specific.scores[model_index, model_index]

    target_means = np.nanmean(scores[model_index], axis=1)
    rival_means = np.where(np.arange(len(models)) == model_index, -math.inf, target_means)
    rival = int(np.argmax(rival_means))

    above_baselines = {
        name: _score_above(own_scores, hits, interval) for name, hits in baseline_hits.items()
    }
    above_replies = {
        name: _score_above(own_scores, hits, interval) for name, hits in replies_of_others.items()
    }
    hits_by_competitor = {**baseline_hits, **replies_of_others}
    above_guesses = {
        name: estimate.value
        for name, estimate in above_baselines.items()
        if name != INFORMED and estimate.n
    }
    best_guess = np.full(len(items), math.nan)
    if above_guesses:
        best_guess = baseline_hits[min(above_guesses, key=above_guesses.__getitem__)]
    best_guess = np.where(np.isnan(own_scores), math.nan, best_guess)
    where_missed = {
        name: _mean_where_missed(own_specific, hits) for name, hits in hits_by_competitor.items()
    }

    return ModelRow(
        model=models[model_index],
        score=clustered_mean(own_scores, items),
        specific=clustered_mean(own_specific, items, interval=interval),
        habit=float(specific.habit[model_index, model_index]),
        habits=specific.habit_by_feature[model_index] if specific.habit_by_feature else {},
        rival=models[rival],
        rival_score=float(target_means[rival]),
        over_rival=_score_above(own_scores, scores[model_index, rival], interval),
        above_baselines=_with_items(above_baselines),
        where_missed=where_missed,
        guess=clustered_mean(best_guess, items),
        stand_ins=_with_items(above_replies),
        p_by_step=_p_of_model(evidence.p_by_step, model_index),
        scales=_p_of_model(evidence.scales, model_index),
        advantage=_own_advantage(evidence, model_index, len(items)),
        pairs=evidence.spread,
        outsider=bool(evidence.outsider[model_index]),
        lone_answers=known_lone_answers,
        power=power,
    )


def _with_items(estimates: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Those that rest on some item."""
    return {name: estimate for name, estimate in estimates.items() if estimate.n}


def _p_of_model(p_values: Mapping[str, FloatArray], model_index: int) -> dict[str, float]:
    """Name → p of one model, from arrays [model]."""
    return {name: float(p_of_models[model_index]) for name, p_of_models in p_values.items()}


def _own_advantage(evidence: OwnCells, model_index: int, items: int) -> Estimate:
    """The advantage of a model on itself over what skill and predictability give."""
    advantage = float(evidence.advantage[model_index])
    if math.isnan(advantage):
        reason = f"{FEWEST_MODELS} models and items that all observers score are the least"
        return undefined(reason, n=items)
    low = float(evidence.advantage_low[model_index])
    high = float(evidence.advantage_high[model_index])
    return Estimate(advantage, low, high, items, "item")


def with_own_missing(specific: ItemSpecificScores) -> FloatArray:
    """The item-specific scores with each model's own missing ones as wrong, where another observer
    has one.

    An item that nobody has, since the target's act failed, says nothing of anybody. Where no habit
    is known, the test itself counts what is missing as the worst score that there is.
    """
    scores = specific.scores.copy()
    diagonal = np.arange(len(scores))
    wrong_scores = -specific.habit[diagonal, diagonal][:, None]
    has_act = ~np.isnan(scores).all(axis=1)
    counts_as_wrong = np.isnan(scores[diagonal, diagonal]) & has_act & ~np.isnan(wrong_scores)
    scores[diagonal, diagonal] = np.where(counts_as_wrong, wrong_scores, scores[diagonal, diagonal])
    return scores


def models_with_replies(results: Results, matrix: TaskMatrix, models: Sequence[str]) -> list[str]:
    """The models, and further ones of which the replies to half of the items or more are there, if
    nothing else.
    """
    decisions = results.decisions_of(matrix.task)
    is_own = decisions.target == decisions.observer
    has_reply = decisions.truth.notna() & decisions.item.isin(matrix.items)
    reply_counts = decisions[is_own & has_reply].groupby("target").item.nunique()
    least_count = len(matrix.items) / 2
    replying_models = {str(model) for model, count in reply_counts.items() if count >= least_count}
    return [*models, *sorted(replying_models - set(models))]


def stand_in_scores(
    results: Results, matrix: TaskMatrix, models: Sequence[str], others: Sequence[str] = ()
) -> FloatArray | None:
    """[target, other model, item]: what the other's own replies get as predictions of the target;
    None of no task.

    A join of the models' runs on themselves, which costs no call, where the truth is a class that
    the item's text does not tell, or a number (`Measure.act`).

    Args:
        results: Tables of the runs.
        matrix: Scores of the task.
        models: The targets.
        others: Models whose replies are compared, which begin with the targets. Default: the
            targets.
    """
    measure = measures()[matrix.task]
    replying_models = list(others or models)
    decisions = results.decisions_of(matrix.task)
    is_own = (decisions.target == decisions.observer) & decisions.target.isin(replying_models)
    own_decisions = decisions[is_own]
    if measure.act:
        scores = _scores_of_acts(own_decisions, matrix.items, replying_models, measure)
    elif measure.text_tells and own_decisions.truth.notna().any():
        has_truth = own_decisions.truth.notna()
        scores = _equal_truths(own_decisions[has_truth], matrix.items, replying_models, measure)
    else:
        return None
    return None if np.isnan(scores).all() else scores[: len(models)]


def _scores_of_acts(
    decisions: pd.DataFrame, items: Sequence[str], models: Sequence[str], measure: Measure
) -> FloatArray:
    """[target, other model, item]: scores of the other's acts in the place of its predictions.

    Args:
        decisions: Of models on themselves.
        items: Names of the items.
        models: Names of the models.
        measure: The task's grading rule, with an act.
    """
    assert measure.act
    act_key, prediction_key = measure.act
    is_of_target = decisions.key.map(measure.sides) == "target"
    acts = decisions[is_of_target].drop(columns="observer")
    predictions = decisions[decisions.key == act_key].drop(columns="target")
    predictions = predictions.assign(key=prediction_key)
    every_pair = [
        acts.merge(pd.DataFrame({"observer": models}), how="cross"),
        predictions.merge(pd.DataFrame({"target": models}), how="cross"),
    ]
    score_by_cell = scores_by_item(pd.concat(every_pair))
    index = pd.MultiIndex.from_product([models, models, items])
    shape = (len(models), len(models), len(items))
    return np.asarray(score_by_cell.reindex(index).to_numpy(dtype=float).reshape(shape))


def _equal_truths(
    decisions: pd.DataFrame, items: Sequence[str], models: Sequence[str], measure: Measure
) -> FloatArray:
    """[target, other model, item]: share of an item's questions at which the other's truth is right
    as a prediction.

    Args:
        decisions: Of models on themselves, with a truth.
        items: Names of the items.
        models: Names of the models.
        measure: The task's grading rule.
    """
    decisions = decisions.assign(item=pd.Index(items).get_indexer(decisions.item))
    decisions = decisions[decisions.item >= 0]
    question_of_decision = decisions.groupby(["item", "epoch", "key"]).ngroup().to_numpy()
    item_of_question = np.zeros(question_of_decision.max() + 1, dtype=np.intp)  # sorted by item
    item_of_question[question_of_decision] = decisions.item
    first_questions = np.flatnonzero(np.diff(item_of_question, prepend=-1))
    truth_codes, texts = pd.factorize(decisions.truth)
    truths = np.full((len(models), len(item_of_question)), -1)  # [model, question]
    truths[pd.Index(models).get_indexer(decisions.target), question_of_decision] = truth_codes

    scores = np.full((len(models), len(models), len(items)), np.nan)
    for model_index, target_truths in enumerate(truths):
        is_known = (target_truths >= 0) & (truths >= 0)
        if measure.right is operator.eq:
            is_right = is_known & (truths == target_truths)
        else:
            pair_codes, pair_of_question = np.unique(
                truths * len(texts) + target_truths, return_inverse=True
            )
            is_right_pair = [
                bool(measure.right(texts[code // len(texts)], texts[code % len(texts)]))
                for code in pair_codes
            ]
            is_right = is_known & np.array(is_right_pair)[pair_of_question.reshape(is_known.shape)]
        counts = np.add.reduceat(is_known.astype(float), first_questions, axis=1)
        right_counts = np.add.reduceat(is_right.astype(float), first_questions, axis=1)
        shares = np.where(counts > 0, right_counts / np.maximum(counts, 1), np.nan)
        scores[model_index][:, item_of_question[first_questions]] = shares
    return scores


def baseline_hits(
    results: Results,
    matrix: TaskMatrix,
    models: Sequence[str],
    groups_by_feature: Mapping[str, pd.Series],
) -> dict[str, FloatArray]:
    """Baseline → [target, item] of what needs no model, on the models' runs on themselves.

    For truths that are a class (`Decision.truth`) and are not told by the item itself: the
    commonest truth (of the items that are alike in something, leave one out), and a classifier of
    the text. Else what the scorer found with measures of likeness (`Decision.plain`), or
    predictions that know nothing of the item (`Measure.blind`).
    """
    measure = measures()[matrix.task]
    decisions = results.decisions_of(matrix.task)
    is_own = (decisions.target == decisions.observer) & decisions.target.isin(list(models))
    own_decisions = decisions[is_own]
    blind_hits = measure.blind(own_decisions) if measure.blind and len(own_decisions) else {}
    in_order = own_decisions.sort_values("epoch", kind="stable")
    first_epochs = in_order.drop_duplicates(["target", "item", "key"])

    items = pd.Index(matrix.items)
    task_items = results.items[results.items.task == matrix.task].set_index("item")
    item_texts = task_items.input.reindex(items).to_numpy(dtype=object)
    group_codes = {
        name: pd.factorize(group_of_item.reindex(items))[0]
        for name, group_of_item in groups_by_feature.items()
    }
    mean_hits = _MeanHits(len(models), items)
    for model_index, model in enumerate(models):
        of_model = first_epochs[first_epochs.target == model]
        for name, hits in _likeness_hits(of_model):
            mean_hits.add(
                name, model_index, items.get_indexer(hits.index), hits.to_numpy(dtype=float)
            )
        for name, hits_by_target in blind_hits.items():
            if model in of_model.target.values:
                hits = hits_by_target.xs(model, level="target")
                item_indices = items.get_indexer(hits.index)
                mean_hits.add(name, model_index, item_indices, hits.to_numpy(dtype=float))
        with_truth = of_model[of_model.truth.notna()]
        for _, of_key in with_truth.groupby("key"):
            truths = of_key.truth.to_numpy(dtype=object)
            item_indices = items.get_indexer(of_key.item)
            if measure.text_tells:
                _add_class_hits(mean_hits, model_index, truths, item_indices, group_codes, measure)
                texts = list(item_texts[item_indices])
                seen = text_only_observer(texts, list(truths), right=measure.right)
                mean_hits.add("text only", model_index, item_indices, seen.hits)
            else:
                hits_of_mode = mode_baseline(truths, item_indices, right=measure.right)
                mean_hits.add("mode", model_index, item_indices, hits_of_mode)
    return mean_hits.by_name


def _add_class_hits(
    mean_hits: "_MeanHits",
    model_index: int,
    truths: npt.NDArray[np.object_],
    item_indices: npt.NDArray[np.intp],
    group_codes: Mapping[str, npt.NDArray[np.intp]],
    measure: Measure,
) -> None:
    """Count the commonest truth of the other items that are alike, ties shared; a group's only item
    has none.
    """
    for name, codes in group_codes.items():
        label = "mode" if name == ALL_ITEMS else f"mode by {name}"
        codes_of_truths = codes[item_indices]
        for code in np.unique(codes_of_truths):
            in_group = codes_of_truths == code
            group_items = item_indices[in_group]
            hits = mode_baseline(truths[in_group], group_items, right=measure.right)
            mean_hits.add(label, model_index, group_items, hits)


class _MeanHits:
    """Means of the hits of baselines over the keys of an item."""

    def __init__(self, models: int, items: pd.Index) -> None:
        self.shape = (models, len(items))
        self.sums: dict[str, FloatArray] = {}
        self.counts: dict[str, FloatArray] = {}

    def add(
        self, name: str, model_index: int, item_indices: npt.NDArray[np.intp], hits: FloatArray
    ) -> None:
        """Count `hits  # [row]` of a baseline, NaN where there is none, for the model with this
        index.

        An item index of -1 is none of the matrix.
        """
        sums = self.sums.setdefault(name, np.zeros(self.shape))
        counts = self.counts.setdefault(name, np.zeros(self.shape))
        is_counted = ~np.isnan(hits) & (item_indices >= 0)
        np.add.at(sums[model_index], item_indices[is_counted], hits[is_counted])
        np.add.at(counts[model_index], item_indices[is_counted], 1)

    @property
    def by_name(self) -> dict[str, FloatArray]:
        """Baseline → mean hits [model, item], NaN where there is none; without those that have no
        hit at all.
        """
        means: dict[str, FloatArray] = {}
        for name, counts in self.counts.items():
            if counts.any():
                means[name] = np.where(counts, self.sums[name] / np.maximum(counts, 1), np.nan)
        return means


def _likeness_hits(decisions: pd.DataFrame) -> list[tuple[str, pd.Series]]:
    """Values of the scorer's measures of likeness, by name; a series by item."""
    values = [plain or {} for plain in decisions.plain]
    table = pd.DataFrame(values, index=pd.Index(decisions.item))
    return [(str(name), table[name].dropna()) for name in table if table[name].notna().any()]


def baselines_left_out(
    results: Results, task: str, applied: Mapping[str, object]
) -> dict[str, str]:
    """Why a baseline is not among those applied."""
    mode_reason = "too few truths to find a most frequent one"
    text_reason = f"a text classifier needs {SMALLEST_TEXT_SAMPLE} different questions with a truth"
    if not measures()[task].text_tells:
        text_reason = "the item's text is the truth or tells nothing of it"
    if not results.decisions_of(task).truth.notna().any():
        mode_reason = "a truth of this task is no word or slot that could be guessed"
        text_reason = mode_reason
    reasons = {"mode": mode_reason, "text only": text_reason}
    if takes_about(task):
        reasons[INFORMED] = NOT_RUN
    return {name: reason for name, reason in reasons.items() if name not in applied}
