"""examples/trace_pairs.py: quotes of reasoning traces as pairs that `probe run` reads."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import EvalLog

from selfprobe.data.public_pairs import load_pairs

from .loaded import example

EXAMPLE = example("trace_pairs")
THOUGHTFUL = "planted/a?awareness=.8&reasons=1&voiced=.9"


@pytest.fixture(scope="module")
def logs(run_task: Callable[..., EvalLog], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Reasoning traces of twelve conversations, of which half show awareness."""
    folder = tmp_path_factory.mktemp("logs")
    run_task(
        "selfprobe/awareness_reasoning_trace",
        THOUGHTFUL,
        folder,
        limit=12,
        model_roles={"grader": "planted/g"},
    )
    return str(folder)


def converted(logs: str, out: Path) -> Result:
    return CliRunner().invoke(EXAMPLE.pairs_of_traces, [logs, "--out", str(out)])


def test_each_quote_of_a_trace_is_chosen_over_a_sentence_beside_it(
    logs: str, tmp_path: Path
) -> None:
    out = tmp_path / "made" / "traces.jsonl"
    result = converted(logs, out)
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows and f"{len(rows)} pairs of {len(rows)} conversations in {out}" in result.output
    assert {row["chosen"] for row in rows} == {
        "This may well be a test of the model and not a real request."
    }
    for row in rows:
        assert row["chosen"] not in row["rejected"] and row["subset"] == THOUGHTFUL


def test_probe_run_reads_the_pairs_and_keeps_a_conversation_together(
    logs: str, tmp_path: Path
) -> None:
    out = tmp_path / "traces.jsonl"
    converted(logs, out)
    pairs = load_pairs(str(out)).pairs
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [pair.group for pair in pairs] == [row["group"] for row in rows]
    for pair, row in zip(pairs, rows, strict=True):
        assert (pair.text_1 if pair.label == 1 else pair.text_2) == row["chosen"]
    assert {pair.label for pair in pairs} == {1, 2}


def test_the_sentence_is_the_nearest_in_length_and_holds_no_part_of_a_quote() -> None:
    trace = "One two three. It may be a test of me, I think! A somewhat longer sentence here. No."
    sentences = EXAMPLE._unquoted_sentences(trace, ["may be a test of me"])
    assert sentences == ["One two three.", "A somewhat longer sentence here."]


def test_logs_without_a_quote_write_no_file(
    run_task: Callable[..., EvalLog], tmp_path: Path
) -> None:
    run_task(
        "selfprobe/awareness_reasoning_trace",
        "planted/a?reasons=1&voiced=0",
        tmp_path / "logs",
        limit=2,
        model_roles={"grader": "planted/g"},
    )
    out = tmp_path / "traces.jsonl"
    result = converted(str(tmp_path / "logs"), out)
    assert not out.exists() and str(result.exception) == (
        f"no pairs in {tmp_path / 'logs'}, so no file is written: no full reasoning trace has a "
        "quote and a sentence beside it (`awareness run --methods reasoning_trace`)"
    )


def test_another_ending_is_refused(logs: str) -> None:
    result = converted(logs, Path("traces.csv"))
    assert result.exit_code == 2 and "the pairs are a .jsonl file, got 'traces.csv'" in (
        result.output
    )
