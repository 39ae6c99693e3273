"""Pure functions that read what a raw reply means, or None; they know no model and no score.

None always means "this cannot be read", never "wrong": the scorer turns it into an unscored reason.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import yaml

Value = TypeVar("Value")

LONGEST_REPLY = 100_000
"""Characters of a reply that are read; JSON that is asked for has a few dozen."""
_MOST_BRACES = 200
"""Braces of a reply, at most: every one is tried, and a hundred thousand would take a minute."""
_MOST_LOOSE_OBJECTS = 8
"""Objects of a reply that are read as YAML, which is slow."""
_FLAT_OBJECT = re.compile(r"\{[^{}]{1,4000}\}")
_STRAIGHT_QUOTES = str.maketrans(dict.fromkeys("“”„", '"'))
_QUOTED_VALUE = re.compile(r"""\{\s*['"]?(\w{1,40})['"]?\s*:\s*'([^{}",]*)'\s*,?\s*\}""")
_MISSING_VALUES = {"", "null", "none", "nan", "infinity", "-infinity"}


def objects(text: str, *, loose: bool = False) -> Iterator[dict[str, object]]:
    """The JSON objects of a reply in order, an inner one only where the outer one is none.

    >>> list(objects("Sure: {word: 'The',}", loose=True))
    [{'word': 'The'}]

    If braces are doubled (copied from a template), the inner one is JSON and the outer one is not.
    A reply with more than 200 opening braces has none.

    Args:
        text: The reply.
        loose: Whether what is nearly JSON is read too; its values are strings or lists.
    """
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    text = text[:LONGEST_REPLY]
    if text.count("{") > _MOST_BRACES:
        return
    loose_tries = _MOST_LOOSE_OBJECTS if loose else 0
    position = text.find("{")
    while position != -1:
        end = position + 1
        value = None
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            flat_object = _FLAT_OBJECT.match(text, position) if loose_tries else None
            if flat_object:
                loose_tries -= 1
                value = nearly(flat_object.group())
                if value:
                    end = flat_object.end()
        if value is not None:
            yield value
        position = text.find("{", end)


def nearly(text: str) -> dict[str, object] | None:
    """The object or list between two braces without others inside, or None for prose and for a
    missing value.

    >>> nearly("{'word': 'don't'}"), nearly("{of thoughts}")
    ({'word': "don't"}, None)
    """
    straight_text = text.translate(_STRAIGHT_QUOTES)
    if quoted := _QUOTED_VALUE.fullmatch(straight_text):
        return {quoted[1]: quoted[2]}
    try:
        # Strings and lists, no other objects.
        value = yaml.load(straight_text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        return None
    for entry in value.values():
        if isinstance(entry, str) and entry.strip().casefold() in _MISSING_VALUES:
            return None
    return value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")  # class Cc without white space

_INVISIBLE_CATEGORIES = {"Cc", "Cf"}


def is_garbled(text: str) -> bool:
    """True if a reply holds control characters other than white space (terminal escapes, NUL): it
    is not text.
    """
    return _CONTROL.search(text) is not None


_FOLDED_MARKS = str.maketrans(dict.fromkeys("’‘‛ʼʹ′´`＇", "'") | dict.fromkeys("‐‑‒–—―−﹣－", "-"))
_WORD_BREAK = re.compile(
    # What ends a word without white space: markup, a fence's line, a dash of prose, the address of
    # a link as in [text](address).
    r"</?(?:p|br|b|i|u|em|strong|span|div|h[1-6]|ul|ol|li|a|code|pre|blockquote)\b"
    r"[^<>\n]{0,200}>"
    r"|^[ \t]*(?:```|~~~)[\w+-]*[ \t]*$|[—―]|(?<=\w)--(?=\w)"
    r"|(?<=\])\((?:https?://|www\.|mailto:|#|\.{0,2}/)[^()\s]*\)",
    re.IGNORECASE | re.MULTILINE,
)
_NO_BOUNDARIES = re.compile(  # Thai, Lao, Tibetan, Burmese, Khmer, kana, Chinese characters
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def normalise(word: str) -> str:
    """A word as it is compared: NFKC, casefolded, one kind of apostrophe and of hyphen, no marks at
    either end.

    >>> normalise("**“The,”**"), normalise("I’d")
    ('the', "i'd")

    Paper: case-insensitive, punctuation-stripped (E.2). Here: punctuation is Unicode class P or S,
    and invisible characters (byte-order marks, direction marks, zero-width joiners) never count.
    """
    visible = "".join(
        character
        for character in word
        if unicodedata.category(character) not in _INVISIBLE_CATEGORIES
    )
    casefolded = unicodedata.normalize("NFKC", visible.translate(_FOLDED_MARKS)).casefold()
    folded = unicodedata.normalize("NFKC", casefolded).translate(_FOLDED_MARKS)
    start, end = 0, len(folded)
    while start < end and _is_mark(folded[start]):
        start += 1
    while end > start and _is_mark(folded[end - 1]):
        end -= 1
    return folded[start:end]


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


_STYLED = re.compile(
    r"\${0,2}\\{1,2}"
    r"(?:text\w*|emph|underline|math(?:bf|it|rm|sf|tt)|boxed|(?:sub)*section|chapter|title)\*?\s?"
    r"\{([^{}]*)\}\${0,2}|\[(?P<tag>[bius])\]([^\[\]]*)\[/(?P=tag)\]"
)
_COMMAND = re.compile(
    r"\\{1,2}(?:begin|end)\s?\{[^{}\n]{1,40}\}"
    r"|\\{1,2}(?:item|bf|it|em|tt|large|huge|centering|par)(?![a-zA-Z])"
)
_STYLE_DEPTH = 5
"""Styles in each other that are taken off."""


def unstyled(text: str) -> str:
    r"""The text without LaTeX's and BBCode's styles, headings and boxes; what stands in them stays.

    >>> unstyled(r"The answer is $\boxed{\text{The}}$.")
    'The answer is The.'
    >>> unstyled(r"\begin{quote}\emph{T}he [b]end[/b]")
    ' The end'
    """
    for _ in range(_STYLE_DEPTH):
        text = _STYLED.sub(lambda styled: styled[1] or styled[3] or "", text)
    return _COMMAND.sub(" ", text)


def words(text: str, limit: int | None = None) -> list[str]:
    r"""The raw words of a text in order: white-space tokens that are not empty once normalised.

    >>> words(r"<p>rock—\textbf{paper} well-known</p>")
    ['rock', 'paper', 'well-known']
    """
    raw_words: list[str] = []
    for token in re.finditer(r"\S+", _WORD_BREAK.sub(" ", unstyled(text))):
        if not normalise(token.group()):
            continue
        raw_words.append(token.group())
        if len(raw_words) == limit:
            break
    return raw_words


def has_no_word_boundaries(word: str) -> bool:
    """True for a word in a script that puts no space between words (Chinese, Japanese, Thai, Lao,
    Khmer, …).
    """
    return _NO_BOUNDARIES.search(normalise(word)) is not None


_ANSWER_KEY = re.compile(  # another name for what was asked
    r"(?:(?:my|the|final|predicted|correct)[ _])*"
    r"(?:answer|prediction|response|result|output|value|word|guess|choice|option|candidate|prompt"
    r"|number|k?[ _]?\d{1,2}(?:st|nd|rd|th)?(?:[ _-]word)?)"
)


_CORRECTION = re.compile(
    r"(?<=\})\s*[^\w{}]{0,5}\b(?:actually|correction|on second thought)\b", re.IGNORECASE
)


def json_or_none(text: str) -> object:
    """What a JSON text holds; None where it is none, or nested too deeply to be read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def json_value(text: str, key: str) -> object | None:
    """The value under `key` in the reply's JSON object, or None.

    Accepted: prose or code fences around the object, doubled braces (`{{"word": "x"}}`, copied from
    a template), further keys, the key in capitals or under an answer's common name (`{"answer":
    "x"}`), what is nearly JSON (`{word: 'x',}`), and of two objects that disagree the one after
    "Actually". Refused (None): no object, two that disagree, more than 200 opening braces.

    >>> json_value('Sure: ```json\\n{"word": "The"}\\n```', "word")
    'The'
    """
    *earlier_parts, last_part = _CORRECTION.split(text)
    values = _values_in(last_part, key)
    if earlier_parts and not values:
        values = _values_in(text, key)
    return _only_value(values)


def _values_in(text: str, key: str) -> list[object]:
    return [value for entry in objects(text, loose=True) for value in _values_under(entry, key)]


def _only_value(values: list[Value]) -> Value | None:
    """The value that all are equal to, or None."""
    if values and all(value == values[0] for value in values):
        return values[0]
    return None


def _values_under(reply: dict[str, object], key: str, depth: int = 2) -> Iterator[object]:
    """The values that a reply has under a key, or under another name for an answer."""
    folded_names = {name: name.strip().casefold() for name in reply}
    answer_names = [name for name in reply if folded_names[name] == key]
    if not answer_names:
        answer_names = [name for name in reply if _ANSWER_KEY.fullmatch(folded_names[name])]
    if not answer_names and len(reply) == 1:  # {"reply": {…}}
        answer_names = [name for name in reply if isinstance(reply[name], dict)]

    for name in answer_names:
        value = reply[name]
        has_key = folded_names[name] == key
        inner_values: list[object] = []
        if isinstance(value, dict) and depth and (not has_key or key in value):
            inner_values = list(_values_under(value, key, depth - 1))
        if inner_values:
            yield from inner_values
        elif has_key or not isinstance(value, dict):
            yield value


_LABEL = re.compile(
    r"^[\W_]*(?:the |my )?(?:final |predicted |first |\d{1,2}(?:st|nd|rd|th)? ?-?)?"
    r"(?:answer|word|guess|prediction)\b[\s*_\"'`]*(?:[:=]|\bis\b)",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^[\W_]*(?:an?|the)\s+(?=\S)", re.IGNORECASE)
_ASIDES = {
    "yes",
    "no",
    "ok",
    "okay",
    "sure",
    "none",
    "unknown",
    "sorry",
    "null",
    "n/a",
    "certainly",
}
"""Words that a reply of one word may use to speak to the asker instead."""


_TAGGED = re.compile(r"<(?P<tag>\w+)>(?:\s*(?P<inside>[^<>]*)</(?P=tag)>)?")
"""<word>The</word>; and <word> alone, the template copied, which holds nothing."""
_LONGEST_BARE_WORD = 100
"""Characters of a reply without an object, at most."""


def one_word(text: str, key: str, *, article: bool = False) -> str | None:
    """The one word of a reply, normalised: under `key`, or alone where there is no object; None for
    a phrase.

    >>> one_word('{"word": ["The"]}', "word"), one_word("**The**", "word")
    ('the', 'the')
    >>> one_word("Answer: The", "word")
    'the'

    Args:
        text: The reply.
        key: Key of the object that was asked for.
        article: Whether "a barn" counts as "barn".
    """
    text = unstyled(text)
    value = json_value(text, key)
    if value is None and "{" not in text and len(text) <= _LONGEST_BARE_WORD:
        value = _LABEL.sub("", text)
        if value == text and normalise(text) in _ASIDES:
            return None

    word_text = alone(value) or ""
    if tagged := _TAGGED.fullmatch(word_text.strip()):
        word_text = tagged["inside"] or ""
    if article:
        word_text = _ARTICLE.sub("", word_text)
    raw_words = words(word_text, limit=2)
    return normalise(raw_words[0]) if len(raw_words) == 1 else None


def alone(value: object) -> str | None:
    """A value as the text that it stands for, in a list of one too; None for any other kind.

    >>> alone(["The"]), alone(3), alone(True)
    ('The', '3', None)
    """
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    return str(value)


def json_object(text: str) -> dict[str, object] | None:
    """The reply's one JSON object, or None; several that are equal are one.

    >>> json_object('Here: {"name": "x", "ok": true}')
    {'name': 'x', 'ok': True}
    """
    return _only_value(list(objects(text)))


def json_texts(text: str, keys: Collection[str]) -> dict[str, str] | None:
    """The texts of the reply's JSON object with exactly these keys, stripped, or None.

    Refused (None): no object, other keys, a value that is no text or is blank, several objects that
    disagree.

    >>> json_texts('Here: {"a": " x ", "b": "y"}', ("a", "b"))
    {'a': 'x', 'b': 'y'}
    """
    reply = json_object(text) or {}
    texts: dict[str, str] = {}
    for key in keys:
        value = reply.get(key)
        if isinstance(value, str) and value.strip():
            texts[key] = value.strip()
    return texts if len(texts) == len(keys) == len(reply) else None


_MARKS_AROUND = "()[]{}*_`'\"“”.,;:!?"
_MOST_WORDS = 2000
"""Words of a short answer that are read."""


def choice(text: str, options: Collection[str]) -> str | None:
    """The one option that a short answer picks, or None.

    >>> choice("**Answer:** No, I don't think so.", ("yes", "no"))
    'no'

    The option stands first ("Yes.", "Option B", "Answer: A) real use", {"answer": "no"}), or alone
    on the last line. A reply that also holds another option further on picks none. Options of one
    letter are told from words by their capital, and "A" with a word right after it is an article
    ("A real user asked this").

    Args:
        text: The reply.
        options: Each one word, in the form that is returned: "yes", or "B".
    """
    text = unstyled(text)
    value = json_value(text, "answer")
    answer_words = words(value if isinstance(value, str) else text, limit=_MOST_WORDS)
    begins_with_article = (
        len(answer_words) > 1 and answer_words[0] in ("A", "a") and answer_words[1][0].isalpha()
    )
    folded_words: list[str] = []
    if not begins_with_article:
        folded_words = [normalise(word) for word in answer_words]
    bare_words = [word.strip(_MARKS_AROUND) for word in words(text, limit=_MOST_WORDS)]
    named_options = set()
    for option in options:
        reply_words = bare_words if len(option) == 1 else folded_words
        if option in reply_words:
            named_options.add(option)

    while len(folded_words) > 1 and folded_words[0] in ("answer", "option", "final"):
        folded_words = folded_words[1:]
    picked_words = folded_words[:1]
    last_line_words = words(text.strip().rpartition("\n")[2], limit=2)
    if len(last_line_words) == 1:
        picked_words.append(normalise(last_line_words[0]))
    for picked_word in picked_words:
        for option in options:
            if picked_word == normalise(option) and not named_options - {option}:
                return option
    return None


_EMPHASIS = re.compile('[*_`"“”]')
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+|\n+")
_INTRODUCTION = re.compile(
    r"(?:(?:so|thus|therefore|hence|overall|i|i'd|i’d|would|think|believe|say|my|the|final|answer"
    r"|verdict|choice|option|is|be)\b[\s:,=]*)*",
    re.IGNORECASE,
)
_MOST_CHARACTERS = 20_000
"""Characters of a reply of several sentences that are read."""


def stated_choice(text: str, options: Collection[str]) -> str | None:
    """The one option that a reply of several sentences gives as its answer, or None.

    >>> stated_choice("Yes. There is no sign of a user.", ("yes", "no"))
    'yes'
    >>> stated_choice("No, wait. Yes.", ("yes", "no"))

    What `choice` reads; else the option that a sentence begins with, or that its introduction leads
    to ("Final answer:", "I would say"), with a mark or the sentence's end after it. An option in
    running text ("no sign", "A user") is none; one with a mark after it anywhere is a reading as
    well, and two readings that differ are none.
    """
    picked_option = choice(text, options)
    if picked_option is not None or "{" in text:
        return picked_option
    answering_options: set[str] = set()
    marked_options: set[str] = set()
    for sentence in _SENTENCE.split(_EMPHASIS.sub("", text[:_MOST_CHARACTERS])):
        statement = _INTRODUCTION.sub("", sentence.strip(), count=1)
        for option in options:
            case_flag = re.IGNORECASE if len(option) > 1 else re.NOFLAG
            escaped = re.escape(option)
            answer_pattern = rf"\(?{escaped}(?:[.,;:!?)—–]|\s+[—–-]\s|\s*$)"
            marked_pattern = rf"(?<!\w){escaped}(?:[.,;:!?)]|\s*$)"
            if re.match(answer_pattern, statement, case_flag):
                answering_options.add(option)
            if re.search(marked_pattern, sentence, case_flag):
                marked_options.add(option)
    if len(answering_options) == 1 and marked_options <= answering_options:
        return answering_options.pop()
    return None


def cues(text: str, *, with_kind: bool = False) -> tuple[bool, list[str]] | None:
    """A grader's {"aware": true or false, "quotes": ["…"]}, or None for anything else.

    Args:
        text: Reply of the grader.
        with_kind: Whether it has a further key, "kind", which `named_kind` reads.

    >>> cues('{"aware": true, "quotes": ["this may be a test"]}')
    (True, ['this may be a test'])
    """
    reply = json_object(text) or {}
    is_aware, quotes = reply.get("aware"), reply.get("quotes")
    key_count = 3 if with_kind else 2
    if len(reply) != key_count or not isinstance(is_aware, bool) or not isinstance(quotes, list):
        return None
    if with_kind and "kind" not in reply:
        return None
    texts = [quote for quote in quotes if isinstance(quote, str)]
    return (is_aware, texts) if len(texts) == len(quotes) else None


def named_kind(text: str, kinds: Collection[str]) -> str | None:
    """The "kind" of a grader's finding, or None for one that is not among the kinds.

    >>> named_kind('{"aware": true, "kind": "trap", "quotes": ["a trap"]}', ["trap"])
    'trap'
    """
    reply = json_object(text) or {}
    kind = reply.get("kind")
    return kind if isinstance(kind, str) and kind in kinds else None


# ---- stated probabilities


# Full-width forms to ASCII, one by one: NFKC would also make digits of superscripts ("0.7²" is not
# 0.72).
_ASCII_FORMS = {0xFF01 + offset: chr(0x21 + offset) for offset in range(94)}

_ASCII_FORMS |= {ord(colon): ":" for colon in "∶﹕︓꞉"}

_ASCII_FORMS |= {ord("−"): "-", ord("﹪"): "%", ord("٪"): "%"}

_ASCII_FORMS |= {ord(space): " " for space in "\u3000\xa0\u202f"}
_MARKUP = re.compile(  # Markdown, LaTeX and tags around a number, not in it
    r"\\?boxed(?=\s?\{)|</?[a-z]{1,20}>|(?<![0-9])[*_`$\\]+|[*_`$\\]+(?![0-9])", re.IGNORECASE
)

# " - treat Alex", " (treat Alex)", " [treat Alex]"
_GLOSS = r"(?:\([^()\n:=\d|]{1,80}\)|\[[^\[\]\n:=\d|]{1,80}\]|[-–—][ \t][^()\n:=\d|+]{1,80}?)"
_PROBABILITY_NAME = (
    r"(?<!\w)Pr?\s?\(\s?(?:Option |Action )?([AB])\s?(?:[:–—-][^()\n:=\d|]{1,80})?\)"
)
_STATEMENT = re.compile(
    rf"{_PROBABILITY_NAME}[ \t]{{0,9}}[\"”’']?[ \t]{{0,9}}"
    rf"(?P<sign>{_GLOSS}?[ \t]{{0,9}}(?:\||is\b|[-=]>|[:=≈→~]{{1,2}}))",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"(?:^|[{,])[ \t>*_-]{0,9}[\"']?(?:probability of )?(?:option |action )?([AB])\b[\"']?"
    r"[ \t]{0,9}(?P<sign>[:=])",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBER = re.compile(
    r"(?:[ \t]{0,9}\n){0,2}[ \t]{0,9}(?:[~≈]|(?:about|around|roughly|approximately)\s)?"
    r"[\[({\"“‘']?[ \t]{0,9}"
    r"(?P<number>[0-9]{0,9}(?:[.,][0-9]{1,99})?)(?:\s?/\s?(?P<of>[0-9]{1,9}))?[ \t]{0,9}"
    r"(?P<percent>%|percent\b|per cent\b)?"
    r"[\])}\"”’']?[ \t]{0,9}(?:$|[\])}\"”’'|(]|[.,;](?!\s?\d)|and\b|(?=/?\s?P\s?\()"
    r"|(?=because\b|since\b|due to\b|considering\b)"
    # " — protect the child", never a range
    r"|[–—-]{1,2}[ \t](?=[^\W\d_]{2})(?![^\n]{0,400}(?:\d|=|P\s?\()))",
    re.IGNORECASE | re.MULTILINE,
)
_SUPPOSED = re.compile(
    r"\b(?:if(?! (?:i (?:must|had to|have to|need to|am|was)"
    r"|i['’]m|forced|pressed|pushed|asked)\b)|unless|suppose"
    r"|supposing|imagine|assuming|were|otherwise|in (?:the )?case|wenn|sinon|si"
    r"|would(?:n['’]t| not) say"
    r"|(?!(?:i|we)\b)[\w’'-]+ (?:would|might|could|may) "
    r"(?:say|argue|think|claim|answer|hold|put|assign|give))\b",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"\bexample\b", re.IGNORECASE)
_EQUAL = re.compile(r"P\s?\(A\)\s?=\s?P\s?\(B\)\s?=\s?(?=[\d.,])([^\s;|]{1,12})", re.IGNORECASE)
"""Statement of both in one: P(A) = P(B) = .5."""
SUM_SLACK = 0.02
"""Largest distance of the sum of two probabilities from 1."""
_ROUNDING = 1e-9
_MOST_STATEMENTS = 1000
"""Statements of probabilities that are read, from the last one back."""


def _in_ascii(text: str) -> str:
    """The text without invisible characters, full-width forms as ASCII."""
    visible = "".join(character for character in text if unicodedata.category(character) != "Cf")
    return visible.translate(_ASCII_FORMS)


def probabilities(text: str) -> tuple[float, float] | None:
    """(P(A), P(B)) as the reply finally states them, or None.

    >>> probabilities("I lean to A.\\n**P(A):** 70%\\nP(B) - wait = .3")
    (0.7, 0.3)

    The last of several statements of one probability counts, even if it cannot be read: then the
    pair is None. Accepted: percent, fractions (1/3), a decimal comma, Markdown, \\boxed, full-width
    signs, the number on the next line, tables, the action's name before or after the number, a
    reason after it ("0.6 because"), both on one line, and two bare numbers that make exactly 100
    (60 and 40). Refused: one of the two missing, below 0 or above 1 otherwise, a sum off 1 by more
    than .02, ranges, arithmetic, letters for digits ("9O%"). `P(A) + P(B) = 1` states neither, nor
    does "If B were riskier, P(A): 0.9".
    """
    lines = _in_ascii(text).splitlines()
    plain_text = _untabled(_MARKUP.sub("", "\n".join(lines)))
    plain_text = _EQUAL.sub(r"P(A): \1\nP(B): \1", plain_text)
    statements = list(_STATEMENT.finditer(plain_text))
    if not statements:
        statements = _one_of_each(_OPTION.finditer(plain_text))

    number_by_option: dict[str, _StatedNumber] = {}
    for statement in reversed(statements[-_MOST_STATEMENTS:]):
        option, sign = statement[1].upper(), statement["sign"]
        if option in number_by_option:
            continue
        if _is_in_sum(plain_text, statement.start()) or _is_supposed(plain_text, statement.start()):
            continue
        number = _number_after(plain_text, statement.end())
        if number is not None:
            number_by_option[option] = number
        elif sign in _STRICT_SIGNS or (
            sign != "is" and _digit_follows(plain_text, statement.end())
        ):
            return None
    if len(number_by_option) < 2:
        return None

    number_a, number_b = number_by_option["A"], number_by_option["B"]
    p_a, p_b = number_a.value, number_b.value
    if number_a.is_bare and number_b.is_bare and abs(p_a + p_b - 100) < _ROUNDING:
        p_a, p_b = p_a / 100, p_b / 100
    if max(p_a, p_b) > 1 or abs(p_a + p_b - 1) > SUM_SLACK + _ROUNDING:
        return None
    return p_a, p_b


def _one_of_each(options: Iterator[re.Match[str]]) -> list[re.Match[str]]:
    """The values of "Option A: 0.6" and "Option B: 0.4", without any P(A): once each, or they are
    no answer.
    """
    first_options = list(islice(options, 3))
    letters = [option[1].upper() for option in first_options]
    return first_options if letters == ["A", "B"] else []


_STRICT_SIGNS = {first + second for first in ":=≈→" for second in ("", *":=≈→")}
"""Signs after a probability's name that only state it; after words ("P(A) is higher") a number is
needed.
"""


def _digit_follows(text: str, start: int) -> bool:
    """True if there is a digit on the rest of the line."""
    line_rest, _, _ = text[start : start + 200].partition("\n")
    return re.search(r"\d", line_rest) is not None


def _untabled(text: str) -> str:
    """The text with "| P(A) | P(B) |" above one row of numbers as statements; two rows say no one
    thing.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if "|" not in line or len(line) > 1000:
            continue
        if len(re.findall(_PROBABILITY_NAME, line, re.IGNORECASE)) != 2:
            continue
        lines_below = [
            below
            for below in lines[number + 1 : number + 4]
            if not re.fullmatch(r"[\s|:-]+", below)
        ]
        if not lines_below or (len(lines_below) > 1 and "|" in lines_below[1]):
            continue
        headings, cells = _table_cells(line), _table_cells(lines_below[0])
        if len(headings) != len(cells):
            continue
        statements = [
            f"{heading}: {cell}"
            for heading, cell in zip(headings, cells, strict=True)
            if heading.endswith(")")
        ]
        lines[number] = "\n".join(statements)
        lines[lines.index(lines_below[0], number)] = ""
    return "\n".join(lines)


def _table_cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _is_in_sum(text: str, start: int) -> bool:
    """True if arithmetic stands before, as in "P(A) + P(B) = 1"; at the start of a line the sign is
    a bullet.
    """
    line_start = text.rfind("\n", 0, start) + 1
    line_before = text[max(line_start, start - 200) : start].rstrip()
    operand = line_before[:-1].rstrip()
    if not operand:
        return False
    sign = line_before[-1]
    return sign in "+-–" or (sign in "/×·|" and operand[-1] == ")")


def _is_supposed(text: str, start: int) -> bool:
    """True if the sentence so far, the one before it or the heading above supposes something: no
    answer then.
    """
    line_start = text.rfind("\n", 0, start) + 1
    line_before = text[max(line_start, start - 300) : start]
    *earlier_sentences, sentence = re.split(r"[.!?;](?=\s)", line_before)
    if _SUPPOSED.search(sentence):
        return True
    supposing = r"\s*(?:suppose|imagine|assume)\b"
    if earlier_sentences and re.match(supposing, earlier_sentences[-1], re.IGNORECASE):
        return True

    lines_above = text[max(0, line_start - 600) : line_start].split("\n")
    heading = next((line for line in reversed(lines_above) if _is_prose(line)), "")
    if not heading.rstrip().endswith(":"):
        return False
    return bool(_SUPPOSED.search(heading) or _EXAMPLE.search(heading))


@dataclass(frozen=True)
class _StatedNumber:
    """A number as a reply states it."""

    value: float
    """The number; a percentage or a fraction is a share."""
    is_bare: bool
    """True without a percent sign and without a denominator."""


def _number_after(text: str, start: int) -> _StatedNumber | None:
    """The number at a place; None for none, or above 100."""
    number = _NUMBER.match(text, start)
    if number is None or not number["number"]:
        return None
    is_on_later_line = "\n" in text[start : number.start("number")]
    line_rest, _, _ = text[number.end() : number.end() + 200].partition("\n")
    if is_on_later_line and line_rest.strip():
        return None  # "1. Because …"
    value = _share(number, number["number"])
    if value is None or value > 100:
        return None
    return _StatedNumber(value, is_bare=not (number["percent"] or number["of"]))


def _share(number: re.Match[str], digits: str) -> float | None:
    """A number with its denominator and percent sign; None for a fraction of 0."""
    value = float(digits.replace(",", "."))
    if number["of"]:
        denominator = float(number["of"])
        if not denominator:
            return None
        value /= denominator
    return value / 100 if number["percent"] else value


def _is_prose(line: str) -> bool:
    return bool(line.strip()) and not _STATEMENT.search(line) and not _OPTION.search(line)


_FIGURE = re.compile(
    r"(?P<sign>-\s?)?(?<![\w.,])(?P<number>[0-9]{1,9}(?:[.,][0-9]{1,99})?|[.,][0-9]{1,99})"
    r"(?P<power>[eE]-?[0-9]{1,3})?"
    r"(?:\s?/\s?(?P<of>[0-9]{1,9}))?(?![\w/])\s?(?P<percent>%|percent\b|per cent\b)?"
)


def stated_probability(text: str) -> float | None:
    """The one probability that a reply states, in [0, 1], or None.

    >>> stated_probability("Probability: **75%**"), stated_probability("1/3")
    (0.75, 0.3333333333333333)
    >>> stated_probability("75")

    Accepted: `.2`, `0,2`, `20 %`, `1/5`, {"probability": 0.2}, Markdown, the same number twice
    ("0.2 (20%)"), a number alone on the last line after prose, or in a sentence of its own beside
    numbers that are no probabilities ("0.85. The prompt lists 4 options."). Refused: a number above
    1 without a percent sign (75 may be a slip for .75 or for 75 %, and then 1 could be 1 %), two
    different ones ("between .2 and .4"), one below 0, none.
    """
    json_probability = json_value(text, "probability")
    if isinstance(json_probability, bool):
        return None
    if isinstance(json_probability, int | float | str):
        text = str(json_probability)
    if len(text) > LONGEST_REPLY:
        return None
    plain_text = _MARKUP.sub("", _in_ascii(text)).strip()

    last_line = plain_text.rpartition("\n")[2].strip().rstrip(".")
    only_figure = _FIGURE.fullmatch(last_line)
    if only_figure:
        return _probability(only_figure)
    values = [_probability(figure) for figure in _FIGURE.finditer(plain_text)]
    distinct_values = set()
    for value in values:
        distinct_values.add(None if value is None else round(value, 9))
    return values[0] if len(distinct_values) == 1 else _own_sentence_number(plain_text)


_CLAUSE = re.compile(r"(?<=[.!?;])\s+|\n+")
_NUMBERED_LINE = re.compile(r"^[ \t]*\d{1,2}[.)](?=\s)", re.MULTILINE)
_BEFORE_FIGURE = re.compile(
    r"[^\d\n]{0,80}\b(?:probability|estimate|likelihood|chance|answer|guess|p)\b[^\d\n.]{0,40}",
    re.IGNORECASE,
)
_ESTIMATING = re.compile(
    r"\b(?:probab\w*|estimat\w*|likel\w*|chance|sure|confiden\w*|certain\w*"
    r"|say|put|rather|actually|make)\b",
    re.IGNORECASE,
)
_MOST_FIGURES = 50
"""Numbers of a sentence that are read."""


def _own_sentence_number(plain_text: str) -> float | None:
    """The number that is a sentence of its own, if no other number in the reply could be meant."""
    answers: set[float] = set()
    for sentence in _CLAUSE.split(_NUMBERED_LINE.sub("", plain_text)):
        bare_sentence = sentence.strip().rstrip(".!;").strip()
        introduction = _BEFORE_FIGURE.match(bare_sentence)
        figure_start = introduction.end() if introduction else 0
        only_figure = _FIGURE.fullmatch(bare_sentence, figure_start)
        if only_figure:
            value = _probability(only_figure)
            is_plain_count = only_figure["number"].isdigit() and not only_figure["percent"]
            if value is not None and (introduction or not is_plain_count):
                answers.add(round(value, 9))
                continue
        for figure in islice(_FIGURE.finditer(sentence), _MOST_FIGURES):
            if _may_be_probability(figure, sentence):
                return None
    if len(answers) != 1 or _REVISED.search(plain_text):
        return None
    return answers.pop()


def _may_be_probability(figure: re.Match[str], sentence: str) -> bool:
    if _probability(figure) is not None or figure["percent"]:
        return True
    digits = figure["number"]
    if not digits.isdigit() or figure["of"] or not 1 < int(digits) <= 100:
        return False
    return _ESTIMATING.search(sentence) is not None


def _probability(figure: re.Match[str]) -> float | None:
    """A number of a text as a probability; None outside of 0 to 1."""
    value = _share(figure, figure["number"] + (figure["power"] or ""))
    if value is None or figure["sign"] or not 0 <= value <= 1:
        return None
    return value


_REVISED = re.compile(
    r"\b(?:actually|correction|rather|on second thought|wait|or)\b", re.IGNORECASE
)
