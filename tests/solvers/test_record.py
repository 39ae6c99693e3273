from typing import Any

import pytest
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    Logprob,
    Logprobs,
    ModelOutput,
    TopLogprob,
)
from inspect_ai.model._openrouter_reasoning import openrouter_reasoning_details_to_reasoning
from inspect_ai.tool import ToolCall
from inspect_ai.util import Store

from selfprobe.solvers.record import HALF_CHARACTER, Record, Reply, reply_from, whole_characters


class Named(str):
    """A model of which only the name counts."""


def reply(content: str | list[Any], model: str = "mockllm/model", first: str | None = None) -> Reply:
    output = ModelOutput.from_message(ChatMessageAssistant(content=content))
    if first is not None:
        token = Logprob(token=first, logprob=-0.1, top_logprobs=[TopLogprob(token=first, logprob=-0.1)])
        output.choices[0].logprobs = Logprobs(content=[token])
    return reply_from(output, Named(model), may_be_cut=True)  # type: ignore[arg-type]


TEXT = {"type": "reasoning.text", "text": "They test me."}
SUMMARY = {"type": "reasoning.summary", "summary": "**Weighing**"}


@pytest.mark.parametrize(
    ("details", "kind"),
    [
        ([TEXT | {"format": "unknown"}], "full"),
        ([TEXT], "full"),
        ([SUMMARY], "summary"),
        ([TEXT | {"format": "anthropic-claude-v1", "signature": "s"}], "summary"),
        ([TEXT | {"format": "google-gemini-v1"}], "summary"),
        ([SUMMARY, {"type": "reasoning.encrypted", "data": "x"}], "redacted"),
    ],
)
def test_under_openrouter_only_a_trace_is_a_trace(details: list[dict[str, Any]], kind: str) -> None:
    part = openrouter_reasoning_details_to_reasoning(details)
    assert reply([part, ContentText(text="Yes.")]).reasoning_kind == kind


def test_a_call_of_a_tool_is_a_reply_as_text() -> None:
    call = ToolCall(id="1", function="read", arguments={"path": "a"})
    message = ChatMessageAssistant(content="Let me see.", tool_calls=[call])
    output = ModelOutput(model="m", choices=[ChatCompletionChoice(message=message, stop_reason="tool_calls")])
    made = reply_from(output, Named("mockllm/model"), may_be_cut=True)  # type: ignore[arg-type]
    assert (made.text, made.problem) == ('Let me see.\n[tool call] read({"path": "a"})', None)


def test_googles_thoughts_are_summaries() -> None:
    content = [ContentReasoning(reasoning="**Weighing**"), ContentText(text="Yes.")]
    assert reply(content).reasoning_kind == "full"
    assert reply(content, "google/gemini-2.5-pro").reasoning_kind == "summary"


def test_the_first_token_of_the_reasoning_is_not_the_replys() -> None:
    assert reply("<think>\nReal quick.</think>\n\nTest passed.", first="<think>").first_token is None
    parsed = [ContentReasoning(reasoning="Real quick."), ContentText(text="Test passed.")]
    assert reply(parsed, first="Real").first_token is None
    for content in (parsed, "Test passed."):
        candidates = reply(content, first=" Test").first_token
        assert candidates is not None and candidates[0].token == " Test"


def test_replies_of_a_run_are_read_as_they_are_and_those_of_a_log_are_validated() -> None:
    said, store = reply("Yes."), Store()
    Record(store=store).answers["v1"] = said
    assert Record(store=store).answers["v1"] is said
    logged = Store({"Record:answers": {"v1": said.model_dump()}, "Record:acts": {}, "Record:grades": {}})
    read = Record(store=logged)
    assert read.answers["v1"] == said and read.answers is Record(store=logged).answers


HALF = "Well \ud83d."


@pytest.mark.parametrize("place", ["text", "reasoning", "call", "token"])
def test_half_a_character_anywhere_in_a_reply_is_a_problem_and_can_be_logged(place: str) -> None:
    content = {
        "text": HALF,
        "reasoning": [ContentReasoning(reasoning=HALF), ContentText(text="Yes.")],
    }.get(place, "Yes.")
    message = ChatMessageAssistant(content=content)  # type: ignore[arg-type]
    if place == "call":
        message.tool_calls = [ToolCall(id="1", function="read", arguments={"path": [HALF]})]
    output = ModelOutput.from_message(message)
    if place == "token":
        output.choices[0].logprobs = Logprobs(content=[Logprob(token=HALF, logprob=-0.1)])
    made = reply_from(output, Named("mockllm/model"), may_be_cut=True)  # type: ignore[arg-type]
    assert made.problem == "half_character" and "\N{REPLACEMENT CHARACTER}" in made.model_dump_json()
    mended = whole_characters(output)
    assert mended.metadata == {HALF_CHARACTER: True} and whole_characters(mended) is mended
    assert reply_from(mended, Named("mockllm/model"), may_be_cut=True) == made  # type: ignore[arg-type]


def test_whole_characters_of_any_plane_are_no_problem() -> None:
    output = ModelOutput.from_content("m", "Well \N{GRINNING FACE} \N{REPLACEMENT CHARACTER}")
    assert whole_characters(output) is output
    assert reply_from(output, Named("mockllm/model"), may_be_cut=True).problem is None  # type: ignore[arg-type]
