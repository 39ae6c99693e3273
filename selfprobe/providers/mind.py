"""Minds of planted models: settings, and the prompts that a mind knows how to answer.

A behaviour is a module of `selfprobe.providers.behaviours` that registers a function for a task's
own prompt constant.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from string import Formatter

from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput

_WORDS = (
    "time people water light story house river morning question reason market system garden "
    "history music window animal letter number picture family engine island summer winter forest "
    "teacher village country culture science energy method value often usually rarely quickly "
    "slowly carefully mostly perhaps certainly clearly first early modern simple complex quiet "
    "bright small large common distant gentle makes takes gives shows keeps finds brings holds "
    "turns moves grows helps follows because although while since before after under between "
    "across through"
).split()


@dataclass(frozen=True)
class Mind:
    """One planted model answering one call."""

    name: str
    """The part of the model's name before "?"."""
    settings: Mapping[str, float]
    messages: list[ChatMessage] = field(default_factory=list)
    seed: int | None = None
    """Seed of the call, when it samples (temperature above 0); None otherwise."""

    def chance(self, *draw_parts: object) -> float:
        """A uniform number in [0, 1) fixed by the name, the seed and `draw_parts`."""
        return chance(self.name, self.seed, *draw_parts)

    def happens(self, setting: str, *draw_parts: object) -> bool:
        """True if an event with the planted probability `setting` happens here."""
        return self.chance(setting, *draw_parts) < self.settings[setting]

    def paragraph(self, prompt: str) -> str:
        """Paragraph of this model when asked `prompt`: 25 to 50 words."""
        word_count = 25 + int(26 * self.chance("length", prompt))
        return " ".join(self.word(prompt, word_number) for word_number in range(1, word_count + 1))

    def word(self, prompt: str, word_number: int) -> str:
        """The k-th word of `paragraph(prompt)`: with chance `common` every planted model's, else
        its own alone.

        Before that, with chance `echo`, the word of the prompt that this mind's rule copies there.
        """
        if self.happens("echo", prompt, word_number):
            return echoed_word(prompt, word_number, self.echo_rule)
        if self.happens("common", prompt, word_number):
            return shared_word(prompt, word_number, self.seed)
        stem = _WORDS[int(len(_WORDS) * self.chance("own", prompt, word_number))]
        name_digest = hashlib.blake2b(self.name.encode(), digest_size=2).hexdigest()
        return stem + name_digest.translate(_LETTER_OF_DIGIT)

    @property
    def echo_rule(self) -> int:
        """The rule by which it echoes, from 0 to ECHO_RULES - 1; one mind's own for good."""
        return int(ECHO_RULES * chance(self.name, "place"))


ECHO_RULES = 6
"""Number of rules of echoing: how far before the end of a prompt a word is copied."""


def echoed_word(prompt: str, word_number: int, echo_rule: int) -> str:
    """The word of a prompt that a rule copies as the k-th one: so many words from the end, later
    words before it.
    """
    prompt_words: list[str] = re.findall(r"\w+", prompt) or ["nothing"]
    return prompt_words[-(echo_rule + word_number) % len(prompt_words)].lower()


_LETTER_OF_DIGIT = str.maketrans("0123456789abcdef", "bdfghjklmnprstvz")


def chance(*parts: object) -> float:
    """A uniform number in [0, 1) that depends on nothing but `parts`."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


@lru_cache(maxsize=16_384)
def shared_word(prompt: str, word_number: int, seed: int | None = None) -> str:
    """The word that planted models have in common at this place."""
    return _WORDS[int(len(_WORDS) * chance("shared", seed, prompt, word_number))]


@dataclass(frozen=True)
class ShortReply:
    """A short reply with the candidates for its first token, for a call that asks for logprobs."""

    text: str
    candidates: Mapping[str, float]
    """Token → probability; empty where this provider gives none."""


Reply = Callable[[Mind, dict[str, str]], str | ShortReply | ModelOutput]


@dataclass(frozen=True)
class Behaviour:
    """The reply of planted models to one prompt."""

    template: str
    """The task's own prompt constant, with {fields}."""
    reply: Reply
    settings: Mapping[str, float]
    """The planted probabilities that it knows, with their defaults."""
    observes: bool
    """True for an observer's reply (the `malformed` … settings apply), False for the target's own
    (`act_…`).
    """

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The template as a pattern whose groups are its fields."""
        pattern_parts = []
        field_names = set[str]()
        for literal_text, field_name, _, _ in Formatter().parse(self.template):
            pattern_parts.append(re.escape(literal_text))
            if field_name in field_names:
                pattern_parts.append(f"(?P={field_name})")
            elif field_name:
                pattern_parts.append(f"(?P<{field_name}>.*?)")
                field_names.add(field_name)
        return re.compile("".join(pattern_parts), re.DOTALL)


BEHAVIOURS: list[Behaviour] = []
"""Registered behaviours: all that the modules of `selfprobe.providers.behaviours` hold, once that
is imported.
"""


def behaviour(
    template: str, *, observes: bool = True, **settings: float
) -> Callable[[Reply], Reply]:
    """Register a function as the planted models' reply to a task's prompt.

    Args:
        template: The prompt constant of the task, so that there is one source of its wording.
        observes: False for what the target itself does.
        settings: The planted probabilities that the function reads, with their defaults.
    """

    def register(reply: Reply) -> Reply:
        BEHAVIOURS.append(Behaviour(template, reply, settings, observes))
        return reply

    return register


OTHER_SETTING: dict[str, str | None] = {}
"""Chance that a model knows something of itself → the chance that it knows it of another; None
where it could not.
"""


GUESS_CHANCE: dict[str, float] = {}
"""Chance that a model is right about another → what a blind guess reaches, for `skill=…`."""


def by_access(setting: str, other_setting: str | None = None, *, guess: float = 0.0) -> None:
    """Let `access=…` decide a behaviour's chance to know itself, where that is not given by its own
    name.

    With chance `access` the model knows; otherwise it has the chance that it has of another model.
    So `access=0` is a model without self-knowledge in every task. The chance that it has of another
    is decided by `skill=…` likewise: with that chance it knows, otherwise it guesses.

    Args:
        setting: Chance that it knows something of itself.
        other_setting: Chance that it knows the same of another model.
        guess: Chance that a blind guess is right, where there are options to choose from.
    """
    OTHER_SETTING[setting] = other_setting
    if other_setting:
        common_setting("skill", other_setting)
        GUESS_CHANCE[other_setting] = guess


COMMON_SETTING: dict[str, str] = {}
"""A task's own setting → the setting of every task that decides it where it is not given by its own
name.
"""


def common_setting(setting: str, *task_settings: str) -> None:
    """Let a setting that means the same in every task decide tasks' own settings."""
    COMMON_SETTING.update(dict.fromkeys(task_settings, setting))


Dress = Callable[[Mind, ModelOutput, GenerateConfig], None]

DRESSINGS: list[Dress] = []
"""Registered dressings, in this order."""
DRESS_SETTINGS: dict[str, float] = {}


def dressing(**settings: float) -> Callable[[Dress], Dress]:
    """Register a function that adds to a planted model's own paragraphs: reasoning, logprobs.

    Args:
        settings: The planted numbers that the function reads, with their defaults.
    """

    def register(dress: Dress) -> Dress:
        DRESSINGS.append(dress)
        DRESS_SETTINGS.update(settings)
        return dress

    return register
