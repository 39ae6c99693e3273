"""The cross-model matrix: every observer on every target, in two flat lists of ordinary runs
(IntrospectBench, §4.1, G.3).

The diagonal (each model on itself) runs first; its logs are the record of the targets' acts. A cell
off the diagonal replays the acts from there. Where the observer's prompt does not hold the target's
text, such a cell needs no call and is no run: `matrix.table` joins the two models' runs on
themselves. There `--observers` runs further cells, in which the observer is told of its target.
There is no state beside the logs: the same command goes on where a killed one stopped.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import PurePath
from typing import Any, ClassVar, Self

import numpy as np
from inspect_ai import Task
from pydantic import Field, field_validator, model_validator

from selfprobe.data.clusters import few_clusters
from selfprobe.data.prices import Cost
from selfprobe.data.samples import at_most
from selfprobe.errors import InputError
from selfprobe.errors.arguments import INSPECT_NAME_BY_TASK, nearest_name_hint, unknown_names_fault
from selfprobe.logs import Run, logs_in, other_version, runs, target_of
from selfprobe.page import Page
from selfprobe.solvers.observe import parse_arms, parse_example_count
from selfprobe.stats.pairs import FEWEST_MODELS
from selfprobe.studies.matrix.page import matrix_page, runs_page
from selfprobe.studies.matrix.rows import (
    ENDLESS_ITEMS,
    largest_advantage,
    planned_detectable_advantage,
)
from selfprobe.studies.matrix.verdict import ADVISED_MODELS
from selfprobe.study import Models, Plan, Study, Wave
from selfprobe.study._registry import defaults_of, measures, short_name, takes_about, tasks
from selfprobe.study.described import DescribedRun, NamedModel, rehearsed_calls, run_versions
from selfprobe.study.on_ray import other_runs
from selfprobe.study.options import LOG_DIR_HELP, MODELS_HELP, OUT_HELP
from selfprobe.text.counts import count_text

REASON_BY_SET_ARGUMENT = {
    "target_log": "a matrix records and replays its own answers: leave target_log out",
    "observer_log": "a matrix records and replays its own answers: leave observer_log out",
    "shown_items": "a matrix shows replies to the items of its --limit: leave shown_items out",
}
"""Arguments of a single run that a matrix sets itself, and what to do."""
DIAGONAL_FOLDER = "diagonal"
"""Folder of the first wave, below the matrix's log folder."""
CELLS_FOLDER = "cells"
"""Folder of the second wave."""


class Matrix(Study):
    """Run every observer on every target. The same command goes on where a killed one stopped.

    --config is a YAML file of the options by their long names. There a model may be a mapping of
    model, base_url, config and args.
    """

    reads: ClassVar[frozenset[str]] = frozenset(measures())
    skips: ClassVar[bool] = False

    models: Models = Field((), description=MODELS_HELP)
    tasks: tuple[str, ...] | None = Field(
        None, description="Tasks, comma-separated. Default: the five of the paper's text."
    )
    observers: tuple[str, ...] = Field(
        (),
        description=(
            "Give observers a hint about the target: named (its name), shown:N (N of its replies "
            "to other items). Each hint adds one run per observer and target in kth_word and "
            "ethical_dilemma."
        ),
    )
    args: dict[str, Any] = Field(
        {}, description="Task argument; it goes to the tasks that have it."
    )
    out: str = Field("matrix", description=OUT_HELP)
    log_dir: str = Field("logs/matrix", description=LOG_DIR_HELP)

    @field_validator("tasks")
    @classmethod
    def _by_short_name(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Tasks as `inspect eval` takes them are taken here too."""
        return None if value is None else tuple(map(short_name, value))

    @model_validator(mode="after")
    def _refuse_impossible(self) -> Self:
        """Refuse too few models, an unknown task, and arguments and arms that no task here has."""
        if len(self.models) < 2:
            names = ", ".join(model.name for model in self.models) or "none"
            raise InputError(f"a matrix compares two models or more, got {names}: say --models a,b")
        self._refuse_tasks()
        self._refuse_arguments()
        tasks_with_hints = [task for task in measures() if takes_about(task)]
        if self.example_count_by_arm and not set(tasks_with_hints) & set(self.task_names):
            raise InputError(
                "no task here has observers that can be told of their target; "
                f"{', '.join(tasks_with_hints)} have"
            )
        return self

    def _refuse_tasks(self) -> None:
        """Refuse tasks that are unknown, or that no matrix can hold."""
        known_tasks = measures()
        for task in self.task_names or ["(none)"]:
            if task not in known_tasks and task in tasks():
                name = INSPECT_NAME_BY_TASK.get(task, task)
                raise InputError(
                    f"{name} has no MEASURE in its file, so no matrix can hold it; "
                    "run it by inspect eval"
                )
            if task not in known_tasks:
                raise InputError(
                    f"unknown task {task}; a matrix can hold {', '.join(known_tasks)}"
                    f"{nearest_name_hint(task, known_tasks)}"
                )

    def _refuse_arguments(self) -> None:
        """Refuse arguments that a matrix sets itself, or that no task here has."""
        set_arguments = sorted(REASON_BY_SET_ARGUMENT.keys() & self.args.keys())
        if set_arguments:
            raise InputError(REASON_BY_SET_ARGUMENT[set_arguments[0]])
        known_arguments = sorted({name for task in self.task_names for name in defaults_of(task)})
        wrong_argument = unknown_names_fault(self.args, known_arguments)
        if wrong_argument:
            raise InputError(f"no task here has an argument {wrong_argument}")
        about = parse_arms(self.args.get("about", "self"))
        informed_arms = [arm for arm in about if parse_example_count(arm) is not None]
        if informed_arms:
            raise InputError(
                "a matrix runs its informed observers beside the others: "
                f"say --observers {informed_arms[0]}"
            )
        if "self" not in about:
            raise InputError(
                "with about=other no model is asked about itself; say about=self,other"
            )

    @property
    def task_names(self) -> tuple[str, ...]:
        """Tasks of the matrix."""
        if self.tasks is None:
            return tuple(task for task, measure in measures().items() if not measure.by_name)
        return tuple(dict.fromkeys(self.tasks))

    @property
    def example_count_by_arm(self) -> dict[str, int]:
        """Hint about the target that observers get in further cells → replies that they are
        shown.
        """
        examples_by_arm: dict[str, int] = {}
        for hint in self.observers:
            (arm, *_) = parse_arms(hint)
            example_count = parse_example_count(arm)
            if example_count is not None:
                examples_by_arm[arm] = example_count
            elif arm != "self":
                raise InputError(
                    f"--observers takes named and shown:N, got {hint}; say -T about=self,other"
                )
        return examples_by_arm

    def _arms_of(self, task: str) -> tuple[str, ...]:
        """Hints that observers of the task get."""
        return tuple(self.example_count_by_arm) if takes_about(task) else ()

    @cached_property
    def unopened_models(self) -> tuple[NamedModel, ...]:
        """Its models with their settings and those of all models, not open yet."""
        return tuple(
            replace(model, args={**self.run_settings.model_args, **model.args})
            for model in self.models
        )

    def args_of(self, task: str) -> dict[str, Any]:
        """The arguments that a task has."""
        return {
            name: value
            for name, value in (self.args | self.run_settings.shared).items()
            if name in defaults_of(task)
        }

    @cached_property
    def task_by_name(self) -> dict[str, Task]:
        """The tasks, without models.

        Raises:
            InputError: A task refuses an argument.
        """
        with at_most(self.limit):
            return {task: tasks()[task](**self.args_of(task)) for task in self.task_names}

    @cached_property
    def clusters(self) -> dict[str, list[str]]:
        """Task → the cluster that each of its items counts with: itself, where the data's address
        names no column.
        """
        clusters: dict[str, list[str]] = {}
        for task, built_task in self.task_by_name.items():
            samples = built_task.dataset[: self.sizes[task]]
            clusters[task] = [
                str((sample.metadata or {}).get("cluster") or sample.id) for sample in samples
            ]
        return clusters

    @property
    def data_notes(self) -> list[str]:
        """Lines on items that count as few clusters; what is not read of the data was said when it
        was read.
        """
        remedy = "?cluster=COLUMN behind the file's name takes another column"
        notes = [
            few_clusters(clusters, rows="items", unit="cluster", remedy=remedy)
            for clusters in self.clusters.values()
        ]
        return [note for note in dict.fromkeys(notes) if note]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Items by task after the limit.

        Raises:
            InputError: A task refuses an argument, or an arm shows more examples than there are
                other items.
        """
        sizes: dict[str, int] = {}
        for task, built_task in self.task_by_name.items():
            item_count = len(built_task.dataset)
            sizes[task] = min(item_count, self.limit or item_count)
        for task, size in sizes.items():
            for arm in self._arms_of(task):
                example_count = self.example_count_by_arm[arm]
                if size <= example_count:
                    raise InputError(
                        f"{arm} shows {example_count} other items, {task} has {size} items here; "
                        f"ask for at most shown:{size - 1}, or for more items"
                    )
        return sizes

    @property
    def rounds(self) -> int:
        """Calls of both waves that wait for one another."""
        own_rounds, further_rounds = [], []
        for task in self.task_names:
            measure = measures()[task]
            own_rounds.append(measure.rounds)
            further_rounds.append((measure.observer > 0) + (measure.target > 0))
        return max(own_rounds) + max(further_rounds)

    @property
    def cost(self) -> tuple[int, int, int]:
        """Calls of each model in both waves, at most (a paraphrase item with equal replies needs
        fewer), and tokens in and out.
        """
        other_count = len(self.models) - 1
        calls_and_tokens: list[tuple[int, tuple[int, int]]] = []
        for task, size in self.sizes.items():
            arguments = self.args_of(task)
            measure = measures()[task]
            own = rehearsed_calls(task, arguments)
            # An argument may leave acts out, such as candidates=3.
            calls_of_cell = min(measure.observer, own.observer.count)
            observer_calls = size * other_count * calls_of_cell
            target_calls = size * other_count * measure.target
            calls_and_tokens.append((size * own.every_call.count, own.every_call.tokens))
            calls_and_tokens.append((observer_calls, own.observer.tokens))
            calls_and_tokens.append((target_calls, own.every_call.tokens))
            for arm in self._arms_of(task):
                informed = rehearsed_calls(task, arguments | {"about": arm}).observer
                calls_and_tokens.append((size * other_count * informed.count, informed.tokens))
        call_count, tokens_in, tokens_out = 0, 0, 0
        for calls, (tokens_read, tokens_written) in calls_and_tokens:
            call_count += calls
            tokens_in += calls * tokens_read
            tokens_out += calls * tokens_written
        return call_count, tokens_in, tokens_out

    def plan(self) -> Plan:
        """Calls and tokens, and what a matrix of this size can detect."""
        size = len(self.models)
        task_texts = [f"{task} ({count_text(count, 'item')})" for task, count in self.sizes.items()]
        lines = [f"{count_text(size, 'model')} × {size} × {', '.join(task_texts)}"]
        if self.example_count_by_arm:
            further_cells = f"{size * (size - 1)} further cells a task and arm"
            lines.append(
                f"Informed observers ({', '.join(self.example_count_by_arm)}) are included: {further_cells}."
            )
        lines += [*self.data_notes, self._power_sentence()]
        return Plan(lines, [Cost(model.name, *self.cost) for model in self.unopened_models])

    def refuse_others(self) -> None:
        """Refuse a log folder with runs of another matrix too, which Inspect would refuse after the
        plan was shown.
        """
        super().refuse_others()
        folder = f"{self.log_folder}/{DIAGONAL_FOLDER}"
        versions = run_versions(next(self.waves()).runs)
        for run in runs(logs_in(folder)).counted:
            log_name = PurePath(run.log).name
            if run.identity not in versions:
                raise InputError(other_runs(log_name, folder))
            version = other_version(run.header, versions)
            if version:
                raise InputError(
                    f"{folder} holds a log ({log_name}) of {version}: give a new --log-dir"
                )

    def _chance(self, task: str) -> float:
        return measures()[task].chance(defaults_of(task) | self.args_of(task))

    def _detectable_advantage(self, task: str, model_count: int, items: int) -> float:
        """The own advantage that is named with so many models and items; infinite where none is."""
        advantage = planned_detectable_advantage(
            model_count,
            items,
            tests=model_count * len(self.task_names),
            rng=np.random.default_rng(0),
            chance=self._chance(task),
            right_or_wrong=measures()[task].graded,
        )
        return math.inf if math.isnan(advantage) else advantage

    def _power_sentence(self) -> str:
        """The own advantage that such a matrix names, of the task that needs the largest one."""
        size = len(self.models)
        if size < FEWEST_MODELS:
            return (
                f"With {size} models nobody can be named: they do not show how much two models "
                f"differ without self-knowledge. Take {ADVISED_MODELS}; {FEWEST_MODELS} are the "
                "least."
            )
        units = {task: len(set(clusters)) for task, clusters in self.clusters.items()}
        advantages = {
            task: self._detectable_advantage(task, size, count) for task, count in units.items()
        }
        task = max(advantages, key=lambda name: advantages[name])
        endless_advantage = self._detectable_advantage(task, size, ENDLESS_ITEMS)
        if math.isinf(endless_advantage):
            endless_text = f"With {size} models not even a full score is named"
        else:
            endless_text = (
                f"With {size} models a model is named only if it beats the others by about "
                f"{_points(endless_advantage)} points or more"
            )
        endless_text += ", however many items you ask"

        item_count = self.sizes[task]
        size_text = "this 1 item" if item_count == 1 else f"these {item_count} items"
        if units[task] < self.sizes[task]:
            size_text += f" in {units[task]} clusters"
        if len(advantages) > 1:
            size_text += f" of {task}, which needs the most,"
        if math.isinf(advantages[task]):
            full_score_points = _points(largest_advantage(self._chance(task)))
            items_text = (
                f"With {size_text} even a full score, {full_score_points} points above the "
                "others, is too little to be named"
            )
        else:
            items_text = f"With {size_text} it takes about {_points(advantages[task])}"

        if size < ADVISED_MODELS:
            advised_limit = self._detectable_advantage(task, ADVISED_MODELS, ENDLESS_ITEMS)
            advised_advantage = self._detectable_advantage(task, ADVISED_MODELS, units[task])
            if not math.isinf(advised_limit):
                endless_text += f"; with {ADVISED_MODELS}, by {_points(advised_limit)}"
            if not math.isinf(advised_advantage):
                items_text += f"; with {ADVISED_MODELS} models, {_points(advised_advantage)}"
        return (
            f"{endless_text}. {items_text}. (Named in 80 % of such matrices; a point is .01 of the "
            "score, the others score half-way between chance and 1, and pairs of models differ as "
            "real ones do: simulated models differ less, and less is enough for them.)"
        )

    def open_models(self) -> None:
        """Open its models; on a cluster their keys are on the nodes."""
        self.run_settings.open_models(*self.unopened_models)

    def waves(self) -> Iterator[Wave]:
        """Each model on itself; then the cells of the targets that ended well."""
        own_runs = [
            self._run(task, model, model, None)
            for task in self.task_names
            for model in self.unopened_models
        ]
        yield Wave(own_runs, "Each model on itself", DIAGONAL_FOLDER, {})

        folder = f"{self.log_dir.rstrip('/')}/{DIAGONAL_FOLDER}"
        complete_targets: set[tuple[str, str]] = set()
        for run in runs([folder], self.task_names).finished:
            if len(run.items()) >= self.sizes[run.identity.task]:
                complete_targets.add((run.identity.task, run.identity.model))
        cell_runs = [
            self._run(task, target, observer, arm, target_log=folder)
            for task in self.task_names
            for arm in self._arms_of_cells(task)
            for target, observer in itertools.permutations(self.unopened_models, 2)
            if (task, target.name) in complete_targets
        ]
        if cell_runs:
            # Cells of an earlier start lie there; another matrix's logs were refused by the first
            # wave.
            yield Wave(cell_runs, "Each on the others", CELLS_FOLDER, {"log_dir_allow_dirty": True})

    def scored_subject(self, run: Run) -> str:
        """A model in a task, of its run on itself: a score elsewhere is no answer about it."""
        model = str(run.header.eval.model)
        if target_of(run.header) != model:
            return ""
        return f"{model} in {run.identity.task}" if len(self.task_names) > 1 else model

    def _arms_of_cells(self, task: str) -> tuple[str | None, ...]:
        """The cells to run for each pair of models: a plain one, where the report cannot join it,
        or one an arm.
        """
        return (None,) if measures()[task].observer else self._arms_of(task)

    def _run(
        self, task: str, target: NamedModel, observer: NamedModel, arm: str | None, **recorded: str
    ) -> DescribedRun:
        arguments = self.args_of(task) | recorded
        if arm:  # what else a model is asked about concerns its run on itself
            arguments |= {"about": arm}
        shows_examples = bool(arm and parse_example_count(arm))
        if shows_examples and self.limit == self.sizes[task]:  # the target's log may hold more
            arguments |= {"shown_items": self.limit}
        roles = {"target": target} if recorded else {}
        return DescribedRun(task, arguments, observer, roles, {"target": target.name})

    def build_page(self) -> Page:
        """The page of its own runs."""
        return runs_page(self.own_runs(self.limits), [self.log_dir])

    @classmethod
    def page_of_logs(cls, paths: Sequence[str]) -> Page:
        """The page of all matrices under these paths."""
        return matrix_page(paths)


def _points(advantage: float) -> int:
    return round(100 * advantage)
