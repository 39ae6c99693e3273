"""The cross-model matrix: every observer on every target, in two flat lists of ordinary runs (paper 003, §4.1, G.3).

The diagonal (each model on itself) runs first; its logs are the record of the targets' acts. A cell off the diagonal
replays the acts from there. Where the observer's prompt does not hold the target's text, such a cell needs no call and
is no run: `matrix.table` joins the two models' runs on themselves. There `--observers` runs further cells, in which the
observer is told of its target. There is no state beside the logs: the same command goes on where a killed one stopped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inspect_ai import Task
from inspect_ai.model import GenerateConfig

from selfprobe._registry import defaults_of, measures
from selfprobe._registry import tasks as tasks_by_name
from selfprobe.arguments import meant, unknown
from selfprobe.described import DescribedRun, NamedModel
from selfprobe.errors import InputError, one_line
from selfprobe.prices import Cost
from selfprobe.run_settings import RunSettings
from selfprobe.solvers.informed import examples_of
from selfprobe.waves import complete, run_wave

SETS = {
    "target_log": "a matrix records and replays its own answers: leave target_log out",
    "observer_log": "a matrix records and replays its own answers: leave observer_log out",
    "observer": "a matrix runs its informed observers beside the others: say --observers instead of -T observer",
}
"""Arguments of a single run that a matrix sets itself, and what to do."""

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

    @property
    def named(self) -> NamedModel:
        """The model with its settings, not open yet.

        Raises:
            InputError: Its generation settings are none.
        """
        known = list(GenerateConfig.model_fields)
        for name in self.config:
            if name not in known:
                raise InputError(f"model {self.model}: config has no setting {name}{meant(name, known)}")
        try:
            config = GenerateConfig(**self.config)
        except ValueError as error:
            raise InputError(f"model {self.model}: wrong config: {one_line(error)}") from None
        return NamedModel(self.model, {"config": config, "base_url": self.base_url, **self.args})


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
    arms: tuple[str, ...] = ()
    """How observers are told of their target in further cells: "asked", "shown:5"."""

    @property
    def rounds(self) -> int:
        """Calls of both waves that wait for one another."""
        of = [measures()[task] for task in self.tasks]
        return max(one.rounds for one in of) + max((one.observer > 0) + (one.target > 0) for one in of)

    @property
    def calls(self) -> int:
        """All calls of both waves, at most (a paraphrase item with equal replies needs fewer)."""
        return sum(cost.calls for cost in self.costs)


def plan(
    members: Sequence[Member],
    tasks: Sequence[str],
    *,
    limit: int | None,
    args: Mapping[str, Any],
    observers: Sequence[str] = (),
) -> Plan:
    """What a matrix of these models and tasks comes to.

    Args:
        members: Two models or more, each once.
        tasks: Names of tasks with a MEASURE.
        limit: Items of each data set; None takes all.
        args: Task arguments; each goes to the tasks that have it.
        observers: Arms of the cells off the diagonal; "replayed" costs nothing and is always there.

    Raises:
        InputError: Fewer than two models, a model twice, an unknown task, an argument that no task has, an arm that is
            none or that no task here has, more examples than there are other items.
    """
    names = [member.model for member in members]
    if len(names) < 2:
        raise InputError(f"a matrix compares two models or more, got {', '.join(names) or 'none'}")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"model {', '.join(twice)} is listed twice; list each model once")
    known = measures()
    for task in tasks or ["(none)"]:
        if task not in known:
            raise InputError(f"unknown task {task}; a matrix can hold {', '.join(known)}{meant(task, known)}")
    if set_here := sorted(SETS.keys() & set(args)):
        raise InputError(SETS[set_here[0]])
    if args.get("frame") == "other":
        raise InputError("with frame=other no model is asked about itself; say frame=both")
    by_task = {task: _arguments(task, args) for task in dict.fromkeys(tasks)}
    if wrong := unknown(args, sorted({name for given in by_task.values() for name in given})):
        raise InputError(f"no task here has an argument {wrong}")
    sizes = {task: len(_create(task, given).dataset) for task, given in by_task.items()}
    items = {task: min(size, limit) if limit else size for task, size in sizes.items()}
    arms = _arms(observers, items)
    return Plan(
        members=tuple(members),
        tasks=tuple(by_task),
        args={task: {k: v for k, v in given.items() if k in args} for task, given in by_task.items()},
        items=items,
        limit=limit,
        costs=tuple(_cost(name, len(names), by_task, items, arms) for name in names),
        arms=arms,
    )


def _arms(observers: Sequence[str], items: Mapping[str, int]) -> tuple[str, ...]:
    """The arms that are runs.

    Raises:
        InputError: See `plan`.
    """
    arms = {arm: count for arm in observers if (count := examples_of(arm)) is not None}
    can = [task for task, measure in measures().items() if measure.informed]
    if arms and not set(can) & items.keys():
        raise InputError(f"no task here has observers that can be told of their target; {', '.join(can)} have")
    for task in can:
        for arm, count in arms.items():
            if items.get(task, count + 1) <= count:
                raise InputError(
                    f"{arm} shows {count} other items, {task} has {items[task]} items here; ask for at most "
                    f"shown:{items[task] - 1}, or for more items"
                )
    return tuple(arms)


def _cost(
    model: str, size: int, by_task: Mapping[str, Mapping[str, Any]], items: Mapping[str, int], arms: Sequence[str]
) -> Cost:
    calls = tokens_in = tokens_out = 0
    for task, given in by_task.items():
        of = measures()[task]
        here = items[task] * (of.alone(given) + (size - 1) * (of.observer + of.target))
        calls, tokens_in, tokens_out = calls + here, tokens_in + here * of.tokens[0], tokens_out + here * of.tokens[1]
        if (told := of.informed) is None:
            continue
        for arm in arms:
            here = items[task] * (size - 1) * told.calls(given)
            longer = told.tokens[0] + (examples_of(arm) or 0) * told.example
            calls, tokens_in, tokens_out = calls + here, tokens_in + here * longer, tokens_out + here * told.tokens[1]
    return Cost(model, calls, tokens_in, tokens_out)


def run(planned: Plan, log_dir: str, *, settings: RunSettings) -> bool:
    """Run both waves; True when every run ended well, and something of each model could be scored.

    Args:
        planned: From `plan`.
        log_dir: Where the logs go, in two folders; local or any fsspec path.
        settings: How models are asked, and what is shown of it.

    Raises:
        Interrupted: The user stopped it.
        InputError: The log folder cannot be written, or holds logs of another matrix.
    """
    diagonal, cells = f"{log_dir.rstrip('/')}/{DIAGONAL}", f"{log_dir.rstrip('/')}/{CELLS}"
    first = [_described(planned, task, member, member) for task in planned.tasks for member in planned.members]
    logs = run_wave(first, diagonal, title="Each model on itself", settings=settings, limit=planned.limit)
    done = {(log.eval.task.rpartition("/")[2], log.eval.model) for log in logs if log.status == "success"}
    second = [
        _described(planned, task, target, observer, record=diagonal, arm=arm)
        for task in planned.tasks
        for arm in _arms_of(task, planned)
        for target in planned.members
        for observer in planned.members
        if target is not observer and (task, target.model) in done
    ]
    if second:
        # Cells that were runs in version 0.1.0 may lie there; another matrix's logs were refused by the first wave.
        further = {"limit": planned.limit, "log_dir_allow_dirty": True}
        logs += run_wave(second, cells, title="Each on the others", settings=settings, **further)
    return complete(logs)


def _arms_of(task: str, planned: Plan) -> tuple[str | None, ...]:
    """The cells to run for each pair of models: a plain one, where the report cannot join it, or one an arm."""
    measure = measures()[task]
    return (None,) if measure.observer else planned.arms if measure.informed else ()


def _described(
    planned: Plan, task: str, target: Member, observer: Member, *, record: str | None = None, arm: str | None = None
) -> DescribedRun:
    given = dict(planned.args[task]) | ({"target_log": record} if record else {})
    if arm:  # whom else a model is asked about concerns its run on itself
        given = {name: value for name, value in given.items() if name != "frame"} | {"observer": arm}
    roles = {"target": target.named} if record else {}
    return DescribedRun(task, given, observer.named, roles, {"target": target.model})


def _create(task: str, given: Mapping[str, Any]) -> Task:
    return tasks_by_name()[task](**given)


def _arguments(task: str, args: Mapping[str, Any]) -> dict[str, Any]:
    defaults = defaults_of(task)
    return defaults | {name: value for name, value in args.items() if name in defaults}
