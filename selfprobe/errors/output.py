"""Atomic writing of a folder of files: all of them or none, here or at any fsspec address."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from selfprobe.errors import InputError

REMOTE_WRITE_ERRORS = {
    "botocore.exceptions": "BotoCoreError",
    "google.auth.exceptions": "GoogleAuthError",
    "azure.core.exceptions": "AzureError",
}
"""Errors of S3, Google and Azure that are no OSError, such as missing credentials."""


_NEW_FOLDER = re.compile(r"\.new-(?P<process>\d{1,9})-\w+")
"""Name of a folder whose files are not yet in their places, with the process that writes them."""


def destination(out: str) -> tuple[Any, str]:
    """The file system of an address, and the folder in it; cheap, so that a typo shows before the
    work.

    Raises:
        InputError: Nothing can write there, or it is a file.
    """
    try:
        file_system, inner_path = url_to_fs(out)
        is_file = file_system.isfile(inner_path)
    except refusals() as error:  # no such protocol, its package is missing, no access
        raise InputError(f"cannot write to {out}: {_reason(error)}") from None
    if is_file:
        raise InputError(f"cannot write to {out}: it is a file; give a folder")
    return file_system, inner_path


def refuse_unwritable(out: str, option: str = "--out") -> None:
    """See before the work that a folder can be written; on this machine by a folder that is made
    there and removed.

    Raises:
        InputError: Nothing can write there, or it is a file.
    """
    file_system, inner_path = destination(out)
    if not isinstance(file_system, LocalFileSystem):
        return
    folder = Path(inner_path)
    nearest_folder = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    try:
        _new_folder(nearest_folder).rmdir()
    except OSError as error:
        raise InputError(
            f"cannot write to {out}: {_reason(error)}; give another {option}"
        ) from None


def place(files: Mapping[str, bytes], out: str) -> None:
    """Put files, by their path inside, into the folder `out`. Other files there stay.

    Raises:
        InputError: It cannot be written. What was there is then unchanged on this machine.
    """
    file_system, inner_path = destination(out)
    try:
        if isinstance(file_system, LocalFileSystem):
            _place_here(files, Path(inner_path))
            return
        for folder in sorted({str(Path(name).parent) for name in files}):
            file_system.makedirs(f"{inner_path}/{folder}".removesuffix("/."), exist_ok=True)
        for name, content in files.items():
            file_system.pipe_file(f"{inner_path}/{name}", content)
    except refusals() as error:  # as HTTP, which can only be read
        raise InputError(f"cannot write to {out}: {_reason(error)}") from None


def remove_files(names: Collection[str], folder: str) -> None:
    """Remove files, by their path inside, from a folder; those that are not there are no
    fault.

    Raises:
        InputError: One cannot be removed.
    """
    file_system, inner_path = destination(folder)
    for name in sorted(names):
        path = f"{inner_path}/{name}"
        try:
            if file_system.isfile(path):
                file_system.rm_file(path)
        except refusals() as error:
            raise InputError(f"cannot remove {folder}/{name}: {_reason(error)}") from None


def place_file(content: bytes, address: str) -> None:
    """Put one file at an address; errors are those of `place`."""
    folder, slash, name = address.rpartition("/")
    place({name: content}, folder or slash or ".")


def place_same(files: Mapping[str, bytes], out: str, reason: str) -> None:
    """Put files into a folder of runs that read them, as `place` does, or see that what lies there
    is the same.

    Args:
        files: Name → content.
        out: Folder to write into.
        reason: Reason why the content may differ.

    Raises:
        InputError: A file is there with other content, or the folder cannot be written.
    """
    file_system, inner_path = destination(out)
    for name, content in files.items():
        path = f"{inner_path}/{name}"
        if file_system.exists(path) and file_system.cat_file(path) != content:
            raise InputError(
                f"{out}/{name} holds other conversations: {reason}. "
                "Go on with the same command, or give a new --log-dir"
            )
    place(files, out)


def is_local(address: str) -> bool:
    """True if the address is one of this machine."""
    return "://" not in address or address.startswith(("file://", "local://"))


def _local_path(address: str) -> Path:
    """The absolute path of a local address."""
    return Path(LocalFileSystem._strip_protocol(address)).absolute()


def from_anywhere(address: str) -> str:
    """An address that holds wherever Inspect works: in the folder of a task file, too."""
    return str(_local_path(address).resolve()) if is_local(address) else address


def from_here(address: str) -> str:
    """An address as seen from the folder that the command was called in: no path of the machine
    where there is none.

    It is whole while Inspect works in a task file's folder, and on another drive of Windows.
    """
    if not is_local(address):
        return address
    path = _local_path(address)
    current_folder = Path.cwd()
    calling_folder = Path(os.environ.get("PWD") or current_folder)
    if calling_folder.is_dir() and not current_folder.samefile(calling_folder):
        return str(path)
    try:
        return os.path.relpath(path, current_folder)
    except ValueError:
        return str(path)


def with_typed_paths(text: str) -> str:
    """The text with paths below the current folder as seen from it; what only holds such a path
    stays whole.
    """
    current_folder = re.escape(f"{Path.cwd()}{os.sep}")
    return re.sub(rf"(?<![\w.~:/\\-]){current_folder}", "", text)


def relative(log: str, out: str) -> str | None:
    """The link from a page in the folder `out` to a log; None if the log is on this machine and the
    page is not.
    """
    if not is_local(log):
        return log
    if not is_local(out):
        return None
    try:
        path = os.path.relpath(_local_path(log), _local_path(out))
    except ValueError:  # on another drive of Windows
        return _local_path(log).as_uri()
    return quote(Path(path).as_posix())


def _place_here(files: Mapping[str, bytes], folder: Path) -> None:
    """Write into a new folder and rename. That lies in `folder`: a renaming never leaves the disk,
    so that it needs no space and cannot stop half way.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if len(files) == 1:
        [(name, content)] = files.items()
        if _is_device(folder / name):
            (folder / name).write_bytes(content)
            return
    _remove_abandoned(folder)
    new_folder = _new_folder(folder)
    try:
        for name, content in files.items():
            (new_folder / name).parent.mkdir(parents=True, exist_ok=True)
            (new_folder / name).write_bytes(content)
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if (folder / name).is_dir():
                raise IsADirectoryError(f"{name} is a folder there")
        pending_names = list(files)
        try:
            _move(pending_names, new_folder, folder)
        except KeyboardInterrupt:  # all of them or none, and the rest takes no time
            _move(pending_names, new_folder, folder)
            raise
    finally:
        shutil.rmtree(new_folder, ignore_errors=True)


def _new_folder(folder: Path) -> Path:
    """A new folder in `folder`; its name has the process that writes into it."""
    return Path(tempfile.mkdtemp(prefix=f".new-{os.getpid()}-", dir=folder))


def _remove_abandoned(folder: Path) -> None:
    """Remove the new folders of processes that were killed."""
    for path in folder.glob(".new-*"):
        name = _NEW_FOLDER.fullmatch(path.name)
        if name is None or path.is_symlink() or not path.is_dir():
            continue
        if not psutil.pid_exists(int(name["process"])):
            shutil.rmtree(path, ignore_errors=True)


def _is_device(place: Path) -> bool:
    """True if a file takes what is written and keeps nothing, such as /dev/stdout or a pipe: none
    takes its place.
    """
    return place.exists() and not place.is_file() and not place.is_dir()


def _move(names: list[str], temporary: Path, folder: Path) -> None:
    """Rename files, and take those that are moved from the list."""
    while names:
        if (temporary / names[0]).exists():
            (temporary / names[0]).replace(folder / names[0])
        del names[0]


def refusals() -> tuple[type[Exception], ...]:
    """Errors of a file system that cannot be written, including those of the loaded packages that
    it uses.
    """
    remote_errors = [
        getattr(sys.modules[module_name], error_name)
        for module_name, error_name in REMOTE_WRITE_ERRORS.items()
        if module_name in sys.modules
    ]
    return (OSError, ValueError, ImportError, NotImplementedError, *remote_errors)


def _reason(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(reason).split())
