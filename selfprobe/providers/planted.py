"""Simulated models with a known truth: `planted/<name>?access=.8&malformed=.05`.

Every metric must recover what was planted; that is how the suite is checked. No network, no weights. A planted
model is deterministic from its name: the same name gives the same text to the same prompt at temperature 0, and
above it to the same prompt and seed. Two names that share the part before "?" are one mind with other settings.

Each task's behaviour lives in its own module of `selfprobe.providers.behaviours`, which registers a function for
the task's own prompt constant. A prompt that no behaviour knows gets a deterministic paragraph.

Settings of every planted model (each a share of replies; 0 unless given):
    common                             chance that a word of a paragraph is the one every planted model would write (.5)
    malformed, empty, refused, truncated       of what it says as an observer: replies to a behaviour's prompt
    act_empty, act_refused, act_truncated      of its own behaviour: paragraphs
"""

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from string import Formatter
from typing import Any
from urllib.parse import parse_qsl

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    Logprob,
    Logprobs,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
    TopLogprob,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from selfprobe.arguments import meant
from selfprobe.errors import InputError

FAULTS = ("malformed", "empty", "refused", "truncated")
DEFAULTS: dict[str, float] = {"common": 0.5, **dict.fromkeys((*FAULTS, *(f"act_{f}" for f in FAULTS[1:])), 0.0)}

_WORDS = (
    "time people water light story house river morning question reason market system garden history music window "
    "animal letter number picture family engine island summer winter forest teacher village country culture science "
    "energy method value often usually rarely quickly slowly carefully mostly perhaps certainly clearly first early "
    "modern simple complex quiet bright small large common distant gentle makes takes gives shows keeps finds brings "
    "holds turns moves grows helps follows because although while since before after under between across through"
).split()
_MALFORMED = ("It depends, as so often.", '{"answer": ', '{"reply": {"is": "nested"}}', "[1, 2, 3]", "As you wish! {}")
REFUSAL = "I'm sorry, but I can't help with that."


@dataclass(frozen=True)
class Mind:
    """One planted model answering one call."""

    name: str
    """The part of the model's name before "?"."""
    settings: Mapping[str, float]
    messages: list[ChatMessage] = field(default_factory=list)
    seed: int | None = None
    """Of the call, when it samples (temperature above 0); None otherwise."""

    def chance(self, *about: object) -> float:
        """A uniform number in [0, 1) fixed by the name, the seed and `about`."""
        return chance(self.name, self.seed, *about)

    def happens(self, setting: str, *about: object) -> bool:
        """Whether an event with the planted probability `setting` happens here."""
        return self.chance(setting, *about) < self.settings[setting]

    def paragraph(self, prompt: str) -> str:
        """What this model writes when asked `prompt`: 25 to 50 words."""
        return " ".join(self.word(prompt, k) for k in range(1, 26 + int(26 * self.chance("length", prompt))))

    def word(self, prompt: str, k: int) -> str:
        """The k-th word of `paragraph(prompt)`: with chance `common` every planted model's, else its own alone."""
        if self.happens("common", prompt, k):
            return shared_word(prompt, k, self.seed)
        own = _WORDS[int(len(_WORDS) * self.chance("own", prompt, k))]
        return own + hashlib.blake2b(self.name.encode(), digest_size=2).hexdigest().translate(_LETTERS)


_LETTERS = str.maketrans("0123456789abcdef", "bdfghjklmnprstvz")


def chance(*parts: object) -> float:
    """A uniform number in [0, 1) that depends on nothing but `parts`."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


@lru_cache(maxsize=16_384)
def shared_word(prompt: str, k: int, seed: int | None = None) -> str:
    """The word that planted models have in common at this place."""
    return _WORDS[int(len(_WORDS) * chance("shared", seed, prompt, k))]


@dataclass(frozen=True)
class Said:
    """A short reply with the candidates for its first token, for a call that asks for logprobs."""

    text: str
    candidates: Mapping[str, float]
    """Token → probability; empty where this provider gives none."""


Reply = Callable[[Mind, dict[str, str]], str | Said | ModelOutput]


@dataclass(frozen=True)
class Behaviour:
    """How planted models answer one prompt."""

    template: str
    """The task's own prompt constant, with {fields}."""
    reply: Reply
    settings: Mapping[str, float]
    """The planted probabilities that it knows, with their defaults."""
    observes: bool
    """Whether the reply is an observer's (the `malformed` … settings apply) or the target's own (`act_…`)."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The template as a pattern whose groups are its fields."""
        parts, seen = [], set[str]()
        for text, name, _, _ in Formatter().parse(self.template):
            parts.append(re.escape(text))
            if name:
                parts.append(f"(?P={name})" if name in seen else f"(?P<{name}>.*?)")
                seen.add(name)
        return re.compile("".join(parts), re.DOTALL)


_BEHAVIOURS: list[Behaviour] = []


def behaviour(template: str, *, observes: bool = True, **settings: float) -> Callable[[Reply], Reply]:
    """Register a function as the planted models' reply to a task's prompt.

    Args:
        template: The prompt constant of the task, so that there is one source of its wording.
        observes: False for what the target itself does.
        settings: The planted probabilities that the function reads, with their defaults.
    """

    def register(reply: Reply) -> Reply:
        _BEHAVIOURS.append(Behaviour(template, reply, settings, observes))
        return reply

    return register


Dress = Callable[[Mind, ModelOutput, GenerateConfig], None]

_DRESSINGS: list[Dress] = []
_DRESS_SETTINGS: dict[str, float] = {}


def dressing(**settings: float) -> Callable[[Dress], Dress]:
    """Register a function that adds to a planted model's own paragraphs: reasoning, logprobs.

    Args:
        settings: The planted numbers that the function reads, with their defaults.
    """

    def register(dress: Dress) -> Dress:
        _DRESSINGS.append(dress)
        _DRESS_SETTINGS.update(settings)
        return dress

    return register


def behaviours() -> list[Behaviour]:
    """All of them; the modules are imported here, so that a task file can be imported without its behaviour."""
    import selfprobe.providers.behaviours  # noqa: F401

    return _BEHAVIOURS


def parse_name(model_name: str, given: Mapping[str, Any]) -> tuple[str, dict[str, float]]:
    """The name and all settings of `alpha?access=.8`, model arguments (`-M access=.8`) included.

    Raises:
        InputError: No name, an unknown setting (with the known ones), or a value that is no probability.
    """
    name, _, query = model_name.partition("?")
    if not name.strip():
        raise InputError(f"planted/{model_name}: a planted model needs a name, such as planted/ada?access=.8")
    defaults = {**DEFAULTS, **{k: v for b in behaviours() for k, v in b.settings.items()}, **_DRESS_SETTINGS}
    settings = dict(defaults)
    for key, value in [*parse_qsl(query, keep_blank_values=True), *given.items()]:
        if key not in defaults:
            hint = meant(key, defaults) or "."
            raise InputError(
                f"planted/{model_name}: unknown setting {key}{hint} There are {', '.join(sorted(defaults))}"
            )
        try:
            settings[key] = float(value)
        except (TypeError, ValueError):
            raise InputError(f"planted/{model_name}: {key} must be a number, got {value!r}") from None
        if not -1.0 <= settings[key] <= 1.0:
            raise InputError(f"planted/{model_name}: {key} must be a number from -1 to 1, got {value}")
    for prefix in ("", "act_"):
        if (total := sum(settings.get(prefix + fault, 0.0) for fault in FAULTS)) > 1:
            raise InputError(f"planted/{model_name}: the rates of faults add up to {total:g}, more than 1")
    return name, settings


class PlantedAPI(ModelAPI):
    """Inspect's side of a planted model."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008  (Inspect's signature)
        **model_args: Any,
    ) -> None:
        super().__init__(model_name=model_name, base_url=base_url, api_key=api_key, config=config)
        self.name, self.settings = parse_name(model_name, model_args)

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        prompt = next((m.text for m in reversed(input) if m.role == "user"), "")
        mind = Mind(self.name, self.settings, input, config.seed if config.temperature else None)
        for known in behaviours():
            if asked := known.pattern.fullmatch(prompt):
                reply, observes = known.reply(mind, asked.groupdict()), known.observes
                break
        else:
            reply, observes, known = mind.paragraph(prompt), False, None
        if isinstance(reply, ModelOutput):
            return reply
        meant = reply.text if isinstance(reply, Said) else reply
        # Of a conversation all of it: the same question is put about many.
        text, stop = _spoiled(mind, meant, "\x1f".join(m.text for m in input), observes=observes)
        output = self.output(text, stop, prompt)
        if isinstance(reply, Said) and reply.candidates and config.logprobs and text:
            candidates = reply.candidates if text == meant else {text.split()[0]: 0.9}
            output.choices[0].logprobs = Logprobs(content=[_first_token(candidates)])
        for dress in _DRESSINGS if known is None else []:
            dress(mind, output, config)
        return output

    def output(self, text: str, stop: StopReason, prompt: str) -> ModelOutput:
        """A ModelOutput with its usage (without one Inspect would fetch a tokenizer)."""
        spent, written = len(prompt) // 4 + 1, len(text) // 4 + 1
        return ModelOutput(
            model=self.model_name,
            choices=[
                ChatCompletionChoice(
                    message=ChatMessageAssistant(content=text, model=self.model_name, source="generate"),
                    stop_reason=stop,
                )
            ],
            usage=ModelUsage(input_tokens=spent, output_tokens=written, total_tokens=spent + written),
        )

    def max_connections(self) -> int:
        return 100


def _spoiled(mind: Mind, text: str, prompt: str, *, observes: bool) -> tuple[str, StopReason]:
    """The reply after the planted faults: at most one, drawn by prompt."""
    prefix, draw = ("" if observes else "act_"), mind.chance("fault", observes, prompt)
    for fault in FAULTS:
        rate = mind.settings.get(prefix + fault, 0.0)
        if draw < rate:
            spoiled: dict[str, tuple[str, StopReason]] = {
                "malformed": (_MALFORMED[int(len(_MALFORMED) * draw / rate)], "stop"),
                "empty": ("", "stop"),
                "refused": (REFUSAL, "stop"),
                "truncated": ("", "max_tokens"),
            }
            return spoiled[fault]
        draw -= rate
    return text, "stop"


def _first_token(candidates: Mapping[str, float]) -> Logprob:
    top = [TopLogprob(token=t, logprob=math.log(p)) for t, p in sorted(candidates.items(), key=lambda c: -c[1])]
    return Logprob(token=top[0].token, logprob=top[0].logprob, top_logprobs=top)


@modelapi(name="planted")
def planted() -> type[ModelAPI]:
    """Simulated models with a known truth."""
    return PlantedAPI
