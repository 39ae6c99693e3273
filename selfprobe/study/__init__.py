"""The class of all studies: its fields are its options, its YAML and its validation; from runs to
numbers to a page.

A study is a class in a file of `selfprobe/studies/`; `python -m selfprobe.studies` notes its
options. Its command has -h, --config, --dry-run, --yes, --json, the plan, resuming and the exit
status. `selfprobe report` shows the logs of every study, by the tasks that it reads.
"""

import asyncio
import inspect
import json
import re
import signal
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

import click
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SkipValidation,
    ValidationError,
)
from pydantic.fields import FieldInfo

from selfprobe.providers.keys import missing_key, missing_keys_text
from selfprobe.providers.names import impossible
from selfprobe.study import options
from selfprobe.text import busy
from selfprobe.text.docstrings import unwrapped_docstring
from selfprobe.text.extras import install_command
from selfprobe.text.families import NO_MODEL
from selfprobe.text.safe import echo
from selfprobe.text.user_input import FILE, names, nowhere, unknown_names_fault

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample
    from inspect_ai.scorer import Score

    from selfprobe.data import Row, Table
    from selfprobe.data.prices import Cost
    from selfprobe.logs import Identity, Run, Runs
    from selfprobe.page import Page
    from selfprobe.study.described import DescribedRun
    from selfprobe.study.waves import RunSettings

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
Label = Literal["evaluation", "deployment"]
OneModel = Annotated[str, AfterValidator(options.single_model)]
Repeated = Annotated[tuple[str, ...], "repeated"]
"""Texts of an option that is typed once for each, since they may hold commas."""


def _configured(entries: Any) -> Any:
    from selfprobe.study.described import unopened_models

    if not isinstance(entries, Iterable) or isinstance(entries, Mapping):
        raise ValueError("Input should be names, or mappings with a model")
    return unopened_models(entries)


Models = Annotated[tuple[Any, ...], BeforeValidator(_configured)]
"""Models (`described.NamedModel`), of names and of mappings with their settings."""

STUDIES: "list[type[Study]]" = []
"""Studies that were imported."""


@dataclass(frozen=True)
class Wave:
    """Runs that may be made together."""

    runs: "Sequence[DescribedRun]"
    title: str
    """What the user reads above its progress."""
    folder: str = ""
    """Folder of its logs inside the study's folder; "" is the study's own."""
    eval_set_arguments: Mapping[str, Any] | None = None
    """Arguments of `eval_set`; None is `waves.JOINED_FOLDER_ARGUMENTS`. A `limit` here takes the place of the
    study's.
    """


@dataclass(frozen=True)
class Plan:
    """The calls that a study will make, before anything is asked."""

    lines: Sequence[str]
    """Items, models, and what is left out with its reason."""
    costs: "Sequence[Cost]"
    """Calls and tokens by model."""


@dataclass(frozen=True)
class Logs:
    """The logs of a study that are shown."""

    runs: "Runs"
    """Its runs, each with the items that count alone."""
    names: "dict[Identity, str]" = field(default_factory=dict)
    """Name of each run: its model, and the settings in which runs of one model differ."""
    unasked_reasons: "Mapping[str, str]" = field(default_factory=dict)
    """Item → why it was not asked about, where the study knows it."""

    @property
    def models(self) -> dict[str, str]:
        """Name of each run → what a sentence calls it: without settings of the model in which none
        differ.
        """
        from selfprobe.page.plots import model_names

        full_names = list(dict.fromkeys(identity.model for identity in self.names))
        short_names = model_names(full_names)
        labels = {}
        for identity, name in self.names.items():
            label = name.replace(identity.model, short_names[identity.model], 1)
            labels[name] = label.replace(" ", "\N{NO-BREAK SPACE}")
        return labels

    def scored(self) -> "Iterator[tuple[str, Run, EvalSample, Score]]":
        """Name, run, sample and score of each finished run."""
        from selfprobe.logs.decision import last_score

        identities = list(self.names)
        finished_runs = sorted(self.runs.finished, key=lambda run: identities.index(run.identity))
        for run in finished_runs:
            for sample in run.samples:
                score = last_score(sample.scores)
                if score is not None:
                    yield self.names[run.identity], run, sample, score


class Study(BaseModel):
    """A question that is put to models. A wrong value is refused before anything is asked."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False
    )

    reads: ClassVar[frozenset[str]]
    """Names of the tasks whose logs the study shows."""
    repeats: ClassVar[bool] = False
    """True if later runs of one identity count too (`logs.runs`)."""
    skips: ClassVar[bool] = True
    """True if items whose calls fail for good can be left out (--skip-errors)."""
    local: ClassVar[bool] = False
    """True if the study's model runs here: it takes time instead of calls
    (`selfprobe.study.local`).
    """
    further_tasks: ClassVar[frozenset[str]] = frozenset()
    """Further tasks of the study's runs, whose other logs are shown elsewhere."""
    command_help: ClassVar[str] = ""
    """Docstring of the class as its file has it, the help of its command; `help(Matrix)` has the
    fields too.
    """
    start_options: ClassVar[str] = "--models or --config, which say whom to ask"
    """Options without which nothing is asked, where logs can be read alone."""

    limit: int | None = Field(None, ge=1, description=options.LIMIT_HELP)
    out: str = Field("report", description=options.OUT_HELP)
    log_dir: str = Field("logs", description=options.LOG_DIR_HELP)
    settings: Annotated[Any, SkipValidation] = Field(
        None, exclude=True, description="How calls are made, a `selfprobe.study.waves.RunSettings`."
    )

    def __init__(self, **values: Any) -> None:
        """A study of these values; a text where a field takes several is one, or with commas.

        Raises:
            InputError: A value is wrong; names the field, what is expected and what came.
        """
        from selfprobe.errors import InputError

        try:
            super().__init__(**_split_texts(type(self), values))
        except ValidationError as error:
            raise InputError(_python_fault_line(type(self), error)) from None

    # Else `model_validate` would call it, and wrap its error.
    setattr(__init__, "__pydantic_base_init__", True)  # noqa: B010

    def __init_subclass__(cls, **class_settings: Any) -> None:
        super().__init_subclass__(**class_settings)
        if "reads" in vars(cls):
            STUDIES.append(cls)

    @classmethod
    def __pydantic_init_subclass__(cls, **class_settings: Any) -> None:
        super().__pydantic_init_subclass__(**class_settings)
        own_docstring = vars(cls).get("__doc__")
        if own_docstring:
            cls.command_help = inspect.cleandoc(own_docstring)
        cls.__doc__ = _python_docstring(cls)

    @property
    def log_folder(self) -> str:
        """The log folder, without a slash at its end."""
        return self.log_dir.rstrip("/")

    @property
    def run_settings(self) -> "RunSettings":
        """Settings of how calls are made."""
        from selfprobe.study.waves import RunSettings

        return self.settings or RunSettings()

    def waves(self) -> Iterator[Wave]:
        """The runs; a later wave may read an earlier one's logs."""
        raise NotImplementedError

    def plan(self) -> Plan | None:
        """The plan of the calls; None where nothing is asked, and logs are read. No model is asked
        for it.

        Raises:
            InputError: The data cannot be read.
        """
        raise NotImplementedError

    @cached_property
    def table(self) -> "Table | None":
        """The items, where they are those of one data set.

        Raises:
            InputError: It cannot be read.
        """
        return None

    @property
    def rounds(self) -> int:
        """Number of calls that wait for one another, for the time that batches take."""
        return 1

    @property
    def short_reply_costs(self) -> "Sequence[Cost]":
        """Costs with short replies, where the study has --reply-tokens and they are longer."""
        from selfprobe.data.prices import LOCAL_LIMIT
        from selfprobe.study.waves import SHORT_REPLY_TOKENS

        reply_tokens = getattr(self, "reply_tokens", SHORT_REPLY_TOKENS) or LOCAL_LIMIT
        if reply_tokens <= SHORT_REPLY_TOKENS:
            return ()
        plan = self.model_copy(update={"reply_tokens": SHORT_REPLY_TOKENS}).plan()
        return plan.costs if plan else ()

    def costs(self, rows: "Sequence[Row]") -> "list[Cost]":
        """Calls and tokens by model for these rows, where a study can be a part of another."""
        raise NotImplementedError

    @property
    def items(self) -> int | None:
        """Number of items of each run: the limit, or less where it would split a pair; None is all."""
        if self.table is None or self.limit is None:
            return self.limit
        return len(self.table.first(self.limit))

    @property
    def unasked_reasons(self) -> Mapping[str, str]:
        """Item → why nothing is asked about it."""
        return self.table.set_aside_reasons if self.table else {}

    @classmethod
    def comparable(cls, runs: "Runs") -> "Runs":
        """The runs that one page can show; the others are set aside."""
        return runs

    @classmethod
    def numbers(cls, logs: Logs) -> Any:
        """Results of the logs."""
        raise NotImplementedError

    @classmethod
    def page(cls, results: Any) -> "Page":
        """The answer, a picture, a small table; then details."""
        raise NotImplementedError

    def run(self) -> "Page":
        """Ask what is not in the logs yet; the page of it, with its `answer` and its `tables` by
        name.

        Raises:
            Interrupted: The user stopped it.
            InputError: A model cannot be had, or the log folder cannot be written.
            NoLogs: No run ended well, or nothing in it could be read.
        """
        from selfprobe.logs import in_thread

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._ask_and_show()
        # A notebook's loop runs already, and a thread has one of its own.
        return in_thread(self._ask_and_show)

    def _ask_and_show(self) -> "Page":
        from selfprobe.errors.inspect_private import load_env_file

        load_env_file()
        self.open_models()
        plan = self.plan()
        if plan is not None:
            self.refuse_others()
            self.refuse_missing_keys(plan)
            self.ask()
        return self.build_page()

    def missing_keys(self, plan: Plan) -> dict[str, list[str]]:
        """Environment variable of a key that is not set → the models of the plan that need it; none
        on a cluster, whose nodes have the keys.
        """
        if self.run_settings.engine is not None:
            return {}
        models_by_variable: dict[str, list[str]] = {}
        for cost in plan.costs:
            variable = missing_key(cost.model, self._args_of_model(cost.model))
            if variable:
                models_by_variable.setdefault(variable, []).append(cost.model)
        return models_by_variable

    def _args_of_model(self, name: str) -> dict[str, Any]:
        """Arguments with which a model of the plan is opened, where the study has some for it."""
        for model in getattr(self, "models", ()):
            if not isinstance(model, str) and model.name == name:
                return {**self.run_settings.model_args, **model.args}
        return dict(self.run_settings.model_args)

    def refuse_missing_keys(self, plan: Plan) -> None:
        """Refuse to ask models whose keys are not set, all at once; a hook of Inspect may have them.

        Raises:
            InputError: A model has no key; names each.
        """
        from selfprobe.errors import InputError
        from selfprobe.study.described import NamedModel

        models_by_variable: dict[str, list[str]] = {}
        for variable, models in self.missing_keys(plan).items():
            for model in models:
                try:
                    NamedModel(model, self._args_of_model(model)).open()
                except InputError:
                    models_by_variable.setdefault(variable, []).append(model)
        if models_by_variable:
            raise InputError(
                f"keys are not set: {missing_keys_text(models_by_variable)}; export them, or write "
                "them as NAME=VALUE into a file .env in this folder"
            )

    def refuse_others(self) -> None:
        """Refuse a log folder with runs of another study, before the plan is shown; a local study
        has no logs.

        Raises:
            InputError: It holds some, or it cannot be read.
        """
        from selfprobe.errors import InputError
        from selfprobe.logs import logs_in, readable_logs, task_of
        from selfprobe.study._registry import tasks

        if self.local or not self.log_folder:
            return
        study_tasks = self.reads | self.further_tasks
        for header in readable_logs(logs_in(self.log_folder)).headers:
            task = task_of(header)
            if task in tasks() and task not in study_tasks:
                raise InputError(
                    f"{self.log_folder} holds a run of {task}, which is of another study: "
                    "give another --log-dir"
                )

    def open_models(self) -> None:
        """Open what its runs need, before anything is shown or paid.

        Raises:
            InputError: A model cannot be had.
        """

    def ask(self) -> bool:
        """Ask what is not in the logs yet; True when all ended well and something could be scored.

        Raises:
            Interrupted: The user stopped it.
            InputError: A model cannot be had, or the log folder cannot be written.
        """
        from selfprobe.logs import is_whole, logs_in, readable_logs
        from selfprobe.study.waves import (
            JOINED_FOLDER_ARGUMENTS,
            all_ended_well,
            logged_runs,
            run_wave,
        )

        plan = self.plan()
        planned_calls = 0
        if plan:
            planned_calls = sum(cost.calls for cost in plan.costs)
        is_resumed = not all(map(is_whole, readable_logs(logs_in(self.log_folder)).headers))
        if (
            self.run_settings.cost_limit is not None
            and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        ):
            # The limit ends a run as Ctrl-C does, which the background of a shell ignores.
            signal.signal(signal.SIGINT, signal.default_int_handler)

        busy.calls = busy.Calls(planned_calls, dollar_limit=self.run_settings.cost_limit)
        finished_runs = []
        try:
            for wave in self.waves():
                limit = self.item_limit(wave)
                eval_set_arguments = (
                    JOINED_FOLDER_ARGUMENTS
                    if wave.eval_set_arguments is None
                    else wave.eval_set_arguments
                )
                headers = run_wave(
                    wave.runs,
                    f"{self.log_folder}/{wave.folder}".rstrip("/"),
                    title=wave.title,
                    settings=self.run_settings,
                    resumed=is_resumed,
                    **{**eval_set_arguments, "limit": limit},
                )
                finished_runs += logged_runs(headers, limit)
        finally:
            busy.calls = busy.Calls()
        return all_ended_well(finished_runs, self.scored_subject)

    def scored_subject(self, run: "Run") -> str:
        """What a run is about: a command ends with status 1 where nothing of such a subject could
        be scored. The model, or the graders where no model is asked, unless a study says otherwise;
        "" where no answer rests on it alone.
        """
        model = str(run.header.eval.model)
        if model.partition("/")[0] == NO_MODEL:
            return dict(run.identity.roles).get("grader", model)
        return model

    def item_limit(self, wave: Wave) -> int | None:
        """Number of items of each run of a wave; None is all."""
        wave_arguments = wave.eval_set_arguments or {}
        limit: int | None = wave_arguments.get("limit", self.items)
        return limit

    def identities_in(self, wave: Wave) -> "list[Identity]":
        """The identities by which the runs of a wave are found."""
        from selfprobe.study.described import identities_of

        return identities_of(wave.runs)

    @property
    def limits(self) -> "dict[Identity, int | None]":
        """Identity of each run of the study → number of its items that count; None is all."""
        return {
            identity: self.item_limit(wave)
            for wave in self.waves()
            for identity in self.identities_in(wave)
        }

    def own_runs(self, item_limits: "Mapping[Identity, int | None]") -> "Runs":
        """The study's runs (`item_limits`); what else lies in its folder is set aside with the settings
        that differ.
        """
        from selfprobe.logs import runs

        folder_runs = runs(
            [self.log_dir], sorted(self.reads | self.further_tasks), repeats=self.repeats
        )
        return folder_runs.with_identities(item_limits).limited(item_limits)

    def collected(self) -> Logs:
        """The logs of the study's runs."""
        from selfprobe.logs import titles

        limits = self.limits
        return Logs(self.own_runs(limits), titles(limits), self.unasked_reasons)

    def build_page(self) -> "Page":
        """The page of the study's runs.

        Raises:
            NoLogs: No run ended well, or nothing in it could be read.
        """
        logs = self.collected()
        return with_runs(self.page(self.numbers(logs)), logs.runs)

    def write_page(self, page: "Page") -> str:
        """Write the study's page into `out`; returns the line that says where."""
        from selfprobe.page import write

        return f"Page: {write(page, self.out)}"

    def print_page(self, *, as_json: bool, planned: bool) -> int:
        """Print and write the study's page; returns the exit status.

        Args:
            as_json: Print the tables instead of the answer.
            planned: Whether a plan was printed before.

        Raises:
            RunError: Models were asked, and no run ended well.
            NoLogs: There is no finished log.
        """
        from selfprobe.errors import NoLogs, RunError

        try:
            with busy.status_line():
                page = self.build_page()
        except NoLogs as error:
            if not planned:
                raise
            raise RunError(str(error)) from None

        page_line = self.write_page(page)
        if as_json:
            options.echo_json(
                {stem: table.to_dict("records") for stem, table in page.frames.items()}
            )
            return 0
        if planned:
            echo("")
        options.echo_lines([*page.lines, page_line])
        return 0

    @classmethod
    def page_of_logs(cls, paths: Sequence[str]) -> "Page":
        """The page of all logs of the study under these paths, each run named by the settings in
        which it differs.

        Raises:
            NoLogs: There is no finished one.
        """
        from selfprobe.errors import NoLogs
        from selfprobe.logs import first_of, runs, titles

        shown_runs = cls.comparable(runs(paths, cls.reads | cls.further_tasks))
        if not shown_runs.finished:
            reasons = unfinished(shown_runs) | shown_runs.set_aside_reasons
            tasks = ", ".join(sorted(cls.reads))
            raise NoLogs(f"no finished log of {tasks}{first_of(reasons)}", reasons)
        run_names = titles(run.identity for run in reversed(shown_runs.finished))
        logs = Logs(shown_runs, run_names)
        return with_runs(cls.page(cls.numbers(logs)), shown_runs)

    @classmethod
    def write_refusal(cls, values: Mapping[str, Any], error: Exception) -> None:
        """Write that a command of these values was refused, where an output is for programs."""

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Self:
        """A study of these values.

        Raises:
            InputError: One is wrong; names it, what is expected and what came.
        """
        from selfprobe.errors import InputError

        try:
            return cls.model_validate(values)
        except ValidationError as error:
            fault = error.errors()[0]
            cause = fault.get("ctx", {}).get("error")
            if isinstance(cause, InputError):
                raise cause from None
            raise InputError(_fault_line(fault)) from None


def _split_texts(study: type[Study], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values in which a text in the place of several is split at its commas, as commands do it."""
    split_values = dict(values)
    for key, info in study.model_fields.items():
        name = info.alias or key
        text = values.get(name)
        if isinstance(text, str) and get_origin(_present_type(info)) is tuple:
            holds_commas = "repeated" in info.metadata
            split_values[name] = (text,) if holds_commas else tuple(names(text))
    return split_values


def _python_fault_line(study: type[Study], error: ValidationError) -> str:
    """Line for the first wrong value of a call from Python."""
    from selfprobe.errors import InputError

    fault = error.errors()[0]
    cause = fault.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return str(cause)
    if not fault["loc"]:
        return str(fault["msg"]).removeprefix("Value error, ")
    name = str(fault["loc"][0])
    if fault["type"] == "missing":
        return f"{study.__name__} needs {name}: give it as {name}=…"
    if fault["type"] == "extra_forbidden":
        field_names = [key for key, info in study.model_fields.items() if not info.exclude]
        return f"{study.__name__} has no field {unknown_names_fault([name], field_names)}"
    return f"{study.__name__}({name}=…): {_reason_of(fault)}"


def _reason_of(fault: Mapping[str, Any]) -> str:
    """What is wrong with a value, and the value."""
    if fault["type"] == "too_short":
        return "expected at least one name, with commas between several; got none"
    reason = str(fault["msg"]).removeprefix("Value error, ")
    return f"{reason}, got {fault['input']!r}"


def _fault_line(fault: Mapping[str, Any]) -> str:
    """Line for a fault of a field, as pydantic has it; a fault of several fields has no place."""
    if not fault["loc"]:
        return str(fault["msg"]).removeprefix("Value error, ")
    option = f"--{str(fault['loc'][0]).replace('_', '-')}"
    return f"{option}: {_reason_of(fault)}"


def _present_type(info: FieldInfo) -> Any:
    """The type of a field's value, where there is one."""
    for part in get_args(info.annotation):
        if part is not type(None) and type(None) in get_args(info.annotation):
            return part
    return info.annotation


def _python_docstring(study: type[Study]) -> str:
    """Docstring of a study for readers of Python: an example, what it gives, and its fields."""
    required_values = [
        f'{name}="…"' for name, info in study.model_fields.items() if info.is_required()
    ]
    shown_values = required_values or ['models="planted/ada,planted/bo"', "limit=20"]
    if "models" not in study.model_fields and not required_values:
        shown_values = []
    lines = [
        study.command_help,
        "",
        "Example:",
        f"    study = selfprobe.{study.__name__}({', '.join(shown_values)})",
        "    study.plan()                     # calls, tokens and cost; asks nothing",
        "    page = study.run()               # asks what is not in the logs yet",
        "    page.answer, page.claims         # the sentence, and the claims behind it",
        "    page.frames                      # the tables of the page as DataFrames, by name",
        "",
        "Where an argument takes several, a text with commas does as well as a list.",
        "",
        "Args:",
    ]
    for name, info in study.model_fields.items():
        is_no_argument = info.exclude and not info.description
        if is_no_argument:
            continue
        command_argument = info.examples[0] if info.examples else ""
        entry = f"{name}: {info.description or command_argument}".strip()
        if not info.is_required() and info.default is not None:
            entry += f" Default: {info.default!r}."
        lines += textwrap.wrap(entry, 96, initial_indent="    ", subsequent_indent="        ")
    lines += ["", "Raises:", "    InputError: A value is wrong; names the argument."]
    return "\n".join(lines)


def unfinished(runs: "Runs") -> dict[str, str]:
    """Logs of runs that did not end well, or that were invalidated as a whole, with the reason."""
    return {run.log: run.why_unfinished for run in runs.counted if not run.finished}


RUN_COLUMNS = ("task", "model", "items", "settings", "log")


def with_runs(page: "Page", runs: "Runs") -> "Page":
    """The page with its last section, "Runs", and the table `runs`: the logs that it is made of,
    and their settings.
    """
    import pandas as pd

    from selfprobe.page import MOST_TERMINAL_LINES, Column, Log, Section, Table, set_aside
    from selfprobe.solvers.reply_notes import remarks_in

    rows: list[dict[str, Any]] = []
    failed_sample_lines = []
    remarks = []
    failed_samples = 0
    for run in runs.finished:
        identity = run.identity
        settings = "; ".join(f"{name} {value}" for name, value in identity.settings.items())
        rows.append(
            {
                "task": identity.task,
                "model": identity.model,
                "items": len(run.items()),
                "log": Log(run.log),
                "settings": settings,
            }
        )
        remarks += [f"{identity.task}, {line}" for line in remarks_in(run.summaries)]
        if run.missing_samples:
            failed_samples += run.missing_samples
            reason = _failed_samples_text(run.missing_samples)
            failed_sample_lines.append(f"{identity.task}, {identity.model}: {reason}.")

    run_lines = [*runs.invalidated_lines, *remarks]
    blocks = [
        *failed_sample_lines,
        *run_lines,
        Table(rows, [Column(name, name) for name in RUN_COLUMNS]),
        *set_aside(runs.set_aside_reasons | unfinished(runs)),
    ]
    runs_section = Section("Runs", blocks, name="runs", menu="runs")

    first_screen_lines = []
    if failed_samples:
        remedy = "the command of these runs asks again"
        first_screen_lines.append(f"{_failed_samples_text(failed_samples)}; {remedy}.")
    if len(run_lines) > 1:
        first_screen_lines.append(f"{run_lines[0]} {len(run_lines) - 1} more under Runs.")
    else:
        first_screen_lines += run_lines
    page_notes = page.notes[: MOST_TERMINAL_LINES - len(first_screen_lines)]

    csv_rows = [row | {"log": row["log"].address} for row in rows]
    csv_table = pd.DataFrame(csv_rows, columns=RUN_COLUMNS)
    run_models = [model for run in runs.finished for model in run.identity.models]
    return replace(
        page,
        sections=[*page.sections, runs_section],
        tables={"runs": csv_table, **page.tables},
        notes=[*page_notes, *first_screen_lines],
        models=[*page.models, *run_models],
    )


def _failed_samples_text(sample_count: int) -> str:
    """Words for samples that failed.

    >>> _failed_samples_text(1), _failed_samples_text(3)
    ('1 sample is left out, since its calls failed', '3 samples are left out, since their calls failed')
    """
    if sample_count == 1:
        return "1 sample is left out, since its calls failed"
    return f"{sample_count} samples are left out, since their calls failed"


class StudyCommand(click.Command):
    """A command whose help shows what is measured first, and then how calls are made."""

    def __init__(self, *command_args: Any, study: str, **command_settings: Any) -> None:
        super().__init__(*command_args, **command_settings)
        self.study = study
        """Module and class of the study, with a colon between."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments: a study without any takes a file in place of --config; other words
        are names to join.

        A list of names that is typed twice is refused: click takes the last one, and would drop the
        others in silence.
        """
        try:
            values, words, typed_params = self.make_parser(ctx).parse_args(list(args))
        except click.NoSuchOption as error:
            if error.option_name in options.OPTIONS_OF_OTHER_PROGRAMS:
                remedy = options.OPTIONS_OF_OTHER_PROGRAMS[error.option_name]
                raise click.UsageError(f"No such option {error.option_name}; {remedy}") from None
            if field_is_newer(self.study, error.option_name):
                raise OutdatedOptions(self.study) from None
            raise
        for param in typed_params:
            takes_names = isinstance(param.type, options.Names)
            if takes_names and isinstance(param, click.Option) and typed_params.count(param) > 1:
                option = param.opts[0]
                remedy = "type it once, with commas: a,b"
                raise click.UsageError(f"{option} is typed twice; {remedy}", ctx)

        takes_arguments = any(isinstance(param, click.Argument) for param in self.params)
        if takes_arguments or not words:
            return super().parse_args(ctx, args)
        if len(words) > 1 or not Path(words[0]).is_file():
            remedy = "commas separate names, as in --models a,b,c"
            raise click.UsageError(f"unexpected {' '.join(words)}; {remedy}", ctx)

        config_file = words[0]
        typed_file = values.get("config", config_file)
        if typed_file != config_file:
            raise click.UsageError(
                f"two configurations, {config_file} and {typed_file}; give one", ctx
            )
        further_args = [word for word in args if word not in ("--config", config_file)]
        return super().parse_args(ctx, ["--config", config_file, *further_args])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Two tables of options."""
        measured: list[tuple[str, str]] = []
        calls: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            help_record = param.get_help_record(ctx)
            if isinstance(param, click.Option) and help_record is not None:
                is_of_calls = param.name in options.CALL_PARAMETERS
                (calls if is_of_calls else measured).append(help_record)
        for title, records in (("Options", measured), ("How calls are made", calls)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


OPTION_KINDS: Mapping[Any, str] = {
    bool: "flag",
    int: "whole",
    float: "number",
    dict: "settings",
}


def described_study(study: type[Study]) -> dict[str, Any]:
    """A study's command as JSON holds it (`options.json`), so that help and wrong calls need no
    import of Inspect.
    """
    shared_fields = [key for key in study.model_fields if key in Study.model_fields]
    own_fields = [key for key in study.model_fields if key not in Study.model_fields]
    described_options = []
    for key in [*own_fields, *shared_fields]:
        info = study.model_fields[key]
        if not info.exclude:
            described_options.append(_described_option(info.alias or key, info))

    names_models = not {"models", "grader"}.isdisjoint(study.model_fields)
    asks = names_models and not study.local
    return {
        "place": f"{study.__module__}:{study.__name__}",
        "help": unwrapped_docstring(study.command_help),
        "options": described_options,
        "skips": study.skips,
        "asks": asks,
        "runs": asks and study.waves is not Study.waves,
        "local": study.local,
    }


def _described_option(name: str, info: FieldInfo) -> dict[str, Any]:
    """A field as an option: its type, bounds, default and description. `examples=["SET"]` makes it
    an argument.
    """
    field_type = _present_type(info)
    kind = _option_kind(field_type, info.metadata)
    choices: list[str] = []
    if kind == "choice":
        choices = [str(choice) for choice in get_args(field_type)]
    argument = str(info.examples[0]) if info.examples else None
    default = None if info.is_required() else info.default
    entries = {
        "name": name,
        "kind": kind,
        "argument": argument,
        "required": info.is_required() or None,
        "default": default,
        "help": info.description,
        **_described_bounds(kind, info.metadata),
        "choices": choices or None,
    }
    return {key: value for key, value in entries.items() if value is not None}


def _option_kind(field_type: Any, metadata: Sequence[Any]) -> str:
    reads_weights = "weights" in metadata
    if get_origin(field_type) is tuple:
        if reads_weights:
            return "several_weights"
        if "repeated" in metadata:
            return "texts"
        return "names" if get_args(field_type)[:1] == (str,) else "entries"
    if get_origin(field_type) is Literal:
        return "choice"
    if reads_weights:
        return "weights"
    return OPTION_KINDS.get(get_origin(field_type) or field_type, "text")


def _described_bounds(kind: str, metadata: Sequence[Any]) -> dict[str, Any]:
    """The bounds of a number; those of a whole number are the least and the largest that it takes."""
    bounds = {
        edge: getattr(constraint, edge)
        for constraint in metadata
        for edge in ("ge", "gt", "le", "lt")
        if hasattr(constraint, edge)
    }
    if kind == "whole":
        if "gt" in bounds:
            bounds["ge"] = bounds.pop("gt") + 1
        if "lt" in bounds:
            bounds["le"] = bounds.pop("lt") - 1
    return {
        "least": bounds.get("ge", bounds.get("gt")),
        "most": bounds.get("le", bounds.get("lt")),
        "excludes_least": "gt" in bounds or None,
        "excludes_most": "lt" in bounds or None,
    }


def imported_study(study: str) -> type[Study]:
    """The class of a study.

    Args:
        study: Module and class, with a colon between.
    """
    module, _, class_name = study.partition(":")
    study_class: type[Study] = getattr(import_module(module), class_name)
    return study_class


def field_is_newer(study: str, option_name: str) -> bool:
    """True if a study has a field of an option that its description lacks: `options.json` is older.

    The study is imported, which takes seconds, only where a source says something like that field.
    """
    flag = option_name.removeprefix("--")
    field_names = {flag.replace("-", "_"), flag.removeprefix("no-").replace("-", "_")}
    any_name = "|".join(map(re.escape, field_names))
    field_line = re.compile(rf"^    ({any_name}): |alias=.({any_name})\b", re.MULTILINE)
    sources = [*STUDIES_FILE.parent.rglob("*.py"), *Path(__file__).parent.glob("*.py")]
    texts = (source.read_text(encoding="utf-8") for source in sources)
    if not any(map(field_line.search, texts)):
        return False
    described_options = described_study(imported_study(study))["options"]
    return not field_names.isdisjoint(option["name"] for option in described_options)


class OutdatedOptions(click.ClickException):
    """The description of a study is older than its class."""

    exit_code = 2

    def __init__(self, study: str) -> None:
        class_name = study.partition(":")[2]
        super().__init__(
            f"{STUDIES_FILE.name} is older than the fields of {class_name}: "
            "type python -m selfprobe.studies, which writes it anew"
        )


def command(name: str, about: Mapping[str, Any]) -> click.Command:
    """The command of a study: an option for each field; a plan is shown before anything is asked.

    Args:
        name: Name of the command.
        about: Description by `described_study`.
    """
    study = str(about["place"])

    def call(as_json: bool, yes: bool = False, dry_run: bool = False, **values: Any) -> int:
        try:
            return call_study(as_json, yes, dry_run, values)
        except Exception as error:
            if values.get("junit") or values.get("github"):
                imported_study(study).write_refusal(values, error)
            raise

    def call_study(as_json: bool, yes: bool, dry_run: bool, values: dict[str, Any]) -> int:
        refuse_missing(values)
        if about["asks"]:
            refuse_impossible(values)
        if about["local"]:
            refuse_missing_extra()
        study_class = imported_study(study)
        if _as_json(described_study(study_class)) != _as_json(about):
            raise OutdatedOptions(study)
        return _run_command(study_class, values, yes=yes, dry_run=dry_run, as_json=as_json)

    function: Callable[..., Any] = call
    if about["runs"]:
        if about["skips"]:
            function = options.skip_errors(function)
        function = options.engine(options.asking(function))
    elif about["asks"]:
        function = options.paying(function)
    elif about["local"]:
        function = options.confirming(function)
    function = options.as_json(function)
    for option in reversed(about["options"]):
        function = _option_decorator(**option)(function)
    make_command = click.command(name, cls=StudyCommand, help=about["help"], study=study)
    return make_command(options.config(function))


def _as_json(about: Mapping[str, Any]) -> str:
    return json.dumps(about, sort_keys=True)


class Missing(click.ClickException):
    """A file or folder that a command is to read, or a model that it is to ask, cannot be there."""

    exit_code = 2


PATH_FIELDS = ("logs", "folders")
"""Fields that hold paths alone."""
DATASET_FIELDS = ("dataset", "against", "questions", "labels")
"""Fields that may hold the path of a file."""
MODEL_FIELDS = ("models", "model", "grader", "judges", "writer")
"""Fields that hold names of models as Inspect has them."""
ADDRESS_CHARACTERS = frozenset(":,?=")
"""Characters of addresses, lists and settings, which no path is taken to have."""


def refuse_missing(values: Mapping[str, Any]) -> None:
    """Refuse a path where nothing is, before Inspect is imported; other faults of it are found
    later.
    """
    for field_name, value in values.items():
        entries = value if isinstance(value, list | tuple) else [value]
        for entry in entries:
            if not isinstance(entry, str) or not entry.strip():
                continue
            is_file_name = field_name in DATASET_FIELDS and FILE.fullmatch(entry) is not None
            is_path = field_name in PATH_FIELDS or is_file_name
            if not is_path or not ADDRESS_CHARACTERS.isdisjoint(entry):
                continue
            fault = nowhere(entry)
            if fault:
                raise Missing(fault)


def refuse_missing_extra() -> None:
    """Refuse to read weights without the packages for it, before anything is imported."""
    for module in ("torch", "transformers", "safetensors"):
        if module not in sys.modules and find_spec(module) is None:
            raise Missing(f"probes need {module}: {install_command('probes')}")


def refuse_impossible(values: Mapping[str, Any]) -> None:
    """Refuse a model that cannot be, before Inspect is imported; whether it can be had is found
    later.
    """
    # Users of Inspect, and the user's own files, may add providers.
    if "inspect_ai" in sys.modules or ".py" in str(values):
        return
    for field_name in MODEL_FIELDS:
        value = values.get(field_name) or ()
        entries = names(value) if isinstance(value, str) else value
        for entry in entries:
            name = entry.get("model") if isinstance(entry, Mapping) else entry
            fault = impossible(name) if isinstance(name, str) else ""
            if fault:
                raise Missing(fault)


def _run_command(
    study_class: type[Study], values: dict[str, Any], *, yes: bool, dry_run: bool, as_json: bool
) -> int:
    from selfprobe.errors import RunError
    from selfprobe.errors.inspect_private import load_env_file
    from selfprobe.errors.output import refuse_unwritable
    from selfprobe.study.waves import RunSettings
    from selfprobe.text.safe import clean

    if "out" in values:
        refuse_unwritable(values["out"])
    load_env_file()
    settings = RunSettings.pop_from(values) if "prices" in values else RunSettings()
    fields: dict[str, Any] = {**values, "settings": settings}
    for key, value in values.items():
        if isinstance(value, list):
            fields[key] = tuple(value)
    study = study_class.from_values(fields)
    if not dry_run:
        study.open_models()

    all_complete = True
    plan = study.plan()
    if plan is not None:
        study.refuse_others()
        lines = list(plan.lines)
        if plan.costs:
            lines += ["", *settings.costed(plan.costs, rounds=study.rounds)]
        lines += settings.lasting(plan.costs, study.short_reply_costs)
        missing_keys = study.missing_keys(plan)
        if dry_run and missing_keys:
            lines.append(f"A run needs keys that are not set: {missing_keys_text(missing_keys)}.")
        echo("\n".join(map(clean, lines)), err=as_json)
        if dry_run:
            return 0
        study.refuse_missing_keys(plan)
        options.confirmed(yes or study_class.local)
        all_complete = study.ask()
    elif dry_run or yes or settings not in (RunSettings(), RunSettings(skip_errors=False)):
        raise click.UsageError(f"options of a run (--yes, -M …) need {study_class.start_options}")

    status = study.print_page(as_json=as_json, planned=plan is not None)
    if not all_complete and not status:
        raise RunError("runs failed, or nothing could be scored; see above")
    return status


FURTHER_FLAGS = {"models": ["--model"], "tasks": ["--run"]}
"""Field → further flags of its option."""


def _option_decorator(
    name: str,
    kind: str,
    argument: str | None = None,
    required: bool = False,
    default: Any = None,
    help: str | None = None,
    least: Any = None,
    most: Any = None,
    excludes_least: bool = False,
    excludes_most: bool = False,
    choices: Sequence[str] = (),
) -> Callable[..., Any]:
    flag = f"--{name.replace('_', '-')}"
    if argument:
        value_count = -1 if kind == "names" else 1
        return click.argument(name, metavar=argument, required=required, nargs=value_count)
    if kind == "flag":
        both_flags = f"{flag}/--no-{flag[2:]}"
        return click.option(both_flags, default=default, show_default=True, help=help)
    if kind == "settings":
        flags = ["-T", flag] if name == "args" else [flag]
        return click.option(
            *flags,
            name,
            type=options.Assignment(),
            multiple=True,
            callback=lambda ctx, param, value: dict(value),
            hidden=not help,
            help=help,
        )

    singular = name.removesuffix("s")
    value_type: Any = str
    if kind == "names":
        value_type = options.Names(singular)
    elif kind == "entries":
        value_type = options.Names(singular, mappings=True)
    elif kind == "several_weights":
        value_type = options.Names("model", check=options.open_model)
    elif kind == "weights":
        value_type = options.OneModel(options.open_model)
    elif kind == "choice":
        value_type = options.SuggestingChoice(choices)
    elif kind == "whole":
        value_type = options.Whole(least, most)
    elif kind == "number":
        value_type = options.Number(least, most, min_open=excludes_least, max_open=excludes_most)

    settings: dict[str, Any] = {"required": True}
    if not required:
        settings = {"default": default, "show_default": default not in (None, (), "")}
    return click.option(
        flag,
        *FURTHER_FLAGS.get(name, []),
        name,
        type=value_type,
        help=help,
        metavar="N" if kind == "whole" else None,
        hidden=help is None,
        multiple=kind == "texts",
        **settings,
    )


STUDIES_FILE = Path(__file__).parent.parent / "studies" / "options.json"
"""Options of every study; `python -m selfprobe.studies` writes it anew (a test compares)."""


@cache
def stored_descriptions() -> dict[str, Any]:
    """The studies of this package by their names, as `STUDIES_FILE` has them."""
    described: dict[str, Any] = json.loads(STUDIES_FILE.read_text(encoding="utf-8"))
    return described


def study_named(name: str) -> type[Study]:
    """The class of a study of this package, for another that asks with it as a part.

    Args:
        name: Its name in small letters, such as awareness.
    """
    return imported_study(stored_descriptions()[name]["place"])


@cache
def commands(*names: str) -> dict[str, click.Command]:
    """The commands of these studies, without importing them.

    Raises:
        UsageError: The file of options has no such study.
    """
    described = stored_descriptions()
    for name in names:
        if name not in described:
            remedy = "type python -m selfprobe.studies, which writes it anew"
            raise click.UsageError(f"{STUDIES_FILE.name} has no study {name}: {remedy}")
    return {name: command(name, described[name]) for name in names}
