"""One wave of runs by Inspect's `eval_set`, for every study: its settings, display and end.

Inspect's own display prints hundreds of lines: while it runs where there is no terminal, and all
metrics of each run at its end where there is one. Here it is a line each time another tenth of the
samples is done, and for runs that failed their first error.
"""

import asyncio
import errno
import gc
import math
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, fields
from functools import cache, partial
from pathlib import Path, PurePath
from typing import Any

from fsspec.core import url_to_fs
from inspect_ai import Task, eval_set, task_with
from inspect_ai.log import EvalLog
from inspect_ai.model import (
    GenerateConfig,
    Model,
    ModelConfig,
    ModelInfo,
    get_model,
    get_model_info,
    set_model_info,
)
from inspect_ai.solver import TaskState

from selfprobe.data.prices import Cost, Prices, cost_table, dollars, read_prices
from selfprobe.data.samples import at_most
from selfprobe.errors import InputError, Interrupted, one_line
from selfprobe.errors.arguments import FULL, SAME_MODEL, SHORT
from selfprobe.errors.inspect_private import (
    PrerequisiteError,
    done_samples_logged,
    has_registry_params,
    registry_params,
    sets_complete_only,
)
from selfprobe.logs import (
    Identity,
    Run,
    cause,
    counted,
    cut_in,
    identified,
    identity_of,
    is_whole,
    logs_in,
    metrics_in,
    other_version,
    readable_logs,
    restore,
    roles_of,
    short_task,
    task_of,
    transcripts,
    unscored_in,
    values_of,
    without_request,
)
from selfprobe.logs import runs as runs_in
from selfprobe.logs.resuming import WaveRun, answered_events, claimed, forget_replies, replies_kept
from selfprobe.solvers.reply_notes import inline_thoughts_in
from selfprobe.solvers.sent import every_model_heard
from selfprobe.study.described import DescribedRun, NamedModel, available_model, identities_of
from selfprobe.study.on_ray import (
    RayCluster,
    ShareLine,
    other_runs,
    place_logs,
    requested_cluster,
    run_on_ray,
    shares_of,
)
from selfprobe.study.progress import Progress, on_scored, sample_count, watch
from selfprobe.text import busy
from selfprobe.text.safe import echo

SHORT_REPLY = 100
"""Tokens of replies that the plan of a slow run names."""


def _minutes(seconds: float) -> str:
    return (
        f"{seconds / 60:,.0f} minutes"
        if seconds >= 90
        else "a minute"
        if seconds >= 30
        else "half a minute"
    )


@dataclass(frozen=True)
class RunSettings:
    """The options of `options.asking`, and --skip-errors and those of `options.engine` where a
    command has them.
    """

    model_args: Mapping[str, Any] = field(default_factory=dict)
    """Model arguments of the measured models; graders have none."""
    max_connections: int | None = None
    attempt_timeout: int | None = None
    """Seconds; None is the default, ask.DEFAULT_RETRIES."""
    max_retries: int | None = None
    batch: bool | None = None
    """Send calls in batches."""
    skip_errors: bool | None = None
    """Leave items out whose calls fail for good: unscored, "error"; None where a command cannot."""
    same_model: bool = False
    """Leave replies of another model than the one that was asked unscored."""
    prices: Prices = field(default_factory=dict)
    cost_limit: float | None = None
    """Dollars of calls at which a command stops."""
    display: str | None = None
    engine: RayCluster | None = None
    """Engine that makes described runs; None is this process."""

    @classmethod
    def taken(cls, options: dict[str, Any]) -> "RunSettings":
        """Take these options out of what a command was given.

        Raises:
            InputError: The file of prices is none, or options of where runs are made do not go
                together.
        """
        cluster = requested_cluster(options.pop("engine", None), options.pop("ray_address", None))
        own = {one.name: options.pop(one.name) for one in fields(cls) if one.name in options}
        if own.get("cost_limit") and (not own["prices"] or cluster):
            raise InputError(
                "--cost-limit needs --prices, a file of what calls cost, and goes without --engine ray"
            )
        return cls(**own | {"prices": read_prices(own["prices"]), "engine": cluster})

    @property
    def shared(self) -> dict[str, Any]:
        """Arguments that every task of the command is run with."""
        return {SAME_MODEL: True} if self.same_model else {}

    def costed(self, costs: Sequence[Cost], *, rounds: int) -> list[str]:
        """Lines of text with the costs of the runs.

        Args:
            costs: One entry a model.
            rounds: Calls that wait for one another, for the time that batches take.

        Raises:
            InputError: A name is no model's, whatever keys there are.
        """
        for cost in costs:
            NamedModel(cost.model).refuse_impossible()
        if self.cost_limit and (
            unknown := [cost.model for cost in costs if math.isnan(dollars(cost, self.prices))]
        ):
            raise InputError(f"--cost-limit needs the price of {unknown[0]} in --prices")
        return cost_table(costs, self.prices, rounds=rounds if self.batch else None)

    def lasting(self, costs: Sequence[Cost], shorter: Sequence[Cost] = ()) -> list[str]:
        """Durations of the calls of embedded models on this machine, from two calls that are timed;
        a line each.

        Args:
            costs: One entry a model.
            shorter: Costs with replies of at most SHORT_REPLY tokens; none where that cannot be
                chosen.
        """
        lines = []
        for cost in costs if self.engine is None else ():
            if cost.calls and cost.model.startswith("embedded/"):
                from selfprobe.providers.embedded import (
                    EmbeddedAPI,
                )  # brings the openai package: half a second

                api = available_model(cost.model, memoize=False, **self.model_args).api
                assert isinstance(api, EmbeddedAPI)
                read, written = asyncio.run(api.pace())
                whole, *less = (
                    _minutes(one.tokens_in / read + one.tokens_out / written)
                    for one in (cost, *(each for each in shorter if each.model == cost.model))
                )
                tip = (
                    f"; --reply-tokens {SHORT_REPLY} makes it {less[0]}"
                    if less and less[0] != whole
                    else ""
                )
                lines.append(f"{cost.model}: about {whole} on this machine{tip}")
        return lines

    def tried(self, *models: NamedModel) -> None:
        """Open models that a later wave needs, before anything is paid; on a cluster their keys are
        on the nodes.

        Raises:
            InputError: One cannot be had.
        """
        for model in models if self.engine is None else ():
            model.open()

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments for `eval_set`; None is its default."""
        same = ("max_connections", "attempt_timeout", "max_retries", "batch", "display")
        return {name: getattr(self, name) for name in same} | {
            "fail_on_error": False if self.skip_errors else None,
            "model_cost_config": dict(self.prices) or None,
        }


SHOWN = 10
"""Models whose first error is shown; the others are counted."""

JOINS: Mapping[str, Any] = {"log_dir_allow_dirty": True}
"""Arguments of a wave whose folder further models or arguments may join."""

ONE_PASS: Mapping[str, Any] = {"retry_attempts": 1, "retry_immediate": False, "retry_on_error": 3}
"""Arguments of every wave.

A failed sample is asked again at once, so that a passing fault of a provider does not cost a model
its run. A failed run is not: its samples would be new ones, to which the replies of the failed ones
do not belong.
"""

REFUSED = re.compile(
    r"\b(Authentication|PermissionDenied|NotFound|BadRequest)\w*Error\b|\b40[0134]\b|refused a call"
)
"""Errors that the same call meets again: a wrong key, model or request."""


def run_wave(
    runs: Sequence[Task | DescribedRun],
    log_dir: str,
    *,
    title: str,
    settings: RunSettings,
    resumed: bool = False,
    **further: Any,
) -> list[EvalLog]:
    """Run tasks, or what is left of them where logs are there; the headers of their logs.

    Args:
        runs: Each with its model; for a cluster, all are described.
        log_dir: Folder of this wave's logs, local or any fsspec path.
        title: What the user reads above its progress.
        settings: How and where they are asked, and what is shown.
        resumed: Whether an earlier start of the study broke off: how many of its replies are used
            is then told.
        further: Arguments of `eval_set`, e.g. limit or JOINS; None is its default.

    Raises:
        Interrupted: The user stopped it: no further wave may start.
        InputError: The folder cannot be written, is in use, or holds logs of other runs; or a model
            cannot be had.
        RunError: A task of the cluster was killed again and again.
    """
    with claimed(log_dir):
        if resumed:
            described = [run for run in runs if isinstance(run, DescribedRun)]
            _tell_kept(described, log_dir, further.get("limit"))
        return _run_wave(runs, log_dir, title, settings, further)


def _run_wave(
    runs: Sequence[Task | DescribedRun],
    log_dir: str,
    title: str,
    settings: RunSettings,
    further: dict[str, Any],
) -> list[EvalLog]:
    progress = Progress(title, len(runs))
    chosen = {
        name: value for name, value in (settings.arguments | further).items() if value is not None
    }
    # Scores of half a run say nothing, and computing them after every sample is work.
    given = {**ONE_PASS, "score_display": False, **chosen}
    described = [run for run in runs if isinstance(run, DescribedRun)]
    try:
        if settings.engine and len(described) == len(runs):
            logs = _on_cluster(described, log_dir, given, settings.engine, progress)
        else:
            with at_most(given.get("limit")):
                tasks = [run.build() if isinstance(run, DescribedRun) else run for run in runs]
            logs = _here(tasks, log_dir, given, progress)
    except KeyboardInterrupt:
        raise _interrupted(runs, log_dir) from None
    done = sum(log.status == "success" for log in logs)
    echo(f"  {done} of {len(runs)} runs done ({progress.clock()})", err=True)
    _tell(logged_runs(logs, further.get("limit")), skip_errors=settings.skip_errors)
    return logs


def logged_runs(logs: Sequence[EvalLog], limit: int | None) -> list[Run]:
    """The runs of a wave's logs, each with the items that a limit takes; None is all."""
    return [Run(log, identity_of(log), limit=limit) for log in logs]


def _tell_kept(described: Sequence[DescribedRun], log_dir: str, limit: int | None) -> None:
    """A line on the replies of an earlier start; the progress then counts the calls that are left."""
    restore(log_dir)
    limits = dict.fromkeys(identities_of(described), limit)
    there = runs_in(logs_in(log_dir), {run.task for run in described}).of(limits).limited(limits)
    if kept := sum(map(_replies_in, there.counted)):
        busy.calls.expected = max(busy.calls.expected - kept, 0)
        used = (
            "1 reply of the earlier start is"
            if kept == 1
            else f"{kept:,} replies of the earlier start are"
        )
        echo(f"{used} used; at most {busy.calls.expected:,} calls are left", err=True)


def _replies_in(run: Run) -> int:
    """Number of replies that a resumed run takes from its log."""
    items = run.items()
    counted_samples = [sample for sample in transcripts(run.log) if str(sample.id) in items]
    return sum(1 for sample in counted_samples for _ in answered_events(sample))


def _here(
    tasks: Sequence[Task], log_dir: str, options: dict[str, Any], progress: Progress
) -> list[EvalLog]:
    if options.setdefault("display", "none") == "none":
        progress.samples[0] = sample_count(tasks, options.get("limit"))
        watch(tasks, partial(progress.note, 0))
        progress.announce()
        with busy.status_line(progress.line):
            return _asked(tasks, log_dir, options)
    return _asked(tasks, log_dir, options)


def _on_cluster(
    runs: Sequence[DescribedRun],
    log_dir: str,
    options: dict[str, Any],
    cluster: RayCluster,
    progress: Progress,
) -> list[EvalLog]:
    """Each model's runs as a task of the cluster, with a folder of its own in `log_dir`."""
    if options.setdefault("display", "none") != "none":
        raise InputError(
            f"Inspect's display shows one process: leave --display {options['display']} out"
        )
    log_dir = log_dir if "://" in log_dir else str(Path(log_dir).absolute())
    options["log_buffer"] = (
        1  # another machine has the log alone, and not what waits to be written into it
    )
    shares = shares_of(runs)
    place_logs(shares, log_dir, dirty=bool(options.get("log_dir_allow_dirty")))
    return run_on_ray(shares, partial(_share, options), log_dir, progress, address=cluster.address)


def _share(
    options: dict[str, Any], runs: Sequence[DescribedRun], log_dir: str, line: ShareLine
) -> list[EvalLog]:
    with at_most(options.get("limit")):
        tasks = [run.build() for run in runs]
    line.begin(sample_count(tasks, options.get("limit")))
    watch(tasks, line.done)
    return _asked(tasks, log_dir, options)


def _asked(tasks: Sequence[Task], log_dir: str, options: Mapping[str, Any]) -> list[EvalLog]:
    """Inspect's `eval_set` in this process.

    Raises:
        KeyboardInterrupt: It was stopped; its logs are closed.
        InputError: See `run_wave`.
    """
    if options.get("batch"):
        _tell_batchless(tasks)
        _restart_batches(tasks)
    for name in options.get("model_cost_config") or ():
        if (
            get_model_info(name) is None
        ):  # Inspect refuses the price of a model that is not in its list
            set_model_info(name, ModelInfo())
    tasks = _as_there(tasks, log_dir)
    on_scored(tasks, _forget)
    wave_runs = list(map(_wave_run, tasks))
    if options.get("log_dir_allow_dirty"):
        _tell_versions(wave_runs, log_dir)
    if (
        not gc.get_freeze_count()
    ):  # else each full collection walks all that was imported: half a second, and often
        gc.freeze()
    try:
        # Where nothing is left to ask, Inspect says so on standard output, which is for results.
        told_to = sys.stderr if options.get("display") == "none" else sys.stdout
        with (
            replies_kept(log_dir, wave_runs),
            sets_complete_only(is_whole),
            done_samples_logged(),
            every_model_heard(),
            redirect_stdout(told_to),
        ):
            _, logs = eval_set(
                list(tasks),
                log_dir=log_dir,
                **{"max_tasks": len(tasks), "retry_cleanup": False, **options},
            )
            _sweep(logs, log_dir)
    except PrerequisiteError as error:
        raise InputError(_refusal(error, log_dir, wave_runs)) from None
    except (OSError, sqlite3.Error) as error:
        raise InputError(_unwritable(error, log_dir)) from None
    if len(logs) < len(tasks) or any(log.status == "cancelled" for log in logs):
        raise KeyboardInterrupt
    return logs


def _tell_versions(wave_runs: Sequence[WaveRun], log_dir: str) -> None:
    """A line for each task whose version rose since its runs in a folder were made."""
    versions = {run.identity: run.version for run in wave_runs}
    headers = [
        header for header in readable_logs(logs_in(log_dir)).headers if header.status == "success"
    ]
    others = [other_version(header, versions) for header in headers]
    for other in filter(None, dict.fromkeys(others)):
        echo(f"{log_dir} holds logs of {other}: what changed is asked anew", err=True)


def _wave_run(task: Task) -> WaveRun:
    return WaveRun(
        _identity(task), str(task.version), frozenset(str(sample.id) for sample in task.dataset)
    )


def _identity(task: Task) -> Identity:
    """The identity by which the log of a task's run is found, as `DescribedRun.identified`."""
    roles = {
        role: of if isinstance(of, list) else [of] for role, of in (task.model_roles or {}).items()
    }
    bound = {role: [_described(model) for model in models] for role, models in roles.items()}
    evaluated = _described(task.model)
    evaluated = evaluated.model_copy(update={"config": task.config.merge(evaluated.config)})
    args = (
        registry_params(task) if has_registry_params(task) else {}
    )  # a task of a script may be no @task
    return identified(short_task(task.name), evaluated, bound, args, task.metadata or {})


def _described(model: str | Model | None) -> ModelConfig:
    if isinstance(model, Model):
        return ModelConfig(model=str(model), config=model.config, args=model.model_args)
    return ModelConfig(model=str(model), config=GenerateConfig(), args={})


def _forget(task: Task, state: TaskState) -> None:
    """Let the replies of a sample go, unless one of the scorers of its task failed: it is then
    asked again.
    """
    if len(state.scores or {}) >= len(task.scorer or []):
        forget_replies(state.uuid)


def _as_there(tasks: Sequence[Task], log_dir: str) -> Sequence[Task]:
    """The tasks, each under the name that its own log in the folder has, which may be the short
    one: it finds that.
    """
    if not any(short_task(task.name) in FULL for task in tasks):
        return tasks
    names = dict(filter(None, map(_short_name, logs_in(log_dir))))

    def name(task: Task) -> str:
        roles = {
            role: of if isinstance(of, list) else [of]
            for role, of in (task.model_roles or {}).items()
        }
        return names.get(_run(task.name, task.model, roles, registry_params(task)), task.name)

    return [
        task_with(task, name=name(task)) if short_task(task.name) in FULL else task
        for task in tasks
    ]


@cache
def _short_name(log: str) -> tuple[str, str] | None:
    """Run of a log and its task's name, where that is a short one; read once a process, since
    neither changes.
    """
    for header in readable_logs([log]).headers:
        made = header.eval
        if task_of(header) in FULL and made.task.rpartition("/")[2] not in SHORT:
            roles = {role: [one.model for one in of] for role, of in roles_of(header).items()}
            return _run(made.task, made.model, roles, made.task_args_passed), made.task
    return None


def _run(
    task: str, model: object, roles: Mapping[str, Sequence[object]], args: Mapping[str, Any]
) -> str:
    """What the logs of one run have in common, whichever name they have."""
    models = [(role, list(map(str, roles[role]))) for role in sorted(roles)]
    return str((short_task(task), str(model), models, sorted(args.items())))


def _sweep(logs: Sequence[EvalLog], log_dir: str) -> None:
    """Remove earlier logs of the same runs, whose samples these hold.

    Inspect's own sweep keeps the file with the latest time, and so removed the new log where the
    clock was set back.
    """
    kept = {log.eval.task_id: log.eval.eval_id for log in logs if log.status != "cancelled"}
    system, _ = url_to_fs(log_dir)
    for old in readable_logs([log_dir]).headers:
        if (
            kept.get(old.eval.task_id, old.eval.eval_id) != old.eval.eval_id
            and old.status != "started"
        ):
            system.rm(old.location)


def _unwritable(error: OSError | sqlite3.Error, log_dir: str) -> str:
    """Error text for something that could not be written: a log, or Inspect's files of a run in the
    home folder.
    """
    buffer = (
        "Inspect keeps what is under way below the home; set XDG_DATA_HOME to a folder with space"
    )
    if isinstance(error, sqlite3.Error):
        return f"cannot keep what is under way ({one_line(error)}): {buffer}"
    if error.errno == errno.ENOSPC and error.filename is None:  # whose file it was nobody knows
        return f"the disk is full (logs go into {log_dir}): free space. {buffer}"
    place, logs = error.filename, str(Path(log_dir).absolute())
    if (
        isinstance(place, str)
        and Path(place).is_absolute()
        and not (place.startswith(logs) or logs.startswith(place))
    ):
        told = "Inspect keeps there what is under way; set XDG_DATA_HOME to a folder that can be written"
        return f"cannot write into {place} ({error.strerror}): {told}"
    return f"cannot write logs into {log_dir}: {one_line(error)}"


def all_ended_well(runs: Sequence[Run]) -> bool:
    """True if all runs of a study ended well; prints the models for which nothing at all could be
    scored.

    Args:
        runs: Runs of all waves.
    """
    silent: dict[str, Counter[str]] = {}
    heard: set[str] = set()
    ended = all(run.finished for run in runs)
    for run in runs:
        model = run.header.eval.model
        if not run.finished or model in heard:
            continue
        scores = [
            score for sample in run.read_summaries() for score in (sample.scores or {}).values()
        ]
        items = counted(
            run.results
        )  # of a set without labels no score has a value, and yet its items count
        if items or (items is None and any(values_of(score) for score in scores)):
            heard.add(model)
        why = (
            unscored_in(run.results) or "no reason given"
        )  # of a run whose scores have a reason a key
        silent.setdefault(model, Counter()).update(score.reason or why for score in scores)
    _tell_cut(runs)
    _tell_inline_thoughts(runs)
    dumb = {model: reasons for model, reasons in silent.items() if model not in heard}
    for model, reasons in list(dumb.items())[:SHOWN]:
        [(reason, _)] = reasons.most_common(1) or [("no sample has a score", 0)]
        echo(f"  {model}: nothing could be scored ({reason})", err=True)
    return ended and not dumb


def _tell_cut(runs: Sequence[Run]) -> None:
    """A line for each model and argument, where most replies of runs ended at the limit."""
    finished = [run for run in runs if run.finished]
    cut_runs = Counter(
        (run.header.eval.model, name) for run in finished for name in cut_in(run.results)
    )
    for (model, name), run_count in list(cut_runs.items())[:SHOWN]:
        where = f"{run_count} run{'s' * (run_count != 1)}"
        echo(
            f"  {model}: most replies of {where} ended at the token limit; -T {name}=… raises it",
            err=True,
        )


def _tell_inline_thoughts(runs: Sequence[Run]) -> None:
    """A line for each model whose server left thoughts in its replies."""
    thoughtful = [run for run in runs if run.finished and _shows_thoughts(run)]
    samples = [sample for run in thoughtful for sample in run.read_summaries()]
    for line in inline_thoughts_in(samples)[:SHOWN]:
        echo(f"  {line}", err=True)


def _shows_thoughts(run: Run) -> bool:
    """Whether a run's metrics say that a reply was reasoned or garbled."""
    names = [name for name, value in metrics_in(run.results) if value > 0]
    return any(name.endswith(("reasoned_rate", "garbled")) for name in names)


def _tell_batchless(tasks: Sequence[Task]) -> None:
    models = {str(task.model): task.model for task in tasks if isinstance(task.model, Model)}
    without = [
        name
        for name, model in models.items()
        if not any("batcher" in field for field in vars(model.api))
    ]
    if without:
        echo(
            f"No batches for {', '.join(without)}: asked call by call, at the full price", err=True
        )


def _restart_batches(tasks: Sequence[Task]) -> None:
    """Let each model send its batches anew.

    Inspect's sender of batches ends with the event loop of a wave, and a model that had one starts
    no other: the calls of the next wave waited for ever. All providers make one where they have
    none.
    """
    for task in tasks:
        for bound in [task.model, *(task.model_roles or {}).values()]:
            for one in bound if isinstance(bound, list) else [bound]:
                api = (
                    (get_model(one) if isinstance(one, str) else one).api
                    if one is not None
                    else None
                )
                for name in (
                    [name for name in vars(api) if "batcher" in name] if api is not None else []
                ):
                    setattr(api, name, None)


@dataclass
class _Failures:
    """Failures in the runs of one model."""

    first: str = ""
    """The vendor's first error."""
    runs: int = 0
    samples: int = 0
    """Number of samples that ended in an error."""
    again: bool = False
    """True if the same call could do better another time: no wrong key, model or request."""

    def __str__(self) -> str:
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        samples = {0: "", 1: ", 1 sample"}.get(self.samples, f", {self.samples} samples")
        return f"{runs} with errors{samples}; the first: {one_line(self.first)}"


def _tell(runs: Sequence[Run], *, skip_errors: bool | None) -> None:
    """A line for each model whose runs met errors, and what the same command does about them.

    Args:
        runs: The runs of a wave, each with the items that count.
        skip_errors: See `RunSettings`.
    """
    failures: dict[str, _Failures] = {}
    for run in runs:
        log = run.header
        seen = run.read_summaries()
        errors = [summary for summary in seen if summary.error]
        if log.status == "success" and not errors:
            continue
        model = failures.setdefault(log.eval.model, _Failures())
        if not model.first:
            model.first = (
                cause(log.location, errors[0])
                if errors
                else log.error.message
                if log.error
                else log.status
            )
        said = [without_request(summary.error or "") for summary in errors]
        refused = len(errors) == len(seen) and all(map(REFUSED.search, said))
        model.runs, model.samples = model.runs + 1, model.samples + len(errors)
        model.again |= not refused
    for name, model in list(failures.items())[:SHOWN]:
        echo(f"  {name}: {model}", err=True)
    if len(failures) > SHOWN:
        echo(f"  and {len(failures) - SHOWN} further models", err=True)
    if not any(model.again for model in failures.values()):
        return
    if skip_errors:
        left_out = sum(model.samples for model in failures.values())
        samples = "1 sample is left out; the same command asks it" if left_out == 1 else ""
        samples = samples or f"{left_out} samples are left out; the same command asks them"
        echo(f"  {samples} again.", err=True)
    else:
        skip = "; --skip-errors leaves out what fails for good" if skip_errors is False else ""
        echo(f"  The same command asks again only for what failed{skip}.", err=True)


def _interrupted(runs: Sequence[Task | DescribedRun], log_dir: str) -> Interrupted:
    wanted = Counter(
        (run.task, run.model.name)
        if isinstance(run, DescribedRun)
        else (short_task(run.name), str(run.model))
        for run in runs
    )
    there = Counter(
        (task_of(log), log.eval.model)
        for log in readable_logs([log_dir]).headers
        if log.status == "success"
    )
    done = f"{(wanted & there).total()} of {len(runs)} runs done; the same command goes on"
    if busy.calls.over:
        return Interrupted(
            f"Stopped at --cost-limit, ${busy.calls.spent:.2f} spent: {done} with as much again."
        )
    return Interrupted(f"Interrupted: {done}.")


def _refusal(error: PrerequisiteError, log_dir: str, wave_runs: Sequence[WaveRun]) -> str:
    said = one_line(error)
    if "not associated with a task" not in said:
        return said
    name = said.partition("'")[2].partition("'")[0]
    versions = {run.identity: run.version for run in wave_runs}
    for header in readable_logs([log_dir]).headers:
        other = other_version(header, versions) if PurePath(header.location).name == name else ""
        if other:
            return f"{log_dir} holds a log ({name}) of {other}: give a new --log-dir"
    return other_runs(name, log_dir)
