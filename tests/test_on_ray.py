"""A wave on a Ray cluster of two nodes: what is said, what a killed worker and an interrupt do, and
what is refused.

Which runs are a task, and where their logs lie.
"""

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner
from inspect_ai.log import EvalLog

from selfprobe.cli import main
from selfprobe.errors import InputError
from selfprobe.logs import readable_logs, samples
from selfprobe.studies.matrix.study import Matrix
from selfprobe.study.described import DescribedRun, NamedModel
from selfprobe.study.on_ray import ModelShare, _declared_gpus, place_logs, shares_of
from selfprobe.text.extras import install_command

COMMAND = str(Path(sys.executable).with_name("selfprobe"))
FAKE = "openai-api/fake/alpha,openai-api/fake/beta"
CONNECTIONS = 2
BUCKET = "s3://selfprobe-ray"


@pytest.fixture(scope="module")
def cluster(one_server: Any) -> Iterator[str]:
    """The address of a cluster of two nodes, whose environment has the keys of the server and of a
    store on loopback.
    """
    pytest.importorskip("ray", reason="needs Ray: pip install 'selfprobe[ray]'")
    moto = pytest.importorskip(
        "moto.server", reason="needs a local S3: pip install 'moto[s3]' flask flask-cors"
    )
    import boto3
    from ray.cluster_utils import Cluster

    store = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    store.start()
    host, port = store.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        keys = {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        ours = {
            "FAKE_API_KEY": "none",
            "FAKE_BASE_URL": one_server.base_url,
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        for name, value in (keys | ours | {"AWS_ENDPOINT_URL": f"http://{host}:{port}"}).items():
            patch.setenv(name, value)
        boto3.client("s3").create_bucket(Bucket=BUCKET.removeprefix("s3://"))
        made = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        made.add_node(num_cpus=1)
        yield made.address
        made.shutdown()
    store.stop()


def started(cluster: str | None, folder: str, *, models: str = FAKE) -> "subprocess.Popen[str]":
    """A matrix on a cluster, or in one process."""
    given = (
        "--tasks",
        "kth_word",
        "-T",
        "k=1",
        "--limit",
        "12",
        "--yes",
        "--log-dir",
        folder,
        "--max-retries",
        "0",
    )
    given = (*given, "--out", f"{folder}-page")
    where = ("--engine", "ray", "--ray-address", cluster) if cluster else ()
    return subprocess.Popen(
        [
            COMMAND,
            "matrix",
            "--models",
            models,
            *given,
            "--max-connections",
            str(CONNECTIONS),
            *where,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored in the background of a shell
        text=True,
    )


def wait_for(calls: int, server: Any, process: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + 240
    while server.stats()["ok"] < calls and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    assert process.poll() is None, process.communicate()[0]


STUDY = Matrix(models=FAKE.split(","), tasks=["kth_word"], limit=12, args={"k": "1"})
CALLS = sum(cost.calls for cost in STUDY.plan().costs)

ray_warns = pytest.mark.filterwarnings("default")


@pytest.mark.slow(60)
@ray_warns
def test_a_matrix_on_two_nodes_with_a_store_says_the_same_lines_and_goes_on_there_and_here_without_a_call(
    cluster: str, server: Any
) -> None:
    for where in (cluster, cluster, None):
        output, _ = (process := started(where, f"{BUCKET}/m")).communicate(timeout=300)
        assert process.returncode == 0, output
        assert (
            "Each model on itself: 2 runs, 24 samples; what is finished is not asked again"
            in output
        )
        assert re.search(r"^  2 of 2 runs done \(\d:\d\d\)$", output, re.MULTILINE)
        assert server.stats()["requests"] == CALLS


@pytest.mark.slow(60)
@ray_warns
def test_the_runs_of_a_killed_worker_go_on_in_another_and_only_what_was_in_flight_is_asked_again(
    cluster: str, server: Any, tmp_path: Path
) -> None:
    server.configure({"*": {"latency_ms": 300}})
    process = started(cluster, str(tmp_path / "m"))
    wait_for(12, server, process)
    [first, *_] = [
        one for one in psutil.process_iter() if "ray::_run_on_node" in " ".join(one.cmdline())
    ]
    first.kill()
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert CALLS < server.stats()["requests"] <= CALLS + CONNECTIONS
    logs = [
        log
        for log in readable_logs([str(tmp_path / "m" / "diagonal")]).headers
        if log.status == "success"
    ]
    assert sorted(len(samples(log.location)) for log in logs) == [12, 12]


@pytest.mark.slow(40)
@ray_warns
def test_an_interrupt_ends_the_tasks_with_their_logs_closed(
    cluster: str, server: Any, tmp_path: Path
) -> None:
    server.configure({"*": {"latency_ms": 500}})
    process = started(cluster, str(tmp_path / "m"))
    wait_for(3, server, process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 130 and "Traceback" not in output, output
    assert output.splitlines()[-1] == "Interrupted: 0 of 2 runs done; the same command goes on."
    assert [log.status for log in readable_logs([str(tmp_path / "m")]).headers] == [
        "cancelled",
        "cancelled",
    ]


@pytest.mark.slow(40)
@ray_warns
def test_a_folder_that_the_nodes_do_not_share_and_a_model_without_a_key_are_one_line(
    cluster: str, server: Any, tmp_path: Path
) -> None:
    output, _ = (process := started(cluster, "memory://m")).communicate(timeout=300)
    told = "does not have memory://m/diagonal: give a --log-dir that all nodes share, such as s3://bucket/folder"
    assert process.returncode == 2
    assert re.fullmatch(rf"Error: the node \S+ {re.escape(told)}", output.splitlines()[-1]), output
    models = "openai-api/other/a,openai-api/other/b"
    output, _ = (process := started(cluster, str(tmp_path), models=models)).communicate(timeout=300)
    assert process.returncode == 2 and output.splitlines()[-1].startswith(
        "Error: openai-api/other/"
    ), output
    assert "Traceback" not in output and server.stats()["requests"] == 0


def called(folder: Path, *further: str) -> str:
    models = ("--models", "planted/a,planted/b", "--tasks", "heads_up", "--limit", "2", "--yes")
    done = CliRunner().invoke(
        main, ["matrix", *models, "--log-dir", str(folder), "--engine", "ray", *further]
    )
    assert done.exit_code == 2 and done.stderr.count("\n") == 1, done.output
    return done.stderr


@ray_warns
def test_a_cluster_that_is_not_there_is_one_line_within_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'selfprobe[ray]'")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        told = called(tmp_path, "--ray-address", address)
        assert told.startswith(f"Error: no Ray cluster answers at {address} (")
        assert told.endswith("start one with `ray start --head`, and give its --ray-address\n")
        monkeypatch.setenv("RAY_ADDRESS", address)
        assert called(tmp_path).startswith(f"Error: no Ray cluster answers at {address} (")


def test_without_ray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert called(tmp_path).endswith(f"{install_command('ray')}\n")


class _Nodes:
    """As much of Ray as tells what a cluster has."""

    def __init__(self, *gpus: int) -> None:
        self.gpus = gpus

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"Alive": True, "Resources": {"CPU": 8, "GPU": count} if count else {"CPU": 8}}
            for count in self.gpus
        ]


def run_of(model: str, task: str = "heads_up", **roles: str) -> DescribedRun:
    return DescribedRun(
        task, {}, NamedModel(model), {role: NamedModel(name) for role, name in roles.items()}
    )


def test_every_model_is_a_share_whose_runs_stay_together_in_a_folder_of_their_own() -> None:
    runs = [run_of(model, task) for task in ("heads_up", "kth_word") for model in ("x/a", "x/b")]
    first, second = shares_of(runs)
    assert (first.model, second.model) == ("x/a", "x/b")
    assert [run.task for run in second.runs] == ["heads_up", "kth_word"]
    assert (first.folder("logs/m/"), second.folder("s3://b/m")) == (
        "logs/m/share-1",
        "s3://b/m/share-2",
    )


def test_a_share_declares_a_gpu_for_each_local_model_where_the_cluster_has_any() -> None:
    shares = shares_of([run_of("hf/a", target="vllm/b"), run_of("openai/b", target="openai/a")])
    assert _declared_gpus(_Nodes(0, 4), shares) == [2, 0]
    assert _declared_gpus(_Nodes(0, 0), shares) == [0, 0]
    with pytest.raises(
        InputError, match=r"^hf/a and its roles need 2 GPUs on one node; the largest has 1$"
    ):
        _declared_gpus(_Nodes(1, 1), shares)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log of planted/a and one of planted/b."""
    folder = tmp_path_factory.mktemp("logs")
    given = (
        "--models",
        "planted/a,planted/b",
        "--tasks",
        "heads_up",
        "--limit",
        "1",
        "--yes",
        "--display",
        "none",
    )
    done = CliRunner().invoke(
        main, ["matrix", *given, "--log-dir", str(folder), "--out", str(folder / "page")]
    )
    assert done.exit_code == 0, done.output
    return folder / "diagonal"


def shared(*models: str) -> list[ModelShare]:
    return [ModelShare(number, (run_of(model),)) for number, model in enumerate(models, start=1)]


def places(folder: Path) -> dict[str, str]:
    def of(log: EvalLog) -> str:
        return str(
            Path(log.location.removeprefix("file://"))
            .resolve()
            .relative_to(folder.resolve())
            .parent
        )

    return {log.eval.model: of(log) for log in readable_logs([str(folder)]).headers}


def test_logs_are_put_into_the_folder_of_their_share_from_wherever_they_lie(two: Path) -> None:
    place_logs(shared("planted/a", "planted/b"), str(two), dirty=False)
    assert places(two) == {"planted/a": "share-1", "planted/b": "share-2"}
    place_logs(shared("planted/b", "planted/a"), str(two), dirty=False)
    assert places(two) == {"planted/a": "share-2", "planted/b": "share-1"}


def test_a_log_of_a_model_that_is_not_in_the_wave_is_refused_or_left_where_others_may_lie(
    two: Path,
) -> None:
    before = places(two)
    with pytest.raises(InputError, match=r"diagonal holds a log of other runs \(.*\.eval\)"):
        place_logs(shared("planted/c"), str(two), dirty=False)
    place_logs(shared("planted/c"), str(two), dirty=True)
    assert places(two) == before


def test_an_empty_folder_has_nothing_to_place(tmp_path: Path) -> None:
    place_logs(shared("planted/a"), str(tmp_path), dirty=False)


def test_what_does_not_go_with_an_engine_is_refused(tmp_path: Path) -> None:
    told = "Error: Inspect's display shows one process: leave --display rich out\n"
    assert called(tmp_path, "--display", "rich") == told
    models = [
        "matrix",
        "--models",
        "planted/a,planted/b",
        "--yes",
        "--ray-address",
        "a:1",
        "--log-dir",
        str(tmp_path),
    ]
    done = CliRunner().invoke(main, models)
    assert done.exit_code == 2 and done.stderr == "Error: --ray-address goes with --engine ray\n"
