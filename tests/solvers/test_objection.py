"""Errors of vendors' clients, in the forms in which Inspect raises them, and what they are read as."""

import json
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError
from inspect_ai.model import GenerateConfig
from inspect_ai.model._providers.openrouter import OpenRouterError

from selfprobe.solvers.negotiate import Refusal, objection


class AzureError(Exception):
    """As `azure.core.exceptions.HttpResponseError`, which keeps no body."""

    def __init__(self, message: str, status_code: int) -> None:
        super().__init__(message)
        self.message, self.status_code, self.response = message, status_code, SimpleNamespace(status_code=status_code)


def wrapped(error: Exception, status: int | None = 400) -> RuntimeError:
    """As Inspect raises an error that a provider handed back."""
    outer = RuntimeError("\nRequest:\n{'temperature': 0, 'seed': 1, 'reasoning_effort': 'none'}\n")
    outer.__cause__, outer.status_code = error, status  # type: ignore[attr-defined]
    return outer


def of_openai(status: int, body: Any) -> Exception:
    from openai import APIStatusError

    response = httpx.Response(status, request=httpx.Request("POST", "http://x"))
    return APIStatusError("Error", response=response, body=body)


def of_boto(message: str) -> Exception:
    error = {"Error": {"Code": "ValidationException", "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    return ClientError(error, "Converse")


NOWHERE = "No endpoints found that can handle the requested parameters."


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        (of_openai(404, {"message": NOWHERE, "code": 404}), ()),
        (of_openai(404, {"message": "No endpoints found that support the provided 'logprobs' value."}), ("logprobs",)),
        (OpenRouterError({"code": 400, "message": "seed is not supported"}), ("seed",)),
        (
            wrapped(of_openai(400, {"message": "Provider returned error", "metadata": {"raw": '{"param": "seed"}'}})),
            ("seed",),
        ),
        (wrapped(of_boto("The model returned the following errors: temperature: range: 0..1")), ("temperature",)),
        (wrapped(AzureError("(unsupported) response_format of type json_schema", 400)), ("response_schema",)),
        (AzureError("Extra inputs are not permitted: random_seed", 422), ("seed",)),
    ],
)
def test_each_client_s_error_is_read_for_the_settings_that_it_names(error: Exception, fields: tuple[str, ...]) -> None:
    said = objection(error)
    assert said is not None and said.fields == fields
    assert said.one_by_one == (NOWHERE in said.text)


@pytest.mark.parametrize(
    "error",
    [
        of_openai(404, {"message": "No endpoints found for meta/temperature."}),
        of_openai(404, {"message": "No endpoints found that support tool use."}),
        of_openai(401, {"message": "temperature"}),
        OpenRouterError({"code": 402, "message": "can only afford max_tokens 100"}),
        AzureError("temperature", 500),
        ValueError("temperature"),
        KeyboardInterrupt(),
    ],
)
def test_errors_about_other_things_are_raised_as_they_are(error: BaseException) -> None:
    with pytest.raises(type(error)), Refusal():
        raise error


def test_what_a_body_says_of_the_input_is_not_what_it_says_is_wrong() -> None:
    told = {"type": "extra_forbidden", "loc": ["body", "reasoning_effort"], "msg": "Extra inputs are not permitted"}
    body = {"message": {"detail": [{**told, "input": "at temperature 0"}]}, "type": "invalid_request_error"}
    error = AzureError("temperature", 422)
    error.body = json.dumps(body)  # type: ignore[attr-defined]  # mistral's client keeps text
    said = objection(error)
    assert said is not None and said.fields == ("reasoning_effort",) and "temperature" not in said.text
    assert said.instead("reasoning_effort", GenerateConfig(reasoning_effort="none")) == {"reasoning_effort": None}


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("maximum context length is 4096 tokens. However, your request has 96 input tokens plus 9000", 2000),
        (
            "maximum context length is 4096 tokens. However, you requested 9096 tokens (96 in the messages, 9000 in",
            2000,
        ),
        ("maximum context length is 4096 tokens. However, your request has 5000 input tokens.", None),
        ("`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than", 8192),
        ("`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 97 `inputs` tokens and 9000", 2000),
    ],
)
def test_a_limit_above_the_context_becomes_half_of_what_the_prompt_leaves(text: str, limit: int | None) -> None:
    said = objection(wrapped(of_openai(400, {"message": text})))
    assert said is not None and said.fields[0] == "max_tokens"
    assert said.instead("max_tokens", GenerateConfig(max_tokens=9000)) == {"max_tokens": limit}
