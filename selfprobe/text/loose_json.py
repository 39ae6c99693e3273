"""JSON objects in a reply, and what is nearly one: single quotes, bare keys, a comma too many. Pure functions."""

import json
import re
from collections.abc import Iterator

import yaml

LONGEST_REPLY = 100_000  # characters; JSON that is asked for has a few dozen
_MOST_BRACES = 200  # every one is tried; a hundred thousand would take a minute
_MOST_LOOSE = 8  # objects that are read as YAML, which is slow
_FLAT = re.compile(r"\{[^{}]{1,4000}\}")
_STRAIGHT = str.maketrans(dict.fromkeys("“”„", '"'))
_QUOTED = re.compile(r"""\{\s*['"]?(\w{1,40})['"]?\s*:\s*'([^{}",]*)'\s*,?\s*\}""")
_NO_TEXT = {"", "null", "none", "nan", "infinity", "-infinity"}


def objects(text: str, *, loose: bool = False) -> Iterator[dict[str, object]]:
    """The JSON objects of a reply in order, an inner one only where the outer one is none.

    >>> list(objects("Sure: {word: 'The',}", loose=True))
    [{'word': 'The'}]

    Of doubled braces (copied from a template) the outer one is no JSON and the inner one is. A reply with more than
    200 opening braces has none.

    Args:
        text: The reply.
        loose: Whether what is nearly JSON is read too; its values are strings or lists.
    """
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    text = text[:LONGEST_REPLY]
    tries = _MOST_LOOSE if loose else 0
    position = text.find("{") if text.count("{") <= _MOST_BRACES else -1
    while position != -1:
        end = position + 1
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            flat = _FLAT.match(text, position) if tries else None
            tries -= flat is not None
            value = nearly(flat.group()) if flat else None
            end = flat.end() if flat and value else end
        if value is not None:
            yield value
        position = text.find("{", end)


def nearly(text: str) -> dict[str, object] | None:
    """What stands between two braces without others in them, or None for prose and for a value that is missing.

    >>> nearly("{'word': 'don't'}"), nearly("{of thoughts}")
    ({'word': "don't"}, None)
    """
    straight = text.translate(_STRAIGHT)
    if found := _QUOTED.fullmatch(straight):
        return {found[1]: found[2]}
    try:
        value = yaml.load(straight, Loader=yaml.BaseLoader)  # strings and lists, no other objects
    except (yaml.YAMLError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    missing = any(isinstance(each, str) and each.strip().casefold() in _NO_TEXT for each in value.values())
    return None if missing or not all(isinstance(key, str) for key in value) else value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
