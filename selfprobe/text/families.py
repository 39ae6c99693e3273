"""Families of models, by their names, and whether two names are one model.

A family is models of one vendor, or that were made of one another's weights. A judge that shares
the subject's training may share its idea of what a test looks like.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_PATTERN_BY_MAKER = {
    "openai": r"gpt|chatgpt|davinci|\bo[134](?![a-z\d])",
    "anthropic": r"claude",
    "google": r"gemini|gemma|palm",
    "meta": r"llama",
    "alibaba": r"qwen|qwq",
    "mistral": r"mistral|mixtral|ministral|magistral|codestral|devstral|pixtral",
    "deepseek": r"deepseek",
    "xai": r"grok",
    "cohere": r"command-[ra]\b|aya-",
    "moonshot": r"kimi",
    "zhipu": r"glm",
    "microsoft": r"(?<![a-z])phi-?\d",
    "smollm": r"smollm",
}
"""Maker → what the names of its models hold."""


SIMULATED_PROVIDERS = ("planted", "mockllm")
"""Providers of models that answer by a rule: what they say is known before, and says nothing of a
real model.
"""
NO_MODEL = "none"
"""Inspect's provider of no model at all."""


def simulated_rule_sentence(role: str, models: Iterable[str]) -> str:
    """Sentence on the rule by which the simulated ones of models answer; "" where there is none.

    >>> simulated_rule_sentence("judges", ["openai/gpt-5"])
    ''
    """
    simulated_models = ", ".join(model for model in models if is_simulated(model))
    if not simulated_models:
        return ""
    return (
        f"Simulated {role} ({simulated_models}) go by the labels of bundled rows and, of any "
        "other text, by a coin that its words fix: they say nothing about your prompts."
    )


def is_simulated(model: str) -> bool:
    """Whether the model of this full name answers by a rule.

    >>> is_simulated("planted/ada?access=.8"), is_simulated("openai/gpt-5")
    (True, False)
    """
    return model.partition("/")[0] in SIMULATED_PROVIDERS


def families(model: str) -> frozenset[str]:
    """The families of a model, by its name in Inspect; a distillate has two.

    >>> sorted(families("openrouter/deepseek/deepseek-r1-distill-llama-70b"))
    ['deepseek', 'meta']
    >>> sorted(families("azureai/gpt-5"))
    ['openai']

    A name that tells no maker is a family of its own, without its settings: `planted/ada?access=.8`
    is "planted/ada".
    """
    name = model.lower().partition("?")[0]
    own_family = frozenset({name})
    if name.startswith("planted/"):
        return own_family
    last_part = name.rpartition("/")[2]
    makers = frozenset(
        maker for maker, pattern in _PATTERN_BY_MAKER.items() if re.search(pattern, last_part)
    )
    return makers or own_family


def simulated_reader_fault(reader: str, subjects: Iterable[str], option: str) -> str:
    """Sentence that refuses a simulated grader of a real model's texts; "" where there is nothing
    to refuse.

    It goes by a rule of its own, and its No would look like one of somebody who read them.

    Args:
        reader: Name of the grader or judge.
        subjects: Models whose texts it would read.
        option: What a user types before the name of a real one.
    """
    if not is_simulated(reader):
        return ""
    for subject in subjects:
        if not is_simulated(subject) and subject.partition("/")[0] != NO_MODEL:
            return (
                f"{reader} is simulated: it answers by a fixed rule and cannot read the texts of "
                f"{subject}; give a model that reads, such as {option}openai/gpt-5.6-luna"
            )
    return ""


def related(model: str, other_model: str) -> bool:
    """True if two models share a family."""
    return bool(families(model) & families(other_model))


_HOST_PREFIX = re.compile(r"^(?:[a-z-]+\.){1,2}(?=[a-z])")
"""Region and maker before a name: Bedrock's `us.anthropic.claude-…`."""

_ROUTE = re.compile(r"[:@-](latest)$|:([a-z-]+)$")
"""Routing part of a name: OpenRouter's `:free`, `-latest`. A size (`:8b`) belongs to the name."""


_SNAPSHOT = re.compile(
    r"[-@_]("
    r"20\d\d-?(?:0[1-9]|1[0-2])-?[0-3]\d"  # 2024-08-06, 20240806
    r"|(?:0[1-9]|1[0-2])-20\d\d"  # 08-2024
    r"|(?:0[1-9]|1[0-2])-?(?:[0-2]\d|3[01])"  # 0613, 05-20
    r"|2[3-9](?:0[1-9]|1[0-2])"  # 2411: year and month
    r"|0\d\d"  # 001
    r")$"
)
"""Date or number of a frozen model, at the end of a vendor's name."""


def same_model(asked_model: str, answering_model: str) -> bool:
    """True if a vendor's name for the model that answered means the model that was asked.

    Providers before the name, case, separators, the order of words, routes (`:free`, `-latest`) and
    a snapshot's date that one of the two lacks make no difference. Two dates, sizes or any other
    word do.

    >>> same_model("openrouter/openai/gpt-4o:free", "gpt-4o-2024-08-06")
    True
    >>> same_model("openai/gpt-4o", "gpt-4o-mini")
    False
    """
    asked, answering = _parts_of_name(asked_model), _parts_of_name(answering_model)
    return (
        asked.words == answering.words
        and _may_be_equal(asked.route, answering.route)
        and _may_be_equal(asked.snapshot, answering.snapshot)
    )


def _may_be_equal(part: str, other_part: str) -> bool:
    """True if one of two parts of a name is missing, or is the end of the other."""
    return not part or not other_part or part.endswith(other_part) or other_part.endswith(part)


@dataclass(frozen=True)
class _ModelName:
    """The parts of a model's name."""

    words: tuple[str, ...]
    """Words of the name, in alphabetical order."""
    route: str
    """Routing part; "" where it has none."""
    snapshot: str
    """Digits of the date or number; "" where it has none."""


def _parts_of_name(model: str) -> _ModelName:
    name = _HOST_PREFIX.sub("", model.strip().lower().rpartition("/")[2])
    name = re.sub(r"-v\d+:\d+$", "", name)  # Bedrock's version of its own entry
    route = ""
    if route_match := _ROUTE.search(name):
        route = route_match[1] or route_match[2]
        name = name[: route_match.start()]
    snapshot = ""
    if snapshot_match := _SNAPSHOT.search(name):
        snapshot = re.sub(r"\D", "", snapshot_match[1])
        name = name[: snapshot_match.start()]
    return _ModelName(tuple(sorted(re.split(r"[-_.:@\s]+", name))), route, snapshot)
