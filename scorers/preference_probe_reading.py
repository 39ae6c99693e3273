"""Which of two texts does a fitted probe prefer, and what does its model answer itself?"""

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import Decision, score_of
from selfprobe.scorers.preference import VERDICT, in_words, preference, verdict
from selfprobe.solvers.apply_probe import ProbeReading

OWN = "own"
"""Key of the model's own answer, from the same passes."""


@scorer(metrics=[preference()])
def preference_probe_reading() -> Scorer:
    """Preferred text by the side of the probe's boundary (paper 004, §3), and the model's own answer (§4.3)."""

    async def score(state: TaskState, target: Target) -> Score:
        reading = state.store_as(ProbeReading)
        decisions = judge(reading, label=state.metadata["label"])
        return score_of(decisions, answer=decisions[0].said, explanation=explain(reading, decisions))

    return score


def judge(reading: ProbeReading, *, label: int | None) -> list[Decision]:
    """Verdict of the probe, then the model's own answer; both or neither could be read."""
    own = None if reading.own_answer is None else reading.own_answer - 0.5
    reason = None
    if reading.score is None or own is None:
        # "too long: 9000 tokens, the context is 8192" is counted as too_long.
        reason = (reading.reason or "not_read").partition(":")[0].replace(" ", "_")
    margins = {VERDICT: reading.score, OWN: own}
    return [verdict(key, None if reason else m, label=label, reason=reason) for key, m in margins.items()]


def explain(reading: ProbeReading, decisions: list[Decision]) -> str:
    """Both verdicts, for the log browser."""
    head, own = decisions
    if head.unscored or reading.score is None or reading.own_answer is None:
        return f"unscored, {reading.reason or 'the probe was not applied'}"
    return (
        f"the probe prefers {in_words(head)} "
        f"(score {reading.score:+.4g}; above 0 is text 1); label: {head.truth or 'none'}\n"
        f"the model's own answer: {'a tie' if own.said == 'tie' else f'text {own.said}'} "
        f"(P(text 1) = {reading.own_answer:.3f})"
    )
