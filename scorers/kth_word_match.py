"""Is the predicted word the target's k-th word?"""

import re

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import Decision, outcome, prediction, predictions, score_of, target_fault
from selfprobe.scorers.summary import counted_apart, noted, summary
from selfprobe.solvers.observe import OTHER
from selfprobe.solvers.record import Record, Reply
from selfprobe.text.parse import has_no_word_boundaries, normalise, one_word, words

_FORMULA = re.compile(r"\\[a-zA-Z]+\*?[\[{]")
"""Rest of LaTeX without its styles: a fraction or a table has no words to count."""


@scorer(metrics=[summary(), counted_apart()])
def kth_word_match() -> Scorer:
    """Exact match per k after normalisation (paper 003, E.2 Task 1.1), with the target's own repeat as ceiling."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        acts, answers = record.acts, record.answers
        decisions = [
            judge(place_of(key), acts["answer"], reply, acts.get("again")).model_copy(update={"key": key})
            for key, reply in answers.items()
        ]
        return score_of(
            decisions,
            answer=predictions(decisions),
            explanation=explain(acts["answer"], answers, decisions),
            details=noted([acts["answer"]]),
        )

    return score


def judge(k: int, act: Reply, reply: Reply, again: Reply | None = None) -> Decision:
    """Decision on one prediction, compared with the target's text.

    Args:
        k: 1 is the first word.
        act: The target's text.
        reply: The observer's.
        again: The target's text of a second run, for the ceiling.
    """
    truth, fault = kth_word(act, k)
    repeat = kth_word(again, k)[0] if again else None
    ceiling = None if truth is None or repeat is None else float(truth == repeat)
    return prediction(f"k{k}", reply, truth=truth, fault=fault, read=predicted_word, ceiling=ceiling)


def place_of(key: str) -> int:
    """The k of a decision's key: 1 of "k1", and of "other_k1"."""
    return int(key.removeprefix(OTHER).removeprefix("k"))


def kth_word(act: Reply, k: int) -> tuple[str | None, str | None]:
    """K-th word, normalised, or why there is none: (word, None) or (None, reason)."""
    if fault := target_fault(act):
        return None, fault
    # One word more than k is needed: in a text cut at the token limit, the last word may be half a word.
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
    """Single word in {"word": …} or alone, normalised; None for anything else, a phrase or bare punctuation too."""
    return one_word(text, "word")


def explain(act: Reply, answers: dict[str, Reply], decisions: list[Decision]) -> str:
    """The target's text with the asked words marked, and each prediction, for the log browser."""
    asked = {place_of(d.key) for d in decisions}
    marked = [f"⟦{i}: {w}⟧" if i in asked else w for i, w in enumerate(words(act.text, limit=60), start=1)]
    lines = [f"target ({act.model}): {' '.join(marked) or '(no text)'}", ""]
    for d in decisions:
        lines.append(f"- {d.key}: predicted {d.said!r}, target wrote {d.truth!r}: {outcome(d, answers[d.key])}")
    return "\n".join(lines)
