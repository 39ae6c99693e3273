"""Settings that a call was really sent with, read from the request itself.

Inspect's providers drop what a model is known not to take, without a word in the log: temperature
for Claude and for models that reason, the seed for OpenAI's Responses. So what was applied is read
from the request.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from selfprobe.solvers.record import Applied

_TEXT_PATHS = re.compile(
    r"(^|\.)(messages|input|contents|prompt|system|systeminstruction|instructions|tools|extraheaders)$"
)
"""Parts of a request that hold no settings."""

_VENDOR_NAMES = {
    "effort": r"reasoningeffort|effort|thinkinglevel|thinkingbudget|budgettokens|thinking\.type|enablethinking",
    "temperature": r"temperature",
    "seed": r"(?:random)?seed",
    "form": r"responseformat|responseschema|responsejsonschema|outputformat|format|guidedjson|jsonschema|grammar",
    "logprobs": r"logprobs|responselogprobs|toplogprobs",
    "limit": r"(?<!reasoning\.)(?:max(?:completion|output|new)?tokens|numpredict)",
    "include": r"include",
}
"""Vendors' names of a setting: the end of its path in the request, in lower case and without
underscores.
"""

_SETTING_PATH = re.compile(
    r"(?:^|\.)(?:" + "|".join(f"(?P<{name}>{of})" for name, of in _VENDOR_NAMES.items()) + ")$"
)


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
        values[_setting_name(path)].append(value)
    included_parts = [part for parts in values["include"] for part in parts or ()]
    includes_logprobs = any("logprobs" in str(part) for part in included_parts)
    has_form = any(value not in (None, "", "text") for value in values["form"])
    limits = [value for value in values["limit"] if isinstance(value, int)]
    return Applied(
        effort=_effort_text(values["effort"]),
        temperature=_first_given(values["temperature"]),
        seed=_first_given(values["seed"]),
        form=has_form,
        logprobs=includes_logprobs or any(values["logprobs"]),
        limit=_first_given(limits),
        thinks=thinks,
    )


def _first_given(values: list[Any]) -> Any:
    """The first value that is not None; None where there is none."""
    return next((value for value in values if value is not None), None)


def _settings_by_path(part: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting of a request by its path. The type of a reply's format stands for the whole
    format.
    """
    for key, value in part.items():
        value_path = f"{path}.{key}".lower().replace("_", "").removeprefix(".")
        if _TEXT_PATHS.search(value_path):
            continue
        if not isinstance(value, Mapping):
            yield value_path, value
        elif _setting_name(value_path) == "form":
            yield value_path, value.get("type", "schema")
        else:
            yield from _settings_by_path(value, value_path)


def settings_of_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a request that `applied` reads, by path."""
    return {path: value for path, value in _settings_by_path(request) if _setting_name(path)}


def _setting_name(path: str) -> str | None:
    """Name in `_VENDOR_NAMES` of the setting at a path of a request; None for what is none of them."""
    match = _SETTING_PATH.search(path)
    return match and match.lastgroup


def _effort_text(values: list[Any]) -> str | None:
    """Effort as a word where the vendor has words, else as the tokens to think with."""
    budgets = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    effort = _first_given(budgets or values)
    if effort is None:
        return None
    if effort in (False, 0, "disabled"):
        return "none"
    if effort is True:
        return "on"
    if isinstance(effort, int):
        return f"{effort} tokens"
    return str(effort).lower()
