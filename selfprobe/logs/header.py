"""What the header of a log says: its task, models, arguments, and how many samples it lacks."""

from collections.abc import Iterator
from typing import Any

from inspect_ai.log import EvalLog, EvalResults
from inspect_ai.model import ModelConfig

from selfprobe.errors.arguments import TASK_BY_INSPECT_NAME, comparable_arguments


def task_of(log: EvalLog) -> str:
    """A run's task without the package prefix that a run by name has; see `short_task`."""
    return short_task(log.eval.task)


def short_task(task: str) -> str:
    """A task's name in our tables and options, of its name in Inspect.

    >>> short_task("selfprobe/awareness_binary"), short_task("selfprobe/binary"), short_task("mine")
    ('binary', 'binary', 'mine')
    """
    name = task.rpartition("/")[2]
    return TASK_BY_INSPECT_NAME.get(name, name)


def roles_of(log: EvalLog) -> dict[str, list[ModelConfig]]:
    """Role → the models that have it, in their order: one as a rule."""
    models_by_role = {}
    for role, bound_models in (log.eval.model_roles or {}).items():
        models = bound_models if isinstance(bound_models, list) else [bound_models]
        if models:
            models_by_role[role] = models
    return models_by_role


def target_of(log: EvalLog) -> str:
    """The target of a run, as Inspect names models: the role `target`, or the evaluated model
    itself.
    """
    target_models = roles_of(log).get("target")
    return target_models[0].model if target_models else log.eval.model


def effort_of(log: EvalLog) -> str | None:
    """The reasoning effort that the run's task was given, where it has such an argument."""
    return log.eval.task_args.get("effort")


def args_of(log: EvalLog) -> dict[str, Any]:
    """The arguments of a run's task, in one form; see `comparable_arguments`."""
    return comparable_arguments(log.eval.task_args)


def about_of(log: EvalLog) -> str:
    """Subjects that the observer of a run was asked about: "self", "other", "self,other", "named",
    "shown:5".
    """
    return str(args_of(log).get("about", "self"))


def informed_of(log: EvalLog) -> str | None:
    """Hint that the observer of a run got about its target ("named", "shown:5"); None where it got
    none.

    A model that is its own target is asked about itself whatever the argument says.
    """
    subjects = about_of(log)
    gives_hint = subjects.startswith(("named", "shown:"))
    is_own_target = target_of(log) == log.eval.model
    return subjects if gives_hint and not is_own_target else None


def item_count(header: EvalLog) -> int:
    """Number of samples that a run was to have, each epoch's the same."""
    dataset = header.eval.dataset
    return len(dataset.sample_ids) if dataset.sample_ids is not None else dataset.samples or 0


def planned_samples(header: EvalLog) -> int:
    """Number of samples that a run was to have, epochs counted."""
    return item_count(header) * (header.eval.config.epochs or 1)


LEFT_OUT = "selfprobe"
"""Name, in a log, of what left samples out whose replies an earlier log lacks (`solvers.replay`).
"""


def missing_samples(header: EvalLog) -> int:
    """Number of samples that a run was to have and that failed, were left out or were not asked.

    Those that a task of somebody else stopped early are not missing.
    """
    results = header.results
    if results is None:
        return planned_samples(header)
    stopping = results.early_stopping
    stopped_count = 0
    if stopping and stopping.manager != LEFT_OUT:
        stopped_count = len(stopping.early_stops)
    return max(results.total_samples - results.completed_samples - stopped_count, 0)


def is_whole(header: EvalLog) -> bool:
    """True if a run ended well and no sample is missing or invalidated."""
    return header.status == "success" and not header.invalidated and not missing_samples(header)


CUT_METRIC = "cut_at_"
"""Prefix of the metrics that count cut replies; the argument follows."""
UNSCORED_METRIC_PREFIX = "unscored_"
"""Prefix of the metrics that count reasons; the reason follows."""


def counted(results: EvalResults | None) -> float | None:
    """Number of items that a run's own metrics count; None where they count none of ours.

    An item can be unscored though each of its parts has a value, and count though it has no label
    to be scored by.
    """
    counts = [value for name, value in metrics_in(results) if name == "n"]
    return sum(counts) if counts else None


def unscored_in(results: EvalResults | None) -> str:
    """Reason why most of a run is unscored, by its own metrics; "" where they do not say."""
    rate_of_reason = {}
    for name, rate in metrics_in(results):
        if name.startswith(UNSCORED_METRIC_PREFIX) and rate > 0:
            rate_of_reason[name.removeprefix(UNSCORED_METRIC_PREFIX)] = rate
    return max(rate_of_reason, key=lambda reason: rate_of_reason[reason], default="")


def cut_in(results: EvalResults | None) -> dict[str, float]:
    """Task argument that limits replies → share of them that ended at its limit, where those are
    most of a run's.
    """
    cut_shares = {}
    for name, value in metrics_in(results):
        if name.startswith(CUT_METRIC):
            cut_shares[name.removeprefix(CUT_METRIC)] = value
    return cut_shares


def metrics_in(results: EvalResults | None) -> Iterator[tuple[str, float]]:
    """The metrics of all scores of a run, by name."""
    for score in results.scores if results else []:
        for name, metric in score.metrics.items():
            yield name, float(metric.value)
