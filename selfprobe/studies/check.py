"""Can a script rely on these logs, and did a model get worse? The exit status answers, for any
Inspect task.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from selfprobe.data.prices import Cost
from selfprobe.errors import IncomparableError, InputError
from selfprobe.errors.arguments import INSPECT_NAME_BY_TASK, nearest_name_hint, unknown_names_fault
from selfprobe.logs import logs_in, readable_logs
from selfprobe.solvers.observe import parse_arms, parse_example_count
from selfprobe.studies.check_baseline_file import (
    is_baseline,
    is_log_place,
    read_baseline,
    refuse_other_than_json,
    save_baseline,
    unused_baseline_name,
)
from selfprobe.studies.check_cases import (
    Case,
    CheckResult,
    ExitStatus,
    bad_case,
    unasked_case,
)
from selfprobe.studies.check_cells import scores_of
from selfprobe.studies.check_draws import Draw, epoch_deals, item_draws, verdict_counts
from selfprobe.studies.check_gate import GATE_HEADINGS, Gate
from selfprobe.studies.check_logs import CheckedLogs, complete, read_logs
from selfprobe.studies.check_outputs import (
    refuse_unwritable_outputs,
    write_refusal,
    write_result,
)
from selfprobe.studies.check_pairs import BaselineRun
from selfprobe.studies.check_tasks import RehearsedTask, expected_run, run_faults, task_faults
from selfprobe.study import Plan, Study, Wave
from selfprobe.study._registry import defaults_of, measures, short_name
from selfprobe.study._registry import tasks as tasks_by_name
from selfprobe.study.described import DescribedRun, NamedModel, rehearsed_calls
from selfprobe.study.options import MODELS_HELP, echo_json, echo_lines
from selfprobe.text.counts import count_text
from selfprobe.text.safe import echo

LARGEST_UNSCORED_SHARE = 0.1
"""Share of unscored values in a run that is good."""
UNSCORED_HELP = (
    f"Largest share of unscored values in a good run. Default: {LARGEST_UNSCORED_SHARE}; with a "
    "baseline 1."
)
OTHER_LOG_ARGUMENTS = ("target_log", "observer_log")
"""Task arguments that concern another model, or an earlier run."""


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
        self._refuse_unclear_source()
        self._refuse_misplaced_files()
        self._refuse_options_without_effect()
        return self

    def _refuse_unclear_source(self) -> None:
        if self.logs and self.tasks:
            raise InputError("give LOGS, or --run TASKS --model MODEL, not both")
        if not self.logs and not self.tasks:
            raise InputError("give LOGS, or --run TASKS --model MODEL")
        if self.tasks and not self.models:
            raise InputError("--run needs a model: --model MODEL")

    def _refuse_misplaced_files(self) -> None:
        """Refuse a baseline where logs belong, and the reverse."""
        if self.save is not None:
            refuse_other_than_json(self.save, "--save ")
            if Path(self.save).is_file() and not is_baseline(self.save):
                raise InputError(
                    f"--save {self.save} would replace a file that is no baseline; give another "
                    f"name: --save {unused_baseline_name()}"
                )
        for path in self.logs:
            if is_baseline(path):
                raise InputError(
                    f"{path} is a baseline, and LOGS are logs: selfprobe check LOGS "
                    f"--baseline {path}"
                )
        if self.against and is_baseline(self.against):
            raise InputError(
                f"{self.against} is a baseline, and --against takes logs: --baseline {self.against}"
            )
        if self.baseline and is_log_place(self.baseline):
            kind = "a folder" if Path(self.baseline).is_dir() else "a log"
            raise InputError(
                f"{self.baseline} is {kind}, and --baseline takes a .json file of --save: "
                f"--against {self.baseline}"
            )
        if self.baseline and self.against:
            raise InputError("--baseline and --against are both what was before; give one of them")
        outputs = {"--junit": self.junit, "--save": self.save}
        refuse_unwritable_outputs(outputs, adds_to_summary=self.github)

    def _refuse_options_without_effect(self) -> None:
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
            faults = task_faults(earlier_runs, rehearsed_tasks)
            if not faults:
                faults = self._run_faults(earlier_runs, rehearsed_tasks)
            self._refuse_incomparable(faults)
        return rehearsed_tasks

    def _run_faults(
        self, earlier_runs: Sequence[BaselineRun], rehearsed_tasks: Mapping[str, RehearsedTask]
    ) -> dict[str, str]:
        """Runs of --run or of the baseline that no gate would compare → why."""
        expected_runs = list[BaselineRun]()
        for model in self.models:
            named_model = NamedModel(model, self.run_settings.model_args)
            for task_name, rehearsed_task in rehearsed_tasks.items():
                arguments = rehearsed_task.args | self.run_settings.shared
                run = expected_run(task_name, rehearsed_task.task, arguments, named_model)
                expected_runs.append(run)
        return run_faults(earlier_runs, expected_runs)

    def _refuse_incomparable(self, faults: Mapping[str, str]) -> None:
        """Refuse tasks or runs that no gate would compare with the baseline, in all outputs."""
        if not faults:
            return
        texts = [f"{name}: {fault}" for name, fault in faults.items()]
        cases = list[Case]()
        for name, fault in faults.items():
            cases.append(bad_case(name, f"refused: {fault}", len(GATE_HEADINGS)))
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
                result.cases.append(unasked_case(self.log_folder, self._unasked_text))
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
        write_result(
            result,
            self.junit,
            github=self.github,
            annotations_to_stderr=annotations_to_stderr,
        )

    @classmethod
    def write_refusal(cls, values: Mapping[str, Any], error: Exception) -> None:
        """Write for JUnit and GitHub that the command was refused."""
        write_refusal(values, error)

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
