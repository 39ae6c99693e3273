"""A gate from nothing: tasks of the suite on one model, as ordinary runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from inspect_ai import Task

from selfprobe._registry import defaults_of, measures
from selfprobe._registry import tasks as tasks_by_name
from selfprobe.arguments import meant, unknown
from selfprobe.check.baseline import Kept
from selfprobe.described import DescribedRun, NamedModel
from selfprobe.errors import InputError
from selfprobe.prices import Cost
from selfprobe.run_settings import RunSettings
from selfprobe.waves import complete, run_wave

SETS = ("target_log", "observer_log", "observer")
"""Task arguments that concern another model, or an earlier run."""


@dataclass(frozen=True)
class Plan:
    """What will be asked."""

    model: str
    tasks: dict[str, Task]
    items: dict[str, int]
    args: dict[str, dict[str, Any]]
    limit: int | None


def planned(
    tasks: Sequence[str], model: str, args: Mapping[str, Any], *, limit: int | None, before: Sequence[Kept] | None
) -> Plan:
    """The runs, before any call.

    Args:
        tasks: Names of tasks with a MEASURE.
        model: As Inspect names it.
        args: Task arguments; each goes to the tasks that have it.
        limit: Items of each data set; None takes all.
        before: The baseline that the runs will be held against.

    Raises:
        InputError: A task or an argument that there is not; or the baseline is of another version, data set or more
            items, so that the calls would be for nothing.
    """
    known = measures()
    for task in tasks:
        if task in known:
            continue
        if task in tasks_by_name():
            how = f"inspect eval selfprobe/{task} --model {model} --log-dir LOGS, then selfprobe check LOGS"
            raise InputError(f"--run takes {', '.join(known)}; run {task} by itself: {how}")
        raise InputError(f"--run takes {', '.join(known)}; there is no task {task}{meant(task, known)}")
    if set_here := [name for name in SETS if name in args]:
        raise InputError(f"a gate asks a model about itself: leave {set_here[0]} out")
    by_task = {task: {k: v for k, v in args.items() if k in defaults_of(task)} for task in tasks}
    if wrong := unknown(args, sorted({name for task in tasks for name in defaults_of(task)})):
        raise InputError(f"no task here has an argument {wrong}")
    made = {task: tasks_by_name()[task](**given) for task, given in by_task.items()}
    items = {task: min(len(one.dataset), limit or len(one.dataset)) for task, one in made.items()}
    for run in before or []:
        if run.task in made:
            _fits(run, made[run.task], items[run.task])
    return Plan(model, made, items, by_task, limit)


def _fits(run: Kept, task: Task, items: int) -> None:
    """Refuse runs that no gate would hold against the baseline, before they are paid."""
    version, data = str(task.version).partition("+")[0], (task.metadata or {}).get("dataset_sha256", "")
    if version != run.version:
        raise InputError(
            f"{run.task}: the baseline is of task version {run.version}, here is {version}; save a new one"
        )
    if data != run.data:
        raise InputError(f"{run.task}: the baseline is of another data set (hash {run.data[:12]}, here {data[:12]})")
    if items < len(run.items):
        raise InputError(f"{run.task}: the baseline has {len(run.items)} items, {items} would be run; raise --limit")


def describe(plan: Plan, settings: RunSettings) -> str:
    """Calls, tokens and cost."""
    calls = sent = received = 0
    for task, items in plan.items.items():
        of = measures()[task]
        here = items * of.alone(defaults_of(task) | plan.args[task])
        calls, sent, received = calls + here, sent + here * of.tokens[0], received + here * of.tokens[1]
    rounds = max(measures()[task].rounds for task in plan.tasks)
    head = ", ".join(f"{task}: {items} items" for task, items in plan.items.items())
    cost = Cost(plan.model, calls, sent, received)
    return "\n".join([head, *settings.costed([cost], rounds=rounds)])


def run(plan: Plan, log_dir: str | None, settings: RunSettings) -> str:
    """Run them; the folder of the logs.

    Args:
        plan: From `planned`.
        log_dir: The folder; None is a new one.
        settings: How the model is asked, and what is shown of it.

    Raises:
        Interrupted: The user stopped it.
        InputError: The model cannot be had, or the folder cannot be written.
    """
    model = NamedModel(plan.model, settings.model_args)
    folder = log_dir or f"logs/check/{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}"
    runs = [DescribedRun(task, plan.args[task] | settings.shared, model) for task in plan.tasks]
    complete(run_wave(runs, folder, title="Runs", settings=settings, limit=plan.limit))
    return folder
