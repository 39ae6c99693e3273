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
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

from fsspec.core import url_to_fs
from inspect_ai.log import EvalLog

from selfprobe.embed.weights import Progress as ProgressPrinter
from selfprobe.embed.weights import to_stderr
from selfprobe.errors import LONGEST_OWN_MESSAGE, InputError, RunError, one_line
from selfprobe.errors.inspect_private import PrerequisiteError
from selfprobe.errors.output import refusals
from selfprobe.logs import logs_in, readable_logs, restore
from selfprobe.study.described import DescribedRun
from selfprobe.study.progress import Key, Progress
from selfprobe.text.extras import install_command

if TYPE_CHECKING:  # PyTorch, which runs do without
    from selfprobe.probes.forward import Batch, JobCall, States
    from selfprobe.probes.model import LocalModel
    from selfprobe.probes.tokens import Prompt

JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")

HEAD_ANSWER_SECONDS = 5
"""Seconds within which the head of a cluster answers."""

TASK_POLL_SECONDS = 0.5
"""Seconds between two looks at the messages of tasks."""

SHARED_FILE = ".selfprobe-shared"
"""The file by which every node is seen to have the log folder."""

GPU_PROVIDERS = ("hf", "nnterp", "sglang", "transformer_lens", "vllm")
"""Providers whose models want a GPU each, where a cluster has some."""

MOST_SHARE_STARTS = 3
"""Largest number of times that a share is started: one that runs out of memory does so again."""

LOG_CLOSING_SECONDS = 30
"""Seconds that interrupted shares have to close their logs."""

BATCHES_PER_COPY = 2
"""Batches that a copy has at a time: the second waits there while the first is read."""

MOST_DEATHS_PER_COPY = 2
"""Largest number of dead copies, per copy: one that runs out of memory does so again."""

COPY_WAIT_SECONDS = 60
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
        raise InputError(f"--engine ray needs Ray ({error}): {install_command('ray')}") from None
    cluster_address = address or os.environ.get("RAY_ADDRESS") or "auto"
    advice = "start one with `ray start --head`, and give its --ray-address"
    if cluster_address != "auto":  # Ray itself waits for minutes, and then ends the process
        _refuse_silent_head(cluster_address, advice)

    is_main_thread = threading.current_thread() is threading.main_thread()
    sigterm_handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            address=cluster_address,
            log_to_driver=False,
            logging_level="ERROR",
            configure_logging=False,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InputError(
            f"no Ray cluster at {cluster_address} ({one_line(error)}); {advice}"
        ) from None
    if is_main_thread:
        signal.signal(signal.SIGTERM, sigterm_handler)  # Ray's own ends the process at once
    try:
        yield ray
    except ray.exceptions.RayError as error:
        raise RunError(f"Ray: {one_line(error)}; the same command goes on") from None
    finally:
        ray.shutdown()


def _refuse_silent_head(cluster_address: str, advice: str) -> None:
    address_url = cluster_address if "://" in cluster_address else f"//{cluster_address}"
    url_parts = urlsplit(address_url)
    try:
        host_and_port = (str(url_parts.hostname), url_parts.port or 0)
        socket.create_connection(host_and_port, timeout=HEAD_ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Ray cluster answers at {cluster_address} ({one_line(error)}); {advice}"
        ) from None


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
        gpu_models = set[str]()
        for run in self.runs:
            gpu_models |= {model.name for model in run.models if model.provider in GPU_PROVIDERS}
        return len(gpu_models)

    def folder(self, log_dir: str) -> str:
        """Folder of its logs alone: Inspect reads a folder whole, and a log that is being written
        cannot be read.
        """
        return f"{log_dir.rstrip('/')}/share-{self.number}"


def shares_of(runs: Sequence[DescribedRun]) -> list[ModelShare]:
    """The runs of a wave by their model, in the order of the models."""
    runs_by_model: dict[str, list[DescribedRun]] = {}
    for run in runs:
        runs_by_model.setdefault(run.model.name, []).append(run)
    return [
        ModelShare(number, tuple(model_runs))
        for number, model_runs in enumerate(runs_by_model.values(), start=1)
    ]


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
    folder_by_model = {
        run.model.name: share.folder(log_dir) for share in shares for run in share.runs
    }
    for header in readable_logs([log_dir]).headers:
        log_name = PurePath(header.location).name
        share_folder = folder_by_model.get(header.eval.model)
        if share_folder is None:
            if dirty:
                continue
            raise InputError(other_runs(log_name, log_dir))

        file_system, current_path = url_to_fs(header.location)
        _, share_path = url_to_fs(f"{share_folder}/{log_name}")
        if current_path != share_path:
            file_system.makedirs(url_to_fs(share_folder)[1], exist_ok=True)
            file_system.mv(current_path, share_path)


def other_runs(log: str, log_dir: str) -> str:
    """Error text: a folder's log belongs to no run of this command."""
    return (
        f"{log_dir} holds a log of other runs ({log}): another matrix, other task arguments or "
        "generation settings, a model less, or a data set that changed since. Go on with the same "
        "command, or give a new --log-dir"
    )


class _MessageBoard:
    """Board with the messages of tasks, until the driver takes them; an actor."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, int | Key]] = []

    def add(self, share_number: int, message: int | Key) -> None:
        self.messages.append((share_number, message))

    def take(self) -> list[tuple[int, int | Key]]:
        messages = self.messages
        self.messages = []
        return messages


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

    reason: str


@dataclass(frozen=True)
class StoppedShare:
    """Interruption of a share, whose logs are closed."""


ShareEnd = EndedShare | RefusedShare | StoppedShare

MakeRuns = Callable[[Sequence[DescribedRun], str, ShareLine], list[EvalLog]]
"""Makes runs, with their logs in a folder, to their end; gives the headers of the logs. It can be
pickled.
"""


def run_on_ray(
    shares: Sequence[ModelShare],
    make_runs: MakeRuns,
    log_dir: str,
    progress: Progress,
    *,
    address: str | None,
) -> list[EvalLog]:
    """Run each share as a task of a cluster; the headers of all logs.

    Args:
        shares: The parts of the wave.
        make_runs: Makes a share's runs, on its node.
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
        return _run_shares(ray, shares, make_runs, log_dir, progress)


def _refuse_unfit(ray: Any, log_dir: str) -> None:
    """Refuse a cluster of which a node has another log folder, or another selfprobe.

    Raises:
        InputError: Names the node and what to do.
    """
    token = str(uuid4())
    shared_path = f"{log_dir}/{SHARED_FILE}"
    file_system, inner_path = url_to_fs(shared_path)
    file_system.pipe_file(inner_path, token.encode())
    try:
        read_task = ray.remote(num_cpus=0, max_retries=0)(_read_on_node)
        node_affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        for node in ray.nodes():
            if not node["Alive"]:
                continue
            node_name = node["NodeName"]
            on_that_node = node_affinity(node["NodeID"], soft=False)
            node_task = read_task.options(scheduling_strategy=on_that_node)
            try:
                node_token, node_version = ray.get(node_task.remote(shared_path))
            except ray.exceptions.RayError as error:
                missing_module = one_line(error).partition("ModuleNotFoundError: ")[2]
                reason = missing_module or one_line(error)
                raise InputError(
                    f"the node {node_name} of the cluster cannot run selfprobe: {reason}"
                ) from None
            if node_version != version("selfprobe"):
                raise InputError(
                    f"the node {node_name} has selfprobe {node_version}, "
                    f"here is {version('selfprobe')}"
                )
            if node_token != token:
                raise InputError(
                    f"the node {node_name} does not have {log_dir}: give a --log-dir that all "
                    "nodes share, such as s3://bucket/folder"
                )
    finally:
        file_system.rm_file(inner_path)


def _read_on_node(path: str) -> tuple[str, str]:
    """Content of a file on a node ("" where it is not there), and the node's version of
    selfprobe.
    """
    node_version = version("selfprobe")
    try:
        file_system, inner_path = url_to_fs(path)
        return file_system.cat_file(inner_path).decode(), node_version
    except refusals():
        return "", node_version


def _declared_gpus(ray: Any, shares: Sequence[ModelShare]) -> list[int]:
    """GPUs that each share declares; none on a cluster without any, where such models run on CPUs.

    Raises:
        InputError: No node has as many as a share needs.
    """
    node_gpus = [int(node["Resources"].get("GPU", 0)) for node in ray.nodes() if node["Alive"]]
    most_gpus = max(node_gpus, default=0)
    if most_gpus == 0:
        return [0 for _ in shares]
    for share in shares:
        if most_gpus < share.gpus:
            raise InputError(
                f"{share.model} and its roles need {share.gpus} GPUs on one node; "
                f"the largest has {most_gpus}"
            )
    return [share.gpus for share in shares]


def _run_shares(
    ray: Any,
    shares: Sequence[ModelShare],
    make_runs: MakeRuns,
    log_dir: str,
    progress: Progress,
) -> list[EvalLog]:
    share_gpus = _declared_gpus(ray, shares)
    on_this_node = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=True
    )
    board_actor = ray.remote(num_cpus=0)(_MessageBoard).options(scheduling_strategy=on_this_node)
    board = board_actor.remote()
    share_task = ray.remote(max_retries=MOST_SHARE_STARTS - 1)(_run_on_node)

    pending = []
    for number, share in enumerate(shares):
        share_runs = partial(make_runs, share.runs, share.folder(log_dir))
        placed_task = share_task.options(num_cpus=1, num_gpus=share_gpus[number])
        pending.append(placed_task.remote(share_runs, ShareLine(board, number), str(Path.cwd())))

    headers: list[EvalLog] = []
    try:
        while pending:
            ended_tasks, _ = ray.wait(pending, num_returns=1, timeout=TASK_POLL_SECONDS)
            _note_messages(ray.get(board.take.remote()), progress, len(shares))
            for ended_task in ended_tasks:
                pending.remove(ended_task)
                share_end: ShareEnd = ray.get(ended_task)
                if isinstance(share_end, RefusedShare):
                    raise InputError(share_end.reason)
                if isinstance(share_end, StoppedShare):
                    raise KeyboardInterrupt
                headers += share_end.logs
    finally:
        _cancel_tasks(ray, pending)
    progress.announce()  # of shares that had nothing left to ask
    return headers


def _cancel_tasks(ray: Any, pending: list[Any]) -> None:
    """Interrupt tasks, and end those that do not close their logs in time."""
    for pending_task in pending:
        ray.cancel(pending_task)
    if pending:
        _, late_tasks = ray.wait(pending, num_returns=len(pending), timeout=LOG_CLOSING_SECONDS)
        for late_task in late_tasks:
            ray.cancel(late_task, force=True)


def _note_messages(
    messages: Sequence[tuple[int, int | Key]], progress: Progress, share_count: int
) -> None:
    """The heading waits for all shares, or for the first sample: a share may wait for a GPU until
    others are done.
    """
    for share_number, message in messages:
        if isinstance(message, int):
            progress.samples[share_number] = message
        else:
            progress.announce()
            progress.note(share_number, message)
    if len(progress.samples) == share_count:
        progress.announce()


def _run_on_node(
    make_share_runs: Callable[[ShareLine], list[EvalLog]], line: ShareLine, folder: str
) -> ShareEnd:
    """A share's task, in the folder of the command where the node has it: data sets may be named
    relative to it.

    It has a process for itself; what it says on stdout is for nobody.
    """
    if Path(folder).is_dir():
        os.chdir(folder)
        os.environ["PWD"] = folder
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell began the node
    # Inspect passes Ray's cancel on as a real signal.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        with Path(os.devnull).open("w") as null_file, redirect_stdout(null_file):
            return EndedShare(make_share_runs(line))
    except KeyboardInterrupt:
        return StoppedShare()
    except PrerequisiteError as error:
        return RefusedShare(one_line(error, longest=LONGEST_OWN_MESSAGE))


# ---- copies of a model


@dataclass(frozen=True)
class CopyFacts:
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

    def check(self, revision: str, prompt: "Prompt") -> CopyFacts:
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
        if named_untrained(judge).revision == revision:
            judge = random_weights(judge)
        self.judge = judge
        states = read_states(judge, [prompt], "two_forwards")
        return CopyFacts(node, version("selfprobe"), judge.revision, states)

    def do(self, work: Callable[..., ResultT], *arguments: Any) -> ResultT:
        """Call a function of a module with the copy and what it needs besides, such as a batch."""
        assert self.judge is not None, "a copy is checked first"
        return work(self.judge, *arguments)


def replicas(
    ray: Any,
    judge: "LocalModel",
    load: "Callable[[], LocalModel]",
    *,
    count: int | None = None,
    progress: ProgressPrinter = to_stderr,
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
    node_resources = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpu_count = gpus_of(judge)
    copy_count, cpus_per_copy = copies_and_cpus(node_resources, gpu_count, count)
    actor = ray.remote(num_cpus=cpus_per_copy, num_gpus=gpu_count)(Replica)
    return Copies(ray, lambda: actor.remote(load, str(Path.cwd())), copy_count, progress)


@contextmanager
def copies_on_cluster(
    engine: str, ray_address: str | None, replicas: int | None
) -> "Iterator[Callable[[LocalModel, str, dict[str, Any]], Copies] | None]":
    """A block with what makes copies of a model, of its name and of how it was loaded; None where
    this process reads.

    Raises:
        InputError: See `requested_cluster` and `connected`.
    """
    cluster = requested_cluster(engine, ray_address, replicas)
    if cluster is None:
        yield None
        return
    with connected(cluster.address) as ray:
        yield partial(_copies, ray, replicas)


def _copies(
    ray: Any, count: int | None, judge: "LocalModel", name: str, loading: dict[str, Any]
) -> "Copies":
    from selfprobe.probes.model import load_model

    device_kind = str(loading["device"]).partition(":")[0]
    node_loading = loading | {"chat": judge.chat, "device": device_kind}
    return replicas(ray, judge, partial(load_model, name, **node_loading), count=count)


def gpus_of(judge: "LocalModel") -> int:
    """Number of GPUs that a model is on."""
    devices = {parameter.device for parameter in judge.model.parameters()}
    return len([device for device in devices if device.type == "cuda"])


def copies_and_cpus(
    nodes: Sequence[dict[str, float]], gpus: int, count: int | None
) -> tuple[int, int]:
    """Number of copies with so many GPUs that these nodes hold, and CPUs of each: as many as all
    nodes have for it.

    Raises:
        ValueError: There is no room for `count`, or for one.
    """
    if gpus:
        most_copies = sum(int(node.get("GPU", 0)) // gpus for node in nodes)
        copy_count = count or max(most_copies, 1)
        cpus_per_copy = 1
        needed = f"{gpus} GPUs of one node" if gpus > 1 else "a GPU"
    else:
        node_cpus = [int(node.get("CPU", 0)) for node in nodes]
        most_copies = sum(node_cpus)
        copy_count = count or max(sum(cpus > 0 for cpus in node_cpus), 1)
        cpus_per_copy = _cpus_per_copy(node_cpus, copy_count)
        needed = "a CPU"
    if copy_count > most_copies:
        if copy_count == 1:
            demand = f"a copy of the model takes {needed}"
        else:
            demand = f"{copy_count} copies of the model take {needed} each"
        raise ValueError(f"{demand}; the cluster has room for {most_copies}")
    return copy_count, cpus_per_copy


def _cpus_per_copy(node_cpus: Sequence[int], copy_count: int) -> int:
    """Largest number of CPUs that each copy can have; 1 where there is no room."""
    for cpus_per_copy in range(max(node_cpus, default=0), 1, -1):
        if sum(cpus // cpus_per_copy for cpus in node_cpus) >= copy_count:
            return cpus_per_copy
    return 1


@dataclass
class Copies:
    """A `forward.Reader` of batches, and with `spread` a `forward.JobRunner` of any other work."""

    ray: Any
    start: Callable[[], Any]
    """Starts a copy: an actor's handle."""
    count: int
    progress: ProgressPrinter
    copies: list[Any] = field(default_factory=list)
    deaths: int = 0

    def __call__(
        self, judge: "LocalModel", batches: "Iterable[Batch]"
    ) -> "Iterator[tuple[Batch, States]]":
        from selfprobe.probes.forward import read_states

        coming_batches = iter(batches)
        for first_batch in coming_batches:
            all_batches = chain([first_batch], coming_batches)
            yield from self.spread(
                judge,
                first_batch.prompts[0],
                all_batches,
                lambda batch: (read_states, batch.prompts, batch.way),
            )

    def spread(
        self, judge: "LocalModel", prompt: "Prompt", jobs: Iterable[JobT], work: "JobCall[JobT]"
    ) -> Iterator[tuple[JobT, Any]]:
        """Each job with what came of it, in the order in which they end; `prompt`: what copies are
        checked by.
        """
        from selfprobe.probes.forward import read_states

        coming_jobs = iter(jobs)
        first_job = next(coming_jobs, None)
        if first_job is None:
            return
        returned_jobs = deque[JobT]([first_job])
        checked_copies = list[Any]()
        command_states = read_states(judge, [prompt], "two_forwards")
        command_facts = CopyFacts("here", version("selfprobe"), judge.revision, command_states)

        missing_copies = self.count - len(self.copies)
        self.copies += [self.start() for _ in range(missing_copies)]
        reading_text = "copy reads" if self.count == 1 else "copies read"
        self.progress(f"{self.count} {reading_text} on the cluster")

        pending: dict[Any, tuple[Any, JobT | None]] = {}
        for copy in self.copies:
            pending[copy.check.remote(judge.revision, prompt)] = (copy, None)
        while True:
            self._feed(checked_copies, pending, returned_jobs, coming_jobs, work)
            has_job_pending = any(job is not None for _, job in pending.values())
            if not returned_jobs and not has_job_pending:
                return  # a copy that is still starting has come too late
            ended_calls, _ = self.ray.wait(list(pending), num_returns=1, timeout=COPY_WAIT_SECONDS)
            if not ended_calls:
                self.progress(f"waiting for {len(pending)} answers of the cluster")
                continue
            copy, job = pending.pop(ended_calls[0])
            try:
                result = self.ray.get(ended_calls[0])
            except self.ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except self.ray.exceptions.RayActorError as error:
                if job is not None:
                    returned_jobs.append(job)
                if copy in checked_copies:
                    checked_copies.remove(copy)
                if copy in self.copies:  # its other batches come here too
                    new_copy = self._replace(copy, error)
                    pending[new_copy.check.remote(judge.revision, prompt)] = (new_copy, None)
                continue
            if job is None:
                refuse_other_copy(result, command_facts, judge)
                checked_copies.append(copy)
            else:
                yield job, result

    def _feed(
        self,
        checked_copies: Sequence[Any],
        pending: dict[Any, tuple[Any, JobT | None]],
        returned_jobs: deque[JobT],
        coming_jobs: Iterator[JobT],
        work: "JobCall[JobT]",
    ) -> None:
        """Give each copy as many batches as it can take; each copy gets its first before another
        its second.
        """
        for allowed_load in range(BATCHES_PER_COPY):
            for copy in checked_copies:
                copy_load = sum(busy_copy is copy for busy_copy, _ in pending.values())
                if copy_load > allowed_load:
                    continue
                job = returned_jobs.popleft() if returned_jobs else next(coming_jobs, None)
                if job is None:
                    return
                pending[copy.do.remote(*work(job))] = (copy, job)

    def _replace(self, copy: Any, error: Exception) -> Any:
        """Replacement of a copy that died; ValueError where that was in vain too often."""
        self.copies.remove(copy)
        self.deaths += 1
        if self.deaths > MOST_DEATHS_PER_COPY * self.count:
            raise ValueError(
                f"{self.deaths} copies of the model died on the cluster, out of memory or as told: "
                f"{one_line(error)}. What was read is kept, and the same command goes on"
            )
        self.progress("a copy died; another is started, and its batches are read again")
        new_copy = self.start()
        self.copies.append(new_copy)
        return new_copy


def refuse_other_copy(copy: CopyFacts, command: CopyFacts, judge: "LocalModel") -> None:
    """ValueError unless a copy is the same as the command's: in version, model, and states of one
    prompt.
    """
    from selfprobe.probes.forward import PADDING_TOLERANCE, state_distance

    if copy.selfprobe != command.selfprobe:
        raise ValueError(
            f"the node {copy.node} has selfprobe {copy.selfprobe}, here is {command.selfprobe}"
        )
    if copy.revision != command.revision:
        raise ValueError(
            f"the node {copy.node} has {judge.name} as {copy.revision}, "
            f"here it is {command.revision}"
        )
    if not command.states.hidden.isfinite().all():
        return  # such pairs are left unscored
    largest_difference = float("inf")
    if copy.states.hidden.shape == command.states.hidden.shape:
        largest_difference = state_distance(copy.states, command.states).largest
    if not largest_difference <= PADDING_TOLERANCE[judge.dtype]:
        raise ValueError(
            f"the node {copy.node} reads other states than this process of the same prompt with "
            f"{judge.name}: they differ by {largest_difference:.2g}. Take the same versions of "
            "torch and transformers on all nodes"
        )
