import json
from pathlib import Path
from typing import Any

import gateways
import pytest
from inspect_ai.model import ChatMessageSystem, ChatMessageUser

from selfprobe.data.conversations import conversations, record_to_sample

USER = {"role": "user", "content": "Hello?"}


def write(folder: Path, *rows: dict[str, Any], name: str = "x.jsonl") -> str:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def transcript() -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is in the file?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "1",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path": "a"}'},
                }
            ],
        },
        {"role": "tool", "content": "forty-two", "tool_call_id": "1"},
        {"role": "assistant", "content": "It says 42."},
    ]


def test_the_first_context_is_the_system_prompt_and_the_first_user_message(tmp_path: Path) -> None:
    [row] = conversations(write(tmp_path, {"id": "a", "messages": transcript()})).rows
    assert row["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is in the file?"},
    ]
    assert row["turns"] == 1 and row["label"] is None


def test_a_greeting_before_the_first_question_is_not_in_the_first_context_and_reasoning_in_none(
    tmp_path: Path,
) -> None:
    greeting = [
        {"type": "reasoning", "reasoning": "Is this a test?"},
        {"type": "text", "text": "How can I help?"},
    ]
    messages = [{"role": "assistant", "content": greeting}, USER]
    path = write(tmp_path, {"id": "a", "messages": messages})
    told = [
        [m["content"] for m in conversations(path, context=c).rows[0]["messages"]]
        for c in ("first", "full")
    ]
    assert told == [["Hello?"], ["How can I help?", "Hello?"]]


@pytest.mark.parametrize("form", ["unopened", "channels_bare", "kimi_vl", "reasoning", "hunyuan"])
def test_a_thought_in_a_models_text_is_in_no_context_and_prose_about_one_is(
    form: str, tmp_path: Path
) -> None:
    earlier = gateways.INLINE_THOUGHTS[form].format(
        thought=gateways.THOUGHT, answer="How can I help?"
    )
    prose = "The <thought> tag holds a thought."
    messages = [
        USER,
        {"role": "assistant", "content": earlier},
        USER,
        {"role": "assistant", "content": prose},
        USER,
    ]
    [row] = conversations(write(tmp_path, {"id": "a", "messages": messages}), context="full").rows
    texts = [message["content"] for message in row["messages"]]
    assert texts == ["Hello?", "How can I help?", "Hello?", prose, "Hello?"]


def test_the_full_context_keeps_tools_as_text_and_leaves_the_last_reply_to_the_subject(
    tmp_path: Path,
) -> None:
    [row] = conversations(
        write(tmp_path, {"id": "a", "messages": transcript()}), context="full"
    ).rows
    assert [(m["role"], m["content"]) for m in row["messages"]][2:] == [
        ("assistant", '[tool call] read({"path": "a"})'),
        ("user", "[tool result]\nforty-two"),
    ]


def test_the_context_is_part_of_the_data_sets_hash(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": "a", "messages": transcript()})
    assert conversations(path).sha256 != conversations(path, context="full").sha256


@pytest.mark.parametrize(
    ("row", "label"),
    [
        ({"label": "Evaluation"}, "evaluation"),
        ({"label": "deploy"}, "deployment"),
        ({"is_evaluation": True}, "evaluation"),
        ({"metadata": {"eval_category": False}}, "deployment"),
        ({"label": 1}, "evaluation"),
        ({"label": 0}, "deployment"),
        ({"label": "0"}, "deployment"),
        ({"label": "Real-world"}, "deployment"),
        ({"label": "real use"}, "deployment"),
        ({"label": "eval"}, "evaluation"),
        ({"label": ""}, None),
        ({}, None),
    ],
)
def test_labels_come_from_the_row_in_its_own_words(
    tmp_path: Path, row: dict[str, Any], label: str | None
) -> None:
    path = write(tmp_path, {"messages": [USER], **row})
    assert conversations(path).rows[0]["label"] == label
    assert conversations(path, label="deployment").rows[0]["label"] == "deployment"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"messages": "[{"}, "`messages` is not JSON"),
        (
            {"words": "x"},
            "no conversation; expected `messages`, `conversations`, `conversation` or one of input, user, prompt, question, instruction, "
            "text, got words$",
        ),
        ({"promt": "x"}, r"no conversation; got promt; did you mean prompt\?$"),
        ({"label": "evaluation"}, "text, got label$"),
        ({"messages": ["hi"]}, "expected messages with role and content, got 'hi'"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "unknown role 'robot'"),
        (
            {"user": "x", "label": "maybe"},
            r"label must be evaluation or deployment \(or 1 or 0\), got 'maybe'; or give -T label=",
        ),
        (
            {"messages": [USER], "tools": ["bash"]},
            "expected `tools` to be a list of name, description and parameters",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "expected a content part of type 'text' to have a `text`, got ",
        ),
        (
            {"messages": [{**USER, "tool_calls": "ls"}]},
            "expected `tool_calls` to be a list, got 'ls'",
        ),
        (
            {"messages": [{**USER, "tool_calls": ["ls"]}]},
            "expected a tool call's function with name and arguments",
        ),
        (
            {"messages": [{**USER, "tool_calls": [{"function": {"name": "ls"}}]}]},
            "expected a tool call's function with name and arguments, got .*'ls'",
        ),
    ],
)
def test_a_bad_row_is_named_with_what_is_wrong(
    tmp_path: Path, row: dict[str, Any], message: str
) -> None:
    path = write(tmp_path, {"messages": [USER]}, row)
    with pytest.raises(ValueError, match=rf"x\.jsonl, row 'line-2': .*{message}"):
        conversations(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": "last"}, "context must be first or full, got 'last'"),
        ({"label": "test"}, "label must be evaluation or deployment, got 'test'"),
        ({"task": "a", "logs": "b"}, "give task=a or logs=b, not both"),
    ],
)
def test_a_wrong_option_lists_the_right_ones(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        conversations(**options)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"prompt": ""}, "it is empty"),
        ({"prompt": None}, "it is empty"),
        ({"messages": []}, "it is empty"),
        ({"messages": " "}, "it is empty"),
        ({"conversations": "[]"}, "it is empty"),
        ({}, "it is empty"),
        (
            {"messages": [{"role": "user", "content": "  "}]},
            "no user message; expected at least one, got nothing",
        ),
        (
            {"messages": [{"role": "system", "content": "x"}]},
            "no user message; expected at least one, got ['system']",
        ),
    ],
)
def test_an_empty_row_is_set_aside_and_counted_and_the_others_are_asked(
    tmp_path: Path, row: dict[str, Any], why: str
) -> None:
    table = conversations(path := write(tmp_path, {"messages": [USER]}, row, {"prompt": "Bye?"}))
    assert [row["id"] for row in table.rows] == ["line-1", "line-3"]
    assert dict(table.set_aside_reasons) == {f"{path}: line-2": f"{path}, row 'line-2': {why}"}


def test_an_empty_cell_of_a_csv_is_a_row_that_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('id,prompt,label\na,Hello?,1\nb,"",0\nc,Bye?,0\n')
    table = conversations(str(tmp_path / "x.csv"))
    assert [row["id"] for row in table.rows] == [
        "a",
        "c",
    ] and "1 of 3 rows set aside; " in table.aside_line()


def test_a_conversation_as_wildchat_has_it_is_read(tmp_path: Path) -> None:
    said = [
        {
            "role": "user",
            "content": "Hi?",
            "language": "English",
            "turn_identifier": 1,
            "redacted": False,
        },
        {"role": "assistant", "content": "Hello.", "turn_identifier": 1},
        {"role": "user", "content": "Bye?", "turn_identifier": 2},
    ]
    path = write(
        tmp_path,
        {"conversation_hash": "f00", "conversation": said, "turn": 2, "language": "English"},
    )
    [row] = conversations(path, context="full").rows
    assert [m["content"] for m in row["messages"]] == ["Hi?", "Hello.", "Bye?"]
    assert (row["turns"], row["language"]) == (2, "English")


PICTURE = {"messages": [{"role": "user", "content": [{"type": "image", "image": "a.png"}]}]}


def test_a_row_with_a_picture_is_set_aside_and_counted_and_the_others_are_asked(
    tmp_path: Path,
) -> None:
    table = conversations(
        path := write(tmp_path, {"messages": [USER]}, PICTURE, {"prompt": "Bye?"})
    )
    assert [row["id"] for row in table.rows] == ["line-1", "line-3"]
    told = (
        f"{path}, row 'line-2': a message has content of type 'image'; only text can be asked about"
    )
    assert dict(table.set_aside_reasons) == {f"{path}: line-2": told}
    assert table.metadata["set_aside"] == f"1 of 3 rows set aside; {told}"
    assert (
        "set_aside"
        not in conversations(write(tmp_path, {"prompt": "Bye?"}, name="y.jsonl")).metadata
    )


def test_a_text_that_is_there_again_is_asked_once_unless_its_label_is_another(
    tmp_path: Path,
) -> None:
    rows = [{"messages": [USER], "label": label} for label in (1, 1, 0, 1)] + [
        {"prompt": "Bye?", "is_eval": False}
    ]
    table = conversations(path := write(tmp_path, *rows))
    assert [(row["id"], row["label"]) for row in table.rows] == [
        ("line-1", "evaluation"),
        ("line-3", "deployment"),
        ("line-5", "deployment"),
    ]
    told = "the same text and label as row 'line-1'"
    assert dict(table.set_aside_reasons) == {f"{path}: line-2": told, f"{path}: line-4": told}


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_the_line_of_rows_that_are_set_aside_is_true_of_all_of_them(
    tmp_path: Path, repeats: int
) -> None:
    texts = ("Hello?", "Bye?", "Well?")
    rows = [{"prompt": text} for text in texts for _ in range(1 + repeats)]
    table = conversations(write(tmp_path, *rows))
    same = "the same text and label as row 'line-1'"
    assert table.aside_line() == f"{3 * repeats} of {len(rows)} rows set aside; the first: {same}"
    alike = conversations(write(tmp_path, *rows[: 1 + repeats], {"prompt": "So?"}))
    assert alike.aside_line() == f"{repeats} of {repeats + 2} rows set aside; {same}"


def test_a_row_with_half_a_character_is_set_aside(tmp_path: Path) -> None:
    table = conversations(
        path := write(tmp_path, {"prompt": "Hello \ud83d there"}, {"prompt": "Bye?"})
    )
    assert [row["id"] for row in table.rows] == ["line-2"]
    told = "it holds half a character (a lone surrogate), which no model can be sent"
    assert dict(table.set_aside_reasons) == {f"{path}: line-1": f"{path}, row 'line-1': {told}"}


def test_a_set_of_pictures_alone_and_a_set_of_one_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="no conversation is left of 1 row: .*content of type 'image'"
    ):
        conversations(write(tmp_path, PICTURE))
    with pytest.raises(
        ValueError,
        match=r"x\.jsonl: all 20 conversations are the same text, 'Hello\?': nothing can",
    ):
        conversations(write(tmp_path, *[{"messages": [USER]}] * 20))


ASKED = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello?"}]
CHAT = {"model": "m", "messages": ASKED}
READ = {"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    "row",
    [
        {"system": "Be kind.", "messages": [USER]},
        {"system": "Be kind.", "messages": ASKED},
        {"system": [{"type": "text", "text": "Be kind."}], "messages": [USER]},
        {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": CHAT},
        {"custom_id": "a", "params": {"system": "Be kind.", "messages": [USER]}},
        {"custom_id": "a", "body": {"instructions": "Be kind.", "input": "Hello?"}},
        {
            "custom_id": "a",
            "body": {
                "input": [
                    ASKED[0],
                    {"role": "user", "content": [{"type": "input_text", "text": "Hello?"}]},
                ]
            },
        },
        {
            "conversations": [
                {"from": "system", "value": "Be kind."},
                {"from": "human", "value": "Hello?"},
            ]
        },
        {
            "system": "Be kind.",
            "conversations": [
                {"from": "human", "value": "Hello?"},
                {"from": "gpt", "value": "Hi."},
            ],
        },
        {"system": "Be kind.", "instruction": "Hello?"},
        {"system": "Be kind.", "instruction": "Hello?", "input": ""},
        {"system": "Be kind.", "text": "Hello?"},
    ],
)
def test_prompt_sets_in_other_forms_keep_their_system_prompt(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    [made] = conversations(write(tmp_path, row)).rows
    assert made["messages"] == ASKED and made["id"] == row.get("custom_id", "line-1")


def test_alpacas_instruction_and_input_are_one_prompt(tmp_path: Path) -> None:
    [made] = conversations(
        write(tmp_path, {"instruction": "Translate.", "input": "Bonjour", "output": "Hello"})
    ).rows
    assert made["messages"] == [{"role": "user", "content": "Translate.\n\nBonjour"}]


@pytest.mark.parametrize(
    "tools",
    [
        [READ],
        [{"type": "function", "function": READ}],
        [{"name": "read", "description": "Reads.", "input_schema": READ["parameters"]}],
        json.dumps([READ]),
    ],
)
def test_a_rows_tools_are_kept_for_the_subject(tmp_path: Path, tools: Any) -> None:
    [made] = conversations(write(tmp_path, {"messages": [USER], "tools": tools})).rows
    assert [(tool["name"], tool["description"]) for tool in made["tools"]] == [("read", "Reads.")]
    assert (record_to_sample(made).metadata or {})["tools"] == made["tools"]


def test_a_role_is_of_logs_and_tasks_alone(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="role=target is for logs=… and task=…: rows of a file are no role's"
    ):
        conversations(write(tmp_path, {"messages": [USER]}), role="target")


def test_an_id_in_two_data_sets_is_an_error_that_names_both(tmp_path: Path) -> None:
    one = write(tmp_path, {"id": "a", "messages": [USER]}, name="one.jsonl")
    two = write(tmp_path, {"id": "a", "messages": [USER]}, name="two.jsonl")
    with pytest.raises(
        ValueError, match=r"id 'a' is in .*one\.jsonl and in .*two\.jsonl; ids must be unique"
    ):
        conversations(f"{one}, {two}")


def test_several_data_sets_are_one_and_rows_without_a_source_get_their_files(
    tmp_path: Path,
) -> None:
    one = write(tmp_path, {"id": "a", "messages": [USER], "source": "mine"}, name="one.jsonl")
    two = tmp_path / "two.csv"
    two.write_text('id,system,user,label,agentic\nb,Be kind.,"Hi, you",evaluation,true\n')
    rows = conversations([one, str(two)]).rows
    assert [row["source"] for row in rows] == ["mine", str(two)]
    assert (
        rows[1]["messages"][0] == {"role": "system", "content": "Be kind."}
        and rows[1]["agentic"] is True
    )


def test_the_gated_sets_file_is_read_in_its_own_schema(tmp_path: Path) -> None:
    """Needham et al. 2025: one JSON array of {input, metadata: {category, eval_category,
    scaffold}}.
    """
    path = tmp_path / "dataset.json"
    meta = {"category": "swebench", "eval_category": True, "scaffold": "inspect"}
    organic = {"category": "wildchat", "eval_category": False, "scaffold": None}
    rows = [
        {"input": [USER, *transcript()[2:]], "metadata": meta},
        {"input": "Write a poem", "metadata": organic},
    ]
    path.write_text(json.dumps(rows))
    table = conversations(str(path))
    assert [(r["label"], r["source"], r["agentic"]) for r in table.rows] == [
        ("evaluation", "swebench", True),
        ("deployment", "wildchat", False),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("U2FsdGVk", "not JSON .* is it still encrypted"),
        ("[]", "expected an array of objects"),
        ("[1]", "expected an"),
    ],
)
def test_a_gated_file_that_cannot_be_read_says_so(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "dataset.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        conversations(str(tmp_path / "dataset.json"))


def test_a_gated_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "dataset.json").write_bytes(b"\x80Salted__")
    with pytest.raises(ValueError, match=r"dataset\.json, line 1: not UTF-8"):
        conversations(str(tmp_path / "dataset.json"))


def test_a_gated_file_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "dataset.json").write_text(json.dumps([{"input": "Hello?"}]), encoding="utf-8-sig")
    assert conversations(str(tmp_path / "dataset.json")).rows[0]["messages"] == [USER]


def test_a_tool_call_without_an_inner_object_is_text_too(tmp_path: Path) -> None:
    call = {"id": "1", "function": "read", "arguments": {"path": "a"}}
    messages = [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "42"},
    ]
    [row] = conversations(write(tmp_path, {"messages": messages}), context="full").rows
    assert row["messages"][1]["content"] == '[tool call] read({"path": "a"})'


def test_a_row_becomes_one_sample() -> None:
    row = conversations("eval_awareness").rows[0]
    sample = record_to_sample(
        {**row, "id": "a", "messages": [{"role": "system", "content": "s"}, USER], "label": None}
    )
    assert isinstance(sample.input, list) and sample.target == "" and sample.metadata is not None
    assert [type(m) for m in sample.input] == [ChatMessageSystem, ChatMessageUser]
    assert {"label", "source", "domain", "format", "agentic", "turns", "pair", "flip"} == set(
        sample.metadata
    )


def test_half_of_the_conversations_get_the_last_variant_the_other_way_round() -> None:
    samples = [record_to_sample(row) for row in conversations().rows]
    for label in ("evaluation", "deployment"):
        flips = [s.metadata["flip"] for s in samples if s.metadata and s.target == label]
        assert 0.35 < sum(flips) / len(flips) < 0.65


def test_real_public_rows_load(root: Path) -> None:
    path = root.parent / "shared" / "data" / "eval_awareness_real" / "dev.jsonl"
    if not path.exists():
        pytest.skip("the real sample is not here")
    rows = conversations(str(path)).rows
    assert len(rows) == 315 and {row["label"] for row in rows} == {"evaluation", "deployment"}


def test_columns_may_have_capitals_and_what_is_not_read_is_said(tmp_path: Path) -> None:
    sheet = tmp_path / "mine.csv"
    sheet.write_text(
        "sep=;\nID;Prompt;Question;Label\na;Hi there;Is it polite?;Eval\nb;Bye;Is it rude?;real\n"
    )
    table = conversations(str(sheet), against="bundled")
    ours = [row for row in table.rows if row["set"] == "yours"]
    assert [(row["id"], row["label"]) for row in ours] == [("a", "evaluation"), ("b", "deployment")]
    assert [row["messages"][-1]["content"] for row in ours] == ["Hi there", "Bye"]
    assert (
        table.unread_columns_note
        == table.metadata["unread"]
        == f"{sheet}: `prompt` is read, `question` is not"
    )


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "Hi", "messages": [{"role": "user", "content": "Hi"}]},
        {"instruction": "Translate.", "input": "Hi"},
        {"prompt": "Hi", "text": " "},
    ],
)
def test_a_text_that_is_asked_anyway_is_not_said_to_be_left_out(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    (tmp_path / "mine.jsonl").write_text(json.dumps(row))
    assert conversations(str(tmp_path / "mine.jsonl")).unread_columns_note == ""
