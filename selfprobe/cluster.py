"""Joining a Ray cluster, for what runs on its nodes: shares of a wave, and copies of a model that is read."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from selfprobe.errors import InputError, RunError, one_line

PATIENCE = 5
"""Seconds in which the head of a cluster answers."""


@contextmanager
def joined(address: str | None) -> Iterator[Any]:
    """A block in which this process is a driver of the cluster; gives the module `ray`.

    Args:
        address: Of the cluster; None is that of RAY_ADDRESS, or the one that runs on this machine.

    Raises:
        InputError: No Ray is installed, or no cluster is there.
        RunError: Ray failed within the block.
    """
    try:
        import ray
    except ImportError as error:
        raise InputError(f"--engine ray needs Ray ({error}): pip install 'selfprobe[ray]'") from None
    wanted = address or os.environ.get("RAY_ADDRESS") or "auto"
    start = "start one with `ray start --head`, and give its --ray-address"
    if wanted != "auto":  # Ray itself waits for minutes, and then ends the process
        where = urlsplit(wanted if "://" in wanted else f"//{wanted}")
        try:
            socket.create_connection((str(where.hostname), where.port or 0), timeout=PATIENCE).close()
        except (OSError, ValueError) as error:
            raise InputError(f"no Ray cluster answers at {wanted} ({one_line(error)}); {start}") from None
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=wanted, log_to_driver=False, logging_level="ERROR", configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InputError(f"no Ray cluster at {wanted} ({one_line(error)}); {start}") from None
    if main:
        signal.signal(signal.SIGTERM, before)  # Ray's own ends the process at once
    try:
        yield ray
    except ray.exceptions.RayError as error:
        raise RunError(f"Ray: {one_line(error)}; the same command goes on") from None
    finally:
        ray.shutdown()
