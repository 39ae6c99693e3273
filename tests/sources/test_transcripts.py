"""Whole transcripts: tools as messages, turns, pairs of equal length."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from selfprobe.data.conversations import UNPAIRED, asked_at, chat, ends, tools_in, transcript_rows
from selfprobe.errors import InputError

AIRLINE = (
    Path(__file__).parents[3] / "shared" / "data" / "tau_bench_airline" / "tau_bench_airline.jsonl"
)


def call(name: str, **given: str) -> dict[str, Any]:
    return {
        "id": "a",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(given)},
    }


AGENT = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "What is open?"},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [call("look", at="door"), call("look", at="gate")],
    },
    {"role": "tool", "content": "shut"},
    {"role": "tool", "content": "open"},
    {"role": "assistant", "content": "The gate."},
    {"role": "user", "content": "Thanks."},
]


def write(tmp_path: Path, rows: list[Mapping[str, Any]]) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return str(path)


def test_calls_and_results_of_tools_are_messages_that_belong_together(tmp_path: Path) -> None:
    (row,) = transcript_rows(write(tmp_path, [{"id": "a", "messages": AGENT}])).rows
    made = chat(row["messages"])
    assert [m.role for m in made] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    asked, first, second = made[2], made[3], made[4]
    assert asked.role == "assistant" and first.role == "tool" and second.role == "tool"
    assert asked.text == "I look."
    assert [c.arguments for c in asked.tool_calls or []] == [{"at": "door"}, {"at": "gate"}]
    assert [first.tool_call_id, second.tool_call_id] == [c.id for c in asked.tool_calls or []]
    assert row["count"] == 3 and ends(row["messages"]) == [5, 6, 7]


def test_tools_that_are_called_and_not_offered_are_offered(tmp_path: Path) -> None:
    (row,) = transcript_rows(write(tmp_path, [{"id": "a", "messages": AGENT}])).rows
    (tool,) = tools_in(row)
    assert tool.name == "look" and list(tool.parameters.properties) == ["at"]


def test_a_call_that_nothing_answers_gets_an_answer_and_a_result_without_a_call_is_a_users() -> (
    None
):
    made = chat(
        [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": "", "calls": [["look", "not JSON"]]},
            {"role": "user", "content": "Well?"},
            {"role": "tool", "content": "late"},
        ]
    )
    assert [m.role for m in made] == ["user", "assistant", "tool", "user", "user"]
    assert made[2].text == "(no result)"


def test_the_last_reply_is_kept_here_and_cut_elsewhere(tmp_path: Path) -> None:
    path = write(tmp_path, [{"id": "a", "messages": AGENT[:6]}])
    assert transcript_rows(path).rows[0]["messages"][-1]["content"] == "The gate."


def talk(turns: int, label: str, number: int) -> dict[str, Any]:
    said = [
        (role, f"{role} {number} {turn}") for turn in range(turns) for role in ("user", "assistant")
    ]
    return {
        "id": f"{label}{number}",
        "label": label,
        "messages": [{"role": role, "content": text} for role, text in said],
    }


def test_evaluations_are_paired_with_real_use_of_their_length_and_the_rest_is_set_aside(
    tmp_path: Path,
) -> None:
    rows = [talk(2, "evaluation", 1), talk(9, "evaluation", 2)]
    rows += [talk(8, "deployment", 1), talk(2, "deployment", 2), talk(30, "deployment", 3)]
    table = transcript_rows(write(tmp_path, rows))
    assert [(row["id"], row["pair"]) for row in table.rows] == [
        ("evaluation1", "evaluation1"),
        ("deployment2", "evaluation1"),
        ("evaluation2", "evaluation2"),
        ("deployment1", "evaluation2"),
    ]
    assert list(table.set_aside_reasons.values()) == [UNPAIRED]


def test_transcripts_of_one_kind_are_all_kept(tmp_path: Path) -> None:
    table = transcript_rows(write(tmp_path, [talk(2, "evaluation", n) for n in range(3)]))
    assert len(table.rows) == 3 and "pair" not in table.set_aside_reasons


def test_a_transcript_without_a_user_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no user message"):
        transcript_rows(
            write(tmp_path, [{"id": "a", "messages": [{"role": "assistant", "content": "Hi."}]}])
        )


def test_one_turn_and_two_hundred_are_asked_at_some_of_them() -> None:
    assert asked_at(1, 40) == [1] and asked_at(5, 40) == [1, 2, 3, 4, 5]
    many = asked_at(200, 40)
    assert (many[0], many[-1]) == (1, 200) and len(many) <= 40


@pytest.mark.skipif(not AIRLINE.exists(), reason="no shared/data beside the project")
def test_real_agent_rows_are_read() -> None:
    table = transcript_rows(str(AIRLINE))
    assert len(table.rows) == 30 and all(chat(row["messages"]) for row in table.rows)
