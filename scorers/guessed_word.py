"""Did the observer guess the word that the target's clues describe?"""

import re

import snowballstemmer
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.word_roots import same_root
from selfprobe.parse import json_value, normalise, words
from selfprobe.scorers.decision import UNPARSED, Decision, outcome, prediction, predictions, score_of, target_fault
from selfprobe.scorers.summary import summary
from selfprobe.solvers.record import Record, Reply

CLUES = 10

_NUMBER = re.compile(r"(?:^|(?<=\s))[(#]?\d{1,2}[.):](?=\s|\D)\s*")
_BULLET = re.compile(r"^\s*(?:[-–—*•]|[(#]?\d{1,2}[.):])\s*(?=\D)")
_BETWEEN = [re.compile(p) for p in (r"\s*\n\s*", r"\s*;\s*", r"(?<=[.!?])\s+", r"\s*,\s*")]
"""What stands between clues in one string, after numbers: lines, semicolons, sentences, commas."""

_STEMMER = snowballstemmer.stemmer("english")


@scorer(metrics=[summary()])
def guessed_word() -> Scorer:
    """The guess is the word, after normalisation and as a whole (paper 003, E.3 Task 2.2)."""

    async def score(state: TaskState, target: Target) -> Score:
        record, word = state.store_as(Record), state.metadata["word"]
        decision = judge(word, record.acts["clues"], record.answers.get("guess"))
        return score_of([decision], answer=predictions([decision]), explanation=explain(record, decision))

    return score


def judge(word: str, act: Reply, guess: Reply | None) -> Decision:
    """One guess.

    Args:
        word: What the clues describe.
        act: The target's reply with the clues.
        guess: The observer's reply; None where it was not asked, since the clues are not in order.
    """
    _, fault = fair_clues(act, word)
    return prediction("guess", guess, truth=normalise(word), fault=fault, read=guess_in)


def fair_clues(act: Reply, word: str) -> tuple[list[str], str | None]:
    """The clues, and why they cannot be played ("leak", "not_ten_clues", "target_…"), or None."""
    if fault := target_fault(act):
        return [], fault
    clues = clues_in(act.text)
    if clues is None:
        return [], f"target_{UNPARSED}"
    if any(leaks(clue, word) for clue in clues):
        return clues, "leak"
    return clues, None if len(clues) == CLUES else "not_ten_clues"


def clues_in(text: str) -> list[str] | None:
    """The clues in {"clues": …}, a list or one string, without numbers and bullets; None if there are none to read.

    Paper: "a list of 10 clues", shown as one string. Here: a string is split at its numbers, else lines, semicolons,
    sentences or commas, whichever gives ten; if none does, the first that splits it at all.

    >>> clues_in('{"clues": "1. It is tall. 2. It warns ships."}')
    ['It is tall.', 'It warns ships.']
    """
    value = json_value(text, "clues")
    if isinstance(value, str):
        value = _split(value)
    if not isinstance(value, list) or not all(isinstance(clue, str) for clue in value):
        return None
    clues = [_BULLET.sub("", clue).strip() for clue in value]
    return [clue for clue in clues if normalise(clue)] or None


def _split(text: str) -> list[str]:
    ways = [[part for part in way.split(text) if normalise(part)] for way in (_NUMBER, *_BETWEEN)]
    return next((way for way in ways if len(way) == CLUES), next((way for way in ways if len(way) > 1), [text]))


def leaks(clue: str, word: str) -> bool:
    """Whether a clue gives the word away: as it is, its plural, its stem, or its letters spaced out.

    Words are compared by Snowball's English stem, in which a final y (its i) does not count: "jealous" gives
    "jealousy" away, and "light-house" or "l i g h t h o u s e" the lighthouse. A part ("light") does not, nor does
    another word that holds the letters ("humdrum", of a drum).

    Paper: "without saying the word itself". Here: the word or its stem.
    """
    folded, secret = normalise(clue), normalise(word)
    spelled = r"[\W_]{0,3}".join(map(re.escape, secret))
    if re.search(rf"(?<![^\W_]){spelled}(?:[\W_]{{0,3}}e?[\W_]{{0,3}}s)?(?![^\W_])", folded):
        return True
    return any(same_root(secret, token) for token in re.findall(r"[^\W_]+", folded))


def stem(word: str) -> str:
    """What a word shares with its inflections: Snowball's stem, with "scarves" as "scarf" and no final i.

    >>> stem("honesty"), stem("honestly"), stem("bookshelves")
    ('honest', 'honest', 'bookshelf')
    """
    singular = re.sub(r"(?<=[lr])ves$", "f", word)
    found: str = _STEMMER.stemWord(singular)
    return found.removesuffix("i") if len(found) > 4 else found


def guess_in(text: str) -> str | None:
    """The single word in {"guess": …}, normalised; None for anything else, a phrase too."""
    value = json_value(text, "guess")
    if not isinstance(value, str) or len(words(value, limit=2)) != 1:
        return None
    return normalise(words(value)[0])


def explain(record: Record, decision: Decision) -> str:
    """The word, the clues as they came, the guess and the verdict, for the log browser."""
    act, guess = record.acts["clues"], record.answers.get("guess")
    said = f"guessed {decision.said!r}" if guess else "no guess asked"
    return f"{decision.truth}: {said}: {outcome(decision, guess)}\n\nclues ({act.model}): {act.text}"
