"""Settings and answers of a call as really sent and received, also for Inspect's `hf/…` models.

Inspect samples every call of an `hf/…` model, or with `-M do_sample=false` none; transformers refuses to sample at
temperature 0; and the seed of a call is lost. Here each call says all three. Calls wait in one queue and are computed
together, those with equal settings and seed in one batch: with `--max-connections 1` a run repeats itself exactly.

Nor does Inspect say why a reply of an `hf/…` model ended, or what transformers was asked: both are added here.

Inspect's providers drop what a model is known not to take, without a word in the log: temperature for Claude and for
models that reason, the seed for OpenAI's Responses. So what was applied is read from the request itself.

Candidates are kept for a reply's first token, since nothing reads the others. Providers list them for every token or
for none: twenty for each of 80 tokens are 200 kB of JSON, and to parse, convert and log them took 100 to 150 ms of CPU
a reply, while no other call was sent.
"""

import functools
import json
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from inspect_ai.log import EvalSample, EvalSampleSummary
from inspect_ai.model import GenerateConfig, Model, ModelCall, ModelOutput, StopReason
from inspect_ai.solver import TaskState

from selfprobe.errors import one_line
from selfprobe.errors.arguments import SAME_MODEL
from selfprobe.logs.resuming import AskedCall, earlier_reply, keep_reply
from selfprobe.solvers.record import (
    ENDING,
    SPLIT_BY_SERVER,
    Applied,
    Reply,
    is_another,
    reported,
    says_nothing,
    whole_characters,
)
from selfprobe.text.safe import clean

_SHOWN = 200
"""Number of characters of a body that a line shows."""

_KEPT = 2000
"""Number of bytes of a body that are kept while a call is under way."""

_MARK = "selfprobe_received"
"""Attribute of an error that holds the response."""

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


class _Receiving:
    """Context in which a provider is asked: an error that leaves it knows what the server sent, and from where.

    Args:
        api: Provider. For clients that are made anew for each call (Google's, Mistral's) only the error is known.
    """

    def __init__(self, api: Any) -> None:
        self.api = api
        self.before: Token[list[_Body] | None] | None = None

    def __enter__(self) -> "_Receiving":
        client = getattr(getattr(self.api, "client", None), "_client", None)
        hooks = getattr(client, "event_hooks", None)
        if isinstance(hooks, dict) and _keep not in hooks["response"]:
            hooks["response"].append(_keep)
        self.before = _bodies.set([])
        return self

    def mark(self, error: object) -> None:
        """Add to an error what came back, if anything did."""
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
    """Response hook of httpx: keeps the start of the body while the client reads it."""
    bodies = _bodies.get()
    if bodies is None:
        return
    body = _Body(response.request.url.netloc.decode(), response.status_code)
    bodies.append(body)
    if response.is_stream_consumed:  # by a hook of the client's own
        body.start.extend(response.content[:_KEPT])
        return
    plain = response.aiter_bytes

    async def aiter_bytes(*args: Any, **options: Any) -> AsyncIterator[bytes]:
        async with aclosing(plain(*args, **options)) as parts:
            async for part in parts:
                body.start.extend(part[: _KEPT - len(body.start)])
                yield part

    response.aiter_bytes = aiter_bytes


def _shown(body: str) -> str:
    text = one_line(clean(body), longest=_SHOWN) if body.strip() else ""
    return repr(text) if text else "an empty body"


def _host(api: Any) -> str:
    """Server of a provider: host and port, without what else an address may hold."""
    known = getattr(api, "base_url", None) or getattr(getattr(api, "client", None), "base_url", None)
    parts = urlsplit(str(known or ""))
    return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or ""


def came_of_a_response(error: BaseException) -> bool:
    """Whether a server had answered when the error was raised."""
    return hasattr(error, _MARK)


def words_of(error: BaseException, model: Model) -> str:
    """Line for an error: its words, what came back if they do not say that, and from where."""
    cause = error if hasattr(error, _MARK) else error.__cause__ or error
    host, body = getattr(cause, _MARK, (_host(model.api), ""))
    words = one_line(cause)
    if words == "Connection error." and cause.__cause__ is not None:  # of OpenAI's and Anthropic's clients
        words = one_line(cause.__cause__)
    if body and (isinstance(cause, _SPEECHLESS) or _EMPTY_WORDS.match(words)):
        return f"{host or 'the server'} sent {body}"
    return f"{words} (from {host})" if host else words


_seed: ContextVar[int | None] = ContextVar("_seed", default=None)
"""Seed of the call under way: the arguments that Inspect hands to transformers have no place for it."""


def is_hugging_face(model: Model) -> bool:
    """Whether transformers computes this model inside the process."""
    return any(one.__name__ == "HuggingFaceAPI" for one in type(model.api).__mro__)


def set_sampling(model: Model, config: GenerateConfig) -> None:
    """Let the next call of this task to a Hugging Face model follow its temperature and seed.

    Args:
        model: Any model; others are left alone.
        config: Settings of the call.
    """
    if not is_hugging_face(model):
        return
    _seed.set(config.seed)
    api: Any = model.api
    if not isinstance(api.model, _SeededModel):
        api.model = _SeededModel(api.model, api.tokenizer)


def _reported(api: Any, output: ModelOutput, config: GenerateConfig) -> tuple[ModelOutput, ModelCall]:
    """Output of a Hugging Face model's provider, with the reason why the reply ended, and its request.

    The request holds transformers' arguments: no effort and no schema, for which it has none.

    Args:
        api: Provider of a model that `set_sampling` has met.
        output: Output of its `generate`; the reason is set in place.
        config: Settings of the call.
    """
    if output.choices and output.stop_reason == "unknown":
        output.choices[0].stop_reason = api.model.end_of(output, config.max_tokens)
    return output, ModelCall.create(_request(api, config), {})


def _request(api: Any, config: GenerateConfig) -> dict[str, Any]:
    """Settings of a call as `_generate` passes them on."""
    sent: dict[str, Any] = {
        "do_sample": api.do_sample if config.temperature is None else config.temperature != 0,
        "temperature": config.temperature,
        "seed": None if config.temperature == 0 else _seed.get(),
        "max_new_tokens": config.max_tokens,
        "logprobs": config.logprobs,
        "enable_thinking": api.enable_thinking,
    }
    return {name: value for name, value in sent.items() if value is not None}


class _SeededModel:
    """A transformers model whose `generate` knows the seed of its caller."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._cut: dict[int, bool] = {}
        """Whether a reply was cut, by `_key`; for batches in which one reply used up the limit."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    @property
    def generate(self) -> Any:
        """The `generate` that Inspect takes; calls with different arguments of a partial are never in one batch."""
        return functools.partial(_generate, self, seed=_seed.get())

    def end_of(self, output: ModelOutput, limit: int | None) -> StopReason:
        """Reason why a reply ended.

        Args:
            output: Output from Inspect: its tokens are those of the longest reply in its batch.
            limit: Largest number of tokens of a reply.

        Returns:
            "unknown" for a reply of which Inspect made something else (a call of a tool) in a batch that was cut.
        """
        if limit is None or output.usage is None:
            return "unknown"
        if output.usage.output_tokens < limit:
            return "stop"
        cut = self._cut.get(_key(output.completion, limit))
        return "unknown" if cut is None else "max_tokens" if cut else "stop"

    def note_ends(self, replies: Any, limit: int | None) -> None:
        """Keep which replies of a batch were cut.

        Args:
            replies: Tokens [reply, token]; a reply that ended earlier is filled up with padding.
            limit: Largest number of tokens of a reply.
        """
        if limit is None or replies.shape[1] < limit:
            return
        settings = self._model.generation_config
        ends = settings.eos_token_id if isinstance(settings.eos_token_id, list) else [settings.eos_token_id]
        texts = self._tokenizer.batch_decode(replies, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        for text, last in zip(texts, replies[:, -1].tolist(), strict=True):
            self._cut[_key(text, limit)] = last not in (*ends, settings.pad_token_id)


def _key(text: str, limit: int) -> int:
    return hash((text, limit))


def _generate(model: _SeededModel, *, seed: int | None, **arguments: Any) -> Any:
    output = _followed(model._model, seed=seed, **arguments)
    model.note_ends(output.sequences[:, arguments["input_ids"].shape[1] :], arguments.get("max_new_tokens"))
    return output


def _followed(model: Any, *, seed: int | None, do_sample: bool, temperature: float | None = None, **rest: Any) -> Any:
    if temperature == 0:
        unused = dict.fromkeys(("temperature", "top_p", "top_k"))  # a model's own defaults, which sampling would read
        return model.generate(do_sample=False, **{**rest, **unused})
    from transformers import set_seed

    if seed is not None:
        set_seed(seed)
    if temperature is None:
        return model.generate(do_sample=do_sample, **rest)
    return model.generate(do_sample=True, temperature=temperature, **rest)


@dataclass
class _Requests:
    """Requests of one call."""

    settings: list[Mapping[str, Any]] = field(default_factory=list)
    """Settings of each, the last one last."""
    earlier: bool = False
    """Whether the reply is one that the sample had before."""


_requests: ContextVar[_Requests | None] = ContextVar("_requests", default=None)
"""Requests of the call that is under way; None in somebody else's calls of a model object, which a process shares: they
get all that they asked for."""

SETTINGS = "request"
"""Key in an output's metadata of the settings of its request."""

_TEXTS = re.compile(r"(^|\.)(messages|input|contents|prompt|system|systeminstruction|instructions|tools|extraheaders)$")
"""Parts of a request that hold no settings."""

_SIMULATED = ("planted/", "mockllm/")
"""Providers that send nothing to anybody."""

_ANSWERED = "answered_"
"""Prefix of the entries of a sample's metadata that count the answering models, before the role: one per role, since a
summary holds no entry above 1 kB."""
_INLINE_THOUGHTS = "inline_thoughts_"
"""Prefix of the entries of a sample's metadata that count, by model, replies whose thought stood in the text: those of
which it was split off, and those in which a marker is left over; the role follows."""
_ROLES = ("target", "observer", "grader")
_MOST_NAMES = 8
"""Number of models that are counted by name in the place of one model; the others are `FURTHER`."""
UNNAMED, FURTHER = "(no name)", "(further models)"

_VENDOR_NAMES = {
    "effort": r"reasoningeffort|effort|thinkinglevel|thinkingbudget|budgettokens|thinking\.type|enablethinking",
    "temperature": r"temperature",
    "seed": r"(?:random)?seed",
    "form": r"responseformat|responseschema|responsejsonschema|outputformat|format|guidedjson|jsonschema|grammar",
    "logprobs": r"logprobs|responselogprobs|toplogprobs",
    "limit": r"(?<!reasoning\.)(?:max(?:completion|output|new)?tokens|numpredict)",
    "include": r"include",
}
"""Vendors' names of a setting: the end of its path in the request, in lower case and without underscores."""

_SETTING = re.compile(r"(?:^|\.)(?:" + "|".join(f"(?P<{name}>{of})" for name, of in _VENDOR_NAMES.items()) + ")$")


async def with_request(
    model: Model, call: Awaitable[ModelOutput]
) -> tuple[ModelOutput, Mapping[str, Any] | None, bool]:
    """Output of a call, the settings of its request (`_read`), and whether the sample had the reply before.

    The output has candidates for its first token alone, and so has the event in Inspect's log. The settings are None
    where the provider does not show its request, or the reply came from Inspect's cache.

    Args:
        model: Model that is called.
        call: Its `generate`, not yet awaited.
    """
    _listen(model)
    hooks = getattr(getattr(model.api, "http_client", None), "event_hooks", None)
    if hooks is not None and _cut not in hooks["response"]:
        hooks["response"].append(_cut)
    requests = _Requests()
    before = _requests.set(requests)
    try:
        output = await call
    finally:
        _requests.reset(before)
    logprobs = output.choices[0].logprobs if output.choices else None
    if logprobs is not None:
        _keep_first(logprobs.content, reported)
    return output, requests.settings[-1] if requests.settings else None, requests.earlier


@contextmanager
def every_model_heard() -> Iterator[None]:
    """A block in which calls of somebody else's solvers and scorers are listened to as our own are."""
    plain = Model.generate

    async def generate(model: Model, *args: Any, **call: Any) -> ModelOutput:
        _listen(model)
        return await plain(model, *args, **call)

    Model.generate = generate  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Model.generate = plain  # type: ignore[method-assign]


async def _cut(response: Any) -> None:
    """Cut tokens' candidates from a response (`_keep_first`), so that OpenAI-compatible clients never parse them.

    It is a hook of httpx (Inspect's client is of httpx's successor: the same interface, another type).
    """
    of_call = _requests.get() is not None and response.headers.get("content-type", "").startswith("application/json")
    if not (of_call and b'"top_logprobs"' in await response.aread()):
        return
    try:
        body = json.loads(response.content)
        for choice in body["choices"]:
            _keep_first(choice["logprobs"]["content"], _reported_in_body)
    except (ValueError, KeyError, TypeError):
        return  # no completion: the provider's client says what is wrong with it
    response._content = json.dumps(body).encode()  # where httpx keeps what `aread` has read; there is no setter


Listed = TypeVar("Listed")
"""A token of a reply with its candidates: Inspect's, or as JSON."""


def _keep_first(tokens: list[Listed], values: Callable[[Listed], list[float]]) -> None:
    """Cut all but the first token's candidates.

    Where these say nothing, a later token's that say something stay: the first one was sure, and no placeholder.
    """
    others = tokens[1:] if tokens and says_nothing(values(tokens[0])) else []
    tokens[1:] = [token for token in others if not says_nothing(values(token))][:1]


def _reported_in_body(token: dict[str, Any]) -> list[float]:
    """Log-probabilities that a body reports for a token."""
    return [candidate["logprob"] for candidate in token.get("top_logprobs") or [token]]


_ASKED = ("input", "tools", "tool_choice", "config")
"""Arguments of a provider's `generate`."""


def _listen(model: Model) -> None:
    """Keep the requests of a model's provider, whoever calls it; an error sent under status 200 is an error.

    Inspect's events hold them for the first calls of a run alone, and for none with `log_model_api=False`; a request's
    settings stay with its output. A call that was answered when its sample was asked before has its reply from there.
    """
    api = model.api
    if "generate" in vars(api):
        return
    _heed_errors(api)
    plain = api.generate

    async def generate(*args: Any, **call: Any) -> Any:
        noted = _requests.get()
        given = dict(zip(_ASKED, args, strict=False)) | call
        asked = AskedCall(str(model), list(given["input"]), *(given[name] for name in _ASKED[1:]))
        before = earlier_reply(asked)
        if before is not None:
            if noted is not None:
                noted.earlier = True
                noted.settings += [before.metadata[SETTINGS]] if before.metadata and SETTINGS in before.metadata else []
            return before
        with _Receiving(api) as receiving:
            result: Any = await plain(*args, **call)
            if is_hugging_face(model):
                result = _reported(api, result, asked.config)
            output = result[0] if isinstance(result, tuple) else result
            receiving.mark(output)  # an error that is handed back
            if isinstance(output, ModelOutput):
                if not output.choices:
                    raise LookupError("a reply without choices")
                output = whole_characters(output)
                result = (output, *result[1:]) if isinstance(result, tuple) else output
        if noted is not None and isinstance(result, tuple) and isinstance(result[1], ModelCall):
            noted.settings.append(_read(result[1].request))
            if isinstance(result[0], ModelOutput):
                facts = {SETTINGS: noted.settings[-1], ENDING: _ending(result[1].response or {})}
                result[0].metadata = {**(result[0].metadata or {}), **facts}
        if isinstance(output, ModelOutput):
            keep_reply(asked, output)
        return result

    setattr(api, "generate", generate)  # noqa: B010  (mypy lets nobody assign to a method)


class ErrorReply(RuntimeError):
    """Error: a vendor's error under status 200, which OpenAI-compatible providers take for a reply."""

    def __init__(self, error: object) -> None:
        super().__init__(f"error under status 200: {json.dumps(error, ensure_ascii=False)}")
        code = str(error.get("code")) if isinstance(error, Mapping) else ""
        self.status_code = int(code) if code.isdecimal() else None
        self.body = {"error": error}


def _heed_errors(api: Any) -> None:
    """Raise the error that a reply of an OpenAI-compatible provider is; a busy vendor's so that it is tried again."""
    if "on_response" in vars(api) or not hasattr(api, "on_response"):
        return
    plain = api.on_response

    def on_response(response: dict[str, Any]) -> None:
        plain(response)  # OpenRouter's raises its own
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


def _ending(response: Mapping[str, Any]) -> str:
    """Vendor's word for how a reply ended, in lower case; "" without one."""
    listed = response.get("choices") or response.get("candidates")
    first = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], Mapping) else {}
    errors = (response.get("error"), first.get("error"))
    if any(any(error.values()) if isinstance(error, Mapping) else error for error in errors):
        return "error"
    words = (
        *(first.get(name) for name in ("finish_reason", "finishReason")),
        *(response.get(name) for name in ("stop_reason", "status")),
    )
    return next((word.lower() for word in words if isinstance(word, str)), "")


def applied(settings: Mapping[str, Any] | None, *, thinks: bool) -> Applied:
    """Settings that were applied; where the request is not known nothing is.

    Args:
        settings: Settings of the request; see `with_request`.
        thinks: See `Applied`.
    """
    if settings is None:
        return Applied(known=False, thinks=thinks)
    values = defaultdict[str | None, list[Any]](list)
    for path, value in settings.items():
        values[_setting(path)].append(value)
    included = any("logprobs" in str(one) for listed in values["include"] for one in listed or ())
    return Applied(
        effort=_effort(values["effort"]),
        temperature=next((v for v in values["temperature"] if v is not None), None),
        seed=next((v for v in values["seed"] if v is not None), None),
        form=any(v not in (None, "", "text") for v in values["form"]),
        logprobs=included or any(values["logprobs"]),
        limit=next((v for v in values["limit"] if isinstance(v, int)), None),
        thinks=thinks,
    )


def _settings(part: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting of a request by its path. The type of a reply's format stands for the whole format."""
    for key, value in part.items():
        here = f"{path}.{key}".lower().replace("_", "").removeprefix(".")
        if _TEXTS.search(here):
            continue
        if isinstance(value, Mapping):
            if _setting(here) == "form":
                yield here, value.get("type", "schema")
            else:
                yield from _settings(value, here)
        else:
            yield here, value


def _read(request: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a request that `applied` reads, by path."""
    return {path: value for path, value in _settings(request) if _setting(path)}


def _setting(path: str) -> str | None:
    """Name in `_VENDOR_NAMES` of the setting at a path of a request; None for what is none of them."""
    match = _SETTING.search(path)
    return match and match.lastgroup


def _effort(values: list[Any]) -> str | None:
    """Effort as a word where the vendor has words, else as the tokens to think with."""
    given = [value for value in values if value is not None]
    budgets = [value for value in given if isinstance(value, int) and not isinstance(value, bool)]
    first = next(iter(budgets or given), None)
    if first in (False, 0, "disabled"):
        return "none"
    if isinstance(first, int) and first is not True:
        return f"{first} tokens"
    return "on" if first is True else first and str(first).lower()


def note(state: TaskState, role: str, replies: Mapping[str, Reply], asked: GenerateConfig) -> None:
    """Note what was applied in the sample's metadata, as a line per role, and who answered, for tables of runs.

    Args:
        state: State of the sample.
        role: "target", "observer" or "grader".
        replies: Replies of the role.
        asked: Settings that the method has for them.
    """
    lines = state.metadata.setdefault("applied", {})
    ways = lines[role].split("; ") if role in lines else []
    ways += [line for reply in replies.values() if (line := _line(reply, asked))]
    if ways:
        lines[role] = "; ".join(dict.fromkeys(ways))
    for reply in replies.values():
        if reply.problem != "no_logprobs":  # nobody was asked
            names = state.metadata.setdefault(f"{_ANSWERED}{role}", {}).setdefault(reply.model, {})
            known = not reply.of_another or reply.answered_by in names or len(names) < _MOST_NAMES
            name = (reply.answered_by or UNNAMED) if known else FURTHER
            names[name] = names.get(name, 0) + 1
        if reply.inline_thought:
            counts = state.metadata.setdefault(f"{_INLINE_THOUGHTS}{role}", {})
            split, left = counts.get(reply.model, (0, 0))
            is_left = reply.problem == "garbled"
            counts[reply.model] = [split + (not is_left), left + is_left]


def _line(reply: Reply, asked: GenerateConfig) -> str:
    if reply.model.startswith(_SIMULATED):
        return "takes no settings"
    other = [f"answered by {reply.answered_by} (asked: {reply.model})"] if reply.of_another else []
    return ", ".join([_as_text(reply.applied, asked), *other]) if reply.applied else ""


def _as_text(applied: Applied, asked: GenerateConfig) -> str:
    """Outcome of each setting that a method has.

    >>> _as_text(Applied(effort="low", limit=64), GenerateConfig(reasoning_effort="none", temperature=0, max_tokens=64))
    'effort low (asked: none), temperature not sent (asked: 0), limit 64'
    >>> _as_text(Applied(limit=2048), GenerateConfig())  # Inspect's own, of several providers
    'limit 2048 (asked: no)'
    """
    if not applied.known:
        return "not known"
    parts = [
        _part("effort", applied.effort, asked.reasoning_effort),
        _part("temperature", applied.temperature, asked.temperature),
        _part("seed", applied.seed is not None, asked.seed is not None),
        _part("JSON schema", applied.form, asked.response_schema is not None),
        _part("logprobs", applied.logprobs, bool(asked.logprobs)),
        _part("limit", applied.limit, asked.max_tokens)
        or (f"limit {applied.limit} (asked: no)" if applied.limit else ""),
    ]
    return ", ".join(part for part in parts if part)


def _part(name: str, sent: str | float | None, asked: str | float | None) -> str:
    if asked is None or asked is False:
        return ""
    if asked is True:
        return name if sent else f"no {name}"
    sent_text = "not sent" if sent in (None, "") else _as_digits(sent)
    asked_text = _as_digits(asked)
    return f"{name} {asked_text}" if sent_text == asked_text else f"{name} {sent_text} (asked: {asked_text})"


def _as_digits(value: str | float) -> str:
    """A setting as text: whole numbers with all of their digits.

    >>> _as_digits(0.0), _as_digits(1000001), _as_digits("low")
    ('0', '1000001', 'low')
    """
    return f"{value:g}" if isinstance(value, float) else str(value)


def applied_in(seen: Iterable[EvalSampleSummary]) -> dict[str, str]:
    """Role ("target", "observer", "grader") → settings that its calls were really sent with.

    Where samples differ, each variant has its number of samples; logs of versions up to 0.2.0 have no role.
    """
    ways: dict[str, Counter[str]] = {}
    for sample in seen:
        by_role = sample.metadata.get("applied")
        for role, way in by_role.items() if isinstance(by_role, dict) else ():
            ways.setdefault(str(role), Counter())["; ".join(sorted(str(way).split("; ")))] += 1
    roles = sorted(ways, key=lambda role: (_ROLES.index(role) if role in _ROLES else len(_ROLES), role))
    return {role: _ways(ways[role]) for role in roles}


def answered_in(seen: Iterable[EvalSampleSummary | EvalSample]) -> dict[str, dict[str, Counter[str]]]:
    """Role → model that was asked → model that answered, as the vendor names it, with its number of replies.

    `UNNAMED` is a vendor that names none; logs of versions up to 0.2.0 have no role.
    """
    counts: dict[str, dict[str, Counter[str]]] = {}
    for sample in seen:
        for key, models in sample.metadata.items():
            role = key.removeprefix(_ANSWERED)
            for asked, names in models.items() if role in _ROLES and role != key and isinstance(models, dict) else ():
                counts.setdefault(role, {}).setdefault(asked, Counter()).update(names)
    return counts


def substitutes_in(seen: Iterable[EvalSampleSummary | EvalSample]) -> list[str]:
    """Line for each model in whose place others answered: number of replies, of all, and by which model."""
    samples = list(seen)
    left_out = any(sample.metadata.get(SAME_MODEL) for sample in samples)
    lines = []
    for role, models in sorted(answered_in(samples).items()):
        for asked, names in models.items():
            others = Counter({name: n for name, n in names.items() if name == FURTHER or is_another(asked, name)})
            if others:
                by = ", ".join(f"{name} ({n})" for name, n in others.most_common())
                end = "these are unscored" if left_out else f"-T {SAME_MODEL}=true leaves such replies unscored"
                lines.append(f"{asked} ({role}): {others.total()} of {names.total()} replies came from {by}; {end}.")
    return lines


def remarks_in(seen: Iterable[EvalSampleSummary | EvalSample]) -> list[str]:
    """Lines on how models answered that a reader of the numbers should know."""
    samples = list(seen)
    return [*substitutes_in(samples), *inline_thoughts_in(samples)]


def inline_thoughts_in(seen: Iterable[EvalSampleSummary | EvalSample]) -> list[str]:
    """Line for each model whose replies held its thoughts: of how many, and how many of them cannot be read."""
    splits, leftovers = Counter[str](), Counter[str]()
    for sample in seen:
        for role in _ROLES:
            for model, (split, left) in sample.metadata.get(f"{_INLINE_THOUGHTS}{role}", {}).items():
                splits[model] += split
                leftovers[model] += left
    lines = []
    for model in sorted(splits):
        total = splits[model] + leftovers[model]
        held = f"{total} replies held thoughts, which are split off here"
        if leftovers[model]:
            held += f", and {leftovers[model]} of them markers that are left over (garbled)"
        lines.append(f"{model}: {held}; {SPLIT_BY_SERVER}.")
    return lines


def _ways(count: Counter[str]) -> str:
    if len(count) == 1:
        return next(iter(count))
    return "; ".join(f"{way} ({n} sample{'s' * (n != 1)})" for way, n in count.most_common())
