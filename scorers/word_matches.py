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
    noted,
    summary,
)
from selfprobe.solvers.observe import OTHER
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
    """Exact match per k after normalisation (paper 003, E.2 Task 1.1), with the target's own repeat
    as ceiling.
    """

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        acts, answers = record.acts, record.answers
        decisions = [
            judge_kth_word(place_of(key), acts["answer"], reply, acts.get("again")).model_copy(
                update={"key": key}
            )
            for key, reply in answers.items()
        ]
        return score_of(
            decisions,
            answer=predictions(decisions),
            explanation=_explain_words(acts["answer"], answers, decisions),
            details=noted([acts["answer"]]),
        )

    return score


def judge_kth_word(k: int, act: Reply, reply: Reply, again: Reply | None = None) -> Decision:
    """Decision on one prediction, compared with the target's text.

    Args:
        k: 1 is the first word.
        act: The target's text.
        reply: The observer's.
        again: The target's text of a second run, for the ceiling.
    """
    truth, fault = kth_word_of(act, k)
    repeat = kth_word_of(again, k)[0] if again else None
    ceiling = None if truth is None or repeat is None else float(truth == repeat)
    return prediction(
        f"k{k}", reply, truth=truth, fault=fault, read=predicted_word, ceiling=ceiling
    )


def place_of(key: str) -> int:
    """The k of a decision's key: 1 of "k1", and of "other_k1"."""
    return int(key.removeprefix(OTHER).removeprefix("k"))


def kth_word_of(act: Reply, k: int) -> tuple[str | None, str | None]:
    """K-th word, normalised, or why there is none: (word, None) or (None, reason)."""
    if fault := target_fault(act):
        return None, fault
    # One word more than k is needed: in a text cut at the token limit, the last word may be half a
    # word.
    first = words(act.text, limit=k + 1)
    if any(map(has_no_word_boundaries, first[:k])):
        return None, "no_word_boundaries"
    if any(map(_FORMULA.search, first[:k])):
        return None, "formula"
    cut = act.stop_reason in ("max_tokens", "model_length")
    if len(first) > k or (len(first) == k and not cut):
        return normalise(first[k - 1]), None
    return None, "target_truncated" if cut else "too_short"


def predicted_word(text: str) -> str | None:
    """Single word in {"word": …} or alone, normalised; None for anything else, a phrase or bare
    punctuation too.
    """
    return one_word(text, "word")


def _explain_words(act: Reply, answers: dict[str, Reply], decisions: list[Decision]) -> str:
    """The target's text with the asked words marked, and each prediction, for the log browser."""
    asked = {place_of(d.key) for d in decisions}
    marked = [
        f"⟦{i}: {w}⟧" if i in asked else w for i, w in enumerate(words(act.text, limit=60), start=1)
    ]
    lines = [f"target ({act.model}): {' '.join(marked) or '(no text)'}", ""]
    for d in decisions:
        lines.append(
            f"- {d.key}: predicted {d.said!r}, target wrote {d.truth!r}: {outcome(d, answers[d.key])}"
        )
    return "\n".join(lines)


CLUES = 10

SYNONYM = "synonym_named"
_SYNONYM = re.compile(
    r"\b(?:(?:syn|ant)onym(?:s|ous)?|opposites?\s*(?:of|is|:)|contrary (?:of|to)|also known as"
    r"|(?:an)?other (?:word|term|name)s? for|means the same)"
)

NEAR = range(9, 12)
"""Numbers of clues that are played: the ten that are asked for, and one less or more."""

_NUMBER = re.compile(
    r"(?:^|(?<=\s))[*_]{0,3}(?:(?:clue|hint)\s*)?[(#]?(\d{1,2})\s?[.):](?=\s|\D)[\s*_]*",
    re.IGNORECASE,
)
_BULLET = re.compile(
    r"^\s*(?:[*_]{0,3}(?:(?:clue|hint)\s*#?\d{1,2}\s?[.):–—-]|[(#]?\d{1,2}[.):]|\(?(?:[a-k]|[ivx]{1,4})\))[*_]{0,3}"
    r"|[-–—*•·▪]|\|\s*\d{1,2}\.?\s*\|)\s*(?=\D)",
    re.IGNORECASE,
)
_EDGE = re.compile(r"\W*+")
_TALK = re.compile(r"(?:here are|sure|of course)\b", re.IGNORECASE)
_BETWEEN = [
    re.compile(p)
    for p in (
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
    """The guess is the word, after normalisation and as a whole (paper 003, E.3 Task 2.2)."""

    async def score(state: TaskState, target: Target) -> Score:
        record, word = state.store_as(Record), state.metadata["word"]
        decision = judge_guess(word, record.acts["clues"], record.answers.get("guess"))
        clues, fault = fair_clues(record.acts["clues"], word)
        named = [SYNONYM] if not fault and any(map(names_synonym, clues)) else []
        return score_of(
            [decision],
            answer=predictions([decision]),
            explanation=_explain_clues(record, decision, len(clues)),
            details={"clues": len(clues)} | noted([record.acts["clues"]], *named),
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
    return prediction("guess", guess, truth=normalise(word), fault=fault, read=guess_in)


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
    return clues, None if len(clues) in NEAR else "not_ten_clues"


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
        value = _bare_list(text) or (_each_alone(text) if "{" not in text else _numbered_keys(text))
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, str):
        value = _split(value)
    if not isinstance(value, list):
        return None
    clues = [_text_of(clue) for clue in value]
    if any(clue is None for clue in clues):
        return None
    plain = [_BULLET.sub("", clue).strip() for clue in clues if clue is not None]
    return [clue for clue in plain if normalise(clue)] or None


def _bare_list(text: str) -> list[object] | None:
    """List of a reply that is a JSON list and nothing else."""
    try:
        found = json.loads(text[:LONGEST_REPLY])
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _text_of(clue: object) -> str | None:
    """A clue unchanged, or the one text in {"number": 1, "clue": "…"}; None where there is none or
    several.
    """
    texts = [
        one
        for one in (clue.values() if isinstance(clue, Mapping) else [clue])
        if isinstance(one, str)
    ]
    return texts[0] if len(texts) == 1 else None


def _numbered_keys(text: str) -> dict[str, object] | None:
    """{"clue1": …, "clue2": …}."""
    said = json_object(text)
    return (
        said
        if said and all(re.fullmatch(r"(?:clue|hint)?[ _]?\d{1,2}", key.casefold()) for key in said)
        else None
    )


def _each_alone(text: str) -> list[str] | None:
    """Lines of a reply that begin with a number or a bullet, if there are two or more; the others
    are talk.

    Without any, all lines but talk before and after them, if their number is that of clues.
    """
    lines = [line.rstrip(" |") for line in text[:LONGEST_REPLY].splitlines() if normalise(line)]
    marked = [line for line in lines if _BULLET.match(line)]
    if len(marked) > 1:
        return marked
    alone = [line.strip() for line in lines if not _is_talk(line)]
    return alone if len(alone) in NEAR else None


def _is_talk(line: str) -> bool:
    """Whether a line around the clues is none: a fence, one that ends with a colon, or a polite
    beginning.
    """
    before, after = (_EDGE.match(way) for way in (line, line[::-1]))
    assert before and after
    return "```" in before[0] or ":" in after[0] or _TALK.match(line, before.end()) is not None


def _split(text: str) -> list[str]:
    text = re.sub(
        r"\s*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", text[:LONGEST_REPLY])
    )  # long runs of spaces take long
    ways = [
        [part for part in way if normalise(part)]
        for way in (_numbered(text), *(b.split(text) for b in _BETWEEN))
    ]
    near = next(
        (way for way in ways if len(way) in NEAR),
        next((way for way in ways if len(way) > 1), [text]),
    )
    return next((way for way in ways if len(way) == CLUES), near)


def _numbered(text: str) -> list[str]:
    """The text cut at 1, 2, 3, … in order: another number with a point or colon is part of a clue."""
    cuts: list[re.Match[str]] = []
    for found in _NUMBER.finditer(text):
        if int(found[1]) == len(cuts) + 1:
            cuts.append(found)
    ends = [cut.start() for cut in cuts[1:]] + [len(text)]
    return (
        [text[cut.end() : end].strip() for cut, end in zip(cuts, ends, strict=True)]
        if len(cuts) > 1
        else []
    )


def leaks(clue: str, word: str) -> bool:
    """Whether a clue gives the word away: unchanged, by a word of the same root, or by its letters
    spaced out.

    "loyal" gives "loyalty" away, "ran" "run", and "light-house" or "l i g h t h o u s e" the
    lighthouse. A part of it does not, nor does another word that holds the letters ("humdrum", of a
    drum).

    Paper: "without saying the word itself". Here: the word or its root.
    """
    folded, secret = normalise(clue), normalise(word)
    spelled = r"[\W_]{0,3}".join(map(re.escape, re.sub(r"[\W_]", "", secret)))
    if re.search(rf"(?<![^\W_]){spelled}(?:[\W_]{{0,3}}e?[\W_]{{0,3}}s)?(?![^\W_])", folded):
        return True
    return any(same_root(secret, token) for token in re.findall(r"[^\W_]+", folded))


def names_synonym(clue: str) -> bool:
    """Whether a clue calls itself a synonym or an antonym, which paper 003, §3.1 excludes.

    Synonyms without that name would need a thesaurus; there is no light one with antonyms that is
    maintained.

    >>> names_synonym("Synonym: beacon"), names_synonym("The opposite of dark"), names_synonym("It warns ships.")
    (True, True, False)
    """
    return _SYNONYM.search(normalise(clue)) is not None


def guess_in(text: str) -> str | None:
    """The single word in {"guess": …} or alone, normalised, without an article; None for another
    phrase.
    """
    return one_word(text, "guess", article=True)


def _explain_clues(record: Record, decision: Decision, count: int) -> str:
    """The word, the clues unchanged, the guess and the verdict, for the log browser."""
    act, guess = record.acts["clues"], record.answers.get("guess")
    said = f"guessed {decision.said!r}" if guess else "no guess asked"
    return f"{decision.truth}: {said}: {outcome(decision, guess)}\n\n{count} clues ({act.model}): {act.text}"


EMOTIONS = ("joy", "grief", "anger", "fear", "calm", "envy", "pride", "boredom")


@metric_of
def told_apart(scores: Scores) -> dict[str, float]:
    """`ceiling`: the mean of 1/m over the played items, where the target chose one subset of a set
    for m emotions.
    """
    played = [subset for one in scores if (subset := (one.score.metadata or {}).get("subset"))]
    times = Counter(played)
    return {"ceiling": sum(1 / times[subset] for subset in played) / len(played)} if played else {}


@scorer(metrics=[summary(), told_apart()])
def emotion_guess() -> Scorer:
    """One decision: the emotion for which the numbers were chosen."""

    async def score(state: TaskState, target: Target) -> Score:
        record, word, numbers = (
            state.store_as(Record),
            state.metadata["word"],
            state.metadata["numbers"],
        )
        subset, fault = subset_in(record.acts["subset"], numbers)
        reply = record.answers.get("word")
        decision = prediction(
            "word",
            reply,
            truth=word,
            fault=fault,
            read=emotion,
            chance=1 / len(EMOTIONS),
            constant=word,
        )
        return score_of(
            [decision],
            answer=predictions([decision]),
            explanation=f"{as_list(subset)} of {as_list(numbers)}: {outcome(decision, reply)}",
            details={"subset": "" if fault else f"{as_list(subset)} of {as_list(numbers)}"},
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
    said = json_value(reply.text, "subset")
    if not isinstance(said, list) or not all(type(one) is int for one in said):
        return [], f"target_{UNPARSED}"
    subset = sorted(set(said))
    return (subset, None) if subset and set(subset) < set(numbers) else ([], "no_subset")
