"""One study: its fields are its options, its YAML and its validation; from runs to numbers to a page.

    class Cues(Study): ...              # one file in selfprobe/studies/
    cues = command(Cues)                # -h, --config, --dry-run, --yes, --json, the plan, resuming, the exit status

`selfprobe report` shows the logs of every study in `STUDIES`, by the tasks that it reads.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

import click
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SkipValidation, ValidationError
from pydantic.fields import FieldInfo

from selfprobe import configuration, options

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample
    from inspect_ai.scorer import Score

    from selfprobe.described import DescribedRun
    from selfprobe.logs import Identity, Run, Runs
    from selfprobe.page import Page
    from selfprobe.prices import Cost
    from selfprobe.run_settings import RunSettings

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
Label = Literal["evaluation", "deployment"]
OneModel = Annotated[str, AfterValidator(options.one_model)]

STUDIES: "list[type[Study]]" = []
"""All studies that were imported."""


@dataclass(frozen=True)
class Wave:
    """Runs that may be made together."""

    runs: "Sequence[DescribedRun]"
    title: str
    """What the user reads above its progress."""
    folder: str = ""
    """Folder of its logs below the study's; "" is the study's own."""


@dataclass(frozen=True)
class Plan:
    """What a study will ask, before anything is asked."""

    lines: Sequence[str]
    """Items, models, and what is left out with its reason."""
    costs: "Sequence[Cost]"
    """Calls and tokens by model."""


@dataclass(frozen=True)
class Logs:
    """The logs of a study that are shown."""

    runs: "Runs"
    limit: int | None = None
    """Number of items of each run that are shown; None is all."""
    names: "dict[Identity, str]" = field(default_factory=dict)
    """Name of each run: its model, and the settings in which runs of one model differ."""
    aside: "Mapping[str, str]" = field(default_factory=dict)
    """Item → why it was not asked about, where the study knows it."""

    def scored(self) -> "Iterator[tuple[str, Run, EvalSample, Score]]":
        """Name, run, sample and score of each finished run."""
        from selfprobe.decision import last_score

        for run in sorted(self.runs.finished, key=lambda run: list(self.names).index(run.identity)):
            items = run.items(self.limit)
            for sample in run.samples:
                score = last_score(sample.scores)
                if score is not None and str(sample.id) in items:
                    yield self.names[run.identity], run, sample, score


class Study(BaseModel):
    """A question that is put to models. A wrong value is refused before anything is asked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reads: ClassVar[frozenset[str]]
    """Tasks whose logs it shows."""
    rounds: ClassVar[int] = 1
    """Calls that wait for one another, for the time that batches take."""

    limit: int | None = Field(None, ge=1, description=options.LIMIT_HELP)
    out: str = Field("report", description=options.OUT_HELP)
    log_dir: str = Field("logs", description=options.LOG_DIR_HELP)
    settings: Annotated[Any, SkipValidation] = Field(None, exclude=True)
    """How calls are made (`RunSettings`); None is the default."""

    def __init_subclass__(cls, **further: Any) -> None:
        super().__init_subclass__(**further)
        if "reads" in vars(cls):
            STUDIES.append(cls)

    @property
    def how(self) -> "RunSettings":
        """How calls are made."""
        from selfprobe.run_settings import RunSettings

        return self.settings or RunSettings()

    def waves(self) -> Iterator[Wave]:
        """The runs; a later wave may read an earlier one's logs."""
        raise NotImplementedError

    def plan(self) -> Plan:
        """What will be asked. No model is asked for it.

        Raises:
            InputError: The data cannot be read.
        """
        raise NotImplementedError

    @property
    def aside(self) -> Mapping[str, str]:
        """Item → why nothing is asked about it."""
        return {}

    @classmethod
    def numbers(cls, logs: Logs) -> Any:
        """What the logs say."""
        raise NotImplementedError

    @classmethod
    def page(cls, found: Any) -> "Page":
        """The answer, a picture, a small table; then details."""
        raise NotImplementedError

    def run(self) -> bool:
        """Ask what is not in the logs yet; True when all ended well and something could be scored.

        Raises:
            Interrupted: The user stopped it.
            InputError: A model cannot be had, or the log folder cannot be written.
        """
        from selfprobe.waves import JOINS, complete, run_wave

        logs = []
        for wave in self.waves():
            folder = f"{self.log_dir.rstrip('/')}/{wave.folder}".rstrip("/")
            further = {**JOINS, "limit": self.limit}
            logs += run_wave(wave.runs, folder, title=wave.title, settings=self.how, **further)
        return complete(logs)

    @property
    def identities(self) -> "list[Identity]":
        """What its own runs are found by."""
        from selfprobe.described import identities_of

        return identities_of(run for wave in self.waves() for run in wave.runs)

    def collected(self) -> Logs:
        """The logs of its own runs; what else lies in its folder is set aside with the settings that differ."""
        from selfprobe.logs import runs, titles

        mine = self.identities
        return Logs(runs([self.log_dir], self.reads).of(mine), self.limit, titles(mine), self.aside)

    def shown(self) -> "Page":
        """The page of its own runs.

        Raises:
            NoLogs: No run ended well, or nothing in it could be read.
        """
        return self.page(self.numbers(self.collected()))

    @classmethod
    def reported(cls, paths: Sequence[str]) -> "Page":
        """The page of all its logs under these paths, each run named by the settings in which it differs.

        Raises:
            NoLogs: There is no finished one.
        """
        from selfprobe.errors import NoLogs
        from selfprobe.logs import first_of, runs, titles

        there = runs(paths, cls.reads)
        if not there.finished:
            raise NoLogs(f"no finished log of {', '.join(sorted(cls.reads))}{first_of(there.aside)}", there.aside)
        return cls.page(cls.numbers(Logs(there, None, titles(run.identity for run in reversed(there.finished)))))

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
            place = "".join(f"--{str(part).replace('_', '-')}: " for part in first["loc"][:1])
            raise InputError(f"{place}{first['msg'].removeprefix('Value error, ')}, got {first['input']!r}") from None


class StudyCommand(click.Command):
    """A command whose help shows what is measured first, and then how calls are made."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Two tables of options."""
        rows: dict[str, list[tuple[str, str]]] = {"Options": [], "How calls are made": []}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                rows["How calls are made" if param.name in options.HOW else "Options"].append(record)
        for title, records in rows.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def command(study: type[Study], name: str | None = None) -> click.Command:
    """The command of a study: an option for each field; a plan is shown before anything is asked."""

    def called(yes: bool, dry_run: bool, as_json: bool, **values: Any) -> None:
        from selfprobe.errors import NoLogs, RunError
        from selfprobe.output import destination
        from selfprobe.page import write
        from selfprobe.run_settings import RunSettings
        from selfprobe.safe import clean

        destination(values["out"])
        settings = RunSettings.taken(values)
        listed = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        asked = study.taken({**listed, "settings": settings})
        plan = asked.plan()
        costs = settings.costed(plan.costs, rounds=asked.rounds)
        click.echo("\n".join(map(clean, [*plan.lines, "", *costs])), err=as_json)
        if dry_run:
            return
        options.confirmed(yes)
        complete = asked.run()
        try:
            page = asked.shown()
        except NoLogs as error:
            raise RunError(str(error)) from None
        address = write(page, asked.out)
        if as_json:
            options.echo_json({stem: table.to_dict("records") for stem, table in page.tables.items()})
        else:
            click.echo("\n".join(clean(line) for line in ["", *page.told, f"Page: {address}"]))
        if not complete:
            raise RunError("runs failed, or nothing could be scored; see above")

    made: Callable[..., Any] = options.as_json(options.asking(options.skip_errors(called)))
    shared = [key for key in Study.model_fields if key != "settings"]
    for key in reversed([*(key for key in study.model_fields if key not in Study.model_fields), *shared]):
        made = _option(key, study.model_fields[key])(made)
    made = configuration.config(made)
    return click.command(name or study.__name__.lower(), cls=StudyCommand, help=inspect.getdoc(study))(made)


def _option(name: str, info: FieldInfo) -> Callable[..., Any]:
    """A field as an option: its type, default and description. `examples=["SET"]` makes it an argument."""
    annotation = info.annotation
    parts = [part for part in get_args(annotation) if part is not type(None)]
    optional = type(None) in get_args(annotation)
    kind = parts[0] if optional else annotation
    required = info.is_required()
    default = None if required or optional else info.default
    if info.examples:
        return click.argument(name, metavar=str(info.examples[0]), required=required, nargs=-1 if _listed(kind) else 1)
    flag = f"--{name.replace('_', '-')}"
    if kind is bool:
        return click.option(f"{flag}/--no-{flag[2:]}", default=default, show_default=True, help=info.description)
    bounds = {name: getattr(one, name) for one in info.metadata for name in ("ge", "le") if hasattr(one, name)}
    least, most = bounds.get("ge"), bounds.get("le")
    if _listed(kind):
        typed: Any = options.Names(name.removesuffix("s"))
    elif get_origin(kind) is Literal:
        typed = options.Choice([str(one) for one in get_args(kind)])
    elif kind is int:
        typed = click.IntRange(least, most)
    elif kind is float:
        typed = options.Number(least, most)
    else:
        typed = str
    names = [flag, *({"models": ["--model"]}.get(name, []))]
    further = {"required": True} if required else {"default": default, "show_default": default not in (None, ())}
    metavar = "N" if kind is int else None
    return click.option(*names, name, type=typed, help=info.description, metavar=metavar, **further)


def _listed(kind: Any) -> bool:
    return get_origin(kind) is tuple


class Group(click.Group):
    """Commands and studies; a study is imported when it is called, since Inspect alone takes seconds.

    Help shows the whole first sentence of each, where click cuts it to a line.
    """

    def __init__(self, *args: Any, studies: Mapping[str, tuple[str, str]] | None = None, **further: Any) -> None:
        super().__init__(*args, **further)
        self.studies = studies or {}
        """Name → module and class, and the first sentence of the class's docstring (a test compares them)."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in order."""
        return sorted([*super().list_commands(ctx), *self.studies])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None."""
        if cmd_name not in self.studies:
            return super().get_command(ctx, cmd_name)
        module, _, name = self.studies[cmd_name][0].partition(":")
        return command(getattr(import_module(module), name), cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands."""
        rows = {name: one.get_short_help_str(limit=1000) for name, one in self.commands.items() if not one.hidden}
        rows |= {name: sentence for name, (_, sentence) in self.studies.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows.items()))
