"""What `selfprobe check --run` would ask, held against the baseline before it is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from inspect_ai import Task

from selfprobe.errors.arguments import comparable_arguments
from selfprobe.studies.check_baseline_run import changed_defaults, plain_json
from selfprobe.studies.check_numbers import UNNAMED_SCORE
from selfprobe.studies.check_pairs import (
    UNBOUND,
    BaselineRun,
    match_runs,
    name_with_arguments,
    refusal,
)
from selfprobe.study.described import NamedModel
from selfprobe.text.safe import concealed


@dataclass(frozen=True)
class RehearsedTask:
    """A task of --run, before it is asked."""

    task: Task
    args: dict[str, Any]
    item_count: int


def task_faults(
    earlier_runs: Sequence[BaselineRun], rehearsed_tasks: Mapping[str, RehearsedTask]
) -> dict[str, str]:
    """Tasks that no gate would compare with the baseline → what the baseline has otherwise."""
    faults = dict[str, str]()
    earlier_tasks = sorted({run.task for run in earlier_runs})
    for task_name in rehearsed_tasks:
        if task_name not in earlier_tasks:
            faults[task_name] = (
                f"the baseline lacks it and has {', '.join(earlier_tasks)}; leave it out of --run, or save a "
                "new baseline of all tasks"
            )
    for run in earlier_runs:
        if run.task not in rehearsed_tasks:
            faults[run.task] = (
                "the baseline has it and --run lacks it; add it to --run, or save a new baseline"
            )
            continue
        fault = _task_fault(run, rehearsed_tasks[run.task])
        if fault:
            faults.setdefault(run.task, fault)
    return faults


def _task_fault(run: BaselineRun, rehearsed_task: RehearsedTask) -> str:
    """What the baseline has otherwise than a task that would be asked, or ""."""
    version = str(rehearsed_task.task.version).partition("+")[0]
    data_hash = (rehearsed_task.task.metadata or {}).get("dataset_sha256", "")
    item_count = rehearsed_task.item_count
    first_samples = islice(rehearsed_task.task.dataset, item_count)
    lacking_items = run.items.keys() - {str(sample.id) for sample in first_samples}
    fault = ""
    if version != run.version:
        fault = f"the baseline is of task version {run.version}, here is {version}; save a new one"
    elif data_hash != run.data:
        fault = f"the baseline is of another data set (hash {run.data[:12]}, here {data_hash[:12]})"
    elif item_count < len(run.items):
        fault = f"the baseline has {len(run.items)} items, {item_count} would be run; raise --limit"
    elif lacking_items:
        fault = (
            f"{len(lacking_items)} of the baseline's {len(run.items)} items would not be run, as "
            f"{min(lacking_items)}; raise --limit or leave it out, or save a new baseline"
        )
    return fault


def expected_run(
    task_name: str, task: Task, arguments: Mapping[str, Any], named_model: NamedModel
) -> BaselineRun:
    """A run of all items before it is asked: what makes it comparable, without any value."""
    metadata = task.metadata or {}
    return BaselineRun(
        task=task_name,
        model=named_model.name,
        target=named_model.name,
        version=str(task.version).partition("+")[0],
        selfprobe=str(metadata.get("selfprobe", "")),
        args=plain_json(changed_defaults(task_name, comparable_arguments(arguments))),
        model_args=plain_json(concealed(named_model.logged_config.args)),
        data=str(metadata.get("dataset_sha256", "")),
        plan="",
        prompts=[],
        applied={},
        metric=UNNAMED_SCORE,
        metrics={},
        items={str(sample.id): {} for sample in task.dataset},
        roles={"grader": UNBOUND},
    )


def run_faults(
    earlier_runs: Sequence[BaselineRun], expected_runs: Sequence[BaselineRun]
) -> dict[str, str]:
    """Runs that no gate would compare with the baseline → why."""
    faults = dict[str, str]()
    matches = match_runs(earlier_runs, expected_runs)
    for old, new in matches.pairs:
        reason = refusal(old, new)
        if reason:
            faults[new.name] = reason
    asked_models = {run.model for run in expected_runs}
    for run in matches.only_before:
        remedy = f"add {run.model} to --model"
        if run.model in asked_models:
            remedy = "ask it by itself and compare LOGS of both"
        faults[name_with_arguments(run)] = (
            f"the baseline has it and --run lacks it; {remedy}, or save a new baseline"
        )
    for run in matches.only_after:
        models = {earlier.model for earlier in earlier_runs if earlier.task == run.task}
        faults[name_with_arguments(run)] = (
            f"the baseline lacks it and has {', '.join(sorted(models))}; leave {run.model} out of "
            "--model, or save a new baseline of all models"
        )
    return faults
