"""What `selfprobe check --run` would ask, held against the baseline before it is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inspect_ai import Task

from selfprobe.studies.check_numbers import BaselineRun


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
                f"lacks it and has {', '.join(earlier_tasks)}; leave it out of --run, or save a "
                "new baseline of all tasks"
            )
    for run in earlier_runs:
        if run.task not in rehearsed_tasks:
            faults[run.task] = "has it and --run lacks it; add it to --run, or save a new baseline"
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
    fault = ""
    if version != run.version:
        fault = f"is of task version {run.version}, here is {version}; save a new one"
    elif data_hash != run.data:
        fault = f"is of another data set (hash {run.data[:12]}, here {data_hash[:12]})"
    elif item_count < len(run.items):
        fault = f"has {len(run.items)} items, {item_count} would be run; raise --limit"
    return fault
