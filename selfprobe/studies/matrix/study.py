"""The cross-model matrix: every observer on every target, in two flat lists of ordinary runs (paper
003, §4.1, G.3).

The diagonal (each model on itself) runs first; its logs are the record of the targets' acts. A cell
off the diagonal replays the acts from there. Where the observer's prompt does not hold the target's
text, such a cell needs no call and is no run: `matrix.table` joins the two models' runs on
themselves. There `--observers` runs further cells, in which the observer is told of its target.
There is no state beside the logs: the same command goes on where a killed one stopped.
"""

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
from selfprobe.errors.arguments import FULL, meant, renamed, unknown
from selfprobe.logs import logs_in, other_version, runs
from selfprobe.page import Page
from selfprobe.solvers.observe import arms_of, examples_of
from selfprobe.stats.pairs import FEWEST
from selfprobe.studies.matrix.page import matrix_page, runs_page
from selfprobe.studies.matrix.rows import ENDLESS_ITEMS, planned_detectable_advantage
from selfprobe.study import Models, Plan, Study, Wave
from selfprobe.study._registry import defaults_of, measures, short_name, takes_about, tasks
from selfprobe.study.described import DescribedRun, NamedModel, rehearsed, run_versions
from selfprobe.study.on_ray import other_runs
from selfprobe.study.options import LOG_DIR_HELP, MODELS_HELP, OUT_HELP

SETS = {
    "target_log": "a matrix records and replays its own answers: leave target_log out",
    "observer_log": "a matrix records and replays its own answers: leave observer_log out",
    "shown_items": "a matrix shows replies to the items of its --limit: leave shown_items out",
}
"""Arguments of a single run that a matrix sets itself, and what to do."""
BEFORE = {"asked": "named", "replayed": "self"}
"""Words of --observers in versions up to 0.2.0."""

ADVISED = 8
"""Number of models that is advised; five are the least that works."""
DIAGONAL, CELLS = "diagonal", "cells"
"""The two waves' folders below the matrix's log folder."""


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
        description="Give observers a hint about the target: named (its name), shown:N (N of its replies to other "
        "items). Each hint adds one run per observer and target in kth_word and ethical_dilemma.",
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
    def _can_be(self) -> Self:
        """Refuse too few models, an unknown task, and arguments and arms that no task here has."""
        if len(self.models) < 2:
            names = ", ".join(model.name for model in self.models) or "none"
            raise InputError(f"a matrix compares two models or more, got {names}: say --models a,b")
        known = measures()
        for task in self.chosen or ["(none)"]:
            if task not in known and task in tasks():
                name = FULL.get(task, task)
                raise InputError(
                    f"{name} has no MEASURE in its file, so no matrix can hold it; run it by inspect eval"
                )
            if task not in known:
                raise InputError(
                    f"unknown task {task}; a matrix can hold {', '.join(known)}{meant(task, known)}"
                )
        if set_here := sorted(SETS.keys() & self.args.keys()):
            raise InputError(SETS[set_here[0]])
        known_here = sorted({name for task in self.chosen for name in defaults_of(task)})
        if wrong := renamed(self.args, known_here) or unknown(self.args, known_here):
            raise InputError(f"no task here has an argument {wrong}")
        about = arms_of(self.args.get("about", "self"))
        if informed := [arm for arm in about if examples_of(arm) is not None]:
            raise InputError(
                f"a matrix runs its informed observers beside the others: say --observers {informed[0]}"
            )
        if "self" not in about:
            raise InputError(
                "with about=other no model is asked about itself; say about=self,other"
            )
        can = [task for task in known if takes_about(task)]
        if self.arms and not set(can) & set(self.chosen):
            raise InputError(
                f"no task here has observers that can be told of their target; {', '.join(can)} have"
            )
        return self

    @property
    def chosen(self) -> tuple[str, ...]:
        """Tasks of the matrix."""
        if self.tasks is None:
            return tuple(task for task, measure in measures().items() if not measure.by_name)
        return tuple(dict.fromkeys(self.tasks))

    @property
    def arms(self) -> dict[str, int]:
        """Hint about the target that observers get in further cells → replies that they are shown."""
        found = dict[str, int]()
        for one in self.observers:
            (arm, *_) = arms_of(BEFORE.get(one, one))
            if (count := examples_of(arm)) is not None:
                found[arm] = count
            elif arm != "self":
                raise InputError(
                    f"--observers takes named and shown:N, got {one}; say -T about=self,other"
                )
        return found

    @cached_property
    def named(self) -> tuple[NamedModel, ...]:
        """Its models with their settings and those of all models, not open yet."""
        return tuple(
            replace(model, args={**self.how.model_args, **model.args}) for model in self.models
        )

    def args_of(self, task: str) -> dict[str, Any]:
        """The arguments that a task has."""
        return {
            name: value
            for name, value in (self.args | self.how.shared).items()
            if name in defaults_of(task)
        }

    @cached_property
    def built(self) -> dict[str, Task]:
        """The tasks, without models.

        Raises:
            InputError: A task refuses an argument.
        """
        with at_most(self.limit):
            return {task: tasks()[task](**self.args_of(task)) for task in self.chosen}

    @cached_property
    def clusters(self) -> dict[str, list[str]]:
        """Task → the cluster that each of its items counts with: itself, where the data's address
        names no column.
        """
        return {
            task: [
                str((sample.metadata or {}).get("cluster") or sample.id)
                for sample in built.dataset[: self.sizes[task]]
            ]
            for task, built in self.built.items()
        }

    @property
    def data_notes(self) -> list[str]:
        """Lines on items that count as few clusters; what is not read of the data was said when it
        was read.
        """
        remedy = "?cluster=COLUMN behind the file's name takes another column"
        few = [
            few_clusters(of, rows="items", unit="cluster", remedy=remedy)
            for of in self.clusters.values()
        ]
        return list(filter(None, dict.fromkeys(few)))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Items by task after the limit.

        Raises:
            InputError: A task refuses an argument, or an arm shows more examples than there are
                other items.
        """
        counts = {task: len(built.dataset) for task, built in self.built.items()}
        sizes = {task: min(count, self.limit or count) for task, count in counts.items()}
        for task, size in sizes.items():
            for arm, count in self.arms.items() if takes_about(task) else ():
                if size <= count:
                    raise InputError(
                        f"{arm} shows {count} other items, {task} has {size} items here; ask for at most "
                        f"shown:{size - 1}, or for more items"
                    )
        return sizes

    @property
    def rounds(self) -> int:
        """Calls of both waves that wait for one another."""
        of = [measures()[task] for task in self.chosen]
        return max(one.rounds for one in of) + max(
            (one.observer > 0) + (one.target > 0) for one in of
        )

    @property
    def cost(self) -> tuple[int, int, int]:
        """Calls of each model in both waves, at most (a paraphrase item with equal replies needs
        fewer), and tokens.
        """
        counted, others = list[tuple[int, tuple[int, int]]](), len(self.models) - 1
        for task, size in self.sizes.items():
            args, of = self.args_of(task), measures()[task]
            own = rehearsed(task, args)
            counted.append((size * own.all.count, own.all.tokens))
            counted.append((size * others * of.observer, own.observer.tokens))
            counted.append((size * others * of.target, own.all.tokens))
            for arm in self.arms if takes_about(task) else ():
                informed = rehearsed(task, args | {"about": arm}).observer
                counted.append((size * others * informed.count, informed.tokens))
        parts = [(calls, calls * read, calls * wrote) for calls, (read, wrote) in counted]
        calls, tokens_in, tokens_out = map(sum, zip(*parts, strict=True))
        return calls, tokens_in, tokens_out

    def plan(self) -> Plan:
        """Calls and tokens, and what a matrix of this size can detect."""
        size = len(self.models)
        items = ", ".join(f"{task} ({n} items)" for task, n in self.sizes.items())
        further = f"{size * (size - 1)} further cells a task and arm"
        arms = (
            [f"Informed observers ({', '.join(self.arms)}) are included: {further}."]
            if self.arms
            else []
        )
        head = f"{size} models × {size} × {items}"
        lines = [head, *arms, *self.data_notes, self._power()]
        return Plan(lines, [Cost(model.name, *self.cost) for model in self.named])

    def refuse_others(self) -> None:
        """Refuse a log folder with runs of another matrix too, which Inspect would refuse after the
        plan was shown.
        """
        super().refuse_others()
        folder = f"{self.base}/{DIAGONAL}"
        versions = run_versions(next(self.waves()).runs)
        for run in runs(logs_in(folder)).counted:
            name = PurePath(run.log).name
            if run.identity not in versions:
                raise InputError(other_runs(name, folder))
            if other := other_version(run.header, versions):
                raise InputError(f"{folder} holds a log ({name}) of {other}: give a new --log-dir")

    def _power(self) -> str:
        """The own advantage that such a matrix names, of the task that needs the largest one."""
        size = len(self.models)
        if size < FEWEST:
            return (
                f"With {size} models nobody can be named: they do not show how much two models differ without "
                "self-knowledge. Take eight, at least five."
            )

        def least(task: str, items: int) -> float:
            found = planned_detectable_advantage(
                size,
                items,
                tests=size * len(self.chosen),
                rng=np.random.default_rng(0),
                chance=measures()[task].chance(defaults_of(task) | self.args_of(task)),
                right_or_wrong=measures()[task].graded,
            )
            return math.inf if math.isnan(found) else found

        units = {task: len(set(of)) for task, of in self.clusters.items()}
        needs = {task: least(task, count) for task, count in units.items()}
        task = max(needs, key=lambda name: needs[name])
        best = least(task, ENDLESS_ITEMS)
        size_text = f"{self.sizes[task]} items"
        if units[task] < self.sizes[task]:
            size_text += f" in {units[task]} clusters"
        of = f"{task}, {size_text}" if len(needs) > 1 else size_text
        more = (
            f" with any number of items the smallest advantage named is {best:.2f}, since two models also differ "
            "without self-knowledge"
            if best < math.inf
            else ""
        )
        more += f"{';' * bool(more)} eight models lower it" if size < ADVISED else ""
        if needs[task] < math.inf:
            return (
                f"In 80 % of such matrices a model is named if it is about {needs[task]:.2f} above what skill gives "
                f"({of}, scores half-way between chance and 1);{more or ' more items lower it'}."
            )
        return (
            "This matrix is too small: even perfect self-knowledge is named in fewer than 80 % of such matrices "
            f"({of}, scores half-way between chance and 1);{more or ' take more items'}."
        )

    def tried(self) -> None:
        """Open its models; on a cluster their keys are on the nodes."""
        self.how.tried(*self.named)

    def waves(self) -> Iterator[Wave]:
        """Each model on itself; then the cells of the targets that ended well."""
        alone = [
            self._run(task, model, model, None) for task in self.chosen for model in self.named
        ]
        yield Wave(alone, "Each model on itself", DIAGONAL, {})
        folder = f"{self.log_dir.rstrip('/')}/{DIAGONAL}"
        ended = [(run.identity, len(run.items())) for run in runs([folder], self.chosen).finished]
        done = {(of.task, of.model) for of, items in ended if items >= self.sizes[of.task]}
        cells = [
            self._run(task, target, observer, arm, target_log=folder)
            for task in self.chosen
            for arm in self._cells(task)
            for target in self.named
            for observer in self.named
            if target is not observer and (task, target.name) in done
        ]
        if cells:
            # Cells that were runs in version 0.1.0 may lie there; another matrix's logs were
            # refused by the first wave.
            yield Wave(cells, "Each on the others", CELLS, {"log_dir_allow_dirty": True})

    def _cells(self, task: str) -> tuple[str | None, ...]:
        """The cells to run for each pair of models: a plain one, where the report cannot join it,
        or one an arm.
        """
        measure = measures()[task]
        return (None,) if measure.observer else tuple(self.arms) if takes_about(task) else ()

    def _run(
        self, task: str, target: NamedModel, observer: NamedModel, arm: str | None, **recorded: str
    ) -> DescribedRun:
        given = self.args_of(task) | recorded
        if arm:  # whom else a model is asked about concerns its run on itself
            given |= {"about": arm}
        if self.limit == self.sizes[task] and examples_of(
            arm or "self"
        ):  # the target's log may hold more
            given |= {"shown_items": self.limit}
        return DescribedRun(
            task, given, observer, {"target": target} if recorded else {}, {"target": target.name}
        )

    def shown(self) -> Page:
        """The page of its own runs."""
        return runs_page(self.own_runs(self.limits), [self.log_dir], embedder=None)

    @classmethod
    def reported(cls, paths: Sequence[str]) -> Page:
        """The page of all matrices under these paths."""
        return matrix_page(paths, embedder=None)
