"""Inspect's logs, for everything that reads them: finding, reading, refusing and naming.

A log that cannot be read stops nobody: it is set aside with its name and the reason. Which log
counts is decided in one place (`runs`): logs with one `Identity` are the same measurement, and
every study selects by it.
"""

import inspect
import json
import logging
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import ijson
import zstandard
from fsspec.core import url_to_fs
from inspect_ai.log import (
    EvalLog,
    EvalResults,
    EvalSample,
    EvalSampleSummary,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    read_eval_log_samples_by_id,
    recover_eval_log,
    recoverable_eval_logs,
    resolve_sample_attachments,
)
from inspect_ai.model import ModelConfig

from selfprobe.errors import InputError, one_line
from selfprobe.errors.arguments import TASK_BY_INSPECT_NAME, comparable_arguments, locate
from selfprobe.errors.inspect_private import RecoveryNotAvailable, registry_lookup
from selfprobe.errors.output import from_here, refusals
from selfprobe.logs.decision import Decision
from selfprobe.logs.files import LOG_ENDINGS, FolderFiles, files_in, misnamed, read_header
from selfprobe.logs.invalidated import (
    InvalidatedSamples,
    invalidated_samples,
    results_of_samples,
    with_valid_results,
)
from selfprobe.logs.judged import FAILED, JudgedSample, judged_sample, with_every_key
from selfprobe.logs.judged import values_of as values_of
from selfprobe.logs.packed import refuse_bomb, resolved, sample_texts
from selfprobe.text.counts import count_text
from selfprobe.text.safe import concealed, masked

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
Sample = TypeVar("Sample", EvalSample, EvalSampleSummary)

UNREADABLE = (
    *(
        ValueError,
        OSError,
        EOFError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        NotImplementedError,
    ),
    *(zipfile.BadZipFile, zlib.error, zstandard.ZstdError, ijson.JSONError),
)
"""Errors that reading a log may raise which somebody cut, edited or made by other means."""

SAMPLES_IN_MEMORY = 16
"""Number of samples of a log that are in memory together while it is read one by one."""
NO_TRANSCRIPT_FIELDS = {"messages", "output", "store", "scores"}
"""Parts of a sample that `transcripts` leaves out."""
TRANSCRIPT_FIELDS = {"messages", "output", "events", "events_data", "timelines"}
"""Parts of a sample that `samples` leaves out."""


def task_of(log: EvalLog) -> str:
    """A run's task without the package prefix that a run by name has; see `short_task`."""
    return short_task(log.eval.task)


def short_task(task: str) -> str:
    """A task's name in our tables and options, of its name in Inspect.

    >>> short_task("selfprobe/awareness_binary"), short_task("selfprobe/binary"), short_task("mine")
    ('binary', 'binary', 'mine')
    """
    name = task.rpartition("/")[2]
    return TASK_BY_INSPECT_NAME.get(name, name)


def roles_of(log: EvalLog) -> dict[str, list[ModelConfig]]:
    """Role → the models that have it, in their order: one as a rule."""
    models_by_role = {}
    for role, bound_models in (log.eval.model_roles or {}).items():
        models = bound_models if isinstance(bound_models, list) else [bound_models]
        if models:
            models_by_role[role] = models
    return models_by_role


def target_of(log: EvalLog) -> str:
    """The target of a run, as Inspect names models: the role `target`, or the evaluated model
    itself.
    """
    target_models = roles_of(log).get("target")
    return target_models[0].model if target_models else log.eval.model


def effort_of(log: EvalLog) -> str | None:
    """The reasoning effort that the run's task was given, where it has such an argument."""
    return log.eval.task_args.get("effort")


def args_of(log: EvalLog) -> dict[str, Any]:
    """The arguments of a run's task, in one form; see `comparable_arguments`."""
    return comparable_arguments(log.eval.task_args)


def about_of(log: EvalLog) -> str:
    """Subjects that the observer of a run was asked about: "self", "other", "self,other", "named",
    "shown:5".
    """
    return str(args_of(log).get("about", "self"))


def informed_of(log: EvalLog) -> str | None:
    """Hint that the observer of a run got about its target ("named", "shown:5"); None where it got
    none.

    A model that is its own target is asked about itself whatever the argument says.
    """
    subjects = about_of(log)
    gives_hint = subjects.startswith(("named", "shown:"))
    is_own_target = target_of(log) == log.eval.model
    return subjects if gives_hint and not is_own_target else None


@dataclass(frozen=True)
class ReadableLogs:
    """The logs under some paths."""

    headers: list[EvalLog]
    """Logs that can be read, newest first."""
    ignored: dict[str, str]
    """Log → why it is set aside."""
    no_logs: list[str] = field(default_factory=list)
    """JSON files in the folders that are no logs, and passed over."""

    def unused_logs_text(self) -> str:
        """End of a message that nothing was found: three logs that were set aside, or ""."""
        return first_of(self.ignored)


MOST_LISTED_LOGS = 3
"""Largest number of logs that a message names."""


def first_of(ignored: Mapping[str, str]) -> str:
    """The end of a message that nothing was found: the first three logs that were set aside and
    why, or "".
    """
    first_logs = list(ignored.items())[:MOST_LISTED_LOGS]
    return "".join(f"; {log}: {reason}" for log, reason in first_logs)


def none_found(paths: Iterable[str], ignored: Mapping[str, str]) -> str:
    """Sentence that no log of the suite is there, and what is."""
    path_names = list(paths)
    folders_of_pages = [path for path in path_names if (Path(path) / "index.html").is_file()]
    hint = ""
    if folders_of_pages:
        hint = f"; {folders_of_pages[0]} holds a page: give the folder of its logs"
    log_count = count_text(len(ignored), "other log")
    return (
        f"no selfprobe log in {', '.join(path_names)}; found {log_count}{first_of(ignored)}{hint}"
    )


def no_logs_text(files: Sequence[str]) -> str:
    """Sentence without its end on JSON files that are no logs: the first three by name."""
    file_names = [PurePosixPath(file).name for file in files]
    if len(file_names) == 1:
        return f"{file_names[0]} is no Inspect log"
    listed_names = ", ".join(file_names[:MOST_LISTED_LOGS])
    further_count = len(file_names) - MOST_LISTED_LOGS
    further_text = f" and {further_count} more" if further_count > 0 else ""
    return f"{listed_names}{further_text} are no Inspect logs"


CANNOT = "cannot be read"
"""Beginning of the reason of a damaged log."""


def readable_logs(paths: Iterable[str], tasks: Collection[str] | None = None) -> ReadableLogs:
    """The logs in these files and folders, local or any fsspec address.

    Args:
        paths: Files and folders, in the user's words; a folder is looked through with all below it.
        tasks: Names of the tasks that are wanted; by default logs of any task, other suites' too.

    Raises:
        InputError: A path does not exist.
    """
    files_of_paths = [_files(path) for path in reversed(list(paths))]  # each newest first
    log_files = dict.fromkeys(file for files in files_of_paths for file in files.logs)
    headers = list[EvalLog]()
    ignored = dict[str, str]()
    for file in log_files:
        try:
            header = with_valid_results(read_header(file))
        except UNREADABLE as error:
            ignored[file] = f"{CANNOT}: {_unreadable(error)}"
            continue
        if tasks is None or task_of(header) in tasks:
            headers.append(header)
        else:
            ignored[header.location] = f"a log of {task_of(header)}, not of {' or '.join(tasks)}"
    headers.sort(key=_time_of_run, reverse=True)
    other_files = dict[str, None]()
    for files in files_of_paths:
        other_files |= dict.fromkeys(files.no_logs)
        for file, reason in files.misnamed.items():
            ignored[file] = f"{CANNOT}: {reason}"
    return ReadableLogs(headers, ignored, list(other_files))


def _time_of_run(header: EvalLog) -> tuple[str, str]:
    return str(header.eval.created), header.stats.completed_at


HOW_CALLED = {
    "max_connections",
    "max_retries",
    "timeout",
    "attempt_timeout",
    "adaptive_connections",
    "batch",
    "cache",
}
"""Generation settings that say how calls are sent, not what is asked."""
PATH_ARGUMENTS = {
    "dataset",
    "task",
    "logs",
    "against",
    "pairs",
    "questions",
    "target_log",
    "observer_log",
    "texts",
    "clusters",
}
"""Task arguments that say where something is found. What was found there has its hash in the log.
"""
ADDRESS_ARGUMENT = re.compile(
    r"url|key|header|port|organi[sz]ation|project|device|timeout|token$", re.IGNORECASE
)
"""Model arguments that say how a model is reached, not which one it is."""
HASH_ENTRIES = ("dataset_sha256", "questions_sha256")
"""Entries of a log's metadata that stand for what was read."""

SHOWN_HASH_LENGTH = 12
"""Number of characters of a data set's hash that people are shown."""
SettingPairs = tuple[tuple[str, str], ...]
"""Name and value of settings, in the order of the names."""


@dataclass(frozen=True)
class Identity:
    """The properties by which two logs are one measurement. Limits, folders and how calls are sent
    are none.
    """

    task: str
    model: str
    """The evaluated model."""
    roles: SettingPairs = ()
    """Role → its models, comma-separated."""
    args: SettingPairs = ()
    """Task arguments that are no path and not the task's default."""
    config: SettingPairs = ()
    """Generation settings and model arguments that the user gave, of the evaluated model and of
    roles.
    """
    data: str = ""
    """Hash of the data set; of a log of another suite the data set's name."""

    @property
    def target(self) -> str:
        """The model in the role `target`, else the evaluated one."""
        return dict(self.roles).get("target", self.model)

    @property
    def models(self) -> list[str]:
        """The evaluated model and those of all roles."""
        return [self.model, *(model for _, names in self.roles for model in names.split(","))]

    @property
    def settings(self) -> dict[str, str]:
        """Settings other than task and model: name → value, for people."""
        settings = dict(self.roles) | dict(self.args) | dict(self.config)
        if self.data:
            settings["data set"] = self.data[:SHOWN_HASH_LENGTH]
        return settings

    @property
    def asked(self) -> tuple[SettingPairs, str]:
        """Arguments and data: they are compared across models, which may differ in their generation
        settings.
        """
        return self.args, self.data


@dataclass(frozen=True)
class Run:
    """A log that counts."""

    header: EvalLog
    identity: Identity
    number: int = 1
    """1, or 2, 3 … where the same was asked again, each of which has samples of its own."""
    others: tuple[EvalLog, ...] = ()
    """Logs of the same identity that do not count, the best first."""
    later: frozenset[str] = frozenset()
    """Logs among `others` that were made after it: by the time in the log, and in one second by the
    file's.
    """
    limit: int | None = None
    """Number of items that count, the first ones; None is all. Nobody who reads the run sees the
    others.
    """

    @property
    def next(self) -> "Run | None":
        """The run that counts if this log turns out to be useless; None where there is no other."""
        return replace(self, header=self.others[0], others=self.others[1:]) if self.others else None

    @property
    def weight(self) -> tuple[bool, int, int, str, str]:
        """Rank of a run, the largest is best: finished, version of its task, valid samples, when it
        began and ended.
        """
        return _weight(self.header)

    @property
    def log(self) -> str:
        """The log's address."""
        return self.header.location

    @property
    def finished(self) -> bool:
        """True if the run ended well, and not all of its samples were invalidated since."""
        return _is_finished(self.header)

    @property
    def why_unfinished(self) -> str:
        """Reason why the run is not finished."""
        if self.header.status != "success":
            return f"status {self.header.status}"
        return str(self.invalidated)

    @property
    def planned_samples(self) -> int:
        """Number of samples that the run's items that count were to have, epochs counted."""
        return self.item_count * (self.header.eval.config.epochs or 1)

    @cached_property
    def invalidated(self) -> InvalidatedSamples:
        """Samples of the run that are invalidated: they count nowhere."""
        invalidated = invalidated_in(self.header)
        return invalidated if self.limit is None else invalidated.of_items(self.items())

    @property
    def missing_samples(self) -> int:
        """Number of samples of counted items that failed, were left out or were not asked."""
        missing_count = missing_samples(self.header)
        if self.limit is None or not missing_count:
            return missing_count
        all_summaries = self.read_summaries(valid=False)
        completed_count = sum(1 for summary in all_summaries if not summary.error)
        return min(missing_count, max(self.planned_samples - completed_count, 0))

    def items(self) -> set[str]:
        """Ids of the run's items that count."""
        return {str(item) for item in (self.header.eval.dataset.sample_ids or [])[: self.limit]}

    @property
    def item_count(self) -> int:
        """Number of the run's items that count."""
        logged_items = item_count(self.header)
        return logged_items if self.limit is None else min(logged_items, self.limit)

    @cached_property
    def summaries(self) -> list[EvalSampleSummary]:
        """Scores and short metadata of the run's samples; see `summaries`."""
        return self.read_summaries()

    @cached_property
    def samples(self) -> list[EvalSample]:
        """Whole samples of the run; see `samples`."""
        return self.read_samples()

    def judged_samples(self, *, every_key: bool = False) -> list[JudgedSample]:
        """The run's samples with their decisions.

        Args:
            every_key: Whether a sample has a decision for each key that it should have, unscored
                where it is missing; then scores of other suites are decisions too.

        Raises:
            InputError: The log cannot be read.
        """
        judged = [judged_sample(summary, self.header) for summary in self.summaries]
        return with_every_key(judged, self.header, self.identity.task) if every_key else judged

    def read_summaries(self, *, valid: bool = True) -> list[EvalSampleSummary]:
        """`summaries`, which are not kept in memory."""
        return self._counting(summaries(self.log, valid=valid))

    def read_samples(self) -> list[EvalSample]:
        """`samples`, which are not kept in memory."""
        return self._counting(samples(self.log))

    def samples_at(self, places: Collection[tuple[int | str, int]]) -> list[EvalSample]:
        """Samples of these ids and epochs, which are not kept in memory; see `samples`.

        Raises:
            InputError: The log cannot be read.
        """
        if self.log.endswith(".json"):
            return [sample for sample in self.read_samples() if (sample.id, sample.epoch) in places]

        def read() -> list[EvalSample]:
            return [
                resolved(sample) for sample in read_eval_log_samples_by_id(self.log, list(places))
            ]

        return _read(self.log, read)

    @cached_property
    def results(self) -> EvalResults | None:
        """Metrics of the run; where its limit leaves items out, computed anew of those that count.

        Raises:
            InputError: The log cannot be read.
        """
        if self.item_count == item_count(self.header) or self.header.results is None:
            return self.header.results
        return results_of_samples(self.header.model_copy(update={"samples": self.read_samples()}))

    def _counting(self, run_samples: list[Sample]) -> list[Sample]:
        if self.limit is None:
            return run_samples
        items = self.items()
        return [sample for sample in run_samples if str(sample.id) in items]


@dataclass(frozen=True)
class Runs:
    """The logs that count under some paths."""

    counted: list[Run]
    """Runs that count, the newest first. An identity without a finished log has its newest
    unfinished one.
    """
    set_aside_reasons: dict[str, str] = field(default_factory=dict)
    """Log → why it does not count."""
    no_logs: Sequence[str] = ()
    """JSON files in the folders that are no logs, and passed over."""

    @property
    def finished(self) -> list[Run]:
        """Runs that ended well."""
        return [run for run in self.counted if run.finished]

    def with_identities(self, identities: Collection[Identity]) -> "Runs":
        """The runs of these identities; the others are set aside with the settings that differ."""
        counted_runs = list[Run]()
        unused_logs = dict(self.set_aside_reasons)
        for run in self.counted:
            if run.identity in identities:
                counted_runs.append(run)
            else:
                unused_logs[run.log] = differing(run.identity, identities)
        return replace(self, counted=counted_runs, set_aside_reasons=unused_logs)

    @property
    def invalidated_lines(self) -> list[str]:
        """A sentence for each run with invalidated samples: how many, by whom and why."""
        lines = list[str]()
        for run in self.counted:
            invalidated = str(run.invalidated)
            if invalidated:
                name = f"{run.identity.task} of {run.identity.model}"
                lines.append(f"{name}: {invalidated}; they count nowhere.")
        return lines

    def limited(self, limits: "Mapping[Identity, int | None]") -> "Runs":
        """The runs, each with the first items alone.

        Args:
            limits: Identity → number of items that count; None, and no entry, is all.
        """
        limited_runs = [replace(run, limit=limits.get(run.identity)) for run in self.counted]
        return replace(self, counted=limited_runs)


def runs(
    paths: Iterable[str], tasks: Collection[str] | None = None, *, repeats: bool = False
) -> Runs:
    """The logs that count: for each identity the finished one of the latest task version, with most
    items, the newest.

    Args:
        paths: Files and folders, local or any fsspec address; see `readable_logs`.
        tasks: Names of the tasks that are wanted; None is any.
        repeats: Whether later runs of one identity count too, numbered from 2 on: those that share
            no sample with an earlier one. Number 1 is the one that counts without repeats.

    Raises:
        InputError: A path does not exist.
    """
    readable = readable_logs(paths, tasks)
    headers_by_identity: dict[Identity, list[EvalLog]] = {}
    for header in readable.headers:
        headers_by_identity.setdefault(identity_of(header), []).append(header)

    counted_runs = list[Run]()
    unused_logs = dict(readable.ignored)
    for identity, headers in headers_by_identity.items():
        best_header, *other_headers = sorted(headers, key=_weight, reverse=True)
        counted_headers = [best_header]
        superseded_headers = list[EvalLog]()
        for header in other_headers:
            is_repeat = repeats and header.status == "success"
            if is_repeat:
                is_repeat = not any(_share_samples(header, counted) for counted in counted_headers)
            if is_repeat:
                counted_headers.append(header)
            else:
                superseded_headers.append(header)
        for header in superseded_headers:
            unused_logs[header.location] = _superseded(header, best_header)

        later_headers = headers[: headers.index(best_header)]
        best_run = Run(
            best_header,
            identity,
            others=tuple(superseded_headers),
            later=frozenset(header.location for header in later_headers),
        )
        counted_runs.append(best_run)
        for number, header in enumerate(counted_headers[1:], start=2):
            counted_runs.append(Run(header, identity, number))
    counted_runs.sort(key=lambda run: _time_of_run(run.header), reverse=True)
    return Runs(counted_runs, unused_logs, readable.no_logs)


def _weight(header: EvalLog) -> tuple[bool, int, int, str, str]:
    created, completed_at = _time_of_run(header)
    return _is_finished(header), _version(header), _valid_count(header), created, completed_at


def _version(header: EvalLog) -> int:
    """Number with which the version of a run's task begins; 0 without one."""
    number = re.match(r"\d+", str(header.eval.task_version))
    return int(number[0]) if number else 0


def _valid_count(header: EvalLog) -> int:
    return planned_samples(header) - len(invalidated_in(header).provenance)


def planned_samples(header: EvalLog) -> int:
    """Number of samples that a run was to have, epochs counted."""
    return item_count(header) * (header.eval.config.epochs or 1)


def _is_finished(header: EvalLog) -> bool:
    return header.status == "success" and not invalidated_in(header).are_all


def invalidated_in(header: EvalLog) -> InvalidatedSamples:
    """The invalidated samples of a log; none where its samples cannot be read."""
    if not header.invalidated:
        return InvalidatedSamples()
    try:
        return invalidated_samples(header.location)
    except UNREADABLE:
        return InvalidatedSamples()


def once(headers: Iterable[EvalLog]) -> tuple[list[EvalLog], dict[str, str]]:
    """The logs, each run once: among its copies, resumptions and new scores the finished one with
    most items.

    The others are by their address, with the reason.
    """
    all_headers = list(headers)
    best_of_run: dict[str, EvalLog] = {}
    for header in all_headers:
        run_name = header.eval.task_id or header.location
        if run_name not in best_of_run or _weight(header) > _weight(best_of_run[run_name]):
            best_of_run[run_name] = header
    best_headers = list(best_of_run.values())
    unused_logs = {}
    for header in all_headers:
        if header not in best_headers:
            best_header = best_of_run[header.eval.task_id]
            unused_logs[header.location] = _superseded(header, best_header)
    return best_headers, unused_logs


def _superseded(header: EvalLog, better_header: EvalLog) -> str:
    """Reason why a log does not count beside a better one of the same identity."""
    reason = f"superseded by {better_header.location}"
    invalidated = str(invalidated_in(header))
    if header.status != "success" and better_header.status == "success":
        return f"status {header.status}; {reason}"
    if invalidated:
        return f"{invalidated}; {reason}"

    version = _version(header)
    better_version = _version(better_header)
    if version < better_version:
        return f"{reason} (of version {better_version} of the task, this is of {version})"
    if _valid_count(header) < _valid_count(better_header):
        return f"{reason} (it holds more items)"
    return reason


def _share_samples(header: EvalLog, other_header: EvalLog) -> bool:
    """True if two logs of one identity hold a sample in common, as an unfinished run and its
    resumption do.
    """
    try:
        uuids = {sample.uuid for sample in summaries(header.location, valid=False)}
        other_uuids = {sample.uuid for sample in summaries(other_header.location, valid=False)}
    except InputError:
        return True
    has_unnamed_sample = None in uuids | other_uuids
    return has_unnamed_sample or bool(uuids & other_uuids)


def identity_of(header: EvalLog) -> Identity:
    """The identity of a log's run."""
    spec = header.eval
    evaluated = ModelConfig(
        model=spec.model,
        config=header.plan.config.merge(spec.model_generate_config),
        args=spec.model_args,
    )
    data = spec.dataset.name or spec.dataset.location or ""
    return identified(
        task_of(header), evaluated, roles_of(header), spec.task_args, spec.metadata or {}, data
    )


def identified(
    task: str,
    evaluated: ModelConfig,
    roles: Mapping[str, Sequence[ModelConfig]],
    args: Mapping[str, Any],
    metadata: Mapping[str, Any],
    data: str = "",
) -> Identity:
    """The identity of a run, equal before and after it is made.

    Args:
        task: Name without a package.
        evaluated: The evaluated model.
        roles: Role → its models.
        args: Arguments of the task.
        metadata: Metadata of the task, with the hash of its data set.
        data: Name of a data set without a hash.
    """
    names_by_role = dict[str, str]()
    config = dict(_config(evaluated))
    for role, models in roles.items():
        models_of_role = ",".join(model.model for model in models)
        if role != "target" or models_of_role != evaluated.model:
            names_by_role[role] = models_of_role
        for model in models:
            owner = role if len(models) == 1 else model.model
            for name, value in _config(model):
                config[f"{name} of {owner}"] = value
    hashes = [str(metadata[name]) for name in HASH_ENTRIES if metadata.get(name)]
    return Identity(
        task=task,
        model=evaluated.model,
        roles=tuple(sorted(names_by_role.items())),
        args=arguments_of(task, args),
        config=tuple(sorted(config.items())),
        data="+".join(hashes) or data,
    )


def _config(model: ModelConfig) -> Iterator[tuple[str, str]]:
    """The generation settings and the arguments of a model that the user gave."""
    for name, value in model.config.model_dump(exclude_none=True).items():
        if name not in HOW_CALLED:
            yield name, str(value)
    for name, value in concealed(model.args).items():
        if not ADDRESS_ARGUMENT.search(name):
            yield f"-M {name}", str(value)


def arguments_of(task: str, args: Mapping[str, Any]) -> SettingPairs:
    """The arguments that belong to a run's identity: no path, nothing that is the default.

    The name of a log that was read stays, without its folder: there the log itself is what is
    measured.

    >>> arguments_of("kth_word", {"k": [1, 2, 3], "dataset": "my.jsonl", "effort": "low"})
    (('effort', 'low'),)
    """
    defaults = task_defaults(task)
    typed_args = dict[str, str]()
    for name, value in comparable_arguments(args).items():
        if name in PATH_ARGUMENTS or value is None:
            continue
        typed_value = as_typed(value)
        if name == "log":
            typed_value = typed_value.rstrip("/").rpartition("/")[2]
        if typed_value != defaults.get(name):
            typed_args[name] = typed_value
    return tuple(sorted(typed_args.items()))


@cache
def task_defaults(task: str) -> dict[str, str]:
    """The default of each argument of a task of the suite, as one types it."""
    task_function = registry_lookup("task", f"selfprobe/{task}")
    if not callable(task_function):
        return {}
    parameters = inspect.signature(task_function).parameters.values()
    return {
        parameter.name: as_typed(parameter.default)
        for parameter in parameters
        if parameter.default is not parameter.empty
    }


def as_typed(value: object) -> str:
    """A task argument as one types it: the same text for "1,2" and [1, 2]; "null" for None."""
    if isinstance(value, list | tuple):
        return ",".join(map(as_typed, value))
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def differing(identity: Identity, counted_identities: Iterable[Identity]) -> str:
    """The difference between a run and the nearest of those that are shown.

    >>> differing(Identity("t", "m", args=(("k", "1"),)), [Identity("t", "m", args=(("k", "2"),))])
    'another run: k is 1, there 2'
    """
    differences_of_runs = list[list[str]]()
    for counted_identity in counted_identities:
        if counted_identity.task == identity.task:
            differences_of_runs.append(_differences(identity, counted_identity))
    if not differences_of_runs:
        return "another run: its task"
    fewest_differences = min(differences_of_runs, key=len)
    return f"another run: {'; '.join(fewest_differences)}"


def _differences(identity: Identity, counted_identity: Identity) -> list[str]:
    differences = list[str]()
    if identity.model != counted_identity.model:
        differences.append(f"of {identity.model}, there {counted_identity.model}")
    settings = identity.settings
    other_settings = counted_identity.settings
    for name in sorted(settings.keys() | other_settings.keys()):
        if settings.get(name) != other_settings.get(name):
            value = settings.get(name, "not set")
            other_value = other_settings.get(name, "not set")
            differences.append(f"{name} is {value}, there {other_value}")
    return differences


def other_version(header: EvalLog, versions: Mapping[Identity, str]) -> str:
    """Words for a log of one of these runs by another version of its task; "" where it is of this
    one or of no run.

    Args:
        header: Header of the log.
        versions: Run → version of its task now; what follows a plus sign is the hash of its data.
    """
    identity = identity_of(header)
    logged_version = str(header.eval.task_version).partition("+")[0]
    current_version = versions.get(identity, "").partition("+")[0]
    if logged_version == current_version or not current_version:
        return ""
    return (
        f"{identity.task} version {logged_version}, which is version {current_version} now, with "
        "other prompts or scores"
    )


def titles(identities: Iterable[Identity]) -> dict[Identity, str]:
    """A name for each run: its model, and the settings in which runs of one task and model differ.

    >>> identities = [Identity("t", "m", (("grader", grader),)) for grader in "ab"]
    >>> list(titles(identities).values())
    ['m, grader a', 'm, grader b']
    """
    unique_identities = list(dict.fromkeys(identities))
    all_settings = defaultdict[tuple[str, str], list[dict[str, str]]](list)
    for identity in unique_identities:
        all_settings[identity.task, identity.model].append(identity.settings)

    title_of_identity = {}
    for identity in unique_identities:
        settings_of_runs = all_settings[identity.task, identity.model]
        setting_names = {name for settings in settings_of_runs for name in settings}
        title_parts = [identity.model]
        for name in sorted(setting_names):
            values = {settings.get(name) for settings in settings_of_runs}
            if len(values) > 1:
                title_parts.append(f"{name} {identity.settings.get(name, 'not set')}")
        title_of_identity[identity] = ", ".join(title_parts)
    return title_of_identity


def decisions(
    paths: Iterable[str], tasks: Collection[str] | None = None, *, repeats: bool = False
) -> "pd.DataFrame":
    """One row a decision of the logs that count, with the columns of `decision_columns`.

    `attrs["aside"]` has the logs that do not count, with the reason, and of the others how many
    samples are invalidated.

    Args:
        paths: Logs, or folders of logs.
        tasks: Names of the tasks that are wanted; None is any.
        repeats: See `runs`.

    Raises:
        InputError: A path does not exist.
    """
    import pandas as pd

    logged_runs = runs(paths, tasks, repeats=repeats)
    invalidated_texts = dict[str, str]()
    for run in logged_runs.counted:
        if run.invalidated.provenance:
            invalidated_texts[run.log] = str(run.invalidated)

    columns = dict[str, list[Any]]()
    unused_logs = dict(logged_runs.set_aside_reasons)
    while logged_runs.counted:  # what was read of a run is let go with it
        run = logged_runs.counted.pop()
        run_columns = read_best(run, _columns_with_decisions, unused_logs)
        for name, values in (run_columns or {}).items():
            columns.setdefault(name, []).extend(values)
    table = pd.DataFrame(columns)
    table.attrs["aside"] = invalidated_texts | unused_logs
    return table


def read_best(run: Run, read_run: Callable[[Run], T], unused_logs: dict[str, str]) -> T | None:
    """The content of a run's log or, if it turns out to be useless, of the next best of the same
    identity.

    Args:
        run: A run that counts.
        read_run: What reads it; an error of UNREADABLE says that it is useless.
        unused_logs: Log → why it does not count; what is found out here goes into it.
    """
    candidate: Run | None = run
    while candidate:
        unused_logs.pop(candidate.log, None)
        try:
            return read_run(candidate)
        except UNREADABLE as error:
            unused_logs[candidate.log] = one_line(error)
            candidate = candidate.next
    return None


def _columns_with_decisions(run: Run) -> dict[str, list[Any]]:
    columns = decision_columns(run)
    if not any(columns["key"]):
        raise InputError(f"no decision in it (task {run.identity.task})")
    return columns


SAMPLE_COLUMNS = ("item", "epoch", "input", "kind", "cluster")
"""Columns of a table of decisions that say which sample a decision is of."""


def decision_columns(
    run: Run, run_samples: Sequence[EvalSampleSummary] | None = None
) -> dict[str, list[Any]]:
    """Column → its value for each decision of a run.

    Columns: task, model, target, settings (of the identity, as text), run (see `Run.number`), log,
    status, item, epoch, input, kind (the data set's, else ""), cluster (else the item), and the
    fields of `Decision` (key, value, unscored, truth, said …). A sample that ended in an error has
    one row without a key, unscored "error".

    Args:
        run: A run that counts.
        run_samples: Its summaries, where they are at hand. Default: they are read.

    Raises:
        InputError: The log cannot be read.
    """
    settings = "; ".join(f"{name} {value}" for name, value in run.identity.settings.items())
    run_fields: dict[str, Any] = {
        "task": run.identity.task,
        "model": run.identity.model,
        "target": target_of(run.header),
        "settings": settings,
        "run": run.number,
        "log": run.log,
        "status": run.header.status,
    }
    columns: dict[str, list[Any]] = {
        name: [] for name in (*run_fields, *SAMPLE_COLUMNS, *Decision.model_fields)
    }
    keyless_decision = Decision(key="", unscored=FAILED)
    for summary in run.summaries if run_samples is None else run_samples:
        judged = judged_sample(summary, run.header)
        sample_fields = {
            "item": judged.item,
            "epoch": judged.epoch,
            "input": question_of(summary),
            "kind": str(summary.metadata.get("kind") or summary.metadata.get("category") or ""),
            "cluster": str(summary.metadata.get("cluster") or summary.id),
        }
        decisions = (keyless_decision,) if summary.error else judged.decisions
        for decision in decisions:
            row = run_fields | sample_fields | vars(decision)
            for name, value in row.items():
                columns[name].append(value)
    return columns


def item_decisions(run: Run) -> list[tuple[str, Decision]]:
    """Id of the item and decision, for each decision of a run.

    Raises:
        InputError: The log cannot be read.
    """
    return [
        (sample.item, decision) for sample in run.judged_samples() for decision in sample.decisions
    ]


def _files(path: str) -> FolderFiles:
    address = locate(path)
    try:
        file_system, inner_path = url_to_fs(address)
        is_there = file_system.exists(inner_path)
    except refusals() as error:  # no such protocol, no credentials, no network
        raise InputError(f"cannot read {path}: {one_line(error)}") from None
    if not is_there:
        raise InputError(f"there is no log file or folder {path} (looked at {address})")
    if file_system.isdir(inner_path):
        return files_in(address)
    if address.endswith(LOG_ENDINGS):
        return FolderFiles([from_here(address)])
    if address.lower().endswith(LOG_ENDINGS):
        raise InputError(f"{path} cannot be read: {misnamed(address)}")
    raise InputError(
        f"{path} is no log: expected an Inspect log (.eval or .json), or a folder with logs"
    )


def logs_in(folder: str) -> list[str]:
    """The logs of a folder and all below it, newest first; none where there is no such folder yet.

    Raises:
        InputError: The folder cannot be looked through.
    """
    return files_in(folder).logs


def header_of(log: str) -> EvalLog:
    """A log without its samples.

    Raises:
        InputError: The log cannot be read; names it.
    """

    return _read(log, lambda: with_valid_results(read_header(log)))


def _read(log: str, read_log: Callable[[], T]) -> T:
    try:
        return read_log()
    except UNREADABLE as error:
        raise InputError(_cannot(log, error)) from None


def _cannot(log: str, error: BaseException) -> str:
    return f"{log} cannot be read: {_unreadable(error)}; run it again, or leave it out"


def _unreadable(error: BaseException) -> str:
    """Why a log cannot be read, for people who do not know its format."""
    if isinstance(error, zipfile.BadZipFile) or "EOCD" in str(error):
        return f"it is truncated, or no Inspect log ({one_line(error)})"
    if isinstance(error, KeyError):
        return f"a part is missing, {one_line(error)}"
    return one_line(error if isinstance(error, InputError) else error.__cause__ or error)


def samples(log: str) -> list[EvalSample]:
    """All valid samples of a log by epoch and id, with the texts that Inspect keeps as references
    put in their places.

    They have no messages, output and events (`transcripts` has events), to check which takes most
    of the time. A log in JSON has all, and so has a sample with an empty store, which a killed run
    leaves: its Record is in its events.

    Raises:
        InputError: The log cannot be read; names it.
    """

    def read() -> list[EvalSample]:
        if log.endswith(".eval"):
            read_samples = [resolved(_without_transcript(text)) for text in sample_texts(log)]
            read_samples.sort(key=_epoch_and_id)
        else:
            refuse_bomb(log, samples=True)
            read_samples = [resolved(sample) for sample in read_eval_log(log).samples or []]
        return valid_samples(log, read_samples)

    return _read(log, read)


def valid_samples(log: str, log_samples: Sequence[Sample]) -> list[Sample]:
    """The samples of a log without invalidated ones.

    Raises:
        InputError: The log holds two of one id and epoch.
    """
    ids_by_place = defaultdict[tuple[str, int], list[str]](list)
    for sample in log_samples:
        ids_by_place[str(sample.id), sample.epoch].append(repr(sample.id))
    repeated_ids = {place: ids for place, ids in ids_by_place.items() if len(ids) > 1}
    for (_, epoch), ids in repeated_ids.items():
        further_count = len(repeated_ids) - 1
        further_text = f", and {further_count} more" if further_count else ""
        raise InputError(
            f"samples have the same id and epoch: {' and '.join(ids)} of epoch {epoch}"
            f"{further_text}"
        )
    invalidated = invalidated_samples(log).provenance
    return [sample for sample in log_samples if (sample.id, sample.epoch) not in invalidated]


def _without_transcript(text: bytes) -> EvalSample:
    sample = json.loads(text)
    if sample.get("store"):
        sample = {name: value for name, value in sample.items() if name not in TRANSCRIPT_FIELDS}
    return EvalSample.model_validate(sample)


def whole_sample(log: str, item: int | str, epoch: int) -> EvalSample:
    """One sample of a log with all its texts.

    Raises:
        InputError: The log cannot be read; names it.
    """
    return _read(log, lambda: read_eval_log_sample(log, item, epoch, resolve_attachments="full"))


def transcripts(
    log: str, *, epochs: int | None = None, places: Collection[tuple[int | str, int]] | None = None
) -> Iterator[EvalSample]:
    """The valid samples of a log one after another with events and all texts, without messages,
    store and scores.

    A few are in memory at a time; of a log in JSON all are.

    Args:
        log: The log's file.
        epochs: The epochs from the first that are wanted; None is all.
        places: Id and epoch of the samples that are wanted; None is all.

    Raises:
        InputError: The log cannot be read; names it.
    """
    wanted_places = list(places or [])
    if places is None:
        for sample in summaries(log):
            if epochs is None or sample.epoch <= epochs:
                wanted_places.append((sample.id, sample.epoch))
    try:
        refuse_bomb(log, samples=True)
        if log.endswith(".json"):
            log_samples = read_eval_log(log).samples or []
            sample_of_place = {(sample.id, sample.epoch): sample for sample in log_samples}
            for place in wanted_places:
                yield resolve_sample_attachments(sample_of_place[place], "full")
            return
        # Where one of several reads fails, asyncio prints what became of the others; a disk gains
        # nothing by several.
        is_remote = "://" in log and not log.startswith("file:")
        for start in range(0, len(wanted_places), SAMPLES_IN_MEMORY):
            yield from read_eval_log_samples_by_id(
                log,
                wanted_places[start : start + SAMPLES_IN_MEMORY],
                resolve_attachments="full",
                exclude_fields=NO_TRANSCRIPT_FIELDS,
                concurrency=REMOTE_READS if is_remote else 1,
            )
    except UNREADABLE as error:
        raise InputError(_cannot(log, error)) from None


REMOTE_READS = 8
"""Number of samples that are read at the same time from a store elsewhere."""


def summaries(log: str, *, valid: bool = True) -> list[EvalSampleSummary]:
    """The sample summaries of a log: scores and metadata without transcripts; a tenth of the time
    of `samples`.

    A log holds them in the order in which samples finished; here they are in the order of
    `samples`: by epoch and id.

    Args:
        log: The log's file.
        valid: Whether invalidated samples are left out.

    Raises:
        InputError: The log cannot be read, or holds two samples of one id and epoch; names it.
    """

    def read() -> list[EvalSampleSummary]:
        all_summaries = sorted(read_eval_log_sample_summaries(log), key=_epoch_and_id)
        return valid_samples(log, all_summaries) if valid else all_summaries

    return _read(log, read)


def token_count(samples: Iterable[EvalSampleSummary]) -> int:
    """Tokens of all calls of these samples. A resumed run's own statistics have those of its last
    start alone.
    """
    return sum(usage.total_tokens for sample in samples for usage in sample.model_usage.values())


def _epoch_and_id(sample: EvalSample | EvalSampleSummary) -> tuple[int, str]:
    """Epoch and id, a number with leading zeros as Inspect sorts samples."""
    return sample.epoch, sample.id if isinstance(sample.id, str) else str(sample.id).zfill(20)


def question_of(sample: EvalSampleSummary) -> str:
    """The question of a sample: its input, or the last message of a conversation."""
    sample_input = sample.input
    if isinstance(sample_input, str):
        return sample_input
    return sample_input[-1].text if sample_input else ""


def item_count(header: EvalLog) -> int:
    """Number of samples that a run was to have, each epoch's the same."""
    dataset = header.eval.dataset
    return len(dataset.sample_ids) if dataset.sample_ids is not None else dataset.samples or 0


def cause(log: str, sample: EvalSampleSummary) -> str:
    """The error that a sample ended with; of a RetryError, which names none, the one that was
    retried.
    """
    error = read_eval_log_sample(log, sample.id, sample.epoch).error
    message = masked(without_request(error.message if error else sample.error or ""))
    if message.startswith("RetryError"):
        traceback = masked(error.traceback if error else "")
        raised_errors = RAISED_ERROR.findall(traceback)
        if raised_errors:
            return str(raised_errors[0])
    return message.rpartition("\n")[2]


RAISED_ERROR = re.compile(r"^[\w.]+(?:Error|Exception|Timeout)\w*: .+$", re.MULTILINE)
"""A line of a traceback that names an error."""
CUT_METRIC = "cut_at_"
"""Prefix of the metrics that count cut replies; the argument follows."""
UNSCORED_METRIC_PREFIX = "unscored_"
"""Prefix of the metrics that count reasons; the reason follows."""


LEFT_OUT = "selfprobe"
"""Name, in a log, of what left samples out whose replies an earlier log lacks (`solvers.replay`).
"""


def missing_samples(header: EvalLog) -> int:
    """Number of samples that a run was to have and that failed, were left out or were not asked.

    Those that a task of somebody else stopped early are not missing.
    """
    results = header.results
    if results is None:
        return planned_samples(header)
    stopping = results.early_stopping
    stopped_count = 0
    if stopping and stopping.manager != LEFT_OUT:
        stopped_count = len(stopping.early_stops)
    return max(results.total_samples - results.completed_samples - stopped_count, 0)


def is_whole(header: EvalLog) -> bool:
    """True if a run ended well and no sample is missing or invalidated."""
    return header.status == "success" and not header.invalidated and not missing_samples(header)


def counted(results: EvalResults | None) -> float | None:
    """Number of items that a run's own metrics count; None where they count none of ours.

    An item can be unscored though each of its parts has a value, and count though it has no label
    to be scored by.
    """
    counts = [value for name, value in metrics_in(results) if name == "n"]
    return sum(counts) if counts else None


def unscored_in(results: EvalResults | None) -> str:
    """Reason why most of a run is unscored, by its own metrics; "" where they do not say."""
    rate_of_reason = {}
    for name, rate in metrics_in(results):
        if name.startswith(UNSCORED_METRIC_PREFIX) and rate > 0:
            rate_of_reason[name.removeprefix(UNSCORED_METRIC_PREFIX)] = rate
    return max(rate_of_reason, key=lambda reason: rate_of_reason[reason], default="")


def cut_in(results: EvalResults | None) -> dict[str, float]:
    """Task argument that limits replies → share of them that ended at its limit, where those are
    most of a run's.
    """
    cut_shares = {}
    for name, value in metrics_in(results):
        if name.startswith(CUT_METRIC):
            cut_shares[name.removeprefix(CUT_METRIC)] = value
    return cut_shares


def metrics_in(results: EvalResults | None) -> Iterator[tuple[str, float]]:
    """The metrics of all scores of a run, by name."""
    for score in results.scores if results else []:
        for name, metric in score.metrics.items():
            yield name, float(metric.value)


def without_request(error: str) -> str:
    """An error's message; of Inspect's ModelGenerateError, which begins with the request, what the
    vendor said.
    """
    error_text = error.strip()
    vendor_match = re.fullmatch(
        r"ModelGenerateError\((['\"]).*\\n\\n(.*)\1\)", error_text, re.DOTALL
    )
    return vendor_match[2].replace("\\'", "'") if vendor_match else error_text


def restore(folder: str) -> None:
    """Write into the logs of killed runs what Inspect's buffer holds of them.

    It holds them where the process that ran them was one of this machine and is gone.

    Args:
        folder: Folder of the logs, looked through with all below it.

    Raises:
        InputError: A log there is damaged; names it.
    """
    try:
        recoverable_logs = recoverable_eval_logs(folder)
    except UNREADABLE:
        damaged_logs = readable_logs(logs_in(folder)).unused_logs_text()
        if not damaged_logs:
            raise
        raise InputError(
            f"a log of this study is damaged{damaged_logs}; move it out of the folder and type the "
            "command again"
        ) from None
    for recoverable in recoverable_logs:
        log_name = recoverable.log.name
        try:
            # The buffer stays: where machines share a home, a run that is alive on another one
            # looks dead here.
            recover_eval_log(log_name, overwrite=True, cleanup=False)
        except (RecoveryNotAvailable, *UNREADABLE) as error:
            warning = f"{log_name} cannot be restored: {one_line(error)}"
            logging.getLogger(__name__).warning(warning)


def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """The result of a call in a thread of its own; for reading while a task is built or runs.

    In a running event loop Inspect's readers re-enter it through nest_asyncio, after which anyio's
    cancelled scopes spin for ever: a second `eval_set` in the process never ended.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(function, *arguments).result()
