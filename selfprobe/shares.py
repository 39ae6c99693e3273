"""The shares of a wave: which runs go together, and where their logs lie.

One model's runs stay together, so that its `max_connections` and what else is counted in one process hold. Each share
has a folder of its own below the wave's: Inspect reads a folder whole, and a log that another process is writing cannot
be read.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePath
from typing import Literal, Protocol

import click
from fsspec.core import url_to_fs
from inspect_ai.log import EvalLog

from selfprobe.described import DescribedRun
from selfprobe.errors import OURS, InputError, one_line
from selfprobe.inspect_private import PrerequisiteError
from selfprobe.logs import found, listed, restore
from selfprobe.progress import Key

HELD = ("embedded", "hf", "nnterp", "sglang", "transformer_lens", "vllm")
"""Providers whose models hold weights in the process that opens them, or start a server from it."""

ON_GPU = ("hf", "nnterp", "sglang", "transformer_lens", "vllm")
"""Those of them that want a GPU each, where a cluster has some."""

STARTS = 3
"""Processes of one share, at most: one that runs out of memory does so again."""

GRACE = 30
"""Seconds that interrupted shares have to close their logs."""

Engine = Literal["processes", "ray"]


class Line(Protocol):
    """What a share tells while it runs."""

    def begin(self, samples: int) -> None:
        """It is ready and has so many samples; returns when it may ask."""

    def done(self, key: Key) -> None:
        """A sample has scores."""


@dataclass(frozen=True)
class Work:
    """A share as its process gets it; it can be pickled."""

    models: str
    """Their names, for messages."""
    gpus: int
    call: Callable[[Line], list[EvalLog]]
    """Runs the share to its end, and gives the headers of its logs."""


@dataclass(frozen=True)
class Ended:
    """A share came to its end, with good logs or with bad ones."""

    logs: list[EvalLog]
    """Their headers."""


@dataclass(frozen=True)
class Refused:
    """A share could not begin, or its folder is another's."""

    why: str


@dataclass(frozen=True)
class Stopped:
    """A share was interrupted, and its logs are closed."""


Outcome = Ended | Refused | Stopped


def outcome(call: Callable[[Line], list[EvalLog]], line: Line) -> Outcome:
    """Run a share in this process, which is its own; what it says on stdout is for nobody."""
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
            return Ended(call(line))
    except KeyboardInterrupt:
        return Stopped()
    except PrerequisiteError as error:
        return Refused(one_line(error, longest=OURS))


@dataclass(frozen=True)
class Share:
    """Runs that one process makes."""

    number: int
    """From 1."""
    runs: tuple[DescribedRun, ...]

    @property
    def models(self) -> str:
        """The evaluated models."""
        return ", ".join(dict.fromkeys(run.model.name for run in self.runs))

    @property
    def gpus(self) -> int:
        """One for each model on a GPU, those in a role too."""
        return len({one.name for run in self.runs for one in run.models if one.provider in ON_GPU})

    def folder(self, log_dir: str) -> str:
        """Where its logs lie."""
        return f"{log_dir.rstrip('/')}/share-{self.number}"


@dataclass(frozen=True)
class Spread:
    """Where the runs of a wave are made."""

    processes: int = 1
    """At most, on this machine. One is the default: a process takes three seconds of CPU to start and 250 MB, a call 10
    ms, so that several pay from about a thousand calls on; and a judge, or a target in a role, is asked from all of
    them, each with its own limit of connections.
    """
    engine: Engine = "processes"
    ray_address: str | None = None
    """Of a Ray cluster; None is that of RAY_ADDRESS, or the one that runs on this machine."""

    def __post_init__(self) -> None:
        if self.engine == "ray" and self.processes > 1:
            raise InputError("--processes is of this machine; on a cluster each model's runs are a task of their own")
        if self.ray_address is not None and self.engine != "ray":
            raise InputError("--ray-address goes with --engine ray")

    def shares(self, runs: Sequence[DescribedRun]) -> list[Share]:
        """The parts of a wave; none where it is all run in this process."""
        models = list(dict.fromkeys(run.model.name for run in runs))
        count = len(models) if self.engine == "ray" else min(self.processes, len(models))
        if self.engine == "processes" and self.processes > 1:
            if held := sorted({one.provider for run in runs for one in run.models} & set(HELD)):
                click.echo(f"One process: {', '.join(held)} models hold their weights in it", err=True)
                return []
            if count < self.processes:
                click.echo(f"{count} process{'es' * (count != 1)}: one model's runs stay together", err=True)
        if count < 2 and self.engine == "processes":
            return []
        number = {model: place % count for place, model in enumerate(models)}
        by_share = sorted(runs, key=lambda run: number[run.model.name])
        return [
            Share(place + 1, tuple(group)) for place, group in groupby(by_share, lambda run: number[run.model.name])
        ]


ALONE = Spread()
"""All in this process."""


def place_logs(shares: Iterable[Share], log_dir: str, *, dirty: bool) -> None:
    """Put each log into the folder of its share, where another number of processes had put it elsewhere.

    Args:
        shares: Of one wave.
        log_dir: The wave's folder.
        dirty: Whether logs of other runs may lie there.

    Raises:
        InputError: Logs of models that are not in the wave lie there.
    """
    if not listed(log_dir):
        return
    restore(log_dir)  # Inspect's buffer of a killed run goes by its log's address
    folders = {run.model.name: share.folder(log_dir) for share in shares for run in share.runs}
    for log in found([log_dir]).headers:
        folder = folders.get(log.eval.model)
        name = PurePath(log.location).name
        if folder is None and not dirty:
            raise InputError(other_runs(name, log_dir))
        if folder is None:
            continue
        system, here = url_to_fs(log.location)
        _, there = url_to_fs(f"{folder}/{name}")
        if here != there:
            system.makedirs(url_to_fs(folder)[1], exist_ok=True)
            system.mv(here, there)


def other_runs(log: str, log_dir: str) -> str:
    """That a folder's log is of no run of this command."""
    return (
        f"{log_dir} holds a log of other runs ({log}): another matrix, other task arguments or generation settings, a "
        "model less, or a data set that changed since. Go on with the same command, or give a new --log-dir"
    )
