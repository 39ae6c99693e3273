"""The shares of a wave as tasks of a Ray cluster, one for each model.

Every node needs this version of selfprobe, the models' keys in its environment, and the log folder. A task that lost
its process or its node is run again, by Ray, where there is room, and takes up what lies in the log folder.
"""

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

from fsspec.core import url_to_fs
from inspect_ai.log import EvalLog

from selfprobe.cluster import joined
from selfprobe.errors import InputError, one_line
from selfprobe.output import refusals
from selfprobe.progress import Key, Progress
from selfprobe.shares import GRACE, STARTS, Line, Outcome, Refused, Stopped, Work, outcome

TICK = 0.5
"""Seconds between two looks at what the tasks tell."""

TOKEN = ".selfprobe-shared"
"""The file by which every node is seen to have the log folder."""


class _Board:
    """What tasks tell, until the driver takes it; an actor."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int | Key]] = []

    def add(self, number: int, told: int | Key) -> None:
        self.told.append((number, told))

    def take(self) -> list[tuple[int, int | Key]]:
        taken, self.told = self.told, []
        return taken


@dataclass(frozen=True)
class _Told:
    """A share's `Line`."""

    board: Any
    number: int

    def begin(self, samples: int) -> None:
        self.board.add.remote(self.number, samples)

    def done(self, key: Key) -> None:
        self.board.add.remote(self.number, key)


def run_on_ray(works: Sequence[Work], log_dir: str, progress: Progress, *, address: str | None) -> list[EvalLog]:
    """Run each share as a task of a cluster; the headers of all logs.

    Args:
        works: The shares.
        log_dir: The wave's folder, which all nodes share.
        progress: Is told of every sample.
        address: Of the cluster; None is that of RAY_ADDRESS, or the one that runs on this machine.

    Raises:
        KeyboardInterrupt: The user stopped it; the tasks have closed their logs.
        InputError: No Ray, no cluster there, a folder that its nodes do not share, too few GPUs, another version of
            selfprobe, or a model that cannot be had.
        RunError: A task lost its process again and again.
    """
    with joined(address) as ray:
        _refuse_unfit(ray, log_dir)
        return _run(ray, works, progress, _gpus(ray, works))


def _refuse_unfit(ray: Any, log_dir: str) -> None:
    """Refuse a cluster of which a node has another log folder, or another selfprobe.

    Raises:
        InputError: Names the node and what to do.
    """
    token = str(uuid4())
    system, inside = url_to_fs(f"{log_dir}/{TOKEN}")
    system.pipe_file(inside, token.encode())
    try:
        look = ray.remote(num_cpus=0, max_retries=0)(_look)
        pinned = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        for node in ray.nodes():
            if not node["Alive"]:
                continue
            there = look.options(scheduling_strategy=pinned(node["NodeID"], soft=False))
            try:
                seen, theirs = ray.get(there.remote(f"{log_dir}/{TOKEN}"))
            except ray.exceptions.RayError as error:
                said = one_line(error).partition("ModuleNotFoundError: ")[2] or one_line(error)
                raise InputError(f"the node {node['NodeName']} of the cluster cannot run selfprobe: {said}") from None
            if theirs != version("selfprobe"):
                raise InputError(f"the node {node['NodeName']} has selfprobe {theirs}, here is {version('selfprobe')}")
            if seen != token:
                raise InputError(
                    f"the node {node['NodeName']} does not have {log_dir}: give a --log-dir that all nodes share, such "
                    "as s3://bucket/folder"
                )
    finally:
        system.rm_file(inside)


def _look(path: str) -> tuple[str, str]:
    """What a file holds on a node ("" where it is not there), and the node's version of selfprobe."""
    try:
        system, inside = url_to_fs(path)
        return system.cat_file(inside).decode(), version("selfprobe")
    except refusals():
        return "", version("selfprobe")


def _gpus(ray: Any, works: Sequence[Work]) -> list[int]:
    """GPUs that each share declares; none on a cluster without any, where such models run on CPUs.

    Raises:
        InputError: No node has as many as a share needs.
    """
    most = max((int(node["Resources"].get("GPU", 0)) for node in ray.nodes() if node["Alive"]), default=0)
    for work in works:
        if 0 < most < work.gpus:
            raise InputError(f"{work.models} and its roles need {work.gpus} GPUs on one node; the largest has {most}")
    return [work.gpus if most else 0 for work in works]


def _run(ray: Any, works: Sequence[Work], progress: Progress, gpus: Sequence[int]) -> list[EvalLog]:
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=True
    )
    board = ray.remote(num_cpus=0)(_Board).options(scheduling_strategy=here).remote()
    task = ray.remote(max_retries=STARTS - 1)(_on_node)
    logs: list[EvalLog] = []
    pending = {
        task.options(num_cpus=1, num_gpus=gpus[number]).remote(work.call, _Told(board, number), str(Path.cwd())): number
        for number, work in enumerate(works)
    }
    try:
        while pending:
            ended, _ = ray.wait(list(pending), num_returns=1, timeout=TICK)
            _hear(ray.get(board.take.remote()), progress, len(works))
            for one in ended:
                del pending[one]
                told: Outcome = ray.get(one)
                if isinstance(told, Refused):
                    raise InputError(told.why)
                if isinstance(told, Stopped):
                    raise KeyboardInterrupt
                logs += told.logs
    finally:
        for one in pending:
            ray.cancel(one)
        if pending:
            _, late = ray.wait(list(pending), num_returns=len(pending), timeout=GRACE)
            for one in late:
                ray.cancel(one, force=True)
    progress.announce()  # of shares that had nothing left to ask
    return logs


def _hear(told: Sequence[tuple[int, int | Key]], progress: Progress, shares: int) -> None:
    """The heading waits for all shares, or for the first sample: a share may wait for a GPU until others are done."""
    for number, one in told:
        if isinstance(one, int):
            progress.samples[number] = one
        else:
            progress.announce()
            progress.note(number, one)
    if len(progress.samples) == shares:
        progress.announce()


def _on_node(call: Callable[[Line], list[EvalLog]], line: _Told, folder: str) -> Outcome:
    """A share's task, in the folder of the command where the node has it: data sets may be named relative to it."""
    if Path(folder).is_dir():
        os.chdir(folder)
        os.environ["PWD"] = folder
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell began the node
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # Inspect passes Ray's cancel on as a real signal
    return outcome(call, line)
