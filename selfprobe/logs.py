"""Finding and reading Inspect's logs."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log

T = TypeVar("T")


def log_files(path: str) -> list[str]:
    """A log file itself, or all logs in a folder, newest first."""
    return [path] if path.endswith((".eval", ".json")) else [info.name for info in list_eval_logs(path)]


def headers(path: str) -> list[EvalLog]:
    """Their headers, newest first."""
    return [read_eval_log(file, header_only=True) for file in log_files(path)]


def apart(read: Callable[[str], T], path: str) -> T:
    """Read in a thread of its own; for what is read while a task is built or runs.

    In a running event loop Inspect's readers re-enter it through nest_asyncio, after which anyio's cancelled scopes
    spin for ever: a second `eval_set` in the process never ended.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(read, path).result()
