"""The numbers of `selfprobe check`: what changed between two runs of the same items, and whether it
is worse.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from selfprobe.errors import InputError
from selfprobe.logs.judged import FAILED, NO_SCORE
from selfprobe.logs.reducers import GROW_WITH_EPOCHS, MEAN, known_reducer, parts_of, reduced
from selfprobe.stats.claim import Check, Claim, Outcome, Verdict
from selfprobe.stats.estimate import FloatArray, holm
from selfprobe.stats.paired import TWO_SIDED, Change
from selfprobe.stats.paired import change as mean_change
from selfprobe.text.counts import count_text
from selfprobe.text.safe import concealed

UNBOUND = "the evaluated model"
"""Stand-in for the model of a role that nobody was given."""
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

Cell = tuple[str, str]
"""An item and a key."""


class ChangeVerdict(StrEnum):
    """What is said of a change, the worst first; the value is the word of lines and of JSON."""

    WORSE = "worse"
    CANNOT_TELL = "cannot tell"
    NO_WORSE = "no worse"
    UNCHANGED = "unchanged"
    BETTER = "better"


WORST_FIRST = tuple(ChangeVerdict)


def target_suffix(model: str, target: str) -> str:
    """Part of a run's name about a target that is not its model."""
    return f" about {target}" if target != model else ""


@dataclass(frozen=True)
class BaselineRun:
    """One run, with fields that are all JSON."""

    task: str
    model: str
    target: str
    version: str
    """Version of the task, without the data set's hash."""
    selfprobe: str
    """Version of the suite; "" of other suites' logs."""
    args: dict[str, Any]
    """Task arguments that are set; for the suite's tasks those that differ from the default."""
    model_args: dict[str, Any]
    data: str
    """Hash of the whole data set; "" for other suites, whose `inputs` are compared."""
    plan: str
    """Digest of the solvers and their arguments; "" for the suite's tasks, whose version says it.
    """
    prompts: list[str]
    """Digests of the first sample's prompts."""
    applied: dict[str, int]
    """Settings that the model was really asked with (other suites: that it was to be asked with) →
    samples.
    """
    metric: str
    """Name of the score of the suite's task; "" for other suites, which have one per scorer."""
    metrics: dict[str, float]
    """Metrics as the log has them, for the reader."""
    items: dict[str, dict[str, list[float | str]]]
    """Item → key → each epoch's value, or why there is none: "error" for a sample that failed."""
    blind: dict[str, dict[str, float]] = field(default_factory=dict)
    """Item → key → score of the best guess without a model (chance, the most frequent truth); 0
    where left out.
    """
    reasoned: dict[str, list[str]] = field(default_factory=dict)
    """Item → keys at which the model reasoned against the task's wish, once per epoch."""
    inputs: dict[str, str] = field(default_factory=dict)
    """Item → digest of what it asks."""
    clusters: dict[str, str] = field(default_factory=dict)
    """Item → what it comes from, where items were grouped."""
    answers: dict[str, str] = field(default_factory=dict)
    """Item → digest of its options and its target, where it has any."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Key of another suite's score → why it is not compared."""
    roles: dict[str, str] = field(default_factory=dict)
    """Role → its model, for all roles but the target."""
    scorers: dict[str, str] = field(default_factory=dict)
    """Scorer of another suite → digest of its arguments."""
    said: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Item → key → answers, "" where one could not be read."""
    reducers: list[str] = field(default_factory=list)
    """Names of what made one value of the epochs of an item, of another suite's scores; none is the
    mean.
    """

    @property
    def epochs(self) -> int:
        """Number of epochs of the item that has most."""
        most_epochs = 0
        for values_by_key in self.items.values():
            for epoch_values in values_by_key.values():
                most_epochs = max(most_epochs, len(epoch_values))
        return most_epochs

    @property
    def name(self) -> str:
        """Name for people: the task and its model."""
        return f"{self.task} of {self.model}{target_suffix(self.model, self.target)}"


Pair = tuple[BaselineRun, BaselineRun]
"""A run before and the same one after."""
Draw = Callable[[np.random.Generator], list[Pair]]
"""Makes new runs before and after from a random generator."""


PAIRING_LEVELS = 6
"""Number of properties by which runs are paired, one after the other (`_pairing_keys`)."""


def _pairing_keys(run: BaselineRun) -> tuple[Hashable, ...]:
    """Properties that two runs may share, from the closest. The last ones find the pair whose
    difference is worth a word.
    """
    arguments = repr(run.args)
    model_arguments = repr(concealed(run.model_args))
    return (
        (run.task, arguments, run.model, run.target, model_arguments),
        (run.task, arguments, run.model, run.target),
        (run.task, arguments, run.model),
        (run.task, arguments, run.model == run.target),
        (run.task, run.model),
        run.task,
    )


@dataclass(frozen=True)
class RunPairs:
    """Runs before and after."""

    pairs: list[Pair] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """A run's name → why it is not compared."""
    notes: list[str] = field(default_factory=list)
    """Notes for the reader that are no reason to refuse."""


def pair_runs(before: Sequence[BaselineRun], after: Sequence[BaselineRun]) -> RunPairs:
    """Pair each earlier run with its current one (`match_runs`), or say why they are not compared."""
    run_pairs = RunPairs()
    matches = match_runs(before, after)
    for old, new in matches.pairs:
        _add_pair(old, new, run_pairs)
    for run in matches.only_before:
        run_pairs.refused[run.name] = _unpaired_reason(run, matches.only_after)
    baseline_tasks = {run.task for run in before}
    unpaired_tasks = {run.task for run in matches.only_before}
    for run in matches.only_after:
        if run.task not in baseline_tasks or run.task not in unpaired_tasks:
            run_pairs.refused[name_with_arguments(run)] = (
                "it is not in the baseline; save a new baseline of all runs, or leave it out"
            )
    return run_pairs


@dataclass(frozen=True)
class RunMatches:
    """Runs before and after that belong together, compared or not."""

    pairs: list[Pair]
    only_before: list[BaselineRun]
    only_after: list[BaselineRun]


def match_runs(before: Sequence[BaselineRun], after: Sequence[BaselineRun]) -> RunMatches:
    """Match each earlier run with the current one of the same task, arguments and model; a single
    other model counts.
    """
    pairs = list[Pair]()
    unpaired_before = list(before)
    unpaired_after = list(after)
    for level in range(PAIRING_LEVELS):
        groups = defaultdict[Hashable, Pairable](Pairable)
        for run in unpaired_before:
            groups[_pairing_keys(run)[level]].before.append(run)
        for run in unpaired_after:
            groups[_pairing_keys(run)[level]].after.append(run)
        for group in groups.values():
            if len(group.before) == len(group.after) == 1:
                old = group.before[0]
                new = group.after[0]
                pairs.append((old, new))
                unpaired_before.remove(old)
                unpaired_after.remove(new)
    return RunMatches(pairs, unpaired_before, unpaired_after)


@dataclass
class Pairable:
    """Runs that share a property."""

    before: list[BaselineRun] = field(default_factory=list)
    after: list[BaselineRun] = field(default_factory=list)


def name_with_arguments(run: BaselineRun) -> str:
    """A run's name, with its arguments where it has any: "kth_word of openai/a (k=2)"."""
    arguments = ", ".join(f"{name}={value}" for name, value in sorted(run.args.items()))
    return f"{run.name} ({arguments})" if arguments else run.name


def _unpaired_reason(run: BaselineRun, unpaired_after: Sequence[BaselineRun]) -> str:
    """Why a run of the baseline has no current one."""
    names = sorted(unpaired.name for unpaired in unpaired_after if unpaired.task == run.task)
    same_name_count = names.count(run.name)
    if same_name_count > 1:
        return (
            f"the logs have {same_name_count} runs of it with other arguments or samples, and one "
            "is compared; give its log"
        )
    listed_names = names[:3]
    if len(names) > 3:
        listed_names.append(f"{len(names) - 3} more")
    names_text = ", ".join(listed_names) or "none"
    return f"the baseline has it and the logs lack it; of {run.task} they have {names_text}"


def distinct_names(runs: Sequence[BaselineRun]) -> list[str]:
    """The task of each run, with its arguments where others of the same task and model have other
    ones.
    """
    identities = {(run.task, run.model, run.target, repr(run.args)) for run in runs}
    argument_sets = Counter(identity[:3] for identity in identities)
    names = []
    for run in runs:
        if argument_sets[run.task, run.model, run.target] > 1:
            arguments = ", ".join(f"{name}={value}" for name, value in sorted(run.args.items()))
            names.append(f"{run.task} ({arguments or 'defaults'})")
        else:
            names.append(run.task)
    return names


def _add_pair(old: BaselineRun, new: BaselineRun, run_pairs: RunPairs) -> None:
    """Compare two runs, with what the reader should know of them, or refuse to."""
    reason = refusal(old, new)
    if reason:
        run_pairs.refused[new.name] = reason
        return
    run_pairs.pairs.append((old, new))
    run_pairs.notes.extend(f"{new.name}: {note}" for note in _pair_notes(old, new))


def _pair_notes(old: BaselineRun, new: BaselineRun) -> Iterator[str]:
    """Differences of two runs that are no reason to refuse."""
    if old.selfprobe != new.selfprobe:
        yield (
            f"the baseline is of selfprobe {old.selfprobe}, the logs are of {new.selfprobe}; the "
            "task's version is the same"
        )
    if old.model != new.model:
        yield f"the baseline's model is {old.model}"
    has_targets = old.target != old.model and new.target != new.model
    if has_targets and old.target != new.target:
        yield f"the baseline's target is {old.target}"
    if old.epochs != new.epochs:
        yield (
            f"the baseline has {count_text(old.epochs, 'epoch')} of an item, the logs "
            f"{new.epochs}; what is compared is each item's {', '.join(new.reducers) or MEAN}"
        )
    new_keys = sorted(keys_of(new) - keys_of(old))
    if new_keys and not new.metric:
        yield f"{', '.join(new_keys)} is not in the baseline"
    for reason in new.left_out.values():
        yield f"not compared: {reason}"
    for reducer in new.reducers:
        if known_reducer(reducer) is None:
            yield (
                f"the log reduces an item's epochs by {reducer}, which is not known here: their "
                "mean is compared"
            )
        else:
            yield f"an item's value is the {reducer} of its epochs, as in the log"


def refusal(old: BaselineRun, new: BaselineRun) -> str:
    """Why two runs say nothing about a change of the model, or ""."""
    reasons = (
        _changed_questions(old, new),
        _changed_processing(old, new),
        _lacking_scores(old, new),
        _lacking_items(old, new),
    )
    return next((reason for reason in reasons if reason), "")


def _changed_questions(old: BaselineRun, new: BaselineRun) -> str:
    """Another version, kind of target, argument, data set or item of the task; "" where there is
    none.
    """
    if old.version != new.version:
        return (
            f"the baseline is of task version {old.version}, the logs are of {new.version}; save a "
            "new baseline"
        )
    if (old.target == old.model) != (new.target == new.model):
        return (
            f"the baseline is of {_model_and_target(old)}, the logs are of "
            f"{_model_and_target(new)}; run the same, or save a new baseline"
        )
    if old.args != new.args:
        return (
            f"asked with other task arguments: {_changed_arguments(old, new)}; give the same, or "
            "save a new baseline"
        )
    if old.data != new.data:
        return (
            f"another data set: its hash was {old.data[:12] or 'none'} and is "
            f"{new.data[:12] or 'none'}"
        )
    changed_inputs = _changed_items(old.inputs, new.inputs)
    if changed_inputs:
        return (
            f"{len(changed_inputs)} of {len(old.inputs)} samples ask something else under the same "
            f"id, as {min(changed_inputs)}"
        )
    changed_answers = _changed_items(old.answers, new.answers)
    if changed_answers:
        return (
            f"{len(changed_answers)} of {len(old.answers)} samples have another target or other "
            f"options, as {min(changed_answers)}: the same reply is scored otherwise; save a new "
            "baseline"
        )
    return ""


def _changed_processing(old: BaselineRun, new: BaselineRun) -> str:
    """Other solvers, prompts, scorers or reducers; "" where there are none."""
    if old.plan != new.plan:
        return "its solvers or their arguments changed (a prompt template among them)"
    scoring_reason = _changed_scoring(old, new)
    if scoring_reason:
        return f"{scoring_reason}: the same reply is scored otherwise; save a new baseline"
    if old.prompts and new.prompts and not {*old.prompts} & {*new.prompts}:
        return "the prompts changed, and the task's version did not; save a new baseline"
    growing = [reducer for reducer in new.reducers if parts_of(reducer)[0] in GROW_WITH_EPOCHS]
    if growing and old.epochs != new.epochs:
        return (
            f"the baseline has {old.epochs} epochs of an item, the logs {new.epochs}, and their "
            f"{growing[0]} grows with them; run as many, or save a new baseline"
        )
    return ""


def _lacking_scores(old: BaselineRun, new: BaselineRun) -> str:
    """A score that only one of the runs has as numbers; "" where there is none."""
    for key, reason in new.left_out.items():
        if key in keys_of(old):
            return f"{reason}; the baseline has numbers there"
    for key, reason in old.left_out.items():
        if key in keys_of(new):
            return f"{reason}; that is the baseline's"
    new_keys = keys_of(new)
    lacking_keys = sorted(keys_of(old) - new_keys)
    if lacking_keys and new_keys and not new.metric:
        present_keys = ", ".join(sorted(new_keys))
        return (
            f"the logs lack the score {lacking_keys[0]}, which the baseline has; they have "
            f"{present_keys}"
        )
    return ""


def _lacking_items(old: BaselineRun, new: BaselineRun) -> str:
    lacking_items = old.items.keys() - new.items.keys()
    if lacking_items:
        return (
            f"the logs have {len(old.items) - len(lacking_items)} of the baseline's "
            f"{len(old.items)} items (without {min(lacking_items)}); run all of them, or save a "
            "baseline of fewer"
        )
    return ""


def _model_and_target(run: BaselineRun) -> str:
    suffix = target_suffix(run.model, run.target)
    return f"{run.model}{suffix or ' about itself'}"


def _changed_arguments(old: BaselineRun, new: BaselineRun) -> str:
    """Task arguments that are other than before: "k was 2 and is 3"."""
    changes = []
    for name in sorted({*old.args, *new.args}):
        if old.args.get(name) != new.args.get(name):
            old_value = repr(old.args[name]) if name in old.args else "left out"
            new_value = repr(new.args[name]) if name in new.args else "left out"
            changes.append(f"{name} was {old_value} and is {new_value}")
    return ", ".join(changes)


def _changed_items(old_digests: dict[str, str], new_digests: dict[str, str]) -> list[str]:
    """Items of both runs whose digests differ."""
    common_items = old_digests.keys() & new_digests.keys()
    return [item for item in common_items if old_digests[item] != new_digests[item]]


def _changed_scoring(old: BaselineRun, new: BaselineRun) -> str:
    """Another grader, or another argument of a scorer that both have; "" where there is none."""
    for role in sorted({*old.roles, *new.roles}):
        old_model = old.roles.get(role, UNBOUND)
        new_model = new.roles.get(role, UNBOUND)
        if old_model != new_model:
            return f"another model has the role {role}, it was {old_model} and is {new_model}"
    if old.reducers != new.reducers:
        old_reducers = ", ".join(old.reducers) or MEAN
        new_reducers = ", ".join(new.reducers) or MEAN
        return f"an item's epochs were reduced by {old_reducers} and are by {new_reducers}"
    for scorer in sorted({*old.scorers} & {*new.scorers}):
        if old.scorers[scorer] != new.scorers[scorer]:
            return (
                f"the arguments of its scorer {scorer} changed (its grader or a template among "
                "them)"
            )
    return ""


def keys_of(run: BaselineRun) -> set[str]:
    """Keys of all values of a run, including unscored ones."""
    return {key for values_by_key in run.items.values() for key in values_by_key}


@dataclass(frozen=True)
class MetricChange:
    """One metric of one run, before and after."""

    task: str
    """Task with the arguments that distinguish it from others of the same task and model: "kth_word
    (k=2)".
    """
    model: str
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
    power: float = math.nan
    """Probability that such a change is shown here."""


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
    elif p_holm < TWO_SIDED and low > 0 and worst_low > 0:
        verdict = ChangeVerdict.BETTER
    needed = change.needed(smallest, tests=tests)
    power = change.power(smallest, tests=tests)
    return replace(row, verdict=verdict, p_holm=p_holm, needed=needed, power=power, why=reason)


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

    is_shown = p_holm < TWO_SIDED and fall.low > 0
    fall_outcome = Outcome.HOLDS if is_shown else Outcome.OPEN
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

    cells = _cells(old, new, list(keys))
    clusters = _cluster_numbers(new, cells)
    old_values = _cell_values(old, cells)
    new_values = _cell_values(new, cells)
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
                new.task, new.model, metric, rate_change, lower_is_better=True, why=reason
            )

    changed_asking = _changed_asking(old, new)
    if changed_asking:
        has_same_arguments = concealed(old.model_args) == concealed(new.model_args)
        is_same_model = old.model == new.model and has_same_arguments
        verdict = ChangeVerdict.WORSE if is_same_model else ChangeVerdict.CANNOT_TELL
        yield MetricChange(
            new.task, new.model, ASKED_METRIC, None, why=changed_asking, verdict=verdict
        )


def _score_row(
    old: BaselineRun, new: BaselineRun, keys: Sequence[str], lower: Collection[str], reducer: str
) -> MetricChange:
    """The row of a score; a skill where something can be guessed without a model."""
    cells = _cells(old, new, keys)
    clusters = _cluster_numbers(new, cells)
    old_values = _cell_values(old, cells, reducer)
    new_values = _cell_values(new, cells, reducer)
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
            return MetricChange(new.task, new.model, "skill", skill, worst_case=worst_skill)

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
        metric,
        score_change,
        lower_is_better=lower_is_better,
        worst_case=worst_case,
    )


def _with_lost_values(
    old_values: "_CellValues", new_values: "_CellValues", worst_value: float
) -> "_CellValues | None":
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
    old_values: "_CellValues", new_values: "_CellValues", clusters: npt.NDArray[np.intp], unit: str
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


@dataclass(frozen=True)
class _CellValues:
    """One run, `[cell]`."""

    values: FloatArray
    """What the reducer makes of the epochs; NaN where too few are scored."""
    missing: FloatArray
    """Share of epochs that are unscored."""
    blind: FloatArray
    reasoned: FloatArray
    reasons: Counter[str]
    """Why values are unscored."""


def _cells(old: BaselineRun, new: BaselineRun, keys: Sequence[str]) -> list[Cell]:
    """The baseline's items with the keys that either run has of each; where both failed, all."""
    cells = list[Cell]()
    for item, old_values in old.items.items():
        new_values = new.items[item]
        item_keys = [key for key in keys if key in old_values or key in new_values]
        if not old_values and not new_values:
            item_keys = list(keys)
        cells += [(item, key) for key in item_keys]
    return cells


def _cell_values(run: BaselineRun, cells: Sequence[Cell], reducer: str = MEAN) -> _CellValues:
    cell_values = list[float]()
    missing_shares = list[float]()
    blind_scores = list[float]()
    reasoned_shares = list[float]()
    reason_counts = Counter[str]()
    for item, key in cells:
        epoch_values = run.items[item].get(key, [FAILED])
        epoch_count = len(epoch_values)
        reasons = [value for value in epoch_values if isinstance(value, str)]
        reason_counts.update(reasons)
        scored_count = epoch_count - len(reasons)
        cell_values.append(reduced(_seen_by_scorer(epoch_values), reducer))
        missing_shares.append(1 - scored_count / epoch_count)
        blind_scores.append(run.blind.get(item, {}).get(key, 0.0))
        reasoned_shares.append(run.reasoned.get(item, []).count(key) / epoch_count)
    return _CellValues(
        values=np.array(cell_values),
        missing=np.array(missing_shares),
        blind=np.array(blind_scores),
        reasoned=np.array(reasoned_shares),
        reasons=reason_counts,
    )


def _seen_by_scorer(epoch_values: Sequence[float | str]) -> list[float]:
    """Values of the epochs that a scorer saw, NaN where it left one unscored."""
    seen_values = list[float]()
    for value in epoch_values:
        if not isinstance(value, str):
            seen_values.append(value)
        elif value not in (FAILED, NO_SCORE):
            seen_values.append(math.nan)
    return seen_values


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


@dataclass(frozen=True)
class TurnedCell:
    """A cell that was right and is wrong, or the reverse. Its fields are those of the JSON."""

    task: str
    model: str
    item: str
    key: str
    right: bool
    """Whether the cell is right now."""
    was: str
    """Most frequent answer before; "" where none is kept."""
    now: str

    def __str__(self) -> str:
        turn = "wrong → right" if self.right else "right → wrong"
        old_answer = f'"{self.was}"' if self.was else "no answer kept"
        new_answer = f'"{self.now}"' if self.now else "no answer kept"
        return f"{self.task} {self.item} {self.key}  {turn}: {old_answer} → {new_answer}"


RIGHT_OR_WRONG = frozenset({0.0, 0.5, 1.0})
"""Scores that say right, undecided or wrong; a cell of other ones does not turn."""


def turned_cells(pairs: Sequence[Pair], lower: Collection[str] = ()) -> list[TurnedCell]:
    """The cells that turned, those that are wrong now first; of scores that are 0, ½ or 1, by their
    first reducer.
    """
    all_turned = list[TurnedCell]()
    task_names = distinct_names([new for _, new in pairs])
    for task_name, (old, new) in zip(task_names, pairs, strict=True):
        reducer = new.reducers[0] if new.reducers else MEAN
        for key in sorted(keys_of(old) & keys_of(new)):
            cells = _cells(old, new, [key])
            all_scores = _scores(old, cells) | _scores(new, cells)
            if not all_scores <= RIGHT_OR_WRONG:
                continue
            sign = -1 if (new.metric or key) in lower else 1
            old_signs = sign * np.sign(_cell_values(old, cells, reducer).values - 0.5)
            new_signs = sign * np.sign(_cell_values(new, cells, reducer).values - 0.5)
            for (item, _), old_sign, new_sign in zip(cells, old_signs, new_signs, strict=True):
                if old_sign * new_sign < 0:
                    turned_cell = TurnedCell(
                        task=task_name,
                        model=new.model,
                        item=item,
                        key=key,
                        right=bool(new_sign > 0),
                        was=_most_frequent_answer(old, item, key),
                        now=_most_frequent_answer(new, item, key),
                    )
                    all_turned.append(turned_cell)
    return sorted(all_turned, key=lambda cell: cell.right)


def scores_of(run: BaselineRun) -> set[float]:
    """All different scores of a run."""
    cells = list[Cell]()
    for item, values_by_key in run.items.items():
        cells += [(item, key) for key in values_by_key]
    return _scores(run, cells)


def _scores(run: BaselineRun, cells: Sequence[Cell]) -> set[float]:
    """All different scores of a run at these cells."""
    scores = set[float]()
    for item, key in cells:
        scores |= {value for value in run.items[item].get(key, []) if not isinstance(value, str)}
    return scores


def _most_frequent_answer(run: BaselineRun, item: str, key: str) -> str:
    answers = run.said.get(item, {}).get(key, [""])
    return Counter(answers).most_common(1)[0][0]


def item_draws(pairs: Sequence[Pair]) -> Draw:
    """Draws the items of both runs anew, whole clusters with replacement."""

    def resampled_pairs(rng: np.random.Generator) -> list[Pair]:
        return [_resampled_pair(old, new, rng) for old, new in pairs]

    return resampled_pairs


def _resampled_pair(old: BaselineRun, new: BaselineRun, rng: np.random.Generator) -> Pair:
    items_by_cluster = defaultdict[str, list[str]](list)
    for item in old.items:
        items_by_cluster[new.clusters.get(item, item)].append(item)
    cluster_names = sorted(items_by_cluster)
    source_items = dict[str, str]()
    clusters = dict[str, str]()
    drawn_indices = rng.integers(len(cluster_names), size=len(cluster_names))
    for draw, index in enumerate(drawn_indices):
        cluster = cluster_names[index]
        for item in items_by_cluster[cluster]:
            drawn_item = f"{item} {draw}"
            source_items[drawn_item] = item
            clusters[drawn_item] = f"{cluster} {draw}"
    old_draw = _resampled_run(old, source_items, clusters)
    new_draw = _resampled_run(new, source_items, clusters)
    return old_draw, new_draw


def _resampled_run(
    run: BaselineRun, source_items: dict[str, str], clusters: dict[str, str]
) -> BaselineRun:
    """A run of drawn items.

    Args:
        run: The run that is drawn from.
        source_items: Name of a drawn item → item that it is.
        clusters: Name of a drawn item → name of its cluster.
    """
    items = {name: run.items[item] for name, item in source_items.items() if item in run.items}
    blind = {name: run.blind[item] for name, item in source_items.items() if item in run.blind}
    reasoned = {
        name: run.reasoned[item] for name, item in source_items.items() if item in run.reasoned
    }
    return replace(run, items=items, blind=blind, reasoned=reasoned, clusters=clusters)


def epoch_deals(runs: Sequence[BaselineRun]) -> Draw:
    """Deals the epochs of each item to a run before and one after: the model against itself.

    Raises:
        InputError: A run has one epoch.
    """
    for run in runs:
        if run.epochs < 2:
            raise InputError(
                f"--aa deals the epochs of a run to two sides, and {run.name} has one; run it with "
                "--epochs 2 or more, or compare it with --baseline FILE.json, and its items are "
                "drawn anew"
            )
        for reducer in run.reducers:
            if parts_of(reducer)[1] > run.epochs // 2:
                raise InputError(
                    f"--aa deals the {run.epochs} epochs of {run.name} to two sides, and {reducer} "
                    "needs more of them; run it with more epochs, or compare it with --baseline "
                    "FILE.json"
                )

    def dealt_pairs(rng: np.random.Generator) -> list[Pair]:
        return [_dealt_pair(run, rng) for run in runs]

    return dealt_pairs


def _dealt_pair(run: BaselineRun, rng: np.random.Generator) -> Pair:
    items_before = dict[str, Any]()
    items_after = dict[str, Any]()
    for item, values_by_key in sorted(run.items.items()):
        epoch_count = max(map(len, values_by_key.values()), default=0)
        epochs = rng.permutation(epoch_count).tolist()
        half_count = epoch_count // 2
        items_before[item] = _values_at(values_by_key, epochs[:half_count])
        items_after[item] = _values_at(values_by_key, epochs[half_count : 2 * half_count])
    run_before = replace(run, items=items_before, reasoned={})
    run_after = replace(run, items=items_after, reasoned={})
    return run_before, run_after


def _values_at(
    values_by_key: dict[str, list[float | str]], epochs: Sequence[int]
) -> dict[str, list[float | str]]:
    """The values of some epochs at each key; the first value where a key has none of them."""
    values_at_epochs = {}
    for key, epoch_values in values_by_key.items():
        present_epochs = [epoch for epoch in sorted(epochs) if epoch < len(epoch_values)]
        present_values = [epoch_values[epoch] for epoch in present_epochs]
        values_at_epochs[key] = present_values if present_values else epoch_values[:1]
    return values_at_epochs


def verdict_counts(
    draw: Draw, draw_count: int, *, smallest: float, lower: Collection[str] = ()
) -> Counter[ChangeVerdict]:
    """Number of draws in which each verdict is the worst of all rows; equal draws in every call."""
    rng = np.random.default_rng(0)
    worst_counts = Counter[ChangeVerdict]()
    for _ in range(draw_count):
        changes = changes_of(draw(rng), smallest=smallest, lower=lower)
        verdicts = [change.verdict for change in changes]
        worst_verdict = min(verdicts, key=WORST_FIRST.index, default=ChangeVerdict.CANNOT_TELL)
        worst_counts[worst_verdict] += 1
    return worst_counts
