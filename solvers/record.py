"""The Record: replies of target and observer in every sample of every log.

Scorers read nothing else, so a log can be scored again, or replayed, without a model.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from inspect_ai.log import EvalSample
from inspect_ai.model import (
    ContentReasoning,
    ContentText,
    Logprob,
    Logprobs,
    Model,
    ModelOutput,
    StopReason,
    TopLogprob,
)
from inspect_ai.util import StoreModel, store_from_events_as
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticSerializationError

from selfprobe.data.messages import call_text
from selfprobe.logs.packed import REFERENCE
from selfprobe.text.families import same_model
from selfprobe.text.kinds import is_error_text, is_refusal
from selfprobe.text.parse import is_garbled
from selfprobe.text.thoughts import Split, split_thought

Problem = Literal[
    "empty",
    "refused",
    "filtered",
    "truncated",
    "garbled",
    "half_character",
    "error_text",
    "lost",
    "no_logprobs",
    "failed",
    "cancelled",
    "unfinished",
    "unoffered_call",
    "foreign",
    "other_model",
]
"""Reason why a reply is not what was asked for. A reply with a problem is never taken as somebody's
behaviour.
"""

REASONS: dict[Problem, str] = {
    "empty": "no_response",
    "refused": "refusal",
    "filtered": "filtered",
    "truncated": "truncated",
    "garbled": "garbled",
    "half_character": "half_character",
    "error_text": "error_text",
    "lost": "lost",
    "no_logprobs": "no_logprobs",
    "failed": "ended_in_error",
    "cancelled": "cancelled",
    "unfinished": "unfinished",
    "unoffered_call": "tool_not_offered",
    "foreign": "foreign_reply",
    "other_model": "other_model",
}
"""Inspect's standard words for why a reply is unscored, where it has one."""

HALF_CHARACTER = "half_character"
"""Key in a `ModelOutput.metadata` that `whole_characters` has mended."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

ENDING = "ending"
"""Key in an output's metadata of the vendor's own word for how the reply ended."""

_ENDINGS: dict[str, Problem] = {
    **dict.fromkeys(
        "error failed timeout network_error insufficient_system_resource other language "
        "malformed_function_call malformed_response unexpected_tool_call too_many_tool_calls "
        "missing_thought_signature".split(),
        "failed",
    ),
    **dict.fromkeys(("cancelled", "canceled", "abort", "aborted", "user_cancel"), "cancelled"),
    **dict.fromkeys(("incomplete", "in_progress", "queued"), "unfinished"),
    "model_context_window_exceeded": "truncated",
}
"""A vendor's word for an end before the reply was whole; any other word, or none, says nothing
against a reply.
"""

_INSPECTS_EMPTY_TEXT = "(no content)"
"""Inspect's text for a reply of Gemini's that holds none."""

_IN_PROCESS = ("planted/", "mockllm/", "embedded/")
"""Providers inside this process, where no other model can answer."""

_MODEL_NAME_CHARACTERS = 80
"""Number of characters of a model's name that are kept, which a gateway writes."""

SHORT_ECHO_CHARACTERS = 40
"""Characters of a prompt from which a reply that is the prompt is certainly no model's, and one
that begins with it is noted. People ask for "yes" and get it.
"""

LONG_ECHO_CHARACTERS = 200
"""Characters of a prompt from which a reply that begins with it is certainly no model's. Models say
a shorter question again before they answer it.
"""

_ASKS_FOR_ITSELF = re.compile(
    r"\b(repeat|echo|copy|verbatim|word for word|say exactly)\b", re.IGNORECASE
)
"""Words of a prompt that may ask for itself."""

SPLIT_BY_SERVER = "start its server with --reasoning-parser NAME (vLLM, SGLang) or --reasoning-format auto (llama.cpp)"
"""Advice about a model whose replies hold its thoughts."""

ReasoningKind = Literal["none", "full", "summary", "redacted"]

_RESPONSES_ITEM_PREFIX = "rs_"
"""Beginning of the id of an item of reasoning in OpenAI's Responses; the item may hold nothing that
can be read.
"""

_SUMMARY_FORMATS = ("anthropic-claude-v1", "google-gemini-v1")
"""OpenRouter's formats in which the readable text is a summary: those providers never show the
trace itself.
"""


IMPOSSIBLE = -9000.0
"""Log-probability, in nats, from which on it stands for "no probability": vendors write -9999,
servers the lowest number of 32 bits.
"""

LOGPROB_ROUNDING = 1e-4
"""Largest log-probability above 0, in nats, that rounding explains."""

SHARES_ROUNDING = 0.02
"""Largest difference from 1 of probabilities that should sum to it, as vendors round them."""


class TokenLogprob(BaseModel):
    """One candidate for the first token."""

    model_config = ConfigDict(frozen=True)

    token: str
    logprob: float  # nats


class Applied(BaseModel):
    """Settings that a call was really sent with; None or False for one that was not sent."""

    model_config = ConfigDict(frozen=True)

    effort: str | None = None
    """Effort of reasoning, in the vendor's word, or the tokens to think with."""
    temperature: float | None = None
    seed: int | None = None
    form: bool = False
    """Whether the reply was held to a JSON schema."""
    logprobs: bool = False
    limit: int | None = None
    """Largest number of tokens of the reply, reasoning included."""
    thinks: bool = False
    """Whether the limit was raised, since a reply to the method's own held nothing but reasoning.
    """
    known: bool = True
    """Whether the provider showed its request; where not, nothing else here says what was sent,
    except `thinks`.
    """


class Reply(BaseModel):
    """One reply, raw. Frozen: a replayed reply is the same object as the one that was recorded."""

    model_config = ConfigDict(frozen=True)

    text: str
    """The completion without reasoning."""
    model: str
    """Name of the model that was asked, in Inspect's form (provider/name)."""
    answered_by: str | None = None
    """Name of the model that wrote it, from the vendor; None where the vendor names none.
    """
    stop_reason: StopReason
    problem: Problem | None = None
    echoes: bool = False
    """Whether it begins with the text of its prompt, one of some length."""
    reasoning: str | None = None
    """The reasoning as far as the provider shows it."""
    reasoning_kind: ReasoningKind = "none"
    reasoning_tokens: int | None = None
    """Number of reasoning tokens, counted by the provider; a model can reason and show nothing."""
    first_token: list[TokenLogprob] | None = None
    """Candidates for the first token of `text`, best first; None where the provider gives no
    logprobs, placeholders (`are_placeholders`), or only those of the reasoning that it wrote
    before.
    """
    inline_thought: bool = False
    """Whether the server left a thought, or a marker of one, in the text; a thought is in
    `reasoning` then.
    """
    applied: Applied | None = None
    """Settings that were really sent; None where no provider was asked."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_reference(cls, fields: Any) -> Any:
        """A restored log can hold a reference in place of a long text (`logs.whole_sample`); it is
        nobody's reply.
        """
        if isinstance(fields, dict) and str(fields.get("text")).startswith(REFERENCE):
            return {**fields, "problem": "lost"}
        return fields

    @property
    def is_substituted(self) -> bool:
        """Whether another model wrote it than the one that was asked, by the vendor's own words."""
        return is_other_model(self.model, self.answered_by or "")

    @property
    def reasoned(self) -> bool:
        """Whether the model reasoned before it replied, shown or not."""
        if self.reasoning_tokens is None and self.applied is not None and self.applied.thinks:
            return True
        return self.reasoning_kind != "none" or bool(self.reasoning_tokens)


class Record(StoreModel):
    """All that was asked in a sample, by the name of the prompt."""

    acts: dict[str, Reply] = Field(default_factory=dict)
    answers: dict[str, Reply] = Field(default_factory=dict)
    grades: dict[str, Reply] = Field(default_factory=dict)
    """Replies of graders about an act or an answer, where a method has graders; see `by_grader`."""

    def _coerce_value(self, field_name: str, value: Any) -> Any:
        """Replies without validation: Inspect builds a validator for each field at each look into
        the store.

        Other content from a log (plain dicts) is still validated. Where a version of Inspect no
        longer calls this, only time is lost.
        """
        if isinstance(value, dict) and all(isinstance(entry, Reply) for entry in value.values()):
            return value
        return super()._coerce_value(field_name, value)


def record_of(sample: EvalSample) -> Record:
    """The Record of a logged sample.

    A sample that was finished, but not yet in the log's file when the run was killed, is restored
    by Inspect from its events alone, with an empty store.
    """
    return sample.store_as(Record) if sample.store else store_from_events_as(sample.events, Record)


def graded_name(grader: str, name: str) -> str:
    """Name of a reply in `Record.grades` where several graders read one text."""
    return f"{grader} {name}"


def by_grader(grades: Mapping[str, Reply]) -> dict[str, dict[str, Reply]]:
    """Grader → its replies by the prompt's name, for one grader as for a panel."""
    replies_by_grader: dict[str, dict[str, Reply]] = {}
    for name, reply in grades.items():
        prompt_name = name.removeprefix(graded_name(reply.model, ""))
        replies_by_grader.setdefault(reply.model, {})[prompt_name] = reply
    return replies_by_grader


def is_other_model(asked_model: str, answering_model: str) -> bool:
    """Whether a vendor's name for the model that answered is certainly of another model than the
    one that was asked.
    """
    is_named = bool(answering_model) and answering_model[0] != "("
    if not is_named or asked_model.startswith(_IN_PROCESS):
        return False
    return not same_model(asked_model, answering_model)


def missing_act_reason(reply: Reply) -> str | None:
    """Reason why there is no reply to ask about, or None. A refusal is a reply."""
    return None if reply.problem in (None, "refused") else f"target_{REASONS[reply.problem]}"


def whole_characters(output: ModelOutput) -> ModelOutput:
    """Output that can be logged: half a character (a lone surrogate) becomes U+FFFD, and the output
    says so.

    Inspect cannot write a lone surrogate as UTF-8: one in a sample's messages ended the whole run.

    Args:
        output: A provider's output; text, reasoning, calls of tools and tokens are checked.

    Returns:
        The output itself where all its characters are whole, else a copy with `HALF_CHARACTER` in
        its metadata.
    """
    try:
        output.model_dump_json()
    except PydanticSerializationError as error:
        if "surrogates not allowed" not in str(error):
            raise
        content = _with_whole_characters(output.model_dump())
        whole_output: ModelOutput = ModelOutput.model_validate(content)
        whole_output.metadata = {**(whole_output.metadata or {}), HALF_CHARACTER: True}
        return whole_output
    return output


def _with_whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, Mapping):
        return {
            _with_whole_characters(key): _with_whole_characters(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_with_whole_characters(inner) for inner in value]
    return value


def reply_from(
    output: ModelOutput,
    model: Model | str,
    *,
    may_be_cut: bool,
    prompt: str = "",
    tools: bool = True,
    opens_thought: bool = False,
) -> Reply:
    """Reply of a model's output: here alone is decided whether it is one.

    Args:
        output: Inspect's output.
        model: Model that was asked, or its name.
        may_be_cut: Whether a reply that ends at the token limit still counts (the first words of a
            long text do).
        prompt: Text of the only message; "" where there were several, or where it is unknown.
        tools: Whether tools were offered, or it is unknown.
        opens_thought: Whether the model's prompt is known to open a thought, so that a cut reply
            without a marker of its end is one.
    """
    output = whole_characters(output)
    split = split_completion(output, opens_thought=opens_thought)
    answers = [split.answer] if split.answer else []
    text = "\n".join([*answers, *_tool_calls(output)])
    reasoning_kind, reasoning = _reasoning(output, model)
    if split.thought and reasoning_kind in ("none", "full"):
        reasoning_kind = "full"
        reasoning = f"{reasoning}\n{split.thought}" if reasoning else split.thought
    echoes, is_foreign = _echo(text, prompt)
    problem = _problem(
        text, output, split, may_be_cut=may_be_cut, is_foreign=is_foreign, tools=tools
    )
    return Reply(
        text=text,
        model=str(model),
        answered_by=output.model[:_MODEL_NAME_CHARACTERS] or None,
        stop_reason=output.stop_reason,
        problem=problem,
        echoes=echoes,
        reasoning=reasoning,
        reasoning_kind=reasoning_kind,
        reasoning_tokens=output.usage.reasoning_tokens if output.usage else None,
        first_token=_first_token(output, text, split),
        inline_thought=bool(split.thought) or split.has_marker,
    )


def split_completion(output: ModelOutput, *, opens_thought: bool = False) -> Split:
    """Thought and answer in the text of an output, whatever the provider split off before."""
    if not output.choices:
        return Split("")
    is_cut = output.stop_reason == "max_tokens"
    has_reasoning = bool(_reasoning_parts(output))
    return split_thought(
        output.completion, is_cut=is_cut, opens_thought=opens_thought, follows_thought=has_reasoning
    )


def _reasoning_parts(output: ModelOutput) -> list[ContentReasoning]:
    """Reasoning that Inspect's provider split off."""
    content = output.message.content if output.choices else ""
    if isinstance(content, str):
        return []
    return [part for part in content if isinstance(part, ContentReasoning)]


def _tool_calls(output: ModelOutput) -> list[str]:
    """Calls of the offered tools, in their form in a conversation that is text."""
    calls = (output.message.tool_calls or []) if output.choices else []
    return [call_text(call.function, call.arguments) for call in calls]


def _problem(
    text: str,
    output: ModelOutput,
    split: Split,
    *,
    may_be_cut: bool,
    is_foreign: bool,
    tools: bool,
) -> Problem | None:
    if output.stop_reason == "content_filter":
        return "filtered"
    # The prompt did not fit: the text is the provider's error message.
    if output.stop_reason == "model_length":
        return "truncated"

    metadata = output.metadata or {}
    is_at_limit = output.stop_reason == "max_tokens"
    ending = _ENDINGS.get(str(metadata.get(ENDING)))
    if is_at_limit and ending == "unfinished":  # Responses have one word for both
        ending = "truncated"
    if ending == "truncated" or (is_at_limit and not ending):
        # What was cut after the model's own end is nobody's.
        may_count = may_be_cut or split.is_ended
        if not may_count or not text.strip():
            return "truncated"
    elif ending:
        return ending

    if HALF_CHARACTER in metadata:
        return "half_character"
    if not tools and _is_call(text, output):
        return "unoffered_call"
    if text.strip() in ("", _INSPECTS_EMPTY_TEXT):
        return "empty"
    if is_foreign:
        return "foreign"
    if split.has_marker or is_garbled(text):
        return "garbled"
    if is_error_text(text):  # a proxy's, under status 200
        return "error_text"
    if _is_marked_refusal(output) or is_refusal(text):
        return "refused"
    return None


def _is_call(text: str, output: ModelOutput) -> bool:
    """Whether the reply is a call of a tool, or ended in one that the vendor does not show.

    Gateways that get a JSON reply out of a model by a tool of their own may say so: a JSON reply is
    whole.
    """
    if _tool_calls(output):
        return True
    return output.stop_reason == "tool_calls" and not text.lstrip().startswith("{")


def _echo(text: str, prompt: str) -> tuple[bool, bool]:
    """Whether a reply begins with the prompt, and whether that is certainly no model's reply."""
    reply = " ".join(text.split())
    question = " ".join(prompt.split())
    if len(question) < SHORT_ECHO_CHARACTERS or not reply.startswith(question):
        return False, False
    is_whole_or_long = reply == question or len(question) >= LONG_ECHO_CHARACTERS
    return True, is_whole_or_long and not _ASKS_FOR_ITSELF.search(question)


def _is_marked_refusal(output: ModelOutput) -> bool:
    """Whether the provider itself marks the reply as a refusal."""
    content = output.message.content if output.choices else ""
    if isinstance(content, str):
        return False
    return any(isinstance(part, ContentText) and part.refusal for part in content)


def _reasoning(output: ModelOutput, model: Model | str) -> tuple[ReasoningKind, str | None]:
    """Kind of the reasoning, full only for the trace itself: a summary or a redacted trace is not
    the trace.
    """
    parts = _reasoning_parts(output)
    if not parts:
        return "none", None
    summary = "\n".join(part.summary or "" for part in parts).strip()
    if any(part.redacted for part in parts):
        return "redacted", summary or None

    trace = "\n".join(part.reasoning for part in parts if part.reasoning).strip()
    if trace:
        is_summary = any(_is_summary(part, model) for part in parts)
        return "summary" if is_summary else "full", trace
    if summary:
        return "summary", summary

    is_counted = output.usage is None or output.usage.reasoning_tokens != 0
    signatures = [part.signature or "" for part in parts]
    has_items = any(signature.startswith(_RESPONSES_ITEM_PREFIX) for signature in signatures)
    return "redacted" if is_counted and has_items else "none", None


def _is_summary(part: ContentReasoning, model: Model | str) -> bool:
    """Whether Inspect holds a provider's summary where it holds traces: for Google's models, and
    under OpenRouter.
    """
    if str(model).startswith("google/"):
        return True
    openrouter_json = (part.signature or "").partition("reasoning-details://")[2]
    if not openrouter_json:
        return False
    return not any(
        detail.get("type") == "reasoning.text" and detail.get("format") not in _SUMMARY_FORMATS
        for detail in json.loads(openrouter_json)
    )


def _first_token(output: ModelOutput, text: str, split: Split) -> list[TokenLogprob] | None:
    """Candidates for the first token of the answer, or None."""
    logprobs = output.choices[0].logprobs if output.choices else None
    candidates = candidates_in(logprobs)
    if logprobs is None or not candidates or split.thought is not None:
        return None
    if _reasoning_parts(output) and not text.startswith(logprobs.content[0].token.strip()):
        return None  # of the reasoning, an empty one too
    return candidates


def candidates_in(logprobs: Logprobs | None) -> list[TokenLogprob]:
    """Candidates for the first token of a completion, best first; none where they are placeholders."""
    if logprobs is None or not logprobs.content:
        return []
    first_token, *later_tokens = logprobs.content
    listed: Sequence[Logprob | TopLogprob] = first_token.top_logprobs or [first_token]
    values = reported(first_token)
    is_sure = says_nothing(values) and any(
        not says_nothing(reported(token)) for token in later_tokens
    )
    if are_placeholders(values) and not is_sure:
        return []
    return [TokenLogprob(token=entry.token, logprob=entry.logprob) for entry in listed]


def reported(token: Logprob) -> list[float]:
    """Log-probabilities that are reported for a token of a reply, in nats."""
    listed = [candidate.logprob for candidate in token.top_logprobs or []]
    return listed or [token.logprob]


def says_nothing(logprobs: Sequence[float]) -> bool:
    """Whether each log-probability is 0 or `IMPOSSIBLE`: so of a sure token, and of every token by
    some servers.
    """
    return all(logprob == 0 or logprob <= IMPOSSIBLE for logprob in logprobs)


def are_placeholders(logprobs: Sequence[float]) -> bool:
    """Whether the log-probabilities of the candidates for a token are no model's, but what a server
    fills in.

    >>> are_placeholders([0.0]), are_placeholders([-0.1, -3.4e38]), are_placeholders([0.0, -18.5])
    (True, True, False)

    They are where one is no number or above 0; where they say nothing (`says_nothing`), unless
    another token of the reply shows that this one was sure; where their probabilities sum to more
    than 1; and where one is `IMPOSSIBLE` and the others sum to less than 1, since candidates are
    listed from the likeliest on, and the rest has to be somewhere.

    Args:
        logprobs: In nats.
    """
    if any(math.isnan(logprob) or logprob > LOGPROB_ROUNDING for logprob in logprobs):
        return True
    if says_nothing(logprobs):
        return True
    possible = [logprob for logprob in logprobs if logprob > IMPOSSIBLE]
    total = math.fsum(math.exp(min(logprob, 0.0)) for logprob in possible)
    has_impossible = len(possible) < len(logprobs)
    return total > 1 + SHARES_ROUNDING or (has_impossible and total < 1 - SHARES_ROUNDING)
