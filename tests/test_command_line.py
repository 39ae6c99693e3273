"""As a user runs it: `inspect eval` in a process of its own, by path and by name, from another
folder.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log

from selfprobe.scorers.decision import decisions_of
from selfprobe.solvers.record import Record

INSPECT = str(Path(sys.executable).parent / "inspect")
ROOT = Path(__file__).parent.parent


def command(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `inspect` quietly from a folder; PWD as a shell sets it."""
    return subprocess.run(
        [INSPECT, *map(str, arguments), "--display", "plain"],
        cwd=cwd,
        env=environment(cwd),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def environment(cwd: Path) -> dict[str, str]:
    return {**os.environ, "PWD": str(cwd), "COLUMNS": "200"}


def only_log(folder: Path) -> EvalLog:
    [info] = list_eval_logs(str(folder))
    log = read_eval_log(info)
    assert log.samples
    return log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the command is called, with a data set of twelve questions as my.jsonl."""
    rows = (f'{{"id": "q{i}", "question": "What of number {i}?"}}\n' for i in range(12))
    (tmp_path / "my.jsonl").write_text("".join(rows))
    return tmp_path


def test_by_path_with_a_relative_data_set_and_another_target(folder: Path) -> None:
    task = os.path.relpath(ROOT / "introspect_tasks" / "kth_word.py", folder)
    options = (
        "--model-role",
        "target=planted/beta",
        "-T",
        "dataset=my.jsonl",
        "-T",
        "k=1,5",
        "--limit",
        "3",
    )
    done = command(
        "eval", task, "--model", "planted/alpha", *options, "--log-dir", "logs", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    log = only_log(folder / "logs")
    assert log.status == "success" and log.eval.metadata is not None
    assert log.eval.task == "kth_word" and log.eval.metadata["selfprobe"]
    for sample in log.samples or []:
        record = sample.store_as(Record)
        assert {reply.model for reply in record.acts.values()} == {"planted/beta"}
        assert set(record.answers) == {"k1", "k5"}
        assert {reply.model for reply in record.answers.values()} == {"planted/alpha"}
    for name in ("accuracy", "unscored", "n", "skill", "ceiling"):
        assert name in done.stdout


@pytest.mark.slow(8)
def test_by_name_from_another_folder_and_a_replay_of_it_by_a_relative_path(folder: Path) -> None:
    base = (
        "eval",
        "selfprobe/kth_word",
        "--model",
        "planted/alpha",
        "-T",
        "dataset=my.jsonl",
        "--limit",
        "3",
    )
    first = command(*base, "--log-dir", "first", cwd=folder)
    assert first.returncode == 0, first.stderr
    logs = ("-T", "target_log=first", "-T", "observer_log=first")
    again = command(*base, *logs, "--log-dir", "again", cwd=folder)
    assert again.returncode == 0, again.stderr
    one, other = only_log(folder / "first"), only_log(folder / "again")
    assert one.eval.task == "selfprobe/kth_word" and one.status == other.status == "success"
    assert other.stats.model_usage == {}  # no call at all
    found = [
        [decisions_of((s.scores or {})["kth_word_match"]) for s in log.samples or []]
        for log in (one, other)
    ]
    assert found[0] == found[1]


@pytest.mark.slow(4)
def test_a_log_folder_that_is_a_file_is_named_and_the_command_fails(folder: Path) -> None:
    base = ("eval", "selfprobe/kth_word", "--model", "planted/alpha", "--limit", "2")
    done = command(*base, "--log-dir", "my.jsonl/logs", cwd=folder)
    assert done.returncode != 0
    assert "my.jsonl/logs" in " ".join((done.stdout + done.stderr).split()), (
        done.stdout + done.stderr
    )


@pytest.mark.slow(10)
def test_an_eval_set_runs_two_models_and_has_nothing_to_do_the_second_time(folder: Path) -> None:
    models = "planted/alpha?access=.9,planted/beta"
    arguments = (
        "eval-set",
        "selfprobe/kth_word",
        "--model",
        models,
        "-T",
        "dataset=my.jsonl",
        "--log-dir",
        "logs",
    )
    first = command(*arguments, cwd=folder)
    assert first.returncode == 0, first.stdout + first.stderr
    logs = {
        info.name: read_eval_log(info, header_only=True)
        for info in list_eval_logs(str(folder / "logs"))
    }
    assert {log.eval.model for log in logs.values()} == set(models.split(","))
    assert {log.status for log in logs.values()} == {"success"}
    second = command(*arguments, cwd=folder)
    assert second.returncode == 0, second.stdout + second.stderr
    assert {info.name for info in list_eval_logs(str(folder / "logs"))} == set(logs)


@pytest.fixture
def started(folder: Path, server: Any) -> Iterator[subprocess.Popen[str]]:
    """A run on a slow server, under way: a third of its calls are answered."""
    server.configure({"alpha": {"latency_ms": 400}})
    options = (
        "-T",
        "dataset=my.jsonl",
        "--max-samples",
        "3",
        "--log-dir",
        "logs",
        "--display",
        "plain",
    )
    process = subprocess.Popen(
        [INSPECT, "eval", "selfprobe/kth_word", "--model", "openai-api/fake/alpha", *options],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored in the background of a shell
        text=True,
    )
    until = time.monotonic() + 200
    while server.stats()["ok"] < 25 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()[0]
    yield process
    if process.poll() is None:
        process.kill()
        process.communicate()


def test_ctrl_c_ends_cleanly_and_keeps_what_was_answered(
    started: subprocess.Popen[str], folder: Path
) -> None:
    started.send_signal(signal.SIGINT)
    output, _ = started.communicate(timeout=60)
    log = only_log(folder / "logs")
    assert log.status == "cancelled" and "Traceback" not in output
    assert log.eval.task == "selfprobe/kth_word", "by name, from another folder"
    done = [s for s in log.samples or [] if s.scores]
    assert 0 < len(done) < 12
    assert all(
        d.value is not None for s in done for d in decisions_of((s.scores or {})["kth_word_match"])
    )


@pytest.mark.slow(10)
def test_after_a_kill_only_the_samples_that_were_under_way_are_asked_again(
    started: subprocess.Popen[str], folder: Path, server: Any
) -> None:
    started.kill()
    started.communicate()
    (left,) = list_eval_logs(str(folder / "logs"))
    crashed = read_eval_log(left, header_only=True)  # no sample of it may be in the file yet
    assert crashed.status == "started"
    server.configure({"alpha": {"latency_ms": 0}})
    recovered = command(
        "log", "recover", crashed.location, "--overwrite", "--log-dir", "logs", cwd=folder
    )
    assert recovered.returncode == 0, recovered.stdout + recovered.stderr
    kept = [s for s in only_log(folder / "logs").samples or [] if s.error is None]
    assert 0 < len(kept) < 12
    server.reset()
    retried = command("eval-retry", crashed.location, "--log-dir", "logs", cwd=folder)
    assert retried.returncode == 0, retried.stdout + retried.stderr
    assert server.stats()["requests"] == 5 * (12 - len(kept))
    last = max(
        (read_eval_log(info) for info in list_eval_logs(str(folder / "logs"))),
        key=lambda log: log.eval.created,
    )
    assert last.status == "success" and len(last.samples or []) == 12
    acts, answers = (
        {s.id: getattr(s.store_as(Record), arm) for s in last.samples or []}
        for arm in ("acts", "answers")
    )
    assert all(
        (acts[s.id], answers[s.id]) == (s.store_as(Record).acts, s.store_as(Record).answers)
        for s in kept
    )
