"""Whether reasoning before a statement holds an answer to its item, in any language and script."""

import math
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from selfprobe.stats.estimate import BoolArray, FloatArray

LONGEST_ANSWER = 80
"""Number of characters of an answer that reasoning is searched for."""
LEAST_READABLE_SHARE = 0.1
"""Share of reasoning that must hold some answer, right or not, of the kind that items ask for: below
it, reasoning without an answer may hold one in a form that is not recognised.
"""
LONGEST_UNTELLING_WORD = 3
"""Number of letters of a word that counts only where it is called the answer."""
UNTELLING_WORDS = frozenset(
    "true false none both maybe never valid invalid right wrong correct incorrect ja nein oui non "
    "falsch richtig wahr vrai faux verdadero falso vero "
    "はい いいえ 正しい 正确 错误 不是 没有 예 아니오 아니요 참 거짓".split()
)
"""Words of judgement that reasoning holds anyway."""


@dataclass(frozen=True)
class Reasoning:
    """Reasoning of a model before it stated its chances of one question, `[item]`."""

    texts: tuple[str, ...]
    """"" where there is none, or where the provider hides it."""
    has_reasoning: BoolArray
    """Whether it reasoned, shown or not."""
    answer_flags: FloatArray
    """1 where the reasoning holds an answer to the item, so that the item was solved while it was
    asked about; 0 where it holds none; NaN where this is unknown, or where there is no reasoning.
    """


@dataclass(frozen=True)
class ReasonedAnswer:
    """Reasoning before one statement, and the answers that it is searched for."""

    text: str = ""
    has_reasoning: bool = False
    item_text: str = ""
    answers: Sequence[str] = ()
    """The right answer and those that the logged model gave."""


def reasoning_of(reasoned: Sequence[ReasonedAnswer]) -> Reasoning:
    """What reasoning says of each item; that it holds no answer is known only where enough of it
    holds an answer of some kind.
    """
    answer_flags = np.full(len(reasoned), math.nan)
    for index, entry in enumerate(reasoned):
        has_answer = None
        if entry.text:
            has_answer = holds_answer(entry.text, entry.answers, entry.item_text)
        if has_answer is not None:
            answer_flags[index] = float(has_answer)

    is_searched = ~np.isnan(answer_flags)
    if is_searched.any() and _readable_share(reasoned, answer_flags) < LEAST_READABLE_SHARE:
        answer_flags[answer_flags == 0] = math.nan
    return Reasoning(
        texts=tuple(entry.text for entry in reasoned),
        has_reasoning=np.array([entry.has_reasoning for entry in reasoned]),
        answer_flags=answer_flags,
    )


def _readable_share(reasoned: Sequence[ReasonedAnswer], answer_flags: FloatArray) -> float:
    """Share of the searched reasoning that holds an answer to its item, or another of its kind."""
    all_answers = {answer for entry in reasoned for answer in entry.answers}
    word_answers = sorted(_word_answers(all_answers))
    searched_count = 0
    readable_count = 0
    for entry, flag in zip(reasoned, answer_flags, strict=True):
        if math.isnan(flag):
            continue
        searched_count += 1
        if flag == 1 or _holds_some_answer(entry, word_answers):
            readable_count += 1
    return readable_count / searched_count


# ---- one text


def holds_answer(reasoning: str, answers: Collection[str], item_text: str) -> bool | None:
    """Whether reasoning about an item holds an answer to it; None where no answer can be searched
    for.

    A number counts however its digits are written, unless the item holds it too or it is of one
    digit; a longer word wherever it stands, unless the item holds it. Any other answer counts where
    it is called the answer ("Antwort: B", "= 7").

    Args:
        reasoning: What the observer wrote before its statement.
        answers: The right answer and those that the logged model gave.
        item_text: What the observer was shown.
    """
    plain_reasoning = plain_text(reasoning)
    plain_item = plain_text(item_text)
    is_searchable = False
    for raw_answer in answers:
        answer = _plain_answer(raw_answer)
        if len(answer) > LONGEST_ANSWER or not any(map(str.isalnum, answer)):
            continue
        is_searchable = True
        values = number_values(answer)
        if values:
            if _holds_number(plain_reasoning, values, plain_item):
                return True
        elif _holds_word(plain_reasoning, answer, plain_item):
            return True
    return False if is_searchable else None


SIGNS_BEFORE_ANSWER = " \n()[]{}\"'“”«»„*:;$"
SIGNS_AFTER_ANSWER = SIGNS_BEFORE_ANSWER + ".,"
"""Signs around an answer that are no part of it."""
_FRACTION = re.compile(r"\\[dt]?frac\s*\{(\d+)\}\s*\{(\d+)\}")
_MINUS = str.maketrans(dict.fromkeys("\u2212\u2013\u2010\u2011\ufe63\uff0d", "-"))


def plain_text(text: str) -> str:
    """The text with digits of any script as ASCII, with one kind of minus, and without the marks of
    LaTeX around numbers.
    """
    normal_text = unicodedata.normalize("NFKC", text)
    digits = []
    for character in normal_text:
        decimal = unicodedata.decimal(character, None)
        digits.append(character if decimal is None else str(decimal))
    ascii_digits = "".join(digits).translate(_MINUS)
    ascii_digits = ascii_digits.replace("\u066b", ".").replace("\u066c", ",")
    ascii_digits = ascii_digits.replace("{,}", ",").replace("\\,", "")
    return _FRACTION.sub(r"\1/\2", ascii_digits)


def _plain_answer(raw_answer: str) -> str:
    return plain_text(raw_answer).lstrip(SIGNS_BEFORE_ANSWER).rstrip(SIGNS_AFTER_ANSWER)


_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Letters of languages that write no spaces between words, or join particles to them."""
_NO_WORD_BEFORE = rf"(?<![^\W{_SPACELESS}])"
_NO_WORD_AFTER = rf"(?![^\W{_SPACELESS}])"
_CALLED_ANSWER = (
    r"answer|result|solution|option|choice|equals|antwort|ergebnis|lösung|réponse|reponse|résultat|"
    r"respuesta|resultado|solución|risposta|risultato|soluzione|resposta|resultado|solução|"
    r"antwoord|uitkomst|oplossing|svaret|svar|resultat|vastaus|odpowiedź|wynik|odpověď|výsledek|"
    r"răspuns|απάντηση|ответ|результат|відповідь|отговор|cevap|sonuç|jawaban|đáp án|trả lời|"
    r"答え|答案|解答|正解|回答|结果|結果|選択肢|选项|選項|정답|답|결과|الجواب|الإجابة|الاجابة|תשובה|"
    r"उत्तर|जवाब|คำตอบ|boxed|="
)
_BEFORE_STATED = rf"(?:{_CALLED_ANSWER})[^\w\n?]*(?:[^\W\d]{{1,5}}[^\w\n?]+){{0,2}}"
"""What calls that which follows the answer, with at most two short words between (is, ist die)."""
_BEFORE_STATED_SPACELESS = rf"(?:{_CALLED_ANSWER})[^\w\n?]*[{_SPACELESS}]{{0,4}}[^\w\n?]*"
_STATED_PREFIXES = (_BEFORE_STATED, _BEFORE_STATED_SPACELESS, r"(?m:^)[^\w\n]*")
"""The last is a line that holds nothing else."""
_AFTER_LETTER = r"(?!\s*(?:or|oder|ou|o|of|eller|или|/|または|或|또는)\b)"
_AFTER_STATED_WORD = (
    rf"(?=[^\S\n]*(?:$|[\n.,;:!)\]}}*\"'”»。、،।]|[{_SPACELESS}]))(?!\s*(?:または|或|또는|か))"
)


def _stated_patterns(answer_pattern: str, after: str) -> Iterator[str]:
    for prefix in _STATED_PREFIXES[:2]:
        yield prefix + answer_pattern + after
    yield _STATED_PREFIXES[2] + answer_pattern + r"[^\w\n?]*(?m:$)"


# ---- numbers

_DIGIT_RUN = re.compile(
    r"(?P<sign>-)?(?P<point>(?<!\d)[.,](?=\d))?"
    r"(?P<digits>\d+(?:[.,'’]\d+|[\u00a0\u202f\u2009 ](?=\d{3}(?!\d))\d+)*)"
    r"(?P<percent>\s?%)?"
)
_TERM_BEFORE_MINUS = re.compile(r"(?:[a-zA-Z]|[\d)]\s?)$")
_TERM_LENGTH = 3
"""Characters before a minus that can be of a term, with a line break after it."""
_SLASH = re.compile(r"\s?/\s?")
_DIGIT_SEPARATOR = re.compile(r"\D")


@dataclass(frozen=True)
class _WrittenNumber:
    """A run of digits in a text."""

    values: frozenset[Fraction]
    """All that it can mean: 1,398 is 1398 or 1.398."""
    start: int
    end: int
    is_percent: bool


def _written_numbers(text: str) -> list[_WrittenNumber]:
    """Numbers of a plain text in its order; fractions follow the numbers that they are of."""
    numbers = []
    for match in _DIGIT_RUN.finditer(text):
        values = _readings(match["digits"])
        if match["point"]:
            values = {Fraction(f"0.{match['digits']}")} if match["digits"].isdigit() else set()
        is_percent = match["percent"] is not None
        if is_percent:
            values |= {value / 100 for value in values}
        before_number = text[max(0, match.start() - _TERM_LENGTH) : match.start()]
        is_difference = _TERM_BEFORE_MINUS.search(before_number) is not None
        if match["sign"] and not is_difference:
            values = {-value for value in values}
        number = _WrittenNumber(frozenset(values), match.start(), match.end(), is_percent)
        numbers.append(number)

    fractions = []
    for above, below in pairwise(numbers):
        is_fraction = _SLASH.fullmatch(text[above.end : below.start]) is not None
        if is_fraction and 0 not in below.values:
            quotients = {top / bottom for top in above.values for bottom in below.values}
            fraction = _WrittenNumber(frozenset(quotients), above.start, below.end, False)
            fractions.append(fraction)
    return [*numbers, *fractions]


def _readings(digits: str) -> set[Fraction]:
    """Values that digits with points, commas and spaces between them can mean."""
    parts = _DIGIT_SEPARATOR.split(digits)
    separators = _DIGIT_SEPARATOR.findall(digits)
    values = set()
    if _are_groups(parts, separators):
        values.add(Fraction("".join(parts)))
    if separators and separators[-1] in ".," and _are_groups(parts[:-1], separators[:-1]):
        whole_part = "".join(parts[:-1])
        if separators[-1] not in separators[:-1]:
            values.add(Fraction(f"{whole_part}.{parts[-1]}"))
    if not values or any(separator.isspace() for separator in separators):
        values |= {Fraction(part) for part in parts}
    return values


def _are_groups(parts: Sequence[str], separators: Sequence[str]) -> bool:
    """Whether parts are groups of thousands (or of hundreds, as in 12,34,567)."""
    if not separators:
        return True
    has_one_separator = len(set(separators)) == 1
    inner_lengths = {len(part) for part in parts[1:-1]}
    has_group_lengths = len(parts[0]) <= 3 and len(parts[-1]) == 3 and inner_lengths <= {2, 3}
    return has_one_separator and has_group_lengths


def number_values(answer: str) -> frozenset[Fraction]:
    """Values of an answer that is a number, with at most a word or a sign as its unit; none of any
    other.
    """
    numbers = _written_numbers(answer)
    if not numbers:
        return frozenset()
    number = numbers[-1]
    first_number = numbers[0]
    if len(numbers) not in (1, 3) or number.start != first_number.start:
        return frozenset()
    before = answer[: number.start].strip()
    after = answer[number.end :].strip()
    has_letter_before = any(map(str.isalnum, before))
    if has_letter_before or len(after.split()) > 1:
        return frozenset()
    return number.values


def _holds_number(reasoning: str, values: frozenset[Fraction], item: str) -> bool:
    item_values = _values_in(item)
    is_telling = not _is_single_digit(values) and not values & item_values
    numbers = [number for number in _written_numbers(reasoning) if number.values & values]
    if is_telling and numbers:
        return True
    return any(_is_stated(reasoning, number) for number in numbers)


def _values_in(text: str) -> frozenset[Fraction]:
    values = [number.values for number in _written_numbers(text)]
    return frozenset().union(*values)


def _is_single_digit(values: frozenset[Fraction]) -> bool:
    return all(value.denominator == 1 and abs(value) < 10 for value in values)


def _is_stated(text: str, number: _WrittenNumber) -> bool:
    """Whether a number is called the answer, or stands in a line of its own."""
    before = text[: number.start]
    # What calls a number the answer stands in its line, or ends the line above.
    line_start = before.rfind("\n", 0, max(0, len(before) - 1)) + 1
    for prefix in _STATED_PREFIXES[:2]:
        if re.search(rf"(?:{prefix})$", before[line_start:], re.IGNORECASE):
            return True
    line_before = before.rpartition("\n")[2]
    line_after = text[number.end :].partition("\n")[0]
    return not any(map(str.isalnum, line_before + line_after)) and "?" not in line_after


# ---- letters and words


def _holds_word(reasoning: str, answer: str, item: str) -> bool:
    if _is_letter(answer):
        return _states_letter(reasoning, re.escape(answer))
    as_word = _NO_WORD_BEFORE + re.escape(answer) + _NO_WORD_AFTER
    is_in_item = re.search(as_word, item, re.IGNORECASE) is not None
    is_telling = not _is_untelling(answer) and not is_in_item
    if is_telling and re.search(as_word, reasoning, re.IGNORECASE):
        return True
    after = _AFTER_STATED_WORD if _is_untelling(answer) else _AFTER_LETTER
    return _finds_any(_stated_patterns(as_word, after), reasoning)


def _finds_any(patterns: Iterator[str], text: str) -> bool:
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def _is_letter(answer: str) -> bool:
    return len(answer) == 1 and answer.isalpha()


def _is_untelling(answer: str) -> bool:
    is_spaced = re.match(rf"[{_SPACELESS}]", answer) is None
    is_short = is_spaced and len(answer) <= LONGEST_UNTELLING_WORD
    return is_short or answer.casefold() in UNTELLING_WORDS


def _states_letter(reasoning: str, letter_pattern: str) -> bool:
    """Whether a letter is called the answer: as a capital, or between brackets or stars."""
    capital = f"(?-i:{letter_pattern.upper()})"
    enclosed = rf"[(\[*]{letter_pattern}[)\]*]"
    as_letter = rf"{_NO_WORD_BEFORE}(?:{capital}{_NO_WORD_AFTER}|{enclosed})"
    return _finds_any(_stated_patterns(as_letter, _AFTER_LETTER), reasoning)


def _word_answers(answers: Collection[str]) -> set[str]:
    """Answers of several letters that are no number."""
    words = set()
    for raw_answer in answers:
        answer = _plain_answer(raw_answer)
        is_word = any(map(str.isalpha, answer)) and not _is_letter(answer)
        if is_word and len(answer) <= LONGEST_ANSWER and not number_values(answer):
            words.add(answer)
    return words


def _holds_some_answer(entry: ReasonedAnswer, word_answers: Sequence[str]) -> bool:
    """Whether reasoning holds an answer of the kind that its item asks for, right or not."""
    reasoning = plain_text(entry.text)
    item = plain_text(entry.item_text)
    asks_for_word = False
    for raw_answer in entry.answers:
        answer = _plain_answer(raw_answer)
        if number_values(answer):
            if _holds_candidate_number(reasoning, item):
                return True
        elif _is_letter(answer):
            if _states_letter(reasoning, "[A-Z]"):
                return True
        else:
            asks_for_word = True
    if not asks_for_word:
        return False
    return any(_holds_word(reasoning, answer, item) for answer in word_answers)


def _holds_candidate_number(reasoning: str, item: str) -> bool:
    """Whether there is a number that the item does not hold, and that is no chance."""
    item_values = _values_in(item)
    for number in _written_numbers(reasoning):
        is_chance = number.is_percent or all(0 <= value <= 1 for value in number.values)
        if is_chance or number.values & item_values:
            continue
        if not _is_single_digit(number.values) or _is_stated(reasoning, number):
            return True
    return False
