"""examples/silent_transcripts.py: turns that say it are written again, and all else stays."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model

from selfprobe.errors import RunError
from selfprobe.providers.behaviours.awareness import SUSPICION
from selfprobe.study.said_by_turn import SaidTranscript, said_transcripts

from .loaded import example

EXAMPLE = example("silent_transcripts")


def transcript(**more: Any) -> dict[str, Any]:
    """Three turns, of which the second says it and calls a tool."""
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "First."},
        {"role": "user", "content": "On."},
        {"role": "assistant", "content": f"{SUSPICION} I look.", "calls": [["ls", "{}"]]},
        {"role": "tool", "content": "a.txt"},
        {"role": "assistant", "content": "Third."},
    ]
    fields: dict[str, Any] = {"id": "x", "model": "m", "source": "s", "label": "evaluation"}
    fields |= {"messages": messages, "said": [2], "placebo_said": [], "read": 3, "graders": 1}
    return fields | more


def written(folder: Path, **more: Any) -> Path:
    file = folder / "said.jsonl"
    file.write_text(json.dumps(transcript(**more)) + "\n")
    return file


def model_that_says(text: str) -> Model:
    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    output = ModelOutput.from_content("mockllm/model", text)
    outputs = [output.model_copy(update={"usage": usage})] * 20
    return get_model("mockllm/model", custom_outputs=outputs, memoize=False)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers by what they say, graders that find what is there."""

    def model_of(name: str) -> Model:
        texts = {"silent": "Written again.", "told": SUSPICION}
        return model_that_says(texts[name]) if name in texts else get_model(name)

    monkeypatch.setattr(EXAMPLE, "available_model", model_of)


def call(file: Path, out: Path, *more: str, writer: str = "silent") -> Result:
    options = ("--writer", writer, "--grader", "planted/g,planted/h", "--out", str(out))
    return CliRunner().invoke(EXAMPLE.silent_transcripts, [str(file), *options, *more])


def test_a_turn_that_says_it_is_drawn_again_and_context_and_calls_stay(
    tmp_path: Path, models: None
) -> None:
    out = tmp_path / "made" / "silent.jsonl"
    result = call(written(tmp_path), out)
    assert result.exit_code == 0, result.output
    assert "1 transcript in " in result.output and "0 stay told" in result.output
    (silent,) = said_transcripts(str(out)).transcripts
    before = transcript()["messages"]
    assert silent.said_turns == [] and silent.grader_count == 2
    assert silent.messages[3]["calls"] == [["ls", "{}"]]
    assert silent.messages[3]["content"] == "Written again."
    assert [*silent.messages[:3], *silent.messages[4:]] == [*before[:3], *before[4:]]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--grader", ","), "--grader names no model; expected such as openai/a"),
        (("--grader", "nix"), "nix: Model name 'nix' should be in the format of"),
        (("--writer", "nix"), "nix: Model name 'nix' should be in the format of"),
        (("--tries", "0"), "0 is not in the range x>=1"),
        (("--out", "said.jsonl/silent.jsonl"), "cannot write said.jsonl/silent.jsonl"),
    ],
)
def test_what_cannot_be_asked_or_written_is_said_before_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, str], error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call(written(tmp_path), tmp_path / "silent.jsonl", *options, writer="planted/ada")
    assert result.exit_code and error in f"{result.output} {result.exception}"
    assert not (tmp_path / "silent.jsonl").exists()


def test_what_the_scan_could_not_read_is_counted(
    tmp_path: Path, models: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path)
    scanned = said_transcripts(str(file))
    scanned.set_aside["y"] = "its turn 2 has no reply"
    monkeypatch.setattr(EXAMPLE, "said_transcripts", lambda _scans: scanned)
    result = call(file, tmp_path / "silent.jsonl")
    assert "; 1 cannot be read, such as y: its turn 2 has no reply\n" in result.output


def test_a_transcript_that_says_nothing_stays_as_it_is(tmp_path: Path, models: None) -> None:
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "First."}]
    out = tmp_path / "silent.jsonl"
    assert call(written(tmp_path, messages=messages, said=[], read=1), out).exit_code == 0
    assert said_transcripts(str(out)).transcripts[0].messages == messages


def said_transcript(folder: Path) -> SaidTranscript:
    (told,) = said_transcripts(str(written(folder))).transcripts
    return told


def silencers(writer_says: str, rewriter_says: str) -> Any:
    writer, rewriter = model_that_says(writer_says), model_that_says(rewriter_says)
    return EXAMPLE.Silencers(writer, rewriter, [get_model("planted/g")], 2)


def test_a_rewriter_takes_the_words_out_where_no_new_reply_is_silent(tmp_path: Path) -> None:
    told = said_transcript(tmp_path)
    makers = silencers(f"Again. {SUSPICION}", "I look.")
    silent = asyncio.run(makers.silent_transcript(told))
    assert silent is not None and silent.messages[3]["content"] == "I look."


def test_a_transcript_that_stays_told_is_left_out(tmp_path: Path) -> None:
    told = said_transcript(tmp_path)
    assert asyncio.run(silencers(SUSPICION, SUSPICION).silent_transcript(told)) is None


def test_without_a_silent_transcript_no_file_is_written(tmp_path: Path, models: None) -> None:
    out = tmp_path / "silent.jsonl"
    result = call(written(tmp_path), out, "--tries", "1", writer="told")
    assert isinstance(result.exception, RunError) and not out.exists()
    assert "no transcript of 1 became silent in 1 tries a turn" in str(result.exception)
    wrong = call(written(tmp_path), tmp_path / "silent.csv")
    assert wrong.exit_code == 2 and "transcripts are a .jsonl file" in wrong.output
