"""What a server really sent: an error of a client says it, and an error under status 200 is one.

Clients that cannot read a body raise errors about Python. Here an error that leaves a provider's
call knows what came back and from where (`Receiving`, `words_of`).
"""

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from inspect_ai.model import Model

from selfprobe.errors import one_line
from selfprobe.text.safe import clean

_SHOWN_CHARACTERS = 200
"""Number of characters of a body that a line shows."""

_KEPT_BYTES = 2000
"""Number of bytes of a body that are kept while a call is under way."""

_RESPONSE_ATTRIBUTE = "selfprobe_received"
"""Attribute of an error that holds the response."""

_UNREADABLE_BODY_ERRORS = (TypeError, AttributeError, LookupError, ValueError, AssertionError)
"""Errors of a client that could not read a body; their words are about Python."""

_UNINFORMATIVE_WORDS = re.compile(
    r"(server_error: )?Unexpected non-ChatCompletion response|Error code: \d+$"
)
"""Words of an error that say no more than that."""


@dataclass
class _ReceivedBody:
    """One response, as far as it was read."""

    host: str
    status: int
    start: bytearray = field(default_factory=bytearray)


_received_bodies: ContextVar[list[_ReceivedBody] | None] = ContextVar(
    "_received_bodies", default=None
)
"""Responses of the call that is under way, the last one last."""


class Receiving:
    """Context in which a provider is asked: an error that leaves it knows what the server sent, and
    from where.

    Args:
        api: Provider. For clients that are made anew for each call (Google's, Mistral's) only the
            error is known.
    """

    def __init__(self, api: Any) -> None:
        self.api = api
        self.reset_token: Token[list[_ReceivedBody] | None] | None = None

    def __enter__(self) -> "Receiving":
        http_client = getattr(getattr(self.api, "client", None), "_client", None)
        hooks = getattr(http_client, "event_hooks", None)
        if isinstance(hooks, dict) and _keep_body not in hooks["response"]:
            hooks["response"].append(_keep_body)
        self.reset_token = _received_bodies.set([])
        return self

    def mark(self, error: object) -> None:
        """Add to an error what came back, if anything did."""
        bodies = _received_bodies.get()
        if isinstance(error, Exception) and bodies:
            last_body = bodies[-1]
            body_start = last_body.start.decode(errors="replace")
            setattr(
                error,
                _RESPONSE_ATTRIBUTE,
                (last_body.host, f"status {last_body.status}, {_body_text(body_start)}"),
            )
        elif isinstance(error, json.JSONDecodeError):
            setattr(error, _RESPONSE_ATTRIBUTE, (_host_of(self.api), _body_text(error.doc)))
        elif isinstance(getattr(error, "code", None), int):  # an error of Google's client
            setattr(error, _RESPONSE_ATTRIBUTE, (_host_of(self.api), ""))

    def __exit__(
        self,
        error_class: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.mark(error)
        assert self.reset_token is not None, "a block that was entered"
        _received_bodies.reset(self.reset_token)


async def _keep_body(response: Any) -> None:
    """Response hook of httpx: keeps the start of the body while the client reads it."""
    bodies = _received_bodies.get()
    if bodies is None:
        return
    body = _ReceivedBody(response.request.url.netloc.decode(), response.status_code)
    bodies.append(body)
    if response.is_stream_consumed:  # by a hook of the client's own
        body.start.extend(response.content[:_KEPT_BYTES])
        return
    read_bytes = response.aiter_bytes

    async def aiter_bytes(*args: Any, **options: Any) -> AsyncIterator[bytes]:
        async with aclosing(read_bytes(*args, **options)) as parts:
            async for part in parts:
                body.start.extend(part[: _KEPT_BYTES - len(body.start)])
                yield part

    response.aiter_bytes = aiter_bytes


def _body_text(body: str) -> str:
    text = one_line(clean(body), longest=_SHOWN_CHARACTERS) if body.strip() else ""
    return repr(text) if text else "an empty body"


def _host_of(api: Any) -> str:
    """Server of a provider: host and port, without what else an address may hold."""
    client = getattr(api, "client", None)
    base_url = getattr(api, "base_url", None) or getattr(client, "base_url", None)
    address = urlsplit(str(base_url or ""))
    if address.port:
        return f"{address.hostname}:{address.port}"
    return address.hostname or ""


def came_of_a_response(error: BaseException) -> bool:
    """Whether a server had answered when the error was raised."""
    return hasattr(error, _RESPONSE_ATTRIBUTE)


def words_of(error: BaseException, model: Model) -> str:
    """Line for an error: its words, what came back if they do not say that, and from where."""
    cause = error if hasattr(error, _RESPONSE_ATTRIBUTE) else error.__cause__ or error
    host, body = getattr(cause, _RESPONSE_ATTRIBUTE, (_host_of(model.api), ""))
    words = one_line(cause)
    if (
        words == "Connection error." and cause.__cause__ is not None
    ):  # of OpenAI's and Anthropic's clients
        words = one_line(cause.__cause__)
    if body and (isinstance(cause, _UNREADABLE_BODY_ERRORS) or _UNINFORMATIVE_WORDS.match(words)):
        return f"{host or 'the server'} sent {body}"
    return f"{words} (from {host})" if host else words


class ErrorReply(RuntimeError):
    """Error: a vendor's error under status 200, which OpenAI-compatible providers take for a reply."""

    def __init__(self, error: object) -> None:
        super().__init__(f"error under status 200: {json.dumps(error, ensure_ascii=False)}")
        code = str(error.get("code")) if isinstance(error, Mapping) else ""
        self.status_code = int(code) if code.isdecimal() else None
        self.body = {"error": error}


def raise_error_replies(api: Any) -> None:
    """Raise the error that a reply of an OpenAI-compatible provider is; a busy vendor's so that it
    is tried again.
    """
    if "on_response" in vars(api) or not hasattr(api, "on_response"):
        return
    check_response = api.on_response

    def on_response(response: dict[str, Any]) -> None:
        check_response(response)  # OpenRouter's raises its own
        error = response.get("error")
        if error and not response.get("choices"):
            failure = ErrorReply(error)
            status = failure.status_code
            if status is not None and (status in (408, 429) or status >= 500):
                from selfprobe.errors.inspect_private import OpenAIResponseError

                kind = "rate_limit_exceeded" if status == 429 else "server_error"
                raise OpenAIResponseError(kind, str(failure)) from failure
            raise failure

    api.on_response = on_response


def ending_of(response: Mapping[str, Any]) -> str:
    """Vendor's word for how a reply ended, in lower case; "" without one."""
    choices = response.get("choices") or response.get("candidates")
    first_choice: Mapping[str, Any] = {}
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        first_choice = choices[0]
    if _is_error(response.get("error")) or _is_error(first_choice.get("error")):
        return "error"
    for name in ("finish_reason", "finishReason"):
        if isinstance(first_choice.get(name), str):
            return str(first_choice[name]).lower()
    for name in ("stop_reason", "status"):
        if isinstance(response.get(name), str):
            return str(response[name]).lower()
    return ""


def _is_error(error: Any) -> bool:
    """Whether the field "error" of a response says that there is one: some vendors send one whose
    values are empty.
    """
    if isinstance(error, Mapping):
        return any(error.values())
    return bool(error)
