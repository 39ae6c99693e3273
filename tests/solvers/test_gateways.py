"""What gateways make of a reply, through the real clients: it is whole, or unscored with a reason,
or a line that says what came back and from where.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import gateways
import pytest
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.tool import ToolInfo

from selfprobe.scorers.summary import sample_notes
from selfprobe.solvers.ask import ask
from selfprobe.solvers.record import REASONS, Reply, reply_from

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # the providers' own packages
    pytest.mark.filterwarnings(
        "ignore:Pydantic serializer warnings"
    ),  # of a body that is not as OpenAI's client has it
]


WHOLE = "whole"
NOTHING = "gave no reply that can be read: HOST sent "
AGAIN = "gave no answer after all retries: "
BAD_GATEWAY = "'<html> <head><title>502 Bad Gateway</title></head> <body>"

ANY = {
    "html_200": f"{NOTHING}status 200, {BAD_GATEWAY}",
    "html_as_json": f"{NOTHING}status 200, {BAD_GATEWAY}",
    "html_502": f"{AGAIN}HOST sent status 502, {BAD_GATEWAY}",
    "login_page": f"{NOTHING}status 200, '<!DOCTYPE html><html><head><title>Sign in</title>",
    "challenge": "refused a call: Error code: 403 - HOST sent status 403, \"<!DOCTYPE html><html lang='en-US'>",
    "empty_body": f"{NOTHING}status 200, an empty body",
    "null_body": f"{NOTHING}status 200, 'null'",
    "string_body": f"{NOTHING}status 200, '\"upstream busy\"'",
    "list_body": f"{NOTHING}status 200, '[]'",
    "object_body": f"{NOTHING}status 200, '{{}}'",
    "half_json": f'{NOTHING}status 200, \'{{"id": ',
    "text_body": f"{NOTHING}status 200, 'upstream connect error or disconnect/reset before headers'",
    "error_200": f'{NOTHING}status 200, \'{{"error": {{"message": "Provider returned error", "code": 502}}}}\'',
    "error_text_200": f'{NOTHING}status 200, \'{{"error": "upstream down"}}\'',
    "detail_200": f'{NOTHING}status 200, \'{{"detail": "Not Found"}}\'',
    "no_route_404": "refused a call: Error code: 404 - Not Found",
    "redirect": f"{NOTHING}status 200, '<!DOCTYPE html><html><head><title>Sign in</title>",
    "reset": f"{AGAIN}Server disconnected without sending a response. (from HOST)",
    "truncated": f"{AGAIN}peer closed connection without sending complete message body",
    "not_gzip": f"{AGAIN}Error -3 while decompressing data: incorrect header check (from HOST)",
    "stream": f"{NOTHING}status 200, 'data: {{",
    "no_content": f"{NOTHING}status 204, an empty body",
}
"""Fault → its outcome: whole, a problem, or the beginning of the line after the model's name."""

NON_COMPLETION = (
    "html_200",
    "login_page",
    "null_body",
    "string_body",
    "list_body",
    "text_body",
    "redirect",
    "stream",
)
"""What Inspect's provider of chat completions takes for a server that is busy, and asks again."""

EXPECTED = {
    "chat": ANY
    | {name: ANY[name].replace(NOTHING, f"{AGAIN}HOST sent ") for name in NON_COMPLETION}
    | {
        "error_200": f'{AGAIN}server_error: error under status 200: {{"message": "Provider returned error"',
        "error_text_200": 'gave no reply that can be read: error under status 200: "upstream down" (from HOST)',
        **dict.fromkeys(("other_model", "snapshot", "unsafe_name", "endless_names"), WHOLE),
        **dict.fromkeys(
            ("no_model", "null_model", "choices_null", "choices_empty", "choices_object"), NOTHING
        ),
        **dict.fromkeys(
            ("no_choices", "choice_null", "message_null", "message_text", "no_message"), NOTHING
        ),
        **dict.fromkeys(
            ("content_parts", "content_number", "usage_text", "usage_partial"), NOTHING
        ),
        **dict.fromkeys(
            ("finish_error", "finish_error_empty", "choice_error", "choice_error_stop"), "failed"
        ),
        **dict.fromkeys(("error_beside", "finish_no_resource", "finish_network"), "failed"),
        **dict.fromkeys(("finish_cancelled", "finish_abort"), "cancelled"),
        **dict.fromkeys(
            ("finish_null", "finish_eos", "no_finish", "index_null", "usage_null", "created_text"),
            WHOLE,
        ),
        **dict.fromkeys(
            ("tool_call", "tool_call_text", "tool_call_stop", "tool_finish_alone"), "unoffered_call"
        ),
        "content_null": "empty",
        **dict.fromkeys(("echo", "echo_and_more"), "foreign"),
        **dict.fromkeys(("page", "moment", "error_text", "error_json"), "error_text"),
        **{
            f"thought_{form}": WHOLE
            for form in (*gateways.INLINE_THOUGHTS, *gateways.EMPTY_THOUGHTS)
        },
        **{f"thought_{form}": "garbled" for form in gateways.LEFT_OVER},
        **dict.fromkeys(("thought_cut", "thought_unopened_cut"), "truncated"),
        "thought_alone": "empty",
        **{f"logprobs_{form}": WHOLE for form in gateways.PLACEHOLDERS | gateways.LOGPROBS},
    },
    "responses": ANY
    | {
        "error_200": "gave no reply that can be read: 502: Provider returned error (from HOST)",
        **dict.fromkeys(("other_model", "null_model", "status_null", "usage_null"), WHOLE),
        "cancelled": "cancelled",
        "failed": "failed",
        "failed_with_error": f"{AGAIN}server_error: The model failed. (from HOST)",
        **dict.fromkeys(("incomplete", "in_progress", "queued_empty"), "unfinished"),
        **dict.fromkeys(("function_call", "function_call_text"), "unoffered_call"),
        **dict.fromkeys(("output_null", "no_output", "output_text", "content_null"), NOTHING),
        "output_empty": "empty",
        **dict.fromkeys(("encrypted", "summary"), WHOLE),
        "reasoning_alone": "truncated",
        "echo": "foreign",
        "page": "error_text",
    },
    "anthropic": ANY
    | {
        "html_502": f"{AGAIN}<html> <head><title>502 Bad Gateway</title></head>",
        "challenge": "refused a call: Error code: 403 - <!DOCTYPE html><html lang='en-US'>",
        "other_model": WHOLE,
        "null_model": NOTHING,
        **dict.fromkeys(("tool_use", "tool_use_text"), "unoffered_call"),
        "stop_error": "failed",
        "stop_cancelled": "cancelled",
        "stop_null": WHOLE,
        "context_exceeded": "truncated",
        "refusal": "filtered",
        **dict.fromkeys(
            ("content_null", "content_text", "no_content_field", "error_type", "usage_null"),
            NOTHING,
        ),
        **dict.fromkeys(("content_empty", "thinks_alone"), "empty"),
        **dict.fromkeys(("thinks", "thinks_in_secret", "thinks_redacted"), WHOLE),
        "overloaded": f"{AGAIN}Error code: 529 - {{'type': 'error', 'error': {{'type': 'overloaded_error'",
        "echo": "foreign",
        "page": "error_text",
    },
    "google": {name: line.replace("status 200, ", "") for name, line in ANY.items()}
    | {
        "html_502": f"{AGAIN}502 Bad Gateway. {{'message': '<html>",
        "challenge": "refused a call: Error code: 403 - 403 Forbidden. {'message': \"<!DOCTYPE html>",
        "half_json": f'{NOTHING}\'{{"candidates"',
        "no_route_404": "refused a call: Error code: 404 - 404 None. {'detail': 'Not Found'}",
        "reset": f"{AGAIN}Server disconnected (from HOST)",
        "truncated": f"{AGAIN}400, message: Not enough data to satisfy content length header",
        "not_gzip": f"{AGAIN}400, message: Can not decode content-encoding: gzip (from HOST)",
        "no_content": "gave no reply that can be read: 204 None. None (from HOST)",
        **dict.fromkeys(
            ("empty_body", "null_body", "string_body", "list_body", "object_body"), "empty"
        ),
        **dict.fromkeys(("error_200", "error_text_200", "detail_200"), "empty"),
        **dict.fromkeys(("other_model", "no_model", "no_finish"), WHOLE),
        **dict.fromkeys(("other", "language", "malformed_call", "unexpected_call"), "failed"),
        "function_call": "unoffered_call",
        **dict.fromkeys(("safety", "blocked"), "filtered"),
        **dict.fromkeys(("candidates_null", "candidates_empty", "no_candidates"), "empty"),
        **dict.fromkeys(("content_null", "parts_null"), "empty"),
        "echo": "foreign",
        "page": "error_text",
    },
}

PROMPT = (
    "Question: What does the rain do on the roof in a long night of autumn?\n\nTask: Predict the first word you will "
    "output when answering this question normally (at temperature 0). Simply output the predicted single word in a JSON "
    'object.\nJSON Example: { "word": "The" }'
)


Asked = Callable[..., Reply]


@pytest.fixture(scope="module")
def gateway() -> Iterator[Any]:
    with gateways.running() as server:
        yield server


@pytest.fixture(scope="module")
def asked(gateway: Any) -> Iterator[Asked]:
    """One reply to one prompt, asked once: `asked("chat", "tool_call")`."""
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        for name, value in gateways.environment(gateway).items():
            patch.setenv(name, value)
        once_only = {"max_retries": 0}  # of the client itself
        more: dict[str, dict[str, Any]] = {
            "chat": once_only,
            "responses": once_only | {"responses_api": True},
            "anthropic": once_only,
            "google": {"base_url": f"http://{gateway.host}"},
        }
        models = {
            kind: get_model(gateways.KINDS[kind][2], memoize=False, **more[kind]) for kind in more
        }

        def once(
            kind: str, fault: str, *tools: ToolInfo, prompt: Any = PROMPT, **given: Any
        ) -> Reply:
            gateway.fault = fault
            config = GenerateConfig(max_retries=0, **{"max_tokens": 64, **given})
            call = ask(
                {"a": prompt}, role=models[kind], config=config, may_be_cut=False, tools=tools
            )
            return runner.run(call)["a"]

        yield once


def only(error: BaseException) -> BaseException:
    """The error in groups of one."""
    while isinstance(error, BaseExceptionGroup):
        [error] = error.exceptions
    return error


CASES = [(kind, fault) for kind, faults in EXPECTED.items() for fault in faults]


def test_every_fault_of_the_gateway_has_an_outcome() -> None:
    assert {(kind, fault) for kind in gateways.KINDS for fault in gateways.faults(kind)} == set(
        CASES
    )


@pytest.mark.parametrize(("kind", "fault"), CASES)
def test_what_a_gateway_sends_is_whole_or_unscored_or_named_in_a_line(
    kind: str, fault: str, asked: Asked, gateway: Any
) -> None:
    outcome, name = EXPECTED[kind][fault], gateways.KINDS[kind][2]
    if outcome == WHOLE or outcome in REASONS:
        reply = asked(kind, fault)
        assert reply.problem == (None if outcome == WHOLE else outcome)
        assert outcome != WHOLE or reply.text in (gateways.TEXT, gateways.WORD)
        return
    with pytest.raises(Exception) as raised:
        asked(kind, fault)
    line = str(only(raised.value))
    assert line.startswith(f"{name} {outcome.replace('HOST', gateway.host)}") and "\n" not in line
    assert not re.search("NoneType|has no attribute|validation error|Expecting value", line)
    assert len(line) < 600


@pytest.mark.parametrize("kind", gateways.KINDS)
def test_a_whole_reply_is_whole(kind: str, asked: Asked) -> None:
    reply = asked(kind, "")
    assert (reply.text, reply.problem, reply.answered_by, reply.echoes) == (
        gateways.TEXT,
        None,
        "m",
        False,
    )


def test_a_stream_of_anthropics_is_read_as_a_reply_and_a_page_in_its_place_is_named(
    asked: Asked,
) -> None:
    assert asked("anthropic", "", max_tokens=9000).problem is None
    assert asked("anthropic", "stop_error", max_tokens=9000).problem == "failed"
    with pytest.raises(Exception) as raised:
        asked("anthropic", "html_200", max_tokens=9000)
    assert BAD_GATEWAY in str(only(raised.value))


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("chat", "tool_call"),
        ("responses", "function_call"),
        ("anthropic", "tool_use"),
        ("google", "function_call"),
    ],
)
def test_a_call_of_a_tool_that_was_offered_is_a_reply(kind: str, fault: str, asked: Asked) -> None:
    reply = asked(kind, fault, ToolInfo(name="search", description="Search the web."))
    assert reply.problem is None and reply.text.startswith("[tool call] search(")


def test_a_json_reply_under_a_tools_finish_is_whole() -> None:
    """Gateways that get JSON out of a model by a tool of their own show the reply and keep the
    finish.
    """
    output = ModelOutput.from_content("m", '{"word": "The"}', stop_reason="tool_calls")
    assert reply_from(output, "a/m", may_be_cut=False, tools=False).problem is None


def test_a_body_with_a_key_in_it_shows_none_of_it(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    leak = gateways.answered('{"detail": "wrong key sk-abc123def456ghi"}')
    monkeypatch.setitem(gateways.CHAT, "leak", leak)
    with pytest.raises(Exception) as raised:
        asked("chat", "leak")
    assert "wrong key sk-…" in (line := str(only(raised.value))) and "abc123" not in line


def echoed(text: str, prompt: str) -> Reply:
    return reply_from(ModelOutput.from_content("m", text), "a/m", may_be_cut=False, prompt=prompt)


LONG = "A trolley is out of control, and five people stand on its track. You can pull a lever. " * 3


QUESTION = "What is the capital of France, and since when?"


@pytest.mark.parametrize(
    ("prompt", "reply", "echoes", "problem"),
    [
        (PROMPT, PROMPT, True, "foreign"),
        (PROMPT, f"  {PROMPT}\n", True, "foreign"),
        (LONG, f"{LONG}\n\nI would pull it.", True, "foreign"),
        (QUESTION, QUESTION, True, "foreign"),
        (QUESTION, f"{QUESTION} Paris.", True, None),
        ("What is the capital of France?", "What is the capital of France?", False, None),
        ("Say yes.", "Say yes.", False, None),
        (
            f"Repeat after me, word for word: {LONG}",
            f"Repeat after me, word for word: {LONG}",
            True,
            None,
        ),
        (PROMPT, f"You asked: {PROMPT}", False, None),
        (PROMPT, PROMPT[:120], False, None),
    ],
)
def test_only_what_is_certainly_an_echo_is_no_reply_and_what_may_be_one_is_noted(
    prompt: str, reply: str, echoes: bool, problem: str | None
) -> None:
    """Models say a short question again before they answer it; who asks for its own words gets
    them.
    """
    seen = echoed(reply, prompt)
    assert (seen.echoes, seen.problem) == (echoes, problem)
    assert ("foreign_reply" in sample_notes([seen]).get("noted", [])) == (
        echoes and problem is None
    )


SPELLING = ChatMessageSystem(content="Correct the spelling.")
BEFORE = [ChatMessageUser(content="Say what I say."), ChatMessageAssistant(content="Yes?")]


@pytest.mark.parametrize(
    ("before", "problem"), [([SPELLING], None), (BEFORE, None), ([], "foreign")]
)
def test_in_a_conversation_the_last_message_may_be_what_was_asked_for(
    before: list[Any], problem: str | None, asked: Asked
) -> None:
    reply = asked("chat", "echo", prompt=[*before, ChatMessageUser(content=PROMPT)])
    assert (reply.text, reply.problem) == (PROMPT, problem)
