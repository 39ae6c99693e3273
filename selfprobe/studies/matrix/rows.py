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
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, mode_baseline, undefined
from selfprobe.stats.pairs import (
    AS_NEEDED,
    FEWEST,
    Moments,
    OwnCells,
    fit_alone,
    moments,
    own_cells,
    steps_of,
)
from selfprobe.stats.shared_items import own_cells_of_hits
from selfprobe.stats.text_only import SMALLEST_TEXT_SAMPLE, text_only_observer
from selfprobe.studies.matrix.habit import ALL, Specific
from selfprobe.studies.matrix.table import Results, TaskMatrix, odd_cells, scores_by_item
from selfprobe.study._registry import measures, takes_about

POWER = 0.8
EFFECT = 0.1
"""Own advantage for which the number of items is computed."""
EFFECTS = np.array(
    [0.03, 0.05, 0.07, 0.09, 0.11, 0.13, 0.16, 0.2, 0.25, 0.3, 0.36, 0.43, 0.52, 0.63, 0.76, 0.9]
)
SIZES = np.geomspace(1 / 16, 256, 13)
"""Numbers of items to try, in units of those that there are."""
DRAWS = 2500
"""Number of cells that are drawn: at least forty matrices."""
MOST = 12
"""Number of models that are drawn together; more are drawn in parts, each as if the others were not
there.
"""
PAIRS = 0.15
"""Standard deviation in logits by which pairs of real models differ: of the words of 62 models as
predictions.
"""
LIKENESS = 0.2
"""Standard deviation of a likeness over items, before a run."""
ENDLESS = 10**6
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


def powers(
    x: FloatArray, *, tests: int, rng: np.random.Generator, floor: bool = False, alpha: float = 0.05
) -> tuple[Power, ...]:
    """Power for each model of `x  # [target, observer, item]`, NaN where unscored, among `tests` models of all tasks.

    The model is taken to be the only one with access, so that Holm's first step, alpha/tests, is
    what it must pass.
    """
    size, level = len(x), alpha / max(tests, len(x))
    nothing = (Power(math.nan, math.nan),) * size
    if size > MOST:
        parts = np.array_split(np.arange(size), math.ceil(size / MOST))
        return tuple(
            one
            for at in parts
            for one in powers(x[np.ix_(at, at)], tests=tests, rng=rng, floor=floor, alpha=alpha)
        )
    found = moments(x[None])
    if size < FEWEST or np.isnan(found.mean).any() or not found.variance.max() > 1e-12:
        return nothing  # every item scored alike: of the noise of other items nothing is known
    expected = fit_alone(found)
    draw = _drawing(found, expected, own_cells(x, floor=floor).spread, rng)
    detects = _reached(EFFECTS, lambda effect: _named(draw(effect, 1.0), floor, level))
    items = (
        np.exp(
            _reached(np.log(SIZES), lambda log: _named(draw(EFFECT, math.exp(log)), floor, level))
        )
        * x.shape[2]
    )
    return tuple(
        Power(float(least), float(takes)) for least, takes in zip(detects, items, strict=True)
    )


def planned(
    models: int,
    items: int,
    *,
    tests: int,
    rng: np.random.Generator,
    chance: float = 0.0,
    right_or_wrong: bool = True,
) -> float:
    """The smallest own advantage that is named in 80 %, before a run; NaN where none is.

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
    if models < FEWEST or items < 2:
        return math.nan
    size, share = min(models, MOST), (1 + chance) / 2
    cells, spread = size * size, share * (1 - share) if right_or_wrong else LIKENESS**2
    mean = np.full((1, cells), share - chance)
    factor = np.eye(cells)[None] * math.sqrt(spread / items)
    found = Moments(mean, factor, np.full((1, cells), float(items)), items, False)
    draw = _drawing(found, mean[0], PAIRS * share * (1 - share), rng)
    level = 0.05 / max(tests, models)
    return float(
        _reached(
            EFFECTS, lambda effect: _named(draw(effect, 1.0), False, level).mean(keepdims=True)
        )[0]
    )


def _drawing(
    found: Moments, expected: FloatArray, pairs: float, rng: np.random.Generator
) -> Callable[[float, float], Moments]:
    """Function from an effect and a multiple of the items to drawn matrices in which every model
    has it on itself.

    Own cells are in nobody's fit but their own, so that one draw tells of all models.
    """
    cells = len(expected)
    own = np.arange(0, cells, math.isqrt(cells) + 1)
    values, vectors = np.linalg.eigh(found.factor[0] @ found.factor[0].T)
    draws = max(40, DRAWS // cells)
    noise = rng.normal(size=(draws, cells)) @ (vectors * np.sqrt(np.maximum(values, 0))).T
    differ = pairs * rng.normal(size=(draws, cells))
    own_counts = found.count[0, own]
    own_variances = np.maximum(found.variance[0, own] * own_counts, 1e-12)
    share_limits = 0.5 / own_counts

    def widths(means: FloatArray) -> FloatArray:
        """Standard deviations of own scores with these means, in units of those that there are."""
        shares = np.clip(means, share_limits, 1 - share_limits)
        seen_shares = np.clip(found.mean[0, own], share_limits, 1 - share_limits)
        ratios = shares * (1 - shares) / (seen_shares * (1 - seen_shares))
        return np.asarray(np.sqrt(np.minimum(ratios, 0.25 / own_variances)))

    def draw(effect: float, times: float) -> Moments:
        expected_means = expected.copy()
        expected_means[own] = np.minimum(expected[own] + effect, 1)
        noise_widths = np.ones(cells)
        noise_widths[own] = widths(expected_means[own])
        means = expected_means + differ + noise * noise_widths / math.sqrt(times)

        # An own cell that comes out near 1 is also measured with less noise.
        factor_widths = np.ones(means.shape)
        factor_widths[:, own] = widths(means[:, own])
        return replace(
            found,
            mean=means,
            factor=found.factor * factor_widths[:, :, None] / math.sqrt(times),
            count=found.count * times,
            units=max(found.units * times, 2),
        )

    return draw


def _named(drawn: Moments, floor: bool, level: float) -> FloatArray:
    """Share of matrices in which a model is named, [model]."""
    steps = steps_of(drawn, floor=floor).steps
    return np.asarray((np.max(list(steps.values()), axis=0) < level).mean(axis=0))


def _reached(at: FloatArray, power: Callable[[float], FloatArray]) -> FloatArray:
    """[model]: where its power reaches `POWER`, between the two points around it; NaN where it does
    not.
    """
    found = list[FloatArray]()
    while len(found) < len(at) and not (found and (np.max(found, axis=0) >= POWER).all()):
        found.append(power(float(at[len(found)])))
    table = np.array(found)
    out = np.full(table.shape[1], math.nan)
    for i in np.flatnonzero((table >= POWER).any(axis=0)):
        k = int(np.argmax(table[:, i] >= POWER))
        out[i] = at[0]
        if k:
            share = (POWER - table[k - 1, i]) / (table[k, i] - table[k - 1, i])
            out[i] = at[k - 1] + share * (at[k] - at[k - 1])
    return out


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
    over: Estimate
    """The target on itself minus this, of the items that both score."""
    unscored: float
    """Unscored share of its decisions."""
    hole: str
    """Reason why it is not used; else empty."""


def informed_observers(results: Results, matrix: TaskMatrix) -> tuple[InformedObserver, ...]:
    """Every run of the task in which an observer was told of a target of this matrix."""
    if results.informed.empty:
        return ()
    own = results.cells[(results.cells.task == matrix.task) & (results.cells.status == "complete")]
    own = own[own.target == own.observer]
    runs = results.informed[results.informed.task == matrix.task]
    out = []
    for arm, cells in runs.groupby("arm"):
        odd = odd_cells(pd.concat([own, cells[cells.status == "complete"]]))
        rows = results.informed_decisions
        rows = rows[(rows.task == matrix.task) & (rows.arm == arm)]
        graded = scores_by_item(rows)
        for cell in cells.sort_values(["target", "observer"]).itertuples():
            pair = (str(cell.target), str(cell.observer))
            its = rows[(rows.target == pair[0]) & (rows.observer == pair[1])]
            hole = (
                str(cell.reason)
                or odd.get(pair, "")
                or ("" if pair[0] in matrix.models else "no run of its target")
            )
            scores = np.full(len(matrix.items), np.nan)
            if not hole:
                scores = graded.loc[pair].reindex(matrix.items).to_numpy(dtype=float)
                hole = "" if np.isfinite(scores).any() else "nothing was scored"
            out.append(
                _observer(matrix, *pair, str(arm), scores, float(its.value.isna().mean()), hole)
            )
        nothing = np.full(len(matrix.items), np.nan)
        lost = _lost(set(zip(cells.target, cells.observer, strict=True)), matrix.models)
        out += [
            _observer(matrix, *pair, str(arm), nothing, np.nan, "there is no log of this cell")
            for pair in lost
        ]
    return tuple(out)


def _lost(there: set[tuple[str, str]], models: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs without a log, where most have one: of a matrix, not of single runs."""
    pairs = [(target, observer) for target in models for observer in models if target != observer]
    missing = [pair for pair in pairs if pair not in there]
    return missing if len(missing) < len(pairs) / 2 else []


def _observer(
    matrix: TaskMatrix,
    target: str,
    observer: str,
    arm: str,
    scores: FloatArray,
    unscored: float,
    hole: str,
) -> InformedObserver:
    items = np.arange(len(matrix.items))
    own = np.full(len(items), np.nan)
    if target in matrix.models:
        place = matrix.models.index(target)
        own = matrix.scores[place, place]
    return InformedObserver(
        target=target,
        observer=observer,
        arm=arm,
        scores=scores,
        score=clustered_mean(scores, items),
        over=clustered_mean(
            own - scores, items, interval="difference" if measures()[matrix.task].graded else "t"
        ),
        unscored=unscored,
        hole=hole,
    )


def closest(observers: Sequence[InformedObserver], target: str) -> InformedObserver | None:
    """The one that comes closest to what the target reaches on itself, or passes it; None where
    there is none.
    """
    good = [one for one in observers if one.target == target and not one.hole and one.over.n]
    return min(good, key=lambda one: one.over.value, default=None)


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
    found = [closest(observers, model) for model in models]
    if not any(found):
        return {}
    return {
        INFORMED: np.array([np.full(items, np.nan) if one is None else one.scores for one in found])
    }


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
    over: Mapping[str, Estimate]
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
    steps: Mapping[str, float]
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
    power: Power
    """Power of this matrix for this model."""

    @property
    def above_fit(self) -> float:
        """The value of `advantage`."""
        return self.advantage.value

    @property
    def test_p(self) -> float:
        """p for the claim that its own cell stands out above skill, noise and pairs, without any
        baseline.
        """
        return float(np.max(list(self.steps.values())))

    def p_of(self, step: str) -> float:
        """p of a step; NaN where nothing in the matrix calls for it."""
        return math.nan if step in AS_NEEDED and self.steps[step] == 0 else self.steps[step]

    @property
    def stand_in(self) -> tuple[str, float]:
        """The other model whose own replies come closest, and what they get; ("", NaN) without any."""
        gets = {name: self.score.value - over.value for name, over in self.stand_ins.items()}
        return max(gets.items(), key=lambda item: item[1], default=("", math.nan))

    @property
    def near_copy(self) -> str:
        """The other model whose own replies predict this one better than every other's by
        `NEAR_COPY`; "" without.
        """
        gets = {name: self.score.value - over.value for name, over in self.stand_ins.items()}
        if len(gets) < 2:
            return ""
        *_, second, first = sorted(gets, key=lambda name: gets[name])
        return first if gets[first] - gets[second] >= NEAR_COPY else ""

    @property
    def baselines(self) -> Mapping[str, float]:
        """Baseline → its score."""
        return {name: self.score.value - estimate.value for name, estimate in self.over.items()}

    @property
    def without_a_model(self) -> tuple[str, float]:
        """Name and score of the best of the baselines that need no model; ("", NaN) without any."""
        plain = {name: value for name, value in self.baselines.items() if name != INFORMED}
        return max(plain.items(), key=lambda item: item[1], default=("", math.nan))

    @property
    def over_p(self) -> Mapping[str, float]:
        """One-sided p over each baseline."""
        return {name: above_zero(estimate) for name, estimate in self.over.items()}

    @property
    def p(self) -> float:
        """p for the claim that it has access: the largest of all p that are asked for."""
        stand_ins = [above_zero(estimate) for estimate in self.stand_ins.values()]
        return float(np.max([self.test_p, *self.over_p.values(), *stand_ins]))


def _above(score: FloatArray, hit: FloatArray, interval: Literal["difference", "t"]) -> Estimate:
    """Mean of score less hit, [item]; of a baseline that is the same at every item with the score's
    own interval.
    """
    items = np.arange(len(score))
    if np.ptp(hit) == 0:
        own, less = clustered_mean(score, items), float(hit[0])
        return replace(own, value=own.value - less, low=own.low - less, high=own.high - less)
    return clustered_mean(score - hit, items, interval=interval)


def _mean_where_missed(scores: FloatArray, hits: FloatArray) -> Estimate:
    """Mean of the scores [item] at the items that a prediction misses by half or more."""
    missed = np.where(hits <= 0.5, scores, np.nan)
    return clustered_mean(missed, np.arange(len(scores)), interval="t")


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
    specific: Specific,
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
    others = stand_in_names or models
    if len(models) < 3 or scores.shape[2] < 2 or np.isnan(specific.scores).all(axis=2).any():
        return ()
    given = with_own_missing(specific)
    floor = not graded and not specific.taken_off
    items = np.arange(scores.shape[2])
    found = own_cells_of_hits(given, scores, stand_ins) if graded else own_cells(given, floor=floor)
    none = [Power(math.nan, math.nan)] * len(models)
    could = (
        powers(given, tests=tests, rng=rng, floor=floor)
        if power and len(models) >= FEWEST
        else none
    )
    means, out = np.nanmean(scores, axis=2), []
    interval: Literal["difference", "t"] = "difference" if graded else "t"
    for i, model in enumerate(models):
        j = int(np.argmax(np.where(np.arange(len(models)) == i, -math.inf, means[i])))
        score, over = (
            scores[i, i],
            {name: _above(scores[i, i], hit[i], interval) for name, hit in hits.items()},
        )
        least = {name: e.value for name, e in over.items() if name != INFORMED and e.n}
        best = (
            hits[min(least, key=lambda name: least[name])][i]
            if least
            else np.full(len(items), math.nan)
        )
        stood = (
            {}
            if stand_ins is None
            else {o: _above(score, stand_ins[i, k], interval) for k, o in enumerate(others)}
        )
        predictions = {name: hit[i] for name, hit in hits.items()}
        if stand_ins is not None:
            predictions |= {
                other: stand_ins[i, k] for k, other in enumerate(others) if other != model
            }
        out.append(
            ModelRow(
                model=model,
                score=clustered_mean(score, items),
                specific=clustered_mean(specific.scores[i, i], items, interval=interval),
                habit=float(specific.habit[i, i]),
                habits=specific.by[i] if specific.by else {},
                rival=models[j],
                rival_score=float(means[i, j]),
                over_rival=_above(score, scores[i, j], interval),
                over={name: estimate for name, estimate in over.items() if estimate.n},
                where_missed={
                    name: _mean_where_missed(specific.scores[i, i], predicted)
                    for name, predicted in predictions.items()
                },
                guess=clustered_mean(np.where(np.isnan(score), math.nan, best), items),
                stand_ins={
                    other: estimate
                    for other, estimate in stood.items()
                    if other != model and estimate.n
                },
                steps={name: float(p[i]) for name, p in found.steps.items()},
                scales={name: float(p[i]) for name, p in found.scales.items()},
                advantage=_own_advantage(found, i, len(items)),
                pairs=found.spread,
                outsider=bool(found.outsider[i]),
                power=could[i],
            )
        )
    return tuple(out)


def _own_advantage(own: OwnCells, model: int, items: int) -> Estimate:
    """The advantage of a model on itself over what skill and predictability give."""
    if math.isnan(own.over[model]):
        reason = f"{FEWEST} models and items that all observers score are the least"
        return undefined(reason, n=items)
    low, high = float(own.over_low[model]), float(own.over_high[model])
    return Estimate(float(own.over[model]), low, high, items, "item")


def with_own_missing(specific: Specific) -> FloatArray:
    """The item-specific scores with each model's own missing ones as wrong, where another observer
    has one.

    An item that nobody has, since the target's act failed, says nothing of anybody. Where no habit
    is known, the test itself counts what is missing as the worst score that there is.
    """
    scores, own = specific.scores.copy(), np.arange(len(specific.scores))
    wrong = -specific.habit[own, own][:, None]
    lost = np.isnan(scores[own, own]) & ~np.isnan(scores).all(axis=1) & ~np.isnan(wrong)
    scores[own, own] = np.where(lost, wrong, scores[own, own])
    return scores


def models_with_replies(results: Results, matrix: TaskMatrix, models: Sequence[str]) -> list[str]:
    """The models, and further ones of which the replies to half of the items or more are there, if
    nothing else.
    """
    rows = results.decisions_of(matrix.task)
    own = rows[(rows.target == rows.observer) & rows.truth.notna() & rows.item.isin(matrix.items)]
    counts = own.groupby("target").item.nunique()
    further = [str(model) for model, count in counts.items() if count >= len(matrix.items) / 2]
    return [*models, *sorted(set(further) - set(models))]


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
    names = list(others or models)
    scores = _stand_ins_of_all(results, matrix, names)
    return None if scores is None else scores[: len(models)]


def _stand_ins_of_all(
    results: Results, matrix: TaskMatrix, models: Sequence[str]
) -> FloatArray | None:
    measure = measures()[matrix.task]
    rows = results.decisions_of(matrix.task)
    own = rows[(rows.target == rows.observer) & rows.target.isin(list(models))]
    if measure.act:
        acted, said = measure.act
        acts = own[own.key.map(measure.sides) == "target"].drop(columns="observer")
        as_predictions = own[own.key == acted].assign(key=said).drop(columns="target")
        told = [
            acts.merge(pd.DataFrame({"observer": models}), how="cross"),
            as_predictions.merge(pd.DataFrame({"target": models}), how="cross"),
        ]
        scored = scores_by_item(pd.concat(told))
        index = pd.MultiIndex.from_product([models, models, matrix.items])
        shape = (len(models), len(models), len(matrix.items))
        out = scored.reindex(index).to_numpy(dtype=float).reshape(shape)
    elif measure.text_tells and own.truth.notna().any():
        out = _equal_truths(own[own.truth.notna()], matrix.items, models, measure)
    else:
        return None
    return None if np.isnan(out).all() else np.asarray(out)


def _equal_truths(
    rows: pd.DataFrame, items: Sequence[str], models: Sequence[str], measure: Measure
) -> FloatArray:
    """[target, other model, item]: share of an item's questions at which the other's truth is right
    as a prediction.

    Args:
        rows: Decisions of models on themselves that have a truth.
        items: Names of the items.
        models: Names of the models.
        measure: The task's grading rule.
    """
    rows = rows.assign(item=pd.Index(items).get_indexer(rows.item))
    rows = rows[rows.item >= 0]
    question = rows.groupby(["item", "epoch", "key"]).ngroup().to_numpy()  # sorted by item
    item_of_question = np.zeros(question.max() + 1, dtype=np.intp)
    item_of_question[question] = rows.item
    first_questions = np.flatnonzero(np.diff(item_of_question, prepend=-1))
    truth_codes, texts = pd.factorize(rows.truth)
    truths = np.full((len(models), len(item_of_question)), -1)
    truths[pd.Index(models).get_indexer(rows.target), question] = truth_codes

    out = np.full((len(models), len(models), len(items)), np.nan)
    for place, truth in enumerate(truths):
        known = (truth >= 0) & (truths >= 0)
        if measure.right is operator.eq:
            right = known & (truths == truth)
        else:
            pairs, pair_of_question = np.unique(truths * len(texts) + truth, return_inverse=True)
            graded = [
                bool(measure.right(texts[pair // len(texts)], texts[pair % len(texts)]))
                for pair in pairs
            ]
            right = known & np.array(graded)[pair_of_question.reshape(known.shape)]
        counts = np.add.reduceat(known.astype(float), first_questions, axis=1)
        hits = np.add.reduceat(right.astype(float), first_questions, axis=1)
        share = np.where(counts > 0, hits / np.maximum(counts, 1), np.nan)
        out[place][:, item_of_question[first_questions]] = share
    return out


def baseline_hits(
    results: Results, matrix: TaskMatrix, models: Sequence[str], alike: Mapping[str, pd.Series]
) -> dict[str, FloatArray]:
    """Baseline → [target, item] of what needs no model, on the models' runs on themselves.

    For truths that are a class (`Decision.truth`) and are not told by the item itself: the
    commonest truth (of the items that are alike in something, leave one out), and a classifier of
    the text. Else what the scorer found with measures of likeness (`Decision.plain`), or
    predictions that know nothing of the item (`Measure.blind`).
    """
    rows = results.decisions_of(matrix.task)
    own = rows[(rows.target == rows.observer) & rows.target.isin(list(models))]
    measure = measures()[matrix.task]
    blind = measure.blind(own) if measure.blind and len(own) else {}
    own = own.sort_values("epoch", kind="stable").drop_duplicates(["target", "item", "key"])
    texts = results.items[results.items.task == matrix.task].set_index("item").input
    items = pd.Index(matrix.items)
    item_texts = texts.reindex(items).to_numpy(dtype=object)
    groups = {name: pd.factorize(of.reindex(items))[0] for name, of in alike.items()}
    means = _MeanHits(len(models), items)
    for place, model in enumerate(models):
        of_model = own[own.target == model]
        for name, hits in _plain(of_model):
            means.add(name, place, items.get_indexer(hits.index), hits.to_numpy(dtype=float))
        for name, by_item in blind.items():
            if model in of_model.target.values:
                hits = by_item.xs(model, level="target")
                means.add(name, place, items.get_indexer(hits.index), hits.to_numpy(dtype=float))
        with_truth = of_model[of_model.truth.notna()]
        item_codes = items.get_indexer(with_truth.item)
        truths, keys = (
            with_truth.truth.to_numpy(dtype=object),
            with_truth.key.to_numpy(dtype=object),
        )
        for key in sorted(set(keys)):
            of_key = keys == key
            truth, at = truths[of_key], item_codes[of_key]
            if not measure.text_tells:
                means.add("mode", place, at, mode_baseline(truth, at, right=measure.right))
                continue
            for name, codes in groups.items():
                label = "mode" if name == ALL else f"mode by {name}"
                for code in np.unique(codes[at]):
                    # The commonest truth of the others, ties shared; a group's only item has none.
                    alike_at = codes[at] == code
                    hits = mode_baseline(truth[alike_at], at[alike_at], right=measure.right)
                    means.add(label, place, at[alike_at], hits)
            seen = text_only_observer(list(item_texts[at]), list(truth), right=measure.right)
            means.add("text only", place, at, seen.hits)
    return means.by_name


class _MeanHits:
    """Means of the hits of baselines over the keys of an item."""

    def __init__(self, models: int, items: pd.Index) -> None:
        self.shape = (models, len(items))
        self.sums = dict[str, FloatArray]()
        self.counts = dict[str, FloatArray]()

    def add(self, name: str, place: int, items: npt.NDArray[np.intp], hits: FloatArray) -> None:
        """Count `hits  # [row]` of a baseline, NaN where there is none, at these items, for the model at this place.

        An item of -1 is none of the matrix.
        """
        sums = self.sums.setdefault(name, np.zeros(self.shape))
        counts = self.counts.setdefault(name, np.zeros(self.shape))
        known = ~np.isnan(hits) & (items >= 0)
        np.add.at(sums[place], items[known], hits[known])
        np.add.at(counts[place], items[known], 1)

    @property
    def by_name(self) -> dict[str, FloatArray]:
        """Baseline → mean hits [model, item], NaN where there is none; without those that have no
        hit at all.
        """
        out = dict[str, FloatArray]()
        for name, counts in self.counts.items():
            if counts.any():
                out[name] = np.where(counts, self.sums[name] / np.maximum(counts, 1), np.nan)
        return out


def _plain(rows: pd.DataFrame) -> list[tuple[str, pd.Series]]:
    """Values of the scorer's measures of likeness, by name."""
    found = pd.DataFrame([plain or {} for plain in rows.plain], index=pd.Index(rows.item))
    return [(str(name), found[name].dropna()) for name in found if found[name].notna().any()]


def baselines_left_out(
    results: Results, task: str, applied: Mapping[str, object]
) -> dict[str, str]:
    """Why a baseline is not among those applied."""
    told = results.decisions_of(task).truth.notna().any()
    no_class = "" if told else "a truth of this task is no word or slot that could be guessed"
    reasons = {
        "mode": no_class or "too few truths to find a most frequent one",
        "text only": no_class
        or (
            "the item's text is the truth or tells nothing of it"
            if not measures()[task].text_tells
            else ""
        )
        or f"a text classifier needs {SMALLEST_TEXT_SAMPLE} different questions with a truth",
    }
    reasons |= {INFORMED: NOT_RUN} if takes_about(task) else {}
    return {name: why for name, why in reasons.items() if name not in applied}
