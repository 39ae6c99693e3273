"""The files of a log folder: which of them are logs, which are none, whether one has changed."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import fsspec
import ijson
from fsspec.core import url_to_fs
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log

from selfprobe.errors import InputError, one_line
from selfprobe.errors.output import from_here
from selfprobe.logs.packed import refuse_bomb
from selfprobe.text.safe import concealed

LOG_ENDINGS = (".eval", ".json")
"""Endings of the files that Inspect reads as logs."""
COMPANIONS = {"eval-set.json", "logs.json", "listing.json", "running.json"}
"""JSON files that Inspect and selfprobe write beside logs."""
SNIFFED_BYTES = 65_536
"""Bytes at the beginning of a JSON file in which a log names its task."""
TASK_ENTRY = ("eval", "map_key", "task")
"""Path, kind and value of the entry of a log that names its task."""
FILE_VERSION_FIELDS = ("size", "mtime", "created", "LastModified", "updated", "ETag")
"""What file systems say of a file that changes when it is written anew."""


@dataclass(frozen=True)
class FolderFiles:
    """Files of a folder and all below it, by their addresses as seen from the current folder
    (`from_here`).
    """

    logs: list[str]
    """Logs, newest first; those whose names begin with no time last."""
    misnamed: dict[str, str] = field(default_factory=dict)
    """File that looks like a log and has an ending that Inspect does not read → what to do."""
    no_logs: list[str] = field(default_factory=list)
    """JSON files that are no logs: tables, configurations, baselines; without COMPANIONS."""


def files_in(folder: str) -> FolderFiles:
    """The files of a folder, which may not exist yet.

    Inspect lists each .eval file, and of JSON files those whose names begin with a time. It reads
    the other ones too where they are given by name, and so they are logs here if they look like
    one.

    Raises:
        InputError: The folder cannot be looked through.
    """
    try:
        listed_logs = [info.name for info in list_eval_logs(folder)]
        file_system, inner_path = url_to_fs(folder)
        all_files = {file_system.unstrip_protocol(path) for path in file_system.find(inner_path)}
        files = FolderFiles([from_here(file) for file in listed_logs])
        for file in sorted(all_files - set(listed_logs)):
            is_companion = PurePosixPath(file).name in COMPANIONS
            if is_companion or not file.lower().endswith(LOG_ENDINGS):
                continue
            if not file.endswith(LOG_ENDINGS):
                files.misnamed[from_here(file)] = misnamed(file)
            elif looks_like_log(file):
                files.logs.append(from_here(file))
            else:
                files.no_logs.append(from_here(file))
    except (OSError, ValueError) as error:  # rights, no such protocol
        raise InputError(
            f"the log folder {folder} cannot be read: {one_line(error)}; give another"
        ) from None
    return files


def misnamed(file: str) -> str:
    """Sentence on a file whose ending is in other letters than Inspect's."""
    ending = PurePosixPath(file).suffix
    return f"Inspect reads no file that ends in {ending}; rename it to {ending.lower()}"


def looks_like_log(file: str) -> bool:
    """True if the beginning of a JSON file has the entry of a log that names the task."""
    with fsspec.open(file, "rb") as opened:
        beginning = io.BytesIO(opened.read(SNIFFED_BYTES))
    return any(entry == TASK_ENTRY for entry in _json_entries(beginning))


def _json_entries(content: io.BytesIO) -> Iterator[tuple[str, str, object]]:
    """Path, kind and value of what JSON holds, up to where it breaks off."""
    try:
        yield from ijson.parse(content)
    except (ijson.JSONError, ValueError):
        return


def read_header(file: str) -> EvalLog:
    """A log without its samples.

    Raises:
        InputError: An entry is missing or wrong.
        Errors of `UNREADABLE`: It cannot be read.
    """
    refuse_bomb(file)
    try:
        header = read_eval_log(file, header_only=True)
    except AssertionError as error:  # Inspect's own, of a log in JSON
        raise InputError(f"an entry of a log is missing or wrong ({one_line(error)})") from None
    _note_secrets(header)
    return header


def _note_secrets(header: EvalLog) -> None:
    """Have the secret arguments of a log's models masked in every message: a vendor's error may
    repeat one.
    """
    concealed(header.eval.model_args)
    for bound_models in (header.eval.model_roles or {}).values():
        models = bound_models if isinstance(bound_models, list) else [bound_models]
        for model in models:
            concealed(model.args)


def stamp(file: str) -> str:
    """Text that changes when a file is written anew."""
    file_system, inner_path = url_to_fs(file)
    file_info = file_system.info(inner_path)
    return str([file_info.get(name) for name in FILE_VERSION_FIELDS])
