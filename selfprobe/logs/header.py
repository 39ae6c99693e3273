"""Header of a log: the run's task, its models, and what the observer learnt about its target."""

from typing import Any

from inspect_ai.log import EvalLog
from inspect_ai.model import ModelConfig

from selfprobe.errors.arguments import SHORT, as_now


def task_of(log: EvalLog) -> str:
    """A run's task without the package prefix that a run by name has; see `short_task`."""
    return short_task(log.eval.task)


def short_task(task: str) -> str:
    """A task's name in our tables and options, of its name in Inspect.

    >>> short_task("selfprobe/awareness_binary"), short_task("selfprobe/binary"), short_task("mine")
    ('binary', 'binary', 'mine')
    """
    name = task.rpartition("/")[2]
    return SHORT.get(name, name)


def roles_of(log: EvalLog) -> dict[str, list[ModelConfig]]:
    """Role → the models that have it, in their order: one as a rule."""
    bound = log.eval.model_roles or {}
    return {role: of if isinstance(of, list) else [of] for role, of in bound.items() if of}


def target_of(log: EvalLog) -> str:
    """The target of a run, as Inspect names models: the role `target`, or the evaluated model itself."""
    bound = roles_of(log).get("target")
    return bound[0].model if bound else log.eval.model


def effort_of(log: EvalLog) -> str | None:
    """The reasoning effort that the run's task was given, where it has such an argument."""
    return log.eval.task_args.get("effort")


def args_of(log: EvalLog) -> dict[str, Any]:
    """The arguments of a run's task, under the names of today."""
    return as_now(log.eval.task_args)


def about_of(log: EvalLog) -> str:
    """Subjects that the observer of a run was asked about: "self", "other", "self,other", "named", "shown:5"."""
    return str(args_of(log).get("about", "self"))


def informed_of(log: EvalLog) -> str | None:
    """Hint that the observer of a run got about its target ("named", "shown:5"); None where it got none.

    A model that is its own target is asked about itself whatever the argument says.
    """
    about = about_of(log)
    return about if about.startswith(("named", "shown:")) and target_of(log) != log.eval.model else None
