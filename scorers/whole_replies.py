"""Is each reply whole?"""

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import Decision, score_of, target_fault
from selfprobe.scorers.summary import counted_apart, noted, summary
from selfprobe.solvers.record import Record


@scorer(metrics=[summary("replied"), counted_apart()])
def whole_replies() -> Scorer:
    """1 for a whole reply; unscored, with the reason, for what cannot be compared."""

    async def score(state: TaskState, target: Target) -> Score:
        acts = state.store_as(Record).acts
        faults = {name: target_fault(reply) for name, reply in acts.items()}
        decisions = [Decision(key=name, value=None if why else 1.0, unscored=why) for name, why in faults.items()]
        said = ", ".join(filter(None, faults.values())) or "whole"
        return score_of(decisions, answer=None, explanation=said, details=noted(acts.values()))

    return score
