"""One job a folder."""

import errno
import io
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import fsspec
import psutil
import pytest
from click.testing import CliRunner

from selfprobe.cli import main
from selfprobe.errors import InputError
from selfprobe.logs import resuming
from selfprobe.logs.resuming import CLAIM_FILE, claimed


def process_start(pid: int) -> float:
    """Start of a living process, in seconds after the machine's."""
    return psutil.Process(pid).create_time() - psutil.boot_time()


def write_claim(folder: str, **changed_fields: object) -> None:
    """Write what another process, by default this one's parent, writes into a folder it runs in."""
    claim_fields = {
        "host": socket.gethostname(),
        "pid": os.getppid(),
        "started": process_start(os.getppid()),
        "since": "2026-01-01 00:00:00 UTC",
        **changed_fields,
    }
    with fsspec.open(f"{folder}/{CLAIM_FILE}", "w") as file:
        json.dump(claim_fields, file)


def ended_pid() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize("place", ["{}", "memory://{}"])
def test_a_folder_is_claimed_while_a_wave_runs_and_free_after_it(
    tmp_path: Path, place: str
) -> None:
    folder = place.format(tmp_path / "made")
    with claimed(folder), fsspec.open(f"{folder}/{CLAIM_FILE}") as file:
        assert json.load(file).keys() == {"host", "pid", "since", "started"}
    system, inside = fsspec.core.url_to_fs(folder)
    assert system.ls(inside) == []
    with pytest.raises(KeyboardInterrupt), claimed(folder):
        raise KeyboardInterrupt
    assert system.ls(inside) == []


@pytest.mark.parametrize("place", ["{}", "memory://{}"])
def test_a_second_job_of_this_machine_is_refused_in_a_line(tmp_path: Path, place: str) -> None:
    folder = place.format(tmp_path)
    write_claim(folder)
    said = rf"^{folder} is in use: process {os.getppid()} on \S+ has been running in it since 2026-01-01 00:00:00 UTC\. "
    said += r"Wait for it, or give another --log-dir; if that process is another program, delete running.json there and "
    with pytest.raises(InputError, match=said + "the same command goes on$"), claimed(folder):
        pytest.fail("two at once")
    with fsspec.open(f"{folder}/{CLAIM_FILE}") as file:
        assert json.load(file)["pid"] == os.getppid(), "the refused one left the other's claim"


def test_a_claim_whose_number_another_program_has_now_is_taken_over(tmp_path: Path) -> None:
    write_claim(str(tmp_path), started=process_start(os.getppid()) - 60)
    with claimed(str(tmp_path)):
        pass


def test_a_claim_holds_while_its_own_process_runs_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_claim(str(tmp_path), started=process_start(os.getppid()))
    boot, began = psutil.boot_time(), psutil.Process.create_time
    for step in (
        0,
        3600,
        -3600,
    ):  # an hour is put on or taken off: psutil's times of day move with it
        monkeypatch.setattr(psutil, "boot_time", lambda step=step: boot + step)
        monkeypatch.setattr(
            psutil.Process, "create_time", lambda process, step=step: began(process) + step
        )
        with pytest.raises(InputError, match="is in use"), claimed(str(tmp_path)):
            pytest.fail("it lives")


@pytest.mark.parametrize("place", ["{}", "memory://{}"])
def test_the_claim_of_a_process_that_is_gone_is_taken_over_at_once(
    tmp_path: Path, place: str
) -> None:
    folder = place.format(tmp_path)
    write_claim(folder, pid=ended_pid())
    with claimed(folder), fsspec.open(f"{folder}/{CLAIM_FILE}") as file:
        assert json.load(file)["pid"] == os.getpid()


def test_in_a_new_container_a_claim_with_ones_own_number_is_of_a_process_that_is_gone(
    tmp_path: Path,
) -> None:
    write_claim(str(tmp_path), pid=os.getpid(), started=process_start(os.getpid()))
    with claimed(str(tmp_path)):
        pass


def test_a_killed_process_that_nobody_waited_for_is_gone(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"])
    write_claim(str(tmp_path), pid=process.pid, started=process_start(process.pid))
    with pytest.raises(InputError, match=f"process {process.pid} on"), claimed(str(tmp_path)):
        pytest.fail("it lives")
    process.kill()
    os.waitid(
        os.P_PID, process.pid, os.WEXITED | os.WNOWAIT
    )  # it has ended, and its number is not free yet
    with claimed(str(tmp_path)):
        pass
    process.wait()


def test_the_claim_of_another_machine_holds_and_the_message_says_what_to_do(tmp_path: Path) -> None:
    write_claim(str(tmp_path), host="node7", pid=ended_pid())
    said = f"on node7 has been running in it .*; if that process is gone, delete {CLAIM_FILE} there and the same command goes on$"
    with pytest.raises(InputError, match=said), claimed(str(tmp_path)):
        pytest.fail("nobody here can know")
    (tmp_path / CLAIM_FILE).unlink()
    with claimed(str(tmp_path)):
        pass


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"pid": "x"}',
        "\x00",
        '{"host": "h", "pid": 1, "since": "", "started": "x"}',
        '{"host": "h", "pid": 1, "since": ""}',
    ],
)
def test_a_claim_that_nobody_can_read_holds(tmp_path: Path, content: str) -> None:
    (tmp_path / CLAIM_FILE).write_text(content)
    with (
        pytest.raises(InputError, match="is in use: .* on another machine .* delete"),
        claimed(str(tmp_path)),
    ):
        pytest.fail("it may be in use")


def test_a_folder_that_was_deleted_meanwhile_is_no_error_of_the_claim(tmp_path: Path) -> None:
    with claimed(str(tmp_path / "m")):
        (tmp_path / "m" / CLAIM_FILE).unlink()
        (tmp_path / "m").rmdir()


def test_a_claim_that_another_took_is_left_to_it(tmp_path: Path) -> None:
    with claimed(str(tmp_path)):
        write_claim(str(tmp_path), host="node7")
    assert (tmp_path / CLAIM_FILE).exists()


def test_of_two_starts_that_both_found_a_claim_dead_the_first_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_claim(str(tmp_path), pid=ended_pid())
    monkeypatch.setattr(
        resuming.time, "sleep", lambda seconds: write_claim(str(tmp_path), host="node7")
    )
    with pytest.raises(InputError, match="on node7 has been running in it"), claimed(str(tmp_path)):
        pytest.fail("another one took it")


def test_a_full_disk_leaves_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class FullFile(io.FileIO):
        def write(self, content: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", lambda path, mode: FullFile(path, "xb"))
    with (
        pytest.raises(InputError, match="cannot write logs into .*No space left"),
        claimed(str(tmp_path)),
    ):
        pytest.fail("nothing can be written")
    assert not (tmp_path / CLAIM_FILE).exists()


@pytest.mark.slow(7)
def test_of_several_processes_that_start_at_once_one_runs(tmp_path: Path) -> None:
    trial = (
        "import sys, time; from selfprobe.logs.resuming import claimed; from selfprobe.errors import InputError\n"
        "print('ready', flush=True); sys.stdin.read()\n"
        "try:\n    with claimed(sys.argv[1]): print('ran', flush=True); time.sleep(2)\n"
        "except InputError: print('refused')"
    )
    many: list[Any] = [
        subprocess.Popen(
            [sys.executable, "-c", trial, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    said = []
    for process in many:
        assert process.stdout.readline() == "ready\n"
    for process in many:
        process.stdin.close()
    for process in many:
        said.append(process.stdout.read().strip())
        process.wait()
    assert sorted(said) == ["ran", "refused", "refused", "refused"]


def test_a_matrix_in_a_folder_in_use_ends_with_the_line_and_asks_nothing(tmp_path: Path) -> None:
    (tmp_path / "diagonal").mkdir()
    write_claim(str(tmp_path / "diagonal"))
    given = [
        "matrix",
        "--models",
        "planted/a,planted/b",
        "--tasks",
        "kth_word",
        "--limit",
        "1",
        "--yes",
    ]
    done = CliRunner().invoke(main, [*given, "--log-dir", str(tmp_path)])
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith(
        f"Error: {tmp_path}/diagonal is in use: process {os.getppid()} on "
    )
    assert not list(tmp_path.rglob("*.eval"))
