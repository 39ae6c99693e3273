"""Which of a method's settings does a vendor's error object to, and what does it name in their place?

From the error alone: it says what the model takes today, and a table of models would age.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, get_args

from inspect_ai.model import GenerateConfig

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]

EFFORTS = get_args(Effort)
"""Efforts, from the least."""

_NAMES = {
    "reasoning_effort": r"reasoning[ ._]?effort|effort",
    "temperature": r"temperature",
    "logprobs": r"log[ _]?prob",
    "response_schema": r"(response|output)[ ._]?(format|schema|config|mime)|json[ ._]?schema|structured|text\.format"
    r"|guided|grammar",
    "seed": r"(\b|_)seed\b",
    "max_tokens": r"max[ _]?((new|output|completion)[ _]?)?tokens|maximum context length",
}
"""How vendors call a setting of Inspect's, in any case."""

_UNKNOWN = re.compile(
    r"unrecogni[sz]ed|unknown|unexpected|extra (inputs|fields)|not permitted|unsupported (param|argument|field|option)"
    r"|does ?n[o']t support (the )?(param|argument|reasoning|thinking)"
    r"|(param\w*|argument|field) .{0,60}(not|n't) supported"
    r"|reasoning[ _.]?(effort)?.{0,30}is not (supported|allowed|available)",
    re.IGNORECASE,
)
"""Words of a vendor that takes the setting at no value."""

_LISTS = re.compile(r"(one of|(supported|allowed|valid|possible) values|should be|must be|expected)", re.IGNORECASE)
"""Words of a vendor that lists what it takes."""

_AT_MOST = re.compile(
    r"(?:at most|max(?:imum)?(?: allowed)?(?: value)?(?: is| of|:)?|less than or equal to|<=|up to|between \d+ and)"
    r"[ `'\"]*(\d+)",
    re.IGNORECASE,
)
_AT_LEAST = re.compile(
    r"(?:at least|minimum(?: value)?(?: is| of|:)?|greater than or equal to|>=|above)[ `'\"]*(\d+)",
    re.IGNORECASE,
)
_CONTEXT = re.compile(r"(?:context (?:length|window)\D{0,20}|max_new_tokens\W+must be <= )(\d+)", re.IGNORECASE)
_PROMPT = re.compile(r"(\d+) (?:in the messages|in the prompt|`?inputs?`? tokens)", re.IGNORECASE)
"""What a model can hold, and what of it the prompt takes."""

_BAD_REQUEST = re.compile(r"INVALID_ARGUMENT|ValidationException|invalid_request_error")
"""Words of clients whose errors have no HTTP status."""

_NO_ENDPOINT = re.compile(r"no endpoints found that (can handle|support) the (requested|provided)", re.IGNORECASE)
"""OpenRouter's 404 where a model is offered, but nowhere with all settings: the others are about the model's name."""

_TELLING = {"error", "message", "msg", "detail", "loc", "metadata", "raw", "data"}
"""Keys under which vendors say what is wrong; "raw" is the words of the vendor behind OpenRouter. Not "input" and the
like, which quote the prompt.
"""


@dataclass(frozen=True)
class Objection:
    """An error that says that the request is wrong, not that the vendor is busy."""

    fields: tuple[str, ...]
    """Fields of GenerateConfig that it names, the first one first; none where it names no setting of ours."""
    text: str
    """The vendor's words."""
    one_by_one: bool = False
    """Whether the error is surely about a setting, which it does not name."""

    def instead(self, field: str, sent: GenerateConfig) -> dict[str, Any]:
        """What to send in the place of a refused setting: the vendor's own number or word, else nothing.

        No reasoning becomes the least that is named, or where nothing is, the next step of none, minimal, low, nothing.
        """
        if field == "reasoning_effort":
            return {field: self._effort(sent.reasoning_effort)}
        if field == "logprobs":
            most = _AT_MOST.search(self.text)
            fewer = int(most[1]) if most and 0 < int(most[1]) < (sent.top_logprobs or 0) else None
            return {"top_logprobs": fewer} if fewer else {"logprobs": None, "top_logprobs": None}
        if field == "max_tokens":
            return {field: self._limit(sent.max_tokens or 0)}
        return {field: None}

    def _effort(self, sent: str | None) -> str | None:
        """Never back down the ladder, and from "low" on nothing: what is higher is not less reasoning."""
        above = EFFORTS[EFFORTS.index(sent) + 1 :] if sent in ("none", "minimal") else ()
        named = [effort for effort in above if re.search(rf"\b{effort}\b", self.text, re.IGNORECASE)]
        quoted = [effort for effort in named if re.search(rf"[`'\"“‘]{effort}[`'\"”’]", self.text, re.IGNORECASE)]
        if len(named) > 1 or quoted:
            return str((quoted or named)[0])
        return str(above[0]) if above and not (_UNKNOWN.search(self.text) or _LISTS.search(self.text)) else None

    def _limit(self, sent: int) -> int | None:
        context, prompt = _CONTEXT.search(self.text), _PROMPT.search(self.text)
        if context and prompt:  # half of what this prompt leaves, so that longer ones fit too
            half = (int(context[1]) - int(prompt[1])) // 2
            return half if 0 < half < sent else None
        least, most = _AT_LEAST.search(self.text), _AT_MOST.search(self.text)
        if least and int(least[1]) > sent:
            return int(least[1])
        return int(most[1]) if most and 0 < int(most[1]) < sent else None


class Refusal:
    """A block whose error is kept where it is an objection, and raised where it is not.

    Clients of vendors share no class of errors, and Inspect hands some on and wraps others.
    """

    said: Objection | None = None
    error: BaseException | None = None

    def __enter__(self) -> "Refusal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> bool:
        self.error = error
        self.said = objection(error) if error is not None else None
        return self.said is not None


def objection(error: BaseException) -> Objection | None:
    """The objection that an error is, or None: no setting is to blame for a 429, 401 or 500, whatever it says."""
    cause = _cause(error)
    status, text = told(error)
    nowhere = status == 404 and _NO_ENDPOINT.search(text) is not None
    if not (nowhere or status in (400, 422) or (status is None and _BAD_REQUEST.search(str(cause)))):
        return None
    param = getattr(cause, "param", None) or _inner(_body(cause)).get("param")
    named = (isinstance(param, str) and _named(param)) or _named(text)
    return Objection(named, text, one_by_one=nowhere and not named)


def told(error: BaseException) -> tuple[int | None, str]:
    """The HTTP status of a vendor's error, None where it has none, and the vendor's words."""
    cause = _cause(error)
    body = _body(cause)
    codes = (*map(_status, (error, cause)), body.get("code"))
    return next((code for code in codes if isinstance(code, int)), None), " ".join(_words(body)) or str(cause)


def gist(text: str) -> str:
    """An error's words without what differs from call to call (numbers of requests)."""
    return re.sub(r"\b[\w-]*\d[\w-]*\b", "", text)


def _cause(error: BaseException) -> BaseException:
    return (isinstance(error, RuntimeError) and error.__cause__) or error


def _status(error: BaseException) -> int | None:
    codes = (getattr(error, name, None) for name in ("status_code", "code"))
    return next((code for code in codes if isinstance(code, int)), None)


def _body(error: BaseException) -> Mapping[str, Any]:
    """What the vendor answered: clients keep it parsed, or as text (mistral), or as `response` (boto, OpenRouter)."""
    for kept in (getattr(error, "body", None), getattr(error, "response", None)):
        found = _parsed(kept) if isinstance(kept, str) else kept
        if isinstance(found, Mapping):
            return found
    return {}


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _inner(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The vendor's own error in the body of the response."""
    inside = body.get("error", body)
    return inside if isinstance(inside, Mapping) else {}


def _words(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping):
        for key, value in part.items():
            if str(key).lower() in _TELLING:
                yield from _words(value)
    elif isinstance(part, list | tuple):
        for one in part:
            yield from _words(one)


def _named(text: str) -> tuple[str, ...]:
    """The settings by their first mention; "reasoning models" is about effort only where nothing else is named."""
    places = {field: hit.start() for field, name in _NAMES.items() if (hit := re.search(name, text, re.IGNORECASE))}
    if "reasoning_effort" not in places and re.search("reasoning|thinking", text, re.IGNORECASE):
        places["reasoning_effort"] = len(text)
    return tuple(sorted(places, key=lambda field: places[field]))
