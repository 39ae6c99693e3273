"""Of the candidates for a reply's tokens, the first token's are kept: nothing reads the others.

Providers list candidates for every token of a reply or for none. Twenty for each of 80 tokens are 200 kB of JSON. To
parse, convert and log them took 100 to 150 ms of CPU a reply, while no other call was sent; a fifth of a
study's run.
"""

import json
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import Any

from inspect_ai.model import Model, ModelOutput

_in_our_call: ContextVar[bool] = ContextVar("_in_our_call", default=False)
"""A model object is shared in a process: somebody else's calls to it get what they asked for."""


async def with_first_candidates(model: Model, call: Awaitable[ModelOutput]) -> ModelOutput:
    """The output of a call, with candidates for its first token alone, in Inspect's log as well.

    Providers whose client is httpx's (OpenAI and all that are compatible with it) never parse the others: they are cut
    from the response. Of other providers they are dropped afterwards; the event in the log holds the same list.

    Args:
        model: The model that is called.
        call: Its `generate`, not yet awaited.
    """
    hooks = getattr(getattr(model.api, "http_client", None), "event_hooks", None)
    if hooks is not None and _cut not in hooks["response"]:
        hooks["response"].append(_cut)
    before = _in_our_call.set(True)
    try:
        output = await call
    finally:
        _in_our_call.reset(before)
    logprobs = output.choices[0].logprobs if output.choices else None
    if logprobs is not None:
        del logprobs.content[1:]
    return output


async def _cut(response: Any) -> None:
    """A hook on httpx's responses (Inspect's client is of httpx's successor: the same interface, another type)."""
    kind = response.headers.get("content-type", "")
    if not (_in_our_call.get() and kind.startswith("application/json") and b'"top_logprobs"' in await response.aread()):
        return
    try:
        body = json.loads(response.content)
        for choice in body["choices"]:
            del choice["logprobs"]["content"][1:]
    except (ValueError, KeyError, TypeError):
        return  # not a completion: the provider's client says what is wrong with it
    response._content = json.dumps(body).encode()  # where httpx keeps what `aread` has read; there is no setter
