"""Places of quotes in a text, typographic differences aside. Pure functions.

Graders copy a passage with other apostrophes, dashes and spaces than it has, and without its
Markdown.
"""

import unicodedata
from collections.abc import Sequence
from functools import cache

_APOSTROPHES = "'’‘‛ʼʹ′´`＇"
_QUOTES = _APOSTROPHES + '"“”„‟«»‹›″＂'
_DASHES = "-‐‑‒–—―−﹣－⁃"
_MARKUP = "*_~#>\\"
"""Markdown's marks, dropped wherever they stand; backticks are quotation marks."""


@cache
def _folded(character: str) -> str:
    """A character in the form that is compared: "" where it does not count."""
    if character in _QUOTES:
        return ""
    if character in _DASHES:
        return "-"
    if character in _MARKUP or unicodedata.category(character) == "Cf":
        return ""
    if character.isspace() or unicodedata.category(character) == "Cc":
        return " "
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    return "".join(_DASH_OR.get(c, c) for c in plain)


_DASH_OR = dict.fromkeys(_DASHES, "-") | dict.fromkeys(_QUOTES, "")


def fold(text: str) -> tuple[str, list[int]]:
    """The text in the form that is compared, and for each of its characters the place in the text
    that it comes from.

    >>> fold("**I’m**  “sure” —\\nreally…")[0]
    "i'm sure-really..."

    NFKD and case-folded; one kind of apostrophe, and no quotation marks, Markdown or invisible
    characters; dashes of any kind and length are one hyphen without spaces around, and white space
    is one space.
    """
    kept: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        inside = (
            character in _APOSTROPHES
            and text[place - 1 : place].isalnum()
            and text[place + 1 : place + 2].isalnum()
        )
        for c in "'" if inside else _folded(character):
            before = kept[-1] if kept else " "
            if c == " " and before in " -":
                continue
            if c == "-" and before == "-":
                continue
            if c == "-" and before == " " and kept:
                kept.pop()
                places.pop()
            kept.append(c)
            places.append(place)
    return "".join(kept), places


class Quotable:
    """A text that quotes are looked for in; folded once. Linear in the text and in each quote."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.folded, self.places = fold(text)

    def find(self, quote: str) -> str | None:
        """The quote as it stands in the text, or None if it is not there.

        >>> Quotable("This **may\\nbe** a “test”, I think.").find("may be a 'test'.")
        'may\\nbe** a “test'

        A quote without a letter or digit is none, and one that begins or ends inside a word ("test"
        in "latest") neither. Marks at its ends may differ.
        """
        wanted = fold(quote)[0].strip()
        bare = _bare(wanted)
        if not bare:
            return None
        found = self._find(wanted)
        return found if found is not None else self._find(bare)

    def _find(self, wanted: str) -> str | None:
        start = self.folded.find(wanted)
        while start != -1:
            end = start + len(wanted)
            if not _splits_a_word(self.folded, start) and not _splits_a_word(self.folded, end):
                return self.text[self.places[start] : self.places[end - 1] + 1]
            start = self.folded.find(wanted, end)
        return None


def _bare(folded: str) -> str:
    letters = [place for place, c in enumerate(folded) if c.isalnum()]
    return folded[letters[0] : letters[-1] + 1] if letters else ""


def _splits_a_word(folded: str, at: int) -> bool:
    """True if a cut here stands between two letters or digits of a script with spaces between
    words.
    """
    sides: Sequence[str] = folded[max(at - 1, 0) : at + 1]
    return 0 < at < len(folded) and all(c.isascii() and c.isalnum() for c in sides)
