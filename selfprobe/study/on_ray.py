"""Ray, the one engine beyond this process: each model's runs as a task of a cluster, and copies of
a model that reads.

Every node needs this version of selfprobe; for runs also the models' keys in its environment, and
the log folder. A task that lost its process or its node is run again, by Ray, where there is room,
and takes up what lies in that folder.

    with connected("host:6379") as ray:
        harvest(judge, pairs, reader=replicas(ray, judge, partial(load_model, "smollm2")))

A copy that does not give the command's own states of one prompt is refused. The batches of a copy
that died are read by the others, and another is started in its place.
"""

import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import chain, groupby
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

from fsspec.core import url_to_fs
from inspect_ai.log import EvalLog

from selfprobe.embed.weights import Progress as Say
from selfprobe.embed.weights import to_stderr
from selfprobe.errors import LONGEST_OWN_MESSAGE, InputError, RunError, one_line
from selfprobe.errors.inspect_private import PrerequisiteError
from selfprobe.errors.output import refusals
from selfprobe.logs import logs_in, readable_logs, restore
from selfprobe.study.described import DescribedRun
from selfprobe.study.progress import Key, Progress

if TYPE_CHECKING:  # PyTorch, which runs do without
    from selfprobe.probes.forward import Batch, States, Work
    from selfprobe.probes.model import LocalModel
    from selfprobe.probes.tokens import Prompt

J = TypeVar("J")
T = TypeVar("T")

PATIENCE = 5
"""Seconds within which the head of a cluster answers."""

TICK = 0.5
"""Seconds between two looks at the messages of tasks."""

TOKEN = ".selfprobe-shared"
"""The file by which every node is seen to have the log folder."""

ON_GPU = ("hf", "nnterp", "sglang", "transformer_lens", "vllm")
"""Providers whose models want a GPU each, where a cluster has some."""

STARTS = 3
"""Largest number of times that a share is started: one that runs out of memory does so again."""

GRACE = 30
"""Seconds that interrupted shares have to close their logs."""

AHEAD = 2
"""Batches that a copy has at a time: the second waits there while the first is read."""

DEATHS = 2
"""Largest number of dead copies, per copy: one that runs out of memory does so again."""

WAIT = 60
"""Seconds after which a line says that no copy answered."""


@dataclass(frozen=True)
class RayCluster:
    """The cluster that works in place of this process."""

    address: str | None = None
    """Address of the head; None is the address in RAY_ADDRESS, or the cluster that runs on this
    machine.
    """


def requested_cluster(
    engine: str | None, ray_address: str | None, replicas: int | None = None
) -> RayCluster | None:
    """The cluster that options ask for; None is this process.

    Raises:
        InputError: An option of clusters without --engine ray.
    """
    if engine == "ray":
        return RayCluster(ray_address)
    for name, value in {"--ray-address": ray_address, "--replicas": replicas}.items():
        if value is not None:
            raise InputError(f"{name} goes with --engine ray")
    return None


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """A block in which this process is a driver of the cluster; gives the module `ray`.

    Args:
        address: See `RayCluster`.

    Raises:
        InputError: No Ray is installed, or no cluster is there.
        RunError: Ray failed within the block.
    """
    try:
        import ray
    except ImportError as error:
        raise InputError(
            f"--engine ray needs Ray ({error}): pip install 'selfprobe[ray]'"
        ) from None
    wanted = address or os.environ.get("RAY_ADDRESS") or "auto"
    start = "start one with `ray start --head`, and give its --ray-address"
    if wanted != "auto":  # Ray itself waits for minutes, and then ends the process
        where = urlsplit(wanted if "://" in wanted else f"//{wanted}")
        try:
            socket.create_connection(
                (str(where.hostname), where.port or 0), timeout=PATIENCE
            ).close()
        except (OSError, ValueError) as error:
            raise InputError(
                f"no Ray cluster answers at {wanted} ({one_line(error)}); {start}"
            ) from None
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            address=wanted, log_to_driver=False, logging_level="ERROR", configure_logging=False
        )
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


# ---- runs


@dataclass(frozen=True)
class ModelShare:
    """One model's runs, which stay together so that its `max_connections` holds; a task of the
    cluster.
    """

    number: int
    """Number of the share, from 1."""
    runs: tuple[DescribedRun, ...]

    @property
    def model(self) -> str:
        """The evaluated model."""
        return self.runs[0].model.name

    @property
    def gpus(self) -> int:
        """Number of GPUs: one for each model on a GPU, those in a role included."""
        return len({one.name for run in self.runs for one in run.models if one.provider in ON_GPU})

    def folder(self, log_dir: str) -> str:
        """Folder of its logs alone: Inspect reads a folder whole, and a log that is being written
        cannot be read.
        """
        return f"{log_dir.rstrip('/')}/share-{self.number}"


def shares_of(runs: Sequence[DescribedRun]) -> list[ModelShare]:
    """The runs of a wave by their model, in the order of the models."""
    models = list(dict.fromkeys(run.model.name for run in runs))
    by_model = sorted(runs, key=lambda run: models.index(run.model.name))
    grouped = groupby(by_model, lambda run: run.model.name)
    return [ModelShare(number, tuple(group)) for number, (_, group) in enumerate(grouped, start=1)]


def place_logs(shares: Iterable[ModelShare], log_dir: str, *, dirty: bool) -> None:
    """Put each log into the folder of its share, where another engine had put it elsewhere.

    Args:
        shares: The shares of one wave.
        log_dir: The wave's folder.
        dirty: Whether logs of other runs may lie there.

    Raises:
        InputError: Logs of models that are not in the wave lie there.
    """
    if not logs_in(log_dir):
        return
    restore(log_dir)  # Inspect's buffer of a killed run goes by its log's address
    folders = {run.model.name: share.folder(log_dir) for share in shares for run in share.runs}
    for log in readable_logs([log_dir]).headers:
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
    """Error text: a folder's log belongs to no run of this command."""
    return (
        f"{log_dir} holds a log of other runs ({log}): another matrix, other task arguments or generation settings, a "
        "model less, or a data set that changed since. Go on with the same command, or give a new --log-dir"
    )


class _Board:
    """Board with the messages of tasks, until the driver takes them; an actor."""

    def __init__(self) -> None:
        self.news: list[tuple[int, int | Key]] = []

    def add(self, number: int, news: int | Key) -> None:
        self.news.append((number, news))

    def take(self) -> list[tuple[int, int | Key]]:
        taken, self.news = self.news, []
        return taken


@dataclass(frozen=True)
class ShareLine:
    """Line from a share's task to the command, which hears what the task does."""

    board: Any
    number: int

    def begin(self, samples: int) -> None:
        """Report that the share is ready and has so many samples."""
        self.board.add.remote(self.number, samples)

    def done(self, key: Key) -> None:
        """Report that a sample has scores."""
        self.board.add.remote(self.number, key)


@dataclass(frozen=True)
class EndedShare:
    """End of a share, with good logs or with bad ones."""

    logs: list[EvalLog]
    """Headers of the share's logs."""


@dataclass(frozen=True)
class RefusedShare:
    """Refusal: a share could not begin, or its folder is another's."""

    why: str


@dataclass(frozen=True)
class StoppedShare:
    """Interruption of a share, whose logs are closed."""


Outcome = EndedShare | RefusedShare | StoppedShare

Ask = Callable[[Sequence[DescribedRun], str, ShareLine], list[EvalLog]]
"""Makes runs, with their logs in a folder, to their end; gives the headers of the logs. It can be
pickled.
"""


def run_on_ray(
    shares: Sequence[ModelShare], ask: Ask, log_dir: str, progress: Progress, *, address: str | None
) -> list[EvalLog]:
    """Run each share as a task of a cluster; the headers of all logs.

    Args:
        shares: The parts of the wave.
        ask: Makes a share's runs, on its node.
        log_dir: The wave's folder, which all nodes share.
        progress: Gets every sample.
        address: See `RayCluster`.

    Raises:
        KeyboardInterrupt: The user stopped it; the tasks have closed their logs.
        InputError: No Ray, no cluster there, a folder that its nodes do not share, too few GPUs,
            another version of selfprobe, or a model that cannot be had.
        RunError: A task lost its process again and again.
    """
    with connected(address) as ray:
        _refuse_unfit(ray, log_dir)
        return _run(ray, shares, ask, log_dir, progress)


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
                why = one_line(error).partition("ModuleNotFoundError: ")[2] or one_line(error)
                raise InputError(
                    f"the node {node['NodeName']} of the cluster cannot run selfprobe: {why}"
                ) from None
            if theirs != version("selfprobe"):
                raise InputError(
                    f"the node {node['NodeName']} has selfprobe {theirs}, here is {version('selfprobe')}"
                )
            if seen != token:
                raise InputError(
                    f"the node {node['NodeName']} does not have {log_dir}: give a --log-dir that all nodes share, such "
                    "as s3://bucket/folder"
                )
    finally:
        system.rm_file(inside)


def _look(path: str) -> tuple[str, str]:
    """Content of a file on a node ("" where it is not there), and the node's version of selfprobe."""
    try:
        system, inside = url_to_fs(path)
        return system.cat_file(inside).decode(), version("selfprobe")
    except refusals():
        return "", version("selfprobe")


def _gpus(ray: Any, shares: Sequence[ModelShare]) -> list[int]:
    """GPUs that each share declares; none on a cluster without any, where such models run on CPUs.

    Raises:
        InputError: No node has as many as a share needs.
    """
    most = max(
        (int(node["Resources"].get("GPU", 0)) for node in ray.nodes() if node["Alive"]), default=0
    )
    for share in shares:
        if 0 < most < share.gpus:
            raise InputError(
                f"{share.model} and its roles need {share.gpus} GPUs on one node; the largest has {most}"
            )
    return [share.gpus if most else 0 for share in shares]


def _run(
    ray: Any, shares: Sequence[ModelShare], ask: Ask, log_dir: str, progress: Progress
) -> list[EvalLog]:
    gpus = _gpus(ray, shares)
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=True
    )
    board = ray.remote(num_cpus=0)(_Board).options(scheduling_strategy=here).remote()
    task = ray.remote(max_retries=STARTS - 1)(_on_node)
    logs: list[EvalLog] = []
    pending = [
        task.options(num_cpus=1, num_gpus=gpus[number]).remote(
            partial(ask, share.runs, share.folder(log_dir)),
            ShareLine(board, number),
            str(Path.cwd()),
        )
        for number, share in enumerate(shares)
    ]
    try:
        while pending:
            ended, _ = ray.wait(pending, num_returns=1, timeout=TICK)
            _note(ray.get(board.take.remote()), progress, len(shares))
            for one in ended:
                pending.remove(one)
                outcome: Outcome = ray.get(one)
                if isinstance(outcome, RefusedShare):
                    raise InputError(outcome.why)
                if isinstance(outcome, StoppedShare):
                    raise KeyboardInterrupt
                logs += outcome.logs
    finally:
        for one in pending:
            ray.cancel(one)
        if pending:
            _, late = ray.wait(pending, num_returns=len(pending), timeout=GRACE)
            for one in late:
                ray.cancel(one, force=True)
    progress.announce()  # of shares that had nothing left to ask
    return logs


def _note(news: Sequence[tuple[int, int | Key]], progress: Progress, shares: int) -> None:
    """The heading waits for all shares, or for the first sample: a share may wait for a GPU until
    others are done.
    """
    for number, one in news:
        if isinstance(one, int):
            progress.samples[number] = one
        else:
            progress.announce()
            progress.note(number, one)
    if len(progress.samples) == shares:
        progress.announce()


def _on_node(call: Callable[[ShareLine], list[EvalLog]], line: ShareLine, folder: str) -> Outcome:
    """A share's task, in the folder of the command where the node has it: data sets may be named
    relative to it.

    It has a process for itself; what it says on stdout is for nobody.
    """
    if Path(folder).is_dir():
        os.chdir(folder)
        os.environ["PWD"] = folder
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell began the node
    signal.pthread_sigmask(
        signal.SIG_UNBLOCK, {signal.SIGINT}
    )  # Inspect passes Ray's cancel on as a real signal
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
            return EndedShare(call(line))
    except KeyboardInterrupt:
        return StoppedShare()
    except PrerequisiteError as error:
        return RefusedShare(one_line(error, longest=LONGEST_OWN_MESSAGE))


# ---- copies of a model


@dataclass(frozen=True)
class Seen:
    """Facts that a copy reports about itself, to be compared with those of the command's copy."""

    node: str
    selfprobe: str
    revision: str
    states: "States"
    """States of one test prompt."""


class Replica:
    """A copy; an actor. Its model is loaded with the first call, whose errors reach the command as
    they are.
    """

    def __init__(self, load: "Callable[[], LocalModel]", folder: str) -> None:
        if Path(folder).is_dir():  # models may be named relative to it
            os.chdir(folder)
        self.load = load
        self.judge: LocalModel | None = None

    def check(self, revision: str, prompt: "Prompt") -> Seen:
        """Become the control with random weights if that is the revision asked for, and read one
        prompt.
        """
        import ray

        from selfprobe.probes.forward import read_states
        from selfprobe.probes.model import named_untrained, random_weights

        node = ray.util.get_node_ip_address()
        try:
            judge = self.judge or self.load()
        except (ImportError, OSError, ValueError) as error:
            raise ValueError(f"the node {node} cannot load the model: {error}") from None
        self.judge = random_weights(judge) if named_untrained(judge).revision == revision else judge
        states = read_states(self.judge, [prompt], "two_forwards")
        return Seen(node, version("selfprobe"), self.judge.revision, states)

    def do(self, work: Callable[..., T], *arguments: Any) -> T:
        """Call a function of a module with the copy and what it needs besides, such as `states_of`
        with a batch.
        """
        assert self.judge is not None, "a copy is checked first"
        return work(self.judge, *arguments)


def replicas(
    ray: Any,
    judge: "LocalModel",
    load: "Callable[[], LocalModel]",
    *,
    count: int | None = None,
    progress: Say = to_stderr,
) -> "Copies":
    """Copies of `judge` that read on a cluster; they start with the first batch, and end with the
    cluster's block.

    Args:
        ray: Module that `connected` gives.
        judge: The command's own copy. Each other takes as many GPUs.
        load: Makes the same model on a node.
        count: Number of copies; None is one per so many GPUs, or one per node where it needs none.
        progress: Gets a line for each start and death.

    Raises:
        ValueError: The cluster has no room for them. When it reads: a copy gives other states than
            `judge`, or too many died.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    number, cpus = room(nodes, gpus_of(judge), count)
    actor = ray.remote(num_cpus=cpus, num_gpus=gpus_of(judge))(Replica)
    return Copies(ray, lambda: actor.remote(load, str(Path.cwd())), number, progress)


@contextmanager
def copies_on_cluster(
    engine: str, ray_address: str | None, replicas: int | None
) -> "Iterator[Callable[[LocalModel, str, dict[str, Any]], Copies] | None]":
    """A block with what makes copies of a model, of its name and of how it was loaded; None where
    this process reads.

    Raises:
        InputError: See `requested_cluster` and `connected`.
    """
    if (cluster := requested_cluster(engine, ray_address, replicas)) is None:
        yield None
        return
    with connected(cluster.address) as ray:
        yield partial(_copies, ray, replicas)


def _copies(
    ray: Any, count: int | None, judge: "LocalModel", name: str, loading: dict[str, Any]
) -> "Copies":
    from selfprobe.probes.model import load_model

    there = loading | {"chat": judge.chat, "device": str(loading["device"]).partition(":")[0]}
    return replicas(ray, judge, partial(load_model, name, **there), count=count)


def gpus_of(judge: "LocalModel") -> int:
    """Number of GPUs that a model is on."""
    return len(
        {
            parameter.device
            for parameter in judge.model.parameters()
            if parameter.device.type == "cuda"
        }
    )


def room(nodes: Sequence[dict[str, float]], gpus: int, count: int | None) -> tuple[int, int]:
    """Number of copies with so many GPUs that these nodes hold, and CPUs of each: as many as all
    nodes have for it.

    Raises:
        ValueError: There is no room for `count`, or for one.
    """
    if gpus:
        most = sum(int(node.get("GPU", 0)) // gpus for node in nodes)
        needed = f"{gpus} GPUs of one node" if gpus > 1 else "a GPU"
        wanted, cpus = count or max(most, 1), 1
    else:
        needed, there = "a CPU", [int(node.get("CPU", 0)) for node in nodes]
        most, wanted = sum(there), count or max(sum(cpus > 0 for cpus in there), 1)
        cpus = max(
            (
                c
                for c in range(1, max(there, default=0) + 1)
                if sum(n // c for n in there) >= wanted
            ),
            default=1,
        )
    if wanted > most:
        told = (
            f"a copy of the model takes {needed}"
            if wanted == 1
            else f"{wanted} copies of the model take {needed} each"
        )
        raise ValueError(f"{told}; the cluster has room for {most}")
    return wanted, cpus


@dataclass
class Copies:
    """A `forward.Reader` of batches, and with `spread` a `forward.Spread` of any other work."""

    ray: Any
    start: Callable[[], Any]
    """Starts a copy: an actor's handle."""
    count: int
    progress: Say
    copies: list[Any] = field(default_factory=list)
    deaths: int = 0

    def __call__(
        self, judge: "LocalModel", batches: "Iterable[Batch]"
    ) -> "Iterator[tuple[Batch, States]]":
        from selfprobe.probes.forward import read_states

        coming = iter(batches)
        for first in coming:
            every = chain([first], coming)
            yield from self.spread(
                judge, first.prompts[0], every, lambda one: (read_states, one.prompts, one.way)
            )

    def spread(
        self, judge: "LocalModel", prompt: "Prompt", jobs: Iterable[J], work: "Work[J]"
    ) -> Iterator[tuple[J, Any]]:
        """Each job with what came of it, in the order in which they end; `prompt`: what copies are
        checked by.
        """
        from selfprobe.probes.forward import read_states

        coming, again, checked = iter(jobs), deque[J](), list[Any]()
        first = next(coming, None)
        if first is None:
            return
        again.append(first)
        ours = Seen(
            "here",
            version("selfprobe"),
            judge.revision,
            read_states(judge, [prompt], "two_forwards"),
        )
        self.copies += [self.start() for _ in range(self.count - len(self.copies))]
        self.progress(
            f"{self.count} {'copy reads' if self.count == 1 else 'copies read'} on the cluster"
        )
        pending: dict[Any, tuple[Any, J | None]] = {}
        pending |= {copy.check.remote(judge.revision, prompt): (copy, None) for copy in self.copies}
        while True:
            self._feed(checked, pending, again, coming, work)
            if not again and all(job is None for _, job in pending.values()):
                return  # a copy that is still starting has come too late
            done, _ = self.ray.wait(list(pending), num_returns=1, timeout=WAIT)
            if not done:
                self.progress(f"waiting for {len(pending)} answers of the cluster")
                continue
            copy, job = pending.pop(done[0])
            try:
                found = self.ray.get(done[0])
            except self.ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except self.ray.exceptions.RayActorError as error:
                if job is not None:
                    again.append(job)
                if copy in checked:
                    checked.remove(copy)
                if copy in self.copies:  # its other batches come here too
                    fresh = self._replaced(copy, error)
                    pending[fresh.check.remote(judge.revision, prompt)] = fresh, None
                continue
            if job is None:
                same(found, ours, judge)
                checked.append(copy)
            else:
                yield job, found

    def _feed(
        self,
        checked: Sequence[Any],
        pending: dict[Any, tuple[Any, J | None]],
        again: deque[J],
        coming: Iterator[J],
        work: "Work[J]",
    ) -> None:
        """Give each copy as many batches as it can take; each copy gets its first before another
        its second.
        """
        for has in range(AHEAD):
            for copy in checked:
                if sum(other is copy for other, _ in pending.values()) > has:
                    continue
                job = again.popleft() if again else next(coming, None)
                if job is None:
                    return
                pending[copy.do.remote(*work(job))] = copy, job

    def _replaced(self, copy: Any, error: Exception) -> Any:
        """Replacement of a copy that died; ValueError where that was in vain too often."""
        self.copies.remove(copy)
        self.deaths += 1
        if self.deaths > DEATHS * self.count:
            raise ValueError(
                f"{self.deaths} copies of the model died on the cluster, out of memory or as told: {one_line(error)}. "
                "What was read is kept, and the same command goes on"
            )
        self.progress("a copy died; another is started, and its batches are read again")
        self.copies.append(self.start())
        return self.copies[-1]


def same(copy: Seen, here: Seen, judge: "LocalModel") -> None:
    """ValueError unless a copy is the same as the command's: in version, model, and states of one
    prompt.
    """
    from selfprobe.probes.forward import PADDING_TOLERANCE, state_distance

    if copy.selfprobe != here.selfprobe:
        raise ValueError(
            f"the node {copy.node} has selfprobe {copy.selfprobe}, here is {here.selfprobe}"
        )
    if copy.revision != here.revision:
        raise ValueError(
            f"the node {copy.node} has {judge.name} as {copy.revision}, here it is {here.revision}"
        )
    if not here.states.hidden.isfinite().all():
        return  # such pairs are left unscored
    shapes = copy.states.hidden.shape, here.states.hidden.shape
    differing = (
        state_distance(copy.states, here.states).largest if shapes[0] == shapes[1] else float("inf")
    )
    if not differing <= PADDING_TOLERANCE[judge.dtype]:
        raise ValueError(
            f"the node {copy.node} reads other states than this process of the same prompt with {judge.name}: they "
            f"differ by {differing:.2g}. Take the same versions of torch and transformers on all nodes"
        )
