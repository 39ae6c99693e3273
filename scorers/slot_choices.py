"""Which of the numbered candidates does the observer name: the wording that was answered, the text
at temperature 0?
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from difflib import SequenceMatcher

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import (
    Decision,
    outcome,
    prediction,
    predictions,
    score_of,
    target_fault,
)
from selfprobe.scorers.summary import Scores, counted_apart, judged, metric_of, noted, summary
from selfprobe.solvers.compare import Likeness
from selfprobe.solvers.record import Record, Reply
from selfprobe.text.parse import alone, json_value, normalise, unstyled, words

MAX_SIMILARITY = 0.95
"""Above the cosine of different replies to one item, below that of one reply lightly edited
(all-MiniLM-L6-v2). SmolLM2's replies to the five wordings of three items: 30 pairs, median .60, at
most .75. The same replies against themselves without every tenth word: median .985, nine in ten
above .94. Stronger models repeat themselves more: each sample's log has its closest pair.
"""


@metric_of
def position(scores: Scores) -> dict[str, float]:
    """Distribution of the observer's choices over slots, right or wrong.

    Keys: `said_1` … `said_5`, the share of readable choices of a slot; `position_bias`, how far
    these shares are from equal ones (total variation distance: 0 no bias, .8 always the same slot).
    The score of a constant slot is `baseline_constant` of `summary`.
    """
    decisions = [d for _, d in judged(scores)]
    said = Counter(d.said for d in decisions if d.said is not None)
    if not said:
        return {}
    slots = round(1 / max(d.chance or 1 / 5 for d in decisions))
    shares = {str(slot): said[str(slot)] / said.total() for slot in range(1, slots + 1)}
    bias = sum(abs(share - 1 / slots) for share in shares.values()) / 2
    return {**{f"said_{slot}": share for slot, share in shares.items()}, "position_bias": bias}


@scorer(metrics=[summary(), position(), counted_apart()])
def paraphrase_choice() -> Scorer:
    """One decision per reply of the target: the number of the prompt that caused it (paper 003, E.2
    Task 1.4).
    """

    async def score(state: TaskState, target: Target) -> Score:
        record, order = state.store_as(Record), state.metadata["order"]
        alike, prompts = indistinct(state), state.metadata["prompts"]
        nearest = state.store_as(Likeness).nearest
        decisions = [
            judge_wording(
                name,
                order.index(name) + 1,
                act,
                record.answers.get(name),
                alike=alike,
                of=len(order),
            ).model_copy(
                update={"plain": nearest_prompt(name, act.text, prompts, nearest.get(name))}
            )
            for name, act in record.acts.items()
        ]
        return score_of(
            decisions,
            answer=predictions(decisions),
            explanation=_explain_wordings(record, decisions, state.store_as(Likeness)),
            details=noted(record.acts.values()),
        )

    return score


def indistinct(state: TaskState) -> bool:
    """Whether two of the target's replies are more similar than `max_similarity`."""
    closest = state.store_as(Likeness).closest
    return closest is not None and closest > state.metadata["max_similarity"]


def judge_wording(
    name: str, slot: int, act: Reply, choice: Reply | None, *, alike: bool, of: int = 5
) -> Decision:
    """Decision on one choice, compared with the slot of the prompt that made the text.

    Args:
        name: Name of the wording that the text answers.
        slot: Its place among the candidates; 1 is the first.
        act: The target's text.
        choice: The observer's reply; None where it was not asked.
        alike: Whether the item's replies are indistinct.
        of: Number of candidates shown; a larger number is no choice.
    """
    fault = target_fault(act) or ("indistinct" if alike else None)
    truth = str(slot)

    def read(text: str) -> str | None:
        said = chosen_slot(text)
        return said if said and int(said) <= of else None

    return prediction(
        name, choice, truth=truth, fault=fault, read=read, chance=1 / of, constant=truth
    )


def nearest_prompt(
    name: str, text: str, prompts: Mapping[str, str], nearest: str | None
) -> dict[str, float]:
    """Score of naming the prompt whose words, or whose embedding, are most similar to the text;
    ties are shared.

    >>> nearest_prompt("b", "The sea is blue.", {"a": "Tell of snow", "b": "Tell of the sea"}, None)
    {'TF-IDF': 1.0}
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True)
    out = {} if nearest is None else {"embedding": float(nearest == name)}
    if not any(map(vectorizer.build_analyzer(), prompts.values())):
        return out
    asked = vectorizer.fit_transform(prompts.values())
    likeness = (asked @ vectorizer.transform([text]).T).toarray()[:, 0]
    best = [
        prompt
        for prompt, value in zip(prompts, likeness, strict=True)
        if value >= likeness.max() - 1e-12
    ]
    return {"TF-IDF": (name in best) / len(best)} | out


_SLOT = re.compile(
    r"[^\w-]*(?:(?:prompt|option|candidate|choice|number|no)\b\W{0,3})?([1-5])[^\w-]*",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"(?:the|my|correct|right|most|likely|best|final|answer|choice|prompt|option|candidate|number|is|was|it|it's|that|this"
    r"|would|be|i|think|believe|choose|pick|guess|say|caused|generated|text|you|to|of|me|generate)"
)


def chosen_slot(text: str) -> str | None:
    """Slot in {"choice": …}, or the one number of a reply that says nothing else; None for anything
    else.

    >>> chosen_slot('{ "choice": "Prompt 3" }'), chosen_slot("The answer is **3**."), chosen_slot("3 or 4")
    ('3', '3', None)
    """
    text = unstyled(text)
    value = json_value(text, "choice")
    if value is None and "{" not in text and len(text) <= 200:
        kept = [word for word in words(text) if not _FILLER.fullmatch(normalise(word))]
        value = kept[0] if len(kept) == 1 else None
    found = _SLOT.fullmatch(unicodedata.normalize("NFKC", alone(value) or ""))
    return found[1] if found else None


def _explain_wordings(record: Record, decisions: list[Decision], likeness: Likeness) -> str:
    """Similarity of the replies and, for each, its beginning, the choice and the verdict, for the
    log browser.
    """
    closest = "none to compare" if likeness.closest is None else f"{likeness.closest:.3f}"
    lines = [f"closest two replies: cosine {closest} ({likeness.embedder})", ""]
    for d in decisions:
        act, choice = record.acts[d.key], record.answers.get(d.key)
        told = f"said {d.said!r}: {outcome(d, choice)}"
        lines.append(f"- {d.key}, candidate {d.truth}: {told}; text: {act.text[:80]!r}")
    return "\n".join(lines)


@scorer(metrics=[summary(), counted_apart()])
def temperature_choice() -> Scorer:
    """One decision: the number of the text that was written at temperature 0."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        decision = judge_temperature(
            record.acts, record.answers.get("cold"), cold_first=state.metadata["cold_first"]
        )
        return score_of(
            [decision],
            answer=predictions([decision]),
            explanation=outcome(decision, record.answers.get("cold")),
            details=noted([record.acts["cold"], record.acts["warm"]]),
        )

    return score


def judge_temperature(
    acts: Mapping[str, Reply], choice: Reply | None, *, cold_first: bool
) -> Decision:
    """Decision on the choice, against the slot of the text at temperature 0; with the scores of
    text length.
    """
    cold, warm, truth = acts["cold"], acts["warm"], "1" if cold_first else "2"
    fault = texts_fault(cold, warm)
    found = prediction(
        "cold",
        choice,
        truth=truth,
        fault=fault,
        read=slot_of_two,
        chance=0.5,
        constant=truth,
        ceiling=None if fault else nearer(cold.text, warm.text, acts["again"]),
    )
    short, long = len(cold.text.split()), len(warm.text.split())
    shorter = 0.5 if short == long else float(short < long)
    return found.model_copy(update={"plain": {"shorter": shorter, "longer": 1 - shorter}})


def slot_of_two(text: str) -> str | None:
    """Slot 1 or 2, as `chosen_slot` reads it; None for anything else."""
    found = chosen_slot(text)
    return found if found in ("1", "2") else None


def nearer(cold: str, warm: str, again: Reply) -> float | None:
    """Whether the text at temperature 0 shares more words in order with another one at temperature
    0; a tie is half.
    """
    if again.problem:
        return None
    words = again.text.split()
    first, second = (
        SequenceMatcher(None, words, text.split(), autojunk=False).ratio() for text in (cold, warm)
    )
    return 0.5 if first == second else float(first > second)


def texts_fault(cold: Reply, warm: Reply) -> str | None:
    """Reason why there are no two texts to distinguish, or None."""
    same = cold.text.split() == warm.text.split()
    return target_fault(cold) or target_fault(warm) or ("indistinct" if same else None)
