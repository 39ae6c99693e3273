"""A wave over several processes: what is said of it, and what a killed process, an interrupt and a wrong key do."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from selfprobe.errors import RunError
from selfprobe.logs import found, samples
from selfprobe.matrix.run import Member, plan
from selfprobe.processes import run_shares
from selfprobe.progress import Progress
from selfprobe.shares import Work

pytestmark = pytest.mark.slow  # a process takes seconds to start
COMMAND = str(Path(sys.executable).with_name("selfprobe"))
FAKE = "openai-api/fake/alpha,openai-api/fake/beta"
CONNECTIONS = 2


def started(models: str, questions: Path, folder: Path, *further: str) -> "subprocess.Popen[str]":
    given = ("--tasks", "kth_word", "-T", f"dataset={questions}", "-T", "k=1", "--yes", "--processes", "2")
    limits = ("--max-connections", str(CONNECTIONS), "--max-retries", "0", "--log-dir", str(folder / "m"))
    return subprocess.Popen(
        [COMMAND, "matrix", "--models", models, *given, *limits, *further],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in the background of a shell
        text=True,
    )


def until(happened: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + 240
    while not happened() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    assert happened(), process.communicate(timeout=1)[0] if process.poll() is not None else "not in time"


def shares_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    return [one for one in psutil.Process(process.pid).children() if "spawn_main" in " ".join(one.cmdline())]


def calls(questions: Path) -> int:
    """Of a whole matrix of the two models."""
    members = [Member(name) for name in FAKE.split(",")]
    return plan(members, ["kth_word"], limit=None, args={"dataset": str(questions), "k": "1"}).calls


def test_a_matrix_over_two_processes_says_the_same_lines_asks_nothing_twice_and_goes_on_in_one_and_in_two(
    server: Any, questions: Path, tmp_path: Path
) -> None:
    process = started(FAKE, questions, tmp_path)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    lines = output.splitlines()
    assert "Each model on itself: 2 runs, 24 samples; what is finished is not asked again" in lines
    assert sum(" of 24 samples (" in line for line in lines) == 9
    assert any(re.fullmatch(r"  2 of 2 runs done \(\d:\d\d\)", line) for line in lines)
    assert server.stats()["requests"] == calls(questions)
    assert {path.parent.name for path in tmp_path.rglob("*.eval")} == {"share-1", "share-2"}
    for count in ("1", "2"):
        process = started(FAKE, questions, tmp_path, "--processes", count)
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0 and "  2 of 2 runs done" in output, output
    assert server.stats()["requests"] == calls(questions)


def test_what_one_process_began_several_take_up(server: Any, questions: Path, tmp_path: Path) -> None:
    server.configure({"*": {"latency_ms": 300}})
    process = started(FAKE, questions, tmp_path, "--processes", "1")
    until(lambda: server.stats()["ok"] >= 12, process)
    process.kill()
    process.communicate()
    process = started(FAKE, questions, tmp_path)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert calls(questions) <= server.stats()["requests"] <= calls(questions) + 2 * CONNECTIONS


def test_the_runs_of_a_killed_process_go_on_in_another_and_only_what_was_in_flight_is_asked_again(
    server: Any, questions: Path, tmp_path: Path
) -> None:
    server.configure({"*": {"latency_ms": 300}})
    process = started(FAKE, questions, tmp_path)
    until(lambda: server.stats()["ok"] >= 12, process)
    first = shares_of(process)[0]
    first.kill()
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert sum(line.startswith("Each model on itself") for line in output.splitlines()) == 1
    told = r"  the process of openai-api/fake/\w+ was killed \(signal 9\); another one takes its runs up \(2 of at most 3\)"
    assert sum(re.fullmatch(told, line) is not None for line in output.splitlines()) == 1, output
    assert calls(questions) < server.stats()["requests"] <= calls(questions) + CONNECTIONS
    [logs, ignored] = (lambda there: (there.headers, there.ignored))(found([str(tmp_path / "m" / "diagonal")]))
    done = [log for log in logs if log.status == "success"]
    assert not ignored and sorted(len(samples(log.location)) for log in done) == [12, 12]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_every_process_with_its_logs_closed_and_starts_no_second_wave(
    server: Any, questions: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    server.configure({"*": {"latency_ms": 500}})
    process = started(FAKE, questions, tmp_path)
    until(lambda: server.stats()["ok"] >= 3, process)
    shares = shares_of(process)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == status and "Traceback" not in output, output
    assert output.splitlines()[-1] == "Interrupted: 0 of 2 runs done; the same command goes on."
    assert len(shares) == 2 and not any(one.is_running() for one in shares)
    logs = found([str(tmp_path / "m")]).headers
    assert [log.status for log in logs] == ["cancelled", "cancelled"]


def test_where_the_parent_is_killed_no_process_goes_on_asking(server: Any, questions: Path, tmp_path: Path) -> None:
    server.configure({"*": {"latency_ms": 300}})
    process = started(FAKE, questions, tmp_path)
    until(lambda: server.stats()["ok"] >= 3, process)
    shares = shares_of(process)
    process.kill()
    process.communicate()
    gone, alive = psutil.wait_procs(shares, timeout=20)
    assert len(gone) == 2 and not alive


def test_a_model_that_cannot_be_had_is_one_line_and_nothing_is_asked(
    server: Any, questions: Path, tmp_path: Path
) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OTHER_")}
    models = "openai-api/fake/alpha,openai-api/other/beta"
    given = ("--models", models, "--tasks", "kth_word", "--yes", "--processes", "2", "--log-dir", str(tmp_path / "m"))
    done = subprocess.run([COMMAND, "matrix", *given], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2 and server.stats()["requests"] == 0
    assert done.stderr.startswith("Error: openai-api/other/beta: ") and done.stderr.count("\n") == 1


@pytest.fixture
def dying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Shares that end badly, in a module that a new process can import."""
    (tmp_path / "dying.py").write_text(
        "import os\n"
        "def killed(line):\n    line.begin(1)\n    os.kill(os.getpid(), 9)\n"
        "def broken(line):\n    line.begin(1)\n    1 / 0\n"
        "def late(line):\n    1 / 0\n"
        "def good(line):\n    line.begin(2)\n    line.done((0, 'a', 1))\n    return []\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module("dying")


def test_a_process_that_is_killed_again_and_again_and_one_that_breaks_are_told_when_the_others_are_done(
    dying: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    progress = Progress("Runs", 3)
    works = [Work(name, 0, getattr(dying, name)) for name in ("killed", "broken", "good")]
    with pytest.raises(RunError) as raised:
        run_shares(works, progress)
    told = str(raised.value)
    assert "the process of killed was killed 3 times (signal 9); is there too little memory?" in told
    assert "the process of broken broke with status 1; see above" in told
    assert told.endswith("; the same command goes on")
    assert progress.done == {(2, (0, "a", 1))} and sum(progress.samples.values()) == 4
    said = capfd.readouterr().err
    assert "ZeroDivisionError" in said
    for start in (2, 3):
        line = f"  the process of killed was killed (signal 9); another one takes its runs up ({start} of at most 3)"
        assert line in said.splitlines()


def test_where_a_process_breaks_before_it_is_ready_the_others_do_not_wait_for_it(
    dying: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RunError, match="^the process of late broke with status 1; see above$"):
        run_shares([Work("good", 0, dying.good), Work("late", 0, dying.late)], Progress("Runs", 2))
    assert "what is finished" not in capfd.readouterr().err  # nothing has begun


def test_a_gate_that_prints_json_prints_nothing_else(questions: Path, tmp_path: Path) -> None:
    given = ("--run", "heads_up", "--model", "planted/a", "--limit", "2", "--json", "--yes", "--processes", "3")
    folder = str(tmp_path / "logs")
    done = subprocess.run(
        [COMMAND, "check", *given, "--log-dir", folder], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["whole"]
    assert "1 process: one model's runs stay together" in done.stderr
