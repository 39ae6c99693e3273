"""Can a script rely on these logs, and did a model get worse? The exit status answers, for any
Inspect task.
"""

import hashlib
import json
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from functools import cached_property
from pathlib import Path
from string import ascii_uppercase
from typing import Any, ClassVar, Self
from xml.etree import ElementTree

from inspect_ai import Task
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSampleReductions, EvalSampleSummary, EvalScore
from inspect_ai.model import ChatMessage
from pydantic import (
    Field,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from selfprobe.data.files import decoded, read_bytes
from selfprobe.data.prices import Cost
from selfprobe.errors import IncomparableError, InputError, NoLogs, one_line
from selfprobe.errors.arguments import INSPECT_NAME_BY_TASK, nearest_name_hint, unknown_names_fault
from selfprobe.errors.output import place_file
from selfprobe.logs import (
    UNREADABLE,
    Identity,
    Run,
    about_of,
    args_of,
    cause,
    counted,
    cut_in,
    logs_in,
    no_logs_text,
    readable_logs,
    roles_of,
    target_of,
    whole_sample,
)
from selfprobe.logs import runs as runs_in
from selfprobe.logs.judged import (
    FAILED,
    NO_SCORE,
    ForeignDecision,
    ScoreColumn,
    number_of,
    values_of,
)
from selfprobe.logs.reducers import MEAN, known_reducer, logged_reductions, reduced, reducers_of
from selfprobe.scorers.decision import Judged
from selfprobe.scorers.dilemma import Dilemma, dilemmas_of
from selfprobe.scorers.summary import best_of, without_a_model
from selfprobe.solvers.converse import METHODS
from selfprobe.solvers.observe import OTHER_PREFIX, parse_arms, parse_example_count
from selfprobe.stats.paired import Change
from selfprobe.studies.check_numbers import (
    UNBOUND,
    UNNAMED_SCORE,
    UNSCORED_METRIC,
    BaselineRun,
    ChangeVerdict,
    Draw,
    MetricChange,
    RunPairs,
    TurnedCell,
    changes_of,
    epoch_deals,
    item_draws,
    pair_runs,
    scores_of,
    target_suffix,
    turned_cells,
    verdict_counts,
)
from selfprobe.studies.check_table import TableRow, header_disagreement, judged_table
from selfprobe.study import Plan, Study, Wave
from selfprobe.study._registry import defaults_of, measures, short_name
from selfprobe.study._registry import tasks as tasks_by_name
from selfprobe.study.described import DescribedRun, NamedModel, rehearsed_calls
from selfprobe.study.options import MODELS_HELP, echo_json, echo_lines
from selfprobe.text.counts import count_text, plural
from selfprobe.text.safe import clean, concealed, echo
from selfprobe.text.thoughts import split_thought


class ExitStatus(IntEnum):
    """Exit statuses; 2 is the command line's."""

    GOOD = 0
    WORSE = 1
    INCOMPLETE = 3
    CANNOT_TELL = 4


LARGEST_UNSCORED_SHARE = 0.1
"""Share of unscored values in a run that is good."""
UNSCORED_HELP = (
    f"Largest share of unscored values in a good run. Default: {LARGEST_UNSCORED_SHARE}; with a "
    "baseline 1."
)
OTHER_LOG_ARGUMENTS = ("target_log", "observer_log")
"""Task arguments that concern another model, or an earlier run."""
FALSE_ALARM_NOTE = (
    "A model that did not change has an alarm within 30 nights with one baseline in four. Run it "
    "again before you act: with 6 % of baselines both runs of a night are worse. A baseline of "
    "several epochs has more alarms (40 %), not fewer; only the worst luck is smaller."
)


@dataclass(frozen=True)
class RehearsedTask:
    """A task of --run, before it is asked."""

    task: Task
    args: dict[str, Any]
    item_count: int


class Check(Study):
    """Say by the exit status whether LOGS are complete and scored; for scripts, and for logs of any
    Inspect task.

    The status also says, with --baseline or --against, whether a model got worse. 0 is good:
    complete, and not worse; 1 worse; 2 a wrong command; 3 incomplete: a run failed, lacks samples
    or has invalidated ones, nothing in it was scored, more is unscored than --unscored, a log
    cannot be read, or it is not of the baseline's task, data or items; 4 cannot tell (--strict).
    Where runs have the same task, models, arguments, settings and data, the finished one with most
    samples counts, then the newest; one that failed since counts too.
    """

    reads: ClassVar[frozenset[str]] = frozenset()
    start_options: ClassVar[str] = "--run or --config, which say what to ask"

    logs: tuple[str, ...] = Field((), examples=["[LOGS]..."])
    unscored: float | None = Field(None, ge=0, le=1, description=UNSCORED_HELP)
    save: str | None = Field(
        None, description="Write a baseline of LOGS to this .json file: small, for git."
    )
    baseline: str | None = Field(None, description="Compare LOGS with this baseline, item by item.")
    against: str | None = Field(
        None, description="Earlier logs to compare with, instead of --baseline."
    )
    smallest: float = Field(0.05, gt=0, description="The smallest change that matters.")
    lower: tuple[str, ...] = Field((), description="Metrics whose lower values are better.")
    strict: bool = Field(
        False,
        description=(
            "Exit with status 4 where a change of --smallest can be neither shown nor excluded."
        ),
    )
    aa: int | None = Field(
        None,
        ge=1,
        description="Draw the items again N times and say how often the verdict changes.",
    )
    junit: str | None = Field(None, description="Write JUnit's XML to this file.")
    github: bool = Field(
        False, description="Print annotations, and add to the step summary of a workflow."
    )
    tasks: tuple[str, ...] = Field(
        (), description="Tasks to run now (--run), instead of reading LOGS."
    )
    models: tuple[str, ...] = Field((), description=f"Used by --run. {MODELS_HELP}")
    args: dict[str, Any] = Field(
        {}, description="Task argument for --run; it goes to the tasks that have it."
    )
    log_dir: str = Field(
        "", description="Folder for the logs of --run. Default: a new one in logs/check."
    )
    out: str = Field("", exclude=True)
    _finished_before: dict[str, datetime] = PrivateAttr(default_factory=dict)
    """Log that `ask` found finished → when it was."""
    _asked_nothing: bool = PrivateAttr(default=False)
    """Whether `ask` found all logs finished."""

    @field_validator("tasks")
    @classmethod
    def _by_short_name(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """Tasks as `inspect eval` takes them are taken here too."""
        return tuple(map(short_name, value))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Refuse what does not go together, or would have no effect."""
        if self.logs and self.tasks:
            raise InputError("give LOGS, or --run TASKS --model MODEL, not both")
        if not self.logs and not self.tasks:
            raise InputError("give LOGS, or --run TASKS --model MODEL")
        if self.tasks and not self.models:
            raise InputError("--run needs a model: --model MODEL")
        if self.save is not None:
            _refuse_other_than_json(self.save, "--save ")
            if Path(self.save).is_file() and not _is_baseline(self.save):
                raise InputError(
                    f"--save {self.save} would replace a file that is no baseline; give another "
                    f"name: --save {_unused_baseline_name()}"
                )
        for path in self.logs:
            if _is_baseline(path):
                raise InputError(
                    f"{path} is a baseline, and LOGS are logs: selfprobe check LOGS "
                    f"--baseline {path}"
                )
        if self.against and _is_baseline(self.against):
            raise InputError(
                f"{self.against} is a baseline, and --against takes logs: --baseline {self.against}"
            )
        if self.baseline and self.against:
            raise InputError("--baseline and --against are both what was before; give one of them")
        run_options = {
            "--limit": self.limit,
            "-T": self.args,
            "--model": self.models,
            "--log-dir": self.log_dir,
        }
        run_option = _first_option_in_use(run_options)
        if self.logs and run_option:
            raise InputError(f"{run_option} is for --run TASKS; with LOGS it has no effect")

        change_options: dict[str, object] = {"--strict": self.strict}
        if not self.aa:
            change_options |= {"--lower": self.lower, "--smallest": self.smallest != 0.05}
        change_option = _first_option_in_use(change_options)
        if not self.gates and change_option:
            raise InputError(
                f"{change_option} is about a change; say from what: --baseline FILE.json or "
                "--against LOGS2"
            )

        output_option = _first_option_in_use({"--junit": self.junit, "--github": self.github})
        if self.aa and not self.gates and output_option:
            raise InputError(
                f"{output_option} has nothing to say of --aa alone; give --baseline or --against, "
                "or leave --aa out"
            )
        return self

    @property
    def gates(self) -> bool:
        """Whether there is something to compare with."""
        return bool(self.baseline or self.against)

    @cached_property
    def log_folder(self) -> str:
        """The log folder, without a slash at its end."""
        return self.log_dir.rstrip("/") or f"logs/check/{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}"

    @cached_property
    def before(self) -> tuple[list[BaselineRun], list[str]]:
        """The runs of before, and what to know of their logs.

        Raises:
            InputError: They cannot be read, or no score can change by --smallest.
        """
        runs = list[BaselineRun]()
        notes = list[str]()
        if self.against:
            earlier_logs = read_logs([self.against])
            runs = earlier_logs.baseline_runs()
            notes = [f"before: {note}" for note in earlier_logs.replaced_notes()]
        if self.baseline:
            runs = read_baseline(self.baseline)
        scores = {score for run in runs for score in scores_of(run)}
        if self.smallest > 1 and scores and all(0 <= score <= 1 for score in scores):
            raise InputError(
                f"--smallest {self.smallest:g} is more than any change can be: what was before "
                "lies in 0 to 1; give a share such as .05"
            )
        return runs, notes

    @cached_property
    def rehearsed_tasks(self) -> dict[str, RehearsedTask]:
        """The tasks of --run by their names.

        Raises:
            InputError: A task or an argument that there is not.
            IncomparableError: The baseline is of other tasks, another version, data set or more
                items, so that the calls would be for nothing; --junit and --github say so too.
        """
        for task_name in self.tasks:
            self._refuse_unknown_task(task_name)
        for name in OTHER_LOG_ARGUMENTS:
            if name in self.args:
                raise InputError(f"a gate asks a model about itself: leave {name} out")
        argument_names = set[str]()
        for task_name in self.tasks:
            argument_names.update(defaults_of(task_name))
        unknown_argument = unknown_names_fault(self.args, sorted(argument_names))
        if unknown_argument:
            raise InputError(f"no task here has an argument {unknown_argument}")
        for arm in parse_arms(self.args.get("about", "self")):
            if parse_example_count(arm) is not None:
                raise InputError(f"a gate asks a model about itself: leave about={arm} out")

        rehearsed_tasks = dict[str, RehearsedTask]()
        for task_name in self.tasks:
            defaults = defaults_of(task_name)
            args = {name: value for name, value in self.args.items() if name in defaults}
            task = tasks_by_name()[task_name](**args)
            item_count = len(task.dataset)
            if self.limit:
                item_count = min(item_count, self.limit)
            rehearsed_tasks[task_name] = RehearsedTask(task, args, item_count)
        earlier_runs, _ = self.before
        if earlier_runs:
            self._refuse_incomparable(task_faults(earlier_runs, rehearsed_tasks))
        return rehearsed_tasks

    def _refuse_incomparable(self, fault_by_task: Mapping[str, str]) -> None:
        """Refuse tasks that no gate would compare with the baseline, in all outputs."""
        if not fault_by_task:
            return
        texts = [f"{task_name}: the baseline {fault}" for task_name, fault in fault_by_task.items()]
        cases = list[Case]()
        for task_name, fault in fault_by_task.items():
            text = f"refused: the baseline {fault}"
            cases.append(_bad_case(task_name, text, len(GATE_HEADINGS)))
        summary = f"{len(cases)} refused, nothing was asked"
        self._write_files(
            CheckResult(ExitStatus.INCOMPLETE, cases, GATE_HEADINGS, [], summary, {}),
            annotations_to_stderr=True,
        )
        raise IncomparableError("; ".join(texts))

    def _refuse_unknown_task(self, task_name: str) -> None:
        measure_names = list(measures())
        if task_name in measure_names:
            return
        allowed_tasks = f"--run takes {', '.join(measure_names)}"
        if task_name in tasks_by_name():
            full_name = INSPECT_NAME_BY_TASK.get(task_name, task_name)
            command = f"inspect eval selfprobe/{full_name} --model {self.models[0]} --log-dir LOGS"
            raise InputError(
                f"{allowed_tasks}; run {full_name} by itself: {command}, then selfprobe check LOGS"
            )
        raise InputError(
            f"{allowed_tasks}; there is no task {task_name}{nearest_name_hint(task_name, measure_names)}"
        )

    def refuse_others(self) -> None:
        """Refuse nothing: `check` judges logs of any task."""

    def plan(self) -> Plan | None:
        """Items, calls and tokens of --run."""
        if not self.tasks:
            return None
        call_count = 0
        sent_tokens = 0
        received_tokens = 0
        item_counts = []
        for task_name, rehearsed_task in self.rehearsed_tasks.items():
            item_count = rehearsed_task.item_count
            item_calls = rehearsed_calls(task_name, rehearsed_task.args).every_call
            item_sent, item_received = item_calls.tokens[:2]
            task_calls = item_count * item_calls.count
            call_count += task_calls
            sent_tokens += task_calls * item_sent
            received_tokens += task_calls * item_received
            item_counts.append(f"{task_name}: {count_text(item_count, 'item')}")
        costs = [Cost(model, call_count, sent_tokens, received_tokens) for model in self.models]
        return Plan([", ".join(item_counts)], costs)

    @property
    def rounds(self) -> int:
        """Calls that wait for one another."""
        return max(measures()[task].rounds for task in self.tasks)

    def waves(self) -> Iterator[Wave]:
        """Each task with each model."""
        described_runs = list[DescribedRun]()
        for model in self.models:
            named_model = NamedModel(model, self.run_settings.model_args)
            for task_name, rehearsed_task in self.rehearsed_tasks.items():
                task_args = rehearsed_task.args | self.run_settings.shared
                described_runs.append(DescribedRun(task_name, task_args, named_model))
        yield Wave(described_runs, "Runs", eval_set_arguments={})

    def ask(self) -> bool:
        """Run the tasks, and keep which of their logs were finished before."""
        end_before = self._ends_of_logs()
        is_complete = super().ask()
        end_after = self._ends_of_logs()
        self._finished_before = end_before
        self._asked_nothing = bool(end_before) and end_before == end_after
        return is_complete

    def _ends_of_logs(self) -> dict[str, datetime]:
        """Finished logs of the folder → when they were finished."""
        ends = dict[str, datetime]()
        for header in readable_logs(logs_in(self.log_folder)).headers:
            if header.stats.completed_at:
                ends[header.location] = datetime.fromisoformat(header.stats.completed_at)
        return ends

    @property
    def _unasked_text(self) -> str:
        """What to know where nothing was asked, with what to type; or ""."""
        if not self._asked_nothing:
            return ""
        last_end = max(self._finished_before.values())
        earlier_options = ""
        if self.baseline:
            earlier_options = f" --baseline {self.baseline}"
        elif self.against:
            earlier_options = f" --against {self.against}"
        return (
            f"nothing was asked: its runs were finished at {last_end:%Y-%m-%d %H:%M} UTC; leave "
            "--log-dir out or give a new folder to ask anew, or read them: "
            f"selfprobe check {self.log_folder}{earlier_options}"
        )

    def _resumed_notes(self, logs: "CheckedLogs") -> list[str]:
        """A line for each run that was finished before, where others were asked."""
        if self._asked_nothing:
            return []
        notes = list[str]()
        for run in logs.runs:
            end = self._finished_before.get(run.run.log)
            if end is not None:
                end_text = f"{end:%Y-%m-%d %H:%M} UTC"
                notes.append(f"{run.name}: not asked now, it was finished at {end_text}")
        return notes

    def print_page(self, *, as_json: bool, planned: bool) -> int:
        """Judge the logs, print and write what was asked for; the exit status."""
        logs = read_logs(self.logs or [self.log_folder], self.limits if self.tasks else None)
        judge = self._against_itself if self.aa and not self.gates else self._judged
        status = judge(logs, as_json)
        if status and self.save:
            echo(f"No baseline is saved of runs with status {int(status)}", err=True)
        elif self.save:
            runs = logs.baseline_runs()
            size = save_baseline(runs, self.save)
            lines = [
                f"Baseline: {self.save} ({count_text(len(runs), 'run')}, {size / 1000:.0f} kB)"
            ]
            for run in runs:
                lines += [
                    f"{run.name}: not in the baseline: {reason}" for reason in run.left_out.values()
                ]
            if not as_json:
                echo_lines(lines)
        return int(status)

    def _judged(self, logs: "CheckedLogs", as_json: bool) -> ExitStatus:
        """Say whether runs are complete, and what changed where there is a baseline."""
        if not self.gates:
            largest_unscored = LARGEST_UNSCORED_SHARE if self.unscored is None else self.unscored
            result = complete(logs, largest_unscored)
            if self._unasked_text:
                result.cases.append(_unasked_case(self.log_folder, self._unasked_text))
            self._put_out(result, as_json)
            return result.status
        gate = self._gate(logs)
        result = gate.result()
        self._put_out(result, as_json)
        if self.aa and gate.rows:
            self._tell_flips(item_draws(gate.paired.pairs), "resamples of the items", as_json)
        return result.status

    def _gate(self, logs: "CheckedLogs") -> "Gate":
        """The comparison of the logs with what was before.

        Raises:
            InputError: No metric has a name of --lower.
        """
        earlier_runs, earlier_notes = self.before
        runs, bad_runs = logs.comparable_runs(1.0 if self.unscored is None else self.unscored)
        if self._unasked_text:
            bad_runs[self.log_folder] = self._unasked_text
        log_notes = logs.replaced_notes() + logs.other_file_notes()
        notes = earlier_notes + self._resumed_notes(logs) + log_notes
        gate = Gate(earlier_runs, runs, self.smallest, self.lower, self.strict, bad_runs, notes)
        metric_names = sorted({row.metric for row in gate.rows})
        for name in self.lower:
            if metric_names and name not in metric_names:
                listed_names = (
                    f"there are {', '.join(metric_names)}{nearest_name_hint(name, metric_names)}"
                )
                raise InputError(f"--lower {name}: no such metric; {listed_names}")
        return gate

    def _put_out(self, result: "CheckResult", as_json: bool) -> None:
        """Print a result, and write it where it was asked for."""
        if as_json:
            echo_json(result.fields)
        else:
            for line in result.lines():
                echo(line)
        self._write_files(result, annotations_to_stderr=as_json)

    def _write_files(self, result: "CheckResult", *, annotations_to_stderr: bool) -> None:
        """Write a result for JUnit and GitHub where it was asked for."""
        if self.junit:
            place_file(result.junit(), self.junit)
        if self.github:
            for line in result.annotations():
                echo(line, err=annotations_to_stderr)
            add_to_summary(result.markdown())

    def _against_itself(self, logs: "CheckedLogs", as_json: bool) -> ExitStatus:
        """Say how often the epochs of runs differ from each other as a gate sees it."""
        runs, bad_runs = logs.comparable_runs(1.0 if self.unscored is None else self.unscored)
        self._tell_flips(
            epoch_deals(runs),
            "deals of the epochs into before and after, where nothing changed",
            as_json,
        )
        for name, reason in bad_runs.items():
            echo(f"{name}  bad: {reason}", err=as_json)
        if self._unasked_text:
            echo(f"{self.log_folder}  {self._unasked_text}", err=True)
        return ExitStatus.INCOMPLETE if bad_runs else ExitStatus.GOOD

    def _tell_flips(self, draw: Draw, draws_name: str, as_json: bool) -> None:
        counts = verdict_counts(draw, self.aa or 1, smallest=self.smallest, lower=self.lower)
        shares = ", ".join(f"{verdict} {count}" for verdict, count in counts.most_common())
        echo(f"{counts.total()} {draws_name}: {shares}", err=as_json)


def _first_option_in_use(options: Mapping[str, object]) -> str:
    """The first option with a value, or ""."""
    for name, value in options.items():
        if value:
            return name
    return ""


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


UNFINISHED_WORDS = {"started": "still running, or killed", "cancelled": "interrupted"}
"""Status of a run that is no success → what is said of it; "failed" of others."""
INTERRUPT_ERROR = "CancelledError"
"""Error that every interrupt leaves in the samples that were under way."""


@dataclass(frozen=True)
class ReadRun:
    """One run: its log, and what its samples say."""

    run: Run
    planned_samples: int
    """Samples that it was to have, epochs counted."""
    finished_samples: list[EvalSampleSummary]
    """Valid samples that did not fail."""
    table: list[TableRow]
    """Values of all valid samples; see `judged_table`."""
    error: str
    """The first error, or ""."""

    @property
    def values(self) -> list[Judged]:
        """Judged values of the samples that did not fail, unscored ones too."""
        return [(row.item, row.decision) for row in self.table if not row.failed]

    @property
    def logged_scores(self) -> list[EvalScore]:
        """Scores of the log's header."""
        return self.run.results.scores if self.run.results else []

    @property
    def scored_after_error(self) -> int:
        """Number of samples that ended in an error and were scored all the same."""
        return sum(bool(sample.error) for sample in self.finished_samples)

    @property
    def task(self) -> str:
        """Name of the task without its package."""
        return self.run.identity.task

    @property
    def model(self) -> str:
        """Name of the evaluated model."""
        return self.run.header.eval.model

    @property
    def name(self) -> str:
        """Name for people: the task, its model, and a target that is not its model."""
        return f"{self.task} of {self.models}"

    @property
    def models(self) -> str:
        """Name of the model, and of a target that is not it."""
        return self.model + target_suffix(self.model, target_of(self.run.header))

    @property
    def applied_settings(self) -> Counter[str]:
        """Settings that the evaluated model was really asked with (`reply_notes`) → samples; none
        for other suites.
        """
        counts = Counter[str]()
        for sample in self.finished_samples:
            settings_by_role = sample.metadata.get("applied")
            if not isinstance(settings_by_role, dict):
                continue
            settings = settings_by_role.get("observer", settings_by_role.get("target"))
            if settings:
                counts["; ".join(sorted(str(settings).split("; ")))] += 1
        return counts

    @property
    def reasons(self) -> dict[str, float]:
        """Why values are unscored, with the share of all, the most frequent first."""
        counts = Counter(decision.unscored for _, decision in self.values if decision.unscored)
        return {reason: count / len(self.values) for reason, count in counts.most_common()}

    @property
    def scored_count(self) -> int:
        """Number of values that are scored."""
        return sum(not decision.unscored for _, decision in self.values)

    @property
    def keys_without_score(self) -> list[str]:
        """Keys, or scorers, that are unscored in every sample."""
        all_keys = dict.fromkeys(decision.key for _, decision in self.values)
        scored_keys = {decision.key for _, decision in self.values if not decision.unscored}
        return [key for key in all_keys if key not in scored_keys]

    def faults(self, largest_unscored: float) -> list[str]:
        """Faults of the run if a share of up to `largest_unscored` of its values may be unscored;
        empty for a good run.
        """
        faults = self._sample_faults()
        if self.run.invalidated.are_all:
            return faults
        score_fault = self._score_fault(largest_unscored)
        if score_fault:
            faults.append(score_fault)
        disagreement = header_disagreement(self.run)
        if disagreement:
            faults.append(disagreement)
        for argument, share in cut_in(self.run.results).items():
            faults.append(
                f"{share:.0%} of replies ended at the token limit; -T {argument}=… raises it"
            )
        return faults

    def _sample_faults(self) -> list[str]:
        """Faults of the run's samples and its end, whatever their scores."""
        invalidated = self.run.invalidated
        status = self.run.header.status
        missing_count = (
            self.planned_samples - len(self.finished_samples) - len(invalidated.provenance)
        )
        faults = list[str]()
        if invalidated.provenance:
            faults.append(f"{invalidated}; run them again")
        if status != "success":
            faults.append(UNFINISHED_WORDS.get(status, "failed"))
        if missing_count > 0:
            fault = f"{missing_count} of {self.planned_samples} samples failed or missing"
            if self.error and not self.error.startswith(INTERRUPT_ERROR):
                fault += f", the first: {self.error}"
            faults.append(fault)
        elif self.error and not self.scored_after_error:
            faults.append(self.error)
        return faults

    def _score_fault(self, largest_unscored: float) -> str:
        """What is wrong with the number of scored values, or ""."""
        if not self.scored_count or counted(self.run.results) == 0:
            first_reasons = ", ".join(list(self.reasons)[:3])
            return f"nothing scored ({first_reasons})" if first_reasons else "nothing scored"
        unscored_share = 1 - self.scored_count / len(self.values)
        if unscored_share > largest_unscored:
            share = share_text(unscored_share, largest_unscored)
            return (
                f"unscored {share} ({self.reasons_text}), more than {share_text(largest_unscored)}"
            )
        if largest_unscored < 1 and self.keys_without_score:
            return f"no sample has a score of {', '.join(self.keys_without_score[:3])}"
        return ""

    @property
    def reasons_text(self) -> str:
        """The three most frequent reasons with their shares."""
        shares = [f"{reason} {share_text(share)}" for reason, share in self.reasons.items()]
        return ", ".join(shares[:3])

    def case(self, largest_unscored: float) -> "Case":
        """The run in the form that every output takes."""
        faults = self.faults(largest_unscored)
        text = f"bad: {'; '.join(faults)}" if faults else self._good_text
        data = {
            "log": self.run.log,
            "task": self.task,
            "model": self.model,
            "target": target_of(self.run.header),
            "status": self.run.header.status,
            "wanted": self.planned_samples,
            "done": len(self.finished_samples),
            "error": self.error,
            "invalidated": len(self.run.invalidated.provenance),
            "asked": len(self.values),
            "scored": self.scored_count,
            "reasons": self.reasons,
            "wrong": faults,
        }
        return Case(
            suite=COMPLETE_SUITE,
            group=COMPLETE_SUITE,
            name=self.name,
            kind=CaseKind.ERROR if faults else CaseKind.GOOD,
            text=text,
            line=(self.task, f"{self.models}  {text}"),
            row=(self.name, text),
            data=data,
        )

    @property
    def _good_text(self) -> str:
        unscored_share = sum(self.reasons.values())
        text = f"good: {len(self.finished_samples)} samples, unscored {share_text(unscored_share)}"
        if self.reasons:
            text += f" ({self.reasons_text})"
        if self.scored_after_error:
            sample_count = count_text(self.scored_after_error, "sample")
            text += f"; {sample_count} ended in an error, and counted as scored (score_on_error)"
        return text


MOST_LISTED_SETTINGS = 4
"""Largest number of settings that a note on other settings lists."""


@dataclass(frozen=True)
class CheckedLogs:
    """Contents of a set of logs."""

    runs: list[ReadRun]
    """Runs that count (`logs.runs`), and failed ones that none of these replaces; the oldest first.
    """
    replaced: dict[str, str]
    """Log that does not count → log of the same run that counts in its place."""
    unreadable: dict[str, str]
    """Logs that cannot be read, and why: nobody knows which run they were."""
    other_files: Sequence[str] = ()
    """JSON files in the folders that are no logs."""

    def other_file_notes(self) -> list[str]:
        """A line on the files that are no logs, or none."""
        return [f"Passed over: {no_logs_text(self.other_files)}."] if self.other_files else []

    def replaced_notes(self) -> list[str]:
        """A line for each run with several logs: which one counts, and how many do not."""
        run_by_log = {run.run.log: run for run in self.runs}
        notes = list[str]()
        for log, count in Counter(self.replaced.values()).items():
            run = run_by_log[log]
            file_name = log.rpartition("/")[2]
            notes.append(
                f"{run.task} of {run.model}: {file_name} counts; {other_runs_text(count)} left out"
            )
        return notes

    def settings_notes(self) -> list[str]:
        """A line for each task and model whose samples were not all asked with the same settings.

        Their numbers are of one measurement only where that was meant, as with several `-T effort`.
        """
        settings_counts = defaultdict[tuple[str, str], Counter[str]](Counter)
        for run in self.runs:
            settings_counts[run.task, run.model].update(run.applied_settings)
        notes = list[str]()
        for (task, model), counts in settings_counts.items():
            if len(counts) < 2:
                continue
            parts = list[str]()
            for settings, count in counts.most_common(MOST_LISTED_SETTINGS):
                parts.append(f"{count_text(count, 'sample')} with {settings.replace('; ', ' or ')}")
            if len(counts) > MOST_LISTED_SETTINGS:
                parts.append(f"and {len(counts) - MOST_LISTED_SETTINGS} further ways")
            notes.append(f"{task}  {model} was not always asked alike: {'; '.join(parts)}")
        return notes

    def comparable_runs(self, largest_unscored: float) -> tuple[list[BaselineRun], dict[str, str]]:
        """The runs that can be compared, and those that are bad in themselves with the reason."""
        comparable = list[BaselineRun]()
        bad_runs = dict(self.unreadable)
        for run in self.runs:
            faults = run.faults(largest_unscored)
            if faults:
                bad_runs[run.name] = "; ".join(faults)
            try:
                comparable.append(baseline_run(run))
            except InputError as error:
                bad_runs.setdefault(run.name, one_line(error))
        return comparable, bad_runs

    def baseline_runs(self) -> list[BaselineRun]:
        """The runs as a baseline keeps them.

        Raises:
            InputError: See `baseline_run`; or a log cannot be read.
        """
        for log, reason in self.unreadable.items():
            raise InputError(f"{log}: {reason}")
        return [baseline_run(run) for run in self.runs]


def read_logs(
    paths: Iterable[str], limits: Mapping[Identity, int | None] | None = None
) -> CheckedLogs:
    """All logs of these files and folders.

    Args:
        paths: Files and folders.
        limits: Identity of a run → number of its items that count; None, and no entry, is all.

    Raises:
        NoLogs: There is no log.
        InputError: A path does not exist.
    """
    path_names = list(paths)
    logged_runs = runs_in(path_names).limited(limits or {})
    replaced = dict[str, str]()
    unreadable = dict(logged_runs.set_aside_reasons)
    read_runs = list[ReadRun]()
    for run in logged_runs.counted:
        headers = [run.header]
        for header in run.others:
            if header.status != "success" and _is_open(run, replace(run, header=header)):
                headers.append(header)
            else:
                replaced[header.location] = run.log
        for header in headers:
            try:
                read_runs.append(_read(replace(run, header=header)))
            except UNREADABLE as error:  # InputError is one
                unreadable[header.location] = one_line(error)
            else:
                unreadable.pop(header.location, None)
    unreadable = {log: reason for log, reason in unreadable.items() if log not in replaced}
    if not read_runs and not unreadable:
        passed_over = f"; {no_logs_text(logged_runs.no_logs)}" if logged_runs.no_logs else ""
        raise NoLogs(f"no log in {', '.join(path_names)}{passed_over}")
    runs_by_time = sorted(read_runs, key=lambda read_run: str(read_run.run.header.eval.created))
    return CheckedLogs(runs_by_time, replaced, unreadable, logged_runs.no_logs)


def _is_open(run: Run, failed: Run) -> bool:
    """Whether a failed run is not replaced by the one that counts: it is later, or was to have more
    samples.
    """
    was_larger = failed.planned_samples > run.planned_samples
    return failed.log in run.later or was_larger or not failed.items() <= run.items()


def _read(run: Run) -> ReadRun:
    samples = run.summaries
    header = run.header
    finished_samples = [judged.summary for judged in run.judged_samples() if not judged.failed]
    samples_in_error = [sample for sample in samples if sample.error]
    error = ""
    if samples_in_error:
        error = cause(run.log, samples_in_error[0])
    elif header.error:
        error = header.error.message
    logged_count = len(samples) + len(run.invalidated.provenance)
    result_count = run.results.total_samples if run.results else 0
    planned_samples = max(run.planned_samples, logged_count, result_count)
    return ReadRun(
        run, planned_samples, finished_samples, judged_table(run), one_line(error) if error else ""
    )


def share_text(share: float, *other_shares: float) -> str:
    """Two decimals, or as many as tell a share from none, all, and `other_shares`."""
    differing_shares = [other for other in (0.0, 1.0, *other_shares) if other != share]
    for digits in range(2, 6):
        text = f"{share:.{digits}f}"
        other_texts = [f"{other:.{digits}f}" for other in differing_shares]
        if text not in other_texts:
            break
    return text


LOCATION_ARGUMENTS = ("target_log", "observer_log", "limit")
"""Task arguments that say where replies lie, not what is asked."""
KEPT_DIGITS = 6
"""Number of digits of a value that a baseline keeps."""
KEPT_PROMPTS = 8
"""Number of prompts of a sample whose digests a baseline keeps."""
KEPT_ANSWER_CHARACTERS = 60
"""Number of characters of an answer that a baseline keeps."""
LARGEST_SCORE = 1e100
"""A score beyond it has no variance in floating point, and is not compared."""


def baseline_run(read_run: ReadRun) -> BaselineRun:
    """A run as a baseline keeps it.

    Raises:
        InputError: No score is a number that can be compared, or nothing in the run is a value.
    """
    header = read_run.run.header
    metadata = header.eval.metadata or {}
    samples = read_run.run.summaries
    is_of_suite = "selfprobe" in metadata
    left_out = _left_out(read_run)
    rows = [row for row in _score_rows(read_run) if row.decision.key not in left_out]
    judged_values = [(row.item, row.decision) for row in rows if not row.failed]
    if not judged_values and left_out:
        remedy = "only numbers can be compared: give its scorer numbers, or score the log again"
        raise InputError(f"{read_run.run.log}: {'; '.join(left_out.values())}; {remedy}")
    if not judged_values:
        raise InputError(f"{read_run.run.log}: no sample of {read_run.task} has a score")

    items: dict[str, dict[str, list[float | str]]] = {str(sample.id): {} for sample in samples}
    answers = defaultdict[str, dict[str, list[str]]](dict)
    reasoned_keys = defaultdict[str, list[str]](list)
    for row in rows:
        decision = row.decision
        value = decision.unscored or _rounded(decision.value)
        if value is None:
            continue
        items[row.item].setdefault(decision.key, []).append(value)
        if not row.failed:
            answer_text = " ".join((decision.said or "").split())
            kept_answer = answer_text[:KEPT_ANSWER_CHARACTERS]
            answers[row.item].setdefault(decision.key, []).append(kept_answer)
        if decision.reasoned:
            reasoned_keys[row.item].append(decision.key)

    clusters = dict[str, str]()
    for sample in samples:
        if sample.metadata.get("cluster"):
            clusters[str(sample.id)] = str(sample.metadata["cluster"])
    task_args = _changed_defaults(read_run) if is_of_suite else header.eval.task_args
    applied = _requested_settings(read_run)
    if is_of_suite:
        applied = dict(read_run.applied_settings)
    baseline = BaselineRun(
        task=read_run.task,
        model=header.eval.model,
        target=target_of(header),
        version=str(header.eval.task_version).partition("+")[0],
        selfprobe=str(metadata.get("selfprobe", "")),
        args=_plain(task_args),
        model_args=_plain(concealed(header.eval.model_args)),
        data="",
        plan="",
        prompts=_prompts(read_run.run, samples),
        applied=applied,
        metric=_metric_name(read_run, judged_values),
        metrics=_logged_metrics(read_run),
        items=dict(sorted(items.items())),
        blind=_blind_scores(read_run, judged_values, clusters),
        reasoned=dict(reasoned_keys),
        clusters=clusters,
        left_out=left_out,
        roles=_models_by_role(read_run),
        said=dict(answers),
    )
    if is_of_suite:
        return replace(baseline, data=str(metadata.get("dataset_sha256", "")))

    solvers = [(step.solver, step.params) for step in header.plan.steps]
    question_digests = dict[str, str]()
    answer_digests = dict[str, str]()
    for sample in samples:
        item = str(sample.id)
        question_digests[item] = _digest(_question(sample), 8)
        right_answer = _right_answer(sample)
        if right_answer:
            answer_digests[item] = _digest(right_answer, 8)
    scorer_digests = dict[str, str]()
    for score in read_run.logged_scores:
        scorer_digests[score.scorer] = _digest(_without_replies(score.params))
    return replace(
        baseline,
        plan=_digest(solvers),
        inputs=question_digests,
        answers=answer_digests,
        scorers=scorer_digests,
        reducers=_reducers(read_run),
    )


def _changed_defaults(read_run: ReadRun) -> dict[str, Any]:
    """Arguments of a task of the suite that are other than its defaults, without those that only
    say where logs lie.
    """
    defaults = defaults_of(read_run.task) if read_run.task in tasks_by_name() else {}
    changed = {}
    for name, value in args_of(read_run.run.header).items():
        if value is not None and name not in LOCATION_ARGUMENTS and value != defaults.get(name):
            changed[name] = value
    return changed


def _metric_name(read_run: ReadRun, judged_values: Sequence[Judged]) -> str:
    """Name of the score of a task of the suite; "" for others."""
    if read_run.task in METHODS:
        return "accuracy"
    if read_run.task not in measures():
        return ""
    if all(decision.value is None for _, decision in judged_values):
        return UNNAMED_SCORE  # the log has other numbers alone, such as the ceiling
    for score in read_run.logged_scores:
        for name in score.metrics:
            return name  # the mean of its decisions
    return UNNAMED_SCORE


def _logged_metrics(read_run: ReadRun) -> dict[str, float]:
    """Finite metrics of a log's header, rounded: "scorer.metric" → value."""
    metrics = {}
    for score in read_run.logged_scores:
        for name, metric in score.metrics.items():
            metrics[f"{score.name}.{name}"] = float(metric.value)
    return {
        name: round(value, KEPT_DIGITS) for name, value in metrics.items() if math.isfinite(value)
    }


def _models_by_role(read_run: ReadRun) -> dict[str, str]:
    """Role → its model, for all roles but the target; the grader's always."""
    models_by_role = {"grader": UNBOUND}
    for role, models in roles_of(read_run.run.header).items():
        if role != "target":
            models_by_role[role] = ", ".join(config.model for config in models)
    return models_by_role


def _score_rows(read_run: ReadRun) -> list[TableRow]:
    """Rows that make the score: those of the suite about the model itself, a method's verdict."""
    table = read_run.table
    are_foreign = all(isinstance(row.decision, ForeignDecision) for row in table)
    if are_foreign:
        return table
    self_rows = [row for row in table if not row.decision.key.startswith(OTHER_PREFIX)]
    if read_run.task == "ethical_dilemma":
        judged_values = [(row.item, row.decision) for row in self_rows if not row.failed]
        dilemma_by_item = dilemmas_of(judged_values)
        return [
            TableRow(item, 1, _dilemma_score(dilemma)) for item, dilemma in dilemma_by_item.items()
        ]
    if read_run.task in METHODS:
        verdict_rows = [row for row in self_rows if row.decision.key == read_run.task]
        return verdict_rows or self_rows
    return self_rows


def _dilemma_score(dilemma: Dilemma) -> ForeignDecision:
    value = None if dilemma.unscored else dilemma.cot_pred
    return ForeignDecision(key="cot_pred", value=value, unscored=dilemma.unscored)


def _reducers(read_run: ReadRun) -> list[str]:
    """Names of the reducers of another suite's epochs; none where it is the mean.

    One that gives other values than the log has of it, such as `at_least(2, value=.5)`, gets a name
    that nobody knows.
    """
    reducers = reducers_of(read_run.run.header)
    if reducers == [MEAN]:
        return []
    is_whole = not read_run.run.invalidated.provenance
    reductions = logged_reductions(read_run.run.log) if is_whole else []
    names = list[str]()
    for reducer in reducers:
        reducer_name = reducer
        if known_reducer(reducer) is not None:
            logged_values = [logged for logged in reductions if logged.reducer == reducer]
            if not _agrees(read_run, reducer, logged_values):
                reducer_name = f"{reducer} with arguments of its own"
        names.append(reducer_name)
    return names


def _agrees(
    read_run: ReadRun, reducer: str, scorer_reductions: Sequence[EvalSampleReductions]
) -> bool:
    """True if a reducer gives the values that a log has of it, as far as these are numbers."""
    left_out = _left_out(read_run)
    values_of_cell = defaultdict[tuple[str, str], list[float]](list)
    for row in read_run.table:
        decision = row.decision
        if decision.unscored not in (FAILED, NO_SCORE):
            value = math.nan if decision.value is None else decision.value
            values_of_cell[decision.key, row.item].append(value)

    for reduction in scorer_reductions:
        for sample in reduction.samples:
            for key, logged_value in values_of(sample).items():
                score_name = ScoreColumn(reduction.scorer, key).name
                logged_number = number_of(logged_value)
                epoch_values = values_of_cell.get((score_name, str(sample.sample_id)))
                if score_name in left_out or logged_number is None or epoch_values is None:
                    continue
                value = reduced(epoch_values, reducer)
                if not math.isclose(value, logged_number, abs_tol=1e-9):
                    return False
    return True


def _left_out(read_run: ReadRun) -> dict[str, str]:
    """Keys of which a value cannot be compared, and why: the first such value."""
    reasons = dict[str, str]()
    for item, decision in read_run.values:
        score = f"{decision.key} of {read_run.task} is"
        place = f"at sample {item!r}"
        if decision.value is None and decision.unscored is None:
            reasons.setdefault(decision.key, f"{score} no number {place}, and no C, I, P or N")
        elif decision.value is not None and abs(decision.value) > LARGEST_SCORE:
            reasons.setdefault(
                decision.key, f"{score} {decision.value:g} {place}, too large to compute with"
            )
    return reasons


def _rounded(value: float | None) -> float | None:
    """Six decimals, of what is near 0 six digits."""
    if value is None:
        return None
    return float(f"{value:.{KEPT_DIGITS}g}") if abs(value) < 1 else round(value, KEPT_DIGITS)


def _blind_scores(
    read_run: ReadRun, judged_values: Sequence[Judged], clusters: dict[str, str]
) -> dict[str, dict[str, float]]:
    """Best guesses without a model, for a matrix task whose score is a mean; without them there is
    no skill.
    """
    measure = measures().get(read_run.task)
    scored_values = list[Judged]()
    for item, decision in judged_values:
        if decision.value is not None and not isinstance(decision, ForeignDecision):
            scored_values.append((item, decision))
    if measure is None or measure.item_scores is not None or len(scored_values) < 2:
        return {}

    cluster_values = [(clusters.get(item, item), decision) for item, decision in scored_values]
    candidates = without_a_model(cluster_values, measure.right)
    if not candidates:
        return {}
    best_guesses = best_of(candidates).tolist()
    scores_of_cell = defaultdict[tuple[str, str], list[float]](list)
    for (item, decision), guess_score in zip(scored_values, best_guesses, strict=False):
        score = 0.0 if math.isnan(guess_score) else guess_score
        scores_of_cell[item, decision.key].append(score)

    blind_scores = defaultdict[str, dict[str, float]](dict)
    for (item, key), scores in scores_of_cell.items():
        if any(scores):
            blind_scores[item][key] = round(sum(scores) / len(scores), KEPT_DIGITS)
    return dict(blind_scores)


def _prompts(run: Run, samples: Sequence[EvalSampleSummary]) -> list[str]:
    """Digests of the prompts of the first sample, in no order of calls, without the models' names
    where they are told.

    Options are left out, since tasks shuffle them; `BaselineRun.answers` has them. A prompt counts
    where no reply stands before or in it, nobody was asked it as a grader, and it is more than the
    sample's own input: so the same for every model. None may be left.

    Raises:
        InputError: The log cannot be read.
    """
    header = run.header
    first_summary = min(
        samples, key=lambda sample: (bool(sample.error), str(sample.id), sample.epoch)
    )
    sample = whole_sample(run.log, first_summary.id, first_summary.epoch)
    calls = list[ModelEvent]()
    replies = set[str]()
    for event in sample.events:
        if not isinstance(event, ModelEvent) or event.role == "grader":
            continue
        calls.append(event)
        if event.output.choices:
            replies.add(split_thought(event.output.completion).answer.strip())
    replies.discard("")

    sample_input = _input_text(sample.input)
    options = sorted({*(sample.choices or [])} - {""}, key=len, reverse=True)
    model_names = set[str]()
    if about_of(header) == "named":
        for model in (header.eval.model, target_of(header)):
            model_names |= {model, model.partition("/")[2]}
    names_by_length = sorted(model_names - {""}, key=len, reverse=True)

    prompt_digests = set[str]()
    for call in calls:
        prompt = _input_text(call.input)
        follows_reply = any(message.role in ("assistant", "tool") for message in call.input)
        holds_reply = any(reply in prompt for reply in replies)
        if prompt == sample_input or follows_reply or holds_reply:
            continue
        for name in names_by_length:
            prompt = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "MODEL", prompt)
        if options:
            prompt = re.sub("|".join(map(re.escape, options)), "OPTION", prompt)
        prompt_digests.add(_digest(prompt))
    return sorted(prompt_digests)[:KEPT_PROMPTS]


def _input_text(messages: str | Sequence[ChatMessage]) -> str:
    """Texts of an input, a message a line."""
    if isinstance(messages, str):
        return messages
    return "\n".join(message.text for message in messages)


def _question(sample: EvalSampleSummary) -> str:
    """Texts that a sample asks, without the messages' other fields: messages have ids of their own
    in every run.
    """
    if isinstance(sample.input, str):
        return sample.input
    return "\n".join(f"{message.role}: {message.text}" for message in sample.input)


def _right_answer(sample: EvalSampleSummary) -> str:
    """A sample's options and its target: letters as their options' texts, and in no order, since
    tasks shuffle them.
    """
    options = sample.choices or []
    targets = [sample.target] if isinstance(sample.target, str) else sample.target
    if not any(targets):
        return ""
    option_by_letter = dict(zip(ascii_uppercase, options, strict=False))
    target_texts = [option_by_letter.get(target, target) for target in targets]
    return "\n".join([*sorted(options), "→", *sorted(target_texts)])


SETTING_NAMES = (
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "reasoning_effort",
    "reasoning_tokens",
    "effort",
)
"""Settings of a call that say how a model was asked."""


def _requested_settings(read_run: ReadRun) -> dict[str, int]:
    """Settings that another suite's model was to be asked with."""
    header = read_run.run.header
    settings = header.plan.config.model_dump(exclude_none=True)
    settings |= header.eval.model_generate_config.model_dump(exclude_none=True)
    setting_texts = [f"{name} {settings[name]}" for name in SETTING_NAMES if name in settings]
    settings_text = ", ".join(setting_texts) or "the model's own settings"
    return {settings_text: len(read_run.finished_samples)}


def _without_replies(scorer_arguments: dict[str, Any]) -> dict[str, Any]:
    """A scorer's arguments without `model_args`: a mock's replies have new ids in every run."""
    arguments = dict(scorer_arguments)
    for name, value in arguments.items():
        if isinstance(value, dict):
            arguments[name] = {key: part for key, part in value.items() if key != "model_args"}
    return arguments


def _digest(content: object, length: int = 12) -> str:
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _plain(value: Any) -> dict[str, Any]:
    """A value in the form that JSON has."""
    return dict(json.loads(json.dumps(value, sort_keys=True, default=str)))


FIELDS_WITH_LINES = (
    "metrics",
    "items",
    "blind",
    "reasoned",
    "inputs",
    "clusters",
    "answers",
    "said",
)
"""Fields with one line per entry in the file of a baseline."""


def save_baseline(runs: Sequence[BaselineRun], path: str) -> int:
    """Write a baseline: JSON for git, an item a line, the same bytes for the same runs; its size in
    bytes.

    Raises:
        InputError: It cannot be written there, or the path is no .json file.
    """
    _refuse_other_than_json(path)
    ordered_runs = sorted(runs, key=lambda run: (run.name, _json([run.args, run.model_args])))
    body = ",\n".join(map(_run_text, ordered_runs))
    content = (
        f'{{\n"baseline": 1,\n"sha256": "{_checksum(body)}",\n"runs": [\n{body}\n]}}\n'.encode()
    )
    place_file(content, path)
    return len(content)


def _refuse_other_than_json(path: str, option: str = "") -> None:
    if not path.endswith(".json"):
        raise InputError(f"a baseline is a .json file, got {option}{path}")


def _is_baseline(path: str) -> bool:
    """Whether a path is a file that --save wrote, of whatever form."""
    if not path.endswith(".json") or not Path(path).is_file():
        return False
    try:
        content = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError, OSError):
        return False
    return isinstance(content, dict) and "baseline" in content


def _unused_baseline_name() -> str:
    """Name of a file to save a baseline in that is not there: a remedy replaces no file."""
    number = 1
    name = "baseline.json"
    while Path(name).exists():
        number += 1
        name = f"baseline-{number}.json"
    return name


def read_baseline(path: str) -> list[BaselineRun]:
    """The runs of a baseline.

    Raises:
        InputError: It cannot be read, is no baseline, is of another form, or was changed by hand.
    """
    remedy = f"; save a new one: selfprobe check LOGS --save {_unused_baseline_name()}"
    try:
        text = decoded(read_bytes(path), path)
        content = json.loads(text, parse_constant=_refuse_constant)
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise InputError(
                f"there is no baseline {path}; save one: selfprobe check LOGS --save {path}"
            ) from None
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is no baseline, it is not JSON ({one_line(error)}){remedy}"
        ) from None
    if (
        not isinstance(content, dict)
        or "baseline" not in content
        or not isinstance(content.get("runs"), list)
    ):
        raise InputError(f"{path} is no baseline of selfprobe check{remedy}")
    if content["baseline"] != 1:
        raise InputError(
            f"{path} is a baseline of form {content['baseline']}, this selfprobe reads form "
            f"1{remedy}"
        )
    try:
        runs = TypeAdapter(list[BaselineRun]).validate_json(
            json.dumps(content["runs"]), strict=True
        )
        checksum = _checksum(",\n".join(map(_run_text, runs)))
    except ValidationError as error:
        first_fault = error.errors()[0]
        place = " ".join(map(str, first_fault["loc"]))
        raise InputError(
            f"{path} was changed by hand: run {place}: {first_fault['msg']}{remedy}"
        ) from None
    except ValueError:  # 1e999 is JSON, and infinite
        raise InputError(
            f"{path} was changed by hand, it has a number that is infinite{remedy}"
        ) from None
    if not runs:
        raise InputError(f"{path} holds no run{remedy}")
    if checksum != content.get("sha256"):
        raise InputError(f"{path} was changed by hand, its sha256 is another{remedy}")
    return runs


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _checksum(body: str) -> str:
    return hashlib.sha256(f"{body}\n".encode()).hexdigest()


def _run_text(run: BaselineRun) -> str:
    fields = list[str]()
    for name, value in asdict(run).items():
        text = _json(value)
        if value and name in FIELDS_WITH_LINES:
            entries = [f"  {_json(key)}: {_json(value[key])}" for key in sorted(value)]
            text = "{\n" + ",\n".join(entries) + "\n }"
        fields.append(f' "{name}": {text}')
    return "{\n" + ",\n".join(fields) + "\n}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)


COMPLETE_SUITE = "complete"
"""Suite of the cases that need no comparison."""
JUNIT_COUNTS = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
"""Number that JUnit has for a suite → the element that it counts."""
GATE_HEADINGS = ("task", "metric", "change", "95 % interval", "n", "verdict")
"""Column headings of a comparison."""
MOST_LISTED_CELLS = 10
"""Largest number of turned items that are listed."""


class CaseKind(StrEnum):
    """What a case is for a program; the value is JUnit's element."""

    GOOD = ""
    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class VerdictWords:
    """What a page says of a verdict."""

    of_number: str
    """Words of a metric that is a number; {smallest} is the smallest change that matters."""
    of_asking: str = ""
    """Words of how the model was asked."""


VERDICT_WORDS = {
    ChangeVerdict.WORSE: VerdictWords("worse", of_asking="worse"),
    ChangeVerdict.CANNOT_TELL: VerdictWords(
        "cannot tell a change of {smallest}", of_asking="not the same"
    ),
    ChangeVerdict.NO_WORSE: VerdictWords("no worse"),
    ChangeVerdict.UNCHANGED: VerdictWords("unchanged"),
    ChangeVerdict.BETTER: VerdictWords("better"),
}


@dataclass(frozen=True)
class Case:
    """One thing that was judged, a run or a metric, as every output has it."""

    suite: str
    group: str
    """The run's task, or COMPLETE_SUITE."""
    name: str
    """The metric, or the run."""
    kind: CaseKind
    text: str
    line: tuple[str, ...]
    """Columns of the case in a terminal."""
    row: tuple[str, ...]
    """Row of the case in the step summary."""
    data: dict[str, Any]
    """Data for programs."""


@dataclass(frozen=True)
class CheckResult:
    """Result of a check."""

    status: ExitStatus
    cases: list[Case]
    headings: tuple[str, ...]
    """Column headings of the cases' rows."""
    notes: list[str]
    """Notes for the reader."""
    summary: str
    fields: dict[str, Any]
    """Fields for programs."""

    def lines(self) -> list[str]:
        """A line a case, then what to know."""
        full_lines = [case.line for case in self.cases if len(case.line) > 1]
        widths = [max(map(len, column)) for column in zip(*full_lines, strict=True)]
        if not widths:
            widths = [0]
        case_lines = list[str]()
        for case in self.cases:
            padded_cells = [
                f"{cell:{width}}" for cell, width in zip(case.line, widths, strict=False)
            ]
            case_lines.append("  ".join(padded_cells).rstrip())
        return [clean(line) for line in [*case_lines, *self.notes, self.summary]]

    def markdown(self) -> str:
        """The step summary of a GitHub workflow."""
        heading_line = f"### selfprobe check: {markdown_cell(self.summary)}"
        rows = [self.headings, ["---"] * len(self.headings)]
        for case in self.cases:
            rows.append([markdown_cell(cell) for cell in case.row])
        table_lines = ["| " + " | ".join(row) + " |" for row in rows]
        note_lines = [f"- {markdown_cell(note)}" for note in self.notes]
        return "\n".join([heading_line, "", *table_lines, "", *note_lines, ""])

    def annotations(self) -> list[str]:
        """GitHub's workflow commands: an error for what is worse, refused or bad, a warning for
        what cannot be told.
        """
        commands = list[str]()
        for case in self.cases:
            if case.kind is CaseKind.GOOD:
                continue
            title = case.name if case.group == COMPLETE_SUITE else f"{case.suite} {case.name}"
            escaped_title = _workflow_text(title).replace(":", "%3A").replace(",", "%2C")
            level = "warning" if case.kind is CaseKind.SKIPPED else "error"
            commands.append(f"::{level} title={escaped_title}::{_workflow_text(case.text)}")
        return commands

    def junit(self) -> bytes:
        """JUnit's XML."""
        root_element = ElementTree.Element("testsuites", name="selfprobe check")
        cases_by_suite = defaultdict[str, list[Case]](list)
        for case in self.cases:
            cases_by_suite[case.suite].append(case)
        for suite_name, suite_cases in cases_by_suite.items():
            suite_element = ElementTree.SubElement(
                root_element, "testsuite", name=clean(suite_name)
            )
            for case in suite_cases:
                case_element = ElementTree.SubElement(
                    suite_element, "testcase", classname=clean(case.group), name=clean(case.name)
                )
                text = clean(case.text)
                if case.kind is CaseKind.GOOD:
                    ElementTree.SubElement(case_element, "system-out").text = text
                else:
                    ElementTree.SubElement(case_element, case.kind.value, message=text)
            for count_name, tag in JUNIT_COUNTS.items():
                element_count = len(list(suite_element.iter(tag)))
                suite_element.set(count_name, str(element_count))
        return bytes(ElementTree.tostring(root_element, encoding="utf-8", xml_declaration=True))


def _workflow_text(text: str) -> str:
    """A text for a workflow command of GitHub."""
    return clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def markdown_cell(cell: str) -> str:
    """A text for a cell of a Markdown table, in which nothing is a sign of Markdown or HTML."""
    text = re.sub(r"([\\`*_|\[\]])", r"\\\1", " ".join(clean(cell).split()))
    return text.replace("<", "&lt;").replace(">", "&gt;")


def add_to_summary(text: str) -> None:
    """Add Markdown to the step summary, where there is one.

    Raises:
        InputError: Its file cannot be written.
    """
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"cannot write the step summary {path}: {error.strerror}") from None


def _bad_case(name: str, text: str, column_count: int) -> Case:
    """Case of something that is bad without any comparison."""
    empty_cells = [""] * (column_count - 2)
    return Case(
        suite=COMPLETE_SUITE,
        group=COMPLETE_SUITE,
        name=name,
        kind=CaseKind.ERROR,
        text=text,
        line=(f"{name}  {text}",),
        row=(name, *empty_cells, text),
        data={},
    )


def _unasked_case(log_folder: str, text: str) -> Case:
    """Warning that the runs are those of an earlier command."""
    bad_case = _bad_case(log_folder, text, 2)
    return replace(bad_case, kind=CaseKind.SKIPPED, data={"unasked": text})


def other_runs_text(count: int) -> str:
    """Text on runs in whose place others count, with its verb: "2 other runs of the same are"."""
    verb = "is" if count == 1 else "are"
    return f"{count_text(count, 'other run')} of the same {verb}"


def complete(logs: CheckedLogs, largest_unscored: float) -> CheckResult:
    """Cases that say whether each run is complete and scored, if a share of up to
    `largest_unscored` of its values may be unscored.
    """
    run_cases = [run.case(largest_unscored) for run in logs.runs]
    good_count = sum(case.kind is CaseKind.GOOD for case in run_cases)
    summary = f"{good_count} of {count_text(len(run_cases), 'run')} good"
    if logs.unreadable:
        summary += f", {count_text(len(logs.unreadable), 'log')} cannot be read"
    if logs.replaced:
        summary += f"; {other_runs_text(len(logs.replaced))} not counted"
    unreadable_cases = [
        _bad_case(log, f"bad: {reason}", 2) for log, reason in logs.unreadable.items()
    ]
    is_good = good_count == len(run_cases) and not unreadable_cases
    fields = {
        "runs": [case.data for case in run_cases],
        "broken": logs.unreadable,
        "earlier": logs.replaced,
        "whole": is_good,
    }
    return CheckResult(
        status=ExitStatus.GOOD if is_good else ExitStatus.INCOMPLETE,
        cases=run_cases + unreadable_cases,
        headings=("run", "found"),
        notes=[*logs.settings_notes(), *logs.replaced_notes(), *logs.other_file_notes()],
        summary=summary,
        fields=fields,
    )


@dataclass(frozen=True)
class Gate:
    """A baseline's runs, the runs of now, and every change between them."""

    before: Sequence[BaselineRun]
    after: Sequence[BaselineRun]
    smallest: float = 0.05
    """The smallest change that matters."""
    lower: Sequence[str] = ()
    """Metrics whose lower values are better."""
    strict: bool = False
    """Whether "cannot tell" counts as a failure."""
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """Current runs that are bad without any comparison → why."""
    log_notes: Sequence[str] = ()
    """Notes about the logs, printed before those about pairing."""

    @cached_property
    def paired(self) -> RunPairs:
        """Runs before and now."""
        run_pairs = pair_runs(self.before, self.after)
        incomparable = {*self.incomplete} - {run.name for run in self.after}  # one reason is enough
        refused = {
            name: reason for name, reason in run_pairs.refused.items() if name not in incomparable
        }
        return replace(run_pairs, refused=refused, notes=[*self.log_notes, *run_pairs.notes])

    @cached_property
    def rows(self) -> list[MetricChange]:
        """Every change."""
        return changes_of(self.paired.pairs, smallest=self.smallest, lower=self.lower)

    @property
    def status(self) -> ExitStatus:
        """The exit status."""
        verdicts = {row.verdict for row in self.rows}
        if self.paired.refused or self.incomplete or not self.rows:
            return ExitStatus.INCOMPLETE
        if ChangeVerdict.WORSE in verdicts:
            return ExitStatus.WORSE
        if self.strict and ChangeVerdict.CANNOT_TELL in verdicts:
            return ExitStatus.CANNOT_TELL
        return ExitStatus.GOOD

    def result(self) -> CheckResult:
        """The result in the form that every output takes."""
        has_several_models = len({row.model for row in self.rows}) > 1
        row_cases = [self.case(row, names_model=has_several_models) for row in self.rows]
        verdict_counts = Counter(row.verdict for row in self.rows)
        count_texts = [f"{count} {verdict}" for verdict, count in verdict_counts.items()]

        bad_runs = {"refused": self.paired.refused, "incomplete": self.incomplete}
        bad_cases = list[Case]()
        for word, reasons in bad_runs.items():
            if reasons:
                count_texts.append(f"{len(reasons)} {word}")
            for run_name, reason in reasons.items():
                bad_cases.append(_bad_case(run_name, f"{word}: {reason}", len(GATE_HEADINGS)))

        cells = turned_cells(self.paired.pairs, self.lower)
        notes = [*_turned_notes(cells), *self.paired.notes]
        if ChangeVerdict.WORSE in verdict_counts:
            notes.append(FALSE_ALARM_NOTE)
        fields = {
            "status": self.status,
            "rows": [case.data for case in row_cases],
            **bad_runs,
            "notes": self.paired.notes,
            "turned": cells,
        }
        return CheckResult(
            status=self.status,
            cases=row_cases + bad_cases,
            headings=GATE_HEADINGS,
            notes=notes,
            summary=", ".join(count_texts) or "nothing to compare",
            fields=fields,
        )

    def case(self, row: MetricChange, *, names_model: bool) -> Case:
        """A metric: worse is a failure, cannot tell skipped unless strict."""
        kind_by_verdict = {
            ChangeVerdict.WORSE: CaseKind.FAILURE,
            ChangeVerdict.CANNOT_TELL: CaseKind.FAILURE if self.strict else CaseKind.SKIPPED,
        }
        change_words = change_text(row)
        size_words = f"n {row.change.estimate.n}" if row.change else ""
        verdict_words = verdict_text(row, self.smallest)
        model_column = [row.model] if names_model else []
        values_words, bracket, interval_words = change_words.partition(" [")
        field_names = (
            "task",
            "model",
            "metric",
            "verdict",
            "why",
            "change",
            "p_holm",
            "needed",
            "power",
        )
        return Case(
            suite=f"{row.task} of {row.model}",
            group=row.task,
            name=row.metric,
            kind=kind_by_verdict.get(row.verdict, CaseKind.GOOD),
            text=f"{change_words} {size_words} {verdict_words}".strip(),
            line=(row.task, *model_column, row.metric, change_words, size_words, verdict_words),
            row=(
                row.task,
                row.metric,
                values_words,
                f"{bracket.strip()}{interval_words}",
                size_words.removeprefix("n "),
                verdict_words,
            ),
            data={name: getattr(row, name) for name in field_names},
        )


def _turned_notes(cells: Sequence[TurnedCell]) -> list[str]:
    """A line for each of the first cells that turned, and how many there are in all."""
    notes = [str(cell) for cell in cells[:MOST_LISTED_CELLS]]
    if len(cells) > MOST_LISTED_CELLS:
        right_count = sum(cell.right for cell in cells)
        totals = f"{len(cells) - right_count} right → wrong, {right_count} wrong → right in all"
        notes.append(f"and {len(cells) - MOST_LISTED_CELLS} more: {totals}")
    return notes


def change_text(row: MetricChange) -> str:
    """Text of the value before, after and the change: `.61 → .48  −.13 [−.19, −.07]`, with two to
    four decimals, so that it adds up.
    """
    if row.change is None:
        return ""
    estimate = row.change.estimate
    digits = _digits_that_add_up(row.change.before, row.change.after, estimate.value)
    old_text = _short(row.change.before, digits)
    new_text = _short(row.change.after, digits)
    text = f"{old_text} → {new_text}  {_signed(estimate.value, digits)}"
    if not math.isnan(estimate.low):
        text += f" [{_signed(estimate.low, digits)}, {_signed(estimate.high, digits)}]"
    return text


def _digits_that_add_up(old_value: float, new_value: float, change: float) -> int:
    """Decimals: the fewest with which the rounded change is that of the rounded numbers; .474 →
    .336 is −.138.

    Two where four do not suffice either: more would claim a precision that no run has.
    """
    if not all(map(math.isfinite, (old_value, new_value, change))):
        return 2
    for digits in range(2, 5):
        rounded_old = float(_short(old_value, digits))
        rounded_new = float(_short(new_value, digits))
        rounded_change = float(_short(change, digits))
        if abs(rounded_new - rounded_old - rounded_change) < 10**-digits / 2:
            return digits
    return 2


def verdict_text(row: MetricChange, smallest: float) -> str:
    """The verdict, why, and what it would take to tell."""
    words = VERDICT_WORDS[row.verdict]
    if row.change is None:
        return f"{words.of_asking} ({row.why})"
    verdict = words.of_number.format(smallest=_short(smallest))
    detail = _verdict_detail(row, row.change, smallest)
    return f"{verdict} ({detail})" if detail else verdict


def _verdict_detail(row: MetricChange, change: Change, smallest: float) -> str:
    """Why a metric has its verdict, or what it would take to tell; or ""."""
    is_unscored_share = row.metric == UNSCORED_METRIC
    if row.verdict is ChangeVerdict.CANNOT_TELL:
        if row.why and not is_unscored_share:
            return row.why
        estimate = change.estimate
        excluding_items = change.excluding_items(smallest)
        if excluding_items is not None and excluding_items > estimate.n:
            unit = plural(estimate.unit)
            return f"needs {excluding_items:,} {unit} that change as little"
        if row.needed is not None and row.needed > estimate.n:
            needed = f"{row.needed:,}" if row.needed < 10**9 else "more than a billion"
            return f"needs {needed} {plural(estimate.unit)}"
        return estimate.reason
    if is_unscored_share and row.verdict is not ChangeVerdict.WORSE:
        return ""
    return row.why


def _short(value: float, digits: int = 2) -> str:
    """`.61`, `1.00`, `12.3`: two decimals below 10, without a zero before the point."""
    if math.isnan(value):
        return "?"
    text = f"{value:.{digits}f}" if abs(value) < 10 else f"{value:.{digits + 2}g}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def _signed(value: float, digits: int = 2) -> str:
    """`+.03`, `−.13`, `.00`."""
    text = _short(abs(value), digits)
    if text == "?" or not text.strip(".0"):
        return text
    sign = "−" if value < 0 else "+"
    return f"{sign}{text}"
