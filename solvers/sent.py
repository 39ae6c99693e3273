"""What a call really sent to a model.

Inspect's providers drop what a model is known not to take, without a word in the log: temperature for Claude and for
models that reason, the seed for OpenAI's Responses. So what was applied is read from the request itself.

Candidates are kept for a reply's first token, since nothing reads the others. Providers list them for every token or
for none: twenty for each of 80 tokens are 200 kB of JSON, and to parse, convert and log them took 100 to 150 ms of CPU
a reply, while no other call was sent.
"""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from inspect_ai.log import EvalSample, EvalSampleSummary
from inspect_ai.model import GenerateConfig, Model, ModelCall, ModelOutput
from inspect_ai.solver import TaskState

from selfprobe.errors.arguments import SAME_MODEL
from selfprobe.logs.finished import take
from selfprobe.solvers.hugging_face import is_hugging_face, reported
from selfprobe.solvers.received import Receiving
from selfprobe.solvers.record import ENDING, Applied, Reply, is_another, whole_characters

_requests: ContextVar[list[Mapping[str, Any]] | None] = ContextVar("_requests", default=None)
"""Where the call that is under way notes its requests, the last one last; None in somebody else's calls of a model
object, which a process shares: they get all that they asked for."""

SETTINGS = "request"
"""Where an output's metadata has the settings of its request."""

_TEXTS = re.compile(r"(^|\.)(messages|input|contents|prompt|system|systeminstruction|instructions|tools|extraheaders)$")
"""Parts of a request that hold no settings."""

SIMULATED = ("planted/", "mockllm/")
"""Providers that send nothing to anybody."""

ANSWERED = "answered_"
"""What the entries of a sample's metadata begin with that count the models which answered, before the role: one a role,
since a summary holds no entry above 1 kB."""
ROLES = ("target", "observer", "grader")
NAMES = 8
"""Models that are counted by name in the place of one model; the others are `FURTHER`."""
UNNAMED, FURTHER = "(no name)", "(further models)"

_PLACES = {
    "effort": r"(reasoningeffort|effort|thinkinglevel|thinkingbudget|budgettokens|thinking\.type|enablethinking)",
    "temperature": r"temperature",
    "seed": r"(random)?seed",
    "form": r"(responseformat|responseschema|responsejsonschema|outputformat|format|guidedjson|jsonschema|grammar)",
    "logprobs": r"(logprobs|responselogprobs|toplogprobs)",
    "limit": r"(?<!reasoning\.)(max(completion|output|new)?tokens|numpredict)",
}
"""How vendors call a setting: the end of its path in the request, in lower case and without underscores."""


async def with_request(model: Model, call: Awaitable[ModelOutput]) -> tuple[ModelOutput, Mapping[str, Any] | None]:
    """The output of a call, with candidates for its first token alone, and the request that it came from.

    The request is None where the provider does not tell it, or the reply came from Inspect's cache. The event in
    Inspect's log holds the same list of candidates.

    Args:
        model: The model that is called.
        call: Its `generate`, not yet awaited.
    """
    _listen(model)
    hooks = getattr(getattr(model.api, "http_client", None), "event_hooks", None)
    if hooks is not None and _cut not in hooks["response"]:
        hooks["response"].append(_cut)
    before = _requests.set([])
    try:
        output = await call
        requests = _requests.get()
    finally:
        _requests.reset(before)
    logprobs = output.choices[0].logprobs if output.choices else None
    if logprobs is not None:
        del logprobs.content[1:]
    return output, requests[-1] if requests else None


async def _cut(response: Any) -> None:
    """Cut all but the first token's candidates from a response, so that OpenAI-compatible clients never parse them.

    It is a hook of httpx (Inspect's client is of httpx's successor: the same interface, another type).
    """
    ours = _requests.get() is not None and response.headers.get("content-type", "").startswith("application/json")
    if not (ours and b'"top_logprobs"' in await response.aread()):
        return
    try:
        body = json.loads(response.content)
        for choice in body["choices"]:
            del choice["logprobs"]["content"][1:]
    except (ValueError, KeyError, TypeError):
        return  # not a completion: the provider's client says what is wrong with it
    response._content = json.dumps(body).encode()  # where httpx keeps what `aread` has read; there is no setter


def _listen(model: Model) -> None:
    """Note the requests of a model's provider, whoever calls it; an error told under status 200 is an error.

    Inspect's events hold them for the first calls of a run alone, and for none with `log_model_api=False`; a request's
    settings stay with its output. A call that a killed run had finished has its reply from there.
    """
    api = model.api
    if "generate" in vars(api):
        return
    _heed_errors(api)
    plain = api.generate

    async def generate(*args: Any, **given: Any) -> Any:
        noted = _requests.get()
        if noted is not None and (before := take(str(model), given["input"], given["config"])):
            noted += [before.metadata[SETTINGS]] if before.metadata and SETTINGS in before.metadata else []
            return before
        with Receiving(api) as receiving:
            result: Any = await plain(*args, **given)
            if is_hugging_face(model):
                result = reported(api, result, given["config"])
            output = result[0] if isinstance(result, tuple) else result
            receiving.mark(output)  # an error that is handed back
            if isinstance(output, ModelOutput):
                if not output.choices:
                    raise LookupError("a reply without choices")
                output = whole_characters(output)
                result = (output, *result[1:]) if isinstance(result, tuple) else output
        if noted is not None and isinstance(result, tuple) and isinstance(result[1], ModelCall):
            noted.append(result[1].request)
            if isinstance(result[0], ModelOutput):
                facts = {SETTINGS: _read(result[1].request), ENDING: _ending(result[1].response or {})}
                result[0].metadata = {**(result[0].metadata or {}), **facts}
        return result

    setattr(api, "generate", generate)  # noqa: B010  (mypy lets nobody assign to a method)


class ErrorReply(RuntimeError):
    """A vendor's error under status 200, which OpenAI-compatible providers take for a reply."""

    def __init__(self, error: object) -> None:
        super().__init__(f"error under status 200: {json.dumps(error, ensure_ascii=False)}")
        code = str(error.get("code")) if isinstance(error, Mapping) else ""
        self.status_code = int(code) if code.isdecimal() else None
        self.body = {"error": error}


def _heed_errors(api: Any) -> None:
    """Raise the error that a reply of an OpenAI-compatible provider is; of a busy vendor, so that it is tried again."""
    if "on_response" in vars(api) or not hasattr(api, "on_response"):
        return
    plain = api.on_response

    def on_response(response: dict[str, Any]) -> None:
        plain(response)  # OpenRouter's raises its own
        error = response.get("error")
        if error and not response.get("choices"):
            found = ErrorReply(error)
            if found.status_code is not None and (found.status_code in (408, 429) or found.status_code >= 500):
                from selfprobe.errors.inspect_private import OpenAIResponseError

                kind = "rate_limit_exceeded" if found.status_code == 429 else "server_error"
                raise OpenAIResponseError(kind, str(found)) from found
            raise found

    api.on_response = on_response


def _ending(response: Mapping[str, Any]) -> str:
    """The vendor's word for how a reply ended, in lower case; "" where it says nothing."""
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


def applied(request: Mapping[str, Any] | None, *, thinks: bool) -> Applied:
    """What was applied, by the request; nothing is known without one.

    Args:
        request: As it was sent; see `with_request`.
        thinks: See `Applied`.
    """
    if request is None:
        return Applied(known=False, thinks=thinks)
    settings = dict(_settings(request))
    found = {name: [v for path, v in settings.items() if _ends(path, place)] for name, place in _PLACES.items()}
    told = any("logprobs" in str(one) for path, v in settings.items() if path.endswith("include") for one in v or ())
    return Applied(
        effort=_effort(found["effort"]),
        temperature=next((v for v in found["temperature"] if v is not None), None),
        seed=next((v for v in found["seed"] if v is not None), None),
        form=any(v not in (None, "", "text") for v in found["form"]),
        logprobs=told or any(found["logprobs"]),
        limit=next((v for v in found["limit"] if isinstance(v, int)), None),
        thinks=thinks,
    )


def _settings(part: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting of a request by its path. Of a reply's format the type stands for the whole."""
    for key, value in part.items():
        here = f"{path}.{key}".lower().replace("_", "").removeprefix(".")
        if _TEXTS.search(here):
            continue
        if isinstance(value, Mapping):
            if _ends(here, _PLACES["form"]):
                yield here, value.get("type", "schema")
            else:
                yield from _settings(value, here)
        else:
            yield here, value


def _read(request: Mapping[str, Any]) -> dict[str, Any]:
    """What `applied` reads of a request, by its path: another request with the same settings."""
    places = (*_PLACES.values(), "include")
    return {path: v for path, v in _settings(request) if any(_ends(path, place) for place in places)}


def _ends(path: str, place: str) -> bool:
    return re.search(rf"(^|\.){place}$", path) is not None


def _effort(found: list[Any]) -> str | None:
    """A word where the vendor has words, else the tokens to think with."""
    told = next((value for value in found if value is not None), None)
    if told in (False, 0, "disabled"):
        return "none"
    if isinstance(told, int) and told is not True:
        return f"{told} tokens"
    return "on" if told is True else told and str(told).lower()


def note(state: TaskState, role: str, replies: Mapping[str, Reply], asked: GenerateConfig) -> None:
    """Put what was applied into the sample's metadata, as a line a role, and who answered, for tables of runs.

    Args:
        state: The sample's.
        role: "target", "observer" or "grader".
        replies: What the role replied.
        asked: The settings that the method has for them.
    """
    lines = state.metadata.setdefault("applied", {})
    told = [lines[role]] if role in lines else []
    told += [line for reply in replies.values() if (line := _line(reply, asked))]
    if told:
        lines[role] = "; ".join(dict.fromkeys(told))
    for reply in replies.values():
        if reply.problem != "no_logprobs":  # nobody was asked
            names = state.metadata.setdefault(f"{ANSWERED}{role}", {}).setdefault(reply.model, {})
            known = not reply.of_another or reply.answered_by in names or len(names) < NAMES
            name = (reply.answered_by or UNNAMED) if known else FURTHER
            names[name] = names.get(name, 0) + 1


def _line(reply: Reply, asked: GenerateConfig) -> str:
    if reply.model.startswith(SIMULATED):
        return "takes no settings"
    other = [f"answered by {reply.answered_by} (asked: {reply.model})"] if reply.of_another else []
    return ", ".join([told_of(reply.applied, asked), *other]) if reply.applied else ""


def told_of(applied: Applied, asked: GenerateConfig) -> str:
    """What became of each setting that a method has.

    >>> told_of(Applied(effort="low", limit=64), GenerateConfig(reasoning_effort="none", temperature=0, max_tokens=64))
    'effort low (asked: none), temperature not sent (asked: 0), limit 64'
    >>> told_of(Applied(limit=2048), GenerateConfig())  # Inspect's own, of several providers
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
    shown, wished = (f"{value:g}" if isinstance(value, float | int) else value for value in (sent, asked))
    if shown == wished:
        return f"{name} {wished}"
    return f"{name} {shown or 'not sent'} (asked: {wished})"


def applied_in(seen: Iterable[EvalSampleSummary]) -> dict[str, str]:
    """Role ("target", "observer", "grader") → which settings its calls were really sent with.

    Where samples differ, each way with its number of samples; no role in logs of versions up to 0.2.0.
    """
    ways: dict[str, Counter[str]] = {}
    for sample in seen:
        told = sample.metadata.get("applied")
        for role, way in told.items() if isinstance(told, dict) else ():
            ways.setdefault(str(role), Counter())["; ".join(sorted(str(way).split("; ")))] += 1
    return {role: _ways(count) for role, count in ways.items()}


def answered_in(seen: Iterable[EvalSampleSummary | EvalSample]) -> dict[str, dict[str, Counter[str]]]:
    """Role → model that was asked → model that answered, as the vendor names it, with its number of replies.

    `UNNAMED` is a vendor that names none; no role in logs of versions up to 0.2.0.
    """
    found: dict[str, dict[str, Counter[str]]] = {}
    for sample in seen:
        for key, models in sample.metadata.items():
            role = key.removeprefix(ANSWERED)
            for asked, names in models.items() if role in ROLES and role != key and isinstance(models, dict) else ():
                found.setdefault(role, {}).setdefault(asked, Counter()).update(names)
    return found


def substitutes_in(seen: Iterable[EvalSampleSummary | EvalSample]) -> list[str]:
    """A line for each model in whose place others answered: how many replies, of how many, by whom."""
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


def _ways(count: Counter[str]) -> str:
    if len(count) == 1:
        return next(iter(count))
    return "; ".join(f"{way} ({n} sample{'s' * (n != 1)})" for way, n in count.most_common())
