"""One job a folder: two that run at once into the same logs would both ask, and pay, for the same samples.

A wave keeps a file in its folder that says who runs. It is made so that one of several can make it: O_EXCL on a disk, a
conditional write in a store. A killed process leaves it there; the next one on the same machine sees that and takes it,
also where another program has the killed one's number by then.
"""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from selfprobe.errors import InputError, one_line
from selfprobe.errors.output import refusals

NAME = "running.json"
"""The file: host, process, when that started, and since when it runs here."""

SLACK = 2.0
"""Seconds by which two readings of a process's start may differ: the time of the boot is rounded."""


@contextmanager
def claimed(log_dir: str) -> Iterator[None]:
    """A block in which no other process runs a wave into this folder, which is made.

    Args:
        log_dir: Local or any fsspec path.

    Raises:
        InputError: It cannot be written, or another process runs in it.
    """
    try:
        system, inside = url_to_fs(log_dir)
        system.makedirs(inside, exist_ok=True)
        if isinstance(system, LocalFileSystem) and not os.access(inside, os.W_OK):
            raise InputError(f"cannot write logs into {log_dir}: it is read-only for this user")
        ours = _taken(system, f"{inside.rstrip('/')}/{NAME}", log_dir)
    except InputError:
        raise
    except refusals() as error:
        raise InputError(f"cannot write logs into {log_dir}: {one_line(error)}") from None
    try:
        yield
    finally:
        with suppress(*refusals()):  # a folder that is gone, or a store that is away, is said where it is written
            file = f"{inside.rstrip('/')}/{NAME}"
            if system.cat_file(file) == ours:
                system.rm_file(file)


def _taken(system: Any, file: str, log_dir: str) -> bytes:
    """What this process wrote into the file."""
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    process = {"host": socket.gethostname(), "pid": os.getpid(), "started": _start(psutil.Process())}
    ours = json.dumps(process | {"since": now}).encode()
    try:
        _create(system, file, ours)
    except FileExistsError:
        if why := _held(system, file, log_dir):
            raise InputError(why) from None
        with suppress(FileNotFoundError):
            system.rm_file(file)
        try:
            _create(system, file, ours)
        except FileExistsError:  # another one saw the same
            raise InputError(_held(system, file, log_dir) or f"{log_dir} is in use: start again") from None
    return ours


def _create(system: Any, file: str, content: bytes) -> None:
    """Write a file that must not be there; FileExistsError where it is."""
    if isinstance(system, LocalFileSystem):
        with Path(file).open("xb") as out:
            out.write(content)
    else:
        system.pipe_file(file, content, mode="create")


def _held(system: Any, file: str, log_dir: str) -> str:
    """Who runs in the folder, for a message; "" where that process is gone."""
    system.invalidate_cache()
    try:
        told = json.loads(system.cat_file(file))
        host, pid, since = str(told["host"]), int(told["pid"]), str(told["since"])
        start = float(told["started"]) if "started" in told else None
    except FileNotFoundError:
        return ""
    except (ValueError, TypeError, KeyError):
        host, pid, since, start = "another machine", 0, "some time", None
    here = host == socket.gethostname()
    if here and not _alive(pid, start):
        return ""
    return (
        f"{log_dir} is in use: process {pid} on {host} runs in it since {since}. Wait for it, or give another "
        f"--log-dir; if that process is {'another program' if here else 'gone'}, delete {NAME} there and the same "
        "command goes on"
    )


def _alive(pid: int, start: float | None) -> bool:
    """Whether the process of a claim runs on this machine; the one that asks has its number only since it began.

    Args:
        pid: Its number.
        start: See `_start`; None in a claim of an earlier version, which any process of that number holds.
    """
    try:
        process = psutil.Process(pid)
        if pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return start is None or abs(_start(process) - start) <= SLACK
    except psutil.AccessDenied:
        return True
    except psutil.Error:
        return False


def _start(process: psutil.Process) -> float:
    """When a process began, in seconds after the machine did: no change of the clock moves that."""
    boot = psutil.boot_time()  # before: older versions of psutil remember what it says
    return round(float(process.create_time()) - float(boot), 2)
