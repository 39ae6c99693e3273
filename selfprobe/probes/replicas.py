"""Copies of a model on a Ray cluster, which read batches; one process, that of the command, writes what they read.

    with joined("host:6379") as ray:
        harvest(judge, pairs, reader=replicas(ray, judge, partial(load_model, "smollm2")))

A copy that does not give the command's own states of one prompt is refused. The batches of a copy that died are read by
the others, and another is started in its place.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from selfprobe.errors import one_line
from selfprobe.probes.choose import BROKEN, off
from selfprobe.probes.forward import Batch, States, states_of
from selfprobe.probes.model import LocalModel
from selfprobe.probes.tokens import Prompt
from selfprobe.probes.untrained import named, random_weights
from selfprobe.weights import Progress, to_stderr

J = TypeVar("J")
T = TypeVar("T")

AHEAD = 2
"""Batches that a copy has at a time: the second waits there while the first is read."""
DEATHS = 2
"""Of copies, as many times as there are copies: one that runs out of memory does so again."""
PATIENCE = 60
"""Seconds after which it is said that nothing came."""


Work = Callable[[J], tuple[Any, ...]]
"""Of a job the function that does it, of a module and with a model as its first argument, and its other arguments."""
Spread = Callable[[LocalModel, Prompt, Iterable[Any], Work[Any]], Iterator[tuple[Any, Any]]]
"""What does jobs: this process one after another (`here`), or copies (`Copies.spread`)."""


def here(judge: LocalModel, prompt: Prompt, jobs: Iterable[J], work: Work[J]) -> Iterator[tuple[J, Any]]:
    """Jobs done by this process, in their order."""
    for job in jobs:
        function, *given = work(job)
        yield job, function(judge, *given)


@dataclass(frozen=True)
class Seen:
    """What a copy says of itself, to be held against the command's own."""

    node: str
    selfprobe: str
    revision: str
    states: States
    """Of one prompt."""


class Replica:
    """A copy; an actor. Its model is loaded with the first call, whose errors reach the command as they are."""

    def __init__(self, load: Callable[[], LocalModel], folder: str) -> None:
        if Path(folder).is_dir():  # models may be named relative to it
            os.chdir(folder)
        self.load = load
        self.judge: LocalModel | None = None

    def check(self, revision: str, prompt: Prompt) -> Seen:
        """Become the control with random weights if that is the revision asked for, and read one prompt."""
        import ray

        node = ray.util.get_node_ip_address()
        try:
            judge = self.judge or self.load()
        except (ImportError, OSError, ValueError) as error:
            raise ValueError(f"the node {node} cannot load the model: {error}") from None
        self.judge = random_weights(judge) if named(judge).revision == revision else judge
        states = states_of(self.judge, [prompt], "two_forwards")
        return Seen(node, version("selfprobe"), self.judge.revision, states)

    def do(self, work: Callable[..., T], *given: Any) -> T:
        """Call a function of a module with the copy and what it needs besides, such as `states_of` with a batch."""
        assert self.judge is not None, "a copy is checked first"
        return work(self.judge, *given)


def replicas(
    ray: Any,
    judge: LocalModel,
    load: Callable[[], LocalModel],
    *,
    count: int | None = None,
    progress: Progress = to_stderr,
) -> "Copies":
    """Copies of `judge` that read on a cluster; they start with the first batch, and end with the cluster's block.

    Args:
        ray: What `cluster.joined` gives.
        judge: The command's own copy. Each other takes as many GPUs.
        load: Makes the same model on a node.
        count: Of copies; by default one for so many GPUs, or one a node where it needs none.
        progress: Is told of starts and deaths.

    Raises:
        ValueError: The cluster has no room for them. When it reads: a copy gives other states than `judge`, or too many
            died.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    number, cpus = room(nodes, gpus_of(judge), count)
    actor = ray.remote(num_cpus=cpus, num_gpus=gpus_of(judge))(Replica)
    return Copies(ray, lambda: actor.remote(load, str(Path.cwd())), number, progress)


def gpus_of(judge: LocalModel) -> int:
    """How many GPUs a model is on."""
    return len({parameter.device for parameter in judge.model.parameters() if parameter.device.type == "cuda"})


def room(nodes: Sequence[dict[str, float]], gpus: int, count: int | None) -> tuple[int, int]:
    """How many copies of so many GPUs these nodes take, and CPUs of each: as many as all nodes have for it.

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
        cpus = max((c for c in range(1, max(there, default=0) + 1) if sum(n // c for n in there) >= wanted), default=1)
    if wanted > most:
        told = (
            f"a copy of the model takes {needed}" if wanted == 1 else f"{wanted} copies of the model take {needed} each"
        )
        raise ValueError(f"{told}; the cluster has room for {most}")
    return wanted, cpus


@dataclass
class Copies:
    """A `Reader` of batches, and with `spread` a `Spread` of any other work."""

    ray: Any
    start: Callable[[], Any]
    """Starts a copy: an actor's handle."""
    count: int
    progress: Progress
    copies: list[Any] = field(default_factory=list)
    deaths: int = 0

    def __call__(self, judge: LocalModel, batches: Iterable[Batch]) -> Iterator[tuple[Batch, States]]:
        coming = iter(batches)
        for first in coming:
            every = chain([first], coming)
            yield from self.spread(judge, first.prompts[0], every, lambda one: (states_of, one.prompts, one.way))

    def spread(self, judge: LocalModel, prompt: Prompt, jobs: Iterable[J], work: Work[J]) -> Iterator[tuple[J, Any]]:
        """Each job with what came of it, in the order in which they end; `prompt`: what copies are checked by."""
        coming, again, checked = iter(jobs), deque[J](), list[Any]()
        first = next(coming, None)
        if first is None:
            return
        again.append(first)
        ours = Seen("here", version("selfprobe"), judge.revision, states_of(judge, [prompt], "two_forwards"))
        self.copies += [self.start() for _ in range(self.count - len(self.copies))]
        self.progress(f"{self.count} {'copy reads' if self.count == 1 else 'copies read'} on the cluster")
        pending: dict[Any, tuple[Any, J | None]] = {}
        pending |= {copy.check.remote(judge.revision, prompt): (copy, None) for copy in self.copies}
        while True:
            self._feed(checked, pending, again, coming, work)
            if not again and all(job is None for _, job in pending.values()):
                return  # a copy that is still starting has come too late
            done, _ = self.ray.wait(list(pending), num_returns=1, timeout=PATIENCE)
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
        again: "deque[J]",
        coming: Iterator[J],
        work: Work[J],
    ) -> None:
        """Give each copy what it can take; each its first before another its second."""
        for has in range(AHEAD):
            for copy in checked:
                if sum(other is copy for other, _ in pending.values()) > has:
                    continue
                job = again.popleft() if again else next(coming, None)
                if job is None:
                    return
                pending[copy.do.remote(*work(job))] = copy, job

    def _replaced(self, copy: Any, error: Exception) -> Any:
        """Another in the place of one that died; ValueError where that was in vain too often."""
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


def same(found: Seen, ours: Seen, judge: LocalModel) -> None:
    """ValueError unless a copy is what the command's own is: its version, its model, and its states of one prompt."""
    if found.selfprobe != ours.selfprobe:
        raise ValueError(f"the node {found.node} has selfprobe {found.selfprobe}, here is {ours.selfprobe}")
    if found.revision != ours.revision:
        raise ValueError(f"the node {found.node} has {judge.name} as {found.revision}, here it is {ours.revision}")
    if not ours.states.hidden.isfinite().all():
        return  # such pairs are left unscored
    shapes = found.states.hidden.shape, ours.states.hidden.shape
    differing = off(found.states, ours.states).largest if shapes[0] == shapes[1] else float("inf")
    if not differing <= BROKEN[judge.dtype]:
        raise ValueError(
            f"the node {found.node} reads other states than this process of the same prompt with {judge.name}: they "
            f"differ by {differing:.2g}. Take the same versions of torch and transformers on all nodes"
        )
