"""Errors of vendors' clients, in the forms in which Inspect raises them, and what they are read as."""

import json
from types import SimpleNamespace
from typing import Any

import anyio
import httpx
import pytest
from botocore.exceptions import ClientError
from inspect_ai.model import GenerateConfig, ModelOutput, ResponseSchema, get_model
from inspect_ai.model._providers.openrouter import OpenRouterError
from inspect_ai.util import json_schema

from selfprobe.solvers.negotiate import CaughtObjection, negotiated_reply, objection_in
from selfprobe.solvers.record import Reply


class AzureError(Exception):
    """As `azure.core.exceptions.HttpResponseError`, which keeps no body."""

    def __init__(self, message: str, status_code: int) -> None:
        super().__init__(message)
        self.message, self.status_code, self.response = (
            message,
            status_code,
            SimpleNamespace(status_code=status_code),
        )


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
    error = {
        "Error": {"Code": "ValidationException", "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    return ClientError(error, "Converse")


NOWHERE = "No endpoints found that can handle the requested parameters."


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        (of_openai(404, {"message": NOWHERE, "code": 404}), ()),
        (
            of_openai(
                404, {"message": "No endpoints found that support the provided 'logprobs' value."}
            ),
            ("logprobs",),
        ),
        (OpenRouterError({"code": 400, "message": "seed is not supported"}), ("seed",)),
        (
            wrapped(
                of_openai(
                    400,
                    {
                        "message": "Provider returned error",
                        "metadata": {"raw": '{"param": "seed"}'},
                    },
                )
            ),
            ("seed",),
        ),
        (
            wrapped(of_boto("The model returned the following errors: temperature: range: 0..1")),
            ("temperature",),
        ),
        (
            wrapped(AzureError("(unsupported) response_format of type json_schema", 400)),
            ("response_schema",),
        ),
        (AzureError("Extra inputs are not permitted: random_seed", 422), ("seed",)),
    ],
)
def test_each_client_s_error_is_read_for_the_settings_that_it_names(
    error: Exception, fields: tuple[str, ...]
) -> None:
    said = objection_in(error)
    assert said is not None and said.named_settings == fields
    assert said.is_about_unnamed_setting == (NOWHERE in said.vendor_text)


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
    with pytest.raises(type(error)), CaughtObjection():
        raise error


def test_what_a_body_says_of_the_input_is_not_what_it_says_is_wrong() -> None:
    told = {
        "type": "extra_forbidden",
        "loc": ["body", "reasoning_effort"],
        "msg": "Extra inputs are not permitted",
    }
    body = {
        "message": {"detail": [{**told, "input": "at temperature 0"}]},
        "type": "invalid_request_error",
    }
    error = AzureError("temperature", 422)
    error.body = json.dumps(body)  # type: ignore[attr-defined]  # mistral's client keeps text
    said = objection_in(error)
    assert (
        said is not None
        and said.named_settings == ("reasoning_effort",)
        and "temperature" not in said.vendor_text
    )
    assert said.replacement("reasoning_effort", GenerateConfig(reasoning_effort="none")) == {
        "reasoning_effort": None
    }


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (
            "maximum context length is 4096 tokens. However, your request has 96 input tokens plus 9000",
            2000,
        ),
        (
            "maximum context length is 4096 tokens. However, you requested 9096 tokens (96 in the messages, 9000 in",
            2000,
        ),
        (
            "maximum context length is 4096 tokens. However, your request has 5000 input tokens.",
            None,
        ),
        (
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than",
            8192,
        ),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 97 `inputs` tokens and 9000",
            2000,
        ),
    ],
)
def test_a_limit_above_the_context_becomes_half_of_what_the_prompt_leaves(
    text: str, limit: int | None
) -> None:
    said = objection_in(wrapped(of_openai(400, {"message": text})))
    assert said is not None and said.named_settings[0] == "max_tokens"
    assert said.replacement("max_tokens", GenerateConfig(max_tokens=9000)) == {"max_tokens": limit}


WISHES = GenerateConfig(
    reasoning_effort="none",
    temperature=0,
    seed=1,
    max_tokens=40,
    logprobs=True,
    top_logprobs=20,
    response_schema=ResponseSchema(name="word", json_schema=json_schema(str)),
)
"""All that a method can wish for."""
NOT_SENT: dict[str, dict[str, Any]] = {
    "logprobs": {"logprobs": None, "top_logprobs": None},
    **{
        name: {name: None}
        for name in ("reasoning_effort", "temperature", "seed", "response_schema", "max_tokens")
    },
}


@pytest.mark.parametrize(
    ("text", "field", "instead"),
    [
        # reasoning_effort: the least that is named, else the next step, else nothing
        ("reasoning.effort 'none' is not supported. Supported values are: 'minimal', 'low', 'medium', and 'high'.", "reasoning_effort", "minimal"),
        ("reasoning.effort: Supported values are: 'low', 'medium', and 'high'.", "reasoning_effort", "low"),
        ("Input should be 'low', 'medium' or 'high' (reasoning_effort)", "reasoning_effort", "low"),
        ("effort must be one of `medium`, `high`", "reasoning_effort", "medium"),
        ("reasoning_effort must be one of 'off' or 'deep'", "reasoning_effort", None),
        ("Unrecognized request argument supplied: reasoning_effort", "reasoning_effort", None),
        ("Unknown parameter: 'reasoning.effort'.", "reasoning_effort", None),
        ("reasoning_effort: Extra inputs are not permitted", "reasoning_effort", None),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "reasoning_effort", None),
        ("This model does not support reasoning", "reasoning_effort", None),
        ("`reasoning_effort` is not supported with this model", "reasoning_effort", None),
        ("Reasoning is mandatory for this endpoint and cannot be disabled.", "reasoning_effort", "minimal"),
        ("Budget 0 is invalid. This model only works in thinking mode.", "reasoning_effort", "minimal"),
        # temperature, seed: left out
        ("Unsupported parameter: 'temperature' is not supported with this model.", "temperature", None),
        ("`temperature` may only be set to 1 when thinking is enabled.", "temperature", None),
        ("'temperature' does not support 0 with this model. Only the default (1) value is supported.", "temperature", None),
        ("temperature: Extra inputs are not permitted", "temperature", None),
        ("seed is not supported by this endpoint.", "seed", None),
        ("Extra inputs are not permitted: random_seed", "seed", None),
        ("Unknown field 'seed'", "seed", None),
        # the schema
        ("This model does not support response format `json_schema`.", "response_schema", None),
        ("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.", "response_schema", None),
        ("'claude-3' does not support output format.", "response_schema", None),
        ("output_config: Extra inputs are not permitted", "response_schema", None),
        ("The provided JSON schema contains features not supported by xgrammar.", "response_schema", None),
        ("Invalid schema for text.format", "response_schema", None),
        ("guided decoding is disabled", "response_schema", None),
        ("response_mime_type is not enabled", "response_schema", None),
        # candidates for the first token: fewer where a number is named, else none
        ("Invalid value for 'top_logprobs': must be less than or equal to 5.", "logprobs", 5),
        ("Requested sample logprobs of 20, which is greater than max allowed: 10", "logprobs", 10),
        ("top_logprobs: expected at most 8", "logprobs", 8),
        ("Logprobs is not enabled for models/m", "logprobs", None),
        ("This model does not support logprobs", "logprobs", None),
        ("logprobs: must be at most 0", "logprobs", None),
        # the limit: the end that is named, on the side where what was sent is not
        ("max_tokens is too large: this model supports at most 30 completion tokens.", "max_tokens", 30),
        ("Invalid 'max_output_tokens': expected a value >= 64.", "max_tokens", 64),
        ("max_completion_tokens must be at least 100", "max_tokens", 100),
        ("max_tokens must be between 1 and 32", "max_tokens", 32),
        ("max_tokens must be less than or equal to `8192`", "max_tokens", None),
        ("max_new_tokens is not a number", "max_tokens", None),
    ],
)  # fmt: skip
def test_a_refusal_becomes_what_is_sent_in_its_place(
    text: str, field: str, instead: str | int | None
) -> None:
    said = objection_in(of_openai(400, {"error": {"message": text}}))
    assert said is not None and said.named_settings[0] == field
    place = {"logprobs": "top_logprobs"}.get(field, field)
    assert said.replacement(field, WISHES) == (
        NOT_SENT[field] if instead is None else {place: instead}
    )


Refuses = Any
"""From the settings that are sent to the error's status and words, or to None."""


def negotiated(
    refuses: Refuses, needs: GenerateConfig | None = None
) -> tuple[Reply, list[GenerateConfig]]:
    """A reply of a model that refuses so, and the settings of each request."""
    model, asked = get_model("mockllm/model", memoize=False), list[GenerateConfig]()

    async def send(config: GenerateConfig) -> ModelOutput:
        asked.append(config)
        if refusal := refuses(config):
            raise of_openai(refusal[0], {"error": {"message": refusal[1]}})
        return ModelOutput.from_content("m", "yes")

    async def agreed() -> Reply:
        wishes = WISHES.model_copy(update={"logprobs": None, "top_logprobs": None})
        return await negotiated_reply(
            model, send, wishes=wishes, needs=needs or GenerateConfig(), may_be_cut=False
        )

    return anyio.run(agreed), asked


def given_up(last: GenerateConfig) -> set[str]:
    names = ("reasoning_effort", "temperature", "seed", "response_schema", "max_tokens")
    return {name for name in names if getattr(last, name) != getattr(WISHES, name)}


def each_alone(sent: GenerateConfig) -> tuple[int, str] | None:
    names = ("temperature", "seed", "response_schema", "reasoning_effort")
    words = {"response_schema": "response_format"}
    left = next((name for name in names if getattr(sent, name) is not None), None)
    return (400, f"{words.get(left, left)} is not supported by this endpoint.") if left else None


@pytest.mark.parametrize(
    ("refuses", "requests", "without"),
    [
        pytest.param(lambda sent: None, 1, set(), id="takes all"),
        pytest.param(
            each_alone,
            5,
            {"temperature", "seed", "response_schema", "reasoning_effort"},
            id="one by one",
        ),
        pytest.param(
            lambda sent: (400, "Bad Request") if sent.temperature is not None else None,
            2,
            {"temperature", "seed", "response_schema", "reasoning_effort"},
            id="names nothing: all at once",
        ),
        pytest.param(
            lambda sent: (404, NOWHERE) if sent.reasoning_effort is not None else None,
            2,
            {"reasoning_effort"},
            id="OpenRouter's 404: each alone",
        ),
        pytest.param(
            lambda sent: (404, NOWHERE) if sent.temperature is not None else None,
            5,
            {"temperature"},
            id="OpenRouter's 404: the temperature is the last to go",
        ),
        pytest.param(
            lambda sent: (
                (400, "effort: expected one of 'low', 'high'")
                if sent.reasoning_effort == "none"
                else None
            ),
            2,
            {"reasoning_effort"},
            id="lists what it takes",
        ),
        pytest.param(
            lambda sent: (
                (400, "max_tokens must be at least 100") if sent.max_tokens < 100 else None
            ),
            2,
            {"max_tokens"},
            id="a least limit",
        ),
    ],
)
def test_what_a_vendor_refuses_is_given_up_and_nothing_else(
    refuses: Refuses, requests: int, without: set[str]
) -> None:
    reply, asked = negotiated(refuses)
    assert reply.text == "yes" and len(asked) == requests and given_up(asked[-1]) == without


@pytest.mark.parametrize(
    ("refuses", "needs", "said", "requests"),
    [
        (
            lambda sent: (400, "temperature is too low"),
            GenerateConfig(temperature=0.5),
            "temperature is too low",
            1,
        ),
        (lambda sent: (400, "This endpoint is closed."), None, "This endpoint is closed", 2),
        (lambda sent: (401, "No key for temperature"), None, "No key", 1),
        (lambda sent: (400, "Your prompt quotes temperature"), None, "Your prompt", 2),
    ],
    ids=["a need", "nothing helped", "no objection", "the setting was not to blame"],
)
def test_a_refusal_that_giving_up_does_not_help_is_raised(
    refuses: Refuses, needs: GenerateConfig | None, said: str, requests: int
) -> None:
    asked = list[GenerateConfig]()

    def noted(sent: GenerateConfig) -> Any:
        asked.append(sent)
        return refuses(sent)

    with pytest.raises(Exception, match="Error") as error:
        negotiated(noted, needs)
    assert said in str(getattr(error.value, "body", error.value)) and len(asked) == requests
