"""Copies of a model on a cluster: who reads what, what a death costs, and what is refused."""

import re
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from filelock import FileLock

from selfprobe.data.public_pairs import PairSet
from selfprobe.probes import plan
from selfprobe.probes.forward import Batch, States
from selfprobe.probes.harvesting import harvest
from selfprobe.probes.model import LocalModel, load_model, random_weights
from selfprobe.study.on_ray import Replica, connected, copies_and_cpus, replicas

from .conftest import some_pairs, tiny_judge
from .test_probe_command import call, rows, saved, written


class Died(Exception):
    """As RayActorError."""


class Failed(Exception):
    """As RayTaskError."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause


class Handle:
    """Calls of one copy, made when they are asked for; it dies at its call of number `dies`."""

    def __init__(self, copy: Replica, dies: int) -> None:
        self.copy, self.left = copy, dies

    def __getattr__(self, name: str) -> Any:
        def remote(*given: Any) -> Callable[[], Any]:
            return lambda: self.called(name, given)

        return type("Method", (), {"remote": staticmethod(remote)})

    def called(self, name: str, given: tuple[Any, ...]) -> Any:
        self.left -= 1
        if self.left < 0:
            raise Died("out of memory")
        try:
            return getattr(self.copy, name)(*given)
        except ValueError as error:
            raise Failed(error) from None


class FakeRay:
    """As much of Ray as a reader asks for: all runs here, in the order of what was asked first."""

    exceptions: ClassVar[Any] = type("Errors", (), {"RayActorError": Died, "RayTaskError": Failed})
    util: ClassVar[Any] = type(
        "Util", (), {"get_node_ip_address": staticmethod(lambda: "10.0.0.9")}
    )

    def __init__(self, *dies: int, nodes: int = 2) -> None:
        self.dies, self.count, self.started = list(dies), nodes, list[Handle]()

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 4.0}}] * self.count

    def remote(self, **declared: Any) -> Callable[[type], Any]:
        def start(*given: Any) -> Handle:
            self.started.append(Handle(Replica(*given), self.dies.pop(0) if self.dies else 10**9))
            return self.started[-1]

        return lambda _: type("Actor", (), {"remote": staticmethod(start)})

    def wait(
        self, pending: list[Any], *, num_returns: int, timeout: float
    ) -> tuple[list[Any], list[Any]]:
        return pending[:num_returns], pending[num_returns:]

    def get(self, one: Callable[[], Any]) -> Any:
        return one()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeRay]:
    def made(*dies: int, nodes: int = 2) -> FakeRay:
        found = FakeRay(*dies, nodes=nodes)
        monkeypatch.setitem(sys.modules, "ray", found)
        return found

    return made


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many prompts each copy's call reads from now on."""
    seen, real = list[int](), Replica.do
    monkeypatch.setattr(
        Replica,
        "do",
        lambda self, work, prompts, way: (
            seen.append(len(prompts)) or real(self, work, prompts, way)
        ),
    )
    return seen


def silent(_: str) -> None:
    pass


def read_so(
    ray: Any, judge: LocalModel, folder: Path, said: list[str] | None = None, **given: Any
) -> Any:
    reader = replicas(ray, judge, tiny_judge, progress=(said or []).append, **given)
    return harvest(judge, some_pairs(6), folder, batch_tokens=1, reader=reader, progress=silent)


def test_copies_give_the_states_of_this_process_bit_by_bit(
    fake: Callable[..., FakeRay], llama: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = harvest(llama, some_pairs(6), tmp_path / "here", batch_tokens=1, progress=silent)
    ray, seen = fake(), counted(monkeypatch)
    there = read_so(ray, llama, tmp_path / "there")
    for layer in range(3):
        np.testing.assert_array_equal(there.layer(layer), here.layer(layer))
    np.testing.assert_array_equal(there.log_probs, here.log_probs)
    assert len(ray.started) == 2 and sum(seen) == 12, "two copies, and each prompt is read once"


def test_what_is_on_disk_starts_no_copy(
    fake: Callable[..., FakeRay], llama: LocalModel, tmp_path: Path
) -> None:
    harvest(llama, some_pairs(6), tmp_path, progress=silent)
    read_so(ray := fake(), llama, tmp_path)
    assert not ray.started


def test_the_batches_of_a_dead_copy_are_read_by_others_and_no_other_twice(
    fake: Callable[..., FakeRay], llama: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray, seen, said = fake(3), counted(monkeypatch), ["said"]
    found = read_so(ray, llama, tmp_path, said)
    assert len(found) == 6 and sum(seen) == 12 and len(ray.started) == 3
    assert "a copy died; another is started, and its batches are read again" in said


def test_copies_that_die_again_and_again_end_the_harvest_and_what_was_read_is_kept(
    fake: Callable[..., FakeRay], llama: LocalModel, tmp_path: Path
) -> None:
    with pytest.raises(
        ValueError,
        match=r"^5 copies of the model died on the cluster, out of memory or as told: out ",
    ):
        read_so(fake(3, 3, 0, 0, 0, 0), llama, tmp_path)
    read_so(ray := fake(nodes=1), llama, tmp_path)
    assert 0 < 10**9 - ray.started[0].left < 12, "the same command reads what is left"


def test_a_copy_of_another_model_or_with_other_states_is_refused(
    fake: Callable[..., FakeRay], llama: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = replicas(fake(), llama, partial(tiny_judge, seed=1))
    with pytest.raises(
        ValueError, match=r"^the node 10.0.0.9 has tiny-llama as r1, here it is r0$"
    ):
        harvest(llama, some_pairs(2), tmp_path, reader=reader, progress=silent)
    changed = tiny_judge()
    changed.model.model.layers[1].mlp.down_proj.weight *= 1.01
    reader = replicas(fake(), llama, lambda: changed)
    with pytest.raises(
        ValueError, match="node 10.0.0.9 reads other states than this process .* they differ by 0.0"
    ):
        harvest(llama, some_pairs(2), tmp_path, reader=reader, progress=silent)
    reader = replicas(fake(), llama, partial(load_model, str(tmp_path / "gone")))
    with pytest.raises(
        ValueError, match=r"^the node 10.0.0.9 cannot load the model: no model folder at "
    ):
        harvest(llama, some_pairs(2), tmp_path, reader=reader, progress=silent)
    versions = iter(["0.2", "0.1"])
    monkeypatch.setattr("selfprobe.study.on_ray.version", lambda _: next(versions))
    with pytest.raises(ValueError, match=r"^the node 10.0.0.9 has selfprobe 0.1, here is 0.2$"):
        read_so(fake(nodes=1), llama, tmp_path)


def test_copies_become_the_control_with_random_weights(
    fake: Callable[..., FakeRay], llama: LocalModel, tmp_path: Path
) -> None:
    ray = fake()
    reader = replicas(ray, llama, tiny_judge, progress=silent)
    harvest(llama, some_pairs(4), tmp_path, reader=reader, progress=silent)
    control = random_weights(llama)
    there = harvest(control, some_pairs(4), tmp_path, reader=reader, progress=silent)
    here = harvest(control, some_pairs(4), tmp_path / "here", progress=silent)
    np.testing.assert_array_equal(there.layer(2), here.layer(2))
    assert len(ray.started) == 2, "the same copies"


def test_a_second_command_on_the_same_states_is_refused_before_copies_start(
    fake: Callable[..., FakeRay], llama: LocalModel, tmp_path: Path
) -> None:
    (folder,) = {harvest(llama, some_pairs(6), tmp_path, progress=silent).folder.parent}
    for shard in folder.glob("states-*"):
        shard.unlink()
    with (
        FileLock(folder / "lock"),
        pytest.raises(ValueError, match="another process is harvesting into"),
    ):
        read_so(ray := fake(), llama, tmp_path)
    assert not ray.started


def test_copies_share_the_processors_and_have_the_gpus_they_need() -> None:
    cpus = [{"CPU": 8.0}, {"CPU": 4.0}]
    assert copies_and_cpus(cpus, 0, None) == (2, 4), "one a node, as many as the smaller one has"
    assert copies_and_cpus(cpus, 0, 3) == (3, 4) and copies_and_cpus(cpus, 0, 12) == (12, 1)
    with pytest.raises(
        ValueError, match=r"^13 copies of the model take a CPU each; the cluster has room for 12$"
    ):
        copies_and_cpus(cpus, 0, 13)
    gpus = [{"CPU": 16.0, "GPU": 8.0}, {"CPU": 16.0, "GPU": 4.0}, {"CPU": 4.0}]
    assert (
        copies_and_cpus(gpus, 1, None) == (12, 1)
        and copies_and_cpus(gpus, 3, None) == (3, 1)
        and copies_and_cpus(gpus, 1, 2) == (2, 1)
    )
    with pytest.raises(
        ValueError,
        match=r"^a copy of the model takes 9 GPUs of one node; the cluster has room for 0$",
    ):
        copies_and_cpus(gpus, 9, None)


def test_the_plan_shares_what_is_read_among_copies(
    llama: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "seconds_a_token", lambda judge, sample: 1.0)
    pairs = tuple(some_pairs(6))
    planned = plan.plan_harvest(
        llama, {"mine": PairSet("mine", pairs, "mine.jsonl", 0, 0)}, tmp_path
    )
    one, four = (plan.time_text(llama, planned, None, copies) for copies in (1, 4))
    assert (
        f"about {plan.duration_text(planned.tokens)} to read by two plain forwards (measured" in one
    )
    assert (
        f"about {plan.duration_text(planned.tokens / 4)} to read by two plain forwards on each of 4 copies (measured"
        in four
    )


def test_a_reader_that_is_gone_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    done = call(
        "run", "--model", "smollm2", "--datasets", "ours", "--out", tmp_path, "--engine", "vllm"
    )
    assert done.exit_code == 2 and "'vllm' is not one of transformers, ray" in done.output


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a cluster of two nodes with one CPU each."""
    pytest.importorskip("ray", reason="needs Ray: pip install 'selfprobe[ray]'")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        made = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        made.add_node(num_cpus=1)
        yield made.address
        made.shutdown()


@pytest.mark.slow(40)
@pytest.mark.filterwarnings("default")
def test_a_copy_killed_on_a_real_cluster_costs_its_own_batches_and_changes_no_state(
    address: str, tmp_path: Path
) -> None:
    folder, pairs = saved(tmp_path / "model"), some_pairs(12)
    judge, said, asked = load_model(str(folder)), list[str](), list[int]()
    here = harvest(judge, pairs, tmp_path / "here", batch_tokens=1, progress=silent)
    with connected(address) as ray:
        copies = replicas(ray, judge, partial(load_model, str(folder)), progress=said.append)

        def killing(judge: LocalModel, batches: Iterable[Batch]) -> Iterator[tuple[Batch, States]]:
            for batch, states in copies(judge, batches):
                asked.extend(batch.rows)
                if len(asked) == 5:
                    ray.kill(copies.copies[0])  # type: ignore[attr-defined]
                yield batch, states

        there = harvest(
            judge, pairs, tmp_path / "there", batch_tokens=1, reader=killing, progress=silent
        )
    assert sorted(asked) == list(range(24)), "nothing comes twice"
    assert "a copy died; another is started, and its batches are read again" in said
    for layer in range(3):
        np.testing.assert_allclose(there.layer(layer), here.layer(layer), rtol=1e-5, atol=1e-6)


@pytest.mark.slow(40)
@pytest.mark.filterwarnings("default")
def test_probe_run_on_a_cluster_finds_what_it_finds_in_one_process(
    address: str, tmp_path: Path
) -> None:
    given = (
        "--model",
        saved(tmp_path / "model"),
        "--datasets",
        written(tmp_path / "one.jsonl", rows("one")),
    )
    tables = dict[str, Any]()
    for name, more in {"here": (), "there": ("--engine", "ray", "--ray-address", address)}.items():
        toy = ("--seeds", "1", "--resamples", "100", "--random-weights")
        ran = call("run", *given, *toy, "--out", tmp_path / name, *more)
        assert ran.exit_code == 0, ran.output
        tables[name] = pd.read_csv(tmp_path / name / "tables" / "methods.csv")
        assert ("2 copies read on the cluster" in ran.output) == (name == "there"), ran.output
    pd.testing.assert_frame_equal(tables["there"], tables["here"])


def test_a_model_that_accelerate_places_is_planned_as_any_other(tmp_path: Path) -> None:
    given = (
        "--model",
        saved(tmp_path / "model"),
        "--datasets",
        written(tmp_path / "one.jsonl", rows("one")),
    )
    done = call(
        "run",
        *given,
        "--device-map",
        "cpu",
        "--dtype",
        "bfloat16",
        "--dry-run",
        "--out",
        tmp_path / "out",
    )
    assert done.exit_code == 0 and "forward passes" in done.output, done.output


def test_options_of_a_cluster_go_with_its_engine_and_one_that_is_not_there_is_a_line(
    tmp_path: Path,
) -> None:
    given = ("run", "--model", "smollm2", "--datasets", "ours", "--out", tmp_path)
    for name, value in {"--replicas": "2", "--ray-address": "a:1"}.items():
        done = call(*given, name, value)
        assert done.exit_code == 2 and f"{name} goes with --engine ray" in done.output
    pytest.importorskip("ray", reason="needs Ray: pip install 'selfprobe[ray]'")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        done = call(
            *given, "--engine", "ray", "--ray-address", f"127.0.0.1:{taken.getsockname()[1]}"
        )
    assert done.exit_code == 2 and re.match(
        r"^Error: no Ray cluster answers at 127\.0\.0\.1:\d+ \(", done.output
    )
