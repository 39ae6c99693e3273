"""Which of the numbered candidates does the observer name: the wording that was answered, the text
at temperature 0?
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from difflib import SequenceMatcher

import numpy as np
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
from selfprobe.scorers.summary import (
    Scores,
    counted_apart,
    judged,
    metric_of,
    sample_notes,
    summary,
)
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
    decisions = [decision for _, decision in judged(scores)]
    choice_counts = Counter(decision.said for decision in decisions if decision.said is not None)
    if not choice_counts:
        return {}

    largest_chance = max(decision.chance or 1 / 5 for decision in decisions)
    slot_count = round(1 / largest_chance)
    numbers: dict[str, float] = {}
    distance_from_equal = 0.0
    for slot in range(1, slot_count + 1):
        share = choice_counts[str(slot)] / choice_counts.total()
        numbers[f"said_{slot}"] = share
        distance_from_equal += abs(share - 1 / slot_count)
    numbers["position_bias"] = distance_from_equal / 2
    return numbers


@scorer(metrics=[summary(), position(), counted_apart()])
def paraphrase_choice() -> Scorer:
    """One decision per reply of the target: the number of the prompt that caused it
    (IntrospectBench, E.2 Task 1.4).
    """

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        likeness = state.store_as(Likeness)
        acts = record.acts
        choices = record.answers
        order = state.metadata["order"]
        prompts = state.metadata["prompts"]
        are_replies_alike = indistinct(state)

        decisions: list[Decision] = []
        for name, act in acts.items():
            decision = judge_wording(
                name,
                order.index(name) + 1,
                act,
                choices.get(name),
                has_indistinct_replies=are_replies_alike,
                slot_count=len(order),
            )
            plain_scores = nearest_prompt(name, act.text, prompts, likeness.nearest.get(name))
            decisions.append(decision.model_copy(update={"plain": plain_scores}))

        return score_of(
            decisions,
            answer=predictions(decisions),
            explanation=_explain_wordings(record, decisions, likeness),
            details=sample_notes(acts.values()),
        )

    return score


def indistinct(state: TaskState) -> bool:
    """Whether two of the target's replies are more similar than `max_similarity`."""
    closest = state.store_as(Likeness).closest
    return closest is not None and closest > state.metadata["max_similarity"]


def judge_wording(
    name: str,
    slot: int,
    act: Reply,
    choice: Reply | None,
    *,
    has_indistinct_replies: bool,
    slot_count: int = 5,
) -> Decision:
    """Decision on one choice, compared with the slot of the prompt that made the text.

    Args:
        name: Name of the wording that the text answers.
        slot: Its place among the candidates; 1 is the first.
        act: The target's text.
        choice: The observer's reply; None where it was not asked.
        has_indistinct_replies: Whether the item's replies are indistinct.
        slot_count: Number of candidates shown; a larger number is no choice.
    """
    fault = target_fault(act)
    if fault is None and has_indistinct_replies:
        fault = "indistinct"

    def read(text: str) -> str | None:
        chosen = chosen_slot(text)
        if chosen is None or int(chosen) > slot_count:
            return None
        return chosen

    return prediction(
        name,
        choice,
        truth=str(slot),
        fault=fault,
        parse_answer=read,
        chance=1 / slot_count,
        constant=str(slot),
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

    embedding_score: dict[str, float] = {}
    if nearest is not None:
        embedding_score["embedding"] = float(nearest == name)

    vectorizer = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True)
    if not any(map(vectorizer.build_analyzer(), prompts.values())):
        return embedding_score
    prompt_vectors = vectorizer.fit_transform(prompts.values())
    text_vector = vectorizer.transform([text])
    similarities = (prompt_vectors @ text_vector.T).toarray()[:, 0]

    is_nearest = similarities >= similarities.max() - 1e-12
    is_own_prompt = np.array([prompt_name == name for prompt_name in prompts])
    hit_count = int((is_nearest & is_own_prompt).sum())
    return {"TF-IDF": hit_count / int(is_nearest.sum())} | embedding_score


_SLOT_REPLY = re.compile(
    r"[^\w-]*(?:(?:prompt|option|candidate|choice|number|no)\b\W{0,3})?([1-5])[^\w-]*",
    re.IGNORECASE,
)
_FILLER_WORD = re.compile(
    r"(?:the|my|correct|right|most|likely|best|final|answer|choice|prompt|option|candidate|number"
    r"|is|was|it|it's|that|this|would|be|i|think|believe|choose|pick|guess|say|caused|generated"
    r"|text|you|to|of|me|generate)"
)


def chosen_slot(text: str) -> str | None:
    """Slot in {"choice": …}, or the one number of a reply that says nothing else; None for anything
    else.

    >>> chosen_slot('{ "choice": "Prompt 3" }'), chosen_slot("The answer is **3**.")
    ('3', '3')
    >>> chosen_slot("3 or 4") is None
    True
    """
    text = unstyled(text)
    value = json_value(text, "choice")
    if value is None and "{" not in text and len(text) <= 200:
        telling_words = [
            word for word in words(text) if not _FILLER_WORD.fullmatch(normalise(word))
        ]
        if len(telling_words) == 1:
            value = telling_words[0]
    plain_value = unicodedata.normalize("NFKC", alone(value) or "")
    slot_match = _SLOT_REPLY.fullmatch(plain_value)
    return slot_match[1] if slot_match else None


def _explain_wordings(record: Record, decisions: list[Decision], likeness: Likeness) -> str:
    """Similarity of the replies and, for each, its beginning, the choice and the verdict, for the
    log browser.
    """
    acts = record.acts
    choices = record.answers
    closest = "none to compare" if likeness.closest is None else f"{likeness.closest:.3f}"
    lines = [f"closest two replies: cosine {closest} ({likeness.embedder})", ""]
    for decision in decisions:
        outcome_text = outcome(decision, choices.get(decision.key))
        lines.append(
            f"- {decision.key}, candidate {decision.truth}: said {decision.said!r}: "
            f"{outcome_text}; text: {acts[decision.key].text[:80]!r}"
        )
    return "\n".join(lines)


@scorer(metrics=[summary(), counted_apart()])
def temperature_choice() -> Scorer:
    """One decision: the number of the text that was written at temperature 0."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        acts = record.acts
        choice = record.answers.get("cold")
        decision = judge_temperature(acts, choice, cold_first=state.metadata["cold_first"])
        return score_of(
            [decision],
            answer=predictions([decision]),
            explanation=outcome(decision, choice),
            details=sample_notes([acts["cold"], acts["warm"]]),
        )

    return score


def judge_temperature(
    acts: Mapping[str, Reply], choice: Reply | None, *, cold_first: bool
) -> Decision:
    """Decision on the choice, against the slot of the text at temperature 0; with the scores of
    text length.
    """
    cold = acts["cold"]
    warm = acts["warm"]
    fault = texts_fault(cold, warm)
    right_slot = "1" if cold_first else "2"
    decision = prediction(
        "cold",
        choice,
        truth=right_slot,
        fault=fault,
        parse_answer=slot_of_two,
        chance=0.5,
        constant=right_slot,
        ceiling=None if fault else share_nearer_to_cold(cold.text, warm.text, acts["again"]),
    )

    cold_word_count = len(cold.text.split())
    warm_word_count = len(warm.text.split())
    is_cold_shorter = _share_of_less(cold_word_count, warm_word_count)
    plain_scores = {"shorter": is_cold_shorter, "longer": 1 - is_cold_shorter}
    return decision.model_copy(update={"plain": plain_scores})


def _share_of_less(first: float, second: float) -> float:
    """1 where the first number is smaller, 0 where it is larger, .5 for a tie."""
    return 0.5 if first == second else float(first < second)


def slot_of_two(text: str) -> str | None:
    """Slot 1 or 2, as `chosen_slot` reads it; None for anything else."""
    slot = chosen_slot(text)
    return slot if slot in ("1", "2") else None


def share_nearer_to_cold(cold_text: str, warm_text: str, second_cold_reply: Reply) -> float | None:
    """Whether the text at temperature 0 shares more words in order with another one at temperature
    0; a tie is half.
    """
    if second_cold_reply.problem:
        return None
    repeated_words = second_cold_reply.text.split()
    cold_matcher = SequenceMatcher(None, repeated_words, cold_text.split(), autojunk=False)
    warm_matcher = SequenceMatcher(None, repeated_words, warm_text.split(), autojunk=False)
    return _share_of_less(warm_matcher.ratio(), cold_matcher.ratio())


def texts_fault(cold: Reply, warm: Reply) -> str | None:
    """Reason why there are no two texts to distinguish, or None."""
    fault = target_fault(cold) or target_fault(warm)
    if fault is None and cold.text.split() == warm.text.split():
        return "indistinct"
    return fault
