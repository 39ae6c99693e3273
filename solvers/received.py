"""What a vendor's server sent back, for the line of an error that says nothing: `'NoneType' object is not iterable`."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from inspect_ai.model import Model

from selfprobe.errors import one_line
from selfprobe.text.safe import clean

SHOWN = 200
"""Characters of a body that a line shows."""

_KEPT = 2000
"""Bytes of a body that are kept while a call is under way."""

_MARK = "selfprobe_received"
"""The attribute of an error that says what came back."""

_SPEECHLESS = (TypeError, AttributeError, LookupError, ValueError, AssertionError)
"""Errors of a client that could not read a body; their words are about Python."""

_EMPTY_WORDS = re.compile(r"(server_error: )?Unexpected non-ChatCompletion response|Error code: \d+$")
"""Words of an error that say no more than that."""


@dataclass
class _Body:
    """One response, as far as it was read."""

    host: str
    status: int
    start: bytearray = field(default_factory=bytearray)


_bodies: ContextVar[list[_Body] | None] = ContextVar("_bodies", default=None)
"""Responses of the call that is under way, the last one last."""


class Receiving:
    """A block in which a provider is asked: an error that leaves it knows what the server sent, and from where.

    Args:
        api: The provider. Of clients that are made anew for each call (Google's, Mistral's) only the error is known.
    """

    def __init__(self, api: Any) -> None:
        self.api = api
        self.before: Token[list[_Body] | None] | None = None

    def __enter__(self) -> "Receiving":
        client = getattr(getattr(self.api, "client", None), "_client", None)
        hooks = getattr(client, "event_hooks", None)
        if isinstance(hooks, dict) and _keep not in hooks["response"]:
            hooks["response"].append(_keep)
        self.before = _bodies.set([])
        return self

    def mark(self, error: object) -> None:
        """Let an error know what came back, where anything did."""
        bodies = _bodies.get()
        if isinstance(error, Exception) and bodies:
            last = bodies[-1]
            setattr(error, _MARK, (last.host, f"status {last.status}, {_shown(last.start.decode(errors='replace'))}"))
        elif isinstance(error, json.JSONDecodeError):
            setattr(error, _MARK, (_host(self.api), _shown(error.doc)))
        elif isinstance(getattr(error, "code", None), int):  # an error of Google's client
            setattr(error, _MARK, (_host(self.api), ""))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.mark(error)
        assert self.before is not None, "a block that was entered"
        _bodies.reset(self.before)


async def _keep(response: Any) -> None:
    """A response hook of httpx: note the start of the body while the client reads it."""
    bodies = _bodies.get()
    if bodies is None:
        return
    body = _Body(response.request.url.netloc.decode(), response.status_code)
    bodies.append(body)
    if response.is_stream_consumed:  # by a hook of the client's own
        body.start.extend(response.content[:_KEPT])
        return
    plain = response.aiter_bytes

    async def aiter_bytes(*args: Any, **given: Any) -> AsyncIterator[bytes]:
        async with aclosing(plain(*args, **given)) as parts:
            async for part in parts:
                body.start.extend(part[: _KEPT - len(body.start)])
                yield part

    response.aiter_bytes = aiter_bytes


def _shown(body: str) -> str:
    text = one_line(clean(body), longest=SHOWN) if body.strip() else ""
    return repr(text) if text else "an empty body"


def _host(api: Any) -> str:
    """Where a provider's server is: host and port, without what else an address may hold."""
    known = getattr(api, "base_url", None) or getattr(getattr(api, "client", None), "base_url", None)
    parts = urlsplit(str(known or ""))
    return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or ""


def came_of_a_response(error: BaseException) -> bool:
    """Whether a server had answered when the error was raised."""
    return hasattr(error, _MARK)


def words_of(error: BaseException, model: Model) -> str:
    """What an error says in a line, what came back where it does not say that, and from where."""
    cause = error if hasattr(error, _MARK) else error.__cause__ or error
    host, body = getattr(cause, _MARK, (_host(model.api), ""))
    words = one_line(cause)
    if words == "Connection error." and cause.__cause__ is not None:  # of OpenAI's and Anthropic's clients
        words = one_line(cause.__cause__)
    if body and (isinstance(cause, _SPEECHLESS) or _EMPTY_WORDS.match(words)):
        return f"{host or 'the server'} sent {body}"
    return f"{words} (from {host})" if host else words
