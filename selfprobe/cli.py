"""The `selfprobe` command. Each subcommand lives beside what it does; the table says where.

Exit status: 0 fine, 1 a run failed or cells are missing, 2 the command or its input is wrong, 130
interrupted (Ctrl-C), 143 terminated and 129 hung up (SIGTERM and SIGHUP, which end a run as Ctrl-C
does); `check` has its own.
"""

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import click

from selfprobe.study import commands, options, refuse_missing
from selfprobe.study.options import epilog, with_examples
from selfprobe.text import busy
from selfprobe.text.safe import echo

FAILED_STATUS = 1
WRONG_INPUT_STATUS = 2
INTERRUPTED_STATUS = 130


class Command(NamedTuple):
    """One command: a line of the table `COMMANDS`."""

    address: str
    """Module and attribute, or `study:` and a study's name; imported when the command is called,
    since Inspect alone takes seconds.
    """
    help: str
    """First line of the command's docstring (a test compares them)."""


COMMANDS = {
    "awareness": Command(
        "selfprobe.studies.awareness.command:awareness",
        "Evaluation-awareness methods: five of them on the same conversations.",
    ),
    "check": Command(
        "study:check",
        "Say by the exit status whether LOGS are complete and scored; for scripts, and for logs of any Inspect task.",
    ),
    "doctor": Command(
        "selfprobe.cli:doctor",
        "Show what is set up here: versions, keys, extras, weights; and what each missing one would switch on.",
    ),
    "fetch-model": Command(
        "selfprobe.cli:fetch_model",
        "Fetch the weights of embedded/smollm2, or of the default embedder, once; verify them and print their path.",
    ),
    "matrix": Command("study:matrix", "Run every observer on every target."),
    "mechanism": Command(
        "selfprobe.studies:mechanism",
        "Why models can introspect: lens, attention, patching, induction (IntrospectBench, §5); injected thoughts.",
    ),
    "outcome": Command(
        "study:outcome",
        "Do models know in advance what they can do? Asks each about the items of LOGS, of any Inspect task.",
    ),
    "paper": Command(
        "selfprobe.papers.command:paper",
        "Make a paper's tables and figures from LOGS, with the paper's numbers beside them.",
    ),
    "probe": Command(
        "selfprobe.studies.probe:probe",
        "Latent-preference probes: what a judge model knows before it speaks.",
    ),
    "realism": Command(
        "selfprobe.studies:realism",
        "Can an evaluation be distinguished from real use, and how could it be made more realistic?",
    ),
    "report": Command(
        "selfprobe.cli:report", "Write one page of all that LOGS hold, with tables/ and figures/."
    ),
    "tasks": Command(
        "selfprobe.cli:list_tasks",
        "List the tasks: what each asks, its calls, what it needs, its paper; with NAME, its arguments.",
    ),
}

GROUPS = {
    "Ask models": ("matrix", "outcome", "awareness", "realism"),
    "Read models": ("probe", "mechanism"),
    "Read logs": ("report", "paper", "check"),
    "Setup": ("tasks", "doctor", "fetch-model"),
}
"""Names of the commands, grouped as help lists them."""

WORDS_OF_OTHER_PROGRAMS = {
    "help": "type selfprobe -h, or -h after a command: selfprobe matrix -h",
    "view": "logs are Inspect's: type inspect view --log-dir logs",
    "run": "type selfprobe matrix --models A,B,C,D,E, or for one task inspect eval "
    "selfprobe/kth_word --model A (selfprobe tasks lists them)",
    "eval": "type inspect eval selfprobe/kth_word --model A (selfprobe tasks lists them)",
    "list": "type selfprobe tasks",
    "version": "type selfprobe --version",
}
"""Commands that people type and that are none → what to type."""


class Selfprobe(click.Group):
    """The commands of `COMMANDS`, and the one place that turns errors into a line and an exit
    status.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].address.partition(":")
        if module == "study":
            command = commands(attribute)[attribute]
        else:
            command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command), COMMANDS[cmd_name]
        return with_examples(command, ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that was called; an unknown one is refused with the one that was meant."""
        name = args[0]
        if name in WORDS_OF_OTHER_PROGRAMS:
            raise click.UsageError(f"No such command {name!r}; {WORDS_OF_OTHER_PROGRAMS[name]}")
        if name not in COMMANDS and not name.startswith("-"):
            close_names = get_close_matches(name, COMMANDS, n=1)
            if close_names:
                remedy = f"did you mean {close_names[0]}?"
            else:
                remedy = f"there are {', '.join(sorted(COMMANDS))}"
            ctx.fail(f"No such command {name!r}; {remedy}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands without importing any of them."""
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name].help) for name in names])

    interrupt_status = INTERRUPTED_STATUS
    """The status after an interrupt."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run the command and end the process with its status."""
        _refuse_closed_output()
        _escape_unencodable_characters()
        with self._signals_handled(), _working_folder_exported():
            try:
                self._run(*args, **extra)
            except OSError as error:
                # After a hangup the terminal is gone, and click's line of an interrupt with it.
                if self.interrupt_status != INTERRUPTED_STATUS:
                    sys.exit(self.interrupt_status)
                if not _is_of_output(error):
                    raise
                # What waits to be written is not tried again.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                remedy = "free space there, or send it to another place"
                reason = f"cannot write to standard output ({error.strerror})"
                _end(f"Error: {reason}: {remedy}", FAILED_STATUS)

    def _run(self, *args: Any, **extra: Any) -> NoReturn:
        try:
            status = super().main(*args, **extra | {"standalone_mode": False})
        except click.Abort as abort:  # click's own words for Ctrl-C, Ctrl-D and a "no"
            cause = abort.__cause__ or abort.__context__
            if isinstance(cause, KeyboardInterrupt):
                _end(str(cause) or "Interrupted.", self.interrupt_status)
            _end("Aborted.", FAILED_STATUS)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(WRONG_INPUT_STATUS)
        except click.NoSuchOption as error:
            remedy = f"; did you mean {error.possibilities[0]}?" if error.possibilities else "."
            command_path = error.ctx.command_path if error.ctx else "selfprobe"
            tip = f" ({command_path} -h shows what it takes)"
            _end(f"Error: {error.message.rstrip('.')}{remedy}{tip}", WRONG_INPUT_STATUS)
        except click.UsageError as error:
            tip = f" ({error.ctx.command_path} -h shows what it takes)" if error.ctx else ""
            _end(f"Error: {error.format_message()}{tip}", WRONG_INPUT_STATUS)
        except click.ClickException as error:
            _end(f"Error: {error.format_message()}", error.exit_code)
        except _user_errors() as error:
            from selfprobe.errors import LONGEST_OWN_MESSAGE, InputError, RunError, one_line
            from selfprobe.errors.output import with_typed_paths

            message = with_typed_paths(one_line(error, longest=LONGEST_OWN_MESSAGE))
            status = WRONG_INPUT_STATUS
            if isinstance(error, RunError):
                status = FAILED_STATUS
            elif isinstance(error, InputError):
                status = error.exit_status
            _end(f"Error: {message}", status)
        sys.exit(status if isinstance(status, int) else 0)

    @contextmanager
    def _signals_handled(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self.interrupt_status = INTERRUPTED_STATUS
        earlier_handlers = {signal.SIGTERM: signal.getsignal(signal.SIGTERM)}
        hangup = getattr(signal, "SIGHUP", None)  # Windows has none
        if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:  # nohup asks for that
            earlier_handlers[hangup] = signal.getsignal(hangup)
        for number in earlier_handlers:
            signal.signal(number, self._terminate)
        try:
            yield
        finally:
            for number, handler in earlier_handlers.items():
                signal.signal(number, handler)

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        """End as Ctrl-C does: in a run by the event loop's own handler, which lets Inspect close
        its logs.
        """
        self.interrupt_status = 128 + number
        interrupt = signal.getsignal(signal.SIGINT)
        if not callable(interrupt):  # ignored in the background of a shell
            raise KeyboardInterrupt
        interrupt(signal.SIGINT, frame)


@contextmanager
def _working_folder_exported() -> Iterator[None]:
    """`$PWD` as a shell sets it: a program that starts this one in another folder hands its own on."""
    try:
        folder = str(Path.cwd())
    except OSError:
        reason = "the current folder is not there any more: change into one that is"
        _end(f"Error: {reason}", WRONG_INPUT_STATUS)
    exported_folder = os.environ.get("PWD")
    is_right = False
    if exported_folder and Path(exported_folder).is_dir():
        is_right = Path(exported_folder).samefile(folder)
    if not is_right:
        os.environ["PWD"] = folder
    try:
        yield
    finally:
        if exported_folder is None:
            os.environ.pop("PWD", None)
        else:
            os.environ["PWD"] = exported_folder


def _user_errors() -> tuple[type[Exception], ...]:
    """The errors that are a line for the user. Imported when one is raised: Inspect takes seconds."""
    from selfprobe.errors import RunError
    from selfprobe.errors.inspect_private import PrerequisiteError

    return PrerequisiteError, RunError


def _refuse_closed_output() -> None:
    """Have a standard output that is closed (`>&-`) fail when it is written, where Python writes
    nothing at all.
    """
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")


def _escape_unencodable_characters() -> None:
    """Have characters that an output's encoding lacks written as escapes: on Windows a pipe has
    cp1252, without `−`.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _is_of_output(error: OSError) -> bool:
    """Whether click could not write what it was to print, and no other file is at fault."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame.f_code is click.echo.__code__


def _end(message: str, status: int) -> NoReturn:
    echo(" ".join(message.split()), err=True)
    sys.exit(status)


@click.group(
    "selfprobe",
    cls=Selfprobe,
    epilog=epilog(""),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="selfprobe")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Measure what a language model knows about itself."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False


@click.command()
@click.argument("name", default="smollm2")
def fetch_model(name: str) -> None:
    """Fetch the weights of embedded/smollm2, or of the default embedder, once; verify them and
    print their path.

    NAME is smollm2 (the default, 98 MB) or all-MiniLM-L6-v2 (the embedder, 91 MB).
    """
    from selfprobe.embed.weights import MODELS, fetch
    from selfprobe.errors import InputError
    from selfprobe.errors.arguments import nearest_name_hint

    if name not in MODELS:
        raise InputError(
            f"NAME must be one of {', '.join(MODELS)}, got {name!r}{nearest_name_hint(name, MODELS)}"
        )
    echo(fetch(MODELS[name]))


@click.command()
@click.argument("logs", nargs=-1, required=True)
@options.out("report")
@click.option(
    "--rows",
    metavar="FILE",
    help="Write every decision as a row into this file (.csv, .json, .parquet) in place of the page: what was asked, "
    "predicted, true, and why it is unscored.",
)
@options.as_json
def report(logs: tuple[str, ...], out: str, rows: str | None, as_json: bool) -> None:
    """Write one page of all that LOGS hold, with tables/ and figures/.

    LOGS are logs, or folders of logs; or folders of `probe run`, one a model, or FAMILY=FOLDER,
    which stand side by side.
    """
    refuse_missing({"logs": logs})
    if rows:
        from selfprobe.studies.report import place_rows

        echo(place_rows(logs, rows))
        return
    from selfprobe.errors import RunError
    from selfprobe.errors.output import refuse_unwritable
    from selfprobe.page import write
    from selfprobe.studies.report import report_page

    refuse_unwritable(out)  # a wrong address shows before the work
    with busy.status_line():
        page = report_page(logs)
        address = write(page, out)
    if as_json:
        options.echo_json({name: table.to_dict("records") for name, table in page.frames.items()})
    else:
        options.echo_lines([*page.lines, f"Report: {address}"])
    for line in page.holes:
        echo(f"  hole: {line}", err=True)
    if page.holes:
        raise RunError("some cells are holes; the report names them")


@dataclass(frozen=True)
class ListedTask:
    """A task as the list shows it."""

    name: str
    """Name that `inspect eval` takes."""
    asks: str
    """First line of its file."""
    calls: int | None
    """Number of calls for one item with the default arguments, of a model on itself, without a
    grader's; None where nobody has counted.
    """
    needs: tuple[str, ...]
    """Options without which it does not run, besides the model."""
    paper: str | None
    """Name of the paper that it is from."""


def listed_tasks() -> list[ListedTask]:
    """All tasks by name."""
    from selfprobe.study._registry import tasks

    return sorted(map(_listed, tasks()), key=lambda task: task.name)


def _listed(name: str) -> ListedTask:
    from selfprobe.errors.arguments import INSPECT_NAME_BY_TASK
    from selfprobe.study._registry import declared_calls, measures, needs_of, paper_of, summary_of
    from selfprobe.study.awareness_methods import CALLS
    from selfprobe.study.described import rehearsed_calls

    question = summary_of(name).partition(": ")[2]
    if name in CALLS:
        call_count: int | None = 1 + CALLS[name]
    elif name in measures():
        call_count = rehearsed_calls(name, {}).every_call.count
    else:
        call_count = declared_calls(name)
    return ListedTask(
        name=f"selfprobe/{INSPECT_NAME_BY_TASK.get(name, name)}",
        asks=question[:1].upper() + question[1:],
        calls=call_count,
        needs=needs_of(name),
        paper=paper_of(name),
    )


@click.command("tasks")
@click.argument("name", required=False)
@options.as_json
def list_tasks(name: str | None, as_json: bool) -> None:
    """List the tasks: what each asks, its calls, what it needs, its paper; with NAME, its arguments.

    Calls are those of one item with the default arguments, where the model is asked about itself.
    """
    if name is not None:
        _show_task(name, as_json)
        return
    listed = listed_tasks()
    if as_json:
        options.echo_json(listed)
        return
    width = max(len(task.name) for task in listed)
    paper_width = max(len(task.paper or "–") for task in listed)
    echo(f"{'task':{width}}  {'paper':{paper_width}}  calls  asks")
    for task in listed:
        calls = "–" if task.calls is None else task.calls
        needs = f" Needs {' and '.join(task.needs)}." if task.needs else ""
        echo(
            f"{task.name:{width}}  {task.paper or '–':{paper_width}}  {calls:>5}  {task.asks}{needs}"
        )


def _show_task(name: str, as_json: bool) -> None:
    """Print what a task asks, its arguments with their defaults, and one command that runs it."""
    from selfprobe.errors import InputError
    from selfprobe.errors.arguments import INSPECT_NAME_BY_TASK, unknown_names_fault
    from selfprobe.study._registry import short_name, tasks
    from selfprobe.study.task_sheet import task_arguments, task_example

    task_name = short_name(name)
    if task_name not in tasks():
        table_names = sorted(INSPECT_NAME_BY_TASK.get(short, short) for short in tasks())
        raise InputError(f"no task {unknown_names_fault([task_name], table_names)}")
    task = _listed(task_name)
    arguments = task_arguments(task_name)
    example = task_example(task_name)
    if as_json:
        options.echo_json(
            {"task": task, "arguments": arguments, "example": example},
        )
        return

    echo(f"{task.name}: {task.asks}")
    facts = [f"{task.calls} calls an item with the defaults"]
    if task.paper is not None:
        facts.insert(0, f"from the paper on {task.paper}")
    if task.needs:
        facts.append(f"needs {' and '.join(task.needs)}")
    echo(f"({'; '.join(facts)})\n")
    rows = [(argument.label, argument.help) for argument in arguments]
    formatter = click.HelpFormatter(width=100, max_width=100)
    formatter.write_dl(rows, col_max=34)
    echo(formatter.getvalue())
    echo(f"Example:  {example}")


@click.command()
@options.as_json
def doctor(as_json: bool) -> None:
    """Show what is set up here: versions, keys, extras, weights; and what each missing one would
    switch on.

    Nothing is fetched, and no model is asked. The exit status is 0, whatever is missing.
    """
    from selfprobe.study.setup_state import setup_parts

    parts = setup_parts()
    if as_json:
        options.echo_json(parts)
        return
    for part in parts:
        if part.is_here:
            echo(f"here     {part.name}")
        else:
            echo(f"missing  {part.name}: {part.switches_on}; {part.remedy}")
