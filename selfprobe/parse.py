"""From a raw reply to what was meant, or None. Pure functions; no model, no score.

None always means "this cannot be read", never "wrong": the scorer turns it into an unscored reason.
"""

import json
import re
import unicodedata
from collections.abc import Iterator

_REFUSAL = re.compile(
    r"^\W*(?:(?:i['’]?m|i am|we['’]?re|we are)\s+(?:very\s+|so\s+|really\s+)?sorry|sorry|apologies|i apologi[sz]e"
    r"|as an ai(?: language model| assistant)?|unfortunately)?[\s,.;:!—–-]*(?:but\s+)?"
    r"(?:i|we)\s*(?:can(?:['’]?t|not)|won['’]?t|will not"
    r"|(?:['’]?m|\s+am|['’]?re|\s+are)\s*(?:not able|unable|not going)\s+to"
    r"|(?:must|have to|need to)\s+decline)"
    r"(?:\s+(?:to\s+)?(?:help|assist|comply|provide|do|answer|fulfil+|continue|discuss|engage|create|write|generate|with)\b"
    r"|\s*[.!]|\s*$)",
    re.IGNORECASE,
)
_THINK = re.compile(r"^\s*<(think|thinking)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_INVISIBLE = {"Cc", "Cf"}


def is_refusal(text: str) -> bool:
    """Whether a reply opens by declining: "I'm sorry, but I can't help with that."

    Only the opening counts, and only first-person declining: a story in which somebody says
    "I can't" further down is a story.
    """
    return _REFUSAL.match(text[:300]) is not None


def is_garbled(text: str) -> bool:
    """Whether a reply holds control characters other than white space (terminal escapes, NUL): it is not text."""
    return any(unicodedata.category(c) == "Cc" and not c.isspace() for c in text)


def think_block(text: str) -> tuple[str | None, str]:
    """Split a leading <think>…</think> from the reply proper: (reasoning or None, rest).

    An unclosed block is all reasoning: the reply was cut before it began.
    """
    found = _THINK.match(text)
    if found is None:
        return None, text
    return found.group(2).strip(), text[found.end() :].lstrip()


def normalise(word: str) -> str:
    """A word as it is compared: NFKC, casefolded, stripped of punctuation and symbols at both ends.

    >>> normalise("**“The,”**")
    'the'

    Paper: case-insensitive, punctuation-stripped (E.2). Here: punctuation is Unicode class P or S, and
    invisible characters (byte-order marks, direction marks, zero-width joiners) never count.
    """
    visible = "".join(c for c in word if unicodedata.category(c) not in _INVISIBLE)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    start, end = 0, len(folded)
    while start < end and _is_mark(folded[start]):
        start += 1
    while end > start and _is_mark(folded[end - 1]):
        end -= 1
    return folded[start:end]


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def words(text: str, limit: int | None = None) -> list[str]:
    """The raw words of a text in order: white-space tokens that are not empty once normalised."""
    found: list[str] = []
    for token in re.finditer(r"\S+", text):
        if normalise(token.group()):
            found.append(token.group())
            if limit is not None and len(found) == limit:
                break
    return found


def json_value(text: str, key: str) -> object | None:
    """The value under `key` in the reply's JSON object, or None.

    Accepted: prose or code fences around the object, doubled braces (`{{"word": "x"}}`, copied from a
    template). Refused (None): no object, another key or further keys in it (then the reply answers
    something else), several objects that disagree.

    >>> json_value('Sure: ```json\\n{"word": "The"}\\n```', "word")
    'The'
    """
    found = [value[key] for value in _objects(text) if set(value) == {key}]
    others = [value for value in _objects(text) if set(value) != {key}]
    if not found or others or any(value != found[0] for value in found):
        return None
    value: object = found[0]
    return value


_LONGEST_REPLY = 100_000  # characters; JSON that is asked for has a few dozen


def _objects(text: str) -> Iterator[dict[str, object]]:
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    text = re.sub(r"\}\s*\}", "}", re.sub(r"\{\s*\{", "{", text[:_LONGEST_REPLY]))
    position = text.find("{")
    while position != -1:
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            yield value
        position = text.find("{", end)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
