"""The class of all studies: its fields are its options, its YAML and its validation; from runs to
numbers to a page.

A study is a class in a file of `selfprobe/studies/`; `python -m selfprobe.studies` notes its
options. Its command has -h, --config, --dry-run, --yes, --json, the plan, resuming and the exit
status. `selfprobe report` shows the logs of every study, by the tasks that it reads.
"""

import asyncio
import inspect
import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
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

from selfprobe.providers.names import impossible
from selfprobe.study import options
from selfprobe.text import busy
from selfprobe.text.docstrings import unwrapped_docstring
from selfprobe.text.safe import echo
from selfprobe.text.user_input import FILE, names, nowhere

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample
    from inspect_ai.scorer import Score

    from selfprobe.data import Table
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
    from selfprobe.study.described import configured

    return configured(entries)


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
    further: Mapping[str, Any] | None = None
    """Arguments of `eval_set`; None is `waves.JOINS`. A `limit` here takes the place of the
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
    aside: "Mapping[str, str]" = field(default_factory=dict)
    """Item → why it was not asked about, where the study knows it."""

    @property
    def models(self) -> dict[str, str]:
        """Name of each run → what a sentence calls it: without settings of the model in which none
        differ.
        """
        from selfprobe.page.plots import model_names

        full = model_names(list(dict.fromkeys(identity.model for identity in self.names)))
        short = {
            name: name.replace(one.model, full[one.model], 1) for one, name in self.names.items()
        }
        return {name: text.replace(" ", "\N{NO-BREAK SPACE}") for name, text in short.items()}

    def scored(self) -> "Iterator[tuple[str, Run, EvalSample, Score]]":
        """Name, run, sample and score of each finished run."""
        from selfprobe.logs.decision import last_score

        for run in sorted(self.runs.finished, key=lambda run: list(self.names).index(run.identity)):
            for sample in run.samples:
                score = last_score(sample.scores)
                if score is not None:
                    yield self.names[run.identity], run, sample, score


class Study(BaseModel):
    """A question that is put to models. A wrong value is refused before anything is asked."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

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
    also: ClassVar[frozenset[str]] = frozenset()
    """Further tasks of the study's runs, whose other logs are shown elsewhere."""
    starts: ClassVar[str] = "--models or --config, which say whom to ask"
    """Options without which nothing is asked, where logs can be read alone."""

    limit: int | None = Field(None, ge=1, description=options.LIMIT_HELP)
    out: str = Field("report", description=options.OUT_HELP)
    log_dir: str = Field("logs", description=options.LOG_DIR_HELP)
    settings: Annotated[Any, SkipValidation] = Field(None, exclude=True)
    """Settings of how calls are made (`RunSettings`); None is the default."""

    def __init_subclass__(cls, **further: Any) -> None:
        super().__init_subclass__(**further)
        if "reads" in vars(cls):
            STUDIES.append(cls)

    @property
    def base(self) -> str:
        """The log folder, without a slash at its end."""
        return self.log_dir.rstrip("/")

    @property
    def how(self) -> "RunSettings":
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
    def shorter(self) -> "Sequence[Cost]":
        """Costs with short replies, where the study has --reply-tokens and they are longer."""
        from selfprobe.data.prices import LOCAL_LIMIT
        from selfprobe.study.waves import SHORT_REPLY

        if (getattr(self, "reply_tokens", SHORT_REPLY) or LOCAL_LIMIT) <= SHORT_REPLY:
            return ()
        plan = self.model_copy(update={"reply_tokens": SHORT_REPLY}).plan()
        return plan.costs if plan else ()

    @property
    def items(self) -> int | None:
        """Number of items of each run: the limit, or less where it would split a pair; None is all."""
        return len(self.table.first(self.limit)) if self.table and self.limit else self.limit

    @property
    def aside(self) -> Mapping[str, str]:
        """Item → why nothing is asked about it."""
        return self.table.aside if self.table else {}

    @classmethod
    def comparable(cls, there: "Runs") -> "Runs":
        """The runs that one page can show; the others are set aside."""
        return there

    @classmethod
    def numbers(cls, logs: Logs) -> Any:
        """Results of the logs."""
        raise NotImplementedError

    @classmethod
    def page(cls, found: Any) -> "Page":
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
            return self._asked()
        return in_thread(
            self._asked
        )  # a notebook's loop runs already, and a thread has one of its own

    def _asked(self) -> "Page":
        self.tried()
        if self.plan() is not None:
            self.refuse_others()
            self.ask()
        return self.shown()

    def refuse_others(self) -> None:
        """Refuse a log folder with runs of another study, before the plan is shown; a local study
        has no logs.

        Raises:
            InputError: It holds some, or it cannot be read.
        """
        from selfprobe.errors import InputError
        from selfprobe.logs import logs_in, readable_logs, task_of
        from selfprobe.study._registry import tasks

        if self.local:
            return
        mine = self.reads | self.also
        for header in readable_logs(logs_in(self.base)).headers if self.base else ():
            if (task := task_of(header)) in tasks() and task not in mine:
                raise InputError(
                    f"{self.base} holds a run of {task}, which is of another study: give another --log-dir"
                )

    def tried(self) -> None:
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
        from selfprobe.study.waves import JOINS, all_ended_well, logged_runs, run_wave

        plan = self.plan()
        resumed = not all(map(is_whole, readable_logs(logs_in(self.base)).headers))
        if self.how.cost_limit is not None and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # The limit ends a run as Ctrl-C does, which the background of a shell ignores.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        busy.calls = busy.Calls(
            sum(cost.calls for cost in plan.costs) if plan else 0, most=self.how.cost_limit
        )
        asked_runs = []
        try:
            for wave in self.waves():
                limit = self.limit_of(wave)
                further = {**(JOINS if wave.further is None else wave.further), "limit": limit}
                folder = f"{self.base}/{wave.folder}".rstrip("/")
                logs = run_wave(
                    wave.runs,
                    folder,
                    title=wave.title,
                    settings=self.how,
                    resumed=resumed,
                    **further,
                )
                asked_runs += logged_runs(logs, limit)
        finally:
            busy.calls = busy.Calls()
        return all_ended_well(asked_runs)

    def limit_of(self, wave: Wave) -> int | None:
        """Number of items of each run of a wave; None is all."""
        limit: int | None = (wave.further or {}).get("limit", self.items)
        return limit

    def identities_in(self, wave: Wave) -> "list[Identity]":
        """The identities by which the runs of a wave are found."""
        from selfprobe.study.described import identities_of

        return identities_of(wave.runs)

    @property
    def limits(self) -> "dict[Identity, int | None]":
        """Identity of each run of the study → number of its items that count; None is all."""
        return {
            identity: self.limit_of(wave)
            for wave in self.waves()
            for identity in self.identities_in(wave)
        }

    def own_runs(self, limits: "Mapping[Identity, int | None]") -> "Runs":
        """The study's runs (`limits`); what else lies in its folder is set aside with the settings
        that differ.
        """
        from selfprobe.logs import runs

        there = runs([self.log_dir], sorted(self.reads | self.also), repeats=self.repeats)
        return there.of(limits).limited(limits)

    def collected(self) -> Logs:
        """The logs of the study's runs."""
        from selfprobe.logs import titles

        limits = self.limits
        return Logs(self.own_runs(limits), titles(limits), self.aside)

    def shown(self) -> "Page":
        """The page of the study's runs.

        Raises:
            NoLogs: No run ended well, or nothing in it could be read.
        """
        logs = self.collected()
        return with_runs(self.page(self.numbers(logs)), logs.runs)

    def written(self, page: "Page") -> str:
        """Write the study's page into `out`; returns the line that says where."""
        from selfprobe.page import write

        return f"Page: {write(page, self.out)}"

    def tell(self, *, as_json: bool, planned: bool) -> int:
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
            page = self.shown()
        except NoLogs as error:
            if not planned:
                raise
            raise RunError(str(error)) from None
        place = self.written(page)
        if as_json:
            options.echo_json(
                {stem: table.to_dict("records") for stem, table in page.frames.items()}
            )
        else:
            options.echo_lines([*([""] if planned else []), *page.lines, place])
        return 0

    @classmethod
    def reported(cls, paths: Sequence[str]) -> "Page":
        """The page of all logs of the study under these paths, each run named by the settings in
        which it differs.

        Raises:
            NoLogs: There is no finished one.
        """
        from selfprobe.errors import NoLogs
        from selfprobe.logs import first_of, runs, titles

        there = cls.comparable(runs(paths, cls.reads | cls.also))
        if not there.finished:
            aside = unfinished(there) | there.aside
            raise NoLogs(
                f"no finished log of {', '.join(sorted(cls.reads))}{first_of(aside)}", aside
            )
        logs = Logs(there, titles(run.identity for run in reversed(there.finished)))
        return with_runs(cls.page(cls.numbers(logs)), there)

    @classmethod
    def taken(cls, values: dict[str, Any]) -> Self:
        """A study of these values.

        Raises:
            InputError: One is wrong; names it, what is expected and what came.
        """
        from selfprobe.errors import InputError

        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            if isinstance(cause := first.get("ctx", {}).get("error"), InputError):
                raise cause from None
            place = "".join(f"--{str(part).replace('_', '-')}: " for part in first["loc"][:1])
            if first["type"] == "too_short":
                raise InputError(
                    f"{place}expected at least one name, with commas between several; got none"
                ) from None
            came = f", got {first['input']!r}" if place else ""
            raise InputError(f"{place}{first['msg'].removeprefix('Value error, ')}{came}") from None


def unfinished(there: "Runs") -> dict[str, str]:
    """Logs of runs that did not end well, or that were invalidated as a whole, with the reason."""
    return {run.log: run.why_unfinished for run in there.counted if not run.finished}


def with_runs(page: "Page", there: "Runs") -> "Page":
    """The page with its last section, "Runs", and the table `runs`: the logs that it is made of,
    and their settings.
    """
    import pandas as pd

    from selfprobe.page import LINES, Column, Log, Section, Table, set_aside
    from selfprobe.solvers.reply_notes import remarks_in

    rows: list[dict[str, Any]] = [
        {
            "task": run.identity.task,
            "model": run.identity.model,
            "items": len(run.items()),
            "log": Log(run.log),
        }
        | {
            "settings": "; ".join(
                f"{name} {value}" for name, value in run.identity.settings.items()
            )
        }
        for run in there.finished
    ]
    remarks = [
        f"{run.identity.task}, {line}"
        for run in there.finished
        for line in remarks_in(run.summaries)
    ]
    missing = [(run.identity, count) for run in there.finished if (count := run.missing_samples)]
    left_out = [
        f"{identity.task}, {identity.model}: {_left_out(count)}." for identity, count in missing
    ]
    names = ("task", "model", "items", "settings", "log")
    table = pd.DataFrame([row | {"log": row["log"].address} for row in rows], columns=names)
    aside = there.aside | unfinished(there)
    lines = [*there.invalidated_lines, *remarks]
    blocks = [
        *left_out,
        *lines,
        Table(rows, [Column(name, name) for name in names]),
        *set_aside(aside),
    ]
    sections = [*page.sections, Section("Runs", blocks, name="runs", menu="runs")]
    last = lines if len(lines) < 2 else [f"{lines[0]} {len(lines) - 1} more under Runs."]
    if missing:
        last = [
            f"{_left_out(sum(count for _, count in missing))}; the command of these runs asks again.",
            *last,
        ]
    notes = [*page.notes[: LINES - len(last)], *last]
    models = [*page.models, *(model for run in there.finished for model in run.identity.models)]
    return replace(
        page, sections=sections, tables={"runs": table, **page.tables}, notes=notes, models=models
    )


def _left_out(samples: int) -> str:
    """Words for samples that failed.

    >>> _left_out(1), _left_out(3)
    ('1 sample is left out, since its calls failed', '3 samples are left out, since their calls failed')
    """
    if samples == 1:
        return "1 sample is left out, since its calls failed"
    return f"{samples} samples are left out, since their calls failed"


class StudyCommand(click.Command):
    """A command whose help shows what is measured first, and then how calls are made."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments: a study without any takes a file in place of --config; other words
        are names to join.

        A list of names that is typed twice is refused: click takes the last one, and would drop the
        others in silence.
        """
        given, words, typed = self.make_parser(ctx).parse_args(list(args))
        for param in typed:
            if (
                isinstance(param.type, options.Names)
                and isinstance(param, click.Option)
                and typed.count(param) > 1
            ):
                raise click.UsageError(
                    f"{param.opts[0]} is typed twice; type it once, with commas: a,b", ctx
                )
        if not any(isinstance(param, click.Argument) for param in self.params):
            if len(words) == 1 and Path(words[0]).is_file():
                if (file := given.get("config", words[0])) != words[0]:
                    raise click.UsageError(
                        f"two configurations, {words[0]} and {file}; give one", ctx
                    )
                args = [
                    "--config",
                    words[0],
                    *(word for word in args if word not in ("--config", words[0])),
                ]
            elif words:
                remedy = "commas separate names, as in --models a,b,c"
                raise click.UsageError(f"unexpected {' '.join(words)}; {remedy}", ctx)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Two tables of options."""
        rows: dict[str, list[tuple[str, str]]] = {"Options": [], "How calls are made": []}
        for param in self.get_params(ctx):
            if (
                isinstance(param, click.Option)
                and (record := param.get_help_record(ctx)) is not None
            ):
                rows["How calls are made" if param.name in options.HOW else "Options"].append(
                    record
                )
        for title, records in rows.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


KINDS: Mapping[Any, str] = {bool: "flag", int: "whole", float: "number", dict: "settings"}


def described_study(study: type[Study]) -> dict[str, Any]:
    """A study's command as JSON holds it (`options.json`), so that help and wrong calls need no
    import of Inspect.
    """
    shared = [key for key in Study.model_fields if not study.model_fields[key].exclude]
    order = [*(key for key in study.model_fields if key not in Study.model_fields), *shared]
    options_ = [
        _described(info.alias or key, info)
        for key in order
        if not (info := study.model_fields[key]).exclude
    ]
    place = f"{study.__module__}:{study.__name__}"
    about = {
        "place": place,
        "help": unwrapped_docstring(inspect.getdoc(study) or ""),
        "options": options_,
        "skips": study.skips,
    }
    asks = not study.local and not {"models", "grader"}.isdisjoint(study.model_fields)
    return about | {
        "asks": asks,
        "runs": asks and study.waves is not Study.waves,
        "local": study.local,
    }


def _described(name: str, info: FieldInfo) -> dict[str, Any]:
    """A field as an option: its type, default and description. `examples=["SET"]` makes it an
    argument.
    """
    parts = [part for part in get_args(info.annotation) if part is not type(None)]
    kind = parts[0] if type(None) in get_args(info.annotation) else info.annotation
    listed = (
        "texts"
        if "repeated" in info.metadata
        else "names"
        if get_args(kind)[:1] == (str,)
        else "entries"
    )
    listed = "several weights" if "weights" in info.metadata else listed
    plain = "weights" if "weights" in info.metadata else KINDS.get(get_origin(kind) or kind, "text")
    edges = ("ge", "le", "gt", "lt")
    bounds = {
        edge: getattr(one, edge) for one in info.metadata for edge in edges if hasattr(one, edge)
    }
    choices = [str(one) for one in get_args(kind)] if get_origin(kind) is Literal else []
    option = {
        "name": name,
        "kind": listed if get_origin(kind) is tuple else "choice" if choices else plain,
        "argument": str(info.examples[0]) if info.examples else None,
        "required": info.is_required() or None,
        "default": None if info.is_required() else info.default,
        "help": info.description,
        "least": bounds.get("ge", bounds.get("gt")),
        "most": bounds.get("le", bounds.get("lt")),
        "between": not {"gt", "lt"}.isdisjoint(bounds) or None,
        "choices": choices or None,
    }
    return {key: value for key, value in option.items() if value is not None}


def command(name: str, about: Mapping[str, Any]) -> click.Command:
    """The command of a study: an option for each field; a plan is shown before anything is asked.

    Args:
        name: Name of the command.
        about: Description by `described_study`.
    """

    def call(as_json: bool, yes: bool = False, dry_run: bool = False, **values: Any) -> int:
        refuse_missing(values)
        if about["asks"]:
            refuse_impossible(values)
        module, _, attribute = str(about["place"]).partition(":")
        return _called(
            getattr(import_module(module), attribute),
            values,
            yes=yes,
            dry_run=dry_run,
            as_json=as_json,
        )

    made: Callable[..., Any] = call
    if about["runs"]:
        made = options.engine(options.asking(options.skip_errors(made) if about["skips"] else made))
    elif about["asks"]:
        made = options.paying(made)
    elif about["local"]:
        made = options.confirming(made)
    made = options.as_json(made)
    for one in reversed(about["options"]):
        made = _option(**one)(made)
    return click.command(name, cls=StudyCommand, help=about["help"])(options.config(made))


class Missing(click.ClickException):
    """A file or folder that a command is to read, or a model that it is to ask, cannot be there."""

    exit_code = 2


LOGS = ("logs", "folders")
"""Fields that hold paths alone."""
SETS = ("dataset", "against", "questions", "labels")
"""Fields that may hold the path of a file."""
MODELS = ("models", "model", "grader", "judges", "writer")
"""Fields that hold names of models as Inspect has them."""


def refuse_missing(values: Mapping[str, Any]) -> None:
    """Refuse a path where nothing is, before Inspect is imported; other faults of it are found
    later.
    """
    for name, value in values.items():
        for path in value if isinstance(value, list | tuple) else [value]:
            looked = name in LOGS or (
                name in SETS and isinstance(path, str) and FILE.fullmatch(path)
            )
            told = (
                looked
                and isinstance(path, str)
                and path.strip()
                and not {":", ",", "?", "="} & {*path}
            )
            if told and (why := nowhere(path)):
                raise Missing(why)


def refuse_impossible(values: Mapping[str, Any]) -> None:
    """Refuse a model that cannot be, before Inspect is imported; whether it can be had is found
    later.
    """
    if "inspect_ai" in sys.modules or ".py" in str(
        values
    ):  # whose users, and the user's files, may add providers
        return
    for field_ in MODELS:
        given = values.get(field_) or ()
        for entry in names(given) if isinstance(given, str) else given:
            name = entry.get("model") if isinstance(entry, Mapping) else entry
            if isinstance(name, str) and (why := impossible(name)):
                raise Missing(why)


def _called(
    study: type[Study], values: dict[str, Any], *, yes: bool, dry_run: bool, as_json: bool
) -> int:
    from selfprobe.errors import RunError
    from selfprobe.errors.output import refuse_unwritable
    from selfprobe.study.waves import RunSettings
    from selfprobe.text.safe import clean

    if "out" in values:
        refuse_unwritable(values["out"])
    settings = RunSettings.taken(values) if "prices" in values else RunSettings()
    listed = {
        key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
    }
    asked = study.taken({**listed, "settings": settings})
    if not dry_run:
        asked.tried()
    complete = True
    if (plan := asked.plan()) is not None:
        asked.refuse_others()
        costs = ["", *settings.costed(plan.costs, rounds=asked.rounds)] if plan.costs else []
        costs += settings.lasting(plan.costs, asked.shorter)
        echo("\n".join(map(clean, [*plan.lines, *costs])), err=as_json)
        if dry_run:
            return 0
        options.confirmed(yes or study.local)
        complete = asked.ask()
    elif dry_run or yes or settings not in (RunSettings(), RunSettings(skip_errors=False)):
        raise click.UsageError(f"options of a run (--yes, -M …) need {study.starts}")
    status = asked.tell(as_json=as_json, planned=plan is not None)
    if not complete and not status:
        raise RunError("runs failed, or nothing could be scored; see above")
    return status


def _option(
    name: str,
    kind: str,
    argument: str | None = None,
    required: bool = False,
    default: Any = None,
    help: str | None = None,
    least: Any = None,
    most: Any = None,
    between: bool = False,
    choices: Sequence[str] = (),
) -> Callable[..., Any]:
    flag = f"--{name.replace('_', '-')}"
    if argument:
        return click.argument(
            name, metavar=argument, required=required, nargs=-1 if kind == "names" else 1
        )
    if kind == "flag":
        return click.option(
            f"{flag}/--no-{flag[2:]}", default=default, show_default=True, help=help
        )
    if kind == "settings":
        more: dict[str, Any] = {
            "multiple": True,
            "callback": lambda ctx, param, value: dict(value),
            "hidden": not help,
        }
        short = ["-T"] if name == "args" else []
        return click.option(*short, flag, name, type=options.Assignment(), help=help, **more)
    types: dict[str, Callable[[], Any]] = {
        "names": lambda: options.Names(name.removesuffix("s")),
        "entries": lambda: options.Names(name.removesuffix("s"), mappings=True),
        "choice": lambda: options.SuggestingChoice(choices),
        "whole": lambda: options.Whole(least, most),
        "number": lambda: options.Number(least, most, min_open=between, max_open=between),
        "text": lambda: str,
        "weights": lambda: options.OneModel(options.open_model),
        "several weights": lambda: options.Names("model", check=options.open_model),
        "texts": lambda: str,
    }
    names = [flag, *({"models": ["--model"], "tasks": ["--run"]}.get(name, []))]
    further = (
        {"required": True}
        if required
        else {"default": default, "show_default": default not in (None, (), "")}
    )
    further["hidden"], further["multiple"] = help is None, kind == "texts"
    metavar = "N" if kind == "whole" else None
    return click.option(*names, name, type=types[kind](), help=help, metavar=metavar, **further)


STUDIES_FILE = Path(__file__).parent.parent / "studies" / "options.json"
"""Options of every study; `python -m selfprobe.studies` writes it anew (a test compares)."""


@cache
def commands(*names: str) -> dict[str, click.Command]:
    """The commands of these studies, without importing them."""
    known = json.loads(STUDIES_FILE.read_text(encoding="utf-8"))
    return {name: command(name, known[name]) for name in names}
