"""Which run of a baseline `selfprobe check` compares with which run of now, and why it refuses to."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from selfprobe.logs.reducers import GROW_WITH_EPOCHS, MEAN, known_reducer, parts_of
from selfprobe.text.counts import count_text
from selfprobe.text.safe import concealed

UNBOUND = "the evaluated model"
"""Stand-in for the model of a role that nobody was given."""


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
    def compared_args(self) -> dict[str, Any]:
        """Task arguments that say what was asked: of a data set with a hash the columns alone,
        since the hash says more than where it lies.
        """
        arguments = dict(self.args)
        if self.data and "dataset" in arguments:
            _, mark, columns = str(arguments.pop("dataset")).partition("?")
            if mark:
                arguments["dataset"] = columns
        return arguments

    @property
    def models(self) -> str:
        """Name of the model, and of a target that is not it: "openai/a about openai/b"."""
        return self.model + target_suffix(self.model, self.target)

    @property
    def name(self) -> str:
        """Name for people: the task and its model."""
        return f"{self.task} of {self.models}"


Pair = tuple[BaselineRun, BaselineRun]
"""A run before and the same one after."""
PAIRING_LEVELS = 8
"""Number of properties by which runs are paired, one after the other (`_pairing_keys`)."""


def _pairing_keys(run: BaselineRun) -> tuple[Hashable, ...]:
    """Properties that two runs may share, from the closest. The last ones find the pair whose
    difference is worth a word.
    """
    arguments = repr(run.compared_args)
    model_arguments = repr(concealed(run.model_args))
    return (
        (run.task, arguments, run.data, run.model, run.target, model_arguments),
        (run.task, arguments, run.data, run.model, run.target),
        (run.task, arguments, run.data, run.model == run.target),
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
    """Match each earlier run with the current one of the same task, arguments and model; another
    model, or another target, counts where it is the only one of all runs.
    """
    is_single_model = _is_single(before, after, _models)
    is_single_target = _is_single(before, after, _other_targets)
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
                if old.model != new.model and not is_single_model:
                    continue
                if _has_other_target(old, new) and not is_single_target:
                    continue
                pairs.append((old, new))
                unpaired_before.remove(old)
                unpaired_after.remove(new)
    return RunMatches(pairs, unpaired_before, unpaired_after)


def _models(runs: Sequence[BaselineRun]) -> set[str]:
    return {run.model for run in runs}


def _other_targets(runs: Sequence[BaselineRun]) -> set[str]:
    """Targets that are not the model itself."""
    return {run.target for run in runs if run.target != run.model}


def _is_single(
    before: Sequence[BaselineRun],
    after: Sequence[BaselineRun],
    names_in: Callable[[Sequence[BaselineRun]], set[str]],
) -> bool:
    """Whether there is no more than one such name before and one now: one may replace the other."""
    return len(names_in(before)) <= 1 and len(names_in(after)) <= 1


def _has_other_target(old: BaselineRun, new: BaselineRun) -> bool:
    """Whether the targets differ and are not the models themselves."""
    are_about_themselves = old.target == old.model and new.target == new.model
    return old.target != new.target and not are_about_themselves


@dataclass
class Pairable:
    """Runs that share a property."""

    before: list[BaselineRun] = field(default_factory=list)
    after: list[BaselineRun] = field(default_factory=list)


def name_with_arguments(run: BaselineRun) -> str:
    """A run's name, with its arguments where it has any: "kth_word of openai/a (k=2)"."""
    arguments = _arguments_text(run)
    return f"{run.name} ({arguments})" if arguments else run.name


def _arguments_text(run: BaselineRun) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(run.args.items()))


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
            names.append(f"{run.task} ({_arguments_text(run) or 'defaults'})")
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
    old_model_args = concealed(old.model_args)
    new_model_args = concealed(new.model_args)
    changed_model_args = _changes_text(old_model_args, new_model_args)
    if changed_model_args:
        yield f"asked with other model arguments: {changed_model_args}"
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
    if old.compared_args != new.compared_args:
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
    old_compared = old.compared_args
    new_compared = new.compared_args
    unchanged_names = set[str]()
    for name in {*old.args, *new.args}:
        if old_compared.get(name) == new_compared.get(name):
            unchanged_names.add(name)
    return _changes_text(old.args, new.args, unchanged_names)


def _changes_text(
    old_values: Mapping[str, Any],
    new_values: Mapping[str, Any],
    unchanged_names: Collection[str] = (),
) -> str:
    """Values that are other than before: "k was 2 and is 3"."""
    changes = []
    for name in sorted({*old_values, *new_values} - {*unchanged_names}):
        if old_values.get(name) != new_values.get(name):
            old_value = _value_text(old_values, name)
            new_value = _value_text(new_values, name)
            changes.append(f"{name} was {old_value} and is {new_value}")
    return ", ".join(changes)


def _value_text(values: Mapping[str, Any], name: str) -> str:
    return repr(values[name]) if name in values else "left out"


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
