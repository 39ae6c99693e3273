"""Calls as they are really sent and received, whoever makes them: requests, replies, and what was
answered before.

Candidates are kept for a reply's first token, since nothing reads the others. Providers list them
for every token or for none: twenty for each of 80 tokens are 200 kB of JSON, and to parse, convert
and log them took 100 to 150 ms of CPU a reply, while no other call was sent.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from inspect_ai.model import Model, ModelCall, ModelOutput

from selfprobe.logs.resuming import AskedCall, earlier_reply, keep_reply
from selfprobe.solvers.record import ENDING, reported, says_nothing, whole_characters
from selfprobe.solvers.request_settings import settings_of_request
from selfprobe.solvers.seeded_transformers import is_hugging_face, with_ending_and_request
from selfprobe.solvers.server_responses import Receiving, ending_of, raise_error_replies


@dataclass
class _CallRequests:
    """Requests of one call."""

    settings: list[Mapping[str, Any]] = field(default_factory=list)
    """Settings of each, the last one last."""
    is_earlier: bool = False
    """Whether the reply is one that the sample had before."""

    def note_earlier(self, reply: ModelOutput) -> None:
        """Note that the reply was there before, with the settings of its request."""
        self.is_earlier = True
        if reply.metadata and SETTINGS in reply.metadata:
            self.settings.append(reply.metadata[SETTINGS])

    def note_request(self, request: ModelCall, output: Any) -> None:
        """Note the settings of a request; the output holds them too, and how it ended."""
        self.settings.append(settings_of_request(request.request))
        if isinstance(output, ModelOutput):
            facts = {SETTINGS: self.settings[-1], ENDING: ending_of(request.response or {})}
            output.metadata = {**(output.metadata or {}), **facts}


_call_requests: ContextVar[_CallRequests | None] = ContextVar("_call_requests", default=None)
"""Requests of the call that is under way; None in somebody else's calls of a model object, which a
process shares: they get all that they asked for.
"""

SETTINGS = "request"
"""Key in an output's metadata of the settings of its request."""


async def with_request(
    model: Model, call: Awaitable[ModelOutput]
) -> tuple[ModelOutput, Mapping[str, Any] | None, bool]:
    """Output of a call, settings of its request (`settings_of_request`), and whether the sample had
    the reply before.

    The output has candidates for its first token alone, and so has the event in Inspect's log. The
    settings are None where the provider does not show its request, or the reply came from Inspect's
    cache.

    Args:
        model: Model that is called.
        call: Its `generate`, not yet awaited.
    """
    _listen_to(model)
    hooks = getattr(getattr(model.api, "http_client", None), "event_hooks", None)
    if hooks is not None and _cut_response not in hooks["response"]:
        hooks["response"].append(_cut_response)
    requests = _CallRequests()
    reset_token = _call_requests.set(requests)
    try:
        output = await call
    finally:
        _call_requests.reset(reset_token)
    logprobs = output.choices[0].logprobs if output.choices else None
    if logprobs is not None:
        _keep_first_candidates(logprobs.content, reported)
    settings = requests.settings[-1] if requests.settings else None
    return output, settings, requests.is_earlier


@contextmanager
def every_model_heard() -> Iterator[None]:
    """A block in which calls of somebody else's solvers and scorers are listened to as our own are."""
    model_generate = Model.generate

    async def generate(model: Model, *args: Any, **options: Any) -> ModelOutput:
        _listen_to(model)
        return await model_generate(model, *args, **options)

    Model.generate = generate  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Model.generate = model_generate  # type: ignore[method-assign]


async def _cut_response(response: Any) -> None:
    """Cut tokens' candidates from a response, so that OpenAI-compatible clients never parse them.

    It is a hook of httpx (Inspect's client is of httpx's successor: the same interface, another
    type).
    """
    is_json = response.headers.get("content-type", "").startswith("application/json")
    if _call_requests.get() is None or not is_json:
        return
    if b'"top_logprobs"' not in await response.aread():
        return
    try:
        body = json.loads(response.content)
        for choice in body["choices"]:
            _keep_first_candidates(choice["logprobs"]["content"], _reported_in_body)
    except (ValueError, KeyError, TypeError):
        return  # no completion: the provider's client says what is wrong with it
    response._content = json.dumps(
        body
    ).encode()  # where httpx keeps what `aread` has read; there is no setter


Listed = TypeVar("Listed")
"""A token of a reply with its candidates: Inspect's, or as JSON."""


def _keep_first_candidates(tokens: list[Listed], values: Callable[[Listed], list[float]]) -> None:
    """Cut all but the first token's candidates.

    Where these say nothing, a later token's that say something stay: the first one was sure, and no
    placeholder.
    """
    kept_tokens: list[Listed] = []
    if tokens and says_nothing(values(tokens[0])):
        kept_tokens = [token for token in tokens[1:] if not says_nothing(values(token))][:1]
    tokens[1:] = kept_tokens


def _reported_in_body(token: dict[str, Any]) -> list[float]:
    """Log-probabilities that a body reports for a token."""
    return [candidate["logprob"] for candidate in token.get("top_logprobs") or [token]]


_CALL_ARGUMENTS = ("input", "tools", "tool_choice", "config")
"""Arguments of a provider's `generate`, in order."""


def _listen_to(model: Model) -> None:
    """Keep the requests of a model's provider, whoever calls it; an error sent under status 200 is
    an error.

    Inspect's events hold them for the first calls of a run alone, and for none with
    `log_model_api=False`; a request's settings stay with its output. A call that was answered when
    its sample was asked before has its reply from there.
    """
    api = model.api
    if "generate" in vars(api):
        return
    raise_error_replies(api)
    provider_generate = api.generate

    async def generate(*args: Any, **options: Any) -> Any:
        call_requests = _call_requests.get()
        call = asked_call(model, args, options)
        earlier = earlier_reply(call)
        if earlier is not None:
            if call_requests is not None:
                call_requests.note_earlier(earlier)
            return earlier
        with Receiving(api) as receiving:
            answer: Any = await provider_generate(*args, **options)
            if is_hugging_face(model):
                answer = with_ending_and_request(api, answer, call.config)
            output, request = _parts_of(answer)
            receiving.mark(output)  # an error that is handed back
            if isinstance(output, ModelOutput):
                if not output.choices:
                    raise LookupError("a reply without choices")
                output = whole_characters(output)
        if call_requests is not None and request is not None:
            call_requests.note_request(request, output)
        if isinstance(output, ModelOutput):
            keep_reply(call, output)
        return (output, *answer[1:]) if isinstance(answer, tuple) else output

    setattr(api, "generate", generate)  # noqa: B010  (mypy lets nobody assign to a method)


def asked_call(model: Model, args: tuple[Any, ...], options: Mapping[str, Any]) -> AskedCall:
    """The call that a provider's `generate` is asked with these arguments."""
    arguments = dict(zip(_CALL_ARGUMENTS, args, strict=False)) | dict(options)
    return AskedCall(
        str(model),
        list(arguments["input"]),
        arguments["tools"],
        arguments["tool_choice"],
        arguments["config"],
    )


def _parts_of(answer: Any) -> tuple[Any, ModelCall | None]:
    """What a provider's `generate` answers: an output or an error, and the request where it is
    shown.
    """
    if not isinstance(answer, tuple):
        return answer, None
    output, request = answer[:2]
    return output, request if isinstance(request, ModelCall) else None
