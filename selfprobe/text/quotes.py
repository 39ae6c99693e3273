"""Places of quotes in a text, typographic differences aside. Pure functions.

Graders copy a passage with other apostrophes, dashes and spaces than it has, and without its
Markdown.
"""

import unicodedata
from functools import cache

_APOSTROPHES = "'’‘‛ʼʹ′´`＇"


_QUOTE_MARKS = _APOSTROPHES + '"“”„‟«»‹›″＂'
_DASHES = "-‐‑‒–—―−﹣－⁃"
_MARKUP = "*_~#>\\"
"""Markdown's marks, dropped wherever they stand; backticks are quotation marks."""


@cache
def _folded(character: str) -> str:
    """A character in the form that is compared: "" where it does not count."""
    if character in _QUOTE_MARKS:
        return ""
    if character in _DASHES:
        return "-"
    category = unicodedata.category(character)
    if character in _MARKUP or category == "Cf":
        return ""
    if character.isspace() or category == "Cc":
        return " "
    casefolded = unicodedata.normalize("NFKD", character).casefold()
    letters = unicodedata.normalize("NFKD", casefolded)
    return "".join(_FOLDED_MARKS.get(letter, letter) for letter in letters)


_FOLDED_MARKS = dict.fromkeys(_DASHES, "-") | dict.fromkeys(_QUOTE_MARKS, "")


def fold(text: str) -> tuple[str, list[int]]:
    """The text in the form that is compared, and for each of its characters the place in the text
    that it comes from.

    >>> fold("**I’m**  “sure” —\\nreally…")[0]
    "i'm sure-really..."

    NFKD and case-folded; one kind of apostrophe, and no quotation marks, Markdown or invisible
    characters; dashes of any kind and length are one hyphen without spaces around, and white space
    is one space.
    """
    folded: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        if character in _APOSTROPHES and _is_within_word(text, place):
            letters = "'"
        else:
            letters = _folded(character)
        for letter in letters:
            previous = folded[-1] if folded else " "
            if letter == " " and previous in " -":
                continue
            if letter == "-" and previous == "-":
                continue
            if letter == "-" and previous == " " and folded:
                folded.pop()
                places.pop()
            folded.append(letter)
            places.append(place)
    return "".join(folded), places


def _is_within_word(text: str, place: int) -> bool:
    return text[place - 1 : place].isalnum() and text[place + 1 : place + 2].isalnum()


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
        folded_quote = fold(quote)[0].strip()
        bare_quote = _bare(folded_quote)
        if not bare_quote:
            return None
        passage = self._find(folded_quote)
        return passage if passage is not None else self._find(bare_quote)

    def _find(self, folded_quote: str) -> str | None:
        start = self.folded.find(folded_quote)
        while start != -1:
            end = start + len(folded_quote)
            if not _splits_a_word(self.folded, start) and not _splits_a_word(self.folded, end):
                return self.text[self.places[start] : self.places[end - 1] + 1]
            start = self.folded.find(folded_quote, end)
        return None


def _bare(folded: str) -> str:
    """A folded text without marks at its ends."""
    letter_places = [place for place, character in enumerate(folded) if character.isalnum()]
    return folded[letter_places[0] : letter_places[-1] + 1] if letter_places else ""


def _splits_a_word(folded: str, place: int) -> bool:
    """True if a cut here stands between two letters or digits of a script with spaces between
    words.
    """
    if not 0 < place < len(folded):
        return False
    neighbours = folded[place - 1 : place + 1]
    return neighbours.isascii() and neighbours.isalnum()
