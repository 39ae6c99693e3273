"""`selfprobe check`: a thin command line."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from selfprobe import options
from selfprobe.check import INCOMPLETE
from selfprobe.safe import echo

if TYPE_CHECKING:
    from collections import Counter

    from selfprobe.check.baseline import Kept
    from selfprobe.check.changes import Verdict
    from selfprobe.check.page import Complete, Gate
    from selfprobe.check.runs import Logged

MOST = 0.1
"""Share of unscored values in a run that is good."""
OF_LOGS = {
    *("logs", "most", "save", "baseline", "against", "smallest", "lower", "strict", "aa", "junit", "github"),
    *("as_json", "tasks"),
}
"""Parameters that are not about how --run asks."""


@click.command()
@click.argument("logs", nargs=-1)
@click.option(
    "--unscored",
    "most",
    type=options.Number(0, 1),
    metavar="SHARE",
    help=f"Largest share of unscored values in a run that is good.  [default: {MOST}; with a baseline its own]",
)
@click.option("--save", metavar="FILE.json", help="Write a baseline of LOGS: small, for git.")
@click.option("--baseline", metavar="FILE.json", help="Hold LOGS against it, item by item.")
@click.option("--against", metavar="LOGS2", help="Instead of --baseline: logs of before.")
@click.option(
    "--smallest",
    type=options.Number(0, min_open=True),
    metavar="CHANGE",
    default=0.05,
    show_default=True,
    help="The smallest change that matters.",
)
@click.option("--lower", type=options.Names("metric"), default="", help="Metrics of which less is better.")
@click.option("--strict", is_flag=True, help="End with 4 where a change of --smallest cannot be told.")
@click.option("--aa", type=options.COUNT, metavar="N", help="Say how often the verdict flips over N resamples.")
@click.option("--junit", metavar="FILE.xml", help="Write JUnit's XML.")
@click.option("--github", is_flag=True, help="Print annotations, and add to the step summary of a workflow.")
@options.as_json
@click.option("--run", "tasks", type=options.Names("task"), help="Instead of LOGS: run these tasks now.")
@click.option("--model", help="For --run: the model, as Inspect names it.")
@options.limit
@options.task_args
@click.option("--log-dir", help="For --run: folder of the logs.  [default: a new one in logs/check]")
@options.skip_errors
@options.engine
@options.asking
def check(logs: tuple[str, ...], tasks: list[str] | None, save: str | None, baseline: str | None, **given: Any) -> int:
    """Say by the exit status whether LOGS are complete and scored; for scripts, and for logs of any Inspect task.

    With --baseline or --against also whether a model got worse. 0 is good: complete, and not worse; 1 worse; 2 a wrong
    command; 3 incomplete: a run failed or lacks samples, nothing in it was scored, more is unscored than --unscored, a
    log cannot be read, or it is not of the baseline's task, data or items; 4 cannot tell (--strict). Of runs with
    the same task, models, arguments, settings and data the finished one with most samples counts, then the newest; one
    that failed since counts too.
    """
    from selfprobe.check.baseline import read
    from selfprobe.check.runs import load

    against: str | None = given.pop("against")
    _consistent(logs, tasks, baseline, against, save, given["model"])
    _refuse_unused(for_run=bool(tasks), for_gate=bool(baseline or against), resampled=bool(given["aa"]))
    earlier = load([against]) if against else None
    before = read(baseline) if baseline else _kept(earlier) if earlier else None
    _can_happen(given["smallest"], before)
    began = datetime.now(UTC).replace(microsecond=0)  # as logs have it
    if tasks:
        found = _run(tasks, before, given)
        if found is None:
            return 0
        logs = (found,)
    logged = load(logs)
    if tasks and (finished := _finished_before(began, logged)):
        told = f"Nothing was asked: the runs in {logs[0]} were finished at {finished}; a new folder asks anew"
        echo(told, err=given["as_json"])
    if before is not None:
        notes = [f"before: {line}" for line in earlier.left_out()] if earlier else []
        status = _gated(logged, before, notes + logged.left_out(), given)
    elif given["aa"]:
        status = _against_itself(logged, given)
    else:
        status = _judged(logged, MOST if given["most"] is None else given["most"], given)
    if status and save:
        echo(f"No baseline is saved of runs with status {status}", err=True)
    elif save:
        _save(logged, save, told=not given["as_json"])
    return status


def _consistent(
    logs: Sequence[str],
    tasks: Sequence[str] | None,
    baseline: str | None,
    against: str | None,
    save: str | None,
    model: str | None,
) -> None:
    """Refuse what does not go together."""
    if bool(logs) == bool(tasks):
        raise click.UsageError("give LOGS, or --run TASKS --model MODEL" + (", not both" if logs else ""))
    if tasks and not model:
        raise click.UsageError("--run needs a model: --model MODEL")
    if save is not None and not save.endswith(".json"):
        raise click.UsageError(f"a baseline is a .json file, got --save {save}")
    if baseline and against:
        raise click.UsageError("--baseline and --against are both what was before; give one of them")


def _can_happen(smallest: float, before: "list[Kept] | None") -> None:
    """Refuse a smallest change that no score can make."""
    values = [v for run in before or [] for cell in run.items.values() for one in cell.values() for v in one]
    numbers = [value for value in values if not isinstance(value, str)]
    if smallest > 1 and numbers and all(0 <= number <= 1 for number in numbers):
        raise click.UsageError(
            f"--smallest {smallest:g} is more than any change can be: what was before lies in 0 to 1; give a share "
            "such as .05"
        )


def _refuse_unused(*, for_run: bool, for_gate: bool, resampled: bool) -> None:
    """Refuse options that would have no effect."""
    context = click.get_current_context()
    given = {
        param.name: param.opts[0]
        for param in context.command.params
        if param.name and context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    }
    if not for_run and (alone := [flag for name, flag in given.items() if name not in OF_LOGS]):
        raise click.UsageError(f"{alone[0]} is for --run TASKS; with LOGS it has no effect")
    if not for_gate:
        idle = ("strict",) if resampled else ("strict", "lower", "smallest")
        if without := [given[name] for name in idle if name in given]:
            raise click.UsageError(
                f"{without[0]} is about a change; say from what: --baseline FILE.json or --against LOGS2"
            )
        if resampled and (files := [given[name] for name in ("junit", "github") if name in given]):
            raise click.UsageError(
                f"{files[0]} has nothing to say of --aa alone; give --baseline or --against, or leave --aa out"
            )


def _finished_before(began: datetime, logged: "Logged") -> str:
    """When the last of the runs had ended, where that was before this one began; else ""."""
    ends = [run.header.stats.completed_at for run in logged.runs]
    times = [datetime.fromisoformat(end) for end in ends if end]
    old = len(times) == len(ends) and not logged.broken and all(one < began for one in times)
    return f"{max(times):%Y-%m-%d %H:%M} UTC" if old and times else ""


def _judged(logged: "Logged", most: float, given: Mapping[str, Any]) -> int:
    """Say of each run whether it is good; the exit status."""
    from selfprobe.check.page import complete

    return _shown(complete(logged, most=most), given)


def _shown(found: "Complete | Gate", given: Mapping[str, Any]) -> int:
    """Print it, and write what --junit and --github ask for; the exit status."""
    from selfprobe.check import page
    from selfprobe.output import place_file

    if given["as_json"]:
        options.echo_json(found.fields())
    else:
        for line in found.lines():
            echo(line)
    if given["junit"]:
        place_file(page.junit(found), given["junit"])
    if given["github"]:
        for line in page.annotations(found):
            echo(line, err=given["as_json"])
        page.summarise(page.markdown(found))
    return found.status


def _gated(logged: "Logged", before: "list[Kept]", notes: list[str], given: Mapping[str, Any]) -> int:
    """Say what changed; the exit status."""
    from selfprobe.arguments import meant
    from selfprobe.check.changes import flips, resampled
    from selfprobe.check.page import gated
    from selfprobe.errors import InputError

    rule = {"smallest": given["smallest"], "lower": given["lower"]}
    after, incomplete = _now(logged, 1.0 if given["most"] is None else given["most"])
    gate = gated(before, after, **rule, strict=given["strict"], incomplete=incomplete, notes=notes)
    known = sorted({row.metric for row in gate.rows})
    if unknown := [name for name in given["lower"] if known and name not in known]:
        hint = meant(unknown[0], known)
        raise InputError(f"--lower {unknown[0]}: no such metric; there are {', '.join(known)}{hint}")
    status = _shown(gate, given)
    if given["aa"] and gate.rows:
        drawn = flips(resampled(gate.paired.pairs), given["aa"], **rule)
        _tell_flips(drawn, "resamples of the items", given["as_json"])
    return status


def _now(logged: "Logged", most: float) -> "tuple[list[Kept], dict[str, str]]":
    """The runs that can be compared, and those that are bad in themselves with the reason."""
    from selfprobe.check.baseline import kept
    from selfprobe.check.runs import checked
    from selfprobe.errors import InputError, one_line

    after, bad = [], dict(logged.broken)
    for run in logged.runs:
        if wrong := checked(run, most=most).wrong:
            bad[run.name] = "; ".join(wrong)
        try:
            after.append(kept(run))
        except InputError as error:
            bad.setdefault(run.name, one_line(error))
    return after, bad


def _against_itself(logged: "Logged", given: Mapping[str, Any]) -> int:
    """Say how often the epochs of runs differ from each other as a gate sees it; the exit status."""
    from selfprobe.check.changes import flips, halved

    runs, bad = _now(logged, 1.0 if given["most"] is None else given["most"])
    found = flips(halved(runs), given["aa"], smallest=given["smallest"], lower=given["lower"])
    _tell_flips(found, "deals of the epochs into before and after, where nothing changed", given["as_json"])
    for name, why in bad.items():
        echo(f"{name}  bad: {why}", err=given["as_json"])
    return INCOMPLETE if bad else 0


def _tell_flips(found: "Counter[Verdict]", of: str, as_json: bool) -> None:
    shares = ", ".join(f"{verdict} {count}" for verdict, count in found.most_common())
    echo(f"{found.total()} {of}: {shares}", err=as_json)


def _save(logged: "Logged", path: str, *, told: bool) -> None:
    """Write the baseline."""
    from selfprobe.check.baseline import save

    runs = _kept(logged)
    size = save(runs, path)
    if told:
        echo(f"Baseline: {path} ({len(runs)} run{'s' * (len(runs) != 1)}, {size / 1000:.0f} kB)")
        for line in [f"{run.name}: not in the baseline: {why}" for run in runs for why in run.left_out.values()]:
            echo(line)


def _kept(logged: "Logged") -> "list[Kept]":
    """The runs as a baseline keeps them.

    Raises:
        InputError: See `check.kept.kept`; or a log cannot be read.
    """
    from selfprobe.check.baseline import kept
    from selfprobe.errors import InputError

    if logged.broken:
        log, why = next(iter(logged.broken.items()))
        raise InputError(f"{log}: {why}")
    return [kept(run) for run in logged.runs]


def _run(tasks: Sequence[str], before: "list[Kept] | None", given: dict[str, Any]) -> str | None:
    """Run tasks; the folder of their logs, None where nothing was to be asked."""
    from selfprobe.check.run import describe, planned, run
    from selfprobe.run_settings import RunSettings

    settings = RunSettings.taken(given)
    plan = planned(tasks, given["model"], given["task_args"], limit=given["limit"], before=before)
    echo(describe(plan, settings), err=given["as_json"])
    if given["dry_run"]:
        return None
    options.confirmed(given["yes"])
    return run(plan, given["log_dir"], settings)
