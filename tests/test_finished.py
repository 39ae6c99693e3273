"""What a killed run had paid for is not asked again."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.model import ChatMessageUser, GenerateConfig, ModelOutput

from selfprobe.logs import readable_logs, resuming, summaries, transcripts

COMMAND = str(Path(sys.executable).with_name("selfprobe"))
ASKED, COLD = [ChatMessageUser(content="Why?")], GenerateConfig(temperature=0)


@pytest.fixture
def in_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample q1 of kth_word is under way, of which a killed run had two equal calls of `m`."""
    active = SimpleNamespace(task="selfprobe/kth_word", sample=SimpleNamespace(id="q1"), epoch=1)
    monkeypatch.setattr(resuming, "sample_active", lambda: active)
    key = ("kth_word", "m", "q1", "1", resuming._hash(ASKED, COLD))
    replies = [ModelOutput.from_content("m", text) for text in ("first", "second")]
    monkeypatch.setattr(resuming, "_left", {key: replies})


def text(output: ModelOutput | None) -> str | None:
    return None if output is None else output.completion


@pytest.mark.usefixtures("in_sample")
def test_equal_calls_take_the_replies_in_their_order_and_each_once() -> None:
    asked = [ChatMessageUser(content="Why?")]  # another object, with an id of its own
    assert [text(resuming.take("m", asked, COLD)) for _ in range(3)] == ["first", "second", None]


@pytest.mark.usefixtures("in_sample")
def test_another_model_prompt_or_setting_is_another_call_but_patience_is_not() -> None:
    assert resuming.take("n", ASKED, COLD) is None
    assert resuming.take("m", [ChatMessageUser(content="How?")], COLD) is None
    assert resuming.take("m", ASKED, GenerateConfig(temperature=1)) is None
    assert text(resuming.take("m", ASKED, GenerateConfig(temperature=0, max_retries=9, max_connections=3))) == "first"


def test_outside_of_a_sample_nothing_is_taken() -> None:
    assert resuming.take("m", ASKED, COLD) is None


def _shown(folder: Path) -> dict[tuple[str, str], Any]:
    """Metadata and scores of all samples, by model and id."""
    return {
        (log.eval.model, str(sample.id)): (sample.metadata, {n: s.value for n, s in (sample.scores or {}).items()})
        for log in readable_logs([str(folder)]).headers
        for sample in summaries(log.location)
    }


@pytest.mark.slow(20)
def test_after_two_kills_no_call_is_asked_again_whose_reply_was_there_and_no_row_changes(
    server: Any, questions: Path, tmp_path: Path
) -> None:
    server.configure({"*": {"latency_ms": 300, "sigma": 0.5}})
    models, sizes = "openai-api/fake/alpha,openai-api/fake/beta", ("--max-connections", "6", "--display", "none")

    def command(folder: str) -> list[str]:
        folders = ("--log-dir", str(tmp_path / folder), "--out", str(tmp_path / folder / "page"))
        given = ("--tasks", "kth_word", "-T", f"dataset={questions}", "--yes", *folders)
        return [COMMAND, "matrix", "--models", models, *given, *sizes]

    under_way = 0
    for share in (40, 80):  # of 120 calls
        process = subprocess.Popen(command("m"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
        until = time.monotonic() + 100
        while server.stats()["ok"] < share and time.monotonic() < until:
            time.sleep(0.02)
        process.kill()
        process.wait()
        with resuming.taken_up(str(tmp_path / "m" / "diagonal")):
            kept = sum(map(len, resuming._left.values()))
        newest = {log.eval.model: log.location for log in reversed(readable_logs([str(tmp_path / "m")]).headers)}
        events = [e for log in newest.values() for s in transcripts(log) for e in s.events if isinstance(e, ModelEvent)]
        under_way += sum(bool(event.pending) for event in events)
        assert kept > 0
    third = subprocess.run(command("m"), capture_output=True, check=True, text=True).stderr
    left = re.findall(r"at most (\d+) calls are left|call (\d+) of (\d+)", third)
    assert {most for _, _, most in left[1:]} == {left[0][0]}, "progress counts what is asked now alone"
    assert server.stats()["requests"] - 120 <= under_way
    subprocess.run(command("whole"), capture_output=True, check=True)
    assert _shown(tmp_path / "m") == _shown(tmp_path / "whole")
    assert json.dumps([*_shown(tmp_path / "m").values()]).count("applied") == 24
