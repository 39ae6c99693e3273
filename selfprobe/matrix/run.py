"""The cross-model matrix: every observer on every target, in two flat lists of ordinary runs (paper 003, §4.1, G.3).

The diagonal (each model on itself) runs first; its logs are the record of the targets' acts. A cell off the
diagonal replays the acts from there, and the answers too where the observer's prompt does not hold the target's
text. There is no state beside the logs: the same command goes on where a killed one stopped.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inspect_ai import Task, task_with
from inspect_ai.model import GenerateConfig, Model

from selfprobe.arguments import meant
from selfprobe.errors import InputError
from selfprobe.prices import Cost
from selfprobe.waves import opened, run_wave

DIAGONAL, CELLS = "diagonal", "cells"
"""The two waves' folders below the matrix's log folder."""


@dataclass(frozen=True)
class Member:
    """A model of the matrix."""

    model: str
    """As Inspect names it, provider/name."""
    base_url: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    """Generation settings, e.g. max_connections; what a task fixes wins."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """Model arguments, e.g. the pinned provider of OpenRouter."""

    def open(self) -> Model:
        """The model; Inspect gives one handle for equal arguments.

        Raises:
            InputError: It cannot be had.
        """
        return opened(self.model, config=GenerateConfig(**self.config), base_url=self.base_url, **self.args)


@dataclass(frozen=True)
class Calls:
    """Calls for one item of a task and who makes them, by the spec's formulas."""

    diagonal: Callable[[Mapping[str, Any]], int]
    """Of a run of a model on itself, from the task's arguments; the ceiling's repeat included."""
    observer: int
    """Of the observer in a cell off the diagonal (at most)."""
    target: int
    """Of the target there."""
    tokens: tuple[int, int]
    """A rough guess a call: tokens in, tokens out."""


def _ks(args: Mapping[str, Any]) -> int:
    k = args["k"]
    return len(k) if isinstance(k, list) else len(str(k).split(","))


TASKS: dict[str, Calls] = {
    "kth_word": Calls(lambda a: 1 + int(a["resamples"]) + _ks(a), 0, 0, (110, 40)),
    "ethical_dilemma": Calls(lambda a: 3 * int(a["epochs"]), 0, 0, (300, 220)),
    "paraphrase_recognition": Calls(lambda a: 10, 5, 0, (500, 200)),
    "prompt_reconstruction": Calls(lambda a: 3 + int(a["resamples"]), 1, 1, (300, 300)),
    "heads_up": Calls(lambda a: 2, 1, 0, (200, 120)),
}
"""The tasks that a matrix can hold. kth_word and ethical_dilemma replay the answers too: their cells cost no call."""


@dataclass(frozen=True)
class Plan:
    """A matrix before it runs."""

    members: tuple[Member, ...]
    tasks: tuple[str, ...]
    args: Mapping[str, Mapping[str, Any]]
    """Arguments by task."""
    items: Mapping[str, int]
    """Items by task after the limit."""
    limit: int | None
    costs: tuple[Cost, ...]

    @property
    def calls(self) -> int:
        """All calls of both waves, at most (a paraphrase item with equal replies needs fewer)."""
        return sum(cost.calls for cost in self.costs)


def plan(members: Sequence[Member], tasks: Sequence[str], *, limit: int | None, args: Mapping[str, Any]) -> Plan:
    """What a matrix of these models and tasks comes to.

    Args:
        members: Two models or more, each once.
        tasks: Names out of `TASKS`.
        limit: Items of each data set; None takes all.
        args: Task arguments; each goes to the tasks that have it.

    Raises:
        InputError: Fewer than two models, a model twice, an unknown task, an argument that no task has.
    """
    names = [member.model for member in members]
    if len(names) < 2:
        raise InputError(f"a matrix compares two models or more, got {', '.join(names) or 'none'}")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"model {twice[0]} is listed twice; list each model once")
    for task in tasks or ["(none)"]:
        if task not in TASKS:
            raise InputError(f"unknown task {task}{meant(task, TASKS)}; a matrix can hold {', '.join(TASKS)}")
    by_task = {task: _arguments(task, args) for task in dict.fromkeys(tasks)}
    if unused := [key for key in args if not any(key in _parameters(task) for task in by_task)]:
        there = {name for task in by_task for name in _parameters(task)}
        raise InputError(f"no task here has an argument {', '.join(unused)}{meant(unused[0], there)}")
    sizes = {task: len(_create(task, given).dataset) for task, given in by_task.items()}
    items = {task: min(size, limit) if limit else size for task, size in sizes.items()}
    return Plan(
        members=tuple(members),
        tasks=tuple(by_task),
        args={task: {k: v for k, v in given.items() if k in args} for task, given in by_task.items()},
        items=items,
        limit=limit,
        costs=tuple(_cost(name, len(names), by_task, items) for name in names),
    )


def _cost(model: str, size: int, by_task: Mapping[str, Mapping[str, Any]], items: Mapping[str, int]) -> Cost:
    calls = tokens_in = tokens_out = 0
    for task, given in by_task.items():
        of = TASKS[task]
        here = items[task] * (of.diagonal(given) + (size - 1) * (of.observer + of.target))
        calls, tokens_in, tokens_out = calls + here, tokens_in + here * of.tokens[0], tokens_out + here * of.tokens[1]
    return Cost(model, calls, tokens_in, tokens_out)


def run(planned: Plan, log_dir: str, *, settings: Mapping[str, Any]) -> bool:
    """Run both waves; True when every cell is complete.

    Args:
        planned: From `plan`.
        log_dir: Where the logs go, in two folders; local or any fsspec path.
        settings: Further arguments of Inspect's `eval_set`, e.g. display, max_connections, retry_attempts.
    """
    diagonal, cells = f"{log_dir.rstrip('/')}/{DIAGONAL}", f"{log_dir.rstrip('/')}/{CELLS}"
    settings = {"limit": planned.limit, **settings}
    first = [_task(planned, task, member, member) for task in planned.tasks for member in planned.members]
    logs = run_wave(first, diagonal, title="Each model on itself", settings=settings)
    done = {(log.eval.task.rpartition("/")[2], log.eval.model) for log in logs if log.status == "success"}
    second = [
        _task(planned, task, target, observer, record=diagonal)
        for task in planned.tasks
        for target in planned.members
        for observer in planned.members
        if target is not observer
        and (task, target.model) in done
        and ((task, observer.model) in done or not _answers_replay(task))
    ]
    if second:
        # Nothing is lost with a cell that replays everything, so its events need not be on disk at once.
        realtime = not all(_answers_replay(task) for task in planned.tasks)
        logs += run_wave(second, cells, title="Each on the others", settings={"log_realtime": realtime, **settings})
    return all(log.status == "success" for log in logs)


def _task(planned: Plan, task: str, target: Member, observer: Member, *, record: str | None = None) -> Task:
    given = dict(planned.args[task])
    if record is None:
        return task_with(_create(task, given), model=observer.open())
    given |= {"target_log": record} | ({"observer_log": record} if _answers_replay(task) else {})
    return task_with(_create(task, given), model=observer.open(), model_roles={"target": target.open()})


def _answers_replay(task: str) -> bool:
    """Whether the observer's prompts are the same whoever the target is."""
    return TASKS[task].observer == 0


def _create(task: str, given: Mapping[str, Any]) -> Task:
    from selfprobe import _registry

    made = getattr(_registry, task)(**given)
    assert isinstance(made, Task)
    return made


def _parameters(task: str) -> Mapping[str, inspect.Parameter]:
    from selfprobe import _registry

    return inspect.signature(getattr(_registry, task)).parameters


def _arguments(task: str, args: Mapping[str, Any]) -> dict[str, Any]:
    known = _parameters(task)
    defaults = {name: parameter.default for name, parameter in known.items()}
    return defaults | {name: value for name, value in args.items() if name in known}
