"""Did the observer name the emotion for which the target chose numbers?"""

from collections import Counter

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import UNPARSED, outcome, prediction, predictions, score_of, target_fault
from selfprobe.scorers.summary import Scores, metric_of, summary
from selfprobe.solvers.record import Record, Reply
from selfprobe.text.parse import json_value, one_word

EMOTIONS = ("joy", "grief", "anger", "fear", "calm", "envy", "pride", "boredom")


@metric_of
def told_apart(scores: Scores) -> dict[str, float]:
    """`ceiling`: the mean of 1/m over the played items, where the target chose one subset of a set for m emotions."""
    played = [subset for one in scores if (subset := (one.score.metadata or {}).get("subset"))]
    times = Counter(played)
    return {"ceiling": sum(1 / times[subset] for subset in played) / len(played)} if played else {}


@scorer(metrics=[summary(), told_apart()])
def emotion_guess() -> Scorer:
    """One decision: the emotion for which the numbers were chosen."""

    async def score(state: TaskState, target: Target) -> Score:
        record, word, numbers = state.store_as(Record), state.metadata["word"], state.metadata["numbers"]
        subset, fault = subset_in(record.acts["subset"], numbers)
        reply = record.answers.get("word")
        decision = prediction(
            "word", reply, truth=word, fault=fault, read=emotion, chance=1 / len(EMOTIONS), constant=word
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
    """Chosen numbers, or why they cannot be played: ([], reason); all of them, or others, are no subset."""
    if fault := target_fault(reply):
        return [], fault
    said = json_value(reply.text, "subset")
    if not isinstance(said, list) or not all(type(one) is int for one in said):
        return [], f"target_{UNPARSED}"
    subset = sorted(set(said))
    return (subset, None) if subset and set(subset) < set(numbers) else ([], "no_subset")
