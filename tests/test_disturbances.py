"""What befalls a run from outside: a clock set back, its folder deleted, SIGTERM, a report
meanwhile, many connections.

Nothing is lost without a word, and the same command goes on.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai import eval, eval_set
from inspect_ai.event import ModelEvent

from selfprobe.cli import main
from selfprobe.logs import readable_logs, samples, summaries, transcripts
from selfprobe.providers.mind import Mind
from selfprobe.providers.planted import DEFAULTS, PlantedAPI
from selfprobe.solvers.record import record_of
from selfprobe.study import waves

ITEMS = 4


def called(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def matrix(folder: Path) -> Result:
    """Two models, one task that is joined; 4 items, 8 samples, 40 calls."""
    models = (
        "--models",
        "planted/disturbed-a,planted/disturbed-b",
        "--tasks",
        "kth_word",
        "--limit",
        str(ITEMS),
        "--yes",
    )
    return called(
        "matrix",
        *models,
        "--max-connections",
        "2",
        "--log-dir",
        folder / "m",
        "--out",
        folder / "page",
    )


ANSWER = PlantedAPI.generate
PLANNING_MODEL = "plan"
CALLS, HAPPENS = [0], dict[int, Callable[[], object]]()


async def watched(self: Any, *args: Any, **settings: Any) -> Any:
    """Inspect keeps models from run to run, so this is one function for all tests, and the models
    are this file's.

    The plan's stand-in is a planted model too, and it is asked only where no earlier test of the
    process counted the task's calls: it is no model of a run.
    """
    if self.model_name == PLANNING_MODEL:
        return await ANSWER(self, *args, **settings)
    CALLS[0] += 1
    if happens := HAPPENS.pop(CALLS[0], None):
        happens()
    return await ANSWER(self, *args, **settings)


@pytest.fixture(autouse=True)
def events_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user's run keeps them: what is not in a log yet when it is stopped is taken up from
    there.
    """
    monkeypatch.setattr(waves, "eval_set", eval_set)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], object]], None]:
    """`at(20, happens)`: before the 20th call of a model from now on something happens; `CALLS` are
    those so far.
    """
    monkeypatch.setattr(PlantedAPI, "generate", watched)

    def set_up(number: int, happens: Callable[[], object]) -> None:
        CALLS[0] = 0
        HAPPENS.clear()
        HAPPENS[number] = happens

    set_up(0, terminated)
    return set_up


def whole(folder: Path) -> None:
    """One log a run, with every sample once and scored."""
    logs = readable_logs([str(folder / "m")])
    assert not logs.ignored and [log.status for log in logs.headers] == ["success"] * 2
    for log in logs.headers:
        seen = summaries(log.location)
        assert len({sample.id for sample in seen}) == len(seen) == ITEMS
        assert all(sample.scores and not sample.error for sample in seen)


def answered(folder: Path) -> int:
    """Calls whose reply is in a log."""
    samples_there = [
        s for log in readable_logs([str(folder / "m")]).headers for s in transcripts(log.location)
    ]
    events = [e for sample in samples_there for e in sample.events if isinstance(e, ModelEvent)]
    return sum(not e.pending and bool(e.output.choices) for e in events)


def terminated() -> None:
    signal.raise_signal(signal.SIGTERM)


def test_after_a_clock_was_set_back_an_hour_the_new_logs_stay_and_nothing_is_asked_again(
    at: Any, tmp_path: Path
) -> None:
    at(25, terminated)
    assert matrix(tmp_path).exit_code == 143
    kept = answered(tmp_path)
    for log in (tmp_path / "m").rglob("*.eval"):  # written an hour from now
        os.utime(log, (time.time() + 3600,) * 2)
    at(0, terminated)
    assert matrix(tmp_path).exit_code == 0
    whole(tmp_path)
    assert kept and CALLS[0] == 40 - kept  # how many were answered depends on who else works here
    before = CALLS[0]
    assert matrix(tmp_path).exit_code == 0 and CALLS[0] == before
    whole(tmp_path)


def test_a_clock_that_jumps_back_in_a_run_changes_neither_its_rows_nor_what_it_says_of_its_time(
    at: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time
    at(15, lambda: monkeypatch.setattr(time, "time", lambda: now() - 3600))
    done = matrix(tmp_path)
    assert done.exit_code == 0, done.output
    assert re.search(r"  2 of 2 runs done \(\d:\d\d\)$", done.stderr, re.MULTILINE), (
        done.stderr
    )  # not −59 minutes
    whole(tmp_path)


def test_a_claim_from_the_future_of_a_process_that_is_gone_is_taken_over(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "m" / "diagonal").mkdir(parents=True)
    claim = {
        "host": socket.gethostname(),
        "pid": gone.pid,
        "started": 1.0,
        "since": "2999-01-01 00:00:00 UTC",
    }
    (tmp_path / "m" / "diagonal" / "running.json").write_text(json.dumps(claim))
    assert matrix(tmp_path).exit_code == 0
    whole(tmp_path)


def test_a_log_folder_that_is_deleted_in_a_run_is_a_line_or_made_again_with_every_row(
    at: Any, tmp_path: Path
) -> None:
    at(25, lambda: shutil.rmtree(tmp_path / "m"))
    done = matrix(tmp_path)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "Traceback" not in done.output, done.output
    if done.exit_code:
        assert str(tmp_path / "m") in done.stderr, done.stderr
        assert matrix(tmp_path).exit_code == 0
    whole(tmp_path)


def test_sigterm_before_the_first_call_in_a_wave_and_between_waves_ends_with_143_and_the_same_command_goes_on(
    at: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ended = waves._eval_set_logs, waves.run_wave

    def before(*given: Any) -> Any:
        terminated()
        return asked(*given)

    def after(*given: Any, **more: Any) -> Any:
        logs = ended(*given, **more)
        terminated()
        return logs

    with monkeypatch.context() as patched:
        patched.setattr(waves, "_eval_set_logs", before)
        done = matrix(tmp_path)
    assert done.exit_code == 143 and CALLS[0] == 0
    assert (
        done.stderr.splitlines()[-1] == "Interrupted: 0 of 2 runs done; the same command goes on."
    )
    at(10, terminated)
    assert matrix(tmp_path).exit_code == 143
    made, logged = CALLS[0], answered(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(waves, "run_wave", after)
        assert matrix(tmp_path).exit_code == 143
    assert not list((tmp_path / "m").rglob("running.json"))
    assert matrix(tmp_path).exit_code == 0
    whole(tmp_path)
    assert 40 <= CALLS[0] <= made + 40 - logged  # what a log holds is not asked again


@pytest.mark.slow(5)
@pytest.mark.parametrize("stage", ["write_bytes", "replace"])
def test_sigterm_while_a_report_is_written_leaves_the_earlier_page_or_the_whole_new_one(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    plain, count = getattr(Path, stage), [0]

    def third(self: Path, *given: Any) -> Any:
        count[0] += 1
        if count[0] == 3:
            terminated()
        return plain(self, *given)

    def killed_report() -> Result:
        return called("report", root / "examples" / "logs", "--out", tmp_path / "r")

    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "index.html").write_text("earlier")
    monkeypatch.setattr(Path, stage, third)
    assert killed_report().exit_code == 143
    monkeypatch.undo()
    assert [path.name for path in (tmp_path / "r").iterdir() if path.name.startswith(".new")] == []
    files = {
        str(path.relative_to(tmp_path / "r"))
        for path in (tmp_path / "r").rglob("*")
        if path.is_file()
    }
    if stage == "write_bytes":
        assert files == {"index.html"} and (tmp_path / "r" / "index.html").read_text() == "earlier"
    else:
        assert killed_report().exit_code == 0
        again = {
            str(path.relative_to(tmp_path / "r"))
            for path in (tmp_path / "r").rglob("*")
            if path.is_file()
        }
        assert files == again and (tmp_path / "r" / "index.html").read_text() != "earlier"


@pytest.mark.slow(7)
def test_a_report_while_a_run_writes_says_what_is_not_there_yet_and_harms_nothing(
    at: Any, tmp_path: Path
) -> None:
    told: list[subprocess.CompletedProcess[str]] = []
    command = [
        str(Path(sys.executable).with_name("selfprobe")),
        "report",
        str(tmp_path / "m"),
        "--out",
        str(tmp_path / "r"),
    ]

    def reported() -> None:
        told.append(subprocess.run(command, capture_output=True, text=True, check=False))

    at(30, reported)
    assert matrix(tmp_path).exit_code == 0
    [done] = told
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr, done.stderr
    assert (
        "hole" in done.stderr or "no selfprobe log" in done.stderr or "no finished" in done.stderr
    ), done.stderr
    whole(tmp_path)
    assert called("report", tmp_path / "m", "--out", tmp_path / "r").exit_code == 0


@pytest.mark.slow(6)
def test_two_hundred_connections_with_faults_give_each_question_its_own_reply_once(
    server: Any, tmp_path: Path
) -> None:
    count = 200
    rows = "".join(f'{{"id": "q{i}", "question": "What of number {i}?"}}\n' for i in range(count))
    (tmp_path / "q.jsonl").write_text(rows)
    server.configure(
        {"alpha": {"latency_ms": 1500, "faults": {"429": 0.03, "500": 0.03, "reset": 0.03}}}
    )
    settings: dict[str, Any] = {
        "max_connections": count,
        "max_samples": count,
        "max_retries": 5,
        "display": "none",
    }
    given = {"dataset": str(tmp_path / "q.jsonl"), "epochs": 1}
    [log] = eval(
        "selfprobe/open_answers",
        model="openai-api/fake/alpha",
        task_args=given,
        log_dir=str(tmp_path),
        **settings,
    )
    assert log.status == "success"
    seen = server.stats()
    assert seen["peak_inflight"] > count * 0.6 and seen["ok"] == seen["distinct"] == count
    assert seen["requests"] == count + sum(seen["faults"].values())
    for sample in samples(log.location):
        [act] = record_of(sample).acts.values()
        assert act.text == Mind("alpha", DEFAULTS, seed=1).paragraph(str(sample.input))
