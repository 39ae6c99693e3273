"""Families of models, by their names, and whether two names are one model.

A family is models of one vendor, or that were made of one another's weights. A judge that shares
the subject's training may share its idea of what a test looks like.
"""

import re
from collections.abc import Iterable

_MAKERS = {
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


def is_simulated(model: str) -> bool:
    """Whether the model of this full name answers by a rule.

    >>> is_simulated("planted/ada?access=.8"), is_simulated("openai/gpt-5")
    (True, False)
    """
    return model.partition("/")[0] in SIMULATED_PROVIDERS


def families(model: str) -> frozenset[str]:
    """The families of a model, by its name in Inspect; a distillate has two.

    >>> sorted(families("openrouter/deepseek/deepseek-r1-distill-llama-70b")), sorted(families("azureai/gpt-5"))
    (['deepseek', 'meta'], ['openai'])

    A name that tells no maker is a family of its own, without its settings: `planted/ada?access=.8`
    is "planted/ada".
    """
    name = model.lower().partition("?")[0]
    tail = name.rpartition("/")[2]
    found = frozenset(maker for maker, pattern in _MAKERS.items() if re.search(pattern, tail))
    return found if found and not name.startswith("planted/") else frozenset({name})


def simulated_reader_fault(reader: str, subjects: Iterable[str], option: str) -> str:
    """Sentence that refuses a simulated grader of a real model's texts; "" where there is nothing
    to refuse.

    It goes by a rule of its own, and its No would look like one of somebody who read them.

    Args:
        reader: Name of the grader or judge.
        subjects: Models whose texts it would read.
        option: What a user types before the name of a real one.
    """
    real_subjects = [
        subject
        for subject in subjects
        if not is_simulated(subject) and subject.partition("/")[0] != NO_MODEL
    ]
    if not is_simulated(reader) or not real_subjects:
        return ""
    return (
        f"{reader} is simulated: it answers by a fixed rule and cannot read the texts of {real_subjects[0]}; give a "
        f"model that reads, such as {option}openai/gpt-5-mini"
    )


def related(one: str, other: str) -> bool:
    """True if two models share a family."""
    return bool(families(one) & families(other))


_HOST = re.compile(r"^(?:[a-z-]+\.){1,2}(?=[a-z])")
"""Region and maker before a name: Bedrock's `us.anthropic.claude-…`."""
_TAG = re.compile(r"[:@-](latest)$|:([a-z-]+)$")
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


def same_model(asked: str, answered: str) -> bool:
    """True if a vendor's name for the model that answered means the model that was asked.

    Providers before the name, case, separators, the order of words, routes (`:free`, `-latest`) and
    a snapshot's date that one of the two lacks make no difference. Two dates, sizes or any other
    word do.

    >>> same_model("openrouter/openai/gpt-4o:free", "gpt-4o-2024-08-06"), same_model("openai/gpt-4o", "gpt-4o-mini")
    (True, False)
    """
    (name, *marks), (other, *others) = _named(asked), _named(answered)
    return name == other and all(
        not mark or not its or mark.endswith(its) or its.endswith(mark)
        for mark, its in zip(marks, others, strict=True)
    )


def _named(model: str) -> tuple[tuple[str, ...], str, str]:
    """The words of a name in order, its route and the digits of its snapshot; "" where it has none."""
    rest = _HOST.sub("", model.strip().lower().rpartition("/")[2])
    rest = re.sub(r"-v\d+:\d+$", "", rest)  # Bedrock's version of its own entry
    tag = _TAG.search(rest)
    rest = rest[: tag.start()] if tag else rest
    date = _SNAPSHOT.search(rest)
    rest = rest[: date.start()] if date else rest
    route = (tag[1] or tag[2]) if tag else ""
    return (
        tuple(sorted(re.split(r"[-_.:@\s]+", rest))),
        route,
        re.sub(r"\D", "", date[1]) if date else "",
    )
