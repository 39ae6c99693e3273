import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog
from inspect_ai.model import GenerateConfig, Logprob, Logprobs, Model, ModelOutput, get_model

from selfprobe.evalawareness_tasks.first_token import awareness_first_token
from selfprobe.solvers.record import Record, candidates_in
from selfprobe.solvers.sent import with_request

TOKEN = {"token": "a", "logprob": -0.1, "top_logprobs": [{"token": "a", "logprob": -0.1}]}


def received(*, asked_by_us: bool = True, **response: Any) -> httpx.Response:
    """A provider's response as its client gets it."""
    client = httpx.AsyncClient(
        transport=httpx.MockTransport(lambda _: httpx.Response(200, **response))
    )
    model = cast(Model, SimpleNamespace(api=SimpleNamespace(http_client=client, generate=None)))
    got: list[httpx.Response] = []

    async def generate() -> ModelOutput:
        got.append(await client.post("http://localhost/"))
        return ModelOutput()

    async def run() -> None:
        async with client:
            await with_request(model, generate())
            if not asked_by_us:
                await generate()

    asyncio.run(run())
    return got[-1]


def completion(*logprobs: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "a b"}, "logprobs": each} for each in logprobs]}


def test_a_provider_never_parses_the_candidates_after_the_first_token() -> None:
    body = received(
        json=completion({"content": [TOKEN, TOKEN, TOKEN]}, {"content": [TOKEN, TOKEN]})
    ).json()
    assert body == completion({"content": [TOKEN]}, {"content": [TOKEN]})


SURE = {"token": "a", "logprob": 0.0, "top_logprobs": [{"token": "a", "logprob": 0.0}]}


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [
        ([SURE, SURE, TOKEN, TOKEN], [SURE, TOKEN]),
        ([SURE, SURE], [SURE]),
        ([SURE], [SURE]),
        ([TOKEN, SURE], [TOKEN]),
        ([], []),
    ],
    ids=["shown_by_a_later_one", "placeholders", "alone", "first_is_unsure", "empty"],
)
def test_a_first_token_without_any_doubt_keeps_a_later_one_that_shows_it_is_no_placeholder(
    tokens: list[Any], kept: list[Any]
) -> None:
    body = received(json=completion({"content": tokens})).json()
    assert body["choices"][0]["logprobs"]["content"] == kept
    logprobs = Logprobs.model_validate({"content": kept})
    assert bool(candidates_in(logprobs)) == (TOKEN in kept)


@pytest.mark.parametrize(
    "response",
    [
        {
            "json": completion({"content": [TOKEN, TOKEN]}),
            "headers": {"content-type": "text/event-stream"},
        },
        {"json": {"error": {"message": 'no "top_logprobs" here'}}},
        {"json": ["top_logprobs"]},
        {"json": completion({"tokens": ["a", "b"], "top_logprobs": [{"a": -0.1}, {"b": -0.1}]})},
        {"json": completion(None) | {"note": "top_logprobs"}},
        {"content": b'{"top_logprobs": ', "headers": {"content-type": "application/json"}},
    ],
    ids=["stream", "error", "list", "completions", "none", "cut"],
)
def test_anything_else_is_left_as_it_came(response: dict[str, Any]) -> None:
    assert received(**response).content == httpx.Response(200, **response).content


def test_somebody_elses_call_to_the_same_model_gets_all_candidates() -> None:
    whole = completion({"content": [TOKEN, TOKEN]})
    assert received(json=whole, asked_by_us=False).json() == whole


@pytest.mark.parametrize("api", [{}, {"http_client": object()}], ids=["none", "other"])
def test_of_a_provider_without_httpx_the_candidates_are_dropped_from_its_output(
    api: dict[str, object],
) -> None:
    candidates = [Logprob(token=token, logprob=-0.1) for token in "abc"]

    async def generate() -> ModelOutput:
        output = ModelOutput.from_content("some/model", "abc")
        output.choices[0].logprobs = Logprobs(content=list(candidates))
        return output

    output, *_ = asyncio.run(
        with_request(
            cast(Model, SimpleNamespace(api=SimpleNamespace(generate=None, **api))), generate()
        )
    )
    assert (
        output.choices[0].logprobs == Logprobs(content=candidates[:1])
        and output.completion == "abc"
    )


def test_a_real_clients_log_holds_the_first_tokens_candidates_and_the_whole_reply(
    server: Any, run_task: Callable[..., EvalLog], tmp_path: Path
) -> None:
    model = get_model("openai-api/fake/alpha", config=GenerateConfig(max_tokens=50))
    log = run_task(awareness_first_token(), model, tmp_path / "logs", limit=1, log_model_api=True)
    [sample] = log.samples or []
    [act] = [event for event in sample.events if isinstance(event, ModelEvent)]
    assert act.call is not None and act.call.response is not None
    [choice] = cast(Any, act.call.response["choices"])
    [first] = choice["logprobs"]["content"]
    reply = sample.store_as(Record).acts["reply"]
    assert reply.text.startswith(first["token"]) and len(reply.text.split()) > 3
    assert (
        reply.first_token is not None and len(reply.first_token) == len(first["top_logprobs"]) > 1
    )
