"""Is the word that the observer says the target's: its k-th word, the word of its clues, the
emotion of its numbers?
"""

import json
import re
from collections import Counter
from collections.abc import Mapping

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import (
    UNPARSED,
    Decision,
    outcome,
    prediction,
    predictions,
    score_of,
    target_fault,
)
from selfprobe.scorers.summary import (
    FOREIGN,
    UNSURE,
    Scores,
    counted_apart,
    metric_of,
    sample_notes,
    summary,
)
from selfprobe.solvers.observe import OTHER_PREFIX
from selfprobe.solvers.record import Record, Reply
from selfprobe.text.parse import (
    LONGEST_REPLY,
    has_no_word_boundaries,
    json_object,
    json_value,
    normalise,
    one_word,
    words,
)
from selfprobe.text.word_roots import same_root

_FORMULA = re.compile(r"\\[a-zA-Z]+\*?[\[{]")
"""Rest of LaTeX without its styles: a fraction or a table has no words to count."""


@scorer(metrics=[summary(), counted_apart()])
def kth_word_match() -> Scorer:
    """Exact match per k after normalisation (IntrospectBench, E.2 Task 1.1), with the target's own
    repeat as ceiling.
    """

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        act = record.acts["answer"]
        repeated_act = record.acts.get("again")
        answers = record.answers
        decisions: list[Decision] = []
        for key, reply in answers.items():
            decision = judge_kth_word(place_of(key), act, reply, repeated_act)
            decisions.append(decision.model_copy(update={"key": key}))
        return score_of(
            decisions,
            answer=predictions(decisions),
            explanation=_explain_words(act, answers, decisions),
            details=sample_notes([act]),
        )

    return score


def judge_kth_word(k: int, act: Reply, reply: Reply, repeated_act: Reply | None = None) -> Decision:
    """Decision on one prediction, compared with the target's text.

    Args:
        k: 1 is the first word.
        act: The target's text.
        reply: The observer's.
        repeated_act: The target's text of a second run, for the ceiling.
    """
    truth, fault = kth_word_of(act, k)
    repeated_word: str | None = None
    if repeated_act is not None:
        repeated_word, _ = kth_word_of(repeated_act, k)
    ceiling: float | None = None
    if truth is not None and repeated_word is not None:
        ceiling = float(truth == repeated_word)
    return prediction(
        f"k{k}", reply, truth=truth, fault=fault, parse_answer=predicted_word, ceiling=ceiling
    )


def place_of(key: str) -> int:
    """The k of a decision's key: 1 of "k1", and of "other_k1"."""
    return int(key.removeprefix(OTHER_PREFIX).removeprefix("k"))


def kth_word_of(act: Reply, k: int) -> tuple[str | None, str | None]:
    """K-th word, normalised, or why there is none: (word, None) or (None, reason)."""
    if fault := target_fault(act):
        return None, fault
    # One word more than k is needed: in a text cut at the token limit, the last word may be half a
    # word.
    first_words = words(act.text, limit=k + 1)
    words_up_to_k = first_words[:k]
    if any(map(has_no_word_boundaries, words_up_to_k)):
        return None, "no_word_boundaries"
    if any(map(_FORMULA.search, words_up_to_k)):
        return None, "formula"

    is_cut = act.stop_reason in ("max_tokens", "model_length")
    is_word_whole = len(first_words) > k or not is_cut
    if len(first_words) >= k and is_word_whole:
        return normalise(first_words[k - 1]), None
    return None, "target_truncated" if is_cut else "too_short"


def predicted_word(text: str) -> str | None:
    """Single word in {"word": …} or alone, normalised; None for anything else, a phrase or bare
    punctuation too.
    """
    return one_word(text, "word")


def _explain_words(act: Reply, answers: dict[str, Reply], decisions: list[Decision]) -> str:
    """The target's text with the asked words marked, and each prediction, for the log browser."""
    asked_places = {place_of(decision.key) for decision in decisions}
    marked_words: list[str] = []
    for place, word in enumerate(words(act.text, limit=60), start=1):
        marked_words.append(f"⟦{place}: {word}⟧" if place in asked_places else word)

    lines = [f"target ({act.model}): {' '.join(marked_words) or '(no text)'}", ""]
    for decision in decisions:
        lines.append(
            f"- {decision.key}: predicted {decision.said!r}, target wrote {decision.truth!r}: "
            f"{outcome(decision, answers[decision.key])}"
        )
    return "\n".join(lines)


CLUE_COUNT = 10

SYNONYM = "synonym_named"
_SYNONYM = re.compile(
    r"\b(?:(?:syn|ant)onym(?:s|ous)?|opposites?\s*(?:of|is|:)|contrary (?:of|to)|also known as"
    r"|(?:an)?other (?:word|term|name)s? for|means the same)"
)

PLAYED_CLUE_COUNTS = range(9, 12)
"""Numbers of clues that are played: the ten that are asked for, and one less or more."""

_CLUE_NUMBER = re.compile(
    r"(?:^|(?<=\s))[*_]{0,3}(?:(?:clue|hint)\s*)?[(#]?(\d{1,2})\s?[.):](?=\s|\D)[\s*_]*",
    re.IGNORECASE,
)
_BULLET = re.compile(
    r"^\s*(?:[*_]{0,3}(?:(?:clue|hint)\s*#?\d{1,2}\s?[.):–—-]|[(#]?\d{1,2}[.):]"
    r"|\(?(?:[a-k]|[ivx]{1,4})\))[*_]{0,3}|[-–—*•·▪]|\|\s*\d{1,2}\.?\s*\|)\s*(?=\D)",
    re.IGNORECASE,
)
_EDGE_SYMBOLS = re.compile(r"\W*+")
_POLITE_OPENING = re.compile(r"(?:here are|sure|of course)\b", re.IGNORECASE)
_CLUE_SEPARATORS = [
    re.compile(pattern)
    for pattern in (
        r"\s*\n\s*",
        r"\s*[|•·▪]\s*",
        r"\s*;\s*",
        r"\s+[/–—-]{1,2}\s+",
        r"(?<=[.!?])\s+",
        r"\s*,\s*",
    )
]
"""Separators of clues in one string, after numbers: lines, bars, semicolons, dashes, sentences,
commas.
"""


@scorer(metrics=[summary(), counted_apart((UNSURE, FOREIGN, SYNONYM))])
def guessed_word() -> Scorer:
    """The guess is the word, after normalisation and as a whole (IntrospectBench, E.3 Task 2.2)."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        word = state.metadata["word"]
        act = record.acts["clues"]
        decision = judge_guess(word, act, record.answers.get("guess"))

        clues, fault = fair_clues(act, word)
        notes: list[str] = []
        if not fault and any(map(names_synonym_or_antonym, clues)):
            notes.append(SYNONYM)
        return score_of(
            [decision],
            answer=predictions([decision]),
            explanation=_explain_clues(record, decision, len(clues)),
            details={"clues": len(clues)} | sample_notes([act], *notes),
        )

    return score


def judge_guess(word: str, act: Reply, guess: Reply | None) -> Decision:
    """Decision on one guess.

    Args:
        word: Word that the clues describe.
        act: The target's reply with the clues.
        guess: The observer's reply; None where it was not asked, since the clues are not in order.
    """
    _, fault = fair_clues(act, word)
    return prediction("guess", guess, truth=normalise(word), fault=fault, parse_answer=guess_in)


def fair_clues(act: Reply, word: str) -> tuple[list[str], str | None]:
    """Clues, and the reason why they cannot be played ("leak", "not_ten_clues", "target_…"), or
    None.

    Paper: silent on nine or eleven clues. Here: they are played, and the log holds their number.
    """
    if fault := target_fault(act):
        return [], fault
    clues = clues_in(act.text)
    if clues is None:
        return [], f"target_{UNPARSED}"
    if any(leaks(clue, word) for clue in clues):
        return clues, "leak"
    if len(clues) not in PLAYED_CLUE_COUNTS:
        return clues, "not_ten_clues"
    return clues, None


def clues_in(text: str) -> list[str] | None:
    """The clues in {"clues": …} without numbers and bullets; None if there are none to read.

    The reply may hold one string, a list of strings or of objects with one each ({"clue": "…"}), an
    object with one per key, or, without an object, a numbered or bulleted list, the rows of a
    table, or nine to eleven lines alone. Paper: "a list of 10 clues", shown as one string. Here: a
    string is split at its numbers, else lines, bars, semicolons, dashes, sentences or commas,
    whichever gives ten; else nine or eleven; else the first that splits it.

    >>> clues_in('{"clues": "1. It is tall. 2. It warns ships."}')
    ['It is tall.', 'It warns ships.']
    """
    value = json_value(text, "clues")
    if value is None:
        value = _clues_without_field(text)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, str):
        value = _split_clues(value)
    if not isinstance(value, list):
        return None

    clues: list[str] = []
    for entry in value:
        clue = _text_of(entry)
        if clue is None:
            return None
        bare_clue = _BULLET.sub("", clue).strip()
        if normalise(bare_clue):
            clues.append(bare_clue)
    return clues or None


def _clues_without_field(text: str) -> list[object] | dict[str, object] | list[str] | None:
    """Clues of a reply without the key "clues"."""
    bare_list = _bare_list(text)
    if bare_list:
        return bare_list
    if "{" in text:
        return _numbered_keys(text)
    return _listed_lines(text)


def _bare_list(text: str) -> list[object] | None:
    """List of a reply that is a JSON list and nothing else."""
    try:
        value = json.loads(text[:LONGEST_REPLY])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _text_of(clue: object) -> str | None:
    """A clue unchanged, or the one text in {"number": 1, "clue": "…"}; None where there is none or
    several.
    """
    values = clue.values() if isinstance(clue, Mapping) else [clue]
    texts = [value for value in values if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else None


def _numbered_keys(text: str) -> dict[str, object] | None:
    """{"clue1": …, "clue2": …}."""
    clue_by_key = json_object(text)
    if not clue_by_key:
        return None
    for key in clue_by_key:
        if not re.fullmatch(r"(?:clue|hint)?[ _]?\d{1,2}", key.casefold()):
            return None
    return clue_by_key


def _listed_lines(text: str) -> list[str] | None:
    """Lines of a reply that begin with a number or a bullet, if there are two or more; the others
    are talk.

    Without any, all lines but talk before and after them, if their number is that of clues.
    """
    lines = [line.rstrip(" |") for line in text[:LONGEST_REPLY].splitlines() if normalise(line)]
    bulleted_lines = [line for line in lines if _BULLET.match(line)]
    if len(bulleted_lines) > 1:
        return bulleted_lines
    clue_lines = [line.strip() for line in lines if not _is_talk(line)]
    return clue_lines if len(clue_lines) in PLAYED_CLUE_COUNTS else None


def _is_talk(line: str) -> bool:
    """Whether a line around the clues is none: a fence, one that ends with a colon, or a polite
    beginning.
    """
    opening = _EDGE_SYMBOLS.match(line)
    reversed_ending = _EDGE_SYMBOLS.match(line[::-1])
    assert opening and reversed_ending
    if "```" in opening[0] or ":" in reversed_ending[0]:
        return True
    return _POLITE_OPENING.match(line, opening.end()) is not None


def _split_clues(text: str) -> list[str]:
    # long runs of spaces take long
    text = re.sub(r"[^\S\n]+", " ", text[:LONGEST_REPLY])
    text = re.sub(r"\s*\n\s*", "\n", text)

    splits: list[list[str]] = []
    for parts in (_numbered(text), *(separator.split(text) for separator in _CLUE_SEPARATORS)):
        splits.append([part for part in parts if normalise(part)])

    for clues in splits:
        if len(clues) == CLUE_COUNT:
            return clues
    for clues in splits:
        if len(clues) in PLAYED_CLUE_COUNTS:
            return clues
    for clues in splits:
        if len(clues) > 1:
            return clues
    return [text]


def _numbered(text: str) -> list[str]:
    """Text cut at 1, 2, 3, … in order: another number with a point or colon is part of a clue."""
    cuts: list[re.Match[str]] = []
    for number_match in _CLUE_NUMBER.finditer(text):
        if int(number_match[1]) == len(cuts) + 1:
            cuts.append(number_match)
    if len(cuts) < 2:
        return []
    ends = [cut.start() for cut in cuts[1:]] + [len(text)]
    return [text[cut.end() : end].strip() for cut, end in zip(cuts, ends, strict=True)]


def leaks(clue: str, word: str) -> bool:
    """Whether a clue gives the word away: unchanged, by a word of the same root, or by its letters
    spaced out.

    "loyal" gives "loyalty" away, "ran" "run", and "light-house" or "l i g h t h o u s e" the
    lighthouse. A part of it does not, nor does another word that holds the letters ("humdrum", of a
    drum).

    Paper: "without saying the word itself". Here: the word or its root.
    """
    folded_clue = normalise(clue)
    folded_word = normalise(word)
    letters = re.sub(r"[\W_]", "", folded_word)
    spelled_out = r"[\W_]{0,3}".join(map(re.escape, letters))
    plural_ending = r"(?:[\W_]{0,3}e?[\W_]{0,3}s)?"
    if re.search(rf"(?<![^\W_]){spelled_out}{plural_ending}(?![^\W_])", folded_clue):
        return True
    clue_words = re.findall(r"[^\W_]+", folded_clue)
    return any(same_root(folded_word, clue_word) for clue_word in clue_words)


def names_synonym_or_antonym(clue: str) -> bool:
    """Whether a clue calls itself a synonym or an antonym, which IntrospectBench, §3.1 excludes.

    Synonyms without that name would need a thesaurus; there is no light one with antonyms that is
    maintained.

    >>> names_synonym_or_antonym("Synonym: beacon"), names_synonym_or_antonym("The opposite of dark")
    (True, True)
    >>> names_synonym_or_antonym("It warns ships.")
    False
    """
    return _SYNONYM.search(normalise(clue)) is not None


def guess_in(text: str) -> str | None:
    """The single word in {"guess": …} or alone, normalised, without an article; None for another
    phrase.
    """
    return one_word(text, "guess", article=True)


def _explain_clues(record: Record, decision: Decision, clue_count: int) -> str:
    """The word, the clues unchanged, the guess and the verdict, for the log browser."""
    act = record.acts["clues"]
    guess = record.answers.get("guess")
    guess_text = f"guessed {decision.said!r}" if guess else "no guess asked"
    return (
        f"{decision.truth}: {guess_text}: {outcome(decision, guess)}\n\n"
        f"{clue_count} clues ({act.model}): {act.text}"
    )


EMOTIONS = ("joy", "grief", "anger", "fear", "calm", "envy", "pride", "boredom")


@metric_of
def told_apart(scores: Scores) -> dict[str, float]:
    """`ceiling`: the mean of 1/m over the played items, where the target chose one subset of a set
    for m emotions.
    """
    played_subsets: list[str] = []
    for sample_score in scores:
        subset = (sample_score.score.metadata or {}).get("subset")
        if subset:
            played_subsets.append(subset)
    if not played_subsets:
        return {}
    subset_counts = Counter(played_subsets)
    chances = [1 / subset_counts[subset] for subset in played_subsets]
    return {"ceiling": sum(chances) / len(played_subsets)}


@scorer(metrics=[summary(), told_apart()])
def emotion_guess() -> Scorer:
    """One decision: the emotion for which the numbers were chosen."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        word = state.metadata["word"]
        numbers = state.metadata["numbers"]
        subset, fault = subset_in(record.acts["subset"], numbers)
        reply = record.answers.get("word")
        decision = prediction(
            "word",
            reply,
            truth=word,
            fault=fault,
            parse_answer=emotion,
            chance=1 / len(EMOTIONS),
            constant=word,
        )
        subset_text = f"{as_list(subset)} of {as_list(numbers)}"
        return score_of(
            [decision],
            answer=predictions([decision]),
            explanation=f"{subset_text}: {outcome(decision, reply)}",
            details={"subset": "" if fault else subset_text},
        )

    return score


def emotion(text: str) -> str | None:
    """Emotion in {"word": …} or alone, or None."""
    word = one_word(text, "word")
    return word if word in EMOTIONS else None


def as_list(numbers: list[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def subset_in(reply: Reply, numbers: list[int]) -> tuple[list[int], str | None]:
    """Chosen numbers, or why they cannot be played: ([], reason); all of them, or others, are no
    subset.
    """
    if fault := target_fault(reply):
        return [], fault
    value = json_value(reply.text, "subset")
    if not isinstance(value, list) or not all(type(number) is int for number in value):
        return [], f"target_{UNPARSED}"
    subset = sorted(set(value))
    if subset and set(subset) < set(numbers):
        return subset, None
    return [], "no_subset"
