"""Logs in an S3-compatible store: a matrix and an awareness run into it, replayed, reported and
checked from it.
"""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner, Result

from selfprobe.cli import main
from selfprobe.errors import InputError
from selfprobe.logs.resuming import CLAIM_FILE, claimed

pytest.importorskip(
    "moto.server", reason="needs a local S3: pip install 'moto[s3]' flask flask-cors"
)
BUCKET = "s3://selfprobe-logs"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a bucket of a server on loopback."""
    import boto3
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    boto3.client("s3").create_bucket(Bucket=BUCKET.removeprefix("s3://"))
    s3fs.S3FileSystem.clear_instance_cache()
    yield BUCKET
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def called(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.slow(30)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_matrix_in_a_store_is_run_resumed_reported_and_checked_from_there(
    store: str, tmp_path: Path
) -> None:
    command = ("matrix", "--models", "planted/a?access=.9,planted/b", "--tasks", "heads_up")
    given = ("--limit", "2", "--yes", "--display", "none", "--log-dir", f"{store}/m")
    given = (*given, "--out", f"{store}/own-page")
    first = called(*command, *given)
    assert "2 of 2 runs done" in first.stderr
    again = called(*command, *given)
    assert "samples (" not in again.stderr  # nothing was asked
    called("report", f"{store}/m", "--out", f"{store}/page")
    called("report", f"{store}/m", "--out", tmp_path / "page")
    assert (tmp_path / "page" / "index.html").stat().st_size > 10_000
    checked = called("check", f"{store}/m", "--save", tmp_path / "b.json")
    assert "4 of 4 runs good" in checked.output
    assert called("check", f"{store}/m/diagonal", "--against", f"{store}/m/diagonal").exit_code == 0


@pytest.mark.slow(30)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_an_awareness_run_in_a_store_replays_its_replies_and_is_compared_from_there(
    store: str, tmp_path: Path
) -> None:
    models = (
        "--models",
        "planted/a?awareness=.9",
        "--methods",
        "binary,probability",
        "--out",
        tmp_path / "run",
    )
    called(
        "awareness",
        "run",
        *models,
        "--limit",
        "2",
        "--yes",
        "--display",
        "none",
        "--log-dir",
        f"{store}/s",
    )
    called("report", f"{store}/s", "--out", tmp_path / "page")
    assert (tmp_path / "page" / "index.html").exists()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_second_job_in_a_folder_of_a_store_is_refused_and_a_killed_ones_claim_is_taken_over(
    store: str,
) -> None:
    system, file = s3_file(f"{store}/m/{CLAIM_FILE}")
    for pid in (os.getppid(), os.getpid()):  # one that runs, and one of before
        claim = {
            "host": socket.gethostname(),
            "pid": pid,
            "started": psutil.Process(pid).create_time() - psutil.boot_time(),
            "since": "noon",
        }
        system.pipe_file(file, json.dumps(claim).encode())
        if pid == os.getppid():
            with (
                pytest.raises(InputError, match=f"^{store}/m is in use: process {pid} on "),
                claimed(f"{store}/m"),
            ):
                pytest.fail("two at once")
    with claimed(f"{store}/m"):
        assert json.loads(system.cat_file(file))["since"] != "noon"
    assert not system.exists(file)


def s3_file(address: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    system, inside = url_to_fs(address)
    return system, str(inside)
