"""The numbers of `selfprobe check`: what changed between two runs of the same items, and whether it
is worse.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from selfprobe.logs.reducers import MEAN
from selfprobe.stats.claim import ALPHA, Check, Claim, Outcome, Verdict, outcome_if
from selfprobe.stats.estimate import holm
from selfprobe.stats.paired import Change
from selfprobe.stats.paired import change as mean_change
from selfprobe.studies.check_cells import Cell, CellValues, shared_cells, values_at
from selfprobe.studies.check_pairs import BaselineRun, Pair, distinct_names, target_suffix
from selfprobe.text.safe import concealed

UNNAMED_SCORE = "score"
"""Name of the score of a run in which nothing was scored: its log does not say what the score is
called.
"""
FEWEST_SKILL_CLUSTERS = 5
"""Smallest number of clusters for which a skill is compared; with fewer the score is."""
LARGEST_SHARE_ASKED_OTHERWISE = 0.05
"""Share of samples that may be asked otherwise than before, such as those that got a higher limit.
"""
UNSCORED_METRIC = "unscored"
"""Name of the share of unscored values as a metric."""
REASONED_METRIC = "reasoned"
"""Name of the share of values at which the model reasoned against the task's wish, as a metric."""
ASKED_METRIC = "asked"
"""Name of how the model was asked, as a metric."""


class ChangeVerdict(StrEnum):
    """What is said of a change, the worst first; the value is the word of lines and of JSON."""

    WORSE = "worse"
    CANNOT_TELL = "cannot tell"
    NO_WORSE = "no worse"
    UNCHANGED = "unchanged"
    BETTER = "better"


WORST_FIRST = tuple(ChangeVerdict)


@dataclass(frozen=True)
class MetricChange:
    """One metric of one run, before and after."""

    task: str
    """Task with the arguments that distinguish it from others of the same task and model: "kth_word
    (k=2)".
    """
    model: str
    target: str
    """The model that the predictions are about; the model itself as a rule."""
    metric: str
    """Name: "skill", "accuracy", another suite's scorer, or "unscored", "reasoned", "asked"."""
    change: Change | None
    """Change of the metric; None for how the model was asked, which is no number."""
    lower_is_better: bool = False
    worst_case: Change | None = None
    """Change if what is newly unscored were as bad as can be; None where nothing is."""
    why: str = ""
    """The reason that grew most, or what was asked otherwise."""
    verdict: ChangeVerdict = ChangeVerdict.CANNOT_TELL
    p_holm: float = math.nan
    """Two-sided p, corrected over all rows."""
    needed: int | None = None
    """Number of items that show a change of the smallest size with 80 % power; None where that is
    not known.
    """
    needed_as_large: int | None = None
    """Number of items that show a change as large as this one."""
    power: float = math.nan
    """Probability that such a change is shown here."""

    @property
    def models(self) -> str:
        """Name of the model, and of a target that is not it."""
        return self.model + target_suffix(self.model, self.target)


def changes_of(
    pairs: Sequence[Pair], *, smallest: float, lower: Collection[str] = ()
) -> list[MetricChange]:
    """Every metric of every pair with its verdict, p corrected over all of them (Holm).

    Args:
        pairs: Runs before and after.
        smallest: The smallest change that matters, in units of each metric.
        lower: Metrics whose lower values are better.
    """
    task_names = distinct_names([new for _, new in pairs])
    rows = list[MetricChange]()
    for task_name, (old, new) in zip(task_names, pairs, strict=True):
        rows += [replace(row, task=task_name) for row in _undecided_rows(old, new, lower)]
    p_values = [row.change.p for row in rows if row.change is not None]
    adjusted_p_values = iter(holm(p_values).tolist() if p_values else [])
    decided_rows = []
    for row in rows:
        if row.change is not None:
            row = with_verdict(row, row.change, next(adjusted_p_values), smallest, len(p_values))
        decided_rows.append(row)
    return decided_rows


def with_verdict(
    row: MetricChange, change: Change, p_holm: float, smallest: float, tests: int
) -> MetricChange:
    """A row with its verdict.

    "worse": the claim that it fell is a Yes. Where it is a No: "unchanged" if the interval lies
    inside ± smallest, "better" if it rose with p_holm below .05, else "no worse". What is newly
    unscored can turn each but "worse" into "cannot tell".
    """
    claim = fall_claim(row, change, p_holm, smallest)
    low, high = _improvement_interval(change, row.lower_is_better)
    worst_low, _ = _improvement_interval(row.worst_case or change, row.lower_is_better)
    verdict = ChangeVerdict.NO_WORSE
    reason = row.why
    if claim.verdict is Verdict.YES:
        verdict = ChangeVerdict.WORSE
    elif claim.verdict is Verdict.CANNOT_TELL:
        verdict = ChangeVerdict.CANNOT_TELL
        if row.worst_case is not None and low > -smallest:
            reason = "newly unscored values could hide a fall"
    elif -smallest < low and high < smallest:
        verdict = ChangeVerdict.UNCHANGED
    elif p_holm < ALPHA and low > 0 and worst_low > 0:
        verdict = ChangeVerdict.BETTER
    needed = change.needed(smallest, tests=tests)
    power = change.power(smallest, tests=tests)
    needed_as_large = None
    if abs(change.estimate.value) > smallest:
        needed_as_large = change.needed(abs(change.estimate.value), tests=tests)
    return replace(
        row,
        verdict=verdict,
        p_holm=p_holm,
        needed=needed,
        needed_as_large=needed_as_large,
        power=power,
        why=reason,
    )


def fall_claim(row: MetricChange, change: Change, p_holm: float, smallest: float) -> Claim:
    """The claim that a metric fell, or rose where less is better.

    Args:
        row: The metric, with its change if what is newly unscored were as bad as can be.
        change: Its change.
        p_holm: Two-sided p, corrected over all metrics.
        smallest: Smallest change that matters.
    """
    low, high = _improvement_interval(change, row.lower_is_better)
    worst_low, _ = _improvement_interval(row.worst_case or change, row.lower_is_better)
    estimate = change.estimate
    sign = 1 if row.lower_is_better else -1
    fall = replace(estimate, value=sign * estimate.value, low=-high, high=-low)
    largest_high = float(np.maximum(-low, -worst_low))  # NaN where either is unknown
    largest_fall = replace(fall, high=largest_high)

    fall_outcome = outcome_if(p_holm < ALPHA and fall.low > 0)
    is_negligible = fall.low > -smallest and fall.high < smallest
    size_outcome = Outcome.FAILS if is_negligible else Outcome.HOLDS
    checks = (
        Check("fell", fall, fall_outcome, p_value=p_holm, remedy="add items"),
        Check("matters", fall, size_outcome),
    )
    return Claim(f"{row.task} {row.metric}", largest_fall, checks, smallest)


def _improvement_interval(change: Change, lower_is_better: bool) -> tuple[float, float]:
    """The interval, upwards what is better; NaN where there is none."""
    estimate = change.estimate
    return (-estimate.high, -estimate.low) if lower_is_better else (estimate.low, estimate.high)


def _undecided_rows(
    old: BaselineRun, new: BaselineRun, lower: Collection[str]
) -> Iterator[MetricChange]:
    """The rows of a pair: scores, then what is unscored or reasoned, then the way of asking."""
    is_of_suite = bool(new.metric)
    # Another suite's new score has nothing to be compared with.
    compared_runs = [old, new] if is_of_suite else [old]
    keys = dict[str, None]()
    for run in compared_runs:
        for values_by_key in run.items.values():
            keys |= dict.fromkeys(values_by_key)
    key_groups = [list(keys)]
    if not is_of_suite:
        key_groups = [[key] for key in keys]
    for reducer in new.reducers or [MEAN]:
        for key_group in key_groups:
            yield _score_row(old, new, key_group, lower, reducer)

    cells = shared_cells(old, new, list(keys))
    clusters = _cluster_numbers(new, cells)
    old_values = values_at(old, cells)
    new_values = values_at(new, cells)
    added_reasons = new_values.reasons - old_values.reasons
    most_added = max(sorted(added_reasons), key=lambda reason: added_reasons[reason], default="")
    rates = (
        (UNSCORED_METRIC, old_values.missing, new_values.missing, most_added),
        (REASONED_METRIC, old_values.reasoned, new_values.reasoned, ""),
    )
    for metric, old_rates, new_rates, reason in rates:
        if old_rates.any() or new_rates.any():
            rate_change = mean_change(old_rates, new_rates, clusters, unit=_unit(new))
            yield MetricChange(
                new.task,
                new.model,
                new.target,
                metric,
                rate_change,
                lower_is_better=True,
                why=reason,
            )

    changed_asking = _changed_asking(old, new)
    if changed_asking:
        has_same_arguments = concealed(old.model_args) == concealed(new.model_args)
        is_same_model = old.model == new.model and has_same_arguments
        verdict = ChangeVerdict.WORSE if is_same_model else ChangeVerdict.CANNOT_TELL
        yield MetricChange(
            new.task,
            new.model,
            new.target,
            ASKED_METRIC,
            None,
            why=changed_asking,
            verdict=verdict,
        )


def _score_row(
    old: BaselineRun, new: BaselineRun, keys: Sequence[str], lower: Collection[str], reducer: str
) -> MetricChange:
    """The row of a score; a skill where something can be guessed without a model."""
    cells = shared_cells(old, new, keys)
    clusters = _cluster_numbers(new, cells)
    old_values = values_at(old, cells, reducer)
    new_values = values_at(new, cells, reducer)
    metric = new.metric or keys[0]
    if metric == UNNAMED_SCORE:
        metric = old.metric or metric
    if len(new.reducers) > 1:
        metric = f"{metric} ({reducer})"
    lower_is_better = metric in lower

    all_values = np.concatenate([old_values.values, new_values.values])
    scored_values = all_values[~np.isnan(all_values)]
    if not len(scored_values):
        scored_values = np.zeros(1)
    lower_limit = float(scored_values.min())
    upper_limit = float(scored_values.max())
    if lower_limit >= 0 and upper_limit <= 1:
        lower_limit = 0.0
        upper_limit = 1.0
    scale = (upper_limit - lower_limit) or 1.0
    worst_value = upper_limit if lower_is_better else lower_limit
    worst_values = _with_lost_values(old_values, new_values, worst_value)

    unit = _unit(new)
    is_in_both = ~np.isnan(old_values.values) & ~np.isnan(new_values.values)
    cluster_count = len(np.unique(clusters[is_in_both]))
    has_guesses = bool(old.blind or new.blind)
    if has_guesses and cluster_count >= FEWEST_SKILL_CLUSTERS:
        skill = _skill_change(old_values, new_values, clusters, unit)
        worst_skill = None
        if worst_values is not None:
            worst_skill = _skill_change(old_values, worst_values, clusters, unit)
        if skill is not None and (worst_values is None or worst_skill is not None):
            return MetricChange(
                new.task, new.model, new.target, "skill", skill, worst_case=worst_skill
            )

    score_change = mean_change(
        old_values.values, new_values.values, clusters, unit=unit, scale=scale
    )
    worst_case = None
    if worst_values is not None:
        worst_case = mean_change(
            old_values.values, worst_values.values, clusters, unit=unit, scale=scale
        )
    return MetricChange(
        new.task,
        new.model,
        new.target,
        metric,
        score_change,
        lower_is_better=lower_is_better,
        worst_case=worst_case,
    )


def _with_lost_values(
    old_values: CellValues, new_values: CellValues, worst_value: float
) -> CellValues | None:
    """The run of now with what it lost as bad as can be; None where it lost no more than it gained.

    What is lost and gained by chance balances: as many as became scored are taken to be as they
    were.
    """
    was_unscored = np.isnan(old_values.values)
    is_unscored = np.isnan(new_values.values)
    missing_change = new_values.missing - old_values.missing
    lost_shares = np.where(was_unscored, 0.0, np.maximum(0.0, missing_change))
    gained_shares = np.maximum(0.0, -missing_change)
    if lost_shares.sum() <= gained_shares.sum():
        return None
    worst_shares = lost_shares * (1 - gained_shares.sum() / lost_shares.sum())
    other_values = np.where(is_unscored, old_values.values, new_values.values)
    values = (1 - worst_shares) * other_values + worst_shares * worst_value
    guesses = np.where(is_unscored, old_values.blind, new_values.blind)
    return replace(new_values, values=values, blind=guesses)


def _skill_change(
    old_values: CellValues, new_values: CellValues, clusters: npt.NDArray[np.intp], unit: str
) -> Change | None:
    """The change of the skill, linearised as in `stats.estimate.skill`; None where a guess is
    always right.
    """
    is_in_both = ~np.isnan(old_values.values) & ~np.isnan(new_values.values)
    linearised_skills = []
    scale = 1.0
    for run_values in (old_values, new_values):
        mean_score = float(run_values.values[is_in_both].mean())
        mean_guess = float(run_values.blind[is_in_both].mean())
        if mean_guess >= 1:
            return None
        scale = max(scale, 1 / (1 - mean_guess))
        slope = (1 - mean_score) / (1 - mean_guess)
        guess_excess = run_values.blind - mean_guess
        adjusted_values = run_values.values - slope * guess_excess - mean_guess
        linearised_skills.append(adjusted_values / (1 - mean_guess))
    old_skills, new_skills = linearised_skills
    return mean_change(old_skills, new_skills, clusters, unit=unit, scale=scale)


def _changed_asking(old: BaselineRun, new: BaselineRun) -> str:
    """Text on how the model was asked otherwise than before, where that is more than a few samples;
    or "".
    """
    old_samples = sum(old.applied.values())
    new_samples = sum(new.applied.values())
    if not old_samples or not new_samples:
        return ""
    share_changes = {}
    for settings in sorted({*old.applied, *new.applied}):
        old_share = old.applied.get(settings, 0) / old_samples
        new_share = new.applied.get(settings, 0) / new_samples
        share_changes[settings] = new_share - old_share
    increases = [max(0.0, share_change) for share_change in share_changes.values()]
    if sum(increases) <= LARGEST_SHARE_ASKED_OTHERWISE:
        return ""
    rarer = min(share_changes, key=lambda settings: share_changes[settings])
    more_frequent = max(share_changes, key=lambda settings: share_changes[settings])
    return f"{rarer} → {more_frequent}"


def _cluster_numbers(run: BaselineRun, cells: Sequence[Cell]) -> npt.NDArray[np.intp]:
    """The number of each cell's cluster, `[cell]`."""
    number_by_cluster = dict[str, int]()
    numbers = []
    for item, _ in cells:
        cluster = run.clusters.get(item, item)
        numbers.append(number_by_cluster.setdefault(cluster, len(number_by_cluster)))
    return np.array(numbers, dtype=np.intp)


def _unit(run: BaselineRun) -> str:
    return "cluster" if run.clusters else "item"
