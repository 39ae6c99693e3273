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
from selfprobe.text.parse import json_or_none

THINKING_ROOM_TOKENS = 8192
"""Number of tokens added to a method's own limit for a model that thinks although it was asked not
to.
"""

REFUSAL_WINDOW_SECONDS = 20
"""Seconds after which a call that was not refused is at work: vendors look at the settings before
they work.
"""


@dataclass
class _Trial:
    """A call whose outcome others wait for, since it tries settings that the model was never asked
    with.
    """

    settings: frozenset[str]
    deadline: float
    """Time from which it counts as not refused, on anyio's clock."""
    ended: anyio.Event = field(default_factory=anyio.Event)


@dataclass
class ModelTerms:
    """Knowledge of one model in this process. Settings are named as in GenerateConfig."""

    replacement_by_refused_setting: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Refused setting → the settings that are sent instead."""
    accepted_settings: set[str] = field(default_factory=set)
    """Settings that a call succeeded with: no call waits for another's trial of them."""
    wrongly_blamed_settings: set[str] = field(default_factory=set)
    """Settings whose refusal came back when they were not sent: the refusal was about something
    else.
    """
    dropped_on_suspicion: set[str] = field(default_factory=set)
    """Settings that were left out once for an error that names none."""
    least_max_tokens: int = 0
    most_max_tokens: int | None = None
    """Ends of a token limit, where the vendor named them."""
    thinks: bool | None = None
    """Whether a reply to a method's own limit held nothing but reasoning, and one to a larger limit
    was whole; False where the larger limit did not help.
    """
    opens_thought: bool = False
    """Whether the model's prompt opens a thought that its server does not split off: one of its
    replies ended a thought that never began, so that a reply which is cut before that end is a
    thought.
    """
    gives_no_logprobs: bool = False
    """Whether the model gave no logprobs to a method that needs them."""
    running_trial: _Trial | None = None

    def settings_to_send(
        self,
        wishes: GenerateConfig,
        negotiable_settings: Collection[str],
        *,
        room_to_think: bool = False,
    ) -> GenerateConfig:
        """The wishes, with those replaced that are known to be refused.

        Args:
            wishes: Settings that the method would like.
            negotiable_settings: Settings that can be given up.
            room_to_think: Add tokens for reasoning.
        """
        changes: dict[str, Any] = {}
        if "max_tokens" in negotiable_settings and wishes.max_tokens is not None:
            max_tokens = wishes.max_tokens
            if (room_to_think or self.thinks) and max_tokens < THINKING_ROOM_TOKENS:
                max_tokens += THINKING_ROOM_TOKENS
            max_tokens = max(max_tokens, self.least_max_tokens)
            if self.most_max_tokens:
                max_tokens = min(max_tokens, self.most_max_tokens)
            changes["max_tokens"] = max_tokens
        for setting in negotiable_settings:
            changes |= self.replacement_by_refused_setting.get(setting, {})
        return wishes.model_copy(update=changes)

    def note_refused_setting(
        self, setting: str, replacement: dict[str, Any], sent: GenerateConfig
    ) -> None:
        """Have the replacement of a refused setting sent from now on, or the limit kept within the
        end that was named.
        """
        named_limit = replacement.get("max_tokens")
        if named_limit is None:
            self.replacement_by_refused_setting[setting] = replacement
        elif named_limit > (sent.max_tokens or 0):
            self.least_max_tokens = named_limit
        else:
            self.most_max_tokens = named_limit
        self.accepted_settings.discard(setting)

    @asynccontextmanager
    async def trial_turn(self, settings: Collection[str]) -> AsyncIterator[None]:
        """Wait while another call tries settings, until those of this one are known; try those that
        are not.

        A trial that was not refused in `REFUSAL_WINDOW_SECONDS` is at work, and its settings count
        as accepted: a reply can take minutes.
        """
        untried_settings = frozenset(settings) - self.accepted_settings
        while untried_settings and self.running_trial is not None:
            awaited_trial = self.running_trial
            with anyio.CancelScope(deadline=awaited_trial.deadline):
                await awaited_trial.ended.wait()
            if self.running_trial is awaited_trial:
                self.accepted_settings |= awaited_trial.settings
                self.running_trial = None
            untried_settings = frozenset(settings) - self.accepted_settings
        if not untried_settings:
            yield
            return

        deadline = anyio.current_time() + REFUSAL_WINDOW_SECONDS
        trial = _Trial(untried_settings, deadline)
        self.running_trial = trial
        try:
            yield
            self.accepted_settings |= untried_settings
        finally:
            trial.ended.set()
            if self.running_trial is trial:
                self.running_trial = None


_terms_by_api: WeakKeyDictionary[ModelAPI, ModelTerms] = WeakKeyDictionary()


def terms_of(model: Model) -> ModelTerms:
    """Knowledge of a model; its roles share it."""
    return _terms_by_api.setdefault(model.api, ModelTerms())


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]

EFFORTS = get_args(Effort)
"""Efforts, in rising order."""

_SETTING_PATTERNS = {
    "reasoning_effort": r"reasoning[ ._]?effort|effort",
    "temperature": r"temperature",
    "logprobs": r"log[ _]?prob",
    "response_schema": r"(response|output)[ ._]?(format|schema|config|mime)|json[ ._]?schema|structured|text\.format"
    r"|guided|grammar",
    "seed": r"(\b|_)seed\b",
    "max_tokens": r"max[ _]?((new|output|completion)[ _]?)?tokens|maximum context length",
}
"""Vendors' names of Inspect's settings, in any case."""

_TAKES_NO_VALUE = re.compile(
    r"unrecogni[sz]ed|unknown|unexpected|extra (inputs|fields)|not permitted|unsupported (param|argument|field|option)"
    r"|does ?n[o']t support (the )?(param|argument|reasoning|thinking)"
    r"|(param\w*|argument|field) .{0,60}(not|n't) supported"
    r"|reasoning[ _.]?(effort)?.{0,30}is not (supported|allowed|available)",
    re.IGNORECASE,
)
"""Words of a vendor that takes the setting at no value."""

_LISTS_VALUES = re.compile(
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
_CONTEXT_TOKENS = re.compile(
    r"(?:context (?:length|window)\D{0,20}|max_new_tokens\W+must be <= )(\d+)", re.IGNORECASE
)
_PROMPT_TOKENS = re.compile(
    r"(\d+) (?:in the messages|in the prompt|`?inputs?`? tokens)", re.IGNORECASE
)
"""Number of tokens that a model can hold, and how many of them the prompt takes."""

_BAD_REQUEST_WORDS = re.compile(r"INVALID_ARGUMENT|ValidationException|invalid_request_error")
"""Words of clients whose errors have no HTTP status."""

_NO_ENDPOINT = re.compile(
    r"no endpoints found that (can handle|support) the (requested|provided)", re.IGNORECASE
)
"""Words of OpenRouter's 404 where a model is offered, but nowhere with all settings: others are
about its name.
"""

_ERROR_KEYS = {"error", "message", "msg", "detail", "loc", "metadata", "raw", "data"}
"""Keys under which vendors say what is wrong; "raw" holds the words of the vendor behind
OpenRouter. "input" and similar keys, which quote the prompt, are left out.
"""


@dataclass(frozen=True)
class Objection:
    """Error that says that the request is wrong, not that the vendor is busy."""

    named_settings: tuple[str, ...]
    """Fields of GenerateConfig that the error names, in order; none where it names no setting of
    ours.
    """
    vendor_text: str
    is_about_unnamed_setting: bool = False
    """Whether the error is surely about a setting, which it does not name."""

    def replacement(self, setting: str, sent: GenerateConfig) -> dict[str, Any]:
        """Replacement of a refused setting: the vendor's own number or word, else nothing.

        No reasoning becomes the least named effort, or without one, the next step of none, minimal,
        low, nothing.
        """
        if setting == "reasoning_effort":
            return {setting: self._next_effort(sent.reasoning_effort)}
        if setting == "max_tokens":
            return {setting: self._named_max_tokens(sent.max_tokens or 0)}
        if setting == "logprobs":
            most_top_logprobs = _first_number(_AT_MOST, self.vendor_text)
            if 0 < most_top_logprobs < (sent.top_logprobs or 0):
                return {"top_logprobs": most_top_logprobs}
        return dict(_left_out(setting))

    def _next_effort(self, sent_effort: str | None) -> str | None:
        """Next effort, never back down the ladder, and nothing from "low" on: what is higher is not
        less reasoning.
        """
        if sent_effort not in ("none", "minimal"):
            return None
        higher_efforts = EFFORTS[EFFORTS.index(sent_effort) + 1 :]
        named_efforts = [effort for effort in higher_efforts if self._mentions(rf"\b{effort}\b")]
        quoted_efforts = [
            effort for effort in named_efforts if self._mentions(rf"[`'\"“‘]{effort}[`'\"”’]")
        ]
        if quoted_efforts:
            return str(quoted_efforts[0])
        if len(named_efforts) > 1:
            return str(named_efforts[0])
        if _TAKES_NO_VALUE.search(self.vendor_text) or _LISTS_VALUES.search(self.vendor_text):
            return None
        return str(higher_efforts[0])

    def _mentions(self, pattern: str) -> bool:
        return re.search(pattern, self.vendor_text, re.IGNORECASE) is not None

    def _named_max_tokens(self, sent_tokens: int) -> int | None:
        context_tokens = _first_number(_CONTEXT_TOKENS, self.vendor_text)
        prompt_tokens = _first_number(_PROMPT_TOKENS, self.vendor_text)
        if context_tokens >= 0 and prompt_tokens >= 0:
            # Half of what this prompt leaves, so that longer ones fit too.
            half = (context_tokens - prompt_tokens) // 2
            return half if 0 < half < sent_tokens else None

        least_tokens = _first_number(_AT_LEAST, self.vendor_text)
        if least_tokens > sent_tokens:
            return least_tokens
        most_tokens = _first_number(_AT_MOST, self.vendor_text)
        return most_tokens if 0 < most_tokens < sent_tokens else None


def _first_number(pattern: re.Pattern[str], text: str) -> int:
    """The number that a pattern finds first; -1 where it finds none."""
    match = pattern.search(text)
    return -1 if match is None else int(match[1])


class CaughtObjection:
    """Context whose error is kept where it is an objection, and raised where it is not.

    Clients of vendors share no class of errors, and Inspect hands some on and wraps others.
    """

    objection: Objection | None = None
    error: BaseException | None = None

    def __enter__(self) -> "CaughtObjection":
        return self

    def __exit__(
        self,
        error_class: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self.error = error
        self.objection = objection_in(error) if error is not None else None
        return self.objection is not None


def objection_in(error: BaseException) -> Objection | None:
    """Objection that an error is, or None: no setting is to blame for a 429, 401 or 500, whatever
    its words.
    """
    cause = _cause(error)
    status, vendor_text = _status_and_words(error)
    has_no_endpoint = status == 404 and _NO_ENDPOINT.search(vendor_text) is not None
    is_bad_request = status in (400, 422)
    if status is None:
        is_bad_request = _BAD_REQUEST_WORDS.search(str(cause)) is not None
    if not has_no_endpoint and not is_bad_request:
        return None

    parameter = getattr(cause, "param", None) or _inner_error(_body(cause)).get("param")
    named_settings = _settings_named_in(parameter) if isinstance(parameter, str) else ()
    if not named_settings:
        named_settings = _settings_named_in(vendor_text)
    is_about_unnamed_setting = has_no_endpoint and not named_settings
    return Objection(named_settings, vendor_text, is_about_unnamed_setting)


def _status_and_words(error: BaseException) -> tuple[int | None, str]:
    """HTTP status of a vendor's error, None where it has none, and the vendor's words."""
    cause = _cause(error)
    body = _body(cause)
    words = " ".join(_words(body)) or str(cause)
    for code in (_status(error), _status(cause), body.get("code")):
        if isinstance(code, int):
            return code, words
    return None, words


def _without_numbers(text: str) -> str:
    """Words of an error without what differs from call to call (numbers of requests)."""
    return re.sub(r"\b[\w-]*\d[\w-]*\b", "", text)


def _cause(error: BaseException) -> BaseException:
    if isinstance(error, RuntimeError) and error.__cause__ is not None:
        return error.__cause__
    return error


def _status(error: BaseException) -> int | None:
    for attribute in ("status_code", "code"):
        code = getattr(error, attribute, None)
        if isinstance(code, int):
            return code
    return None


def _body(error: BaseException) -> Mapping[str, Any]:
    """Body of the vendor's answer: clients keep it parsed, as text (mistral), or as `response`
    (boto, OpenRouter).
    """
    for attribute in ("body", "response"):
        content = getattr(error, attribute, None)
        body = json_or_none(content) if isinstance(content, str) else content
        if isinstance(body, Mapping):
            return body
    return {}


def _inner_error(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The vendor's own error in the body of the response."""
    inner = body.get("error", body)
    return inner if isinstance(inner, Mapping) else {}


def _words(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping):
        for key, value in part.items():
            if str(key).lower() in _ERROR_KEYS:
                yield from _words(value)
    elif isinstance(part, list | tuple):
        for entry in part:
            yield from _words(entry)


def _settings_named_in(text: str) -> tuple[str, ...]:
    """Settings by their first mention; "reasoning models" is about effort only where nothing else
    is named.
    """
    start_by_setting = {}
    for setting, pattern in _SETTING_PATTERNS.items():
        mention = re.search(pattern, text, re.IGNORECASE)
        if mention is not None:
            start_by_setting[setting] = mention.start()
    mentions_thinking = re.search("reasoning|thinking", text, re.IGNORECASE) is not None
    if mentions_thinking and "reasoning_effort" not in start_by_setting:
        start_by_setting["reasoning_effort"] = len(text)
    return tuple(sorted(start_by_setting, key=lambda setting: start_by_setting[setting]))


_REFUSED_SAMPLES_TO_STOP = 3
"""Number of samples that a model refused in the same words before it is asked no more. One for a
wrong key.
"""

_FINAL_STATUSES = (400, 401, 402, 403, 404, 405, 410, 413, 422)
_ACCOUNT_STATUSES = (401, 402)
"""Statuses of errors that no prompt can cause: they end even a run whose calls succeeded before."""

_ABOUT_PROMPT = re.compile(
    r"flag|moderat|policy|polici|safety|harm|violat|blocked|too (long|large)|context length", re.I
)
"""Words of an error about one prompt, which says nothing about the next one."""

_REMEDY_BY_STATUS = {
    401: "Check the key",
    402: "The account needs credit",
    403: "The key's account or region may not use this model",
    404: "Check the model's name and the address that it is asked at (--model-base-url)",
    429: "The account's quota is used up",
}
"""Status → remedy."""

_DEFAULT_REMEDY = "Leaving out what the task can leave out did not help"
_OPTION_BY_SETTING = {
    "reasoning_effort": "-T effort",
    "max_tokens": "-T answer_tokens (or of another limit that was set)",
}

_PRINTED_REFUSAL = re.compile(
    r"^Sample error \(id: .*?, epoch: \d+\): (not asked: )?\S+ refused a call: ", re.DOTALL
)
# The words repeat for each sample of a run: they are in the log, and were printed once.
logging.getLogger("inspect_ai._eval.task.run").addFilter(
    lambda record: not _PRINTED_REFUSAL.match(record.getMessage())
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
class _RunRefusals:
    """A model's refusals in one run."""

    run_id: str | None
    has_answered: bool = False
    samples_by_words: dict[str, set[object]] = field(default_factory=dict)
    """Vendor's words → samples whose calls it refused so, since its last reply."""
    closing_refusal: str = ""
    """Words with which the model refuses every call, once that is known."""


_refusals_by_api: WeakKeyDictionary[ModelAPI, _RunRefusals] = WeakKeyDictionary()
_closing_refusal_by_eval: dict[str, str] = {}
"""Running task → why it asks no model any more: its other models are not paid for samples that must
fail.
"""


def _refusals_in_run(model: Model) -> _RunRefusals:
    active = sample_active()
    run_id = active.run_id if active else None
    refusals = _refusals_by_api.get(model.api)
    if refusals is None or refusals.run_id != run_id or run_id is None:
        refusals = _RunRefusals(run_id)
        _refusals_by_api[model.api] = refusals
    return refusals


def _raise_if_run_is_refused(model: Model) -> None:
    """Raise at once the model's error, where it refuses every call of this run.

    Raises:
        Refused: It does, or another model of the same task does.
    """
    active = sample_active()
    if active is None:
        return
    closing_refusal = _refusals_in_run(model).closing_refusal
    if closing_refusal:
        _closing_refusal_by_eval[active.eval_id] = closing_refusal
    if active.eval_id in _closing_refusal_by_eval:
        raise Refused(f"not asked: {_closing_refusal_by_eval[active.eval_id]}")


class RefusalsNoted:
    """Context in which a model is asked: a refusal for good is printed once per run and counted.

    Args:
        model: Model that is asked.
        needs: Settings of the call that are sent unchanged.

    Raises:
        Refused: Instead of the error of the vendor's client.
    """

    def __init__(self, model: Model, needs: GenerateConfig) -> None:
        self.model = model
        self.needs = needs

    def __enter__(self) -> None:
        """Nothing is known before the call."""

    def __exit__(
        self,
        error_class: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            refusals = _refusals_in_run(self.model)
            refusals.has_answered = True
            refusals.samples_by_words.clear()
        elif isinstance(error, Exception) and not isinstance(error, Refused):
            self._raise_final(error)

    def _raise_final(self, error: Exception) -> None:
        attempt_error = None
        if hasattr(error, "last_attempt"):  # the error of Inspect's retries names no reason
            attempt_error = error.last_attempt.exception()
        vendor_error = attempt_error or error
        status, vendor_text = _status_and_words(vendor_error)
        if re.fullmatch(r"Error code: \d+", vendor_text):
            # The client's words, where the body is none of an API.
            vendor_text = words_of(vendor_error, self.model)

        if _is_final(status, vendor_text):
            remedy = _remedy(self.model, status, error, self.needs)
            refusal = _note_refusal(self.model, status, vendor_text, remedy)
            raise Refused(refusal) from error
        if attempt_error is not None:
            words = words_of(attempt_error, self.model)
            raise Refused(f"{self.model} gave no answer after all retries: {words}") from error
        if came_of_a_response(error):
            words = words_of(error, self.model)
            raise Refused(f"{self.model} gave no reply that can be read: {words}") from error


def _is_final(status: int | None, vendor_text: str) -> bool:
    is_out_of_quota = status == 429 and "quota" in vendor_text.lower()
    return is_out_of_quota or status in _FINAL_STATUSES


def _note_refusal(model: Model, status: int | None, vendor_text: str, remedy: str) -> str:
    """Count a refusal and print what is new; the refusal in a line."""
    refusals = _refusals_in_run(model)
    refusal = f"{model} refused a call: {one_line(f'Error code: {status} - {vendor_text}')}"
    samples = refusals.samples_by_words.setdefault(_without_numbers(vendor_text), set())
    new_sentences = []
    if not samples:
        new_sentences.append(f"{refusal.rstrip('.')}. {remedy}.")
    active = sample_active()
    samples.add((active.sample.id, active.epoch) if active else object())

    is_about_prompt = False
    if status not in _ACCOUNT_STATUSES:
        is_about_prompt = refusals.has_answered or _ABOUT_PROMPT.search(vendor_text) is not None
    is_wrong_key = status == 401 and not refusals.has_answered
    samples_to_stop = 1 if is_wrong_key else _REFUSED_SAMPLES_TO_STOP
    is_open = refusals.run_id and not refusals.closing_refusal
    if is_open and not is_about_prompt and len(samples) >= samples_to_stop:
        refusals.closing_refusal = refusal
        reason = ""
        if len(samples) > 1:
            reason = f": it refused {len(samples)} samples in the same words"
        new_sentences.append(f"{model} is asked no more in this run{reason}.")
    if new_sentences:
        logging.getLogger(__name__).warning(" ".join(new_sentences))
    return refusal


def _remedy(model: Model, status: int | None, error: Exception, needs: GenerateConfig) -> str:
    objection = objection_in(error)
    for setting in objection.named_settings if objection else ():
        if getattr(needs, setting, None) is not None:
            option = _OPTION_BY_SETTING.get(setting, setting)
            return f"The value of {option} was refused: choose another, or leave it out"
    remedy = _REMEDY_BY_STATUS.get(status or 0, _DEFAULT_REMEDY)
    if status == 401 and model.api.api_key_vars:
        return f"{remedy} ({' or '.join(model.api.api_key_vars)})"
    return remedy


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


def merged_settings(config: GenerateConfig, *later_configs: GenerateConfig) -> GenerateConfig:
    """All settings, of which a later one wins; Inspect's `merge` copies each value deeply, too much
    for every call.
    """
    changes = {}
    for later_config in later_configs:
        for setting, value in later_config:
            if value is not None:
                changes[setting] = value
    return config.model_copy(update=changes)


@dataclass
class _NegotiatedCall:
    """One reply under way."""

    terms: ModelTerms
    wishes: GenerateConfig
    needs: GenerateConfig
    refusal_words_by_setting: dict[str, str] = field(default_factory=dict)
    """Settings that it gave up, with the objection to each."""
    dropped_suspects: list[str] = field(default_factory=list)
    """Settings that it leaves out now since the vendor named none."""
    remaining_suspects: list[list[str]] | None = None
    """Settings that it could leave out then, one after the other; None before the first."""

    has_room_to_think: bool = False
    """Whether it was sent again with room to think."""
    negotiable_settings: list[str] = field(init=False)
    """Settings that can be given up."""
    needs_logprobs: bool = field(init=False)

    def __post_init__(self) -> None:
        self.needs_logprobs = bool(self.needs.logprobs)
        if self.needs_logprobs:  # as a wish, the vendor may say of how many tokens
            self.wishes = merged_settings(self.wishes, self.needs)
            self.needs = self.needs.model_copy(update=_left_out("logprobs"))
        self.negotiable_settings = [
            setting
            for setting in SETTINGS
            if getattr(self.wishes, setting) is not None and getattr(self.needs, setting) is None
        ]

    def settings_to_send(self) -> GenerateConfig:
        """Settings by what is known now: other calls learn too."""
        accepted_wishes = self.terms.settings_to_send(
            self.wishes, self.negotiable_settings, room_to_think=self.has_room_to_think
        )
        return merged_settings(accepted_wishes, self.needs)

    @property
    def awaited_trials(self) -> list[str]:
        """Settings whose trials it waits for; limits one by one, since a model may think within one
        and not another.

        A call in a batch waits for none: a trial would be a batch of its own.
        """
        if self.wishes.batch:
            return []
        trials = []
        for setting in self.negotiable_settings:
            if setting != "max_tokens":
                trials.append(setting)
            elif not self.terms.thinks:
                trials.append(f"max_tokens {self.wishes.max_tokens}")
        return trials

    def lacks_logprobs(self) -> bool:
        """Whether the model is known to give no candidates for the first token to a method that
        needs them.
        """
        if not self.needs_logprobs:
            return False
        return self.terms.gives_no_logprobs or not self.settings_to_send().logprobs

    def gives_up_refused_setting(self, objection: Objection, sent: GenerateConfig) -> bool:
        """Whether something was given up for an objection to what was sent, so that it is worth
        sending again.
        """
        if not objection.named_settings:
            return self._drops_suspects(sent, one_by_one=objection.is_about_unnamed_setting)
        for setting in objection.named_settings:
            was_sent = getattr(sent, setting) is not None
            if setting not in self.negotiable_settings:
                if was_sent:  # a need
                    return False
            elif self._gave_up_meanwhile(setting, sent):
                return True
            elif not was_sent:
                self._restore_if_wrongly_blamed(setting, objection)
            elif setting not in self.terms.wrongly_blamed_settings:
                refusal_words = _without_numbers(objection.vendor_text)
                self.refusal_words_by_setting[setting] = refusal_words
                replacement = objection.replacement(setting, sent)
                self.terms.note_refused_setting(setting, replacement, sent)
                return True
        return False

    def _gave_up_meanwhile(self, setting: str, sent: GenerateConfig) -> bool:
        """Whether another call gave a setting up since it was sent."""
        return _values_of(setting, sent) != _values_of(setting, self.settings_to_send())

    def _restore_if_wrongly_blamed(self, setting: str, objection: Objection) -> None:
        """Take a setting back whose refusal came back without it: it was about something else."""
        refusal_words = _without_numbers(objection.vendor_text)
        if self.refusal_words_by_setting.get(setting) == refusal_words:
            self.terms.replacement_by_refused_setting.pop(setting, None)
            self.terms.wrongly_blamed_settings.add(setting)

    def _drops_suspects(self, sent: GenerateConfig, *, one_by_one: bool) -> bool:
        """Leave out, once per model, untried settings but the limit: each alone if refused, then
        all together.

        Candidates for the first token that a method needs come last, and then nothing is sent.
        """
        if any(self._gave_up_meanwhile(setting, sent) for setting in self.negotiable_settings):
            return True
        self.restore_suspects()
        if self.remaining_suspects is None:
            self.remaining_suspects = self._suspects(sent, one_by_one=one_by_one)
        self.dropped_suspects = self.remaining_suspects.pop(0) if self.remaining_suspects else []
        for setting in self.dropped_suspects:
            self.terms.replacement_by_refused_setting[setting] = dict(_left_out(setting))
        return bool(self.dropped_suspects)

    def _suspects(self, sent: GenerateConfig, *, one_by_one: bool) -> list[list[str]]:
        """Groups of settings that may be to blame, in the order in which they are left out."""
        unsuspected = {"max_tokens", *self.terms.accepted_settings}
        unsuspected |= self.terms.dropped_on_suspicion
        if self.needs_logprobs:
            unsuspected.add("logprobs")
        suspects = [
            setting
            for setting in self.negotiable_settings
            if setting not in unsuspected and getattr(sent, setting) is not None
        ]
        self.terms.dropped_on_suspicion.update(suspects)

        groups = [suspects]
        if one_by_one and len(suspects) > 1:
            groups = [*([setting] for setting in suspects), suspects]
        if one_by_one and self.needs_logprobs:
            groups.append(["logprobs"])
        return groups

    def restore_suspects(self) -> None:
        """Note that no setting was to blame: what was left out on suspicion is sent again."""
        for setting in self.dropped_suspects:
            self.terms.replacement_by_refused_setting.pop(setting, None)

    def takes_room_to_think(self, reply: Reply, sent: GenerateConfig) -> bool:
        """Whether a reply used up its limit before it began, and should be asked for with a larger
        one; once.
        """
        is_empty = reply.reasoned or not reply.text.strip()
        used_up_limit = bool(reply.stop_reason == "max_tokens" and reply.problem and is_empty)
        if self.has_room_to_think and self.terms.thinks is None:
            self.terms.thinks = not used_up_limit and reply.stop_reason != "model_length"
        if not used_up_limit or self.has_room_to_think or self.terms.thinks is False:
            return False
        sent_limit = sent.max_tokens or THINKING_ROOM_TOKENS
        if "max_tokens" not in self.negotiable_settings or sent_limit >= THINKING_ROOM_TOKENS:
            return False
        self.has_room_to_think = True
        return (self.settings_to_send().max_tokens or 0) > sent_limit

    def lowers_limit(self, reply: Reply, sent: GenerateConfig) -> bool:
        """Whether prompt and limit exceed what the model holds, by its words, and a lower limit is
        sent.
        """
        if reply.stop_reason != "model_length" or "max_tokens" not in self.negotiable_settings:
            return False
        objection = Objection(("max_tokens",), reply.text)
        if objection.replacement("max_tokens", sent)["max_tokens"] is None:
            return False
        return self.gives_up_refused_setting(objection, sent)


async def negotiated_reply(
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
    call = _NegotiatedCall(terms, wishes, needs)
    async with terms.trial_turn(call.awaited_trials):
        while not call.lacks_logprobs():
            _raise_if_run_is_refused(model)
            sent = call.settings_to_send()
            with CaughtObjection() as caught:
                output, request_settings, is_earlier = await with_request(model, send(sent))
            if caught.objection is not None and caught.error is not None:
                if not call.gives_up_refused_setting(caught.objection, sent):
                    call.restore_suspects()
                    raise caught.error
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
            if call.lowers_limit(reply, sent) or call.takes_room_to_think(reply, sent):
                continue

            thinks = bool(terms.thinks) and "max_tokens" in call.negotiable_settings
            reply = reply.model_copy(update={"applied": applied(request_settings, thinks=thinks)})
            if needs.logprobs and reply.problem is None and not _has_logprobs(output):
                terms.gives_no_logprobs = True
            if not is_earlier:
                usage = output.usage or ModelUsage()
                busy.calls.note(str(model), usage.total_tokens, usage.total_cost or 0.0)
            return reply
    return Reply(text="", model=str(model), stop_reason="unknown", problem="no_logprobs")


def _has_logprobs(output: ModelOutput) -> bool:
    logprobs = output.choices[0].logprobs if output.choices else None
    return bool(logprobs and logprobs.content)


def _fields_of(setting: str) -> tuple[str, ...]:
    """Fields of GenerateConfig that are sent or left out together."""
    return ("logprobs", "top_logprobs") if setting == "logprobs" else (setting,)


def _values_of(setting: str, settings: GenerateConfig) -> list[Any]:
    return [getattr(settings, name) for name in _fields_of(setting)]


def _left_out(setting: str) -> dict[str, None]:
    return dict.fromkeys(_fields_of(setting))
