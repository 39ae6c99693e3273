import math
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
    ModelUsage,
    TopLogprob,
)
from inspect_ai.model._openrouter_reasoning import openrouter_reasoning_details_to_reasoning
from inspect_ai.tool import ToolCall
from inspect_ai.util import Store

from selfprobe.solvers.record import (
    HALF_CHARACTER,
    Record,
    Reply,
    are_placeholders,
    reply_from,
    whole_characters,
)


class Named(str):
    """A model of which only the name counts."""


def reply(
    content: str | list[Any], model: str = "mockllm/model", first: str | None = None
) -> Reply:
    output = ModelOutput.from_message(ChatMessageAssistant(content=content))
    if first is not None:
        token = Logprob(
            token=first, logprob=-0.1, top_logprobs=[TopLogprob(token=first, logprob=-0.1)]
        )
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
    output = ModelOutput(
        model="m", choices=[ChatCompletionChoice(message=message, stop_reason="tool_calls")]
    )
    made = reply_from(output, Named("mockllm/model"), may_be_cut=True)  # type: ignore[arg-type]
    assert (made.text, made.problem) == ('Let me see.\n[tool call] read({"path": "a"})', None)


def test_googles_thoughts_are_summaries() -> None:
    content = [ContentReasoning(reasoning="**Weighing**"), ContentText(text="Yes.")]
    assert reply(content).reasoning_kind == "full"
    assert reply(content, "google/gemini-2.5-pro").reasoning_kind == "summary"


def test_the_first_token_of_the_reasoning_is_not_the_replys() -> None:
    assert (
        reply("<think>\nReal quick.</think>\n\nTest passed.", first="<think>").first_token is None
    )
    parsed = [ContentReasoning(reasoning="Real quick."), ContentText(text="Test passed.")]
    assert reply(parsed, first="Real").first_token is None
    for content in (parsed, "Test passed."):
        candidates = reply(content, first=" Test").first_token
        assert candidates is not None and candidates[0].token == " Test"


@pytest.mark.parametrize(
    "content", ["<think>\n\n</think>\n\nTest passed.", [ContentReasoning(reasoning=""), "…"]]
)
def test_an_empty_thought_is_no_reasoning_and_its_first_token_is_not_the_replys(
    content: Any,
) -> None:
    parts = content if isinstance(content, str) else [content[0], ContentText(text="Test passed.")]
    read = reply(parts, first="<think>")
    assert (read.text, read.reasoned, read.first_token) == ("Test passed.", False, None)
    assert not read.inline_thought


def test_a_thought_beside_one_that_was_split_off_before_is_added_to_it() -> None:
    read = reply(
        [ContentReasoning(reasoning="First."), ContentText(text="Second.</think>\n\nYes.")]
    )
    assert (read.text, read.reasoning, read.reasoning_kind) == ("Yes.", "First.\nSecond.", "full")
    assert read.inline_thought


def test_a_tag_around_an_answer_is_none_of_its_words_after_a_thought_alone() -> None:
    assert (
        reply([ContentReasoning(reasoning="Hm."), ContentText(text="<answer>Yes.</answer>")]).text
        == "Yes."
    )
    assert reply("<answer>Yes.</answer>").text == "<answer>Yes.</answer>"


def test_a_reply_that_its_model_ended_before_the_limit_is_whole() -> None:
    output = ModelOutput.from_content(
        "m", "Yes.<|im_end|>\n<|im_start|>user\nAnd", stop_reason="max_tokens"
    )
    read = reply_from(output, Named("a/m"), may_be_cut=False)  # type: ignore[arg-type]
    assert (read.text, read.problem) == ("Yes.", None)


@pytest.mark.parametrize(("tokens", "kind"), [(16, "redacted"), (None, "redacted"), (0, "none")])
def test_an_item_of_reasoning_that_shows_nothing_is_hidden_unless_no_token_was_spent(
    tokens: int | None, kind: str
) -> None:
    hidden = ContentReasoning(reasoning="", signature="rs_1")
    output = ModelOutput.from_message(
        ChatMessageAssistant(content=[hidden, ContentText(text="Yes.")])
    )
    output.usage = ModelUsage(reasoning_tokens=tokens)
    read = reply_from(output, Named("openai/gpt-5"), may_be_cut=True)  # type: ignore[arg-type]
    assert (read.reasoning_kind, read.reasoned) == (kind, kind != "none")


PLACEHOLDERS = {
    "zero_alone": [0.0],
    "zeros": [0.0, 0.0, 0.0],
    "chosen": [0.0, -9999.0, -9999.0],
    "chosen_of_32_bits": [0.0, -3.4028234663852886e38],
    "all_impossible": [-9999.0],
    "all_infinite": [-math.inf, -math.inf],
    "rest_is_missing": [-0.1, -3.4028234663852886e38],
    "above_one": [0.0002],
    "one_above": [-0.5, 0.3],
    "sum_above_one": [-0.1, -0.1, -0.1],
    "no_number": [math.nan, -0.5],
}
BELIEVED = {
    "sure": [0.0, -18.5, -20.1],
    "rounded": [1e-6, -16.0],
    "alone": [-0.1],
    "listed": [-0.7, -1.1, -2.3],
    "sure_with_impossible": [-1e-7, -17.0, -9999.0],
    "half_and_half": [math.log(0.5), math.log(0.5), -math.inf],
}


@pytest.mark.parametrize(
    ("logprobs", "placeholders"),
    [(logprobs, True) for logprobs in PLACEHOLDERS.values()]
    + [(logprobs, False) for logprobs in BELIEVED.values()],
    ids=[*PLACEHOLDERS, *BELIEVED],
)
def test_placeholders_are_no_log_probabilities(logprobs: list[float], placeholders: bool) -> None:
    assert are_placeholders(logprobs) == placeholders
    candidates = [TopLogprob(token=f"t{i}", logprob=logprob) for i, logprob in enumerate(logprobs)]
    output = ModelOutput.from_content("m", "t0 and so on")
    first = Logprob(token="t0", logprob=logprobs[0], top_logprobs=candidates)
    output.choices[0].logprobs = Logprobs(content=[first])
    read = reply_from(output, Named("a/m"), may_be_cut=True)  # type: ignore[arg-type]
    assert (read.first_token is None) == placeholders
    assert read.first_token is None or [each.logprob for each in read.first_token] == logprobs


def test_an_empty_list_of_log_probabilities_is_none() -> None:
    output = ModelOutput.from_content("m", "Yes.")
    output.choices[0].logprobs = Logprobs(content=[])
    assert reply_from(output, Named("a/m"), may_be_cut=True).first_token is None  # type: ignore[arg-type]


def test_replies_of_a_run_are_read_as_they_are_and_those_of_a_log_are_validated() -> None:
    said, store = reply("Yes."), Store()
    Record(store=store).answers["v1"] = said
    assert Record(store=store).answers["v1"] is said
    logged = Store(
        {"Record:answers": {"v1": said.model_dump()}, "Record:acts": {}, "Record:grades": {}}
    )
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
    assert (
        made.problem == "half_character" and "\N{REPLACEMENT CHARACTER}" in made.model_dump_json()
    )
    mended = whole_characters(output)
    assert mended.metadata == {HALF_CHARACTER: True} and whole_characters(mended) is mended
    assert reply_from(mended, Named("mockllm/model"), may_be_cut=True) == made  # type: ignore[arg-type]


def test_whole_characters_of_any_plane_are_no_problem() -> None:
    output = ModelOutput.from_content("m", "Well \N{GRINNING FACE} \N{REPLACEMENT CHARACTER}")
    assert whole_characters(output) is output
    assert reply_from(output, Named("mockllm/model"), may_be_cut=True).problem is None  # type: ignore[arg-type]
