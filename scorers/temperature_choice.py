"""Did the observer name the text that the target wrote at temperature 0?"""

from collections.abc import Mapping
from difflib import SequenceMatcher

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import Decision, outcome, prediction, predictions, score_of, target_fault
from selfprobe.scorers.paraphrase_choice import chosen_slot
from selfprobe.scorers.summary import counted_apart, noted, summary
from selfprobe.solvers.record import Record, Reply


@scorer(metrics=[summary(), counted_apart()])
def temperature_choice() -> Scorer:
    """One decision: the number of the text that was written at temperature 0."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        decision = judge(record.acts, record.answers.get("cold"), cold_first=state.metadata["cold_first"])
        return score_of(
            [decision],
            answer=predictions([decision]),
            explanation=outcome(decision, record.answers.get("cold")),
            details=noted([record.acts["cold"], record.acts["warm"]]),
        )

    return score


def judge(acts: Mapping[str, Reply], choice: Reply | None, *, cold_first: bool) -> Decision:
    """Decision on the choice, against the slot of the text at temperature 0; with the scores of text length."""
    cold, warm, truth = acts["cold"], acts["warm"], "1" if cold_first else "2"
    fault = fault_of(cold, warm)
    found = prediction(
        "cold",
        choice,
        truth=truth,
        fault=fault,
        read=slot,
        chance=0.5,
        constant=truth,
        ceiling=None if fault else nearer(cold.text, warm.text, acts["again"]),
    )
    short, long = len(cold.text.split()), len(warm.text.split())
    shorter = 0.5 if short == long else float(short < long)
    return found.model_copy(update={"plain": {"shorter": shorter, "longer": 1 - shorter}})


def slot(text: str) -> str | None:
    """Slot 1 or 2, as `chosen_slot` reads it; None for anything else."""
    found = chosen_slot(text)
    return found if found in ("1", "2") else None


def nearer(cold: str, warm: str, again: Reply) -> float | None:
    """Whether the text at temperature 0 shares more words in order with another one at temperature 0; a tie is half."""
    if again.problem:
        return None
    words = again.text.split()
    first, second = (SequenceMatcher(None, words, text.split(), autojunk=False).ratio() for text in (cold, warm))
    return 0.5 if first == second else float(first > second)


def fault_of(cold: Reply, warm: Reply) -> str | None:
    """Reason why there are no two texts to distinguish, or None."""
    same = cold.text.split() == warm.text.split()
    return target_fault(cold) or target_fault(warm) or ("indistinct" if same else None)
