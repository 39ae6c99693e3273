"""A call that was answered is not asked again."""

import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai.event import ModelEvent
from inspect_ai.model import ChatMessageUser, GenerateConfig, ModelOutput
from inspect_ai.tool import ToolInfo

from selfprobe.cli import main
from selfprobe.logs import readable_logs, resuming, summaries, transcripts
from selfprobe.logs.resuming import AskedCall
from selfprobe.providers.planted import PlantedAPI

COMMAND = str(Path(sys.executable).with_name("selfprobe"))


def call(**changed: Any) -> AskedCall:
    """A call with a message of its own, which has an id of its own."""
    asked = {
        "model": "m",
        "messages": [ChatMessageUser(content="Why?")],
        "tools": (),
        "tool_choice": "none",
    }
    return AskedCall(**{**asked, "config": GenerateConfig(temperature=0), **changed})


class InSample:
    """A sample that is under way, in a wave of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch, self.attempts = monkeypatch, 0
        monkeypatch.setattr(resuming, "_attempts", {})
        monkeypatch.setattr(resuming, "_unused_replies", defaultdict(list))
        self.attempt()

    def attempt(self, *, sample: str = "q1") -> None:
        """Begin with an attempt at the sample."""
        self.attempts += 1
        known = {"task": "selfprobe/kth_word", "sample": SimpleNamespace(id=sample), "epoch": 1}
        active = SimpleNamespace(**known, id=str(self.attempts), sample_uuid=sample)
        self.monkeypatch.setattr(resuming, "sample_active", lambda: active)

    def ask(self, reply: str, asked: AskedCall | None = None) -> str:
        """What the sample gets for a call to which the model would reply so."""
        asked = asked or call()
        earlier = resuming.earlier_reply(asked)
        if earlier is not None:
            return earlier.completion
        resuming.keep_reply(asked, ModelOutput.from_content("m", reply))
        return reply


@pytest.fixture
def in_sample(monkeypatch: pytest.MonkeyPatch) -> InSample:
    return InSample(monkeypatch)


def test_a_further_attempt_at_a_sample_gets_its_replies_in_their_order_and_then_asks(
    in_sample: InSample,
) -> None:
    assert [in_sample.ask(reply) for reply in ("first", "second")] == ["first", "second"]
    in_sample.attempt()
    assert [in_sample.ask(reply) for reply in ("x", "y", "third")] == ["first", "second", "third"]
    in_sample.attempt()
    assert [in_sample.ask("z") for _ in range(3)] == ["first", "second", "third"]


def test_another_sample_gets_none_of_them_and_none_is_left_of_one_that_has_its_score(
    in_sample: InSample,
) -> None:
    in_sample.ask("of the first")
    in_sample.attempt(sample="q2")
    assert in_sample.ask("of the second") == "of the second"
    resuming.forget_replies("q2")
    in_sample.attempt(sample="q2")
    assert in_sample.ask("again") == "again"


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "n"},
        {"messages": [ChatMessageUser(content="How?")]},
        {"config": GenerateConfig(temperature=1)},
        {"tools": (ToolInfo(name="add", description="Add."),)},
        {"tool_choice": "any"},
    ],
)
def test_another_model_prompt_setting_or_tool_is_another_call(
    in_sample: InSample, changed: dict[str, Any]
) -> None:
    in_sample.ask("first")
    in_sample.attempt()
    assert in_sample.ask("another", call(**changed)) == "another"


def test_patience_and_connections_are_no_part_of_a_call(in_sample: InSample) -> None:
    in_sample.ask("first")
    in_sample.attempt()
    patient = call(config=GenerateConfig(temperature=0, max_retries=9, max_connections=3))
    assert in_sample.ask("another", patient) == "first"


def test_outside_of_a_sample_and_of_a_wave_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    resuming.keep_reply(call(), ModelOutput.from_content("m", "first"))
    assert resuming.earlier_reply(call()) is None


def test_replies_to_prompts_that_are_as_they_were_are_used_where_the_data_or_the_task_version_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, calls = PlantedAPI.generate, [0]

    async def counted(self: PlantedAPI, *given: Any, **named: Any) -> Any:
        calls[0] += 1
        return await answer(self, *given, **named)

    def started(rows: int) -> int:
        """Calls of a start with so many conversations."""
        prompts = [
            {"id": f"r{n}", "prompt": f"Is {n} a prime number?", "label": "evaluation"}
            for n in range(rows)
        ]
        (tmp_path / "mine.jsonl").write_text(
            "".join(json.dumps(prompt) + "\n" for prompt in prompts)
        )
        command = [
            "awareness",
            "run",
            "--models",
            "planted/changing",
            "--methods",
            "binary",
            "--yes",
        ]
        places = ["--dataset", str(tmp_path / "mine.jsonl"), "--log-dir", str(tmp_path / "logs")]
        calls[0] = 0
        done = CliRunner().invoke(main, [*command, *places, "--out", str(tmp_path / "page")])
        assert done.exit_code == 0, done.output
        return calls[0]

    monkeypatch.setattr(PlantedAPI, "generate", counted)
    assert started(2) == 2 * 6, "a reply and five questions each"
    assert started(3) == 6, "two are as they were"
    monkeypatch.setattr("selfprobe.evalawareness_tasks.binary.VERSION", 1234)
    assert started(3) == 0, "no prompt changed with the version"


def _shown(folder: Path) -> dict[tuple[str, str], Any]:
    """Metadata and scores of all samples, by model and id."""
    return {
        (log.eval.model, str(sample.id)): (
            sample.metadata,
            {n: s.value for n, s in (sample.scores or {}).items()},
        )
        for log in readable_logs([str(folder)]).headers
        for sample in summaries(log.location)
    }


@pytest.mark.slow(20)
def test_after_two_kills_no_call_is_asked_again_whose_reply_was_there_and_no_row_changes(
    server: Any, questions: Path, tmp_path: Path
) -> None:
    server.configure({"*": {"latency_ms": 300, "sigma": 0.5}})
    models, sizes = (
        "openai-api/fake/alpha,openai-api/fake/beta",
        ("--max-connections", "6", "--display", "none"),
    )

    def command(folder: str) -> list[str]:
        folders = ("--log-dir", str(tmp_path / folder), "--out", str(tmp_path / folder / "page"))
        given = ("--tasks", "kth_word", "-T", f"dataset={questions}", "--yes", *folders)
        return [COMMAND, "matrix", "--models", models, *given, *sizes]

    under_way = 0
    for share in (40, 80):  # of 120 calls
        process = subprocess.Popen(
            command("m"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ
        )
        until = time.monotonic() + 100
        while server.stats()["ok"] < share and time.monotonic() < until:
            time.sleep(0.02)
        process.kill()
        process.wait()
        with resuming.replies_kept(str(tmp_path / "m" / "diagonal"), []):
            assert resuming._unused_replies
        newest = {
            log.eval.model: log.location
            for log in reversed(readable_logs([str(tmp_path / "m")]).headers)
        }
        events = [
            e
            for log in newest.values()
            for s in transcripts(log)
            for e in s.events
            if isinstance(e, ModelEvent)
        ]
        under_way += sum(bool(event.pending) for event in events)
    third = subprocess.run(command("m"), capture_output=True, check=True, text=True).stderr
    left = re.findall(r"at most (\d+) calls are left|call (\d+) of (\d+)", third)
    assert {most for _, _, most in left[1:]} == {left[0][0]}, (
        "progress counts what is asked now alone"
    )
    assert server.stats()["requests"] - 120 <= under_way
    subprocess.run(command("whole"), capture_output=True, check=True)
    assert _shown(tmp_path / "m") == _shown(tmp_path / "whole")
    assert json.dumps([*_shown(tmp_path / "m").values()]).count("applied") == 24
