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
from collections.abc import Callable, Mapping, Sequence
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
    ModelAPI,
    ModelConfig,
    ModelCost,
    ModelInfo,
    get_model,
    get_model_info,
    set_model_info,
)
from inspect_ai.scorer import Score
from inspect_ai.solver import TaskState

from selfprobe.data.prices import (
    Cost,
    PriceList,
    bundled_prices,
    cost_table,
    dollars,
    price_notes,
    read_prices,
)
from selfprobe.data.samples import at_most
from selfprobe.errors import InputError, Interrupted, one_line
from selfprobe.errors.arguments import INSPECT_NAME_BY_TASK, SAME_MODEL, TASK_BY_INSPECT_NAME
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
from selfprobe.providers.keys import missing_key
from selfprobe.scorers.votes import PANEL, Panel
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
from selfprobe.text.counts import count_text
from selfprobe.text.safe import echo

SHORT_REPLY_TOKENS = 100
"""Tokens of replies that the plan of a slow run names."""


def _duration_text(cost: Cost, tokens_per_second: tuple[float, float]) -> str:
    """Words for the time of calls of a model that reads and writes so many tokens in a second."""
    read_per_second, written_per_second = tokens_per_second
    seconds = cost.tokens_in / read_per_second + cost.tokens_out / written_per_second
    if seconds >= 90:
        return f"{seconds / 60:,.0f} minutes"
    return "a minute" if seconds >= 30 else "half a minute"


@dataclass(frozen=True)
class RunSettings:
    """The options of `options.asking`, and --skip-errors and those of `options.engine` where a
    command has them.
    """

    model_args: Mapping[str, Any] = field(default_factory=dict)
    """Model arguments of the measured models; graders have none."""
    tags: tuple[str, ...] = ()
    """Tags of the logs."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Entries of the logs' metadata."""
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
    prices: PriceList = field(default_factory=bundled_prices)
    cost_limit: float | None = None
    """Dollars of calls at which a command stops."""
    display: str | None = None
    engine: RayCluster | None = None
    """Engine that makes described runs; None is this process."""

    @classmethod
    def pop_from(cls, options: dict[str, Any]) -> "RunSettings":
        """Take these options out of what a command was given.

        Raises:
            InputError: The file of prices is none, or options of where runs are made do not go
                together.
        """
        cluster = requested_cluster(options.pop("engine", None), options.pop("ray_address", None))
        values: dict[str, Any] = {}
        base_url = options.pop("model_base_url", None)
        if base_url is not None:
            options["model_args"] = {**options["model_args"], "base_url": base_url}
        for settings_field in fields(cls):
            if settings_field.name in options:
                values[settings_field.name] = options.pop(settings_field.name)
        if values.get("cost_limit") and cluster:
            raise InputError("--cost-limit counts in one process: leave --engine ray out")
        values["tags"] = tuple(values.get("tags") or ())
        prices_path = values.pop("prices")
        if prices_path is not None:
            values["prices"] = read_prices(prices_path)
        return cls(**values, engine=cluster)

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
        prices = self.prices.by_model
        for cost in costs:
            if self.cost_limit and math.isnan(dollars(cost, prices)):
                raise InputError(f"--cost-limit needs the price of {cost.model} in --prices")
        table_lines = cost_table(costs, prices, rounds=rounds if self.batch else None)
        return table_lines + price_notes(costs, self.prices)

    def lasting(self, costs: Sequence[Cost], short_reply_costs: Sequence[Cost] = ()) -> list[str]:
        """Durations of the calls of embedded models on this machine, from two calls that are timed;
        a line each.

        Args:
            costs: One entry a model.
            short_reply_costs: Costs with replies of at most SHORT_REPLY_TOKENS tokens; none where
                that cannot be chosen.
        """
        if self.engine is not None:
            return []
        short_cost_by_model = {cost.model: cost for cost in short_reply_costs}
        lines = []
        for cost in costs:
            if not cost.calls or not cost.model.startswith("embedded/"):
                continue
            tokens_per_second = self._tokens_per_second(cost.model)
            duration_words = _duration_text(cost, tokens_per_second)
            tip = ""
            if cost.model in short_cost_by_model:
                short_duration_words = _duration_text(
                    short_cost_by_model[cost.model], tokens_per_second
                )
                if short_duration_words != duration_words:
                    tip = f"; --reply-tokens {SHORT_REPLY_TOKENS} makes it {short_duration_words}"
            lines.append(f"{cost.model}: about {duration_words} on this machine{tip}")
        return lines

    def _tokens_per_second(self, model: str) -> tuple[float, float]:
        """Tokens that an embedded model reads, and writes, in a second."""
        # Brings the openai package: half a second.
        from selfprobe.providers.embedded import EmbeddedAPI

        api = available_model(model, memoize=False, **self.model_args).api
        assert isinstance(api, EmbeddedAPI)
        return asyncio.run(api.tokens_per_second())

    def open_models(self, *models: NamedModel) -> None:
        """Open models that a later wave needs, before anything is paid; on a cluster their keys are
        on the nodes. Models whose key is missing are left for `refuse_missing_keys`.

        Raises:
            InputError: One cannot be had.
        """
        if self.engine is not None:
            return
        for model in models:
            if not missing_key(model.name, model.args):
                model.open()

    @property
    def _logged_prices(self) -> dict[str, ModelCost] | None:
        """Prices by which Inspect counts dollars; bundled ones may be old, so no log holds them
        unless a limit needs them.
        """
        if self.prices.is_bundled and self.cost_limit is None:
            return None
        return dict(self.prices.by_model)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments for `eval_set`; None is its default."""
        return {
            "tags": list(self.tags) or None,
            "metadata": dict(self.metadata) or None,
            "max_connections": self.max_connections,
            "attempt_timeout": self.attempt_timeout,
            "max_retries": self.max_retries,
            "batch": self.batch,
            "display": self.display,
            "fail_on_error": False if self.skip_errors else None,
            "model_cost_config": self._logged_prices,
        }


MOST_SHOWN_MODELS = 10
"""Models whose first error is shown; the others are counted."""

JOINED_FOLDER_ARGUMENTS: Mapping[str, Any] = {"log_dir_allow_dirty": True}
"""Arguments of a wave whose folder further models or arguments may join."""

ONE_PASS: Mapping[str, Any] = {"retry_attempts": 1, "retry_immediate": False, "retry_on_error": 3}
"""Arguments of every wave.

A failed sample is asked again at once, so that a passing fault of a provider does not cost a model
its run. A failed run is not: its samples would be new ones, to which the replies of the failed ones
do not belong.
"""

LASTING_ERRORS = re.compile(
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
    **eval_set_arguments: Any,
) -> list[EvalLog]:
    """Run tasks, or what is left of them where logs are there; the headers of their logs.

    Args:
        runs: Each with its model; for a cluster, all are described.
        log_dir: Folder of this wave's logs, local or any fsspec path.
        title: What the user reads above its progress.
        settings: How and where they are asked, and what is shown.
        resumed: Whether an earlier start of the study broke off: how many of its replies are used
            is then told.
        eval_set_arguments: Arguments of `eval_set`, e.g. limit or JOINED_FOLDER_ARGUMENTS; None is its default.

    Raises:
        Interrupted: The user stopped it: no further wave may start.
        InputError: The folder cannot be written, is in use, or holds logs of other runs; or a model
            cannot be had.
        RunError: A task of the cluster was killed again and again.
    """
    with claimed(log_dir):
        if resumed:
            described_runs = [run for run in runs if isinstance(run, DescribedRun)]
            _print_kept_replies(described_runs, log_dir, eval_set_arguments.get("limit"))
        return _run_wave(runs, log_dir, title, settings, eval_set_arguments)


def _run_wave(
    runs: Sequence[Task | DescribedRun],
    log_dir: str,
    title: str,
    settings: RunSettings,
    eval_set_arguments: dict[str, Any],
) -> list[EvalLog]:
    progress = Progress(title, len(runs), _first_model(runs))
    limit = eval_set_arguments.get("limit")
    # Scores of half a run say nothing, and computing them after every sample is work.
    arguments = {**ONE_PASS, "score_display": False}
    for name, value in (settings.arguments | eval_set_arguments).items():
        if value is not None:
            arguments[name] = value

    described_runs = [run for run in runs if isinstance(run, DescribedRun)]
    try:
        if settings.engine and len(described_runs) == len(runs):
            logs = _on_cluster(described_runs, log_dir, arguments, settings.engine, progress)
        else:
            with at_most(arguments.get("limit")):
                tasks = []
                for run in runs:
                    tasks.append(run.build() if isinstance(run, DescribedRun) else run)
            logs = _in_this_process(tasks, log_dir, arguments, progress)
    except KeyboardInterrupt:
        raise _interrupted(runs, log_dir) from None

    done_runs = sum(log.status == "success" for log in logs)
    echo(f"  {done_runs} of {count_text(len(runs), 'run')} done ({progress.clock()})", err=True)
    _print_failures(logged_runs(logs, limit), skip_errors=settings.skip_errors)
    return logs


def _first_model(runs: Sequence[Task | DescribedRun]) -> str:
    """Name of the first run's model without its settings."""
    if not runs:
        return ""
    first_run = runs[0]
    if isinstance(first_run, DescribedRun):
        name = first_run.model.name
    else:
        name = str(first_run.model)
    return name.partition("?")[0]


def logged_runs(logs: Sequence[EvalLog], limit: int | None) -> list[Run]:
    """The runs of a wave's logs, each with the items that a limit takes; None is all."""
    return [Run(log, identity_of(log), limit=limit) for log in logs]


def _print_kept_replies(
    described_runs: Sequence[DescribedRun], log_dir: str, limit: int | None
) -> None:
    """A line on the replies of an earlier start; the progress then counts the calls that are left."""
    restore(log_dir)
    limits = dict.fromkeys(identities_of(described_runs), limit)
    folder_runs = runs_in(logs_in(log_dir), {run.task for run in described_runs})
    earlier_runs = folder_runs.with_identities(limits).limited(limits).counted
    kept_replies = sum(map(_replies_in, earlier_runs))
    if not kept_replies:
        return

    remaining_calls = max(busy.calls.expected - kept_replies, 0)
    busy.calls.expected = remaining_calls
    subject = "1 reply of the earlier start is"
    if kept_replies != 1:
        subject = f"{kept_replies:,} replies of the earlier start are"
    echo(f"{subject} used; at most {remaining_calls:,} calls are left", err=True)


def _replies_in(run: Run) -> int:
    """Number of replies that a resumed run takes from its log."""
    items = run.items()
    reply_count = 0
    for sample in transcripts(run.log):
        if str(sample.id) in items:
            reply_count += sum(1 for _ in answered_events(sample))
    return reply_count


def _in_this_process(
    tasks: Sequence[Task], log_dir: str, arguments: dict[str, Any], progress: Progress
) -> list[EvalLog]:
    if arguments.setdefault("display", "none") != "none":
        return _eval_set_logs(tasks, log_dir, arguments)
    progress.samples[0] = sample_count(tasks, arguments.get("limit"))
    watch(tasks, partial(progress.note, 0))
    progress.announce()
    with busy.status_line(progress.line):
        return _eval_set_logs(tasks, log_dir, arguments)


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
    # Another machine has the log alone, and not what waits to be written into it.
    options["log_buffer"] = 1
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
    return _eval_set_logs(tasks, log_dir, options)


def _eval_set_logs(
    tasks: Sequence[Task], log_dir: str, arguments: Mapping[str, Any]
) -> list[EvalLog]:
    """Inspect's `eval_set` in this process.

    Raises:
        KeyboardInterrupt: It was stopped; its logs are closed.
        InputError: See `run_wave`.
    """
    if arguments.get("batch"):
        _print_batchless(tasks)
        _restart_batches(tasks)
    for model in arguments.get("model_cost_config") or ():
        # Inspect refuses the price of a model that is not in its list.
        if get_model_info(model) is None:
            set_model_info(model, ModelInfo())
    tasks = _named_as_logged(tasks, log_dir)
    on_scored(tasks, _forget_scored)
    wave_runs = list(map(_wave_run, tasks))
    if arguments.get("log_dir_allow_dirty"):
        _print_other_versions(wave_runs, log_dir)
    # Else each full collection walks all that was imported: half a second, and often.
    if not gc.get_freeze_count():
        gc.freeze()

    # Where nothing is left to ask, Inspect says so on standard output, which is for results.
    output = sys.stderr if arguments.get("display") == "none" else sys.stdout
    all_arguments = {"max_tasks": len(tasks), "retry_cleanup": False, **arguments}
    try:
        with (
            replies_kept(log_dir, wave_runs),
            sets_complete_only(is_whole),
            done_samples_logged(),
            every_model_heard(),
            redirect_stdout(output),
        ):
            _, logs = eval_set(list(tasks), log_dir=log_dir, **all_arguments)
            _remove_replaced_logs(logs, log_dir)
    except PrerequisiteError as error:
        raise InputError(_refusal_text(error, log_dir, wave_runs)) from None
    except (OSError, sqlite3.Error) as error:
        raise InputError(_unwritable_text(error, log_dir)) from None
    if len(logs) < len(tasks) or any(log.status == "cancelled" for log in logs):
        raise KeyboardInterrupt
    return logs


def _print_other_versions(wave_runs: Sequence[WaveRun], log_dir: str) -> None:
    """A line for each task whose version rose since its runs in a folder were made."""
    versions = {run.identity: run.version for run in wave_runs}
    texts: dict[str, None] = {}
    for header in readable_logs(logs_in(log_dir)).headers:
        if header.status == "success":
            texts[other_version(header, versions)] = None
    for text in filter(None, texts):
        echo(f"{log_dir} holds logs of {text}: what changed is asked anew", err=True)


def _wave_run(task: Task) -> WaveRun:
    items = frozenset(str(sample.id) for sample in task.dataset)
    return WaveRun(_identity(task), str(task.version), items)


def _models_by_role(task: Task) -> dict[str, list[Model | str]]:
    models_by_role: dict[str, list[Model | str]] = {}
    for role, bound in (task.model_roles or {}).items():
        models_by_role[role] = list(bound) if isinstance(bound, list) else [bound]
    return models_by_role


def _identity(task: Task) -> Identity:
    """The identity by which the log of a task's run is found, as `DescribedRun.identified`."""
    described_roles = {}
    for role, models in _models_by_role(task).items():
        described_roles[role] = [_described(model) for model in models]
    evaluated = _described(task.model)
    config = task.config.merge(evaluated.config)
    # A task of a script may be no @task.
    args = registry_params(task) if has_registry_params(task) else {}
    return identified(
        short_task(task.name),
        evaluated.model_copy(update={"config": config}),
        described_roles,
        args,
        task.metadata or {},
    )


def _described(model: str | Model | None) -> ModelConfig:
    if isinstance(model, Model):
        return ModelConfig(model=str(model), config=model.config, args=model.model_args)
    return ModelConfig(model=str(model), config=GenerateConfig(), args={})


def _forget_scored(task: Task, state: TaskState) -> None:
    """Let the replies of a sample go, unless one of the scorers of its task failed: it is then
    asked again.
    """
    if len(state.scores or {}) >= len(task.scorer or []):
        forget_replies(state.uuid)


def _named_as_logged(tasks: Sequence[Task], log_dir: str) -> Sequence[Task]:
    """The tasks, each under the name that its own log in the folder has, which may be the short
    one: it finds that.
    """
    if not any(short_task(task.name) in INSPECT_NAME_BY_TASK for task in tasks):
        return tasks
    name_by_run = dict(filter(None, map(_short_name, logs_in(log_dir))))
    named_tasks = []
    for task in tasks:
        if short_task(task.name) in INSPECT_NAME_BY_TASK:
            run = _run_key(task.name, task.model, _models_by_role(task), registry_params(task))
            task = task_with(task, name=name_by_run.get(run, task.name))
        named_tasks.append(task)
    return named_tasks


@cache
def _short_name(log: str) -> tuple[str, str] | None:
    """Run of a log and its task's name, where that is a short one; read once a process, since
    neither changes.
    """
    for header in readable_logs([log]).headers:
        spec = header.eval
        if (
            task_of(header) in INSPECT_NAME_BY_TASK
            and spec.task.rpartition("/")[2] not in TASK_BY_INSPECT_NAME
        ):
            model_names = {}
            for role, configs in roles_of(header).items():
                model_names[role] = [config.model for config in configs]
            run = _run_key(spec.task, spec.model, model_names, spec.task_args_passed)
            return run, spec.task
    return None


def _run_key(
    task: str, model: object, roles: Mapping[str, Sequence[object]], args: Mapping[str, Any]
) -> str:
    """What the logs of one run have in common, whichever name they have."""
    model_names = [(role, list(map(str, roles[role]))) for role in sorted(roles)]
    return str((short_task(task), str(model), model_names, sorted(args.items())))


def _remove_replaced_logs(logs: Sequence[EvalLog], log_dir: str) -> None:
    """Remove earlier logs of the same runs, whose samples these hold.

    Inspect's own sweep keeps the file with the latest time, and so removed the new log where the
    clock was set back.
    """
    eval_by_task = {log.eval.task_id: log.eval.eval_id for log in logs if log.status != "cancelled"}
    file_system, _ = url_to_fs(log_dir)
    for header in readable_logs([log_dir]).headers:
        eval_id = eval_by_task.get(header.eval.task_id, header.eval.eval_id)
        if eval_id != header.eval.eval_id and header.status != "started":
            file_system.rm(header.location)


def _unwritable_text(error: OSError | sqlite3.Error, log_dir: str) -> str:
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

    path = error.filename
    absolute_log_dir = str(Path(log_dir).absolute())
    if not isinstance(path, str) or not Path(path).is_absolute():
        return f"cannot write logs into {log_dir}: {one_line(error)}"
    if path.startswith(absolute_log_dir) or absolute_log_dir.startswith(path):
        return f"cannot write logs into {log_dir}: {one_line(error)}"
    remedy = (
        "Inspect keeps there what is under way; set XDG_DATA_HOME to a folder that can be written"
    )
    return f"cannot write into {path} ({error.strerror}): {remedy}"


def all_ended_well(runs: Sequence[Run], subject_of: Callable[[Run], str]) -> bool:
    """True if all runs of a study ended well; prints the subjects for which nothing at all could be
    scored, and graders of several of which no verdict could be read.

    Args:
        runs: Runs of all waves.
        subject_of: Function that names what a run is about: the runs of one subject stand in for
            one another; "" where no answer rests on the run alone.
    """
    reasons_by_subject: dict[str, Counter[str]] = {}
    scored_subjects: set[str] = set()
    for run in runs:
        subject = subject_of(run)
        if not run.finished or not subject or subject in scored_subjects:
            continue
        scores: list[Score] = []
        for sample in run.read_summaries():
            scores += (sample.scores or {}).values()
        # Of a set without labels no score has a value, and yet its items count.
        counted_items = counted(run.results)
        if counted_items is None:
            counted_items = len([score for score in scores if values_of(score)])
        if counted_items:
            scored_subjects.add(subject)
        # For a run whose scores have a reason a key.
        run_reason = unscored_in(run.results) or "no reason given"
        reasons = reasons_by_subject.setdefault(subject, Counter())
        reasons.update(score.reason or run_reason for score in scores)

    _print_cut_replies(runs)
    _print_inline_thoughts(runs)
    unscored_subjects = [name for name in reasons_by_subject if name not in scored_subjects]
    for subject in unscored_subjects[:MOST_SHOWN_MODELS]:
        reasons = reasons_by_subject[subject]
        reason = reasons.most_common(1)[0][0] if reasons else "no sample has a score"
        echo(f"  {subject}: nothing could be scored ({reason})", err=True)
    reason_by_grader = _unread_graders(runs)
    for grader, reason in reason_by_grader.items():
        if grader not in unscored_subjects:
            echo(f"  {grader}: no verdict could be read ({reason})", err=True)
    all_finished = all(run.finished for run in runs)
    return all_finished and not unscored_subjects and not reason_by_grader


def _unread_graders(runs: Sequence[Run]) -> dict[str, str]:
    """Graders of several that gave no verdict on any text of these runs → the commonest reason;
    none where no grader did, since then nothing could be scored.
    """
    reasons_by_grader: dict[str, Counter[str]] = {}
    graders_with_verdict: set[str] = set()
    for run in runs:
        if not run.finished or not any(len(models) > 1 for models in roles_of(run.header).values()):
            continue
        for sample in run.read_summaries():
            for score in (sample.scores or {}).values():
                panel: Panel = (score.metadata or {}).get(PANEL, {})
                for grader, verdict_by_text in panel.items():
                    reasons = reasons_by_grader.setdefault(grader, Counter())
                    for verdict in verdict_by_text.values():
                        if isinstance(verdict, bool):
                            graders_with_verdict.add(grader)
                        else:
                            reasons[verdict] += 1
    if not graders_with_verdict:
        return {}
    return {
        grader: reasons.most_common(1)[0][0]
        for grader, reasons in reasons_by_grader.items()
        if reasons and grader not in graders_with_verdict
    }


def _print_cut_replies(runs: Sequence[Run]) -> None:
    """A line for each model and argument, where most replies of runs ended at the limit."""
    run_counts: Counter[tuple[str, str]] = Counter()
    for run in runs:
        if run.finished:
            run_counts.update((run.header.eval.model, name) for name in cut_in(run.results))
    for (model, argument), run_count in list(run_counts.items())[:MOST_SHOWN_MODELS]:
        count_words = count_text(run_count, "run")
        remedy = f"-T {argument}=… raises it"
        line = f"most replies of {count_words} ended at the token limit; {remedy}"
        echo(f"  {model}: {line}", err=True)


def _print_inline_thoughts(runs: Sequence[Run]) -> None:
    """A line for each model whose server left thoughts in its replies."""
    thoughtful_runs = [run for run in runs if run.finished and _shows_thoughts(run)]
    samples = [sample for run in thoughtful_runs for sample in run.read_summaries()]
    for line in inline_thoughts_in(samples)[:MOST_SHOWN_MODELS]:
        echo(f"  {line}", err=True)


def _shows_thoughts(run: Run) -> bool:
    """Whether a run's metrics say that a reply was reasoned or garbled."""
    names = [name for name, value in metrics_in(run.results) if value > 0]
    return any(name.endswith(("reasoned_rate", "garbled")) for name in names)


def _batcher_fields(api: ModelAPI) -> list[str]:
    """Fields of a provider that hold its sender of batches."""
    return [name for name in vars(api) if "batcher" in name]


def _print_batchless(tasks: Sequence[Task]) -> None:
    models = {str(task.model): task.model for task in tasks if isinstance(task.model, Model)}
    batchless = [name for name, model in models.items() if not _batcher_fields(model.api)]
    if batchless:
        echo(
            f"No batches for {', '.join(batchless)}: asked call by call, at the full price",
            err=True,
        )


def _restart_batches(tasks: Sequence[Task]) -> None:
    """Let each model send its batches anew.

    Inspect's sender of batches ends with the event loop of a wave, and a model that had one starts
    no other: the calls of the next wave waited for ever. All providers make one where they have
    none.
    """
    for task in tasks:
        role_models = [model for models in _models_by_role(task).values() for model in models]
        for model_or_name in [task.model, *role_models]:
            if model_or_name is None:
                continue
            model = get_model(model_or_name) if isinstance(model_or_name, str) else model_or_name
            for field_name in _batcher_fields(model.api):
                setattr(model.api, field_name, None)


@dataclass
class _Failures:
    """Failures in the runs of one model."""

    first_error: str = ""
    """The vendor's first error."""
    runs: int = 0
    samples: int = 0
    """Number of samples that ended in an error."""
    may_pass: bool = False
    """True if the same call could do better another time: no wrong key, model or request."""

    def __str__(self) -> str:
        samples = f", {count_text(self.samples, 'sample')}" if self.samples else ""
        first_error = one_line(self.first_error)
        return f"{count_text(self.runs, 'run')} with errors{samples}; the first: {first_error}"


def _print_failures(runs: Sequence[Run], *, skip_errors: bool | None) -> None:
    """A line for each model whose runs met errors, and what the same command does about them.

    Args:
        runs: The runs of a wave, each with the items that count.
        skip_errors: See `RunSettings`.
    """
    failures_by_model = _failures_by_model(runs)
    for model, failures in list(failures_by_model.items())[:MOST_SHOWN_MODELS]:
        echo(f"  {model}: {failures}", err=True)
    if len(failures_by_model) > MOST_SHOWN_MODELS:
        echo(f"  and {len(failures_by_model) - MOST_SHOWN_MODELS} further models", err=True)
    if not any(failures.may_pass for failures in failures_by_model.values()):
        return

    if not skip_errors:
        tip = "; --skip-errors leaves out what fails for good" if skip_errors is False else ""
        echo(f"  The same command asks again only for what failed{tip}.", err=True)
        return
    sample_count = sum(failures.samples for failures in failures_by_model.values())
    if sample_count == 1:
        echo("  1 sample is left out; the same command asks it again.", err=True)
    else:
        echo(f"  {sample_count} samples are left out; the same command asks them again.", err=True)


def _failures_by_model(runs: Sequence[Run]) -> dict[str, _Failures]:
    failures_by_model: dict[str, _Failures] = {}
    for run in runs:
        header = run.header
        run_samples = run.read_summaries()
        failed_samples = [sample for sample in run_samples if sample.error]
        if header.status == "success" and not failed_samples:
            continue

        failures = failures_by_model.setdefault(header.eval.model, _Failures())
        if not failures.first_error:
            if failed_samples:
                failures.first_error = cause(header.location, failed_samples[0])
            else:
                failures.first_error = header.error.message if header.error else header.status
        errors = [without_request(sample.error or "") for sample in failed_samples]
        is_refused = len(errors) == len(run_samples) and all(map(LASTING_ERRORS.search, errors))
        failures.runs += 1
        failures.samples += len(failed_samples)
        failures.may_pass |= not is_refused
    return failures_by_model


def _interrupted(runs: Sequence[Task | DescribedRun], log_dir: str) -> Interrupted:
    planned_runs: Counter[tuple[str, str]] = Counter()
    for run in runs:
        if isinstance(run, DescribedRun):
            planned_runs[run.task, run.model.name] += 1
        else:
            planned_runs[short_task(run.name), str(run.model)] += 1
    logged: Counter[tuple[str, str]] = Counter()
    for header in readable_logs([log_dir]).headers:
        if header.status == "success":
            logged[task_of(header), header.eval.model] += 1

    done_runs = (planned_runs & logged).total()
    state = f"{done_runs} of {count_text(len(runs), 'run')} done; the same command goes on"
    if busy.calls.is_over:
        return Interrupted(
            f"Stopped at --cost-limit, ${busy.calls.spent_dollars:.2f} spent: {state} with as much again."
        )
    return Interrupted(f"Interrupted: {state}.")


def _refusal_text(error: PrerequisiteError, log_dir: str, wave_runs: Sequence[WaveRun]) -> str:
    message = one_line(error)
    if "not associated with a task" not in message:
        return message
    log_name = message.partition("'")[2].partition("'")[0]
    versions = {run.identity: run.version for run in wave_runs}
    for header in readable_logs([log_dir]).headers:
        if PurePath(header.location).name != log_name:
            continue
        text = other_version(header, versions)
        if text:
            return f"{log_dir} holds a log ({log_name}) of {text}: give a new --log-dir"
    return other_runs(log_name, log_dir)
