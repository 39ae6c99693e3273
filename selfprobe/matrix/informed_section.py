"""What the report shows of observers that were told of their target, beside their place among the baselines."""

from collections.abc import Sequence

import pandas as pd

from selfprobe.matrix.informed import InformedObserver, informed_observers
from selfprobe.matrix.numbers import Analysis
from selfprobe.matrix.table import Results, matrix_of
from selfprobe.page import Column, Section, Table, columns, estimated, percent, shown

Told = tuple[str, InformedObserver]
"""A task and one observer."""


def informed_rows(results: Results, analysis: Analysis) -> list[Told]:
    """Of all tasks, those too that have a single model on itself and so are in no analysis."""
    out = [(task.task, one) for task in analysis.tasks for one in task.informed]
    known = {task.task for task in analysis.tasks}
    others = sorted(set(results.informed.task) - known) if not results.informed.empty else []
    for task in others:
        if (results.cells.task == task).any():
            out += [(task, one) for one in informed_observers(results, matrix_of(results, task))]
    return out


def informed_table(observers: Sequence[InformedObserver]) -> Table:
    """A row an observer and target."""
    return Table(
        observers,
        (
            *(Column(name, name) for name in ("target", "observer")),
            Column("told", "arm"),
            estimated("score [95 % interval]", "score"),
            Column("target on itself minus this", lambda one: shown(one.over, sign=True), look="e"),
            Column("unscored", "unscored", percent),
            Column("hole", "hole", look="hole"),
        ),
    )


def informed_alone(rows: Sequence[Told], analysis: Analysis) -> list[Section]:
    """A section for each task whose observers are in no section of a matrix."""
    tasks = dict.fromkeys(task for task, _ in rows if task not in {one.task for one in analysis.tasks})
    return [
        Section(
            f"{task}: observers that were told of their target",
            [informed_table([one for name, one in rows if name == task])],
            name=f"informed-{task}",
            menu=f"{task}, informed",
        )
        for task in tasks
    ]


def informed_told(rows: Sequence[Told], analysis: Analysis) -> list[str]:
    """A line each for the terminal, of the tasks without a matrix; a matrix says it in its verdict."""
    known = {task.task for task in analysis.tasks}
    return [
        f"{task}, {one.observer} ({one.arm}) on {one.target}: {shown(one.score)}; "
        f"{one.target} on itself minus this {shown(one.over, sign=True)}"
        for task, one in rows
        if task not in known and not one.hole
    ]


def informed_frame(rows: Sequence[Told]) -> pd.DataFrame:
    """The same for other programs."""
    return pd.DataFrame(
        [
            {"task": task, "target": one.target, "observer": one.observer, "arm": one.arm, **columns(one.score)}
            | {f"target_over_{name}": value for name, value in columns(one.over).items()}
            | {"unscored": one.unscored, "hole": one.hole}
            for task, one in rows
        ]
    )
