"""One wave of runs: what is shown of it, how it fails and how it is stopped."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai import Task, eval_set, task_with
from inspect_ai.model import get_model

from selfprobe.cli import main
from selfprobe.errors import InputError
from selfprobe.evalawareness_tasks.binary import awareness_binary
from selfprobe.logs import logs_in, readable_logs
from selfprobe.logs import runs as counted_runs
from selfprobe.providers.planted import PlantedAPI
from selfprobe.study import waves
from selfprobe.study.progress import Progress
from selfprobe.study.waves import RunSettings, run_wave
from selfprobe.text import busy

COMMAND = str(Path(sys.executable).with_name("selfprobe"))
MATRIX = ("matrix", "--tasks", "heads_up", "--limit", "2", "--yes")
STUDY = ("awareness", "run", "--methods", "binary,first_token", "--limit", "2", "--yes")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are written into a folder of their own."""
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


def called(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.mark.slow(10)
def test_a_matrix_says_its_progress_where_the_logs_are_and_the_next_command(
    questions: Path, tmp_path: Path
) -> None:
    options = (
        "--tasks",
        "kth_word,heads_up",
        "--limit",
        "10",
        "-T",
        "k=1",
        "--yes",
        "--log-dir",
        tmp_path / "m",
    )
    done = called("matrix", "--models", "planted/a,planted/b,planted/c", *options)
    assert done.exit_code == 0, done.output
    lines = (done.stdout + done.stderr).splitlines()
    assert len(lines) <= 60
    assert "Each model on itself: 6 runs, 60 samples; what is finished is not asked again" in lines
    assert "Each on the others: 6 runs, 60 samples; what is finished is not asked again" in lines
    assert any(re.fullmatch(r"  6 of 6 runs done \(\d:\d\d\)", line) for line in lines)
    told = [line for line in lines if re.fullmatch(r"  call \d+ of \d+(, about .* left)?", line)]
    assert 1 <= len(told) <= 9 and len(set(told)) == len(told), (
        "a line a tenth of the calls, none twice"
    )
    assert done.stdout.splitlines()[-1].startswith("Page: ")


def test_a_pipe_says_after_a_silence_which_call_is_answered_and_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(busy, "calls", busy.Calls(5200))
    progress = Progress("Turn by turn", 1, "planted/a")
    progress.samples[0] = 4
    assert progress.line(False, 1.0) == ""
    progress.line_time -= 11
    assert progress.line(False, 11.0) == "  starting planted/a", "before the first reply"
    busy.calls.answered = 523
    progress.line_time -= 21
    assert progress.line(False, 60.0) == "  call 523 of 5,200, about 9 min left"
    busy.calls.answered = 5200
    progress.line_time -= 41
    assert progress.line(False, 600.0) == "  all calls are answered; scoring"
    progress.line_time -= 11
    assert progress.line(False, 22.0) == "", "the next silence may be twice as long"


def test_a_terminals_line_has_study_bar_calls_and_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(busy, "calls", busy.Calls(5200, 300, 3100, "planted/a?access=1"))
    progress = Progress("Turn by turn", 1)
    progress.samples[0], progress.done = 4, {(0, (0, "one", 1))}
    busy.calls.answered += 1000
    bar = "█" * 5 + "░" * 15
    assert (
        progress.line(True, 60.0) == f"Turn by turn · {bar} · call 1,300 of 5,200, about 4 min left"
    ), "1,000 calls of this wave in a minute, 3,900 are left"


def test_a_tenth_is_counted_in_calls_where_the_plan_has_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(busy, "calls", busy.Calls(40, 0, 100, "planted/a"))
    progress = Progress("Turn by turn", 1)
    progress.samples[0], busy.calls.answered = 2, 20
    progress.note(0, (0, "one", 1))
    assert capsys.readouterr().err == "  call 20 of 40, about 10 s left\n"


@pytest.mark.slow(10)
def test_a_terminal_shows_one_line_that_moves_and_not_every_metric_of_each_run(
    tmp_path: Path,
) -> None:
    ours, theirs = os.openpty()
    command = [
        COMMAND,
        *MATRIX,
        "--models",
        "planted/a,planted/b,planted/c",
        "--log-dir",
        str(tmp_path),
    ]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path
    ) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # how Linux says that the terminal's other end is closed
            while part := os.read(ours, 4096):
                shown += part
    os.close(ours)
    lines = [
        line.rpartition("\r\x1b[K")[2]
        for line in shown.decode().replace("\r\n", "\n").split("\n")
        if line
    ]
    assert process.returncode == 0 and len(lines) <= 60, shown.decode()
    assert "Page: " in lines[-1] and not any("\x1b" in line for line in lines), lines
    assert not any("samples (" in line for line in lines), "no line a tenth"


@pytest.mark.parametrize(
    ("command", "models"), [(MATRIX, "planted/a,planted/b"), (STUDY, "planted/a")]
)
def test_a_log_folder_that_cannot_be_written_is_one_line_and_the_users_fault(
    tmp_path: Path, command: tuple[str, ...], models: str
) -> None:
    (tmp_path / "file").write_text("")
    for folder in (f"{tmp_path}/file/x", "foo://x/y"):
        done = called(*command, "--models", models, "--log-dir", folder)
        assert done.exit_code == 2
        assert (
            done.stderr.startswith(f"Error: the log folder {folder} cannot be read: ")
            and done.stderr.count("\n") == 1
        )


def test_a_failing_model_is_a_line_with_the_vendors_first_error(
    server: Any, tmp_path: Path
) -> None:
    server.configure({"beta": {"faults": {"500": 1.0}}})
    models = "openai-api/fake/alpha,openai-api/fake/beta"
    try:
        done = called(*MATRIX, "--models", models, "--log-dir", tmp_path, "--max-retries", "0")
    finally:
        server.configure({"beta": {"faults": {}}})
    assert done.exit_code == 1 and done.stderr.endswith(
        "Error: runs failed, or nothing could be scored; see above\n"
    )
    told = [
        line for line in done.stderr.splitlines() if line.startswith("  openai-api/fake/beta: ")
    ]
    assert len(told) == 2, done.stderr  # one a wave: beta on itself, and on alpha
    assert told[0].startswith("  openai-api/fake/beta: 1 run with errors, 2 samples; the first: ")
    assert "500" in told[0]
    assert "The same command asks again only for what failed." in done.stderr
    assert len((done.stdout + done.stderr).splitlines()) <= 60


@pytest.mark.slow(6)
def test_samples_that_failed_are_not_counted_as_done_and_may_be_left_out_where_the_command_can(
    server: Any, tmp_path: Path
) -> None:
    server.configure({"beta": {"faults": {"500": 1.0}}})
    try:
        done = called(
            *STUDY, "--models", "openai-api/fake/beta", "--log-dir", tmp_path, "--max-retries", "0"
        )
    finally:
        server.configure({"beta": {"faults": {}}})
    assert "  0 of 1 run done" in done.stderr
    assert "samples (" not in done.stderr
    assert (
        "asks again only for what failed; --skip-errors leaves out what fails for good."
        in done.stderr
    )


@pytest.mark.slow(2)
@pytest.mark.parametrize(("command", "models"), [(MATRIX, "planted/a,{}"), (STUDY, "{}")])
def test_a_study_in_which_nothing_of_a_model_could_be_scored_ends_with_1_and_the_reason(
    server: Any, tmp_path: Path, command: tuple[str, ...], models: str
) -> None:
    server.configure({"beta": {"faults": {"empty": 1.0}}})
    try:
        done = called(
            *command, "--models", models.format("openai-api/fake/beta"), "--log-dir", tmp_path
        )
    finally:
        server.configure({"beta": {"faults": {}}})
    assert done.exit_code == 1, done.output
    assert done.stderr.splitlines()[-2:] == [
        "  openai-api/fake/beta: nothing could be scored (target_no_response)",
        "Error: runs failed, or nothing could be scored; see above",
    ]


DEAD_GRADER = "planted/h?malformed=1"


def graded_command(name: str, folder: Path) -> tuple[str | Path, ...]:
    """A command of this name that graders read for, without its graders."""
    if name == "awareness scan":
        logs = folder / "read"
        asked = ("--run", "kth_word", "--model", "planted/a", "--limit", "2", "--yes")
        done = called("check", *asked, "--log-dir", logs)
        assert done.exit_code == 0, done.output
        return ("awareness", "scan", logs)
    if name == "awareness run":
        reasoning_model = "planted/a?voiced=.5&reasons=1"
        models = ("--models", reasoning_model, "--methods", "reasoning_trace")
        return ("awareness", "run", *models, "--limit", "2")
    prompts = folder / "mine.jsonl"
    rows = [{"id": str(number), "input": f"Which street is {number}?"} for number in range(3)]
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    roles = ("--writer", "planted/w", "--judges", "planted/j")
    return ("realism", "rewrite", prompts, "--remove", "words of test items", *roles)


@pytest.mark.parametrize(
    "name",
    [
        "awareness scan",
        pytest.param("awareness run", marks=pytest.mark.slow(3)),
        pytest.param("realism rewrite", marks=pytest.mark.slow(5)),
    ],
)
def test_a_grader_of_several_that_reads_nothing_ends_a_command_with_1_and_is_named(
    tmp_path: Path, name: str
) -> None:
    command = graded_command(name, tmp_path)
    for panel, status in ((f"planted/g,{DEAD_GRADER}", 1), ("planted/g", 0)):
        folder = tmp_path / str(status)
        folders = ("--log-dir", folder / "logs", "--out", folder / "page")
        done = called(*command, "--grader", panel, *folders, "--yes")
        lines = [line for line in done.stderr.splitlines() if line.startswith(f"  {DEAD_GRADER}: ")]
        if name == "realism rewrite":  # where a grader is asked by itself too
            text = "nothing could be scored (invalid_response_format)"
        else:
            text = "no verdict could be read (grader_failed)"
        assert lines == [f"  {DEAD_GRADER}: {text}"] * status, done.stderr
        assert done.exit_code == status, done.output
        assert "Page: " in done.output


UNSCORED_MODEL = "planted/a?act_refused=1"


@pytest.mark.slow(8)
@pytest.mark.parametrize("tasks", ["kth_word", "heads_up", "kth_word,heads_up"])
def test_a_matrix_without_a_score_of_a_model_on_itself_ends_with_1_whatever_it_says_of_others(
    tmp_path: Path, tasks: str
) -> None:
    options = ("--tasks", tasks, "--limit", "2", "--log-dir", tmp_path, "--yes")
    done = called("matrix", "--models", f"{UNSCORED_MODEL},planted/b", *options)
    assert "No score, so no answer, for planted/a." in done.output
    assert done.exit_code == 1, done.output
    unscored = [line for line in done.stderr.splitlines() if "nothing could be scored (" in line]
    subjects = [line.partition(":")[0].strip() for line in unscored]
    task_names = tasks.split(",")
    for task in task_names:
        place = f" in {task}" if len(task_names) > 1 else ""
        assert f"{UNSCORED_MODEL}{place}" in subjects


def test_a_dilemma_of_which_nothing_could_be_scored_names_the_runs_own_reason(
    tmp_path: Path,
) -> None:
    options = (
        "--tasks",
        "ethical_dilemma",
        "--limit",
        "2",
        "--log-dir",
        tmp_path,
        "--yes",
        "--display",
        "none",
    )
    done = called("matrix", "--models", "planted/a?malformed=1,planted/b", *options)
    assert (
        "  planted/a?malformed=1: nothing could be scored (too_few_p_predicted)" in done.stderr
    ), done.stderr


@pytest.mark.slow(3)
@pytest.mark.filterwarnings("default::DeprecationWarning")
def test_where_most_replies_ended_at_the_limit_the_last_line_names_the_argument_and_check_does(
    strict_vendors: Any, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with strict_vendors.running() as address:
        for name, value in strict_vendors.environment(address).items():
            monkeypatch.setenv(name, value)
        models = "openrouter/openai/gpt-5-mini,planted/a"
        given = (
            "-T",
            "answer_tokens=80",
            "-T",
            f"dataset={questions}",
            "--limit",
            2,
            "--yes",
            "--log-dir",
            tmp_path,
        )
        done = called("matrix", "--tasks", "kth_word", "--models", models, *given)
    said = "most replies of 1 run ended at the token limit; -T answer_tokens=… raises it"
    assert [line for line in done.stderr.splitlines() if "token limit" in line] == [
        f"  openrouter/openai/gpt-5-mini: {said}"
    ]
    assert (
        done.stderr.splitlines().index(f"  openrouter/openai/gpt-5-mini: {said}")
        >= len(done.stderr.splitlines()) - 3
    )
    checked = called("check", tmp_path)
    assert (
        checked.exit_code == 3
        and "100% of replies ended at the token limit; -T answer_tokens=…" in checked.output
    )


class _Refusing(BaseHTTPRequestHandler):
    """Answers POST /401/… with that status."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(int(self.path.split("/")[1]))
        self.end_headers()
        self.wfile.write(b'{"error": {"message": "No, never."}}')

    def log_message(self, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Models openai-api/no401/x, no404 and no400, whose every call is refused."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        for status in (400, 401, 404):
            monkeypatch.setenv(
                f"NO{status}_BASE_URL", f"http://127.0.0.1:{httpd.server_address[1]}/{status}"
            )
            monkeypatch.setenv(f"NO{status}_API_KEY", "none")
        yield
        httpd.shutdown()


@pytest.mark.slow(7)
@pytest.mark.parametrize(("command", "status"), [(MATRIX, 401), (MATRIX, 404), (STUDY, 400)])
def test_where_every_call_was_refused_the_vendors_error_is_a_line_and_nobody_is_told_to_try_again(
    refusing: None, tmp_path: Path, command: tuple[str, ...], status: int
) -> None:
    models = f"planted/a,openai-api/no{status}/x"
    done = called(*command, "--models", models, "--log-dir", tmp_path, "--max-retries", "0")
    assert done.exit_code == 1
    told = [
        line for line in done.stderr.splitlines() if line.startswith(f"  openai-api/no{status}/x: ")
    ]
    assert told and f"Error code: {status}" in told[0] and "No, never." in told[0], done.stderr
    assert "asks again" not in done.stderr and "skip" not in done.stderr


def test_what_the_same_call_meets_again_is_not_offered_again() -> None:
    assert waves.LASTING_ERRORS.search("openai.AuthenticationError: Error code: 401")
    assert not waves.LASTING_ERRORS.search("openai.InternalServerError: Error code: 500")


@pytest.mark.parametrize("command", [MATRIX, STUDY])
def test_an_interrupt_ends_with_130_a_line_and_no_second_wave(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: tuple[str, ...]
) -> None:
    begun: list[str] = []

    def interrupted(tasks: Any, log_dir: str, **settings: Any) -> Any:
        begun.append(log_dir)
        raise KeyboardInterrupt

    monkeypatch.setattr(waves, "eval_set", interrupted)
    done = called(*command, "--models", "planted/a,planted/b", "--log-dir", tmp_path / "m")
    assert done.exit_code == 130 and len(begun) == 1
    assert (
        done.stderr.splitlines()[-1] == "Interrupted: 0 of 2 runs done; the same command goes on."
    )


def test_a_second_start_says_how_many_replies_are_used_and_how_many_calls_are_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer, left = PlantedAPI.generate, [4]

    async def breaking(self: PlantedAPI, *given: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("no more")
        return await answer(self, *given, **named)

    monkeypatch.setattr(PlantedAPI, "generate", breaking)
    command = (
        "awareness",
        "turns",
        "eval_awareness_2",
        "--models",
        "planted/breaking",
        "--limit",
        "4",
        "--most",
        "1",
    )
    how = ("--log-dir", tmp_path / "t", "--yes", "--max-connections", "1", "--max-retries", "0")
    first = called(*command, *how)
    assert first.exit_code == 1 and "earlier start" not in first.stderr
    left[0] = 8
    second = called(*command, *how)
    assert second.exit_code == 0 and left[0] == 0, second.output
    assert (
        "4 replies of the earlier start are used; at most 8 calls are left"
        in second.stderr.splitlines()
    )


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("command", [MATRIX, STUDY])
def test_sigterm_and_sighup_end_as_ctrl_c_does_with_their_own_status(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: tuple[str, ...],
    number: signal.Signals,
    status: int,
) -> None:
    monkeypatch.setattr(waves, "eval_set", lambda *tasks, **settings: signal.raise_signal(number))
    before = signal.getsignal(number)
    done = called(*command, "--models", "planted/a,planted/b", "--log-dir", tmp_path / "m")
    assert done.exit_code == status and signal.getsignal(number) is before
    assert (
        done.stderr.splitlines()[-1] == "Interrupted: 0 of 2 runs done; the same command goes on."
    )


def test_sigterm_ends_a_run_where_ctrl_c_is_ignored_as_in_the_background_of_a_shell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        waves, "eval_set", lambda *tasks, **settings: signal.raise_signal(signal.SIGTERM)
    )
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert (
            called(
                *MATRIX, "--models", "planted/a,planted/b", "--log-dir", tmp_path / "m"
            ).exit_code
            == 143
        )
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_run_under_nohup_goes_on_after_a_hangup(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def hung_up(*tasks: Any, **settings: Any) -> Any:
        signal.raise_signal(signal.SIGHUP)
        raise KeyboardInterrupt  # the run went on to here

    monkeypatch.setattr(waves, "eval_set", hung_up)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert (
            called(
                *MATRIX, "--models", "planted/a,planted/b", "--log-dir", tmp_path / "m"
            ).exit_code
            == 130
        )
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.slow(10)
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_in_the_first_wave_ends_a_matrix_within_seconds(
    server: Any, questions: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    server.configure({"alpha": {"latency_ms": 500}})
    models = "planted/b,openai-api/fake/alpha"
    options = (
        "--tasks",
        "kth_word",
        "-T",
        f"dataset={questions}",
        "--max-connections",
        "1",
        "--log-dir",
        "m",
        "--yes",
    )
    process = subprocess.Popen(
        [COMMAND, "matrix", "--models", models, *options],
        cwd=tmp_path,
        env={**os.environ, "PWD": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored in the background of a shell
        text=True,
    )
    until = time.monotonic() + 200
    while server.stats()["ok"] < 3 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == status and "Traceback" not in output, output
    last = output.splitlines()[-1]  # the simulated model may be done or not
    assert re.fullmatch(r"Interrupted: [01] of 2 runs done; the same command goes on\.", last), (
        output
    )
    assert not (tmp_path / "m" / "cells").exists()


def test_a_log_folder_without_credentials_is_refused_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(InputError, match=r"^cannot write logs into s3://bucket/x: "):
        run_wave([], "s3://bucket/x", title="", settings=RunSettings())


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            "/no/home/inspect_ai",
            "^cannot write into /no/home/inspect_ai .*: Inspect keeps .* set XDG_DATA_HOME to a folder",
        ),
        ("{logs}/a.eval", "^cannot write logs into .*logs: "),
        ("bucket/key", "^cannot write logs into .*logs: "),
        (None, "^cannot write logs into .*logs: "),
    ],
)
def test_what_cannot_be_written_is_a_log_or_what_inspect_keeps_below_a_read_only_home(
    tmp_path: Path, place: str | None, said: str
) -> None:
    logs = str(tmp_path / "logs")
    error = OSError(30, "Read-only file system", place and place.format(logs=logs))
    assert re.search(said, waves._unwritable_text(error, logs))


def test_a_full_disk_is_a_line_that_names_both_places(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    errors = iter(
        [
            OSError(28, "No space left on device"),
            sqlite3.OperationalError("database or disk is full"),
        ]
    )

    def full(*tasks: Any, **settings: Any) -> Any:
        raise next(errors)

    monkeypatch.setattr(waves, "eval_set", full)
    done = [
        called(*MATRIX, "--models", "planted/a,planted/b", "--log-dir", tmp_path / "m")
        for _ in range(2)
    ]
    lines = [one.stderr.splitlines()[-1] for one in done]
    assert [one.exit_code for one in done] == [2, 2]
    assert lines[0].startswith(
        f"Error: the disk is full (logs go into {tmp_path}/m/diagonal): free space. Inspect keeps"
    )
    assert lines[1].startswith(
        "Error: cannot keep what is under way (database or disk is full): Inspect keeps"
    )
    assert all(line.endswith("set XDG_DATA_HOME to a folder with space") for line in lines)


def test_names_in_a_dry_run_and_in_run_lines_hold_nothing_that_a_terminal_obeys(
    server: Any, tmp_path: Path
) -> None:
    models = "openai-api/fake/al\x1b]0;x\x07pha,openai-api/fake/be\u202eta"
    command = (*MATRIX, "--models", models, "--log-dir", tmp_path / "m", "--max-retries", "0")
    for done in (called(*command, "--dry-run"), called(*command)):
        assert "fake/be\ufffdta" in done.output and "fake/al\ufffd]0;x\ufffdpha" in done.output
        assert not re.search("[\x1b\x07\u202e]", done.output)


@pytest.mark.slow(10)
def test_a_folder_with_logs_under_a_tasks_old_and_new_name_has_those_of_both_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each header is read once a process for that, not once a wave."""
    settings, reads = RunSettings(display="none"), list[str]()

    def runs(**renamed: str) -> list[Task]:
        made = [task_with(awareness_binary(), model=get_model(f"planted/{name}")) for name in "ab"]
        return [task_with(task, name=renamed.get(str(task.model)[-1], task.name)) for task in made]

    eval_set(runs(a="binary"), log_dir=str(tmp_path), display="none", limit=2)
    there = sorted(tmp_path.glob("*.eval"))
    monkeypatch.setattr(
        waves, "readable_logs", lambda logs: reads.extend(logs) or readable_logs(logs)
    )
    for _ in range(2):
        logs = run_wave(runs(), str(tmp_path), title="Again", settings=settings, limit=2)
        assert {log.eval.task.rpartition("/")[2] for log in logs} == {"binary", "awareness_binary"}
    assert sorted(tmp_path.glob("*.eval")) == there, "nobody was asked again"
    assert sorted(log for log in reads if log.endswith(".eval")) == sorted(
        logs_in(str(tmp_path))
    ), "each once"


@pytest.mark.parametrize(
    "command",
    [
        ("matrix", "--tasks", "kth_word", "--models", "planted/a,planted/b"),
        ("check", "--run", "kth_word", "--models", "planted/a"),
    ],
)
def test_a_folder_of_an_earlier_task_version_is_refused_with_both_versions(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = ("--limit", "2", "--yes", "--log-dir", tmp_path / "m")
    assert called(*command, *how).exit_code in (0, 3)  # a check of two items cannot be good
    monkeypatch.setattr("selfprobe.introspect_tasks.kth_word.VERSION", 1234)
    done = called(*command, *how)
    assert done.exit_code == 2, done.output
    assert re.fullmatch(
        r"Error: \S+ holds a log \(\S+\.eval\) of kth_word version \d, which is version 1234 now, with other prompts or "
        r"scores: give a new --log-dir",
        done.stderr.splitlines()[-1],
    )


def test_runs_of_an_earlier_task_version_are_told_and_count_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (
        "awareness",
        "run",
        "--methods",
        "binary",
        "--models",
        "planted/a",
        "--yes",
        "--log-dir",
        tmp_path,
    )
    assert called(*command, "--limit", "4").exit_code == 0
    monkeypatch.setattr("selfprobe.evalawareness_tasks.binary.VERSION", 1234)
    done = called(*command, "--limit", "2")
    assert done.exit_code == 0, done.output
    assert re.search(
        r"^\S+/replies holds logs of binary version \d, which is version 1234 now, with other prompts or scores: what "
        r"changed is asked anew$",
        done.stderr,
        re.MULTILINE,
    )
    [run] = counted_runs([str(tmp_path)]).counted
    assert str(run.header.eval.task_version).startswith("1234+") and len(run.items()) == 2
