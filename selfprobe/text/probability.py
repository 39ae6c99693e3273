"""Pure functions that read the probabilities stated in a raw reply, or None, as in `parse`."""

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice

from selfprobe.text.parse import LONGEST_REPLY, json_value

# Full-width forms to ASCII, one by one: NFKC would also make digits of superscripts ("0.7²" is not 0.72).
_PLAIN = {0xFF01 + i: chr(0x21 + i) for i in range(94)} | {ord(c): ":" for c in "∶﹕︓꞉"}
_PLAIN |= {ord("−"): "-", ord("﹪"): "%", ord("٪"): "%", ord("\u3000"): " ", ord("\xa0"): " ", ord("\u202f"): " "}
_MARKUP = re.compile(  # Markdown, LaTeX and tags around a number, not in it
    r"\\?boxed(?=\s?\{)|</?[a-z]{1,20}>|(?<![0-9])[*_`$\\]+|[*_`$\\]+(?![0-9])", re.IGNORECASE
)
_NAME = r"(?<!\w)Pr?\s?\(\s?(?:Option |Action )?([AB])\s?(?:[:–—-][^()\n:=\d|]{1,80})?\)"
# " - treat Alex", " (treat Alex)", " [treat Alex]"
_LABEL = r"(?:\([^()\n:=\d|]{1,80}\)|\[[^\[\]\n:=\d|]{1,80}\]|[-–—][ \t][^()\n:=\d|+]{1,80}?)"
_STATEMENT = re.compile(
    rf"{_NAME}[ \t]{{0,9}}[\"”’']?[ \t]{{0,9}}(?P<sign>{_LABEL}?[ \t]{{0,9}}(?:\||is\b|[-=]>|[:=≈→~]{{1,2}}))",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"(?:^|[{,])[ \t>*_-]{0,9}[\"']?(?:probability of )?(?:option |action )?([AB])\b[\"']?[ \t]{0,9}(?P<sign>[:=])",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBER = re.compile(
    r"(?:[ \t]{0,9}\n){0,2}[ \t]{0,9}(?:[~≈]|(?:about|around|roughly|approximately)\s)?[\[({\"“‘']?[ \t]{0,9}"
    r"(?P<number>[0-9]{0,9}(?:[.,][0-9]{1,99})?)(?:\s?/\s?(?P<of>[0-9]{1,9}))?[ \t]{0,9}"
    r"(?P<percent>%|percent\b|per cent\b)?"
    r"[\])}\"”’']?[ \t]{0,9}(?:$|[\])}\"”’'|(]|[.,;](?!\s?\d)|and\b|(?=/?\s?P\s?\()"
    r"|(?=because\b|since\b|due to\b|considering\b)"
    r"|[–—-]{1,2}[ \t](?=[^\W\d_]{2})(?![^\n]{0,400}(?:\d|=|P\s?\()))",  # " — protect the child", never a range
    re.IGNORECASE | re.MULTILINE,
)
_SUPPOSED = re.compile(
    r"\b(?:if(?! (?:i (?:must|had to|have to|need to|am|was)|i['’]m|forced|pressed|pushed|asked)\b)|unless|suppose"
    r"|supposing|imagine|assuming|were|otherwise|in (?:the )?case|wenn|sinon|si"
    r"|would(?:n['’]t| not) say"
    r"|(?!(?:i|we)\b)[\w’'-]+ (?:would|might|could|may) (?:say|argue|think|claim|answer|hold|put|assign|give))\b",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"\bexample\b", re.IGNORECASE)
_EQUAL = re.compile(r"P\s?\(A\)\s?=\s?P\s?\(B\)\s?=\s?(?=[\d.,])([^\s;|]{1,12})", re.IGNORECASE)
"""Statement of both in one: P(A) = P(B) = .5."""
SUM_SLACK = 0.02


def probabilities(text: str) -> tuple[float, float] | None:
    """(P(A), P(B)) as the reply finally states them, or None.

    >>> probabilities("I lean to A.\\n**P(A):** 70%\\nP(B) - wait = .3")
    (0.7, 0.3)

    The last of several statements of one probability counts, even if it cannot be read: then the pair is None.
    Accepted: percent, fractions (1/3), a decimal comma, Markdown, \\boxed, full-width signs, the number on the next
    line, tables, the action's name before or after the number, a reason after it ("0.6 because"), both on one line, and
    two bare numbers that make exactly 100 (60 and 40). Refused: one of the two missing, below 0 or above 1 otherwise, a
    sum off 1 by more than .02, ranges, arithmetic, letters for digits ("9O%"). `P(A) + P(B) = 1` states neither, nor
    does "If B were riskier, P(A): 0.9".
    """
    visible = "".join(c for c in text if unicodedata.category(c) != "Cf").translate(_PLAIN)
    plain = _EQUAL.sub(r"P(A): \1\nP(B): \1", _untabled(_MARKUP.sub("", "\n".join(visible.splitlines()))))
    stated = list(_STATEMENT.finditer(plain)) or _one_of_each(_OPTION.finditer(plain))
    last: dict[str, tuple[float, bool]] = {}
    for found in reversed(stated[-1000:]):
        name = found[1].upper()
        if name in last or _in_a_sum(plain, found.start()) or _is_supposed(plain, found.start()):
            continue
        figure = _figure_after(plain, found.end())
        if figure is not None:
            last[name] = figure
        elif found["sign"] in _STRICT or (found["sign"] != "is" and _figure_follows(plain, found.end())):
            return None
    if len(last) < 2:
        return None
    (a, a_bare), (b, b_bare) = last["A"], last["B"]
    if a_bare and b_bare and abs(a + b - 100) < 1e-9:
        a, b = a / 100, b / 100
    return (a, b) if max(a, b) <= 1 and abs(a + b - 1) <= SUM_SLACK + 1e-9 else None


def _one_of_each(options: Iterator[re.Match[str]]) -> list[re.Match[str]]:
    """The values of "Option A: 0.6" and "Option B: 0.4", without any P(A): once each, or they are no answer."""
    found = list(islice(options, 3))
    return found if [each[1].upper() for each in found] == ["A", "B"] else []


_STRICT = {sign + more for sign in ":=≈→" for more in ("", *":=≈→")}
"""Signs after a probability's name that only state it; after words ("P(A) is higher") a number is needed."""


def _figure_follows(text: str, start: int) -> bool:
    end = text.find("\n", start)
    return re.search(r"\d", text[start : min(len(text) if end == -1 else end, start + 200)]) is not None


def _untabled(text: str) -> str:
    """The text with "| P(A) | P(B) |" above one row of numbers as statements; two rows say no one thing."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if "|" not in line or len(line) > 1000 or len(re.findall(_NAME, line, re.IGNORECASE)) != 2:
            continue
        below = [row for row in lines[i + 1 : i + 4] if not re.fullmatch(r"[\s|:-]+", row)]
        names, *values = [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in (line, *below)]
        if len(values[:1]) == 1 and len(values[0]) == len(names) and not (len(below) > 1 and "|" in below[1]):
            lines[i] = "\n".join(f"{n}: {value}" for n, value in zip(names, values[0], strict=True) if n.endswith(")"))
            lines[lines.index(below[0], i)] = ""
    return "\n".join(lines)


def _in_a_sum(text: str, start: int) -> bool:
    """True if arithmetic stands before, as in "P(A) + P(B) = 1"; at the start of a line the sign is a bullet."""
    line = text[max(text.rfind("\n", 0, start) + 1, start - 200) : start].rstrip()
    before = line[:-1].rstrip()
    return bool(before) and (line[-1] in "+-–" or (line[-1] in "/×·|" and before[-1] == ")"))


def _is_supposed(text: str, start: int) -> bool:
    """True if the sentence so far, the one before it or the heading above supposes something: no answer then."""
    begin = text.rfind("\n", 0, start) + 1
    *before, here = re.split(r"[.!?;](?=\s)", text[max(begin, start - 300) : start])
    if _SUPPOSED.search(here) or (before and re.match(r"\s*(?:suppose|imagine|assume)\b", before[-1], re.IGNORECASE)):
        return True
    above = next((line for line in reversed(text[max(0, begin - 600) : begin].split("\n")) if _is_prose(line)), "")
    return above.rstrip().endswith(":") and bool(_SUPPOSED.search(above) or _EXAMPLE.search(above))


def _is_prose(line: str) -> bool:
    return bool(line.strip()) and not _STATEMENT.search(line) and not _OPTION.search(line)


def _figure_after(text: str, start: int) -> tuple[float, bool] | None:
    """The number at a place, and whether it is bare (no percentage, no fraction); None for none, or above 100."""
    found = _NUMBER.match(text, start)
    if found is None or not found["number"]:
        return None
    if "\n" in text[start : found.start("number")] and text[found.end() : found.end() + 200].partition("\n")[0].strip():
        return None  # "1. Because …"
    value = float(found["number"].replace(",", "."))
    if found["of"]:
        if not float(found["of"]):
            return None
        value /= float(found["of"])
    value = value / 100 if found["percent"] else value
    return (value, not (found["percent"] or found["of"])) if value <= 100 else None


_FIGURE = re.compile(
    r"(?P<sign>-\s?)?(?<![\w.,])(?P<number>[0-9]{1,9}(?:[.,][0-9]{1,99})?|[.,][0-9]{1,99})(?P<power>[eE]-?[0-9]{1,3})?"
    r"(?:\s?/\s?(?P<of>[0-9]{1,9}))?(?![\w/])\s?(?P<percent>%|percent\b|per cent\b)?"
)


def stated_probability(text: str) -> float | None:
    """The one probability that a reply states, in [0, 1], or None.

    >>> stated_probability("Probability: **75%**"), stated_probability("1/3"), stated_probability("75")
    (0.75, 0.3333333333333333, None)

    Accepted: `.2`, `0,2`, `20 %`, `1/5`, {"probability": 0.2}, Markdown, the same number twice ("0.2 (20%)"), a number
    alone on the last line after prose, or in a sentence of its own beside numbers that are no probabilities ("0.85. The
    prompt lists 4 options."). Refused: a number above 1 without a percent sign (75 may be a slip for .75 or
    for 75 %, and then 1 could be 1 %), two different ones ("between .2 and .4"), one below 0, none.
    """
    value = json_value(text, "probability")
    if isinstance(value, bool):
        return None
    plain = str(value) if isinstance(value, int | float | str) else text
    if len(plain) > LONGEST_REPLY:
        return None
    plain = _MARKUP.sub("", "".join(c for c in plain if unicodedata.category(c) != "Cf").translate(_PLAIN)).strip()
    last = plain.rpartition("\n")[2].strip().rstrip(".")
    alone = _FIGURE.fullmatch(last)
    values = {_figure(found) for found in ([alone] if alone else _FIGURE.finditer(plain))}
    rounded = {v if v is None else round(v, 9) for v in values}
    return values.pop() if len(rounded) == 1 else _answered(plain)


_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_NUMBERED = re.compile(r"^[ \t]*\d{1,2}[.)](?=\s)", re.MULTILINE)
_INTRODUCED = re.compile(
    r"[^\d\n]{0,80}\b(?:probability|estimate|likelihood|chance|answer|guess|p)\b[^\d\n.]{0,40}", re.IGNORECASE
)
_ESTIMATING = re.compile(
    r"\b(?:probab\w*|estimat\w*|likel\w*|chance|sure|confiden\w*|certain\w*|say|put|rather|actually|make)\b",
    re.IGNORECASE,
)
_REVISED = re.compile(r"\b(?:actually|correction|rather|on second thought|wait|or)\b", re.IGNORECASE)


def _answered(plain: str) -> float | None:
    """The number that is a sentence of its own, if no other number in the reply could be meant."""
    said: set[float] = set()
    for sentence in _SENTENCE.split(_NUMBERED.sub("", plain)):
        figures = list(islice(_FIGURE.finditer(sentence), 50))
        bare = sentence.strip().rstrip(".!;").strip()
        introduced = _INTRODUCED.match(bare)
        start = introduced.end() if introduced else 0
        alone = _FIGURE.fullmatch(bare, start)
        if alone and _figure(alone) is not None and (introduced or not alone["number"].isdigit() or alone["percent"]):
            said.add(round(_figure(alone) or 0.0, 9))
            continue
        for found in figures:
            value = _figure(found)
            whole = found["number"].isdigit() and 1 < int(found["number"]) <= 100 and not found["of"]
            if value is not None or found["percent"] or (whole and _ESTIMATING.search(sentence)):
                return None
    return said.pop() if len(said) == 1 and not _REVISED.search(plain) else None


def _figure(match: re.Match[str]) -> float | None:
    value = float(match["number"].replace(",", ".") + (match["power"] or ""))
    if match["of"]:
        if not float(match["of"]):
            return None
        value /= float(match["of"])
    value = value / 100 if match["percent"] else value
    return value if 0 <= value <= 1 and not match["sign"] else None
