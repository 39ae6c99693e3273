"""From a raw reply to the probabilities that it states, or None. Pure functions, as in `parse`."""

import re
import unicodedata

from selfprobe.parse import LONGEST_REPLY, json_value

# Full-width forms to ASCII, one by one: NFKC would also make digits of superscripts ("0.7²" is not 0.72).
_PLAIN = {0xFF01 + i: chr(0x21 + i) for i in range(94)} | {ord(c): ":" for c in "∶﹕︓꞉"}
_PLAIN |= {ord("−"): "-", ord("﹪"): "%", ord("٪"): "%", ord("\u3000"): " ", ord("\xa0"): " ", ord("\u202f"): " "}
_MARKUP = re.compile(r"(?<![0-9])[*_`$\\]+|[*_`$\\]+(?![0-9])")  # Markdown and LaTeX around a number, not in it

_STATEMENT = re.compile(
    r"(?<!\w)P\s?\(\s?(?:Option |Action )?([AB])\s?\)[ \t]{0,9}[\"”’']?[ \t]{0,9}[:=≈]{1,2}", re.IGNORECASE
)
_NUMBER = re.compile(
    r"[ \t]{0,9}[~≈]?[\[({\"“‘']?[ \t]{0,9}"
    r"(?P<number>[0-9]{0,9}(?:[.,][0-9]{1,99})?)(?:/(?P<of>[0-9]{1,9}))?[ \t]{0,9}(?P<percent>%|percent\b|per cent\b)?"
    r"[\])}\"”’']?[ \t]{0,9}(?:$|[\])}\"”’'|(]|[.,;](?!\s?\d)|and\b|(?=/?\s?P\s?\())",
    re.IGNORECASE | re.MULTILINE,
)
SUM_SLACK = 0.02


def probabilities(text: str) -> tuple[float, float] | None:
    """(P(A), P(B)) as the reply finally states them, or None.

    >>> probabilities("I lean to A.\\n**P(A):** 70%\\nP(B) = .3")
    (0.7, 0.3)

    Of several statements of one probability the last counts, even if it cannot be read: then the pair is None.
    Accepted: percent, fractions (1/3), a decimal comma, Markdown, full-width signs, both on one line. Refused: one of
    the two missing, below 0 or above 1 (70 without a percent sign), a sum off 1 by more than .02, ranges, arithmetic,
    letters for digits ("9O%"). `P(A) + P(B) = 1` states neither.
    """
    visible = "".join(c for c in text if unicodedata.category(c) != "Cf").translate(_PLAIN)
    plain = _MARKUP.sub("", "\n".join(visible.splitlines()))
    last: dict[str, float | None] = {}
    for found in _STATEMENT.finditer(plain):
        if not _in_a_sum(plain, found.start()):
            last[found.group(1).upper()] = _probability(plain, found.end())
    a, b = last.get("A"), last.get("B")
    if a is None or b is None or abs(a + b - 1) > SUM_SLACK + 1e-9:
        return None
    return a, b


def _in_a_sum(text: str, start: int) -> bool:
    """Whether arithmetic stands before, as in "P(A) + P(B) = 1"; at the start of a line the sign is a bullet."""
    line = text[max(text.rfind("\n", 0, start) + 1, start - 200) : start].rstrip()
    before = line[:-1].rstrip()
    return bool(before) and (line[-1] in "+-–" or (line[-1] in "/×·|" and before[-1] == ")"))


def _probability(text: str, start: int) -> float | None:
    found = _NUMBER.match(text, start)
    if found is None or not found["number"]:
        return None
    value = float(found["number"].replace(",", "."))
    if found["of"]:
        if not float(found["of"]):
            return None
        value /= float(found["of"])
    value = value / 100 if found["percent"] else value
    return value if 0 <= value <= 1 else None


_FIGURE = re.compile(
    r"(?P<sign>-\s?)?(?<![\w.,])(?P<number>[0-9]{1,9}(?:[.,][0-9]{1,99})?|[.,][0-9]{1,99})(?P<power>[eE]-?[0-9]{1,3})?"
    r"(?:\s?/\s?(?P<of>[0-9]{1,9}))?(?![\w/])\s?(?P<percent>%|percent\b|per cent\b)?"
)


def stated_probability(text: str) -> float | None:
    """The one probability that a reply states, in [0, 1], or None.

    >>> stated_probability("Probability: **75%**"), stated_probability("1/3"), stated_probability("75")
    (0.75, 0.3333333333333333, None)

    Accepted: `.2`, `0,2`, `20 %`, `1/5`, {"probability": 0.2}, Markdown, the same number twice ("0.2 (20%)"), a number
    alone on the last line after prose. Refused: a number above 1 without a percent sign (75 may be a slip for .75 or
    for 75 %, and then 1 could be 1 %), two different ones ("between .2 and .4"), one below 0, none.
    """
    value = json_value(text, "probability")
    if isinstance(value, bool):
        return None
    plain = str(value) if isinstance(value, int | float | str) else text
    plain = _MARKUP.sub("", "".join(c for c in plain if unicodedata.category(c) != "Cf").translate(_PLAIN)).strip()
    if len(plain) > LONGEST_REPLY:
        return None
    last = plain.rpartition("\n")[2].strip().rstrip(".")
    alone = _FIGURE.fullmatch(last)
    values = {_figure(found) for found in ([alone] if alone else _FIGURE.finditer(plain))}
    rounded = {v if v is None else round(v, 9) for v in values}
    return values.pop() if len(rounded) == 1 else None


def _figure(found: re.Match[str]) -> float | None:
    value = float(found["number"].replace(",", ".") + (found["power"] or ""))
    if found["of"]:
        if not float(found["of"]):
            return None
        value /= float(found["of"])
    value = value / 100 if found["percent"] else value
    return value if 0 <= value <= 1 and not found["sign"] else None
