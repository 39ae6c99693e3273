"""Which log counts of those with one identity."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from inspect_ai.log import (
    EvalLog,
    EvalResults,
    EvalSample,
    EvalSampleSummary,
    read_eval_log_samples_by_id,
)

from selfprobe.errors import InputError
from selfprobe.logs.finding import readable_logs, time_of_run
from selfprobe.logs.header import item_count, missing_samples, planned_samples
from selfprobe.logs.identity import Identity, differing, identity_of
from selfprobe.logs.invalidated import InvalidatedSamples, results_of_samples
from selfprobe.logs.judged import JudgedSample, judged_sample, with_every_key
from selfprobe.logs.packed import resolved
from selfprobe.logs.reading import Sample, invalidated_in, read_or_refuse, samples, summaries


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

        return read_or_refuse(self.log, read)

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
    counted_runs.sort(key=lambda run: time_of_run(run.header), reverse=True)
    return Runs(counted_runs, unused_logs, readable.no_logs)


def _weight(header: EvalLog) -> tuple[bool, int, int, str, str]:
    created, completed_at = time_of_run(header)
    return _is_finished(header), _version(header), _valid_count(header), created, completed_at


def _version(header: EvalLog) -> int:
    """Number with which the version of a run's task begins; 0 without one."""
    number = re.match(r"\d+", str(header.eval.task_version))
    return int(number[0]) if number else 0


def _valid_count(header: EvalLog) -> int:
    return planned_samples(header) - len(invalidated_in(header).provenance)


def _is_finished(header: EvalLog) -> bool:
    return header.status == "success" and not invalidated_in(header).are_all


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
