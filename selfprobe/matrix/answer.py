"""The first screen of a matrix: its answer in one sentence, one picture and one small table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd
from markupsafe import Markup

from selfprobe._registry import measures
from selfprobe.matrix.numbers import Analysis, TaskAnalysis
from selfprobe.matrix.power import EFFECT
from selfprobe.matrix.rows import Row
from selfprobe.numerals import Interval, number, percent
from selfprobe.page import LINES, Column, Picture, Table
from selfprobe.plots import Scale, called, interval_rows, short
from selfprobe.stats.estimate import Estimate, undefined

ROWS = 6
"""Rows of picture and table, at most."""
ORDER = ("Yes", "Cannot tell", "No")


@dataclass(frozen=True)
class Standing:
    """How well one model predicts itself, and what comes closest."""

    task: str
    model: str
    answer: Literal["Yes", "No", "Cannot tell"]
    itself: Interval
    other: Interval
    """The best other model's score on it."""
    guess: Interval
    """The best prediction that needs no model."""

    @property
    def lead(self) -> float:
        """How far it is above the best of the others; NaN counts as nothing."""
        rest = [x for x in (self.other.value, self.guess.value) if not math.isnan(x)]
        return -math.inf if math.isnan(self.itself.value) else self.itself.value - max(rest, default=0)


@dataclass(frozen=True)
class FirstScreen:
    """What a reader sees before anything is opened."""

    answer: str
    picture: Picture | None
    table: Table
    notes: tuple[str, ...]
    """A line a task for the terminal, where there are several; and which control could still overturn the result."""


def first_screen(analysis: Analysis, themselves: pd.DataFrame) -> FirstScreen:
    """The answer over all tasks of a matrix.

    Args:
        analysis: The tasks of several models.
        themselves: From `self_section.self_table`: tasks of a single model are in no analysis.
    """
    known = {task.task for task in analysis.tasks}
    lone = [row for row in themselves.itertuples() if row.task not in known]
    standings = [one for task in analysis.tasks for one in _standings(task)] + [_alone(row) for row in lone]
    standings.sort(key=lambda one: (ORDER.index(one.answer), -one.lead))
    tasks = list(dict.fromkeys([task.task for task in analysis.tasks] + [row.task for row in lone]))
    scale: Scale = "percent" if all(measures()[task].graded for task in tasks) else "score"
    names = {name: text.replace(" ", "\N{NO-BREAK SPACE}") for name, text in called(_models(standings)).items()}
    strongest = [next(one for one in standings if one.task == task) for task in tasks]
    several = len(tasks) > 1
    shown = (sorted(strongest, key=standings.index) if several else standings)[:ROWS]
    return FirstScreen(
        _sentence(analysis, standings, tasks, names, scale),
        _picture(shown, names, scale, several=several, left=len(strongest if several else standings) - len(shown)),
        _table(shown, names, scale, several=several),
        _notes(analysis, names, several=several),
    )


def _models(standings: Sequence[Standing]) -> list[str]:
    return sorted({one.model for one in standings})


def _standings(task: TaskAnalysis) -> list[Standing]:
    """A task's models, each on itself; those without a complete row by their cells alone."""
    rows = {row.model: row for row in task.rows}
    cells = {(cell.target, cell.observer): cell for cell in task.cells.itertuples()}
    out = []
    for model in task.matrix.models:
        others = [cells[model, one] for one in task.matrix.models if one != model]
        best = max(others, key=lambda cell: -math.inf if math.isnan(cell.value) else cell.value, default=None)
        row = rows.get(model)
        out.append(
            Standing(
                task=task.task,
                model=model,
                answer=_answer(task, row) if row else "Cannot tell",
                itself=row.score if row else cells[model, model],
                other=cells[model, row.rival] if row else best or undefined("no other model"),
                guess=row.guess if row else undefined("no baseline without a complete row"),
            )
        )
    return out


def _answer(task: TaskAnalysis, row: Row) -> Literal["Yes", "No", "Cannot tell"]:
    """Of one model: where others are named, No needs that an advantage of interest in it would have been seen."""
    if task.verdict.answer != "Yes":
        return task.verdict.answer
    if row.model in task.verdict.models:
        return "Yes"
    return "No" if row.power.detects <= EFFECT else "Cannot tell"


def _alone(row: Any) -> Standing:
    """A model that no other one was compared with; a row of `self_section.self_table`."""
    guess = Estimate(row.baseline, math.nan, math.nan, 0, "item", reason="no interval")
    return Standing(row.task, row.model, "Cannot tell", row, undefined("no other model"), guess)


def _sentence(
    analysis: Analysis, standings: Sequence[Standing], tasks: Sequence[str], names: dict[str, str], scale: Scale
) -> str:
    by_answer = {answer: [t for t in analysis.tasks if t.verdict.answer == answer] for answer in ORDER}
    models = len({model for task in analysis.tasks for model in task.matrix.models})
    if yes := by_answer["Yes"]:
        first = next(one for one in standings if one.answer == "Yes")
        named = len({model for task in yes for model in task.verdict.models})
        if len(tasks) == 1:
            return f"Yes, for {named} of {models} models. {_reached(first, names, scale)}"
        head = f"Yes, for {named} of {models} models in {len(yes)} of {len(tasks)} tasks."
        return f"{head} In {first.task} {_reached(first, names, scale, brief=True)}"
    if not analysis.tasks:
        return _only(standings, names, scale)
    if opened := by_answer["Cannot tell"]:
        count = len(opened) + len(tasks) - len(analysis.tasks)
        who, reason = _who(opened[0].matrix.models, names), _renamed(opened[0].verdict.reason, names)
        if len(tasks) == 1:
            return f"Cannot tell for {who}: {reason}."
        return f"Cannot tell for {who} in {count} of {len(tasks)} tasks. In {opened[0].task} {reason}."
    if len(tasks) == 1:
        [task] = by_answer["No"]
        who = f"any of {models} models" if models > 2 else _who(task.matrix.models, names)
        return f"No, not for {who}: {_renamed(task.verdict.reason, names)}."
    if len(by_answer["No"]) < len(tasks):
        count = len(tasks) - len(analysis.tasks)
        return f"Cannot tell for {models} models in {count} of {len(tasks)} tasks; No in the others."
    why = "none knows more of itself than skill, habit and baselines explain"
    return f"No, not for any of {models} models in {len(tasks)} tasks: {why}."


def _only(standings: Sequence[Standing], names: dict[str, str], scale: Scale) -> str:
    """The answer where every task has a single model."""
    one = standings[0] if standings else None
    who = _who(_models(standings), names) if standings else "any model"
    if len(standings) != 1 or one is None:
        return f"Cannot tell for {who}: each task has a single model, and comparing takes three."
    if math.isnan(one.itself.value):
        return f"Cannot tell for {who}: it has no score."
    at = percent(one.itself.value) if scale == "percent" else number(one.itself.value)
    reached = f"it predicts itself in {at} of cases" if scale == "percent" else f"it scores {at} on itself"
    guess = percent(one.guess.value) if scale == "percent" else number(one.guess.value)
    without = "" if math.isnan(one.guess.value) else f", guessing without a model {guess}"
    return f"Cannot tell for {who} alone: {reached}{without}; comparing takes three models."


def _reached(one: Standing, names: dict[str, str], scale: Scale, *, brief: bool = False) -> str:
    """A named model's score, and what comes closest; in brief where the tasks are named too."""
    who, guess = names[one.model], "no model" if brief else "guessing without a model"
    if scale == "percent":
        text = f"{who} predicts itself in {percent(one.itself.value)} of cases"
        text += f"; the best other model predicts it in {percent(one.other.value)}"
        return text + ("." if math.isnan(one.guess.value) else f", {guess} {percent(one.guess.value)}.")
    text = f"{who} scores {number(one.itself.value)} on itself; the best other model {number(one.other.value)}"
    return text + ("." if math.isnan(one.guess.value) else f", {guess} {number(one.guess.value)}.")


def _who(models: Sequence[str], names: dict[str, str]) -> str:
    return " and ".join(names[model] for model in models) if len(models) < 3 else f"{len(models)} models"


def _renamed(text: str, names: dict[str, str]) -> str:
    for model in sorted(names, key=len, reverse=True):
        text = text.replace(model, names[model])
    return text


def _picture(
    rows: Sequence[Standing], names: dict[str, str], scale: Scale, *, several: bool, left: int
) -> Picture | None:
    drawn = {}
    for one in rows:
        marks = {"itself": one.itself, "best other model": one.other, "without a model": one.guess}
        label = f"{one.task}\n{short(names[one.model])}" if several else short(names[one.model])
        drawn[label] = {key: e for key, e in marks.items() if key == "itself" or not math.isnan(e.value)}
    if not any(not math.isnan(one.itself.value) for one in rows):
        return None
    more = f" {left} more are under All cells." if left else ""
    axis = "cases in which the model is predicted" if scale == "percent" else "score on the model"
    return interval_rows("predicted", drawn, caption=f"95 % intervals.{more}", axis=axis, scale=scale)


def _table(rows: Sequence[Standing], names: dict[str, str], scale: Scale, *, several: bool) -> Table:
    write = percent if scale == "percent" else number

    def score(of: str) -> Column:
        title = {"itself": "on itself", "other": "best other", "guess": "without a model"}[of]
        return Column(title, lambda one: getattr(one, of).value, write)

    model = Column("model", lambda one: names[one.model])
    if several:
        task = Column("task", lambda one: Markup("_<wbr>").join(one.task.split("_")))
        ahead = Column("model ahead", lambda one: names[one.model])
        return Table(rows, (task, Column("answer", "answer"), ahead, score("itself"), score("other")))
    return Table(rows, (model, Column("answer", "answer"), score("itself"), score("other"), score("guess")))


def _notes(analysis: Analysis, names: dict[str, str], *, several: bool) -> tuple[str, ...]:
    lines = []
    for task in sorted(analysis.tasks, key=lambda task: ORDER.index(task.verdict.answer)) if several else ():
        why = f"for {', '.join(task.verdict.models)}" if task.verdict.models else task.verdict.reason
        lines.append(_renamed(f"{task.task}: {task.verdict.answer}, {why}.", names))
    if len(lines) > 4:
        lines[3:] = [f"{len(lines) - 3} more tasks are on the page."]
    cautions = dict.fromkeys(_renamed(task.verdict.caution, names) for task in analysis.tasks if task.verdict.caution)
    return (*lines, *cautions)[:LINES]
