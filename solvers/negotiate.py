"""Negotiation of a method's wishes with a model: what it takes, what its errors object to, when to
stop.

Only the vendor's errors say what a model takes today: a table of models would age.

A call is refused for good where every other call would meet the same error: a wrong key, model or
account, a bad request. A vendor that is busy or away is not meant: Inspect tries again.

A method *needs* some settings and would *like* others: no reasoning, temperature 0, a JSON schema,
a short limit. What a vendor refuses is sent otherwise or left out, as its answer says: the first
error 400 that names the setting. It is remembered for the model, and its first calls wait for one
another, so that it costs one request a refused setting.
"""

import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import anyio
from inspect_ai.model import GenerateConfig, Model, ModelAPI, ModelOutput, ModelUsage

from selfprobe.errors import one_line
from selfprobe.errors.arguments import one_of, whole
from selfprobe.errors.inspect_private import sample_active
from selfprobe.solvers.record import Reply, reply_from, split_completion
from selfprobe.solvers.request_settings import applied
from selfprobe.solvers.sent import with_request
from selfprobe.solvers.server_responses import came_of_a_response, words_of
from selfprobe.text import busy

_ROOM = 8192
"""Number of tokens added to a method's own limit for a model that thinks although it was asked not
to.
"""

PROMPT = 20
"""Seconds after which a call that was not refused is at work: vendors look at the settings before
they work.
"""


@dataclass
class _Trial:
    """A call whose outcome others wait for, since it tries settings that the model was never asked
    with.
    """

    settings: frozenset[str]
    until: float
    """Time from which it counts as not refused, on anyio's clock."""
    over: anyio.Event = field(default_factory=anyio.Event)


@dataclass
class Terms:
    """Knowledge of one model in this process. Settings are named as in GenerateConfig."""

    instead: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Refused setting → what is sent instead."""
    taken: set[str] = field(default_factory=set)
    """Settings that a call succeeded with: no call waits for another's trial of them."""
    insisted: set[str] = field(default_factory=set)
    """Settings whose refusal came back when they were not sent: the refusal was about something
    else.
    """
    least: int = 0
    most: int | None = None
    """Ends of a token limit, where the vendor named them."""
    thinks: bool | None = None
    """Whether a reply to a method's own limit held nothing but reasoning, and one to a larger limit
    was whole; False where the larger limit did not help.
    """
    mute: bool = False
    """Whether the model gave no logprobs to a method that needs them."""
    opens_thought: bool = False
    """Whether the model's prompt opens a thought that its server does not split off: one of its
    replies ended a thought that never began, so that a reply which is cut before that end is a
    thought.
    """
    guessed: set[str] = field(default_factory=set)
    """Settings that were left out once for an error that names none."""
    trial: _Trial | None = None

    def meet(
        self, wishes: GenerateConfig, likes: Collection[str], *, room: bool = False
    ) -> GenerateConfig:
        """Settings to send, without wishes known to be refused. `room` adds tokens for reasoning."""
        changes: dict[str, Any] = {}
        if "max_tokens" in likes and wishes.max_tokens is not None:
            more = _ROOM if (room or self.thinks) and wishes.max_tokens < _ROOM else 0
            limit = max(wishes.max_tokens + more, self.least)
            changes["max_tokens"] = min(limit, self.most or limit)
        for name in likes:
            changes |= self.instead.get(name, {})
        return wishes.model_copy(update=changes)

    def learn(self, name: str, instead: dict[str, Any], sent: GenerateConfig) -> None:
        """Note that a setting was refused: from now on send `instead`, or keep the end of a limit
        that was named.
        """
        limit = instead.get("max_tokens")
        if limit is None:
            self.instead[name] = instead
        elif limit > (sent.max_tokens or 0):
            self.least = limit
        else:
            self.most = limit
        self.taken.discard(name)

    @asynccontextmanager
    async def turn(self, wanted: Collection[str]) -> AsyncIterator[None]:
        """Wait while another call tries settings, until those of this one are known; try those that
        are not.

        A trial that was not refused in `PROMPT` seconds is at work, and its settings count as
        taken: a reply can take minutes.
        """
        while (untried := frozenset(wanted) - self.taken) and self.trial is not None:
            trial = self.trial
            with anyio.CancelScope(deadline=trial.until):
                await trial.over.wait()
            if self.trial is trial:
                self.taken |= trial.settings
                self.trial = None
        if not untried:
            yield
            return
        mine = self.trial = _Trial(untried, anyio.current_time() + PROMPT)
        try:
            yield
            self.taken |= untried
        finally:
            mine.over.set()
            if self.trial is mine:
                self.trial = None


_terms: WeakKeyDictionary[ModelAPI, Terms] = WeakKeyDictionary()


def terms_of(model: Model) -> Terms:
    """Knowledge of a model; its roles share it."""
    return _terms.setdefault(model.api, Terms())


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]

EFFORTS = get_args(Effort)
"""Efforts, in rising order."""

_NAMES = {
    "reasoning_effort": r"reasoning[ ._]?effort|effort",
    "temperature": r"temperature",
    "logprobs": r"log[ _]?prob",
    "response_schema": r"(response|output)[ ._]?(format|schema|config|mime)|json[ ._]?schema|structured|text\.format"
    r"|guided|grammar",
    "seed": r"(\b|_)seed\b",
    "max_tokens": r"max[ _]?((new|output|completion)[ _]?)?tokens|maximum context length",
}
"""Vendors' names of Inspect's settings, in any case."""

_UNKNOWN = re.compile(
    r"unrecogni[sz]ed|unknown|unexpected|extra (inputs|fields)|not permitted|unsupported (param|argument|field|option)"
    r"|does ?n[o']t support (the )?(param|argument|reasoning|thinking)"
    r"|(param\w*|argument|field) .{0,60}(not|n't) supported"
    r"|reasoning[ _.]?(effort)?.{0,30}is not (supported|allowed|available)",
    re.IGNORECASE,
)
"""Words of a vendor that takes the setting at no value."""

_LISTS = re.compile(
    r"(one of|(supported|allowed|valid|possible) values|should be|must be|expected)", re.IGNORECASE
)
"""Words of a vendor that lists the values it takes."""

_AT_MOST = re.compile(
    r"(?:at most|max(?:imum)?(?: allowed)?(?: value)?(?: is| of|:)?|less than or equal to|<=|up to|between \d+ and)"
    r"[ `'\"]*(\d+)",
    re.IGNORECASE,
)
_AT_LEAST = re.compile(
    r"(?:at least|minimum(?: value)?(?: is| of|:)?|greater than or equal to|>=|above)[ `'\"]*(\d+)",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    r"(?:context (?:length|window)\D{0,20}|max_new_tokens\W+must be <= )(\d+)", re.IGNORECASE
)
_PROMPT = re.compile(r"(\d+) (?:in the messages|in the prompt|`?inputs?`? tokens)", re.IGNORECASE)
"""Number of tokens that a model can hold, and how many of them the prompt takes."""

_BAD_REQUEST = re.compile(r"INVALID_ARGUMENT|ValidationException|invalid_request_error")
"""Words of clients whose errors have no HTTP status."""

_NO_ENDPOINT = re.compile(
    r"no endpoints found that (can handle|support) the (requested|provided)", re.IGNORECASE
)
"""Words of OpenRouter's 404 where a model is offered, but nowhere with all settings: others are
about its name.
"""

_TELLING = {"error", "message", "msg", "detail", "loc", "metadata", "raw", "data"}
"""Keys under which vendors say what is wrong; "raw" holds the words of the vendor behind
OpenRouter. "input" and similar keys, which quote the prompt, are left out.
"""


@dataclass(frozen=True)
class Objection:
    """Error that says that the request is wrong, not that the vendor is busy."""

    fields: tuple[str, ...]
    """Fields of GenerateConfig that the error names, in order; none where it names no setting of
    ours.
    """
    text: str
    """Words of the vendor."""
    one_by_one: bool = False
    """Whether the error is surely about a setting, which it does not name."""

    def instead(self, field: str, sent: GenerateConfig) -> dict[str, Any]:
        """Replacement of a refused setting: the vendor's own number or word, else nothing.

        No reasoning becomes the least named effort, or without one, the next step of none, minimal,
        low, nothing.
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
        """Next effort, never back down the ladder, and nothing from "low" on: what is higher is not
        less reasoning.
        """
        above = EFFORTS[EFFORTS.index(sent) + 1 :] if sent in ("none", "minimal") else ()
        named = [
            effort for effort in above if re.search(rf"\b{effort}\b", self.text, re.IGNORECASE)
        ]
        quoted = [
            effort
            for effort in named
            if re.search(rf"[`'\"“‘]{effort}[`'\"”’]", self.text, re.IGNORECASE)
        ]
        if len(named) > 1 or quoted:
            return str((quoted or named)[0])
        return (
            str(above[0])
            if above and not (_UNKNOWN.search(self.text) or _LISTS.search(self.text))
            else None
        )

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
    """Context whose error is kept where it is an objection, and raised where it is not.

    Clients of vendors share no class of errors, and Inspect hands some on and wraps others.
    """

    objection: Objection | None = None
    error: BaseException | None = None

    def __enter__(self) -> "Refusal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> bool:
        self.error = error
        self.objection = objection(error) if error is not None else None
        return self.objection is not None


def objection(error: BaseException) -> Objection | None:
    """Objection that an error is, or None: no setting is to blame for a 429, 401 or 500, whatever
    its words.
    """
    cause = _cause(error)
    status, text = _status_and_words(error)
    nowhere = status == 404 and _NO_ENDPOINT.search(text) is not None
    if not (
        nowhere or status in (400, 422) or (status is None and _BAD_REQUEST.search(str(cause)))
    ):
        return None
    param = getattr(cause, "param", None) or _inner(_body(cause)).get("param")
    named = (isinstance(param, str) and _named(param)) or _named(text)
    return Objection(named, text, one_by_one=nowhere and not named)


def _status_and_words(error: BaseException) -> tuple[int | None, str]:
    """HTTP status of a vendor's error, None where it has none, and the vendor's words."""
    cause = _cause(error)
    body = _body(cause)
    codes = (*map(_status, (error, cause)), body.get("code"))
    return next((code for code in codes if isinstance(code, int)), None), " ".join(
        _words(body)
    ) or str(cause)


def _gist(text: str) -> str:
    """Words of an error without what differs from call to call (numbers of requests)."""
    return re.sub(r"\b[\w-]*\d[\w-]*\b", "", text)


def _cause(error: BaseException) -> BaseException:
    return (isinstance(error, RuntimeError) and error.__cause__) or error


def _status(error: BaseException) -> int | None:
    codes = (getattr(error, name, None) for name in ("status_code", "code"))
    return next((code for code in codes if isinstance(code, int)), None)


def _body(error: BaseException) -> Mapping[str, Any]:
    """Body of the vendor's answer: clients keep it parsed, as text (mistral), or as `response`
    (boto, OpenRouter).
    """
    for kept in (getattr(error, "body", None), getattr(error, "response", None)):
        body = _parsed(kept) if isinstance(kept, str) else kept
        if isinstance(body, Mapping):
            return body
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
    """Settings by their first mention; "reasoning models" is about effort only where nothing else
    is named.
    """
    places = {
        field: hit.start()
        for field, name in _NAMES.items()
        if (hit := re.search(name, text, re.IGNORECASE))
    }
    if "reasoning_effort" not in places and re.search("reasoning|thinking", text, re.IGNORECASE):
        places["reasoning_effort"] = len(text)
    return tuple(sorted(places, key=lambda field: places[field]))


_ENOUGH = 3
"""Number of samples that a model refused in the same words before it is asked no more. One for a
wrong key.
"""

_FOR_GOOD = (400, 401, 402, 403, 404, 405, 410, 413, 422)
_ACCOUNT = (401, 402)
"""Statuses of errors that no prompt can cause: they end even a run whose calls succeeded before."""

_ABOUT_PROMPT = re.compile(
    r"flag|moderat|policy|polici|safety|harm|violat|blocked|too (long|large)|context length", re.I
)
"""Words of an error about one prompt, which says nothing about the next one."""

_HELP = {
    401: "Check the key",
    402: "The account needs credit",
    403: "The key's account or region may not use this model",
    404: "Check the model's name and the address that it is asked at (--model-base-url)",
    429: "The account's quota is used up",
}
"""Status → remedy."""

_NO_SETTING = "Leaving out what the task can leave out did not help"
_OPTIONS = {
    "reasoning_effort": "-T effort",
    "max_tokens": "-T answer_tokens (or of another limit that was set)",
}

_SHOWN = re.compile(
    r"^Sample error \(id: .*?, epoch: \d+\): (not asked: )?\S+ refused a call: ", re.DOTALL
)
# The words repeat for each sample of a run: they are in the log, and were printed once.
logging.getLogger("inspect_ai._eval.task.run").addFilter(
    lambda record: not _SHOWN.match(record.getMessage())
)


class Refused(RuntimeError):
    """Error: a call that a vendor refused for good, or that was not made after such refusals; in
    one line.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        """Inspect shows and logs this of an error."""


@dataclass
class _Standing:
    """Outcome of one run's calls to a model."""

    run: str | None
    answered: bool = False
    refused: dict[str, set[object]] = field(default_factory=dict)
    """Vendor's words → samples whose calls it refused so, since its last reply."""
    closed: str = ""
    """Words with which the model refuses every call, once that is known."""


_standings: WeakKeyDictionary[ModelAPI, _Standing] = WeakKeyDictionary()
_ended: dict[str, str] = {}
"""Running task → why it asks no model any more: its other models are not paid for samples that must
fail.
"""


def _standing_of(model: Model) -> _Standing:
    active = sample_active()
    run = active.run_id if active else None
    standing = _standings.get(model.api)
    if standing is None or standing.run != run or run is None:
        standing = _standings[model.api] = _Standing(run)
    return standing


def _refuse_if_closed(model: Model) -> None:
    """Raise at once the model's error, where it refuses every call of this run.

    Raises:
        Refused: It does, or another model of the same task does.
    """
    active = sample_active()
    if active is None:
        return
    if closed := _standing_of(model).closed:
        _ended[active.eval_id] = closed
    if active.eval_id in _ended:
        raise Refused(f"not asked: {_ended[active.eval_id]}")


class Asking:
    """Context in which a model is asked: a refusal for good is printed once per run and counted.

    Args:
        model: Model that is asked.
        needs: Settings of the call that are sent unchanged.

    Raises:
        Refused: Instead of the error of the vendor's client.
    """

    def __init__(self, model: Model, needs: GenerateConfig) -> None:
        self.model, self.needs = model, needs

    def __enter__(self) -> None:
        """Nothing is known before the call."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if error is None:
            standing = _standing_of(self.model)
            standing.answered = True
            standing.refused.clear()
        elif isinstance(error, Exception) and not isinstance(error, Refused):
            last = error.last_attempt.exception() if hasattr(error, "last_attempt") else None
            status, text = _status_and_words(last or error)
            if re.fullmatch(
                r"Error code: \d+", text
            ):  # the client's words, where the body is none of an API
                text = words_of(last or error, self.model)
            if _for_good(status, text):
                raise Refused(
                    _note(self.model, status, text, _helps(self.model, status, error, self.needs))
                ) from error
            if last is not None:  # the error of Inspect's retries names no reason
                words = words_of(last, self.model)
                raise Refused(f"{self.model} gave no answer after all retries: {words}") from error
            if came_of_a_response(error):
                raise Refused(
                    f"{self.model} gave no reply that can be read: {words_of(error, self.model)}"
                ) from error


def _for_good(status: int | None, text: str) -> bool:
    return status in _FOR_GOOD or (status == 429 and "quota" in text.lower())


def _note(model: Model, status: int | None, text: str, helps: str) -> str:
    """Count a refusal and print what is new; the refusal in a line."""
    standing, active = _standing_of(model), sample_active()
    refusal = f"{model} refused a call: {one_line(f'Error code: {status} - {text}')}"
    samples = standing.refused.setdefault(_gist(text), set())
    lines = [] if samples else [f"{refusal.rstrip('.')}. {helps}."]
    samples.add((active.sample.id, active.epoch) if active else object())
    about_prompt = status not in _ACCOUNT and (standing.answered or _ABOUT_PROMPT.search(text))
    enough = 1 if status == 401 and not standing.answered else _ENOUGH
    if standing.run and not standing.closed and not about_prompt and len(samples) >= enough:
        standing.closed = refusal
        alike = f": it refused {len(samples)} samples in the same words" if len(samples) > 1 else ""
        lines.append(f"{model} is asked no more in this run{alike}.")
    if lines:
        logging.getLogger(__name__).warning(" ".join(lines))
    return refusal


def _helps(model: Model, status: int | None, error: Exception, needs: GenerateConfig) -> str:
    refused = objection(error)
    needed = [
        name
        for name in (refused.fields if refused else ())
        if getattr(needs, name, None) is not None
    ]
    if needed:
        return f"The value of {_OPTIONS.get(needed[0], needed[0])} was refused: choose another, or leave it out"
    keys = [name for name in model.api.api_key_vars if status == 401]
    return _HELP.get(status or 0, _NO_SETTING) + (f" ({' or '.join(keys)})" if keys else "")


SETTINGS = ("reasoning_effort", "response_schema", "seed", "temperature", "logprobs", "max_tokens")
"""Settings that can be negotiated, as Inspect names them; in the order in which they are left out
where a vendor says that one is to blame, but not which. Models that know no effort do not reason,
and replies without a schema are still parsed; another temperature is another measurement.
"""

Send = Callable[[GenerateConfig], Awaitable[ModelOutput]]


def user_settings(answer_tokens: int | None = None, effort: Effort | None = None) -> GenerateConfig:
    """Needs that a user set with `-T answer_tokens` and `-T effort`, which are sent unchanged.

    Raises:
        InputError: One of them is no such value.
    """
    whole(answer_tokens=answer_tokens, optional=True)
    if effort is not None:
        one_of("effort", effort, get_args(Effort))
    return GenerateConfig(max_tokens=answer_tokens, reasoning_effort=effort)


def merged(config: GenerateConfig, *others: GenerateConfig) -> GenerateConfig:
    """All settings, of which a later one wins; Inspect's `merge` copies each value deeply, too much
    for every call.
    """
    changes = {name: value for other in others for name, value in other if value is not None}
    return config.model_copy(update=changes)


@dataclass
class _Call:
    """One reply under way."""

    terms: Terms
    wishes: GenerateConfig
    needs: GenerateConfig
    spent: dict[str, str] = field(default_factory=dict)
    """Settings that it gave up, with the objection to each."""
    guessed: list[str] = field(default_factory=list)
    """Settings that it left out since the vendor named none."""
    guesses: list[list[str]] | None = None
    """Settings that it could leave out then, one after the other; None before the first."""

    room: bool = False
    """Whether it was sent again with room to think."""
    likes: list[str] = field(init=False)
    """Settings that can be given up."""
    needs_logprobs: bool = field(init=False)

    def __post_init__(self) -> None:
        self.needs_logprobs = bool(self.needs.logprobs)
        if self.needs_logprobs:  # as a wish, the vendor may say of how many tokens
            self.wishes = merged(self.wishes, self.needs)
            self.needs = self.needs.model_copy(update=_without("logprobs"))
        self.likes = [
            n
            for n in SETTINGS
            if getattr(self.wishes, n) is not None and getattr(self.needs, n) is None
        ]

    def settings(self) -> GenerateConfig:
        """Settings to send, by what is known now: other calls learn too."""
        return merged(self.terms.meet(self.wishes, self.likes, room=self.room), self.needs)

    @property
    def trials(self) -> list[str]:
        """Settings whose trials it waits for; limits one by one, since a model may think within one
        and not another.

        A call in a batch waits for none: a trial would be a batch of its own.
        """
        if self.wishes.batch:
            return []
        limit = [] if self.terms.thinks else [f"max_tokens {self.wishes.max_tokens}"]
        return [name for like in self.likes for name in (limit if like == "max_tokens" else [like])]

    def lacks_logprobs(self) -> bool:
        """Whether the model is known to give no candidates for the first token to a method that
        needs them.
        """
        return self.needs_logprobs and (self.terms.mute or not self.settings().logprobs)

    def gives_up(self, refused: Objection, sent: GenerateConfig) -> bool:
        """Whether something was given up for an objection to what was sent, so that it is worth
        sending again.
        """
        if not refused.fields:
            return self._guesses(sent, one_by_one=refused.one_by_one)
        for name in refused.fields:
            if name not in self.likes:
                if getattr(sent, name) is not None:  # a need
                    return False
            elif _of(sent, name) != _of(self.settings(), name):  # another call gave it up meanwhile
                return True
            elif getattr(sent, name) is None:
                self._insist(name, refused)
            elif name not in self.terms.insisted:
                self.spent[name] = _gist(refused.text)
                self.terms.learn(name, refused.instead(name, sent), sent)
                return True
        return False

    def _insist(self, name: str, refused: Objection) -> None:
        """Take a setting back whose refusal came back without it: it was about something else."""
        if self.spent.get(name) == _gist(refused.text):
            self.terms.instead.pop(name, None)
            self.terms.insisted.add(name)

    def _guesses(self, sent: GenerateConfig, *, one_by_one: bool) -> bool:
        """Leave out, once per model, untried settings but the limit: each alone if refused, then
        all together.

        Candidates for the first token that a method needs come last, and then nothing is sent.
        """
        if any(
            _of(sent, name) != _of(self.settings(), name) for name in self.likes
        ):  # another call left it out
            return True
        self.failed()
        if self.guesses is None:
            kept = {
                "max_tokens",
                "logprobs" if self.needs_logprobs else "",
                *self.terms.taken,
                *self.terms.guessed,
            }
            names = [
                name for name in self.likes if name not in kept and getattr(sent, name) is not None
            ]
            self.terms.guessed.update(names)
            self.guesses = [[name] for name in names if one_by_one and len(names) > 1] + [names]
            self.guesses += [["logprobs"]] if one_by_one and self.needs_logprobs else []
        self.guessed = self.guesses.pop(0) if self.guesses else []
        self.terms.instead |= {name: _without(name) for name in self.guessed}
        return bool(self.guessed)

    def failed(self) -> None:
        """Note that no setting was to blame: what was left out on a guess is sent again."""
        for name in self.guessed:
            self.terms.instead.pop(name, None)

    def needs_room(self, reply: Reply, sent: GenerateConfig) -> bool:
        """Whether a reply used up its limit before it began, and should be asked for with a larger
        one; once.
        """
        nothing = (
            reply.stop_reason == "max_tokens"
            and reply.problem
            and (reply.reasoned or not reply.text.strip())
        )
        if self.room and self.terms.thinks is None:
            self.terms.thinks = not nothing and reply.stop_reason != "model_length"
        limit = sent.max_tokens or _ROOM
        if (
            not nothing
            or self.room
            or self.terms.thinks is False
            or "max_tokens" not in self.likes
            or limit >= _ROOM
        ):
            return False
        self.room = True
        return (self.settings().max_tokens or 0) > limit

    def overflows(self, reply: Reply, sent: GenerateConfig) -> bool:
        """Whether prompt and limit exceed what the model holds, by its words, and a lower limit is
        sent.
        """
        if reply.stop_reason != "model_length" or "max_tokens" not in self.likes:
            return False
        refused = Objection(("max_tokens",), reply.text)
        return refused.instead("max_tokens", sent)["max_tokens"] is not None and self.gives_up(
            refused, sent
        )


async def agree(
    model: Model,
    send: Send,
    *,
    wishes: GenerateConfig,
    needs: GenerateConfig,
    may_be_cut: bool,
    prompt: str = "",
    tools: bool = False,
) -> Reply:
    """One reply, with all needs and as many of the wishes as the model takes.

    Args:
        model: Model that is asked.
        send: Function that sends the prompt with these settings.
        wishes: Settings that the method would like.
        needs: Settings that it cannot do without, or that the user chose; sent unchanged, instead
            of a wish.
        may_be_cut: Whether a reply that ends at the token limit is good.
        prompt: The text that is sent, where it is one message.
        tools: Whether tools are offered.

    Returns:
        The reply. Where candidates for the first token are needed and the model is known to give
        none, an empty one with the problem "no_logprobs", and nothing is sent.

    Raises:
        Exception: The vendor refuses for good, in its own words; of RuntimeError or of its client's
            classes.
        Refused: It did so before, for every call of this run; nothing is sent.
    """
    terms = terms_of(model)
    call = _Call(terms, wishes, needs)
    async with terms.turn(call.trials):
        while not call.lacks_logprobs():
            _refuse_if_closed(model)
            sent = call.settings()
            with Refusal() as refusal:
                output, settings, earlier = await with_request(model, send(sent))
            if refusal.objection is not None and refusal.error is not None:
                if not call.gives_up(refusal.objection, sent):
                    call.failed()
                    raise refusal.error
                continue
            terms.opens_thought |= split_completion(output).lacks_opening
            reply = reply_from(
                output,
                model,
                may_be_cut=may_be_cut,
                prompt=prompt,
                tools=tools,
                opens_thought=terms.opens_thought,
            )
            if call.overflows(reply, sent) or call.needs_room(reply, sent):
                continue
            thinks = bool(terms.thinks) and "max_tokens" in call.likes
            reply = reply.model_copy(update={"applied": applied(settings, thinks=thinks)})
            if needs.logprobs and reply.problem is None and not _has_logprobs(output):
                terms.mute = True
            if not earlier:
                usage = output.usage or ModelUsage()
                busy.calls.note(str(model), usage.total_tokens, usage.total_cost or 0.0)
            return reply
    return Reply(text="", model=str(model), stop_reason="unknown", problem="no_logprobs")


def _has_logprobs(output: ModelOutput) -> bool:
    logprobs = output.choices[0].logprobs if output.choices else None
    return bool(logprobs and logprobs.content)


def _of(config: GenerateConfig, name: str) -> tuple[Any, ...]:
    return (
        (config.logprobs, config.top_logprobs) if name == "logprobs" else (getattr(config, name),)
    )


def _without(name: str) -> dict[str, None]:
    return {"logprobs": None, "top_logprobs": None} if name == "logprobs" else {name: None}
