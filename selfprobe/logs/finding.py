"""Which logs lie in files and folders, and what is said where none is there."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from fsspec.core import url_to_fs
from inspect_ai.log import EvalLog, recover_eval_log, recoverable_eval_logs

from selfprobe.errors import InputError, one_line
from selfprobe.errors.arguments import locate
from selfprobe.errors.inspect_private import RecoveryNotAvailable
from selfprobe.errors.output import from_here, refusals
from selfprobe.logs.files import LOG_ENDINGS, FolderFiles, files_in, misnamed, read_header
from selfprobe.logs.header import task_of
from selfprobe.logs.invalidated import with_valid_results
from selfprobe.logs.reading import UNREADABLE, unreadable_reason
from selfprobe.text.counts import count_text


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
            ignored[file] = f"{CANNOT}: {unreadable_reason(error)}"
            continue
        if tasks is None or task_of(header) in tasks:
            headers.append(header)
        else:
            ignored[header.location] = f"a log of {task_of(header)}, not of {' or '.join(tasks)}"
    headers.sort(key=time_of_run, reverse=True)
    other_files = dict[str, None]()
    for files in files_of_paths:
        other_files |= dict.fromkeys(files.no_logs)
        for file, reason in files.misnamed.items():
            ignored[file] = f"{CANNOT}: {reason}"
    return ReadableLogs(headers, ignored, list(other_files))


def time_of_run(header: EvalLog) -> tuple[str, str]:
    return str(header.eval.created), header.stats.completed_at


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
